/* Limits of a peer's use of TLS: bytes and records in a turn, records without
 * payload, the length of a handshake, and the number of handshakes. */
#include "test/lib/tls_stage.h"

/* A client whose records are caught before the socket. */
struct caught {
    struct guest g;
    BIO *in, *out;
    char *text; /* records made and not sent yet, from at on */
    size_t n, cap, at;
};

static void caught_gather(struct caught *c)
{
    long n = BIO_pending(c->out);

    if (n <= 0)
        return;
    if (c->n + (size_t)n > c->cap) {
        c->cap = 2 * (c->n + (size_t)n);
        c->text = realloc(c->text, c->cap);
        CHECK(c->text);
    }
    CHECK(BIO_read(c->out, c->text + c->n, (int)n) == n);
    c->n += (size_t)n;
}

/* As much as the kernel takes. True: all of it. */
static bool caught_send(struct caught *c)
{
    while (c->at < c->n) {
        ssize_t n = send(c->g.fd, c->text + c->at, c->n - c->at, MSG_NOSIGNAL);

        if (n < 0)
            return false;
        c->at += (size_t)n;
    }
    c->n = c->at = 0;
    return true;
}

static void caught_take(struct caught *c)
{
    char raw[16384];
    ssize_t n;

    while ((n = recv(c->g.fd, raw, sizeof(raw), 0)) > 0)
        CHECK(BIO_write(c->in, raw, (int)n) == n);
}

static struct caught caught_new(struct stage *s)
{
    struct caught c = {.g = guest_new(s, 0)};

    c.in = BIO_new(BIO_s_mem());
    c.out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(c.in, -1);
    SSL_set_bio(c.g.ssl, c.in, c.out);
    return c;
}

static void caught_step(struct stage *s, struct caught *c)
{
    caught_gather(c);
    CHECK(caught_send(c));
    turn(s, 2);
    wait_for_some(s, c->g.fd, 0);
    caught_take(c);
}

static struct caught caught_in(struct stage *s, int version)
{
    struct caught c = caught_new(s);

    SSL_set_min_proto_version(c.g.ssl, version);
    SSL_set_max_proto_version(c.g.ssl, version);
    for (int i = 0; i < TURNS && !guest_shake(&c.g); i++)
        caught_step(s, &c);
    CHECK(SSL_is_init_finished(c.g.ssl));
    caught_step(s, &c);
    return c;
}

static void caught_free(struct caught *c)
{
    free(c->text);
    guest_free(&c->g);
}

/* New keys, without a word of payload. */
static void change_keys(struct caught *c, int n, int how)
{
    for (int i = 0; i < n; i++) {
        CHECK(SSL_key_update(c->g.ssl, how) == 1);
        CHECK(SSL_do_handshake(c->g.ssl) == 1);
        caught_gather(c);
    }
}

/* Send all of it; never does a turn take more than it may. */
static void check_turns(struct stage *s, struct caught *c, bool is_cut)
{
    int64_t most = 0;

    for (int i = 0; i < TURNS && s->n_requests == 0; i++) {
        int64_t before = net_stats(s->net).bytes_in_total, taken;

        (void)caught_send(c);
        turn_once(s);
        wait_for_some(s, -1, i);
        taken = net_stats(s->net).bytes_in_total - before;
        most = taken > most ? taken : most;
        if (is_cut && net_stats(s->net).connections == 0)
            break;
    }
    if (most > READ_BYTES)
        T_FAIL("%" PRId64 " bytes in one turn", most);
    CHECK(most > 0);
}

TEST(one_byte_records_are_read_turn_by_turn)
{
    enum { BODY = 60000 };
    struct net_opts opts = test_opts();
    struct tls_folder f;
    struct stage s;
    struct caught c;

    opts.max_body_bytes = BODY;
    tls_stage_init(&s, &f, opts);
    c = caught_in(&s, TLS1_3_VERSION);
    guest_say(&c.g, "POST /b HTTP/1.1\r\nHost: h\r\n"
                    "Content-Length: 60000\r\n\r\n");
    for (int i = 0; i < BODY; i++)
        CHECK(SSL_write(c.g.ssl, "x", 1) == 1);
    caught_gather(&c);
    CHECK(c.n > 16 * READ_BYTES);
    check_turns(&s, &c, false);
    CHECK(s.n_requests == 1);
    caught_free(&c);
    tls_stage_fini(&s, &f);
}

TEST(new_keys_without_end_are_cut)
{
    struct tls_folder f;
    struct stage s;
    struct caught c;

    tls_stage_init(&s, &f, test_opts());
    c = caught_in(&s, TLS1_3_VERSION);
    change_keys(&c, 20000, SSL_KEY_UPDATE_NOT_REQUESTED);
    CHECK(c.n > 4 * READ_BYTES);
    check_turns(&s, &c, true);
    CHECK(net_stats(s.net).connections == 0);
    caught_free(&c);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}

