/* Both are written down as their words with a blank behind each, and then bytes
 * are looked for in bytes. A character becomes four bytes at most for each that
 * it had, which the room is measured by; what still does not fit is left out
 * whole. */
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
