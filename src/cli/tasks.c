/* tasks: what was asked of whom, and what came of it. */
#include "cli/list.h"
#include "cli/one.h"
#include "cli/price.h"
#include "cli/span.h"
#include "cli/tree_draw.h"
#include "model/task.h"

#include <stdio.h>

const struct arg_option cli_tasks_options[] = {
    {"status", "STATUS", "only those: queued, completed, failed, ...", false},
    {"agent", "AGENT", "only those of this agent", false},
    {"conversation", "ID", "only those of this conversation", false},
    {"limit", "N", "show at most so many; 20 if not given", false},
    {"input", "INPUT", "which question, where several are asked", false},
    {"cancel", NULL, "leave the question unanswered", false},
    CLIENT_OPTIONS,
    {0},
};

/* The list. */

static const char *status_colour(struct str status)
{
    switch ((int)task_status_of(status)) {
    case TASK_COMPLETED: return "\033[32m";
    case TASK_FAILED:
    case TASK_EXPIRED:
    case TASK_DROPPED: return "\033[31m";
    case TASK_CANCELLED:
    case TASK_HELD:
    case TASK_ESCALATED:
    case TASK_INPUT_REQUIRED: return "\033[33m";
    default: return "";
    }
}

static void add_task(struct listing *l, const struct json *item)
{
    struct span_text age =
        span_write(l->now_ms - cli_field_int(item, STR("created_ms")));
    struct str cells[] = {cli_field(item, STR("id")),
                          cli_field(item, STR("status")),
                          cli_field(item, STR("agent")), str_of(age.text),
                          cli_field(item, STR("text"))};

    grid_add(&l->grid, cells);
}

static bool status_is_good(struct cli *c, enum exit_status *status)
{
    struct str word = args_get(&c->args, "status");
    struct str_guess g = str_guess(word);

    if (!word.n || task_status_of(word))
        return true;
    for (int s = 1; s < N_TASK_STATUS; s++) {
        struct str name = task_status_name((enum task_status)s);

        str_guess_offer(&g, name, str_distance(word, name));
    }
    word = str_head(word, 64);
    *status = g.name.n
                  ? cli_error(c, ERR_USAGE,
                              "no task is ever \"%.*s\"; did you mean %.*s?",
                              STR_ARG(word), STR_ARG(g.name))
                  : cli_error(c, ERR_USAGE,
                              "no task is ever \"%.*s\"; they are queued, "
                              "working, completed, failed, cancelled, expired",
                              STR_ARG(word));
    return false;
}

static void add_filters(struct cli *c, struct buf *path)
{
    static const struct {
        const char *option, *query;
    } filters[] = {{"status", "status"},
                   {"agent", "agent"},
                   {"conversation", "conversation_id"}};

    buf_add_str(path, STR("/api/tasks"));
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
        if (args_has(&c->args, filters[i].option))
            client_add_query(path, filters[i].query,
                             args_get(&c->args, filters[i].option));
}

static enum exit_status list(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {{"ID", NULL},
                                             {"STATUS", status_colour},
                                             {"AGENT", NULL},
                                             {"AGE", NULL},
                                             {"MESSAGE", NULL}};
    struct list_kind tasks = {.heads = heads,
                              .n_heads = 5,
                              .add = add_task,
                              .most = 100000,
                              .preset = 20,
                              .none = "No tasks.\n",
                              .tells_of_further = true};
    enum exit_status status = EXIT_DONE;
    struct buf path;

    (void)operand;
    if (!status_is_good(c, &status))
        return status;
    buf_init(&path, 16 * 1024);
    add_filters(c, &path);
    tasks.path = buf_str(&path);
    status = cli_list(c, &tasks);
    buf_fini(&path);
    return status;
}

/* One of them, whole. */

/* The message and what came of it, of the task or of a turn before. */
static void add_turn(struct cli *c, const struct json *turn)
{
    const struct json *result = json_get(turn, STR("result"));
    const struct json *error = json_get(result, STR("error"));
    struct str words = cli_field(error, STR("message"));

    cli_section(c, "Message", cli_field(turn, STR("text")));
    cli_section(c, "Answer", cli_field(result, STR("text")));
    cli_section(c, "Error", words.n ? words : cli_field(error, STR("code")));
}

static void add_turns(struct cli *c, const struct json *task)
{
    const struct json *turns = json_get(task, STR("turns"));

    if (turns && turns->type == JSON_ARR)
        JSON_EACH(turn, turns)
    add_turn(c, turn);
    add_turn(c, task);
}

static void add_status(struct cli *c, struct str status)
{
    const char *colour = c->colour ? status_colour(status) : "";

    buf_addf(&c->out, "%s%.*s%s", colour, STR_ARG(status),
             *colour ? "\033[0m" : "");
}

