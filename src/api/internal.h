#ifndef API_INTERNAL_H
#define API_INTERNAL_H

#include "api/api.h"
#include "api/share.h"
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

/* The value of an argument of the query; NULL if not given. */
struct str call_arg(const struct call *c, const char *name);

/* Read ?limit=, 1 to 500, default 50; and ?cursor=, a number from `least`,
 * default 0. False: an error was answered. */
MUST_USE bool call_limit(struct call *c, size_t *out);
MUST_USE bool call_cursor(struct call *c, int64_t least, int64_t *out);

/* The body must be empty, or {}. False: an error was answered. */
MUST_USE bool call_has_no_body(struct call *c);

/* Read ?status= of a list; zero: any. False: an error was answered. */
MUST_USE bool call_status(struct call *c, enum task_status *out);

/* The answer is wanted as server-sent events. */
bool call_wants_events(const struct call *c);

/* open_requests.c: a request that is not answered yet, or answered by a stream.
 * One struct for all, so that leaving, revoking, stopping and heartbeats each
 * have one place. Kinds:
 *
 *   ASKING    the store or the walk has something of it, and will answer
 *   WAITING   for the end of a task
 *   EVENTS    a stream of a task's events
 *   FEED      a stream of the feed */
enum open_kind { OPEN_ASKING, OPEN_WAITING, OPEN_EVENTS, OPEN_FEED };
enum { N_OPEN_KINDS = 4 };

struct open;

typedef void look_found(struct open *o, enum err e, const struct task *t);

/* The message for a call whose path names something unknown: "there is no
 * decision dec_x, or ..."; empty: the default message. */
enum { CALL_MISSING_BYTES = 128 };
void call_word_missing(const struct call *c, char out[CALL_MISSING_BYTES]);

struct open {
    struct list_node node;
    struct api *api;
    char missing[CALL_MISSING_BYTES];
    uint64_t id; /* of the request; zero: the client has gone */
    enum open_kind kind;
    bool is_out; /* the store or the walk has something of it, which must come
                    back before it is freed */
    struct caller caller;
    struct throttle_share *place; /* held for its caller */
    struct timer timer;           /* end of the wait, or the next heartbeat */

    /* Reads, one after the other. */
    struct query query, turns;
    bool has_query, has_turns;
    unsigned n_looks;
    look_found *found, *then_found;
    void (*then)(struct open *o); /* called when a query is back */
    struct query *asked;      /* the query that the store has now, or NULL */
    struct list_node listing; /* in api.listings or api.studies */
    int64_t page_bytes;       /* of memory that its pages take at most */
    unsigned n_pages;         /* pages that were read */

    /* A task. */
    struct id task_id, message_id;
    int64_t turn; /* turn of the task when it was last seen */
    struct task_listener listener;
    bool is_listening;
    bool answers_inputs; /* its header says so: questions of agents wait for it
                          */

    /* A message, and the wait for its result. */
    struct {
        int64_t wait_until_ms; /* monotonic */
        bool wants_events;
        bool is_repeat; /* the task existed before */
        struct id decision_id;
        char *decision; /* as JSON; owned; NULL: unknown */
        struct share_cost cost;
        bool has_cost; /* it was read */
        void (*then)(struct open *o);
    } message;

    /* Streams; pump continues sending. */
    void (*pump)(struct open *o);
    bool is_within; /* an event was sent in part */

    /* Events of a task. */
    struct {
        struct speak_place place; /* the last event that the client has */
        bool has_place, needs_gap;
        bool has_begun;        /* the first events were written */
        bool is_at_result;     /* only the result is left */
        int64_t result_number; /* zero: it has none */
        size_t result_bytes;   /* size of the written result */
        size_t result_said;    /* bytes of it that were sent */
        int64_t inputs_told;   /* number of the last question that was sent */
        bool is_cost_told;     /* or there is none */
    } events;

    /* The feed: a page, or a stream. */
    struct {
        struct feed_reader reader;
        bool is_reading, has_begun;
        int64_t was_further; /* the position of a client ahead of the feed;
                                zero: it is not */
        int64_t upto;        /* the last entry that a page looks at */
        size_t page_rows;
    } feed;

