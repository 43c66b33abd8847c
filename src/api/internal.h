#ifndef API_INTERNAL_H
#define API_INTERNAL_H

#include "api/api.h"
#include "api/request.h"
#include "model/advice.h"
#include "speak/speak.h"
#include "walk/delegation_request.h"

/* api.c: answers to a request by its id. */

enum {
    ANSWER_BYTES = 512 * 1024 * 1024, /* the largest task, escaped */
    ANSWER_KEEP_BYTES = 1024 * 1024,  /* of memory kept for the next answer */
    PAGE_BYTES = 4 * 1024 * 1024, /* lists and search results end after this */
};

/* Answer with api->body, as call_answer. */
void api_answer(struct api *c, uint64_t id, int status, struct str type);

/* The same with more headers. */
enum { API_HEADERS_MAX = 3 };
void api_answer_with(struct api *c, uint64_t id, int status, struct str type,
                     const struct http_header *more, size_t n);

/* The header is there more than once. Some readers would take the first, and
 * others the last. */
bool call_has_twice(const struct call *c, struct str name);

/* cors.c */

/* Set c->is_cross: c comes from a page of http.allowedOrigins. Its browser then
 * lets the page read the answer. */
void cors_begin(struct call *c);

/* A preflight request: a browser asks what a page may do. */
bool cors_is_asked(const struct call *c);

/* Answer a preflight request of a page of http.allowedOrigins. */
void cors_answer(struct call *c);

/* The token in the subprotocols of a WebSocket, "bearer.TOKEN", for browsers,
 * which can set no header. Empty: none. */
struct str call_offered_token(const struct http_request *rq);

/* Answer with an error; message and details may be empty. */
void api_refuse(struct api *c, uint64_t id, enum err e, struct str message,
                struct str details);

enum {
    LIST_LIMIT = 50, /* default of ?limit= */
    LIST_MAX = 500,
    STATEMENT_CSV_LINES = 5000,
    FLEET_NAMES_MAX = 100,
};

/* The value of an argument of the query, which its row in calls.c describes and
 * api.c has checked; call_arg is NULL if it is not given. */
struct str call_arg(const struct call *c, const char *name);
int64_t call_int(const struct call *c, const char *name, int64_t unset);
double call_real(const struct call *c, const char *name, double unset);
bool call_yes(const struct call *c, const char *name); /* true; else false */
size_t call_limit(const struct call *c);

/* The body must be empty, or {}. False: an error was answered. */
MUST_USE bool call_has_no_body(struct call *c);

/* The answer is wanted as server-sent events. */
bool call_wants_events(const struct call *c);

/* The message for a call whose path names something unknown: "there is no
 * decision dec_x, or ..."; empty: the default message. */
enum { CALL_MISSING_BYTES = 128 };
void call_word_missing(const struct call *c, char out[CALL_MISSING_BYTES]);

/* request_http.c: the front end of HTTP, and what it keeps of a request. */

struct http_seat {
    struct throttle_share *place; /* held for its caller */
    char missing[CALL_MISSING_BYTES];
    bool answers_inputs; /* its header says so: questions of agents wait for it
                          */
    void (*pump)(struct request *o); /* continues a stream */
    bool is_within;                  /* an event was sent in part */
};

static inline struct http_seat *http_seat(const struct request *o)
{
    return o->seat;
}

void requests_init(struct api *c, const uint64_t seed[2]);
void requests_fini(struct api *c);

/* The request of a call that is answered later. NULL: an error was answered. */
MUST_USE struct request *request_of_call(struct call *c,
                                         const struct request_state *state);

/* Change the kind. */
void request_becomes(struct request *o, enum request_kind kind);

/* Answer 204, and end. */
void request_answer_nothing(struct request *o);

/* Answer that the token is not valid any more, or that its role or org has
 * changed. */
void request_refuse_revoked(struct request *o, int64_t now_ms);

/* Start a stream of server-sent events; false: o has ended. */
MUST_USE bool request_stream(struct request *o, enum request_kind kind,
                             void (*pump)(struct request *o));

/* net accepts more of the stream now. If not, pump is called once it does;
 * nothing needs to be written or kept before. Also false if the client has
 * gone: either way o must not be used. */
MUST_USE bool request_has_room(struct request *o);

/* Send bytes, or api->body, after request_has_room. False: the client has
 * gone. */
MUST_USE bool request_send_bytes(struct request *o, struct str bytes);
MUST_USE bool request_send(struct request *o);

