#include "base/guard.h"
#include "test/t.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

union any {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static union any at(const char *text, uint16_t port)
{
    union any a = {.v6 = {.sin6_scope_id = 0}};

    if (strchr(text, ':')) {
        a.v6.sin6_family = AF_INET6;
        a.v6.sin6_port = htons(port);
        CHECK(inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1);
    } else {
        a.v4.sin_family = AF_INET;
        a.v4.sin_port = htons(port);
        CHECK(inet_pton(AF_INET, text, &a.v4.sin_addr) == 1);
    }
    return a;
}

static const char *kind_of(const char *text)
{
    union any a = at(text, 80);
    struct guard no_ranges = {0};
    const char *kind = NULL;
    enum err e = guard_judge(&no_ranges, &a.any, &kind);

    CHECK(kind && e == (strcmp(kind, "public") == 0 ? OK : ERR_ADDRESS));
    return kind;
}

/* Every range of the registries: the last address before it, its first, its
 * last, and the next. */
static const struct {
    const char *before, *first, *last, *after;
    const char *kind_before, *kind, *kind_after;
} ranges[] = {
#define P "public"
    {NULL, "0.0.0.0", "0.0.0.0", "0.0.0.1", NULL, "unspecified", "reserved"},
    {NULL, "0.0.0.1", "0.255.255.255", "1.0.0.0", NULL, "reserved", P},
    {"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0", P, "private",
     P},
    {"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0", P,
     "shared", P},
    {"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0", P,
     "loopback", P},
    {"168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17", P,
     "platform", P},
    {"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0", P,
     "link-local", P},
    {"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0", P,
     "private", P},
    {"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0", P, "reserved",
     P},
    {"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0", P, "documentation",
     P},
    {"192.31.195.255", "192.31.196.0", "192.31.196.255", "192.31.197.0", P,
     "anycast", P},
    {"192.52.192.255", "192.52.193.0", "192.52.193.255", "192.52.194.0", P,
     "anycast", P},
    {"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0", P,
     "anycast", P},
    {"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0", P,
     "private", P},
    {"192.175.47.255", "192.175.48.0", "192.175.48.255", "192.175.49.0", P,
     "anycast", P},
    {"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0", P,
     "benchmark", P},
    {"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0", P,
     "documentation", P},
    {"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0", P,
     "documentation", P},
    {"223.255.255.255", "224.0.0.0", "239.255.255.255", "240.0.0.0", P,
     "multicast", "reserved"},
    {"239.255.255.255", "240.0.0.0", "255.255.255.254", "255.255.255.255",
     "multicast", "reserved", "broadcast"},
    {"255.255.255.254", "255.255.255.255", "255.255.255.255", NULL, "reserved",
     "broadcast", NULL},

    {NULL, "::", "::", "::1", NULL, "unspecified", "loopback"},
    {"::", "::1", "::1", "::2", "unspecified", "loopback", "reserved"},
    {"64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", "64:ff9b::", "64:ff9b::",
     "64:ff9b::1", "reserved", "unspecified", "reserved"},
    {"64:ff9b::101:0", "64:ff9b::1:0:0", "64:ff9b:0:ffff::", "64:ff9b:2::", P,
     "reserved", "reserved"},
    {"64:ff9b:0:ffff:ffff:ffff:ffff:ffff",
     "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
     "64:ff9b:2::", "reserved", "private", "reserved"},
    {"ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "100::", "100::ffff:ffff:ffff:ffff", "100:0:0:1::", "reserved", "reserved",
     "reserved"},
    {"1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "2000::", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001::", "reserved",
     P, "unspecified"},
    {"2001:0:ffff:ffff:ffff:ffff:ffff:ffff",
     "2001:1::", "2001:1:ffff:ffff:ffff:ffff:ffff:ffff",
     "2001:2::", "broadcast", "reserved", "benchmark"},
    {"2001:1:ffff:ffff:ffff:ffff:ffff:ffff",
     "2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", "2001:2:1::", "reserved",
     "benchmark", "reserved"},
    {"2001:2:0:ffff:ffff:ffff:ffff:ffff",
     "2001:3::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
     "2001:200::", "benchmark", "reserved", P},
    {"2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
     "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::", P,
     "documentation", P},
    {"2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2002::",
     "2002:ff:ffff:ffff:ffff:ffff:ffff:ffff", "2002:100::", P, NULL, P},
    {"2620:4f:7fff:ffff:ffff:ffff:ffff:ffff",
     "2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff",
     "2620:4f:8001::", P, "anycast", P},
    {"3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::", P,
     "documentation", P},
    {"3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fc00::", P,
     "reserved", "private"},
    {"5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "5f01::", "reserved",
     "reserved", "reserved"},
    {"fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe00::", "reserved",
     "private", "reserved"},
    {"fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fec0::", "reserved",
     "link-local", "site-local"},
    {"febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "ff00::", "link-local", "site-local", "multicast"},
    {"feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "site-local",
     "multicast", NULL},
#undef P
};

static void check_kind(const char *text, const char *kind)
{
    if (text && kind && strcmp(kind_of(text), kind) != 0)
        T_FAIL("%s is %s, not %s", text, kind_of(text), kind);
}

TEST(every_special_range_ends_where_it_ends)
{
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        check_kind(ranges[i].before, ranges[i].kind_before);
        check_kind(ranges[i].first, ranges[i].kind);
        check_kind(ranges[i].last, ranges[i].kind);
        check_kind(ranges[i].after, ranges[i].kind_after);
    }
}

TEST(addresses_are_of_their_kind)
{
    static const struct {
        const char *text, *kind;
    } rows[] = {
        {"1.1.1.1", "public"},
        {"8.8.8.8", "public"},
        {"93.184.216.34", "public"},
        {"127.0.0.1", "loopback"},
        {"127.1.2.3", "loopback"},
        {"168.63.129.16", "platform"},
        {"169.254.169.254", "link-local"},
        {"100.100.100.200", "shared"},
        {"192.0.0.192", "reserved"},
        {"172.20.0.1", "private"},
        {"192.0.0.9", "reserved"},
        {"192.0.0.10", "reserved"},
        {"192.0.0.170", "reserved"},
        {"224.0.0.251", "multicast"},
        {"2606:4700:4700::1111", "public"},
        {"2a00:1450:4001:82a::200e", "public"},
        {"2001:4860:4860::8888", "public"},
        {"2001:1::1", "reserved"},
        {"2001:10::1", "reserved"},
        {"2001:20::1", "reserved"},
        {"2001:30::1", "reserved"},
        {"2001:4:112::1", "reserved"},
        {"100:0:0:1::1", "reserved"},
        {"fd00:ec2::254", "private"},
        {"fe80::1", "link-local"},
        {"fec0::1", "site-local"},
        {"ff02::1", "multicast"},
        {"ff0e::1", "multicast"},
        {"::2", "reserved"},
        {"2::1", "reserved"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_kind(rows[i].text, rows[i].kind);
}

/* The same IPv4 address in every form of IPv6 that embeds one. */
TEST(a_v4_address_inside_a_v6_one_is_judged_too)
{
    static const struct {
        const char *v4, *kind;
    } inner[] = {
        {"127.0.0.1", "loopback"},         {"0.0.0.0", "unspecified"},
        {"10.1.2.3", "private"},           {"172.16.0.1", "private"},
        {"192.168.1.1", "private"},        {"168.63.129.16", "platform"},
        {"169.254.169.254", "link-local"}, {"100.64.0.1", "shared"},
        {"198.18.0.1", "benchmark"},       {"192.0.2.1", "documentation"},
        {"224.0.0.1", "multicast"},        {"255.255.255.255", "broadcast"},
        {"240.0.0.1", "reserved"},         {"8.8.8.8", "public"},
        {"193.0.6.139", "public"},
    };
    /* #: the address in hex; ~: the same with every bit inverted. outer: the
     * kind of the form if the embedded address is public. */
    static const struct {
        const char *form, *outer;
    } forms[] = {
        {"::ffff:#", "public"},
        {"::ffff:0:#", "reserved"},
        {"64:ff9b::#", "public"},
        {"2002:#::1", "public"},
        {"2002:#:1:2:3:4:5", "public"},
        {"2001:0:808:808:8000:ffff:~", "public"},
        {"2001:0:c100:68b:8000:ffff:~", "public"},
        {"2001:0:#:8000:ffff:f7f7:f7f7", "public"},
        {"2001:0:#:8000:ffff:3eff:f974", "public"},
        {"2a00:1450::5efe:#", "public"},
        {"2a00:1450:1:2:200:5efe:#", "public"},
        {"2a00:1450:1:2:300:5efe:#", "public"},
        {"2002:808:808:1:0:5efe:#", "public"},
        /* The embedded address does not matter: these are rejected as they
         * are. */
        {"64:ff9b:1::#", "!private"},
        {"64:ff9b:1:a:b:c:#", "!private"},
        {"fe80::5efe:#", "!link-local"},
        {"fd00::200:5efe:#", "!private"},
        {"2001:db8::5efe:#", "!documentation"},
        /* Nearly such a form: no address is embedded. */
        {"2a00:1450::5eff:#", "!public"},
        {"2a00:1450:1:2:400:5efe:#", "!public"},
        {"2003:#::1", "!public"},
        {"2606:0:#::", "!public"},
    };

    for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++)
        for (size_t k = 0; k < sizeof(forms) / sizeof(forms[0]); k++) {
            const char *outer = forms[k].outer, *kind = inner[i].kind;
            char text[64] = "", hex[16];
            unsigned char b[4];

            inet_pton(AF_INET, inner[i].v4, b);
            for (const char *p = forms[k].form; *p; p++) {
                unsigned turn = *p == '~' ? 0xffffU : 0;

                snprintf(hex, sizeof(hex), "%c", *p);
                if (*p == '#' || *p == '~')
                    snprintf(hex, sizeof(hex), "%x:%x",
                             ((unsigned)b[0] << 8 | b[1]) ^ turn,
                             ((unsigned)b[2] << 8 | b[3]) ^ turn);
                strncat(text, hex, sizeof(text) - strlen(text) - 1);
            }
            if (*outer == '!')
                kind = outer + 1;
            else if (strcmp(kind, "public") == 0)
                kind = outer;
            check_kind(text, kind);
        }
}

TEST(a_compatible_address_is_never_public)
{
    check_kind("::127.0.0.1", "loopback");
    check_kind("::10.0.0.1", "private");
    check_kind("::169.254.169.254", "link-local");
    check_kind("::8.8.8.8", "reserved");
}

TEST(what_is_no_internet_address_is_refused)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = "/run/x"};
    struct sockaddr_storage other = {.ss_family = AF_NETLINK};
    struct guard_range all[2], r;
    struct guard g = {all, 2};
    const char *kind = "";

