/* agents.list and agents.defaults: cards, and the report on invalid ones. Tests
 * of cards themselves are in model/. */
#include "model/card.h"
#include "server/config/internal.h"
#include "test/lib/config_stage.h"

TEST(agents_come_in_the_order_they_were_written)
{
    struct config *c = load_text("{\"agents\": {\"list\": [\n"
                                 "  {\"id\": \"slow\", \"url\": \"echo:250\",\n"
                                 "   \"title\": \"Ein tr\xc3\xa4ges Echo\"},\n"
                                 "  {\"id\": \"Echo\"}, // and\n"
                                 "]}}");

    CHECK(says(c, "") && c && c->agents.n == 2);
    CHECK(c->n_from_file == 1); /* a list is one setting */
    CHECK_STR(c->agents.list[0].name, "slow");
    CHECK_STR(c->agents.list[0].url, "echo:250");
    CHECK_STR(c->agents.list[0].title, "Ein tr\xc3\xa4ges Echo");
    CHECK_STR(c->agents.list[1].name, "Echo");
    CHECK_STR(c->agents.list[1].url, "ws-agent://Echo");
    CHECK_STR(c->agents.list[1].title, "");
    CHECK(c->agents.list[1].visibility == 0 && !c->agents.list[1].n_skills);
    config_free(c);
}

/* Every field. */
static const char whole[] =
    "{\"id\": \"clerk\", \"title\": \"The clerk\", \"description\": \"Writes\","
    " \"version\": \"2\", \"url\": \"https://x.org/a\", \"visibility\": "
    "\"shared\", \"provider\": {\"organization\": \"X\", \"url\": "
    "\"https://x.org\", \"more\": [1]}, \"capabilities\": {\"streaming\": "
    "true}, \"authentication\": {\"schemes\": [\"bearer\"], \"credentials\": "
    "\"c\"}, \"metadata\": {\"some_key\": 1}, \"skills\": [{\"id\": \"write\", "
    "\"name\": \"Write\", \"description\": \"D\", \"tags\": [\"t\"], "
    "\"examples\": [\"e\"], \"pricing\": {\"amountMicros\": 7}}], \"pricing\": "
    "{\"amountMicros\": 5}, \"routing\": {\"systemPrompt\": \"Be brief.\", "
    "\"keywords\": [\"k\"], \"routable\": false}, \"wake\": {\"url\": "
    "\"https://x.org/w\", \"timeoutMs\": 1000}, \"restart\": {\"command\": "
    "[\"systemctl\", \"restart\"]}, \"backup\": \"other\", \"limits\": "
    "{\"queue\": 3, \"inFlight\": 2, \"priority\": -1}, \"delegation\": "
    "{\"allowAgents\": [], \"maxConcurrent\": 0, \"maxDepth\": 4}, \"org\": "
    "\"acme\"}";

static struct config *load_list(const char *list)
{
    char text[4096];
    int n = snprintf(text, sizeof(text), "{\"agents\": {\"list\": %s}}", list);

    CHECK(n > 0 && (size_t)n < sizeof(text));
    return load_text(text);
}

static void expect_whole(const struct agent *a)
{
    CHECK_STR(a->name, "clerk");
    CHECK_STR(a->description, "Writes");
    CHECK_STR(a->version, "2");
    CHECK(a->visibility == VISIBILITY_SHARED);
    CHECK_STR(a->capabilities, "{\"streaming\":true}");
    CHECK_STR(a->metadata, "{\"some_key\":1}");
    CHECK(a->n_skills == 1 && a->skills[0].price.micros == 7);
    CHECK_STR(a->skills[0].tags.list[0], "t");
    CHECK(a->price.is_given && a->price.micros == 5);
    CHECK_STR(a->routing.system_prompt, "Be brief.");
    CHECK(a->routing.is_unroutable && a->routing.keywords.n == 1);
    CHECK_INT(a->wake.timeout_ms, 1000);
    CHECK_STR(a->restart.list[1], "restart");
    CHECK_STR(a->backup, "other");
    CHECK(a->limits.queue == 3 && a->limits.in_flight == 2);
    CHECK(a->delegation.is_limited && a->delegation.allow.n == 0);
    CHECK(a->delegation.max_concurrent == 0 && a->delegation.max_depth == 4);
    CHECK_STR(a->org, "acme");
}

