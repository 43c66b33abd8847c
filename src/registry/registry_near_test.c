/* The agents that could get a message, for each requester, and their
 * similarity. */
#include "test/lib/find_stage.h"

#include "base/vec.h"
#include "model/keyword.h"

/* The near agents, as "anna bob ". */
static const char *near_names(struct find *f, const char *user,
                              const char *text)
{
    static char out[4096];
    struct registry_near_query q = {.eyes = find_eyes(user),
                                    .text = str_of(text)};
    const struct registry_near *list;
    size_t n, n_left, at = 0;

    CHECK(registry_near(f->r, &q, &list, &n, &n_left) == OK);
    out[0] = 0;
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, sizeof(out) - at, "%.*s ",
                               STR_ARG(list[i].agent->name));
    return out;
}

TEST(everyone_who_is_seen_is_there_in_the_order_of_the_names)
{
    struct find *f = find_new(EMBED_TABLE);

    PUT(f, "anna.acme", card("priv", "Paints", "private", ""));
    PUT(f, "anna.acme", card("Shar", "Paints", "shared", ""));
    PUT(f, "anna.acme", card("pub", "Paints", "public", ""));
    PUT(f, "anna.acme", card("apart", "Sings of ships", "public", ""));
    CHECK_STR(str_of(near_names(f, "anna.acme", "paint a house")),
              "apart priv pub Shar ");
    CHECK_STR(str_of(near_names(f, "ann2.acme", "paint")), "apart pub Shar ");
    CHECK_STR(str_of(near_names(f, "ben.bolt", "paint")), "apart pub ");
    CHECK_STR(str_of(near_names(f, "admin", "")), "apart priv pub Shar ");
    CHECK(find_remove(f, "anna.acme", "pub") == OK);
    CHECK_STR(str_of(near_names(f, "ben.bolt", "paint")), "apart ");
    find_free(f);
}

static const struct agent *find_agent(struct find *f, const char *name)
{
    struct eyes eyes = find_eyes("admin");

    return registry_find(f->r, str_of(name), &eyes);
}

TEST(who_cannot_be_sent_anything_is_not_there)
{
    struct find *f = find_new(EMBED_TABLE);

    PUT(f, "anna", card("there", "Paints", "public", ""));
    PUT(f, "anna",
        "{\"name\":\"dead\",\"description\":\"Paints\","
        "\"visibility\":\"public\"}"); /* must come to us, and has not */
    PUT(f, "anna",
        "{\"name\":\"shy\",\"description\":\"Paints\",\"url\":\"echo:\","
        "\"visibility\":\"public\",\"routing\":{\"routable\":false}}");
    CHECK_STR(str_of(near_names(f, "ben", "paint")), "dead there ");
    CHECK(!registry_is_there(f->r, find_agent(f, "dead")));
    CHECK(registry_is_there(f->r, find_agent(f, "there")));
    find_free(f);
}

static bool trusts_all; /* routing.trust */

/* The result for one agent. */
static struct registry_near near_one_by(bool is_seed, struct find *f,
                                        const char *user, const char *text,
                                        const char *name)
{
    float v[EMBED_DIMS_MAX];
    uint8_t packed[8 + 2 * EMBED_DIMS_MAX];
    uint32_t dims = embed_stamp(f->e->embed).dims;
    struct registry_near_query q = {.eyes = find_eyes(user),
                                    .text = str_of(text),
                                    .is_seed = is_seed,
                                    .trusts_all = trusts_all};
    const struct registry_near *list;
    size_t n, n_left;

    if (embed_now(f->e->embed, q.text, EMBED_QUERY, v) &&
        vec_pack(v, dims, packed))
        q.vector = (struct str){(char *)packed, vec_packed_bytes(dims)};
    CHECK(registry_near(f->r, &q, &list, &n, &n_left) == OK);
    for (size_t i = 0; i < n; i++)
        if (str_eq(list[i].agent->name, str_of(name)))
            return list[i];
    T_FAIL("%s is not there", name);
    return (struct registry_near){0};
}

static struct registry_near near_one(struct find *f, const char *user,
                                     const char *text, const char *name)
{
    return near_one_by(false, f, user, text, name);
}

/* An agent of many skills is as near as the nearest of them, and that is
 * named. */
