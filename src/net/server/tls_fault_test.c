/* Each step that can fail fails once, in a run of its own, with TLS: nothing
 * crashes or leaks, every request is answered or reported as gone, every
 * connection ends, and the next client is served. */
#include "test/lib/tls_stage.h"

enum { GUESTS = 4 };

/* A client that goes on as far as it can. */
static void step(struct stage *s, struct guest *g, struct heard *h,
                 const char *text)
{
    for (int i = 0; i < 30 && !guest_shake(g); i++)
        turn(s, 1);
    if (!g->is_broken && SSL_is_init_finished(g->ssl))
        (void)SSL_write(g->ssl, text, (int)strlen(text));
    for (int i = 0; i < 6; i++) {
        turn(s, 1);
        if (!g->is_broken && SSL_is_init_finished(g->ssl))
            guest_hear(g, h);
    }
}

static void end_streams(struct stage *s)
{
    for (int i = 0; i < s->n_requests; i++)
        if (net_find(s->net, s->ids[i]))
            net_stream_end(s->net, s->ids[i]);
    turn(s, 6);
}

/* A request and another, a stream, one guest too many, plain HTTP, and new
 * certificates in the middle. */
static void play(struct stage *s, struct tls_folder *f)
{
    struct guest g[GUESTS];
    struct heard h[GUESTS] = {{.n = 0}}, plain = {.n = 0};
    struct why why;
    int fd;

    for (int i = 0; i < GUESTS; i++) {
        g[i] = guest_new(s, 0);
        s->mode = i == 1 ? STREAM : ANSWER;
        step(s, &g[i], &h[i], GET("/1"));
        later(s, 100); /* ends the pause after a failed accept */
    }
    (void)!net_set_certs(s->net, f->files, 1, &why);
    step(s, &g[0], &h[0], GET_CLOSE("/2"));
    end_streams(s);
    fd = dial(s);
    (void)!send(fd, GET("/"), sizeof(GET("/")) - 1, MSG_NOSIGNAL);
    turn(s, 6);
    hear(fd, &plain);
    for (int i = 0; i < GUESTS; i++) {
        step(s, &g[i], &h[i], "");
        guest_free(&g[i]);
    }
    close(fd);
    turn(s, 6);
    later(s, LINGER_MS);
    later(s, s->opts.idle_timeout_ms);
    if (!fault_fired()) {
        CHECK(has(&h[0], "/1") && has(&h[0], "/2") && h[0].is_eof);
        CHECK(has(&h[1], "\r\n\r\n0\r\n\r\n") && has(&h[2], "/1"));
        CHECK(has(&h[3], "503") && has(&plain, "400") && s->n_requests == 4);
    }
}

/* One run with whatever fault is armed. Returns whether it was met. */
static bool run_scene(void)
{
    struct net_opts opts = test_opts();
    struct tls_folder f;
    struct stage s;
    struct why why;
    bool fired;
    int64_t port;

    opts.max_connections = GUESTS;
    opts.max_connections_per_address = GUESTS - 1;
    if (!stage_try_init(&s, opts)) {
        CHECK(fault_fired());
        return true;
    }
    folder_init(&f);
    folder_put(&f, 0, &s, (struct cert_wish){.san = NULL});
    while (net_set_certs(s.net, f.files, 1, &why) != OK)
        CHECK(fault_fired());
    while (net_listen(s.net, STR("127.0.0.1:0"), true, &why) != OK)
        CHECK(fault_fired());
    CHECK(str_to_i64(str_of(strrchr(net_tls_url(s.net), ':') + 1), &port) ==
          OK);
    s.port = (uint16_t)port;
    play(&s, &f);
    UNTIL(&s, net_stats(s.net).connections == 0);
    CHECK(net_stats(s.net).buffered_bytes == 0);
    fired = fault_fired();
    fault_arm(0);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
    return fired;
}

TEST(every_step_may_fail_once)
{
    long nth = 0;

    do
        fault_arm(nth += T_SWEEP_STEP);
    while (run_scene());
    CHECK(nth > 100); /* it really went through many */
}

/* By name, so that a step that the scene stopped reaching is missed. */
TEST(every_named_step_is_reached_and_may_fail)
{
    static const char *names[] = {
        "cert.context", "cert.read", "tls.bio",      "tls.new", "tls.shake",
        "tls.recv",     "tls.send",  "tls.full",     "tls.end", "net.read",
        "net.write",    "net.watch", "net.shutdown",
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
