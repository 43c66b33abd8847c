#ifndef TEST_LIB_HOUSE_STAGE_H
#define TEST_LIB_HOUSE_STAGE_H

/* The whole house on one thread: a loop under a fake clock, the store inline,
 * every room above it, and clients that are plain sockets of the same process.
 * Nothing sleeps: the loop is turned until the expected has happened, and time
 * passes only when nothing else does. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "api/api.h"
#include "base/fault.h"
#include "speak/speak.h"
#include "test/lib/agents_stage.h"
#include "test/lib/folder.h"
#include "test/t.h"

enum { HOUSE_TURNS = 2000, HOUSE_STEP_MS = 500, HOUSE_ANSWER_MAX = 1 << 20 };

struct house {
    char folder[64];
    struct store_folder held;
    struct clock_fake time;
    struct rand_seeded chance;
    struct id_maker ids;
    struct loop loop;
    struct log log;
    struct store *store;
    struct feed *feed;
    struct access *access;
    struct registry *registry;
    struct router *router;
    struct walk *walk;
    struct net *net;
    struct api api;
    struct access_token token; /* of admin */
    bool is_stopped;
    void (*on_revoked)(struct house *h,
                       const struct id *token_id); /* or NULL */
    void (*on_close)(struct house *h); /* before the walk goes; may be NULL */
    bool has_threads; /* set while it is closed: the store has its threads */
};

static const struct schema *const house_schemas[] = {
    &task_schema,   &watch_schema,      &access_schema,     &registry_schema,
    &choose_schema, &gatekeeper_schema, &delegation_schema, &ledger_schema,
};

static const struct agent house_agents[] = {
    {.name = STR("echo"), .url = STR("echo:")},
    {.name = STR("never"), .url = STR("echo:3600000")},
};

static inline void house_request(void *ctx, uint64_t id,
                                 const struct http_request *rq)
{
    api_take(&((struct house *)ctx)->api, id, rq);
}

static inline void house_gone(void *ctx, uint64_t id)
{
    api_on_gone(&((struct house *)ctx)->api, id);
}

static inline void house_room(void *ctx, uint64_t id)
{
    api_on_room(&((struct house *)ctx)->api, id);
}

static inline struct str house_word(void *ctx, enum err e, struct str what,
                                    struct buf *body)
{
    (void)ctx;
    speak_refusal(body, e, what);
    return SPEAK_JSON;
}

static inline void house_committed(void *ctx, const struct tx *tx)
{
    struct house *h = ctx;

    if (h->feed)
        feed_committed(h->feed, tx);
}

static inline void house_revoked(void *ctx, const struct id *token_id)
{
    struct house *h = ctx;

    api_on_revoked(&h->api, token_id);
    if (h->on_revoked)
        h->on_revoked(h, token_id);
}

static inline void house_done(void *ctx)
{
    ((struct house *)ctx)->is_stopped = true;
}

/* As server.c: nothing can be promised any more, so the house closes. */
static inline void house_failed(void *ctx, const struct why *why)
{
    struct house *h = ctx;

    CHECK(why->text[0]);
    api_stop(&h->api);
    net_stop(h->net, 1000, house_done, h);
}

static inline void house_open_store(struct house *h)
{
    struct store_opts opts = {.folder = h->folder,
                              .schemas = house_schemas,
                              .n_schemas = sizeof(house_schemas) /
                                           sizeof(*house_schemas),
                              .max_waiting = 1000,
                              .is_inline = !h->has_threads,
                              .loop = &h->loop,
                              .on_committed = house_committed,
                              .on_fatal = house_failed,
                              .ctx = h};
    struct access_opts who = {.log = &h->log,
                              .rand = rand_seeded(&h->chance),
                              .ids = &h->ids,
                              .on_revoked = house_revoked,
                              .ctx = h};
    struct why why = {""};

    if (store_open(&h->store, &opts, &why) != OK)
        T_FAIL("%s", why.text);
    h->feed = feed_new(&h->loop, &h->log, h->store, &why);
    CHECK(h->feed);
    who.store = h->store;
    h->access = access_new(&who);
    CHECK(h->access && access_load(h->access, &why) == OK);
}

static inline struct str house_org_of(void *ctx, struct str user)
{
    return access_org_of(((struct house *)ctx)->access, user);
}

static inline void house_agent_came(void *ctx)
{
    struct house *h = ctx;

    if (h->walk)
        walk_agent_came(h->walk);
}

static inline void house_open_registry(struct house *h)
{
    struct registry_opts opts = {
        .loop = &h->loop,
        .log = &h->log,
        .store = h->store,
        .ids = &h->ids,
        .limits = {.max_agents = 1000, .max_skills = 1000},
        .org_of = house_org_of,
        .on_new = house_agent_came,
        .ctx = h,
    };
    struct why why = {""};

    h->registry = registry_new(&opts);
    CHECK(h->registry && registry_load(h->registry, &why) == OK);
    if (agents_stage_set(h->registry, &h->loop, h->store, house_agents, 2,
                         &why) != OK)
        T_FAIL("%s", why.text);
}

