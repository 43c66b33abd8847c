#ifndef SPEAK_SPEAK_H
#define SPEAK_SPEAK_H

/* speak: the first stage of the walk, from bytes to calls and back.
 *
 * Knows the external format and nothing about its meaning. Reading is strict:
 * an unknown field, a wrong type or a value beyond its limit is rejected with a
 * message that names the field and its valid values. A null field counts as
 * absent.
 *
 * Pure: no socket, no clock. Threads: any. */

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "model/advice.h"
#include "model/caller.h"
#include "model/card.h"
#include "model/envelope.h"
#include "model/feed.h"
#include "model/gate_result.h"
#include "model/input.h"
#include "model/msg.h"
#include "model/near.h"
#include "model/task.h"
#include "registry/index/index.h"
#include "speak/tree.h"

#define SPEAK_JSON   STR("application/json")
#define SPEAK_EVENTS STR("text/event-stream")

/* Write {"error":{"code","message","details"}}. An empty message stands for the
 * one of the table; details is a JSON object, {} when empty. */
void speak_error(struct buf *out, enum err e, struct str message,
                 struct str details);

/* The same with the message of the table and, unless empty, the exact reason:
 * "the request is malformed: the Host header is missing". */
void speak_refusal(struct buf *out, enum err e, struct str what);

/* Messages. */

#define SPEAK_COST_MAX \
    INT64_C(1000000000000000000) /* limit of max_cost_micros */

enum {
    SPEAK_WAIT_MAX_MS = 600 * 1000,
    SPEAK_WAIT_MS = 30 * 1000, /* default */
    SPEAK_TIMEOUT_MAX_MS = 24 * 3600 * 1000,
    SPEAK_MEANING_MAX = 2 * MSG_TEXT_MAX, /* room for the other fields */
};

/* "TRACE-SPAN" of a traceparent header, borrowed; empty for a malformed one. */
struct str speak_traceparent(struct str header);

/* Read the body of POST /api/messages and the Idempotency-Key header (empty:
 * none) into m->call; everything is copied into m's arena. `canonical` gets the
 * bytes that an idempotency key stands for: the same for every body with the
 * same content, whatever its layout. On error m->why explains it: ERR_SYNTAX,
 * ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM; do not use m->call then. */
MUST_USE enum err speak_message(struct msg *m, struct str body,
                                struct str key_header, struct buf *canonical);

/* Envelopes are read in two steps, because the body does not decide on the
 * sender. */

/* Read an envelope: *out, with strings in m's arena or in the body; `from` and
 * message_id are empty where absent. The gate checks the timestamp. Errors as
 * in speak_message. */
MUST_USE enum err speak_envelope(struct msg *m, struct str body,
                                 struct envelope *out);

/* Copy the envelope, sent by e->from, into m->call and m's arena. The text is
 * the document verbatim, with `from` (unless has_from) and timestamp inserted
 * where absent. `canonical` as above. */
MUST_USE enum err speak_envelope_sent(struct msg *m, struct str body,
                                      const struct envelope *e, bool has_from,
                                      struct buf *canonical);

/* A call without parameters: an empty body, or {}. */
MUST_USE enum err speak_nothing(struct str body, struct why *why);

/* Requests on users and tokens. Strings are in the arena or in the body. */

struct speak_user_call {
    struct str name;
    enum role role;        /* zero: absent */
    struct str org, owner; /* a NULL pointer: absent; empty: none */
};

/* POST needs a name. PATCH takes role, org or owner and no name. */
MUST_USE enum err speak_user_post(struct arena *a, struct str body,
                                  struct speak_user_call *out, struct why *why);
MUST_USE enum err speak_user_patch(struct arena *a, struct str body,
                                   struct speak_user_call *out,
                                   struct why *why);

enum { SPEAK_LABEL_MAX = 128, SPEAK_EXPIRES_MAX_S = 10 * 366 * 24 * 3600 };

struct speak_token_call {
    struct str user, label; /* empty: absent */
    unsigned scopes;        /* zero: absent */
    int64_t expires_in_s;   /* zero: never */
};

MUST_USE enum err speak_token_post(struct arena *a, struct str body,
                                   struct speak_token_call *out,
                                   struct why *why);

enum { SPEAK_TAGS_MAX = 16, SPEAK_ETAG_BYTES = 32 };

struct speak_tag {
    int64_t revision; /* zero: well-formed, but not one of ours */
    bool is_weak;
};

struct speak_tags {
    bool is_given;
    bool is_any; /* "*" */
    struct speak_tag list[SPEAK_TAGS_MAX];
    size_t n;
};

