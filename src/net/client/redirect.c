/* The target of a redirect, and the headers for it.
 *
 * A redirect comes from the server that answered, so its target is not
 * trusted: another origin is guarded, even the original one when a stranger
 * redirects back to it. It gets nothing that was meant for the first: only
 * headers that are known to be harmless, and no body. The request without its
 * body would be another request, so it is not sent at all. */
#include "net/client/internal.h"

#include <stdlib.h>

/* The number of Location headers, and the first of them. */
static size_t redirect_locations(const struct request *r, struct str *first)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_came; i++)
        if (str_eq_nocase(r->came[i].name, STR("Location")) && !n++)
            *first = r->came[i].value;
    return n;
}

bool redirect_is(const struct request *r)
{
    struct str to;

    return r->max_redirects > 0 &&
           (r->status == 301 || r->status == 302 || r->status == 303 ||
            r->status == 307 || r->status == 308) &&
           redirect_locations(r, &to) > 0;
}

/* Browsers turn POST into GET, and for 303 any method except HEAD; servers
 * rely on it. */
static void redirect_change_method(struct request *r)
{
    struct str method = str_of(r->method);
    size_t n = 0;

    if (!(r->status == 303 && !str_eq(method, STR("HEAD"))) &&
        !((r->status == 301 || r->status == 302) &&
          str_eq(method, STR("POST"))))
        return;
    r->method = "GET";
    r->body_bytes = 0;
    for (size_t i = 0; i < r->n_headers; i++)
        if (!str_eq_nocase(str_sub(r->headers[i].name, 0, 8), STR("Content-")))
            r->headers[n++] = r->headers[i];
    r->n_headers = n;
}

static enum err find_url(struct request *r, struct buf *text, struct url *url)
{
    struct why *why = &r->why;
    struct str to = {NULL, 0};
    enum err e;

    if (redirect_locations(r, &to) > 1)
        return why_err(why, ERR_BAD_REQUEST,
                       "%.*s redirects to more than one place",
                       STR_ARG(r->url.authority));
    e = url_resolve(&r->url, to, text, why);
    if (e)
        return text->over && e != ERR_SYNTAX
                   ? why_err(why, e, "%s", err_row(e)->wording)
                   : ERR_BAD_REQUEST;
    buf_add_char(text, '\0');
    if (text->over)
        return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    text->n--;
    if (url_read(buf_str(text), url, why))
        return ERR_BAD_REQUEST;
    if (url->is_ws)
        return why_err(why, ERR_BAD_REQUEST, "%.*s redirects to a WebSocket",
                       STR_ARG(r->url.authority));
    if (r->url.is_tls && !url->is_tls)
        return why_err(why, ERR_ADDRESS,
                       "%.*s redirects from https to http, which is not "
                       "followed",
                       STR_ARG(r->url.authority));
    return OK;
}

/* Continue at another origin. */
static enum err redirect_go_abroad(struct request *r, const struct url *to)
{
    if (r->body_bytes)
        return why_err(&r->why, ERR_ADDRESS,
                       "%.*s redirects to %.*s, and the body of a request "
                       "goes only to where it was sent",
                       STR_ARG(r->url.authority), STR_ARG(to->authority));
    r->is_abroad = true;
    r->is_trusted = false;
    return OK;
}

static void redirect_forget_answer(struct request *r)
{
    answer_fini(r);
    answer_init(r);
    r->head_bytes = r->got_bytes = r->skip_bytes = 0;
    r->is_asked = r->is_refused = r->is_permitted = false;
    r->connecting_ms = r->heard_ms = INT64_MAX;
    r->said[0] = r->why.text[0] = '\0';
    r->peer[0] = r->refused[0] = r->tls[0] = '\0';
}

enum err redirect_take(struct request *r)
{
    struct buf text;
    struct url url;
    enum err e;

    if (r->n_redirects == r->max_redirects)
        return why_err(&r->why, ERR_LIMIT,
                       "redirected more than %d times, the last time by %.*s",
                       r->max_redirects, STR_ARG(r->url.authority));
    buf_init(&text, URL_BYTES_MAX + 1);
    e = find_url(r, &text, &url);
    if (!e)
        redirect_change_method(r);
    if (!e && !url_is_same_origin(&r->url, &url))
        e = redirect_go_abroad(r, &url);
    if (!e)
        e = host_share_enter(r, &url, &r->why);
    if (e) {
        buf_fini(&text);
        return e;
    }
    r->n_redirects++;
    buf_fini(&r->url_text);
    r->url_text = text;
    r->url = url;
    redirect_forget_answer(r);
    return OK;
}
