/* tasks input: questions that agents ask while they work on a task, and the
 * answers. The open questions are read first, so that the user need not say
 * which one is meant if there is only one, nor of which kind it is. */
#include "cli/cells.h"
#include "cli/client.h"

#include <stdio.h>

#include "base/id.h"

enum { BODY_MAX = 1024 * 1024 };

static void task_input_show(struct cli *c, const struct json *in)
{
    cli_say(c, STR(""), in, "{input_id}  {agent} asks ({kind})\n");
    cli_indented_text(c, 2, cli_field(in, STR("title")));
    cli_indented_text(c, 2, cli_field(in, STR("message")));
    JSON_EACH(option, cli_items(in, "options"))
    cli_indented_text(c, 4, json_str_or(option, STR("")));
    cli_indented_text(c, 4, cli_field(in, STR("prefill")));
}

/* The selected question; NULL: the error has been printed. */
static const struct json *task_input_choose(struct cli *c,
                                            const struct json *inputs,
                                            enum exit_status *status)
{
    struct str id = args_get(&c->args, "input");

    JSON_EACH(in, inputs)
    if (id.n ? str_eq(cli_field(in, STR("input_id")), id) : inputs->kids.n == 1)
        return in;
    if (!inputs->kids.n)
        *status = cli_error(c, ERR_NOT_FOUND, "the task has no open question");
    else if (id.n)
        *status = cli_error(c, ERR_NOT_FOUND, "this question is not open");
    else
        *status = cli_error(c, ERR_USAGE,
                            "%zu questions are open; select one with --input",
                            inputs->kids.n);
    return NULL;
}

/* The answer as JSON. False: the error has been printed. */
static bool task_input_write(struct cli *c, const struct json *in,
                             struct buf *out, enum exit_status *status)
{
    struct str answer = c->args.operands[2];
    bool is_confirm = str_eq(cli_field(in, STR("kind")), STR("confirm"));
    struct json_out o = json_out(out);
    bool is_yes =
        str_eq_nocase(answer, STR("yes")) || str_eq_nocase(answer, STR("y"));
    bool is_no =
        str_eq_nocase(answer, STR("no")) || str_eq_nocase(answer, STR("n"));

    json_open(&o, '{');
    json_member_str(&o, "input_id", cli_field(in, STR("input_id")));
    if (args_has(&c->args, "cancel")) {
        json_member_bool(&o, "cancelled", true);
    } else if (!is_confirm) {
        json_member_text(&o, "value", answer);
    } else if (is_yes || is_no) {
        json_member_bool(&o, "confirmed", is_yes);
    } else {
        *status = cli_error(c, ERR_USAGE, "the answer must be yes or no");
        return false;
    }
    json_close(&o, '}');
    if (out->over)
        *status = cli_error(c, ERR_LIMIT, "the answer is too long");
    return !out->over;
}

static enum exit_status task_input_answer(struct cli *c, struct client *cl,
                                          const struct json *inputs,
                                          struct buf *path)
{
    enum exit_status status = EXIT_DONE;
    const struct json *in = task_input_choose(c, inputs, &status), *over;
    struct buf body;

    if (!in)
        return status;
    buf_init(&body, BODY_MAX);
    buf_add_str(path, STR("/input"));
    if (!task_input_write(c, in, &body, &status))
        goto out;
    if (client_call(cl, &(struct client_request){.method = "POST",
                                                 .path = buf_str(path),
                                                 .body = buf_str(&body)})) {
        status = client_fail(cl);
        goto out;
    }
    over = client_reply(cl)->json;
    if (c->json)
        cli_json_line(&c->out, over);
    else
        cli_say(c, STR(""), over, "{input_id} is {outcome}\n");
out:
    buf_fini(&body);
    return status;
}

enum exit_status cli_task_input(struct cli *c, struct str id)
{
    bool answers = c->args.n_operands > 2;
    enum exit_status status = EXIT_DONE;
    const struct json *inputs;
    struct client *cl;
    struct buf path;

    if (!id_is_valid(id, "task"))
        return cli_error(c, ERR_USAGE,
                         "\"%.*s\" is not a task ID: it must begin with "
                         "task_; signalbox tasks lists the tasks",
                         STR_ARG(str_head(id, 64)));
    if (answers && args_has(&c->args, "cancel"))
        return cli_error(c, ERR_USAGE, "give either an answer or --cancel");
    cl = client_new(c, &status);
    if (!cl)
        return status;
    buf_init(&path, 4096);
    buf_addf(&path, "/api/tasks/%.*s", STR_ARG(id));
    if (client_call(cl, &(struct client_request){.method = "GET",
                                                 .path = buf_str(&path)})) {
        status = client_fail(cl);
    } else {
        inputs = json_get(client_reply(cl)->json, STR("inputs"));
        if (!inputs || inputs->type != JSON_ARR)
            status = cli_error(c, ERR_NOT_IMPLEMENTED,
                               "this server does not support questions");
        else if (answers || args_has(&c->args, "cancel"))
            status = task_input_answer(c, cl, inputs, &path);
        else if (c->json)
            cli_json_line(&c->out, inputs);
        else if (!inputs->kids.n)
            buf_add_str(&c->out, STR("No open questions.\n"));
        else
            JSON_EACH(in, inputs)
        task_input_show(c, in);
    }
    buf_fini(&path);
    client_free(cl);
    return status;
}
