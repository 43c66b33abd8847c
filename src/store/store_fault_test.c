/* Every step that can fail fails once. A fault may refuse, or end the store;
 * it never loses what was acknowledged and never leaves half a tx. */
#include "store/internal.h"
#include "test/lib/store_stage.h"

static void stage_opts(struct store_opts *opts)
{
    opts->is_inline = true;
}

enum { N_TXS = 8, DOUBLE = 5, POOR = 6 };

/* What was said about each. */
static struct {
    bool was_submitted;
    enum tx_result result;
} said[N_TXS];

static void put_id(struct tx_op *op, uint8_t column, int i)
{
    char id[8];

    snprintf(id, sizeof(id), "t%d", i);
    tx_set(op, column, value_text(str_of(id)));
}

/* Five operations that belong together: a thing, its part, a line in the
 * feed, money into the account, and one more thing to prune. */
static void build(struct tx *tx, int i)
{
    struct tx_op *op;

    tx_init(tx);
    op = tx_insert(tx, &thing);
    put_id(op, THING_ID, i == DOUBLE ? 0 : i);
    tx_set(op, THING_N, value_int(i));
    op = tx_put(tx, &part);
    put_id(op, PART_THING, i);
    tx_set(op, PART_NR, value_int(i));
    op = tx_insert(tx, &feed);
    put_id(op, FEED_WHAT, i);
    op = tx_add(tx, &thing, THING_N, i == POOR ? -1000 : 1 << i, 0);
    tx_if(op, THING_ID, IS, value_text(STR("account")));
    op = tx_prune(tx, &thing, 10);
    tx_if(op, THING_ID, IS, value_text(STR("none")));
}

/* A life: open, three batches and some questions, close. */
static void live(void)
{
    static struct tx txs[N_TXS], account;
    struct why why = {""};
    struct query q;

    memset(said, 0, sizeof(said));
    if (try_open(schemas_v1, 1, &why) != OK) {
        CHECK(fault_fired() && why.text[0]);
        return;
    }
    tx_init(&account);
    tx_set(add_thing(&account, "account", 0), THING_NOTE,
           value_text(STR("money")));
    commit(&account);
    if (account.result == TX_COMMITTED)
        for (int i = 0; i < N_TXS; i++) {
            build(&txs[i], i);
            submit(&txs[i]);
            said[i].was_submitted = true;
            if (i == 4)
                loop_turn(&loop);
        }
    query_init(&q, &thing, 3);
    find(&q);
    CHECK(fault_fired() || (q.err == OK && q.n_rows == 3 && q.has_more));
    query_fini(&q);
    store_stats(store);
    close_store();
    for (int i = 0; i < N_TXS && said[i].was_submitted; i++) {
        said[i].result = txs[i].result;
        tx_fini(&txs[i]);
    }
    tx_fini(&account);
}

static bool part_is_there(int i)
{
    struct query q;
    bool is_there;

    query_init(&q, &part, 2);
    query_if(&q, PART_NR, IS, value_int(i));
    CHECK(find(&q) == OK);
    is_there = q.n_rows == 1;
    query_fini(&q);
    return is_there;
}

static bool feed_is_there(int i)
{
    char id[8];
    struct query q;
    bool is_there;

    snprintf(id, sizeof(id), "t%d", i);
    query_init(&q, &feed, 2);
    query_if(&q, FEED_WHAT, IS, value_text(str_of(id)));
    CHECK(find(&q) == OK && q.n_rows <= 1);
    is_there = q.n_rows == 1;
    query_fini(&q);
    return is_there;
}

/* The truth after a restart, against what was said before it. */
static void compare(void)
{
    int64_t sum = 0;
    bool was_fatal = false;

    open_store();
    for (int i = 0; i < N_TXS && said[i].was_submitted; i++) {
        char id[8];
        bool is_there;

        snprintf(id, sizeof(id), "t%d", i);
        is_there = i != DOUBLE && n_of(id) == i;
        CHECK(part_is_there(i) == is_there && feed_is_there(i) == is_there);
        sum += is_there ? 1 << i : 0;
        CHECK(i != DOUBLE || said[i].result != TX_COMMITTED);
        CHECK(i != POOR || said[i].result != TX_COMMITTED);
        if (said[i].result != TX_FATAL)
            CHECK(is_there == (said[i].result == TX_COMMITTED));
        was_fatal |= said[i].result == TX_FATAL;
        CHECK(!was_fatal || said[i].result == TX_FATAL);
    }
    CHECK(n_of("account") == sum || (sum == 0 && n_of("account") == -1));
    close_store();
}

static bool ends_with(const char *s, const char *end_)
{
    size_t n = strlen(s), m = strlen(end_);

    return n >= m && strcmp(s + n - m, end_) == 0;
}

