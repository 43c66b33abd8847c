/* Many WebSockets at once that do anything: send in odd pieces, fragment,
 * ping, say goodbye, break the protocol, stop reading, reset, wait too long;
 * some are dialled by the server itself. An owner that echoes, pauses, says
 * goodbye or does nothing; now and then a fault. The same seed is the same
 * storm.
 *
 * Whatever happens: a WebSocket ends exactly once and is told nothing after
 * that, nothing comes from a paused one, echoes reach a client whole and in
 * the order of what it sent, and when the storm is over everybody has gone. */
#include "net/server/internal.h"
#include "test/lib/ws_stage.h"

enum { CLIENTS = 8, STEPS = 2000, STORMS = 60, OPEN_MAX = 256 };

struct client {
    int fd; /* -1: not there */
    bool has_asked;
    int n_said, n_heard;
    char todo[16384]; /* what it still wants to say */
    size_t n_todo;
    char heard[70000]; /* what it did not understand yet */
    size_t n_in;
    bool is_welcome; /* the answer to its hello is behind it */
};

struct open_ws {
    uint64_t id;
    int n_pauses;
    bool is_dialled, is_open;
};

struct storm {
    struct stage s;
    struct rand_seeded seed;
    struct rand rand;
    struct client clients[CLIENTS];
    struct open_ws open[OPEN_MAX];
    int n_open;
};

static long n_echoes; /* of all storms: they were not calm */

static unsigned roll(struct storm *st, unsigned n)
{
    return (unsigned)(rand_u64(st->rand) % n);
}

static struct open_ws *find_open(struct storm *st, uint64_t id)
{
    for (int i = 0; i < st->n_open; i++)
        if (st->open[i].id == id)
            return &st->open[i];
    return NULL;
}

/* The owner. */

static void storm_open(void *ctx, uint64_t id, struct str protocol)
{
    struct open_ws *o = find_open(ctx, id);

    CHECK(o && o->is_dialled && !o->is_open && protocol.n == 0);
    o->is_open = true;
}

static void pause_it(struct storm *st, struct open_ws *o, bool on)
{
    o->n_pauses += on ? 1 : -1;
    net_ws_pause(st->s.net, o->id, on);
}

static void storm_message(void *ctx, uint64_t id, enum ws_kind kind,
                          struct str bytes)
{
    struct storm *st = ctx;
    struct open_ws *o = find_open(st, id);
    enum err e = OK;

    CHECK(o && o->is_open && o->n_pauses == 0);
    if (!o->is_dialled && roll(st, 8)) /* no echoes of echoes */
        e = net_ws_send(st->s.net, id, kind, bytes);
    CHECK(e == OK || e == ERR_BUSY || e == ERR_GONE);
    if (roll(st, 12) == 0)
        pause_it(st, o, true);
    if (roll(st, 40) == 0)
        net_ws_close(st->s.net, id, WS_NORMAL, STR("enough"));
}

static void storm_room(void *ctx, uint64_t id)
{
    CHECK(find_open(ctx, id));
}

static void storm_end(void *ctx, uint64_t id, const struct net_ws_end *end)
{
    struct storm *st = ctx;
    struct open_ws *o = find_open(st, id);

    CHECK(o && (end->e == OK) == o->is_open);
    *o = st->open[--st->n_open];
}

static const struct net_ws_handler storm_handler = {
    .on_open = storm_open,
    .on_message = storm_message,
    .on_room = storm_room,
    .on_end = storm_end,
};

static void storm_request(void *ctx, uint64_t id, const struct http_request *rq)
{
    struct storm *st = ctx;
    struct ws_hello hello;

    CHECK(ws_is_asked(rq) && st->n_open < OPEN_MAX);
    if (ws_hello_read(rq, &hello, NULL) != OK) {
        CHECK(fault_fired());
        net_reply(st->s.net, id, &(struct http_reply){.status = 500});
        return;
    }
    if (net_ws_accept(st->s.net, id, &hello, STR(""), &storm_handler, st) == OK)
        st->open[st->n_open++] = (struct open_ws){.id = id, .is_open = true};
}

static void storm_gone(void *ctx, uint64_t id)
{
    (void)ctx;
    (void)id;
    CHECK(fault_fired()); /* in the middle of the one call that answers */
}

static void storm_dial(struct storm *st)
{
    char url[64];
    struct net_dial d = {.timeout_ms = 1000};
    uint64_t id;

    snprintf(url, sizeof(url), "ws://127.0.0.1:%u/ws", st->s.port);
    d.url = str_of(url);
    if (net_ws_dial(st->s.net, &d, &storm_handler, st, &id, NULL) == OK)
        st->open[st->n_open++] = (struct open_ws){.id = id, .is_dialled = true};
}

