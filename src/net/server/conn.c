/* A connection as a pair of byte streams that may wait.
 *
 * Reading: all connections read into one buffer, because a read is processed
 * before the next begins. Only bytes that cannot be used at once are copied
 * into the connection's own buffer. So an idle connection owns no buffer at
 * all.
 *
 * Writing: output gathers until the end of the turn and then leaves in one
 * send. Bytes that the kernel does not take stay at the front of the same
 * buffer, new output gathers behind them, and poll reports when there is room.
 *
 * The socket is our own under a uv_poll. libuv's streams would read and write
 * through read() and write(): that costs a trip through the kernel's file
 * layer each, a second copy of the output queue, and a SIGPIPE for every
 * client that leaves early.
 *
 * Waiting: a connection has one timer, which rings early rather than being
 * moved. A deadline that moves further away, as with every request on a busy
 * connection, costs nothing; the timer rings once in a while, sees that
 * nothing is due and is set again. */
#include "net/server/internal.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"

enum { OUT_BYTES = 1 << 30 }; /* more in one write is our own mistake */

static int64_t after_ms(struct conn *c, int64_t delay_ms)
{
    int64_t at_ms;

    if (__builtin_add_overflow(loop_mono_ms(c->net->loop), delay_ms, &at_ms))
        return INT64_MAX;
    return at_ms;
}

static void conn_arm(struct conn *c)
{
    int64_t due_ms = c->deadline_ms;
    int64_t now_ms = loop_mono_ms(c->net->loop);

    if (c->is_blocked && c->write_deadline_ms < due_ms)
        due_ms = c->write_deadline_ms;
    if (due_ms == INT64_MAX || c->state == CONN_CLOSED ||
        (timer_is_set(&c->timer) && c->timer.at_ms <= due_ms))
        return;
    loop_timer_set(c->net->loop, &c->timer,
                   due_ms > now_ms ? due_ms - now_ms : 0);
}

void conn_move(struct conn *c, enum conn_state to, int64_t timeout_ms)
{
    assert(c->state != CONN_CLOSED);
    c->state = (uint8_t)to;
    evict_place(c);
    c->deadline_ms = after_ms(c, timeout_ms);
    conn_arm(c);
}

static void conn_free(struct conn *c)
{
    struct net *n = c->net;

    conn_drop_buffers(c);
    net_slot_give(n, c);
    n->n_conns--;
    n->n_away -= c->is_away;
    n->n_evicted -= c->is_evicted;
    share_give(&n->crowds, c->crowd);
    n->n_dialled -= c->is_dialled;
    free(c);
    listen_resume_all(n);
    net_check_stopped(n);
}

static void on_conn_closed(uv_handle_t *h)
{
    conn_free(LIST_OF(h, struct conn, poll));
}

/* For a connection that never had a socket. */
static void on_socketless_end(struct loop_job *job)
{
    conn_free(LIST_OF(job, struct conn, job));
}

static void close_socket(struct conn *c)
{
    if (c->fd < 0) {
        c->job.run = on_socketless_end;
        loop_at_end(c->net->loop, &c->job);
        return;
    }
    uv_close((uv_handle_t *)&c->poll, on_conn_closed);
    close(c->fd);
}

void conn_cut(struct conn *c)
{
    conn_cut_for(c, CUT_GONE);
}

void conn_cut_for(struct conn *c, enum conn_cut why)
{
    uint64_t id = c->id;

    if (c->state == CONN_CLOSED)
        return;
    if (c->is_lost)
        why = (enum conn_cut)c->lost_for;
    /* A connection that ends between two requests ends cleanly. In the middle
     * of a request or reply, the peer must see that it was cut. */
    if (c->tls && c->state == CONN_IDLE && conn_unsent_bytes(c) == 0)
        (void)tls_end(c);
    conn_move(c, CONN_CLOSED, INT64_MAX);
    c->id = 0;
    c->is_reading = false;
    loop_timer_cancel(c->net->loop, &c->timer);
    loop_not_at_end(&c->job);
    tls_free(c);
    conn_count(c);
    close_socket(c);
    c->speech->gone(c, id, why);
}

void conn_lose(struct conn *c, enum conn_cut why)
{
    if (c->is_lost)
        return;
    c->is_lost = true;
    c->lost_for = (uint8_t)why;
    conn_kick(c);
}

