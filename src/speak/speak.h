#ifndef SPEAK_SPEAK_H
#define SPEAK_SPEAK_H

/* speak: bytes to calls and back, the first room of the walk.
 *
 * Knows how things are said to clients and nothing about what they mean.
 * Reading is strict: a field that is not known, of another type or beyond its
 * limit is refused in words that name it and say what would be right. A field
 * that is null counts as not given. Pure: no socket, no clock. Threads: any.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "index/index.h"
#include "model/advice.h"
#include "model/caller.h"
#include "model/card.h"
#include "model/envelope.h"
#include "model/input.h"
#include "model/msg.h"
#include "model/near.h"
#include "model/pass.h"
#include "model/task.h"
#include "speak/tree.h"

#define SPEAK_JSON   STR("application/json")
#define SPEAK_EVENTS STR("text/event-stream")

/* Errors. */

/* Write {"error":{"code","message","details"}}. An empty message is the
 * table's wording; details is a JSON object as it stands, {} when empty. */
void speak_error(struct buf *out, enum err e, struct str message,
                 struct str details);

/* The same with the table's wording and, if it is known, what exactly was
 * wrong: "the request is malformed: the Host header is missing". */
void speak_refusal(struct buf *out, enum err e, struct str what);

/* Messages in. */

#define SPEAK_COST_MAX INT64_C(1000000000000000000) /* of max_cost_micros */

enum {
    SPEAK_WAIT_MAX_MS = 600 * 1000,
    SPEAK_WAIT_MS = 30 * 1000, /* when it is not said */
    SPEAK_TIMEOUT_MAX_MS = 24 * 3600 * 1000,
    SPEAK_MEANING_MAX = 2 * MSG_TEXT_MAX, /* room for what follows */
};

/* "TRACE-SPAN" of a traceparent header, borrowed; empty: it is none. */
struct str speak_traceparent(struct str header);

/* Read the body of POST /api/messages, and the Idempotency-Key header (empty:
 * none), into m->call; everything is copied into m's arena. `meaning` gets
 * what an idempotency key stands for: the same bytes for every body that says
 * the same, however it is laid out. On error m->why says what to do:
 * ERR_SYNTAX, ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM; m->call is then of no
 * use. */
MUST_USE enum err speak_message(struct msg *m, struct str body,
                                struct str key_header, struct buf *meaning);

/* Envelopes in, in two steps, since who sends it is not for the body to say. */

/* Read one: *out, with strings in m's arena or in the body; `from` and
 * message_id are empty where they were not said. How far off its timestamp may
 * be is the gate's to say. Errors as speak_message. */
MUST_USE enum err speak_envelope(struct msg *m, struct str body,
                                 struct envelope *out);

/* It is from e->from: into m->call, everything copied into m's arena. The text
 * is the document as it stands, and what was left out of from (has_from) and
 * timestamp put in. `meaning` as above. */
MUST_USE enum err speak_envelope_sent(struct msg *m, struct str body,
                                      const struct envelope *e, bool has_from,
                                      struct buf *meaning);

/* The body of a call that takes none: nothing, or {}. */
MUST_USE enum err speak_nothing(struct str body, struct why *why);

/* Users and tokens in. Strings lie in the arena or in the body. */

struct speak_user_call {
    struct str name;
    enum role role;        /* zero: not given */
    struct str org, owner; /* a NULL pointer: not given; empty: none */
};

/* POST: the name is needed. PATCH: role, org or owner, no name. */
MUST_USE enum err speak_user_post(struct arena *a, struct str body,
                                  struct speak_user_call *out, struct why *why);
MUST_USE enum err speak_user_patch(struct arena *a, struct str body,
                                   struct speak_user_call *out,
                                   struct why *why);

enum { SPEAK_LABEL_MAX = 128, SPEAK_EXPIRES_MAX_S = 10 * 366 * 24 * 3600 };

struct speak_token_call {
    struct str user, label; /* empty: not given */
    unsigned scopes;        /* zero: not given */
    int64_t expires_in_s;   /* zero: never */
};

