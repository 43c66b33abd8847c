/* The launcher: the server's own binary, executed again. It confines itself
 * and then becomes the program.
 *
 * The server cannot do this between vfork and exec. It is not dumpable, and
 * neither is its vfork child: a plain user's child would get EACCES on its own
 * uid_map and oom_score_adj. Opening Landlock's paths also needs memory.
 *
 * Features that the kernel does not offer are left out and reported. Requested
 * features that fail (the user, the limits, the folder) end the launch.
 *
 *     cgroup, score for the OOM killer
 *     namespaces                  as root, or with a user namespace
 *       process outside           waits, passes the status on
 *         process 1               reaps, passes signals on
 *           the program's         folder, limits, user, Landlock, seccomp, exec
 *
 * Without namespaces the launcher itself becomes the program. */
#include "net/child/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "net/child/internal.h"

#include "base/mem.h"

enum {
    SCRIPT_BYTES = 4096,
    SCRIPT_WORDS = 64,
    SCRIPT_DEPTH = 4,
    LINKS_MAX = 40
};

const char *const launch_tmp_paths[LAUNCH_TMP_PATHS] = {"/tmp", "/var/tmp",
                                                        "/dev/shm"};

void launch_fail(int step, int error)
{
    struct spawn_report r = {step, error};

    if (write(LAUNCH_REPORT, &r, sizeof(r)) < 0)
        _exit(126);
    _exit(127);
}

void launch_add(struct launch_list *l, const char *text)
{
    if (l->n == LAUNCH_PATHS_MAX)
        launch_fail(STEP_LAUNCH, E2BIG);
    if (!l->list)
        l->list = mem_array(LAUNCH_PATHS_MAX + 1, sizeof(*l->list));
    l->list[l->n++] = mem_copy(text, strlen(text));
}

const char *launch_first(const struct launch *l, enum launch_tag tag)
{
    return l->said[tag].n ? l->said[tag].list[0] : NULL;
}

bool launch_real(const char *path, char *out)
{
    return realpath(path, out) != NULL;
}

bool launch_here(const struct launch *l, char *out)
{
    return !launch_first(l, TAG_FOLDER) && getcwd(out, PATH_MAX) && out[1] &&
           !(l->home && strcmp(out, l->home) == 0);
}

/* The plan. */

/* Counts the records by tag, then lists them. */
static void plan_read_records(struct launch *l, char *text, size_t n)
{
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < LAUNCH_TAGS; i++) {
            if (round)
                l->said[i].list = mem_array(l->said[i].n + 1, sizeof(char *));
            l->said[i].n = round ? 0 : l->said[i].n;
        }
        for (size_t at = 0; at < n; at += strlen(text + at) + 1) {
            unsigned char tag = (unsigned char)text[at];

            if (tag >= LAUNCH_TAGS)
                launch_fail(STEP_LAUNCH, EINVAL);
            if (round)
                l->said[tag].list[l->said[tag].n] = text + at + 1;
            l->said[tag].n++;
        }
    }
}

static void plan_read(struct launch *l)
{
    struct stat st;
    char *text;

    if (fstat(LAUNCH_PLAN, &st) != 0 || !S_ISREG(st.st_mode) || !st.st_size)
        _exit(127); /* started by hand: there is no plan */
    if (fcntl(LAUNCH_REPORT, F_SETFD, FD_CLOEXEC) != 0)
        _exit(127);
    text = mmap(NULL, (size_t)st.st_size + 1, PROT_READ, MAP_PRIVATE,
                LAUNCH_PLAN, 0);
    if (text == MAP_FAILED || text[st.st_size - 1] != '\0')
        launch_fail(STEP_LAUNCH, EINVAL);
    plan_read_records(l, text, (size_t)st.st_size);
    close(LAUNCH_PLAN);
    for (size_t i = 0; i < l->said[TAG_ENV].n; i++) {
        char *e = l->said[TAG_ENV].list[i];

        if (strncmp(e, "HOME=", 5) == 0)
            l->home = e + 5;
        else if (strncmp(e, "TMPDIR=", 7) == 0)
            l->tmp = e + 7;
    }
}

/* The files of the command, for reading: the folder of the program, the lib/
 * next to its bin/, the folder of the script behind an interpreter, and other
 * files that its arguments name. Links are followed (`pi` in a bin/ links into
 * lib/node_modules), and so are scripts: to their interpreter and to the files
 * that a shell script calls.
 *
 * An agent must not choose its own read access. So the launcher neither
 * follows a link nor reads a script where an agent may write. There the file
 * itself is open to its own agent; the operator must list everything else that
 * the program needs. */

