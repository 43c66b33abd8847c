/* The packaged peer of bench_search: a table of FTS5 in memory, one row for
 * each skill with its agent's name and description beside its own, porter
 * stems, bm25() with the weights that we use; and the vectors as floats.
 *
 * Words are joined by OR and stop words left out, as a user of it would. Its
 * bm25 has no scale of its own and is divided by the best there is. Who sees
 * what is left out: it only has less to do for that. */
#include "bench/search.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

struct packaged {
    sqlite3 *db;
    sqlite3_stmt *ask;
    const struct crowd *c;
    float *texts; /* of each skill */
    float *best;  /* of each agent */
};

static void fail(struct packaged *p, const char *what)
{
    fprintf(stderr, "bench_search: %s: %s\n", what, sqlite3_errmsg(p->db));
    exit(1);
}

static void bind(sqlite3_stmt *s, int at, struct str text)
{
    sqlite3_bind_text(s, at, text.p, (int)text.n, SQLITE_STATIC);
}

static void insert_all(struct packaged *p)
{
    const struct crowd *c = p->c;
    sqlite3_stmt *s;

    if (sqlite3_prepare_v2(p->db, "INSERT INTO t VALUES(?,?,?,?)", -1, &s,
                           NULL))
        fail(p, "insert");
    for (size_t i = 0; i < c->n * c->per_agent; i++) {
        bind(s, 1, c->skills[i].name);
        bind(s, 2, c->skills[i].description);
        bind(s, 3, c->agents[i / c->per_agent].name);
        bind(s, 4, c->agents[i / c->per_agent].description);
        if (sqlite3_step(s) != SQLITE_DONE)
            fail(p, "insert");
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
}

struct packaged *packaged_new(const struct crowd *c)
{
    struct packaged *p = calloc(1, sizeof(*p));

    if (!p)
        exit(1);
    p->c = c;
    p->texts = calloc(c->n * c->per_agent, sizeof(*p->texts));
    p->best = calloc(c->n, sizeof(*p->best));
    if (!p->texts || !p->best || sqlite3_open(":memory:", &p->db) ||
        sqlite3_exec(p->db,
                     "CREATE VIRTUAL TABLE t USING fts5(name, description, "
                     "agent, about, tokenize='porter unicode61'); BEGIN",
                     NULL, NULL, NULL))
        fail(p, "FTS5");
    insert_all(p);
    if (sqlite3_exec(p->db, "COMMIT; INSERT INTO t(t) VALUES('optimize')", NULL,
                     NULL, NULL) ||
        sqlite3_prepare_v2(p->db,
                           "SELECT rowid, bm25(t, 4, 4, 1, 1) FROM t "
                           "WHERE t MATCH ?",
                           -1, &p->ask, NULL))
        fail(p, "FTS5");
    return p;
}

void packaged_free(struct packaged *p)
{
    sqlite3_finalize(p->ask);
    sqlite3_close(p->db);
    free(p->texts);
    free(p->best);
    free(p);
}

struct joined {
    char text[2048];
    size_t n;
};

static void join(void *ctx, struct str word, struct str stem)
{
    struct joined *j = ctx;

    (void)stem;
    j->n += (size_t)snprintf(j->text + j->n, sizeof(j->text) - j->n,
                             "%s\"%.*s\"", j->n ? " OR " : "", STR_ARG(word));
}

/* Scores of the words; returns the largest. */
static float ask_words(struct packaged *p, struct str text)
{
    struct joined j = {.n = 0};
    float most = 0;

    memset(p->texts, 0, p->c->n * p->c->per_agent * sizeof(*p->texts));
    index_terms(text, join, &j);
    if (j.n == 0)
        return 0;
    sqlite3_bind_text(p->ask, 1, j.text, (int)j.n, SQLITE_STATIC);
    while (sqlite3_step(p->ask) == SQLITE_ROW) {
        float score = (float)-sqlite3_column_double(p->ask, 1);

        p->texts[sqlite3_column_int64(p->ask, 0) - 1] = score;
        most = score > most ? score : most;
    }
    sqlite3_reset(p->ask);
    return most;
}

/* One pass for each place: ten of them cost less than sorting would. */
static void take_best(struct packaged *p, uint32_t *best, size_t limit)
{
    for (size_t k = 0; k < limit; k++) {
        size_t at = 0;

        for (size_t i = 1; i < p->c->n; i++)
            if (p->best[i] > p->best[at])
                at = i;
        best[k] = (uint32_t)at;
        p->best[at] = -1;
    }
}

/* Eight sums side by side, so that none waits for itself. */
static float plain_dot(const float *a, const float *b, size_t n)
{
    float sums[8] = {0};

    for (size_t i = 0; i < n; i += 8)
        for (size_t k = 0; k < 8; k++)
            sums[k] += a[i + k] * b[i + k];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

void packaged_ask(struct packaged *p, const struct question *q, bool is_wide,
                  uint32_t *best, size_t limit)
{
    const struct crowd *c = p->c;
    float (*dot)(const float *, const float *, size_t) =
        is_wide ? vec_ops()->dot : plain_dot;
    float most = ask_words(p, q->text), unit = most > 0 ? 0.3F / most : 0;

    for (size_t i = 0; i < c->n; i++) {
        const float *rows = c->vectors + i * (c->per_agent + 1) * DIMS;

        p->best[i] = 0;
        for (size_t k = 0; k < c->per_agent; k++) {
            float cosine = dot(rows + (k + 1) * DIMS, q->vector, DIMS);
            float score = 0.7F * (cosine > 0 ? cosine : 0) +
                          unit * p->texts[i * c->per_agent + k];

            if (score > p->best[i])
                p->best[i] = score;
        }
    }
    take_best(p, best, limit);
}
