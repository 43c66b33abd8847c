#ifndef WORDS_PLAIN_H
#define WORDS_PLAIN_H

/* The words of a text as the reference finds them: each step over the whole
 * text, one after the other, in arrays that are large enough. Slow, and as
 * plain as it gets: what src/base/words.c is held against. Both read the same
 * table of characters; test/e2e/words_test.py holds that against others. */

#include <assert.h>
#include <stdlib.h>

#include "base/unicode.h"
#include "base/utf8.h"
#include "base/words.h"

struct words_plain_char {
    uint32_t c;
    uint32_t kind; /* KEEP, SPACE, PUNCT, GAP, MARK */
};

static inline size_t words_plain_encode(char *to, uint32_t c)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint32_t heads[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(heads[n] | c);
    return n;
}

static inline uint32_t words_plain_decode(const char *p, size_t n)
{
    static const uint32_t bits[] = {0, 0x7f, 0x1f, 0xf, 7};
    uint32_t c = (unsigned char)p[0] & bits[n];

    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)p[i] & 0x3f);
    return c;
}

static inline size_t words_plain_hangul(struct words_plain_char *out,
                                        uint32_t c)
{
    uint32_t s = c - 0xac00;

    out[0] = (struct words_plain_char){0x1100 + s / 588, UNICODE_KEEP};
    out[1] = (struct words_plain_char){0x1161 + s % 588 / 28, UNICODE_KEEP};
    out[2] = (struct words_plain_char){0x11a7 + s % 28, UNICODE_KEEP};
    return s % 28 ? 3 : 2;
}

/* Clean, part and decompose one character. At most six come of it. */
static inline size_t words_plain_spell(struct words_plain_char *out, uint32_t c)
{
    const struct words_plain_char space = {' ', UNICODE_SPACE};
    uint32_t number = unicode_number(c), kind;
    uint32_t own = UNICODE_LAST | number << UNICODE_KIND_SHIFT | c;
    const uint32_t *spelt = &own;
    size_t n = 0;

    if (number == UNICODE_DROP)
        return 0;
    if (number == UNICODE_HANGUL)
        return words_plain_hangul(out, c);
    if (number >= UNICODE_SPELT)
        spelt = unicode_spelt + (number - UNICODE_SPELT);
    do {
        kind = *spelt >> UNICODE_KIND_SHIFT & 0x7f;
        c = *spelt & UNICODE_CHAR_BITS;
        if (kind == UNICODE_ALONE) {
            out[n++] = space;
            out[n++] = (struct words_plain_char){c, UNICODE_KEEP};
            out[n++] = space;
        } else {
            out[n++] = (struct words_plain_char){c, kind};
        }
    } while (!(*spelt++ & UNICODE_LAST));
    return n;
}

/* Neighbours change places until none wants to. */
static inline void words_plain_order(struct words_plain_char *chars, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i;
             k > 0 && chars[k].kind == UNICODE_MARK &&
             chars[k - 1].kind == UNICODE_MARK &&
             unicode_class(chars[k - 1].c) > unicode_class(chars[k].c);
             k--) {
            struct words_plain_char c = chars[k];

            chars[k] = chars[k - 1];
            chars[k - 1] = c;
        }
}

/* The characters of a text, normalised; to be freed. */
static inline struct words_plain_char *words_plain(struct str text, size_t *n)
{
    struct words_plain_char *chars =
        malloc((text.n * 6 + 1) * sizeof(struct words_plain_char));
    const char *p = text.p, *end = p + text.n;
    size_t kept = 0;

    assert(chars);
    *n = 0;
    while (p < end) {
        size_t bytes = utf8_one(p, end);

        if (bytes)
            *n += words_plain_spell(chars + *n, words_plain_decode(p, bytes));
        p += bytes ? bytes : 1;
    }
    words_plain_order(chars, *n);
    for (size_t i = 0; i < *n; i++)
        if (chars[i].kind != UNICODE_GAP)
            chars[kept++] = chars[i];
    *n = kept;
    return chars;
}

/* The bytes and characters of the word that begins at chars[*at], which ends
 * behind it. Zero: there is none. */
static inline size_t words_plain_next(const struct words_plain_char *chars,
                                      size_t n, size_t *at, char *bytes,
                                      size_t *n_bytes)
{
    size_t first;

    while (*at < n && chars[*at].kind == UNICODE_SPACE)
        ++*at;
    first = *at;
    *n_bytes = 0;
    while (*at < n && chars[*at].kind != UNICODE_SPACE &&
           (*at == first || (chars[*at].kind != UNICODE_PUNCT &&
                             chars[*at - 1].kind != UNICODE_PUNCT))) {
        if (*at - first < WORD_MAX_CHARS)
            *n_bytes += words_plain_encode(bytes + *n_bytes, chars[*at].c);
        ++*at;
    }
    return *at - first;
}

/* Stops the program where the two differ. */
/* A word stands behind the one before it, and what stands there is that word
 * and no other. */
static inline void words_plain_check_place(const struct words *w,
                                           const char *behind)
{
    struct words alone;

    assert(w->place.n > 0 && w->place.p >= behind);
    assert(w->place.p + w->place.n <= w->rest.p);
    words_begin(&alone, w->place);
    assert(words_next(&alone) && str_eq(alone.word, w->word));
    assert(!words_next(&alone));
}

static inline void words_plain_check(struct str text)
{
    size_t n, at = 0, n_bytes, n_chars;
    struct words_plain_char *chars = words_plain(text, &n);
    char bytes[WORD_MAX_BYTES];
    struct words w;

    words_begin(&w, text);
    while ((n_chars = words_plain_next(chars, n, &at, bytes, &n_bytes)) > 0) {
        const char *behind = w.rest.p;
        bool is_there = words_next(&w);

        assert(is_there);
        words_plain_check_place(&w, behind);
        assert(w.is_long == (n_chars > WORD_MAX_CHARS));
        assert(w.is_long || str_eq(w.word, (struct str){bytes, n_bytes}));
    }
    assert(!words_next(&w));
    free(chars);
}

#endif
