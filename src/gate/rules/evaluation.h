#ifndef GATE_RULES_EVALUATION_H
#define GATE_RULES_EVALUATION_H

/* The evaluation of one envelope, shared by the questions of the gate.
 *
 *     decide.c          the order of the questions, and how one answers
 *     safety_gates.c    safety gates and escalation rules
 *     duplicates.c      repeated, superseded, about the same thing: keys
 *     dependencies.c    prerequisites, and freshness of data
 *     rules_graph.c     the same rules as a graph
 *     capacity.c        the target: dead, in error, full; SLAs
 *     sent_time.c       the envelope's timestamp
 *     condition_data.c  the data that conditions read
 *     rule_match.c      iterating over the rules for an envelope
 *     gate_text.c       wording */

#include "gate/rules/internal.h"
#include "gate/rules/logic.h"

/* Text that is built without printf. Text that is too long is cut between two
 * characters. */
struct phrase {
    char *p;
    size_t n, max; /* max: with the NUL */
};

/* A phrase that fills the max bytes at p. */
struct phrase phrase_in(char *p, size_t max);
void phrase_add(struct phrase *w, struct str s);
void phrase_add_int(struct phrase *w, int64_t v);
/* A duration, rounded down to the largest unit that fits; and exactly, in the
 * largest unit that gives a whole number. */
void phrase_add_age(struct phrase *w, int64_t ms);
void phrase_add_exactly(struct phrase *w, int64_t ms);

/* "Jay or Z", at most four names; `anybody` for an empty list. */
void phrase_add_list(struct phrase *w, struct strs list, struct str anybody);

/* Add n strings. */
void phrase_put(struct phrase *w, const struct str *list, size_t n);
#define SAY(w, ...)                                    \
    phrase_put((w), (const struct str[]){__VA_ARGS__}, \
               sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))

enum { SCRATCH_BYTES = 4096, SCRATCH_MAX = 128 * 1024 * 1024 };

/* The budget that the conditions of all rules share for one envelope. */
enum {
    EVAL_STEPS_MAX = 4 * LOGIC_STEPS_MAX,
    EVAL_BYTES_MAX = 4 * LOGIC_BYTES_MAX,
};

#define EVAL_ROOM ((struct logic_room){EVAL_STEPS_MAX, EVAL_BYTES_MAX})

enum { N_FACTS = 6 };

struct evaluation {
    const struct gate_rules *rules;
    const struct gate_view *view;
    const struct envelope *e;
    int64_t now_ms;
    const struct gate_trace *trace; /* NULL: no trace wanted */
    struct gate_result *out;
    struct phrase reason; /* writes to out->reason */

    struct rule_pick pick;
    struct gate_agent target;
    const struct rule *raised_by; /* NULL: not raised */
    /* The first rule whose condition could not be evaluated. */
    const struct rule *unjudged;
    /* The first agent whose data was found fresh enough. */
    struct gate_agent fresh;
    bool has_fresh;

    /* Looked up once, on first use. */
    bool has_events, has_payload_key, has_fields;
    struct gate_event *events; /* has room for GATE_EVENTS_MAX */
    size_t n_events;
    struct gate_key payload_key;
    struct json *facts[N_FACTS]; /* owned by condition_data.c */
    bool lacks_facts;            /* one could not be built */
    const struct json *fields;
    struct arena *scratch;
    struct logic_room room; /* left for conditions */
};

/* A question: true when it answers. */
typedef bool gate_question(struct evaluation *ev);

gate_question gate_is_repeated, gate_is_superseded, gate_is_gated,
    gate_is_escalated, gate_is_target_dead, gate_lacks_input, gate_is_stale,
    gate_is_target_in_error, gate_is_target_full;

/* In sent_time.c: now_ms - at_ms, cut to ±INT64_MAX. */
int64_t gate_age_ms(int64_t at_ms, int64_t now_ms);

/* In decide.c. */

/* Answer, by a rule or by none (NULL). */
bool eval_answer(struct evaluation *ev, enum gate_answer answer,
                 enum gate_cause cause, const struct rule *r);

/* Answer with a hold: eval_answer plus its end and the wait keys that the
 * conditions add to those given to eval_wait. */
bool eval_hold(struct evaluation *ev, enum gate_answer answer,
               enum gate_cause cause, const struct rule *r,
               enum section section);
void eval_wait(struct evaluation *ev, struct wait_key k);

/* The time since at_ms; negative: it lies ahead. */
static inline int64_t eval_age(const struct evaluation *ev, int64_t at_ms)
{
    return gate_age_ms(at_ms, ev->now_ms);
}

/* Trace a rule (NULL: a question without one). `why` may be cut. */
void eval_trace(struct evaluation *ev, struct str section, const struct rule *r,
                bool has_fired, struct str why);

enum { WHY_MAX = 400 };

/* In rule_match.c: iterating over the rules of a section that are for the
 * envelope. */

/* One iteration at a time: a second one ends the first. */
struct each {
    struct evaluation *ev;
    enum section section;
    bool walks_all; /* every rule in order, not by the index */
    bool has_begun, tells;
    size_t at, end;
};

struct each each_of(struct evaluation *ev, enum section s);

/* The next rule whose match fits and whose condition holds; NULL: no more. A
 * rule whose condition cannot be evaluated is noted as unjudged and skipped. */
const struct rule *each_next(struct each *i);

/* Without evaluating the condition; and without tracing the rules that are
 * skipped. */
const struct rule *each_match(struct each *i);
const struct rule *each_any(struct each *i);

/* Whether a rule's match is for the envelope; its condition is ignored. */
bool rule_is_for(const struct evaluation *ev, const struct rule *r);

/* In condition_data.c. */

enum holds { HOLDS_NO, HOLDS_YES, HOLDS_FAILED };

/* Whether a rule's condition holds; a rule without one always holds. */
enum holds rule_holds(struct evaluation *ev, const struct rule *r);

/* Whether the condition's result may change while a message waits without any
 * wait key changing. */
bool rule_may_change(const struct rule *r);

/* The parsed payload; NULL: none, or it cannot be read. */
const struct json *eval_fields(struct evaluation *ev);

/* In duplicates.c: whether a message that the rule considers the same was let
 * in lately, stored in *seen. Traces the rule when not. */
bool gate_is_about_the_same(struct evaluation *ev, const struct rule *r,
                            struct gate_seen *seen);

/* In dependencies.c: load the events of the reference; the newest that a need
 * is about (NULL: none); whether it meets the need; the need in words. */
void eval_events(struct evaluation *ev);
const struct gate_event *need_newest(struct evaluation *ev,
                                     const struct need *n);
bool need_is_met(const struct evaluation *ev, const struct need *n,
                 const struct gate_event *v);
void need_say(struct phrase *w, const struct need *n);

/* In capacity.c. */

/* Look up an agent that the rules name. An unknown agent, or one that the rules
 * do not mean, counts as DEAD. */
void eval_agent(struct evaluation *ev, struct str name, struct gate_agent *out);
/* Look up the target into ev->target, even if a stranger registered it. */
void eval_target(struct evaluation *ev);
/* Set when the answer is due in ev->out. */
void gate_find_sla(struct evaluation *ev);

#endif
