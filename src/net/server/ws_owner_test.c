/* What the owner asks for while something is on its way: bytes are in the
 * kernel, then the owner's call, then one turn. The call counts from where it
 * is made; what came before it and was not looked at yet is not lost, and what
 * it rules out does not come, however the two meet. On both sides. */
#include "net/server/internal.h"
#include "test/lib/dial_stage.h"

#define LEFT "[it left without a close] "
#define LOST "[the connection was lost] "

/* How the peer's bytes end. */
enum after { STAYS, SHUTS, RESETS };

/* What is in the kernel. */
struct arrival {
    const char *texts[2];
    bool has_ping, has_close, has_half;
    enum after after;
};

static void add_frame(struct buf *b, bool is_served, uint8_t opcode,
                      struct str payload)
{
    static const uint8_t mask[4] = {1, 2, 3, 4};

    ws_write(b, opcode, payload, is_served ? mask : NULL);
}

/* As a client speaks to us, or as a server does. */
static void arrive(int *fd, const struct arrival *a, bool is_served)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    struct buf b;

    buf_init(&b, 8192);
    for (int i = 0; i < 2 && a->texts[i]; i++)
        add_frame(&b, is_served, WS_TEXT, str_of(a->texts[i]));
    if (a->has_ping)
        add_frame(&b, is_served, WS_OP_PING, STR("p"));
    if (a->has_close)
        add_frame(&b, is_served, WS_OP_CLOSE, STR("\x03\xe8good"));
    if (a->has_half) {
        add_frame(&b, is_served, WS_TEXT, STR("half"));
        b.n--;
    }
    if (b.n)
        say_n(*fd, b.p, b.n);
    buf_fini(&b);
    if (a->after == SHUTS)
        CHECK(shutdown(*fd, SHUT_WR) == 0);
    if (a->after != RESETS)
        return;
    CHECK(setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) == 0);
    close(*fd);
    *fd = -1;
}

/* An open one, with the peer played by hand. */
struct scene {
    struct dial_stage d;
    bool is_served;
    struct ws_stage *told; /* who owns it */
    uint64_t id;
    int fd;
};

static void scene_init(struct scene *sc, bool is_served)
{
    struct dial_stage *d = &sc->d;

    dial_stage_init(d, test_opts());
    sc->is_served = is_served;
    if (is_served) {
        static struct ws_client c;

        ws_open(&d->w, &c);
        sc->fd = c.fd;
        sc->id = ws_id(&d->w);
        sc->told = &d->w;
        return;
    }
    raw_init(d);
    call_port(d, "127.0.0.1", d->raw_port);
    sc->fd = raw_agree(d, "", 0);
    UNTIL(&d->w.s, d->call.n_opens == 1);
    turn(&d->w.s, 2);
    sc->id = d->id;
    sc->told = &d->call;
    sc->told->told[0] = 0;
}

/* Whatever it was: it ends, once. */
static void scene_fini(struct scene *sc)
{
    if (sc->fd >= 0)
        close(sc->fd);
    later(&sc->d.w.s, sc->d.w.s.opts.ws_timeout_ms);
    dial_stage_fini(&sc->d);
    CHECK_INT(sc->told->n_ends, 1);
}

enum call { SEND, CLOSE, PAUSE, GO_ON, STOP, N_CALLS };

static void call_owner(struct scene *sc, enum call call)
{
    struct net *n = sc->d.w.s.net;

    switch (call) {
    case SEND: CHECK(net_ws_send(n, sc->id, WS_TEXT, STR("x")) == OK); break;
    case CLOSE: net_ws_close(n, sc->id, WS_NORMAL, STR("enough")); break;
    case PAUSE: net_ws_pause(n, sc->id, true); break;
    case GO_ON: net_ws_pause(n, sc->id, false); break;
    case STOP: net_stop(n, 60000, stage_done, &sc->d.w.s); break;
    case N_CALLS: break;
    }
}

static void check_told(const struct scene *sc, size_t row, int call,
                       const char *words)
{
    if (strcmp(sc->told->told, words) != 0)
        T_FAIL("%s, arrival %zu, call %d: told \"%s\" and not \"%s\"",
               sc->is_served ? "served" : "dialled", row, call, sc->told->told,
               words);
}

/* Told in the very turn of the call, by which call it was; who goes on begins
 * to read at its end. After a goodbye of
 * ours messages count no more; a paused one is told its end alone. */
