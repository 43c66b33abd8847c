/* Messages of a child on its line. The hub does the same for its connections,
 * with batches and limits of its own; for a child one text line is exactly one
 * message.
 *
 * A result is answered when it is durable; until then the id of its call waits
 * under a receipt. Receipts from here have the top bit set, so they never
 * collide with those of the hub. */
#include "deliver/transports/line.h"

#include <stdlib.h>

static const uint64_t OURS = UINT64_C(1) << 63;

struct line_call {
    struct list_node node; /* line->calls */
    struct line *line;
    uint64_t receipt;
    size_t n;
    char raw[]; /* the id as received */
};

static struct str receipt_key(const uint64_t *receipt)
{
    return (struct str){(const char *)receipt, sizeof(*receipt)};
}

static void line_call_free(struct line_call *q)
{
    map_take(&q->line->deliver->lines->calls, receipt_key(&q->receipt));
    list_remove(&q->node);
    q->line->n_calls--;
    free(q);
}

void line_calls_drop(struct line *l)
{
    while (!list_is_empty(&l->calls))
        line_call_free(LIST_OF(list_first(&l->calls), struct line_call, node));
}

/* NULL: a limit is reached. */
static struct line_call *line_call_new(struct line *l, const struct wire_id *id)
{
    struct lines *all = l->deliver->lines;
    struct line_call *q;

    if (l->n_calls >= LINE_CALLS_MAX)
        return NULL;
    q = mem_new(sizeof(*q) + id->raw.n);
    q->line = l;
    q->receipt = ++all->last_receipt | OURS;
    q->n = id->raw.n;
    memcpy(q->raw, id->raw.p, id->raw.n);
    if (map_put(&all->calls, receipt_key(&q->receipt), q) != OK) {
        free(q);
        return NULL;
    }
    list_append(&l->calls, &q->node);
    l->n_calls++;
    return q;
}

/* Answers. A child that does not read may miss one, which is only logged. */

static void line_send_answer(struct line *l, struct buf *out)
{
    if (out->over || line_say(l, buf_str(out)) != OK)
        log_info(l->deliver->opts.log, "deliver.answer_unsaid",
                 LOG_S("agent", ((struct str){l->agent, l->n_agent})));
    buf_fini(out);
}

static void line_send_recorded(struct line *l, const struct wire_id *id,
                               enum err e)
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
    line_send_answer(l, &out);
}

/* The answer to a call without a result: {}. */
static void line_send_taken(struct line *l, const struct wire_id *id)
{
    struct json_out o;
    struct buf out;

    buf_init(&out, 4096);
    o = wire_result_open(&out, id);
    json_open(&o, '{');
    json_close(&o, '}');
    wire_close(&o);
    line_send_answer(l, &out);
}

static void line_send_error(struct line *l, const struct wire_id *id,
                            enum err e, const struct why *why)
{
    struct buf out;

    buf_init(&out, 4096);
    wire_error(&out, id, e, str_of(why->text), (struct str){0});
    line_send_answer(l, &out);
}

static void line_send_code(struct line *l, const struct wire_id *id,
                           enum wire_code code, struct str words)
{
    struct buf out;

    buf_init(&out, 4096);
    wire_error_of(&out, id, code, words, (struct str){0});
    line_send_answer(l, &out);
}

bool lines_recorded(struct deliver *d, uint64_t receipt, enum err e)
{
    struct line_call *q = map_get(&d->lines->calls, receipt_key(&receipt));

    if (!(receipt & OURS))
        return false;
    if (q) {
        struct wire_id id = {.raw = {q->raw, q->n}};

        line_send_recorded(q->line, &id, e);
        line_call_free(q);
    }
    return true;
}

/* Receive. */

static void line_heard_other(struct line *l, const struct wire_message *m)
{
    const struct deliver_opts *o = &l->deliver->opts;

    if (o->on_call)
        o->on_call(o->ctx, l->id, (struct str){l->agent, l->n_agent}, m);
    else if (m->kind == WIRE_REQUEST)
        line_send_code(l, &m->id, WIRE_METHOD_NOT_FOUND,
                       STR("there is no such method here"));
}

/* deliver_heard may close the line, so it is looked up again. ERR_NOMEM: the
 * message may have been an awaited one. */
static enum err line_heard(struct deliver *d, struct line *l,
                           const struct wire_message *m)
{
    bool is_request = m->kind == WIRE_REQUEST;
    struct line_call *q = is_request ? line_call_new(l, &m->id) : NULL;
    uint64_t receipt = q ? q->receipt : 0, id = l->id;
    bool is_result = str_eq(m->method, STR("task.result"));
    struct why why = {0};
    enum err e;

    if (is_request && !q) {
        line_send_error(l, &m->id, ERR_OVERLOADED, &why);
        return OK;
    }
    e = deliver_heard(d, id, m, receipt, &why);
    if (!e && is_result)
        return OK; /* answered when it is durable */
    l = line_by_id(d, id);
    if (q && map_get(&d->lines->calls, receipt_key(&receipt)) == q)
        line_call_free(q);
    if (!l)
        return OK;
    if (e == ERR_METHOD)
        line_heard_other(l, m);
    else if (is_request && e)
        line_send_error(l, &m->id, e, &why);
    else if (is_request)
        line_send_taken(l, &m->id);
    return e == ERR_NOMEM && !is_request ? e : OK;
}

enum err line_hear(struct deliver *d, uint64_t line, struct str text)
{
    struct line *l = line_by_id(d, line);
    struct wire_batch batch;
    struct arena scratch; /* line_tasks.c uses the one in struct lines */
    struct why why = {0};
    enum err e, heard_e = ERR_BAD_REQUEST;

    if (!l)
        return OK;
    arena_init(&scratch, LINE_MESSAGE_MAX);
    e = wire_read(&scratch, text, &batch, &why);
    if (e)
        line_send_code(l, NULL, WIRE_PARSE_ERROR, str_of(why.text));
    else if (batch.is_array)
        line_send_code(l, NULL, WIRE_INVALID_REQUEST,
                       STR("one message a line: no batches here"));
    else if (batch.list->kind == WIRE_BAD)
        line_send_code(l, &batch.list->id, WIRE_INVALID_REQUEST,
                       str_of(batch.list->why.text));
    else
        heard_e = line_heard(d, l, batch.list);
    arena_fini(&scratch);
    return e == ERR_NOMEM || e == ERR_LIMIT ? e : heard_e;
}
