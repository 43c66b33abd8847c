#ifndef CLI_HITS_H
#define CLI_HITS_H

/* hits: search results for people. Each line has an agent, its best skill, its
 * score, a bar for each of the two parts of the score, and the description with
 * the words of the query highlighted.
 *
 * All text comes from outside: control characters are replaced. Owns copies of
 * everything. Threads: one at a time. */

#include "base/arena.h"
#include "base/buf.h"

enum {
    HITS_BYTES_MAX = 16 * 1024 * 1024,
    HITS_TEXT_MAX = 512,    /* bytes of one text; the rest is ignored */
    HITS_NAME_COLUMNS = 28, /* longer names are cut */
    HITS_NAME_LEAST = 8,    /* columns, in a narrow terminal */
    HITS_BAR_CELLS = 5,
    HITS_BESIDE = 40, /* a description with less room goes below */
    HITS_LINES = 2,   /* of a description below */
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
    bool is_over; /* the memory limit is reached */
};

void hits_init(struct hits *h, struct str query);
void hits_fini(struct hits *h);

void hits_add(struct hits *h, const struct hit *hit);

/* A skill of the last agent, with its own figures and description. */
void hits_add_part(struct hits *h, const struct hit *part);

/* width zero: no limit, and descriptions on the same line. If hits are missing
 * because of the memory limit, out->over is set. */
void hits_write(const struct hits *h, struct buf *out, unsigned width,
                bool colour, bool unicode);

#endif