static const struct {
    struct arrival a;
    const char *sent, *closed, *paused, *stopped; /* going on: as sent */
} meetings[] = {
    {{.texts = {"one"}}, "text[one] ", "", "", ""},
    {{.texts = {"one", "two"}}, "text[one] text[two] ", "", "", ""},
    {{.has_ping = true}, "", "", "", ""},
    {{.has_half = true}, "", "", "", ""},
    {{.has_close = true},
     "end 1000[good] ",
     "end 1000 ours[good] ",
     "",
     "end 1000 ours[good] "},
    {{.texts = {"one"}, .has_close = true},
     "text[one] end 1000[good] ",
     "end 1000 ours[good] ",
     "",
     "end 1000 ours[good] "},
    {{.after = SHUTS},
     "end 1006" LEFT,
     "end 1006 ours" LEFT,
     "end 1006" LEFT,
     "end 1006 ours" LEFT},
    {{.after = RESETS},
     "end 1006" LOST,
     "end 1006 ours" LOST,
     "end 1006" LOST,
     "end 1006 ours" LOST},
};

TEST(a_call_of_the_owner_meets_what_has_come)
{
    for (size_t i = 0; i < sizeof(meetings) / sizeof(meetings[0]); i++)
        for (int k = 0; k < 2 * N_CALLS; k++) {
            enum call call = (enum call)(k / 2);
            const char *words[] = {
                [SEND] = meetings[i].sent,    [CLOSE] = meetings[i].closed,
                [PAUSE] = meetings[i].paused, [GO_ON] = meetings[i].sent,
                [STOP] = meetings[i].stopped,
            };
            struct scene sc;

            scene_init(&sc, k % 2);
            if (call == GO_ON) {
                net_ws_pause(sc.d.w.s.net, sc.id, true);
                turn(&sc.d.w.s, 2);
            }
            arrive(&sc.fd, &meetings[i].a, sc.is_served);
            call_owner(&sc, call);
            check_told(&sc, i, call, ""); /* never from inside a call */
            turn(&sc.d.w.s, call == GO_ON ? 2 : 1);
            check_told(&sc, i, call, words[call]);
            turn(&sc.d.w.s, 3); /* and nothing more comes of it */
            check_told(&sc, i, call, words[call]);
            scene_fini(&sc);
        }
}

/* A message and the end of everything behind it, in the kernel together. */
TEST(the_end_behind_a_message_does_not_overtake_it)
{
    static const struct arrival both = {.texts = {"one", "two"},
                                        .after = SHUTS};
    static const char *words[] = {
        [SEND] = "text[one] text[two] end 1006" LEFT,
        [CLOSE] = "end 1006 ours" LEFT,
        [PAUSE] = "",
        [GO_ON] = "text[one] text[two] end 1006" LEFT,
        [STOP] = "end 1006 ours" LEFT,
    };

    for (int k = 0; k < 2 * N_CALLS; k++) {
        enum call call = (enum call)(k / 2);
        struct scene sc;

        scene_init(&sc, k % 2);
        if (call == GO_ON) {
            net_ws_pause(sc.d.w.s.net, sc.id, true);
            turn(&sc.d.w.s, 2);
        }
        arrive(&sc.fd, &both, sc.is_served);
        call_owner(&sc, call);
        turn(&sc.d.w.s, 5);
        check_told(&sc, 0, call, words[call]);
        if (call == PAUSE) {
            call_owner(&sc, GO_ON);
            turn(&sc.d.w.s, 5);
            check_told(&sc, 0, call, words[GO_ON]);
        }
        scene_fini(&sc);
    }
}

/* Two calls of one turn. */
TEST(the_second_call_of_a_turn_counts_from_the_first)
{
    static const struct arrival one = {.texts = {"one"}};
    static const struct {
        enum call first, second;
        const char *words;
    } ways[] = {
        {PAUSE, GO_ON, "text[one] "},
        {PAUSE, CLOSE, ""},
        {PAUSE, STOP, ""},
        {SEND, CLOSE, ""},
        {CLOSE, STOP, ""},
        {STOP, CLOSE, ""},
        {CLOSE, PAUSE, ""},
        {SEND, PAUSE, ""},
    };

    for (size_t i = 0; i < 2 * sizeof(ways) / sizeof(ways[0]); i++) {
        struct scene sc;

        scene_init(&sc, i % 2);
        arrive(&sc.fd, &one, sc.is_served);
        call_owner(&sc, ways[i / 2].first);
        call_owner(&sc, ways[i / 2].second);
        turn(&sc.d.w.s, 3);
        check_told(&sc, i, (int)ways[i / 2].second, ways[i / 2].words);
        scene_fini(&sc);
    }
}

/* Accepting. */

