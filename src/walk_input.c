/* What agents ask of people while they work, on its way to them and back. The
 * room of the tasks keeps it, deliver carries it; here the two meet, and the
 * feed is told: that something was asked and what became of it, never the
 * words. What the feed is told of comes and goes without being written, so an
 * entry that cannot be written is a line in the log; and a program that asks
 * without end does not push everything else out of it: the first of an attempt
 * are told. */
#include "walk_internal.h"

#include <stdlib.h>

#include "base/fault.h"

enum { DATA_MAX = 6 * PRINCIPAL_NAME_MAX + 512, FED_PER_ATTEMPT = 32 };

struct input_news {
    struct walk *walk;
    struct tx tx;
};

static void on_told(struct tx *tx, void *ctx)
{
    struct input_news *n = ctx;

    if (tx->result != TX_COMMITTED)
        log_warn(n->walk->opts.log, "walk.input_not_told",
                 LOG_C("because", err_row(tx->err)->wording));
    tx_fini(tx);
    free(n);
}

static struct str put_data(struct buf *out, const struct input *in)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_member_str(&o, "input_id", str_of(in->id.text));
    json_member_str(&o, "kind", input_kind_name(in->ask.kind));
    json_member_str(&o, "root_task_id", str_of(in->root_id.text));
    if (in->outcome != INPUT_OPEN)
        json_member_str(&o, "outcome", input_outcome_name(in->outcome));
    if (in->by[0])
        json_member_str(&o, "by", str_of(in->by));
    json_close(&o, '}');
    return buf_str(out);
}

static void tell_feed(struct walk *w, const struct input *in)
{
    const struct task *t = in->nth > FED_PER_ATTEMPT
                               ? NULL
                               : task_find(w->tasks, str_of(in->task_id.text));
    struct input_news *n =
        !t || FAULT("walk.input_news") ? NULL : calloc(1, sizeof(*n));
    bool is_open = in->outcome == INPUT_OPEN;
    struct buf data;

    if (!n)
        return;
    n->walk = w;
    tx_init(&n->tx);
    buf_init(&data, DATA_MAX);
    feed_append(&n->tx, &(struct feed_entry){
                            .at_ms = loop_wall_ms(w->opts.loop),
                            .type = is_open ? STR("task.input")
                                            : STR("task.input_over"),
                            .task_id = str_of(in->task_id.text),
                            .conversation_id = t->conversation_id,
                            .agent = str_of(in->agent),
                            .requester = t->requester,
                            .root_user = t->root_user,
                            .data = put_data(&data, in),
                        });
    buf_fini(&data);
    store_submit(w->opts.store, &n->tx, on_told, n);
}

static enum err say(struct walk *w, const struct input *in,
                    const struct input_answer *a)
{
    struct delivery_id id = {in->task_id, in->turn, in->attempt};

    return deliver_answer(w->deliver, &id, in->ask.handle, a);
}

bool walk_on_ask(void *ctx, const struct delivery_id *d,
                 const struct input_ask *q)
{
    struct walk *w = ctx;
    const struct input *in;
    enum err e = task_ask(w->tasks, str_of(d->task_id.text), d->turn,
                          d->attempt, q, &in);

    if (!e)
        tell_feed(w, in);
    return !e;
}

/* The program hears that nobody will say anything, if it is still there. */
void walk_on_input_over(void *ctx, const struct input *in)
{
    struct walk *w = ctx;
    enum err e;

    tell_feed(w, in);
    if (in->outcome == INPUT_ANSWERED || in->outcome == INPUT_CANCELLED)
        return;
    e = say(w, in, &(struct input_answer){.is_cancelled = true});
    if (e && e != ERR_GONE)
        log_warn(w->opts.log, "walk.input_not_cancelled",
                 LOG_C("task_id", in->task_id.text),
                 LOG_C("because", err_row(e)->wording));
}

static enum err is_over(const struct input *in, struct why *why)
{
    if (in->by[0])
        return why_err(why, ERR_INPUT_IS_OVER, "%s was first: it is %.*s",
                       in->by, STR_ARG(input_outcome_name(in->outcome)));
    return why_err(why, ERR_INPUT_IS_OVER,
                   "nobody waits for that any more: it is %.*s",
                   STR_ARG(input_outcome_name(in->outcome)));
}

/* What was asked is forgotten with the root, whoever still works below it. */
static enum err not_known(struct walk *w, struct str task_id, struct why *why)
{
    const struct task *t = task_find(w->tasks, task_id);
    const struct task *root = t ? task_find(w->tasks, task_root(t)) : NULL;

    if (t && (!root || task_is_over(root->status)))
        return why_err(why, ERR_TASK_IS_OVER,
                       "the task that it works for is over, and with it all "
                       "that was asked");
    return why_err(why, ERR_NOT_FOUND,
                   "the task asks nothing by that id; the task itself shows "
                   "what it asks");
}

enum err walk_answer(struct walk *w, struct str task_id, struct str input_id,
                     const struct input_answer *a, struct str by,
                     const struct input **out, struct why *why)
{
    const struct input *in = task_input_find(w->tasks, task_id, input_id);
    enum err e;

    if (!in)
        return not_known(w, task_id, why);
    *out = in;
    if (in->outcome != INPUT_OPEN)
        return is_over(in, why);
    e = input_may_be_answered(&in->ask, a, why);
    if (e)
        return e;
    e = say(w, in, a);
    if (e == ERR_GONE) {
        task_input_end(w->tasks, in, INPUT_WITHDRAWN, STR(""));
        return is_over(in, why);
    }
    if (!e)
        task_input_end(w->tasks, in,
                       a->is_cancelled ? INPUT_CANCELLED : INPUT_ANSWERED, by);
    return e;
}