TEST(every_field_of_a_card_can_stand_in_the_configuration)
{
    char list[4096];
    struct config *c;

    snprintf(list, sizeof(list), "[%s]", whole);
    c = load_list(list);
    CHECK(says(c, "") && c && c->agents.n == 1);
    expect_whole(&c->agents.list[0]);
    config_free(c);
}

/* The value of agents.list, and a part of the report; NULL: it is accepted. */
static const struct {
    const char *text, *words;
} agents[] = {
    {"[]", NULL},
    {"[{\"id\": \"a\"}]", NULL},
    {"[{\"id\": \"a\", \"url\": \"echo:\", \"title\": \"\"}]", NULL},
    {"[{\"id\": \"a\", \"url\": null, \"title\": null}]", NULL},
    {"[{\"i\\u0064\": \"\\u0061\", \"url\": \"echo:\"},]", NULL},
    {"[{\"id\": \"a\"}, {\"id\": \"b\"}]", NULL},
    {"5", "t.jsonc:1:21: agents.list must be a list of up to 1000 objects, "
          "each with an \"id\", not 5\n"},
    {"null", "not null"},
    {"{}", "not an object"},
    {"\"[]\"", "not \"[]\""},
    {"[5]", "1:22: agents.list[0] must be an object, not 5\n"},
    {"[[]]", "agents.list[0] must be an object, not a list\n"},
    {"[null]", "agents.list[0] must be an object, not null\n"},
    {"[{}]", "t.jsonc:1:22: agents.list[0].id is missing\n"},
    {"[{\"url\": \"echo:\"}]", "agents.list[0].id is missing\n"},
    {"[{\"id\": null}]", "agents.list[0].id is missing\n"},
    {"[{\"id\": \"a\", \"url\": \"echo:\"},\n {\"id\": \"b\", \"url\": "
     "\"echo:\"},\n {\"id\": \"c\", \"ur\": \"echo:\"}]",
     "t.jsonc:3:20: agents.list[2].ur is not a field of a card; did you mean "
     "\"url\"?\n"},
    {"[{\"id\": \"a\", \"zebra\": 1}]",
     "agents.list[0].zebra is not a field of a card; the fields are id, "
     "title, "},
    {"[{\"id\": \"a\", \"http.maxHeaders\": 1}]",
     "agents.list[0].http.maxHeaders is not a field of a card; "},
    {"[{\"id\": \"a\", \"\": 1}]", "agents.list[0].\"\" is not a field"},
    {"[{\"id\": \"a\", \"a/b\\n\": 1}]", "agents.list[0].a~1b? is not a field"},
    {"[{\"ID\": \"a\"}]", "did you mean \"id\"?"},
    {"[{\"id\": \"a\", \"name\": \"b\"}]",
     ".name is called \"id\" in the configuration"},
    {"[{\"id\": \"a\", \"creatorId\": \"b\"}]", ".creatorId is not a field"},
    {"[{\"id\": \"a\", \"routing\": {\"system_prompt\": \"p\"}}]",
     "agents.list[0].routing.system_prompt is called \"systemPrompt\" in the "
     "configuration"},
    {"[{\"id\": \"a\", \"id\": \"b\", \"url\": \"echo:\"}]", "t.jsonc:1:34: "},

    {"[{\"id\": \"\"}]",
     "1:29: agents.list[0].id must be a name of 1 to 128 letters, digits, "
     "\".\", \"_\" and \"-\" that begins with a letter or digit, not \"\"\n"},
    {"[{\"id\": 5}]", "agents.list[0].id must be a name"},
    {"[{\"id\": \"a b\"}]", "not \"a b\""},
    {"[{\"id\": \"search\"}]", "agents.list[0].id may not be \"search\""},
    {"[{\"id\": \"a\", \"url\": \"gopher:\"}]",
     "1:41: agents.list[0].url must be \"https://"},
    {"[{\"id\": \"a\", \"url\": \"https://u:secret@x/\"}]",
     "agents.list[0].url is not a web address: "},
    {"[{\"id\": \"a\", \"url\": \"process:p\"}]",
     "1:41: agents.list[0].url names the process \"p\", and processes has no "
     "entry"},
    {"[{\"id\": \"a\", \"url\": \"echo:3600000\"}]", NULL},
    {"[{\"id\": \"a\", \"url\": \"echo:3600001\"}]", "agents.list[0].url must"},
    {"[{\"id\": \"a\", \"url\": \"\"}]", "agents.list[0].url must"},
    {"[{\"id\": \"a\", \"title\": 5}]",
     "1:43: agents.list[0].title must be one line of text, not 5\n"},
    {"[{\"id\": \"a\", \"title\": \"a\\nb\"}]", "agents.list[0].title may not"},
    {"[{\"id\": \"a\",\n  \"skills\": [{\"id\": \"s\", \"name\": \"S\"},\n"
     "   {\"id\": \"r\", \"name\": 5, \"tag\": []}]}]",
     "t.jsonc:3:24: agents.list[0].skills[1].name must be one line of text, "
     "not 5\n"},
    {"[{\"id\": \"a\", \"skills\": [{\"id\": \"s\"}]}]",
     "agents.list[0].skills[0].name is missing\n"},
    {"[{\"id\": \"a\", \"skills\": [{\"id\": \"s\", \"name\": \"S\"}, "
     "{\"id\": \"s\", \"name\": \"S\"}]}]",
     "agents.list[0].skills[1].id is the same as that of skill 0\n"},
    {"[{\"id\": \"a\", \"pricing\": {\"amountMicros\": -1}}]",
     "agents.list[0].pricing.amountMicros must be a whole number from 0 "},

    {"[{\"id\": \"a\"},\n {\"id\": \"b\"},\n {\"id\": \"A\"}]",
     "t.jsonc:3:9: agents.list[2].id is \"A\", and that of agents.list[0] in "
     "line 1 is \"a\"; they must differ in more than case\n"},
    /* Invalid names are not compared. */
    {"[{\"id\": \"\"}, {\"id\": \"\"}]", "agents.list[1].id must be a name"},
};

