/* Many clients that act at random, through TLS and past it: half handshakes,
 * half requests, bytes that are no record, key changes, leaving at any time.
 * Nothing is expected of them, but the server's counters are right after every
 * turn, nothing is left over, and the next client is served. The dice are
 * seeded, so that a failure can be repeated. */
#include "test/lib/tls_stage.h"

enum { GUESTS = 12, STEPS = 8000 };

struct storm {
    struct stage s;
    struct guest g[GUESTS];
    struct heard h;
    uint64_t dice;
};

static uint32_t roll(struct storm *st, uint32_t n)
{
    st->dice = st->dice * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(st->dice >> 33) % n;
}

static void say_some(struct storm *st, struct guest *g)
{
    static const char *const texts[] = {
        GET("/a"),
        GET("/a") GET("/b") GET_CLOSE("/c"),
        "GET /half HTTP/1.1\r\nHo",
        "st: h\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 4000\r\n\r\nabc",
        "NONSENSE\r\n\r\n",
        GET("/stream"),
    };
    const char *text = texts[roll(st, sizeof(texts) / sizeof(*texts))];

    (void)SSL_write(g->ssl, text, (int)strlen(text));
}

static void say_raw(struct storm *st, struct guest *g)
{
    char bytes[64];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)roll(st, 256);
    if (roll(st, 2))
        memcpy(bytes, "\x17\x03\x03\x00\x20", 5);
    (void)!send(g->fd, bytes, 1 + roll(st, sizeof(bytes)), MSG_NOSIGNAL);
}

/* Every stream there is: goes on, or ends. */
static void go_on_streaming(struct storm *st, bool ends)
{
    static char piece[20000];
    struct net *n = st->s.net;

    for (uint32_t i = 0; i < n->n_slots; i++) {
        struct conn *c = n->slots[i].c;

        if (!c || c->state != CONN_STREAM)
            continue;
        if (ends || roll(st, 20) == 0)
            net_stream_end(n, c->id);
        else
            (void)!net_stream_send(n, c->id,
                                   (struct str){piece, roll(st, 20000)});
    }
}

static void act(struct storm *st, struct guest *g)
{
    bool is_met = g->fd >= 0 && SSL_is_init_finished(g->ssl);
    uint32_t what = roll(st, 80);

    if (g->fd < 0)
        *g = guest_new(&st->s, roll(st, 2) ? 4096 : 0);
    else if (what == 0)
        guest_free(g);
    else if (what == 1)
        say_raw(st, g);
    else if (what == 2)
        shutdown(g->fd, SHUT_WR);
    else if (!is_met)
        (void)guest_shake(g);
    else if (what == 3)
        (void)SSL_shutdown(g->ssl);
    else if (what == 4)
        (void)SSL_key_update(g->ssl, (int)roll(st, 2));
    else if (what < 30)
        say_some(st, g);
    else {
        st->h = (struct heard){.n = 0};
        guest_hear(g, &st->h);
        if (st->h.is_eof || st->h.is_reset)
            guest_free(g);
    }
    ERR_clear_error();
}

static void rage(struct storm *st)
{
    for (int i = 0; i < STEPS; i++) {
        st->s.mode = roll(st, 4) ? ANSWER : STREAM;
        act(st, &st->g[roll(st, GUESTS)]);
        if (roll(st, 3) == 0)
            turn(&st->s, 1);
        if (roll(st, 50) == 0)
            go_on_streaming(st, false);
        if (roll(st, 200) == 0)
            later(&st->s, roll(st, 2000));
    }
}

TEST(a_storm_leaves_nothing_behind)
{
    struct net_opts opts = test_opts();

    opts.max_connections = GUESTS - 2;
    opts.max_unsent_bytes = 16384;
    opts.max_buffered_bytes = 1 << 20;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        static struct storm st;
        struct tls_folder f;

        st = (struct storm){.dice = seed};
        tls_stage_init(&st.s, &f, opts);
        for (int i = 0; i < GUESTS; i++)
            st.g[i].fd = -1;
        rage(&st);
        for (int i = 0; i < GUESTS; i++)
            if (st.g[i].fd >= 0)
                guest_free(&st.g[i]);
        for (int i = 0; i < 40 && net_stats(st.s.net).connections; i++) {
            go_on_streaming(&st, true);
            later(&st.s, 1000);
        }
        CHECK(net_stats(st.s.net).connections == 0);
        CHECK(net_stats(st.s.net).buffered_bytes == 0);
        CHECK(net_stats(st.s.net).requests_total > 100);
        CHECK(net_stats(st.s.net).tls_handshakes_total > 20);
        check_tls_alive(&st.s);
        tls_stage_fini(&st.s, &f);
    }
}
