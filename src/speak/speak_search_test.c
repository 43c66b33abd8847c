#include "speak/fields.h"
#include "speak/speak.h"
#include "test/t.h"

static struct arena arena;
static struct buf out;

static enum err post(const char *body, struct speak_search_call *s,
                     struct why *why)
{
    arena_fini(&arena);
    arena_init(&arena, 1 << 20);
    return speak_search_post(&arena, str_of(body), s, why);
}

/* One argument beside q. */
static enum err get(const char *name, const char *value,
                    struct speak_search_call *s, struct why *why)
{
    const struct field *row = speak_search_args;
    struct str values[13] = {STR("find it")}; /* q is the first */

    for (size_t i = 0; name && row[i].name; i++)
        if (strcmp(row[i].name, name) == 0)
            values[i] = str_of(value);
    return speak_search_get(values, s, why);
}

TEST(what_is_not_said_is_hybrid_weighted_and_ten)
{
    struct speak_search_call s;
    struct why why;

    CHECK(get(NULL, NULL, &s, &why) == OK);
    CHECK_STR(s.text, "find it");
    CHECK(s.limit == 10 && s.mode == INDEX_HYBRID &&
          s.fusion == INDEX_WEIGHTED && !s.has_fusion && !s.explains);
    CHECK(!s.has_order && !s.is_plain);
    CHECK(!s.tag.n && !s.org.n && !s.state && s.max_price == -1 &&
          s.min_score == 0);
}

TEST(everything_can_be_said_in_both_ways)
{
    struct speak_search_call s;
    struct why why;

    CHECK(post("{\"query\":\"a\\nb\",\"limit\":100,\"mode\":\"text\","
               "\"fusion\":\"rrf\",\"explain\":true,\"tag\":\"code\","
               "\"org\":\"acme\",\"state\":\"idle\",\"max_price_micros\":0,"
               "\"min_score\":0.25,\"order\":\"plain\"}",
               &s, &why) == OK);
    CHECK(s.has_order && s.is_plain);
    CHECK_STR(s.text, "a\nb");
    CHECK(s.limit == 100 && s.mode == INDEX_TEXT && s.fusion == INDEX_RRF &&
          s.has_fusion && s.explains);
    CHECK_STR(s.tag, "code");
    CHECK_STR(s.org, "acme");
    CHECK(s.state == AGENT_IDLE && s.max_price == 0 && s.min_score == 0.25);
    CHECK(post("{\"q\":\"x\",\"min_score\":1,\"explain\":null}", &s, &why) ==
          OK);
    CHECK(s.min_score == 1.0 && !s.explains);
    CHECK(get("mode", "semantic", &s, &why) == OK && s.mode == INDEX_SEMANTIC);
    CHECK(get("fusion", "rrf", &s, &why) == OK && s.fusion == INDEX_RRF);
    CHECK(get("explain", "true", &s, &why) == OK && s.explains);
    CHECK(get("min_score", "0.5", &s, &why) == OK && s.min_score == 0.5);
    CHECK(get("max_price_micros", "1500", &s, &why) == OK &&
          s.max_price == 1500);
    CHECK(get("state", "DEAD", &s, &why) == OK && s.state == AGENT_DEAD);
}

