/* TLS as a client: the dialled server must prove its name. The server is that
 * of the stage, and the client a connection of the same net. */
#include "test/lib/tls_stage.h"

struct dial {
    int n_open, n_gone;
    char why[512];
    char got[256];
    size_t n_got;
};

static struct dial seen;

static void dial_open(struct conn *c)
{
    seen.n_open++;
    conn_move(c, CONN_OPEN, INT64_MAX);
    CHECK(conn_reserve(c, 128));
    buf_add_str(&c->out, STR(GET("/dialled")));
    conn_kick(c);
}

static void dial_bytes(struct conn *c, char *p, size_t n)
{
    (void)c;
    CHECK(n <= sizeof(seen.got) - 1 - seen.n_got);
    memcpy(seen.got + seen.n_got, p, n);
    seen.n_got += n;
}

static void dial_nothing(struct conn *c)
{
    (void)c;
}

static void dial_gone(struct conn *c, uint64_t id, enum conn_cut cut)
{
    (void)id;
    (void)cut;
    seen.n_gone++;
    snprintf(seen.why, sizeof(seen.why), "%s", tls_why(c->net));
}

static const struct speech dial_speech = {
    .open = dial_open,
    .bytes = dial_bytes,
    .eof = conn_cut,
    .turn = dial_nothing,
    .sent = dial_nothing,
    .timeout = conn_cut,
    .gone = dial_gone,
};

/* NULL: it could not be begun, or is over already. */
static struct conn *dial_tls(struct stage *s, const char *host,
                             const char *ca_file, struct why *why)
{
    struct conn *c = conn_new(s->net, dial(s), "server", false);

    seen = (struct dial){.n_open = 0};
    if (!c)
        return NULL;
    c->speech = &dial_speech;
    if (tls_connect(c, host, ca_file, 1000, why) == OK)
        return c;
    conn_cut(c);
    return NULL;
}

static void check_served(struct stage *s, const char *host, const char *ca_file)
{
    struct why why = {""};
    struct conn *c = dial_tls(s, host, ca_file, &why);

    CHECK(c);
    UNTIL(s, seen.n_gone || strstr(seen.got, "\r\n\r\n/dialled"));
    CHECK(seen.n_open == 1 && seen.n_gone == 0);
    CHECK(net_stats(s->net).buffered_bytes == 0);
    conn_cut(c);
    turn(s, 3);
}

static void check_refused(struct stage *s, const char *host,
                          const char *ca_file, const char *words)
{
    struct why why = {""};
    struct conn *c = dial_tls(s, host, ca_file, &why);
    int n_before = s->n_requests;

    CHECK(c);
    UNTIL(s, seen.n_gone == 1);
    CHECK(seen.n_open == 0 && s->n_requests == n_before);
    if (!strstr(seen.why, words))
        T_FAIL("\"%s\" has no \"%s\"", seen.why, words);
    turn(s, 3);
}

TEST(a_server_with_the_right_certificate_is_spoken_to)
{
    struct tls_folder f;
    struct stage s;

    tls_stage_init(&s, &f, test_opts());
    check_served(&s, "localhost", f.cert[0]);
    check_served(&s, "LocalHost", f.cert[0]);
    check_served(&s, "127.0.0.1", f.cert[0]);
    tls_stage_fini(&s, &f);
}

TEST(the_name_is_sent_so_that_the_right_certificate_comes)
{
    struct tls_folder f;
    struct stage s;
    struct why why;
    char both[512];

    tls_stage_init(&s, &f, test_opts());
    folder_put(&f, 1, &s, (struct cert_wish){.san = "DNS:*.b.example"});
    CHECK(net_set_certs(s.net, f.files, 2, &why) == OK);
    snprintf(both, sizeof(both), "cat %s >> %s", f.cert[0], f.cert[1]);
    CHECK(system(both) == 0);
    check_served(&s, "x.b.example", f.cert[1]);
    check_served(&s, "127.0.0.1", f.cert[1]);
    check_refused(&s, "x.y.b.example", f.cert[1],
                  "not made out to x.y.b.example");
    tls_stage_fini(&s, &f);
}

/* DNS has a dot at the end of a name that is whole; TLS has none. */
TEST(a_dot_at_the_end_of_a_name_is_not_part_of_it)
{
    struct tls_folder f;
    struct stage s;
    struct why why;

    tls_stage_init(&s, &f, test_opts());
    folder_put(&f, 1, &s, (struct cert_wish){.san = "DNS:b.example"});
    CHECK(net_set_certs(s.net, f.files, 2, &why) == OK);
    check_served(&s, "localhost.", f.cert[0]);
    check_served(&s, "b.example.", f.cert[1]);
    check_refused(&s, "c.example.", f.cert[0], "not made out to c.example");
    tls_stage_fini(&s, &f);
}

