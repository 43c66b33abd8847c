/* Newcomers turned away: an address at its limit affects no other, full
 * buffers affect all newcomers, and in a rush all of them are told. */
#include "net/server/internal.h"
#include "test/lib/net_stage.h"

#include <sys/mman.h>

static struct net_opts three_each(void)
{
    struct net_opts opts = test_opts();

    opts.max_connections_per_address = 3;
    return opts;
}

/* What a newcomer hears who asks for something. */
static struct heard *hear_at(struct stage *s, int fd)
{
    static struct heard h;

    h = (struct heard){.n = 0};
    say(fd, GET_CLOSE("/hello"));
    HEAR_UNTIL(s, fd, &h, h.is_eof || h.is_reset);
    close(fd);
    turn(s, 3);
    return &h;
}

static int64_t refused_by(const struct stage *s, enum net_room why)
{
    return net_stats(s->net).refused_by_total[why];
}

/* One address at its limit; and then another comes. */
static bool others_get_in(struct stage *s)
{
    int fds[3];
    bool is_in;

    for (int i = 0; i < 3; i++)
        fds[i] = dial_from(s, 2);
    UNTIL(s, net_stats(s->net).connections == 3);
    is_in = has(hear_at(s, dial_from(s, 3)), "200 OK");
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    UNTIL(s, net_stats(s->net).connections == 0);
    return is_in;
}

TEST(an_address_has_so_many_and_others_do_not_notice)
{
    struct stage s;

    stage_init(&s, three_each());
    CHECK(others_get_in(&s));
    CHECK(net_stats(s.net).refused_total == 0);
    stage_fini(&s);
}

TEST(the_test_above_would_notice_one_count_for_all)
{
    struct stage s;

    stage_init(&s, three_each());
    fault_arm_at("net.one_crowd", 1);
    CHECK(!others_get_in(&s));
    CHECK_INT(refused_by(&s, NET_NO_ADDRESS), 1);
    stage_fini(&s);
}

TEST(beyond_the_limit_of_an_address_it_is_turned_away_in_words)
{
    struct stage s;
    struct heard *h;
    int fds[3];

    stage_init(&s, three_each());
    for (int i = 0; i < 3; i++)
        fds[i] = dial(&s);
    UNTIL(&s, net_stats(s.net).connections == 3);
    for (int i = 1; i <= 2; i++) {
        h = hear_at(&s, dial(&s));
        CHECK(has(h, "503 Service Unavailable") && has(h, "overloaded"));
        CHECK(has(h, "http.maxConnectionsPerAddress") && !h->is_reset);
        CHECK(has(h, "Retry-After: 1\r\n"));
        CHECK_INT(refused_by(&s, NET_NO_ADDRESS), i);
    }
    close(fds[1]);
    UNTIL(&s, net_stats(s.net).connections == 2);
    check_alive(&s);
    close(fds[0]);
    close(fds[2]);
    UNTIL(&s, net_stats(s.net).connections == 0);
    CHECK_INT(s.net->crowds.by_key.n, 0);
    stage_fini(&s);
}

TEST(all_of_v6_being_exempt_is_nothing_to_v4)
{
    static const struct guard_range all = {.prefix = 0};
    struct net_opts opts = three_each();
    struct stage s;
    int fd;

    opts.exempt = &all;
    opts.n_exempt = 1;
    opts.max_connections_per_address = 1;
    stage_init(&s, opts);
    fd = dial(&s);
    UNTIL(&s, net_stats(s.net).connections == 1);
    CHECK(has(hear_at(&s, dial(&s)), "503 "));
    close(fd);
    stage_fini(&s);
}

TEST(who_is_exempt_is_not_counted)
{
    static const struct guard_range exempt = {
        .addr = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 4}, .prefix = 128};
    struct net_opts opts = three_each();
    struct stage s;
    int fds[8];

    opts.exempt = &exempt;
    opts.n_exempt = 1;
    stage_init(&s, opts);
    for (int i = 0; i < 8; i++)
        fds[i] = dial_from(&s, i < 5 ? 4 : 5);
    UNTIL(&s, net_stats(s.net).connections == 8);
    CHECK_INT(s.net->crowds.by_key.n, 1);
    CHECK(has(hear_at(&s, dial_from(&s, 4)), "200 OK"));
    CHECK(has(hear_at(&s, dial_from(&s, 5)), "503 "));
    opts.n_exempt = 0; /* from now on it is */
    opts.max_connections_per_address = 1;
    net_set_opts(s.net, &opts);
    CHECK(has(hear_at(&s, dial_from(&s, 4)), "200 OK"));
    CHECK(has(hear_at(&s, dial_from(&s, 5)), "503 "));
    opts.max_connections_per_address = 0; /* without a limit */
    net_set_opts(s.net, &opts);
    CHECK(has(hear_at(&s, dial_from(&s, 5)), "200 OK"));
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    stage_fini(&s);
}

TEST(there_are_never_more_counts_than_connections)
{
    enum { PEERS = 12 };
    struct net_opts opts = three_each();
    struct stage s;
    int fds[PEERS];

    opts.max_connections = PEERS;
    stage_init(&s, opts);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < PEERS; i++)
            fds[i] =
                open_with(&s, HOLD, GET("/held"),
                          dial_from(&s, 2 + (unsigned)(i + round * PEERS)));
        CHECK_INT(net_stats(s.net).connections, PEERS);
        CHECK_INT(s.net->crowds.by_key.n, PEERS);
        CHECK(has(hear_at(&s, dial_from(&s, 250)), "503 "));
        CHECK_INT(s.net->crowds.by_key.n, PEERS);
        reply_all(&s);
        for (int i = 0; i < PEERS; i++)
            close(fds[i]);
        UNTIL(&s, net_stats(s.net).connections == 0);
        CHECK_INT(s.net->crowds.by_key.n, 0);
    }
    stage_fini(&s);
}

