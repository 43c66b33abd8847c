/* The record of a message that no agent gets: a decision of the layer `none`
 * and a feed entry, in one tx. It creates no task, no charge and no idempotency
 * key.
 *
 * Any user can send nonsense in a loop, so the rows of one user and their
 * agents are limited to ROUTE_REFUSALS_PER_HOUR in each hour of the clock.
 * Above, the rejection is answered and counted but leaves no row. The counts
 * are in memory and begin at zero with each hour and with the server. Rejected:
 * counting the rows in the store, a query over all decisions of the requester
 * for every rejection. */
#include "choose/routing.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
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

/* The user's count of this hour; NULL: too many users. */
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
    of = mem_new(sizeof(*of));
    if (user.n)
        memcpy(of->user, user.p, user.n);
    if (map_put(&r->users, str_of(of->user), of) == OK)
        return of;
    free(of);
    return NULL;
}

static void append_refusal(struct msg *m, const struct decision *d, enum err e)
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
    feed_append_data(&m->tx, &data,
                     &(struct feed_entry){
                         .at_ms = m->in.at_ms,
                         .type = STR("message.refused"),
                         .conversation_id = d->conversation_id,
                         .requester = d->requester,
                         .root_user = d->requester,
                     });
}

bool route_record_refusal(struct router *r, struct msg *m, enum err e)
{
    struct eyes eyes = eyes_of(&m->in.caller, m->in.at_ms);
    struct refusals_of *of;
    struct decision d;

    if (m->choice.layer != LAYER_NONE)
        return false;
    of = refusals_find(&r->refusals, eyes.user, m->in.at_ms);
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
    append_refusal(m, &d, e);
    return true;
}

void route_settle_refusal(struct router *r, struct msg *m)
{
    struct eyes eyes = eyes_of(&m->in.caller, m->in.at_ms);
    struct refusals_of *of;

    if (m->tx.result == TX_COMMITTED) {
        r->stats.by_layer[LAYER_NONE]++;
        r->stats.by_tier[m->known.tier]++;
        return;
    }
    r->stats.refusals_unrecorded_total++;
    m->choice.id = (struct id){""};
    of = refusals_find(&r->refusals, eyes.user, m->in.at_ms);
    if (of && of->n)
        of->n--; /* it left no row */
}
