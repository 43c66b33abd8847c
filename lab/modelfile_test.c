#include "lab/modelfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "test/lib/folder.h"
#include "test/t.h"

struct stage {
    char home[64], data[80];
    struct modelfile m;
    struct why why;
};

static void begin(struct stage *s)
{
    snprintf(s->home, sizeof(s->home), "/tmp/signalbox-modelfile-XXXXXX");
    CHECK(mkdtemp(s->home) != NULL);
    snprintf(s->data, sizeof(s->data), "%s/data", s->home);
    CHECK_INT(modelfile_find(&s->m, str_of(s->data), "toy.sbm", &s->why), OK);
}

static void end(struct stage *s)
{
    folder_remove(s->home);
}

static bool is_there(const struct stage *s, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", s->home, name);
    return access(path, F_OK) == 0;
}

/* Other files in the folder. */
static size_t n_beside(const struct stage *s)
{
    DIR *d = opendir(s->m.folder);
    const struct dirent *entry;
    size_t n = 0;

    while (d && (entry = readdir(d)))
        n += entry->d_name[0] != '.' && strcmp(entry->d_name, "toy.sbm") != 0;
    if (d)
        closedir(d);
    return n;
}

static struct str content(const struct stage *s, char *text, size_t size)
{
    FILE *f = fopen(s->m.path, "r");
    size_t n = f ? fread(text, 1, size, f) : 0;

    if (f)
        fclose(f);
    return (struct str){text, n};
}

static enum err check(void *ctx, const char *path, struct why *why)
{
    enum err *e = ctx;

    CHECK(access(path, R_OK) == 0);
    return *e ? why_err(why, *e, "it is no good") : OK;
}

static enum err install(struct stage *s, struct str bytes, enum err finding)
{
    enum err e = modelfile_hold(&s->m, true, &s->why);

    if (e)
        return e;
    e = modelfile_write(&s->m, bytes, check, &finding, &s->why);
    modelfile_release(&s->m);
    return e;
}

TEST(a_file_is_put_in_a_folder_that_is_made)
{
    struct stage s;
    struct stat st;
    char text[16];

    begin(&s);
    CHECK_INT(modelfile_look(&s.m, &s.why), OK);
    CHECK(!is_there(&s, "data"));
    CHECK_INT(install(&s, STR("one"), OK), OK);
    CHECK_STR(content(&s, text, sizeof(text)), "one");
    CHECK(stat(s.data, &st) == 0 && (st.st_mode & 0777) == 0700);
    CHECK_INT(install(&s, STR("two"), OK), OK);
    CHECK_STR(content(&s, text, sizeof(text)), "two");
    CHECK_INT(n_beside(&s), 0);
    end(&s);
}

TEST(who_has_the_old_file_open_keeps_it)
{
    struct stage s;
    char text[16] = "";
    int fd;

    begin(&s);
    CHECK_INT(install(&s, STR("one"), OK), OK);
    fd = open(s.m.path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_INT(install(&s, STR("two"), OK), OK);
    CHECK_INT(read(fd, text, sizeof(text)), 3);
    CHECK(memcmp(text, "one", 3) == 0);
    close(fd);
    end(&s);
}

TEST(a_file_that_is_no_good_gets_no_name)
{
    struct stage s;
    char text[16];

    begin(&s);
    CHECK_INT(install(&s, STR("bad"), ERR_BAD_CONFIG), ERR_BAD_CONFIG);
    CHECK(!is_there(&s, "data"));
    CHECK_INT(install(&s, STR("one"), OK), OK);
    CHECK_INT(install(&s, STR("bad"), ERR_BAD_CONFIG), ERR_BAD_CONFIG);
    CHECK_STR(content(&s, text, sizeof(text)), "one");
    CHECK_INT(n_beside(&s), 0);
    end(&s);
}

static void leave_behind(const struct stage *s, const char *name)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/data/models/%s", s->home, name);
    f = fopen(path, "w");
    CHECK(f && fputs("half of something longer", f) >= 0 && fclose(f) == 0);
}

TEST(what_somebody_left_behind_is_swept_up)
{
    struct stage s;
    char text[16];

    begin(&s);
    CHECK_INT(install(&s, STR("one"), OK), OK);
    leave_behind(&s, "toy.sbm.new");
    leave_behind(&s, "toy.sbm.new-a1b2c3");
    leave_behind(&s, "another.sbm.new");
    leave_behind(&s, "toy.sbm.newer");
    CHECK_INT(install(&s, STR("two"), OK), OK);
    CHECK_STR(content(&s, text, sizeof(text)), "two");
    CHECK_INT(n_beside(&s), 2);
    CHECK(is_there(&s, "data/models/another.sbm.new"));
    CHECK(is_there(&s, "data/models/toy.sbm.newer"));
    leave_behind(&s, "toy.sbm.new-a1b2c3");
    CHECK_INT(modelfile_hold(&s.m, false, &s.why), OK);
    CHECK_INT(modelfile_remove(&s.m, &s.why), OK);
    modelfile_release(&s.m);
    CHECK_INT(n_beside(&s), 2);
    end(&s);
}

