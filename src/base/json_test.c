/* json keeps its contract: positions of errors, the tree, the scanner,
 * comments, limits and failed allocations. json_cases_test.c tests which texts
 * are JSON, json_write_test.c the writer. */
#include "base/json.h"

#include <math.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/fault.h"
#include "test/json_agree.h"
#include "test/t.h"

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

/* Errors. */

static const struct {
    struct str text;
    const char *what;
    size_t at;
    unsigned line, col;
} errors[] = {
    {{"", 0}, "the text ends too early", 0, 1, 1},
    {{"\n\n ", 3}, "the text ends too early", 3, 3, 2},
    {{"[1,\n 2,\n x]", 11}, "this is not a value", 9, 3, 2},
    {{"[1,\n 2,\n nul]", 13}, "this is not a value", 9, 3, 2},
    {{"{\"a\":1,\n\"a\":2}", 14}, "this key is a duplicate", 8, 2, 1},
    {{"{\"a\" 1}", 7}, "a colon is expected here", 5, 1, 6},
    {{"{\"a\":1 2}", 9}, "a comma or } is expected here", 7, 1, 8},
    {{"[1 2]", 5}, "a comma or ] is expected here", 3, 1, 4},
    {{"[1}", 3}, "a comma or ] is expected here", 2, 1, 3},
    {{"{a:1}", 5}, "a key in quotes is expected here", 1, 1, 2},
    {{"[1,]", 4}, "this is not a value", 3, 1, 4},
    {{"{\"a\":1,}", 8}, "a key in quotes is expected here", 7, 1, 8},
    {{"1 2", 3}, "something follows the document", 2, 1, 3},
    {{"[\"ab", 4}, "the text ends inside a string", 4, 1, 5},
    {{"[\"ab\\", 5}, "the text ends inside a string", 5, 1, 6},
    {{"\"a\tb\"", 5}, "a control character must be escaped", 2, 1, 3},
    {{"\"ab\\x\"", 6}, "this escape is unknown", 3, 1, 4},
    {{"\"ab\\u12\"", 8}, "\\u takes four hex digits", 3, 1, 4},
    {{"\"a\\ud800b\"", 10}, "half of a surrogate pair", 2, 1, 3},
    {{"\"a\\udc00b\"", 10}, "half of a surrogate pair", 2, 1, 3},
    {{"\"a\xc3\"", 4}, "this is not UTF-8", 2, 1, 3},
    {{"\xef\xbb\xbf{}", 5}, "a byte order mark is not allowed", 0, 1, 1},
    {{"[-]", 3}, "a digit must follow the minus", 2, 1, 3},
    {{"[01]", 4}, "a number must not begin with 0", 1, 1, 2},
    {{"[1.]", 4}, "a digit must follow the point", 3, 1, 4},
    {{"[1e]", 4}, "the exponent has no digits", 3, 1, 4},
    {{"[1e", 3}, "the text ends too early", 3, 1, 4},
    {{"[9223372036854775808]", 21}, "this number does not fit", 1, 1, 2},
    {{"[ 1e400]", 8}, "this number does not fit", 2, 1, 3},
};

TEST(an_error_says_what_and_where)
{
    for (size_t i = 0; i < N_OF(errors); i++) {
        struct json_error e = {0};

        CHECK(json_check(errors[i].text, &e) == ERR_SYNTAX);
        if (strcmp(e.what, errors[i].what) != 0 || e.at != errors[i].at)
            fprintf(stderr, "%.*s: %s at %zu\n", STR_ARG(errors[i].text),
                    e.what, e.at);
        CHECK(strcmp(e.what, errors[i].what) == 0 && e.at == errors[i].at);
        CHECK(e.line == errors[i].line && e.col == errors[i].col);
        CHECK(json_agree(errors[i].text) == JSON_REFUSED);
    }
}