/* Read If-Match or If-None-Match; a NULL pointer: no such header.
 * ERR_BAD_REQUEST, explained in why. */
MUST_USE enum err speak_tags(struct str name, struct str header,
                             struct speak_tags *out, struct why *why);

/* Whether a tag matches the revision. A weak tag is enough to see whether it is
 * still the same, but not to overwrite it. */
bool speak_tags_have(const struct speak_tags *t, int64_t revision,
                     bool weak_will_do);

struct str speak_etag(int64_t revision, char out[SPEAK_ETAG_BYTES]);

/* Searches and grants. Strings are in the arena, in the body or in the
 * arguments. */

enum {
    SPEAK_QUERY_MAX = 16 * 1024,
    SPEAK_HITS = 10, /* default limit */
    SPEAK_HITS_MAX = 100,
};

struct speak_search_call {
    struct str text;
    int64_t limit;
    enum index_mode mode;
    bool has_fusion; /* it was given */
    enum index_fusion fusion;
    bool has_order; /* it was given */
    bool is_plain;
    bool explains;
    struct str tag, org;    /* empty: any */
    enum agent_state state; /* zero: any */
    int64_t max_price;      /* -1: any */
    double min_score;
};

/* Read the body of a POST, or the arguments of a GET: the values of
 * speak_search_args, where a NULL pointer is absent. ERR_SYNTAX,
 * ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM, explained in why. */
MUST_USE enum err speak_search_post(struct arena *a, struct str body,
                                    struct speak_search_call *out,
                                    struct why *why);
MUST_USE enum err speak_search_get(const struct str *values,
                                   struct speak_search_call *out,
                                   struct why *why);

struct speak_grant_call {
    struct str agent, user, org; /* one of user and org; the other is empty */
    int64_t expires_in_s;        /* zero: never */
};

MUST_USE enum err speak_grant_post(struct arena *a, struct str body,
                                   struct speak_grant_call *out,
                                   struct why *why);

/* Corrections of a decision, and of learning. */

enum { SPEAK_COMMENT_MAX = 500 };

struct speak_word {
    struct str agent;     /* the right agent; empty: absent */
    enum verdict verdict; /* of feedback: positive or negative */
    struct str comment;
    /* of an override: send the rejected message to that agent now */
    bool sends;
};

MUST_USE enum err speak_override(struct arena *a, struct str body,
                                 struct speak_word *out, struct why *why);
MUST_USE enum err speak_feedback(struct arena *a, struct str body,
                                 struct speak_word *out, struct why *why);

/* The answer to a question of an agent. input_may_be_answered decides whether
 * it fits the question. */

struct speak_input {
    struct str input_id;
    struct input_answer answer;
};

MUST_USE enum err speak_input(struct arena *a, struct str body,
                              struct speak_input *out, struct why *why);

/* Decisions on escalations. */

enum { SPEAK_DECIDED_MAX = 2000 };

struct speak_decided {
    struct str agent; /* of redirect, which requires it */
    struct str comment;
};

MUST_USE enum err speak_decided(struct arena *a, struct str body,
                                bool wants_agent, struct speak_decided *out,
                                struct why *why);

/* Reset learning of one agent, or of all (*agent is then empty). The body must
 * say which, so that an agent name that came out empty does not reset
 * everything. */
MUST_USE enum err speak_learning_reset(struct arena *a, struct str body,
                                       struct str *agent, struct why *why);

/* Void verdicts: {"user":"bob"} or {"owner":"mallory"}. */
struct speak_void {
    struct str name; /* at most PRINCIPAL_NAME_MAX bytes */
    bool is_owner;
};
MUST_USE enum err speak_learning_void(struct arena *a, struct str body,
                                      struct speak_void *out, struct why *why);

/* Money: POST /api/ledger/topup, refund, payout. */

enum { SPEAK_NOTE_MAX = 256 };
#define SPEAK_AMOUNT_MAX INT64_C(1000000000000000000) /* micro-units */

enum speak_money { SPEAK_TOPUP, SPEAK_REFUND, SPEAK_PAYOUT };

struct speak_money_call {
    struct str user;
    int64_t amount_micros;
    struct str note, key; /* empty: none */
    struct str task_id;   /* of a refund, instead of user; amount_micros may be
                           * zero then, for the whole cost. Else empty */
    int64_t turn;         /* zero: absent */
};

/* key_header: Idempotency-Key, a NULL pointer where absent. `canonical` as in
 * speak_message. ERR_SYNTAX, ERR_BAD_REQUEST, ERR_NOMEM, explained in why. */
