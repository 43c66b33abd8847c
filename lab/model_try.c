/* model try: shows the tokens that a model reads in texts, and the cosine of
 * each pair of texts. */
#include "lab/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli/grid.h"
#include "server/providers.h"

enum { TEXTS_MAX = 7, PIECES_MAX_BYTES = 1024 * 1024 };

struct model_trial {
    struct cli *c;
    struct loop loop;
    enum embed_kind kind;
    struct embed_stamp stamp;
    const struct str *texts;
    size_t n;
    struct buf pieces[TEXTS_MAX];
    float *vectors; /* n of them */
    enum err e;
    struct why why;
};

/* The request, like a server's. */

static void model_try_on_done(void *ctx, uint64_t id, enum err e,
                              const struct embed_result *r,
                              const struct why *why)
{
    struct model_trial *t = ctx;
    size_t bytes;

    (void)id;
    t->e = e;
    loop_stop(&t->loop);
    if (e) {
        t->why = *why;
        return;
    }
    t->stamp = r->stamp;
    bytes = r->n * r->stamp.dims * sizeof(*r->vectors);
    t->vectors = mem_new(bytes + 1);
    if (bytes)
        memcpy(t->vectors, r->vectors, bytes);
}

static enum err model_try_embed(struct model_trial *t, const struct model *m)
{
    struct log log;
    struct providers o = {.loop = &t->loop, .log = &log};
    uint64_t id;
    enum err e;

    log_init(&log, STDERR_FILENO, LOG_ERROR, LOG_AUTO, clock_system());
    if (loop_init(&t->loop, clock_system()))
        return why_err(&t->why, ERR_NOMEM, "out of memory");
    e = providers_open(&o, m->config, m->config->data.p, &t->why);
    if (!e) {
        e = embed_start(o.embeds[0], t->texts, t->n, EMBED_QUERY,
                        model_try_on_done, t, &id, &t->why);
        if (!e) {
            loop_run(&t->loop);
            e = t->e;
        }
        e = providers_failure(t->kind, e);
    }
    providers_close(&o);
    loop_fini(&t->loop);
    return e ? e
             : embed_pieces(t->kind, m->file_in_use, t->texts, t->n, t->pieces,
                            &t->why);
}

static bool model_try_is_zero(const struct model_trial *t, size_t i)
{
    for (size_t k = 0; k < t->stamp.dims; k++)
        if (t->vectors[i * t->stamp.dims + k] != 0)
            return false;
    return true;
}

static double model_try_cosine(const struct model_trial *t, size_t i, size_t j)
{
    size_t dims = t->stamp.dims;

    return (double)vec_cosine(t->vectors + i * dims, dims,
                              t->vectors + j * dims, dims);
}

/* Text output. */

/* Replaces bytes that are not UTF-8, which other programs could not read. */
static struct str utf8_only(struct str s)
{
    for (size_t i = 0, n; i < s.n; i += n ? n : 1) {
        n = utf8_one(s.p + i, s.p + s.n);
        if (!n)
            ((char *)s.p)[i] = '?'; /* a copy, in the arena */
    }
    return s;
}

static void model_try_show_text(struct model_trial *t, size_t i)
{
    struct cli *c = t->c;
    struct str pieces = buf_str(&t->pieces[i]);

    buf_addf(&c->out, "%zu  ", i + 1);
    cli_wrapped(c, 3, 3, utf8_only(cli_tamed(c, t->texts[i])));
    if (model_try_is_zero(t, i)) {
        buf_add_str(&c->out, STR("   the model knows nothing in it\n"));
    } else if (pieces.n) {
        buf_add_str(&c->out, STR("   read as: "));
        cli_wrapped(c, 12, 3, cli_tamed(c, pieces));
    }
}

