/* The dashboard for browsers at / and below /assets, and a short text for curl.
 * Neither needs a token: the page contains no secrets, and calls the API with
 * the token of its user.
 *
 * The headers of the page say everything it may do: it runs only the scripts
 * and styles of its folder, talks only to its own server, cannot be framed, and
 * turns no text into HTML. */
#include "api/calls.h"
#include "api/internal.h"
#include "api/web/web.h"

static const struct http_header page_headers[] = {
    {STR("Content-Security-Policy"),
     STR("default-src 'none'; script-src 'self'; style-src 'self'; "
         "img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
         "form-action 'none'; frame-ancestors 'none'; "
         "require-trusted-types-for 'script'; trusted-types 'none'")},
    {STR("X-Content-Type-Options"), STR("nosniff")},
    {STR("Referrer-Policy"), STR("no-referrer")},
    {STR("Cross-Origin-Opener-Policy"), STR("same-origin")},
    {STR("Cross-Origin-Resource-Policy"), STR("same-origin")},
};

/* The folder for files of web.folder; no hash has this name. */
#define LIVE STR("live")

/* Another version of the page has another folder. */
#define FOR_EVER STR("public, max-age=31536000, immutable")

enum { N_PAGE_HEADERS = sizeof(page_headers) / sizeof(page_headers[0]) };

static void dashboard_answer(struct call *c, int status, struct str type,
                             struct str body, const struct http_header *more,
                             size_t n)
{
    struct http_header headers[N_PAGE_HEADERS + 4];
    struct http_reply r = {.status = status,
                           .content_type = type,
                           .headers = headers,
                           .n_headers = N_PAGE_HEADERS + n,
                           .body = body};

    memcpy(headers, page_headers, sizeof(page_headers));
    memcpy(headers + N_PAGE_HEADERS, more, n * sizeof(*more));
    net_reply(c->api->net, c->id, &r);
}

/* A file of the binary. Its two forms have different bytes, and so different
 * tags. */
static void dashboard_answer_packed(struct call *c, const struct web_file *f,
                                    struct str keep, struct str vary)
{
    bool is_gzip =
        f->gzip.n && web_takes_gzip(http_header(c->rq, STR("Accept-Encoding")));
    char tag[WEB_TAG_CHARS + 8];
    struct http_header more[4] = {
        {STR("Cache-Control"), keep},
        {STR("Vary"), vary},
        {STR("ETag"), {tag, 0}},
        {STR("Content-Encoding"), STR("gzip")},
    };

    more[2].value.n = (size_t)snprintf(tag, sizeof(tag), "\"%s%s\"", f->tag,
                                       is_gzip ? "-gzip" : "");
    if (web_is_known(http_header(c->rq, STR("If-None-Match")), more[2].value))
        dashboard_answer(c, 304, STR(""), STR(""), more, 3);
    else
        dashboard_answer(c, 200, web_type(f->path),
                         is_gzip ? f->gzip : f->plain, more, is_gzip ? 4 : 3);
}

/* A file of web.folder, as it is now. */
static void dashboard_answer_live(struct call *c, struct str path)
{
    static const struct http_header keep[] = {
        {STR("Cache-Control"), STR("no-store")},
        {STR("Vary"), STR("Accept, Origin")}};
    struct buf file;
    enum err e;

    buf_init(&file, WEB_FILE_MAX);
    e = web_read_file(c->api->settings.web.folder.p, path, &file);
    if (!e && str_eq(path, WEB_INDEX))
        web_fill(c->body, buf_str(&file), STR("/assets/live"));
    else if (!e)
        buf_add_str(c->body, buf_str(&file));
    buf_fini(&file);
    if (e)
        call_refuse(
            c, e,
            STR("there is no such file in web.folder, or its type is not "
                "served"));
    else
        dashboard_answer(c, 200, web_type(path), buf_str(c->body), keep, 2);
    buf_clear(c->body); /* the next answer starts empty */
}

/* For programs, and for people with curl. */

static void dashboard_answer_plain(struct call *c)
{
    const struct call_row *row;

    buf_addf(c->body, "Signalbox " SIGNALBOX_VERSION " is running.\n\n");
    for (size_t i = 0; (row = call_row(i)); i++)
        if ((row->who & PUBLIC) && !call_row_has_rest(row))
            buf_addf(c->body, "  %-14.*s %s\n", STR_ARG(row->path), row->about);
    buf_add_str(c->body,
                STR("\nWith a token (Authorization: Bearer sbx_...), in "
                    "JSON:\n\n"));
    for (size_t i = 0; (row = call_row(i)); i++)
        if (!(row->who & PUBLIC)) {
            buf_addf(c->body, "  %-6.*s ", STR_ARG(row->method));
            call_row_add_path(c->body, row, false);
            buf_add_char(c->body, '\n');
        }
    call_answer(c, 200, STR("text/plain; charset=utf-8"));
}

void call_front(struct call *c)
{
    if (!speak_accepts(http_header(c->rq, STR("Accept")), STR("text/html")))
        dashboard_answer_plain(c);
    else if (!c->api->settings.web.is_on)
        call_refuse(c, ERR_NOT_FOUND,
                    STR("the dashboard is disabled (web.enabled)"));
    else if (c->api->settings.web.folder.n)
        dashboard_answer_live(c, WEB_INDEX);
    else
        dashboard_answer_packed(c, web_find(WEB_INDEX), STR("no-cache"),
                                STR("Accept, Accept-Encoding, Origin"));
}

void call_assets(struct call *c)
{
    struct str path = str_sub(c->rq->path, sizeof("/assets"), c->rq->path.n);
    struct str folder = str_cut(&path, '/');
    const struct web_file *f = web_find(path);
    bool is_live = c->api->settings.web.folder.n && str_eq(folder, LIVE);

    if (!c->api->settings.web.is_on)
        call_refuse(c, ERR_NOT_FOUND,
                    STR("the dashboard is disabled (web.enabled)"));
    else if (is_live && !str_starts(path, STR("vendor/")))
        dashboard_answer_live(c, path);
    else if (!is_live && !str_eq(folder, web_folder()))
        call_refuse(c, ERR_NOT_FOUND,
                    STR("this file is of another version of the dashboard; "
                        "reload the page"));
    else if (!f || str_eq(path, WEB_INDEX))
        call_refuse(c, ERR_NOT_FOUND,
                    STR("the dashboard has no such file; the page is at /"));
    else
        dashboard_answer_packed(c, f, is_live ? STR("no-store") : FOR_EVER,
                                STR("Accept-Encoding, Origin"));
}