TEST(half_a_pair_is_mended_where_it_stands_and_nothing_else)
{
    static const struct {
        const char *text, *mended;
        size_t n;
    } cases[] = {
        {"\"a\\ud83d\"", "\"a\\ufffd\"", 1},
        {"\"\\uDE00b\"", "\"\\ufffdb\"", 1},
        {"\"\\ud83d\\ude00\"", "\"\\ud83d\\ude00\"", 0},
        {"\"\\ud83d\\ud83d\\ude00\"", "\"\\ufffd\\ud83d\\ude00\"", 1},
        {"\"\\ude00\\ud83d\"", "\"\\ufffd\\ufffd\"", 2},
        {"\"\\\\ud83d\"", "\"\\\\ud83d\"", 0}, /* a backslash, and "ud83d" */
        {"\"\\\\\\ud83d\"", "\"\\\\\\ufffd\"", 1},
        {"\"\\ud7ff\\ue000\"", "\"\\ud7ff\\ue000\"", 0},
        {"\"\\ud83", "\"\\ud83", 0},
        {"\"\\", "\"\\", 0},
        {"", "", 0},
    };

    for (size_t i = 0; i < N_OF(cases); i++) {
        size_t n = strlen(cases[i].text);
        char *text = malloc(n ? n : 1); /* no read passes its end */

        memcpy(text, cases[i].text, n);
        CHECK_INT(json_mend_halves(text, n), cases[i].n);
        CHECK_STR(((struct str){text, n}), cases[i].mended);
        free(text);
    }
}

TEST(a_place_has_a_line_and_a_column)
{
    struct str text = STR("ab\ncd\n\nx");
    static const unsigned want[][2] = {{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2},
                                       {2, 3}, {3, 1}, {4, 1}, {4, 2}, {4, 2}};
    unsigned line, col;

    for (size_t at = 0; at < N_OF(want); at++) {
        json_where(text, at, &line, &col);
        CHECK(line == want[at][0] && col == want[at][1]);
    }
    json_where((struct str){NULL, 0}, 0, &line, &col);
    CHECK(line == 1 && col == 1);
}

/* The tree. */

static struct arena arena;

static struct json *parsed(struct str text)
{
    struct json_error e;
    struct json *v;

    if (!arena.cap)
        arena_init(&arena, 64 << 20);
    v = json_parse(&arena, text, 0, &e);
    if (!v)
        fprintf(stderr, "%.*s: %s at %zu\n", STR_ARG(text), e.what, e.at);
    CHECK(v);
    return v;
}

TEST(a_tree_answers_questions_and_has_a_fallback_for_the_rest)
{
    struct str text = STR(" {\"s\":\"x\",\"i\":-3,\"r\":2.5,\"b\":true,"
                          "\"n\":null,\"a\":[1,[2]],\"\":{}}");
    struct json *v = parsed(text), *a = json_get(v, STR("a"));

    CHECK(v->type == JSON_OBJ && v->at == 1 && v->kids.n == 7);
    CHECK(str_eq(json_str_or(json_get(v, STR("s")), STR("-")), STR("x")));
    CHECK(json_get(v, STR("s"))->s.p == text.p + 7);
    CHECK(json_int_or(json_get(v, STR("i")), 0) == -3);
    CHECK(json_real_or(json_get(v, STR("i")), 0) == -3.0);
    CHECK(json_real_or(json_get(v, STR("r")), 0) == 2.5);
    CHECK(json_int_or(json_get(v, STR("r")), 9) == 9);
    CHECK(json_bool_or(json_get(v, STR("b")), false));
    CHECK(json_get(v, STR("n"))->type == JSON_NULL);
    CHECK(json_get(v, STR("")) && json_get(v, STR(""))->kids.n == 0);
    CHECK(json_int_or(json_at(json_at(a, 1), 0), 0) == 2);
    CHECK(text.p[a->at] == '[' && a->kids.n == 2 && json_at(a, 0)->key.n == 0);
    CHECK(!json_at(a, 2) && !json_at(v, 0) && !json_get(a, STR("x")));
    CHECK(!json_get(NULL, STR("x")) && !json_at(NULL, 0));
    CHECK(json_bool_or(NULL, true) && json_int_or(NULL, 4) == 4);
    CHECK(str_eq(json_str_or(a, STR("none")), STR("none")));
    CHECK(json_real_or(a, 1.5) == 1.5);
    arena_fini(&arena);
}

