#include "base/vec.h"

#include "test/t.h"

#include <math.h>

enum { LONGEST = 600, PLACES = 3 };

static uint32_t state = 1;

static uint32_t next(void)
{
    return (state = state * 1664525 + 1013904223) >> 8;
}

/* Numbers of very different sizes, so that every order of addition rounds
 * differently. */
static float any_float(void)
{
    float f = (float)((int32_t)(next() % 20001) - 10000) / 777.0F;

    return ldexpf(f, (int)(next() % 40) - 20);
}

static void fill(float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = any_float();
}

static void fill_i8(int8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (int8_t)next();
}

/* Memory that ends where the numbers end, `place` bytes off its alignment, so
 * that a sanitizer sees every step too far. */
static void *copy(const void *p, size_t n, size_t place)
{
    char *room = malloc(place + n ? place + n : 1);

    CHECK(room);
    memcpy(room + place, p, n);
    return room;
}

static bool same(float a, float b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static void check_level(const struct vec_ops *o, size_t n, size_t place)
{
    const struct vec_ops *plain = vec_ops_of(CPU_PLAIN);
    float a[LONGEST], b[LONGEST], sum[LONGEST];
    int8_t x[LONGEST], y[LONGEST];
    size_t bytes = n * sizeof(*a), off = place * sizeof(*a);
    char *fa, *fb, *fs, *ix, *iy;

    fill(a, n);
    fill(b, n);
    fill(sum, n);
    fill_i8(x, n);
    fill_i8(y, n);
    fa = copy(a, bytes, off);
    fb = copy(b, bytes, 0);
    fs = copy(sum, bytes, off);
    ix = copy(x, n, place);
    iy = copy(y, n, 0);
    CHECK(
        same(o->dot((float *)(fa + off), (float *)fb, n), plain->dot(a, b, n)));
    CHECK_INT(o->dot_i8((int8_t *)ix + place, (int8_t *)iy, n),
              plain->dot_i8(x, y, n));
    o->add_i8((float *)(fs + off), (int8_t *)ix + place, 0.0123F, n);
    plain->add_i8(sum, x, 0.0123F, n);
    CHECK(memcmp(fs + off, sum, bytes) == 0);
    free(fa);
    free(fb);
    free(fs);
    free(ix);
    free(iy);
}

TEST(every_level_gives_the_same_to_the_last_bit)
{
    int n_levels = 0;

    for (int l = 0; l < N_CPU_LEVELS; l++) {
        const struct vec_ops *o = vec_ops_of((enum cpu_level)l);

        if (!o)
            continue;
        n_levels++;
        for (size_t n = 0; n <= LONGEST; n++)
            for (size_t place = 0; place < PLACES; place++)
                check_level(o, n, place);
    }
    CHECK_INT(n_levels, cpu_level() + 1);
}

TEST(the_widest_level_is_the_one_that_is_used)
{
    CHECK(vec_ops() == vec_ops_of(cpu_level()));
    CHECK(vec_ops_of(CPU_PLAIN));
    CHECK(!vec_ops_of(N_CPU_LEVELS));
    CHECK(strcmp(cpu_level_name(CPU_PLAIN), "plain") == 0);
    for (int l = 1; l < N_CPU_LEVELS; l++)
        CHECK(strcmp(cpu_level_name((enum cpu_level)l),
                     cpu_level_name((enum cpu_level)(l - 1))) != 0);
    CHECK(strcmp(cpu_level_name(N_CPU_LEVELS), "?") == 0);
}

TEST(the_plain_one_is_what_arithmetic_says)
{
    const struct vec_ops *o = vec_ops_of(CPU_PLAIN);
    float a[20], sum[3] = {1, 2, 3};
    int8_t low[20], row[3] = {-128, 0, 127};

    for (int i = 0; i < 20; i++) {
        a[i] = (float)i;
        low[i] = -128;
    }
    CHECK(o->dot(a, a, 20) == 2470);
    CHECK(o->dot(a, a, 3) == 5);
    CHECK(o->dot(NULL, NULL, 0) == 0);
    CHECK_INT(o->dot_i8(low, low, 20), 20 * 128 * 128);
    CHECK_INT(o->dot_i8(NULL, NULL, 0), 0);
    o->add_i8(sum, row, 0.5F, 3);
    CHECK(sum[0] == -63 && sum[1] == 2 && sum[2] == 66.5F);
}

/* The largest sum of the largest vector of a model, and of the longest that
 * still fits. */
TEST(the_largest_products_of_bytes_fit)
{
    size_t n = 131071;
    int8_t *low = malloc(n);

    CHECK(low);
    memset(low, -128, n);
    for (int l = 0; l <= (int)cpu_level(); l++) {
        const struct vec_ops *o = vec_ops_of((enum cpu_level)l);

        CHECK_INT(o->dot_i8(low, low, 8192), 8192 * 128 * 128);
        CHECK_INT(o->dot_i8(low, low, n), (int64_t)n * 128 * 128);
    }
    free(low);
}

/* Every level propagates an infinity or NaN from any position. */
TEST(what_is_no_number_is_seen_by_every_level)
{
    float a[37], b[37];

    for (int l = 0; l <= (int)cpu_level(); l++)
        for (size_t at = 0; at < 37; at++) {
            const struct vec_ops *o = vec_ops_of((enum cpu_level)l);

            fill(b, 37);
            fill(a, 37);
            a[at] = NAN;
            CHECK(isnan(o->dot(a, b, 37)));
            a[at] = INFINITY;
            b[at] = 1;
            CHECK(isinf(o->dot(a, b, 37)));
            b[at] = 0;
            CHECK(isnan(o->dot(a, b, 37)));
        }
}

static float cosine(float a0, float a1, float b0, float b1)
{
    return vec_cosine((float[]){a0, a1}, 2, (float[]){b0, b1}, 2);
}

TEST(likeness_is_that_of_directions)
{
    CHECK(cosine(1, 0, 5, 0) == 1);
    CHECK(cosine(1, 0, 0, 2) == 0);
    CHECK(cosine(3, 4, -6, -8) == -1);
    CHECK(fabsf(cosine(1, 0, 1, 1) - 0.70710678F) < 1e-7F);
}

TEST(likeness_is_a_number_whatever_comes)
{
    float one[2] = {1, 1}, none[2] = {0, -0.0F}, big[2] = {3e38F, 3e38F};
    float tiny[2] = {1e-45F, 1e-45F}, mixed[2] = {3e38F, -1e-45F};
    float bad[] = {NAN, -NAN, INFINITY, -INFINITY};

    CHECK(vec_cosine(NULL, 0, NULL, 0) == 0);
    CHECK(vec_cosine(one, 2, NULL, 0) == 0);
    CHECK(vec_cosine(NULL, 0, one, 2) == 0);
    CHECK(vec_cosine(one, 2, none, 2) == 0);
    CHECK(vec_cosine(none, 2, none, 2) == 0);
    CHECK(vec_cosine(big, 2, one, 2) == 1);
    CHECK(vec_cosine(big, 2, big, 2) == 1);
    CHECK(vec_cosine(tiny, 2, tiny, 2) == 1);
    CHECK(vec_cosine(big, 2, tiny, 2) == 1);
    CHECK(fabsf(vec_cosine(mixed, 2, one, 2) - 0.70710678F) < 1e-7F);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        CHECK(cosine(bad[i], 1, 1, 1) == 0);
        CHECK(cosine(1, 1, 1, bad[i]) == 0);
        CHECK(cosine(bad[i], 0, bad[i], 0) == 0);
    }
}

