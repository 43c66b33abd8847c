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
    size_t needed = 4096;

    for (size_t limit = needed; limit-- > 0;) {
        struct buf out;

        buf_init(&out, limit);
        speak_error(&out, ERR_LIMIT, STR(""), STR(""));
        if (needed == 4096)
            needed = out.n;
        CHECK(out.over == (limit < needed));
        buf_fini(&out);
    }
}

/* Users and tokens. */

static struct why why;

static enum err user_post(const char *body, struct speak_user_call *out)
{
    static struct arena a;

    arena_fini(&a);
    arena_init(&a, 65536);
    why.text[0] = '\0';
    return speak_user_post(&a, str_of(body), out, &why);
}

static enum err user_patch(const char *body, struct speak_user_call *out)
{
    static struct arena a;

    arena_fini(&a);
    arena_init(&a, 65536);
    why.text[0] = '\0';
    return speak_user_patch(&a, str_of(body), out, &why);
}

static enum err token_post(const char *body, struct speak_token_call *out)
{
    static struct arena a;

    arena_fini(&a);
    arena_init(&a, 65536);
    why.text[0] = '\0';
    return speak_token_post(&a, str_of(body), out, &why);
}

TEST(a_new_user_has_a_name_and_a_role)
{
    struct speak_user_call u;

    CHECK_INT(user_post("{\"name\":\"anna\",\"role\":\"user\","
                        "\"org\":\"acme\"}",
                        &u),
              OK);
    CHECK_STR(u.name, "anna");
    CHECK_INT(u.role, ROLE_USER);
    CHECK_STR(u.org, "acme");
    CHECK_INT(user_post("{\"name\":\"anna\"}", &u), OK);
    CHECK_INT(u.role, ROLE_USER);
    CHECK_INT(user_post("{\"role\":\"user\"}", &u), ERR_BAD_REQUEST);
    CHECK(strstr(why.text, "name is missing"));
    CHECK_INT(user_post("{\"name\":\"a\",\"role\":\"boss\"}", &u),
              ERR_BAD_REQUEST);
    CHECK(strstr(why.text, "role must be"));
}

TEST(a_change_of_a_user_tells_no_org_from_nothing_said)
{
    struct speak_user_call u;

    CHECK_INT(user_patch("{\"role\":\"admin\"}", &u), OK);
    CHECK(u.org.p == NULL);
    CHECK_INT(user_patch("{\"org\":null}", &u), OK);
    CHECK(u.org.p != NULL && u.org.n == 0);
    CHECK_INT(u.role, 0);
    CHECK_INT(user_patch("{}", &u), ERR_BAD_REQUEST);
    CHECK(strstr(why.text, "nothing to change"));
    CHECK_INT(user_patch("{\"name\":\"x\"}", &u), ERR_BAD_REQUEST);
}

TEST(a_token_may_be_asked_for_with_less)
{
    struct speak_token_call t;

    CHECK_INT(token_post("", &t), OK);
    CHECK_INT(t.scopes, 0);
    CHECK_INT(token_post("{\"user\":\"anna\",\"label\":\"laptop\",\"scopes\":"
                         "[\"send\",\"read\",\"send\"],\"expires_in_s\":60}",
                         &t),
              OK);
    CHECK_STR(t.user, "anna");
    CHECK_STR(t.label, "laptop");
    CHECK_INT(t.scopes, SCOPE_SEND | SCOPE_READ);
    CHECK_INT(t.expires_in_s, 60);
    CHECK_INT(token_post("{\"scopes\":[]}", &t), ERR_BAD_REQUEST);
    CHECK_INT(token_post("{\"scopes\":[\"send\",\"fly\"]}", &t),
              ERR_BAD_REQUEST);
    CHECK(strstr(why.text, "scopes must be an array"));
    CHECK_INT(token_post("{\"scopes\":[\"send\",3]}", &t), ERR_BAD_REQUEST);
    CHECK_INT(token_post("{\"scopes\":\"send\"}", &t), ERR_BAD_REQUEST);
    CHECK_INT(token_post("{\"expires_in_s\":0}", &t), ERR_BAD_REQUEST);
    CHECK_INT(token_post("{\"label\":\"a\\u0007\"}", &t), ERR_BAD_REQUEST);
}

static struct buf out;

static struct json_out fresh(void)
{
    buf_fini(&out);
    buf_init(&out, 65536);
    return json_out(&out);
}

