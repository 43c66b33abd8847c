#include "base/vec.h"

#include "test/t.h"

#include <float.h>
#include <math.h>

enum { LONGEST = 600, MOST_BYTES = 8 + 2 * 4096 };

static uint32_t state = 1;

static uint32_t next(void)
{
    return (state = state * 1664525 + 1013904223) >> 8;
}

static void fill(float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (float)((int32_t)(next() % 20001) - 10000) / 777.0F;
}

static struct vec_packed opened(const uint8_t *bytes, size_t n)
{
    struct vec_packed p;

    CHECK(vec_packed_open(&p, bytes, vec_packed_bytes(n), n));
    return p;
}

TEST(many_rows_at_once_give_the_same_on_every_level)
{
    enum { ROWS = 11, WIDE = 4200 };
    static int8_t rows[ROWS * WIDE], v[WIDE];
    static const size_t lengths[] = {0,   1,   15,  16,  17,  63,  64,   65,
                                     127, 255, 256, 257, 384, 500, 4096, 4200};

    for (size_t i = 0; i < sizeof(rows); i++)
        rows[i] = (int8_t)next();
    for (size_t i = 0; i < sizeof(v); i++)
        v[i] = (int8_t)next();
    memset(rows, -128, WIDE);
    for (int l = 0; l <= (int)cpu_level(); l++)
        for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
            for (size_t n_rows = 0; n_rows <= ROWS; n_rows++) {
                size_t n = lengths[i], bytes = n_rows ? n_rows * n : 0;
                /* In memory that ends there, so that a sanitizer sees a step
                 * too far. */
                int8_t *tight = malloc(bytes + 1), *one = malloc(n + 1);
                int32_t out[ROWS + 1] = {0};

                CHECK(tight && one);
                for (size_t r = 0; r < n_rows; r++)
                    memcpy(tight + 1 + r * n, rows + r * WIDE, n);
                memcpy(one + 1, v, n);
                out[n_rows] = 77;
                vec_ops_of((enum cpu_level)l)
                    ->dots_i8(tight + 1, n, n_rows, one + 1, n, out);
                for (size_t r = 0; r < n_rows; r++)
                    CHECK_INT(out[r], vec_ops_of(CPU_PLAIN)->dot_i8(
                                          rows + r * WIDE, v, n));
                CHECK_INT(out[n_rows], 77);
                free(tight);
                free(one);
            }
}

/* The exact value is the cosine, and a vector's own is one. */
TEST(a_packed_vector_is_what_it_was)
{
    static uint8_t pa[MOST_BYTES], pb[MOST_BYTES];
    static float a[4096], b[4096];
    static const size_t dims[] = {1, 2, 3, 7, 64, 255, 256, 384, 1024, 4096};

    for (size_t i = 0; i < sizeof(dims) / sizeof(*dims); i++)
        for (int round = 0; round < 20; round++) {
            size_t n = dims[i];
            struct vec_packed x, y;

            fill(a, n);
            fill(b, n);
            CHECK(vec_pack(a, n, pa) && vec_pack(b, n, pb));
            x = opened(pa, n);
            y = opened(pb, n);
            CHECK(fabs(vec_packed_dot(&x, &x) - 1) < 3e-7);
            CHECK(fabs(vec_packed_dot(&x, &y) -
                       (double)vec_cosine(a, n, b, n)) < 1e-4);
        }
}

/* A number halfway between two integers becomes the even one. */
TEST(numbers_are_packed_as_the_nearest_whole_ones)
{
    enum { DIMS = 1024, LARGEST = 127 * 256 + 127 };
    static uint8_t packed[8 + 2 * DIMS];
    float v[DIMS];

    for (int round = 0; round < 100; round++) {
        struct vec_packed p;

        fill(v, DIMS);
        for (size_t i = 0; round % 2 && i < DIMS; i++)
            v[i] = (float)((int32_t)(next() % (4 * LARGEST)) - 2 * LARGEST) / 2;
        v[0] = round % 2 ? -LARGEST : 20;
        CHECK(vec_pack(v, DIMS, packed));
        p = opened(packed, DIMS);
        for (size_t i = 0; i < DIMS; i++)
            CHECK_INT(256 * p.high[i] + p.low[i],
                      lrint((double)v[i] / fabs((double)v[0]) * LARGEST));
    }
}

