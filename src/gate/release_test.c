/* However many are let go at once, each turn of the loop handles a limited
 * number. */
#include "test/lib/gatekeeper_stage.h"

static int64_t n_held(void)
{
    const char *full = getenv("STRESS");

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return full ? 20000 : 1000;
#else
    return full ? 100000 : 3000;
#endif
}

static const char rules[] =
    "{'agents': {'Z': {}, 'Rick': {}}, 'safety_gates': [{'rule': 'gate',"
    " 'agent': 'Z', 'match': {'type': 'SUBMISSION'}}],"
    "'holds': {'most': 200000, 'most_per_agent': 200000}}";

static void hold(int64_t n)
{
    static struct msg *all[1000];
    char reference[32];

    for (int64_t i = 0; i < n; i += 1000) {
        for (int64_t k = 0; k < 1000 && i + k < n; k++) {
            snprintf(reference, sizeof(reference), "R-%d", (int)(i + k));
            all[k] = letter(&(struct letter){.from = "Jay",
                                             .to = "Rick",
                                             .type = "SUBMISSION",
                                             .reference = reference,
                                             .priority = PRIORITY_NORMAL});
            CHECK_INT(begin_letter(all[k]), OK);
            CHECK_INT(all[k]->gate.gate_result.answer, GATE_PAUSE);
        }
        store_turn(stage.store);
        for (int64_t k = 0; k < 1000 && i + k < n; k++)
            msg_free(all[k]);
    }
}

static void turn_bounded(void)
{
    int64_t looks = gatekeeper_stats(stage.gatekeeper).looks_total;

    store_turn(stage.store);
    loop_turn(&stage.loop);
    looks = gatekeeper_stats(stage.gatekeeper).looks_total - looks;
    CHECK(looks <= GATEKEEPER_PER_TURN);
}

TEST(a_turn_handles_a_bounded_number_of_what_is_let_go)
{
    int64_t n = n_held(), turns = 0;

    stage_agent("Rick");
    stage_agent("Z")->state = AGENT_DEAD;
    stage_open(rules);
    hold(n);
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, n);
    while (gatekeeper_stats(stage.gatekeeper).looks_total < n)
        turn_bounded(); /* each once after its own commit */
    CHECK(gatekeeper_check(stage.gatekeeper));
    stage_agent("Z")->state = AGENT_IDLE;
    stage.now.mono_ms += GATEKEEPER_STATES_MS;
    stage.loop.is_fresh = false;
    for (; gatekeeper_stats(stage.gatekeeper).held > 0; turns++)
        turn_bounded();
    CHECK(turns >= n / GATEKEEPER_PER_TURN &&
          turns <= n / GATEKEEPER_PER_TURN + 5);
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).released_total, n);
    CHECK_INT(tasks_of_agent(stage.tasks, STR("Rick")), n);
    CHECK(gatekeeper_check(stage.gatekeeper));
    stage_close();
}
