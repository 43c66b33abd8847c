#include "test/t.h"
#include "wire/wire.h"

/* The batch that was read, with its arena. */
struct heard {
    struct arena arena;
    struct wire_batch batch;
    struct why why;
    enum err e;
};

static struct heard *hear(struct heard *h, const char *text)
{
    arena_init(&h->arena, 1 << 20);
    h->why.text[0] = 0;
    h->e = wire_read(&h->arena, str_of(text), &h->batch, &h->why);
    return h;
}

static struct wire_message *only(struct heard *h)
{
    CHECK_INT(h->e, OK);
    CHECK_INT(h->batch.n, 1);
    CHECK(!h->batch.is_array);
    return &h->batch.list[0];
}

static void is_bad(const char *text, const char *id, const char *word)
{
    struct heard h;
    struct wire_message *m = only(hear(&h, text));

    CHECK_INT(m->kind, WIRE_BAD);
    CHECK_STR(m->id.raw, id);
    if (!strstr(m->why.text, word))
        T_FAIL("\"%s\" does not say \"%s\"", m->why.text, word);
    arena_fini(&h.arena);
}

TEST(ids_come_back_as_they_came_and_are_compared_as_strings)
{
    struct heard a, b, c;
    struct wire_message *m =
        only(hear(&a, "{\"jsonrpc\":\"2.0\",\"id\": 7 ,\"method\":\"x\"}"));
    struct wire_message *n =
        only(hear(&b, "{\"method\":\"x\",\"jsonrpc\":\"2.0\",\"id\":\"7\"}"));
    struct wire_message *s = only(
        hear(&c, "{\"method\":\"x\",\"jsonrpc\":\"2.0\",\"id\":\"\\u0037\"}"));

    CHECK_STR(m->id.raw, "7");
    CHECK_STR(n->id.raw, "\"7\"");
    CHECK_STR(s->id.raw, "\"\\u0037\"");
    CHECK(str_eq(m->id.text, n->id.text) && str_eq(m->id.text, s->id.text));
    arena_fini(&a.arena);
    arena_fini(&b.arena);
    arena_fini(&c.arena);
}

TEST(an_id_of_another_kind_is_refused)
{
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\"}", "", "id");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"x\"}", "", "id");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":1e2,\"method\":\"x\"}", "", "id");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"x\"}", "", "id");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}", "", "id");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"x\"}", "", "id");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":1}", "", "id");
}

TEST(what_is_wrong_is_said_with_the_id)
{
    is_bad("{\"id\":1,\"method\":\"x\"}", "1", "jsonrpc");
    is_bad("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}", "1", "jsonrpc");
    is_bad("{\"jsonrpc\":2.0,\"id\":1,\"method\":\"x\"}", "1", "jsonrpc");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":1}", "1", "method");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", "1", "method");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":3}", "1", "method");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":null}",
           "1", "params");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":\"y\"}",
           "1", "params");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"result\":1}", "1",
           "one of them");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{}}", "1",
           "not both");
    is_bad("{\"jsonrpc\":\"2.0\",\"result\":1}", "", "id");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"x\"}", "1", "error");
    is_bad("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1}}", "1",
           "message");
    is_bad("3", "", "object");
}

TEST(answers_are_told_from_requests)
{
    struct heard h;
    struct wire_message *m =
        only(hear(&h, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":null}"));

    CHECK_INT(m->kind, WIRE_RESULT);
    CHECK_INT(m->result->type, JSON_NULL);
    arena_fini(&h.arena);
    m = only(hear(&h, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":"
                      "-32700,\"message\":\"what?\"}}"));
    CHECK_INT(m->kind, WIRE_ERROR);
    CHECK_INT(m->code, -32700);
    CHECK_STR(m->error, "what?");
    CHECK_STR(m->id.raw, "");
    arena_fini(&h.arena);
    m = only(hear(&h, "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"x\":1}"));
    CHECK_INT(m->kind, WIRE_NOTIFICATION);
    CHECK(!m->params);
    arena_fini(&h.arena);
}

/* Limits: each one exactly reached, and exceeded by one. */

static void add_batch(struct buf *out, int n)
{
    buf_clear(out);
    for (int i = 0; i < n; i++)
        buf_addf(out, "%c{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"id\":%d}",
                 i ? ',' : '[', i);
    buf_add_str(out, STR("]"));
    buf_add_char(out, 0);
}

TEST(a_batch_has_a_limit)
{
    struct heard h;
    struct buf text;

    buf_init(&text, 1 << 16);
    add_batch(&text, WIRE_BATCH_MAX);
    CHECK_INT(hear(&h, text.p)->e, OK);
    CHECK_INT(h.batch.n, WIRE_BATCH_MAX);
    CHECK(h.batch.is_array);
    CHECK_STR(h.batch.list[63].id.raw, "63");
    arena_fini(&h.arena);
    add_batch(&text, WIRE_BATCH_MAX + 1);
    CHECK_INT(hear(&h, text.p)->e, ERR_LIMIT);
    CHECK(!h.batch.list && strstr(h.why.text, "64"));
    arena_fini(&h.arena);
    buf_fini(&text);
}

