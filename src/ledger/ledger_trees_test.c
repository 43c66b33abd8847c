/* Hostile trees: the agents of sixteen creators delegate to each other as often
 * as they can, several at once, and change their prices meanwhile; the server
 * is killed at any point. Afterwards no tree may have cost more than its sender
 * was shown, and the books must be right.
 *
 * Each run is a process that ends itself by SIGKILL or completes. Its tables
 * are judged by the tasks' rows and a sum, independent of the ledger.
 * STRESS=full: a hundred thousand trees. */
#include <signal.h>
#include <sys/mman.h>

#include "test/lib/control.h"
#include "test/lib/delegation_stage.h"
#include "test/lib/ledger_stage.h"
#include "test/lib/walk_agents.h"

enum {
    CREATORS = 16,
    PAYERS = 4,
    TREES_OF_LIFE = 40,
    LIVES_OF_FOLDER = 8,
    TASKS_OF_TREE = 24,
    ALLOWANCE = 1000,
    WEALTH = 2000000,
};

static const char *const payers[PAYERS] = {"anna", "bob", "carl", "dora"};
static char names[CREATORS][8];

/* Totals of all runs. */
static struct seen {
    int64_t trees, kills, delegated, over_ceiling, price_changes;
} * seen;

static uint64_t state;

static unsigned dice(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

/* The stage. */

static void ground(void)
{
    memset(&firm, 0, sizeof(firm));
    stage_ground();
    firm.settings = stage_walk_opts().delegation;
    firm.settings.max_concurrent = 1000;
    firm.settings.max_waiting = 1000;
    firm.settings.max_per_root = 1000;
    firm.settings.max_depth = 8;
    for (int i = 0; i < CREATORS; i++)
        snprintf(names[i], sizeof(names[i]), "w%d", i);
    stage.n_agents = 0;
}

/* The agent's price from now on. Every fourth agent is free at first. */
static void put_agent(int i, int64_t price)
{
    char card[256], creator[16];

    snprintf(creator, sizeof(creator), "creator-%d", i);
    snprintf(card, sizeof(card),
             "{\"name\":\"%s\",\"description\":\"works\",\"url\":"
             "\"ws-agent://%s\",\"visibility\":\"public\",\"pricing\":{"
             "\"amount_micros\":%lld}}",
             names[i], names[i], (long long)price);
    stage_put(creator, names[i], card);
}

static void on_delegated(void *ctx, const struct delegation *d,
                         const struct task *t)
{
    (void)ctx;
    (void)d;
    (void)t;
}

static void begin(void)
{
    static const struct line_ops ops = {.send = firm_on_send,
                                        .taken_over = firm_on_taken_over};
    struct walk_opts opts;
    struct agents all;
    uint64_t line;

    stage_start();
    walk_set_hub(stage.walk, &(struct walk_hub){.on_delegated = on_delegated});
    opts = stage_walk_opts();
    opts.delegation = firm.settings;
    opts.ledger.delegation_allowance = ALLOWANCE;
    walk_set(stage.walk, &opts);
    all = registry_agents(stage.registry);
    for (int i = 0; all.n && i < CREATORS; i++)
        CHECK_INT(deliver_attach(walk_deliver(stage.walk),
                                 agent_find(&all, str_of(names[i])), &ops, NULL,
                                 &line),
                  OK);
}

/* One tree. */

static struct {
    struct id id;
    int agent;
    bool is_over;
} tasks[TASKS_OF_TREE];
static int n_tasks;

static void perhaps_die(unsigned sides)
{
    if (dice(sides))
        return;
    seen->kills++;
    raise(SIGKILL);
}

/* Some turns of the loop, with a possible kill between them. */
static void turn(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        perhaps_die(3000);
        loop_turn(&stage.loop);
    }
}

static void change_price(void)
{
    put_agent((int)dice(CREATORS),
              dice(3) ? (int64_t)dice(700) : (int64_t)dice(WEALTH));
    seen->price_changes++;
}

/* Up to four at once, each below any task in progress: only the guard in the
 * commit separates them. */
