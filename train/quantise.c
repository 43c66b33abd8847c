/* A row as signed bytes and one scale: the largest number of a row becomes 127
 * or -127. Half a percent of noise in each number, which an average of a dozen
 * rows does not notice; the figures say how much. */
#include "train/samples.h"

#include <math.h>
#include <stdlib.h>

#include "train/floats.h"

static float largest(const float *v, size_t n)
{
    float most = 0;

    for (size_t i = 0; i < n; i++)
        most = fabsf(v[i]) > most ? fabsf(v[i]) : most;
    return most;
}

/* How long a row of an unknown character is: as the middle of all. Its bytes
 * have any value alike, so each is 73.9 in the root of the mean square. */
static float scale_of_unknown(const struct student *st)
{
    double sum = 0;

    for (size_t i = 0; i < st->n_rows; i++) {
        const float *row = st->rows + i * st->dims;

        sum += sqrt((double)float_dot(row, row, st->dims));
    }
    if (st->n_rows == 0 || sum <= 0)
        return 1;
    return (float)(sum / (double)st->n_rows / (73.9 * sqrt((double)st->dims)));
}

void quantise(struct quantised *q, const struct student *st)
{
    size_t dims = st->dims;

    *q = (struct quantised){
        .rows = train_alloc(st->n_rows, dims),
        .scales = train_alloc(st->n_rows, sizeof(float)),
        .unknown_scale = scale_of_unknown(st),
    };
    for (size_t i = 0; i < st->n_rows; i++) {
        const float *row = st->rows + i * dims;
        float most = largest(row, dims);

        if (!(most > 0))
            continue;
        q->scales[i] = most / 127;
        for (size_t j = 0; j < dims; j++)
            q->rows[i * dims + j] = (int8_t)lrintf(row[j] * (127 / most));
    }
}

void quantised_fini(struct quantised *q)
{
    free(q->rows);
    free(q->scales);
}

void quantised_back(const struct quantised *q, struct student *st)
{
    for (size_t i = 0; i < st->n_rows * st->dims; i++)
        st->rows[i] = q->scales[i / st->dims] * (float)q->rows[i];
}
