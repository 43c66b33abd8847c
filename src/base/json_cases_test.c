/* Valid and invalid JSON, case by case, in the spirit of JSONTestSuite but of
 * our own making. Each text goes through every reader (test/json_agree.h). */
#include "base/json.h"

#include "test/json_agree.h"
#include "test/t.h"

#define YES(literal)                         \
    {                                        \
        {literal, sizeof(literal) - 1}, true \
    }
#define NO(literal)                           \
    {                                         \
        {literal, sizeof(literal) - 1}, false \
    }

struct json_case {
    struct str text;
    bool is_json;
};

/* clang-format off */
static const struct json_case words[] = {
    YES("null"), YES("true"), YES("false"), YES(" null"), YES("null "),
    YES("\n\ttrue\r\n"), YES("   false   "),
    NO(""), NO(" "), NO("\n"), NO("n"), NO("nul"), NO("nulL"), NO("NULL"),
    NO("Null"), NO("nulll"), NO("null null"), NO("nulltrue"), NO("tru"),
    NO("True"), NO("TRUE"), NO("truE"), NO("true1"), NO("true,"), NO("fals"),
    NO("False"), NO("falsee"), NO("nil"), NO("undefined"), NO("None"),
    NO("yes"), NO("on"), NO("a"), NO("abc"), NO("'a'"), NO("`a`"), NO("*"),
    NO("&"), NO("#"), NO("@"), NO(";"), NO("="), NO("~"), NO("\\"), NO("."),
    NO(","), NO(":"), NO("]"), NO("}"), NO("\0"), NO("null\0"), NO("\0null"),
    NO("\x7f"), NO("true\x7f"),
};

static const struct json_case spaces[] = {
    YES(" [ ] "), YES("\t[\t]\t"), YES("\r[\r]\r"), YES("\n[\n]\n"),
    YES(" { } "), YES("{\n\"a\"\n:\n1\n,\n\"b\"\n:\n2\n}"),
    YES("[ 1 , 2 , 3 ]"), YES("                                  1"),
    YES("[1                                               ]"),
    NO("\f1"), NO("1\f"), NO("\v1"), NO("1\v"), NO("\b1"), NO("\xa0""1"),
    NO("\xc2\xa0""1"), NO("1\xc2\xa0"), NO("\xe2\x80\xa8""1"),
    NO("\xe3\x80\x80""1"), NO("\xef\xbb\xbf""1"), NO("\xef\xbb\xbf"),
    NO("\xef\xbb"), NO("\xef\xbb\xbf{}"), NO("1\xef\xbb\xbf"),
    NO("\xff\xfe""1\0"), NO("\xfe\xff\0""1"), NO("[\f]"), NO("[1,\v2]"),
    NO("{\0}"), NO("[\0]"), NO("[\x01]"), NO("\x1e{}"),
};

