/* The room against a slow truth: plain arrays that say what must be. Random
 * steps of everything that can happen, with restarts in between; after each
 * the room is checked and compared. */
#include "test/lib/task_stage.h"

#include <sys/stat.h>

enum { TASKS_MAX = 400, OWNERS = 3, CONVERSATIONS = 4, IN_FLIGHT = 16 };

/* The expected state of one task. */
struct truth {
    struct id id;
    int owner, conversation;
    int64_t order; /* of acceptance of its turn */
    int64_t turn, version;
    enum task_status status;
    int64_t
        delivered; /* the highest attempt of this turn that was handed out */
    int64_t began_ms, budget_ms; /* on the monotonic clock */
    bool is_stopped;             /* it waits, or stands behind one that does */
    bool is_passed; /* its row has the attempts as a start reckons them */
};

static struct {
    struct truth tasks[TASKS_MAX];
    int n;
    int64_t next_order;
    struct rand_seeded state;

    /* On their way to the disk. */
    struct msg *msgs[IN_FLIGHT];
    struct truth claims[IN_FLIGHT];
    int follow_up[IN_FLIGHT]; /* which task; -1: a new one */
    struct task_change *changes[IN_FLIGHT];
    int n_msgs, n_changes;
    int n_dropped; /* further turns */
} truth;

static unsigned dice(unsigned sides)
{
    return (unsigned)(rand_u64(rand_seeded(&truth.state)) % sides);
}

static struct truth *truth_of(const struct id *id)
{
    for (int i = 0; i < truth.n; i++)
        if (strcmp(truth.tasks[i].id.text, id->text) == 0)
            return &truth.tasks[i];
    T_FAIL("%s is unknown", id->text);
}

static bool is_going_on(const struct truth *t)
{
    return !task_is_over(t->status);
}

/* Whether no earlier task of the conversation is unfinished. */
static bool is_first(const struct truth *t)
{
    for (int i = 0; i < truth.n; i++) {
        const struct truth *o = &truth.tasks[i];

        if (is_going_on(o) && o->owner == t->owner &&
            o->conversation == t->conversation && o->order < t->order)
            return false;
    }
    return true;
}

static struct truth *pick(bool (*fits)(const struct truth *t))
{
    int at = truth.n ? (int)dice((unsigned)truth.n) : 0;

    for (int i = 0; i < truth.n; i++) {
        struct truth *t = &truth.tasks[(at + i) % truth.n];

        if (fits(t))
            return t;
    }
    return NULL;
}

static bool is_over(const struct truth *t)
{
    return task_is_over(t->status);
}

/* A dropped task never began. */
static bool may_go_on(const struct truth *t)
{
    return is_over(t) && t->status != TASK_DROPPED;
}

static bool is_carried(const struct truth *t)
{
    return t->status == TASK_DISPATCHED || t->status == TASK_WORKING;
}

static bool waits(const struct truth *t)
{
    return task_waits(t->status);
}

static bool is_same_order(const struct truth *a, const struct truth *b)
{
    return a->owner == b->owner && a->conversation == b->conversation;
}

static bool must_stop(const struct truth *t)
{
    for (int i = 0; i < truth.n && is_going_on(t); i++) {
        const struct truth *o = &truth.tasks[i];

        if (waits(o) && is_same_order(o, t) && o->order <= t->order)
            return true;
    }
    return false;
}

/* The deadline stands still while a task waits or is behind a waiting one, and
 * is complete from then on. */
static void note_stops(void)
{
    for (int i = 0; i < truth.n; i++) {
        struct truth *t = &truth.tasks[i];
        bool must = must_stop(t);

        if (t->is_stopped && !must)
            t->began_ms = loop_mono_ms(&stage.loop);
        t->is_stopped = must;
    }
}

/* Steps. */

static enum gate_answer random_answer(void)
{
    switch (dice(12)) {
    case 0: return GATE_HOLD_INPUT;
    case 1: return GATE_ESCALATE;
    case 2: return GATE_DROP;
    default: return GATE_ROUTE;
    }
}

