/* The server: each WebSocket is a guest with the habits of its path. */
#include "test/peers/ws_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"

enum { PUSH_BYTES = 16 * 1024, PAIR_BYTES = 32, BODY_BYTES = 64 * 1024 };

struct guest {
    struct peer *peer;
    uint64_t id;
    const struct habit *habit;
    struct guest *other;   /* /forward: who gets what comes */
    struct held held;      /* came from us and could not leave yet */
    char pair[PAIR_BYTES]; /* /forward */
    uint16_t code;         /* /close */
    char reason[128];
    struct list_node node; /* /forward: waits for another */
};

/* What a path does. Any of them may be NULL. */
struct habit {
    const char *path;
    void (*begin)(struct guest *g);
    void (*message)(struct guest *g, enum ws_kind kind, struct str bytes);
    void (*room)(struct guest *g);
    void (*end)(struct guest *g);
};

static struct list waiting; /* for the other of a pair */

static void echo_message(struct guest *g, enum ws_kind kind, struct str bytes)
{
    held_send(g->peer, &g->held, g->id, g->id, kind, bytes);
}

static void echo_room(struct guest *g)
{
    held_go_on(g->peer, &g->held, g->id, g->id);
}

static void push(struct guest *g)
{
    static const char bytes[PUSH_BYTES];

    while (net_ws_send(g->peer->net, g->id, WS_BINARY,
                       (struct str){bytes, PUSH_BYTES}) == OK)
        ;
}

/* The first of a pair waits unread for the second. */
static void forward_begin(struct guest *g)
{
    struct list_node *i;

    for (i = list_first(&waiting); i; i = list_next(&waiting, i)) {
        struct guest *o = LIST_OF(i, struct guest, node);

        if (strcmp(o->pair, g->pair) == 0) {
            list_remove(i);
            g->other = o;
            o->other = g;
            net_ws_pause(g->peer->net, o->id, false);
            return;
        }
    }
    list_append(&waiting, &g->node);
    net_ws_pause(g->peer->net, g->id, true);
}

static void forward_message(struct guest *g, enum ws_kind kind,
                            struct str bytes)
{
    if (g->other)
        held_send(g->peer, &g->held, g->id, g->other->id, kind, bytes);
}

static void forward_room(struct guest *g)
{
    if (g->other)
        held_go_on(g->peer, &g->other->held, g->other->id, g->id);
}

static void forward_end(struct guest *g)
{
    list_remove(&g->node);
    if (!g->other)
        return;
    g->other->other = NULL;
    net_ws_close(g->peer->net, g->other->id, WS_GOING_AWAY,
                 STR("the other has left"));
}

static void close_message(struct guest *g, enum ws_kind kind, struct str bytes)
{
    (void)kind;
    (void)bytes;
    net_ws_close(g->peer->net, g->id, g->code, str_of(g->reason));
}

static const struct habit habits[] = {
    {"/echo", NULL, echo_message, echo_room, NULL},
    {"/push", push, NULL, push, NULL},
    {"/forward", forward_begin, forward_message, forward_room, forward_end},
    {"/sink", NULL, NULL, NULL, NULL},
    {"/close", NULL, close_message, NULL, NULL},
};

static void on_message(void *ctx, uint64_t id, enum ws_kind kind,
                       struct str bytes)
{
    struct guest *g = ctx;

    (void)id;
    if (g->habit->message)
        g->habit->message(g, kind, bytes);
}

static void on_room(void *ctx, uint64_t id)
{
    struct guest *g = ctx;

    (void)id;
    if (g->habit->room)
        g->habit->room(g);
}

static void on_end(void *ctx, uint64_t id, const struct net_ws_end *end)
{
    struct guest *g = ctx;

    (void)id;
    (void)end;
    if (g->habit->end)
        g->habit->end(g);
    buf_fini(&g->held.bytes);
    free(g);
}

static const struct net_ws_handler guest_handler = {
    .on_message = on_message, .on_room = on_room, .on_end = on_end};

/* Requests. */

static void reply(struct peer *p, uint64_t id, int status, struct str body)
{
    static const struct http_header version = {{"Sec-WebSocket-Version", 21},
                                               {"13", 2}};

    net_reply(p->net, id,
              &(struct http_reply){.status = status,
                                   .content_type = STR("application/json"),
                                   .headers = &version,
                                   .n_headers = status == 426,
                                   .body = body});
}

/* "name=value&..." */
static struct str query_value(struct str query, struct str name)
{
    while (query.n) {
        struct str part = str_cut(&query, '&'), key = str_cut(&part, '=');

        if (str_eq(key, name))
            return part;
    }
    return STR("");
}

static struct guest *guest_new(struct peer *p, uint64_t id,
                               const struct habit *habit, struct str query)
{
    struct guest *g = calloc(1, sizeof(*g));
    int64_t code = WS_NORMAL;

    if (!g)
        abort();
    *g = (struct guest){.peer = p, .id = id, .habit = habit};
    snprintf(g->pair, sizeof(g->pair), "%.*s",
             STR_ARG(query_value(query, STR("pair"))));
    snprintf(g->reason, sizeof(g->reason), "%.*s",
             STR_ARG(query_value(query, STR("reason"))));
    if (str_to_i64(query_value(query, STR("code")), &code) != OK ||
        code < 1000 || code > 4999 || !ws_code_may_be_sent((uint16_t)code))
        code = WS_NORMAL;
    g->code = (uint16_t)code;
    return g;
}

