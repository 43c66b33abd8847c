#include "cli/span.h"

#include "test/t.h"

static int64_t read_ms(const char *text)
{
    int64_t ms = -1;

    CHECK(span_read(str_of(text), &ms) == OK);
    return ms;
}

TEST(each_unit_is_read)
{
    CHECK_INT(read_ms("1s"), 1000);
    CHECK_INT(read_ms("90m"), 90 * 60 * 1000);
    CHECK_INT(read_ms("12h"), 12 * 3600 * 1000);
    CHECK_INT(read_ms("30d"), 30LL * 24 * 3600 * 1000);
    CHECK_INT(read_ms("2w"), 14LL * 24 * 3600 * 1000);
}

TEST(four_digits_are_the_limit)
{
    int64_t ms = 7;

    CHECK_INT(read_ms("9999w"), 9999LL * 7 * 24 * 3600 * 1000);
    CHECK(span_read(STR("10000s"), &ms) == ERR_SYNTAX);
    CHECK_INT(ms, 7);
}

TEST(what_is_no_span_is_refused_and_changes_nothing)
{
    static const char *const bad[] = {"",    "d",    "30",  "0d",  "-1d",
                                      "+1d", "1.5h", "1 d", "d30", "30D",
                                      "1y",  "1ms",  " 1d", "1d "};
    int64_t ms = 7;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (span_read(str_of(bad[i]), &ms) != ERR_SYNTAX || ms != 7)
            T_FAIL("\"%s\" was taken", bad[i]);
}

TEST(the_largest_whole_unit_is_written)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {-5, "0s"},
        {0, "0s"},
        {999, "0s"},
        {1000, "1s"},
        {59999, "59s"},
        {60000, "1m"},
        {3599999, "59m"},
        {3600000, "1h"},
        {86399999, "23h"},
        {86400000, "1d"},
        {604800000, "7d"},
        {2592000000, "30d"},
        {INT64_MAX, "106751991167d"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct span_text t = span_write(rows[i].ms);

        CHECK_STR(str_of(t.text), rows[i].text);
    }
}

TEST(what_is_left_is_rounded_up)
{
    int64_t day = 24 * 3600 * 1000LL;

    CHECK_STR(str_of(span_left(7 * day - 1).text), "7d");
    CHECK_STR(str_of(span_left(7 * day).text), "7d");
    CHECK_STR(str_of(span_left(day - 1).text), "24h");
    CHECK_STR(str_of(span_left(1001).text), "2s");
    CHECK_STR(str_of(span_left(0).text), "0s");
}
