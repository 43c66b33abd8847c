#include "base/url.h"
#include "test/t.h"

/* Accepted URLs and their parts. */
static const struct {
    const char *text, *host, *target;
    uint16_t port;
    bool is_tls, is_ws, is_v6;
} good[] = {
    {"http://example.org", "example.org", "/", 80, .is_tls = false},
    {"http://example.org/", "example.org", "/", 80, .is_tls = false},
    {"https://example.org/", "example.org", "/", 443, .is_tls = true},
    {"ws://example.org/", "example.org", "/", 80, .is_ws = true},
    {"wss://example.org/", "example.org", "/", 443, .is_tls = true,
     .is_ws = true},
    {"HTTP://Example.ORG/Path", "Example.ORG", "/Path", 80, .is_tls = false},
    {"hTTpS://x/", "x", "/", 443, .is_tls = true},
    {"WSS://x/", "x", "/", 443, .is_tls = true, .is_ws = true},
    {"http://x:1/", "x", "/", 1, .is_tls = false},
    {"http://x:80", "x", "/", 80, .is_tls = false},
    {"http://x:443/", "x", "/", 443, .is_tls = false},
    {"https://x:80/", "x", "/", 80, .is_tls = true},
    {"http://x:65535/", "x", "/", 65535, .is_tls = false},
    {"http://x/a/b/c", "x", "/a/b/c", 80, .is_tls = false},
    {"http://x/a?b=c&d=e", "x", "/a?b=c&d=e", 80, .is_tls = false},
    {"http://x/?", "x", "/?", 80, .is_tls = false},
    {"http://x/?q?r/s", "x", "/?q?r/s", 80, .is_tls = false},
    {"http://x/#frag", "x", "/", 80, .is_tls = false},
    {"http://x#frag", "x", "/", 80, .is_tls = false},
    {"http://x:8080#frag", "x", "/", 8080, .is_tls = false},
    {"http://x/a?b#c#d", "x", "/a?b", 80, .is_tls = false},
    {"http://x/a#b?c", "x", "/a", 80, .is_tls = false},
    {"http://x//", "x", "//", 80, .is_tls = false},
    {"http://x//y", "x", "//y", 80, .is_tls = false},
    {"http://x/./../a", "x", "/./../a", 80, .is_tls = false},
    {"http://x/%20%C3%A4%2f", "x", "/%20%C3%A4%2f", 80, .is_tls = false},
    {"http://x/a;b,c=d!e$f&g'h(i)j*k+l:m@n~o", "x",
     "/a;b,c=d!e$f&g'h(i)j*k+l:m@n~o", 80, .is_tls = false},
    {"http://x/?filter[name]=y", "x", "/?filter[name]=y", 80, .is_tls = false},
    {"http://x/@user", "x", "/@user", 80, .is_tls = false},
    {"http://x/http://y/", "x", "/http://y/", 80, .is_tls = false},
    {"http://a.b.c.d.example/", "a.b.c.d.example", "/", 80, .is_tls = false},
    {"http://example.org./", "example.org.", "/", 80, .is_tls = false},
    {"http://localhost/", "localhost", "/", 80, .is_tls = false},
    {"http://localhost./", "localhost.", "/", 80, .is_tls = false},
    {"http://my_service:3000/", "my_service", "/", 3000, .is_tls = false},
    {"http://a-b.c--d/", "a-b.c--d", "/", 80, .is_tls = false},
    {"http://xn--bcher-kva.example/", "xn--bcher-kva.example", "/", 80,
     .is_tls = false},
    {"http://1.example/", "1.example", "/", 80, .is_tls = false},
    {"http://127.0.0.1.example/", "127.0.0.1.example", "/", 80,
     .is_tls = false},
    {"http://0x7f.example/", "0x7f.example", "/", 80, .is_tls = false},
    {"http://a1/", "a1", "/", 80, .is_tls = false},
    {"http://1a/", "1a", "/", 80, .is_tls = false},
    {"http://0xfg/", "0xfg", "/", 80, .is_tls = false},
    {"http://192.0.2.1/", "192.0.2.1", "/", 80, .is_tls = false},
    {"http://127.0.0.1:8080/x", "127.0.0.1", "/x", 8080, .is_tls = false},
    {"http://0.0.0.0/", "0.0.0.0", "/", 80, .is_tls = false},
    {"http://255.255.255.255/", "255.255.255.255", "/", 80, .is_tls = false},
    {"http://[::1]/", "::1", "/", 80, .is_v6 = true},
    {"http://[::1]", "::1", "/", 80, .is_v6 = true},
    {"https://[2001:DB8::1]:8443/x", "2001:DB8::1", "/x", 8443, .is_tls = true,
     .is_v6 = true},
    {"ws://[::ffff:127.0.0.1]:1", "::ffff:127.0.0.1", "/", 1, .is_ws = true,
     .is_v6 = true},
    {"http://[::]#x", "::", "/", 80, .is_v6 = true},
    {"http://[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]/",
     "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "/", 80, .is_v6 = true},
};

TEST(good_urls_are_taken_apart)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct why why = {""};
        struct url u;

        if (url_read(str_of(good[i].text), &u, &why))
            T_FAIL("%s: %s", good[i].text, why.text);
        CHECK_STR(u.host, good[i].host);
        CHECK_STR(u.target, good[i].target);
        CHECK_INT(u.port, good[i].port);
        CHECK(u.is_tls == good[i].is_tls && u.is_ws == good[i].is_ws);
        CHECK(u.is_v6 == good[i].is_v6);
        CHECK(u.scheme.p == good[i].text);
        CHECK(u.authority.p == u.scheme.p + u.scheme.n + 3);
        CHECK(u.host.p == u.authority.p + u.is_v6);
    }
}

