/* TLS as a client sees it: the handshake, data, and every way to end. */
#include "test/lib/tls_stage.h"

/* Whether the loop would wait: no further turn is scheduled. */
static bool is_at_rest(struct stage *s)
{
    return !list_first(&s->loop.at_next_end) && !list_first(&s->loop.at_end);
}

TEST(a_request_is_answered_through_tls)
{
    struct tls_folder f;
    struct stage s;

    tls_stage_init(&s, &f, test_opts());
    check_tls_alive(&s);
    CHECK(s.n_requests == 1);
    CHECK(net_stats(s.net).tls_handshakes_total == 1);
    CHECK(net_stats(s.net).tls_failed_total == 0);
    CHECK(net_stats(s.net).connections_total == 1);
    CHECK(net_stats(s.net).bytes_in_total > 300);
    tls_stage_fini(&s, &f);
}

TEST(both_versions_are_spoken_and_no_older_one)
{
    static const struct {
        int version;
        bool works;
    } all[] = {{TLS1_VERSION, false},
               {TLS1_1_VERSION, false},
               {TLS1_2_VERSION, true},
               {TLS1_3_VERSION, true}};
    struct tls_folder f;
    struct stage s;

    tls_stage_init(&s, &f, test_opts());
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct guest g = guest_new(&s, 0);

        SSL_set_security_level(g.ssl, 0);
        SSL_set_min_proto_version(g.ssl, all[i].version);
        SSL_set_max_proto_version(g.ssl, all[i].version);
        CHECK(guest_meet(&s, &g) == all[i].works);
        CHECK(!all[i].works || SSL_version(g.ssl) == all[i].version);
        guest_free(&g);
    }
    UNTIL(&s, net_stats(s.net).tls_failed_total == 2);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}

TEST(http_1_1_is_agreed_on_and_nothing_newer)
{
    struct tls_folder f;
    struct stage s;
    struct guest g;
    const unsigned char *chosen;
    unsigned n;

    tls_stage_init(&s, &f, test_opts());
    g = guest_new(&s, 0);
    SSL_set_alpn_protos(g.ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    CHECK(guest_meet(&s, &g));
    SSL_get0_alpn_selected(g.ssl, &chosen, &n);
    CHECK(n == 8 && memcmp(chosen, "http/1.1", 8) == 0);
    guest_free(&g);
    g = guest_new(&s, 0);
    SSL_set_alpn_protos(g.ssl, (const unsigned char *)"\x02h2", 3);
    CHECK(!guest_meet(&s, &g));
    guest_free(&g);
    tls_stage_fini(&s, &f);
}

/* What a client would send is caught before the socket and goes out in pieces
 * of a byte each. */
TEST(a_handshake_may_come_byte_by_byte)
{
    struct tls_folder f;
    struct stage s;
    struct guest g;
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    struct heard h = {.n = 0};
    char raw[16384], c;
    bool is_over = false;

    tls_stage_init(&s, &f, test_opts());
    g = guest_new(&s, 0);
    SSL_set_bio(g.ssl, in, out);
    for (int i = 0; i < 100 && !h.is_eof; i++) {
        ssize_t n;

        if (!is_over && guest_shake(&g)) {
            CHECK(!g.is_broken);
            is_over = true;
            guest_say(&g, GET_CLOSE("/slow"));
        }
        while (BIO_read(out, &c, 1) == 1) {
            say_n(g.fd, &c, 1);
            turn(&s, 1);
        }
        turn(&s, 2);
        n = recv(g.fd, raw, sizeof(raw), 0);
        if (n > 0)
            BIO_write(in, raw, (int)n);
        if (is_over)
            guest_hear(&g, &h);
    }
    CHECK(has(&h, "\r\n\r\n/slow") && h.is_eof);
    guest_free(&g);
    tls_stage_fini(&s, &f);
}

TEST(a_handshake_has_a_deadline)
{
    struct tls_folder f;
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    tls_stage_init(&s, &f, test_opts());
    fd = dial(&s);
    turn(&s, 3);
    CHECK(net_stats(s.net).buffered_bytes == 0); /* nothing came yet */
    say_n(fd, "\x16\x03\x01\x02", 4);
    UNTIL(&s, s.net->n_shakes == 1);
    CHECK(net_stats(s.net).buffered_bytes == 0);
    later(&s, s.opts.header_timeout_ms - 1);
    hear(fd, &h);
    CHECK(!h.is_eof && !h.is_reset && is_at_rest(&s));
    later(&s, 1);
    HEAR_UNTIL(&s, fd, &h, h.is_eof || h.is_reset);
    CHECK(h.n == 0 && net_stats(s.net).timeouts_total == 1);
    CHECK(net_stats(s.net).tls_failed_total == 1);
    CHECK(net_stats(s.net).buffered_bytes == 0);
    close(fd);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}

TEST(who_only_looks_whether_the_port_is_open_did_not_fail)
{
    struct tls_folder f;
    struct stage s;

    tls_stage_init(&s, &f, test_opts());
    close(dial(&s));
    UNTIL(&s, net_stats(s.net).connections_total == 1 &&
                  net_stats(s.net).connections == 0);
    CHECK(net_stats(s.net).tls_failed_total == 0);
    tls_stage_fini(&s, &f);
}

TEST(plain_http_on_a_port_of_tls_is_told_so)
{
    static const char *const texts[] = {
        GET("/"), "DELETE /v1/tasks/x HTTP/1.1\r\nHost: h\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\n\r\n"};
    struct tls_folder f;
    struct stage s;
    struct heard h;

    tls_stage_init(&s, &f, test_opts());
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        ask(&s, texts[i], &h);
        CHECK(has(&h, "HTTP/1.1 400 ") && h.is_eof && !h.is_reset);
        CHECK(has(&h, "this port speaks TLS: use https://"));
        CHECK(has(&h, "Connection: close\r\n"));
    }
    CHECK(net_stats(s.net).bad_requests_total == 4);
    CHECK(net_stats(s.net).tls_failed_total == 4);
    CHECK(s.n_requests == 0);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}

