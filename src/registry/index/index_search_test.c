/* Visible results, their order and their figures. */
#include "test/t.h"

#include "test/lib/index_stage.h"

enum { DIMS = 4, AGENTS = 6 };

static const struct skill skills[] = {
    {.name = {"first", 5}, .description = {"apples pears", 12}},
    {.name = {"second", 6}, .description = {"pears plums", 11}},
    {.name = {"third", 5}, .description = {"stones", 6}},
};

struct stand {
    struct index *x;
    struct agent a;
    float vectors[4][DIMS]; /* documents of the next one: itself, its skills */
};

static void stand_init(struct stand *s)
{
    *s = (struct stand){.x = index_new(4000, stage_seed)};
    CHECK(s->x);
    index_set_dims(s->x, DIMS);
    s->a = (struct agent){.name = STR("a"),
                          .visibility = VISIBILITY_PUBLIC,
                          .skills = skills,
                          .n_skills = 3};
}

static void stand_put(struct stand *s, uint32_t number, const char *name)
{
    uint8_t packed[4 * (8 + 2 * DIMS)];
    struct index_change *c;

    s->a.name = str_of(name);
    for (size_t i = 0; i <= s->a.n_skills; i++)
        vec_pack(s->vectors[i], DIMS, packed + i * vec_packed_bytes(DIMS));
    CHECK(index_prepare(s->x, &s->a, packed, &c) == OK);
    index_put(s->x, number, c);
}

static bool is_near(float a, float b)
{
    return fabsf(a - b) < 5e-5F; /* the limit of sixteen bits */
}

static void vector_of(float *v, float cosine)
{
    v[0] = cosine;
    v[1] = sqrtf(1 - cosine * cosine);
    v[2] = v[3] = 0;
}

static const float ahead[DIMS] = {1, 0, 0, 0};

TEST(a_score_is_seven_parts_meaning_and_three_parts_words)
{
    struct stand s;
    struct index_query q = {.text = STR("plums"), .vector = ahead};
    struct index_hit h[4], words[4];

    stand_init(&s);
    vector_of(s.vectors[1], 0.5F);
    vector_of(s.vectors[2], 0.8F);
    vector_of(s.vectors[3], -0.9F);
    stand_put(&s, 0, "a");
    CHECK_INT(search_hits(s.x, &q, h, 4), 1);
    CHECK_INT(h[0].n_matches, 2);
    CHECK_INT(h[0].matches[0].skill, 1);
    CHECK(is_near(h[0].matches[0].semantic, 0.8F));
    CHECK(h[0].matches[0].text > 0);
    CHECK(h[0].score == h[0].matches[0].score);
    CHECK(is_near(h[0].score, 0.7F * 0.8F + 0.3F * h[0].matches[0].text));
    CHECK_INT(h[0].matches[1].skill, 0);
    CHECK(is_near(h[0].matches[1].score, 0.35F));
    CHECK(h[0].matches[1].text == 0);

    q.mode = INDEX_TEXT;
    CHECK_INT(search_hits(s.x, &q, words, 4), 1);
    CHECK_INT(words[0].n_matches, 1);
    CHECK(words[0].score == h[0].matches[0].text);
    CHECK(words[0].matches[0].semantic == 0);
    q.mode = INDEX_SEMANTIC;
    CHECK_INT(search_hits(s.x, &q, words, 4), 1);
    CHECK(is_near(words[0].score, 0.8F));
    CHECK(words[0].matches[0].text == 0);
    index_free(s.x);
}

