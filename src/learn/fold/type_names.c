/* The name of a type: words that many of its texts have, and few of the scope's
 * other types. Each type keeps some words with the number of texts that had
 * them; if there are too many the rarest is replaced, so a frequent word stays
 * and the others take turns.
 *
 * The worth of a word is its count, times the number of types without it per
 * type with it. No logarithms: they may differ between processors. Words with
 * digits are likely private numbers and say nothing about the type. */
#include "learn/fold/internal.h"

#include <stdlib.h>

#include "registry/index/index.h"

enum { NAME_WORDS = 3, WORD_MIN = 3 };

static struct str stem_of(const struct telling *t)
{
    return (struct str){t->stem, t->n_stem};
}

static struct str word_of(const struct telling *t)
{
    return (struct str){t->word, t->n_word};
}

static bool word_is_telling(struct str word, struct str stem)
{
    if (word.n < WORD_MIN || word.n > TELLING_BYTES || stem.n > TELLING_BYTES)
        return false;
    for (size_t i = 0; i < word.n; i++)
        if (word.p[i] >= '0' && word.p[i] <= '9')
            return false;
    return !str_has_any_control(word);
}

static void on_word(void *ctx, struct str word, struct str stem)
{
    struct text_words *w = ctx;
    struct telling *t;

    if (!word_is_telling(word, stem) || w->n == TEXT_WORDS_MAX)
        return;
    for (size_t i = 0; i < w->n; i++)
        if (str_eq(stem_of(&w->words[i]), stem))
            return;
    t = &w->words[w->n++];
    *t = (struct telling){.n_stem = (uint8_t)stem.n, .n_word = (uint8_t)word.n};
    memcpy(t->stem, stem.p, stem.n);
    str_lowered(word, t->word, sizeof(t->word));
}

void words_of(struct str text, struct text_words *out)
{
    out->n = 0;
    index_terms(text, on_word, out);
}

/* The rarest; of equal ones the last by stem. */
static struct telling *rarest(struct type *t)
{
    struct telling *least = &t->words[0];

    for (size_t i = 1; i < t->n_words; i++) {
        struct telling *one = &t->words[i];

        if (one->count < least->count ||
            (one->count == least->count &&
             str_cmp(stem_of(one), stem_of(least)) > 0))
            least = one;
    }
    return least;
}

static void type_count_word(struct type *t, const struct telling *word)
{
    struct telling *at = NULL;

    for (size_t i = 0; i < t->n_words && !at; i++)
        if (str_eq(stem_of(&t->words[i]), stem_of(word)))
            at = &t->words[i];
    if (at) {
        at->count += at->count < UINT32_MAX;
        /* Show the shortest form; of equal ones the first in order. */
        if (word->n_word < at->n_word ||
            (word->n_word == at->n_word &&
             str_cmp(word_of(word), word_of(at)) < 0)) {
            memcpy(at->word, word->word, sizeof(at->word));
            at->n_word = word->n_word;
        }
        return;
    }
    at = t->n_words < TELLING_WORDS ? &t->words[t->n_words++] : rarest(t);
    *at = *word;
    at->count = 1;
}

static int by_stem(const void *a, const void *b)
{
    return str_cmp(stem_of(a), stem_of(b));
}

/* Kept sorted, so that equal states look equal. */
void type_count_words(struct type *t, const struct text_words *w)
{
    for (size_t i = 0; i < w->n; i++)
        type_count_word(t, &w->words[i]);
    qsort(t->words, t->n_words, sizeof(t->words[0]), by_stem);
}

static int by_stem_at(const void *a, const void *b)
{
    return by_stem(*(struct telling *const *)a, *(struct telling *const *)b);
}

/* Count how many types have each word: sort all, so equal ones are adjacent.
 * Without memory every word counts as one type's: a poorer name. */
static void count_types(const struct learn *l, struct tenant *s)
{
    struct telling **all = malloc(s->n_types * TELLING_WORDS * sizeof(*all));
    size_t n = 0;

    for (struct list_node *at = list_first(&s->types); at;
         at = list_next(&s->types, at)) {
        struct type *t = LIST_OF(at, struct type, of_scope);

        for (size_t k = 0; k < t->n_words; k++) {
            t->words[k].n_types = 1;
            if (all)
                all[n++] = &t->words[k];
        }
    }
    if (n)
        qsort(all, n, sizeof(*all), by_stem_at);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && !by_stem(all[from], all[to]);)
            to++;
        for (size_t i = from; i < to; i++)
            all[i]->n_types = (uint32_t)(to - from);
    }
    free(all);
    s->counted = l->changes;
}

static double worth(const struct tenant *s, const struct telling *word)
{
    size_t all = s->n_types, n = word->n_types;

    return (double)word->count * (double)(all - n + 1) / (double)n;
}

/* Best first; of equal ones the first by stem, which is their order. */
static void name_type(struct type *t)
{
    double worths[TELLING_WORDS];

    t->n_name = 0;
    for (size_t i = 0; i < t->n_words; i++)
        worths[i] = worth(t->scope, &t->words[i]);
    for (size_t k = 0; k < NAME_WORDS; k++) {
        size_t best = t->n_words;

        for (size_t i = 0; i < t->n_words; i++)
            if (worths[i] > 0 &&
                (best == t->n_words || worths[i] > worths[best]))
                best = i;
        if (best == t->n_words)
            break;
        if (t->n_name)
            t->name[t->n_name++] = ' ';
        memcpy(t->name + t->n_name, t->words[best].word, t->words[best].n_word);
        t->n_name += t->words[best].n_word;
        worths[best] = 0;
    }
}

struct str learn_type_name(const struct learn *l, int64_t type)
{
    struct type *t = type_of(l, type);

    if (!t)
        return (struct str){NULL, 0};
    if (t->scope->counted != l->changes)
        count_types(l, t->scope);
    name_type(t);
    return (struct str){t->name, t->n_name};
}
