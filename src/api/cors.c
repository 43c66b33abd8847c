/* CORS (Fetch standard, §3.2): which pages of other origins may read answers.
 *
 * Exactly those of http.allowedOrigins. The answer repeats the one origin of
 * the request and never says "*". It never allows credentials: a page needs its
 * own token, and cookies mean nothing here. The headers are set on the
 * connection as soon as the request is there, so that every answer has them,
 * from whichever file: errors, streams, unknown paths. Every answer has Vary:
 * Origin. */
#include "api/internal.h"
#include "base/fault.h"

/* A browser sends a preflight before requests that a form could not make.
 * Safari repeats it after ten minutes in any case. */
#define METHODS STR("GET, HEAD, POST, PUT, PATCH, DELETE")
#define HEADERS                                                    \
    STR("Authorization, Content-Type, Idempotency-Key, If-Match, " \
        "If-None-Match, Last-Event-ID, Signalbox-Answers, "        \
        "traceparent, tracestate")
#define MAX_AGE_S STR("600")

/* Besides those that every page may read. */
#define EXPOSED STR("Allow, ETag, Location, Next-Cursor, Retry-After")

void cors_begin(struct call *c)
{
    struct str origin = http_header(c->rq, STR("Origin"));
    const struct http_header headers[] = {
        {STR("Access-Control-Allow-Origin"), origin},
        {STR("Access-Control-Expose-Headers"), EXPOSED},
    };

    c->is_cross = origin.p && !call_has_twice(c, STR("Origin")) &&
                  (access_origin_is_listed(&c->api->settings.names, origin) ||
                   PLANTED("calls.any_origin"));
    if (c->is_cross)
        net_reply_also(c->api->net, c->id, headers, 2);
}

bool cors_is_asked(const struct call *c)
{
    return str_eq(c->rq->method, STR("OPTIONS")) &&
           http_header(c->rq, STR("Origin")).p &&
           http_header(c->rq, STR("Access-Control-Request-Method")).p;
}

/* The same for every path, even an unknown one: the request itself then gets an
 * error that the page can read. */
void cors_answer(struct call *c)
{
    static const struct http_header headers[] = {
        {STR("Access-Control-Allow-Methods"), METHODS},
        {STR("Access-Control-Allow-Headers"), HEADERS},
        {STR("Access-Control-Max-Age"), MAX_AGE_S},
    };

    api_answer_with(c->api, c->id, 204, STR(""), headers, 3);
}
