/* demo: a server with four agents, for somebody who has just built it.
 *
 * It is the real server with a configuration of our making: each agent is a
 * child of this same binary (demo_agent.c), or a model where the environment
 * names one. What we set comes before what the user sets, so theirs counts.
 *
 * The folder stays, so that a second start finds what the first one left, and
 * the token with it: whoever has exported it goes on using it. A key to a
 * server for trying things, on this machine only, may lie in a file that only
 * its user can read. Turned down: a fresh folder in /tmp each time; the first
 * thing people try after sending is whether it remembers. */
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
#include "cli/demo_cast.h"
#include "server.h"

enum { TOKEN_MAX = 256, SETS = 8, SET_MAX = 256 * 1024 };

#define USUAL_ADDRESS "127.0.0.1:8787"
#define OPENAI_URL    "https://api.openai.com/v1"
#define USUAL_MODEL   "gpt-4o-mini"
#define DEFAULT_AGENT "researcher" /* finds out what nobody else is for */

const struct arg_option cli_demo_options[] = {
    CLI_SOURCE_OPTIONS,
    {"pace", "PERCENT", "how long the agents pause; 0: not at all", false},
    {0},
};

struct demo {
    struct cli *c;
    char program[PATH_MAX]; /* this one */
    struct str command;     /* how to call it from here */
    struct str model, url;  /* of real agents; empty: canned replies */
    bool has_key;
    bool is_elsewhere; /* than where it usually listens */
    int64_t pace;
    struct str sets[SETS + ARGS_OPTIONS_MAX];
    size_t n_sets;
    bool is_out_of_memory;
};

/* Who plays. */

static struct str variable(const struct demo *d, const char *name)
{
    const char *value = config_env(d->c->environ, name);

    return value ? str_of(value) : STR("");
}

/* A key alone is no wish: many have one in their environment, and asking costs
 * money. */
