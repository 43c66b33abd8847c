/* tasks: list them, show one with its result, draw its tree, cancel it. */
#include "cli/list.h"
#include "cli/tree_draw.h"
#include "model/task.h"

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

static const struct grid_column columns[] = {
    {"ID", "id", NULL, KEPT, NULL},
    {"STATUS", "status", NULL, KEPT, task_status_text_colour},
    {"AGENT", "agent", NULL, KEPT, NULL},
    {"AGE", "created_ms", as_age, KEPT, NULL},
    {"MESSAGE", "text", NULL, KEPT, NULL},
    {0},
};

static const struct listing tasks = {
    .path = "/api/tasks",
    .columns = columns,
    .filters = "status agent conversation=conversation_id",
    .preset = 20,
    .none = "No tasks.\n",
};

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
static void as_chain(const struct cell *cell, struct buf *out)
{
    const struct json *chain = cli_items(cell->item, "chain");

    if (chain->kids.n)
        buf_add_str(out, cli_field(cell->item, STR("root_user")));
    JSON_EACH(name, chain)
    {
        buf_add_str(out, STR(" > "));
        buf_add_str(out, json_str_or(name, STR("?")));
    }
}

static void as_priority(const struct cell *cell, struct buf *out)
{
    struct str priority = json_str_or(cell->v, STR(""));

    if (!str_eq(priority, STR("NORMAL")))
        buf_add_str(out, priority);
}

static bool task_is_done(const struct json *t)
{
    return task_is_over(task_status_of(cli_field(t, STR("status"))));
}

static void as_end(const struct cell *cell, struct buf *out)
{
    if (task_is_done(cell->item))
        as_ago(cell, out);
}

static void as_deadline(const struct cell *cell, struct buf *out)
{
    if (!task_is_done(cell->item))
        as_time(cell, out);
}

static const struct field fields[] = {
    {"agent", "agent", NULL},
    {"skill", "skill", NULL},
    {"from", "requester", NULL},
    {"conversation", "conversation_id", NULL},
    {"by agent", "by_agent", NULL},
    {"part of", "parent_task_id", NULL},
    {"root", "root_task_id", NULL},
    {"on behalf", "chain", as_chain},
    {"priority", "priority", as_priority},
    {"turn", "{turn}, attempt {attempt}", NULL},
    {"price", "price_micros", as_price},
    {"accepted", "created_ms", as_ago},
    {"finished", "finished_ms", as_end},
    {"until", "deadline_ms", as_deadline},
    {0},
};

static void draw_tree(struct cli *c, const struct json *t)
{
    struct tree_paper paper = {
        .width = c->window, .unicode = c->unicode, .colour = c->colour};

    tree_draw(&c->out, t, &paper);
}

static void task_show(struct cli *c, const struct json *t)
{
    struct str status = cli_tamed(c, cli_field(t, STR("status")));
    const char *colour = c->colour ? task_status_text_colour(status) : "";

    cli_say(c, STR(""), t, "{id}  ");
    buf_addf(&c->out, "%s%.*s%s\n", colour, STR_ARG(status),
             *colour ? "\033[0m" : "");
    cli_fields(c, t, fields);
    JSON_EACH(turn, cli_items(t, "turns"))
    add_turn(c, turn);
    add_turn(c, t);
}

/* show, cancel or tree. */
static enum exit_status task_by_id(struct cli *c, struct str id)
{
    static const struct one task = {.method = "GET",
                                    .path = "/api/tasks/",
                                    .called = "ID",
                                    .show = task_show};
    static const struct one tree = {.method = "GET",
                                    .path = "/api/tasks/",
                                    .called = "ID",
                                    .action = "/tree",
                                    .show = draw_tree};
    static const struct one cancel = {.method = "POST",
                                      .path = "/api/tasks/",
                                      .called = "ID",
                                      .action = "/cancel",
                                      .say = "{id} is cancelled\n"};
    struct str command = c->args.operands[0];

    if (!str_starts(id, STR("task_")))
        return cli_error(c, ERR_USAGE,
                         "\"%.*s\" is not a task ID: it must begin with "
                         "task_; signalbox tasks lists the tasks",
                         STR_ARG(str_head(id, 64)));
    return cli_one(c,
                   str_eq(command, STR("cancel")) ? &cancel
                   : str_eq(command, STR("tree")) ? &tree
                                                  : &task,
                   id);
}

const struct sub cli_tasks_subs[] = {
    {"list", NULL, NULL, .list = &tasks},
    {"show", "ID", "", .run = task_by_id, .alone = "task_"},
    {"tree", "ID", "", .run = task_by_id},
    {"cancel", "ID", "", .run = task_by_id},
    {"input", "ID [ANSWER]", "input cancel", .run = cli_task_input},
    {0},
};