static const struct json_case numbers[] = {
    YES("0"), YES("-0"), YES("1"), YES("-1"), YES("10"), YES("1234567890"),
    YES("123456789012345678"), YES("999999999999999999"),
    YES("1000000000000000000"), YES("9223372036854775807"),
    YES("-9223372036854775807"), YES("-9223372036854775808"),
    YES("0.0"), YES("-0.0"), YES("0.1"), YES("1.0"), YES("1.5"), YES("-1.5"),
    YES("0.000000000000000000000000000000000000000000000000000000000001"),
    YES("3.141592653589793238462643383279502884197169399375105820974944"),
    YES("1e0"), YES("1E0"), YES("1e1"), YES("1e+1"), YES("1e-1"), YES("1E+1"),
    YES("1E-1"), YES("0e0"), YES("0E0"), YES("0e+0"), YES("0e-0"),
    YES("-0e0"), YES("0.0e0"), YES("1.5e10"), YES("1.5E-10"), YES("1e00"),
    YES("1e01"), YES("1e-01"), YES("1e+0001"), YES("1e308"), YES("1e-308"),
    YES("1.7976931348623157e308"), YES("1.7976931348623158e308"),
    YES("-1.7976931348623157e308"), YES("2.2250738585072014e-308"),
    YES("4.9e-324"), YES("5e-324"), YES("1e-400"), YES("-1e-400"),
    YES("1e-99999999999999999999"), YES("0e99999999999999999999"),
    YES("0e400"), YES("0.0e400"), YES("9223372036854775808.0"),
    YES("18446744073709551616e0"), YES("123456789012345678901234567890.0"),
    YES("100000000000000000000e-20"), YES("0.00000000000000000001e20"),
    YES("[-1]"), YES("[1,-1,0]"), YES("[1 ]"), YES("[1e5]"),
    NO("-"), NO("+"), NO("+1"), NO("+0"), NO("--1"), NO("-+1"), NO("+-1"),
    NO("- 1"), NO("00"), NO("01"), NO("-01"), NO("-00"), NO("007"),
    NO("00.5"), NO("01e1"), NO("0x1"), NO("0X1"), NO("0b1"), NO("0o7"),
    NO("1."), NO("-1."), NO("0."), NO(".1"), NO("-.1"), NO("1..2"),
    NO("1.2.3"), NO("1.e1"), NO(".e1"), NO("1.-1"), NO("1e"), NO("1E"),
    NO("1e+"), NO("1e-"), NO("1E+"), NO("1.5e"), NO("1.5e+"), NO("0e"),
    NO("0e+"), NO("1ee1"), NO("1e1e1"), NO("1e1.5"), NO("1e 1"), NO("1 e1"),
    NO("1e+-1"), NO("1e++1"), NO("e1"), NO("1_000"), NO("1,000"), NO("1 000"),
    NO("1 2"), NO("1a"), NO("1f"), NO("1L"), NO("1n"), NO("1%"), NO("1\0"),
    NO("NaN"), NO("-NaN"), NO("nan"), NO("Infinity"), NO("-Infinity"),
    NO("inf"), NO("-inf"), NO("1.#INF"), NO("\xef\xbc\x91"), NO("\xc2\xb9"),
    NO("9223372036854775808"), NO("-9223372036854775809"),
    NO("10000000000000000000"), NO("18446744073709551615"),
    NO("18446744073709551616"), NO("-18446744073709551617"),
    NO("27670116110564327423"), NO("99999999999999999999"),
    NO("100000000000000000000000000000000"), NO("1e309"), NO("-1e309"),
    NO("1e400"), NO("1.7976931348623159e308"), NO("1e99999999999999999999"),
    NO("123456789e301"), NO("[-]"), NO("[1.]"), NO("[01]"), NO("[1e]"),
    NO("[1,-]"), NO("{\"a\":-}"), NO("{\"a\":1.}"), NO("{\"a\":+1}"),
};

