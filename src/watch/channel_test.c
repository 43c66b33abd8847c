/* Channels: the content and order of a file, and how often a line appears,
 * whatever fails in between. channel_post_test.c tests webhooks. */
#include "test/lib/channel_stage.h"

#define DECISION "{\"routing_decision\":\"ROUTE_IMMEDIATELY\",\"reason\":\"r\"}"

static void set_file(struct channel_stage *c, int64_t rotate_bytes,
                     int64_t keep)
{
    channels_set(c->channels,
                 &(struct channel_settings){.name = STR("#agent-feed"),
                                            .takes_feed = true,
                                            .file = STR("feed.jsonl"),
                                            .rotate_bytes = rotate_bytes,
                                            .keep = keep},
                 1);
}

TEST(every_decision_is_one_line_and_nothing_else_is)
{
    struct channel_stage c;
    struct stat st;

    cs_open(&c);
    cs_happen(&c, "gate.routed", 3, DECISION); /* before there was a channel */
    set_file(&c, 0, 0);
    turn(c.s, 5);
    cs_happen(&c, "gate.routed", 2, DECISION);
    cs_happen(&c, "gate.held", 1, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_check_lines(&c, "feed.jsonl", 4), 6);
    CHECK(cs_has(&c, "feed.jsonl",
                 "\"type\":\"gate.routed\",\"task_id\":\"task_1\""));
    CHECK(stat(cs_path(&c, "feed.jsonl"), &st) == 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    cs_happen(&c, "task.completed", 2, "{}");
    cs_happen(&c, "escalation.approved", 1, "{}");
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_check_lines(&c, "feed.jsonl", 4), 6);
    CHECK_INT(cs_stats(&c, 0).written_total, 3);
    cs_close(&c);
}

static void set_alerts(struct channel_stage *c, int64_t rotate_bytes)
{
    channels_set(c->channels,
                 &(struct channel_settings){.name = STR("#alerts"),
                                            .takes_alerts = true,
                                            .file = STR("alerts.jsonl"),
                                            .rotate_bytes = rotate_bytes,
                                            .keep = 100},
                 1);
}

TEST(what_a_person_must_judge_is_in_the_file_of_alerts_with_what_it_is_about)
{
    struct channel_stage c;

    cs_open(&c);
    c.context = "{\"payload\":{\"secret\":42},\"context\":\"why\\nso\"}";
    set_alerts(&c, 0);
    turn(c.s, 5);
    cs_happen(&c, "gate.escalated", 2, DECISION);
    cs_happen(&c, "escalation.approved", 1, DECISION);
    cs_happen(&c, "agent.out", 1, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_check_lines(&c, "alerts.jsonl", 1), 4);
    CHECK_INT(c.n_contexts, 3);
    CHECK(cs_has(&c, "alerts.jsonl",
                 ",\"context\":\"{\\\"payload\\\":{\\\"secret\\\":42},"
                 "\\\"context\\\":\\\"why\\\\nso\\\"}\"}\n"));
    CHECK_INT(cs_stats(&c, 0).written_total, 4);
    cs_close(&c);
}

/* The longest line, and the file is still known by its last line. */
TEST(what_a_line_of_a_file_is_about_has_a_limit)
{
    char *text = malloc(2 * CHANNEL_CONTEXT_MAX);
    struct channel_stage c;

    CHECK(text);
    memset(text, 1, 2 * CHANNEL_CONTEXT_MAX);
    text[2 * CHANNEL_CONTEXT_MAX - 1] = '\0';
    cs_open(&c);
    c.context = text;
    set_alerts(&c, 0);
    turn(c.s, 5);
    cs_happen(&c, "gate.escalated", 2, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK(cs_read(&c, "alerts.jsonl").n > 12 * CHANNEL_CONTEXT_MAX);
    CHECK(cs_read(&c, "alerts.jsonl").n < 2 * LINE_MAX_BYTES);
    cs_crash(&c);
    CHECK(cs_up(&c));
    set_alerts(&c, 0);
    turn(c.s, 5);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_check_lines(&c, "alerts.jsonl", 1), 2);
    cs_close(&c);
    free(text);
}

TEST(a_line_is_there_once_after_a_stop_and_after_a_crash)
{
    struct channel_stage c;

    cs_open(&c);
    set_file(&c, 0, 0);
    turn(c.s, 5);
    for (int i = 0; i < 4; i++) {
        cs_happen(&c, "gate.routed", 3, DECISION);
        UNTIL(c.s, cs_is_idle(&c));
        if (i % 2)
            cs_stop(&c);
        else
            cs_crash(&c); /* the cursor was not written */
        CHECK(cs_up(&c));
        set_file(&c, 0, 0);
        turn(c.s, 5);
        UNTIL(c.s, cs_is_idle(&c));
        CHECK_INT(cs_check_lines(&c, "feed.jsonl", 1), 3 * (i + 1));
    }
    cs_close(&c);
}