TEST(what_is_wrong_is_named_with_what_would_be_right)
{
    static const struct {
        const char *name, *value, *words;
    } bad[] = {
        {"limit", "0", "limit must be a whole number from 1 to 100"},
        {"limit", "101", "limit must be a whole number from 1 to 100"},
        {"limit", "ten", "limit must be a whole number from 1 to 100"},
        {"limit", "", "limit must be a whole number from 1 to 100"},
        {"mode", "fast", "mode must be \"hybrid\", \"semantic\" or \"text\""},
        {"mode", "", "mode must be a string of 1 to 16 bytes"},
        {"fusion", "max", "fusion must be \"weighted\" or \"rrf\""},
        {"explain", "yes", "explain must be true or false"},
        {"explain", "1", "explain must be true or false"},
        {"tag", "", "tag must be a string of 1 to 64 bytes"},
        {"state", "asleep", "state must be \"ACTIVE\", \"IDLE\""},
        {"max_price_micros", "-1", "max_price_micros must be a whole number"},
        {"max_price_micros", "0.5", "max_price_micros must be a whole number"},
        {"min_score", "1.5", "min_score must be a number from 0 to 1"},
        {"min_score", "-0.5", "min_score must be a number from 0 to 1"},
        {"min_score", "0.5x", "min_score must be a number from 0 to 1"},
        {"min_score", " 0.5", "min_score must be a number from 0 to 1"},
        {"min_score", "nan", "min_score must be a number from 0 to 1"},
        {"min_score", "[0.5]", "min_score must be a number from 0 to 1"},
        {"min_score", "1e400", "min_score must be a number from 0 to 1"},
        {"query", "x", "query and q are the same"},
        {"q", "", "q must be a string of 1 to 16384 bytes"},
    };
    struct speak_search_call s;
    struct why why;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (strcmp(bad[i].value, " 0.5") == 0)
            continue; /* JSON may have space around it */
        why.text[0] = '\0';
        if (get(bad[i].name, bad[i].value, &s, &why) != ERR_BAD_REQUEST ||
            !strstr(why.text, bad[i].words))
            T_FAIL("%s=%s: %s", bad[i].name, bad[i].value, why.text);
    }
    CHECK(post("{}", &s, &why) == ERR_BAD_REQUEST);
    CHECK(strstr(why.text, "nothing to search for"));
    CHECK(post("{\"query\":\"x\",\"explain\":\"true\"}", &s, &why) ==
          ERR_BAD_REQUEST);
    CHECK(strstr(why.text, "explain must be true or false"));
    CHECK(post("{\"query\":\"x\",\"min_score\":\"1\"}", &s, &why) ==
          ERR_BAD_REQUEST);
    CHECK(post("{\"query\":7}", &s, &why) == ERR_BAD_REQUEST);
    CHECK(post("{\"query\":\"x\",\"top\":3}", &s, &why) == ERR_BAD_REQUEST);
    CHECK(strstr(why.text, "unknown field \"top\""));
    CHECK(post("nonsense", &s, &why) == ERR_SYNTAX);
}

TEST(a_query_has_its_limit)
{
    static char body[SPEAK_QUERY_MAX + 64];
    struct speak_search_call s;
    struct why why;

    for (size_t n = SPEAK_QUERY_MAX; n <= SPEAK_QUERY_MAX + 1; n++) {
        int at = snprintf(body, sizeof(body), "{\"query\":\"");

        memset(body + at, 'x', n);
        snprintf(body + at + n, 3, "\"}");
        if (n == SPEAK_QUERY_MAX) {
            CHECK(post(body, &s, &why) == OK && s.text.n == n);
        } else {
            CHECK(post(body, &s, &why) == ERR_LIMIT);
            CHECK(strstr(why.text, "16384"));
        }
    }
}

static const struct str tags[] = {STR("code")};
static const struct str examples[] = {STR("why does this segfault")};
static const struct skill skills[] = {
    {.id = STR("build"), .name = STR("Building"), .description = STR("Makes")},
    {.id = STR("debug"),
     .name = STR("Debugging"),
     .description = STR("Finds and fixes bugs"),
     .tags = {tags, 1},
     .examples = {examples, 1},
     .price = {true, 1500}}};
static const struct agent engineer = {.name = STR("engineer"),
                                      .description = STR("Repairs software"),
                                      .version = STR("1.0.0"),
                                      .url = STR("ws-agent://engineer"),
                                      .visibility = VISIBILITY_PUBLIC,
                                      .creator = STR("anna"),
                                      .skills = skills,
                                      .n_skills = 2};

static const struct index_match matches[] = {
    {.skill = 1, .score = 0.87F, .semantic = 0.9F, .text = 0.8F},
    {.skill = INDEX_AGENT, .score = 0.5F, .semantic = 0.5F, .text = 0.5F},
    {.skill = 0, .score = 0.1F, .semantic = 0.1F, .text = 0.1F}};

static struct str told(const struct speak_hits *h)
{
    struct json_out o;

    buf_fini(&out);
    buf_init(&out, 65536);
    o = json_out(&out);
    speak_hits(&o, h);
    return buf_str(&out);
}

