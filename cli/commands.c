/* commands: the command of each agent, in a text and in the menus of chat
 * platforms. The server provides the menu (GET /api/commands). The token of a
 * bot is never in the command line or in a message. */
#include "base/url.h"
#include "cli/endpoint.h"
#include "cli/list.h"
#include "cli/outside.h"
#include "cli/platform.h"

const struct arg_option cli_commands_options[] = {
    {"tag", "TAG", "only agents with a skill of this tag", false},
    {"org", "ORG", "only agents of this org", false},
    {"limit", "N", "list at most N commands (default 1000)", false},
    {"clear", NULL, "push: remove all commands instead", false},
    {"dry-run", NULL, "push: print the request, and send nothing", false},
    {"api", "URL", "push: use this address instead of the platform's own",
     false},
    {"bot-token-file", "FILE",
     "push: read the bot's token from this file (default: "
     "$TELEGRAM_BOT_TOKEN or $DISCORD_BOT_TOKEN)",
     false},
    {"scope", "SCOPE",
     "telegram: default (if not given), all_private_chats, "
     "all_group_chats or all_chat_administrators",
     false},
    {"chat", "ID", "telegram: only for this chat", false},
    {"language", "CODE", "telegram: for users of this language: de", false},
    {"app", "ID", "discord: the application (default: the bot's own)", false},
    {"guild", "ID", "discord: only for this guild", false},
    CLIENT_OPTIONS,
    {"config", "FILE", "push: read this file instead of signalbox.jsonc",
     false},
    {"set", "NAME=VALUE", "push: any setting; may be repeated", true},
    {0},
};

static void as_menu(const struct cell *cell, struct buf *out)
{
    buf_add_str(out, json_str_or(cell->v, STR("-")));
}

static const struct grid_column columns[] = {
    {"COMMAND", "command", NULL, KEPT, NULL},
    {"IN MENUS", "menu", as_menu, KEPT, NULL},
    {"AGENT", "agent", NULL, KEPT, NULL},
    {"DESCRIPTION", "description", NULL, KEPT, NULL},
    {0},
};

/* The options that select commands, as in cli_add_filters. */
#define COMMANDS_FILTERS "tag org"

static const struct listing commands = {
    .path = "/api/commands",
    .columns = columns,
    .filters = COMMANDS_FILTERS,
    .preset = 1000,
    .none = "No commands, because there are no agents. signalbox help agents "
            "explains\nhow to register one.\n",
    .none_matches = "No agent matches.\n",
};

/* The menu of a bot. */

enum {
    BODY_BYTES = 1024 * 1024,
    PATH_BYTES = 64 * 1024,
    TRIES = 4,
    LEFT_OUT_SHOWN = 5,
    LEFT_OUT_LOOKED_AT = 100 * 1000,
};

struct push {
    struct cli *c;
    struct client *client;
    const struct platform *platform;
    struct platform_order order;
    struct secret_room room; /* of its token */
    struct config *config;
    struct arena arena; /* of what the platform answers */
    struct outside_answer answer;
    struct buf body;
    int64_t n_commands;

    struct buf left_out; /* JSON: a list of {"agent","why"} */
    struct json_out left_json;
    struct buf left_words;
    size_t n_left_out;
};

static bool add_left_out(void *ctx, const struct json *item)
{
    struct push *p = ctx;
    struct str why = cli_field(item, STR("left_out"));
    struct str agent = cli_field(item, STR("agent"));
    struct cli_room name, words;

    if (!why.n)
        return true;
    json_open(&p->left_json, '{');
    json_member_text(&p->left_json, "agent", agent);
    json_member_text(&p->left_json, "why", why);
    json_close(&p->left_json, '}');
    if (p->n_left_out++ < LEFT_OUT_SHOWN)
        buf_addf(&p->left_words, "  %.*s: %.*s\n",
                 STR_ARG(cli_tame(&name, agent)),
                 STR_ARG(cli_tame(&words, why)));
    return true;
}

static void push_add_path(struct push *p, struct buf *path)
{
    enum exit_status unused;

    buf_add_str(path, STR("/api/commands"));
    (void)!cli_add_filters(p->c, COMMANDS_FILTERS, path, &unused);
}

/* Get the body from the server, and the agents that it leaves out. False: the
 * error has been printed. */
