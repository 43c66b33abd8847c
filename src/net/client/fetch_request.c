/* The life of one request, from the copy of its options to its end.
 *
 * Deadlines are ours and not libcurl's, which knows no silence, counts during
 * a pause, and uses another clock than the rest of the server.
 *
 * A name lookup cannot be ended: it runs on a thread of libcurl's inside
 * getaddrinfo, for as long as the system's resolver takes. Waiting for it
 * would block the loop; ignoring it would let the owner of a slow name server
 * collect threads. So a request that is over during its lookup stays without
 * its owner, and counts against max_open and the share of its host and port
 * until the lookup has ended. The operator of the name server decides how long
 * that takes; so lookups, including those without an owner, may take at most
 * half of max_open. */
#include "net/client/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

/* The copy. */

static bool is_http_token(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return s.n > 0;
}

/* libcurl sets the headers that frame the request. */
static bool is_framing(struct str name)
{
    static const char *const names[] = {
        "Host",    "Content-Length", "Transfer-Encoding", "Connection",
        "Expect",  "Keep-Alive",     "Accept-Encoding",   "TE",
        "Trailer", "Upgrade",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_eq_nocase(name, str_of(names[i])))
            return true;
    return false;
}

static enum err request_check(const struct fetch_request *rq, struct why *why)
{
    if (!is_http_token(rq->method) || rq->method.n > 32)
        return why_err(why, ERR_SYNTAX, "that is no HTTP method");
    if (str_eq(rq->method, STR("HEAD")) && rq->body.n)
        return why_err(why, ERR_SYNTAX, "HEAD has no body");
    if (rq->n_headers > HEADERS_MAX)
        return why_err(why, ERR_SYNTAX, "more than %d headers", HEADERS_MAX);
    for (size_t i = 0; i < rq->n_headers; i++) {
        const struct fetch_header *h = &rq->headers[i];

        if (!is_http_token(h->name) || is_framing(h->name))
            return why_err(why, ERR_SYNTAX, "a header may not be named '%.*s'",
                           STR_ARG(str_head(h->name, 100)));
        if (str_has_control(h->value))
            return why_err(why, ERR_SYNTAX,
                           "the header %.*s has control characters in it",
                           STR_ARG(str_head(h->name, 100)));
    }
    return OK;
}

static enum err request_copy_url(struct request *r, struct str text,
                                 struct why *why)
{
    enum err e;

    /* The fragment is for browsers only. */
    buf_init(&r->url_text, URL_BYTES_MAX + 1);
    buf_add_str(&r->url_text, str_sub(text, 0, str_find(text, '#', 0)));
    buf_add_char(&r->url_text, '\0');
    if (r->url_text.over)
        return why_err(why, text.n > URL_BYTES_MAX ? ERR_SYNTAX : ERR_NOMEM,
                       "the URL is too long: %d bytes are as much as it may "
                       "have",
                       URL_BYTES_MAX);
    r->url_text.n--;
    e = url_read(buf_str(&r->url_text), &r->url, why);
    if (!e && r->url.is_ws)
        e = why_err(why, ERR_SYNTAX,
                    "that is a WebSocket's URL: http:// or https:// is meant "
                    "here");
    return e;
}

static enum err request_copy(struct request *r, const struct fetch_request *rq)
{
    arena_init(&r->arena, SIZE_MAX);
    r->method = arena_strdup(&r->arena, rq->method);
    r->body = arena_strdup(&r->arena, rq->body);
    r->body_bytes = rq->body.n;
    r->headers = arena_array(&r->arena, rq->n_headers, sizeof(*r->headers));
    if (!r->method || !r->body || (rq->n_headers && !r->headers))
        return ERR_NOMEM;
    for (size_t i = 0; i < rq->n_headers; i++) {
        const struct fetch_header *h = &rq->headers[i];
        const char *name = arena_strdup(&r->arena, h->name);
        const char *value = arena_strdup(&r->arena, h->value);

        if (!name || !value)
            return ERR_NOMEM;
        r->headers[r->n_headers++] =
            (struct fetch_header){{name, h->name.n}, {value, h->value.n}};
    }
    return OK;
}

static void on_request_deadline(struct timer *t);

static enum err request_set_up(struct request *r,
                               const struct fetch_request *rq, struct why *why)
{
    struct fetch *f = r->fetch;
    enum err e = request_copy_url(r, rq->url, why);

    if (e)
        return e;
    r->timer.fire = on_request_deadline;
    r->is_trusted = rq->is_trusted;
    r->max_redirects = rq->max_redirects;
    r->max_body_bytes = rq->max_body_bytes;
    r->max_event_bytes = rq->max_event_bytes;
    r->timeout_ms = rq->timeout_ms;
    r->silence_ms = rq->silence_ms ? rq->silence_ms : rq->timeout_ms;
    r->connecting_ms = r->heard_ms = INT64_MAX;
    if (__builtin_add_overflow(loop_mono_ms(f->loop), r->timeout_ms,
                               &r->deadline_ms))
        r->deadline_ms = INT64_MAX - 1;
    loop_timer_set(f->loop, &r->timer, r->timeout_ms);
    e = request_copy(r, rq);
    return e ? why_err(why, e, "%s", err_row(e)->wording) : OK;
}

