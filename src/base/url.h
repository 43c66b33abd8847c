#ifndef BASE_URL_H
#define BASE_URL_H

/* url: http, https, ws and wss URLs, read strictly and taken apart.
 *
 * Refused rather than repaired: spaces, control bytes and bytes beyond ASCII,
 * backslashes, a user or password before the host, an empty host, percent
 * signs in the host, ports that are none, and hosts that are numbers in any
 * other form than a.b.c.d or [v6] (0x7f.1, 2130706433, 0177.0.0.1), and a "?"
 * straight after the host, which has no "/path?query" in it to point at. A
 * fragment is cut off. Owns nothing: slices point into the text. Pure.
 * Threads: any. */

#include "base/buf.h"
#include "base/str.h"

enum { URL_BYTES_MAX = 8192, URL_HOST_MAX = 255 };

struct url {
    struct str scheme;    /* as written */
    struct str host;      /* without brackets */
    struct str authority; /* host and port as written, without a user */
    struct str target;    /* "/path?query"; "/" when the URL has none: then it
                           * points at a constant */
    uint16_t port;        /* given, or the scheme's */
    bool is_tls;          /* https, wss */
    bool is_ws;           /* ws, wss */
    bool is_v6;           /* the host stood in brackets */
};

/* ERR_SYNTAX, and *out untouched; why says what is wrong, without repeating
 * more than the host of what may hold secrets. */
MUST_USE enum err url_read(struct str text, struct url *out, struct why *why);

/* Whether it begins with http:// or https://, where nothing else makes sense.
 */
bool url_is_http(struct str text);

/* The address of a proxy: "http://HOST:PORT" and no more. Errors as above. */
MUST_USE enum err url_read_proxy(struct str text, struct url *out,
                                 struct why *why);

/* Same scheme, host (whatever its case) and port. A name with a dot at its end
 * is another than the one without. */
bool url_is_same_origin(const struct url *a, const struct url *b);

/* Whether the host means this machine by name: "localhost", in any case, with
 * labels before it or dots at its end. */
bool url_is_localhost(struct str host);

/* What a Location header means, seen from the URL it came with: absolute,
 * "//host/path", "/path", "path", "?query" or nothing, after RFC 3986, 5.2.
 * Appends to out, without a fragment; a missing "/" behind the host is put
 * there. ERR_SYNTAX when the result is none that url_read would take, ERR_LIMIT
 * when out has no room; out has then what it had. */
MUST_USE enum err url_resolve(const struct url *base, struct str location,
                              struct buf *out, struct why *why);

#endif
