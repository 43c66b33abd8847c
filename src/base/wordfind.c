/* Text and query are both written as their words, each followed by a space, and
 * then searched as bytes. A character grows to at most four bytes for each of
 * its own, which sizes the buffers; a word that still does not fit is left
 * out. */
#include "base/wordfind.h"

static size_t spell(struct str text, char *to, size_t room)
{
    struct words w;
    size_t n = 0;

    words_begin(&w, text);
    while (words_next(&w) && n + w.word.n < room) {
        memcpy(to + n, w.word.p, w.word.n);
        n += w.word.n;
        to[n++] = ' ';
    }
    return n;
}

bool wordfind_init(struct wordfind *f, struct str wish)
{
    if (wish.n > WORDFIND_BYTES)
        return false;
    f->n = spell(wish, f->bytes, sizeof(f->bytes));
    return f->n > 0;
}

bool wordfind_has(const struct wordfind *f, struct str text)
{
    struct str rest = {f->bytes, f->n};
    char spelt[4 * WORDFIND_TEXT];
    size_t n = spell(str_head(text, WORDFIND_TEXT), spelt, sizeof(spelt));

    while (rest.n) {
        struct str word = str_cut(&rest, ' ');

        if (!memmem(spelt, n, word.p, word.n))
            return false;
    }
    return true;
}
