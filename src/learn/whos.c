/* Names, in a table of their own: with ten thousand agents every message looks
 * up ten thousand of them. The hash takes eight bytes at a time, without their
 * case (the bit that makes letters small is set in all), and a seed from
 * outside keeps anybody from choosing names that meet. Free places end a
 * search; what is taken out lets those behind it move up. */
#include "learn/internal.h"

#include <stdlib.h>

#include "base/fault.h"

enum { FIRST_CAP = 64, WHOS_MAX = 1 << 22 };

static const uint64_t SMALL = UINT64_C(0x2020202020202020);
static const uint64_t ODD = UINT64_C(0x9e3779b97f4a7c15);

bool is_agent_name(struct str name)
{
    return name.n > 0 && name.n <= AGENT_NAME_MAX;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 m = (unsigned __int128)a * b;

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t hash_of(const struct whos *t, struct str name)
{
    uint64_t h = t->seed[0] ^ name.n, key = t->seed[1] ^ ODD, word;
    size_t i = 0;

    for (; name.n - i >= 8; i += 8) {
        memcpy(&word, name.p + i, 8);
        h = mix(h ^ (word | SMALL), key);
    }
    word = 0;
    memcpy(&word, name.p + i, name.n - i);
    return mix(mix(h ^ (word | SMALL), key), ODD);
}

static size_t place_of(const struct whos *t, struct str name, uint64_t hash)
{
    size_t mask = t->cap - 1, at = hash & mask;
    uint32_t tag = (uint32_t)(hash >> 32);

    while (t->slots[at] &&
           !(t->tags[at] == tag && str_eq_nocase(t->slots[at]->name, name)))
        at = (at + 1) & mask;
    return at;
}

static struct who *find(const struct whos *t, struct str name, uint64_t hash)
{
    return t->cap ? t->slots[place_of(t, name, hash)] : NULL;
}

struct who *who_find(const struct learn *l, struct str name)
{
    if (!is_agent_name(name))
        return NULL;
    return find(&l->whos, name, hash_of(&l->whos, name));
}

static void put(struct whos *t, struct who *w)
{
    size_t at = place_of(t, w->name, w->hash);

    t->slots[at] = w;
    t->tags[at] = (uint32_t)(w->hash >> 32);
    t->n++;
}

/* At most half full. */
static enum err reserve_one(struct whos *t)
{
    struct whos old = *t;
    size_t cap = t->cap ? 2 * t->cap : FIRST_CAP;

    if (2 * (t->n + 1) <= t->cap)
        return OK;
    if (cap > WHOS_MAX || FAULT("learn.whos"))
        return ERR_NOMEM;
    t->slots = calloc(cap, sizeof(struct who *) + sizeof(*t->tags));
    if (!t->slots) {
        *t = old;
        return ERR_NOMEM;
    }
    t->tags = (uint32_t *)(void *)(t->slots + cap);
    t->cap = cap;
    t->n = 0;
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i])
            put(t, old.slots[i]);
    free(old.slots);
    return OK;
}

static struct who *who_new(struct whos *t, struct str name, uint64_t hash)
{
    struct who *w = NULL;

    if (!reserve_one(t) && !FAULT("learn.who"))
        w = calloc(1, sizeof(*w) + name.n);
    if (!w)
        return NULL;
    w->name = str_lowered(name, (char *)(w + 1), name.n);
    w->hash = hash;
    list_init(&w->views);
    list_init(&w->ratings);
    put(t, w);
    return w;
}

struct who *who_take(struct learn *l, struct str name)
{
    uint64_t hash;
    struct who *w;

    if (!is_agent_name(name))
        return NULL;
    hash = hash_of(&l->whos, name);
    w = find(&l->whos, name, hash);
    if (!w)
        w = who_new(&l->whos, name, hash);
    if (w)
        w->n_refs++;
    return w;
}

/* Those behind it whose way to their place led over this one move up. */
static void take_out(struct whos *t, size_t at)
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

void who_release(struct learn *l, struct who *w)
{
    if (!w || --w->n_refs)
        return;
    take_out(&l->whos, place_of(&l->whos, w->name, w->hash));
    if (w->told == l->asked)
        l->told = l->next = NULL; /* one that is told of goes: ask again */
    free(w);
}

void whos_fini(struct whos *t)
{
    for (size_t i = 0; i < t->cap; i++)
        free(t->slots[i]);
    free(t->slots);
}

bool whos_check(const struct whos *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->cap; i++) {
        const struct who *w = t->slots[i];

        if (!w)
            continue;
        n++;
        if (!w->n_refs || w->hash != hash_of(t, w->name) ||
            find(t, w->name, w->hash) != w)
            return false;
    }
    return n == t->n;
}
