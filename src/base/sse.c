/* Bytes become lines, lines become fields, and an empty line completes an
 * event. A line may end in CR, LF or both, and a chunk may end between the
 * two. */
#include "base/sse.h"

void sse_init(struct sse *s, size_t event_bytes, sse_fn *fn, void *ctx)
{
    *s = (struct sse){.fn = fn, .ctx = ctx};
    buf_init(&s->line, event_bytes + sizeof("data: "));
    buf_init(&s->data, event_bytes + 1);
    buf_init(&s->type, SSE_ID_MAX);
    buf_init(&s->id, SSE_ID_MAX);
}

void sse_fini(struct sse *s)
{
    buf_fini(&s->line);
    buf_fini(&s->data);
    buf_fini(&s->type);
    buf_fini(&s->id);
}

static void sse_forget_event(struct sse *s)
{
    buf_clear(&s->data);
    buf_clear(&s->type);
    s->is_data = false;
}

void sse_restart(struct sse *s)
{
    sse_forget_event(s);
    buf_clear(&s->line);
    s->was_cr = s->is_begun = false;
}

static enum err sse_dispatch(struct sse *s)
{
    struct str type = buf_str(&s->type), data = buf_str(&s->data);
    bool goes_on = true;

    if (s->is_data) {
        struct sse_event e = {.id = buf_str(&s->id),
                              .type = type.n ? type : STR("message"),
                              .data = str_sub(data, 0, data.n - 1)};

        goes_on = s->fn(s->ctx, &e);
    }
    sse_forget_event(s);
    return goes_on ? OK : ERR_GONE;
}

static enum err sse_take_field(struct sse *s, struct str name, struct str value)
{
    if (str_eq(name, STR("data"))) {
        buf_add_str(&s->data, value);
        buf_add_char(&s->data, '\n');
        s->is_data = true;
    } else if (str_eq(name, STR("event"))) {
        buf_clear(&s->type);
        buf_add_str(&s->type, value);
    } else if (str_eq(name, STR("id")) && str_find(value, '\0', 0) == value.n) {
        buf_clear(&s->id);
        buf_add_str(&s->id, value);
    }
    return s->data.over || s->type.over || s->id.over ? ERR_LIMIT : OK;
}

static enum err sse_take_line(struct sse *s)
{
    struct str line = buf_str(&s->line), name;
    enum err e = OK;

    if (!s->is_begun && str_starts(line, STR("\xef\xbb\xbf")))
        line = str_sub(line, 3, line.n);
    s->is_begun = true;
    if (!line.n) {
        e = sse_dispatch(s);
    } else if (line.p[0] != ':') {
        name = str_cut(&line, ':');
        if (str_starts(line, STR(" ")))
            line = str_sub(line, 1, line.n);
        e = sse_take_field(s, name, line);
    }
    buf_clear(&s->line);
    return e;
}

/* Two fast searches, for LF and CR, in growing steps. Searching to the end for
 * the one that does not occur would repeat that whole distance for every
 * line. */
size_t sse_line_end(struct str bytes, size_t from)
{
    for (size_t step = 64; from < bytes.n; from += step, step *= 2) {
        struct str part = str_sub(bytes, 0, from + step);
        size_t lf = str_find(part, '\n', from);
        size_t end = str_find(str_sub(part, 0, lf), '\r', from);

        if (end < part.n)
            return end;
    }
    return bytes.n;
}

enum err sse_feed(struct sse *s, struct str bytes)
{
    enum err e = OK;

    while (bytes.n && !e) {
        size_t n;

        if (s->was_cr && bytes.p[0] == '\n')
            bytes = str_sub(bytes, 1, bytes.n);
        s->was_cr = false;
        n = sse_line_end(bytes, 0);
        buf_add_str(&s->line, str_sub(bytes, 0, n));
        if (s->line.over)
            return ERR_LIMIT;
        if (n == bytes.n)
            break;
        s->was_cr = bytes.p[n] == '\r';
        bytes = str_sub(bytes, n + 1, bytes.n);
        e = sse_take_line(s);
    }
    return e;
}