static void create(void)
{
    static const char *const owners[OWNERS] = {"anna", "ben", "a"};
    static const char *const names[CONVERSATIONS] = {"c", "d", "/", "a/c"};
    struct truth *old = dice(3) ? NULL : pick(may_go_on);
    struct truth t = {.owner = (int)dice(OWNERS),
                      .conversation = (int)dice(CONVERSATIONS)};
    struct query q = {.rows = NULL};
    struct task before;
    struct msg *m;

    if (truth.n_msgs == IN_FLIGHT || truth.n + IN_FLIGHT >= TASKS_MAX)
        return;
    m = message(owners[t.owner], names[t.conversation], "text");
    m->call.timeout_ms = 1 + dice(20000);
    m->gate.gate_result.answer = random_answer();
    m->gate.gate_result.priority = PRIORITY_NORMAL;
    if (old) {
        before = row_of(&q, &old->id);
        t = *old;
        t.turn++;
    } else {
        t.turn = t.version = 1;
    }
    CHECK_INT(task_create(stage.tasks, m, old ? &before : NULL), OK);
    if (old)
        query_fini(&q);
    t.id = m->task.id;
    t.order = truth.next_order++;
    t.status = gate_result_status(m->gate.gate_result.answer);
    t.delivered = 0;
    t.is_stopped = t.is_passed = false;
    t.began_ms = loop_mono_ms(&stage.loop);
    t.budget_ms = m->call.timeout_ms;
    truth.msgs[truth.n_msgs] = m;
    truth.follow_up[truth.n_msgs] = old ? (int)(old - truth.tasks) : -1;
    truth.claims[truth.n_msgs++] = t;
    submit_message(m);
}

static void end_one(enum task_status to)
{
    struct truth *t = pick(is_going_on);

    if (t && truth.n_changes < IN_FLIGHT) {
        if (waits(t))
            to = TASK_CANCELLED;
        truth.changes[truth.n_changes] = change(&t->id, to, "said");
        submit_change(truth.changes[truth.n_changes++]);
    }
}

/* The gate or a person decides again: it is released, must wait, or goes to
 * another agent. */
static void pass_one(enum task_status to)
{
    struct truth *t = pick(dice(3) ? waits : is_going_on);
    enum err e;
    struct task_change *c;

    if (!t || truth.n_changes == IN_FLIGHT)
        return;
    c = task_pass_new(stage.tasks, str_of(t->id.text),
                      &(struct task_release){.status = to,
                                             .agent = dice(3)   ? STR("")
                                                      : dice(2) ? STR("other")
                                                                : STR("echo"),
                                             .priority = PRIORITY_NORMAL},
                      &e);
    CHECK(c || (e == ERR_NOT_ALLOWED && !waits(t)));
    if (!c)
        return;
    truth.changes[truth.n_changes++] = c;
    submit_change(c);
}

static void settle_change(struct truth *t, struct task_change *c)
{
    if (!is_going_on(t) || t->turn != c->turn) {
        CHECK_INT(c->err, ERR_TASK_IS_OVER);
        return;
    }
    if (t->version != c->version) {
        CHECK_INT(c->err, ERR_BUSY);
        return;
    }
    CHECK_INT(c->err, OK);
    t->status = c->result.status;
    t->version++;
    if (c->is_pass && t->status == TASK_QUEUED)
        t->began_ms = loop_mono_ms(&stage.loop);
    t->is_passed |= c->is_pass;
}