MUST_USE enum err speak_money_post(struct arena *a, enum speak_money what,
                                   struct str body, struct str key_header,
                                   struct speak_money_call *out,
                                   struct buf *canonical, struct why *why);

/* Budgets: PUT /api/budgets, and the query of DELETE. */

struct speak_budget_call {
    struct str user, org, agent; /* at most one of them */
    struct str kind;             /* of DELETE: "user" or "self", or empty */
    struct str period;           /* "day" or "month" */
    int64_t limit_micros;        /* -1: absent */
};
MUST_USE enum err speak_budget_put(struct arena *a, struct str body,
                                   struct speak_budget_call *out,
                                   struct why *why);
MUST_USE enum err speak_budget_check(const struct speak_budget_call *b,
                                     struct why *why);

struct speak_budget {
    struct str kind, name, period, by;
    int64_t limit_micros, used_micros, resets_ms, updated_ms;
    bool is_warned;
};
void speak_budget(struct json_out *o, const struct speak_budget *b);

/* Combine the Idempotency-Key header with the key of the body, which *key holds
 * on entry. ERR_BAD_REQUEST, ERR_NOMEM, explained in why. */
MUST_USE enum err speak_key(struct arena *a, struct str header, struct str *key,
                            struct why *why);

/* Delegation requests. Strings are in the arena. */

struct speak_order {
    int64_t max_cost; /* micro-units; negative: absent */
    struct str agent, message, skill;
    struct str session_id;   /* of agent.send_task */
    struct str task_session; /* session of the task that it is part of */
    struct str session_key;  /* del_…, to continue that delegation */
    struct str task_id;      /* for a further turn of that task */
    struct str parent_id;    /* parent task, as the agent states it */
    struct str metadata;     /* of the agent; an object, or empty */
    struct str idempotency_key;
    enum delegation_mode mode;
    int64_t timeout_ms; /* of the work; zero: absent */
    int64_t wait_ms;    /* of the requester in sync mode */
    bool is_stream, goes_on;
    bool says_line, ends_with_line; /* onDisconnect was given; "cancel" */
};

struct speak_orders {
    struct speak_order list[DELEGATION_AT_ONCE_MAX];
    size_t n;
    bool is_many; /* "tasks" was given; the answer is a list as well */
    struct str idempotency_key; /* given next to "tasks" */
};

/* The params of agent.send_task, and of agent.delegate or the body of POST
 * /api/delegate. ERR_SYNTAX, ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM; the message
 * names the field. */
MUST_USE enum err speak_send_task(struct arena *a, struct str body,
                                  struct speak_orders *out, struct why *why);
MUST_USE enum err speak_delegate(struct arena *a, struct str body,
                                 struct speak_orders *out, struct why *why);

/* Output. A function that writes members writes them into an open object. */

enum { SPEAK_CANDIDATES = 5 }; /* of a decision that is not whole */

enum speak_length {
    SPEAK_BRIEF,  /* with the answer to a message */
    SPEAK_LISTED, /* without candidates, with request and outcome */
    SPEAK_WHOLE,  /* enough to decide again */
};

/* The members of a decision. */
void speak_decision(struct json_out *o, const struct decision *d,
                    enum speak_length length);

/* Read a SPEAK_WHOLE decision back, except for the vector; strings are in the
 * document or in the arena. ERR_BAD_REQUEST: not a decision, or not whole;
 * ERR_NOMEM: the arena is full. */
MUST_USE enum err speak_decision_read(struct arena *a, const struct json *v,
                                      struct decision *out);

/* The gate's answer to a message. */
struct speak_passed {
    struct str message_id;
    const struct envelope *envelope;
    const struct gate_result *gate_result;
    struct str original_to;            /* empty: envelope->to */
    struct str target;                 /* new recipient; empty: unchanged */
    int64_t at_ms;                     /* time of the answer */
    bool is_logged;                    /* it is or will be in the feed */
    struct str task_id, escalation_id; /* empty: none */
    struct str status;                 /* of the task; empty: no task */
};

/* Its members: those of a routing decision, then rule, held_until and more. */
void speak_pass(struct json_out *o, const struct speak_passed *s);

/* "candidates":[…], the best first. */
void speak_candidates(struct json_out *o, const struct candidate *list,
                      size_t n, enum speak_length length);

/* The members of the answer to a message: the current turn of t, and the
 * decision as JSON; empty: no longer known. */
void speak_answer(struct json_out *o, const struct task *t,
                  struct str decision);

/* The same without the decision. */
void speak_result(struct json_out *o, const struct task *t);

