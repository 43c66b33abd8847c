/* A head is read line by line from a buffer that holds it from its first byte.
 * Usually it is complete and one pass is enough. If not, the examined length
 * is remembered; bytes without a line end cost one memchr, and bytes with one
 * start again at the front. A head has a limited number of lines, so that is
 * bounded, and the connection needs no array of half-read headers.
 *
 * Every decision depends on the bytes from the front up to some point and
 * never on where a read ended: limits are checked before content, and a line's
 * content only once the line has ended. The tests cut every case at every byte
 * to check that. */
#include "net/server/http_internal.h"

#define B_ALL (B_TOKEN | B_VALUE | B_TARGET)
const uint8_t http_classes[256] = {
    ['\t'] = B_VALUE,
    [' '] = B_VALUE,
    ['"'] = B_VALUE | B_TARGET,
    ['#'] = B_VALUE | B_TOKEN,
    ['('] = B_VALUE | B_TARGET,
    [')'] = B_VALUE | B_TARGET,
    [','] = B_VALUE | B_TARGET,
    ['/'] = B_VALUE | B_TARGET,
    [':' ... '@'] = B_VALUE | B_TARGET,
    ['[' ... ']'] = B_VALUE | B_TARGET,
    ['{'] = B_VALUE | B_TARGET,
    ['}'] = B_VALUE | B_TARGET,
    ['!'] = B_ALL,
    ['$' ... '\''] = B_ALL,
    ['*' ... '+'] = B_ALL,
    ['-' ... '.'] = B_ALL | B_HOST,
    ['0' ... '9'] = B_ALL | B_HOST | B_HEX,
    ['A' ... 'F'] = B_ALL | B_HOST | B_HEX,
    ['G' ... 'Z'] = B_ALL | B_HOST,
    ['^'] = B_ALL,
    ['_'] = B_ALL | B_HOST,
    ['`'] = B_ALL,
    ['a' ... 'f'] = B_ALL | B_HOST | B_HEX,
    ['g' ... 'z'] = B_ALL | B_HOST,
    ['|'] = B_ALL,
    ['~'] = B_ALL | B_HOST,
    [0x80 ... 0xff] = B_VALUE,
};

bool http_host_is_valid(struct str s)
{
    size_t n = span(s, B_HOST);
    struct str port;

    if (s.n && s.p[0] == '[') {
        struct str v6 = str_sub(s, 1, str_find(s, ']', 0));

        n = v6.n + 2;
        if (n > s.n || v6.n < 2 || str_find(v6, ':', 0) == v6.n)
            return false;
        for (size_t i = 0; i < v6.n; i++)
            if (!(http_classes[(unsigned char)v6.p[i]] & B_HEX) &&
                v6.p[i] != ':' && v6.p[i] != '.')
                return false;
    }
    if (n == 0 || n == s.n)
        return n > 0;
    port = str_sub(s, n + 1, s.n);
    if (s.p[n] != ':' || port.n == 0 || port.n > 5)
        return false;
    for (size_t i = 0; i < port.n; i++)
        if (port.p[i] < '0' || port.p[i] > '9')
            return false;
    return port.n < 5 || memcmp(port.p, "65535", 5) <= 0;
}

static enum err read_version(struct http_parse *p, struct str s)
{
    if (str_eq(s, STR("HTTP/1.1")))
        return OK;
    p->is_http_10 = str_eq(s, STR("HTTP/1.0"));
    if (p->is_http_10)
        return OK;
    if (s.n == 8 && str_starts(s, STR("HTTP/")) && s.p[5] >= '0' &&
        s.p[5] <= '9' && s.p[6] == '.' && s.p[7] >= '0' && s.p[7] <= '9')
        return flaw(p, ERR_HTTP_VERSION, "the request names another");
    return malformed(p, "the version is not written like HTTP/1.1");
}

static enum err read_target(struct http_parse *p, struct head *h, struct str s,
                            struct http_request *rq)
{
    struct str scheme = STR("http://");
    size_t at;

