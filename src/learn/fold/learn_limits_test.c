/* Every kind of thing has a limit, and the least useful is evicted. */
#include "test/t.h"

#include "test/lib/learn_stage.h"

static size_t n_examples(struct stage *s)
{
    CHECK(learn_check(s->l));
    return learn_stats(s->l).examples;
}

TEST(of_an_agent_and_a_scope_the_least_useful_example_goes)
{
    struct learn_settings tight = learn_defaults();
    struct stage *s;

    tight.examples_per_agent = 3;
    s = stage_new_with(tight);
    for (int i = 1; i <= 3; i++)
        correct(s, "engineer", "writer", "org:acme", i);
    correct(s, "engineer", "writer", "org:other", 1);
    correct(s, "engineer", "operator", "org:acme", 1);
    CHECK_INT(n_examples(s), 5);
    judge(s, "writer", 1, VERDICT_POSITIVE); /* which 1 has helped with */
    correct(s, "engineer", "writer", "org:acme", 4);
    CHECK_INT(n_examples(s), 5);
    CHECK(ask(s, "org:acme", 1, "writer").learned > 0.9F);
    CHECK(ask(s, "org:acme", 2, "writer").learned < 0.5F);
    CHECK(ask(s, "org:acme", 3, "writer").learned > 0.9F);
    CHECK(ask(s, "org:acme", 4, "writer").learned > 0.9F);
    CHECK(ask(s, "org:acme", 1, "operator").learned > 0.9F);
    CHECK(ask(s, "org:other", 1, "writer").learned > 0.9F);
    stage_free(s);
}

TEST(nobody_pushes_out_what_others_taught)
{
    struct learn_settings tight = learn_defaults();
    struct stage *s;
    char name[16];

    tight.max_examples = 50;
    s = stage_new_with(tight);
    correct(s, "engineer", "writer", "user:ann", 1);
    correct(s, "engineer", "writer", "org:small", 2);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "agent%d", i);
        correct(s, "engineer", name, "org:loud", 3 + i % 90);
    }
    CHECK_INT(n_examples(s), 50);
    CHECK(ask(s, "user:ann", 1, "writer").learned > 0.9F);
    CHECK(ask(s, "org:small", 2, "writer").learned > 0.9F);
    CHECK(ask(s, "org:loud", 3 + 299 % 90, "agent299").learned > 0.9F);
    CHECK(ask(s, "org:loud", 3, "agent0").learned == 0);
    stage_free(s);
}

TEST(oddities_do_not_wash_out_the_types_of_every_day)
{
    struct learn_settings tight = learn_defaults();
    struct stage *s;
    int64_t every_day;

    tight.max_types = 5;
    s = stage_new_with(tight);
    for (int i = 0; i < 3; i++)
        judge(s, "engineer", 1, VERDICT_POSITIVE);
    every_day = learn_type(s->l, STR("org:acme"), vector_of(s, 1));
    CHECK(every_day > 0);
    for (int i = 2; i < 60; i++)
        judge(s, "engineer", i, VERDICT_POSITIVE);
    CHECK_INT(learn_stats(s->l).types, 5);
    CHECK_INT(learn_stats(s->l).agent_types, 5);
    CHECK_INT(learn_type(s->l, STR("org:acme"), vector_of(s, 1)), every_day);
    CHECK(learn_type(s->l, STR("org:acme"), vector_of(s, 59)) > 0);
    CHECK(learn_check(s->l));
    stage_free(s);
}

TEST(where_all_types_are_well_known_the_oldest_goes)
{
    struct learn_settings tight = learn_defaults();
    struct stage *s;

    tight.max_types = 2;
    s = stage_new_with(tight);
    for (int round = 0; round < 3; round++)
        for (int i = 1; i <= 2; i++)
            judge(s, "engineer", i, VERDICT_POSITIVE);
    judge(s, "engineer", 1, VERDICT_POSITIVE);
    /* The new one is the only one with few members. */
    judge(s, "engineer", 3, VERDICT_POSITIVE);
    CHECK_INT(learn_type(s->l, STR("org:acme"), vector_of(s, 3)), 0);
    CHECK(learn_type(s->l, STR("org:acme"), vector_of(s, 1)) > 0);
    CHECK(learn_type(s->l, STR("org:acme"), vector_of(s, 2)) > 0);
    stage_free(s);
}

