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