    if (!is_all(s, B_TARGET))
        return malformed(p, "the target has a byte that must be encoded");
    if (str_eq_nocase(str_sub(s, 0, scheme.n), scheme)) {
        at = scheme.n;
        while (at < s.n && s.p[at] != '/' && s.p[at] != '?')
            at++;
        h->authority = str_sub(s, scheme.n, at);
        if (h->authority.n == 0)
            return malformed(p, "the target names no host");
        s = str_sub(s, at, s.n);
    } else if (str_eq(s, STR("*"))) {
        if (!str_eq(rq->method, STR("OPTIONS")))
            return malformed(p, "the target * is for OPTIONS alone");
    } else if (s.n == 0 || s.p[0] != '/') {
        return malformed(p, "the target must begin with / or http://");
    }
    at = str_find(s, '?', 0);
    rq->path = at ? str_sub(s, 0, at) : STR("/");
    rq->query = str_sub(s, at + 1, s.n);
    return OK;
}

static enum err read_request_line(struct http_parse *p, struct head *h,
                                  struct str line, struct http_request *rq)
{
    size_t n = span(line, B_TOKEN);
    size_t space = str_find(line, ' ', n + 1);
    enum err e;

    if (n == 0 || n == line.n || line.p[n] != ' ')
        return malformed(p, "the method is not a word and one space");
    if (space == line.n || str_find(line, ' ', space + 1) != line.n)
        return malformed(p, "the request line has not exactly two spaces");
    rq->method = str_sub(line, 0, n);
    e = read_version(p, str_sub(line, space + 1, line.n));
    if (e)
        return e;
    if (str_eq(rq->method, STR("CONNECT")))
        return flaw(p, ERR_NOT_IMPLEMENTED, "the method CONNECT");
    if (n > HTTP_METHOD_BYTES)
        return flaw(p, ERR_NOT_IMPLEMENTED, "a method of more than 32 bytes");
    p->is_head = str_eq(rq->method, STR("HEAD"));
    return read_target(p, h, str_sub(line, n + 1, space), rq);
}

/* Store a header that may occur once; `twice` is the message otherwise. */
static enum err head_keep_once(struct http_parse *p, struct str value,
                               struct str *to, bool *has, const char *twice)
{
    if (*has)
        return malformed(p, twice);
    *to = value;
    *has = true;
    return OK;
}

static void read_connection(struct head *h, struct str value)
{
    while (value.n) {
        struct str word = str_trim(str_cut(&value, ','));

        if (str_eq_nocase(word, STR("close")))
            h->says_close = true;
        else if (str_eq_nocase(word, STR("keep-alive")))
            h->says_keep_alive = true;
    }
}

/* A header that determines the length of the body. A tab around its value is
 * legal, yet some readers take it for a part of the value. */
static enum err head_keep_framing(struct http_parse *p, struct str line,
                                  struct str value, struct str *to, bool *has,
                                  const char *twice)
{
    if (memchr(line.p, '\t', line.n))
        return malformed(p, "a tab beside the length or the coding");
    return head_keep_once(p, value, to, has, twice);
}

/* The few headers that matter here; lengths first, since nearly every header
 * fails there. */
static enum err head_note_header(struct http_parse *p, struct head *h,
                                 struct str line, const struct http_header *hd)
{
    switch (hd->name.n) {
    case 4:
        if (str_eq_nocase(hd->name, STR("host")))
            return head_keep_once(p, hd->value, &h->host, &h->has_host,
                                  "there are two Host headers");
        break;
    case 6:
        if (str_eq_nocase(hd->name, STR("expect")))
            return head_keep_once(p, hd->value, &h->expect, &h->has_expect,
                                  "there are two Expect headers");
        break;
    case 10:
        if (str_eq_nocase(hd->name, STR("connection")))
            read_connection(h, hd->value);
        break;
    case 14:
        if (str_eq_nocase(hd->name, STR("content-length")))
            return head_keep_framing(p, line, hd->value, &h->length,
                                     &h->has_length,
                                     "there are two Content-Length headers");
        break;
    case 17:
        if (str_eq_nocase(hd->name, STR("transfer-encoding")))
            return head_keep_framing(p, line, hd->value, &h->coding,
                                     &h->has_coding,
                                     "there are two Transfer-Encoding headers");
        break;
    default: break;
    }
    return OK;
}

