/* Loading: each source overrides the one before, and the report collects every
 * problem, so that one run finds all.
 *
 *     defaults -> file -> environment -> --set -> agents -> checks across rows
 *
 * All four sources end in apply.c, with a path, a value and its position; they
 * differ only in the prefix of an error message.
 *
 * Rejected: stopping at the first error (a file is written in one go and should
 * be repaired in one go), and ignoring unknown settings (a typo in a limit
 * would silently remove the limit). */
#include "server/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/url.h"
#include "server/config/internal.h"

enum {
    FILE_MAX_BYTES = 1024 * 1024,
    /* A JSON node takes about forty times the shortest text it represents. A
     * file that is nothing but nodes is rejected. */
    SCRATCH_BYTES = 32 * 1024 * 1024,
};

static const char default_path[] = "signalbox.jsonc";
static const char variable_prefix[] = "SIGNALBOX_";

static void read_defaults(struct load *l)
{
    const struct setting_table *t = &config_settings;
    struct value_pos at = {.from = FROM_DEFAULT, .name = STR("default")};

    for (size_t i = 0; i < t->n; i++)
        load_one(l, t, l->c, str_of(t->rows[i].path), at,
                 str_of(t->rows[i].preset));
}

/* The file. */

static enum err read_config_bytes(int fd, struct buf *out)
{
    enum { CHUNK_BYTES = 16 * 1024 };

    for (;;) {
        char *to = buf_reserve(out, CHUNK_BYTES);
        ssize_t n;

        if (!to)
            return out->n > FILE_MAX_BYTES ? ERR_LIMIT : ERR_NOMEM;
        n = FAULT("config.read") ? (errno = EIO, -1)
                                 : read(fd, to, CHUNK_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ERR_IO;
        if (n == 0)
            return out->n > FILE_MAX_BYTES ? ERR_LIMIT : OK;
        buf_commit(out, (size_t)n);
    }
}

static enum err read_open_file(struct load *l, struct value_pos at, int fd,
                               struct buf *out)
{
    struct stat st;
    enum err e;

    if (fstat(fd, &st) < 0) {
        report_error(&l->report, at, "cannot read it: %s", strerror(errno));
        return ERR_IO;
    }
    if (!S_ISREG(st.st_mode)) {
        report_error(&l->report, at, "is %s; give the path of a file",
                     S_ISDIR(st.st_mode) ? "a folder" : "not a plain file");
        return ERR_IO;
    }
    e = read_config_bytes(fd, out);
    if (e == ERR_IO)
        report_error(&l->report, at, "cannot read it: %s", strerror(errno));
    else if (e == ERR_LIMIT)
        report_error(&l->report, at,
                     "is larger than %d MiB, the limit of a configuration",
                     FILE_MAX_BYTES / (1024 * 1024));
    else if (e)
        report_no_memory(&l->report, at);
    return e;
}

static enum err read_config_file(struct load *l, struct value_pos at,
                                 const char *path, struct buf *out)
{
    /* O_NONBLOCK: a pipe without a writer must not hang the start. */
    int fd = FAULT("config.open")
                 ? (errno = EIO, -1)
                 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    enum err e;

    if (fd < 0 && errno == ENOENT) {
        report_error(&l->report, at, "there is no such file");
        return ERR_NOT_FOUND;
    }
    if (fd < 0) {
        report_error(&l->report, at, "cannot open it: %s", strerror(errno));
        return ERR_IO;
    }
    e = read_open_file(l, at, fd, out);
    close(fd);
    return e;
}

/* A blank file gets a better message than the JSON reader's. */
static bool file_is_blank(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!strchr(" \t\r\n", text.p[i]))
            return false;
    return true;
}

