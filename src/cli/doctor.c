/* doctor: would the server run here? One row per question; each look fills one
 * finding and knows nothing of how it is shown. Nothing is changed on the way:
 * no folder made, no lock taken, and the address is let go at once. Questions
 * about settings are not asked while the configuration is wrong, since the
 * answers would be about something else. */
#include "cli/advice_config.h"
#include "cli/finding.h"

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
#include "certs.h"
#include "cli/names_held.h"
#include "cli/reach.h"
#include "cli/sandbox.h"
#include "cli/tlsfiles.h"
#include "keyring.h"
#include "outward.h"
#include "server.h"
#include "store/store.h"

struct doctor {
    struct config *config; /* NULL when it is not valid */
    const struct config_report *report;
    bool is_running; /* somebody holds the data folder */
};

const struct arg_option cli_doctor_options[] = {
    CLI_SOURCE_OPTIONS,
    {"reach", "URL", "would the server connect to this, if an agent said so?",
     false},
    {0},
};

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
    } else if (c->has_file) {
        found(f, GOOD, "%.*s is valid", STR_ARG(c->path));
    } else {
        found(f, GOOD, "no file, defaults are used");
    }
}

/* A folder that can be used, but is not the server's alone. */
static void look_at_others(const char *path, struct finding *f)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        found(f, GOOD, "%s is not there yet; serve makes it", path);
    } else if (st.st_mode & 077 && !store_folder_is_ours(str_of(path))) {
        found(f, DOUBTFUL, "%s belongs to others too", path);
        advise(f, "choose a folder for the server alone: --data FOLDER");
    } else if (st.st_mode & 077) {
        found(f, DOUBTFUL, "others on this machine can look into %s", path);
        advise(f, "chmod 700 %s", path);
    } else {
        found(f, GOOD, "%s is there and writable", path);
    }
}

static void look_at_data(struct doctor *d, struct finding *f)
{
    struct why why = {""};
    enum err e = store_folder_look(d->config->data, &why);

    if (e == OK) {
        look_at_others(d->config->data.p, f);
        return;
    }
    d->is_running = e == ERR_BUSY;
    found(f, d->is_running ? DOUBTFUL : BAD, "%s", why.text);
}

static void look_at_database(struct doctor *d, struct finding *f)
{
    struct store_about about;
    struct why why = {""};
    enum err e = store_look_at(d->config->data, &about, &why);

    if (e == ERR_NOT_FOUND && store_folder_was_used(d->config->data)) {
        found(f, BAD,
              "empty or missing, though this folder has been used before; "
              "serve does not start without it");
        advise(f, "signalbox restore FILE, or serve --from-scratch to begin "
                  "with nothing");
    } else if (e == ERR_NOT_FOUND)
        found(f, GOOD, "not there yet; serve makes it");
    else if (e)
        found(f, BAD, "%s", why.text);
    else
        found(f, GOOD, "%lld KiB, started %lld time%s%s",
              (long long)(about.data_bytes + about.log_bytes) / 1024,
              (long long)about.n_starts, about.n_starts == 1 ? "" : "s",
              about.is_checked_whole ? "" : "; too large to look at all of it");
}

/* Room where the data is, or will be. */
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
            found(f, DOUBTFUL, "free space is not known: %s", strerror(errno));
            return;
        }
        at = above;
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

