#ifndef CALLS_INTERNAL_H
#define CALLS_INTERNAL_H

#include "calls/calls.h"
#include "calls/share.h"
#include "commission.h"
#include "speak/speak.h"

/* calls.c: answers to a request by its id. */

enum {
    ANSWER_BYTES = 512 * 1024 * 1024, /* one task at its largest, escaped */
    ANSWER_KEEP_BYTES = 1024 * 1024,  /* of memory kept for the next answer */
    PAGE_BYTES = 4 * 1024 * 1024,     /* no further item in a list after this,
                                       * nor another agent in what is found */
};

/* Say what is in calls->body, as call_answer does. */
void calls_answer(struct calls *c, uint64_t id, int status, struct str type);

/* The same with headers of the call's own. */
enum { CALLS_HEADERS_MAX = 3 };
void calls_answer_with(struct calls *c, uint64_t id, int status,
                       struct str type, const struct http_header *more,
                       size_t n);

/* Whether a header is there more than once: some readers would take the first
 * of them, and others the last. */
bool call_has_twice(const struct call *c, struct str name);

/* cors.c */

/* Whether c comes from a page of http.allowedOrigins is in c->is_cross; if so,
 * its browser lets that page read the answer. */
void cors_begin(struct call *c);

/* Whether a browser asks on behalf of a page what that page may do. */
bool cors_is_asked(const struct call *c);

/* Say so to a page of http.allowedOrigins. */
void cors_answer(struct call *c);

/* A token in the subprotocols that a WebSocket offers, for browsers, which can
 * set no header: "bearer.TOKEN". Empty: there is none. */
struct str call_offered_token(const struct http_request *rq);

/* Say an error; message and details may be empty. */
void calls_refuse(struct calls *c, uint64_t id, enum err e, struct str message,
                  struct str details);

/* The value of an argument of the query; a NULL pointer: not given. */
struct str call_arg(const struct call *c, const char *name);

/* ?limit=, 1 to 500 and 50 if it is not given. False: refused. */
MUST_USE bool call_limit(struct call *c, size_t *out);

/* The status that a list is narrowed to; zero: to none. False: refused. */
MUST_USE bool call_status(struct call *c, enum task_status *out);

/* Whether the answer is wanted as server-sent events. */
bool call_wants_events(const struct call *c);

/* live.c: a request that is not answered yet, or answered by a stream. One
 * struct for all of them, so that leaving, revoking, stopping and heartbeats
 * each have one home. It goes through kinds:
 *
 *     ASKING    the store or the walk has something of it, and will answer
 *     WAITING   for the end of a task
 *     EVENTS    a stream of a task's events
 *     FEED      a stream of the feed
 */
enum open_kind { OPEN_ASKING, OPEN_WAITING, OPEN_EVENTS, OPEN_FEED };
enum { N_OPEN_KINDS = 4 };

struct open;

typedef void look_found(struct open *o, enum err e, const struct task *t);

/* Words for a call whose path names what is not there: "there is no decision
 * dec_x, or …"; empty: the usual ones do. */
enum { CALL_MISSING_BYTES = 128 };
void call_word_missing(const struct call *c, char out[CALL_MISSING_BYTES]);

struct open {
    struct list_node node;
    struct calls *calls;
    char missing[CALL_MISSING_BYTES];
    uint64_t id; /* of the request; zero: nobody is there any more */
    enum open_kind kind;
    bool is_out; /* the store or the walk has something of ours, which must
                  * come back before this can go */
    struct caller caller;
    struct throttle_place *place; /* that it holds as its caller's */
    struct timer timer;           /* end of waiting, or the next heartbeat */

    /* What is read, one after the other. */
    struct query query, turns;
    bool has_query, has_turns;
    unsigned n_looks;
    look_found *found, *then_found;
    void (*then)(struct open *o); /* when a query is back */
    struct query *asked;          /* with the store now, or NULL */
    struct list_node listing;     /* in calls.listings, or studies */
    unsigned n_pages;             /* of it, that were asked for */

    /* A task: whoever waits for one, watches one or asks about one. */
    struct id task_id, message_id;
    int64_t turn; /* of the task, as it was last seen */
    struct task_listener listener;
    bool is_listening;
    bool answers_inputs; /* it says so: what agents ask may wait for it */

