/* A connection as a sequence of requests, one open at a time.
 *
 * Bytes are parsed where they were read, and the request points there: a
 * request that came in one piece is never copied. The owner answers from
 * inside on_request or later. Nothing is called from inside its calls: a reply
 * only marks the connection, and the next pipelined request is taken by the
 * loop that is already running (take_requests) or at the end of the turn. A
 * turn takes only a few of each connection, so that a client that sends a
 * thousand at once does not delay the others.
 *
 * A client that half-closes is owed its reply. Its end of input only means
 * that no further request comes; whole requests before it are still
 * answered. */
#include "net/server/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

enum {
    HEAD_ROOM_BYTES = 320, /* status line and our own headers */
    CHUNK_ROOM_BYTES = 24, /* size in hex and two CRLF */
    ERROR_BODY_BYTES = 4096,
    WHAT_BYTES = 128, /* what is wrong, in words */
};

/* Whether the rest of this turn is for other connections. */
static bool had_its_requests(const struct conn *c)
{
    return conn_has_taken(c, REQUESTS_PER_TURN);
}

/* Whether input may be parsed. No new request is started for a client that
 * does not read earlier replies: requests are cheap for it, so less output may
 * gather than for a stream. */
static bool takes_input(const struct conn *c)
{
    return (c->state == CONN_IDLE && !conn_must_read_first(c) &&
            conn_unsent_bytes(c) <= UNREAD_BYTES && !had_its_requests(c)) ||
           c->state == CONN_HEAD || c->state == CONN_BODY;
}

/* Whether input behind the open request is ignored. */
static bool is_last(const struct conn *c)
{
    return c->id && !c->keeps_alive;
}

static void serve_set_reading(struct conn *c)
{
    size_t waiting = is_last(c) ? c->discarded_bytes : c->in.n;

    conn_set_reading(c, c->state == CONN_HEAD || c->state == CONN_BODY ||
                            c->state == CONN_DRAIN || waiting < PIPELINE_BYTES);
}

/* Replies. */

static struct str date_now(struct net *n)
{
    int64_t now_s = loop_wall_ms(n->loop) / 1000;

    if (now_s != n->date_s || !n->date[0]) {
        n->date_s = now_s;
        http_date(now_s, n->date);
    }
    return (struct str){n->date, HTTP_DATE_BYTES - 1};
}

static size_t head_room(const struct http_reply *r)
{
    size_t n = HEAD_ROOM_BYTES + r->content_type.n;

    for (size_t i = 0; i < r->n_headers; i++)
        n += r->headers[i].name.n + r->headers[i].value.n + 4;
    return n;
}

/* Reserve room for head and body in one step, then write the head. */
static bool put_head(struct conn *c, const struct http_reply *r,
                     struct http_framing f, size_t body_room)
{
    struct net *n = c->net;
    size_t n_left_out;

    if (!conn_reserve(c, head_room(r) + c->also.n + body_room))
        return false;
    f.also = buf_str(&c->also);
    f.date = date_now(n);
    f.connection =
        c->keeps_alive ? str_of(n->keep_alive) : STR("Connection: close\r\n");
    n_left_out = http_write_head(&c->out, r, &f);
    if (n_left_out)
        log_error(n->log, "net.header_left_out", LOG_I("status", r->status),
                  LOG_I("count", (int64_t)n_left_out));
    n->stats.replies_total[r->status / 100]++;
    return true;
}

/* The request has its reply; choose the next state. */
static void serve_finish_reply(struct conn *c)
{
    c->id = 0;
    buf_fini(&c->also);
    if (c->keeps_alive && !c->net->is_stopping)
        conn_move(c, CONN_IDLE, c->net->opts.idle_timeout_ms);
    else
        conn_drain(c);
    conn_kick(c);
}

/* Memory is gone in the middle of a reply: the connection is useless. The
 * owner learns it from the call it is in. */
static void serve_lose(struct conn *c)
{
    log_warn(c->net->log, "net.no_memory", LOG_C("peer", c->peer));
    c->id = 0;
    conn_cut(c);
}

/* There is no memory for a large reply. An error fits, and says more to the
 * client than a connection that is cut. */
static void refuse_large_reply(struct conn *c)
{
    c->out.over = false;
    serve_refuse(c, ERR_NOMEM, STR(""));
}

