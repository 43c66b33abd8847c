#include "base/utf8.h"

#include "test/t.h"

/* The slow reference: characters as numbers. A truncated last character counts
 * as good if some ending would complete it. */
static bool truth(const uint8_t *b, size_t n, bool *is_cut)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

    *is_cut = false;
    for (size_t i = 0; i < n;) {
        size_t len = b[i] < 0x80           ? 1
                     : (b[i] >> 5) == 0x6  ? 2
                     : (b[i] >> 4) == 0xe  ? 3
                     : (b[i] >> 3) == 0x1e ? 4
                                           : 0;
        uint32_t low, high;

        if (len == 0)
            return false;
        low = high = len == 1 ? b[i] : b[i] & (0x7fu >> len);
        for (size_t k = 1; k < len; k++) {
            bool is_here = i + k < n;

            if (is_here && (b[i + k] >> 6) != 2)
                return false;
            low = low << 6 | (is_here ? b[i + k] & 63u : 0);
            high = high << 6 | (is_here ? b[i + k] & 63u : 63u);
        }
        if (high < least[len] || low > 0x10ffff ||
            (low >= 0xd800 && high <= 0xdfff))
            return false;
        *is_cut = i + len > n;
        i += len;
    }
    return true;
}

static void check_one(const uint8_t *b, size_t n)
{
    struct str s = {(const char *)b, n};
    uint32_t fast = 0, plain = 0;
    bool is_cut, is_good = truth(b, n, &is_cut);

    if (utf8_check(&fast, s) != is_good ||
        utf8_check_plain(&plain, s) != is_good)
        T_FAIL("%02x %02x %02x %02x of %zu", b[0], b[1], b[2], b[3], n);
    if (is_good)
        CHECK((fast != 0) == is_cut && fast == plain);
    CHECK(utf8_is_valid(s) == (is_good && !is_cut));
    if (n && n <= 4 && is_good && !is_cut && b[0] >= 0x80)
        CHECK(utf8_one(s.p, s.p + n) <= n);
}

TEST(every_sequence_of_three_bytes_is_judged)
{
    for (uint32_t v = 0; v < 1u << 24; v++) {
        uint8_t b[4] = {(uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v, 0};

        if (v < 256)
            check_one(b + 2, 1);
        if (v < 65536)
            check_one(b + 1, 2);
        check_one(b, 3);
    }
}

TEST(every_character_of_four_bytes_is_judged)
{
    static const uint8_t last[] = {0, 0x7f, 0x80, 0x9a, 0xbf, 0xc0, 0xff};

    for (uint32_t v = 0; v < 16 * 65536; v++)
        for (size_t i = 0; i < sizeof(last); i++) {
            uint8_t b[4] = {(uint8_t)(0xf0 + (v >> 16)), (uint8_t)(v >> 8),
                            (uint8_t)v, last[i]};

            check_one(b, 4);
        }
}

TEST(cuts_make_no_difference)
{
    static const char *const pieces[] = {
        "plain ascii text, long enough for a few words at once",
        "\xc3\xa9",
        "\xe2\x82\xac",
        "\xf0\x9f\x98\x80",
        "x",
        "\xef\xbf\xbf",
        "\xf4\x8f\xbf\xbf",
        "12345678"};
    uint32_t x = 1;

    for (int round = 0; round < 3000; round++) {
        char text[512];
        size_t n = 0;
        bool is_cut, is_good;

        for (int i = 0; i < 7; i++) {
            const char *p = pieces[(x = x * 1664525 + 1013904223) >> 29];

            memcpy(text + n, p, strlen(p));
            n += strlen(p);
        }
        if (round % 2) /* one byte that may break it */
            text[(x >> 8) % n] = (char)(x >> 20);
        is_good = truth((uint8_t *)text, n, &is_cut);
        for (size_t cut = 0; cut <= n; cut++) {
            uint32_t state = 0;
            bool got = utf8_check(&state, (struct str){text, cut}) &&
                       utf8_check(&state, (struct str){text + cut, n - cut});

            CHECK(got == is_good);
            CHECK(!got || (state != 0) == is_cut);
        }
    }
}

/* At every position among ASCII, at every alignment and before every end. */
TEST(a_bad_byte_is_found_wherever_it_is)
{
    for (size_t n = 1; n <= 100; n++)
        for (size_t at = 0; at < n; at++) {
            char *exact = malloc(n);
            uint32_t state = 0;

            memset(exact, 'a', n);
            CHECK(utf8_is_valid((struct str){exact, n}));
            exact[at] = (char)0xff;
            CHECK(!utf8_check(&state, (struct str){exact, n}));
            free(exact);
        }
}

TEST(nothing_is_utf8)
{
    uint32_t state = 0;

    CHECK(utf8_is_valid((struct str){NULL, 0}));
    CHECK(utf8_check(&state, (struct str){NULL, 0}) && state == 0);
}

TEST(every_character_goes_there_and_back)
{
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        char bytes[UTF8_MAX];
        size_t n = utf8_encode(bytes, c);

        if (c >= 0xd800 && c <= 0xdfff)
            continue;
        if (utf8_one(bytes, bytes + n) != n || utf8_decode(bytes, n) != c)
            T_FAIL("U+%04X", c);
    }
}
