/* The framing of a chunked body is removed in place: data moves down over the
 * lines between, so the reader gets one piece. Sizes and trailers are read as
 * strictly as a head, because request smuggling often uses them. */
#include "net/server/http_internal.h"

#include <assert.h>

/* The length of a quoted string at the front; zero: there is none. */
static size_t quoted(struct str s)
{
    if (s.n == 0 || s.p[0] != '"')
        return 0;
    for (size_t i = 1; i < s.n; i++) {
        if (s.p[i] == '"')
            return i + 1;
        i += s.p[i] == '\\';
        if (i >= s.n || !(http_classes[(unsigned char)s.p[i]] & B_VALUE))
            break;
    }
    return 0;
}

/* ";name", ";name=token" or ";name="quoted"", any number of them and no space
 * between. They have no defined meaning. */
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
    /* The limit may have fallen below the bytes that are here already. */
    if (p->body_bytes > l->max_body_bytes ||
        size > l->max_body_bytes - p->body_bytes)
        return http_over(p, ERR_LIMIT, HTTP_BODY_OVER, l->max_body_bytes);
    p->left = (size_t)size;
    p->phase = size ? HTTP_CHUNK_DATA : HTTP_TRAILER;
    if (!size)
        p->seen = 0; /* counts trailers from here on */
    return OK;
}

/* Each of the steps below takes bytes from the front of *in. HTTP_DONE:
 * continue with the next one. */
static enum http_step chunk_size(struct http_parse *p,
                                 const struct http_limits *l, struct str *in)
{
    struct str line;

    switch (cut_line(*in, HTTP_CHUNK_LINE_BYTES, &line)) {
    case LINE_MORE: return HTTP_MORE;
    case LINE_LONG: return http_bad(p, "the line of a chunk is over 256 bytes");
    case LINE_BAD: return http_bad(p, HTTP_NO_CR);
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
        return http_bad(p, "a chunk is not followed by CRLF");
    if (step == HTTP_DONE) {
        p->phase = HTTP_CHUNK_SIZE;
        *in = str_sub(*in, 2, in->n);
    }
    return step;
}

/* Trailers are dropped. A header that in a head would affect the framing or
 * the target is an attack. */
static enum err read_trailer(struct http_parse *p, struct str line)
{
    struct http_header hd;
    struct head h = {.has_host = false};
    enum err e = http_read_header(p, &h, line, &hd);

    if (e)
        return e;
    if (h.has_host || h.has_length || h.has_coding || h.has_expect ||
        h.says_close || h.says_keep_alive)
        return malformed(p, "a trailer that belongs into the headers");
    return OK;
}

/* HTTP_DONE with the phase back at HTTP_HEAD: the body is complete. */
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
    case LINE_BAD: return http_bad(p, HTTP_NO_CR);
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
enum http_step http_read_chunks(struct http_parse *p,
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
