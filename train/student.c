/* The way up, rows -> averages, and the way down, what the loss wants of an
 * average -> rows, with Adam.
 *
 * On the way down two texts may want to move the same row. The tokens of a
 * batch are therefore put into lists by row first; then each row is moved
 * once, by one thread, with its texts added in their order.
 *
 * Adam moves a row also in steps that do not see it, by what is left of its
 * momentum. After `linger` steps nothing is, and the row rests until it is seen
 * again; then its moments fade at once by what they would have meanwhile. */
#include "train/learn.h"

#include <math.h>
#include <stdlib.h>

#include "train/floats.h"

/* An average shorter than this has no direction. */
#define SHORTEST 1e-6f

void student_init(struct student *s, size_t n_rows, size_t dims)
{
    *s = (struct student){
        .n_rows = n_rows,
        .dims = dims,
        .rows = train_alloc(n_rows * dims, sizeof(float)),
        .m = train_alloc(n_rows * dims, sizeof(float)),
        .v = train_alloc(n_rows * dims, sizeof(float)),
        .seen_at = train_alloc(n_rows, sizeof(uint32_t)),
        .beta1_left = 1,
        .beta2_left = 1,
    };
}

void student_fini(struct student *s)
{
    free(s->rows);
    free(s->m);
    free(s->v);
    free(s->seen_at);
}

void student_rest(struct student *s)
{
    memset(s->m, 0, s->n_rows * s->dims * sizeof(float));
    memset(s->v, 0, s->n_rows * s->dims * sizeof(float));
    memset(s->seen_at, 0, s->n_rows * sizeof(s->seen_at[0]));
    s->beta1_left = s->beta2_left = 1;
    s->step = 0;
}

void batch_init(struct batch *b, const struct samples *s, size_t n_rows,
                size_t n, struct crew *crew)
{
    size_t vectors = n * s->dims;

    *b = (struct batch){
        .dims = s->dims,
        .samples = s,
        .which = train_alloc(n, sizeof(uint32_t)),
        .u = train_alloc(vectors, sizeof(float)),
        .lengths = train_alloc(n, sizeof(float)),
        .n_kept = train_alloc(n, sizeof(uint32_t)),
        .targets = train_alloc(vectors, sizeof(float)),
        .g = train_alloc(vectors, sizeof(float)),
        .turned = train_alloc(vectors, sizeof(float)),
        .likeness = train_alloc(n * n, sizeof(float)),
        .wanted = train_alloc(n * n, sizeof(float)),
        .first = train_alloc(n_rows, sizeof(uint32_t)),
        .crew = crew,
    };
}

void batch_fini(struct batch *b)
{
    free(b->which);
    free(b->u);
    free(b->lengths);
    free(b->n_kept);
    free(b->targets);
    free(b->g);
    free(b->turned);
    free(b->likeness);
    free(b->wanted);
    free(b->first);
    free(b->links);
}

static size_t begin_of(const struct samples *s, size_t i)
{
    return i ? s->ends[i - 1] : 0;
}

/* Whether a token of a sample is left out in this step; never all of them. */
static bool is_dropped(const struct batch *b, size_t sample, size_t token,
                       size_t n)
{
    uint64_t mine;

    if (b->drop <= 0 || n < 2)
        return false;
    mine = chance_at(b->chance, sample, 0);
    return token != chance_below(mine, n) &&
           chance_real(chance_at(mine, 1, token)) < b->drop;
}

/* ---- up ---- */

/* The average is divided by its number of rows, which changes no direction
 * but keeps what a row is told in proportion to its part. */
static void average(const struct student *s, struct batch *b, size_t i)
{
    const struct samples *all = b->samples;
    size_t sample = b->which[i], begin = begin_of(all, sample);
    size_t n = all->ends[sample] - begin, kept = 0;
    float *u = b->u + i * b->dims, length;

    memset(u, 0, b->dims * sizeof(float));
    for (size_t k = 0; k < n; k++) {
        if (is_dropped(b, sample, k, n))
            continue;
        float_add(u, 1.0f, s->rows + all->rows[begin + k] * b->dims, b->dims);
        kept++;
    }
    b->n_kept[i] = (uint32_t)kept;
    if (kept)
        float_scale(u, 1.0f / (float)kept, b->dims);
    length = sqrtf(float_dot(u, u, b->dims));
    b->lengths[i] = length;
    float_scale(u, length > SHORTEST ? 1.0f / length : 0.0f, b->dims);
    memcpy(b->targets + i * b->dims, all->targets + sample * b->dims,
           b->dims * sizeof(float));
}

struct gate_result {
    struct student *student;
    struct batch *batch;
    const struct recipe *recipe;
    float beta1, beta2, step, eps;
};