void conn_kick(struct conn *c)
{
    conn_count(c);
    if (c->state != CONN_CLOSED)
        loop_at_end(c->net->loop, &c->job);
}

void conn_kick_next_turn(struct conn *c)
{
    if (c->state != CONN_CLOSED)
        loop_next_turn(c->net->loop, &c->job);
}

bool conn_is_quiet(const struct conn *c)
{
    int n_unread = 0;

    return conn_unsent_bytes(c) == 0 && c->in.n == 0 && !c->has_left &&
           ioctl(c->fd, FIONREAD, &n_unread) == 0 && n_unread == 0;
}

void conn_drain(struct conn *c)
{
    /* The input stays: our caller may still be reading from it. Later input is
     * read and dropped, or a client that writes before it reads would never
     * get to our last bytes. */
    conn_move(c, CONN_DRAIN, INT64_MAX);
    conn_set_reading(c, true);
    conn_kick(c);
}

static void on_socket_ready(uv_poll_t *h, int status, int events);

/* Poll only for events that can be handled: an ignored event would be reported
 * again and again. */
static void conn_watch(struct conn *c)
{
    int events = (c->is_reading && !c->must_write ? UV_READABLE : 0) |
                 (c->is_blocked ? UV_WRITABLE : 0);

    if (c->state == CONN_TLS)
        events = c->must_write ? UV_WRITABLE : UV_READABLE;
    if (c->state == CONN_CLOSED || events == c->watched)
        return;
    c->watched = events;
    if (!events)
        uv_poll_stop(&c->poll);
    else if (FAULT("net.watch") ||
             uv_poll_start(&c->poll, events, on_socket_ready) != 0)
        conn_cut(c);
}

void conn_set_reading(struct conn *c, bool on)
{
    c->is_reading = on && !c->has_eof;
    conn_watch(c);
    /* The socket does not report bytes that TLS has already read. */
    if (c->is_reading && c->has_left)
        conn_kick_next_turn(c);
}

static void on_eof(struct conn *c)
{
    c->has_eof = true;
    conn_set_reading(c, false);
    if (c->state == CONN_LINGER)
        conn_cut(c);
    else if (c->state != CONN_DRAIN && c->state != CONN_CLOSED)
        c->speech->eof(c);
}

/* Not an error: nothing to read or no room to write for now. */
static bool is_not_now(int error)
{
    return error == EAGAIN || error == EINTR;
}

/* The only place that changes it. The deadline continues as long as bytes are
 * unsent. */
static void conn_set_blocked(struct conn *c, bool is_blocked)
{
    c->is_blocked = is_blocked;
    if (!is_blocked && conn_unsent_bytes(c) == 0)
        c->write_deadline_ms = INT64_MAX;
    else if (is_blocked && c->write_deadline_ms == INT64_MAX)
        c->write_deadline_ms = after_ms(c, c->net->opts.write_timeout_ms);
}

/* Wait until the kernel has room. */
static void conn_block(struct conn *c)
{
    conn_set_blocked(c, true);
    conn_watch(c);
    if (c->state != CONN_CLOSED)
        conn_arm(c);
}

/* While lingering, input is dropped, so TLS need not decrypt it. */
static ssize_t conn_receive(struct conn *c)
{
    ssize_t n;

    if (c->tls && c->state != CONN_LINGER)
        return tls_recv(c, c->net->read_buf, READ_BYTES);
    n = recv(c->fd, c->net->read_buf, READ_BYTES, MSG_DONTWAIT);
    if (n > 0)
        c->net->stats.bytes_in_total += n;
    return n;
}

static void conn_read(struct conn *c)
{
    ssize_t n = conn_receive(c);

    if (FAULT("net.read")) {
        n = -1;
        errno = ECONNRESET;
    }
    if (n < 0) {
        if (!is_not_now(errno))
            conn_cut(c);
        else if (c->must_write)
            conn_block(c);
        return;
    }
    if (n == 0) {
        on_eof(c);
        return;
    }
    if (c->state != CONN_DRAIN && c->state != CONN_LINGER) {
        c->speech->bytes(c, c->net->read_buf, (size_t)n);
    } else {
        /* After the last reply input is read and dropped, so that the peer is
         * not reset while it reads. */
        c->discarded_bytes += (size_t)n;
        if (c->discarded_bytes > LINGER_BYTES)
            conn_cut(c);
    }
    if (c->must_write && c->state != CONN_CLOSED)
        conn_block(c);
    if (c->has_left && c->is_reading)
        conn_kick_next_turn(c);
}

