#include "test/lib/card_stage.h"
#include "test/lib/control.h"

#include <inttypes.h>

#include <stdio.h>

static const char whole[] =
    "{\"name\":\"engineer\",\"title\":\"The engineer\","
    "\"description\":\"Builds and repairs\\nsoftware\",\"version\":\"1.0.0\","
    "\"url\":\"https://agents.example:8443/engineer?x=1\","
    "\"visibility\":\"shared\","
    "\"provider\":{ \"organization\":\"acme\",\"more\":[1,2.50,null] },"
    "\"capabilities\":{\"streaming\":true},"
    "\"authentication\":{\"schemes\":[\"bearer\"],\"credentials\":\"s3cret\"},"
    "\"metadata\":{\"k\":\"v\"},"
    "\"skills\":[{\"id\":\"debug\",\"name\":\"Debugging\","
    "\"description\":\"Finds bugs\",\"tags\":[\"code\",\"c\"],"
    "\"examples\":[\"why does this\\nsegfault\"],"
    "\"pricing\":{\"amount_micros\":1500}},"
    "{\"id\":\"2.x_-\",\"name\":\"Rest\"}],"
    "\"pricing\":{\"amount_micros\":0},"
    "\"routing\":{\"system_prompt\":\"You are…\",\"keywords\":[\"code\"],"
    "\"routable\":false},"
    "\"wake\":{\"url\":\"https://wake.example/\",\"timeout_ms\":1},"
    "\"restart\":{\"command\":[\"/bin/systemctl\",\"restart\",\"x\"]},"
    "\"backup\":\"engineer-2\","
    "\"limits\":{\"queue\":100,\"in_flight\":4,\"priority\":-3},"
    "\"delegation\":{\"allowAgents\":[\"docs\"],\"maxConcurrent\":2,"
    "\"maxDepth\":0},"
    "\"creator_id\":\"anna\",\"org\":\"acme\",\"kind\":\"self-hosted\","
    "\"revision\":\"passed\",\"created_ms\":[],\"updated_ms\":-1,"
    "\"state\":\"IDLE\",\"embedded\":true,\"paused\":false,\"grants\":{}}";

TEST(every_field_is_read)
{
    const struct agent *a;
    struct stage s;

    stage_init(&s);
    stage_read(&s, str_of(whole));
    CHECK_INT(s.e, OK);
    a = &s.agent;
    CHECK_STR(a->name, "engineer");
    CHECK_STR(a->title, "The engineer");
    CHECK_STR(a->description, "Builds and repairs\nsoftware");
    CHECK_STR(a->version, "1.0.0");
    CHECK_STR(a->url, "https://agents.example:8443/engineer?x=1");
    CHECK_INT(a->visibility, VISIBILITY_SHARED);
    CHECK_STR(a->provider, "{\"organization\":\"acme\",\"more\":[1,2.5,null]}");
    CHECK_STR(a->capabilities, "{\"streaming\":true}");
    CHECK_STR(a->authentication,
              "{\"schemes\":[\"bearer\"],\"credentials\":\"s3cret\"}");
    CHECK_STR(a->metadata, "{\"k\":\"v\"}");
    CHECK(a->price.is_given && a->price.micros == 0);
    CHECK_STR(a->routing.system_prompt, "You are…");
    CHECK_INT(a->routing.keywords.n, 1);
    CHECK(a->routing.is_unroutable);
    CHECK_STR(a->wake.url, "https://wake.example/");
    CHECK_INT(a->wake.timeout_ms, 1);
    CHECK_INT(a->restart.n, 3);
    CHECK_STR(a->restart.list[1], "restart");
    CHECK_STR(a->backup, "engineer-2");
    CHECK(a->limits.queue == 100 && a->limits.in_flight == 4);
    CHECK_INT(a->limits.priority, -3);
    CHECK(a->delegation.is_limited && a->delegation.allow.n == 1);
    CHECK_INT(a->delegation.max_concurrent, 2);
    CHECK_INT(a->delegation.max_depth, 0);
    CHECK_STR(a->creator, "anna");
    CHECK_STR(a->org, "acme");
    CHECK_INT(a->kind, AGENT_SELF_HOSTED);
    CHECK(a->revision == 0 && a->created_ms == 0 && a->updated_ms == 0);
    stage_fini(&s);
}

TEST(skills_are_read_in_their_order)
{
    const struct skill *k;
    struct stage s;

    stage_init(&s);
    stage_read(&s, str_of(whole));
    CHECK_INT(s.agent.n_skills, 2);
    k = s.agent.skills;
    CHECK_STR(k[0].id, "debug");
    CHECK_STR(k[0].name, "Debugging");
    CHECK_STR(k[0].description, "Finds bugs");
    CHECK_INT(k[0].tags.n, 2);
    CHECK_STR(k[0].tags.list[1], "c");
    CHECK_STR(k[0].examples.list[0], "why does this\nsegfault");
    CHECK(k[0].price.is_given && k[0].price.micros == 1500);
    CHECK_STR(k[1].id, "2.x_-");
    CHECK(!k[1].price.is_given && k[1].tags.n == 0 && k[1].description.n == 0);
    stage_fini(&s);
}

