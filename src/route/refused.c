/* The record of a message that is delivered to no agent: a decision of the
 * layer `none` and an entry in the feed, in one tx. No task comes of it, no
 * charge and no idempotency key.
 *
 * Anyone who may send messages can send nonsense in a loop, so the rows of one
 * user and their agents are limited: ROUTE_REFUSALS_PER_HOUR in each hour of
 * the clock. Beyond that the refusal is answered and counted, and leaves no
 * row. The counts are in memory and begin at zero with the hour, and with the
 * server. Counting the rows in the store instead would cost every refusal a
 * query through all decisions of its requester. */
#include "route/routing.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/json.h"
#include "watch/watch.h"

enum { FEED_DATA_MAX = 4096 };

#define HOUR_MS (INT64_C(3600) * 1000)

struct refusals_of {
    char user[PRINCIPAL_NAME_MAX + 1];
    int64_t n;
};

void refusals_init(struct refusals *r, const uint64_t seed[2])
{
    map_init(&r->users, ROUTE_REFUSING_USERS_MAX, seed);
    r->hour = 0;
}

void refusals_fini(struct refusals *r)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&r->users, &at)))
        free(slot->value);
    map_fini(&r->users);
}

/* The user's count of this hour; NULL: no memory, or too many users. */
static struct refusals_of *refusals_find(struct refusals *r, struct str user,
                                         int64_t now_ms)
{
    struct refusals_of *of;

    if (now_ms / HOUR_MS != r->hour) {
        uint64_t seed[2] = {r->users.seed[0], r->users.seed[1]};

        refusals_fini(r);
        refusals_init(r, seed);
        r->hour = now_ms / HOUR_MS;
    }
    of = map_get(&r->users, user);
    if (of || user.n > PRINCIPAL_NAME_MAX)
        return of;
    of = FAULT("route.refusals") ? NULL : calloc(1, sizeof(*of));
    if (!of)
        return NULL;
    if (user.n)
        memcpy(of->user, user.p, user.n);
    if (map_put(&r->users, str_of(of->user), of) == OK)
        return of;
    free(of);
    return NULL;
}

static void tell_of_refusal(struct msg *m, const struct decision *d, enum err e)
{
    struct str nearest = d->n_candidates       ? d->candidates[0].agent
                         : m->choice.n_nearest ? m->choice.nearest[0]
                                               : STR("");
    struct buf data;
    struct json_out o;

    buf_init(&data, FEED_DATA_MAX);
    o = json_out(&data);
    json_open(&o, '{');
    json_member_text(&o, "decision_id", str_of(d->id.text));
    json_member_text(&o, "code", str_of(err_row(e)->code));
    json_member_str(&o, "band", band_name(d->band));
    json_member_str(&o, "nearest", nearest);
    json_close(&o, '}');
    if (data.over)
        m->tx.build_error = ERR_NOMEM;
    else
        feed_append(&m->tx, &(struct feed_entry){
                                .at_ms = m->in.at_ms,
                                .type = STR("message.refused"),
                                .conversation_id = d->conversation_id,
                                .requester = d->requester,
                                .root_user = d->requester,
                                .data = buf_str(&data),
                            });
    buf_fini(&data);
}

bool route_record_refusal(struct router *r, struct msg *m, enum err e)
{
    struct eyes who = eyes_of(&m->in.caller, m->in.at_ms);
    struct refusals_of *of;
    struct decision d;

    if (m->choice.layer != LAYER_NONE)
        return false;
    of = refusals_find(&r->refusals, who.user, m->in.at_ms);
    if (!of || of->n >= ROUTE_REFUSALS_PER_HOUR) {
        r->stats.refusals_unrecorded_total++;
        return false;
    }
    of->n++;
    tx_fini(&m->tx);
    tx_init(&m->tx);
    m->choice.id = id_make(r->opts.ids, "dec", m->in.at_ms);
    route_decision(r, m, &d);
    d.conversation_id = m->call.conversation_id;
    choose_record(&m->tx, &d);
    tell_of_refusal(m, &d, e);
    return true;
}

void route_settle_refusal(struct router *r, struct msg *m)
{
    struct eyes who = eyes_of(&m->in.caller, m->in.at_ms);
    struct refusals_of *of;

    if (m->tx.result == TX_COMMITTED) {
        r->stats.by_layer[LAYER_NONE]++;
        r->stats.by_tier[m->known.tier]++;
        return;
    }
    r->stats.refusals_unrecorded_total++;
    m->choice.id = (struct id){""};
    of = refusals_find(&r->refusals, who.user, m->in.at_ms);
    if (of && of->n)
        of->n--; /* its place is free again */
}