TEST(the_nearest_skill_counts_and_is_named)
{
    struct find *f = find_new(EMBED_TABLE);
    struct registry_near both, one, none;

    PUT(f, "anna",
        "{\"name\":\"both\",\"description\":\"Does this and that\",\"url\":"
        "\"echo:\",\"visibility\":\"public\",\"skills\":["
        "{\"id\":\"w\",\"name\":\"weather\",\"description\":\"forecasts of "
        "rain and storms\"},"
        "{\"id\":\"c\",\"name\":\"cooking\",\"description\":\"recipes for "
        "soups and cakes\",\"examples\":[\"how do I bake bread\"]}]}");
    PUT(f, "anna", card("other", "Does this and that", "public", ""));
    both = near_one(f, "ben", "a recipe for onion soup", "both");
    CHECK(both.skill && str_eq(both.skill->id, STR("c")));
    one = near_one(f, "ben", "will there be rain tomorrow", "both");
    CHECK(one.skill && str_eq(one.skill->id, STR("w")));
    none = near_one(f, "ben", "a recipe for onion soup", "other");
    CHECK(!none.skill && none.cosine >= 0 && none.cosine < both.cosine);
    CHECK(both.text > 0 && none.text == 0);
    /* Its examples speak for it too. */
    both = near_one(f, "ben", "bake bread", "both");
    CHECK(both.cosine > 0.5F);
    /* By seed 001 the larger cosine counts, however short the skill. */
    CHECK(near_one_by(true, f, "ben", "bake bread", "both").cosine >
          both.cosine);
    find_free(f);
}

TEST(the_best_skill_is_named_where_the_description_is_nearer)
{
    struct find *f = find_new(EMBED_TABLE);
    struct registry_near near;

    PUT(f, "anna",
        "{\"name\":\"painter\",\"description\":\"paints houses and "
        "fences\",\"url\":\"echo:\",\"visibility\":\"public\",\"skills\":["
        "{\"id\":\"tax\",\"name\":\"income tax\"},"
        "{\"id\":\"walls\",\"name\":\"walls\"}]}");
    near = near_one(f, "ben", "paints houses and fences", "painter");
    CHECK(near.skill && str_eq(near.skill->id, STR("walls")));
    /* Also where nothing of it is like any of them. */
    CHECK(near_one(f, "ben", "", "painter").skill);
    find_free(f);
}

TEST(without_a_vector_there_is_no_cosine)
{
    struct find *f = find_new(EMBED_TABLE);
    struct registry_near_query q = {.eyes = find_eyes("ben"),
                                    .text = STR("paint the house")};
    const struct registry_near *list;
    size_t n, n_left;

    PUT(f, "anna", card("painter", "Paints houses", "public", ""));
    CHECK(registry_near(f->r, &q, &list, &n, &n_left) == OK && n == 1);
    CHECK(list[0].cosine < 0 && list[0].text > 0);
    q.vector = STR("of another length, from another model");
    CHECK(registry_near(f->r, &q, &list, &n, &n_left) == OK && n == 1);
    CHECK(list[0].cosine < 0 && list[0].text > 0);
    CHECK(near_one(f, "ben", "paint", "painter").cosine > 0);
    find_free(f);
}

TEST(an_agent_does_not_find_itself)
{
    struct find *f = find_new(EMBED_TABLE);
    struct registry_near_query q = {.eyes = find_eyes("anna"),
                                    .text = STR("paint")};
    const struct registry_near *list;
    size_t n, n_left;

    PUT(f, "anna", card("painter", "Paints", "public", ""));
    PUT(f, "anna", card("singer", "Sings", "public", ""));
    q.eyes.self = STR("Painter");
    CHECK(registry_near(f->r, &q, &list, &n, &n_left) == OK && n == 1);
    CHECK_STR(list[0].agent->name, "singer");
    find_free(f);
}

/* Keywords. */

