#ifndef CLI_ARGS_H
#define CLI_ARGS_H

/* args: what stands behind a command's name, taken apart by its table of
 * options.
 *
 *     --config FILE   --config=FILE   --json   -h   --   operand   -5
 *
 * Options may stand anywhere before "--". There are no abbreviations: a
 * script written today must not break over an option added tomorrow. Borrows
 * argv; nothing is copied. */

#include "base/err.h"
#include "base/str.h"

struct arg_option {
    const char *name;  /* "config", without the dashes; NULL ends a table */
    const char *value; /* what follows, "FILE"; in brackets where it may be
                        * empty, "[FILE]"; NULL when nothing does */
    const char *what;  /* a few words for --help */
    bool may_repeat;
};

enum {
    ARGS_OPTIONS_MAX = 64,
    ARGS_OPERANDS_MAX = 1024, /* files that a shell found, words of a query */
    ARGS_VALUE_MAX = 8192,    /* bytes in a value or an operand */
};

struct args {
    struct {
        const struct arg_option *option;
        struct str value;
    } options[ARGS_OPTIONS_MAX];
    size_t n_options;
    struct str operands[ARGS_OPERANDS_MAX];
    size_t n_operands;
};

/* Two tables, so that every command shares the second. n_argv counts what is
 * in argv, which does not begin with a program's name. ERR_USAGE with words
 * that say what to write instead; *out is then empty. */
MUST_USE enum err args_parse(struct args *out, const struct arg_option *own,
                             const struct arg_option *shared,
                             size_t max_operands, size_t n_argv,
                             char *const *argv, struct why *why);

/* Whether the option was given, and its value (the last one, if it repeats);
 * an empty str with a NULL pointer when it was not. */
bool args_has(const struct args *a, const char *name);
struct str args_get(const struct args *a, const char *name);

#endif