/* End a stream. */
void request_end_stream(struct request *o);

struct task_cost {
    int64_t tree, conversation; /* micro-units */
};

/* The state of a message, a delegation or the events of a task: each may become
 * the stream of a task. */
struct message_state {
    int64_t wait_until_ms; /* for the result; monotonic */
    bool wants_events;
    bool is_repeat; /* the task existed before */
    struct id decision_id;
    struct str decision; /* as JSON, in the arena; empty: unknown */
    struct task_cost cost;
    bool has_cost; /* it was read */
    void (*then)(struct request *o);
    struct str gate_result; /* of an envelope on the hub, as JSON, likewise */
    /* Called between the answer and the end; NULL: nothing more. */
    void (*on_answered)(struct request *o, const struct task *t);
    struct delegation_request *delegation_request; /* NULL: none */

    /* Events of a task. */
    struct speak_place place; /* the last event that the client has */
    bool has_place, needs_gap;
    bool has_begun;        /* the first events were written */
    bool is_at_result;     /* only the result is left */
    int64_t result_number; /* zero: it has none */
    size_t result_bytes;   /* size of the written result */
    size_t result_said;    /* bytes of it that were sent */
    int64_t inputs_told;   /* number of the last question that was sent */
    bool is_cost_told;     /* or there is none */
};
extern const struct request_state message_state;
extern const struct request_state delegate_state; /* it has a
                                                     delegation_request */

static inline struct message_state *message_of(const struct request *o)
{
    return o->own;
}

static inline struct delegation_request *
delegation_request_of(const struct request *o)
{
    return o->state == &delegate_state ? message_of(o)->delegation_request
                                       : NULL;
}

/* delegate.c: what a lookup of a delegation keeps. */
struct delegation_look {
    struct id key;
    int64_t turn;                /* zero: any */
    char by[AGENT_NAME_MAX + 1]; /* this agent must own it, and may then see its
                                    task; empty: who sees the task sees it */
    task_found *found;
};
extern const struct request_state delegation_look_state;

static inline struct delegation_look *delegation_of(const struct request *o)
{
    return o->own;
}

/* Answer the state of delegation_of(o)->key. */
void delegation_answer(struct request *o);

/* Find the task of a delegation in its turn. */
void delegation_look_task(struct request *o, task_found *found);

/* messages.c, events.c */

/* Stream the events of the task from now on: o becomes a stream, or is answered
 * with an error. */
void events_begin(struct request *o, const struct task *t);

/* Events of a task, as each front end frames them: a name and members. */
const char *event_name(enum task_event_kind kind);
void event_put_members(struct json_out *out, const struct task_event *e);

/* An open question after *told that is not among the events that l will get, as
 * an event without a number whose JSON is in text. False: there is none. */
enum { EVENT_INPUT_BYTES = 8 * INPUT_BYTES_MAX };
MUST_USE bool event_of_input(struct tasks *tasks, const struct task_listener *l,
                             int64_t *told, struct buf *text,
                             struct task_event *out);

/* wait_ms, limited so that the answer starts before net gives up on it. */
int64_t api_patience_ms(const struct api *c, int64_t wait_ms);

/* For walk_message and walk_agent_message: answer that m was accepted, or the
 * result, or stream the events. ctx is a request with a message_state. */
void on_message_accepted(struct msg *m, void *ctx);

/* Answer with the error of m. */
void refuse_message(struct request *o, const struct msg *m);

/* Write the members of the answer to a message. */
void write_answer(struct request *o, struct json_out *out,
                  const struct task *t);

/* Read the cost of t, its tree and its conversation, and then call then(),
 * which finds t again. False: it is known, or not for this caller. */
MUST_USE bool answer_needs_cost(struct request *o, const struct task *t,
                                void (*then)(struct request *o));

/* Write the member "cost", if there is a cost. */
void write_task_cost(struct json_out *o, const struct task_cost *cost,
                     const struct task *t);

/* Read a message: the body of POST /api/messages, and the idempotency key
 * beside it (empty: none). As speak_message; also sets the hash that the key
 * identifies. */
MUST_USE enum err message_read(struct msg *m, struct str body, struct str key);

/* Set the hash that the idempotency key of m identifies. */
void message_hash(struct msg *m, struct str meaning);

/* envelopes.c */

/* Read an envelope, and check that the caller may send it. `self` is the agent
 * of the connection; empty: none. ERR_FROM: `from` is another sender. */
MUST_USE enum err envelope_read(const struct api *c, struct msg *m,
                                struct str body, struct str self);

