#ifndef CLI_CLI_H
#define CLI_CLI_H

/* cli: shared by all commands. There is one file per command;
 * commands_table.c has the table. Lists and requests about one object are
 * tables, too (list.h).
 *
 * A command gets parsed arguments, collects its output in `out`, and returns
 * its exit status; main writes the output to stdout at the end. With --json
 * the output is JSON, and so is an error on stderr. Terminals get colours,
 * marks and wrapped lines, pipes get plain text. Threads: the main one. */

#include "base/arena.h"
#include "base/buf.h"
#include "cli/args.h"
#include "server/config/config.h"

struct cli;
struct sub;

typedef enum exit_status command_run(struct cli *c);
typedef enum exit_status sub_run(struct cli *c, struct str operand);

struct command {
    const char *name;
    const char *summary;  /* a few words for the overview; "": internal, and
                           * not in the overview */
    const char *operands; /* "[FILE]"; "": none */
    size_t max_operands;
    const char *about; /* paragraphs, one per line */
    const struct arg_option *options;
    const char *examples;   /* command lines, one per line */
    command_run *run;       /* NULL: cli_sub */
    const struct sub *subs; /* subcommands; NULL: none */
};

struct cli {
    const struct command *commands; /* all; the last has no name */
    const struct command *command;  /* the current one; NULL: not known yet */
    struct args args;
    char *const *environ;
    bool json;

    /* Properties of stdout. */
    bool on_terminal;
    bool colour;
    bool unicode;
    unsigned width;  /* columns to wrap text at; zero: do not wrap */
    unsigned window; /* columns for tables; zero: no limit */
    bool is_cut_off; /* the reader closed the pipe */

    bool notices; /* stderr is a terminal that can erase a line */

    struct arena arena;
    struct buf out;
};

enum { CLI_OUT_MAX = 256 * 1024 * 1024, CLI_ARENA_BYTES = 1024 * 1024 };

/* All commands; the last has no name. */
extern const struct command cli_commands[];

/* Options that every command takes. */
extern const struct arg_option cli_shared_options[];

void cli_init(struct cli *c, const struct command *commands, char *const *env);
void cli_fini(struct cli *c);

/* Write `out` to stdout and empty it. A closed pipe or a full disk turns
 * success into EXIT_FAILED. */
enum exit_status cli_flush(struct cli *c, enum exit_status status);

/* Print an error on stderr, with --json in the format of the HTTP errors, and
 * return the exit status for e. */
