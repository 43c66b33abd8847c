#ifndef MODEL_PASS_H
#define MODEL_PASS_H

/* pass: the answer to the second question of the walk, may it go now, with why
 * and, where it may not, what it waits for. */

#include "base/id.h"
#include "base/str.h"
#include "model/task.h"

/* The numbers are kept in the store. */
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
enum gate_answer gate_answer_of(struct str name); /* zero: none of that name */

/* Why, in one word; the numbers are kept in the store. */
enum pass_cause {
    PASS_FREE = 1,     /* nothing stood in its way */
    PASS_REPEATED = 2, /* the same message again */
    PASS_SUPERSEDED = 3,
    PASS_GATED = 4, /* a safety gate's agent is not well */
    PASS_RULE = 5,  /* an escalation's condition holds */
    PASS_TARGET_DEAD = 6,
    PASS_PREREQUISITE = 7,
    PASS_STALE = 8, /* the target's data is older than it may be */
    PASS_TARGET_ERROR = 9,
    PASS_CAPACITY = 10,
    PASS_URGENT = 11,   /* it went before what would have held it */
    PASS_APPROVED = 12, /* a person let it go */
    PASS_EXPIRED = 13,  /* it was held for as long as it may be */
    PASS_BATCHED = 14,  /* it waits for the batch that it is part of */
    PASS_UNJUDGED = 15, /* a condition could not be worked out: a person must
                         * see it */
    PASS_LATE = 16,     /* let go, and not answered in time */
};

/* What is to happen to what was held for as long as it may be. */
enum pass_expiry { EXPIRY_EXPIRE, EXPIRY_ESCALATE, EXPIRY_ROUTE };

/* What a hold waits for: any of its keys that changes makes it be looked at
 * again. */
enum wait_kind {
    WAIT_AGENT = 1, /* agent:NAME: its state, its data, whether it may be
                     * tried again */
    WAIT_QUEUE = 2, /* queue:NAME, how much waits for it */
    WAIT_EVENT = 3, /* event:REFERENCE:TYPE */
    WAIT_TIME = 4,  /* time, at_ms */
    WAIT_LOOK = 5,  /* nothing that could be told: every 30 s */
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

/* Strings are borrowed: of the rules, the envelope, or the arena of whoever
 * keeps it. */
struct pass {
    enum gate_answer answer;
    enum pass_cause cause;
    struct str rule;              /* its name; empty: none had a say */
    char reason[PASS_REASON_MAX]; /* a sentence without full stop */
    enum task_priority priority;  /* as a rule raised it */
    int64_t sla_ms;         /* the answer is expected within; zero: none */
    struct str sla_rule;    /* that says so */
    char sla[PASS_SLA_MAX]; /* the same in words; empty: none */
    int64_t held_until_ms;  /* zero: it is not held */
    enum pass_expiry on_expiry;
    struct wait_key keys[PASS_KEYS_MAX];
    size_t n_keys;
    struct str repeats;    /* message id of what it repeats */
    struct str agent;      /* who has it instead; empty: who had it */
    struct str gate_agent; /* PASS_GATED: who is not well */
    int64_t batch_most;    /* PASS_CAPACITY: let go so many at once as
                            * one; zero: singly */
    struct str channel;    /* where decisions are posted: "#agent-feed" */
    bool is_stale;         /* its timestamp is old */
    char warning[PASS_WARNING_MAX]; /* of its timestamp; empty: none */
};

/* "held" for a hold or a pause, "queued" for what may go, … */
enum task_status pass_status(enum gate_answer a);

static inline bool pass_is_hold(enum gate_answer a)
{
    return a == GATE_HOLD_INPUT || a == GATE_HOLD_CAPACITY || a == GATE_PAUSE;
}

/* "expire", "escalate", "route". */
struct str pass_expiry_name(enum pass_expiry e);

/* "agent:Z", into out; cut where it does not fit. */
struct buf;
void wait_key_write(const struct wait_key *k, struct buf *out);

/* The same for people, of a hold with that cause: "room at Rick". */
void wait_key_words(const struct wait_key *k, enum pass_cause cause,
                    struct buf *out);

#endif