TEST(plain_http_byte_by_byte_is_told_so_too)
{
    struct tls_folder f;
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    tls_stage_init(&s, &f, test_opts());
    fd = dial(&s);
    for (const char *p = "GET / HTTP/1.1\r\n\r\n"; *p; p++) {
        say_n(fd, p, 1);
        turn(&s, 2);
    }
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    CHECK(has(&h, "this port speaks TLS: use https://"));
    close(fd);
    tls_stage_fini(&s, &f);
}

TEST(nonsense_is_cut)
{
    struct tls_folder f;
    struct stage s;
    char bytes[512];

    tls_stage_init(&s, &f, test_opts());
    for (int i = 0; i < 64; i++) {
        int fd = dial(&s);

        for (size_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (char)(k * 37 + (size_t)i * 101);
        if (i % 2)
            memcpy(bytes, "\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03", 11);
        say_n(fd, bytes, sizeof(bytes));
        turn(&s, 4);
        close(fd);
    }
    later(&s, s.opts.header_timeout_ms);
    later(&s, LINGER_MS);
    CHECK(net_stats(s.net).connections == 0 && s.n_requests == 0);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}

TEST(a_hello_on_a_plain_port_is_a_bad_request)
{
    struct stage s;
    struct heard h;

    stage_init(&s, test_opts());
    ask(&s, "\x16\x03\x01\x02 and so on", &h);
    CHECK(has(&h, "HTTP/1.1 400 ") && has(&h, "it looks like TLS"));
    stage_fini(&s);
}

TEST(keys_are_not_negotiated_again)
{
    struct tls_folder f;
    struct stage s;
    struct guest g;
    struct heard h = {.n = 0};

    tls_stage_init(&s, &f, test_opts());
    g = guest_new(&s, 0);
    SSL_set_max_proto_version(g.ssl, TLS1_2_VERSION);
    CHECK(guest_meet(&s, &g));
    CHECK(SSL_renegotiate(g.ssl) == 1);
    UNTIL(&s,
          guest_shake(&g) && (g.is_broken || !SSL_renegotiate_pending(g.ssl)));
    CHECK(g.is_broken);
    CHECK(net_stats(s.net).tls_handshakes_total == 1);
    guest_hear(&g, &h);
    guest_free(&g);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}

TEST(many_requests_in_one_record_are_all_answered)
{
    struct tls_folder f;
    struct stage s;
    struct guest g;
    struct heard h = {.n = 0};
    char text[200 * 40] = "";

    tls_stage_init(&s, &f, test_opts());
    for (int i = 0; i < 200; i++)
        strncat(text, GET("/r"), sizeof(text) - strlen(text) - 1);
    g = guest_in(&s);
    guest_say(&g, text);
    GUEST_UNTIL(&s, &g, &h, count(&h, "\r\n\r\n/r") == 200);
    CHECK(s.n_requests == 200);
    guest_free(&g);
    tls_stage_fini(&s, &f);
}

/* While a request is held, reading stops with bytes decrypted or not in TLS.
 * They must neither be forgotten nor keep the loop awake. */
TEST(what_tls_has_read_ahead_is_not_forgotten)
{
    struct tls_folder f;
    struct stage s;
    struct guest g;
    struct heard h = {.n = 0};
    enum { BEHIND = 2000 };
    static char text[BEHIND * 40];
    size_t at = 0;

    tls_stage_init(&s, &f, test_opts());
    for (; at + sizeof(GET("/r")) <= BEHIND * (sizeof(GET("/r")) - 1) + 1;
         at += sizeof(GET("/r")) - 1)
        memcpy(text + at, GET("/r"), sizeof(GET("/r")));
    g = guest_in(&s);
    s.mode = HOLD;
    guest_say(&g, GET("/held"));
    UNTIL(&s, s.n_requests == 1);
    for (size_t sent = 0; sent < at;) {
        int n = SSL_write(g.ssl, text + sent, (int)(at - sent));

        CHECK(n > 0);
        sent += (size_t)n;
    }
    turn(&s, 20);
    CHECK(is_at_rest(&s) && s.n_requests == 1);
    CHECK(net_stats(s.net).buffered_bytes < 400 * 1024);
    s.mode = ANSWER;
    reply_text(&s, s.ids[0], "/held");
    for (int t_left = 20000; s.n_requests <= BEHIND && t_left > 0; t_left--) {
        h.n = 0;
        guest_listen(&s, &g, &h);
    }
    CHECK(s.n_requests == BEHIND + 1);
    turn(&s, 3);
    CHECK(is_at_rest(&s));
    guest_free(&g);
    tls_stage_fini(&s, &f);
}

static void send_all(struct stage *s, struct guest *g, const char *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t sent = 0;

        ERR_clear_error();
        if (SSL_write_ex(g->ssl, p + at, n - at, &sent) != 1)
            CHECK(SSL_get_error(g->ssl, 0) == SSL_ERROR_WANT_WRITE);
        at += sent;
        turn(s, 1);
    }
}

