#ifndef TEST_LIB_HUB_STAGE_H
#define TEST_LIB_HUB_STAGE_H

/* The house of house_stage.h with its hub, and clients on it that speak JSON
 * over a WebSocket by hand. */

#include <netinet/tcp.h>

#include "api/hub/hub.h"
#include "test/lib/server_stage.h"

struct hub_stage {
    struct house house; /* first */
    struct hub *hub;
};

static inline enum err hub_stage_take(void *ctx, uint64_t id,
                                      const struct http_request *rq,
                                      const struct caller *caller,
                                      struct why *why)
{
    return hub_take(((struct hub_stage *)ctx)->hub, id, rq, caller, why);
}

static inline struct hub_stats hub_stage_stats(void *ctx)
{
    return hub_stats(((struct hub_stage *)ctx)->hub);
}

static inline void hub_stage_recorded(void *ctx, uint64_t receipt, enum err e)
{
    hub_on_recorded(((struct hub_stage *)ctx)->hub, receipt, e);
}

static inline void hub_stage_call(void *ctx, uint64_t line, struct str agent,
                                  const struct wire_message *m)
{
    hub_on_call(((struct hub_stage *)ctx)->hub, line, agent, m);
}

static inline void hub_stage_delegated(void *ctx, const struct delegation *d,
                                       const struct task *t)
{
    hub_on_delegated(((struct hub_stage *)ctx)->hub, d, t);
}

static inline void hub_stage_delegated_chunk(void *ctx,
                                             const struct delegation *d,
                                             struct str agent, struct str text)
{
    hub_on_delegated_chunk(((struct hub_stage *)ctx)->hub, d, agent, text);
}

static inline void hub_stage_end(struct house *h)
{
    struct hub_stage *s = (struct hub_stage *)(void *)h;

    walk_set_hub(h->walk, NULL);
    hub_free(s->hub);
    s->hub = NULL;
}

static inline void hub_stage_revoked(struct house *h, const struct id *id)
{
    struct hub_stage *s = (struct hub_stage *)(void *)h;

    if (s->hub)
        hub_on_revoked(s->hub, id);
}

static inline void hub_stage_init(struct hub_stage *s,
                                  const struct hub_settings *settings)
{
    struct house *h = &s->house;

    house_init(h);
    s->hub = hub_new(&h->api, settings);
    CHECK(s->hub);
    h->on_close = hub_stage_end;
    h->on_revoked = hub_stage_revoked;
    h->api.hub = (struct api_hub){hub_stage_take, hub_stage_stats, s};
    walk_set_hub(h->walk, &(struct walk_hub){
                              .on_recorded = hub_stage_recorded,
                              .on_call = hub_stage_call,
                              .on_delegated = hub_stage_delegated,
                              .on_delegated_chunk = hub_stage_delegated_chunk,
                              .ctx = s});
}

static inline void hub_stage_fini(struct hub_stage *s)
{
    house_fini(&s->house);
}

/* Clients. */

struct hub_client {
    struct hub_stage *stage;
    int fd;
    struct buf in;
    struct ws_parse parse;
    bool is_open, is_over;
    uint16_t code;   /* of the close, once it is over; 1006: without a word */
    char text[8192]; /* the last message, NUL behind it */
};

static inline void hub_client_send(struct hub_client *c, const char *text)
{
    static const uint8_t mask[4] = {1, 2, 3, 4};
    struct buf out;

    buf_init(&out, 4 << 20);
    ws_write(&out, WS_TEXT, str_of(text), mask);
    if (out.over) { /* a fault that was meant for the other side */
        buf_clear(&out);
        ws_write(&out, WS_TEXT, str_of(text), mask);
    }
    CHECK(!out.over);
    for (size_t at = 0; at < out.n && !c->is_over;) {
        ssize_t n = send(c->fd, out.p + at, out.n - at, MSG_NOSIGNAL);

        if (n > 0)
            at += (size_t)n;
        else if (errno == EAGAIN)
            loop_turn(&c->stage->house.loop);
        else
            break; /* it was shown out */
    }
    buf_fini(&out);
}

/* Turn once and take what is there. Time passes now and then, while nothing
 * comes. */
