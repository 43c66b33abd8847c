/* A reload first loads the whole configuration, so a bad file changes nothing.
 * The file's folder is watched rather than the file, since editors and
 * Kubernetes replace files instead of writing to them. Any event in the folder
 * leads to a check whether the file has changed. */
#include "server/reload.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/build.h"
#include "server/settings.h"

enum {
    RELOAD_SETTLE_MS = 200, /* writers are done with the file by then */
    FEED_NAMES_MAX = 4096,  /* bytes of names in a feed entry */
};

/* Whether the file has changed since the last call. A missing file, which may
 * be about to be replaced, does not count: the settings stay until there is a
 * file to read. */
static bool file_has_changed(struct server *s)
{
    struct stat now = {.st_ino = 0}, was = s->file_seen;
    bool is_there = stat(s->config->path.p, &now) == 0;

    s->file_seen = now;
    return is_there &&
           (now.st_ino != was.st_ino || now.st_size != was.st_size ||
            now.st_mtim.tv_sec != was.st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != was.st_mtim.tv_nsec);
}

void reload_log_report(struct server *s, enum log_level level,
                       const struct config_report *report)
{
    struct str rest = str_of(report->text);

    while (rest.n)
        LOG_AT(&s->log, level, "config.problem",
               LOG_S("problem", str_cut(&rest, '\n')));
}

/* Certificates, providers, rules and agents can reject a configuration. They
 * are prepared first, and committed only if none of them rejects it. */
static enum err config_apply(struct server *s, struct config *fresh,
                             struct why *why)
{
    struct net_opts opts = settings_net(s, fresh);
    struct walk_opts walk_opts = settings_walk(s, fresh);
    struct route_settings route_settings = settings_route(fresh);
    struct learning_settings learning_settings = settings_learning(fresh);
    struct api_settings settings = settings_api(s, fresh);
    struct hub_settings hub_settings = settings_hub(fresh);
    struct registry_limits limits = configured_agents_limits(fresh);
    struct traces_settings traces_settings = settings_traces(fresh);
    struct buf names;
    enum err e = tls_files_prepare(&s->tls_files, fresh, why);

    if (!e)
        e = providers_prepare(&s->providers, fresh, why);
    if (!e)
        e = rules_file_prepare(&s->rules_file, fresh, why);
    if (!e)
        e = configured_agents_prepare(&s->configured_agents, fresh, why);
    if (e) {
        rules_file_forget(&s->rules_file);
        providers_forget(&s->providers);
        tls_files_forget(&s->tls_files);
        return e;
    }
    tls_files_commit(&s->tls_files);
    providers_commit(&s->providers, fresh);
    registry_set_limits(s->registry, &limits);
    registry_set_currency(s->registry, fresh->ledger.currency);
    registry_set_review(s->registry, fresh->registry.is_reviewed);
    settings_rank(s, fresh);
    configured_agents_commit(&s->configured_agents, fresh);
    router_set(s->router, &route_settings);
    learning_set(s->learning, &learning_settings);
    walk_set(s->walk, &walk_opts);
    traces_set(s->traces, &traces_settings);
    rules_file_commit(&s->rules_file);
    buf_init(&names, 1024);
    config_restart_needed(s->built_from, fresh, &names);
    if (names.n)
        log_warn(&s->log, "config.restart_needed",
                 LOG_S("settings", buf_str(&names)));
    buf_fini(&names);
    log_set(&s->log, (enum log_level)fresh->log.level,
            (enum log_format)fresh->log.format);
    net_set_opts(s->net, &opts);
    api_set(&s->api, &settings);
    hub_set(s->hub, &hub_settings);
    if (s->config != s->built_from)
        config_free(s->config);
    s->config = fresh;
    s->api.reloads_total++;
    log_info(&s->log, "config.reloaded",
             LOG_S("from", fresh->has_file ? fresh->path : STR("no file")));
    return OK;
}

static void on_reload_entry(struct tx *tx, void *ctx)
{
    (void)ctx; /* if it failed, the log has the event too */
    tx_fini(tx);
    free(tx);
}

/* Adds an entry to the feed, for admins. `changed` is an array of names; empty:
 * nothing was applied. */