static bool get_menu(struct push *p, enum exit_status *status)
{
    struct client_request rq = {.method = "GET",
                                .is_array = p->platform->is_array};
    const struct json *answer, *menu;
    struct buf path;
    bool more;
    enum err e;

    buf_init(&path, PATH_BYTES);
    push_add_path(p, &path);
    client_add_query(&path, "format", str_of(p->platform->name));
    rq.path = buf_str(&path);
    e = client_call(p->client, &rq);
    if (!e) {
        answer = client_reply(p->client)->json;
        menu = answer && answer->type == JSON_OBJ
                   ? json_get(answer, STR("commands"))
                   : answer;
        p->n_commands =
            menu && menu->type == JSON_ARR ? (int64_t)menu->kids.n : 0;
        if (p->n_commands)
            p->platform->body(&p->order, answer, &p->body);
        buf_clear(&path);
        push_add_path(p, &path);
        e = client_list(p->client, buf_str(&path), LEFT_OUT_LOOKED_AT,
                        add_left_out, p, &more);
    }
    buf_fini(&path);
    if (e)
        *status = client_fail(p->client);
    else if (!p->n_commands)
        *status = cli_error(p->c, ERR_NOT_FOUND,
                            "there is no agent for the menu; --clear removes "
                            "the bot's present commands");
    else
        return true;
    return false;
}

/* Call the platform, and repeat the call while it limits the rate. */
static enum err push_call(struct push *p, const struct platform_call *call,
                          struct str body, const struct json **answer,
                          struct why *why)
{
    struct outside_request rq = {.method = call->method,
                                 .url = str_of(call->url),
                                 .body = body,
                                 .headers = call->headers,
                                 .n_headers = call->n_headers};
    int64_t waited_ms = 0;

    for (int i = 0;; i++) {
        int64_t wait_ms;
        enum err e;

        client_notice(p->client, "asking %s", p->platform->title);
        e = outside_call(p->config, &rq, &p->answer, why);
        client_notice_off(p->client);
        if (e)
            return e == ERR_TIMEOUT || e == ERR_BAD_REQUEST ? ERR_UNREACHABLE
                                                            : e;
        arena_reset(&p->arena);
        *answer = json_parse(&p->arena, buf_str(&p->answer.body), 0, NULL);
        wait_ms = *answer ? p->platform->wait_ms(*answer) : 0;
        if (wait_ms < p->answer.retry_after_ms)
            wait_ms = p->answer.retry_after_ms;
        waited_ms += wait_ms;
        if (p->answer.status != 429 || i + 1 == TRIES || !wait_ms ||
            waited_ms > CLIENT_PATIENCE_MS)
            break;
        client_notice(p->client, "%s asks to wait %lld s", p->platform->title,
                      (long long)(wait_ms + 999) / 1000);
        client_pause(p->client, wait_ms);
    }
    if (p->answer.status == 200 && *answer)
        return OK;
    if (p->answer.status == 200)
        return why_err(why, ERR_IO, "the answer is not from %s",
                       p->platform->title);
    return platform_judge(p->platform, &p->order, p->answer.status, *answer,
                          why);
}

static enum err deliver_menu(struct push *p, struct why *why)
{
    struct platform_call call;
    const struct json *answer;
    struct str id;
    int64_t has;
    enum err e;

    /* Find the bot's application, if it is needed and not given. */
    if (p->platform->whoami && !p->order.app.n) {
        p->platform->whoami(&p->order, &call);
        e = push_call(p, &call, STR(""), &answer, why);
        if (e)
            return e;
        id = cli_field(answer, STR("id"));
        p->order.app = str_of(arena_strdup(&p->c->arena, id));
        if (!id.n || p->platform->check(&p->order, why))
            return why_err(why, ERR_IO,
                           "%s does not name the bot's application; use --app",
                           p->platform->title);
    }
    p->platform->call(&p->order, &call);
    e = push_call(p, &call, buf_str(&p->body), &answer, why);
    if (e)
        return e;
    has = p->platform->count(answer);
    if (has >= 0 && has != p->n_commands)
        return why_err(why, ERR_IO, "%s took %lld of %lld commands",
                       p->platform->title, (long long)has,
                       (long long)p->n_commands);
    return OK;
}

static void push_show(struct push *p)
{
    struct cli *c = p->c;
    struct json_out o = json_out(&c->out);

    if (c->json) {
        json_open(&o, '{');
        json_member_text(&o, "platform", str_of(p->platform->name));
        json_member_int(&o, "commands", p->n_commands);
        json_member_raw(&o, "left_out", buf_str(&p->left_out));
        json_close(&o, '}');
        buf_add_char(&c->out, '\n');
        return;
    }
    if (p->order.is_clear)
        buf_addf(&c->out, "%s has no commands of this bot now\n",
                 p->platform->title);
    else
        buf_addf(&c->out, "%s has %lld command%s now\n", p->platform->title,
                 (long long)p->n_commands, p->n_commands == 1 ? "" : "s");
    if (!p->n_left_out)
        return;
    buf_addf(&c->out, "Not in the menu:\n");
    buf_add_str(&c->out, buf_str(&p->left_words));
    if (p->n_left_out > LEFT_OUT_SHOWN)
        buf_addf(&c->out, "  and %zu more: signalbox commands shows them\n",
                 p->n_left_out - LEFT_OUT_SHOWN);
}

/* Options. These functions print their own errors. */

