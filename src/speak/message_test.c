#include <stdio.h>

#include "base/fault.h"
#include "speak/speak.h"
#include "test/t.h"

static const struct caller anonymous;

/* One message, read, and the result. */
struct stage {
    struct msg *m;
    struct buf meaning;
    enum err e;
};

static struct stage said_with(struct str body, struct str header)
{
    struct stage s = {.m = msg_new(&anonymous, 0)};

    CHECK(s.m);
    buf_init(&s.meaning, SPEAK_MEANING_MAX);
    s.e = speak_message(s.m, body, header, &s.meaning);
    return s;
}

static struct stage said(const char *body)
{
    return said_with(str_of(body), STR(""));
}

static void end(struct stage *s)
{
    msg_free(s->m);
    buf_fini(&s->meaning);
}

/* The body is rejected with e, and the message contains `words`. */
static void refused(const char *body, enum err e, const char *words)
{
    struct stage s = said(body);

    CHECK_INT(s.e, e);
    if (!strstr(s.m->why.text, words))
        T_FAIL("\"%s\" is not in \"%s\"", words, s.m->why.text);
    end(&s);
}

TEST(a_message_says_everything_it_can)
{
    struct stage s =
        said(" {\"text\":\"he\\u006clo\",\"executor\":{\"name\":\"echo\"},"
             "\"skill\":\"say\",\"conversation_id\":\"c-1\","
             "\"task_id\":\"task_01jabcdefghjkmnpqrstvwxyz0\","
             "\"source\":{\"a\": [1, {}]},\"priority\":\"HIGH\","
             "\"idempotency_key\":\"k1\",\"wait_ms\":0,\"timeout_ms\":1,"
             "\"metadata\":{ \"b\" : \"}\\\"\" }}\n");

    CHECK_STR(str_of(s.m->why.text), "");
    CHECK_INT(s.e, OK);
    CHECK_STR(s.m->call.text, "hello");
    CHECK_STR(s.m->call.executor, "echo");
    CHECK_STR(s.m->call.skill, "say");
    CHECK_STR(s.m->call.conversation_id, "c-1");
    CHECK_STR(s.m->call.task_id, "task_01jabcdefghjkmnpqrstvwxyz0");
    CHECK_STR(s.m->call.source, "{\"a\": [1, {}]}");
    CHECK_STR(s.m->call.idempotency_key, "k1");
    CHECK_STR(s.m->call.metadata, "{ \"b\" : \"}\\\"\" }");
    CHECK_INT(s.m->call.priority, PRIORITY_HIGH);
    CHECK_INT(s.m->call.wait_ms, 0);
    CHECK_INT(s.m->call.timeout_ms, 1);
    end(&s);
}

TEST(what_is_not_said_has_its_default)
{
    struct stage s = said("{\"text\":\"x\",\"skill\":null,\"wait_ms\":null,"
                          "\"metadata\":null,\"executor\":null}");

    CHECK_INT(s.e, OK);
    CHECK_INT(s.m->call.executor.n, 0);
    CHECK_INT(s.m->call.skill.n, 0);
    CHECK_STR(s.m->call.source, "{}");
    CHECK_STR(s.m->call.metadata, "{}");
    CHECK_INT(s.m->call.priority, PRIORITY_NORMAL);
    CHECK_INT(s.m->call.wait_ms, SPEAK_WAIT_MS);
    CHECK_INT(s.m->call.timeout_ms, 0);
    end(&s);
}

TEST(the_spellings_of_the_seeds_are_taken)
{
    struct stage s = said("{\"text\":\"x\",\"metadata\":{\"executor\":{\"id\":"
                          "7,\"name\":\"anna\"},\"skill_used\":\"sing\"}}");

    CHECK_INT(s.e, OK);
    CHECK_STR(s.m->call.executor, "anna");
    CHECK_STR(s.m->call.skill, "sing");
    end(&s);
}

TEST(the_plain_fields_come_before_those_in_metadata)
{
    struct stage s =
        said("{\"text\":\"x\",\"executor\":{\"name\":\"bob\"},\"skill\":"
             "\"dance\",\"metadata\":{\"executor\":{\"name\":\"anna\"},"
             "\"skill_used\":\"sing\"}}");

    CHECK_INT(s.e, OK);
    CHECK_STR(s.m->call.executor, "bob");
    CHECK_STR(s.m->call.skill, "dance");
    end(&s);
}