TEST(what_is_not_given_has_its_default)
{
    static const char *const texts[] = {
        "{\"name\":\"a\",\"description\":\"d\"}",
        "{\"name\":\"a\",\"description\":\"d\",\"title\":null,\"url\":null,"
        "\"visibility\":null,\"provider\":null,\"skills\":null,"
        "\"pricing\":null,\"wake\":null,\"restart\":null,\"backup\":null,"
        "\"routing\":{\"keywords\":null,\"routable\":null},"
        "\"limits\":{\"queue\":null},\"delegation\":{\"allowAgents\":null},"
        "\"creator_id\":null,\"org\":null,\"kind\":null}"};

    for (size_t i = 0; i < 2; i++) {
        const struct agent *a;
        struct stage s;

        stage_init(&s);
        s.opts.rights = 0;
        stage_read(&s, str_of(texts[i]));
        CHECK_INT(s.e, OK);
        a = &s.agent;
        CHECK_STR(a->url, "ws-agent://a");
        CHECK(a->visibility == 0 && a->kind == 0 && a->n_skills == 0);
        CHECK(a->title.n == 0 && a->provider.n == 0 && a->creator.n == 0);
        CHECK(!a->price.is_given && !a->routing.is_unroutable);
        CHECK(!a->delegation.is_limited && a->restart.n == 0);
        CHECK_INT(a->delegation.max_concurrent, -1);
        CHECK_INT(a->delegation.max_depth, -1);
        stage_fini(&s);
    }
}

/* One problem each: the members besides a name and a description, the place,
 * and a part of the message. NULL for the message: accepted. */
