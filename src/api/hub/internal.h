#ifndef API_HUB_INTERNAL_H
#define API_HUB_INTERNAL_H

/* Declarations shared by the files of hub/.
 *
 *     peer       a connection, and its open work
 *     reply      the target of an answer: a peer, directly or in a batch
 *     seat       what the hub keeps of a request
 *     gather     the answers to a batch, until the last one is there
 *     hearing    a task that a peer listens to
 *     telling    a delegation whose result is to be sent to a peer
 *
 * Finished objects are freed at the end of the turn: a caller may look at one
 * once more. */

#include "api/hub/hub.h"
#include "api/internal.h"
#include "base/fault.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rate.h"
#include "speak/speak.h"
#include "walk/delegation_request.h"
#include "wire/wire.h"

enum {
    HUB_TREE_BYTES = 48 * 1024 * 1024,   /* of one parsed message */
    HUB_ANSWER_BYTES = 64 * 1024 * 1024, /* one, or the array of a batch */
    HUB_KEEP_BYTES = 1024 * 1024,        /* of memory kept for the next one */
    HUB_UNSENT_BYTES =
        16 * 1024 * 1024,        /* of answers, beyond those that net holds */
    HUB_PEERS_MAX = 1000 * 1000, /* net has a lower limit */
    HUB_REQUESTS_MAX = 10 * 1000 * 1000, /* so has every peer */
    HUB_RATES = 65536,
    HUB_TAKEN_OVER = 4001, /* our own close code */
};

struct peer;

struct gather {
    struct peer *peer;
    struct buf out;
    size_t n_open;      /* not answered yet */
    bool is_being_read; /* not all of the batch is read */
};

struct reply {
    struct peer *peer;
    struct gather *gather; /* NULL: not in a batch */
    struct wire_id id;
    bool is_awaited; /* a request, not a notification */
};

/* One message for a method. Borrowed for the call. */
struct hub_call {
    struct hub *hub;
    struct peer *peer;
    const struct wire_message *m;
    const struct method_row *row;
    const struct json *params; /* an object; empty if there are none */
    struct reply reply;
};

struct unsent {
    struct list_node node;
    size_t n;
    char bytes[];
};

struct peer {
    struct hub *hub;
    uint64_t id;    /* of the WebSocket; zero: it is closed */
    uint64_t child; /* connection of a child process, instead of id */
    struct list_node node;
    struct caller caller;
    struct throttle_share *place; /* held for its caller; NULL for a child */

    uint64_t line; /* zero: not an agent */
    char agent[AGENT_NAME_MAX + 1];
    uint64_t url_hash; /* of the card that was attached */
    bool is_attaching;
    char claimed[AGENT_NAME_MAX + 1]; /* by an agent.register under way */
    size_t n_claims;                  /* such requests under way */

    /* Closing: its requests do not count any more, though the connection may
     * stay open a while. */
    bool is_shut;
    bool is_lost; /* it missed events that it listens to */

    struct list requests;
    size_t n_requests;
    struct list unsent; /* struct unsent: net had no space */
    size_t unsent_bytes;
    bool is_paused, is_slowed; /* by peer_pace; by the rate limits */
    struct timer slowed;
    size_t owed;      /* messages above hub.messagesPerSecond */
    size_t owed_user; /* requests above rate.perUser */

    struct list hearings; /* struct hearing, all of them */
    struct list ready;    /* those with something to send */
    size_t n_hearings;
    bool is_pushing;
    bool is_looking; /* one of them reads its result from the store */

    /* Its delegations. */
    char by_name[AGENT_NAME_MAX + 1]; /* its key in by_agent; empty: none */
    struct list tellings;             /* struct telling */
    bool is_telling;                  /* one of them is being read */
    struct gather *came_in; /* results wait for the answer to agent.register,
                               which is in this batch */
};

/* The state that the hub keeps of a request. */
enum listen { LISTEN_NOTHING, LISTEN_RESULT, LISTEN_ALL };

struct hub_seat {
    struct reply reply;
    char id[WIRE_ID_RAW_MAX];
    bool is_claim; /* counted in n_claims */

    /* Listening to its task. */
    enum listen listen;
    struct speak_place place;
    bool has_place;
    struct hearing *hearing; /* whose result it reads */
};

static inline struct hub_seat *hub_seat(const struct request *o)
{
    return o->seat;
}

