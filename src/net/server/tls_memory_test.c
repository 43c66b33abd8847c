/* The memory of a TLS connection, counted byte by byte: everything that
 * OpenSSL allocates during the server's turn is the server's, wherever it is
 * freed. The clients are in the same process and have their own. */
#include <malloc.h>

#include "test/lib/tls_stage.h"

struct block {
    size_t n, cost;
    bool is_server;
    _Alignas(16) char bytes[];
};

static bool is_server_turn;
static int64_t server_bytes;

static void *count_malloc(size_t n, const char *file, int line)
{
    struct block *b = malloc(sizeof(*b) + n);

    (void)file;
    (void)line;
    if (!b)
        return NULL;
    /* With what the allocator itself adds. */
    b->n = n;
    b->cost = malloc_usable_size(b) - sizeof(*b) + sizeof(size_t);
    b->is_server = is_server_turn;
    server_bytes += b->is_server ? (int64_t)b->cost : 0;
    return b->bytes;
}

static void count_free(void *p, const char *file, int line)
{
    struct block *b;

    (void)file;
    (void)line;
    if (!p)
        return;
    b = LIST_OF(p, struct block, bytes);
    server_bytes -= b->is_server ? (int64_t)b->cost : 0;
    free(b);
}

static void *count_realloc(void *p, size_t n, const char *file, int line)
{
    void *to;

    if (!n) {
        count_free(p, file, line);
        return NULL;
    }
    to = count_malloc(n, file, line);
    if (p && to) {
        size_t was = LIST_OF(p, struct block, bytes)->n;

        memcpy(to, p, was < n ? was : n);
        count_free(p, file, line);
    }
    return to;
}

static void serve(struct stage *s, int n)
{
    is_server_turn = true;
    turn(s, n);
    is_server_turn = false;
}

static struct guest meet(struct stage *s, int version)
{
    struct guest g = guest_new(s, 0);

    SSL_set_max_proto_version(g.ssl, version);
    while (!guest_shake(&g))
        serve(s, 2);
    CHECK(!g.is_broken);
    serve(s, 4);
    return g;
}

static struct guest fetch(struct stage *s, int version)
{
    struct guest g = meet(s, version);
    struct heard h = {.n = 0};

    guest_say(&g, GET("/"));
    serve(s, 4);
    guest_hear(&g, &h);
    CHECK(has(&h, "200 OK"));
    serve(s, 2);
    return g;
}

enum { GUESTS = 50 };

/* Bytes of each of many. */
static int64_t cost_of(struct stage *s,
                       struct guest (*come)(struct stage *s, int version),
                       int version)
{
    struct guest first = come(s, version), g[GUESTS];
    int64_t before = server_bytes, each;

    for (int i = 0; i < GUESTS; i++)
        g[i] = come(s, version);
    each = (server_bytes - before) / GUESTS;
    for (int i = 0; i < GUESTS; i++)
        guest_free(&g[i]);
    guest_free(&first);
    serve(s, 5);
    return each;
}

/* As much as can be held before a handshake is over. A hello that says it is
 * as long as one may be, and half a record of it. */
static struct guest begin_long_hello(struct stage *s, int version)
{
    static const char head[] = "\x16\x03\x01\x00\x04\x01\x00\x40\x00";
    struct guest g = guest_new(s, 0);

    (void)version;
    say_n(g.fd, head, sizeof(head) - 1);
    say_n(g.fd, "\x16\x03\x01\x3f\xff and some more", 19);
    serve(s, 4);
    return g;
}

/* A hello that is so long: of many protocols, for the first that we speak. */
static struct guest long_guest(struct stage *s, int version)
{
    struct guest g = guest_new(s, 0);
    static unsigned char protocols[15 * 1024] = "\x08http/1.1";

    for (size_t at = 9; at + 255 < sizeof(protocols); at += 255) {
        memset(protocols + at, 'p', 255);
        protocols[at] = 254;
    }
    SSL_set_alpn_protos(g.ssl, protocols, 9 + 59 * 255);
    SSL_set_max_proto_version(g.ssl, version);
    return g;
}

/* It, whole, our answer to it, and half a record behind that. */
static struct guest stay_behind_a_hello(struct stage *s, int version)
{
    struct guest g = long_guest(s, version);

    CHECK(!guest_shake(&g));
    serve(s, 4);
    say_n(g.fd,
          version == TLS1_3_VERSION ? "\x17\x03\x03\x40\x00 and"
                                    : "\x16\x03\x03\x40\x00 and",
          9);
    serve(s, 4);
    CHECK(s->net->n_shakes > 0);
    return g;
}

