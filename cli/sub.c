/* Subcommands. The parser knows one table of options per command; options that
 * belong to one subcommand only are checked here. */
#include "cli/cli.h"

#include <assert.h>
#include <stdio.h>

bool cli_is_listed(const char *list, struct str word)
{
    struct str rest = str_of(list);

    while (rest.n)
        if (str_eq(str_cut(&rest, ' '), word))
            return true;
    return false;
}

/* The subcommand that owns the option, if s does not take it. */
static const struct sub *other_owner(const struct sub *subs,
                                     const struct sub *s, const char *option)
{
    if (cli_is_listed(s->options, str_of(option)))
        return NULL;
    for (const struct sub *o = subs; o->name; o++)
        if (cli_is_listed(o->options, str_of(option)))
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

/* The least and the largest number of operands: "NAME", "[NAME]", "NAME JSON",
 * "FILE...". */
static void sub_count_operands(const char *operand, size_t *least, size_t *most)
{
    struct str rest = str_of(operand);

    *least = *most = 0;
    while (rest.n) {
        struct str word = str_cut(&rest, ' ');

        *least += word.p[0] != '[';
        *most += word.p[word.n - 1] == '.' ? ARGS_OPERANDS_MAX : 1;
    }
}

void cli_show_alone(struct cli *c, struct str prefix)
{
    if (c->args.n_operands != 1 || !str_starts(c->args.operands[0], prefix))
        return;
    c->args.operands[1] = c->args.operands[0];
    c->args.operands[0] = STR("show");
    c->args.n_operands = 2;
}

enum exit_status cli_sub(struct cli *c, const struct sub *subs)
{
    const struct sub *s = subs, *owner;
    size_t n = c->args.n_operands, least, most;

    /* Help, completion and the manual read the subcommands there. */
    assert(subs == c->command->subs);
    if (c->args.n_operands)
        for (; s->name; s++)
            if (str_eq(str_of(s->name), c->args.operands[0]))
                break;
    if (!s->name)
        return sub_unknown(c, subs, c->args.operands[0]);
    for (size_t i = 0; i < c->args.n_options; i++) {
        const char *option = c->args.options[i].option->name;

        owner = other_owner(subs, s, option);
        if (owner)
            return cli_error(c, ERR_USAGE, "--%s is for \"%s %s\"", option,
                             c->command->name, owner->name);
    }
    sub_count_operands(s->operand, &least, &most);
    if (least && n < 1 + least)
        return cli_error(c, ERR_USAGE,
                         "an operand is missing: signalbox %s %s %s",
                         c->command->name, s->name, s->operand);
    if (n > 1 + most)
        return cli_error(c, ERR_USAGE, "unexpected argument \"%.*s\"",
                         STR_ARG(str_head(c->args.operands[1 + most], 64)));
    return s->run(c, c->args.operands[1]);
}
