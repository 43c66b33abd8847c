#include "model/profile.h"

#include "test/t.h"

static void check_words(const char *name, const char *words)
{
    struct buf b;

    buf_init(&b, 1024);
    profile_add_words(&b, str_of(name));
    CHECK_STR(buf_str(&b), words);
    buf_fini(&b);
}

static void check_profile(const char *name, const char *description,
                          const char *text)
{
    struct buf b;

    buf_init(&b, 1024);
    profile_add(&b, str_of(name), str_of(description));
    CHECK_STR(buf_str(&b), text);
    buf_fini(&b);
}

TEST(a_name_is_taken_apart_into_its_words)
{
    check_words("echo", "echo");
    check_words("security-reviewer", "security reviewer");
    check_words("Alarm_1.GetAlarms", "Get Alarms");
    check_words("a.b.", "a b");
    check_words("getHTTPServer2Go", "get HTTP Server2 Go");
    check_words("RSSFeeds", "RSS Feeds");
    check_words("ABC", "ABC");
    check_words("__a..b--", "b");
    check_words("...", "");
    check_words("", "");
}

TEST(letters_outside_ascii_stay_as_they_are)
{
    check_words("gr\u00fc\u00dfe_an", "gr\u00fc\u00dfe an");
}

TEST(the_description_follows_the_words)
{
    check_profile("GetAlarms", " Lists the alarms. ",
                  "Get Alarms: Lists the alarms.");
    check_profile("echo", "", "echo");
    check_profile("...", "Dots.", "Dots.");
}

TEST(a_description_that_only_repeats_the_name_is_left_out)
{
    check_profile("account_blocked", "Account Blocked", "account blocked");
    check_profile("account_blocked", "account blocked!",
                  "account blocked: account blocked!");
}

TEST(a_second_profile_in_one_buf_is_judged_by_itself)
{
    struct buf b;

    buf_init(&b, 1024);
    profile_add(&b, STR("a_b"), STR("c"));
    profile_add(&b, STR("d_e"), STR("d e"));
    CHECK_STR(buf_str(&b), "a b: cd e");
    buf_fini(&b);
}
