/* demo: a server with four agents, to try Signalbox right after building it.
 *
 * It is the real server with a built-in configuration: each agent is a child
 * process of this binary (demo_agent.c), or a model if the environment names
 * one. The user's settings override the built-in ones.
 *
 * The folder is kept, so a second start finds the data and the token of the
 * first, and an exported token stays valid. The token of a local trial server
 * may be stored in a file that only its user can read. Rejected: a new folder
 * in /tmp each time; the first thing people try after sending is whether it
 * remembers.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/json.h"
#include "cli/cli.h"
#include "lab/demo_cast.h"
#include "server/server.h"

enum { TOKEN_MAX = 256, SETS = 8, SET_MAX = 256 * 1024 };

#define USUAL_ADDRESS "127.0.0.1:8787"
#define OPENAI_URL    "https://api.openai.com/v1"
#define USUAL_MODEL   "gpt-4o-mini"
#define DEFAULT_AGENT "researcher" /* gets all other messages */

const struct arg_option cli_demo_options[] = {
    CLI_SOURCE_OPTIONS,
    {"pace", "PERCENT", "length of the agents' pauses; 0: none", false},
    {0},
};

struct demo {
    struct cli *c;
    char program[PATH_MAX]; /* this binary */
    struct str command;     /* how a user calls it */
    struct str model, url;  /* of real agents; empty: canned replies */
    bool has_key;
    bool is_elsewhere; /* not at the usual address */
    int64_t pace;
    struct str sets[SETS + ARGS_OPTIONS_MAX];
    size_t n_sets;
    bool is_out_of_memory;
};

/* The agents. */

static struct str demo_variable(const struct demo *d, const char *name)
{
    const char *value = config_env(d->c->environ, name);

    return value ? str_of(value) : STR("");
}

/* A key alone does not select a model: many have one in their environment, and
 * requests cost money. */
static void demo_choose_cast(struct demo *d)
{
    d->url = demo_variable(d, "OPENAI_BASE_URL");
    d->model = demo_variable(d, "SIGNALBOX_DEMO_MODEL");
    d->has_key = demo_variable(d, "OPENAI_API_KEY").n > 0;
    if (d->url.n && !d->model.n)
        d->model = STR(USUAL_MODEL);
    if (d->model.n && !d->url.n)
        d->url = STR(OPENAI_URL);
}

/* Settings. */

static struct json_out set_open(struct buf *out, const char *name)
{
    buf_init(out, SET_MAX);
    buf_addf(out, "%s=", name);
    return json_out(out);
}

static void set_close(struct demo *d, struct buf *out)
{
    char *copy = out->over ? NULL : arena_strdup(&d->c->arena, buf_str(out));

    if (copy)
        d->sets[d->n_sets++] = (struct str){copy, out->n};
    else
        d->is_out_of_memory = true;
    buf_fini(out);
}

static void put_process(struct demo *d, struct json_out *o,
                        const struct demo_actor *a)
{
    char pace[24];

    snprintf(pace, sizeof(pace), "--pace=%lld", (long long)d->pace);
    json_key(o, STR("process"));
    json_open(o, '{');
    json_key(o, STR("command"));
    json_open(o, '[');
    json_put_str(o, str_of(d->program));
    json_put_str(o, STR("demo-agent"));
    json_put_str(o, str_of(a->name));
    json_put_str(o, str_of(pace));
    json_close(o, ']');
    json_close(o, '}');
}

static void demo_set_agents(struct demo *d)
{
    struct buf text;
    struct json_out o = set_open(&text, "agents.list");

    json_open(&o, '[');
    for (size_t i = 0; i < DEMO_ACTORS; i++) {
        json_open(&o, '{');
        demo_put_card(&o, &demo_cast[i]);
        if (d->model.n)
            json_member_text(&o, "model", STR("demo"));
        else
            put_process(d, &o, &demo_cast[i]);
        json_close(&o, '}');
    }
    json_close(&o, ']');
    set_close(d, &text);
}

static void demo_set_model(struct demo *d)
{
    struct buf text;
    struct json_out o = set_open(&text, "models");

    json_open(&o, '{');
    json_key(&o, STR("demo"));
    json_open(&o, '{');
    json_member_text(&o, "baseUrl", d->url);
    json_member_text(&o, "model", d->model);
    if (d->has_key)
        json_member_text(&o, "keyVariable", STR("OPENAI_API_KEY"));
    json_close(&o, '}');
    json_close(&o, '}');
    set_close(d, &text);
}

