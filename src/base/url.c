/* One pass rejects bytes that are not allowed anywhere, then the parts are cut
 * from the left: scheme, host, port, target. The host is the part that can
 * deceive: anything that some resolver might read as a number is accepted only
 * in the one form that all read the same way. This does not decide where a
 * connection may go (base/guard.h does, from the address), but it makes sure
 * that the URL that is shown, logged and compared is the one that is used.
 *
 * Stricter than RFC 3986: no user, no empty port, no "?" directly after the
 * host, percent signs only before two hex digits, and hosts of letters, digits,
 * "-", "_" and "." only. More lenient: brackets in a path or query, since
 * "?filter[name]=x" is common. Rejected: WHATWG's parser, which repairs URLs
 * and so reads them differently from the next parser. */
#include "base/url.h"

#include <arpa/inet.h>

enum { LABEL_MAX = 63 };

static const struct {
    struct str name;
    uint16_t port;
    bool is_tls, is_ws;
} schemes[] = {
    {{"http", 4}, 80, false, false},
    {{"https", 5}, 443, true, false},
    {{"ws", 2}, 80, false, true},
    {{"wss", 3}, 443, true, true},
};

static bool url_is_letter(char c)
{
    c = str_lower(c);
    return c >= 'a' && c <= 'z';
}

/* Whether byte i is between "://" and the end of the host and port. */
static bool is_in_authority(struct str text, size_t i)
{
    size_t from = str_find(text, ':', 0) + 3;

    for (size_t k = from; k < i; k++)
        if (strchr("/?#", text.p[k]))
            return false;
    return i >= from && str_eq(str_sub(text, from - 2, from), STR("//"));
}

/* Reject bytes that are not allowed anywhere in a URL. */
static enum err url_check_bytes(struct str text, struct why *why)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (c & 0x80 && is_in_authority(text, i))
            return why_err(why, ERR_SYNTAX,
                           "the host of the URL is not ASCII; write it in "
                           "Punycode (xn--...)");
        if (c <= ' ' || c > '~')
            return why_err(why, ERR_SYNTAX,
                           "byte %zu of the URL is %s; write it as %%%02X",
                           i + 1,
                           c == ' '   ? "a space"
                           : c & 0x80 ? "not ASCII"
                                      : "a control character",
                           (uint8_t)c);
        if (strchr("\"<>\\^`{|}", c))
            return why_err(why, ERR_SYNTAX,
                           "byte %zu of the URL is \"%c\"; write it as %%%02X",
                           i + 1, c, (uint8_t)c);
        if (c == '%' && (i + 2 >= text.n || str_hex_value(text.p[i + 1]) < 0 ||
                         str_hex_value(text.p[i + 2]) < 0))
            return why_err(why, ERR_SYNTAX,
                           "the \"%%\" at byte %zu of the URL is not followed "
                           "by two hex digits; write it as %%25",
                           i + 1);
    }
    return OK;
}

/* Cut the scheme and its "://" from the front of *rest. */
static enum err cut_scheme(struct str *rest, struct url *u, struct why *why)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t n = schemes[i].name.n;

        if (!str_eq_nocase(str_sub(*rest, 0, n), schemes[i].name) ||
            !str_eq(str_sub(*rest, n, n + 3), STR("://")))
            continue;
        u->scheme = str_sub(*rest, 0, n);
        u->port = schemes[i].port;
        u->is_tls = schemes[i].is_tls;
        u->is_ws = schemes[i].is_ws;
        *rest = str_sub(*rest, n + 3, rest->n);
        return OK;
    }
    return why_err(why, ERR_SYNTAX,
                   "the URL does not begin with http://, https://, ws:// or "
                   "wss://");
}

bool url_is_http(struct str text)
{
    return str_eq_nocase(str_sub(text, 0, 7), STR("http://")) ||
           str_eq_nocase(str_sub(text, 0, 8), STR("https://"));
}

/* Cut everything before the first "/", "?" or "#". */
static struct str cut_authority(struct str *rest)
{
    struct str head = *rest;

    head.n = 0;
    while (head.n < rest->n && !strchr("/?#", rest->p[head.n]))
        head.n++;
    *rest = str_sub(*rest, head.n, rest->n);
    return head;
}

static bool pton(int family, struct str host)
{
    unsigned char addr[16];
    char text[INET6_ADDRSTRLEN];

    if (host.n >= sizeof(text))
        return false;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    return inet_pton(family, text, addr) == 1;
}

/* Whether the last label is digits, or hex after "0x": a resolver might read it
 * as a number. */
static bool ends_in_number(struct str host)
{
    size_t from = host.n, n_digits = 0;
    struct str last;
    bool has_0x;

    while (from && host.p[from - 1] != '.')
        from--;
    last = str_sub(host, from, host.n);
    has_0x = str_eq_nocase(str_sub(last, 0, 2), STR("0x"));
    if (has_0x)
        last = str_sub(last, 2, last.n);
    while (n_digits < last.n && (has_0x ? str_hex_value(last.p[n_digits]) >= 0
                                        : str_is_digit(last.p[n_digits])))
        n_digits++;
    return n_digits == last.n && (last.n || has_0x);
}

