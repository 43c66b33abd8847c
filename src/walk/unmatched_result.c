/* Results that do not come on the delivery they belong to: an agent was away,
 * or has a second connection. Decides whether the sender may give the result,
 * for tasks in memory and, through late_result.c, for those in the store. */
#include "walk/internal.h"

/* The agent with that name on its connection may speak for a. */
static bool speaks_for(const struct walk *w, struct str name,
                       const struct agent *a)
{
    struct agents agents = registry_agents(w->opts.registry);
    const struct agent *speaker = agent_find(&agents, name);

    return str_eq_nocase(a->name, name) ||
           (speaker && deliver_shares_line(speaker, a));
}

/* For tasks in memory and in the store (late_results_opts). */
static enum err judge_late_result(void *ctx, struct str agent,
                                  const struct task *t, int64_t turn)
{
    const struct walk *w = ctx;
    const struct agent *a = walk_agent_for(w, t);

    if (!a || !speaks_for(w, agent, a))
        return ERR_NOT_FOUND;
    if (turn > t->turn)
        return ERR_BAD_REQUEST; /* there was no such turn yet */
    return task_is_over(t->status) || turn < t->turn ? ERR_TASK_IS_OVER : OK;
}

/* The message can be the result of the current turn. Chunks of an earlier
 * attempt are gone, so such a result must bring its text. */
static enum err result_fits_turn(const struct task *t,
                                 const struct wire_word *word)
{
    if (t->attempt == 0)
        return ERR_NOT_FOUND; /* it was not delivered yet */
    if (!word->has_text && word->result.status == TASK_COMPLETED)
        return ERR_GONE;
    return OK;
}

void walk_on_unmatched_result(void *ctx, struct str agent,
                              const struct wire_word *word, uint64_t receipt)
{
    struct walk *w = ctx;
    const struct task *t = task_find(w->tasks, word->task_id);
    enum err e;

    e = t ? judge_late_result(w, agent, t, wire_turn(word)) : ERR_NOT_FOUND;
    if (e ==
        ERR_NOT_FOUND) { /* the same answer whether the task exists or not */
        late_result_ask(w->late_results, agent, word, receipt);
        return;
    }
    if (e == ERR_TASK_IS_OVER) {
        walk_too_late(w, t, word->turn, word->attempt, receipt);
        return;
    }
    if (!e)
        e = result_fits_turn(t, word);
    if (!e)
        e = walk_take_result(w, word->task_id, &word->result, true, receipt);
    if (e && receipt)
        deliver_recorded(w->deliver, receipt, e);
}

/* The store has answered. */
static void on_late_result_known(void *ctx, uint64_t receipt, enum err e)
{
    struct walk *w = ctx;

    if (e == ERR_TASK_IS_OVER)
        task_late(w->tasks);
    if (receipt)
        deliver_recorded(w->deliver, receipt, e);
}

const struct late_results_opts walk_calls_of_late_results = {
    .judge = judge_late_result,
    .on_known = on_late_result_known,
};
