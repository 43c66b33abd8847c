/* The arithmetic: against the plain way to do it, and every loss against what
 * it changes by when one number is moved a little. */
#include "train/floats.h"

#include <math.h>
#include <stdlib.h>

#include "test/t.h"
#include "train/learn.h"

static float random_float(uint64_t i)
{
    return (float)(chance_real(chance_at(5, 0, i)) * 2 - 1);
}

static void fill(float *v, size_t n, uint64_t from)
{
    for (size_t i = 0; i < n; i++)
        v[i] = random_float(from + i);
}

TEST(products_are_those_of_the_plain_way)
{
    enum { ROWS = 7, K = 37, N = 80 };
    float a[ROWS * K], b[K * N], c[ROWS * N], turned[K * N];

    fill(a, ROWS * K, 0);
    fill(b, K * N, 1000);
    for (size_t i = 0; i < ROWS * N; i++)
        c[i] = 1;
    float_mul(c, a, b, ROWS, K, N, 1);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < N; j++) {
            float sum = 1; /* added in this order: the same to the last bit */

            for (size_t k = 0; k < K; k++)
                sum += a[i * K + k] * b[k * N + j];
            CHECK(c[i * N + j] == sum);
        }
    float_turn(turned, b, K, N);
    for (size_t i = 0; i < K; i++)
        for (size_t j = 0; j < N; j++)
            CHECK(turned[j * K + i] == b[i * N + j]);
}

TEST(a_dot_product_is_added_in_sixteen_lanes)
{
    float a[100], b[100], lanes[16] = {0}, rest = 0;

    fill(a, 100, 0);
    fill(b, 100, 100);
    for (size_t i = 0; i < 96; i++)
        lanes[i % 16] += a[i] * b[i];
    for (size_t i = 96; i < 100; i++)
        rest += a[i] * b[i];
    for (size_t half = 8; half; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    CHECK(float_dot(a, b, 100) == lanes[0] + rest);
}

TEST(exp_and_log_are_near_those_of_libm)
{
    for (double x = -86; x < 87; x += 0.37) {
        float e = (float)x;

        float_exp(&e, 1);
        CHECK(fabs((double)e / exp((double)(float)x) - 1) < 1e-6);
    }
    for (double x = 1e-9; x < 1e9; x *= 1.7)
        CHECK(fabs(real_log(x) - log(x)) < 1e-9 * (1 + fabs(log(x))));
}

TEST(axes_of_a_matrix_are_its_own)
{
    enum { N = 20 };
    double a[N * N], copy[N * N], values[N], vectors[N * N];

    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j <= i; j++)
            a[i * N + j] = a[j * N + i] = (double)random_float(i * N + j);
    memcpy(copy, a, sizeof(a));
    eigen_symmetric(a, N, values, vectors);
    for (size_t k = 0; k < N; k++) {
        const double *v = vectors + k * N;
        double most = 0;

        CHECK(k == 0 || values[k] <= values[k - 1]);
        for (size_t i = 0; i < N; i++) {
            double sum = 0;

            for (size_t j = 0; j < N; j++)
                sum += copy[i * N + j] * v[j];
            CHECK(fabs(sum - values[k] * v[i]) < 1e-10);
            most = fabs(v[i]) > fabs(most) ? v[i] : most;
        }
        CHECK(most > 0);
    }
}

/* ---- losses ---- */

enum { ITEMS = 32, DIMS = 16 };

struct losses {
    struct samples samples;
    struct crew *crew;
    struct batch batch;
};

static void losses_init(struct losses *l)
{
    *l = (struct losses){.samples = {.n = ITEMS, .dims = DIMS}};
    l->crew = crew_new(2);
    batch_init(&l->batch, &l->samples, 1, ITEMS, l->crew);
    l->batch.n = ITEMS;
    fill(l->batch.u, (size_t)ITEMS * DIMS, 0);
    fill(l->batch.targets, (size_t)ITEMS * DIMS, 5000);
    for (uint32_t i = 0; i < ITEMS; i++)
        l->batch.which[i] = i;
    l->batch.which[5] = 3; /* one text twice, which is no wrong answer */
}

static void losses_fini(struct losses *l)
{
    batch_fini(&l->batch);
    crew_free(l->crew);
}

typedef void loss(struct batch *b);

static double loss_of(struct batch *b, loss *f)
{
    b->loss = 0;
    memset(b->g, 0, sizeof(float) * ITEMS * DIMS);
    f(b);
    return b->loss;
}

static void check_slope(loss *f)
{
    const float little = 1e-2f;
    struct losses l;

    losses_init(&l);
    for (size_t i = 0; i < (size_t)ITEMS * DIMS; i += 7) {
        float was = l.batch.u[i], slope;
        double up, down;

        (void)loss_of(&l.batch, f);
        slope = l.batch.g[i];
        l.batch.u[i] = was + little;
        up = loss_of(&l.batch, f);
        l.batch.u[i] = was - little;
        down = loss_of(&l.batch, f);
        l.batch.u[i] = was;
        CHECK(fabs((up - down) / (2 * (double)little) - (double)slope) <
              0.02 * fabs((double)slope) + 2e-4);
    }
    losses_fini(&l);
}

static void cosine(struct batch *b)
{
    loss_cosine(b, 2);
}

static void relation(struct batch *b)
{
    loss_relation(b, 3, 16);
}

static void pairs(struct batch *b)
{
    loss_pairs(b, 0.7);
}

TEST(losses_say_truly_how_they_change)
{
    check_slope(cosine);
    check_slope(relation);
    check_slope(pairs);
}

static void wrong(struct batch *b)
{
    loss_cosine(b, 2);
    float_scale(b->g, 1.1f, ITEMS);
}

/* The control: a slope that is a tenth off is noticed. */
TEST(a_wrong_slope_would_be_seen)
{
    struct losses l;
    double up, down;

    losses_init(&l);
    (void)loss_of(&l.batch, wrong);
    float slope = l.batch.g[1], was = l.batch.u[1];
    l.batch.u[1] = was + 1e-2f;
    up = loss_of(&l.batch, wrong);
    l.batch.u[1] = was - 1e-2f;
    down = loss_of(&l.batch, wrong);
    CHECK(fabs((up - down) / 2e-2 - (double)slope) >
          0.02 * fabs((double)slope) + 2e-4);
    losses_fini(&l);
}

/* ---- crew ---- */

struct squares {
    int api;
    uint64_t out[1000];
};

static void square(void *ctx, unsigned worker, size_t from, size_t to)
{
    struct squares *s = ctx;

    CHECK(worker < 4 && to - from <= 7);
    for (size_t i = from; i < to; i++)
        s->out[i] += i * i;
}

TEST(a_crew_does_everything_once)
{
    for (unsigned n = 1; n <= 4; n++) {
        struct crew *crew = crew_new(n);
        static struct squares s;

        memset(&s, 0, sizeof(s));
        for (int round = 0; round < 20; round++)
            crew_run(crew, 1000, 7, square, &s);
        for (size_t i = 0; i < 1000; i++)
            CHECK(s.out[i] == 20 * i * i);
        crew_run(crew, 0, 7, square, &s);
        crew_free(crew);
    }
}
