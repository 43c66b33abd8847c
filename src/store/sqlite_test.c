/* What is particular to SQLite: files that are not as they should be, locks,
 * full disks, files that go away. */
#include "store/internal.h"
#include "test/lib/store_stage.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void stage_opts(struct store_opts *opts)
{
    opts->is_inline = true;
}

static const char *path_of(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", stage_folder().p, name);
    return path;
}

static void write_file(const char *name, const char *bytes, size_t n)
{
    FILE *f = fopen(path_of(name), "wb");

    CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

static int64_t size_of(const char *name)
{
    struct stat st;

    return stat(path_of(name), &st) == 0 ? st.st_size : -1;
}

/* Another program, with the same library. */
static sqlite3 *other_opens(const char *name)
{
    sqlite3 *sql;

    CHECK(sqlite3_open(path_of(name), &sql) == SQLITE_OK);
    return sql;
}

static void other_does(sqlite3 *sql, const char *text)
{
    if (sqlite3_exec(sql, text, NULL, NULL, NULL) != SQLITE_OK)
        T_FAIL("%s: %s", text, sqlite3_errmsg(sql));
}

static enum err open_says(const char *words)
{
    struct why why = {""};
    enum err e = try_open(schemas_v1, 1, &why);

    if (!strstr(why.text, words))
        T_FAIL("\"%s\" does not say \"%s\"", why.text, words);
    CHECK(!store);
    return e;
}

/* As a first run leaves it. */
static void make_database(void)
{
    open_store();
    make_thing("a", 1);
    close_store();
}

TEST(the_files_are_for_their_owner_alone)
{
    static const char *const names[] = {DB_NAME, DB_NAME "-wal",
                                        DB_NAME "-shm"};

    open_store();
    make_thing("a", 1);
    for (int i = 0; i < 3; i++) {
        struct stat st;

        CHECK(stat(path_of(names[i]), &st) == 0);
        CHECK_INT(st.st_mode & 0777, 0600);
    }
    leave();
}

TEST(closing_leaves_one_file_with_everything_in_it)
{
    sqlite3 *sql;
    int64_t n;

    make_database();
    CHECK(size_of(DB_NAME "-wal") < 0 && size_of(DB_NAME "-shm") < 0);
    sql = other_opens(DB_NAME);
    CHECK(db_ask(sql, "PRAGMA application_id", &n) == SQLITE_OK);
    CHECK_INT(n, DB_APPLICATION_ID);
    CHECK(db_ask(sql, "PRAGMA page_size", &n) == SQLITE_OK && n == 4096);
    CHECK(db_ask(sql, "SELECT n FROM thing", &n) == SQLITE_OK && n == 1);
    CHECK(sqlite3_close(sql) == SQLITE_OK);
    loop_fini(&loop);
}

static int64_t version_of(const struct schema *schema)
{
    struct why why;
    sqlite3 *sql;
    int64_t n;

    CHECK(try_open(&schema, 1, &why) == OK);
    close_store();
    sql = other_opens(DB_NAME);
    CHECK(db_ask(sql,
                 "SELECT value FROM signalbox_meta WHERE kind = 'room' "
                 "AND name = 'one'",
                 &n) == SQLITE_OK);
    CHECK(sqlite3_close(sql) == SQLITE_OK);
    return n;
}

TEST(the_version_of_a_schema_is_the_highest_that_a_row_of_it_names)
{
    static const struct column columns[] = {
        {.name = "id", .type = COLUMN_INT},
        {.name = "n", .type = COLUMN_INT, .since = 2},
    };
    static const struct table_index indexes[] = {
        {.name = "one_by_n", INDEX_ON(1), .since = 4},
    };
    static const struct table first = {
        .name = "one", .columns = columns, .n_columns = 1, .n_key = 1};
    static const struct table wider = {
        .name = "one", .columns = columns, .n_columns = 2, .n_key = 1};
    static const struct table newer = {.name = "two",
                                       .columns = columns,
                                       .n_columns = 1,
                                       .n_key = 1,
                                       .since = 3};
    static const struct table indexed = {.name = "one",
                                         .columns = columns,
                                         .n_columns = 2,
                                         .n_key = 1,
                                         .indexes = indexes,
                                         .n_indexes = 1};
    const struct table *const tables[] = {&first};
    const struct table *const with_column[] = {&wider};
    const struct table *const with_table[] = {&wider, &newer};
    const struct table *const with_index[] = {&newer, &indexed};

    CHECK_INT(version_of(&(struct schema){"one", tables, 1}), 1);
    CHECK_INT(version_of(&(struct schema){"one", with_column, 1}), 2);
    CHECK_INT(version_of(&(struct schema){"one", with_table, 2}), 3);
    CHECK_INT(version_of(&(struct schema){"one", with_index, 2}), 4);
    loop_fini(&loop);
}

TEST(an_empty_file_is_as_good_as_none)
{
    write_file(DB_NAME, "", 0);
    open_store();
    make_thing("a", 1);
    CHECK_INT(store_epoch(store), 1);
    leave();
}

TEST(what_is_not_a_database_is_left_alone)
{
    static const char text[] = "Dear diary, this is not a database. "
                               "It is longer than a hundred bytes, so that "
                               "no one can say it was too short to know.";

    write_file(DB_NAME, text, sizeof(text));
    CHECK(open_says("is not a database") == ERR_BAD_CONFIG);
    CHECK_INT(size_of(DB_NAME), sizeof(text));
    write_file(DB_NAME, "x", 1);
    CHECK(open_says("is not a database") == ERR_BAD_CONFIG);
    CHECK_INT(size_of(DB_NAME), 1);
    loop_fini(&loop);
}

TEST(a_database_of_another_program_is_left_alone)
{
    sqlite3 *sql = other_opens(DB_NAME);
    int64_t n;

    other_does(sql, "CREATE TABLE theirs(x)");
    CHECK(open_says("another program") == ERR_BAD_CONFIG);
    other_does(sql, "PRAGMA application_id=77; DROP TABLE theirs");
    CHECK(open_says("another program") == ERR_BAD_CONFIG);
    CHECK(db_ask(sql, "PRAGMA application_id", &n) == SQLITE_OK && n == 77);
    CHECK(sqlite3_close(sql) == SQLITE_OK);
    loop_fini(&loop);
}

TEST(a_database_of_a_newer_format_is_left_alone)
{
    sqlite3 *sql;

    make_database();
    sql = other_opens(DB_NAME);
    other_does(sql, "PRAGMA user_version=2");
    CHECK(sqlite3_close(sql) == SQLITE_OK);
    CHECK(open_says("file format is of version 2") == ERR_BAD_CONFIG);
    loop_fini(&loop);
}

TEST(a_database_that_was_cut_short_is_said_to_be)
{
    int64_t whole, sizes[3];

    make_database();
    whole = size_of(DB_NAME);
    sizes[0] = whole - 1;
    sizes[1] = 4096;
    sizes[2] = 50;
    for (int i = 0; i < 3; i++) {
        CHECK(truncate(path_of(DB_NAME), sizes[i]) == 0);
        CHECK(open_says("is cut short") == ERR_BAD_CONFIG);
        CHECK_INT(size_of(DB_NAME), sizes[i]);
    }
    loop_fini(&loop);
}

TEST(a_database_cut_short_beside_its_log_is_not_acknowledged_into)
{
    struct why why = {""};
    pid_t child;

    make_database();
    /* A run that ends without folding its log in. */
    child = fork();
    if (child == 0) {
        open_store();
        make_thing("b", 2);
        _exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(size_of(DB_NAME "-wal") > 0);
    CHECK(truncate(path_of(DB_NAME), 8192) == 0);
    CHECK(try_open(schemas_v1, 1, &why) == ERR_BAD_CONFIG);
    loop_fini(&loop);
}

TEST(what_a_killed_run_left_in_its_log_is_there)
{
    pid_t child;

    stage_folder();
    child = fork();
    if (child == 0) {
        open_store();
        make_thing("a", 1);
        make_thing("b", 2);
        _exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child);
    open_store();
    CHECK_INT(n_of("a"), 1);
    CHECK_INT(n_of("b"), 2);
    CHECK_INT(store_epoch(store), 2);
    leave();
}

TEST(a_run_that_ended_in_order_is_told_from_one_that_did_not)
{
    static const bool notes[] = {false, true, true, false, true};
    bool was_stopped = false;

    stage_folder();
    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
        open_store();
        CHECK(store_was_stopped(store) == was_stopped);
        was_stopped = notes[i];
        if (was_stopped)
            store_note_stop(store);
        close_store();
    }
    open_store();
    CHECK(store_was_stopped(store));
    leave();
}

TEST(a_log_without_its_database_is_not_thrown_away)
{
    pid_t child;
    int64_t log_bytes;

    stage_folder();
    child = fork();
    if (child == 0) {
        open_store();
        make_thing("a", 1);
        _exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(rename(path_of(DB_NAME), path_of("away")) == 0);
    log_bytes = size_of(DB_NAME "-wal");
    CHECK(log_bytes > 0);
    CHECK(open_says("but its log") == ERR_BAD_CONFIG);
    CHECK(size_of(DB_NAME) < 0 && size_of(DB_NAME "-wal") == log_bytes);
    CHECK(rename(path_of("away"), path_of(DB_NAME)) == 0);
    open_store();
    CHECK_INT(n_of("a"), 1);
    leave();
}

TEST(a_damaged_database_is_said_to_be)
{
    int fd;

    make_database();
    fd = open(path_of(DB_NAME), O_WRONLY);
    CHECK(fd >= 0 &&
          pwrite(fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, 100) == 8);
    close(fd);
    CHECK(open_says("is damaged") == ERR_BAD_CONFIG);
    loop_fini(&loop);
}

TEST(a_folder_in_the_place_of_the_database_is_named)
{
    CHECK(mkdir(path_of(DB_NAME), 0700) == 0);
    CHECK(open_says("is a folder") == ERR_BAD_CONFIG);
    loop_fini(&loop);
}

TEST(a_database_without_permission_is_said_so)
{
    make_database();
    CHECK(chmod(path_of(DB_NAME), 0) == 0);
    CHECK(getuid() != 0 ||
          (chown(stage_root, 65534, 65534) == 0 &&
           chown(path_of("signalbox.lock"), 65534, 65534) == 0 &&
           chown(path_of(DB_NAME), 65534, 65534) == 0 && seteuid(65534) == 0));
    CHECK(open_says("no permission") == ERR_NOT_ALLOWED);
    CHECK(chmod(path_of(DB_NAME), 0400) == 0);
    CHECK(open_says("no permission") == ERR_NOT_ALLOWED);
    CHECK(getuid() != 0 || seteuid(0) == 0);
    loop_fini(&loop);
}

TEST(a_path_that_is_too_long_is_said_to_be)
{
    static char path[DB_PATH_MAX + 10];
    struct store_opts opts = {.folder = path,
                              .schemas = schemas_v1,
                              .n_schemas = 1,
                              .max_waiting = 1,
                              .is_inline = true};
    struct why why = {""};

    memset(path, 'x', sizeof(path) - 1);
    CHECK(store_open(&store, &opts, &why) == ERR_LIMIT);
    CHECK(strstr(why.text, "too long"));
}

/* Locks. */

static const struct store_sabotage impatient = {.busy_ms = 1};

TEST(a_database_that_is_locked_is_said_to_be)
{
    sqlite3 *sql;

    store_sabotage(&impatient);
    make_database();
    sql = other_opens(DB_NAME);
    other_does(sql, "BEGIN IMMEDIATE");
    CHECK(open_says("is locked by another program") == ERR_BUSY);
    other_does(sql, "COMMIT; PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE");
    CHECK(open_says("is locked by another program") == ERR_BUSY);
    CHECK(sqlite3_close(sql) == SQLITE_OK);
    open_store();
    CHECK_INT(n_of("a"), 1);
    leave();
}

TEST(while_another_program_has_the_lock_txs_are_refused)
{
    struct tx_op *op;
    sqlite3 *sql;

    store_sabotage(&impatient);
    open_store();
    make_thing("a", 1);
    sql = other_opens(DB_NAME);
    other_does(sql, "BEGIN IMMEDIATE");
    for (int i = 0; i < 2; i++) {
        op = begin(tx_update, &thing);
        tx_set(op, THING_N, value_int(2));
        CHECK(commit(&single) == TX_REFUSED && single.err == ERR_BUSY);
        tx_fini(&single);
        CHECK_INT(n_of("a"), 1); /* reading goes on */
    }
    other_does(sql, "COMMIT");
    op = begin(tx_update, &thing);
    tx_set(op, THING_N, value_int(3));
    CHECK_INT(end(), TX_COMMITTED);
    CHECK_INT(n_of("a"), 3);
    CHECK(n_fatal_seen == 0);
    CHECK(sqlite3_close(sql) == SQLITE_OK);
    leave();
}

/* No space. */

/* A thing of so many bytes. */
static void big_thing(struct tx *tx, const char *id, size_t bytes)
{
    char *p = calloc(1, bytes);

    CHECK(p);
    tx_init(tx);
    tx_set(add_thing(tx, id, 0), THING_DATA,
           value_blob((struct str){p, bytes}));
    free(p);
}

TEST(a_tx_that_is_too_large_for_the_disk_leaves_room_for_the_small_ones)
{
    static const struct store_sabotage small = {.max_pages = 64};
    struct tx txs[5];

    store_sabotage(&small);
    open_store();
    for (int i = 0; i < 5; i++) {
        char id[2] = {(char)('a' + i), 0};

        big_thing(&txs[i], id, i == 2 ? 300 * 1024 : 100);
        submit(&txs[i]);
    }
    wait_for(5);
    for (int i = 0; i < 5; i++) {
        CHECK_INT(txs[i].result, i == 2 ? TX_REFUSED : TX_COMMITTED);
        CHECK(i != 2 || txs[i].err == ERR_NO_SPACE);
        tx_fini(&txs[i]);
    }
    CHECK(!store_stats(store).is_full); /* the last one was not refused */
    CHECK_INT(count(&thing), 4);
    leave();
}

TEST(a_full_store_refuses_keeps_what_it_has_and_recovers)
{
    static const struct store_sabotage small = {.max_pages = 64};
    struct tx tx;
    int n = 0;

    store_sabotage(&small);
    open_store();
    do {
        char id[16];

        snprintf(id, sizeof(id), "%d", n++);
        big_thing(&tx, id, 10 * 1024);
        commit(&tx);
        tx_fini(&tx);
        CHECK(n < 100);
    } while (tx.result == TX_COMMITTED);
    CHECK(tx.result == TX_REFUSED && tx.err == ERR_NO_SPACE);
    CHECK(store_stats(store).is_full && n > 5);
    CHECK_INT(count(&thing), n - 1);
    tx_init(&single);
    tx_prune(&single, &thing, 4);
    CHECK_INT(end(), TX_COMMITTED);
    CHECK(!store_stats(store).is_full);
    big_thing(&tx, "again", 10 * 1024);
    CHECK(commit(&tx) == TX_COMMITTED);
    tx_fini(&tx);
    CHECK_INT(count(&thing), n - 4);
    CHECK(n_fatal_seen == 0);
    leave();
}

/* The log itself may not grow: in the middle of a commit, and for real. */
TEST(a_log_without_room_refuses_and_recovers)
{
    struct rlimit was, now;
    struct tx tx;
    int n_kept = 0;

    signal(SIGXFSZ, SIG_IGN);
    open_store();
    CHECK(getrlimit(RLIMIT_FSIZE, &was) == 0);
    now = was;
    now.rlim_cur = 400 * 1024;
    CHECK(setrlimit(RLIMIT_FSIZE, &now) == 0);
    for (int i = 0; i < 60; i++) {
        char id[8];

        snprintf(id, sizeof(id), "%d", i);
        big_thing(&tx, id, 20 * 1024);
        n_kept += commit(&tx) == TX_COMMITTED;
        CHECK(tx.result == TX_COMMITTED ||
              (tx.result == TX_REFUSED && tx.err == ERR_NO_SPACE));
        tx_fini(&tx);
    }
    CHECK(n_kept > 5 && n_kept < 60);
    CHECK(n_fatal_seen == 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &was) == 0);
    big_thing(&tx, "again", 200 * 1024);
    CHECK(commit(&tx) == TX_COMMITTED);
    tx_fini(&tx);
    CHECK_INT(count(&thing), n_kept + 1);
    close_store();
    open_store();
    CHECK_INT(count(&thing), n_kept + 1);
    leave();
}

/* Files that go away. */

static void check_fatal(void)
{
    struct tx tx;

    for (int i = 0; i < 2; i++) {
        tx_init(&tx);
        add_thing(&tx, "lost", 1);
        CHECK(commit(&tx) == TX_FATAL && tx.err == ERR_IO);
        tx_fini(&tx);
    }
    CHECK_INT(n_fatal_seen, 1);
    CHECK(strstr(fatal_why.text, "moved, deleted, replaced or cut"));
}

TEST(a_database_that_is_deleted_under_us_ends_it)
{
    open_store();
    make_thing("a", 1);
    CHECK(unlink(path_of(DB_NAME)) == 0);
    check_fatal();
    leave();
}

TEST(a_log_that_is_deleted_under_us_ends_it)
{
    open_store();
    make_thing("a", 1);
    CHECK(unlink(path_of(DB_NAME "-wal")) == 0);
    check_fatal();
    leave();
}

TEST(a_database_that_is_replaced_under_us_ends_it)
{
    open_store();
    make_thing("a", 1);
    write_file("new", "x", 1);
    CHECK(rename(path_of("new"), path_of(DB_NAME)) == 0);
    check_fatal();
    leave();
}

TEST(a_database_that_is_cut_short_under_us_ends_it)
{
    open_store();
    make_thing("a", 1);
    CHECK(truncate(path_of(DB_NAME), DB_PAGE_BYTES) == 0);
    check_fatal();
    leave();
}

TEST(without_looking_a_deleted_database_would_not_be_noticed)
{
    static const struct store_sabotage blind = {.ignores_moved = true};

    store_sabotage(&blind);
    open_store();
    CHECK(unlink(path_of(DB_NAME)) == 0);
    CHECK(unlink(path_of(DB_NAME "-wal")) == 0);
    make_thing("a", 1); /* acknowledged, and lost */
    close_store();
    open_store();
    CHECK_INT(n_of("a"), -1);
    leave();
}

/* Failing syncs. */

static const char *const fatal_steps[] = {
    "store.begin.io",   "store.savepoint.io", "store.op.io",
    "store.release.io", "store.commit.io",    "store.sync",
};

TEST(after_a_failed_step_nothing_is_ever_acknowledged_again)
{
    for (size_t i = 0; i < sizeof(fatal_steps) / sizeof(fatal_steps[0]); i++) {
        struct tx txs[3];
        char id[8];

        n_fatal_seen = 0;
        open_store();
        fault_arm_at(fatal_steps[i], 1);
        for (int k = 0; k < 3; k++) {
            snprintf(id, sizeof(id), "%zu.%d", i, k);
            tx_init(&txs[k]);
            add_thing(&txs[k], id, 1);
            submit(&txs[k]);
            if (k == 1)
                wait_for(n_done + 2); /* two in the batch, one after it */
        }
        wait_for(n_done + 1);
        CHECK(fault_fired());
        for (int k = 0; k < 3; k++) {
            CHECK(txs[k].result == TX_FATAL && txs[k].err == ERR_IO);
            tx_fini(&txs[k]);
        }
        CHECK_INT(n_fatal_seen, 1);
        CHECK(strstr(fatal_why.text, DB_NAME));
        close_store();
        open_store();
        snprintf(id, sizeof(id), "%zu.2", i);
        CHECK_INT(n_of(id), -1); /* what came after it never happened */
        close_store();
    }
    loop_fini(&loop);
}

TEST(a_checkpoint_that_fails_ends_it_but_loses_nothing)
{
    static const struct store_sabotage eager = {.checkpoint_pages = 1};

    store_sabotage(&eager);
    open_store();
    fault_arm_at("store.checkpoint.io", 1);
    make_thing("a", 1); /* that one is in the log */
    CHECK(fault_fired());
    CHECK_INT(n_fatal_seen, 1);
    CHECK(strstr(fatal_why.text, "folding the log"));
    tx_init(&single);
    add_thing(&single, "b", 1);
    CHECK_INT(end(), TX_FATAL);
    close_store();
    open_store();
    CHECK_INT(n_of("a"), 1);
    CHECK_INT(n_of("b"), -1);
    leave();
}

TEST(an_early_acknowledgement_can_be_lost)
{
    static const struct store_sabotage early = {.acks_early = true};

    store_sabotage(&early);
    open_store();
    fault_arm_at("store.commit.io", 1);
    make_thing("a", 1); /* it says */
    CHECK(fault_fired());
    close_store();
    open_store();
    CHECK_INT(n_of("a"), -1);
    leave();
}

/* Reading, and the log. */

TEST(a_question_that_takes_too_long_is_given_up)
{
    static const struct store_sabotage hasty = {.read_ms = -1};
    struct query q;

    open_store();
    tx_init(&single);
    for (int i = 0; i < 2000; i++) {
        char id[8];

        snprintf(id, sizeof(id), "%d", i);
        add_thing(&single, id, i);
    }
    CHECK_INT(end(), TX_COMMITTED);
    close_store();
    store_sabotage(&hasty);
    open_store();
    query_init(&q, &thing, 1);
    query_if(&q, THING_N, IS, value_int(1999));
    CHECK(find(&q) == ERR_TOO_SLOW && q.n_rows == 0 && !q.rows);
    query_fini(&q);
    CHECK_INT(n_of("5"), 5); /* what is quick is found all the same */
    leave();
}

TEST(the_log_stays_short)
{
    char *bytes = calloc(1, 100 * 1024);
    int64_t most = 0;

    CHECK(bytes);
    open_store();
    for (int i = 0; i < 200; i++) { /* 20 MB in all */
        char id[8];

        snprintf(id, sizeof(id), "%d", i);
        tx_init(&single);
        tx_set(add_thing(&single, id, i), THING_DATA,
               value_blob((struct str){bytes, 100 * 1024}));
        CHECK_INT(end(), TX_COMMITTED);
        if (size_of(DB_NAME "-wal") > most)
            most = size_of(DB_NAME "-wal");
    }
    CHECK(most > 0 && most < 6 * 1024 * 1024);
    CHECK(store_stats(store).data_bytes > 10 * 1024 * 1024);
    free(bytes);
    leave();
}

TEST(who_reads_for_long_makes_the_log_long_but_not_for_ever)
{
    static const struct store_sabotage eager = {.checkpoint_pages = 10};
    sqlite3 *sql;
    int64_t n;

    store_sabotage(&eager);
    open_store();
    make_thing("first", 1);
    sql = other_opens(DB_NAME);
    other_does(sql, "PRAGMA wal_autocheckpoint=0; BEGIN");
    CHECK(db_ask(sql, "SELECT count(*) FROM thing", &n) == SQLITE_OK);
    for (int i = 0; i < 100; i++)
        append_feed("x");
    CHECK(store_stats(store).log_bytes > 100 * 4096);
    CHECK(db_ask(sql, "SELECT count(*) FROM feed", &n) == SQLITE_OK && n == 0);
    other_does(sql, "COMMIT");
    for (int i = 0; i < 40; i++)
        append_feed("x");
    CHECK(store_stats(store).log_bytes < 40 * 4096);
    CHECK(sqlite3_close(sql) == SQLITE_OK);
    leave();
}
