/* Copies of the whole: made while the store works, put back in its place. */
#include "store/internal.h"
#include "test/lib/store_stage.h"

#include <fcntl.h>
#include <sys/stat.h>

static bool is_inline;

static void stage_opts(struct store_opts *opts)
{
    opts->is_inline = is_inline;
}

static struct str path_of(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", stage_folder().p, name);
    return str_of(path);
}

static bool is_there(const char *name)
{
    return access(path_of(name).p, F_OK) == 0;
}

static int n_told, last_permille;

static void on_progress(void *ctx, int permille)
{
    (void)ctx;
    CHECK(permille >= last_permille && permille <= 1000);
    last_permille = permille;
    n_told++;
}

static enum err back_up(const char *name, struct why *why)
{
    last_permille = 0;
    return store_backup(stage_folder(), path_of(name), on_progress, NULL, why);
}

static enum err put_back(const char *name, char kept[256], struct why *why)
{
    enum err e = store_folder_open(&folder, stage_folder(), why);

    last_permille = 0;
    if (!e)
        e = store_restore(&folder, path_of(name), kept, on_progress, NULL, why);
    store_folder_close(&folder);
    return e;
}

static void fill_store(int from, int to)
{
    char *bytes = calloc(1, 50000);

    CHECK(bytes);
    for (int i = from; i < to; i++) {
        char id[16];

        snprintf(id, sizeof(id), "%d", i);
        tx_init(&single);
        tx_set(add_thing(&single, id, i), THING_DATA,
               value_blob((struct str){bytes, 50000}));
        CHECK_INT(end(), TX_COMMITTED);
    }
    free(bytes);
}

