#ifndef TEXT_PLAIN_H
#define TEXT_PLAIN_H

/* The search by words as its formula stands in registry/index/internal.h,
 * computed for every document by looking at all of them: no lists, no counts
 * that are kept. Texts are words with blanks between them, of letters and
 * digits that no stemmer changes. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "registry/index/internal.h"

enum { PLAIN_WORDS = 64, PLAIN_DOCS = 512 };

struct plain_word {
    char word[16];
    uint32_t count;
};

struct plain_doc {
    bool is_there;
    uint32_t cls;
    struct plain_word words[PLAIN_WORDS];
    size_t n;
};

static inline void plain_add(struct plain_doc *d, struct str text,
                             uint32_t weight)
{
    while (text.n) {
        struct str w = str_cut(&text, ' ');
        size_t i = 0;

        while (i < d->n && !str_eq(str_of(d->words[i].word), w))
            i++;
        if (i == d->n) {
            snprintf(d->words[i].word, sizeof(d->words[i].word), "%.*s",
                     STR_ARG(w));
            d->words[d->n++].count = 0;
        }
        d->words[i].count += weight;
    }
}

static inline uint32_t plain_count(const struct plain_doc *d, const char *word)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->words[i].word, word) == 0)
            return d->words[i].count;
    return 0;
}

static inline uint32_t plain_length(const struct plain_doc *d)
{
    uint32_t n = 0;

    for (size_t i = 0; i < d->n; i++)
        n += d->words[i].count;
    return n;
}

static int plain_most(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return x > y ? -1 : x < y;
}

/* The query is words once each; is_seen says which classes are. */
static inline float plain_score(const struct plain_doc *docs, size_t n_docs,
                                const bool *is_seen,
                                const struct plain_doc *query,
                                const struct plain_doc *d)
{
    float weights[PLAIN_WORDS], sorted[PLAIN_WORDS], ideal = 0, sum = 0;
    uint64_t n = 0, length = 0;
    float mean, base, slope, x;

    for (size_t i = 0; i < n_docs; i++)
        if (docs[i].is_there && is_seen[docs[i].cls]) {
            n++;
            length += plain_length(&docs[i]);
        }
    for (size_t k = 0; k < query->n; k++) {
        double df = 0;

        for (size_t i = 0; i < n_docs; i++)
            df += docs[i].is_there && is_seen[docs[i].cls] &&
                  plain_count(&docs[i], query->words[k].word) > 0;
        weights[k] = (float)log(1 + ((double)n - df + 0.5) / (df + 0.5));
        sorted[k] = weights[k];
    }
    qsort(sorted, query->n, sizeof(sorted[0]), plain_most);
    for (size_t k = 0; k < query->n && k < TEXT_IDEAL_TERMS; k++)
        ideal += sorted[k];
    ideal *= 2 * (TEXT_K1 + 1) / (2 + TEXT_K1);
    mean = length ? (float)length / (float)n : 0;
    base = TEXT_OWN * TEXT_K1 * (length ? 1 - TEXT_B : 1);
    slope = length ? TEXT_OWN * TEXT_K1 * TEXT_B / mean : 0;
    for (size_t k = 0; k < query->n; k++) {
        float tf = (float)plain_count(d, query->words[k].word);

        if (tf > 0)
            sum += weights[k] * (TEXT_K1 + 1) * tf /
                   (tf + (base + slope * (float)plain_length(d)));
    }
    if (!(sum > 0))
        return 0;
    x = sum / ideal;
    return x < 1 ? x * sqrtf(x) : 1;
}

#endif