MUST_USE enum err speak_token_post(struct arena *a, struct str body,
                                   struct speak_token_call *out,
                                   struct why *why);

/* Conditions in headers. */

enum { SPEAK_TAGS_MAX = 16, SPEAK_ETAG_BYTES = 32 };

struct speak_tag {
    int64_t revision; /* zero: well-formed, but none that we give */
    bool is_weak;
};

struct speak_tags {
    bool is_given;
    bool is_any; /* "*" */
    struct speak_tag list[SPEAK_TAGS_MAX];
    size_t n;
};

/* Read If-Match or If-None-Match; a NULL pointer: it is not there.
 * ERR_BAD_REQUEST with words. */
MUST_USE enum err speak_tags(struct str name, struct str header,
                             struct speak_tags *out, struct why *why);

/* Whether a thing of that revision is meant. Weak ones will do to find out
 * whether it is still the same, and not to write over it. */
bool speak_tags_have(const struct speak_tags *t, int64_t revision,
                     bool weak_will_do);

struct str speak_etag(int64_t revision, char out[SPEAK_ETAG_BYTES]);

/* Searches and grants in. Strings lie in the arena, in the body or in the
 * arguments. */

enum {
    SPEAK_QUERY_MAX = 16 * 1024,
    SPEAK_HITS = 10, /* when no limit is said */
    SPEAK_HITS_MAX = 100,
};

struct speak_search_call {
    struct str text;
    int64_t limit;
    enum index_mode mode;
    bool has_fusion; /* it was said */
    enum index_fusion fusion;
    bool has_order; /* it was said */
    bool is_plain;
    bool explains;
    struct str tag, org;    /* empty: any */
    enum agent_state state; /* zero: any */
    int64_t max_price;      /* -1: any */
    double min_score;
};

/* From the body of a POST, or from the arguments of a GET: names ends in NULL,
 * and a value that is not there is a NULL pointer. ERR_SYNTAX,
 * ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM with words. */
MUST_USE enum err speak_search_post(struct arena *a, struct str body,
                                    struct speak_search_call *out,
                                    struct why *why);
MUST_USE enum err speak_search_get(const char *const *names,
                                   const struct str *values,
                                   struct speak_search_call *out,
                                   struct why *why);

struct speak_grant_call {
    struct str agent, user, org; /* one of user and org; the other is empty */
    int64_t expires_in_s;        /* zero: never */
};

MUST_USE enum err speak_grant_post(struct arena *a, struct str body,
                                   struct speak_grant_call *out,
                                   struct why *why);

/* What is said of a decision, and of learning. */

enum { SPEAK_COMMENT_MAX = 500 };

struct speak_word {
    struct str agent;     /* that it should have gone to; empty: not said */
    enum verdict verdict; /* of feedback: positive or negative */
    struct str comment;
    bool sends; /* of an override: the refused message goes to that agent now */
};

MUST_USE enum err speak_override(struct arena *a, struct str body,
                                 struct speak_word *out, struct why *why);
MUST_USE enum err speak_feedback(struct arena *a, struct str body,
                                 struct speak_word *out, struct why *why);

/* What is said to what an agent asked. Whether it is an answer to that is
 * input_may_be_answered's to say. */

struct speak_input {
    struct str input_id;
    struct input_answer answer;
};

MUST_USE enum err speak_input(struct arena *a, struct str body,
                              struct speak_input *out, struct why *why);

/* What is said to an escalation. */

enum { SPEAK_DECIDED_MAX = 2000 };

struct speak_decided {
    struct str agent; /* of redirect, which needs one */
    struct str comment;
};

MUST_USE enum err speak_decided(struct arena *a, struct str body,
                                bool wants_agent, struct speak_decided *out,
                                struct why *why);

/* An agent, or all that was learnt: *agent is then empty. One of the two is
 * said, so that nobody loses everything by a name that came out empty. */
MUST_USE enum err speak_learning_reset(struct arena *a, struct str body,
                                       struct str *agent, struct why *why);

