#ifndef GATE_GATE_H
#define GATE_GATE_H

/* gate: from choose, to task. The second question of the walk: may it go now?
 *
 * A function of the rules, of what is known, of the envelope and of the time,
 * and of nothing else: no side effects, an answer to every input, the same
 * answer to the same input. Whatever needs memory or patience (what happened
 * before, what waits, who was asked) is the broker's.
 *
 * Asked in this order, and the first that answers decides:
 *
 *   repeated       the same message again                     DROP_SILENTLY
 *   superseded     one like it came a moment ago              DROP_SILENTLY
 *   safety gate    its agent is DEAD or ERROR         PAUSE_ALL_SUBMISSIONS
 *   escalations    a rule says that a person must see it  ESCALATE_TO_HUMAN
 *   target         it is DEAD                             ESCALATE_TO_HUMAN
 *   prerequisites  something has not happened yet        HOLD_PENDING_INPUT
 *   freshness      the target's data is too old          HOLD_PENDING_INPUT
 *   capacity       it is in ERROR, or has enough      HOLD_PENDING_CAPACITY
 *   else                                                  ROUTE_IMMEDIATELY
 *
 * URGENT skips the last three, and nothing else. A condition that cannot be
 * worked out counts as one that a person must see.
 *
 * Pure. Owns: rules that were read. Threads: any; rules are constant once they
 * are read. */

#include "base/buf.h"
#include "model/agent.h"
#include "model/envelope.h"
#include "model/pass.h"

/* The rules. */

struct gate_rules;

enum {
    GATE_RULES_MAX = 10 * 1000,
    GATE_RULES_BYTES = 8 * 1024 * 1024, /* of the file */
    GATE_PROBLEMS_MAX = 20,             /* that are told of one file */
    GATE_EVENTS_MAX = 64,               /* of one reference that are looked at,
                                         * the newest */
};

/* What is wrong with a file, one line each: "12:7: …". */
struct gate_problems {
    char text[8 * 1024];
    size_t n_bytes, n;
};

/* Read a file, JSON with comments. ERR_SYNTAX (no JSON), ERR_BAD_CONFIG (not
 * rules, or rules that cannot be: with all that is wrong), ERR_LIMIT,
 * ERR_NOMEM; *out is then NULL. The text need not outlive the call. */
MUST_USE enum err gate_rules_read(struct str text, struct gate_rules **out,
                                  struct gate_problems *problems);
void gate_rules_free(struct gate_rules *r);

/* Those that hold where there is no file. Never to be freed. */
const struct gate_rules *gate_rules_none(void);

size_t gate_rules_count(const struct gate_rules *r);

/* What else the file says, for the broker and who shows things. Borrowed from
 * the rules. */

struct gate_channel {
    struct str name;      /* "#alerts" */
    bool takes_feed;      /* decisions */
    bool takes_alerts;    /* escalations, pauses, reminders */
    struct str file;      /* path; empty: none */
    int64_t rotate_bytes; /* a new file beyond that */
    int64_t keep;         /* old ones */
    struct str webhook;   /* url; empty: none */
    enum channel_form { CHANNEL_JSON, CHANNEL_SLACK, CHANNEL_DISCORD } form;
};

/* How an agent is brought back, and who stands in for it. */
struct gate_revival {
    struct str agent;
    int64_t attempts;  /* zero: it is not restarted */
    int64_t pause_ms;  /* after the first, doubled each time */
    struct str backup; /* empty: none */
    bool is_auto;      /* the backup takes over by itself; else it is offered */
    struct str owner;  /* the user who may hold the name, beside admins; empty:
                        * nobody */
};

/* How people are asked. */
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

/* What figures should be. */
struct gate_targets {
    int64_t routed_per_hour;     /* at least: 100 */
    int64_t hold_ms;             /* on average, of NORMAL: 30 minutes */
    int64_t escalations_per_day; /* fewer: 5 */
    int64_t lost;                /* 0 */
};

struct gate_limits {
    int64_t most; /* held messages, of all */
    int64_t most_per_agent;
    int64_t expire_ms; /* where no rule says how long */
    enum pass_expiry on_expiry;
    int64_t future_ms; /* a timestamp may be ahead of us */
    int64_t age_ms;    /* or behind; zero: as old as it is */
    int64_t stale_ms;  /* beyond that it is reported as old */
};