static enum err url_check_labels(struct str host, struct why *why)
{
    size_t label_bytes = 0;

    for (size_t i = 0; i <= host.n; i++) {
        if (i < host.n && host.p[i] != '.') {
            if (!url_is_letter(host.p[i]) && !str_is_digit(host.p[i]) &&
                host.p[i] != '-' && host.p[i] != '_')
                return why_err(why, ERR_SYNTAX,
                               "\"%c\" cannot be in the host of a URL",
                               host.p[i]);
            label_bytes++;
        } else if (label_bytes == 0 || label_bytes > LABEL_MAX) {
            return why_err(why, ERR_SYNTAX,
                           "between the dots of the host there must be 1 to "
                           "%d characters",
                           LABEL_MAX);
        } else {
            label_bytes = 0;
        }
    }
    return OK;
}

/* A name or an IPv4 address. A name may end in one dot. */
static enum err url_check_name(struct str host, struct why *why)
{
    struct str bare = host;

    if (!host.n)
        return why_err(why, ERR_SYNTAX, "the URL has no host");
    if (host.n > URL_HOST_MAX)
        return why_err(why, ERR_SYNTAX,
                       "the host of the URL has %zu bytes, more than %d",
                       host.n, URL_HOST_MAX);
    if (pton(AF_INET, host))
        return OK;
    bare.n -= host.p[host.n - 1] == '.';
    if (ends_in_number(bare))
        return why_err(
            why, ERR_SYNTAX,
            "\"%.*s\" looks like an address but is not one; write it "
            "as four numbers, 192.0.2.1",
            STR_ARG(str_sub(host, 0, 64)));
    return url_check_labels(bare, why);
}

static enum err url_read_port(struct str s, struct url *u, struct why *why)
{
    int64_t port = 0;

    if (!s.n || s.n > 5 || !str_is_digit(s.p[0]) || s.p[0] == '0' ||
        str_to_i64(s, &port) != OK || port > 65535)
        return why_err(why, ERR_SYNTAX,
                       "the port of the URL must be a number from 1 to 65535");
    u->port = (uint16_t)port;
    return OK;
}

static enum err url_read_authority(struct str s, struct url *u, struct why *why)
{
    bool is_v6 = s.n && s.p[0] == '[';
    size_t end = str_find(s, is_v6 ? ']' : ':', 0);
    enum err e;

    if (str_find(s, '@', 0) < s.n)
        return why_err(why, ERR_SYNTAX,
                       "a URL may have no user or password before its host");
    u->authority = s;
    u->is_v6 = is_v6;
    u->host = str_sub(s, is_v6, end);
    if (!is_v6) {
        e = url_check_name(u->host, why);
    } else {
        e = end < s.n && pton(AF_INET6, u->host)
                ? OK
                : why_err(why, ERR_SYNTAX,
                          "the brackets contain no IPv6 address; write "
                          "it as [2001:db8::1]");
        end++;
    }
    if (e || end >= s.n)
        return e;
    if (s.p[end] != ':')
        return why_err(why, ERR_SYNTAX,
                       "after the \"]\" of the host comes \":\" and a port, or "
                       "\"/\"");
    return url_read_port(str_sub(s, end + 1, s.n), u, why);
}

enum err url_read(struct str text, struct url *out, struct why *why)
{
    struct url u = {.target = STR("/")};
    struct str rest = text;
    enum err e;

    if (text.n > URL_BYTES_MAX)
        return why_err(why, ERR_SYNTAX, "the URL has %zu bytes, more than %d",
                       text.n, URL_BYTES_MAX);
    e = url_check_bytes(text, why);
    if (!e)
        e = cut_scheme(&rest, &u, why);
    if (!e)
        e = url_read_authority(cut_authority(&rest), &u, why);
    if (e)
        return e;
    rest.n = str_find(rest, '#', 0);
    if (rest.n && rest.p[0] == '?')
        return why_err(why, ERR_SYNTAX,
                       "before the \"?\" of a URL there must be a \"/\"");
    if (rest.n)
        u.target = rest;
    *out = u;
    return OK;
}

enum err url_read_proxy(struct str text, struct url *out, struct why *why)
{
    struct url u;
    enum err e;

    if (!str_eq_nocase(str_sub(text, 0, 7), STR("http://")))
        return why_err(why, ERR_SYNTAX,
                       "must begin with http://, as in http://HOST:PORT: a "
                       "proxy is spoken to in plain HTTP");
    e = url_read(text, &u, why);
    if (!e && (!str_eq(u.target, STR("/")) || str_find(text, '#', 0) < text.n))
        e = why_err(why, ERR_SYNTAX,
                    "a proxy has no path: http://HOST:PORT is all");
    if (!e)
        *out = u;
    return e;
}

bool url_is_same_origin(const struct url *a, const struct url *b)
{
    return a->is_tls == b->is_tls && a->is_ws == b->is_ws &&
           a->port == b->port && str_eq_nocase(a->host, b->host);
}

