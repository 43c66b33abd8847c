/* Webhooks: what is posted, when again, and that a place that is down holds up
 * no other. The servers are real ones with scripted answers. */
#include "test/lib/channel_stage.h"

#define DECISION "{\"routing_decision\":\"ROUTE_IMMEDIATELY\",\"reason\":\"r\"}"
#define TAKEN    "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
#define ANSWER(status, headers, body, length)                            \
    "HTTP/1.1 " status "\r\n" headers "Content-Length: " length "\r\n\r" \
    "\n" body

static struct channel_settings hook(const struct peer *p, enum post_form form)
{
    return (struct channel_settings){.name = STR("#alerts"),
                                     .takes_feed = true,
                                     .takes_alerts = true,
                                     .webhook =
                                         str_of(url_at(p, "/hook/s3cret")),
                                     .form = form};
}

static void set_hook(struct channel_stage *c, const struct peer *p,
                     enum post_form form)
{
    struct channel_settings s = hook(p, form);

    channels_set(c->channels, &s, 1);
    turn(c->s, 5);
}

/* How often the seq was posted. */
static int times_heard(const struct peer *p, int seq)
{
    char text[32];
    int n = 0;
    const char *at = p->asked.p, *end = at + p->asked.n;

    snprintf(text, sizeof(text), "\"seq\":%d,", seq);
    while (at && (at = memmem(at, (size_t)(end - at), text, strlen(text)))) {
        at += strlen(text);
        n++;
    }
    return n;
}

TEST(entries_are_posted_together_and_once)
{
    struct channel_stage c;
    struct peer *p;

    cs_open(&c);
    p = peer_open(c.s, TAKEN);
    set_hook(&c, p, POST_JSON);
    cs_happen(&c, "gate.routed", 25, DECISION);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(p->n_asked, 3);
    for (int i = 1; i <= 25; i++)
        CHECK_INT(times_heard(p, i), 1);
    CHECK(peer_heard(p, "POST /hook/s3cret HTTP/1.1\r\n"));
    CHECK(peer_heard(p, "Content-Type: application/json\r\n"));
    CHECK_INT(cs_stats(&c, 0).written_total, 25);
    cs_stop(&c);
    CHECK(cs_up(&c));
    set_hook(&c, p, POST_JSON);
    turn(c.s, 20);
    CHECK_INT(p->n_asked, 3);
    cs_close(&c);
}

TEST(what_an_alert_is_about_comes_with_it)
{
    struct channel_stage c;
    struct peer *p;

    cs_open(&c);
    c.context = "{\"from\":\"Jay\",\"payload\":{\"x\":1}}";
    p = peer_open(c.s, ANSWER("200 OK", "", "ok", "2"));
    set_hook(&c, p, POST_SLACK);
    cs_happen(&c, "gate.escalated", 2, DECISION);
    UNTIL(c.s, p->n_asked == 1);
    CHECK(peer_heard(p, "```{\\\"from\\\":\\\"Jay\\\""));
    UNTIL(c.s, cs_stats(&c, 0).written_total == 1);
    turn(c.s, 10);
    CHECK_INT(p->n_asked, 1); /* Slack takes one a second */
    later(c.s, 1100);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(c.n_contexts, 2);
    cs_close(&c);
}

/* The first answer, and the pause after it. */
static void check_pause(enum post_form form, const char *answer, int n,
                        int64_t least_ms, int64_t most_ms)
{
    struct channel_stage c;
    struct peer *p;

    cs_open(&c);
    p = peer_open(c.s, TAKEN);
    p->first_reply = answer;
    set_hook(&c, p, form);
    cs_happen(&c, "gate.routed", n, DECISION);
    UNTIL(c.s, cs_stats(&c, 0).failures_total == 1);
    CHECK_INT(cs_stats(&c, 0).cursor, 0);
    CHECK(!strstr(cs_stats(&c, 0).problem, "s3cret"));
    /* The clock goes on by itself: some seconds are left to slow machines. */
    later(c.s, least_ms > 20000 ? least_ms - 10000 : 0);
    if (least_ms > 20000)
        turn(c.s, 20);
    CHECK(least_ms <= 20000 || p->n_asked == 1);
    later(c.s, most_ms);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_stats(&c, 0).written_total, n);
    cs_close(&c);
}

TEST(who_has_too_much_is_left_alone_for_as_long_as_it_says)
{
    check_pause(POST_SLACK,
                ANSWER("429 Too Many Requests", "Retry-After: 30\r\n", "", "0"),
                1, 30000, 30000);
    check_pause(POST_DISCORD,
                ANSWER("429 Too Many Requests",
                       "Retry-After: 1\r\nContent-Type: application/json\r\n",
                       "{\"message\":\"slow\",\"retry_after\":64.57}", "38"),
                1, 64570, 64570);
}

TEST(who_is_down_is_asked_again_soon)
{
    check_pause(POST_JSON, ANSWER("500 Oops", "", "", "0"), 1, 1000, 1300);
    check_pause(POST_JSON, ANSWER("408 Late", "", "", "0"), 1, 1000, 1300);
    check_pause(POST_JSON, "no HTTP at all\r\n\r\n", 1, 1000, 1300);
}

