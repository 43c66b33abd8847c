#ifndef MODEL_GATE_RESULT_H
#define MODEL_GATE_RESULT_H

/* gate_result: whether a message may go now, why, and otherwise the keys that
 * it waits for. */

#include "base/id.h"
#include "base/str.h"
#include "model/task.h"

/* The store keeps the numbers. */
enum gate_answer {
    GATE_ROUTE = 1,         /* ROUTE_IMMEDIATELY */
    GATE_HOLD_INPUT = 2,    /* HOLD_PENDING_INPUT */
    GATE_HOLD_CAPACITY = 3, /* HOLD_PENDING_CAPACITY */
    GATE_PAUSE = 4,         /* PAUSE_ALL_SUBMISSIONS */
    GATE_ESCALATE = 5,      /* ESCALATE_TO_HUMAN */
    GATE_DROP = 6,          /* DROP_SILENTLY */
};

enum { N_GATE_ANSWERS = 7 };

struct str gate_answer_name(enum gate_answer a);  /* "ROUTE_IMMEDIATELY" */
enum gate_answer gate_answer_of(struct str name); /* zero: unknown name */

/* The reason in one word; the store keeps the numbers. */
enum gate_cause {
    PASS_FREE = 1,     /* nothing held it */
    PASS_REPEATED = 2, /* a repeated message */
    PASS_SUPERSEDED = 3,
    PASS_GATED = 4, /* the agent of a safety gate is unhealthy */
    PASS_RULE = 5,  /* the condition of an escalation holds */
    PASS_TARGET_DEAD = 6,
    PASS_PREREQUISITE = 7,
    PASS_STALE = 8, /* the target's data is too old */
    PASS_TARGET_ERROR = 9,
    PASS_CAPACITY = 10,
    PASS_URGENT = 11,   /* urgent: a rule that would hold it was skipped */
    PASS_APPROVED = 12, /* a person released it */
    PASS_EXPIRED = 13,  /* it was held for the maximum time */
    PASS_BATCHED = 14,  /* it waits for the batch that it is part of */
    PASS_UNJUDGED = 15, /* a condition could not be evaluated: a person must
                         * look at it */
    PASS_LATE = 16,     /* released, and not answered in time */
};

/* The fate of a message that was held for the maximum time. */
enum gate_expiry { EXPIRY_EXPIRE, EXPIRY_ESCALATE, EXPIRY_ROUTE };

/* The keys of a hold: a change of any of them makes the gate judge it again. */
enum wait_kind {
    WAIT_AGENT = 1, /* agent:NAME: its state, its data, or that it may be
                     * tried again */
    WAIT_QUEUE = 2, /* queue:NAME: the length of its queue */
    WAIT_EVENT = 3, /* event:REFERENCE:TYPE */
    WAIT_TIME = 4,  /* time, at_ms */
    WAIT_LOOK = 5,  /* no event announces it: checked every 30 s */
    WAIT_BATCH = 6, /* batch:TASK */
};

struct wait_key {
    enum wait_kind kind;
    struct str name; /* agent, reference, or task */
    struct str type; /* WAIT_EVENT: of the event */
    int64_t at_ms;   /* WAIT_TIME */
};

enum {
    PASS_REASON_MAX = 400,
    PASS_SLA_MAX = 160,
    PASS_WARNING_MAX = 160,
    PASS_KEYS_MAX = 12,
};

/* Strings are borrowed from the rules, the envelope or the owner's arena. */
struct gate_result {
    enum gate_answer answer;
    enum gate_cause cause;
    struct str rule;              /* its name; empty: none applied */
    char reason[PASS_REASON_MAX]; /* a sentence without full stop */
    enum task_priority priority;  /* possibly raised by a rule */
    int64_t sla_ms;               /* an answer is expected within; zero: none */
    struct str sla_rule;          /* the rule that sets it */
    char sla[PASS_SLA_MAX];       /* the same as text; may be empty */
    int64_t held_until_ms;        /* zero: not held */
    enum gate_expiry on_expiry;
    struct wait_key keys[PASS_KEYS_MAX];
    size_t n_keys;
    struct str repeats;    /* id of the message that it repeats */
    struct str agent;      /* the substitute; empty: unchanged */
    struct str gate_agent; /* PASS_GATED: the unhealthy agent */
    int64_t batch_most;    /* PASS_CAPACITY: released as a batch of up to so
                            * many; zero: singly */
    struct str channel;    /* where decisions are posted: "#agent-feed" */
    bool is_stale;         /* its timestamp is old */
    char warning[PASS_WARNING_MAX]; /* about its timestamp; may be empty */
};

/* "held" for a hold or a pause, "queued" if it may go, … */
enum task_status gate_result_status(enum gate_answer a);

static inline bool gate_result_is_hold(enum gate_answer a)
{
    return a == GATE_HOLD_INPUT || a == GATE_HOLD_CAPACITY || a == GATE_PAUSE;
}

/* "expire", "escalate", "route". */
struct str gate_expiry_name(enum gate_expiry e);

/* Append "agent:Z"; truncated if it does not fit. */
struct buf;
void wait_key_write(const struct wait_key *k, struct buf *out);

/* The same for people, for a hold with that cause: "room at Rick". */
void wait_key_words(const struct wait_key *k, enum gate_cause cause,
                    struct buf *out);

#endif
