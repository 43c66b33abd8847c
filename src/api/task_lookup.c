/* Finds a task for a request, by the rules of share_lookup.c: in memory at
 * once, or when the store has answered. */
#include "api/internal.h"
#include "api/share.h"

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
    enum err e = share_look_row(walk_tasks(o->api->walk), &o->query,
                                str_of(o->task_id.text), &o->n_looks, &row, &t);

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
    share_look_ask(&o->query, &o->has_query, id);
    request_read(o, &o->query, on_look_row);
}

void look_task(struct request *o, task_found *found)
{
    o->found = found;
    o->n_looks = 0;
    look_again_for_task(o);
}

bool look_is_current(const struct request *o, const struct task *t)
{
    return share_look_is_current(&o->message_id, t);
}

/* The task as it was in a past turn. */
static void look_give_past(struct request *o, enum err e, const struct task *t)
{
    struct task past;

    if (e) {
        o->then_found(o, e, NULL);
        return;
    }
    past = share_turn(t, &o->turns, &o->message_id);
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
    o->then_found = found;
    share_turn_ask(&o->turns, &o->has_turns, t, &o->message_id);
    request_read(o, &o->turns, on_look_past_turn);
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
    o->then_found = found;
    share_number_ask(&o->turns, &o->has_turns, t, turn);
    request_read(o, &o->turns, on_look_turn_number);
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