TEST(who_refuses_is_asked_again_later_and_nothing_is_skipped)
{
    check_pause(POST_SLACK, ANSWER("404 Not Found", "", "no_team", "7"), 1,
                60000, 73000);
    check_pause(POST_JSON, ANSWER("302 Found", "Location: /x\r\n", "", "0"), 1,
                60000, 73000);
}

TEST(what_was_refused_together_goes_singly)
{
    struct channel_stage c;
    struct peer *p;

    cs_open(&c);
    p = peer_open(c.s, TAKEN);
    p->first_reply = ANSWER("400 Bad Request", "", "invalid_blocks", "14");
    set_hook(&c, p, POST_JSON);
    cs_happen(&c, "gate.routed", 4, DECISION);
    UNTIL(c.s, cs_stats(&c, 0).failures_total == 1);
    later(c.s, 1300);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(p->n_asked, 3); /* all, the first alone, the other three */
    CHECK_INT(times_heard(p, 1), 2);
    CHECK_INT(times_heard(p, 4), 2);
    cs_close(&c);
}

TEST(discord_is_left_alone_when_it_says_that_it_has_had_enough)
{
    struct channel_stage c;
    struct peer *p;

    cs_open(&c);
    p = peer_open(c.s, TAKEN);
    p->first_reply =
        ANSWER("200 OK",
               "X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset-After: 90.5\r\n",
               "", "0");
    set_hook(&c, p, POST_DISCORD);
    cs_happen(&c, "gate.routed", 11, DECISION);
    UNTIL(c.s, cs_stats(&c, 0).written_total == 10);
    later(c.s, 70000);
    CHECK_INT(p->n_asked, 1);
    later(c.s, 20501);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(cs_stats(&c, 0).failures_total, 0);
    cs_close(&c);
}

TEST(the_guard_holds_for_webhooks_too)
{
    struct channel_stage c;
    struct peer *p;

    cs_open(&c);
    p = peer_open(c.s, TAKEN);
    stage_allow(c.s, NULL);
    set_hook(&c, p, POST_JSON);
    cs_happen(&c, "gate.routed", 1, DECISION);
    UNTIL(c.s, cs_stats(&c, 0).failures_total == 1);
    CHECK_INT(p->n_asked, 0);
    stage_allow(c.s, "127.0.0.0/8");
    later(c.s, 73000);
    UNTIL(c.s, cs_is_idle(&c));
    CHECK_INT(times_heard(p, 1), 1);
    cs_close(&c);
}

/* The first never answers, the second is missing, the third has a broken disk.
 * The fourth gets everything at once, and the others too once they work. */
TEST(places_do_not_hold_up_each_other)
{
    struct channel_settings list[4];
    struct channel_stage c;
    struct peer *deaf, *gone, *good;

    cs_open(&c);
    deaf = peer_open(c.s, NULL);
    gone = peer_open(c.s, TAKEN);
    good = peer_open(c.s, TAKEN);
    list[0] = hook(deaf, POST_JSON);
    list[0].name = STR("#deaf");
    list[1] = hook(gone, POST_JSON);
    list[1].name = STR("#gone");
    list[1].file = STR("gone.jsonl");
    list[2] = hook(good, POST_JSON);
    list[3] = (struct channel_settings){
        .name = STR("#disk"), .takes_feed = true, .file = STR("no/folder")};
    peer_leave(gone);
    channels_set(c.channels, list, 4);
    turn(c.s, 5);
    for (int i = 1; i <= 20; i++)
        cs_happen(&c, "gate.routed", 50, DECISION);
    UNTIL(c.s, times_heard(good, 1000) == 1);
    for (int i = 1; i <= 1000; i += 37)
        CHECK_INT(times_heard(good, i), 1);
    CHECK_INT(cs_stats(&c, 0).written_total, 0);
    CHECK_INT(cs_stats(&c, 1).written_total, 1000); /* its file */
    CHECK_INT(cs_stats(&c, 2).written_total, 0);    /* and its webhook */
    CHECK_INT(cs_stats(&c, 2).backlog, 1000);
    CHECK_INT(cs_stats(&c, 4).backlog, 1000);
    CHECK_INT(deaf->n_asked, 1); /* one at a time */
    cs_close(&c);
}

TEST(a_url_that_is_none_is_said)
{
    struct channel_stage c;

    cs_open(&c);
    channels_set(c.channels,
                 &(struct channel_settings){.name = STR("#a"),
                                            .takes_feed = true,
                                            .webhook = STR("ftp:/nowhere")},
                 1);
    turn(c.s, 5);
    cs_happen(&c, "gate.routed", 1, DECISION);
    UNTIL(c.s, cs_stats(&c, 0).failures_total == 1);
    CHECK(strstr(cs_stats(&c, 0).problem, "not a valid URL"));
    cs_close(&c);
}

TEST(whatever_breaks_everything_is_posted_in_the_end)
{
    static const char *const steps[] = {"channel.post", "store.read.io"};

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        struct channel_stage c;
        struct peer *p;

        cs_open(&c);
        p = peer_open(c.s, TAKEN);
        set_hook(&c, p, POST_JSON);
        fault_arm_at(steps[i], 1);
        cs_happen(&c, "gate.escalated", 2, DECISION);
        turn(c.s, 30);
        later(c.s, 2000);
        fault_arm(0);
        UNTIL(c.s, cs_is_idle(&c));
        CHECK(times_heard(p, 1) == 1 && times_heard(p, 2) == 1);
        cs_close(&c);
    }
}
