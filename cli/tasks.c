/* tasks: list them, show one with its result, draw its tree, cancel it. */
#include "cli/list.h"
#include "cli/one.h"
#include "cli/price.h"
#include "cli/span.h"
#include "cli/tree_draw.h"
#include "model/task.h"

#include <stdio.h>

const struct arg_option cli_tasks_options[] = {
    {"status", "STATUS", "only this status: queued, completed, failed, ...",
     false},
    {"agent", "AGENT", "only tasks of this agent", false},
    {"conversation", "ID", "only tasks of this conversation", false},
    {"limit", "N", "list at most N tasks (default 20)", false},
    {"input", "INPUT", "input: the question, if there are several", false},
    {"cancel", NULL, "input: leave the question unanswered", false},
    CLIENT_OPTIONS,
    {0},
};

/* The list. */

static const char *task_status_text_colour(struct str status)
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
                              "unknown status \"%.*s\"; did you mean %.*s?",
                              STR_ARG(word), STR_ARG(g.name))
                  : cli_error(c, ERR_USAGE,
                              "unknown status \"%.*s\"; known: queued, "
                              "working, completed, failed, cancelled, expired",
                              STR_ARG(word));
    return false;
}

static void tasks_add_filters(struct cli *c, struct buf *path)
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

static enum exit_status tasks_list(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {
        {"ID", NULL},
        {"STATUS", task_status_text_colour},
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
    tasks_add_filters(c, &path);
    tasks.path = buf_str(&path);
    status = cli_list(c, &tasks);
    buf_fini(&path);
    return status;
}

/* One task. */

/* The message and the result, of the task or of an earlier turn. */
static void add_turn(struct cli *c, const struct json *turn)
{
    const struct json *result = json_get(turn, STR("result"));
    const struct json *error = json_get(result, STR("error"));
    struct str words = cli_field(error, STR("message"));

    cli_section(c, "Message", cli_field(turn, STR("text")));
    cli_section(c, "Answer", cli_field(result, STR("text")));
    cli_section(c, "Error", words.n ? words : cli_field(error, STR("code")));
}

/* The chain of delegation: "anna > concierge > translator". */
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

static void task_show_fields(struct cli *c, const struct one *o,
                             const struct json *t)
{
    const struct json *turns = json_get(t, STR("turns"));
    struct str priority = cli_field(t, STR("priority"));
    struct str status = cli_tamed(c, cli_field(t, STR("status")));
    const char *colour = c->colour ? task_status_text_colour(status) : "";
    char count[64];

    (void)o;
    buf_addf(&c->out, "%.*s  ", STR_ARG(cli_tamed(c, cli_field(t, STR("id")))));
    buf_addf(&c->out, "%s%.*s%s\n", colour, STR_ARG(status),
             *colour ? "\033[0m" : "");
    cli_named(c, "agent", cli_field(t, STR("agent")));
    cli_named(c, "skill", cli_field(t, STR("skill")));
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
    if (task_is_over(task_status_of(status)))
        cli_named_time(c, "finished", cli_field_int(t, STR("finished_ms")));
    else
        cli_named(c, "until",
                  str_of(cli_time(cli_field_int(t, STR("deadline_ms"))).text));
    if (turns && turns->type == JSON_ARR)
        JSON_EACH(turn, turns)
        {
            add_turn(c, turn);
        }
    add_turn(c, t);
}

/* show, cancel or tree. */
static enum exit_status task_by_id(struct cli *c, struct str id)
{
    struct str command = c->args.operands[0];
    struct one o = {.method = "GET",
                    .folder = "/api/tasks/",
                    .id = id,
                    .called = "ID",
                    .show = task_show_fields};

    if (!str_starts(id, STR("task_")))
        return cli_error(c, ERR_USAGE,
                         "\"%.*s\" is not a task ID: it must begin with "
                         "task_; signalbox tasks lists the tasks",
                         STR_ARG(str_head(id, 64)));
    if (str_eq(command, STR("cancel"))) {
        o.method = "POST";
        o.action = "/cancel";
        o.show = say_cancelled;
    } else if (str_eq(command, STR("tree"))) {
        o.action = "/tree";
        o.show = draw_tree;
    }
    return cli_one(c, &o);
}

const struct sub cli_tasks_subs[] = {
    {"list", NULL, "status agent conversation limit", tasks_list},
    {"show", "ID", "", task_by_id},
    {"tree", "ID", "", task_by_id},
    {"cancel", "ID", "", task_by_id},
    {"input", "ID [ANSWER]", "input cancel", cli_task_input},
    {0},
};

enum exit_status cli_tasks(struct cli *c)
{
    cli_show_alone(c, STR("task_"));
    return cli_sub(c, cli_tasks_subs);
}
