#ifndef GATE_RULES_LOGIC_H
#define GATE_RULES_LOGIC_H

/* logic: the conditions of rules, in JsonLogic (jsonlogic.com).
 *
 * All public operators, as in the JavaScript reference: its loose equality, its
 * conversions, and its own truth table ([] is false, "0" is true). A condition
 * is read once, which reports everything that is wrong with it, and then
 * evaluated any number of times. Every evaluation ends after a bounded number
 * of steps and bytes, and gives the same result for the same data.
 *
 * Differences from the reference, with their reasons:
 *
 *   read strictly     an unknown operator, an object with no key or several
 *                     and a wrong number of arguments are rejected on reading;
 *                     the reference gives undefined, or always true
 *   data is data      {"missing": …} never evaluates a rule that it finds in
 *                     the data, and var does not find inherited properties
 *   whole numbers     of 64 bits are compared and written exactly
 *   characters        substr, length and "text.0" count characters, not UTF-16
 *                     code units; text is ordered by characters
 *   log               returns its argument and has no effect
 *   no number         NaN and the infinities (1 / 0) are numbers during
 *                     evaluation; as a value they become null, since JSON has
 *                     no word for them
 *
 * Pure. Threads: any; a condition is constant once it is read. */

#include "base/json.h"

enum {
    LOGIC_DEPTH_MAX = JSON_DEPTH_MAX,  /* nesting of rules */
    LOGIC_STEPS_MAX = 100 * 1000,      /* of one evaluation */
    LOGIC_BYTES_MAX = 8 * 1024 * 1024, /* of scratch memory, likewise */
    LOGIC_TEXT_MAX = 1024 * 1024,      /* of a text that it builds */
    LOGIC_PATH_MAX = 32,               /* parts of a computed path */
};

struct logic;

struct logic_problem {
    size_t at; /* where the faulty value begins: json.at */
    char words[240];
};

/* Read a rule and copy it into the arena. NULL with *p filled when it is
 * invalid, or when the arena is full. */
MUST_USE struct logic *logic_read(struct arena *a, const struct json *rule,
                                  struct logic_problem *p);

/* The data that a rule reads. root() receives the first part of a path and
 * returns the tree for the rest of it, or NULL; "" asks for all data. Trees
 * that no rule reads need not be built. A returned tree must stay valid for the
 * whole call. */
struct logic_data {
    const struct json *(*root)(void *ctx, struct str first);
    void *ctx;
};

/* Data that is already a tree; a NULL tree is null. */
struct logic_data logic_data_of(const struct json *tree);

enum logic_answer {
    LOGIC_NO,
    LOGIC_YES,
    LOGIC_FAILED, /* the evaluation failed: too many steps, or no memory */
};

/* A budget that several conditions share. */
struct logic_room {
    long steps;
    size_t bytes;
};

/* Whether the condition holds. Temporary values live in scratch. Fails when too
 * little of the budget is left; room may be NULL. On failure *why is a constant
 * string (why may be NULL). */
MUST_USE enum logic_answer logic_holds_within(const struct logic *l,
                                              const struct logic_data *d,
                                              struct arena *scratch,
                                              struct logic_room *room,
                                              const char **why);

/* The value itself, in scratch or in the data. NULL on failure. Reals in it may
 * be NaN or infinite; they are written as null. */
const struct json *logic_value(const struct logic *l,
                               const struct logic_data *d,
                               struct arena *scratch, const char **why);

/* Report the data paths that a rule mentions, unordered and possibly more than
 * once. n is zero for a path that could be any: all data, or a computed path.
 * Paths through an element inside map, filter and the like are not reported;
 * the path of the list is. */
typedef void logic_mention(void *ctx, const struct str *path, size_t n);
void logic_mentions(const struct logic *l, logic_mention *say, void *ctx);

#endif
