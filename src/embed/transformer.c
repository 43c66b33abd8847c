/* Opens the transformer inside the binary, and joins its vectors with those of
 * the table. Apart from inside.c, so that programs that want the table alone do
 * not carry this one along. */
#include "embed/minilm.h"

#include <math.h>

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

    /* A program that was cut short, or whose bytes are others' by mistake. */
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

static bool is_zero(const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] != 0)
            return false;
    return true;
}

void both_join(float v[BOTH_DIMS])
{
    static const double part = VEC_QUICK_PART;
    float a = (float)sqrt(part), b = (float)sqrt(1 - part);

    /* Where one has nothing to say, the other is all of it; without the
     * transformer's the vector is a quick one. */
    if (is_zero(v, BUILTIN_DIMS) ||
        is_zero(v + BUILTIN_DIMS, TRANSFORMER_DIMS))
        return;
    for (size_t i = 0; i < BUILTIN_DIMS; i++)
        v[i] *= a;
    for (size_t i = BUILTIN_DIMS; i < BOTH_DIMS; i++)
        v[i] *= b;
}
