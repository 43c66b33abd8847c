/* Subcommands, and the known words of options and operands. The parser knows
 * one table of options per command; options that belong to one subcommand only
 * are checked here. */
#include <stdio.h>

#include "cli/list.h"
#include "model/decision.h"

bool cli_has_word(const char *words, struct str wanted)
{
    struct str rest = str_of(words);

    while (rest.n) {
        struct str word = str_cut(&rest, ' ');

        word = str_cut(&word, ':');
        if (str_eq(str_cut(&word, '='), wanted))
            return true;
    }
    return false;
}

static bool owns_option(const struct sub *s, struct str option)
{
    return cli_has_word(s->options, option) ||
           (s->list && (cli_has_word(s->list->filters, option) ||
                        str_eq(option, STR("limit"))));
}

/* The subcommand that owns the option, if s does not take it. */
static const struct sub *other_owner(const struct sub *subs,
                                     const struct sub *s, const char *option)
{
    if (owns_option(s, str_of(option)))
        return NULL;
    for (const struct sub *o = subs; o->name; o++)
        if (owns_option(o, str_of(option)))
            return o;
    return NULL;
}

bool cli_sub_takes(const struct sub *subs, const struct sub *s,
                   const char *option)
{
    return !other_owner(subs, s, option);
}

static enum exit_status sub_unknown(struct cli *c, const struct sub *subs,
                                    struct str word)
{
    struct str_guess g = str_guess(word);
    char all[256] = "";
    size_t used = 0;

    for (const struct sub *s = subs; s->name; s++) {
        str_guess_offer(&g, str_of(s->name),
                        str_distance(word, str_of(s->name)));
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s",
                                 s == subs ? "" : ", ", s->name);
    }
    word = str_head(word, 64);
    if (g.name.n)
        return cli_error(c, ERR_USAGE,
                         "unknown command \"%s %.*s\"; did you mean %.*s?",
                         c->command->name, STR_ARG(word), STR_ARG(g.name));
    return cli_error(c, ERR_USAGE, "unknown command \"%s %.*s\"; known: %s",
                     c->command->name, STR_ARG(word), all);
}

enum exit_status cli_sub(struct cli *c)
{
    const struct sub *subs = c->command->subs, *s = subs, *owner;
    struct str *operands = c->args.operands;
    size_t n = c->args.n_operands, least = 0, most = 0;
    struct str rest;

    if (n)
        for (; s->name; s++) {
            if (str_eq(str_of(s->name), operands[0]))
                break;
            if (n == 1 && s->alone &&
                str_starts(operands[0], str_of(s->alone))) {
                operands[1] = operands[0];
                operands[0] = str_of(s->name);
                n = c->args.n_operands = 2;
                break;
            }
        }
    if (!s->name)
        return sub_unknown(c, subs, operands[0]);
    for (size_t i = 0; i < c->args.n_options; i++) {
        const char *option = c->args.options[i].option->name;

        owner = other_owner(subs, s, option);
        if (owner)
            return cli_error(c, ERR_USAGE, "--%s is for \"%s %s\"", option,
                             c->command->name, owner->name);
    }
    /* "NAME", "[NAME]", "NAME JSON" or "FILE...". */
    for (rest = str_of(s->operand); rest.n;) {
        struct str word = str_cut(&rest, ' ');

        least += word.p[0] != '[';
        most += word.p[word.n - 1] == '.' ? ARGS_OPERANDS_MAX : 1;
    }
    /* The server would take an empty ID for another path. */
    if (least && (n < 1 + least || !operands[1].n))
        return cli_error(c, ERR_USAGE, "an operand is %s: signalbox %s %s %s",
                         n < 1 + least ? "missing" : "empty", c->command->name,
                         s->name, s->operand);
    if (n > 1 + most)
        return cli_error(c, ERR_USAGE, "unexpected argument \"%.*s\"",
                         STR_ARG(str_head(operands[1 + most], 64)));
    if (s->list)
        return cli_list(c, s->list);
    return s->one ? cli_one(c, s->one, operands[1]) : s->run(c, operands[1]);
}

/* Known words, in one table: a command checks its arguments with it, and
 * completion offers its words. A value without a row for its command is known
 * by its placeholder: FILE is a file in every command. */

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
    {"budgets", "PERIOD", "day month"},
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
    {"help", "COMMAND", CLI_COMMANDS " api config options"},
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
