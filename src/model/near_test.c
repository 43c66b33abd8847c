/* What is said is choose_test.c's; here: whom it depends on. */
#include "model/near.h"
#include "test/t.h"

enum { CROWD = 50 };

static struct agent agents[CROWD];
static const struct agent *list[CROWD];
static char names[CROWD][16];

static struct agents stage(size_t n, enum visibility v)
{
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof(names[i]), "echo%02zu", i);
        agents[i] = (struct agent){
            .name = str_of(names[i]), .visibility = v, .creator = STR("anna")};
        list[i] = &agents[i];
    }
    return (struct agents){.list = list, .n = n};
}

static const struct eyes bob = {.user = STR("bob")};

TEST(what_they_do_not_see_changes_no_byte_of_what_is_said)
{
    struct agents none = stage(0, VISIBILITY_PRIVATE);
    struct near a = near_find(&none, &bob, STR("echo")), b;
    struct agents hers = stage(CROWD, VISIBILITY_PRIVATE);
    struct why said, again;

    b = near_find(&hers, &bob, STR("echo"));
    CHECK(a.n == 0 && b.n == 0 && !a.sees_any && !b.sees_any);
    CHECK(near_say(&a, STR("echo"), &said) == ERR_AGENT_NOT_FOUND);
    CHECK(near_say(&b, STR("echo"), &again) == ERR_AGENT_NOT_FOUND);
    CHECK(strcmp(said.text, again.text) == 0);
    CHECK(strstr(said.text, "nor any other"));
}

TEST(only_those_they_see_are_offered)
{
    struct agents all = stage(CROWD, VISIBILITY_PRIVATE);
    struct near near;
    struct why why;

    agents[7].visibility = VISIBILITY_PUBLIC;
    near = near_find(&all, &bob, STR("echo"));
    CHECK(near.n == 1 && near.sees_any);
    CHECK_STR(near.names[0], "echo07");
    near = near_find(&all, &bob, STR("somebody-else"));
    CHECK(near.n == 0 && near.sees_any);
    CHECK(near_say(&near, STR("x\x1b[2J"), &why) == ERR_AGENT_NOT_FOUND);
    CHECK(strstr(why.text, "\"x?[2J\""));
}
