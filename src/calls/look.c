/* A task is in memory while it is not over or somebody listens to it, and in
 * its row always. Both are looked at here and nowhere else, memory first.
 *
 * Between the two looks it may move: a row that says it is not over belongs to
 * a task that came into memory after we looked there (a further turn), or was
 * over before we looked again. So then everything is done once more; a few
 * times, for a task can hardly begin and end between two looks for ever. */
#include "calls/internal.h"

enum { LOOKS_MAX = 5 };

static void tell(struct open *o, const struct task *t)
{
    bool is_seen = task_is_for(t, &o->caller);

    o->found(o, is_seen ? OK : ERR_NOT_FOUND, is_seen ? t : NULL);
}

static void look(struct open *o);

static void on_row(struct open *o)
{
    const struct task *now;
    struct task t;

    if (o->query.err || !o->query.rows) {
        o->found(o, o->query.err ? o->query.err : ERR_NOT_FOUND, NULL);
        return;
    }
    task_from_row(&t, o->query.rows);
    now = task_find(walk_tasks(o->calls->walk), str_of(o->task_id.text));
    if (now)
        tell(o, now);
    else if (task_is_over(t.status) || ++o->n_looks == LOOKS_MAX)
        tell(o, &t);
    else
        look(o);
}

static void look(struct open *o)
{
    struct str id = str_of(o->task_id.text);
    const struct task *t = task_find(walk_tasks(o->calls->walk), id);

    if (t) {
        tell(o, t);
        return;
    }
    if (o->has_query)
        query_fini(&o->query);
    query_init(&o->query, &task_table, 1);
    o->has_query = true;
    query_if(&o->query, TASK_ID, IS, value_text(id));
    open_read(o, &o->query, on_row);
}

void look_task(struct open *o, look_found *found)
{
    o->found = found;
    o->n_looks = 0;
    look(o);
}

bool look_is_current(const struct open *o, const struct task *t)
{
    return !o->message_id.text[0] ||
           strcmp(o->message_id.text, t->message_id.text) == 0;
}

/* The task as it was in a turn that is past. */
static void tell_past(struct open *o, enum err e, const struct task *t)
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

static void on_turn(struct open *o)
{
    if (o->turns.err || !o->turns.rows)
        o->then_found(o, o->turns.err ? o->turns.err : ERR_NOT_FOUND, NULL);
    else
        look_task(o, tell_past);
}

void look_past(struct open *o, const struct task *t, look_found *found)
{
    o->then_found = found;
    if (o->has_turns)
        query_fini(&o->turns);
    query_init(&o->turns, &turn_table, 1);
    o->has_turns = true;
    query_if(&o->turns, TURN_TASK_SEQ, IS, value_int(t->seq));
    query_if(&o->turns, TURN_MESSAGE_ID, IS,
             value_text(str_of(o->message_id.text)));
    open_read(o, &o->turns, on_turn);
}
