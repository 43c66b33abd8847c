/* The writer of json keeps its contract: the reader accepts its output, and
 * text that does not fit the buf is noticed. */
#include "base/json.h"

#include <math.h>

#include "test/json_agree.h"
#include "test/t.h"

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

static struct arena arena;

static const struct {
    struct str in;
    const char *out;
} written_strings[] = {
    {{"", 0}, "\"\""},
    {{NULL, 0}, "\"\""},
    {{"plain", 5}, "\"plain\""},
    {{"0123456789abcdef", 16}, "\"0123456789abcdef\""},
    {{"0123456789abcdef0", 17}, "\"0123456789abcdef0\""},
    {{"0123456789abcde\"", 16}, "\"0123456789abcde\\\"\""},
    {{"a\"b\\c/d", 7}, "\"a\\\"b\\\\c/d\""},
    {{"\b\f\n\r\t\v\0\x1f\x7f", 9},
     "\"\\b\\f\\n\\r\\t\\u000b\\u0000\\u001f\x7f\""},
    {{"\xc2\x80\xc2\x9b", 4}, "\"\\u0080\\u009b\""},
    {{"\xc3\xa9\xc2\x9fz", 5}, "\"\xc3\xa9\\u009fz\""},
    {{"\xc2\xa0\xc2", 3}, "\"\xc2\xa0\xef\xbf\xbd\""},
    {{"\xc3\xa9\xf0\x9f\x98\x80", 6}, "\"\xc3\xa9\xf0\x9f\x98\x80\""},
    {{"a\xff", 2}, "\"a\xef\xbf\xbd\""},
    {{"\xc3", 1}, "\"\xef\xbf\xbd\""},
    {{"\xed\xa0\x80z", 4}, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\""},
    {{"\xc3\xa9\xc3(", 4}, "\"\xc3\xa9\xef\xbf\xbd(\""},
};

TEST(strings_are_escaped_and_what_is_not_utf8_replaced)
{
    for (size_t i = 0; i < N_OF(written_strings); i++) {
        struct str want = str_of(written_strings[i].out);

        for (size_t cap = 64; cap <= 1024; cap *= 16) {
            struct buf b;
            struct json_out o = json_out(&b);

            buf_init(&b, cap == 64 ? want.n : cap);
            json_put_str(&o, written_strings[i].in);
            CHECK(!b.over && str_eq(buf_str(&b), want));
            CHECK(json_check(buf_str(&b), NULL) == OK);
            buf_fini(&b);
        }
    }
}

TEST(strings_of_every_length_are_written_whole)
{
    char text[80], block[80];

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('0' + i);
    for (size_t n = 0; n < 80; n++)
        for (size_t odd = 0; odd <= n; odd++) {
            char *exact = malloc(n + 1);
            struct buf b;
            struct json_out o = json_out(&b);
            struct str got;

            CHECK(exact);
            memcpy(block, text, sizeof(text));
            if (odd < n)
                block[odd] = '\x01';
            memcpy(exact, block, n);
            buf_init(&b, 1000);
            json_put_str(&o, (struct str){exact, n});
            arena_init(&arena, 1000);
            CHECK(json_unquote(&arena, buf_str(&b), &got));
            CHECK(str_eq(got, (struct str){block, n}));
            arena_fini(&arena);
            buf_fini(&b);
            free(exact);
        }
}

TEST(commas_and_colons_come_by_themselves)
{
    struct buf b;
    struct json_out o = json_out(&b);

    buf_init(&b, 1000);
    json_open(&o, '{');
    json_key(&o, STR("n"));
    json_put_int(&o, INT64_MIN);
    json_key(&o, STR("a"));
    json_open(&o, '[');
    json_open(&o, '[');
    json_close(&o, ']');
    json_put_bool(&o, true);
    json_put_bool(&o, false);
    json_put_null(&o);
    json_put_raw(&o, STR("{\"raw\":1}"));
    json_put_real(&o, 0.5);
    json_put_real(&o, NAN);
    json_put_real(&o, -INFINITY);
    json_close(&o, ']');
    json_key(&o, STR("k\n"));
    json_put_str(&o, STR("v"));
    json_close(&o, '}');
    CHECK(str_eq(buf_str(&b), STR("{\"n\":-9223372036854775808,\"a\":[[],true,"
                                  "false,null,{\"raw\":1},0.5,null,null],"
                                  "\"k\\n\":\"v\"}")));
    CHECK(json_agree(buf_str(&b)) == JSON_ACCEPTED);
    buf_fini(&b);
}