/* Which faults end the store, by their names. */
static bool is_fatal(const char *name)
{
    return strcmp(name, "store.sync") == 0 ||
           strcmp(name, "store.moved") == 0 ||
           (ends_with(name, ".io") && strcmp(name, "store.read.io") != 0);
}

static void remove_database(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -f %s/signalbox.db*", stage_root);
    CHECK(system(command) == 0);
}

static void sweep(const struct store_sabotage *how)
{
    int n_fatal = 0, n_refusing = 0;
    long nth = 0;
    bool has_fired;

    /* Thousands of syncs, of which none is judged: not on a disk, please. */
    stage_folder();
    do {
        const char *name;

        n_fatal_seen = 0;
        store_sabotage(how);
        fault_arm(nth += T_SWEEP_STEP);
        live();
        has_fired = fault_fired();
        name = has_fired ? fault_name() : "";
        fault_arm(0);
        CHECK_INT(n_fatal_seen, is_fatal(name));
        n_fatal += is_fatal(name);
        n_refusing += has_fired && !is_fatal(name);
        store_sabotage(NULL);
        compare();
        remove_database();
    } while (has_fired);
    CHECK(n_fatal * T_SWEEP_STEP > 50 && n_refusing * T_SWEEP_STEP > 150);
    loop_fini(&loop);
}

TEST(every_fault_keeps_what_was_acknowledged_and_halves_nothing)
{
    static const struct store_sabotage busy = {.checkpoint_pages = 1};

    sweep(&busy);
}

/* One by one, so that a fault has another place in its batch. */
TEST(every_fault_does_so_too_in_batches_of_one)
{
    static const struct store_sabotage busy = {
        .checkpoint_pages = 1, .restart_pages = 1, .batch_txs = 1};

    sweep(&busy);
}

/* The control: would the sweep notice? */
TEST(the_sweep_notices_an_acknowledgement_that_comes_too_early)
{
    static const struct store_sabotage early = {.acks_early = true};
    int status;
    pid_t child;

    stage_folder();
    child = fork();
    if (child == 0) {
        fclose(stderr);
        store_sabotage(&early);
        fault_arm_at("store.commit.io", 2);
        live();
        CHECK(fault_fired());
        fault_arm(0);
        store_sabotage(NULL);
        compare();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1); /* a CHECK failed */
    loop_fini(&loop);
}

/* A database that is gone. */

static void remove_files(const char *names)
{
    char command[192];

    snprintf(command, sizeof(command), "cd %s && rm -f %s", stage_root, names);
    CHECK(system(command) == 0);
}

static enum err check_folder(void)
{
    struct why why = {""};
    enum err e;

    CHECK(store_folder_open(&folder, stage_folder(), &why) == OK);
    e = store_folder_check(&folder, &why);
    CHECK(!e || strstr(why.text, "--from-scratch"));
    store_folder_close(&folder);
    return e;
}

/* Wherever it was cut off, and whatever of its database reached the disk. */
TEST(a_first_start_that_was_cut_off_is_no_loss)
{
    long nth = 0;
    bool has_fired;

    stage_folder();
    do {
        struct why why = {""};

        fault_arm(++nth);
        if (try_open(schemas_v1, 1, &why) == OK)
            close_store();
        has_fired = fault_fired();
        fault_arm(0);
        CHECK(check_folder() == OK);
        remove_files("signalbox.db*");
        CHECK(check_folder() == OK);
        open_store();
        close_store();
        remove_files("signalbox.*");
    } while (has_fired);
    CHECK(nth > 20);
    loop_fini(&loop);
}

static void use_folder(void)
{
    open_store();
    store_folder_set_used(&folder);
    close_store();
}

TEST(a_used_folder_without_its_database_is_one)
{
    stage_folder();
    use_folder();
    CHECK(check_folder() == OK);
    remove_files("signalbox.db*");
    CHECK(check_folder() == ERR_BAD_CONFIG);
    CHECK(check_folder() == ERR_BAD_CONFIG); /* again, and again */
    fault_arm_at("store.begin_anew", 1);     /* which the above notices */
    CHECK(check_folder() == OK);
    loop_fini(&loop);
}

/* Also when the lock file went with it. */
TEST(what_lies_beside_a_database_says_that_there_was_one)
{
    char path[128];
    FILE *f;

    stage_folder();
    open_store();
    close_store();
    remove_files("signalbox.db* signalbox.lock");
    CHECK(check_folder() == ERR_BAD_CONFIG);
    CHECK(check_folder() == ERR_BAD_CONFIG);
    remove_files("signalbox.*");
    CHECK(check_folder() == OK);
    remove_files("signalbox.*");
    snprintf(path, sizeof(path), "%s/index.snapshot", stage_root);
    f = fopen(path, "w");
    CHECK(f && fclose(f) == 0);
    CHECK(check_folder() == ERR_BAD_CONFIG);
    loop_fini(&loop);
}
