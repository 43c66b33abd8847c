/* Every step that can fail does, one after the other: an accepted message is
 * held or carried, never both; the store agrees with the answers; nothing leaks
 * or stays waiting. */
#include "test/lib/gatekeeper_stage.h"

static const char rules[] =
    "{'agents': {'Jay': {}, 'Z': {}, 'Rick': {}, 'Leroy': {}},"
    "'duplicates': [{'rule': 'again', 'within': '10m'}],"
    "'dependencies': [{'rule': 'order', 'match': {'type': 'ORDER'}, 'after':"
    " [{'type': 'SUBMITTED'}], 'hold_for': '1h'}],"
    "'capacity': [{'rule': 'room', 'match': {'to': 'Leroy'}, 'queue': 1}]}";

static struct letter of(const char *to, const char *type, const char *reference)
{
    return (struct letter){.from = "Jay",
                           .to = to,
                           .type = type,
                           .reference = reference,
                           .priority = PRIORITY_NORMAL};
}

struct life {
    struct sent order, submitted, first, second;
};

static void send_if(struct sent *s, struct letter l)
{
    *s = send_letter(&l);
    CHECK(gatekeeper_check(stage.gatekeeper));
}

/* Also a task whose outcome was unknown. */
static void end_if(const struct sent *s)
{
    if (status_of(&s->id) == TASK_QUEUED)
        stage_on_end(NULL, str_of(s->id.text),
                     &(struct task_result){.status = TASK_COMPLETED});
}

/* Held for an event that comes, and for room that appears. */
static struct life live(int nr)
{
    static char a[16], b[16], c[16];
    struct life l;

    snprintf(a, sizeof(a), "A-%d", nr);
    snprintf(b, sizeof(b), "B-%d", nr);
    snprintf(c, sizeof(c), "C-%d", nr);
    send_if(&l.order, of("Rick", "ORDER", a));
    send_if(&l.first, of("Leroy", "REQUEST", b));
    send_if(&l.second, of("Leroy", "REQUEST", c));
    send_if(&l.submitted, of("Z", "SUBMITTED", a));
    store_turn(stage.store);
    loop_turn(&stage.loop);
    end_if(&l.first);
    store_turn(stage.store);
    loop_turn(&stage.loop);
    store_turn(stage.store);
    return l;
}

static void check_rows(const struct sent *s)
{
    struct query q;
    bool is_held;

    if (s->err)
        return;
    query_init(&q, &hold_table, 1);
    query_if(&q, HOLD_TASK_ID, IS, value_text(str_of(s->id.text)));
    CHECK_INT(store_look(stage.store, &q), OK);
    is_held = q.n_rows == 1;
    query_fini(&q);
    CHECK(is_held == (status_of(&s->id) == TASK_HELD));
    CHECK(is_held == (hold_find(stage.gatekeeper, str_of(s->id.text)) != NULL));
}

static void check_life(const struct life *l)
{
    check_rows(&l->order);
    check_rows(&l->first);
    check_rows(&l->second);
    check_rows(&l->submitted);
    if (!l->order.err && !l->submitted.err)
        CHECK_INT(status_of(&l->order.id), TASK_QUEUED);
    if (!l->second.err && l->second.gate_result.answer == GATE_ROUTE)
        CHECK(status_of(&l->second.id) == TASK_QUEUED);
    /* A hold does not wait for room that exists. */
    if (!l->second.err && status_of(&l->second.id) == TASK_HELD)
        CHECK(tasks_of_agent(stage.tasks, STR("Leroy")) > 0);
}

static bool is_unknown(const struct life *l)
{
    return l->order.err == ERR_OUTCOME_UNKNOWN ||
           l->first.err == ERR_OUTCOME_UNKNOWN ||
           l->second.err == ERR_OUTCOME_UNKNOWN ||
           l->submitted.err == ERR_OUTCOME_UNKNOWN ||
           stage.why_not == ERR_OUTCOME_UNKNOWN;
}

/* The effect of the fault goes away by itself, or at the next start. */
static void calm_down(const struct life *l, long nth)
{
    pass_ms(GATEKEEPER_LOOK_MS);
    pass_ms(GATEKEEPER_LOOK_MS);
    if (nth / 16 % 4 && !is_unknown(l))
        return;
    stage_stop();
    stage.why_not = OK;
    stage_start();
    rest();
    rest();
}

/* Tasks that are over make room for the next life. */
static void clear(const struct life *l)
{
    struct held left;

    end_if(&l->first);
    end_if(&l->second);
    rest();
    end_if(&l->second);
    end_if(&l->order);
    end_if(&l->submitted);
    rest();
    while (stage_holds(0, &left, 1))
        ends(&left.task_id, TASK_CANCELLED, "");
}

TEST(held_and_let_go_survives_every_fault)
{
    bool has_fired;
    long step = 2 * T_SWEEP_STEP, nth = 1 - step;
    struct life l;

    stage_agent("Jay");
    stage_agent("Z");
    stage_agent("Rick");
    stage_agent("Leroy");
    stage_open(rules);
    do {
        fault_arm(nth += step);
        l = live((int)nth);
        has_fired = fault_fired();
        fault_arm(0);
        calm_down(&l, nth);
        check_life(&l);
        clear(&l);
        CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, 0);
    } while (has_fired);
    CHECK(nth > 50);
    stage_close();
}

TEST(a_start_that_fails_leaves_everything_as_it_was)
{
    bool has_fired;
    long nth = 0;
    struct sent s;
    enum err e;

    stage_agent("Z");
    stage_agent("Rick");
    stage_open(rules);
    s = sent("Jay", "Rick", "ORDER", "R-1");
    sent("Jay", "Z", "REQUEST", "R-1");
    stage_stop();
    do {
        fault_arm(++nth);
        e = stage_try_start();
        has_fired = fault_fired();
        fault_arm(0);
        CHECK(has_fired || e == OK);
        if (e == OK)
            CHECK_INT(status_of(&s.id), TASK_HELD);
        stage_stop();
    } while (has_fired);
    CHECK(nth > 10);
    stage_start();
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, 1);
    stage_close();
}
