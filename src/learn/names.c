/* What tells a type from the others of its scope: words that many of its texts
 * have, and few of the other types. Each type keeps some words with the number
 * of texts that had them; where there are too many the rarest makes way, so a
 * word that comes again and again stays and the others take turns.
 *
 * A word is worth its count, times how many types have it not for each that
 * has it. No logarithms: they need not come out the same on every processor.
 * Words with digits in them are somebody's numbers and tell nothing of the
 * type. */
#include "learn/internal.h"

#include <stdlib.h>

#include "index/index.h"

enum { NAME_WORDS = 3, WORD_MIN = 3 };

static struct str stem_of(const struct telling *t)
{
    return (struct str){t->stem, t->n_stem};
}

static struct str word_of(const struct telling *t)
{
    return (struct str){t->word, t->n_word};
}

static bool tells(struct str word, struct str stem)
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

    if (!tells(word, stem) || w->n == TEXT_WORDS_MAX)
        return;
    for (size_t i = 0; i < w->n; i++)
        if (str_eq(stem_of(&w->words[i]), stem))
            return;
    t = &w->words[w->n++];
    *t = (struct telling){.n_stem = (uint8_t)stem.n, .n_word = (uint8_t)word.n};
    memcpy(t->stem, stem.p, stem.n);
    str_lowered(word, t->word, sizeof(t->word));
}

bool words_of(struct str text, struct text_words *out)
{
    out->n = 0;
    return index_terms(text, on_word, out);
}

/* The rarest; of equals the one whose stem sorts last. */
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

/* The shortest form is shown; of equals the one that sorts first. */
static void hear_form(struct telling *t, const struct telling *form)
{
    if (form->n_word > t->n_word ||
        (form->n_word == t->n_word && str_cmp(word_of(form), word_of(t)) >= 0))
        return;
    memcpy(t->word, form->word, sizeof(t->word));
    t->n_word = form->n_word;
}

static void hear(struct type *t, const struct telling *word)
{
    struct telling *at = NULL;

    for (size_t i = 0; i < t->n_words && !at; i++)
        if (str_eq(stem_of(&t->words[i]), stem_of(word)))
            at = &t->words[i];
    if (at) {
        at->count += at->count < UINT32_MAX;
        hear_form(at, word);
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

/* Kept in order, so that two states that are the same look the same. */
void type_hear(struct type *t, const struct text_words *w)
{
    for (size_t i = 0; i < w->n; i++)
        hear(t, &w->words[i]);
    qsort(t->words, t->n_words, sizeof(t->words[0]), by_stem);
}

static int by_stem_at(const void *a, const void *b)
{
    return by_stem(*(struct telling *const *)a, *(struct telling *const *)b);
}

/* How many types have each word: all of them in order, equals side by side. */
static void count_all(struct telling **all, size_t n)
{
    qsort(all, n, sizeof(*all), by_stem_at);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && !by_stem(all[from], all[to]);)
            to++;
        for (size_t i = from; i < to; i++)
            all[i]->n_types = (uint32_t)(to - from);
    }
}

/* Without memory for it every word counts as one type's: a poorer name. */
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
    if (all)
        count_all(all, n);
    free(all);
    s->counted = l->changes;
}

static double worth(const struct tenant *s, const struct telling *word)
{
    size_t all = s->n_types, n = word->n_types;

    return (double)word->count * (double)(all - n + 1) / (double)n;
}

static void add_word(struct type *t, const struct telling *word)
{
    if (t->n_name)
        t->name[t->n_name++] = ' ';
    memcpy(t->name + t->n_name, word->word, word->n_word);
    t->n_name += word->n_word;
}

/* Best first; of equals the one whose stem sorts first, as they lie. */
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
        add_word(t, &t->words[best]);
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
