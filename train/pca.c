/* The teacher has 384 numbers for a text and the table fewer: those along the
 * axes on which texts differ most, which keep likenesses best. The axes are
 * fitted on an even part of the texts; more would not move them.
 *
 * Jacobi's rotations, because they are short, exact to the last bits and come
 * to the same in any order of the machine; 384 numbers need seconds. */
#include "train/train.h"

#include <math.h>
#include <stdlib.h>

#include "train/floats.h"

enum {
    D = TEACHER_DIMS,
    BLOCK = 256,         /* vectors at a time */
    FIT_ON = 200 * 1000, /* vectors at most */
    MAX_SWEEPS = 60,
};

static void to_floats(const struct pca *p, const int16_t *v, float *out)
{
    for (size_t i = 0; i < D; i++)
        out[i] = (float)v[i] * (1.0f / TEACHER_ONE) - p->mean[i];
}

static void fit_mean(struct pca *p, double centre, const int16_t *vectors,
                     size_t n)
{
    int64_t sum[D] = {0};

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < D; j++)
            sum[j] += vectors[i * D + j];
    for (size_t j = 0; j < D; j++)
        p->mean[j] =
            n ? (float)(centre * (double)sum[j] / (double)n / TEACHER_ONE) : 0;
}

struct moment {
    const float *block, *turned; /* BLOCK times D, D times BLOCK */
    size_t n;
    double *sum; /* D times D */
};

/* Of rows from..to, what one block adds. */
static void add_block(void *ctx, unsigned worker, size_t from, size_t to)
{
    struct moment *m = ctx;
    float part[D];

    (void)worker;
    for (size_t i = from; i < to; i++) {
        float_mul(part, m->turned + i * m->n, m->block, 1, m->n, D, 0);
        for (size_t j = 0; j < D; j++)
            m->sum[i * D + j] += part[j];
    }
}

static void fit_moment(const struct pca *p, struct crew *crew,
                       const int16_t *vectors, size_t n, double *sum)
{
    float *block = train_alloc(BLOCK * D, sizeof(float));
    float *turned = train_alloc(BLOCK * D, sizeof(float));
    size_t step = n / FIT_ON + 1, at = 0;

    while (at < n) {
        struct moment m = {block, turned, 0, sum};

        for (; m.n < BLOCK && at < n; at += step)
            to_floats(p, vectors + at * D, block + m.n++ * D);
        float_turn(turned, block, m.n, D);
        crew_run(crew, D, 32, add_block, &m);
    }
    free(block);
    free(turned);
}

void pca_fit(struct pca *p, size_t dims, double centre, struct crew *crew,
             const int16_t *vectors, size_t n)
{
    double *sum = train_alloc((size_t)D * D, sizeof(double));
    double *axes = train_alloc((size_t)D * D, sizeof(double));
    double values[D], all = 0, kept = 0;

    *p = (struct pca){.dims = dims};
    fit_mean(p, centre, vectors, n);
    fit_moment(p, crew, vectors, n, sum);
    eigen_symmetric(sum, D, values, axes);
    p->axes = train_alloc(D * p->dims, sizeof(float));
    for (size_t i = 0; i < D; i++) {
        all += values[i];
        kept += i < p->dims ? values[i] : 0;
        for (size_t j = 0; j < p->dims; j++)
            p->axes[i * p->dims + j] = (float)axes[j * D + i];
    }
    p->kept = all > 0 ? kept / all : 0;
    free(sum);
    free(axes);
}

void pca_fini(struct pca *p)
{
    free(p->axes);
}

struct projection {
    const struct pca *pca;
    const int16_t *vectors;
    float *out;
};

static void make_long(float *v, size_t n)
{
    float length = sqrtf(float_dot(v, v, n));

    float_scale(v, length > 1e-6f ? 1.0f / length : 0.0f, n);
}

static void project_part(void *ctx, unsigned worker, size_t from, size_t to)
{
    const struct projection *j = ctx;
    size_t dims = j->pca->dims;
    float *block = train_alloc((to - from) * D, sizeof(float));

    (void)worker;
    for (size_t i = from; i < to; i++)
        to_floats(j->pca, j->vectors + i * D, block + (i - from) * D);
    float_mul(j->out + from * dims, block, j->pca->axes, to - from, D, dims, 0);
    for (size_t i = from; i < to; i++)
        make_long(j->out + i * dims, dims);
    free(block);
}

void pca_project(const struct pca *p, struct crew *crew, const int16_t *vectors,
                 size_t n, float *out)
{
    struct projection j = {p, vectors, out};

    crew_run(crew, n, BLOCK, project_part, &j);
}

/* ---- Jacobi ---- */

static double off_diagonal(const double *a, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            sum += a[i * n + j] * a[i * n + j];
    return sum;
}

/* Turn rows p and q of a matrix. */
static void turn_rows(double *a, size_t n, size_t p, size_t q, double c,
                      double s)
{
    double *x = a + p * n, *y = a + q * n;

    for (size_t i = 0; i < n; i++) {
        double xi = x[i], yi = y[i];

        x[i] = c * xi - s * yi;
        y[i] = s * xi + c * yi;
    }
}

/* Make a[p][q] zero. Rows are turned first, and the columns are then what
 * symmetry says they are. */
static void rotate(double *a, size_t n, size_t p, size_t q, double *vectors)
{
    double pp = a[p * n + p], qq = a[q * n + q], pq = a[p * n + q];
    double theta = (qq - pp) / (2 * pq);
    double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;

    turn_rows(a, n, p, q, c, s);
    for (size_t i = 0; i < n; i++) {
        a[i * n + p] = a[p * n + i];
        a[i * n + q] = a[q * n + i];
    }
    a[p * n + p] = pp - t * pq;
    a[q * n + q] = qq + t * pq;
    a[p * n + q] = a[q * n + p] = 0;
    turn_rows(vectors, n, p, q, c, s);
}

static void fix_sign(double *v, size_t n)
{
    size_t largest = 0;

    for (size_t i = 1; i < n; i++)
        if (fabs(v[i]) > fabs(v[largest]))
            largest = i;
    if (v[largest] < 0)
        for (size_t i = 0; i < n; i++)
            v[i] = -v[i];
}

/* Largest first; equal ones stay as they stand. */
static void sort_axes(double *values, double *vectors, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        size_t best = i;

        for (size_t j = i + 1; j < n; j++)
            if (values[j] > values[best])
                best = j;
        if (best == i)
            continue;
        for (size_t k = 0; k < n; k++) {
            double v = vectors[i * n + k];

            vectors[i * n + k] = vectors[best * n + k];
            vectors[best * n + k] = v;
        }
        double v = values[i];
        values[i] = values[best];
        values[best] = v;
    }
}

void eigen_symmetric(double *a, size_t n, double *values, double *vectors)
{
    double whole = 2 * off_diagonal(a, n);

    for (size_t i = 0; i < n; i++) {
        whole += a[i * n + i] * a[i * n + i];
        for (size_t j = 0; j < n; j++)
            vectors[i * n + j] = i == j;
    }
    for (int sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        if (off_diagonal(a, n) <= whole * 1e-28)
            break;
        for (size_t p = 0; p + 1 < n; p++)
            for (size_t q = p + 1; q < n; q++)
                if (a[p * n + q] != 0)
                    rotate(a, n, p, q, vectors);
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = a[i * n + i];
        fix_sign(vectors + i * n, n);
    }
    sort_axes(values, vectors, n);
}