enum err request_new(struct fetch *f, const struct fetch_request *rq,
                     struct request **out, struct why *why)
{
    struct request *r;
    enum err e = request_check(rq, why);

    assert(rq->timeout_ms > 0 && rq->silence_ms >= 0);
    if (e)
        return e;
    r = FAULT("fetch.request") ? NULL : calloc(1, sizeof(*r));
    if (!r)
        return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    r->fetch = f;
    answer_init(r);
    e = request_set_up(r, rq, why);
    if (e)
        request_free(r);
    else
        *out = r;
    return e;
}

void request_free(struct request *r)
{
    loop_timer_cancel(r->fetch->loop, &r->timer);
    list_remove(&r->node);
    if (r->pool)
        curl_pool_remove(r);
    list_remove(&r->todo); /* curl_pool_remove may have put it there */
    host_share_leave(r);
    request_set_resolving(r, false);
    curl_easy_cleanup(r->easy);
    curl_slist_free_all(r->list);
    answer_fini(r);
    arena_fini(&r->arena);
    buf_fini(&r->url_text);
    free(r);
}

void request_move(struct request *r, enum request_state to)
{
    struct fetch *f = r->fetch;

    f->n_lingering += (to == REQUEST_LINGERING);
    f->n_lingering -= (r->state == REQUEST_LINGERING);
    list_remove(&r->node);
    r->state = to;
    list_append(&f->by_state[to], &r->node);
}

void request_set_resolving(struct request *r, bool is_resolving)
{
    r->fetch->n_resolving += is_resolving;
    r->fetch->n_resolving -= r->is_resolving;
    r->is_resolving = is_resolving;
}

void request_todo(struct request *r)
{
    if (!list_has(&r->todo))
        list_append(&r->fetch->todo, &r->todo);
    fetch_kick(r->fetch);
}

void request_nudge(struct request *r)
{
    if (r->is_asked || r->is_stuck)
        return;
    r->is_stuck = true;
    request_todo(r);
}

void request_cut(struct request *r, enum err e, const char *fmt, ...)
{
    va_list ap;

    if (r->cut)
        return; /* the first reason stays */
    r->cut = e;
    va_start(ap, fmt);
    vsnprintf(r->why.text, sizeof(r->why.text), fmt, ap);
    va_end(ap);
    request_todo(r);
}

/* Deadlines. */

static int64_t later_ms(int64_t since_ms, int64_t delay_ms)
{
    int64_t at_ms;

    if (since_ms == INT64_MAX ||
        __builtin_add_overflow(since_ms, delay_ms, &at_ms))
        return INT64_MAX;
    return at_ms;
}

static int64_t connected_by_ms(const struct request *r)
{
    return later_ms(r->connecting_ms, r->fetch->opts.connect_timeout_ms);
}

static int64_t heard_by_ms(const struct request *r)
{
    return r->is_paused ? INT64_MAX : later_ms(r->heard_ms, r->silence_ms);
}

static int64_t first_deadline_ms(const struct request *r)
{
    int64_t at_ms = r->deadline_ms;

    if (connected_by_ms(r) < at_ms)
        at_ms = connected_by_ms(r);
    return heard_by_ms(r) < at_ms ? heard_by_ms(r) : at_ms;
}

void request_arm(struct request *r)
{
    int64_t left_ms = first_deadline_ms(r) - loop_mono_ms(r->fetch->loop);

    if (r->id)
        loop_timer_set(r->fetch->loop, &r->timer, left_ms > 0 ? left_ms : 0);
}

/* The timer is not moved with every byte; here it finds out that some came. */
static void on_request_deadline(struct timer *t)
{
    struct request *r = LIST_OF(t, struct request, timer);
    int64_t now_ms = loop_mono_ms(r->fetch->loop);

    if (now_ms < first_deadline_ms(r)) {
        request_arm(r);
        return;
    }
    if (now_ms >= r->deadline_ms)
        why_err(&r->why, ERR_TIMEOUT,
                r->is_paused
                    ? "the answer of %.*s was not taken within %" PRId64 " ms"
                    : "%.*s did not answer in full within %" PRId64 " ms",
                STR_ARG(r->url.authority), r->timeout_ms);
    else if (now_ms >= connected_by_ms(r))
        why_err(&r->why, ERR_TIMEOUT,
                "there was no connection to %.*s within %" PRId64 " ms",
                STR_ARG(r->url.authority), r->fetch->opts.connect_timeout_ms);
    else
        why_err(&r->why, ERR_TIMEOUT,
                "nothing came from %.*s for %" PRId64 " ms",
                STR_ARG(r->url.authority), r->silence_ms);
    request_finish(r, ERR_TIMEOUT);
}