static void put_reply(struct conn *c, const struct http_reply *r)
{
    bool has_body = !c->is_head && !http_is_bodiless(r->status);

    if (!put_head(c, r, (struct http_framing){.how = HTTP_LENGTH},
                  has_body ? r->body.n : 0)) {
        if (has_body && r->body.n > ERROR_BODY_BYTES)
            refuse_large_reply(c);
        else
            serve_lose(c);
        return;
    }
    if (has_body)
        buf_add_str(&c->out, r->body);
    serve_finish_reply(c);
}

void net_reply_also(struct net *n, uint64_t id, const struct http_header *h,
                    size_t n_headers)
{
    struct conn *c = net_find(n, id);

    if (!c)
        return;
    assert(c->state == CONN_OPEN);
    buf_fini(&c->also);
    buf_init(&c->also, FAULT("net.also") ? 0 : NET_ALSO_BYTES);
    for (size_t i = 0; i < n_headers; i++)
        (void)http_write_header(&c->also, &h[i]);
    if (c->also.over) {
        log_warn(n->log, "net.header_left_out", LOG_C("peer", c->peer));
        buf_fini(&c->also);
    }
    conn_count(c);
}

/* Whether another request may follow the current one. After a refused Upgrade
 * none may: a proxy that mistakes the client's request for the server's
 * consent forwards later input without checking it. */
static bool serve_may_go_on(const struct conn *c)
{
    return c->keeps_alive && !c->net->is_stopping &&
           (!c->asks_upgrade || PLANTED("net.upgrade_goes_on"));
}

void net_reply(struct net *n, uint64_t id, const struct http_reply *r)
{
    struct conn *c = net_find(n, id);

    if (!c)
        return;
    assert(c->state == CONN_OPEN && r->status >= 200);
    c->keeps_alive = serve_may_go_on(c);
    put_reply(c, r);
}

/* Its body is in *body, which is initialized here. */
static struct http_reply serve_refusal(struct net *n, enum err e,
                                       struct str what, struct buf *body)
{
    static const struct http_header retry = {STR("Retry-After"), STR("1")};
    struct http_reply r = {.status = err_row(e)->http_status};

    buf_init(body, ERROR_BODY_BYTES);
    r.content_type = n->on.word_error(n->on.ctx, e, what, body);
    r.body = buf_str(body);
    if (r.status == 503) {
        r.headers = &retry;
        r.n_headers = 1;
    }
    return r;
}

void serve_refuse(struct conn *c, enum err e, struct str what)
{
    struct net *n = c->net;
    struct http_reply r;
    struct buf body;

    log_debug(n->log, "net.refused", LOG_C("peer", c->peer),
              LOG_C("code", err_row(e)->code), LOG_S("what", what));
    r = serve_refusal(n, e, what, &body);
    c->keeps_alive = false;
    put_reply(c, &r);
    buf_fini(&body);
}

static struct str full_message(struct net *n)
{
    return net_is_short(n)
               ? STR("it has too little memory left")
               : STR("its buffers hold more than http.maxBufferedBytes");
}

static struct str room_message(struct net *n, enum net_room why)
{
    switch (why) {
    case NET_NO_BUFFERS: return full_message(n);
    case NET_NO_ADDRESS:
        return STR("as many connections are open from this address as may be, "
                   "which is http.maxConnectionsPerAddress");
    case NET_ROOM:
    case NET_NO_CONNECTION:
    case N_NET_ROOMS: break;
    }
    return STR("as many connections are open as may be");
}

void serve_turn_away(struct conn *c)
{
    if (c->is_guest) {
        c->net->stats.refused_total++;
        c->net->stats.refused_by_total[c->away]++;
    }
    serve_refuse(c, ERR_OVERLOADED,
                 room_message(c->net, (enum net_room)c->away));
}

void serve_write_turned_away(struct net *n, enum net_room why, struct buf *out)
{
    struct buf body;
    struct http_reply r =
        serve_refusal(n, ERR_OVERLOADED, room_message(n, why), &body);

    http_write_head(
        out, &r,
        &(struct http_framing){.how = HTTP_LENGTH,
                               .date = date_now(n),
                               .connection = STR("Connection: close\r\n")});
    buf_add_str(out, r.body);
    n->stats.replies_total[r.status / 100]++;
    buf_fini(&body);
}

/* Streams. */