TEST(a_name_that_is_only_the_subject_does_not_count)
{
    struct tls_folder f;
    struct stage s;
    struct why why;

    tls_stage_init(&s, &f, test_opts());
    folder_put(
        &f, 0, &s,
        (struct cert_wish){.san = "email:a@b.example", .cn = "localhost"});
    CHECK(net_set_certs(s.net, f.files, 1, &why) == OK);
    check_refused(&s, "localhost", f.cert[0], "not made out to localhost");
    tls_stage_fini(&s, &f);
}

TEST(a_server_that_is_not_who_it_says_is_not_spoken_to)
{
    struct tls_folder f;
    struct stage s;

    tls_stage_init(&s, &f, test_opts());
    folder_put(&f, 1, &s, (struct cert_wish){.san = NULL});
    check_refused(&s, "other.example", f.cert[0],
                  "is not made out to other.example");
    check_refused(&s, "192.0.2.1", f.cert[0], "is not made out to 192.0.2.1");
    check_refused(&s, "localhost", NULL, "is signed by itself alone");
    check_refused(&s, "localhost", NULL, "of localhost");
    later(&s, 91LL * DAY_S * 1000);
    check_refused(&s, "localhost", f.cert[0],
                  "certificate of localhost has expired");
    s.time.wall_ms -= 92LL * DAY_S * 1000;
    check_refused(&s, "localhost", f.cert[0], "is not valid yet");
    tls_stage_fini(&s, &f);
}

/* A certificate of an authority that we know of, or do not. */
TEST(an_authority_must_be_trusted)
{
    struct tls_folder f;
    struct stage s;
    EVP_PKEY *ca_key = key_new(), *key = key_new();
    struct cert_wish w = {.san = "DNS:localhost", .ends_s = 90 * DAY_S},
                     ca_w = {.san = "DNS:ca.example", .ends_s = 90 * DAY_S};
    X509 *ca, *x;
    struct why why;
    FILE *out;

    tls_stage_init(&s, &f, test_opts());
    ca = x509_new(ca_key, &ca_w, s.time.wall_ms / 1000);
    x = x509_new(key, &w, s.time.wall_ms / 1000);
    X509_set_issuer_name(x, X509_get_subject_name(ca));
    CHECK(X509_sign(x, ca_key, EVP_sha256()) > 0);
    folder_put(&f, 1, &s, (struct cert_wish){.san = NULL});
    CHECK((out = fopen(f.cert[1], "w")) && PEM_write_X509(out, x) == 1);
    fclose(out);
    CHECK((out = fopen(f.key[1], "w")) &&
          PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) == 1);
    fclose(out);
    CHECK(net_set_certs(s.net, &f.files[1], 1, &why) == OK);
    check_refused(&s, "localhost", f.cert[0], "authority that is not trusted");
    folder_put(&f, 2, &s, (struct cert_wish){.san = NULL});
    CHECK((out = fopen(f.cert[2], "w")) && PEM_write_X509(out, ca) == 1);
    fclose(out);
    check_served(&s, "localhost", f.cert[2]);
    X509_free(ca);
    X509_free(x);
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(key);
    tls_stage_fini(&s, &f);
}

TEST(a_file_of_authorities_that_is_none_is_said_at_once)
{
    struct tls_folder f;
    struct stage s;
    struct why why = {""};

    tls_stage_init(&s, &f, test_opts());
    CHECK(!dial_tls(&s, "localhost", "/nowhere/ca.pem", &why));
    CHECK(strstr(why.text, "/nowhere/ca.pem") && seen.n_gone == 1);
    CHECK(!dial_tls(&s, "localhost", f.key[0], &why));
    CHECK(strstr(why.text, "PEM"));
    tls_stage_fini(&s, &f);
}

/* Were it read, this step would fail. */
static bool is_read_to_dial(struct stage *s, const char *ca_file)
{
    struct why why;
    struct conn *c;
    bool was_read;

    fault_arm_at("cert.read", 1);
    c = dial_tls(s, "localhost", ca_file, &why);
    was_read = fault_fired();
    fault_arm(0);
    CHECK(!c == was_read);
    if (c)
        conn_cut(c);
    turn(s, 3);
    return was_read;
}

TEST(a_file_of_authorities_is_read_again_when_it_has_changed)
{
    struct tls_folder f;
    struct stage s;
    struct why why;

    tls_stage_init(&s, &f, test_opts());
    CHECK(is_read_to_dial(&s, f.cert[0]));
    check_served(&s, "localhost", f.cert[0]);
    CHECK(!is_read_to_dial(&s, f.cert[0]));
    folder_put(&f, 1, &s, (struct cert_wish){.san = NULL});
    CHECK(net_set_certs(s.net, &f.files[1], 1, &why) == OK);
    check_refused(&s, "localhost", f.cert[0], "is signed by itself alone");
    CHECK(rename(f.cert[1], f.cert[0]) == 0);
    CHECK(is_read_to_dial(&s, f.cert[0]));
    check_served(&s, "localhost", f.cert[0]);
    CHECK(unlink(f.cert[0]) == 0);
    CHECK(!dial_tls(&s, "localhost", f.cert[0], &why));
    CHECK(strstr(why.text, "No such file"));
    tls_stage_fini(&s, &f);
}

