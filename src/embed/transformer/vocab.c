/* The layout, in a file and in memory:
 *
 *   head    the magic, and the number of pieces, slots and bytes of text
 *   ends    the end of each piece in the text; it begins where the last ended
 *   slots   an open hash table, at most half full: id + 1 of a piece, below a
 *           tag of twelve bits of its hash; 0 is free
 *   text    the pieces, one after the other, zero-padded to eight bytes
 *
 * The tag avoids comparing almost every wrong piece, and with it two cache
 * misses. The hash is computed byte by byte, so one walk over a word yields the
 * hashes of all its prefixes, and wordpiece.c looks them up one by one.
 * Rejected: a perfect hash or a trie, which would be smaller or save some
 * lookups; this is easy to check, and fast enough.
 *
 * Texts cannot make it slow: the longest run of taken slots is bounded when a
 * vocabulary is made and when it is opened. Integers are in the machine's byte
 * order; with another order the magic does not match. */
#include <stdlib.h>

#include "base/fault.h"
#include "embed/internal.h"

#define MAGIC UINT64_C(0x316261636f567853) /* "SxVocab1" */

struct head {
    uint64_t magic;
    uint32_t n, n_slots, n_text, zero;
};

enum {
    ID_BITS = 20,
    MIN_SLOTS = 8,
};

struct str vocab_piece(const struct vocab *v, uint32_t id)
{
    uint32_t start;

    if (id >= v->n)
        return STR("");
    start = id ? v->ends[id - 1] : 0;
    return (struct str){v->text + start, v->ends[id] - start};
}

static bool vocab_is_piece(const struct vocab *v, uint32_t id,
                           struct str prefix, struct str piece)
{
    struct str s = vocab_piece(v, id);

    return s.n == prefix.n + piece.n && str_starts(s, prefix) &&
           str_eq(str_sub(s, prefix.n, s.n), piece);
}

static uint32_t vocab_tag(uint64_t hash)
{
    return (uint32_t)(hash >> (32 + ID_BITS)) << ID_BITS;
}

uint32_t vocab_look(const struct vocab *v, uint64_t hash, struct str prefix,
                    struct str piece)
{
    const uint32_t ids = (1U << ID_BITS) - 1;
    uint32_t at = (uint32_t)(hash >> 32) & v->mask, tag = vocab_tag(hash), slot;

    for (; (slot = v->slots[at]) != 0; at = (at + 1) & v->mask)
        if ((slot & ~ids) == tag &&
            vocab_is_piece(v, (slot & ids) - 1, prefix, piece))
            return (slot & ids) - 1;
    return VOCAB_NONE;
}

static uint64_t vocab_hash_str(uint64_t hash, struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        hash = vocab_hash(hash, s.p[i]);
    return hash;
}

uint32_t vocab_find(const struct vocab *v, struct str prefix, struct str piece)
{
    return vocab_look(v,
                      vocab_hash_str(vocab_hash_str(VOCAB_HASH, prefix), piece),
                      prefix, piece);
}

/* Includes the run that wraps around. */
bool vocab_rows_end(const uint32_t *slots, uint32_t mask)
{
    uint32_t row = 0;

    for (uint32_t i = 0; i <= mask + VOCAB_MAX_ROW; i++) {
        row = slots[i & mask] ? row + 1 : 0;
        if (row > VOCAB_MAX_ROW)
            return false;
    }
    return true;
}

/* ---- making one ---- */

static uint32_t vocab_slots_for(uint32_t n)
{
    uint32_t n_slots = MIN_SLOTS;

    while (n_slots < 2 * n)
        n_slots *= 2;
    return n_slots;
}

static enum err vocab_check_pieces(const struct str *pieces, size_t n,
                                   uint32_t *n_text, struct why *why)
{
    size_t sum = 0;

    if (n > VOCAB_MAX_PIECES)
        return why_err(why, ERR_LIMIT,
                       "a vocabulary has at most %d pieces, not %zu",
                       VOCAB_MAX_PIECES, n);
    for (size_t i = 0; i < n; i++) {
        if (pieces[i].n == 0 || pieces[i].n > VOCAB_PIECE_BYTES)
            return why_err(why, ERR_LIMIT,
                           "piece %zu has %zu bytes; 1 to %d are possible", i,
                           pieces[i].n, VOCAB_PIECE_BYTES);
        sum += pieces[i].n;
    }
    *n_text = (uint32_t)sum;
    return OK;
}

static enum err vocab_too_alike(struct why *why)
{
    return why_err(why, ERR_LIMIT, "too many pieces have nearly the same hash");
}

/* All slots must be free. */
static enum err vocab_fill_slots(uint32_t *slots, uint32_t mask,
                                 const struct str *pieces, uint32_t n,
                                 struct why *why)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t hash = vocab_hash_str(VOCAB_HASH, pieces[i]);
        uint32_t at = (uint32_t)(hash >> 32) & mask, tries = 0;

        for (; slots[at]; at = (at + 1) & mask) {
            uint32_t other = (slots[at] & ((1U << ID_BITS) - 1)) - 1;

            if (str_eq(pieces[other], pieces[i]))
                return why_err(why, ERR_EXISTS,
                               "pieces %u and %u are the same: %.*s", other, i,
                               STR_ARG(pieces[i]));
            if (++tries > VOCAB_MAX_ROW)
                return vocab_too_alike(why);
        }
        slots[at] = vocab_tag(hash) | (i + 1);
    }
    return vocab_rows_end(slots, mask) ? OK : vocab_too_alike(why);
}

