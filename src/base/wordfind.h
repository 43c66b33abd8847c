#ifndef BASE_WORDFIND_H
#define BASE_WORDFIND_H

/* wordfind: whether a text has what somebody looks for. Every word of the wish
 * must stand in the text, in any order, whole or as a part of another word;
 * case and accents do not count, punctuation does (words.h). Pure; allocates
 * nothing. Threads: any. */

#include "base/words.h"

enum {
    WORDFIND_BYTES = 256, /* of a wish, as it was written */
    WORDFIND_TEXT = 1024, /* of a text that are looked at */
};

struct wordfind {
    char bytes[4 * WORDFIND_BYTES]; /* its words, a blank behind each */
    size_t n;
};

/* False: it is too long, or has no word in it. */
MUST_USE bool wordfind_init(struct wordfind *f, struct str wish);
bool wordfind_has(const struct wordfind *f, struct str text);

#endif
