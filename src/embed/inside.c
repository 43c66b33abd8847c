/* Opens the table inside the binary. Apart from builtin.c, so that programs
 * that bring their own table do not carry that one along. */
#include "embed/internal.h"

/* inside_data.c */
extern const char embed_inside_begin[], embed_inside_end[];

enum err builtin_open(struct builtin *b, struct why *why)
{
    size_t n = (uintptr_t)embed_inside_end - (uintptr_t)embed_inside_begin;

    return builtin_open_bytes(b, (struct str){embed_inside_begin, n}, why);
}