/* The agents among a0 to a9 whose keyword occurs, as keyword.h has it. */
TEST(keywords_are_found_as_looking_for_each_would)
{
    static const char *const some[] = {"tea",
                                       "green tea",
                                       "tea pot",
                                       "pot",
                                       "a a b",
                                       "C++",
                                       "?",
                                       "Caf"
                                       "\xc3\xa9"};
    static const char *const parts[] = {
        "tea ", "green ", "pot ", "a ", "b ", "c++ ", "? ", "cafe ", "teapot "};
    struct find *f = find_new(EMBED_TABLE);
    uint64_t dice = 7;
    char text[256], body[512];

    for (int i = 0; i < 10; i++) {
        snprintf(body, sizeof(body),
                 "{\"name\":\"a%d\",\"description\":\"d\",\"url\":\"echo:\","
                 "\"visibility\":"
                 "\"public\",\"routing\":{\"keywords\":[\"%s\",\"%s\"]}}",
                 i, some[i * 3 % 8], some[(i * 3 + 1 + i / 8) % 8]);
        PUT(f, "anna", body);
    }
    for (int i = 0; i < 300; i++) {
        struct registry_near_query q = {.eyes = find_eyes("anna")};
        const struct registry_near *list;
        size_t n, n_left;

        text[0] = 0;
        for (int k = 0; k < i % 9; k++) {
            dice = dice * 6364136223846793005u + 1442695040888963407u;
            strncat(text, parts[(dice >> 33) % 9],
                    sizeof(text) - strlen(text) - 1);
        }
        q.text = str_of(text);
        CHECK(registry_near(f->r, &q, &list, &n, &n_left) == OK && n >= 9);
        for (size_t k = 0; k < n; k++)
            CHECK(
                str_eq(list[k].keyword,
                       keyword_find(list[k].agent->routing.keywords, q.text)));
        if (i == 150)
            CHECK(find_remove(f, "anna", "a3") == OK);
    }
    find_free(f);
}

/* A generic card of another user. */
TEST(a_stuffed_card_of_somebody_else_is_marked_down)
{
    static const char *const topics[] = {
        "weather forecasts", "music albums",     "train tickets",
        "soup recipes",      "rental contracts", "income tax",
        "cold medicine",     "football results", "world news",
        "oil painting",      "computer code",    "city maps",
        "cinema films",      "rose gardens",     "car engines",
        "roman history",     "quantum physics",  "chess openings",
        "love poems",        "stock markets",    "hotel rooms",
        "cheap flights",     "dog training",     "school exams",
        "job applications",  "red wine",         "summer fashion",
        "video games",       "email accounts",   "bank transfers"};
    struct find *f = find_new(EMBED_TABLE);
    char name[32], text[2048] = "All about ";

    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof(name), "t%02d", i);
        PUT(f, "admin", card(name, topics[i], "public", ""));
        strncat(text, topics[i], sizeof(text) - strlen(text) - 1);
        strncat(text, " and ", sizeof(text) - strlen(text) - 1);
    }
    PUT(f, "eve", card("stuffed", text, "public", ""));
    CHECK(near_one(f, "ben", "soup", "stuffed").discount > 0);
    CHECK(near_one_by(true, f, "ben", "soup", "stuffed").discount == 0);
    CHECK(near_one(f, "eve", "soup", "stuffed").discount == 0); /* her own */
    CHECK(near_one(f, "ben", "soup", "t03").discount == 0);
    find_free(f);
}

/* The agents whose keyword occurs: "anna bob ". */
static const char *with_keywords_by(bool is_seed, struct find *f,
                                    const char *user, const char *text)
{
    static char out[4096];
    struct registry_near_query q = {
        .eyes = find_eyes(user), .text = str_of(text), .is_seed = is_seed};
    const struct registry_near *list;
    size_t n, n_left, at = 0;

    CHECK(registry_near(f->r, &q, &list, &n, &n_left) == OK);
    out[0] = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i].keyword.n)
            at += (size_t)snprintf(out + at, sizeof(out) - at, "%.*s ",
                                   STR_ARG(list[i].agent->name));
    return out;
}

static const char *with_keywords(struct find *f, const char *user,
                                 const char *text)
{
    return with_keywords_by(false, f, user, text);
}

TEST(keywords_of_strangers_do_not_count)
{
    struct find *f = find_new(EMBED_TABLE);

    PUT(f, "anna.acme",
        "{\"name\":\"hers\",\"description\":\"Paints\",\"url\":\"echo:\","
        "\"visibility\":\"public\",\"routing\":{\"keywords\":[\"the\"]}}");
    PUT(f, "admin",
        "{\"name\":\"ours\",\"description\":\"Paints\",\"url\":\"echo:\","
        "\"visibility\":\"public\",\"routing\":{\"keywords\":[\"the\"]}}");
    CHECK_STR(str_of(with_keywords(f, "anna.acme", "paint the house")),
              "hers ours ");
    CHECK_STR(str_of(with_keywords(f, "ann2.acme", "paint the house")),
              "hers ours ");
    CHECK_STR(str_of(with_keywords(f, "ben.bolt", "paint the house")), "ours ");
    find_free(f);
}