/* Rows with planes of their own, as the shelves of the index have them. */
TEST(products_of_many_rows_are_those_of_each)
{
    enum { ROWS = VEC_ROWS_MAX, DIMS = 200, STRIDE = 256 };
    static int8_t high[ROWS * STRIDE], low[ROWS * STRIDE];
    static uint8_t row[8 + 2 * DIMS], packed[8 + 2 * DIMS];
    float v[DIMS];
    int32_t guesses[ROWS];
    int64_t out[ROWS];
    struct vec_packed x, y;

    fill(v, DIMS);
    CHECK(vec_pack(v, DIMS, packed));
    y = opened(packed, DIMS);
    for (size_t i = 0; i < ROWS; i++) {
        fill(v, DIMS);
        CHECK(vec_pack(v, DIMS, row));
        memcpy(high + i * STRIDE, row + 8, DIMS);
        memcpy(low + i * STRIDE, row + 8 + DIMS, DIMS);
    }
    for (size_t n = 0; n <= DIMS; n += 25) {
        vec_ops()->dots_i8(high, STRIDE, ROWS, y.high, n, guesses);
        vec_packed_products(high, low, STRIDE, ROWS, &y, n, guesses, out);
        for (size_t i = 0; i < ROWS; i++) {
            x = (struct vec_packed){1, 0, high + i * STRIDE, low + i * STRIDE,
                                    DIMS};
            CHECK((double)y.scale * (double)out[i] ==
                  vec_packed_dot_of(&x, &y, n));
        }
    }
}

static double high_length(const struct vec_packed *p)
{
    return sqrt(65536.0 * (double)p->scale * (double)p->scale *
                vec_ops()->dot_i8(p->high, p->high, p->n));
}

static double off(const struct vec_packed *a, const struct vec_packed *b)
{
    return fabs(vec_packed_dot(a, b) - vec_packed_guess(a, b));
}

TEST(the_guess_is_within_its_bound)
{
    static uint8_t pa[8 + 2 * LONGEST], pb[8 + 2 * LONGEST];
    float a[LONGEST], b[LONGEST];

    for (size_t n = 1; n <= LONGEST; n += n < 40 ? 1 : 37)
        for (int round = 0; round < 50; round++) {
            struct vec_packed x, y;
            double length = (double)VEC_PACKED_LENGTH;

            fill(a, n);
            fill(b, n);
            if (round % 2) /* one outlier: the others are all low */
                a[next() % n] *= 200;
            vec_pack(a, n, pa);
            vec_pack(b, n, pb);
            x = opened(pa, n);
            y = opened(pb, n);
            CHECK(off(&x, &y) <=
                  (double)x.slack * length + high_length(&x) * (double)y.slack);
            CHECK(high_length(&x) <= length + (double)x.slack);
        }
}

/* All low bytes in the direction of the other vector: no smaller bound would
 * do. */
TEST(the_bound_can_be_reached)
{
    enum { N = 256 };
    uint8_t pa[8 + 2 * N], pb[8 + 2 * N];
    float a[N], b[N];
    struct vec_packed x, y;

    for (size_t i = 0; i < N; i++) {
        a[i] = i ? 120 : 32512;
        b[i] = i ? 1 : 0;
    }
    vec_pack(a, N, pa);
    vec_pack(b, N, pb);
    x = opened(pa, N);
    y = opened(pb, N);
    CHECK(off(&x, &y) > 0.9 * ((double)x.slack + (double)y.slack));
}

TEST(what_has_no_direction_is_packed_as_nothing)
{
    float bad[][3] = {{0, 0, 0},
                      {0, -0.0F, 0},
                      {1, NAN, 1},
                      {INFINITY, 1, 1},
                      {1, 1, -INFINITY}};
    uint8_t p[8 + 6], zero[8 + 6] = {0};
    struct vec_packed x;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        memset(p, 0x55, sizeof(p));
        CHECK(!vec_pack(bad[i], 3, p));
        CHECK(memcmp(p, zero, sizeof(p)) == 0);
    }
    x = opened(p, 3);
    CHECK(vec_packed_dot(&x, &x) == 0 && vec_packed_guess(&x, &x) == 0);
    CHECK(!vec_pack(NULL, 0, p));
}

