/* Warnings about cards that are valid but will not work. */
#include "model/advice.h"

#include <string.h>

#include "test/t.h"

static const struct model_def models[] = {
    {.name = STR("gpt"), .model = STR("gpt-x")},
    {.name = STR("bare")},
};

static struct advice_against usual(void)
{
    return (struct advice_against){.models = models, .n_models = 2};
}

/* A card without warnings. */
static struct agent good(void)
{
    return (struct agent){
        .name = STR("devops"),
        .description =
            STR("keeps the clusters running, looks into crashes, rolls back "
                "releases and answers pages at night"),
        .url = STR("https://agents.example/devops"),
    };
}

static struct advice advice(const struct agent *a,
                            const struct advice_against *g)
{
    struct advice out;

    advice_of(a, g, &out);
    return out;
}

static bool warns(const struct agent *a, const char *code, const char *field,
                  const char *words)
{
    struct advice_against g = usual();
    struct advice got = advice(a, &g);

    for (size_t i = 0; i < got.n; i++)
        if (strcmp(got.list[i].code, code) == 0 &&
            strcmp(got.list[i].field, field) == 0 &&
            strstr(got.list[i].message, words))
            return true;
    return false;
}

static bool is_fine(const struct agent *a)
{
    struct advice_against g = usual();

    return advice(a, &g).n == 0;
}

TEST(a_good_card_has_no_warnings)
{
    struct agent a = good();

    CHECK(is_fine(&a));
}

TEST(a_card_of_one_line_is_thin)
{
    struct agent a = good();

    a.description = STR("writes and fixes code in any language");
    CHECK(warns(&a, "thin_card", "description", "7 words"));
    a.description = STR("code");
    CHECK(warns(&a, "thin_card", "description", "1 word,"));
    a.description = STR("");
    CHECK(warns(&a, "thin_card", "description", "neither a description"));
}

TEST(twelve_words_are_enough_and_eleven_are_not)
{
    struct agent a = good();

    a.description = STR("a b c d e f g h i j k");
    CHECK(warns(&a, "thin_card", "description", "11 words"));
    a.description = STR("a b c d e f g h i j k l");
    CHECK(is_fine(&a));
}