#define NUMBER   "looks like an address but is not one"
#define BRACKETS "the brackets contain no IPv6 address"
#define PORT     "the port of the URL must be a number from 1 to 65535"
#define SCHEME   "does not begin with http://, https://, ws:// or wss://"
#define DOTS     "between the dots of the host"
#define USER     "no user or password before its host"

static const struct {
    const char *text, *words;
} bad[] = {
    {"", SCHEME},
    {"x", SCHEME},
    {"http", SCHEME},
    {"http:", SCHEME},
    {"http:/", SCHEME},
    {"http:/x/", SCHEME},
    {"http:x", SCHEME},
    {"://x/", SCHEME},
    {"//x/", SCHEME},
    {"/x", SCHEME},
    {"example.org/", SCHEME},
    {"example.org:80/", SCHEME},
    {"ftp://x/", SCHEME},
    {"file:///etc/passwd", SCHEME},
    {"gopher://x/", SCHEME},
    {"httpx://x/", SCHEME},
    {"https:///x", "the URL has no host"},
    {"javascript:alert(1)", SCHEME},
    {"data:text/plain,x", SCHEME},
    {"unix:/run/x", SCHEME},
    {"http+unix://x/", SCHEME},
    {"http://", "the URL has no host"},
    {"http:///", "the URL has no host"},
    {"http:////x", "the URL has no host"},
    {"http://:80/", "the URL has no host"},
    {"http://?x", "the URL has no host"},
    {"http://#x", "the URL has no host"},

    {"http://x y/", "byte 9 of the URL is a space; write it as %20"},
    {"http://x/a b", "byte 11 of the URL is a space"},
    {" http://x/", "byte 1 of the URL is a space"},
    {"http://x/ ", "is a space"},
    {"http://x/#a b", "is a space"},
    {"http://x/\t", "a control character; write it as %09"},
    {"http://x/\r\nHost: y", "a control character; write it as %0D"},
    {"http://x\n/", "a control character"},
    {"http://x/\x7f", "a control character; write it as %7F"},
    {"http://b\xc3\xbc"
     "cher.example/",
     "Punycode (xn--...)"},
    {"http://x/\xc3\xa4", "not ASCII; write it as %C3"},
    {"http://x/\xff", "not ASCII; write it as %FF"},
    {"http://\xef\xbc\x91"
     "27.0.0.1/",
     "Punycode"},
    {"http://127\xe3\x80\x82"
     "0.0.1/",
     "Punycode"},
    {"http:\\\\x\\", "is \"\\\"; write it as %5C"},
    {"http://x\\@y/", "is \"\\\"; write it as %5C"},
    {"http://x/a\\b", "is \"\\\""},
    {"http://x/{id}", "is \"{\"; write it as %7B"},
    {"http://x/<a>", "is \"<\"; write it as %3C"},
    {"http://x/\"a\"", "is \"\"\"; write it as %22"},
    {"http://x/a|b", "is \"|\""},
    {"http://x/a^b", "is \"^\""},
    {"http://x/`", "is \"`\""},
    {"http://x/%", "\"%\" at byte 10 of the URL is not followed by two hex"},
    {"http://x/%4", "is not followed by two hex digits; write it as %25"},
    {"http://x/%zz", "is not followed by two hex"},
    {"http://x/%4g", "is not followed by two hex"},
    {"http://x/?a=100%", "is not followed by two hex"},

    {"http://user@x/", USER},
    {"http://user:secret@x/", USER},
    {"http://:@x/", USER},
    {"http://@x/", USER},
    {"http://x@y@z/", USER},
    {"http://127.0.0.1@example.org/", USER},
    {"http://example.org:80@127.0.0.1/", USER},
    {"http://[::1]@x/", USER},
    {"http://x?@y/", "before the \"?\" of a URL there must be a \"/\""},
    {"http://x?y", "before the \"?\" of a URL there must be a \"/\""},
    {"http://x:80?y", "before the \"?\" of a URL there must be a \"/\""},

    {"http://x:/", PORT},
    {"http://x:", PORT},
    {"http://x:0/", PORT},
    {"http://x:00080/", PORT},
    {"http://x:080/", PORT},
    {"http://x:65536/", PORT},
    {"http://x:99999/", PORT},
    {"http://x:100000/", PORT},
    {"http://x:-1/", PORT},
    {"http://x:+80/", PORT},
    {"http://x:80a/", PORT},
    {"http://x:a/", PORT},
    {"http://x:0x50/", PORT},
    {"http://x:80:80/", PORT},
    {"http://x:%38%30/", PORT},
    {"http://::1/", "the URL has no host"},
    {"http://2001:db8::1/", NUMBER},
    {"http://[::1]:/", PORT},
    {"http://[::1]:x/", PORT},

    {"http://[/", BRACKETS},
    {"http://[]/", BRACKETS},
    {"http://[::1/", BRACKETS},
    {"http://[x]/", BRACKETS},
    {"http://[127.0.0.1]/", BRACKETS},
    {"http://[::1%25eth0]/", BRACKETS},
    {"http://[fe80::1%251]/", BRACKETS},
    {"http://[::1%eth0]/", "two hex"},
    {"http://[v1.x]/", BRACKETS},
    {"http://[:::1]/", BRACKETS},
    {"http://[1:2:3:4:5:6:7:8:9]/", BRACKETS},
    {"http://[::127.0.0.01]/", BRACKETS},
    {"http://[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.2555]/", BRACKETS},
    {"http://[::1]x/", "after the \"]\" of the host comes"},
    {"http://[::1].example/", "after the \"]\" of the host comes"},
    {"http://[[::1]]/", BRACKETS},
    {"http://x]/", "\"]\" cannot be in the host of a URL"},
    {"http://x[::1]/", "\"[\" cannot be in the host of a URL"},

    {"http://2130706433/", "\"2130706433\" " NUMBER},
    {"http://0x7f000001/", NUMBER},
    {"http://0X7F000001/", NUMBER},
    {"http://017700000001/", NUMBER},
    {"http://0177.0.0.1/", NUMBER},
    {"http://0x7f.0.0.1/", NUMBER},
    {"http://0x7f.1/", NUMBER},
    {"http://127.1/", NUMBER},
    {"http://127.0.1/", NUMBER},
    {"http://127.0.0.1./", NUMBER},
    {"http://127.0.0.01/", NUMBER},
    {"http://127.0.0.0x1/", NUMBER},
    {"http://127.0.0.256/", NUMBER},
    {"http://127.0.0.1.1/", NUMBER},
    {"http://1.2.3.4.5/", NUMBER},
    {"http://0/", NUMBER},
    {"http://0x/", NUMBER},
    {"http://1.0x/", NUMBER},
    {"http://example.123/", NUMBER},
    {"http://example.0xab/", NUMBER},
    {"http://99999999999999999999/", NUMBER},

    {"http://./", DOTS},
    {"http://../", DOTS},
    {"http://.x/", DOTS},
    {"http://x../", DOTS},
    {"http://x..y/", DOTS},
    {"http://127.0.0.1..", DOTS},
    {"http://x%2ey/", "\"%\" cannot be in the host of a URL"},
    {"http://%31%32%37.0.0.1/", NUMBER},
    {"http://x,y/", "\",\" cannot be in the host of a URL"},
    {"http://x;y/", "\";\" cannot be in the host of a URL"},
    {"http://x&y/", "\"&\" cannot be in the host of a URL"},
    {"http://x=y/", "\"=\" cannot be in the host of a URL"},
    {"http://*.x/", "\"*\" cannot be in the host of a URL"},
    {"http://!/", "\"!\" cannot be in the host of a URL"},
    {"http://~/", "\"~\" cannot be in the host of a URL"},
};

