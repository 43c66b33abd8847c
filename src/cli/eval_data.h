#ifndef CLI_EVAL_DATA_H
#define CLI_EVAL_DATA_H

/* eval_data: what is evaluated, read from files of one JSON object a line.
 *
 *   agents    {"name", "description", "skills": [...], "examples": [...],
 *              "routing": {"keywords": [...]}}
 *   queries   {"text", "agents": [...], "level"}; examples have the same form
 *
 * A skill is a text, or an object with name, description and examples. Other
 * members are left to others; blank lines do no harm. Whatever is wrong is
 * said with FILE:LINE:COL, the first of it. Owns copies of all texts. Threads:
 * one at a time. */

#include "base/arena.h"
#include "base/map.h"
#include "model/agent.h"

enum {
    EVAL_FILE_MAX = 128 * 1024 * 1024, /* bytes */
    EVAL_LINE_MAX = 4 * 1024 * 1024,   /* bytes */
    EVAL_AGENTS_MAX = 100 * 1000,
    EVAL_QUERIES_MAX = 200 * 1000, /* of all files, and as many examples */
    EVAL_TEXTS_MAX = 1000 * 1000,  /* of all agents */
    EVAL_LEVEL_MAX = 64,           /* bytes of a level's name */
    EVAL_LEVELS_MAX = 16,
};

struct eval_agent {
    struct str name, description;
    const struct skill *skills; /* as a card has them, for the search */
    size_t n_skills;
    struct strs keywords;       /* for routing */
    size_t line;                /* where it stands */
    size_t first_text, n_texts; /* what it is found by: profile, skills,
                                 * examples; in texts */
};

struct eval_query {
    struct str text;
    const uint32_t *agents; /* that are right; numbers of agents */
    size_t n_agents;
    uint32_t level; /* in levels; EVAL_NO_LEVEL: none is said */
};
#define EVAL_NO_LEVEL UINT32_MAX

struct eval_set {
    struct eval_agent *agents; /* in the order of their names */
    size_t n_agents;
    struct str *texts;
    size_t n_texts;
    struct eval_query *queries, *examples; /* in the order of the files */
    size_t n_queries, n_examples;
    struct str levels[EVAL_LEVELS_MAX]; /* as they first came */
    size_t n_levels;

    struct arena arena, scratch;
    struct map by_name; /* lower case -> agent, once they are in order */
    size_t agents_cap, texts_cap, queries_cap, examples_cap;
};

void eval_set_init(struct eval_set *s);
void eval_set_fini(struct eval_set *s);

/* Agents come first, once. ERR_IO and ERR_NOT_FOUND: the file; ERR_SYNTAX,
 * ERR_BAD_REQUEST: what is in it; ERR_LIMIT; ERR_NOMEM. The set is then good
 * for nothing but eval_set_fini. */
MUST_USE enum err eval_read_agents(struct eval_set *s, const char *path,
                                   struct why *why);

/* Add what a file holds, at most `limit` of it. */
MUST_USE enum err eval_read_queries(struct eval_set *s, const char *path,
                                    size_t limit, struct why *why);
MUST_USE enum err eval_read_examples(struct eval_set *s, const char *path,
                                     struct why *why);

/* Up to k examples of every agent, none of them twice: the first in the file,
 * or, with a seed, any, the same ones for the same seed. `out` has k places for
 * each agent, n_out says how many of them are filled. */
void eval_shots(const struct eval_set *s, size_t k, const uint64_t *seed,
                uint32_t *out, uint32_t *n_out);

/* Whatever the case; NULL: there is none. */
const struct eval_agent *eval_find(const struct eval_set *s, struct str name);

/* The name that was meant, or an empty one. */
struct str eval_guess(const struct eval_set *s, struct str name);

#endif
