#include "base/addr.h"
#include "test/t.h"

#include <arpa/inet.h>

TEST(addresses_are_read_and_judged)
{
    static const struct {
        const char *text;
        enum err err;
        bool is_loopback;
    } rows[] = {
        {"127.0.0.1:8787", OK, true},
        {"127.255.255.254:1", OK, true},
        {"localhost:0", OK, true},
        {"LocalHost:80", OK, true},
        {"[::1]:65535", OK, true},
        {"0.0.0.0:80", OK, false},
        {"128.0.0.1:80", OK, false},
        {"[::]:80", OK, false},
        {"[2001:db8::1]:80", OK, false},
        {"", ERR_SYNTAX, false},
        {":", ERR_SYNTAX, false},
        {":80", ERR_SYNTAX, false},
        {"127.0.0.1", ERR_SYNTAX, false},
        {"127.0.0.1:", ERR_SYNTAX, false},
        {"127.0.0.1:65536", ERR_SYNTAX, false},
        {"127.0.0.1:-1", ERR_SYNTAX, false},
        {"127.0.0.1:+1", ERR_SYNTAX, false},
        {"127.0.0.1:000080", ERR_SYNTAX, false},
        {"127.0.0.1:80 ", ERR_SYNTAX, false},
        {" 127.0.0.1:80", ERR_SYNTAX, false},
        {"127.1:80", ERR_SYNTAX, false},
        {"2130706433:80", ERR_SYNTAX, false},
        {"0x7f.0.0.1:80", ERR_SYNTAX, false},
        {"::1:80", ERR_SYNTAX, false},
        {"[]:80", ERR_SYNTAX, false},
        {"[::1:80", ERR_SYNTAX, false},
        {"[127.0.0.1]:80", ERR_SYNTAX, false},
        {"[::ffff:127.0.0.1]:80", ERR_SYNTAX, false},
        {"[fe80::1%eth0]:80", ERR_SYNTAX, false},
        {"example.org:80", ERR_SYNTAX, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct addr a;

        CHECK(addr_parse(str_of(rows[i].text), &a) == rows[i].err);
        if (rows[i].err == OK)
            CHECK(addr_is_loopback(&a) == rows[i].is_loopback);
    }
}

TEST(some_addresses_stand_for_all)
{
    static const char *const all[] = {"0.0.0.0:80", "[::]:80", "[0::0]:0"};
    static const char *const one[] = {"127.0.0.1:80", "0.0.0.1:80", "[::1]:0",
                                      "localhost:0", "[2001:db8::]:1"};
    struct addr a;

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        CHECK(addr_parse(str_of(all[i]), &a) == OK && addr_is_any(&a));
    for (size_t i = 0; i < sizeof(one) / sizeof(*one); i++)
        CHECK(addr_parse(str_of(one[i]), &a) == OK && !addr_is_any(&a));
}

static struct addr addr_of(const char *text)
{
    struct addr a;

    CHECK(addr_parse(str_of(text), &a) == OK);
    return a;
}

TEST(an_address_is_sixteen_bytes_without_its_port)
{
    static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, 10, 1, 2, 3};
    static const uint8_t v6[16] = {0xfd, [1] = 0, [15] = 9};
    static const uint8_t none[16];
    struct addr a = addr_of("10.1.2.3:80");
    uint8_t b[ADDR_BYTES];

    addr_bytes(&a.sa.any, b);
    CHECK(memcmp(b, v4, 16) == 0);
    a = addr_of("[fd00::9]:81");
    addr_bytes(&a.sa.any, b);
    CHECK(memcmp(b, v6, 16) == 0);
    addr_bytes(&(struct sockaddr){.sa_family = AF_UNIX}, b);
    CHECK(memcmp(b, none, 16) == 0);
}

TEST(a_v4_address_is_known_among_the_others)
{
    static const uint8_t ten[4] = {10, 1, 2, 3};
    struct addr v6 = addr_of("[fd00::9]:81"), v4 = addr_of("10.1.2.3:80");
    uint8_t b[ADDR_BYTES], mapped[ADDR_BYTES];

    addr_bytes(&v6.sa.any, b);
    CHECK(!addr_is_v4(b));
    addr_bytes(&v4.sa.any, b);
    addr_map_v4(ten, mapped);
    CHECK(addr_is_v4(b) && memcmp(b, mapped, sizeof(b)) == 0);
}

TEST(a_range_is_its_first_bits)
{
    struct addr a = addr_of("[2001:db8:ff00:8000::1]:1"),
                range = addr_of("[2001:db8:ff00::]:1");
    uint8_t b[ADDR_BYTES], r[ADDR_BYTES];

    addr_bytes(&a.sa.any, b);
    addr_bytes(&range.sa.any, r);
    for (unsigned prefix = 0; prefix <= 128; prefix++) {
        CHECK(addr_is_within(b, r, prefix) == (prefix <= 48));
        CHECK(addr_is_within(b, b, prefix));
    }
}

TEST(one_peer_is_a_v4_address_or_a_64_of_v6)
{
    static const struct {
        const char *a, *b;
        bool is_same;
    } rows[] = {
        {"10.0.0.1:1", "10.0.0.1:2", true},
        {"10.0.0.1:1", "10.0.0.2:1", false},
        {"[2001:db8:0:1::1]:1", "[2001:db8:0:1:ffff:ffff:ffff:ffff]:9", true},
        {"[2001:db8:0:1::1]:1", "[2001:db8:0:2::1]:1", false},
        {"0.0.0.0:1", "[::1]:1", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct addr a = addr_of(rows[i].a), b = addr_of(rows[i].b);
        uint8_t x[ADDR_BYTES], y[ADDR_BYTES];

        addr_bytes(&a.sa.any, x);
        addr_bytes(&b.sa.any, y);
        addr_network(x, x);
        addr_network(y, y);
        CHECK((memcmp(x, y, sizeof(x)) == 0) == rows[i].is_same);
    }
}

TEST(a_zero_byte_does_not_end_an_address_early)
{
    struct addr a;

    CHECK(addr_parse((struct str){"127.0.0.1\0:80", 13}, &a) == ERR_SYNTAX);
}

TEST(what_was_read_is_written_the_same)
{
    static const char *const same[] = {"127.0.0.1:80", "[::1]:8787",
                                       "255.255.255.255:65535"};
    char longest[] = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535";
    char text[ADDR_TEXT_BYTES];
    struct addr a;

    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
        CHECK(addr_parse(str_of(same[i]), &a) == OK);
        addr_write(&a.sa.any, text);
        CHECK(strcmp(text, same[i]) == 0);
    }
    CHECK(addr_parse(str_of(longest), &a) == OK);
    addr_write(&a.sa.any, text);
    CHECK(strcmp(text, longest) == 0);
}