TEST(agents_are_taken_or_refused_with_words)
{
    for (size_t i = 0; i < sizeof(agents) / sizeof(agents[0]); i++) {
        struct config *c = load_list(agents[i].text);

        if ((c == NULL) != (agents[i].words != NULL))
            fprintf(stderr, "%s\n  %s", agents[i].text, report.text);
        CHECK((c == NULL) == (agents[i].words != NULL));
        CHECK(c || says(c, agents[i].words));
        CHECK(!strstr(report.text, "secret"));
        config_free(c);
    }
}

TEST(all_that_is_wrong_with_all_agents_is_said_at_once)
{
    struct config *c =
        load_list("[{\"id\": 5, \"titel\": 1, \"url\": \"x\"}, "
                  "{\"skills\": [5, {\"id\": \"s\"}]}, {\"id\": \"ok\"}]");

    CHECK(!c && report.n_errors == 6);
    CHECK(says(c, "agents.list[0].id must be") &&
          says(c, "agents.list[0].titel is not a field") &&
          says(c, "agents.list[0].url must be") &&
          says(c, "agents.list[1].skills[0] must be an object") &&
          says(c, "agents.list[1].skills[1].name is missing") &&
          says(c, "agents.list[1].id is missing"));
}

/* Defaults. */

static struct config *load_both(const char *defaults, const char *list)
{
    char text[8192];

    snprintf(text, sizeof(text),
             "{\"agents\": {\n\"defaults\": %s,\n\"list\": %s}}", defaults,
             list);
    return load_text(text);
}

TEST(what_an_agent_does_not_say_is_as_the_defaults_have_it)
{
    struct config *c = load_both(
        "{\"description\": \"d\", \"url\": \"echo:\", \"visibility\": "
        "\"private\", \"limits\": {\"queue\": 5, \"inFlight\": 1}, \"skills\": "
        "[{\"id\": \"s\", \"name\": \"S\"}], \"wake\": {\"timeoutMs\": 9, "
        "\"url\": \"https://x/\"}}",
        "[{\"id\": \"a\"}, {\"id\": \"b\", \"description\": null, \"url\": "
        "\"echo:1\", \"limits\": {\"inFlight\": 2}, \"skills\": [], \"wake\": "
        "null}]");
    const struct agent *a, *b;

    CHECK(says(c, "") && c && c->agents.n == 2 && c->n_from_file == 2);
    a = &c->agents.list[0], b = &c->agents.list[1];
    CHECK_STR(a->description, "d");
    CHECK_STR(a->url, "echo:");
    CHECK(a->visibility == VISIBILITY_PRIVATE && a->n_skills == 1);
    CHECK(a->limits.queue == 5 && a->limits.in_flight == 1);
    CHECK_INT(a->wake.timeout_ms, 9);
    CHECK_STR(b->name, "b");
    CHECK_STR(b->description, "");
    CHECK_STR(b->url, "echo:1");
    CHECK(b->visibility == VISIBILITY_PRIVATE && b->n_skills == 0);
    CHECK(b->limits.queue == 5 && b->limits.in_flight == 2);
    CHECK(b->wake.timeout_ms == 0 && b->wake.url.n == 0);
    config_free(c);
}

