/* commands: by what each agent is called in a text, and in the menus of chat
 * platforms. Putting it there is in commands_push.c. */
#include "cli/commands.h"

#include "cli/list.h"

const struct arg_option cli_commands_options[] = {
    {"tag", "TAG", "only agents with a skill of this tag", false},
    {"org", "ORG", "only agents of this org", false},
    {"limit", "N", "list at most so many; 1000 if not given", false},
    {"clear", NULL, "push: take all commands away instead", false},
    {"dry-run", NULL, "push: print what would be sent, and send nothing",
     false},
    {"api", "URL", "push: to this address instead of the platform's own",
     false},
    {"bot-token-file", "FILE",
     "push: read the bot's token here; else $TELEGRAM_BOT_TOKEN or "
     "$DISCORD_BOT_TOKEN",
     false},
    {"scope", "SCOPE",
     "telegram: for default (if not given), all_private_chats, "
     "all_group_chats or all_chat_administrators",
     false},
    {"chat", "ID", "telegram: for this chat alone", false},
    {"language", "CODE", "telegram: for users of this language: de", false},
    {"app", "ID", "discord: the application; the bot's own if not given",
     false},
    {"guild", "ID", "discord: for this guild alone", false},
    CLIENT_OPTIONS,
    {"config", "FILE", "push: read this file instead of signalbox.jsonc",
     false},
    {"set", "NAME=VALUE", "push: any one setting; may be repeated", true},
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

static void add_command(struct listing *l, const struct json *item)
{
    struct str menu = cli_field(item, STR("menu"));

    grid_add(&l->grid, (struct str[]){cli_field(item, STR("command")),
                                      menu.n ? menu : STR("-"),
                                      cli_field(item, STR("agent")),
                                      cli_field(item, STR("description"))});
}

static enum exit_status list(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {{"COMMAND", NULL},
                                             {"IN MENUS", NULL},
                                             {"AGENT", NULL},
                                             {"DESCRIPTION", NULL}};
    struct list_kind commands = {
        .heads = heads,
        .n_heads = 4,
        .add = add_command,
        .most = 100000,
        .preset = 1000,
        .none = "No commands: there is no agent. signalbox help agents says "
                "how to register some.\n",
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
    {"list", NULL, "limit", list},
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