TEST(everybody_may_read_it_whatever_the_umask)
{
    struct stage s;
    struct stat st;

    begin(&s);
    umask(0077);
    CHECK_INT(install(&s, STR("one"), OK), OK);
    CHECK(stat(s.m.path, &st) == 0);
    CHECK_INT(st.st_mode & 0777, 0644);
    CHECK(stat(s.m.folder, &st) == 0);
    CHECK_INT(st.st_mode & 0777, 0755);
    end(&s);
}

TEST(one_at_a_time)
{
    struct stage s;
    struct modelfile other;

    begin(&s);
    CHECK_INT(modelfile_hold(&s.m, true, &s.why), OK);
    CHECK_INT(modelfile_find(&other, str_of(s.data), "toy.sbm", &s.why), OK);
    CHECK_INT(modelfile_hold(&other, true, &s.why), ERR_BUSY);
    modelfile_release(&s.m);
    CHECK(!is_there(&s, "data"));
    CHECK_INT(modelfile_hold(&other, true, &s.why), OK);
    modelfile_release(&other);
    end(&s);
}

/* Another process may lock the folder that was just created, and be about to
 * write. */
TEST(a_folder_that_another_holds_is_not_taken_away)
{
    struct stage s;

    begin(&s);
    fault_arm_at("modelfile.lock", 1);
    CHECK_INT(modelfile_hold(&s.m, true, &s.why), ERR_BUSY);
    CHECK(is_there(&s, "data/models"));
    CHECK_INT(install(&s, STR("one"), OK), OK);
    end(&s);
}

TEST(a_folder_that_was_taken_away_meanwhile_is_made_again)
{
    struct stage s;
    char text[16];

    begin(&s);
    fault_arm_at("modelfile.gone", 1);
    CHECK_INT(install(&s, STR("one"), OK), OK);
    CHECK(fault_fired());
    CHECK_STR(content(&s, text, sizeof(text)), "one");
    CHECK_INT(modelfile_hold(&s.m, false, &s.why), OK);
    CHECK_INT(modelfile_remove(&s.m, &s.why), OK);
    modelfile_release(&s.m);
    fault_arm_at("modelfile.gone", 1);
    CHECK_INT(modelfile_hold(&s.m, false, &s.why), ERR_NOT_FOUND);
    end(&s);
}

/* Like a file system without locks. */
static void unlock(struct modelfile *m)
{
    CHECK(flock(m->fd, LOCK_UN) == 0);
    m->is_locked = false;
}

TEST(without_locks_two_do_not_write_into_one_file)
{
    struct stage s;
    struct modelfile other;
    enum err good = OK;
    char text[16];

    begin(&s);
    CHECK_INT(modelfile_hold(&s.m, true, &s.why), OK);
    unlock(&s.m);
    CHECK_INT(modelfile_find(&other, str_of(s.data), "toy.sbm", &s.why), OK);
    CHECK_INT(modelfile_hold(&other, true, &s.why), OK);
    unlock(&other);
    modelfile_release(&other);
    CHECK(is_there(&s, "data/models"));
    CHECK_INT(modelfile_write(&s.m, STR("one"), check, &good, &s.why), OK);
    modelfile_release(&s.m);
    CHECK_STR(content(&s, text, sizeof(text)), "one");
    end(&s);
}

TEST(folders_that_cannot_be_are_told_of_beforehand)
{
    struct stage s;
    struct modelfile m;
    char path[128];
    FILE *f;

    begin(&s);
    snprintf(path, sizeof(path), "%s/no/where", s.home);
    CHECK_INT(modelfile_find(&m, str_of(path), "toy.sbm", &s.why), OK);
    CHECK_INT(modelfile_look(&m, &s.why), ERR_NOT_FOUND);
    CHECK_INT(modelfile_hold(&m, true, &s.why), ERR_NOT_FOUND);
    snprintf(path, sizeof(path), "%s/file", s.home);
    f = fopen(path, "w");
    CHECK(f && fclose(f) == 0);
    CHECK_INT(modelfile_find(&m, str_of(path), "toy.sbm", &s.why), OK);
    CHECK(modelfile_look(&m, &s.why) != OK);
    CHECK(modelfile_hold(&m, true, &s.why) != OK);
    if (geteuid() != 0) {
        CHECK(chmod(s.home, 0500) == 0);
        CHECK_INT(modelfile_look(&s.m, &s.why), ERR_NOT_ALLOWED);
        CHECK_INT(modelfile_hold(&s.m, true, &s.why), ERR_NOT_ALLOWED);
        CHECK(chmod(s.home, 0700) == 0);
    }
    end(&s);
}