static void delegate_some(void)
{
    struct gotten got[4];
    int to[4], n = 0;

    for (unsigned i = 1 + dice(4); i > 0; i--) {
        int at = (int)dice((unsigned)n_tasks), agent = (int)dice(CREATORS);

        if (tasks[at].is_over || agent == tasks[at].agent)
            continue;
        to[n] = agent;
        CHECK(firm_post((struct wanted){.by = names[tasks[at].agent],
                                        .to = names[agent],
                                        .parent = &tasks[at].id},
                        &got[n]));
        n++;
    }
    perhaps_die(1000);
    turn(12);
    for (int i = 0; i < n; i++) {
        CHECK(got[i].is_back);
        seen->delegated += !got[i].err;
        seen->over_ceiling += got[i].err == ERR_CEILING;
        if (got[i].err) {
            if (got[i].err != ERR_CEILING && got[i].err != ERR_FUNDS &&
                got[i].err != ERR_DELEGATION && got[i].err != ERR_DELEGATIONS)
                T_FAIL("%s: %s", err_row(got[i].err)->code, got[i].why.text);
        } else if (n_tasks < TASKS_OF_TREE) {
            tasks[n_tasks].id = got[i].task;
            tasks[n_tasks].agent = to[i];
            tasks[n_tasks++].is_over = false;
        }
    }
}

static void end_one(bool is_root)
{
    int at = is_root ? 0 : (int)dice((unsigned)n_tasks);
    struct task_result r = {.status = dice(3) ? TASK_COMPLETED : TASK_FAILED,
                            .text = STR("x")};

    if (r.status == TASK_FAILED)
        r.error_code = r.error = STR("so");
    if (!at && !is_root)
        return;
    (void)!walk_end(stage.walk, str_of(tasks[at].id.text), &r, NULL, NULL);
    turn(8);
    for (int i = 0; i < n_tasks; i++)
        tasks[i].is_over =
            !task_find(walk_tasks(stage.walk), str_of(tasks[i].id.text));
}

/* The text records the sender's limit for the final check. */
static void grow(void)
{
    bool has_max = dice(3) == 0;
    int64_t max = dice(2) ? (int64_t)dice(4000) : (int64_t)dice(300);
    struct letter l = {
        .from = payers[dice(PAYERS)], .has_max_cost = has_max, .max_cost = max};
    int agent = (int)dice(CREATORS);
    struct told t;
    char text[32];

    snprintf(text, sizeof(text), "%lld", has_max ? (long long)max : -1LL);
    l.text = text;
    l.to = names[agent];
    CHECK(post(l, &t));
    turn(8);
    CHECK(t.is_back);
    seen->trees++;
    if (t.err) {
        if (t.err != ERR_CEILING && t.err != ERR_FUNDS)
            T_FAIL("%s: %s", err_row(t.err)->code, t.why.text);
        return;
    }
    tasks[0].id = t.task_id;
    tasks[0].agent = agent;
    tasks[0].is_over = false;
    n_tasks = 1;
    for (unsigned i = 2 + dice(6); i > 0 && !tasks[0].is_over; i--) {
        delegate_some();
        if (dice(2))
            end_one(false);
        if (dice(12) == 0)
            change_price();
    }
    if (dice(8))
        end_one(true);
}

static void live(void)
{
    begin();
    for (int i = 0; i < TREES_OF_LIFE; i++)
        grow();
    stage_stop();
}

/* The remaining amount. */

enum { ROWS_MAX = 40000 };

struct tree {
    char root[ID_BYTES];
    int64_t ceiling, used;
};

static int by_root(const void *a, const void *b)
{
    return strcmp(((const struct tree *)a)->root,
                  ((const struct tree *)b)->root);
}

static bool is_given_back(int64_t status)
{
    return status == TASK_FAILED || status == TASK_CANCELLED ||
           status == TASK_EXPIRED;
}

/* The limit shown to the sender of a root, from the text and the price
 * alone. */