TEST(a_long_description_without_spaces_is_not_thin)
{
    static const char text[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                               "xxxxxxxxxxxxxxxxxxxxxxxxxx"
                               "xxxxxxx";
    struct agent a = good();

    CHECK(sizeof(text) - 1 == ADVICE_BYTES);
    a.description = (struct str){text, ADVICE_BYTES};
    CHECK(is_fine(&a));
    a.description.n--;
    CHECK(!is_fine(&a));
}

TEST(a_card_with_a_skill_or_one_that_is_never_routed_to_is_not_thin)
{
    struct skill skill = {.name = STR("deploy")};
    struct agent a = good();

    a.description = STR("code");
    a.skills = &skill;
    a.n_skills = 1;
    CHECK(is_fine(&a));
    a.n_skills = 0;
    a.routing.is_unroutable = true;
    CHECK(is_fine(&a));
}

TEST(a_card_that_is_close_to_another_names_it)
{
    struct advice_against g = usual();
    struct agent a = good();
    struct advice got;

    g.close = STR("sre");
    g.likeness = 0.934;
    got = advice(&a, &g);
    CHECK(got.n == 1 && strcmp(got.list[0].code, "close_card") == 0);
    CHECK(strstr(got.list[0].message, "that of sre (likeness 0.93)"));
    g.likeness = 0;
    got = advice(&a, &g);
    CHECK(strstr(got.list[0].message, "is the same as that of sre"));
    a.routing.is_unroutable = true;
    CHECK(advice(&a, &g).n == 0);
}

TEST(descriptions_are_the_same_but_for_spaces_around_them)
{
    struct agent a = good(), b = good();

    CHECK(advice_is_same_description(&a, &b));
    a.description = STR(" x ");
    b.description = STR("x");
    CHECK(advice_is_same_description(&a, &b));
    b.description = STR("y");
    CHECK(!advice_is_same_description(&a, &b));
    a.description = b.description = STR("");
    CHECK(!advice_is_same_description(&a, &b));
}

TEST(a_model_that_is_not_configured_is_told)
{
    struct agent a = good();

    a.url = STR("model:claude");
    CHECK(warns(&a, "unknown_model", "url", "\"claude\" is not configured"));
    a.url = STR("model:claude/opus");
    CHECK(warns(&a, "unknown_model", "url", "\"claude\" is not configured"));
    a.url = STR("model:bare");
    CHECK(warns(&a, "unknown_model", "url", "models.bare.model"));
    a.url = STR("model:bare/x");
    CHECK(is_fine(&a));
    a.url = STR("model:GPT");
    CHECK(is_fine(&a));
}

TEST(addresses_that_are_closed_are_told_with_what_opens_them)
{
    static const char *const closed[][2] = {
        {"http://127.0.0.1:9000/x", "\"127.0.0.1:9000\""},
        {"http://localhost:9000", "\"127.0.0.1:9000\""},
        {"https://a.localhost./", "\"127.0.0.1:443\""},
        {"http://[::1]:8080/", "\"[::1]:8080\""},
        {"http://10.1.2.3/", "\"10.1.2.3:80\""},
        {"http://192.168.0.5:1/", "private"},
        {"http://169.254.169.254/", "link-local"},
    };
    struct agent a = good();

    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++) {
        a.url = str_of(closed[i][0]);
        if (!warns(&a, "closed_address", "url", closed[i][1]))
            T_FAIL("%s", closed[i][0]);
    }
    a.url = STR("https://93.184.216.34/");
    CHECK(is_fine(&a));
    a.url = STR("https://internal.example/"); /* names are not resolved */
    CHECK(is_fine(&a));
}

TEST(the_address_that_wakes_an_agent_is_judged_too)
{
    struct agent a = good();

    a.url = STR("ws-agent://devops");
    a.wake.url = STR("http://10.0.0.1/wake");
    CHECK(warns(&a, "closed_address", "wake.url", "10.0.0.1"));
}

TEST(what_outgoing_allow_lists_is_open)
{
    struct guard_range allow;
    struct advice_against g = usual();
    struct agent a = good();

    CHECK(guard_range_read(STR("127.0.0.1:9000"), &allow, NULL) == OK);
    g.guard = (struct guard){&allow, 1};
    a.url = STR("http://localhost:9000/");
    CHECK(advice(&a, &g).n == 0);
    a.url = STR("http://localhost:9001/");
    CHECK(advice(&a, &g).n == 1);
    CHECK(guard_range_read(STR("[::1]:9001"), &allow, NULL) == OK);
    CHECK(advice(&a, &g).n == 0);
}

/* The server connects to what the operator configured. */
TEST(an_agent_of_the_configuration_may_be_anywhere)
{
    struct agent a = good();

    a.url = STR("http://127.0.0.1:9000/");
    a.wake.url = STR("http://10.0.0.1/");
    CHECK(!is_fine(&a));
    a.is_configured = true;
    CHECK(is_fine(&a));
}

TEST(a_card_may_have_every_warning_at_once)
{
    struct advice_against g = usual();
    struct agent a = good();
    struct advice got;
    struct json_out o;
    struct buf out;

    a.description = STR("x");
    a.url = STR("http://10.0.0.1/");
    a.wake.url = STR("http://10.0.0.2/");
    g.close = STR("y");
    got = advice(&a, &g);
    CHECK_INT(got.n, 4);
    CHECK(got.n < ADVICE_MAX);
    buf_init(&out, 8192);
    o = json_out(&out);
    advice_write(&o, &got);
    CHECK(str_starts(buf_str(&out),
                     STR("[{\"code\":\"thin_card\",\"field\":\"description\","
                         "\"message\":\"")));
    buf_fini(&out);
}
