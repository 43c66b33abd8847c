/* doctor: would the server run here? One row per question; each look fills one
 * finding and knows nothing of how it is shown. Nothing is changed on the way:
 * no folder made, no lock taken, and the address is let go at once. Questions
 * about settings are not asked while the configuration is wrong, since the
 * answers would be about something else. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"

enum mark { GOOD, DOUBTFUL, BAD };

struct finding {
    enum mark mark;
    char text[256];
    char advice[320]; /* what to do; empty when nothing is */
};

struct doctor {
    struct config *config; /* NULL when it is not valid */
    const struct config_report *report;
    bool is_running; /* somebody holds the data folder */
};

const struct arg_option cli_doctor_options[] = {CLI_SOURCE_OPTIONS, {0}};

static void found(struct finding *f, enum mark mark, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
static void found(struct finding *f, enum mark mark, const char *fmt, ...)
{
    va_list ap;

    f->mark = mark;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
}

static void advise(struct finding *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void advise(struct finding *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f->advice, sizeof(f->advice), fmt, ap);
    va_end(ap);
}

static void look_at_version(struct doctor *d, struct finding *f)
{
    (void)d;
    found(f, GOOD, "signalbox %s", SIGNALBOX_VERSION);
}

static void look_at_config(struct doctor *d, struct finding *f)
{
    const struct config *c = d->config;

    if (!c) {
        struct str rest = str_of(d->report->text);
        struct str first = str_cut(&rest, '\n');

        found(f, BAD, "%.*s", STR_ARG(first));
        advise(f, "signalbox check, with the same options, shows all there "
                  "is to mend");
    } else if (d->report->n_warnings) {
        found(f, DOUBTFUL, "valid, with %u warning%s", d->report->n_warnings,
              d->report->n_warnings == 1 ? "" : "s");
        advise(f, "signalbox check shows them");
    } else if (c->path.n) {
        found(f, GOOD, "%.*s is valid", STR_ARG(c->path));
    } else {
        found(f, GOOD, "no file, defaults are used");
    }
}

/* The data folder. */

enum folder_state {
    FOLDER_READY,
    FOLDER_OPEN_TO_OTHERS, /* fine, but others may read or write it */
    FOLDER_SHARED,         /* not the server's alone, like /tmp */
    FOLDER_ABSENT,         /* can be made */
    FOLDER_NO_PARENT,
    FOLDER_IN_USE,
    FOLDER_NOT_WRITABLE,
    FOLDER_NO_FOLDER, /* something else has its name */
    FOLDER_UNREACHABLE,
};

/* Whether another process holds a write lock on DIR/lock. Only asks. */
static bool is_locked(const char *path)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char name[PATH_MAX];
    bool held;
    int fd;

    if (snprintf(name, sizeof(name), "%s/lock", path) >= (int)sizeof(name))
        return false;
    fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return held;
}

/* The path up to its last part; "." where there is only one. */
static void parent_of(const char *path, char out[PATH_MAX])
{
    size_t n = strnlen(path, PATH_MAX - 1);

    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n)
        memcpy(out, path, n);
    else
        out[n++] = '.';
    out[n] = '\0';
}

static enum folder_state look_for_folder(const char *path)
{
    char parent[PATH_MAX];
    struct stat st;

    if (stat(path, &st) < 0 && errno == ENOENT) {
        parent_of(path, parent);
        if (stat(parent, &st) < 0)
            return FOLDER_NO_PARENT;
        return access(parent, W_OK | X_OK) < 0 ? FOLDER_NOT_WRITABLE
                                               : FOLDER_ABSENT;
    }
    if (stat(path, &st) < 0)
        return FOLDER_UNREACHABLE;
    if (!S_ISDIR(st.st_mode))
        return FOLDER_NO_FOLDER;
    if (is_locked(path))
        return FOLDER_IN_USE;
    if (access(path, R_OK | W_OK | X_OK) < 0)
        return FOLDER_NOT_WRITABLE;
    if (st.st_uid != geteuid() || st.st_mode & S_ISVTX)
        return FOLDER_SHARED;
    return st.st_mode & 077 ? FOLDER_OPEN_TO_OTHERS : FOLDER_READY;
}

static void look_at_data(struct doctor *d, struct finding *f)
{
    const char *path = d->config->data.p;
    char parent[PATH_MAX];

    switch (look_for_folder(path)) {
    case FOLDER_READY: found(f, GOOD, "%s is there and writable", path); break;
    case FOLDER_OPEN_TO_OTHERS:
        found(f, DOUBTFUL, "others on this machine can look into %s", path);
        advise(f, "chmod 700 %s", path);
        break;
    case FOLDER_SHARED:
        found(f, DOUBTFUL, "%s belongs to others too", path);
        advise(f, "choose a folder for the server alone: --data FOLDER");
        break;
    case FOLDER_ABSENT:
        found(f, GOOD, "%s is not there yet; serve makes it", path);
        break;
    case FOLDER_NO_PARENT:
        parent_of(path, parent);
        found(f, BAD, "%s cannot be made, since %s is not there", path, parent);
        advise(f, "mkdir -p %s", parent);
        break;
    case FOLDER_IN_USE:
        d->is_running = true;
        found(f, DOUBTFUL, "%s is in use by a running server", path);
        advise(f, "a second server needs a folder of its own: --data FOLDER");
        break;
    case FOLDER_NOT_WRITABLE:
        found(f, BAD, "%s cannot be written to by user %u", path,
              (unsigned)geteuid());
        advise(f, "give it to that user with chown, or choose another with "
                  "--data FOLDER");
        break;
    case FOLDER_NO_FOLDER:
        found(f, BAD, "%s is not a folder", path);
        advise(f, "move it away, or choose another with --data FOLDER");
        break;
    case FOLDER_UNREACHABLE:
        found(f, BAD, "%s cannot be reached: %s", path, strerror(errno));
        advise(f, "mend the path, or choose another with --data FOLDER");
        break;
    }
}

