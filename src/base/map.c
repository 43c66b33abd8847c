/* Open addressing with linear probing, at most three quarters full. Deletion
 * shifts the following entries back instead of leaving tombstones, so a table
 * that lives for months does not degrade. */
#include "base/map.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

enum { FIRST_SLOTS = 16 };

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

/* SipHash-1-3: one round per word and three at the end. */
uint64_t hash_bytes(struct str s, const uint64_t seed[2])
{
    uint64_t v[4] = {
        seed[0] ^ 0x736f6d6570736575,
        seed[1] ^ 0x646f72616e646f6d,
        seed[0] ^ 0x6c7967656e657261,
        seed[1] ^ 0x7465646279746573,
    };
    uint64_t word, last = (uint64_t)s.n << 56;
    size_t at = 0;

    for (; s.n - at >= 8; at += 8) {
        memcpy(&word, s.p + at, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    for (size_t i = at; i < s.n; i++)
        last |= (uint64_t)(unsigned char)s.p[i] << (8 * (i - at));
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void map_init(struct map *m, size_t limit, const uint64_t seed[2])
{
    *m = (struct map){.limit = limit, .seed = {seed[0], seed[1]}};
}

void map_fini(struct map *m)
{
    free(m->slots);
    m->slots = NULL;
    m->n = m->cap = 0;
}

/* The slot that holds key, or the empty slot where it would go. An empty slot
 * has no value, and a table always has one. */
static struct map_slot *map_find_slot(const struct map *m, struct str key,
                                      uint64_t hash)
{
    size_t i = hash & (m->cap - 1);

    while (m->slots[i].value &&
           (m->slots[i].hash != hash || !str_eq(m->slots[i].key, key)))
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

void *map_get(const struct map *m, struct str key)
{
    if (m->n == 0)
        return NULL;
    return map_find_slot(m, key, hash_bytes(key, m->seed))->value;
}

/* Make room for n entries. */
static enum err map_grow(struct map *m, size_t n)
{
    struct map bigger = *m;

    if (bigger.cap == 0)
        bigger.cap = FIRST_SLOTS;
    while (n * 4 > bigger.cap * 3)
        bigger.cap *= 2;
    if (bigger.cap == m->cap)
        return OK;
    if (bigger.cap * sizeof(*m->slots) <= MEM_SMALL_BYTES)
        bigger.slots = mem_array(bigger.cap, sizeof(*m->slots));
    else
        bigger.slots =
            FAULT("map.grow") ? NULL : calloc(bigger.cap, sizeof(*m->slots));
    if (!bigger.slots)
        return ERR_NOMEM;
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].value)
            *map_find_slot(&bigger, m->slots[i].key, m->slots[i].hash) =
                m->slots[i];
    free(m->slots);
    *m = bigger;
    return OK;
}

enum err map_put(struct map *m, struct str key, void *value)
{
    uint64_t hash = hash_bytes(key, m->seed);
    struct map_slot *slot = m->cap ? map_find_slot(m, key, hash) : NULL;

    if (!slot || !slot->value) {
        if (m->n >= m->limit)
            return ERR_LIMIT;
        if ((m->n + 1) * 4 > m->cap * 3) {
            enum err e = map_grow(m, m->n + 1);

            if (e)
                return e;
        }
        slot = map_find_slot(m, key, hash);
        m->n++;
    }
    *slot = (struct map_slot){key, value, hash};
    return OK;
}

enum err map_reserve(struct map *m, size_t n)
{
    if (n > m->limit || m->n > m->limit - n)
        return ERR_LIMIT;
    return map_grow(m, m->n + n);
}

/* Close the gap at i: an entry that follows without a hole moves into the gap
 * if its home is at or before it. */
static void close_gap(struct map *m, size_t i)
{
    size_t mask = m->cap - 1;

    for (size_t j = (i + 1) & mask; m->slots[j].value; j = (j + 1) & mask) {
        size_t home = m->slots[j].hash & mask;

        if (((j - home) & mask) >= ((j - i) & mask)) {
            m->slots[i] = m->slots[j];
            i = j;
        }
    }
    m->slots[i] = (struct map_slot){.value = NULL};
}

void *map_take(struct map *m, struct str key)
{
    struct map_slot *slot;
    void *value;

    if (m->n == 0)
        return NULL;
    slot = map_find_slot(m, key, hash_bytes(key, m->seed));
    value = slot->value;
    if (value) {
        close_gap(m, (size_t)(slot - m->slots));
        m->n--;
    }
    return value;
}

const struct map_slot *map_next(const struct map *m, size_t *at)
{
    while (*at < m->cap) {
        const struct map_slot *slot = &m->slots[(*at)++];

        if (slot->value)
            return slot;
    }
    return NULL;
}

bool map_check(const struct map *m)
{
    size_t n = 0, at = 0;
    const struct map_slot *slot;

    while ((slot = map_next(m, &at))) {
        if (hash_bytes(slot->key, m->seed) != slot->hash ||
            map_find_slot(m, slot->key, slot->hash) != slot)
            return false;
        n++;
    }
    return n == m->n && n <= m->limit && (m->cap == 0 || n < m->cap);
}
