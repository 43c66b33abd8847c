#include "base/fault.h"
#include "speak/speak.h"
#include "test/t.h"

static struct buf out;

static struct json_out fresh(void)
{
    buf_fini(&out);
    buf_init(&out, 65536);
    return json_out(&out);
}

static const struct skill debug = {.id = STR("debug"),
                                   .name = STR("Debugging"),
                                   .description = STR("Finds bugs")};
static const struct agent engineer = {
    .name = STR("engineer"),
    .description = STR("Builds software"),
    .url = STR("ws-agent://engineer"),
    .visibility = VISIBILITY_SHARED,
    .skills = &debug,
    .n_skills = 1,
    .routing = {.system_prompt = STR("Be brief.")},
    .wake = {.url = STR("https://wake.example/")},
    .creator = STR("anna"),
    .org = STR("acme"),
    .kind = AGENT_MANAGED,
    .revision = 3,
    .created_ms = 1,
    .updated_ms = 2,
};

static struct json *said(struct arena *a, enum card_view view, bool changed)
{
    struct json_out o = fresh();
    struct speak_agent s = {.agent = &engineer,
                            .view = view,
                            .state = AGENT_IDLE,
                            .is_paused = true,
                            .says_changed = changed,
                            .has_changed = true};
    struct json *tree;

    speak_agent(&o, &s);
    tree = json_parse(a, buf_str(&out), 0, NULL);
    CHECK(tree);
    return tree;
}

static struct str member(const struct json *v, const char *name)
{
    return json_str_or(json_get(v, str_of(name)), STR("?"));
}

TEST(an_agent_is_its_card_and_what_is_known_of_it)
{
    struct arena a;
    struct json *v;

    arena_init(&a, 1 << 20);
    v = said(&a, CARD_ALL, false);
    CHECK_STR(member(v, "name"), "engineer");
    CHECK_STR(member(v, "url"), "ws-agent://engineer");
    CHECK_STR(member(v, "state"), "IDLE");
    CHECK_STR(member(v, "creator_id"), "anna");
    CHECK_STR(member(v, "org"), "acme");
    CHECK_STR(member(v, "kind"), "managed");
    CHECK_INT(json_int_or(json_get(v, STR("revision")), 0), 3);
    CHECK(json_get(v, STR("title"))->type == JSON_NULL);
    CHECK(json_get(v, STR("embedded"))->type == JSON_BOOL);
    CHECK(json_bool_or(json_get(v, STR("paused")), false));
    CHECK(!json_get(v, STR("changed")));
    CHECK(json_get(v, STR("wake")));
    v = said(&a, CARD_ALL, true);
    CHECK(json_bool_or(json_get(v, STR("changed")), false));
    arena_fini(&a);
    buf_fini(&out);
}

TEST(in_a_few_words_it_has_no_card)
{
    struct json_out o = fresh();
    struct speak_brief b = {
        .agent = &engineer, .description = STR("Builds"), .state = AGENT_SLOW};

    speak_agent_brief(&o, &b);
    CHECK_STR(buf_str(&out),
              "{\"name\":\"engineer\",\"title\":null,\"description\":"
              "\"Builds\",\"visibility\":\"shared\",\"creator_id\":\"anna\","
              "\"org\":\"acme\",\"kind\":\"managed\",\"skills\":1,"
              "\"revision\":3,\"state\":\"SLOW\",\"state_reason\":null,"
              "\"paused\":false}");
    buf_fini(&out);
}

TEST(others_are_not_told_what_is_its_creator_s)
{
    struct arena a;

    arena_init(&a, 1 << 20);
    CHECK(!json_get(said(&a, CARD_OTHERS, false), STR("wake")));
    CHECK(!memmem(out.p, out.n, "Be brief", 8));
    CHECK(!memmem(out.p, out.n, "wake.example", 12));
    arena_fini(&a);
    buf_fini(&out);
}

