/* Envelopes are read in two places: speak/speak_envelope.c accepts them, and
 * gate/rules reads them for decisions without a server. Both must accept the
 * same ones and reject the others for the same reason. */
#include <stdio.h>

#include "gate/rules/rules.h"
#include "speak/speak.h"
#include "test/t.h"

#define NOW_MS INT64_C(1739610015000)

static const struct caller no_caller;

static enum err asked_about(struct str text, struct envelope *e,
                            struct arena *a)
{
    struct why why;

    return gate_envelope_read(a, text, NOW_MS, e, &why);
}

static void check_same(const struct envelope *a, const struct envelope *b)
{
    CHECK(str_eq(a->message_id, b->message_id));
    CHECK(str_eq(a->from, b->from));
    CHECK(str_eq(a->to, b->to));
    CHECK(str_eq(a->type, b->type));
    CHECK(str_eq(a->reference, b->reference));
    CHECK(str_eq(a->context, b->context));
    CHECK_INT(a->priority, b->priority);
    CHECK_INT(a->at_ms, b->at_ms);
}

static void check_text(struct str text, enum err want)
{
    struct msg *m = msg_new(&no_caller, NOW_MS);
    struct envelope in = {.at_ms = 0}, about = {.at_ms = 0};
    struct arena a;
    enum err e;

    CHECK(m);
    arena_init(&a, 64 << 20);
    e = speak_envelope(m, text, &in);
    if (e != want)
        T_FAIL("%.*s: %s, %s", STR_ARG(str_head(text, 100)), err_row(e)->code,
               m->why.text);
    e = asked_about(text, &about, &a);
    if (e != want)
        T_FAIL("%.*s: asked about it is %s", STR_ARG(str_head(text, 100)),
               err_row(e)->code);
    if (!e)
        check_same(&in, &about);
    arena_fini(&a);
    msg_free(m);
}

/* Send {"from":"f","to":"t","type":"y",KEY:…} with n bytes. */
static void check_long(const char *key, size_t n, enum err want)
{
    static const char *const needed[] = {"from", "to", "type"};
    bool is_payload = strcmp(key, "payload") == 0;
    struct buf text;

    buf_init(&text, 2 << 20);
    buf_add_char(&text, '{');
    for (size_t i = 0; i < 3; i++)
        if (strcmp(key, needed[i]) != 0) {
            buf_add_char(&text, '"');
            buf_add_str(&text, str_of(needed[i]));
            buf_add_str(&text, STR("\":\"x\","));
        }
    buf_add_char(&text, '"');
    buf_add_str(&text, str_of(key));
    buf_add_str(&text, is_payload ? STR("\":{\"a\":\"") : STR("\":\""));
    if (is_payload)
        n -= sizeof("{\"a\":\"\"}") - 1;
    while (n--)
        buf_add_char(&text, 'x');
    buf_add_str(&text, is_payload ? STR("\"}}") : STR("\"}"));
    CHECK(!text.over);
    check_text(buf_str(&text), want);
    buf_fini(&text);
}

TEST(what_is_taken_may_be_asked_about_and_nothing_else)
{
    static const struct {
        const char *members;
        enum err want;
    } cases[] = {
        {"", OK},
        {",\"reference\":null", OK},
        {",\"reference\":\"\"", ERR_BAD_REQUEST},
        {",\"reference\":\"R\"", OK},
        {",\"reference\":\"R\\n\"", ERR_BAD_REQUEST},
        {",\"reference\":[]", ERR_BAD_REQUEST},
        {",\"message_id\":\"\"", ERR_BAD_REQUEST},
        {",\"message_id\":null", OK},
        {",\"context\":\"\"", OK},
        {",\"context\":\"a\\nb\"", OK},
        {",\"context\":null", OK},
        {",\"context\":{}", ERR_BAD_REQUEST},
        {",\"payload\":null", OK},
        {",\"payload\":{\"a\":[1]}", OK},
        {",\"payload\":[]", ERR_BAD_REQUEST},
        {",\"priority\":null", OK},
        {",\"priority\":\"HIGH\"", OK},
        {",\"priority\":\"high\"", ERR_BAD_REQUEST},
        {",\"priority\":\"\"", ERR_BAD_REQUEST},
        {",\"priority\":1", ERR_BAD_REQUEST},
        {",\"timestamp\":null", OK},
        {",\"timestamp\":\"2025-02-15T09:00:00Z\"", OK},
        {",\"timestamp\":\"2025-02-15T10:00:00.5+01:00\"", OK},
        {",\"timestamp\":\"soon\"", ERR_BAD_REQUEST},
        {",\"timestamp\":\"\"", ERR_BAD_REQUEST},
        {",\"to\":\"Y\"", ERR_SYNTAX}, /* twice */
        {",\"approved\":true", ERR_BAD_REQUEST},
        {",\"referense\":\"R\"", ERR_BAD_REQUEST},
        {",", ERR_SYNTAX},
    };
    char text[256];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        snprintf(text, sizeof(text),
                 "{\"from\":\"Jay\",\"to\":\"Z\",\"type\":\"X\"%s}",
                 cases[i].members);
        check_text(str_of(text), cases[i].want);
    }
    check_text(STR("[]"), ERR_BAD_REQUEST);
    check_text(STR("{\"from\":\"Jay\",\"type\":\"X\"}"), ERR_BAD_REQUEST);
    check_text(STR("{\"from\":\"Jay\",\"to\":\"Z\"}"), ERR_BAD_REQUEST);
    check_text(STR("{\"from\":\"Jay\",\"to\":\"\",\"type\":\"X\"}"),
               ERR_BAD_REQUEST);
    check_text(STR("{\"from\":\"Jay\",\"to\":\"Z\",\"type\":7}"),
               ERR_BAD_REQUEST);
}

TEST(both_have_the_same_limits)
{
    static const struct {
        const char *key;
        size_t most;
        enum err beyond;
    } cases[] = {
        {"from", ENVELOPE_NAME_MAX, ERR_BAD_REQUEST},
        {"to", ENVELOPE_NAME_MAX, ERR_BAD_REQUEST},
        {"type", ENVELOPE_NAME_MAX, ERR_BAD_REQUEST},
        {"message_id", ENVELOPE_ID_MAX, ERR_BAD_REQUEST},
        {"reference", ENVELOPE_REFERENCE_MAX, ERR_BAD_REQUEST},
        {"context", ENVELOPE_CONTEXT_MAX, ERR_LIMIT},
        {"payload", ENVELOPE_PAYLOAD_MAX, ERR_LIMIT},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        check_long(cases[i].key, cases[i].most, OK);
        check_long(cases[i].key, cases[i].most + 1, cases[i].beyond);
    }
}