TEST(weights_can_be_given_and_are_made_to_fit)
{
    static const struct {
        float semantic, text, want;
    } cases[] = {
        {0, 0, 0.7F},         {1, 0, 1},          {0.5F, 0.5F, 0.5F},
        {3, 1, 0.75F},        {0.2F, 0.2F, 0.2F}, {NAN, NAN, 0.7F},
        {-1, -1, 0.7F},       {INFINITY, 1, 0},   {1, NAN, 1},
        {3e38F, 3e38F, 0.7F},
    };
    struct stand s;
    struct index_hit h;

    stand_init(&s);
    vector_of(s.vectors[1], 1);
    stand_put(&s, 0, "a");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct index_query q = {.vector = ahead,
                                .semantic_weight = cases[i].semantic,
                                .text_weight = cases[i].text};

        h.score = 0;
        CHECK_INT(search_hits(s.x, &q, &h, 1), cases[i].want > 0);
        CHECK(is_near(h.score, cases[i].want));
    }
    index_free(s.x);
}

TEST(without_a_vector_words_alone_decide)
{
    struct stand s;
    float none[DIMS] = {0}, bad[DIMS] = {1, NAN, 0, 0};
    const float *vectors[] = {NULL, none, bad};
    struct index_hit h;

    stand_init(&s);
    vector_of(s.vectors[0], 1);
    stand_put(&s, 0, "a");
    for (size_t i = 0; i < 3; i++)
        for (int mode = INDEX_HYBRID; mode <= INDEX_TEXT; mode++) {
            struct index_query q = {.text = STR("stones"),
                                    .vector = vectors[i],
                                    .mode = (enum index_mode)mode};

            CHECK_INT(search_hits(s.x, &q, &h, 1), 1);
            CHECK_INT(h.matches[0].skill, 2);
            CHECK(h.score == h.matches[0].text && h.score <= 1);
            CHECK(h.matches[0].semantic == 0);
            CHECK_INT(h.n_matches, 1);
        }
    index_free(s.x);
}

/* Names sort without their case; skills as they stand in the card, the agent
 * itself behind them. */
TEST(equals_come_in_the_order_of_their_names)
{
    static const char *const names[] = {"delta", "Bravo",  "alpha",
                                        "Echo",  "bravo2", "Charlie"};
    static const uint32_t order[] = {2, 1, 4, 5, 0, 3};
    struct stand s;
    struct index_query q = {.vector = ahead};

    stand_init(&s);
    for (int i = 0; i < 4; i++)
        vector_of(s.vectors[i], 0.6F);
    for (uint32_t i = 0; i < AGENTS; i++)
        stand_put(&s, i, names[i]);
    for (int fusion = INDEX_WEIGHTED; fusion <= INDEX_RRF; fusion++) {
        struct index_hit h[AGENTS];

        q.fusion = (enum index_fusion)fusion;
        CHECK_INT(search_hits(s.x, &q, h, AGENTS), AGENTS);
        for (size_t i = 0; i < AGENTS; i++) {
            CHECK_INT(h[i].number, order[i]);
            CHECK_INT(h[i].n_matches, 4);
            for (size_t k = 0; k < 3; k++)
                CHECK_INT(h[i].matches[k].skill, k);
            CHECK_INT(h[i].matches[3].skill, INDEX_AGENT);
        }
        CHECK(search_is_exact(s.x, &q, AGENTS));
    }
    index_free(s.x);
}

/* More than any layer of the ranking, all the same. */
TEST(a_thousand_equals_are_told_apart_by_their_names)
{
    struct stand s;
    struct index_query q = {.text = STR("stones"), .vector = ahead};
    static struct index_hit h[1000];

    stand_init(&s);
    s.a.n_skills = 2;
    for (int i = 0; i < 3; i++)
        vector_of(s.vectors[i], 0.6F);
    for (uint32_t i = 0; i < 1000; i++) {
        char name[16];

        snprintf(name, sizeof(name), "a%03u", (i * 7 + 3) % 1000);
        stand_put(&s, i, name);
    }
    CHECK_INT(search_hits(s.x, &q, h, 1000), 1000);
    for (uint32_t i = 0; i < 1000; i++)
        CHECK_INT((h[i].number * 7 + 3) % 1000, i);
    CHECK(search_is_exact(s.x, &q, 1000));
    index_free(s.x);
}

