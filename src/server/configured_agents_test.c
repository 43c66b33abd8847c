/* Putting the agents of the configuration into the registry, with a real store
 * that runs inline. */
#include "server/configured_agents.h"

#include "test/lib/walk_stage.h"

static struct configured_agents configured_agents;
static struct agent first[] = {{.name = STR("a"), .url = STR("echo:")}},
                    second[] = {{.name = STR("b"), .url = STR("echo:")},
                                {.name = STR("c"), .url = STR("echo:")}};
static struct config one, two;

static void begin(void)
{
    stage.n_agents = 0;
    stage_ground();
    stage.n_agents = 0;
    stage_start();
    one = (struct config){.agents = {first, 1}};
    two = (struct config){.agents = {second, 2}};
    configured_agents = (struct configured_agents){.loop = &stage.loop,
                                                   .log = &stage.log,
                                                   .store = stage.store,
                                                   .registry = stage.registry};
}

static void end(void)
{
    store_close(stage.store);
    stage.store = NULL;
    configured_agents_close(&configured_agents);
    stage_close();
}

/* All names, sorted. */
static const char *names(void)
{
    static char text[64];
    struct agents all = registry_agents(stage.registry);
    size_t n = 0;

    text[0] = '\0';
    for (size_t i = 0; i < all.n; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s ",
                              STR_ARG(all.list[i]->name));
    return text;
}

#define CHECK_NAMES(expected) CHECK_STR(str_of(names()), expected)

TEST(a_start_takes_the_agents_over_before_anybody_calls)
{
    struct why why;

    begin();
    CHECK_INT(configured_agents_open(&configured_agents, &one, &why), OK);
    CHECK_NAMES("a ");
    end();
}

TEST(a_reload_replaces_them_and_one_that_is_forgotten_changes_nothing)
{
    struct why why;

    begin();
    CHECK_INT(configured_agents_open(&configured_agents, &one, &why), OK);
    CHECK_INT(configured_agents_prepare(&configured_agents, &two, &why), OK);
    configured_agents_forget(&configured_agents);
    pass_ms(1000);
    CHECK_NAMES("a ");
    CHECK_INT(configured_agents_prepare(&configured_agents, &two, &why), OK);
    CHECK_NAMES("a ");
    configured_agents_commit(&configured_agents, &two);
    pass_ms(0);
    CHECK_NAMES("b c ");
    end();
}

TEST(of_two_reloads_in_one_turn_the_second_counts)
{
    struct why why;

    begin();
    CHECK_INT(configured_agents_open(&configured_agents, &one, &why), OK);
    CHECK_INT(configured_agents_prepare(&configured_agents, &two, &why), OK);
    configured_agents_commit(&configured_agents, &two);
    CHECK_INT(configured_agents_prepare(&configured_agents, &one, &why), OK);
    configured_agents_commit(&configured_agents, &one);
    pass_ms(0);
    CHECK_NAMES("a ");
    end();
}

TEST(a_full_disk_only_delays_it)
{
    struct why why;

    begin();
    CHECK_INT(configured_agents_open(&configured_agents, &one, &why), OK);
    CHECK_INT(configured_agents_prepare(&configured_agents, &two, &why), OK);
    fault_arm_at("store.op.full", 1);
    configured_agents_commit(&configured_agents, &two);
    pass_ms(0);
    CHECK(fault_fired() && configured_agents.has_failed);
    CHECK_NAMES("a ");
    pass_ms(500);
    CHECK_NAMES("b c ");
    CHECK(!configured_agents.has_failed);
    end();
}

TEST(somebody_elses_change_only_delays_it)
{
    struct registry_change c;
    struct caller anna = caller_named("anna");
    struct registry_by by = {.caller = &anna, .now_ms = 1000000};
    struct card_problems problems;
    struct arena arena;
    struct why why;

    begin();
    CHECK_INT(configured_agents_open(&configured_agents, &one, &why), OK);
    arena_init(&arena, 65536);
    registry_change_init(&c);
    CHECK_INT(registry_put(stage.registry, &c, STR("b"),
                           json_parse(&arena, STR("{\"description\":\"mine\"}"),
                                      0, NULL),
                           &by, &problems, &why),
              OK);
    CHECK_INT(configured_agents_prepare(&configured_agents, &two, &why), OK);
    configured_agents_commit(&configured_agents, &two);
    pass_ms(500);
    CHECK_NAMES("a ");
    CHECK(registry_settle(stage.registry, &c, &why) != OK);
    registry_change_fini(&c);
    arena_fini(&arena);
    pass_ms(1000);
    CHECK_NAMES("b c ");
    end();
}