TEST(large_bodies_pass_both_ways)
{
    enum { BODY = 3 << 20 };
    struct tls_folder f;
    struct net_opts opts = test_opts();
    struct stage s;
    struct guest g;
    struct heard h = {.n = 0};
    char *body = malloc(BODY), head[128];
    size_t got = 0, n;

    for (size_t i = 0; i < BODY; i++)
        body[i] = (char)('a' + i * 7 % 26);
    opts.max_body_bytes = BODY;
    tls_stage_init(&s, &f, opts);
    s.reply.body = (struct str){body, BODY};
    g = guest_in(&s);
    n = (size_t)snprintf(head, sizeof(head),
                         "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n"
                         "Connection: close\r\n\r\n",
                         BODY);
    send_all(&s, &g, head, n);
    send_all(&s, &g, body, BODY);
    for (int t_left = 100000; !h.is_eof && t_left > 0; t_left--) {
        char *from;

        h.n = 0;
        guest_listen(&s, &g, &h);
        CHECK(!h.is_reset);
        from = got ? NULL : strstr(h.text, "\r\n\r\n");
        n = h.n - (from ? (size_t)(from + 4 - h.text) : 0);
        CHECK(memcmp(h.text + h.n - n, body + got, n) == 0);
        got += n;
    }
    CHECK(got == BODY && h.is_eof && s.n_requests == 1);
    guest_free(&g);
    tls_stage_fini(&s, &f);
    free(body);
}

/* Ends. */

TEST(an_end_without_its_word_is_a_cut)
{
    struct tls_folder f;
    struct stage s;
    struct guest g;
    struct heard h = {.n = 0};

    tls_stage_init(&s, &f, test_opts());
    s.mode = HOLD;
    g = guest_in(&s);
    guest_say(&g, GET("/1"));
    UNTIL(&s, s.n_requests == 1);
    CHECK(shutdown(g.fd, SHUT_WR) == 0);
    UNTIL(&s, s.n_gone == 1);
    guest_free(&g);
    /* With the word, only no more requests come: this one is answered. */
    g = guest_in(&s);
    guest_say(&g, GET("/2"));
    CHECK(SSL_shutdown(g.ssl) == 0 && shutdown(g.fd, SHUT_WR) == 0);
    UNTIL(&s, s.n_requests == 2);
    turn(&s, 5);
    CHECK(s.n_gone == 1);
    reply_text(&s, s.ids[1], "late");
    GUEST_UNTIL(&s, &g, &h, h.is_eof || h.is_reset);
    CHECK(has(&h, "late") && h.is_eof);
    guest_free(&g);
    tls_stage_fini(&s, &f);
}

