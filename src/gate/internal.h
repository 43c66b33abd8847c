#ifndef GATE_INTERNAL_H
#define GATE_INTERNAL_H

/* What the files of gate/ share: the rules as they are once they were read.
 *
 * Every section is a table of its own kind of rule, and each kind begins with
 * struct rule: whom it is for. Which rules could be for an envelope is found
 * by `index`, by its sender, target and kind, so that a thousand rules about
 * others cost next to nothing. */

#include "base/arena.h"
#include "base/json.h"
#include "base/map.h"
#include "gate/gate.h"

enum {
    RULE_NAME_MAX = 100, /* bytes of a rule's name */
    SAME_MAX = 16,       /* fields that two messages must have in common */
    NEED_TYPES_MAX = 10, /* kinds that one rule waits for, so that each has
                          * its wait key */
};

/* The longest of all durations. */
#define GATE_DURATION_MAX_MS (INT64_C(366) * 24 * 3600 * 1000)

struct logic; /* logic.h: a condition, ready to be worked out */

/* Whom a rule is for. Empty lists: anybody. Names whatever their case, kinds
 * as they are written. */
struct match {
    struct strs from, to, type;
    uint8_t priorities; /* a bit for each; zero: any */
};

enum section {
    SECTION_PRIORITIES,
    SECTION_DUPLICATES,
    SECTION_SUPERSEDING,
    SECTION_SAFETY_GATES,
    SECTION_ESCALATIONS,
    SECTION_DEPENDENCIES,
    SECTION_FRESHNESS,
    SECTION_CAPACITY,
    SECTION_SLA,
    N_SECTIONS,
};

/* A field of an envelope that two must have in common: "from", "reference",
 * "payload", "payload.end_client". */
struct same_field {
    enum same_kind {
        SAME_FROM,
        SAME_TO,
        SAME_TYPE,
        SAME_REFERENCE,
        SAME_PAYLOAD, /* the whole, however it is written */
        SAME_PATH,    /* one field of it */
    } kind;
    struct strs path; /* SAME_PATH: below payload */
};

/* Something that must have happened for the same reference. */
struct need {
    struct strs type;    /* any of them */
    struct strs from;    /* by whom; empty: anybody */
    struct strs to;      /* to whom; empty: anybody */
    enum approval wants; /* APPROVAL_NONE: whether or not */
    int64_t within_ms;   /* how fresh; zero: ever */
};

struct rule {
    struct str name;
    enum section section;
    struct match match;
    const struct logic *when; /* NULL: always */
    uint32_t at;              /* where it stands in the file */
    uint32_t order;           /* in its section */

    /* What it says, by its section. */
    union {
        enum task_priority raises_to; /* PRIORITIES */
        struct {                      /* DUPLICATES, SUPERSEDING, and
                                       * ESCALATIONS where `same` is given */
            const struct same_field *same;
            size_t n_same;
            int64_t within_ms;
        } like;
        struct { /* SAFETY_GATES */
            struct str agent;
            uint8_t states; /* a bit for each, 1 << AGENT_… */
        } gate;
        struct { /* DEPENDENCIES */
            const struct need *needs;
            size_t n_needs;
        } after;
        struct { /* FRESHNESS: of the target's data, or another agent's */
            struct str agent; /* empty: the target's */
            int64_t within_ms;
        } fresh;
        struct { /* CAPACITY */
            int64_t queue;
            int64_t batch_most; /* zero: no batches */
        } room;
        struct { /* SLA */
            int64_t within_ms;
        } sla;
    };
    /* DEPENDENCIES, FRESHNESS, CAPACITY, SAFETY_GATES: how long it is held;
     * zero: as holds.expire_after says. */
    int64_t hold_ms;
    enum pass_expiry on_expiry;
};

/* Which rules are for a message: looked up once for all sections, then walked
 * section by section, in the order of the file.
 *
 *     struct rule_pick pick;
 *     rules_pick(&pick, r, e);
 *     for (rule = rules_first(&pick, SECTION_SLA); rule;
 *          rule = rules_next(&pick))
 *
 * What is given out fits the message by its match; `when` is not asked. */
enum { RULE_WAYS = 8 /* from, to and type, each given or not */ };

struct rule_pick {
    const struct gate_rules *rules;
    const struct envelope *e;
    enum task_priority priority; /* the message's; whoever raises it says so
                                  * here too */
    const struct rule_bucket *ways[RULE_WAYS];
    size_t n_ways;
    const uint32_t *at[RULE_WAYS], *end[RULE_WAYS]; /* of the section */
};

void rules_pick(struct rule_pick *p, const struct gate_rules *r,
                const struct envelope *e);
const struct rule *rules_first(struct rule_pick *p, enum section s);
const struct rule *rules_next(struct rule_pick *p);

/* Whether a rule is for it, by its match alone: the slow truth. */
bool rule_fits(const struct rule *rule, const struct envelope *e,
               enum task_priority priority);

/* Made once all rules are there. ERR_NOMEM. */
MUST_USE enum err rules_index(struct gate_rules *r);

struct gate_rules {
    struct arena arena; /* of all that follows */
    struct gate_about about;
    struct rule *rules; /* all of them, by section, then as in the file */
    size_t n_rules;
    size_t first[N_SECTIONS + 1];        /* of each section in `rules` */
    const struct gate_revival *revivals; /* sorted by agent */
    size_t n_revivals;
    /* The first channel that takes decisions; empty: none. */
    struct str feed_channel;
    /* index.c's own: which rules could be for whom. */
    struct rule_index *index;
};

#endif
