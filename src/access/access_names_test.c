#include "access/access.h"
#include "test/t.h"

static const struct str hosts[] = {STR("box.example"), STR("Api.Example:8443"),
                                   STR("dot.example.")};
static const struct str origins[] = {STR("https://app.example"),
                                     STR("http://dev.example:3000")};
static const struct access_names names = {hosts, origins, 3, 2};

static enum err check(const char *host, const char *origin)
{
    struct why why;

    return access_names_check(&names, str_of(host), str_of(origin), &why);
}

TEST(addresses_and_localhost_are_always_ours)
{
    static const char *const good[] = {
        "127.0.0.1:8787",  "127.0.0.1",    "[::1]:80",
        "[::1]",           "localhost",    "LOCALHOST:1",
        "localhost.",      "localhost.:9", "192.168.1.7:8787",
        "[fe80::1]:8787",  "0.0.0.0",      "[::ffff:127.0.0.1]:80",
        "localhost:65535",
    };

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (check(good[i], NULL) != OK)
            T_FAIL("%s is refused", good[i]);
}

TEST(names_must_be_listed_and_ports_only_count_where_the_list_has_one)
{
    CHECK(check("box.example", NULL) == OK);
    CHECK(check("BOX.example:1234", NULL) == OK);
    CHECK(check("box.example.:80", NULL) == OK);
    CHECK(check("dot.example", NULL) == OK);
    CHECK(check("api.example:8443", NULL) == OK);
    CHECK(check("api.example.:8443", NULL) == OK);
    CHECK(check("api.example", NULL) == ERR_FOREIGN_HOST);
    CHECK(check("api.example:8444", NULL) == ERR_FOREIGN_HOST);
    CHECK(check("evil.example", NULL) == ERR_FOREIGN_HOST);
}

TEST(whatever_only_looks_like_ours_is_foreign)
{
    static const char *const bad[] = {
        "",
        ".",
        "localhost..",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "xbox.example",
        "box.example.evil",
        "sub.box.example",
        "box.example:",
        "box.example:x",
        "box.example:-1",
        "box.example:65536",
        "box.example:080808",
        "box.example:80:80",
        "localhost:1:2",
        "::1",
        "[::1",
        "[::1]x",
        "[::1]80",
        "[localhost]",
        "[127.0.0.1]",
        "[]",
        ":80",
        "user@localhost",
        "localhost/",
        "local host",
        "0x7f.0.0.1",
        "2130706433",
        "127.1",
        "[fe80::1%eth0]",
        "[box.example]",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (check(bad[i], NULL) != ERR_FOREIGN_HOST)
            T_FAIL("\"%s\" is taken", bad[i]);
    CHECK(access_names_check(&names, (struct str){"127.0.0.1\0x", 11}, STR(""),
                             NULL) == ERR_FOREIGN_HOST);
}

TEST(a_page_of_the_same_host_may_call)
{
    CHECK(check("localhost:8787", "http://localhost:8787") == OK);
    CHECK(check("localhost:8787", "https://LOCALHOST:8787") == OK);
    CHECK(check("127.0.0.1", "http://127.0.0.1") == OK);
    CHECK(check("[::1]:80", "http://[::1]:80") == OK);
    CHECK(check("box.example.", "https://box.example") == OK);
    CHECK(check("box.example", NULL) == OK);
}

TEST(a_listed_origin_may_call)
{
    CHECK(check("localhost:1", "https://app.example") == OK);
    CHECK(check("localhost:1", "https://APP.example.") == OK);
    CHECK(check("localhost:1", "http://dev.example:3000") == OK);
    CHECK(check("evil.example", "https://app.example") == ERR_FOREIGN_HOST);
}

TEST(any_other_page_may_not)
{
    static const char *const bad[] = {
        "", /* there, and empty */
        "null",
        "http://localhost",
        "http://localhost:8788",
        "http://127.0.0.1:8787",
        "ftp://localhost:8787",
        "file://",
        "localhost:8787",
        "//localhost:8787",
        "http:/localhost:8787",
        "http://localhost:8787/",
        "http://localhost:8787.evil.example",
        "http://evil.example",
        "http://localhost:8787 http://localhost:8787",
        "http://app.example",
        "https://app.example:443",
        "https://sub.app.example",
        "http://dev.example",
        "http://user@localhost:8787",
        "://localhost:8787",
        "http://",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (check("localhost:8787", bad[i]) != ERR_FOREIGN_ORIGIN)
            T_FAIL("\"%s\" is taken", bad[i]);
}

TEST(only_what_is_on_the_list_is_listed)
{
    CHECK(access_origin_is_listed(&names, STR("https://app.example")));
    CHECK(access_origin_is_listed(&names, STR("http://dev.example:3000")));
    CHECK(!access_origin_is_listed(&names, STR("http://localhost:8787")));
    CHECK(!access_origin_is_listed(&names, STR("http://app.example")));
    CHECK(!access_origin_is_listed(&names, STR("null")));
    CHECK(!access_origin_is_listed(&names, STR("")));
    CHECK(!access_origin_is_listed(&names, (struct str){NULL, 0}));
}

TEST(an_origin_of_null_cannot_be_listed)
{
    static const struct str null = STR("null");
    struct access_names all = {NULL, &null, 0, 1};

    CHECK(access_names_check(&all, STR("localhost"), null, NULL) ==
          ERR_FOREIGN_ORIGIN);
}

TEST(refusals_say_what_to_do_and_repeat_nothing)
{
    struct why why;

    CHECK(access_names_check(&names, STR("evil.example"), STR(""), &why) ==
          ERR_FOREIGN_HOST);
    CHECK(strstr(why.text, "http.allowedHosts") && !strstr(why.text, "evil"));
    CHECK(access_names_check(&names, STR("localhost"),
                             STR("http://evil.example"),
                             &why) == ERR_FOREIGN_ORIGIN);
    CHECK(strstr(why.text, "http.allowedOrigins") && !strstr(why.text, "evil"));
    CHECK(access_names_check(&names, STR(""), STR(""), &why) ==
          ERR_FOREIGN_HOST);
    CHECK(strstr(why.text, "Host header"));
}
