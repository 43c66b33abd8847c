#include "test/lib/feed_stage.h"

TEST(an_entry_is_seen_by_admins_its_requester_and_its_root_user)
{
    static const struct {
        const char *requester, *root_user;
        int for_admin, for_anna, for_nobody;
    } rows[] = {
        {"anna", "bob", 1, 1, 0},  {"bob", "anna", 1, 1, 0},
        {"anna", "anna", 1, 1, 0}, {"bob", "bob", 1, 0, 0},
        {"", "", 1, 0, 0},         {"Anna", "ann", 1, 0, 0},
        {"annab", "", 1, 0, 0},
    };
    /* A token of an admin that was not given the scope sees its own. */
    struct caller lesser = admin();

    lesser.scopes = SCOPE_READ;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct feed_entry e = {.requester = str_of(rows[i].requester),
                               .root_user = str_of(rows[i].root_user)};
        struct caller all = admin(), anna = user("anna"), nobody = user("");

        CHECK_INT(feed_is_for(&e, &all), rows[i].for_admin);
        CHECK_INT(feed_is_for(&e, &anna), rows[i].for_anna);
        CHECK_INT(feed_is_for(&e, &nobody), rows[i].for_nobody);
        CHECK(!feed_is_for(&e, &lesser));
    }
}

/* Visibility of agents. */
static bool anna_sees_hers(void *ctx, const struct feed_entry *e,
                           const struct caller *c)
{
    (void)ctx;
    return str_eq(e->agent, STR("hers")) && str_eq(caller_name(c), STR("anna"));
}

TEST(who_sees_an_agent_is_shown_that_something_happened_to_it)
{
    static const struct {
        const char *type, *agent, *by;
        bool is_for_seers;
        const char *anna, *bob, *admin; /* by and data; NULL: nothing */
    } rows[] = {
        {"agent.updated", "hers", "bob", true, " {}", "bob {\"x\":1}",
         "bob {\"x\":1}"},
        {"agent.state", "hers", "", true, " {\"x\":1}", NULL, " {\"x\":1}"},
        {"agent.updated", "hers", "carl", true, " {}", NULL, "carl {\"x\":1}"},
        {"agent.updated", "hers", "carl", false, NULL, NULL, "carl {\"x\":1}"},
        {"agent.updated", "his", "carl", true, NULL, NULL, "carl {\"x\":1}"},
        {"agent.updated", "his", "anna", true, "anna {\"x\":1}", NULL,
         "anna {\"x\":1}"},
        {"agent.updated", "", "", true, NULL, NULL, " {\"x\":1}"},
    };
    enum { N = sizeof(rows) / sizeof(*rows) };
    struct stage s;
    struct tx *tx = new_tx();

    stage_open(&s);
    for (size_t i = 0; i < N; i++)
        feed_append(tx,
                    &(struct feed_entry){.at_ms = 5,
                                         .type = str_of(rows[i].type),
                                         .agent = str_of(rows[i].agent),
                                         .requester = str_of(rows[i].by),
                                         .data = STR("{\"x\":1}"),
                                         .is_for_seers = rows[i].is_for_seers});
    CHECK_INT(submitted(&s, tx), TX_COMMITTED);
    for (int from_store = 0; from_store <= 1; from_store++) {
        struct caller who[] = {user("anna"), user("bob"), admin(), user("")};

        feed_set_sees(s.feed, anna_sees_hers, NULL);
        for (int w = 0; w < 4; w++) {
            struct feed_reader r = {.on_news = hear_nothing};
            struct feed_entry e;

            feed_join(s.feed, &r, &who[w], 0);
            turns(&s, 4);
            for (size_t i = 0; i < N; i++) {
                const char *want = w == 0   ? rows[i].anna
                                   : w == 1 ? rows[i].bob
                                   : w == 2 ? rows[i].admin
                                            : NULL;
                char got[64];

                if (!want)
                    continue;
                CHECK(feed_next(s.feed, &r, &e));
                CHECK_INT(e.seq, i + 1);
                snprintf(got, sizeof(got), "%.*s %.*s", STR_ARG(e.requester),
                         STR_ARG(e.data));
                CHECK_STR(str_of(got), want);
            }
            CHECK(!feed_next(s.feed, &r, &e));
            feed_leave(s.feed, &r);
        }
        CHECK(!from_store == !feed_stats(s.feed).pages_total);
        stage_again(&s);
    }
    stage_close(&s);
}

