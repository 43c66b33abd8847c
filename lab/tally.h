#ifndef LAB_TALLY_H
#define LAB_TALLY_H

/* tally: counts the decisions that other settings would change, and whether the
 * change is known to be good. Owns copies of the names. Pure. */

#include "base/arena.h"
#include "model/decision.h"

/* Changes from one agent to another. */
struct tally_pair {
    struct str from, to;
    int64_t n, by_word[N_HINDSIGHTS];
};

enum { TALLY_PAIRS_MAX = 4096 }; /* others are counted only in the sums */

struct tally {
    struct arena arena;
    struct tally_pair *pairs;
    size_t n_pairs;
    int64_t replayed;
    int64_t same;    /* the same agent */
    int64_t relayed; /* of these, chosen by another layer */
    int64_t changed;
    int64_t unsaid; /* the record lacks inputs that would matter now */
    int64_t partly; /* more agents were compared than the record has */
    int64_t unread; /* the record cannot be read */
    int64_t by_word[N_HINDSIGHTS];
    int64_t left_out; /* changes that are in no pair */
};

void tally_init(struct tally *t);
void tally_fini(struct tally *t);

/* Count a change. Returns its assessment. */
enum hindsight tally_add(struct tally *t, const struct decision *was,
                         struct str to);

/* Most frequent first; equal ones sort by name. */
void tally_sort(struct tally *t);

#endif
