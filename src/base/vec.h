#ifndef BASE_VEC_H
#define BASE_VEC_H

/* vec: what is done with vectors of numbers: products, lengths, likeness.
 *
 * Every level of cpu.h gives the same: sums of whole numbers are exact, and
 * those of fractions are added in one order, sixteen lanes side by side
 * whatever the width, so that a decision does not depend on the processor that
 * made it. Threads: any; nothing here keeps state. */

#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vec_ops {
    float (*dot)(const float *a, const float *b, size_t n);
    /* Of more than 131071 numbers the sum may not fit; it then wraps around. */
    int32_t (*dot_i8)(const int8_t *a, const int8_t *b, size_t n);

    /* sum[i] += scale * row[i] */
    void (*add_i8)(float *sum, const int8_t *row, float scale, size_t n);
};

/* The operations of one level; NULL where this processor has not got it. */
const struct vec_ops *vec_ops_of(enum cpu_level level);

/* Those of the widest. */
const struct vec_ops *vec_ops(void);

/* How alike two vectors are, -1 to 1. Never NaN: of an empty vector, one that
 * is all zero, or one with something in it that is no finite number it is 0; of
 * two lengths, the shorter counts. */
float vec_cosine(const float *a, size_t n_a, const float *b, size_t n_b);

/* Make it one long. False, and all zero, where that cannot be done. */
bool vec_normalise(float *v, size_t n);

#endif