/* Verdicts to be voided: {"user":"bob"} or {"owner":"mallory"}. */
struct speak_void {
    struct str name; /* PRINCIPAL_NAME_MAX bytes at most */
    bool is_owner;
};
MUST_USE enum err speak_learning_void(struct arena *a, struct str body,
                                      struct speak_void *out, struct why *why);

/* Money in: POST /api/ledger/topup, refund, payout. */

enum { SPEAK_NOTE_MAX = 256 };
#define SPEAK_AMOUNT_MAX INT64_C(1000000000000000000) /* micro-units */

enum speak_money { SPEAK_TOPUP, SPEAK_REFUND, SPEAK_PAYOUT };

struct speak_money_call {
    struct str user;
    int64_t amount_micros;
    struct str note, key; /* empty: none */
    struct str task_id;   /* of a refund, in place of user; amount_micros may
                           * be zero then, for all of it. Else empty */
    int64_t turn;         /* zero: not said */
};

/* key_header: Idempotency-Key, a NULL pointer where it is not there. `meaning`
 * gets what the key stands for. ERR_SYNTAX, ERR_BAD_REQUEST, ERR_NOMEM, with
 * words. */
MUST_USE enum err speak_money_post(struct arena *a, enum speak_money what,
                                   struct str body, struct str key_header,
                                   struct speak_money_call *out,
                                   struct buf *meaning, struct why *why);

/* Budgets: PUT /api/budgets, and the query of DELETE. */

