#include "base/fault.h"
#include "store/store.h"
#include "test/lib/folder.h"
#include "test/t.h"

#include <fcntl.h>
#include <sys/stat.h>

/* A folder of this test's own, gone with it. */
static char root[64];

static void remove_root(void)
{
    folder_remove(root);
}

static struct str in_root(const char *name)
{
    static char path[256];

    if (!root[0]) {
        snprintf(root, sizeof(root), "%s/signalbox-test-XXXXXX", t_above());
        CHECK(mkdtemp(root));
        atexit(remove_root);
    }
    snprintf(path, sizeof(path), "%s/%s", root, name);
    return str_of(path);
}

static bool mentions(const struct why *why, const char *what)
{
    return strstr(why->text, what) != NULL;
}

TEST(a_missing_folder_is_made_for_its_owner_alone)
{
    struct store_folder f;
    struct why why;
    struct stat st;

    CHECK(store_folder_look(in_root("data"), &why) == OK);
    CHECK(stat(in_root("data").p, &st) != 0); /* looking makes nothing */
    CHECK(store_folder_open(&f, in_root("data"), &why) == OK);
    CHECK(stat(f.path, &st) == 0 && (st.st_mode & 0777) == 0700);
    store_folder_close(&f);
    CHECK(store_folder_open(&f, in_root("data"), &why) == OK);
    store_folder_close(&f);
}

TEST(a_missing_folder_above_is_named)
{
    struct store_folder f;
    struct why why;

    CHECK(store_folder_open(&f, in_root("no/data"), &why) == ERR_NOT_FOUND);
    CHECK(mentions(&why, "no/data") && mentions(&why, "--data"));
    CHECK(store_folder_look(in_root("no/data"), &why) == ERR_NOT_FOUND);
    CHECK(mentions(&why, "/no is missing"));
}

TEST(a_file_is_no_folder)
{
    struct store_folder f;
    struct why why;

    CHECK(close(creat(in_root("file").p, 0600)) == 0);
    CHECK(store_folder_open(&f, in_root("file"), &why) == ERR_BAD_CONFIG);
    CHECK(mentions(&why, "not a folder"));
    CHECK(store_folder_look(in_root("file"), &why) == ERR_BAD_CONFIG);
}

TEST(a_folder_that_others_may_write_to_is_noticed)
{
    struct store_folder f;
    struct why why;

    CHECK(!store_folder_is_ours(in_root("data")));
    CHECK(store_folder_open(&f, in_root("data"), &why) == OK && !f.is_shared);
    store_folder_close(&f);
    CHECK(store_folder_is_ours(in_root("data")));
    CHECK(chmod(in_root("data").p, 0770) == 0);
    CHECK(store_folder_open(&f, in_root("data"), &why) == OK && f.is_shared);
    store_folder_close(&f);
}

TEST(looking_does_not_get_in_the_way_of_opening)
{
    struct store_folder f;
    struct why why;
    pid_t child;

    CHECK(store_folder_open(&f, in_root("data"), &why) == OK);
    store_folder_close(&f);
    child = fork();
    if (child == 0)
        for (;;)
            CHECK(store_folder_look(in_root("data"), &why) != ERR_IO);
    for (int i = 0; i < 2000; i++) {
        CHECK(store_folder_open(&f, in_root("data"), &why) == OK);
        store_folder_close(&f);
    }
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

TEST(two_servers_do_not_share_a_folder)
{
    struct store_folder a, b;
    struct why why;
    char pid[32];

    snprintf(pid, sizeof(pid), "process %ld:", (long)getpid());
    CHECK(store_folder_open(&a, in_root("data"), &why) == OK);
    CHECK(store_folder_open(&b, in_root("data"), &why) == ERR_BUSY);
    CHECK(mentions(&why, pid) && mentions(&why, "--data"));
    CHECK(store_folder_look(in_root("data"), &why) == ERR_BUSY);
    store_folder_close(&b); /* closing what was not opened is harmless */
    store_folder_close(&a);
    CHECK(store_folder_open(&b, in_root("data"), &why) == OK);
    store_folder_close(&b);
}

TEST(deleting_the_lock_file_lets_nobody_in)
{
    struct store_folder a, b;
    struct why why;

    CHECK(store_folder_open(&a, in_root("data"), &why) == OK);
    CHECK(unlink(in_root("data/signalbox.lock").p) == 0);
    CHECK(store_folder_look(in_root("data"), &why) == ERR_BUSY);
    CHECK(mentions(&why, "in use by another signalbox"));
    for (int i = 0; i < 2; i++) { /* the first makes another lock file */
        CHECK(store_folder_open(&b, in_root("data"), &why) == ERR_BUSY);
        CHECK(mentions(&why, "in use by another signalbox"));
        CHECK(b.lock_fd == -1 && b.folder_fd == -1);
        CHECK(store_folder_look(in_root("data"), &why) == ERR_BUSY);
    }
    store_folder_close(&a);
    CHECK(store_folder_look(in_root("data"), &why) == OK);
    CHECK(store_folder_open(&b, in_root("data"), &why) == OK);
    store_folder_close(&b);
}

TEST(a_folder_remembers_that_it_was_used)
{
    struct store_folder f;
    struct why why;

    for (int i = 0; i < 2; i++) {
        CHECK(store_folder_open(&f, in_root("data"), &why) == OK);
        CHECK(!f.was_used && !store_folder_was_used(in_root("data")));
        if (i == 1)
            store_folder_set_used(&f);
        store_folder_close(&f);
    }
    CHECK(store_folder_was_used(in_root("data")));
    for (int i = 0; i < 2; i++) {
        CHECK(store_folder_open(&f, in_root("data"), &why) == OK && f.was_used);
        store_folder_close(&f);
    }
}

TEST(a_lock_dies_with_its_process)
{
    struct store_folder f;
    struct why why;
    int status;
    pid_t child = fork();

    if (child == 0) {
        CHECK(store_folder_open(&f, in_root("data"), &why) == OK);
        kill(getpid(), SIGKILL);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK(store_folder_open(&f, in_root("data"), &why) == OK);
    store_folder_close(&f);
}

TEST(a_folder_without_permission_is_said_so)
{
    struct store_folder f;
    struct why why;
    struct str path = in_root("data");

    CHECK(mkdir(path.p, 0500) == 0);
    /* Root may write anywhere: drop to another user. */
    CHECK(getuid() != 0 || (chmod(root, 0755) == 0 && seteuid(65534) == 0));
    CHECK(store_folder_open(&f, path, &why) == ERR_NOT_ALLOWED);
    CHECK(mentions(&why, "permission"));
    CHECK(getuid() != 0 || seteuid(0) == 0);
}

TEST(opening_survives_every_fault)
{
    long nth = 0;

    in_root("");
    do {
        struct store_folder f;
        struct why why = {""};
        enum err e;

        fault_arm(++nth);
        e = store_folder_open(&f, in_root("data"), &why);
        CHECK(fault_fired() ? e != OK && why.text[0] : e == OK);
        if (e)
            CHECK(f.lock_fd == -1 && f.folder_fd == -1 && !f.path);
        store_folder_close(&f);
    } while (fault_fired());
    CHECK(nth > 5);
}
