/* CORS (Fetch standard, §3.2): which pages of other origins may read answers.
 *
 * Exactly those of http.allowedOrigins. The answer repeats the one origin that
 * asked and never says "*". It never allows credentials: a page has to have a
 * token of its own, and a browser's cookies mean nothing here. The headers lie
 * on the connection from the moment the request is here, so that every answer
 * has them, whichever file gives it: an error, a stream, a path that is not
 * there. Every answer says Vary: Origin, since what is said depends on it. */
#include "base/fault.h"
#include "calls/internal.h"

/* A browser asks before a request that a form could not make. Safari asks
 * again after ten minutes whatever is said. */
#define METHODS STR("GET, HEAD, POST, PUT, PATCH, DELETE")
#define HEADERS                                                    \
    STR("Authorization, Content-Type, Idempotency-Key, If-Match, " \
        "If-None-Match, Last-Event-ID, Signalbox-Answers, "        \
        "traceparent, tracestate")
#define MAX_AGE_S STR("600")

/* Beside those that every page may read. */
#define EXPOSED STR("Allow, ETag, Location, Next-Cursor, Retry-After")

void cors_begin(struct call *c)
{
    struct str origin = http_header(c->rq, STR("Origin"));
    const struct http_header headers[] = {
        {STR("Access-Control-Allow-Origin"), origin},
        {STR("Access-Control-Expose-Headers"), EXPOSED},
    };

    c->is_cross = origin.p && !call_has_twice(c, STR("Origin")) &&
                  (access_origin_is_listed(&c->calls->settings.names, origin) ||
                   PLANTED("calls.any_origin"));
    if (c->is_cross)
        net_reply_also(c->calls->net, c->id, headers, 2);
}

bool cors_is_asked(const struct call *c)
{
    return str_eq(c->rq->method, STR("OPTIONS")) &&
           http_header(c->rq, STR("Origin")).p &&
           http_header(c->rq, STR("Access-Control-Request-Method")).p;
}

/* The same for every path, also for one that is not there: the call itself
 * then says so, in words that the page can read. */
void cors_answer(struct call *c)
{
    static const struct http_header headers[] = {
        {STR("Access-Control-Allow-Methods"), METHODS},
        {STR("Access-Control-Allow-Headers"), HEADERS},
        {STR("Access-Control-Max-Age"), MAX_AGE_S},
    };

    calls_answer_with(c->calls, c->id, 204, STR(""), headers, 3);
}