static void put_chunk(struct conn *c, struct str bytes)
{
    static const char hex[] = "0123456789abcdef";
    char size[16];
    size_t at = sizeof(size);

    if (c->is_http_10) {
        buf_add_str(&c->out, bytes);
        return;
    }
    for (size_t v = bytes.n; v; v >>= 4)
        size[--at] = hex[v & 15];
    buf_add(&c->out, size + at, sizeof(size) - at);
    buf_add_str(&c->out, STR("\r\n"));
    buf_add_str(&c->out, bytes);
    buf_add_str(&c->out, STR("\r\n"));
}

enum err net_stream_open(struct net *n, uint64_t id, const struct http_reply *r)
{
    struct conn *c = net_find(n, id);
    struct http_framing f = {.how = HTTP_CHUNKED};

    if (!c)
        return ERR_GONE;
    assert(c->state == CONN_OPEN && !http_is_bodiless(r->status));
    if (c->is_http_10)
        f.how = HTTP_UNTIL_CLOSE;
    c->keeps_alive = serve_may_go_on(c) && !c->is_http_10;
    if (!put_head(c, r, f, r->body.n + CHUNK_ROOM_BYTES)) {
        serve_lose(c);
        return ERR_GONE;
    }
    if (c->is_head) {
        serve_finish_reply(c);
        return ERR_GONE;
    }
    if (r->body.n)
        put_chunk(c, r->body);
    conn_move(c, CONN_STREAM, INT64_MAX);
    conn_kick(c);
    return OK;
}

enum err net_stream_send(struct net *n, uint64_t id, struct str bytes)
{
    struct conn *c = net_find(n, id);

    if (!c)
        return ERR_GONE;
    assert(c->state == CONN_STREAM);
    if (conn_must_read_first(c)) {
        c->wants_room = true;
        return ERR_BUSY;
    }
    if (bytes.n == 0)
        return OK; /* an empty chunk would end the stream */
    if (!conn_reserve(c, bytes.n + CHUNK_ROOM_BYTES)) {
        serve_lose(c);
        return ERR_GONE;
    }
    put_chunk(c, bytes);
    conn_kick(c);
    return OK;
}

void net_stream_end(struct net *n, uint64_t id)
{
    struct conn *c = net_find(n, id);

    if (!c)
        return;
    assert(c->state == CONN_STREAM);
    c->wants_room = false;
    if (!c->is_http_10) {
        if (!conn_reserve(c, CHUNK_ROOM_BYTES)) {
            serve_lose(c);
            return;
        }
        buf_add_str(&c->out, STR("0\r\n\r\n"));
    }
    serve_finish_reply(c);
}

/* Requests. */

/* The partial request ends here. */
static void refuse_read(struct conn *c, enum err e, struct str what)
{
    c->is_head = c->parse.is_head;
    serve_refuse(c, e, what);
}

static void refuse_bad(struct conn *c, enum err e, struct str what)
{
    c->net->stats.bad_requests_total++;
    refuse_read(c, e, what);
}

/* "the body is larger than http.maxBodyBytes (1048576)" */
static void refuse_parsed(struct conn *c)
{
    const struct http_parse *p = &c->parse;
    struct str what = str_of(p->what);
    char text[WHAT_BYTES];

    if (p->limit) {
        snprintf(text, sizeof(text), "%s (%zu)", p->what, p->limit);
        what = str_of(text);
    }
    refuse_bad(c, p->bad, what);
}

static enum http_step serve_parse(struct conn *c, char *p, size_t *n,
                                  struct http_request *rq)
{
    const struct net_opts *o = &c->net->opts;
    struct net *net = c->net;
    const struct http_limits limits = {
        .max_request_line_bytes = o->max_request_line_bytes,
        .max_header_bytes = o->max_header_bytes,
        .max_headers = o->max_headers,
        .max_body_bytes = o->max_body_bytes,
    };

    if (net->headers_cap < o->max_headers) {
        net->headers =
            mem_resize(net->headers, o->max_headers, sizeof(*net->headers));
        net->headers_cap = o->max_headers;
    }
    return http_parse(&c->parse, &limits, p, n, net->headers, rq);
}

