/* Every step that can fail does, one after the other: what was acknowledged is
 * in the store, what was not is in neither place, and nothing leaks. */
#include "test/lib/task_stage.h"

#include <sys/stat.h>

/* The outcome of one task, as reported to its caller. */
struct told {
    struct id id;
    enum err accepted, ended, followed; /* ERR_GONE: it did not come to that */
};

static enum err try_accept(const char *key, const struct task *before,
                           struct id *id)
{
    struct caller c = caller_named("anna");
    struct msg *m = msg_new(&c, loop_wall_ms(&stage.loop));
    enum err e;

    if (!m)
        return ERR_NOMEM;
    m->call.text = STR("hello");
    m->call.conversation_id = STR(""); /* each in a lane of its own */
    m->call.idempotency_key = str_of(key);
    m->choice.agent = STR("echo");
    e = task_create(stage.tasks, m, before);
    CHECK(tasks_check(stage.tasks));
    CHECK((e == OK) == (m->task.claim != NULL));
    if (!e) {
        submit_message(m);
        store_turn(stage.store);
        e = m->err;
        CHECK(!m->task.claim);
        CHECK(tasks_check(stage.tasks));
        *id = m->task.id;
    }
    msg_free(m);
    return e;
}

static enum err try_end(const struct id *id)
{
    struct task_change *c;
    enum err e;

    c = task_change_new(stage.tasks, str_of(id->text),
                        &(struct task_result){.status = TASK_COMPLETED,
                                              .text = STR("done"),
                                              .metadata = STR("{}")},
                        &e);
    if (!c)
        return e;
    submit_change(c);
    store_turn(stage.store);
    e = c->err;
    task_change_free(c);
    CHECK(tasks_check(stage.tasks));
    return e;
}

/* Accepted, ended, and a second turn accepted. */
static struct told live(int nr)
{
    struct told t = {.ended = ERR_GONE, .followed = ERR_GONE};
    struct id same;
    char key[16];

    snprintf(key, sizeof(key), "k%d", nr);
    t.accepted = try_accept(key, NULL, &t.id);
    if (t.accepted)
        return t;
    CHECK(found(&t.id));
    loop_turn(&stage.loop);
    task_move(stage.tasks, str_of(t.id.text), TASK_DISPATCHED);
    task_retry(stage.tasks, str_of(t.id.text), 0);
    tasks_offer_again(stage.tasks);
    loop_turn(&stage.loop);
    store_turn(stage.store);
    t.ended = try_end(&t.id);
    if (!t.ended)
        t.followed = try_accept("", found(&t.id), &same);
    CHECK(tasks_check(stage.tasks));
    return t;
}

static bool is_known(enum err e)
{
    return e != ERR_OUTCOME_UNKNOWN;
}

/* Compare the store after a restart with the reported outcome. */
static void compare(const struct told *t, size_t n_before)
{
    size_t n_rows = rows_of(&task_table);
    struct query q;
    struct task row;

    if (t->accepted) {
        CHECK(!is_known(t->accepted) || n_rows == n_before);
        CHECK(!is_known(t->accepted) || rows_of(&key_table) == n_before);
        return;
    }
    CHECK_INT(n_rows, n_before + 1);
    CHECK_INT(rows_of(&key_table), n_before + 1);
    row = row_of(&q, &t->id);
    if (t->followed == OK) {
        CHECK(row.turn == 2 && row.status == TASK_QUEUED);
    } else if (t->ended == OK) {
        CHECK(row.status == TASK_COMPLETED || !is_known(t->followed));
        CHECK(row.turn == 1 || !is_known(t->followed));
    } else {
        CHECK(row.turn == 1);
        CHECK(row.status == TASK_QUEUED || !is_known(t->ended));
    }
    CHECK((found(&t->id) != NULL) == !task_is_over(row.status));
    query_fini(&q);
}

/* Every life of a task adds its entries to the feed with its rows, or none. */
static size_t feed_of(const struct id *id)
{
    struct query q;
    size_t n;

    query_init(&q, &feed_table, 10);
    query_if(&q, FEED_TASK_ID, IS, value_text(str_of(id->text)));
    look(&q);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

TEST(accepting_ending_and_following_survive_every_fault)
{
    long nth = 0;
    bool fired;

    stage_open();
    log_init(&stage.log, -1, LOG_ERROR, LOG_JSON, clock_fake(&stage.now));
    do {
        size_t n_before = rows_of(&task_table);
        struct told t;

        fault_arm(nth += T_SWEEP_STEP);
        t = live((int)nth);
        fired = fault_fired();
        fault_arm(0);
        if (!fired)
            CHECK(!t.accepted && !t.ended && !t.followed);
        stage_restart();
        compare(&t, n_before);
        if (t.accepted == OK && is_known(t.ended) && is_known(t.followed))
            CHECK_INT(feed_of(&t.id), 1 + (t.ended == OK) + (t.followed == OK));
    } while (fired);
    CHECK(nth > 40); /* the sweep is one */
    stage_close();
}

/* A task whose outcome is unknown can be found by its key. */
TEST(a_repeat_after_an_unknown_outcome_makes_no_second_task)
{
    static const char *const steps[] = {"store.commit.io", "store.sync"};

    for (int i = 0; i < 2; i++) {
        struct id id, again;
        enum err e;

        stage_open();
        fault_arm_at(steps[i], 1);
        CHECK_INT(try_accept("k", NULL, &id), ERR_OUTCOME_UNKNOWN);
        CHECK(fault_fired() && !found(&id));
        stage_restart();
        e = try_accept("k", NULL, &again);
        CHECK(e == OK || e == ERR_EXISTS);
        CHECK_INT(rows_of(&task_table), 1);
        stage_close();
        stage_remove();
    }
    CHECK(mkdir(stage.root, 0700) == 0);
}

TEST(a_start_survives_every_fault)
{
    enum { N = 20 };
    struct why why;
    long nth = 0;
    bool fired;

    stage_open();
    for (int i = 0; i < N; i++)
        accepted("anna", "", "hello");
    stage_stop();
    do {
        enum err e = OK;

        fault_arm(nth += T_SWEEP_STEP);
        if (stage_open_store(&why) == OK) {
            stage.tasks = stage_new_tasks();
            if (stage.tasks)
                e = tasks_load(stage.tasks, 0, &why);
            fired = fault_fired();
            fault_arm(0);
            if (stage.tasks && !e) {
                CHECK(tasks_check(stage.tasks));
                CHECK_INT(tasks_stats(stage.tasks).by_status[TASK_QUEUED], N);
            } else {
                CHECK(fired && (!e || why.text[0]));
            }
            stage_stop();
        } else {
            fired = true;
        }
        fault_arm(0);
    } while (fired);
    CHECK(nth > 40);
    stage_start();
    CHECK_INT(tasks_stats(stage.tasks).by_status[TASK_QUEUED], N);
    stage_close();
}