TEST(what_is_cut_in_the_middle_ends_without_the_word)
{
    struct tls_folder f;
    struct stage s;
    struct guest g;
    struct heard h = {.n = 0};

    tls_stage_init(&s, &f, test_opts());
    s.mode = STREAM;
    g = guest_in(&s);
    guest_say(&g, GET("/1"));
    GUEST_UNTIL(&s, &g, &h, has(&h, "200 OK"));
    conn_cut(net_find(s.net, s.ids[0]));
    GUEST_UNTIL(&s, &g, &h, h.is_eof || h.is_reset);
    CHECK(h.is_reset && !h.is_eof);
    guest_free(&g);
    tls_stage_fini(&s, &f);
}

TEST(who_is_idle_too_long_is_told_that_it_ends)
{
    struct tls_folder f;
    struct stage s;
    struct guest g;
    struct heard h = {.n = 0};

    tls_stage_init(&s, &f, test_opts());
    g = guest_in(&s);
    turn(&s, 3);
    later(&s, s.opts.idle_timeout_ms);
    GUEST_UNTIL(&s, &g, &h, h.is_eof || h.is_reset);
    CHECK(h.is_eof && net_stats(s.net).idle_closed_total == 1);
    guest_free(&g);
    tls_stage_fini(&s, &f);
}

TEST(stopping_cuts_handshakes_and_lets_requests_finish)
{
    struct tls_folder f;
    struct stage s;
    struct guest g, half, idle;
    struct heard h = {.n = 0}, said = {.n = 0};

    tls_stage_init(&s, &f, test_opts());
    s.mode = HOLD;
    g = guest_in(&s);
    idle = guest_in(&s);
    half = guest_new(&s, 0);
    CHECK(!guest_shake(&half));
    guest_say(&g, GET("/1"));
    UNTIL(&s, s.n_requests == 1);
    turn(&s, 3);
    net_stop(s.net, 1000, stage_done, &s);
    UNTIL(&s, net_stats(s.net).connections == 1);
    guest_hear(&idle, &said);
    CHECK(said.is_eof);
    reply_text(&s, s.ids[0], "late");
    GUEST_UNTIL(&s, &g, &h, h.is_eof);
    CHECK(has(&h, "late"));
    guest_free(&g);
    guest_free(&half);
    guest_free(&idle);
    stage_await_stop(&s);
    folder_fini(&f);
}

/* Limits. */

TEST(one_too_many_is_told_through_tls)
{
    struct tls_folder f;
    struct net_opts opts = test_opts();
    struct stage s;
    struct guest g, more;
    struct heard h = {.n = 0};

    opts.max_connections = 1;
    tls_stage_init(&s, &f, opts);
    g = guest_in(&s);
    s.mode = HOLD; /* who is at work makes no room */
    guest_say(&g, GET("/held"));
    UNTIL(&s, s.n_requests == 1);
    s.mode = ANSWER;
    more = guest_in(&s);
    GUEST_UNTIL(&s, &more, &h, h.is_eof || h.is_reset);
    CHECK(has(&h, "HTTP/1.1 503 ") && has(&h, "Retry-After") && h.is_eof);
    CHECK(net_stats(s.net).refused_total == 1);
    guest_free(&more);
    guest_free(&g);
    UNTIL(&s, net_stats(s.net).connections == 0);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}

TEST(those_turned_away_are_few_and_not_for_long)
{
    struct tls_folder f;
    struct net_opts opts = test_opts();
    struct stage s;
    int fds[AWAY_MAX + 8];

    opts.max_connections = 0;
    tls_stage_init(&s, &f, opts);
    for (int i = 0; i < AWAY_MAX + 8; i++)
        fds[i] = dial(&s);
    UNTIL(&s, net_stats(s.net).refused_total == AWAY_MAX + 8);
    CHECK(net_stats(s.net).connections == AWAY_MAX);
    later(&s, s.opts.header_timeout_ms);
    UNTIL(&s, net_stats(s.net).connections == 0);
    for (int i = 0; i < AWAY_MAX + 8; i++)
        close(fds[i]);
    tls_stage_fini(&s, &f);
}