enum err http_read_header(struct http_parse *p, struct head *h, struct str line,
                          struct http_header *out)
{
    size_t n = span(line, B_TOKEN);

    if (line.n && (line.p[0] == ' ' || line.p[0] == '\t'))
        return malformed(p, "a header line is folded");
    if (n == 0 || n == line.n || line.p[n] != ':')
        return malformed(p, "a header line is not a name, a colon and a value");
    out->name = str_sub(line, 0, n);
    out->value = str_sub(line, n + 1, line.n);
    if (str_has_control(out->value))
        return malformed(p, "a control character in a header");
    out->value = str_trim(out->value);
    return head_note_header(p, h, line, out);
}

/* Eighteen digits always fit and are enough. */
static enum err head_read_content_length(struct http_parse *p, struct str s,
                                         size_t max)
{
    size_t v = 0;

    if (s.n == 0)
        return malformed(p, "Content-Length is empty");
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return malformed(p, "Content-Length is not one number");
        v = v * 10 + (size_t)(s.p[i] - '0');
    }
    if (s.n > 18)
        return malformed(p, "Content-Length has more than 18 digits");
    p->left = v;
    return v > max ? http_over(p, ERR_LIMIT, HTTP_BODY_OVER, max) : OK;
}

static enum err head_check_host(struct http_parse *p, const struct head *h)
{
    if (!h->has_host && !p->is_http_10)
        return malformed(p, "the Host header is missing");
    if (h->has_host && !http_host_is_valid(h->host))
        return malformed(p, "the Host header is not a valid host");
    if (h->authority.n == 0)
        return OK;
    if (h->has_host && !str_eq_nocase(h->authority, h->host))
        return malformed(p, "the target and the Host header differ");
    if (!http_host_is_valid(h->authority))
        return malformed(p, "the target does not name a valid host");
    return OK;
}

/* The length of the body, and its coding. */
static enum err head_check_body(struct http_parse *p, const struct head *h,
                                size_t max_body_bytes)
{
    p->phase = HTTP_BODY;
    p->left = 0;
    if (h->has_coding) {
        if (h->has_length)
            return malformed(p, "both Content-Length and Transfer-Encoding");
        if (p->is_http_10)
            return malformed(p, "Transfer-Encoding is not in HTTP/1.0");
        if (!str_eq_nocase(h->coding, STR("chunked")))
            return flaw(p, ERR_NOT_IMPLEMENTED,
                        "a Transfer-Encoding other than chunked");
        p->phase = HTTP_CHUNK_SIZE;
        return OK;
    }
    return h->has_length
               ? head_read_content_length(p, h->length, max_body_bytes)
               : OK;
}

static enum err head_check(struct http_parse *p, const struct head *h,
                           size_t max_body_bytes)
{
    enum err e = head_check_host(p, h);

    if (!e)
        e = head_check_body(p, h, max_body_bytes);
    if (e)
        return e;
    if (h->has_expect && !p->is_http_10) {
        if (!str_eq_nocase(h->expect, STR("100-continue")))
            return flaw(p, ERR_EXPECTATION, "the Expect header says another");
        p->expects_continue = true;
    }
    p->keeps_alive = !h->says_close && (!p->is_http_10 || h->says_keep_alive);
    return OK;
}

/* Nothing ended: remember the examined length. */
static enum http_step head_more(struct http_parse *p, size_t seen,
                                size_t line_at)
{
    p->seen = seen;
    p->line_at = line_at;
    return HTTP_MORE;
}

