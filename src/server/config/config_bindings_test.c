/* bindings, agents.default and agents.list[].default: the agents that they
 * name, and the report on unknown ones. */
#include "server/config/internal.h"
#include "test/lib/config_stage.h"

#define AGENTS                                                         \
    "\"agents\": {\"list\": [{\"id\": \"code\"}, {\"id\": \"Docs\"}, " \
    "{\"id\": \"ops\"}]}"

static struct config *load_with(const char *more)
{
    char text[2048];

    CHECK(snprintf(text, sizeof(text), "{" AGENTS "%s%s}", *more ? ",\n" : "",
                   more) < (int)sizeof(text));
    return load_text(text);
}

/* From seed 003. */
static const char seed[] =
    "\"bindings\": [\n"
    "{ \"agentId\": \"code\", \"match\": { \"channel\": \"telegram\", "
    "\"peer\": { \"kind\": \"group\", \"id\": \"-1001234\" } } },\n"
    "{ \"agentId\": \"ops\", \"match\": { \"channel\": \"telegram\", "
    "\"peer\": { \"kind\": \"group\", \"id\": \"-1005678\" } } },\n"
    "{ \"agentId\": \"docs\", \"match\": { \"channel\": \"discord\", "
    "\"guildId\": \"guild-abc\" } }\n"
    "]";

TEST(bindings_are_read_in_the_order_they_were_written)
{
    struct config *c = load_with(seed);
    const struct binding *b;

    CHECK(says(c, "") && c && c->bindings.n == 3 && !report.n_warnings);
    b = c->bindings.list;
    CHECK_STR(b[0].agent, "code");
    CHECK_STR(b[0].channel, "telegram");
    CHECK_STR(b[0].peer.kind, "group");
    CHECK_STR(b[0].peer.id, "-1001234");
    CHECK(!b[0].account_id.n && !b[0].guild_id.n && !b[0].roles.n);
    CHECK_STR(b[1].agent, "ops");
    CHECK_STR(b[2].agent, "Docs"); /* with the case of the list */
    CHECK_STR(b[2].guild_id, "guild-abc");
    CHECK(c->n_from_file == 2);
    config_free(c);
}

TEST(every_field_of_a_match_is_read)
{
    struct config *c =
        load_with("\"bindings\": [{\"agentId\": \"code\", \"match\": "
                  "{\"channel\": \"discord\", \"accountId\": \"*\", \"peer\": "
                  "{\"kind\": \"dm\", \"id\": \"*\"}, \"guildId\": \"g\", "
                  "\"teamId\": \"t\", \"roles\": [\"admin\", \"mod\"]}}]");
    const struct binding *b;

    CHECK(says(c, "") && c && c->bindings.n == 1 && !report.n_warnings);
    b = c->bindings.list;
    CHECK_STR(b->account_id, "*");
    CHECK_STR(b->peer.kind, "dm");
    CHECK_STR(b->peer.id, "*");
    CHECK_STR(b->team_id, "t");
    CHECK(b->roles.n == 2);
    CHECK_STR(b->roles.list[1], "mod");
    config_free(c);
}

#define MATCH(what) "[{\"agentId\": \"code\", \"match\": {" what "}}]"
#define ON_X        "\"channel\": \"x\""

/* The value of "bindings", and a part of the report; NULL: it is accepted. */
static const struct {
    const char *text, *words;
} bindings[] = {
    {"[]", NULL},
    {MATCH(ON_X), NULL},
    {MATCH(ON_X ", \"roles\": []"), NULL},
    {MATCH(ON_X ", \"peer\": {}"), NULL},
    {MATCH(ON_X ", \"peer\": {\"kind\": \"desk\", \"id\": \"7\"}"), NULL},
    {"7", "t.jsonc:2:13: bindings must be a list of up to 10000 objects like "
          "{\"agentId\": "},
    {"[7]", "2:14: bindings[0] must be an object, { ... }, not 7\n"},
    {"[{}]", "t.jsonc:2:14: bindings[0] has no \"agentId\"\n"},
    {"[{}]", "bindings[0] has no \"match.channel\"\n"},
    {"[{\"agentId\": \"code\"}]", "bindings[0] has no \"match.channel\"\n"},
    {"[{\"agentId\": \"code\", \"match\": 5}]",
     "bindings[0].match is a group of settings, { ... }, not 5\n"},
    {MATCH("\"channel\": \"\""),
     "bindings[0].match.channel must be a text of 1 to 256 bytes, not \"\"\n"},
    {MATCH(ON_X ", \"peer\": \"group:7\""),
     "bindings[0].match.peer is a group of settings"},
    {MATCH(ON_X ", \"peer\": {\"kind\": \"group\", \"id\": -1001234}"),
     "bindings[0].match.peer.id must be a text, not a number: write "
     "\"-1001234\", with quotes\n"},
    {MATCH(ON_X ", \"peer\": {\"id\": \"7\"}"),
     "t.jsonc:2:14: bindings[0].match.peer has no \"kind\": write \"direct\", "
     "\"group\" or the kind that these messages give\n"},
    {MATCH(ON_X ", \"peer\": {\"kind\": \"group\"}"),
     "bindings[0].match.peer has no \"id\"; \"*\" is any group\n"},
    {MATCH(ON_X ", \"roles\": \"admin\""),
     "bindings[0].match.roles must be a list"},
    {MATCH(ON_X ", \"roles\": [7]"),
     "bindings[0].match.roles[0] must be a text, not a number: write \"7\""},
    {MATCH(ON_X ", \"roles\": [\"\"]"), "must be a text of 1 to 256 bytes"},
    {MATCH("\"chanel\": \"x\""),
     "unknown setting \"bindings[0].match.chanel\"; did you mean "
     "\"bindings[0].match.channel\"?\n"},
    {MATCH(ON_X ", \"guild\": \"g\""), "unknown setting"},
    {"[{\"agentId\": \"code\", \"match.channel\": \"x\"}]",
     "\"match.channel\" has a dot in it; write groups as objects"},
    {"[{\"agent\": \"code\", \"match\": {" ON_X "}}]",
     "unknown setting \"bindings[0].agent\"; did you mean "
     "\"bindings[0].agentId\"?\n"},
    {"[{\"agentId\": \"cod\", \"match\": {" ON_X "}}]",
     "t.jsonc:2:14: bindings[0].agentId is \"cod\", and agents.list has no "
     "agent of that name; did you mean \"code\"?\n"},
    {"[{\"agentId\": \"stranger\", \"match\": {" ON_X "}}]",
     "bindings[0].agentId is \"stranger\", and agents.list has no agent of "
     "that name\n"},
    {"[{\"agentId\": \"a b\", \"match\": {" ON_X "}}]",
     "bindings[0].agentId must be a name of"},
};

