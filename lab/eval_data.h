#ifndef LAB_EVAL_DATA_H
#define LAB_EVAL_DATA_H

/* eval_data: agents and labelled queries, from files with one JSON object a
 * line.
 *
 *   agents    {"name", "description", "skills": [...], "examples": [...],
 *              "routing": {"keywords": [...]}}
 *   queries   {"text", "agents": [...], "level"}; examples have the same form
 *
 * A skill is a text, or an object with name, description and examples. Other
 * members and blank lines are ignored. The first problem is reported with
 * FILE:LINE:COL. Owns copies of all texts. Threads: one at a time. */

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
    size_t line;                /* in the file */
    size_t first_text, n_texts; /* its profile, skills and examples, in texts
                                 */
};

struct eval_query {
    struct str text;
    const uint32_t *agents; /* the right ones, by number */
    size_t n_agents;
    uint32_t level; /* in levels; EVAL_NO_LEVEL: none */
};
#define EVAL_NO_LEVEL UINT32_MAX

struct eval_set {
    struct eval_agent *agents; /* in the order of their names */
    size_t n_agents;
    struct str *texts;
    size_t n_texts;
    struct eval_query *queries, *examples; /* in the order of the files */
    size_t n_queries, n_examples;
    struct str levels[EVAL_LEVELS_MAX]; /* in the order of the files */
    size_t n_levels;

    struct arena arena, scratch;
    struct map by_name; /* lower case -> agent, once they are sorted */
    size_t agents_cap, texts_cap, queries_cap, examples_cap;
};

void eval_set_init(struct eval_set *s);
void eval_set_fini(struct eval_set *s);

/* Read the agents, first and once. ERR_IO and ERR_NOT_FOUND: the file cannot be
 * read; ERR_SYNTAX, ERR_BAD_REQUEST: its content is wrong; ERR_LIMIT;
 * ERR_NOMEM. After an error only eval_set_fini may be called. */
MUST_USE enum err eval_read_agents(struct eval_set *s, const char *path,
                                   struct why *why);

/* Add the queries of a file, at most `limit`. */
MUST_USE enum err eval_read_queries(struct eval_set *s, const char *path,
                                    size_t limit, struct why *why);
MUST_USE enum err eval_read_examples(struct eval_set *s, const char *path,
                                     struct why *why);

/* Choose up to k different examples for each agent: the first in the file, or
 * with a seed random ones, the same for the same seed. `out` has k places for
 * each agent; n_out is the number of used ones. */
void eval_shots(const struct eval_set *s, size_t k, const uint64_t *seed,
                uint32_t *out, uint32_t *n_out);

/* Whether the agent is right for the query. */
bool eval_query_names(const struct eval_query *q, uint32_t agent);

/* The texts of n queries, each cut to max bytes. Returns owned; NULL: out of
 * memory. */
MUST_USE struct str *eval_query_texts(const struct eval_query *q, size_t n,
                                      size_t max);

/* Find an agent, ignoring case. NULL: there is none. */
const struct eval_agent *eval_find(const struct eval_set *s, struct str name);

/* The name that was probably meant; empty: none. */
struct str eval_guess(const struct eval_set *s, struct str name);

#endif
