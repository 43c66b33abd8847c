/* Results that come otherwise than on the delivery they are of: of an agent
 * that had been away, or its second one. Whose they are is judged here, for
 * tasks in memory and, by stray.c, for those in the store. */
#include "walk_internal.h"

/* Whether who goes by that name on its line may speak for a. */
static bool speaks_for(const struct walk *w, struct str name,
                       const struct agent *a)
{
    struct agents agents = registry_agents(w->opts.registry);
    const struct agent *speaker = agent_find(&agents, name);

    return str_eq_nocase(a->name, name) ||
           (speaker && deliver_shares_line(speaker, a));
}

/* The same for tasks in memory and in the store (strays_opts). */
static enum err judge(void *ctx, struct str agent, const struct task *t,
                      int64_t turn)
{
    const struct walk *w = ctx;
    const struct agent *a = walk_agent_for(w, t);

    if (!a || !speaks_for(w, agent, a))
        return ERR_NOT_FOUND;
    if (turn > t->turn)
        return ERR_BAD_REQUEST; /* there was none yet that could be over */
    return task_is_over(t->status) || turn < t->turn ? ERR_TASK_IS_OVER : OK;
}

/* Whether the word can be what came of the turn that is going on. Chunks of an
 * attempt that is over are gone, so such a result must bring its text. */
static enum err fits(const struct task *t, const struct wire_word *word)
{
    if (t->attempt == 0)
        return ERR_NOT_FOUND; /* nobody was given it yet */
    if (!word->has_text && word->result.status == TASK_COMPLETED)
        return ERR_GONE;
    return OK;
}

void walk_on_stray(void *ctx, struct str agent, const struct wire_word *word,
                   uint64_t receipt)
{
    struct walk *w = ctx;
    const struct task *t = task_find(w->tasks, word->task_id);
    enum err e;

    e = t ? judge(w, agent, t, wire_turn(word)) : ERR_NOT_FOUND;
    if (e == ERR_NOT_FOUND) { /* the same way, whether it is there or not */
        stray_ask(w->strays, agent, word, receipt);
        return;
    }
    if (e == ERR_TASK_IS_OVER) {
        walk_too_late(w, t, word->turn, word->attempt, receipt);
        return;
    }
    if (!e)
        e = fits(t, word);
    if (!e)
        e = walk_take_result(w, word->task_id, &word->result, true, receipt);
    if (e && receipt)
        deliver_recorded(w->deliver, receipt, e);
}

/* It is known now whose it was. */
static void on_stray_known(void *ctx, uint64_t receipt, enum err e)
{
    struct walk *w = ctx;

    if (e == ERR_TASK_IS_OVER)
        task_late(w->tasks);
    if (receipt)
        deliver_recorded(w->deliver, receipt, e);
}

const struct strays_opts walk_calls_of_strays = {
    .judge = judge,
    .on_known = on_stray_known,
};