    /* A message, and who waits for what comes of it. */
    struct {
        int64_t wait_until_ms; /* loop's monotonic time */
        bool wants_events;
        bool is_repeat; /* the task was there before */
        struct id decision_id;
        char *decision; /* as JSON; owned; NULL: not known */
        struct share_cost cost;
        bool has_cost; /* it was looked for */
        void (*then)(struct open *o);
    } message;

    /* Streams; `pump` goes on sending. */
    void (*pump)(struct open *o);
    bool is_within; /* an event, of which only a part was taken */

    /* The events of a task. */
    struct {
        struct speak_place place; /* behind which they begin */
        bool has_place, needs_gap;
        bool has_begun;        /* to be told something */
        bool is_at_result;     /* which is what is left to be said */
        int64_t result_number; /* zero: it has none */
        size_t result_bytes;   /* of it, once it was written */
        size_t result_said;    /* of these */
        int64_t inputs_told;   /* up to that number: what agents ask */
        bool is_cost_told;     /* or there is none to tell */
    } events;

    /* The feed: a page of it, or a stream. */
    struct {
        struct feed_reader reader;
        bool is_reading, has_begun;
        int64_t was_further; /* zero: they were not */
        int64_t upto;        /* a page looks at no entry behind this one */
        size_t page_rows;
    } feed;

    /* One task with its turns, and no more of it. */
    struct {
        unsigned shows_left, cancels_left; /* before we give up */
        int64_t cancels; /* this turn and no other; zero: none was seen yet */
    } one;

    /* A list of tasks. */
    struct {
        enum task_status status; /* zero: any */
        bool is_whole;           /* of decisions */
    } list;

    struct books *books;    /* books.h; NULL: none */
    struct study *study;    /* analytics.c; NULL: none */
    struct hunt *hunt;      /* hunt.h; NULL: none */
    struct tree_look *tree; /* tree.c; NULL: none */

    /* What an agent has others do. */
    struct commission *commission; /* NULL: none */
    struct {
        struct id key;
        int64_t turn;
    } delegation;

    /* A change of agents or grants. */
    struct registry_change *registering;
    bool is_new_grant; /* and no other expiry of one that was there */

    /* A search. */
    struct {
        uint64_t id; /* zero: nothing is searched for */
        struct speak_search_call call;
        char *text; /* of the query; owned */
    } search;

    /* What is said of a decision. */
    struct id decision_id;
    struct call_word *word;

    /* What is said to an escalation, and done to an agent. */
    struct id escalation_id;
    struct call_say *say; /* NULL: nothing */
    char agent[AGENT_NAME_MAX + 1];

    struct call_input *input; /* what is said to an agent; NULL: nothing */

    /* A change of users or tokens. */
    struct access_change *change;
    struct access_token secret;
    char label[ACCESS_LABEL_MAX + 1];
};

void live_init(struct calls *c, const uint64_t seed[2]);
void live_fini(struct calls *c);

/* A request that will be answered later. NULL: it was refused. */
MUST_USE struct open *open_new(struct call *c);

/* It was answered, or nobody is there: o may not be used any more, but for
 * what is out to come back. */
void open_end(struct open *o);

/* Something of o's goes out, or has come back. open_back is false when nobody
 * waits for it any more; o may then not be used. */
void open_out(struct open *o);
MUST_USE bool open_back(struct open *o);

/* Ask the store; `then` is called unless nobody is there any more. */
void open_read(struct open *o, struct query *q, void (*then)(struct open *o));

/* The same for a list, which may take long: one token may have a few of them
 * at a time, and more are refused. Asked again by the same o it is the next
 * page of the same list, which ends where its client is gone. The last thing
 * to do with o. */
void open_list(struct open *o, struct query *q, void (*then)(struct open *o));

/* Before the first page of what reads very many: one token may have a few of
 * these, and its lists beside them. False: o was refused. */
MUST_USE bool open_study(struct open *o);

/* Another kind from here on. */
void open_becomes(struct open *o, enum open_kind kind);

/* Stop listening to whatever it listens to. */
void open_quiet(struct open *o);

