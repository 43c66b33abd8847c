/* Out of memory when the index must follow a user to another org: the agent is
 * not found, and found again once there is memory. */
#include "test/lib/registry_stage.h"

static const char *const shared =
    "{\"name\":\"baker\",\"description\":\"bread\","
    "\"visibility\":\"shared\"}";

static size_t n_found(struct stage *s, const struct caller *c)
{
    struct eyes eyes = eyes_of(c, s->now_ms);

    return stage_search(s, &eyes, "bread").n;
}

/* It is available by name, and not found. */
static void check_lost(struct stage *s)
{
    CHECK(stage_find(s, &stage_carl, "baker"));
    CHECK(n_found(s, &stage_carl) == 0 && n_found(s, &stage_bob) == 0);
    CHECK_INT(registry_stats(s->r).index.agents, 0);
}

static void check_back(struct stage *s)
{
    stage_check(s);
    CHECK(n_found(s, &stage_carl) == 1 && n_found(s, &stage_bob) == 0);
}

static void lose(struct stage *s)
{
    stage_open(s);
    CHECK(stage_put(s, &stage_anna, shared) == OK);
    CHECK(n_found(s, &stage_bob) == 1);
    s->orgs[0].org = "zeta";
    fault_arm_at("index.class", 1);
    registry_user_moved(s->r, STR("anna"));
    CHECK(fault_fired());
    check_lost(s);
}

TEST(who_cannot_be_moved_comes_back_with_the_next_change)
{
    struct stage s;

    lose(&s);
    CHECK(stage_put(&s, &stage_bob, "{\"name\":\"x\"}") == OK);
    check_back(&s);
    stage_close(&s);
}

TEST(a_change_that_finds_no_memory_either_leaves_it_for_the_next)
{
    struct stage s;
    struct registry_change c;
    struct registry_by by;

    lose(&s);
    by = stage_by(&s, &stage_bob);
    for (int i = 0; i < 2; i++) {
        char name[] = {'x', (char)('0' + i), '\0'};
        enum err e = stage_begin_put(&s, &c, name, "{}", &by);

        if (i == 0)
            fault_arm_at("index.change", 1);
        CHECK(stage_commit(&s, &c, e) == OK);
        CHECK_INT(registry_stats(s.r).index.agents, i == 0 ? 1 : 3);
    }
    check_back(&s);
    stage_close(&s);
}

TEST(its_own_next_card_or_its_end_makes_it_good_too)
{
    struct stage s;

    lose(&s);
    CHECK(stage_patch(&s, &stage_anna, "baker", "{\"title\":\"B\"}") == OK);
    check_back(&s);
    s.orgs[0].org = "yeast";
    fault_arm_at("index.class", 1);
    registry_user_moved(s.r, STR("anna"));
    CHECK_INT(registry_stats(s.r).index.agents, 0);
    CHECK(stage_remove(&s, &stage_anna, "baker") == OK);
    stage_check(&s);
    stage_close(&s);
}

/* The creator moves while the card is being written. */
TEST(a_card_that_cannot_follow_its_creator_is_not_forgotten)
{
    struct stage s;
    struct registry_change c;
    struct registry_by by;
    enum err e;

    stage_open(&s);
    by = stage_by(&s, &stage_anna);
    e = stage_begin_put(&s, &c, "baker", shared, &by);
    s.orgs[0].org = "zeta";
    fault_arm_at("index.class", 1);
    CHECK(stage_commit(&s, &c, e) == OK);
    CHECK(fault_fired());
    check_lost(&s);
    CHECK(stage_put(&s, &stage_bob, "{\"name\":\"x\"}") == OK);
    check_back(&s);
    stage_restart(&s, true);
    check_back(&s);
    stage_close(&s);
}

/* The next start knows nothing of it: its snapshot is passed over. */
TEST(a_start_finds_it_again)
{
    struct stage s;

    lose(&s);
    stage_restart(&s, true);
    check_back(&s);
    stage_close(&s);
}

TEST(vectors_come_back_too)
{
    struct stage s;

    stage_prepare(&s);
    s.has_model = true;
    CHECK(stage_start(&s) == OK);
    CHECK(stage_put(&s, &stage_anna, shared) == OK);
    CHECK(registry_is_embedded(s.r, stage_find(&s, NULL, "baker")));
    s.orgs[0].org = "zeta";
    fault_arm_at("index.class", 1);
    registry_user_moved(s.r, STR("anna"));
    CHECK(fault_fired());
    registry_user_moved(s.r, STR("missing"));
    CHECK(n_found(&s, &stage_carl) == 1);
    CHECK(!registry_is_embedded(s.r, stage_find(&s, NULL, "baker")));
    CHECK_INT(registry_stats(s.r).unembedded, 1);
    stage_restart(&s, false);
    CHECK(registry_is_embedded(s.r, stage_find(&s, NULL, "baker")));
    stage_close(&s);
}
