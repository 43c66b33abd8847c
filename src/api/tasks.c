/* Tasks: a single one, the list, and cancelling. */
#include "api/internal.h"

#include <stdio.h>

#include "model/record.h"

enum { TURNS_MAX = 100, SHOW_TRIES = 3 };

/* The state of a request about a single task. */
struct task_cancel {
    void (*answer)(struct request *o, const struct task *t);
    unsigned n_left; /* remaining tries */
    int64_t turn;    /* the turn to cancel; zero: not seen yet */
};

/* A single task. */

static void write_turns(struct json_out *out, const struct query *q,
                        int64_t before)
{
    const struct row *newest_first[TURNS_MAX];
    size_t n = 0;

    json_key(out, STR("turns"));
    json_open(out, '[');
    if (q)
        QUERY_EACH(r, q)
    if (n < TURNS_MAX && row_int(r, TURN_NUMBER) < before)
        newest_first[n++] = r;
    while (n--) {
        const struct row *r = newest_first[n];
        struct task t = {.seq = 0};

        record_from_row(&t, &turn_table, r);
        t.result.status = t.status;
        speak_turn(out, &t, row_int(r, TURN_BEGAN_MS));
    }
    json_close(out, ']');
}

static void answer_one_task(struct request *o, const struct task *t)
{
    struct json_out out = request_json(o);

    json_open(&out, '{');
    speak_task(&out, t);
    write_inputs(o->api, &out, str_of(t->id.text));
    write_turns(&out, o->has_turns ? &o->turns : NULL, t->turn);
    json_close(&out, '}');
    request_answer(o, 200);
}

static void show_task(struct request *o, const struct task *t);

/* The turns were read after the task was seen in o->turn. If it has a further
 * turn by now, the previous one may be missing: read again. */
static void on_task_again(struct request *o, enum err e, const struct task *t)
{
    if (e)
        request_fail(o, e);
    else if (t->turn == o->turn || o->n_pages++ == SHOW_TRIES)
        answer_one_task(o, t);
    else
        show_task(o, t);
}

static void on_task_turns(struct request *o)
{
    if (o->turns.err)
        request_fail(o, o->turns.err);
    else
        look_task(o, on_task_again);
}

static void show_task(struct request *o, const struct task *t)
{
    if (t->turn == 1) {
        answer_one_task(o, t);
        return;
    }
    o->turn = t->turn;
    request_query_turns(o, &turn_table, TURNS_MAX)->is_quick = true;
    query_if(&o->turns, TURN_TASK_SEQ, IS, value_int(t->seq));
    query_if(&o->turns, TURN_NUMBER, IS_LESS, value_int(t->turn));
    query_if(&o->turns, TURN_NUMBER, IS_MORE,
             value_int(0)); /* dropped turns have number 0 */
    query_order(&o->turns, TURN_NUMBER, true);
    request_read(o, &o->turns, on_task_turns);
}

static void on_task_to_show(struct request *o, enum err e, const struct task *t)
{
    if (e)
        request_fail(o, e);
    else
        show_task(o, t);
}

void call_tasks_get(struct call *c)
{
    struct request *o;
    struct id id;

    if (!call_task_id(c, &id) || !(o = request_of_call(c, NULL)))
        return;
    o->task_id = id;
    look_task(o, on_task_to_show);
}

/* The list. */

/* Memory has the exact state of a task whose row says queued. */
static void write_item(struct request *o, struct json_out *out,
                       const struct row *row)
{
    struct tasks *tasks = walk_tasks(o->api->walk);
    const enum task_status *any = o->own, wanted = *any;
    const struct task *now;
    struct task t;

    task_from_row(&t, row);
    now = task_find(tasks, str_of(t.id.text));
    if (now && now->turn == t.turn && !task_is_over(t.status)) {
        t.status = task_shown(now);
        t.attempt = now->attempt;
        t.updated_ms = now->updated_ms;
        t.finished_ms = now->finished_ms;
        t.result = now->result;
    }
    if ((wanted && t.status != wanted) || !task_is_for(&t, &o->caller))
        return;
    json_open(out, '{');
    speak_task(out, &t);
    json_close(out, '}');
}

static void on_tasks_page(struct request *o)
{
    struct json_out out = request_json(o);
    const struct row *last = NULL;
    bool has_more = o->query.has_more;

    if (!request_query_ok(o))
        return;
    speak_list_open(&out);
    QUERY_EACH(r, &o->query)
    {
        if (o->api->body.n > PAGE_BYTES) {
            has_more = true;
            break;
        }
        write_item(o, &out, r);
        last = r;
    }
    request_answer_list(o, &out,
                        has_more && last ? row_int(last, TASK_SEQ) : 0);
}

/* The status in the row. Dispatched and working are only in memory. Zero: tasks
 * of a batch can have these states too, while their row says held. */
static enum task_status task_status_in_row(enum task_status s)
{
    if (s == TASK_QUEUED || s == TASK_DISPATCHED)
        return 0;
    return task_move_is_durable(s) ? s : TASK_QUEUED;
}