static void owner_acts(struct storm *st)
{
    static char bytes[20000];
    struct open_ws *o;
    enum err e;

    if (st->n_open < 20 && roll(st, 20) == 0)
        storm_dial(st);
    if (st->n_open == 0)
        return;
    o = &st->open[roll(st, (unsigned)st->n_open)];
    switch (roll(st, 60)) {
    case 0: net_ws_close(st->s.net, o->id, 4000, STR("owner")); break;
    case 1 ... 8:
        if (o->is_open)
            pause_it(st, o, true);
        break;
    case 9 ... 40:
        if (o->n_pauses)
            pause_it(st, o, false);
        break;
    default:
        memset(bytes, '.', sizeof(bytes));
        e = net_ws_send(st->s.net, o->id, WS_BINARY,
                        (struct str){bytes, roll(st, sizeof(bytes))});
        CHECK(e == OK || e == ERR_BUSY || e == ERR_GONE);
    }
}

/* The clients. */

static void hang_up(struct client *c, bool hard)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    if (hard)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(c->fd);
    *c = (struct client){.fd = -1};
}

static void say_later(struct client *c, const char *p, size_t n)
{
    if (c->n_todo + n > sizeof(c->todo))
        return;
    memcpy(c->todo + c->n_todo, p, n);
    c->n_todo += n;
}

/* "[k]" and dots, whole or in fragments with a ping between. */
static void add_message(struct storm *st, struct client *c, struct buf *b)
{
    char text[3000];
    int n = snprintf(text, sizeof(text), "[%d]", c->n_said++);
    size_t most = roll(st, 4) ? 100 : sizeof(text);
    size_t all = (size_t)n + roll(st, (unsigned)(most - (size_t)n));

    memset(text + n, '.', all - (size_t)n);
    if (roll(st, 3)) {
        frame_add(b, 0x81, (struct str){text, all});
        return;
    }
    frame_add(b, 0x01, (struct str){text, 1});
    if (roll(st, 2))
        frame_add(b, 0x89, STR("ping"));
    frame_add(b, 0x00, (struct str){text + 1, 1});
    frame_add(b, 0x80, (struct str){text + 2, all - 2});
}

static void want_more(struct storm *st, struct client *c)
{
    struct buf b;

    if (!c->has_asked) {
        c->has_asked = true;
        say_later(c, HELLO("/ws"), sizeof(HELLO("/ws")) - 1);
        return;
    }
    buf_init(&b, sizeof(c->todo));
    CHECK(buf_reserve(&b, 8192)); /* one step a fault may hit */
    switch (roll(st, 100)) {
    case 0: frame_add(&b, 0x88, STR("\x03\xe8")); break;
    case 1: frame_add(&b, 0xf1, STR("reserved")); break;
    case 2: frame_add(&b, 0x8a, STR("pong")); break;
    case 3 ... 8: frame_add(&b, 0x89, STR("ping")); break;
    default: add_message(st, c, &b); break;
    }
    say_later(c, b.p, b.n);
    buf_fini(&b);
}

static void say_some(struct storm *st, struct client *c)
{
    size_t n = c->n_todo ? 1 + roll(st, (unsigned)c->n_todo) : 0;
    ssize_t sent = n ? send(c->fd, c->todo, n, MSG_NOSIGNAL) : 0;

    if (sent <= 0)
        return;
    c->n_todo -= (size_t)sent;
    memmove(c->todo, c->todo + sent, c->n_todo);
}

/* Frames as a server writes them: whole, not masked. */
static size_t understand_one(struct client *c, const char *p, size_t n)
{
    const unsigned char *b = (const unsigned char *)p;
    size_t head = 2, len;
    long v;

    if (n < 2)
        return 0;
    CHECK(b[0] & 0x80 && b[1] < 127);
    len = b[1];
    if (len == 126) {
        head = 4;
        if (n < 4)
            return 0;
        len = (size_t)b[2] << 8 | b[3];
    }
    if (n < head + len)
        return 0;
    if (b[0] == 0x81) {
        CHECK(len > 2 && p[head] == '[');
        v = strtol(p + head + 1, NULL, 10);
        CHECK(v >= c->n_heard && v < c->n_said);
        c->n_heard = (int)v + 1;
        n_echoes++;
    }
    return head + len;
}