/* `n` bytes of an incomplete request are here. */
static void await_rest(struct conn *c, size_t n)
{
    const struct net_opts *o = &c->net->opts;

    if (c->parse.phase == HTTP_HEAD) {
        /* An empty line alone starts nothing, and was removed. */
        if (c->state == CONN_IDLE && n)
            conn_move(c, CONN_HEAD, o->header_timeout_ms);
        return;
    }
    if (c->state == CONN_BODY)
        return;
    if (c->is_guest) {
        c->is_head = c->parse.is_head;
        serve_turn_away(c);
        return;
    }
    conn_move(c, CONN_BODY, o->body_timeout_ms);
    if (c->state == CONN_CLOSED || !c->parse.expects_continue ||
        n > c->parse.head_bytes || net_is_full(c->net))
        return;
    if (!conn_reserve(c, HEAD_ROOM_BYTES)) {
        serve_lose(c);
        return;
    }
    buf_add_str(&c->out, STR("HTTP/1.1 100 Continue\r\n\r\n"));
    c->net->stats.replies_total[1]++;
    conn_kick(c);
}

static void serve_hand_over(struct conn *c, struct http_request *rq)
{
    struct net *n = c->net;

    c->keeps_alive = c->parse.keeps_alive;
    c->is_head = c->parse.is_head;
    c->is_http_10 = c->parse.is_http_10;
    c->asks_upgrade = ws_is_asked(rq);
    c->parse = (struct http_parse){.phase = HTTP_HEAD};
    c->has_asked = true;
    if (c->is_guest) {
        c->keeps_alive = false;
        if (!n->on.is_vital(n->on.ctx, rq)) {
            serve_turn_away(c);
            return;
        }
    }
    n->unchecked_bytes += rq->body.n;
    if (rq->body.n && net_is_short(n)) {
        n->stats.overloaded_total++;
        serve_refuse(c, ERR_OVERLOADED, full_message(n));
        return;
    }
    conn_move(c, CONN_OPEN, n->opts.reply_timeout_ms);
    if (c->state == CONN_CLOSED)
        return;
    c->id = net_next_id(n, c);
    conn_note_taken(c);
    n->stats.requests_total++;
    rq->peer = str_of(c->peer);
    rq->peer_addr = c->peer_addr;
    rq->is_side = c->is_side;
    n->on.on_request(n->on.ctx, c->id, rq);
}

/* Take requests off the front of p until one stays open or is incomplete.
 * Returns the bytes used; *n shrinks with the framing of chunks. */
static size_t take_requests(struct conn *c, char *p, size_t *n)
{
    size_t used = 0;

    while (used < *n && takes_input(c)) {
        size_t rest = *n - used;
        struct http_request rq;
        enum http_step step = serve_parse(c, p + used, &rest, &rq);

        *n = used + rest;
        if (step == HTTP_MORE) {
            await_rest(c, rest);
            break;
        }
        if (step == HTTP_BAD) {
            refuse_parsed(c);
            break;
        }
        used += c->parse.head_bytes + c->parse.body_bytes;
        serve_hand_over(c, &rq);
        if (c->state == CONN_IDLE && net_is_full(c->net))
            conn_flush(c); /* a client that reads may go on */
    }
    return used;
}

static void serve_take_input(struct conn *c)
{
    size_t n = c->in.n;
    size_t used = take_requests(c, c->in.p, &n);

    c->in.n = n;
    if (c->state != CONN_CLOSED)
        conn_drop_input(c, used);
}

static void serve_open(struct conn *c)
{
    conn_move(c, CONN_IDLE,
              c->is_guest ? c->net->opts.header_timeout_ms
                          : c->net->opts.idle_timeout_ms);
    if (c->state == CONN_CLOSED)
        return;
    if (c->is_plain)
        refuse_bad(c, ERR_BAD_REQUEST,
                   STR("this port speaks TLS: use https://"));
    else if (c->is_away && !c->is_guest)
        serve_turn_away(c);
}

/* The client sends no more. */
static void serve_end_of_input(struct conn *c)
{
    if (c->state == CONN_HEAD || c->state == CONN_BODY)
        refuse_bad(c, ERR_BAD_REQUEST, STR("it ends in the middle"));
    else if (c->state == CONN_IDLE && c->in.n == 0)
        conn_drain(c);
}

static void forget_input(struct conn *c, size_t n_more)
{
    c->discarded_bytes += c->in.n + n_more;
    conn_drop_input(c, c->in.n);
}

/* Bytes came that must be kept. If there is no room for them, earlier ones are
 * dropped too. */
