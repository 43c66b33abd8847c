/* The table inside the binary, on the loop: switching to another thread and
 * back takes longer than making a vector. Texts of embed_start are embedded at
 * the end of the turn, a limited amount at a time so that other work is not
 * delayed; queries go first. */
#include "embed/jobs.h"

#include <stdlib.h>

#include "base/mem.h"

/* The amount per turn: well under a millisecond of short texts. */
enum { TURN_TEXTS = 64, TURN_BYTES = 16 * 1024 };

struct inline_model {
    struct embed *embed;
    struct builtin builtin;
    struct list waiting[2]; /* by use */
    struct loop_job work;
};

static void on_inline_work(struct loop_job *job)
{
    struct inline_model *t = LIST_OF(job, struct inline_model, work);
    struct embed_text *text;
    struct list_node *n;
    float vector[BUILTIN_DIMS];
    size_t n_bytes = 0;

    for (int i = 0; i < TURN_TEXTS && n_bytes < TURN_BYTES; i++) {
        n = list_pop(&t->waiting[EMBED_QUERY]);
        if (!n && !(n = list_pop(&t->waiting[EMBED_DOCUMENT])))
            return;
        text = LIST_OF(n, struct embed_text, node);
        n_bytes += text->text.n;
        builtin_embed(&t->builtin, text->text, vector);
        embed_made(text, vector);
    }
    loop_next_turn(t->embed->loop, &t->work);
}

static enum err inline_open(struct embed *e, const struct embed_opts *opts,
                            struct why *why)
{
    struct inline_model *t = mem_new(sizeof(*t));
    enum err err = builtin_open(&t->builtin, why);

    (void)opts;
    if (err) {
        free(t);
        return err;
    }
    t->embed = e;
    t->work.run = on_inline_work;
    list_init(&t->waiting[EMBED_QUERY]);
    list_init(&t->waiting[EMBED_DOCUMENT]);
    e->model = t;
    embed_stamp_set(&e->stamp, STR("table"), builtin_hash(&t->builtin),
                    BUILTIN_DIMS);
    return OK;
}

static enum err inline_check(const struct embed_opts *opts,
                             struct embed_stamp *stamp, struct why *why)
{
    struct builtin builtin;
    enum err e = builtin_open(&builtin, why);

    (void)opts;
    if (!e)
        embed_stamp_set(stamp, STR("table"), builtin_hash(&builtin),
                        BUILTIN_DIMS);
    return e;
}

static void inline_close(struct embed *e)
{
    struct inline_model *t = e->model;

    loop_not_at_end(&t->work);
    free(t);
}

static void inline_now(struct embed *e, struct str text, float *out)
{
    struct inline_model *t = e->model;

    builtin_embed(&t->builtin, text, out);
}

static void inline_take(struct embed *e, struct embed_text *text)
{
    struct inline_model *t = e->model;

    list_append(&t->waiting[text->job->use], &text->node);
    loop_at_end(e->loop, &t->work);
}

static bool inline_drop(struct embed *e, struct embed_text *text)
{
    (void)e;
    list_remove(&text->node);
    return true;
}

const struct embed_ops embed_inline_ops = {
    .open = inline_open,
    .close = inline_close,
    .check = inline_check,
    .now = inline_now,
    .take = inline_take,
    .drop = inline_drop,
    .stop = embed_down,
};
