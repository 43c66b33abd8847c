#ifndef EMBED_TABLE_H
#define EMBED_TABLE_H

/* Shared by the reader (table.c) and the writer (table_write.c) of the built-in
 * model's file: its layout. The drawing is in table.c. */

#include "embed/internal.h"

#define TABLE_MAGIC   "SBTABLE\n"
#define TABLE_WORDS   "WORD"
#define TABLE_PHRASES "PHRS"
#define TABLE_ROWS    "ROWS"
#define TABLE_SCALES  "SCAL"

enum {
    TABLE_VERSION = 1,
    TABLE_ALIGN = 64,
    TABLE_HASHED_FROM = 40,
};

struct table_head {
    char magic[8];
    uint8_t hash[TABLE_HASH_BYTES];
    uint32_t version, dims, n_words, n_phrases, n_sections;
    float unknown_scale;
};

struct table_line {
    char tag[4];
    uint32_t at, n, zero;
};

static inline size_t table_align(size_t at)
{
    return (at + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN;
}

/* The end of the list of sections. */
static inline size_t table_sections_at(size_t n_sections)
{
    return sizeof(struct table_head) + n_sections * sizeof(struct table_line);
}

/* A slot of the phrases: id + 1 below, and the upper half of the hash above, so
 * that nearly all pairs that are not phrases are recognised without reading
 * another place. Zero: free. */
#define TABLE_SLOT_NUMBER(slot)   ((slot)&0xffffu)
#define TABLE_SLOT_IS(slot, hash) (((slot) ^ (hash)) < 0x10000u)

static inline uint32_t table_phrase_hash(uint32_t first, uint32_t second)
{
    uint64_t x = ((uint64_t)first << 32 | second) * 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return (uint32_t)(x >> 32);
}

/* The number of slots for so many phrases: at least half are free. */
uint32_t table_phrase_slots(uint32_t n_phrases);
bool table_scale_is_good(float scale);
void table_hash(struct str bytes, uint8_t hash[TABLE_HASH_BYTES]);

#endif