TEST(agents_longest_not_heard_of_go)
{
    struct learn_settings tight = learn_defaults();
    struct stage *s;

    tight.max_agents = 2;
    s = stage_new_with(tight);
    judge(s, "ann", 1, VERDICT_POSITIVE);
    judge(s, "bob", 1, VERDICT_POSITIVE);
    judge(s, "ann", 1, VERDICT_POSITIVE);
    judge(s, "cy", 1, VERDICT_POSITIVE);
    CHECK_INT(learn_stats(s->l).agents, 2);
    CHECK_INT(learn_stats(s->l).agent_types, 2);
    CHECK(ask(s, "org:acme", 1, "ann").performance > 0.5F);
    CHECK(ask(s, "org:acme", 1, "bob").performance == 0.5F);
    CHECK(ask(s, "org:acme", 1, "cy").performance > 0.5F);
    CHECK(learn_check(s->l));
    stage_free(s);
}

TEST(limits_of_nothing_keep_nothing)
{
    struct learn_settings none = learn_defaults();
    struct stage *s;

    none.max_types = none.max_examples = none.max_agents = 0;
    none.examples_per_agent = 0;
    s = stage_new_with(none);
    for (int i = 1; i < 20; i++) {
        judge(s, "ann", i, VERDICT_POSITIVE);
        correct(s, "ann", "bob", "org:acme", i);
        CHECK(learn_check(s->l));
    }
    CHECK_INT(learn_stats(s->l).agents, 0);
    CHECK_INT(learn_stats(s->l).types, 0);
    CHECK_INT(learn_stats(s->l).agent_types, 0);
    CHECK_INT(learn_stats(s->l).examples, 0);
    CHECK(ask(s, "org:acme", 1, "bob").learned == 0);
    stage_free(s);
}

TEST(lower_limits_take_effect_with_the_next_outcome)
{
    struct stage *s = stage_new();
    struct learn_settings tight = learn_defaults();

    for (int i = 1; i < 20; i++)
        correct(s, "ann", i % 2 ? "bob" : "cy", "org:acme", i);
    tight.max_examples = 4;
    tight.max_types = 3;
    learn_set(s->l, &tight);
    CHECK_INT(n_examples(s), 19);
    correct(s, "ann", "bob", "org:acme", 20);
    CHECK_INT(n_examples(s), 4);
    CHECK_INT(learn_stats(s->l).types, 3);
    stage_free(s);
}

TEST(names_scopes_and_models_that_are_too_long_teach_nothing)
{
    struct stage *s = stage_new();
    char longest[130], scope[162], model[130];
    struct outcome o;

    memset(longest, 'a', sizeof(longest));
    longest[129] = '\0';
    memset(scope, 's', sizeof(scope));
    scope[161] = '\0';
    memset(model, 'm', sizeof(model));
    model[129] = '\0';
    judge(s, longest, 1, VERDICT_POSITIVE);
    correct(s, "ann", longest, "org:acme", 1);
    correct(s, "ann", "bob", scope, 1);
    correct(s, "ann", "bob", "", 1);
    o = corrected(s, "ann", "bob", "org:acme", 1);
    o.model_hash = str_of(model);
    apply(s, &o);
    CHECK_INT(n_examples(s), 0);
    CHECK_INT(learn_stats(s->l).agents, 1); /* all verdicts are about ann */
    longest[128] = scope[160] = model[128] = '\0';
    judge(s, longest, 1, VERDICT_POSITIVE);
    correct(s, "ann", longest, scope, 1);
    o = corrected(s, "ann", "bob", "org:acme", 1);
    o.model_hash = str_of(model);
    apply(s, &o);
    CHECK_INT(n_examples(s), 2);
    CHECK(ask(s, scope, 1, longest).learned > 0.9F);
    CHECK_INT(learn_stats(s->l).agents, 2);
    stage_free(s);
}

static struct str packed(float *v, size_t n, uint8_t *to)
{
    bool is_any = vec_pack(v, n, to);

    (void)is_any; /* all zero is a vector too */
    return (struct str){(const char *)to, vec_packed_bytes(n)};
}

