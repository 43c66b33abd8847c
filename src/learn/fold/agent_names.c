/* Names, in a table of their own: with ten thousand agents every message looks
 * up ten thousand of them. The hash reads eight bytes at a time and ignores
 * case (it sets the bit that makes letters lower case), and a seed from outside
 * keeps users from choosing names that collide. A free slot ends a search;
 * removal moves later names up. */
#include "learn/fold/internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

enum { FIRST_CAP = 64, NAMES_TABLE_MAX = 1 << 22 };

static const uint64_t SMALL = UINT64_C(0x2020202020202020);
static const uint64_t ODD = UINT64_C(0x9e3779b97f4a7c15);

bool is_agent_name(struct str name)
{
    return name.n > 0 && name.n <= AGENT_NAME_MAX;
}

static uint64_t mix_bits(uint64_t a, uint64_t b)
{
    unsigned __int128 m = (unsigned __int128)a * b;

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t agent_name_hash(const struct agent_names *t, struct str name)
{
    uint64_t h = t->seed[0] ^ name.n, key = t->seed[1] ^ ODD, word;
    size_t i = 0;

    for (; name.n - i >= 8; i += 8) {
        memcpy(&word, name.p + i, 8);
        h = mix_bits(h ^ (word | SMALL), key);
    }
    word = 0;
    memcpy(&word, name.p + i, name.n - i);
    return mix_bits(mix_bits(h ^ (word | SMALL), key), ODD);
}

static size_t agent_name_slot(const struct agent_names *t, struct str name,
                              uint64_t hash)
{
    size_t mask = t->cap - 1, at = hash & mask;
    uint32_t tag = (uint32_t)(hash >> 32);

    while (t->slots[at] &&
           !(t->tags[at] == tag && str_eq_nocase(t->slots[at]->name, name)))
        at = (at + 1) & mask;
    return at;
}

static struct agent_name *agent_names_find(const struct agent_names *t,
                                           struct str name, uint64_t hash)
{
    return t->cap ? t->slots[agent_name_slot(t, name, hash)] : NULL;
}

struct agent_name *agent_name_find(const struct learn *l, struct str name)
{
    if (!is_agent_name(name))
        return NULL;
    return agent_names_find(&l->names, name, agent_name_hash(&l->names, name));
}

static void agent_names_put(struct agent_names *t, struct agent_name *w)
{
    size_t at = agent_name_slot(t, w->name, w->hash);

    t->slots[at] = w;
    t->tags[at] = (uint32_t)(w->hash >> 32);
    t->n++;
}

/* The table is at most half full. */
enum err agent_names_reserve(struct agent_names *t, size_t n)
{
    struct agent_names old = *t;
    size_t cap = t->cap ? t->cap : FIRST_CAP;

    while (2 * (t->n + n) > cap)
        cap *= 2;
    if (cap == t->cap)
        return OK;
    if (cap > NAMES_TABLE_MAX)
        return ERR_LIMIT;
    t->slots =
        FAULT("learn.names")
            ? NULL
            : calloc(cap, sizeof(struct agent_name *) + sizeof(*t->tags));
    if (!t->slots) {
        *t = old;
        return ERR_NOMEM;
    }
    t->tags = (uint32_t *)(void *)(t->slots + cap);
    t->cap = cap;
    t->n = 0;
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i])
            agent_names_put(t, old.slots[i]);
    free(old.slots);
    return OK;
}

struct agent_name *agent_name_take(struct learn *l, struct str name)
{
    struct agent_names *t = &l->names;
    struct agent_name *w;
    uint64_t hash;

    if (!is_agent_name(name))
        return NULL;
    hash = agent_name_hash(t, name);
    w = agent_names_find(t, name, hash);
    if (!w) {
        w = mem_new(sizeof(*w) + name.n);
        w->name = str_lowered(name, (char *)(w + 1), name.n);
        w->hash = hash;
        list_init(&w->views);
        list_init(&w->ratings);
        agent_names_put(t, w);
    }
    w->n_refs++;
    return w;
}

/* Names behind it whose search passes over this slot move up. */
static void agent_names_remove(struct agent_names *t, size_t at)
{
    size_t mask = t->cap - 1, free_at = at;

    t->n--;
    for (at = (at + 1) & mask; t->slots[at]; at = (at + 1) & mask) {
        size_t home = t->slots[at]->hash & mask;

        if (((at - home) & mask) < ((at - free_at) & mask))
            continue;
        t->slots[free_at] = t->slots[at];
        t->tags[free_at] = t->tags[at];
        free_at = at;
    }
    t->slots[free_at] = NULL;
    t->tags[free_at] = 0;
}

void agent_name_release(struct learn *l, struct agent_name *w)
{
    if (!w || --w->n_refs)
        return;
    agent_names_remove(&l->names, agent_name_slot(&l->names, w->name, w->hash));
    if (w->hinted == l->query_number)
        l->hinted = l->next = NULL; /* an agent with a hint goes: ask again */
    free(w);
}

void agent_names_fini(struct agent_names *t)
{
    for (size_t i = 0; i < t->cap; i++)
        free(t->slots[i]);
    free(t->slots);
}

bool agent_names_check(const struct agent_names *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->cap; i++) {
        const struct agent_name *w = t->slots[i];

        if (!w)
            continue;
        n++;
        if (!w->n_refs || w->hash != agent_name_hash(t, w->name) ||
            agent_names_find(t, w->name, w->hash) != w)
            return false;
    }
    return n == t->n;
}
