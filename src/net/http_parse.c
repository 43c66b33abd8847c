/* A head is read line by line from a buffer that holds it from its first byte.
 * Nearly always it is there whole and one pass over it is all. When it is not,
 * we remember how far we looked; bytes that bring no end of a line cost one
 * memchr, and one that does starts again at the front. A head has a limited
 * number of lines, so that is bounded, and no array of half-read headers has
 * to live with the connection.
 *
 * Every decision is a function of the bytes from the front up to some point
 * and never of where a read happened to end: limits are judged before content,
 * and a line's content only once the line has ended. The tests cut every case
 * at every byte to hold us to that.
 *
 * llhttp was the other candidate: as fast, but lenient about line ends,
 * repeated lengths, targets and Host, and a callback machine where slices into
 * one buffer are all that is wanted. */
#include "net/http.h"

#include <assert.h>

enum byte_class {
    B_TOKEN = 1,  /* names and methods */
    B_VALUE = 2,  /* header values: visible, space, tab, beyond ASCII */
    B_TARGET = 4, /* visible ASCII without '#' */
    B_HOST = 8,   /* letters, digits, "-._~" */
    B_HEX = 16,
};

#define B_ALL (B_TOKEN | B_VALUE | B_TARGET)
static const uint8_t classes[256] = {
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

/* How many bytes at the front are of the class. */
static size_t span(struct str s, enum byte_class class)
{
    size_t i = 0;

    while (i < s.n && classes[(unsigned char)s.p[i]] & class)
        i++;
    return i;
}

static bool is_all(struct str s, enum byte_class class)
{
    return span(s, class) == s.n;
}

/* What is wrong with a request, for the program and for people. The words are
 * constants: bytes of the client are never among them. */
static enum err flaw(struct http_parse *p, enum err e, const char *what)
{
    p->bad = e;
    p->what = what;
    return e;
}

static enum err malformed(struct http_parse *p, const char *what)
{
    return flaw(p, ERR_BAD_REQUEST, what);
}

static enum err over(struct http_parse *p, enum err e, const char *what,
                     size_t limit)
{
    p->limit = limit;
    return flaw(p, e, what);
}

/* What the lines of a head said, until they are judged together. */
struct head {
    struct str authority; /* of a target in absolute form */
    struct str host;
    struct str length;
    struct str coding;
    struct str expect;
    bool has_host, has_length, has_coding, has_expect;
    bool says_close, says_keep_alive;
};

static const char no_cr[] = "a line ends without CR";
static const char body_over[] = "the body is larger than http.maxBodyBytes";

enum line { LINE_MORE, LINE_WHOLE, LINE_BAD, LINE_LONG };

/* The line at the front of s, without its CRLF, which must end within `room`
 * bytes. Its content is not looked at. */
static enum line cut_line(struct str s, size_t room, struct str *line)
{
    struct str within = str_sub(s, 0, room);
    size_t lf = str_find(within, '\n', 0);

    if (lf == within.n)
        return s.n >= room ? LINE_LONG : LINE_MORE;
    if (lf == 0 || s.p[lf - 1] != '\r')
        return LINE_BAD;
    *line = str_sub(s, 0, lf - 1);
    return LINE_WHOLE;
}

/* "HOST", "HOST:PORT" or "[V6]:PORT". */
static bool host_is_valid(struct str s)
{
    size_t n = span(s, B_HOST);
    struct str port;

    if (s.n && s.p[0] == '[') {
        struct str v6 = str_sub(s, 1, str_find(s, ']', 0));

        n = v6.n + 2;
        if (n > s.n || v6.n < 2 || str_find(v6, ':', 0) == v6.n)
            return false;
        for (size_t i = 0; i < v6.n; i++)
            if (!(classes[(unsigned char)v6.p[i]] & B_HEX) && v6.p[i] != ':' &&
                v6.p[i] != '.')
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

/* A header that may be there once; `twice` are the words for when it is not. */
static enum err keep_once(struct http_parse *p, struct str value,
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

/* A header that decides how long the body is. A tab beside its value is legal,
 * yet some readers take it for a part of the value. */
static enum err keep_framing(struct http_parse *p, struct str line,
                             struct str value, struct str *to, bool *has,
                             const char *twice)
{
    if (memchr(line.p, '\t', line.n))
        return malformed(p, "a tab beside the length or the coding");
    return keep_once(p, value, to, has, twice);
}

/* The few headers that mean something here; lengths first, since nearly every
 * header fails there. */
static enum err note_header(struct http_parse *p, struct head *h,
                            struct str line, const struct http_header *hd)
{
    switch (hd->name.n) {
    case 4:
        if (str_eq_nocase(hd->name, STR("host")))
            return keep_once(p, hd->value, &h->host, &h->has_host,
                             "there are two Host headers");
        break;
    case 6:
        if (str_eq_nocase(hd->name, STR("expect")))
            return keep_once(p, hd->value, &h->expect, &h->has_expect,
                             "there are two Expect headers");
        break;
    case 10:
        if (str_eq_nocase(hd->name, STR("connection")))
            read_connection(h, hd->value);
        break;
    case 14:
        if (str_eq_nocase(hd->name, STR("content-length")))
            return keep_framing(p, line, hd->value, &h->length, &h->has_length,
                                "there are two Content-Length headers");
        break;
    case 17:
        if (str_eq_nocase(hd->name, STR("transfer-encoding")))
            return keep_framing(p, line, hd->value, &h->coding, &h->has_coding,
                                "there are two Transfer-Encoding headers");
        break;
    default: break;
    }
    return OK;
}

static enum err read_header(struct http_parse *p, struct head *h,
                            struct str line, struct http_header *out)
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
    return note_header(p, h, line, out);
}

/* Eighteen digits always fit, and nobody means more. */
static enum err read_length(struct http_parse *p, struct str s, size_t max)
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
    return v > max ? over(p, ERR_LIMIT, body_over, max) : OK;
}

static enum err judge_host(struct http_parse *p, const struct head *h)
{
    if (!h->has_host && !p->is_http_10)
        return malformed(p, "the Host header is missing");
    if (h->has_host && !host_is_valid(h->host))
        return malformed(p, "the Host header is not a valid host");
    if (h->authority.n == 0)
        return OK;
    if (h->has_host && !str_eq_nocase(h->authority, h->host))
        return malformed(p, "the target and the Host header differ");
    if (!host_is_valid(h->authority))
        return malformed(p, "the target does not name a valid host");
    return OK;
}

/* How long the body is and how it comes. */
static enum err judge_body(struct http_parse *p, const struct head *h,
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
    return h->has_length ? read_length(p, h->length, max_body_bytes) : OK;
}

static enum err judge(struct http_parse *p, const struct head *h,
                      size_t max_body_bytes)
{
    enum err e = judge_host(p, h);

    if (!e)
        e = judge_body(p, h, max_body_bytes);
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

static enum http_step bad(struct http_parse *p, const char *what)
{
    malformed(p, what);
    return HTTP_BAD;
}

static enum http_step bad_headers(struct http_parse *p, const char *what,
                                  size_t limit)
{
    over(p, ERR_HEADERS_TOO_LARGE, what, limit);
    return HTTP_BAD;
}

/* Nothing ended: remember how far we looked, for next time. */
static enum http_step head_more(struct http_parse *p, size_t seen,
                                size_t line_at)
{
    p->seen = seen;
    p->line_at = line_at;
    return HTTP_MORE;
}

/* Whoever speaks TLS or nonsense to us learns it at the first byte. */
static const char *not_a_method(char c)
{
    switch (c) {
    case 0x16: return "this is not HTTP: it looks like TLS";
    case '\n': return no_cr;
    case '\r': return "there is more than one empty line before it";
    default: return "it does not begin with a method";
    }
}

/* The request line and what may precede it. */
static enum http_step read_first_line(struct http_parse *p,
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
                return bad(p, "a CR without LF");
    if (at == in.n) {
        p->n_blank = n_blank;
        return head_more(p, 0, 0);
    }
    if (!(classes[(unsigned char)in.p[at]] & B_TOKEN))
        return bad(p, not_a_method(in.p[at]));
    switch (
        cut_line(str_sub(in, at, in.n), l->max_request_line_bytes + 2, &line)) {
    case LINE_MORE: return head_more(p, in.n, at);
    case LINE_LONG:
        over(p, ERR_URI_TOO_LONG, "it is longer than http.maxRequestLineBytes",
             l->max_request_line_bytes);
        return HTTP_BAD;
    case LINE_BAD: return bad(p, no_cr);
    case LINE_WHOLE: break;
    }
    if (read_request_line(p, h, line, rq))
        return HTTP_BAD;
    p->headers_at = at + line.n + 2;
    return HTTP_DONE;
}

/* Whether the line at the front is the empty one that ends a head: HTTP_DONE
 * when it is, HTTP_BAD when it is another, HTTP_MORE when that is open. */
static enum http_step is_last_line(struct str s)
{
    if (s.n == 0 || (s.n == 1 && s.p[0] == '\r'))
        return HTTP_MORE;
    return s.n > 1 && s.p[0] == '\r' && s.p[1] == '\n' ? HTTP_DONE : HTTP_BAD;
}

/* One header line at `at`, which moves behind it. */
static enum http_step read_header_line(struct http_parse *p,
                                       const struct http_limits *l,
                                       struct str in, size_t *at,
                                       struct head *h, struct http_header *slot)
{
    size_t room = l->max_header_bytes - (*at - p->headers_at);
    struct str line;

    switch (cut_line(str_sub(in, *at, in.n), room, &line)) {
    case LINE_MORE: return head_more(p, in.n, *at);
    case LINE_LONG:
        return bad_headers(p, "they are larger than http.maxHeaderBytes",
                           l->max_header_bytes);
    case LINE_BAD: return bad(p, no_cr);
    case LINE_WHOLE: break;
    }
    if (read_header(p, h, line, slot))
        return HTTP_BAD;
    *at += line.n + 2;
    return HTTP_DONE;
}

/* The whole head from its first byte. */
static enum http_step read_head(struct http_parse *p,
                                const struct http_limits *l, struct str in,
                                struct http_header *slots,
                                struct http_request *rq)
{
    struct head h = {.has_host = false};
    enum http_step step;
    size_t at, n = 0;

    step = read_first_line(p, l, in, &h, rq);
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
        step = read_header_line(p, l, in, &at, &h, &slots[n]);
        if (step != HTTP_DONE)
            return step;
        n++;
    }
    if (judge(p, &h, l->max_body_bytes))
        return HTTP_BAD;
    p->head_bytes = at + 2;
    p->n_headers = (uint32_t)n;
    p->seen = 0;
    rq->headers = slots;
    rq->n_headers = n;
    return HTTP_DONE;
}

/* Whether new bytes without the end of a line leave everything as it was: no
 * line has ended and none has become too long. */
static bool head_must_wait(const struct http_parse *p,
                           const struct http_limits *l, struct str in)
{
    size_t room = p->line_at < p->headers_at || p->headers_at == 0
                      ? p->line_at + l->max_request_line_bytes + 2
                      : p->headers_at + l->max_header_bytes;

    return p->seen > p->line_at && in.n < room &&
           str_find(in, '\n', p->seen) == in.n;
}

/* Fill rq again from a head that was accepted in an earlier call: the caller
 * may have moved the bytes, and may use other limits by now. */
static void reread_head(const struct http_parse *p, char *bytes,
                        struct http_header *slots, struct http_request *rq)
{
    struct http_parse again = {.phase = HTTP_HEAD, .n_blank = p->n_blank};
    const struct http_limits none = {
        .max_request_line_bytes = p->head_bytes,
        .max_header_bytes = p->head_bytes,
        .max_headers = p->n_headers,
        .max_body_bytes = SIZE_MAX,
    };
    enum http_step step =
        read_head(&again, &none, (struct str){bytes, p->head_bytes}, slots, rq);

    assert(step == HTTP_DONE);
}

/* How many bytes at the front are a quoted string; zero when none is. */
static size_t quoted(struct str s)
{
    if (s.n == 0 || s.p[0] != '"')
        return 0;
    for (size_t i = 1; i < s.n; i++) {
        if (s.p[i] == '"')
            return i + 1;
        i += s.p[i] == '\\';
        if (i >= s.n || !(classes[(unsigned char)s.p[i]] & B_VALUE))
            break;
    }
    return 0;
}

/* ";name", ";name=token" or ";name="quoted"", any number of them and no space
 * between. What they mean nobody has ever said. */
static bool extension_is_valid(struct str s)
{
    while (s.n) {
        size_t n = s.p[0] == ';' ? span(str_sub(s, 1, s.n), B_TOKEN) : 0;

        if (n == 0)
            return false;
        s = str_sub(s, n + 1, s.n);
        if (s.n == 0 || s.p[0] != '=')
            continue;
        s = str_sub(s, 1, s.n);
        n = span(s, B_TOKEN);
        if (n == 0)
            n = quoted(s);
        if (n == 0)
            return false;
        s = str_sub(s, n, s.n);
    }
    return true;
}

static enum err read_chunk_line(struct http_parse *p,
                                const struct http_limits *l, struct str line)
{
    size_t digits = span(line, B_HEX);
    struct str extension = str_sub(line, digits, line.n);
    uint64_t size = 0;

    if (digits == 0 || (extension.n && extension.p[0] != ';'))
        return malformed(p, "a chunk size is not hexadecimal");
    if (digits > 16)
        return malformed(p, "a chunk size has more than 16 digits");
    if (!extension_is_valid(extension))
        return malformed(p, "a chunk has a broken extension");
    p->seen += extension.n;
    if (p->seen > HTTP_CHUNK_EXT_BYTES)
        return malformed(p, "the extensions of chunks are over 4096 bytes");
    for (size_t i = 0; i < digits; i++) {
        char c = line.p[i];

        size =
            size << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    /* The limit may have fallen below what is here already. */
    if (p->body_bytes > l->max_body_bytes ||
        size > l->max_body_bytes - p->body_bytes)
        return over(p, ERR_LIMIT, body_over, l->max_body_bytes);
    p->left = (size_t)size;
    p->phase = size ? HTTP_CHUNK_DATA : HTTP_TRAILER;
    if (!size)
        p->seen = 0; /* counts trailers from here on */
    return OK;
}

/* The steps below take what they can from the front of *in. HTTP_DONE: go on
 * with the next. */
static enum http_step chunk_size(struct http_parse *p,
                                 const struct http_limits *l, struct str *in)
{
    struct str line;

    switch (cut_line(*in, HTTP_CHUNK_LINE_BYTES, &line)) {
    case LINE_MORE: return HTTP_MORE;
    case LINE_LONG: return bad(p, "the line of a chunk is over 256 bytes");
    case LINE_BAD: return bad(p, no_cr);
    case LINE_WHOLE: break;
    }
    if (read_chunk_line(p, l, line))
        return HTTP_BAD;
    *in = str_sub(*in, line.n + 2, in->n);
    return HTTP_DONE;
}

static enum http_step chunk_data(struct http_parse *p, char *bytes,
                                 struct str *in)
{
    size_t n = p->left < in->n ? p->left : in->n;

    if (n == 0)
        return HTTP_MORE;
    memmove(bytes + p->head_bytes + p->body_bytes, in->p, n);
    p->body_bytes += n;
    p->left -= n;
    *in = str_sub(*in, n, in->n);
    if (p->left == 0)
        p->phase = HTTP_CHUNK_END;
    return HTTP_DONE;
}

static enum http_step chunk_end(struct http_parse *p, struct str *in)
{
    enum http_step step = is_last_line(*in);

    if (step == HTTP_BAD)
        return bad(p, "a chunk is not followed by CRLF");
    if (step == HTTP_DONE) {
        p->phase = HTTP_CHUNK_SIZE;
        *in = str_sub(*in, 2, in->n);
    }
    return step;
}

/* Trailers are thrown away; one that would have meant something to the framing
 * or the target, had it come in time, is a trick. */
static enum err read_trailer(struct http_parse *p, struct str line)
{
    struct http_header hd;
    struct head h = {.has_host = false};
    enum err e = read_header(p, &h, line, &hd);

    if (e)
        return e;
    if (h.has_host || h.has_length || h.has_coding || h.has_expect ||
        h.says_close || h.says_keep_alive)
        return malformed(p, "a trailer that belongs into the headers");
    return OK;
}

/* HTTP_DONE with the phase back at HTTP_HEAD: that was the end of it. */
static enum http_step trailer(struct http_parse *p, const struct http_limits *l,
                              struct str *in)
{
    enum http_step step = is_last_line(*in);
    struct str line;
    size_t room =
        l->max_header_bytes > p->seen ? l->max_header_bytes - p->seen : 0;

    if (step == HTTP_DONE) {
        p->phase = HTTP_HEAD;
        *in = str_sub(*in, 2, in->n);
    }
    if (step != HTTP_BAD)
        return step;
    if (p->n_trailers >= l->max_headers)
        return bad_headers(p, "the trailers are more than http.maxHeaders",
                           l->max_headers);
    switch (cut_line(*in, room, &line)) {
    case LINE_MORE: return HTTP_MORE;
    case LINE_LONG:
        return bad_headers(p,
                           "the trailers are larger than http.maxHeaderBytes",
                           l->max_header_bytes);
    case LINE_BAD: return bad(p, no_cr);
    case LINE_WHOLE: break;
    }
    if (read_trailer(p, line))
        return HTTP_BAD;
    p->n_trailers++;
    p->seen += line.n + 2;
    *in = str_sub(*in, line.n + 2, in->n);
    return HTTP_DONE;
}

static enum http_step chunk_step(struct http_parse *p,
                                 const struct http_limits *l, char *bytes,
                                 struct str *in)
{
    switch ((enum http_phase)p->phase) {
    case HTTP_CHUNK_SIZE: return chunk_size(p, l, in);
    case HTTP_CHUNK_DATA: return chunk_data(p, bytes, in);
    case HTTP_CHUNK_END: return chunk_end(p, in);
    case HTTP_TRAILER: return trailer(p, l, in);
    case HTTP_HEAD:
    case HTTP_BODY: break;
    }
    assert(!"chunk_step outside a chunked body");
    return HTTP_BAD;
}

/* Body bytes move down over the framing as they are found, and the rest
 * follows once at the end, so each byte moves at most twice per call. */
static enum http_step read_chunks(struct http_parse *p,
                                  const struct http_limits *l, char *bytes,
                                  size_t *n)
{
    size_t from = p->head_bytes + p->body_bytes;
    struct str in = {bytes + from, *n - from};
    enum http_step step;

    do
        step = chunk_step(p, l, bytes, &in);
    while (step == HTTP_DONE && p->phase != HTTP_HEAD);
    from = p->head_bytes + p->body_bytes;
    if (in.n)
        memmove(bytes + from, in.p, in.n);
    *n = from + in.n;
    return step;
}

static enum http_step read_body(struct http_parse *p, size_t n)
{
    size_t here = n - p->head_bytes - p->body_bytes;
    size_t part = here < p->left ? here : p->left;

    p->body_bytes += part;
    p->left -= part;
    return p->left ? HTTP_MORE : HTTP_DONE;
}

enum http_step http_parse(struct http_parse *p,
                          const struct http_limits *limits, char *bytes,
                          size_t *n, struct http_header *slots,
                          struct http_request *rq)
{
    bool has_head = p->phase != HTTP_HEAD;
    uint8_t n_blank = p->n_blank;
    struct str in = {bytes, *n};
    enum http_step step;

    if (p->bad)
        return HTTP_BAD;
    if (!has_head) {
        if (head_must_wait(p, limits, in)) {
            p->seen = in.n;
            return HTTP_MORE;
        }
        *rq = (struct http_request){.n_headers = 0};
        step = read_head(p, limits, in, slots, rq);
        if (step == HTTP_MORE && p->n_blank > n_blank)
            *n = 0; /* nothing but that empty line */
        if (step != HTTP_DONE)
            return step;
    }
    step = p->phase == HTTP_BODY ? read_body(p, *n)
                                 : read_chunks(p, limits, bytes, n);
    if (step == HTTP_DONE) {
        if (has_head)
            reread_head(p, bytes, slots, rq);
        rq->body = (struct str){bytes + p->head_bytes, p->body_bytes};
    }
    return step;
}

struct str http_header(const struct http_request *rq, struct str name)
{
    for (size_t i = 0; i < rq->n_headers; i++)
        if (str_eq_nocase(rq->headers[i].name, name))
            return rq->headers[i].value;
    return (struct str){NULL, 0};
}
