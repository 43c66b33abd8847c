/* An agent whose org changes moves to another class of the index. Without
 * memory for that it is removed from the index: better not found at all than
 * found by users who must not see it. It is still available by name, the log
 * reports it, and every later change retries until it is back; a restart does
 * so in any case. Its vectors are then made again. */
#include "registry/internal.h"

void index_found(struct registry *r, struct entry *e)
{
    if (!e->is_lost)
        return;
    e->is_lost = false;
    r->n_lost--;
}

void index_follow(struct registry *r, struct entry *e)
{
    if (e->is_lost || index_move(r->index, e->number, front_class(e)) == OK)
        return;
    index_drop(r->index, e->number);
    e->is_lost = true;
    r->n_lost++;
    log_error(r->opts.log, "registry.not_moved", LOG_S("agent", e->agent.name),
              LOG_C("because", "out of memory; no search finds it until "
                               "there is some"));
}

static void index_put_back(struct registry *r, struct entry *e)
{
    struct index_change *change = NULL;

    if (vectors_prepare(r, &e->agent, NULL, &change) != OK)
        return;
    index_put(r->index, e->number, change);
    index_found(r, e);
    if (e->is_aside)
        index_follow(r, e);
    if (e->is_embedded)
        vectors_want(r, e);
    log_info(r->opts.log, "registry.moved", LOG_S("agent", e->agent.name));
}

void index_retry(struct registry *r)
{
    for (size_t i = 0; r->n_lost && i < r->n; i++)
        if (agent_entry(r->list[i])->is_lost)
            index_put_back(r, agent_entry(r->list[i]));
}