static const struct json_case strings[] = {
    YES("\"\""), YES("\"a\""), YES("\" \""), YES("\"\x7f\""), YES("\"/\""),
    YES("\"'\""), YES("\"\\\"\""), YES("\"\\\\\""), YES("\"\\/\""),
    YES("\"\\b\\f\\n\\r\\t\""), YES("\"\\u0000\""), YES("\"\\u0020\""),
    YES("\"\\u00e9\""), YES("\"\\u00E9\""), YES("\"\\uABCD\""),
    YES("\"\\uabcd\""), YES("\"\\uAbCd\""), YES("\"\\uffff\""),
    YES("\"\\ufffe\""), YES("\"\\ud7ff\""), YES("\"\\ue000\""),
    YES("\"\\ud800\\udc00\""), YES("\"\\udbff\\udfff\""),
    YES("\"\\uD83D\\uDE00\""), YES("\"\\ud83d\\ude00\\ud83d\\ude00\""),
    YES("\"\\\\u0041\""), YES("\"\\\\\\u0041\""), YES("\"\\u005c\\u0022\""),
    YES("\"\\u000a\""), YES("\"a\\\"b\\\"c\""), YES("\"//\""),
    YES("\"/* */\""), YES("\"[{,:}]\""), YES("\"\xc2\x80\""),
    YES("\"\xc3\xa9\""), YES("\"\xdf\xbf\""), YES("\"\xe0\xa0\x80\""),
    YES("\"\xe2\x82\xac\""), YES("\"\xe2\x80\xa8\""), YES("\"\xed\x9f\xbf\""),
    YES("\"\xee\x80\x80\""), YES("\"\xef\xbb\xbf\""), YES("\"\xef\xbf\xbf\""),
    YES("\"\xf0\x90\x80\x80\""), YES("\"\xf0\x9f\x98\x80\""),
    YES("\"\xf4\x8f\xbf\xbf\""), YES("\"0123456789abcde\""),
    YES("\"0123456789abcdef\""), YES("\"0123456789abcdefg\""),
    YES("\"0123456789abcdef0123456789abcdef0123456789abcdef\""),
    YES("\"0123456789abcd\xc3\xa9\""), YES("\"0123456789abcde\xc3\xa9\""),
    YES("\"0123456789abcde\\n\""), YES("\"0123456789abcdef\\u0041\""),
    YES("[\"a\",\"a\"]"), YES("\"\\u0060\\u012a\\u12AB\""),
    NO("\""), NO("\"a"), NO("a\""), NO("\"a\"b\""), NO("\"a\"\"b\""),
    NO("\"a\" \"b\""), NO("\"\"\""), NO("\"\\"), NO("\"\\\""), NO("\"\\\\"),
    NO("\"\\a\""), NO("\"\\v\""), NO("\"\\0\""), NO("\"\\x41\""),
    NO("\"\\'\""), NO("\"\\ \""), NO("\"\\N\""), NO("\"\\U0041\""),
    NO("\"\\\n\""), NO("\"\\\0\""), NO("\"\\\xc3\xa9\""), NO("\"\\u\""),
    NO("\"\\u0\""), NO("\"\\u00\""), NO("\"\\u004\""), NO("\"\\u004"),
    NO("\"\\u00g0\""), NO("\"\\u 041\""), NO("\"\\u-041\""),
    NO("\"\\u{41}\""), NO("\"\\u00\x00""0\""), NO("\"\\ud800\""),
    NO("\"\\ud800a\""), NO("\"\\ud800\\n\""), NO("\"\\ud800\\u0041\""),
    NO("\"\\ud800\\ud800\""), NO("\"\\ud800\\u\""), NO("\"\\ud800\\udc0\""),
    NO("\"\\ud800\\\""), NO("\"\\ud800"), NO("\"\\ud800\\"),
    NO("\"\\ud800\\u"), NO("\"\\ud800\\udc0"), NO("\"\\ud800\\ue000\""),
    NO("\"\\ud800\\udbff\""), NO("\"\\udc00\""), NO("\"\\udfff\""),
    NO("\"\\udc00\\ud800\""), NO("\"\\udc00\\udc00\""), NO("\"\\ud800\\\\udc00\""),
    NO("\"\\ud83d\xf0\x9f\x98\x80\""), NO("\"\0\""), NO("\"\x01\""),
    NO("\"\x1f\""), NO("\"\t\""), NO("\"\n\""), NO("\"\r\""), NO("\"a\nb\""),
    NO("\"0123456789abcde\n\""), NO("\"0123456789abcdef\n\""),
    NO("\"\x80\""), NO("\"\xbf\""), NO("\"\xc0\x80\""), NO("\"\xc0\xaf\""),
    NO("\"\xc1\xbf\""), NO("\"\xc2\""), NO("\"\xc2"), NO("\"\xc3\x28\""),
    NO("\"\xc3\xc3\""), NO("\"\xe0\x80\x80\""), NO("\"\xe0\x9f\xbf\""),
    NO("\"\xe2\x82\""), NO("\"\xe2\""), NO("\"\xe2\x28\xa1\""),
    NO("\"\xe2\x82\x28\""), NO("\"\xe2\x82"), NO("\"\xed\xa0\x80\""),
    NO("\"\xed\xbf\xbf\""), NO("\"\xed\xa0\xbd\xed\xb8\x80\""),
    NO("\"\xf0\x80\x80\x80\""), NO("\"\xf0\x8f\xbf\xbf\""),
    NO("\"\xf0\x9f\x98\""), NO("\"\xf0\x9f\""), NO("\"\xf0\""),
    NO("\"\xf0\x28\x8c\xbc\""), NO("\"\xf0\x90\x28\xbc\""),
    NO("\"\xf0\x28\x8c\x28\""), NO("\"\xf4\x90\x80\x80\""),
    NO("\"\xf5\x80\x80\x80\""), NO("\"\xf8\x88\x80\x80\x80\""),
    NO("\"\xfc\x84\x80\x80\x80\x80\""), NO("\"\xfe\""), NO("\"\xff\""),
    NO("\"\xe9\""), NO("\"0123456789abcd\xc3\""), NO("\"0123456789abcde\xff\""),
    NO("\"0123456789abcdef\xff\""), NO("'a'"), NO("\xe2\x80\x9c""a\xe2\x80\x9d"),
    NO("[\"\xff\"]"), NO("{\"\xff\":1}"), NO("{\"a\":\"\xff\"}"),
    NO("{\"\\ud800\":1}"), NO("{\"\\x\":1}"), NO("{\"\n\":1}"),
};