bool url_is_localhost(struct str host)
{
    struct str word = STR("localhost");

    while (host.n && host.p[host.n - 1] == '.')
        host.n--;
    return host.n >= word.n &&
           str_eq_nocase(str_sub(host, host.n - word.n, host.n), word) &&
           (host.n == word.n || host.p[host.n - word.n - 1] == '.');
}

/* Resolving, by RFC 3986, 5.2. */

struct reference {
    struct str scheme, authority, path, query; /* the query with its "?" */
};

/* The length of "SCHEME" in "SCHEME:..."; zero if there is none. */
static size_t scheme_bytes(struct str s)
{
    size_t n = 0;

    while (n < s.n && (url_is_letter(s.p[n]) ||
                       (n && (str_is_digit(s.p[n]) || strchr("+-.", s.p[n])))))
        n++;
    return n < s.n && s.p[n] == ':' ? n : 0;
}

/* Path and query of "/path?query#fragment". */
static void cut_target(struct str s, struct reference *r)
{
    size_t mark;

    s.n = str_find(s, '#', 0);
    mark = str_find(s, '?', 0);
    r->path = str_sub(s, 0, mark);
    r->query = str_sub(s, mark, s.n);
}

/* Fill r from the location, with the missing parts from the base. */
static enum err url_combine(const struct url *base, struct str location,
                            struct reference *r, struct why *why)
{
    size_t n = scheme_bytes(location);

    *r = (struct reference){.scheme = base->scheme,
                            .authority = base->authority};
    if (n) {
        r->scheme = str_sub(location, 0, n);
        location = str_sub(location, n + 1, location.n);
        if (!str_starts(location, STR("//")))
            return why_err(why, ERR_SYNTAX,
                           "the location is not an http, https, ws or wss URL");
    }
    if (str_starts(location, STR("//"))) {
        location = str_sub(location, 2, location.n);
        r->authority = cut_authority(&location);
        cut_target(location, r);
        return OK;
    }
    cut_target(location, r);
    if (!r->path.n) {
        struct reference whole;

        cut_target(base->target, &whole);
        r->path = whole.path;
        if (!r->query.n)
            r->query = whole.query;
    }
    return OK;
}

/* Append a path that begins with "/", resolving "." and "..". The path begins
 * at `from` in out; ".." does not go back beyond it. */
static void add_path(struct buf *out, size_t from, struct str path)
{
    while (path.n && !out->over) {
        size_t end = str_find(path, '/', 1);
        struct str part = str_sub(path, 0, end); /* "/x" */
        bool is_last = end == path.n, is_up = str_eq(part, STR("/.."));

        path = str_sub(path, end, path.n);
        if (!is_up && !str_eq(part, STR("/."))) {
            buf_add_str(out, part);
            continue;
        }
        if (is_up) {
            while (out->n > from && out->p[out->n - 1] != '/')
                out->n--;
            out->n -= out->n > from;
        }
        if (is_last)
            buf_add_char(out, '/');
    }
}

/* Join the parts. A relative path replaces the last part of the base's path. */
static void add_url(const struct url *base, const struct reference *r,
                    struct buf *out)
{
    struct reference whole;
    struct buf path;
    size_t n, from;

    buf_init(&path, 2 * URL_BYTES_MAX);
    cut_target(base->target, &whole);
    for (n = whole.path.n; n && whole.path.p[n - 1] != '/'; n--)
        ;
    if (r->path.n && r->path.p[0] != '/')
        buf_add(&path, whole.path.p, n);
    buf_add_str(&path, r->path);
    buf_add_str(out, r->scheme);
    buf_add_str(out, STR("://"));
    buf_add_str(out, r->authority);
    from = out->n;
    add_path(out, from, path.n ? buf_str(&path) : STR("/"));
    buf_add_str(out, r->query);
    out->over |= path.over;
    buf_fini(&path);
}

enum err url_resolve(const struct url *base, struct str location,
                     struct buf *out, struct why *why)
{
    struct reference r;
    struct url checked;
    struct buf whole;
    enum err e;

    if (location.n > URL_BYTES_MAX)
        return why_err(why, ERR_SYNTAX,
                       "the location has %zu bytes, more than %d", location.n,
                       URL_BYTES_MAX);
    buf_init(&whole, URL_BYTES_MAX);
    e = url_check_bytes(location, why);
    if (!e)
        e = url_combine(base, location, &r, why);
    if (!e) {
        add_url(base, &r, &whole);
        e = whole.over ? why_err(why, ERR_SYNTAX,
                                 "the URL that the location leads to has more "
                                 "than %d bytes",
                                 URL_BYTES_MAX)
                       : url_read(buf_str(&whole), &checked, why);
    }
    if (!e) {
        buf_add_str(out, buf_str(&whole));
        e = out->over ? why_err(why, ERR_LIMIT, "no room for the URL") : OK;
    }
    buf_fini(&whole);
    return e;
}
