/* From a query to ranked results: the formula through the real index, filters,
 * visibility, the order of the first ten, and queries of every kind. */
#include "test/lib/find_stage.h"

/* A provider with chosen vectors: by the first of these words in the text. */
static const struct {
    const char *word;
    float v[TEST_DIMS];
} chosen[] = {
    {"quix", {0.6F, 0.8F}},
    {"kerf", {0.3F, 0, 0.9539392F}},
    {"mosk", {0.5F, 0, 0, 0.8660254F}},
    {"tweedle", {0.8F, 0.6F}},
    {"zorp", {1}},
    {"opposite", {-1}},
    {"beside", {0}},
};

/* The likeness to zorp of what is "beside". */
static float beside;

static const float *vector_of(size_t k, float by_likeness[TEST_DIMS])
{
    if (strcmp(chosen[k].word, "beside") != 0)
        return chosen[k].v;
    memset(by_likeness, 0, TEST_DIMS * sizeof(float));
    by_likeness[0] = beside;
    by_likeness[1] = sqrtf(1 - beside * beside);
    return by_likeness;
}

static void respond_as_chosen(struct provider_peer *p, struct seat *s)
{
    struct arena arena;
    struct json *input;
    struct buf out;
    float by_likeness[TEST_DIMS];

    (void)p;
    arena_init(&arena, 1 << 20);
    buf_init_roomy(&out, 1 << 20);
    input = input_of(&arena, s);
    buf_addf(&out, "{\"data\":[");
    for (size_t i = 0; i < input->kids.n; i++) {
        struct str text = json_at(input, i)->s;
        size_t k = 0;

        while (!memmem(text.p, text.n, chosen[k].word, strlen(chosen[k].word)))
            CHECK(++k < sizeof(chosen) / sizeof(chosen[0]));
        add_element(&out, i ? "," : "", i, vector_of(k, by_likeness),
                    TEST_DIMS);
    }
    buf_addf(&out, "]}");
    say(s, 200, "", buf_str(&out));
    buf_fini(&out);
    arena_fini(&arena);
}

static struct find *golden(void)
{
    struct find *f = find_begin(EMBED_HTTP);

    f->e->peer->respond = respond_as_chosen;
    find_open(f);
    PUT(f, "anna", card("kerf", "blam", "public", skill("s", "zorp", "quix")));
    PUT(f, "ben", card("mosk", "fnord", "public", ""));
    AWAIT(f->e, registry_stats(f->r).unembedded == 0);
    return f;
}

static bool is_near(float a, double b)
{
    return fabs((double)a - b) < 2e-4;
}

/* Three documents, words counted four times where they are a document's own:
 *
 *     kerf        kerf blam                 8
 *     kerf, s     zorp quix, kerf blam     10 = 2 * 4 + 2 * 1
 *     mosk        mosk fnord                8        mean 26 / 3
 *
 * zorp is in one of three: idf = ln(1 + 2.5 / 1.5) = 0.980829.
 *     bm25  = idf * 2.2 * 4 / (4 + 4.8 * (0.25 + 0.75 * 10 / (26 / 3)))
 *           = idf * 0.940790
 *     ideal = idf * 2.2 * 2 / (2 + 1.2) = idf * 1.375
 *     text  = (0.940790 / 1.375) ^ 1.5 = 0.684211 ^ 1.5 = 0.565960
 *     score = 0.7 * 0.6 + 0.3 * 0.565960 = 0.589788 */
TEST(the_formula_by_hand)
{
    struct find *f = golden();
    struct search s = find_query("anna", "zorp");
    struct found o;

    find_search(f, &s, &o);
    CHECK(o.err == OK && o.mode == INDEX_HYBRID && !o.note[0]);
    CHECK_INT(o.n, 2);
    CHECK_STR(str_of(o.hits[0].name), "kerf");
    CHECK_INT(o.hits[0].n_matches, 2);
    CHECK_INT(o.hits[0].matches[0].skill, 0);
    CHECK(is_near(o.hits[0].matches[0].semantic, 0.6));
    CHECK(is_near(o.hits[0].matches[0].text, 0.565960));
    CHECK(is_near(o.hits[0].matches[0].score, 0.589788));
    /* The agent itself: 0.7 * 0.3; the best of both is the agent's score. */
    CHECK_INT(o.hits[0].matches[1].skill, INDEX_AGENT);
    CHECK(is_near(o.hits[0].matches[1].score, 0.21));
    CHECK(o.hits[0].score == o.hits[0].matches[0].score);
    /* One without skills is found as itself. */
    CHECK_STR(str_of(o.hits[1].name), "mosk");
    CHECK_INT(o.hits[1].n_matches, 1);
    CHECK_INT(o.hits[1].matches[0].skill, INDEX_AGENT);
    CHECK(is_near(o.hits[1].score, 0.35));
    CHECK(o.hits[1].matches[0].text == 0);
    find_free(f);
}

