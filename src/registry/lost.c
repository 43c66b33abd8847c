/* An agent whose org is another one stands in the index among others from then
 * on. Where there is no memory for that it is taken out: rather found by nobody
 * than by whom it is not for. It is there all the same for who names it, the
 * log says so, and with every change that comes it is tried to put it back,
 * until that can be done; a start does it in any case. Its vectors are then
 * made anew. */
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
    if (e->is_lost ||
        index_move(r->index, e->number, index_class_of(&e->agent)) == OK)
        return;
    index_drop(r->index, e->number);
    e->is_lost = true;
    r->n_lost++;
    log_error(r->opts.log, "registry.not_moved", LOG_S("agent", e->agent.name),
              LOG_C("because", "out of memory; it is not found until there "
                               "is some"));
}

static void put_back(struct registry *r, struct entry *e)
{
    struct index_change *change = NULL;

    if (vectors_prepare(r, &e->agent, NULL, &change) != OK)
        return;
    index_put(r->index, e->number, change);
    index_found(r, e);
    if (e->is_embedded)
        vectors_want(r, e);
    log_info(r->opts.log, "registry.moved", LOG_S("agent", e->agent.name));
}

void index_retry(struct registry *r)
{
    for (size_t i = 0; r->n_lost && i < r->n; i++)
        if (entry_of(r->list[i])->is_lost)
            put_back(r, entry_of(r->list[i]));
}