static inline void house_first_tx(struct tx *tx, void *ctx)
{
    (void)tx;
    *(bool *)ctx = true;
}

static inline void house_make_admin(struct house *h)
{
    struct access_change c;
    struct why why;
    bool is_done = false;

    if (!access_is_new(h->access))
        return;
    access_change_init(&c);
    CHECK(access_first_admin(h->access, &c, h->time.wall_ms, &h->token, &why) ==
          OK);
    store_submit(h->store, &c.tx, house_first_tx, &is_done);
    while (!is_done)
        loop_turn(&h->loop);
    CHECK(access_settle(h->access, &c, &why) == OK);
    access_change_fini(&c);
}

static inline void house_open_net(struct house *h)
{
    struct net_opts opts = {.max_connections = 64,
                            .max_request_line_bytes = 8192,
                            .max_header_bytes = 8192,
                            .max_headers = 32,
                            .max_body_bytes = 1 << 20,
                            .max_unsent_bytes = 65536,
                            .max_buffered_bytes = 64 << 20,
                            .header_timeout_ms = 10000,
                            .body_timeout_ms = 10000,
                            .idle_timeout_ms = 3600000,
                            .reply_timeout_ms = 100000,
                            .write_timeout_ms = 10000,
                            .ws_max_frame_bytes = 2 << 20,
                            .ws_max_message_bytes = 2 << 20,
                            .ws_timeout_ms = 90000,
                            .ws_close_timeout_ms = 5000};
    struct net_handler on = {.ctx = h,
                             .on_request = house_request,
                             .on_gone = house_gone,
                             .on_room = house_room,
                             .word_error = house_word};
    struct why why;

    h->net = net_new(&h->loop, &h->log, &opts, &on);
    CHECK(h->net);
    CHECK(net_listen(h->net, STR("127.0.0.1:0"), false, &why) == OK);
}

/* There are no levels here: a number counts. */
static inline struct choose_settings house_choosing(void)
{
    struct choose_settings s = choose_defaults();

    s.is_auto = s.is_centred = false;
    return s;
}

static inline void house_open(struct house *h)
{
    struct walk_opts walk = {.loop = &h->loop,
                             .log = &h->log,
                             .ids = &h->ids,
                             .node = STR("n1"),
                             .deliver = {.max_in_flight = 1000,
                                         .in_flight = 64,
                                         .queue = 10000,
                                         .max_attempts = 8,
                                         .retry_ms = 500,
                                         .retry_max_ms = 30000,
                                         .breaker_failures = 5,
                                         .breaker_pause_ms = 10000,
                                         .wake_ms = 30000,
                                         .silence_ms = 60000,
                                         .max_gathered_bytes = 64 << 20},
                             .limits = {.max_unfinished = 1000,
                                        .max_unfinished_bytes = 64 << 20,
                                        .timeout_ms = 60000},
                             .delegation = {.timeout_ms = 180000,
                                            .max_depth = 5,
                                            .max_concurrent = 16,
                                            .max_per_root = 256,
                                            .max_open = 1000,
                                            .max_unacked = 1000,
                                            .keep_ms = 86400000}};
    struct api_opts api = {.loop = &h->loop,
                           .log = &h->log,
                           .settings = {.heartbeat_ms = 15000,
                                        .reply_timeout_ms = 100000,
                                        .max_open = 64}};
    struct why why = {""};

    CHECK(loop_init(&h->loop, clock_fake(&h->time)) == OK);
    log_init(&h->log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_DEBUG,
             LOG_JSON, h->loop.clock);
    house_open_store(h);
    house_make_admin(h);
    walk.store = h->store;
    walk.feed = h->feed;
    walk.access = h->access;
    house_open_registry(h);
    walk.registry = h->registry;
    h->router =
        router_new(&(struct router_opts){.loop = &h->loop,
                                         .log = &h->log,
                                         .store = h->store,
                                         .registry = h->registry,
                                         .ids = &h->ids,
                                         .seed = {1, 2},
                                         .settings = {house_choosing()}});
    CHECK(h->router);
    walk.router = h->router;
    h->walk = walk_new(&walk, &why);
    if (!h->walk)
        T_FAIL("%s", why.text);
    house_open_net(h);
    api.net = h->net;
    api.walk = h->walk;
    api.store = h->store;
    api.feed = h->feed;
    api.access = h->access;
    api.registry = h->registry;
    api_init(&h->api, &api);
}