struct gate_about {
    const struct gate_channel *channels;
    size_t n_channels;
    struct gate_people people;
    struct gate_targets targets;
    struct gate_limits limits;
    int64_t longest_ms; /* the longest that anything of the past counts */
    struct strs agents; /* declared, sorted, whatever the case */
};

const struct gate_about *gate_rules_about(const struct gate_rules *r);

/* Of an agent; attempts 3, pause 10 s and no backup where the file says
 * nothing. Rules win over the card, which is the caller's to look at. */
struct gate_revival gate_revival_of(const struct gate_rules *r,
                                    struct str agent);

/* Whether the file names that agent: the name then belongs to the operator.
 * *owner: the user who may hold it beside admins; empty: the file says none. */
bool gate_rules_name(const struct gate_rules *r, struct str agent,
                     struct str *owner);

/* What is known, lent by whoever asks. All three give the same answers for as
 * long as a call takes. */

struct gate_agent {
    struct str name;
    bool is_known; /* there is one of that name */
    enum agent_state state;
    bool may_try;       /* ERROR, but it is time to try it again */
    int64_t queue;      /* unfinished and not held */
    int64_t queue_max;  /* by its card or the settings; a rule wins */
    int64_t data_at_ms; /* how old its data is; zero: not known */
    struct str backup;  /* by its card; a rule wins */
    bool is_foreign;    /* it is not the agent that the rules mean: a stranger
                         * holds the name, or the sender's org may not see it.
                         * As the target it counts, for gates, freshness and
                         * conditions it is not known */
    bool is_for_all;    /* of the configuration: whoever sends, it counts */
    int64_t version;    /* another one: who may see it may be others */
};

enum approval { APPROVAL_NONE, APPROVED, DISAPPROVED };

struct gate_event {
    struct str from, to, type;
    struct str message_id;
    struct str task_id; /* of that message; empty: not known */
    int64_t at_ms;
    enum approval approved;
};

/* A fingerprint of what makes two messages the same by some rule. */
struct gate_key {
    uint64_t bits[2];
};

struct gate_seen {
    int64_t at_ms;
    struct str message_id;
    struct str reference;
};

struct gate_view {
    /* False: nobody knows it; out is then empty but for its name. */
    bool (*agent)(void *ctx, struct str name, struct gate_agent *out);
    /* The newest of what happened for a reference, oldest first. */
    size_t (*events)(void *ctx, struct str reference, struct gate_event *out,
                     size_t max);
    /* When a message with that key was last let in. False: never. */
    bool (*seen)(void *ctx, const struct gate_key *key, struct gate_seen *out);
    void *ctx;
};

/* Every rule that is asked tells what it says, in the order of asking. */
struct gate_trace {
    void (*line)(void *ctx, struct str section, struct str rule, bool has_fired,
                 struct str why);
    void *ctx;
};

/* The answer, into *out, with strings of rules, envelope and view. trace may be
 * NULL; who gives one hears of every rule of the sections that were asked.
 *
 * Where the files and the walk leave it open:
 *
 *   a priority that was raised counts for all that is asked after it
 *   the last word counts: who approved and then disapproved has not approved
 *   without a reference nobody can wait for what happens to it: a prerequisite
 *     that it lacks is then for a person to see, not to be waited for
 *   rules that hold two messages against each other, and prerequisites, are for
 *     a person's message only where they name the kind MESSAGE: it has no
 *     reference, and its words are no payload
 *   held_until_ms counts from now: who asks again keeps the first
 *   a hold whose rule has a condition on more than the message itself has the
 *     key `look` beside its own */
void gate_decide(const struct gate_rules *r, const struct gate_view *v,
                 const struct envelope *e, int64_t now_ms, struct pass *out,
                 const struct gate_trace *trace);

/* The rules as a graph: who must have said what, be well or have fresh data
 * before what may go. One edge for each thing that a rule waits for. */
enum gate_edge_kind {
    GATE_EDGE_SAFETY = 1, /* an agent must not be in some states */
    GATE_EDGE_DEPENDENCY, /* somebody must have said something */
    GATE_EDGE_FRESHNESS,  /* an agent's data must not be too old */
};
enum gate_edge_state { GATE_EDGE_UNASKED, GATE_EDGE_MET, GATE_EDGE_UNMET };

