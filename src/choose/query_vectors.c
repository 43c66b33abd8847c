/* The part of a message that is compared with the cards.
 *
 *     gibberish  nothing: its vector is zero, and it is out of scope
 *     short      the text, corrected
 *     long       the whole, and the part that asks, corrected: their vectors
 *                are added up, and the words of that part are compared
 *
 * The whole stays in because a request alone is often only half of the meaning
 * ("what would make this fast?" below a query plan). With more weight on the
 * part, 228 generated long messages gain, and the 22 of test/quality/fleets
 * lose. PARTS_WEIGHT was chosen by those 22.
 *
 * The resulting vector is kept in the decision, so replaying needs neither the
 * texts nor the speller.
 *
 * A message of one line is no paste, however long: all of its sentences count.
 * A text of more than PART_BYTES is not corrected: it is clear without the
 * misspelt word. */
#include "choose/routing.h"

#include "base/vec.h"

enum { ASKS_FROM = 2 }; /* points of a part */

static const float PARTS_WEIGHT = 1; /* of all parts together; the whole: 1 */

static enum err correct_text(struct arena *a, const struct speller *speller,
                             spell_said *on_cards, void *ctx, struct str text,
                             struct str *out)
{
    struct buf made;
    enum err e = OK;

    *out = text;
    if (!speller || text.n > PART_BYTES)
        return OK;
    buf_init(&made, (size_t)2 * SPELL_TEXT_MAX);
    if (speller_correct(speller, text, on_cards, ctx, &made) &&
        !arena_keep(a, buf_str(&made), out))
        e = ERR_NOMEM;
    buf_fini(&made);
    return e;
}

/* Append the parts with the most points to the texts, and their words. */
static enum err take_parts(struct arena *a, const struct speller *speller,
                           spell_said *on_cards, void *ctx, struct str text,
                           bool leaves_spelling, struct reading *out)
{
    struct part parts[PARTS_MAX];
    size_t n = parts_find(text, parts);
    struct buf words;
    enum err e = OK;

    buf_init(&words, (size_t)READING_TEXTS_MAX * (2 * PART_BYTES + 1));
    for (size_t i = 0; !e && i < n && out->n < READING_TEXTS_MAX; i++) {
        struct str read;

        if (parts[i].points < ASKS_FROM || parts[i].points < parts[0].points)
            break;
        e = correct_text(a, speller, on_cards, ctx, parts[i].text, &read);
        out->texts[out->n++] = leaves_spelling ? parts[i].text : read;
        buf_add_str(&words, read);
        buf_add_char(&words, '\n');
    }
    if (!e && (words.over ||
               (words.n && !arena_keep(a, buf_str(&words), &out->words))))
        e = ERR_NOMEM;
    buf_fini(&words);
    return e;
}

enum err reading_make(struct arena *a, const struct speller *speller,
                      spell_said *on_cards, void *ctx, struct str text,
                      bool leaves_spelling, struct reading *out)
{
    struct str whole = str_head(text, ROUTING_TEXT_MAX);
    enum err e;

    *out = (struct reading){.texts = {whole}, .n = 1, .words = whole};
    if (text.n > PARTS_FROM_BYTES && memchr(text.p, '\n', text.n))
        return take_parts(a, speller, on_cards, ctx, text, leaves_spelling,
                          out);
    e = correct_text(a, speller, on_cards, ctx, whole, &out->words);
    if (!leaves_spelling)
        out->texts[0] = out->words;
    if (speller && speller_is_gibberish(speller, whole, on_cards, ctx))
        out->texts[0] = STR("");
    return e;
}

bool reading_leaves_spelling(enum embed_kind kind)
{
    return kind == EMBED_HTTP;
}

void reading_add_up(const struct reading *r, float *vectors,
                    const struct embed_stamp *stamp)
{
    uint32_t dims = stamp->dims;
    float weight = r->n > 1 ? PARTS_WEIGHT / (float)(r->n - 1) : 0;

    for (size_t k = 1; k < r->n; k++)
        for (uint32_t i = 0; i < dims; i++)
            vectors[i] += weight * vectors[k * dims + i];
    if (r->n > 1)
        (void)vec_join(vectors, dims, stamp->quick_dims);
}
