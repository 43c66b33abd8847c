/* The gate's answer, field for field. */
#include "speak/speak.h"

#include "test/t.h"

static struct buf out;

static void say(const struct speak_passed *s)
{
    struct json_out o = json_out(&out);

    buf_init(&out, 64 * 1024);
    json_open(&o, '{');
    speak_pass(&o, s);
    json_close(&o, '}');
    CHECK(!out.over);
}

static const struct envelope jays = {
    .from = STR("Jay"), .to = STR("Z"), .type = STR("REQUEST")};

TEST(the_example_of_the_seed_field_for_field)
{
    struct gate_result p = {
        .answer = GATE_ROUTE,
        .priority = PRIORITY_NORMAL,
        .reason = "Z has fresh data (2 hours old), no dependency violations, "
                  "priority is NORMAL",
        .sla_ms = 15 * 60000,
        .sla = "Expected Z response within 15 minutes",
        .channel = STR("#agent-feed"),
    };

    say(&(struct speak_passed){.message_id = STR("MSG-001"),
                               .envelope = &jays,
                               .gate_result = &p,
                               .at_ms = INT64_C(1739610015678),
                               .is_logged = true,
                               .status = STR("queued")});
    CHECK_STR(
        buf_str(&out),
        "{\"message_id\":\"MSG-001\",\"original_from\":\"Jay\","
        "\"original_to\":\"Z\",\"routing_decision\":\"ROUTE_IMMEDIATELY\","
        "\"target\":\"Z\",\"reason\":\"Z has fresh data (2 hours old), no "
        "dependency violations, priority is NORMAL\","
        "\"timestamp\":\"2025-02-15T09:00:15Z\","
        "\"sla\":\"Expected Z response within 15 minutes\",\"logged\":true,"
        "\"posted_to_channel\":\"#agent-feed\",\"rule\":null,"
        "\"held_until\":null,\"priority\":\"NORMAL\",\"waits_for\":[],"
        "\"repeats\":null,\"task_id\":null,\"escalation_id\":null,"
        "\"status\":\"queued\",\"type\":\"REQUEST\",\"reference\":null,"
        "\"stale\":false,\"warnings\":[]}");
    buf_fini(&out);
}

TEST(what_waits_says_for_what_and_until_when)
{
    struct gate_result p = {
        .answer = GATE_PAUSE,
        .priority = PRIORITY_HIGH,
        .rule = STR("z-gate"),
        .reason = "Z is DEAD",
        .held_until_ms = INT64_C(1739610015000),
        .keys = {{.kind = WAIT_AGENT, .name = STR("Z")}, {.kind = WAIT_LOOK}},
        .n_keys = 2,
        .repeats = STR("m"),
        .is_stale = true,
        .warning = "timestamp is 8 days ago"};

    say(&(struct speak_passed){.message_id = STR("m1"),
                               .envelope = &jays,
                               .gate_result = &p,
                               .at_ms = INT64_C(1739610000000),
                               .target = STR("Z2"),
                               .task_id = STR("task_1"),
                               .escalation_id = STR("esc_1"),
                               .status = STR("held")});
    CHECK_STR(buf_str(&out),
              "{\"message_id\":\"m1\",\"original_from\":\"Jay\","
              "\"original_to\":\"Z\","
              "\"routing_decision\":\"PAUSE_ALL_SUBMISSIONS\","
              "\"target\":\"Z2\",\"reason\":\"Z is DEAD\","
              "\"timestamp\":\"2025-02-15T09:00:00Z\",\"sla\":null,"
              "\"logged\":false,\"posted_to_channel\":null,"
              "\"rule\":\"z-gate\",\"held_until\":\"2025-02-15T09:00:15Z\","
              "\"priority\":\"HIGH\",\"waits_for\":[\"agent:Z\",\"look\"],"
              "\"repeats\":\"m\",\"task_id\":\"task_1\","
              "\"escalation_id\":\"esc_1\",\"status\":\"held\",\"type\":"
              "\"REQUEST\",\"reference\":null,\"stale\":true,"
              "\"warnings\":[\"timestamp is 8 days ago\"]}");
    buf_fini(&out);
}
