#ifndef CLI_CLI_H
#define CLI_CLI_H

/* cli: what the commands share. One file per command; main.c has the table.
 *
 * A command gets its arguments parsed, gathers what it has to say in `out`,
 * and returns its exit status; main writes the text to stdout at the end. With
 * --json that text is JSON, and so is an error on stderr. Colour, marks and
 * wrapped lines are for terminals, plain text for pipes. Threads: the main one.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "cli/args.h"
#include "config/config.h"

struct cli;
struct sub;

struct command {
    const char *name;
    const char *summary;  /* a few words for the overview; "" for one that is
                           * not in it: for ourselves to start */
    const char *operands; /* "[FILE]"; "" without */
    size_t max_operands;
    const char *about; /* a paragraph or two, one line each */
    const struct arg_option *options;
    const char *const *examples; /* command lines; NULL at the end */
    enum exit_status (*run)(struct cli *c);
    const struct sub *subs; /* its second words; NULL where it has none */
};

struct cli {
    const struct command *commands; /* all, a nameless one at the end */
    const struct command *command;  /* this one; NULL before it is known */
    struct args args;
    char *const *environ;
    bool json;

    /* What stdout is. */
    bool on_terminal;
    bool colour;
    bool unicode;
    unsigned width;  /* columns to wrap at; zero: do not */
    unsigned window; /* columns there are, for tables; likewise */
    bool is_cut_off; /* whoever read it has left */

    bool notices; /* stderr is a terminal that can take a line back */

    struct arena arena;
    struct buf out;
};

enum { CLI_OUT_MAX = 256 * 1024 * 1024, CLI_ARENA_BYTES = 1024 * 1024 };

/* Options that every command takes. */
extern const struct arg_option cli_shared_options[];

void cli_init(struct cli *c, const struct command *commands, char *const *env);
void cli_fini(struct cli *c);

/* Write `out` to stdout and empty it. A reader that is gone or a full disk
 * turns success into EXIT_FAILED. */
enum exit_status cli_flush(struct cli *c, enum exit_status status);

/* Say what is wrong on stderr, with --json in the shape of the HTTP errors,
 * and return the status that belongs to e. */
