/* Every example of section 7 of the JSON-RPC 2.0 specification, sent to a small
 * server that uses wire. Our error texts differ; codes, ids and shapes are the
 * specification's. */
#include "test/t.h"
#include "wire/wire.h"

enum { TEXT_MAX = 64 * 1024 };

static int64_t number(const struct json *params, const char *name, size_t i)
{
    return json_int_or(params->type == JSON_ARR
                           ? json_at(params, i)
                           : json_get(params, str_of(name)),
                       0);
}

static bool put_result(struct json_out *o, const struct wire_message *m)
{
    int64_t sum = 0;

    if (str_eq(m->method, STR("subtract"))) {
        json_put_int(o, number(m->params, "minuend", 0) -
                            number(m->params, "subtrahend", 1));
    } else if (str_eq(m->method, STR("sum"))) {
        JSON_EACH(kid, m->params)
        sum += json_int_or(kid, 0);
        json_put_int(o, sum);
    } else if (str_eq(m->method, STR("get_data"))) {
        json_open(o, '[');
        json_put_str(o, STR("hello"));
        json_put_int(o, 5);
        json_close(o, ']');
    } else {
        return false;
    }
    return true;
}

static void answer_one(struct buf *out, const struct wire_message *m)
{
    size_t from = out->n;
    struct json_out o;

    if (m->kind == WIRE_BAD) {
        wire_error_of(out, &m->id, WIRE_INVALID_REQUEST, STR("Invalid Request"),
                      STR(""));
    } else if (m->kind == WIRE_REQUEST) {
        o = wire_result_open(out, &m->id);
        if (put_result(&o, m)) {
            wire_close(&o);
            return;
        }
        out->n = from;
        wire_error_of(out, &m->id, WIRE_METHOD_NOT_FOUND,
                      STR("Method not found"), STR(""));
    }
}

static void answer(struct buf *out, struct str text)
{
    struct wire_batch b;
    struct arena a;
    enum err e;

    arena_init(&a, 1 << 20);
    e = wire_read(&a, text, &b, NULL);
    if (e == ERR_SYNTAX)
        wire_error_of(out, NULL, WIRE_PARSE_ERROR, STR("Parse error"), STR(""));
    else if (e)
        wire_error_of(out, NULL, WIRE_INVALID_REQUEST, STR("Invalid Request"),
                      STR(""));
    for (size_t i = 0; !e && i < b.n; i++) {
        size_t from = out->n;

        if (b.is_array)
            buf_add_char(out, from ? ',' : '[');
        answer_one(out, &b.list[i]);
        if (b.is_array && out->n == from + 1)
            out->n = from;
    }
    if (!e && b.is_array && out->n)
        buf_add_char(out, ']');
    arena_fini(&a);
}

static void says(const char *asked, const char *answered)
{
    struct buf out;

    buf_init(&out, TEXT_MAX);
    answer(&out, str_of(asked));
    CHECK_STR(buf_str(&out), answered);
    buf_fini(&out);
}

#define ERROR(id, code, message)                                   \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code \
    ",\"message\":\"" message "\"}}"
#define INVALID       ERROR("null", "-32600", "Invalid Request")
#define RESULT(id, r) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" r "}"

TEST(positional_parameters)
{
    says("{\"jsonrpc\": \"2.0\", \"method\": \"subtract\", \"params\": [42, "
         "23], \"id\": 1}",
         RESULT("1", "19"));
    says("{\"jsonrpc\": \"2.0\", \"method\": \"subtract\", \"params\": [23, "
         "42], \"id\": 2}",
         RESULT("2", "-19"));
}

TEST(named_parameters)
{
    says("{\"jsonrpc\": \"2.0\", \"method\": \"subtract\", \"params\": "
         "{\"subtrahend\": 23, \"minuend\": 42}, \"id\": 3}",
         RESULT("3", "19"));
    says("{\"jsonrpc\": \"2.0\", \"method\": \"subtract\", \"params\": "
         "{\"minuend\": 42, \"subtrahend\": 23}, \"id\": 4}",
         RESULT("4", "19"));
}

TEST(a_notification_has_no_answer)
{
    says("{\"jsonrpc\": \"2.0\", \"method\": \"update\", \"params\": "
         "[1,2,3,4,5]}",
         "");
    says("{\"jsonrpc\": \"2.0\", \"method\": \"foobar\"}", "");
}

TEST(a_method_that_is_not_there)
{
    says("{\"jsonrpc\": \"2.0\", \"method\": \"foobar\", \"id\": \"1\"}",
         ERROR("\"1\"", "-32601", "Method not found"));
}

TEST(invalid_json)
{
    says("{\"jsonrpc\": \"2.0\", \"method\": \"foobar, \"params\": \"bar\", "
         "\"baz]",
         ERROR("null", "-32700", "Parse error"));
    says("[\n  {\"jsonrpc\": \"2.0\", \"method\": \"sum\", \"params\": "
         "[1,2,4], \"id\": \"1\"},\n  {\"jsonrpc\": \"2.0\", \"method\"\n]",
         ERROR("null", "-32700", "Parse error"));
}

TEST(an_invalid_request)
{
    says("{\"jsonrpc\": \"2.0\", \"method\": 1, \"params\": \"bar\"}", INVALID);
}

TEST(an_empty_batch)
{
    says("[]", INVALID);
}

TEST(a_batch_of_what_is_no_request)
{
    says("[1]", "[" INVALID "]");
    says("[1,2,3]", "[" INVALID "," INVALID "," INVALID "]");
}

TEST(a_batch_of_everything)
{
    says("[\n"
         "{\"jsonrpc\": \"2.0\", \"method\": \"sum\", \"params\": [1,2,4], "
         "\"id\": \"1\"},\n"
         "{\"jsonrpc\": \"2.0\", \"method\": \"notify_hello\", \"params\": "
         "[7]},\n"
         "{\"jsonrpc\": \"2.0\", \"method\": \"subtract\", \"params\": "
         "[42,23], \"id\": \"2\"},\n"
         "{\"foo\": \"boo\"},\n"
         "{\"jsonrpc\": \"2.0\", \"method\": \"foo.get\", \"params\": "
         "{\"name\": \"myself\"}, \"id\": \"5\"},\n"
         "{\"jsonrpc\": \"2.0\", \"method\": \"get_data\", \"id\": \"9\"} \n]",
         "[" RESULT("\"1\"", "7") "," RESULT(
             "\"2\"",
             "19") "," INVALID
                   "," ERROR("\"5\"", "-32601", "Method not found") "," RESULT(
                       "\"9\"", "[\"hello\",5]") "]");
}

TEST(a_batch_of_notifications_has_no_answer)
{
    says("[{\"jsonrpc\": \"2.0\", \"method\": \"notify_sum\", \"params\": "
         "[1,2,4]},{\"jsonrpc\": \"2.0\", \"method\": \"notify_hello\", "
         "\"params\": [7]}]",
         "");
}