static void check_whole(const struct feed_entry *e)
{
    CHECK_INT(e->seq, 1);
    CHECK_INT(e->at_ms, 5);
    CHECK_STR(e->type, "task.accepted");
    CHECK_STR(e->task_id, "task_1");
    CHECK_STR(e->conversation_id, "c-1");
    CHECK_STR(e->agent, "echo");
    CHECK_STR(e->requester, "anna");
    CHECK_STR(e->root_user, "bob");
    CHECK_STR(e->data, "{\"turn\":1}");
}

TEST(an_entry_comes_back_whole_from_memory_and_from_the_store)
{
    struct stage s;
    struct tx *tx = new_tx();
    struct feed_reader r = {.on_news = hear_nothing};
    struct caller c = admin();
    struct feed_entry e;

    stage_open(&s);
    feed_append(tx, &(struct feed_entry){.at_ms = 5,
                                         .type = STR("task.accepted"),
                                         .task_id = STR("task_1"),
                                         .conversation_id = STR("c-1"),
                                         .agent = STR("echo"),
                                         .requester = STR("anna"),
                                         .root_user = STR("bob"),
                                         .data = STR("{\"turn\":1}")});
    CHECK_INT(submitted(&s, tx), TX_COMMITTED);
    for (int from_store = 0; from_store <= 1; from_store++) {
        feed_join(s.feed, &r, &c, 0);
        turns(&s, 4);
        CHECK(feed_next(s.feed, &r, &e));
        check_whole(&e);
        CHECK(!feed_next(s.feed, &r, &e));
        CHECK_INT(feed_stats(s.feed).pages_total, from_store);
        feed_leave(s.feed, &r);
        stage_again(&s);
    }
    stage_close(&s);
}

TEST(a_reader_hears_once_until_it_has_read_to_the_end)
{
    struct stage s;
    struct follower l;

    stage_open(&s);
    follow(&l, &s, admin(), 0);
    l.reads_at_once = false;
    turns(&s, 3);
    CHECK_INT(l.n_news, 0);
    happen(&s, 3, "anna", "anna");
    turns(&s, 3);
    happen(&s, 3, "anna", "anna");
    turns(&s, 3);
    CHECK_INT(l.n_news, 1);
    for (int i = 0; i < 6; i++)
        CHECK(follower_next(&l));
    happen(&s, 1, "anna", "anna"); /* still reading */
    turns(&s, 3);
    CHECK_INT(l.n_news, 1);
    CHECK(follower_next(&l));
    CHECK(!follower_next(&l));
    CHECK_INT(l.r.after, feed_newest(s.feed));
    happen(&s, 1, "anna", "anna");
    turns(&s, 3);
    CHECK_INT(l.n_news, 2);
    CHECK(follower_next(&l));
    check_got(&l, 1, 8);
    unfollow(&l);
    stage_close(&s);
}

TEST(what_is_for_others_wakes_nobody_and_is_passed_over)
{
    struct stage s;
    struct follower l;

    stage_open(&s);
    follow(&l, &s, user("anna"), 0);
    happen(&s, 3000, "bob", "bob"); /* more than one look's worth */
    turns(&s, 10);
    CHECK_INT(l.n_news, 0);
    CHECK_INT(l.r.after, 3000);
    happen(&s, 1, "bob", "anna");
    turns(&s, 3);
    CHECK_INT(l.n_news, 1);
    check_got(&l, 3001, 3001);
    unfollow(&l);
    stage_close(&s);
}

TEST(a_reader_need_not_wait_to_be_told)
{
    struct stage s;
    struct follower l;

    stage_open(&s);
    happen(&s, 3000, "bob", "bob");
    happen(&s, 1, "anna", "anna");
    follow(&l, &s, user("anna"), 0);
    CHECK(!follower_next(&l)); /* too many to pass over in one call */
    CHECK(l.r.after > 0 && l.r.after < 3000);
    turns(&s, 3);
    check_got(&l, 3001, 3001);
    unfollow(&l);
    stage_close(&s);
}