TEST(escapes_become_what_they_stand_for)
{
    struct json *v = parsed(STR("{\"k\\n\\u00e9\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t"
                                "\\u0041\\u20ac\\ud83d\\ude00\\u0000.\"}"));

    CHECK(str_eq(v->kids.first->key, STR("k\n\xc3\xa9")));
    CHECK(str_eq(v->kids.first->s, STR("\"\\/\b\f\n\r\tA\xe2\x82\xac"
                                       "\xf0\x9f\x98\x80\0.")));
    arena_fini(&arena);
}

TEST(minus_zero_is_an_integer_unless_it_is_a_real)
{
    struct json *v = parsed(STR("[-0,-0.0,-0e5,0.0]"));

    CHECK(json_at(v, 0)->type == JSON_INT && json_at(v, 0)->i == 0);
    CHECK(json_at(v, 1)->type == JSON_REAL && signbit(json_at(v, 1)->d));
    CHECK(json_at(v, 2)->type == JSON_REAL && signbit(json_at(v, 2)->d));
    CHECK(!signbit(json_at(v, 3)->d));
    arena_fini(&arena);
}

/* Keys. */

/* An object whose n keys differ by a number in the middle, where the hash does
 * not look if `colliding`. The last key may repeat an earlier one. Returns its
 * position. */
static size_t many_keys(struct buf *b, int n, bool colliding, int twice)
{
    size_t last = 0;

    buf_clear(b);
    for (int i = 0; i < n; i++) {
        buf_add_char(b, i ? ',' : '{');
        last = b->n;
        buf_addf(
            b, colliding ? "\"alike-at-both-%08d-of-its-ends\":0" : "\"%d\":0",
            i == n - 1 && twice >= 0 ? twice : i);
    }
    buf_add_char(b, '}');
    return last;
}

TEST(a_hundred_thousand_keys_are_no_burden)
{
    struct buf b;

    buf_init(&b, 16 << 20);
    for (int colliding = 0; colliding < 2; colliding++) {
        many_keys(&b, 100000, colliding, -1);
        CHECK(json_agree(buf_str(&b)) == JSON_ACCEPTED);
        many_keys(&b, 100000, colliding, 5);
        CHECK(json_agree(buf_str(&b)) == JSON_REFUSED);
    }
    buf_fini(&b);
}

TEST(a_double_is_found_in_objects_of_every_size)
{
    struct buf b;

    buf_init(&b, 1 << 20);
    for (int n = 2; n < 130; n++)
        for (int colliding = 0; colliding < 2; colliding++) {
            struct json_error e = {0};

            many_keys(&b, n, colliding, -1);
            CHECK(json_check(buf_str(&b), NULL) == OK);
            for (int twice = 0; twice < n - 1; twice++) {
                size_t at = many_keys(&b, n, colliding, twice);

                CHECK(json_check(buf_str(&b), &e) == ERR_SYNTAX);
                CHECK(strcmp(e.what, "this key is a duplicate") == 0);
                CHECK(e.at == at);
            }
        }
    buf_fini(&b);
}

TEST(the_first_double_is_the_one_reported)
{
    struct json_error e;
    struct buf b;
    size_t at;

    buf_init(&b, 1 << 20);
    many_keys(&b, 200, false, -1);
    b.n--;
    at = b.n + 1;
    buf_add_str(&b, STR(",\"150\":0,\"20\":0,\"\\u0031\":0}"));
    CHECK(json_check(buf_str(&b), &e) == ERR_SYNTAX);
    CHECK(e.at == at);
    buf_fini(&b);
}

TEST(keys_of_outer_objects_are_remembered_behind_inner_ones)
{
    struct buf b;

    buf_init(&b, 1 << 20);
    for (int twice = 0; twice < 2; twice++) {
        buf_clear(&b);
        buf_add_char(&b, '{');
        for (int i = 0; i < 100; i++)
            buf_addf(&b, "\"k%d\":{\"k0\":[{\"k%d\":1}],\"k1\":2},", i, i);
        buf_addf(&b, "\"%s\":0}", twice ? "k7" : "k");
        CHECK(json_agree(buf_str(&b)) ==
              (twice ? JSON_REFUSED : JSON_ACCEPTED));
    }
    buf_fini(&b);
}

