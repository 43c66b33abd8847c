#include "model/agent.h"

#include "test/t.h"

TEST(names_are_letters_digits_and_a_little_more)
{
    static const char *const good[] = {"a",   "Z",    "0",      "echo", "a.b",
                                       "a_b", "a-b-", "9lives", "A..",  "x__"};
    static const char *const bad[] = {
        "",     ".a",   "_a",       "-a",        "a b", "a/b", "a:b", "a\n",
        "a\"b", "a\\b", "\xc3\xa4", "a\xc3\xa4", "a@b", "a[b", "a`b", "a{b"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        CHECK(agent_name_is_valid(str_of(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(!agent_name_is_valid(str_of(bad[i])));
    CHECK(!agent_name_is_valid((struct str){NULL, 0}));
    CHECK(!agent_name_is_valid((struct str){"a\0b", 3}));
}

TEST(a_name_has_a_longest_length)
{
    char name[AGENT_NAME_MAX + 1];

    memset(name, 'n', sizeof(name));
    CHECK(agent_name_is_valid((struct str){name, AGENT_NAME_MAX}));
    CHECK(!agent_name_is_valid((struct str){name, AGENT_NAME_MAX + 1}));
}

static int64_t delay_of(const char *url)
{
    struct agent_url out = {.delay_ms = -7};

    if (agent_url_read(str_of(url), &out, NULL) != OK) {
        CHECK(out.delay_ms == -7); /* untouched */
        return -1;
    }
    CHECK(out.road == ROAD_ECHO);
    return out.delay_ms;
}

TEST(an_echo_has_a_delay_within_its_limits)
{
    static const char *const bad[] = {"",         "echo",
                                      "Echo:",    "echo:-1",
                                      "echo:-0",  "echo: ",
                                      "echo:+5",  "echo:5 ",
                                      "echo:5ms", "echo:1.5",
                                      ":",        "echo:3600001",
                                      "echo::",   "echo:99999999999999999999",
                                      "echos:",   "echo:0x5",
                                      "cho:5",    " echo:"};

    CHECK_INT(delay_of("echo:"), 0);
    CHECK_INT(delay_of("echo:0"), 0);
    CHECK_INT(delay_of("echo:250"), 250);
    CHECK_INT(delay_of("echo:0250"), 250);
    CHECK_INT(delay_of("echo:3600000"), ECHO_DELAY_MAX_MS);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_INT(delay_of(bad[i]), -1);
    CHECK(agent_url_read((struct str){NULL, 0}, &(struct agent_url){0}, NULL) ==
          ERR_SYNTAX);
    CHECK(agent_url_read((struct str){"echo:5\0", 7}, &(struct agent_url){0},
                         NULL) == ERR_SYNTAX);
}

TEST(a_url_has_a_longest_length)
{
    static char url[AGENT_URL_MAX + 2];

    memset(url, '0', sizeof(url) - 1);
    memcpy(url, "echo:", 5);
    CHECK_INT(delay_of(url), -1);
    url[AGENT_URL_MAX] = '\0';
    CHECK_INT(delay_of(url), 0);
}

TEST(agents_are_found_whatever_the_case)
{
    struct agent echo = {.name = STR("Echo")};
    const uint64_t seed[2] = {1, 2};
    struct map by_name;
    const struct agent *list[] = {&echo};
    struct agents all = {list, 1, &by_name};
    char name[AGENT_NAME_MAX + 1];

    memset(name, 'n', sizeof(name));
    map_init(&by_name, 10, seed);
    CHECK(map_put(&by_name, STR("echo"), &echo) == OK);
    CHECK(agent_find(&all, STR("echo")) == &echo);
    CHECK(agent_find(&all, STR("ECHO")) == &echo);
    CHECK(agent_find(&all, STR("ech")) == NULL);
    CHECK(agent_find(&all, STR("")) == NULL);
    CHECK(agent_find(&all, (struct str){name, sizeof(name)}) == NULL);
    map_fini(&by_name);
}