struct gate_edge {
    enum gate_edge_kind kind;
    struct str rule;
    struct strs from;    /* whose word, health or data it takes; empty:
                          * anybody's, and of freshness the target's */
    struct strs said;    /* DEPENDENCY: what, any of these */
    struct strs said_to; /* and to whom; empty: to anybody */
    enum approval wants;
    int64_t within_ms; /* zero: ever */
    uint8_t states;    /* SAFETY: a bit for each that shuts it */
    struct str words;  /* "RESULT from Z that approves" */

    /* What it keeps: of this kind, from these, to those; empty: any. */
    struct strs type, sender, to;
    struct str held_words; /* "SUBMISSION_REQUEST to Rick" */
    bool has_condition;    /* and only where that holds */
    int64_t hold_ms;       /* zero: as long as holds.expire_after says */

    /* Of the message that is asked about. */
    bool is_for_it; /* its rule is */
    bool is_blocking;
    enum gate_edge_state state;
    struct gate_event event; /* that met it, or would not do; no type: none */
};

struct gate_graph {
    void (*edge)(void *ctx, const struct gate_edge *edge); /* lent */
    void *ctx;
};

/* Every edge to `to`: safety gates, dependencies, freshness, each in the order
 * of the file; those whose rules are for e before all others. An e without a
 * type is no message: then its reference alone (may be empty) tells what has
 * happened. What is decided of the message now is in *out, as gate_decide's. */
void gate_graph(const struct gate_rules *r, const struct gate_view *v,
                const struct envelope *e, int64_t now_ms, struct pass *out,
                const struct gate_graph *to);

/* The keys under which the message counts for those after it, once it is let
 * in, each for so long: one for its id, and one for each rule that would know
 * it again. ERR_NOMEM: the arena is full. */
struct gate_mark {
    struct gate_key key;
    int64_t keep_ms;
};
struct gate_marks {
    struct gate_mark *list; /* the arena's */
    size_t n, max;
};
MUST_USE enum err gate_marks(const struct gate_rules *r,
                             const struct envelope *e, struct arena *arena,
                             struct gate_marks *out);

/* Whether somebody may wait for what happens to such a message: only then need
 * it be kept as an event. */
bool gate_is_event(const struct gate_rules *r, const struct envelope *e);

/* What is known, from a document, for those who have no broker:
 *
 *     { "agents": { "Z": { "state": "ACTIVE", "queue": 3, "queue_max": 100,
 *                          "data_at": "2025-02-15T07:00:00Z",
 *                          "may_try": false, "backup": "Z2" },
 *                   "Jay": "IDLE" },
 *       "history": [ { "from": "Jay", "to": "Z", "type": "REQUEST", …,
 *                      "timestamp": "2025-02-15T08:00:00Z",
 *                      "approved": true, "decision": "ROUTE_IMMEDIATELY" } ] }
 *
 * An agent that it does not name is not known. What was let go, or has no
 * decision, is an event; what was not dropped counts for repeats. */
struct gate_state;

enum {
    GATE_STATE_BYTES = 64 * 1024 * 1024, /* of the document */
    GATE_HISTORY_MAX = 100 * 1000,       /* envelopes in it */
    GATE_QUEUE_MAX = 10 * 1000,          /* where nothing says how many */
};

/* The rules say what a repeat is; they must outlive the state. ERR_SYNTAX (no
 * JSON), ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM, with words; *out is then NULL.
 * The text need not outlive the call. */
MUST_USE enum err gate_state_read(const struct gate_rules *r, struct str text,
                                  struct gate_state **out, struct why *why);
void gate_state_free(struct gate_state *s); /* NULL is fine */
struct gate_view gate_state_view(const struct gate_state *s);

/* An envelope as its sender writes it, into *out, with strings of the text and
 * of the arena. Without a timestamp it is of now. The same errors. */
MUST_USE enum err gate_envelope_read(struct arena *a, struct str text,
                                     int64_t now_ms, struct envelope *out,
                                     struct why *why);

/* Whether a timestamp may be that far off, for whoever takes an envelope in.
 * ERR_BAD_REQUEST with words. */
MUST_USE enum err gate_check_time(const struct gate_limits *l, int64_t at_ms,
                                  int64_t now_ms, struct why *why);

/* What a decision says of one that is taken: is_stale and warning. gate_decide
 * does that; this is for whoever makes a pass without it. */
void gate_note_time(const struct gate_limits *l, int64_t at_ms, int64_t now_ms,
                    struct pass *out);

/* "2 hours", "15 minutes", "1 day": in words, the largest unit that fits. */
void gate_word_duration(struct buf *out, int64_t ms);

#endif
