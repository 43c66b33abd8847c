/* Which names are reserved, who may hold them, and the message if another user
 * does. */
#include "server/reserved_names.h"

#include "test/lib/config_stage.h"
#include "test/lib/rules_stage.h"

static const char settings[] =
    "{\"agents\": {\"default\": \"front\", \"owner\": \"ops\", \"list\": ["
    "{\"id\": \"code\", \"url\": \"echo:\", \"backup\": \"code-2\"},"
    "{\"id\": \"docs\", \"url\": \"echo:\", \"backup\": \"code-2\"}]}}";

static const char rules_text[] =
    "{'agents': {'Z': {'owner': 'em', 'backup': 'Z2'}, 'Z2': {}, 'code': {}}}";

struct bench {
    struct config *config;
    struct gate_rules *rules;
    struct names names;
};

static void bench_open(struct bench *b)
{
    b->config = load_text(settings);
    CHECK(b->config);
    b->rules = rules_of(rules_text);
    b->names = (struct names){b->config, b->rules};
}

static void bench_close(struct bench *b)
{
    config_free(b->config);
    gate_rules_free(b->rules);
}

static enum name_place place(const struct bench *b, const char *name)
{
    struct str owner;

    return names_place(&b->names, str_of(name), &owner);
}

static bool keeps(const struct bench *b, const char *name, const char *user,
                  enum role role, bool has_owner)
{
    struct name_user u = {str_of(user), role, has_owner};

    return names_keep(&b->names, str_of(name), &u);
}

TEST(every_place_that_mentions_a_name_reserves_it)
{
    struct bench b;
    struct str owner;

    bench_open(&b);
    CHECK(place(&b, "CODE") == NAME_LISTED);
    CHECK(place(&b, "Front") == NAME_DEFAULT);
    CHECK(place(&b, "code-2") == NAME_BACKUP);
    CHECK(place(&b, "z") == NAME_RULES && place(&b, "z2") == NAME_RULES);
    CHECK(place(&b, "z3") == NAME_NOWHERE && place(&b, "") == NAME_NOWHERE);
    CHECK(names_place(&b.names, STR("z"), &owner) == NAME_RULES);
    CHECK_STR(owner, "em");
    CHECK(names_place(&b.names, STR("Z2"), &owner) == NAME_RULES);
    CHECK_STR(owner, "ops");
    bench_close(&b);
}

TEST(without_rules_and_settings_every_name_is_free)
{
    struct config *c = load_text("{}");
    struct names n = {c, gate_rules_none()};
    struct name_user u = {STR("eve"), ROLE_USER, false};
    struct str owner;

    CHECK(c);
    CHECK(names_place(&n, STR("front"), &owner) == NAME_NOWHERE && !owner.n);
    CHECK(!names_keep(&n, STR("front"), &u));
    config_free(c);
}

TEST(admins_the_owner_and_a_namesake_may_hold_one)
{
    struct bench b;

    bench_open(&b);
    CHECK(keeps(&b, "z", "eve", ROLE_USER, false));
    CHECK(keeps(&b, "z", "eve", 0, false)); /* removed user */
    CHECK(!keeps(&b, "z", "admin", ROLE_ADMIN, false));
    CHECK(!keeps(&b, "z", "", 0, false)); /* the configuration */
    CHECK(!keeps(&b, "z", "EM", ROLE_USER, false));
    /* The owner in the rules overrides that of the settings. */
    CHECK(keeps(&b, "z", "ops", ROLE_USER, false));
    CHECK(!keeps(&b, "z2", "ops", ROLE_USER, false));
    CHECK(!keeps(&b, "front", "ops", ROLE_USER, false));
    CHECK(keeps(&b, "front", "em", ROLE_USER, false));
    /* An agent without an owner may hold only its own name. */
    CHECK(!keeps(&b, "z", "Z", ROLE_AGENT, false));
    CHECK(keeps(&b, "z", "Z", ROLE_AGENT, true));
    CHECK(keeps(&b, "z", "Z", ROLE_USER, false));
    CHECK(keeps(&b, "z", "bot", ROLE_AGENT, false));
    bench_close(&b);
}

TEST(a_name_in_the_list_is_taken_by_whoever_registered_it)
{
    struct name_user eve = {STR("eve"), ROLE_USER, false};
    struct name_user admin = {STR("admin"), ROLE_ADMIN, false};
    struct name_user house = {.role = 0};
    struct name_taken t;
    struct bench b;
    struct why why;

    bench_open(&b);
    CHECK(names_taken_by(&b.names, STR("Code"), &eve, &t));
    names_say(&t, &why);
    CHECK_STR(str_of(why.text),
              "agents.list has \"Code\", and eve registered that name: the "
              "server runs without the agent of the list. Free it with "
              "\"signalbox agents remove Code\", then reload");
    CHECK(names_taken_by(&b.names, STR("code"), &admin, &t));
    CHECK(!names_taken_by(&b.names, STR("code"), &house, &t));
    CHECK(names_taken_by(&b.names, STR("Z"), &eve, &t));
    names_say(&t, &why);
    CHECK(strstr(why.text, "they count that agent as DEAD"));
    CHECK(!names_taken_by(&b.names, STR("Z"), &admin, &t));
    CHECK(!names_taken_by(&b.names, STR("other"), &eve, &t));
    bench_close(&b);
}

static void add_name(void *ctx, struct str name)
{
    buf_addf(ctx, "%.*s ", STR_ARG(name));
}

TEST(each_name_is_told_once)
{
    struct bench b;
    struct buf all;

    bench_open(&b);
    buf_init(&all, 1024);
    names_each(&b.names, add_name, &all);
    CHECK_STR(buf_str(&all), "code docs front code-2 Z Z2 ");
    buf_fini(&all);
    bench_close(&b);
}
