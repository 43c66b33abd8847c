/* The reference passes over the whole text once per step: clean, separate
 * Chinese, decompose, drop marks, lower case, split. Every step looks at one
 * character at a time, except that canonical decomposition also sorts marks
 * that follow each other. So the steps are one table (base/unicode.h), the text
 * is read once, and a mark is inserted among the marks at the end of the word.
 * Dropped marks do not interfere with that; a dropped character of class 0
 * does, hence UNICODE_GAP. Marks never separate words, so a run of them lies
 * within one word, and the content of a word that is too long does not matter.
 *
 * A character that separates words, or is a word itself, is not consumed while
 * a word is being read, so no state is needed between two words. */
#include "base/words.h"

#include "base/unicode.h"
#include "base/utf8.h"

/* The word being written. */
struct pen {
    char *bytes;
    size_t n, n_chars;
    size_t row; /* start of the marks at the end, which may be reordered */
    bool is_long;
};

enum step { TAKEN, BEFORE, END };

static void word_write_char(struct pen *pen, uint32_t c)
{
    if (pen->n_chars == WORD_MAX_CHARS) {
        pen->is_long = true;
        return;
    }
    pen->n += utf8_encode(pen->bytes + pen->n, c);
    pen->n_chars++;
    pen->row = pen->n;
}

/* Insert the mark before those of a higher class, after those of its own. */
static void word_write_mark(struct pen *pen, uint32_t c)
{
    uint32_t class = unicode_class(c);
    size_t row = pen->row, at = pen->n, n;
    char mark[UTF8_MAX];

    if (pen->n_chars == WORD_MAX_CHARS) {
        pen->is_long = true;
        return;
    }
    while (at > row) {
        size_t before = at;

        do
            before--;
        while (utf8_is_tail((unsigned char)pen->bytes[before]));
        if (unicode_class(utf8_decode(pen->bytes + before, at - before)) <=
            class)
            break;
        at = before;
    }
    n = utf8_encode(mark, c);
    memmove(pen->bytes + at + n, pen->bytes + at, pen->n - at);
    memcpy(pen->bytes + at, mark, n);
    pen->n += n;
    pen->n_chars++;
}

/* Section 3.12 of the Unicode standard: a syllable is a number of three digits,
 * the last of which may be missing. */
static void word_write_hangul(struct pen *pen, uint32_t c)
{
    uint32_t s = c - 0xac00;

    word_write_char(pen, 0x1100 + s / (21 * 28));
    word_write_char(pen, 0x1161 + s / 28 % 21);
    if (s % 28)
        word_write_char(pen, 0x11a7 + s % 28);
}

/* A character that is its own word ends the word before it, and then itself. */
static enum step word_write_alone(struct pen *pen, uint32_t c)
{
    if (pen->n_chars)
        return BEFORE;
    word_write_char(pen, c);
    return END;
}

static enum step word_write_spelt(struct pen *pen, const uint32_t *spelt)
{
    uint32_t kind, c;

    do {
        kind = *spelt >> UNICODE_KIND_SHIFT & 0x7f;
        c = *spelt & UNICODE_CHAR_BITS;
        if (kind == UNICODE_PUNCT || kind == UNICODE_ALONE)
            return word_write_alone(pen, c); /* always the only one */
        if (kind == UNICODE_MARK)
            word_write_mark(pen, c);
        else
            word_write_char(pen, c);
    } while (!(*spelt++ & UNICODE_LAST));
    return TAKEN;
}

static enum step word_write_any(struct pen *pen, uint32_t c)
{
    uint32_t number = unicode_number(c);

    switch (number) {
    case UNICODE_KEEP: word_write_char(pen, c); return TAKEN;
    case UNICODE_DROP: return TAKEN;
    case UNICODE_SPACE: return pen->n_chars ? END : TAKEN;
    case UNICODE_PUNCT:
    case UNICODE_ALONE: return word_write_alone(pen, c);
    case UNICODE_GAP: pen->row = pen->n; return TAKEN;
    case UNICODE_HANGUL: word_write_hangul(pen, c); return TAKEN;
    case UNICODE_MARK: word_write_mark(pen, c); return TAKEN;
    default:
        return word_write_spelt(pen, unicode_spelt + (number - UNICODE_SPELT));
    }
}

/* The fast path: ASCII letters and digits. */
static const char *word_write_ascii(struct pen *pen, const char *p,
                                    const char *end)
{
    size_t room = WORD_MAX_CHARS - pen->n_chars;
    const char *from = p, *stop = (size_t)(end - p) > room ? p + room : end;
    char *to = pen->bytes + pen->n;
    uint8_t c;

    for (; p < stop; p++) {
        c = unicode_ascii[(unsigned char)*p];
        if (c <= ASCII_SPACE || c >= ASCII_PUNCT)
            break;
        *to++ = (char)c;
    }
    if (p > from) {
        pen->n += (size_t)(p - from);
        pen->n_chars += (size_t)(p - from);
        pen->row = pen->n;
    }
    return p;
}

void words_begin(struct words *w, struct str text)
{
    w->rest = text.p ? text : STR("");
    w->word = (struct str){w->bytes, 0};
    w->place = str_head(w->rest, 0);
    w->is_long = false;
}

bool words_next(struct words *w)
{
    struct pen pen = {.bytes = w->bytes};
    const char *p = w->rest.p, *end = p + w->rest.n;
    const char *first = p, *last = p; /* the word in the original text */
    enum step step = TAKEN;

    while (step == TAKEN && (p = word_write_ascii(&pen, p, end)) < end) {
        size_t n = utf8_one(p, end), n_before = pen.n;

        if (n)
            step = word_write_any(&pen, utf8_decode(p, n));
        last = p;
        if (step != BEFORE)
            p += n ? n : 1; /* invalid UTF-8 is dropped */
        if (!pen.n)
            first = p;
        else if (step == TAKEN || pen.n > n_before)
            last = p;
    }
    if (step == TAKEN)
        last = end;
    w->rest = (struct str){p, (size_t)(end - p)};
    w->word = (struct str){w->bytes, pen.n};
    w->place = (struct str){first, pen.n ? (size_t)(last - first) : 0};
    w->is_long = pen.is_long;
    return pen.n > 0;
}

bool word_is_punctuation(struct str word)
{
    return word.n > 0 && utf8_one(word.p, word.p + word.n) == word.n &&
           unicode_number(utf8_decode(word.p, word.n)) == UNICODE_PUNCT;
}
