/* Each step that can fail fails once, in a run of its own. Nothing crashes,
 * nothing leaks (the sanitizers look), every request that was started ends
 * once, and the next one is served. */
#include "net/client/internal.h"

#include "test/lib/fetch_stage.h"

enum { TALES = 8 };

struct scene {
    struct stage s;
    struct peer *plain, *moved, *stream, *proxy;
    struct told *tales[TALES];
    int n_tales;
    int n_begun, n_fine;
};

static void begin(struct scene *sc, struct fetch_request rq,
                  const struct fetch_handler *h)
{
    struct told *t = told_new(&sc->s);
    struct why why = {""};
    enum err e = fetch_start(sc->s.fetch, &rq, h, t, &t->id, &why);

    CHECK(!e == !why.text[0]);
    if (e) {
        CHECK(fault_fired() && !t->n_done);
        told_free(t);
        return;
    }
    sc->tales[sc->n_tales++] = t;
    sc->n_begun++;
}

static void await_all(struct scene *sc)
{
    for (int i = 0; i < sc->n_tales; i++) {
        struct told *t = sc->tales[i];

        UNTIL(&sc->s, t->n_done == 1);
        sc->n_fine += t->e == OK;
        CHECK(t->e == OK || fault_fired());
        told_free(t);
    }
    sc->n_tales = 0;
    CHECK(fetch_stats(sc->s.fetch).open == 0);
}

static void open_peers(struct scene *sc)
{
    static char moved[256];

    sc->plain = peer_open(&sc->s, FINE);
    sc->moved = peer_open(&sc->s, moved);
    sc->stream = peer_open(
        &sc->s, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                "Content-Length: 27\r\n\r\ndata: a\n\ndata: b\n\ndata: c\n\n");
    sc->proxy = peer_open(&sc->s, FINE);
    snprintf(moved, sizeof(moved),
             "HTTP/1.1 302 Go\r\nLocation: %s\r\nContent-Length: 4\r\n\r\ngone",
             url_at(sc->plain, "/"));
}

static void set_options(struct scene *sc, const char *proxy)
{
    struct fetch_opts opts = sc->s.opts;
    struct why why = {""};

    opts.proxy = proxy;
    if (fetch_set(sc->s.fetch, &opts, &why) == OK)
        return;
    CHECK(fault_fired() && why.text[0]);
    CHECK(fetch_set(sc->s.fetch, &opts, &why) == OK); /* and then it goes */
}

/* Whole answers, a redirect, a body that goes along, a stream that pauses, a
 * name, a proxy, one that is cancelled. */
static void play(struct scene *sc)
{
    struct stage *s = &sc->s;
    struct fetch_header h = {STR("X"), STR("y")};
    struct fetch_request rq = request_to(url_at(sc->moved, "/"));

    rq.max_redirects = 2;
    rq.method = STR("POST");
    rq.body = STR("abc");
    rq.headers = &h;
    rq.n_headers = 1;
    begin(sc, rq, &whole);
    begin(sc, request_to(url_at(sc->plain, "/")), &as_bytes);
    begin(sc, request_to("http://localhost:1/"), &whole);
    if (sc->n_tales && sc->tales[sc->n_tales - 1]->id) {
        fetch_cancel(s->fetch, sc->tales[sc->n_tales - 1]->id);
        told_free(sc->tales[--sc->n_tales]);
        sc->n_begun--;
    }
    await_all(sc);
    begin(sc, request_to(url_at(sc->stream, "/")), &as_events);
    if (sc->n_tales) {
        struct told *t = sc->tales[0];

        t->pauses_at_event = true;
        for (int i = 1; i <= 3 && !t->n_done; i++) {
            UNTIL(s, t->n_events == i || t->n_done);
            fetch_pause(s->fetch, t->id, false);
        }
    }
    await_all(sc);
    set_options(sc, url_at(sc->proxy, ""));
    begin(sc, request_to("http://public.example/"), &whole);
    await_all(sc);
    set_options(sc, NULL);
}

/* One run with whatever fault is armed. Returns whether it was met. */
static bool run_scene(void)
{
    struct scene *sc = calloc(1, sizeof(*sc));
    struct stage *s = &sc->s;
    struct fetch_opts opts = test_opts();
    bool fired;

    CHECK(guard_range_read(STR("127.0.0.0/8"), &s->allow[0], NULL) == OK);
    opts.guard = (struct guard){s->allow, 1};
    if (!stage_try_init(s, opts)) {
        CHECK(fault_fired());
        free(sc);
        return true;
    }
    open_peers(sc);
    play(sc);
    fired = fault_fired();
    fault_arm(0);
    CHECK(fired || sc->n_fine == 4);
    CHECK(sc->n_fine + 1 >= sc->n_begun); /* one fault ends one request */
    begin(sc, request_to(url_at(sc->plain, "/after")), &whole);
    UNTIL(s, sc->tales[0]->n_done);
    CHECK(sc->tales[0]->e == OK);
    told_free(sc->tales[0]);
    fetch_stop(s->fetch, stage_stopped, s);
    UNTIL(s, s->n_stopped == 1);
    fetch_free(s->fetch);
    for (int i = 0; i < s->n_peers; i++)
        peer_close(&s->peers[i]);
    loop_fini(&s->loop);
    close(s->log.fd);
    free(sc);
    return fired;
}

TEST(every_step_may_fail_once)
{
    long nth = 0;

    do
        fault_arm(++nth);
    while (run_scene());
    CHECK(nth > 40); /* it really went through many */
}

/* By name, so that a step that the scene above stopped reaching is missed. */
TEST(every_named_step_is_reached_and_may_fail)
{
    static const char *names[] = {
        "loop.init",     "fetch.new",     "fetch.trust", "fetch.multi",
        "fetch.slots",   "fetch.request", "fetch.easy",  "fetch.list",
        "fetch.options", "fetch.add",     "fetch.watch", "fetch.socket",
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