enum program_parts { WITH_FOLDER, FILE_ALONE };

/* Whether a closed path, or another agent's workspace, lies in the folder.
 * Such a folder is not opened as a shared one (launch_fs.c). */
static bool launch_holds_closed(const struct launch *l, const char *folder)
{
    static const enum launch_tag tags[] = {TAG_CLOSED, TAG_OTHER};

    for (size_t t = 0; t < sizeof(tags) / sizeof(*tags); t++)
        for (size_t i = 0; i < l->said[tags[t]].n; i++)
            if (path_is_within(l->said[tags[t]].list[i], folder))
                return true;
    return false;
}

/* Whether the folder lies in a /tmp or similar of the program's own. */
static bool launch_is_own_tmp(const struct launch *l, const char *folder)
{
    char real[PATH_MAX];

    for (size_t i = 0; !l->shares_tmp && i < LAUNCH_TMP_PATHS; i++)
        if (launch_real(launch_tmp_paths[i], real) &&
            path_is_within(folder, real))
            return true;
    return false;
}

/* Whether an agent may write there. The path has no links. */
static bool agent_may_write(const struct launch *l, const char *path)
{
    static const enum launch_tag tags[] = {TAG_FOLDER, TAG_WRITE, TAG_OWN,
                                           TAG_OTHER};
    char real[PATH_MAX];

    for (size_t t = 0; t < sizeof(tags) / sizeof(*tags); t++)
        for (size_t i = 0; i < l->said[tags[t]].n; i++)
            if (launch_real(l->said[tags[t]].list[i], real) &&
                path_is_within(path, real))
                return true;
    for (size_t i = 0; i < LAUNCH_TMP_PATHS; i++)
        if (l->shares_tmp && launch_real(launch_tmp_paths[i], real) &&
            path_is_within(path, real) && !launch_holds_closed(l, real))
            return true;
    return l->tmp && launch_real(l->tmp, real) && path_is_within(path, real) &&
           !launch_is_own_tmp(l, real) && !launch_holds_closed(l, real);
}

/* Put a part of a path, or the target of a link, before the rest of it. */
static bool path_prepend(char rest[PATH_MAX], const char *first)
{
    char text[PATH_MAX];

    if (snprintf(text, sizeof(text), "%s/%s", first, rest) >= PATH_MAX)
        return false;
    memcpy(rest, text, sizeof(text));
    return true;
}

/* Whether the path lies where an agent may write, or leads through a link
 * there. True for paths that are too long or have too many links. */
static bool leads_through_agents(const struct launch *l, const char *path)
{
    char at[PATH_MAX] = "", rest[PATH_MAX] = "", link[PATH_MAX];
    int n_links = 0;

    if (!path_prepend(rest, path) ||
        (path[0] != '/' && !getcwd(at, sizeof(at))))
        return true;
    if (strcmp(at, "/") == 0)
        at[0] = '\0';
    for (;;) {
        char *name = rest + strspn(rest, "/"), *end = strchrnul(name, '/');
        size_t n = strlen(at);
        ssize_t n_link;

        if (!*name)
            return false;
        if (end - name == 2 && strncmp(name, "..", 2) == 0)
            at[strrchr(at, '/') ? strrchr(at, '/') - at : 0] = '\0';
        else if (end - name != 1 || *name != '.') {
            if (snprintf(at + n, sizeof(at) - n, "/%.*s", (int)(end - name),
                         name) >= (int)(sizeof(at) - n) ||
                agent_may_write(l, at))
                return true;
        }
        memmove(rest, end, strlen(end) + 1);
        n_link = at[0] ? readlink(at, link, sizeof(link) - 1) : -1;
        if (n_link < 0)
            continue;
        link[n_link] = '\0';
        at[link[0] == '/' ? 0 : n] = '\0';
        if (++n_links > LINKS_MAX || !path_prepend(rest, link))
            return true;
    }
}

/* Folders that are never opened as a whole for a program inside. */
static bool folder_is_common(const struct launch *l, const char *folder)
{
    if (!folder[0] || strcmp(folder, "/run") == 0 ||
        (l->home && strcmp(folder, l->home) == 0))
        return true;
    for (size_t i = 0; i < LAUNCH_TMP_PATHS; i++)
        if (strcmp(folder, launch_tmp_paths[i]) == 0)
            return true;
    return false;
}