    /* One task with its turns; cancelling a task. */
    struct {
        unsigned shows_left, cancels_left; /* remaining tries */
        int64_t cancels; /* the turn to cancel; zero: not seen yet */
    } one;

    /* A list of tasks. */
    struct {
        enum task_status status; /* zero: any */
        bool is_whole;           /* of decisions */
    } list;

    struct books *books;           /* ledger_calls.h; NULL: none */
    struct analytics_query *study; /* analytics.c; NULL: none */
    struct decision_scan *scan;    /* decision_scan.h; NULL: none */
    struct tree_look *tree;        /* tree.c; NULL: none */

    /* Delegations. */
    struct delegation_request *delegation_request; /* NULL: none */
    struct {
        struct id key;
        int64_t turn;
    } delegation;

    /* A change of agents or grants. */
    struct registry_change *registering;
    bool is_new_grant; /* not a new expiry of an existing grant */

    /* A search. */
    struct {
        uint64_t id; /* zero: no search under way */
        struct speak_search_call call;
        char *text; /* of the query; owned */
    } search;

    /* A verdict on a decision. */
    struct id decision_id;
    struct call_verdict *word;

    /* A reply to an escalation, or an action on an agent. */
    struct id escalation_id;
    struct call_reply *say; /* NULL: none */
    char agent[AGENT_NAME_MAX + 1];

    struct call_input *input; /* an answer to an agent's question; NULL: none */

    /* A change of users or tokens. */
    struct access_change *change;
    struct access_token secret;
    char label[ACCESS_LABEL_MAX + 1];
};

void open_requests_init(struct api *c, const uint64_t seed[2]);
void open_requests_fini(struct api *c);

/* A request that is answered later. NULL: an error was answered. */
MUST_USE struct open *open_new(struct call *c);

/* The request is answered, or the client has gone. o must not be used any more,
 * except to come back from the store or the walk. */
void open_end(struct open *o);

/* o goes to the store or the walk, or comes back. open_back is false if the
 * client has gone; o must then not be used. */
void open_out(struct open *o);
MUST_USE bool open_back(struct open *o);

/* Read from the store; then() is called unless the client has gone. open_query
 * starts such a query; it frees the one before. */
void open_read(struct open *o, struct query *q, void (*then)(struct open *o));
struct query *open_query(struct open *o, const struct table *t, size_t limit);

/* o->query was read. False: an error was answered. */
MUST_USE bool open_query_ok(struct open *o);

/* Read a page of a list, which may take long: one token may read a few lists at
 * a time. A second call for the same o reads the next page, unless the client
 * has closed its side. The last thing to do with o. */
void open_read_list(struct open *o, struct query *q,
                    void (*then)(struct open *o));

/* Call before the first page of a query over very many records: one token may
 * run a few of these, besides its lists. False: an error was answered. */
MUST_USE bool open_analytics(struct open *o);

/* Change the kind. */
void open_becomes(struct open *o, enum open_kind kind);

/* Stop everything that o listens to. */
void open_quiet(struct open *o);

/* Answer and end. open_answer adds a newline to api->body; open_answer_nothing
 * answers 204; open_answer_list closes a list, with a zero cursor at its end;
 * open_fail has no words. */
void open_answer(struct open *o, int status);
void open_answer_nothing(struct open *o);
void open_answer_list(struct open *o, struct json_out *out, int64_t cursor);
void open_fail(struct open *o, enum err e);
void open_refuse(struct open *o, enum err e, struct str message,
                 struct str details);

/* Start a stream of server-sent events; false: o has ended. */
MUST_USE bool open_stream(struct open *o, enum open_kind kind,
                          void (*pump)(struct open *o));

/* net accepts more of the stream now. If not, pump is called once it does;
 * nothing needs to be written or kept before. Also false if the client has
 * gone: either way o must not be used. */
MUST_USE bool open_has_room(struct open *o);

/* Send bytes, or api->body, after open_has_room. False: the client has gone. */
MUST_USE bool open_send_bytes(struct open *o, struct str bytes);
MUST_USE bool open_send(struct open *o);

