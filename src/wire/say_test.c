#include "test/t.h"
#include "wire/wire.h"

TEST(an_answer_has_the_id_as_it_came)
{
    struct wire_id id = {STR("\"\\u0037\""), STR("7")};
    struct json_out o;
    struct buf out;

    buf_init(&out, 4096);
    o = wire_result_open(&out, &id);
    json_open(&o, '{');
    json_key(&o, STR("a"));
    json_put_int(&o, 1);
    json_close(&o, '}');
    wire_close(&o);
    CHECK_STR(buf_str(&out),
              "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0037\",\"result\":{\"a\":1}}");
    buf_fini(&out);
}

TEST(a_call_has_an_id_and_a_notification_none)
{
    struct json_out o;
    struct buf out;

    buf_init(&out, 4096);
    o = wire_call_open(&out, STR("task_7:1"), STR("task.execute"));
    json_put_int(&o, 1);
    wire_close(&o);
    CHECK_STR(buf_str(&out), "{\"jsonrpc\":\"2.0\",\"id\":\"task_7:1\","
                             "\"method\":\"task.execute\",\"params\":1}");
    buf_clear(&out);
    o = wire_call_open(&out, STR(""), STR("task.chunk"));
    json_put_null(&o);
    wire_close(&o);
    CHECK_STR(buf_str(&out), "{\"jsonrpc\":\"2.0\",\"method\":\"task.chunk\","
                             "\"params\":null}");
    buf_fini(&out);
}

TEST(an_error_of_ours_says_which)
{
    struct wire_id id = {STR("7"), STR("7")};
    struct buf out;

    buf_init(&out, 4096);
    wire_error(&out, &id, ERR_AGENT_OFFLINE, STR("asleep"),
               STR(" { \"since_ms\":3 }\n"));
    CHECK_STR(buf_str(&out),
              "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32000,"
              "\"message\":\"asleep\",\"data\":{\"code\":\"agent_offline\","
              " \"since_ms\":3 }}}");
    buf_fini(&out);
}

TEST(every_error_is_one_document_with_words)
{
    for (int e = 1; e < N_ERR; e++) {
        struct arena a;
        struct buf out;
        struct json *error;

        arena_init(&a, 65536);
        buf_init(&out, 4096);
        wire_error(&out, NULL, (enum err)e, STR(""), STR("{}"));
        error = json_get(json_parse(&a, buf_str(&out), 0, NULL), STR("error"));
        CHECK(json_str_or(json_get(error, STR("message")), STR("")).n > 0);
        CHECK_INT(json_int_or(json_get(error, STR("code")), 0),
                  err_row((enum err)e)->rpc_code);
        CHECK_STR(
            json_str_or(json_get(json_get(error, STR("data")), STR("code")),
                        STR("")),
            err_row((enum err)e)->code);
        buf_fini(&out);
        arena_fini(&a);
    }
}

TEST(an_error_of_the_standard_may_have_data)
{
    struct buf out;

    buf_init(&out, 4096);
    wire_error_of(&out, NULL, WIRE_METHOD_NOT_FOUND, STR("no"),
                  STR("{\"nearest\":[]}"));
    CHECK_STR(buf_str(&out),
              "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32601,"
              "\"message\":\"no\",\"data\":{\"nearest\":[]}}}");
    buf_fini(&out);
}

TEST(an_answer_without_room_is_seen)
{
    size_t needed = 4096;

    for (size_t limit = needed; limit-- > 0;) {
        struct buf out;

        buf_init(&out, limit);
        wire_error(&out, NULL, ERR_NOMEM, STR(""), STR("{\"a\":1}"));
        if (needed == 4096)
            needed = out.n;
        CHECK(out.over == (limit < needed));
        buf_fini(&out);
    }
}