TEST(in_a_rush_all_are_told)
{
    enum { RUSH = AWAY_MAX * 3 };
    struct net_opts opts = test_opts();
    struct stage s;
    int fds[RUSH + 1];

    opts.max_connections = 1;
    stage_init(&s, opts);
    fds[0] = open_request(&s, HOLD, GET("/held"));
    s.mode = ANSWER;
    for (int i = 1; i <= RUSH; i++) {
        fds[i] = dial(&s);
        if (i % 2) /* some have spoken before they are taken */
            say(fds[i], GET("/hello"));
    }
    UNTIL(&s, net_stats(s.net).refused_total == RUSH);
    CHECK(net_stats(s.net).connections == AWAY_MAX + 1);
    for (int i = 1; i <= RUSH; i++) {
        struct heard h = {.n = 0};

        HEAR_UNTIL(&s, fds[i], &h, h.is_eof || h.is_reset);
        CHECK(has(&h, "503 Service Unavailable") && !h.is_reset);
        CHECK(has(&h, "Retry-After: 1\r\n") && has(&h, "as many connections"));
        CHECK(has(&h, "Connection: close\r\n") && has(&h, "Date: "));
        close(fds[i]);
    }
    CHECK_INT(refused_by(&s, NET_NO_CONNECTION), RUSH);
    CHECK_INT(net_stats(s.net).replies_total[5], RUSH);
    reply_all(&s);
    close(fds[0]);
    UNTIL(&s, net_stats(s.net).connections == 0);
    check_alive(&s);
    stage_fini(&s);
}

TEST(who_cannot_even_be_told_is_closed)
{
    struct net_opts opts = test_opts();
    struct heard h = {.n = 0};
    struct stage s;
    int fds[AWAY_MAX + 1], late;

    opts.max_connections = 1;
    stage_init(&s, opts);
    fds[0] = open_request(&s, HOLD, GET("/held"));
    s.mode = ANSWER;
    for (int i = 1; i <= AWAY_MAX; i++)
        fds[i] = dial(&s);
    UNTIL(&s, net_stats(s.net).refused_total == AWAY_MAX);
    turn(&s, 3);
    fault_arm_at("net.away", 1);
    late = dial(&s);
    HEAR_UNTIL(&s, late, &h, h.is_eof || h.is_reset);
    CHECK(fault_fired() && h.n == 0);
    fault_arm(0);
    close(late);
    reply_all(&s);
    for (int i = 0; i <= AWAY_MAX; i++)
        close(fds[i]);
    UNTIL(&s, net_stats(s.net).connections == 0);
    check_alive(&s);
    stage_fini(&s);
}

/* The memory of all buffers, as if it was held. */
static void hold_bytes(struct stage *s, struct conn *c, size_t n)
{
    s->net->held_bytes -= c->in.cap;
    buf_fini(&c->in);
    buf_init(&c->in, n);
    CHECK(n == 0 || buf_reserve(&c->in, n));
    CHECK(c->in.cap == n);
    s->net->held_bytes += n;
    c->counted_held_bytes = conn_held_bytes(c);
}

static int times_logged(const struct stage *s, const char *word)
{
    static char text[65536];
    ssize_t n = pread(s->log.fd, text, sizeof(text) - 1, 0);
    int times = 0;

    CHECK(n >= 0);
    text[n] = 0;
    for (const char *p = text; (p = strstr(p, word)); p++)
        times++;
    return times;
}

TEST(while_the_buffers_are_full_nobody_new_comes_in)
{
    enum { MOST = 8192 };
    struct net_opts opts = test_opts();
    struct heard *h;
    struct stage s;
    int first;

    opts.max_buffered_bytes = MOST;
    stage_init(&s, opts);
    CHECK(close(s.log.fd) == 0);
    s.log.fd = memfd_create("log", MFD_CLOEXEC);
    first = dial(&s);
    UNTIL(&s, net_stats(s.net).connections == 1);
    hold_bytes(&s, s.net->slots[0].c, MOST + MOST / 4);
    check_alive(&s); /* a quarter beyond the limit */
    for (int episode = 1; episode <= 2; episode++) {
        hold_bytes(&s, s.net->slots[0].c, MOST + MOST / 4 + 1);
        for (int i = 0; i < 3; i++) {
            h = hear_at(&s, dial(&s));
            CHECK(has(h, "503 Service Unavailable") && !h->is_reset);
            CHECK(has(h, "http.maxBufferedBytes"));
            CHECK(has(h, "Retry-After: 1\r\n"));
        }
        CHECK_INT(refused_by(&s, NET_NO_BUFFERS), 4 * episode - 1);
        hold_bytes(&s, s.net->slots[0].c, MOST + 1);
        CHECK(has(hear_at(&s, dial(&s)), "503 ")); /* not this one yes, ... */
        hold_bytes(&s, s.net->slots[0].c, MOST);
        check_alive(&s);
        CHECK_INT(times_logged(&s, "net.sheds\""), episode);
        CHECK_INT(times_logged(&s, "net.sheds_no_more"), episode);
    }
    hold_bytes(&s, s.net->slots[0].c, 0);
    close(first);
    stage_fini(&s);
}
