/* All lists are shown the same way, and so are all answers to one request; the
 * tables have the differences. With --json each item is written as soon as it
 * arrives, because lists can be long. */
#include "cli/list.h"

#include "cli/offline.h"

enum {
    PATH_BYTES = 64 * 1024,
    ONE_PATH_BYTES = 4096,
    BODY_BYTES = 8 * 1024 * 1024,
    LIST_MOST = 100 * 1000,
};

static const struct arg_option *option_of(const struct cli *c, struct str name)
{
    for (const struct arg_option *o = c->command->options; o->name; o++)
        if (str_eq(str_of(o->name), name))
            return o;
    return NULL;
}

/* Cut the next filter off the list: its option, its name in a query, and its
 * value if the option is not given. */
static const struct arg_option *next_filter(struct cli *c, struct str *rest,
                                            struct str *query,
                                            struct str *preset)
{
    struct str option;

    *preset = str_cut(rest, ' ');
    *query = str_cut(preset, ':');
    option = str_cut(query, '=');
    if (!query->n)
        *query = option;
    return option_of(c, option);
}

/* Check a value by the placeholder of its option and by its known words. */
static bool check_option(struct cli *c, const struct arg_option *o,
                         struct str *value, enum exit_status *status)
{
    const char *words = cli_option_words(c->command->name, o);
    int64_t whole;
    double score;

    if (o->value && strcmp(o->value, "SCORE") == 0)
        return cli_real(c, o->name, 0, 1, 0, &score, status);
    if (o->value && strcmp(o->value, "N") == 0)
        return cli_number(c, o->name, 0, INT64_MAX, 0, &whole, status);
    return !*words || *words == '@' ||
           cli_one_of(c, o->name, words, value, status);
}

bool cli_add_filters(struct cli *c, const char *filters, struct buf *path,
                     enum exit_status *status)
{
    struct str rest = str_of(filters), query, value;

    while (rest.n) {
        const struct arg_option *o = next_filter(c, &rest, &query, &value);
        char name[32];
        size_t n = 0;

        if (args_has(&c->args, o->name))
            value = o->value ? args_get(&c->args, o->name) : STR("true");
        for (; n < query.n && n + 1 < sizeof(name); n++)
            name[n] = query.p[n] == '-' ? '_' : query.p[n];
        name[n] = '\0';
        if (o->value && strcmp(o->value, "WHEN") == 0) {
            if (!client_add_time(c, path, o->name, name, status))
                return false;
        } else if (!check_option(c, o, &value, status)) {
            return false;
        } else if (value.n && !str_eq(value, STR("all"))) {
            client_add_query(path, name, value);
        }
    }
    return true;
}

static bool is_filtered(struct cli *c, const char *filters)
{
    struct str rest = str_of(filters), query, preset;

    while (rest.n)
        if (args_has(&c->args, next_filter(c, &rest, &query, &preset)->name))
            return true;
    return false;
}

struct list_run {
    struct cli *c;
    struct item_table table;
    enum exit_status status;
};

static bool list_add_item(void *ctx, const struct json *item)
{
    struct list_run *l = ctx;

    if (!l->c->json) {
        item_table_add(&l->table, item);
        return true;
    }
    cli_json_line(&l->c->out, item);
    l->status = cli_flush(l->c, EXIT_DONE);
    return l->status == EXIT_DONE;
}

enum exit_status cli_list_at(struct cli *c, const struct listing *list,
                             struct str path)
{
    struct list_run l = {.c = c, .status = EXIT_DONE};
    enum exit_status status = EXIT_DONE;
    struct grid *g = &l.table.grid;
    struct client *cl = NULL;
    bool is_offline = false, more = false;
    int64_t limit;

