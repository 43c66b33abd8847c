/* The file of the built-in model, on disk and in memory:
 *
 *      0  "SBTABLE\n"
 *      8  SHA-256 of everything from byte 40 on
 *     40  version, dimensions, words, phrases, sections: 32 bits each
 *     60  scale of unknown characters
 *     64  a line per section: tag, offset, bytes, zero: 32 bits each
 *         the sections, in the order of the table below
 *
 *     WORD  the vocabulary, in the form of vocab.c
 *     PHRS  pairs of word ids, then an open hash table of them
 *     ROWS  256 signed bytes per word, then per phrase
 *     SCAL  a float for each of those
 *
 * An unknown section is rejected, not skipped: its author meant it to count,
 * and a vector made without it would be another model's. An optional section
 * gets a line in the table below that is not required.
 *
 * The offset of a section follows from the lengths of those before it, and is
 * stored as well: readers need not compute it, and disagreement is detected.
 * The hash is checked last, because for a truncated or foreign file the missing
 * part is the better message. */
#include "embed/table.h"

#include <assert.h>

#include "base/digest.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the file is used as it lies, and it is little endian");
_Static_assert(sizeof(struct table_head) == TABLE_HEAD_BYTES, "no holes");

/* Opens a section; its bytes are those of its line. */
typedef enum err open_section(struct embed_table *t, const struct table_head *h,
                              struct str bytes, struct why *why);

static enum err bad_length(const char *what, struct str bytes, uint64_t right,
                           struct why *why)
{
    return why_err(why, ERR_BAD_CONFIG,
                   "the model's %s are %zu bytes long and should be %llu", what,
                   bytes.n, (unsigned long long)right);
}

static enum err open_words(struct embed_table *t, const struct table_head *h,
                           struct str bytes, struct why *why)
{
    enum err e = vocab_open(&t->words, bytes, why);

    if (e)
        return e;
    if (t->words.n != h->n_words)
        return why_err(why, ERR_BAD_CONFIG,
                       "the model has %u words and claims %u", t->words.n,
                       h->n_words);
    return OK;
}

uint32_t table_phrase_slots(uint32_t n_phrases)
{
    uint32_t n = n_phrases ? 2 : 0;

    while (n < 2 * n_phrases)
        n *= 2;
    return n;
}

/* Phrases must be of existing words. */
static enum err check_phrases(const struct embed_table *t, struct why *why)
{
    uint32_t n_taken = 0;

    for (uint32_t i = 0; i < t->n_phrases; i++)
        if (t->phrases[i].first >= t->words.n ||
            t->phrases[i].second >= t->words.n)
            return why_err(why, ERR_BAD_CONFIG,
                           "phrase %u of the model has words that are missing",
                           i);
    for (uint32_t i = 0; t->n_phrases && i <= t->phrase_mask; i++) {
        uint32_t slot = t->phrase_slots[i];

        n_taken += slot != 0;
        if (slot && TABLE_SLOT_NUMBER(slot) - 1 >= t->n_phrases)
            return why_err(why, ERR_BAD_CONFIG,
                           "the model's phrases point outside the file");
    }
    /* With more of them a search might not end. */
    if (n_taken != t->n_phrases)
        return why_err(why, ERR_BAD_CONFIG,
                       "the model has %u phrases and places for %u",
                       t->n_phrases, n_taken);
    if (t->n_phrases && !vocab_rows_end(t->phrase_slots, t->phrase_mask))
        return why_err(why, ERR_BAD_CONFIG,
                       "more than %d places of the model's phrases are taken "
                       "in a row",
                       VOCAB_MAX_ROW);
    for (uint32_t i = 0; i < t->n_phrases; i++)
        if (table_phrase(t, t->phrases[i].first, t->phrases[i].second) !=
            t->words.n + i)
            return why_err(
                why, ERR_BAD_CONFIG,
                "phrase %u of the model is not where a search finds it", i);
    return OK;
}

static enum err open_phrases(struct embed_table *t, const struct table_head *h,
                             struct str bytes, struct why *why)
{
    uint32_t n_slots;
    uint64_t right;

    if (h->n_phrases > TABLE_PHRASES_MAX)
        return why_err(why, ERR_BAD_CONFIG,
                       "the model claims %u phrases, not at most %d",
                       h->n_phrases, TABLE_PHRASES_MAX);
    n_slots = table_phrase_slots(h->n_phrases);
    right =
        h->n_phrases * sizeof(struct table_phrase) + n_slots * sizeof(uint32_t);
    if (bytes.n != right)
        return bad_length("phrases", bytes, right, why);
    t->n_phrases = h->n_phrases;
    t->phrase_mask = n_slots ? n_slots - 1 : 0;
    t->phrases = (const struct table_phrase *)bytes.p;
    t->phrase_slots = (const uint32_t *)(t->phrases + h->n_phrases);
    return check_phrases(t, why);
}