TEST(what_is_wrong_with_a_binding_is_said_with_its_line)
{
    for (size_t i = 0; i < sizeof(bindings) / sizeof(bindings[0]); i++) {
        char text[1024];
        struct config *c;

        snprintf(text, sizeof(text), "\"bindings\": %s", bindings[i].text);
        c = load_with(text);
        if (bindings[i].words)
            CHECK(!c && says(c, bindings[i].words));
        else
            CHECK(says(c, "") && c && !report.n_warnings);
        config_free(c);
    }
}

TEST(a_kind_that_is_nearly_a_usual_one_is_warned_of)
{
    struct config *c = load_with(
        "\"bindings\": " MATCH(ON_X ", \"peer\": {\"kind\": \"grup\", \"id\": "
                                    "\"7\"}"));

    CHECK(c && report.n_warnings == 1);
    CHECK(says(c, "bindings[0].match.peer.kind is \"grup\"; did you mean "
                  "\"group\"?\n"));
    config_free(c);
}

/* An agent with errors must not make every binding to it an error. */
TEST(bindings_do_not_cry_over_agents_that_are_wrong)
{
    struct config *c =
        load_text("{\"agents\": {\"list\": [{\"id\": \"code\", \"ur\": 1}]}, "
                  "\"bindings\": " MATCH(ON_X) "}");

    CHECK(!c && says(c, "agents.list[0].ur is not a field"));
    CHECK(report.n_errors == 1);
}

/* Two defaults are reported, since both were read without errors. */
TEST(two_defaults_and_a_wrong_binding_are_said_together)
{
    struct config *c = load_text(
        "{\"agents\": {\"list\": [{\"id\": \"a\", \"default\": true}, "
        "{\"id\": \"b\", \"default\": true}]}, "
        "\"bindings\": [{\"agentId\": \"a\", \"match\": {\"channel\": "
        "\"x\"}}, {\"agentId\": \"gone\", \"match\": {\"channel\": "
        "\"x\"}}]}");

    CHECK(!c && says(c, "agents.list[1].default is true"));
    CHECK(says(c, "bindings[1].agentId is \"gone\""));
    CHECK(report.n_errors == 2);
}

TEST(bindings_may_come_from_another_source_than_agents)
{
    struct str sets[] = {
        STR("bindings=[{\"agentId\":\"b\",\"match\":{\"channel\":\"x\"}}]"),
        STR("agents.list=[{\"id\":\"b\"}]")};
    struct config *c = load_sets(2, sets);

    CHECK(says(c, "") && c && c->bindings.n == 1);
    config_free(c);
    c = load_sets(1, sets);
    CHECK(!c && says(c, "--set bindings: bindings[0].agentId is \"b\""));
}

TEST(a_printed_configuration_has_the_same_bindings)
{
    struct config *c = load_with(seed), *again;
    const struct setting *s = setting_find(&config_settings, STR("bindings"));
    struct buf out;

    buf_init(&out, 1 << 20);
    config_write_json(c, &out);
    again = config_load_text("p.jsonc", buf_str(&out),
                             &(struct config_source){0}, &report);
    CHECK(says(again, "") && again);
    CHECK(s->type->is_same(s, &c->bindings, &again->bindings));
    ((struct binding *)again->bindings.list)[2].guild_id = STR("other");
    CHECK(!s->type->is_same(s, &c->bindings, &again->bindings));
    config_free(c);
    config_free(again);
    buf_fini(&out);
}

