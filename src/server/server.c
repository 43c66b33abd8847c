/* One struct holds the whole server (internal.h). server_run prepares the
 * configuration, log, data folder and loop, opens the modules (build.c), runs
 * the loop, and closes everything in the opposite order, however far it got. */
#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/fault.h"
#include "gate/gatekeeper.h"
#include "server/build.h"
#include "server/internal.h"
#include "server/reload.h"
#include "speak/speak.h"
#include "task/task.h"

enum { PAGE_BYTES = 128 };

const struct schema *const server_schemas[] = {
    &task_schema,       &watch_schema,      &access_schema,
    &registry_schema,   &choose_schema,     &learn_schema,
    &gatekeeper_schema, &delegation_schema, &ledger_schema,
};
const size_t server_n_schemas =
    sizeof(server_schemas) / sizeof(server_schemas[0]);

/* Prints an error, as JSON for programs. */
static void print_server_error(const struct server_opts *opts, enum err e,
                               struct str message)
{
    struct buf line;

    while (message.n && message.p[message.n - 1] == '\n')
        message.n--;
    if (!opts->json) {
        fprintf(stderr, "signalbox: %.*s\n", STR_ARG(message));
        return;
    }
    buf_init(&line, 16384);
    speak_error(&line, e, message, STR(""));
    fprintf(stderr, "%.*s", STR_ARG(buf_str(&line)));
    buf_fini(&line);
}

/* Stopping. */

/* The second time open requests get no grace. */
static void server_begin_stop(struct server *s)
{
    server_stop(s, s->is_stopping ? 0 : s->config->stop_grace_ms);
}

static void on_signal(uv_signal_t *h, int signum)
{
    struct server *s = h->data;

    if (s->is_over)
        return; /* all connections are closed already */
    if (!s->is_running) {
        /* With some modules only, it can neither stop nor reload. */
        s->is_unwanted = s->is_unwanted || signum != SIGHUP;
        return;
    }
    if (signum == SIGHUP) {
        (void)reload_now(s, NULL);
        return;
    }
    log_info(&s->log, "server.stopping", LOG_I("signal", signum));
    server_begin_stop(s);
}

/* Starting. */

static enum err raise_file_limit(struct server *s, struct why *why)
{
    int64_t wanted = s->config->http.max_connections + SERVER_SPARE_FILES;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return why_err(why, ERR_IO, "cannot read the limit of open files: %s",
                       strerror(errno));
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0)
        getrlimit(RLIMIT_NOFILE, &files);
    s->file_limit =
        files.rlim_cur < INT32_MAX ? (int64_t)files.rlim_cur : INT32_MAX;
    if (s->file_limit <= SERVER_SPARE_FILES)
        return why_err(why, ERR_NOT_ALLOWED,
                       "only %lld files may be open, and at least %d are "
                       "needed: raise the limit (ulimit -n)",
                       (long long)s->file_limit, SERVER_SPARE_FILES + 1);
    if (s->file_limit < wanted)
        log_warn(&s->log, "server.few_files", LOG_I("limit", s->file_limit),
                 LOG_I("wanted", wanted),
                 LOG_C("do", "raise the limit (ulimit -n) or lower "
                             "http.maxConnections"));
    return OK;
}

/* Compares the buffers that grow with traffic with the memory limit. A warning
 * at the start is better than being killed under load. */
static void warn_of_memory(struct server *s)
{
    int64_t most = watch_memory_bytes("");
    int64_t wanted = s->config->http.max_buffered_bytes +
                     s->config->tasks.max_unfinished_bytes +
                     s->config->embed.max_waiting_bytes;

    watch_memory_init(&s->memory, "");
    if (wanted > most)
        log_warn(&s->log, "server.little_memory", LOG_I("bytes", most),
                 LOG_I("wanted", wanted),
                 LOG_C("do", "lower http.maxBufferedBytes, "
                             "tasks.maxUnfinishedBytes or "
                             "embed.maxWaitingBytes, or allow it more"));
}

static void on_first_admin(struct tx *tx, void *ctx)
{
    struct server *s = ctx;

    (void)tx;
    s->has_first_admin = true;
    loop_stop(&s->loop);
}

/* Creates the first admin at the first start, once the server listens: if
 * listening failed, the token would be lost unseen. */
static enum err make_first_admin(struct server *s, struct why *why)
{
    struct access_change c;
    enum err e;

