#ifndef BASE_UNICODE_H
#define BASE_UNICODE_H

/* What becomes of each character on its way into a word: all steps of BERT's
 * normaliser in one table, which tools/unicode.py makes. Its numbers are those
 * here. Threads: any; all of it is constant. */

#include <stdint.h>

enum unicode_kind {
    UNICODE_KEEP,   /* as it is */
    UNICODE_DROP,   /* as if it were not there */
    UNICODE_SPACE,  /* parts words */
    UNICODE_PUNCT,  /* a word of its own */
    UNICODE_ALONE,  /* the same: a character of Chinese writing */
    UNICODE_GAP,    /* nothing is left, but marks on both sides of it keep their
                     * order */
    UNICODE_HANGUL, /* falls into two or three, by reckoning */
    UNICODE_MARK,   /* as it is, but marks in a row are put in order */
    UNICODE_SPELT,  /* from here on: spelt, beginning at the difference */
};

enum {
    UNICODE_BLOCK_SHIFT = 7,
    UNICODE_KIND_SHIFT = 24,
    UNICODE_CHAR_BITS = 0x1fffff,
};

/* The last of those that a character is spelt with. */
#define UNICODE_LAST 0x80000000U

/* Per byte: the small letter or the digit, or one of these. */
enum {
    ASCII_DROP = 0,
    ASCII_SPACE = ' ',
    ASCII_PUNCT = 0x80,
    ASCII_NOT = 0x81, /* part of a longer character */
};
extern const uint8_t unicode_ascii[256];

extern const uint8_t unicode_blocks[];
extern const uint16_t unicode_stage[];

/* A kind (KEEP, PUNCT, ALONE or MARK) over a character each. */
extern const uint32_t unicode_spelt[];

/* The class of each kept mark over its character, in the order of those. */
extern const uint32_t unicode_marks[];
extern const unsigned unicode_n_marks;

/* A kind, or more. c is at most 0x10ffff. */
static inline uint32_t unicode_number(uint32_t c)
{
    uint32_t block = unicode_blocks[c >> UNICODE_BLOCK_SHIFT];
    uint32_t within = c & ((1U << UNICODE_BLOCK_SHIFT) - 1);

    return unicode_stage[block << UNICODE_BLOCK_SHIFT | within];
}

/* The canonical combining class of a character that is a kept mark; of every
 * other it is 0. */
static inline uint32_t unicode_class(uint32_t c)
{
    for (unsigned i = 0; i < unicode_n_marks; i++)
        if ((unicode_marks[i] & UNICODE_CHAR_BITS) == c)
            return unicode_marks[i] >> UNICODE_KIND_SHIFT;
    return 0;
}

#endif