static void add_program_path(struct launch *l, const char *path,
                             enum program_parts parts)
{
    char text[PATH_MAX];
    char *modules, *end;

    if (snprintf(text, sizeof(text), "%s", path) >= PATH_MAX)
        return;
    modules = strstr(text, "/node_modules/");
    if (modules) {
        modules[strlen("/node_modules")] = '\0';
        launch_add(&l->programs_at, text);
        return;
    }
    end = strrchr(text, '/');
    if (!end)
        return;
    *end = '\0';
    if (parts == FILE_ALONE || folder_is_common(l, text)) {
        launch_add(&l->programs_at, path);
        return;
    }
    launch_add(&l->programs_at, text);
    end = strrchr(text, '/');
    if (!end || end == text || strcmp(end, "/bin") != 0)
        return;
    memcpy(end, "/lib", sizeof("/lib"));
    launch_add(&l->programs_at, text);
}

/* Find a name in the PATH of its environment. */
static bool find_in_path(const struct launch *l, const char *name,
                         char out[PATH_MAX])
{
    for (size_t i = 0; i < l->said[TAG_ENV].n; i++) {
        struct str path = str_of(l->said[TAG_ENV].list[i]);

        if (!str_starts(path, STR("PATH=")))
            continue;
        path = str_sub(path, 5, SIZE_MAX);
        while (path.n) {
            struct str folder = str_cut(&path, ':');

            if (snprintf(out, PATH_MAX, "%.*s/%s", STR_ARG(folder), name) <
                    PATH_MAX &&
                out[0] == '/' && access(out, X_OK) == 0)
                return true;
        }
    }
    return false;
}

static void add_program(struct launch *l, const char *path,
                        enum program_parts parts, int depth);

/* A script: add its interpreter, with its folder. A shell script is often only
 * a call of another program by its absolute path (a shim of pyenv): add
 * programs with their folder, other files alone. */
static void add_script(struct launch *l, const char *path, int depth)
{
    char text[SCRIPT_BYTES + 1], found[PATH_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC), n_words = 0;
    ssize_t n = fd < 0 ? -1 : read(fd, text, SCRIPT_BYTES);
    bool is_shell, is_env = false;
    char *rest, *line_end;

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    if (strncmp(text, "#!", 2) != 0)
        return;
    line_end = strchr(text, '\n');
    is_shell =
        line_end && line_end - text >= 2 && strncmp(line_end - 2, "sh", 2) == 0;
    if (line_end && !is_shell)
        *line_end = '\0';
    for (char *w = strtok_r(text + 2, " \t\r\n\"'=;()", &rest);
         w && n_words++ < SCRIPT_WORDS;
         w = strtok_r(NULL, " \t\r\n\"'=;()", &rest)) {
        bool is_called = !line_end || w < line_end || access(w, X_OK) == 0;

        if (w[0] == '/')
            add_program(l, w, is_called ? WITH_FOLDER : FILE_ALONE, depth + 1);
        else if (is_env && w[0] != '-' && find_in_path(l, w, found))
            add_program(l, found, WITH_FOLDER, depth + 1);
        is_env = strcmp(w, "/usr/bin/env") == 0 || (is_env && w[0] == '-');
    }
}

static void add_program(struct launch *l, const char *path,
                        enum program_parts parts, int depth)
{
    char real[PATH_MAX];
    struct stat st;

    if (leads_through_agents(l, path) || stat(path, &st) != 0 ||
        !S_ISREG(st.st_mode))
        return;
    if (path[0] == '/')
        add_program_path(l, path, parts);
    if (!launch_real(path, real))
        return;
    if (strcmp(real, path) != 0)
        add_program_path(l, real, parts);
    if (depth < SCRIPT_DEPTH)
        add_script(l, real, depth);
}

/* The first argument that is a file is the script. */
void launch_find_programs(struct launch *l)
{
    const struct launch_list *args = &l->said[TAG_ARG];
    bool has_script = false;

    l->programs_at.n = 0;
    for (size_t i = 0; i < l->said[TAG_PROGRAM].n; i++)
        if (access(l->said[TAG_PROGRAM].list[i], X_OK) == 0) {
            add_program(l, l->said[TAG_PROGRAM].list[i], WITH_FOLDER, 0);
            break;
        }
    for (size_t i = 1; i < args->n; i++) {
        char real[PATH_MAX];

        if (args->list[i][0] != '/' || !launch_real(args->list[i], real) ||
            strncmp(real, "/proc/", 6) == 0)
            continue;
        if (!has_script)
            add_program(l, args->list[i], WITH_FOLDER, 0);
        else if (!leads_through_agents(l, args->list[i]))
            launch_add(&l->programs_at, real);
        has_script = true;
    }
}

