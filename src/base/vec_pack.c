/* A 16-bit number q is split at the nearer byte: high is q / 256 rounded to
 * nearest, so low is signed too, and both fit a product of signed bytes. 127 *
 * 256 + 127 is the largest number whose halves both fit.
 *
 * The scale is not the rounding step but the inverse of the resulting length:
 * only the direction is kept, so every packed vector has unit length as exactly
 * as a float can say. */
#include "base/vec.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/fault.h"

enum { MOST = 127 * 256 + 127 };

/* Integers: the sum of 65536 products of MOST still fits. */
static int64_t product(const struct vec_packed *a, const struct vec_packed *b,
                       size_t n)
{
    const struct vec_ops *o = vec_ops();
    int64_t high = o->dot_i8(a->high, b->high, n);
    int64_t mixed =
        (int64_t)o->dot_i8(a->high, b->low, n) + o->dot_i8(a->low, b->high, n);

    return 65536 * high + 256 * mixed + o->dot_i8(a->low, b->low, n);
}

void vec_packed_products(const int8_t *high, const int8_t *low, size_t stride,
                         size_t n_rows, const struct vec_packed *v, size_t n,
                         const int32_t *guesses, int64_t *out)
{
    const struct vec_ops *o = vec_ops();
    int32_t one[VEC_ROWS_MAX], other[VEC_ROWS_MAX], lows[VEC_ROWS_MAX];

    o->dots_i8(high, stride, n_rows, v->low, n, one);
    o->dots_i8(low, stride, n_rows, v->high, n, other);
    o->dots_i8(low, stride, n_rows, v->low, n, lows);
    for (size_t i = 0; i < n_rows; i++)
        out[i] = 65536 * (int64_t)guesses[i] +
                 256 * ((int64_t)one[i] + other[i]) + lows[i];
}

static float slack_of(float scale, const int8_t *low, size_t n)
{
    double square = vec_ops()->dot_i8(low, low, n);

    return square > 0
               ? nextafterf((float)((double)scale * sqrt(square)), INFINITY)
               : 0;
}

static void point_into(struct vec_packed *p, const uint8_t *bytes, size_t n)
{
    memcpy(&p->scale, bytes, 4);
    memcpy(&p->slack, bytes + 4, 4);
    p->high = (const int8_t *)bytes + 8;
    p->low = p->high + n;
    p->n = n;
}

/* Round to nearest, ties to even, as lrint does: the remainder of the sum has
 * no fraction. A library call for each number would take longer than everything
 * else. Valid below 2^51, and where doubles are added as doubles. */
static double to_whole(double x)
{
    _Static_assert(FLT_EVAL_METHOD == 0, "a sum is rounded to its type");
    return x + 0x1.8p52 - 0x1.8p52;
}

static void put_planes(const float *v, size_t n, double largest, int8_t *high,
                       int8_t *low)
{
    for (size_t i = 0; i < n; i++) {
        int32_t q = (int32_t)to_whole((double)v[i] / largest * MOST);
        int32_t h = (q + 128) >> 8;

        high[i] = (int8_t)h;
        low[i] = (int8_t)(q - h * 256);
    }
}

bool vec_pack(const float *v, size_t n, uint8_t *out)
{
    double largest = 0;
    struct vec_packed p;

    memset(out, 0, vec_packed_bytes(n));
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i]))
            return false;
        if (fabs((double)v[i]) > largest)
            largest = fabs((double)v[i]);
    }
    if (!(largest > 0))
        return false;
    put_planes(v, n, largest, (int8_t *)out + 8, (int8_t *)out + 8 + n);
    point_into(&p, out, n);
    p.scale = (float)(1 / sqrt((double)product(&p, &p, n)));
    p.slack = slack_of(p.scale, p.low, n);
    memcpy(out, &p.scale, 4);
    memcpy(out + 4, &p.slack, 4);
    return true;
}

static bool is_all_zero(const uint8_t *bytes, size_t n)
{
    return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

bool vec_packed_open(struct vec_packed *p, const uint8_t *bytes, size_t n_bytes,
                     size_t n)
{
    double length;

    *p = (struct vec_packed){0};
    if (n > 65536 || n_bytes != vec_packed_bytes(n))
        return false;
    point_into(p, bytes, n);
    if (is_all_zero(bytes, n_bytes))
        return true;
    length = (double)p->scale * sqrt((double)product(p, p, n));
    return isfinite(p->scale) && p->scale > 0 && isfinite(length) &&
           fabs(length - 1) < 2e-7 && p->slack == slack_of(p->scale, p->low, n);
}

float vec_slack_of(const struct vec_packed *p, size_t n)
{
    return slack_of(p->scale, p->low, n);
}

double vec_packed_guess(const struct vec_packed *a, const struct vec_packed *b)
{
    size_t n = a->n < b->n ? a->n : b->n;

    return (double)a->scale * (double)b->scale * 65536 *
           vec_ops()->dot_i8(a->high, b->high, n);
}

double vec_packed_dot_of(const struct vec_packed *a, const struct vec_packed *b,
                         size_t n)
{
    return (double)a->scale * (double)b->scale * (double)product(a, b, n);
}

double vec_packed_dot(const struct vec_packed *a, const struct vec_packed *b)
{
    return vec_packed_dot_of(a, b, a->n < b->n ? a->n : b->n);
}

bool vec_join(float *v, size_t n, size_t quick)
{
    float a = (float)sqrt(VEC_QUICK_PART), b = (float)sqrt(1 - VEC_QUICK_PART);
    bool has_first, has_second;

    if (!quick || quick >= n)
        return vec_normalise(v, n);
    has_first = vec_normalise(v, quick);
    has_second = vec_normalise(v + quick, n - quick);
    if (!has_first || !has_second)
        return has_first || has_second;
    for (size_t i = 0; i < n; i++)
        v[i] *= i < quick ? a : b;
    return true;
}

bool vec_packed_is_quick(const struct vec_packed *p, size_t quick)
{
    return quick && quick < p->n &&
           is_all_zero((const uint8_t *)p->high + quick, p->n - quick) &&
           is_all_zero((const uint8_t *)p->low + quick, p->n - quick);
}

double vec_gain(bool is_quick_a, bool is_quick_b)
{
    /* As if both were of one kind; tests must notice. */
    if (PLANTED("vec.no_gain"))
        return 1;
    return is_quick_a == is_quick_b ? 1 : 1 / sqrt(VEC_QUICK_PART);
}

double vec_likeness(const struct vec_packed *a, const struct vec_packed *b,
                    size_t quick)
{
    bool is_quick_a = vec_packed_is_quick(a, quick);
    bool is_quick_b = vec_packed_is_quick(b, quick);

    if (!is_quick_a && !is_quick_b)
        return vec_packed_dot(a, b);
    return vec_packed_dot_of(a, b, quick) * vec_gain(is_quick_a, is_quick_b);
}