/* Comments. */

static const struct {
    const char *text;
    bool is_fine;
} comments[] = {
    {"// c\n1", true},
    {"1 // c", true},
    {"1//", true},
    {"/**/1/**/", true},
    {"/* * / ** */[1/*,*/,/*\n*/2]", true},
    {"[1,]", true},
    {"[1, // last\n]", true},
    {"{\"a\":1,}", true},
    {"{/*a*/\"a\"/*b*/:/*c*/1/*d*/,/*e*/}", true},
    {"{ // nothing\n}", true},
    {"[\"// not a comment\"]", true},
    {"// \xc3\xa9\n1", true},
    {"/* \xf0\x9f\x98\x80 */1", true},
    {"[,]", false},
    {"[1,,]", false},
    {"{,}", false},
    {"{\"a\":1,,}", false},
    {"/* 1", false},
    {"/*/1", false},
    {"/", false},
    {"1/", false},
    {"/ /1", false},
    {"[1,}", false},
    {"1,", false},
    {"# c\n1", false},
    {"// \xff\n1", false},
    {"/* \xc3 */1", false},
    {"// c", false},
    {"{a:1}", false},
    {"{\"a\":1,\"a\":2,}", false},
};

TEST(comments_and_last_commas_are_fine_when_asked_for)
{
    for (size_t i = 0; i < N_OF(comments); i++) {
        size_t n = strlen(comments[i].text);
        char *block = malloc(n);
        struct json_error e;

        CHECK(block);
        memcpy(block, comments[i].text, n);
        arena_init(&arena, 1 << 20);
        if ((json_parse(&arena, (struct str){block, n}, JSON_WITH_COMMENTS,
                        &e) != NULL) != comments[i].is_fine) {
            fprintf(stderr, "%s\n", comments[i].text);
            exit(1);
        }
        arena_fini(&arena);
        free(block);
    }
}

TEST(an_open_comment_is_reported_where_it_begins)
{
    struct json_error e;

    arena_init(&arena, 1 << 20);
    CHECK(!json_parse(&arena, STR("[1,\n /* x"), JSON_WITH_COMMENTS, &e));
    CHECK(e.at == 5 && e.line == 2 && e.col == 2);
    arena_fini(&arena);
}

/* Limits. */

TEST(an_arena_at_its_cap_is_too_large_and_nothing_else)
{
    struct str text = STR("{\"a\":[1,2,3,\"\\n\",{\"\\u0061\":null}],\"b\":1}");
    struct json_error e;
    size_t cap = 0;
    bool ok;

    do {
        struct arena a;

        arena_init(&a, cap);
        ok = json_parse(&a, text, 0, &e);
        CHECK(ok || strcmp(e.what, "too large") == 0);
        CHECK(a.used <= cap);
        arena_fini(&a);
    } while (!ok && ++cap);
    CHECK(cap > 9 * sizeof(struct json) && cap < 30 * sizeof(struct json));
}

