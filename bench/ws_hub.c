/* bench_ws_hub: our side of bench_ws, the same as ws_node.js over src/net.
 *
 *     /echo        every message comes back
 *     /hub?name=N  a message goes to the agent that its params.agent_id names
 *
 * Little enough to see that nothing is measured but net, and what any hub has
 * to do: read the message strictly, find the one it is for, hand it on. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/map.h"
#include "net/server/net.h"

enum { GUESTS_MAX = 4096, NAME_BYTES = 32 };

struct hub {
    struct loop loop;
    struct log log;
    struct net *net;
    struct map guests; /* by name */
};

struct guest {
    struct hub *hub;
    uint64_t id;
    char name[NAME_BYTES];
};

static void send_to(struct hub *h, uint64_t id, enum ws_kind kind,
                    struct str bytes)
{
    if (net_ws_send(h->net, id, kind, bytes) == ERR_BUSY) {
        fprintf(stderr, "bench_ws_hub: the load does not read\n");
        exit(1);
    }
}

static void on_echo(void *ctx, uint64_t id, enum ws_kind kind, struct str bytes)
{
    struct guest *g = ctx;

    send_to(g->hub, id, kind, bytes);
}

static void on_forward(void *ctx, uint64_t id, enum ws_kind kind,
                       struct str bytes)
{
    static const struct str params = {"params", 6}, agent = {"agent_id", 8};
    struct guest *g = ctx, *to;
    struct str in, name;

    (void)id;
    if (json_scan(bytes, &params, 1, &in, NULL) != OK ||
        json_scan(in, &agent, 1, &name, NULL) != OK || name.n < 2 ||
        !(to = map_get(&g->hub->guests, str_sub(name, 1, name.n - 1)))) {
        fprintf(stderr, "bench_ws_hub: for no one: %.*s\n", STR_ARG(bytes));
        exit(1);
    }
    send_to(g->hub, to->id, kind, bytes);
}

static void on_end(void *ctx, uint64_t id, const struct net_ws_end *end)
{
    struct guest *g = ctx;

    (void)id;
    (void)end;
    if (g->name[0])
        map_take(&g->hub->guests, str_of(g->name));
    free(g);
}

static const struct net_ws_handler on_echo_path = {.on_message = on_echo,
                                                   .on_end = on_end};
static const struct net_ws_handler on_hub_path = {.on_message = on_forward,
                                                  .on_end = on_end};

static void on_request(void *ctx, uint64_t id, const struct http_request *rq)
{
    bool is_hub = str_eq(rq->path, STR("/hub"));
    struct guest *g = calloc(1, sizeof(*g));
    struct ws_hello hello;

    if (!g || ws_hello_read(rq, &hello, NULL) != OK)
        exit(1);
    g->hub = ctx;
    g->id = id;
    if (is_hub) {
        snprintf(g->name, sizeof(g->name), "%.*s",
                 STR_ARG(str_sub(rq->query, strlen("name="), rq->query.n)));
        if (map_put(&g->hub->guests, str_of(g->name), g) != OK)
            exit(1);
    }
    if (net_ws_accept(g->hub->net, id, &hello, STR(""),
                      is_hub ? &on_hub_path : &on_echo_path, g) != OK)
        exit(1);
}

static void on_gone(void *ctx, uint64_t id)
{
    (void)ctx;
    (void)id;
}

static struct str word_error(void *ctx, enum err e, struct str what,
                             struct buf *body)
{
    (void)ctx;
    (void)e;
    buf_add_str(body, what);
    return STR("text/plain");
}

int main(void)
{
    static const uint64_t seed[2] = {1, 2};
    static const struct net_opts opts = {
        .max_connections = GUESTS_MAX,
        .max_request_line_bytes = 8192,
        .max_header_bytes = 16384,
        .max_headers = 100,
        .max_body_bytes = 65536,
        .max_unsent_bytes = 1 << 20,
        .max_buffered_bytes = 256 << 20,
        .header_timeout_ms = 10000,
        .body_timeout_ms = 10000,
        .idle_timeout_ms = 75000,
        .reply_timeout_ms = 10000,
        .write_timeout_ms = 30000,
        .ws_max_frame_bytes = 1 << 20,
        .ws_max_message_bytes = 2 << 20,
        .ws_timeout_ms = 90000,
        .ws_close_timeout_ms = 5000,
    };
    static struct hub h;
    const struct net_handler on = {.ctx = &h,
                                   .on_request = on_request,
                                   .on_gone = on_gone,
                                   .word_error = word_error};
    struct why why;

    log_init(&h.log, STDERR_FILENO, LOG_WARN, LOG_AUTO, clock_system());
    map_init(&h.guests, GUESTS_MAX, seed);
    if (loop_init(&h.loop, clock_system()) != OK ||
        !(h.net = net_new(&h.loop, &h.log, &opts, &on)) ||
        net_listen(h.net, STR("127.0.0.1:0"), false, &why) != OK)
        return 1;
    printf("listening %s\n", net_url(h.net));
    fflush(stdout);
    loop_run(&h.loop);
    return 0;
}