TEST(accepting_late_loses_nothing)
{
    /* Behind the handshake, read with it; and in the kernel by then. */
    static const struct {
        struct arrival early, late;
        const char *words;
    } ways[] = {
        {{.after = STAYS}, {.after = STAYS}, ""},
        {{.after = STAYS}, {.texts = {"two"}}, "text[two] "},
        {{.after = STAYS}, {.after = SHUTS}, "end 1006" LEFT},
        {{.after = STAYS}, {.has_close = true}, "end 1000[good] "},
        {{.after = STAYS}, {.after = RESETS}, "end 1006" LOST},
        {{.texts = {"one"}}, {.after = STAYS}, "text[one] "},
        {{.texts = {"one"}}, {.texts = {"two"}}, "text[one] text[two] "},
        {{.texts = {"one"}}, {.after = SHUTS}, "text[one] end 1006" LEFT},
        {{.texts = {"one"}, .after = SHUTS},
         {.after = STAYS},
         "text[one] end 1006" LEFT},
        {{.texts = {"one"}},
         {.texts = {"two"}, .after = SHUTS},
         "text[one] text[two] end 1006" LEFT},
        {{.texts = {"one"}}, {.has_close = true}, "text[one] end 1000[good] "},
        {{.has_close = true}, {.after = SHUTS}, "end 1000[good] "},
        {{.has_half = true}, {.after = SHUTS}, "end 1006" LEFT},
    };

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct scene sc = {.is_served = true};
        struct ws_stage *w = &sc.d.w;

        dial_stage_init(&sc.d, test_opts());
        sc.told = w;
        w->holds = true;
        sc.fd = dial(&w->s);
        say(sc.fd, HELLO("/ws"));
        arrive(&sc.fd, &ways[i].early, true);
        UNTIL(&w->s, w->s.n_requests == 1);
        turn(&w->s, 3);
        arrive(&sc.fd, &ways[i].late, true);
        ws_let_in(w, w->s.ids[0]);
        CHECK(w->accepted == OK);
        check_told(&sc, i, -1, "");
        turn(&w->s, 1);
        turn(&w->s, 3);
        check_told(&sc, i, -1, ways[i].words);
        scene_fini(&sc);
    }
}

/* In the same turn as it is accepted, with a message and the end behind it. */
TEST(accepting_and_one_more_call)
{
    static const struct arrival early = {.texts = {"one"}};
    static const struct arrival late = {.texts = {"two"}, .after = SHUTS};
    static const char *words[] = {
        [SEND] = "text[one] text[two] end 1006" LEFT,
        [CLOSE] = "end 1006 ours" LEFT,
        [PAUSE] = "",
        [GO_ON] = "text[one] text[two] end 1006" LEFT,
        [STOP] = "end 1006 ours" LEFT,
    };

    for (int call = 0; call < N_CALLS; call++) {
        struct scene sc = {.is_served = true};
        struct ws_stage *w = &sc.d.w;

        dial_stage_init(&sc.d, test_opts());
        sc.told = w;
        w->holds = true;
        sc.fd = dial(&w->s);
        say(sc.fd, HELLO("/ws"));
        arrive(&sc.fd, &early, true);
        UNTIL(&w->s, w->s.n_requests == 1);
        turn(&w->s, 3);
        arrive(&sc.fd, &late, true);
        sc.id = w->s.ids[0];
        ws_let_in(w, sc.id);
        if (call == GO_ON)
            call_owner(&sc, PAUSE);
        call_owner(&sc, (enum call)call);
        turn(&w->s, 5);
        check_told(&sc, 0, call, words[call]);
        if (call == PAUSE) {
            call_owner(&sc, GO_ON);
            turn(&w->s, 5);
            check_told(&sc, 0, call, words[GO_ON]);
        }
        scene_fini(&sc);
    }
}

/* Dialling: whatever has come, who gave up hears that, and of no opening. */

#define GIVEN_UP "end 1006 ours gone[it was given up] "
#define STOPPING "end 1006 ours stopping[the server is stopping] "

static void give_up(struct dial_stage *d, bool by_stopping)
{
    if (by_stopping)
        net_stop(d->w.s.net, 60000, stage_done, &d->w.s);
    else
        net_ws_close(d->w.s.net, d->id, WS_NORMAL, STR(""));
    CHECK_INT(d->call.n_ends, 0);
}

static void check_given_up(struct dial_stage *d, bool by_stopping)
{
    turn(&d->w.s, 1);
    CHECK_STR(str_of(d->call.told), by_stopping ? STOPPING : GIVEN_UP);
    turn(&d->w.s, 3);
    CHECK(d->call.n_ends == 1 && d->call.n_opens == 0);
    CHECK_INT(net_stats(d->w.s.net).dials_failed_total, 1);
    CHECK_INT(net_stats(d->w.s.net).websockets_total, 0);
}

static int dial_raw(struct dial_stage *d, const char *scheme)
{
    char url[64];
    int fd;

    dial_stage_init(d, test_opts());
    raw_init(d);
    snprintf(url, sizeof(url), "%s://127.0.0.1:%u/", scheme, d->raw_port);
    CHECK(try_call(d, url) == OK);
    fd = raw_accept(d);
    turn(&d->w.s, 3);
    return fd;
}