static inline void house_init(struct house *h)
{
    struct why why;

    signal(SIGPIPE, SIG_IGN);
    *h = (struct house){.time = {.wall_ms = 1700000000000, .mono_ms = 1000},
                        .chance = {7}};
    snprintf(h->folder, sizeof(h->folder), "%s/signalbox-house-XXXXXX",
             t_above());
    CHECK(mkdtemp(h->folder));
    CHECK(store_folder_open(&h->held, str_of(h->folder), &why) == OK);
    id_maker_init(&h->ids, rand_seeded(&h->chance));
    house_open(h);
}

/* Take it down in the order that server.c does. */
static inline void house_close(struct house *h)
{
    api_stop(&h->api);
    net_stop(h->net, 0, house_done, h);
    for (int i = 0; i < HOUSE_TURNS && !h->is_stopped; i++)
        loop_turn(&h->loop);
    CHECK(h->is_stopped);
    h->is_stopped = false;
    router_stop(h->router);
    store_close(h->store);
    if (h->on_close)
        h->on_close(h);
    api_fini(&h->api);
    walk_free(h->walk);
    h->walk = NULL;
    router_free(h->router);
    registry_free(h->registry);
    access_free(h->access);
    feed_free(h->feed);
    h->feed = NULL;
    net_free(h->net);
    loop_turn(&h->loop);
    loop_fini(&h->loop);
    close(h->log.fd);
}

static inline void house_fini(struct house *h)
{
    house_close(h);
    store_folder_close(&h->held);
    folder_remove(h->folder);
}

/* Time goes on, on both clocks, and everything that follows from it happens. */
static inline void house_pass_ms(struct house *h, int64_t ms)
{
    h->time.mono_ms += ms;
    h->time.wall_ms += ms;
    for (int i = 0; i < 50; i++)
        loop_turn(&h->loop);
}

/* Clients. */

static inline int house_connect(const struct house *h)
{
    const char *colon = strrchr(net_url(h->net), ':');
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port =
                                htons((uint16_t)strtol(colon + 1, NULL, 10)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    return fd;
}

static inline void house_send(const struct house *h, int fd, const char *line,
                              const char *headers, const char *body)
{
    char text[8192];
    int n = snprintf(text, sizeof(text),
                     "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                     "%s\r\n%sContent-Length: %zu\r\n\r\n%s",
                     line, h->token.text, headers, strlen(body), body);

    CHECK(n > 0 && n < (int)sizeof(text));
    CHECK(send(fd, text, (size_t)n, MSG_NOSIGNAL) == n);
}

/* Whether the bytes are one whole reply. */
static inline bool house_is_whole(const char *p, size_t n)
{
    const char *end = memmem(p, n, "\r\n\r\n", 4);
    const char *length = memmem(p, n, "Content-Length: ", 16);

    if (!end)
        return false;
    if (memmem(p, n, "chunked", 7))
        return n > 5 && memcmp(p + n - 5, "0\r\n\r\n", 5) == 0;
    return !length ||
           n >= (size_t)(end + 4 - p) + strtoul(length + 16, NULL, 10);
}

/* Before time passes: nothing is under way. A kernel that is short of time
 * brings what was said later than at once, and a thread takes its time. */
static inline void house_wait(struct house *h, int fd)
{
    struct pollfd p[2] = {
        {.fd = uv_backend_fd(&h->loop.uv), .events = POLLIN},
        {.fd = fd, .events = POLLIN},
    };

    if (uv_backend_timeout(&h->loop.uv) != 0)
        poll(p, 2, 2);
}

/* Turn until fd has a whole reply, or was closed: its bytes, NUL behind them.
 * Time passes while nothing happens; a reply must come before net gives up,
 * and once more as long for one that tries again. */
static inline size_t house_reply(struct house *h, int fd, char *out, size_t max)
{
    size_t n = 0;

    for (int i = 0; i < HOUSE_TURNS; i++) {
        ssize_t got;

        loop_turn(&h->loop);
        got = recv(fd, out + n, max - 1 - n, 0);
        if (got > 0)
            n += (size_t)got;
        out[n] = '\0';
        if (got == 0 || (got < 0 && errno != EAGAIN) || house_is_whole(out, n))
            return n;
        if (got < 0 && i % 8 == 6)
            house_wait(h, fd);
        if (got < 0 && i % 8 == 7) {
            h->time.mono_ms += HOUSE_STEP_MS;
            h->time.wall_ms += HOUSE_STEP_MS;
        }
    }
    T_FAIL("no reply after %zu bytes and a fault at %s: %s", n,
           fault_fired() ? fault_name() : "nothing", out);
}

/* One request and its reply; the status, zero when it was closed instead. */
static inline int house_ask(struct house *h, const char *line,
                            const char *headers, const char *body,
                            char out[HOUSE_ANSWER_MAX])
{
    int fd = house_connect(h);
    size_t n;

    house_send(h, fd, line, headers, body);
    n = house_reply(h, fd, out, HOUSE_ANSWER_MAX);
    close(fd);
    return n > 12 ? (int)strtol(out + 9, NULL, 10) : 0;
}

#endif
