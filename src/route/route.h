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

/* ---- what of a message is compared with the cards ----
 *
 * Typing mistakes are corrected (embed/spell.c), and of a long message the part
 * that asks counts besides the whole (parts.c). The server and `signalbox eval`
 * read messages by the same functions. */

enum {
    PARTS_MAX = 16,
    PART_BYTES = 300,
    PARTS_FROM_BYTES = 600,     /* a longer message is cut into parts */
    PARTS_TEXT_MAX = 16 * 1024, /* bytes that are looked at: of a longer one the
                                 * first half and the last half of that */
};

struct part {
    struct str text; /* of the message, without blanks around it */
    int points;      /* how much it looks like a request */
    size_t paragraph;
};

/* The parts that look most like a request, the best first; how many. */
size_t parts_find(struct str text, struct part parts[PARTS_MAX]);

enum { READING_TEXTS_MAX = 2 };

struct reading {
    struct str texts[READING_TEXTS_MAX]; /* whose vectors are added up: the
                                          * whole, and the part that asks */
    size_t n;
    struct str words; /* what is compared by words */
};

/* Read a message. `said` and `speller` may be NULL: nothing is corrected then.
 * leaves_spelling: the correction is for the words alone. The texts are
 * borrowed from text and arena. ERR_NOMEM. */
MUST_USE enum err reading_make(struct arena *a, const struct speller *speller,
                               spell_said *said, void *ctx, struct str text,
                               bool leaves_spelling, struct reading *out);

/* Whether this kind of model is given misspelt words as they are. A provider's
 * model has its own way with them, and the message is sent as it was written.
 */
bool reading_leaves_spelling(enum embed_kind kind);

/* The vector of a reading, in place of the first of its texts' vectors, which
 * are all quick or all full. */
void reading_add_up(const struct reading *r, float *vectors,
                    const struct embed_stamp *stamp);

struct route_intent {
    enum model_kind kind;
    struct str endpoint; /* ".../v1" */
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

/* Read a text as route_message reads a message of a requester with these eyes:
 * with the router's speller, and for its model. The texts are borrowed from
 * text and arena. ERR_NOMEM. */
MUST_USE enum err route_read_text(const struct router *r, struct arena *a,
                                  const struct eyes *eyes, struct str text,
                                  struct reading *out);

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

/* A message that choosing refused with e, and that nothing else comes of: its
 * decision, of the layer `none`, and an entry in the feed are m->tx. False:
 * this leaves no record, since choosing did not refuse it or the user has too
 * many of this hour. (refused.c) */
enum {
    ROUTE_REFUSALS_PER_HOUR = 100, /* on record, of one user and their agents */
    ROUTE_REFUSING_USERS_MAX = 16 * 1024, /* that are counted in one hour */
};
MUST_USE bool route_record_refusal(struct router *r, struct msg *m, enum err e);

/* The refusal's tx is over. Where it was not committed m->choice.id is empty.
 */
void route_settle_refusal(struct router *r, struct msg *m);

enum { ROUTE_BUCKETS = 12 };
extern const int64_t route_bucket_us[ROUTE_BUCKETS - 1];

struct router_stats {
    int64_t by_layer[N_LAYERS]; /* decisions */
    int64_t by_tier[N_TIERS];   /* the same; TIER_NONE: neither decided */
    int64_t full_failed_total;  /* the transformer was asked and not heard */
    int64_t no_route_total;
    int64_t refusals_unrecorded_total; /* too many, or the store was full */
    int64_t switches_total;
    int64_t intents_total, intents_failed_total;
    int64_t decide_total[ROUTE_BUCKETS]; /* by how long choosing took; the last
                                          * is all above */
    int64_t decide_sum_us;
    int64_t waiting;
};
struct router_stats router_stats(const struct router *r);

#endif