TEST(a_text_beyond_the_limit_is_refused_unread)
{
    size_t n = (size_t)JSON_TEXT_MAX + 1;
    char *p = mmap(NULL, n, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct str key = STR("a"), value, text = {p, n};
    struct buf b;

    CHECK(p != MAP_FAILED);
    buf_init(&b, 100);
    arena_init(&arena, 1 << 20);
    CHECK(json_check(text, NULL) == ERR_LIMIT);
    CHECK(json_scan(text, &key, 1, &value, NULL) == ERR_LIMIT);
    CHECK(json_splice(&b, text, key, key, NULL) == ERR_LIMIT);
    CHECK(!json_parse(&arena, text, 0, NULL));
    munmap(p, n);
}

/* The scanner. */

TEST(one_member_is_replaced_and_the_rest_stays)
{
    struct str text = STR(" { \"a\" : [1, 2] , \"\\u0062\":\"x\" } ");
    struct str keys[] = {STR("b"), STR("a"), STR("c"), STR("b")}, found[4];
    struct buf b;

    buf_init(&b, 1000);
    CHECK(json_scan(text, keys, 4, found, NULL) == OK);
    CHECK(str_eq(found[0], STR("\"x\"")) && str_eq(found[1], STR("[1, 2]")));
    CHECK(found[2].n == 0 && found[3].p == found[0].p);
    CHECK(json_splice(&b, text, STR("a"), STR("null"), NULL) == OK);
    CHECK(str_eq(buf_str(&b), STR(" { \"a\" : null , \"\\u0062\":\"x\" } ")));
    buf_clear(&b);
    CHECK(json_splice(&b, text, STR("c\""), STR("0"), NULL) == OK);
    CHECK(str_eq(buf_str(&b), STR(" { \"a\" : [1, 2] , "
                                  "\"\\u0062\":\"x\",\"c\\\"\":0 } ")));
    buf_clear(&b);
    CHECK(json_splice(&b, STR(" { } "), STR("a"), STR("1"), NULL) == OK);
    CHECK(str_eq(buf_str(&b), STR(" {\"a\":1 } ")));
    buf_clear(&b);
    CHECK(json_swap(&b, text, found[0], STR("{}")) == OK);
    CHECK(str_eq(buf_str(&b), STR(" { \"a\" : [1, 2] , \"\\u0062\":{} } ")));
    buf_fini(&b);
}

TEST(a_buf_too_small_for_a_splice_stays_as_it_was)
{
    struct str text = STR("{\"a\":1,\"b\":2}"), doc = STR("[10]"), found;
    struct str key = STR("a");
    size_t with_a = 2 + text.n - 1 + doc.n, with_c = 2 + text.n + 5 + doc.n;

    CHECK(json_scan(text, &key, 1, &found, NULL) == OK);
    for (size_t limit = 2; limit < 40; limit++) {
        struct buf b;

        buf_init(&b, limit);
        buf_add_str(&b, STR("::"));
        CHECK(json_splice(&b, text, key, doc, NULL) ==
              (limit < with_a ? ERR_LIMIT : OK));
        CHECK(b.n == (limit < with_a ? 2 : with_a) && !b.over);
        b.n = 2;
        CHECK(json_swap(&b, text, found, doc) ==
              (limit < with_a ? ERR_LIMIT : OK));
        CHECK(b.n == (limit < with_a ? 2 : with_a) && !b.over);
        b.n = 2;
        CHECK(json_splice(&b, text, STR("c"), doc, NULL) ==
              (limit < with_c ? ERR_LIMIT : OK));
        CHECK(b.n == (limit < with_c ? 2 : with_c) && !b.over);
        CHECK(memcmp(b.p, "::", 2) == 0);
        buf_fini(&b);
    }
}

TEST(what_is_no_object_is_an_error_with_a_place)
{
    struct str key = STR("a"), value;
    struct json_error e;

    CHECK(json_scan(STR("\n [1]"), &key, 1, &value, &e) == ERR_SYNTAX);
    CHECK(strcmp(e.what, "this is not an object") == 0);
    CHECK(e.at == 2 && e.line == 2 && e.col == 2);
    CHECK(json_scan(STR("{}"), NULL, 0, NULL, &e) == OK);
}

TEST(a_scanned_string_is_decoded_and_nothing_else_is)
{
    static const struct str none[] = {
        {"", 0},       {"\"", 1},       {"1", 1},           {"null", 4},
        {"\"a", 2},    {"a\"", 2},      {"\"a\"b\"", 5},    {"\"\\\"", 3},
        {"\"\n\"", 3}, {"\"\xff\"", 3}, {"\"\\ud800\"", 8}, {"\"a\" ", 4},
    };
    struct str out = STR("untouched");

    arena_init(&arena, 64);
    for (size_t i = 0; i < N_OF(none); i++)
        CHECK(!json_unquote(&arena, none[i], &out));
    CHECK(str_eq(out, STR("untouched")));
    CHECK(json_unquote(&arena, STR("\"a\\u00e9\""), &out));
    CHECK(str_eq(out, STR("a\xc3\xa9")));
    CHECK(json_unquote(&arena, STR("\"\""), &out) && out.n == 0);
    CHECK(!json_unquote(&arena,
                        STR("\"0123456789012345678901234567890123456789"
                            "0123456789012345678901234567890123456789\""),
                        &out));
    arena_fini(&arena);
}

TEST(elements_are_walked_where_they_stand)
{
    static const struct {
        const char *array, *values;
    } cases[] = {
        {"[]", ""},
        {" [ ] ", ""},
        {"[1]", "1;"},
        {" [ 1 , -2.5e3 ,null ] ", "1;-2.5e3;null;"},
        {"[[1,[2]],{\"a\":[3,4]},\"],[\"]", "[1,[2]];{\"a\":[3,4]};\"],[\";"},
        {"[\"\\\"\", \"\\\\\",1]", "\"\\\"\";\"\\\\\";1;"},
        {"{\"a\":1}", ""},
        {"7", ""},
        {"", ""},
    };

    for (size_t i = 0; i < N_OF(cases); i++) {
        struct str rest = str_of(cases[i].array), v;
        char got[128] = "";

        while (json_next(&rest, &v))
            snprintf(got + strlen(got), sizeof(got) - strlen(got), "%.*s;",
                     STR_ARG(v));
        CHECK_STR(str_of(got), cases[i].values);
    }
}

/* Any text: reading stays inside it and terminates. */
TEST(walking_what_is_no_json_comes_to_an_end)
{
    static const char bytes[] = "[]{},\"\\ 1";
    struct rand_seeded chance = {3};
    struct rand r = rand_seeded(&chance);

    for (int round = 0; round < 20000; round++) {
        size_t n = rand_u64(r) % 12, steps = 0;
        char *text = malloc(n + 1);
        struct str rest = {text, n}, v;

        for (size_t i = 0; i < n; i++)
            text[i] = bytes[rand_u64(r) % (sizeof(bytes) - 1)];
        while (json_next(&rest, &v)) {
            CHECK(v.p >= text && v.p + v.n <= text + n && v.n);
            CHECK(rest.p + rest.n == text + n && ++steps <= n);
        }
        free(text);
    }
}

TEST(a_scanned_number_has_its_value)
{
    double d = 7;

    CHECK(json_number(STR("-12"), &d) && d == -12);
    CHECK(json_number(STR("0.5"), &d) && d == 0.5);
    CHECK(json_number(STR("1e-3"), &d) && d == 0.001);
    CHECK(!json_number(STR("null"), &d) && !json_number(STR("\"1\""), &d));
    CHECK(!json_number(STR("[1]"), &d) && !json_number(STR(""), &d));
    CHECK(d == 0.001);
}

/* Failed allocations. */

TEST(very_many_keys_without_memory_are_refused)
{
    struct buf b;

    buf_init(&b, 16 << 20);
    many_keys(&b, 100000, false, -1);
    fault_arm_at("json.keys", 1);
    CHECK(json_check(buf_str(&b), NULL) == ERR_NOMEM && fault_fired());
    CHECK(json_check(buf_str(&b), NULL) == OK);
    buf_fini(&b);
}

/* A larger arena may find no memory: that is not the sender's fault. */
TEST(a_tree_without_memory_is_not_too_large)
{
    struct json_error err;
    struct arena a;
    struct buf b;

    buf_init(&b, 16 << 20);
    many_keys(&b, 100000, false, -1);
    arena_init(&a, 64 << 20);
    fault_arm_at("arena.block", 1);
    CHECK(!json_parse(&a, buf_str(&b), 0, &err) && fault_fired());
    CHECK(err.err == ERR_NOMEM &&
          str_eq(str_of(err.what), STR("out of memory")));
    arena_fini(&a);
    arena_init(&a, 1 << 20);
    CHECK(!json_parse(&a, buf_str(&b), 0, &err));
    CHECK(err.err == ERR_LIMIT && str_eq(str_of(err.what), STR("too large")));
    arena_fini(&a);
    buf_fini(&b);
}