    CHECK(guard_range_read(STR("0.0.0.0/0"), &all[0], NULL) == OK);
    CHECK(guard_range_read(STR("::/0"), &all[1], NULL) == OK);
    CHECK(guard_judge(&g, (void *)&path, &kind) == ERR_ADDRESS);
    CHECK_STR(str_of(kind), "no internet address");
    CHECK(guard_judge(&g, (void *)&path, NULL) == ERR_ADDRESS);
    CHECK(guard_judge(&g, (void *)&other, &kind) == ERR_ADDRESS);
    CHECK(guard_judge(&g, NULL, &kind) == ERR_ADDRESS);
    CHECK(guard_range_of((void *)&path, &r) == ERR_ADDRESS);
}

TEST(the_scope_of_an_address_changes_nothing)
{
    union any a = at("fe80::1", 80);
    struct guard_range allow;
    struct guard g = {&allow, 1};

    a.v6.sin6_scope_id = 2;
    CHECK(guard_judge(&(struct guard){0}, &a.any, NULL) == ERR_ADDRESS);
    CHECK(guard_range_read(STR("[fe80::]/10"), &allow, NULL) == OK);
    CHECK(guard_judge(&g, &a.any, NULL) == OK);
}

/* The list. */

TEST(the_list_opens_what_it_says_and_no_more)
{
    static const struct {
        const char *range, *addr;
        uint16_t port;
        bool is_open;
    } rows[] = {
        {"127.0.0.1:11434", "127.0.0.1", 11434, true},
        {"127.0.0.1:11434", "127.0.0.1", 11435, false},
        {"127.0.0.1:11434", "127.0.0.2", 11434, false},
        {"127.0.0.1", "127.0.0.1", 1, true},
        {"127.0.0.1", "127.0.0.1", 65535, true},
        {"127.0.0.1", "127.0.0.0", 80, false},
        {"127.0.0.1/32", "127.0.0.1", 80, true},
        {"127.0.0.1/32", "127.0.0.2", 80, false},
        {"127.0.0.0/31", "127.0.0.1", 80, true},
        {"127.0.0.0/31", "127.0.0.2", 80, false},
        {"127.0.0.1", "::1", 80, false},
        {"127.0.0.1", "::ffff:127.0.0.1", 80, true},
        {"127.0.0.1", "::127.0.0.1", 80, false},
        {"127.0.0.1", "64:ff9b::127.0.0.1", 80, false},
        {"127.0.0.1", "2002:7f00:1::", 80, false},
        {"10.0.0.0/8", "10.0.0.0", 80, true},
        {"10.0.0.0/8", "10.255.255.255", 80, true},
        {"10.0.0.0/8", "11.0.0.0", 80, true}, /* public anyway */
        {"10.0.0.0/8", "192.168.0.1", 80, false},
        {"10.0.0.0/9", "10.127.255.255", 80, true},
        {"10.0.0.0/9", "10.128.0.0", 80, false},
        {"10.0.0.0/8:443", "10.9.9.9", 443, true},
        {"10.0.0.0/8:443", "10.9.9.9", 80, false},
        {"0.0.0.0/0", "127.0.0.1", 80, true},
        {"0.0.0.0/0", "255.255.255.255", 80, true},
        {"0.0.0.0/0", "::1", 80, false},
        {"0.0.0.0/0", "fe80::1", 80, false},
        {"0.0.0.0/1", "127.0.0.1", 80, true},
        {"128.0.0.0/1", "127.0.0.1", 80, false},
        {"::/0", "::1", 80, true},
        {"::/0", "fe80::1", 80, true},
        {"::/0", "127.0.0.1", 80, false},
        {"::/0", "::ffff:127.0.0.1", 80, false},
        {"::/1", "::ffff:127.0.0.1", 80, false},
        {"::/80", "::ffff:127.0.0.1", 80, false},
        {"::/96", "::127.0.0.1", 80, true},
        {"[::1]", "::1", 80, true},
        {"[::1]:8080", "::1", 8080, true},
        {"[::1]:8080", "::1", 80, false},
        {"[::1]", "::2", 80, false},
        {"[::1]", "127.0.0.1", 80, false},
        {"[fd00::]/8", "fd00::1", 80, true},
        {"[fd00::]/8", "fdff::1", 80, true},
        {"[fd00::]/8", "fc00::1", 80, false},
        {"fd00::/8:443", "fd00::1", 443, true},
        {"fd00::/8:443", "fd00::1", 80, false},
        {"[fd00::]/127", "fd00::1", 80, true},
        {"[fd00::]/127", "fd00::2", 80, false},
        {"[64:ff9b::7f00:1]", "64:ff9b::127.0.0.1", 80, true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct guard_range r;
        struct guard g = {&r, 1};
        union any a = at(rows[i].addr, rows[i].port);
        struct why why;

        if (guard_range_read(str_of(rows[i].range), &r, &why))
            T_FAIL("%s: %s", rows[i].range, why.text);
        if ((guard_judge(&g, &a.any, NULL) == OK) != rows[i].is_open)
            T_FAIL("%s and %s", rows[i].range, rows[i].addr);
    }
}

TEST(a_range_of_everything_is_known_as_such)
{
    static const struct {
        const char *text;
        bool is_all;
    } rows[] = {
        {"0.0.0.0/0", true},  {"::/0", true},         {"0.0.0.0/0:80", true},
        {"0.0.0.0/1", false}, {"128.0.0.0/1", false}, {"::/1", false},
        {"::/96", false},     {"127.0.0.1", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct guard_range r;

        CHECK(guard_range_read(str_of(rows[i].text), &r, NULL) == OK);
        CHECK(guard_range_is_all(&r) == rows[i].is_all);
    }
}

TEST(any_range_of_a_list_opens)
{
    struct guard_range list[3];
    struct guard g = {list, 3};
    union any a = at("192.168.7.7", 80);

    CHECK(guard_range_read(STR("10.0.0.0/8"), &list[0], NULL) == OK);
    CHECK(guard_range_read(STR("[fd00::]/8"), &list[1], NULL) == OK);
    CHECK(guard_range_read(STR("192.168.7.0/24:80"), &list[2], NULL) == OK);
    CHECK(guard_judge(&g, &a.any, NULL) == OK);
    g.n_allow = 2;
    CHECK(guard_judge(&g, &a.any, NULL) == ERR_ADDRESS);
}

TEST(an_open_address_keeps_its_kind)
{
    struct guard_range r;
    union any a = at("127.0.0.1", 80);
    const char *kind;

    CHECK(guard_range_of(&a.any, &r) == OK);
    CHECK(guard_judge(&(struct guard){&r, 1}, &a.any, &kind) == OK);
    CHECK_STR(str_of(kind), "loopback");
}

/* Ranges as text. */

TEST(ranges_are_written_in_their_shortest_form)
{
    static const struct {
        const char *text, *written;
    } rows[] = {
        {"10.0.0.0/8", "10.0.0.0/8"},
        {"127.0.0.1:11434", "127.0.0.1:11434"},
        {"127.0.0.1", "127.0.0.1"},
        {"127.0.0.1/32", "127.0.0.1"},
        {"0.0.0.0/0", "0.0.0.0/0"},
        {"0.0.0.0/0:65535", "0.0.0.0/0:65535"},
        {"10.0.0.0/8:443", "10.0.0.0/8:443"},
        {"[fd00::]/8", "[fd00::]/8"},
        {"fd00::/8", "[fd00::]/8"},
        {"fd00::/8:1", "[fd00::]/8:1"},
        {"[::1]:8080", "[::1]:8080"},
        {"[0:0:0:0:0:0:0:1]/128", "[::1]"},
        {"::/0", "[::]/0"},
        {"[FD00::]/8", "[fd00::]/8"},
        {"[64:ff9b::10.0.0.0]/104", "[64:ff9b::a00:0]/104"},
        {"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe]/127:65535",
         "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe]/127:65535"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char out[GUARD_RANGE_BYTES], again[GUARD_RANGE_BYTES];
        struct guard_range r;

        CHECK(guard_range_read(str_of(rows[i].text), &r, NULL) == OK);
        guard_range_write(&r, out);
        CHECK_STR(str_of(out), rows[i].written);
        CHECK(guard_range_read(str_of(out), &r, NULL) == OK);
        guard_range_write(&r, again);
        CHECK_STR(str_of(again), out);
    }
}

TEST(what_is_no_range_is_refused_with_words)
{
    static const char how[] = "write 10.0.0.0/8, 127.0.0.1:8080 or [fd00::]/8";
    static const char v4_prefix[] =
        "the prefix of an IPv4 address is a number from 0 to 32";
    static const char v6_prefix[] =
        "the prefix of an IPv6 address is a number from 0 to 128";
    static const char port[] = "a port is a number from 1 to 65535";
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "a range is missing; write"},
        {"10.0.0.1/8",
         "10.0.0.1/8 has bits beyond its prefix; write 10.0.0.0/8 for the "
         "range, 10.0.0.1 for the address alone"},
        {"10.0.0.1/8:80", "write 10.0.0.0/8:80 for the range, 10.0.0.1:80 for"},
        {"10.0.0.1/0", "write 0.0.0.0/0 for the range"},
        {"10.0.0.1/31", "write 10.0.0.0/31 for the range"},
        {"[fd00::1]/8", "write [fd00::]/8 for the range, [fd00::1] for"},
        {"[::1]/127", "write [::]/127 for the range"},
        {"::1/0", "write [::]/0 for the range"},
        {"10.0.0.0/33", v4_prefix},
        {"10.0.0.0/", v4_prefix},
        {"10.0.0.0/-1", v4_prefix},
        {"10.0.0.0/+8", v4_prefix},
        {"10.0.0.0/08", v4_prefix},
        {"10.0.0.0/255.0.0.0", v4_prefix},
        {"10.0.0.0/8/8", v4_prefix},
        {"10.0.0.0/99999999999999999999", v4_prefix},
        {"[fd00::]/129", v6_prefix},
        {"[fd00::]/", v6_prefix},
        {"fd00::/x", v6_prefix},
        {"127.0.0.1:0", port},
        {"127.0.0.1:", port},
        {"127.0.0.1:65536", port},
        {"127.0.0.1:-1", port},
        {"127.0.0.1:080", port},
        {"127.0.0.1:http", port},
        {"127.0.0.1:80/32", port},
        {"[::1]:0", port},
        {"[::1]:80:80", port},
        {"10.0.0.0/8:", port},
        {"::1",
         "::1: an IPv6 address must be in brackets, [::1] or [::1]:8080"},
        {"::1:8080", "must be in brackets"},
        {"fd00::", "must be in brackets"},
        {"[::1", "[::1 has no \"]\""},
        {"[::1]x", "after the address comes /PREFIX or :PORT"},
        {"[::1]8080", "after the address comes /PREFIX or :PORT"},
        {"[]", "[] is not an address"},
        {"[127.0.0.1]", "is not an address"},
        {"[fe80::1%eth0]", "there is no \"%\" in it"},
        {"fe80::1%1/64", "there is no \"%\" in it"},
        {"[::ffff:127.0.0.1]", "is an IPv4 address; write it as 127.0.0.1"},
        {"[::ffff:10.0.0.0]/104", "is an IPv4 address; write it as 10.0.0.0"},
        {"localhost", "write 127.0.0.1 and [::1]"},
        {"LOCALHOST:80", "names are not looked up here"},
        {"example.org", "example.org is not an address; write"},
        {"*", how},
        {"10", how},
        {"10/8", how},
        {"10.0/8", how},
        {"10.0.0.0.0/8", how},
        {"10.0.0.256", how},
        {"0x7f.0.0.1", how},
        {"0177.0.0.1", how},
        {"2130706433", how},
        {" 10.0.0.0/8", how},
        {"10.0.0.0 /8", how},
        {"10.0.0.0/8 ", v4_prefix},
        {"/8", how},
        {":80", how},
        {":", how},
        {"/", how},
        {"http://10.0.0.1/", how},
        {"10.0.0.0-10.0.0.9", how},
        {"10.0.0.\x1b[31m", "10.0.0.?[31m is not an address"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct guard_range r = {.port = 7}, same = r;
        struct why why = {""};
        enum err e = guard_range_read(str_of(rows[i].text), &r, &why);

        if (e != ERR_SYNTAX || !strstr(why.text, rows[i].words))
            T_FAIL("\"%s\": %d \"%s\"", rows[i].text, e, why.text);
        CHECK(memcmp(&r, &same, sizeof(r)) == 0);
    }
}

TEST(a_range_may_be_any_bytes_of_any_length)
{
    struct guard_range r;
    struct why why;
    char text[4096];

    CHECK(guard_range_read((struct str){"127.0.0.1\0", 10}, &r, &why) ==
          ERR_SYNTAX);
    CHECK(guard_range_read((struct str){"127.0.0.1\0:80", 13}, &r, &why) ==
          ERR_SYNTAX);
    for (int c = 0; c < 256; c++)
        for (size_t n = 1; n < 300; n += 7) {
            memset(text, c, sizeof(text));
            CHECK(guard_range_read((struct str){text, n}, &r, &why) ==
                  ERR_SYNTAX);
            CHECK(strlen(why.text) < 200);
        }
    memset(text, '1', sizeof(text));
    CHECK(guard_range_read((struct str){text, sizeof(text)}, &r, &why) ==
          ERR_SYNTAX);
}

TEST(what_is_refused_says_what_would_open_it)
{
    static const char *const rows[] = {"127.0.0.1",       "::1",
                                       "10.1.2.3",        "fd00::7",
                                       "64:ff9b::7f00:1", "::ffff:192.168.1.1"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        union any a = at(rows[i], 8443), other = at(rows[i], 8444);
        char text[GUARD_RANGE_BYTES];
        struct guard_range r, again;
        struct guard g = {&again, 1};

        CHECK(guard_range_of(&a.any, &r) == OK);
        guard_range_write(&r, text);
        CHECK(guard_range_read(str_of(text), &again, NULL) == OK);
        CHECK(guard_judge(&g, &a.any, NULL) == OK);
        CHECK(guard_judge(&g, &other.any, NULL) == ERR_ADDRESS);
    }
}
