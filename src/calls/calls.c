/* The table is walked from top to bottom: with a few dozen rows that is some
 * ten nanoseconds, and a reader sees at once what there is. */
#include "calls/calls.h"

#include <stdio.h>

#include "calls/internal.h"
#include "speak/speak.h"

static const struct call_row {
    struct str method, path;
    void (*take)(struct call *c);
} table[] = {
    {STR("GET"), STR("/"), call_front},
    {STR("GET"), STR("/healthz"), call_healthz},
    {STR("GET"), STR("/readyz"), call_readyz},
    {STR("GET"), STR("/metrics"), call_metrics},
};

enum { N_ROWS = sizeof(table) / sizeof(*table), ANSWER_BYTES = 1024 * 1024 };

void calls_init(struct calls *c, const struct calls_opts *opts)
{
    *c = (struct calls){.loop = opts->loop,
                        .log = opts->log,
                        .net = opts->net,
                        .started_mono_ms = loop_mono_ms(opts->loop),
                        .is_ready = true};
    buf_init(&c->body, ANSWER_BYTES);
}

void calls_fini(struct calls *c)
{
    buf_fini(&c->body);
}

void call_answer(struct call *c, int status, struct str type)
{
    struct http_reply r = {
        .status = status, .content_type = type, .body = buf_str(c->body)};

    if (c->body->over) {
        log_error(c->calls->log, "calls.answer_too_large",
                  LOG_S("path", c->rq->path));
        call_refuse(c, ERR_INTERNAL, STR(""));
        return;
    }
    net_reply(c->calls->net, c->id, &r);
}

static void refuse_with(struct call *c, enum err e, struct str message,
                        const struct http_header *headers, size_t n_headers)
{
    struct http_reply r = {.status = err_row(e)->http_status,
                           .content_type = SPEAK_JSON,
                           .headers = headers,
                           .n_headers = n_headers};

    buf_clear(c->body);
    speak_error(c->body, e, message, STR(""));
    /* Without memory even for that, the status alone has to do. */
    r.body = c->body->over ? STR("") : buf_str(c->body);
    net_reply(c->calls->net, c->id, &r);
}

void call_refuse(struct call *c, enum err e, struct str message)
{
    refuse_with(c, e, message, NULL, 0);
}

/* HEAD is GET without its body, which net leaves out. */
static bool fits(const struct call_row *row, struct str method)
{
    return str_eq(row->method, method) ||
           (str_eq(row->method, STR("GET")) && str_eq(method, STR("HEAD")));
}

static void refuse_method(struct call *c)
{
    struct buf allow;
    struct http_header h = {.name = STR("Allow")};
    char message[320];

    buf_init(&allow, 256);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (!str_eq(table[i].path, c->rq->path))
            continue;
        buf_add_str(&allow, allow.n ? STR(", ") : STR(""));
        buf_add_str(&allow, table[i].method);
        if (str_eq(table[i].method, STR("GET")))
            buf_add_str(&allow, STR(", HEAD"));
    }
    h.value = buf_str(&allow);
    snprintf(message, sizeof(message),
             "this path does not take that method; it takes %.*s",
             STR_ARG(h.value));
    refuse_with(c, ERR_METHOD, str_of(message), &h, 1);
    buf_fini(&allow);
}

static void refuse_path(struct call *c)
{
    struct str path = str_sub(c->rq->path, 0, 200);
    char message[256];
    int n = snprintf(message, sizeof(message),
                     "there is no %.*s here; GET / says what there is",
                     STR_ARG(path));

    call_refuse(c, ERR_NOT_FOUND, (struct str){message, (size_t)n});
}

void calls_take(struct calls *calls, uint64_t id, const struct http_request *rq)
{
    struct call c = {.calls = calls, .id = id, .rq = rq, .body = &calls->body};
    bool path_is_known = false;

    buf_clear(c.body);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (!str_eq(table[i].path, rq->path))
            continue;
        path_is_known = true;
        if (fits(&table[i], rq->method)) {
            table[i].take(&c);
            return;
        }
    }
    if (path_is_known)
        refuse_method(&c);
    else
        refuse_path(&c);
}