TEST(an_agent_comes_once_with_the_best_eight_of_its_documents)
{
    struct skill many[20];
    struct agent a = {.name = STR("many"),
                      .visibility = VISIBILITY_PUBLIC,
                      .skills = many,
                      .n_skills = 20};
    uint8_t packed[21 * (8 + 2 * DIMS)];
    struct index *x = index_new(100, stage_seed);
    struct index_query q = {.vector = ahead};
    struct index_change *c;
    struct index_hit h[2];

    CHECK(x);
    index_set_dims(x, DIMS);
    memset(packed, 0, sizeof(packed));
    for (size_t i = 0; i < 20; i++) {
        float v[DIMS];

        many[i] = (struct skill){.name = STR("skill")};
        vector_of(v, (float)(i * 7 % 20) / 20);
        vec_pack(v, DIMS, packed + (i + 1) * vec_packed_bytes(DIMS));
    }
    CHECK(index_prepare(x, &a, packed, &c) == OK);
    index_put(x, 0, c);
    CHECK_INT(search_hits(x, &q, h, 2), 1);
    CHECK_INT(h[0].n_matches, INDEX_MATCHES_MAX);
    for (size_t i = 0; i < INDEX_MATCHES_MAX; i++)
        CHECK_INT(h[0].matches[i].skill * 7 % 20, 19 - i);
    CHECK(search_is_exact(x, &q, 2));
    index_free(x);
}

/* Visibility. */

static size_t seen_by(struct index *x, struct index_query q, uint32_t *numbers)
{
    struct index_hit h[AGENTS];
    size_t n;

    q.vector = ahead;
    n = search_hits(x, &q, h, AGENTS);
    for (size_t i = 0; i < n; i++)
        numbers[i] = h[i].number;
    CHECK(search_is_exact(x, &q, AGENTS));
    return n;
}

static void put_seen(struct stand *s, uint32_t number, const char *name,
                     enum visibility v, struct str org, struct str creator)
{
    s->a.visibility = v;
    s->a.org = org;
    s->a.creator = creator;
    stand_put(s, number, name);
}

TEST(only_what_is_seen_is_found)
{
    struct stand s;
    const uint32_t granted[] = {4, 4, 4000000, 77, 2};
    uint32_t n[AGENTS];

    stand_init(&s);
    vector_of(s.vectors[0], 0.5F);
    put_seen(&s, 0, "a", VISIBILITY_PUBLIC, STR("acme"), STR("ann"));
    put_seen(&s, 1, "b", VISIBILITY_SHARED, STR("acme"), STR("ann"));
    put_seen(&s, 2, "c", VISIBILITY_PRIVATE, STR("acme"), STR("ann"));
    put_seen(&s, 3, "d", VISIBILITY_PRIVATE, STR("acme"), STR("acme"));
    put_seen(&s, 4, "e", VISIBILITY_SHARED, STR("bolt"), STR("bob"));
    put_seen(&s, 5, "f", VISIBILITY_PRIVATE, STR(""), STR(""));

    CHECK_INT(seen_by(s.x, (struct index_query){0}, n), 1);
    CHECK_INT(seen_by(s.x, (struct index_query){.org = STR("acme")}, n), 2);
    CHECK_INT(n[1], 1);
    CHECK_INT(seen_by(s.x, (struct index_query){.creator = STR("ann")}, n), 2);
    CHECK_INT(n[1], 2);
    CHECK_INT(seen_by(s.x, (struct index_query){.creator = STR("acme")}, n), 2);
    CHECK_INT(n[1], 3);
    CHECK_INT(
        seen_by(s.x,
                (struct index_query){.org = STR("bolt"), .creator = STR("x")},
                n),
        2);
    CHECK_INT(n[1], 4);
    CHECK_INT(seen_by(s.x, (struct index_query){.sees_all = true}, n), 6);
    CHECK_INT(seen_by(s.x,
                      (struct index_query){.granted = granted, .n_granted = 5},
                      n),
              3);
    CHECK_INT(n[1], 2);
    CHECK_INT(n[2], 4);
    index_drop(s.x, 0);
    CHECK_INT(seen_by(s.x, (struct index_query){0}, n), 0);
    index_free(s.x);
}

