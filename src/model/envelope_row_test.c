#include "model/envelope.h"
#include "test/t.h"

static struct arena arena;

static enum err of(const struct task *t, struct envelope *out)
{
    arena_init(&arena, 64 * 1024);
    return envelope_of_task(t, &arena, out);
}

TEST(an_envelope_is_read_back_from_its_row)
{
    struct task t = {
        .agent = STR("Rick"),
        .is_envelope = true,
        .priority = PRIORITY_URGENT, /* raised by a rule */
        .created_ms = 5,
        .text = STR("{ \"from\":\"Jay\", \"to\":\"rick\",\n"
                    "\"type\":\"HANDOFF\",\"priority\":\"HIGH\","
                    "\"timestamp\":\"1970-01-01T00:00:01Z\","
                    "\"reference\":\"L\\u0031\",\"message_id\":\"m-1\","
                    "\"context\":\"a \\\"word\\\"\","
                    "\"payload\":{\"a\": [1, 2]}}"),
    };
    struct envelope e;

    CHECK_INT(of(&t, &e), OK);
    CHECK_STR(e.from, "Jay");
    CHECK_STR(e.to, "Rick");
    CHECK_STR(e.type, "HANDOFF");
    CHECK_STR(e.reference, "L1");
    CHECK_STR(e.message_id, "m-1");
    CHECK_STR(e.context, "a \"word\"");
    CHECK_STR(e.payload, "{\"a\": [1, 2]}");
    CHECK_INT(e.priority, PRIORITY_HIGH);
    CHECK_INT(e.at_ms, 1000);
    CHECK(e.has_entered && !e.is_message && !e.is_approved && !e.fields);
    arena_fini(&arena);
}

TEST(a_persons_message_is_an_envelope_of_its_own_kind)
{
    struct task t = {.agent = STR("Rick"),
                     .requester = STR("anna"),
                     .metadata = STR("{\"a\":1}"),
                     .priority = PRIORITY_LOW,
                     .text = STR("{\"from\":\"Jay\"}"),
                     .created_ms = 5};
    struct envelope e;

    CHECK_INT(of(&t, &e), OK);
    CHECK(e.is_message && e.has_entered);
    CHECK_STR(e.from, "anna");
    CHECK_STR(e.to, "Rick");
    CHECK_STR(e.type, "MESSAGE");
    CHECK_STR(e.payload, "{\"a\":1}");
    CHECK_INT(e.priority, PRIORITY_LOW);
    CHECK_INT(e.at_ms, 5);
    arena_fini(&arena);
}

TEST(what_is_none_is_none)
{
    struct task t = {.is_envelope = true, .text = STR("hello")};
    struct envelope e;

    CHECK_INT(of(&t, &e), ERR_SYNTAX);
    arena_fini(&arena);
    t.text = STR("[1]");
    CHECK_INT(of(&t, &e), ERR_SYNTAX);
    arena_fini(&arena);
    t.text = STR("{}");
    CHECK_INT(of(&t, &e), OK);
    CHECK(!e.from.n && !e.payload.n && e.priority == PRIORITY_NORMAL);
    arena_fini(&arena);
}

TEST(in_words_it_is_its_context_or_what_it_is_about)
{
    struct envelope e = {.from = STR("Jay"), .type = STR("HANDOFF")};
    struct buf out;

    buf_init(&out, 1000);
    envelope_words(&e, &out);
    CHECK_STR(buf_str(&out), "HANDOFF from Jay");
    buf_clear(&out);
    e.reference = STR("L1");
    envelope_words(&e, &out);
    CHECK_STR(buf_str(&out), "HANDOFF from Jay about L1");
    buf_clear(&out);
    e.context = STR("please");
    envelope_words(&e, &out);
    CHECK_STR(buf_str(&out), "please");
    buf_fini(&out);
}
