#ifndef TRAIN_SAMPLES_H
#define TRAIN_SAMPLES_H

/* samples: a corpus and a vocabulary -> what there is to learn from. */

#include "train/learn.h"
#include "train/vocabulary.h"

enum { SAMPLE_ROWS_MAX = 256 }; /* of a text: the first */

/* Sample i is text i; targets are zero. */
void samples_make(struct samples *s, const struct vocabulary *v,
                  const struct corpus *c, struct crew *crew);
void samples_fini(struct samples *s);

/* Those that may be trained on, into `order`; how many. */
size_t samples_trained(const struct samples *s, const struct corpus *c,
                       uint32_t *order);

/* First rows: `said` is the teacher's for each of the words, one long. */
void student_begin(struct student *st, const struct samples *s,
                   const struct corpus *c, const float *said, size_t n_words,
                   const struct recipe *r);

/* ---- floats -> bytes ---- */

struct quantised {
    int8_t *rows;
    float *scales;
    float unknown_scale;
};

void quantise(struct quantised *q, const struct student *st);
void quantised_fini(struct quantised *q);

/* Rows as the bytes will give them, back into floats. */
void quantised_back(const struct quantised *q, struct student *st);

/* ---- figures ---- */

struct figures {
    size_t n_held, n_pairs;
    double cosine;        /* mean to the teacher, over texts held out */
    double pairs_student; /* of pairs held out, how many find each other */
    double pairs_teacher;
};

void figures_take(struct figures *f, struct student *st,
                  const struct samples *s, const struct corpus *c,
                  struct crew *crew);

#endif
