/* Conditions that are rejected on reading, evaluations that exceed a limit, and
 * data that is never read. logic_cases_test.c tests the values. */
#include "gate/rules/logic.h"

#include "base/fault.h"
#include "test/lib/logic_stage.h"
#include "test/t.h"

static void check_refused(const char *rule, size_t at, const char *words)
{
    struct logic_stage s;

    logic_stage_init(&s);
    CHECK_STR(logic_stage_run(&s, str_of(rule), STR("null")), "refused");
    CHECK_INT(s.problem.at, at);
    if (!strstr(s.problem.words, words))
        T_FAIL("%s: \"%s\" has no \"%s\"", rule, s.problem.words, words);
    logic_stage_fini(&s);
}

TEST(an_unknown_operator_is_refused_and_the_nearest_named)
{
    check_refused("{\"and\":[true, {\"=>\":[1,2]}]}", 14,
                  "did you mean \">=\"?");
    check_refused("{\"missng\":[1]}", 0, "did you mean \"missing\"?");
    check_refused("{\"VAR\":\"a\"}", 0, "did you mean \"var\"?");
    check_refused("{\"method\":[1]}", 0, "is not a JsonLogic operator");
    check_refused("{\"sum_of_everything\":[1]}", 0, "jsonlogic.com/operations");
    check_refused("{\"\":[1]}", 0, "is not a JsonLogic operator");
    check_refused("{\"a\\u001b[31m\":[1]}", 0, "\"a?[31m\"");
}

TEST(an_operator_that_lacks_arguments_or_has_too_many_is_refused)
{
    check_refused("{\"==\":[1]}", 0, "\"==\" takes 2 arguments, not 1");
    check_refused("{\"==\":[1,2,3]}", 0, "not 3");
    check_refused("{\">\":[3,2,1]}", 0, "\">\" takes 2 arguments, not 3");
    check_refused("{\"<\":[1]}", 0, "\"<\" takes 2 to 3 arguments, not 1");
    check_refused("{\"!\":[]}", 0, "\"!\" takes 1 argument, not 0");
    check_refused("{\"and\":[]}", 0, "\"and\" needs at least one argument");
    check_refused("{\"*\":[]}", 0, "needs at least one");
    check_refused("{\"map\":[[1]]}", 0, "\"map\" takes 2");
    check_refused("{\"var\":[1,2,3]}", 0, "\"var\" takes 0 to 2");
    check_refused("[1,{\"in\":3}]", 3, "\"in\" takes 2 arguments, not 1");
}

TEST(an_object_is_one_operator)
{
    check_refused("{}", 0, "this is empty");
    check_refused("{\"==\":[1,1],\"!=\":[1,2]}", 0, "join them with \"and\"");
    check_refused("{\"var\":[\"a\",{\"b\":1,\"c\":2}]}", 12, "several");
}

TEST(a_condition_is_no_deeper_than_it_may_be)
{
    struct json level[LOGIC_DEPTH_MAX + 1];
    struct logic_problem p;
    struct arena a;

    arena_init(&a, 1 << 20);
    memset(level, 0, sizeof(level));
    for (size_t i = 0; i < LOGIC_DEPTH_MAX; i++) {
        level[i].type = JSON_OBJ;
        level[i].key = STR("!");
        level[i].kids.first = &level[i + 1];
        level[i].kids.n = 1;
    }
    level[LOGIC_DEPTH_MAX].key = STR("!");
    CHECK(!logic_read(&a, &level[0], &p));
    CHECK(strstr(p.words, "64 levels deep"));
    CHECK(logic_read(&a, &level[1], &p));
    arena_fini(&a);
}

TEST(a_path_has_no_more_parts_than_it_may)
{
    char rule[256] = "{\"var\":\"a", *at = rule + strlen(rule);
    struct logic_stage s;

    for (int i = 1; i < LOGIC_PATH_MAX; i++, at += 2)
        memcpy(at, ".a", 3);
    memcpy(at, "\"}", 3);
    logic_stage_init(&s);
    CHECK_STR(logic_stage_run(&s, str_of(rule), STR("{}")), "null");
    logic_stage_fini(&s);
    memcpy(at, ".a\"}", 5);
    check_refused(rule, 0, "more than 32 parts");
}

TEST(reading_needs_memory_and_says_so)
{
    struct logic_problem p;
    struct arena a, tree;
    struct json *rule;
    struct logic *l = NULL;

    arena_init(&tree, 1 << 20);
    rule =
        json_parse(&tree,
                   STR("{\"and\":[{\"in\":[{\"var\":\"a.b\"},[1,\"x\",[2]]]},"
                       "[{\"var\":\"c\"}]]}"),
                   0, NULL);
    CHECK(rule);
    for (size_t cap = 0; !l; cap += 16) {
        CHECK(cap < 1 << 16);
        arena_init(&a, cap);
        l = logic_read(&a, rule, &p);
        CHECK(l || strstr(p.words, "out of memory") ||
              strstr(p.words, "parts"));
        arena_fini(&a);
    }
    arena_fini(&tree);
}

