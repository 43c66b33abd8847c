/* The running configuration for a remote admin: each setting with its value,
 * its source and whether a change needs a restart, and the content of the
 * lists. It leaves the machine, so it shows less than `check --print`: a
 * program's arguments are only counted, since they may contain keys, and a
 * secret is reported only as set.
 *
 * Rejected: marking secrets in the rows. No setting is a secret itself, only
 * the name of a variable, and the lists that may contain some have functions of
 * their own below. */
#include "server/config/internal.h"

#define HIDDEN STR("…set…")

static void put_secret(struct json_out *o, struct str secret)
{
    json_member_str(o, "secret", secret.n ? HIDDEN : STR(""));
}

void config_write_changed(struct json_out *o, const struct config *now,
                          const struct config *then, bool needs_restart)
{
    json_open(o, '[');
    for (size_t i = 0; i < config_settings.n; i++) {
        const struct setting *s = &config_settings.rows[i];

        if ((!needs_restart || s->needs_restart) &&
            !s->type->is_same(s, setting_look(s, now), setting_look(s, then)))
            json_put_str(o, str_of(s->path));
    }
    json_close(o, ']');
}

/* Settings. */

/* Lists of objects have functions of their own. */
static bool setting_is_object_list(const struct setting *s)
{
    return s->type == &type_cards || s->type == &type_defaults ||
           s->type == &type_bindings || s->type == &type_map;
}

static void put_value(struct json_out *o, const char *key,
                      const struct setting *s, const struct config *c)
{
    json_key(o, str_of(key));
    if (!setting_is_object_list(s))
        s->type->write(s, o, setting_look(s, c));
    else if (s->type == &type_defaults)
        json_put_null(o);
    else
        json_put_int(o, (int64_t)setting_list_get(setting_look(s, c)).n);
}

static void put_source(struct json_out *o, const struct config_pos *at)
{
    static const char *const kinds[] = {[FROM_DEFAULT] = "default",
                                        [FROM_FILE] = "file",
                                        [FROM_ENV] = "environment",
                                        [FROM_FLAG] = "command_line"};

    json_key(o, STR("source"));
    json_open(o, '{');
    json_member_str(o, "kind", str_of(kinds[at->from]));
    json_member_str(o, "name", at->from == FROM_DEFAULT ? STR("") : at->name);
    if (at->line) {
        json_member_int(o, "line", at->line);
        json_member_int(o, "col", at->col);
    }
    json_close(o, '}');
}

/* Writes whether the variable that a setting names is set. */
static void put_setting_secret(struct json_out *o, const struct setting *s,
                               const struct config *c)
{
    const void *field = setting_look(s, c);

    if (field == &c->embed.http.key_variable)
        put_secret(o, c->embed.http.key);
    else if (field == &c->routing.intent.key_variable)
        put_secret(o, c->routing.intent.key);
    else if (field == &c->secrets.key_variable)
        put_secret(o, c->secrets.key);
    else if (field == &c->traces.headers_variable)
        put_secret(o, c->traces.headers);
}

static void put_setting(struct json_out *o, size_t i,
                        const struct config *built_from,
                        const struct config *now)
{
    const struct setting *s = &config_settings.rows[i];
    const struct config *c = s->needs_restart ? built_from : now;
    struct config_setting about = {.path = NULL};

    config_setting(i, &about);
    json_open(o, '{');
    json_member_str(o, "name", str_of(s->path));
    put_value(o, setting_is_object_list(s) ? "count" : "value", s, c);
    json_member_raw(o, "default", str_of(s->preset));
    put_source(o, &c->positions[i]);
    json_member_str(o, "taken_over_by",
                    s->needs_restart ? STR("restart") : STR("reload"));
    if (!s->type->is_same(s, setting_look(s, c), setting_look(s, now)))
        put_value(o, "after_restart", s, now);
    put_setting_secret(o, s, c);
    json_member_str(o, "unit", str_of(s->unit ? s->unit : ""));
    json_member_str(o, "allowed", str_of(about.allowed));
    json_member_str(o, "what", str_of(s->what));
    json_member_str(o, "variable", str_of(about.variable));
    json_member_str(o, "flag", str_of(s->flag ? s->flag : ""));
    json_close(o, '}');
}

void config_write_settings(struct json_out *o, const struct config *built_from,
                           const struct config *now)
{
    json_open(o, '[');
    for (size_t i = 0; i < config_settings.n; i++)
        put_setting(o, i, built_from, now);
    json_close(o, ']');
}

/* Lists. */

/* Without the query, like every setting that is a URL. */
static void put_url(struct json_out *o, const char *key, struct str url)
{
    json_key(o, str_of(key));
    type_endpoint.write(NULL, o, &url);
}

static void put_agents(struct json_out *o, const struct config *c)
{
    json_key(o, STR("agents"));
    json_open(o, '[');
    for (size_t i = 0; i < c->agents.n; i++) {
        const struct agent *a = &c->agents.list[i];

        json_open(o, '{');
        json_member_str(o, "name", a->name);
        put_url(o, "url", a->url);
        json_member_bool(o, "is_default",
                         str_eq_nocase(a->name, c->default_agent));
        json_close(o, '}');
    }
    json_close(o, ']');
}

/* The names of the elements, which are "NAME=value" or "NAME". */
static void put_variable_names(struct json_out *o, const char *key,
                               const struct strs *names)
{
    json_key(o, str_of(key));
    json_open(o, '[');
    for (size_t i = 0; i < names->n; i++) {
        struct str name = names->list[i];

        json_put_str(o, str_cut(&name, '='));
    }
    json_close(o, ']');
}

static void put_processes(struct json_out *o, const struct config *c)
{
    json_key(o, STR("processes"));
    json_open(o, '[');
    for (size_t i = 0; i < c->processes.n; i++) {
        const struct process_def *p = &c->processes.list[i];

        json_open(o, '{');
        json_member_str(o, "name", p->name);
        json_member_str(o, "program", p->command.list[0]);
        json_member_int(o, "arguments", (int64_t)p->command.n - 1);
        json_member_str(o, "workspace", p->workspace);
        json_member_str(o, "model", p->model);
        json_member_int(o, "min", p->min);
        json_member_int(o, "max", p->max);
        put_variable_names(o, "env", &p->env);
        put_variable_names(o, "env_allowed", &p->env_allowed);
        json_close(o, '}');
    }
    json_close(o, ']');
}

static void put_models(struct json_out *o, const struct config *c)
{
    json_key(o, STR("models"));
    json_open(o, '[');
    for (size_t i = 0; i < c->models.n; i++) {
        const struct model_def *m = &c->models.list[i];

        json_open(o, '{');
        json_member_str(o, "name", m->name);
        json_member_text(o, "kind", str_of(model_kind_names[m->kind]));
        put_url(o, "base_url", m->base_url);
        json_member_str(o, "model", m->model);
        json_member_str(o, "key_variable", m->key_variable);
        put_secret(o, m->key);
        json_close(o, '}');
    }
    json_close(o, ']');
}

void config_write_lists(struct json_out *o, const struct config *c)
{
    const struct setting *s = setting_find(&config_settings, STR("bindings"));

    put_agents(o, c);
    json_key(o, STR("bindings"));
    s->type->write(s, o, setting_look(s, c));
    put_processes(o, c);
    put_models(o, c);
}