/* Write the members of the answer to an accepted envelope: the result of the
 * gate. One that came before, by its sender's own id, is dropped, and the
 * answer names the original task. */
void write_gate_result(struct json_out *o, const struct msg *m);

/* decisions.c: remove everything that depends on others: the version numbers of
 * the registry and of learning, which count all changes, and query types that
 * are shared by all orgs. Admins see everything. */
void decision_hide_others(struct decision *d, const struct caller *c);

/* events.c: read the task id in the path. An invalid one is answered like an
 * unknown one: false. */
MUST_USE bool call_task_id(struct call *c, struct id *out);

/* agent_change.c: changes of agents and grants. */

/* The visibility of the caller. */
struct eyes call_eyes(const struct call *c);

/* A request that owns an empty struct registry_change. NULL: an error was
 * answered. */
MUST_USE struct request *change_begin(struct call *c);

/* Submit the change, and call then() when it has effect; or answer with an
 * error. At once if nothing is to be written. */
void change_submit(struct request *o, void (*then)(struct request *o));

/* Refuse a card, with its problems as details. */
void request_refuse_card(struct request *o, enum err e, struct str words,
                         const struct card_problems *p);

/* agents.c: warnings about a's card; they name only agents that the viewer
 * sees. Only for viewers who may see the whole card. */
void agent_advice(const struct api *c, const struct agent *a,
                  const struct eyes *eyes, struct advice *out);

/* Answer that there is no such agent, or none that the caller may see: the
 * answer does not tell which. */
void call_refuse_agent(struct call *c, struct str name);
void request_refuse_agent(struct request *o, struct str name);

/* agents.c: write an agent for a viewer. advice: NULL without warnings.
 * changed: NULL unless the viewer has just registered it. */
void write_agent(struct api *c, struct json_out *out, const struct agent *a,
                 const struct eyes *eyes, const struct advice *advice,
                 const bool *changed);

/* Agents and tags that one call looks at: it blocks the loop meanwhile. */
enum { PAGE_LOOKS = 50 * 1000 };

/* inputs.c */

/* Write the member "inputs": open questions of the task and of those below
 * it. */
void write_inputs(struct api *c, struct json_out *out, struct str task_id);

#define EMPTY_KEY_WORDS \
    "the Idempotency-Key header is empty: give a key, or leave it out"

/* The functions of the table in calls.c, by noun. */
typedef void call_function(struct call *c);
call_function call_front, call_assets, call_openapi, call_healthz, call_hub,
    call_readyz, call_metrics;
call_function call_gate_post, call_gate_get, call_gate_graph,
    call_gate_audit_get, call_gate_audit_post;
call_function call_decisions_list, call_decisions_get, call_decisions_override,
    call_decisions_feedback;
call_function call_tasks_list, call_tasks_get, call_tasks_events,
    call_tasks_tree, call_tasks_cancel, call_tasks_input;
call_function call_agents_list, call_agents_get, call_agents_post,
    call_agents_put, call_agents_patch, call_agents_delete, call_agents_wake,
    call_agents_restart, call_agents_pause, call_agents_resume,
    call_agents_approve, call_agents_reject, call_agents_hide,
    call_agents_report, call_agents_reports, call_agents_dismiss,
    call_agents_figures;
call_function call_escalations_list, call_escalations_get,
    call_escalations_approve, call_escalations_reject,
    call_escalations_redirect;
call_function call_grants_list, call_grants_post, call_grants_delete;
call_function call_learning_get, call_learning_export, call_learning_run,
    call_learning_reset, call_learning_void, call_learning_rebuild;
call_function call_ledger_balance, call_ledger_accounts, call_ledger_statement,
    call_ledger_topup, call_ledger_refund, call_ledger_payout,
    call_ledger_check;
call_function call_budgets_list, call_budgets_put, call_budgets_delete;
call_function call_me, call_users_list, call_users_post, call_users_patch,
    call_users_delete, call_tokens_list, call_tokens_post, call_tokens_delete;
call_function call_messages_post, call_envelopes_post, call_delegate_post,
    call_delegations_get, call_route_post, call_trees_list,
    call_conversations_get, call_analytics_get, call_fleet_get, call_holds_list,
    call_search_get, call_search_post, call_commands_get, call_tools_get,
    call_feed, call_config_get, call_config_reload;

/* metrics.c: the table of all metrics but those of the process. */
extern const struct metric api_metrics[];
extern const size_t api_metrics_n;

#endif
