/* crash_driver FOLDER N_TXS [FAULT]: performs the play of stage.h on the real
 * store, with its threads, and says `ack N` on standard output for each tx
 * that was reported as committed.
 *
 * Between one and many txs are under way at a time, so that batches of every
 * size come to be; the log is folded into the database every few pages; and
 * half way through the store is closed and opened again. FAULT is a control,
 * which must be found out: `normal` (synchronous=NORMAL), `early` (reports
 * before it commits). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/internal.h"
#include "test/crash/stage.h"

enum { MAX_UNDER_WAY = 40 };

struct driver {
    struct loop loop;
    struct store *store;
    int64_t next, last, acked;
    int64_t before[STAGE_SLOTS]; /* the last tx on each */
    int under_way, at_once;
    uint64_t chance;
};

struct going {
    struct tx tx;
    struct driver *d;
    int64_t n; /* 0: doomed */
};

static void die(const char *what)
{
    fprintf(stderr, "crash_driver: %s\n", what);
    exit(1);
}

static unsigned dice(struct driver *d, unsigned sides)
{
    d->chance = d->chance * 6364136223846793005 + 1442695040888963407;
    return (unsigned)(d->chance >> 33) % sides;
}

static void go_on(struct driver *d);

static void on_done(struct tx *tx, void *ctx)
{
    struct going *g = ctx;
    struct driver *d = g->d;
    char line[32];
    int n;

    if (tx->result != (g->n ? TX_COMMITTED : TX_GUARD_FAILED))
        die("a tx did not end as it should");
    if (g->n) {
        n = snprintf(line, sizeof(line), "ack %lld\n", (long long)g->n);
        if (write(STDOUT_FILENO, line, (size_t)n) != n)
            die("standard output");
        d->acked = g->n;
    }
    tx_fini(&g->tx);
    free(g);
    d->under_way--;
    if (d->under_way == 0 || dice(d, 8) == 0)
        d->at_once = 1 + (int)dice(d, dice(d, 2) ? 3 : MAX_UNDER_WAY);
    go_on(d);
}

static void submit(struct driver *d, bool is_doomed)
{
    struct going *g = calloc(1, sizeof(*g));

    if (!g)
        die("memory");
    g->d = d;
    tx_init(&g->tx);
    if (is_doomed) {
        stage_doomed(&g->tx, d->next);
    } else {
        g->n = d->next++;
        stage_tx(&g->tx, g->n, d->before[stage_slot(g->n)]);
        d->before[stage_slot(g->n)] = g->n;
    }
    d->under_way++;
    store_submit(d->store, &g->tx, on_done, g);
}

static void go_on(struct driver *d)
{
    while (d->under_way < d->at_once && d->next <= d->last)
        submit(d, d->next > STAGE_SLOTS && dice(d, 8) == 0);
    if (d->under_way == 0)
        loop_stop(&d->loop);
}

/* One life of the store, up to tx number `last`. */
static void live(struct driver *d, const char *folder, int64_t last)
{
    const struct schema *schemas[] = {&stage_schema};
    struct store_opts opts = {.folder = folder,
                              .schemas = schemas,
                              .n_schemas = 1,
                              .max_waiting = 1000,
                              .loop = &d->loop};
    struct why why;

    if (loop_init(&d->loop, clock_system()) != OK)
        die("loop");
    if (store_open(&d->store, &opts, &why) != OK)
        die(why.text);
    d->last = last;
    d->at_once = 4;
    go_on(d);
    loop_run(&d->loop);
    if (d->acked != last)
        die("the last tx was not the last to be reported");
    store_close(d->store);
    loop_turn(&d->loop);
    loop_fini(&d->loop);
}

int main(int argc, char **argv)
{
    struct store_sabotage how = {.checkpoint_pages = 60};
    struct driver d = {.next = 1, .chance = 1};
    struct store_folder folder;
    struct why why;
    int64_t n = argc > 2 ? strtoll(argv[2], NULL, 10) : 0;

    if (n < 2) {
        fprintf(stderr, "usage: crash_driver FOLDER N_TXS [normal|early]\n");
        return 2;
    }
    if (argc > 3 && strcmp(argv[3], "normal") == 0)
        how.synchronous = "NORMAL";
    else if (argc > 3 && strcmp(argv[3], "early") == 0)
        how.acks_early = true;
    else if (argc > 3)
        die("no such fault");
    how.early_ms = 5; /* time for the report to be heard before the commit */
    store_sabotage(&how);
    if (store_folder_open(&folder, str_of(argv[1]), &why) != OK)
        die(why.text);
    live(&d, folder.path, n / 2);
    live(&d, folder.path, n);
    store_folder_close(&folder);
    return 0;
}
