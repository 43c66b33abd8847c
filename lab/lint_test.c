/* The findings of lint, and cards without any. Vectors have two numbers, chosen
 * by hand to show which agents are close. */
#include "lab/lint_rules.h"

#include "base/vec.h"
#include "test/t.h"

#define STRS(...)                                                           \
    {                                                                       \
        .list = (const struct str[]){__VA_ARGS__},                          \
        .n = sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str) \
    }

static struct choose_settings settings;
static struct buf heard;
static size_t n_heard;

static void hear(void *ctx, const struct lint_finding *f)
{
    (void)ctx;
    CHECK(f->check && f->rule && f->text[0]);
    n_heard++;
    buf_addf(&heard, "%s.%s%s: %s\n", f->check, f->rule,
             f->is_note ? " (note)" : "", f->text);
}

typedef enum err rule(const struct lint_fleet *fleet, lint_fn *each, void *ctx);

static struct lint_fleet fleet_of(const struct agent *agents, size_t n)
{
    settings = choose_defaults();
    settings.default_agent = STR("stranger");
    return (struct lint_fleet){.agents = agents,
                               .n = n,
                               .settings = &settings,
                               .twins = 0.9,
                               .is_configured = true};
}

static const char *found(rule *look, const struct lint_fleet *fleet)
{
    buf_fini(&heard);
    buf_init(&heard, 1 << 20);
    n_heard = 0;
    CHECK(look(fleet, hear, NULL) == OK);
    buf_add_char(&heard, '\0');
    CHECK(!heard.over);
    return heard.p;
}

#define SAYS(rule, fleet, words) CHECK(strstr(found(rule, fleet), words))
#define SILENT(rule, fleet)      CHECK(!*found(rule, fleet))

/* Keywords. */

TEST(good_keywords_are_left_alone)
{
    struct agent a[] = {
        {.name = STR("a"), .routing.keywords = STRS(STR("blog"), STR("C++"))},
        {.name = STR("b"), .routing.keywords = STRS(STR("invoice"))},
    };
    struct lint_fleet f = fleet_of(a, 2);

    SILENT(lint_keywords, &f);
    f = fleet_of(a, 0);
    SILENT(lint_keywords, &f);
}

TEST(words_that_are_said_to_everybody_are_generic)
{
    struct agent a[] = {
        {.name = STR("a"),
         .routing.keywords = STRS(STR("Help"), STR("can you help me"))}};
    struct lint_fleet f = fleet_of(a, 1);

    SAYS(lint_keywords, &f,
         "keywords.generic: \"Help\" of a occurs in messages for every agent");
    CHECK(strstr(heard.p, "\"can you help me\""));
}

TEST(words_that_the_others_use_too_are_generic)
{
    struct agent a[] = {
        {.name = STR("a"), .routing.keywords = STRS(STR("language"))},
        {.name = STR("b"), .description = STR("Speaks a language.")},
        {.name = STR("c"), .description = STR("Of every LANGUAGE, the best.")},
        {.name = STR("d"), .description = STR("Languages are others.")},
        {.name = STR("e"), .description = STR("a language model")},
    };
    struct lint_fleet f = fleet_of(a, 5);

    SAYS(lint_keywords, &f,
         "keywords.generic: \"language\" of a occurs in the descriptions of 3 "
         "other agents\n");
    f = fleet_of(a, 3); /* two others are too few */
    SILENT(lint_keywords, &f);
}

TEST(keywords_that_several_have_collide_whatever_their_case)
{
    struct agent a[] = {
        {.name = STR("a"), .routing.keywords = STRS(STR("Blog  Post"))},
        {.name = STR("b"), .routing.keywords = STRS(STR("blog post"))},
        {.name = STR("c"), .routing.keywords = STRS(STR("BLOG post"))},
    };
    struct lint_fleet f = fleet_of(a, 3);

    SAYS(lint_keywords, &f, "is a keyword of a, b and c: it lifts all of them");
    CHECK(n_heard == 1);
}