/* The first hello does not name the curve that we want, so there is another;
 * and of that only half. */
static struct guest stay_in_a_second_hello(struct stage *s, int version)
{
    struct guest g = long_guest(s, version);

    SSL_set1_groups_list(g.ssl, "X25519:P-256");
    CHECK(!guest_shake(&g));
    serve(s, 4);
    say_n(g.fd, "\x16\x03\x03\x00\x04\x01\x00\x40\x00", 9);
    say_n(g.fd, "\x16\x03\x03\x3f\xff and some more", 19);
    serve(s, 4);
    CHECK(s->net->n_shakes > 0);
    return g;
}

static void gone(struct conn *c, uint64_t id, enum conn_cut why)
{
    (void)c;
    (void)id;
    (void)why;
}

/* The client side: the dialled server announces as many certificates as
 * allowed, in TLS 1.2, where they are not encrypted. */
static struct guest dial_long_chain(struct stage *s, int version)
{
    static const struct speech speech = {.gone = gone};
    static const char said[] =
        "\x16\x03\x03\x00\x31\x02\x00\x00\x2d\x03\x03"
        "01234567890123456789012345678901\x00\xc0\x2b\x00"
        "\x00\x05\xff\x01\x00\x01\x00"
        "\x16\x03\x03\x00\x04\x0b\x01\x00\x00"
        "\x16\x03\x03\x40\x00 and some more";
    struct guest g = {.fd = -1};
    struct why why;
    struct conn *c;
    int pair[2];

    (void)version;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    g.fd = pair[0];
    is_server_turn = true;
    c = conn_new(s->net, pair[1], "server", false);
    CHECK(c);
    c->speech = &speech;
    CHECK(tls_connect(c, "localhost", NULL, 1000, &why) == OK);
    serve(s, 2);
    say_n(g.fd, said, sizeof(said) - 1);
    serve(s, 4);
    CHECK(c->state == CONN_TLS);
    return g;
}

/* A record of which half has come. */
static struct guest half_a_record(struct stage *s, int version)
{
    struct guest g = meet(s, version);

    say_n(g.fd, "\x17\x03\x03\x40\x00 and some more", 19);
    serve(s, 4);
    return g;
}

static void check_handshakes(struct stage *s)
{
    const struct {
        const char *name;
        struct guest (*come)(struct stage *s, int version);
        int version;
    } all[] = {{"hello announced", begin_long_hello, 0},
               {"1.3 answered", stay_behind_a_hello, TLS1_3_VERSION},
               {"1.2 answered", stay_behind_a_hello, TLS1_2_VERSION},
               {"second hello", stay_in_a_second_hello, TLS1_3_VERSION}};
    int64_t most = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        int64_t each;

        if (all[i].come == stay_in_a_second_hello)
            SSL_CTX_set1_groups_list(cert_ctx(s->net), "P-256");
        each = cost_of(s, all[i].come, all[i].version);
        printf("a handshake, %s: %" PRId64 "\n", all[i].name, each);
        most = each > most ? each : most;
    }
    CHECK(most <= TLS_SHAKE_BYTES && most > TLS_SHAKE_BYTES * 9 / 10);
}

TEST(a_connection_costs_what_the_manual_says)
{
    struct net_opts opts = test_opts();
    struct tls_folder f;
    struct stage s;
    int64_t v12, v13, served, half, dialled;

    CHECK(CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free));
    opts.max_connections = 2 * GUESTS;
    tls_stage_init(&s, &f, opts);
    v12 = cost_of(&s, meet, TLS1_2_VERSION);
    v13 = cost_of(&s, meet, TLS1_3_VERSION);
    served = cost_of(&s, fetch, TLS1_3_VERSION);
    half = cost_of(&s, half_a_record, TLS1_3_VERSION);
    dialled = cost_of(&s, dial_long_chain, 0);
    printf("OpenSSL's bytes per connection: idle %" PRId64
           " (TLS 1.3), %" PRId64 " (TLS 1.2), after a request %" PRId64
           "; half a record %" PRId64 ", the longest chain %" PRId64 "\n",
           v13, v12, served, half, dialled);
    CHECK(v13 > 1000 && v13 < 16 * 1024 && v12 < 16 * 1024);
    CHECK(served <= v13 + 1024); /* nothing stays behind */
    CHECK(half - v13 <= TLS_RECORD_BYTES);
    CHECK(half - v13 > TLS_RECORD_BYTES * 9 / 10); /* nor is it too much */
    CHECK(dialled <= TLS_DIAL_BYTES && dialled > TLS_DIAL_BYTES * 9 / 10);
    check_handshakes(&s);
    tls_stage_fini(&s, &f);
}
