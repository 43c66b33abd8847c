#ifndef GATE_LOGIC_H
#define GATE_LOGIC_H

/* logic: conditions of the rules, in JsonLogic (jsonlogic.com).
 *
 * The whole public set of operators, as the reference in JavaScript has them:
 * its loose equality and its conversions, and its own truth table ([] is false,
 * "0" is true). A condition is read once, where whatever is wrong with it is
 * told, and then worked out as often as one likes. That always ends, after a
 * bounded number of steps and bytes, and says the same of the same data.
 *
 * Where we differ from the reference, each for a reason:
 *
 *   read strictly     an unknown operator, an object with no key or several
 *                     and a wrong number of arguments are refused when they
 *                     are read; there they give undefined, or hold always
 *   data is data      {"missing": …} never runs what it finds in the data as
 *                     a rule, and var does not find what objects inherit
 *   whole numbers     of 64 bits are compared and written exactly
 *   characters        substr, length and "text.0" count characters, not the
 *                     halves that some have in UTF-16; text is ordered by them
 *   log               gives its argument back and does nothing else
 *   no number         NaN and the infinities (1 / 0) are numbers while it is
 *                     worked out; as a value JSON has no word for them: null
 *
 * Pure. Threads: any; a condition is constant once it is read. */

#include "base/json.h"

enum {
    LOGIC_DEPTH_MAX = JSON_DEPTH_MAX,  /* rules in rules */
    LOGIC_STEPS_MAX = 100 * 1000,      /* of working one out */
    LOGIC_BYTES_MAX = 8 * 1024 * 1024, /* of scratch, likewise */
    LOGIC_TEXT_MAX = 1024 * 1024,      /* a text that it makes */
    LOGIC_PATH_MAX = 32,               /* parts of a path that is worked out */
};

struct logic;

struct logic_problem {
    size_t at; /* where the culprit begins: json.at */
    char words[240];
};

/* Read a rule: everything of it is copied into the arena. NULL with *p filled
 * when it is none, or when the arena is full. */
MUST_USE struct logic *logic_read(struct arena *a, const struct json *rule,
                                  struct logic_problem *p);

/* What a rule looks at. root() is asked for the first part of a path and gives
 * the tree that the rest of it leads through, or NULL; asked for "" it gives
 * the whole. So nobody need make trees that no rule looks at. What it gives
 * must stay for as long as the call takes. */
struct logic_data {
    const struct json *(*root)(void *ctx, struct str first);
    void *ctx;
};

/* Data that is a tree already; tree may be NULL, which is null. */
struct logic_data logic_data_of(const struct json *tree);

enum logic_answer {
    LOGIC_NO,
    LOGIC_YES,
    LOGIC_FAILED, /* it could not be worked out: too long, or no memory */
};

/* Whether it holds. scratch: what is worked out lies there. *why is a constant
 * when it failed (why may be NULL). */
MUST_USE enum logic_answer logic_holds(const struct logic *l,
                                       const struct logic_data *d,
                                       struct arena *scratch, const char **why);

/* What several conditions may take together: each takes from it. */
struct logic_room {
    long steps;
    size_t bytes;
};

/* The same; room may be NULL. Where too little is left it fails. */
MUST_USE enum logic_answer logic_holds_within(const struct logic *l,
                                              const struct logic_data *d,
                                              struct arena *scratch,
                                              struct logic_room *room,
                                              const char **why);

/* The value itself, in scratch or of the data. NULL when it failed. Reals in
 * it may be NaN or infinite: written, that is null. */
const struct json *logic_value(const struct logic *l,
                               const struct logic_data *d,
                               struct arena *scratch, const char **why);

/* The paths of the data that a rule mentions, in no order, doubles included.
 * n is zero where it could be anything: the whole, or a path that is worked
 * out first. Paths inside map, filter and their like that lead through an
 * element are not told: what the elements come from is. */
typedef void logic_mention(void *ctx, const struct str *path, size_t n);
void logic_mentions(const struct logic *l, logic_mention *say, void *ctx);

#endif