/* A list of n numbers, as JSON. */
static struct str numbers(struct buf *b, size_t n)
{
    buf_clear(b);
    buf_add_char(b, '[');
    for (size_t i = 0; i < n; i++)
        buf_addf(b, "%s%zu", i ? "," : "", i);
    buf_add_char(b, ']');
    return buf_str(b);
}

static const char *why_failed(const char *rule, struct str data)
{
    static struct logic_stage s;

    logic_stage_init(&s);
    CHECK_STR(logic_stage_run(&s, str_of(rule), data), "failed");
    logic_stage_fini(&s);
    return s.why;
}

TEST(working_it_out_ends)
{
    struct logic_stage s;
    struct buf b;
    const char *squared = "{\"map\":[{\"var\":\"\"},{\"+\":[{\"var\":\"\"},"
                          "1]}]}";

    logic_stage_init(&s);
    buf_init(&b, 1 << 24);
    /* An element costs three steps here: itself, var and a constant. */
    CHECK(logic_stage_run(&s, str_of(squared), numbers(&b, 33000)).n > 10);
    CHECK(strstr(why_failed(squared, numbers(&b, 34000)), "too many steps"));
    CHECK(strstr(why_failed("{\"reduce\":[{\"var\":\"\"},{\"+\":[{\"reduce\":"
                            "[[1,2,3,4,5,6,7,8,9],{\"var\":\"current\"},0]},"
                            "1]},0]}",
                            numbers(&b, 20000)),
                 "too many steps"));
    buf_fini(&b);
    logic_stage_fini(&s);
}

TEST(what_it_makes_is_bounded)
{
    struct buf b;

    buf_init(&b, 1 << 24);
    numbers(&b, 100);
    CHECK(strstr(why_failed("{\"reduce\":[{\"var\":\"\"},{\"cat\":[{\"var\":"
                            "\"accumulator\"},{\"var\":\"accumulator\"},"
                            "\"x\"]},\"y\"]}",
                            buf_str(&b)),
                 "too long a text"));
    CHECK(strstr(why_failed("{\"reduce\":[{\"var\":\"\"},{\"merge\":[{\"var\":"
                            "\"accumulator\"},{\"var\":\"accumulator\"},1]},"
                            "[]]}",
                            buf_str(&b)),
                 "too many steps"));
    CHECK(strstr(why_failed("{\"cat\":{\"reduce\":[{\"var\":\"\"},[{\"var\":"
                            "\"accumulator\"}],1]}}",
                            buf_str(&b)),
                 "too deep"));
    CHECK(strstr(why_failed("{\"var\":{\"cat\":{\"map\":[{\"var\":\"\"},"
                            "\"a.\"]}}}",
                            buf_str(&b)),
                 "too many parts"));
    buf_fini(&b);
}

TEST(scratch_that_is_full_is_a_failure_and_never_an_answer)
{
    static const char text[] =
        "{\"!\":{\"in\":[{\"cat\":[{\"var\":\"a\"},1.5]},{\"merge\":[\"a1.5\","
        "{\"var\":\"b\"}]}]}}";
    struct arena tree, scratch;
    struct logic *l;
    struct logic_data d;
    enum logic_answer answer = LOGIC_FAILED;
    size_t cap = 0;

    arena_init(&tree, 1 << 20);
    l = logic_read(&tree, json_parse(&tree, str_of(text), 0, NULL), NULL);
    d = logic_data_of(
        json_parse(&tree, STR("{\"a\":\"a\",\"b\":[1]}"), 0, NULL));
    CHECK(l);
    for (; answer == LOGIC_FAILED; cap += 16) {
        const char *why = NULL;

        CHECK(cap < 1 << 16);
        arena_init(&scratch, cap);
        answer = logic_holds_within(l, &d, &scratch, NULL, &why);
        CHECK(answer == LOGIC_FAILED ? why && strstr(why, "memory") : !why);
        arena_fini(&scratch);
    }
    CHECK_INT(answer, LOGIC_NO);
    CHECK(cap > 64);
    arena_fini(&tree);
}

TEST(memory_that_fails_is_a_failure)
{
    struct logic_stage s;

    for (long nth = 1;; nth++) {
        struct str got;

        logic_stage_init(&s);
        fault_arm(nth);
        got = logic_stage_run(&s,
                              STR("{\"cat\":[1.5,[1,2],{\"substr\":[7.25,1]},"
                                  "{\"var\":\"a\"}]}"),
                              STR("{\"a\":3}"));
        if (fault_fired())
            CHECK(str_eq(got, STR("refused")) || str_eq(got, STR("failed")) ||
                  str_eq(got, STR("over")) || s.out.over || got.n == 0);
        else
            CHECK_STR(got, "\"1.51,2.253\"");
        logic_stage_fini(&s);
        if (!fault_fired())
            break;
    }
    fault_arm(0);
}

