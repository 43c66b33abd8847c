#ifndef BASE_URL_H
#define BASE_URL_H

/* url: http, https, ws and wss URLs, parsed strictly.
 *
 * It rejects rather than repairs: spaces, control bytes and bytes beyond ASCII,
 * backslashes, a user or password before the host, an empty host, percent signs
 * in the host, bad ports, hosts that are numbers in any form other than a.b.c.d
 * or [v6] (0x7f.1, 2130706433, 0177.0.0.1), and a "?" directly after the host,
 * because the text then has no "/path?query" to point at. A fragment is cut
 * off. Owns nothing: slices point into the text. Pure. Threads: any. */

#include "base/buf.h"
#include "base/str.h"

enum { URL_BYTES_MAX = 8192, URL_HOST_MAX = 255 };

struct url {
    struct str scheme;    /* as written */
    struct str host;      /* without brackets */
    struct str authority; /* host and port as written, without a user */
    struct str target; /* "/path?query"; a constant "/" if the URL has none */
    uint16_t port;     /* given, or the scheme's default */
    bool is_tls;       /* https, wss */
    bool is_ws;        /* ws, wss */
    bool is_v6;        /* the host was in brackets */
};

/* ERR_SYNTAX with *out untouched; the message quotes at most the host, since
 * the rest may hold secrets. */
MUST_USE enum err url_read(struct str text, struct url *out, struct why *why);

/* Whether it begins with http:// or https://, for settings that allow nothing
 * else. */
bool url_is_http(struct str text);

/* The address of a proxy: exactly "http://HOST:PORT". Errors as above. */
MUST_USE enum err url_read_proxy(struct str text, struct url *out,
                                 struct why *why);

/* Same scheme, host (ignoring case) and port. A name with a trailing dot
 * differs from the one without. */
bool url_is_same_origin(const struct url *a, const struct url *b);

/* Whether the host names this machine: "localhost" in any case, with labels
 * before it or dots at its end. */
bool url_is_localhost(struct str host);

/* Resolve a Location header against the URL it came from: absolute,
 * "//host/path", "/path", "path", "?query" or empty, by RFC 3986, 5.2. Appends
 * to out, without a fragment and with a "/" after the host. ERR_SYNTAX if
 * url_read would reject the result, ERR_LIMIT if out has no room; out is then
 * unchanged. */
MUST_USE enum err url_resolve(const struct url *base, struct str location,
                              struct buf *out, struct why *why);

#endif