TEST(vectors_of_every_length)
{
    enum { MANY = 65536 };
    struct stage *s = stage_new();
    static float v[MANY];
    static uint8_t bytes[8 + 2 * MANY];
    static const size_t lengths[] = {1, 2, 63, 64, 65, 4096, MANY};

    for (size_t i = 0; i < MANY; i++)
        v[i] = (float)(stage_random(s) % 100) + 1;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        struct outcome o = corrected(s, "ann", "bob", "org:acme", 1);
        struct learn_query q = {.scope = STR("org:acme")};
        struct learn_hint h;

        o.vector = packed(v, lengths[i], bytes);
        apply(s, &o);
        q.vector = o.vector;
        learn_begin(s->l, &q);
        learn_look(s->l, STR("bob"), &h);
        CHECK(h.learned > 0.99F && h.learned <= 1);
        CHECK(learn_type(s->l, STR("org:acme"), q.vector) > 0);
        CHECK(learn_check(s->l));
    }
    v[0] = 0;
    correct(s, "ann", "bob", "org:acme", 1);
    CHECK_INT(n_examples(s), 8);
    stage_free(s);
}

TEST(a_vector_of_zeros_is_like_nothing)
{
    struct stage *s = stage_new();
    struct outcome o = corrected(s, "ann", "bob", "org:acme", 1);
    float v[4] = {0};
    uint8_t bytes[16];

    o.vector = packed(v, 4, bytes);
    apply(s, &o);
    CHECK_INT(n_examples(s), 0);
    CHECK_INT(learn_stats(s->l).types, 0);
    stage_free(s);
}

TEST(long_texts_and_strange_ones_are_cut_and_kept)
{
    struct stage *s = stage_new();
    struct outcome o = corrected(s, "ann", "bob", "org:acme", 1);
    char text[1024];

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(i % 7 ? 128 + i % 64 : ' ');
    o.text = (struct str){text, sizeof(text)};
    apply(s, &o);
    o = corrected(s, "ann", "bob", "org:acme", 1);
    o.text = STR("\x1b[31mred\x1b[0m \xe2\x80\xae 4711 x yy "
                 "0123456789abcdef0123456789abcdef");
    apply(s, &o);
    CHECK(exported(s));
    CHECK(str_find(learn_type_name(s->l, learn_type(s->l, STR("org:acme"),
                                                    vector_of(s, 1))),
                   '\x1b', 0) ==
          learn_type_name(s->l,
                          learn_type(s->l, STR("org:acme"), vector_of(s, 1)))
              .n);
    stage_free(s);
}

/* More words than are kept: frequent ones stay. */
TEST(words_that_come_again_outlast_those_that_do_not)
{
    struct stage *s = stage_new();
    char text[128];

    for (int i = 0; i < 200; i++) {
        struct outcome o = judged(s, "ann", 1, VERDICT_POSITIVE);

        snprintf(text, sizeof(text), "invoice a%c%c%cq b%c%c%cq", 'a' + i % 26,
                 'a' + i / 26, 'a' + i % 7, 'a' + i % 26, 'a' + i / 26,
                 'a' + i % 5);
        o.text = str_of(text);
        apply(s, &o);
    }
    CHECK(str_starts(learn_type_name(s->l, learn_type(s->l, STR("org:acme"),
                                                      vector_of(s, 1))),
                     STR("invoice ")));
    stage_free(s);
}

static struct outcome judged_at(struct stage *s, double degrees)
{
    static uint8_t bytes[16];
    float v[2] = {(float)cos(degrees * 3.14159265358979 / 180),
                  (float)sin(degrees * 3.14159265358979 / 180)};
    struct outcome o = judged(s, "ann", 1, VERDICT_POSITIVE);

    o.vector = packed(v, 2, bytes);
    return o;
}

/* A mean of all four thousand would be at 38 degrees, too far from 96; that of
 * the last thousand or so is at 48. */