static const struct {
    const char *members, *pointer, *words;
} cases[] = {
    /* Unknown. */
    {"\"skils\":[]", "/skils", "did you mean \"skills\"?"},
    {"\"systemPrompt\":\"\"", "/systemPrompt",
     "the fields are name, title, desc"},
    {"\"routing\":{\"systemPrompt\":\"\"}", "/routing/systemPrompt",
     "is called \"system_prompt\" on a card"},
    {"\"id\":\"x\"", "/id", "is called \"name\" on a card"},
    {"\"a/b~c\":1", "/a~1b~0c", "is not a field of a card"},
    {"\"\":1", "/", "is not a field of a card"},
    {"\"Title\":\"x\"", "/Title", "did you mean \"title\"?"},
    {"\"wake\":{\"url\":\"http://h\",\"timeoutMs\":5}", "/wake/timeoutMs",
     "is called \"timeout_ms\" on a card"},
    {"\"pricing\":{\"amounts\":5}", "/pricing/amounts", "mean \"amount\"?"},
    {"\"delegation\":{\"allow_agents\":[]}", "/delegation/allow_agents",
     "did you mean \"allowAgents\"?"},

    /* Of another type. */
    {"\"title\":5", "/title", "must be one line of text, not 5"},
    {"\"title\":\"a\\nb\"", "/title", "U+000A, a control character"},
    {"\"title\":\" a\"", "/title", "begin or end with a space"},
    {"\"title\":\"a \"", "/title", "begin or end with a space"},
    {"\"title\":\"\"", NULL, NULL},
    {"\"title\":\"\\u200d\"", "/title", "of 1 to 128 bytes, and not blank"},
    {"\"version\":1.5", "/version", "must be one line of text, not 1.5"},
    {"\"visibility\":\"Public\"", "/visibility", "\"public\", \"shared\""},
    {"\"visibility\":true", "/visibility", "not true"},
    {"\"provider\":[]", "/provider", "must be an object, not a list"},
    {"\"provider\":{\"organization\":5}", "/provider/organization", "one line"},
    {"\"provider\":{\"url\":\"javascript:alert(1)\"}", "/provider/url",
     "must begin with \"https://\""},
    {"\"provider\":{\"url\":\"https://u:p@h/\"}", "/provider/url",
     "no user or password"},
    {"\"capabilities\":\"all\"", "/capabilities", "not \"all\""},
    {"\"capabilities\":{\"x/y\":[{}]}", NULL, NULL},
    {"\"authentication\":{\"schemes\":\"bearer\"}", "/authentication/schemes",
     "must be a list"},
    {"\"authentication\":{\"schemes\":[\"a\",\"A\"]}",
     "/authentication/schemes/1", "the same as element 0"},
    {"\"authentication\":{\"credentials\":{}}", "/authentication/credentials",
     "must be text"},
    {"\"skills\":{}", "/skills", "must be a list, not an object"},
    {"\"skills\":[5]", "/skills/0", "must be an object, not 5"},
    {"\"skills\":[null]", "/skills/0", "must be an object, not null"},
    {"\"pricing\":5", "/pricing", "must be an object"},
    {"\"routing\":{\"routable\":\"yes\"}", "/routing/routable",
     "true or false, not \"yes\""},
    {"\"routing\":{\"keywords\":[[]]}", "/routing/keywords/0", "not a list"},
    {"\"routing\":{\"keywords\":\"a,b\"}", "/routing/keywords", "a list"},
    {"\"limits\":{\"queue\":\"100\"}", "/limits/queue", "not \"100\""},
    {"\"delegation\":{\"allowAgents\":[\"a b\"]}", "/delegation/allowAgents/0",
     "must be a name"},
    {"\"restart\":{\"command\":\"rm -rf\"}", "/restart/command", "a list"},
    {"\"restart\":{\"command\":[\"\"]}", "/restart/command/0", "not blank"},
    {"\"backup\":\"a/b\"", "/backup", "must be a name"},
    {"\"kind\":\"Platform\"", "/kind", "\"platform\", \"managed\" or"},
    {"\"creator_id\":\"a b\"", "/creator_id", "not \"a b\""},
    {"\"org\":\"\"", NULL, NULL},
    {"\"org\":\" \"", "/org", "for that of its creator, not \" \""},

    /* Missing. */
    {"\"skills\":[{\"name\":\"x\"}]", "/skills/0/id", "is missing"},
    {"\"skills\":[{\"id\":\"x\"}]", "/skills/0/name", "is missing"},
    {"\"skills\":[{\"id\":\"x\",\"name\":null}]", "/skills/0/name", "missing"},
    {"\"wake\":{\"timeout_ms\":5}", "/wake/url", "is missing"},
    {"\"pricing\":{}", NULL, NULL},
    {"\"restart\":{}", NULL, NULL},

    /* Twice. */
    {"\"skills\":[{\"id\":\"x\",\"name\":\"A\"},{\"id\":\"y\",\"name\":\"A\"},"
     "{\"id\":\"x\",\"name\":\"B\"}]",
     "/skills/2/id", "the same as that of skill 0"},
    {"\"skills\":[{\"id\":\"x\",\"name\":\"A\"},{\"id\":\"X\",\"name\":\"A\"}]",
     "/skills/1/id", "the same as that of skill 0"},
    {"\"skills\":[{\"id\":\"x\",\"name\":\"A\",\"tags\":[\"a\",\"b\",\"A\"]}]",
     "/skills/0/tags/2", "the same as element 0"},
    {"\"skills\":[{\"id\":\"x\",\"name\":\"A\",\"examples\":[\"a\",\"a\"]}]",
     "/skills/0/examples/1", "the same as element 0"},
    {"\"routing\":{\"keywords\":[\"Code\",\"code\"]}", "/routing/keywords/1",
     "the same as element 0"},
    {"\"delegation\":{\"allowAgents\":[\"a\",\"b\",\"B\"]}",
     "/delegation/allowAgents/2", "the same as element 1"},
    {"\"restart\":{\"command\":[\"echo\",\"echo\"]}", NULL, NULL},

    /* Numbers. */
    {"\"pricing\":{\"amount_micros\":-1}", "/pricing/amount_micros",
     "from 0 to 1000000000000, not -1"},
    {"\"pricing\":{\"amount_micros\":1.0}", "/pricing/amount_micros",
     "not 1 with a point or exponent"},
    {"\"pricing\":{\"amount_micros\":1e3}", "/pricing/amount_micros",
     "not 1000 with a point or exponent"},
    {"\"pricing\":{\"amount_micros\":1.5}", "/pricing/amount_micros",
     "must be a whole number from 0 to 1000000000000, not 1.5"},
    {"\"pricing\":{\"amount_micros\":1000000000000}", NULL, NULL},
    {"\"pricing\":{\"amount_micros\":1000000000001}", "/pricing/amount_micros",
     "not 1000000000001"},
    {"\"pricing\":{\"amount_micros\":9e99}", "/pricing/amount_micros", "9e"},
    {"\"pricing\":{\"amount_micros\":\"5\"}", "/pricing/amount_micros", "\"5"},
    {"\"skills\":[{\"id\":\"x\",\"name\":\"A\","
     "\"pricing\":{\"amount_micros\":-5}}]",
     "/skills/0/pricing/amount_micros", "not -5"},
    {"\"wake\":{\"url\":\"http://h/\",\"timeout_ms\":0}", "/wake/timeout_ms",
     "from 1 to 600000, not 0"},
    {"\"wake\":{\"url\":\"http://h/\",\"timeout_ms\":600000}", NULL, NULL},
    {"\"wake\":{\"url\":\"http://h/\",\"timeout_ms\":600001}",
     "/wake/timeout_ms", "not 600001"},
    {"\"limits\":{\"queue\":0}", "/limits/queue", "from 1 to 1000000"},
    {"\"limits\":{\"queue\":1000001}", "/limits/queue", "from 1 to 1000000"},
    {"\"limits\":{\"in_flight\":10001}", "/limits/in_flight", "1 to 10000"},
    {"\"limits\":{\"priority\":-101}", "/limits/priority", "from -100 to 100"},
    {"\"limits\":{\"priority\":-100}", NULL, NULL},
    {"\"delegation\":{\"maxDepth\":33}", "/delegation/maxDepth", "0 to 32"},
    {"\"delegation\":{\"maxConcurrent\":-1}", "/delegation/maxConcurrent",
     "from 0 to 1000"},

    /* Addresses. */
    {"\"url\":5", "/url", "must be \"https://"},
    {"\"url\":\"\"", "/url", "must be \"https://"},
    {"\"url\":\"https://user:pass@host/\"", "/url", "no user or password"},
    {"\"url\":\"https://user@host/\"", "/url", "no user or password"},
    {"\"url\":\"https://host/#top\"", "/url", "not have a fragment"},
    {"\"url\":\"https:///path\"", "/url", "has no host"},
    {"\"url\":\"https://host:65536/\"", "/url", "from 1 to 65535"},
    {"\"url\":\"https://host:0/\"", "/url", "from 1 to 65535"},
    {"\"url\":\"https://0x7f.1/\"", "/url", "looks like an address"},
    {"\"url\":\"https://ho st/\"", "/url", "a space"},
    {"\"url\":\"ftp://host/\"", "/url", "must be \"https://"},
    {"\"url\":\"ws://host/\"", "/url", "must be \"https://"},
    {"\"url\":\"file:///etc/passwd\"", "/url", "must be \"https://"},
    {"\"url\":\"javascript:alert(1)\"", "/url", "must be \"https://"},
    {"\"url\":\"//host/\"", "/url", "must be \"https://"},
    {"\"url\":\"ws-agent://\"", "/url", "must end in a name"},
    {"\"url\":\"ws-agent://a/b\"", "/url", "must end in a name"},
    {"\"url\":\"process:../x\"", "/url", "must end in a name"},
    {"\"url\":\"process:x\"", NULL, NULL},
    {"\"url\":\"model:vendor/model-4:8b\"", NULL, NULL},
    {"\"url\":\"model:\"", "/url", "a model's name"},
    {"\"url\":\"echo:9999999\"", "/url", "milliseconds up to 3600000"},
    {"\"url\":\"HTTPS://[2001:db8::1]:8443/x\"", NULL, NULL},
    {"\"wake\":{\"url\":\"ws-agent://a\"}", "/wake/url", "must begin with"},
    {"\"wake\":{\"url\":\"https://u:p@h/\"}", "/wake/url", "no user or pass"},
    {"\"wake\":{\"url\":5}", "/wake/url", "must be \"https://"},

    /* Letters: Hebrew, Arabic, a joiner in Persian, an emoji of a family. */
    {"\"title\":\"\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d\"", NULL, NULL},
    {"\"title\":\"\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7\"", NULL, NULL},
    {"\"title\":\"\xd9\x85\xdb\x8c\\u200c\xd8\xb4\xd9\x88\xd8\xaf\"", NULL,
     NULL},
    {"\"title\":\"\xf0\x9f\x91\xa9\\u200d\xf0\x9f\x91\xa7\"", NULL, NULL},
    {"\"title\":\"\\u2764\\ufe0f\"", NULL, NULL},
    {"\"title\":\"a\\u202eb\"", "/title",
     "U+202E, a mark that turns the direction of writing (byte 2)"},
    {"\"title\":\"\\u2066a\"", "/title", "U+2066, a mark that turns"},
    {"\"title\":\"a\\u200fb\"", "/title", "U+200F, a mark that turns"},
    {"\"title\":\"a\\u061cb\"", "/title", "U+061C, a mark that turns"},
    {"\"title\":\"a\\u200bb\"", "/title", "U+200B, a character that cannot"},
    {"\"title\":\"\\ufeffa\"", "/title", "U+FEFF, a character that cannot"},
    {"\"title\":\"a\\u00adb\"", "/title", "U+00AD, a character that cannot"},
    {"\"title\":\"a\\u2028b\"", "/title", "U+2028, a line end"},
    {"\"title\":\"a\\u0085b\"", "/title", "U+0085, a control character"},
    {"\"title\":\"a\\u0000b\"", "/title", "U+0000, a control character"},
    {"\"title\":\"a\\udb40\\udc41b\"", "/title", "U+E0041, a tag"},
    {"\"skills\":[{\"id\":\"x\",\"name\":\"A\",\"tags\":[\"\\u202ea\"]}]",
     "/skills/0/tags/0", "U+202E"},
    {"\"skills\":[{\"id\":\"x\",\"name\":\"A\",\"tags\":[\"\"]}]",
     "/skills/0/tags/0", "not blank"},
    {"\"skills\":[{\"id\":\"x y\",\"name\":\"A\"}]", "/skills/0/id",
     "must be 1 to 128 letters, digits"},
    {"\"skills\":[{\"id\":\"\xc3\xa4\",\"name\":\"A\"}]", "/skills/0/id",
     "must be 1 to 128 letters, digits"},
    {"\"skills\":[{\"id\":\"\",\"name\":\"A\"}]", "/skills/0/id", "not \"\""},
    {"\"skills\":[{\"id\":\"x\",\"name\":\" \"}]", "/skills/0/name", "blank"},
    {"\"routing\":{\"system_prompt\":\"a\\r\\n\\tb\"}", NULL, NULL},
    {"\"routing\":{\"system_prompt\":\"a\\rb\"}", "/routing/system_prompt",
     "U+000D"},
    {"\"routing\":{\"system_prompt\":\"a\\u001b[31m\"}",
     "/routing/system_prompt", "U+001B"},
};