static const struct {
    const char *defaults, *list, *words;
} pairs[] = {
    {"{}", "[{\"id\": \"a\"}]", NULL},
    {"{\"description\": null}", "[]", NULL},
    {"{\"wake\": {\"timeoutMs\": 9}}", "[]", NULL},
    {"{\"wake\": {\"timeoutMs\": 9}}",
     "[{\"id\": \"a\", \"wake\": {\"url\": \"https://x/\"}}]", NULL},
    /* The missing member is reported for the entry. */
    {"{\"wake\": {\"timeoutMs\": 9}}", "[\n{\"id\": \"a\"}]",
     "t.jsonc:4:1: agents.list[0].wake.url is missing\n"},
    {"[]", "[]",
     "t.jsonc:2:13: agents.defaults must be an object with members of an agent "
     "of agents.list, except \"id\", not a list\n"},
    {"5", "[]", "not 5"},
    {"null", "[]", "not null"},
    {"{\"id\": \"a\"}", "[]",
     "t.jsonc:2:20: agents.defaults.id is not allowed: no two agents can have "
     "the same\n"},
    {"{\"descripton\": \"x\"}", "[]",
     "agents.defaults.descripton is not a field of a card; did you mean "
     "\"description\"?\n"},
    {"{\"limits\": {\"queue\": 0}}", "[{\"id\": \"a\"}, {\"id\": \"b\"}]",
     "t.jsonc:2:34: agents.defaults.limits.queue must be"},
    {"{\"skills\": [{\"id\": \"s\"}]}", "[]",
     "agents.defaults.skills[0].name is missing\n"},
    {"{\"title\": \"t\"}", "[{\"title\": \"u\"}]",
     "t.jsonc:3:10: agents.list[0].id is missing\n"},
    {"{\"title\": \"t\"}", "[{\"id\": \"a\", \"titel\": null}]",
     "agents.list[0].titel is not a field"},
    {"{\"title\": \"t\"}", "[{\"id\": \"a\"}, 5]",
     "agents.list[1] must be an object"},
    {"{\"title\": \"t\"}", "[{\"id\": \"a\"}, {\"id\": \"A\"}]",
     "they must differ in more than case"},
};

TEST(defaults_are_checked_themselves_and_once)
{
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct config *c = load_both(pairs[i].defaults, pairs[i].list);

        if ((c == NULL) != (pairs[i].words != NULL))
            fprintf(stderr, "%s %s\n  %s", pairs[i].defaults, pairs[i].list,
                    report.text);
        CHECK((c == NULL) == (pairs[i].words != NULL));
        CHECK(c || (report.n_errors == 1 && says(c, pairs[i].words)));
        config_free(c);
    }
}

TEST(defaults_and_list_may_come_from_anywhere)
{
    struct str set = STR("agents.defaults={\"title\":\"set\"}");
    char *env[] = {
        (char[]){"SIGNALBOX_AGENTS__DEFAULTS={\"title\":\"variable\"}"}, NULL};
    struct config_source src = {.sets = &set, .n_sets = 1, .environ = env};
    struct config *c = config_load_text(
        "t.jsonc", STR("{\"agents\": {\"list\": [{\"id\": \"a\"}]}}"), &src,
        &report);

    CHECK(says(c, "") && c);
    CHECK_STR(c->agents.list[0].title, "set");
    config_free(c);
    src.n_sets = 0;
    c = config_load_text("t.jsonc",
                         STR("{\"agents\": {\"list\": [{\"id\": \"a\"}]}}"),
                         &src, &report);
    CHECK_STR(c->agents.list[0].title, "variable");
    config_free(c);
}

