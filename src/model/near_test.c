/* choose_test.c checks the texts; here: which names are considered. */
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
    near = near_find(&all, &bob, STR("some-other"));
    CHECK(near.n == 0 && near.sees_any);
    CHECK(near_say(&near, STR("x\x1b[2J"), &why) == ERR_AGENT_NOT_FOUND);
    CHECK(strstr(why.text, "\"x?[2J\""));
}

/* The nearest by comparing all names completely. */
static size_t nearest_slowly(size_t n, struct str written, unsigned out[])
{
    unsigned cut = str_guess(written).distance;
    size_t found = 0;

    for (unsigned d = 0; d < cut; d++)
        for (size_t i = 0; i < n && found < NEAR_MAX; i++)
            if (str_distance(written, agents[i].name) == d)
                out[found++] = (unsigned)i;
    return found;
}

TEST(what_is_not_compared_was_none_of_the_nearest)
{
    static const char *const parts[] = {"echo", "Cook", "ocho", "che", "-",
                                        "e",    "koc",  "ceho", "xx",  "7"};
    struct agents all = stage(CROWD, VISIBILITY_PUBLIC);
    unsigned slow[NEAR_MAX];

    for (size_t i = 0; i < CROWD; i++) {
        snprintf(names[i], sizeof(names[i]), "%s%s%s", parts[i % 10],
                 parts[i * 7 / 10 % 10], i % 3 ? parts[i * 3 % 10] : "");
        agents[i].name = str_of(names[i]);
    }
    for (size_t k = 0; k < 10; k++) {
        char text[24];
        struct near near;

        snprintf(text, sizeof(text), "%secOh%s", parts[k], parts[9 - k]);
        near = near_find(&all, &bob, str_of(text));
        CHECK_INT(near.n, nearest_slowly(CROWD, str_of(text), slow));
        for (size_t i = 0; i < near.n; i++)
            CHECK(str_eq(near.names[i], agents[slow[i]].name));
    }
}

/* Many long names that are almost equal, the worst case: none is ruled out by
 * its letters. */
TEST(the_work_has_an_end_which_only_those_they_see_count_towards)
{
    enum { MANY = 3000, LONG = 64 };
    static struct agent crowd[MANY];
    static const struct agent *at[MANY];
    static char text[MANY][LONG + 1];
    struct agents all = {.list = at, .n = MANY};
    char written[LONG + 1] = "";
    struct near near;

    memset(written, 'a', LONG / 2);
    memset(written + LONG / 2, 'b', LONG / 2);
    for (size_t i = 0; i < MANY; i++) {
        for (size_t k = 0; k < LONG; k++) /* as many of each, elsewhere */
            text[i][k] = k % 2 ? 'a' : 'b';
        crowd[i] = (struct agent){.name = str_of(text[i]),
                                  .visibility = VISIBILITY_PRIVATE};
        at[i] = &crowd[i];
    }
    near = near_find(&all, &bob, str_of(written));
    CHECK(near.work == 0 && !near.sees_any);
    for (size_t i = 0; i < MANY; i++)
        crowd[i].visibility = VISIBILITY_PUBLIC;
    near = near_find(&all, &bob, str_of(written));
    CHECK(near.sees_any && near.n == 0);
    CHECK(near.work >= NEAR_WORK_MAX);
    CHECK(near.work < NEAR_WORK_MAX + LONG * (LONG + 1));
    all.n = 10; /* within the limit none is skipped */
    near = near_find(&all, &bob, str_of(written));
    CHECK_INT(near.work, 10 * LONG * (LONG + 1));
}

TEST(other_names_are_offered_one_by_one_and_again)
{
    struct near_hunt h;
    struct why why;

    near_begin(&h, STR("acmee"));
    near_offer(&h, STR("globex"));
    near_offer(&h, STR("acne"));
    near_offer(&h, STR("acme"));
    near_offer(&h, STR("acne"));
    near_offer(&h, STR("acme"));
    CHECK_INT(h.near.n, 2);
    CHECK(near_say_other(&h.near, "org", h.written, &why) == ERR_NOT_FOUND);
    CHECK_STR(str_of(why.text), "there is no org \"acmee\"; did you mean "
                                "\"acme\" or \"acne\"?");
    near_begin(&h, STR("\x1b[2J"));
    CHECK(near_say_other(&h.near, "user", h.written, &why) == ERR_NOT_FOUND);
    CHECK_STR(str_of(why.text), "there is no user \"?[2J\", nor one with a "
                                "name like it");
}

TEST(many_offers_are_bounded_too)
{
    char name[65] = "", written[65] = "";
    struct near_hunt h;

    memset(name, 'a', 64);
    memset(written, 'a', 48);
    memset(written + 48, 'b', 16);
    near_begin(&h, str_of(written));
    for (int i = 0; i < 100000; i++) {
        name[i % 64] = (char)('a' + i % 7);
        near_offer(&h, str_of(name));
    }
    CHECK(h.near.work < NEAR_WORK_MAX + 64 * 65);
}
