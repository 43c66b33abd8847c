#ifndef TRAIN_LEARN_H
#define TRAIN_LEARN_H

/* learn: rows that, averaged over a text, point where the teacher points.
 *
 * A step takes some samples, averages their rows, makes the averages one long
 * (u), asks losses.c how each u should move (g), and carries that back to the
 * rows, which Adam moves. All of it is done by the crew in parts that do not
 * touch: texts on the way up, rows on the way down. */

#include "train/train.h"

/* Texts as rows of the table, and where the teacher wants them. */
struct samples {
    size_t n, dims;
    uint32_t *rows; /* of all, one behind the other */
    size_t n_rows, cap_rows;
    size_t *ends;   /* of each in rows */
    float *targets; /* n times dims */
};

struct student {
    size_t n_rows, dims;
    float *rows;
    float *m, *v;                  /* Adam's moments */
    uint32_t *seen_at;             /* step in which a row was last seen */
    uint32_t step;                 /* how many there were */
    double beta1_left, beta2_left; /* to the power of the steps done */
    size_t n_seen;                 /* rows that some text has */
};

void student_init(struct student *s, size_t n_rows, size_t dims);
void student_fini(struct student *s);

/* Forget the moments: what follows has another aim. */
void student_rest(struct student *s);

struct link {
    uint32_t item; /* of the batch */
    uint32_t next; /* one more than its place; zero: none */
};

/* What one step works on; n is a multiple of BATCH_UNIT. */
enum { BATCH_UNIT = 16 };

struct batch {
    size_t n, dims;
    const struct samples *samples;
    uint32_t *which;  /* sample of each item */
    float *u;         /* n times dims */
    float *lengths;   /* of the averages */
    uint32_t *n_kept; /* rows of each that were not dropped */
    float *targets;   /* n times dims */
    float *g;         /* how the loss grows with u; then, with each row */
    double loss;
    uint64_t chance; /* of this step */
    double drop;
    struct crew *crew;

    /* for losses: dims times n, and n times n */
    float *turned, *likeness, *wanted;

    /* for the way down */
    uint32_t *first;
    struct link *links;
    size_t n_links, cap_links;
};

void batch_init(struct batch *b, const struct samples *s, size_t n_rows,
                size_t n, struct crew *crew);
void batch_fini(struct batch *b);

/* Fill u and targets; g and loss are zero. */
void student_up(struct student *s, struct batch *b);

/* Losses add to g and loss. Relations are those within a block of so many. */
void loss_cosine(struct batch *b, double weight);
void loss_relation(struct batch *b, double weight, size_t block);

/* The first half of the batch and the second are pairs that mean the same;
 * all others of the other half do not, unless they are the same sample. */
void loss_pairs(struct batch *b, double heat);

/* Move the rows. g is used up. */
void student_down(struct student *s, struct batch *b, const struct recipe *r,
                  double rate);

/* Learn from the teacher's vectors of the samples in `order`, which is
 * shuffled; then from pairs of samples. */
void learn_vectors(struct student *s, const struct samples *all,
                   uint32_t *order, size_t n, const struct recipe *r,
                   struct crew *crew, bool is_quiet);
void learn_pairs(struct student *s, const struct samples *all,
                 struct pair *pairs, size_t n, const struct recipe *r,
                 struct crew *crew, bool is_quiet);

#endif