static bool demo_is_taken(const char *text)
{
    struct addr addr;
    int on = 1, fd;
    bool is_taken;

    if (addr_parse(str_of(text), &addr) != OK)
        return false;
    fd = socket(addr.sa.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    is_taken =
        (bind(fd, &addr.sa.any, sizeof(addr.sa.v4)) < 0 || listen(fd, 1) < 0) &&
        errno == EADDRINUSE;
    close(fd);
    return is_taken;
}

static void demo_make_sets(struct demo *d, const struct config_source *given)
{
    bool is_named = args_has(&d->c->args, "listen") ||
                    demo_variable(d, "SIGNALBOX_LISTEN").n;

    for (size_t i = 0; i < given->n_sets; i++)
        is_named = is_named || str_starts(given->sets[i], STR("listen="));
    d->is_elsewhere = !is_named && demo_is_taken(USUAL_ADDRESS);
    d->sets[d->n_sets++] = STR("data=signalbox-demo-data");
    d->sets[d->n_sets++] = STR("log.level=warn");
    d->sets[d->n_sets++] = STR("agents.default=" DEFAULT_AGENT);
    if (d->is_elsewhere)
        d->sets[d->n_sets++] = STR("listen=127.0.0.1:0");
    demo_set_agents(d);
    if (d->model.n)
        demo_set_model(d);
    for (size_t i = 0; i < given->n_sets; i++)
        d->sets[d->n_sets++] = given->sets[i];
}

/* How a user calls this program: by name if the shell finds it, else by the
 * shortest path. */
static struct str demo_command(struct demo *d)
{
    struct str program = str_of(d->program), path = demo_variable(d, "PATH");
    struct str folder = str_parent(program);
    char here[PATH_MAX];

    while (path.n)
        if (str_eq(str_cut(&path, ':'), folder))
            return str_sub(program, folder.n + 1, program.n);
    if (getcwd(here, sizeof(here)) && str_eq(folder, str_of(here)))
        return STR("./signalbox");
    if (here[0] && str_starts(program, str_of(here)) &&
        program.p[strlen(here)] == '/')
        return str_sub(program, strlen(here) + 1, program.n);
    return program;
}

/* The token. */

static bool token_path(const char *folder, char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s/demo-token", folder);

    return n > 0 && n < PATH_MAX;
}

static void demo_write_token(const char *folder, const char *token)
{
    char path[PATH_MAX];
    int fd = token_path(folder, path)
                 ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
                 : -1;

    /* open() does not change the mode of an existing file. */
    if (fd < 0 || fchmod(fd, 0600) != 0 || dprintf(fd, "%s\n", token) < 0)
        fprintf(stderr,
                "signalbox: cannot keep the token for the next start: "
                "%s\n",
                strerror(errno));
    if (fd >= 0)
        close(fd);
}

/* The token of the first start; empty: it is not known. */
static void demo_find_token(const struct server_listening *l, struct buf *out)
{
    char path[PATH_MAX], text[TOKEN_MAX];
    ssize_t n;
    int fd;

    if (l->first_token[0]) {
        demo_write_token(l->folder, l->first_token);
        buf_add_str(out, str_of(l->first_token));
        return;
    }
    fd = token_path(l->folder, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    n = read(fd, text, sizeof(text));
    close(fd);
    if (n > 0) {
        struct str rest = {text, (size_t)n};

        buf_add_str(out, str_cut(&rest, '\n'));
    }
}

/* Output. */

static void demo_print_json(const struct server_listening *l, struct str token)
{
    struct json_out o;
    struct buf line;

    buf_init(&line, 8192);
    o = json_out(&line);
    json_open(&o, '{');
    json_member_text(&o, "event", STR("listening"));
    json_member_text(&o, "url", str_of(l->url[0] ? l->url : l->tls_url));
    json_member_some(&o, "token", token);
    json_key(&o, STR("agents"));
    json_open(&o, '[');
    for (size_t i = 0; i < DEMO_ACTORS; i++)
        json_put_str(&o, str_of(demo_cast[i].name));
    json_close(&o, ']');
    json_close(&o, '}');
    printf("%.*s\n", STR_ARG(buf_str(&line)));
    buf_fini(&line);
}

static void demo_print_cast(const struct demo *d)
{
    if (d->model.n)
        printf("Four agents are ready, each the model %.*s with its own "
               "prompt:\n\n",
               STR_ARG(str_head(d->model, 64)));
    else
        printf("Four agents with canned replies are ready:\n\n");
    for (size_t i = 0; i < DEMO_ACTORS; i++)
        printf("    %-21s%s\n", demo_cast[i].name, demo_cast[i].does);
}

static void demo_print_token(const struct demo *d,
                             const struct server_listening *l, struct str token)
{
    if (strcmp(l->url, "http://" USUAL_ADDRESS) != 0)
        printf("    export SIGNALBOX_URL=%s\n",
               l->url[0] ? l->url : l->tls_url);
    if (token.n)
        printf("    export SIGNALBOX_TOKEN=%.*s\n", STR_ARG(token));
    else
        printf("    (stop the server, and create a token: %.*s token create "
               "--offline --data %s --user admin)\n",
               STR_ARG(d->command), l->folder);
}

/* The first step, printed last because people look there. After a login over
 * ssh the browser runs on another machine. */
static void demo_print_page(const struct demo *d,
                            const struct server_listening *l, struct str token)
{
    bool is_signed_in = token.n && l->page_is_private;
    const char *port = strrchr(l->page, ':');

    if (!l->page[0])
        return;
    if (port && demo_variable(d, "SSH_CONNECTION").n)
        printf("First, on your own machine: ssh -L %.*s:127.0.0.1:%.*s and "
               "the name of this machine.\n\n",
               (int)strcspn(port + 1, "/"), port + 1,
               (int)strcspn(port + 1, "/"), port + 1);
    printf("Open it in a browser%s:\n\n    %s%s%.*s\n\n",
           is_signed_in ? "; the link signs you in" : ", and enter a token",
           l->page, is_signed_in ? "#token=" : "",
           is_signed_in ? (int)token.n : 0, token.n ? token.p : "");
}

static void demo_print_text(const struct demo *d,
                            const struct server_listening *l, struct str token)
{
    printf("Signalbox " SIGNALBOX_VERSION " is listening on %s%s\n",
           l->url[0] ? l->url : l->tls_url,
           d->is_elsewhere ? ", since 8787 is in use" : "");
    printf("Data is in %s. Stop it with Ctrl-C.\n\n", l->folder);
    demo_print_cast(d);
    printf(
        "\nEach message goes to the agent that fits it. In another terminal, "
        "for example:\n\n");
    demo_print_token(d, l, token);
    printf("    %.*s send \"%s\"\n"
           "    %.*s route \"%s\"\n"
           "    %.*s send \"/%s hello\"\n"
           "    %.*s send \"%s\"\n"
           "    %.*s search who could write about our new office\n"
           "    %.*s feed --follow\n",
           STR_ARG(d->command), demo_cast[0].ask, STR_ARG(d->command),
           demo_cast[2].ask, STR_ARG(d->command), demo_cast[1].name,
           STR_ARG(d->command), demo_cast[2].delegations.ask,
           STR_ARG(d->command), STR_ARG(d->command));
    if (!d->model.n)
        printf("\nFor real answers, set OPENAI_BASE_URL and "
               "SIGNALBOX_DEMO_MODEL in the\n"
               "environment (and OPENAI_API_KEY if a key is needed).\n");
    printf("\n");
    demo_print_page(d, l, token);
}

static void demo_on_listening(void *ctx, const struct server_listening *l)
{
    struct demo *d = ctx;
    struct buf token;

    buf_init(&token, TOKEN_MAX);
    demo_find_token(l, &token);
    if (d->c->json)
        demo_print_json(l, buf_str(&token));
    else
        demo_print_text(d, l, buf_str(&token));
    buf_fini(&token);
}

enum exit_status cli_demo(struct cli *c)
{
    struct demo d = {.c = c};
    struct server_opts opts = {
        .json = c->json, .on_listening = demo_on_listening, .ctx = &d};
    enum exit_status status;
    ssize_t n;

    cli_source(c, &opts.source);
    if (!cli_number(c, "pace", 0, 1000, 100, &d.pace, &status))
        return status;
    n = readlink("/proc/self/exe", d.program, sizeof(d.program) - 1);
    if (n <= 0)
        return cli_error(c, ERR_IO, "cannot find the path of this program: %s",
                         strerror(errno));
    demo_choose_cast(&d);
    d.command = demo_command(&d);
    demo_make_sets(&d, &opts.source);
    if (d.is_out_of_memory)
        return cli_error(c, ERR_NOMEM, "out of memory");
    opts.source.is_without_file = true;
    opts.source.sets = d.sets;
    opts.source.n_sets = d.n_sets;
    status = server_run(&opts);
    /* Otherwise the shell's prompt would follow the ^C. */
    if (status == EXIT_DONE && c->on_terminal && !c->json)
        printf("\nThe server and all its agents have stopped.\n");
    return status;
}
