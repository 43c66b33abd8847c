/* Show an answer, as it arrives or when it is complete.
 *
 * After a retry the agent's answer starts from the beginning. The text of the
 * failed attempt stays on the screen, and the new text starts on its own line.
 * At the end the result counts, and its missing part is added. A pipe needs
 * none of that: there the answer is printed when it is complete, unless
 * --stream is given. */
#include "cli/sending.h"

#include <stdio.h>

#include "cli/grid.h"
#include "cli/price.h"
#include "model/task.h"

/* Show the part of the answer that is not on the screen yet. */
static void show_answer(struct sending *s, struct str text)
{
    struct str shown = buf_str(&s->shown);

    sending_let_all(s);
    if (str_starts(text, shown)) {
        sending_own(s, str_sub(text, shown.n, text.n));
    } else {
        buf_add_char(&s->c->out, '\n');
        sending_own(s, text);
    }
    sending_end_line(s);
}

/* Name the agent, if the user did not. */
static void say_agent(struct sending *s, const struct json *answer)
{
    struct str agent = cli_field(answer, STR("agent"));
    struct str why =
        cli_field(json_get(answer, STR("decision")), STR("reason"));

    if (s->to.n || s->task.n || !agent.n || !s->c->notices || s->c->json ||
        cli_flush(s->c, EXIT_DONE))
        return;
    agent = cli_tamed(s->c, agent);
    why = cli_tamed(s->c, why);
    fprintf(stderr, "\nsignalbox send: answered by %.*s%s%.*s\n",
            STR_ARG(agent), why.n ? ": " : "", STR_ARG(why));
}

/* A stream has the cost before the result, an answer has it inside. */
static void keep_cost(struct sending *s, const struct json *data)
{
    const struct json *cost = json_get(data, STR("cost"));

    if (!cost)
        return;
    s->tree_micros = cli_field_int(cost, STR("tree_micros"));
    s->conversation_micros = cli_field_int(cost, STR("conversation_micros"));
}

static void say_cost(struct sending *s, const struct json *answer)
{
    keep_cost(s, answer);
    if (!s->tree_micros || !s->c->notices || s->c->json ||
        cli_flush(s->c, EXIT_DONE))
        return;
    fprintf(stderr,
            "signalbox send: cost %s, including delegated work; conversation "
            "so far %s\n",
            amount_write(s->tree_micros).text,
            amount_write(s->conversation_micros).text);
}

static bool is_unsure(const struct sending *s, const struct json *answer)
{
    const struct json *d = json_get(answer, STR("decision"));

    return json_bool_or(json_get(d, STR("unsure")), false) && !s->to.n &&
           !s->task.n;
}

/* Warn that the agent may be the wrong one, and explain how to correct it. A
 * script gets one line, which suits logs, with the agent's name, which a
 * terminal already shows. */
static void say_unsure(struct sending *s, const struct json *answer)
{
    bool is_script = !s->c->notices;
    struct str agent =
        is_script ? cli_tamed(s->c, cli_field(answer, STR("agent"))) : STR("");
    struct str id = cli_tamed(
        s->c, cli_field(json_get(answer, STR("decision")), STR("id")));

    if (!is_unsure(s, answer))
        return;
    fprintf(stderr,
            "signalbox send: unsure: the message may be for another agent%s"
            "%.*s. To correct it:%ssignalbox decisions override %.*s AGENT\n",
            agent.n ? " than " : "", STR_ARG(agent), is_script ? " " : "\n  ",
            STR_ARG(id));
}

enum exit_status sending_finish(struct sending *s, const struct json *answer)
{
    enum task_status status = task_status_of(cli_field(answer, STR("status")));
    const struct json *error = json_get(answer, STR("error"));
    const struct json *decision = json_get(answer, STR("decision"));
    struct str id = cli_tamed(s->c, cli_field(answer, STR("task_id")));
    struct str state = cli_tamed(s->c, cli_field(answer, STR("status")));
    struct str words = cli_field(error, STR("message"));

    if (s->c->json) {
        /* A stream has already printed it as its last event. */
        if (!s->streams)
            cli_json_line(&s->c->out, answer);
        return status == TASK_COMPLETED || args_has(&s->c->args, "no-wait")
                   ? EXIT_DONE
                   : EXIT_FAILED;
    }
    if (args_has(&s->c->args, "no-wait")) {
        buf_addf(&s->c->out, "%.*s\n", STR_ARG(id));
        say_unsure(s, answer);
        return EXIT_DONE;
    }
    if (!task_is_over(status)) {
        say_unsure(s, answer);
        return cli_error(s->c, ERR_TIMEOUT,
                         "no answer yet: %.*s is %.*s and continues; signalbox "
                         "tasks %.*s shows its state",
                         STR_ARG(id), STR_ARG(state), STR_ARG(id));
    }
    show_answer(s, cli_field(answer, STR("text")));
    say_agent(s, answer);
    say_cost(s, answer);
    say_unsure(s, answer);
    /* Offer the next agents, unless the caller's key is used up. */
    if (is_unsure(s, answer) && !args_has(&s->c->args, "key"))
        sending_offer(s, cli_field(decision, STR("id")),
                      json_get(decision, STR("candidates")),
                      cli_field(answer, STR("agent")));
    if (status == TASK_COMPLETED)
        return EXIT_DONE;
    if (cli_flush(s->c, EXIT_DONE))
        return EXIT_FAILED;
    cli_error(s->c, ERR_IO, "%.*s %s%s%.*s", STR_ARG(id),
              status == TASK_CANCELLED ? "was cancelled"
              : status == TASK_EXPIRED ? "ran out of time"
              : status == TASK_DROPPED ? "was dropped"
                                       : "failed",
              words.n ? ": " : "", STR_ARG(str_head(words, 600)));
    return EXIT_FAILED;
}