/* The members of a task, without its earlier turns. */
void speak_task(struct json_out *o, const struct task *t);

/* The members of a delegation.result notification: t is finished, in the turn
 * in question. `key` for a delegation that was not two-phase; else
 * original_id. */
void speak_delegation_result(struct json_out *o, struct str key,
                             struct str original_id, const struct task *t);

/* The members of the answer to agent.delegate and delegation.get: the state of
 * t, "accepted" until it is finished. An empty key: none. */
void speak_delegated(struct json_out *o, struct str key, const struct task *t);

/* The same when the wait timed out, and for a delegation that has only
 * started. */
void speak_delegation_timeout(struct json_out *o, struct str key,
                              struct str task_id, int64_t wait_ms);
void speak_delegation_accepted(struct json_out *o, struct str key,
                               struct str task_id);

/* The same for a rejected item in a list of requests. */
void speak_delegation_refused(struct json_out *o, enum err e, struct str words,
                              struct str details);

/* A turn earlier than the one in the row of the task. */
void speak_turn(struct json_out *o, const struct task *t, int64_t began_ms);

/* {"items":[ … ],"next_cursor":…}; an empty cursor is null. */
void speak_list_open(struct json_out *o);
void speak_list_close(struct json_out *o, struct str next_cursor);

/* Commands for agents, in text and in the menus of chat platforms
 * (speak_menu.c). A menu takes at most SPEAK_MENU_MAX commands of
 * SPEAK_COMMAND_MAX bytes. */
enum { SPEAK_MENU_MAX = 100, SPEAK_COMMAND_MAX = 32 };

struct speak_command {
    const struct agent *agent;
    struct str menu; /* its menu command; empty: not in the menu */
    struct str why;  /* reason for that */
};

/* {"command","agent","description","menu"}, and "left_out" where menu is
 * null. */
void speak_command(struct json_out *o, const struct speak_command *c);

/* "/name - description" and a newline. */
void speak_command_line(struct buf *out, const struct speak_command *c);

/* The body of Telegram's setMyCommands, and of Discord's PUT …/commands: the
 * first SPEAK_MENU_MAX agents that have a menu command. */
void speak_telegram_menu(struct json_out *o, const struct speak_command *list,
                         size_t n);
void speak_discord_menu(struct json_out *o, const struct speak_command *list,
                        size_t n);

/* A card and its state. The members of the old list (name, url and title) are
 * always present. */
struct speak_agent {
    const struct agent *agent;
    enum card_view view;
    enum agent_state state;
    bool is_embedded, is_paused;
    struct str state_reason;        /* empty: null */
    size_t n_reports;               /* zero: left out */
    const struct advice *advice;    /* its warnings; NULL: left out */
    bool says_changed, has_changed; /* in the answer to a registration */
};

void speak_agent(struct json_out *o, const struct speak_agent *a);

/* The short form for long lists: no card, and only the number of skills. */
struct speak_brief {
    const struct agent *agent;
    struct str description; /* the beginning of the description */
    enum agent_state state;
    struct str state_reason; /* empty: null */
    bool is_paused;
    bool shows_review; /* shown to its creator and admins */
    size_t n_reports;  /* zero: left out */
};

void speak_agent_brief(struct json_out *o, const struct speak_brief *b);

/* The problems of a card, for the details of an error:
 * {"problems":[{"pointer","message"}],"total":n}. */
void speak_problems(struct json_out *o, const struct card_problems *p);

/* {"nearest":["a","b"]}, for the details of ERR_AGENT_NOT_FOUND. */
void speak_nearest(struct json_out *o, const struct near *near);

/* The body of a review: approval by an admin (the revision), rejection or
 * hiding by an admin (optional reason and revision), or a report of a user (a
 * reason). */
enum speak_review_kind { SPEAK_APPROVAL, SPEAK_OBJECTION, SPEAK_REPORT };

struct speak_review {
    struct str reason;
    int64_t revision; /* zero: absent */
};

MUST_USE enum err speak_review(struct arena *a, struct str body,
                               enum speak_review_kind kind,
                               struct speak_review *out, struct why *why);

void speak_grant(struct json_out *o, struct str agent,
                 const struct agent_grant *g);

/* The results of a search. */
struct speak_hit {
    const struct agent *agent;
    enum agent_state state;
    double score;
    const struct index_match *matches;
    size_t n_matches;
};

