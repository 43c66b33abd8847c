/* A restored index gives the same answers as the saved one, to the last bit. A
 * snapshot that is damaged, of another state or of another make is rejected and
 * leaves nothing behind. */
#include "base/fault.h"
#include "test/t.h"

#include "test/lib/index_stage.h"

static const uint8_t stamp[INDEX_STAMP_BYTES] = "seq 7, model m";

static bool add(void *ctx, struct str bytes)
{
    buf_add_str(ctx, bytes);
    return true;
}

static void save(const struct index *x, struct buf *out)
{
    buf_init(out, 64 << 20);
    CHECK(index_save(x, stamp, add, out) == OK);
    CHECK(!out->over);
}

static struct world *busy_world_of(uint32_t n, uint32_t dims, uint32_t quick)
{
    struct world *w = world_of_parts(n, dims, quick, dims + 1);

    for (uint32_t i = 0; i < n; i++)
        put_any(w, i);
    for (uint32_t i = 0; i < 3 * n; i++)
        any_change(w);
    return w;
}

static struct world *busy_world(uint32_t n, uint32_t dims)
{
    return busy_world_of(n, dims, 0);
}

static void check_same(struct world *w, struct index *other, int n_queries)
{
    static struct index_hit a[400], b[400];

    CHECK(index_check(other));
    for (int i = 0; i < n_queries; i++) {
        const struct index_query *q = any_query(w);
        size_t n = search_hits(w->x, q, a, 400);

        CHECK_INT(search_hits(other, q, b, 400), n);
        for (size_t k = 0; k < n; k++)
            CHECK(hits_are_same(&a[k], &b[k]));
    }
}

static void check_round(uint32_t n, uint32_t dims, uint32_t quick)
{
    static const uint64_t other_seed[2] = {5, 6};
    struct world *w = busy_world_of(n, dims, quick);
    struct index *x = index_new(w->x->max_docs, other_seed);
    struct why why = {""};
    struct buf b, again;

    CHECK(x);
    save(w->x, &b);
    CHECK(index_restore(x, stamp, buf_str(&b), &why) == OK);
    CHECK_INT(index_dims(x), dims);
    CHECK_INT(index_quick(x), quick);
    CHECK_INT(index_stats(x).documents, index_stats(w->x).documents);
    CHECK_INT(index_stats(x).vectors, index_stats(w->x).vectors);
    CHECK_INT(index_stats(x).terms, index_stats(w->x).terms);
    check_same(w, x, 60);
    /* And it can be changed, and saved again. */
    for (uint32_t i = 0; i < n; i += 3) {
        struct index_change *c;

        any_agent(w, i);
        CHECK(index_prepare(x, &w->agent, w->vectors, &c) == OK);
        index_put(x, i, c);
        CHECK(index_prepare(w->x, &w->agent, w->vectors, &c) == OK);
        index_put(w->x, i, c);
    }
    save(x, &again);
    check_same(w, x, 20);
    buf_fini(&b);
    buf_fini(&again);
    index_free(x);
    world_free(w);
}

TEST(what_is_restored_answers_the_same)
{
    check_round(120, 24, 0);
    check_round(40, 256, 0);
    check_round(30, 1, 0);
    check_round(1, 8, 0);
    check_round(0, 8, 0);
}

TEST(vectors_of_two_parts_are_saved_as_they_are)
{
    check_round(120, 24, 10);
    check_round(40, 640, 256);
    check_round(30, 2, 1);
}

/* An agent whose vectors are quick for now still has them so, and both
 * levels. */
TEST(what_is_for_now_is_so_after_a_restart)
{
    struct index *x = index_new(100, stage_seed), *fresh;
    struct agent a = {.name = STR("a"), .kind = AGENT_PLATFORM};
    const float v[2][4] = {{1, 0, 0, 0}, {1, 0, 1, 0}};
    uint8_t packed[8 + 2 * 4];
    struct index_change *c;
    struct buf b;

    fresh = index_new(100, stage_seed);
    CHECK(x && fresh);
    index_set_parts(x, 4, 2);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(vec_pack(v[i], 4, packed));
        if (!i)
            CHECK(index_set_quick_reference(x, packed, 1) == OK);
        CHECK(index_prepare(x, &a, packed, &c) == OK);
        if (!i)
            index_change_for_now(c);
        index_put(x, i, c);
    }
    save(x, &b);
    CHECK(index_restore(fresh, stamp, buf_str(&b), NULL) == OK);
    CHECK(index_is_for_now(fresh, 0) && !index_is_for_now(fresh, 1));
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(index_quick_level(fresh, i).mid == index_quick_level(x, i).mid);
        CHECK(index_level(fresh, i).mid == index_level(x, i).mid);
    }
    CHECK(index_quick_level(fresh, 0).mid > 0.9F);
    CHECK(index_level(fresh, 1).mid < 0);
    buf_fini(&b);
    index_free(x);
    index_free(fresh);
}