static const struct json_case arrays[] = {
    YES("[]"), YES("[ ]"), YES("[null]"), YES("[[]]"), YES("[[],[]]"),
    YES("[[[]]]"), YES("[1]"), YES("[1,2]"), YES("[1,\"a\",null,true,{},[]]"),
    YES("[{}]"), YES("[{},{}]"), YES("[[1],[2]]"), YES("[\"\"]"),
    YES("[[[[[[[[[[1]]]]]]]]]]"),
    NO("["), NO("[["), NO("[[]"), NO("[1"), NO("[1,"), NO("[,"), NO("[,]"),
    NO("[1,]"), NO("[,1]"), NO("[1,,2]"), NO("[1 2]"), NO("[1;2]"),
    NO("[1:2]"), NO("[\"a\":1]"), NO("[1}"), NO("[}"), NO("[1]]"), NO("[]]"),
    NO("[][]"), NO("[] []"), NO("[],"), NO("[]1"), NO("1[]"), NO("[[]]]"),
    NO("[\"a\" \"b\"]"), NO("[\"a"), NO("[\"a\""), NO("[tru]"), NO("[nul"),
    NO("[1,2"), NO("[...]"), NO("[1,...]"), NO("(1)"), NO("<1>"), NO("[a]"),
    NO("[']"), NO("[\\n]"), NO("[1]/*c*/"), NO("[1]//c"), NO("/*c*/[1]"),
    NO("[1]#c"), NO("[/**/]"), NO("[1,//\n2]"), NO("[]\0"), NO("[1]x"),
};