/* With reference texts, and so with levels: "write" is in four of 200. */
static struct find *with_references(void)
{
    static const char *const some[] = {"write a poem about the moon",
                                       "why is the sky blue",
                                       "fix the login page",
                                       "pay the invoice now",
                                       "water the plants",
                                       "what rhymes with spoon"};
    static struct str texts[200];
    struct find *f = find_begin(EMBED_TABLE);

    for (size_t i = 0; i < 200; i++)
        texts[i] = str_of(some[i % 50 ? 1 + i % 5 : 0]);
    f->opts.reference = (struct strs){texts, 200};
    find_open(f);
    return f;
}

static const char *keyword_card(const char *description, const char *keywords)
{
    static char out[2048];

    snprintf(out, sizeof(out),
             "{\"name\":\"hers\",\"description\":\"%s\",\"url\":\"echo:\","
             "\"visibility\":\"public\",\"routing\":{\"keywords\":[%s]}}",
             description, keywords);
    return out;
}

static bool has_keyword(struct find *f, const char *user, const char *text)
{
    return near_one(f, user, text, "hers").keyword.n > 0;
}

static void keywords_that_tell_nothing_do_not_count(void)
{
    static const struct {
        const char *keyword, *text;
        bool counts;
    } cases[] = {
        {"laravel", "my laravel routes are slow", true},
        {"Laravel Eloquent", "a LARAVEL eloquent scope", true},
        {"the laravel", "the laravel routes", true},
        {"c++", "port this laravel code to c++", true},
        {"the", "the laravel routes", false},
        {"what", "what are laravel routes", false},
        {"please", "laravel routes please", false},
        {"help me", "help me with laravel", false},
        {"write", "write laravel code", false}, /* one of a hundred texts */
        {"write a", "write a laravel route", false},
        {"2024", "laravel in 2024", false},
        {"the 1", "the 1 laravel route", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct find *f = with_references();
        char quoted[64];

        snprintf(quoted, sizeof(quoted), "\"%s\"", cases[i].keyword);
        PUT(f, "anna.acme",
            keyword_card("Writes Laravel code, routes and Eloquent scopes in "
                         "C++",
                         quoted));
        if (has_keyword(f, "ben.bolt", cases[i].text) != cases[i].counts)
            T_FAIL("\"%s\" in \"%s\"", cases[i].keyword, cases[i].text);
        CHECK(has_keyword(f, "anna.acme", cases[i].text));
        find_free(f);
    }
}

TEST(a_strangers_keyword_counts_if_it_tells_something)
{
    keywords_that_tell_nothing_do_not_count();
}

TEST(the_control_that_takes_any_word_is_caught)
{
    find_control("keywords.any_word", keywords_that_tell_nothing_do_not_count);
}

static void keywords_count_where_the_card_is_near(void)
{
    struct find *f = with_references();

    PUT(f, "anna.acme",
        keyword_card("Bakes bread and cakes", "\"the\",\"invoice\",\"bread\""));
    CHECK(has_keyword(f, "ben.bolt", "how to bake bread"));
    CHECK_STR(near_one(f, "ben.bolt", "bake the bread", "hers").keyword,
              "bread"); /* the first that counts */
    CHECK(!has_keyword(f, "ben.bolt", "pay the invoice now"));
    CHECK(has_keyword(f, "anna.acme", "pay the invoice now"));
    /* By words alone there is nothing to be near to. */
    CHECK_STR(str_of(with_keywords(f, "ben.bolt", "how to bake bread")), "");
    find_free(f);
}

TEST(a_strangers_keyword_counts_where_its_card_is_near)
{
    keywords_count_where_the_card_is_near();
}

TEST(the_control_that_takes_a_keyword_anywhere_is_caught)
{
    find_control("near.any_keyword", keywords_count_where_the_card_is_near);
}

TEST(keywords_that_are_not_public_are_nobody_elses)
{
    struct find *f = with_references();

    PUT(f, "anna.acme",
        "{\"name\":\"hers\",\"description\":\"Bakes bread\",\"url\":"
        "\"echo:\",\"visibility\":\"shared\",\"routing\":{\"keywords\":"
        "[\"bread\"]}}");
    CHECK(find_grant(f, "anna.acme", "hers", "ben.bolt", "", 0) == OK);
    CHECK(!has_keyword(f, "ben.bolt", "how to bake bread"));
    CHECK(has_keyword(f, "ann2.acme", "how to bake bread"));
    PUT(f, "anna.acme", keyword_card("Bakes bread", "\"bread\""));
    CHECK(has_keyword(f, "ben.bolt", "how to bake bread"));
    find_free(f);
}

TEST(where_all_are_trusted_every_public_keyword_counts)
{
    struct find *f = with_references();

    PUT(f, "anna.acme", keyword_card("Bakes bread", "\"the\""));
    CHECK(!has_keyword(f, "ben.bolt", "pay the invoice"));
    CHECK(near_one(f, "ben.bolt", "pay the invoice", "hers").has_discount);
    trusts_all = true;
    CHECK(has_keyword(f, "ben.bolt", "pay the invoice"));
    CHECK(!near_one(f, "ben.bolt", "pay the invoice", "hers").has_discount);
    find_free(f);
}

/* routing.preset "seed": every agent's keywords count that is seen. */
TEST(keywords_of_all_count_by_the_seed_preset)
{
    struct find *f = find_new(EMBED_TABLE);

    PUT(f, "anna.acme",
        "{\"name\":\"hers\",\"description\":\"Paints\",\"url\":\"echo:\","
        "\"visibility\":\"public\",\"routing\":{\"keywords\":[\"no\","
        "\"house paint\",\"the house\"]}}");
    PUT(f, "anna.acme",
        "{\"name\":\"secret\",\"description\":\"Paints\",\"url\":\"echo:\","
        "\"visibility\":\"private\",\"routing\":{\"keywords\":[\"house\"]}}");
    CHECK_STR(str_of(with_keywords(f, "ben.bolt", "paint The house")), "");
    CHECK_STR(str_of(with_keywords_by(true, f, "ben.bolt", "paint The house")),
              "hers ");
    CHECK_STR(
        near_one_by(true, f, "ben.bolt", "paint The house", "hers").keyword,
        "the house");
    CHECK_STR(str_of(with_keywords_by(true, f, "ben.bolt", "the houses")), "");
    CHECK_STR(str_of(with_keywords_by(true, f, "ben.bolt", "soothe house")),
              "");
    CHECK_STR(str_of(with_keywords_by(true, f, "ben.bolt", "")), "");
    find_free(f);
}

/* A card with so many keywords, "the 0" and on, and "tea". */
static const char *card_of(const char *name, const char *visibility,
                           const char *the, int n)
{
    static char out[16384];
    int at = snprintf(out, sizeof(out),
                      "{\"name\":\"%s\",\"description\":\"d\",\"url\":"
                      "\"echo:\",\"visibility\":\"%s\",\"routing\":{"
                      "\"keywords\":[",
                      name, visibility);

    for (int i = 0; i < n; i++)
        at +=
            snprintf(out + at, sizeof(out) - (size_t)at, "\"%s %d\",", the, i);
    snprintf(out + at, sizeof(out) - (size_t)at, "\"tea\"]}}");
    return out;
}

static const char *the_card(const char *name, const char *visibility, int n)
{
    return card_of(name, visibility, "the", n);
}

/* A word so often, and then another. */
static const char *text_of(const char *word, int n, const char *last)
{
    static char out[65536];
    int at = 0;

    for (int i = 0; i < n; i++)
        at += snprintf(out + at, sizeof(out) - (size_t)at, "%s ", word);
    snprintf(out + at, sizeof(out) - (size_t)at, "%s", last);
    return out;
}

static const char *the_text(int n)
{
    return text_of("the", n, "tea");
}

/* Lookups of each class are bounded by 100 000 steps: here by keywords longer
 * than the words they are found by, and a text made for them. */
TEST(keywords_of_others_do_not_use_up_ones_own)
{
    static const char sixteen[] = "a a a a a a a a a a a a a a a a";
    struct find *f = find_new(EMBED_TABLE);
    char name[32];

    for (int i = 0; i < 40; i++) { /* and 100 that begin alike each */
        snprintf(name, sizeof(name), "eve-%02d", i);
        PUT(f, "eve.evil",
            card_of(name, i % 2 ? "private" : "public", sixteen, 100));
    }
    PUT(f, "ben.bolt", the_card("his", "private", 1));
    PUT(f, "bea.bolt", the_card("theirs", "shared", 1));
    PUT(f, "admin", the_card("ours", "public", 1));
    CHECK_STR(str_of(with_keywords(f, "ben.bolt", text_of("a", 3000, "tea"))),
              "his ours theirs ");
    /* 4 000 of hers: where 16 words begin 25 times there is an end, of her own
     * class and her org's. */
    CHECK(strlen(with_keywords(f, "eve.evil", text_of("a", 24 + 15, "tea"))) >
          40 * 7);
    CHECK_STR(
        str_of(with_keywords(f, "eve.evil", text_of("a", 25 + 15, "tea"))),
        "ours ");
    CHECK_STR(
        str_of(with_keywords(f, "eva.evil", text_of("a", 25 + 15, "tea"))),
        "ours ");
    find_free(f);
}

/* One of two creators has thousands of public keywords that begin as the text
 * does, or are in it again and again. The other's is found nevertheless. */
TEST(keywords_of_one_stranger_do_not_use_up_anothers)
{
    struct find *f = find_new(EMBED_TABLE);
    char name[32];

    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "eve-%02d", i);
        PUT(f, "eve.evil", the_card(name, "public", 100));
    }
    PUT(f, "anna.acme", keyword_card("Bakes bread", "\"tea\""));
    trusts_all = true; /* every keyword counts, however near the card is */
    CHECK(has_keyword(f, "ben.bolt", the_text(24)));
    CHECK(has_keyword(f, "ben.bolt", the_text(4000)));
    CHECK(has_keyword(f, "ben.bolt", text_of("the 7", 2600, "tea")));
    trusts_all = false;
    find_free(f);
}