/* Settle the pending changes: the first of each wins. */
static void settle_all(void)
{
    store_turn(stage.store);
    /* Changes and messages cannot stand in each other's way here: a change is
     * of something that goes on, a further turn of something that is over. */
    for (int i = 0; i < truth.n_changes; i++) {
        struct task_change *c = truth.changes[i];
        settle_change(truth_of(&c->task_id), c);
        note_stops();
        task_change_free(c);
    }
    for (int i = 0; i < truth.n_msgs; i++) {
        struct truth *t = truth.follow_up[i] >= 0
                              ? &truth.tasks[truth.follow_up[i]]
                              : &truth.tasks[truth.n];

        if (truth.follow_up[i] < 0) {
            CHECK_INT(truth.msgs[i]->err, OK);
            *t = truth.claims[i];
            truth.n++;
        } else if (is_over(t) && truth.claims[i].status == TASK_DROPPED) {
            CHECK_INT(truth.msgs[i]->err, OK); /* it stays as it is */
            truth.n_dropped++;
        } else if (is_over(t)) {
            CHECK_INT(truth.msgs[i]->err, OK);
            truth.claims[i].version = t->version + 1;
            *t = truth.claims[i];
        } else {
            CHECK_INT(truth.msgs[i]->err, ERR_TASK_NOT_OVER);
        }
        msg_free(truth.msgs[i]);
    }
    note_stops();
    truth.n_changes = truth.n_msgs = 0;
}

/* No task expires early, and each due one ends. */
static void note_due(void)
{
    for (int i = 0; i < stage.n_due; i++) {
        struct truth *t = truth_of(&stage.due[i]);

        CHECK(is_going_on(t) && !t->is_stopped);
        CHECK(t->began_ms + t->budget_ms <= stage.now.mono_ms);
    }
    for (int i = 0; i < stage.n_due; i++) {
        struct truth *t = truth_of(&stage.due[i]);

        CHECK_INT(ended(&t->id, TASK_EXPIRED, ""), OK);
        t->status = TASK_EXPIRED;
        t->version++;
    }
    stage.n_due = 0;
    note_stops();
}

/* Everything that is handed out is first, queued, and nothing is forgotten. */
static void carry(void)
{
    stage.n_ready = 0;
    for (int i = 0; i < 3; i++)
        turn();
    for (int i = 0; i < stage.n_ready; i++) {
        struct truth *t = truth_of(&stage.ready[i]);

        CHECK(t->status == TASK_QUEUED && is_first(t));
        if (dice(4) == 0)
            continue; /* its agent is not there */
        if (!task_move(stage.tasks, str_of(t->id.text), TASK_DISPATCHED))
            continue; /* the attempt is counted first */
        t->status = TASK_DISPATCHED;
        CHECK(found(&t->id)->attempt > t->delivered);
        t->delivered = found(&t->id)->attempt;
    }
    note_due();
}

static void step_on(void)
{
    struct truth *t = pick(is_carried);

    if (!t)
        return;
    if (t->status == TASK_DISPATCHED && dice(2)) {
        move(&t->id, TASK_WORKING);
        t->status = TASK_WORKING;
    } else if (dice(3) == 0) {
        move(&t->id, TASK_QUEUED);
        t->status = TASK_QUEUED;
    } else {
        task_chunk(stage.tasks, str_of(t->id.text), t->turn, t->delivered,
                   STR("words"));
    }
}

static void time_passes(void)
{
    pass_ms((int64_t)dice(3000));
    note_due();
    for (int i = 0; i < truth.n; i++) {
        const struct truth *t = &truth.tasks[i];

        CHECK(!is_going_on(t) || t->is_stopped ||
              t->began_ms + t->budget_ms > stage.now.mono_ms);
    }
}

/* After a restart: when the last one before it in its order was released. */
static int64_t began_before(const struct truth *t)
{
    int64_t began_ms = INT64_MIN;

    for (int i = 0; i < truth.n; i++) {
        const struct truth *o = &truth.tasks[i];

        if (is_going_on(o) && is_same_order(o, t) && o->order < t->order &&
            o->began_ms > began_ms)
            began_ms = o->began_ms;
    }
    return began_ms;
}

static void restart(void)
{
    settle_all();
    stage_restart();
    for (int i = 0; i < truth.n; i++) {
        struct truth *t = &truth.tasks[i];

        if (is_carried(t))
            t->status = TASK_QUEUED;
    }
    for (int i = 0; i < truth.n; i++) {
        struct truth *t = &truth.tasks[i];

        if (is_going_on(t) && !t->is_stopped && began_before(t) > t->began_ms)
            t->began_ms = began_before(t);
    }
}

