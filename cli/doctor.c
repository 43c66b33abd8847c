/* doctor: check whether the server would run here. Each row of the table is one
 * check that fills one finding. Nothing is changed: no folder is made, no lock
 * is taken, and the address is released at once. Checks of settings are skipped
 * while the configuration is invalid, because their results would mean nothing.
 */
#include "cli/finding.h"
#include "lab/advice_config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/names_held.h"
#include "cli/reach.h"
#include "cli/sandbox.h"
#include "cli/tlsfiles.h"
#include "server/keyring.h"
#include "server/providers.h"
#include "server/server.h"
#include "server/tls_files.h"
#include "store/store.h"

struct doctor {
    struct config *config; /* NULL when it is not valid */
    const struct config_report *report;
    bool is_running; /* the data folder is locked */
};

const struct arg_option cli_doctor_options[] = {
    CLI_SOURCE_OPTIONS,
    {"reach", "URL", "check whether the server may connect to this URL", false},
    {0},
};

static void look_at_version(struct doctor *d, struct finding *f)
{
    (void)d;
    finding_set(f, GOOD, "signalbox %s", SIGNALBOX_VERSION);
}

static void look_at_config(struct doctor *d, struct finding *f)
{
    const struct config *c = d->config;

    if (!c) {
        struct str rest = str_of(d->report->text);
        struct str first = str_cut(&rest, '\n');

        finding_set(f, BAD, "%.*s", STR_ARG(first));
        finding_advise(
            f, "signalbox check, with the same options, lists all errors");
    } else if (d->report->n_warnings) {
        finding_set(f, DOUBTFUL, "valid, with %u warning%s",
                    d->report->n_warnings,
                    d->report->n_warnings == 1 ? "" : "s");
        finding_advise(f, "signalbox check lists them");
    } else if (c->has_file) {
        finding_set(f, GOOD, "%.*s is valid", STR_ARG(c->path));
    } else {
        finding_set(f, GOOD, "no file, defaults are used");
    }
}

static void look_at_data(struct doctor *d, struct finding *f)
{
    const char *path = d->config->data.p;
    struct why why = {""};
    enum err e = store_folder_look(d->config->data, &why);
    struct stat st;

    if (e) {
        d->is_running = e == ERR_BUSY;
        finding_set(f, d->is_running ? DOUBTFUL : BAD, "%s", why.text);
    } else if (stat(path, &st) < 0) {
        finding_set(f, GOOD, "%s does not exist yet; serve creates it", path);
    } else if (st.st_mode & 077 && !store_folder_is_ours(str_of(path))) {
        finding_set(f, DOUBTFUL, "other users have access to %s", path);
        finding_advise(f, "choose a separate folder: --data FOLDER");
    } else if (st.st_mode & 077) {
        finding_set(f, DOUBTFUL, "other users of this machine can read %s",
                    path);
        finding_advise(f, "chmod 700 %s", path);
    } else {
        finding_set(f, GOOD, "%s exists and is writable", path);
    }
}

static void look_at_database(struct doctor *d, struct finding *f)
{
    struct store_about about;
    struct why why = {""};
    enum err e = store_look_at(d->config->data, &about, &why);

    if (e == ERR_NOT_FOUND && store_folder_was_used(d->config->data)) {
        finding_set(f, BAD,
                    "empty or missing, although this folder was used before; "
                    "serve does not start without it");
        finding_advise(
            f, "signalbox restore FILE, or serve --from-scratch for an empty "
               "database");
    } else if (e == ERR_NOT_FOUND)
        finding_set(f, GOOD, "does not exist yet; serve creates it");
    else if (e)
        finding_set(f, BAD, "%s", why.text);
    else
        finding_set(
            f, GOOD, "%lld KiB, started %lld time%s%s",
            (long long)(about.data_bytes + about.log_bytes) / 1024,
            (long long)about.n_starts, about.n_starts == 1 ? "" : "s",
            about.is_checked_whole ? "" : "; too large for a complete check");
}

/* Free space for the data folder, which may not exist yet. */
static void look_at_disk(struct doctor *d, struct finding *f)
{
    enum { LEAST_MIB = 64, COMFORTABLE_MIB = 1024 };
    struct str at = d->config->data;
    char path[PATH_MAX];
    struct statvfs fs;
    unsigned long long mib;

    while (snprintf(path, sizeof(path), "%.*s", STR_ARG(at)),
           statvfs(path, &fs) < 0) {
        struct str above = str_parent(at);

        if (str_eq(above, at)) {
            finding_set(f, DOUBTFUL, "free space is not known: %s",
                        strerror(errno));
            return;
        }
        at = above;
    }
    mib = (unsigned long long)fs.f_bavail * fs.f_frsize / (1024 * 1024);
    if (mib >= 10 * 1024)
        finding_set(f, GOOD, "%llu GiB free for the data", mib / 1024);
    else
        finding_set(f,
                    mib < LEAST_MIB         ? BAD
                    : mib < COMFORTABLE_MIB ? DOUBTFUL
                                            : GOOD,
                    "%llu MiB free for the data", mib);
    if (fs.f_files && !fs.f_favail)
        finding_set(f, BAD, "the disk of the data has no free inodes");
    if (f->mark != GOOD)
        finding_advise(
            f, "free some space, or choose another disk with --data FOLDER");
}