TEST(an_index_without_vectors_is_saved_too)
{
    struct world *w = world_new(20, 4, 1);
    struct index *x = index_new(1000, stage_seed);
    struct why why = {""};
    struct buf b;

    CHECK(x);
    index_set_dims(w->x, 0);
    for (uint32_t i = 0; i < 20; i++)
        put_any(w, i);
    save(w->x, &b);
    CHECK(index_restore(x, stamp, buf_str(&b), &why) == OK);
    CHECK_INT(index_dims(x), 0);
    check_same(w, x, 20);
    buf_fini(&b);
    index_free(x);
    world_free(w);
}

static void check_refused(struct index *x, const uint8_t *with, struct str s,
                          enum err want)
{
    struct why why = {""};

    CHECK_INT(index_restore(x, with, s, &why), want);
    CHECK(why.text[0]);
    CHECK(index_check(x));
    CHECK_INT(index_stats(x).agents, 0);
    CHECK_INT(index_stats(x).documents, 0);
    CHECK_INT(index_stats(x).terms, 0);
    CHECK_INT(index_stats(x).vectors, 0);
    CHECK_INT(index_dims(x), 5);
}

/* Every byte and every length: memory of its own for each, so that a sanitizer
 * sees a step too far. */
TEST(what_is_damaged_is_refused_wherever_the_damage_is)
{
    struct world *w = busy_world(6, 5);
    struct index *x = index_new(1000, stage_seed);
    struct buf b;

    CHECK(x);
    index_set_dims(x, 5);
    save(w->x, &b);
    for (size_t n = 0; n < b.n; n += n < 400 ? 1 : 13) {
        char *cut = malloc(n + 1);

        CHECK(cut);
        memcpy(cut + 1, b.p, n);
        check_refused(x, stamp, (struct str){cut + 1, n}, ERR_BAD_CONFIG);
        free(cut);
    }
    for (size_t at = 0; at < b.n; at += at < 400 ? 1 : 7) {
        b.p[at] ^= 0x10;
        check_refused(x, stamp, buf_str(&b), ERR_BAD_CONFIG);
        b.p[at] ^= 0x10;
    }
    buf_add_char(&b, 'x');
    check_refused(x, stamp, buf_str(&b), ERR_BAD_CONFIG);
    buf_fini(&b);
    index_free(x);
    world_free(w);
}

TEST(of_another_stamp_it_is_refused)
{
    struct world *w = busy_world(6, 5);
    struct index *x = index_new(1000, stage_seed);
    uint8_t other[INDEX_STAMP_BYTES];
    struct buf b;

    CHECK(x);
    index_set_dims(x, 5);
    save(w->x, &b);
    memcpy(other, stamp, sizeof(other));
    other[INDEX_STAMP_BYTES - 1] ^= 1;
    check_refused(x, other, buf_str(&b), ERR_BAD_CONFIG);
    CHECK(index_restore(x, stamp, buf_str(&b), NULL) == OK);
    buf_fini(&b);
    index_free(x);
    world_free(w);
}

/* Words and stems are the same, but a document is made of them otherwise. */
TEST(of_another_make_it_is_refused)
{
    struct world *w = busy_world(6, 5);
    struct index *x = index_new(1000, stage_seed);
    struct buf b;

    CHECK(x);
    index_set_dims(x, 5);
    save(w->x, &b);
    fault_arm_at("index.light_tags", 1);
    check_refused(x, stamp, buf_str(&b), ERR_BAD_CONFIG);
    fault_arm(0);
    CHECK(index_restore(x, stamp, buf_str(&b), NULL) == OK);
    buf_fini(&b);
    index_free(x);
    world_free(w);
}

TEST(one_that_is_too_large_for_the_index_is_refused)
{
    struct world *w = busy_world(30, 5);
    size_t docs = index_stats(w->x).documents;
    struct index *x = index_new(docs - 1, stage_seed);
    struct buf b;

    CHECK(x && docs > 31);
    index_set_dims(x, 5);
    save(w->x, &b);
    check_refused(x, stamp, buf_str(&b), ERR_LIMIT);
    index_free(x);
    x = index_new(docs, stage_seed);
    CHECK(x && index_restore(x, stamp, buf_str(&b), NULL) == OK);
    buf_fini(&b);
    index_free(x);
    world_free(w);
}

static bool refuse(void *ctx, struct str bytes)
{
    int *left = ctx;

    (void)bytes;
    return (*left)-- > 0;
}

TEST(a_write_that_fails_is_said)
{
    struct world *w = busy_world(400, 64);
    int n = 0;

    for (int left = 0;; left++) {
        int l = left;
        enum err e = index_save(w->x, stamp, refuse, &l);

        if (e == OK)
            break;
        CHECK_INT(e, ERR_IO);
        n++;
    }
    CHECK(n > 3); /* pieces */
    world_free(w);
}
