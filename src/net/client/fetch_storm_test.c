/* Many requests to random servers, and owners that act from inside every
 * callback: start, pause, resume, cancel, change the options; with resets,
 * deadlines and faults. The same seed gives the same decisions; the kernel's
 * timing varies.
 *
 * Each request that was started and not cancelled ends once, has no callbacks
 * after its end or cancellation, has no good end during a pause, and nothing
 * is left after the stop. */
#include "base/clock.h"
#include "net/client/internal.h"
#include "test/lib/fetch_stage.h"

enum { TALES_MAX = 4000, STEPS = 400, STORMS = 20, SERVERS = 3, REPLIES = 14 };

struct tale {
    struct storm *storm;
    uint64_t id;
    bool is_over; /* done or cancelled: not a word more */
    bool is_cancelled, is_paused;
};

struct storm {
    struct stage s;
    struct rand_seeded seed;
    struct rand rand;
    struct tale tales[TALES_MAX];
    int n_tales;
    int n_done, n_fine, n_cancelled;
    char replies[REPLIES][70000];
    int n_replies;
    bool is_calm; /* no more of it: it is to end */
};

static unsigned roll(struct storm *st, unsigned n)
{
    return (unsigned)(rand_u64(st->rand) % n);
}

/* One of the last, since the others are over. */
static struct tale *any_tale(struct storm *st)
{
    int n = st->n_tales < 30 ? st->n_tales : 30;

    return &st->tales[st->n_tales - 1 - (int)roll(st, (unsigned)n)];
}

/* What owners do. */

static void cancel(struct tale *t)
{
    fetch_cancel(t->storm->s.fetch, t->id);
    if (t->is_over)
        return; /* and that was harmless */
    t->is_over = t->is_cancelled = true;
    t->storm->n_cancelled++;
}

static void pause_it(struct tale *t, bool is_paused)
{
    fetch_pause(t->storm->s.fetch, t->id, is_paused);
    t->is_paused = is_paused;
}

static void change_options(struct storm *st)
{
    struct fetch_opts o = st->s.opts;
    struct why why;

    o.max_kept = roll(st, 4);
    o.max_per_host = 1 + roll(st, 4);
    if (fetch_set(st->s.fetch, &o, &why) != OK)
        CHECK(fault_fired());
}

static void begin(struct storm *st);

static void act(struct tale *t)
{
    struct storm *st = t->storm;

    if (st->is_calm)
        return;
    switch (roll(st, 14)) {
    case 0: cancel(t); break;
    case 1: cancel(any_tale(st)); break;
    case 2: pause_it(t, true); break;
    case 3: pause_it(t, false); break;
    case 4 ... 5: pause_it(any_tale(st), false); break;
    case 6 ... 7: begin(st); break;
    case 8:
        if (roll(st, 20) == 0)
            change_options(st);
        break;
    default: break;
    }
}

static struct tale *heard(void *ctx, uint64_t id)
{
    struct tale *t = ctx;

    CHECK(t->id == id && !t->is_over);
    return t;
}

static void on_head(void *ctx, uint64_t id, const struct fetch_answer *a)
{
    CHECK(a->status >= 200);
    act(heard(ctx, id));
}

static void on_bytes(void *ctx, uint64_t id, struct str bytes)
{
    struct tale *t = heard(ctx, id);

    CHECK(bytes.n && !t->is_paused);
    act(t);
}

static void on_event(void *ctx, uint64_t id, const struct sse_event *e)
{
    struct tale *t = heard(ctx, id);

    CHECK(e->type.n && !t->is_paused);
    act(t);
}

static void on_done(void *ctx, uint64_t id, enum err e,
                    const struct fetch_answer *a, const struct why *why)
{
    struct tale *t = heard(ctx, id);

    CHECK(!e == !why->text[0] && (e || (a->status && !t->is_paused)));
    t->is_over = true;
    t->storm->n_done++;
    t->storm->n_fine += !e;
    act(t);
}

static const struct fetch_handler handlers[] = {
    {on_head, NULL, NULL, on_done},
    {on_head, on_bytes, NULL, on_done},
    {on_head, on_bytes, on_event, on_done},
    {NULL, NULL, on_event, on_done},
};

static struct fetch_request any_request(struct storm *st)
{
    static const char *const hosts[] = {
        "127.0.0.1", "127.0.0.1",    "127.0.0.1", "localhost",
        "127.0.0.2", "none.invalid", "10.1.1.1",
    };
    static char url[100];
    const struct peer *p = &st->s.peers[roll(st, SERVERS)];
    struct fetch_request rq;

