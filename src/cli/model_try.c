/* model try: what a model sees in texts, and how alike it finds them: the
 * pieces that each is read as, and the cosine of each with each. */
#include "cli/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli/grid.h"
#include "outward.h"

enum { TEXTS_MAX = 7, PIECES_MAX_BYTES = 1024 * 1024 };

struct trial {
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

/* Asking, as a server does. */

static void on_done(void *ctx, uint64_t id, enum err e,
                    const struct embed_result *r, const struct why *why)
{
    struct trial *t = ctx;
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
    t->vectors = malloc(bytes + 1);
    if (!t->vectors)
        t->e = why_err(&t->why, ERR_NOMEM, "out of memory");
    else if (bytes)
        memcpy(t->vectors, r->vectors, bytes);
}

static enum err ask_embed(struct trial *t, struct embed *e)
{
    uint64_t id;
    enum err err =
        embed_start(e, t->texts, t->n, EMBED_QUERY, on_done, t, &id, &t->why);

    if (err)
        return err;
    loop_run(&t->loop);
    return t->e;
}

static enum err ask(struct trial *t, const struct model *m)
{
    struct log log;
    struct outward o = {.loop = &t->loop, .log = &log};
    enum err e;

    log_init(&log, STDERR_FILENO, LOG_ERROR, LOG_AUTO, clock_system());
    if (loop_init(&t->loop, clock_system()))
        return why_err(&t->why, ERR_NOMEM, "out of memory");
    e = outward_open(&o, m->config, m->config->data.p, &t->why);
    if (!e)
        e = outward_failure(t->kind, ask_embed(t, o.embeds[0]));
    outward_close(&o);
    loop_fini(&t->loop);
    return e ? e
             : embed_pieces(t->kind, m->file_in_use, t->texts, t->n, t->pieces,
                            &t->why);
}

static bool is_empty(const struct trial *t, size_t i)
{
    for (size_t k = 0; k < t->stamp.dims; k++)
        if (t->vectors[i * t->stamp.dims + k] != 0)
            return false;
    return true;
}

static double cosine(const struct trial *t, size_t i, size_t j)
{
    size_t dims = t->stamp.dims;

    return (double)vec_cosine(t->vectors + i * dims, dims,
                              t->vectors + j * dims, dims);
}

/* For people. */

/* Bytes that are no UTF-8 would be no text wherever this ends up. */
static struct str readable(struct str s)
{
    for (size_t i = 0, n; i < s.n; i += n ? n : 1) {
        n = utf8_one(s.p + i, s.p + s.n);
        if (!n)
            ((char *)s.p)[i] = '?'; /* a copy, in the arena */
    }
    return s;
}

static void show_text(struct trial *t, size_t i)
{
    struct cli *c = t->c;
    struct str pieces = buf_str(&t->pieces[i]);

    buf_addf(&c->out, "%zu  ", i + 1);
    cli_wrapped(c, 3, 3, readable(cli_tamed(c, t->texts[i])));
    if (is_empty(t, i)) {
        buf_add_str(&c->out, STR("   nothing in it means anything\n"));
    } else if (pieces.n) {
        buf_add_str(&c->out, STR("   read as: "));
        cli_wrapped(c, 12, 3, cli_tamed(c, pieces));
    }
}

static void show_cosines(struct trial *t)
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
            /* Adding nothing takes the sign from a zero. */
            snprintf(cells[j + 1], sizeof(cells[0]), "%.2f",
                     round(100 * cosine(t, i, j)) / 100 + 0.0);
        for (size_t j = 0; j <= t->n; j++)
            row[j] = str_of(cells[j]);
        grid_add(&g, row);
    }
    grid_write(&g, &t->c->out, t->c->width, t->c->colour, t->c->unicode);
    grid_fini(&g);
}

static void show(struct trial *t)
{
    struct cli *c = t->c;

    cli_coloured(c, BOLD, cli_tamed(c, str_of(t->stamp.name)));
    if (t->stamp.dims)
        buf_addf(&c->out, ", %u dimensions", t->stamp.dims);
    buf_add_str(&c->out, STR("\n\n"));
    for (size_t i = 0; i < t->n; i++)
        show_text(t, i);
    if (t->n < 2)
        return;
    buf_add_str(&c->out, STR("\nHow alike they are, 1.00 being the same:\n\n"));
    show_cosines(t);
}

/* For programs: a line for each text. */

static void put_pieces(struct json_out *o, struct str rest)
{
    json_key(o, STR("pieces"));
    json_open(o, '[');
    while (rest.n)
        json_put_str(o, str_cut(&rest, ' '));
    json_close(o, ']');
}

static void put_text(struct trial *t, size_t i)
{
    struct json_out o = json_out(&t->c->out);

    json_open(&o, '{');
    json_member_text(&o, "text", t->texts[i]);
    json_member_text(&o, "model", str_of(t->stamp.name));
    json_member_int(&o, "dims", t->stamp.dims);
    if (t->kind != EMBED_HTTP)
        put_pieces(&o, buf_str(&t->pieces[i]));
    json_key(&o, STR("cosines"));
    json_open(&o, '[');
    for (size_t j = 0; j < t->n; j++)
        json_put_real(&o, cosine(t, i, j));
    json_close(&o, ']');
    json_close(&o, '}');
    buf_add_char(&t->c->out, '\n');
}

static enum exit_status try_all(struct trial *t, const struct model *m)
{
    enum err e;

    for (size_t i = 0; i < t->n; i++)
        buf_init(&t->pieces[i], PIECES_MAX_BYTES);
    e = ask(t, m);
    if (!e && !t->c->json)
        show(t);
    for (size_t i = 0; i < t->n; i++) {
        if (!e && t->c->json)
            put_text(t, i);
        buf_fini(&t->pieces[i]);
    }
    free(t->vectors);
    return e ? cli_error(t->c, e, "%s", t->why.text) : EXIT_DONE;
}

enum exit_status model_try(struct cli *c, struct str text)
{
    struct str name = args_get(&c->args, "embedder");
    struct trial t = {
        .c = c, .texts = c->args.operands + 1, .n = c->args.n_operands - 1};
    enum exit_status status;
    struct model m;

    (void)text;
    if (t.n > TEXTS_MAX)
        return cli_error(c, ERR_USAGE,
                         "up to seven texts can be tried at once");
    if (name.n && !model_kind(c, name, &t.kind, &status))
        return status;
    if (!model_open_with(&m, c, name.n ? embed_kind_name(t.kind) : NULL,
                         &status))
        return status;
    t.kind = (enum embed_kind)m.config->embed.kind;
    status = try_all(&t, &m);
    model_close(&m);
    return status;
}