static void vocab_write(struct buf *out, const struct head *h,
                        const uint32_t *slots, const struct str *pieces)
{
    static const char zeros[8];
    uint32_t end = 0;
    size_t before = out->n;

    buf_add(out, h, sizeof(*h));
    for (uint32_t i = 0; i < h->n; i++) {
        end += (uint32_t)pieces[i].n;
        buf_add(out, &end, sizeof(end));
    }
    buf_add(out, slots, h->n_slots * sizeof(*slots));
    for (uint32_t i = 0; i < h->n; i++)
        buf_add_str(out, pieces[i]);
    buf_add(out, zeros, -(out->n - before) & 7);
}

enum err vocab_make(const struct str *pieces, size_t n, struct buf *out,
                    struct why *why)
{
    struct head h = {.magic = MAGIC, .n = (uint32_t)n};
    size_t before = out->n;
    uint32_t *slots;
    enum err e = vocab_check_pieces(pieces, n, &h.n_text, why);

    if (e)
        return e;
    h.n_slots = vocab_slots_for(h.n);
    slots = FAULT("vocab.make") ? NULL : calloc(h.n_slots, sizeof(*slots));
    if (!slots)
        return why_err(why, ERR_NOMEM, "no memory for a vocabulary");
    e = vocab_fill_slots(slots, h.n_slots - 1, pieces, h.n, why);
    if (!e)
        vocab_write(out, &h, slots, pieces);
    free(slots);
    if (!e && out->over)
        e = why_err(why, ERR_LIMIT, "the vocabulary does not fit");
    if (e)
        out->n = before;
    return e;
}

/* ---- opening one ---- */

static enum err bad_vocab(struct why *why, const char *what)
{
    return why_err(why, ERR_BAD_CONFIG, "this is not a vocabulary: %s", what);
}

/* Locate the parts once their sizes have been checked. */
static enum err vocab_find_parts(struct vocab *v, struct str bytes,
                                 uint32_t *n_text, struct why *why)
{
    struct head h;
    uint64_t all;

    if (bytes.n < sizeof(h))
        return bad_vocab(why, "it is too short");
    if ((uintptr_t)bytes.p % 8 != 0)
        return bad_vocab(why, "it does not begin at a multiple of eight bytes");
    memcpy(&h, bytes.p, sizeof(h));
    if (h.magic != MAGIC || h.zero != 0)
        return bad_vocab(why, "it does not begin with \"SxVocab1\"");
    if (h.n > VOCAB_MAX_PIECES || h.n_slots != vocab_slots_for(h.n))
        return why_err(why, ERR_BAD_CONFIG,
                       "this is not a vocabulary: it claims %u pieces "
                       "in %u slots",
                       h.n, h.n_slots);
    all = sizeof(h) + 4 * ((uint64_t)h.n + h.n_slots) + h.n_text;
    if (((all + 7) & ~UINT64_C(7)) != bytes.n)
        return bad_vocab(why, "it is cut off, or something follows it");
    for (size_t i = (size_t)all; i < bytes.n; i++)
        if (bytes.p[i])
            return bad_vocab(why, "something follows it");
    *v = (struct vocab){.ends = (const uint32_t *)(bytes.p + sizeof(h)),
                        .n = h.n,
                        .mask = h.n_slots - 1};
    v->slots = v->ends + h.n;
    v->text = (const char *)(v->slots + h.n_slots);
    *n_text = h.n_text;
    return OK;
}

static enum err vocab_check_ends(struct vocab *v, uint32_t n_text,
                                 struct why *why)
{
    uint32_t start = 0, n;
    struct str piece;

    for (uint32_t i = 0; i < v->n; i++, start += n) {
        n = v->ends[i] - start;
        if (v->ends[i] <= start || n > VOCAB_PIECE_BYTES || v->ends[i] > n_text)
            return bad_vocab(why, "a piece lies outside its text");
        piece = (struct str){v->text + start, n};
        if (n > v->longest)
            v->longest = n;
        if (str_starts(piece, STR("##")) && n - 2 > v->longest_inside)
            v->longest_inside = n - 2;
    }
    return start == n_text
               ? OK
               : bad_vocab(why, "its text is longer than its pieces");
}

/* Every slot is free or names a piece, as many slots as pieces are taken, and
 * runs are short. */
static enum err vocab_check_slots(const struct vocab *v, struct why *why)
{
    uint32_t n_taken = 0, number;

    for (uint32_t i = 0; i <= v->mask; i++) {
        number = v->slots[i] & ((1U << ID_BITS) - 1);
        if (number > v->n || (number == 0 && v->slots[i]))
            return bad_vocab(why, "a slot names no piece");
        n_taken += number != 0;
    }
    if (n_taken != v->n)
        return bad_vocab(why, "some piece has no slot, or more than one");
    return vocab_rows_end(v->slots, v->mask)
               ? OK
               : bad_vocab(why, "too many slots are taken in a row");
}

enum err vocab_open(struct vocab *out, struct str bytes, struct why *why)
{
    struct vocab v;
    uint32_t n_text = 0;
    enum err e = vocab_find_parts(&v, bytes, &n_text, why);

    if (!e)
        e = vocab_check_ends(&v, n_text, why);
    if (!e)
        e = vocab_check_slots(&v, why);
    for (uint32_t i = 0; !e && i < v.n; i++)
        if (vocab_find(&v, STR(""), vocab_piece(&v, i)) != i)
            e = bad_vocab(
                why, "a piece is there twice, or is not where it should be");
    if (!e)
        *out = v;
    return e;
}