TEST(an_answer_has_the_shape_of_seed_000)
{
    struct speak_hit hit = {.agent = &engineer,
                            .state = AGENT_IDLE,
                            .score = (double)0.87F,
                            .matches = matches,
                            .n_matches = 3};
    struct speak_hits h = {.list = &hit,
                           .n = 1,
                           .total = 1,
                           .mode = INDEX_HYBRID,
                           .max_bytes = 65536};

    CHECK_STR(
        told(&h),
        "{\"agents\":[{\"name\":\"engineer\",\"description\":\"Repairs "
        "software\",\"skills\":[{\"id\":\"debug\",\"name\":\"Debugging\","
        "\"description\":\"Finds and fixes bugs\",\"tags\":[\"code\"],"
        "\"examples\":[\"why does this segfault\"],\"pricing\":{"
        "\"amount_micros\":1500},\"score\":0.87},{\"id\":\"build\",\"name\":"
        "\"Building\",\"description\":\"Makes\",\"score\":0.1}],\"score\":0.87,"
        "\"best_skill_id\":\"debug\",\"title\":null,\"url\":"
        "\"ws-agent://engineer\",\"visibility\":\"public\",\"creator_id\":"
        "\"anna\",\"org\":null,\"state\":\"IDLE\",\"version\":\"1.0.0\"}],"
        "\"total\":1,\"mode\":\"hybrid\"}");
    h.n = h.total = 0;
    h.mode = INDEX_TEXT;
    h.note = STR("by words alone");
    CHECK_STR(told(&h), "{\"agents\":[],\"total\":0,\"mode\":\"text\","
                        "\"note\":\"by words alone\"}");
    buf_fini(&out);
}

TEST(the_best_skill_is_named_where_the_agent_itself_matched_better)
{
    struct speak_hit hit = {.agent = &engineer,
                            .score = 0.5,
                            .matches = &matches[1],
                            .n_matches = 2};
    struct speak_hits h = {.list = &hit, .n = 1};

    told(&h);
    CHECK(memmem(out.p, out.n, "\"best_skill_id\":\"build\"", 23));
    CHECK(memmem(out.p, out.n, "\"id\":\"build\"", 12));
    CHECK(!memmem(out.p, out.n, "\"id\":\"debug\"", 12));
    hit.n_matches = 1; /* and none of its skills */
    told(&h);
    CHECK(memmem(out.p, out.n, "\"best_skill_id\":null", 20));
    buf_fini(&out);
}

TEST(an_explanation_has_both_parts_the_weights_and_the_words_that_met)
{
    struct speak_hit hit = {
        .agent = &engineer, .score = 0.87, .matches = matches, .n_matches = 1};
    struct speak_hits h = {.list = &hit,
                           .n = 1,
                           .explains = true,
                           .text = STR("the bug that segfaults in zebras"),
                           .semantic_weight = 0.7,
                           .text_weight = 0.3};
    struct arena a;
    struct json *v, *agent;

    arena_init(&a, 1 << 20);
    v = json_parse(&a, told(&h), 0, NULL);
    CHECK(v);
    agent = json_at(json_get(v, STR("agents")), 0);
    CHECK(json_real_or(json_get(agent, STR("semantic")), 0) == 0.9);
    CHECK(json_real_or(json_get(agent, STR("text")), 0) == 0.8);
    CHECK(json_get(agent, STR("words"))->kids.n == 2);
    agent = json_at(json_get(agent, STR("skills")), 0);
    CHECK(json_real_or(json_get(agent, STR("semantic")), 0) == 0.9);
    CHECK_STR(json_str_or(json_at(json_get(agent, STR("words")), 0), STR("")),
              "bug");
    CHECK_STR(json_str_or(json_at(json_get(agent, STR("words")), 1), STR("")),
              "segfault");
    CHECK(json_get(v, STR("words"))->kids.n == 3);
    v = json_get(v, STR("formula"));
    CHECK(json_real_or(json_get(v, STR("semantic")), 0) == 0.7);
    CHECK(json_real_or(json_get(v, STR("text")), 0) == 0.3);
    CHECK_STR(json_str_or(json_get(v, STR("fusion")), STR("")), "weighted");
    arena_fini(&a);
    buf_fini(&out);
}

/* An explanation of a hundred long cards stops half way, so that other requests
 * do not wait for it. */
