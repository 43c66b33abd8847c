#ifndef ROUTE_H
#define ROUTE_H

/* route: the first question of the walk, asked until it is answered.
 *
 * choose is pure and says what it needs; route fetches it (the conversation
 * from the store, the vector from embed, the signals from registry and learn,
 * an intent from the classifier) or its failure, and asks again. The loop never
 * waits: whatever takes time comes back by a callback, and everything that is
 * waited for has a limit.
 *
 * Owns: what is under way, and the room the candidates stand in. Borrows every
 * room. Threads: the loop's. */

#include "choose/choose.h"
#include "embed/embed.h"
#include "fetch/fetch.h"
#include "lessons/lessons.h"
#include "registry/registry.h"
#include "store/store.h"

struct router;

struct route_intent {
    struct str endpoint; /* ".../v1/chat/completions" */
    struct str model, key;
    int64_t timeout_ms;
};

struct route_settings {
    struct choose_settings choose;
    struct route_intent intent;
    int64_t vector_timeout_ms; /* zero: as long as the model takes */
};

struct router_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct registry *registry;
    struct embed *embed; /* may be NULL */
    struct fetch *fetch; /* likewise: then there are no intents */
    struct lessons *lessons;
    struct id_maker *ids;
    uint64_t seed[2];
    struct route_settings settings; /* borrowed until the next ones */
};

/* NULL: memory is gone. */
MUST_USE struct router *router_new(const struct router_opts *opts);
void router_free(struct router *r);

/* Whoever waits is told ERR_STOPPING. */
void router_stop(struct router *r);

void router_set(struct router *r, const struct route_settings *s);
const struct choose_settings *router_settings(const struct router *r);

/* The hash of what choosing is told, as decisions carry it. */
const char *router_version(const struct router *r);

/* Fill m->known and m->choice. `done` is called once, before this returns where
 * nothing need be waited for, with what choose_agent said, or
 * ERR_OVERLOADED (too many wait), ERR_STOPPING. m is the caller's again then.
 * m->known.candidates is gone once done has returned. */
void route_message(struct router *r, struct msg *m,
                   void (*done)(struct msg *m, enum err e, void *ctx),
                   void *ctx);

/* The same, but nothing will come of it: nobody waits behind it, and there is
 * nothing to settle. */
void route_look(struct router *r, struct msg *m,
                void (*done)(struct msg *m, enum err e, void *ctx), void *ctx);

/* The same for a further turn of a task, which stays with its agent: at once.
 * ERR_AGENT_NOT_FOUND, ERR_NOMEM. Borrows the task. */
MUST_USE enum err route_turn(struct router *r, struct msg *m,
                             const struct task *before);

/* The decision as it is now: borrowed from m and the router. */
void route_decision(const struct router *r, const struct msg *m,
                    struct decision *out);

/* The decision into m->tx, with what it means for the one before it: a switch
 * overrides that. After task_create. */
void route_record(struct router *r, struct msg *m);

/* What became of m->tx; or, route_leave, it was not submitted. One of the two
 * follows whatever was routed (OK), but for what is overtaken and routed once
 * more: the next of its conversation has its turn. */
void route_settle(struct router *r, struct msg *m);
void route_leave(struct router *r, struct msg *m);

/* Before that: somebody else has changed the conversation, or the decision that
 * was to be overridden is gone. Nothing happened, and it is to be routed once
 * more, by route_message: it still has its place in the conversation. */
bool route_is_overtaken(const struct msg *m);

struct router_stats {
    int64_t by_layer[N_LAYERS]; /* decisions */
    int64_t no_route_total;
    int64_t switches_total;
    int64_t intents_total, intents_failed_total;
    int64_t waiting;
};
struct router_stats router_stats(const struct router *r);

#endif