TEST(a_keyword_that_is_part_of_another_s_is_noted)
{
    struct agent a[] = {
        {.name = STR("a"), .routing.keywords = STRS(STR("test"))},
        {.name = STR("b"),
         .routing.keywords = STRS(STR("unit test suite"), STR("unit"))},
    };
    struct lint_fleet f = fleet_of(a, 2);

    SAYS(lint_keywords, &f,
         "keywords.within (note): \"test\" of a is part of \"unit test suite\" "
         "of b");
    CHECK(n_heard == 1); /* b's own keywords do not count */
}

TEST(keywords_without_a_letter_and_those_said_twice_are_found)
{
    struct agent a[] = {
        {.name = STR("a"),
         .routing.keywords = STRS(STR("!?"), STR("tea"), STR("Tea"))}};
    struct lint_fleet f = fleet_of(a, 1);

    SAYS(lint_keywords, &f, "keywords.empty: \"!?\" of a has neither letters");
    CHECK(strstr(heard.p, "keywords.twice (note): a has the keyword"));
    CHECK(n_heard == 2);
}

TEST(many_that_have_one_are_counted)
{
    enum { N = 20 };
    const struct str tea = STR("tea");
    struct agent a[N];
    char names[N][8];
    struct lint_fleet f;

    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "a%02d", i);
        a[i] = (struct agent){.name = str_of(names[i]),
                              .routing.keywords = {&tea, 1}};
    }
    f = fleet_of(a, N);
    SAYS(lint_keywords, &f,
         "a06, a07 and 12 more: it lifts all of them equally");
}

/* Twins. */

TEST(those_that_say_the_same_are_twins)
{
    struct agent a[] = {{.name = STR("a")},
                        {.name = STR("b")},
                        {.name = STR("c")},
                        {.name = STR("none")}};
    float v[] = {1, 0, 0.99F, 0.1411F, 0, 1, 0, 0};
    struct lint_fleet f = fleet_of(a, 4);

    SILENT(lint_twins, &f); /* no agent has a vector */
    f.vectors = v;
    f.dims = 2;
    SAYS(lint_twins, &f,
         "twins.alike: a and b have similar descriptions (0.99)");
    CHECK(n_heard == 1);
    a[1].routing.is_unroutable = true; /* so it does not compete with a */
    SILENT(lint_twins, &f);
}

/* Reach. */

TEST(whom_nobody_sees_nobody_reaches)
{
    struct agent a[] = {
        {.name = STR("a"),
         .description = STR("d"),
         .visibility = VISIBILITY_PRIVATE},
        {.name = STR("b"),
         .description = STR("d"),
         .visibility = VISIBILITY_SHARED},
        {.name = STR("c"),
         .description = STR("d"),
         .visibility = VISIBILITY_SHARED,
         .org = STR("acme")},
        {.name = STR("d"),
         .description = STR("d"),
         .visibility = VISIBILITY_PRIVATE,
         .creator = STR("anna")},
    };
    struct lint_fleet f = fleet_of(a, 4);

    SAYS(lint_reach, &f, "reach.hidden: a is private and has no owner");
    CHECK(strstr(heard.p, "reach.hidden: b is shared, but has no org"));
    CHECK(n_heard == 2);
}

TEST(who_says_nothing_is_reached_by_name_alone)
{
    struct agent a[] = {
        {.name = STR("a")}, {.name = STR("b")}, {.name = STR("Stranger")}};
    struct binding b[] = {{.agent = STR("B"), .channel = STR("x")}};
    struct lint_fleet f = fleet_of(a, 3);

    settings.bindings = (struct bindings){b, 1};
    SAYS(lint_reach, &f, "reach.profile: a has no description");
    CHECK(n_heard == 1); /* b is bound, and Stranger is the default */
}

TEST(who_is_in_no_layer_that_is_on_cannot_be_chosen)
{
    struct agent a[] = {{.name = STR("a"),
                         .description = STR("d"),
                         .routing.is_unroutable = true}};
    struct lint_fleet f = fleet_of(a, 1);

    SILENT(lint_reach, &f);
    settings.is_off[LAYER_EXPLICIT] = settings.is_off[LAYER_PREFIX] = true;
    SAYS(lint_reach, &f, "reach.layers: a cannot be chosen by any layer");
    settings.default_agent = STR("a");
    SILENT(lint_reach, &f);
}

