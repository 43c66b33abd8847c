/* Messages between agents through the whole walk, with rules, an agent that
 * guards and fails, people who decide, cancel and do nothing, and restarts, by
 * chance; and what must be true of all of them.
 *
 *   - none is carried while it waits, and none that is gated is let go
 *   - those of one order are carried in the order of their acceptance, each
 *     when those before it are over
 *   - no time runs for what waits, nor for what stands behind it
 *   - each that was accepted ends once, and in one way
 *   - only what repeats another is dropped
 *
 * Who is carried is seen where the agent sees it: in task.execute. Mistakes
 * that are made on purpose turn each of them red. */
#include "test/lib/control.h"
#include "test/lib/walk_gate_stage.h"

enum {
    SENT_MAX = 200,
    REFERENCES = 3,
    TIMEOUT_MS = 60000, /* of the stage */
    AGAIN_MS = 600000,
};

static const char rules_text[] =
    "{ \"agents\": {\"one\": {}, \"two\": {}, \"guard\": {}, \"Jay\": {}},"
    "  \"safety_gates\": [{\"rule\": \"guard\", \"agent\": \"guard\","
    "     \"states\": [\"ERROR\"], \"match\": {\"type\": \"SUBMIT\"},"
    "     \"hold_for\": \"30d\"}],"
    "  \"dependencies\": [{\"rule\": \"first\","
    "     \"match\": {\"type\": \"ACT\"},"
    "     \"after\": [{\"type\": \"PREPARE\"}], \"hold_for\": \"30d\"}],"
    "  \"escalations\": [{\"rule\": \"ask\", \"match\": {\"type\": \"ASK\"}}],"
    "  \"duplicates\": [{\"rule\": \"again\", \"match\": {\"type\": \"NOTE\"},"
    "     \"within\": \"10m\"}],"
    "  \"sla\": [{\"rule\": \"soon\", \"match\": {\"type\": \"PREPARE\"},"
    "     \"within\": \"20s\"}]}";

static const char *const kinds[] = {"PREPARE", "ACT", "SUBMIT", "ASK", "NOTE"};
enum { PREPARE, ACT, SUBMIT, ASK, NOTE, N_KINDS };
static const char *const names[] = {"r0", "r1", "r2"};

struct sent_one {
    struct id id;
    int kind, reference;
    bool is_urgent;
    bool is_blocked;   /* it waits since the guard went down */
    bool is_unwanted;  /* an end was requested */
    bool is_over;      /* at the last look */
    int64_t free_from; /* its timeout did not run before that */
    int carrier;       /* the agent that must answer it; -1: none */
};

static struct {
    struct sent_one list[SENT_MAX];
    int n;
    bool is_gated;
    int64_t noted_ms[REFERENCES];
    int last_carried[REFERENCES * 2];
    int n_carried, n_seen_over[N_TASK_STATUS];
    uint64_t line[2];
    struct rand_seeded chance;
} all;

static unsigned dice(unsigned sides)
{
    return (unsigned)(rand_u64(rand_seeded(&all.chance)) % sides);
}

static const struct task *task_of(const struct sent_one *l)
{
    return task_find(walk_tasks(stage.walk), str_of(l->id.text));
}

static bool is_same_order(const struct sent_one *a, const struct sent_one *b)
{
    return a->reference == b->reference && a->is_urgent == b->is_urgent;
}

static bool goes_on(const struct sent_one *l)
{
    const struct task *t = task_of(l);

    return t && !task_is_over(t->status);
}

/* It is at an agent now. A message that is being accepted may arrive there
 * before its sender knows the id; it is looked at then. */
static void check_carried(struct sent_one *l)
{
    int lane = l->reference * 2 + l->is_urgent, at = (int)(l - all.list);
    const struct task *t = task_of(l);

    CHECK(t && !task_waits(t->status) && !task_is_over(t->status));
    CHECK(!l->is_blocked);
    CHECK(at >= all.last_carried[lane]);
    for (int i = 0; i < at; i++)
        CHECK(!is_same_order(&all.list[i], l) || !goes_on(&all.list[i]));
    all.last_carried[lane] = at;
    all.n_carried++;
}

static struct {
    char id[ID_BYTES];
    int agent;
} unknown; /* carried, but the sender has no id yet */

static enum err on_send(void *ctx, struct str message)
{
    int agent = *(int *)ctx;
    char text[2048], id[ID_BYTES];
    const char *at;

    snprintf(text, sizeof(text), "%.*s", STR_ARG(message));
    at = strstr(text, "\"task_id\":\"");
    if (!strstr(text, "task.execute"))
        return OK;
    CHECK(at);
    snprintf(id, sizeof(id), "%.31s", at + 11);
    for (int i = 0; i < all.n; i++)
        if (strcmp(all.list[i].id.text, id) == 0) {
            check_carried(&all.list[i]);
            all.list[i].carrier = agent;
            return OK;
        }
    CHECK(!unknown.id[0]);
    memcpy(unknown.id, id, sizeof(id));
    unknown.agent = agent;
    return OK;
}

