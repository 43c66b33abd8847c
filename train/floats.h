#ifndef TRAIN_FLOATS_H
#define TRAIN_FLOATS_H

/* floats: the loops that take the time, with one order for every sum.
 *
 * Sixteen lanes side by side, whatever the processor has: a wider one takes
 * more of them at once and rounds each as the others do, since nothing is
 * contracted to a fused step (-ffp-contract=off) and lanes are added up in one
 * order. exp, log and tanh are here because libm's differ between versions and
 * processors. Threads: any; nothing here keeps state. */

#include <stddef.h>

float float_dot(const float *a, const float *b, size_t n);

/* y += a * x */
void float_add(float *y, float a, const float *x, size_t n);

void float_scale(float *y, float a, size_t n);

/* Rows of c = a * b, of which a has `k` columns and b `n`; n is a multiple of
 * 16. Where `add`, onto what is there. */
void float_mul(float *c, const float *a, const float *b, size_t rows, size_t k,
               size_t n, int add);

/* out, n times m, is a, m times n, turned over. */
void float_turn(float *out, const float *a, size_t m, size_t n);

/* exp of each; at least -87 and at most 88 counts. */
void float_exp(float *x, size_t n);
double real_log(double x);

/* One step of Adam for a row: gradient g, moments m and v. `step` is the rate
 * with the corrections of this step in it, `eps` likewise. */
void float_adam(float *row, float *m, float *v, const float *g, size_t n,
                float beta1, float beta2, float step, float eps);

#endif
