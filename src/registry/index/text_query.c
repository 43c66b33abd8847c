/* BM25 on an absolute scale.
 *
 * The score is combined with a cosine, so it must mean the same for every
 * query. Divided by the score of a document with all words of the query, a long
 * request would never come near 1, because no description holds its thirty
 * words, and the noise of the cosine would decide. So only the words of a long
 * query that tell most make the ideal. Words that no document has count in it:
 * without them, the one common word that a request happens to share would look
 * like a full match. Some words are found nearly everywhere, so half of the
 * ideal is worth less than half: x * sqrt(x).
 *
 * Found by trying an ideal of 2 to 10 words and of all (3 or 4 are best, on
 * either side it gets steadily worse), each word once, twice or any number of
 * times (with once, a query of one word makes all its documents equal), and
 * powers from 0.5 to 2, on four public sets with two models. k1 and b work
 * with any usual values, so they have those. docs/quality.md has the figures.
 *
 * Sums are exact where possible (counts and lengths are integers), else they
 * follow the order of the words in the query: a score does not depend on the
 * way it was computed, nor on other documents. */
#include "registry/index/text.h"

#include <math.h>

#include "base/fault.h"

enum { FEW_CLASSES = 16 };

/* The visible classes together. */
struct seen {
    const uint64_t *bits;
    size_t n_bits;
    uint32_t few[FEW_CLASSES]; /* their numbers, if there are few */
    size_t n;
    uint64_t n_docs, length;
};

