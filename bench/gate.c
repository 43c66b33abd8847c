/* bench_gate: how long a decision takes, with its reason in words.
 *
 * Files of 10, 100 and 1 000 rules. The first ten are about the messages that
 * are judged, one or two of each section, a condition among them; the others
 * are about other agents and other kinds, spread over all sections. Beside it
 * the same rules asked one by one, without the index. Processor time, the
 * median of the rounds. Exit status 1 unless ten rules allow a million
 * decisions a second and a thousand cost no more than ten times that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gate/rules/internal.h"

enum { ROUNDS = 41, DECISIONS = 20 * 1000, FILE_BYTES = 1 << 20 };

#define NOW_MS INT64_C(1739610015000)

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The first ten: what the messages below have to do with. */
static const char *const ours[10][2] = {
    {"priorities",
     "{\"rule\":\"o0\",\"match\":{\"type\":\"LEAD\"},\"priority\":\"URGENT\"}"},
    {"duplicates",
     "{\"rule\":\"o1\",\"match\":{\"type\":\"SUBMISSION\"},"
     "\"same\":[\"from\",\"to\",\"type\",\"reference\"],\"within\":\"10m\"}"},
    {"superseding", "{\"rule\":\"o2\",\"match\":{\"type\":\"STATUS_CHECK\"},"
                    "\"within\":\"1m\"}"},
    {"safety_gates", "{\"rule\":\"o3\",\"agent\":\"Z\",\"match\":{\"type\":"
                     "\"SUBMISSION\"}}"},
    {"escalations", "{\"rule\":\"o4\",\"match\":{\"type\":\"REQUEST\"},"
                    "\"when\":{\"<\":[{\"var\":\"message.payload.score\"},"
                    "6.5]}}"},
    {"dependencies", "{\"rule\":\"o5\",\"match\":{\"to\":\"Rick\",\"type\":"
                     "\"SUBMISSION\"},\"after\":[{\"type\":\"SUBMITTED\","
                     "\"from\":\"Jay\"},{\"type\":\"RESULT\",\"from\":\"Z\","
                     "\"approved\":true}]}"},
    {"freshness", "{\"rule\":\"o6\",\"match\":{\"to\":\"Z\",\"type\":"
                  "\"REQUEST\"},\"within\":\"24h\"}"},
    {"capacity", "{\"rule\":\"o7\",\"match\":{\"to\":\"Rick\"},\"queue\":3}"},
    {"sla", "{\"rule\":\"o8\",\"match\":{\"to\":\"Z\"},\"within\":\"15m\"}"},
    {"sla", "{\"rule\":\"o9\",\"match\":{\"to\":\"Rick\"},\"within\":\"1h\"}"},
};

/* What a rule about others says besides, by section. */
static const char *const others[][2] = {
    {"priorities", "\"priority\":\"HIGH\""},
    {"duplicates", "\"within\":\"10m\""},
    {"superseding", "\"within\":\"1m\""},
    {"safety_gates", "\"agent\":\"Z\""},
    {"escalations", "\"when\":{\"<\":[{\"var\":\"message.payload.score\"},6]}"},
    {"dependencies", "\"after\":[{\"type\":\"DONE\",\"from\":\"Jay\"}]"},
    {"freshness", "\"within\":\"2h\""},
    {"capacity", "\"queue\":9"},
    {"sla", "\"within\":\"5m\""},
};
enum { N_OTHERS = sizeof(others) / sizeof(*others), N_AGENTS = 40 };

static struct gate_rules *make_rules(int n)
{
    static char text[FILE_BYTES];
    static struct gate_problems problems;
    struct gate_rules *r;
    size_t at = 0;

#define ADD(...) \
    at += (size_t)snprintf(text + at, sizeof(text) - at, __VA_ARGS__)
    ADD("{\"agents\":{\"Jay\":{},\"Z\":{},\"Rick\":{},\"Leroy\":{}");
    for (int i = 0; i < N_AGENTS; i++)
        ADD(",\"agent-%d\":{}", i);
    ADD("}");
    for (int s = 0; s < N_OTHERS; s++) {
        ADD(",\"%s\":[", others[s][0]);
        for (int i = 0; i < 10; i++)
            if (strcmp(ours[i][0], others[s][0]) == 0)
                ADD("%s,", ours[i][1]);
        for (int i = 10; i < n; i++)
            if (i % N_OTHERS == s)
                ADD("{\"rule\":\"r%d\",\"match\":{\"to\":\"agent-%d\","
                    "\"type\":\"KIND_%d\"},%s},",
                    i, i % N_AGENTS, i % 97, others[s][1]);
        ADD("]");
    }
    ADD("}");
#undef ADD
    if (at >= sizeof(text) ||
        gate_rules_read((struct str){text, at}, &r, &problems)) {
        fprintf(stderr, "rules: %s\n", problems.text);
        exit(1);
    }
    if ((int)gate_rules_count(r) != n)
        abort();
    return r;
}