/* Room where the data is, or will be. */
static void look_at_disk(struct doctor *d, struct finding *f)
{
    enum { LEAST_MIB = 64, COMFORTABLE_MIB = 1024 };
    char path[PATH_MAX], parent[PATH_MAX];
    struct statvfs fs;
    unsigned long long mib;

    snprintf(path, sizeof(path), "%s", d->config->data.p);
    while (statvfs(path, &fs) < 0) {
        parent_of(path, parent);
        if (strcmp(path, parent) == 0) {
            found(f, DOUBTFUL, "free space is not known: %s", strerror(errno));
            return;
        }
        memcpy(path, parent, sizeof(path));
    }
    mib = (unsigned long long)fs.f_bavail * fs.f_frsize / (1024 * 1024);
    if (mib >= 10 * 1024)
        found(f, GOOD, "%llu GiB free for the data", mib / 1024);
    else
        found(f,
              mib < LEAST_MIB         ? BAD
              : mib < COMFORTABLE_MIB ? DOUBTFUL
                                      : GOOD,
              "%llu MiB free for the data", mib);
    if (fs.f_files && !fs.f_favail)
        found(f, BAD, "the disk of the data takes no more files");
    if (f->mark != GOOD)
        advise(f, "free some space, or choose another disk with --data FOLDER");
}

static int try_to_bind(const struct sockaddr_storage *addr, socklen_t n)
{
    int one = 1, e = 0;
    int fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return errno;
    /* As the server does it: what a closed connection left does not count. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, (const struct sockaddr *)addr, n) < 0 || listen(fd, 1) < 0)
        e = errno;
    close(fd);
    return e;
}

static void look_at_address(struct doctor *d, struct finding *f)
{
    const char *text = d->config->listen.p;
    struct sockaddr_storage addr;
    socklen_t n;
    int e = config_address(d->config->listen, &addr, &n)
                ? EINVAL
                : try_to_bind(&addr, n);

    switch (e) {
    case 0: found(f, GOOD, "%s is free", text); break;
    case EADDRINUSE:
        found(f, d->is_running ? DOUBTFUL : BAD, "%s is taken%s", text,
              d->is_running ? ", most likely by the running server" : "");
        advise(f, "ss -ltnp shows by whom; choose another with --listen "
                  "HOST:PORT");
        break;
    case EACCES:
        found(f, BAD, "user %u may not listen on %s", (unsigned)geteuid(),
              text);
        advise(f, "choose a port from 1024 on with --listen HOST:PORT");
        break;
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        found(f, BAD, "this machine has no address %s", text);
        advise(f, "ip address lists those it has; choose one with --listen "
                  "HOST:PORT");
        break;
    default:
        found(f, BAD, "cannot listen on %s: %s", text, strerror(e));
        advise(f, "choose another with --listen HOST:PORT");
    }
}

static void look_at_files(struct doctor *d, struct finding *f)
{
    enum { BESIDES = 64 }; /* log, database, listeners, children */
    rlim_t need = (rlim_t)d->config->http.max_connections + BESIDES;
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) < 0) {
        found(f, DOUBTFUL, "the limit on open files is not known: %s",
              strerror(errno));
        return;
    }
    /* serve raises the soft limit itself; the hard one is for root. */
    if (lim.rlim_max >= need) {
        found(f, GOOD, "enough for %lld connections",
              (long long)d->config->http.max_connections);
        return;
    }
    found(f, DOUBTFUL, "%llu open files are too few for %lld connections",
          (unsigned long long)lim.rlim_max,
          (long long)d->config->http.max_connections);
    advise(f,
           "raise it (ulimit -Hn %llu, or LimitNOFILE=%llu in the unit), or "
           "lower http.maxConnections",
           (unsigned long long)need, (unsigned long long)need);
}

static void look_at_clock(struct doctor *d, struct finding *f)
{
    /* The year this was written, and one that is far enough away. */
    static const int64_t first_s = 1735689600, last_s = 4102444800;
    struct clock clock = clock_system();
    time_t now_s = (time_t)(clock.wall_ms(clock.ctx) / 1000);
    char text[64] = "";
    struct tm tm;

    (void)d;
    if (gmtime_r(&now_s, &tm))
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &tm);
    if (now_s >= first_s && now_s < last_s) {
        found(f, GOOD, "%s", text);
        return;
    }
    found(f, BAD, "it says %s, which cannot be", text);
    advise(f, "set it: timedatectl set-ntp true");
}

