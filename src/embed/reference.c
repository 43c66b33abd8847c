/* The reference texts inside the binary, one per line. */
#include "embed/embed.h"

/* reference_data.c */
extern const char embed_reference_begin[], embed_reference_end[];

size_t embed_reference(struct str out[EMBED_REFERENCE_MAX])
{
    struct str rest = {embed_reference_begin,
                       (size_t)((uintptr_t)embed_reference_end -
                                (uintptr_t)embed_reference_begin)};
    size_t n = 0;

    while (rest.n && n < EMBED_REFERENCE_MAX)
        out[n++] = str_cut(&rest, '\n');
    return n;
}
