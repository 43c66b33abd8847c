/* Many clients that act at random: send in odd pieces, pipeline, stop reading,
 * half-close, reset, wait too long; an owner that answers now, later, in
 * streams or never; and faults. The same seed is the same storm. An open
 * request ends exactly once, a connection has one open request, replies reach
 * a client in the order of its requests, and after the storm all connections
 * are gone. */
#include "net/server/internal.h"
#include "test/lib/net_stage.h"

enum { CLIENTS = 12, STEPS = 300, STORMS = 120, OPEN_MAX = 256 };

struct client {
    int fd; /* -1: not there */
    int n_asked, n_heard;
    char todo[8192]; /* what it still wants to say */
    size_t n_todo;
    char tail[16]; /* of what it heard, a marker may be cut */
    size_t n_tail;
    bool has_shut;
};

struct open_request {
    uint64_t id;
    bool is_stream;
};

struct storm {
    struct stage s;
    struct rand_seeded seed;
    struct rand rand;
    struct client clients[CLIENTS];
    struct open_request open[OPEN_MAX];
    int n_open;
};

static unsigned roll(struct storm *st, unsigned n)
{
    return (unsigned)(rand_u64(st->rand) % n);
}

static int find_open(const struct storm *st, uint64_t id)
{
    for (int i = 0; i < st->n_open; i++)
        if (st->open[i].id == id)
            return i;
    return -1;
}

static void forget(struct storm *st, int i)
{
    st->open[i] = st->open[--st->n_open];
}

/* The owner. */

static struct http_reply reply_with(struct str body)
{
    return (struct http_reply){
        .status = 200, .content_type = STR("text/plain"), .body = body};
}

static void storm_request(void *ctx, uint64_t id, const struct http_request *rq)
{
    struct storm *st = ctx;
    struct http_reply r = reply_with(rq->path);
    unsigned what = roll(st, 10);

    CHECK(find_open(st, id) < 0 && st->n_open < OPEN_MAX);
    for (int i = 0; i < st->n_open; i++) /* one per connection */
        CHECK((st->open[i].id ^ id) & ((1 << SLOT_BITS) - 1));
    if (what < 5) {
        net_reply(st->s.net, id, &r);
        return;
    }
    if (what < 8) {
        if (net_stream_open(st->s.net, id, &r) != OK)
            return;
        st->open[st->n_open++] = (struct open_request){id, true};
        return;
    }
    /* Later there is no request to read the marker from: begin now or never,
     * so a held one is answered without. */
    st->open[st->n_open++] = (struct open_request){id, false};
}

static void storm_gone(void *ctx, uint64_t id)
{
    struct storm *st = ctx;
    int i = find_open(st, id);

    if (i >= 0)
        forget(st, i);
    else
        CHECK(fault_fired()); /* inside our own call, which tells us too */
}

static void storm_room(void *ctx, uint64_t id)
{
    CHECK(find_open(ctx, id) >= 0);
}

