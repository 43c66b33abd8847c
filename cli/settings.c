/* settings: the settings of a running server with their sources, and reload.
 * `signalbox check` reads local files instead. */
#include "cli/list.h"

enum { VALUE_MAX = 4096 };

const struct arg_option cli_settings_options[] = {
    {"all", NULL, "list: include settings with their defaults", false},
    CLIENT_OPTIONS,
    {0},
};

/* The source of a value: "signalbox.jsonc:3:9", "--listen", "default". */
static void as_source(const struct cell *cell, struct buf *out)
{
    cli_put_words(out, cell->v,
                  cli_field(cell->v, STR("name")).n ? "{name}" : "{kind}");
    if (cli_field_int(cell->v, STR("line")))
        cli_put_words(out, cell->v, ":{line}:{col}");
}

static void as_setting(const struct cell *cell, struct buf *out)
{
    const struct json *value = json_get(cell->item, STR("value"));
    const struct json *next = json_get(cell->item, STR("after_restart"));
    size_t from = out->n;
    struct json_out o = json_out(out);

    if (value)
        json_put(&o, value);
    else if (cli_member(cell->item, "count"))
        cli_put_words(out, cell->item, "{count} items");
    else
        buf_add_char(out, '-');
    if (next) {
        buf_add_str(out, STR(", after a restart "));
        o = json_out(out);
        json_put(&o, next);
    }
    if (out->n - from > VALUE_MAX) {
        out->n = from;
        buf_add_str(out, STR("(long)"));
    }
}

static const struct grid_column columns[] = {
    {"SETTING", "name", NULL, KEPT, NULL},
    {"VALUE", "value", as_setting, KEPT, NULL},
    {"FROM", "source", as_source, KEPT, NULL},
    {0},
};

static void settings_show_problems(struct cli *c, const struct json *from)
{
    JSON_EACH(p, cli_items(from, "problems"))
    {
        cli_say(c, STR(""), p, "{where}");
        if (cli_field_int(p, STR("line")))
            cli_say(c, STR(""), p, ":{line}:{col}");
        cli_say(c, STR(""), p, ": {message}\n");
    }
}

#define RESTART "[Waiting for a restart: {restart_needed}\n]"

static void show_config(struct cli *c, const struct json *is)
{
    bool is_all = args_has(&c->args, "all");
    const struct json *refused = cli_member(is, "refused");
    struct item_table t;

    item_table_init(&t, c, columns, 0);
    JSON_EACH(setting, cli_items(is, "settings"))
    {
        const struct json *kind = cli_member(setting, "source.kind");

        if (is_all || !str_eq(json_str_or(kind, STR("")), STR("default")))
            item_table_add(&t, setting);
    }
    if (t.grid.n_rows)
        grid_write(&t.grid, &c->out, c->window, c->colour, c->unicode);
    else
        buf_add_str(&c->out, STR("All settings have their defaults; signalbox "
                                 "settings --all lists them.\n"));
    item_table_fini(&t);
    cli_say(c, STR(""), is, RESTART);
    if (refused && refused->type == JSON_OBJ) {
        buf_add_str(&c->out, STR("The last reload was refused:\n"));
        settings_show_problems(c, refused);
    }
}

static void show_reloaded(struct cli *c, const struct json *is)
{
    if (!cli_items(is, "changed")->kids.n)
        buf_add_str(&c->out, STR("Reloaded: nothing changed.\n"));
    cli_say(c, STR(""), is, "[Reloaded; changed: {changed}\n]" RESTART);
    settings_show_problems(c, is);
}

static enum exit_status show_refusal(struct cli *c, struct client *cl)
{
    if (!c->json)
        settings_show_problems(
            c, cli_member(client_reply(cl)->json, "error.details"));
    return client_fail(cl);
}

static const struct one config = {.method = "GET",
                                  .path = "/api/config",
                                  .show = show_config,
                                  .fail = show_refusal};
static const struct one reload = {.method = "POST",
                                  .path = "/api/config/reload",
                                  .show = show_reloaded,
                                  .fail = show_refusal};

const struct sub cli_settings_subs[] = {
    {"list", NULL, "all", .one = &config},
    {"reload", NULL, "", .one = &reload},
    {0},
};
