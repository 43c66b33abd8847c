/* Any bytes as the stream of a model's endpoint, in each dialect. Each event is
 * read; what is kept of it has its limits, and is JSON where it says so. Calls
 * of tools are put together, and what is written back of them is JSON whatever
 * they were. */
#include <assert.h>

#include "base/json.h"
#include "base/sse.h"
#include "wire/chat/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_calls(struct chat_calls *c, enum model_kind kind)
{
    struct str answers[CHAT_CALLS_MAX];
    struct buf out;

    for (size_t i = 0; i < c->n; i++)
        answers[i] = chat_arguments(&c->list[i]);
    buf_init(&out, 64 << 20);
    buf_add_char(&out, '[');
    chat_write_round(&out, kind, c, STR("x"), answers, 1);
    buf_add_char(&out, ']');
    for (size_t i = 0; i < c->n; i++) {
        assert(strlen(c->list[i].id) > 0);
        for (size_t j = 0; j < i; j++)
            assert(strcmp(c->list[i].id, c->list[j].id) != 0);
    }
    if (!out.over) {
        out.p[1] = out.p[1] == ',' ? ' ' : out.p[1];
        assert(json_check(buf_str(&out), NULL) == OK);
    }
    buf_fini(&out);
}

struct hearing {
    enum model_kind kind;
    struct chat_calls api;
};

static bool on_event(void *ctx, const struct sse_event *e)
{
    struct hearing *h = ctx;
    struct chat_word w;
    struct why why = {""};
    struct arena arena;
    enum err err;

    arena_init(&arena, e->data.n + (1 << 20));
    err = chat_read(&arena, h->kind, e->data, &w, &why);
    assert(!err || why.text[0]);
    if (!err) {
        assert(w.model.n <= CHAT_NAME_MAX && w.finish.n <= CHAT_FINISH_MAX);
        assert(w.usage.n <= CHAT_USAGE_MAX && w.text.n <= e->data.n);
        assert(!w.usage.n || json_check(w.usage, NULL) == OK);
        assert(!w.text.n || w.has_choice);
        for (size_t i = 0; i < CHAT_USED; i++)
            assert(w.used[i] >= -1 && w.used[i] <= CHAT_USED_MAX);
        (void)!chat_calls_add(&h->api, &w);
        assert(h->api.n <= CHAT_CALLS_MAX && h->api.bytes <= CHAT_CALLS_BYTES);
    }
    arena_fini(&arena);
    return !w.is_done;
}

static void check_stream(struct str bytes, enum model_kind kind)
{
    static struct hearing h;
    struct sse s;
    size_t half = bytes.n / 2;

    h.kind = kind;
    sse_init(&s, 1 << 16, on_event, &h);
    if (sse_feed(&s, str_sub(bytes, 0, half)) == OK)
        (void)!sse_feed(&s, str_sub(bytes, half, bytes.n));
    sse_fini(&s);
    check_calls(&h.api, kind);
    chat_calls_clear(&h.api);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str bytes = {(const char *)data, n};

    for (int kind = 0; kind < MODEL_KINDS; kind++)
        check_stream(bytes, (enum model_kind)kind);
    return 0;
}
