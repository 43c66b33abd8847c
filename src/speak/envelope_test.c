#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/fault.h"
#include "speak/speak.h"
#include "test/t.h"

/* 2025-02-15T09:00:15Z, and the tolerance of the gate without rules. */
#define NOW_MS 1739610015000
static const struct caller anonymous;

/* One envelope, read, and the result. */
struct stage {
    struct msg *m;
    struct envelope e;
    struct buf meaning;
    enum err err;
};

static struct stage read_it(struct str body)
{
    struct stage s = {.m = msg_new(&anonymous, NOW_MS)};

    CHECK(s.m);
    buf_init(&s.meaning, SPEAK_MEANING_MAX);
    s.err = speak_envelope(s.m, body, &s.e);
    return s;
}

/* Read, and sent by Jay. */
static struct stage sent(struct str body)
{
    struct stage s = read_it(body);
    bool has_from = s.e.from.n > 0;

    CHECK_STR(str_of(s.m->why.text), "");
    CHECK_INT(s.err, OK);
    s.e.from = STR("Jay");
    s.err = speak_envelope_sent(s.m, body, &s.e, has_from, &s.meaning);
    return s;
}

static void end(struct stage *s)
{
    msg_free(s->m);
    buf_fini(&s->meaning);
}

static void refused(const char *body, enum err e, const char *words)
{
    struct stage s = read_it(str_of(body));

    CHECK_INT(s.err, e);
    if (!strstr(s.m->why.text, words))
        T_FAIL("\"%s\" is not in \"%s\"", words, s.m->why.text);
    end(&s);
}

/* The example of the seed, byte for byte, with a name of the sender. */
static const char example[] =
    "{\n  \"from\": \"Jay\",\n  \"to\": \"Z\",\n  \"type\": \"REQUEST\",\n"
    "  \"priority\": \"HIGH\",\n  \"timestamp\": \"2025-02-15T09:00:00Z\",\n"
    "  \"reference\": \"SUBM-C042-001\",\n  \"payload\": {\n"
    "    \"consultant_id\": \"C-042\", \"confidence_score\": 8.20\n  },\n"
    "  \"context\": \"Jay completed \\u0072esearch\",\n"
    "  \"message_id\": \"MSG-001\"\n}\n";

TEST(an_envelope_says_everything_it_can)
{
    struct stage s = read_it(str_of(example));

    CHECK_INT(s.err, OK);
    CHECK_STR(s.e.from, "Jay");
    CHECK_STR(s.e.to, "Z");
    CHECK_STR(s.e.type, "REQUEST");
    CHECK_INT(s.e.priority, PRIORITY_HIGH);
    CHECK_INT(s.e.at_ms, NOW_MS - 15000);
    CHECK_STR(s.e.reference, "SUBM-C042-001");
    CHECK_STR(s.e.context, "Jay completed research");
    CHECK_STR(s.e.message_id, "MSG-001");
    CHECK_STR(s.e.payload, "{\n    \"consultant_id\": \"C-042\", "
                           "\"confidence_score\": 8.20\n  }");
    end(&s);
}

TEST(an_envelope_goes_as_it_stands)
{
    struct stage s = sent(str_of(example));

    CHECK_INT(s.err, OK);
    CHECK_STR(s.m->call.text, example);
    CHECK_STR(s.m->call.executor, "Z");
    CHECK_INT(s.m->call.priority, PRIORITY_HIGH);
    CHECK_STR(s.m->call.conversation_id, "Jay>Z:SUBM-C042-001");
    CHECK_STR(s.m->call.idempotency_key, "envelope:MSG-001");
    CHECK_STR(s.m->call.metadata, "{}");
    CHECK_STR(s.m->call.source, "{}");
    CHECK_STR(s.m->call.envelope->payload,
              "{\n    \"consultant_id\": \"C-042\", "
              "\"confidence_score\": 8.20\n  }");
    end(&s);
}

TEST(what_an_envelope_leaves_out_is_put_in)
{
    struct stage s =
        sent(STR(" {\"to\": \"Z\",\"payload\":{ \"a\":1 },\"type\":\"X\"} "));

    CHECK_INT(s.err, OK);
    CHECK_STR(s.m->call.text,
              " {\"to\": \"Z\",\"payload\":{ \"a\":1 },\"type\":\"X\","
              "\"from\":\"Jay\",\"timestamp\":\"2025-02-15T09:00:15Z\"} ");
    CHECK_STR(s.m->call.envelope->payload, "{ \"a\":1 }");
    CHECK_INT(s.m->call.priority, PRIORITY_NORMAL);
    CHECK_INT(s.m->call.conversation_id.n, 0);
    CHECK_INT(s.m->call.idempotency_key.n, 0);
    /* Repeated a second later, it means the same. */
    CHECK_STR(buf_str(&s.meaning),
              "{\"to\":\"Z\",\"payload\":{\"a\":1},\"type\":\"X\"}");
    end(&s);
}

