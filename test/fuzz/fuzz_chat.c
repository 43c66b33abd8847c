/* Any bytes as the stream of a model's endpoint. Each event is read; what is
 * kept of it has its limits, and is JSON where it says so. Calls of tools are
 * put together, and what is written back of them is JSON whatever they were. */
#include <assert.h>

#include "base/json.h"
#include "base/sse.h"
#include "deliver/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_calls(struct chat_calls *c)
{
    struct buf out;

    buf_init(&out, 64 << 20);
    chat_write_calls(&out, c, STR("x"), 1);
    for (size_t i = 0; i < c->n; i++) {
        assert(strlen(c->list[i].id) > 0);
        for (size_t j = 0; j < i; j++)
            assert(strcmp(c->list[i].id, c->list[j].id) != 0);
        chat_write_answer(&out, &c->list[i], chat_arguments(&c->list[i]));
    }
    buf_add_char(&out, ']');
    if (!out.over) {
        struct buf whole;

        buf_init(&whole, 65 << 20);
        buf_add_char(&whole, '[');
        buf_add_str(&whole, buf_str(&out));
        assert(json_check(buf_str(&whole), NULL) == OK);
        buf_fini(&whole);
    }
    buf_fini(&out);
}

static bool on_event(void *ctx, const struct sse_event *e)
{
    struct chat_calls *calls = ctx;
    struct chat_word w;
    struct why why = {""};
    struct arena arena;
    enum err err;

    arena_init(&arena, e->data.n + (1 << 20));
    err = chat_read(&arena, e->data, &w, &why);
    assert(!err || why.text[0]);
    if (!err) {
        assert(w.model.n <= CHAT_NAME_MAX && w.finish.n <= CHAT_FINISH_MAX);
        assert(w.usage.n <= CHAT_USAGE_MAX && w.text.n <= e->data.n);
        assert(!w.usage.n || json_check(w.usage, NULL) == OK);
        assert(!w.text.n || w.has_choice);
        (void)!chat_calls_add(calls, &w);
        assert(calls->n <= CHAT_CALLS_MAX && calls->bytes <= CHAT_CALLS_BYTES);
    }
    arena_fini(&arena);
    return !w.is_done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct chat_calls calls;
    struct sse s;
    size_t half = n / 2;

    sse_init(&s, 1 << 16, on_event, &calls);
    if (sse_feed(&s, (struct str){(const char *)data, half}) == OK)
        (void)!sse_feed(&s, (struct str){(const char *)data + half, n - half});
    sse_fini(&s);
    check_calls(&calls);
    chat_calls_clear(&calls);
    return 0;
}