struct asked {
    uint32_t only;
    size_t times;
};

static bool admits_one(void *ctx, uint32_t number, uint32_t skill)
{
    struct asked *a = ctx;

    a->times++;
    return number == a->only && skill == 1;
}

/* The worst of two thousand is still found, and those that are not seen are
 * not asked for. */
TEST(a_limit_is_filled_with_what_the_filter_admits)
{
    struct stand s;
    struct asked asked = {.only = 0};
    struct index_query q = {
        .vector = ahead, .admits = admits_one, .ctx = &asked};
    struct index_hit h[2];

    stand_init(&s);
    s.a.n_skills = 2;
    for (uint32_t i = 0; i < 1000; i++) {
        char name[16];

        s.a.visibility = i % 2 ? VISIBILITY_PRIVATE : VISIBILITY_PUBLIC;
        snprintf(name, sizeof(name), "a%u", i);
        for (int k = 0; k < 3; k++)
            vector_of(s.vectors[k], 0.1F + (float)i / 2000);
        stand_put(&s, i, name);
    }
    CHECK_INT(search_hits(s.x, &q, h, 2), 1);
    CHECK_INT(h[0].number, 0);
    CHECK_INT(h[0].n_matches, 1);
    CHECK_INT(h[0].matches[0].skill, 1);
    CHECK(asked.times <= 500 * 3 + 3);
    CHECK(search_is_exact(s.x, &q, 2));
    asked.only = 1;
    CHECK_INT(search_hits(s.x, &q, h, 2), 0);
    index_free(s.x);
}

TEST(few_of_many_are_computed_finely)
{
    struct world *w = world_new(900, 256, 21);
    struct index_stats s;

    for (uint32_t i = 0; i < 900; i++)
        put_any(w, i);
    for (int i = 0; i < 20; i++) {
        struct index_hit h[10];

        any_query(w);
        w->query.fusion = INDEX_WEIGHTED;
        search_hits(w->x, &w->query, h, 10);
    }
    s = index_stats(w->x);
    CHECK_INT(s.searches_total, 20);
    CHECK_INT(s.scanned_total, 20 * (int64_t)s.documents);
    CHECK(s.refined_total * 5 < s.scanned_total);
    world_free(w);
}

/* Places in two lists. */

TEST(rrf_adds_places_of_both_lists)
{
    struct stand s;
    struct index_query q = {
        .text = STR("stones"), .vector = ahead, .fusion = INDEX_RRF};
    struct index_hit h[3];

    stand_init(&s);
    vector_of(s.vectors[1], 0.9F);
    stand_put(&s, 0, "a"); /* its first skill first by meaning, its third first
                            * by words */
    CHECK_INT(search_hits(s.x, &q, h, 3), 1);
    CHECK_INT(h[0].n_matches, 2);
    CHECK_INT(h[0].matches[0].skill, 0);
    CHECK(is_near(h[0].score, 0.5F));
    CHECK(is_near(h[0].matches[0].semantic, 0.9F));
    CHECK_INT(h[0].matches[1].skill, 2);
    CHECK(is_near(h[0].matches[1].score, 0.5F));
    CHECK(h[0].matches[1].text > 0 && h[0].matches[1].semantic == 0);

    vector_of(s.vectors[3], 0.8F);
    stand_put(&s, 0, "a");
    CHECK_INT(search_hits(s.x, &q, h, 3), 1);
    CHECK_INT(h[0].matches[0].skill, 2);
    CHECK(is_near(h[0].score, (1.0F / 61 + 1.0F / 62) * 61 / 2));

    /* First of the one list there is: all that can be had. */
    q.mode = INDEX_TEXT;
    CHECK_INT(search_hits(s.x, &q, h, 3), 1);
    CHECK(is_near(h[0].score, 1));
    q.text = STR("");
    CHECK_INT(search_hits(s.x, &q, h, 3), 0);
    index_free(s.x);
}