TEST(older_entries_come_from_the_store_and_meet_those_in_memory)
{
    struct stage s;
    struct follower l;

    stage_open(&s);
    happen(&s, 3 * FEED_PAGE + 7, "anna", "anna");
    stage_again(&s);
    CHECK_INT(feed_newest(s.feed), 3 * FEED_PAGE + 7);
    happen(&s, 5, "anna", "anna"); /* these are in memory */
    follow(&l, &s, admin(), 0);
    for (int i = 0; i < 12; i++) { /* and more comes while it reads */
        struct tx *tx = new_tx();

        add_entry(&s, tx, "anna", "anna");
        submit(&s, tx);
        turns(&s, 1);
    }
    turns(&s, 20);
    check_got(&l, 1, 3 * FEED_PAGE + 7 + 5 + 12);
    CHECK_INT(feed_stats(s.feed).pages_total, 4);
    unfollow(&l);
    stage_close(&s);
}

TEST(a_user_reads_only_their_own_from_the_store)
{
    struct stage s;
    struct follower l;

    stage_open(&s);
    for (int i = 0; i < 6; i++) {
        happen(&s, 500, "bob", "bob");
        happen(&s, 1, "bob", i % 2 ? "anna" : "carl");
    }
    stage_again(&s);
    follow(&l, &s, user("anna"), 0);
    turns(&s, 20);
    CHECK_INT(l.n, 3);
    CHECK_INT(l.seqs[0], 2 * 501);
    CHECK_INT(l.seqs[2], 6 * 501);
    CHECK_INT(l.r.after, 6 * 501);
    CHECK_INT(feed_stats(s.feed).pages_total, 1); /* filtered in the store */
    unfollow(&l);
    stage_close(&s);
}

TEST(a_page_goes_over_a_bounded_stretch_for_who_sees_little)
{
    enum { MANY = 45000, STRETCH = 20000 };
    struct stage s;
    struct follower l;

    stage_open(&s);
    happen(&s, 1, "anna", "anna");
    for (int i = 0; i < MANY / 5000; i++)
        happen(&s, 5000, "bob", "bob");
    happen(&s, 1, "anna", "anna");
    stage_again(&s);
    follow(&l, &s, user("anna"), 0);
    turns(&s, 20);
    CHECK_INT(l.n, 2);
    CHECK_INT(l.seqs[1], MANY + 2);
    CHECK_INT(feed_stats(s.feed).pages_total, MANY / STRETCH + 1);
    unfollow(&l);
    stage_close(&s);
}

TEST(a_cursor_from_the_future_counts_as_now)
{
    struct stage s;
    struct follower l;

    stage_open(&s);
    happen(&s, 2, "anna", "anna");
    follow(&l, &s, admin(), INT64_MAX);
    turns(&s, 3);
    CHECK_INT(l.n, 0);
    happen(&s, 1, "anna", "anna");
    turns(&s, 3);
    check_got(&l, 3, 3);
    unfollow(&l);
    follow(&l, &s, admin(), INT64_MIN);
    turns(&s, 3);
    check_got(&l, 1, 3);
    unfollow(&l);
    stage_close(&s);
}

TEST(a_reader_may_leave_while_its_page_is_read)
{
    struct stage s;
    struct follower *l = malloc(sizeof(*l));

    CHECK(l);
    stage_open(&s);
    happen(&s, 10, "anna", "anna");
    stage_again(&s);
    follow(l, &s, admin(), 0);
    CHECK(!follower_next(l));
    CHECK_INT(l->r.state, FEED_READS);
    unfollow(l);
    feed_leave(s.feed, &l->r); /* twice is harmless */
    free(l);
    CHECK_INT(feed_stats(s.feed).readers, 0);
    CHECK_INT(feed_stats(s.feed).pages, 1);
    turns(&s, 5);
    CHECK_INT(feed_stats(s.feed).pages, 0);
    stage_close(&s);
}

