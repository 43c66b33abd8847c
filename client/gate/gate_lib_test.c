/* The library as other programs use it: only through its header. */
#include "signalbox_gate.h"

#include <pthread.h>
#include <string.h>

#include "test/t.h"

#define NOW_MS INT64_C(1739610015000) /* 2025-02-15T09:00:15Z */

static const char rules[] =
    "{ // comments are fine\n"
    "\"agents\": {\"Jay\": {}, \"Z\": {}},\n"
    "\"escalations\": [{\"rule\": \"unsure\", \"when\":"
    " {\"<\": [{\"var\": \"message.payload.confidence_score\"}, 6.5]}}],\n"
    "\"freshness\": [{\"rule\": \"fresh\", \"match\": {\"to\": \"Z\"},"
    " \"within\": \"4h\"}],\n"
    "\"sla\": [{\"rule\": \"answers\", \"match\": {\"to\": \"Z\"},"
    " \"within\": \"15m\"}] }";
static const char state[] =
    "{\"agents\": {\"Z\": {\"state\": \"ACTIVE\", \"data_at\":"
    " \"2025-02-15T07:00:00Z\"}}}";
static const char envelope[] =
    "{\"from\": \"Jay\", \"to\": \"Z\", \"type\": \"REQUEST\","
    " \"timestamp\": \"2025-02-15T09:00:00Z\","
    " \"payload\": {\"confidence_score\": 8.2}}";

static struct signalbox_gate *gate_of(const char *text)
{
    char *error = NULL;
    struct signalbox_gate *g = signalbox_gate_new(text, strlen(text), &error);

    if (!g)
        T_FAIL("%s", error);
    CHECK(!error);
    return g;
}

static void check_said(const struct signalbox_gate *g, const char *what,
                       unsigned flags, const char *words)
{
    char *error = NULL;
    char *said = signalbox_gate_decide(g, state, strlen(state), what,
                                       strlen(what), NOW_MS, flags, &error);

    if (!said || !strstr(said, words))
        T_FAIL("%s has no %s", said ? said : error, words);
    CHECK(!error);
    signalbox_gate_text_free(said);
}

TEST(a_decision_as_text)
{
    struct signalbox_gate *g = gate_of(rules);

    check_said(g, envelope, 0, "\"routing_decision\":\"ROUTE_IMMEDIATELY\"");
    check_said(g, envelope, 0, "Z has fresh data (2 hours old)");
    check_said(g, envelope, 0, "Expected Z response within 15 minutes");
    check_said(g, envelope, SIGNALBOX_GATE_TRACE, "\"trace\":[{\"section\":");
    check_said(g,
               "{\"from\":\"Jay\",\"to\":\"Z\",\"type\":\"X\",\"payload\":"
               "{\"confidence_score\":5}}",
               0, "\"rule\":\"unsure\"");
    signalbox_gate_free(g);
}

TEST(what_is_wrong_as_text)
{
    static const char bad[] = "{\"escalations\": [{\"rule\": \"x\", \"when\":"
                              " {\"=>\": [1, 2]}}]}";
    struct signalbox_gate *g;
    char *error = NULL;

    CHECK(!signalbox_gate_new(bad, strlen(bad), &error));
    CHECK(error && strstr(error, "is not a JsonLogic operator"));
    signalbox_gate_text_free(error);
    CHECK(!signalbox_gate_new(bad, strlen(bad), NULL));
    g = gate_of(rules);
    CHECK(!signalbox_gate_decide(g, state, strlen(state), "{}", 2, NOW_MS, 0,
                                 &error));
    CHECK(error && strstr(error, "the envelope needs \"from\""));
    signalbox_gate_text_free(error);
    CHECK(!signalbox_gate_decide(g, "[", 1, envelope, strlen(envelope), NOW_MS,
                                 0, NULL));
    CHECK(!signalbox_gate_decide(g, NULL, 0, NULL, 0, NOW_MS, 0, NULL));
    signalbox_gate_free(g);
    signalbox_gate_free(NULL);
    signalbox_gate_text_free(NULL);
}

TEST(without_rules_and_without_a_state)
{
    struct signalbox_gate *g = signalbox_gate_new(NULL, 0, NULL);
    char *said;

    CHECK(g);
    check_said(g, envelope, 0, "ROUTE_IMMEDIATELY");
    said = signalbox_gate_decide(g, NULL, 0, envelope, strlen(envelope), NOW_MS,
                                 0, NULL);
    CHECK(said && strstr(said, "ESCALATE_TO_HUMAN"));
    signalbox_gate_text_free(said);
    signalbox_gate_free(g);
    CHECK(strchr(signalbox_gate_version(), '.'));
}

static void *many(void *ctx)
{
    for (int i = 0; i < 200; i++)
        check_said(ctx, envelope, SIGNALBOX_GATE_TRACE, "ROUTE_IMMEDIATELY");
    return NULL;
}

TEST(threads_share_one_gate)
{
    struct signalbox_gate *g = gate_of(rules);
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, many, g) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    signalbox_gate_free(g);
}