TEST(each_mistake_is_named_with_its_place)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[1024];
        struct stage s;

        snprintf(text, sizeof(text),
                 "{\"name\":\"a\",\"description\":\"d\",%s}", cases[i].members);
        stage_init(&s);
        stage_read(&s, str_of(text));
        if ((s.e == OK) != !cases[i].words || s.problems.n_all > 1)
            T_FAIL("%s: %d, %zu problems", text, s.e, s.problems.n_all);
        if (cases[i].words) {
            const struct card_problem *p =
                stage_problem(&s, str_of(cases[i].pointer));

            CHECK_INT(s.e, ERR_BAD_REQUEST);
            CHECK(!p->is_forbidden && p->at > 0 && p->at < strlen(text));
            if (!stage_has(p->message, str_of(cases[i].words)))
                T_FAIL("%s: \"%.*s\"", text, STR_ARG(p->message));
        }
        stage_fini(&s);
    }
}

/* Texts that are not cards. */
static const struct {
    const char *text, *pointer, *words;
} wholes[] = {
    {"[]", "", "must be an object, not a list"},
    {"null", "", "must be an object, not null"},
    {"{}", "/name", "is missing"},
    {"{}", "/description", "is missing"},
    {"{\"name\":null,\"description\":null}", "/name", "is missing"},
    {"{\"name\":\"a\",\"description\":\"\"}", "/description", "1 to 16384"},
    {"{\"name\":\"a\",\"description\":\" \\n\"}", "/description", "not blank"},
    {"{\"name\":\"a\",\"description\":[]}", "/description", "must be text"},
    {"{\"name\":\"a b\",\"description\":\"d\"}", "/name", "not \"a b\""},
    {"{\"name\":\"\",\"description\":\"d\"}", "/name", "not \"\""},
    {"{\"name\":5,\"description\":\"d\"}", "/name", "not 5"},
    {"{\"name\":\"search\",\"description\":\"d\"}", "/name", "is taken"},
    {"{\"name\":\"Search\",\"description\":\"d\"}", "/name", "is taken"},
    {"{\"name\":\"a\\u202e\",\"description\":\"d\"}", "/name", "not \"a?\""},
};

