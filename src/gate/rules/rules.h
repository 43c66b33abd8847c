#ifndef GATE_RULES_RULES_H
#define GATE_RULES_RULES_H

/* gate: from choose, to task. The second question of the walk: may the message
 * go now?
 *
 * The answer is a function of the rules, the view (agents, history), the
 * envelope and the time, and of nothing else. It has no side effects, covers
 * every input, and is the same for the same input. State that lasts longer than
 * one decision (history, held messages, open escalations) belongs to the
 * gatekeeper.
 *
 * The questions are asked in this order, and the first that answers decides:
 *
 *   repeated       the same message again                     DROP_SILENTLY
 *   superseded     a similar message came a moment ago        DROP_SILENTLY
 *   safety gate    the gate's agent is DEAD or ERROR  PAUSE_ALL_SUBMISSIONS
 *   escalations    a rule says that a person must see it  ESCALATE_TO_HUMAN
 *   target         the target is DEAD                     ESCALATE_TO_HUMAN
 *   prerequisites  something has not happened yet        HOLD_PENDING_INPUT
 *   freshness      the target's data is too old          HOLD_PENDING_INPUT
 *   capacity       the target is in ERROR, or is full HOLD_PENDING_CAPACITY
 *   else                                                  ROUTE_IMMEDIATELY
 *
 * URGENT skips the last three, and nothing else. A condition that cannot be
 * evaluated escalates the message to a person.
 *
 * Pure. Owns: the rules that were read. Threads: any; rules are constant once
 * they are read. */

#include "base/buf.h"
#include "model/agent.h"
#include "model/envelope.h"
#include "model/gate_result.h"

/* The rules. */

struct gate_rules;

enum {
    GATE_RULES_MAX = 10 * 1000,
    GATE_RULES_BYTES = 8 * 1024 * 1024, /* of the rules file */
    GATE_PROBLEMS_MAX = 20,             /* reported for one file */
    GATE_EVENTS_MAX = 64,               /* of one reference: the newest */
};

/* The problems of a rules file, one per line: "12:7: …". */
struct gate_problems {
    char text[8 * 1024];
    size_t n_bytes, n;
};

/* Read a rules file, JSON with comments. ERR_SYNTAX (not JSON), ERR_BAD_CONFIG
 * (not rules, or inconsistent rules; problems lists all that is wrong),
 * ERR_LIMIT, ERR_NOMEM; *out is then NULL. The text need not outlive the
 * call. */
MUST_USE enum err gate_rules_read(struct str text, struct gate_rules **out,
                                  struct gate_problems *problems);
void gate_rules_free(struct gate_rules *r);

/* The rules that apply without a rules file. Never free them. */
const struct gate_rules *gate_rules_none(void);

size_t gate_rules_count(const struct gate_rules *r);

/* The settings of a rules file besides its rules, for the gatekeeper and for
 * displays. Borrowed from the rules. */

struct gate_channel {
    struct str name;      /* "#alerts" */
    bool takes_feed;      /* decisions */
    bool takes_alerts;    /* escalations, pauses, reminders */
    struct str file;      /* path of the log file; empty: none */
    int64_t rotate_bytes; /* size at which a new file is started */
    int64_t keep;         /* number of old files kept */
    struct str webhook;   /* url; empty: none */
    enum channel_form { CHANNEL_JSON, CHANNEL_SLACK, CHANNEL_DISCORD } form;
};

/* How a failed agent is restarted, and which agent replaces it. */
struct gate_revival {
    struct str agent;
    int64_t attempts;  /* zero: the agent is not restarted */
    int64_t pause_ms;  /* after the first attempt; doubles each time */
    struct str backup; /* empty: none */
    bool is_auto; /* the backup takes over by itself; else a person is offered
                     it */
    /* The user who may hold the name, besides admins; empty: none. */
    struct str owner;
};

/* How open escalations are treated. */
struct gate_people {
    int64_t remind_ms; /* between reminders; zero: none */
    int64_t reminders; /* at most */
    int64_t expire_ms; /* zero: never */
    enum people_expiry {
        PEOPLE_REJECT,
        PEOPLE_APPROVE,
        PEOPLE_REDIRECT
    } on_expiry; /* PEOPLE_REDIRECT: to the backup, else reject */
};

/* Targets of the key figures. */
struct gate_targets {
    int64_t routed_per_hour;     /* at least; default 100 */
    int64_t hold_ms;             /* on average, of NORMAL; default 30 minutes */
    int64_t escalations_per_day; /* fewer than; default 5 */
    int64_t lost;                /* 0 */
};