/* 64 MiB of text are scanned for keywords of outsiders: for a text of 16 002
 * bytes, 4 193 keywords. The own ones and specific ones were found before; "the
 * 0" is not. */
TEST(by_the_seed_preset_looking_for_keywords_has_an_end)
{
    struct find *f = find_new(EMBED_TABLE);
    char name[32];

    for (int i = 0; i < 41; i++) {
        snprintf(name, sizeof(name), "eve-%02d", i);
        PUT(f, "eve.evil", the_card(name, "public", 100));
    }
    PUT(f, "ben.bolt", the_card("his", "private", 1));
    PUT(f, "zoe", the_card("zoe", "public", 1));
    CHECK(
        strstr(with_keywords_by(true, f, "ben.bolt", text_of("the", 4000, "0")),
               "eve-40 his zoe "));
    for (int i = 41; i < 43; i++) {
        snprintf(name, sizeof(name), "eve-%02d", i);
        PUT(f, "eve.evil", the_card(name, "public", 100));
    }
    CHECK(
        strstr(with_keywords_by(true, f, "ben.bolt", text_of("the", 4000, "0")),
               "eve-40 eve-41 his "));
    CHECK(!strstr(
        with_keywords_by(true, f, "ben.bolt", text_of("the", 4000, "0")),
        "zoe"));
    find_free(f);
}

