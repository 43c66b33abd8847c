/* What gets a row of its own: first the teacher's pieces, so that every word
 * has some; then whole words that the teacher would take to pieces, the most
 * frequent first; then two words in a row, for an average knows nothing of
 * order and "credit card" is not a credit and a card. As many as the table may
 * have bytes. */
#include "train/vocabulary.h"

#include <stdlib.h>

#include "train/floats.h"

enum { MAX_WORD_BYTES = 30 }; /* longer ones are no words */

static const size_t MAX_ENTRIES = (size_t)1 << 24;
static const uint64_t map_key[2] = {1, 2};

/* How often something occurs. */
struct tally {
    struct map map; /* where they are in entries */
    struct arena bytes;
    struct entry {
        struct str s;
        size_t count;
        double score;
    } * entries;
    size_t n, cap;
};

static void tally_init(struct tally *t)
{
    *t = (struct tally){0};
    map_init(&t->map, MAX_ENTRIES, map_key);
    arena_init(&t->bytes, MAX_ENTRIES * sizeof(size_t) * 2);
}

static void tally_fini(struct tally *t)
{
    map_fini(&t->map);
    arena_fini(&t->bytes);
    free(t->entries);
}

static struct entry *tally_find(const struct tally *t, struct str s)
{
    const size_t *at = map_get(&t->map, s);

    return at ? &t->entries[*at] : NULL;
}

/* Texts are borrowed: what is counted are parts of them. */
static void tally_add(struct tally *t, struct str s)
{
    struct entry *e = tally_find(t, s);
    size_t *at;

    if (e) {
        e->count++;
        return;
    }
    at = arena_alloc(&t->bytes, sizeof(*at));
    if (!at || map_put(&t->map, s, at) != OK)
        train_end("too many words and phrases for the memory there is");
    *at = t->n;
    t->entries = train_grow(t->entries, t->n, &t->cap, sizeof(t->entries[0]));
    t->entries[t->n++] = (struct entry){.s = s, .count = 1};
}

static int by_score(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return str_cmp(x->s, y->s);
}

/* Small letters from a to z: what accents had is gone by now, and words of
 * other scripts are left to their characters. */
static bool is_letters(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 'a' || s.p[i] > 'z')
            return false;
    return s.n > 0;
}

static void count_text(struct str text, struct tally *words,
                       struct tally *phrases)
{
    struct str rest = text, last = {NULL, 0};

    while (rest.n) {
        struct str word = str_cut(&rest, ' ');

        tally_add(words, word);
        if (is_letters(last) && is_letters(word))
            tally_add(phrases, (struct str){last.p, last.n + 1 + word.n});
        last = word;
    }
}

/* Whole words that would be split, best first; the others score nothing. */
static void score_words(struct tally *t, const struct vocab *teacher,
                        int64_t min_count)
{
    uint32_t ids[WORD_MAX_CHARS];

    for (size_t i = 0; i < t->n; i++) {
        struct entry *e = &t->entries[i];
        size_t n = 0;
        bool is_whole = wordpiece(teacher, e->s, ids, &n) && n == 1;

        e->score = is_whole || e->count < (size_t)min_count ||
                           e->s.n >= MAX_WORD_BYTES || !is_letters(e->s)
                       ? 0
                       : (double)e->count;
    }
}

/* By how often, times how much oftener than by chance. */
static void score_phrases(struct tally *t, const struct tally *words,
                          const struct recipe *r)
{
    double all = 0;

    for (size_t i = 0; i < words->n; i++)
        all += (double)words->entries[i].count;
    for (size_t i = 0; i < t->n; i++) {
        struct entry *e = &t->entries[i];
        struct str b = e->s, a = str_cut(&b, ' ');
        const struct entry *ea = tally_find(words, a), *eb;
        double count = (double)e->count, gain;

        eb = tally_find(words, b);
        if (!ea || !eb || e->count < (size_t)r->phrase_min_count)
            continue;
        gain = real_log(count * all / (double)ea->count / (double)eb->count);
        e->score = gain > r->phrase_min_gain ? count * gain : 0;
    }
}

/* "[unused7]", "[CLS]": the teacher's marks, which no text has. */
static bool is_mark(struct str s)
{
    return s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']';
}

static void keep_word(struct vocabulary *v, struct str s)
{
    v->words =
        train_grow(v->words, v->n_words, &v->cap_words, sizeof(v->words[0]));
    v->words[v->n_words++] = s;
}

static void keep_words(struct vocabulary *v, struct tally *t, size_t most)
{
    qsort(t->entries, t->n, sizeof(t->entries[0]), by_score);
    for (size_t i = 0; i < t->n && i < most && t->entries[i].score > 0; i++)
        keep_word(v, t->entries[i].s);
}

