/* The client's side of the opening handshake: the request, and whether the
 * server agreed to it and nothing else.
 *
 * An answer is read from its first byte in every call, line by line, with the
 * reader of request headers. It is small and comes once in the life of a
 * connection. As everywhere in net, the result depends on the bytes and not on
 * where a read ended. */
#include <assert.h>

#include "net/server/ws_internal.h"

/* Headers that affect the framing, or belong to the handshake. */
static bool header_is_reserved(struct str name)
{
    static const struct str ours[] = {
        STR("connection"),
        STR("host"),
        STR("upgrade"),
        STR("keep-alive"),
        STR("content-length"),
        STR("transfer-encoding"),
        STR("te"),
        STR("trailer"),
        STR("expect"),
        STR("proxy-connection"),
    };
    struct str prefix = STR("sec-websocket-");

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (str_eq_nocase(name, ours[i]))
            return true;
    return str_eq_nocase(str_sub(name, 0, prefix.n), prefix);
}

static bool ask_is_safe(const struct ws_ask *ask)
{
    if (!http_host_is_valid(ask->host) || !ws_key_is_valid(ask->key))
        return false;
    if (ask->target.n == 0 || ask->target.p[0] != '/' ||
        !is_all(ask->target, B_TARGET))
        return false;
    if (ask->protocol.n && !ws_is_token(ask->protocol))
        return false;
    for (size_t i = 0; i < ask->n_headers; i++)
        if (!ws_is_token(ask->headers[i].name) ||
            header_is_reserved(ask->headers[i].name) ||
            str_has_control(ask->headers[i].value))
            return false;
    return true;
}

static void ask_add_header(struct buf *out, struct str name, struct str value)
{
    buf_add_str(out, name);
    buf_add_str(out, STR(": "));
    buf_add_str(out, value);
    buf_add_str(out, STR("\r\n"));
}

enum err ws_ask_write(struct buf *out, const struct ws_ask *ask)
{
    size_t before = out->n;

    if (!ask_is_safe(ask))
        return ERR_USAGE;
    buf_add_str(out, STR("GET "));
    buf_add_str(out, ask->target);
    buf_add_str(out, STR(" HTTP/1.1\r\n"));
    ask_add_header(out, STR("Host"), ask->host);
    ask_add_header(out, STR("Upgrade"), STR("websocket"));
    ask_add_header(out, STR("Connection"), STR("Upgrade"));
    ask_add_header(out, STR("Sec-WebSocket-Version"), STR("13"));
    ask_add_header(out, STR("Sec-WebSocket-Key"), ask->key);
    if (ask->protocol.n)
        ask_add_header(out, STR("Sec-WebSocket-Protocol"), ask->protocol);
    for (size_t i = 0; i < ask->n_headers; i++)
        ask_add_header(out, ask->headers[i].name, ask->headers[i].value);
    buf_add_str(out, STR("\r\n"));
    if (!out->over)
        return OK;
    out->n = before;
    return ERR_LIMIT;
}

/* The facts of an answer, until it is checked. */
struct reading {
    struct str key, asked_protocol;
    struct head head; /* from the reader of headers */
    struct str upgrade, accept, protocol;
    bool has_upgrade, has_accept, has_protocol;
    bool says_upgrade; /* in Connection */
    struct ws_answer *out;
};

static enum ws_step answer_reject(struct ws_answer *out, const char *what)
{
    *out = (struct ws_answer){.status = out->status, .what = what};
    return WS_BAD;
}

/* "HTTP/1.1 101 Switching Protocols" */
static enum ws_step answer_read_status(struct ws_answer *out, struct str line)
{
    const char *p = line.p;
    bool is_11 = str_starts(line, STR("HTTP/1.1 "));
    int status = 0;

    if (!is_11 && !str_starts(line, STR("HTTP/1.0 ")))
        return answer_reject(out, "the answer does not begin with HTTP/1.1");
    for (size_t i = 9; i < 12 && i < line.n; i++)
        status =
            p[i] >= '0' && p[i] <= '9' ? status * 10 + (p[i] - '0') : -1000;
    if (line.n < 13 || status < 100 || p[12] != ' ' ||
        !is_all(str_sub(line, 13, line.n), B_VALUE))
        return answer_reject(out, "the status line is malformed");
    if (status != 101) {
        out->status = status;
        return answer_reject(out, "the server did not agree to a WebSocket");
    }
    if (!is_11)
        return answer_reject(out, "the answer is HTTP/1.0");
    return WS_MESSAGE;
}

