#include "test/lib/card_stage.h"

/* All of RFC 7396, appendix A: the original, the patch, and the result; and a
 * few more. */
static const struct {
    const char *target, *patch, *result;
} cases[] = {
    {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
    {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
    {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
    {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
    {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
    {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
    {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}",
     "{\"a\":{\"b\":\"d\"}}"},
    {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
    {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
    {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
    {"{\"a\":\"foo\"}", "null", "null"},
    {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
    {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
    {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
    {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},

    {"{\"a\":1,\"b\":2,\"c\":3}", "{\"d\":4,\"b\":5,\"a\":null}",
     "{\"b\":5,\"c\":3,\"d\":4}"},
    {"{\"a\":1}", "{}", "{\"a\":1}"},
    {"{}", "{\"a\":[null,{\"b\":null}]}", "{\"a\":[null,{\"b\":null}]}"},
    {"{\"a\":{\"x\":1}}", "{\"a\":5}", "{\"a\":5}"},
    {"5", "{\"a\":{\"b\":null,\"c\":[]}}", "{\"a\":{\"c\":[]}}"},
    {"{\"\":1,\"a\\u0000b\":2}", "{\"\":null,\"a\\u0000b\":3}",
     "{\"a\\u0000b\":3}"},
};

TEST(a_patch_changes_what_rfc_7396_says)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json *target, *patch, *merged;
        struct json_out o;
        struct stage s;
        struct buf out, was;

        stage_init(&s);
        buf_init(&out, 4096);
        buf_init(&was, 4096);
        target = stage_parse(&s, str_of(cases[i].target));
        patch = stage_parse(&s, str_of(cases[i].patch));
        merged = card_merge(&s.arena, target, patch);
        CHECK(merged);
        o = json_out(&out);
        json_put(&o, merged);
        CHECK_STR(buf_str(&out), cases[i].result);
        o = json_out(&was); /* untouched */
        json_put(&o, target);
        CHECK_STR(buf_str(&was), cases[i].target);
        buf_fini(&out);
        buf_fini(&was);
        stage_fini(&s);
    }
}

TEST(a_patch_over_nothing_is_the_patch_without_its_nulls)
{
    struct json *merged;
    struct json_out o;
    struct stage s;
    struct buf out;

    stage_init(&s);
    buf_init(&out, 4096);
    merged = card_merge(
        &s.arena, NULL,
        stage_parse(&s, STR("{\"a\":null,\"b\":{\"c\":null,\"d\":1}}")));
    o = json_out(&out);
    json_put(&o, merged);
    CHECK_STR(buf_str(&out), "{\"b\":{\"d\":1}}");
    buf_fini(&out);
    stage_fini(&s);
}

/* Many names on both sides take as long as sorting them, not as comparing all
 * with all, which would exceed the time limit of a test. */
TEST(large_objects_are_merged_quickly)
{
    enum { N = 200 * 1000 };
    struct json *merged, *v;
    struct buf a, b;
    struct stage s;

    stage_init(&s);
    s.arena.cap = (size_t)256 << 20;
    buf_init(&a, 16 << 20);
    buf_init(&b, 16 << 20);
    for (size_t i = 0; i < N; i++) {
        buf_addf(&a, "%s\"k%zu\":0", i ? "," : "{", i);
        buf_addf(&b, "%s\"k%zu\":%s", i ? "," : "{", i + N / 2,
                 i % 2 ? "1" : "null");
    }
    buf_add_char(&a, '}');
    buf_add_char(&b, '}');
    merged = card_merge(&s.arena, stage_parse(&s, buf_str(&a)),
                        stage_parse(&s, buf_str(&b)));
    CHECK(merged);
    CHECK_INT(merged->kids.n, N / 2 + N / 4 + N / 4);
    CHECK(!json_get(merged, STR("k100000")));
    v = json_get(merged, STR("k100001"));
    CHECK(v && v->i == 1);
    CHECK_STR(v->next->key, "k100003");
    buf_fini(&a);
    buf_fini(&b);
    stage_fini(&s);
}

TEST(merging_survives_an_arena_of_any_size)
{
    struct json *target, *patch, *merged = NULL;
    struct stage s;

    stage_init(&s);
    target = stage_parse(&s, STR("{\"a\":{\"b\":[1,2]},\"c\":[[]]}"));
    patch = stage_parse(&s, STR("{\"a\":{\"d\":{\"e\":1}},\"f\":[{}]}"));
    for (size_t cap = 0; !merged; cap += 16) {
        struct arena a;

        arena_init(&a, cap);
        merged = card_merge(&a, target, patch);
        CHECK(cap > 600 || !merged);
        arena_fini(&a);
    }
    stage_fini(&s);
}