static void model_try_show_cosines(struct model_trial *t)
{
    static const struct grid_head heads[] = {
        {"", NULL},  {"1", NULL}, {"2", NULL}, {"3", NULL},
        {"4", NULL}, {"5", NULL}, {"6", NULL}, {"7", NULL}};
    char cells[1 + TEXTS_MAX][24];
    struct str row[1 + TEXTS_MAX];
    struct grid g;

    _Static_assert(sizeof(heads) / sizeof(heads[0]) == 1 + TEXTS_MAX,
                   "a column for each");
    grid_init(&g, heads, t->n + 1);
    grid_right_from(&g, 1);
    for (size_t i = 0; i < t->n; i++) {
        snprintf(cells[0], sizeof(cells[0]), "%zu", i + 1);
        for (size_t j = 0; j < t->n; j++)
            /* Adding 0.0 turns -0 into 0. */
            snprintf(cells[j + 1], sizeof(cells[0]), "%.2f",
                     round(100 * model_try_cosine(t, i, j)) / 100 + 0.0);
        for (size_t j = 0; j <= t->n; j++)
            row[j] = str_of(cells[j]);
        grid_add(&g, row);
    }
    grid_write(&g, &t->c->out, t->c->width, t->c->colour, t->c->unicode);
    grid_fini(&g);
}

static void model_try_show(struct model_trial *t)
{
    struct cli *c = t->c;

    cli_coloured(c, BOLD, cli_tamed(c, str_of(t->stamp.name)));
    if (t->stamp.dims)
        buf_addf(&c->out, ", %u dimensions", t->stamp.dims);
    buf_add_str(&c->out, STR("\n\n"));
    for (size_t i = 0; i < t->n; i++)
        model_try_show_text(t, i);
    if (t->n < 2)
        return;
    buf_add_str(&c->out, STR("\nSimilarity, where 1.00 is identical:\n\n"));
    model_try_show_cosines(t);
}

/* JSON output: a line for each text. */

static void model_try_put_text(struct model_trial *t, size_t i)
{
    struct json_out o = json_out(&t->c->out);

    json_open(&o, '{');
    json_member_text(&o, "text", t->texts[i]);
    json_member_text(&o, "model", str_of(t->stamp.name));
    json_member_int(&o, "dims", t->stamp.dims);
    if (t->kind != EMBED_HTTP) {
        struct str rest = buf_str(&t->pieces[i]);

        json_key(&o, STR("pieces"));
        json_open(&o, '[');
        while (rest.n)
            json_put_str(&o, str_cut(&rest, ' '));
        json_close(&o, ']');
    }
    json_key(&o, STR("cosines"));
    json_open(&o, '[');
    for (size_t j = 0; j < t->n; j++)
        json_put_real(&o, model_try_cosine(t, i, j));
    json_close(&o, ']');
    json_close(&o, '}');
    buf_add_char(&t->c->out, '\n');
}

static enum exit_status model_try_all(struct model_trial *t,
                                      const struct model *m)
{
    enum err e;

    for (size_t i = 0; i < t->n; i++)
        buf_init(&t->pieces[i], PIECES_MAX_BYTES);
    e = model_try_embed(t, m);
    if (!e && !t->c->json)
        model_try_show(t);
    for (size_t i = 0; i < t->n; i++) {
        if (!e && t->c->json)
            model_try_put_text(t, i);
        buf_fini(&t->pieces[i]);
    }
    free(t->vectors);
    return e ? cli_error(t->c, e, "%s", t->why.text) : EXIT_DONE;
}

enum exit_status model_try(struct cli *c, struct str text)
{
    struct str name = args_get(&c->args, "embedder");
    struct model_trial t = {
        .c = c, .texts = c->args.operands + 1, .n = c->args.n_operands - 1};
    enum exit_status status;
    struct model m;

    (void)text;
    if (t.n > TEXTS_MAX)
        return cli_error(c, ERR_USAGE,
                         "up to seven texts can be compared at once");
    if (name.n && !model_kind(c, name, &t.kind, &status))
        return status;
    if (!model_open_with(&m, c, name.n ? embed_kind_name(t.kind) : NULL,
                         &status))
        return status;
    t.kind = (enum embed_kind)m.config->embed.kind;
    status = model_try_all(&t, &m);
    model_close(&m);
    return status;
}
