/* Opens the table inside the binary. Separate from builtin.c, so that programs
 * with their own table do not contain that one. */
#include "embed/internal.h"

/* inside_data.c */
extern const char embed_inside_begin[], embed_inside_end[];

size_t builtin_bytes(void)
{
    return (uintptr_t)embed_inside_end - (uintptr_t)embed_inside_begin;
}

enum err builtin_open(struct builtin *b, struct why *why)
{
    return builtin_open_bytes(
        b, (struct str){embed_inside_begin, builtin_bytes()}, why);
}

enum err builtin_words(struct vocab *v, struct why *why)
{
    return table_open_words(
        v, (struct str){embed_inside_begin, builtin_bytes()}, why);
}
