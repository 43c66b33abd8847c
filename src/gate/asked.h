#ifndef GATE_ASKED_H
#define GATE_ASKED_H

/* What the questions of the gate share: one envelope that is being judged.
 *
 *     decide.c  the order of asking, and how an answer is given
 *     gates.c   safety gates, and conditions that a person must see
 *     same.c    repeated, superseded, about the same thing: keys
 *     needs.c   prerequisites, and freshness of data
 *     graph.c   the same rules, to be drawn
 *     room.c    the target: dead, in error, with enough to do; answers due
 *     moment.c  when it says it was sent
 *     facts.c   conditions, and what they may look at
 *     match.c   whom a rule is for
 *     words.c   how all of it is said */

#include "gate/internal.h"
#include "gate/logic.h"

/* Text that is put together without printf; what is too long is cut, between
 * two characters. */
struct phrase {
    char *p;
    size_t n, max; /* max: with the NUL */
};

/* Everything of p, which has max bytes. */
struct phrase phrase_in(char *p, size_t max);
void phrase_add(struct phrase *w, struct str s);
void phrase_add_int(struct phrase *w, int64_t v);
/* How long, to the full unit below; and exactly, in the largest unit that
 * gives a whole number. */
void phrase_add_age(struct phrase *w, int64_t ms);
void phrase_add_exactly(struct phrase *w, int64_t ms);

/* "Jay or Z", four of them at most. */
void phrase_add_list(struct phrase *w, struct strs list, struct str anybody);

/* One after the other. */
void phrase_put(struct phrase *w, const struct str *list, size_t n);
#define SAY(w, ...)                                    \
    phrase_put((w), (const struct str[]){__VA_ARGS__}, \
               sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))

enum { SCRATCH_BYTES = 4096, SCRATCH_MAX = 128 * 1024 * 1024 };

/* What the conditions of all rules may take together for one envelope. */
enum {
    ASKED_STEPS_MAX = 4 * LOGIC_STEPS_MAX,
    ASKED_BYTES_MAX = 4 * LOGIC_BYTES_MAX,
};

#define ASKED_ROOM ((struct logic_room){ASKED_STEPS_MAX, ASKED_BYTES_MAX})

enum { N_FACTS = 6 };

struct asked {
    const struct gate_rules *rules;
    const struct gate_view *view;
    const struct envelope *e;
    int64_t now_ms;
    const struct gate_trace *trace; /* NULL: nobody wants to know */
    struct pass *out;
    struct phrase reason; /* into out->reason */

    struct rule_pick pick;
    struct gate_agent target;
    const struct rule *raised_by; /* NULL: nobody raised it */
    const struct rule *unjudged;  /* the first that could not be worked out */
    struct gate_agent fresh;      /* whose data was found fresh enough */
    bool has_fresh;

    /* Looked up once, when somebody asks. */
    bool has_events, has_payload_key, has_fields;
    struct gate_event *events; /* room for GATE_EVENTS_MAX */
    size_t n_events;
    struct gate_key payload_key;
    struct json *facts[N_FACTS]; /* facts.c's */
    bool lacks_facts;            /* one could not be made */
    const struct json *fields;
    struct arena *scratch;
    struct logic_room room; /* that is left for conditions */
};

/* A question: true when this is the answer. */
typedef bool question(struct asked *a);

question gate_is_repeated, gate_is_superseded, gate_is_gated, gate_must_be_seen,
    gate_is_unjudged, gate_is_target_dead, gate_lacks_input, gate_is_stale,
    gate_is_target_in_error, gate_has_enough;

/* decide.c. */

/* An answer, by a rule or none (NULL). */
bool asked_answer(struct asked *a, enum gate_answer answer,
                  enum pass_cause cause, const struct rule *r);

/* The same for one that waits: until when, and for what besides the keys that
 * were given with wait_for. */
bool asked_hold(struct asked *a, enum gate_answer answer, enum pass_cause cause,
                const struct rule *r, enum section section);
void asked_wait(struct asked *a, struct wait_key k);

/* How long ago that was; below zero: it is yet to come. */
int64_t asked_age(const struct asked *a, int64_t at_ms);

/* Tell of a rule (NULL: a question that needs none). `why` may be cut. */
void asked_tell(struct asked *a, struct str section, const struct rule *r,
                bool has_fired, struct str why);

enum { WHY_MAX = 400 };

/* match.c: the rules of a section that are for it. */

/* One walk at a time: a second one ends the first. */
struct each {
    struct asked *a;
    enum section section;
    bool walks_all; /* one after the other, not by the index */
    bool has_begun, tells;
    size_t at, end;
};

struct each each_of(struct asked *a, enum section s);

/* The next that is for it, by whom it is for and by its condition; NULL: no
 * more. One whose condition cannot be worked out is noted as unjudged and
 * passed over. */
const struct rule *each_next(struct each *i);

/* The same without asking the condition; and without telling of others. */
const struct rule *each_match(struct each *i);
const struct rule *each_any(struct each *i);

/* Whether a rule is for it, whatever its condition says. */
bool rule_is_for(const struct asked *a, const struct rule *r);

/* Whether a rule names a person's message by its kind. */
bool match_names_messages(const struct match *m);

bool match_has(struct strs list, struct str s);
bool match_has_name(struct strs list, struct str s);

struct str section_name(enum section s);

/* facts.c. */

enum holds { HOLDS_NO, HOLDS_YES, HOLDS_FAILED };

/* Whether a rule's condition holds; one without always does. */
enum holds rule_holds(struct asked *a, const struct rule *r);

/* Whether what it says may change while a message waits, without any key
 * telling of it. */
bool rule_may_change(const struct rule *r);

/* The payload, read; NULL: there is none, or it cannot be read. */
const struct json *asked_fields(struct asked *a);

/* same.c: whether one that a rule calls the same was let in lately; into
 * *seen. Tells of it when not. */
bool gate_is_about_the_same(struct asked *a, const struct rule *r,
                            struct gate_seen *seen);

/* needs.c: what happened for its reference; what of it is newest for a need
 * (NULL: nothing), whether that meets it, and the need in words. */
void asked_events(struct asked *a);
const struct gate_event *need_newest(struct asked *a, const struct need *n);
bool need_is_met(const struct asked *a, const struct need *n,
                 const struct gate_event *v);
void need_say(struct phrase *w, const struct need *n);

/* room.c. */

/* How an agent is that the rules name; one that nobody knows, or that is not
 * the one they mean, counts as DEAD. */
void asked_agent(struct asked *a, struct str name, struct gate_agent *out);
/* The same of the target, whoever holds the name: into a->target. */
void asked_target(struct asked *a);
/* When the answer is due: into a->out. */
void gate_find_sla(struct asked *a);

#endif
