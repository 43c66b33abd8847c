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

static const struct listing list = {
    .path = "/api/commands",
    .columns = columns,
    .filters = COMMANDS_FILTERS,
    .preset = 1000,
    .none = "No commands, because there are no agents. signalbox help "
            "agents explains how to register one.\n",
};

const struct sub cli_commands_subs[] = {
    {"list", NULL, NULL, .list = &list},
    {"push", "telegram|discord",
     "clear dry-run api bot-token-file scope chat language app guild "
     "config "
     "set",
     .run = commands_push},
    {0},
};
