/* Texts, vocabulary, teacher, fewer numbers, learning, bytes, figures. */
#include "train/make.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "embed/table.h"

struct making {
    const struct train_job *job;
    struct train_result *out;
    struct corpus *corpus;
    struct crew *crew;
    struct vocabulary vocabulary;
    struct samples samples;
    struct student student;
    struct pca pca;
    float *said; /* of each row, by the teacher */
};

/* ---- the teacher's part ---- */

/* The texts of the corpus, then the words. */
static struct str *all_texts(const struct making *m)
{
    size_t n = m->corpus->n_texts, n_words = m->vocabulary.n_words;
    struct str *texts = train_alloc(n + n_words, sizeof(texts[0]));

    for (size_t i = 0; i < n; i++)
        texts[i] = m->corpus->texts[i].s;
    for (size_t i = 0; i < n_words; i++)
        texts[n + i] = vocabulary_text(&m->vocabulary, i);
    return texts;
}

/* Only what is trained on says which axes count. */
static void fit_axes(struct making *m, int16_t *vectors)
{
    size_t n = 0;
    int16_t *kept = train_alloc(m->corpus->n_texts * TEACHER_DIMS, 2);

    for (size_t i = 0; i < m->corpus->n_texts; i++)
        if (!m->corpus->texts[i].is_held)
            memcpy(kept + n++ * TEACHER_DIMS, vectors + i * TEACHER_DIMS,
                   TEACHER_DIMS * sizeof(kept[0]));
    pca_fit(&m->pca, TABLE_DIMS, m->job->recipe.centre, m->crew, kept, n);
    m->out->kept = m->pca.kept;
    free(kept);
}

static enum err ask_teacher(struct making *m, struct why *why)
{
    size_t n = m->corpus->n_texts, n_words = m->vocabulary.n_words;
    size_t n_rows = n_words + m->vocabulary.n_phrases;
    int16_t *vectors = train_alloc((n + n_words) * TEACHER_DIMS, 2);
    struct str *texts = all_texts(m);
    enum err e = teacher_embed(m->job->teacher, m->crew, m->job->cache, texts,
                               n + n_words, vectors, m->job->is_quiet, why);

    if (!e) {
        fit_axes(m, vectors);
        m->said = train_alloc(n_rows * TABLE_DIMS, sizeof(float));
        pca_project(&m->pca, m->crew, vectors, n, m->samples.targets);
        pca_project(&m->pca, m->crew, vectors + n * TEACHER_DIMS, n_words,
                    m->said);
    }
    free(texts);
    free(vectors);
    return e;
}

/* ---- the student's ---- */

/* Pairs of which neither text is held out. */
static size_t trained_pairs(const struct making *m, struct pair *out)
{
    const struct corpus *c = m->corpus;
    size_t n = 0;

    for (size_t i = 0; i < c->n_pairs; i++)
        if (!c->texts[c->pairs[i].a].is_held &&
            !c->texts[c->pairs[i].b].is_held)
            out[n++] = c->pairs[i];
    return n;
}

static void learn(struct making *m)
{
    const struct recipe *r = &m->job->recipe;
    uint32_t *order = train_alloc(m->samples.n, sizeof(order[0]));
    struct pair *pairs = train_alloc(m->corpus->n_pairs, sizeof(pairs[0]));
    struct train_result *out = m->out;

    student_init(&m->student, m->vocabulary.n_words + m->vocabulary.n_phrases,
                 TABLE_DIMS);
    student_begin(&m->student, &m->samples, m->corpus, m->said,
                  m->vocabulary.n_words, r);
    figures_take(&out->first, &m->student, &m->samples, m->corpus, m->crew);
    out->n_trained = samples_trained(&m->samples, m->corpus, order);
    out->n_pairs = r->pair_epochs ? trained_pairs(m, pairs) : 0;
    learn_vectors(&m->student, &m->samples, order, out->n_trained, r, m->crew,
                  m->job->is_quiet);
    learn_pairs(&m->student, &m->samples, pairs, out->n_pairs, r, m->crew,
                m->job->is_quiet);
    figures_take(&out->floats, &m->student, &m->samples, m->corpus, m->crew);
    free(order);
    free(pairs);
}

/* ---- the file ---- */

static void take_hashes(struct train_result *out)
{
    const uint8_t *inner =
        (const uint8_t *)out->table.p + offsetof(struct table_head, hash);

    train_hash(buf_str(&out->table), out->hash);
    for (size_t i = 0; i < TABLE_HASH_BYTES; i++)
        snprintf(out->inner_hash + 2 * i, 3, "%02x", inner[i]);
}

static enum err write_table(struct making *m, struct why *why)
{
    const struct vocabulary *v = &m->vocabulary;
    struct quantised q;
    struct table_parts parts = {
        .words = v->words,
        .n_words = v->n_words,
        .phrases = v->phrases,
        .n_phrases = v->n_phrases,
    };
    enum err e;

    quantise(&q, &m->student);
    parts.rows = q.rows;
    parts.scales = q.scales;
    parts.unknown_scale = q.unknown_scale;
    e = table_write(&parts, &m->out->table, why);
    if (!e)
        take_hashes(m->out);
    quantised_back(&q, &m->student);
    figures_take(&m->out->bytes, &m->student, &m->samples, m->corpus, m->crew);
    quantised_fini(&q);
    return e;
}

/* So that the card can say whether two tables are of the same texts. */
static void hash_texts(const struct corpus *c, char out[HASH_CHARS + 1])
{
    struct buf all;

    buf_init(&all, (size_t)4 << 30);
    for (size_t i = 0; i < c->n_texts; i++) {
        buf_add_str(&all, c->texts[i].s);
        buf_add_char(&all, c->texts[i].is_held ? '\t' : '\n');
    }
    train_hash(buf_str(&all), out);
    buf_fini(&all);
}

static void count_rows(const struct making *m)
{
    struct train_result *out = m->out;

    out->n_pieces = m->vocabulary.n_pieces;
    out->n_words = m->vocabulary.n_words - m->vocabulary.n_pieces;
    out->n_phrases = m->vocabulary.n_phrases;
    out->n_seen = m->student.n_seen;
}

enum err train_make(struct train_result *out, struct corpus *c,
                    const struct train_job *job, struct why *why)
{
    struct making m = {.job = job, .out = out, .corpus = c};
    enum err e;

    *out = (struct train_result){.n_trained = 0};
    buf_init(&out->table, TABLE_BYTES_MAX);
    m.crew = crew_new(job->n_threads);
    augment(c, &job->recipe, job->grammar, job->lexicon);
    hash_texts(c, out->texts_hash);
    e = vocabulary_make(&m.vocabulary, c, job->teacher->vocab, &job->recipe,
                        why);
    if (!e) {
        samples_make(&m.samples, &m.vocabulary, c, m.crew);
        e = ask_teacher(&m, why);
    }
    if (!e) {
        learn(&m);
        count_rows(&m);
        e = write_table(&m, why);
    }
    vocabulary_fini(&m.vocabulary);
    samples_fini(&m.samples);
    student_fini(&m.student);
    pca_fini(&m.pca);
    free(m.said);
    crew_free(m.crew);
    return e;
}

void train_result_fini(struct train_result *r)
{
    buf_fini(&r->table);
}
