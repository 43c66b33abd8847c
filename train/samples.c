/* Texts -> rows, by the very code that will cut them in the server, and rows
 * to begin with: what the teacher says of each word, the less of it the more
 * frequent the word is, since an average is of all words alike. A phrase
 * begins with nothing: its row is added to those of its words, and is what
 * they have not said. */
#include "train/samples.h"

#include <stdlib.h>

#include "train/floats.h"

struct cutting {
    const struct vocabulary *v;
    const struct corpus *c;
    uint32_t (*rows)[SAMPLE_ROWS_MAX];
    uint32_t *n;
    size_t first;
};

/* What the table does not know is left out: its row is made of chance. */
static void cut_part(void *ctx, unsigned worker, size_t from, size_t to)
{
    struct cutting *k = ctx;
    uint32_t rows[BUILTIN_ROWS_MAX];

    (void)worker;
    for (size_t i = from; i < to; i++) {
        size_t n =
            builtin_rows(&k->v->table, k->c->texts[k->first + i].s, rows);
        uint32_t kept = 0;

        for (size_t j = 0; j < n && kept < SAMPLE_ROWS_MAX; j++)
            if (!(rows[j] & BUILTIN_UNKNOWN))
                k->rows[i][kept++] = rows[j];
        k->n[i] = kept;
    }
}

void samples_make(struct samples *s, const struct vocabulary *v,
                  const struct corpus *c, struct crew *crew)
{
    enum { ROUND = 8192 };
    struct cutting k = {
        .v = v,
        .c = c,
        .rows = train_alloc(ROUND, sizeof(k.rows[0])),
        .n = train_alloc(ROUND, sizeof(k.n[0])),
    };

    *s = (struct samples){
        .n = c->n_texts,
        .dims = TABLE_DIMS,
        .ends = train_alloc(c->n_texts, sizeof(s->ends[0])),
        .targets = train_alloc(c->n_texts * TABLE_DIMS, sizeof(float)),
    };
    for (; k.first < c->n_texts; k.first += ROUND) {
        size_t n = c->n_texts - k.first;

        n = n < ROUND ? n : ROUND;
        crew_run(crew, n, 256, cut_part, &k);
        for (size_t i = 0; i < n; i++) {
            for (uint32_t j = 0; j < k.n[i]; j++) {
                s->rows = train_grow(s->rows, s->n_rows, &s->cap_rows,
                                     sizeof(s->rows[0]));
                s->rows[s->n_rows++] = k.rows[i][j];
            }
            s->ends[k.first + i] = s->n_rows;
        }
    }
    free(k.rows);
    free(k.n);
}

void samples_fini(struct samples *s)
{
    free(s->rows);
    free(s->ends);
    free(s->targets);
}

size_t samples_trained(const struct samples *s, const struct corpus *c,
                       uint32_t *order)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (!c->texts[i].is_held && s->ends[i] > (i ? s->ends[i - 1] : 0))
            order[n++] = (uint32_t)i;
    return n;
}

void student_begin(struct student *st, const struct samples *s,
                   const struct corpus *c, const float *said, size_t n_words,
                   const struct recipe *r)
{
    uint32_t *counts = train_alloc(st->n_rows, sizeof(counts[0]));
    double all = 0;

    for (size_t i = 0, at = 0; i < s->n; at = s->ends[i++])
        for (size_t j = at; j < s->ends[i] && !c->texts[i].is_held; j++) {
            counts[s->rows[j]]++;
            all += 1;
        }
    memcpy(st->rows, said, st->n_rows * st->dims * sizeof(float));
    for (size_t i = 0; i < st->n_rows; i++) {
        double p = all > 0 ? (double)counts[i] / all : 0;
        double weight = r->sif > 0 ? r->sif / (r->sif + p) : 1;

        if (i >= n_words)
            weight = 0;
        float_scale(st->rows + i * st->dims, (float)weight, st->dims);
        if (counts[i])
            st->n_seen++;
    }
    free(counts);
}