TEST(of_two_lengths_the_shorter_counts)
{
    float a[3] = {1, 0, 100}, b[2] = {1, 0}, c[9] = {0, 0, 0, 0, 1};

    CHECK(vec_cosine(a, 3, b, 2) == 1);
    CHECK(vec_cosine(b, 2, a, 3) == 1);
    CHECK(vec_cosine(c, 9, b, 2) == 0);
    a[2] = NAN;
    CHECK(vec_cosine(a, 3, b, 2) == 0);
    CHECK(vec_cosine(b, 2, a, 3) == 0);
}

TEST(likeness_stays_within_its_bounds)
{
    float a[300], b[300];

    for (size_t n = 1; n <= 300; n++) {
        fill(a, n);
        for (size_t i = 0; i < n; i++)
            b[i] = a[i] * -3;
        CHECK(vec_cosine(a, n, a, n) <= 1);
        CHECK(vec_cosine(a, n, a, n) > 0.999999F);
        CHECK(vec_cosine(a, n, b, n) >= -1);
    }
}

TEST(normalised_is_one_long_or_nothing)
{
    float v[7] = {3, 0, 0, 0, 0, 0, -4}, big[2] = {3e38F, 3e38F};
    float tiny[1] = {-1e-45F}, none[3] = {0}, bad[3] = {1, NAN, 2};
    float endless[3] = {1, 2, -INFINITY};

    CHECK(vec_normalise(v, 7));
    CHECK(v[0] == 0.6F && v[6] == -0.8F && v[3] == 0);
    CHECK(vec_normalise(big, 2));
    CHECK(fabsf(big[0] - 0.70710678F) < 1e-7F);
    CHECK(vec_normalise(tiny, 1));
    CHECK(tiny[0] == -1);
    CHECK(!vec_normalise(none, 3));
    CHECK(!vec_normalise(NULL, 0));
    CHECK(!vec_normalise(bad, 3));
    CHECK(bad[0] == 0 && bad[1] == 0 && bad[2] == 0);
    CHECK(!vec_normalise(endless, 3));
    CHECK(endless[0] == 0 && endless[2] == 0);
}