/* Answer and end. */
void open_answer(struct open *o, int status);
void open_refuse(struct open *o, enum err e, struct str message,
                 struct str details);

/* Begin a stream of server-sent events; false: o has ended. */
MUST_USE bool open_stream(struct open *o, enum open_kind kind,
                          void (*pump)(struct open *o));

/* Whether net takes more of a stream now. If not, `pump` is called once it
 * does; nothing need be written before, and nothing is kept meanwhile. False
 * also when nobody is there any more: either way o is not to be used. */
MUST_USE bool open_has_room(struct open *o);

/* Send these, or what is in calls->body, once there was room. False: nobody is
 * there any more. */
MUST_USE bool open_send_bytes(struct open *o, struct str bytes);
MUST_USE bool open_send(struct open *o);

/* End a stream. */
void open_end_stream(struct open *o);

/* What they waited for is not for them any more: their token is good no more,
 * or they are somebody else by now. */
void refuse_to_wait(struct open *o, int64_t now_ms);

/* Forget what was read from the store. */
void open_drop_queries(struct open *o);

/* look.c: tasks, wherever they are. */

/* Find o->task_id as it is now, in memory or in its row, and hand it to
 * `found`, perhaps before this returns; borrowed for that call. ERR_NOT_FOUND:
 * there is none that o's caller may see. */
void look_task(struct open *o, look_found *found);

/* Whether the turn that o is about is the one in t. */
bool look_is_current(const struct open *o, const struct task *t);

/* Read the turn o->message_id of t, which is past, and hand the task with
 * that turn's fields in it to `found`. */
void look_past(struct open *o, const struct task *t, look_found *found);

/* The same by its number. */
void look_number(struct open *o, const struct task *t, int64_t turn,
                 look_found *found);

/* messages.c, events.c */

/* Follow the task from here on: o becomes a stream, or is refused. */
void events_begin(struct open *o, const struct task *t);

/* How long somebody may wait: the reply must have begun before net gives up on
 * it. */
int64_t calls_patience_ms(const struct calls *c, int64_t wait_ms);

/* Refuse a message as it was refused. */
void refuse_message(struct open *o, const struct msg *m);

/* Write the answer to a message into calls->body. */
void write_answer(struct open *o, struct json_out *out, const struct task *t);

/* What t, its tree and its conversation have cost is looked for, and then
 * `then` is called; t is looked for again there. False: it is known, or not for
 * who asks. */
MUST_USE bool answer_needs_cost(struct open *o, const struct task *t,
                                void (*then)(struct open *o));

/* Refuse a task id that cannot be one exactly as one that is not there. */
MUST_USE bool call_task_id(struct call *c, struct id *out);

/* change.c: agents and grants on their way to the disk. */

/* Who asks, and through whose eyes. */
struct eyes call_eyes(const struct call *c);

/* A request that changes the registry, with o->registering to be filled. NULL:
 * it was refused. */
MUST_USE struct open *change_begin(struct call *c);

/* Submit what the registry has taken, and call `then` once it has effect; or
 * refuse it. At once where there is nothing to write. */
void change_submit(struct open *o, void (*then)(struct open *o));

/* Nothing more than that it is done. */
void change_answer_nothing(struct open *o);

/* Refuse the name of an agent that is not there, or not theirs to see: nothing
 * in the answer tells which. */
void calls_refuse_agent(struct calls *c, uint64_t id,
                        const struct caller *caller, struct str name);

/* agents.c: one agent, as these eyes may see it. advice: NULL where warnings
 * are not told. changed: NULL unless they have just registered it. */
void write_agent(struct calls *c, struct json_out *out, const struct agent *a,
                 const struct eyes *eyes, const struct advice *advice,
                 const bool *changed);

/* Agents, and tags of theirs, that one call looks at: everybody else waits
 * meanwhile. */
enum { PAGE_LOOKS = 50 * 1000 };

/* verdicts.c. NULL is fine. */
struct call_word;
void word_free(struct call_word *w);
/* The vector that it waits for is not wanted any more. */
void word_quiet(struct open *o);

/* tree.c. NULL is fine. */
void tree_look_free(struct tree_look *l);

