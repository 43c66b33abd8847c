/* A connection as WebSocket: bytes to messages, and back.
 *
 * Frames are parsed and unmasked where they were read, in the buffer that all
 * connections share, and messages are handed over from there: a message that
 * came in one piece is never copied. Only incomplete or postponed bytes are
 * kept in the connection's input. A turn takes a few hundred frames of each
 * connection; while some are left over nothing more is read from it. The same
 * holds while its owner has paused it, and while the peer does not read.
 *
 * Silence needs no timer of its own: every read moves the one deadline of the
 * connection further away, which conn.c does for free. When it passes we ping,
 * and when it passes again the connection ends.
 *
 * Nothing is called from inside the owner's calls. They only mark, and the end
 * of the turn acts, even if memory runs out in one of them, so that on_end
 * comes once for every WebSocket.
 *
 * A pong replaces an earlier unsent one of the same turn: a flood of pings
 * gets one answer a turn. Bytes that were offered to TLS once must be offered
 * again unchanged. */
#include "net/server/internal.h"

#include <assert.h>

enum {
    FRAME_ROOM_BYTES = WS_HEAD_BYTES + WS_CONTROL_BYTES,
    ACCEPT_ROOM_BYTES = 200, /* the answer to a handshake, except names */
};

static bool is_speaking(const struct conn *c)
{
    return (c->state == CONN_WS || c->state == CONN_WS_BYE) && !c->is_lost;
}

/* Whether the rest of this turn is for other connections. While all buffers
 * are full leftover input cannot be kept, so more of a read is processed; not
 * all of it, as each frame may then cause a write. */
static bool had_its_frames(const struct conn *c)
{
    return conn_has_taken(c, net_is_full(c->net) ? FRAMES_WHEN_FULL
                                                 : FRAMES_PER_TURN);
}

/* Whether messages may be handed over now. */
static bool ws_may_deliver(const struct conn *c)
{
    return c->state == CONN_WS_BYE ||
           (c->state == CONN_WS && !c->ws.n_pauses && !conn_must_read_first(c));
}

static bool takes_frames(const struct conn *c)
{
    return ws_may_deliver(c) && !c->is_lost && !had_its_frames(c);
}

/* Sets the deadline for silence. */
static void move_to_ws(struct conn *c)
{
    conn_move(c, CONN_WS, c->net->opts.ws_timeout_ms / 3);
}

/* Each read restarts it. */
static void await_bytes(struct conn *c)
{
    c->ws.is_pinged = false;
    move_to_ws(c);
}

static void ws_set_reading(struct conn *c)
{
    bool on = is_speaking(c) && ws_may_deliver(c) && !c->ws.has_rest;

    if (on && !c->is_reading && c->state == CONN_WS)
        await_bytes(c); /* the pause was ours */
    if (c->state != CONN_CLOSED)
        conn_set_reading(c, on);
}

/* Frames out. */

/* NULL on the side that does not mask. The kernel's randomness is
 * unpredictable, and a pool of it makes a mask cost next to nothing. */
static const uint8_t *next_mask(struct conn *c)
{
    struct net *n = c->net;
    const uint8_t *mask;

    if (!c->is_dialled)
        return NULL;
    if (n->masks_at + 4 > MASK_POOL_BYTES) {
        struct rand r = rand_system();

        r.fill(r.ctx, n->masks, MASK_POOL_BYTES);
        n->masks_at = 0;
    }
    mask = n->masks + n->masks_at;
    n->masks_at += 4;
    return mask;
}

/* Memory is gone inside an owner's call. */
static void ws_lose(struct conn *c)
{
    log_warn(c->net->log, "net.no_memory", LOG_C("peer", c->peer));
    conn_lose(c, CUT_NOMEM);
}

static bool put_frame(struct conn *c, uint8_t opcode, struct str payload)
{
    if (!conn_reserve(c, payload.n + WS_HEAD_BYTES)) {
        ws_lose(c);
        return false;
    }
    ws_write(&c->out, opcode, payload, next_mask(c));
    conn_kick(c);
    return true;
}

static bool put_close(struct conn *c, uint16_t code, struct str reason)
{
    if (!conn_reserve(c, FRAME_ROOM_BYTES))
        return false;
    ws_write_close(&c->out, code, reason, next_mask(c));
    conn_kick(c);
    return true;
}

static void put_pong(struct conn *c, struct str payload)
{
    struct ws_side *w = &c->ws;

    if (w->pong_bytes && w->pong_write == c->n_writes &&
        c->out.n == w->pong_at + w->pong_bytes)
        c->out.n = w->pong_at;
    w->pong_at = (uint32_t)c->out.n; /* at most OUT_BYTES */
    w->pong_write = c->n_writes;
    w->pong_bytes = 0;
    if (put_frame(c, WS_OP_PONG, payload))
        w->pong_bytes = (uint8_t)(c->out.n - w->pong_at);
}

