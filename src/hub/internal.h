#ifndef HUB_INTERNAL_H
#define HUB_INTERNAL_H

/* What the files of hub/ share.
 *
 *     peer       a connection, and what it has open
 *     reply      where an answer goes: to a peer, on its own or in a batch
 *     ask        a request that is answered in a later turn
 *     gather     the answers to a batch, until the last of them is there
 *     hearing    a task that a peer hears of
 *     telling    a delegation whose result a peer is told
 *
 * What is over is freed at the end of the turn: whoever called us may look at
 * it once more. */

#include "base/fault.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rate.h"
#include "calls/share.h"
#include "commission.h"
#include "hub/hub.h"
#include "speak/speak.h"
#include "wire/wire.h"

enum {
    HUB_TREE_BYTES = 48 * 1024 * 1024,   /* of one message, read */
    HUB_ANSWER_BYTES = 64 * 1024 * 1024, /* one, or a batch of them */
    HUB_KEEP_BYTES = 1024 * 1024,        /* of memory for the next one */
    HUB_UNSENT_BYTES = 16 * 1024 * 1024, /* of answers, beside net's own */
    HUB_PEERS_MAX = 1000 * 1000,         /* net has a limit before */
    HUB_ASKS_MAX = 10 * 1000 * 1000,     /* and every peer */
    HUB_RATES = 65536,
    HUB_TAKEN_OVER = 4001, /* close codes of ours */
};

struct peer;

struct gather {
    struct peer *peer;
    struct buf out;
    size_t n_open;      /* to be answered yet */
    bool is_being_read; /* the batch: there may be more */
};

struct reply {
    struct peer *peer;
    struct gather *gather; /* NULL: it is no batch */
    struct wire_id id;
    bool is_awaited; /* not a notification */
};

/* One message on its way through a method. Borrowed for the call. */
struct hub_call {
    struct hub *hub;
    struct peer *peer;
    const struct wire_message *m;
    const struct json *params; /* an object; an empty one where there is none */
    struct reply reply;
};

struct unsent {
    struct list_node node;
    size_t n;
    char bytes[];
};

struct peer {
    struct hub *hub;
    uint64_t id;    /* of the WebSocket; zero: nobody is there any more */
    uint64_t child; /* the line of a child that asks, instead of the above */
    struct list_node node;
    struct caller caller;
    struct throttle_place *place; /* that it holds as its caller's; of a child
                                   * NULL */

    uint64_t line; /* zero: it is no agent */
    char agent[AGENT_NAME_MAX + 1];
    uint64_t url_hash; /* of the card by which it was attached */
    bool is_attaching;
    char claimed[AGENT_NAME_MAX + 1]; /* by agent.register, not settled yet */
    size_t n_claims;                  /* and how often */

    /* It was told to go: nothing that it asked counts any more, though the
     * connection may be there a while. */
    bool is_shut;
    bool is_lost; /* it cannot be told what it listens to */

    struct list asks;
    size_t n_asks;
    struct list unsent; /* struct unsent: net had no room */
    size_t unsent_bytes;
    bool is_paused, is_slowed; /* by pace; by the rate limits */
    struct timer slowed;
    size_t owed;      /* messages that hub.messagesPerSecond had no room for */
    size_t owed_user; /* requests that rate.perUser had none for */

    struct list hearings; /* struct hearing, all of them */
    struct list ready;    /* those with something to tell */
    size_t n_hearings;
    bool is_pushing;
    bool is_looking; /* one of them waits for its result from the store */

    /* What it asked others to do. */
    char by_name[AGENT_NAME_MAX + 1]; /* its key in by_agent; empty: none */
    struct list tellings;             /* struct telling */
    bool is_telling;                  /* one of them is looked for */
    struct gather *came_in;           /* results wait for the answer to
                                       * agent.register, which is in this */
};

struct ask;
typedef void ask_found(struct ask *a, enum err e, const struct task *t);

struct ask {
    struct list_node node;
    struct hub *hub;
    struct peer *peer;
    uint64_t number; /* the receipt, of a result */
    struct reply reply;
    char id[WIRE_ID_RAW_MAX];
    bool is_out, is_over;

    /* A task that is looked for. */
    struct id task_id, message_id;
    struct query query, turns;
    bool has_query, has_turns;
    struct query *asked; /* with the store now */
    void (*then)(struct ask *a);
    ask_found *found, *then_found;
    unsigned n_looks;

    /* What is to be heard of it. */
    enum listen { LISTEN_NOTHING, LISTEN_RESULT, LISTEN_ALL } listen;
    struct speak_place place;
    bool has_place;
    struct hearing *hearing; /* whose result it looks for */

    struct {
        bool is_repeat;
        struct id decision_id;
        char *decision; /* as JSON; owned; NULL: not known */
        char *passed;   /* the same of an envelope: what the gate said */
        struct share_cost cost;
        bool has_cost; /* it was looked for */
    } message;
    struct {
        int64_t turn; /* zero: none was seen yet */
        unsigned left;
    } cancel;
    struct {
        uint64_t id;
        struct speak_search_call call;
        char *text;
    } search;
    struct commission *commission;
    struct {
        struct id key;
        int64_t turn;
        bool is_own; /* it is the peer's agent's: nobody else is asked */
    } delegation;
    struct registry_change *change;
    bool is_claim;
    struct {
        bool is_patch;
        char *text; /* kept while it waits for its turn */
        size_t n;
        unsigned tries;
        struct timer again;
    } card;
};