static inline struct peer *peer_of(const struct request *o)
{
    return hub_seat(o)->reply.peer;
}

struct hearing {
    struct list_node node, ready_node;
    struct peer *peer;
    struct task_listener listener;
    struct id task_id, message_id;
    int64_t turn;
    struct gather *behind; /* sent after its answer */
    bool is_listening;
    bool only_result;
    bool is_at_result; /* the result is in the store */
    bool needs_gap;
    bool has_begun;      /* the first notification was sent */
    int64_t inputs_told; /* number of the last question that was sent */
};

struct telling {
    struct list_node node;
    struct id key;
    struct gather
        *behind; /* sent after the answer to this batch; NULL: at once */
    bool is_ready;
};

struct hub {
    struct api *api;
    struct hub_settings settings;
    struct map by_id;    /* WebSocket -> struct peer */
    struct map by_agent; /* name in lower case -> struct peer */
    struct map by_key;   /* delegation -> struct child_wait */
    struct map by_child; /* connection of a child -> struct peer */
    struct map receipts; /* id -> struct request */
    struct list peers, children, gone;
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

/* hub.c: dispatch to the table of methods. */
void hub_dispatch(struct peer *p, const struct wire_message *m,
                  struct gather *g);

/* hub_conn.c */
void peer_init(struct peer *p, struct hub *h);
void peer_send(struct peer *p, struct str message);
bool peer_is_stuck(const struct peer *p);
bool peer_is_gone(const struct peer *p);
void peer_pace(struct peer *p);
void peer_reap(struct hub *h); /* free finished peers at the end of this turn */
void peer_sweep_soon(struct hub *h);
void peer_end(struct peer *p);
void peer_free(struct peer *p);
void peer_shut(struct peer *p, uint16_t code, struct str words);
void peers_stop(struct hub *h);

/* hub_reply.c */
struct json_out reply_open(const struct reply *r);
void reply_close(const struct reply *r);
void reply_refuse(const struct reply *r, enum err e, struct str words,
                  struct str details);
void reply_bad(const struct reply *r, enum wire_code code, struct str words,
               struct str data);

struct gather *gather_new(struct peer *p);
void gather_read(struct gather *g); /* the whole batch is read */
void gather_less(struct gather *g); /* one of the batch was answered */
/* Empty the buffer or arena, and give back the memory of one large message. */
void hub_clear(struct buf *b);
void hub_reset(struct arena *a);

/* hub_request.c: the front end. hub_request returns NULL after it has sent the
 * error; hub_request_new, for a request without an answer, without memory. */
struct request *hub_request(struct hub_call *c,
                            const struct request_state *state);
struct request *hub_request_new(struct peer *p,
                                const struct request_state *state);

/* hub_push.c */
void push_begin(struct request *o, const struct task *t);
void push_stop(struct peer *p, const struct task *t); /* stop listening to t */
bool push_has(const struct peer *p, const struct id *task_id);
void push_go(struct peer *p);
void push_end_all(struct peer *p);
void push_after(struct gather *g);
void push_reap(struct hub *h);

/* Params. False: the error was sent. A missing string is empty. */
MUST_USE bool param_str(struct hub_call *c, const char *key, struct str *out);
MUST_USE bool param_task(struct hub_call *c, struct id *out);
/* The error message for an unknown task. */
void hub_word_no_task(struct str id, struct why *out);
MUST_USE bool param_obj(struct hub_call *c, const char *key,
                        const struct json **out);
MUST_USE bool param_listen(struct hub_call *c, enum listen *out);

/* hub_tell.c: results of delegations. */
void tell_begin(struct request *o); /* remember its started delegations */
void tell_go(struct peer *p);
void tell_after(struct gather *g);
void tell_end_all(struct peer *p);
void tell_forget_children(struct hub *h);
/* agent.register was answered: send the unacknowledged results. */
void tell_came(struct peer *p, struct gather *behind);

/* The methods, by noun. */
typedef void hub_function(struct hub_call *c);
hub_function method_register, method_update, method_state, method_search,
    method_send, method_get, method_cancel, method_listen, method_send_task,
    method_delegate, method_delegation_get, method_delegation_ack, method_chunk,
    method_result, method_ping;

/* hub_agent.c */
void agent_leave(struct peer *p, struct str because);
struct eyes peer_eyes(const struct peer *p, int64_t now_ms);

#endif