TEST(an_explanation_ends_at_its_limit)
{
    enum { N = 100, BYTES = AGENT_DESCRIPTION_MAX };
    static char text[BYTES];
    struct agent a = engineer;
    struct speak_hit hits[N];
    struct speak_hits h = {.list = hits,
                           .n = N,
                           .max_bytes = SIZE_MAX,
                           .explains = true,
                           .text = STR("bug")};
    struct json *v, *first, *last;

    memset(text, 'x', sizeof(text));
    a.description = (struct str){text, sizeof(text)};
    for (size_t i = 0; i < N; i++)
        hits[i] =
            (struct speak_hit){.agent = &a, .matches = matches, .n_matches = 1};
    buf_fini(&out);
    buf_init(&out, 64 << 20);
    arena_fini(&arena);
    arena_init(&arena, 64 << 20);
    {
        struct json_out o = json_out(&out);

        speak_hits(&o, &h);
    }
    v = json_parse(&arena, buf_str(&out), 0, NULL);
    CHECK(v);
    first = json_at(json_get(v, STR("agents")), 0);
    last = json_at(json_get(v, STR("agents")), N - 1);
    CHECK(json_get(first, STR("words"))->type == JSON_ARR);
    CHECK(json_get(last, STR("words"))->type == JSON_NULL);
    buf_fini(&out);
    arena_fini(&arena);
}

static struct json *words_of(const char *query, const struct agent *a,
                             uint32_t skill)
{
    struct index_match m = {.skill = skill, .score = 0.6F, .text = 0.6F};
    struct speak_hit hit = {.agent = a, .matches = &m, .n_matches = 1};
    struct speak_hits h = {
        .list = &hit, .n = 1, .explains = true, .text = str_of(query)};
    struct json *v;

    arena_fini(&arena);
    arena_init(&arena, 1 << 20);
    v = json_parse(&arena, told(&h), 0, NULL);
    CHECK(v);
    return json_get(json_at(json_get(v, STR("agents")), 0), STR("words"));
}

/* Exactly the words that the index counts are explained. */
TEST(words_of_titles_and_of_the_parts_of_names_are_told)
{
    static const struct skill named[] = {
        {.id = STR("Clock_1.GetAlarms"), .name = STR("Clock_1.GetAlarms")},
        {.id = STR("x"), .name = STR("Convert .docx to PDF")}};
    struct agent a = engineer;
    struct json *words;

    a.name = STR("desk.InvoiceReader");
    a.title = STR("The Quartz Desk");
    a.skills = named;
    words = words_of("quartz watch", &a, INDEX_AGENT);
    CHECK(words->kids.n == 1);
    CHECK_STR(json_str_or(json_at(words, 0), STR("")), "quartz");
    CHECK(words_of("invoice invoicereader", &a, INDEX_AGENT)->kids.n == 2);
    CHECK(words_of("alarms getalarms", &a, 0)->kids.n == 2);
    CHECK(words_of("clock", &a, 0)->kids.n == 0);
    CHECK(words_of("docx converting", &a, 1)->kids.n == 2);
    buf_fini(&out);
    arena_fini(&arena);
}

TEST(an_answer_that_is_full_says_how_many_are_left_out)
{
    struct speak_hit hits[3];
    struct speak_hits h = {.list = hits, .n = 1, .total = 7};
    size_t one, two;

    for (size_t i = 0; i < 3; i++)
        hits[i] = (struct speak_hit){
            .agent = &engineer, .matches = matches, .n_matches = 1};
    one = told(&h).n; /* the first is always there */
    CHECK(memmem(out.p, out.n, "\"total\":7,", 10));
    CHECK(!memmem(out.p, out.n, "\"note\"", 6));
    h.max_bytes = SIZE_MAX;
    h.n = 2;
    two = told(&h).n;
    h.n = 3;
    /* Written before the limit applies: '{"agents":[' and two hits. */
    h.max_bytes = two - strlen("],\"total\":2,\"mode\":\"hybrid\"}");
    CHECK(told(&h).n > two && !memmem(out.p, out.n, "\"note\"", 6));
    h.max_bytes--;
    CHECK(told(&h).n > two);
    CHECK(memmem(out.p, out.n, "\"total\":7,", 10));
    CHECK(
        memmem(out.p, out.n, "\"note\":\"1 more found agent does not fit", 38));
    h.max_bytes = one / 2;
    h.note = STR("by words alone");
    told(&h);
    CHECK(memmem(out.p, out.n, "\"by words alone; 2 more found agents do", 38));
    buf_fini(&out);
}
