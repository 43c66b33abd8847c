/* gate: the command with its options; gate_try.c and gate_stats.c do the work.
 */
#include "cli/gate.h"

#include <unistd.h>

#include "cli/client.h"

const struct arg_option cli_gate_options[] = {
    {"rules", "FILE", "decide without a server, by these rules", false},
    {"state", "FILE", "decide without a server, with these agents and history",
     false},
    {"now", "TIME", "decide as of this time: 2025-02-15T09:00:00Z", false},
    CLIENT_OPTIONS,
    {0},
};

/* True for a mistyped subcommand: lower-case letters, and not a file. */
static bool is_slip(struct str word)
{
    for (size_t i = 0; i < word.n; i++)
        if (word.p[i] < 'a' || word.p[i] > 'z')
            return false;
    return word.n && access(word.p, F_OK) != 0;
}

enum exit_status cli_gate(struct cli *c)
{
    struct str first = c->args.operands[0];

    if (c->args.n_operands &&
        (str_eq(first, STR("stats")) || str_eq(first, STR("audit"))))
        return cli_sub(c);
    if (c->args.n_operands == 1 && is_slip(first))
        return cli_error(c, ERR_USAGE,
                         "\"%.*s\" is neither a file nor a command; known: "
                         "gate ENVELOPE, gate stats, gate audit, and the "
                         "commands holds and escalations",
                         STR_ARG(str_head(first, 64)));
    if (c->args.n_operands == 1)
        return cli_gate_try(c, c->args.operands[0]);
    return cli_error(c, ERR_USAGE,
                     "name the file of an envelope, or - for standard input: "
                     "signalbox gate --rules routing_rules.json --state "
                     "state.json envelope.json");
}
