/* The reference texts, as they lie in the binary: one a line. */
#include "embed/embed.h"

/* reference_data.c */
extern const char embed_reference_begin[], embed_reference_end[];

static struct str whole(void)
{
    return (struct str){embed_reference_begin,
                        (size_t)((uintptr_t)embed_reference_end -
                                 (uintptr_t)embed_reference_begin)};
}

size_t embed_reference(struct str out[EMBED_REFERENCE_MAX])
{
    struct str rest = whole();
    size_t n = 0;

    while (rest.n && n < EMBED_REFERENCE_MAX)
        out[n++] = str_cut(&rest, '\n');
    return n;
}
