/* Loading: four sources are laid over each other, and every problem on the way
 * is put into the report, so that one look finds all.
 *
 *     defaults -> file -> environment -> --set -> agents -> do they fit
 *     together?
 *
 * All four end in apply.c, with a path, a value and the place it stands in;
 * only what is printed before an error differs.
 *
 * Turned down: stopping at the first error (a file is written in one go and
 * should be mended in one go), and taking settings nobody knows with a shrug
 * (a typo in a limit would silently be no limit). */
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/fault.h"
#include "base/url.h"
#include "config/internal.h"

enum {
    FILE_MAX_BYTES = 1024 * 1024,
    /* A node of the tree is some forty times the shortest text it stands for;
     * a file that is all nodes is no configuration. */
    SCRATCH_BYTES = 32 * 1024 * 1024,
};

static const char default_path[] = "signalbox.jsonc";
static const char variable_prefix[] = "SIGNALBOX_";

static void read_defaults(struct load *l)
{
    const struct setting_table *t = &config_settings;
    struct place at = {.from = FROM_DEFAULT, .name = STR("default")};

    for (size_t i = 0; i < t->n; i++)
        load_one(l, t, l->c, str_of(t->rows[i].path), at,
                 str_of(t->rows[i].preset));
}

/* The file. */

static ssize_t read_some(int fd, char *to, size_t n)
{
    ssize_t got;

    if (FAULT("config.read")) {
        errno = EIO;
        return -1;
    }
    do
        got = read(fd, to, n);
    while (got < 0 && errno == EINTR);
    return got;
}

static enum err read_all(int fd, struct buf *out)
{
    enum { CHUNK_BYTES = 16 * 1024 };

    for (;;) {
        char *to = buf_reserve(out, CHUNK_BYTES);
        ssize_t n;

        if (!to)
            return out->n > FILE_MAX_BYTES ? ERR_LIMIT : ERR_NOMEM;
        n = read_some(fd, to, CHUNK_BYTES);
        if (n < 0)
            return ERR_IO;
        if (n == 0)
            return out->n > FILE_MAX_BYTES ? ERR_LIMIT : OK;
        buf_commit(out, (size_t)n);
    }
}

static enum err read_open_file(struct load *l, struct place at, int fd,
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
    e = read_all(fd, out);
    if (e == ERR_IO)
        report_error(&l->report, at, "cannot read it: %s", strerror(errno));
    else if (e == ERR_LIMIT)
        report_error(&l->report, at,
                     "is larger than %d MiB; that is no configuration",
                     FILE_MAX_BYTES / (1024 * 1024));
    else if (e)
        report_no_memory(&l->report, at);
    return e;
}

/* Fill out with the file's bytes. */
static enum err read_file(struct load *l, struct place at, const char *path,
                          struct buf *out)
{
    /* Without waiting: a pipe that nobody writes to must not hang the start. */
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

/* An empty file gets kinder words than the JSON reader has for it. */
static bool is_blank(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!strchr(" \t\r\n", text.p[i]))
            return false;
    return true;
}

