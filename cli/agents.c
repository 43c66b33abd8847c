/* agents: list them, show one, and pause, restart or remove one. */
#include "cli/agents.h"
#include "cli/list.h"
#include "cli/one.h"
#include "cli/remove.h"
#include "model/agent.h"

#include <stdio.h>

enum { ACT_MS = 90 * 1000 }; /* a restart command has a minute */

const struct arg_option cli_agents_options[] = {
    {"tag", "TAG", "only agents with this tag on a skill", false},
    {"org", "ORG", "only agents of this org", false},
    {"creator", "NAME", "only agents that this user created", false},
    {"kind", "KIND", "only this kind: platform, managed, self-hosted", false},
    {"visibility", "WHO", "only this visibility: public, shared, private",
     false},
    {"state", "STATE", "only this state: active, idle, busy, slow, error, dead",
     false},
    {"review", "STATE",
     "only this review state: waiting, rejected, hidden, reported", false},
    {"revision", "N", "the revision that you have read", false},
    {"reason", "TEXT", "the reason", false},
    {"limit", "N", "list at most N agents (default 1000)", false},
    {"dry-run", NULL, "check the cards on this machine, without a server",
     false},
    {"if-new", NULL, "do not change agents that exist already", false},
    CLIENT_OPTIONS,
    {0},
};

void agents_path(struct buf *path, struct str name)
{
    buf_add_str(path, STR("/api/agents/"));
    client_add_part(path, name);
}

/* The list. */

static const char *state_colour(struct str state)
{
    switch ((int)agent_state_of(state)) {
    case AGENT_ACTIVE: return "\033[32m";
    case AGENT_BUSY:
    case AGENT_SLOW: return "\033[33m";
    case AGENT_ERROR:
    case AGENT_DEAD: return "\033[31m";
    default: return "";
    }
}

static void agents_add_row(struct listing *l, const struct json *item)
{
    const struct json *skills = json_get(item, STR("skills"));
    char count[24] = "0";
    struct str cells[] = {cli_field(item, STR("name")), str_of(count),
                          cli_field(item, STR("visibility")),
                          cli_field(item, STR("state")),
                          cli_field(item, STR("description"))};
    struct str reason = cli_field(item, STR("state_reason"));
    struct buf words;

    if (skills && skills->type == JSON_ARR)
        snprintf(count, sizeof(count), "%zu", (size_t)skills->kids.n);
    cells[1] = str_of(count);
    buf_init(&words, 64 * 1024);
    if (reason.n) {
        buf_addf(&words, "(%.*s) %.*s", STR_ARG(reason), STR_ARG(cells[4]));
        cells[4] = words.over ? cells[4] : buf_str(&words);
    }
    grid_add(&l->grid, cells);
    buf_fini(&words);
}

/* False: the error has been printed. */
static bool agents_add_filters(struct cli *c, struct buf *path,
                               enum exit_status *status)
{
    static const struct {
        const char *option;
        bool is_one_of;
    } filters[] = {
        {"tag", false},   {"org", false},       {"creator", false},
        {"kind", true},   {"visibility", true}, {"state", true},
        {"review", true},
    };

    buf_add_str(path, STR("/api/agents"));
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
        struct str word = args_get(&c->args, filters[i].option);

        if (!word.n)
            continue;
        if (filters[i].is_one_of &&
            !cli_one_of(c, filters[i].option,
                        cli_words("agents", filters[i].option), &word, status))
            return false;
        client_add_query(path, filters[i].option, word);
    }
    return true;
}

static const char none[] =
    "There are no agents yet. To add one, write its card into a file and\n"
    "register it:\n"
    "  { \"name\": \"echo\", \"description\": \"Says what it is told\", "
    "\"url\": \"echo:\" }\n"
    "  signalbox agents register echo.json\n";

static enum exit_status agents_list(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {{"NAME", NULL},
                                             {"SKILLS", NULL},
                                             {"VISIBILITY", NULL},
                                             {"STATE", state_colour},
                                             {"DESCRIPTION", NULL}};
    struct list_kind agents = {.heads = heads,
                               .n_heads = 5,
                               .add = agents_add_row,
                               .most = 100000,
                               .preset = 1000,
                               .none = none,
                               .tells_of_further = true,
                               .cuts_first = true};
    enum exit_status status = EXIT_DONE;
    struct buf path;

    (void)operand;
    buf_init(&path, 16 * 1024);
    if (agents_add_filters(c, &path, &status)) {
        if (str_find(buf_str(&path), '?', 0) < path.n)
            agents.none = "No agent matches.\n";
        agents.path = buf_str(&path);
        status = cli_list(c, &agents);
    }
    buf_fini(&path);
    return status;
}

/* One of them. */

static void show_card(struct cli *c, const struct one *o,
                      const struct json *card)
{
    (void)o;
    agents_show_card(c, card);
}

static enum exit_status agent_show(struct cli *c, struct str name)
{
    return cli_one(c, &(struct one){.method = "GET",
                                    .folder = "/api/agents/",
                                    .id = name,
                                    .called = "name",
                                    .show = show_card});
}

static enum exit_status agent_remove(struct cli *c, struct str name)
{
    static const struct removal agent = {"/api/agents/", "name", "removed",
                                         NULL};

    return cli_remove(c, &agent, name);
}

struct agent_action {
    const char *path; /* "/" and the subcommand */
    const char *done;
};

static void show_action_done(struct cli *c, const struct one *o,
                             const struct json *a)
{
    const struct agent_action *action = o->ctx;

    buf_addf(&c->out, "%.*s %s; state: %.*s\n", STR_ARG(cli_tamed(c, o->id)),
             action->done, STR_ARG(cli_tamed(c, cli_field(a, STR("state")))));
}

static enum exit_status agent_act(struct cli *c, struct str name)
{
    static const struct agent_action actions[] = {
        {"/restart", "was restarted"},
        {"/wake", "was woken"},
        {"/pause", "gets no new work until it is resumed"},
        {"/resume", "gets work again"},
    };
    const struct agent_action *a = actions;

    while (!str_eq(str_of(a->path + 1), c->args.operands[0]))
        a++;
    return cli_one(c, &(struct one){.method = "POST",
                                    .folder = "/api/agents/",
                                    .id = name,
                                    .action = a->path,
                                    .called = "name",
                                    .timeout_ms = ACT_MS,
                                    .show = show_action_done,
                                    .ctx = a});
}

const struct sub cli_agents_subs[] = {
    {"list", NULL, "tag org creator kind visibility state review limit",
     agents_list},
    {"show", "NAME", "", agent_show},
    {"register", "FILE...", "dry-run if-new", agents_register},
    {"patch", "NAME JSON", "", agents_patch},
    {"remove", "NAME", "", agent_remove},
    {"restart", "NAME", "", agent_act},
    {"wake", "NAME", "", agent_act},
    {"pause", "NAME", "", agent_act},
    {"resume", "NAME", "", agent_act},
    {"approve", "NAME", "revision", agents_judge},
    {"reject", "NAME", "reason revision", agents_judge},
    {"hide", "NAME", "reason revision", agents_judge},
    {"report", "NAME", "reason", agents_report},
    {"reports", "NAME", "", agents_reports},
    {"dismiss", "NAME", "", agents_dismiss},
    {0},
};

enum exit_status cli_agents(struct cli *c)
{
    return cli_sub(c, cli_agents_subs);
}