static void hear_some(struct storm *st, struct client *c)
{
    size_t room = sizeof(c->heard) - 1 - c->n_in, at = 0, used;
    size_t want = 1 + roll(st, (unsigned)room);
    ssize_t n = recv(c->fd, c->heard + c->n_in, want, 0);

    if (n <= 0) {
        if (n == 0 || errno != EAGAIN)
            hang_up(c, false);
        return;
    }
    c->n_in += (size_t)n;
    c->heard[c->n_in] = 0;
    if (!c->is_welcome) {
        const char *end = strstr(c->heard, "\r\n\r\n");

        if (!end)
            return;
        c->is_welcome = strncmp(c->heard, "HTTP/1.1 101 ", 13) == 0;
        if (!c->is_welcome) {
            hang_up(c, false); /* turned away, or a fault */
            return;
        }
        at = (size_t)(end + 4 - c->heard);
    }
    while ((used = understand_one(c, c->heard + at, c->n_in - at)))
        at += used;
    c->n_in -= at;
    memmove(c->heard, c->heard + at, c->n_in);
}

static void client_acts(struct storm *st, struct client *c)
{
    if (c->fd < 0) {
        *c = (struct client){.fd = dial_small(&st->s, roll(st, 2) ? 4096 : 0)};
        return;
    }
    switch (roll(st, 300)) {
    case 0: hang_up(c, roll(st, 2)); break;
    case 1: shutdown(c->fd, SHUT_WR); break;
    case 2 ... 100: want_more(st, c); break;
    case 101 ... 200: say_some(st, c); break;
    default: hear_some(st, c); break;
    }
}

static void time_passes(struct storm *st)
{
    static const int64_t steps_ms[] = {1, 10, 100, 500, 1500, 6000};

    later(&st->s, steps_ms[roll(st, roll(st, 4) ? 4 : 6)]);
}

static void storm_init(struct storm *st, uint64_t seed)
{
    struct net_opts opts = test_opts();

    *st = (struct storm){.seed = {seed}};
    opts.max_connections = 24;
    opts.ws_max_frame_bytes = opts.ws_max_message_bytes = 20000;
    if (seed % 2)
        opts.max_buffered_bytes = 30000; /* every other one is often full */
    stage_init(&st->s, opts);
    st->s.net->on = (struct net_handler){
        .ctx = st,
        .on_request = storm_request,
        .on_gone = storm_gone,
        .word_error = stage_word,
    };
    st->rand = rand_seeded(&st->seed);
    for (int i = 0; i < CLIENTS; i++)
        st->clients[i].fd = -1;
}

static void calm(struct storm *st)
{
    for (int i = 0; i < CLIENTS; i++)
        if (st->clients[i].fd >= 0)
            hang_up(&st->clients[i], false);
    for (int i = 0; i < 3; i++) { /* some come in only now */
        later(&st->s, 100);
        for (int k = 0; k < st->n_open; k++)
            net_ws_close(st->s.net, st->open[k].id, WS_NORMAL, STR(""));
    }
    later(&st->s, 10000);
    later(&st->s, 10000);
    UNTIL(&st->s, net_stats(st->s.net).connections == 0);
    CHECK(st->n_open == 0 && net_stats(st->s.net).websockets == 0);
    CHECK(net_stats(st->s.net).buffered_bytes == 0);
    st->s.net->on = stage_handler(&st->s);
    check_alive(&st->s);
    stage_fini(&st->s);
}

static void rage(uint64_t seed, const char *step, long nth)
{
    static struct storm st;

    storm_init(&st, seed);
    if (step)
        fault_arm_at(step, nth);
    for (int i = 0; i < STEPS; i++) {
        if (roll(&st, 4))
            client_acts(&st, &st.clients[roll(&st, CLIENTS)]);
        else
            owner_acts(&st);
        if (roll(&st, 40) == 0)
            time_passes(&st);
        if (roll(&st, 3))
            turn(&st.s, 1);
    }
    turn(&st.s, 3);
    if (!fault_fired())
        fault_arm(0);
    calm(&st);
    fault_arm(0);
}

TEST(a_storm_passes)
{
    for (uint64_t seed = 1; seed <= STORMS; seed++)
        rage(seed, NULL, 0);
    if (n_echoes < 5000)
        T_FAIL("%ld echoes", n_echoes);
}

/* Not buf.grow, which would hit the clients' own: ws_fault_test.c has it. */
TEST(a_storm_with_a_fault_passes)
{
    static const char *const steps[] = {
        "net.read",   "net.write",   "net.watch", "net.conn",     "net.open",
        "net.socket", "net.attempt", "ws.sha1",   "net.shutdown", "net.accept"};
    enum { N_STEPS = sizeof(steps) / sizeof(steps[0]) };

    for (uint64_t seed = 1; seed <= STORMS; seed++)
        rage(seed + 1000, steps[seed % N_STEPS], (long)(seed / N_STEPS + 1));
}
