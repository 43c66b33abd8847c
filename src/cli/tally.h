#ifndef CLI_TALLY_H
#define CLI_TALLY_H

/* tally: what other settings would have changed, counted, and what is known of
 * whether that were good. Owns copies of the names. Pure. */

#include "base/arena.h"
#include "model/decision.h"

/* Of one agent to another. */
struct tally_pair {
    struct str from, to;
    int64_t n, by_word[N_HINDSIGHTS];
};

enum { TALLY_PAIRS_MAX = 4096 }; /* the others are counted in the sums alone */

struct tally {
    struct arena arena;
    struct tally_pair *pairs;
    size_t n_pairs;
    int64_t replayed;
    int64_t same;    /* the same agent; */
    int64_t relayed; /* of these, by another layer */
    int64_t changed;
    int64_t unsaid; /* nobody looked then at what would count now */
    int64_t partly; /* more agents were compared than the record has */
    int64_t unread; /* no decision that we understand */
    int64_t by_word[N_HINDSIGHTS];
    int64_t left_out; /* changes that are in no pair */
};

MUST_USE enum err tally_init(struct tally *t);
void tally_fini(struct tally *t);

/* A change; the word it got. */
enum hindsight tally_add(struct tally *t, const struct decision *was,
                         struct str to);

/* The most first; of equals those whose names sort first. */
void tally_sort(struct tally *t);

#endif
