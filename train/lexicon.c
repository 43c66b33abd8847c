/* Nouns, nouns of two words, adjectives and things to do, out of what a
 * dictionary and descriptions of commands say. A dictionary does not tell what
 * a word is, but how it is explained does: a thing as "a ...", a property as
 * "having ...", a doing with a verb. The first sense of a word counts. What is
 * rare in the texts is left out; of the rest, frequent ones come oftener, by
 * the root of how often. */
#include "train/train.h"

#include <math.h>
#include <stdlib.h>

enum {
    MIN_COUNT = 8,          /* of a noun or adjective in the texts */
    MIN_COMPOUND_PART = 20, /* of each word of a compound */
    MAX_DOING_WORDS = 8,
};

static const size_t MAX_BYTES = (size_t)1 << 28;
static const size_t MAX_WORDS = (size_t)1 << 22;
static const uint64_t map_key[2] = {1, 2};

void lexicon_init(struct lexicon *l)
{
    *l = (struct lexicon){.n = {0}};
    map_init(&l->seen, MAX_WORDS, map_key);
    arena_init(&l->bytes, MAX_BYTES);
}

void lexicon_fini(struct lexicon *l)
{
    for (size_t i = 0; i < N_LEXICON_KINDS; i++)
        free(l->words[i]);
    map_fini(&l->seen);
    arena_fini(&l->bytes);
}

/* ---- what words look like ---- */

static bool is_small(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_letter(char c)
{
    return is_small(str_lower(c));
}

/* Small letters, with spaces and hyphens between them. */
static bool is_small_word(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_small(s.p[i]) && s.p[i] != ' ' && s.p[i] != '-')
            return false;
    return s.n && is_small(s.p[0]);
}

static bool is_letters(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_letter(s.p[i]) && s.p[i] != ' ')
            return false;
    return s.n && is_letter(s.p[0]);
}

static size_t count_words(struct str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] != ' ' && (i == 0 || s.p[i - 1] == ' ');
    return n;
}

static struct str first_word(struct str s)
{
    return str_cut(&s, ' ');
}

static bool is_one_of(struct str s, const char *const *all)
{
    for (; *all; all++)
        if (str_eq_nocase(s, str_of(*all)))
            return true;
    return false;
}

static bool starts_with_one(struct str s, const char *const *all)
{
    for (; *all; all++)
        if (str_starts(s, str_of(*all)))
            return true;
    return false;
}

static bool is_verb(const struct grammar *g, struct str s)
{
    const struct str_list *verbs = &g->lists[GRAMMAR_VERBS];

    for (size_t i = 0; i < verbs->n; i++)
        if (str_eq(s, verbs->all[i]))
            return true;
    return false;
}

/* ---- what a pair offers ---- */

static void add(struct lexicon *l, enum lexicon_kind kind, struct str s)
{
    char *copy = arena_strdup(&l->bytes, s);

    if (!copy)
        train_end("too many words for the memory there is");
    for (size_t i = 0; i < s.n; i++)
        copy[i] = str_lower(copy[i]);
    l->words[kind] = train_grow(l->words[kind], l->n[kind], &l->cap[kind],
                                sizeof(l->words[kind][0]));
    l->words[kind][l->n[kind]++] = (struct lexicon_word){.s = {copy, s.n}};
}

static void offer_word(struct lexicon *l, struct str word, struct str meaning)
{
    static const char *const of_things[] = {
        "a", "an", "the", "any", "some", "one", "someone", "something", NULL};
    static const char *const of_properties[] = {
        "of ",      "having",  "being",   "not ",    "characterized", "marked",
        "relating", "capable", "showing", "full of", "causing",       NULL};
    bool is_thing = is_one_of(first_word(meaning), of_things);
    bool is_property = starts_with_one(meaning, of_properties);
    size_t n = count_words(word);

    if (!is_small_word(word) || map_get(&l->seen, word))
        return;
    word = (struct str){arena_strdup(&l->bytes, word), word.n};
    if (!word.p || map_put(&l->seen, word, l) != OK)
        train_end("too many words for the memory there is");
    if (n == 1 && is_thing)
        add(l, LEXICON_NOUNS, word);
    else if (n == 1 && is_property)
        add(l, LEXICON_ADJECTIVES, word);
    else if (n == 2 && is_thing)
        add(l, LEXICON_COMPOUNDS, word);
}

static void offer_words(struct lexicon *l, const struct grammar *g,
                        struct str words, struct str meaning)
{
    size_t n = count_words(meaning);