/* The end. */

static void ws_report_end(struct conn *c, uint64_t id, enum net_ws_cause cause,
                          const struct net_ws_end *end)
{
    struct net *n = c->net;

    n->stats.websockets--;
    n->stats.ws_ends_total[cause]++;
    log_debug(n->log, "net.ws_end", LOG_C("peer", c->peer),
              LOG_I("code", end->code), LOG_I("ours", end->is_ours));
    c->ws.handler->on_end(c->ws.ctx, id, end);
}

/* End it after its output was sent. */
static void ws_end_gently(struct conn *c, enum net_ws_cause cause,
                          const struct net_ws_end *end)
{
    uint64_t id = c->id;

    c->id = 0;
    conn_drain(c);
    ws_report_end(c, id, cause, end);
}

static void end_at_once(struct conn *c, enum net_ws_cause cause,
                        const struct net_ws_end *end)
{
    uint64_t id = c->id;

    c->id = 0;
    conn_cut(c);
    ws_report_end(c, id, cause, end);
}

/* The peer broke a rule. No second close frame is sent after ours. */
static void ws_end_with(struct conn *c, enum net_ws_cause cause, uint16_t code,
                        struct str what)
{
    struct net_ws_end end = {.code = code, .reason = what, .is_ours = true};

    if (c->state == CONN_WS_BYE)
        end.code = WS_NO_CLOSE;
    else if (!put_close(c, code, what))
        log_warn(c->net->log, "net.no_memory", LOG_C("peer", c->peer));
    ws_end_gently(c, cause, &end);
}

/* Both sides have sent a close frame. The answer to a close has its code and
 * no reason. */
static void ws_take_close(struct conn *c, const struct ws_event *ev)
{
    struct net_ws_end end = {.code = ev->code, .reason = ev->payload};

    if (c->state == CONN_WS_BYE) {
        end.is_ours = true;
        ws_end_gently(c, NET_WS_OWNER, &end);
        return;
    }
    if (!put_close(c, ev->code, STR("")))
        log_warn(c->net->log, "net.no_memory", LOG_C("peer", c->peer));
    ws_end_gently(c, NET_WS_PEER, &end);
}

/* Frames in. */

/* After our close frame only the peer's counts. */
static void ws_take_event(struct conn *c, enum ws_step step,
                          const struct ws_event *ev)
{
    if (step == WS_CLOSE) {
        ws_take_close(c, ev);
    } else if (c->state == CONN_WS_BYE) {
        return;
    } else if (step == WS_MESSAGE) {
        c->net->stats.ws_messages_in_total++;
        c->ws.handler->on_message(c->ws.ctx, c->id, ev->kind, ev->payload);
    } else if (step == WS_PING) {
        put_pong(c, ev->payload);
    }
}

/* Take frames off the front of p until none is complete or no more are wanted.
 * Returns the bytes used; *n shrinks as heads are removed. */
static size_t take_frames(struct conn *c, char *p, size_t *n)
{
    const struct net_opts *o = &c->net->opts;
    const struct ws_limits limits = {o->ws_max_frame_bytes,
                                     o->ws_max_message_bytes};
    const struct ws_parse *parse = &c->ws.parse;
    size_t used = 0;

    while (used < *n && takes_frames(c)) {
        size_t rest = *n - used;
        struct ws_event ev;
        enum ws_step step =
            ws_parse(&c->ws.parse, &limits, p + used, &rest, &ev);

        *n = used + rest;
        if (step == WS_MORE) {
            c->ws.has_rest = false;
            return used;
        }
        if (step == WS_BAD) {
            ws_end_with(c,
                        parse->code == WS_TOO_LARGE ? NET_WS_LIMIT : NET_WS_BAD,
                        parse->code, str_of(parse->what));
            break;
        }
        conn_note_taken(c);
        ws_take_event(c, step, &ev);
        used += ev.used;
        /* While all buffers are full, no more output may gather behind unread
         * output. A peer that reads may go on. */
        if (net_is_full(c->net))
            conn_flush(c);
    }
    c->ws.has_rest = used < *n;
    return used;
}

static void ws_take_input(struct conn *c)
{
    size_t n = c->in.n;
    size_t used = take_frames(c, c->in.p, &n);

    c->in.n = n;
    if (is_speaking(c))
        conn_drop_input(c, used);
}

/* A frame that was begun stays accepted when the limit is lowered. */
static size_t ws_max_input(const struct conn *c)
{
    const struct ws_parse *p = &c->ws.parse;
    size_t limit = READ_BYTES + FRAME_ROOM_BYTES + WS_HEAD_BYTES;
    size_t message = c->net->opts.ws_max_message_bytes;

    if (p->is_in_frame && p->message_bytes + p->frame_left > message)
        message = p->message_bytes + (size_t)p->frame_left;
    if (__builtin_add_overflow(limit, message, &limit))
        limit = SIZE_MAX / 2;
    return limit;
}