static void apply_file(struct load *l, struct value_pos at, struct str text)
{
    static const struct str mark = {"\xef\xbb\xbf", 3};
    struct json_error err = {0};
    struct json *root;

    /* Some editors put a byte order mark before UTF-8. */
    if (str_starts(text, mark))
        text = str_sub(text, mark.n, text.n);
    if (text.n && memchr(text.p, 0, text.n)) {
        report_error(&l->report, at,
                     "contains zero bytes; it must be text in UTF-8");
        return;
    }
    if (file_is_blank(text)) {
        report_error(&l->report, at, "is empty; write {} to keep all defaults");
        return;
    }
    l->report.text = text;
    root = json_parse(&l->scratch, text, JSON_WITH_COMMENTS, &err);
    at.has_line = true;
    at.at = at.key_at = root ? root->at : err.at;
    if (!root)
        report_error(&l->report, at, "%s", err.what);
    else if (root->type != JSON_OBJ)
        report_error(&l->report, at,
                     "a configuration is an object, { ... }, not %s",
                     value_words(root).text);
    else
        load_walk(l, &config_settings, l->c, (struct str){0}, at, root);
}

/* The path of the file, which need not exist. */
static const char *choose_config_file(const struct load *l, const char *path)
{
    const char *named = config_env(l->environ, "SIGNALBOX_CONFIG");

    if (path)
        return path;
    return named && *named ? named : default_path;
}

static void read_file_if_any(struct load *l, const char *given)
{
    const char *path = choose_config_file(l, given);
    struct value_pos at = {.from = FROM_FILE,
                           .name = *path ? str_of(path) : STR("\"\"")};

    if (!load_keep(l, at, at.name, &l->c->path))
        return;
    /* Only the default file may be missing. */
    l->c->has_file =
        path != default_path || access(path, F_OK) == 0 || errno != ENOENT;
    if (l->c->has_file && read_config_file(l, at, path, &l->file) == OK)
        apply_file(l, at, buf_str(&l->file));
}

/* The environment. */