static enum err open_rows(struct embed_table *t, const struct table_head *h,
                          struct str bytes, struct why *why)
{
    uint64_t right = ((uint64_t)h->n_words + h->n_phrases) * TABLE_DIMS;

    if (bytes.n != right)
        return bad_length("rows", bytes, right, why);
    t->rows = (const int8_t *)bytes.p;
    return OK;
}

/* With these no sum of rows leaves the range of a float. */
bool table_scale_is_good(float scale)
{
    return scale >= 0 && scale <= TABLE_SCALE_MAX;
}

static enum err open_scales(struct embed_table *t, const struct table_head *h,
                            struct str bytes, struct why *why)
{
    uint64_t n = (uint64_t)h->n_words + h->n_phrases;

    if (bytes.n != n * sizeof(float))
        return bad_length("scales", bytes, n * sizeof(float), why);
    t->scales = (const float *)bytes.p;
    for (size_t i = 0; i < n; i++)
        if (!table_scale_is_good(t->scales[i]))
            return why_err(why, ERR_BAD_CONFIG,
                           "row %zu of the model has a scale that is not a "
                           "number from 0 to %g",
                           i, (double)TABLE_SCALE_MAX);
    return OK;
}

/* In file order. */
static const struct section {
    char tag[5];
    bool is_required;
    open_section *open;
} sections[] = {
    {TABLE_WORDS, true, open_words},
    {TABLE_PHRASES, true, open_phrases},
    {TABLE_ROWS, true, open_rows},
    {TABLE_SCALES, true, open_scales},
};
enum { N_SECTIONS = sizeof(sections) / sizeof(sections[0]) };

uint32_t table_phrase(const struct embed_table *t, uint32_t first,
                      uint32_t second)
{
    uint32_t hash = table_phrase_hash(first, second), slot;

    if (t->n_phrases == 0)
        return VOCAB_NONE;
    for (uint32_t at = hash & t->phrase_mask; (slot = t->phrase_slots[at]);
         at = (at + 1) & t->phrase_mask) {
        uint32_t i = TABLE_SLOT_NUMBER(slot) - 1;

        if (TABLE_SLOT_IS(slot, hash) && t->phrases[i].first == first &&
            t->phrases[i].second == second)
            return t->words.n + i;
    }
    return VOCAB_NONE;
}

void table_hash(struct str bytes, uint8_t hash[TABLE_HASH_BYTES])
{
    _Static_assert((int)TABLE_HASH_BYTES == (int)DIGEST_BYTES, "SHA-256");
    digest(str_sub(bytes, TABLE_HASHED_FROM, bytes.n), hash);
}

static enum err check_hash(const struct embed_table *t, struct str bytes,
                           struct why *why)
{
    uint8_t hash[TABLE_HASH_BYTES];

    table_hash(bytes, hash);
    if (memcmp(hash, t->hash, TABLE_HASH_BYTES) != 0)
        return why_err(why, ERR_BAD_CONFIG,
                       "the model does not match its hash: it was damaged or "
                       "changed");
    return OK;
}

static enum err check_head(const struct table_head *h, struct str bytes,
                           struct why *why)
{
    if (bytes.n < sizeof(h->magic) ||
        memcmp(h->magic, TABLE_MAGIC, sizeof(h->magic)) != 0)
        return why_err(why, ERR_BAD_CONFIG,
                       "this is not a table of Signalbox's built-in model");
    if (bytes.n < TABLE_HEAD_BYTES)
        return why_err(why, ERR_BAD_CONFIG,
                       "the model is cut off after %zu bytes", bytes.n);
    if (bytes.n > TABLE_BYTES_MAX)
        return why_err(why, ERR_BAD_CONFIG,
                       "the model has %zu bytes, and may have %d", bytes.n,
                       TABLE_BYTES_MAX);
    if (h->version != TABLE_VERSION || h->dims != TABLE_DIMS)
        return why_err(why, ERR_BAD_CONFIG,
                       "the model has version %u with %u dimensions; this "
                       "Signalbox reads version %d with %d",
                       h->version, h->dims, TABLE_VERSION, TABLE_DIMS);
    if (!table_scale_is_good(h->unknown_scale) || h->unknown_scale == 0)
        return why_err(why, ERR_BAD_CONFIG,
                       "the model's scale of unknown characters is not above "
                       "0 and up to %g",
                       (double)TABLE_SCALE_MAX);
    if (h->n_sections > N_SECTIONS)
        return why_err(why, ERR_BAD_CONFIG,
                       "the model has %u sections; this Signalbox knows %d: "
                       "it may be from a newer one",
                       h->n_sections, N_SECTIONS);
    if (bytes.n < table_sections_at(h->n_sections))
        return why_err(why, ERR_BAD_CONFIG,
                       "the model is cut off in the list of its sections");
    return OK;
}