    if (!access_is_new(s->access))
        return OK;
    access_change_init(&c);
    e = access_first_admin(s->access, &c, loop_wall_ms(&s->loop),
                           &s->first_token, why);
    if (!e) {
        store_submit(s->store, &c.tx, on_first_admin, s);
        while (!s->has_first_admin)
            loop_run(&s->loop);
        e = access_settle(s->access, &c, why);
    }
    access_change_fini(&c);
    return e;
}

static void open_signals(struct server *s)
{
    const struct {
        uv_signal_t *handle;
        int signum;
    } all[] = {
        {&s->on_int, SIGINT}, {&s->on_term, SIGTERM}, {&s->on_hup, SIGHUP}};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        uv_signal_init(&s->loop.uv, all[i].handle);
        all[i].handle->data = s;
        uv_signal_start(all[i].handle, on_signal, all[i].signum);
    }
    uv_fs_event_init(&s->loop.uv, &s->folder_watch);
}

static bool url_address(const char *url, struct addr *out)
{
    const char *at = strstr(url, "//");

    return at && addr_parse(str_of(at + 2), out) == OK;
}

/* The dashboard's URL for a browser on this machine: the plain address if its
 * traffic stays on the machine, else TLS. A wildcard address becomes loopback.
 */
static void dashboard_url(const struct server *s, char out[PAGE_BYTES],
                          bool *is_private)
{
    const char *plain = net_url(s->net), *tls = net_tls_url(s->net), *url;
    struct addr a;

    out[0] = '\0';
    *is_private =
        url_address(plain, &a) && (addr_is_loopback(&a) || addr_is_any(&a));
    url = *is_private || !*tls ? plain : tls;
    *is_private = *is_private || *tls;
    if (!s->config->web.enabled || !*url)
        return;
    if (url_address(url, &a) && addr_is_any(&a))
        snprintf(out, PAGE_BYTES, "http%s://127.0.0.1%s/",
                 url == tls ? "s" : "", strrchr(url, ':'));
    else
        snprintf(out, PAGE_BYTES, "%s/", url);
}

static void print_listening_text(const struct server_listening *l)
{
    printf("Signalbox " SIGNALBOX_VERSION " is listening on %s%s%s\n"
           "Data is in %s. Stop it with Ctrl-C.\n",
           l->url, *l->url && *l->tls_url ? " and " : "", l->tls_url,
           l->folder);
    if (!*l->first_token)
        return;
    printf("\nThis is the first start with this folder. The token of the user "
           "admin is shown\nonly now:\n\n"
           "    export SIGNALBOX_TOKEN=%s\n\n",
           l->first_token);
    if (*l->page && l->page_is_private)
        printf("Open the dashboard, signed in with this token:\n\n    "
               "%s#token=%s\n\n",
               l->page, l->first_token);
    else if (*l->page)
        printf("The dashboard is at %s and asks for it. The connection is not\n"
               "encrypted (allowPlaintext).\n\n",
               l->page);
}

static void print_listening_json(const struct server *s)
{
    const char *plain = net_url(s->net), *tls = net_tls_url(s->net);

    printf("{\"event\":\"listening\",\"url\":\"%s\"", *plain ? plain : tls);
    if (*tls)
        printf(",\"tls_url\":\"%s\"", tls);
    if (*net_side_url(s->net))
        printf(",\"metrics_url\":\"%s\"", net_side_url(s->net));
    if (s->first_token.text[0])
        printf(",\"token\":\"%s\"", s->first_token.text);
    printf("}\n");
}

/* A program may wait for this line, so failing to print it is an error. */
static enum err report_listening(const struct server *s, struct why *why)
{
    char page[PAGE_BYTES];
    struct server_listening l = {.url = net_url(s->net),
                                 .tls_url = net_tls_url(s->net),
                                 .folder = s->folder.path,
                                 .first_token = s->first_token.text,
                                 .page = page};

    dashboard_url(s, page, &l.page_is_private);
    if (s->opts->on_listening)
        s->opts->on_listening(s->opts->ctx, &l);
    else if (s->opts->json)
        print_listening_json(s);
    else
        print_listening_text(&l);
    if (fflush(stdout) == 0)
        return OK;
    return why_err(why, ERR_IO,
                   "cannot print the addresses on standard output: %s",
                   strerror(errno));
}

/* There is always a user. Without any, the database is new, or the one with
 * accepted work is missing. */
static void warn_of_lost_database(struct server *s)
{
    if (s->folder.was_used && access_is_new(s->access))
        log_warn(&s->log, "store.began_anew", LOG_C("folder", s->folder.path),
                 LOG_C("because", "the database was empty or missing, although "
                                  "this folder has been used before"),
                 LOG_C("do", "if that was not intended, stop the server and "
                             "restore a backup: signalbox restore FILE"));
}