TEST(bad_urls_are_refused_with_words)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct url u = {.port = 7}, same = u;
        struct why why = {""};
        enum err e = url_read(str_of(bad[i].text), &u, &why);

        if (e != ERR_SYNTAX || !strstr(why.text, bad[i].words))
            T_FAIL("\"%s\": %d \"%s\"", bad[i].text, e, why.text);
        CHECK(memcmp(&u, &same, sizeof(u)) == 0);
        CHECK(url_read(str_of(bad[i].text), &u, NULL) == ERR_SYNTAX);
    }
}

TEST(words_repeat_no_secrets)
{
    static const char *const texts[] = {
        "http://user:hunter2@x/",
        "http://x:hunter2/",
        "http://x/?key=hunter2 ",
        "http://x?key=hunter2",
        "hunter2://x/",
        "hunter2",
        "http://x/hunter2\\",
        "http://x/#hunter2|",
        "http://hunter2@127.1/",
        "http://[hunter2]/",
        "https://[::1]hunter2:hunter2",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct why why = {""};
        struct url u;

        CHECK(url_read(str_of(texts[i]), &u, &why) == ERR_SYNTAX);
        CHECK(*why.text && !strstr(why.text, "hunter2"));
    }
}

TEST(a_zero_byte_ends_nothing)
{
    struct url u;

    CHECK(url_read((struct str){"http://x\0/", 10}, &u, NULL) == ERR_SYNTAX);
    CHECK(url_read((struct str){"http://x/\0", 10}, &u, NULL) == ERR_SYNTAX);
    CHECK(url_read((struct str){"http\0://x/", 11}, &u, NULL) == ERR_SYNTAX);
}