static int try_to_bind(const struct addr *addr)
{
    int one = 1, e = 0;
    int fd = socket(addr->sa.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return errno;
    /* As the server does it: what a closed connection left does not count. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, &addr->sa.any, addr->len) < 0 || listen(fd, 1) < 0)
        e = errno;
    close(fd);
    return e;
}

/* Whether it can be listened on; `how` says how to choose another. */
static void look_at_one_address(struct doctor *d, struct finding *f,
                                struct str address, const char *how)
{
    const char *text = address.p;
    struct addr addr;
    int e = addr_parse(address, &addr) != OK ? EINVAL : try_to_bind(&addr);

    switch (e) {
    case 0: found(f, GOOD, "%s is free", text); break;
    case EADDRINUSE:
        found(f, d->is_running ? DOUBTFUL : BAD, "%s is taken%s", text,
              d->is_running ? ", most likely by the running server" : "");
        advise(f, "ss -ltnp shows by whom; choose another with %s", how);
        break;
    case EACCES:
        found(f, BAD, "user %u may not listen on %s", (unsigned)geteuid(),
              text);
        advise(f, "choose a port from 1024 on with %s", how);
        break;
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        found(f, BAD, "this machine has no address %s", text);
        advise(f, "ip address lists those it has; choose one with %s", how);
        break;
    default:
        found(f, BAD, "cannot listen on %s: %s", text, strerror(e));
        advise(f, "choose another with %s", how);
    }
}

static void look_at_address(struct doctor *d, struct finding *f)
{
    if (d->config->listen.n)
        look_at_one_address(d, f, d->config->listen, "--listen HOST:PORT");
    else
        found(f, GOOD, "none without TLS");
}

static void look_at_tls(struct doctor *d, struct finding *f)
{
    if (d->config->tls.listen.n)
        look_at_one_address(d, f, d->config->tls.listen, "tls.listen");
    else
        found(f, GOOD, "off, as tls.listen is not set");
}

/* The first error, or else the first warning. */
static void take_problem(void *ctx, const char *setting, bool is_warning,
                         const char *what)
{
    struct finding *f = ctx;
    enum mark mark = is_warning ? DOUBTFUL : BAD;

    if (mark > f->mark)
        found(f, mark, "%s: %s", setting, what);
}

static void look_at_certs(struct doctor *d, struct finding *f)
{
    struct net_cert files[CERTS_MAX];
    size_t n = certs_of(d->config, files);
    int64_t now_ms = cli_now_ms(), days;
    struct finding problem = {GOOD, "", ""};
    struct buf names;

    if (!n) {
        found(f, GOOD, "none are needed without TLS");
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
    found(f, days < CERTS_SOON_DAYS ? DOUBTFUL : problem.mark,
          "for %.*s%s, good for %lld day%s%s%s",
          STR_ARG(names.n ? str_head(buf_str(&names), 160) : STR("no name")),
          n > 1 ? ", and others besides" : "", (long long)days,
          days == 1 ? "" : "s", problem.mark ? "; " : "", problem.text);
    if (days < CERTS_SOON_DAYS)
        advise(f, "have it renewed; a running server takes up the new one by "
                  "itself");
    buf_fini(&names);
}

static void look_at_files(struct doctor *d, struct finding *f)
{
    rlim_t need = (rlim_t)d->config->http.max_connections + SERVER_SPARE_FILES;
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

/* Those of the configuration; the server knows others besides. */
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
        found(f, DOUBTFUL, "%zu of %zu in the configuration may not work: %s",
              n_warned, c->agents.n, first);
        advise(f, "signalbox check lists them all");
    } else if (c->agents.n)
        found(f, GOOD, "%zu with %zu skill%s in the configuration", c->agents.n,
              n_skills, n_skills == 1 ? "" : "s");
    else
        found(f, GOOD, "none in the configuration");
}

static void add_held(void *ctx, const struct name_taken *t, const char *words)
{
    struct finding *f = ctx;

    if (f->mark == BAD)
        return; /* the first is enough */
    found(f, BAD, "%s", words);
    advise(f,
           "or name %.*s as its owner, where that is meant: agents.owner, or "
           "owner in the rules; signalbox check lists all such names",
           STR_ARG(t->holder));
}

/* Names of the operator's that somebody else holds. */
static void look_at_names(struct doctor *d, struct finding *f)
{
    struct gate_rules *own;
    const struct gate_rules *rules = names_rules(d->config, &own);

    names_held(d->config, rules, add_held, f);
    gate_rules_free(own);
    if (f->mark != BAD)
        found(f, GOOD, "no stranger holds one that rules or settings mention");
}

static void look_at_secrets(struct doctor *d, struct finding *f)
{
    struct keyring k;
    struct why why = {""};

    if (keyring_open(&k, d->config, false, &why) != OK) {
        found(f, BAD, "%s", why.text);
    } else if (k.has_key) {
        found(f, GOOD, "credentials of cards are sealed with the key %s",
              k.key.id);
    } else if (str_starts(str_of(k.why_not.text), STR("there is no key yet"))) {
        found(f, GOOD, "no key yet; serve makes one outside the data folder");
    } else {
        found(f, DOUBTFUL, "credentials of cards are not sealed: %s",
              k.why_not.text);
        advise(f, "openssl rand -hex 32 > FILE, and name it with "
                  "seal.keyFile");
    }
}

/* What agents may name. */
static void look_at_outgoing(struct doctor *d, struct finding *f)
{
    const struct config_ranges *allow = &d->config->outgoing.allow;
    const char *ca_file = d->config->outgoing.ca_file.p;
    const char *proxy = d->config->outgoing.proxy.p;
    struct why why;

    found(f, GOOD, "public addresses%s",
          *proxy ? ", through a proxy" : " only");
    if (allow->n)
        found(f, GOOD, "public addresses and %zu range%s%s", allow->n,
              allow->n == 1 ? "" : "s", *proxy ? ", through a proxy" : "");
    for (size_t i = 0; i < allow->n; i++)
        if (guard_range_is_all(&allow->list[i])) {
            found(f, DOUBTFUL,
                  "outgoing.allow opens every address, this machine and its "
                  "network included");
            advise(f, "list what is needed; signalbox doctor --reach URL says "
                      "what that is");
        }
    if (!*ca_file)
        return;
    tlsfiles_check_trust(ca_file, &why);
    if (why.text[0]) {
        found(f, DOUBTFUL, "%s", why.text);
        advise(f, "outgoing.caFile names a file of certificates in PEM form");
    }
}

static void take_model(void *ctx, const char *setting, const char *what)
{
    struct finding *f = ctx;

    if (f->mark == BAD)
        return;                                    /* the first is enough */
    if (str_starts(str_of(what), str_of(setting))) /* it is named already */
        found(f, BAD, "%s", what);
    else
        found(f, BAD, "%s: %s", setting, what);
    advise(f, "embed.kind \"builtin\" needs neither a file nor a provider");
}

static void look_at_model(struct doctor *d, struct finding *f)
{
    struct buf text;

    outward_check(d->config, take_model, f);
    if (f->mark == BAD)
        return;
    buf_init(&text, sizeof(f->text) - 1);
    outward_describe(d->config, &text);
    found(f, GOOD, "%.*s", STR_ARG(buf_str(&text)));
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
    {"data", look_at_data, true},        {"database", look_at_database, true},
    {"disk", look_at_disk, true},        {"address", look_at_address, true},
    {"tls", look_at_tls, true},          {"certs", look_at_certs, true},
    {"files", look_at_files, true},      {"outgoing", look_at_outgoing, true},
    {"agents", look_at_agents, true},    {"names", look_at_names, true},
    {"seal", look_at_secrets, true},     {"model", look_at_model, true},
    {"sandbox", look_at_sandbox, true},
};

enum { N_LOOKS = sizeof(looks) / sizeof(looks[0]) };

/* Showing them. */

static void show_all(struct cli *c, const struct finding *all)
{
    unsigned n_bad = 0, n_doubtful = 0;

    for (size_t i = 0; i < N_LOOKS; i++) {
        finding_show(c, looks[i].name, &all[i]);
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
    struct json_out o = json_out(&c->out);

    json_open(&o, '{');
    json_member_bool(&o, "ok", is_ok);
    json_key(&o, STR("checks"));
    json_open(&o, '[');
    for (size_t i = 0; i < N_LOOKS; i++)
        finding_put(&o, looks[i].name, &all[i]);
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

    if (args_has(&c->args, "reach"))
        return cli_reach(c, args_get(&c->args, "reach"));
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