/* A run that ends with its log still beside the database. */
static void crash_after(const char *id, int64_t n)
{
    pid_t child;

    stage_folder();
    child = fork();
    if (child == 0) {
        is_inline = true;
        open_store();
        make_thing(id, n);
        _exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(is_there("signalbox.db-wal"));
}

TEST(a_backup_is_what_was_there_when_it_began)
{
    struct why why = {""};
    char kept[256];
    struct stat st;

    open_store();
    fill_store(0, 100);
    CHECK(back_up("copy", &why) == OK);
    CHECK(last_permille == 1000 && n_told > 2);
    fill_store(100, 120); /* the store never noticed */
    CHECK_INT(count(&feed), 0);
    CHECK(stat(path_of("copy").p, &st) == 0 && (st.st_mode & 0777) == 0600);
    CHECK(!is_there("copy-wal") && !is_there("copy-journal"));
    close_store();
    CHECK(put_back("copy", kept, &why) == OK);
    CHECK(str_starts(str_of(kept), STR("signalbox.db.kept-")));
    CHECK(is_there(kept) && is_there("copy"));
    open_store();
    CHECK_INT(store_epoch(store), 2);
    CHECK_INT(n_of("99"), 99);
    CHECK_INT(n_of("100"), -1);
    close_store();
    /* And back again to what was kept. */
    CHECK(rename(path_of(kept).p, path_of("old").p) == 0);
    CHECK(put_back("old", kept, &why) == OK);
    open_store();
    CHECK_INT(n_of("119"), 119);
    leave();
}

/* What a page of the copy holds was committed before one and the same
 * moment, however much is written meanwhile. */
static struct tx busy;
static bool is_over;
static int64_t n_written;

static void on_busy(struct tx *tx, void *ctx)
{
    (void)ctx;
    CHECK(tx->result == TX_COMMITTED);
    tx_fini(tx);
    n_written++;
    if (is_over)
        return;
    tx_init(tx);
    tx_add(tx, &thing, THING_N, 1, 0);
    tx_if(tx->first, THING_ID, IS, value_text(STR("0")));
    tx_add(tx, &thing, THING_N, -1, -100000);
    tx_if(tx->first->next, THING_ID, IS, value_text(STR("199")));
    store_submit(store, tx, on_busy, NULL);
}

static void turn_meanwhile(void *ctx, int permille)
{
    int64_t before = n_written;

    (void)ctx;
    (void)permille;
    while (n_written < before + 2)
        loop_turn(&loop);
}

TEST(a_backup_is_consistent_while_the_store_writes)
{
    struct why why = {""};
    char kept[256];

    open_store();
    fill_store(0, 200); /* ten megabytes: several steps */
    tx_init(&busy);
    store_submit(store, &busy, on_busy, NULL);
    CHECK(store_backup(stage_folder(), path_of("copy"), turn_meanwhile, NULL,
                       &why) == OK);
    is_over = true;
    close_store();
    CHECK(n_written > 3);
    CHECK(put_back("copy", kept, &why) == OK);
    open_store();
    CHECK_INT(n_of("0") + n_of("199"), 199);
    leave();
}

TEST(a_backup_overwrites_nothing)
{
    struct why why = {""};

    CHECK(back_up("copy", &why) == ERR_NOT_FOUND);
    CHECK(strstr(why.text, "no database in"));
    open_store();
    CHECK(close(creat(path_of("copy").p, 0600)) == 0);
    CHECK(back_up("copy", &why) == ERR_BUSY);
    CHECK(strstr(why.text, "is there already"));
    CHECK(back_up("no/copy", &why) == ERR_NOT_FOUND);
    CHECK(strstr(why.text, "no/copy: ") && !strstr(why.text, ".tmp"));
    leave();
}

TEST(a_backup_after_a_crash_has_what_was_in_the_log)
{
    struct why why = {""};
    char kept[256];

    crash_after("a", 7);
    CHECK(back_up("copy", &why) == OK);
    CHECK(unlink(path_of("signalbox.db").p) == 0);
    CHECK(unlink(path_of("signalbox.db-wal").p) == 0);
    CHECK(unlink(path_of("signalbox.db-shm").p) == 0);
    CHECK(put_back("copy", kept, &why) == OK);
    CHECK(kept[0] == '\0'); /* there was nothing to keep */
    open_store();
    CHECK_INT(n_of("a"), 7);
    leave();
}

TEST(the_log_of_the_old_database_never_gets_into_the_new_one)
{
    struct why why = {""};
    char kept[256];

    open_store();
    make_thing("a", 1);
    CHECK(back_up("copy", &why) == OK);
    close_store();
    crash_after("b", 2);
    CHECK(put_back("copy", kept, &why) == OK);
    CHECK(!is_there("signalbox.db-wal"));
    open_store();
    CHECK_INT(n_of("a"), 1);
    CHECK_INT(n_of("b"), -1);
    close_store();
    /* What was kept has its log folded in. */
    CHECK(rename(path_of(kept).p, path_of("old").p) == 0);
    CHECK(put_back("old", kept, &why) == OK);
    open_store();
    CHECK_INT(n_of("b"), 2);
    leave();
}

TEST(the_log_of_a_database_that_is_gone_does_not_either)
{
    struct why why = {""};
    char kept[256];

    open_store();
    make_thing("a", 1);
    CHECK(back_up("copy", &why) == OK);
    close_store();
    crash_after("b", 2);
    CHECK(unlink(path_of("signalbox.db").p) == 0);
    CHECK(put_back("copy", kept, &why) == OK);
    open_store();
    CHECK_INT(n_of("a"), 1);
    CHECK_INT(n_of("b"), -1);
    leave();
}

TEST(a_broken_database_is_kept_with_its_log)
{
    struct why why = {""};
    char kept[256], name[300];
    FILE *f;

    open_store();
    make_thing("a", 1);
    CHECK(back_up("copy", &why) == OK);
    close_store();
    crash_after("b", 2);
    CHECK(truncate(path_of("signalbox.db-shm").p, 0) == 0);
    f = fopen(path_of("signalbox.db").p, "r+b");
    CHECK(f && fwrite("garbage, not a database", 1, 23, f) == 23);
    CHECK(fclose(f) == 0);
    f = fopen(path_of("signalbox.db-wal").p, "r+b"); /* nor a log */
    CHECK(f && fwrite("garbage, not a log", 1, 18, f) == 18);
    CHECK(fclose(f) == 0);
    CHECK(put_back("copy", kept, &why) == OK);
    snprintf(name, sizeof(name), "%s-wal", kept);
    CHECK(is_there(kept) && is_there(name));
    open_store();
    CHECK_INT(n_of("a"), 1);
    CHECK_INT(n_of("b"), -1);
    leave();
}

/* Start it n times more; the last epoch. */
static int64_t start_often(int n)
{
    int64_t epoch = 0;

    while (n-- > 0) {
        open_store();
        epoch = store_epoch(store);
        close_store();
    }
    return epoch;
}

TEST(no_epoch_comes_twice_whatever_is_put_back)
{
    struct why why = {""};
    char kept[256];

    is_inline = true;
    CHECK_INT(start_often(2), 2);
    CHECK(back_up("early", &why) == OK);
    CHECK_INT(start_often(5), 7);
    CHECK(back_up("late", &why) == OK);
    CHECK_INT(start_often(1), 8);
    CHECK(put_back("early", kept, &why) == OK && why.text[0] == '\0');
    CHECK(put_back("early", kept, &why) == OK); /* twice in a row */
    CHECK_INT(start_often(1), 9);
    CHECK(put_back("late", kept, &why) == OK);
    CHECK_INT(start_often(1), 10);
    crash_after("a", 1); /* what is in the log alone counts too */
    CHECK(put_back("early", kept, &why) == OK);
    CHECK_INT(start_often(1), 12);
    /* A folder that has had fewer is another one: where the backup was made
     * there may have been more since. */
    CHECK(back_up("most", &why) == OK);
    CHECK(unlink(path_of("signalbox.db").p) == 0);
    CHECK_INT(start_often(1), 1);
    CHECK(put_back("most", kept, &why) == OK);
    CHECK_INT(start_often(1), 1013);
    loop_fini(&loop);
}

/* Make the database unreadable, or its count of starts impossible. */
static void damage(int how)
{
    static const char *const texts[] = {
        "UPDATE signalbox_meta SET value = 1 << 40 WHERE kind = 'epoch'",
        "UPDATE signalbox_meta SET value = -5 WHERE kind = 'epoch'"};
    sqlite3 *sql;
    FILE *f;

    if (how == 2) {
        f = fopen(path_of("signalbox.db").p, "r+b");
        CHECK(f && fwrite("garbage, not a database", 1, 23, f) == 23);
        CHECK(fclose(f) == 0);
        return;
    }
    CHECK(sqlite3_open(path_of("signalbox.db").p, &sql) == SQLITE_OK);
    CHECK(db_exec(sql, texts[how]) == SQLITE_OK);
    CHECK(sqlite3_close(sql) == SQLITE_OK);
}

TEST(of_a_damaged_database_the_mark_knows_the_epoch)
{
    struct why why = {""};
    char kept[256];

    is_inline = true;
    CHECK_INT(start_often(1), 1);
    CHECK(back_up("copy", &why) == OK);
    CHECK_INT(start_often(4), 5);
    for (int how = 0; how < 3; how++) {
        damage(how);
        CHECK(put_back("copy", kept, &why) == OK && kept[0]);
        CHECK(strstr(why.text, "cannot be read; that was taken from"));
        CHECK_INT(start_often(1), 6 + how);
    }
    CHECK(unlink(path_of("signalbox.db").p) == 0);
    CHECK(put_back("copy", kept, &why) == OK && why.text[0] == '\0');
    CHECK_INT(start_often(1), 9);
    loop_fini(&loop);
}

TEST(where_the_old_epoch_is_not_known_there_is_a_margin)
{
    static const char *const marks[] = {"", "0000000000000000005",
                                        "9999999999999999999\n",
                                        "00000000000000000x5\n"};
    struct why why = {""};
    char kept[256];

    is_inline = true;
    CHECK_INT(start_often(1), 1);
    CHECK(back_up("copy", &why) == OK);
    for (int i = 0; i < 4; i++) {
        FILE *f = fopen(path_of(MARK_NAME).p, "wb");

        CHECK(f && fputs(marks[i], f) >= 0 && fclose(f) == 0);
        damage(i % 3);
        CHECK(put_back("copy", kept, &why) == OK);
        CHECK(strstr(why.text, "a thousand starts were added"));
        CHECK_INT(start_often(1), 1002);
    }
    /* A new folder has nothing to say, but may stand for one that is lost. */
    CHECK(unlink(path_of("signalbox.db").p) == 0);
    CHECK(unlink(path_of(MARK_NAME).p) == 0);
    CHECK(put_back("copy", kept, &why) == OK && why.text[0] == '\0');
    CHECK_INT(start_often(1), 1002);
    loop_fini(&loop);
}

TEST(only_a_whole_backup_of_ours_is_put_back)
{
    struct why why = {""};
    char kept[256];
    struct stat st;
    sqlite3 *sql;
    FILE *f;

    open_store();
    fill_store(0, 50);
    CHECK(back_up("copy", &why) == OK);
    close_store();
    CHECK(put_back("missing", kept, &why) == ERR_NOT_FOUND);
    CHECK(put_back("signalbox.db", kept, &why) == ERR_USAGE);
    CHECK(strstr(why.text, "is the database itself"));

    f = fopen(path_of("diary").p, "wb");
    CHECK(f && fwrite("Dear diary, no database here", 1, 28, f) == 28);
    CHECK(fclose(f) == 0);
    CHECK(put_back("diary", kept, &why) == ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "diary is not a backup: name a file"));
    CHECK(close(creat(path_of("empty").p, 0600)) == 0);
    CHECK(put_back("empty", kept, &why) == ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "empty is empty: name a file"));
    CHECK(mkdir(path_of("shelf").p, 0700) == 0);
    CHECK(put_back("shelf", kept, &why) == ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "shelf is a folder: name a file"));

    CHECK(sqlite3_open(path_of("theirs").p, &sql) == SQLITE_OK);
    CHECK(db_exec(sql, "CREATE TABLE x(y)") == SQLITE_OK);
    CHECK(sqlite3_close(sql) == SQLITE_OK);
    CHECK(put_back("theirs", kept, &why) == ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "another program, and no backup"));
    CHECK(!strstr(why.text, "--data"));

    CHECK(link(path_of("copy").p, path_of("later").p) == 0);
    CHECK(sqlite3_open(path_of("later").p, &sql) == SQLITE_OK);
    CHECK(db_exec(sql, "PRAGMA user_version=999") == SQLITE_OK);
    CHECK(put_back("later", kept, &why) == ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "later is of a newer signalbox"));
    CHECK(db_exec(sql, "PRAGMA user_version=1") == SQLITE_OK);
    CHECK(sqlite3_close(sql) == SQLITE_OK);

    CHECK(stat(path_of("copy").p, &st) == 0);
    CHECK(truncate(path_of("copy").p, st.st_size / 2) == 0);
    CHECK(put_back("copy", kept, &why) == ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "the backup ") && strstr(why.text, "damaged"));
    CHECK(!strstr(why.text, "signalbox restore"));
    CHECK(!is_there("signalbox.db.restoring") && kept[0] == '\0');
    open_store(); /* what was there is still there */
    CHECK_INT(n_of("49"), 49);
    leave();
}