/* A URL of exactly n bytes. */
static struct str long_url(char *to, size_t n, const char *head)
{
    memset(to, 'a', n);
    memcpy(to, head, strlen(head));
    return (struct str){to, n};
}

TEST(a_url_has_its_limit)
{
    static char text[URL_BYTES_MAX + 1];
    struct why why = {""};
    struct url u;

    CHECK(url_read(long_url(text, URL_BYTES_MAX, "http://x/"), &u, &why) == OK);
    CHECK_INT(u.target.n, URL_BYTES_MAX - 8);
    CHECK(url_read(long_url(text, URL_BYTES_MAX + 1, "http://x/"), &u, &why) ==
          ERR_SYNTAX);
    CHECK_STR(str_of(why.text), "the URL has 8193 bytes, more than 8192");
}

TEST(a_host_has_its_limits)
{
    char text[400] = "http://";
    struct why why = {""};
    struct url u;
    size_t n = 7;

    /* 63 fit between two dots, 64 do not. */
    memset(text + 7, 'a', 64);
    CHECK(url_read((struct str){text, 7 + 63}, &u, &why) == OK);
    CHECK(url_read((struct str){text, 7 + 64}, &u, &why) == ERR_SYNTAX);
    CHECK(strstr(why.text, "1 to 63 characters"));

    for (; n < 7 + 256; n++)
        text[n] = (n - 7) % 64 == 63 ? '.' : 'a';
    CHECK(url_read((struct str){text, 7 + URL_HOST_MAX}, &u, &why) == OK);
    CHECK(url_read((struct str){text, 7 + URL_HOST_MAX + 1}, &u, &why) ==
          ERR_SYNTAX);
    CHECK_STR(str_of(why.text),
              "the host of the URL has 256 bytes, more than 255");
}