struct looks {
    int n;
    uint32_t so; /* the number for which it holds */
};

static bool count_look(void *ctx, uint32_t number)
{
    struct looks *looks = ctx;

    looks->n++;
    return number == looks->so;
}

/* As routing asks it, of each of them that has a keyword in the text. */
TEST(what_is_so_of_a_creator_is_looked_for_once_for_each_question)
{
    enum { AGENTS = 50 };
    struct find *f = find_new(EMBED_TABLE);
    struct looks looks = {0, UINT32_MAX};
    char name[16];

    for (int i = 0; i < AGENTS; i++) {
        snprintf(name, sizeof(name), "eve-%02d", i);
        PUT(f, "eve.evil", the_card(name, "public", 1));
    }
    for (int i = 0; i < AGENTS; i++)
        CHECK(!registry_any_of(f->r, STR("eve.evil"), 1, count_look, &looks));
    CHECK_INT(looks.n, AGENTS);
    CHECK(registry_number(f->r, STR("eve-07"), &looks.so));
    CHECK(!registry_any_of(f->r, STR("Eve.evil"), 1, count_look, &looks));
    for (int i = 0; i < AGENTS; i++)
        CHECK(registry_any_of(f->r, STR("eve.evil"), 2, count_look, &looks));
    CHECK(looks.n > AGENTS && looks.n <= 2 * AGENTS);
    looks.so = UINT32_MAX;
    CHECK(!registry_any_of(f->r, STR("eve.evil"), 3, count_look, &looks));
    CHECK(!registry_any_of(f->r, STR("zoe"), 3, count_look, &looks));
    find_free(f);
}

