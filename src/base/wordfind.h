#ifndef BASE_WORDFIND_H
#define BASE_WORDFIND_H

/* wordfind: whether a text matches a query. Every word of the query must occur
 * in the text, in any order, as a word or part of one. Case and accents are
 * ignored, punctuation is not (words.h). Pure; allocates nothing. Threads:
 * any. */

#include "base/words.h"

enum {
    WORDFIND_BYTES = 256, /* longest query */
    WORDFIND_TEXT = 1024, /* bytes of a text that are searched */
};

struct wordfind {
    char bytes[4 * WORDFIND_BYTES]; /* its words, each followed by a space */
    size_t n;
};

/* False if the query is too long or has no word. */
MUST_USE bool wordfind_init(struct wordfind *f, struct str wish);
bool wordfind_has(const struct wordfind *f, struct str text);

#endif
