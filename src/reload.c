/* A reload loads the configuration whole and only then takes it over, so a bad
 * file changes nothing. The file's folder is watched rather than the file:
 * editors and Kubernetes replace files instead of writing to them. Whatever
 * moves in that folder only makes us look whether our file is another one. */
#include "reload.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "rooms.h"
#include "settings.h"

enum {
    RELOAD_SETTLE_MS = 200, /* writers are done with the file by then */
    TOLD_MAX = 4096,        /* bytes of names in the feed */
};

/* Whether the file is another one than the last time we looked. One that is
 * not there (any more, or in the middle of being replaced) is no news: the
 * settings stay until there is something to read. */
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

/* Certificates, what goes outward, the rules and the agents can turn a
 * configuration down: they come first, and none is changed when another does.
 */
static enum err apply(struct server *s, struct config *fresh, struct why *why)
{
    struct net_opts opts = settings_net(s, fresh);
    struct walk_opts walk_opts = settings_walk(s, fresh);
    struct route_settings route_settings = settings_route(fresh);
    struct lessons_settings lessons_settings = settings_lessons(fresh);
    struct calls_settings settings = settings_calls(s, fresh);
    struct hub_settings hub_settings = settings_hub(fresh);
    struct registry_limits limits = roster_limits(fresh);
    struct traces_settings traces_settings = settings_traces(fresh);
    struct buf names;
    enum err e = certs_prepare(&s->certs, fresh, why);

    if (!e)
        e = outward_prepare(&s->outward, fresh, why);
    if (!e)
        e = rulebook_prepare(&s->rulebook, fresh, why);
    if (!e)
        e = roster_prepare(&s->roster, fresh, why);
    if (e) {
        rulebook_forget(&s->rulebook);
        outward_forget(&s->outward);
        certs_forget(&s->certs);
        return e;
    }
    certs_commit(&s->certs);
    outward_commit(&s->outward, fresh);
    registry_set_limits(s->registry, &limits);
    registry_set_currency(s->registry, fresh->ledger.currency);
    settings_rank(s, fresh);
    roster_commit(&s->roster, fresh);
    router_set(s->router, &route_settings);
    lessons_set(s->lessons, &lessons_settings);
    walk_set(s->walk, &walk_opts);
    traces_set(s->traces, &traces_settings);
    rulebook_commit(&s->rulebook);
    buf_init(&names, 1024);
    config_restart_needed(s->built_from, fresh, &names);
    if (names.n)
        log_warn(&s->log, "config.restart_needed",
                 LOG_S("settings", buf_str(&names)));
    buf_fini(&names);
    log_set(&s->log, (enum log_level)fresh->log.level,
            (enum log_format)fresh->log.format);
    net_set_opts(s->net, &opts);
    calls_set(&s->calls, &settings);
    hub_set(s->hub, &hub_settings);
    if (s->config != s->built_from)
        config_free(s->config);
    s->config = fresh;
    s->calls.reloads_total++;
    log_info(&s->log, "config.reloaded",
             LOG_S("from", fresh->has_file ? fresh->path : STR("no file")));
    return OK;
}

/* The feed, for admins. */

static void on_told(struct tx *tx, void *ctx)
{
    (void)ctx; /* the log has it too */
    tx_fini(tx);
    free(tx);
}

/* `changed` is an array of names; empty: nothing was taken over. */
static void tell(struct server *s, struct str type, struct str changed)
{
    struct tx *tx = FAULT("reload.tell") ? NULL : calloc(1, sizeof(*tx));
    struct json_out out;
    struct buf data;

    if (!tx)
        return;
    tx_init(tx);
    buf_init(&data, TOLD_MAX + 64);
    out = json_out(&data);
    json_open(&out, '{');
    if (changed.n) {
        json_key(&out, STR("changed"));
        json_put_raw(&out, changed.n <= TOLD_MAX ? changed : STR("[]"));
    }
    json_close(&out, '}');
    if (data.over)
        tx->build_error = ERR_NOMEM;
    else
        feed_append(tx, &(struct feed_entry){.at_ms = s->reload.at_ms,
                                             .type = type,
                                             .data = buf_str(&data)});
    buf_fini(&data);
    store_submit(s->store, tx, on_told, NULL);
}

/* The one before stays. */
static bool refuse(struct server *s)
{
    tell(s, STR("config.refused"), STR(""));
    s->reload.is_refused = true;
    s->calls.reloads_failed_total++;
    log_error(&s->log, "config.not_reloaded",
              LOG_C("because", "it has problems; the one before stays"));
    return false;
}

/* The one before is gone once another is taken over, and so is what could be
 * compared. */
static bool take_over(struct server *s, struct config *fresh,
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
    e = apply(s, fresh, &why);
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
            tell(s, STR("config.reloaded"), all);
        rooms_log_names(s);
    }
    buf_fini(&text);
    return e == OK;
}

bool reload_now(struct server *s, struct json_out *changed)
{
    struct config_report *report = &s->reload.report;
    struct config *fresh;

    if (s->is_stopping)
        return false;          /* for rooms that are about to go */
    (void)file_has_changed(s); /* seen, before it is read */
    s->reload.at_ms = loop_wall_ms(&s->loop);
    fresh = config_load(&s->opts->source, report);
    reload_log_report(s, fresh ? LOG_WARN : LOG_ERROR, report);
    if (!fresh || !take_over(s, fresh, changed))
        return refuse(s);
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
    /* Not later because of more to come: a folder may never be quiet. */
    if (status == 0 && !timer_is_set(&s->reload_soon) &&
        loop_timer_set(&s->loop, &s->reload_soon, RELOAD_SETTLE_MS) != OK)
        log_warn(&s->log, "config.not_watched",
                 LOG_C("because", "out of memory; SIGHUP still works"));
}

void reload_watch(struct server *s)
{
    char folder[PATH_MAX];
    struct str parent = str_parent(s->config->path);

    if (!s->config->path.n)
        return; /* there is none to become another */
    s->reload_soon.fire = on_reload_soon;
    s->folder_watch.data = s;
    snprintf(folder, sizeof(folder), "%.*s", STR_ARG(parent));
    (void)file_has_changed(s);
    if (uv_fs_event_start(&s->folder_watch, on_folder_change, folder, 0) != 0)
        log_warn(&s->log, "config.not_watched", LOG_C("folder", folder),
                 LOG_C("because", "it cannot be; SIGHUP still works"));
}

void reload_stop(struct server *s)
{
    loop_timer_cancel(&s->loop, &s->reload_soon);
    uv_close((uv_handle_t *)&s->folder_watch, NULL);
}
