#ifndef BASE_WORDS_H
#define BASE_WORDS_H

/* words: what BERT's normaliser and pre-tokeniser make of a text.
 *
 * Exactly as the reference does: control characters go, spaces of every kind
 * part words, characters of Chinese and Japanese writing and punctuation are
 * words of their own, accents go (NFD without marks), letters become small.
 * Bytes that are not UTF-8 count as U+FFFD, which the reference drops.
 *
 * Models read them, and so does the search by words. Pure; allocates nothing.
 * Threads: any. */

#include "base/str.h"

enum {
    WORD_MAX_CHARS = 100, /* a longer one is one unknown piece */
    WORD_MAX_BYTES = WORD_MAX_CHARS * 4,
};

struct words {
    struct str rest;  /* of the text */
    struct str word;  /* normalised; points into bytes, until the next */
    struct str place; /* where it stands in the text, as it was written */
    bool is_long;     /* more than WORD_MAX_CHARS; word holds the first ones */
    char bytes[WORD_MAX_BYTES];
};

/* The text is borrowed until the last word was read. */
void words_begin(struct words *w, struct str text);
bool words_next(struct words *w);

/* Whether a normalised word is one sign and no letter, digit or emoji. */
bool word_is_punctuation(struct str word);

#endif
