#ifndef BASE_UNICODE_H
#define BASE_UNICODE_H

/* The effect of BERT's normaliser on each character, with all its steps in one
 * table, which tools/unicode.py generates. The script uses the numbers below.
 * Threads: any; constant. */

#include <stdint.h>

enum unicode_kind {
    UNICODE_KEEP,  /* unchanged */
    UNICODE_DROP,  /* removed */
    UNICODE_SPACE, /* separates words */
    UNICODE_PUNCT, /* a word of its own */
    UNICODE_ALONE, /* the same: a Chinese character */
    UNICODE_GAP,   /* removed, but marks on both sides of it keep their order */
    UNICODE_HANGUL, /* decomposes into two or three, by arithmetic */
    UNICODE_MARK,   /* unchanged, but marks in a row are sorted */
    UNICODE_SPELT,  /* from here on: decomposed; the difference is the index */
};

enum {
    UNICODE_BLOCK_SHIFT = 7,
    UNICODE_KIND_SHIFT = 24,
    UNICODE_CHAR_BITS = 0x1fffff,
};

/* Marks the last character of a decomposition. */
#define UNICODE_LAST 0x80000000U

/* Per byte: the lower-case letter or the digit, or one of these. */
enum {
    ASCII_DROP = 0,
    ASCII_SPACE = ' ',
    ASCII_PUNCT = 0x80,
    ASCII_NOT = 0x81, /* part of a longer character */
};
extern const uint8_t unicode_ascii[256];

extern const uint8_t unicode_blocks[];
extern const uint16_t unicode_stage[];

/* Each entry is a kind (KEEP, PUNCT, ALONE or MARK) above a character. */
extern const uint32_t unicode_spelt[];

/* The class of each kept mark above its character, sorted by character. */
extern const uint32_t unicode_marks[];
extern const unsigned unicode_n_marks;

/* A kind, or UNICODE_SPELT plus an index. c is at most 0x10ffff. */
static inline uint32_t unicode_number(uint32_t c)
{
    uint32_t block = unicode_blocks[c >> UNICODE_BLOCK_SHIFT];
    uint32_t within = c & ((1U << UNICODE_BLOCK_SHIFT) - 1);

    return unicode_stage[block << UNICODE_BLOCK_SHIFT | within];
}

/* The canonical combining class of a kept mark; 0 for any other character. */
static inline uint32_t unicode_class(uint32_t c)
{
    for (unsigned i = 0; i < unicode_n_marks; i++)
        if ((unicode_marks[i] & UNICODE_CHAR_BITS) == c)
            return unicode_marks[i] >> UNICODE_KIND_SHIFT;
    return 0;
}

#endif