TEST(very_large_and_very_small_numbers_have_a_direction)
{
    float big[2] = {FLT_MAX, FLT_MAX}, tiny[2] = {FLT_TRUE_MIN, FLT_TRUE_MIN};
    float mixed[2] = {FLT_MAX, -FLT_TRUE_MIN};
    uint8_t p[3][8 + 4];
    struct vec_packed a, b, c;

    CHECK(vec_pack(big, 2, p[0]) && vec_pack(tiny, 2, p[1]) &&
          vec_pack(mixed, 2, p[2]));
    a = opened(p[0], 2);
    b = opened(p[1], 2);
    c = opened(p[2], 2);
    CHECK(fabs(vec_packed_dot(&a, &b) - 1) < 3e-7);
    CHECK(fabs(vec_packed_dot(&a, &c) - 0.70710678) < 1e-6);
}

TEST(what_was_not_packed_is_not_opened)
{
    float v[5] = {1, 2, -3, 4, 0.5F};
    uint8_t good[8 + 10], p[8 + 10];
    struct vec_packed x;
    float bad[] = {NAN, INFINITY, -1, 0, 1e30F, FLT_TRUE_MIN};

    CHECK(vec_pack(v, 5, good));
    CHECK(vec_packed_open(&x, good, sizeof(good), 5));
    CHECK(!vec_packed_open(&x, good, sizeof(good) - 1, 5));
    CHECK(!vec_packed_open(&x, good, sizeof(good), 4));
    CHECK(!vec_packed_open(&x, good, vec_packed_bytes(65537), 65537));
    for (size_t at = 0; at < 8; at += 4)
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
            memcpy(p, good, sizeof(p));
            memcpy(p + at, &bad[i], 4);
            CHECK(!vec_packed_open(&x, p, sizeof(p), 5));
        }
    /* A smaller slack would be wrong, and another number another length. */
    for (size_t at = 4; at < sizeof(p); at++) {
        memcpy(p, good, sizeof(p));
        p[at] ^= 1;
        if (at < 13)
            CHECK(!vec_packed_open(&x, p, sizeof(p), 5));
    }
}

TEST(of_two_packed_lengths_the_shorter_counts)
{
    float a[3] = {1, 0, 0}, b[2] = {1, 0};
    uint8_t pa[8 + 6], pb[8 + 4];
    struct vec_packed x, y;

    vec_pack(a, 3, pa);
    vec_pack(b, 2, pb);
    x = opened(pa, 3);
    y = opened(pb, 2);
    CHECK(fabs(vec_packed_dot(&x, &y) - 1) < 3e-7);
    CHECK(fabs(vec_packed_guess(&y, &x) - 1) < 0.01);
}

/* [ A * t | B * x ] of invented parts. */
static void join(float *v, const float *t, const float *x, size_t quick,
                 size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = i < quick ? t[i] * (float)sqrt(VEC_QUICK_PART)
                         : x[i - quick] * (float)sqrt(1 - VEC_QUICK_PART);
}