/* A null counts as absent, and its replacement is longer. */
TEST(what_stands_behind_a_null_is_found_where_it_went)
{
    struct stage s = sent(STR("{\"from\":null,\"timestamp\":null,\"to\":\"Z\","
                              "\"type\":\"X\",\"payload\":{\"a\":1}}"));

    CHECK_INT(s.err, OK);
    CHECK_STR(s.m->call.text,
              "{\"from\":\"Jay\",\"timestamp\":\"2025-02-15T09:00:15Z\","
              "\"to\":\"Z\",\"type\":\"X\",\"payload\":{\"a\":1}}");
    CHECK_STR(s.m->call.envelope->payload, "{\"a\":1}");
    end(&s);
}

TEST(what_an_envelope_may_cost_is_the_message_s)
{
    struct stage s =
        sent(STR("{\"to\":\"Z\",\"type\":\"X\",\"max_cost_micros\":0}"));

    CHECK(s.m->call.has_max_cost && s.m->call.max_cost_micros == 0);
    CHECK(strstr(s.m->call.text.p, "\"max_cost_micros\":0"));
    end(&s);
    s = sent(STR("{\"to\":\"Z\",\"type\":\"X\","
                 "\"max_cost_micros\":1000000000000000000}"));
    CHECK_INT(s.m->call.max_cost_micros, SPEAK_COST_MAX);
    end(&s);
    s = sent(STR("{\"to\":\"Z\",\"type\":\"X\",\"max_cost_micros\":null}"));
    CHECK(!s.m->call.has_max_cost);
    end(&s);
    refused("{\"to\":\"Z\",\"type\":\"X\",\"max_cost_micros\":-1}",
            ERR_BAD_REQUEST, "max_cost_micros must be");
    refused("{\"to\":\"Z\",\"type\":\"X\","
            "\"max_cost_micros\":1000000000000000001}",
            ERR_BAD_REQUEST, "max_cost_micros must be");
}

TEST(an_envelope_without_to_or_type_is_refused)
{
    refused("{\"type\":\"X\"}", ERR_BAD_REQUEST, "to is missing");
    refused("{\"to\":\"Z\"}", ERR_BAD_REQUEST, "type is missing");
    refused("{\"to\":null,\"type\":\"X\"}", ERR_BAD_REQUEST, "to is missing");
    refused("{}", ERR_BAD_REQUEST, "to is missing");
    refused("", ERR_SYNTAX, "empty");
    refused("[]", ERR_BAD_REQUEST, "object");
    refused("{\"to\":\"Z\"", ERR_SYNTAX, "column");
    refused("{\"to\":\"Z\",\"t\\u006f\":\"Y\"}", ERR_SYNTAX, "column");
}

TEST(an_unknown_field_of_an_envelope_is_named)
{
    refused("{\"to\":\"Z\",\"type\":\"X\",\"referense\":\"R\"}",
            ERR_BAD_REQUEST, "did you mean \"reference\"?");
    refused("{\"to\":\"Z\",\"type\":\"X\",\"wait_ms\":1}", ERR_BAD_REQUEST,
            "unknown field \"wait_ms\"");
}

TEST(a_field_of_another_type_is_refused)
{
    refused("{\"to\":1,\"type\":\"X\"}", ERR_BAD_REQUEST, "to must be");
    refused("{\"to\":\"\",\"type\":\"X\"}", ERR_BAD_REQUEST, "to must be");
    refused("{\"to\":\"Z\",\"type\":\"X\\n\"}", ERR_BAD_REQUEST,
            "type must be");
    refused("{\"to\":\"Z\",\"type\":\"X\",\"payload\":[]}", ERR_BAD_REQUEST,
            "payload must be an object");
    refused("{\"to\":\"Z\",\"type\":\"X\",\"context\":{}}", ERR_BAD_REQUEST,
            "context must be");
}

TEST(a_priority_that_is_none_is_refused)
{
    static const char *const bad[] = {"\"urgent\"", "\"MEDIUM\"", "1", "\"\""};
    char body[128];

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        snprintf(body, sizeof(body),
                 "{\"to\":\"Z\",\"type\":\"X\",\"priority\":%s}", bad[i]);
        refused(body, ERR_BAD_REQUEST, "priority must be");
    }
}