struct hearing {
    struct list_node node, ready_node;
    struct peer *peer;
    struct task_listener listener;
    struct id task_id, message_id;
    int64_t turn;
    struct gather *behind; /* its answer comes first */
    bool is_listening;
    bool only_result;
    bool is_at_result; /* which is in the store */
    bool needs_gap;
    bool has_begun;      /* to be told something */
    int64_t inputs_told; /* up to that number: what agents ask */
};

struct telling {
    struct list_node node;
    struct id key;
    struct gather *behind; /* its answer comes first; NULL: none */
    bool is_ready;
};

struct hub {
    struct hub_opts opts;
    struct map by_id;    /* WebSocket -> struct peer */
    struct map by_agent; /* its name, in lower case -> struct peer */
    struct map by_key;   /* delegation -> struct child_wait: of children */
    struct list commissions;
    struct map by_child; /* line -> struct peer, with something open */
    struct map receipts; /* number -> struct ask */
    struct list peers, children, gone;
    struct list over; /* asks */
    struct list over_hearings;
    uint64_t last_number;
    struct rates *rates;
    struct arena tree, scratch;
    struct buf out, body;
    struct timer sweep_timer;
    struct loop_job sweep_job, reap_job;
    size_t n_sweep;
    bool is_stopping;
    struct hub_stats stats;
};

/* hub.c: the table. */
void hub_dispatch(struct peer *p, const struct wire_message *m,
                  struct gather *g);

/* conn.c */
void peer_init(struct peer *p, struct hub *h);
void peer_send(struct peer *p, struct str message);
bool peer_is_stuck(const struct peer *p);
bool peer_is_gone(const struct peer *p);
void peer_pace(struct peer *p);
void peer_reap(struct hub *h); /* at the end of this turn */
void conn_sweep_soon(struct hub *h);
void conn_end(struct peer *p);
void conn_free(struct peer *p);
void conn_shut(struct peer *p, uint16_t code, struct str words);
void conn_stop(struct hub *h);

/* reply.c */
struct json_out reply_open(const struct reply *r);
void reply_close(const struct reply *r, struct json_out *o);
void reply_refuse(const struct reply *r, enum err e, struct str words,
                  struct str details);
void reply_bad(const struct reply *r, enum wire_code code, struct str words,
               struct str data);

struct gather *gather_new(struct peer *p);
void gather_read(struct gather *g); /* the whole batch was */
void gather_less(struct gather *g); /* one of it was answered */
/* Empty; what one large message took is given back. */
void hub_clear(struct buf *b);
void hub_reset(struct arena *a);

/* ask.c. NULL: it was refused. */
struct ask *hub_ask_new(struct hub_call *c);
struct ask *hub_ask_silent(struct peer *p);
void hub_ask_end(struct ask *a);
void hub_ask_refuse(struct ask *a, enum err e, struct str words,
                    struct str details);
void hub_ask_out(struct ask *a);
MUST_USE bool hub_ask_back(struct ask *a);
void hub_ask_drop_queries(struct ask *a);
/* Ask the store; `then` is called unless nobody is there any more. */
void hub_ask_read(struct ask *a, struct query *q, void (*then)(struct ask *));
void hub_ask_reap(struct hub *h);

/* A task, wherever it is: in memory, or else its row. */
void hub_look_task(struct ask *a, ask_found *found);
bool hub_look_is_current(const struct ask *a, const struct task *t);
void hub_look_past(struct ask *a, const struct task *t, ask_found *found);
/* The same by its number. */
void hub_look_number(struct ask *a, const struct task *t, int64_t turn,
                     ask_found *found);
/* The one, or the turn of it that a->message_id names. */
void hub_look_turn(struct ask *a, ask_found *found);

/* push.c */
void push_begin(struct ask *a, const struct task *t);
void push_stop(struct peer *p, const struct task *t); /* no more of t */
bool push_has(const struct peer *p, const struct id *task_id);
void push_go(struct peer *p);
void push_end_all(struct peer *p);
void push_after(struct gather *g);
void push_reap(struct hub *h);

/* Params. False: it was refused. A string that is not there is empty. */
MUST_USE bool param_str(struct hub_call *c, const char *key, size_t max,
                        struct str *out);
MUST_USE bool param_task(struct hub_call *c, struct id *out);
/* In the words of the API. */
void hub_word_no_task(struct str id, struct why *out);
MUST_USE bool param_obj(struct hub_call *c, const char *key,
                        const struct json **out);
MUST_USE bool param_listen(struct hub_call *c, enum listen *out);

/* tell.c: results that are told. */
void tell_begin(struct ask *a); /* what its commission has begun */
void tell_go(struct peer *p);
void tell_after(struct gather *g);
void tell_end_all(struct peer *p);
void tell_forget_children(struct hub *h);
/* agent.register was answered: what its agent has not had is told. */
void tell_came(struct peer *p, struct gather *behind);

/* The methods, by noun. */
void take_register(struct hub_call *c);
void take_update(struct hub_call *c);
void take_state(struct hub_call *c);
void take_search(struct hub_call *c);
void take_send(struct hub_call *c);
void take_get(struct hub_call *c);
void take_cancel(struct hub_call *c);
void take_listen(struct hub_call *c);
void take_send_task(struct hub_call *c);
void take_delegate(struct hub_call *c);
void take_delegation_get(struct hub_call *c);
void take_delegation_ack(struct hub_call *c);
void take_chunk(struct hub_call *c);
void take_result(struct hub_call *c);
void take_ping(struct hub_call *c);

/* agent.c */
void agent_leave(struct peer *p, struct str because);
void agent_unclaim(struct peer *p);
struct eyes peer_eyes(const struct peer *p, int64_t now_ms);

#endif