TEST(looking_at_a_database_changes_nothing)
{
    struct store_about about;
    struct why why = {""};

    CHECK(store_look_at(stage_folder(), &about, &why) == ERR_NOT_FOUND);
    open_store();
    fill_store(0, 3);
    CHECK(store_look_at(stage_folder(), &about, &why) == OK);
    CHECK(about.log_bytes > 0 && about.n_starts == 1);
    close_store();
    CHECK(store_look_at(stage_folder(), &about, &why) == OK);
    CHECK(about.data_bytes > 0 && about.log_bytes == 0 && about.n_starts == 1 &&
          about.is_checked_whole);
    CHECK(!is_there("signalbox.db-wal") && !is_there("signalbox.db-shm"));
    CHECK(truncate(path_of("signalbox.db").p, about.data_bytes / 2) == 0);
    CHECK(store_look_at(stage_folder(), &about, &why) == ERR_BAD_CONFIG);
    loop_fini(&loop);
}

TEST(a_folder_with_odd_characters_can_be_looked_at)
{
    struct store_opts opts = {.schemas = schemas_v1,
                              .n_schemas = 1,
                              .max_waiting = 1,
                              .is_inline = true};
    struct store_about about;
    struct why why = {""};
    struct str odd = path_of("a %20?b#c");

    CHECK(mkdir(odd.p, 0700) == 0);
    opts.folder = odd.p;
    CHECK(store_open(&store, &opts, &why) == OK);
    store_close(store);
    CHECK(store_look_at(odd, &about, &why) == OK);
    CHECK(about.n_starts == 1);
    loop_fini(&loop);
}