static enum err read_deep(int depth)
{
    struct heard h;
    struct buf text;

    buf_init(&text, 1 << 16);
    buf_add_str(&text,
                STR("{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":"));
    for (int i = 1; i < depth; i++)
        buf_add_char(&text, '[');
    for (int i = 1; i < depth; i++)
        buf_add_char(&text, ']');
    buf_add_str(&text, STR("}"));
    buf_add_char(&text, 0);
    hear(&h, text.p);
    arena_fini(&h.arena);
    buf_fini(&text);
    return h.e;
}

TEST(nesting_has_a_limit)
{
    CHECK_INT(read_deep(WIRE_DEPTH_MAX), OK);
    CHECK_INT(read_deep(WIRE_DEPTH_MAX + 1), ERR_LIMIT);
    CHECK_INT(read_deep(JSON_DEPTH_MAX + 1), ERR_SYNTAX);
}

static enum wire_kind read_long(size_t id_bytes, size_t method_bytes)
{
    struct heard h;
    struct buf text;
    enum wire_kind kind;

    buf_init(&text, 1 << 16);
    buf_add_str(&text, STR("{\"jsonrpc\":\"2.0\",\"id\":\""));
    for (size_t i = 0; i < id_bytes; i++)
        buf_add_char(&text, 'i');
    buf_add_str(&text, STR("\",\"method\":\""));
    for (size_t i = 0; i < method_bytes; i++)
        buf_add_char(&text, 'm');
    buf_add_str(&text, STR("\"}"));
    buf_add_char(&text, 0);
    kind = only(hear(&h, text.p))->kind;
    arena_fini(&h.arena);
    buf_fini(&text);
    return kind;
}

TEST(ids_and_methods_have_limits)
{
    CHECK_INT(read_long(WIRE_ID_MAX, WIRE_METHOD_MAX), WIRE_REQUEST);
    CHECK_INT(read_long(WIRE_ID_MAX + 1, 1), WIRE_BAD);
    CHECK_INT(read_long(8, WIRE_METHOD_MAX + 1), WIRE_BAD);
}

/* Ids are compared after unescaping. */
TEST(an_id_that_is_written_at_length_is_as_long_as_what_it_says)
{
    struct heard h;
    struct buf text;

    for (size_t n = WIRE_ID_MAX; n <= WIRE_ID_MAX + 1; n++) {
        struct wire_message *m;

        buf_init(&text, 1 << 16);
        buf_add_str(&text, STR("{\"jsonrpc\":\"2.0\",\"id\":\""));
        for (size_t i = 0; i < n; i++)
            buf_add_str(&text, STR("\\u0041"));
        buf_add_str(&text, STR("\",\"method\":\"x\"}"));
        buf_add_char(&text, 0);
        m = only(hear(&h, text.p));
        CHECK_INT(m->kind, n > WIRE_ID_MAX ? WIRE_BAD : WIRE_REQUEST);
        CHECK_INT(m->id.raw.n, n > WIRE_ID_MAX ? 0 : WIRE_ID_RAW_MAX);
        arena_fini(&h.arena);
        buf_fini(&text);
    }
}

TEST(whole_numbers_are_ids_as_far_as_they_fit)
{
    static const char *const fit[] = {"-0", "0", "9223372036854775807",
                                      "-9223372036854775808"};
    static const char *const over[] = {"9223372036854775808",
                                       "-9223372036854775809",
                                       "123456789012345678901234567890"};
    struct heard h;
    char text[128];

    for (size_t i = 0; i < sizeof(fit) / sizeof(*fit); i++) {
        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"id\":%s}", fit[i]);
        CHECK_STR(only(hear(&h, text))->id.raw, fit[i]);
        arena_fini(&h.arena);
    }
    for (size_t i = 0; i < sizeof(over) / sizeof(*over); i++) {
        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"id\":%s}", over[i]);
        CHECK_INT(hear(&h, text)->e, ERR_BAD_REQUEST);
        CHECK(strstr(h.why.text, "does not fit"));
        arena_fini(&h.arena);
    }
}

TEST(a_tree_that_does_not_fit_is_too_large)
{
    struct wire_batch b;
    struct arena a;
    struct why why;

    arena_init(&a, 256);
    CHECK_INT(
        wire_read(&a, STR("[[[],[],[],[],[],[],[],[],[],[],[]]]"), &b, &why),
        ERR_LIMIT);
    CHECK(!b.list && !b.n);
    arena_fini(&a);
}