static struct task some_task(enum task_status status)
{
    struct task t = {.conversation_id = STR("c-1"),
                     .requester = STR("anna"),
                     .root_user = STR("bob"),
                     .agent = STR("echo"),
                     .priority = PRIORITY_LOW,
                     .status = status,
                     .turn = 2,
                     .attempt = 1,
                     .text = STR("hi\n"),
                     .created_ms = 1,
                     .updated_ms = 2,
                     .deadline_ms = 3};

    snprintf(t.id.text, sizeof(t.id.text), "task_1");
    snprintf(t.message_id.text, sizeof(t.message_id.text), "msg_1");
    return t;
}

TEST(an_answer_has_the_result_once_it_is_over)
{
    struct json_out o = fresh();
    struct task t = some_task(TASK_COMPLETED);
    struct str d = STR("{\"layer\":\"explicit\"}");

    t.result = (struct task_result){.status = TASK_COMPLETED,
                                    .text = STR("hi"),
                                    .metadata = STR("{\"a\":1}")};
    json_open(&o, '{');
    speak_answer(&o, &t, d);
    json_close(&o, '}');
    CHECK_STR(buf_str(&out),
              "{\"message_id\":\"msg_1\",\"task_id\":\"task_1\","
              "\"conversation_id\":\"c-1\",\"status\":\"completed\","
              "\"agent\":\"echo\",\"text\":\"hi\",\"metadata\":{\"a\":1},"
              "\"turn\":2,\"error\":null,\"decision\":{\"layer\":"
              "\"explicit\"}}");
}

TEST(an_answer_before_the_end_has_no_text)
{
    struct json_out o = fresh();
    struct task t = some_task(TASK_QUEUED);

    /* The result of an earlier turn does not show up in this one. */
    t.result = (struct task_result){.status = TASK_FAILED,
                                    .text = STR("old"),
                                    .error_code = STR("timeout")};
    json_open(&o, '{');
    speak_answer(&o, &t, STR(""));
    json_close(&o, '}');
    CHECK_STR(buf_str(&out),
              "{\"message_id\":\"msg_1\",\"task_id\":\"task_1\","
              "\"conversation_id\":\"c-1\",\"status\":\"queued\","
              "\"agent\":\"echo\",\"text\":null,\"metadata\":{},"
              "\"turn\":2,\"error\":null,\"decision\":null}");
}

TEST(a_task_is_said_whole)
{
    struct json_out o = fresh();
    struct task t = some_task(TASK_EXPIRED);

    t.finished_ms = 9;
    t.result = (struct task_result){.status = TASK_EXPIRED,
                                    .error_code = STR("expired"),
                                    .error = STR("too late")};
    json_open(&o, '{');
    speak_task(&o, &t);
    json_close(&o, '}');
    CHECK_STR(
        buf_str(&out),
        "{\"id\":\"task_1\",\"message_id\":\"msg_1\",\"conversation_id\":"
        "\"c-1\",\"requester\":\"anna\",\"root_user\":\"bob\",\"agent\":"
        "\"echo\",\"skill\":null,\"priority\":\"LOW\",\"status\":\"expired\","
        "\"turn\":2,\"attempt\":1,\"text\":\"hi\\n\",\"metadata\":{},"
        "\"source\":{},\"created_ms\":1,\"updated_ms\":2,\"deadline_ms\":3,"
        "\"finished_ms\":9,\"parent_task_id\":null,\"depth\":0,\"by_agent\":"
        "null,\"root_task_id\":null,\"chain\":[],\"result\":"
        "{\"status\":\"expired\",\"text\":\"\",\"metadata\":{},\"error\":"
        "{\"code\":\"expired\",\"message\":\"too late\"}}}");
}

TEST(a_list_ends_in_a_cursor_or_null)
{
    struct json_out o = fresh();

    speak_list_open(&o);
    speak_conversation(&o, STR("c"), STR("echo"), 1, 2);
    speak_conversation(&o, STR("d"), STR("echo"), 3, 4);
    speak_list_close(&o, STR("echo"));
    CHECK_STR(
        buf_str(&out),
        "{\"items\":[{\"id\":\"c\",\"agent\":\"echo\",\"created_ms\":1,"
        "\"used_ms\":2},{\"id\":\"d\",\"agent\":\"echo\",\"created_ms\":3,"
        "\"used_ms\":4}],\"next_cursor\":\"echo\"}");
    o = fresh();
    speak_list_open(&o);
    speak_list_close(&o, STR(""));
    CHECK_STR(buf_str(&out), "{\"items\":[],\"next_cursor\":null}");
}

