#ifndef REGISTRY_INTERNAL_H
#define REGISTRY_INTERNAL_H

/* What the files of registry/ share:
 *
 *   registry.c  the mirror: entries by name, in order, by number
 *   load.c      from the store, and the snapshot
 *   change.c    cards: put, patch, remove, configure; settle
 *   grant.c     who may see a shared agent
 *   vectors.c   texts to vectors, and vectors to rows and back
 *   backlog.c   those that cannot be had at once: in the background
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
    bool is_embedded;        /* its vectors are in the index */
    struct list_node todo;   /* in vectors.todo or vectors.later */
    struct vectors_job *job; /* or under way */
    unsigned n_refusals;     /* of its own texts, in a row */
    int64_t due_ms;          /* when it is tried again, then */
};

/* vectors.c */

/* Vectors of one row. Where a card's texts would be more with this model, its
 * last examples have none; the agent's own and its skills' always fit. */
enum { VECTORS_BYTES_MAX = 32 * 1024 * 1024 };

/* Whose vectors the index has, and what is on its way to more of them. */
struct vectors {
    struct registry *r;
    struct embed_stamp stamp; /* dims zero: a provider that nobody has had an
                               * answer from, and no row of its either */
    bool is_begun;
    struct list todo;  /* entries */
    struct list later; /* those whose texts were refused, until due_ms */
    struct list jobs;
    size_t n_todo, n_later, n_jobs;
    size_t n_texts_out;
    int64_t later_ms; /* none of `later` is due before */
    struct timer timer;
    struct loop_job kick;
    /* All wait when it is not one agent's texts. */
    unsigned n_failures; /* in a row */
    uint64_t round;      /* how often, ever */
    unsigned n_refused;  /* agents in a row whose own texts it was */
    int64_t again_ms;    /* nothing is begun before */
    uint64_t chance;
    struct {
        bool is_on; /* somebody reads how far it is */
        int64_t done, said;
        int64_t next_ms;
    } progress;
};

/* Part of registry_new and registry_free; the index is there. */
MUST_USE enum err vectors_open(struct registry *r);
void vectors_close(struct registry *r);

/* All texts of a card, in the order of VECTOR_BYTES, copied into the arena. */
MUST_USE enum err vectors_texts(struct arena *a, const struct agent *agent,
                                struct strs *out);

/* Whether two cards have the same texts, so that the vectors of one will do
 * for the other. */
bool vectors_are_same(const struct agent *a, const struct agent *b);

/* The packed vectors of a card into `out`, if all can be had in a moment; else
 * it stays empty and false comes back. */
bool vectors_now(struct registry *r, const struct agent *a, struct buf *out);

/* How many of a card's texts have vectors, if those are so long: all, but for
 * VECTORS_BYTES_MAX. */
size_t vectors_kept(const struct agent *a, uint32_t dims);

/* Pack one behind what is in `out`. False: no memory. */
MUST_USE bool vectors_pack(struct buf *out, const float *v, uint32_t dims);

/* The row for packed vectors: an operation in a tx that writes or has written
 * the card. */
void vectors_append(struct registry *r, struct tx *tx, const struct agent *a,
                    struct str packed);

/* Of packed vectors in the row's order, those that the index takes: the
 * agent's for search, and the skills'. False: they are none of this card or
 * model. */
bool vectors_for_index(struct registry *r, const struct agent *a,
                       struct str packed, struct buf *out);

/* The same for a row of vector_table, whose revision and model are looked at
 * too. With a provider that has not said yet how long its vectors are, the
 * first row of its says it. */
bool vectors_from_row(struct registry *r, const struct agent *a,
                      const struct row *row, struct buf *out);

/* The model may have said by now how long its vectors are: if that is not what
 * the index has, all are made anew. */
void vectors_learn(struct registry *r);

/* NULL: vectors can be made and kept; else why not, to stand behind "because".
 */
const char *vectors_obstacle(const struct registry *r);

/* backlog.c */

/* An entry has come that has none, or goes that may wait for some. */
void vectors_want(struct registry *r, struct entry *e);
void vectors_forget(struct registry *r, struct entry *e);

void vectors_begin(struct registry *r);
void vectors_stop(struct registry *r);

/* Those in the index are of no use any more. */
void vectors_want_all(struct registry *r);

/* How many agents that they may see wait for vectors, themselves not counted.
 */
size_t vectors_awaited(const struct registry *r, const struct eyes *eyes);

/* search.c */

/* Part of registry_new and registry_free. */
MUST_USE enum err search_open(struct registry *r);
void search_close(struct registry *r);
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
