/* Memory, hashes and chance. A number of chance is a hash of where it is used
 * (splitmix64), so that anyone who needs one need not know how many others were
 * drawn before, or on which thread. */
#include "train/train.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

void train_end(const char *what)
{
    fprintf(stderr, "train_table: %s\n", what);
    exit(1);
}

static void *have(void *p)
{
    if (!p)
        train_end("out of memory");
    return p;
}

void *train_alloc(size_t n, size_t size)
{
    return have(calloc(n ? n : 1, size));
}

void *train_grow(void *p, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return p;
    *cap = *cap ? *cap * 2 : 1024;
    return have(reallocarray(p, *cap, size));
}

void train_hash(struct str bytes, char out[HASH_CHARS + 1])
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (EVP_Digest(bytes.p, bytes.n, hash, &n, EVP_sha256(), NULL) != 1)
        train_end("no SHA-256");
    for (unsigned i = 0; i < n; i++)
        snprintf(out + 2 * (size_t)i, 3, "%02x", hash[i]);
}

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t chance_at(uint64_t seed, uint64_t stream, uint64_t i)
{
    return mix(mix(mix(seed) + stream) + i);
}

size_t chance_below(uint64_t chance, size_t n)
{
    return (size_t)(((unsigned __int128)chance * n) >> 64);
}

double chance_real(uint64_t chance)
{
    return (double)(chance >> 11) * 0x1p-53;
}
