/* Trees as they are drawn, line for line. */
#include "cli/tree_draw.h"

#include <stdio.h>

#include "cli/grid.h"
#include "test/t.h"

static struct buf out;
static struct arena arena;

#define NODE(agent, status, more, kids)                         \
    "{\"task_id\":\"task_" agent "\",\"agent\":\"" agent        \
    "\",\"status\":\"" status "\",\"turn\":1,\"waited_ms\":12," \
    "\"worked_ms\":4200,\"duration_ms\":4212," more "\"children\":[" kids "]}"
#define ANSWER(more, tree) \
    "{\"task_id\":\"task_b\",\"is_whole\":true," more "\"tree\":" tree "}"

static void draw(const char *answer, unsigned width, bool unicode, bool colour)
{
    struct tree_paper paper = {
        .width = width, .unicode = unicode, .colour = colour};
    struct json *v;

    buf_fini(&out);
    arena_fini(&arena);
    buf_init(&out, 1 << 20);
    arena_init(&arena, 1 << 24);
    v = json_parse(&arena, str_of(answer), 0, NULL);
    CHECK(v);
    tree_draw(&out, v, &paper);
    CHECK(!out.over);
}

static const char family[] = ANSWER(
    "\"tasks\":4,\"open\":0,",
    NODE("a", "completed", "",
         NODE("b", "completed", "", NODE("c", "cancelled", "", "")) "," NODE(
             "d", "failed",
             "\"skill\":\"legal\",\"error\":{\"code\":\"timeout\",\"message\":"
             "\"no answer\"},",
             "")));

TEST(branches_in_box_characters)
{
    draw(family, 0, true, false);
    CHECK_STR(buf_str(&out), "AGENT        STATUS     WAITED  WORKED  TASK\n"
                             "a            completed    12ms    4.2s  task_a\n"
                             "├─ b         completed    12ms    4.2s  task_b\n"
                             "│  └─ c      cancelled    12ms    4.2s  task_c\n"
                             "└─ d, legal  failed       12ms    4.2s  task_d\n"
                             "         timeout: no answer\n"
                             "\n"
                             "4 tasks, none open, 4.2s\n");
}

TEST(branches_in_ascii)
{
    draw(family, 0, false, false);
    CHECK(memmem(out.p, out.n, "\n|- b ", 6));
    CHECK(memmem(out.p, out.n, "\n|  `- c ", 9));
    CHECK(memmem(out.p, out.n, "\n`- d, legal ", 13));
    for (size_t i = 0; i < out.n; i++)
        CHECK((unsigned char)out.p[i] < 128);
}

TEST(costs_have_columns_where_there_are_any)
{
    draw(ANSWER("\"tasks\":2,\"open\":1,\"price_micros\":170000,"
                "\"captured_micros\":120000,",
                NODE("a", "completed",
                     "\"price_micros\":120000,\"captured_micros\":120000,"
                     "\"branch\":{\"captured_micros\":120000},",
                     NODE("b", "working", "\"price_micros\":50000,", ""))),
         0, true, false);
    CHECK_STR(buf_str(&out),
              "AGENT  STATUS     WAITED  WORKED    COST  BRANCH  TASK\n"
              "a      completed    12ms    4.2s    0.12    0.12  task_a\n"
              "└─ b   working      12ms    4.2s  (0.05)       -  task_b\n"
              "\n"
              "2 tasks, 1 open, 4.2s so far, paid 0.12 (0.05 reserved)\n");
}

static void check_width(unsigned width)
{
    struct str rest = buf_str(&out);

    while (rest.n) {
        struct str line = str_cut(&rest, '\n');

        if (text_columns(line) > width)
            T_FAIL("wider than %u: %.*s", width, STR_ARG(line));
    }
}

TEST(no_line_is_wider_than_the_terminal)
{
    static const char answer[] = ANSWER(
        "\"tasks\":2,\"open\":0,",
        NODE("a-name-that-is-quite-long-and-goes-on-for-a-while", "completed",
             "",
             NODE("b", "failed",
                  "\"error\":{\"code\":\"x\",\"message\":\"words and words and "
                  "words and words and words and words and words\"},",
                  "")));

    for (unsigned width = 28; width <= 120; width++) {
        draw(answer, width, true, false);
        check_width(width);
    }
    draw(answer, 60, true, false);
    CHECK(memmem(out.p, out.n, "a-name-that-is", 14));
    CHECK(!memmem(out.p, out.n, "TASK", 4));
}

TEST(what_a_server_says_steers_no_terminal)
{
    draw(ANSWER("\"tasks\":1,\"open\":0,",
                "{\"task_id\":\"t\\u001b[2J\",\"agent\":\"a\\u001b]0;x\\u0007"
                "\\nb\",\"status\":\"failed\",\"error\":{\"code\":"
                "\"\\u001b[31m\",\"message\":\"a\\nb\"},\"children\":[]}"),
         0, true, false);
    CHECK(!memchr(out.p, 27, out.n) && !memchr(out.p, 7, out.n));
}

TEST(colours_where_they_are_wanted)
{
    draw(family, 0, true, true);
    CHECK(memmem(out.p, out.n, "\033[32mcompleted\033[0m", 18));
    CHECK(memmem(out.p, out.n, "\033[31mfailed\033[0m", 15));
    CHECK(memmem(out.p, out.n, "\033[1m├─ b\033[0m", 16));
    draw(family, 0, true, false);
    CHECK(!memchr(out.p, 27, out.n));
}

TEST(times_in_the_unit_that_says_most)
{
    static const struct {
        const char *ms, *text;
    } times[] = {
        {"0", " 0ms"},          {"999", " 999ms"},    {"1000", " 1.0s"},
        {"59999", " 59.9s"},    {"60000", " 1m 00s"}, {"3599999", " 59m 59s"},
        {"3600000", " 1h 00m"}, {"null", " -"},       {"7384000", " 2h 03m"}};

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        char text[256];

        snprintf(text, sizeof(text),
                 "{\"tree\":{\"agent\":\"a\",\"status\":\"queued\","
                 "\"worked_ms\":%s}}",
                 times[i].ms);
        draw(text, 0, true, false);
        if (!memmem(out.p, out.n, times[i].text, strlen(times[i].text)))
            T_FAIL("%s: %.*s", times[i].ms, (int)out.n, out.p);
    }
}

TEST(an_answer_without_a_tree_is_drawn_as_nothing)
{
    draw("{}", 80, true, true);
    CHECK(out.n == 0);
    draw("{\"tree\":3}", 80, true, true);
    CHECK(out.n == 0);
    draw("{\"tree\":{}}", 80, true, true);
    draw("{\"tree\":{\"children\":[3,null,{}]}}", 80, false, false);
}
