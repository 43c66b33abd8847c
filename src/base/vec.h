#ifndef BASE_VEC_H
#define BASE_VEC_H

/* vec: products, lengths and similarity of vectors.
 *
 * Every level of cpu.h gives the same result: sums of integers are exact, and
 * sums of floats are made in one order, sixteen lanes side by side whatever the
 * width, so that a decision does not depend on the processor. Threads: any; no
 * state. */

#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vec_ops {
    float (*dot)(const float *a, const float *b, size_t n);
    /* The sum of more than 131071 numbers may overflow; it then wraps
     * around. */
    int32_t (*dot_i8)(const int8_t *a, const int8_t *b, size_t n);

    /* dot_i8 of v with each of n_rows rows of n bytes, `stride` bytes apart. */
    void (*dots_i8)(const int8_t *rows, size_t stride, size_t n_rows,
                    const int8_t *v, size_t n, int32_t *out);

    /* sum[i] += scale * row[i] */
    void (*add_i8)(float *sum, const int8_t *row, float scale, size_t n);
};

/* The operations of one level; NULL if this processor lacks it. */
const struct vec_ops *vec_ops_of(enum cpu_level level);

/* The operations of the highest level. */
const struct vec_ops *vec_ops(void);

/* Cosine similarity, -1 to 1. Never NaN: it is 0 if a vector is empty, all
 * zero, or holds a number that is not finite. If the lengths differ the shorter
 * one counts. */
float vec_cosine(const float *a, size_t n_a, const float *b, size_t n_b);

/* A stored vector: unit length, sixteen bits a number, in two planes of bytes,
 * so that one product of bytes gives a good guess and four the exact value:
 *
 *     v[i] = scale * (256 * high[i] + low[i])
 *
 * All of it is integers, so it is the same on every processor. `slack` is the
 * distance of high alone from v (the length of the difference, rounded up): the
 * guess of a product differs from its exact value by at most
 *
 *     |a.b - guess| <= a.slack * |b| + |a_high| * b.slack
 *
 * where |b| is at most VEC_PACKED_LENGTH and |a_high| at most that plus
 * a.slack. The layout is that of files: scale, slack, high, low; two bytes a
 * number after eight bytes. */
struct vec_packed {
    float scale, slack;
    const int8_t *high, *low;
    size_t n;
};

/* One, plus the rounding of scale. */
#define VEC_PACKED_LENGTH 1.000001F

static inline size_t vec_packed_bytes(size_t n)
{
    return 8 + 2 * n;
}

/* Normalise and pack at most 65536 numbers. False, with all zeros, if they
 * cannot be normalised. */
bool vec_pack(const float *v, size_t n, uint8_t *out);

/* Point p into the bytes, which need no alignment. False if vec_pack did not
 * make them: the length is wrong, it is not a unit vector, or the slack is
 * wrong. All zeros are a vector too, with similarity 0 to all. */
bool vec_packed_open(struct vec_packed *p, const uint8_t *bytes, size_t n_bytes,
                     size_t n);

/* The slack of the first n numbers alone. */
float vec_slack_of(const struct vec_packed *p, size_t n);

/* Computed from integers, in doubles. If the lengths differ the shorter one
 * counts. */
double vec_packed_guess(const struct vec_packed *a, const struct vec_packed *b);
double vec_packed_dot(const struct vec_packed *a, const struct vec_packed *b);
/* For the first n numbers, which both have. */
double vec_packed_dot_of(const struct vec_packed *a, const struct vec_packed *b,
                         size_t n);

/* The integers that vec_packed_dot_of multiplies with the scales, for v and
 * each of n_rows rows (VEC_ROWS_MAX at most) whose planes are `stride` bytes
 * apart. `guesses` are the products of high and high, which the caller already
 * has. */
enum { VEC_ROWS_MAX = 64 };
void vec_packed_products(const int8_t *high, const int8_t *low, size_t stride,
                         size_t n_rows, const struct vec_packed *v, size_t n,
                         const int32_t *guesses, int64_t *out);

/* Vectors of two parts. A full vector is [ A * t | B * x ], with t and x of
 * unit length and A * A + B * B = 1. A quick vector is [ t | 0 ], made while x
 * is still missing. The similarity of two quick or two full vectors is their
 * product. For a quick and a full one the product is A * (t . t'); divided by A
 * it is the similarity of the first parts, the only comparable ones. This rule
 * is implemented only here.
 *
 * A vector is quick if all numbers from index `quick` on are zero. `quick` is
 * the length of the first part; zero: vectors of this model have one part, and
 * none is quick. */
#define VEC_QUICK_PART 0.25 /* A * A, measured: docs/quality.md */

/* v has both parts, of any length. Each is normalised and they are joined as
 * above; the mean of full vectors needs this. If one part is zero, the other
 * becomes the whole, so a vector without the second part is a quick one. False
 * if both are zero or v cannot be normalised. With quick zero this is
 * vec_normalise. */
bool vec_join(float *v, size_t n, size_t quick);

bool vec_packed_is_quick(const struct vec_packed *p, size_t quick);

/* The factor for the product. */
double vec_gain(bool is_quick_a, bool is_quick_b);

/* The similarity by that rule. If one is quick only the first parts are read.
 * May slightly exceed one, like any product of packed vectors. */
double vec_likeness(const struct vec_packed *a, const struct vec_packed *b,
                    size_t quick);

/* Scale to unit length. False, with all zeros, if that is impossible. */
bool vec_normalise(float *v, size_t n);

#endif