static bool check_options(struct push *p, enum exit_status *status)
{
    static const char *const own[] = {"scope", "chat", "language", "app",
                                      "guild"};

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (!args_has(&p->c->args, own[i]) ||
            cli_has_word(p->platform->options, str_of(own[i])))
            continue;
        *status = cli_error(p->c, ERR_USAGE, "%s knows no --%s",
                            p->platform->title, own[i]);
        return false;
    }
    return cli_one_of(p->c, "scope", cli_words("commands", "scope"),
                      &p->order.scope, status);
}

static bool push_read_order(struct push *p, enum exit_status *status)
{
    const struct args *a = &p->c->args;
    struct str api = args_get(a, "api");
    struct why why = {""};
    struct url u;

    p->order.is_clear = args_has(a, "clear");
    p->order.chat = args_get(a, "chat");
    p->order.language = args_get(a, "language");
    p->order.app = args_get(a, "app");
    p->order.guild = args_get(a, "guild");
    if (!check_options(p, status))
        return false;
    if (!api.n)
        api = str_of(p->platform->api);
    while (api.n && api.p[api.n - 1] == '/')
        api.n--;
    p->order.api = api;
    if (!url_is_http(api) || api.n > PLATFORM_URL_MAX / 2 ||
        str_find(api, '?', 0) < api.n || str_find(api, '#', 0) < api.n ||
        url_read(api, &u, &why)) {
        *status =
            cli_error(p->c, ERR_USAGE,
                      "--api is not a server's address%s%.200s. Write "
                      "it like %s",
                      why.text[0] ? ": " : "", why.text, p->platform->api);
        return false;
    }
    if (p->platform->check(&p->order, &why)) {
        *status = cli_error(p->c, ERR_USAGE, "%s", why.text);
        return false;
    }
    return true;
}

static bool read_token(struct push *p, enum exit_status *status)
{
    const char *variable = p->platform->variable;

    if (!endpoint_read_secret(p->c, "bot-token-file", variable, &p->room,
                              &p->order.token, status))
        return false;
    if (p->order.token.n <= PLATFORM_TOKEN_MAX &&
        p->platform->is_token(p->order.token))
        return true;
    if (p->order.token.n || args_has(&p->c->args, "bot-token-file"))
        *status = cli_error(p->c, ERR_UNAUTHENTICATED,
                            "this is not a bot's token: a token is %s",
                            p->platform->token_is);
    else
        *status = cli_error(p->c, ERR_UNAUTHENTICATED,
                            "the bot's token is needed: export %s=..., or name "
                            "a file with --bot-token-file FILE",
                            variable);
    return false;
}

static enum exit_status commands_push(struct cli *c, struct str operand)
{
    struct push p = {.c = c, .platform = platform_find(operand)};
    struct config_report report;
    struct config_source src;
    enum exit_status status;
    struct why why = {""};
    enum err e;

    if (!p.platform)
        return cli_error(c, ERR_USAGE,
                         "unknown platform \"%.*s\"; write telegram or discord",
                         STR_ARG(str_head(operand, 64)));
    arena_init(&p.arena, 2UL * OUTSIDE_BODY_MAX);
    buf_init(&p.answer.body, OUTSIDE_BODY_MAX);
    buf_init(&p.body, BODY_BYTES);
    buf_init(&p.left_out, CLI_OUT_MAX);
    buf_init(&p.left_words, BODY_BYTES);
    p.left_json = json_out(&p.left_out);
    json_open(&p.left_json, '[');
    if (!push_read_order(&p, &status))
        goto out;
    if (!args_has(&c->args, "dry-run")) {
        if (!read_token(&p, &status))
            goto out;
        cli_source(c, &src);
        p.config = config_load(&src, &report);
        if (!p.config) {
            status = cli_bad_config(c, &report);
            goto out;
        }
    }
    if (!(p.client = client_new(c, &status)))
        goto out;
    if (p.order.is_clear)
        p.platform->body(&p.order, NULL, &p.body);
    else if (!get_menu(&p, &status))
        goto out;
    json_close(&p.left_json, ']');
    status = EXIT_DONE;
    if (args_has(&c->args, "dry-run")) {
        buf_add_str(&c->out, buf_str(&p.body));
        buf_add_char(&c->out, '\n');
        goto out;
    }
    e = deliver_menu(&p, &why);
    if (e)
        status = cli_error(c, e, "%s", why.text);
    else
        push_show(&p);
out:
    client_free(p.client);
    config_free(p.config);
    explicit_bzero(&p.room, sizeof(p.room));
    buf_fini(&p.left_words);
    buf_fini(&p.left_out);
    buf_fini(&p.body);
    buf_fini(&p.answer.body);
    arena_fini(&p.arena);
    return status;
}

const struct sub cli_commands_subs[] = {
    {"list", NULL, NULL, .list = &commands},
    {"push", "telegram|discord",
     COMMANDS_FILTERS
     " clear dry-run api bot-token-file scope chat language app guild "
     "config "
     "set",
     .run = commands_push},
    {0},
};