enum exit_status cli_error(struct cli *c, enum err e, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Text in a colour, on terminals with colours. */
enum colour { BOLD, GREEN, YELLOW, RED };
void cli_coloured(struct cli *c, enum colour colour, struct str text);

/* One paragraph, wrapped at the width. The first line starts at column `col`,
 * the others are indented. Ends the line. */
void cli_wrapped(struct cli *c, unsigned col, unsigned indent, struct str text);

/* Text from the server: unchanged in a pipe, without control sequences on a
 * terminal. */
void cli_text(struct cli *c, struct str text);

/* A copy on one line without control characters, for terminals and pipes: text
 * from the server must not look like our own. */
struct str cli_tamed(struct cli *c, struct str s);

/* The same in the caller's memory, for many texts. A longer text is cut and
 * ends in two dots. */
struct cli_room {
    char text[1024 + 1];
};
struct str cli_tame(struct cli_room *room, struct str s);

/* Several lines of text, indented and wrapped, for people. */
void cli_indented_text(struct cli *c, unsigned indent, struct str text);

/* An empty line and a title. */
void cli_title(struct cli *c, const char *title);

/* A title with a text below it. An empty text prints nothing. */
void cli_section(struct cli *c, const char *title, struct str text);

/* A line with a name and its value, tamed and wrapped. An empty value or a zero
 * time prints nothing. */
void cli_named(struct cli *c, const char *name, struct str value);
void cli_named_time(struct cli *c, const char *name, int64_t at_ms);

/* Add a value on one line, without terminal control characters. */
struct json;
void cli_json_line(struct buf *out, const struct json *v);

/* "2025-11-15 06:12:33" in local time, or "-" for zero. */
struct cli_time {
    char text[32];
};
struct cli_time cli_time(int64_t at_ms);

/* Wall clock, and monotonic seconds. */
int64_t cli_now_ms(void);
double cli_mono_s(void);

/* --max-cost, in micro-units; *out does not change if the option is not
 * given. False: the error has been printed. */
MUST_USE bool cli_max_cost(struct cli *c, int64_t *out,
                           enum exit_status *status);

/* The whole number of an option; `fallback` if it is not given. False: the
 * error has been printed. */
MUST_USE bool cli_number(struct cli *c, const char *option, int64_t least,
                         int64_t most, int64_t fallback, int64_t *out,
                         enum exit_status *status);

/* The same for any number, in JSON syntax. */
MUST_USE bool cli_real(struct cli *c, const char *option, double least,
                       double most, double fallback, double *out,
                       enum exit_status *status);

/* The value of an option that must be one of a few words, in any case. `words`
 * separates them with blanks, and *out points to the match in it; *out does not
 * change if the option is not given. False: the error has been printed. */
MUST_USE bool cli_one_of(struct cli *c, const char *option, const char *words,
                         struct str *out, enum exit_status *status);

/* A subcommand, as in "token create". The first row of a table is the default.
 */
struct listing;
struct one;
struct sub {
    const char *name;    /* NULL ends a table */
    const char *operand; /* required, "ID", or optional, "[NAME]"; several:
                          * "NAME JSON", "FILE..."; NULL: none */
    const char *options; /* that only some rows take: "user label" */

    /* One of these. A list takes --limit and its filters, too. */
    sub_run *run;
    const struct listing *list;
    const struct one *one;

    const char *alone; /* an operand that begins with this needs no name of a
                        * subcommand: "task_"; NULL: none */
};

/* Find and run the subcommand; reports missing and excess operands. */
enum exit_status cli_sub(struct cli *c);

/* True if the word is in the list, which is separated by blanks. Filters have
 * "=query" and ":preset" behind a word. */
bool cli_has_word(const char *words, struct str word);

/* True if subcommand s takes the option: the option is its own, or belongs to
 * no other row. */
bool cli_sub_takes(const struct sub *subs, const struct sub *s,
                   const char *option);

/* The possible values of an option ("layer") or an operand ("VERDICT") of a
 * command: words separated by blanks, or one of the kinds below; "": not
 * known. Checks and completion both use it. */
#define CLI_FILES    "@files"
#define CLI_FOLDERS  "@folders"
#define CLI_AGENTS   "@agents"   /* from a running server */
#define CLI_SETTINGS "@settings" /* NAME=VALUE */
#define CLI_COMMANDS "@commands"
const char *cli_words(const char *command, const char *value);

/* The same for an option, which may also be known by its placeholder: "FILE".
 */
const char *cli_option_words(const char *command, const struct arg_option *o);

/* Add compact JSON with one line per member. */
void cli_indented(struct buf *out, struct str json);

/* Fill src from --config, --listen, --data and --set, in the order given.
 * Borrows c and its arguments. */
void cli_source(struct cli *c, struct config_source *src);

/* Print the errors of a configuration that could not be loaded. */
enum exit_status cli_bad_config(struct cli *c,
                                const struct config_report *report);

/* The options that cli_source reads. */
#define CLI_SOURCE_OPTIONS                                                  \
    {"config", "FILE", "read this file instead of signalbox.jsonc", false}, \
        {"listen", "[HOST:PORT]", "listen on this address", false},         \
        {"data", "FOLDER", "the data folder", false},                       \
    {                                                                       \
        "set", "NAME=VALUE", "any one setting; may be repeated", true       \
    }

/* The data folder, for commands that need no other setting: --data, or else the
 * folder that the server would use. Lives as long as c. False: the error has
 * been printed. */
MUST_USE bool cli_data(struct cli *c, struct str *folder,
                       enum exit_status *status);

/* The options that cli_data reads. */
#define CLI_DATA_OPTIONS                                                    \
    {"config", "FILE", "read this file instead of signalbox.jsonc", false}, \
    {                                                                       \
        "data", "FOLDER", "the data folder", false                          \
    }

/* A progress bar on stderr after the first second, on terminals only. */
struct cli_bar {
    bool is_wanted;
    const char *activity;
    int64_t began_ms;
    int shown;    /* percent; -1: none */
    size_t n, at; /* steps */
};

void cli_bar_start(struct cli_bar *b, struct cli *c, const char *activity);
void cli_bar_move(void *bar, int permille);
void cli_bar_end(struct cli_bar *b);

/* The same for n steps; cli_bar_step says that one is done. */
void cli_bar_count(struct cli_bar *b, struct cli *c, const char *activity,
                   size_t n);
void cli_bar_step(struct cli_bar *b);

struct cli_lib {
    const char *name;
    const char *built;  /* the version it was compiled against */
    const char *loaded; /* the version that was loaded */
    bool is_older;      /* than it was compiled against */
};

enum { CLI_LIBS_MAX = 8 };

/* Fill libs and return how many there are. */
size_t cli_libs(struct cli_lib libs[CLI_LIBS_MAX]);

/* The commands. */
command_run cli_serve, cli_demo, cli_demo_agent, cli_check, cli_doctor,
    cli_backup, cli_restore, cli_send, cli_feed, cli_holds, cli_search,
    cli_route, cli_lint, cli_replay, cli_grants, cli_gate, cli_eval,
    cli_calibrate, cli_version, cli_man, cli_help;
sub_run cli_task_input;

/* For help on the options of commands that talk to a server. */
#define CLI_CLIENT_ABOUT                                                   \
    "SIGNALBOX_URL names the server (http://127.0.0.1:8787 if it is not "  \
    "set), and SIGNALBOX_TOKEN has the token. There is no option for the " \
    "token itself, because everybody on a machine can read its command "   \
    "lines."

/* Run the command that the arguments name. */
enum exit_status cli_main(int argc, char **argv);

/* Help on one command, and the overview. */
void cli_help_command(struct cli *c, const struct command *about);
void cli_help_overview(struct cli *c);

/* Report an unknown command, and suggest the nearest one, or the nearest of
 * the topics, which are separated by blanks. */
enum exit_status cli_unknown_command(struct cli *c, struct str name,
                                     const char *topics);

/* Options and subcommands, for the table. */
extern const struct arg_option cli_agents_options[], cli_backup_options[],
    cli_budgets_options[], cli_calibrate_options[], cli_check_options[],
    cli_commands_options[], cli_decisions_options[], cli_demo_agent_options[],
    cli_demo_options[], cli_doctor_options[], cli_escalations_options[],
    cli_eval_options[], cli_feed_options[], cli_gate_options[],
    cli_grants_options[], cli_holds_options[], cli_learning_options[],
    cli_ledger_options[], cli_lint_options[], cli_model_options[],
    cli_replay_options[], cli_restore_options[], cli_route_options[],
    cli_search_options[], cli_send_options[], cli_serve_options[],
    cli_settings_options[], cli_tasks_options[], cli_token_options[],
    cli_users_options[];
extern const struct sub cli_agents_subs[], cli_budgets_subs[],
    cli_commands_subs[], cli_completion_subs[], cli_decisions_subs[],
    cli_escalations_subs[], cli_gate_subs[], cli_grants_subs[],
    cli_learning_subs[], cli_ledger_subs[], cli_model_subs[],
    cli_settings_subs[], cli_tasks_subs[], cli_token_subs[], cli_users_subs[];

#endif
