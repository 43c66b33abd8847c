/* settings: the settings of a running server with their sources, and reload.
 * `signalbox check` reads local files instead. */
#include "cli/client.h"
#include "cli/grid.h"

enum { VALUE_MAX = 4096 };

const struct arg_option cli_settings_options[] = {
    {"all", NULL, "list: include settings with their defaults", false},
    CLIENT_OPTIONS,
    {0},
};

/* The source of a value: "signalbox.jsonc:3:9", "--listen", "default". */
static void add_source(struct buf *out, const struct json *source)
{
    int64_t line = json_int_or(json_get(source, STR("line")), 0);
    struct str name = cli_field(source, STR("name"));

    buf_add_str(out, name.n ? name : cli_field(source, STR("kind")));
    if (line)
        buf_addf(out, ":%lld:%lld", (long long)line,
                 (long long)json_int_or(json_get(source, STR("col")), 0));
}

static void settings_add_value(struct buf *out, const struct json *setting)
{
    const struct json *value = json_get(setting, STR("value"));
    const struct json *next = json_get(setting, STR("after_restart"));
    int64_t count = json_int_or(json_get(setting, STR("count")), -1);
    struct json_out o = json_out(out);

    if (value)
        json_put(&o, value);
    else if (count >= 0)
        buf_addf(out, "%lld items", (long long)count);
    else
        buf_add_char(out, '-');
    if (next) {
        buf_add_str(out, STR(", after a restart "));
        o = json_out(out);
        json_put(&o, next);
    }
}

static void settings_add_row(struct grid *g, const struct json *setting)
{
    struct buf value, source;

    buf_init(&value, VALUE_MAX);
    buf_init(&source, VALUE_MAX);
    settings_add_value(&value, setting);
    add_source(&source, json_get(setting, STR("source")));
    grid_add(g, (struct str[]){cli_field(setting, STR("name")),
                               value.over ? STR("(long)") : buf_str(&value),
                               buf_str(&source)});
    buf_fini(&value);
    buf_fini(&source);
}

static void settings_show_problems(struct cli *c, const struct json *from)
{
    const struct json *list = json_get(from, STR("problems"));

    for (size_t i = 0; json_at(list, i); i++) {
        const struct json *p = json_at(list, i);
        int64_t line = json_int_or(json_get(p, STR("line")), 0);

        buf_add_str(&c->out, cli_tamed(c, cli_field(p, STR("where"))));
        if (line)
            buf_addf(&c->out, ":%lld:%lld", (long long)line,
                     (long long)json_int_or(json_get(p, STR("col")), 0));
        buf_addf(&c->out, ": %.*s\n",
                 STR_ARG(cli_tamed(c, cli_field(p, STR("message")))));
    }
}

/* "Title: a, b"; nothing for an empty list. */
static void show_names(struct cli *c, const struct json *names,
                       const char *words)
{
    if (!json_at(names, 0))
        return;
    buf_addf(&c->out, "%s: ", words);
    for (size_t i = 0; json_at(names, i); i++)
        buf_addf(
            &c->out, "%s%.*s", i ? ", " : "",
            STR_ARG(cli_tamed(c, json_str_or(json_at(names, i), STR("")))));
    buf_add_char(&c->out, '\n');
}

static void show_config(struct cli *c, const struct json *is)
{
    static const struct grid_head heads[] = {
        {"SETTING", NULL}, {"VALUE", NULL}, {"FROM", NULL}};
    const struct json *list = json_get(is, STR("settings"));
    bool is_all = args_has(&c->args, "all");
    struct grid g;

    grid_init(&g, heads, 3);
    for (size_t i = 0; json_at(list, i); i++) {
        const struct json *setting = json_at(list, i);
        const struct json *source = json_get(setting, STR("source"));

        if (is_all || !str_eq(cli_field(source, STR("kind")), STR("default")))
            settings_add_row(&g, setting);
    }
    if (g.n_rows)
        grid_write(&g, &c->out, c->window, c->colour, c->unicode);
    else
        buf_add_str(&c->out, STR("All settings have their defaults; signalbox "
                                 "settings --all lists them.\n"));
    grid_fini(&g);
    show_names(c, json_get(is, STR("restart_needed")), "Waiting for a restart");
    if (json_get(is, STR("refused")) &&
        json_get(is, STR("refused"))->type == JSON_OBJ) {
        buf_add_str(&c->out, STR("The last reload was refused:\n"));
        settings_show_problems(c, json_get(is, STR("refused")));
    }
}

static void show_reloaded(struct cli *c, const struct json *is)
{
    const struct json *changed = json_get(is, STR("changed"));

    if (!json_at(changed, 0))
        buf_add_str(&c->out, STR("Reloaded: nothing changed.\n"));
    show_names(c, changed, "Reloaded; changed");
    show_names(c, json_get(is, STR("restart_needed")), "Waiting for a restart");
    settings_show_problems(c, is);
}

static enum exit_status
settings_request(struct cli *c, const char *method, struct str path,
                 void (*show)(struct cli *c, const struct json *is))
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(c, &status);
    const struct json *is;

    if (!cl)
        return status;
    if (client_call(cl,
                    &(struct client_request){.method = method, .path = path})) {
        is = json_get(client_reply(cl)->json, STR("error"));
        if (!c->json)
            settings_show_problems(c, json_get(is, STR("details")));
        status = client_fail(cl);
    } else if (c->json) {
        cli_json_line(&c->out, client_reply(cl)->json);
    } else {
        show(c, client_reply(cl)->json);
    }
    client_free(cl);
    return status;
}

static enum exit_status settings_list(struct cli *c, struct str operand)
{
    (void)operand;
    return settings_request(c, "GET", STR("/api/config"), show_config);
}

static enum exit_status settings_reload(struct cli *c, struct str operand)
{
    (void)operand;
    return settings_request(c, "POST", STR("/api/config/reload"),
                            show_reloaded);
}

const struct sub cli_settings_subs[] = {{"list", NULL, "all", settings_list},
                                        {"reload", NULL, "", settings_reload},
                                        {0}};

enum exit_status cli_settings(struct cli *c)
{
    return cli_sub(c, cli_settings_subs);
}