static struct config *load_many(size_t n)
{
    struct config *c;
    struct buf out;

    buf_init(&out, 1 << 20);
    buf_addf(&out, "{" AGENTS ", \"bindings\": [");
    for (size_t i = 0; i < n; i++)
        buf_addf(&out,
                 "{\"agentId\":\"ops\",\"match\":{\"channel\":\"x\",\"peer\":"
                 "{\"kind\":\"group\",\"id\":\"%zu\"}}},",
                 i);
    buf_addf(&out, "]}");
    CHECK(!out.over);
    c = config_load_text("t.jsonc", buf_str(&out), &(struct config_source){0},
                         &report);
    buf_fini(&out);
    return c;
}

TEST(there_may_be_ten_thousand_and_no_more)
{
    struct config *c = load_many(BINDINGS_MAX);

    CHECK(says(c, "") && c && c->bindings.n == BINDINGS_MAX);
    config_free(c);
    c = load_many(BINDINGS_MAX + 1);
    CHECK(!c && says(c, "bindings may have up to 10000 elements, not 10001"));
}

/* The default. */

TEST(the_default_is_named_in_either_place)
{
    struct config *c = load_text("{" AGENTS "}");

    CHECK(c && !c->default_agent.n);
    config_free(c);
    c = load_text("{\"agents\": {\"default\": \"CODE\", \"list\": [{\"id\": "
                  "\"Code\"}]}}");
    CHECK(says(c, "") && c && !report.n_warnings);
    CHECK_STR(c->default_agent, "Code");
    config_free(c);
    c = load_text("{\"agents\": {\"list\": [{\"id\": \"a\", \"default\": "
                  "false}, {\"id\": \"b\", \"default\": true}, {\"id\": \"c\", "
                  "\"default\": null}]}}");
    CHECK(says(c, "") && c && !report.n_warnings);
    CHECK_STR(c->default_agent, "b");
    config_free(c);
}

TEST(both_places_may_say_the_same)
{
    struct config *c = load_text(
        "{\"agents\": {\"default\": \"b\", \"list\": [{\"id\": \"a\"}, {\"id\":"
        " \"B\", \"default\": true}]}}");

    CHECK(says(c, "") && c);
    CHECK_STR(c->default_agent, "B");
    config_free(c);
}

TEST(two_defaults_are_refused)
{
    struct config *c = load_text("{\"agents\": {\"list\": [\n"
                                 "{\"id\": \"a\", \"default\": true},\n"
                                 "{\"id\": \"b\", \"default\": true}]}}");

    CHECK(!c &&
          says(c,
               "t.jsonc:3:24: agents.list[1].default is true, and so is that "
               "of agents.list[0] in line 2; there can be only one default\n"));
    c = load_text("{\"agents\": {\"default\": \"a\", \"list\": [{\"id\": "
                  "\"a\"}, {\"id\": \"b\", \"default\": true}]}}");
    CHECK(!c &&
          says(c,
               "agents.list[1].default is true, and agents.default is \"a\"; "
               "there can be only one default, so keep one of the two\n"));
    c = load_text(
        "{\"agents\": {\"list\": [{\"id\": \"a\", \"default\": 1}]}}");
    CHECK(!c && says(c, "agents.list[0].default must be true or false, not "
                        "1\n"));
    c = load_text("{\"agents\": {\"defaults\": {\"default\": true}, \"list\": "
                  "[{\"id\": \"a\"}]}}");
    CHECK(!c && says(c, "agents.defaults.default is not allowed: no two agents "
                        "can have the same\n"));
}

TEST(a_later_source_says_who_the_default_is)
{
    char name[] = "SIGNALBOX_AGENTS__DEFAULT=a";
    char *env[] = {name, NULL};
    struct config_source src = {.environ = env};
    struct config *c = config_load_text(
        "t.jsonc",
        STR("{\"agents\": {\"list\": [{\"id\": \"a\"}, {\"id\": \"b\", "
            "\"default\": true}]}}"),
        &src, &report);

    CHECK(says(c, "") && c);
    CHECK_STR(c->default_agent, "a");
    config_free(c);
}

TEST(a_default_that_is_nobody_yet_is_warned_of)
{
    struct config *c = load_text("{\"agents\": {\"default\": \"clerk\"}}");

    CHECK(c && report.n_warnings == 1);
    CHECK(says(c, "t.jsonc:1:24: warning: agents.default is \"clerk\", and "
                  "agents.list has no agent of that name: until one registers, "
                  "a message that would go to it is rejected\n"));
    CHECK_STR(c->default_agent, "clerk");
    config_free(c);
    c = load_text("{\"agents\": {\"default\": \"clerc\", \"list\": [{\"id\": "
                  "\"clerk\"}]}}");
    CHECK(c && says(c, "of that name; did you mean \"clerk\"?\n"));
    config_free(c);
    c = load_text("{\"agents\": {\"default\": \"a b\"}}");
    CHECK(!c && says(c, "agents.default must be a name of"));
}
