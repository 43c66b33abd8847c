/* json keeps its contract: what is accepted and refused, where errors are
 * said to be, and that reader, checker, scanner and splicer never disagree. */
#include "base/json.h"

#include "base/fault.h"
#include "test/t.h"

static char *written(const char *text)
{
    struct arena a;
    struct buf b;
    struct json_out o = json_out(&b);
    struct json *v;
    char *out = NULL;

    arena_init(&a, 1 << 20);
    buf_init(&b, 1 << 20);
    v = json_parse(&a, str_of(text), 0, NULL);
    if (v) {
        json_put(&o, v);
        CHECK(!b.over);
        out = strndup(b.p, b.n);
    }
    arena_fini(&a);
    buf_fini(&b);
    return out;
}

static const struct {
    const char *in, *out;
} round_trips[] = {
    {"null", "null"},
    {" true ", "true"},
    {"[1, 2 ,3]", "[1,2,3]"},
    {"{\"a\":{\"b\":[{},[]]},\"c\":-7}", NULL},
    {"[{\"a\":1},2,{\"b\":3}]", NULL},
    {"[0.1,1.0,1e300,5e-324,1.7976931348623157e308,-0.0]", NULL},
    {"[0.30000000000000004,123456789.125,0.00001]", NULL},
    {"9223372036854775807", NULL},
    {"-9223372036854775808", NULL},
    {"\"a\\u00e9\\ud83d\\ude00\\n\\u0000\"",
     "\"a\xc3\xa9\xf0\x9f\x98\x80\\n\\u0000\""},
};

TEST(a_document_is_written_as_it_was_read)
{
    for (size_t i = 0; i < sizeof(round_trips) / sizeof(*round_trips); i++) {
        char *out = written(round_trips[i].in);
        const char *want =
            round_trips[i].out ? round_trips[i].out : round_trips[i].in;

        if (!out || strcmp(out, want) != 0)
            fprintf(stderr, "%s became %s\n", round_trips[i].in,
                    out ? out : "nothing");
        CHECK(out && strcmp(out, want) == 0);
        free(out);
    }
}

TEST(a_key_may_not_stand_twice)
{
    CHECK(json_check(STR("{\"a\":1,\"b\":2}"), NULL) == OK);
    CHECK(json_check(STR("{\"a\":1,\"\\u0061\":2}"), NULL) == ERR_SYNTAX);
    CHECK(json_check(STR("[{\"a\":1},{\"a\":1}]"), NULL) == OK);
}

TEST(one_member_is_replaced_and_the_rest_stays)
{
    struct str text = STR(" { \"a\" : [1, 2] , \"b\":\"x\" } ");
    struct str keys[] = {STR("b"), STR("a"), STR("c")}, found[3];
    struct buf b;

    buf_init(&b, 1000);
    CHECK(json_scan(text, keys, 3, found, NULL) == OK);
    CHECK(str_eq(found[0], STR("\"x\"")) && str_eq(found[1], STR("[1, 2]")));
    CHECK(found[2].n == 0);
    CHECK(json_splice(&b, text, STR("a"), STR("null"), NULL) == OK);
    CHECK(str_eq(buf_str(&b), STR(" { \"a\" : null , \"b\":\"x\" } ")));
    buf_clear(&b);
    CHECK(json_splice(&b, text, STR("c"), STR("0"), NULL) == OK);
    CHECK(
        str_eq(buf_str(&b), STR(" { \"a\" : [1, 2] , \"b\":\"x\",\"c\":0 } ")));
    buf_fini(&b);
}