static void show_words(struct sending *s, struct str agent, struct str text)
{
    if (!agent.n && (s->has_gap || !text.n))
        return;
    client_quiet(s->cl, true);
    if (agent.n) {
        sending_others(s, agent, text);
        return;
    }
    buf_add_str(&s->shown, text);
    sending_own(s, text);
}

/* The attempt failed and the task is queued again: the next answer starts on
 * its own line. */
static void answer_restart(struct sending *s)
{
    if (!s->shown.n)
        return;
    s->is_within = true; /* leave an empty line */
    sending_end_line(s);
    buf_clear(&s->shown);
    client_quiet(s->cl, false);
    if (s->c->notices && cli_flush(s->c, EXIT_DONE) == EXIT_DONE)
        fprintf(stderr, "signalbox send: the attempt failed; trying again\n");
}

static bool task_status_is_assigned(enum task_status s)
{
    return s == TASK_DISPATCHED || s == TASK_WORKING;
}

/* Update the notice for waiting users, which is redrawn every second. */
static void show_status(struct sending *s, enum task_status status)
{
    struct str agent = str_head(s->to.n ? s->to : STR("the agent"), 40);
    char again[32] = "";

    if (status == TASK_QUEUED && s->was_given)
        answer_restart(s);
    s->n_given += task_status_is_assigned(status) && !s->was_given;
    s->was_given = task_status_is_assigned(status);
    if (s->n_given > 1)
        snprintf(again, sizeof(again), ", attempt %u", s->n_given);
    if (status == TASK_QUEUED && s->n_given)
        snprintf(s->notice, sizeof(s->notice),
                 "attempt %u failed; trying again", s->n_given);
    else if (status == TASK_QUEUED)
        snprintf(s->notice, sizeof(s->notice),
                 "queued: %.*s is busy, or waking up", STR_ARG(agent));
    else if (status == TASK_WORKING)
        snprintf(s->notice, sizeof(s->notice), "%.*s is working%s",
                 STR_ARG(agent), again);
    else if (status == TASK_DISPATCHED)
        snprintf(s->notice, sizeof(s->notice), "dispatched to %.*s%s",
                 STR_ARG(agent), again);
    else
        snprintf(s->notice, sizeof(s->notice), "waiting for %.*s",
                 STR_ARG(agent));
}

/* A question of an agent, and the command that answers it. It cannot be
 * answered here, because text may arrive meanwhile. */
static void show_input(struct sending *s, const struct json *in)
{
    struct str title = cli_field(in, STR("title"));
    struct str outcome = cli_field(in, STR("outcome"));
    struct buf line;

    buf_init(&line, 256 * 1024);
    if (outcome.n) {
        buf_addf(&line, "the question is %.*s\n", STR_ARG(outcome));
    } else {
        buf_add_str(&line, title.n ? title : STR("a question"));
        buf_addf(&line, " (signalbox tasks input %s shows and answers it)\n",
                 s->task_id);
    }
    sending_others(s, cli_field(in, STR("agent")), buf_str(&line));
    buf_fini(&line);
}

static void show_event_as_json(struct sending *s, const struct sse_event *e,
                               const struct json *data)
{
    struct buf *out = &s->c->out;
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_member_text(&o, "event", cli_tamed(s->c, e->type));
    json_member_text(&o, "id", cli_tamed(s->c, e->id));
    json_key(&o, STR("data"));
    cli_json_line(out, data);
    out->n--; /* the line continues */
    buf_add_str(out, STR("}\n"));
    arena_reset(&s->c->arena);
}

bool sending_event(void *ctx, const struct sse_event *e)
{
    struct sending *s = ctx;
    struct json *data;
    struct str id;

    arena_reset(&s->arena);
    data = json_parse(&s->arena, e->data, 0, NULL);
    if (!data)
        return true;
    s->n_tries = 0;
    id = cli_field(data, STR("task_id"));
    if (id_is_valid(id, "task"))
        snprintf(s->task_id, sizeof(s->task_id), "%.*s", STR_ARG(id));
    if (s->c->json)
        show_event_as_json(s, e, data);
    else if (str_eq(e->type, STR("chunk")))
        show_words(s, cli_field(data, STR("agent")),
                   cli_field(data, STR("text")));
    else if (str_eq(e->type, STR("input")) ||
             str_eq(e->type, STR("input_over")))
        show_input(s, json_get(data, STR("input")));
    else if (str_eq(e->type, STR("gap")))
        s->has_gap = true;
    else if (str_eq(e->type, STR("cost")))
        keep_cost(s, data);
    else if (str_eq(e->type, STR("status")))
        show_status(s, task_status_of(cli_field(data, STR("status"))));
    if (str_eq(e->type, STR("result"))) {
        s->is_over = true;
        s->status = sending_finish(s, data);
        return false;
    }
    s->status = cli_flush(s->c, EXIT_DONE);
    return s->status == EXIT_DONE;
}
