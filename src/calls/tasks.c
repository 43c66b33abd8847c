/* Tasks: one, many, and no more of one. */
#include "calls/internal.h"

#include <stdio.h>

enum { TURNS_MAX = 100, SHOW_TRIES = 3 };

/* One. */

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
        struct speak_turn turn = {
            .number = row_int(r, TURN_NUMBER),
            .message_id = row_str(r, TURN_MESSAGE_ID),
            .text = row_str(r, TURN_TEXT),
            .metadata = row_str(r, TURN_METADATA),
            .began_ms = row_int(r, TURN_BEGAN_MS),
            .finished_ms = row_int(r, TURN_FINISHED_MS),
            .price_micros = row_int(r, TURN_PRICE_MICROS),
            .result = {.status = (enum task_status)row_int(r, TURN_STATUS),
                       .text = row_str(r, TURN_RESULT_TEXT),
                       .metadata = row_str(r, TURN_RESULT_METADATA),
                       .error_code = row_str(r, TURN_ERROR_CODE),
                       .error = row_str(r, TURN_ERROR)}};

        speak_turn(out, &turn);
    }
    json_close(out, ']');
}

static void answer_task(struct open *o, const struct task *t)
{
    struct json_out out = json_out(&o->calls->body);

    json_open(&out, '{');
    speak_task(&out, t);
    write_inputs(o->calls, &out, str_of(t->id.text));
    write_turns(&out, o->has_turns ? &o->turns : NULL, t->turn);
    json_close(&out, '}');
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

static void show_task(struct open *o, const struct task *t);

/* The turns were read after the task was seen in o->turn. Should there be one
 * more by now, its predecessor may be missing: once more, then. */
static void on_task_again(struct open *o, enum err e, const struct task *t)
{
    if (e)
        open_refuse(o, e, STR(""), STR(""));
    else if (t->turn == o->turn || o->one.shows_left-- == 0)
        answer_task(o, t);
    else
        show_task(o, t);
}

static void on_turns(struct open *o)
{
    if (o->turns.err)
        open_refuse(o, o->turns.err, STR(""), STR(""));
    else
        look_task(o, on_task_again);
}

static void show_task(struct open *o, const struct task *t)
{
    if (t->turn == 1) {
        answer_task(o, t);
        return;
    }
    o->turn = t->turn;
    if (o->has_turns)
        query_fini(&o->turns);
    query_init(&o->turns, &turn_table, TURNS_MAX);
    o->has_turns = true;
    query_if(&o->turns, TURN_TASK_SEQ, IS, value_int(t->seq));
    query_if(&o->turns, TURN_NUMBER, IS_LESS, value_int(t->turn));
    query_if(&o->turns, TURN_NUMBER, IS_MORE, value_int(0)); /* not dropped */
    query_order(&o->turns, TURN_NUMBER, true);
    o->turns.is_quick = true;
    open_read(o, &o->turns, on_turns);
}

static void on_task(struct open *o, enum err e, const struct task *t)
{
    if (e)
        open_refuse(o, e, STR(""), STR(""));
    else
        show_task(o, t);
}

void call_tasks_get(struct call *c)
{
    struct open *o;
    struct id id;

    if (!call_task_id(c, &id) || !(o = open_new(c)))
        return;
    o->task_id = id;
    o->one.shows_left = SHOW_TRIES;
    look_task(o, on_task);
}

/* Many. */

/* Memory knows how far a task is that its row calls queued. */
static void write_item(struct open *o, struct json_out *out,
                       const struct row *row)
{
    struct tasks *tasks = walk_tasks(o->calls->walk);
    enum task_status wanted = o->list.status;
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

static void on_page(struct open *o)
{
    struct json_out out = json_out(&o->calls->body);
    const struct row *last = NULL;
    bool has_more = o->query.has_more;
    char cursor[32] = "";

    if (o->query.err) {
        open_refuse(o, o->query.err, STR(""), STR(""));
        return;
    }
    speak_list_open(&out);
    QUERY_EACH(r, &o->query)
    {
        if (o->calls->body.n > PAGE_BYTES) {
            has_more = true;
            break;
        }
        write_item(o, &out, r);
        last = r;
    }
    if (has_more && last)
        snprintf(cursor, sizeof(cursor), "%lld",
                 (long long)row_int(last, TASK_SEQ));
    speak_list_close(&out, str_of(cursor));
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

/* What a row calls it: that it is dispatched or being worked on stands in
 * memory alone. Zero: what is part of a batch may be it too, and its row says
 * that it is held. */
static enum task_status in_row(enum task_status s)
{
    if (s == TASK_QUEUED || s == TASK_DISPATCHED)
        return 0;
    return task_move_is_durable(s) ? s : TASK_QUEUED;
}

bool call_status(struct call *c, enum task_status *out)
{
    struct str arg = call_arg(c, "status");

    *out = task_status_of(arg);
    if (!arg.p || *out)
        return true;
    call_refuse(c, ERR_BAD_REQUEST,
                STR("status must be one of accepted, held, escalated, dropped, "
                    "queued, dispatched, working, input_required, completed, "
                    "failed, cancelled, expired"));
    return false;
}

static bool read_cursor(struct call *c, int64_t *out)
{
    struct str arg = call_arg(c, "cursor");

    *out = 0;
    if (!arg.p || (str_to_i64(arg, out) == OK && *out > 0))
        return true;
    call_refuse(c, ERR_BAD_REQUEST,
                STR("cursor must be a next_cursor of this list"));
    return false;
}

/* The name as it is written in rows, whatever its case was. */
static struct str agent_name(struct call *c, struct str name)
{
    struct agents all = registry_agents(c->calls->registry);
    const struct agent *a = agent_find(&all, name);

    return a ? a->name : name;
}

/* A conversation belongs to who speaks in it, so for one's own there is no
 * need to ask for whom else a task was. */
static void add_filters(struct call *c, struct query *q,
                        enum task_status status)
{
    static const uint8_t whose[] = {TASK_REQUESTER, TASK_ROOT_USER};
    struct str agent = call_arg(c, "agent");
    struct str conversation = call_arg(c, "conversation_id");

    if (!caller_is_admin(&c->caller))
        query_if_any(q, whose, conversation.p ? 1 : 2, IS,
                     value_text(caller_name(&c->caller)));
    if (in_row(status))
        query_if(q, TASK_STATUS, IS, value_int(in_row(status)));
    if (status && !task_is_over(status)) /* there is an index for these */
        query_if(q, TASK_FINISHED_MS, IS, value_null());
    if (agent.p)
        query_if(q, TASK_AGENT, IS, value_text(agent_name(c, agent)));
    if (conversation.p)
        query_if(q, TASK_CONVERSATION_ID, IS, value_text(conversation));
}

void call_tasks_list(struct call *c)
{
    enum task_status status;
    int64_t cursor;
    size_t limit;
    struct open *o;

    if (!call_limit(c, &limit) || !call_status(c, &status) ||
        !read_cursor(c, &cursor) || !(o = open_new(c)))
        return;
    o->list.status = status;
    query_init(&o->query, &task_table, limit);
    o->has_query = true;
    add_filters(c, &o->query, status);
    if (cursor)
        query_if(&o->query, TASK_SEQ, IS_LESS, value_int(cursor));
    query_order(&o->query, TASK_SEQ, true);
    open_list(o, &o->query, on_page);
}

/* No more of one. */

static void try_to_cancel(struct open *o);

/* What is meant is the turn that is seen first: should that be over before it
 * could be cancelled and a further one have begun, nobody asked for an end of
 * that one. */
static bool is_meant(struct open *o, const struct task *t)
{
    if (!o->one.cancels)
        o->one.cancels = t->turn;
    return t->turn == o->one.cancels;
}

static void on_over(struct open *o, enum err e, const struct task *t)
{
    if (e)
        open_refuse(o, e, STR(""), STR(""));
    else if (!is_meant(o, t))
        open_refuse(o, ERR_TASK_IS_OVER,
                    STR("that turn of the task is over already, and a further "
                        "one has begun"),
                    STR(""));
    else if (t->status == TASK_CANCELLED)
        show_task(o, t);
    else if (task_is_over(t->status))
        open_refuse(o, ERR_TASK_IS_OVER, STR(""), STR(""));
    else
        try_to_cancel(o);
}

static void after_cancel(struct open *o, enum err e)
{
    if (e == OK)
        look_task(o, on_task);
    else if (e == ERR_NOT_FOUND || e == ERR_TASK_IS_OVER)
        look_task(o, on_over);
    else
        open_refuse(o, e, STR(""), STR(""));
}

static void on_cancelled(void *ctx, struct str task_id, enum err e)
{
    struct open *o = ctx;

    (void)task_id;
    if (open_back(o))
        after_cancel(o, e);
}

/* Memory may be further than the row that was looked at; then it is looked at
 * again. */
static void try_to_cancel(struct open *o)
{
    const struct task *now =
        task_find(walk_tasks(o->calls->walk), str_of(o->task_id.text));
    enum err e;

    if (o->one.cancels_left-- == 0) {
        open_refuse(o, ERR_BUSY, STR("the task is changing; ask again"),
                    STR(""));
        return;
    }
    if (now && now->turn != o->one.cancels) {
        look_task(o, on_over);
        return;
    }
    open_out(o);
    e = walk_cancel(o->calls->walk, str_of(o->task_id.text),
                    caller_name(&o->caller), on_cancelled, o);
    if (e && open_back(o))
        after_cancel(o, e);
}

void call_tasks_cancel(struct call *c)
{
    struct why why = {""};
    enum err e = speak_nothing(c->rq->body, &why);
    struct open *o;
    struct id id;

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    if (!call_task_id(c, &id) || !(o = open_new(c)))
        return;
    o->task_id = id;
    o->one.shows_left = o->one.cancels_left = SHOW_TRIES;
    look_task(o, on_over);
}
