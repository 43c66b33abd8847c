#ifndef BASE_JSON_INTERNAL_H
#define BASE_JSON_INTERNAL_H

/* Shared by the json files only: the walk over a text, the set of keys seen,
 * numbers, and undecoded strings. */

#include "base/json.h"
#include "base/utf8.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define JSON_INLINE inline __attribute__((always_inline))

/* The part of a string between its quotes, known to be valid. */
struct json_raw {
    struct str s;
    bool is_escaped; /* contains a backslash */
};

/* A key that was seen, by its position in the text. */
struct json_key {
    uint32_t hash;
    uint32_t at;      /* after the opening quote */
    uint32_t n_twice; /* twice the length, plus one if it has a backslash */
};

enum {
    JSON_KEYS_INLINE = 48, /* keys of open objects that need no malloc */
    JSON_KEYS_LINEAR = 24, /* up to here each key is compared with all others */
};

/* The keys of all open objects, innermost last. */
struct json_keys {
    const char *text;
    struct json_key *v;
    uint32_t n, cap;
    struct json_key small[JSON_KEYS_INLINE];
};

struct json_frame {
    struct json *node;
    struct json **tail; /* where to link the next child */
    uint64_t seen;      /* a bit per key hash; no bit: certainly no duplicate */
    uint32_t n;         /* children */
    uint32_t first_key; /* index in json_keys */
    char close;         /* the closing bracket; 0 outside of all */
};

struct json_walk {
    const char *start, *end;
    unsigned flags;
    const char *what, *bad; /* the error and its position */
    enum err err;

    /* The tree, if one is built. */
    struct arena *arena;
    struct json *root;
    struct json *nodes;
    size_t n_nodes, n_slab;   /* left in this slab; size of the last one */
    struct json *member_node; /* its key is known, its value comes next */

    /* Called for each member of the outermost object when no tree is built. */
    void (*on_member)(struct json_walk *w, struct json_raw key, struct str v);
    void *ctx;
    struct json_raw member;
    const char *member_at;

    struct json_keys keys;
    int depth;
    struct json_frame frames[JSON_DEPTH_MAX + 1];
};

/* Walk the whole text and build a tree if `arena` is given. On false, what, bad
 * and err are set. */
MUST_USE bool json_walk(struct json_walk *w, struct str text, unsigned flags,
                        struct arena *arena);
void json_walk_init(struct json_walk *w);
void json_walk_error(const struct json_walk *w, struct json_error *err);

/* Check a string from after its opening quote. Returns its closing quote, or
 * NULL. */
const char *json_walk_string(struct json_walk *w, const char *p,
                             bool *is_escaped);

/* Strings. Decoding never makes them longer. */
size_t json_decode(char *to, struct str raw);
int json_raw_cmp(struct json_raw a, struct json_raw b);
bool json_raw_is(struct json_raw raw, struct str decoded);

/* A hash of the length and of the first and last eight decoded bytes.
 * Collisions are easy to construct; correctness does not depend on it. */
uint32_t json_raw_hash(struct json_raw raw);

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "words read from a text and words put together byte by byte "
               "are to have the same hash");

static inline uint32_t json_hash(uint64_t first, uint64_t last, uint64_t n)
{
    uint64_t h = (first ^ n) * 0x9e3779b97f4a7c15;

    h = (h ^ h >> 32 ^ last) * 0xd6e8feb86659fd93;
    return (uint32_t)(h >> 32);
}

/* Whether a byte is ASCII and may appear unescaped in a string. The one signed
 * comparison excludes control characters and everything from 0x80 on. */
static inline bool json_is_plain(char c)
{
    return (signed char)c >= 0x20 && c != '"' && c != '\\';
}

#ifdef __SSE2__
/* The same for sixteen bytes: a bit for each byte that is not plain. */
static inline unsigned json_odd_bits(__m128i x)
{
    __m128i quote = _mm_cmpeq_epi8(x, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(x, _mm_set1_epi8('\\'));
    __m128i low = _mm_cmplt_epi8(x, _mm_set1_epi8(0x20));

    return (unsigned)_mm_movemask_epi8(
        _mm_or_si128(_mm_or_si128(quote, slash), low));
}
#endif

/* Keys. grow: false without memory. first_double: call once all keys are in;
 * the position of the first duplicate, or NULL. */
bool json_keys_grow(struct json_keys *k);
bool json_keys_has(const struct json_keys *k, uint32_t first,
                   const struct json_key *key);
const char *json_keys_first_double(struct json_keys *k, uint32_t first);
void json_keys_fini(struct json_keys *k);

/* The double nearest to a real of valid syntax. Infinity if it does not fit. */
double json_to_real(struct str digits);

enum { JSON_REAL_BYTES = 32 };

/* The fewest digits that read back as v, which is finite. Returns the number of
 * bytes used, at most JSON_REAL_BYTES. */
size_t json_real_write(char *to, double v);

#endif