TEST(the_feed_may_go_while_a_page_is_read)
{
    struct stage s;
    struct follower l;

    stage_open(&s);
    happen(&s, 10, "anna", "anna");
    stage_again(&s);
    follow(&l, &s, admin(), 0);
    CHECK(!follower_next(&l));
    unfollow(&l);
    stage_close(&s); /* the feed first, then the store gives back */
}

static void leave_at_news(struct feed_reader *r)
{
    struct follower *l = LIST_OF(r, struct follower, r);

    feed_leave(l->s->feed, r);
    free(l);
}

TEST(a_reader_may_leave_when_it_is_told)
{
    struct stage s;

    stage_open(&s);
    for (int i = 0; i < 3; i++) {
        struct follower *l = malloc(sizeof(*l));

        CHECK(l);
        follow(l, &s, admin(), 0);
        l->r.on_news = leave_at_news;
    }
    happen(&s, 1, "anna", "anna");
    turns(&s, 3);
    CHECK_INT(feed_stats(s.feed).readers, 0);
    stage_close(&s);
}

/* Retention. */

TEST(what_retention_removed_is_seen_nowhere)
{
    struct stage s;
    struct follower l;

    stage_open(&s);
    happen(&s, 100, "anna", "anna");
    s.time.wall_ms += 1000;
    turns(&s, 1);
    happen(&s, 100, "anna", "anna");
    prune(&s, s.time.wall_ms, 0, 1000); /* the older half */
    follow(&l, &s, admin(), 0);
    turns(&s, 10);
    check_got(&l, 101, 200);
    unfollow(&l);
    prune(&s, 0, 30, 1000);
    follow(&l, &s, admin(), 0);
    turns(&s, 10);
    check_got(&l, 171, 200);
    unfollow(&l);
    stage_again(&s); /* nor in the store */
    follow(&l, &s, admin(), 0);
    turns(&s, 10);
    check_got(&l, 171, 200);
    unfollow(&l);
    prune(&s, INT64_MAX, 0, 1000); /* all of it; seqs go on */
    stage_again(&s);
    CHECK_INT(feed_newest(s.feed), 0);
    follow(&l, &s, admin(), 150);
    happen(&s, 1, "anna", "anna");
    turns(&s, 10);
    check_got(&l, 201, 201);
    unfollow(&l);
    stage_close(&s);
}

TEST(retention_removes_so_many_at_once_and_what_stays_is_seen)
{
    struct stage s;
    struct follower l;

    stage_open(&s);
    happen(&s, 100, "anna", "anna");
    prune(&s, 0, 10, 60);
    follow(&l, &s, admin(), 0);
    turns(&s, 10);
    CHECK_INT(l.n, 40);
    CHECK_INT(l.seqs[39], 100);
    unfollow(&l);
    prune(&s, 0, 10, 60);
    follow(&l, &s, admin(), 0);
    turns(&s, 10);
    check_got(&l, 91, 100);
    unfollow(&l);
    prune(&s, 0, 10, 60); /* nothing is left to do */
    prune(&s, 0, 0, 60);
    follow(&l, &s, admin(), 0);
    turns(&s, 10);
    check_got(&l, 91, 100);
    unfollow(&l);
    stage_close(&s);
}

TEST(a_reader_goes_on_behind_what_was_removed_under_it)
{
    struct stage s;
    struct follower l;

    stage_open(&s);
    happen(&s, 2 * FEED_PAGE, "anna", "anna");
    stage_again(&s);
    follow(&l, &s, admin(), 0);
    l.reads_at_once = false;
    turns(&s, 5);
    CHECK(follower_next(&l)); /* has a page of the first half */
    prune(&s, 0, 10, 1000);
    while (follower_next(&l))
        ;
    turns(&s, 10);
    while (follower_next(&l))
        ;
    CHECK_INT(l.seqs[0], 1);
    CHECK_INT(l.n, FEED_PAGE + 10);
    CHECK_INT(l.seqs[FEED_PAGE], 2 * FEED_PAGE - 9);
    unfollow(&l);
    stage_close(&s);
}

/* Failure. */