TEST(modes_and_weights_decide_what_counts)
{
    struct find *f = golden();
    struct registry_ranking even = {.semantic_weight = 0.5, .text_weight = 0.5};
    struct search s = find_query("anna", "zorp");
    struct found o;
    int n_asked;

    s.mode = INDEX_SEMANTIC;
    find_search(f, &s, &o);
    CHECK(o.mode == INDEX_SEMANTIC && is_near(o.hits[0].score, 0.6));
    CHECK(is_near(o.hits[1].score, 0.5));
    registry_set_ranking(f->r, &even);
    s.mode = INDEX_HYBRID;
    find_search(f, &s, &o);
    CHECK(is_near(o.hits[0].score, 0.3 + 0.282980));
    n_asked = f->e->peer->n_asked;
    s.mode = INDEX_TEXT; /* which asks no model */
    s.text = STR("fnord, said nothing");
    find_search(f, &s, &o);
    CHECK(o.n == 1 && o.mode == INDEX_TEXT && !o.note[0]);
    CHECK_STR(str_of(o.hits[0].name), "mosk");
    CHECK_INT(f->e->peer->n_asked, n_asked);
    find_free(f);
}

TEST(what_is_opposite_or_below_the_least_score_does_not_come)
{
    struct find *f = golden();
    struct search s = find_query("anna", "zorp");
    struct found o;

    s.min_score = 0.4;
    find_search(f, &s, &o);
    CHECK_INT(o.n, 1);
    s.min_score = 0.6;
    find_search(f, &s, &o);
    CHECK_INT(o.n, 0);
    s = find_query("anna", "opposite");
    find_search(f, &s, &o);
    CHECK(o.err == OK && o.n == 0);
    find_free(f);
}

TEST(reciprocal_ranks_are_there_for_who_asks)
{
    struct find *f = golden();
    struct registry_ranking ranks = {.fusion = INDEX_RRF};
    struct search s = find_query("anna", "zorp");
    struct found a, b, c;

    find_search(f, &s, &a);
    s.has_fusion = true;
    s.fusion = INDEX_RRF;
    find_search(f, &s, &b);
    CHECK(a.n == b.n && a.hits[0].score != b.hits[0].score);
    CHECK(b.hits[0].score > 0 && b.hits[0].score <= 1);
    registry_set_ranking(f->r, &ranks);
    s.has_fusion = false;
    find_search(f, &s, &c);
    CHECK(c.hits[0].score == b.hits[0].score);
    find_free(f);
}

TEST(of_equals_the_name_that_sorts_first_comes_first)
{
    static const char *const names[] = {"tweedleC", "Tweedlea", "tweedleB"};
    struct find *f = find_begin(EMBED_HTTP);
    struct search s = find_query("anna", "zorp");

    f->e->peer->respond = respond_as_chosen;
    find_open(f);
    for (int i = 0; i < 3; i++)
        PUT(f, "anna", card(names[i], "tweedle", "private", ""));
    AWAIT(f->e, registry_stats(f->r).unembedded == 0);
    CHECK_STR(str_of(find_names(f, &s)), "Tweedlea tweedleB tweedleC ");
    s.limit = 2;
    CHECK_STR(str_of(find_names(f, &s)), "Tweedlea tweedleB ");
    find_free(f);
}

/* Valid queries. */

static void expect_refused(struct find *f, const struct search *s, enum err e,
                           const char *words)
{
    struct found o;

    CHECK_INT(find_try(f, s, &o), e);
    if (!strstr(f->why.text, words))
        T_FAIL("says %s", f->why.text);
    eturns(f->e, 3);
    CHECK(!o.n_done && !o.id);
}

