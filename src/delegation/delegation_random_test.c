/* The module against a slow model: plain arrays that hold the expected state.
 * Random steps of every kind, with restarts in between; everything is compared
 * after each. */
#include "test/lib/control.h"
#include "test/lib/delegation_stage.h"

enum {
    JOBS_MAX = 400,
    STEPS = 350,
    LONG_MS = 24 * 3600 * 1000,
    REQUESTS = 5,
    CONCURRENT = 2,
    WAITING = 3,
    DEPTH = 3,
    PER_ROOT = 12,
};

/* One task: of a person, or delegated. */
struct job {
    struct id task, key; /* key empty: a person's */
    int by, to;          /* agents; by -1: a person */
    int above;           /* job; -1: none */
    int root;            /* job; of a root: itself */
    int request, text;   /* request -1: none */
    bool ends_with_line, is_over;
    enum delegation_state state;
    int told; /* expected number of reports in this step */
    int n_under;
};

static struct {
    struct job jobs[JOBS_MAX];
    int n;
    struct rand_seeded state;
    int64_t delegated, had;
} truth;

static int dice(int sides)
{
    return (int)(rand_u64(rand_seeded(&truth.state)) % (unsigned)sides);
}

static const char *name_of(int agent)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};

    return names[agent];
}

static bool is_delegated(const struct job *j)
{
    return j->by >= 0;
}

static bool is_kept(const struct job *j)
{
    return is_delegated(j) && j->state != DELEGATION_HAD;
}

/* End it, and everything below it if it did not complete. */
static void over(int i, bool is_well)
{
    struct job *j = &truth.jobs[i];

    j->is_over = true;
    if (is_delegated(j)) {
        j->state = DELEGATION_READY;
        j->told++;
    }
    for (int k = 0; k < truth.n && !is_well; k++)
        if (truth.jobs[k].above == i && !truth.jobs[k].is_over)
            over(k, false);
}

static bool is_in_chain(int above, int agent)
{
    for (; above >= 0; above = truth.jobs[above].above)
        if (truth.jobs[above].to == agent)
            return true;
    return false;
}

static int depth_of(int above)
{
    int n = above < 0 ? 1 : 0; /* the requester is above it, without a task */

    for (; above >= 0; above = truth.jobs[above].above) {
        n++;
        if (truth.jobs[above].above < 0 && is_delegated(&truth.jobs[above]))
            n++;
    }
    return n;
}

/* Counts those before that one. */
static int n_open_of(int agent, int before)
{
    int n = 0;

    for (int i = 0; i < before; i++)
        n += truth.jobs[i].by == agent && !truth.jobs[i].is_over;
    return n;
}

static int kept_request(int by, int request)
{
    for (int i = 0; i < truth.n && request >= 0; i++)
        if (truth.jobs[i].by == by && truth.jobs[i].request == request &&
            is_kept(&truth.jobs[i]))
            return i;
    return -1;
}

/* The agent that delegated without a parent is above all of it, too. */
static bool is_at_the_top(int above, int agent)
{
    for (; above >= 0; above = truth.jobs[above].above)
        if (truth.jobs[above].above < 0 && truth.jobs[above].by == agent)
            return true;
    return false;
}

/* Delegations inside delegations do not wait. */
static bool is_below(int above)
{
    return above >= 0 && is_delegated(&truth.jobs[above]);
}

static enum err expected(const struct job *j)
{
    int known = kept_request(j->by, j->request);

    if (known >= 0)
        return truth.jobs[known].text == j->text ? OK : ERR_ID_IN_USE;
    if (j->by == j->to)
        return ERR_DELEGATION;
    if (is_in_chain(j->above, j->to) || is_at_the_top(j->above, j->to) ||
        depth_of(j->above) > DEPTH)
        return ERR_DELEGATION;
    if (n_open_of(j->by, truth.n) >=
        CONCURRENT + (is_below(j->above) ? 0 : WAITING))
        return ERR_DELEGATIONS;
    if (j->above >= 0 && truth.jobs[j->root].n_under >= PER_ROOT)
        return ERR_DELEGATIONS;
    return OK;
}

/* Steps. */