static void up_part(void *ctx, unsigned worker, size_t from, size_t to)
{
    struct gate_result *p = ctx;

    (void)worker;
    for (size_t i = from; i < to; i++)
        average(p->student, p->batch, i);
}

void student_up(struct student *s, struct batch *b)
{
    struct gate_result p = {.student = s, .batch = b};

    crew_run(b->crew, b->n, 16, up_part, &p);
    memset(b->g, 0, b->n * b->dims * sizeof(float));
    b->loss = 0;
}

/* ---- down ---- */

/* What the loss wants of u -> of the sum of rows: only what turns it, and the
 * less the longer the average is. */
static void through_length(struct batch *b, size_t i)
{
    float *g = b->g + i * b->dims, *u = b->u + i * b->dims;
    float by = b->lengths[i] > SHORTEST && b->n_kept[i]
                   ? 1.0f / (b->lengths[i] * (float)b->n_kept[i])
                   : 0.0f;

    float_add(g, -float_dot(g, u, b->dims), u, b->dims);
    float_scale(g, by, b->dims);
}

static void through_lengths(void *ctx, unsigned worker, size_t from, size_t to)
{
    struct gate_result *p = ctx;

    (void)worker;
    for (size_t i = from; i < to; i++)
        through_length(p->batch, i);
}

/* Lists of the batch's tokens by row: first[row] is one more than a place in
 * links, or zero. Built from the back, so that they run forward. */
static void link_rows(struct batch *b)
{
    const struct samples *all = b->samples;

    b->n_links = 0;
    for (size_t i = b->n; i-- > 0;) {
        size_t sample = b->which[i], begin = begin_of(all, sample);
        size_t n = all->ends[sample] - begin;

        for (size_t k = n; k-- > 0;) {
            uint32_t row = all->rows[begin + k];

            if (is_dropped(b, sample, k, n))
                continue;
            b->links = train_grow(b->links, b->n_links, &b->cap_links,
                                  sizeof(b->links[0]));
            b->links[b->n_links] = (struct link){(uint32_t)i, b->first[row]};
            b->first[row] = (uint32_t)++b->n_links;
        }
    }
}

static double power(double x, uint32_t n)
{
    double y = 1;

    for (; n; n /= 2) {
        if (n & 1)
            y *= x;
        x *= x;
    }
    return y;
}

/* It was at rest for so many steps. */
static void wake(const struct gate_result *p, size_t row, uint32_t rested)
{
    struct student *s = p->student;

    float_scale(s->m + row * s->dims, (float)power(p->recipe->beta1, rested),
                s->dims);
    float_scale(s->v + row * s->dims, (float)power(p->recipe->beta2, rested),
                s->dims);
}

static void move_row(const struct gate_result *p, size_t row)
{
    struct student *s = p->student;
    struct batch *b = p->batch;
    size_t dims = b->dims;
    uint32_t linger = (uint32_t)p->recipe->linger;
    uint32_t unseen = s->step - s->seen_at[row] - 1;
    float g[TEACHER_DIMS];

    memset(g, 0, dims * sizeof(float));
    if (b->first[row]) {
        if (s->seen_at[row] && unseen > linger)
            wake(p, row, unseen - linger);
        s->seen_at[row] = s->step;
    }
    for (uint32_t at = b->first[row]; at; at = b->links[at - 1].next)
        float_add(g, 1.0f, b->g + b->links[at - 1].item * dims, dims);
    b->first[row] = 0;
    float_adam(s->rows + row * dims, s->m + row * dims, s->v + row * dims, g,
               dims, p->beta1, p->beta2, p->step, p->eps);
}

static void move_rows(void *ctx, unsigned worker, size_t from, size_t to)
{
    const struct gate_result *p = ctx;
    const struct student *s = p->student;
    uint32_t linger = (uint32_t)p->recipe->linger;

    (void)worker;
    for (size_t row = from; row < to; row++)
        if (p->batch->first[row] ||
            (s->seen_at[row] && s->step - s->seen_at[row] <= linger))
            move_row(p, row);
}

void student_down(struct student *s, struct batch *b, const struct recipe *r,
                  double rate)
{
    struct gate_result p = {.student = s,
                            .batch = b,
                            .recipe = r,
                            .beta1 = (float)r->beta1,
                            .beta2 = (float)r->beta2};
    double widen;

    s->step++;
    s->beta1_left *= r->beta1;
    s->beta2_left *= r->beta2;
    widen = sqrt(1 - s->beta2_left);
    p.step = (float)(rate * widen / (1 - s->beta1_left));
    p.eps = (float)(1e-8 * widen);
    crew_run(b->crew, b->n, 16, through_lengths, &p);
    link_rows(b);
    crew_run(b->crew, s->n_rows, 256, move_rows, &p);
}
