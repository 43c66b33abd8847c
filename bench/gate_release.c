/* bench_gate_release: how long it takes to let 100 000 held messages go.
 *
 * They are all paused by one safety gate and go when its agent is back, over
 * real rules, tasks and a store on the disk, each with its durable
 * change. Elapsed time, and the longest turn of the loop: however many wait, a
 * turn looks at GATEKEEPER_PER_TURN of them. Exit status 1 where one looks at
 * more. */
#include "test/lib/gatekeeper_stage.h"

#include <time.h>

enum { HELD = 100 * 1000, AT_ONCE = 1000 };

static const char rules[] =
    "{'agents': {'Z': {}, 'Rick': {}}, 'safety_gates': [{'rule': 'gate',"
    " 'agent': 'Z', 'match': {'type': 'SUBMISSION'}}],"
    "'holds': {'most': 200000, 'most_per_agent': 200000}}";

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void hold_some(int from)
{
    static struct msg *all[AT_ONCE];
    char reference[32];

    for (int i = 0; i < AT_ONCE; i++) {
        snprintf(reference, sizeof(reference), "R-%d", from + i);
        all[i] = letter(&(struct letter){.from = "Jay",
                                         .to = "Rick",
                                         .type = "SUBMISSION",
                                         .reference = reference,
                                         .priority = PRIORITY_NORMAL});
        CHECK_INT(begin_letter(all[i]), OK);
    }
    store_turn(stage.store);
    for (int i = 0; i < AT_ONCE; i++)
        msg_free(all[i]);
}

struct turns {
    int64_t n, most;
    double longest_ms;
};

/* What the loop does in one turn, without the disk. */
static void turn_once(struct turns *t)
{
    int64_t looks = gatekeeper_stats(stage.gatekeeper).looks_total;
    double began;

    store_turn(stage.store);
    began = now_ms();
    loop_turn(&stage.loop);
    if (now_ms() - began > t->longest_ms)
        t->longest_ms = now_ms() - began;
    looks = gatekeeper_stats(stage.gatekeeper).looks_total - looks;
    if (looks > t->most)
        t->most = looks;
    t->n++;
}

TEST(release)
{
    struct turns settling = {0}, t = {0};
    double began;

    stage_agent("Rick");
    stage_agent("Z")->state = AGENT_DEAD;
    stage_open(rules);
    for (int i = 0; i < HELD; i += AT_ONCE)
        hold_some(i);
    while (gatekeeper_stats(stage.gatekeeper).looks_total < HELD)
        turn_once(&settling);
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, HELD);
    stage_agent("Z")->state = AGENT_IDLE;
    stage.now.mono_ms += GATEKEEPER_STATES_MS;
    stage.loop.is_fresh = false;
    began = now_ms();
    while (gatekeeper_stats(stage.gatekeeper).held > 0)
        turn_once(&t);
    began = now_ms() - began;
    printf("%d held messages let go in %.1f s, %.0f a second: %lld turns of "
           "%lld at most, the longest %.1f ms\n",
           HELD, began / 1e3, HELD / began * 1e3, (long long)t.n,
           (long long)t.most, t.longest_ms);
    CHECK(t.most <= GATEKEEPER_PER_TURN);
    stage_close();
}
