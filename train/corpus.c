/* A text is kept as the words that the teacher would see, one space between
 * them: small letters, punctuation apart. So two texts that differ in nothing
 * that counts are one, and a window of words is a piece of the string. */
#include "train/train.h"

#include <stdlib.h>

#include "embed/internal.h"

static const size_t MAX_TEXTS = (size_t)1 << 24;
static const size_t MAX_BYTES = (size_t)4 << 30;

/* Not of the recipe: the same texts are held out whatever the seed. */
static const uint64_t held_key[2] = {0x68656c64, 0x6f7574};
static const uint64_t map_key[2] = {1, 2};

const char *text_group_name(enum text_group g)
{
    static const char *const names[N_GROUPS] = {
        [GROUP_READ] = "of files",         [GROUP_CARDS] = "cards",
        [GROUP_REQUESTS] = "requests",     [GROUP_JOINS] = "joins",
        [GROUP_UTTERANCES] = "utterances", [GROUP_CROPS] = "crops",
    };

    return names[g];
}

void corpus_init(struct corpus *c, const struct recipe *r)
{
    *c = (struct corpus){.max_words = (size_t)r->text_words};
    map_init(&c->by_text, MAX_TEXTS, map_key);
    arena_init(&c->bytes, MAX_BYTES);
}

void corpus_fini(struct corpus *c)
{
    map_fini(&c->by_text);
    arena_fini(&c->bytes);
    free(c->texts);
    free(c->pairs);
}

void text_normalise(struct str text, size_t max_words, struct buf *out)
{
    struct words w;
    size_t n = 0;

    words_begin(&w, text);
    while (n < max_words && words_next(&w)) {
        if (w.is_long)
            continue;
        if (out->n)
            buf_add_char(out, ' ');
        buf_add_str(out, w.word);
        n++;
    }
}

uint8_t corpus_source(struct corpus *c, struct str name)
{
    size_t i = 0;

    for (; i < c->n_sources; i++)
        if (str_eq(name, str_of(c->sources[i])))
            return (uint8_t)i;
    if (i == MAX_SOURCES)
        return MAX_SOURCES - 1;
    name = str_head(name, SOURCE_NAME_MAX - 1);
    memcpy(c->sources[i], name.p, name.n);
    c->n_sources++;
    return (uint8_t)i;
}

/* Its number, and whether it is new. */
static uint32_t keep(struct corpus *c, struct text t, bool *is_new)
{
    uint32_t *number = map_get(&c->by_text, t.s);

    *is_new = !number;
    if (number)
        return *number;
    number = arena_alloc(&c->bytes, sizeof(*number));
    t.s.p = arena_strdup(&c->bytes, t.s);
    if (!number || !t.s.p || map_put(&c->by_text, t.s, number) != OK)
        train_end("too many texts for the memory there is");
    *number = (uint32_t)c->n_texts;
    c->texts =
        train_grow(c->texts, c->n_texts, &c->cap_texts, sizeof(c->texts[0]));
    c->texts[c->n_texts++] = t;
    c->n_of_group[t.group]++;
    if (t.group == GROUP_READ)
        c->n_of_source[t.source]++;
    return *number;
}

/* Normalise and keep; NO_TEXT where nothing is left. */
static uint32_t normalise_and_keep(struct corpus *c, struct text t,
                                   size_t max_words, bool *is_new)
{
    struct buf words;
    uint32_t number = NO_TEXT;

    *is_new = false;
    buf_init(&words, 8 * TEXT_MAX_BYTES);
    text_normalise(str_head(t.s, TEXT_MAX_BYTES), max_words, &words);
    t.s = buf_str(&words);
    if (words.n && !words.over)
        number = keep(c, t, is_new);
    buf_fini(&words);
    return number;
}

uint32_t corpus_add(struct corpus *c, uint8_t source, struct str text)
{
    bool is_new;

    c->n_offered++;
    return normalise_and_keep(c, (struct text){.s = text, .source = source},
                              c->max_words, &is_new);
}

bool corpus_add_made(struct corpus *c, enum text_group group, uint8_t source,
                     struct str words)
{
    bool is_new;

    (void)keep(
        c, (struct text){.s = words, .source = source, .group = (uint8_t)group},
        &is_new);
    return is_new;
}

bool corpus_make(struct corpus *c, enum text_group group, uint8_t source,
                 struct str text)
{
    struct text t = {.s = text, .source = source, .group = (uint8_t)group};
    bool is_new;

    (void)normalise_and_keep(c, t, SIZE_MAX, &is_new);
    return is_new;
}

void corpus_pair(struct corpus *c, uint32_t a, uint32_t b, uint8_t source)
{
    if (a == NO_TEXT || b == NO_TEXT || a == b)
        return;
    c->pairs =
        train_grow(c->pairs, c->n_pairs, &c->cap_pairs, sizeof(c->pairs[0]));
    c->pairs[c->n_pairs++] = (struct pair){a, b, source};
}

/* A text and where it stood. */
struct place {
    struct text text;
    uint32_t was;
};

static int by_bytes(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    return str_cmp(x->text.s, y->text.s);
}

static int by_texts(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    if (x->b != y->b)
        return x->b < y->b ? -1 : 1;
    return x->source - y->source;
}

static void settle_pairs(struct corpus *c, const uint32_t *now)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_pairs; i++) {
        c->pairs[i].a = now[c->pairs[i].a];
        c->pairs[i].b = now[c->pairs[i].b];
    }
    if (c->n_pairs)
        qsort(c->pairs, c->n_pairs, sizeof(c->pairs[0]), by_texts);
    for (size_t i = 0; i < c->n_pairs; i++)
        if (!n || c->pairs[i].a != c->pairs[n - 1].a ||
            c->pairs[i].b != c->pairs[n - 1].b)
            c->pairs[n++] = c->pairs[i];
    c->n_pairs = n;
}

void corpus_settle(struct corpus *c, const struct recipe *r)
{
    struct place *places = train_alloc(c->n_texts, sizeof(places[0]));
    uint32_t *now = train_alloc(c->n_texts, sizeof(now[0]));

    for (size_t i = 0; i < c->n_texts; i++)
        places[i] = (struct place){c->texts[i], (uint32_t)i};
    qsort(places, c->n_texts, sizeof(places[0]), by_bytes);
    for (size_t i = 0; i < c->n_texts; i++) {
        struct text *t = &c->texts[i];

        *t = places[i].text;
        t->is_held =
            hash_bytes(t->s, held_key) % 1000 < (uint64_t)r->held_permille;
        now[places[i].was] = (uint32_t)i;
    }
    settle_pairs(c, now);
    c->n_read = c->n_texts;
    free(places);
    free(now);
}