static int64_t shown(const struct row *r)
{
    long long max = strtoll(row_str(r, TASK_TEXT).p, NULL, 10);

    return max < 0 ? row_int(r, TASK_PRICE_MICROS) + ALLOWANCE : max;
}

static size_t read_trees(const struct query *q, struct tree *out)
{
    size_t n = 0;

    QUERY_EACH(r, q)
    {
        bool is_root = row_is_null(r, TASK_ROOT_ID);
        struct str root =
            is_root ? row_str(r, TASK_ID) : row_str(r, TASK_ROOT_ID);

        snprintf(out[n].root, sizeof(out[n].root), "%.*s", STR_ARG(root));
        out[n].ceiling = is_root ? shown(r) : -1;
        out[n++].used = is_given_back(row_int(r, TASK_STATUS))
                            ? 0
                            : row_int(r, TASK_PRICE_MICROS);
    }
    return n;
}

static void judge(void)
{
    static struct tree trees[ROWS_MAX];
    struct query q;
    size_t n;

    begin();
    money_check();
    query_init(&q, &task_table, ROWS_MAX);
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK(!q.has_more);
    n = read_trees(&q, trees);
    query_fini(&q);
    qsort(trees, n, sizeof(*trees), by_root);
    for (size_t i = 0, k; i < n; i = k) {
        int64_t ceiling = -1, used = 0;

        for (k = i; k < n && !by_root(&trees[k], &trees[i]); k++) {
            used += trees[k].used;
            if (trees[k].ceiling >= 0)
                ceiling = trees[k].ceiling;
        }
        if (used > ceiling)
            T_FAIL("%s has cost %lld, and %lld was shown", trees[i].root,
                   (long long)used, (long long)ceiling);
    }
    stage_stop();
}

/* In its own process, which only kills itself. */
static void life(uint64_t seed)
{
    int status = 0;
    pid_t pid;

    /* At a later time than the run before, and with other ids. */
    stage.now.wall_ms += 3600000;
    stage.now.mono_ms += 3600000;
    stage.seed.state = seed * 7919;
    fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        state = seed;
        live();
        fflush(NULL);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) ? WEXITSTATUS(status) != 0
                          : WTERMSIG(status) != SIGKILL)
        T_FAIL("the life %llu ended with %x", (unsigned long long)seed, status);
    judge();
}

static void found(void)
{
    char id[8];

    state = 99;
    begin();
    for (int i = 0; i < CREATORS; i++)
        put_agent(i, i % 4 ? (int64_t)dice(700) : 0);
    for (int i = 0; i < PAYERS; i++) {
        snprintf(id, sizeof(id), "p%d", i);
        give(id, payers[i], WEALTH);
    }
    stage_stop();
}

static void storm(int64_t n_trees)
{
    char command[160];

    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(seen != MAP_FAILED);
    ground();
    snprintf(command, sizeof(command), "rm -f %s/signalbox.db*", stage.root);
    for (uint64_t seed = 1; seen->trees < n_trees; seed++) {
        if (seed % LIVES_OF_FOLDER == 1) {
            CHECK(system(command) == 0);
            found();
        }
        life(seed);
    }
}

TEST(no_tree_costs_more_than_was_shown)
{
    const char *stress = getenv("STRESS");
    bool is_full = stress && strcmp(stress, "full") == 0;

    storm(is_full ? 100000 : 300);
    printf("%lld trees, %lld kills, %lld delegations, %lld beyond a ceiling, "
           "%lld prices changed\n",
           (long long)seen->trees, (long long)seen->kills,
           (long long)seen->delegated, (long long)seen->over_ceiling,
           (long long)seen->price_changes);
    /* The run was busy enough to mean something. */
    CHECK(seen->kills > 2 && seen->price_changes > 20);
    CHECK(seen->delegated > seen->trees / 2);
    CHECK(seen->over_ceiling > seen->trees / 4);
}

static void small_storm(void)
{
    storm(80);
}

TEST(control_a_ceiling_that_is_not_checked_is_noticed_in_a_storm)
{
    check_control("ledger.no_ceiling", small_storm);
}
