/* The connection to the hub, as a machine that one step at a time brings from
 * down to open, and back when anything breaks:
 *
 *     DOWN -> CONNECTING -> SECURING -> ASKED -> OPEN -> CLOSING
 *       ^ pause                (wss)                         |
 *       '------------------------- lost <--------------------'
 *
 * A pause doubles with each failure in a row and is somewhere between half of
 * it and all of it, so that a thousand agents whose server was restarted do
 * not come back in the same instant. Being registered ends the row, not being
 * connected: a hub that takes connections and drops them is left alone too.
 *
 * A side that hears nothing for a third of the heartbeat sends a ping; nothing
 * at all for a whole one, and the connection is taken for dead. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fault.h"
#include "client/c/internal.h"

enum { READ_MOST = 256 * 1024, SHRINK_BYTES = 64 * 1024 };

void sbc_link_init(struct sbc *s)
{
    s->link = (struct sbc_link){0};
    sbc_pipe_init(&s->link.pipe);
    s->link.masks_at = sizeof(s->link.masks);
}

static void forget_addresses(struct sbc_link *l)
{
    if (l->addrs)
        freeaddrinfo(l->addrs);
    l->addrs = l->addr = NULL;
}

void sbc_link_fini(struct sbc *s)
{
    forget_addresses(&s->link);
    sbc_pipe_fini(&s->link.pipe);
}

int sbc_pause_ms(unsigned n_failures, uint32_t chance)
{
    int64_t most = SBC_PAUSE_MS;

    for (unsigned i = 1; i < n_failures && most < SBC_PAUSE_MAX_MS; i++)
        most *= 2;
    if (most > SBC_PAUSE_MAX_MS)
        most = SBC_PAUSE_MAX_MS;
    return (int)(most / 2 + chance % (most / 2 + 1));
}

static uint32_t chance(void)
{
    uint32_t n = 0;

    if (RAND_bytes((unsigned char *)&n, sizeof(n)) != 1)
        n = (uint32_t)sbc_now_ms();
    return n;
}

/* Whatever it was, it is over; the next try comes after a pause. */
void sbc_link_lose(struct sbc *s, const char *why)
{
    struct sbc_link *l = &s->link;
    bool was_open = l->state == LINK_OPEN;
    int pause;

    sbc_pipe_fini(&l->pipe);
    forget_addresses(l);
    l->state = LINK_DOWN;
    l->is_watched = false;
    l->n_failures += l->n_failures < 1000;
    pause = sbc_pause_ms(l->n_failures, chance());
    l->at_ms = sbc_now_ms() + pause;
    if (s->fatal == SBC_OK) {
        sbc_err_of(s, SBC_OFFLINE, "%s %.*s: %s",
                   was_open ? "lost the connection to" : "cannot reach",
                   STR_ARG(s->url.authority), why);
        sbc_set_code(s, "unreachable");
        sbc_say_log(s, "%s; trying again in %d.%d s", s->why, pause / 1000,
                    pause % 1000 / 100);
    }
    if (was_open)
        sbc_on_lost(s);
}

static void lose_for_good(struct sbc *s, enum sbc_err e, const char *code,
                          const char *why)
{
    s->fatal = e;
    sbc_err_of(s, e, "%s", why);
    sbc_set_code(s, code);
    sbc_tasks_cancel_all(s);
    sbc_say_log(s, "%s", why);
    sbc_link_lose(s, why);
}

/* Connecting. */

static bool watch(struct sbc *s, uint32_t events)
{
    struct sbc_link *l = &s->link;
    struct epoll_event e = {.events = events, .data.fd = l->pipe.fd};
    int how = l->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    if (l->is_watched && l->watched == events)
        return true;
    if (FAULT("sbc.epoll") || epoll_ctl(s->poll_fd, how, l->pipe.fd, &e) != 0)
        return false;
    l->is_watched = true;
    l->watched = events;
    return true;
}

