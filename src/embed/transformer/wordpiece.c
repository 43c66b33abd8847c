/* Repeatedly takes the longest piece at the start of the rest of the word, as
 * BERT does. Most words are a single piece: that is tried first and costs one
 * walk over the word and one lookup. The walk yields the hashes of all prefixes
 * of the rest, so each further attempt is one lookup, and there are no more
 * attempts than the longest piece has bytes, however long the word is. */
#include "base/utf8.h"
#include "embed/internal.h"

size_t wordpiece_first(const struct vocab *v, struct str rest, bool is_inside,
                       uint32_t *id)
{
    struct str prefix = is_inside ? STR("##") : STR("");
    size_t most = is_inside ? v->longest_inside : v->longest;
    uint64_t hashes[VOCAB_PIECE_BYTES], hash = VOCAB_HASH;

    if (is_inside)
        hash = vocab_hash(vocab_hash(hash, '#'), '#');
    most = most < rest.n ? most : rest.n;
    for (size_t i = 0; i < most; i++)
        hashes[i] = hash = vocab_hash(hash, rest.p[i]);
    for (size_t n = most; n > 0; n--) {
        if (n < rest.n && utf8_is_tail((unsigned char)rest.p[n]))
            continue; /* pieces consist of whole characters */
        *id = vocab_look(v, hashes[n - 1], prefix, str_sub(rest, 0, n));
        if (*id != VOCAB_NONE)
            return n;
    }
    return 0;
}

bool wordpiece(const struct vocab *v, struct str word,
               uint32_t ids[WORD_MAX_CHARS], size_t *n)
{
    size_t n_ids = 0, bytes;

    *n = 0;
    for (size_t at = 0; at < word.n; at += bytes) {
        if (n_ids == WORD_MAX_CHARS)
            return false;
        bytes = wordpiece_first(v, str_sub(word, at, word.n), at > 0,
                                &ids[n_ids++]);
        if (!bytes)
            return false;
    }
    *n = n_ids;
    return true;
}

size_t wordpieces(const struct vocab *v, struct str text, uint32_t unknown,
                  uint32_t *ids, size_t max)
{
    uint32_t of_word[WORD_MAX_CHARS];
    struct words w;
    size_t n = 0, n_word;

    words_begin(&w, text);
    while (n < max && words_next(&w)) {
        if (w.is_long || !wordpiece(v, w.word, of_word, &n_word)) {
            of_word[0] = unknown;
            n_word = 1;
        }
        if (n_word > max - n)
            n_word = max - n;
        memcpy(ids + n, of_word, n_word * sizeof(*ids));
        n += n_word;
    }
    return n;
}