static const struct json_case objects[] = {
    YES("{}"), YES("{ }"), YES("{\"\":1}"), YES("{\"a\":1}"),
    YES("{\"a\":null}"), YES("{\"a\":{}}"), YES("{\"a\":[]}"),
    YES("{\"a\":1,\"b\":2}"), YES("{\"a\":{\"a\":{\"a\":1}}}"),
    YES("{\"a\":1,\"A\":2}"), YES("{\"a\":1,\"\":2}"), YES("{\" \":1}"),
    YES("{\"a\":[{\"a\":1},{\"a\":1}]}"), YES("{\"\\u0000\":1}"),
    YES("{\"\\u0000\":1,\"\":2}"), YES("{\"a\\u0000\":1,\"a\":2}"),
    YES("{\"a\\u0000b\":1,\"a\\u0000c\":2}"), YES("{\"\\\"\":1}"),
    YES("{\"\\u00e9\":1,\"e\xcc\x81\":2}"), YES("{\"abcdefgh\":1,\"abcdefg\":2}"),
    YES("{\"abcdefghXijklmnop\":1,\"abcdefghYijklmnop\":2}"),
    YES("{\"\xc3\xa9\":1}"), YES("{\"a\":\"b\",\"b\":\"a\"}"),
    YES("{\"__proto__\":1}"), YES("[{\"a\":1},{\"a\":2}]"),
    YES("{\"a\":{\"b\":1},\"b\":{\"a\":1}}"), YES("{\"1\":1,\"01\":2}"),
    NO("{"), NO("{\"a"), NO("{\"a\""), NO("{\"a\":"), NO("{\"a\":1"),
    NO("{\"a\":1,"), NO("{\"a\":1,}"), NO("{,}"), NO("{,\"a\":1}"),
    NO("{\"a\"}"), NO("{\"a\":}"), NO("{\"a\",1}"), NO("{\"a\" 1}"),
    NO("{\"a\":1 \"b\":2}"), NO("{\"a\":1,,\"b\":2}"), NO("{\"a\"::1}"),
    NO("{:1}"), NO("{1:1}"), NO("{a:1}"), NO("{'a':1}"), NO("{null:1}"),
    NO("{true:1}"), NO("{[]:1}"), NO("{{}:1}"), NO("{\"a\":1]"), NO("{]"),
    NO("{\"a\":1}}"), NO("{}{}"), NO("{} {}"), NO("{},"), NO("{}x"),
    NO("{\"a\":1;\"b\":2}"), NO("{\"a\"=1}"), NO("{\"a\"=>1}"),
    NO("{\"a\":a}"), NO("{\"a\":1 /* */}"), NO("{\"a\":1}//"), NO("{\"a\"\0:1}"),
    NO("{\"a\":1,\"b\"}"), NO("{\"a\":1,\"b\":}"), NO("{\"a\":1,2}"),
    NO("{\"a\":[}"), NO("{\"a\":[1}]"), NO("[{\"a\":1]}"), NO("{\"a\":{}"),
    NO("{\"a\":1,\"a\":1}"), NO("{\"a\":1,\"b\":2,\"a\":3}"),
    NO("{\"\":1,\"\":2}"), NO("{\"a\":1,\"\\u0061\":2}"),
    NO("{\"\\u0061\":1,\"a\":2}"), NO("{\"\\u0061\":1,\"\\u0061\":2}"),
    NO("{\"\\n\":1,\"\\u000a\":2}"), NO("{\"\\n\":1,\"\\u000A\":2}"),
    NO("{\"/\":1,\"\\/\":2}"), NO("{\"\\u00e9\":1,\"\xc3\xa9\":2}"),
    NO("{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}"),
    NO("{\"\\u0000\":1,\"\\u0000\":2}"), NO("[{\"a\":1,\"a\":2}]"),
    NO("{\"x\":{\"a\":1,\"a\":2}}"), NO("{\"x\":[[{\"a\":1,\"a\":2}]]}"),
    NO("{\"a\":{\"a\":1},\"a\":2}"), NO("{\"abcdefgh\":1,\"abcdefg\\u0068\":2}"),
    NO("{\"abcdefghijklmnopqrstuvwxyz\":1,\"abcdefghijklmnopqrstuvwxyz\":2}"),
};
/* clang-format on */

static void judge(struct str text, bool is_json)
{
    enum json_verdict v = json_agree(text);

    if (v == (is_json ? JSON_ACCEPTED : JSON_REFUSED))
        return;
    fprintf(stderr, "%s: %.*s\n",
            v == JSON_ACCEPTED  ? "accepted"
            : v == JSON_REFUSED ? "refused"
                                : "disagreed",
            STR_ARG(text));
    exit(1);
}

static bool is_blank(struct str s)
{
    return strspn(s.p, " \t\r\n") == s.n;
}

/* Each case alone, and inside other documents, where the verdict is the
 * same. */
static void judge_all(const struct json_case *cases, size_t n)
{
    static const struct str around[][2] = {
        {{"[", 1}, {"]", 1}},
        {{"{\"k\":[null,", 11}, {"]}", 2}},
        {{"{\"k\":", 5}, {",\"\":{}}", 7}},
    };

    for (size_t i = 0; i < n; i++) {
        struct str s = cases[i].text;

        judge(s, cases[i].is_json);
        for (size_t k = 0; k < 3 && !is_blank(s); k++) {
            struct buf b;

            buf_init(&b, 1000);
            buf_add_str(&b, around[k][0]);
            buf_add_str(&b, s);
            buf_add_str(&b, around[k][1]);
            judge(buf_str(&b), cases[i].is_json);
            buf_fini(&b);
        }
    }
}

#define JUDGE_ALL(cases) judge_all(cases, sizeof(cases) / sizeof(*(cases)))

TEST(words_are_json_or_not)
{
    JUDGE_ALL(words);
}

