/* What a child says on its line, one message at a time. The hub does the same
 * for its connections, with batches and limits of its own; a child is ours, so
 * a line is one message and nothing else.
 *
 * A result is answered once it is kept: until then its id waits under a
 * receipt. Receipts of here have the top bit, so that they are never the
 * hub's. */
#include "deliver/line.h"

#include <stdlib.h>

static const uint64_t OURS = UINT64_C(1) << 63;

struct asked {
    struct list_node node; /* of its line's */
    struct line *line;
    uint64_t receipt;
    size_t n;
    char raw[]; /* the id, as it came */
};

static struct str receipt_key(const uint64_t *receipt)
{
    return (struct str){(const char *)receipt, sizeof(*receipt)};
}

static void asked_free(struct asked *q)
{
    map_take(&q->line->deliver->lines->asked, receipt_key(&q->receipt));
    list_remove(&q->node);
    q->line->n_asked--;
    free(q);
}

void asked_drop(struct line *l)
{
    while (!list_is_empty(&l->asked))
        asked_free(LIST_OF(list_first(&l->asked), struct asked, node));
}

/* NULL: as many as may be are open, or there is no memory. */
static struct asked *asked_new(struct line *l, const struct wire_id *id)
{
    struct lines *all = l->deliver->lines;
    struct asked *q;

    if (l->n_asked >= LINE_ASKED_MAX)
        return NULL;
    q = FAULT("deliver.asked") ? NULL : calloc(1, sizeof(*q) + id->raw.n);
    if (!q)
        return NULL;
    q->line = l;
    q->receipt = ++all->last_receipt | OURS;
    q->n = id->raw.n;
    memcpy(q->raw, id->raw.p, id->raw.n);
    if (map_put(&all->asked, receipt_key(&q->receipt), q) != OK) {
        free(q);
        return NULL;
    }
    list_append(&l->asked, &q->node);
    l->n_asked++;
    return q;
}

/* Answers. One that does not fit or cannot be said is missed by a child that
 * does not read; there is nobody to tell. */

static void say_all(struct line *l, struct buf *out)
{
    if (out->over || line_say(l, buf_str(out)) != OK)
        log_info(l->deliver->opts.log, "deliver.answer_unsaid",
                 LOG_S("agent", ((struct str){l->agent, l->n_agent})));
    buf_fini(out);
}

static void say_recorded(struct line *l, const struct wire_id *id, enum err e)
{
    struct json_out o;
    struct buf out;

    buf_init(&out, 4096);
    if (e && e != ERR_TASK_IS_OVER) {
        wire_error(&out, id, e, (struct str){0}, (struct str){0});
    } else {
        o = wire_result_open(&out, id);
        json_open(&o, '{');
        json_member_bool(&o, "recorded", e == OK);
        if (e)
            json_member_text(&o, "reason", STR("task_is_over"));
        json_close(&o, '}');
        wire_close(&o);
    }
    say_all(l, &out);
}

/* Of what is not kept: {}. */
static void say_taken(struct line *l, const struct wire_id *id)
{
    struct json_out o;
    struct buf out;

    buf_init(&out, 4096);
    o = wire_result_open(&out, id);
    json_open(&o, '{');
    json_close(&o, '}');
    wire_close(&o);
    say_all(l, &out);
}

static void say_error(struct line *l, const struct wire_id *id, enum err e,
                      const struct why *why)
{
    struct buf out;

    buf_init(&out, 4096);
    wire_error(&out, id, e, str_of(why->text), (struct str){0});
    say_all(l, &out);
}

static void say_code(struct line *l, const struct wire_id *id,
                     enum wire_code code, struct str words)
{
    struct buf out;

    buf_init(&out, 4096);
    wire_error_of(&out, id, code, words, (struct str){0});
    say_all(l, &out);
}

bool lines_recorded(struct deliver *d, uint64_t receipt, enum err e)
{
    struct asked *q = map_get(&d->lines->asked, receipt_key(&receipt));

    if (!(receipt & OURS))
        return false;
    if (q) {
        struct wire_id id = {.raw = {q->raw, q->n}};

        say_recorded(q->line, &id, e);
        asked_free(q);
    }
    return true;
}

/* Hearing. */

static void heard_other(struct line *l, const struct wire_message *m)
{
    const struct deliver_opts *o = &l->deliver->opts;

    if (o->on_call)
        o->on_call(o->ctx, l->id, (struct str){l->agent, l->n_agent}, m);
    else if (m->kind == WIRE_REQUEST)
        say_code(l, &m->id, WIRE_METHOD_NOT_FOUND,
                 STR("there is no such method here"));
}

/* Behind deliver_heard the line may be gone: it is looked up again. ERR_NOMEM:
 * it may have been a word that somebody waits for. */
static enum err heard(struct deliver *d, struct line *l,
                      const struct wire_message *m)
{
    bool is_asked = m->kind == WIRE_REQUEST;
    struct asked *q = is_asked ? asked_new(l, &m->id) : NULL;
    uint64_t receipt = q ? q->receipt : 0, id = l->id;
    bool is_result = str_eq(m->method, STR("task.result"));
    struct why why = {0};
    enum err e;

    if (is_asked && !q) {
        say_error(l, &m->id, ERR_OVERLOADED, &why);
        return OK;
    }
    e = deliver_heard(d, id, m, receipt, &why);
    if (!e && is_result)
        return OK; /* answered when it is kept */
    l = line_by_id(d, id);
    if (q && map_get(&d->lines->asked, receipt_key(&receipt)) == q)
        asked_free(q);
    if (!l)
        return OK;
    if (e == ERR_METHOD)
        heard_other(l, m);
    else if (is_asked && e)
        say_error(l, &m->id, e, &why);
    else if (is_asked)
        say_taken(l, &m->id);
    return e == ERR_NOMEM && !is_asked ? e : OK;
}

enum err line_read(struct deliver *d, uint64_t line, struct str text)
{
    struct line *l = line_by_id(d, line);
    struct wire_batch batch;
    struct arena scratch; /* that of the lines is used further in */
    struct why why = {0};
    enum err e, heard_e = ERR_BAD_REQUEST;

    if (!l)
        return OK;
    arena_init(&scratch, LINE_MESSAGE_MAX);
    e = wire_read(&scratch, text, &batch, &why);
    if (e)
        say_code(l, NULL, WIRE_PARSE_ERROR, str_of(why.text));
    else if (batch.is_array)
        say_code(l, NULL, WIRE_INVALID_REQUEST,
                 STR("one message a line: no batches here"));
    else if (batch.list->kind == WIRE_BAD)
        say_code(l, &batch.list->id, WIRE_INVALID_REQUEST,
                 str_of(batch.list->why.text));
    else
        heard_e = heard(d, l, batch.list);
    arena_fini(&scratch);
    return e == ERR_NOMEM || e == ERR_LIMIT ? e : heard_e;
}
