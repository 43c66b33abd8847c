/* Every step loads all its bytes before it stores any, and goes forward, so
 * `to` may lie slightly before `from`. For the same reason the last bytes are
 * not done in a step that overlaps the one before, which would XOR some bytes
 * twice.
 *
 * All x86-64 processors have 16-byte vectors and most have 32-byte ones;
 * xor_four asks at run time. Short texts use eight-byte words and never ask. */
#include "base/xor.h"

#include <stdbool.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#define WIDE __attribute__((target("avx2")))
#else
#define WIDE
#endif

enum { SHORT_BYTES = 32 };

/* The key rotated to position `at`, twice. */
static inline uint64_t xor_turned_key(const uint8_t key[4], size_t at)
{
    uint8_t k[8];
    uint64_t w;

    for (size_t i = 0; i < sizeof(k); i++)
        k[i] = key[(at + i) & 3];
    memcpy(&w, k, sizeof(w));
    return w;
}

static inline void xor_words(char *to, const char *from, size_t n, uint64_t key)
{
    uint64_t w;
    uint32_t half;
    size_t i = 0;

    for (; n - i >= sizeof(w); i += sizeof(w)) {
        memcpy(&w, from + i, sizeof(w));
        w ^= key;
        memcpy(to + i, &w, sizeof(w));
    }
    if (n - i >= sizeof(half)) {
        memcpy(&half, from + i, sizeof(half));
        half ^= (uint32_t)key; /* both halves are equal */
        memcpy(to + i, &half, sizeof(half));
        i += sizeof(half);
    }
    for (; i < n; i++) {
        to[i] = (char)((uint8_t)from[i] ^ (uint8_t)key);
        key = key >> 8 | key << 56;
    }
}

void xor_four_plain(char *to, const char *from, size_t n, const uint8_t key[4],
                    size_t at)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (char)((uint8_t)from[i] ^ key[(at + i) & 3]);
}

void xor_four_narrow(char *to, const char *from, size_t n, const uint8_t key[4],
                     size_t at)
{
    uint64_t k = xor_turned_key(key, at);
    size_t i = 0;
#ifdef __x86_64__
    __m128i v = _mm_set1_epi64x((long long)k);

    for (; n - i >= 32; i += 32) {
        __m128i a = _mm_loadu_si128((const __m128i *)(from + i));
        __m128i b = _mm_loadu_si128((const __m128i *)(from + i + 16));

        _mm_storeu_si128((__m128i *)(to + i), _mm_xor_si128(a, v));
        _mm_storeu_si128((__m128i *)(to + i + 16), _mm_xor_si128(b, v));
    }
#endif
    xor_words(to + i, from + i, n - i, k);
}

WIDE void xor_four_wide(char *to, const char *from, size_t n,
                        const uint8_t key[4], size_t at)
{
    uint64_t k = xor_turned_key(key, at);
    size_t i = 0;
#ifdef __x86_64__
    __m256i v = _mm256_set1_epi64x((long long)k);

    for (; n - i >= 64; i += 64) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(from + i));
        __m256i b = _mm256_loadu_si256((const __m256i *)(from + i + 32));

        _mm256_storeu_si256((__m256i *)(to + i), _mm256_xor_si256(a, v));
        _mm256_storeu_si256((__m256i *)(to + i + 32), _mm256_xor_si256(b, v));
    }
    if (n - i >= 32) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(from + i));

        _mm256_storeu_si256((__m256i *)(to + i), _mm256_xor_si256(a, v));
        i += 32;
    }
#endif
    xor_words(to + i, from + i, n - i, k);
}

int xor_is_wide(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

void xor_four(char *to, const char *from, size_t n, const uint8_t key[4],
              size_t at)
{
    if (n < SHORT_BYTES)
        xor_words(to, from, n, xor_turned_key(key, at));
    else if (xor_is_wide())
        xor_four_wide(to, from, n, key, at);
    else
        xor_four_narrow(to, from, n, key, at);
}