const char *config_env(char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

/* Whether a variable such as HTTP__MAX_BODY_BYTES names http.maxBodyBytes. */
static bool variable_names(struct str name, struct str path)
{
    size_t j = 0;

    for (size_t i = 0; i < name.n; i++) {
        bool is_level = str_starts(str_sub(name, i, name.n), STR("__"));

        if (name.p[i] == '_' && !is_level)
            continue;
        if (j == path.n || (path.p[j] == '.') != is_level)
            return false;
        if (!is_level && str_lower(name.p[i]) != str_lower(path.p[j]))
            return false;
        i += is_level;
        j++;
    }
    return j == path.n;
}

/* The path of the row or section that a variable names; empty when none. */
static struct str path_of_variable(const struct setting_table *t,
                                   struct str name)
{
    for (size_t i = 0; i < t->n; i++) {
        struct str path = str_of(t->rows[i].path);
        struct str section = str_sub(path, 0, str_find(path, '.', 0));

        if (variable_names(name, path))
            return path;
        if (variable_names(name, section))
            return section;
    }
    return (struct str){0};
}

/* The variable that was probably meant, with its prefix; "" when none. */
static void nearest_variable(const struct setting_table *t, struct str written,
                             char out[SETTING_VARIABLE_BYTES])
{
    struct str_guess g =
        str_guess(str_sub(written, sizeof(variable_prefix) - 1, written.n));

    for (size_t i = 0; i < t->n; i++) {
        struct str path = str_of(t->rows[i].path);

        setting_variable(path, out);
        str_guess_offer(&g, path, str_distance(written, str_of(out)));
    }
    out[0] = '\0';
    if (g.name.n)
        setting_variable(g.name, out);
}

/* For a service called signalbox, Kubernetes sets SIGNALBOX_PORT=tcp://...,
 * SIGNALBOX_SERVICE_HOST and the like in every container beside it. None of
 * them has two underscores in a row, so a variable without is only a warning.
 */
static void report_unknown_variable(struct load *l,
                                    const struct setting_table *t,
                                    struct value_pos at)
{
    bool has_level = memmem(at.name.p, at.name.n, "__", 2) != NULL;
    char meant[SETTING_VARIABLE_BYTES];
    const char *then = "", *end = "";

    nearest_variable(t, at.name, meant);
    if (*meant)
        then = "; did you mean ", end = "?";
    else if (has_level)
        then = "; signalbox help config lists all of them";
    if (has_level)
        report_error(&l->report, at, "there is no such setting%s%s%s", then,
                     meant, end);
    else
        report_warning(&l->report, at,
                       "ignored, there is no such setting%s%s%s", then, meant,
                       end);
}

/* Variables of Signalbox that are not settings. */
static bool variable_is_reserved(struct str name)
{
    static const char *const names[] = {"SIGNALBOX_URL", "SIGNALBOX_TOKEN",
                                        "SIGNALBOX_CA", "SIGNALBOX_CONFIG",
                                        "SIGNALBOX_DEMO_MODEL"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_eq(name, str_of(names[i])))
            return true;
    return false;
}

static void read_variable(struct load *l, struct str entry)
{
    const struct setting_table *t = &config_settings;
    struct str value = entry, name = str_cut(&value, '='), path;
    struct value_pos at = {.from = FROM_ENV, .name = name};

    if (variable_is_reserved(name))
        return;
    path =
        path_of_variable(t, str_sub(name, sizeof(variable_prefix) - 1, name.n));
    if (!path.n)
        report_unknown_variable(l, t, at);
    else if (value.n)
        load_one(l, t, l->c, path, at, value);
}

/* The command line. */

static void read_set(struct load *l, struct str text)
{
    const struct setting_table *t = &config_settings;
    struct str value = text, path = str_cut(&value, '=');
    const struct setting *s = setting_find(t, path);
    struct value_pos at = {.from = FROM_FLAG};

    at.name =
        s && s->flag ? str_of(s->flag) : load_join(l, STR("--set "), path);
    if (!at.name.p)
        at.name = STR("--set");
    if (path.n == text.n)
        report_error(&l->report, at, "write it as --set NAME=VALUE");
    else
        load_one(l, t, l->c, path, at, value);
}

/* Checks across rows. */

struct value_pos load_where(const struct load *l, const char *path)
{
    const struct setting *s = setting_find(&config_settings, str_of(path));

    return l->where[s - config_settings.rows];
}

/* Whether both cannot be listened on: the port is the same, and the addresses
 * are equal or one is the wildcard of their family. Port 0 is a new one each
 * time. */
static bool addresses_clash(const struct addr *a, const struct addr *b)
{
    static const uint8_t all_v4[ADDR_BYTES] = {[10] = 0xff, 0xff},
                         all_v6[ADDR_BYTES] = {0};
    const uint8_t *all = a->sa.any.sa_family == AF_INET ? all_v4 : all_v6;
    uint8_t x[ADDR_BYTES], y[ADDR_BYTES];

    /* Both families have the port at the same offset. */
    if (a->sa.any.sa_family != b->sa.any.sa_family || !a->sa.v4.sin_port ||
        a->sa.v4.sin_port != b->sa.v4.sin_port)
        return false;
    addr_bytes(&a->sa.any, x);
    addr_bytes(&b->sa.any, y);
    return memcmp(x, y, sizeof(x)) == 0 || memcmp(x, all, sizeof(x)) == 0 ||
           memcmp(y, all, sizeof(y)) == 0;
}

static void check_tls(struct load *l)
{
    const struct config *c = l->c;
    bool has_both = c->tls.cert_file.n && c->tls.key_file.n;
    struct addr plain, tls;

    if (addr_parse(c->listen, &plain) == OK &&
        addr_parse(c->tls.listen, &tls) == OK && addresses_clash(&plain, &tls))
        report_error(&l->report, load_where(l, "tls.listen"),
                     "tls.listen (%.*s) and listen (%.*s) overlap: give one of "
                     "them another port, or set listen to \"\" for TLS only",
                     STR_ARG(c->tls.listen), STR_ARG(c->listen));
    if (c->tls.listen.n && !has_both)
        report_error(&l->report, load_where(l, "tls.listen"),
                     "tls.listen needs a certificate: set tls.certFile and "
                     "tls.keyFile to the files with it and its key");
    else if (!c->tls.listen.n &&
             (c->tls.cert_file.n || c->tls.key_file.n || c->tls.more.n))
        report_warning(&l->report,
                       load_where(l, c->tls.cert_file.n  ? "tls.certFile"
                                     : c->tls.key_file.n ? "tls.keyFile"
                                                         : "tls.more"),
                       "there is a certificate, but no tls.listen to use it: "
                       "TLS is off");
}

static void check_metrics(struct load *l)
{
    const struct {
        const char *setting;
        struct str address;
    } others[] = {{"listen", l->c->listen}, {"tls.listen", l->c->tls.listen}};
    struct addr own, other;

    for (size_t i = 0; i < 2; i++)
        if (addr_parse(l->c->metrics.listen, &own) == OK &&
            addr_parse(others[i].address, &other) == OK &&
            addresses_clash(&own, &other))
            report_error(&l->report, load_where(l, "metrics.listen"),
                         "metrics.listen (%.*s) and %s (%.*s) overlap: give "
                         "one of them another port",
                         STR_ARG(l->c->metrics.listen), others[i].setting,
                         STR_ARG(others[i].address));
}

/* Limits for one user, address or agent that exceed the limit for all, and so
 * never apply. Zero means no limit, on purpose. A default is reported only
 * where it no longer keeps one from using up everything. */
static void check_config_limits(struct load *l)
{
    static const struct {
        const char *one, *all, *effect;
        bool is_harmless;
    } pairs[] = {
        {"ws.maxFrameBytes", "ws.maxMessageBytes",
         "a frame cannot be larger than its message", true},
        {"http.maxConnectionsPerAddress", "http.maxConnections",
         "one address can take all connections", false},
        {"tasks.maxUnfinishedPerUser", "tasks.maxUnfinished",
         "one user gets at most two thirds of the limit for all", true},
        {"tasks.maxUnfinishedBytesPerUser", "tasks.maxUnfinishedBytes",
         "one user gets at most two thirds of the limit for all", true},
        {"registry.maxAgentsPerUser", "registry.maxAgents",
         "one user can use up the limit for all", false},
        {"deliver.inFlight", "deliver.maxInFlight",
         "one agent can use up the limit for all", false},
    };
    const struct setting_table *t = &config_settings;

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const struct setting *one = setting_find(t, str_of(pairs[i].one));
        const struct setting *all = setting_find(t, str_of(pairs[i].all));
        int64_t n = *(const int64_t *)setting_look(one, l->c);
        int64_t most = *(const int64_t *)setting_look(all, l->c);
        bool is_preset = load_where(l, one->path).from == FROM_DEFAULT;

        if (n > most && !(is_preset && pairs[i].is_harmless))
            report_warning(&l->report,
                           load_where(l, is_preset ? all->path : one->path),
                           "%s is %lld%s and %s %lld: %s", one->path,
                           (long long)n, is_preset ? " by default" : "",
                           all->path, (long long)most, pairs[i].effect);
    }
}

