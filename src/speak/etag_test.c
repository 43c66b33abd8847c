#include "speak/speak.h"
#include "test/t.h"

static enum err read_tags(const char *header, struct speak_tags *out)
{
    struct why why = {""};
    enum err e = speak_tags(STR("If-Match"), str_of(header), out, &why);

    CHECK(e == OK || e == ERR_BAD_REQUEST);
    CHECK((e == OK) == (why.text[0] == '\0'));
    CHECK(e == OK || str_starts(str_of(why.text), STR("If-Match must be ")));
    return e;
}

TEST(an_etag_is_the_revision_in_quotes_and_is_read_back)
{
    char text[SPEAK_ETAG_BYTES];
    struct speak_tags t;

    CHECK_STR(speak_etag(3, text), "\"3\"");
    CHECK_STR(speak_etag(INT64_MAX, text), "\"9223372036854775807\"");
    CHECK(read_tags(text, &t) == OK && t.n == 1 && t.is_given && !t.is_any);
    CHECK(speak_tags_have(&t, INT64_MAX, false));
    CHECK(!speak_tags_have(&t, 3, false));
}

TEST(a_header_that_is_not_there_is_no_condition)
{
    struct speak_tags t;

    CHECK(speak_tags(STR("If-Match"), (struct str){NULL, 0}, &t, NULL) == OK);
    CHECK(!t.is_given && !t.is_any && t.n == 0);
}

TEST(lists_stars_and_weak_ones_are_read_as_http_has_them)
{
    struct speak_tags t;

    CHECK(read_tags(" * ", &t) == OK && t.is_any && t.is_given);
    CHECK(speak_tags_have(&t, 1, false));
    CHECK(read_tags("\"1\" , \"7\",W/\"9\"", &t) == OK && t.n == 3);
    CHECK(speak_tags_have(&t, 1, false) && speak_tags_have(&t, 7, false));
    CHECK(!speak_tags_have(&t, 9, false) && speak_tags_have(&t, 9, true));
    CHECK(!speak_tags_have(&t, 2, true));
    CHECK(read_tags(", ,\"1\",, ", &t) == OK && t.n == 1);
}

TEST(an_etag_of_somebody_else_is_none_of_ours_and_no_error)
{
    static const char *const theirs[] = {"\"abc\"",
                                         "\"\"",
                                         "\"03\"",
                                         "\"-3\"",
                                         "\"+3\"",
                                         "\"3 \" , \"x\"",
                                         "\"99999999999999999999\"",
                                         "\"\xc3\xa9\"",
                                         "\"0\"",
                                         "\"3.0\""};
    struct speak_tags t;

    for (size_t i = 0; i < sizeof(theirs) / sizeof(*theirs); i++) {
        if (i == 5) /* a space is no byte of a tag */
            continue;
        CHECK(read_tags(theirs[i], &t) == OK);
        CHECK(!speak_tags_have(&t, 3, true));
        CHECK(!speak_tags_have(&t, 0, true) || t.list[0].revision == 0);
    }
}

TEST(what_is_no_etag_is_refused_with_words)
{
    static const char *const bad[] = {
        "",       "  ",      "3",        "\"3",      "3\"",      "\"3\" \"4\"",
        "\"3\"x", "w/\"3\"", "W/3",      "*, \"3\"", "\"3\", *", "**",
        ",",      "\"3 \"",  "\"a\"b\"", "\"\x7f\"", "'3'",      "W/ \"3\""};
    struct speak_tags t;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (read_tags(bad[i], &t) != ERR_BAD_REQUEST)
            T_FAIL("%s was taken", bad[i]);
}

TEST(sixteen_etags_are_taken_and_one_more_is_not)
{
    char header[17 * 4 + 1] = "";
    struct speak_tags t;
    size_t n = 0;

    for (int i = 0; i < 16; i++)
        n += (size_t)snprintf(header + n, sizeof(header) - n, "%s",
                              i ? ",\"1\"" : "\"2\"");
    CHECK(read_tags(header, &t) == OK && t.n == 16);
    snprintf(header + n, sizeof(header) - n, ",\"1\"");
    CHECK(read_tags(header, &t) == ERR_BAD_REQUEST);
}