/* End a stream. */
void open_end_stream(struct open *o);

/* Answer that the token is not valid any more, or that its role or org has
 * changed. */
void open_refuse_revoked(struct open *o, int64_t now_ms);

/* Free the queries. */
void open_drop_queries(struct open *o);

/* task_lookup.c: tasks in memory or in the store. */

/* Find o->task_id and pass it to found(), perhaps before this returns; valid
 * during that call. ERR_NOT_FOUND: there is none that the caller may see. */
void look_task(struct open *o, look_found *found);

/* The turn that o is about is the current one of t. */
bool look_is_current(const struct open *o, const struct task *t);

/* Read the past turn o->message_id of t, and pass the task with the fields of
 * that turn to found(). */
void look_past(struct open *o, const struct task *t, look_found *found);

/* The same for a turn by its number. */
void look_number(struct open *o, const struct task *t, int64_t turn,
                 look_found *found);

/* messages.c, events.c */

/* Stream the events of the task from now on: o becomes a stream, or is answered
 * with an error. */
void events_begin(struct open *o, const struct task *t);

/* wait_ms, limited so that the answer starts before net gives up on it. */
int64_t api_patience_ms(const struct api *c, int64_t wait_ms);

/* Answer with the error of m. */
void refuse_message(struct open *o, const struct msg *m);

/* Write the members of the answer to a message. */
void write_answer(struct open *o, struct json_out *out, const struct task *t);

/* Read the cost of t, its tree and its conversation, and then call then(),
 * which finds t again. False: it is known, or not for this caller. */
MUST_USE bool answer_needs_cost(struct open *o, const struct task *t,
                                void (*then)(struct open *o));

/* Read the task id in the path. An invalid one is answered like an unknown one:
 * false. */
MUST_USE bool call_task_id(struct call *c, struct id *out);

/* agent_change.c: changes of agents and grants. */

/* The visibility of the caller. */
struct eyes call_eyes(const struct call *c);

/* A request with an empty o->registering. NULL: an error was answered. */
MUST_USE struct open *change_begin(struct call *c);

/* Submit the change, and call then() when it has effect; or answer with an
 * error. At once if nothing is to be written. */
void change_submit(struct open *o, void (*then)(struct open *o));

/* Answer that there is no such agent, or none that the caller may see: the
 * answer does not tell which. */
void api_refuse_agent(struct api *c, uint64_t id, const struct caller *caller,
                      struct str name);

/* agents.c: write an agent for a viewer. advice: NULL without warnings.
 * changed: NULL unless the viewer has just registered it. */
void write_agent(struct api *c, struct json_out *out, const struct agent *a,
                 const struct eyes *eyes, const struct advice *advice,
                 const bool *changed);

/* Agents and tags that one call looks at: it blocks the loop meanwhile. */
enum { PAGE_LOOKS = 50 * 1000 };

/* verdicts.c. NULL is fine. */
struct call_verdict;
void verdict_free(struct call_verdict *w);
/* Stop waiting for the vector. */
void verdict_quiet(struct open *o);

/* tree.c. NULL is fine. */
void tree_look_free(struct tree_look *l);

/* inputs.c. NULL is fine. */
struct call_input;
void call_input_free(struct call_input *i);

/* Write the member "inputs": open questions of the task and of those below
 * it. */
void write_inputs(struct api *c, struct json_out *out, struct str task_id);

/* escalations.c. NULL is fine. */
struct call_reply;
void call_reply_free(struct call_reply *s);

#define EMPTY_KEY_WORDS \
    "the Idempotency-Key header is empty: give a key, or leave it out"

/* The functions of the table in api.c, by noun. */
typedef void call_function(struct call *c);
call_function call_front, call_assets, call_healthz, call_hub, call_readyz,
    call_metrics;
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

void analytics_query_free(struct analytics_query *s); /* NULL is fine */
void decision_scan_free(struct decision_scan *h);     /* likewise */
void books_free(struct books *b);                     /* NULL is fine */

#endif
