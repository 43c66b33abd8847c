/* One struct holds the house (house.h); server_run lays its ground, has the
 * rooms built on it (rooms.c), turns the loop, and takes down what was built,
 * in the opposite order, from wherever it got. */
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/fault.h"
#include "broker/broker.h"
#include "house.h"
#include "reload.h"
#include "rooms.h"
#include "speak/speak.h"
#include "task/task.h"

enum { PAGE_BYTES = 128 };

const struct schema *const server_schemas[] = {
    &task_schema,     &watch_schema,  &access_schema,
    &registry_schema, &choose_schema, &learn_schema,
    &broker_schema,   &hire_schema,   &ledger_schema,
};
const size_t server_n_schemas =
    sizeof(server_schemas) / sizeof(server_schemas[0]);

/* Words on standard error, as JSON where scripts listen. */
static void complain(const struct server_opts *opts, enum err e,
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

/* Asked a second time, nobody is waited for any more. */
static void begin_to_stop(struct server *s)
{
    rooms_stop(s, s->is_stopping ? 0 : s->config->stop_grace_ms);
}

static void on_signal(uv_signal_t *h, int signum)
{
    struct server *s = h->data;

    if (s->is_over)
        return; /* it ends already */
    if (!s->is_running) {
        /* Half a house can neither stop nor reload. */
        s->is_unwanted = s->is_unwanted || signum != SIGHUP;
        return;
    }
    if (signum == SIGHUP) {
        (void)reload_now(s, NULL);
        return;
    }
    log_info(&s->log, "server.stopping", LOG_I("signal", signum));
    begin_to_stop(s);
}

/* Building. */

/* As many descriptors as we may have. */
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

/* What grows with what others send. Rather say so now than be ended in
 * the middle of a busy day. */
static void warn_of_memory(struct server *s)
{
    int64_t most = watch_memory_bytes("");
    int64_t wanted = s->config->http.max_buffered_bytes +
                     s->config->tasks.max_unfinished_bytes +
                     s->config->embed.max_waiting_bytes;

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

/* The first start: somebody must be able to call. Not before we listen: a
 * token that nobody was shown would be of no use. */
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

static bool address_of(const char *url, struct addr *out)
{
    const char *at = strstr(url, "//");

    return at && addr_parse(str_of(at + 2), out) == OK;
}

/* Where the dashboard is for a browser on this machine: by the plain address if
 * nothing leaves the machine on the way, else by TLS. Where it listens on every
 * address, by the nearest. */
static void find_page(const struct server *s, char out[PAGE_BYTES],
                      bool *is_private)
{
    const char *plain = net_url(s->net), *tls = net_tls_url(s->net), *url;
    struct addr a;

    out[0] = '\0';
    *is_private =
        address_of(plain, &a) && (addr_is_loopback(&a) || addr_is_any(&a));
    url = *is_private || !*tls ? plain : tls;
    *is_private = *is_private || *tls;
    if (!s->config->web.enabled || !*url)
        return;
    if (address_of(url, &a) && addr_is_any(&a))
        snprintf(out, PAGE_BYTES, "http%s://127.0.0.1%s/",
                 url == tls ? "s" : "", strrchr(url, ':'));
    else
        snprintf(out, PAGE_BYTES, "%s/", url);
}

static void say_listening_to_people(const struct server_listening *l)
{
    printf("Signalbox " SIGNALBOX_VERSION " is listening on %s%s%s\n"
           "Data is in %s. Stop it with Ctrl-C.\n",
           l->url, *l->url && *l->tls_url ? " and " : "", l->tls_url,
           l->folder);
    if (!*l->first_token)
        return;
    printf("\nThis is the first start here. The token of the user admin, "
           "shown this once:\n\n"
           "    export SIGNALBOX_TOKEN=%s\n\n",
           l->first_token);
    if (*l->page && l->page_is_private)
        printf("The dashboard, signed in with it:\n\n    %s#token=%s\n\n",
               l->page, l->first_token);
    else if (*l->page)
        printf("The dashboard is at %s and asks for it. What travels between "
               "the two is not\nencrypted (allowPlaintext).\n\n",
               l->page);
}

static void say_listening_to_programs(const struct server *s)
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

/* Somebody may wait for this line: not being able to say it is a failure. */
static enum err say_listening(const struct server *s, struct why *why)
{
    char page[PAGE_BYTES];
    struct server_listening l = {.url = net_url(s->net),
                                 .tls_url = net_tls_url(s->net),
                                 .folder = s->folder.path,
                                 .first_token = s->first_token.text,
                                 .page = page};

    find_page(s, page, &l.page_is_private);
    if (s->opts->on_listening)
        s->opts->on_listening(s->opts->ctx, &l);
    else if (s->opts->json)
        say_listening_to_programs(s);
    else
        say_listening_to_people(&l);
    if (fflush(stdout) == 0)
        return OK;
    return why_err(why, ERR_IO,
                   "cannot say on standard output where it listens: %s",
                   strerror(errno));
}

/* Users never all go: where there are none, nothing was ever promised, or the
 * database that it was written in is not there any more. */
static void warn_of_loss(struct server *s)
{
    if (s->folder.was_used && access_is_new(s->access))
        log_warn(&s->log, "store.began_anew", LOG_C("folder", s->folder.path),
                 LOG_C("because", "the database was empty or missing, though "
                                  "this folder has been used before"),
                 LOG_C("do", "if that was not meant, stop the server and go "
                             "back to a backup: signalbox restore FILE"));
}

static enum err run(struct server *s, struct why *why)
{
    enum err e;

    s->is_running = true;
    reload_watch(s);
    warn_of_loss(s);
    e = make_first_admin(s, why);
    if (!e)
        store_folder_set_used(&s->folder);
    if (!e)
        e = say_listening(s, why);
    if (e || s->is_unwanted || s->failed.text[0])
        begin_to_stop(s);
    if (!s->is_stopping) {
        outward_greet(&s->outward);
        registry_begin(s->registry);
    }
    while (!s->is_over)
        loop_run(&s->loop);
    if (!e && s->failed.text[0])
        e = why_err(why, ERR_IO, "%s", s->failed.text);
    log_info(&s->log, "server.stopped");
    return e;
}

/* From here on a further signal would meet nobody, and its default is to
 * kill; we are about to end anyway, and well. */
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

static void take_down_loop(struct server *s)
{
    reload_stop(s);
    certs_stop(&s->certs);
    close_signals(s);
    net_free(s->net);
    loop_turn(&s->loop);
    loop_fini(&s->loop);
}

/* Whether the folder still has what was kept in it. */
static enum err look_for_loss(struct server *s, struct why *why)
{
    if (!s->opts->from_scratch)
        return store_folder_check(&s->folder, why);
    if (store_folder_has_data(&s->folder))
        log_warn(&s->log, "store.not_from_scratch",
                 LOG_C("folder", s->folder.path),
                 LOG_C("because", "there is a database, and it is used"),
                 LOG_C("do", "leave --from-scratch out: it is for a database "
                             "that is gone"));
    return OK;
}

/* The house on its ground: configuration, log, folder, loop, then the rest. */
static enum err build_and_run(struct server *s, struct why *why)
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
                 LOG_C("do", "let nobody else write to it: chmod 700"));
    e = look_for_loss(s, why);
    if (!e) {
        e = loop_init(&s->loop, clock_system());
        if (e)
            why_err(why, e, "cannot make an event loop");
    }
    if (!e) {
        open_signals(s);
        e = rooms_open(s, why);
        if (!e)
            e = run(s, why);
        rooms_close(s);
        take_down_loop(s);
    }
    store_folder_close(&s->folder);
    return e;
}

/* Programs that we start run as our user, and so may others. Being not dumpable
 * keeps them from our memory and descriptors, and from tracing us; root is kept
 * from it by other means (child/launch.c). Our environment has keys in it. */
static void shut_others_out(const struct config_source *src)
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

    shut_others_out(&opts->source);
    no_colour = config_env(opts->source.environ, "NO_COLOR");
    /* Both would kill us; as errors of the write they can be dealt with. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    s.config = s.built_from = config_load(&opts->source, &report);
    if (!s.config) {
        complain(opts, ERR_BAD_CONFIG, str_of(report.text));
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
    e = build_and_run(&s, &why);
    if (e)
        complain(opts, e, str_of(why.text));
    if (s.config != s.built_from)
        config_free(s.config);
    config_free(s.built_from);
    return e ? err_row(e)->exit_status : EXIT_DONE;
}