/* The agents of the file count against the registry's limits. */
static void check_agents(struct load *l)
{
    const struct config *c = l->c;
    size_t n_skills = 0;

    for (size_t i = 0; i < c->agents.n; i++)
        n_skills += c->agents.list[i].n_skills;
    if ((int64_t)c->agents.n > c->registry.max_agents)
        report_error(&l->report, load_where(l, "agents.list"),
                     "agents.list has %zu agents, and registry.maxAgents is "
                     "%lld",
                     c->agents.n, (long long)c->registry.max_agents);
    if ((int64_t)n_skills > c->registry.max_skills)
        report_error(&l->report, load_where(l, "agents.list"),
                     "agents.list has %zu skills in all, and "
                     "registry.maxSkills is %lld",
                     n_skills, (long long)c->registry.max_skills);
}

static void check_search_weights(struct load *l)
{
    const char *last = "search.textWeight";

    if (load_where(l, last).from < load_where(l, "search.semanticWeight").from)
        last = "search.semanticWeight";
    if (l->c->search.semantic_weight == 0 && l->c->search.text_weight == 0)
        report_error(&l->report, load_where(l, last),
                     "search.semanticWeight and search.textWeight are both 0, "
                     "so a search would find nothing; set one of them");
}

bool load_is_exposed(struct str text)
{
    char host[SETTING_STR_MAX + 16];
    struct addr addr;
    struct url url;

    if (url_read(text, &url, NULL) || url.is_tls)
        return false;
    snprintf(host, sizeof(host), url.is_v6 ? "[%.*s]:1" : "%.*s:1",
             STR_ARG(url.host));
    return !str_eq_nocase(url.host, STR("localhost")) &&
           (addr_parse(str_of(host), &addr) || !addr_is_loopback(&addr));
}