/* Find the table line of a section; lines before `from` are used up. */
static enum err find_section(const struct table_line *l, size_t from,
                             size_t *which, struct why *why)
{
    char tag[5] = "";

    for (size_t i = from; i < N_SECTIONS; i++)
        if (memcmp(sections[i].tag, l->tag, sizeof(l->tag)) == 0) {
            *which = i;
            return OK;
        }
    memcpy(tag, l->tag, sizeof(l->tag));
    for (size_t i = 0; i < sizeof(l->tag); i++)
        if (tag[i] < ' ' || tag[i] > '~')
            tag[i] = '?';
    return why_err(why, ERR_BAD_CONFIG,
                   "the model has a section \"%s\" that this Signalbox does "
                   "not know, or not there: it may be from a newer one",
                   tag);
}

static bool all_zero(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i])
            return false;
    return true;
}

/* Check the place of the section, which begins at the next multiple of 64 after
 * `end`. */
static enum err place_section(const struct table_line *l, size_t end,
                              struct str bytes, struct str *out,
                              struct why *why)
{
    size_t at = table_align(end);

    if (l->at != at || l->zero != 0)
        return why_err(why, ERR_BAD_CONFIG,
                       "section \"%.4s\" of the model is said to lie at %u, "
                       "and should at %zu",
                       l->tag, l->at, at);
    if (at > bytes.n || l->n > bytes.n - at)
        return why_err(why, ERR_BAD_CONFIG,
                       "the model is cut off: section \"%.4s\" ends after %zu "
                       "bytes, and %zu are there",
                       l->tag, at + l->n, bytes.n);
    if (!all_zero(str_sub(bytes, end, at)))
        return why_err(why, ERR_BAD_CONFIG,
                       "there is something before section \"%.4s\" of the "
                       "model",
                       l->tag);
    *out = str_sub(bytes, at, at + l->n);
    return OK;
}

static enum err missing(size_t from, size_t to, struct why *why)
{
    for (size_t i = from; i < to; i++)
        if (sections[i].is_required)
            return why_err(why, ERR_BAD_CONFIG,
                           "the model has no section \"%s\"", sections[i].tag);
    return OK;
}

static enum err open_sections(struct embed_table *t, struct str bytes,
                              struct why *why)
{
    const struct table_head *h = (const struct table_head *)bytes.p;
    const struct table_line *lines = (const struct table_line *)(h + 1);
    size_t next = 0, which = 0, end = table_sections_at(h->n_sections);
    struct str section;
    enum err e;

    for (size_t i = 0; i < h->n_sections; i++, next = which + 1) {
        e = find_section(&lines[i], next, &which, why);
        if (!e)
            e = missing(next, which, why);
        if (!e)
            e = place_section(&lines[i], end, bytes, &section, why);
        if (!e)
            e = sections[which].open(t, h, section, why);
        if (e)
            return e;
        end = lines[i].at + lines[i].n;
    }
    e = missing(next, N_SECTIONS, why);
    if (!e && end != bytes.n)
        e = why_err(why, ERR_BAD_CONFIG,
                    "the model ends after %zu bytes, and there are %zu", end,
                    bytes.n);
    return e;
}

enum err table_open_words(struct vocab *v, struct str bytes, struct why *why)
{
    const struct table_head *h = (const struct table_head *)bytes.p;
    const struct table_line *first = (const struct table_line *)(h + 1);
    size_t which = N_SECTIONS;
    struct str words;
    enum err e = check_head(h, bytes, why);

    if (!e)
        e = h->n_sections ? find_section(first, 0, &which, why)
                          : missing(0, 1, why);
    if (!e && which)
        e = missing(0, which, why);
    if (!e)
        e = place_section(first, table_sections_at(h->n_sections), bytes,
                          &words, why);
    return e ? e : vocab_open(v, words, why);
}

enum err table_open(struct embed_table *t, struct str bytes, struct why *why)
{
    const struct table_head *h = (const struct table_head *)bytes.p;
    struct embed_table made = {.n_phrases = 0};
    enum err e;

    assert((uintptr_t)bytes.p % TABLE_ALIGN == 0);
    *t = made;
    e = check_head(h, bytes, why);
    if (e)
        return e;
    made.hash = h->hash;
    made.unknown_scale = h->unknown_scale;
    e = open_sections(&made, bytes, why);
    if (!e)
        e = check_hash(&made, bytes, why);
    if (!e)
        *t = made;
    return e;
}