static void apply_file(struct load *l, struct place at, struct str text)
{
    static const struct str mark = {"\xef\xbb\xbf", 3};
    struct json_error err = {0};
    struct json *root;

    /* Some editors put a byte order mark before UTF-8. */
    if (str_starts(text, mark))
        text = str_sub(text, mark.n, text.n);
    if (text.n && memchr(text.p, 0, text.n)) {
        report_error(&l->report, at,
                     "holds zero bytes; it must be text in UTF-8");
        return;
    }
    if (is_blank(text)) {
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

/* Which file it is, whether or not it is there. */
static const char *choose_file(const struct load *l, const char *path)
{
    const char *named = config_env(l->environ, "SIGNALBOX_CONFIG");

    if (path)
        return path;
    return named && *named ? named : default_path;
}

static void read_file_if_any(struct load *l, const char *given)
{
    const char *path = choose_file(l, given);
    struct place at = {.from = FROM_FILE,
                       .name = *path ? str_of(path) : STR("\"\"")};

    l->c->path.p = arena_strdup(&l->c->arena, at.name);
    l->c->path.n = l->c->path.p ? at.name.n : 0;
    if (!l->c->path.p) {
        report_no_memory(&l->report, at);
        return;
    }
    /* Only a file that nobody named may be missing. */
    l->c->has_file =
        path != default_path || access(path, F_OK) == 0 || errno != ENOENT;
    if (l->c->has_file && read_file(l, at, path, &l->file) == OK)
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

/* Whether HTTP__MAX_BODY_BYTES spells http.maxBodyBytes. */
static bool spells(struct str name, struct str path)
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

/* The path of the row or section that a variable spells; empty when none. */
static struct str path_of_variable(const struct setting_table *t,
                                   struct str name)
{
    for (size_t i = 0; i < t->n; i++) {
        struct str path = str_of(t->rows[i].path);
        struct str section = str_sub(path, 0, str_find(path, '.', 0));

        if (spells(name, path))
            return path;
        if (spells(name, section))
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

/* A service called signalbox makes Kubernetes put SIGNALBOX_PORT=tcp://...,
 * SIGNALBOX_SERVICE_HOST and the like into every container beside it. None of
 * them has two underscores in a row, so those without are only warned of. */
static void unknown_variable(struct load *l, const struct setting_table *t,
                             struct place at)
{
    bool has_level = memmem(at.name.p, at.name.n, "__", 2) != NULL;
    char meant[SETTING_VARIABLE_BYTES];
    const char *then = "", *end = "";

    nearest_variable(t, at.name, meant);
    if (*meant)
        then = "; did you mean ", end = "?";
    else if (has_level)
        then = "; signalbox help config lists all there are";
    if (has_level)
        report_error(&l->report, at, "there is no such setting%s%s%s", then,
                     meant, end);
    else
        report_warning(&l->report, at,
                       "ignored, there is no such setting%s%s%s", then, meant,
                       end);
}

/* What is not a setting but belongs to signalbox all the same. */
static bool is_reserved(struct str name)
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
    struct place at = {.from = FROM_ENV, .name = name};

    if (is_reserved(name))
        return;
    path =
        path_of_variable(t, str_sub(name, sizeof(variable_prefix) - 1, name.n));
    if (!path.n)
        unknown_variable(l, t, at);
    else if (value.n)
        load_one(l, t, l->c, path, at, value);
}

static void read_environ(struct load *l)
{
    for (char *const *e = l->environ; e && *e; e++)
        if (str_starts(str_of(*e), str_of(variable_prefix)))
            read_variable(l, str_of(*e));
}

/* The command line. */

static void read_set(struct load *l, struct str text)
{
    const struct setting_table *t = &config_settings;
    struct str value = text, path = str_cut(&value, '=');
    const struct setting *s = setting_find(t, path);
    struct place at = {.from = FROM_FLAG};

    at.name =
        s && s->flag ? str_of(s->flag) : load_join(l, STR("--set "), path);
    if (!at.name.p)
        at.name = STR("--set");
    if (path.n == text.n)
        report_error(&l->report, at, "write it as --set NAME=VALUE");
    else
        load_one(l, t, l->c, path, at, value);
}

/* What no single row can know. */

struct place load_where(const struct load *l, const char *path)
{
    const struct setting *s = setting_find(&config_settings, str_of(path));

    return l->where[s - config_settings.rows];
}

/* Whether nobody can listen on both: one address, or one that is all of its
 * family, with one port. Port 0 is another one each time. */
static bool are_one(const struct addr *a, const struct addr *b)
{
    static const uint8_t all_v4[ADDR_BYTES] = {[10] = 0xff, 0xff},
                         all_v6[ADDR_BYTES] = {0};
    const uint8_t *all = a->sa.any.sa_family == AF_INET ? all_v4 : all_v6;
    uint8_t x[ADDR_BYTES], y[ADDR_BYTES];

    /* The ports of both families are in the same place. */
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
        addr_parse(c->tls.listen, &tls) == OK && are_one(&plain, &tls))
        report_error(&l->report, load_where(l, "tls.listen"),
                     "tls.listen (%.*s) and listen (%.*s) are in each other's "
                     "way: give one another port, or set listen to \"\" for "
                     "TLS alone",
                     STR_ARG(c->tls.listen), STR_ARG(c->listen));
    if (c->tls.listen.n && !has_both)
        report_error(&l->report, load_where(l, "tls.listen"),
                     "tls.listen needs a certificate: set tls.certFile and "
                     "tls.keyFile to the files that have it and its key");
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
            are_one(&own, &other))
            report_error(&l->report, load_where(l, "metrics.listen"),
                         "metrics.listen (%.*s) and %s (%.*s) are in each "
                         "other's way: give one another port",
                         STR_ARG(l->c->metrics.listen), others[i].setting,
                         STR_ARG(others[i].address));
}

/* Limits of one that those of all come before, so that they never count. Zero
 * is no limit, and meant. A default is worth a word where somebody is no longer
 * kept from taking all. */
static void check_limits(struct load *l)
{
    static const struct {
        const char *one, *all, *so;
        bool is_harmless;
    } pairs[] = {
        {"ws.maxFrameBytes", "ws.maxMessageBytes",
         "no frame can be larger than its message", true},
        {"http.maxConnectionsPerAddress", "http.maxConnections",
         "one address can take all connections", false},
        {"tasks.maxUnfinishedPerUser", "tasks.maxUnfinished",
         "one user gets two thirds of all there may be, and no more", true},
        {"tasks.maxUnfinishedBytesPerUser", "tasks.maxUnfinishedBytes",
         "one user gets two thirds of all there may be, and no more", true},
        {"registry.maxAgentsPerUser", "registry.maxAgents",
         "one user can take all there may be", false},
        {"deliver.inFlight", "deliver.maxInFlight",
         "one agent can take all there may be", false},
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
                           all->path, (long long)most, pairs[i].so);
    }
}

/* The agents that are there before anybody registers one. */
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

static void check_search(struct load *l)
{
    const char *last = "search.textWeight";

    if (load_where(l, last).from < load_where(l, "search.semanticWeight").from)
        last = "search.semanticWeight";
    if (l->c->search.semantic_weight == 0 && l->c->search.text_weight == 0)
        report_error(&l->report, load_where(l, last),
                     "search.semanticWeight and search.textWeight are both 0, "
                     "so that nothing would be found; set one of them");
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
                     "\"http\" needs a provider: set embed.http.url, with its "
                     "whole path, and embed.http.model");
    if (load_is_exposed(c->embed.http.url))
        report_warning(&l->report, load_where(l, "embed.http.url"),
                       "%sall texts travel to embed.http.url in plain text; "
                       "use https",
                       c->embed.http.key_variable.n ? "the key and " : "");
}