/* One step of TLS's handshake. */
static void conn_shake(struct conn *c)
{
    enum tls_step step = tls_shake(c);

    c->must_write = step == TLS_WANT_WRITE;
    switch (step) {
    case TLS_WANT_READ:
    case TLS_WANT_WRITE: conn_watch(c); break;
    case TLS_FAILED: conn_cut(c); break;
    case TLS_DONE:
        c->speech->open(c);
        if (c->state != CONN_CLOSED)
            conn_set_reading(c, c->is_reading);
    }
}

/* Bytes that TLS has read before: once in a turn, like other reads. */
static void conn_read_left(struct conn *c)
{
    if (!c->has_left || !c->is_reading || c->state == CONN_CLOSED)
        return;
    if (c->left_turn == loop_turn_number(c->net->loop)) {
        conn_kick_next_turn(c);
        return;
    }
    c->left_turn = loop_turn_number(c->net->loop);
    conn_read(c);
}

static void on_events(struct conn *c, int events)
{
    bool reads = events & UV_READABLE;

    if (events & UV_WRITABLE) {
        /* New input may be in TLS already, and the socket does not report
         * that. */
        c->has_left |= c->must_write;
        reads |= c->must_write;
        c->must_write = false;
        conn_set_blocked(c, false);
        conn_kick(c);
        /* A wait without unsent bytes is not seen by conn_flush_output. */
        if (conn_unsent_bytes(c) == 0)
            conn_watch(c);
    }
    if (reads && c->is_reading)
        conn_read(c);
}

/* Status is an error when the peer has reset the connection; a handshake has a
 * message for it. */
static void on_socket_ready(uv_poll_t *h, int status, int events)
{
    struct conn *c = LIST_OF(h, struct conn, poll);

    if (c->is_lost)
        return;
    if (c->state == CONN_TLS)
        conn_shake(c);
    else if (status >= 0)
        on_events(c, events);
    if (status < 0)
        conn_cut(c);
}

/* All of the last reply was sent: shut our side, and read on for a while. The
 * dialling side lets the other one close first: that one keeps the port in
 * TIME_WAIT. */
static void conn_linger(struct conn *c)
{
    enum tls_step said = c->tls ? tls_end(c) : TLS_DONE;

    if (said == TLS_WANT_WRITE) {
        conn_block(c);
        return;
    }
    if (said == TLS_FAILED || c->has_eof ||
        (!c->is_dialled &&
         (FAULT("net.shutdown") || shutdown(c->fd, SHUT_WR) != 0))) {
        conn_cut(c);
        return;
    }
    conn_drop_input(c, c->in.n);
    c->has_left = false;
    conn_move(c, CONN_LINGER,
              c->is_dialled ? c->net->opts.ws_close_timeout_ms : LINGER_MS);
    conn_set_reading(c, true);
}

static ssize_t conn_transmit(struct conn *c)
{
    const char *p = c->out.p + c->out_at;
    ssize_t n;

    if (c->tls)
        return tls_send(c, p, conn_unsent_bytes(c));
    n = send(c->fd, p, conn_unsent_bytes(c), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0)
        c->net->stats.bytes_out_total += n;
    return n;
}

static void conn_flush_output(struct conn *c)
{
    ssize_t n = conn_transmit(c);

    c->n_writes++;
    if (FAULT("net.write")) {
        n = -1;
        errno = EPIPE;
    }
    if (n < 0 && !is_not_now(errno)) {
        conn_cut(c);
        return;
    }
    if (n > 0) {
        conn_drop_output(c, (size_t)n);
        c->write_deadline_ms = INT64_MAX; /* it starts again */
    }
    if (conn_unsent_bytes(c) > 0 || c->must_write) {
        conn_block(c);
        return;
    }
    conn_set_blocked(c, false);
    conn_watch(c);
}

void conn_flush(struct conn *c)
{
    if (c->state != CONN_CLOSED && conn_unsent_bytes(c) && !c->is_blocked)
        conn_flush_output(c);
}