struct gate_limits {
    int64_t most; /* held messages in total */
    int64_t most_per_agent;
    int64_t expire_ms; /* where the rule has no hold_for */
    enum gate_expiry on_expiry;
    int64_t future_ms; /* how far ahead of the clock a timestamp may be */
    int64_t age_ms;    /* how far behind; zero: any age */
    int64_t stale_ms;  /* an older timestamp is reported as stale */
};

struct gate_about {
    const struct gate_channel *channels;
    size_t n_channels;
    struct gate_people people;
    struct gate_targets targets;
    struct gate_limits limits;
    int64_t longest_ms; /* the longest time for which any rule looks back */
    struct strs agents; /* declared agents, sorted ignoring case */
};

const struct gate_about *gate_rules_about(const struct gate_rules *r);

/* The revival settings of an agent; without an entry in the file 3 attempts, a
 * pause of 10 s and no backup. The caller must look at the agent's card itself;
 * rules win over the card. */
struct gate_revival gate_revival_of(const struct gate_rules *r,
                                    struct str agent);

/* Whether the file declares the agent, so that the name belongs to the
 * operator. *owner: the user who may hold it besides admins; empty: the file
 * names none. */
bool gate_rules_name(const struct gate_rules *r, struct str agent,
                     struct str *owner);

/* The view: the state of agents and the past, lent by the caller. All three
 * callbacks must give the same answers for the duration of a call. */

struct gate_agent {
    struct str name;
    bool is_known; /* an agent of that name exists */
    enum agent_state state;
    bool may_try; /* state is ERROR, but the agent is due for another attempt */
    int64_t queue;      /* unfinished tasks that are not held */
    int64_t queue_max;  /* from the card or the settings; a rule wins */
    int64_t data_at_ms; /* time of its data; zero: unknown */
    struct str backup;  /* from the card; a rule wins */
    bool is_foreign; /* not the agent that the rules mean: a stranger holds the
                        name, or the sender's org may not see it. Counts as a
                        target; for gates, freshness and conditions it is
                        unknown */
    bool
        is_for_all; /* declared in the configuration: visible to every sender */
    int64_t version; /* a change means that visibility may have changed */
};

enum approval { APPROVAL_NONE, APPROVED, DISAPPROVED };

struct gate_event {
    struct str from, to, type;
    struct str message_id;
    struct str task_id; /* of that message; empty: unknown */
    int64_t at_ms;
    enum approval approved;
};

/* A fingerprint of the fields that make two messages the same for some rule. */
struct gate_key {
    uint64_t bits[2];
};

struct gate_seen {
    int64_t at_ms;
    struct str message_id;
    struct str reference;
};

struct gate_view {
    /* False: unknown agent; out then holds only the name. */
    bool (*agent)(void *ctx, struct str name, struct gate_agent *out);
    /* The newest events of a reference, in order of time. */
    size_t (*events)(void *ctx, struct str reference, struct gate_event *out,
                     size_t max);
    /* When a message with that key was last let in. False: never. */
    bool (*seen)(void *ctx, const struct gate_key *key, struct gate_seen *out);
    void *ctx;
};

/* Receives the outcome of every rule that is evaluated, in order of
 * evaluation. */
struct gate_trace {
    void (*line)(void *ctx, struct str section, struct str rule, bool has_fired,
                 struct str why);
    void *ctx;
};

/* Decide on an envelope. *out borrows strings from rules, envelope and view.
 * trace may be NULL; a trace receives every rule of the sections that were
 * asked.
 *
 * Details:
 *
 *   a raised priority counts for every later question
 *   the newest event counts: an approval followed by a disapproval is no
 *     approval
 *   without a reference there is nothing to wait for: a message that lacks a
 *     prerequisite is then escalated, not held
 *   rules that compare two messages, and prerequisites, apply to a person's
 *     message only if they name the kind MESSAGE, because it has no reference
 *     and its words are not a payload
 *   held_until_ms counts from now: on a later evaluation the caller keeps the
 *     first one
 *   a hold by a rule whose condition reads more than the message itself has
 *     the key `look` besides its own */
void gate_decide(const struct gate_rules *r, const struct gate_view *v,
                 const struct envelope *e, int64_t now_ms,
                 struct gate_result *out, const struct gate_trace *trace);

/* The rules as a graph: which agent must have sent something, be well or have
 * fresh data before which messages may go. One edge for each thing that a rule
 * waits for. */
enum gate_edge_kind {
    GATE_EDGE_SAFETY = 1, /* an agent must not be in some states */
    GATE_EDGE_DEPENDENCY, /* an event must have happened */
    GATE_EDGE_FRESHNESS,  /* an agent's data must not be too old */
};
enum gate_edge_state { GATE_EDGE_UNASKED, GATE_EDGE_MET, GATE_EDGE_UNMET };

