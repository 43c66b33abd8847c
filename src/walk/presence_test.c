/* States of agents in the feed: which changes are reported, and how many. */
#include "walk/presence.h"

#include "test/lib/feed_stage.h"

enum { AGENTS = 3 * PRESENCE_PER_LOOK, TOLD_BYTES = 64 * 1024 };

struct fleet {
    struct stage s;
    struct presence *presence;
    enum agent_state state[AGENTS]; /* zero: there is none */
    int64_t seen;                   /* last feed entry seen by check_told */
};

static struct fleet f;

/* "A7" is the seventh; it is looked up in lower case. */
static enum agent_state state_of(void *ctx, struct str name,
                                 struct str *written)
{
    static char text[8];
    int64_t i;

    (void)ctx;
    CHECK(name.n > 1 && name.p[0] == 'a');
    CHECK(str_to_i64(str_sub(name, 1, name.n), &i) == OK && i < AGENTS);
    snprintf(text, sizeof(text), "A%d", (int)i);
    *written = str_of(text);
    return f.state[i];
}

static void fleet_open(enum agent_state all)
{
    f = (struct fleet){.seen = 0};
    stage_open(&f.s);
    for (int i = 0; i < AGENTS; i++)
        f.state[i] = all;
    f.presence = presence_new(&(struct presence_opts){.loop = &f.s.loop,
                                                      .log = &f.s.log,
                                                      .store = f.s.store,
                                                      .state_of = state_of});
    CHECK(f.presence);
}

static void fleet_close(void)
{
    turns(&f.s, 5); /* the store gives back what it has */
    presence_free(f.presence);
    stage_close(&f.s);
}

static void move(int i, enum agent_state to)
{
    char name[8];

    snprintf(name, sizeof(name), "%c%d", i % 2 ? 'A' : 'a', i);
    presence_stir(f.presence, str_of(name));
    f.state[i] = to;
}

static void pass(int64_t ms)
{
    while (ms > 0) {
        int64_t step = ms < PRESENCE_LOOK_MS ? ms : PRESENCE_LOOK_MS;

        f.s.time.mono_ms += step;
        f.s.time.wall_ms += step;
        turns(&f.s, 3);
        ms -= step;
    }
}

/* The new entries of the feed; returns how many count. */
static int read_told(struct buf *out)
{
    struct feed_reader r = {.on_news = hear_nothing};
    struct caller admin = caller_of("admin", ROLE_ADMIN);
    struct feed_entry e;
    int n = 0;

    turns(&f.s, 3);
    feed_join(f.s.feed, &r, &admin, f.seen);
    while (feed_next(f.s.feed, &r, &e)) {
        CHECK_STR(e.type, "agent.state");
        CHECK(e.is_for_seers && !e.requester.n && !e.root_user.n);
        CHECK(e.at_ms > 0 && e.at_ms <= f.s.time.wall_ms);
        buf_addf(out, "%.*s %.*s\n", STR_ARG(e.agent), STR_ARG(e.data));
        n++;
    }
    f.seen = r.after;
    feed_leave(f.s.feed, &r);
    return n;
}

static int n_told(void)
{
    struct buf out;
    int n;

    buf_init(&out, TOLD_BYTES);
    n = read_told(&out);
    buf_fini(&out);
    return n;
}

static void check_told(const char *want)
{
    struct buf out;

    buf_init(&out, TOLD_BYTES);
    read_told(&out);
    CHECK_STR(buf_str(&out), want);
    buf_fini(&out);
}

