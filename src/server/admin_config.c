/* config_write_settings (server/config/account.c) writes the settings. This
 * adds the state that only the server knows: the configuration in force and
 * since when, the result of the last reload, and the channels, which the rules
 * define. */
#include "server/admin_config.h"

#include "base/url.h"
#include "choose/route.h"
#include "server/build.h"
#include "server/reload.h"

static void put_reloads(struct json_out *o, const struct server *s)
{
    json_member_int(o, "reloads", s->api.reloads_total);
    json_member_int(o, "reloads_refused", s->api.reloads_failed_total);
    json_key(o, STR("refused"));
    if (!s->reload.is_refused) {
        json_put_null(o);
        return;
    }
    json_open(o, '{');
    json_member_int(o, "at_ms", s->reload.at_ms);
    config_report_write(o, &s->reload.report);
    json_close(o, '}');
}

/* Shows only the host of a webhook, since many have a key in the path. */
static void put_webhook(struct json_out *o, struct str text)
{
    struct buf shown;
    struct url url;

    buf_init(&shown, URL_BYTES_MAX);
    if (text.n && url_read(text, &url, NULL) == OK)
        buf_addf(&shown, "%.*s://%.*s/…set…", STR_ARG(url.scheme),
                 STR_ARG(url.authority));
    json_member_str(o, "webhook", buf_str(&shown));
    buf_fini(&shown);
}

static void put_notify_channels(struct json_out *o,
                                const struct gate_about *about)
{
    static const char *const forms[] = {[CHANNEL_JSON] = "json",
                                        [CHANNEL_SLACK] = "slack",
                                        [CHANNEL_DISCORD] = "discord"};

    json_key(o, STR("channels"));
    json_open(o, '[');
    for (size_t i = 0; i < about->n_channels; i++) {
        const struct gate_channel *c = &about->channels[i];

        json_open(o, '{');
        json_member_str(o, "name", c->name);
        json_member_bool(o, "takes_feed", c->takes_feed);
        json_member_bool(o, "takes_alerts", c->takes_alerts);
        json_member_str(o, "file", c->file);
        put_webhook(o, c->webhook);
        json_member_str(o, "form", str_of(forms[c->form]));
        json_close(o, '}');
    }
    json_close(o, ']');
}

static void put_name_taken(void *ctx, const struct name_taken *t)
{
    static const char *const places[] = {[NAME_NOWHERE] = "",
                                         [NAME_LISTED] = "agents.list",
                                         [NAME_DEFAULT] = "agents.default",
                                         [NAME_BACKUP] = "backup",
                                         [NAME_RULES] = "rules"};
    struct json_out *o = ctx;
    struct why why;

    names_say(t, &why);
    json_open(o, '{');
    json_member_str(o, "name", t->name);
    json_member_str(o, "holder", t->holder);
    json_member_str(o, "mentioned_in", str_of(places[t->place]));
    json_member_str(o, "message", str_of(why.text));
    json_close(o, '}');
}

/* The version in force, and the changes that wait for a restart. */
static void put_config_state(struct json_out *o, const struct server *s)
{
    json_member_str(o, "version", str_of(router_version(s->router)));
    json_member_int(o, "read_at_ms", s->read_at_ms);
    json_key(o, STR("restart_needed"));
    config_write_changed(o, s->built_from, s->config, true);
}

void admin_config_write(void *ctx, struct json_out *o)
{
    const struct server *s = ctx;

    json_member_str(o, "file", s->config->has_file ? s->config->path : STR(""));
    json_member_str(o, "looked_for", s->config->path);
    json_member_str(o, "folder", str_of(s->folder.path));
    put_config_state(o, s);
    put_reloads(o, s);
    json_key(o, STR("names_taken"));
    json_open(o, '[');
    server_names_taken(s, put_name_taken, o);
    json_close(o, ']');
    json_key(o, STR("settings"));
    config_write_settings(o, s->built_from, s->config);
    config_write_lists(o, s->config);
    put_notify_channels(o, gate_rules_about(rules_file_rules(&s->rules_file)));
}

enum err admin_config_reload(void *ctx, struct json_out *o, struct why *why)
{
    struct server *s = ctx;
    struct json_out changed;
    struct buf names;
    bool is_done;

    if (s->is_stopping)
        return why_err(why, ERR_STOPPING, "the server is stopping");
    buf_init(&names, 64 * 1024);
    changed = json_out(&names);
    is_done = reload_now(s, &changed);
    if (is_done) {
        json_member_raw(o, "changed", names.over ? STR("[]") : buf_str(&names));
        put_config_state(o, s);
    }
    config_report_write(o, &s->reload.report);
    buf_fini(&names);
    return is_done ? OK
                   : why_err(why, ERR_BAD_CONFIG,
                             "the configuration has problems; the previous "
                             "configuration stays in force");
}