struct gate_edge {
    enum gate_edge_kind kind;
    struct str rule;
    struct strs from;    /* the agents whose event, state or data counts; empty:
                            any agent, and for freshness the target */
    struct strs said;    /* DEPENDENCY: the kind of event, any of these */
    struct strs said_to; /* and its recipients; empty: any */
    enum approval wants;
    int64_t within_ms; /* zero: no limit */
    uint8_t states;    /* SAFETY: a bit for each state that closes the gate */
    struct str words;  /* "RESULT from Z that approves" */

    /* The messages that the rule holds: of this kind, from these, to those;
     * empty: any. */
    struct strs type, sender, to;
    struct str held_words; /* "SUBMISSION_REQUEST to Rick" */
    bool has_condition;    /* the rule has a condition as well */
    int64_t hold_ms;       /* zero: holds.expire_after applies */

    /* For the message that the caller asks about. */
    bool is_for_it; /* the rule applies to it */
    bool is_blocking;
    enum gate_edge_state state;
    struct gate_event event; /* the event that met the edge, or that did not
                                suffice; without a type: none */
};

struct gate_graph {
    void (*edge)(void *ctx,
                 const struct gate_edge *edge); /* lent for the call */
    void *ctx;
};

/* Send every edge to `to`: safety gates, dependencies, freshness, each in the
 * order of the file. Edges whose rules apply to e come first. An e without a
 * type stands for no message; then only its reference (may be empty) selects
 * the events. *out receives the decision of gate_decide on the message. */
void gate_graph(const struct gate_rules *r, const struct gate_view *v,
                const struct envelope *e, int64_t now_ms,
                struct gate_result *out, const struct gate_graph *to);

/* The keys under which later messages are compared with this one once it is let
 * in, each with its lifetime: one for its id, and one for each rule that would
 * recognize it. ERR_NOMEM: the arena is full. */
struct gate_mark {
    struct gate_key key;
    int64_t keep_ms;
};
struct gate_marks {
    struct gate_mark *list; /* in the arena */
    size_t n, max;
};
MUST_USE enum err gate_marks(const struct gate_rules *r,
                             const struct envelope *e, struct arena *arena,
                             struct gate_marks *out);

/* Whether a rule may wait for such a message. Only then must it be kept as an
 * event. */
bool gate_is_event(const struct gate_rules *r, const struct envelope *e);

/* The view, read from a document, for callers without a gatekeeper:
 *
 *     { "agents": { "Z": { "state": "ACTIVE", "queue": 3, "queue_max": 100,
 *                          "data_at": "2025-02-15T07:00:00Z",
 *                          "may_try": false, "backup": "Z2" },
 *                   "Jay": "IDLE" },
 *       "history": [ { "from": "Jay", "to": "Z", "type": "REQUEST", …,
 *                      "timestamp": "2025-02-15T08:00:00Z",
 *                      "approved": true, "decision": "ROUTE_IMMEDIATELY" } ] }
 *
 * Agents that it does not name are unknown. An entry is an event if it was
 * routed or has no decision, and counts for repeats unless it was dropped. */
struct gate_state;

enum {
    GATE_STATE_BYTES = 64 * 1024 * 1024, /* of the document */
    GATE_HISTORY_MAX = 100 * 1000,       /* envelopes in the history */
    GATE_QUEUE_MAX = 10 * 1000, /* where the document has no queue_max */
};

/* The rules define repeats; they must outlive the state. ERR_SYNTAX (not JSON),
 * ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM, explained in why; *out is then NULL.
 * The text need not outlive the call. */
MUST_USE enum err gate_state_read(const struct gate_rules *r, struct str text,
                                  struct gate_state **out, struct why *why);
void gate_state_free(struct gate_state *s); /* NULL is fine */
struct gate_view gate_state_view(const struct gate_state *s);

/* Read an envelope as its sender writes it. *out borrows from the text and the
 * arena. A missing timestamp means now. The same errors. */
MUST_USE enum err gate_envelope_read(struct arena *a, struct str text,
                                     int64_t now_ms, struct envelope *out,
                                     struct why *why);

/* Whether a timestamp is close enough to now to accept the envelope.
 * ERR_BAD_REQUEST, explained in why. */
MUST_USE enum err gate_check_time(const struct gate_limits *l, int64_t at_ms,
                                  int64_t now_ms, struct why *why);

/* Set is_stale and warning for an accepted envelope. gate_decide does so
 * itself; this is for callers that make a result without it. */
void gate_note_time(const struct gate_limits *l, int64_t at_ms, int64_t now_ms,
                    struct gate_result *out);

/* "2 hours", "15 minutes", "1 day": in the largest unit that fits. */
void gate_word_duration(struct buf *out, int64_t ms);

#endif
