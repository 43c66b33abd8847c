/* Any bytes as the stream of a model's endpoint. Each event is read; what is
 * kept of it has its limits, and is JSON where it says so. */
#include <assert.h>

#include "base/json.h"
#include "base/sse.h"
#include "deliver/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool on_event(void *ctx, const struct sse_event *e)
{
    struct chat_word w;
    struct why why = {""};
    struct arena arena;
    enum err err;

    (void)ctx;
    arena_init(&arena, e->data.n + (1 << 20));
    err = chat_read(&arena, e->data, &w, &why);
    assert(!err || why.text[0]);
    if (!err) {
        assert(w.model.n <= CHAT_NAME_MAX && w.finish.n <= CHAT_FINISH_MAX);
        assert(w.usage.n <= CHAT_USAGE_MAX && w.text.n <= e->data.n);
        assert(!w.usage.n || json_check(w.usage, NULL) == OK);
        assert(!w.text.n || w.has_choice);
    }
    arena_fini(&arena);
    return !w.is_done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct sse s;
    size_t half = n / 2;

    sse_init(&s, 1 << 16, on_event, NULL);
    if (sse_feed(&s, (struct str){(const char *)data, half}) == OK)
        (void)!sse_feed(&s, (struct str){(const char *)data + half, n - half});
    sse_fini(&s);
    return 0;
}