    while (words.n)
        offer_word(l, str_trim(str_cut(&words, ',')), meaning);
    if (n >= 2 && n < MAX_DOING_WORDS &&
        str_find(meaning, ';', 0) == meaning.n &&
        is_verb(g, first_word(meaning)))
        add(l, LEXICON_DOINGS, meaning);
}

static void offer_doing(struct lexicon *l, struct str s, bool is_doing)
{
    size_t n;

    while (s.n && s.p[s.n - 1] == '.')
        s.n--;
    n = count_words(s);
    if (is_doing && n >= 2 && n <= MAX_DOING_WORDS && is_letters(s))
        add(l, LEXICON_DOINGS, s);
}

static bool begins_with_verb(const struct grammar *g, struct str s)
{
    char verb[32];
    struct str first = first_word(s);

    if (first.n > sizeof(verb))
        return false;
    for (size_t i = 0; i < first.n; i++)
        verb[i] = str_lower(first.p[i]);
    return is_verb(g, (struct str){verb, first.n});
}

void lexicon_offer(struct lexicon *l, const struct grammar *g,
                   struct str source, struct str a, struct str b)
{
    if (str_eq(source, STR("wordnet")))
        offer_words(l, g, a, b);
    else if (str_eq(source, STR("wordnet_ex")))
        offer_doing(l, a, is_verb(g, first_word(a)));
    else if (str_eq(source, STR("openapi_op")))
        offer_doing(l, a, begins_with_verb(g, a));
    else if (str_eq(source, STR("tldr")))
        offer_doing(l, a, true);
}

/* ---- what is left of it ---- */

/* How often each word stands in texts that may be trained on. */
static void count_all(struct map *counts, struct arena *bytes,
                      const struct corpus *c)
{
    for (size_t i = 0; i < c->n_read; i++) {
        struct str rest = c->texts[i].s;

        while (rest.n && !c->texts[i].is_held) {
            struct str word = str_cut(&rest, ' ');
            size_t *n = map_get(counts, word);

            if (!n) {
                n = arena_alloc(bytes, sizeof(*n));
                if (!n || map_put(counts, word, n) != OK)
                    train_end("too many words for the memory there is");
            }
            ++*n;
        }
    }
}

static size_t count_of(const struct map *counts, struct str word)
{
    const size_t *n = map_get(counts, word);

    return n ? *n : 0;
}

static double weight_of(const struct map *counts, enum lexicon_kind kind,
                        struct str s)
{
    size_t n = count_of(counts, s);

    if (kind == LEXICON_DOINGS)
        return 1;
    if (kind == LEXICON_COMPOUNDS) {
        struct str second = s, first = str_cut(&second, ' ');

        return count_of(counts, first) >= MIN_COMPOUND_PART &&
               count_of(counts, second) >= MIN_COMPOUND_PART;
    }
    return n >= MIN_COUNT ? sqrt((double)n) : 0;
}

static int by_bytes(const void *a, const void *b)
{
    const struct lexicon_word *x = a, *y = b;

    return str_cmp(x->s, y->s);
}

static void settle_kind(struct lexicon *l, enum lexicon_kind kind,
                        const struct map *counts)
{
    struct lexicon_word *all = l->words[kind];
    size_t n = 0;
    double sum = 0;

    if (l->n[kind])
        qsort(all, l->n[kind], sizeof(all[0]), by_bytes);
    for (size_t i = 0; i < l->n[kind]; i++) {
        double weight = weight_of(counts, kind, all[i].s);

        if (weight <= 0 || (n && str_eq(all[i].s, all[n - 1].s)))
            continue;
        all[n] = all[i];
        all[n++].upto = sum += weight;
    }
    l->n[kind] = n;
}

void lexicon_settle(struct lexicon *l, const struct corpus *c)
{
    struct map counts;

    map_init(&counts, MAX_WORDS, map_key);
    count_all(&counts, &l->bytes, c);
    for (size_t i = 0; i < N_LEXICON_KINDS; i++)
        settle_kind(l, (enum lexicon_kind)i, &counts);
    map_fini(&counts);
}

struct str lexicon_pick(const struct lexicon *l, enum lexicon_kind kind,
                        uint64_t chance)
{
    const struct lexicon_word *all = l->words[kind];
    size_t low = 0, high = l->n[kind];
    double at;

    if (!high)
        return STR("");
    at = chance_real(chance) * all[high - 1].upto;
    high--;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (all[middle].upto > at)
            high = middle;
        else
            low = middle + 1;
    }
    return all[low].s;
}
