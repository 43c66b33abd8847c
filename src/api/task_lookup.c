/* A task is in memory while it is not over or has listeners, and always in its
 * row. This is the only place that looks at both, memory first.
 *
 * Between the two looks a task may move: if its row says that it is not over,
 * it came into memory after the first look (a further turn), or ended before
 * the second. Then both are repeated, a few times: a task can hardly start and
 * end between two looks for ever. */
#include "api/internal.h"

enum { LOOKS_MAX = 5 };

void look_read_row(struct request *o, struct str task_id,
                   void (*then)(struct request *o))
{
    query_if(request_query(o, &task_table, 1), TASK_ID, IS,
             value_text(task_id));
    request_read(o, &o->query, then);
}

enum err look_take_row(struct request *o, struct str task_id, struct task *row,
                       const struct task **out)
{
    const struct query *q = &o->query;

    *out = NULL;
    if (q->err || !q->rows)
        return q->err ? q->err : ERR_NOT_FOUND;
    task_from_row(row, q->rows);
    *out = task_find(walk_tasks(o->api->walk), task_id);
    if (!*out && (task_is_over(row->status) || ++o->n_looks == LOOKS_MAX))
        *out = row;
    return OK;
}

static void look_give_task(struct request *o, const struct task *t)
{
    bool is_seen = o->sees_task || task_is_for(t, &o->caller);

    o->found(o, is_seen ? OK : ERR_NOT_FOUND, is_seen ? t : NULL);
}

static void look_again_for_task(struct request *o);

static void on_look_row(struct request *o)
{
    const struct task *t;
    struct task row;
    enum err e = look_take_row(o, str_of(o->task_id.text), &row, &t);

    if (e)
        o->found(o, e, NULL);
    else if (t)
        look_give_task(o, t);
    else
        look_again_for_task(o);
}

static void look_again_for_task(struct request *o)
{
    struct str id = str_of(o->task_id.text);
    const struct task *t = task_find(walk_tasks(o->api->walk), id);

    if (t) {
        look_give_task(o, t);
        return;
    }
    look_read_row(o, id, on_look_row);
}

void look_task(struct request *o, task_found *found)
{
    o->found = found;
    o->n_looks = 0;
    look_again_for_task(o);
}

bool look_is_current(const struct request *o, const struct task *t)
{
    return !o->message_id.text[0] ||
           strcmp(o->message_id.text, t->message_id.text) == 0;
}

/* The task as it was in a past turn. */
static void look_give_past(struct request *o, enum err e, const struct task *t)
{
    struct task past;

    if (e) {
        o->then_found(o, e, NULL);
        return;
    }
    past = *t;
    past.message_id = o->message_id;
    task_of_turn(&past, o->turns.rows);
    o->then_found(o, OK, &past);
}

static void on_look_past_turn(struct request *o)
{
    if (o->turns.err || !o->turns.rows)
        o->then_found(o, o->turns.err ? o->turns.err : ERR_NOT_FOUND, NULL);
    else
        look_task(o, look_give_past);
}

void look_past(struct request *o, const struct task *t, task_found *found)
{
    struct query *q = request_query_turns(o, &turn_table, 1);

    o->then_found = found;
    query_if(q, TURN_TASK_SEQ, IS, value_int(t->seq));
    query_if(q, TURN_MESSAGE_ID, IS, value_text(str_of(o->message_id.text)));
    request_read(o, q, on_look_past_turn);
}

/* The row of the turn names the message it started with. */
static void on_look_turn_number(struct request *o)
{
    if (!o->turns.err && o->turns.rows)
        o->message_id = id_from(row_str(o->turns.rows, TURN_MESSAGE_ID));
    on_look_past_turn(o);
}

void look_number(struct request *o, const struct task *t, int64_t turn,
                 task_found *found)
{
    struct query *q = request_query_turns(o, &turn_table, 1);

    o->then_found = found;
    query_if(q, TURN_TASK_SEQ, IS, value_int(t->seq));
    query_if(q, TURN_NUMBER, IS, value_int(turn));
    request_read(o, q, on_look_turn_number);
}

static void look_give_turn(struct request *o, enum err e, const struct task *t)
{
    if (e || look_is_current(o, t))
        o->then_found(o, e, t);
    else
        look_past(o, t, o->then_found);
}

void look_turn(struct request *o, task_found *found)
{
    o->then_found = found;
    look_task(o, look_give_turn);
}
