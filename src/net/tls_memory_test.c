/* What a connection through TLS costs, counted byte by byte: everything that
 * OpenSSL allocates while the server has its turn is the server's, whoever
 * frees it. The clients are in the same process and have their own. */
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

/* As much as can be held before a handshake is over: a hello that says it is
 * as long as one may be, and half a record of it. */
static struct guest begin_long_hello(struct stage *s, int version)
{
    static const char head[] = "\x16\x03\x01\x00\x04\x01\x02\x00\x00";
    struct guest g = guest_new(s, 0);

    (void)version;
    say_n(g.fd, head, sizeof(head) - 1);
    say_n(g.fd, "\x16\x03\x01\x40\x00 and some more", 19);
    serve(s, 4);
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

TEST(an_idle_connection_costs_what_the_manual_says)
{
    struct net_opts opts = test_opts();
    struct tls_folder f;
    struct stage s;
    int64_t v12, v13, served, half, hello;

    CHECK(CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free));
    opts.max_connections = 2 * GUESTS;
    tls_stage_init(&s, &f, opts);
    v12 = cost_of(&s, meet, TLS1_2_VERSION);
    v13 = cost_of(&s, meet, TLS1_3_VERSION);
    served = cost_of(&s, fetch, TLS1_3_VERSION);
    half = cost_of(&s, half_a_record, TLS1_3_VERSION);
    hello = cost_of(&s, begin_long_hello, 0);
    printf("OpenSSL's bytes per connection: idle %" PRId64
           " (TLS 1.3), %" PRId64 " (TLS 1.2), after a request %" PRId64
           "; half a record %" PRId64 ", the longest hello %" PRId64 "\n",
           v13, v12, served, half, hello);
    CHECK(v13 > 1000 && v13 < 16 * 1024 && v12 < 16 * 1024);
    CHECK(served <= v13 + 1024); /* nothing stays behind */
    CHECK(half - v13 <= TLS_RECORD_BYTES);
    CHECK(half - v13 > TLS_RECORD_BYTES * 9 / 10); /* nor is it too much */
    CHECK(hello <= TLS_SHAKE_BYTES && hello > TLS_SHAKE_BYTES * 9 / 10);
    tls_stage_fini(&s, &f);
}