/* A stream for a client that reads nothing by itself. */
static struct guest slow_guest(struct stage *s)
{
    struct guest g = guest_new(s, SMALL_BUFFER);

    CHECK(guest_meet(s, &g));
    s->mode = STREAM;
    guest_say(&g, GET("/stream"));
    UNTIL(s, s->n_requests == 1);
    keep_sndbuf(net_find(s->net, s->ids[0]), SMALL_BUFFER);
    return g;
}

/* Until the kernel takes no more, and neither do we. */
static void fill(struct stage *s, size_t n)
{
    static char piece[10000];
    enum err e = OK;

    memset(piece, 'p', sizeof(piece));
    for (int i = 0; i < 5000 && !e; i++) {
        e = net_stream_send(s->net, s->ids[0], (struct str){piece, n});
        turn(s, 1);
    }
    CHECK(e == ERR_BUSY);
}

TEST(a_slow_reader_is_bounded_and_cut_in_the_end)
{
    struct tls_folder f;
    struct stage s;
    struct net_opts opts = test_opts();
    struct guest g;

    opts.max_unsent_bytes = MUCH_UNSENT;
    tls_stage_init(&s, &f, opts);
    g = slow_guest(&s);
    fill(&s, 5000);
    CHECK(is_at_rest(&s));
    CHECK(net_stats(s.net).unsent_bytes > MUCH_UNSENT);
    CHECK(net_stats(s.net).unsent_bytes < MUCH_UNSENT + 6000);
    CHECK(net_stats(s.net).buffered_bytes < 2 * MUCH_UNSENT + 72 * 1024);
    later_it_is_cut(&s, &s.n_gone);
    UNTIL(&s, net_stats(s.net).connections == 0);
    CHECK(net_stats(s.net).timeouts_total == 1);
    CHECK(net_stats(s.net).buffered_bytes == 0);
    guest_free(&g);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}

/* Hear more, and keep of what was heard before what may be half a word;
 * returns how much. */
static size_t guest_hear_more(struct stage *s, struct guest *g, struct heard *h)
{
    size_t kept = h->n < 16 ? h->n : 16;

    memmove(h->text, h->text + h->n - kept, kept);
    h->n = kept;
    guest_listen(s, g, h);
    CHECK(!h->is_eof && !h->is_reset);
    if (h->n == kept)
        wait_for_some(s, g->fd, 0);
    return h->n - kept;
}

TEST(a_slow_reader_gets_everything_and_room_is_told)
{
    struct tls_folder f;
    struct stage s;
    struct guest g;
    struct heard h = {.n = 0};
    size_t got = 0;

    tls_stage_init(&s, &f, test_opts());
    g = slow_guest(&s);
    fill(&s, 5000);
    while (s.n_room == 0)
        got += guest_hear_more(&s, &g, &h);
    CHECK(s.n_room == 1);
    net_stream_end(s.net, s.ids[0]);
    while (!has(&h, "\r\n0\r\n\r\n"))
        got += guest_hear_more(&s, &g, &h);
    CHECK(got > 65536);
    CHECK(net_stats(s.net).buffered_bytes == 0);
    guest_free(&g);
    tls_stage_fini(&s, &f);
}

/* The last word is a record like others, and there may be no room for it. */
static struct conn *without_room_for_the_last_word(struct stage *s,
                                                   struct guest *g)
{
    struct conn *c;

    s->mode = STREAM;
    *g = guest_in(s);
    guest_say(g, GET("/stream"));
    UNTIL(s, s->n_requests == 1);
    c = net_find(s->net, s->ids[0]);
    c->keeps_alive = false;
    turn(s, 3);
    fault_arm_at("tls.full", 2);
    net_stream_end(s->net, s->ids[0]);
    UNTIL(s, fault_fired());
    CHECK(c->state == CONN_DRAIN && c->is_blocked && !conn_unsent_bytes(c));
    return c;
}

TEST(the_last_word_waits_for_room)
{
    struct tls_folder f;
    struct stage s;
    struct guest g;
    struct heard h = {.n = 0};

    tls_stage_init(&s, &f, test_opts());
    without_room_for_the_last_word(&s, &g);
    GUEST_UNTIL(&s, &g, &h, h.is_eof || h.is_reset);
    CHECK(h.is_eof && has(&h, "\r\n0\r\n\r\n"));
    turn(&s, 3);
    CHECK(is_at_rest(&s));
    guest_free(&g);
    tls_stage_fini(&s, &f);
}