/* inputs.c. NULL is fine. */
struct call_input;
void input_word_free(struct call_input *i);

/* What is asked by the task of that id, or below it, as a member "inputs". */
void write_inputs(struct calls *c, struct json_out *out, struct str task_id);

/* escalations.c. NULL is fine. */
struct call_say;
void say_free(struct call_say *s);

/* The calls, by noun. */
void call_front(struct call *c);
void call_assets(struct call *c);
void call_healthz(struct call *c);
void call_hub(struct call *c);
void call_readyz(struct call *c);
void call_metrics(struct call *c);

/* metrics_agents.c */
void metrics_deliver(struct buf *out, const struct deliver_stats *s);
void metrics_agents(struct buf *out, struct deliver *d);

/* metrics_hire.c: what agents give to agents, and what is told of it. */
void metrics_hire(struct buf *out, const struct hire_stats *s,
                  const struct traces *traces);

/* metrics_learning.c */
void metrics_learning(struct buf *out, const struct lessons_stats *s);

void call_messages_post(struct call *c);
void call_envelopes_post(struct call *c);
void call_delegate_post(struct call *c);
void call_delegations_get(struct call *c);
void call_route_post(struct call *c);
void call_gate_post(struct call *c);
void call_decisions_list(struct call *c);
void call_decisions_get(struct call *c);
void call_tasks_list(struct call *c);
void call_tasks_get(struct call *c);
void call_tasks_events(struct call *c);
void call_tasks_tree(struct call *c);
void call_trees_list(struct call *c);
void call_tasks_cancel(struct call *c);
void call_tasks_input(struct call *c);
void call_conversations_get(struct call *c);
void call_agents_list(struct call *c);
void call_analytics_get(struct call *c);
void call_gate_get(struct call *c);
void call_gate_graph(struct call *c);
void call_gate_audit_get(struct call *c);
void call_gate_audit_post(struct call *c);
void metrics_gate(struct buf *out, struct calls *calls);
void study_free(struct study *s); /* NULL is fine */
void hunt_free(struct hunt *h);   /* likewise */
void call_agents_get(struct call *c);
void call_agents_post(struct call *c);
void call_agents_put(struct call *c);
void call_agents_patch(struct call *c);
void call_agents_delete(struct call *c);
void call_agents_wake(struct call *c);
void call_agents_restart(struct call *c);
void call_agents_pause(struct call *c);
void call_agents_resume(struct call *c);
void call_agents_figures(struct call *c);
void call_fleet_get(struct call *c);
void call_holds_list(struct call *c);
void call_escalations_list(struct call *c);
void call_escalations_get(struct call *c);
void call_escalations_approve(struct call *c);
void call_escalations_reject(struct call *c);
void call_escalations_redirect(struct call *c);
void call_search_get(struct call *c);
void call_search_post(struct call *c);
void call_grants_list(struct call *c);
void call_grants_post(struct call *c);
void call_grants_delete(struct call *c);
void call_commands_get(struct call *c);
void call_tools_get(struct call *c);
void call_decisions_override(struct call *c);
void call_decisions_feedback(struct call *c);
void call_learning_get(struct call *c);
void call_learning_export(struct call *c);
void call_learning_run(struct call *c);
void call_learning_reset(struct call *c);
void call_learning_void(struct call *c);
void call_learning_rebuild(struct call *c);
void call_ledger_balance(struct call *c);
void call_ledger_accounts(struct call *c);
void call_ledger_statement(struct call *c);
void call_ledger_topup(struct call *c);
void call_ledger_refund(struct call *c);
void call_ledger_payout(struct call *c);
void call_ledger_check(struct call *c);
void call_budgets_list(struct call *c);
void call_budgets_put(struct call *c);
void call_budgets_delete(struct call *c);
void books_free(struct books *b); /* NULL is fine */
void call_feed(struct call *c);
void call_config_get(struct call *c);
void call_config_reload(struct call *c);
void call_me(struct call *c);
void call_users_list(struct call *c);
void call_users_post(struct call *c);
void call_users_patch(struct call *c);
void call_users_delete(struct call *c);
void call_tokens_list(struct call *c);
void call_tokens_post(struct call *c);
void call_tokens_delete(struct call *c);

#endif