static bool an_agent(void *ctx, struct str name, struct gate_agent *out)
{
    (void)ctx;
    *out = (struct gate_agent){.name = name,
                               .is_known = true,
                               .state = AGENT_IDLE,
                               .queue_max = 100,
                               .data_at_ms = NOW_MS - 7200000};
    return true;
}

static size_t two_events(void *ctx, struct str reference,
                         struct gate_event *out, size_t max)
{
    (void)ctx, (void)reference, (void)max;
    out[0] = (struct gate_event){
        .from = STR("Jay"), .type = STR("SUBMITTED"), .at_ms = NOW_MS - 120000};
    out[1] = (struct gate_event){.from = STR("Z"),
                                 .type = STR("RESULT"),
                                 .at_ms = NOW_MS - 60000,
                                 .approved = APPROVED};
    return 2;
}

static bool never_seen(void *ctx, const struct gate_key *key,
                       struct gate_seen *out)
{
    (void)ctx, (void)key, (void)out;
    return false;
}

static const struct gate_view view = {an_agent, two_events, never_seen, NULL};

enum { N_MESSAGES = 4 };
static struct envelope messages[N_MESSAGES];

static void make_messages(struct arena *a)
{
    static const char *const kinds[N_MESSAGES][3] = {
        {"Jay", "Z", "REQUEST"},
        {"Leroy", "Rick", "SUBMISSION"},
        {"Jay", "Leroy", "NOTE"},
        {"Rick", "Leroy", "LEAD"},
    };

    for (int i = 0; i < N_MESSAGES; i++) {
        messages[i] = (struct envelope){
            .from = str_of(kinds[i][0]),
            .to = str_of(kinds[i][1]),
            .type = str_of(kinds[i][2]),
            .priority = PRIORITY_NORMAL,
            .reference = STR("SUBM-C042-001"),
            .payload = STR("{\"consultant_id\":\"C-042\",\"score\":8.2}"),
            .scope = STR("org:em"),
        };
        /* As the walk has it: read when it came in. */
        messages[i].fields = json_parse(a, messages[i].payload, 0, NULL);
    }
}

/* Microseconds for one decision. */
static double one_round(const struct gate_rules *r)
{
    double began = now_us();
    struct gate_result p;

    for (int i = 0; i < DECISIONS; i++) {
        gate_decide(r, &view, &messages[i % N_MESSAGES], NOW_MS, &p, NULL);
        if (p.answer != GATE_ROUTE || !p.reason[0])
            abort();
    }
    return (now_us() - began) / DECISIONS;
}

int main(void)
{
    static const int sizes[] = {10, 100, 1000};
    double rounds[3][2][ROUNDS], us[3][2];
    struct gate_rules *rules[3], plain[3];
    bool is_reached;
    struct arena a;

    arena_init(&a, 1 << 20);
    make_messages(&a);
    for (int s = 0; s < 3; s++) {
        rules[s] = make_rules(sizes[s]);
        plain[s] = *rules[s];
        plain[s].index = NULL;
    }
    for (int i = 0; i < ROUNDS; i++)
        for (int s = 0; s < 3; s++) {
            rounds[s][0][i] = one_round(rules[s]);
            rounds[s][1][i] = one_round(&plain[s]);
        }
    printf("%8s %14s %10s %14s\n", "rules", "decisions/s", "us", "one by one");
    for (int s = 0; s < 3; s++) {
        for (int k = 0; k < 2; k++) {
            qsort(rounds[s][k], ROUNDS, sizeof(double), by_value);
            us[s][k] = rounds[s][k][ROUNDS / 2];
        }
        printf("%8d %14.0f %10.3f %14.3f\n", sizes[s], 1e6 / us[s][0], us[s][0],
               us[s][1]);
    }
    is_reached = us[0][0] < 1 && us[2][0] <= 10 * us[0][0];
    printf("1000 rules cost %.2f times 10: %s\n", us[2][0] / us[0][0],
           is_reached ? "reached" : "missed");
    for (int s = 0; s < 3; s++)
        gate_rules_free(rules[s]);
    arena_fini(&a);
    return is_reached ? 0 : 1;
}