/* What is in spans is nobody's words; a key in a header is another matter. */
static void check_traces(struct load *l)
{
    const struct config *c = l->c;

    if (c->traces.headers_variable.n && load_is_exposed(c->traces.endpoint))
        report_warning(&l->report, load_where(l, "traces.endpoint"),
                       "the headers of traces.headersVariable travel to "
                       "traces.endpoint in plain text; use https");
}

/* A secret: from the environment, and from nowhere else. */
void load_key(struct load *l, const char *setting, struct str variable,
              struct str *key)
{
    const char *value = variable.n ? config_env(l->environ, variable.p) : NULL;
    char *copy;

    if (!value || !*value)
        return;
    copy = arena_strdup(&l->c->arena, str_of(value));
    if (copy)
        *key = str_of(copy);
    else
        report_no_memory(&l->report, load_where(l, setting));
}

/* Where a key is looked for by itself. */
static struct str key_place(struct load *l, const char *folder,
                            const char *file)
{
    size_t n = folder && *folder == '/' ? strlen(folder) + strlen(file) : 0;
    char *path = n ? arena_alloc(&l->c->arena, n + 1) : NULL;

    if (!path)
        return STR(""); /* none, or out of memory: it is not sealed, and said */
    snprintf(path, n + 1, "%s%s", folder, file);
    return (struct str){path, n};
}

