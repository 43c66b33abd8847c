/* Each step of WebSockets that can fail fails once, in a run of its own.
 * Nothing crashes, nothing leaks (the sanitizers look), every WebSocket and
 * every dial ends once, every connection ends, and the next client is
 * served. */
#include "net/server/internal.h"
#include "test/lib/dial_stage.h"

enum { CLIENTS = 5, CALLS = 3 };

struct scene {
    struct dial_stage d;
    int fds[CLIENTS];
    int n_called;
};

/* The kernel may have closed on us; then saying is in vain. */
static void try_say(int fd, const char *p, size_t n)
{
    ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

    (void)sent;
}

static void settle(struct scene *sc)
{
    for (int i = 0; i < 6; i++) {
        turn_once(&sc->d.w.s);
        if (asked.rq)
            answer_name("127.0.0.2 127.0.0.1");
    }
}

/* So that a slow reader need not be sent megabytes. */
static void make_slow(struct net *n, uint64_t id)
{
    struct conn *c = net_find(n, id);
    int bytes = 4096;

    if (c)
        setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

static void send_a_lot(struct scene *sc, uint64_t id)
{
    static char piece[16384];
    struct net *n = sc->d.w.s.net;
    enum err e = OK;

    memset(piece, 'p', sizeof(piece));
    make_slow(n, id);
    for (int i = 0; i < 500 && !e; i++) {
        e = net_ws_send(n, id, WS_BINARY, (struct str){piece, sizeof(piece)});
        turn(&sc->d.w.s, 1);
    }
    CHECK(e == ERR_BUSY || e == ERR_GONE);
}

static void call(struct scene *sc, const char *host)
{
    char url[128];

    snprintf(url, sizeof(url), "ws://%s:%u/ws", host, sc->d.w.s.port);
    if (try_call(&sc->d, url) == OK)
        sc->n_called++;
    else
        CHECK(fault_fired());
}

/* What a client says after its hello; a bad frame at the last. */
static const struct str speeches[CLIENTS][2] = {
    {STR("\x01\x83\0\0\0\0one\x89\x81\0\0\0\0p"), STR("\x80\x81\0\0\0\0!")},
    {STR(""), STR("\x88\x82\0\0\0\0\x03\xe8")},
    {STR("\x82\x82\0\0\0\0ab\x82\xfe\x08"), STR("\x00\0\0\0\0and no more")},
    {STR("\x81\x80\0\0\0\0"), STR("\x81\x80\0\0\0\0")},
    {STR("\x81\x01?"), STR("")},
};

static void play(struct scene *sc)
{
    struct dial_stage *d = &sc->d;
    static char sink[1 << 20];

    for (int i = 0; i < CLIENTS; i++) {
        sc->fds[i] = dial_small(&d->w.s, i == 1 ? 4096 : 0);
        try_say(sc->fds[i], HELLO("/ws"), sizeof(HELLO("/ws")) - 1);
        settle(sc);
        later(&d->w.s, 100); /* ends the pause after a failed accept */
    }
    for (int i = 0; i < CLIENTS; i++)
        try_say(sc->fds[i], speeches[i][0].p, speeches[i][0].n);
    settle(sc);
    call(sc, "127.0.0.1");
    call(sc, "a.example");
    settle(sc);
    call(sc, "b.example");
    settle(sc);
    if (d->w.n_ws > 1)
        send_a_lot(sc, d->w.ws_ids[1]);
    for (int i = 0; i < 100; i++) {
        ssize_t n = recv(sc->fds[1], sink, sizeof(sink), 0);

        (void)n;
        turn(&d->w.s, 1);
    }
    for (int i = 0; i < CLIENTS; i++)
        try_say(sc->fds[i], speeches[i][1].p, speeches[i][1].n);
    settle(sc);
    later(&d->w.s, d->w.s.opts.ws_timeout_ms / 3); /* pings */
}

/* The callers talk; what is still open is said goodbye to. */
static void finish(struct scene *sc)
{
    struct dial_stage *d = &sc->d;
    struct net *n = d->w.s.net;

    if (net_find(n, d->id)) {
        enum err e = net_ws_send(n, d->id, WS_TEXT, STR("from the caller"));

        CHECK(e == OK || e == ERR_GONE);
    }
    settle(sc);
    for (int i = 0; i < d->w.n_ws; i++)
        net_ws_close(n, d->w.ws_ids[i], WS_NORMAL, STR("enough"));
    settle(sc);
    for (int i = 0; i < CLIENTS; i++)
        close(sc->fds[i]);
    settle(sc);
    later(&d->w.s, LINGER_MS + d->what.timeout_ms);
    settle(sc);
    UNTIL(&d->w.s, net_stats(n).connections == 0);
}

static bool scene_init(struct scene *sc)
{
    *sc = (struct scene){.n_called = 0};
    sc->d.raw_fd = -1;
    sc->d.what.timeout_ms = 5000;
    if (!stage_try_init(&sc->d.w.s, test_opts()))
        return false;
    sc->d.call.s.net = sc->d.w.s.net;
    sc->d.w.s.net->getaddrinfo = ask_the_test;
    sc->d.w.s.net->on.on_request = ws_stage_request;
    sc->d.w.echoes = true;
    return true;
}

/* One run with whatever fault is armed. Returns whether it was met. */
static bool run_scene(void)
{
    struct scene sc;
    struct dial_stage *d = &sc.d;
    bool fired;

    if (!scene_init(&sc)) {
        CHECK(fault_fired());
        return true;
    }
    while (net_listen(d->w.s.net, STR("127.0.0.1:0"), false, NULL) != OK)
        CHECK(fault_fired());
    d->w.s.port = stage_port(&d->w.s);
    play(&sc);
    finish(&sc);
    fired = fault_fired();
    fault_arm(0);
    CHECK_INT(d->w.n_ends, d->w.n_ws);
    CHECK_INT(d->call.n_ends, sc.n_called);
    CHECK(fired || d->w.n_ws == CLIENTS + CALLS);
    CHECK(fired || d->call.n_opens == CALLS);
    CHECK_INT(net_stats(d->w.s.net).websockets, 0);
    CHECK_INT(net_stats(d->w.s.net).dialling, 0);
    CHECK_INT(net_stats(d->w.s.net).dials_failed_total,
              sc.n_called - d->call.n_opens);
    CHECK_INT(net_stats(d->w.s.net).websockets_total,
              d->w.n_ws + d->call.n_opens);
    CHECK_INT(net_stats(d->w.s.net).buffered_bytes, 0);
    check_alive(&d->w.s);
    ws_stage_fini(&d->w);
    return fired;
}

TEST(every_step_may_fail_once)
{
    long nth = 0;

    do
        fault_arm(++nth);
    while (run_scene());
    CHECK(nth > 50); /* it really went through many */
}

/* By name, so that a step that the scene above stopped reaching is missed. */
TEST(every_named_step_is_reached_and_may_fail)
{
    static const char *names[] = {
        "net.conn",  "net.slots",  "net.open",   "net.read",    "net.watch",
        "net.write", "net.lookup", "net.socket", "net.attempt", "net.shutdown",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        long nth = 0;

        do
            fault_arm_at(names[i], ++nth);
        while (run_scene());
        if (nth == 1)
            T_FAIL("never reached: %s", names[i]);
    }
}