/* Their class changes with the org, and no node is left behind. */
TEST(keywords_follow_their_agent)
{
    struct find *f = find_new(EMBED_TABLE);

    for (int i = 0; i < 3; i++) {
        PUT(f, "anna.acme", the_card("a", "public", 3));
        PUT(f, "ann2.acme", the_card("b", "public", 3));
        CHECK_STR(str_of(with_keywords(f, "ANNA.acme", "the 1")), "a b ");
        CHECK_STR(str_of(with_keywords(f, "ben.bolt", "the 1")), "");
        CHECK(find_remove(f, "anna.acme", "a") == OK);
        CHECK_STR(str_of(with_keywords(f, "anna.acme", "the 1")), "b ");
        CHECK(find_remove(f, "ann2.acme", "b") == OK);
        CHECK_STR(str_of(with_keywords(f, "anna.acme", "the 1")), "");
    }
    find_free(f);
}

static struct str org_of_all = STR("acme");

static struct str one_org(void *ctx, struct str user)
{
    (void)ctx;
    (void)user;
    return org_of_all;
}

TEST(keywords_count_for_the_org_that_their_creator_is_in)
{
    struct find *f = find_begin(EMBED_TABLE);

    org_of_all = STR("acme");
    f->opts.org_of = one_org;
    find_open(f);
    PUT(f, "anna", the_card("hers", "public", 3));
    CHECK_STR(str_of(with_keywords(f, "ann2.acme", "the 1")), "hers ");
    CHECK_STR(str_of(with_keywords(f, "ben.bolt", "the 1")), "");
    org_of_all = STR("bolt");
    registry_user_moved(f->r, STR("anna"));
    CHECK_STR(str_of(with_keywords(f, "ann2.acme", "the 1")), "");
    CHECK_STR(str_of(with_keywords(f, "ben.bolt", "the 1")), "hers ");
    CHECK_STR(str_of(with_keywords(f, "anna", "the 1")), "hers ");
    find_free(f);
}

/* A card of n skills, each a question. */
static void put_questions(struct find *f, const char *user, const char *name,
                          int n)
{
    static char card_text[64 * 1024];
    size_t at = (size_t)snprintf(
        card_text, sizeof(card_text),
        "{\"name\":\"%s\",\"description\":\"Answers\",\"url\":\"echo:\","
        "\"visibility\":\"public\",\"skills\":[",
        name);

    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(card_text + at, sizeof(card_text) - at,
                               "%s{\"id\":\"s%d\",\"name\":\"how do I bake "
                               "bread number %d\"}",
                               i ? "," : "", i, i);
    snprintf(card_text + at, sizeof(card_text) - at, "]}");
    PUT(f, user, card_text);
}

TEST(the_best_of_many_skills_of_a_stranger_counts_in_part)
{
    struct find *f = find_new(EMBED_TABLE);
    struct registry_near few, many, own;

    put_questions(f, "eve", "few", 4);
    put_questions(f, "eve2", "many", 64);
    few = near_one(f, "ben", "how do I bake bread", "few");
    many = near_one(f, "ben", "how do I bake bread", "many");
    own = near_one(f, "eve2", "how do I bake bread", "many");
    CHECK(few.cosine_over == 0 && few.text_over == 0);
    CHECK(many.cosine_over > 0 && many.text_over > 0);
    CHECK(own.cosine_over == 0 && own.text_over == 0 && own.discount == 0);
    CHECK(own.cosine == many.cosine && own.text == many.text);
    find_free(f);
}

TEST(many_cards_of_a_stranger_count_less)
{
    struct find *f = find_new(EMBED_TABLE);
    char name[16];
    float before;

    PUT(f, "eve", card("e0", "Paints", "public", ""));
    CHECK(near_one(f, "ben", "paint", "e0").discount == 0);
    before = 0;
    for (int i = 1; i < 40; i++) {
        float now;

        snprintf(name, sizeof(name), "e%d", i);
        PUT(f, "eve", card(name, "Paints", "public", ""));
        now = near_one(f, "ben", "paint", "e0").discount;
        CHECK(now >= before && now <= 0.2001F);
        before = now;
    }
    CHECK(before > 0.199F);
    CHECK(near_one(f, "eve", "paint", "e0").discount == 0);
    find_free(f);
}
