#ifndef ROUTING_H
#define ROUTING_H

/* routing: one message on its way to an answer, for the two files that have to
 * do with it: route.c asks, routing.c fetches what is needed for that. Nobody
 * else sees it. Threads: the loop's. */

#include "route/inorder.h"
#include "route/intent.h"
#include "route/route.h"

enum {
    ROUTING_TEXT_MAX = 16 * 1024,    /* bytes of a message that are compared */
    ROUTING_WAITING_MAX = 16 * 1024, /* messages */
    ROUTING_WAITING_BYTES_MAX = 64 * 1024 * 1024, /* of their texts */
    ROUTING_SHARE = 4, /* one part in so many is the most for one user */
    ROUTING_FULL_WAIT_MS = 250, /* for the transformer, where the table has an
                                 * answer already */
    ROUTING_FULL_BYTES_MAX = 16 * 1024, /* of one user's texts that wait for it:
                                         * some 0.1 s of its work */
};

enum waits_for { NOTHING, ITS_TURN, THE_STORE, A_VECTOR, AN_INTENT };

/* What waits for one user and their agents; there while something does. */
struct routing_share {
    char user[PRINCIPAL_NAME_MAX + 1];
    size_t n, bytes;
    size_t full_bytes; /* of texts that wait for the transformer */
};

/* In the arena of its message. */
struct routing {
    struct inorder_place place;
    struct list_node node; /* in router.waiting */
    struct router *router;
    struct msg *m;
    enum waits_for waits_for;
    struct routing_share *share; /* while it waits */
    struct timer timer;          /* for a vector */
    struct query query;
    uint64_t id; /* of embed or intent */
    struct reading reading;
    bool has_vector; /* or it is known that there is none */
    bool has_earlier;
    bool is_look;   /* nothing will come of it */
    bool is_asking; /* intent_ask has not returned yet */
    enum err intent_err;
    bool is_deciding; /* and since when: waiting is not counted */
    int64_t since_us;
    size_t bytes;
    size_t full_bytes; /* of its texts, while they wait for the transformer */
    void (*done)(struct msg *m, enum err e, void *ctx);
    void *ctx;
};

/* What was learnt of an agent, for the message of that serial. */
struct routing_told {
    uint64_t serial;
    struct learn_hint hint;
};

/* How many refusals each user has on record in this hour. (refused.c) */
struct refusals {
    struct map users; /* name -> struct refusals_of */
    int64_t hour;     /* since 1970 */
};
void refusals_init(struct refusals *r, const uint64_t seed[2]);
void refusals_fini(struct refusals *r);

struct router {
    struct router_opts opts;
    struct choose_settings by_words;      /* of messages without a vector */
    const struct choose_settings *counts; /* for the message at hand */
    const struct eyes *eyes;              /* likewise, of who sends it */
    int64_t agreed_micros;                /* and what they agreed to pay */
    struct embed_stamp stamp;
    struct intent *intent;
    struct speller *speller; /* NULL: there is no model */
    struct inorder *lines;
    char version[17]; /* of the settings */
    struct candidate *room;
    size_t room_n;
    struct routing_told *told; /* by the registry's numbers */
    size_t told_n;
    uint64_t told_serial; /* of messages, the first is one */
    struct list waiting;  /* struct routing */
    size_t n_waiting, waiting_bytes;
    struct choose_shares *strangers; /* their share of each org's messages */
    struct map shares;               /* user -> struct routing_share */
    struct refusals refusals;
    uint64_t chance;
    bool is_stopped;
    struct router_stats stats;
};

/* It waits from here on. ERR_OVERLOADED: too many do, or too many of this
 * user's; ERR_NOMEM. */
MUST_USE enum err routing_wait(struct routing *g, enum waits_for what);
void routing_wait_no_more(struct routing *g);

/* The settings that count for a message: where it has no vector, words and
 * keywords carry the score. */
const struct choose_settings *routing_settings(const struct router *r,
                                               const struct msg *m);

/* What choosing sees: borrows all of it. */
struct choose_view routing_view(const struct router *r,
                                const struct choose_settings *settings,
                                const struct agents *agents,
                                const struct eyes *eyes);

/* route.c: what was waited for has come, or e says why not. */
void routing_go_on(struct routing *g, enum err e);

/* Fetch what choosing needs, or its failure, into m->known: at once, or it
 * waits (g->waits_for) and goes on by itself. */
MUST_USE enum err routing_fetch(struct routing *g, const struct choose_view *v);

/* The agent that the conversation has; and the decision that gave it that. */
MUST_USE enum err routing_fetch_conversation(struct routing *g);
MUST_USE enum err routing_fetch_earlier(struct routing *g);

#endif