static void on_conn_turn(struct loop_job *job)
{
    struct conn *c = LIST_OF(job, struct conn, job);

    if (c->is_lost) {
        conn_cut_for(c, (enum conn_cut)c->lost_for);
        return;
    }
    if (c->state == CONN_TLS) {
        conn_shake(c);
        return;
    }
    conn_read_left(c);
    if (c->state == CONN_CLOSED)
        return;
    if (c->state != CONN_DRAIN && c->state != CONN_LINGER)
        c->speech->turn(c);
    conn_flush(c);
    if (c->state == CONN_CLOSED || c->state == CONN_LINGER || c->is_lost)
        return;
    if (c->state != CONN_DRAIN)
        c->speech->sent(c);
    else if (conn_unsent_bytes(c) == 0)
        conn_linger(c);
}

static void on_conn_timer(struct timer *t)
{
    struct conn *c = LIST_OF(t, struct conn, timer);
    int64_t now_ms = loop_mono_ms(c->net->loop);

    if (c->is_lost)
        return;
    /* Poll reported no room, but the kernel waits until a good part of its
     * buffer is free. A reader that takes a little is found by trying. */
    if (c->is_blocked && now_ms >= c->write_deadline_ms &&
        conn_unsent_bytes(c)) {
        conn_flush_output(c);
        conn_kick(c); /* resumes a sender that waits */
    }
    if (c->state == CONN_CLOSED)
        return;
    if (c->is_blocked && now_ms >= c->write_deadline_ms) {
        c->net->stats.timeouts_total++;
        conn_cut_for(c, CUT_SLOW);
        return;
    }
    if (now_ms >= c->deadline_ms) {
        if (c->state == CONN_TLS)
            tls_shake_timeout(c);
        if (c->state == CONN_TLS || c->state == CONN_LINGER)
            conn_cut(c);
        else
            c->speech->timeout(c);
    }
    if (c->state != CONN_CLOSED)
        conn_arm(c);
}

static struct conn *conn_alloc(struct net *n, const struct speech *speech)
{
    struct conn *c = FAULT("net.conn") ? NULL : calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->net = n;
    c->speech = speech;
    c->fd = -1;
    c->job.run = on_conn_turn;
    c->timer.fire = on_conn_timer;
    c->write_deadline_ms = INT64_MAX;
    c->room_turn = UINT64_MAX;
    buf_init(&c->in, 0); /* conn_keep_input sets the limit */
    buf_init(&c->out, OUT_BYTES);
    if (net_slot_take(n, c) != OK) {
        free(c);
        return NULL;
    }
    n->n_conns++;
    return c;
}

static bool conn_open_socket(struct conn *c, int fd, const char *peer)
{
    int one = 1;

    if (FAULT("net.open") ||
        uv_poll_init(&c->net->loop->uv, &c->poll, fd) != 0) {
        close(fd);
        return false;
    }
    c->fd = fd;
    memcpy(c->peer, peer, strnlen(peer, ADDR_TEXT_BYTES - 1));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return true;
}

struct conn *conn_new(struct net *n, int fd, const char *peer, bool is_away)
{
    struct conn *c = conn_alloc(n, &serve_speech);

    if (!c) {
        close(fd);
        return NULL;
    }
    if (!conn_open_socket(c, fd, peer)) {
        net_slot_give(n, c);
        n->n_conns--;
        free(c);
        return NULL;
    }
    c->is_away = is_away;
    n->n_away += is_away;
    conn_move(c, CONN_IDLE, n->opts.idle_timeout_ms);
    conn_set_reading(c, true);
    return c->state == CONN_CLOSED ? NULL : c;
}

struct conn *conn_new_dialled(struct net *n, const struct speech *speech,
                              int64_t timeout_ms)
{
    struct conn *c = conn_alloc(n, speech);

    if (!c)
        return NULL;
    c->is_dialled = true;
    n->n_dialled++;
    conn_move(c, CONN_DIAL, timeout_ms);
    return c->state == CONN_CLOSED ? NULL : c;
}

bool conn_connected(struct conn *c, int fd, const char *peer)
{
    if (!conn_open_socket(c, fd, peer))
        return false;
    conn_set_reading(c, true);
    return true;
}