TEST(the_dead_are_named_and_a_missing_default_is_noted)
{
    struct agent a[] = {{.name = STR("a"), .description = STR("d")}};
    struct lint_known known[] = {{.state = AGENT_DEAD}};
    struct lint_fleet f = fleet_of(a, 1);

    f.known = known;
    SAYS(lint_reach, &f, "reach.dead: a is DEAD: it is not connected");
    known[0].reason = STR("the model \"gpt\" is not configured");
    SAYS(lint_reach, &f, "reach.dead: a is DEAD: the model \"gpt\" is not");
    f = fleet_of(a, 1);
    settings.default_agent = STR("");
    SAYS(lint_reach, &f, "reach.default (note): there is no default");
    f.is_configured = false; /* a server does not report its default */
    SILENT(lint_reach, &f);
}

TEST(two_that_one_command_stands_for_are_named)
{
    struct agent a[] = {{.name = STR("my-bot"), .description = STR("d")},
                        {.name = STR("My.Bot"), .description = STR("d")}};
    struct lint_fleet f = fleet_of(a, 2);

    SAYS(lint_reach, &f,
         "reach.command: \"/my_bot\" is the command of both my-bot and My.Bot");
}

static struct str packed(float x, float y, uint8_t *room)
{
    float v[] = {x, y};

    CHECK(vec_pack(v, 2, room));
    return (struct str){(const char *)room, vec_packed_bytes(2)};
}

static struct index *index_of(const struct agent *a, size_t n, const float *v)
{
    static const uint64_t seed[2] = {1, 2};
    struct index *x = index_new(100, seed);

    CHECK(x);
    index_set_dims(x, 2);
    for (size_t i = 0; i < n; i++) {
        struct agent one = a[i];
        struct index_change *c;
        uint8_t row[64];

        one.visibility = VISIBILITY_PUBLIC;
        packed(v[2 * i], v[2 * i + 1], row);
        CHECK(index_prepare(x, &one, row, &c) == OK);
        index_put(x, (uint32_t)i, c);
    }
    return x;
}

TEST(examples_that_go_to_another_or_score_too_low_are_named)
{
    struct agent a[] = {{.name = STR("a"), .description = STR("tea")},
                        {.name = STR("b"), .description = STR("cake")}};
    float v[] = {0.6F, 0.8F, 0, 1};
    uint8_t rows[3][64];
    struct str near_b = packed(0, 1, rows[0]), near_a = packed(1, 0, rows[1]),
               nowhere = packed(0.6F, -0.8F, rows[2]);
    struct lint_try tries[] = {
        {.agent = 0, .text = STR("x"), .vector = near_b},
        {.agent = 1, .text = STR("y"), .vector = near_b},
        {.agent = 1, .text = STR("z"), .vector = near_a},
        {.agent = 0, .text = STR("w"), .vector = near_b}};
    struct lint_fleet f = fleet_of(a, 2);

    settings.is_auto = false;
    f.tries = tries;
    f.n_tries = 4;
    f.index = index_of(a, 2, v);
    SAYS(lint_reach, &f,
         "reach.lost: a does not get 2 of its own 2 examples: \"x\" scores "
         "0.460, and 0.550 for b\n");
    CHECK(strstr(heard.p, "reach.lost (note): b does not get 1 of its own 2"));
    CHECK(n_heard == 2);
    tries[0].vector = nowhere;
    tries[0].is_description = true;
    f.n_tries = 1;
    SAYS(lint_reach, &f,
         "reach.lost: a does not get its own description: \"x\" scores 0.100 "
         "and 0.300 is needed\n");
    settings.is_off[LAYER_SEMANTIC] = true;
    SILENT(lint_reach, &f);
    index_free(f.index);
}