TEST(a_name_that_is_too_long_is_refused)
{
    static char name[MODELFILE_PATH_MAX];
    struct modelfile m;
    struct why why;

    memset(name, 'x', sizeof(name));
    CHECK_INT(
        modelfile_find(&m, (struct str){name, sizeof(name)}, "toy.sbm", &why),
        ERR_LIMIT);
    CHECK_INT(modelfile_find(&m, (struct str){name, sizeof(name) - 7 - 32},
                             "toy.sbm", &why),
              OK);
    CHECK_INT(strlen(m.path), sizeof(name) - 39 + strlen("/models/toy.sbm"));
}

TEST(removing_takes_the_file_and_leaves_the_folder)
{
    struct stage s;

    begin(&s);
    CHECK_INT(modelfile_hold(&s.m, false, &s.why), ERR_NOT_FOUND);
    CHECK(!is_there(&s, "data"));
    CHECK_INT(install(&s, STR("one"), OK), OK);
    CHECK_INT(modelfile_hold(&s.m, false, &s.why), OK);
    CHECK_INT(modelfile_remove(&s.m, &s.why), OK);
    CHECK_INT(modelfile_remove(&s.m, &s.why), ERR_NOT_FOUND);
    modelfile_release(&s.m);
    CHECK(is_there(&s, "data/models"));
    end(&s);
}

static enum err interrupt(void *ctx, const char *path, struct why *why)
{
    (void)path;
    (void)why;
    kill(getpid(), SIGINT);
    return *(enum err *)ctx;
}

/* Ctrl-C while the file is checked, with both results. */
static void install_interrupted(struct stage *s, enum err finding)
{
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        if (modelfile_hold(&s->m, true, &s->why) == OK &&
            modelfile_write(&s->m, STR("one"), interrupt, &finding, &s->why) ==
                finding)
            modelfile_release(&s->m);
        _exit(1);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

TEST(ctrl_c_waits_until_it_is_done)
{
    struct stage s;
    char text[16];

    begin(&s);
    install_interrupted(&s, ERR_IO);
    CHECK(!is_there(&s, "data"));
    install_interrupted(&s, OK);
    CHECK_STR(content(&s, text, sizeof(text)), "one");
    CHECK_INT(n_beside(&s), 0);
    end(&s);
}

/* Whatever fails, the old or the new file is there, and no other. */
TEST(installing_survives_every_fault)
{
    struct stage s;
    long nth = 0;

    begin(&s);
    do {
        char text[16];
        struct str now;
        enum err e;

        fault_arm(0);
        CHECK_INT(install(&s, STR("old"), OK), OK);
        fault_arm(++nth);
        e = install(&s, STR("new"), OK);
        CHECK_INT(e == OK, !fault_fired() ||
                               strcmp(fault_name(), "modelfile.gone") == 0);
        now = content(&s, text, sizeof(text));
        if (e && strcmp(fault_name(), "modelfile.sync_folder") != 0)
            CHECK_STR(now, "old");
        else
            CHECK_STR(now, "new");
        CHECK_INT(n_beside(&s), 0);
    } while (fault_fired());
    CHECK(nth > 8);
    end(&s);
}

static void remove_all(const struct stage *s)
{
    (void)unlink(s->m.path);
    (void)rmdir(s->m.folder);
    (void)rmdir(s->data);
}

/* Except the folder, which another process may have locked. */
TEST(nothing_is_left_of_a_first_one_that_failed)
{
    struct stage s;
    long nth = 0;

    begin(&s);
    for (;;) {
        bool is_made;
        enum err e;

        fault_arm(++nth);
        e = install(&s, STR("new"), OK);
        if (!fault_fired())
            break;
        is_made = strcmp(fault_name(), "modelfile.gone") == 0;
        CHECK_INT(e == OK, is_made);
        CHECK_INT(n_beside(&s), 0);
        CHECK_INT(is_there(&s, "data"),
                  is_made ||
                      strcmp(fault_name(), "modelfile.sync_folder") == 0 ||
                      strcmp(fault_name(), "modelfile.open") == 0 ||
                      strcmp(fault_name(), "modelfile.lock") == 0);
        remove_all(&s);
    }
    end(&s);
}
