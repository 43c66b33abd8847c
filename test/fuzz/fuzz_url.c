/* Any bytes as a URL, and as a location seen from one: the first line is the
 * URL, the rest the location.
 *
 * What is taken has parts that lie within it and, put together again, reads
 * the same. libcurl, which will be given it, must find the same host, port and
 * path; what it finds in the URL is what it connects to. What a location leads
 * to is a URL that is taken, or an error, and a location resolved from there
 * once more with nothing in it stays where it is. The same bytes as a range of
 * addresses: what is taken reads the same when it is written. */
#include <arpa/inet.h>
#include <assert.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/guard.h"
#include "base/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool lies_in(struct str part, struct str whole)
{
    return part.p >= whole.p && part.p + part.n <= whole.p + whole.n;
}

static void check_parts(struct str text, const struct url *u)
{
    assert(lies_in(u->scheme, text) && lies_in(u->authority, text));
    assert(lies_in(u->host, u->authority) && u->host.n > 0);
    assert(u->host.n <= URL_HOST_MAX && text.n <= URL_BYTES_MAX);
    assert(u->target.n > 0 && u->target.p[0] == '/' && u->port > 0);
    assert(lies_in(u->target, text) || str_eq(u->target, STR("/")));
    for (size_t i = 0; i < u->target.n; i++)
        assert(u->target.p[i] > ' ' && u->target.p[i] <= '~' &&
               u->target.p[i] != '#' && u->target.p[i] != '\\');
    for (size_t i = 0; i < u->authority.n; i++)
        assert(!strchr("@/?#%\\ ", u->authority.p[i]));
}

/* From its parts, the port always said. */
static void check_again(const struct url *u)
{
    struct buf text;
    struct url again;

    buf_init(&text, 2 * URL_BYTES_MAX);
    buf_add_str(&text, u->scheme);
    buf_addf(&text, u->is_v6 ? "://[%.*s]:%u" : "://%.*s:%u", STR_ARG(u->host),
             u->port);
    buf_add_str(&text, u->target);
    assert(!text.over);
    if (text.n <= URL_BYTES_MAX) {
        assert(url_read(buf_str(&text), &again, NULL) == OK);
        assert(url_is_same_origin(u, &again));
        assert(str_eq(u->target, again.target));
    }
    buf_fini(&text);
}

/* The part as libcurl finds it, to be freed by curl_free. */
static char *part(CURLU *h, CURLUPart what, unsigned flags)
{
    char *text = NULL;

    assert(curl_url_get(h, what, &text, flags) == CURLUE_OK);
    return text;
}

/* libcurl writes v6 addresses in its own way. */
static void check_host(const struct url *u, const char *host)
{
    unsigned char a[16], b[16];
    char mine[URL_HOST_MAX + 1], its[URL_HOST_MAX + 1];

    snprintf(mine, sizeof(mine), "%.*s", STR_ARG(u->host));
    if (!u->is_v6) {
        assert(str_eq_nocase(u->host, str_of(host)));
        return;
    }
    assert(host[0] == '[' && host[strlen(host) - 1] == ']');
    snprintf(its, sizeof(its), "%.*s", (int)strlen(host) - 2, host + 1);
    assert(inet_pton(AF_INET6, mine, a) == 1);
    assert(inet_pton(AF_INET6, its, b) == 1 && memcmp(a, b, 16) == 0);
}

static void check_with_curl(struct str text, const struct url *u)
{
    char *whole = strndup(text.p, text.n), *path, *query = NULL, *host;
    bool has_port = u->authority.n > u->host.n + (u->is_v6 ? 2 : 0);
    char *port = NULL;
    CURLU *h = curl_url();
    struct buf target;

    assert(h && whole);
    assert(curl_url_set(h, CURLUPART_URL, whole,
                        CURLU_NON_SUPPORT_SCHEME | CURLU_PATH_AS_IS) ==
           CURLUE_OK);
    host = part(h, CURLUPART_HOST, 0);
    path = part(h, CURLUPART_PATH, 0);
    if (!u->is_ws || has_port) /* this libcurl knows no port of ws */
        port = part(h, CURLUPART_PORT, u->is_ws ? 0 : CURLU_DEFAULT_PORT);
    check_host(u, host);
    assert(!port || atol(port) == u->port);
    buf_init(&target, 2 * URL_BYTES_MAX);
    buf_add_str(&target, str_of(path));
    if (curl_url_get(h, CURLUPART_QUERY, &query, 0) == CURLUE_OK)
        buf_addf(&target, "?%s", query);
    /* It forgets a "?" with nothing behind it. */
    else if (u->target.p[u->target.n - 1] == '?')
        buf_add_char(&target, '?');
    assert(str_eq(buf_str(&target), u->target));
    buf_fini(&target);
    curl_free(query);
    curl_free(port);
    curl_free(path);
    curl_free(host);
    curl_url_cleanup(h);
    free(whole);
}

static void check_location(const struct url *base, struct str location)
{
    struct buf to, again;
    struct why why = {""};
    struct url u;

    buf_init(&to, URL_BYTES_MAX);
    buf_init(&again, URL_BYTES_MAX);
    if (url_resolve(base, location, &to, &why)) {
        assert(to.n == 0 && why.text[0]);
    } else {
        assert(url_read(buf_str(&to), &u, NULL) == OK);
        check_parts(buf_str(&to), &u);
        check_with_curl(buf_str(&to), &u);
        assert(str_find(buf_str(&to), '#', 0) == to.n);
        assert(!memmem(to.p, str_find(buf_str(&to), '?', 0), "/../", 4));
        assert(url_resolve(&u, STR(""), &again, NULL) == OK);
        assert(str_eq(buf_str(&to), buf_str(&again)));
    }
    buf_fini(&again);
    buf_fini(&to);
}

static void check_range(struct str text)
{
    char once[GUARD_RANGE_BYTES], twice[GUARD_RANGE_BYTES];
    struct guard_range r;
    struct why why = {""};

    if (guard_range_read(text, &r, &why)) {
        assert(why.text[0]);
        return;
    }
    guard_range_write(&r, once);
    assert(guard_range_read(str_of(once), &r, NULL) == OK);
    guard_range_write(&r, twice);
    assert(strcmp(once, twice) == 0);
}

/* Exactly as long as its allocation, so that a step beyond is seen. */
static struct str copy(struct str s)
{
    char *p = malloc(s.n + !s.n);

    assert(p);
    if (s.n)
        memcpy(p, s.p, s.n);
    return (struct str){p, s.n};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size}, line = str_cut(&rest, '\n');
    struct str text = copy(line), location = copy(rest);
    struct why why = {""};
    struct url u;

    if (url_read(text, &u, &why) == OK) {
        check_parts(text, &u);
        check_again(&u);
        check_with_curl(text, &u);
        check_location(&u, location);
    } else {
        assert(why.text[0]);
        assert(url_read(STR("http://a/b/c/d;p?q"), &u, NULL) == OK);
        check_location(&u, text);
    }
    check_range(text);
    free((char *)text.p);
    free((char *)location.p);
    return 0;
}