static void send_one(void)
{
    struct job *j = &truth.jobs[truth.n];

    *j = (struct job){.by = -1,
                      .to = dice(DELEGATION_LINES),
                      .above = -1,
                      .root = truth.n,
                      .request = -1};
    j->task = sent((struct letter){.to = name_of(j->to), .timeout_ms = LONG_MS})
                  .task_id;
    truth.n++;
}

static int work_of(int agent)
{
    int from = truth.n ? dice(truth.n) : 0;

    for (int k = 0; k < truth.n; k++) {
        int i = (from + k) % truth.n;

        if (truth.jobs[i].to == agent && !truth.jobs[i].is_over)
            return i;
    }
    return -1;
}

static void ask_one(void)
{
    struct job j = {.by = dice(DELEGATION_LINES),
                    .to = dice(DELEGATION_LINES),
                    .request = dice(2) ? dice(REQUESTS) : -1,
                    .text = dice(2),
                    .ends_with_line = dice(3) == 0,
                    .state = DELEGATION_OPEN};
    char id[8];
    struct gotten g;
    int known;
    enum err e;

    j.above = dice(4) ? work_of(j.by) : -1;
    j.root = j.above >= 0 ? truth.jobs[j.above].root : truth.n;
    known = kept_request(j.by, j.request);
    e = expected(&j);
    snprintf(id, sizeof(id), "%d", j.request);
    g = asked((struct wanted){.by = name_of(j.by),
                              .to = name_of(j.to),
                              .id = j.request >= 0 ? id : NULL,
                              .text = j.text ? "one" : "two",
                              .parent = j.above >= 0 ? &truth.jobs[j.above].task
                                                     : NULL,
                              .ends_with_line = j.ends_with_line});
    if (g.err != e)
        T_FAIL("%s, not %s", err_row(g.err)->wording, err_row(e)->wording);
    if (e)
        return;
    CHECK(g.is_repeat == (known >= 0));
    if (g.is_repeat) {
        CHECK_STR(str_of(g.task.text), truth.jobs[known].task.text);
        CHECK_STR(str_of(g.key.text), truth.jobs[known].key.text);
        truth.jobs[known].told +=
            truth.jobs[known].state == DELEGATION_READY; /* once more */
        pass_ms(0);
        return;
    }
    j.task = g.task;
    j.key = g.key;
    truth.jobs[truth.n++] = j;
    truth.jobs[j.root].n_under++;
    truth.delegated++;
}

static int pick(bool (*fits)(const struct job *j))
{
    int from = truth.n ? dice(truth.n) : 0;

    for (int k = 0; k < truth.n; k++)
        if (fits(&truth.jobs[(from + k) % truth.n]))
            return (from + k) % truth.n;
    return -1;
}

static bool goes_on(const struct job *j)
{
    return !j->is_over;
}

static void end_one(void)
{
    static const enum task_status ends[] = {TASK_COMPLETED, TASK_COMPLETED,
                                            TASK_FAILED, TASK_CANCELLED};
    enum task_status how = ends[dice(4)];
    int i = pick(goes_on);

    if (i < 0)
        return;
    over(i, how == TASK_COMPLETED);
    CHECK_INT(firm_end(&truth.jobs[i].task, how, "x"), OK);
}

static void had_one(void)
{
    struct job *j;
    int i = pick(is_delegated);
    char id[8];
    enum err e;

    if (i < 0)
        return;
    j = &truth.jobs[i];
    e = j->state == DELEGATION_OPEN  ? ERR_TASK_NOT_OVER
        : j->state == DELEGATION_HAD ? ERR_NOT_FOUND
                                     : OK;
    if (dice(8) == 0) {
        CHECK_INT(
            firm_had(name_of((j->by + 1) % DELEGATION_LINES), j->key.text),
            ERR_NOT_FOUND);
        return;
    }
    snprintf(id, sizeof(id), "%d", j->request);
    if (dice(2) && kept_request(j->by, j->request) == i)
        CHECK_INT(firm_had(name_of(j->by), id), e);
    else
        CHECK_INT(
            firm_had(name_of(j->by), dice(2) ? j->key.text : j->task.text), e);
    if (!e) {
        j->state = DELEGATION_HAD;
        truth.had++;
    }
}

static void come_one(void)
{
    int agent = dice(DELEGATION_LINES);

    for (int i = 0; i < truth.n; i++)
        truth.jobs[i].told += truth.jobs[i].by == agent &&
                              truth.jobs[i].state == DELEGATION_READY;
    delegation_agent_came(firm_hires(), str_of(name_of(agent)));
    pass_ms(0);
}