TEST(given_up_with_the_answer_in_the_kernel)
{
    static const struct {
        const char *head; /* NULL: none */
        bool agrees;
        enum after after;
    } answers[] = {
        {"HTTP/1.1 101 Fine\r\n", true, STAYS},
        {"HTTP/1.1 101 Fine\r\n", true, SHUTS},
        {"HTTP/1.1 200 No\r\n", false, STAYS},
        {"SSH-2.0-hello\r\n", false, STAYS},
        {NULL, false, SHUTS},
        {NULL, false, RESETS},
    };

    for (size_t i = 0; i < 2 * sizeof(answers) / sizeof(answers[0]); i++) {
        const struct arrival rest = {.texts = {NULL},
                                     .after = answers[i / 2].after};
        struct dial_stage d;
        struct heard h;
        char accept[WS_ACCEPT_BYTES + 1], text[512];
        int fd = dial_raw(&d, "ws");

        raw_hear_ask(&d, fd, &h, accept);
        snprintf(text, sizeof(text),
                 "%sUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 "Sec-WebSocket-Accept: %s\r\n\r\n%s",
                 answers[i / 2].head ? answers[i / 2].head : "", accept,
                 answers[i / 2].agrees ? "\x81\x02hi" : "");
        if (answers[i / 2].head)
            say(fd, text);
        arrive(&fd, &rest, false);
        give_up(&d, i % 2);
        check_given_up(&d, i % 2);
        if (fd >= 0)
            close(fd);
        dial_stage_fini(&d);
    }
}

TEST(given_up_when_its_time_is_over)
{
    for (int by_stopping = 0; by_stopping < 2; by_stopping++) {
        struct dial_stage d;
        int fd = dial_raw(&d, "ws");

        give_up(&d, by_stopping);
        d.w.s.time.mono_ms += d.what.timeout_ms;
        check_given_up(&d, by_stopping);
        close(fd);
        dial_stage_fini(&d);
    }
}

TEST(given_up_in_the_middle_of_tls)
{
    for (int i = 0; i < 6; i++) {
        static const struct arrival rest[] = {
            {.texts = {"no TLS"}}, {.after = SHUTS}, {.after = RESETS}};
        struct dial_stage d;
        int fd = dial_raw(&d, "wss");

        arrive(&fd, &rest[i / 2], false);
        give_up(&d, i % 2);
        check_given_up(&d, i % 2);
        if (fd >= 0)
            close(fd);
        dial_stage_fini(&d);
    }
}

TEST(given_up_when_it_is_connected)
{
    for (int by_stopping = 0; by_stopping < 2; by_stopping++) {
        struct dial_stage d;

        dial_stage_init(&d, test_opts());
        raw_init(&d);
        call_port(&d, "127.0.0.1", d.raw_port);
        turn(&d.w.s, 1); /* loopback has connected it by now */
        give_up(&d, by_stopping);
        fault_arm_at("net.open", 1); /* must not be reached */
        check_given_up(&d, by_stopping);
        CHECK(!fault_fired());
        fault_arm(0);
        dial_stage_fini(&d);
    }
}

TEST(given_up_when_the_name_is_found_or_not)
{
    for (int i = 0; i < 4; i++) {
        struct dial_stage d;

        dial_stage_init(&d, test_opts());
        raw_init(&d);
        call_port(&d, "a.example", d.raw_port);
        UNTIL(&d.w.s, asked.rq);
        give_up(&d, i % 2);
        if (i < 2)
            answer_name("127.0.0.1");
        else
            answer_nothing(UV_EAI_NONAME);
        check_given_up(&d, i % 2);
        CHECK(accept4(d.raw_fd, NULL, NULL, SOCK_CLOEXEC) < 0);
        dial_stage_fini(&d);
    }
}

/* What is not open yet takes nothing, and is none the worse for it. */
TEST(sending_and_pausing_while_it_is_being_dialled)
{
    struct dial_stage d;
    int fd;

    dial_stage_init(&d, test_opts());
    raw_init(&d);
    call_port(&d, "127.0.0.1", d.raw_port);
    fd = raw_agree(&d, "\x81\x02hi", 4);
    CHECK(net_ws_send(d.w.s.net, d.id, WS_TEXT, STR("early")) == ERR_GONE);
    net_ws_pause(d.w.s.net, d.id, true);
    UNTIL(&d.w.s, strstr(d.call.told, "text["));
    CHECK_STR(str_of(d.call.told), "open[] text[hi] ");
    close(fd);
    dial_stage_fini(&d);
    CHECK_INT(d.call.n_ends, 1);
}