/* A phrase is of two words that have rows of their own. */
static enum err keep_phrases(struct vocabulary *v, struct tally *t, size_t most,
                             struct why *why)
{
    struct buf bytes;
    struct vocab words;
    enum err e;

    buf_init(&bytes, TABLE_BYTES_MAX);
    e = vocab_make(v->words, v->n_words, &bytes, why);
    if (!e)
        e = vocab_open(&words, buf_str(&bytes), why);
    qsort(t->entries, t->n, sizeof(t->entries[0]), by_score);
    for (size_t i = 0; i < t->n && !e && v->n_phrases < most; i++) {
        struct str b = t->entries[i].s, a = str_cut(&b, ' ');
        struct table_phrase p = {vocab_find(&words, STR(""), a),
                                 vocab_find(&words, STR(""), b)};

        if (t->entries[i].score <= 0)
            break;
        if (p.first == VOCAB_NONE || p.second == VOCAB_NONE)
            continue;
        v->phrases = train_grow(v->phrases, v->n_phrases, &v->cap_phrases,
                                sizeof(v->phrases[0]));
        v->phrases[v->n_phrases++] = p;
    }
    buf_fini(&bytes);
    return e;
}

/* ---- how many fit ---- */

static enum err write_empty(const struct vocabulary *v, size_t n_words,
                            size_t n_phrases, struct buf *out, struct why *why)
{
    size_t n = n_words + n_phrases;
    int8_t *rows = train_alloc(n, TABLE_DIMS);
    float *scales = train_alloc(n, sizeof(float));
    struct table_parts p = {
        .words = v->words,
        .n_words = n_words,
        .phrases = v->phrases,
        .n_phrases = n_phrases,
        .rows = rows,
        .scales = scales,
        .unknown_scale = 1,
    };
    enum err e = table_write(&p, out, why);

    free(rows);
    free(scales);
    return e;
}

/* As many of *n, which is one of the two counts, as fit. */
static enum err fit(struct vocabulary *v, size_t *n, const struct recipe *r,
                    struct why *why)
{
    size_t low = 0, high = *n;

    while (low < high) {
        struct buf out;
        enum err e;

        *n = low + (high - low + 1) / 2;
        buf_init(&out, TABLE_BYTES_MAX + 1);
        e = write_empty(v, v->n_words, v->n_phrases, &out, why);
        if (e && e != ERR_LIMIT) {
            buf_fini(&out);
            return e;
        }
        if (e || out.n > (size_t)r->max_bytes)
            high = *n - 1;
        else
            low = *n;
        buf_fini(&out);
    }
    *n = low;
    return OK;
}

/* A table without rows, to cut texts as the real one will. */
static enum err open_empty(struct vocabulary *v, struct why *why)
{
    struct buf out;
    enum err e;

    buf_init(&out, TABLE_BYTES_MAX + 1);
    e = write_empty(v, v->n_words, v->n_phrases, &out, why);
    if (!e) {
        v->bytes = aligned_alloc(64, (out.n + 63) / 64 * 64);
        e = v->bytes ? OK : ERR_NOMEM;
    }
    if (!e) {
        memcpy(v->bytes, out.p, out.n);
        e = table_open(&v->table, (struct str){v->bytes, out.n}, why);
    }
    buf_fini(&out);
    return e;
}

enum err vocabulary_make(struct vocabulary *v, const struct corpus *c,
                         const struct vocab *teacher, const struct recipe *r,
                         struct why *why)
{
    size_t max_phrases = (size_t)r->max_phrases;
    struct tally words, phrases;
    enum err e;

    *v = (struct vocabulary){0};
    tally_init(&words);
    tally_init(&phrases);
    for (uint32_t i = 0; i < teacher->n; i++)
        if (!is_mark(vocab_piece(teacher, i)))
            keep_word(v, vocab_piece(teacher, i));
    v->n_pieces = v->n_words;
    for (size_t i = 0; i < c->n_read; i++)
        if (!c->texts[i].is_held)
            count_text(c->texts[i].s, &words, &phrases);
    score_phrases(&phrases, &words, r);
    score_words(&words, teacher, r->word_min_count);
    keep_words(v, &words, (size_t)r->max_words);
    e = fit(v, &v->n_words, r, why);
    if (!e)
        e = keep_phrases(v, &phrases, max_phrases, why);
    if (!e)
        e = fit(v, &v->n_phrases, r, why);
    if (!e)
        e = open_empty(v, why);
    if (v->n_pieces > v->n_words)
        v->n_pieces = v->n_words;
    tally_fini(&words);
    tally_fini(&phrases);
    return e;
}

void vocabulary_fini(struct vocabulary *v)
{
    free(v->words);
    free(v->phrases);
    free(v->bytes);
}

struct str vocabulary_text(const struct vocabulary *v, size_t word)
{
    struct str s = v->words[word];

    if (s.n > 2 && str_starts(s, STR("##")))
        return str_sub(s, 2, s.n);
    return s;
}