static void accept_ws(struct peer *p, uint64_t id,
                      const struct http_request *rq, const struct habit *habit)
{
    struct ws_hello hello;
    struct why why = {.text = "this path speaks WebSocket"};
    struct guest *g;
    enum err e = ERR_UPGRADE;

    if (ws_is_asked(rq))
        e = ws_hello_read(rq, &hello, &why);
    if (e) {
        reply(p, id, err_row(e)->http_status, str_of(why.text));
        return;
    }
    g = guest_new(p, id, habit, rq->query);
    if (net_ws_accept(p->net, id, &hello,
                      ws_offers(rq, STR("echo")) ? STR("echo") : STR(""),
                      &guest_handler, g) != OK) {
        free(g);
        return;
    }
    if (habit->begin)
        habit->begin(g);
}

static int64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long long all = 0, resident = 0;

    if (!f)
        return 0;
    if (fscanf(f, "%lld %lld", &all, &resident) != 2)
        resident = 0;
    fclose(f);
    return resident * sysconf(_SC_PAGESIZE);
}

static void put_ends(struct json_out *o, const struct net_stats *s)
{
    static const char *const names[N_NET_WS_CAUSES] = {
        [NET_WS_PEER] = "peer",   [NET_WS_OWNER] = "owner",
        [NET_WS_LOST] = "lost",   [NET_WS_BAD] = "bad",
        [NET_WS_LIMIT] = "limit", [NET_WS_SILENT] = "silent",
        [NET_WS_SLOW] = "slow",   [NET_WS_OVERLOADED] = "overloaded",
    };

    json_key(o, STR("wsEnds"));
    json_open(o, '{');
    for (int i = 0; i < N_NET_WS_CAUSES; i++)
        json_member_int(o, names[i], s->ws_ends_total[i]);
    json_close(o, '}');
}

static void send_stats(struct peer *p, uint64_t id)
{
    struct net_stats s = net_stats(p->net);
    struct buf body;
    struct json_out o;

    buf_init(&body, BODY_BYTES);
    o = json_out(&body);
    json_open(&o, '{');
    json_member_int(&o, "connections", s.connections);
    json_member_int(&o, "connectionsTotal", s.connections_total);
    json_member_int(&o, "refusedTotal", s.refused_total);
    json_member_int(&o, "requestsTotal", s.requests_total);
    json_member_int(&o, "badRequestsTotal", s.bad_requests_total);
    json_member_int(&o, "overloadedTotal", s.overloaded_total);
    json_member_int(&o, "timeoutsTotal", s.timeouts_total);
    json_member_int(&o, "bytesInTotal", s.bytes_in_total);
    json_member_int(&o, "bytesOutTotal", s.bytes_out_total);
    json_member_int(&o, "unsentBytes", s.unsent_bytes);
    json_member_int(&o, "bufferedBytes", s.buffered_bytes);
    json_member_int(&o, "websockets", s.websockets);
    json_member_int(&o, "websocketsTotal", s.websockets_total);
    json_member_int(&o, "wsMessagesInTotal", s.ws_messages_in_total);
    json_member_int(&o, "wsMessagesOutTotal", s.ws_messages_out_total);
    json_member_int(&o, "wsPingsTotal", s.ws_pings_total);
    put_ends(&o, &s);
    json_member_int(&o, "residentBytes", resident_bytes());
    json_close(&o, '}');
    reply(p, id, 200, buf_str(&body));
    buf_fini(&body);
}

static void on_request(void *ctx, uint64_t id, const struct http_request *rq)
{
    struct peer *p = ctx;

    if (str_eq(rq->path, STR("/stats"))) {
        send_stats(p, id);
        return;
    }
    for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++)
        if (str_eq(rq->path, str_of(habits[i].path))) {
            accept_ws(p, id, rq, &habits[i]);
            return;
        }
    reply(p, id, 404, STR("there is no such path"));
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
    buf_addf(body, "%s: %.*s", err_row(e)->code, STR_ARG(what));
    return STR("text/plain");
}

const struct net_handler serve_handler = {
    .on_request = on_request, .on_gone = on_gone, .word_error = word_error};

/* The certificate and where to show it; nothing when it was not asked for. */
static enum err listen_tls(struct peer *p, const struct args *a,
                           struct why *why)
{
    char cert[4096], key[4096];
    const struct net_cert pair = {cert, key};
    enum err e;

    if (!args_has(a, "tls-listen"))
        return OK;
    snprintf(cert, sizeof(cert), "%.*s", STR_ARG(args_get(a, "cert")));
    snprintf(key, sizeof(key), "%.*s", STR_ARG(args_get(a, "key")));
    e = net_set_certs(p->net, &pair, 1, why);
    if (!e)
        e = net_listen(p->net, args_get(a, "tls-listen"), true, why);
    return e;
}

int peer_serve(struct peer *p, const struct args *a)
{
    struct str address = args_get(a, "listen");
    struct why why;
    enum err e;

    list_init(&waiting);
    e = net_listen(p->net, address.n ? address : STR("127.0.0.1:0"), false,
                   &why);
    if (!e)
        e = listen_tls(p, a, &why);
    if (e) {
        fprintf(stderr, "ws_peer: %s\n", why.text);
        return EXIT_FAILED;
    }
    printf("listening ws%s\n", net_url(p->net) + strlen("http"));
    if (net_tls_url(p->net)[0])
        printf("listening ws%s\n", net_tls_url(p->net) + strlen("http"));
    fflush(stdout);
    loop_run(&p->loop);
    return p->status;
}