TEST(a_card_has_a_name_and_a_description)
{
    for (size_t i = 0; i < sizeof(wholes) / sizeof(wholes[0]); i++) {
        const struct card_problem *p;
        struct stage s;

        stage_init(&s);
        stage_read(&s, str_of(wholes[i].text));
        CHECK_INT(s.e, ERR_BAD_REQUEST);
        p = stage_problem(&s, str_of(wholes[i].pointer));
        if (!stage_has(p->message, str_of(wholes[i].words)))
            T_FAIL("%s: \"%.*s\"", wholes[i].text, STR_ARG(p->message));
        stage_fini(&s);
    }
}

TEST(all_problems_are_found_at_once)
{
    struct why why = {""};
    struct stage s;

    stage_init(&s);
    s.opts.rights = 0;
    stage_read(&s, STR("{\"naem\":\"x\",\"skills\":[{\"id\":\"a b\"},5],"
                       "\"url\":\"gopher:\",\"visibility\":\"public\","
                       "\"pricing\":{\"amount_micros\":-1}}"));
    CHECK_INT(s.e, ERR_BAD_REQUEST);
    CHECK_INT(s.problems.n_all, 9);
    CHECK_INT(s.problems.n, 9);
    CHECK_INT(s.problems.n_forbidden, 1);
    CHECK(stage_problem(&s, STR("/naem"))->at == 8);
    stage_problem(&s, STR("/skills/0/id"));
    stage_problem(&s, STR("/skills/0/name"));
    stage_problem(&s, STR("/skills/1"));
    stage_problem(&s, STR("/url"));
    CHECK(stage_problem(&s, STR("/visibility"))->is_forbidden);
    stage_problem(&s, STR("/pricing/amount_micros"));
    stage_problem(&s, STR("/description"));
    stage_problem(&s, STR("/name"));
    card_problems_say(&s.problems, &why);
    CHECK_STR(str_of(why.text), "/naem is not a field of a card; did you mean "
                                "\"name\"? (and 8 more problems)");
    stage_read(&s, STR("[]"));
    card_problems_say(&s.problems, &why);
    CHECK_STR(str_of(why.text), "the card must be an object, not a list");
    stage_fini(&s);
}

/* Rights. */

static const struct {
    const char *members, *pointer;
    unsigned needs;
} reserved[] = {
    {"\"restart\":{\"command\":[\"x\"]}", "/restart/command", CARD_MAY_RUN},
    {"\"url\":\"process:x\"", "/url", CARD_MAY_RUN},
    {"\"url\":\"model:x\"", "/url", CARD_MAY_RUN},
    {"\"visibility\":\"public\"", "/visibility", CARD_MAY_SHOW},
    {"\"visibility\":\"shared\"", "/visibility", CARD_MAY_SHOW},
    {"\"creator_id\":\"anna\"", "/creator_id", CARD_MAY_ASSIGN},
    {"\"org\":\"acme\"", "/org", CARD_MAY_ASSIGN},
    {"\"kind\":\"platform\"", "/kind", CARD_MAY_ASSIGN},
    {"\"visibility\":\"private\"", NULL, 0},
    {"\"url\":\"https://h/\"", NULL, 0},
    {"\"restart\":{\"command\":[]}", NULL, 0},
};

