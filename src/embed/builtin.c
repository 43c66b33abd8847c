/* Text -> vector by the table: the sum of the rows of its words.
 *
 * A word is split into its longest pieces from the left; the whole word is
 * tried first. A character that begins no piece gets a row derived from its
 * code point, so two texts that share it become more similar, in any script.
 * The text after such a character counts as the beginning of a word, so a word
 * next to an emoji is still that word. The reference would call the whole of it
 * unknown.
 *
 * Two neighbouring words that form a phrase also get the row of the phrase, for
 * a meaning that neither has alone. Phrases may share a word; words that were
 * split into pieces form no phrases.
 *
 * Rows are first found and then added, so that all of them are being loaded
 * from memory while the text is still being read; a row is four cache lines,
 * and most of the time is spent waiting for them. */
#include "embed/internal.h"

#include <math.h>

#include "base/fault.h"
#include "base/utf8.h"

struct finder {
    const struct embed_table *t;
    uint32_t *rows;
    size_t n;
    uint32_t last; /* row of the previous word; VOCAB_NONE: it has none */
};

static void builtin_add_row(struct finder *f, uint32_t row)
{
    const char *at = (const char *)f->t->rows + (size_t)row * TABLE_DIMS;

    for (int i = 0; i < TABLE_DIMS; i += 64)
        __builtin_prefetch(at + i);
    __builtin_prefetch(&f->t->scales[row]);
    f->rows[f->n++] = row;
}

/* The first character of s, which is valid UTF-8 and not empty. */
static uint32_t first_code(struct str s, size_t *n)
{
    *n = utf8_one(s.p, s.p + s.n);
    if (*n == 0)
        *n = 1;
    return utf8_decode(s.p, *n);
}

/* A piece that is unknown inside a word may still be a word. */
static size_t builtin_find_piece(const struct finder *f, struct str rest,
                                 bool is_inside, uint32_t *id)
{
    size_t n = wordpiece_first(&f->t->words, rest, is_inside, id);

    if (n == 0 && is_inside)
        n = wordpiece_first(&f->t->words, rest, false, id);
    return n;
}

/* Returns its row if it has exactly one. */
static uint32_t builtin_add_word(struct finder *f, struct str word)
{
    uint32_t id = VOCAB_NONE;
    bool is_inside = false;
    size_t n, whole = word.n;

    while (word.n && f->n < BUILTIN_ROWS_MAX) {
        n = builtin_find_piece(f, word, is_inside, &id);
        is_inside = n > 0;
        if (n > 0)
            builtin_add_row(f, id);
        else
            f->rows[f->n++] = BUILTIN_UNKNOWN | first_code(word, &n);
        if (n < whole || !is_inside)
            id = VOCAB_NONE;
        word = str_sub(word, n, word.n);
    }
    return id;
}

static void add_phrase(struct finder *f, uint32_t first, uint32_t second)
{
    uint32_t row;

    if (first == VOCAB_NONE || second == VOCAB_NONE || f->n == BUILTIN_ROWS_MAX)
        return;
    row = table_phrase(f->t, first, second);
    if (row != VOCAB_NONE)
        builtin_add_row(f, row);
}

size_t builtin_rows(const struct embed_table *t, struct str text,
                    uint32_t rows[BUILTIN_ROWS_MAX])
{
    struct finder f = {.t = t, .rows = rows, .last = VOCAB_NONE};
    struct words w;

    words_begin(&w, str_head(text, BUILTIN_TEXT_BYTES_MAX));
    while (f.n < BUILTIN_ROWS_MAX && words_next(&w)) {
        uint32_t row = builtin_add_word(&f, w.word);

        add_phrase(&f, f.last, row);
        f.last = row;
    }
    return f.n;
}

/* SplitMix64, seeded with the code point: arbitrary bytes, always the same. */
static void unknown_row(uint32_t code, int8_t row[TABLE_DIMS])
{
    uint64_t state = (uint64_t)code * 0x9e3779b97f4a7c15u;

    for (size_t i = 0; i < TABLE_DIMS; i += sizeof(uint64_t)) {
        uint64_t x = state += 0x9e3779b97f4a7c15u;

        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        x ^= x >> 31;
        memcpy(row + i, &x, sizeof(x));
    }
}

/* vec_normalise computes in double and takes six times as long, as much as
 * everything else for a short text. Sums of rows are in the middle of a float's
 * range, because their scales are bounded; other vectors are left to
 * vec_normalise. */
static void make_one_long(const struct vec_ops *ops, float v[TABLE_DIMS])
{
    float squares = ops->dot(v, v, TABLE_DIMS), by;

    if (!(squares > 1e-20f)) {
        (void)vec_normalise(v, TABLE_DIMS);
        return;
    }
    by = 1 / sqrtf(squares);
    for (size_t i = 0; i < TABLE_DIMS; i++)
        v[i] *= by;
}

/* Every word gets the row of another one: a table that is broken without
 * looking broken. test/quality must notice. */
static void builtin_shuffle(const struct embed_table *t, uint32_t *rows,
                            size_t n)
{
    uint32_t n_all = t->words.n + t->n_phrases;

    for (size_t i = 0; i < n; i++)
        if (!(rows[i] & BUILTIN_UNKNOWN))
            rows[i] = (rows[i] + n_all / 3 + 1) % n_all;
}

void builtin_embed(const struct builtin *b, struct str text,
                   float out[BUILTIN_DIMS])
{
    const struct embed_table *t = &b->table;
    uint32_t rows[BUILTIN_ROWS_MAX];
    int8_t made[TABLE_DIMS];
    size_t n = builtin_rows(t, text, rows);

    if (PLANTED("embed.shuffled"))
        builtin_shuffle(t, rows, n);
    memset(out, 0, BUILTIN_DIMS * sizeof(*out));
    for (size_t i = 0; i < n; i++) {
        if (rows[i] & BUILTIN_UNKNOWN) {
            unknown_row(rows[i] & ~BUILTIN_UNKNOWN, made);
            b->ops->add_i8(out, made, t->unknown_scale, TABLE_DIMS);
        } else {
            b->ops->add_i8(out, t->rows + (size_t)rows[i] * TABLE_DIMS,
                           t->scales[rows[i]], TABLE_DIMS);
        }
    }
    make_one_long(b->ops, out);
}

enum err builtin_open_bytes(struct builtin *b, struct str bytes,
                            struct why *why)
{
    enum err e = table_open(&b->table, bytes, why);

    b->ops = vec_ops();
    b->hash[0] = '\0';
    if (!e)
        str_hex(b->hash, b->table.hash, TABLE_HASH_BYTES);
    return e;
}

const char *builtin_hash(const struct builtin *b)
{
    return b->hash;
}
