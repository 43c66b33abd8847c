#ifndef TABLE_STAGE_H
#define TABLE_STAGE_H

/* table_stage: a small table for tests of the built-in model, made of what is
 * written here. A row is numbers made from its place, a scale too. */

#include <assert.h>
#include <stdlib.h>

#include "embed/internal.h"

/* In the order of the words below. */
enum {
    TOY_NEW,
    TOY_YORK,
    TOY_CITY,
    TOY_SIGNAL,
    TOY_IN_BOX,
    TOY_IN_S,
    TOY_SIGNALBOX,
    TOY_COMMA,
    TOY_CJK,
    N_TOY_WORDS,
    TOY_NEW_YORK = N_TOY_WORDS, /* the rows of phrases */
    TOY_YORK_CITY,
    TOY_IN_BOX_S,
    N_TOY_ROWS,
    N_TOY_PHRASES = N_TOY_ROWS - N_TOY_WORDS,
};

static const struct str toy_words[N_TOY_WORDS] = {
    [TOY_NEW] = {"new", 3},
    [TOY_YORK] = {"york", 4},
    [TOY_CITY] = {"city", 4},
    [TOY_SIGNAL] = {"signal", 6},
    [TOY_IN_BOX] = {"##box", 5},
    [TOY_IN_S] = {"##s", 3},
    [TOY_SIGNALBOX] = {"signalbox", 9},
    [TOY_COMMA] = {",", 1},
    [TOY_CJK] = {"\xe6\x9d\xb1", 3}, /* U+6771, east */
};

static const struct table_phrase toy_phrases[N_TOY_PHRASES] = {
    {TOY_NEW, TOY_YORK},
    {TOY_YORK, TOY_CITY},
    {TOY_IN_BOX, TOY_IN_S},
};

/* A table, and the parts that it was made of. */
struct toy {
    struct table_parts parts;
    int8_t *rows;
    float *scales;
    struct str bytes; /* 64-aligned, and not a byte more is allocated */
};

/* The parts of a table of any words: rows and scales are made up. */
static inline void toy_parts(struct toy *y, const struct str *words,
                             size_t n_words, const struct table_phrase *phrases,
                             size_t n_phrases)
{
    size_t n = n_words + n_phrases;
    uint32_t x = 1;

    y->rows = malloc(n * TABLE_DIMS + 1);
    y->scales = malloc(n * sizeof(float) + 1);
    assert(y->rows && y->scales);
    for (size_t i = 0; i < n * TABLE_DIMS; i++) {
        x = x * 1664525 + 1013904223;
        y->rows[i] = (int8_t)(x >> 24);
    }
    for (size_t i = 0; i < n; i++)
        y->scales[i] = 0.001f * (float)(1 + i % 7);
    y->parts = (struct table_parts){
        .words = words,
        .n_words = n_words,
        .phrases = phrases,
        .n_phrases = n_phrases,
        .rows = y->rows,
        .scales = y->scales,
        .unknown_scale = 0.003f,
    };
}

/* Exactly as long as its allocation, so that a step beyond is seen. */
static inline struct str toy_aligned(struct str s)
{
    void *p = NULL;
    int failed = posix_memalign(&p, 64, s.n ? s.n : 1);

    assert(!failed);
    if (s.n)
        memcpy(p, s.p, s.n);
    return (struct str){p, s.n};
}

static inline void toy_write(struct toy *y)
{
    struct why why = {""};
    struct buf out;
    enum err e;

    buf_init(&out, TABLE_BYTES_MAX);
    e = table_write(&y->parts, &out, &why);
    assert(!e);
    y->bytes = toy_aligned(buf_str(&out));
    buf_fini(&out);
}

static inline void toy_init(struct toy *y)
{
    toy_parts(y, toy_words, N_TOY_WORDS, toy_phrases, N_TOY_PHRASES);
    toy_write(y);
}

static inline void toy_fini(struct toy *y)
{
    free(y->rows);
    free(y->scales);
    free((char *)y->bytes.p);
}

#endif
