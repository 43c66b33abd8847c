/* Everything that can fail fails once, each in a run of its own: the index is
 * then as it was, in order, and goes on. */
#include "test/t.h"

#include "test/lib/index_stage.h"

#include "base/fault.h"

static const uint8_t stamp[INDEX_STAMP_BYTES] = "s";

/* Whatever it is, others are untouched by it. */
static void check_goes_on(struct world *w)
{
    fault_arm(0);
    CHECK(index_check(w->x));
    CHECK(search_is_exact(w->x, any_query(w), 10));
}

static struct world *some_world(void)
{
    struct world *w = world_new(30, 10, 4);

    for (uint32_t i = 0; i < 8; i++)
        put_any(w, i);
    return w;
}

/* Enough that every list must grow. */
static enum err grow(struct world *w)
{
    struct index_change *changes[10];
    enum err e = OK;
    size_t n = 0;

    for (; !e && n < 10; n++) {
        char name[24];

        any_agent(w, (uint32_t)n);
        snprintf(name, sizeof(name), "c%zu", n);
        w->agent.visibility = VISIBILITY_PRIVATE;
        w->agent.creator = str_of(name);
        e = index_prepare(w->x, &w->agent, w->vectors, &changes[n]);
        if (e)
            CHECK(!changes[n]);
    }
    n -= e != OK;
    for (size_t i = 0; i < n; i++)
        if (e)
            index_forget(w->x, changes[i]);
        else
            index_put(w->x, (uint32_t)i, changes[i]);
    return e;
}

TEST(preparing_survives_every_fault)
{
    long nth = 0;
    bool fired;

    do {
        struct world *w = some_world();
        struct index_stats before;
        enum err e;

        index_set_dims(w->x, w->dims); /* the first block is to come */
        before = index_stats(w->x);
        fault_arm(++nth);
        e = grow(w);
        fired = fault_fired();
        CHECK(fired ? e == ERR_NOMEM : e == OK);
        if (fired) {
            CHECK_INT(index_stats(w->x).documents, before.documents);
            CHECK_INT(index_stats(w->x).terms, before.terms);
        }
        check_goes_on(w);
        world_free(w);
    } while (fired);
    CHECK(nth > 100);
}

TEST(moving_survives_every_fault)
{
    struct index_class to = {INDEX_ORG, STR("somewhere else")};
    long nth = 0;
    bool fired;

    do {
        struct world *w = some_world();
        uint32_t was = w->x->agents[7]->cls;
        enum err e;

        fault_arm(++nth);
        e = index_move(w->x, 7, to);
        fired = fault_fired();
        CHECK(fired ? e == ERR_NOMEM : e == OK);
        CHECK(!fired || w->x->agents[7]->cls == was);
        check_goes_on(w);
        world_free(w);
    } while (fired);
    CHECK(nth > 2);
}

TEST(making_one_survives_every_fault)
{
    struct index *x;
    long nth = 0;

    do {
        fault_arm(++nth);
        x = index_new(100, stage_seed);
        CHECK(fault_fired() == !x);
        index_free(x);
    } while (!x);
    fault_arm(0);
    CHECK(nth > 1);
}

TEST(searching_survives_every_fault)
{
    long nth = 0;
    bool fired;

    do {
        struct world *w = some_world();
        const struct index_query *q = any_query(w);
        enum err e;

        w->query.sees_all = false;
        fault_arm(++nth);
        e = index_search_begin(w->x, q);
        fired = fault_fired();
        CHECK(fired ? e == ERR_NOMEM : e == OK);
        index_search_end(w->x);
        check_goes_on(w);
        world_free(w);
    } while (fired);
    CHECK(nth > 6);
}

static bool add(void *ctx, struct str bytes)
{
    buf_add_str(ctx, bytes);
    return true;
}

TEST(saving_and_restoring_survive_every_fault)
{
    struct world *w = some_world();
    long nth = 0;
    bool fired;

    do {
        struct index *x = index_new(w->x->max_docs, stage_seed);
        struct buf b;
        enum err e;

        CHECK(x);
        buf_init(&b, 16 << 20);
        fault_arm(++nth);
        e = index_save(w->x, stamp, add, &b);
        if (!e)
            e = index_restore(x, stamp, buf_str(&b), NULL);
        fired = fault_fired();
        fault_arm(0);
        CHECK(fired ? e != OK : e == OK);
        CHECK(index_check(x));
        CHECK_INT(index_stats(x).agents, fired ? 0 : 8);
        CHECK(!fired || index_stats(x).terms == 0);
        buf_fini(&b);
        index_free(x);
    } while (fired);
    CHECK(nth > 20);
    world_free(w);
}
