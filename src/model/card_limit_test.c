/* Every limit of a card, exactly and one beyond. */
#include "test/lib/card_stage.h"

/* A card whose field at `pointer` is a string of n bytes, or a list of n
 * elements: the text is `head`, that, and `tail`. */
struct limit {
    const char *pointer, *head, *tail;
    size_t max;
    const char *element; /* of a list, with a %zu; NULL: a string */
    const char *words;   /* the message beyond it */
};

#define CARD  "{\"name\":\"a\",\"description\":\"d\","
#define SKILL CARD "\"skills\":[{\"id\":\"s\",\"name\":\"S\","

static const struct limit limits[] = {
    {"/name", "{\"description\":\"d\",\"name\":\"", "\"}", AGENT_NAME_MAX, NULL,
     "must be a name of 1 to 128"},
    {"/title", CARD "\"title\":\"", "\"}", AGENT_TITLE_MAX, NULL,
     "may have up to 128 bytes, not 129"},
    {"/description", "{\"name\":\"a\",\"description\":\"", "\"}",
     AGENT_DESCRIPTION_MAX, NULL, "may have up to 16384 bytes, not 16385"},
    {"/version", CARD "\"version\":\"", "\"}", AGENT_VERSION_MAX, NULL,
     "up to 64 bytes"},
    {"/url", CARD "\"url\":\"https://host/", "\"}",
     AGENT_URL_MAX - sizeof("https://host/") + 1, NULL,
     "may have 2048 bytes, not 2049"},
    {"/wake/url", CARD "\"wake\":{\"url\":\"https://host/", "\"}}",
     AGENT_URL_MAX - sizeof("https://host/") + 1, NULL,
     "may have 2048 bytes, not 2049"},
    {"/provider/organization", CARD "\"provider\":{\"organization\":\"", "\"}}",
     256, NULL, "may have up to 256 bytes, not 257"},
    {"/provider/url", CARD "\"provider\":{\"url\":\"https://host/", "\"}}",
     AGENT_URL_MAX - sizeof("https://host/") + 1, NULL,
     "may have 2048 bytes, not 2049"},
    {"/authentication/schemes", CARD "\"authentication\":{\"schemes\":[", "]}}",
     32, "\"s%zu\"", "up to 32 elements, not 33"},
    {"/authentication/schemes/0", CARD "\"authentication\":{\"schemes\":[\"",
     "\"]}}", 64, NULL, "may have up to 64 bytes, not 65"},
    {"/authentication/credentials",
     CARD "\"authentication\":{\"credentials\":\"", "\"}}", 4096, NULL,
     "may have up to 4096 bytes, not 4097"},
    {"/authentication/header", CARD "\"authentication\":{\"header\":\"", "\"}}",
     64, NULL, "may have up to 64 bytes, not 65"},
    {"/metadata", CARD "\"metadata\":{\"k\":\"", "\"}}",
     AGENT_OBJECT_MAX - sizeof("{\"k\":\"\"}") + 1, NULL,
     "may have up to 16384 bytes"},
    {"/routing/system_prompt", CARD "\"routing\":{\"system_prompt\":\"", "\"}}",
     AGENT_PROMPT_MAX, NULL, "up to 65536 bytes"},
    {"/routing/keywords", CARD "\"routing\":{\"keywords\":[", "]}}",
     AGENT_KEYWORDS_MAX, "\"k%zu\"", "up to 128 elements, not 129"},
    {"/routing/keywords/0", CARD "\"routing\":{\"keywords\":[\"", "\"]}}",
     AGENT_KEYWORD_MAX, NULL, "up to 64 bytes"},
    {"/restart/command", CARD "\"restart\":{\"command\":[", "]}}",
     AGENT_COMMAND_MAX, "\"w%zu\"", "up to 64 elements"},
    {"/restart/command/0", CARD "\"restart\":{\"command\":[\"", "\"]}}",
     AGENT_WORD_MAX, NULL, "up to 4096 bytes"},
    {"/delegation/allowAgents", CARD "\"delegation\":{\"allowAgents\":[", "]}}",
     AGENT_ALLOWED_MAX, "\"a%zu\"", "up to 256 elements"},
    {"/skills", CARD "\"skills\":[", "]}", AGENT_SKILLS_MAX,
     "{\"id\":\"s%zu\",\"name\":\"S\"}", "up to 256 elements, not 257"},
    {"/skills/0/id", CARD "\"skills\":[{\"name\":\"S\",\"id\":\"", "\"}]}",
     SKILL_ID_MAX, NULL, "1 to 128 letters"},
    {"/skills/0/name", CARD "\"skills\":[{\"id\":\"s\",\"name\":\"", "\"}]}",
     SKILL_NAME_MAX, NULL, "up to 128 bytes"},
    {"/skills/0/description", SKILL "\"description\":\"", "\"}]}",
     SKILL_DESCRIPTION_MAX, NULL, "up to 4096 bytes"},
    {"/skills/0/tags", SKILL "\"tags\":[", "]}]}", SKILL_TAGS_MAX, "\"t%zu\"",
     "up to 32 elements"},
    {"/skills/0/tags/0", SKILL "\"tags\":[\"", "\"]}]}", SKILL_TAG_MAX, NULL,
     "up to 64 bytes"},
    {"/skills/0/examples", SKILL "\"examples\":[", "]}]}", SKILL_EXAMPLES_MAX,
     "\"e%zu\"", "up to 64 elements"},
    {"/skills/0/examples/0", SKILL "\"examples\":[\"", "\"]}]}",
     SKILL_EXAMPLE_MAX, NULL, "up to 1024 bytes"},
};

