/* Duplicate keys, without trusting anybody.
 *
 * A key is remembered by its place in the text and a 32-bit hash, twelve bytes
 * in all, on one stack for all open objects; nothing is decoded or copied. A
 * small object compares each new key with those before it. A larger one is
 * sorted when it closes, by hash and then by the keys themselves, so that
 * equal keys become neighbours. Heapsort needs no second array and n log n
 * steps whatever the input: an attacker who makes all hashes equal buys
 * nothing but comparisons of keys that he had to send: the worst texts we
 * could think of (long keys, alike but in the middle, full of escapes) cost
 * some 30 ns a byte. A hash table would need a secret seed to promise as much,
 * and json keeps no state.
 *
 * The stack grows with the keys that are open: a member takes six bytes of
 * text or more, so growth by doubling stays below four times the text. */
#include "base/json_internal.h"

#include <stdlib.h>

#include "base/fault.h"

static struct json_raw raw_of(const struct json_keys *k, struct json_key key)
{
    return (struct json_raw){{k->text + key.at, key.n_twice / 2},
                             key.n_twice & 1};
}

bool json_keys_grow(struct json_keys *k)
{
    bool is_small = k->v == k->small;
    size_t size = (size_t)k->cap * 2 * sizeof(*k->v);
    struct json_key *v =
        FAULT("json.keys") ? NULL : realloc(is_small ? NULL : k->v, size);

    if (!v)
        return false;
    if (is_small)
        memcpy(v, k->small, sizeof(k->small));
    k->v = v;
    k->cap *= 2;
    return true;
}

void json_keys_fini(struct json_keys *k)
{
    if (k->v != k->small)
        free(k->v);
}

bool json_keys_has(const struct json_keys *k, uint32_t first,
                   const struct json_key *key)
{
    for (uint32_t i = first; i < k->n; i++)
        if (k->v[i].hash == key->hash &&
            json_raw_cmp(raw_of(k, k->v[i]), raw_of(k, *key)) == 0)
            return true;
    return false;
}

/* Equal keys keep the order of the text. */
static bool is_before(const struct json_keys *k, struct json_key a,
                      struct json_key b)
{
    int c;

    if (a.hash != b.hash)
        return a.hash < b.hash;
    c = json_raw_cmp(raw_of(k, a), raw_of(k, b));
    return c ? c < 0 : a.at < b.at;
}

/* Let the key at i sink until both below it come before it. */
static void sink(const struct json_keys *k, struct json_key *v, size_t i,
                 size_t n)
{
    struct json_key key = v[i];
    size_t kid;

    while ((kid = 2 * i + 1) < n) {
        if (kid + 1 < n && is_before(k, v[kid], v[kid + 1]))
            kid++;
        if (!is_before(k, key, v[kid]))
            break;
        v[i] = v[kid];
        i = kid;
    }
    v[i] = key;
}

static void sort(const struct json_keys *k, struct json_key *v, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sink(k, v, i, n);
    for (size_t left = n; left-- > 1;) {
        struct json_key last = v[left];

        v[left] = v[0];
        v[0] = last;
        sink(k, v, 0, left);
    }
}

const char *json_keys_first_double(struct json_keys *k, uint32_t first)
{
    struct json_key *v = k->v + first;
    size_t n = k->n - first;
    uint32_t at = UINT32_MAX;

    sort(k, v, n);
    for (size_t i = 1; i < n; i++)
        if (v[i].hash == v[i - 1].hash && v[i].at < at &&
            json_raw_cmp(raw_of(k, v[i - 1]), raw_of(k, v[i])) == 0)
            at = v[i].at;
    return at == UINT32_MAX ? NULL : k->text + at;
}
