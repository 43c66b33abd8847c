#include "base/fault.h"
#include "base/json.h"
#include "speak/speak.h"
#include "test/t.h"

TEST(an_error_is_said_with_code_message_and_details)
{
    struct buf out;

    buf_init(&out, 4096);
    speak_error(&out, ERR_NOT_FOUND, STR("no \"x\" here"), STR("{\"n\":1}"));
    CHECK(str_eq(buf_str(&out),
                 STR("{\"error\":{\"code\":\"not_found\",\"message\":"
                     "\"no \\\"x\\\" here\",\"details\":{\"n\":1}}}\n")));
    buf_fini(&out);
}

TEST(a_refusal_says_what_exactly_was_wrong)
{
    struct buf out;

    buf_init(&out, 4096);
    speak_refusal(&out, ERR_BAD_REQUEST, STR("two Host headers"));
    CHECK(str_eq(buf_str(&out),
                 STR("{\"error\":{\"code\":\"bad_request\",\"message\":"
                     "\"the request is malformed: two Host headers\","
                     "\"details\":{}}}\n")));
    buf_clear(&out);
    speak_refusal(&out, ERR_BAD_REQUEST, STR(""));
    CHECK(memmem(out.p, out.n, "malformed\"", 10) != NULL);
    buf_fini(&out);
}

TEST(every_error_can_be_said_without_further_words)
{
    for (int e = 1; e < N_ERR; e++) {
        struct arena a;
        struct buf out;
        struct json *error;

        arena_init(&a, 65536);
        buf_init(&out, 4096);
        speak_error(&out, (enum err)e, STR(""), STR(""));
        error = json_get(json_parse(&a, buf_str(&out), 0, NULL), STR("error"));
        CHECK(json_str_or(json_get(error, STR("code")), STR("")).n > 0);
        CHECK(json_str_or(json_get(error, STR("message")), STR("")).n > 0);
        CHECK(json_get(error, STR("details"))->type == JSON_OBJ);
        buf_fini(&out);
        arena_fini(&a);
    }
}

TEST(an_error_without_room_for_its_words_is_seen)
{
    long nth = 0;

    do {
        struct buf out;

        fault_arm(++nth);
        buf_init(&out, 4096);
        speak_error(&out, ERR_LIMIT, STR(""), STR(""));
        CHECK(out.over == fault_fired());
        buf_fini(&out);
    } while (fault_fired());
    CHECK(nth > 1);
}