static void choose_cast(struct demo *d)
{
    d->url = variable(d, "OPENAI_BASE_URL");
    d->model = variable(d, "SIGNALBOX_DEMO_MODEL");
    d->has_key = variable(d, "OPENAI_API_KEY").n > 0;
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

static void set_agents(struct demo *d)
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

static void set_model(struct demo *d)
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

static bool is_taken(const char *text)
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

static void make_sets(struct demo *d, const struct config_source *given)
{
    bool is_named =
        args_has(&d->c->args, "listen") || variable(d, "SIGNALBOX_LISTEN").n;

    for (size_t i = 0; i < given->n_sets; i++)
        is_named = is_named || str_starts(given->sets[i], STR("listen="));
    d->is_elsewhere = !is_named && is_taken(USUAL_ADDRESS);
    d->sets[d->n_sets++] = STR("data=signalbox-demo-data");
    d->sets[d->n_sets++] = STR("log.level=warn");
    d->sets[d->n_sets++] = STR("agents.default=" DEFAULT_AGENT);
    if (d->is_elsewhere)
        d->sets[d->n_sets++] = STR("listen=127.0.0.1:0");
    set_agents(d);
    if (d->model.n)
        set_model(d);
    for (size_t i = 0; i < given->n_sets; i++)
        d->sets[d->n_sets++] = given->sets[i];
}

/* How a user here would call this program: as the shell finds it, or by the
 * shortest path there is. */
static struct str command_for(struct demo *d)
{
    struct str program = str_of(d->program), path = variable(d, "PATH");
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

static void keep_token(const char *folder, const char *token)
{
    char path[PATH_MAX];
    int fd = token_path(folder, path)
                 ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
                 : -1;

    /* One that was there before keeps its mode otherwise. */
    if (fd < 0 || fchmod(fd, 0600) != 0 || dprintf(fd, "%s\n", token) < 0)
        fprintf(stderr,
                "signalbox: the token could not be kept for the next start: "
                "%s\n",
                strerror(errno));
    if (fd >= 0)
        close(fd);
}

/* What the first start made; empty: that is not known here. */
static void find_token(const struct server_listening *l, struct buf *out)
{
    char path[PATH_MAX], text[TOKEN_MAX];
    ssize_t n;
    int fd;

    if (l->first_token[0]) {
        keep_token(l->folder, l->first_token);
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

/* What to try. */

static void say_to_programs(const struct server_listening *l, struct str token)
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

static void say_cast(const struct demo *d)
{
    if (d->model.n)
        printf("Four agents are there, each the model %.*s with a prompt of "
               "its own:\n\n",
               STR_ARG(str_head(d->model, 64)));
    else
        printf("Four agents are there, who know a few replies by heart:\n\n");
    for (size_t i = 0; i < DEMO_ACTORS; i++)
        printf("    %-21s%s\n", demo_cast[i].name, demo_cast[i].does);
}

static void say_token(const struct demo *d, const struct server_listening *l,
                      struct str token)
{
    if (strcmp(l->url, "http://" USUAL_ADDRESS) != 0)
        printf("    export SIGNALBOX_URL=%s\n",
               l->url[0] ? l->url : l->tls_url);
    if (token.n)
        printf("    export SIGNALBOX_TOKEN=%.*s\n", STR_ARG(token));
    else
        printf("    (stop this one, and make a token: %.*s token create "
               "--offline --data %s --user admin)\n",
               STR_ARG(d->command), l->folder);
}

/* The first thing to do, and so what stands last, where people look. Who came
 * over ssh has their browser elsewhere. */
static void say_page(const struct demo *d, const struct server_listening *l,
                     struct str token)
{
    bool is_signed_in = token.n && l->page_is_private;
    const char *port = strrchr(l->page, ':');

    if (!l->page[0])
        return;
    if (port && variable(d, "SSH_CONNECTION").n)
        printf("From where you sit, first: ssh -L %.*s:127.0.0.1:%.*s and the "
               "name of this machine.\n\n",
               (int)strcspn(port + 1, "/"), port + 1,
               (int)strcspn(port + 1, "/"), port + 1);
    printf("Open it in a browser%s:\n\n    %s%s%.*s\n\n",
           is_signed_in ? "; the link signs you in" : ", and give it a token",
           l->page, is_signed_in ? "#token=" : "",
           is_signed_in ? (int)token.n : 0, token.n ? token.p : "");
}

static void say_to_people(const struct demo *d,
                          const struct server_listening *l, struct str token)
{
    printf("Signalbox " SIGNALBOX_VERSION " is listening on %s%s\n",
           l->url[0] ? l->url : l->tls_url,
           d->is_elsewhere ? ", since 8787 is taken" : "");
    printf("Data is in %s. Stop it with Ctrl-C.\n\n", l->folder);
    say_cast(d);
    printf("\nA message goes to the one that it fits. In another terminal, for "
           "example:\n\n");
    say_token(d, l, token);
    printf("    %.*s send \"%s\"\n"
           "    %.*s route \"%s\"\n"
           "    %.*s send \"/%s hello\"\n"
           "    %.*s send \"%s\"\n"
           "    %.*s search who could write about our new office\n"
           "    %.*s feed --follow\n",
           STR_ARG(d->command), demo_cast[0].ask, STR_ARG(d->command),
           demo_cast[2].ask, STR_ARG(d->command), demo_cast[1].name,
           STR_ARG(d->command), demo_cast[2].hires.ask, STR_ARG(d->command),
           STR_ARG(d->command));
    if (!d->model.n)
        printf("\nFor real answers start it with OPENAI_BASE_URL and "
               "SIGNALBOX_DEMO_MODEL in the\n"
               "environment (and OPENAI_API_KEY where one is needed).\n");
    printf("\n");
    say_page(d, l, token);
}

static void on_listening(void *ctx, const struct server_listening *l)
{
    struct demo *d = ctx;
    struct buf token;

    buf_init(&token, TOKEN_MAX);
    find_token(l, &token);
    if (d->c->json)
        say_to_programs(l, buf_str(&token));
    else
        say_to_people(d, l, buf_str(&token));
    buf_fini(&token);
}

enum exit_status cli_demo(struct cli *c)
{
    struct demo d = {.c = c};
    struct server_opts opts = {
        .json = c->json, .on_listening = on_listening, .ctx = &d};
    enum exit_status status;
    ssize_t n;

    if (!cli_source(c, &opts.source, &status) ||
        !cli_number(c, "pace", 0, 1000, 100, &d.pace, &status))
        return status;
    n = readlink("/proc/self/exe", d.program, sizeof(d.program) - 1);
    if (n <= 0)
        return cli_error(c, ERR_IO, "cannot find out what program this is: %s",
                         strerror(errno));
    choose_cast(&d);
    d.command = command_for(&d);
    make_sets(&d, &opts.source);
    if (d.is_out_of_memory)
        return cli_error(c, ERR_NOMEM, "out of memory");
    opts.source.is_without_file = true;
    opts.source.sets = d.sets;
    opts.source.n_sets = d.n_sets;
    status = server_run(&opts);
    /* The shell's prompt would stand behind the ^C otherwise. */
    if (status == EXIT_DONE && c->on_terminal && !c->json)
        printf("\nIt has ended, and so has all that it started.\n");
    return status;
}