static bool has_bit(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static bool class_is_seen(const struct seen *s, uint32_t cls)
{
    return PLANTED("index.all_classes") ||
           (cls < s->n_bits && has_bit(s->bits, cls));
}

static void seen_count(const struct text *t, struct seen *s)
{
    for (uint32_t i = 0; i < t->classes_cap; i++) {
        if (!t->classes[i].n_docs || !class_is_seen(s, i))
            continue;
        if (s->n < FEW_CLASSES)
            s->few[s->n] = i;
        s->n++;
        s->n_docs += t->classes[i].n_docs;
        s->length += t->classes[i].length;
    }
}

/* The number of visible documents with the term. */
static uint64_t term_docs_seen(const struct text_term *m, const struct seen *s)
{
    uint64_t n = 0;

    if (s->n <= FEW_CLASSES && s->n * 8 < m->n_classes) {
        for (size_t i = 0; i < s->n; i++)
            n += text_class_docs(m, s->few[i]);
        return n;
    }
    for (uint32_t i = 0; i < m->n_classes; i++)
        if (class_is_seen(s, m->classes[i].cls))
            n += m->classes[i].n_docs;
    return n;
}

static float term_idf(const struct text_term *m, const struct seen *s)
{
    double n = (double)s->n_docs, df = m ? (double)term_docs_seen(m, s) : 0;

    return (float)log(1 + (n - df + 0.5) / (df + 0.5));
}

/* The score of the TEXT_IDEAL_TERMS words that tell most, together. */
static float query_ideal(const struct text_query *q)
{
    const float tf = 2, part = tf * (TEXT_K1 + 1) / (tf + TEXT_K1);
    float best[TEXT_IDEAL_TERMS] = {0}, sum = 0;

    for (size_t i = 0; i < q->n; i++) {
        float w = q->terms[i].weight;

        for (size_t k = 0; k < TEXT_IDEAL_TERMS; k++)
            if (w > best[k]) {
                float less = best[k];

                best[k] = w;
                w = less;
            }
    }
    for (size_t k = 0; k < TEXT_IDEAL_TERMS; k++)
        sum += best[k];
    return sum * part;
}

/* Stems that no document has; they have no number to compare. */
struct unknown_stems {
    size_t n;
    struct unknown_stem {
        size_t n;
        char stem[INDEX_TERM_MAX];
    } list[INDEX_QUERY_TERMS_MAX];
};

static bool query_has_stem(const struct text_query *q,
                           struct unknown_stems *unknown_stems,
                           const struct text_term *m, struct str stem)
{
    struct unknown_stem *s = &unknown_stems->list[unknown_stems->n];

    if (m) {
        for (size_t i = 0; i < q->n; i++)
            if (q->terms[i].term == m->number)
                return true;
        return false;
    }
    for (size_t i = 0; i < unknown_stems->n; i++)
        if (str_eq(stem, (struct str){unknown_stems->list[i].stem,
                                      unknown_stems->list[i].n}))
            return true;
    memcpy(s->stem, stem.p, stem.n);
    s->n = stem.n;
    unknown_stems->n++;
    return false;
}

void text_query(const struct text *t, struct str text, const uint64_t *bits,
                size_t n_classes, struct text_query *out)
{
    struct seen seen = {.bits = bits, .n_bits = n_classes};
    struct unknown_stems unknown_stems;
    struct terms walk;
    float mean;

    unknown_stems.n = 0;
    out->n = 0;
    seen_count(t, &seen);
    terms_begin(&walk, t->stemmer, str_head(text, TEXT_QUERY_BYTES));
    while (out->n < INDEX_QUERY_TERMS_MAX && terms_next(&walk)) {
        const struct text_term *m = map_get(&t->by_stem, walk.stem);

        if (query_has_stem(out, &unknown_stems, m, walk.stem))
            continue;
        out->terms[out->n++] = (struct text_query_term){
            m ? m->number : TEXT_NONE, term_idf(m, &seen)};
    }
    out->ideal = query_ideal(out);
    mean = seen.length ? (float)seen.length / (float)seen.n_docs : 0;
    out->base = TEXT_OWN * TEXT_K1 * (mean > 0 ? 1 - TEXT_B : 1);
    out->slope = mean > 0 ? TEXT_OWN * TEXT_K1 * TEXT_B / mean : 0;
}

bool text_says(const struct text *t, struct str word, const uint64_t *bits,
               size_t n_classes, const uint64_t *granted)
{
    struct seen seen = {.bits = bits, .n_bits = n_classes};
    struct terms walk;
    const struct text_term *m;

    terms_begin(&walk, t->stemmer, word);
    m = terms_next(&walk) ? map_get(&t->by_stem, walk.stem) : NULL;
    if (!m)
        return false;
    seen_count(t, &seen);
    if (term_docs_seen(m, &seen))
        return true;
    for (uint32_t i = 0; granted && i < m->n; i++)
        if (has_bit(granted, m->postings[i].doc))
            return true;
    return false;
}

/* The score that one word gives a document. */
static inline float term_score(const struct text_query *q, float weight,
                               uint32_t count, uint32_t length)
{
    float tf = (float)count;

    return weight * (TEXT_K1 + 1) * tf /
           (tf + (q->base + q->slope * (float)length));
}

static inline float query_scale(const struct text_query *q, float sum)
{
    float x = sum / q->ideal;

    return x < 1 ? x * sqrtf(x) : 1;
}

size_t text_score_all(const struct text *t, const struct text_query *q,
                      const uint64_t *is_visible, bool is_aside_seen,
                      float *scores, uint32_t *touched)
{
    size_t n = 0;

    for (size_t i = 0; i < q->n; i++) {
        const struct text_term *m = q->terms[i].term == TEXT_NONE
                                        ? NULL
                                        : t->terms[q->terms[i].term].term;
        float weight = q->terms[i].weight;
        uint32_t end = !m ? 0 : is_aside_seen ? m->n : m->n_front;

        for (uint32_t k = 0; k < end; k++) {
            struct text_posting p = m->postings[k];

            if (!has_bit(is_visible, p.doc))
                continue;
            if (scores[p.doc] == 0)
                touched[n++] = p.doc;
            scores[p.doc] += term_score(q, weight, p.count, p.length);
        }
    }
    for (size_t i = 0; i < n; i++)
        scores[touched[i]] = query_scale(q, scores[touched[i]]);
    return n;
}

float text_score_one(const struct text *t, const struct text_query *q,
                     uint32_t doc)
{
    struct text_doc *d = doc < t->docs_cap ? t->docs[doc] : NULL;
    float sum = 0;

    for (size_t i = 0; d && i < q->n; i++) {
        const struct text_entry *e = text_entry(d, q->terms[i].term);

        if (e)
            sum += term_score(q, q->terms[i].weight, e->count, d->length);
    }
    return sum > 0 ? query_scale(q, sum) : 0;
}
