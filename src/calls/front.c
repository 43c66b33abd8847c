/* What is at / and below /assets: the dashboard for browsers, and a few words
 * for whoever asks with curl whether anything is there. Nobody needs a token
 * for either: the page has no secrets in it, and asks the API with the token
 * of whoever looks at it.
 *
 * Everything the page may do is said in its headers: it runs no script and
 * uses no style but those of its folder, talks to its own server and nobody
 * else, is in nobody's frame, and turns no text into HTML. */
#include "calls/internal.h"
#include "web/web.h"

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

/* Whatever is in web.folder, under a name that no hash has. */
#define LIVE STR("live")

/* Another version of the page is another folder. */
#define FOR_EVER STR("public, max-age=31536000, immutable")

enum { N_PAGE_HEADERS = sizeof(page_headers) / sizeof(page_headers[0]) };

static void answer(struct call *c, int status, struct str type, struct str body,
                   const struct http_header *more, size_t n)
{
    struct http_header headers[N_PAGE_HEADERS + 4];
    struct http_reply r = {.status = status,
                           .content_type = type,
                           .headers = headers,
                           .n_headers = N_PAGE_HEADERS + n,
                           .body = body};

    memcpy(headers, page_headers, sizeof(page_headers));
    memcpy(headers + N_PAGE_HEADERS, more, n * sizeof(*more));
    net_reply(c->calls->net, c->id, &r);
}

/* A file of the binary. The two forms of it are not the same bytes, and so not
 * of the same tag. */
static void answer_packed(struct call *c, const struct web_file *f,
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
        answer(c, 304, STR(""), STR(""), more, 3);
    else
        answer(c, 200, web_type(f->path), is_gzip ? f->gzip : f->plain, more,
               is_gzip ? 4 : 3);
}

/* A file of web.folder, as it is now. */
static void answer_live(struct call *c, struct str path)
{
    static const struct http_header keep[] = {
        {STR("Cache-Control"), STR("no-store")},
        {STR("Vary"), STR("Accept, Origin")}};
    struct buf file;
    enum err e;

    buf_init(&file, WEB_FILE_MAX);
    e = web_read(c->calls->settings.web.folder.p, path, &file);
    if (!e && str_eq(path, WEB_INDEX))
        web_fill(c->body, buf_str(&file), STR("/assets/live"));
    else if (!e)
        buf_add_str(c->body, buf_str(&file));
    buf_fini(&file);
    if (e)
        call_refuse(c, e,
                    STR("there is no such file in web.folder, or none that is "
                        "served"));
    else
        answer(c, 200, web_type(path), buf_str(c->body), keep, 2);
    buf_clear(c->body); /* whoever is answered next begins with nothing */
}

/* For programs, and for people with curl. */

/* ":id" is shown as ID. */
static void add_call(struct buf *out, const struct call_info *row)
{
    bool is_part = false;

    buf_addf(out, "  %-6.*s ", STR_ARG(row->method));
    for (size_t i = 0; i < row->path.n; i++) {
        char ch = row->path.p[i];

        if (ch == ':') {
            is_part = true;
            continue;
        }
        is_part = is_part && ch != '/';
        buf_add_char(out, is_part ? (char)(ch & ~0x20) : ch);
    }
    buf_add_char(out, '\n');
}

static void answer_plain(struct call *c)
{
    struct call_info row;

    buf_addf(c->body,
             "Signalbox " SIGNALBOX_VERSION " is running.\n\n"
             "  /          the dashboard, for a browser\n"
             "  /healthz   is it there\n"
             "  /readyz    does it take work\n"
             "  /metrics   figures for Prometheus\n\n"
             "With a token (Authorization: Bearer sbx_...), in JSON:\n\n");
    for (size_t i = 0; calls_row(i, &row); i++)
        if (!row.is_public)
            add_call(c->body, &row);
    call_answer(c, 200, STR("text/plain; charset=utf-8"));
}

void call_front(struct call *c)
{
    if (!speak_accepts(http_header(c->rq, STR("Accept")), STR("text/html")))
        answer_plain(c);
    else if (!c->calls->settings.web.is_on)
        call_refuse(c, ERR_NOT_FOUND,
                    STR("the dashboard is switched off here (web.enabled)"));
    else if (c->calls->settings.web.folder.n)
        answer_live(c, WEB_INDEX);
    else
        answer_packed(c, web_find(WEB_INDEX), STR("no-cache"),
                      STR("Accept, Accept-Encoding, Origin"));
}

void call_assets(struct call *c)
{
    struct str path = str_sub(c->rq->path, sizeof("/assets"), c->rq->path.n);
    struct str folder = str_cut(&path, '/');
    const struct web_file *f = web_find(path);
    bool is_live = c->calls->settings.web.folder.n && str_eq(folder, LIVE);

    if (!c->calls->settings.web.is_on)
        call_refuse(c, ERR_NOT_FOUND,
                    STR("the dashboard is switched off here (web.enabled)"));
    else if (is_live && !str_starts(path, STR("vendor/")))
        answer_live(c, path);
    else if (!is_live && !str_eq(folder, web_folder()))
        call_refuse(c, ERR_NOT_FOUND,
                    STR("that is of another version of the dashboard; load "
                        "the page again"));
    else if (!f || str_eq(path, WEB_INDEX))
        call_refuse(c, ERR_NOT_FOUND,
                    STR("the dashboard has no such file; the page is at /"));
    else
        answer_packed(c, f, is_live ? STR("no-store") : FOR_EVER,
                      STR("Accept-Encoding, Origin"));
}