TEST(what_only_some_may_say_is_refused_to_others)
{
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        for (unsigned rights = 0; rights <= CARD_MAY_ALL; rights++) {
            bool is_fine = !(reserved[i].needs & ~rights);
            char text[256];
            struct stage s;

            snprintf(text, sizeof(text),
                     "{\"name\":\"a\",\"description\":\"d\",%s}",
                     reserved[i].members);
            stage_init(&s);
            s.opts.rights = rights;
            stage_read(&s, str_of(text));
            CHECK_INT(s.e, is_fine ? OK : ERR_NOT_ALLOWED);
            if (!is_fine)
                CHECK(stage_problem(&s, str_of(reserved[i].pointer))
                          ->is_forbidden);
            stage_fini(&s);
        }
}

TEST(what_is_there_already_may_be_said_again)
{
    struct stage before, s;

    stage_init(&before);
    stage_read(&before, str_of(whole));
    CHECK_INT(before.e, OK);
    stage_init(&s);
    s.opts = (struct card_opts){.before = &before.agent};
    stage_read(&s, str_of(whole));
    CHECK_INT(s.e, OK);
    CHECK_INT(s.agent.restart.n, 3);
    CHECK_INT(s.agent.visibility, VISIBILITY_SHARED);
    /* It requests nothing, and is not part of the card. */
    CHECK(s.agent.creator.n == 0 && s.agent.org.n == 0 && s.agent.kind == 0);
    s.opts.rights = CARD_MAY_ALL;
    stage_read(&s, str_of(whole));
    CHECK(s.e == OK && s.agent.creator.n == 0 && s.agent.kind == 0);

    /* Anything else is still forbidden. */
    before.agent.restart.n--;
    before.agent.org = STR("Acme");
    s.opts.rights = 0;
    stage_read(&s, str_of(whole));
    CHECK_INT(s.e, ERR_NOT_ALLOWED);
    CHECK_INT(s.problems.n_all, 2);
    stage_problem(&s, STR("/restart/command"));
    stage_problem(&s, STR("/org"));
    stage_fini(&s);
    stage_fini(&before);
}

TEST(rights_are_those_of_who_calls)
{
    struct caller c = {.role = ROLE_ADMIN, .scopes = SCOPE_ALL};

    CHECK_INT(card_rights_of(&c), CARD_MAY_ALL);
    c.scopes = SCOPE_AGENTS | SCOPE_SEND;
    CHECK_INT(card_rights_of(&c), CARD_MAY_SHOW);
    c.role = ROLE_USER;
    CHECK_INT(card_rights_of(&c), CARD_MAY_SHOW);
    c.scopes = SCOPE_ALL;
    CHECK_INT(card_rights_of(&c), CARD_MAY_SHOW);
    c.scopes = SCOPE_SEND | SCOPE_READ;
    c.role = ROLE_AGENT;
    CHECK_INT(card_rights_of(&c), 0);
    CHECK_INT(card_rights_of(&(struct caller){.role = 0}), 0);
}

/* Names. */

static enum err named(struct str path, const struct agent *before,
                      const char *card_name, const char *becomes)
{
    char text[128];
    struct stage s;
    enum err e;

    stage_init(&s);
    s.opts.name = path;
    s.opts.before = before;
    snprintf(text, sizeof(text), "{%s%s%s\"description\":\"d\"}",
             card_name ? "\"name\":\"" : "", card_name ? card_name : "",
             card_name ? "\"," : "");
    stage_read(&s, str_of(text));
    e = s.e;
    if (e)
        stage_problem(&s, STR("/name"));
    else
        CHECK_STR(s.agent.name, becomes);
    stage_fini(&s);
    return e;
}

TEST(the_name_is_the_paths_to_the_letter)
{
    const struct agent there = {.name = STR("Bob")};
    const struct str bob = STR("bob");

    CHECK(named(bob, NULL, NULL, "bob") == OK);
    CHECK(named(bob, NULL, "bob", "bob") == OK);
    CHECK(named(bob, NULL, "Bob", "") == ERR_BAD_REQUEST);
    CHECK(named(bob, NULL, "eve", "") == ERR_BAD_REQUEST);
    CHECK(named(bob, &there, NULL, "Bob") == OK);
    CHECK(named(bob, &there, "Bob", "Bob") == OK);
    CHECK(named(bob, &there, "bob", "") == ERR_BAD_REQUEST);
    CHECK(named(STR(""), &there, "Bob", "Bob") == OK);
    CHECK(named(STR(""), &there, "BOB", "") == ERR_BAD_REQUEST);
    CHECK(named(STR(""), NULL, NULL, "") == ERR_BAD_REQUEST);
    CHECK(named(STR("search"), NULL, NULL, "") == ERR_BAD_REQUEST);
    CHECK(named(STR("a b"), NULL, NULL, "") == ERR_BAD_REQUEST);
    CHECK(named(STR("a\x1b"), NULL, "a", "") == ERR_BAD_REQUEST);
}