enum exit_status cli_error(struct cli *c, enum err e, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Text in a colour, on terminals that have any. */
enum colour { BOLD, GREEN, YELLOW, RED };
void cli_coloured(struct cli *c, enum colour colour, struct str text);

/* Text of one paragraph, its lines broken at the width and every line but the
 * first moved in; `col` is where the first begins. Ends the line. */
void cli_wrapped(struct cli *c, unsigned col, unsigned indent, struct str text);

/* Text of the server: on a terminal without what could steer one, in a pipe
 * as it is. */
void cli_text(struct cli *c, struct str text);

/* A copy on one line, for terminals and pipes alike: what comes from the server
 * must not look like words of ours. */
struct str cli_tamed(struct cli *c, struct str s);

/* The same in room of the caller's, for where there may be many. What is longer
 * is cut, and ends in two dots. */
struct cli_room {
    char text[1024 + 1];
};
struct str cli_tame(struct cli_room *room, struct str s);

/* Text of several lines, moved in and wrapped, for people. */
void cli_indented_text(struct cli *c, unsigned indent, struct str text);

/* The same with a title above it; nothing where the text is empty. */
void cli_section(struct cli *c, const char *title, struct str text);

/* A line of what is known of one thing: its name and its value, tamed and
 * wrapped; nothing where the value is empty or the time zero. */
void cli_named(struct cli *c, const char *name, struct str value);
void cli_named_time(struct cli *c, const char *name, int64_t at_ms);

/* Add a value on one line, in characters that steer no terminal. */
struct json;
void cli_json_line(struct buf *out, const struct json *v);

/* "2025-11-15 06:12:33" here, or "-" for zero. */
struct cli_time {
    char text[32];
};
struct cli_time cli_time(int64_t at_ms);

/* The time, and seconds to measure with. */
int64_t cli_now_ms(void);
double cli_mono_s(void);

/* The whole number of an option, `fallback` when it was not given. An error
 * has been said already. */
/* --max-cost, in micro-units; *out stays where it is not given. */
MUST_USE bool cli_max_cost(struct cli *c, int64_t *out,
                           enum exit_status *status);
MUST_USE bool cli_number(struct cli *c, const char *option, int64_t least,
                         int64_t most, int64_t fallback, int64_t *out,
                         enum exit_status *status);

/* The same for any number, written as in JSON. */
MUST_USE bool cli_real(struct cli *c, const char *option, double least,
                       double most, double fallback, double *out,
                       enum exit_status *status);

/* The value of an option that must be one of a few words, whatever its case,
 * given with blanks between: *out is that word as it stands there, untouched
 * when the option was not given. An error has been said already. */
MUST_USE bool cli_one_of(struct cli *c, const char *option, const char *words,
                         struct str *out, enum exit_status *status);

/* Commands of two words: "token create". The first row is what a command
 * without a second word does. */
struct sub {
    const char *name;    /* NULL ends a table */
    const char *operand; /* what must follow, "ID", or may, "[NAME]"; more than
                          * one, "NAME JSON", "FILE..."; NULL: nothing may */
    const char
        *options; /* that others of the table do not take: "user label" */
    enum exit_status (*run)(struct cli *c, struct str operand);
};

/* Find and run it, with words for what is missing or too much. */
enum exit_status cli_sub(struct cli *c, const struct sub *subs);

/* Before that: an ID alone, which begins so, is to show it. */
void cli_show_alone(struct cli *c, struct str prefix);

/* Whether a word is in a list with blanks between. */
bool cli_is_listed(const char *list, struct str word);

/* Whether an option may stand behind a second word: it is the word's own, or
 * no other's of the table. */
bool cli_sub_takes(const struct sub *subs, const struct sub *s,
                   const char *option);

/* What may stand for a value: behind an option ("layer") or as an operand
 * ("VERDICT") of a command. Words with blanks between, or one of the kinds
 * below; "" where nobody can say. For whoever judges the value as for whoever
 * completes it. */
#define CLI_FILES    "@files"
#define CLI_FOLDERS  "@folders"
#define CLI_AGENTS   "@agents"   /* of a running server */
#define CLI_SETTINGS "@settings" /* NAME=VALUE */
#define CLI_COMMANDS "@commands"
const char *cli_words(const char *command, const char *value);

/* The same for an option of its own, which may be known by its value alone:
 * "FILE". */
const char *cli_option_words(const char *command, const struct arg_option *o);

/* Add compact JSON with a line per member. */
void cli_indented(struct buf *out, struct str json);

/* Fill src from --config, --listen, --data and --set, in the order given.
 * Borrows c and its arguments. An error has been said already; *status
 * is then what to end with. */
MUST_USE bool cli_source(struct cli *c, struct config_source *src,
                         enum exit_status *status);

/* Say what is wrong with a configuration that could not be loaded. */
enum exit_status cli_bad_config(struct cli *c,
                                const struct config_report *report);

/* The options that cli_source reads. */
#define CLI_SOURCE_OPTIONS                                                  \
    {"config", "FILE", "read this file instead of signalbox.jsonc", false}, \
        {"listen", "[HOST:PORT]", "where to take connections", false},      \
        {"data", "FOLDER", "where the data is kept", false},                \
    {                                                                       \
        "set", "NAME=VALUE", "any one setting; may be repeated", true       \
    }

/* The data folder, for commands that need nothing else of the configuration:
 * what --data says, else what the server would use. Lives as long as c. An
 * error has been said already. */
MUST_USE bool cli_data(struct cli *c, struct str *folder,
                       enum exit_status *status);

/* The options that cli_data reads. */
#define CLI_DATA_OPTIONS                                                    \
    {"config", "FILE", "read this file instead of signalbox.jsonc", false}, \
    {                                                                       \
        "data", "FOLDER", "where the data is kept", false                   \
    }

/* A bar on stderr, for what takes more than a second; on terminals only. */
struct cli_bar {
    bool is_wanted;
    const char *doing;
    int64_t began_ms;
    int shown;    /* percent; -1: nothing */
    size_t n, at; /* steps */
};

void cli_bar_start(struct cli_bar *b, struct cli *c, const char *doing);
void cli_bar_move(void *bar, int permille);
void cli_bar_end(struct cli_bar *b);

/* The same for what goes in n steps: one is over. */
void cli_bar_count(struct cli_bar *b, struct cli *c, const char *doing,
                   size_t n);
void cli_bar_step(struct cli_bar *b);

struct cli_lib {
    const char *name;
    const char *built;   /* the version it was compiled against */
    const char *running; /* the version that was loaded */
    bool is_older;       /* than it was compiled against */
};

enum { CLI_LIBS_MAX = 8 };

/* Fill libs and return how many there are. */
size_t cli_libs(struct cli_lib libs[CLI_LIBS_MAX]);

/* The commands. */
enum exit_status cli_serve(struct cli *c);
enum exit_status cli_demo(struct cli *c);
enum exit_status cli_demo_agent(struct cli *c);
enum exit_status cli_check(struct cli *c);
enum exit_status cli_doctor(struct cli *c);
enum exit_status cli_backup(struct cli *c);
enum exit_status cli_restore(struct cli *c);
enum exit_status cli_send(struct cli *c);
enum exit_status cli_tasks(struct cli *c);
enum exit_status cli_task_input(struct cli *c, struct str id);
enum exit_status cli_feed(struct cli *c);
enum exit_status cli_holds(struct cli *c);
enum exit_status cli_escalations(struct cli *c);
enum exit_status cli_agents(struct cli *c);
enum exit_status cli_search(struct cli *c);
enum exit_status cli_route(struct cli *c);
enum exit_status cli_decisions(struct cli *c);
enum exit_status cli_lint(struct cli *c);
enum exit_status cli_replay(struct cli *c);
enum exit_status cli_grants(struct cli *c);
enum exit_status cli_commands(struct cli *c);
enum exit_status cli_learning(struct cli *c);
enum exit_status cli_settings(struct cli *c);
enum exit_status cli_gate(struct cli *c);
enum exit_status cli_ledger(struct cli *c);
enum exit_status cli_budgets(struct cli *c);
enum exit_status cli_users(struct cli *c);
enum exit_status cli_token(struct cli *c);
enum exit_status cli_model(struct cli *c);
enum exit_status cli_eval(struct cli *c);
enum exit_status cli_calibrate(struct cli *c);
enum exit_status cli_version(struct cli *c);
enum exit_status cli_completion(struct cli *c);
enum exit_status cli_man(struct cli *c);
enum exit_status cli_help(struct cli *c);

extern const struct arg_option cli_holds_options[], cli_ledger_options[];
extern const struct arg_option cli_budgets_options[];
extern const struct sub cli_budgets_subs[];
extern const struct arg_option cli_escalations_options[];

extern const struct arg_option cli_route_options[], cli_lint_options[];

extern const struct arg_option cli_replay_options[], cli_decisions_options[];

extern const struct sub cli_agents_subs[], cli_commands_subs[],
    cli_completion_subs[], cli_decisions_subs[], cli_escalations_subs[],
    cli_gate_subs[], cli_grants_subs[], cli_learning_subs[], cli_ledger_subs[],
    cli_model_subs[], cli_settings_subs[], cli_tasks_subs[], cli_token_subs[],
    cli_users_subs[];

/* What the help of commands that talk to a server ends with. */
#define CLI_CLIENT_ABOUT                                                    \
    "The server is named by SIGNALBOX_URL (http://127.0.0.1:8787 if it is " \
    "not set), the token by SIGNALBOX_TOKEN; there is no option for the "   \
    "token itself, since command lines can be read by everybody on the "    \
    "machine."

/* Help on one command, and on all. */
void cli_help_command(struct cli *c, const struct command *about);
void cli_help_overview(struct cli *c);

/* Complain, naming the command that was probably meant, or the topic if there
 * is one besides. */
enum exit_status cli_unknown_command(struct cli *c, struct str name,
                                     struct str topic);

extern const struct arg_option cli_serve_options[], cli_demo_options[],
    cli_demo_agent_options[], cli_check_options[], cli_doctor_options[],
    cli_backup_options[], cli_restore_options[], cli_send_options[],
    cli_tasks_options[], cli_feed_options[], cli_agents_options[],
    cli_users_options[], cli_token_options[], cli_model_options[],
    cli_eval_options[], cli_search_options[], cli_grants_options[],
    cli_commands_options[], cli_learning_options[], cli_gate_options[],
    cli_calibrate_options[], cli_settings_options[];

#endif