TEST(a_query_must_say_something_and_has_a_limit)
{
    static char text[100 * 1024];
    static const char *const blank[] = {
        "",        " ", "\t\n\r ", "\xc2\xa0", "\xe3\x80\x80 \xe2\x80\x8b",
        "\xff\xfe"};
    struct find *f = find_new(EMBED_TABLE);
    struct search s = find_query("anna", "x");

    for (size_t i = 0; i < sizeof(blank) / sizeof(blank[0]); i++) {
        s.text = str_of(blank[i]);
        expect_refused(f, &s, ERR_BAD_REQUEST, "nothing to search for");
    }
    memset(text, 'x', sizeof(text));
    s.text = (struct str){text, sizeof(text)};
    expect_refused(f, &s, ERR_LIMIT, "at most 16384 bytes");
    s.text.n = SEARCH_TEXT_MAX + 1;
    expect_refused(f, &s, ERR_LIMIT, "this one has 16385");
    s.text.n = SEARCH_TEXT_MAX;
    CHECK_STR(str_of(find_names(f, &s)), "");
    s.text.n = 1;
    s.limit = 0;
    expect_refused(f, &s, ERR_BAD_REQUEST, "limit");
    s.limit = SEARCH_LIMIT_MAX + 1;
    expect_refused(f, &s, ERR_BAD_REQUEST, "limit");
    s.limit = SEARCH_LIMIT_MAX;
    CHECK_STR(str_of(find_names(f, &s)), "");
    find_free(f);
}

/* No card contains a word of it, so only vectors find them. */
TEST(emoji_other_languages_and_stop_words_are_queries_too)
{
    static const char *const queries[] = {
        "\xf0\x9f\x98\x80\xf0\x9f\x91\xbd",
        "what is it that you are",
        "\xd0\xbf\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82",
        "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d",
        "\xe4\xbd\xa0\xe5\xa5\xbd",
        "!?",
        "quel temps fait-il demain"};
    struct find *f = find_new(EMBED_TABLE);
    struct found o;

    PUT(f, "anna", card("w", "Tells what the weather will be", "private", ""));
    PUT(f, "anna", card("t", "Sums up numbers", "private", ""));
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        struct search s = find_query("anna", queries[i]);

        find_search(f, &s, &o);
        CHECK(o.err == OK && o.mode == INDEX_HYBRID);
        for (size_t k = 0; k < o.n; k++)
            CHECK(o.hits[k].matches[0].text == 0);
    }
    find_free(f);
}

/* Filters. */

static struct find *shop(void)
{
    struct find *f = find_new(EMBED_TABLE);

    PUT(f, "anna.acme",
        "{\"name\":\"dear\",\"description\":\"Paints "
        "houses\",\"url\":\"echo:\","
        "\"visibility\":\"public\",\"pricing\":{\"amount_micros\":500},"
        "\"skills\":[{\"id\":\"in\",\"name\":\"paint inside\",\"description\":"
        "\"walls\",\"tags\":[\"Indoor\"]},{\"id\":\"out\",\"name\":\"paint "
        "outside\",\"description\":\"roofs\",\"tags\":[\"outdoor\"],"
        "\"pricing\":{\"amount_micros\":9000}}]}");
    PUT(f, "ben.bolt",
        "{\"name\":\"free\",\"description\":\"Paints pictures\","
        "\"visibility\":\"public\",\"skills\":[{\"id\":\"p\",\"name\":"
        "\"paint\",\"description\":\"in oil\"}]}");
    return f;
}