/* The configuration. */

TEST(the_configuration_writes_camel_case_and_calls_the_name_id)
{
    const struct agent *a;
    struct stage s;

    stage_init(&s);
    s.opts.dialect = CARD_CONFIG;
    stage_read(&s, STR("{\"id\":\"code\",\"org\":\"acme\","
                       "\"routing\":{\"systemPrompt\":\"p\"},"
                       "\"wake\":{\"url\":\"http://h/\",\"timeoutMs\":7},"
                       "\"limits\":{\"inFlight\":3},"
                       "\"skills\":[{\"id\":\"s\",\"name\":\"S\","
                       "\"pricing\":{\"amountMicros\":5}}],"
                       "\"pricing\":{\"amountMicros\":6},"
                       "\"delegation\":{\"allowAgents\":[\"docs\",\"ops\"],"
                       "\"maxConcurrent\":2,\"maxDepth\":1}}"));
    CHECK_INT(s.e, OK);
    a = &s.agent;
    CHECK_STR(a->name, "code");
    CHECK_STR(a->url, "ws-agent://code");
    CHECK_STR(a->org, "acme");
    CHECK_STR(a->routing.system_prompt, "p");
    CHECK(a->wake.timeout_ms == 7 && a->limits.in_flight == 3);
    CHECK(a->skills[0].price.micros == 5 && a->price.micros == 6);
    CHECK(a->delegation.allow.n == 2 && a->delegation.max_depth == 1);
    stage_fini(&s);
}

/* -1: rejected. */
static int64_t micros_of(enum card_dialect dialect, const char *pricing,
                         const char *pointer, const char *words)
{
    struct stage s;
    char text[256];
    int64_t micros = -1;

    stage_init(&s);
    s.opts.dialect = dialect;
    s.opts.currency = STR("USD");
    snprintf(text, sizeof(text),
             "{\"%s\":\"a\",\"description\":\"d\",\"pricing\":{%s}}",
             dialect == CARD_WIRE ? "name" : "id", pricing);
    stage_read(&s, str_of(text));
    if (s.e == OK) {
        micros = s.agent.price.micros;
    } else {
        CHECK_INT(s.problems.n_all, 1);
        CHECK_STR(s.problems.list[0].pointer, pointer);
        if (!strstr(s.problems.list[0].message.p, words))
            T_FAIL("%s: %s", pricing, s.problems.list[0].message.p);
    }
    stage_fini(&s);
    return micros;
}

static void amounts_are_taken_to_the_last_digit(void)
{
    static const struct {
        const char *amount;
        int64_t micros;
    } good[] = {
        {"0", 0},
        {"0.0", 0},
        {"1", 1000000},
        {"0.1", 100000},
        {"0.000001", 1},
        {"1e-05", 10}, /* as Python writes it */
        {"1E-6", 1},
        {"0.29", 290000},
        {"1.005", 1005000},
        {"4.35", 4350000},
        {"999999.999999", 999999999999},
        {"1000000", 1000000000000},
        {"1e6", 1000000000000},
        {"\"0.05\"", 50000},
        {"\"1000000.000000\"", 1000000000000},
    };
    static const char *const bad[] = {
        "-1",
        "-0.01",
        "0.0000001",
        "1e-7",
        "0.1234567",
        "0.30000000000000004",
        "1000001",
        "1000000.000001",
        "1e300",
        "9223372036854775807",
        "\"\"",
        "\"1e-5\"",
        "\"1.\"",
        "\".5\"",
        "\"0.0000001\"",
        "\"1000000.000001\"",
        "\"-1\"",
        "\"5 USD\"",
        "\"1\\u0000999\"",
        "\"1.5\\u0000\"",
        "\"+1\"",
        "\"1. 5\"",
        "true",
        "[1]",
    };
    char text[96];

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        snprintf(text, sizeof(text), "\"amount\":%s,\"currency\":\"USD\"",
                 good[i].amount);
        CHECK_INT(micros_of(CARD_WIRE, text, "", ""), good[i].micros);
        CHECK_INT(micros_of(CARD_CONFIG, text, "", ""), good[i].micros);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text), "\"amount\":%s,\"currency\":\"USD\"",
                 bad[i]);
        CHECK_INT(micros_of(CARD_WIRE, text, "/pricing/amount",
                            "up to six digits after the point, like 0.05"),
                  -1);
    }
    /* The message repeats the value as it was written. */
    CHECK_INT(micros_of(CARD_WIRE,
                        "\"amount\":\"1\\u0000999\",\"currency\":\"USD\"",
                        "/pricing/amount", "not \"1?999\""),
              -1);
    CHECK_INT(micros_of(CARD_WIRE, "\"amount\":1e-7,\"currency\":\"USD\"",
                        "/pricing/amount", "not 1e-07"),
              -1);
    CHECK_INT(micros_of(CARD_WIRE, "\"amount\":0.1234567,\"currency\":\"USD\"",
                        "/pricing/amount", "not 0.1234567"),
              -1);
    /* One in a million of all amounts with six digits. */
    for (int64_t v = 0; v <= AGENT_PRICE_MAX; v += 1000003 * INT64_C(997)) {
        snprintf(text, sizeof(text),
                 "\"amount\":%" PRId64 ".%06" PRId64 ",\"currency\":\"USD\"",
                 v / 1000000, v % 1000000);
        CHECK_INT(micros_of(CARD_WIRE, text, "", ""), v);
    }
}

