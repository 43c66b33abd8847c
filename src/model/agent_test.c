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
    CHECK(out.transport == TRANSPORT_ECHO);
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

/* Transports. */

static const struct {
    const char *url;
    enum transport transport;
    const char *id;    /* NULL: rejected */
    const char *words; /* a part of them */
} urls[] = {
    {"echo:", TRANSPORT_ECHO, "", NULL},
    {"ws-agent://openclaw-abc123", TRANSPORT_HUB, "openclaw-abc123", NULL},
    {"ws-agent://A.b_c", TRANSPORT_HUB, "A.b_c", NULL},
    {"process:coder", TRANSPORT_PROCESS, "coder", NULL},
    {"model:gpt", TRANSPORT_MODEL, "gpt", NULL},
    {"model:vendor/m-4:8b@2", TRANSPORT_MODEL, "vendor/m-4:8b@2", NULL},
    {"https://provider.example.com/tasks/process", TRANSPORT_HTTP, "", NULL},
    {"HTTP://127.0.0.1:8080", TRANSPORT_HTTP, "", NULL},

    {"", 0, NULL, "must be \"https://"},
    {"echo:x", 0, NULL, "must have a number of milliseconds"},
    {"ws-agent:", 0, NULL, "must be \"https://"},
    {"ws-agent://", 0, NULL, "must end in a name of 1 to 128"},
    {"ws-agent://a/", 0, NULL, "must end in a name"},
    {"ws-agent://a b", 0, NULL, "must end in a name"},
    {"Ws-agent://a", 0, NULL, "must be \"https://"},
    {"process:", 0, NULL, "must end in a name"},
    {"process:/bin/sh", 0, NULL, "must end in a name"},
    {"process://x", 0, NULL, "must end in a name"},
    {"model:", 0, NULL, "a model's name"},
    {"model:/x", 0, NULL, "a model's name"},
    {"model:a b", 0, NULL, "a model's name"},
    {"http://", 0, NULL, "no host"},
    {"http:/x", 0, NULL, "must be \"https://"},
    {"https://a@b/", 0, NULL, "no user or password"},
    {"https://b/#", 0, NULL, "not have a fragment"},
    {"https://b:99999/", 0, NULL, "port"},
    {"wss://b/", 0, NULL, "must be \"https://"},
    {"data:text/html,x", 0, NULL, "must be \"https://"},
};

TEST(a_url_names_a_road)
{
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct agent_url out = {.transport = N_TRANSPORTS};
        struct why why = {""};
        enum err e = agent_url_read(str_of(urls[i].url), &out, &why);

        if ((e == OK) != (urls[i].id != NULL))
            T_FAIL("%s: %d %s", urls[i].url, e, why.text);
        if (!e) {
            CHECK(out.transport == urls[i].transport);
            CHECK_STR(out.id, urls[i].id);
        } else {
            CHECK(e == ERR_SYNTAX && out.transport == N_TRANSPORTS);
            if (!strstr(why.text, urls[i].words))
                T_FAIL("%s: %s", urls[i].url, why.text);
        }
    }
    CHECK(agent_url_read((struct str){"model:a\0b", 9}, &(struct agent_url){0},
                         NULL) == ERR_SYNTAX);
}

TEST(numbers_have_names)
{
    for (unsigned i = 0; i <= 7; i++) {
        CHECK(visibility_of(visibility_name(i)) == (i <= 3 ? i : 0));
        CHECK(agent_kind_of(agent_kind_name(i)) == (i <= 3 ? i : 0));
        CHECK(agent_state_of(agent_state_name(i)) == (i <= 6 ? i : 0));
    }
    CHECK_STR(visibility_name(VISIBILITY_PUBLIC), "public");
    CHECK_STR(agent_kind_name(AGENT_SELF_HOSTED), "self-hosted");
    CHECK_STR(agent_state_name(AGENT_DEAD), "DEAD");
    CHECK_INT(agent_state_of(STR("idle")), AGENT_IDLE);
    CHECK_INT(visibility_of(STR("Public")), 0);
    CHECK_INT(agent_kind_of(STR("")), 0);
    CHECK_INT(agent_state_of(STR("")), 0);
}

/* Visibility. */

enum { NOW = 1000 };

static struct agent_grant of_user(const char *user, int64_t expires_ms)
{
    return (struct agent_grant){.user = str_of(user), .expires_ms = expires_ms};
}

static struct agent_grant of_org(const char *org, int64_t expires_ms)
{
    return (struct agent_grant){.org = str_of(org), .expires_ms = expires_ms};
}