static void feed_reload(struct server *s, struct str type, struct str changed)
{
    struct tx *tx = mem_new(sizeof(*tx));
    struct json_out out;
    struct buf data;

    tx_init(tx);
    buf_init(&data, FEED_NAMES_MAX + 64);
    out = json_out(&data);
    json_open(&out, '{');
    if (changed.n) {
        json_key(&out, STR("changed"));
        json_put_raw(&out, changed.n <= FEED_NAMES_MAX ? changed : STR("[]"));
    }
    json_close(&out, '}');
    feed_append(tx, &(struct feed_entry){.at_ms = s->reload.at_ms,
                                         .type = type,
                                         .data = buf_str(&data)});
    buf_fini(&data);
    store_submit(s->store, tx, on_reload_entry, NULL);
}

/* Applying frees the configuration in force, so the two are compared first. */
static bool config_replace(struct server *s, struct config *fresh,
                           struct json_out *changed)
{
    struct json_out names;
    struct buf text;
    struct why why;
    enum err e;

    buf_init(&text, 64 * 1024);
    names = json_out(&text);
    config_write_changed(&names, s->config, fresh, false);
    s->is_reloading = true;
    e = config_apply(s, fresh, &why);
    s->is_reloading = false;
    if (e) {
        log_error(&s->log, "config.problem", LOG_C("problem", why.text));
        config_report_whole(&s->reload.report, fresh, why.text);
        config_free(fresh);
    } else {
        struct str all = text.over ? STR("[]") : buf_str(&text);

        if (changed)
            json_put_raw(changed, all);
        if (all.n > 2 || s->reload.is_refused || text.over)
            feed_reload(s, STR("config.reloaded"), all);
        server_log_names(s);
    }
    buf_fini(&text);
    return e == OK;
}

bool reload_now(struct server *s, struct json_out *changed)
{
    struct config_report *report = &s->reload.report;
    struct config *fresh;

    if (s->is_stopping)
        return false;
    (void)file_has_changed(s); /* before it is read */
    s->reload.at_ms = loop_wall_ms(&s->loop);
    fresh = config_load(&s->opts->source, report);
    reload_log_report(s, fresh ? LOG_WARN : LOG_ERROR, report);
    if (!fresh || !config_replace(s, fresh, changed)) {
        feed_reload(s, STR("config.refused"), STR(""));
        s->reload.is_refused = true;
        s->api.reloads_failed_total++;
        log_error(
            &s->log, "config.not_reloaded",
            LOG_C(
                "because",
                "it has problems; the previous configuration stays in force"));
        return false;
    }
    s->reload.is_refused = false;
    s->read_at_ms = s->reload.at_ms;
    return true;
}

static void on_reload_soon(struct timer *t)
{
    struct server *s = LIST_OF(t, struct server, reload_soon);

    if (file_has_changed(s))
        (void)reload_now(s, NULL);
}

static void on_folder_change(uv_fs_event_t *h, const char *name, int events,
                             int status)
{
    struct server *s = h->data;

    (void)name;
    (void)events;
    /* Further events do not postpone it: a folder may never be quiet. */
    if (status == 0 && !timer_is_set(&s->reload_soon))
        loop_timer_set(&s->loop, &s->reload_soon, RELOAD_SETTLE_MS);
}

void reload_watch(struct server *s)
{
    char folder[PATH_MAX];
    struct str parent = str_parent(s->config->path);

    if (!s->config->path.n)
        return; /* without a file */
    s->reload_soon.fire = on_reload_soon;
    s->folder_watch.data = s;
    snprintf(folder, sizeof(folder), "%.*s", STR_ARG(parent));
    (void)file_has_changed(s);
    if (uv_fs_event_start(&s->folder_watch, on_folder_change, folder, 0) != 0)
        log_warn(&s->log, "config.not_watched", LOG_C("folder", folder),
                 LOG_C("because", "it cannot be watched; SIGHUP still works"));
}

void reload_stop(struct server *s)
{
    loop_timer_cancel(&s->loop, &s->reload_soon);
    uv_close((uv_handle_t *)&s->folder_watch, NULL);
}
