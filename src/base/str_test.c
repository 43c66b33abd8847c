#include "base/str.h"
#include "test/t.h"

TEST(comparing_looks_at_lengths_and_bytes)
{
    CHECK(str_eq(STR("abc"), STR("abc")));
    CHECK(!str_eq(STR("abc"), STR("abcd")));
    CHECK(str_eq(STR(""), (struct str){NULL, 0}));
    CHECK(str_eq_nocase(STR("Content-LENGTH"), STR("content-length")));
    CHECK(!str_eq_nocase(STR("\xc3\x84"), STR("\xc3\xa4"))); /* not ASCII */
    CHECK(str_cmp(STR("a"), STR("ab")) < 0);
    CHECK(str_cmp(STR("b"), STR("ab")) > 0);
    CHECK(str_cmp(STR(""), (struct str){NULL, 0}) == 0);
}

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

TEST(an_order_without_case_is_that_of_the_letters_in_lower_case)
{
    static const char *const words[] = {"",  "a",  "A",  "ab", "AB",      "aB1",
                                        "b", "B_", "b[", "z",  "\xc3\xa4"};
    enum { N = sizeof(words) / sizeof(*words) };

    for (size_t i = 0; i < N * N; i++) {
        char lower[2][8] = {"", ""};
        struct str a = str_of(words[i / N]), b = str_of(words[i % N]);

        for (size_t k = 0; k < a.n; k++)
            lower[0][k] = str_lower(a.p[k]);
        for (size_t k = 0; k < b.n; k++)
            lower[1][k] = str_lower(b.p[k]);
        CHECK_INT(sign(str_cmp_nocase(a, b)),
                  sign(str_cmp(str_of(lower[0]), str_of(lower[1]))));
        CHECK((str_cmp_nocase(a, b) == 0) == str_eq_nocase(a, b));
    }
}

TEST(a_front_ends_between_two_characters)
{
    /* a, two bytes, three bytes, four bytes, b */
    struct str s = STR("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"
                       "b");
    static const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};

    for (size_t most = 0; most < sizeof(ends) / sizeof(*ends); most++) {
        CHECK_INT(str_head(s, most).n, ends[most]);
        CHECK(str_head(s, most).p == s.p);
    }
    CHECK(str_head((struct str){NULL, 0}, 4).n == 0);
}

TEST(a_front_is_never_empty_where_something_is_left)
{
    CHECK_INT(str_head(STR("\xf0\x9f\x98\x80"), 1).n, 1);
    CHECK_INT(str_head(STR("\xf0\x9f\x98\x80"), 3).n, 3);
    /* Not UTF-8: cut exactly at the limit. */
    CHECK_INT(str_head(STR("\x80\x80\x80\x80\x80\x80\x80"), 5).n, 5);
    CHECK_INT(str_head(STR("a\x80\x80\x80\x80\x80\x80"), 5).n, 5);
}

TEST(cutting_walks_through_a_list)
{
    struct str rest = STR("a,,b");

    CHECK(str_eq(str_cut(&rest, ','), STR("a")));
    CHECK(str_eq(str_cut(&rest, ','), STR("")));
    CHECK(str_eq(str_cut(&rest, ','), STR("b")));
    CHECK(rest.n == 0);
    CHECK(str_eq(str_cut(&rest, ','), STR("")));
}

TEST(parts_are_clipped_to_the_string)
{
    CHECK(str_eq(str_sub(STR("hello"), 1, 3), STR("el")));
    CHECK(str_eq(str_sub(STR("hello"), 3, 99), STR("lo")));
    CHECK(str_sub(STR("hello"), 5, 2).n == 0);
    CHECK(str_eq(str_trim(STR(" \t a b\t")), STR("a b")));
    CHECK(str_trim(STR(" \t ")).n == 0);
    CHECK(str_eq(str_trim(STR("\n a\r")), STR("\n a\r")));
    CHECK(str_eq(str_trim_space(STR("\r\n\v\f\t a\nb \n")), STR("a\nb")));
    CHECK(str_trim_space(STR(" \r\n ")).n == 0);
    CHECK(str_trim_space((struct str){NULL, 0}).n == 0);
    CHECK(!str_is_space('\b') && !str_is_space('\016') && !str_is_space('\0'));
    CHECK(!str_is_space('\xa0'));
    CHECK(str_find(STR("abc"), 'c', 0) == 2);
    CHECK(str_find(STR("abc"), 'a', 1) == 3);
}

