/* The possible values of options and operands, in one table. A command checks
 * its arguments with it, and completion offers its words. A value without a row
 * for its command is known by its placeholder: FILE is a file in every command.
 */
#include "cli/cli.h"
#include "model/decision.h"

#define STATES                              "active idle busy slow error dead"
#define LAYER_WORD(id, number, name, words) " " name
#define LAYER_NAMES                         "explicit" LAYERS_AFTER_EXPLICIT(LAYER_WORD) " none"
#define EMBEDDERS                           "builtin table transformer minilm http"

struct row {
    const char *command; /* "": every command */
    const char *value;   /* an option, or an operand in capitals */
    const char *words;
};

static const struct row rows[] = {
    {"agents", "kind", "platform managed self-hosted"},
    {"agents", "visibility", "public shared private"},
    {"agents", "state", STATES},
    {"agents", "review", "waiting rejected hidden reported"},
    {"agents", "NAME", CLI_AGENTS},
    {"calibrate", "embedder", EMBEDDERS},
    {"calibrate", "TEST", CLI_FILES},
    {"commands", "scope",
     "default all_private_chats all_group_chats all_chat_administrators"},
    {"decisions", "layer", LAYER_NAMES},
    {"decisions", "verdict", "open positive negative neutral"},
    {"decisions", "WHAT",
     "summary agents types gaps signals keywords hours days thresholds "
     "alphas changes"},
    {"decisions", "VERDICT", "right wrong"},
    {"demo-agent", "NAME", ""},
    {"escalations", "status",
     "open approved rejected redirected expired resolved all"},
    {"escalations", "kind", "rule dead late expired"},
    {"eval", "mode", "routing vectors semantic text hybrid"},
    {"eval", "embedder", EMBEDDERS},
    {"eval", "match", "mean best"},
    {"eval", "capture", "stuffed crowd keywords questions"},
    {"eval", "relation", "platform own org rated strangers"},
    {"eval", "by", "agent"},
    {"eval", "TEST", CLI_FILES},
    {"gate", "ENVELOPE", CLI_FILES},
    {"grants", "agent", CLI_AGENTS},
    {"help", "COMMAND", CLI_COMMANDS " config options"},
    {"ledger", "account", "creator platform all"},
    {"model", "embedder", EMBEDDERS},
    {"model", "NAME", "minilm"},
    {"replay", "layer", LAYER_NAMES},
    {"route", "channel", "telegram discord"},
    {"search", "mode", "hybrid semantic text"},
    {"search", "fusion", "weighted rrf"},
    {"search", "order", "spread plain"},
    {"search", "state", STATES},
    {"tasks", "status",
     "accepted held escalated dropped queued dispatched working "
     "input_required completed failed cancelled expired"},
    {"token", "role", "admin"},
    {"users", "role", "user agent admin"},
    {"", "FILE", CLI_FILES},
    {"", "[FILE]", CLI_FILES},
    {"", "FILE.tgz", CLI_FILES},
    {"", "FOLDER", CLI_FOLDERS},
    {"", "AGENT", CLI_AGENTS},
    {"", "NAME=VALUE", CLI_SETTINGS},
};

const char *cli_words(const char *command, const char *value)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if ((!*rows[i].command || strcmp(rows[i].command, command) == 0) &&
            strcmp(rows[i].value, value) == 0)
            return rows[i].words;
    return "";
}

const char *cli_option_words(const char *command, const struct arg_option *o)
{
    const char *words = cli_words(command, o->name);

    return *words || !o->value ? words : cli_words("", o->value);
}