static int try_to_bind(const struct addr *addr)
{
    int one = 1, e = 0;
    int fd = socket(addr->sa.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return errno;
    /* As the server does: ignore closed connections in TIME_WAIT. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, &addr->sa.any, addr->len) < 0 || listen(fd, 1) < 0)
        e = errno;
    close(fd);
    return e;
}

/* Try to listen on the address; `how` says how to choose another. */
static void look_at_one_address(struct doctor *d, struct finding *f,
                                struct str address, const char *how)
{
    const char *text = address.p;
    struct addr addr;
    int e = addr_parse(address, &addr) != OK ? EINVAL : try_to_bind(&addr);

    switch (e) {
    case 0: finding_set(f, GOOD, "%s is free", text); break;
    case EADDRINUSE:
        finding_set(f, d->is_running ? DOUBTFUL : BAD, "%s is in use%s", text,
                    d->is_running ? ", probably by the running server" : "");
        finding_advise(f, "ss -ltnp shows the program; choose another with %s",
                       how);
        break;
    case EACCES:
        finding_set(f, BAD, "user %u may not listen on %s", (unsigned)geteuid(),
                    text);
        finding_advise(f, "choose a port above 1023 with %s", how);
        break;
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        finding_set(f, BAD, "this machine has no address %s", text);
        finding_advise(f, "ip address lists its addresses; choose one with %s",
                       how);
        break;
    default:
        finding_set(f, BAD, "cannot listen on %s: %s", text, strerror(e));
        finding_advise(f, "choose another with %s", how);
    }
}

static void look_at_address(struct doctor *d, struct finding *f)
{
    if (d->config->listen.n)
        look_at_one_address(d, f, d->config->listen, "--listen HOST:PORT");
    else
        finding_set(f, GOOD, "none without TLS");
}

static void look_at_tls(struct doctor *d, struct finding *f)
{
    if (d->config->tls.listen.n)
        look_at_one_address(d, f, d->config->tls.listen, "tls.listen");
    else
        finding_set(f, GOOD, "off, as tls.listen is not set");
}

/* The first error, or else the first warning. */
static void take_problem(void *ctx, const char *setting, bool is_warning,
                         const char *what)
{
    struct finding *f = ctx;
    enum mark mark = is_warning ? DOUBTFUL : BAD;

    if (mark > f->mark)
        finding_set(f, mark, "%s: %s", setting, what);
}

static void look_at_certs(struct doctor *d, struct finding *f)
{
    struct net_cert files[TLS_FILES_MAX];
    size_t n = tls_files_of(d->config, files);
    int64_t now_ms = cli_now_ms(), days;
    struct finding problem = {GOOD, "", ""};
    struct buf names;

    if (!n) {
        finding_set(f, GOOD, "not needed without TLS");
        return;
    }
    days = tlsfiles_check(d->config, now_ms, take_problem, &problem) -
           now_ms / 1000;
    days /= 24 * 3600;
    if (problem.mark == BAD) {
        *f = problem;
        return;
    }
    buf_init(&names, 2048);
    tlsfiles_add_names(files[0].cert_file, &names);
    finding_set(
        f, days < TLS_FILES_SOON_DAYS ? DOUBTFUL : problem.mark,
        "for %.*s%s, valid for %lld day%s%s%s",
        STR_ARG(names.n ? str_head(buf_str(&names), 160) : STR("no name")),
        n > 1 ? " and others" : "", (long long)days, days == 1 ? "" : "s",
        problem.mark ? "; " : "", problem.text);
    if (days < TLS_FILES_SOON_DAYS)
        finding_advise(
            f, "renew it; a running server loads the new one automatically");
    buf_fini(&names);
}

static void doctor_check_tls_files(struct doctor *d, struct finding *f)
{
    rlim_t need = (rlim_t)d->config->http.max_connections + SERVER_SPARE_FILES;
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) < 0) {
        finding_set(f, DOUBTFUL, "the limit on open files is not known: %s",
                    strerror(errno));
        return;
    }
    /* serve raises the soft limit itself; the hard one is for root. */
    if (lim.rlim_max >= need) {
        finding_set(f, GOOD, "enough for %lld connections",
                    (long long)d->config->http.max_connections);
        return;
    }
    finding_set(f, DOUBTFUL, "%llu open files are too few for %lld connections",
                (unsigned long long)lim.rlim_max,
                (long long)d->config->http.max_connections);
    finding_advise(
        f,
        "raise it (ulimit -Hn %llu, or LimitNOFILE=%llu in the unit), or "
        "lower http.maxConnections",
        (unsigned long long)need, (unsigned long long)need);
}

