#ifndef CHOOSE_ROUTING_H
#define CHOOSE_ROUTING_H

/* routing: one message on its way to a choice, shared by route.c, which calls
 * choose, and routing.c, which fetches its inputs. Private to this folder.
 * Threads: the loop's. */

#include "base/share.h"
#include "choose/conversation_order.h"
#include "choose/intent_client.h"
#include "choose/route.h"

enum {
    ROUTING_TEXT_MAX = 16 * 1024,    /* bytes of a message that are compared */
    ROUTING_WAITING_MAX = 16 * 1024, /* messages */
    ROUTING_WAITING_BYTES_MAX = 64 * 1024 * 1024, /* of their texts */
    ROUTING_SHARE = 4, /* one user has at most this fraction of the limits */
    ROUTING_FULL_WAIT_MS = 250, /* for the transformer, if the table has an
                                 * answer already */
    ROUTING_FULL_BYTES_MAX = 16 * 1024, /* texts of one user that wait for it:
                                         * some 0.1 s of its work */
};

enum waits_for { NOTHING, ITS_TURN, THE_STORE, A_VECTOR, AN_INTENT };

/* The waiting messages of one user and their agents. */
struct routing_share {
    struct share share;
    size_t bytes;
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
    uint64_t id; /* of the request to embed or intent */
    struct reading reading;
    bool has_vector; /* or has none for good */
    bool has_earlier;
    bool is_look;   /* a dry run */
    bool is_asking; /* intent_ask has not returned yet */
    enum err intent_err;
    bool is_deciding; /* since since_us: waiting is not counted */
    int64_t since_us;
    size_t bytes;
    size_t full_bytes; /* of its texts, while they wait for the transformer */
    void (*done)(struct msg *m, enum err e, void *ctx);
    void *ctx;
};

/* Learned data about an agent, for the message with that serial. */
struct known_hint {
    uint64_t serial;
    struct learn_hint hint;
};

/* How many rejections of each user are recorded in this hour. (refusals.c) */
struct refusals {
    struct map users; /* name -> struct refusals_of */
    int64_t hour;     /* since 1970 */
};
void refusals_init(struct refusals *r, const uint64_t seed[2]);
void refusals_fini(struct refusals *r);

struct router {
    struct router_opts opts;
    struct choose_settings by_words;      /* for messages without a vector */
    const struct choose_settings *counts; /* for the present message */
    const struct eyes *eyes;              /* of its sender */
    int64_t agreed_micros;                /* that its sender agreed to pay */
    struct embed_stamp stamp;
    struct intent *intent;
    struct speller *speller; /* NULL: there is no model */
    struct inorder *lines;
    char version[17]; /* of the settings */
    struct candidate *room;
    size_t room_n;
    struct known_hint *hints; /* by the registry's numbers */
    size_t hints_n;
    uint64_t hints_serial; /* counts messages */
    struct list waiting;   /* struct routing */
    size_t n_waiting, waiting_bytes;
    struct choose_shares *strangers; /* their share of each org's messages */
    struct shares shares;            /* struct routing_share, by user */
    struct refusals refusals;
    uint64_t chance;
    bool is_stopped;
    struct router_stats stats;
};

/* The message waits from now on. ERR_OVERLOADED: too many do, or too many of
 * this user's. */
MUST_USE enum err routing_wait(struct routing *g, enum waits_for what);
void routing_wait_no_more(struct routing *g);

/* The settings for a message: without a vector, words and keywords carry the
 * score. */
const struct choose_settings *routing_settings(const struct router *r,
                                               const struct msg *m);

/* The view for choosing; borrows all arguments. */
struct choose_view routing_view(const struct router *r,
                                const struct choose_settings *settings,
                                const struct agents *agents,
                                const struct eyes *eyes);

/* route.c: the awaited input has arrived, or e is why not. */
void routing_go_on(struct routing *g, enum err e);

/* Fetch the input that choosing needs, or its failure, into m->known: at once,
 * or the message waits (g->waits_for) and goes on by itself. */
MUST_USE enum err routing_fetch(struct routing *g, const struct choose_view *v);

/* The conversation's agent; and the decision that chose it. */
MUST_USE enum err routing_fetch_conversation(struct routing *g);
MUST_USE enum err routing_fetch_earlier(struct routing *g);

#endif