struct speak_budget_call {
    struct str user, org, agent; /* one of them, or none */
    struct str period;           /* "day" or "month" */
    int64_t limit_micros;        /* -1: not said */
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

/* The Idempotency-Key header and what the body says, made one: *key is what
 * was said in the body. ERR_BAD_REQUEST, ERR_NOMEM, with words. */
MUST_USE enum err speak_key(struct arena *a, struct str header, struct str *key,
                            struct why *why);

/* What an agent wants another to do. Strings lie in the arena. */

struct speak_order {
    int64_t max_cost; /* micro-units; below zero: not said */
    struct str agent, message, skill;
    struct str session_id;   /* agent.send_task's */
    struct str task_session; /* of the task that it is part of */
    struct str session_key;  /* del_…, to go on with */
    struct str task_id;      /* a further turn of it */
    struct str parent_id;    /* what it is part of, as they say */
    struct str metadata;     /* their own; an object, or empty */
    struct str idempotency_key;
    enum delegation_mode mode;
    int64_t timeout_ms; /* of the work; zero: not said */
    int64_t wait_ms;    /* of who asks, where the mode is sync */
    bool is_stream, goes_on;
    bool says_line, ends_with_line; /* onDisconnect was said: "cancel" */
};

struct speak_orders {
    struct speak_order list[DELEGATION_AT_ONCE_MAX];
    size_t n;
    bool is_many;               /* "tasks": so is the answer */
    struct str idempotency_key; /* said beside "tasks" */
};

/* The params of agent.send_task; and of agent.delegate, or the body of POST
 * /api/delegate. ERR_SYNTAX, ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM with words
 * that name the field. */
MUST_USE enum err speak_send_task(struct arena *a, struct str body,
                                  struct speak_orders *out, struct why *why);
MUST_USE enum err speak_delegate(struct arena *a, struct str body,
                                 struct speak_orders *out, struct why *why);

/* Out. Those that write members do so into an object that is open. */

/* Decisions. */

enum { SPEAK_CANDIDATES = 5 }; /* of one, where it is not whole */

enum speak_length {
    SPEAK_BRIEF,  /* with the answer to a message */
    SPEAK_LISTED, /* without candidates, with what was asked and what came of
                   * it */
    SPEAK_WHOLE,  /* enough to decide again */
};

/* The members of a decision. */
void speak_decision(struct json_out *o, const struct decision *d,
                    enum speak_length length);

/* Back from SPEAK_WHOLE, but for the vector; strings are the document's or in
 * the arena. ERR_BAD_REQUEST: it is none, or not whole; ERR_NOMEM. */
MUST_USE enum err speak_decision_read(struct arena *a, const struct json *v,
                                      struct decision *out);

/* What the gate said of a message. */
struct speak_passed {
    struct str message_id;
    const struct envelope *envelope;
    const struct pass *pass;
    struct str original_to;            /* empty: who the envelope is for */
    struct str target;                 /* where it goes; empty: the same */
    int64_t at_ms;                     /* when it was said */
    bool is_logged;                    /* it is, or will be, in the feed */
    struct str task_id, escalation_id; /* empty: none */
    struct str status;                 /* of the task; empty: it has none */
};

/* Its members: those of a routing decision, then rule, held_until and more. */
void speak_pass(struct json_out *o, const struct speak_passed *s);

/* "candidates":[…], the best first. */
void speak_candidates(struct json_out *o, const struct candidate *list,
                      size_t n, enum speak_length length);

/* The members of the answer to a message: the turn that is in t, and how its
 * agent was found, as JSON; empty: that is not known any more. */
void speak_answer(struct json_out *o, const struct task *t,
                  struct str decision);

/* The same without the decision. */
void speak_result(struct json_out *o, const struct task *t);

/* The members of a task, all but its earlier turns. */
void speak_task(struct json_out *o, const struct task *t);

/* The members of what is told of a delegation by delegation.result: t is over,
 * in the turn that it is about. `key` where it was not asked for in two
 * phases; else original_id. */
void speak_delegation_result(struct json_out *o, struct str key,
                             struct str original_id, const struct task *t);

/* The members of the answer to agent.delegate and delegation.get: how it
 * stands with t, "accepted" while that is not over. An empty key: none. */
void speak_delegated(struct json_out *o, struct str key, const struct task *t);

/* The same of one that was not waited for long enough, and of one that is
 * begun only. */
void speak_delegation_timeout(struct json_out *o, struct str key,
                              struct str task_id, int64_t wait_ms);
void speak_delegation_accepted(struct json_out *o, struct str key,
                               struct str task_id);

/* And of one that was refused, among others that were not. */
void speak_delegation_refused(struct json_out *o, enum err e, struct str words,
                              struct str details);

/* A turn before the one in the task's row. */
struct speak_turn {
    int64_t number;
    struct str message_id, text, metadata;
    int64_t began_ms, finished_ms;
    int64_t price_micros; /* zero: none, and nothing is said of it */
    struct task_result result;
};

void speak_turn(struct json_out *o, const struct speak_turn *turn);

/* {"items":[ … ],"next_cursor":…}; an empty cursor is null. */
void speak_list_open(struct json_out *o);
void speak_list_close(struct json_out *o, struct str next_cursor);

/* The commands that agents go by in a text and in the menus of chat platforms
 * (menu.c). Menus take at most so many, and commands of so many bytes. */
enum { SPEAK_MENU_MAX = 100, SPEAK_COMMAND_MAX = 32 };

struct speak_command {
    const struct agent *agent;
    struct str menu; /* its command in menus; empty: it has no place there */
    struct str why;  /* why not */
};

/* {"command","agent","description","menu"}, and "left_out" where that is
 * null. */
void speak_command(struct json_out *o, const struct speak_command *c);

/* "/name - what it does", and a line end. */
void speak_command_line(struct buf *out, const struct speak_command *c);

/* The body of Telegram's setMyCommands, and that of Discord's PUT …/commands,
 * of those that have a place, the first SPEAK_MENU_MAX of them. */
void speak_telegram_menu(struct json_out *o, const struct speak_command *list,
                         size_t n);
void speak_discord_menu(struct json_out *o, const struct speak_command *list,
                        size_t n);

/* A card with what else is known of it. The names of the old list, name, url
 * and title, are always there. */
struct speak_agent {
    const struct agent *agent;
    enum card_view view;
    enum agent_state state;
    bool is_embedded, is_paused;
    struct str state_reason;        /* empty: null */
    const struct advice *advice;    /* its warnings; NULL: not told */
    bool says_changed, has_changed; /* of who has just registered it */
};

void speak_agent(struct json_out *o, const struct speak_agent *a);

/* The same in a few words, for lists of many: no card, and of its skills how
 * many they are. */
struct speak_brief {
    const struct agent *agent;
    struct str description; /* the beginning of its own */
    enum agent_state state;
    struct str state_reason; /* empty: null */
    bool is_paused;
};

void speak_agent_brief(struct json_out *o, const struct speak_brief *b);

/* What is wrong with a card, for the details of an error:
 * {"problems":[{"pointer","message"}],"total":n}. */
void speak_problems(struct json_out *o, const struct card_problems *p);

/* {"nearest":["a","b"]}, for the details of ERR_AGENT_NOT_FOUND. */
void speak_nearest(struct json_out *o, const struct near *near);

void speak_grant(struct json_out *o, struct str agent,
                 const struct agent_grant *g);

/* The answer to a search. */
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
    size_t total;         /* that were found, n of them listed */
    enum index_mode mode; /* as it was done */
    struct str note;      /* empty: none */
    size_t max_bytes;     /* no further agent after these; the note tells */
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
    struct str secret;              /* only when it was just made; else empty */
};

