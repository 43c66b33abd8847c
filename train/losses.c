/* What it means to be near the teacher.
 *
 *   cosine    u points where the teacher's vector of the same text points
 *   relation  two texts are as alike as the teacher finds them
 *   pairs     a text is more like its other half than like all other halves
 *
 * Each is a mean over the batch, so that weights mean the same at any size. */
#include "train/learn.h"

#include "train/floats.h"

void loss_cosine(struct batch *b, double weight)
{
    float by = (float)(weight / (double)b->n);
    double sum = 0;

    for (size_t i = 0; i < b->n; i++) {
        float *t = b->targets + i * b->dims;

        sum += 1 - (double)float_dot(b->u + i * b->dims, t, b->dims);
        float_add(b->g + i * b->dims, -by, t, b->dims);
    }
    b->loss += weight * sum / (double)b->n;
}

/* ---- products of whole batches, by the crew ---- */

struct product {
    float *c;
    const float *a, *b;
    size_t k, n;
    int add;
};

static void mul_part(void *ctx, unsigned worker, size_t from, size_t to)
{
    const struct product *p = ctx;

    (void)worker;
    float_mul(p->c + from * p->n, p->a + from * p->k, p->b, to - from, p->k,
              p->n, p->add);
}

/* c, rows times n, is or gains a, rows times k, by b, k times n. */
static void mul(struct crew *crew, float *c, const float *a, const float *b,
                size_t rows, size_t k, size_t n, int add)
{
    struct product p = {c, a, b, k, n, add};

    crew_run(crew, rows, 32, mul_part, &p);
}

/* Of items from..from + n. */
static double relate(struct batch *b, size_t from, size_t n, double by)
{
    size_t dims = b->dims;
    float *u = b->u + from * dims, *t = b->targets + from * dims;
    double sum = 0;

    float_turn(b->turned, t, n, dims);
    mul(b->crew, b->wanted, t, b->turned, n, dims, n, 0);
    float_turn(b->turned, u, n, dims);
    mul(b->crew, b->likeness, u, b->turned, n, dims, n, 0);
    for (size_t i = 0; i < n; i++) {
        float *row = b->likeness + i * n;

        float_add(row, -1.0f, b->wanted + i * n, n);
        sum += (double)float_dot(row, row, n);
        float_scale(row, (float)(4 * by), n);
    }
    mul(b->crew, b->g + from * dims, b->likeness, u, n, n, dims, 1);
    return by * sum;
}

void loss_relation(struct batch *b, double weight, size_t block)
{
    size_t n = b->n / (b->n / block + !(b->n / block));

    n = n / BATCH_UNIT * BATCH_UNIT;
    for (size_t at = 0; at + n <= b->n; at += n)
        b->loss += relate(b, at, n, weight / (double)n / (double)b->n);
}

/* ---- pairs ---- */

/* One row of likenesses -> what it should change by: the share that each has
 * of all, less one for the right one. Returns the loss. */
static double share_row(float *row, size_t n, size_t right,
                        const uint32_t *mine, const uint32_t *theirs)
{
    float most = row[right], sum = 0, at_right = row[right];

    for (size_t j = 0; j < n; j++)
        most = row[j] > most ? row[j] : most;
    for (size_t j = 0; j < n; j++)
        row[j] -= most;
    float_exp(row, n);
    for (size_t j = 0; j < n; j++) {
        if (j != right &&
            (theirs[j] == theirs[right] || mine[j] == mine[right]))
            row[j] = 0;
        sum += row[j];
    }
    float_scale(row, 1.0f / sum, n);
    row[right] -= 1.0f;
    return real_log((double)sum) - (double)(at_right - most);
}

/* From one half to the other: a asks, b answers. */
static void one_way(struct batch *b, size_t from, size_t to, float by,
                    double *loss)
{
    size_t n = b->n / 2, dims = b->dims;
    float *ask = b->u + from * dims, *answer = b->u + to * dims;

    float_turn(b->turned, answer, n, dims);
    mul(b->crew, b->likeness, ask, b->turned, n, dims, n, 0);
    for (size_t i = 0; i < n; i++) {
        float *row = b->likeness + i * n;

        float_scale(row, by, n);
        *loss += share_row(row, n, i, b->which + from, b->which + to);
    }
    float_turn(b->wanted, b->likeness, n, n);
    float_scale(b->likeness, by / (float)(2 * n), n * n);
    float_scale(b->wanted, by / (float)(2 * n), n * n);
    mul(b->crew, b->g + from * dims, b->likeness, answer, n, n, dims, 1);
    mul(b->crew, b->g + to * dims, b->wanted, ask, n, n, dims, 1);
}

void loss_pairs(struct batch *b, double heat)
{
    double sum = 0;
    size_t half = b->n / 2;

    one_way(b, 0, half, (float)(1 / heat), &sum);
    one_way(b, half, 0, (float)(1 / heat), &sum);
    b->loss += sum / (double)b->n;
}
