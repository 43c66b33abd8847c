/* The feed at its limits: the size of the ring, the notifications of a turn,
 * the length of a page. */
#include "test/lib/feed_stage.h"

TEST(the_ring_holds_so_many_entries_and_not_one_more)
{
    struct stage s;
    struct follower l;

    stage_open(&s);
    happen(&s, FEED_RING_ENTRIES - 1, "anna", "anna");
    happen(&s, 1, "anna", "anna");
    CHECK_INT(feed_stats(s.feed).ring_entries, FEED_RING_ENTRIES);
    follow(&l, &s, admin(), 0);
    turns(&s, 10);
    check_got(&l, 1, FEED_RING_ENTRIES);
    CHECK_INT(feed_stats(s.feed).pages_total, 0);
    unfollow(&l);
    happen(&s, 1, "anna", "anna");
    CHECK_INT(feed_stats(s.feed).ring_entries, FEED_RING_ENTRIES);
    follow(&l, &s, admin(), 1);
    turns(&s, 10);
    check_got(&l, 2, FEED_RING_ENTRIES + 1);
    CHECK_INT(feed_stats(s.feed).pages_total, 0);
    unfollow(&l);
    follow(&l, &s, admin(), 0);
    turns(&s, 10);
    check_got(&l, 1, FEED_RING_ENTRIES + 1);
    CHECK_INT(feed_stats(s.feed).pages_total, 1);
    unfollow(&l);
    stage_close(&s);
}

/* An entry of so many bytes. */
static void append_sized(struct tx *tx, size_t bytes)
{
    static char data[FEED_ENTRY_MAX + 1];

    memset(data, 'x', sizeof(data));
    feed_append(tx, &(struct feed_entry){.at_ms = 1,
                                         .type = STR("t"),
                                         .data = {data, bytes - 1}});
}

TEST(the_ring_holds_so_many_bytes_and_not_one_more)
{
    struct stage s;
    struct feed_reader r = {.on_news = hear_nothing};
    struct caller c = admin();
    struct feed_entry e;
    int64_t n = 0, entry_bytes;

    stage_open(&s);
    do {
        struct tx *tx = new_tx();

        append_sized(tx, FEED_ENTRY_MAX);
        CHECK_INT(submitted(&s, tx), TX_COMMITTED);
        CHECK(feed_stats(s.feed).ring_bytes <= FEED_RING_BYTES);
    } while (feed_stats(s.feed).ring_entries == ++n);
    n--; /* the last one pushed the first out */
    CHECK_INT(feed_stats(s.feed).ring_entries, n);
    entry_bytes = feed_stats(s.feed).ring_bytes / n;
    CHECK(entry_bytes >= FEED_ENTRY_MAX);
    CHECK(feed_stats(s.feed).ring_bytes + entry_bytes > FEED_RING_BYTES);
    feed_join(s.feed, &r, &c, 0);
    CHECK(!feed_next(s.feed, &r, &e));
    CHECK_INT(r.state, FEED_READS); /* the first is to be read */
    turns(&s, 5);
    CHECK(feed_next(s.feed, &r, &e));
    CHECK_INT(feed_entry_bytes(&e), FEED_ENTRY_MAX);
    feed_leave(s.feed, &r);
    stage_close(&s);
}

TEST(an_entry_beyond_its_limit_is_a_mistake_of_ours)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        struct tx *tx = new_tx();

        fclose(stderr);
        append_sized(tx, FEED_ENTRY_MAX + 1);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

enum { CROWD = 1000, CROWD_PER_TURN = 128 };

static int crowd_news(const struct follower *l)
{
    int n = 0;

    for (int i = 0; i < CROWD; i++)
        n += l[i].n_news;
    return n;
}

TEST(a_thousand_readers_are_told_a_few_in_each_turn)
{
    struct stage s;
    struct follower *l = calloc(CROWD, sizeof(*l));
    struct tx *tx = new_tx();
    int told = 0;

    CHECK(l);
    stage_open(&s);
    for (int i = 0; i < CROWD; i++)
        follow(&l[i], &s, i % 2 ? admin() : user("bob"), 0);
    turns(&s, 5);
    add_entry(&s, tx, "anna", "anna");
    submit(&s, tx);
    for (int i = 0; i < 20; i++) {
        int before = told;

        turns(&s, 1);
        told = crowd_news(l);
        CHECK(told - before <= CROWD_PER_TURN);
    }
    CHECK_INT(told, CROWD / 2); /* bob's were left alone */
    for (int i = 0; i < CROWD; i++) {
        CHECK_INT(l[i].n, i % 2);
        CHECK_INT(l[i].r.after, 1);
        unfollow(&l[i]);
    }
    stage_close(&s);
    free(l);
}

TEST(a_turn_looks_at_so_many_entries)
{
    enum { STEPS = 4096, READERS = 8 };
    struct stage s;
    struct follower l[READERS];
    int64_t passed = 0;

    stage_open(&s);
    happen(&s, STEPS, "anna", "anna");
    for (int i = 0; i < READERS; i++)
        follow(&l[i], &s, user("bob"), 0);
    for (int i = 0; i < READERS + 1; i++) {
        int64_t before = passed;

        turns(&s, 1);
        passed = 0;
        for (int k = 0; k < READERS; k++)
            passed += l[k].r.after;
        CHECK(passed - before <= STEPS);
    }
    CHECK_INT(passed, READERS * STEPS);
    for (int i = 0; i < READERS; i++)
        unfollow(&l[i]);
    stage_close(&s);
}

TEST(pages_are_bounded_whoever_holds_them)
{
    enum { PAGES = 32, READERS = 3 * PAGES };
    struct stage s;
    struct follower l[READERS];

    stage_open(&s);
    happen(&s, FEED_PAGE / 2, "anna", "anna");
    stage_again(&s);
    for (int i = 0; i < READERS; i++) {
        follow(&l[i], &s, admin(), 0);
        l[i].reads_at_once = false; /* slow ones: notified, and then idle */
    }
    for (int i = 0; i < 20; i++) {
        turns(&s, 1);
        CHECK(feed_stats(s.feed).pages <= PAGES);
    }
    for (int i = 0; i < READERS; i++)
        CHECK_INT(l[i].n_news, 1);
    for (int i = 0; i < READERS; i++) { /* those who lost theirs read again */
        l[i].reads_at_once = true;
        while (follower_next(&l[i]))
            ;
        turns(&s, 3);
        check_got(&l[i], 1, FEED_PAGE / 2);
        CHECK(feed_stats(s.feed).pages <= PAGES);
    }
    for (int i = 0; i < READERS; i++)
        unfollow(&l[i]);
    CHECK_INT(feed_stats(s.feed).pages, 0);
    stage_close(&s);
}

TEST(a_page_whose_reader_left_makes_room_for_the_next)
{
    enum { PAGES = 32 };
    struct stage s;
    struct follower l[PAGES + 1];

    stage_open(&s);
    happen(&s, 10, "anna", "anna");
    stage_again(&s);
    for (int i = 0; i <= PAGES; i++) {
        follow(&l[i], &s, admin(), 0);
        CHECK(!follower_next(&l[i]));
        CHECK_INT(l[i].r.state, i < PAGES ? FEED_READS : FEED_HUNGRY);
    }
    for (int i = 0; i < PAGES; i++)
        unfollow(&l[i]);
    turns(&s, 5);
    check_got(&l[PAGES], 1, 10);
    unfollow(&l[PAGES]);
    stage_close(&s);
}