void speak_token(struct json_out *o, const struct speak_token *t);

/* An entry of the feed. Empty strings are null, empty data is {}. */
struct speak_entry {
    int64_t seq, at_ms;
    struct str type, task_id, conversation_id, agent, requester, root_user;
    struct str data;
};

void speak_entry(struct json_out *o, const struct speak_entry *e);

/* The feed ends at `newest`, before where somebody says they were. */
void speak_feed_gap(struct json_out *o, int64_t after, int64_t newest);

/* Server-sent events. An event is opened, its data written as one JSON
 * document, and closed; data that came with line ends of its own is made one
 * line. */
struct speak_event {
    struct buf *out;
    size_t data_at;
};

/* An empty id: the event has none. */
struct speak_event speak_event_open(struct buf *out, struct str id,
                                    struct str type);
void speak_event_close(const struct speak_event *e);

/* "EPOCH-NUMBER", where somebody was in the events of a task. */
struct speak_place {
    int64_t epoch, number;
};

enum { SPEAK_PLACE_BYTES = 48 };

MUST_USE enum err speak_place_read(struct str s, struct speak_place *out);
struct str speak_place_write(const struct speak_place *p,
                             char out[SPEAK_PLACE_BYTES]);

/* A table of figures, as JSON (an array of objects) or as CSV: the names of
 * its columns, ending in NULL, and then cell by cell, a row after the other. A
 * number that is none is null, or nothing. */
struct sheet {
    struct buf *out;
    bool is_csv;
    struct json_out json;
    const char *const *columns;
    size_t at; /* column that comes next */
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

/* A str or none where it is empty. In CSV alone: micro-units as units, with six
 * digits behind the point, to the last of them. */
void sheet_str_or_none(struct sheet *s, struct str v);
void sheet_micros(struct sheet *s, int64_t v);

/* One line of a statement of account. CSV has two columns more than JSON, for
 * people: when, and the amount in units. */
struct speak_line {
    int64_t seq, at_ms;
    struct str posting, kind, account;
    int64_t amount_micros;
    struct str task_id; /* empty: none, and no turn either */
    int64_t turn;
    struct str agent, skill, by, note;
    struct str state; /* of a reserve: what became of it; else empty */
};

/* What a look through the books has found. */
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

/* Addresses. */

/* Undo %XX (and '+' for a space, where plus_is_space) into the arena.
 * ERR_SYNTAX: a '%' without two hex digits, a control character, or bytes
 * that are not UTF-8. */
MUST_USE enum err speak_percent(struct arena *a, struct str s,
                                bool plus_is_space, struct str *out);

/* Whether an Accept header asks for this media type by name. */
bool speak_accepts(struct str header, struct str type);

#endif