/* The agents of the configuration; the server may have others. */
static void look_at_agents(struct doctor *d, struct finding *f)
{
    const struct config *c = d->config;
    char first[ADVICE_TEXT_MAX + AGENT_NAME_MAX + 8] = "";
    size_t n_skills = 0, n_warned = 0;

    for (size_t i = 0; i < c->agents.n; i++) {
        struct advice advice;

        n_skills += c->agents.list[i].n_skills;
        advice_config(c, i, &advice);
        if (advice.n && !n_warned++)
            snprintf(first, sizeof(first), "%.*s: %s",
                     STR_ARG(c->agents.list[i].name), advice.list[0].message);
    }
    if (n_warned) {
        finding_set(f, DOUBTFUL,
                    "%zu of %zu in the configuration may not work: %s",
                    n_warned, c->agents.n, first);
        finding_advise(f, "signalbox check lists them all");
    } else if (c->agents.n)
        finding_set(f, GOOD, "%zu with %zu skill%s in the configuration",
                    c->agents.n, n_skills, n_skills == 1 ? "" : "s");
    else
        finding_set(f, GOOD, "none in the configuration");
}

static void doctor_add_held_name(void *ctx, const struct name_taken *t,
                                 const char *words)
{
    struct finding *f = ctx;

    if (f->mark == BAD)
        return; /* the first is enough */
    finding_set(f, BAD, "%s", words);
    finding_advise(
        f,
        "if this is intended, name %.*s as the owner: agents.owner, or owner "
        "in the rules; signalbox check lists all such names",
        STR_ARG(t->holder));
}

/* Reserved names that another user holds. */
static void doctor_check_reserved_names(struct doctor *d, struct finding *f)
{
    struct gate_rules *own;
    const struct gate_rules *rules = names_rules(d->config, &own);

    names_held(d->config, rules, doctor_add_held_name, f);
    gate_rules_free(own);
    if (f->mark != BAD)
        finding_set(f, GOOD,
                    "no other user holds a name from the rules or settings");
}

static void look_at_secrets(struct doctor *d, struct finding *f)
{
    struct keyring k;
    struct why why = {""};

    if (keyring_open(&k, d->config, false, &why) != OK) {
        finding_set(f, BAD, "%s", why.text);
    } else if (k.has_key) {
        finding_set(f, GOOD, "credentials of cards are sealed with the key %s",
                    k.key.id);
    } else if (str_starts(str_of(k.why_not.text), STR("there is no key yet"))) {
        finding_set(f, GOOD,
                    "no key yet; serve creates one outside the data folder");
    } else {
        finding_set(f, DOUBTFUL, "credentials of cards are not sealed: %s",
                    k.why_not.text);
        finding_advise(f, "openssl rand -hex 32 > FILE, and set seal.keyFile "
                          "to FILE");
    }
}

/* The addresses to which agents may send the server. */
static void look_at_outgoing(struct doctor *d, struct finding *f)
{
    const struct config_ranges *allow = &d->config->outgoing.allow;
    const char *ca_file = d->config->outgoing.ca_file.p;
    const char *proxy = d->config->outgoing.proxy.p;
    struct why why;

    finding_set(f, GOOD, "public addresses%s",
                *proxy ? ", through a proxy" : " only");
    if (allow->n)
        finding_set(f, GOOD, "public addresses and %zu range%s%s", allow->n,
                    allow->n == 1 ? "" : "s",
                    *proxy ? ", through a proxy" : "");
    for (size_t i = 0; i < allow->n; i++)
        if (guard_range_is_all(&allow->list[i])) {
            finding_set(
                f, DOUBTFUL,
                "outgoing.allow opens every address, this machine and its "
                "network included");
            finding_advise(
                f, "list only the ranges that are needed; signalbox doctor "
                   "--reach URL prints them");
        }
    if (!*ca_file)
        return;
    tlsfiles_check_trust(ca_file, &why);
    if (why.text[0]) {
        finding_set(f, DOUBTFUL, "%s", why.text);
        finding_advise(
            f, "outgoing.caFile needs a file of certificates in PEM format");
    }
}