TEST(rrf_knows_the_best_200_of_each_list)
{
    struct stand s;
    struct index_query q = {
        .text = STR("stones"), .vector = ahead, .fusion = INDEX_RRF};
    static struct index_hit h[400];

    stand_init(&s);
    s.a.n_skills = 0;
    for (uint32_t i = 0; i < 400; i++) {
        char name[16];

        snprintf(name, sizeof(name), "a%u", i);
        vector_of(s.vectors[0], 0.9F - (float)i / 1000);
        stand_put(&s, i, name);
    }
    CHECK_INT(search_hits(s.x, &q, h, 400), 200);
    CHECK_INT(h[199].number, 199);
    CHECK(search_is_exact(s.x, &q, 400));
    index_free(s.x);
}

/* Names do not matter: equal documents share a rank. */
TEST(rrf_gives_equals_the_same_place)
{
    struct stand s;
    struct index_query q = {
        .text = STR("stones"), .vector = ahead, .fusion = INDEX_RRF};
    static struct index_hit h[400];

    stand_init(&s);
    s.a.n_skills = 0;
    s.a.description = STR("stones");
    for (uint32_t i = 0; i < 2; i++) {
        vector_of(s.vectors[0], i ? 0.9F : 0.2F);
        stand_put(&s, i, i ? "z" : "b");
    }
    CHECK_INT(search_hits(s.x, &q, h, 3), 2);
    CHECK_INT(h[0].number, 1);
    CHECK(is_near(h[0].score, 1));
    CHECK(is_near(h[1].score, (1.0F / 61 + 1.0F / 62) * 61 / 2));
    CHECK(search_is_exact(s.x, &q, 3));

    /* Also where more are equal than a list is long. */
    for (uint32_t i = 0; i < 400; i++) {
        char name[16];

        snprintf(name, sizeof(name), "a%03u", i);
        vector_of(s.vectors[0], 0.1F + (float)i / 1000);
        stand_put(&s, i, name);
    }
    CHECK_INT(search_hits(s.x, &q, h, 400), 400);
    CHECK_INT(h[0].number, 399);
    CHECK(is_near(h[0].score, 1));
    CHECK(search_is_exact(s.x, &q, 400));
    index_free(s.x);
}

TEST(nothing_is_found_where_nothing_is)
{
    struct index *x = index_new(10, stage_seed);
    struct index_query q = {.text = STR("x"), .vector = ahead};
    struct index_hit h;

    CHECK(x);
    CHECK_INT(search_hits(x, &q, &h, 1), 0);
    index_set_dims(x, DIMS);
    CHECK_INT(search_hits(x, &q, &h, 1), 0);
    q.fusion = INDEX_RRF;
    CHECK_INT(search_hits(x, &q, &h, 1), 0);
    index_search_end(x);
    index_free(x);
}

/* The searches of one who sees some are the same with and without what others
 * keep for themselves. */
TEST(what_others_hide_changes_nothing)
{
    struct world *w = world_new(100, 16, 31), *alone = world_new(100, 16, 31);
    struct index_hit a[20], b[20];

    for (uint32_t i = 0; i < 100; i++) {
        put_any(w, i);
        put_any(alone, i);
        if (w->x->classes[w->x->agents[i]->cls]->key.p[0] == '0' + 2)
            index_drop(alone->x, i);
    }
    for (int i = 0; i < 100; i++) {
        struct index_query *q = &w->query;
        size_t n;

        any_query(w);
        q->sees_all = false;
        q->creator = STR("");
        q->n_granted = 0;
        n = search_hits(w->x, q, a, 20);
        CHECK_INT(search_hits(alone->x, q, b, 20), n);
        for (size_t k = 0; k < n; k++)
            CHECK(hits_are_same(&a[k], &b[k]));
    }
    world_free(w);
    world_free(alone);
}