    snprintf(url, sizeof(url), "http://%s:%d/%u", hosts[roll(st, 7)], p->port,
             roll(st, 9));
    rq = request_to(url);
    rq.max_redirects = (int)roll(st, 4);
    rq.is_trusted = roll(st, 6) == 0;
    rq.timeout_ms = roll(st, 5) ? 100 * 1000 : 1 + roll(st, 30);
    rq.silence_ms = roll(st, 2) ? 0 : 1 + roll(st, 50);
    rq.max_body_bytes = roll(st, 3) ? 1 << 20 : roll(st, 3000);
    rq.max_event_bytes = roll(st, 3) ? 1 << 16 : 20;
    if (roll(st, 3) == 0) {
        rq.method = STR("POST");
        rq.body = STR("a body");
    }
    return rq;
}

static void begin(struct storm *st)
{
    struct tale *t = &st->tales[st->n_tales];
    struct fetch_request rq = any_request(st);
    struct why why = {""};
    enum err e;

    if (st->n_tales == TALES_MAX)
        return;
    *t = (struct tale){.storm = st};
    e = fetch_start(st->s.fetch, &rq, &handlers[roll(st, 4)], t, &t->id, &why);
    CHECK(e == OK || e == ERR_BUSY || (e == ERR_NOMEM && fault_fired()));
    CHECK(!e == !why.text[0]);
    st->n_tales += !e;
}

/* What servers do. */