TEST(who_sees_whom)
{
    const struct agent_grant grants[] = {
        of_user("gustav", 0),      of_user("late", NOW),
        of_user("soon", NOW + 1),  of_org("friends", 0),
        of_org("former", NOW - 1),
    };
    const struct {
        const char *what;
        struct caller caller;
        bool sees_public, sees_shared, sees_private, owns;
    } rows[] = {
        {"admin",
         {.principal = "root", .role = ROLE_ADMIN, .scopes = SCOPE_ALL},
         true,
         true,
         true,
         true},
        {"admin's token without that scope",
         {.principal = "root", .role = ROLE_ADMIN, .scopes = SCOPE_READ},
         true,
         false,
         false,
         false},
        {"creator",
         {.principal = "anna", .org = "acme", .role = ROLE_USER},
         true,
         true,
         true,
         true},
        {"creator in capitals",
         {.principal = "ANNA", .role = ROLE_USER},
         true,
         true,
         true,
         true},
        {"same org",
         {.principal = "ben", .org = "acme", .role = ROLE_USER},
         true,
         true,
         false,
         false},
        {"org that looks alike",
         {.principal = "ben", .org = "Acme", .role = ROLE_USER},
         true,
         false,
         false,
         false},
        {"other org",
         {.principal = "eve", .org = "evil", .role = ROLE_USER},
         true,
         false,
         false,
         false},
        {"no org",
         {.principal = "eve", .role = ROLE_USER},
         true,
         false,
         false,
         false},
        {"grant to user",
         {.principal = "Gustav", .role = ROLE_USER},
         true,
         true,
         false,
         false},
        {"grant to org",
         {.principal = "fay", .org = "friends", .role = ROLE_USER},
         true,
         true,
         false,
         false},
        {"expired grant to user",
         {.principal = "late", .role = ROLE_USER},
         true,
         false,
         false,
         false},
        {"grant that ends soon",
         {.principal = "soon", .role = ROLE_USER},
         true,
         true,
         false,
         false},
        {"expired grant to org",
         {.principal = "fey", .org = "former", .role = ROLE_USER},
         true,
         false,
         false,
         false},
        {"a user called like an org's grant",
         {.principal = "friends", .role = ROLE_USER},
         true,
         false,
         false,
         false},
        {"agent of the creator",
         {.principal = "helper",
          .owner = "anna",
          .org = "acme",
          .role = ROLE_AGENT},
         true,
         true,
         true,
         true},
        {"agent of another user",
         {.principal = "anna",
          .owner = "eve",
          .org = "evil",
          .role = ROLE_AGENT},
         true,
         false,
         false,
         false},
        {"agent of no user",
         {.principal = "helper", .role = ROLE_AGENT},
         true,
         false,
         false,
         false},
        {"anonymous", {.principal = ""}, true, false, false, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct eyes e = eyes_of(&rows[i].caller, NOW);
        struct agent a = {.creator = STR("anna"),
                          .org = STR("acme"),
                          .grants = grants,
                          .n_grants = sizeof(grants) / sizeof(grants[0])};
        const bool sees[] = {rows[i].sees_private, rows[i].sees_private,
                             rows[i].sees_shared, rows[i].sees_public};

        for (unsigned v = 0; v <= VISIBILITY_PUBLIC; v++) {
            a.visibility = v;
            if (agent_is_visible(&a, &e) != sees[v])
                T_FAIL("%s, visibility %u", rows[i].what, v);
        }
        if (agent_is_owned(&a, &e) != rows[i].owns)
            T_FAIL("%s owns", rows[i].what);
    }
}

TEST(what_is_nobodys_is_the_admins)
{
    const struct caller admin = {.role = ROLE_ADMIN, .scopes = SCOPE_ALL};
    const struct caller no_caller = {.role = 0};
    const struct agent_grant empty = {.expires_ms = 0};
    const struct agent a = {
        .visibility = VISIBILITY_SHARED, .grants = &empty, .n_grants = 1};
    struct eyes e = eyes_of(&no_caller, NOW);

    CHECK(!agent_is_owned(&a, &e) && !agent_is_visible(&a, &e));
    e = eyes_of(&admin, NOW);
    CHECK(agent_is_owned(&a, &e) && agent_is_visible(&a, &e));
}

TEST(an_agent_looks_with_its_owners_eyes)
{
    const struct caller agent = {.principal = "helper",
                                 .owner = "anna",
                                 .org = "acme",
                                 .role = ROLE_AGENT,
                                 .scopes = SCOPE_ALL};
    const struct caller user = {.principal = "anna", .role = ROLE_USER};
    struct eyes e = eyes_of(&agent, 5);

    CHECK_STR(e.user, "anna");
    CHECK_STR(e.org, "acme");
    CHECK_STR(e.self, "helper");
    CHECK(!e.sees_all && e.now_ms == 5);
    e = eyes_of(&user, 5);
    CHECK_STR(e.user, "anna");
    CHECK_STR(e.self, "");
    CHECK(e.org.n == 0);
}

TEST(a_skill_without_a_price_has_its_agents)
{
    const struct skill skills[] = {{.id = STR("a"), .price = {true, 0}},
                                   {.id = STR("b")}};
    struct agent a = {.skills = skills, .n_skills = 2};

    CHECK_INT(agent_price(&a, &skills[1]), 0);
    a.price = (struct price){true, 9};
    CHECK_INT(agent_price(&a, &skills[0]), 0);
    CHECK_INT(agent_price(&a, &skills[1]), 9);
    CHECK_INT(agent_price(&a, NULL), 9);
    CHECK(agent_skill(&a, STR("b")) == &skills[1]);
    CHECK(agent_skill(&a, STR("B")) == NULL);
    CHECK(agent_skill(&a, STR("")) == NULL);
}

TEST(tags_are_those_of_the_skills_whatever_their_case)
{
    static const struct str tags[] = {{"Law", 3}, {"tax", 3}};
    const struct skill skills[] = {{.id = STR("a")},
                                   {.id = STR("b"), .tags = {tags, 2}}};
    const struct agent a = {.skills = skills, .n_skills = 2};

    CHECK(skill_has_tag(&skills[1], STR("law")));
    CHECK(!skill_has_tag(&skills[1], STR("la")));
    CHECK(!skill_has_tag(&skills[0], STR("law")));
    CHECK(agent_has_tag(&a, STR("TAX")) && !agent_has_tag(&a, STR("x")));
}
