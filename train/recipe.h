#ifndef TRAIN_RECIPE_H
#define TRAIN_RECIPE_H

/* recipe: every choice that was made for the built-in model, in one place.
 *
 * What is tried is tried by changing a number here, or for one run with
 * `--set NAME=VALUE`; the card that goes with the table lists them all. The
 * same recipe, texts and teacher give the same bytes. */

#include "base/buf.h"
#include "base/str.h"

struct recipe {
    int64_t seed;

    /* The texts, and what is made out of them: about so many of each. */
    int64_t text_words; /* of one, the first */
    int64_t cards;      /* "name: description" */
    int64_t requests;   /* "can you ..." around a short text */
    int64_t joins;      /* two or three in one */
    int64_t utterances; /* what people might say */
    int64_t crops;      /* windows of words, for each text */
    int64_t crop_min_words;
    int64_t crop_max_words;
    int64_t held_permille; /* of the texts, never trained on: for figures */

    /* The vocabulary, beside the teacher's pieces. */
    int64_t word_min_count; /* of a whole word that would be split */
    int64_t max_words;      /* of those, at most */
    int64_t phrase_min_count;
    double phrase_min_gain; /* how much oftener than by chance, as logarithm */
    int64_t max_phrases;
    int64_t max_bytes; /* of the whole table */

    /* The teacher's vectors, and the first rows. */
    double centre; /* how much of the mean is taken off: 0 nothing, 1 all */
    double sif;    /* rows begin as a / (a + p) of the teacher's; 0: as is */

    /* Learning from the teacher's vectors. */
    int64_t epochs;
    int64_t batch;
    double rate;     /* at most; falls in a straight line */
    double rate_end; /* but never below this part of it */
    int64_t warm_up; /* steps until it is reached */
    double beta1;
    double beta2;
    int64_t linger;  /* steps that a row goes on moving after it was seen */
    double cosine;   /* weight of 1 - cosine to the teacher's vector */
    double relation; /* weight of the likenesses among texts */
    int64_t relation_block; /* of so many texts of a batch */
    double drop; /* in every second step, the chance that a row is left out */

    /* Learning from pairs that mean the same. */
    int64_t pair_epochs;
    int64_t pair_batch;
    double pair_rate;
    double pair_heat;   /* the temperature likenesses are divided by */
    double pair_cosine; /* weight of the teacher's vectors meanwhile */
};

/* What data/table.sbt is made by. */
struct recipe recipe_builtin(void);

/* NAME=VALUE. ERR_USAGE with words where there is no such, or it is no number
 * or beyond its bounds. */
MUST_USE enum err recipe_set(struct recipe *r, struct str name_and_value,
                             struct why *why);

/* One "NAME VALUE" a line. */
void recipe_list(const struct recipe *r, struct buf *out);

#endif