TEST(space_is_json_or_not)
{
    JUDGE_ALL(spaces);
}

TEST(numbers_are_json_or_not)
{
    JUDGE_ALL(numbers);
}

TEST(strings_are_json_or_not)
{
    JUDGE_ALL(strings);
}

TEST(arrays_are_json_or_not)
{
    JUDGE_ALL(arrays);
}

TEST(objects_are_json_or_not)
{
    JUDGE_ALL(objects);
}

TEST(no_control_character_stands_in_a_string_anywhere)
{
    for (size_t at = 1; at < 40; at++)
        for (int c = 0; c < 0x21; c++) {
            char text[48];

            memset(text, 'x', sizeof(text));
            text[0] = text[41] = '"';
            text[at] = (char)c;
            judge((struct str){text, 42}, c >= 0x20);
        }
}

TEST(only_nine_letters_follow_a_backslash)
{
    for (int c = 0; c < 256; c++) {
        char text[] = {'"', '\\', (char)c, '0', '0', '4', '1', '"'};

        judge((struct str){text, sizeof(text)}, c && strchr("\"\\/bfnrtu", c));
    }
}

/* The slow reference: take the number apart and check its range. */
static bool is_utf8(const unsigned char *p, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

    for (size_t i = 0; i < n;) {
        size_t len = p[i] < 0x80           ? 1
                     : (p[i] >> 5) == 6    ? 2
                     : (p[i] >> 4) == 14   ? 3
                     : (p[i] >> 3) == 0x1e ? 4
                                           : 0;
        uint32_t c = len < 2 ? p[i] : p[i] & (0x7fu >> len);

        if (len == 0 || i + len > n)
            return false;
        for (size_t k = 1; k < len; k++) {
            if ((p[i + k] & 0xc0) != 0x80)
                return false;
            c = c << 6 | (p[i + k] & 0x3f);
        }
        if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            return false;
        i += len;
    }
    return true;
}

TEST(utf8_is_told_from_what_is_not)
{
    static const unsigned char third[] = {0x20, 0x7f, 0x80, 0x8f, 0x90,
                                          0xbf, 0xc2, 0xf0, 0xff};
    unsigned char text[6] = {'"', 0, 0, 0, 0, '"'};
    struct str s = {(char *)text, sizeof(text)};

    for (int a = 0x80; a < 256; a++)
        for (int b = 0x23; b < 256; b++)
            for (size_t i = 0; b != '\\' && i < sizeof(third); i++)
                for (size_t k = 0; k < sizeof(third); k++) {
                    text[1] = (unsigned char)a;
                    text[2] = (unsigned char)b;
                    text[3] = third[i];
                    text[4] = third[k];
                    CHECK((json_check(s, NULL) == OK) == is_utf8(text + 1, 4));
                }
}

/* Brackets n deep, of one kind or alternating. */
static void nested(struct buf *b, int n, int kinds)
{
    buf_clear(b);
    for (int i = 0; i < n; i++)
        buf_add_str(b, i % kinds ? STR("{\"k\":") : STR("["));
    buf_add_char(b, '0');
    for (int i = n; i-- > 0;)
        buf_add_char(b, i % kinds ? '}' : ']');
}

TEST(nesting_ends_at_the_limit)
{
    struct buf b;

    buf_init(&b, 10 << 20);
    for (int kinds = 1; kinds <= 2; kinds++) {
        nested(&b, JSON_DEPTH_MAX - 1, kinds);
        judge(buf_str(&b), true);
        nested(&b, JSON_DEPTH_MAX, kinds);
        judge(buf_str(&b), true);
        nested(&b, JSON_DEPTH_MAX + 1, kinds);
        judge(buf_str(&b), false);
        nested(&b, 1000000, kinds);
        judge(buf_str(&b), false);
    }
    buf_fini(&b);
}

TEST(every_cut_of_a_document_is_refused)
{
    struct str s = STR("{\"a\":[1.5e1,\"\\ud83d\\ude00\xf0\x9f\x98\x80\",null,"
                       "true,false],\"b\":{\"c\":-12}}");

    for (size_t n = 0; n < s.n; n++)
        judge((struct str){s.p, n}, false);
    judge(s, true);
}