static void check_embed(struct load *l)
{
    const struct config *c = l->c;

    if (c->embed.kind != CONFIG_EMBED_HTTP)
        return;
    if (!c->embed.http.url.n || !c->embed.http.model.n)
        report_error(&l->report, load_where(l, "embed.kind"),
                     "\"http\" needs a provider: set embed.http.url, including "
                     "its path, and embed.http.model");
    if (load_is_exposed(c->embed.http.url))
        report_warning(&l->report, load_where(l, "embed.http.url"),
                       "%sall texts are sent to embed.http.url in plain text; "
                       "use https",
                       c->embed.http.key_variable.n ? "the key and " : "");
}

/* Spans contain no text of users, but the headers may contain a key. */
static void check_traces(struct load *l)
{
    const struct config *c = l->c;

    if (c->traces.headers_variable.n && load_is_exposed(c->traces.endpoint))
        report_warning(&l->report, load_where(l, "traces.endpoint"),
                       "the headers of traces.headersVariable are sent to "
                       "traces.endpoint in plain text; use https");
}

void load_secret(struct load *l, const char *setting, struct str variable,
                 struct str *key)
{
    const char *value = variable.n ? config_env(l->environ, variable.p) : NULL;

    if (value && *value)
        load_keep(l, load_where(l, setting), str_of(value), key);
}

/* The path of a file below a folder; empty where the folder is not set. */
static struct str default_key_file(struct load *l, const char *folder,
                                   const char *file)
{
    size_t n = folder && *folder == '/' ? strlen(folder) + strlen(file) : 0;
    char *path = n ? arena_alloc(&l->c->arena, n + 1) : NULL;

    if (!path)
        return STR(""); /* without memory cards are not sealed, and that is
                         * reported */
    snprintf(path, n + 1, "%s%s", folder, file);
    return (struct str){path, n};
}

static void load_secrets(struct load *l)
{
    const char *xdg = config_env(l->environ, "XDG_CONFIG_HOME");
    struct config *c = l->c;

    load_secret(l, "seal.keyVariable", c->secrets.key_variable,
                &c->secrets.key);
    c->secrets.credential_file = default_key_file(
        l, config_env(l->environ, "CREDENTIALS_DIRECTORY"), "/signalbox.key");
    c->secrets.home_file = default_key_file(l, xdg, "/signalbox/card.key");
    if (!c->secrets.home_file.n)
        c->secrets.home_file = default_key_file(
            l, config_env(l->environ, "HOME"), "/.config/signalbox/card.key");
}

