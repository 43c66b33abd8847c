/* commands: the command of each agent, in a text and in the menus of chat
 * platforms. commands_push.c writes the menus. */
#include "cli/commands.h"

#include "cli/list.h"

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

void commands_path(struct cli *c, struct buf *path, const char *format)
{
    static const char *const filters[] = {"tag", "org"};

    buf_add_str(path, STR("/api/commands"));
    if (format)
        client_add_query(path, "format", str_of(format));
    for (size_t i = 0; i < 2; i++)
        if (args_has(&c->args, filters[i]))
            client_add_query(path, filters[i], args_get(&c->args, filters[i]));
}

/* The list. */

static void commands_add_row(struct listing *l, const struct json *item)
{
    struct str menu = cli_field(item, STR("menu"));

    grid_add(&l->grid, (struct str[]){cli_field(item, STR("command")),
                                      menu.n ? menu : STR("-"),
                                      cli_field(item, STR("agent")),
                                      cli_field(item, STR("description"))});
}

static enum exit_status commands_list(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {{"COMMAND", NULL},
                                             {"IN MENUS", NULL},
                                             {"AGENT", NULL},
                                             {"DESCRIPTION", NULL}};
    struct list_kind commands = {
        .heads = heads,
        .n_heads = 4,
        .add = commands_add_row,
        .most = 100000,
        .preset = 1000,
        .none = "No commands, because there are no agents. signalbox help "
                "agents explains how to register one.\n",
        .tells_of_further = true};
    enum exit_status status;
    struct buf path;

    (void)operand;
    buf_init(&path, COMMANDS_PATH_BYTES);
    commands_path(c, &path, NULL);
    commands.path = buf_str(&path);
    status = cli_list(c, &commands);
    buf_fini(&path);
    return status;
}

const struct sub cli_commands_subs[] = {
    {"list", NULL, "limit", commands_list},
    {"push", "telegram|discord",
     "clear dry-run api bot-token-file scope chat language app guild "
     "config "
     "set",
     commands_push},
    {0},
};

enum exit_status cli_commands(struct cli *c)
{
    return cli_sub(c, cli_commands_subs);
}