/* The control: a file that does not know how far it is gets them again. */
TEST(without_the_file_a_crash_repeats_what_the_cursor_had_not)
{
    struct channel_stage c;

    cs_open(&c);
    set_file(&c, 0, 0);
    turn(c.s, 5);
    cs_happen(&c, "gate.routed", 3, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    cs_crash(&c);
    CHECK(rename(cs_path(&c, "feed.jsonl"), cs_path(&c, "elsewhere")) == 0);
    CHECK(cs_up(&c));
    set_file(&c, 0, 0);
    turn(c.s, 5);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_check_lines(&c, "feed.jsonl", 1), 3);
    cs_close(&c);
}

TEST(a_cursor_is_written_a_moment_later)
{
    struct channel_stage c;

    cs_open(&c);
    set_file(&c, 0, 0);
    turn(c.s, 5);
    cs_happen(&c, "gate.routed", 3, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    for (int i = 0; i < 3; i++)
        later(c.s, CHANNEL_CURSOR_MS);
    cs_crash(&c);
    CHECK(unlink(cs_path(&c, "feed.jsonl")) == 0);
    CHECK(cs_up(&c));
    set_file(&c, 0, 0);
    turn(c.s, 5);
    CHECK_INT(cs_check_lines(&c, "feed.jsonl", 1), 0);
    cs_close(&c);
}

TEST(half_a_line_of_a_crash_is_cut_off_and_written_again)
{
    struct channel_stage c;
    int fd;

    cs_open(&c);
    set_file(&c, 0, 0);
    turn(c.s, 5);
    cs_happen(&c, "gate.routed", 3, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    cs_crash(&c);
    CHECK(truncate(cs_path(&c, "feed.jsonl"),
                   (off_t)cs_read(&c, "feed.jsonl").n - 7) == 0);
    CHECK(cs_up(&c));
    set_file(&c, 0, 0);
    turn(c.s, 5);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_check_lines(&c, "feed.jsonl", 1), 3);
    fd = open(cs_path(&c, "feed.jsonl"), O_WRONLY | O_APPEND);
    CHECK(fd >= 0);
    close(fd);
    cs_close(&c);
}

TEST(a_file_is_turned_over_before_it_is_too_large_and_so_many_are_kept)
{
    struct channel_stage c;
    struct stat st;
    int64_t upto;
    size_t line;

    cs_open(&c);
    set_file(&c, 0, 0);
    turn(c.s, 5);
    cs_happen(&c, "gate.routed", 1, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    line = cs_read(&c, "feed.jsonl").n;
    set_file(&c, (int64_t)line * 4 + 4, 2); /* seqs grow by a digit */
    turn(c.s, 5);
    cs_happen(&c, "gate.routed", 13, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    upto = cs_check_lines(&c, "feed.jsonl.2", 5);
    CHECK_INT(upto, 8);
    upto = cs_check_lines(&c, "feed.jsonl.1", upto + 1);
    upto = cs_check_lines(&c, "feed.jsonl", upto + 1);
    CHECK_INT(upto, 14);
    CHECK(stat(cs_path(&c, "feed.jsonl.1"), &st) == 0);
    CHECK(st.st_size <= (off_t)line * 4 + 4);
    CHECK(access(cs_path(&c, "feed.jsonl.3"), F_OK) != 0);
    /* And after a crash right behind it, FILE.1 says how far it is. */
    cs_crash(&c);
    CHECK(unlink(cs_path(&c, "feed.jsonl")) == 0);
    CHECK(cs_up(&c));
    set_file(&c, (int64_t)line * 4 + 4, 2);
    turn(c.s, 5);
    UNTIL(c.s, cs_is_idle(&c));
    upto = cs_check_lines(&c, "feed.jsonl.1", 9);
    CHECK_INT(cs_check_lines(&c, "feed.jsonl", upto + 1), 14);
    cs_close(&c);
}

TEST(a_file_that_was_moved_away_is_made_anew)
{
    struct channel_stage c;

    cs_open(&c);
    set_file(&c, 0, 0);
    turn(c.s, 5);
    cs_happen(&c, "gate.routed", 2, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK(rename(cs_path(&c, "feed.jsonl"), cs_path(&c, "moved")) == 0);
    cs_happen(&c, "gate.routed", 2, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_check_lines(&c, "moved", 1), 2);
    CHECK_INT(cs_check_lines(&c, "feed.jsonl", 3), 4);
    CHECK(truncate(cs_path(&c, "feed.jsonl"), 0) == 0);
    cs_happen(&c, "gate.routed", 1, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_check_lines(&c, "feed.jsonl", 5), 5);
    cs_close(&c);
}

TEST(what_is_no_file_of_lines_is_left_alone)
{
    struct channel_stage c;
    int fd;

    cs_open(&c);
    fd = open(cs_path(&c, "feed.jsonl"), O_WRONLY | O_CREAT, 0600);
    CHECK(write(fd, "SQLite format 3", 15) == 15);
    close(fd);
    set_file(&c, 0, 0);
    cs_happen(&c, "gate.routed", 2, DECISION);
    UNTIL(c.s, cs_stats(&c, 0).failures_total == 1);
    CHECK(strstr(cs_stats(&c, 0).problem, "not hold JSON lines"));
    CHECK_INT(cs_stats(&c, 0).backlog, 2);
    CHECK_STR(cs_read(&c, "feed.jsonl"), "SQLite format 3");
    CHECK(unlink(cs_path(&c, "feed.jsonl")) == 0);
    CHECK(mkfifo(cs_path(&c, "feed.jsonl"), 0600) == 0);
    later(c.s, 3000);
    UNTIL(c.s, cs_stats(&c, 0).failures_total == 2);
    CHECK(unlink(cs_path(&c, "feed.jsonl")) == 0);
    later(c.s, 6000);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_check_lines(&c, "feed.jsonl", 1), 2);
    cs_close(&c);
}

TEST(a_full_disk_costs_time_and_no_line)
{
    struct channel_stage c;

    cs_open(&c);
    set_file(&c, 0, 0);
    turn(c.s, 5);
    for (int i = 1; i <= 3; i++) {
        fault_arm_at("channel.write", 1);
        cs_happen(&c, "gate.routed", 1, DECISION);
        UNTIL(c.s, fault_fired() && cs_stats(&c, 0).failures_total == i);
        fault_arm(0);
        CHECK(cs_stats(&c, 0).failing_ms >= 0 && cs_stats(&c, 0).backlog == 1);
        CHECK(strstr(cs_stats(&c, 0).problem, "No space"));
        later(c.s, 2000);
        UNTIL(c.s, cs_is_idle(&c));
        CHECK_INT(cs_check_lines(&c, "feed.jsonl", 1), i);
        CHECK_STR(str_of(cs_stats(&c, 0).problem), "");
    }
    cs_close(&c);
}

TEST(pauses_grow_up_to_a_minute_while_it_goes_on)
{
    struct channel_stage c;
    int64_t pauses = 0;

    cs_open(&c);
    channels_set(c.channels,
                 &(struct channel_settings){.name = STR("#a"),
                                            .takes_feed = true,
                                            .file = STR("no/such/folder")},
                 1);
    UNTIL(c.s, cs_stats(&c, 0).failures_total == 1);
    CHECK(strstr(cs_stats(&c, 0).problem, "create its folder first"));
    for (int64_t ms = 1000, n = 2; n < 9;
         n++, ms = 2 * ms < 60000 ? 2 * ms : 60000) {
        turn(c.s, 4);
        CHECK_INT(cs_stats(&c, 0).failures_total, n - 1);
        later(c.s, ms + ms / 5);
        UNTIL(c.s, cs_stats(&c, 0).failures_total == n);
        pauses += ms;
    }
    CHECK(pauses > 60000);
    cs_close(&c);
}

TEST(what_retention_removed_is_counted_in_a_line)
{
    struct channel_stage c;
    struct tx *tx = malloc(sizeof(*tx));

    cs_open(&c);
    set_file(&c, 0, 0);
    turn(c.s, 5);
    cs_stop(&c);
    CHECK(cs_up(&c));
    cs_happen(&c, "gate.routed", 20, DECISION);
    tx_init(tx);
    feed_prune(c.feed, tx, 0, 5, 100);
    cs_submit(&c, tx);
    set_file(&c, 0, 0);
    turn(c.s, 5);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_check_lines(&c, "feed.jsonl", 15), 20);
    CHECK(cs_has(&c, "feed.jsonl",
                 "\"type\":\"channel.missed\",\"data\":{\"entries\":15}"));
    CHECK_INT(cs_stats(&c, 0).missed_total, 15);
    cs_close(&c);
}

TEST(what_cannot_be_is_left_out_and_the_rest_works)
{
    struct channel_settings list[CHANNELS_MAX + 2] = {
        {.name = STR("#a"), .takes_feed = true, .file = STR("same")},
        {.name = STR("#b"), .takes_feed = true, .file = STR("same")},
        {.name = STR("#a"), .takes_feed = true, .file = STR("other")},
        {.name = STR(""), .takes_feed = true, .file = STR("nameless")},
    };
    char long_path[CHANNEL_PATH_MAX + 1];
    struct channel_stats all[64];
    struct channel_stage c;

    memset(long_path, 'x', sizeof(long_path));
    list[4] = (struct channel_settings){.name = STR("#long"),
                                        .file = {long_path, sizeof(long_path)}};
    for (size_t i = 5; i < CHANNELS_MAX + 2; i++)
        list[i] =
            (struct channel_settings){.name = STR("#same"), .file = STR("f")};
    cs_open(&c);
    channels_set(c.channels, list, CHANNELS_MAX + 2);
    CHECK_INT(channels_stats(c.channels, all, 64), 2);
    CHECK_STR(all[0].name, "#a");
    CHECK_STR(all[1].name, "#same");
    turn(c.s, 5);
    cs_happen(&c, "gate.routed", 2, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_check_lines(&c, "same", 1), 2);
    cs_close(&c);
}

TEST(a_channel_that_was_gone_goes_on_where_it_was)
{
    struct channel_stage c;

    cs_open(&c);
    set_file(&c, 0, 0);
    turn(c.s, 5);
    cs_happen(&c, "gate.routed", 2, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    channels_set(c.channels, NULL, 0);
    turn(c.s, 5);
    cs_happen(&c, "gate.routed", 2, DECISION);
    turn(c.s, 5);
    CHECK_INT(cs_check_lines(&c, "feed.jsonl", 1), 2);
    set_file(&c, 0, 0);
    turn(c.s, 5);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_check_lines(&c, "feed.jsonl", 1), 4);
    cs_close(&c);
}

TEST(files_are_written_on_threads_of_their_own)
{
    struct channel_stage c;

    cs_open(&c);
    cs_stop(&c);
    c.is_threaded = true;
    CHECK(cs_up(&c));
    set_file(&c, 4000, 50);
    for (int i = 0; i < 30; i++)
        cs_happen(&c, "gate.routed", 7, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    cs_stop(&c);
    for (int64_t i = 40, upto = 0; i >= 0; i--) {
        char name[32];

        snprintf(name, sizeof(name), i ? "feed.jsonl.%d" : "feed.jsonl",
                 (int)i);
        upto = cs_check_lines(&c, name, upto + 1);
        CHECK(i || upto == 210);
    }
    cs_close(&c);
}

/* Whatever step fails, once everything works again each line is there, once
 * and in order. */
static void happen_with_fault(const char *where, long nth)
{
    struct channel_stage c;

    cs_open(&c);
    set_file(&c, 900, 100);
    turn(c.s, 5);
    fault_arm_at(where, nth);
    for (int i = 0; i < 5; i++) {
        cs_happen(&c, "gate.routed", 2, DECISION);
        later(c.s, CHANNEL_CURSOR_MS);
    }
    fault_arm(0);
    for (int i = 0; i < 20 && !cs_is_idle(&c); i++)
        later(c.s, 2 * 60 * 1000);
    UNTIL(c.s, cs_is_idle(&c));
    cs_stop(&c);
    for (int64_t i = 20, upto = 0; i >= 0; i--) {
        char name[32];

        snprintf(name, sizeof(name), i ? "feed.jsonl.%d" : "feed.jsonl",
                 (int)i);
        upto = cs_check_lines(&c, name, upto + 1);
        CHECK(i || upto == 10);
    }
    cs_close(&c);
}

TEST(every_fault_leaves_each_line_there_once)
{
    static const char *const steps[] = {
        "channel.write", "channel.sync",   "channel.open", "channel.read",
        "channel.tail",  "channel.rename", "store.read.io"};

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        for (long nth = 1; nth <= 3; nth++)
            happen_with_fault(steps[i], nth);
}

TEST(without_memory_there_are_no_channels_and_no_harm)
{
    struct channel_stage c;

    cs_open(&c);
    fault_arm_at("channel.cursor", 1);
    set_file(&c, 0, 0);
    CHECK(fault_fired());
    fault_arm(0);
    cs_happen(&c, "gate.routed", 2, DECISION);
    later(c.s, 3000);
    UNTIL(c.s, cs_is_idle(&c));
    cs_close(&c);
}