TEST(filters_are_applied_inside_the_search)
{
    struct find *f = shop();
    struct search s = find_query("cleo", "paint");
    struct found o;

    s.tag = STR("INDOOR");
    find_search(f, &s, &o);
    CHECK(o.n == 1 && o.hits[0].n_matches == 2); /* the skill, its agent */
    for (size_t i = 0; i < 2; i++)
        CHECK(o.hits[0].matches[i].skill == 0 ||
              o.hits[0].matches[i].skill == INDEX_AGENT);
    s.tag = STR("door");
    CHECK_STR(str_of(find_names(f, &s)), "");
    s = find_query("cleo", "paint");
    s.org = STR("acme");
    CHECK_STR(str_of(find_names(f, &s)), "dear ");
    s.org = STR("missing");
    CHECK_STR(str_of(find_names(f, &s)), "");
    s = find_query("cleo", "paint");
    s.max_price = 499;
    CHECK_STR(str_of(find_names(f, &s)), "free ");
    s.max_price = 0;
    CHECK_STR(str_of(find_names(f, &s)), "free ");
    s.max_price = 500; /* the agent's own, and the skill without one */
    s.org = STR("acme");
    find_search(f, &s, &o);
    CHECK(o.n == 1 && o.hits[0].n_matches == 2);
    for (size_t i = 0; i < 2; i++)
        CHECK(o.hits[0].matches[i].skill != 1);
    s.max_price = 499; /* neither it nor one of its skills can be had */
    CHECK_STR(str_of(find_names(f, &s)), "");
    s.max_price = 9000;
    find_search(f, &s, &o);
    CHECK_INT(o.hits[0].n_matches, 3);
    find_free(f);
}

TEST(a_state_is_a_filter_too)
{
    struct find *f = shop();
    struct search s = find_query("cleo", "paint");

    s.state = AGENT_IDLE; /* an echo always is */
    CHECK_STR(str_of(find_names(f, &s)), "dear ");
    s.state = AGENT_DEAD; /* none is connected, none can be woken */
    CHECK_STR(str_of(find_names(f, &s)), "free ");
    s.state = AGENT_BUSY;
    CHECK_STR(str_of(find_names(f, &s)), "");
    find_free(f);
}

TEST(an_agent_does_not_find_itself)
{
    struct find *f = shop();
    struct search s = find_query("ben.bolt", "paint");

    s.eyes.self = STR("FREE");
    CHECK_STR(str_of(find_names(f, &s)), "dear ");
    s.eyes.self = STR("missing");
    CHECK(strstr(find_names(f, &s), "free "));
    find_free(f);
}

/* Visibility. */

TEST(a_search_finds_what_its_eyes_see)
{
    struct find *f = find_new(EMBED_TABLE);
    struct search s = find_query("", "paint");
    static const struct {
        const char *user, *names;
    } cases[] = {
        {"anna.acme", "priv pub shar "},
        {"ann2.acme", "pub shar "},
        {"cleo", "pub "},
        {"dora.dorp", "pub "},
        {"", "pub "},
        {"admin", "priv pub shar "},
    };

    PUT(f, "anna.acme", card("pub", "Paints", "public", ""));
    PUT(f, "anna.acme", card("shar", "Paints", "shared", ""));
    PUT(f, "anna.acme", card("priv", "Paints", "private", ""));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        s.eyes = find_eyes(cases[i].user);
        s.mode = INDEX_TEXT; /* all equal: in the order of names */
        if (strcmp(find_names(f, &s), cases[i].names) != 0)
            T_FAIL("%s finds %s", cases[i].user, find_names(f, &s));
    }
    find_free(f);
}

TEST(grants_open_what_is_shared_until_they_expire)
{
    struct find *f = find_new(EMBED_TABLE);
    struct search s = find_query("cleo", "paint");

    PUT(f, "anna.acme", card("shar", "Paints", "shared", ""));
    PUT(f, "anna.acme", card("priv", "Paints", "private", ""));
    CHECK_STR(str_of(find_names(f, &s)), "");
    CHECK(find_grant(f, "anna.acme", "shar", "cleo", "", 0) == OK);
    CHECK(find_grant(f, "anna.acme", "priv", "cleo", "", 0) == OK);
    CHECK(find_grant(f, "anna.acme", "shar", "", "dorp", FIND_WALL_MS + 1000) ==
          OK);
    CHECK_STR(str_of(find_names(f, &s)), "shar ");
    s.eyes = find_eyes("dora.dorp");
    CHECK_STR(str_of(find_names(f, &s)), "shar ");
    s.eyes.now_ms += 1000;
    CHECK_STR(str_of(find_names(f, &s)), "");
    CHECK(find_remove(f, "anna.acme", "shar") == OK);
    s.eyes = find_eyes("cleo");
    CHECK_STR(str_of(find_names(f, &s)), "");
    find_free(f);
}

/* An admin has given it to another org, whose members see it; and so does who
 * made it. */