TEST(a_path_lies_in_a_folder)
{
    static const char *const rows[][2] = {
        {"", "."},       {"a", "."},       {"a/", "."},    {"a/b", "a"},
        {"a//b//", "a"}, {"a/b/c", "a/b"}, {"/", "/"},     {"//", "/"},
        {"/a", "/"},     {"//a/", "/"},    {"/a/b", "/a"}, {"./a", "."},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        CHECK(str_eq(str_parent(str_of(rows[i][0])), str_of(rows[i][1])));
}

TEST(bytes_become_hex)
{
    char text[9];

    str_hex(text, "\x00\x9f\xa0\xff", 4);
    CHECK_STR(str_of(text), "009fa0ff");
    str_hex(text, NULL, 0);
    CHECK_STR(str_of(text), "");
}

TEST(a_guess_is_the_nearest_name_if_it_is_near)
{
    struct str written = STR("lissten");
    struct str_guess g = str_guess(written);

    str_guess_offer(&g, STR("data"), str_distance(written, STR("data")));
    CHECK(g.name.n == 0);
    str_guess_offer(&g, STR("listed"), str_distance(written, STR("listed")));
    str_guess_offer(&g, STR("listen"), str_distance(written, STR("listen")));
    str_guess_offer(&g, STR("listem"), str_distance(written, STR("listem")));
    CHECK(str_eq(g.name, STR("listen")));
}

TEST(a_short_word_is_near_only_to_what_is_much_like_it)
{
    static const struct {
        struct str written, offered;
        bool is_near;
    } rows[] = {
        {STR("name"), STR("wake"), false}, {STR("kind"), STR("id"), false},
        {STR("name"), STR("names"), true}, {STR("naem"), STR("name"), true},
        {STR("ur"), STR("url"), true},     {STR("x"), STR("q"), false},
        {STR("X"), STR("x"), true},        {STR("lsiten"), STR("listn"), true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct str_guess g = str_guess(rows[i].written);

        str_guess_offer(&g, rows[i].offered,
                        str_distance(rows[i].written, rows[i].offered));
        CHECK((g.name.n > 0) == rows[i].is_near);
    }
}

TEST(tamed_text_stays_on_its_line)
{
    char text[] = "a\n\033[31m\x7f\xc2\x9b\xc2\xa0\xc3\xa9\xc2";
    char plain[] = "plain\xe2\x80";

    CHECK_INT(str_tame(text, sizeof(text) - 1), 14);
    CHECK(strcmp(text, "a??[31m??\xc2\xa0\xc3\xa9\xc2") == 0);
    CHECK_INT(str_tame(plain, sizeof(plain) - 1), 7);
    CHECK(strcmp(plain, "plain\xe2\x80") == 0);
    CHECK_INT(str_tame(NULL, 0), 0);
}

/* UTF-8 of a character below U+10000. */
static struct str encode(unsigned c, char out[4])
{
    size_t n = 0;

    if (c < 0x80) {
        out[n++] = (char)c;
    } else if (c < 0x800) {
        out[n++] = (char)(0xc0 | c >> 6);
        out[n++] = (char)(0x80 | (c & 63));
    } else {
        out[n++] = (char)(0xe0 | c >> 12);
        out[n++] = (char)(0x80 | (c >> 6 & 63));
        out[n++] = (char)(0x80 | (c & 63));
    }
    return (struct str){out, n};
}

TEST(every_character_that_steers_becomes_one_question_mark_and_no_other_does)
{
    for (unsigned c = 0; c < 0x10000; c++) {
        bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0);
        bool turns = (c >= 0x202a && c <= 0x202e) ||
                     (c >= 0x2066 && c <= 0x2069) || c == 0x200e ||
                     c == 0x200f || c == 0x61c;
        char utf8[4], text[8];
        struct str one = encode(c, utf8);
        size_t n = 0;

        text[n++] = 'a';
        memcpy(text + n, one.p, one.n);
        n += one.n;
        text[n++] = 'b';
        CHECK_INT(str_steers(one), is_control || turns ? one.n : 0);
        CHECK(str_has_any_control((struct str){text, n}) == is_control);
        for (size_t cut = 1; cut < one.n;
             cut++) /* half a character does not count */
            CHECK(str_steers(str_sub(one, 0, cut)) == 0);
        if (is_control || turns) {
            CHECK_INT(str_tame(text, n), 3);
            CHECK(memcmp(text, "a?b", 3) == 0);
        } else {
            CHECK_INT(str_tame(text, n), n);
            CHECK(memcmp(text + 1, one.p, one.n) == 0);
        }
    }
    CHECK(!str_has_any_control(STR("")));
    CHECK(str_has_any_control(STR("tab\t")));
}

TEST(nothing_is_near_to_a_very_long_word)
{
    char word[200];
    struct str_guess g;

    memset(word, 'x', sizeof(word));
    g = str_guess((struct str){word, sizeof(word)});
    str_guess_offer(&g, STR("x"), STR_FAR);
    CHECK(g.name.n == 0);
}

TEST(numbers_are_whole_or_refused)
{
    static const char *const bad[] = {
        "",    "-",   "+1",  " 1",
        "1 ",  "1.0", "0x1", "9223372036854775808",
        "1e3", "--1", "１",  "-9223372036854775809",
    };
    int64_t v = 7;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(str_to_i64(str_of(bad[i]), &v) == ERR_SYNTAX);
    CHECK(v == 7);
    CHECK(str_to_i64(STR("9223372036854775807"), &v) == OK && v == INT64_MAX);
    CHECK(str_to_i64(STR("-9223372036854775808"), &v) == OK && v == INT64_MIN);
    CHECK(str_to_i64(STR("-0"), &v) == OK && v == 0);
    CHECK(str_to_i64(STR("0042"), &v) == OK && v == 42);
}

TEST(digits_are_digits_and_nothing_else)
{
    CHECK(str_is_digits(STR("0")) && str_is_digits(STR("0123456789")));
    CHECK(!str_is_digits(STR("")) && !str_is_digits((struct str){NULL, 0}));
    CHECK(!str_is_digits(STR("12/")) && !str_is_digits(STR(":12")));
    CHECK(!str_is_digits(STR("-1")) && !str_is_digits(STR("1 ")));
}

TEST(strings_are_packed_one_behind_the_other)
{
    char room[] = "........", *at = room;
    struct str a = str_pack(&at, STR("ab"));
    struct str none = str_pack(&at, (struct str){NULL, 0});
    struct str b = str_pack(&at, STR("cde"));

    CHECK(a.p == room && none.p == room + 2 && !none.n && b.p == room + 2);
    CHECK(str_eq(a, STR("ab")) && str_eq(b, STR("cde")));
    CHECK(at == room + 5 && str_eq(str_of(room), STR("abcde...")));
}

TEST(digits_of_base64_have_their_values)
{
    const char *digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                         "0123456789+/";

    for (int c = 0; c < 256; c++) {
        const char *at = c ? strchr(digits, c) : NULL;

        CHECK(str_base64_value((char)c) == (at ? (int)(at - digits) : -1));
    }
}

TEST(distance_counts_edits_and_swaps)
{
    char longest[65];

    CHECK(str_distance(STR("listen"), STR("listen")) == 0);
    CHECK(str_distance(STR("LISTEN"), STR("listen")) == 0);
    CHECK(str_distance(STR("lisetn"), STR("listen")) == 1);
    CHECK(str_distance(STR("kitten"), STR("sitting")) == 3);
    CHECK(str_distance(STR(""), STR("abc")) == 3);
    memset(longest, 'x', sizeof(longest));
    CHECK(str_distance((struct str){longest, 64}, STR("")) == 64);
    CHECK(str_distance((struct str){longest, 65}, STR("")) == STR_FAR);
}

/* Every byte at every position of every length, in memory that ends there. */
TEST(control_characters_are_found_wherever_they_are)
{
    int n_wrong = 0;

    for (size_t n = 0; n <= 50; n++) {
        char *p = malloc(n ? n : 1);
        struct str s = {p, n};

        memset(p, 'a', n);
        n_wrong += str_has_control(s) || str_has_control_plain(s);
        for (size_t at = 0; at < n; at++)
            for (int c = 0; c < 256; c++) {
                bool is_one = (c < 32 && c != 9) || c == 127;

                p[at] = (char)c;
                n_wrong += str_has_control(s) != is_one;
                n_wrong += str_has_control_plain(s) != is_one;
                p[at] = at % 2 ? '\t' : '\xff';
            }
        free(p);
    }
    CHECK(n_wrong == 0);
}

TEST(every_error_has_a_row)
{
    for (int e = OK + 1; e < N_ERR; e++) {
        const struct err_row *row = err_row((enum err)e);

        CHECK(row->code && row->wording);
        CHECK(row->http_status >= 400 && row->http_status < 600);
        CHECK(row->rpc_code <= -32000 && row->rpc_code >= -32768);
        CHECK(row->exit_status >= EXIT_FAILED &&
              row->exit_status <= EXIT_NOT_ALLOWED);
        for (int other = OK + 1; other < e; other++)
            CHECK(strcmp(err_row((enum err)other)->code, row->code) != 0);
    }
    CHECK(err_row(OK) == err_row(ERR_INTERNAL));
    CHECK(err_row((enum err)9999) == err_row(ERR_INTERNAL));
}

TEST(words_too_long_are_cut_not_lost)
{
    char word[1024];
    struct why why;

    memset(word, 'w', sizeof(word));
    CHECK(why_err(&why, ERR_IO, "%.*s", 1024, word) == ERR_IO);
    CHECK(strlen(why.text) == sizeof(why.text) - 1);
    CHECK(why_err(NULL, ERR_IO, "not wanted") == ERR_IO);
}
