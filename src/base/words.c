/* The reference walks over the whole text once per step: clean, part Chinese,
 * decompose, drop marks, lower case, split. Every step looks at one character
 * at a time, but for one: canonical decomposition also puts marks that follow
 * each other in order. So the steps are one table (base/unicode.h), the text
 * is walked over once, and a mark finds its place among those that the word
 * ends with. Marks that are dropped do not hinder that; a dropped character of
 * class 0 does, hence UNICODE_GAP. No mark parts words, so a row of them lies
 * within one, and what lies in a word that is too long does not matter.
 *
 * What parts words, or is one of its own, is looked at but not taken while a
 * word is being read: nothing needs to be remembered between two words. */
#include "base/words.h"

#include "base/unicode.h"
#include "base/utf8.h"

/* The word that is being written. */
struct pen {
    char *bytes;
    size_t n, n_chars;
    size_t row; /* from here on it is marks that may change places */
    bool is_long;
};

enum step { TAKEN, BEFORE, END };

static void write_char(struct pen *pen, uint32_t c)
{
    if (pen->n_chars == WORD_MAX_CHARS) {
        pen->is_long = true;
        return;
    }
    pen->n += utf8_encode(pen->bytes + pen->n, c);
    pen->n_chars++;
    pen->row = pen->n;
}

/* Where the character before `at` begins. */
static size_t char_before(const char *bytes, size_t at)
{
    do
        at--;
    while (utf8_is_tail((unsigned char)bytes[at]));
    return at;
}

/* Before those of a higher class, behind those of its own. */
static void write_mark(struct pen *pen, uint32_t c)
{
    uint32_t class = unicode_class(c);
    size_t row = pen->row, at = pen->n, n;
    char mark[UTF8_MAX];

    if (pen->n_chars == WORD_MAX_CHARS) {
        pen->is_long = true;
        return;
    }
    while (at > row) {
        size_t before = char_before(pen->bytes, at);

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

/* Section 3.12 of the Unicode standard: a syllable is a number of three
 * digits, the last of which may be missing. */
static void write_hangul(struct pen *pen, uint32_t c)
{
    uint32_t s = c - 0xac00;

    write_char(pen, 0x1100 + s / (21 * 28));
    write_char(pen, 0x1161 + s / 28 % 21);
    if (s % 28)
        write_char(pen, 0x11a7 + s % 28);
}

/* What is a word of its own ends the word before it, and itself. */
static enum step write_alone(struct pen *pen, uint32_t c)
{
    if (pen->n_chars)
        return BEFORE;
    write_char(pen, c);
    return END;
}

static enum step write_spelt(struct pen *pen, const uint32_t *spelt)
{
    uint32_t kind, c;

    do {
        kind = *spelt >> UNICODE_KIND_SHIFT & 0x7f;
        c = *spelt & UNICODE_CHAR_BITS;
        if (kind == UNICODE_PUNCT || kind == UNICODE_ALONE)
            return write_alone(pen, c); /* never among others */
        if (kind == UNICODE_MARK)
            write_mark(pen, c);
        else
            write_char(pen, c);
    } while (!(*spelt++ & UNICODE_LAST));
    return TAKEN;
}

static enum step write_any(struct pen *pen, uint32_t c)
{
    uint32_t number = unicode_number(c);

    switch (number) {
    case UNICODE_KEEP: write_char(pen, c); return TAKEN;
    case UNICODE_DROP: return TAKEN;
    case UNICODE_SPACE: return pen->n_chars ? END : TAKEN;
    case UNICODE_PUNCT:
    case UNICODE_ALONE: return write_alone(pen, c);
    case UNICODE_GAP: pen->row = pen->n; return TAKEN;
    case UNICODE_HANGUL: write_hangul(pen, c); return TAKEN;
    case UNICODE_MARK: write_mark(pen, c); return TAKEN;
    default: return write_spelt(pen, unicode_spelt + (number - UNICODE_SPELT));
    }
}

/* Most of most texts: letters and digits of ASCII. */
static const char *write_ascii(struct pen *pen, const char *p, const char *end)
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
    const char *first = p, *last = p; /* of the word, as it was written */
    enum step step = TAKEN;

    while (step == TAKEN && (p = write_ascii(&pen, p, end)) < end) {
        size_t n = utf8_one(p, end), n_before = pen.n;

        if (n)
            step = write_any(&pen, utf8_decode(p, n));
        last = p;
        if (step != BEFORE)
            p += n ? n : 1; /* what is not UTF-8 is dropped */
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