static void on_taken_over(void *ctx)
{
    (void)ctx;
}

static void guard(bool is_well)
{
    deliver_report(walk_deliver(stage.walk), STR("guard"),
                   is_well ? AGENT_IDLE : AGENT_ERROR);
    all.is_gated = !is_well;
    for (int i = 0; i < all.n && is_well; i++)
        all.list[i].is_blocked = false;
    gatekeeper_agent_changed(walk_gatekeeper(stage.walk), STR("guard"));
}

static void come(void)
{
    static int numbers[2] = {0, 1};
    static const struct line_ops ops = {.send = on_send,
                                        .taken_over = on_taken_over};
    struct agents agents = registry_agents(stage.registry);

    for (int i = 0; i < 2; i++)
        CHECK_INT(
            deliver_attach(walk_deliver(stage.walk),
                           agent_find(&agents, i ? STR("two") : STR("one")),
                           &ops, &numbers[i], &all.line[i]),
            OK);
    for (int i = 0; i < all.n; i++)
        all.list[i].carrier = -1;
    guard(!all.is_gated);
}

static void begin(uint64_t seed)
{
    memset(&all, 0, sizeof(all));
    all.chance.state = seed;
    stage_use_rules(rules_text);
    stage_ground();
    stage.agents[0] =
        (struct agent){.name = STR("one"), .url = STR("ws-agent://one")};
    stage.agents[1] =
        (struct agent){.name = STR("two"), .url = STR("ws-agent://two")};
    stage.agents[2] = (struct agent){.name = STR("guard"), .url = STR("echo:")};
    stage.n_agents = 3;
    for (int r = 0; r < REFERENCES; r++)
        all.noted_ms[r] = -AGAIN_MS;
    stage_start();
    come();
}

/* Steps. */

static bool is_repeat(const struct sent_one *l)
{
    int64_t now_ms = loop_wall_ms(&stage.loop);
    bool is = l->kind == NOTE && now_ms - all.noted_ms[l->reference] < AGAIN_MS;

    if (l->kind == NOTE && !is)
        all.noted_ms[l->reference] = now_ms;
    return is;
}

static void send_one(int kind, int reference, bool is_urgent)
{
    struct sent_one *l = &all.list[all.n];
    enum task_status status;
    bool is_dropped;

    CHECK(all.n < SENT_MAX);
    *l = (struct sent_one){.kind = kind,
                           .reference = reference,
                           .is_urgent = is_urgent,
                           .free_from = loop_wall_ms(&stage.loop),
                           .carrier = -1};
    is_dropped = is_repeat(l);
    unknown.id[0] = '\0';
    l->id = enveloped(
        (struct enveloped){"one", kinds[kind], names[reference], is_urgent});
    all.n++;
    status = status_of(&l->id);
    CHECK((status == TASK_DROPPED) == is_dropped);
    if (kind == SUBMIT && all.is_gated)
        CHECK_INT(status, TASK_HELD);
    if (kind == ASK)
        CHECK_INT(status, TASK_ESCALATED);
    if (!unknown.id[0])
        return;
    CHECK_STR(str_of(unknown.id), l->id.text);
    check_carried(l);
    l->carrier = unknown.agent;
}

static void answer(struct sent_one *l)
{
    char text[256];
    struct wire_batch batch;
    struct arena arena;
    struct why why;
    enum err e;

    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.result\","
             "\"params\":{\"task_id\":\"%s\",\"status\":\"completed\","
             "\"text\":\"done\"}}",
             l->id.text);
    arena_init(&arena, 1 << 20);
    CHECK(wire_read(&arena, str_of(text), &batch, &why) == OK && batch.n == 1);
    e = deliver_heard(walk_deliver(stage.walk), all.line[l->carrier],
                      batch.list, 0, &why);
    (void)e; /* it may have been reassigned */
    arena_fini(&arena);
    l->carrier = -1;
}

static void answer_one(void)
{
    unsigned from = dice(SENT_MAX);

    for (int i = 0; i < all.n; i++) {
        struct sent_one *l = &all.list[(from + (unsigned)i) % (unsigned)all.n];

        if (l->carrier >= 0) {
            answer(l);
            break;
        }
    }
}

/* Sometimes twice, or while another change is on its way. */
static void cancel_one(void)
{
    struct sent_one *l = &all.list[dice((unsigned)all.n + 1)];
    enum err e;

    if (l == &all.list[all.n] || !goes_on(l))
        return;
    l->is_unwanted = true;
    e = walk_cancel(stage.walk, str_of(l->id.text), STR("Jay"), NULL, NULL);
    CHECK(e == OK || e == ERR_TASK_IS_OVER);
}

static void decide_one(void)
{
    static const enum escalation_status words[] = {
        ESCALATION_APPROVED, ESCALATION_REDIRECTED, ESCALATION_REJECTED};
    enum escalation_status word = words[dice(3)];

    for (int i = 0; i < all.n && word == ESCALATION_REJECTED; i++)
        if (goes_on(&all.list[i]))
            all.list[i].is_unwanted = true; /* it may be any of them */
    said_of_open(dice(3), word, word == ESCALATION_REDIRECTED ? "two" : "");
}