/* Only a file has lines. */
TEST(a_variable_and_a_flag_say_where_without_a_line)
{
    static const struct {
        const char *set, *words;
    } sets[] = {
        {"agents.defaults={\"titel\":\"x\"}",
         "--set agents.defaults: agents.defaults.titel is not a field"},
        {"agents.defaults={\"id\":\"x\"}",
         "--set agents.defaults: agents.defaults.id is not allowed"},
        {"agents.defaults=x",
         "--set agents.defaults: agents.defaults must be JSON, { ... }: "},
        {"agents.defaults=[]", "agents.defaults must be an object"},
        {"agents.defaults.title=x",
         "unknown setting \"agents.defaults.title\""},
        {"agents.list=[{\"id\":\"a\",\"skills\":[{\"id\":5,\"name\":\"n\"}]}]",
         "--set agents.list: agents.list[0].skills[0].id must be"},
    };
    char *env[] = {(char[]){"SIGNALBOX_AGENTS__DEFAULTS={\"url\":5}"}, NULL};
    struct config *c;

    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        struct str set = str_of(sets[i].set);

        c = load_sets(1, &set);
        CHECK(!c && says(c, sets[i].words) && report.problems[0].line == 0);
    }
    c = load_env(env);
    CHECK(!c && says(c, "SIGNALBOX_AGENTS__DEFAULTS: agents.defaults.url "));
}

/* Limits. */

static struct buf text;

static struct config *load_made(void)
{
    CHECK(!text.over);
    return config_load_text("t.jsonc", buf_str(&text),
                            &(struct config_source){0}, &report);
}

static void add_many(char c, size_t n)
{
    while (n--)
        buf_add_char(&text, c);
}

static struct config *load_many(size_t n)
{
    buf_clear(&text);
    buf_add_str(&text, STR("{\"agents\": {\"list\": ["));
    for (size_t i = 0; i < n; i++)
        buf_addf(&text, "{\"id\": \"agent%zu\", \"url\": \"echo:%zu\"},\n", i,
                 i);
    buf_add_str(&text, STR("]}}"));
    return load_made();
}

TEST(there_may_be_a_thousand_agents)
{
    struct config *c;

    buf_init(&text, 1 << 20);
    c = load_many(1000);
    CHECK(c && c->agents.n == 1000);
    CHECK_STR(c->agents.list[999].name, "agent999");
    config_free(c);
    c = load_many(1001);
    CHECK(!c && report.n_errors == 1);
    CHECK(says(c, "1:21: agents.list may have up to 1000 elements, not 1001"));
    buf_fini(&text);
}

/* A thousand agents with a default prompt of so many bytes. */
static struct config *load_prompts(size_t bytes)
{
    buf_clear(&text);
    buf_add_str(&text, STR("{\"agents\": {\"defaults\": {\"description\": "
                           "\""));
    add_many('d', bytes / 4);
    buf_add_str(&text, STR("\", \"routing\": {\"systemPrompt\": \""));
    add_many('p', bytes);
    buf_add_str(&text, STR("\"}}, \"list\": ["));
    for (size_t i = 0; i < 1000; i++)
        buf_addf(&text, "{\"id\": \"a%zu\"},\n", i);
    buf_add_str(&text, STR("]}}"));
    return load_made();
}

TEST(what_the_defaults_come_to_has_a_limit)
{
    struct config *c;

    buf_init(&text, 1 << 20);
    c = load_prompts(50 * 1000);
    CHECK(c && c->agents.list[999].routing.system_prompt.n == 50 * 1000);
    config_free(c);
    c = load_prompts(AGENT_PROMPT_MAX);
    CHECK(!c && report.n_errors >= 1);
    CHECK(says(c, "each with its defaults, may take 64 MiB\n"));
    buf_fini(&text);
}

TEST(a_thousand_mistakes_are_counted_in_no_time)
{
    struct config *c;

    buf_init(&text, 1 << 20);
    buf_add_str(&text, STR("{\"agents\": {\"list\": ["));
    for (int i = 0; i < 1000; i++)
        buf_addf(&text, "{\"zebra%d\": 1, \"id\": \"same\", \"url\": 1},\n", i);
    buf_add_str(&text, STR("]}}"));
    c = load_made();
    CHECK(!c && report.n_errors == 2999 && says(c, "\nand "));
    buf_clear(&text);
    buf_add_str(&text, STR("{\"agents\": {\"list\": [{\"id\": \"a\""));
    for (int i = 0; i < 1000; i++)
        buf_addf(&text, ", \"zebra%d\": 1", i);
    buf_add_str(&text, STR("}]}}"));
    c = load_made();
    CHECK(!c && report.n_errors == 1000 && says(c, "\nand "));
    buf_fini(&text);
}