static void add_reply(struct storm *st, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void add_reply(struct storm *st, const char *fmt, ...)
{
    va_list ap;

    CHECK(st->n_replies < REPLIES);
    va_start(ap, fmt);
    vsnprintf(st->replies[st->n_replies++], sizeof(st->replies[0]), fmt, ap);
    va_end(ap);
}

static void add_large_replies(struct storm *st)
{
    static char text[60000];
    size_t n = 0;

    for (int i = 0; i < 900; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "id: %d\ndata: abc%d\r\n\r", i, i);
    add_reply(st,
              "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
              "Content-Length: %zu\r\n\r\n%s",
              n, text);
    memset(text, 'x', 40000);
    add_reply(st, "HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n%.40000s",
              text);
}

static void add_redirect(struct storm *st, int status, const char *to)
{
    add_reply(st,
              "HTTP/1.1 %d Go\r\nLocation: %s\r\nContent-Length: 3\r\n\r\nabc",
              status, to);
}

static void add_replies(struct storm *st)
{
    struct peer *p = st->s.peers;

    add_large_replies(st);
    add_reply(st, "%s", FINE);
    add_reply(st, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n"
                  "10\r\ndata: x\n\ndata: y\r\n4\r\n\n\r\r\r\r\n"
                  "3\r\na\nb\r\n0\r\nTrail: x\r\n\r\n");
    add_reply(st, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                  "data: a\rdata: b\r\rdata: c\r\r");
    add_reply(st, "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 204 None\r\n\r\n");
    add_reply(st, "no HTTP\r\n\r\n");
    add_reply(st, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfour");
    add_redirect(st, 302, url_at(&p[1], "/r"));
    add_redirect(st, 307, url_at(&p[2], "/r"));
    add_redirect(st, 307, "/again");
    add_redirect(st, 303, "http://10.0.0.1/");
    add_redirect(st, 301, "http://none.invalid/");
    add_redirect(st, 308, "ftp://127.0.0.1/");
}

static void forget_who_left(struct peer *p)
{
    int n = 0;

    for (int i = 0; i < p->n_guests; i++) {
        struct guest *g = &p->guests[i];

        if (g->fd >= 0 && !g->is_eof) {
            p->guests[n++] = *g;
            continue;
        }
        guest_hang_up(g);
        buf_fini(&g->heard);
    }
    p->n_guests = n;
    buf_clear(&p->asked);
}

static void serve(struct storm *st, struct peer *p)
{
    forget_who_left(p);
    p->reply = st->replies[roll(st, REPLIES)];
    p->closes = roll(st, 5) == 0 || !strstr(p->reply, "\r\nContent-Length: ");
    for (int i = 0; i < p->n_guests; i++) {
        struct guest *g = &p->guests[i];

        if (g->n_to_send || roll(st, 60))
            continue;
        (roll(st, 2) ? guest_reset : guest_hang_up)(g);
    }
}

/* The weather. */

/* A request without an owner lingers in a lookup or is about to be freed, and
 * the counters match. */
static void check_counts(const struct fetch *f)
{
    size_t n_open = 0, n_lingering = 0, n_resolving = 0;

    for (int s = 0; s < 3; s++)
        for (struct list_node *i = list_first(&f->by_state[s]); i;
             i = list_next(&f->by_state[s], i)) {
            const struct request *r = LIST_OF(i, struct request, node);

            n_open += r->id != 0;
            n_lingering += s == REQUEST_LINGERING;
            n_resolving += r->is_resolving;
            CHECK(r->id || r->is_resolving || list_has(&r->todo));
            CHECK(s != REQUEST_LINGERING || !r->id);
            CHECK(!r->id || r->host_share);
        }
    CHECK(n_open == f->n_open && n_lingering == f->n_lingering);
    CHECK(n_resolving == f->n_resolving);
    CHECK(n_open + n_lingering <= f->opts.max_open);
    CHECK(n_resolving <= (f->opts.max_open + 1) / 2);
    CHECK(f->host_shares.by_key.n <= n_open + n_lingering &&
          map_check(&f->host_shares.by_key));
}

static void step(struct storm *st)
{
    if (st->n_tales == 0 || roll(st, 2))
        begin(st);
    if (st->n_tales && roll(st, 8) == 0)
        act(any_tale(st));
    for (int i = 0; i < SERVERS; i++)
        serve(st, &st->s.peers[i]);
    if (roll(st, 40) == 0)
        st->s.ahead_ms += roll(st, 40);
    if (roll(st, 150) == 0)
        st->s.ahead_ms += 200 * 1000; /* all deadlines there are */
    turn_once(&st->s);
    check_counts(st->s.fetch);
    if (roll(st, 8) == 0)
        wait_a_little(&st->s);
}

static bool storm_init(struct storm *st, uint64_t seed)
{
    struct fetch_opts o = test_opts();

    st->seed = (struct rand_seeded){seed};
    st->rand = rand_seeded(&st->seed);
    CHECK(guard_range_read(STR("127.0.0.0/8"), &st->s.allow[0], NULL) == OK);
    o.guard = (struct guard){st->s.allow, 1};
    o.max_open = 12;
    o.max_per_host = 2;
    o.max_kept = 3;
    if (!stage_try_init(&st->s, o))
        return false;
    for (int i = 0; i < SERVERS; i++)
        peer_open(&st->s, NULL);
    add_replies(st);
    return true;
}

/* Every request is accounted for, and so are all counters. */
static void check_all_over(const struct storm *st)
{
    struct fetch_stats stats = fetch_stats(st->s.fetch);

    for (int i = 0; i < st->n_tales; i++)
        CHECK(st->tales[i].is_over);
    CHECK_INT(st->n_done + st->n_cancelled, st->n_tales);
    CHECK_INT(stats.started_total, st->n_tales);
    CHECK_INT(stats.failed_total, st->n_done - st->n_fine);
    CHECK(stats.open == 0 && stats.lingering == 0);
    CHECK(st->s.fetch->n_resolving == 0 &&
          st->s.fetch->host_shares.by_key.n == 0);
}

static struct storm *rage(uint64_t seed, long fault)
{
    struct storm *st = calloc(1, sizeof(*st));

    CHECK(st);
    if (!storm_init(st, seed)) {
        free(st);
        return NULL;
    }
    fault_arm(fault);
    for (int i = 0; i < STEPS; i++)
        step(st);
    st->is_calm = true;
    fetch_stop(st->s.fetch, stage_stopped, &st->s);
    UNTIL(&st->s, st->s.n_stopped == 1);
    fault_arm(0);
    check_all_over(st);
    fetch_free(st->s.fetch);
    for (int i = 0; i < SERVERS; i++)
        peer_close(&st->s.peers[i]);
    loop_fini(&st->s.loop);
    close(st->s.log.fd);
    return st;
}

TEST(a_storm_passes)
{
    int n_fine = 0, n_failed = 0, n_cancelled = 0;

    for (uint64_t seed = 1; seed <= STORMS; seed++) {
        struct storm *st = rage(seed, 0);

        n_fine += st->n_fine;
        n_failed += st->n_done - st->n_fine;
        n_cancelled += st->n_cancelled;
        free(st);
    }
    /* There was weather of each kind. */
    CHECK(n_fine > STORMS && n_failed > STORMS && n_cancelled > STORMS);
}

TEST(a_storm_with_a_fault_passes)
{
    for (uint64_t seed = 1; seed <= STORMS; seed++)
        free(rage(seed + 1000, (long)(seed * 37 % 900) + 1));
}
