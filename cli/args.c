/* Options are matched in full against two tables and kept in the order given,
 * which --set and its shorthands need. Rejected: getopt_long, which takes
 * abbreviations, prints its own messages, and cannot suggest an option. */
#include "cli/args.h"

struct parser {
    struct args *out;
    const struct arg_option *tables[2];
    size_t max_operands;
    struct why *why;
};

static const struct arg_option *args_find_option(const struct parser *p,
                                                 struct str name)
{
    for (size_t t = 0; t < 2; t++)
        for (const struct arg_option *o = p->tables[t]; o && o->name; o++)
            if (str_eq(str_of(o->name), name))
                return o;
    return NULL;
}

static enum err args_unknown_option(const struct parser *p, struct str name)
{
    struct str_guess g = str_guess(name);

    for (size_t t = 0; t < 2; t++)
        for (const struct arg_option *o = p->tables[t]; o && o->name; o++)
            str_guess_offer(&g, str_of(o->name),
                            str_distance(name, str_of(o->name)));
    name = str_head(name, 64);
    if (g.name.n)
        return why_err(p->why, ERR_USAGE,
                       "unknown option --%.*s; did you mean --%.*s?",
                       STR_ARG(name), STR_ARG(g.name));
    return why_err(p->why, ERR_USAGE,
                   "unknown option --%.*s; --help lists the options",
                   STR_ARG(name));
}

static enum err args_add_option(struct parser *p, const struct arg_option *o,
                                struct str value)
{
    struct args *out = p->out;

    if (!o->may_repeat && args_has(out, o->name))
        return why_err(p->why, ERR_USAGE, "--%s is given twice", o->name);
    if (out->n_options == ARGS_OPTIONS_MAX)
        return why_err(p->why, ERR_USAGE, "more than %d options",
                       ARGS_OPTIONS_MAX);
    if (value.n > ARGS_VALUE_MAX)
        return why_err(p->why, ERR_USAGE,
                       "the value of --%s is longer than %d bytes", o->name,
                       ARGS_VALUE_MAX);
    out->options[out->n_options].option = o;
    out->options[out->n_options++].value = value;
    return OK;
}

static enum err add_operand(struct parser *p, struct str s)
{
    struct args *out = p->out;

    if (out->n_operands == p->max_operands)
        return why_err(p->why, ERR_USAGE, "unexpected argument \"%.*s\"",
                       STR_ARG(str_head(s, 64)));
    if (s.n > ARGS_VALUE_MAX)
        return why_err(p->why, ERR_USAGE,
                       "argument \"%.*s...\" is longer than %d bytes",
                       STR_ARG(str_head(s, 32)), ARGS_VALUE_MAX);
    out->operands[out->n_operands++] = s;
    return OK;
}

/* One option. *next is the argument after it, or NULL; *next becomes NULL if it
 * was used as the option's value. */
static enum err read_option(struct parser *p, struct str text,
                            const char **next)
{
    size_t equals = str_find(text, '=', 0);
    struct str name = str_sub(text, 0, equals);
    struct str value = str_sub(text, equals + 1, text.n);
    const struct arg_option *o = args_find_option(p, name);
    bool is_attached = equals < text.n, is_given = is_attached;

    if (!o)
        return args_unknown_option(p, name);
    if (!o->value) {
        if (is_attached)
            return why_err(p->why, ERR_USAGE, "--%s takes no value", o->name);
        return args_add_option(p, o, (struct str){0});
    }
    /* A value that looks like an option is more likely a forgotten value. */
    if (!is_attached && *next && strncmp(*next, "--", 2) != 0) {
        value = str_of(*next);
        *next = NULL;
        is_given = true;
    }
    if (!is_given || (!value.n && o->value[0] != '['))
        return why_err(p->why, ERR_USAGE, "--%s needs a value: --%s %s",
                       o->name, o->name, o->value);
    return args_add_option(p, o, value);
}

enum err args_parse(struct args *out, const struct arg_option *own,
                    const struct arg_option *shared, size_t max_operands,
                    size_t n_argv, char *const *argv, struct why *why)
{
    struct parser p = {out, {own, shared}, max_operands, why};
    bool only_operands = false;
    enum err e = OK;

    *out = (struct args){0};
    if (p.max_operands > ARGS_OPERANDS_MAX)
        p.max_operands = ARGS_OPERANDS_MAX;
    for (size_t i = 0; i < n_argv && !e; i++) {
        const char *next = i + 1 < n_argv ? argv[i + 1] : NULL;
        struct str s = str_of(argv[i]);
        /* -5 is a number; the command that expects one has the best error for
         * it. */
        bool is_number =
            s.n > 1 && s.p[0] == '-' && s.p[1] >= '0' && s.p[1] <= '9';

        if (only_operands || s.n < 2 || s.p[0] != '-' || is_number) {
            e = add_operand(&p, s);
        } else if (str_eq(s, STR("--"))) {
            only_operands = true;
        } else if (str_eq(s, STR("-h"))) {
            e = read_option(&p, STR("help"), &next);
        } else if (s.p[1] != '-') {
            e = why_err(why, ERR_USAGE,
                        "unknown option %.*s; there are no short options, "
                        "write --name",
                        STR_ARG(str_head(s, 64)));
        } else {
            bool had_next = next != NULL;

            e = read_option(&p, str_sub(s, 2, s.n), &next);
            i += had_next && !next;
        }
    }
    if (e)
        *out = (struct args){0};
    return e;
}

bool args_has(const struct args *a, const char *name)
{
    for (size_t i = 0; i < a->n_options; i++)
        if (strcmp(a->options[i].option->name, name) == 0)
            return true;
    return false;
}

struct str args_get(const struct args *a, const char *name)
{
    for (size_t i = a->n_options; i-- > 0;)
        if (strcmp(a->options[i].option->name, name) == 0)
            return a->options[i].value;
    return (struct str){0};
}
