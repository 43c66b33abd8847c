/* The rules file is read whole each time. Problems become lines that begin with
 * its path, so that editors find the position. */
#include "gate/rules_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"

#define USUAL_NAME "routing_rules.json"

static struct str folder_of(struct str path)
{
    size_t n = path.n;

    while (n && path.p[n - 1] != '/')
        n--;
    return str_sub(path, 0, n);
}

/* A file that cannot be examined exists, and so does a dangling link. Both keep
 * the server from starting: rules are never ignored silently. */
static bool path_exists(const char *path)
{
    struct stat is;

    return lstat(path, &is) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

static bool find_in_folder(struct str folder, char to[RULES_FILE_PATH_BYTES])
{
    bool has_slash = !folder.n || folder.p[folder.n - 1] == '/';
    int n = snprintf(to, RULES_FILE_PATH_BYTES, "%.*s%s%s", STR_ARG(folder),
                     has_slash ? "" : "/", USUAL_NAME);

    return n > 0 && n < RULES_FILE_PATH_BYTES && path_exists(to);
}

struct str rules_file_place(const struct config *c,
                            char to[RULES_FILE_PATH_BYTES], const char **where)
{
    *where = NULL;
    if (!str_eq(c->rules, STR(CONFIG_RULES_AUTO)))
        return c->rules;
    if (c->has_file && find_in_folder(folder_of(c->path), to))
        *where = "it lies beside the configuration";
    else if (find_in_folder(c->data, to))
        *where = "it lies in the data folder";
    return *where ? str_of(to) : STR("");
}

/* A file that was found is remembered in the data folder, in a file with its
 * path: a start that no longer finds it must not go on without rules. */

#define MARK_NAME "rules.found"

static bool mark_path(struct str data, const char *ending,
                      char to[RULES_FILE_PATH_BYTES])
{
    int n = snprintf(to, RULES_FILE_PATH_BYTES, "%.*s/" MARK_NAME "%s",
                     STR_ARG(data), ending);

    return data.n && n > 0 && n < RULES_FILE_PATH_BYTES;
}

bool rules_file_was_found(struct str data, char path[RULES_FILE_PATH_BYTES])
{
    char mark[RULES_FILE_PATH_BYTES];
    ssize_t n = -1;
    int fd;

    if (!mark_path(data, "", mark) || !path_exists(mark))
        return false;
    fd = open(mark, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        n = read(fd, path, RULES_FILE_PATH_BYTES - 1);
        close(fd);
    }
    path[n > 0 ? n : 0] = '\0';
    if (n <= 0) /* it was found, even if the path is unreadable */
        snprintf(path, RULES_FILE_PATH_BYTES, "%s", USUAL_NAME);
    return true;
}

static bool write_found_mark(const char *mark, struct str path)
{
    int fd = FAULT("rulebook.mark")
                 ? -1
                 : open(mark, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool is_whole;

    if (fd < 0)
        return false;
    is_whole = write(fd, path.p, path.n) == (ssize_t)path.n &&
               !FAULT("rulebook.mark_sync") && fsync(fd) == 0;
    return close(fd) == 0 && is_whole;
}

static bool sync_data_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_synced = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    return is_synced;
}

/* Must be on disk before the rules take effect. */
static enum err remember_found(const struct rules_file *b, struct str path,
                               struct why *why)
{
    char mark[RULES_FILE_PATH_BYTES], next[RULES_FILE_PATH_BYTES];
    char before[RULES_FILE_PATH_BYTES];

    if (!b->data)
        return OK;
    if (rules_file_was_found(str_of(b->data), before) &&
        str_eq(str_of(before), path))
        return OK;
    if (mark_path(str_of(b->data), "", mark) &&
        mark_path(str_of(b->data), ".new", next) &&
        write_found_mark(next, path) && rename(next, mark) == 0 &&
        sync_data_folder(b->data))
        return OK;
    return why_err(
        why, ERR_IO,
        "rules: cannot record in the data folder %s that they were found: make "
        "room there, or name the file with the setting rules",
        b->data);
}

static void forget_found_mark(const struct rules_file *b)
{
    char mark[RULES_FILE_PATH_BYTES];

    if (!b->data || !mark_path(str_of(b->data), "", mark))
        return;
    if (unlink(mark) != 0 && errno != ENOENT)
        log_warn(b->log, "rules.not_forgotten", LOG_C("file", mark),
                 LOG_C("because", strerror(errno)));
}

/* The end of a path, made safe for one line. */
enum { SHOWN_MAX = 120 };

static void show_path(const char *path, char out[SHOWN_MAX + 4])
{
    size_t n = strlen(path), cut = n > SHOWN_MAX ? n - SHOWN_MAX : 0;

    snprintf(out, SHOWN_MAX + 4, "%s%s", cut ? "..." : "", path + cut);
    str_tame(out, strlen(out));
}

static void set_one_problem(struct gate_problems *p, const char *path,
                            const char *words)
{
    char shown[SHOWN_MAX + 4];
    int n;

    show_path(path, shown);
    n = snprintf(p->text, sizeof(p->text), "%s: %s\n", shown, words);
    p->n_bytes = n > 0 && (size_t)n < sizeof(p->text) ? (size_t)n : 0;
    p->n = 1;
}

/* Put the path before each line that begins with a position. Lines that no
 * longer fit are left out, which is reported. */
static void prefix_problems(struct gate_problems *p, const char *path)
{
    struct str rest = {p->text, p->n_bytes};
    char shown[SHOWN_MAX + 4];
    struct buf out;

    show_path(path, shown);
    buf_init(&out, sizeof(p->text) - 1);
    while (rest.n && !out.over) {
        struct str line = str_cut(&rest, '\n');
        bool has_place = line.p[0] >= '0' && line.p[0] <= '9';

        buf_addf(&out, "%s%s%.*s\n", has_place ? shown : "",
                 has_place ? ":" : "", STR_ARG(line));
    }
    if (out.n) {
        memcpy(p->text, out.p, out.n);
        p->n_bytes = out.n;
        p->text[out.n] = '\0';
    }
    buf_fini(&out);
}

/* Reads one byte more than allowed, so that a file that is too large is
 * noticed. */
static enum err read_rules_text(const char *path, struct buf *out)
{
    int fd = FAULT("rulebook.open")
                 ? -1
                 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = 1;

    if (fd < 0)
        return ERR_IO;
    while (n > 0 && out->n <= GATE_RULES_BYTES) {
        char *to = buf_reserve(out, 64 * 1024);

        if (!to)
            break;
        n = FAULT("rulebook.read") ? -1 : read(fd, to, 64 * 1024);
        if (n > 0)
            buf_commit(out, (size_t)n);
        else if (n < 0 && errno == EINTR)
            n = 1;
    }
    close(fd);
    return out->over ? ERR_NOMEM : n < 0 ? ERR_IO : OK;
}

enum err rules_file_read(const char *path, struct gate_rules **out,
                         struct gate_problems *problems)
{
    struct buf text;
    enum err e;

    *out = NULL;
    errno = 0;
    buf_init(&text, GATE_RULES_BYTES + 128 * 1024);
    e = read_rules_text(path, &text);
    if (e == ERR_NOMEM) {
        set_one_problem(problems, path, "out of memory while reading it");
    } else if (e) {
        bool is_missing = errno == ENOENT;
        char words[160];

        snprintf(words, sizeof(words), "it cannot be read: %s",
                 strerror(errno ? errno : EIO));
        set_one_problem(
            problems, path,
            is_missing && path_exists(path)
                ? "it cannot be read: it is a link that leads nowhere"
                : words);
    } else {
        e = gate_rules_read(buf_str(&text), out, problems);
        prefix_problems(problems, path);
    }
    buf_fini(&text);
    return e;
}

static void log_problems(struct rules_file *b, const struct gate_problems *p)
{
    struct str rest = {p->text, p->n_bytes};

    while (rest.n)
        log_error(b->log, "rules.problem",
                  LOG_S("problem", str_cut(&rest, '\n')));
}

static enum err first_problem(const struct gate_problems *p, enum err e,
                              struct why *why)
{
    struct str rest = {p->text, p->n_bytes}, first = str_cut(&rest, '\n');

    if (p->n > 1)
        return why_err(why, e,
                       "rules: %.*s (and %zu more; signalbox check "
                       "lists them)",
                       STR_ARG(str_head(first, 400)), p->n - 1);
    return why_err(why, e, "rules: %.*s", STR_ARG(str_head(first, 450)));
}

static bool is_same_stat(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
           a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void remember_stat(struct rules_file *b, const char *path)
{
    if (stat(path, &b->seen) != 0)
        b->seen = (struct stat){.st_ino = 0};
    b->last = b->seen;
}

static void use_rules(struct rules_file *b, struct gate_rules *fresh)
{
    struct gate_rules *old = b->rules;

    b->rules = fresh;
    b->problems.n = b->problems.n_bytes = 0;
    b->problems.text[0] = '\0';
    b->read_at_ms = loop_wall_ms(b->loop);
    if (b->on_change)
        b->on_change(b->ctx);
    gate_rules_free(old);
    log_info(b->log, "rules.loaded",
             LOG_C("from", b->path ? b->path : "no file"),
             LOG_I("rules", (int64_t)gate_rules_count(rules_file_rules(b))));
}

static void report_bad(struct rules_file *b)
{
    log_problems(b, &b->problems);
    log_error(b->log, "rules.not_loaded", LOG_C("file", b->path),
              LOG_C("because", "it has problems; the previous rules stay"));
}

static void reload_rules(struct rules_file *b)
{
    struct gate_rules *fresh;

    remember_stat(b, b->path); /* before reading it */
    if (rules_file_read(b->path, &fresh, &b->problems) == OK)
        use_rules(b, fresh);
    else
        report_bad(b);
}

static void set_look_timer(struct rules_file *b)
{
    if (b->is_stopped || !b->path)
        return;
    loop_timer_set(b->loop, &b->look, RULES_FILE_LOOK_MS);
}

/* At the first miss the file may be in the middle of being replaced; the second
 * one is reported, once. A file that returns is read even if it is
 * unchanged. */
static void report_gone(struct rules_file *b)
{
    if (b->n_missed > 1 || ++b->n_missed < 2)
        return;
    b->seen = b->last = (struct stat){.st_ino = 0};
    set_one_problem(
        &b->problems, b->path,
        b->is_found
            ? "it is gone; the previous rules stay, and a start would fail "
              "until it is back, or the setting rules names another file, or "
              "\"\" for none"
            : "it is gone; the previous rules stay, and a start would fail");
    log_problems(b, &b->problems);
}

static void on_look_timer(struct timer *t)
{
    struct rules_file *b = LIST_OF(t, struct rules_file, look);
    struct stat now;

    if (b->is_stopped || !b->path)
        return;
    if (stat(b->path, &now) == 0) {
        bool is_quiet = is_same_stat(&now, &b->last);

        b->last = now;
        b->n_missed = 0;
        if (is_quiet && !is_same_stat(&now, &b->seen))
            reload_rules(b);
    } else {
        report_gone(b);
    }
    set_look_timer(b);
}

const struct gate_rules *rules_file_rules(const struct rules_file *b)
{
    return b->rules ? b->rules : gate_rules_none();
}

/* A file that was found once and is gone is missed, not given up. */
static struct str find_configured(struct rules_file *b, const struct config *c,
                                  char to[RULES_FILE_PATH_BYTES])
{
    const char *where;
    struct str path = rules_file_place(c, to, &where);

    b->is_next_found = where != NULL;
    if (where) {
        log_info(b->log, "rules.found", LOG_S("file", path),
                 LOG_C("because", where));
    } else if (!path.n && c->rules.n && b->is_found && b->path) {
        b->is_next_found = true;
        return str_of(b->path);
    }
    return path;
}

void rules_file_say_missed(const char *path, char words[RULES_FILE_WORDS])
{
    char shown[SHOWN_MAX + 4];

    show_path(path, shown);
    snprintf(words, RULES_FILE_WORDS,
             "%s was in use and is gone: put it back, or "
             "name another file with the setting rules, or set that to \"\" "
             "for none",
             shown);
}

enum err rules_file_prepare(struct rules_file *b, const struct config *c,
                            struct why *why)
{
    static const struct gate_problems nothing;
    struct gate_problems problems = nothing;
    char found[RULES_FILE_PATH_BYTES];
    struct str path;
    bool is_ours;
    enum err e;

    rules_file_forget(b);
    path = find_configured(b, c, found);
    if (!path.n && c->rules.n && b->data &&
        rules_file_was_found(str_of(b->data), found)) {
        char words[RULES_FILE_WORDS];

        rules_file_say_missed(found, words);
        return why_err(why, ERR_NOT_FOUND, "rules: %s", words);
    }
    b->next_path = path.n ? mem_copy(path.p, path.n) : NULL;
    b->is_prepared = true;
    if (!path.n)
        return OK;
    is_ours = b->path && strcmp(b->path, b->next_path) == 0;
    remember_stat(b, b->next_path);
    e = rules_file_read(b->next_path, &b->next, &problems);
    if (e && is_ours) {
        b->problems = problems;
        report_bad(b);
        rules_file_forget(b); /* nothing to take over */
        return OK;
    }
    if (!e && b->is_next_found)
        e = remember_found(b, path, why);
    if (!e)
        return OK;
    log_problems(b, &problems);
    rules_file_forget(b);
    if (b->path)
        remember_stat(b, b->path);
    return problems.n ? first_problem(&problems, e, why) : e;
}

void rules_file_commit(struct rules_file *b)
{
    struct gate_rules *fresh = b->next;
    bool is_other;

    if (!b->is_prepared)
        return;
    is_other = fresh || b->rules || b->path;
    free(b->path);
    b->path = b->next_path;
    b->is_found = b->is_next_found;
    b->next_path = NULL;
    b->next = NULL;
    b->is_prepared = false;
    if (!b->is_found)
        forget_found_mark(b);
    if (is_other)
        use_rules(b, fresh);
    loop_timer_cancel(b->loop, &b->look);
    set_look_timer(b);
}

void rules_file_forget(struct rules_file *b)
{
    gate_rules_free(b->next);
    free(b->next_path);
    b->next = NULL;
    b->next_path = NULL;
    b->is_prepared = false;
}

enum err rules_file_open(struct rules_file *b, const struct config *c,
                         struct why *why)
{
    enum err e;

    b->look.fire = on_look_timer;
    e = rules_file_prepare(b, c, why);
    if (e)
        return e;
    rules_file_commit(b);
    if (!b->path)
        log_info(b->log, "rules.none",
                 LOG_C("because", c->rules.n ? "no file was found"
                                             : "the configuration says so"));
    return OK;
}

void rules_file_stop(struct rules_file *b)
{
    if (!b->loop || b->is_stopped)
        return;
    b->is_stopped = true;
    loop_timer_cancel(b->loop, &b->look);
}

void rules_file_close(struct rules_file *b)
{
    if (!b->loop)
        return;
    rules_file_stop(b);
    rules_file_forget(b);
    gate_rules_free(b->rules);
    free(b->path);
    b->rules = NULL;
    b->path = NULL;
}
