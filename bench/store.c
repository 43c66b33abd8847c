/* bench_store FOLDER: how many tasks a second can be accepted durably.
 *
 * Each acceptance is what task_create makes of a message, all its rows in one
 * tx through the real store. One, 16 and 256 callers each wait for their
 * answer before they send the next; what gathers meanwhile shares a sync.
 * Against that, the same rows with a commit each, by a store that has no
 * thread and loses no time in handing over; and beside it what one sync costs
 * on this disk. All take turns, round after round, because a disk has its
 * moods; a ratio is between two figures of one round, and the median counts.
 * The folder is on the disk that is measured. Exit status 1 unless 256 callers
 * reach ten times one commit each, with at most six rows for a whole task. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"
#include "task/task.h"
#include "watch/watch.h"

enum {
    ROUNDS = 5,
    ROUND_MS = 400,
    MAX_CALLERS = 256,
    SYNC_BYTES = 4096,
    RESULTS = 200, /* tasks that are also finished, to count their rows */
    N_LOADS = 3,
    MAX_ROWS = 6,
};

static const int loads[N_LOADS] = {1, 16, MAX_CALLERS};
static const double GOAL = 10;

struct bench {
    const char *folder;
    struct loop loop;
    struct log log;
    struct id_maker ids;
    struct store *store;
    struct tasks *tasks;
    struct caller caller;
    int64_t n; /* accepted in this measurement */
    int under_way;
    double until_s;
};

static void die(const char *what)
{
    fprintf(stderr, "bench_store: %s\n", what);
    exit(1);
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static enum ready on_ready(void *ctx, const struct task *t)
{
    (void)ctx; /* no one carries them */
    (void)t;
    return READY_NO_AGENT;
}

static bool on_deadline(void *ctx, const struct task *t)
{
    (void)ctx;
    (void)t;
    return true;
}

static void open_rooms(struct bench *b, bool is_inline)
{
    static const struct schema *const schemas[] = {&task_schema, &watch_schema};
    struct store_opts opts = {.folder = b->folder,
                              .schemas = schemas,
                              .n_schemas = 2,
                              .max_waiting = 10000,
                              .is_inline = is_inline,
                              .loop = is_inline ? NULL : &b->loop};
    struct why why;

    if (loop_init(&b->loop, clock_system()) != OK)
        die("loop");
    if (store_open(&b->store, &opts, &why) != OK)
        die(why.text);
    b->tasks = tasks_new(&(struct tasks_opts){
        .loop = &b->loop,
        .log = &b->log,
        .store = b->store,
        .ids = &b->ids,
        .node = STR("bench"),
        .seed = {1, 2},
        .limits = {.max_unfinished = 10 * 1000 * 1000,
                   .max_unfinished_bytes = (size_t)1 << 40,
                   .timeout_ms = 3600 * 1000},
        .on_ready = on_ready,
        .on_deadline = on_deadline,
    });
    if (!b->tasks)
        die("memory");
}

static void close_rooms(struct bench *b)
{
    store_close(b->store);
    tasks_free(b->tasks);
    loop_turn(&b->loop);
    loop_fini(&b->loop);
}

/* A message such as people send, with a key and a conversation of its own. */
static struct msg *make_message(struct bench *b)
{
    static const struct str text =
        STR("please translate the attached letter into French, keep the tone "
            "polite, and tell me where you were not sure about a word");
    struct msg *m = msg_new(&b->caller, loop_wall_ms(&b->loop));

    if (!m)
        die("memory");
    m->call.text = text;
    m->call.executor = m->choice.agent = STR("translator");
    m->call.metadata = m->call.source = STR("{}");
    m->call.priority = PRIORITY_NORMAL;
    m->call.idempotency_key = str_of(arena_strdup(
        &m->arena,
        str_of(id_make(&b->ids, "key", loop_wall_ms(&b->loop)).text)));
    if (task_create(b->tasks, m, NULL) != OK)
        die("a task was refused");
    return m;
}

static void on_accepted(struct tx *tx, void *ctx);

static void send_one(struct bench *b)
{
    struct msg *m = make_message(b);

    m->way.ctx = b;
    b->under_way++;
    store_submit(b->store, &m->tx, on_accepted, m);
}

static void on_accepted(struct tx *tx, void *ctx)
{
    struct msg *m = ctx;
    struct bench *b = m->way.ctx;

    if (tx->result != TX_COMMITTED)
        die("not committed");
    task_settle(b->tasks, m);
    msg_free(m);
    b->n++;
    b->under_way--;
    if (b->until_s != 0 && now_s() < b->until_s)
        send_one(b);
    else if (b->under_way == 0)
        loop_stop(&b->loop);
}

/* Acceptances a second with so many callers. */
static double measure_callers(struct bench *b, int callers)
{
    double start, took;

    open_rooms(b, false);
    b->n = 0;
    start = now_s();
    b->until_s = start + ROUND_MS / 1e3;
    for (int i = 0; i < callers; i++)
        send_one(b);
    loop_run(&b->loop);
    took = now_s() - start;
    close_rooms(b);
    return (double)b->n / took;
}

/* Acceptances a second with a commit each. */
static double measure_single(struct bench *b)
{
    double start, took;

    open_rooms(b, true);
    b->n = 0;
    b->until_s = 0;
    start = now_s();
    do {
        send_one(b);
        store_turn(b->store);
        if (b->n % 64 == 0)
            loop_turn(&b->loop);
        took = now_s() - start;
    } while (took < ROUND_MS / 1e3);
    close_rooms(b);
    return (double)b->n / took;
}

static void on_changed(struct tx *tx, void *ctx)
{
    if (tx->result != TX_COMMITTED)
        die("a result was not committed");
    (void)ctx;
}

/* Rows written for one task from its message to its result. */
static double measure_rows(struct bench *b)
{
    struct task_result result = {.status = TASK_COMPLETED,
                                 .text = STR("voici la lettre")};
    int64_t before;
    enum err e;

    open_rooms(b, true);
    b->until_s = 0;
    before = store_stats(b->store).rows_written_total;
    for (int i = 0; i < RESULTS; i++) {
        struct msg *m = make_message(b);
        struct id id = m->task.id;
        struct task_change *c;
        m->way.ctx = b;
        b->under_way++;
        store_submit(b->store, &m->tx, on_accepted, m);
        store_turn(b->store);
        loop_turn(&b->loop);
        task_move(b->tasks, str_of(id.text), TASK_DISPATCHED);
        c = task_change_new(b->tasks, str_of(id.text), &result, &e);
        if (!c)
            die("no result can be written");
        store_submit(b->store, &c->tx, on_changed, c);
        store_turn(b->store);
        task_changed(b->tasks, c);
        task_change_free(c);
    }
    before = store_stats(b->store).rows_written_total - before;
    close_rooms(b);
    return (double)before / RESULTS;
}

/* Microseconds for one small write and its sync, at the end of a file as a
 * database's log does it. */
static double measure_sync(const struct bench *b)
{
    char path[4096], bytes[SYNC_BYTES] = {0};
    double start, took;
    int fd, n = 0;

    snprintf(path, sizeof(path), "%s/sync-probe", b->folder);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        die(strerror(errno));
    start = now_s();
    do {
        if (write(fd, bytes, sizeof(bytes)) != sizeof(bytes) ||
            fdatasync(fd) != 0)
            die(strerror(errno));
        n++;
        took = now_s() - start;
    } while (took < ROUND_MS / 1e3 / 4);
    close(fd);
    unlink(path);
    return took * 1e6 / n;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof(values[0]), by_value);
    return values[ROUNDS / 2];
}