/* The steps. */

static void launch_offer_to_oom(const struct launch *l)
{
    const char *score = launch_first(l, TAG_OOM_SCORE);
    int fd =
        score ? open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    if (write(fd, score, strlen(score)) < 0)
        errno = 0; /* optional */
    close(fd);
}

static void join_cgroup(struct launch *l)
{
    const char *path = launch_first(l, TAG_CGROUP);
    int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    if (write(fd, "0", 1) == 1)
        l->held |= CHILD_HOLDS_CGROUP;
    close(fd);
}

static void launch_enter_folder(const struct launch *l)
{
    const char *folder = launch_first(l, TAG_FOLDER);

    if (folder && chdir(folder) != 0)
        launch_fail(STEP_FOLDER, errno);
}

static void launch_set_limits(const struct launch *l)
{
    for (size_t i = 0; i < l->said[TAG_LIMIT].n; i++) {
        char *at = l->said[TAG_LIMIT].list[i];
        int resource = (int)strtol(at, &at, 10);
        struct rlimit value;

        value.rlim_cur = (rlim_t)strtoull(at, &at, 10);
        value.rlim_max = (rlim_t)strtoull(at, &at, 10);
        if (setrlimit((__rlimit_resource_t)resource, &value) != 0)
            launch_fail(STEP_LIMITS, errno);
    }
}

/* Landlock opens only paths that exist. */
static void launch_make_own(const struct launch *l)
{
    for (size_t i = 0; i < l->said[TAG_OWN].n; i++) {
        const char *path = l->said[TAG_OWN].list[i];

        if (mkdir(path, 0700) == 0 && l->has_user &&
            chown(path, l->uid, l->gid) != 0)
            launch_fail(STEP_USER, errno);
    }
}

/* Report the restrictions before the program runs: it cannot write there any
 * more. */
static void launch_report_held(const struct launch *l)
{
    struct spawn_report r = {
        STEP_HELD, (int)(l->held | (unsigned)l->abi << CHILD_HOLDS_ABI_SHIFT)};

    if (write(LAUNCH_REPORT, &r, sizeof(r)) < 0)
        _exit(126);
}

_Noreturn static void launch_run_program(const struct launch *l)
{
    int error = ENOENT;
    sigset_t none;

    launch_report_held(l);
    if (!l->said[TAG_PROGRAM].n)
        _exit(0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (char **p = l->said[TAG_PROGRAM].list; *p; p++) {
        execve(*p, l->said[TAG_ARG].list, l->said[TAG_ENV].list);
        if (errno == EACCES)
            error = EACCES;
        else if (errno != ENOENT && errno != ENOTDIR)
            launch_fail(STEP_EXEC, errno);
    }
    launch_fail(STEP_EXEC, error);
}

/* A change of user or of the user namespace resets it. */
static void launch_follow_parent(const struct launch *l)
{
    const char *parent = launch_first(l, TAG_PARENT);

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        launch_fail(STEP_PARENT, errno);
    if (parent && getppid() != (pid_t)strtol(parent, NULL, 10))
        launch_fail(STEP_PARENT, ESRCH);
}

int child_launch(void)
{
    struct launch l = {.abi = 0};
    bool is_divided;

    plan_read(&l);
    while (l.said[TAG_HANG].n)
        pause();
    launch_offer_to_oom(&l);
    join_cgroup(&l);
    launch_find_user(&l);
    launch_enter_folder(&l);
    launch_make_own(&l);
    is_divided = launch_enter(&l);
    l.shares_tmp = !is_divided;
    launch_find_programs(&l);
    launch_follow_parent(&l);
    if (is_divided)
        launch_divide(&l);
    launch_enter_folder(&l); /* as it is mounted now */
    launch_become_user(&l);
    if (!is_divided)
        launch_follow_parent(&l);
    launch_restrict_paths(&l);
    launch_set_limits(&l);
    launch_restrict_calls(&l);
    launch_run_program(&l);
}