/* Input of c is kept only if there is room. */
static void ws_check_room(struct conn *c)
{
    if (!is_speaking(c) || c->in.n == 0 || !net_is_full(c->net))
        return;
    c->net->stats.overloaded_total++;
    ws_end_with(c, NET_WS_OVERLOADED, WS_TRY_LATER,
                net_is_short(c->net)
                    ? STR("the server has too little memory left")
                    : STR("the buffers hold more than http.maxBufferedBytes"));
}

static void ws_bytes(struct conn *c, char *p, size_t n)
{
    bool was_empty = c->in.n == 0;
    size_t used = 0;

    if (c->state == CONN_WS)
        await_bytes(c);
    if (was_empty)
        used = take_frames(c, p, &n);
    if (!is_speaking(c))
        return;
    if (used < n && !conn_keep_input(c, p + used, n - used)) {
        ws_end_with(c, NET_WS_OVERLOADED, WS_TRY_LATER, STR("memory is gone"));
        return;
    }
    if (!was_empty)
        ws_take_input(c);
    ws_check_room(c);
    if (!is_speaking(c))
        return;
    if (c->ws.has_rest)
        conn_kick(c);
    ws_set_reading(c);
}

static void ws_end_of_input(struct conn *c)
{
    struct net_ws_end end = {
        .code = WS_NO_CLOSE,
        .reason = STR("it left without a close"),
        .is_ours = c->state == CONN_WS_BYE,
    };

    end_at_once(c, end.is_ours ? NET_WS_OWNER : NET_WS_LOST, &end);
}

/* Earlier input comes first: ws_turn ends it then. */
static void ws_eof(struct conn *c)
{
    if (!c->ws.has_rest)
        ws_end_of_input(c);
}

static void ws_turn(struct conn *c)
{
    if (c->ws.has_rest && takes_frames(c)) {
        ws_take_input(c);
        ws_check_room(c);
    }
    if (is_speaking(c) && c->has_eof)
        ws_eof(c);
}

static void ws_sent(struct conn *c)
{
    c->ws.pong_bytes = 0;
    if (c->state == CONN_WS && conn_gives_room(c) && c->ws.handler->on_room)
        c->ws.handler->on_room(c->ws.ctx, c->id);
    if (c->ws.has_rest && takes_frames(c))
        conn_kick(c);
    else if (c->ws.has_rest && ws_may_deliver(c))
        conn_kick_next_turn(c);
    ws_set_reading(c);
}

static void ws_timeout(struct conn *c)
{
    const struct net_opts *o = &c->net->opts;
    const struct net_ws_end unanswered = {
        .code = WS_NO_CLOSE,
        .reason = STR("no close came within ws.closeTimeoutMs"),
        .is_ours = true,
    };

    if (c->state == CONN_WS_BYE) {
        c->net->stats.timeouts_total++;
        end_at_once(c, NET_WS_OWNER, &unanswered);
    } else if (c->ws.is_pinged && c->is_reading) {
        c->net->stats.timeouts_total++;
        ws_end_with(c, NET_WS_SILENT, WS_POLICY,
                    STR("nothing came for ws.timeoutMs"));
    } else {
        /* A peer that is not read from cannot answer; the ping keeps
         * middleboxes from forgetting the connection. */
        if (!conn_must_read_first(c) && put_frame(c, WS_OP_PING, STR("")))
            c->net->stats.ws_pings_total++;
        c->ws.is_pinged = c->is_reading;
        conn_move(c, CONN_WS, o->ws_timeout_ms - o->ws_timeout_ms / 3);
    }
}

static void ws_gone(struct conn *c, uint64_t id, enum conn_cut why)
{
    static const struct {
        enum net_ws_cause cause;
        const char *words;
    } of[] = {
        [CUT_GONE] = {NET_WS_LOST, "the connection was lost"},
        [CUT_SLOW] = {NET_WS_SLOW, "it took nothing for http.writeTimeoutMs"},
        [CUT_STOP] = {NET_WS_OWNER, "the server stopped"},
        [CUT_GIVEN_UP] = {NET_WS_OWNER, "it was given up"},
        [CUT_NOMEM] = {NET_WS_OVERLOADED, "memory is gone"},
    };
    struct net_ws_end end = {
        .code = WS_NO_CLOSE,
        .reason = str_of(of[why].words),
        .is_ours = why != CUT_GONE || c->ws.has_said_bye,
    };

    if (id)
        ws_report_end(c, id, c->ws.has_said_bye ? NET_WS_OWNER : of[why].cause,
                      &end);
}