TEST(a_type_of_thousands_follows_what_is_asked_now)
{
    struct stage *s = stage_new();
    struct outcome o;

    for (int i = 0; i < 4000; i++) {
        o = judged_at(s, i < 1000 ? 0 : 50);
        apply(s, &o);
    }
    CHECK_INT(learn_stats(s->l).types, 1);
    o = judged_at(s, 96);
    CHECK(learn_type(s->l, STR("org:acme"), o.vector) > 0);
    o = judged_at(s, 106);
    CHECK_INT(learn_type(s->l, STR("org:acme"), o.vector), 0);
    stage_free(s);
}

/* Each word sorts before all earlier ones, and so replaces the one that sorts
 * last. */
TEST(of_a_text_48_words_are_heard_and_of_a_type_32_kept)
{
    struct stage *s = stage_new();
    struct outcome o = judged(s, "ann", 1, VERDICT_POSITIVE);
    char text[512] = "";
    size_t n = 0;

    for (int i = 0; i < 60; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "x%c%cq ",
                              'z' - i / 20, 'z' - i % 20);
    o.text = str_of(text);
    apply(s, &o);
    CHECK(strstr(exported(s), "\"xxsq\":1")); /* the 48th */
    CHECK(strstr(exported(s), "\"xzjq\":1")); /* the 17th */
    CHECK(!strstr(exported(s), "\"xxrq\""));
    CHECK(!strstr(exported(s), "\"xzkq\""));
    stage_free(s);
}

/* Each limit is three, and one more is added. */

TEST(agents_with_a_type_longest_not_heard_of_go)
{
    struct learn_settings tight = learn_defaults();
    struct stage *s;

    tight.max_pairs = 3;
    s = stage_new_with(tight);
    judge(s, "ann", 1, VERDICT_POSITIVE);
    judge(s, "ann", 2, VERDICT_POSITIVE);
    judge(s, "bob", 1, VERDICT_POSITIVE);
    CHECK_INT(learn_stats(s->l).agent_types, 3);
    judge(s, "ann", 1, VERDICT_POSITIVE);
    judge(s, "bob", 2, VERDICT_POSITIVE);
    CHECK_INT(learn_stats(s->l).agent_types, 3);
    CHECK_INT(learn_stats(s->l).types, 2);
    CHECK(ask(s, "org:acme", 2, "ann").performance == 0.5F);
    CHECK(ask(s, "org:acme", 1, "ann").performance > 0.5F);
    CHECK(ask(s, "org:acme", 2, "bob").performance > 0.5F);
    CHECK(learn_check(s->l));
    stage_free(s);
}

/* A verdict about an agent of one owner counts in full in its own scope, and
 * not at all for other scopes. */
static void judge_in(struct stage *s, const char *scope, const char *agent)
{
    struct outcome o = judged(s, agent, 1, VERDICT_POSITIVE);

    o.scope = str_of(scope);
    o.owner = STR("olga");
    apply(s, &o);
}

TEST(views_longest_not_heard_of_go)
{
    struct learn_settings tight = learn_defaults();
    struct stage *s;

    tight.max_views = 3;
    s = stage_new_with(tight);
    judge_in(s, "org:a", "ann");
    judge_in(s, "org:b", "ann");
    judge_in(s, "org:c", "ann");
    CHECK_INT(learn_stats(s->l).views, 3);
    judge_in(s, "org:a", "ann");
    judge_in(s, "org:d", "ann");
    CHECK_INT(learn_stats(s->l).views, 3);
    CHECK(ask(s, "org:a", 1, "ann").performance > 0.5F);
    CHECK(ask(s, "org:b", 1, "ann").performance == 0.5F);
    CHECK(ask(s, "org:c", 1, "ann").performance > 0.5F);
    CHECK(ask(s, "org:d", 1, "ann").performance > 0.5F);
    CHECK(learn_check(s->l));
    stage_free(s);
}

static bool is_rated(struct stage *s, const char *scope, const char *agent)
{
    return ask_text(s, scope, -1, 0, agent).is_rated;
}

