#ifndef CLI_HITS_H
#define CLI_HITS_H

/* hits: what a search found, for people: a line for each agent with its best
 * skill, its score, a bar for each of the two parts that made it, and the
 * description, in which the words of the query stand out.
 *
 * Everything comes from outside: what could steer a terminal or break a line is
 * replaced. Owns copies of all of it. Threads: one at a time. */

#include "base/arena.h"
#include "base/buf.h"

enum {
    HITS_BYTES_MAX = 16 * 1024 * 1024,
    HITS_TEXT_MAX = 512,    /* bytes that are looked at of one text */
    HITS_NAME_COLUMNS = 28, /* longer names are cut */
    HITS_NAME_LEAST = 8,    /* columns, where a line is short */
    HITS_BAR_CELLS = 5,
    HITS_BESIDE = 40, /* a description with less room goes below */
    HITS_LINES = 2,   /* of a description that stands below */
};

struct hit {
    struct str agent, skill; /* skill may be empty: the agent itself */
    struct str description;
    double score, semantic, text;
};

struct hits {
    struct arena arena;
    struct hits_row *first, *newest, **last;
    size_t n;
    const struct str *stems; /* of the query */
    size_t n_stems;
    bool is_over; /* it did not fit in memory */
};

void hits_init(struct hits *h, struct str query);
void hits_fini(struct hits *h);

void hits_add(struct hits *h, const struct hit *hit);

/* A skill of the one that was added last, with its figures; `description` is
 * the skill's. */
void hits_add_part(struct hits *h, const struct hit *part);

/* width zero: lines as long as they are, and descriptions beside. What did not
 * fit in memory is missing, and out->over says so. */
void hits_write(const struct hits *h, struct buf *out, unsigned width,
                bool colour, bool unicode);

#endif
