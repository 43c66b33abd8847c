#include "base/share.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

void shares_init(struct shares *all, size_t share_bytes, size_t limit,
                 const uint64_t seed[2])
{
    assert(share_bytes >= sizeof(struct share));
    map_init(&all->by_key, limit, seed);
    all->share_bytes = share_bytes;
}

void shares_fini(struct shares *all)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&all->by_key, &at)))
        free(slot->value);
    map_fini(&all->by_key);
}

void *share_find(const struct shares *all, struct str key)
{
    return map_get(&all->by_key, key);
}

void *share_take(struct shares *all, struct str key)
{
    struct share *s = map_get(&all->by_key, key);

    if (!s) {
        char *kept;

        s = mem_new(all->share_bytes + key.n);
        kept = (char *)s + all->share_bytes;
        if (key.n)
            memcpy(kept, key.p, key.n);
        s->key = (struct str){kept, key.n};
        if (map_put(&all->by_key, s->key, s) != OK) {
            free(s);
            return NULL;
        }
    }
    s->n++;
    return s;
}

void share_give(struct shares *all, void *share)
{
    struct share *s = share;

    if (!s || --s->n)
        return;
    map_take(&all->by_key, s->key);
    free(s);
}

size_t share_free(size_t most, size_t used, size_t reserve_part)
{
    if (reserve_part)
        most -= most / reserve_part;
    return most > used ? most - used : 0;
}

bool share_is_fair(size_t held, size_t factor, size_t free)
{
    return held <= factor * free;
}

bool shares_check(const struct shares *all, size_t n)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&all->by_key, &at))) {
        const struct share *s = slot->value;

        if (s->n == 0 || s->n > n)
            return false;
        n -= s->n;
    }
    return n == 0 && map_check(&all->by_key);
}
