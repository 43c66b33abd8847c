#ifndef NET_SERVER_HTTP_INTERNAL_H
#define NET_SERVER_HTTP_INTERNAL_H

/* Internals of the reader: byte classes, lines, and error messages.
 *
 *     http_head.c    request line and headers
 *     http_chunk.c   a chunked body and its trailers
 *     http_parse.c   the two in turn
 */

#include "net/server/http.h"

enum byte_class {
    B_TOKEN = 1,  /* names and methods */
    B_VALUE = 2,  /* header values: visible, space, tab, beyond ASCII */
    B_TARGET = 4, /* visible ASCII without '#' */
    B_HOST = 8,   /* letters, digits, "-._~" */
    B_HEX = 16,
};

extern const uint8_t http_classes[256];

/* The number of bytes of the class at the front. */
static inline size_t span(struct str s, enum byte_class class)
{
    size_t i = 0;

    while (i < s.n && http_classes[(unsigned char)s.p[i]] & class)
        i++;
    return i;
}

static inline bool is_all(struct str s, enum byte_class class)
{
    return span(s, class) == s.n;
}

/* Set the error of a request, and its message. Messages are constants: they
 * never contain bytes of the client. */
static inline enum err flaw(struct http_parse *p, enum err e, const char *what)
{
    p->bad = e;
    p->what = what;
    return e;
}

static inline enum err malformed(struct http_parse *p, const char *what)
{
    return flaw(p, ERR_BAD_REQUEST, what);
}

static inline enum err http_over(struct http_parse *p, enum err e,
                                 const char *what, size_t limit)
{
    p->limit = limit;
    return flaw(p, e, what);
}

static inline enum http_step http_bad(struct http_parse *p, const char *what)
{
    malformed(p, what);
    return HTTP_BAD;
}

static inline enum http_step bad_headers(struct http_parse *p, const char *what,
                                         size_t limit)
{
    http_over(p, ERR_HEADERS_TOO_LARGE, what, limit);
    return HTTP_BAD;
}

#define HTTP_NO_CR     "a line ends without CR"
#define HTTP_BODY_OVER "the body is larger than http.maxBodyBytes"

enum line { LINE_MORE, LINE_WHOLE, LINE_BAD, LINE_LONG };

/* The line at the front of s, without its CRLF, which must end within `room`
 * bytes. Its content is not checked. */
static inline enum line cut_line(struct str s, size_t room, struct str *line)
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

/* Whether the line at the front is the empty one that ends a head: HTTP_DONE:
 * yes; HTTP_BAD: no; HTTP_MORE: it is incomplete. */
static inline enum http_step is_last_line(struct str s)
{
    if (s.n == 0 || (s.n == 1 && s.p[0] == '\r'))
        return HTTP_MORE;
    return s.n > 1 && s.p[0] == '\r' && s.p[1] == '\n' ? HTTP_DONE : HTTP_BAD;
}

/* The facts of a head's lines, until they are checked together. */
struct head {
    struct str authority; /* of a target in absolute form */
    struct str host;
    struct str length;
    struct str coding;
    struct str expect;
    bool has_host, has_length, has_coding, has_expect;
    bool says_close, says_keep_alive;
};

/* "HOST", "HOST:PORT" or "[V6]:PORT". */
bool http_host_is_valid(struct str s);

/* Read a header line, and note its effect on the framing in h. */
enum err http_read_header(struct http_parse *p, struct head *h, struct str line,
                          struct http_header *out);

/* Read the head at the front of `in`, or the available part. */
enum http_step http_read_head(struct http_parse *p, const struct http_limits *l,
                              struct str in, struct http_header *slots,
                              struct http_request *rq);

/* Remove the framing of chunks from the body, in place. */
enum http_step http_read_chunks(struct http_parse *p,
                                const struct http_limits *l, char *bytes,
                                size_t *n);

#endif
