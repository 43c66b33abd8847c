#ifndef CLI_ARGS_H
#define CLI_ARGS_H

/* args: parse the arguments of a command by its table of options.
 *
 *     --config FILE   --config=FILE   --json   -h   --   operand   -5
 *
 * Options may be anywhere before "--". There are no abbreviations: an option
 * added tomorrow must not break a script written today. Borrows argv; copies
 * nothing. */

#include "base/err.h"
#include "base/str.h"

struct arg_option {
    const char *name;  /* "config", without the dashes; NULL ends a table */
    const char *value; /* the placeholder, "FILE"; "[FILE]": the value may be
                        * empty; NULL: no value */
    const char *what;  /* a few words for --help */
    bool may_repeat;
};

enum {
    ARGS_OPTIONS_MAX = 64,
    ARGS_OPERANDS_MAX = 1024, /* files of a pattern, words of a query */
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

/* All commands share the second table. argv has n_argv arguments, without the
 * program's name. ERR_USAGE: why suggests a correction, and *out is empty. */
MUST_USE enum err args_parse(struct args *out, const struct arg_option *own,
                             const struct arg_option *shared,
                             size_t max_operands, size_t n_argv,
                             char *const *argv, struct why *why);

/* True if the option was given; its value, the last one if it repeats. Not
 * given: an empty str with a NULL pointer. */
bool args_has(const struct args *a, const char *name);
struct str args_get(const struct args *a, const char *name);

#endif