static void check_across_rows(struct load *l)
{
    const struct config *c = l->c;
    struct addr addr;

    /* An invalid address has been reported already. */
    if (!c->allow_plaintext && addr_parse(c->listen, &addr) == OK &&
        !addr_is_loopback(&addr))
        report_error(
            &l->report, load_where(l, "listen"),
            "%.*s can be reached from other machines, and without TLS "
            "everything is sent in plain text; use tls.listen instead, listen "
            "on 127.0.0.1 behind a TLS proxy, or set allowPlaintext to true",
            STR_ARG(c->listen));
    if (!c->listen.n && !c->tls.listen.n)
        report_error(&l->report, load_where(l, "listen"),
                     "listen and tls.listen are both empty, so no client could "
                     "connect; set one of them");
    check_tls(l);
    check_metrics(l);
    check_config_limits(l);
    check_agents(l);
    check_search_weights(l);
    check_embed(l);
    check_traces(l);
}

/* Turns offsets into lines and columns while the text is still there. */
static void keep_positions(struct load *l)
{
    size_t n = config_settings.n;
    struct config_pos *positions =
        arena_array(&l->c->arena, n, sizeof(*positions));

    l->c->positions = positions;
    for (size_t i = 0; positions && i < n; i++) {
        struct value_pos at = l->where[i];

        positions[i].from = at.from;
        if (!load_keep(l, at, at.name, &positions[i].name))
            return;
        if (at.has_line)
            json_where(l->report.text, at.at, &positions[i].line,
                       &positions[i].col);
    }
    if (!positions)
        report_no_memory(&l->report,
                         (struct value_pos){.name = STR("signalbox")});
}

void config_free(struct config *c)
{
    if (!c)
        return;
    arena_fini(&c->arena);
    free(c);
}

static void load_begin(struct load *l, const struct config_source *src,
                       struct config_report *report)
{
    *report = (struct config_report){0};
    *l = (struct load){.c = mem_new(sizeof(*l->c)),
                       .report.out = report,
                       .environ = src->environ};
    arena_init(&l->c->arena, CONFIG_BYTES_MAX);
    l->c->path = STR("");
    arena_init(&l->scratch, SCRATCH_BYTES);
    buf_init(&l->file, FILE_MAX_BYTES + FILE_MAX_BYTES / 2);
    read_defaults(l);
}

/* Everything that comes after the file. */
static struct config *load_end(struct load *l, const struct config_source *src)
{
    for (char *const *e = l->environ; e && *e; e++)
        if (str_starts(str_of(*e), str_of(variable_prefix)))
            read_variable(l, str_of(*e));
    for (size_t i = 0; i < src->n_sets; i++)
        read_set(l, src->sets[i]);
    load_agents(l);
    load_bindings(l);
    check_across_rows(l);
    load_secret(l, "embed.http.keyVariable", l->c->embed.http.key_variable,
                &l->c->embed.http.key);
    load_secret(l, "traces.headersVariable", l->c->traces.headers_variable,
                &l->c->traces.headers);
    load_routing(l);
    load_secrets(l);
    load_definitions(l);
    if (!l->report.out->n_errors)
        keep_positions(l);
    report_end(&l->report);
    buf_fini(&l->file);
    arena_fini(&l->scratch);
    if (!l->report.out->n_errors)
        return l->c;
    config_free(l->c);
    return NULL;
}

struct config *config_load(const struct config_source *src,
                           struct config_report *report)
{
    struct load l;

    load_begin(&l, src, report);
    if (src->path || !src->is_without_file)
        read_file_if_any(&l, src->path);
    return load_end(&l, src);
}

struct config *config_load_text(const char *name, struct str text,
                                const struct config_source *src,
                                struct config_report *report)
{
    struct load l;

    load_begin(&l, src, report);
    apply_file(&l, (struct value_pos){.from = FROM_FILE, .name = str_of(name)},
               text);
    return load_end(&l, src);
}