TEST(problems_are_told_with_their_places)
{
    struct json_out o = fresh();
    struct card_problems p = {
        .list = {{.pointer = STR("/skills/0/name"),
                  .message = STR("must be \"x\"")},
                 {.pointer = STR(""), .message = STR("is too large")}},
        .n = 2,
        .n_all = 70};

    speak_problems(&o, &p);
    CHECK_STR(buf_str(&out),
              "{\"problems\":[{\"pointer\":\"/skills/0/name\",\"message\":"
              "\"must be \\\"x\\\"\"},{\"pointer\":\"\",\"message\":"
              "\"is too large\"}],\"total\":70}");
    buf_fini(&out);
}

TEST(the_nearest_are_a_list)
{
    struct json_out o = fresh();
    struct near near = {.names = {STR("a"), STR("b")}, .n = 2};

    speak_nearest(&o, &near);
    CHECK_STR(buf_str(&out), "{\"nearest\":[\"a\",\"b\"]}");
    o = fresh();
    near.n = 0;
    speak_nearest(&o, &near);
    CHECK_STR(buf_str(&out), "{\"nearest\":[]}");
    buf_fini(&out);
}

/* Grants. */

TEST(a_grant_is_told_with_null_for_what_it_has_not)
{
    struct json_out o = fresh();
    struct agent_grant g = {.id = {"grant_1"},
                            .user = STR("bob"),
                            .created_ms = 7,
                            .by = STR("anna")};

    speak_grant(&o, STR("engineer"), &g);
    CHECK_STR(buf_str(&out),
              "{\"id\":\"grant_1\",\"agent\":\"engineer\",\"user\":\"bob\","
              "\"org\":null,\"expires_ms\":null,\"created_ms\":7,\"by\":"
              "\"anna\"}");
    o = fresh();
    g.user = STR("");
    g.org = STR("acme");
    g.expires_ms = 9;
    speak_grant(&o, STR("engineer"), &g);
    CHECK(memmem(out.p, out.n,
                 "\"user\":null,\"org\":\"acme\",\"expires_ms\":9", 39));
    buf_fini(&out);
}

static enum err grant_of(const char *body, struct speak_grant_call *g,
                         struct why *why)
{
    struct arena a;
    enum err e;

    arena_init(&a, 65536);
    e = speak_grant_post(&a, str_of(body), g, why);
    arena_fini(&a); /* the caller looks at numbers and lengths alone */
    return e;
}

TEST(a_grant_is_for_a_user_or_an_org)
{
    static const struct {
        const char *body, *words;
    } bad[] = {
        {"{\"user\":\"bob\"}", "agent is missing"},
        {"{\"agent\":\"x\"}", "either user or org"},
        {"{\"agent\":\"x\",\"user\":\"bob\",\"org\":\"acme\"}",
         "either user or org"},
        {"{\"agent\":\"x\",\"user\":\"\"}", "user must be a string of 1 to"},
        {"{\"agent\":\"x\",\"user\":7}", "user must be a string"},
        {"{\"agent\":\"x\",\"user\":\"b\",\"expires_in_s\":0}",
         "expires_in_s must be a whole number from 1 to"},
        {"{\"agent\":\"x\",\"user\":\"b\",\"expires_in_s\":1.5}",
         "expires_in_s must be a whole number"},
        {"{\"agent\":\"x\",\"usr\":\"b\"}", "did you mean \"user\"?"},
        {"[]", "must be a JSON object"},
        {"", "the body is empty"},
    };
    struct speak_grant_call g;
    struct why why;

    CHECK(grant_of("{\"agent\":\"x\",\"user\":\"bob\"}", &g, &why) == OK);
    CHECK(g.agent.n == 1 && g.user.n == 3 && !g.org.n && !g.expires_in_s);
    CHECK(grant_of("{\"agent\":\"x\",\"org\":\"acme\",\"user\":null,"
                   "\"expires_in_s\":60}",
                   &g, &why) == OK);
    CHECK(!g.user.n && g.org.n == 4 && g.expires_in_s == 60);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        CHECK(grant_of(bad[i].body, &g, &why) != OK);
        if (!strstr(why.text, bad[i].words))
            T_FAIL("%s: %s", bad[i].body, why.text);
    }
}
