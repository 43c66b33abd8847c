/* agents: who can be given work, what they say of themselves, and how one comes
 * to be there or goes. */
#include "cli/agents.h"
#include "cli/list.h"
#include "cli/one.h"
#include "cli/remove.h"
#include "model/agent.h"

#include <stdio.h>

enum { ACT_MS = 90 * 1000 }; /* a restart command has a minute */

const struct arg_option cli_agents_options[] = {
    {"tag", "TAG", "only those with a skill of this tag", false},
    {"org", "ORG", "only those of this org", false},
    {"creator", "NAME", "only those that this user created", false},
    {"kind", "KIND", "only those: platform, managed, self-hosted", false},
    {"visibility", "WHO", "only those: public, shared, private", false},
    {"state", "STATE", "only those: active, idle, busy, slow, error, dead",
     false},
    {"limit", "N", "show at most so many; 1000 if not given", false},
    {"dry-run", NULL, "check the cards here and ask no server", false},
    {"if-new", NULL, "leave those alone that are there already", false},
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

static void add_agent(struct listing *l, const struct json *item)
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

/* An error has been said already. */
static bool add_filters(struct cli *c, struct buf *path,
                        enum exit_status *status)
{
    static const struct {
        const char *option;
        bool is_one_of;
    } filters[] = {
        {"tag", false}, {"org", false},       {"creator", false},
        {"kind", true}, {"visibility", true}, {"state", true},
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
    "There are no agents yet. To tell the server of one, write its card into\n"
    "a file and register it:\n"
    "  { \"name\": \"echo\", \"description\": \"Says what it is told\", "
    "\"url\": \"echo:\" }\n"
    "  signalbox agents register echo.json\n";

static enum exit_status list(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {{"NAME", NULL},
                                             {"SKILLS", NULL},
                                             {"VISIBILITY", NULL},
                                             {"STATE", state_colour},
                                             {"DESCRIPTION", NULL}};
    struct list_kind agents = {.heads = heads,
                               .n_heads = 5,
                               .add = add_agent,
                               .most = 100000,
                               .preset = 1000,
                               .none = none,
                               .tells_of_further = true,
                               .cuts_first = true};
    enum exit_status status = EXIT_DONE;
    struct buf path;

    (void)operand;
    buf_init(&path, 16 * 1024);
    if (add_filters(c, &path, &status)) {
        if (str_find(buf_str(&path), '?', 0) < path.n)
            agents.none = "There is no such agent.\n";
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

static enum exit_status show(struct cli *c, struct str name)
{
    return cli_one(c, &(struct one){.method = "GET",
                                    .folder = "/api/agents/",
                                    .id = name,
                                    .called = "name",
                                    .say = show_card});
}

static enum exit_status do_remove(struct cli *c, struct str name)
{
    static const struct removal agent = {"/api/agents/", "name", "removed",
                                         NULL};

    return cli_remove(c, &agent, name);
}

/* What can be done to it. */

static void say_did(struct cli *c, const struct one *o, const struct json *a)
{
    const char *did = o->ctx;

    buf_addf(&c->out, "%.*s %s, and is %.*s\n", STR_ARG(cli_tamed(c, o->id)),
             did, STR_ARG(cli_tamed(c, cli_field(a, STR("state")))));
}

static enum exit_status act(struct cli *c, struct str name, const char *what,
                            const char *did)
{
    return cli_one(c, &(struct one){.method = "POST",
                                    .folder = "/api/agents/",
                                    .id = name,
                                    .what = what,
                                    .called = "name",
                                    .timeout_ms = ACT_MS,
                                    .say = say_did,
                                    .ctx = did});
}

static enum exit_status restart(struct cli *c, struct str name)
{
    return act(c, name, "/restart", "was started again");
}

static enum exit_status wake(struct cli *c, struct str name)
{
    return act(c, name, "/wake", "was woken");
}

static enum exit_status do_pause(struct cli *c, struct str name)
{
    return act(c, name, "/pause", "gets nothing new until it is resumed");
}

static enum exit_status resume(struct cli *c, struct str name)
{
    return act(c, name, "/resume", "gets its work again");
}

const struct sub cli_agents_subs[] = {
    {"list", NULL, "tag org creator kind visibility state limit", list},
    {"show", "NAME", "", show},
    {"register", "FILE...", "dry-run if-new", agents_register},
    {"patch", "NAME JSON", "", agents_patch},
    {"remove", "NAME", "", do_remove},
    {"restart", "NAME", "", restart},
    {"wake", "NAME", "", wake},
    {"pause", "NAME", "", do_pause},
    {"resume", "NAME", "", resume},
    {0},
};

enum exit_status cli_agents(struct cli *c)
{
    return cli_sub(c, cli_agents_subs);
}