TEST(metadata_of_another_shape_is_the_senders_own)
{
    static const char *const all[] = {
        "{\"text\":\"x\",\"metadata\":{\"executor\":7}}",
        "{\"text\":\"x\",\"metadata\":{\"executor\":{\"name\":7}}}",
        "{\"text\":\"x\",\"metadata\":{\"executor\":{}}}",
        "{\"text\":\"x\",\"metadata\":{\"executor\":null,\"skill_used\":1}}",
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct stage s = said(all[i]);

        CHECK_INT(s.e, OK);
        CHECK_INT(s.m->call.executor.n, 0);
        CHECK_INT(s.m->call.skill.n, 0);
        end(&s);
    }
    refused("{\"text\":\"x\",\"metadata\":{\"skill_used\":\"\"}}",
            ERR_BAD_REQUEST, "metadata.skill_used must be");
    refused("{\"text\":\"x\",\"metadata\":{\"executor\":{\"name\":\"a\\n\"}}}",
            ERR_BAD_REQUEST, "metadata.executor.name must be");
}

TEST(what_is_no_json_is_refused_with_its_place)
{
    refused("", ERR_SYNTAX, "the body is empty");
    refused("{\"text\":\"x\"", ERR_SYNTAX, "line 1, column");
    refused("{\n\"text\":}", ERR_SYNTAX, "line 2, column");
    refused("{\"text\":\"x\"}{}", ERR_SYNTAX, "not valid JSON");
    refused("{\"text\":\"x\",\"te\\u0078t\":\"y\"}", ERR_SYNTAX, "line 1");
    refused("[\"text\"]", ERR_BAD_REQUEST, "must be a JSON object");
    refused("null", ERR_BAD_REQUEST, "must be a JSON object");
}

TEST(an_unknown_field_is_refused_with_the_nearest)
{
    refused("{\"text\":\"x\",\"txet\":1}", ERR_BAD_REQUEST,
            "did you mean \"text\"?");
    refused("{\"text\":\"x\",\"waitms\":1}", ERR_BAD_REQUEST,
            "did you mean \"wait_ms\"?");
    refused("{\"text\":\"x\",\"executor\":{\"nam\":\"e\"}}", ERR_BAD_REQUEST,
            "did you mean \"executor.name\"?");
    refused("{\"text\":\"x\",\"something_else_altogether\":1}", ERR_BAD_REQUEST,
            "known: text, executor,");
    refused("{\"text\":\"x\",\"a\\u0000\\u001bb_and_more\":1}", ERR_BAD_REQUEST,
            "unknown field \"a");
}