TEST(integers_are_written_whole)
{
    int64_t v = 1;

    for (int i = 0; i < 64; i++, v = (int64_t)((uint64_t)v * 2)) {
        for (int64_t d = -1; d <= 1; d++) {
            int64_t n = (int64_t)((uint64_t)v + (uint64_t)d);
            char want[32];
            struct buf b;
            struct json_out o = json_out(&b);

            buf_init(&b, 100);
            json_put_int(&o, n);
            snprintf(want, sizeof(want), "%lld", (long long)n);
            CHECK(str_eq(buf_str(&b), str_of(want)));
            buf_fini(&b);
        }
    }
}

TEST(a_tree_too_deep_to_be_read_is_not_written)
{
    struct json v[JSON_DEPTH_MAX + 1] = {0};

    for (int n = JSON_DEPTH_MAX; n <= JSON_DEPTH_MAX + 1; n++) {
        struct buf b;
        struct json_out o = json_out(&b);

        buf_init(&b, 1000);
        for (int i = 0; i < n; i++) {
            v[i].type = JSON_ARR;
            v[i].kids.first = i + 1 < n ? &v[i + 1] : NULL;
        }
        json_put(&o, v);
        CHECK(b.over == (n > JSON_DEPTH_MAX));
        buf_fini(&b);
    }
}

TEST(a_part_of_a_tree_is_written_without_its_key_and_neighbours)
{
    struct buf b;
    struct json_out o = json_out(&b);
    struct json *v;

    arena_init(&arena, 1 << 20);
    v = json_parse(&arena, STR("{\"a\":[1,{\"b\":2},3],\"c\":4}"), 0, NULL);
    CHECK(v);
    buf_init(&b, 100);
    json_put(&o, json_get(v, STR("a")));
    json_put(&o, json_at(json_get(v, STR("a")), 1));
    json_put(&o, json_get(v, STR("a"))->kids.first);
    CHECK(str_eq(buf_str(&b), STR("[1,{\"b\":2},3],{\"b\":2},1")));
    buf_fini(&b);
    arena_fini(&arena);
}

TEST(a_member_is_its_key_and_its_value)
{
    struct buf b;
    struct json_out o = json_out(&b);

    buf_init(&b, 1000);
    json_open(&o, '{');
    json_member_text(&o, "text", STR("a\"b"));
    json_member_text(&o, "empty", STR(""));
    json_member_int(&o, "int", INT64_MIN);
    json_member_int(&o, "zero", 0);
    json_member_real(&o, "real", 2);
    json_member_bool(&o, "yes", true);
    json_member_bool(&o, "no", false);
    json_member_null(&o, "null");
    json_member_raw(&o, "k\n", STR("{\"raw\":[1]}"));
    json_close(&o, '}');
    CHECK(str_eq(
        buf_str(&b),
        STR("{\"text\":\"a\\\"b\",\"empty\":\"\",\"int\":-9223372036854775808,"
            "\"zero\":0,\"real\":2.0,\"yes\":true,\"no\":false,\"null\":null,"
            "\"k\\n\":{\"raw\":[1]}}")));
    CHECK(json_agree(buf_str(&b)) == JSON_ACCEPTED);
    buf_fini(&b);
}

TEST(what_is_missing_is_null_or_no_member)
{
    struct buf b;
    struct json_out o = json_out(&b);

    buf_init(&b, 1000);
    json_open(&o, '{');
    json_member_some(&o, "left out", STR(""));
    json_member_str(&o, "a", STR("x"));
    json_member_str(&o, "b", STR(""));
    json_member_str(&o, "c", (struct str){0});
    json_member_some(&o, "left out", (struct str){0});
    json_member_some(&o, "d", STR("y"));
    json_member_ms(&o, "e", 7);
    json_member_ms(&o, "f", 0);
    json_member_ms(&o, "g", -1);
    json_member_known(&o, "h", true, 0);
    json_member_known(&o, "i", true, 9);
    json_member_known(&o, "j", false, 9);
    json_close(&o, '}');
    CHECK(str_eq(buf_str(&b),
                 STR("{\"a\":\"x\",\"b\":null,\"c\":null,\"d\":\"y\","
                     "\"e\":7,\"f\":null,\"g\":-1,"
                     "\"h\":0,\"i\":9,\"j\":null}")));
    CHECK(json_agree(buf_str(&b)) == JSON_ACCEPTED);
    buf_fini(&b);
}
