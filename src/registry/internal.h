#ifndef REGISTRY_INTERNAL_H
#define REGISTRY_INTERNAL_H

/* What the files of registry/ share:
 *
 *   registry.c  the mirror: entries by name, in order, by number
 *   load.c      from the store, and the snapshot
 *   change.c    cards: put, patch, remove, configure; settle
 *   grant.c     who may see a shared agent
 *   vectors.c   texts to vectors, at once or in the background
 *   search.c    a query to a ranked answer
 *   check.c     whether memory, index and store agree
 */

#include "base/list.h"
#include "base/map.h"
#include "registry/registry.h"

/* One agent in memory. Replaced whole by a change: whoever holds one across
 * turns holds its name instead. */
struct entry {
    struct agent agent; /* first: an agent is its entry */
    struct arena arena; /* of everything in it */
    uint32_t number;    /* in the index */
    bool is_claimed;    /* a change of it is on its way */

    /* vectors.c */
    bool is_embedded;      /* its vectors are in the index, or were asked of a
                            * model and it had nothing to go by */
    struct list_node todo; /* in registry.todo unless it is embedded or out */
    int64_t n_failures;    /* in a row */
};

/* vectors.c */

/* All texts of a card, in the order of VECTOR_BYTES, copied into the arena. */
MUST_USE enum err vectors_texts(struct arena *a, const struct agent *agent,
                                struct strs *out);

/* Whether two cards have the same texts, so that the vectors of one will do
 * for the other. */
bool vectors_are_same(const struct agent *a, const struct agent *b);

/* The packed vectors of a card into `out`, if all can be had without waiting;
 * else it stays empty and false comes back. */
bool vectors_now(struct registry *r, const struct agent *a, struct buf *out);

/* The row for packed vectors: an operation in a tx that writes or has written
 * the card. */
void vectors_append(struct registry *r, struct tx *tx, const struct agent *a,
                    struct str packed);

/* Of packed vectors in the row's order, those that the index takes: the
 * agent's for search, and the skills'. False: they are none of this card or
 * model. */
bool vectors_for_index(struct registry *r, const struct agent *a,
                       struct str packed, struct buf *out);

/* An entry has come that has none, or goes that may wait for some. */
void vectors_want(struct registry *r, struct entry *e);
void vectors_forget(struct registry *r, struct entry *e);

void vectors_begin(struct registry *r);
void vectors_stop(struct registry *r);

/* search.c */
void search_stop(struct registry *r);

struct registry {
    struct registry_opts opts;
    struct map by_name;  /* lower case -> struct entry */
    struct entry **list; /* in the order of their names, as agents */
    size_t n, cap;
    struct entry **by_number; /* NULL where a number is free */
    size_t n_numbers, numbers_cap;
    struct index *index;
    int64_t seq;                 /* of what memory shows */
    struct registry_stats stats; /* the counters of it */
    bool is_stopped;
    struct vectors *vectors;   /* vectors.c's own, and */
    struct searches *searches; /* search.c's */
};

#endif
