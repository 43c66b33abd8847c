#ifndef BASE_JSON_INTERNAL_H
#define BASE_JSON_INTERNAL_H

/* What the files of json share: the walk over a text, the set of keys it has
 * seen, numbers, and strings as they stand in a text. Nobody else includes
 * this. */

#include "base/json.h"
#include "base/utf8.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define JSON_INLINE inline __attribute__((always_inline))

/* A string as it stands between its quotes, known to be valid. */
struct json_raw {
    struct str s;
    bool is_escaped; /* has a backslash somewhere */
};

/* A key that was seen, told by where it stands in the text. */
struct json_key {
    uint32_t hash;
    uint32_t at;      /* behind the opening quote */
    uint32_t n_twice; /* twice the length, and one if it has a backslash */
};

enum {
    JSON_KEYS_INLINE = 48, /* keys of open objects that need no malloc */
    JSON_KEYS_LINEAR = 24, /* members up to which each is compared to all */
};

/* The keys of all objects that are open, innermost last. */
struct json_keys {
    const char *text;
    struct json_key *v;
    uint32_t n, cap;
    struct json_key small[JSON_KEYS_INLINE];
};

struct json_frame {
    struct json *node;
    struct json **tail; /* where the next kid is hung */
    uint64_t seen;      /* a bit per key hash: no bit, surely no duplicate */
    uint32_t n;         /* kids */
    uint32_t first_key; /* in json_keys */
    char close;         /* the bracket that ends it; 0 outside of all */
};

struct json_walk {
    const char *start, *end;
    unsigned flags;
    const char *what, *bad; /* the error, and where */
    enum err err;

    /* The tree, when one is built. */
    struct arena *arena;
    struct json *root;
    struct json *nodes;
    size_t n_nodes, n_slab;   /* left in this slab; size of the last one */
    struct json *member_node; /* has its key, its value comes next */

    /* Told each member of the outermost object, when none is built. */
    void (*on_member)(struct json_walk *w, struct json_raw key, struct str v);
    void *ctx;
    struct json_raw member;
    const char *member_at;

    struct json_keys keys;
    int depth;
    struct json_frame frames[JSON_DEPTH_MAX + 1];
};

/* Walk the whole text: with a tree in `arena` when there is one, else without.
 * False with what, bad and err set. */
MUST_USE bool json_walk(struct json_walk *w, struct str text, unsigned flags,
                        struct arena *arena);
void json_walk_init(struct json_walk *w);
void json_walk_error(const struct json_walk *w, struct json_error *err);

/* Check a string from behind its opening quote; the closing quote, or NULL. */
const char *json_walk_string(struct json_walk *w, const char *p,
                             bool *is_escaped);

/* Strings. Decoding never makes them longer. */
size_t json_decode(char *to, struct str raw);
int json_raw_cmp(struct json_raw a, struct json_raw b);
bool json_raw_is(struct json_raw raw, struct str decoded);

/* A hash for telling most keys apart: of the length, the first eight bytes and
 * the last eight, all decoded. It is easy to collide on purpose, and nothing
 * relies on that being hard. */
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

/* Whether a byte may stand in a string as it is and is ASCII. The one signed
 * comparison refuses control characters and everything from 0x80 on. */
static inline bool json_is_plain(char c)
{
    return (signed char)c >= 0x20 && c != '"' && c != '\\';
}

#ifdef __SSE2__
/* The same for sixteen: a bit for each byte that is not plain. */
static inline unsigned json_odd_bits(__m128i x)
{
    __m128i quote = _mm_cmpeq_epi8(x, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(x, _mm_set1_epi8('\\'));
    __m128i low = _mm_cmplt_epi8(x, _mm_set1_epi8(0x20));

    return (unsigned)_mm_movemask_epi8(
        _mm_or_si128(_mm_or_si128(quote, slash), low));
}
#endif

/* Keys. add: false when memory is gone. first_double: after all are in, where
 * the first key stands that was there before; NULL when there is none. */
bool json_keys_grow(struct json_keys *k);
bool json_keys_has(const struct json_keys *k, uint32_t first,
                   const struct json_key *key);
const char *json_keys_first_double(struct json_keys *k, uint32_t first);
void json_keys_fini(struct json_keys *k);

/* Numbers: a real whose grammar was checked, to the nearest double. Infinity
 * when it does not fit. */
double json_to_real(struct str digits);

enum { JSON_REAL_BYTES = 32 };

/* The fewest digits that read back as v, which is finite. Returns how many of
 * the JSON_REAL_BYTES were used. */
size_t json_real_write(char *to, double v);

#endif