static bool answer_keep_once(struct str value, struct str *to, bool *has)
{
    bool is_first = !*has;

    *to = value;
    *has = true;
    return is_first;
}

/* The error in one header of the answer; NULL: none. */
static const char *answer_note_header(struct reading *r,
                                      const struct http_header *hd)
{
    if (str_eq_nocase(hd->name, STR("connection")))
        r->says_upgrade |= ws_list_has(hd->value, STR("upgrade"));
    else if (str_eq_nocase(hd->name, STR("upgrade")))
        return answer_keep_once(hd->value, &r->upgrade, &r->has_upgrade)
                   ? NULL
                   : "there are two Upgrade headers";
    else if (str_eq_nocase(hd->name, STR("sec-websocket-accept")))
        return answer_keep_once(hd->value, &r->accept, &r->has_accept)
                   ? NULL
                   : "there are two Sec-WebSocket-Accept headers";
    else if (str_eq_nocase(hd->name, STR("sec-websocket-protocol")))
        return answer_keep_once(hd->value, &r->protocol, &r->has_protocol)
                   ? NULL
                   : "there are two Sec-WebSocket-Protocol headers";
    else if (str_eq_nocase(hd->name, STR("sec-websocket-extensions")))
        return "the server agreed to an extension that was not requested";
    return NULL;
}

/* Checks all headers together; NULL: the server agreed. */
static const char *answer_check(const struct reading *r)
{
    char accept[WS_ACCEPT_BYTES + 1];

    if (!str_eq_nocase(r->upgrade, STR("websocket")))
        return "the Upgrade header does not say websocket";
    if (!r->says_upgrade)
        return "the Connection header does not name Upgrade";
    if (ws_accept_of(r->key.p, accept))
        return "SHA-1 is not to be had";
    if (!str_eq(r->accept, (struct str){accept, WS_ACCEPT_BYTES}))
        return "Sec-WebSocket-Accept is not the answer to our key";
    if (r->has_protocol && !r->asked_protocol.n)
        return "the server agreed to a protocol that was not requested";
    if (r->has_protocol && !str_eq(r->protocol, r->asked_protocol))
        return "the server agreed to another protocol than asked for";
    if (r->head.has_coding ||
        (r->head.has_length && !str_eq(r->head.length, STR("0"))))
        return "the answer has a body";
    return NULL;
}

/* The line at *at, which moves behind it. WS_MESSAGE: it is complete. */
static enum ws_step answer_next_line(struct str bytes, size_t max_bytes,
                                     size_t *at, struct str *line,
                                     struct ws_answer *out)
{
    size_t room = *at < max_bytes ? max_bytes - *at : 0;

    switch (cut_line(str_sub(bytes, *at, bytes.n), room, line)) {
    case LINE_MORE: return WS_MORE;
    case LINE_LONG:
        return answer_reject(out, "the answer is larger than allowed");
    case LINE_BAD: return answer_reject(out, HTTP_NO_CR);
    case LINE_WHOLE: break;
    }
    *at += line->n + 2;
    return WS_MESSAGE;
}

static enum ws_step read_header(struct reading *r, struct str line)
{
    struct http_parse words = {.phase = HTTP_HEAD};
    struct http_header hd;
    const char *what;

    if (http_read_header(&words, &r->head, line, &hd))
        return answer_reject(r->out, words.what);
    what = answer_note_header(r, &hd);
    return what ? answer_reject(r->out, what) : WS_MESSAGE;
}

enum ws_step ws_answer_read(struct str bytes, struct str key,
                            struct str asked_protocol, size_t max_bytes,
                            struct ws_answer *out)
{
    struct reading r = {.key = key, .asked_protocol = asked_protocol};
    struct str line;
    size_t at = 0;
    const char *what;
    enum ws_step step;

    assert(ws_key_is_valid(key));
    *out = (struct ws_answer){.status = 0};
    r.out = out;
    step = answer_next_line(bytes, max_bytes, &at, &line, out);
    if (step == WS_MESSAGE)
        step = answer_read_status(out, line);
    while (step == WS_MESSAGE) {
        step = answer_next_line(bytes, max_bytes, &at, &line, out);
        if (step == WS_MESSAGE && line.n == 0)
            break;
        if (step == WS_MESSAGE)
            step = read_header(&r, line);
    }
    if (step != WS_MESSAGE)
        return step;
    what = answer_check(&r);
    if (what)
        return answer_reject(out, what);
    *out = (struct ws_answer){.protocol = r.protocol, .used = at};
    return WS_MESSAGE;
}