static void fill(struct buf *out, const struct limit *l, size_t n)
{
    buf_add_str(out, str_of(l->head));
    for (size_t i = 0; i < n; i++) {
        char one[64];

        if (!l->element) {
            buf_add_char(out, 'x');
            continue;
        }
        CHECK(strstr(l->element, "%zu"));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(one, sizeof(one), l->element, i);
#pragma GCC diagnostic pop
        if (i)
            buf_add_char(out, ',');
        buf_add_str(out, str_of(one));
    }
    buf_add_str(out, str_of(l->tail));
    CHECK(!out->over);
}

TEST(what_is_as_long_as_may_be_is_taken_and_no_more)
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        for (size_t beyond = 0; beyond < 2; beyond++) {
            const struct card_problem *p;
            struct stage s;
            struct buf text;

            stage_init(&s);
            buf_init(&text, 1 << 20);
            fill(&text, &limits[i], limits[i].max + beyond);
            stage_read(&s, buf_str(&text));
            if ((s.e != OK) != beyond || s.problems.n_all != beyond)
                T_FAIL("%s: %d, %zu problems", limits[i].pointer, s.e,
                       s.problems.n_all);
            p = beyond ? stage_problem(&s, str_of(limits[i].pointer)) : NULL;
            if (p && !stage_has(p->message, str_of(limits[i].words)))
                T_FAIL("%s: \"%.*s\"", limits[i].pointer, STR_ARG(p->message));
            buf_fini(&text);
            stage_fini(&s);
        }
}

/* Numbers: at both ends and one beyond each. */
static const struct {
    const char *group, *field;
    int64_t min, max;
} numbers[] = {
    {"limits", "queue", 1, AGENT_QUEUE_MAX},
    {"limits", "in_flight", 1, AGENT_IN_FLIGHT_MAX},
    {"limits", "priority", -AGENT_PRIORITY_MAX, AGENT_PRIORITY_MAX},
    {"delegation", "maxConcurrent", 0, AGENT_CONCURRENT_MAX},
    {"delegation", "maxDepth", 0, AGENT_DEPTH_MAX},
    {"pricing", "amount_micros", 0, AGENT_PRICE_MAX},
};

static void check_number(size_t i, int64_t v, bool is_good)
{
    struct stage s;
    char text[256], pointer[64], words[128];

    stage_init(&s);
    snprintf(text, sizeof(text), CARD "\"%s\":{\"%s\":%lld}}", numbers[i].group,
             numbers[i].field, (long long)v);
    stage_read(&s, str_of(text));
    if ((s.e == OK) != is_good)
        T_FAIL("%s: %d", text, s.e);
    snprintf(pointer, sizeof(pointer), "/%s/%s", numbers[i].group,
             numbers[i].field);
    snprintf(words, sizeof(words),
             "must be a whole number from %lld to %lld, not %lld",
             (long long)numbers[i].min, (long long)numbers[i].max,
             (long long)v);
    if (!is_good)
        CHECK_STR(stage_problem(&s, str_of(pointer))->message, words);
    stage_fini(&s);
}

TEST(numbers_end_where_they_say)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        check_number(i, numbers[i].min, true);
        check_number(i, numbers[i].min - 1, false);
        check_number(i, numbers[i].max, true);
        check_number(i, numbers[i].max + 1, false);
    }
}