/* Trees are built on first use. */
struct asked {
    char names[64];
    struct json five;
};

static const struct json *root(void *ctx, struct str first)
{
    struct asked *a = ctx;
    size_t n = strlen(a->names);

    snprintf(a->names + n, sizeof(a->names) - n, "%.*s;", STR_ARG(first));
    return str_eq(first, STR("five")) ? &a->five : NULL;
}

static enum logic_answer ask(struct asked *a, const char *rule)
{
    struct logic_data d = {root, a};
    struct arena arena;
    struct logic *l;
    enum logic_answer answer;

    *a = (struct asked){.five = {.type = JSON_INT, .i = 5}};
    arena_init(&arena, 1 << 20);
    l = logic_read(&arena, json_parse(&arena, str_of(rule), 0, NULL), NULL);
    CHECK(l);
    answer = logic_holds_within(l, &d, &arena, NULL, NULL);
    arena_fini(&arena);
    return answer;
}

TEST(only_what_is_needed_is_asked_for)
{
    struct asked a;

    CHECK_INT(ask(&a, "{\"or\":[{\"==\":[{\"var\":\"five\"},5]},"
                      "{\"var\":\"other.x\"}]}"),
              LOGIC_YES);
    CHECK(strcmp(a.names, "five;") == 0);
    CHECK_INT(ask(&a, "{\"and\":[{\"var\":\"four.x.y\"},{\"var\":\"five\"}]}"),
              LOGIC_NO);
    CHECK(strcmp(a.names, "four;") == 0);
    CHECK_INT(ask(&a, "{\"if\":[{\"var\":\"five\"},{\"var\":\"a\"},"
                      "{\"var\":\"b\"}]}"),
              LOGIC_NO);
    CHECK(strcmp(a.names, "five;a;") == 0);
    CHECK_INT(ask(&a, "{\"var\":\"\"}"), LOGIC_NO);
    CHECK(strcmp(a.names, ";") == 0);
}

static void write_mention(void *ctx, const struct str *path, size_t n)
{
    struct buf *b = ctx;

    if (n == 0)
        buf_add_char(b, '*');
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_add_char(b, '/');
        buf_add_str(b, path[i]);
    }
    buf_add_char(b, ' ');
}

static void check_mentions(const char *rule, const char *paths)
{
    struct arena a;
    struct logic *l;
    struct buf b;

    arena_init(&a, 1 << 20);
    buf_init(&b, 1 << 16);
    l = logic_read(&a, json_parse(&a, str_of(rule), 0, NULL), NULL);
    CHECK(l);
    logic_mentions(l, write_mention, &b);
    CHECK_STR(buf_str(&b), paths);
    buf_fini(&b);
    arena_fini(&a);
}

TEST(a_rule_tells_what_it_looks_at)
{
    check_mentions("{\"==\":[{\"var\":\"agents.Z.state\"},\"DEAD\"]}",
                   "agents/Z/state ");
    check_mentions("{\"and\":[{\"var\":[\"a\",{\"var\":\"b.c\"}]},[{\"var\":"
                   "\"d\"}]]}",
                   "a b/c d ");
    check_mentions("{\"some\":[{\"var\":\"history\"},{\"==\":[{\"var\":"
                   "\"type\"},\"X\"]}]}",
                   "history ");
    check_mentions("{\"reduce\":[{\"var\":\"a\"},{\"var\":\"current\"},"
                   "{\"var\":\"b\"}]}",
                   "a b ");
    check_mentions("{\"var\":{\"cat\":[\"agents.\",{\"var\":\"message.to\"}]}}",
                   "* message/to ");
    check_mentions("{\"var\":\"\"}", "* ");
    check_mentions("{\"missing\":[\"a.b\",\"c\"]}", "a/b c ");
    check_mentions("{\"missing_some\":[1,[\"a.b\",\"c\"]]}", "a/b c ");
    check_mentions("{\"missing\":{\"var\":\"keys\"}}", "* keys ");
    check_mentions("5", "");
}

TEST(the_same_data_gives_the_same_answer)
{
    struct logic_stage s;
    char first[256];

    logic_stage_init(&s);
    for (int i = 0; i < 3; i++) {
        struct str got = logic_stage_run(
            &s,
            STR("{\"map\":[{\"var\":\"x\"},{\"cat\":[{\"/\":[{\"var\":\"\"},"
                "3]},\";\"]}]}"),
            STR("{\"x\":[1,2,1e300,-7]}"));

        CHECK(got.n < sizeof(first));
        if (i == 0)
            memcpy(first, got.p, got.n + 0);
        CHECK(memcmp(first, got.p, got.n) == 0);
    }
    logic_stage_fini(&s);
}