TEST(it_is_tried_more_and_more_seldom)
{
    struct why why;
    int n = 0;

    begin();
    CHECK_INT(configured_agents_open(&configured_agents, &one, &why), OK);
    CHECK_INT(configured_agents_prepare(&configured_agents, &two, &why), OK);
    for (int64_t ms = 0; ms < 600000; ms += 500) {
        fault_arm_at("store.op.full", 1);
        if (ms == 0)
            configured_agents_commit(&configured_agents, &two);
        pass_ms(500);
        n += fault_fired();
    }
    CHECK(n >= 10 && n <= 20);
    fault_arm(0);
    pass_ms(60000);
    CHECK_NAMES("b c ");
    end();
}

/* The server stops while one reload is in the store and another is due. */
TEST(once_stopped_it_begins_nothing)
{
    struct why why;

    begin();
    CHECK_INT(configured_agents_open(&configured_agents, &one, &why), OK);
    CHECK_INT(configured_agents_prepare(&configured_agents, &two, &why), OK);
    configured_agents_commit(&configured_agents, &two);
    CHECK_INT(configured_agents_prepare(&configured_agents, &one, &why), OK);
    configured_agents_commit(&configured_agents, &one);
    configured_agents_stop(&configured_agents);
    registry_stop(stage.registry);
    pass_ms(60000);
    CHECK_NAMES("b c ");
    CHECK(!configured_agents.is_out);
    end();
}

TEST(more_than_there_may_be_turns_it_down)
{
    struct why why = {""};

    begin();
    CHECK_INT(configured_agents_open(&configured_agents, &one, &why), OK);
    two.registry.max_agents = 1; /* the caller's flag, not set yet */
    CHECK_INT(configured_agents_prepare(&configured_agents, &two, &why),
              ERR_LIMIT);
    CHECK(why.text[0]);
    pass_ms(1000);
    CHECK_NAMES("a ");
    two.registry.max_agents = 2;
    CHECK_INT(configured_agents_prepare(&configured_agents, &two, &why), OK);
    configured_agents_commit(&configured_agents, &two);
    pass_ms(0);
    CHECK_NAMES("b c ");
    end();
}

TEST(a_reload_that_allows_more_may_bring_more)
{
    struct registry_limits few = {.max_agents = 1, .max_skills = 10};
    struct why why = {""};

    begin();
    one.registry.max_agents = 1;
    CHECK_INT(configured_agents_open(&configured_agents, &one, &why), OK);
    registry_set_limits(stage.registry, &few);
    CHECK_INT(configured_agents_prepare(&configured_agents, &two, &why), OK);
    configured_agents_commit(&configured_agents, &two);
    pass_ms(0);
    CHECK_NAMES("b c ");
    end();
}

/* While a change is in the store the limits are not checked. The configuration
 * that exceeds them then waits, and a better one replaces it. */
TEST(too_many_while_a_change_is_out_wait_for_the_next_configuration)
{
    struct why why = {""};

    begin();
    CHECK_INT(configured_agents_open(&configured_agents, &one, &why), OK);
    CHECK_INT(configured_agents_prepare(&configured_agents, &two, &why), OK);
    configured_agents_commit(&configured_agents, &two);
    one.agents.list = second;
    one.agents.n = 2;
    one.registry.max_agents = 1;
    second[0].name = STR("d");
    CHECK_INT(configured_agents_prepare(&configured_agents, &one, &why), OK);
    configured_agents_commit(&configured_agents, &one);
    pass_ms(1000);
    CHECK_NAMES("b c ");
    CHECK(configured_agents.has_failed);
    one.registry.max_agents = 5;
    CHECK_INT(configured_agents_prepare(&configured_agents, &one, &why), OK);
    configured_agents_commit(&configured_agents, &one);
    pass_ms(0);
    CHECK_NAMES("c d ");
    CHECK(!configured_agents.has_failed);
    second[0].name = STR("b");
    end();
}