TEST(a_last_word_that_nobody_makes_room_for_is_given_up)
{
    struct tls_folder f;
    struct stage s;
    struct guest g;

    tls_stage_init(&s, &f, test_opts());
    /* The kernel will never tell of room. */
    uv_poll_stop(&without_room_for_the_last_word(&s, &g)->poll);
    later(&s, s.opts.write_timeout_ms - 1);
    CHECK(net_stats(s.net).connections == 1);
    later(&s, 1);
    UNTIL(&s, net_stats(s.net).connections == 0);
    CHECK(net_stats(s.net).timeouts_total == 1);
    guest_free(&g);
    tls_stage_fini(&s, &f);
}

/* A key change must be answered, out of a read. */
TEST(new_keys_are_answered_also_when_there_is_no_room)
{
    for (int is_full = 0; is_full < 2; is_full++) {
        struct tls_folder f;
        struct stage s;
        struct guest g;
        struct heard h = {.n = 0};

        tls_stage_init(&s, &f, test_opts());
        g = guest_in(&s);
        turn(&s, 3);
        CHECK(SSL_key_update(g.ssl, SSL_KEY_UPDATE_REQUESTED) == 1);
        if (is_full)
            fault_arm_at("tls.full", 1);
        guest_say(&g, GET_CLOSE("/new"));
        GUEST_UNTIL(&s, &g, &h, h.is_eof || h.is_reset);
        CHECK(has(&h, "\r\n\r\n/new") && h.is_eof);
        CHECK(fault_fired() == is_full);
        guest_free(&g);
        tls_stage_fini(&s, &f);
    }
}

/* A client that asks for new keys again and again while it reads nothing.
 * OpenSSL 3.0 has no way to answer the second time, and we are cut off; that
 * we go on reading while we wait to write matters more. */
TEST(new_keys_for_a_slow_reader_harm_nobody_else)
{
    struct tls_folder f;
    struct stage s;
    struct guest g;

    tls_stage_init(&s, &f, test_opts());
    g = slow_guest(&s);
    fill(&s, 5000);
    for (int i = 0; i < 5; i++) {
        if (SSL_key_update(g.ssl, SSL_KEY_UPDATE_REQUESTED) == 1)
            (void)SSL_do_handshake(g.ssl);
        turn(&s, 3);
        CHECK(is_at_rest(&s));
    }
    CHECK(net_stats(s.net).connections == !s.n_gone);
    guest_free(&g);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}

TEST(a_session_is_resumed_until_the_keys_of_tickets_change)
{
    struct tls_folder f;
    struct stage s;
    SSL_SESSION *session;
    struct guest g;
    struct heard h = {.n = 0};

    tls_stage_init(&s, &f, test_opts());
    g = guest_in(&s);
    guest_say(&g, GET("/"));
    GUEST_UNTIL(&s, &g, &h, has(&h, "200 OK")); /* the ticket comes with it */
    session = SSL_get1_session(g.ssl);
    CHECK(SSL_SESSION_is_resumable(session));
    SSL_shutdown(g.ssl); /* without it the session cannot be resumed */
    guest_free(&g);
    for (int round = 0; round < 3; round++) {
        g = guest_new(&s, 0);
        SSL_set_session(g.ssl, session);
        CHECK(guest_meet(&s, &g));
        CHECK(SSL_session_reused(g.ssl) == (round < 1));
        SSL_shutdown(g.ssl);
        guest_free(&g);
        if (round == 0) {
            struct why why;

            CHECK(net_set_certs(s.net, f.files, 1, &why) == OK);
        }
    }
    SSL_SESSION_free(session);
    tls_stage_fini(&s, &f);
}

TEST(the_keys_of_tickets_do_not_live_long)
{
    struct tls_folder f;
    struct stage s;
    unsigned char before[80], after[80];

    tls_stage_init(&s, &f, test_opts());
    SSL_CTX_get_tlsext_ticket_keys(cert_ctx(s.net), before, sizeof(before));
    later(&s, 12 * 3600 * 1000 - 1);
    SSL_CTX_get_tlsext_ticket_keys(cert_ctx(s.net), after, sizeof(after));
    CHECK(memcmp(before, after, sizeof(after)) == 0);
    later(&s, 1);
    SSL_CTX_get_tlsext_ticket_keys(cert_ctx(s.net), after, sizeof(after));
    CHECK(memcmp(before, after, sizeof(after)) != 0);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}