TEST(only_so_many_files_of_authorities_are_remembered)
{
    struct tls_folder f;
    struct stage s;
    char path[128];

    tls_stage_init(&s, &f, test_opts());
    for (int i = 0; i <= TLS_CAS_MAX; i++) {
        snprintf(path, sizeof(path), "%s/ca%d", f.path, i);
        CHECK(symlink(f.cert[0], path) == 0);
        check_served(&s, "localhost", path);
        if (i == TLS_CAS_MAX - 1) {
            snprintf(path, sizeof(path), "%s/ca0", f.path);
            CHECK(!is_read_to_dial(&s, path)); /* and used last from here on */
        }
    }
    snprintf(path, sizeof(path), "%s/ca0", f.path);
    CHECK(!is_read_to_dial(&s, path));
    snprintf(path, sizeof(path), "%s/ca1", f.path);
    CHECK(is_read_to_dial(&s, path));
    tls_stage_fini(&s, &f);
}

TEST(a_pipe_of_authorities_is_not_waited_on)
{
    struct tls_folder f;
    struct stage s;
    struct why why;
    char path[128];

    tls_stage_init(&s, &f, test_opts());
    snprintf(path, sizeof(path), "%s/pipe", f.path);
    CHECK(mkfifo(path, 0600) == 0);
    CHECK(!dial_tls(&s, "localhost", path, &why));
    CHECK(strstr(why.text, path));
    tls_stage_fini(&s, &f);
}

TEST(a_server_that_does_not_speak_tls_is_told_apart)
{
    struct stage s;

    stage_init(&s, test_opts());
    check_refused(&s, "localhost", NULL, "the TLS handshake failed: ");
    stage_fini(&s);
}

/* A listener of our own that takes connections and does nothing else. */
static int mute_listener(struct stage *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0);
    CHECK(listen(fd, 4) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    s->port = ntohs(a.sin_port);
    return fd;
}

TEST(a_server_that_says_nothing_is_left_in_time)
{
    struct stage s;
    struct why why;
    int fd, peer;

    stage_init(&s, test_opts());
    fd = mute_listener(&s);
    CHECK(dial_tls(&s, "localhost", NULL, &why));
    turn(&s, 3);
    later(&s, 999);
    CHECK(seen.n_gone == 0);
    later(&s, 1);
    CHECK(seen.n_gone == 1 && strstr(seen.why, "took too long"));
    peer = accept(fd, NULL, NULL);
    CHECK(peer >= 0);
    close(peer);
    CHECK(dial_tls(&s, "localhost", NULL, &why));
    turn(&s, 3);
    close(accept(fd, NULL, NULL));
    UNTIL(&s, seen.n_gone == 1);
    CHECK(strstr(seen.why, "hung up"));
    close(fd);
    stage_fini(&s);
}

TEST(stopping_ends_a_handshake_of_ours_too)
{
    struct stage s;
    struct why why;
    int fd;

    stage_init(&s, test_opts());
    fd = mute_listener(&s);
    CHECK(dial_tls(&s, "localhost", NULL, &why));
    turn(&s, 3);
    stage_fini(&s);
    CHECK(seen.n_gone == 1);
    close(fd);
}

/* Both ends are in this process: whatever fails at either, the one that
 * dialled hears of it or is served. */
TEST(every_step_of_dialling_may_fail)
{
    struct tls_folder f;
    struct stage s;
    long nth = 0;

    tls_stage_init(&s, &f, test_opts());
    do {
        struct why why = {""};
        struct conn *c;
        bool is_over;

        fault_arm(++nth);
        c = dial_tls(&s, "localhost", f.cert[0], &why);
        for (int i = 0; i < 200; i++)
            turn_once(&s);
        later(&s, 100); /* ends the pause after a failed accept */
        turn(&s, 20);
        is_over = !c || seen.n_gone == 1;
        CHECK(is_over || strstr(seen.got, "\r\n\r\n/dialled"));
        CHECK(is_over || seen.n_open == 1);
        CHECK(fault_fired() || !is_over);
        if (!is_over)
            conn_cut(c);
        later(&s, s.opts.idle_timeout_ms);
        UNTIL(&s, net_stats(s.net).connections == 0);
        CHECK(net_stats(s.net).buffered_bytes == 0);
    } while (fault_fired());
    fault_arm(0);
    CHECK(nth > 20);
    check_tls_alive(&s);
    tls_stage_fini(&s, &f);
}