const struct speech ws_speech = {
    .open = NULL, /* it was HTTP before */
    .bytes = ws_bytes,
    .eof = ws_eof,
    .turn = ws_turn,
    .sent = ws_sent,
    .timeout = ws_timeout,
    .gone = ws_gone,
    .max_input = ws_max_input,
};

/* Calls of the owner. */

bool ws_begin(struct conn *c, const struct net_ws_handler *handler, void *ctx)
{
    move_to_ws(c);
    if (c->state == CONN_CLOSED)
        return false;
    c->speech = &ws_speech;
    c->ws = (struct ws_side){
        .parse = {.is_client = c->is_dialled},
        .handler = handler,
        .ctx = ctx,
        .has_rest = c->in.n > 0,
    };
    c->net->stats.websockets++;
    c->net->stats.websockets_total++;
    conn_kick(c);
    return true;
}

/* "HTTP/1.1 101", with one of the protocols that the client offered. */
static bool put_accept(struct conn *c, const struct ws_hello *hello,
                       struct str protocol)
{
    if (!conn_reserve(c, ACCEPT_ROOM_BYTES + protocol.n))
        return false;
    buf_add_str(&c->out, STR("HTTP/1.1 101 Switching Protocols\r\n"
                             "Upgrade: websocket\r\n"
                             "Connection: Upgrade\r\n"
                             "Sec-WebSocket-Accept: "));
    buf_add(&c->out, hello->accept, WS_ACCEPT_BYTES);
    if (protocol.n) {
        buf_add_str(&c->out, STR("\r\nSec-WebSocket-Protocol: "));
        buf_add_str(&c->out, protocol);
    }
    buf_add_str(&c->out, STR("\r\n\r\n"));
    c->net->stats.replies_total[1]++;
    return true;
}

/* Whether c cannot become one; then it has been refused. */
static bool ws_refuse_accept(struct conn *c)
{
    if (c->net->is_stopping)
        serve_refuse(c, ERR_STOPPING, STR(""));
    else if (c->discarded_bytes)
        serve_refuse(c, ERR_OVERLOADED,
                     STR("its buffers hold more than http.maxBufferedBytes"));
    else
        return false;
    return true;
}

enum err net_ws_accept(struct net *n, uint64_t id, const struct ws_hello *hello,
                       struct str protocol,
                       const struct net_ws_handler *handler, void *ctx)
{
    struct conn *c = net_find(n, id);

    if (!c)
        return ERR_GONE;
    assert(c->state == CONN_OPEN && !c->is_head);
    if (ws_refuse_accept(c))
        return ERR_GONE;
    c->id = 0; /* later failures are reported by the return value */
    buf_fini(&c->also);
    if (!put_accept(c, hello, protocol)) {
        log_warn(n->log, "net.no_memory", LOG_C("peer", c->peer));
        conn_cut(c);
        return ERR_GONE;
    }
    if (!ws_begin(c, handler, ctx))
        return ERR_GONE;
    c->id = id;
    return OK;
}

enum err net_ws_send(struct net *n, uint64_t id, enum ws_kind kind,
                     struct str bytes)
{
    struct conn *c = net_find(n, id);

    if (!c || c->state != CONN_WS || c->is_lost)
        return ERR_GONE;
    if (conn_must_read_first(c)) {
        c->wants_room = true;
        return ERR_BUSY;
    }
    if (!put_frame(c, (uint8_t)kind, bytes))
        return ERR_GONE;
    n->stats.ws_messages_out_total++;
    return OK;
}

void net_ws_pause(struct net *n, uint64_t id, bool is_paused)
{
    struct conn *c = net_find(n, id);

    if (!c || c->state != CONN_WS)
        return;
    assert(is_paused ? c->ws.n_pauses < UINT16_MAX : c->ws.n_pauses > 0);
    c->ws.n_pauses = (uint16_t)(c->ws.n_pauses + (is_paused ? 1 : -1));
    conn_kick(c); /* it continues reading, or not */
}

void ws_say_close(struct conn *c, uint16_t code, struct str reason)
{
    assert(c->state == CONN_WS && ws_code_may_be_sent(code));
    if (c->is_lost)
        return;
    if (!put_close(c, code, reason)) {
        ws_lose(c);
        return;
    }
    c->wants_room = false;
    c->ws.has_said_bye = true;
    conn_move(c, CONN_WS_BYE, c->net->opts.ws_close_timeout_ms);
    conn_kick(c);
}

void net_ws_close(struct net *n, uint64_t id, uint16_t code, struct str reason)
{
    struct conn *c = net_find(n, id);

    if (c && c->is_dialled && c->ws.dial)
        conn_lose(c, CUT_GIVEN_UP);
    else if (c && c->state == CONN_WS)
        ws_say_close(c, code, reason);
}