static void go_one(void)
{
    int agent = dice(DELEGATION_LINES);

    for (int i = 0; i < truth.n; i++)
        if (truth.jobs[i].by == agent && !truth.jobs[i].is_over &&
            truth.jobs[i].ends_with_line)
            over(i, false);
    delegation_agent_gone(firm_hires(), str_of(name_of(agent)));
    pass_ms(0);
}

/* Tasks that several starts interrupted begin one second after the other. */
static void restart_one(void)
{
    int n = 0;

    firm_restart();
    for (int i = 0; i < truth.n; i++)
        n += !truth.jobs[i].is_over;
    while (n--)
        pass_ms(1000);
}

/* The first are active, the others wait. */
static void compare_turn(int i)
{
    const struct job *j = &truth.jobs[i];
    const struct task *t =
        task_find(walk_tasks(stage.walk), str_of(j->task.text));
    const struct live_delegation *x =
        delegation_of_task(firm_hires(), str_of(j->task.text));
    bool goes = n_open_of(j->by, i) < CONCURRENT;

    CHECK(x && x->is_active == goes);
    CHECK(t->status == (goes ? TASK_DISPATCHED : TASK_QUEUED));
}

static void compare(void)
{
    int64_t open = 0, ready = 0;

    CHECK(delegation_check(firm_hires()));
    CHECK(tasks_check(walk_tasks(stage.walk)));
    for (int i = 0; i < truth.n; i++) {
        struct job *j = &truth.jobs[i];
        const struct delegation *d;

        CHECK(!task_find(walk_tasks(stage.walk), str_of(j->task.text)) ==
              j->is_over);
        if (!is_delegated(j))
            continue;
        d = delegation_find(firm_hires(), str_of(j->key.text));
        CHECK(is_kept(j) ? d && d->state == j->state : !d);
        CHECK_INT((int)firm_told(&j->key), j->told);
        if (!j->is_over)
            compare_turn(i);
        open += j->state == DELEGATION_OPEN;
        ready += j->state == DELEGATION_READY;
        j->told = 0;
    }
    firm.n_heard = 0;
    CHECK_INT(delegation_stats(firm_hires()).open, open);
    CHECK_INT(delegation_stats(firm_hires()).ready, ready);
}

static void check_rows(void)
{
    for (int i = 0; i < truth.n; i++)
        if (is_delegated(&truth.jobs[i]))
            CHECK_INT(firm_row(&truth.jobs[i].key), truth.jobs[i].state);
}

static void live(uint64_t seed)
{
    memset(&truth, 0, sizeof(truth));
    truth.state.state = seed;
    firm_ground();
    for (int i = 0; i < DELEGATION_LINES;
         i++) /* cards are read first at a start */
        stage.agents[i].delegation.max_concurrent = CONCURRENT;
    firm.max_attempts = 1000; /* interrupted ones count */
    firm.settings.timeout_ms = LONG_MS;
    firm.settings.max_waiting = WAITING;
    firm.settings.max_depth = DEPTH;
    firm.settings.max_per_root = PER_ROOT;
    stage_start();
    firm_come();
    for (int i = 0; i < STEPS && truth.n < JOBS_MAX; i++) {
        int what = dice(100);

        if (what < 12)
            send_one();
        else if (what < 55)
            ask_one();
        else if (what < 72)
            end_one();
        else if (what < 88)
            had_one();
        else if (what < 93)
            come_one();
        else if (what < 96)
            go_one();
        else if (what < 98)
            restart_one();
        pass_ms(0);
        compare();
    }
    check_rows();
    CHECK(truth.delegated > 20 && truth.had > 5); /* enough happened */
    firm_close();
    stage_remove();
}

static void lives(void)
{
    for (uint64_t seed = 1; seed <= 12; seed++)
        live(seed);
}

TEST(it_is_as_the_plain_arrays_say)
{
    lives();
}

TEST(the_arrays_notice_each_mistake)
{
    check_control("hire.leaves_children", lives);
    check_control("hire.no_repeats", lives);
    check_control("hire.silent", lives);
    check_control("hire.all_at_once", lives);
    check_control("hire.nobody_next", lives);
    check_control("hire.rings", lives);
}