/* Every step fails once: the one or the other is there, whole. */
TEST(a_backup_survives_every_fault)
{
    struct why why;
    long nth = 0;
    bool has_fired;

    is_inline = true;
    open_store();
    make_thing("a", 1);
    do {
        const char *name;
        enum err e;

        why.text[0] = '\0';
        fault_arm(++nth);
        e = back_up("copy", &why);
        has_fired = fault_fired();
        name = has_fired ? fault_name() : "";
        fault_arm(0);
        CHECK(has_fired ? e != OK && why.text[0] : e == OK);
        /* When only the sync of the name failed, it may be there. */
        if (strcmp(name, "store.backup.sync") != 0)
            CHECK(is_there("copy") == !has_fired);
        unlink(path_of("copy").p);
    } while (has_fired);
    CHECK(nth > 8);
    leave();
}

TEST(restoring_survives_every_fault)
{
    struct why why;
    char kept[256];
    long nth = 0;
    bool has_fired;

    is_inline = true;
    open_store();
    make_thing("new", 1);
    CHECK(back_up("copy", &why) == OK);
    close_store();
    do {
        enum err e;
        int64_t n_new, n_old;

        crash_after("old", 2);
        why.text[0] = '\0';
        fault_arm(++nth);
        e = put_back("copy", kept, &why);
        has_fired = fault_fired();
        fault_arm(0);
        CHECK(has_fired ? e != OK && why.text[0] : e == OK);
        open_store();
        n_new = n_of("new");
        n_old = n_of("old");
        CHECK(n_new == 1 && (n_old == 2 || n_old == -1));
        CHECK(e || n_old == -1);
        if (n_old == 2) {
            struct tx_op *op = begin(tx_delete, &thing);

            tx_if(op, THING_ID, IS, value_text(STR("old")));
            CHECK_INT(end(), TX_COMMITTED);
        }
        close_store();
    } while (has_fired);
    CHECK(nth > 15);
    loop_fini(&loop);
}