TEST(agents_of_the_configuration_fit_into_the_registry)
{
    struct config *c = load_text(
        "{\"registry\": {\"maxAgents\": 1, \"maxAgentsPerUser\": 1},\n"
        "\"agents\": {\"list\": [{\"id\": \"a\"}, {\"id\": \"b\"}]}}");

    CHECK(!c && report.n_errors == 1);
    CHECK(says(c, "t.jsonc:2:20: agents.list has 2 agents, and "
                  "registry.maxAgents is 1\n"));
    c = load_text("{\"registry\": {\"maxSkills\": 1},\n\"agents\": "
                  "{\"list\": [{\"id\": \"a\", \"skills\": [{\"id\": "
                  "\"x\", \"name\": \"x\"}, {\"id\": \"y\", \"name\": "
                  "\"y\"}]}]}}");
    CHECK(!c && says(c, "agents.list has 2 skills in all, and "
                        "registry.maxSkills is 1\n"));
}

/* Writing. */

TEST(agents_that_are_written_read_back_the_same)
{
    struct buf first, second;
    struct config *c, *again;
    char list[4096];

    snprintf(list, sizeof(list),
             "[%s, {\"id\": \"bare\", \"title\": null}, {\"id\": \"c\"}]",
             whole);
    c = load_both("{\"title\": \"t\", \"limits\": {\"queue\": 7}}", list);
    CHECK(c);
    buf_init(&first, 65536);
    buf_init(&second, 65536);
    config_write_json(c, &first);
    again = config_load_text("t.jsonc", buf_str(&first),
                             &(struct config_source){0}, &report);
    CHECK(says(again, "") && again && again->agents.n == 3);
    expect_whole(&again->agents.list[0]);
    CHECK_STR(again->agents.list[1].title, "");
    CHECK_STR(again->agents.list[2].title, "t");
    CHECK_INT(again->agents.list[1].limits.queue, 7);
    config_write_json(again, &second);
    CHECK(!second.over && str_eq(buf_str(&first), buf_str(&second)));
    config_free(c);
    config_free(again);
    buf_fini(&first);
    buf_fini(&second);
}

static bool is_same(const char *one, const char *other)
{
    const struct setting *s =
        setting_find(&config_settings, STR("agents.list"));
    struct config *a = load_list(one), *b = load_list(other);
    bool same;

    CHECK(s && a && b);
    same = s->type->is_same(s, setting_look(s, a), setting_look(s, b));
    config_free(a);
    config_free(b);
    return same;
}

TEST(agents_are_the_same_when_all_of_their_cards_is)
{
    CHECK(is_same("[]", "[]") &&
          is_same("[{\"id\": \"a\"}]", "[{\"id\": \"a\", \"title\": null}]"));
    CHECK(!is_same("[{\"id\": \"a\"}]", "[]"));
    CHECK(!is_same("[{\"id\": \"a\"}]", "[{\"id\": \"A\"}]"));
    CHECK(!is_same("[{\"id\": \"a\"}]",
                   "[{\"id\": \"a\", \"limits\": {\"queue\": 1}}]"));
}

struct manual {
    const char *text;
    size_t n;
};

static void expect_row(void *ctx, const struct card_about *f)
{
    struct manual *m = ctx;
    char row[512];

    snprintf(row, sizeof(row), "\n| `%.*s` | %s | %.*s | %s |\n",
             STR_ARG(f->path), f->is_required ? "yes" : "", STR_ARG(f->allowed),
             f->what);
    CHECK(strstr(m->text, row));
    CHECK(f->allowed.n && f->what[strlen(f->what) - 1] == '.');
    m->n++;
}

TEST(the_manual_shows_what_an_agent_is_made_of)
{
    struct manual m = {.n = 0};
    struct buf out;

    buf_init(&out, 1 << 20);
    config_write_reference(&out);
    buf_add_char(&out, '\0');
    m.text = out.p;
    CHECK(strstr(out.p, "\nEach element of `agents.list` is a card:\n"));
    card_each(CARD_CONFIG, expect_row, &m);
    CHECK(m.n > 35);
    CHECK(strstr(out.p, "\n| `id` | yes | ") &&
          strstr(out.p, "\n| `url` |  |"));
    CHECK(strstr(out.p, "\n| `skills[].name` | yes | "));
    CHECK(strstr(out.p, "\n| `routing.systemPrompt` |  | "));
    CHECK(!strstr(out.p, "creatorId") && !strstr(out.p, "updatedMs"));
    buf_fini(&out);
}
