/* Timestamps: old ones are accepted and reported, ones ahead cause a warning,
 * and the limits in the rules are exact to the millisecond. */
#include "gate/rules/rules.h"
#include "test/t.h"

#define NOW_MS  INT64_C(1739610015000) /* 2025-02-15T09:00:15Z */
#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)

static struct gate_limits limits_of(const char *timestamps)
{
    static struct gate_problems problems;
    struct gate_rules *r;
    struct gate_limits l;
    char text[128];

    snprintf(text, sizeof(text), "{\"timestamps\": %s}", timestamps);
    if (gate_rules_read(str_of(text), &r, &problems) != OK)
        T_FAIL("%s", problems.text);
    l = gate_rules_about(r)->limits;
    gate_rules_free(r);
    return l;
}

static void check_taken(const struct gate_limits *l, int64_t off_ms)
{
    struct why why = {""};

    if (gate_check_time(l, NOW_MS + off_ms, NOW_MS, &why) != OK)
        T_FAIL("%lld: %s", (long long)off_ms, why.text);
}

static void check_refused(const struct gate_limits *l, int64_t off_ms,
                          const char *words)
{
    struct why why = {""};

    CHECK_INT(gate_check_time(l, NOW_MS + off_ms, NOW_MS, &why),
              ERR_BAD_REQUEST);
    if (!strstr(why.text, words))
        T_FAIL("\"%s\" does not say \"%s\"", why.text, words);
}

TEST(without_rules_any_age_is_taken_and_14_hours_ahead)
{
    struct gate_limits l = gate_rules_about(gate_rules_none())->limits;

    check_taken(&l, 0);
    check_taken(&l, -1900 * 365 * DAY_MS);
    check_taken(&l, 14 * HOUR_MS);
    check_refused(
        &l, 14 * HOUR_MS + 1,
        "timestamp is more than 14 hours ahead of the clock here, and "
        "may be 14 hours: is a clock wrong, or the time zone missing?");
    check_refused(&l, 7000 * 365 * DAY_MS, "ahead");
}

TEST(rules_refuse_what_is_older_or_further_ahead)
{
    struct gate_limits l = limits_of("{\"age\": \"7d\", \"future\": \"5m\"}");

    check_taken(&l, -7 * DAY_MS);
    check_refused(
        &l, -7 * DAY_MS - 1,
        "timestamp is more than 7 days ago, and may be 7 days: leave it out");
    check_refused(&l, -641 * DAY_MS, "timestamp is 641 days ago");
    check_taken(&l, 300 * 1000);
    check_refused(&l, 300 * 1000 + 1, "may be 5 minutes");
}

static void check_noted(const struct gate_limits *l, int64_t off_ms,
                        bool is_stale, const char *warning)
{
    struct gate_result p = {.warning = "of before", .is_stale = !is_stale};

    gate_note_time(l, NOW_MS + off_ms, NOW_MS, &p);
    CHECK_INT(p.is_stale, is_stale);
    CHECK_STR(str_of(p.warning), warning);
}

TEST(what_is_taken_is_reported)
{
    struct gate_limits l = gate_rules_about(gate_rules_none())->limits;

    check_noted(&l, 0, false, "");
    check_noted(&l, -7 * DAY_MS, false, "");
    check_noted(&l, -7 * DAY_MS - 1, true, "timestamp is 7 days ago");
    check_noted(&l, 60 * 1000, false, "");
    check_noted(&l, 60 * 1000 + 1, false,
                "timestamp is 1 minute ahead of the clock here: is a clock "
                "wrong, or the time zone missing?");
    l = limits_of("{\"stale\": \"1h\"}");
    check_noted(&l, -HOUR_MS, false, "");
    check_noted(&l, -HOUR_MS - 1, true, "timestamp is 1 hour ago");
}

/* A library may be called with any time. */
TEST(times_at_the_end_of_time)
{
    struct gate_limits l = gate_rules_about(gate_rules_none())->limits;
    struct gate_result p;
    struct why why;

    CHECK_INT(gate_check_time(&l, INT64_MAX, INT64_MIN, &why), ERR_BAD_REQUEST);
    CHECK_INT(gate_check_time(&l, 0, INT64_MIN, &why), ERR_BAD_REQUEST);
    CHECK_INT(gate_check_time(&l, INT64_MIN, INT64_MAX, &why), OK);
    gate_note_time(&l, INT64_MIN, INT64_MAX, &p);
    CHECK(p.is_stale);
    gate_note_time(&l, INT64_MAX, INT64_MIN, &p);
    CHECK(!p.is_stale && p.warning[0]);
}

static bool knows(void *ctx, struct str name, struct gate_agent *out)
{
    (void)ctx;
    *out = (struct gate_agent){
        .name = name, .is_known = true, .state = AGENT_IDLE, .queue_max = 10};
    return true;
}

TEST(a_rule_may_have_a_person_see_what_is_old)
{
    static const char text[] =
        "{\"agents\": {\"Z\": {}}, \"escalations\": [{\"rule\": \"old\","
        " \"when\": {\"var\": \"message.stale\"}}]}";
    static struct gate_problems problems;
    struct envelope e = {.from = STR("Jay"),
                         .to = STR("Z"),
                         .type = STR("REQUEST"),
                         .priority = PRIORITY_NORMAL,
                         .at_ms = NOW_MS};
    struct gate_view v = {.agent = knows};
    struct gate_rules *r;
    struct gate_result p;

    CHECK_INT(gate_rules_read(str_of(text), &r, &problems), OK);
    gate_decide(r, &v, &e, NOW_MS, &p, NULL);
    CHECK_INT(p.answer, GATE_ROUTE);
    CHECK(!p.is_stale);
    e.at_ms = NOW_MS - 8 * DAY_MS;
    gate_decide(r, &v, &e, NOW_MS, &p, NULL);
    CHECK_INT(p.answer, GATE_ESCALATE);
    CHECK_STR(p.rule, "old");
    CHECK(p.is_stale);
    gate_rules_free(r);
}
