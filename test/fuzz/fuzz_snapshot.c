/* Any bytes as a snapshot of the index. The first byte chooses how:
 *
 *     0  the bytes are the snapshot
 *     1  as a patch of a good one: two bytes where, one byte what; 0xffff
 *        ends it
 *     2  as one that is cut, two bytes where, and then patched
 *     3  the bytes stand behind a good head
 *
 * The sum is made to fit but for 0, or nothing else would ever be reached.
 * What is refused is refused with words and leaves nothing behind. What is
 * taken is in order, answers as the slow search does, and can be saved. */
#include <assert.h>

#define CHECK(expr) assert(expr)

#include "test/lib/index_stage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD_BYTES = 104, SUM_BYTES = 8, PIECE_BYTES = 64 * 1024 };

static const uint8_t stamp[INDEX_STAMP_BYTES] = "fuzz";

static bool add(void *ctx, struct str bytes)
{
    buf_add_str(ctx, bytes);
    return true;
}

static struct str good(void)
{
    static struct buf b;

    if (b.n == 0) {
        struct world *w = world_new(5, 3, 8);

        for (uint32_t i = 0; i < 5; i++)
            put_any(w, i);
        buf_init(&b, 1 << 20);
        assert(!index_save(w->x, stamp, add, &b));
        world_free(w);
    }
    return buf_str(&b);
}

/* As snapshot.c makes it. */
static void mend_sum(char *p, size_t n)
{
    uint64_t sum = 0;

    if (n < SUM_BYTES)
        return;
    for (size_t at = 0; at < n - SUM_BYTES; at += PIECE_BYTES) {
        const uint64_t seed[2] = {sum, 0x736e617073686f74};
        struct str all = {p, n - SUM_BYTES};

        sum = hash_bytes(str_sub(all, at, at + PIECE_BYTES), seed);
    }
    memcpy(p + n - SUM_BYTES, &sum, SUM_BYTES);
}

static size_t two_bytes(struct str *rest)
{
    const unsigned char *r = (const unsigned char *)rest->p;
    size_t n = rest->n >= 2 ? r[0] | (size_t)r[1] << 8 : 0xffff;

    *rest = str_sub(*rest, 2, rest->n);
    return n;
}

static struct str make(uint8_t how, struct str rest)
{
    struct str from = good();
    size_t n = how == 3 ? HEAD_BYTES + rest.n + SUM_BYTES : from.n, at;
    char *p;

    if (how == 2)
        n = two_bytes(&rest) % from.n;
    p = malloc(n + 1);
    assert(p);
    memcpy(p, from.p, how == 3 ? HEAD_BYTES : n);
    if (how == 3)
        memcpy(p + HEAD_BYTES, rest.p, rest.n);
    while (how != 3 && n > 0 && rest.n >= 3 &&
           (at = two_bytes(&rest)) != 0xffff) {
        p[at % n] = rest.p[0];
        rest = str_sub(rest, 1, rest.n);
    }
    mend_sum(p, n);
    return (struct str){p, n};
}

static void check_taken(struct index *x)
{
    float vector[INDEX_DIMS_MAX] = {1, -1, 0.5F};
    struct index_query q = {
        .text = STR("baba kebax limox"), .vector = vector, .sees_all = true};
    struct buf b;

    assert(index_check(x));
    assert(search_is_exact(x, &q, 50));
    q.fusion = INDEX_RRF;
    assert(search_is_exact(x, &q, 50));
    buf_init(&b, 16 << 20);
    assert(!index_save(x, stamp, add, &b));
    buf_fini(&b);
}

static void check(struct str bytes)
{
    struct index *x = index_new(1000, stage_seed);
    struct why why = {""};

    assert(x);
    if (index_restore(x, stamp, bytes, &why)) {
        assert(why.text[0]);
        assert(index_check(x));
        assert(index_stats(x).documents == 0 && index_stats(x).terms == 0);
    } else {
        check_taken(x);
    }
    index_free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data + 1, size ? size - 1 : 0}, made;

    if (size == 0)
        return 0;
    if (data[0] == 0) {
        check(rest);
        return 0;
    }
    made = make((uint8_t)((data[0] - 1) % 3 + 1), rest);
    check(made);
    free((char *)made.p);
    return 0;
}
