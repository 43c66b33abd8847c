/* Questions of agents to people during their work, and the answers. task/ keeps
 * a question and deliver/ carries it; here the two meet, and the feed is told
 * that a question was asked and how it ended, never its words.
 *
 * Questions come and go without being stored, so a feed entry that cannot be
 * written is only logged. A program that asks without end must not push
 * everything else out of the feed: only the first questions of an attempt are
 * reported. */
#include "walk/internal.h"

#include <stdlib.h>

#include "base/mem.h"

enum { DATA_MAX = 6 * PRINCIPAL_NAME_MAX + 512, FED_PER_ATTEMPT = 32 };

struct input_news {
    struct walk *walk;
    struct tx tx;
};

static void on_input_reported(struct tx *tx, void *ctx)
{
    struct input_news *n = ctx;

    if (tx->result != TX_COMMITTED)
        log_warn(n->walk->opts.log, "walk.input_not_told",
                 LOG_C("because", err_row(tx->err)->wording));
    tx_fini(tx);
    free(n);
}

static void input_report(struct walk *w, const struct input *in)
{
    const struct task *t = in->nth > FED_PER_ATTEMPT
                               ? NULL
                               : task_find(w->tasks, str_of(in->task_id.text));
    struct input_news *n;
    bool is_open = in->outcome == INPUT_OPEN;
    struct json_out o;
    struct buf data;

    if (!t)
        return;
    n = mem_new(sizeof(*n));
    n->walk = w;
    tx_init(&n->tx);
    buf_init(&data, DATA_MAX);
    o = json_out(&data);
    json_open(&o, '{');
    json_member_str(&o, "input_id", str_of(in->id.text));
    json_member_str(&o, "kind", input_kind_name(in->ask.kind));
    json_member_str(&o, "root_task_id", str_of(in->root_id.text));
    if (!is_open)
        json_member_str(&o, "outcome", input_outcome_name(in->outcome));
    if (in->by[0])
        json_member_str(&o, "by", str_of(in->by));
    json_close(&o, '}');
    feed_append(&n->tx, &(struct feed_entry){
                            .at_ms = loop_wall_ms(w->opts.loop),
                            .type = is_open ? STR("task.input")
                                            : STR("task.input_over"),
                            .task_id = str_of(in->task_id.text),
                            .conversation_id = t->conversation_id,
                            .agent = str_of(in->agent),
                            .requester = t->requester,
                            .root_user = t->root_user,
                            .data = buf_str(&data),
                        });
    buf_fini(&data);
    store_submit(w->opts.store, &n->tx, on_input_reported, n);
}

static enum err input_deliver_answer(struct walk *w, const struct input *in,
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
        input_report(w, in);
    return !e;
}

/* Tell the program that no answer will come, if it is still there. */
void walk_on_input_over(void *ctx, const struct input *in)
{
    struct walk *w = ctx;
    enum err e;

    input_report(w, in);
    if (in->outcome == INPUT_ANSWERED || in->outcome == INPUT_CANCELLED)
        return;
    e = input_deliver_answer(w, in,
                             &(struct input_answer){.is_cancelled = true});
    if (e && e != ERR_GONE)
        log_warn(w->opts.log, "walk.input_not_cancelled",
                 LOG_C("task_id", in->task_id.text),
                 LOG_C("because", err_row(e)->wording));
}

static enum err input_is_over(const struct input *in, struct why *why)
{
    if (in->by[0])
        return why_err(why, ERR_INPUT_IS_OVER, "%s was first: it is %.*s",
                       in->by, STR_ARG(input_outcome_name(in->outcome)));
    return why_err(why, ERR_INPUT_IS_OVER,
                   "the agent does not wait for this answer any more: the "
                   "question is %.*s",
                   STR_ARG(input_outcome_name(in->outcome)));
}

/* Questions are forgotten when the root ends, even if tasks below it go on. */
static enum err input_not_known(struct walk *w, struct str task_id,
                                struct why *why)
{
    const struct task *t = task_find(w->tasks, task_id);
    const struct task *root = t ? task_find(w->tasks, task_root(t)) : NULL;

    if (t && (!root || task_is_over(root->status)))
        return why_err(why, ERR_TASK_IS_OVER,
                       "the root task is over, and so are all its questions");
    return why_err(why, ERR_NOT_FOUND,
                   "the task has no question with that id; GET the task to "
                   "see its questions");
}

enum err walk_answer(struct walk *w, struct str task_id, struct str input_id,
                     const struct input_answer *a, struct str by,
                     const struct input **out, struct why *why)
{
    const struct input *in = task_input_find(w->tasks, task_id, input_id);
    enum err e;

    if (!in)
        return input_not_known(w, task_id, why);
    *out = in;
    if (in->outcome != INPUT_OPEN)
        return input_is_over(in, why);
    e = input_may_be_answered(&in->ask, a, why);
    if (e)
        return e;
    e = input_deliver_answer(w, in, a);
    if (e == ERR_GONE) {
        task_input_end(w->tasks, in, INPUT_WITHDRAWN, STR(""));
        return input_is_over(in, why);
    }
    if (!e)
        task_input_end(w->tasks, in,
                       a->is_cancelled ? INPUT_CANCELLED : INPUT_ANSWERED, by);
    return e;
}
