/* Any bytes as a text, and as a vocabulary.
 *
 * The first byte says which. As a text: its words are those that the plain
 * steps find, one after the other; its pieces have numbers of the vocabulary,
 * put together they are its words, a naive search finds the same, and a space
 * before or behind it changes nothing; its stems are of words in it. As a
 * vocabulary: what is opened holds what it says, is what would be made of its
 * pieces, and can be used. */
#include <assert.h>
#include <stdlib.h>

#include "embed/internal.h"
#include "registry/index/index.h"
#include "test/lib/words_plain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_IDS = 4096, MAX_BYTES = 4096 };

static const char *const few[] = {
    "[UNK]",    "a",       "##a",      "b",        "##b",          "ab",
    "##ab",     "aba",     "hello",    "the",      "##s",          "##ing",
    "!",        ".",       "\u00df",   "##\u00df", "\u4e00",       "1",
    "##1",      "##0",     "e",        "##e",      "\u1112",       "##\u1161",
    "##\u11ab", "\u302e",  "##\u302e", "##\u1b44", "\u00df\u00df", "##c",
    "c",        "turn on",
};
enum { N_FEW = sizeof(few) / sizeof(*few) };

static struct vocab small_vocab(struct buf *b)
{
    struct str pieces[N_FEW];
    struct vocab v;

    for (size_t i = 0; i < N_FEW; i++)
        pieces[i] = str_of(few[i]);
    buf_init(b, 1 << 16);
    if (vocab_make(pieces, N_FEW, b, NULL) || vocab_open(&v, buf_str(b), NULL))
        abort();
    return v;
}

/* Piece by piece, whatever the vocabulary says of how long they are. */
static uint32_t naive_find(const struct vocab *v, struct str prefix,
                           struct str piece)
{
    for (uint32_t id = 0; id < v->n; id++) {
        struct str p = vocab_piece(v, id);

        if (p.n == prefix.n + piece.n && str_starts(p, prefix) &&
            memcmp(p.p + prefix.n, piece.p, piece.n) == 0)
            return id;
    }
    return VOCAB_NONE;
}

static size_t naive_pieces(const struct vocab *v, struct str word,
                           uint32_t *ids)
{
    size_t at = 0, end, n = 0;

    while (at < word.n) {
        ids[n] = VOCAB_NONE;
        for (end = word.n; end > at && ids[n] == VOCAB_NONE; end--)
            if (end == word.n || !utf8_is_tail((unsigned char)word.p[end]))
                ids[n] = naive_find(v, at ? STR("##") : STR(""),
                                    str_sub(word, at, end));
        if (ids[n++] == VOCAB_NONE)
            return 0;
        at = end + 1;
    }
    return n;
}

static void check_word(const struct vocab *v, struct str word)
{
    uint32_t ids[WORD_MAX_CHARS], naive[WORD_MAX_CHARS];
    size_t n, at = 0, n_naive = naive_pieces(v, word, naive);
    bool is_known = wordpiece(v, word, ids, &n);

    assert(is_known == (n_naive > 0) && n == n_naive);
    for (size_t i = 0; i < n; i++) {
        struct str p = vocab_piece(v, ids[i]);
        struct str own = str_sub(p, i ? 2 : 0, p.n);

        assert(ids[i] == naive[i] && ids[i] < v->n);
        assert(str_eq(str_sub(word, at, at + own.n), own));
        at += own.n;
    }
    assert(!is_known || at == word.n);
}

static void check_spaces(const struct vocab *v, struct str text)
{
    static const char *const spaces[] = {" ", "\n", "\u3000"};
    uint32_t ids[MAX_IDS], other[MAX_IDS];
    size_t n = wordpieces(v, text, 0, ids, MAX_IDS), few_of;
    struct buf b;

    for (size_t i = 0; i < n; i++)
        assert(ids[i] < v->n);
    few_of = wordpieces(v, text, 0, other, n / 2);
    assert(few_of == n / 2 && memcmp(ids, other, few_of * sizeof(*ids)) == 0);
    buf_init(&b, text.n + 16);
    for (size_t i = 0; i < 3; i++) {
        buf_clear(&b);
        buf_add_str(&b, str_of(spaces[i]));
        buf_add_str(&b, text);
        buf_add_str(&b, str_of(spaces[i]));
        assert(!b.over);
        assert(wordpieces(v, buf_str(&b), 0, other, MAX_IDS) == n);
        assert(memcmp(ids, other, n * sizeof(*ids)) == 0);
    }
    buf_fini(&b);
}

/* Stems for the search are short, valid, and of words that stand there. */
static void check_term(void *ctx, struct str word, struct str stem)
{
    struct str *rest = ctx;

    assert(stem.n > 0 && stem.n <= INDEX_TERM_MAX && utf8_is_valid(stem));
    assert(word.n > 0 && word.p >= rest->p);
    assert(word.p + word.n <= rest->p + rest->n);
    *rest = str_sub(*rest, (size_t)(word.p - rest->p) + word.n, rest->n);
}

static void check_text(struct str text)
{
    struct str rest = text;
    struct buf b;
    struct vocab v = small_vocab(&b);
    struct words w;

    words_plain_check(text);
    words_begin(&w, text);
    while (words_next(&w)) {
        assert(utf8_is_valid(w.word) && w.word.n > 0);
        if (!w.is_long)
            check_word(&v, w.word);
    }
    check_spaces(&v, text);
    index_terms(text, check_term, &rest);
    buf_fini(&b);
}

static void check_made_again(const struct vocab *v)
{
    struct str *pieces = malloc((v->n + 1) * sizeof(*pieces));
    struct vocab again;
    struct buf b;

    assert(pieces);
    for (uint32_t i = 0; i < v->n; i++) {
        pieces[i] = vocab_piece(v, i);
        assert(pieces[i].n > 0);
        assert(vocab_find(v, STR(""), pieces[i]) == i);
    }
    buf_init(&b, 1 << 26);
    if (vocab_make(pieces, v->n, &b, NULL) ||
        vocab_open(&again, buf_str(&b), NULL))
        abort();
    assert(again.n == v->n && again.longest == v->longest);
    assert(again.longest_inside == v->longest_inside);
    buf_fini(&b);
    free(pieces);
}

static void check_vocab(struct str bytes)
{
    char *aligned = malloc(bytes.n ? bytes.n : 1);
    struct why why = {""};
    struct vocab v;
    struct words w;

    assert(aligned);
    memcpy(aligned, bytes.p, bytes.n);
    if (vocab_open(&v, (struct str){aligned, bytes.n}, &why)) {
        assert(why.text[0]);
    } else {
        check_made_again(&v);
        check_spaces(&v, bytes);
        words_begin(&w, bytes);
        while (words_next(&w))
            if (!w.is_long)
                check_word(&v, w.word);
    }
    free(aligned);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest;

    if (size == 0 || size > MAX_BYTES)
        return 0;
    rest = (struct str){(const char *)data + 1, size - 1};
    if (data[0] & 1)
        check_text(rest);
    else
        check_vocab(rest);
    return 0;
}
