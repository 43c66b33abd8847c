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

    /* dot_i8 of v with each of n_rows rows of n, `stride` bytes apart. */
    void (*dots_i8)(const int8_t *rows, size_t stride, size_t n_rows,
                    const int8_t *v, size_t n, int32_t *out);

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

/* A vector as it is kept: one long, sixteen bits a number, in two planes of
 * bytes, so that one product of bytes gives a good guess and four the fine
 * value:
 *
 *     v[i] = scale * (256 * high[i] + low[i])
 *
 * Whole numbers all the way, so the same on every processor. `slack` is how far
 * high alone is from v (the length of the difference, rounded up): the guess
 * of a product differs from its fine value by no more than
 *
 *     |a.b - guess| <= a.slack * |b| + |a_high| * b.slack
 *
 * and |b| is at most VEC_PACKED_LENGTH, |a_high| at most that and a.slack.
 * Laid out as it lies in files: scale, slack, high, low; two bytes a number
 * and eight in front. */
struct vec_packed {
    float scale, slack;
    const int8_t *high, *low;
    size_t n;
};

/* One, but for the rounding of scale. */
#define VEC_PACKED_LENGTH 1.000001F

static inline size_t vec_packed_bytes(size_t n)
{
    return 8 + 2 * n;
}

/* Make it one long and pack it. False, and all zero: it cannot be made one
 * long. At most 65536 numbers. */
bool vec_pack(const float *v, size_t n, uint8_t *out);

/* Points into the bytes, which need no alignment. False: vec_pack made no such
 * thing; not of that length, not one long, or the slack is not what it should
 * be. All zero is a vector too, alike nothing. */
bool vec_packed_open(struct vec_packed *p, const uint8_t *bytes, size_t n_bytes,
                     size_t n);

/* What the slack would be if the first n numbers were all of it. */
float vec_slack_of(const struct vec_packed *p, size_t n);

/* Both from whole numbers, in doubles; of two lengths, the shorter counts. */
double vec_packed_guess(const struct vec_packed *a, const struct vec_packed *b);
double vec_packed_dot(const struct vec_packed *a, const struct vec_packed *b);
/* Of the first n numbers, which both have. */
double vec_packed_dot_of(const struct vec_packed *a, const struct vec_packed *b,
                         size_t n);

/* What vec_packed_dot_of multiplies its scales with, of v and each of n_rows
 * rows whose planes lie `stride` bytes apart. VEC_ROWS_MAX rows at most. */
enum { VEC_ROWS_MAX = 64 };
void vec_packed_products(const int8_t *high, const int8_t *low, size_t stride,
                         size_t n_rows, const struct vec_packed *v, size_t n,
                         int64_t *out);

/* Vectors of two parts. A full one is [ A * t | B * x ], with t and x one long
 * each and A * A + B * B = 1; a quick one is [ t | 0 ], made where x is not
 * there yet. Two quick ones or two full ones are as alike as their product
 * says. Of a quick and a full one the product is A * (t . t'), so it is divided
 * by A, and that is how alike the first parts are: what can be known of them.
 * This is the one home of that rule.
 *
 * Whether a vector is quick is seen from itself: all numbers from `quick` on
 * are zero. `quick`: how many numbers the first part has; zero: vectors of this
 * model have one part, and none is quick. */
#define VEC_QUICK_PART 0.25 /* A * A, by measurement: docs/quality.md */

/* v has both parts, of any length: each is made one long, and they are joined
 * as above, as the mean of full vectors must be. Where one is zero, the other
 * is all of it; so without the second part it is a quick one. False: both are
 * zero, or v cannot be made one long. quick zero: vec_normalise. */
bool vec_join(float *v, size_t n, size_t quick);

bool vec_packed_is_quick(const struct vec_packed *p, size_t quick);

/* What the product is multiplied with. */
double vec_gain(bool is_quick_a, bool is_quick_b);

/* The product by that rule. Where one is quick, only the first parts are
 * touched. May be a little more than one, as products of packed vectors are. */
double vec_likeness(const struct vec_packed *a, const struct vec_packed *b,
                    size_t quick);

/* Make it one long. False, and all zero, where that cannot be done. */
bool vec_normalise(float *v, size_t n);

#endif