TEST(ratings_longest_not_heard_of_go)
{
    static const char *const said[] = {"org:a", "org:b", "org:c", "org:a",
                                       "org:d"};
    struct learn_settings tight = learn_defaults();
    struct stage *s;

    tight.max_ratings = 3;
    s = stage_new_with(tight);
    for (int i = 0; i < 5; i++) {
        struct outcome o = judged(s, "ann", 1, VERDICT_POSITIVE);

        o.kind = OUTCOME_FEEDBACK;
        o.by = STR("cy");
        o.scope = str_of(said[i]);
        apply(s, &o);
        CHECK_INT(learn_stats(s->l).ratings, i < 3 ? i + 1 : 3);
    }
    CHECK(is_rated(s, "org:a", "ann") && !is_rated(s, "org:b", "ann"));
    CHECK(is_rated(s, "org:c", "ann") && is_rated(s, "org:d", "ann"));
    CHECK(learn_check(s->l));
    stage_free(s);
}

static bool has_type(struct stage *s, const char *scope)
{
    return learn_type(s->l, str_of(scope), vector_of(s, 1)) > 0;
}

TEST(scopes_longest_not_heard_of_go_with_all_they_have_seen)
{
    struct learn_settings tight = learn_defaults();
    struct stage *s;

    tight.max_scopes = 3;
    s = stage_new_with(tight);
    judge_in(s, "org:a", "ann");
    judge_in(s, "org:b", "ann");
    judge_in(s, "org:c", "ann");
    CHECK_INT(learn_stats(s->l).scopes, 3);
    CHECK_INT(learn_stats(s->l).types, 3);
    judge_in(s, "org:a", "ann");
    judge_in(s, "org:d", "ann");
    CHECK_INT(learn_stats(s->l).scopes, 3);
    CHECK_INT(learn_stats(s->l).types, 3);
    CHECK_INT(learn_stats(s->l).views, 3);
    CHECK_INT(learn_stats(s->l).agent_types, 3);
    CHECK(has_type(s, "org:a") && !has_type(s, "org:b"));
    CHECK(has_type(s, "org:c") && has_type(s, "org:d"));
    CHECK(ask(s, "org:b", 1, "ann").recency == 0);
    CHECK(learn_check(s->l));
    stage_free(s);
}

/* The owners that a scope has met are known as long as the scope is. */
TEST(a_scope_that_went_is_heard_as_a_new_one)
{
    struct learn_settings tight = learn_defaults();
    static const char *const scopes[] = {"org:a", "org:b", "org:c", "org:b"};
    struct stage *s;

    tight.max_scopes = 3;
    s = stage_new_with(tight);
    for (int i = 0; i < 4; i++) {
        struct outcome o;

        judge_in(s, scopes[i], "ann");
        o = judged(s, "bob", 1, VERDICT_POSITIVE);
        o.owner = STR("mallory");
        o.scope = str_of(scopes[i]);
        if (i < 3)
            apply(s, &o);
    }
    CHECK(ask(s, "org:x", 1, "bob").performance > 0.5F);
    judge_in(s, "org:d", "ann"); /* org:a goes */
    CHECK(ask(s, "org:a", 1, "bob").performance ==
          ask(s, "org:x", 1, "bob").performance);
    stage_free(s);
}

TEST(where_all_types_are_too_many_the_scope_longest_not_heard_of_goes)
{
    struct learn_settings tight = learn_defaults();
    struct stage *s;

    tight.max_all_types = 4;
    s = stage_new_with(tight);
    judge_in(s, "org:a", "ann");
    judge_in(s, "org:b", "ann");
    judge(s, "ann", 1, VERDICT_POSITIVE);
    judge(s, "ann", 2, VERDICT_POSITIVE);
    CHECK_INT(learn_stats(s->l).types, 4);
    CHECK(has_type(s, "org:a"));
    judge(s, "ann", 3, VERDICT_POSITIVE);
    CHECK_INT(learn_stats(s->l).types, 4);
    CHECK(!has_type(s, "org:a") && has_type(s, "org:b"));
    /* Only its own scope has judged it. */
    for (int i = 4; i < 9; i++)
        judge(s, "ann", i, VERDICT_POSITIVE);
    CHECK_INT(learn_stats(s->l).types, 4);
    CHECK_INT(learn_stats(s->l).scopes, 1);
    CHECK(!has_type(s, "org:b") && !has_type(s, "org:acme"));
    CHECK(learn_type(s->l, STR("org:acme"), vector_of(s, 8)) > 0);
    CHECK(learn_check(s->l));
    stage_free(s);
}