static bool report(const double single[ROUNDS], double many[N_LOADS][ROUNDS],
                   double sync_us[ROUNDS], double rows)
{
    double one[ROUNDS], ratios[ROUNDS], ratio = 0, us = median(sync_us);
    bool reached;

    memcpy(one, single, sizeof(one));
    printf("durable acceptances per second, median of %d (least-most); one "
           "write and sync takes %.0f us (%.0f-%.0f) here\n",
           ROUNDS, us, sync_us[0], sync_us[ROUNDS - 1]);
    printf("%-20s%8.0f", "a commit each", median(one));
    printf(" (%.0f-%.0f)\n", one[0], one[ROUNDS - 1]);
    for (int i = 0; i < N_LOADS; i++) {
        double *rates = many[i];

        for (int r = 0; r < ROUNDS; r++)
            ratios[r] = rates[r] / single[r];
        ratio = median(ratios);
        printf("%3d caller%-10s%8.0f", loads[i], loads[i] == 1 ? "" : "s",
               median(rates));
        printf(" (%.0f-%.0f), %.1f times (%.1f-%.1f)\n", rates[0],
               rates[ROUNDS - 1], ratio, ratios[0], ratios[ROUNDS - 1]);
    }
    reached = ratio >= GOAL && rows <= MAX_ROWS;
    printf("%.1f rows for a whole task; goal: %d callers %.0f times a commit "
           "each, at most %d rows, %s\n",
           rows, MAX_CALLERS, GOAL, MAX_ROWS, reached ? "reached" : "MISSED");
    return reached;
}

int main(int argc, char **argv)
{
    double single[ROUNDS], many[N_LOADS][ROUNDS], sync_us[ROUNDS];
    struct bench b = {.caller = {.principal = "anna",
                                 .role = ROLE_USER,
                                 .scopes = SCOPE_SEND}};
    struct store_folder folder;
    struct why why;
    bool reached;

    if (argc != 2) {
        fprintf(stderr, "usage: bench_store FOLDER\n");
        return 2;
    }
    if (store_folder_open(&folder, str_of(argv[1]), &why) != OK)
        die(why.text);
    b.folder = folder.path;
    log_init(&b.log, STDERR_FILENO, LOG_WARN, LOG_TEXT, clock_system());
    id_maker_init(&b.ids, rand_system());
    for (int r = 0; r < ROUNDS; r++) {
        sync_us[r] = measure_sync(&b);
        single[r] = measure_single(&b);
        for (int i = 0; i < N_LOADS; i++)
            many[i][r] = measure_callers(&b, loads[i]);
    }
    reached = report(single, many, sync_us, measure_rows(&b));
    store_folder_close(&folder);
    return !reached;
}