TEST(a_secret_is_said_only_with_a_new_token)
{
    struct json_out o = fresh();
    struct speak_token t = {.id = STR("tok_1"),
                            .user = STR("anna"),
                            .scopes = SCOPE_READ,
                            .created_ms = 1};

    speak_token(&o, &t);
    CHECK_STR(buf_str(&out),
              "{\"id\":\"tok_1\",\"user\":\"anna\",\"label\":\"\",\"scopes\":"
              "[\"read\"],\"created_ms\":1,\"expires_ms\":null}");
    o = fresh();
    t.secret = STR("sbx_x");
    speak_token(&o, &t);
    CHECK(memmem(out.p, out.n, "\"token\":\"sbx_x\"", 15));
}

TEST(an_event_is_one_line_of_data)
{
    struct json_out o = fresh();
    struct speak_event e;
    struct feed_entry entry = {.seq = 7,
                               .at_ms = 1,
                               .type = STR("task.accepted"),
                               .task_id = STR("task_1"),
                               .data = STR("{\r\n \"a\": \"\\n\"\n}")};

    e = speak_event_open(&out, STR("7"), entry.type);
    speak_entry(&o, &entry);
    speak_event_close(&e);
    CHECK_STR(buf_str(&out),
              "id: 7\nevent: task.accepted\ndata: {\"seq\":7,\"at_ms\":1,"
              "\"type\":\"task.accepted\",\"task_id\":\"task_1\","
              "\"conversation_id\":null,\"agent\":null,\"requester\":null,"
              "\"root_user\":null,\"data\":{   \"a\": \"\\n\" }}\n\n");
}

TEST(a_feed_that_went_back_says_from_where_to_where)
{
    struct json_out o = fresh();

    speak_feed_gap(&o, INT64_MAX, 0);
    CHECK_STR(buf_str(&out), "{\"after\":9223372036854775807,\"newest\":0}");
}

TEST(a_place_in_the_events_is_two_numbers)
{
    static const char *const bad[] = {"",
                                      "3",
                                      "3-",
                                      "-3",
                                      "3--1",
                                      "3-x",
                                      " 3-1",
                                      "3-1 ",
                                      "+3-1",
                                      "3-1-1",
                                      "a-1",
                                      "3-0x1",
                                      "3-9223372036854775807",
                                      "99999999999999999999-1"};
    struct speak_place p = {0, 0};
    char text[SPEAK_PLACE_BYTES];

    CHECK_INT(speak_place_read(STR("3-41"), &p), OK);
    CHECK_INT(p.epoch, 3);
    CHECK_INT(p.number, 41);
    CHECK_STR(speak_place_write(&p, text), "3-41");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK_INT(speak_place_read(str_of(bad[i]), &p), ERR_SYNTAX);
    CHECK_INT(p.number, 41);
}

TEST(percent_signs_are_undone_strictly)
{
    static const char *const bad[] = {"%",   "%4",  "%zz", "a%0a",
                                      "%00", "%7f", "%09", "%ff",
                                      "%c3", "%e",  "%-1", "%c3%28"};
    struct arena a;
    struct str s;

    arena_init(&a, 65536);
    CHECK_INT(speak_percent(&a, STR("a%2Fb%20%c3%A4+%22%5c"), false, &s), OK);
    CHECK_STR(s, "a/b \xc3\xa4+\"\\");
    CHECK_INT(speak_percent(&a, STR("a+b"), true, &s), OK);
    CHECK_STR(s, "a b");
    CHECK_INT(speak_percent(&a, STR(""), true, &s), OK);
    CHECK_INT(s.n, 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK_INT(speak_percent(&a, str_of(bad[i]), true, &s), ERR_SYNTAX);
    arena_fini(&a);
}

TEST(events_are_sent_to_whoever_asks_by_name)
{
    CHECK(speak_accepts(STR("text/event-stream"), SPEAK_EVENTS));
    CHECK(
        speak_accepts(STR("text/html, Text/Event-Stream;q=0.9"), SPEAK_EVENTS));
    CHECK(!speak_accepts(STR("*/*"), SPEAK_EVENTS));
    CHECK(!speak_accepts(STR("text/event-streams"), SPEAK_EVENTS));
    CHECK(!speak_accepts(STR(""), SPEAK_EVENTS));
}
