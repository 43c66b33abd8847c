/* Each step that can fail fails once, in a run of its own. Nothing crashes,
 * nothing leaks (the sanitizers look), every request is answered or reported
 * as gone, every connection ends, and the next client is served. */
#include "net/server/internal.h"
#include "test/lib/net_stage.h"

enum { CLIENTS = 6 };

struct scene {
    struct stage s;
    int fds[CLIENTS];
    int n_finished; /* requests that we answered, not knowing better */
};

/* So that a slow reader need not be sent megabytes. */
static void make_slow(struct net *n, uint64_t id)
{
    int bytes = 4096;

    setsockopt(net_find(n, id)->fd, SOL_SOCKET, SO_SNDBUF, &bytes,
               sizeof(bytes));
}

static void scene_request(void *ctx, uint64_t id, const struct http_request *rq)
{
    struct scene *sc = ctx;
    struct stage *s = &sc->s;

    s->ids[s->n_requests++ % SEEN_MAX] = id;
    if (str_eq(rq->path, STR("/stream"))) {
        make_slow(s->net, id);
        s->opened = net_stream_open(s->net, id, &s->reply);
        /* ERR_GONE is all we hear of it. */
        sc->n_finished += s->opened != OK;
    } else if (!str_eq(rq->path, STR("/held"))) {
        net_reply(s->net, id, &s->reply);
        sc->n_finished++;
    }
}

static void scene_gone(void *ctx, uint64_t id)
{
    struct scene *sc = ctx;

    (void)id;
    sc->s.n_gone++;
}

static void scene_done(void *ctx)
{
    struct scene *sc = ctx;

    sc->s.n_done++;
}

static void settle(struct scene *sc)
{
    turn(&sc->s, 4);
    later(&sc->s, 100); /* ends the pause after a failed accept */
    turn(&sc->s, 4);
}

/* The kernel may have closed on us; then saying is in vain. */
static void try_say(int fd, const char *text)
{
    ssize_t n = send(fd, text, strlen(text), MSG_NOSIGNAL);

    (void)n;
}

static void stream_a_lot(struct scene *sc, uint64_t id)
{
    static char piece[16384];
    enum err e = OK;

    memset(piece, 'p', sizeof(piece));
    for (int i = 0; i < 1000 && !e; i++) {
        e = net_stream_send(sc->s.net, id, (struct str){piece, sizeof(piece)});
        turn(&sc->s, 1);
    }
    if (e == ERR_GONE) {
        /* Either on_gone has said so or this is the only word. */
        return;
    }
    CHECK(e == ERR_BUSY);
}

/* Pieces, pipelining, chunks, errors, a held request, a slow reader of a
 * stream, one client too many. */
static void play(struct scene *sc)
{
    struct stage *s = &sc->s;
    static char sink[1 << 20];

    for (int i = 0; i < CLIENTS; i++)
        sc->fds[i] = dial_small(s, i == 2 ? 4096 : 0);
    settle(sc);
    try_say(sc->fds[0], GET("/1") GET("/2") "POST /3 HTTP/1.1\r\nHo");
    try_say(sc->fds[1], GET("/held") GET("/behind"));
    try_say(sc->fds[2], GET("/stream"));
    try_say(sc->fds[3], "NONSENSE\r\n\r\n");
    settle(sc);
    try_say(sc->fds[0], "st: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab");
    try_say(sc->fds[4],
            "POST /e HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
            "Content-Length: 3\r\n\r\n");
    settle(sc);
    try_say(sc->fds[0], "cde\r\n0\r\n\r\n");
    try_say(sc->fds[4], "abc");
    settle(sc);
    for (int i = 0; i < s->n_requests; i++) {
        struct conn *c = net_find(s->net, s->ids[i]);

        if (c && c->state == CONN_STREAM)
            stream_a_lot(sc, s->ids[i]);
    }
    for (int i = 0; i < 200; i++) {
        ssize_t n = recv(sc->fds[2], sink, sizeof(sink), 0);

        (void)n;
        turn(s, 1);
    }
}

static void answer_what_is_open(struct scene *sc)
{
    struct stage *s = &sc->s;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < s->n_requests; i++) {
            struct conn *c = net_find(s->net, s->ids[i]);

            if (!c)
                continue;
            if (c->state == CONN_STREAM)
                net_stream_end(s->net, s->ids[i]);
            else
                net_reply(s->net, s->ids[i], &s->reply);
            sc->n_finished++;
        }
        settle(sc);
    }
}

static void hang_up(struct scene *sc)
{
    for (int i = 0; i < CLIENTS; i++)
        close(sc->fds[i]);
    settle(sc);
    later(&sc->s, LINGER_MS);
    UNTIL(&sc->s, net_stats(sc->s.net).connections == 0);
}

static bool scene_init(struct scene *sc)
{
    struct net_opts opts = test_opts();

    opts.max_connections = CLIENTS;
    opts.max_connections_per_address = CLIENTS - 1;
    *sc = (struct scene){.n_finished = 0};
    if (!stage_try_init(&sc->s, opts))
        return false;
    sc->s.net->on = (struct net_handler){
        .ctx = sc,
        .on_request = scene_request,
        .on_gone = scene_gone,
        .on_room = stage_room,
        .word_error = stage_word,
    };
    sc->s.reply.body = STR("fine");
    return true;
}

static void scene_fini(struct scene *sc)
{
    net_stop(sc->s.net, 0, scene_done, sc);
    UNTIL(&sc->s, sc->s.n_done == 1);
    stage_free(&sc->s);
}

/* One run with whatever fault is armed. Returns whether it was met. */
static bool run_scene(void)
{
    struct scene sc;
    struct stage *s = &sc.s;
    struct heard h;
    bool fired;

    if (!scene_init(&sc)) {
        CHECK(fault_fired());
        return true;
    }
    while (net_listen(s->net, STR("127.0.0.1:0"), false, NULL) != OK)
        CHECK(fault_fired());
    s->port = stage_port(s);
    play(&sc);
    answer_what_is_open(&sc);
    hang_up(&sc);
    fired = fault_fired();
    fault_arm(0);
    CHECK(fired || s->n_requests == 7);
    CHECK(fired || s->n_gone == 0);
    for (int i = 0; i < s->n_requests; i++)
        CHECK(net_find(s->net, s->ids[i]) == NULL);
    CHECK(sc.n_finished + s->n_gone <= s->n_requests);
    /* A stream may be lost inside net_stream_send, which says so itself. */
    CHECK(sc.n_finished + s->n_gone >= s->n_requests - 1);
    ask(s, GET_CLOSE("/after"), &h);
    CHECK(has(&h, "200 OK") && has(&h, "fine"));
    scene_fini(&sc);
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
        "loop.init", "net.listen", "net.listener", "net.accept",
        "net.conn",  "net.slots",  "net.open",     "net.read",
        "net.watch", "net.write",  "net.shutdown",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        long nth = 0;

        do
            fault_arm_at(names[i], ++nth);
        while (run_scene());
        if (nth == 1) {
            fprintf(stderr, "never reached: %s\n", names[i]);
            exit(1);
        }
    }
}