/* Asked a second time OpenSSL answers the first out of a read, which had bytes
 * too, and there is no room: the answer goes out once there is, without another
 * byte of the client's. */
TEST(an_answer_to_new_keys_behind_bytes_waits_for_room)
{
    struct tls_folder f;
    struct stage s;
    struct caught c;
    int64_t sent;

    tls_stage_init(&s, &f, test_opts());
    c = caught_in(&s, TLS1_3_VERSION);
    guest_say(&c.g, "GET /1 HTTP/1.1\r\n");
    change_keys(&c, 2, SSL_KEY_UPDATE_REQUESTED);
    fault_arm_at("tls.full", 1);
    sent = net_stats(s.net).bytes_out_total;
    CHECK(caught_send(&c));
    UNTIL(&s, fault_fired());
    UNTIL(&s, net_stats(s.net).bytes_out_total > sent);
    guest_say(&c.g, "Host: h\r\n\r\n");
    caught_step(&s, &c);
    UNTIL(&s, s.n_requests == 1);
    caught_free(&c);
    tls_stage_fini(&s, &f);
}

/* Whether a request is still answered after n changes of keys. */
static bool is_served_after(struct stage *s, struct caught *c, int n)
{
    int before = s->n_requests;

    change_keys(c, n, SSL_KEY_UPDATE_NOT_REQUESTED);
    guest_say(&c->g, GET("/after"));
    caught_step(s, c);
    turn(s, 3);
    return s->n_requests == before + 1;
}

TEST(a_few_new_keys_a_minute_are_fine)
{
    struct net_opts opts = test_opts();
    struct tls_folder f;
    struct stage s;
    struct caught c;

    opts.idle_timeout_ms = 10 * TLS_BARE_MS;
    tls_stage_init(&s, &f, opts);
    c = caught_in(&s, TLS1_3_VERSION);
    for (int i = 0; i < 3; i++) {
        CHECK(is_served_after(&s, &c, TLS_BARE_RECORDS));
        later(&s, TLS_BARE_MS);
    }
    /* Payload in between does not make it better. */
    CHECK(is_served_after(&s, &c, TLS_BARE_RECORDS / 2));
    CHECK(is_served_after(&s, &c, TLS_BARE_RECORDS / 2));
    later(&s, TLS_BARE_MS - 1);
    CHECK(!is_served_after(&s, &c, 1));
    CHECK(net_stats(s.net).connections == 0);
    caught_free(&c);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}

/* Handshakes. */

static bool is_cut(struct stage *s, int fd)
{
    struct heard h = {.n = 0};

    turn(s, 4);
    hear(fd, &h);
    return h.is_eof || h.is_reset;
}

TEST(a_hello_that_is_to_be_too_long_is_cut)
{
    static const struct {
        const char *text;
        size_t n;
        bool is_cut;
    } all[] = {
        {"\x16\x03\x01\x00\x04\x01\x00\x40\x00", 9, false},
        {"\x16\x03\x01\x00\x04\x01\x00\x40\x01", 9, true},
        {"\x16\x03\x01\x00\x04\x01\x01\xff\xff", 9, true},
        {"\x16\x03\x01\x00\x01\x01\x16\x03\x01\x00\x01\x02", 12, false},
        {"\x16\x03\x01\x00\x01\x01\x16\x03\x01\x00\x03\x01\x00\x00", 14, true},
    };
    struct tls_folder f;
    struct stage s;
    int64_t n_failed = 0;

    tls_stage_init(&s, &f, test_opts());
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        int fd = dial(&s);

        say_n(fd, all[i].text, all[i].n);
        CHECK(is_cut(&s, fd) == all[i].is_cut);
        n_failed += all[i].is_cut;
        CHECK(net_stats(s.net).tls_failed_total == n_failed);
        close(fd);
        UNTIL(&s, net_stats(s.net).connections == 0);
        n_failed = net_stats(s.net).tls_failed_total;
    }
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}

/* The client's first hello does not have the curve that we want. */
static struct caught caught_again(struct stage *s)
{
    struct caught c = caught_new(s);

    SSL_CTX_set1_groups_list(cert_ctx(s->net), "P-256");
    SSL_set1_groups_list(c.g.ssl, "X25519:P-256");
    CHECK(!guest_shake(&c.g));
    caught_step(s, &c);
    CHECK(s->net->n_shakes == 1);
    return c;
}

TEST(a_second_hello_is_watched_like_the_first)
{
    struct tls_folder f;
    struct stage s;
    struct caught c;

    tls_stage_init(&s, &f, test_opts());
    c = caught_again(&s);
    for (int i = 0; i < 5 && !guest_shake(&c.g); i++)
        caught_step(&s, &c);
    CHECK(SSL_is_init_finished(c.g.ssl));
    caught_free(&c);
    c = caught_again(&s);
    say_n(c.g.fd, "\x14\x03\x03\x00\x01\x01", 6);
    say_n(c.g.fd, "\x16\x03\x03\x00\x04\x01\x01\x00\x00", 9);
    CHECK(is_cut(&s, c.g.fd));
    caught_free(&c);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}