TEST(at_auto_an_example_has_to_be_confident)
{
    enum { TEXTS = 64 };
    struct agent a[] = {{.name = STR("a"), .description = STR("tea")},
                        {.name = STR("b"), .description = STR("cake")}};
    float v[] = {1, 0, 0, 1};
    uint8_t rows[2][64], reference[TEXTS * 64];
    struct lint_try tries[] = {
        {.agent = 0, .text = STR("x"), .vector = packed(1, 0, rows[0])},
        {.agent = 0, .text = STR("y"), .vector = packed(0.7F, 0.6F, rows[1])}};
    struct lint_fleet f = fleet_of(a, 2);

    f.tries = tries;
    f.n_tries = 2;
    f.index = index_of(a, 2, v);
    CHECK(settings.is_auto);
    SILENT(lint_reach, &f); /* without levels */
    /* Both cards are up to 0.8 similar to unrelated texts. */
    for (size_t i = 0; i < TEXTS; i++) {
        float part = (float)i / TEXTS;

        packed(0.8F * part, 0.8F * (1 - part),
               reference + i * vec_packed_bytes(2));
    }
    CHECK(index_set_reference(f.index, reference, TEXTS) == OK);
    CHECK(!index_level_some(f.index, 2));
    SAYS(lint_reach, &f,
         "reach.lost (note): a does not get 1 of its own 2 examples: \"y\" is "
         "unsure, with ");
    CHECK(n_heard == 1);
    index_free(f.index);
}

/* Bindings. */

TEST(a_binding_behind_the_same_one_never_counts)
{
    struct binding b[] = {
        {.agent = STR("a"),
         .channel = STR("telegram"),
         .peer = {STR("group"), STR("1")}},
        {.agent = STR("a"),
         .channel = STR("telegram"),
         .peer = {STR("group"), STR("2")}},
        {.agent = STR("b"),
         .channel = STR("Telegram"),
         .account_id = STR("*"),
         .peer = {STR("channel"), STR("1")}},
        {.agent = STR("b"),
         .channel = STR("telegram"),
         .account_id = STR("main"),
         .peer = {STR("group"), STR("1")}},
    };
    struct lint_fleet f = fleet_of(NULL, 0);

    settings.bindings = (struct bindings){b, 4};
    SAYS(lint_bindings, &f,
         "bindings.shadowed: bindings[2] to b has no effect: bindings[0], to "
         "a, matches the same messages\n");
    CHECK(n_heard == 1);
}

/* Cards. */

TEST(a_card_that_will_not_work_is_told_with_what_to_do)
{
    struct advice_against against = {.n_models = 0};
    struct agent a[] = {
        {.name = STR("thin"), .description = STR("writes code")},
        {.name = STR("mute")}, /* lint_reach reports that one */
        {.name = STR("lost"),
         .url = STR("model:gpt"),
         .description = STR("a b c d e f g h i j k l m")},
    };
    struct lint_fleet f = fleet_of(a, 3);

    SAYS(lint_cards, &f,
         "cards.thin_card: thin: the card has no skills and a description of 2 "
         "words");
    CHECK_INT(n_heard, 1); /* the server's models are unknown */
    f.against = &against;
    SAYS(lint_cards, &f, "cards.unknown_model: lost: the model \"gpt\"");
    CHECK_INT(n_heard, 2);
    a[0].description = a[2].description;
    a[2].url = STR("echo:");
    SILENT(lint_cards, &f);
}

TEST(the_warnings_of_a_server_are_told_and_close_cards_left_to_twins)
{
    struct agent a[] = {{.name = STR("a"), .description = STR("writes code")}};
    struct advice advice = {
        .list = {{.code = "closed_address", .message = "10.0.0.1 is closed; x"},
                 {.code = "close_card", .message = "as that of b"}},
        .n = 2};
    struct lint_known known[] = {{.state = AGENT_IDLE, .advice = &advice}};
    struct lint_fleet f = fleet_of(a, 1);

    f.is_configured = false;
    f.known = known;
    SAYS(lint_cards, &f, "cards.closed_address: a: 10.0.0.1 is closed\n");
    CHECK_INT(n_heard, 1);
}