    if (list->offline)
        is_offline = cli_is_offline(c, &status);
    if (status ||
        !cli_number(c, "limit", 1, list->most ? list->most : LIST_MOST,
                    list->preset, &limit, &status))
        return status;
    item_table_init(&l.table, c, list->columns, list->narrow);
    g->cuts_first = list->cuts_first;
    if (is_offline)
        status = list->offline(c, limit, list_add_item, &l, &more);
    else if ((cl = client_new(c, &status)) &&
             client_list(cl, path, limit, list_add_item, &l, &more))
        status = client_fail(cl);
    client_free(cl);
    if (!status && !c->json) {
        if (g->n_rows || !list->none)
            grid_write(g, &c->out, c->window, c->colour, c->unicode);
        else
            buf_add_str(&c->out, str_of(list->none_matches &&
                                                is_filtered(c, list->filters)
                                            ? list->none_matches
                                            : list->none));
        if (more && c->on_terminal)
            buf_addf(&c->out, "There are more: --limit %lld\n",
                     (long long)limit * 5);
    }
    item_table_fini(&l.table);
    return status ? status : l.status;
}

enum exit_status cli_list(struct cli *c, const struct listing *list)
{
    enum exit_status status = EXIT_DONE;
    struct buf path;

    buf_init(&path, PATH_BYTES);
    buf_add_str(&path, str_of(list->path));
    if (cli_add_filters(c, list->filters, &path, &status))
        status = cli_list_at(c, list, buf_str(&path));
    buf_fini(&path);
    return status;
}

/* One request. */

bool cli_put_options(struct cli *c, struct json_out *o, const char *options,
                     enum exit_status *status)
{
    struct str rest = str_of(options);

    while (rest.n) {
        const struct arg_option *option = option_of(c, str_cut(&rest, ' '));
        struct str value = args_get(&c->args, option->name);

        if (!check_option(c, option, &value, status))
            return false;
        json_member_some(o, option->name, value);
    }
    return true;
}

static void one_show_answer(struct cli *c, const struct one *one, struct str id,
                            const struct json *answer)
{
    struct json_out o = json_out(&c->out);

    if (c->json && one->gone) {
        json_open(&o, '{');
        json_member_text(&o, one->called, id);
        json_member_bool(&o, one->gone, true);
        json_close(&o, '}');
        buf_add_char(&c->out, '\n');
        return;
    }
    if (c->json && answer)
        cli_json_line(&c->out, answer);
    if (c->json)
        return;
    if (one->say)
        cli_say(c, id, answer, one->say);
    if (one->fields)
        cli_fields(c, answer, one->fields);
    if (one->show)
        one->show(c, answer);
}

enum exit_status cli_one(struct cli *c, const struct one *one, struct str id)
{
    return cli_one_by(c, NULL, one, id);
}

enum exit_status cli_one_by(struct cli *c, struct client *cl,
                            const struct one *one, struct str id)
{
    struct client_request r = {.method = one->method,
                               .timeout_ms = one->timeout_ms,
                               .notice = one->notice};
    enum exit_status status = EXIT_DONE;
    struct client *own = NULL;
    struct buf path, body;
    struct json_out o;

    buf_init(&path, ONE_PATH_BYTES);
    buf_init(&body, BODY_BYTES);
    buf_add_str(&path, str_of(one->path));
    if (one->called)
        client_add_part(&path, id);
    buf_add_str(&path, str_of(one->action));
    o = json_out(&body);
    if (one->put || one->options || one->second) {
        json_open(&o, '{');
        if (one->put && !one->put(c, &o, &status))
            goto out;
        if (one->second)
            json_member_some(&o, one->second, c->args.operands[2]);
        if (!cli_put_options(c, &o, one->options, &status))
            goto out;
        json_close(&o, '}');
    }
    r.path = buf_str(&path);
    r.body = buf_str(&body);
    if (path.over)
        status = cli_error(c, ERR_USAGE, "the %s is too long", one->called);
    else if (body.over)
        status = cli_error(c, ERR_USAGE, "an argument is too long");
    if (path.over || body.over || (!cl && !(cl = own = client_new(c, &status))))
        goto out;
    if (client_call(cl, &r))
        status = one->fail ? one->fail(c, cl) : client_fail(cl);
    else
        one_show_answer(c, one, id, client_reply(cl)->json);
out:
    buf_fini(&path);
    buf_fini(&body);
    client_free(own);
    return status;
}