TEST(an_origin_is_scheme_host_and_port)
{
    static const struct {
        const char *a, *b;
        bool is_same;
    } rows[] = {
        {"http://x/", "http://x/", true},
        {"http://x/a", "http://x/b?c", true},
        {"http://x/", "http://x:80/", true},
        {"https://x:443/", "HTTPS://X/", true},
        {"http://Example.org/", "http://example.ORG/", true},
        {"http://[::1]/", "http://[::1]:80/", true},
        {"http://[FD00::1]/", "http://[fd00::1]/", true},
        {"http://x/", "https://x/", false},
        {"http://x:443/", "https://x/", false},
        {"http://x/", "ws://x/", false},
        {"https://x/", "wss://x/", false},
        {"ws://x/", "wss://x/", false},
        {"http://x/", "http://x:81/", false},
        {"http://x/", "http://y/", false},
        {"http://x/", "http://x./", false},
        {"http://x/", "http://x.y/", false},
        {"http://127.0.0.1/", "http://localhost/", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct url a, b;

        CHECK(url_read(str_of(rows[i].a), &a, NULL) == OK);
        CHECK(url_read(str_of(rows[i].b), &b, NULL) == OK);
        CHECK(url_is_same_origin(&a, &b) == rows[i].is_same);
        CHECK(url_is_same_origin(&b, &a) == rows[i].is_same);
    }
}

/* Locations. */

static struct str resolve(const char *base, struct str location,
                          struct buf *out, struct why *why)
{
    struct url u;

    CHECK(url_read(str_of(base), &u, NULL) == OK);
    buf_clear(out);
    if (url_resolve(&u, location, out, why)) {
        CHECK(out->n == 0);
        return (struct str){0};
    }
    return buf_str(out);
}

static void check_location(const char *base, const char *location,
                           const char *want)
{
    struct why why = {""};
    struct buf out;
    struct str got;

    buf_init(&out, URL_BYTES_MAX);
    got = resolve(base, str_of(location), &out, &why);
    if (!str_eq(got, str_of(want)))
        T_FAIL("%s from %s: \"%.*s\" (%s), not \"%s\"", location, base,
               STR_ARG(got), why.text, want ? want : "");
    buf_fini(&out);
}

TEST(locations_are_resolved_as_in_the_rfc)
{
    static const struct {
        const char *location, *want; /* NULL: rejected */
    } rows[] = {
        /* RFC 3986, 5.4.1, except schemes that we do not support */
        {"g:h", NULL},
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g/"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q"},
        {"g#s", "http://a/b/c/g"},
        {"g?y#s", "http://a/b/c/g?y"},
        {";x", "http://a/b/c/;x"},
        {"g;x", "http://a/b/c/g;x"},
        {"g;x?y#s", "http://a/b/c/g;x?y"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../", "http://a/"},
        {"../../g", "http://a/g"},
        /* 5.4.2 */
        {"../../../g", "http://a/g"},
        {"../../../../g", "http://a/g"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"g.", "http://a/b/c/g."},
        {".g", "http://a/b/c/.g"},
        {"g..", "http://a/b/c/g.."},
        {"..g", "http://a/b/c/..g"},
        {"./../g", "http://a/b/g"},
        {"./g/.", "http://a/b/c/g/"},
        {"g/./h", "http://a/b/c/g/h"},
        {"g/../h", "http://a/b/c/h"},
        {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
        {"g;x=1/../y", "http://a/b/c/y"},
        {"g?y/./x", "http://a/b/c/g?y/./x"},
        {"g?y/../x", "http://a/b/c/g?y/../x"},
        {"g#s/./x", "http://a/b/c/g"},
        {"g#s/../x", "http://a/b/c/g"},
        {"http:g", NULL},

        {"https://z", "https://z/"},
        {"https://z?q", "https://z/?q"},
        {"https://z#f", "https://z/"},
        {"HTTPS://Z:8443/a/../b?c", "HTTPS://Z:8443/b?c"},
        {"ws://z/", "ws://z/"},
        {"//z:81/x", "http://z:81/x"},
        {"//z?q", "http://z/?q"},
        {"//[::1]/", "http://[::1]/"},
        {"///x", NULL},
        {"//", NULL},
        {"/x//y", "http://a/x//y"},
        {"//z//../y", "http://z/y"},
        {"/x//../y", "http://a/x/y"},
        {"/..", "http://a/"},
        {"/../", "http://a/"},
        {"/.", "http://a/"},
        {"/x/..", "http://a/"},
        {"/x/y/..", "http://a/x/"},
        {"/%2e%2e/x", "http://a/%2e%2e/x"},
        {"?", "http://a/b/c/d;p?"},
        {"/?#", "http://a/?"},
        {"1:2", "http://a/b/c/1:2"},
        {"/x:y", "http://a/x:y"},
        {"/@x", "http://a/@x"},

        {"ftp://z/", NULL},
        {"file:///etc/passwd", NULL},
        {"javascript:alert(1)", NULL},
        {"mailto:x", NULL},
        {"gopher://z/", NULL},
        {"dict://z/", NULL},
        {"http:/z", NULL},
        {"http:///z", NULL},
        {"https:z", NULL},
        {"http://u:p@z/", NULL},
        {"//u@z/", NULL},
        {"http://127.1/", NULL},
        {"//2130706433/", NULL},
        {"http://z:0/", NULL},
        {"http://z:99999/", NULL},
        {"\\\\z\\", NULL},
        {"/\\z", NULL},
        {"/a b", NULL},
        {"/a\r\nX: y", NULL},
        {" /a", NULL},
        {"/\xc3\xa4", NULL},
        {"/%", NULL},
        {"{x}", NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_location("http://a/b/c/d;p?q", rows[i].location, rows[i].want);
}

TEST(locations_are_seen_from_where_they_came)
{
    check_location("https://x", "y", "https://x/y");
    check_location("https://x", "", "https://x/");
    check_location("https://x", "?q", "https://x/?q");
    check_location("https://x", "..", "https://x/");
    check_location("https://x:8443/a/b", "c", "https://x:8443/a/c");
    check_location("https://x/a/b", "//y/c", "https://y/c");
    check_location("wss://[::1]:9/a", "b", "wss://[::1]:9/b");
    check_location("http://x/a/b?c/d/e", "f", "http://x/a/f");
    check_location("http://x/a?b", "#c", "http://x/a?b");
    check_location("http://x/a/../b/c", "d", "http://x/b/d");
    check_location("http://x/a#f", "", "http://x/a");
}

TEST(a_location_is_appended)
{
    struct buf out;
    struct url u;

    buf_init(&out, 64);
    buf_add_str(&out, STR("see "));
    CHECK(url_read(STR("http://x/"), &u, NULL) == OK);
    CHECK(url_resolve(&u, STR("/y"), &out, NULL) == OK);
    CHECK_STR(buf_str(&out), "see http://x/y");
    CHECK(url_resolve(&u, STR("ftp://x/"), &out, NULL) == ERR_SYNTAX);
    CHECK_STR(buf_str(&out), "see http://x/y");
    buf_fini(&out);
}

TEST(a_location_has_its_limits)
{
    static char text[URL_BYTES_MAX + 1], base[URL_BYTES_MAX + 1];
    struct buf out, small;
    struct why why = {""};
    struct url u;

    buf_init(&out, 2 * URL_BYTES_MAX);
    memset(text, 'a', sizeof(text));
    CHECK(url_read(STR("http://x/"), &u, NULL) == OK);
    /* "http://x/" is put before it. */
    CHECK(url_resolve(&u, (struct str){text, URL_BYTES_MAX - 9}, &out, &why) ==
          OK);
    CHECK_INT(out.n, URL_BYTES_MAX);
    buf_clear(&out);
    CHECK(url_resolve(&u, (struct str){text, URL_BYTES_MAX - 8}, &out, &why) ==
          ERR_SYNTAX);
    CHECK_STR(str_of(why.text), "the URL that the location leads to has more "
                                "than 8192 bytes");
    CHECK(url_resolve(&u, (struct str){text, URL_BYTES_MAX + 1}, &out, &why) ==
          ERR_SYNTAX);
    CHECK_STR(str_of(why.text), "the location has 8193 bytes, more than 8192");
    CHECK(out.n == 0 && !out.over);

    /* A long base and a long way back. */
    CHECK(url_read(long_url(base, URL_BYTES_MAX, "http://x/"), &u, NULL) == OK);
    base[URL_BYTES_MAX - 1] = '/';
    for (size_t i = 0; i + 3 <= URL_BYTES_MAX; i += 3)
        memcpy(text + i, "../", 3);
    CHECK(url_resolve(&u, (struct str){text, URL_BYTES_MAX / 3 * 3}, &out,
                      &why) == OK);
    CHECK_STR(buf_str(&out), "http://x/");

    buf_init(&small, 8);
    CHECK(url_resolve(&u, STR("/"), &small, &why) == ERR_LIMIT);
    CHECK(small.n == 0);
    buf_fini(&small);
    buf_fini(&out);
}

TEST(a_refused_location_leaves_the_buffer_usable)
{
    struct buf out;
    struct url u;

    buf_init(&out, 10);
    CHECK(url_read(STR("http://x/"), &u, NULL) == OK);
    CHECK(url_resolve(&u, STR("/too/long"), &out, NULL) == ERR_LIMIT);
    buf_clear(&out);
    CHECK(url_resolve(&u, STR("/y"), &out, NULL) == OK);
    CHECK_STR(buf_str(&out), "http://x/y");
    buf_fini(&out);
}

TEST(a_proxy_is_a_host_and_a_port)
{
    static const char *const fine[] = {
        "http://proxy:3128", "http://proxy:3128/", "http://proxy",
        "HTTP://127.0.0.1:1", "http://[::1]:3128"};
    static const char *const wrong[] = {"",
                                        "proxy:3128",
                                        "https://proxy:3128",
                                        "ws://proxy:3128",
                                        "wss://proxy",
                                        "socks5://proxy:1080",
                                        "http://me@proxy:3128",
                                        "http://proxy:3128/x",
                                        "http://proxy:3128/?x",
                                        "http://proxy:3128#x",
                                        "http://proxy:3128/#"};
    struct url u;
    struct why why;

    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
        CHECK(url_read_proxy(str_of(fine[i]), &u, &why) == OK && u.host.n);
    u.port = 7;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        why.text[0] = '\0';
        CHECK(url_read_proxy(str_of(wrong[i]), &u, &why) == ERR_SYNTAX);
        CHECK(why.text[0] && u.port == 7);
    }
}

TEST(this_machine_has_a_name)
{
    CHECK(url_is_localhost(STR("localhost")));
    CHECK(url_is_localhost(STR("LocalHost..")));
    CHECK(url_is_localhost(STR("a.localhost.")));
    CHECK(!url_is_localhost(STR("notlocalhost")));
    CHECK(!url_is_localhost(STR("localhost.example.com")));
    CHECK(!url_is_localhost(STR("")));
}
