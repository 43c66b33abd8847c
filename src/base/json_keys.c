/* Detecting duplicate keys in untrusted text.
 *
 * A key is remembered by its position in the text and a 32-bit hash, twelve
 * bytes in all, on one stack for all open objects; nothing is decoded or
 * copied. A small object compares each new key with the earlier ones. A larger
 * one is sorted when it closes, by hash and then by key, so that duplicates
 * become neighbours. Heapsort needs no second array and n log n steps for any
 * input, so an attacker who makes all hashes equal gains only comparisons of
 * keys that he had to send: the worst texts we found (long keys that differ
 * only in the middle, full of escapes) cost about 30 ns a byte. Rejected: a
 * hash table, which would need a secret seed for the same guarantee, while json
 * keeps no state.
 *
 * A member takes at least six bytes of text, so the doubling stack stays below
 * four times the text. */
#include "base/json_internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

static struct json_raw json_key_raw(const struct json_keys *k,
                                    struct json_key key)
{
    return (struct json_raw){{k->text + key.at, key.n_twice / 2},
                             key.n_twice & 1};
}

bool json_keys_grow(struct json_keys *k)
{
    bool is_small = k->v == k->small;
    size_t size = (size_t)k->cap * 2 * sizeof(*k->v);
    struct json_key *old = is_small ? NULL : k->v, *v;

    if (size <= MEM_SMALL_BYTES)
        v = mem_resize(old, 1, size);
    else
        v = FAULT("json.keys") ? NULL : realloc(old, size);
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
            json_raw_cmp(json_key_raw(k, k->v[i]), json_key_raw(k, *key)) == 0)
            return true;
    return false;
}

/* Equal keys keep the order of the text. */
static bool json_key_is_before(const struct json_keys *k, struct json_key a,
                               struct json_key b)
{
    int c;

    if (a.hash != b.hash)
        return a.hash < b.hash;
    c = json_raw_cmp(json_key_raw(k, a), json_key_raw(k, b));
    return c ? c < 0 : a.at < b.at;
}

/* Heapsort's sift-down. */
static void json_keys_sift(const struct json_keys *k, struct json_key *v,
                           size_t i, size_t n)
{
    struct json_key key = v[i];
    size_t kid;

    while ((kid = 2 * i + 1) < n) {
        if (kid + 1 < n && json_key_is_before(k, v[kid], v[kid + 1]))
            kid++;
        if (!json_key_is_before(k, key, v[kid]))
            break;
        v[i] = v[kid];
        i = kid;
    }
    v[i] = key;
}

static void json_keys_sort(const struct json_keys *k, struct json_key *v,
                           size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        json_keys_sift(k, v, i, n);
    for (size_t left = n; left-- > 1;) {
        struct json_key last = v[left];

        v[left] = v[0];
        v[0] = last;
        json_keys_sift(k, v, 0, left);
    }
}

const char *json_keys_first_double(struct json_keys *k, uint32_t first)
{
    struct json_key *v = k->v + first;
    size_t n = k->n - first;
    uint32_t at = UINT32_MAX;

    json_keys_sort(k, v, n);
    for (size_t i = 1; i < n; i++)
        if (v[i].hash == v[i - 1].hash && v[i].at < at &&
            json_raw_cmp(json_key_raw(k, v[i - 1]), json_key_raw(k, v[i])) == 0)
            at = v[i].at;
    return at == UINT32_MAX ? NULL : k->text + at;
}