TEST(what_is_news_is_told_a_moment_later_with_why)
{
    static const struct {
        enum agent_state from, to;
        const char *told;
    } rows[] = {
        {AGENT_DEAD, AGENT_IDLE, "\"DEAD\",\"to\":\"IDLE\",\"why\":\"came\""},
        {AGENT_IDLE, AGENT_DEAD, "\"IDLE\",\"to\":\"DEAD\",\"why\":\"gone\""},
        {AGENT_BUSY, AGENT_ERROR,
         "\"BUSY\",\"to\":\"ERROR\",\"why\":\"failing\""},
        {AGENT_ERROR, AGENT_ACTIVE,
         "\"ERROR\",\"to\":\"ACTIVE\",\"why\":\"recovered\""},
        {AGENT_ACTIVE, AGENT_SLOW,
         "\"ACTIVE\",\"to\":\"SLOW\",\"why\":\"slow\""},
        {AGENT_SLOW, AGENT_DEAD, "\"SLOW\",\"to\":\"DEAD\",\"why\":\"gone\""},
        /* Controls: these are not reported. */
        {AGENT_IDLE, AGENT_ACTIVE, NULL},
        {AGENT_ACTIVE, AGENT_BUSY, NULL},
        {AGENT_BUSY, AGENT_IDLE, NULL},
        {AGENT_ERROR, AGENT_ERROR, NULL},
        {AGENT_DEAD, AGENT_DEAD, NULL},
        {AGENT_IDLE, 0, NULL}, /* removed */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char want[128] = "";

        fleet_open(rows[i].from);
        move(7, rows[i].to);
        pass(PRESENCE_LOOK_MS - 1);
        check_told("");
        pass(1);
        if (rows[i].told)
            snprintf(want, sizeof(want), "A7 {\"from\":%s}\n", rows[i].told);
        check_told(want);
        pass(3 * PRESENCE_SPAN_MS);
        check_told("");
        fleet_close();
    }
}

TEST(who_is_back_before_anybody_looked_was_not_away)
{
    fleet_open(AGENT_IDLE);
    move(1, AGENT_DEAD);
    pass(PRESENCE_LOOK_MS / 2);
    move(1, AGENT_IDLE);
    pass(PRESENCE_SPAN_MS);
    check_told("");
    fleet_close();
}

TEST(who_flickers_is_told_of_so_often_and_in_the_end_as_it_is)
{
    struct buf last;
    int n;

    fleet_open(AGENT_IDLE);
    for (int i = 0; i < 3 * PRESENCE_SPAN_MS / 700; i++) {
        move(1, i / 3 % 2 ? AGENT_IDLE : AGENT_DEAD);
        pass(700);
    }
    n = n_told();
    CHECK_INT(n, 3 * PRESENCE_PER_SPAN);
    move(1, AGENT_ERROR);
    pass(PRESENCE_SPAN_MS + PRESENCE_LOOK_MS);
    buf_init(&last, TOLD_BYTES);
    CHECK(read_told(&last) >= 1);
    CHECK(memmem(last.p, last.n, "\"ERROR\",\"why\":\"failing\"}", 24));
    buf_fini(&last);
    pass(3 * PRESENCE_SPAN_MS);
    check_told("");
    fleet_close();
}

TEST(all_at_once_are_told_of_by_and_by)
{
    fleet_open(AGENT_DEAD);
    for (int i = 0; i < AGENTS; i++)
        move(i, AGENT_IDLE);
    for (int i = 0; i < AGENTS / PRESENCE_PER_LOOK; i++) {
        pass(PRESENCE_LOOK_MS);
        CHECK_INT(n_told(), PRESENCE_PER_LOOK);
    }
    pass(PRESENCE_SPAN_MS);
    CHECK_INT(n_told(), 0);
    fleet_close();
}

TEST(who_is_slow_is_looked_at_until_it_is_not)
{
    fleet_open(AGENT_IDLE);
    move(3, AGENT_SLOW);
    pass(PRESENCE_LOOK_MS);
    CHECK_INT(n_told(), 1);
    pass(3 * PRESENCE_SPAN_MS);
    f.state[3] = AGENT_IDLE; /* time has passed, without a stir */
    pass(PRESENCE_LOOK_MS);
    check_told(
        "A3 {\"from\":\"SLOW\",\"to\":\"IDLE\",\"why\":\"recovered\"}\n");
    fleet_close();
}

TEST(nothing_is_told_of_a_server_that_ends)
{
    fleet_open(AGENT_IDLE);
    move(1, AGENT_DEAD);
    presence_stop(f.presence);
    move(2, AGENT_DEAD);
    pass(PRESENCE_SPAN_MS);
    check_told("");
    fleet_close();
}

TEST(without_memory_nothing_is_told_and_nothing_breaks)
{
    long nth = 0;
    bool has_fired;

    do {
        fleet_open(AGENT_DEAD);
        fault_arm(++nth);
        move(1, AGENT_IDLE);
        pass(PRESENCE_LOOK_MS);
        has_fired = fault_fired();
        fault_arm(0);
        CHECK_INT(n_told(), has_fired ? 0 : 1);
        fleet_close();
    } while (has_fired);
    CHECK(nth > 2);
}