static void load_secrets(struct load *l)
{
    const char *xdg = config_env(l->environ, "XDG_CONFIG_HOME");
    struct config *c = l->c;

    load_key(l, "seal.keyVariable", c->secrets.key_variable, &c->secrets.key);
    c->secrets.credential_file = key_place(
        l, config_env(l->environ, "CREDENTIALS_DIRECTORY"), "/signalbox.key");
    c->secrets.home_file = key_place(l, xdg, "/signalbox/card.key");
    if (!c->secrets.home_file.n)
        c->secrets.home_file = key_place(l, config_env(l->environ, "HOME"),
                                         "/.config/signalbox/card.key");
}

static void check_together(struct load *l)
{
    const struct config *c = l->c;
    struct addr addr;

    /* An address that is none has been reported already. */
    if (!c->allow_plaintext && addr_parse(c->listen, &addr) == OK &&
        !addr_is_loopback(&addr))
        report_error(
            &l->report, load_where(l, "listen"),
            "%.*s can be reached from other machines, and without TLS "
            "everything travels in plain text; use tls.listen instead, listen "
            "on 127.0.0.1 behind a TLS proxy, or set allowPlaintext to true",
            STR_ARG(c->listen));
    if (!c->listen.n && !c->tls.listen.n)
        report_error(&l->report, load_where(l, "listen"),
                     "listen and tls.listen are both empty, so that nobody "
                     "could connect; set one of them");
    check_tls(l);
    check_metrics(l);
    check_limits(l);
    check_agents(l);
    check_search(l);
    check_embed(l);
    check_traces(l);
}

/* What the text is needed for, before it goes. */
static void keep_spots(struct load *l)
{
    size_t n = config_settings.n;
    struct config_spot *spots = arena_array(&l->c->arena, n, sizeof(*spots));

    l->c->spots = spots;
    for (size_t i = 0; spots && i < n; i++) {
        struct place at = l->where[i];

        spots[i].from = at.from;
        spots[i].name =
            (struct str){arena_strdup(&l->c->arena, at.name), at.name.n};
        if (!spots[i].name.p)
            spots = NULL;
        else if (at.has_line)
            json_where(l->report.text, at.at, &spots[i].line, &spots[i].col);
    }
    if (!spots)
        report_no_memory(&l->report, (struct place){.name = STR("signalbox")});
}

/* The whole. */

static struct config *config_new(void)
{
    struct config *c = FAULT("config.new") ? NULL : calloc(1, sizeof(*c));

    if (c) {
        arena_init(&c->arena, CONFIG_BYTES_MAX);
        c->path = STR("");
    }
    return c;
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
    *l = (struct load){
        .c = config_new(), .report.out = report, .environ = src->environ};
    arena_init(&l->scratch, SCRATCH_BYTES);
    buf_init(&l->file, FILE_MAX_BYTES + FILE_MAX_BYTES / 2);
    if (!l->c) {
        report_no_memory(&l->report, (struct place){.name = STR("signalbox")});
        return;
    }
    read_defaults(l);
    /* Only memory can be missing for those. Without them there is nothing to
     * lay the rest over. */
    if (report->n_errors) {
        config_free(l->c);
        l->c = NULL;
    }
}

/* Everything that comes after the file. */
static struct config *load_end(struct load *l, const struct config_source *src)
{
    if (l->c) {
        read_environ(l);
        for (size_t i = 0; i < src->n_sets; i++)
            read_set(l, src->sets[i]);
        load_agents(l);
        load_bindings(l);
        check_together(l);
        load_key(l, "embed.http.keyVariable", l->c->embed.http.key_variable,
                 &l->c->embed.http.key);
        load_key(l, "traces.headersVariable", l->c->traces.headers_variable,
                 &l->c->traces.headers);
        load_routing(l);
        load_secrets(l);
        load_road_rest(l);
        if (!l->report.out->n_errors)
            keep_spots(l);
    }
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
    if (l.c && (src->path || !src->is_without_file))
        read_file_if_any(&l, src->path);
    return load_end(&l, src);
}

struct config *config_load_text(const char *name, struct str text,
                                const struct config_source *src,
                                struct config_report *report)
{
    struct load l;

    load_begin(&l, src, report);
    if (l.c)
        apply_file(&l, (struct place){.from = FROM_FILE, .name = str_of(name)},
                   text);
    return load_end(&l, src);
}