static void random_step(void)
{
    switch (dice(20)) {
    case 0:
    case 1: guard(dice(2)); break;
    case 2: stage_restart(), come(); break;
    case 3:
    case 4: cancel_one(); break;
    case 5:
    case 6: decide_one(); break;
    case 7:
    case 8:
    case 9: pass_ms(dice(8000)); break;
    case 10: pass_ms(TIMEOUT_MS / 2); break;
    case 11:
    case 12:
    case 13:
    case 14: answer_one(); break;
    default: send_one((int)dice(N_KINDS), (int)dice(REFERENCES), dice(4) == 0);
    }
    if (dice(2))
        pass_ms(0); /* otherwise the next one comes during the commit */
}

/* Properties. */

static void look_at_end(struct sent_one *l)
{
    enum task_status status = status_of(&l->id);

    if (l->is_over || !task_is_over(status))
        return;
    l->is_over = true;
    all.n_seen_over[status]++;
    if (status == TASK_EXPIRED)
        CHECK(loop_wall_ms(&stage.loop) - l->free_from >= TIMEOUT_MS);
    else if (status == TASK_CANCELLED)
        CHECK(l->is_unwanted);
    else
        CHECK(status == TASK_COMPLETED || status == TASK_DROPPED);
}

static void look_at_all(void)
{
    bool waits_before[REFERENCES * 2] = {false};

    for (int i = 0; i < all.n; i++) {
        struct sent_one *l = &all.list[i];
        const struct task *t = task_of(l);
        bool *before = &waits_before[l->reference * 2 + l->is_urgent];
        bool waits = t && task_waits(t->status);

        look_at_end(l);
        *before = *before || waits;
        if (*before)
            l->free_from = loop_wall_ms(&stage.loop);
        if (!waits)
            continue;
        CHECK(!deliver_has(walk_deliver(stage.walk), str_of(l->id.text)));
        l->is_blocked |= l->kind == SUBMIT && all.is_gated;
    }
    CHECK(tasks_check(walk_tasks(stage.walk)));
    CHECK(gatekeeper_check(walk_gatekeeper(stage.walk)));
    CHECK(deliver_check(walk_deliver(stage.walk)));
}

static void look_at_ends(void)
{
    static const char *const ends[] = {"task.completed", "task.cancelled",
                                       "task.expired", "task.dropped",
                                       "task.failed"};

    for (int i = 0; i < all.n; i++) {
        size_t n = 0;

        CHECK(all.list[i].is_over);
        for (int k = 0; k < 5; k++)
            n += told_in_feed(ends[k], &all.list[i].id);
        CHECK_INT(n, 1);
    }
    CHECK_INT(told_in_feed("task.accepted", NULL), all.n);
    CHECK_INT(gatekeeper_stats(walk_gatekeeper(stage.walk)).held, 0);
}

/* All agents and people do their part until nothing is left. */
static void come_to_an_end(void)
{
    guard(true);
    /* Urgent: an ordinary one would queue behind those that wait for it. */
    for (int r = 0; r < REFERENCES; r++)
        send_one(PREPARE, r, true);
    for (int round = 0; round < 2 * SENT_MAX; round++) {
        bool is_left = false;

        said_of_open(0, ESCALATION_APPROVED, "");
        for (int i = 0; i < all.n; i++)
            if (all.list[i].carrier >= 0)
                answer(&all.list[i]);
        pass_ms(100);
        look_at_all();
        for (int i = 0; i < all.n; i++)
            is_left = is_left || !all.list[i].is_over;
        if (!is_left)
            return;
    }
}

static void live(uint64_t seed, int n_steps)
{
    begin(seed);
    for (int i = 0; i < n_steps && all.n < SENT_MAX - REFERENCES; i++) {
        random_step();
        look_at_all();
    }
    pass_ms(0);
    come_to_an_end();
    look_at_ends();
    stage_close_gate();
}

TEST(whatever_happens_each_ends_once_in_order)
{
    bool is_full = getenv("STRESS");
    int over[N_TASK_STATUS] = {0};

    for (uint64_t seed = 1; seed <= (is_full ? 40 : 4); seed++) {
        live(seed, is_full ? 400 : 150);
        for (int s = 0; s < N_TASK_STATUS; s++)
            over[s] += all.n_seen_over[s];
    }
    CHECK(over[TASK_COMPLETED] && over[TASK_CANCELLED] && over[TASK_DROPPED] &&
          over[TASK_EXPIRED]);
}

static void some_lives(void)
{
    for (uint64_t seed = 1; seed <= 4; seed++)
        live(seed, 150);
}

TEST(a_gated_one_that_is_let_go_is_noticed)
{
    check_control("walk.lets_go", some_lives);
}

TEST(one_that_goes_before_its_turn_is_noticed)
{
    check_control("task.no_order", some_lives);
}

TEST(a_time_that_runs_behind_one_that_waits_is_noticed)
{
    check_control("task.time_runs_on", some_lives);
}