TEST(a_read_that_fails_is_tried_again_after_a_pause)
{
    static const int64_t pauses_ms[] = {20,   40,   80,   160,  320, 640,
                                        1280, 2560, 5000, 5000, 5000};
    struct stage s;
    struct follower l;

    stage_open(&s);
    happen(&s, 5, "anna", "anna");
    stage_again(&s);
    fault_arm_at("store.read.io", 1);
    follow(&l, &s, admin(), 0);
    turns(&s, 3);
    for (size_t i = 0; i < sizeof(pauses_ms) / sizeof(*pauses_ms); i++) {
        CHECK(fault_fired());
        s.time.mono_ms += pauses_ms[i] - 1;
        fault_arm_at("store.read.io", 1);
        happen(&s, 1, "anna", "anna"); /* for no reason */
        turns(&s, 5);
        CHECK(!fault_fired()); /* not one attempt before it is time */
        s.time.mono_ms += 1;
        turns(&s, 1);
    }
    fault_arm(0);
    CHECK_INT(l.n, 0);
    s.time.mono_ms += 5000;
    turns(&s, 5);
    check_got(&l, 1, feed_newest(s.feed));
    unfollow(&l);
    fault_arm_at("store.read.io", 1); /* the next pause is a short one again */
    follow(&l, &s, admin(), 0);
    turns(&s, 3);
    CHECK(fault_fired());
    s.time.mono_ms += pauses_ms[0];
    turns(&s, 5);
    check_got(&l, 1, feed_newest(s.feed));
    unfollow(&l);
    stage_close(&s);
}

TEST(a_store_that_is_overloaded_is_given_time)
{
    enum { READERS = 20 };
    struct stage s;
    struct follower l[READERS];

    stage_open(&s);
    happen(&s, 5, "anna", "anna");
    s.max_waiting = 2;
    stage_again(&s);
    for (int i = 0; i < READERS; i++)
        follow(&l[i], &s, admin(), 0);
    turns(&s, 5);
    CHECK_INT(feed_stats(s.feed).pages_total, READERS);
    s.time.mono_ms += 20; /* all that failed at once are one failure */
    turns(&s, 1);
    CHECK(feed_stats(s.feed).pages_total > READERS);
    for (int i = 0; i < 10; i++) {
        int64_t asked;

        turns(&s, 5);
        asked = feed_stats(s.feed).pages_total;
        turns(&s, 20);
        CHECK_INT(feed_stats(s.feed).pages_total, asked); /* no reader spins */
        s.time.mono_ms += 5000;
    }
    for (int i = 0; i < READERS; i++) {
        check_got(&l[i], 1, 5);
        unfollow(&l[i]);
    }
    stage_close(&s);
}

/* Build, write and read. In the end every entry reported as committed was read
 * once, whatever failed. Opening the store has a sweep of its own. */
static void whole_life(long nth, bool *fired)
{
    struct stage s;
    struct follower l;
    int64_t committed = 0;

    stage_open(&s);
    happen(&s, 250, "anna", "anna");
    stage_down(&s);
    CHECK(stage_open_store(&s));
    fault_arm(nth);
    while (!stage_open_feed(&s))
        CHECK(fault_fired());
    follow(&l, &s, user("anna"), 0);
    for (int i = 0; i < 3; i++) {
        struct tx *tx = new_tx();

        add_entry(&s, tx, "anna", "anna");
        feed_prune(s.feed, tx, 1, 100000, 10);
        committed += submitted(&s, tx) == TX_COMMITTED;
        s.time.mono_ms += 10;
    }
    for (int i = 0; i < 10; i++) {
        turns(&s, 5);
        s.time.mono_ms += 1000;
    }
    CHECK(committed >= 2 || fault_fired());
    if (s.result != TX_FATAL)
        check_got(&l, 1, 250 + committed);
    *fired = fault_fired();
    fault_arm(0);
    unfollow(&l);
    stage_close(&s);
}

TEST(the_feed_survives_every_fault)
{
    bool fired = true;
    long nth = 0;

    while (fired)
        whole_life(++nth, &fired);
    CHECK(nth > 10); /* the sweep has met some */
}
