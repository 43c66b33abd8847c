#include "base/words.h"

#include "test/lib/words_plain.h"
#include "test/t.h"

/* The words of a text, "|" between them; a long one begins with "~". */
static const char *words_of(struct str text)
{
    static char out[8192];
    struct words w;
    size_t n = 0;

    words_begin(&w, text);
    while (words_next(&w)) {
        CHECK(w.word.n > 0 && w.word.n <= WORD_MAX_BYTES);
        CHECK(n + w.word.n + 3 < sizeof(out));
        if (n > 0)
            out[n++] = '|';
        if (w.is_long)
            out[n++] = '~';
        memcpy(out + n, w.word.p, w.word.n);
        n += w.word.n;
    }
    CHECK(!words_next(&w)); /* and stays at its end */
    CHECK(w.word.n == 0);
    out[n] = '\0';
    return out;
}

#define CHECK_WORDS(literal, wanted) \
    CHECK_STR(str_of(words_of(STR(literal))), wanted)

TEST(spaces_part_words_and_punctuation_is_words)
{
    CHECK_WORDS("", "");
    CHECK_STR(str_of(words_of((struct str){NULL, 0})), "");
    CHECK_WORDS(" \t\r\n ", "");
    CHECK_WORDS("Hello, World!", "hello|,|world|!");
    CHECK_WORDS("don't", "don|'|t");
    CHECK_WORDS("...", ".|.|.");
    CHECK_WORDS("a_b-c@d.e", "a|_|b|-|c|@|d|.|e");
    CHECK_WORDS("$5^2+`~|", "$|5|^|2|+|`|~||");
    CHECK_WORDS("  x  ", "x");
    CHECK_WORDS("\u00abx\u00bb\u2014y\u2026",
                "\u00ab|x|\u00bb|\u2014|y|\u2026");
}

TEST(every_kind_of_space_parts)
{
    CHECK_WORDS("a\u00a0b\u1680c\u2000d\u200ae", "a|b|c|d|e");
    CHECK_WORDS("a\u2028b\u2029c\u202fd\u205fe\u3000f", "a|b|c|d|e|f");
    CHECK_WORDS("a\tb\nc\rd", "a|b|c|d");
}

TEST(what_is_no_text_is_not_there)
{
    CHECK_WORDS("a\0b", "ab");
    CHECK_WORDS("a\x01"
                "b\x0b"
                "c\x0c"
                "d\x1f"
                "e\x7f"
                "f",
                "abcdef"); /* also the two that others count as spaces */
    CHECK_WORDS("a\xc2\x85"
                "b\u00adc\u200bd\u200de\ufefff",
                "abcdef");
    CHECK_WORDS("a\u202eb\u2066c\ue000d\U000f0000e\ufffdf", "abcdef");
}

TEST(bytes_that_are_not_utf8_are_not_there)
{
    CHECK_WORDS("a\xff"
                "b\xc3 c\xe2\x82",
                "ab|c");
    CHECK_WORDS("\xed\xa0\x80x\xc0\x80y\xf4\x90\x80\x80z", "xyz");
    CHECK_WORDS("\x80\xbf", "");
}

TEST(accents_go_and_letters_become_small)
{
    CHECK_WORDS("H\u00c9LLO \u00dcber na\u00efve", "hello|uber|naive");
    CHECK_WORDS("e\u0301\u0302 \u01d5 \u1e69", "e|u|s");
    CHECK_WORDS("\u0130stanbul I\u0307", "istanbul|i");
    CHECK_WORDS("\u03a3\u0391\u03a3 \u03c2", "\u03c3\u03b1\u03c3|\u03c2");
    CHECK_WORDS("\u00df \u1e9e \ufb01 \u00c6", "\u00df|\u00df|\ufb01|\u00e6");
    CHECK_WORDS("\u0301", "");
    CHECK_WORDS("\u212b \u2126 \u212a", "a|\u03c9|k");
    CHECK_WORDS("\u2260 \u037e \u1fef", "=|;|`");
    CHECK_WORDS("\U00010400 \u10a0", "\U00010428|\u2d00");
}

TEST(chinese_stands_alone_and_hangul_falls_apart)
{
    CHECK_WORDS("\u4f60\u597d world\u4e16", "\u4f60|\u597d|world|\u4e16");
    CHECK_WORDS("\uf900x\U0002f800", "\u8c48|x|\u4e3d");
    CHECK_WORDS("\u3042\u30a2\u30ac", "\u3042\u30a2\u30ab");
    CHECK_WORDS("\ud55c \uac00", "\u1112\u1161\u11ab|\u1100\u1161");
}

/* Kept marks in a row are sorted by class, as in canonical decomposition. */
TEST(marks_that_stay_are_put_in_order)
{
    CHECK_WORDS("x\u302e\u1b44y", "x\u1b44\u302ey");
    CHECK_WORDS("x\u302e\u0301\u1b44",
                "x\u1b44\u302e"); /* dropped: no matter */
    CHECK_WORDS("x\u302e\u00ad\u1b44", "x\u1b44\u302e");
    CHECK_WORDS("x\u302e\u0e31\u1b44", "x\u302e\u1b44"); /* of class 0 */
    CHECK_WORDS("x\u302ez\u1b44", "x\u302ez\u1b44");
    CHECK_WORDS("\u302e\u302f\u1b44", "\u1b44\u302e\u302f");
    CHECK_WORDS("\u302e \u1b44", "\u302e|\u1b44");
    CHECK_WORDS("\U0001d15e\u1b44", "\U0001d157\u1b44\U0001d165");
}