TEST(who_made_an_agent_finds_it_in_whichever_org)
{
    struct find *f = find_new(EMBED_TABLE);
    struct search s = find_query("anna.acme", "paint");

    PUT(f, "admin",
        "{\"name\":\"lent\",\"description\":\"Paints\",\"url\":\"echo:\","
        "\"visibility\":\"shared\",\"creator_id\":\"anna.acme\","
        "\"org\":\"bolt\"}");
    CHECK_STR(str_of(find_names(f, &s)), "lent ");
    s.eyes = find_eyes("ann2.acme");
    CHECK_STR(str_of(find_names(f, &s)), "");
    s.eyes = find_eyes("ben.bolt");
    CHECK_STR(str_of(find_names(f, &s)), "lent ");
    find_free(f);
}

/* The order of the first ten. */

/* n agents of a user, all alike. */
static void crowd(struct find *f, const char *user, const char *prefix, int n)
{
    char name[64];

    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%s%02d", prefix, i);
        PUT(f, user, card(name, "Paints houses", "public", ""));
    }
}

TEST(a_third_of_a_creator_from_outside_is_behind_others_and_none_is_lost)
{
    struct find *f = find_new(EMBED_TABLE);
    struct search s = find_query("cleo.cine", "paints houses");
    struct found o;

    crowd(f, "anna.acme", "pa", 12);
    crowd(f, "ben.bolt", "pb", 3);
    crowd(f, "dora.cine", "pd", 4); /* of the requester's own org */
    crowd(f, "cleo.cine", "pe", 3);
    s.mode = INDEX_TEXT;
    CHECK_STR(str_of(find_names(f, &s)),
              "pa00 pa01 pb00 pb01 pd00 pd01 pd02 pd03 pe00 pe01 ");
    s.limit = 5;
    CHECK_STR(str_of(find_names(f, &s)), "pa00 pa01 pb00 pb01 pd00 ");
    s.limit = 14; /* behind the tenth place they come in the plain order */
    CHECK_STR(str_of(find_names(f, &s)), "pa00 pa01 pb00 pb01 pd00 pd01 pd02 "
                                         "pd03 pe00 pe01 pa02 pa03 pa04 pa05 ");
    s.limit = 100;
    CHECK_STR(str_of(find_names(f, &s)),
              "pa00 pa01 pb00 pb01 pd00 pd01 pd02 pd03 pe00 pe01 pa02 pa03 "
              "pa04 pa05 pa06 pa07 "
              "pa08 pa09 pa10 pa11 pb02 pe02 ");
    for (s.limit = 1; s.limit <= 100; s.limit += 11) {
        find_search(f, &s, &o);
        CHECK(o.total == 22 && o.n == (s.limit < 22 ? s.limit : 22));
        CHECK(!o.note[0]);
    }
    find_free(f);
}

TEST(all_places_are_filled_where_one_creator_has_all_there_is)
{
    struct find *f = find_new(EMBED_TABLE);
    struct search s = find_query("cleo", "paints houses");

    crowd(f, "anna", "pa", 4); /* no org either, which is not the same one */
    crowd(f, "cleo", "pc", 1);
    s.mode = INDEX_TEXT;
    CHECK_STR(str_of(find_names(f, &s)), "pa00 pa01 pc00 pa02 pa03 ");
    s.limit = 4;
    CHECK_STR(str_of(find_names(f, &s)), "pa00 pa01 pc00 pa02 ");
    s.eyes = find_eyes("anna");
    CHECK_STR(str_of(find_names(f, &s)), "pa00 pa01 pa02 pa03 ");
    find_free(f);
}

TEST(the_admins_own_are_of_the_platform_and_not_counted)
{
    struct find *f = find_new(EMBED_TABLE);
    struct search s = find_query("cleo", "paints houses");

    crowd(f, "admin", "pa", 4);
    crowd(f, "anna", "pb", 4);
    crowd(f, "dora", "pc", 1);
    s.mode = INDEX_TEXT;
    CHECK_STR(str_of(find_names(f, &s)),
              "pa00 pa01 pa02 pa03 pb00 pb01 pc00 pb02 pb03 ");
    find_free(f);
}

