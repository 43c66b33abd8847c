#ifndef CHOOSE_ROUTE_H
#define CHOOSE_ROUTE_H

/* route: the first stage of the walk. Calls choose until it has an answer.
 *
 * choose is pure and says which input it needs; route fetches it (the
 * conversation from the store, the vector from embed, the signals from registry
 * and learn, an intent from the classifier) or its failure, and calls again.
 * The loop never blocks: slow inputs come by a callback, and all waiting is
 * limited.
 *
 * Owns: messages that wait, and the shared array of candidates. Borrows every
 * module. Threads: the loop's. */

#include "choose/layers/choose.h"
#include "embed/embed.h"
#include "learn/learning.h"
#include "net/client/fetch.h"
#include "registry/registry.h"
#include "store/store.h"

struct router;

/* ---- the text that is compared with the cards ----
 *
 * Typing mistakes are corrected (embed/spell.c), and of a long message the part
 * with the request counts in addition to the whole (message_parts.c). The
 * server and `signalbox eval` read messages with the same functions. */

enum {
    PARTS_MAX = 16,
    PART_BYTES = 300,
    PARTS_FROM_BYTES = 600,     /* a longer message is cut into parts */
    PARTS_TEXT_MAX = 16 * 1024, /* bytes that are read: the first and the last
                                 * half of that from a longer text */
};

struct part {
    struct str text; /* of the message, without blanks around it */
    int points;      /* how much it looks like a request */
    size_t paragraph;
};

/* The parts that look most like a request, the best first. Returns how many. */
size_t parts_find(struct str text, struct part parts[PARTS_MAX]);

enum { READING_TEXTS_MAX = 2 };

struct reading {
    struct str texts[READING_TEXTS_MAX]; /* their vectors are added up: the
                                          * whole, and the part that asks */
    size_t n;
    struct str words; /* compared by words */
};

/* Read a message. `on_cards` and `speller` may be NULL: then nothing is
 * corrected. leaves_spelling: correct the words only, not the texts. The texts
 * are borrowed from text and arena. ERR_NOMEM. */
MUST_USE enum err reading_make(struct arena *a, const struct speller *speller,
                               spell_said *on_cards, void *ctx, struct str text,
                               bool leaves_spelling, struct reading *out);

/* Whether this kind of model gets misspelt words as they are. A provider's
 * model handles them itself and gets the original message. */
bool reading_leaves_spelling(enum embed_kind kind);

/* The vector of a reading, stored over the first of its texts' vectors. These
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
    struct fetch *fetch; /* may be NULL: then there is no classifier */
    struct learning *learning;
    struct id_maker *ids;
    uint64_t seed[2];
    struct route_settings settings; /* borrowed until router_set */
};

/* NULL: the speller or the classifier's settings exceed their limits. */
MUST_USE struct router *router_new(const struct router_opts *opts);
void router_free(struct router *r);

/* Waiting messages end with ERR_STOPPING. */
void router_stop(struct router *r);

void router_set(struct router *r, const struct route_settings *s);
const struct choose_settings *router_settings(const struct router *r);

/* The hash of the settings of choosing, as in decisions. */
const char *router_version(const struct router *r);

/* Fill m->known and m->choice. `done` is called once, before this returns if
 * all inputs are at hand, with the result of choose_agent, or ERR_OVERLOADED
 * (too many messages wait) or ERR_STOPPING. m is then the caller's again.
 * m->known.candidates is invalid once done has returned. */
void route_message(struct router *r, struct msg *m,
                   void (*done)(struct msg *m, enum err e, void *ctx),
                   void *ctx);

/* The same for a dry run: no message waits behind it, and there is nothing to
 * settle. */
void route_look(struct router *r, struct msg *m,
                void (*done)(struct msg *m, enum err e, void *ctx), void *ctx);

/* Read a text as route_message does for a requester with these eyes: with the
 * router's speller and for its model. The texts are borrowed from text and
 * arena. ERR_NOMEM. */
MUST_USE enum err route_read_text(const struct router *r, struct arena *a,
                                  const struct eyes *eyes, struct str text,
                                  struct reading *out);

/* route_message for a further turn of a task, which stays with its agent: at
 * once. ERR_AGENT_NOT_FOUND, ERR_NOMEM. Borrows the task. */
MUST_USE enum err route_turn(struct router *r, struct msg *m,
                             const struct task *before);

/* The decision so far; borrowed from m and the router. */
void route_decision(const struct router *r, const struct msg *m,
                    struct decision *out);

/* Append the decision to m->tx, and its effect on the one before: a switch
 * overrides that. After task_create. */
void route_record(void *router, struct msg *m);

/* Call route_settle with the result of m->tx, or route_leave if it was not
 * submitted: exactly one of them after each routed message (OK), except one
 * that is overtaken and routed again. The next message of the conversation then
 * has its turn. */
void route_settle(struct router *r, struct msg *m);
void route_leave(void *router, struct msg *m);

/* Before route_settle: another message has changed the conversation, or the
 * decision to be overridden is gone. Nothing happened; route it again with
 * route_message. It keeps its place in the conversation. */
bool route_is_overtaken(const struct msg *m);

/* For a message that choosing rejected with e, and that has no other effect:
 * put its decision, of the layer `none`, and a feed entry into m->tx. False: no
 * record, because choosing did not reject it or the user has too many in this
 * hour. (refusals.c) */
enum {
    ROUTE_REFUSALS_PER_HOUR = 100, /* recorded of one user and their agents */
    ROUTE_REFUSING_USERS_MAX = 16 * 1024, /* counted in one hour */
};
MUST_USE bool route_record_refusal(struct router *r, struct msg *m, enum err e);

/* The rejection's tx is over. If it was not committed, m->choice.id is
 * cleared. */
void route_settle_refusal(struct router *r, struct msg *m);

enum { ROUTE_BUCKETS = 12 };
extern const int64_t route_bucket_us[ROUTE_BUCKETS - 1];

struct router_stats {
    int64_t by_layer[N_LAYERS]; /* decisions */
    int64_t by_tier[N_TIERS];   /* TIER_NONE: neither decided */
    int64_t full_failed_total;  /* requests that the transformer missed */
    int64_t no_route_total;
    int64_t refusals_unrecorded_total; /* too many, or the store was full */
    int64_t switches_total;
    int64_t intents_total, intents_failed_total;
    int64_t
        decide_total[ROUTE_BUCKETS]; /* by duration; the last is all above */
    int64_t decide_sum_us;
    int64_t waiting;
};
struct router_stats router_stats(const struct router *r);

#endif