TEST(a_long_word_says_so_and_is_read_to_its_end)
{
    char text[3000];
    struct words w;

    memset(text, 'A', sizeof(text));
    for (size_t n = 98; n <= 103; n++) {
        words_begin(&w, (struct str){text, n});
        CHECK(words_next(&w));
        CHECK_INT(w.word.n, n < 100 ? n : 100);
        CHECK(w.is_long == (n > 100));
        CHECK(!words_next(&w));
    }
    text[2000] = '.';
    text[2001] = ' ';
    words_begin(&w, (struct str){text, sizeof(text)});
    CHECK(words_next(&w) && w.is_long && w.rest.n == 1000);
    CHECK(words_next(&w) && !w.is_long);
    CHECK_STR(w.word, ".");
    CHECK(words_next(&w) && w.is_long && w.rest.n == 0);
}

/* The longest characters, the longest marks, and those that become three. */
TEST(a_long_word_of_anything_fits)
{
    static const char *const units[] = {
        "\U0001f600", "\u302e", "\U0001d165", "\ud55c", "\U0001d160", "\u00e9"};
    char text[2000];
    struct words w;

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        size_t n = strlen(units[i]), len = 0;

        while (len + n <= sizeof(text)) {
            memcpy(text + len, units[i], n);
            len += n;
        }
        words_begin(&w, (struct str){text, len});
        CHECK(words_next(&w) && w.is_long && w.word.n <= WORD_MAX_BYTES);
        CHECK(!words_next(&w));
        words_begin(&w, (struct str){text, 33 * n});
        CHECK(words_next(&w) && !w.is_long);
    }
}

/* Random difficult texts, compared with the steps one after the other. */
TEST(one_walk_gives_what_the_steps_give)
{
    static const uint32_t awkward[] = {
        0,      '\t',   ' ',     '!',     'a',     'Z',     '9',     0x85,
        0xa0,   0xad,   0xc9,    0x130,   0x300,   0x301,   0x327,   0x344,
        0x3a3,  0xcc0,  0xe31,   0xf73,   0x1715,  0x1b44,  0x200d,  0x2028,
        0x2260, 0x302e, 0x302f,  0x3042,  0x4e00,  0xac00,  0xac01,  0xf900,
        0xfffd, 0xe000, 0x1d15e, 0x1d160, 0x1d165, 0x1d16d, 0x1f600, 0x10ffff,
    };
    uint32_t x = 7;
    char text[600];

    for (int round = 0; round < 3000; round++) {
        size_t n = 0, n_chars = (x >> 8) % 140;

        for (size_t i = 0; i < n_chars; i++) {
            uint32_t c;

            x = x * 1664525 + 1013904223;
            c = awkward[(x >> 8) % (sizeof(awkward) / sizeof(*awkward))];
            if ((x >> 28) == 0)
                text[n++] = (char)(x >> 16);
            else
                n += words_plain_encode(text + n, c);
        }
        words_plain_check((struct str){text, n});
    }
}

/* Every existing character, between two letters. */
TEST(every_character_goes_the_way_of_the_steps)
{
    char text[8];

    for (uint32_t c = 0; c < 0x110000; c += c < 0x30000 ? 1 : 97) {
        size_t n = 1;

        text[0] = 'a';
        if (c >= 0xd800 && c < 0xe000)
            continue;
        n += words_plain_encode(text + n, c);
        text[n++] = 'B';
        words_plain_check((struct str){text, n});
    }
}

/* Each word as it was written, "|" between them. */
static const char *places_of(struct str text)
{
    static char out[256];
    struct words w;
    size_t n = 0;

    words_begin(&w, text);
    while (words_next(&w)) {
        CHECK(w.place.p >= text.p && w.place.n > 0);
        CHECK(w.place.p + w.place.n <= w.rest.p);
        CHECK(n + w.place.n + 2 < sizeof(out));
        if (n > 0)
            out[n++] = '|';
        memcpy(out + n, w.place.p, w.place.n);
        n += w.place.n;
    }
    CHECK_INT(w.place.n, 0);
    out[n] = 0;
    return out;
}

static struct str places(struct str text)
{
    return str_of(places_of(text));
}

TEST(words_know_where_they_stand)
{
    CHECK_STR(places(STR("")), "");
    CHECK_STR(places(STR("  ")), "");
    CHECK_STR(places(STR("One")), "One");
    CHECK_STR(places(STR(" \tOne  Two ")), "One|Two");
    CHECK_STR(places(STR("don't (stop)")), "don|'|t|(|stop|)");
    CHECK_STR(places(STR("Caf\u00c9, \u5317\u4eac!")),
              "Caf\u00c9|,|\u5317|\u4eac|!");
    CHECK_STR(places(STR("\x01\xff"
                         "A\xff"
                         "b c")),
              "A\xff"
              "b|c");
}

TEST(signs_are_told_from_words)
{
    CHECK(word_is_punctuation(STR("!")));
    CHECK(word_is_punctuation(STR("$")));
    CHECK(word_is_punctuation(STR("\u00a1")));
    CHECK(!word_is_punctuation(STR("")));
    CHECK(!word_is_punctuation(STR("a")));
    CHECK(!word_is_punctuation(STR("7")));
    CHECK(!word_is_punctuation(STR("\u5317")));
    CHECK(!word_is_punctuation(STR("\U0001f600")));
    CHECK(!word_is_punctuation(STR("!!")));
}