/* A hello that is just not too long, each byte of it in a record of its own. */
TEST(a_handshake_takes_no_more_than_so_many_bytes)
{
    enum { CRUMB = 6 };
    static char crumbs[(4 + TLS_HELLO_BYTES) * CRUMB];
    struct tls_folder f;
    struct stage s;
    int fd;

    for (size_t i = 0; i < sizeof(crumbs); i += CRUMB)
        memcpy(crumbs + i, "\x16\x03\x01\x00\x01\x00", CRUMB);
    crumbs[CRUMB - 1] = 1;      /* a hello */
    crumbs[3 * CRUMB - 1] = 64; /* of 64 times 256 bytes */
    tls_stage_init(&s, &f, test_opts());
    fd = dial(&s);
    say_n(fd, crumbs, TLS_SHAKE_RAW_BYTES);
    CHECK(!is_cut(&s, fd));
    CHECK(net_stats(s.net).bytes_in_total == TLS_SHAKE_RAW_BYTES);
    CHECK(s.net->n_shakes == 1);
    say_n(fd, crumbs + TLS_SHAKE_RAW_BYTES, 1);
    CHECK(is_cut(&s, fd) && net_stats(s.net).tls_failed_total == 1);
    close(fd);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}

enum { SHAKES = 4 };

static void stall(struct stage *s, int fds[], int n)
{
    for (int i = 0; i < n; i++) {
        fds[i] = dial(s);
        say_n(fds[i], "\x16", 1);
        turn(s, 3);
    }
}

TEST(one_handshake_too_many_cuts_the_oldest)
{
    struct tls_folder f;
    struct stage s;
    int fds[SHAKES];

    tls_stage_init(&s, &f, test_opts());
    s.net->max_shakes = SHAKES;
    stall(&s, fds, SHAKES);
    CHECK(s.net->n_shakes == SHAKES && net_stats(s.net).tls_cut_total == 0);
    for (int i = 0; i < SHAKES; i++)
        CHECK(!is_cut(&s, fds[i]));
    check_tls_alive(&s); /* one more, and it gets in */
    CHECK(net_stats(s.net).tls_cut_total == 1);
    CHECK(net_stats(s.net).tls_failed_total == 1);
    CHECK(is_cut(&s, fds[0]) && !is_cut(&s, fds[1]));
    CHECK(s.net->n_shakes == SHAKES - 1); /* it is through */
    check_tls_alive(&s);
    CHECK(net_stats(s.net).tls_cut_total == 1);
    close(fds[1]);
    UNTIL(&s, s.net->n_shakes == SHAKES - 2);
    for (int i = 0; i < SHAKES; i++)
        if (i != 1)
            close(fds[i]);
    UNTIL(&s, net_stats(s.net).connections == 0 && s.net->n_shakes == 0);
    tls_stage_fini(&s, &f);
}

/* Connections without a handshake are not affected, nor is a partial request,
 * through TLS or not. */
TEST(handshakes_that_stay_harm_nobody_else)
{
    struct net_opts opts = test_opts();
    struct tls_folder f;
    struct stage s;
    struct guest half;
    struct heard h = {.n = 0}, plain = {.n = 0}, fresh;
    struct why why;
    uint16_t tls_port;
    int fds[4 * SHAKES], fd;

    opts.max_connections = 64;
    opts.max_buffered_bytes = 64 * 1024;
    tls_stage_init(&s, &f, opts);
    s.net->max_shakes = SHAKES;
    CHECK(net_listen(s.net, STR("127.0.0.1:0"), false, &why) == OK);
    tls_port = s.port;
    half = guest_in(&s);
    guest_say(&half, "GET /half HTTP/1.1\r\n");
    s.port = stage_port(&s);
    fd = dial(&s);
    say(fd, "GET /plain HTTP/1.1\r\n");
    turn(&s, 3);
    s.port = tls_port;
    stall(&s, fds, 4 * SHAKES);
    CHECK(s.net->n_shakes == SHAKES);
    CHECK(net_stats(s.net).tls_cut_total == 3 * SHAKES);
    guest_say(&half, "Host: h\r\n\r\n");
    GUEST_UNTIL(&s, &half, &h, has(&h, "\r\n\r\n/half"));
    say(fd, "Host: h\r\n\r\n");
    HEAR_UNTIL(&s, fd, &plain, has(&plain, "\r\n\r\n/plain"));
    check_tls_alive(&s);
    s.port = stage_port(&s);
    ask(&s, GET_CLOSE("/new"), &fresh);
    CHECK(has(&fresh, "\r\n\r\n/new"));
    CHECK(net_stats(s.net).overloaded_total == 0);
    CHECK(net_stats(s.net).refused_total == 0);
    for (int i = 0; i < 4 * SHAKES; i++)
        close(fds[i]);
    close(fd);
    guest_free(&half);
    tls_stage_fini(&s, &f);
}