/* Start. */

void request_begin(struct request *r)
{
    struct fetch *f = r->fetch;
    enum err e;

    if (!r->id)
        return; /* cancelled before it started; the to-do list has it */
    e = handle_set_up(r, f->pool);
    if (!e)
        e = curl_pool_add(f->pool, r);
    if (e) {
        if (!r->why.text[0])
            why_err(&r->why, e, "%s", err_row(e)->wording);
        request_finish(r, e);
        return;
    }
    request_move(r, REQUEST_ASKING);
}

/* End. */

/* From now on it counts as lingering, or not at all: an owner that cancels one
 * request may start another at once, and gains nothing by it. */
void request_forget(struct request *r)
{
    loop_timer_cancel(r->fetch->loop, &r->timer);
    fetch_give_slot(r->fetch, r);
    if (r->is_resolving)
        request_move(r, REQUEST_LINGERING);
    else
        host_share_leave(r);
}

/* r is over and has no owner. It is freed now, or after its name lookup. */
static void request_leave(struct request *r)
{
    if (r->is_resolving && !r->fetch->is_stopping)
        return;
    if (r->state == REQUEST_LINGERING)
        r->fetch->n_lingering--;
    request_free(r);
}

void request_finish(struct request *r, enum err e)
{
    uint64_t id = r->id;
    struct fetch_answer a = answer_of(r);

    if (id) {
        request_forget(r);
        r->fetch->stats.failed_total += e != OK;
        r->fetch->stats.refused_by_guard_total +=
            e == ERR_ADDRESS && r->is_refused;
        str_tame(r->why.text, strlen(r->why.text));
        if (r->on.on_done)
            r->on.on_done(r->ctx, id, e, &a, &r->why);
    }
    request_leave(r);
}

/* libcurl's own message, if it has one. */
static const char *curl_words(const struct request *r, CURLcode code)
{
    return r->said[0] ? r->said : curl_easy_strerror(code);
}

/* libcurl only says that it could not connect; errno says why. */
static enum err request_unreachable(struct request *r, CURLcode code)
{
    long error = 0;

    curl_easy_getinfo(r->easy, CURLINFO_OS_ERRNO, &error);
    if (code != CURLE_COULDNT_CONNECT || error <= 0)
        return why_err(&r->why, ERR_UNREACHABLE, "%s", curl_words(r, code));
    return why_err(
        &r->why, ERR_UNREACHABLE, "there is no connection to %.*s: %s",
        STR_ARG(r->pool->proxy ? STR("the proxy") : r->url.authority),
        strerror((int)error));
}

static enum err request_result(struct request *r, CURLcode code)
{
    if (r->cut)
        return r->cut;
    if (code == CURLE_OK)
        return r->is_headed ? OK
                            : why_err(&r->why, ERR_BAD_REQUEST,
                                      "%.*s closed without an answer",
                                      STR_ARG(r->url.authority));
    if (r->is_refused && !r->is_permitted && !r->is_asked)
        return ERR_ADDRESS; /* the guard wrote the message */
    if (code == CURLE_OUT_OF_MEMORY && r->is_asked && !r->is_headed)
        /* libcurl's error for a header line of 100 KB. */
        return why_err(&r->why, ERR_LIMIT,
                       "%.*s answered with a header line that is too long",
                       STR_ARG(r->url.authority));
    if (code == CURLE_OUT_OF_MEMORY)
        return why_err(&r->why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    if (!r->is_asked)
        return request_unreachable(r, code);
    if (code == CURLE_UNSUPPORTED_PROTOCOL) /* libcurl's error for HTTP/0.9 */
        return why_err(&r->why, ERR_BAD_REQUEST,
                       "%.*s answered with what is not HTTP",
                       STR_ARG(r->url.authority));
    return why_err(&r->why, ERR_BAD_REQUEST, "%.*s did not answer well: %s",
                   STR_ARG(r->url.authority), curl_words(r, code));
}

void request_ended(struct request *r, CURLcode code)
{
    long n_made = 0;
    enum err e;

    curl_easy_getinfo(r->easy, CURLINFO_NUM_CONNECTS, &n_made);
    r->fetch->stats.connections_total += n_made;
    request_set_resolving(r, false);
    if (!r->id) {
        request_leave(r);
        return;
    }
    if (r->is_redirect && !r->cut) {
        /* The body is complete or not, but libcurl is done with it. */
        curl_pool_remove(r);
        e = redirect_take(r);
        if (!e) {
            request_move(r, REQUEST_NEW);
            fetch_kick(r->fetch);
            return;
        }
    } else {
        e = request_result(r, code);
        r->is_whole = !e && r->is_paused;
        if (r->is_whole)
            return; /* until it resumes, or its deadline */
    }
    request_finish(r, e);
}