TEST(a_description_of_ten_thousand_words_is_too_long)
{
    struct stage s;
    struct buf text;

    stage_init(&s);
    buf_init(&text, 1 << 20);
    buf_add_str(&text, STR("{\"name\":\"a\",\"description\":\""));
    for (size_t i = 0; i < 10000; i++)
        buf_add_str(&text, STR("word "));
    buf_add_str(&text, STR("\"}"));
    stage_read(&s, buf_str(&text));
    CHECK_INT(s.e, ERR_BAD_REQUEST);
    CHECK_STR(stage_problem(&s, STR("/description"))->message,
              "may have up to 16384 bytes, not 50000");
    buf_fini(&text);
    stage_fini(&s);
}

/* Many mistakes: all are counted, and as many are reported as fit. */
TEST(a_thousand_bad_skills_are_counted_and_a_few_are_named)
{
    struct stage s;
    struct buf text;

    stage_init(&s);
    buf_init(&text, 1 << 20);
    buf_add_str(&text, STR(CARD "\"skills\":[{}"));
    for (size_t i = 1; i < 1000; i++)
        buf_add_str(&text, STR(",{}"));
    buf_add_str(&text, STR("]}"));
    stage_read(&s, buf_str(&text));
    CHECK_INT(s.e, ERR_BAD_REQUEST);
    CHECK_INT(s.problems.n, CARD_PROBLEMS_MAX);
    CHECK_INT(s.problems.n_all, 1 + 2 * AGENT_SKILLS_MAX);
    CHECK_STR(s.problems.list[0].pointer, "/skills");
    CHECK_STR(s.problems.list[0].message,
              "may have up to 256 elements, not 1000");
    buf_fini(&text);
    stage_fini(&s);
}

/* Each part within its limit, but too much together. */
static enum err big(size_t n_skills, size_t n_examples)
{
    struct stage s;
    struct buf text;
    enum err e;

    stage_init(&s);
    buf_init(&text, 32 << 20);
    buf_add_str(&text, STR(CARD "\"skills\":["));
    for (size_t i = 0; i < n_skills; i++) {
        buf_addf(&text, "%s{\"id\":\"s%zu\",\"name\":\"S\",\"examples\":[",
                 i ? "," : "", i);
        for (size_t k = 0; k < n_examples; k++)
            buf_addf(&text, "%s\"%01000zu\"", k ? "," : "", k);
        buf_add_str(&text, STR("]}"));
    }
    buf_add_str(&text, STR("]}"));
    stage_read(&s, buf_str(&text));
    e = s.e;
    if (e)
        CHECK_STR(stage_problem(&s, STR(""))->message,
                  "may have up to 1048576 bytes in all");
    buf_fini(&text);
    stage_fini(&s);
    return e;
}

TEST(the_whole_has_a_limit_too)
{
    CHECK(big(16, 64) == OK);
    CHECK(big(17, 64) == ERR_BAD_REQUEST);
}

/* A card whose stored form has exactly that many bytes: examples, and a last
 * text to fill it up. */
static void whole(struct stage *s, size_t bytes)
{
    struct buf text, kept;

    stage_init(s);
    buf_init(&text, 32 << 20);
    buf_init(&kept, 32 << 20);
    for (size_t fill = 1, round = 0; round < 2; round++) {
        buf_clear(&text);
        buf_add_str(&text, STR(CARD "\"skills\":["));
        for (size_t i = 0; i < 15; i++) {
            buf_addf(&text, "{\"id\":\"s%zu\",\"name\":\"S\",\"examples\":[",
                     i);
            for (size_t k = 0; k < SKILL_EXAMPLES_MAX; k++)
                buf_addf(&text, "%s\"%01024zu\"", k ? "," : "", k);
            buf_add_str(&text, STR("]},"));
        }
        buf_add_str(&text, STR("{\"id\":\"t\",\"name\":\"T\"}],"
                               "\"routing\":{\"system_prompt\":\""));
        for (size_t i = 0; i < fill; i++)
            buf_add_char(&text, 'x');
        buf_add_str(&text, STR("\"}}"));
        stage_read(s, buf_str(&text));
        if (round == 0) {
            CHECK(s->e == OK);
            stage_write(&s->agent, CARD_STORED, &kept);
            CHECK(kept.n < bytes);
            fill = bytes - kept.n + 1;
            CHECK(fill <= AGENT_PROMPT_MAX);
        }
    }
    buf_fini(&text);
    buf_fini(&kept);
}