TEST(admins_see_the_plain_ranking_and_everybody_may_ask_for_either)
{
    struct find *f = find_new(EMBED_TABLE);
    struct registry_ranking plain = {.is_plain = true};
    struct search s = find_query("cleo", "paints houses");
    static const char in_order[] = "pa00 pa01 pa02 pb00 ",
                      spread[] = "pa00 pa01 pb00 pa02 ";

    crowd(f, "anna", "pa", 3);
    crowd(f, "ben", "pb", 1);
    s.mode = INDEX_TEXT;
    CHECK_STR(str_of(find_names(f, &s)), spread);
    s.has_order = s.is_plain = true;
    CHECK_STR(str_of(find_names(f, &s)), in_order);
    s.eyes = find_eyes("admin");
    s.has_order = false;
    CHECK_STR(str_of(find_names(f, &s)), in_order);
    s.has_order = true;
    s.is_plain = false;
    CHECK_STR(str_of(find_names(f, &s)), spread);
    registry_set_ranking(f->r, &plain);
    s.eyes = find_eyes("cleo");
    CHECK_STR(str_of(find_names(f, &s)), spread);
    s.has_order = false;
    CHECK_STR(str_of(find_names(f, &s)), in_order);
    find_free(f);
}

/* By meaning alone, and so by chosen scores: 1 for anna's, and for the other
 * one just what is asked for. */
static const char *names_beside(float score)
{
    static char names[64];
    struct find *f = find_begin(EMBED_HTTP);
    struct search s = find_query("cleo", "zorp");

    beside = score;
    f->e->peer->respond = respond_as_chosen;
    find_open(f);
    for (int i = 0; i < 4; i++) {
        char name[8];

        snprintf(name, sizeof(name), "a%d", i);
        PUT(f, "anna", card(name, "zorp", "public", ""));
    }
    PUT(f, "ben", card("b", "beside", "public", ""));
    AWAIT(f->e, registry_stats(f->r).unembedded == 0);
    s.mode = INDEX_SEMANTIC;
    snprintf(names, sizeof(names), "%s", find_names(f, &s));
    find_free(f);
    return names;
}

TEST(who_has_less_than_four_fifths_of_the_third_is_behind_it)
{
    CHECK_STR(str_of(names_beside(0.81F)), "a0 a1 b a2 a3 ");
    CHECK_STR(str_of(names_beside(0.79F)), "a0 a1 a2 a3 b ");
}

/* From the third of eve's agents on, no honest agent with 0.8 of its score is
 * behind it. */
static void check_places(const struct found *o)
{
    int n_evil = 0;

    for (size_t i = 0; i < o->n; i++) {
        if (strncmp(o->hits[i].name, "honest", 6) == 0 || ++n_evil <= 2)
            continue;
        for (size_t k = i + 1; k < o->n; k++)
            CHECK(strncmp(o->hits[k].name, "honest", 6) != 0 ||
                  o->hits[k].score < 0.8F * o->hits[i].score);
    }
}

/* One owner with a small card for every topic there is. */
TEST(nobody_captures_the_first_places_by_many_small_cards)
{
    static const char *const topics[] = {
        "weather", "music",   "travel", "cooking",  "law",     "tax",
        "health",  "sport",   "news",   "painting", "code",    "maps",
        "movies",  "gardens", "cars",   "history",  "physics", "chess",
        "poems",   "stocks",  "hotels", "flights",  "dating",  "pets",
        "school",  "jobs",    "wine",   "fashion",  "games",   "email"};
    struct find *f = find_new(EMBED_TABLE);
    char name[32], text[128];
    struct found o;

    for (int i = 0; i < 30; i++) {
        PUT(f, "eve.evil",
            card(topics[i], topics[i], "public",
                 skill("s", topics[i], topics[i])));
        if (i < 12) {
            snprintf(name, sizeof(name), "honest%02d", i);
            snprintf(text, sizeof(text), "Answers questions about %s and more",
                     topics[i]);
            snprintf(o.note, sizeof(o.note), "user%d.org%d", i, i);
            PUT(f, o.note, card(name, text, "public", ""));
        }
    }
    for (int i = 0; i < 30; i++) {
        struct search s;

        snprintf(text, sizeof(text), "tell me about %s", topics[i]);
        s = find_query("cleo.cine", text);
        find_search(f, &s, &o);
        CHECK_INT(o.n, 10);
        check_places(&o);
    }
    find_free(f);
}
