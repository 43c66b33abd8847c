/* The teacher: MiniLM by the server's own code. Its arithmetic is the same on
 * every processor (embed/transformer/minilm.h), so the widest there is will do.
 */
#include "train/make.h"

#include <stdio.h>

#include "embed/transformer/minilm.h"

static void *scratch_new(void *ctx)
{
    return minilm_scratch_new(ctx, cpu_level());
}

static void scratch_free(void *ctx, void *scratch)
{
    (void)ctx;
    minilm_scratch_free(scratch);
}

static void embed(void *ctx, void *scratch, const struct str *texts, size_t n,
                  float *out)
{
    minilm_embed_many(ctx, scratch, texts, n, out);
}

enum err teacher_open(struct teacher *t, const char *path, struct why *why)
{
    struct minilm *m = NULL;
    enum err e = minilm_open(&m, path, why);

    *t = (struct teacher){.ctx = m};
    if (e)
        return e;
    if (m->head->hidden != TEACHER_DIMS) {
        teacher_close(t);
        return why_err(why, ERR_BAD_CONFIG,
                       "a teacher has vectors of %d numbers", TEACHER_DIMS);
    }
    t->vocab = &m->vocab;
    t->scratch_new = scratch_new;
    t->scratch_free = scratch_free;
    t->embed = embed;
    snprintf(t->hash, sizeof(t->hash), "%s", minilm_hash(m));
    return OK;
}

void teacher_close(struct teacher *t)
{
    minilm_close(t->ctx);
    t->ctx = NULL;
}