static void serve_make_room(struct conn *c)
{
    if (c->in.n == 0 || !net_is_full(c->net) || c->state == CONN_CLOSED ||
        c->state == CONN_DRAIN)
        return;
    if (c->id) {
        c->keeps_alive = false;
    } else {
        c->net->stats.overloaded_total++;
        refuse_read(c, ERR_OVERLOADED, full_message(c->net));
    }
    if (c->state != CONN_CLOSED)
        forget_input(c, 0);
}

static void serve_bytes(struct conn *c, char *p, size_t n)
{
    size_t used = 0;

    if (c->in.n == 0 && takes_input(c))
        used = take_requests(c, p, &n);
    if (c->state == CONN_CLOSED || c->state == CONN_DRAIN)
        return;
    if (c->speech != &serve_speech) {
        c->speech->bytes(c, p + used, n - used);
        return;
    }
    if (is_last(c)) {
        forget_input(c, n - used);
        serve_set_reading(c);
        return;
    }
    if (used < n && !conn_keep_input(c, p + used, n - used)) {
        if (c->id)
            conn_cut(c);
        else
            refuse_bad(c, ERR_NOMEM, STR(""));
        return;
    }
    if (c->in.n > n - used && takes_input(c))
        serve_take_input(c);
    if (c->speech != &serve_speech)
        return; /* its own turn looks at the input */
    serve_make_room(c);
    serve_set_reading(c);
}

static void serve_eof(struct conn *c)
{
    serve_end_of_input(c);
}

static void serve_turn(struct conn *c)
{
    if (c->in.n && takes_input(c))
        serve_take_input(c);
    if (c->speech != &serve_speech)
        return;
    if (c->state != CONN_CLOSED && c->has_eof)
        serve_end_of_input(c);
    serve_set_reading(c);
}

static void serve_sent(struct conn *c)
{
    struct net *n = c->net;

    if (c->state == CONN_STREAM && conn_gives_room(c)) {
        if (n->on.on_room)
            n->on.on_room(n->on.ctx, c->id);
    } else if (c->state == CONN_IDLE && c->in.n && takes_input(c)) {
        conn_kick(c);
    } else if (c->state == CONN_IDLE && c->in.n && had_its_requests(c)) {
        conn_kick_next_turn(c);
    }
}

static void serve_timeout(struct conn *c)
{
    struct net *n = c->net;
    uint64_t id = c->id;

    if (c->state == CONN_IDLE && conn_unsent_bytes(c)) {
        /* Not idle but slow: the write timeout decides. */
        conn_move(c, CONN_IDLE, n->opts.idle_timeout_ms);
        return;
    }
    if (c->state == CONN_IDLE && c->is_guest) {
        serve_turn_away(c);
        return;
    }
    if (c->state == CONN_IDLE) {
        n->stats.idle_closed_total++;
        conn_cut(c);
        return;
    }
    n->stats.timeouts_total++;
    if (c->state != CONN_OPEN) {
        refuse_read(c, ERR_TIMEOUT,
                    c->state == CONN_HEAD
                        ? STR("the headers took longer than "
                              "http.headerTimeoutMs")
                        : STR("the body took longer than http.bodyTimeoutMs"));
        return;
    }
    c->id = 0;
    n->on.on_gone(n->on.ctx, id);
    serve_refuse(c, ERR_NO_REPLY,
                 STR("it took longer than http.replyTimeoutMs"));
}

static void serve_gone(struct conn *c, uint64_t id, enum conn_cut why)
{
    (void)why;
    if (id)
        c->net->on.on_gone(c->net->on.ctx, id);
}

/* The input of a request at all limits, including trailers, and one more
 * read. */
static size_t serve_max_input(const struct conn *c)
{
    const struct net_opts *o = &c->net->opts;
    size_t limit = PIPELINE_BYTES + READ_BYTES + HTTP_CHUNK_LINE_BYTES + 8;

    if (__builtin_add_overflow(limit, o->max_request_line_bytes, &limit) ||
        __builtin_add_overflow(limit, o->max_header_bytes, &limit) ||
        __builtin_add_overflow(limit, o->max_header_bytes, &limit) ||
        __builtin_add_overflow(limit, o->max_body_bytes, &limit))
        limit = SIZE_MAX / 2;
    return limit;
}

const struct speech serve_speech = {
    .open = serve_open,
    .bytes = serve_bytes,
    .eof = serve_eof,
    .turn = serve_turn,
    .sent = serve_sent,
    .timeout = serve_timeout,
    .gone = serve_gone,
    .max_input = serve_max_input,
};
