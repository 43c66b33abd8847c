/* Why an agent is DEAD, in ERROR or SLOW, in words. */
#include "test/lib/line_stage.h"

#include "model/advice.h"

static const char *reason(const struct agent *a, bool has_details)
{
    static struct why why;

    deliver_state_reason(st.d, a, has_details, &why);
    return why.text;
}

static void check_reason(const struct agent *a, enum agent_state s,
                         const char *part)
{
    CHECK_INT(deliver_state(st.d, a), s);
    if (!strstr(reason(a, true), part))
        T_FAIL("\"%s\" is not in \"%s\"", part, reason(a, true));
}

static void leave(struct peer *p, const char *because)
{
    p->is_there = false;
    deliver_detach(st.d, p->line, str_of(because));
}

TEST(a_state_that_is_good_has_no_reason)
{
    struct agent *a;

    stage_open();
    a = stage_agent("a", "echo:");
    CHECK_INT(deliver_state(st.d, a), AGENT_IDLE);
    CHECK_STR(str_of(reason(a, true)), "");
    stage_close();
}

TEST(one_that_is_not_connected_says_since_when_and_why)
{
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("Away", "ws-agent://away");
    check_reason(a, AGENT_DEAD, "has not connected since the server started");
    p = attach(0, a);
    CHECK_STR(str_of(reason(a, true)), "");
    st.time.wall_ms = 1794855600000;
    turns(1);
    leave(p, "it missed its heartbeat");
    check_reason(a, AGENT_DEAD,
                 "not connected since 2026-11-16T19:00:00Z: it missed its "
                 "heartbeat");
    p = attach(1, a);
    CHECK_STR(str_of(reason(a, true)), "");
    leave(p, "");
    check_reason(a, AGENT_DEAD, "not connected since 2026-11-16T19:00:00Z");
    stage_close();
}

TEST(why_a_connection_went_is_told_to_its_owner_alone)
{
    struct agent *a;

    stage_open();
    a = stage_agent("a", "ws-agent://a");
    st.time.wall_ms = 1794855600000;
    turns(1);
    leave(attach(0, a), "its token is no longer valid");
    check_reason(a, AGENT_DEAD,
                 "not connected since 2026-11-16T19:00:00Z: its token is no "
                 "longer valid");
    CHECK_STR(str_of(reason(a, false)),
              "not connected since 2026-11-16T19:00:00Z");
    stage_close();
}

/* Another agent of the same name, made after that. */
TEST(when_an_agent_left_is_not_told_of_a_later_one_of_its_name)
{
    struct agent *a;

    stage_open();
    a = stage_agent("a", "ws-agent://a");
    leave(attach(0, a), "it closed the connection");
    check_reason(a, AGENT_DEAD, "it closed the connection");
    a->created_ms = st.time.wall_ms + 1;
    check_reason(a, AGENT_DEAD, "has not connected since the server started");
    stage_close();
}

TEST(one_that_did_not_wake_up_says_how_often)
{
    struct agent *a;

    stage_open();
    a = stage_agent("night", "ws-agent://night");
    a->wake.url = STR("http://wake.example/");
    for (int i = 0; i < 3; i++) {
        CHECK_STR(str_of(reason(a, true)), "");
        offer(i, a);
        later(30 * 1000);
        turns(2);
    }
    check_reason(a, AGENT_DEAD, "woken 3 times in a row");
    stage_close();
}

TEST(one_whose_program_is_not_configured_says_which)
{
    struct agent *a;

    stage_open();
    a = stage_agent("a", "process:nowhere");
    check_reason(a, AGENT_DEAD, "\"nowhere\"");
    CHECK(strstr(reason(a, false), "configuration"));
    stage_close();
}

TEST(what_failed_is_told_with_details_to_those_who_may_see_them)
{
    struct agent *a;

    stage_open();
    a = stage_agent("a", "echo:3600000");
    for (int i = 0; i < 3; i++) {
        struct deliver_job *e;

        offer(i, a);
        turns(1);
        e = map_get(&st.d->deliver_jobs, str_of(id_of(&st.tasks[i])));
        delivery_failed(e->delivery, &(struct delivery_failure){
                                         .code = STR("x"),
                                         .words = STR("it does not work"),
                                         .detail = STR("key 7 is missing"),
                                         .is_final = true});
        turns(1);
    }
    check_reason(a, AGENT_ERROR,
                 "its last 3 attempts failed; the last error: key 7");
    CHECK_STR(str_of(reason(a, false)), "its last 3 attempts failed");
    stage_close();
}

TEST(a_state_that_the_agent_reports_is_told_as_that)
{
    struct agent *a;

    stage_open();
    a = stage_agent("a", "echo:");
    deliver_report(st.d, a->name, AGENT_ERROR);
    check_reason(a, AGENT_ERROR, "reports this state itself");
    deliver_report(st.d, a->name, AGENT_SLOW);
    check_reason(a, AGENT_SLOW, "reports this state itself");
    stage_close();
}

/* At the limit: the note that finds no room is not taken, and that is all. */
TEST(departures_are_noted_up_to_a_limit)
{
    struct agent a = {.name = STR("new"), .url = STR("ws-agent://new")};
    char name[32];

    stage_open();
    st.any_agent = &a;
    for (int i = 0; i < DEPARTURES_MAX + 1; i++) {
        snprintf(name, sizeof(name), "a%d", i);
        if (i == DEPARTURES_MAX)
            check_reason(&a, AGENT_DEAD, "has not connected since");
        departure_note(st.d, str_of(name), STR("x"));
    }
    CHECK_INT(st.d->departures.n, DEPARTURES_MAX);
    check_reason(&a, AGENT_DEAD, "it is not connected");
    departure_forget(st.d, STR("A0"));
    departure_note(st.d, str_of(name), STR("x"));
    CHECK_INT(st.d->departures.n, DEPARTURES_MAX);
    stage_close();
}

TEST(the_note_of_a_removed_agent_is_forgotten)
{
    struct agent *b;

    stage_open();
    b = stage_agent("B", "ws-agent://b");
    leave(attach(0, b), "x");
    leave(attach(1, stage_agent("A", "ws-agent://a")), "x");
    st.n_agents = 1; /* of the two B stays */
    deliver_agents_changed(st.d);
    CHECK_INT(st.d->departures.n, 2);
    later(1000);
    CHECK_INT(st.d->departures.n, 1);
    check_reason(b, AGENT_DEAD, "not connected since");
    stage_close();
}

/* More of them than are looked at in one go. */
TEST(the_notes_of_many_removed_agents_are_forgotten)
{
    struct agent a = {.name = STR("a")};
    char name[32];

    stage_open();
    st.any_agent = &a;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "a%d", i);
        departure_note(st.d, str_of(name), STR("x"));
    }
    st.any_agent = NULL;
    deliver_agents_changed(st.d);
    departure_forget(st.d, STR("a7"));
    for (int i = 0; i < 10; i++)
        later(1000);
    CHECK_INT(st.d->departures.n, 0);
    stage_close();
}

TEST(a_connection_that_outlives_its_agent_leaves_no_note)
{
    struct peer *p;

    stage_open();
    p = attach(0, stage_agent("a", "ws-agent://a"));
    st.n_agents = 0;
    leave(p, "it closed the connection");
    CHECK_INT(st.d->departures.n, 0);
    CHECK(!st.d->has_lost_departure);
    stage_close();
}
