/* The command line: a table of commands, and how one is found and run. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"

static const char *const serve_examples[] = {
    "signalbox serve",
    "signalbox serve --listen 127.0.0.1:9000 --data ~/signalbox",
    "signalbox serve --config prod.jsonc --set log.level=debug",
    NULL,
};
static const char *const check_examples[] = {
    "signalbox check",
    "signalbox check prod.jsonc",
    "signalbox check --print --set http.maxHeaders=50",
    NULL,
};
static const char *const doctor_examples[] = {
    "signalbox doctor",
    "signalbox doctor --config prod.jsonc --json",
    NULL,
};
static const char *const version_examples[] = {
    "signalbox version",
    "signalbox version --json",
    NULL,
};
static const char *const help_examples[] = {
    "signalbox help serve",
    "signalbox help config",
    NULL,
};

static const struct command commands[] = {
    {"serve", "run the server", "", 0,
     "Run the server until it gets SIGTERM or SIGINT. Everything has a "
     "default: without any option it listens on 127.0.0.1:8787 and keeps its "
     "data in ./signalbox-data.",
     cli_serve_options, serve_examples, cli_serve},
    {"check", "look over the configuration", "[FILE]", 1,
     "Read the configuration as serve would, environment and options "
     "included, and name every problem with its line and column. Exits with "
     "2 if there is any.",
     cli_check_options, check_examples, cli_check},
    {"doctor", "look over this machine", "", 0,
     "See whether the server can run here: configuration, data folder, "
     "address, limits, disk, clock and libraries. What is not well comes "
     "with what to do about it. Exits with 1 if the server could not run.",
     cli_doctor_options, doctor_examples, cli_doctor},
    {"version", "say which version this is", "", 0,
     "Say which version this is; with --json also which libraries it was "
     "built and is running with.",
     NULL, version_examples, cli_version},
    {"help", "explain a command", "[COMMAND]", 1,
     "Explain a command, or list them all. \"signalbox help config\" explains "
     "every setting.",
     NULL, help_examples, cli_help},
    {0},
};

static const struct command *find(struct str name)
{
    for (const struct command *m = commands; m->name; m++)
        if (str_eq(str_of(m->name), name))
            return m;
    return NULL;
}

/* Whether to answer in JSON must be known before a mistake is found. */
static bool wants_json(char *const *argv)
{
    for (; *argv && strcmp(*argv, "--") != 0; argv++)
        if (strcmp(*argv, "--json") == 0)
            return true;
    return false;
}

static enum exit_status run(struct cli *c, size_t n_argv, char *const *argv)
{
    struct why why;
    enum err e = args_parse(&c->args, c->command->options, cli_shared_options,
                            c->command->max_operands, n_argv, argv, &why);

    if (e)
        return cli_error(c, e, "%s", why.text);
    if (!args_has(&c->args, "help"))
        return c->command->run(c);
    cli_help_command(c, c->command);
    return EXIT_DONE;
}

static enum exit_status dispatch(struct cli *c, size_t n_argv,
                                 char *const *argv)
{
    struct str name = n_argv ? str_of(argv[0]) : STR("--help");

    if (str_eq(name, STR("--help")) || str_eq(name, STR("-h"))) {
        cli_help_overview(c);
        return EXIT_DONE;
    }
    if (str_eq(name, STR("--version")))
        name = STR("version");
    c->command = find(name);
    if (c->command)
        return run(c, n_argv - 1, argv + 1);
    if (str_starts(name, STR("-")))
        return cli_error(c, ERR_USAGE,
                         "a command comes first: signalbox COMMAND %.*s",
                         STR_ARG(str_sub(name, 0, 64)));
    return cli_unknown_command(c, name, STR(""));
}

/* Whoever starts us with one of these closed would have the next file that is
 * opened take its place: then what is printed goes into a data file. */
static bool has_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    enum exit_status status;
    struct cli c;

    if (!has_standard_files())
        return EXIT_FAILED;
    cli_init(&c, commands, environ);
    c.json = argc > 1 && wants_json(argv + 1);
    status = dispatch(&c, argc > 1 ? (size_t)argc - 1 : 0, argv + 1);
    status = cli_flush(&c, status);
    cli_fini(&c);
    return status;
}
