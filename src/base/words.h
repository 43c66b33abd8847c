#ifndef BASE_WORDS_H
#define BASE_WORDS_H

/* words: BERT's normaliser and pre-tokeniser.
 *
 * Exactly like the reference: control characters are removed, white space of
 * every kind separates words, Chinese and Japanese characters and punctuation
 * are words of their own, accents are removed (NFD without marks), letters
 * become lower case. Invalid bytes count as U+FFFD, which the reference drops.
 *
 * Used by the models and by the search for words. Pure; allocates nothing.
 * Threads: any. */

#include "base/str.h"

enum {
    WORD_MAX_CHARS = 100, /* a longer word is one unknown piece */
    WORD_MAX_BYTES = WORD_MAX_CHARS * 4,
};

struct words {
    struct str rest;  /* the unread text */
    struct str word;  /* normalised; valid until the next */
    struct str place; /* its place in the original text */
    bool is_long;     /* longer than WORD_MAX_CHARS; word holds the start */
    char bytes[WORD_MAX_BYTES];
};

/* Borrows the text until the last word was read. */
void words_begin(struct words *w, struct str text);
bool words_next(struct words *w);

/* Whether a normalised word is a single punctuation sign, not a letter, digit
 * or emoji. */
bool word_is_punctuation(struct str word);

#endif