static enum err server_serve(struct server *s, struct why *why)
{
    enum err e;

    s->is_running = true;
    reload_watch(s);
    warn_of_lost_database(s);
    e = make_first_admin(s, why);
    if (!e)
        store_folder_set_used(&s->folder);
    if (!e)
        e = report_listening(s, why);
    if (e || s->is_unwanted || s->failed.text[0])
        server_begin_stop(s);
    if (!s->is_stopping) {
        providers_greet(&s->providers);
        registry_begin(s->registry);
    }
    while (!s->is_over)
        loop_run(&s->loop);
    if (!e && s->failed.text[0])
        e = why_err(why, ERR_IO, "%s", s->failed.text);
    log_info(&s->log, "server.stopped");
    return e;
}

/* Signals are blocked first: without a handler a further one would kill the
 * process, which is about to end cleanly. */
static void close_signals(struct server *s)
{
    sigset_t ours;

    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    sigprocmask(SIG_BLOCK, &ours, NULL);
    uv_close((uv_handle_t *)&s->on_int, NULL);
    uv_close((uv_handle_t *)&s->on_term, NULL);
    uv_close((uv_handle_t *)&s->on_hup, NULL);
}

/* Whether the folder still has the database it was used with. */
static enum err check_folder(struct server *s, struct why *why)
{
    if (!s->opts->from_scratch)
        return store_folder_check(&s->folder, why);
    if (store_folder_has_data(&s->folder))
        log_warn(&s->log, "store.not_from_scratch",
                 LOG_C("folder", s->folder.path),
                 LOG_C("because", "the existing database is used"),
                 LOG_C("do", "leave --from-scratch out: it is for a missing "
                             "database"));
    return OK;
}

static enum err server_build_and_serve(struct server *s, struct why *why)
{
    enum err e = raise_file_limit(s, why);

    warn_of_memory(s);
    if (!e)
        e = store_folder_open(&s->folder, s->config->data, why);
    if (e)
        return e;
    if (s->folder.is_shared)
        log_warn(&s->log, "store.folder_is_shared",
                 LOG_C("folder", s->folder.path),
                 LOG_C("do", "make it accessible to its owner only: "
                             "chmod 700"));
    e = check_folder(s, why);
    if (!e) {
        e = loop_init(&s->loop, clock_system());
        if (e)
            why_err(why, e, "cannot create an event loop");
    }
    if (!e) {
        open_signals(s);
        e = server_build(s, why);
        if (!e)
            e = server_serve(s, why);
        server_close(s);
        reload_stop(s);
        tls_files_stop(&s->tls_files);
        close_signals(s);
        net_free(s->net);
        loop_turn(&s->loop);
        loop_fini(&s->loop);
    }
    store_folder_close(&s->folder);
    return e;
}

/* Agents' programs and others may run as the server's user. A process that is
 * not dumpable cannot be traced by them, nor can its memory and descriptors be
 * read; net/child/launch.c deals with programs of root. The environment
 * contains keys.
 */
static void protect_process(const struct config_source *src)
{
    if (PLANTED("server.open"))
        return;
    prctl(PR_SET_DUMPABLE, 0);
    config_hide_env((char **)src->environ);
}

enum exit_status server_run(const struct server_opts *opts)
{
    struct server s = {.opts = opts};
    struct config_report report;
    struct why why = {""};
    const char *no_colour;
    enum err e;

    protect_process(&opts->source);
    no_colour = config_env(opts->source.environ, "NO_COLOR");
    /* Both would kill the process; ignored, they become errors of a write. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    s.config = s.built_from = config_load(&opts->source, &report);
    if (!s.config) {
        print_server_error(opts, ERR_BAD_CONFIG, str_of(report.text));
        return err_row(ERR_BAD_CONFIG)->exit_status;
    }
    log_init(&s.log, STDERR_FILENO, (enum log_level)s.config->log.level,
             (enum log_format)s.config->log.format, clock_system());
    s.log.never_colour = no_colour && *no_colour;
    s.read_at_ms = clock_system().wall_ms(clock_system().ctx);
    reload_log_report(&s, LOG_WARN, &report);
    s.seed[0] = rand_u64(rand_system());
    s.seed[1] = rand_u64(rand_system());
    id_maker_init(&s.ids, rand_system());
    e = server_build_and_serve(&s, &why);
    if (e)
        print_server_error(opts, e, str_of(why.text));
    if (s.config != s.built_from)
        config_free(s.config);
    config_free(s.built_from);
    return e ? err_row(e)->exit_status : EXIT_DONE;
}