TEST(a_timestamp_is_read_however_far_off)
{
    static const struct {
        const char *said;
        int64_t at_ms;
    } cases[] = {
        {"2025-02-15T09:00:00Z", INT64_C(1739610000000)},
        {"2025-02-15T09:00:00", INT64_C(1739610000000)}, /* no zone: UTC */
        {"2025-02-15T09:00:00.123456", INT64_C(1739610000123)},
        {"2025-02-15T10:00:00+01:00", INT64_C(1739610000000)},
        {"1970-01-01T00:00:00Z", 0},
        {"9999-12-31T23:59:59Z", INT64_C(253402300799000)},
    };
    char body[160];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct stage s;

        snprintf(body, sizeof(body),
                 "{\"to\":\"Z\",\"type\":\"X\",\"timestamp\":\"%s\"}",
                 cases[i].said);
        s = read_it(str_of(body));
        CHECK_INT(s.err, OK);
        CHECK_INT(s.e.at_ms, cases[i].at_ms);
        end(&s);
    }
}

TEST(a_timestamp_that_is_none_is_refused)
{
    static const char *const bad[] = {"\"yesterday\"",
                                      "\"2025-02-15\"",
                                      "\"2025-02-30T09:00:00Z\"",
                                      "\"2025-02-15T09:00:00+99:00\"",
                                      "1739610000",
                                      "\"0000-00-00T00:00:00Z\"",
                                      "\"99999-01-01T00:00:00Z\""};
    char body[128];

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        snprintf(body, sizeof(body),
                 "{\"to\":\"Z\",\"type\":\"X\",\"timestamp\":%s}", bad[i]);
        refused(body, ERR_BAD_REQUEST, "timestamp");
    }
}

/* {"to":"Z","type":"X", BEFORE xxx… AFTER}, with n bytes of x. */
static struct stage with_n(const char *before, size_t n, const char *after,
                           char **body)
{
    size_t size = n + 128;
    char *p = malloc(size);
    int at;

    CHECK(p);
    at = snprintf(p, size, "{\"to\":\"Z\",\"type\":\"X\",%s", before);
    memset(p + at, 'x', n);
    snprintf(p + at + n, size - (size_t)at - n, "%s}", after);
    *body = p;
    return read_it(str_of(p));
}

TEST(each_field_at_its_limit_and_beyond)
{
    static const struct {
        const char *before, *after;
        size_t most;
        enum err beyond;
    } all[] = {
        {"\"from\":\"", "\"", ENVELOPE_NAME_MAX, ERR_BAD_REQUEST},
        {"\"message_id\":\"", "\"", ENVELOPE_ID_MAX, ERR_BAD_REQUEST},
        {"\"reference\":\"", "\"", ENVELOPE_REFERENCE_MAX, ERR_BAD_REQUEST},
        {"\"context\":\"", "\"", ENVELOPE_CONTEXT_MAX, ERR_LIMIT},
        {"\"payload\":{\"a\":\"", "\"}", ENVELOPE_PAYLOAD_MAX - 8, ERR_LIMIT},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        char *body;
        struct stage s =
            with_n(all[i].before, all[i].most, all[i].after, &body);

        CHECK_INT(s.err, OK);
        s.e.from = STR("Jay");
        s.err = speak_envelope_sent(s.m, str_of(body), &s.e, false, &s.meaning);
        CHECK_INT(s.err, OK);
        end(&s);
        free(body);
        s = with_n(all[i].before, all[i].most + 1, all[i].after, &body);
        CHECK_INT(s.err, all[i].beyond);
        CHECK(s.m->why.text[0]);
        end(&s);
        free(body);
    }
}

/* The envelope as a whole is limited as the text of a task, whatever its parts
 * allow. */
TEST(the_whole_at_its_limit_and_beyond)
{
    size_t room = MSG_TEXT_MAX - strlen("{\"to\":\"Z\",\"type\":\"X\"}") -
                  strlen(",\"from\":\"Jay\"") -
                  strlen(",\"timestamp\":\"2025-02-15T09:00:15Z\"");

    for (size_t more = 0; more < 2; more++) {
        size_t n = room + more;
        char *body = malloc(n + 64);
        struct stage s;

        CHECK(body);
        memset(body, ' ', n);
        snprintf(body + n, 64, "{\"to\":\"Z\",\"type\":\"X\"}");
        s = sent(str_of(body));
        CHECK_INT(s.err, more ? ERR_LIMIT : OK);
        if (!more)
            CHECK_INT(s.m->call.text.n, MSG_TEXT_MAX);
        end(&s);
        free(body);
    }
}

TEST(a_conversation_that_would_be_too_long_is_a_fresh_one)
{
    size_t room = MSG_CONVERSATION_MAX - strlen("Jay>Z:");

    for (size_t more = 0; more < 2; more++) {
        char *body;
        struct stage s = with_n("\"reference\":\"", room + more, "\"", &body);

        CHECK_INT(s.err, OK);
        s.e.from = STR("Jay");
        CHECK_INT(
            speak_envelope_sent(s.m, str_of(body), &s.e, false, &s.meaning),
            OK);
        CHECK_INT(s.m->call.conversation_id.n, more ? 0 : MSG_CONVERSATION_MAX);
        end(&s);
        free(body);
    }
}