static void compare(void)
{
    int64_t by_status[N_TASK_STATUS] = {0};
    struct tasks_stats s = tasks_stats(stage.tasks);

    for (int i = 0; i < truth.n; i++) {
        const struct truth *t = &truth.tasks[i];
        const struct task *have = found(&t->id);

        if (is_over(t)) {
            CHECK(!have || have->status == t->status);
            continue;
        }
        by_status[t->status]++;
        CHECK(have && have->status == t->status);
        CHECK_INT(have->turn, t->turn);
        CHECK_INT(have->version, t->version);
        CHECK(have->attempt >= t->delivered);
    }
    CHECK(memcmp(by_status, s.by_status, sizeof(by_status)) == 0);
    CHECK(tasks_check(stage.tasks));
}

static void compare_with_store(void)
{
    size_t n_turns = 0;

    CHECK_INT(rows_of(&task_table), truth.n);
    for (int i = 0; i < truth.n; i++) {
        const struct truth *t = &truth.tasks[i];
        struct query q;
        struct task row = row_of(&q, &t->id);

        CHECK(row.status ==
              (is_going_on(t) && !waits(t) ? TASK_QUEUED : t->status));
        CHECK(row.version == t->version && row.turn == t->turn);
        CHECK(row_is_null(q.rows, TASK_FINISHED_MS) == is_going_on(t));
        CHECK(row.attempt <= t->delivered || t->is_passed ||
              task_is_over(row.status)); /* never ahead of what was */
        n_turns += (size_t)t->turn - 1;
        query_fini(&q);
    }
    CHECK_INT(rows_of(&turn_table), n_turns + (size_t)truth.n_dropped);
}

static void live(uint64_t seed, int steps)
{
    memset(&truth, 0, sizeof(truth));
    truth.state.state = seed;
    for (int i = 0; i < steps; i++) {
        unsigned d = dice(100);

        if (d < 30)
            create();
        else if (d < 45)
            end_one(TASK_COMPLETED);
        else if (d < 50)
            end_one(TASK_CANCELLED);
        else if (d < 55)
            pass_one(TASK_QUEUED);
        else if (d < 58)
            pass_one(dice(2) ? TASK_HELD : TASK_ESCALATED);
        else if (d < 67)
            settle_all();
        else if (d < 78)
            step_on();
        else if (d < 90) {
            settle_all();
            carry();
        } else if (d < 94) {
            settle_all();
            time_passes();
        } else if (d < 98)
            tasks_offer_again(stage.tasks);
        else
            restart();
        if (truth.n_msgs + truth.n_changes == 0)
            compare();
    }
    settle_all();
    compare();
    compare_with_store();
}

TEST(the_room_agrees_with_a_slow_truth)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        stage_open();
        live(seed, 1500);
        CHECK(truth.n > 100);
        stage_close();
        stage_remove();
        stage.n_ready = stage.n_due = 0;
    }
    CHECK(mkdir(stage.root, 0700) == 0); /* for the one that tidies up */
}

/* When all is carried, everything that was accepted comes to its end in the
 * order of its acceptance. */
TEST(whatever_is_accepted_is_carried_to_its_end)
{
    stage_open();
    live(99, 1500);
    while (pick(waits)) {
        pass_one(TASK_QUEUED);
        settle_all();
    }
    for (int round = 0; round < TASKS_MAX; round++) {
        tasks_offer_again(stage.tasks);
        carry();
        for (int i = 0; i < truth.n; i++)
            if (is_carried(&truth.tasks[i])) {
                CHECK(is_first(&truth.tasks[i]));
                CHECK_INT(ended(&truth.tasks[i].id, TASK_COMPLETED, ""), OK);
                truth.tasks[i].status = TASK_COMPLETED;
                truth.tasks[i].version++;
            }
    }
    for (int i = 0; i < truth.n; i++)
        CHECK(is_over(&truth.tasks[i]));
    compare_with_store();
    turn();
    stage_close();
}