TEST(each_field_says_what_it_must_be)
{
    static const struct {
        const char *body, *words;
    } all[] = {
        {"{}", "text is missing"},
        {"{\"text\":\"\"}", "text must be a string of 1 to 1048576 bytes"},
        {"{\"text\":5}", "text must be a string"},
        {"{\"text\":\"x\",\"executor\":\"gpt\"}",
         "executor must be an object: write \"executor\": {\"name\": \"gpt\"}"},
        {"{\"text\":\"x\",\"executor\":\"\"}", "{\"name\": \"NAME\"}"},
        {"{\"text\":\"x\",\"executor\":5}", "executor must be an object of"},
        {"{\"text\":\"x\",\"to\":\"gpt\"}",
         "unknown field \"to\"; to name an agent, give executor.name: "
         "\"executor\": {\"name\": \"gpt\"}"},
        {"{\"text\":\"x\",\"to\":[1]}", "{\"name\": \"NAME\"}"},
        {"{\"to\":\"a\",\"executor\":\"b\"}", "executor"},
        {"{\"text\":\"x\",\"tox\":\"gpt\"}", "unknown field \"tox\""},
        {"{\"text\":\"x\",\"executor\":{}}", "executor.name is missing"},
        {"{\"text\":\"x\",\"executor\":{\"name\":\"\"}}",
         "executor.name must be a string of 1 to 128"},
        {"{\"text\":\"x\",\"executor\":{\"name\":[]}}", "executor.name must"},
        {"{\"text\":\"x\",\"skill\":\"a\\u0000\"}", "skill must be a string"},
        {"{\"text\":\"x\",\"skill\":\"a\\tb\"}", "without control characters"},
        {"{\"text\":\"x\",\"skill\":\"a\xc2\x85\"}",
         "without control characters"},
        {"{\"text\":\"x\",\"idempotency_key\":\"\\u0080\"}",
         "without control characters"},
        {"{\"text\":\"x\",\"conversation_id\":\"\"}", "conversation_id must"},
        {"{\"text\":\"x\",\"conversation_id\":true}", "conversation_id must"},
        {"{\"text\":\"x\",\"task_id\":\"task_1\"}", "task_id must be a task's"},
        {"{\"text\":\"x\",\"source\":[]}", "source must be an object"},
        {"{\"text\":\"x\",\"metadata\":\"{}\"}", "metadata must be an object"},
        {"{\"text\":\"x\",\"priority\":\"high\"}", "priority must be"},
        {"{\"text\":\"x\",\"priority\":1}", "priority must be"},
        {"{\"text\":\"x\",\"idempotency_key\":\"a\\nb\"}",
         "idempotency_key must be a string of 1 to 255"},
        {"{\"text\":\"x\",\"wait_ms\":-1}", "wait_ms must be a whole number"},
        {"{\"text\":\"x\",\"wait_ms\":600001}", "from 0 to 600000"},
        {"{\"text\":\"x\",\"wait_ms\":1.0}", "wait_ms must be a whole number"},
        {"{\"text\":\"x\",\"wait_ms\":\"1\"}", "wait_ms must be a whole"},
        {"{\"text\":\"x\",\"timeout_ms\":0}", "timeout_ms must be a whole"},
        {"{\"text\":\"x\",\"timeout_ms\":86400001}", "from 1 to 86400000"},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        refused(all[i].body, ERR_BAD_REQUEST, all[i].words);
}

/* {"text":"x","FIELD":"nnnn"} with a value of that length. */
static struct stage with_string(const char *field, size_t n, bool as_object)
{
    struct buf body;
    struct stage s;

    buf_init(&body, 8 << 20);
    buf_addf(&body, "{%s\"%s\":%s",
             strcmp(field, "text") ? "\"text\":\"x\"," : "", field,
             as_object ? "{\"a\":\"" : "\"");
    for (size_t i = as_object ? 8 : 0; i < n; i++)
        buf_add_char(&body, 'n');
    buf_addf(&body, "\"%s}", as_object ? "}" : "");
    s = said_with(buf_str(&body), STR(""));
    buf_fini(&body);
    return s;
}

TEST(each_limit_is_what_may_just_be)
{
    static const struct {
        const char *field;
        size_t max;
        bool is_object;
        enum err beyond;
    } all[] = {
        {"text", MSG_TEXT_MAX, false, ERR_LIMIT},
        {"skill", MSG_SKILL_MAX, false, ERR_BAD_REQUEST},
        {"conversation_id", MSG_CONVERSATION_MAX, false, ERR_BAD_REQUEST},
        {"idempotency_key", MSG_KEY_MAX, false, ERR_BAD_REQUEST},
        {"metadata", MSG_METADATA_MAX, true, ERR_LIMIT},
        {"source", MSG_METADATA_MAX, true, ERR_LIMIT},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct stage at =
            with_string(all[i].field, all[i].max, all[i].is_object);
        struct stage over =
            with_string(all[i].field, all[i].max + 1, all[i].is_object);

        CHECK_INT(at.e, OK);
        CHECK_INT(over.e, all[i].beyond);
        CHECK(strstr(over.m->why.text, all[i].field));
        end(&at);
        end(&over);
    }
}

TEST(a_text_of_escapes_alone_may_be_as_long_as_any)
{
    struct buf body;
    struct stage s;

    buf_init(&body, 8 << 20);
    buf_addf(&body, "{\"text\":\"");
    for (size_t i = 0; i < MSG_TEXT_MAX; i++)
        buf_add_str(&body, STR("\\u0001"));
    buf_addf(&body, "\"}");
    s = said_with(buf_str(&body), STR(""));
    CHECK_INT(s.e, OK);
    CHECK_INT(s.m->call.text.n, MSG_TEXT_MAX);
    end(&s);
    body.n -= 2;
    buf_addf(&body, "\\u0001\"}");
    s = said_with(buf_str(&body), STR(""));
    CHECK_INT(s.e, ERR_LIMIT);
    end(&s);
    buf_fini(&body);
}

TEST(a_key_may_stand_in_the_header_or_the_body)
{
    struct stage s = said_with(STR("{\"text\":\"x\"}"), STR("k1"));

    CHECK_INT(s.e, OK);
    CHECK_STR(s.m->call.idempotency_key, "k1");
    end(&s);
    s = said_with(STR("{\"text\":\"x\",\"idempotency_key\":\"k1\"}"),
                  STR("k1"));
    CHECK_INT(s.e, OK);
    end(&s);
    s = said_with(STR("{\"text\":\"x\",\"idempotency_key\":\"k1\"}"),
                  STR("k2"));
    CHECK_INT(s.e, ERR_BAD_REQUEST);
    CHECK(strstr(s.m->why.text, "differ"));
    end(&s);
    s = said_with(STR("{\"text\":\"x\"}"), STR("k\xff"));
    CHECK_INT(s.e, ERR_BAD_REQUEST);
    CHECK(strstr(s.m->why.text, "Idempotency-Key"));
    end(&s);
}

TEST(a_key_in_the_header_has_the_limit_of_one_in_the_body)
{
    char key[MSG_KEY_MAX + 1];
    struct stage s;

    memset(key, 'k', sizeof(key));
    s = said_with(STR("{\"text\":\"x\"}"), (struct str){key, MSG_KEY_MAX});
    CHECK_INT(s.e, OK);
    end(&s);
    s = said_with(STR("{\"text\":\"x\"}"), (struct str){key, MSG_KEY_MAX + 1});
    CHECK_INT(s.e, ERR_BAD_REQUEST);
    end(&s);
}

static bool mean_the_same(const char *a, const char *b)
{
    struct stage x = said(a), y = said(b);
    bool is_same;

    CHECK_INT(x.e, OK);
    CHECK_INT(y.e, OK);
    is_same = str_eq(buf_str(&x.meaning), buf_str(&y.meaning));
    end(&x);
    end(&y);
    return is_same;
}

TEST(the_meaning_does_not_depend_on_the_layout)
{
    CHECK(mean_the_same(
        "{\"text\":\"hel\\u006co\",\"skill\":\"s\",\"metadata\":{\"a\":[1,2]}}",
        " { \"metadata\" : { \"a\" : [ 1,\n2 ] } ,\"skill\":\"s\",\n"
        "\"text\":\"hello\", \"priority\":\"NORMAL\" } "));
    CHECK(mean_the_same("{\"text\":\"x\",\"wait_ms\":5}",
                        "{\"text\":\"x\",\"idempotency_key\":\"k\"}"));
    CHECK(mean_the_same("{\"text\":\"x\",\"source\":{}}", "{\"text\":\"x\"}"));
}

TEST(another_meaning_looks_different)
{
    static const char *const all[] = {
        "{\"text\":\"x\"}",
        "{\"text\":\"y\"}",
        "{\"text\":\"x \"}",
        "{\"text\":\"x\",\"executor\":{\"name\":\"s\"}}",
        "{\"text\":\"x\",\"skill\":\"s\"}",
        "{\"text\":\"x\",\"conversation_id\":\"s\"}",
        "{\"text\":\"x\",\"task_id\":\"task_01jabcdefghjkmnpqrstvwxyz0\"}",
        "{\"text\":\"x\",\"priority\":\"LOW\"}",
        "{\"text\":\"x\",\"timeout_ms\":5}",
        "{\"text\":\"x\",\"metadata\":{\"a\":1}}",
        "{\"text\":\"x\",\"metadata\":{\"a\":\" \"}}",
        "{\"text\":\"x\",\"metadata\":{\"a\":\"\"}}",
        "{\"text\":\"x\",\"source\":{\"a\":1}}",
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        for (size_t j = 0; j < sizeof(all) / sizeof(*all); j++)
            CHECK(mean_the_same(all[i], all[j]) == (i == j));
}

TEST(nothing_is_left_of_the_body_in_the_message)
{
    char body[] = "{\"text\":\"hello\",\"metadata\":{\"a\":1},\"source\":"
                  "{\"b\":2},\"skill\":\"say\",\"executor\":{\"name\":\"e\"}}";
    struct stage s = said(body);

    CHECK_INT(s.e, OK);
    memset(body, '!', sizeof(body));
    CHECK_STR(s.m->call.text, "hello");
    CHECK_STR(s.m->call.metadata, "{\"a\":1}");
    CHECK_STR(s.m->call.source, "{\"b\":2}");
    CHECK_STR(s.m->call.skill, "say");
    CHECK_STR(s.m->call.executor, "e");
    end(&s);
}

TEST(reading_survives_every_fault)
{
    long nth = 0;
    bool has_fired;

    do {
        struct msg *m;
        struct buf meaning;
        enum err e = ERR_NOMEM;

        fault_arm(++nth);
        m = msg_new(&anonymous, 0);
        buf_init(&meaning, SPEAK_MEANING_MAX);
        if (m)
            e = speak_message(
                m,
                STR("{\"text\":\"h\\u0069\",\"t\\u0061sk_id\":null,"
                    "\"executor\":{\"name\":\"e\"},\"metadata\":{\"skill_used\""
                    ":\"x\"},\"source\":{}}"),
                STR("k"), &meaning);
        has_fired = fault_fired();
        CHECK(has_fired ? e != OK : e == OK);
        msg_free(m);
        buf_fini(&meaning);
    } while (has_fired);
    CHECK(nth > 1);
}

TEST(a_call_without_a_body_takes_none)
{
    struct why why;

    CHECK_INT(speak_nothing(STR(""), &why), OK);
    CHECK_INT(speak_nothing(STR(" {} "), &why), OK);
    CHECK_INT(speak_nothing(STR("{\"why\":1}"), &why), ERR_BAD_REQUEST);
    CHECK(strstr(why.text, "this call takes none"));
    CHECK_INT(speak_nothing(STR("[]"), &why), ERR_BAD_REQUEST);
    CHECK_INT(speak_nothing(STR("x"), &why), ERR_SYNTAX);
}