TEST(the_whole_is_taken_at_its_limit_and_not_a_byte_beyond)
{
    struct stage s;
    struct buf kept;

    whole(&s, AGENT_CARD_MAX);
    CHECK(s.e == OK);
    buf_init(&kept, 32 << 20);
    stage_write(&s.agent, CARD_STORED, &kept);
    CHECK_INT(kept.n, AGENT_CARD_MAX);
    buf_fini(&kept);
    stage_fini(&s);
    whole(&s, AGENT_CARD_MAX + 1);
    CHECK_INT(s.e, ERR_BAD_REQUEST);
    CHECK_INT(s.problems.n_all, 1);
    CHECK_STR(stage_problem(&s, STR(""))->message,
              "may have up to 1048576 bytes in all");
    stage_fini(&s);
}

TEST(objects_may_be_nested_sixteen_deep)
{
    for (size_t n = 1; n <= 40; n++) {
        struct stage s;
        struct buf text;

        stage_init(&s);
        buf_init(&text, 4096);
        buf_add_str(&text, STR(CARD "\"metadata\":{\"k\":"));
        for (size_t i = 1; i < n; i++)
            buf_add_char(&text, '[');
        for (size_t i = 1; i < n; i++)
            buf_add_char(&text, ']');
        buf_add_str(&text, n == 1 ? STR("1}}") : STR("}}"));
        stage_read(&s, buf_str(&text));
        CHECK((s.e == OK) == (n <= AGENT_OBJECT_DEPTH));
        if (s.e)
            CHECK_STR(stage_problem(&s, STR("/metadata"))->message,
                      "may be nested 16 deep at most");
        buf_fini(&text);
        stage_fini(&s);
    }
}

/* A key too long for a pointer: its object is named instead. */
TEST(a_field_with_an_endless_name_is_told_by_its_object)
{
    struct stage s;
    struct buf text;

    stage_init(&s);
    buf_init(&text, 1 << 20);
    buf_add_str(&text, STR(CARD "\"limits\":{\""));
    for (size_t i = 0; i < 100000; i++)
        buf_add_char(&text, '~');
    buf_add_str(&text, STR("\":1}}"));
    stage_read(&s, buf_str(&text));
    CHECK_INT(s.e, ERR_BAD_REQUEST);
    CHECK_STR(stage_problem(&s, STR("/limits"))->message,
              "has a field whose name has 100000 bytes; limits has none like "
              "that");
    buf_fini(&text);
    stage_fini(&s);
}

/* Memory. */

static const struct str crowded =
    STR("{\"name\":\"engineer\",\"description\":\"d\",\"title\":\"t\","
        "\"provider\":{\"organization\":\"a\"},\"metadata\":{\"x\":[1]},"
        "\"authentication\":{\"schemes\":[\"b\"],\"credentials\":\"c\"},"
        "\"skills\":[{\"id\":\"s\",\"name\":\"S\",\"tags\":[\"t\"],"
        "\"examples\":[\"e\"]}],\"routing\":{\"keywords\":[\"k\"]},"
        "\"restart\":{\"command\":[\"r\"]},\"creator_id\":\"c\"}");
static const struct str wrong =
    STR("{\"name\":5,\"zebra\":1,\"skills\":[{},{\"id\":\"a b\"}]}");

/* Read with an arena of that size. */
static enum err read_within(struct str text, size_t cap)
{
    struct card_opts opts = {.rights = CARD_MAY_ALL};
    struct card_problems problems;
    struct agent agent;
    struct arena out;
    struct stage s;
    enum err e;

    stage_init(&s);
    arena_init(&out, cap);
    e = card_read(&out, stage_parse(&s, text), &opts, &agent, &problems);
    arena_fini(&out);
    stage_fini(&s);
    return e;
}

TEST(reading_survives_an_arena_of_any_size)
{
    size_t cap = 0;

    while (read_within(crowded, cap) == ERR_NOMEM)
        cap += 8;
    CHECK(cap > 200 && read_within(crowded, cap) == OK);
    cap = 0;
    while (read_within(wrong, cap) == ERR_NOMEM)
        cap += 8;
    CHECK(cap > 200 && read_within(wrong, cap) == ERR_BAD_REQUEST);
}

TEST(what_is_no_card_is_told_from_no_memory)
{
    static const char *const texts[] = {"", "{", "[]", "{\"name\":5}",
                                        "{\"name\":\"a\",\"name\":\"a\"}"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct agent agent;
        struct arena out;

        arena_init(&out, 1 << 20);
        CHECK_INT(card_read_stored(&out, str_of(texts[i]), &agent), ERR_SYNTAX);
        arena_fini(&out);
    }
}