static inline void hub_client_turn(struct hub_client *c, int i, bool may_pass)
{
    struct house *h = &c->stage->house;
    char *p = buf_reserve(&c->in, 65536);
    ssize_t n;

    if (!p) /* likewise */
        p = buf_reserve(&c->in, 65536);
    CHECK(p);
    loop_turn(&h->loop);
    n = recv(c->fd, p, 65536, 0);
    if (n > 0)
        buf_commit(&c->in, (size_t)n);
    else if (n == 0 || errno != EAGAIN)
        c->is_over = true;
    else if (may_pass && i % 8 == 6)
        house_wait(h, c->fd);
    else if (may_pass && i % 8 == 7) {
        h->time.mono_ms += HOUSE_STEP_MS;
        h->time.wall_ms += HOUSE_STEP_MS;
    }
}

/* A message that is here; false when none is. */
static inline bool hub_client_take(struct hub_client *c)
{
    static const struct ws_limits limits = {8 << 20, 8 << 20};
    struct ws_event e;

    for (;;) {
        enum ws_step step =
            c->in.n ? ws_parse(&c->parse, &limits, c->in.p, &c->in.n, &e)
                    : WS_MORE;

        if (step == WS_MORE)
            return false;
        CHECK(step != WS_BAD);
        if (step == WS_CLOSE) {
            c->is_over = true;
            c->code = e.code;
            return false;
        }
        snprintf(c->text, sizeof(c->text), "%.*s", STR_ARG(e.payload));
        buf_drop(&c->in, e.used);
        if (step == WS_MESSAGE)
            return true;
    }
}

/* The next message; NULL when the connection is over. Time passes while
 * nothing happens. */
static inline const char *hub_client_next(struct hub_client *c)
{
    for (int i = 0; i < HOUSE_TURNS; i++) {
        if (hub_client_take(c))
            return c->text;
        if (c->is_over)
            return NULL;
        hub_client_turn(c, i, true);
    }
    T_FAIL("nothing comes, with a fault at %s",
           fault_fired() ? fault_name() : "nothing");
}

/* The next message has these words in it. */
static inline void hub_client_hears(struct hub_client *c, const char *words)
{
    const char *text = hub_client_next(c);

    if (!text || !strstr(text, words))
        T_FAIL("\"%s\" does not say \"%s\"", text ? text : "(over)", words);
}

/* Whether nothing comes for a while. */
static inline bool hub_client_is_quiet(struct hub_client *c)
{
    for (int i = 0; i < 50; i++)
        hub_client_turn(c, i, false);
    return !hub_client_take(c) && !c->is_over;
}

/* False: it was not let in, or its head was cut. */
static inline bool hub_client_open(struct hub_client *c, struct hub_stage *s)
{
    *c = (struct hub_client){.stage = s,
                             .fd = house_connect(&s->house),
                             .parse = {.is_client = true},
                             .code = WS_NO_CLOSE};
    buf_init(&c->in, 16 << 20);
    /* Time does not pass here by itself: nothing may wait for it. */
    CHECK(setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) ==
          0);
    house_send(&s->house, c->fd, "GET /hub",
               "Upgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
               "");
    for (int i = 0; i < HOUSE_TURNS && !c->is_over; i++) {
        const char *end = c->in.n ? memmem(c->in.p, c->in.n, "\r\n\r\n", 4) : 0;

        if (end) {
            c->is_open = c->in.n > 12 && memcmp(c->in.p + 9, "101", 3) == 0;
            buf_drop(&c->in, (size_t)(end + 4 - c->in.p));
            c->is_over = !c->is_open;
            return c->is_open;
        }
        hub_client_turn(c, i, true);
    }
    return false;
}

static inline void hub_client_close(struct hub_client *c)
{
    close(c->fd);
    buf_fini(&c->in);
}

/* False when the connection is over: then there is no more to ask. */
static inline bool hub_client_ask(struct hub_client *c, const char *text)
{
    hub_client_send(c, text);
    return hub_client_next(c) != NULL;
}

/* A life on a hub of its own with the nth fault, of that step or (NULL) of any;
 * then someone comes and must be served. Whether the fault was met. */
static inline bool hub_lives_with_fault(const struct hub_settings *settings,
                                        void (*life)(struct hub_stage *s),
                                        const char *where, long nth)
{
    struct hub_stage s;
    struct hub_client c;
    bool fired;

    hub_stage_init(&s, settings);
    if (where)
        fault_arm_at(where, nth);
    else
        fault_arm(nth);
    life(&s);
    fired = fault_fired();
    if (s.house.api.is_ready) { /* else the store has failed */
        fault_arm(0);
        CHECK(hub_client_open(&c, &s));
        CHECK(hub_client_ask(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
                                 "\"ping\"}"));
        hub_client_close(&c);
    }
    hub_stage_fini(&s);
    return fired;
}

#endif