static void take_model(void *ctx, const char *setting, const char *what)
{
    struct finding *f = ctx;

    if (f->mark == BAD)
        return;                                    /* the first is enough */
    if (str_starts(str_of(what), str_of(setting))) /* it is named already */
        finding_set(f, BAD, "%s", what);
    else
        finding_set(f, BAD, "%s: %s", setting, what);
    finding_advise(
        f, "embed.kind \"builtin\" needs neither a file nor a provider");
}

static void look_at_model(struct doctor *d, struct finding *f)
{
    struct buf text;

    providers_check(d->config, take_model, f);
    if (f->mark == BAD)
        return;
    buf_init(&text, sizeof(f->text) - 1);
    providers_describe(d->config, &text);
    finding_set(f, GOOD, "%.*s", STR_ARG(buf_str(&text)));
    buf_fini(&text);
}

static void look_at_sandbox(struct doctor *d, struct finding *f)
{
    sandbox_look(d->config, f);
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
        finding_set(f, GOOD, "%s", text);
        return;
    }
    finding_set(f, BAD, "the clock is wrong: %s", text);
    finding_advise(f, "set the clock: timedatectl set-ntp true");
}

static void look_at_libs(struct doctor *d, struct finding *f)
{
    struct cli_lib libs[CLI_LIBS_MAX];
    size_t n = cli_libs(libs), used = 0;

    (void)d;
    finding_set(f, GOOD, "%s", "");
    for (size_t i = 0; i < n && used < sizeof(f->text); i++) {
        used +=
            (size_t)snprintf(f->text + used, sizeof(f->text) - used, "%s%s %s",
                             i ? ", " : "", libs[i].name, libs[i].loaded);
        if (!libs[i].is_older)
            continue;
        f->mark = BAD;
        finding_advise(
            f,
            "%s is older than %s, the version that signalbox was built with; "
            "install that version or a later one",
            libs[i].name, libs[i].built);
    }
}

static const struct {
    const char *name;
    void (*look)(struct doctor *d, struct finding *f);
    bool needs_config;
} looks[] = {
    {"version", look_at_version, false},
    {"libraries", look_at_libs, false},
    {"clock", look_at_clock, false},
    {"config", look_at_config, false},
    {"data", look_at_data, true},
    {"database", look_at_database, true},
    {"disk", look_at_disk, true},
    {"address", look_at_address, true},
    {"tls", look_at_tls, true},
    {"certs", look_at_certs, true},
    {"files", doctor_check_tls_files, true},
    {"outgoing", look_at_outgoing, true},
    {"agents", look_at_agents, true},
    {"names", doctor_check_reserved_names, true},
    {"seal", look_at_secrets, true},
    {"model", look_at_model, true},
    {"sandbox", look_at_sandbox, true},
};

enum { N_LOOKS = sizeof(looks) / sizeof(looks[0]) };

enum exit_status cli_doctor(struct cli *c)
{
    struct finding all[N_LOOKS] = {0};
    struct config_report report;
    struct config_source src;
    enum exit_status status = EXIT_DONE;
    struct doctor d = {.report = &report};
    struct json_out o = json_out(&c->out);
    unsigned n_bad = 0, n_doubtful = 0;

    if (args_has(&c->args, "reach"))
        return cli_reach(c, args_get(&c->args, "reach"));
    cli_source(c, &src);
    d.config = config_load(&src, &report);
    for (size_t i = 0; i < N_LOOKS; i++) {
        if (looks[i].needs_config && !d.config)
            finding_set(&all[i], DOUBTFUL,
                        "skipped, because the configuration is invalid");
        else
            looks[i].look(&d, &all[i]);
        n_bad += all[i].mark == BAD;
        n_doubtful += all[i].mark == DOUBTFUL;
    }
    config_free(d.config);
    if (n_bad)
        status = EXIT_FAILED;
    if (c->json) {
        json_open(&o, '{');
        json_member_bool(&o, "ok", status == EXIT_DONE);
        json_key(&o, STR("checks"));
        json_open(&o, '[');
        for (size_t i = 0; i < N_LOOKS; i++)
            finding_put(&o, looks[i].name, &all[i]);
        json_close(&o, ']');
        json_close(&o, '}');
        buf_add_char(&c->out, '\n');
        return status;
    }
    for (size_t i = 0; i < N_LOOKS; i++)
        finding_show(c, looks[i].name, &all[i]);
    buf_add_char(&c->out, '\n');
    if (n_bad)
        buf_addf(&c->out, "not ready: %u of %d checks failed\n", n_bad,
                 N_LOOKS);
    else if (n_doubtful)
        buf_addf(&c->out, "ready, with %u warning%s\n", n_doubtful,
                 n_doubtful == 1 ? "" : "s");
    else
        buf_add_str(&c->out, STR("ready: signalbox serve\n"));
    return status;
}
