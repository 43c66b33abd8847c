#ifndef GATE_RULES_INTERNAL_H
#define GATE_RULES_INTERNAL_H

/* Shared by the files of gate/rules: the rules after they were read.
 *
 * Every section is a list of rules of its own kind. `index` finds the rules
 * that could apply to an envelope by its sender, target and kind, so that a
 * thousand rules for other messages cost next to nothing. */

#include "base/arena.h"
#include "base/json.h"
#include "base/map.h"
#include "gate/rules/rules.h"

enum {
    RULE_NAME_MAX = 100, /* bytes of a rule's name */
    SAME_MAX = 16,       /* fields in a list "same" */
    NEED_TYPES_MAX =
        10, /* kinds that one rule waits for: each needs its own wait key */
};

/* The limit of every duration. */
#define GATE_DURATION_MAX_MS (INT64_C(366) * 24 * 3600 * 1000)

struct logic; /* logic.h: a condition that is ready to evaluate */

/* The messages that a rule is for. An empty list matches anything. Names are
 * compared ignoring case, kinds exactly. */
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

/* A field that two envelopes must have in common: "from", "reference",
 * "payload", "payload.end_client". */
struct same_field {
    enum same_kind {
        SAME_FROM,
        SAME_TO,
        SAME_TYPE,
        SAME_REFERENCE,
        SAME_PAYLOAD, /* the whole payload, compared as a JSON value */
        SAME_PATH,    /* one field of it */
    } kind;
    struct strs path; /* SAME_PATH: keys below payload */
};

/* An event that must have happened for the same reference. */
struct need {
    struct strs type;    /* any of them */
    struct strs from;    /* senders; empty: any */
    struct strs to;      /* recipients; empty: any */
    enum approval wants; /* APPROVAL_NONE: no approval needed */
    int64_t within_ms;   /* maximum age; zero: no limit */
};

struct rule {
    struct str name;
    enum section section;
    struct match match;
    const struct logic *when; /* NULL: no condition */
    uint32_t at;              /* offset in the file */
    uint32_t order;           /* index in its section */

    /* The fields of each section. */
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
        struct {              /* FRESHNESS of an agent's data */
            struct str agent; /* empty: the target */
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
    /* DEPENDENCIES, FRESHNESS, CAPACITY, SAFETY_GATES: how long the message is
     * held; zero: holds.expire_after applies. */
    int64_t hold_ms;
    enum gate_expiry on_expiry;
};

/* The rules for one message: looked up once for all sections, then iterated
 * section by section, in the order of the file.
 *
 *     struct rule_pick pick;
 *     rules_pick(&pick, r, e);
 *     for (rule = rules_first(&pick, SECTION_SLA); rule;
 *          rule = rules_next(&pick))
 *
 * The rules returned fit the message by their match; `when` is not
 * evaluated. */
enum { RULE_WAYS = 8 /* from, to and type, each given or not */ };

struct rule_pick {
    const struct gate_rules *rules;
    const struct envelope *e;
    enum task_priority priority; /* of the message; the function that raises it
                                    updates it here too */
    const struct rule_bucket *ways[RULE_WAYS];
    size_t n_ways;
    const uint32_t *at[RULE_WAYS],
        *end[RULE_WAYS]; /* the range in the current section */
};

void rules_pick(struct rule_pick *p, const struct gate_rules *r,
                const struct envelope *e);
const struct rule *rules_first(struct rule_pick *p, enum section s);
const struct rule *rules_next(struct rule_pick *p);

/* "safety_gates". */
struct str section_name(enum section s);

bool match_has(struct strs list, struct str s);
bool match_has_name(struct strs list, struct str s); /* ignoring case */

/* Whether a rule's match fits the message. Slow, without the index. */
bool rule_fits(const struct rule *rule, const struct envelope *e,
               enum task_priority priority);

/* Build the index once all rules are read. ERR_NOMEM. */
MUST_USE enum err rules_index(struct gate_rules *r);

struct gate_rules {
    struct arena arena; /* holds everything below */
    struct gate_about about;
    struct rule *rules; /* by section, then in the order of the file */
    size_t n_rules;
    size_t first[N_SECTIONS + 1]; /* the start of each section in `rules` */
    const struct gate_revival *revivals; /* sorted by agent */
    size_t n_revivals;
    /* The first channel that takes decisions; empty: none. */
    struct str feed_channel;
    /* rule_index.c's own. */
    struct rule_index *index;
};

#endif