struct speak_hits {
    const struct speak_hit *list;
    size_t n;
    size_t total;         /* agents found; n of them are listed */
    enum index_mode mode; /* the mode that was used */
    struct str note;      /* empty: none */
    /* no further agent beyond this size; the note mentions it */
    size_t max_bytes;
    /* For explain. */
    bool explains;
    struct str text; /* of the query */
    enum index_fusion fusion;
    double semantic_weight, text_weight;
};

void speak_hits(struct json_out *o, const struct speak_hits *h);

void speak_conversation(struct json_out *o, struct str id, struct str agent,
                        int64_t created_ms, int64_t used_ms);
void speak_me(struct json_out *o, const struct caller *c);

struct speak_user {
    struct str name;
    enum role role;
    struct str org, owner; /* empty: none */
    int64_t created_ms;
};

void speak_user(struct json_out *o, const struct speak_user *u);

struct speak_token {
    struct str id, user, label;
    unsigned scopes;
    int64_t created_ms, expires_ms; /* expires_ms zero: never */
    struct str secret; /* only just after it was made; else empty */
};

void speak_token(struct json_out *o, const struct speak_token *t);

/* Empty strings are null, empty data is {}. */
void speak_entry(struct json_out *o, const struct feed_entry *e);

/* The feed ends at `newest`, which is before the position that the client
 * gave. */
void speak_feed_gap(struct json_out *o, int64_t after, int64_t newest);

/* Server-sent events. Open an event, write its data as one JSON document, close
 * it. Newlines in the data are replaced. */
struct speak_event {
    struct buf *out;
    size_t data_at;
};

/* An empty id: no id. */
struct speak_event speak_event_open(struct buf *out, struct str id,
                                    struct str type);
void speak_event_close(const struct speak_event *e);

/* "EPOCH-NUMBER": the last event of a task that a client has seen. */
struct speak_place {
    int64_t epoch, number;
};

enum { SPEAK_PLACE_BYTES = 48 };

MUST_USE enum err speak_place_read(struct str s, struct speak_place *out);
struct str speak_place_write(const struct speak_place *p,
                             char out[SPEAK_PLACE_BYTES]);

/* A table of figures, as JSON (an array of objects) or as CSV. Columns are
 * names that end in NULL; cells are written one by one, row by row. A number
 * that is not finite is null in JSON and empty in CSV. */
struct sheet {
    struct buf *out;
    bool is_csv;
    struct json_out json;
    const char *const *columns;
    size_t at; /* next column */
    bool is_within;
};

void sheet_open(struct sheet *s, struct buf *out, bool is_csv,
                const char *const *columns);
void sheet_close(struct sheet *s);
void sheet_row(struct sheet *s);
void sheet_end_row(struct sheet *s);
void sheet_str(struct sheet *s, struct str v);
void sheet_strs(struct sheet *s, const struct str *list, size_t n,
                bool is_list);
void sheet_int(struct sheet *s, int64_t v);
void sheet_real(struct sheet *s, double v);
void sheet_none(struct sheet *s);

/* A string, or none if it is empty. In CSV only: micro-units as units with six
 * decimals, exactly. */
void sheet_str_or_none(struct sheet *s, struct str v);
void sheet_micros(struct sheet *s, int64_t v);

/* One line of a statement of account. CSV has two more columns for people: the
 * date, and the amount in units. */
struct speak_line {
    int64_t seq, at_ms;
    struct str posting, kind, account;
    int64_t amount_micros;
    struct str task_id; /* empty: none, and no turn either */
    int64_t turn;
    struct str agent, skill, by, note;
    struct str state; /* of a reservation: its outcome; else empty */
};

/* The result of a check of the books. */
struct speak_books {
    int64_t n_accounts, n_entries, n_postings, n_turns;
    int64_t n_reserved, reserved_micros, owed_micros;
    int64_t n_problems;
    const struct why *problems; /* the first of them */
    size_t n_shown;
};

void speak_books(struct json_out *o, const struct speak_books *b);

const char *const *speak_line_columns(bool is_csv);
void speak_line(struct sheet *s, const struct speak_line *l);

/* Decode %XX (and '+' as a space, where plus_is_space) into the arena.
 * ERR_SYNTAX: a '%' without two hex digits, a control character, or invalid
 * UTF-8. */
MUST_USE enum err speak_percent(struct arena *a, struct str s,
                                bool plus_is_space, struct str *out);

/* Whether an Accept header asks for this media type by name. */
bool speak_accepts(struct str header, struct str type);

/* Write the details of the error that m was rejected with. May write
 * nothing. */
void speak_refusal_details(struct buf *out, const struct msg *m);

enum { SPEAK_REFUSAL_MAX = 8 * 1024 }; /* maximal size of these details */

#endif