/* Who on whose behalf: "anna > concierge > translator". */
static void add_chain(struct cli *c, const struct json *t)
{
    const struct json *chain = json_get(t, STR("chain"));
    struct buf names;

    cli_named(c, "by agent", cli_field(t, STR("by_agent")));
    cli_named(c, "part of", cli_field(t, STR("parent_task_id")));
    cli_named(c, "root", cli_field(t, STR("root_task_id")));
    if (!chain || chain->type != JSON_ARR || !chain->kids.first)
        return;
    buf_init(&names, 64 * 1024);
    buf_add_str(&names, cli_field(t, STR("root_user")));
    JSON_EACH(name, chain)
    {
        buf_add_str(&names, STR(" > "));
        buf_add_str(&names, json_str_or(name, STR("?")));
    }
    cli_named(c, "on behalf", buf_str(&names));
    buf_fini(&names);
}

static void draw_tree(struct cli *c, const struct one *o, const struct json *t)
{
    struct tree_paper paper = {
        .width = c->window, .unicode = c->unicode, .colour = c->colour};

    (void)o;
    tree_draw(&c->out, t, &paper);
}

static void say_cancelled(struct cli *c, const struct one *o,
                          const struct json *t)
{
    (void)o;
    buf_addf(&c->out, "%.*s is cancelled\n",
             STR_ARG(cli_tamed(c, cli_field(t, STR("id")))));
}

static void show_task(struct cli *c, const struct one *o, const struct json *t)
{
    struct str priority = cli_field(t, STR("priority"));
    struct str skill = cli_field(t, STR("skill"));
    bool is_over = task_is_over(task_status_of(cli_field(t, STR("status"))));
    char count[64];

    (void)o;
    buf_addf(&c->out, "%.*s  ", STR_ARG(cli_tamed(c, cli_field(t, STR("id")))));
    add_status(c, cli_tamed(c, cli_field(t, STR("status"))));
    buf_add_char(&c->out, '\n');
    cli_named(c, "agent", cli_field(t, STR("agent")));
    cli_named(c, "skill", skill);
    cli_named(c, "from", cli_field(t, STR("requester")));
    cli_named(c, "conversation", cli_field(t, STR("conversation_id")));
    add_chain(c, t);
    if (!str_eq(priority, STR("NORMAL")))
        cli_named(c, "priority", priority);
    snprintf(count, sizeof(count), "%lld, attempt %lld",
             (long long)cli_field_int(t, STR("turn")),
             (long long)cli_field_int(t, STR("attempt")));
    cli_named(c, "turn", str_of(count));
    if (cli_field_int(t, STR("price_micros")))
        cli_named(
            c, "price",
            str_of(price_write(cli_field_int(t, STR("price_micros"))).text));
    cli_named_time(c, "accepted", cli_field_int(t, STR("created_ms")));
    if (is_over)
        cli_named_time(c, "finished", cli_field_int(t, STR("finished_ms")));
    else
        cli_named(c, "until",
                  str_of(cli_time(cli_field_int(t, STR("deadline_ms"))).text));
    add_turns(c, t);
}

static enum exit_status one_task(struct cli *c, const struct one *o)
{
    if (!str_starts(o->id, STR("task_")))
        return cli_error(c, ERR_USAGE,
                         "\"%.*s\" is no task: the ID of one begins with "
                         "task_, and signalbox tasks lists them",
                         STR_ARG(str_head(o->id, 64)));
    return cli_one(c, o);
}

static enum exit_status show(struct cli *c, struct str id)
{
    return one_task(c, &(struct one){.method = "GET",
                                     .folder = "/api/tasks/",
                                     .id = id,
                                     .called = "ID",
                                     .say = show_task});
}

static enum exit_status cancel(struct cli *c, struct str id)
{
    return one_task(c, &(struct one){.method = "POST",
                                     .folder = "/api/tasks/",
                                     .id = id,
                                     .what = "/cancel",
                                     .called = "ID",
                                     .say = say_cancelled});
}

static enum exit_status tree(struct cli *c, struct str id)
{
    return one_task(c, &(struct one){.method = "GET",
                                     .folder = "/api/tasks/",
                                     .id = id,
                                     .what = "/tree",
                                     .called = "ID",
                                     .say = draw_tree});
}

const struct sub cli_tasks_subs[] = {
    {"list", NULL, "status agent conversation limit", list},
    {"show", "ID", "", show},
    {"tree", "ID", "", tree},
    {"cancel", "ID", "", cancel},
    {"input", "ID [ANSWER]", "input cancel", cli_task_input},
    {0},
};

enum exit_status cli_tasks(struct cli *c)
{
    cli_show_alone(c, STR("task_"));
    return cli_sub(c, cli_tasks_subs);
}