static void owner_acts(struct storm *st)
{
    static char piece[20000];
    struct open_request *o;
    int i;

    if (st->n_open == 0)
        return;
    i = (int)roll(st, (unsigned)st->n_open);
    o = &st->open[i];
    if (o->is_stream && roll(st, 4)) {
        size_t n = roll(st, sizeof(piece));
        enum err e;

        memset(piece, '.', sizeof(piece));
        e = net_stream_send(st->s.net, o->id, (struct str){piece, n});
        CHECK(e == OK || e == ERR_BUSY || e == ERR_GONE);
        if (e == ERR_GONE)
            forget(st, i);
        return;
    }
    if (o->is_stream) {
        net_stream_end(st->s.net, o->id);
    } else {
        struct http_reply r = reply_with(STR("[later]"));

        net_reply(st->s.net, o->id, &r);
    }
    forget(st, i);
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

static void ask_more(struct storm *st, struct client *c)
{
    static const char *forms[] = {
        "GET /[%d] HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /[%d] HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /[%d] HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
        "POST /[%d] HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        "2\r\nab\r\n1;x\r\nc\r\n0\r\nT: v\r\n\r\n",
        "POST /[%d] HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
        "Content-Length: 2\r\n\r\nab",
        "GET /[%d] HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "GET /[%d] HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        "NONSENSE [%d]\r\n",
    };
    unsigned f = roll(st, 40);
    char text[256];
    int n;

    if (c->has_shut || c->n_todo + sizeof(text) > sizeof(c->todo))
        return;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    n = snprintf(text, sizeof(text), forms[f < 8 ? f : f % 6], c->n_asked++);
#pragma GCC diagnostic pop
    memcpy(c->todo + c->n_todo, text, (size_t)n);
    c->n_todo += (size_t)n;
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

/* Markers come in order; those of held requests are not there. */
static void look_for_markers(struct client *c, const char *text)
{
    for (const char *p = text; (p = strstr(p, "/[")); p++) {
        char *end;
        long v = strtol(p + 2, &end, 10);

        if (*end != ']')
            continue;
        CHECK(v >= c->n_heard && v < c->n_asked);
        c->n_heard = (int)v + 1;
    }
}

static void hear_some(struct storm *st, struct client *c)
{
    static char text[70000];
    size_t want = 1 + roll(st, 60000);
    ssize_t n;

    memcpy(text, c->tail, c->n_tail);
    n = recv(c->fd, text + c->n_tail, want, 0);
    if (n <= 0) {
        if (n == 0 || errno != EAGAIN)
            hang_up(c, false);
        return;
    }
    n += (ssize_t)c->n_tail;
    text[n] = 0;
    look_for_markers(c, text);
    /* A marker cut in two begins in the tail; one seen whole must not. */
    c->n_tail = 0;
    for (size_t k = 1; k < 8 && k <= (size_t)n; k++)
        if (text[(size_t)n - k] == '/' && !memchr(text + (size_t)n - k, ']', k))
            c->n_tail = k;
    memcpy(c->tail, text + (size_t)n - c->n_tail, c->n_tail);
}

static void client_acts(struct storm *st, struct client *c)
{
    if (c->fd < 0) {
        *c = (struct client){.fd = dial_small(&st->s, roll(st, 2) ? 4096 : 0)};
        return;
    }
    switch (roll(st, 24)) {
    case 0: hang_up(c, roll(st, 2)); break;
    case 1:
        if (c->n_todo == 0) {
            shutdown(c->fd, SHUT_WR);
            c->has_shut = true;
        }
        break;
    case 2 ... 7: ask_more(st, c); break;
    case 8 ... 15: say_some(st, c); break;
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
    opts.max_connections = 10;
    if (seed % 2)
        opts.max_buffered_bytes = 30000; /* every other one is often full */
    stage_init(&st->s, opts);
    st->s.net->on = (struct net_handler){
        .ctx = st,
        .on_request = storm_request,
        .on_gone = storm_gone,
        .on_room = storm_room,
        .word_error = stage_word,
    };
    st->rand = rand_seeded(&st->seed);
    for (int i = 0; i < CLIENTS; i++)
        st->clients[i].fd = -1;
}

static void calm(struct storm *st)
{
    struct heard h;

    for (int i = 0; i < CLIENTS; i++)
        if (st->clients[i].fd >= 0)
            hang_up(&st->clients[i], false);
    for (int i = 0; i < 3; i++) { /* some come in only now */
        later(&st->s, 100);
        while (st->n_open)
            owner_acts(st);
    }
    later(&st->s, 10000);
    UNTIL(&st->s, net_stats(st->s.net).connections == 0);
    CHECK(net_stats(st->s.net).unsent_bytes == 0);
    st->s.net->on = stage_handler(&st->s);
    ask(&st->s, GET_CLOSE("/calm"), &h);
    CHECK(has(&h, "\r\n\r\n/calm"));
    stage_fini(&st->s);
}

static void rage(uint64_t seed, long fault)
{
    struct storm st;

    storm_init(&st, seed);
    fault_arm(fault);
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
        rage(seed, 0);
}

TEST(a_storm_with_a_fault_passes)
{
    for (uint64_t seed = 1; seed <= STORMS; seed++)
        rage(seed + 1000, (long)(seed * 7 % 600) + 1);
}
