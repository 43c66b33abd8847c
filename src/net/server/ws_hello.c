/* The server's side of the opening handshake: whether a request may become a
 * WebSocket. The HTTP reader has already checked it as a request (one Host,
 * one length, no control bytes); this file checks the further rules of RFC
 * 6455.
 *
 * A header that decides something may occur once: a program that reads the
 * first and one that reads the last must not differ. Lists that HTTP allows in
 * several headers (Upgrade, Connection, the offered protocols and extensions)
 * may. */
#include <openssl/evp.h>

#include "base/fault.h"
#include "net/server/ws_internal.h"

enum { SHA1_BYTES = 20 };

/* 16 bytes are 21 digits and two bits: the four below those are zero. */
bool ws_key_is_valid(struct str key)
{
    if (key.n != WS_KEY_BYTES || key.p[22] != '=' || key.p[23] != '=')
        return false;
    for (size_t i = 0; i < 22; i++)
        if (str_base64_value(key.p[i]) < 0)
            return false;
    return (str_base64_value(key.p[21]) & 15) == 0;
}

enum err ws_accept_of(const char key[WS_KEY_BYTES],
                      char out[WS_ACCEPT_BYTES + 1])
{
    static const char salt[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    char text[WS_KEY_BYTES + sizeof(salt) - 1];
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    memcpy(text, key, WS_KEY_BYTES);
    memcpy(text + WS_KEY_BYTES, salt, sizeof(salt) - 1);
    if (FAULT("ws.sha1") ||
        EVP_Digest(text, sizeof(text), hash, &n, EVP_sha1(), NULL) != 1 ||
        n != SHA1_BYTES)
        return ERR_INTERNAL;
    EVP_EncodeBlock((unsigned char *)out, hash, SHA1_BYTES);
    return OK;
}

/* Whether any header of that name lists the word. */
static bool any_lists(const struct http_request *rq, struct str name,
                      struct str word)
{
    for (size_t i = 0; i < rq->n_headers; i++)
        if (str_eq_nocase(rq->headers[i].name, name) &&
            ws_list_has(rq->headers[i].value, word))
            return true;
    return false;
}

static size_t hello_count_headers(const struct http_request *rq,
                                  struct str name)
{
    size_t n = 0;

    for (size_t i = 0; i < rq->n_headers; i++)
        n += str_eq_nocase(rq->headers[i].name, name);
    return n;
}

bool ws_is_asked(const struct http_request *rq)
{
    return any_lists(rq, STR("upgrade"), STR("websocket"));
}

bool ws_offers(const struct http_request *rq, struct str protocol)
{
    for (size_t i = 0; i < rq->n_headers; i++) {
        struct str list = rq->headers[i].value;

        if (!str_eq_nocase(rq->headers[i].name, STR("sec-websocket-protocol")))
            continue;
        while (list.n)
            if (str_eq(str_trim(str_cut(&list, ',')), protocol))
                return protocol.n > 0;
    }
    return false;
}

#define NOT_WORDS "Sec-WebSocket-Protocol is not a list of words"

/* All protocols of all headers: tokens, without duplicates. Empty elements are
 * skipped, as HTTP requires for lists. */
static const char *read_protocols(const struct http_request *rq,
                                  struct str *first)
{
    struct str seen[WS_PROTOCOLS_MAX];
    bool is_there = false;
    size_t n = 0;

    for (size_t i = 0; i < rq->n_headers; i++) {
        struct str list = rq->headers[i].value;

        if (!str_eq_nocase(rq->headers[i].name, STR("sec-websocket-protocol")))
            continue;
        is_there = true;
        if (n == 0)
            *first = list;
        while (list.n) {
            struct str word = str_trim(str_cut(&list, ','));

            if (word.n == 0)
                continue;
            if (!ws_is_token(word))
                return NOT_WORDS;
            if (n == WS_PROTOCOLS_MAX)
                return "Sec-WebSocket-Protocol names more than 32";
            for (size_t k = 0; k < n; k++)
                if (str_eq(seen[k], word))
                    return "Sec-WebSocket-Protocol names one twice";
            seen[n++] = word;
        }
    }
    return is_there && n == 0 ? NOT_WORDS : NULL;
}

/* Skip spaces and tabs, and then c if it is there. */
static bool skip_blanks(struct str *s, char c)
{
    *s = str_trim(*s);
    if (s->n == 0 || s->p[0] != c)
        return false;
    *s = str_sub(*s, 1, s->n);
    return true;
}

static bool skip_token(struct str *s)
{
    size_t n;

    *s = str_trim(*s);
    n = span(*s, B_TOKEN);
    *s = str_sub(*s, n, s->n);
    return n > 0;
}

/* A token, or a quoted string whose content must be a token as well. */
static bool skip_param_value(struct str *s)
{
    size_t n = 0;

    if (!skip_blanks(s, '"'))
        return skip_token(s);
    for (; s->n && s->p[0] != '"'; n++) {
        if (s->p[0] == '\\')
            *s = str_sub(*s, 1, s->n);
        if (!ws_is_token(str_sub(*s, 0, 1)))
            return false;
        *s = str_sub(*s, 1, s->n);
    }
    return n > 0 && skip_blanks(s, '"');
}

/* "a; b; c=d; e="f", g": RFC 6455 §9.1 requires a connection to fail if its
 * list has another form, even if no extension is used. */
static bool extensions_are_valid(struct str s)
{
    do {
        if (!skip_token(&s))
            return false;
        while (skip_blanks(&s, ';'))
            if (!skip_token(&s) ||
                (skip_blanks(&s, '=') && !skip_param_value(&s)))
                return false;
    } while (skip_blanks(&s, ','));
    return s.n == 0;
}

/* Checks the request as a whole; NULL: it is valid. */
static const char *hello_check_request(const struct http_request *rq)
{
    if (!str_eq(rq->method, STR("GET")))
        return "a WebSocket begins with GET";
    if (rq->is_http_10)
        return "a WebSocket begins with HTTP/1.1";
    if (rq->body.n || hello_count_headers(rq, STR("transfer-encoding")))
        return "a request for a WebSocket has no body";
    if (!ws_is_asked(rq))
        return "the Upgrade header does not name websocket";
    if (!any_lists(rq, STR("connection"), STR("upgrade")))
        return "the Connection header does not name Upgrade";
    return NULL;
}

static const char *hello_check_key(const struct http_request *rq)
{
    size_t n = hello_count_headers(rq, STR("sec-websocket-key"));

    if (n != 1)
        return n ? "there are two Sec-WebSocket-Key headers"
                 : "the Sec-WebSocket-Key header is missing";
    if (!ws_key_is_valid(http_header(rq, STR("sec-websocket-key"))))
        return "Sec-WebSocket-Key is not 16 bytes in base64";
    return NULL;
}

static const char *hello_check_extensions(const struct http_request *rq)
{
    for (size_t i = 0; i < rq->n_headers; i++)
        if (str_eq_nocase(rq->headers[i].name,
                          STR("sec-websocket-extensions")) &&
            !extensions_are_valid(rq->headers[i].value))
            return "Sec-WebSocket-Extensions is not a list of extensions";
    return NULL;
}

/* Checked after the request as such and before the rest, which another version
 * may write in another way. */
static enum err hello_check_version(const struct http_request *rq,
                                    struct why *why)
{
    size_t n = hello_count_headers(rq, STR("sec-websocket-version"));

    if (n == 0)
        return why_err(why, ERR_BAD_REQUEST,
                       "the Sec-WebSocket-Version header is missing");
    if (n > 1)
        return why_err(why, ERR_BAD_REQUEST,
                       "there are two Sec-WebSocket-Version headers");
    if (!str_eq(http_header(rq, STR("sec-websocket-version")), STR("13")))
        return why_err(why, ERR_UPGRADE,
                       "the version of WebSocket spoken here is 13");
    return OK;
}

enum err ws_hello_read(const struct http_request *rq, struct ws_hello *out,
                       struct why *why)
{
    struct ws_hello hello = {.protocols = {NULL, 0}};
    const char *what = hello_check_request(rq);
    enum err e;

    *out = hello;
    if (what)
        return why_err(why, ERR_BAD_REQUEST, "%s", what);
    e = hello_check_version(rq, why);
    if (e)
        return e;
    what = hello_check_key(rq);
    if (!what)
        what = hello_check_extensions(rq);
    if (!what)
        what = read_protocols(rq, &hello.protocols);
    if (what)
        return why_err(why, ERR_BAD_REQUEST, "%s", what);
    e = ws_accept_of(http_header(rq, STR("sec-websocket-key")).p, hello.accept);
    if (e)
        return why_err(why, e, "SHA-1 is not to be had");
    *out = hello;
    return OK;
}
