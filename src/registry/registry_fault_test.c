/* Every step fails once, those of the store included: everything settled as
 * done is there, in memory and after a restart, and nothing else is. */
#include "test/lib/registry_stage.h"

#define AGENT(n)                                                          \
    {                                                                     \
        .name = {n, sizeof(n) - 1}, .url = {"echo:", 5}, .description = { \
            "d",                                                          \
            1                                                             \
        }                                                                 \
    }

/* The result of each step of the story. */
struct story {
    enum err configured, anna, patched, granted, bob, removed, again;
};

static void tell(struct stage *s, struct story *y)
{
    static const struct agent first[] = {AGENT("a"), AGENT("b")};
    static const struct agent second[] = {AGENT("b"), AGENT("c")};

    y->configured = stage_configure(s, first, 2);
    y->anna = stage_put(s, &stage_anna,
                        "{\"name\":\"x\",\"visibility\":\"shared\",\"skills\":"
                        "[{\"id\":\"s\",\"name\":\"swim\"}]}");
    y->patched = stage_patch(s, &stage_anna, "x", "{\"title\":\"X\"}");
    y->granted = stage_grant(s, &stage_anna, "x", "carl", "", 0);
    y->bob = stage_put(s, &stage_bob, "{\"name\":\"y\"}");
    y->removed = stage_remove(s, &stage_bob, "y");
    y->again = stage_configure(s, second, 2);
}

static bool is_unknown(const struct story *y)
{
    const enum err all[] = {y->configured, y->anna,    y->patched, y->granted,
                            y->bob,        y->removed, y->again};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i] == ERR_OUTCOME_UNKNOWN)
            return true;
    return false;
}

static void expect(const struct stage *s, const char *name, bool must)
{
    if (!!stage_find(s, NULL, name) != must)
        T_FAIL("fault at %s: %s is %s", fault_name(), name,
               must ? "lost" : "there");
}

static void expect_story(struct stage *s, const struct story *y)
{
    bool first = y->configured == OK, second = y->again == OK;
    const struct agent *x;

    expect(s, "a", first && !second);
    expect(s, "b", first || second);
    expect(s, "c", second);
    expect(s, "x", y->anna == OK);
    expect(s, "y", y->bob == OK && y->removed != OK);
    x = stage_find(s, NULL, "x");
    if (x)
        CHECK(x->revision == 1 + first + (y->patched == OK) &&
              x->title.n == (y->patched == OK) && x->n_skills == 1 &&
              x->n_grants == (y->granted == OK));
    if (x)
        CHECK(!!stage_find(s, &stage_carl, "x") == (y->granted == OK));
}

/* Where the fault hits the start itself, once more. */
static void start(struct stage *s)
{
    if (stage_start(s) == OK)
        return;
    CHECK(fault_fired());
    stage_end(s);
    if (stage_start(s) != OK)
        T_FAIL("fault at %s: %s", fault_name(), s->why.text);
}

/* The check reads the store too: the fault may hit it, once. */
static void check(struct stage *s)
{
    if (registry_check(s->r, &s->why) != OK &&
        registry_check(s->r, &s->why) != OK)
        T_FAIL("fault at %s: %s", fault_name(), s->why.text);
}

/* The story once, with the nth step that is called so (NULL: any) at fault;
 * whether it was met. */
static bool story_with_fault(const char *where, long nth)
{
    struct stage s;
    struct story y;
    bool fired;

    stage_prepare(&s);
    fault_arm_at(where, nth);
    start(&s);
    tell(&s, &y);
    expect_story(&s, &y);
    if (!is_unknown(&y)) {
        check(&s);
        registry_stop(s.r);
    }
    stage_end(&s);
    start(&s);
    if (!is_unknown(&y))
        expect_story(&s, &y);
    check(&s);
    fired = fault_fired();
    if (!fired)
        CHECK(!y.configured && !y.anna && !y.patched && !y.granted && !y.bob &&
              !y.removed && !y.again);
    stage_end(&s);
    stage_leave(&s);
    return fired;
}

/* The usual run takes every nineteenth step, and the first two of each step of
 * this module. STRESS=full takes all. */
TEST(every_fault_leaves_what_was_settled_and_nothing_else)
{
    const char *stress = getenv("STRESS");
    long stride = stress && strcmp(stress, "full") == 0 ? 1 : 19, nth = 1;

    while (story_with_fault(NULL, nth))
        nth += stride;
    CHECK(nth > 300); /* the sweep met the steps it is for */
}

TEST(every_step_of_its_own_may_fail)
{
    static const char *const steps[] = {
        "registry.entry",          "registry.grow",
        "registry.snapshot_read",  "registry.snapshot_room",
        "registry.snapshot_write", "registry.snapshot_sync",
    };

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        for (long nth = 1; nth <= 2; nth++)
            if (!story_with_fault(steps[i], nth) && nth == 1)
                T_FAIL("%s is never met", steps[i]);
}

TEST(a_store_that_has_failed_changes_nothing_in_memory)
{
    struct stage s;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"x\"}") == OK);
    fault_arm_at("store.sync", 1);
    CHECK(stage_remove(&s, &stage_anna, "x") == ERR_OUTCOME_UNKNOWN);
    CHECK(fault_fired() && stage_find(&s, &stage_anna, "x"));
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"y\"}") ==
          ERR_OUTCOME_UNKNOWN);
    CHECK(!stage_find(&s, &stage_anna, "y"));
    CHECK_INT(registry_stats(s.r).index.agents, 1);
    stage_end(&s);
    CHECK(stage_start(&s) == OK);
    stage_close(&s);
}

TEST(a_full_disk_refuses_and_holds_no_claim)
{
    struct stage s;

    stage_open(&s);
    fault_arm_at("store.op.full", 1);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"x\"}") == ERR_NO_SPACE);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"x\"}") == OK);
    fault_arm_at("store.op.full", 1);
    CHECK(stage_patch(&s, &stage_anna, "x", "{\"title\":\"X\"}") ==
          ERR_NO_SPACE);
    fault_arm_at("store.op.full", 1);
    CHECK(stage_grant(&s, &stage_anna, "x", "bob", "", 0) == ERR_NO_SPACE);
    fault_arm_at("store.op.full", 1);
    CHECK(stage_remove(&s, &stage_anna, "x") == ERR_NO_SPACE);
    stage_check(&s);
    CHECK(stage_remove(&s, &stage_anna, "x") == OK);
    stage_close(&s);
}
