#include "choose/layers/choose.h"

#include "base/clock.h"
#include "test/lib/choose_stage.h"
#include "test/t.h"

static struct arena arena;
static struct choose_menu_item *items;
static size_t n_items;

static enum err make(void)
{
    arena_fini(&arena);
    arena_init(&arena, (stage.all.n + 1) * CHOOSE_MENU_BYTES);
    return choose_menu(&arena, &stage.all, &stage.eyes, &items, &n_items);
}

static void leave(void)
{
    arena_fini(&arena);
    stage_leave();
}

TEST(a_menu_has_everybody_by_what_platforms_take)
{
    STAGE("Anna", "data-mover", "v2.1", "very-long-name-of-an-agent-number-1");
    CHECK(make() == OK);
    CHECK_INT(n_items, 4);
    CHECK_STR(items[0].command, "anna");
    CHECK_STR(items[1].command, "data_mover");
    CHECK_STR(items[2].command, "v2_1");
    CHECK_STR(items[3].command, "very_long_name_of_an_agent_numbe");
    CHECK(items[3].agent == &stage.list[3] && !items[3].instead);
    leave();
}

TEST(a_command_is_in_a_menu_once_and_the_other_is_named)
{
    STAGE("a-b", "a.b", "a_b");
    CHECK(make() == OK);
    CHECK_INT(n_items, 3);
    CHECK(!items[0].command.n && items[0].instead == &stage.list[2]);
    CHECK(!items[1].command.n && items[1].instead == &stage.list[2]);
    CHECK_STR(items[2].command, "a_b");
    stage_hide(2); /* and what is not seen takes no command away */
    CHECK(make() == OK);
    CHECK_INT(n_items, 2);
    CHECK_STR(items[0].command, "a_b");
    CHECK(!items[1].command.n && items[1].instead == &stage.list[0]);
    leave();
}

TEST(nobody_makes_an_empty_menu)
{
    stage_of(0, NULL);
    CHECK(make() == OK && n_items == 0);
    leave();
}

static int by_name(const void *a, const void *b)
{
    return str_cmp_nocase(str_of(a), str_of(b));
}

/* Names of few letters, some of them around the length of the cut. */
static size_t some_names(struct rand r, char names[][48], const char **list)
{
    static const char letters[] = "ab-_.";
    size_t n = 0;

    for (size_t i = 0; i < STAGE_AGENTS; i++) {
        size_t at = rand_u64(r) % 2 ? 0 : 29, end = at + 1 + rand_u64(r) % 5;

        memset(names[i], 'a', at);
        for (size_t k = at; k < end; k++)
            names[i][k] = letters[rand_u64(r) % (k ? 5 : 2)];
        names[i][end] = '\0';
    }
    qsort(names, STAGE_AGENTS, sizeof(names[0]), by_name);
    for (size_t i = 0; i < STAGE_AGENTS; i++)
        if (!n || strcmp(list[n - 1], names[i]) != 0)
            list[n++] = names[i];
    return n;
}

TEST(what_a_menu_says_leads_where_it_says)
{
    struct rand_seeded chance = {5};
    int rounds = getenv("STRESS") ? 500 * 1000 : 2000, n_instead = 0;
    const char *list[STAGE_AGENTS];
    char names[STAGE_AGENTS][48];

    for (int i = 0; i < rounds; i++) {
        size_t n = some_names(rand_seeded(&chance), names, list);

        stage_of(n, list);
        if (i % 2)
            stage_hide((size_t)i / 2 % n);
        CHECK(make() == OK);
        for (size_t k = 0; k < n_items; k++) {
            char room[AGENT_NAME_MAX + 1];
            struct str own = choose_command(items[k].agent->name, room);
            const struct agent *led = choose_by_command(
                &stage.all, &stage.eyes, str_sub(own, 0, COMMAND_MAX));

            CHECK(led ==
                  (items[k].command.n ? items[k].agent : items[k].instead));
            n_instead += items[k].instead != NULL;
        }
        leave();
    }
    CHECK(n_instead > rounds / 10);
}