TEST(a_price_is_taken_as_an_amount_to_the_last_digit)
{
    amounts_are_taken_to_the_last_digit();
}

TEST(the_control_that_rounds_an_amount_is_caught)
{
    check_control("card.round_amount", amounts_are_taken_to_the_last_digit);
}

static void other_currencies_are_refused(void)
{
    static const struct {
        const char *pricing, *pointer, *words;
    } bad[] = {
        {"\"amount\":1,\"currency\":\"EUR\"", "/pricing/currency",
         "must be \"USD\", which the ledger is kept in, not \"EUR\": prices "
         "are not converted"},
        {"\"amount\":1,\"currency\":\"USDC\"", "/pricing/currency", "\"USD\""},
        {"\"amount\":1,\"currency\":\"\"", "/pricing/currency", "the name of"},
        {"\"amount\":1,\"currency\":\"seventeen-letters\"", "/pricing/currency",
         "up to 16 bytes"},
        {"\"amount\":1,\"currency\":840", "/pricing/currency", "not 840"},
        {"\"amount\":1", "/pricing", "does not say of which currency"},
        {"\"amount\":1,\"currency\":null", "/pricing", "of which currency"},
        {"\"currency\":\"USD\"", "/pricing", "no amount of it"},
        {"\"currency\":\"EUR\",\"amount_micros\":1", "/pricing/currency",
         "must be \"USD\""},
        {"\"amount\":1,\"currency\":\"USD\",\"amount_micros\":1000000",
         "/pricing", "has amount_micros and amount: give one of them"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_INT(
            micros_of(CARD_WIRE, bad[i].pricing, bad[i].pointer, bad[i].words),
            -1);
    CHECK_INT(micros_of(CARD_WIRE, "\"amount\":1,\"currency\":\"usd\"", "", ""),
              1000000);
    CHECK_INT(micros_of(CARD_WIRE, "\"amount_micros\":7,\"currency\":\"USD\"",
                        "", ""),
              7);
    CHECK_INT(micros_of(CARD_WIRE,
                        "\"amount\":1,\"currency\":\"USD\","
                        "\"amount_micros\":null",
                        "", ""),
              1000000);
}

TEST(an_amount_is_of_the_ledgers_currency_or_refused)
{
    other_currencies_are_refused();
}

TEST(the_control_that_takes_any_currency_is_caught)
{
    check_control("card.any_currency", other_currencies_are_refused);
}

TEST(the_price_of_a_skill_may_be_an_amount_too)
{
    struct stage s;

    stage_init(&s);
    s.opts.currency = STR("EUR");
    stage_read(&s, STR("{\"name\":\"a\",\"description\":\"d\",\"skills\":[{"
                       "\"id\":\"s\",\"name\":\"S\",\"pricing\":{"
                       "\"amount\":\"0.02\",\"currency\":\"EUR\"}}]}"));
    CHECK_INT(s.e, OK);
    CHECK(s.agent.skills[0].price.is_given);
    CHECK_INT(s.agent.skills[0].price.micros, 20000);
    stage_fini(&s);
}

TEST(the_configuration_has_fields_of_its_own)
{
    static const struct {
        const char *text, *pointer, *words;
    } bad[] = {
        {"{}", "/id", "is missing"},
        {"{\"id\":\"search\"}", "/id", "is taken"},
        {"{\"id\":\"a\",\"name\":\"a\"}", "/name",
         "is called \"id\" in the configuration"},
        {"{\"id\":\"a\",\"limits\":{\"in_flight\":1}}", "/limits/in_flight",
         "is called \"inFlight\" in the configuration"},
        {"{\"id\":\"a\",\"creatorId\":\"x\"}", "/creatorId", "is not a field"},
        {"{\"id\":\"a\",\"creator_id\":\"x\"}", "/creator_id",
         "cannot be given in the configuration"},
        {"{\"id\":\"a\",\"kind\":\"managed\"}", "/kind",
         "is the server's to say"},
        {"{\"id\":\"a\",\"state\":\"IDLE\"}", "/state",
         "is the server's to say"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct card_problem *p;
        struct stage s;

        stage_init(&s);
        s.opts.dialect = CARD_CONFIG;
        stage_read(&s, str_of(bad[i].text));
        CHECK_INT(s.e, ERR_BAD_REQUEST);
        CHECK_INT(s.problems.n_all, 1);
        p = stage_problem(&s, str_of(bad[i].pointer));
        CHECK(stage_has(p->message, str_of(bad[i].words)));
        stage_fini(&s);
    }
}
