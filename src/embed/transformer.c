/* Opens the transformer inside the binary. Separate from builtin_models.c, so
 * that programs that need only the table do not contain it. */
#include "embed/transformer/minilm.h"

#include "base/fault.h"

/* transformer_data.c */
extern const char embed_transformer_begin[], embed_transformer_end[];

size_t transformer_bytes(void)
{
    return (uintptr_t)embed_transformer_end -
           (uintptr_t)embed_transformer_begin;
}

enum err transformer_open(struct minilm **out, struct why *why)
{
    struct str file = {embed_transformer_begin, transformer_bytes()};
    enum err e;

    /* A program that was truncated, or that contains other bytes by mistake. */
    if (PLANTED("transformer.short"))
        file.n -= MINILM_ALIGN;
    if (PLANTED("transformer.other"))
        file = str_sub(file, MINILM_ALIGN, file.n);
    e = minilm_use(out, file, NULL, why);
    if (e || minilm_dims(*out) == TRANSFORMER_DIMS)
        return e;
    e = why_err(why, ERR_BAD_CONFIG,
                "the transformer inside this program makes vectors of %u "
                "numbers, not of %d: the program was built wrongly",
                minilm_dims(*out), TRANSFORMER_DIMS);
    minilm_close(*out);
    *out = NULL;
    return e;
}