/* TLS or garbage is rejected at the first byte. */
static const char *not_a_method(char c)
{
    switch (c) {
    case 0x16:
        return "it looks like TLS, and this port speaks plain HTTP: use "
               "http://, or the port of tls.listen";
    case '\n': return HTTP_NO_CR;
    case '\r': return "there is more than one empty line before it";
    default: return "it does not begin with a method";
    }
}

/* The request line, and an empty line before it. */
static enum http_step head_read_first_line(struct http_parse *p,
                                           const struct http_limits *l,
                                           struct str in, struct head *h,
                                           struct http_request *rq)
{
    size_t at = 0;
    uint8_t n_blank = p->n_blank;
    struct str line;

    if (n_blank == 1 || (n_blank == 0 && in.n && in.p[0] == '\r'))
        for (; n_blank < 2 && at < in.n; n_blank++, at++)
            if (in.p[at] != "\r\n"[n_blank])
                return http_bad(p, "a CR without LF");
    if (at == in.n) {
        p->n_blank = n_blank;
        return head_more(p, 0, 0);
    }
    if (!(http_classes[(unsigned char)in.p[at]] & B_TOKEN))
        return http_bad(p, not_a_method(in.p[at]));
    switch (
        cut_line(str_sub(in, at, in.n), l->max_request_line_bytes + 2, &line)) {
    case LINE_MORE: return head_more(p, in.n, at);
    case LINE_LONG:
        http_over(p, ERR_URI_TOO_LONG,
                  "it is longer than http.maxRequestLineBytes",
                  l->max_request_line_bytes);
        return HTTP_BAD;
    case LINE_BAD: return http_bad(p, HTTP_NO_CR);
    case LINE_WHOLE: break;
    }
    if (read_request_line(p, h, line, rq))
        return HTTP_BAD;
    p->headers_at = at + line.n + 2;
    return HTTP_DONE;
}

/* One header line at `at`, which moves behind it. */
static enum http_step head_read_line(struct http_parse *p,
                                     const struct http_limits *l, struct str in,
                                     size_t *at, struct head *h,
                                     struct http_header *slot)
{
    size_t room = l->max_header_bytes - (*at - p->headers_at);
    struct str line;

    switch (cut_line(str_sub(in, *at, in.n), room, &line)) {
    case LINE_MORE: return head_more(p, in.n, *at);
    case LINE_LONG:
        return bad_headers(p, "they are larger than http.maxHeaderBytes",
                           l->max_header_bytes);
    case LINE_BAD: return http_bad(p, HTTP_NO_CR);
    case LINE_WHOLE: break;
    }
    if (http_read_header(p, h, line, slot))
        return HTTP_BAD;
    *at += line.n + 2;
    return HTTP_DONE;
}

/* The whole head from its first byte. */
enum http_step http_read_head(struct http_parse *p, const struct http_limits *l,
                              struct str in, struct http_header *slots,
                              struct http_request *rq)
{
    struct head h = {.has_host = false};
    enum http_step step;
    size_t at, n = 0;

    step = head_read_first_line(p, l, in, &h, rq);
    if (step != HTTP_DONE)
        return step;
    for (at = p->headers_at;;) {
        step = is_last_line(str_sub(in, at, in.n));
        if (step == HTTP_MORE)
            return head_more(p, at, at);
        if (step == HTTP_DONE)
            break;
        if (n == l->max_headers)
            return bad_headers(p, "they are more than http.maxHeaders",
                               l->max_headers);
        step = head_read_line(p, l, in, &at, &h, &slots[n]);
        if (step != HTTP_DONE)
            return step;
        n++;
    }
    if (head_check(p, &h, l->max_body_bytes))
        return HTTP_BAD;
    p->head_bytes = at + 2;
    p->n_headers = (uint32_t)n;
    p->seen = 0;
    rq->headers = slots;
    rq->n_headers = n;
    return HTTP_DONE;
}