static void look_at_libs(struct doctor *d, struct finding *f)
{
    struct cli_lib libs[CLI_LIBS_MAX];
    size_t n = cli_libs(libs), used = 0;

    (void)d;
    found(f, GOOD, "%s", "");
    for (size_t i = 0; i < n && used < sizeof(f->text); i++) {
        used +=
            (size_t)snprintf(f->text + used, sizeof(f->text) - used, "%s%s %s",
                             i ? ", " : "", libs[i].name, libs[i].running);
        if (!libs[i].is_older)
            continue;
        f->mark = BAD;
        advise(f,
               "%s is older than %s, which this was built with; install "
               "that or a later one",
               libs[i].name, libs[i].built);
    }
}

static const struct {
    const char *name;
    void (*look)(struct doctor *d, struct finding *f);
    bool needs_config;
} looks[] = {
    {"version", look_at_version, false}, {"libraries", look_at_libs, false},
    {"clock", look_at_clock, false},     {"config", look_at_config, false},
    {"data", look_at_data, true},        {"disk", look_at_disk, true},
    {"address", look_at_address, true},  {"files", look_at_files, true},
};

enum { N_LOOKS = sizeof(looks) / sizeof(looks[0]) };

/* Showing them. */

static void show(struct cli *c, const char *name, const struct finding *f)
{
    static const struct {
        struct str unicode, plain;
        enum colour colour;
    } marks[] = {
        [GOOD] = {{"\u2713", 3}, {"ok  ", 4}, GREEN},
        [DOUBTFUL] = {{"!", 1}, {"warn", 4}, YELLOW},
        [BAD] = {{"\u2717", 3}, {"FAIL", 4}, RED},
    };
    unsigned indent = (c->unicode ? 1 : 4) + 1 + 10;

    cli_coloured(c, marks[f->mark].colour,
                 c->unicode ? marks[f->mark].unicode : marks[f->mark].plain);
    buf_addf(&c->out, " %-10s", name);
    cli_wrapped(c, indent, indent, str_of(f->text));
    if (!f->advice[0])
        return;
    buf_addf(&c->out, "%*s%s ", (int)indent, "", c->unicode ? "\u2192" : "->");
    cli_wrapped(c, indent + (c->unicode ? 2 : 3), indent + (c->unicode ? 2 : 3),
                str_of(f->advice));
}

static void show_all(struct cli *c, const struct finding *all)
{
    unsigned n_bad = 0, n_doubtful = 0;

    for (size_t i = 0; i < N_LOOKS; i++) {
        show(c, looks[i].name, &all[i]);
        n_bad += all[i].mark == BAD;
        n_doubtful += all[i].mark == DOUBTFUL;
    }
    buf_add_char(&c->out, '\n');
    if (n_bad)
        buf_addf(&c->out, "%u of %d must be put right before the server runs\n",
                 n_bad, N_LOOKS);
    else if (n_doubtful)
        buf_addf(&c->out, "ready, with %u thing%s to look at\n", n_doubtful,
                 n_doubtful == 1 ? "" : "s");
    else
        buf_add_str(&c->out, STR("ready: signalbox serve\n"));
}

static void show_as_json(struct cli *c, const struct finding *all, bool is_ok)
{
    static const char *const marks[] = {"ok", "warning", "failed"};
    struct json_out o = json_out(&c->out);

    json_open(&o, '{');
    json_key(&o, STR("ok"));
    json_put_bool(&o, is_ok);
    json_key(&o, STR("checks"));
    json_open(&o, '[');
    for (size_t i = 0; i < N_LOOKS; i++) {
        json_open(&o, '{');
        json_key(&o, STR("name"));
        json_put_str(&o, str_of(looks[i].name));
        json_key(&o, STR("status"));
        json_put_str(&o, str_of(marks[all[i].mark]));
        json_key(&o, STR("message"));
        json_put_str(&o, str_of(all[i].text));
        json_key(&o, STR("advice"));
        json_put_str(&o, str_of(all[i].advice));
        json_close(&o, '}');
    }
    json_close(&o, ']');
    json_close(&o, '}');
    buf_add_char(&c->out, '\n');
}

enum exit_status cli_doctor(struct cli *c)
{
    struct finding all[N_LOOKS] = {0};
    struct config_report report;
    struct config_source src;
    enum exit_status status = EXIT_DONE;
    struct doctor d = {.report = &report};

    if (!cli_source(c, &src, &status))
        return status;
    d.config = config_load(&src, &report);
    for (size_t i = 0; i < N_LOOKS; i++) {
        if (looks[i].needs_config && !d.config)
            found(&all[i], DOUBTFUL,
                  "not looked at before the configuration is right");
        else
            looks[i].look(&d, &all[i]);
        if (all[i].mark == BAD)
            status = EXIT_FAILED;
    }
    if (c->json)
        show_as_json(c, all, status == EXIT_DONE);
    else
        show_all(c, all);
    config_free(d.config);
    return status;
}
