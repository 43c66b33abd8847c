/* Held messages and open escalations, for the requester, the root user and
 * admins. All of it is in memory. A member of a batch no longer counts as
 * held. */
#include "gate/escalations.h"

static struct held held_of(const struct hold *h)
{
    return (struct held){.task_id = h->task_id,
                         .message_id = h->message_id,
                         .place = h->place,
                         .answer = h->why->answer,
                         .cause = h->why->cause,
                         .priority = h->priority,
                         .agent = h->agent,
                         .rule = h->why->rule,
                         .reason = h->why->reason,
                         .from = h->from,
                         .type = h->type,
                         .reference = h->reference,
                         .requester = h->requester,
                         .root_user = h->root_user,
                         .since_ms = h->since_ms,
                         .until_ms = h->why->until_ms,
                         .on_expiry = h->why->on_expiry,
                         .is_behind = !hold_is_first(h),
                         .keys = h->why->keys,
                         .n_keys = h->why->n_keys};
}

static bool may_see(const struct caller *c, struct str requester,
                    struct str root_user)
{
    return caller_is_admin(c) || str_eq(caller_name(c), requester) ||
           str_eq(caller_name(c), root_user);
}

static bool matches_filter(const struct hold *h, const struct held_filter *f)
{
    return !h->batch.text[0] &&
           (!f->agent.n || str_eq_nocase(f->agent, h->agent)) &&
           (!f->rule.n || str_eq(f->rule, h->why->rule)) &&
           (!f->task_id.n || str_eq(f->task_id, str_of(h->task_id.text))) &&
           (!f->reference.n || str_eq(f->reference, h->reference)) &&
           (!f->caller || may_see(f->caller, h->requester, h->root_user));
}

size_t gatekeeper_holds(const struct gatekeeper *b, const struct held_filter *f,
                        int64_t after, struct held *out, size_t max)
{
    const struct list *all = &b->holds.by_place;
    size_t n = 0;

    for (struct list_node *at = list_first(all); at && n < max;
         at = list_next(all, at)) {
        const struct hold *h = LIST_OF(at, struct hold, place_node);

        if (h->place > after && matches_filter(h, f))
            out[n++] = held_of(h);
    }
    return n;
}

struct gatekeeper_waiting gatekeeper_waiting(const struct gatekeeper *b,
                                             const struct caller *caller)
{
    struct gatekeeper_waiting n = {b->stats.held, b->stats.escalations_open};
    const struct list *holds = &b->holds.by_place,
                      *open = &b->escalations->open;

    if (caller_is_admin(caller))
        return n;
    n = (struct gatekeeper_waiting){0};
    for (struct list_node *at = list_first(holds); at;
         at = list_next(holds, at)) {
        const struct hold *h = LIST_OF(at, struct hold, place_node);

        n.held +=
            !h->batch.text[0] && may_see(caller, h->requester, h->root_user);
    }
    for (struct list_node *at = list_first(open); at;
         at = list_next(open, at)) {
        const struct escalation *x = LIST_OF(at, struct escalation, node);

        n.escalations_open +=
            !x->is_coming &&
            may_see(caller, x->subject.requester, x->subject.root_user);
    }
    return n;
}

size_t gatekeeper_held_for(const struct gatekeeper *b, struct str agent)
{
    const struct target *t = target_find(b, agent);

    return t ? t->n_held - t->n_batched : 0;
}