static int start_socket(const struct addrinfo *a)
{
    int one = 1;
    int fd = FAULT("sbc.socket")
                 ? -1
                 : socket(a->ai_family,
                          a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                          a->ai_protocol);

    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (FAULT("sbc.connect") ||
        (connect(fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS)) {
        int e = errno;
        close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

/* The next address that can be tried at all. */
static void connect_next(struct sbc *s)
{
    struct sbc_link *l = &s->link;

    for (; l->addr; l->addr = l->addr->ai_next) {
        sbc_pipe_fini(&l->pipe);
        l->is_watched = false;
        l->pipe.fd = start_socket(l->addr);
        if (l->pipe.fd < 0)
            continue;
        if (!watch(s, EPOLLIN | EPOLLOUT))
            break;
        l->state = LINK_CONNECTING;
        l->at_ms = sbc_now_ms() + SBC_REACH_MS;
        return;
    }
    sbc_link_lose(s, l->addr ? "no memory" : strerror(errno));
}

static void begin(struct sbc *s)
{
    struct sbc_link *l = &s->link;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV};
    int e = FAULT("sbc.lookup")
                ? EAI_MEMORY
                : getaddrinfo(s->host, s->port, &hints, &l->addrs);

    if (e != 0) {
        l->addrs = NULL;
        sbc_link_lose(s, gai_strerror(e));
        return;
    }
    l->addr = l->addrs;
    connect_next(s);
}

static bool make_key(struct sbc_link *l)
{
    unsigned char raw[16];

    if (FAULT("sbc.random") || RAND_bytes(raw, sizeof(raw)) != 1)
        return false;
    return EVP_EncodeBlock((unsigned char *)l->key, raw, sizeof(raw)) ==
           WS_KEY_BYTES;
}

/* The request that makes it a WebSocket. */
static void ask(struct sbc *s)
{
    struct sbc_link *l = &s->link;
    char bearer[1024];
    int n = snprintf(bearer, sizeof(bearer), "Bearer %.*s", STR_ARG(s->token));
    struct http_header header = {.name = STR("Authorization"),
                                 .value = {bearer, (size_t)n}};
    struct ws_ask ask = {.host = s->url.authority,
                         .target = s->target,
                         .protocol = STR("signalbox"),
                         .headers = &header,
                         .n_headers = s->token.n ? 1 : 0};

    l->state = LINK_ASKED;
    if (!make_key(l)) {
        sbc_link_lose(s, "no randomness");
        return;
    }
    ask.key = str_of(l->key);
    if (ws_ask_write(&l->pipe.out, &ask) != OK)
        sbc_link_lose(s, "no memory");
}

static void on_connected(struct sbc *s)
{
    struct sbc_link *l = &s->link;
    int e = 0;
    socklen_t n = sizeof(e);

    if (getsockopt(l->pipe.fd, SOL_SOCKET, SO_ERROR, &e, &n) != 0 || e != 0) {
        errno = e;
        l->addr = l->addr->ai_next;
        connect_next(s);
        return;
    }
    forget_addresses(l);
    if (!s->url.is_tls) {
        l->pipe.is_ready = true;
        ask(s);
        return;
    }
    l->state = LINK_SECURING;
    if (!sbc_pipe_secure(&l->pipe, s->tls, s->host,
                         s->url.is_v6 ||
                             strspn(s->host, "0123456789.") == strlen(s->host)))
        sbc_link_lose(s, "no memory");
}

/* Reading. */

static void on_refused(struct sbc *s, const struct ws_answer *a)
{
    char why[SBC_WHY_BYTES / 2];

    if (a->status == 401 || a->status == 403) {
        if (!s->token.n)
            snprintf(why, sizeof(why),
                     "the hub wants a token: set SIGNALBOX_TOKEN");
        else if (!sbc_refusal_read(buf_str(&s->link.pipe.in), why, sizeof(why)))
            snprintf(why, sizeof(why),
                     "the hub does not take this token (HTTP status %d)",
                     a->status);
        lose_for_good(s, SBC_REFUSED,
                      a->status == 401 ? "unauthenticated" : "not_allowed",
                      why);
        return;
    }
    if (a->status)
        snprintf(why, sizeof(why), "no hub there: HTTP status %d", a->status);
    else
        snprintf(why, sizeof(why), "no hub there: %s", a->what);
    sbc_link_lose(s, why);
}

/* What came so far: more is waited for, unless none can come. */
static void read_answer(struct sbc *s, bool is_there)
{
    struct sbc_link *l = &s->link;
    struct ws_answer a = {0};

    switch ((int)ws_answer_read(buf_str(&l->pipe.in), str_of(l->key),
                                STR("signalbox"), SBC_ANSWER_HEAD_MAX, &a)) {
    case WS_MORE: return;
    case WS_MESSAGE: break;
    default:
        if (!is_there || !a.status ||
            sbc_refusal_is_whole(buf_str(&l->pipe.in)))
            on_refused(s, &a);
        return;
    }
    buf_drop(&l->pipe.in, a.used);
    l->state = LINK_OPEN;
    l->parse = (struct ws_parse){.is_client = true};
    l->seen_ms = sbc_now_ms();
    l->is_pinged = false;
    if (!s->card)
        sbc_say_log(s, "connected");
    sbc_on_open(s);
}

static bool send_frame(struct sbc *s, uint8_t opcode, struct str payload)
{
    struct sbc_link *l = &s->link;
    struct buf *out = &l->pipe.out;

    if (l->masks_at + 4 > sizeof(l->masks)) {
        if (FAULT("sbc.random") || RAND_bytes(l->masks, sizeof(l->masks)) != 1)
            return false;
        l->masks_at = 0;
    }
    ws_write(out, opcode, payload, l->masks + l->masks_at);
    l->masks_at += 4;
    if (!out->over)
        return true;
    out->over = false;
    return false;
}

bool sbc_link_send(struct sbc *s, struct str message)
{
    return s->link.state == LINK_OPEN && send_frame(s, WS_TEXT, message);
}

static void on_close(struct sbc *s, const struct ws_event *e)
{
    char why[WS_REASON_BYTES + 64];

    snprintf(why, sizeof(why), "the hub has closed it: %u %.*s", e->code,
             STR_ARG(e->payload));
    if (e->code == SBC_CLOSE_TAKEN_OVER) {
        lose_for_good(s, SBC_TAKEN_OVER, "taken_over",
                      "another connection is this agent now");
        return;
    }
    /* It would be the same again. */
    if (e->code == WS_TOO_LARGE && !sbc_tasks_give_up_largest(s))
        sbc_asks_give_up_largest(s);
    sbc_link_lose(s, why);
}

/* One thing that came; false when there is nothing whole left. */
static bool read_frame(struct sbc *s)
{
    static const struct ws_limits limits = {.max_frame_bytes = SBC_MESSAGE_MAX,
                                            .max_message_bytes =
                                                SBC_MESSAGE_MAX};
    struct sbc_link *l = &s->link;
    struct ws_event e;

    switch (ws_parse(&l->parse, &limits, l->pipe.in.p, &l->pipe.in.n, &e)) {
    case WS_MESSAGE:
        if (!sbc_on_message(s, e.payload) && l->state >= LINK_OPEN)
            sbc_link_lose(s, "no memory, or a message that makes no sense");
        break;
    case WS_PING:
        if (!send_frame(s, WS_OP_PONG, e.payload)) {
            sbc_link_lose(s, "no memory");
            return false;
        }
        break;
    case WS_CLOSE: on_close(s, &e); return false;
    case WS_BAD: sbc_link_lose(s, l->parse.what); return false;
    case WS_PONG: break;
    case WS_MORE: return false;
    }
    /* A message may have ended it, for good: a card that was refused. */
    if (l->state < LINK_OPEN)
        return false;
    buf_drop(&l->pipe.in, e.used);
    return true;
}

/* Undelivered news has a limit; a larger one while a caller waits
 * for something behind it. */
static bool is_reading(const struct sbc *s)
{
    bool is_waited_for = s->is_in_handler || !list_is_empty(&s->waits);

    return s->inbox_bytes <
           (size_t)(is_waited_for ? SBC_KEPT_MAX : SBC_INBOX_MARK);
}

static void read_on(struct sbc *s)
{
    struct sbc_link *l = &s->link;
    const char *why = "";
    bool is_there = sbc_pipe_read(&l->pipe, READ_MOST, &why);

    l->seen_ms = sbc_now_ms();
    l->is_pinged = false;
    if (l->state == LINK_SECURING && l->pipe.is_ready)
        ask(s);
    if (l->state == LINK_ASKED)
        read_answer(s, is_there);
    while (l->state >= LINK_OPEN && read_frame(s))
        ;
    if (!is_there && l->state != LINK_DOWN)
        sbc_link_lose(s, why);
    if (l->pipe.in.n == 0 && l->pipe.in.cap > SHRINK_BYTES)
        buf_fini(&l->pipe.in);
}

void sbc_link_ready(struct sbc *s, uint32_t events)
{
    if (s->link.state == LINK_DOWN)
        return;
    if (s->link.state == LINK_CONNECTING)
        on_connected(s);
    else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        read_on(s);
}

void sbc_link_flush(struct sbc *s)
{
    struct sbc_link *l = &s->link;
    const char *why = "";
    uint32_t events = is_reading(s) ? EPOLLIN : 0;

    if (l->state < LINK_SECURING)
        return;
    if (!sbc_pipe_write(&l->pipe, &why)) {
        /* What it said last may say why. */
        if (l->state >= LINK_OPEN)
            read_on(s);
        if (l->state != LINK_DOWN)
            sbc_link_lose(s, why);
        return;
    }
    if (sbc_pipe_wants_write(&l->pipe))
        events |= EPOLLOUT;
    if (!watch(s, events))
        sbc_link_lose(s, "no memory");
}

/* Time. */

static int64_t tick_open(struct sbc *s, int64_t now_ms)
{
    struct sbc_link *l = &s->link;
    int64_t silent = now_ms - l->seen_ms;

    /* Who does not read cannot complain of silence. */
    if (!is_reading(s))
        return s->heartbeat_ms;
    if (silent >= s->heartbeat_ms) {
        sbc_link_lose(s, "nothing was heard of the hub for too long");
        return 0;
    }
    if (silent >= s->heartbeat_ms / 3 && !l->is_pinged) {
        l->is_pinged = true;
        if (!send_frame(s, WS_OP_PING, STR(""))) {
            sbc_link_lose(s, "no memory");
            return 0;
        }
    }
    return (l->is_pinged ? s->heartbeat_ms : s->heartbeat_ms / 3) - silent;
}

int sbc_link_tick(struct sbc *s, int64_t now_ms)
{
    struct sbc_link *l = &s->link;
    int64_t left;

    if (l->state == LINK_DOWN && now_ms >= l->at_ms)
        begin(s);
    else if (l->state != LINK_DOWN && l->state != LINK_OPEN &&
             now_ms >= l->at_ms)
        sbc_link_lose(s, "it took too long");
    left = l->state == LINK_OPEN ? tick_open(s, now_ms) : l->at_ms - now_ms;
    return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

/* Say goodbye; what was written before goes out before it. */
void sbc_link_bye(struct sbc *s)
{
    struct sbc_link *l = &s->link;
    static const char normal[] = {WS_NORMAL >> 8, WS_NORMAL & 255, 0};

    if (l->state != LINK_OPEN ||
        !send_frame(s, WS_OP_CLOSE, (struct str){normal, 2}))
        return;
    l->state = LINK_CLOSING;
    l->at_ms = sbc_now_ms() + SBC_LINGER_MS;
}