TEST(quick_and_full_vectors_are_compared_by_their_first_parts)
{
    enum { QUICK = 64, REST = 96, ALL = QUICK + REST };
    float t[2][ALL] = {{0}}, x[2][REST], full[2][ALL];
    uint8_t bytes[4][MOST_BYTES];
    struct vec_packed q[2], f[2];
    double first, both;

    for (int i = 0; i < 2; i++) {
        fill(t[i], QUICK);
        fill(x[i], REST);
        CHECK(vec_normalise(t[i], QUICK) && vec_normalise(x[i], REST));
        join(full[i], t[i], x[i], QUICK, ALL);
        CHECK(vec_pack(t[i], ALL, bytes[i]));
        CHECK(vec_pack(full[i], ALL, bytes[2 + i]));
        q[i] = opened(bytes[i], ALL);
        f[i] = opened(bytes[2 + i], ALL);
        CHECK(vec_packed_is_quick(&q[i], QUICK));
        CHECK(!vec_packed_is_quick(&f[i], QUICK));
        /* With one part nothing is quick. */
        CHECK(!vec_packed_is_quick(&q[i], 0));
        CHECK(!vec_packed_is_quick(&q[i], ALL));
    }
    first = (double)vec_cosine(t[0], QUICK, t[1], QUICK);
    both = (double)vec_cosine(full[0], ALL, full[1], ALL);
    CHECK(fabs(vec_likeness(&q[0], &q[1], QUICK) - first) < 1e-3);
    CHECK(fabs(vec_likeness(&q[0], &f[1], QUICK) - first) < 1e-3);
    CHECK(fabs(vec_likeness(&f[0], &q[1], QUICK) - first) < 1e-3);
    CHECK(fabs(vec_likeness(&f[0], &f[1], QUICK) - both) < 1e-3);
    CHECK(vec_likeness(&f[0], &q[1], QUICK) ==
          vec_likeness(&q[1], &f[0], QUICK));
    /* Without the rule they are not comparable. */
    CHECK(fabs(vec_packed_dot(&q[0], &f[0]) - 1) > 0.1);
    CHECK(vec_likeness(&q[0], &f[1], 0) == vec_packed_dot(&q[0], &f[1]));
}

TEST(one_number_behind_the_first_part_makes_a_vector_full)
{
    enum { QUICK = 16, ALL = 40 };
    uint8_t bytes[MOST_BYTES];
    float v[ALL] = {0};
    struct vec_packed p;

    CHECK(!vec_pack(v, ALL, bytes));
    p = opened(bytes, ALL);
    CHECK(vec_packed_is_quick(&p, QUICK)); /* zero: similar to nothing anyway */
    CHECK(vec_likeness(&p, &p, QUICK) == 0);
    v[0] = 1;
    CHECK(vec_pack(v, ALL, bytes));
    p = opened(bytes, ALL);
    CHECK(vec_packed_is_quick(&p, QUICK));
    for (size_t i = QUICK; i < ALL; i++) {
        v[i] = 1e-4F; /* one unit of the low plane, or a few */
        CHECK(vec_pack(v, ALL, bytes));
        p = opened(bytes, ALL);
        CHECK(!vec_packed_is_quick(&p, QUICK));
        v[i] = 0;
    }
    CHECK(vec_gain(true, true) == 1 && vec_gain(false, false) == 1);
    CHECK(vec_gain(true, false) == 1 / sqrt(VEC_QUICK_PART));
    CHECK(vec_gain(true, false) == vec_gain(false, true));
}

TEST(parts_are_joined_one_long_each)
{
    enum { QUICK = 4, ALL = 10 };
    float v[ALL], again[ALL];
    double first = 0, second = 0;

    fill(v, ALL);
    CHECK(vec_join(v, ALL, QUICK));
    for (size_t i = 0; i < ALL; i++)
        *(i < QUICK ? &first : &second) += (double)v[i] * (double)v[i];
    CHECK(fabs(first - VEC_QUICK_PART) < 1e-6);
    CHECK(fabs(first + second - 1) < 1e-6);
    memcpy(again, v, sizeof(v));
    CHECK(vec_join(again, ALL, QUICK)); /* once is enough */
    for (size_t i = 0; i < ALL; i++)
        CHECK(fabsf(v[i] - again[i]) < 1e-6F);
    /* If one part is zero, the other becomes the whole. */
    memset(v + QUICK, 0, (ALL - QUICK) * sizeof(*v));
    CHECK(vec_join(v, ALL, QUICK));
    CHECK(fabsf(vec_ops()->dot(v, v, ALL) - 1) < 1e-6F);
    memset(v, 0, sizeof(v));
    v[QUICK] = 5;
    CHECK(vec_join(v, ALL, QUICK) && v[QUICK] == 1);
    v[QUICK] = 0;
    CHECK(!vec_join(v, ALL, QUICK));
    /* With one part it is vec_normalise. */
    v[1] = 2;
    v[ALL - 1] = 2;
    CHECK(vec_join(v, ALL, 0) && v[1] == v[ALL - 1]);
    CHECK(fabsf(v[1] - sqrtf(0.5F)) < 1e-6F);
}
