#include "base/xor.h"

#include "test/t.h"

enum { LONGEST = 300, PLACES = 33 };

typedef void xor_fn(char *to, const char *from, size_t n, const uint8_t key[4],
                    size_t at);

static const uint8_t key[4] = {0x37, 0xfa, 0x21, 0x3d};

static void fill(char *p, size_t n)
{
    uint32_t x = 12345;

    for (size_t i = 0; i < n; i++)
        p[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
}

/* Every length at every offset, from memory that ends where the bytes end; no
 * other byte changes. */
static void check_against_plain(xor_fn * xor)
{
    char from[PLACES + LONGEST], wanted[LONGEST + 1], got[PLACES + LONGEST + 1];

    fill(from, sizeof(from));
    for (size_t place = 0; place < PLACES; place++)
        for (size_t n = 0; n <= LONGEST; n++) {
            size_t at = n + place;
            char *exact = malloc(n ? n : 1);

            memcpy(exact, from + place, n);
            memset(wanted, 'w', sizeof(wanted));
            memset(got, 'w', sizeof(got));
            xor_four_plain(wanted, exact, n, key, at);
            xor(got + place, exact, n, key, at);
            CHECK(memcmp(wanted, got + place, n + 1) == 0);
            CHECK(place == 0 || got[place - 1] == 'w');
            free(exact);
        }
}

/* In place, and with the result slightly before it, as when frame headers are
 * removed. */
static void check_in_place(xor_fn * xor)
{
    char bytes[PLACES + LONGEST], wanted[LONGEST];

    for (size_t before = 0; before < PLACES; before++)
        for (size_t n = 0; n <= LONGEST; n++) {
            fill(bytes, sizeof(bytes));
            xor_four_plain(wanted, bytes + before, n, key, 1);
            xor(bytes, bytes + before, n, key, 1);
            CHECK(memcmp(wanted, bytes, n) == 0);
        }
}

TEST(the_plain_one_is_what_the_standard_says)
{
    char out[5];

    xor_four_plain(out, "\x7f\x9f\x4d\x51\x58", 5, key, 0);
    CHECK(memcmp(out, "Hello", 5) == 0);
    xor_four_plain(out, "\x4d\x51\x58", 3, key, 2);
    CHECK(memcmp(out, "llo", 3) == 0);
}

TEST(every_kind_of_vector_does_as_the_plain_one)
{
    check_against_plain(xor_four);
    check_against_plain(xor_four_narrow);
    if (xor_is_wide())
        check_against_plain(xor_four_wide);
}

TEST(the_result_may_lie_on_or_before_what_it_comes_from)
{
    check_in_place(xor_four);
    check_in_place(xor_four_narrow);
    if (xor_is_wide())
        check_in_place(xor_four_wide);
}

TEST(nothing_is_nothing)
{
    xor_four(NULL, NULL, 0, key, 0);
}