/* The agent name in the spelling of the rows. */
static struct str agent_name_in_rows(struct call *c, struct str name)
{
    struct agents all = registry_agents(c->api->registry);
    const struct agent *a = agent_find(&all, name);

    return a ? a->name : name;
}

/* A conversation belongs to its requester, so a filter by an own conversation
 * needs no other column. */
static void tasks_filter_query(struct call *c, struct query *q,
                               enum task_status status)
{
    static const uint8_t whose[] = {TASK_REQUESTER, TASK_ROOT_USER};
    struct str agent = call_arg(c, "agent");
    struct str conversation = call_arg(c, "conversation_id");

    if (!caller_is_admin(&c->caller))
        query_if_any(q, whose, conversation.p ? 1 : 2, IS,
                     value_text(caller_name(&c->caller)));
    if (task_status_in_row(status))
        query_if(q, TASK_STATUS, IS, value_int(task_status_in_row(status)));
    if (status && !task_is_over(status)) /* has an index */
        query_if(q, TASK_FINISHED_MS, IS, value_null());
    if (agent.p)
        query_if(q, TASK_AGENT, IS, value_text(agent_name_in_rows(c, agent)));
    if (conversation.p)
        query_if(q, TASK_CONVERSATION_ID, IS, value_text(conversation));
}

void call_tasks_list(struct call *c)
{
    static const struct request_state state = {
        .bytes = sizeof(enum task_status)}; /* the one wanted; zero: any */
    enum task_status status = task_status_of(call_arg(c, "status"));
    int64_t cursor = call_int(c, "cursor", 0);
    struct request *o = request_of_call(c, &state);

    if (!o)
        return;
    memcpy(o->own, &status, sizeof(status));
    request_query(o, &task_table, call_limit(c));
    tasks_filter_query(c, &o->query, status);
    if (cursor)
        query_if(&o->query, TASK_SEQ, IS_LESS, value_int(cursor));
    query_order(&o->query, TASK_SEQ, true);
    request_read_list(o, &o->query, on_tasks_page);
}

/* Cancelling. */

/* The request means the turn that is seen first: if that ends before it is
 * cancelled and a further one starts, that one must not be cancelled. */

static void on_task_to_cancel(struct request *o, enum err e,
                              const struct task *t);

static void on_task_cancelled_found(struct request *o, enum err e,
                                    const struct task *t)
{
    struct task_cancel *k = o->own;

    if (e)
        request_fail(o, e);
    else
        k->answer(o, t);
}

static void task_after_cancel(struct request *o, enum err e)
{
    if (e == OK)
        look_task(o, on_task_cancelled_found);
    else if (e == ERR_NOT_FOUND || e == ERR_TASK_IS_OVER)
        look_task(o, on_task_to_cancel);
    else
        request_fail(o, e);
}

static void on_task_cancelled(void *ctx, struct str task_id, enum err e)
{
    struct request *o = ctx;

    (void)task_id;
    if (request_back(o))
        task_after_cancel(o, e);
}

/* Memory may be ahead of the row that was read; then the task is looked up
 * again. */
static void task_try_to_cancel(struct request *o)
{
    struct str id = str_of(o->task_id.text);
    const struct task *now = task_find(walk_tasks(o->api->walk), id);
    struct task_cancel *k = o->own;
    enum err e;

    if (k->n_left-- == 0) {
        request_refuse(o, ERR_BUSY, STR("the task is changing; try again"),
                       STR(""));
        return;
    }
    if (now && now->turn != k->turn) {
        look_task(o, on_task_to_cancel);
        return;
    }
    request_out(o);
    e = walk_cancel(o->api->walk, id, caller_name(&o->caller),
                    on_task_cancelled, o);
    if (e && request_back(o))
        task_after_cancel(o, e);
}

static void on_task_to_cancel(struct request *o, enum err e,
                              const struct task *t)
{
    struct task_cancel *k = o->own;

    if (!e && !k->turn)
        k->turn = t->turn;
    if (e)
        request_fail(o, e);
    else if (t->turn != k->turn)
        request_refuse(
            o, ERR_TASK_IS_OVER,
            STR("that turn of the task is already over, and another one "
                "has started"),
            STR(""));
    else if (t->status == TASK_CANCELLED)
        k->answer(o, t);
    else if (task_is_over(t->status))
        request_fail(o, ERR_TASK_IS_OVER);
    else
        task_try_to_cancel(o);
}

const struct request_state cancel_state = {.bytes = sizeof(struct task_cancel)};

void task_cancel(struct request *o,
                 void (*answer)(struct request *o, const struct task *t))
{
    struct task_cancel *k = o->own;

    k->answer = answer;
    k->n_left = SHOW_TRIES;
    look_task(o, on_task_to_cancel);
}

void call_tasks_cancel(struct call *c)
{
    struct request *o;
    struct id id;

    if (!call_has_no_body(c) || !call_task_id(c, &id) ||
        !(o = request_of_call(c, &cancel_state)))
        return;
    o->task_id = id;
    task_cancel(o, show_task);
}
