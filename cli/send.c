/* send: a message to an agent, and its answer.
 *
 * Every message has an idempotency key, made here if none is given, and every
 * try carries the same key. So a lost connection, a restarted server and an
 * unknown outcome all have the same remedy: repeat the request. The server
 * never starts a second task for a key.
 *
 * The wait is split into slices, one request each, so that a silently lost
 * connection is noticed. */
#include "cli/sending.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/slurp.h"
#include "model/task.h"

enum {
    TEXT_MAX = 1024 * 1024,
    BODY_MAX = 7 * 1024 * 1024, /* if every byte needs six */
    WAIT_MAX_MS = 10 * 60 * 1000,
    SLICE_MS = 30 * 1000,
    ANSWER_MAX = 64 * 1024 * 1024,
};

/* Longer than a restart of the server takes. */
static const int pauses_ms[] = {100, 400, 1000, 2000, 4000, 8000, 15000};

enum { N_PAUSES = sizeof(pauses_ms) / sizeof(pauses_ms[0]) };

const struct arg_option cli_send_options[] = {
    {"to", "AGENT", "send to this agent (default: the best one)", false},
    {"envelope", "FILE", "send the envelope in FILE, or - for stdin, instead",
     false},
    {"conversation", "ID", "your name for the conversation", false},
    {"task", "ID", "a further turn of this task, instead of --to", false},
    {"key", "KEY", "the same key never starts a second task", false},
    {"wait", "MS", "wait at most MS for the answer (default 600000)", false},
    {"no-wait", NULL, "print the task's ID and exit", false},
    {"stream", NULL, "print the answer as it arrives, also into a pipe", false},
    {"timeout", "MS", "time limit for the agent", false},
    {"max-cost", "AMOUNT",
     "cost limit, including all delegated work, like 0.05", false},
    {"quote", "ID", "use the price that signalbox route printed", false},
    CLIENT_OPTIONS,
    {0},
};

static bool sending_read_text(struct sending *s, enum exit_status *status)
{
    struct str given = s->c->args.operands[0];
    enum err e = OK;

    if (s->c->args.n_operands && !str_eq(given, STR("-"))) {
        buf_add_str(&s->text, given);
    } else {
        if (s->c->notices && !s->c->json && isatty(STDIN_FILENO))
            fprintf(stderr, "Type the message, then Ctrl-D:\n");
        e = slurp(STDIN_FILENO, &s->text, TEXT_MAX + 1);
        /* Editors and echo add a newline that is not part of the message. */
        if (!e && s->text.n && s->text.p[s->text.n - 1] == '\n')
            s->text.n--;
    }
    if (e == ERR_IO)
        *status =
            cli_error(s->c, e, "cannot read the message: %s", strerror(errno));
    else if (e || s->text.n > TEXT_MAX)
        *status = cli_error(s->c, ERR_LIMIT,
                            "the message is longer than 1 MiB, the limit");
    else if (!str_trim(buf_str(&s->text)).n)
        *status = cli_error(s->c, ERR_USAGE, "the message is empty");
    else if (!utf8_is_valid(buf_str(&s->text))) /* JSON requires it */
        *status = cli_error(s->c, ERR_USAGE,
                            "the message is not valid UTF-8; send binary data "
                            "as base64");
    else
        return true;
    return false;
}

static bool usage_is_good(struct sending *s, enum exit_status *status)
{
    struct cli *c = s->c;
    bool waits = args_has(&c->args, "wait");
    bool leaves = args_has(&c->args, "no-wait");
    bool streams = args_has(&c->args, "stream");
    const char *wrong = NULL;

    if (s->is_envelope)
        wrong = sending_envelope_usage(s);
    else if (c->args.n_operands > 1)
        wrong = "put the message into quotes: signalbox send \"hello there\"";
    else if (s->to.n && s->task.n)
        wrong = "a further turn goes to the agent of its task: give --task or "
                "--to";
    else if (s->conversation.n && s->task.n)
        wrong = "a further turn belongs to the conversation of its task: give "
                "--task or --conversation";
    else if (leaves && (waits || streams))
        wrong = "--no-wait exits at once: leave out --wait and --stream";
    else if (s->quote.n && s->task.n)
        wrong = "a further turn has no quote: use --max-cost with --task";
    else if (waits && streams)
        wrong = "--stream waits until the task is finished: use --timeout as "
                "the limit";
    if (wrong)
        *status = cli_error(c, ERR_USAGE, "%s", wrong);
    return !wrong;
}

static void sending_make_key(struct sending *s)
{
    struct id_maker ids;

    id_maker_init(&ids, rand_system());
    s->made_key = id_make(&ids, "cli", s->clock.wall_ms(s->clock.ctx));
    s->key = str_of(s->made_key.text);
}

static void name_in_notice(struct sending *s)
{
    snprintf(s->notice, sizeof(s->notice), "waiting for %.*s",
             STR_ARG(str_head(s->to.n     ? s->to
                              : s->task.n ? s->task
                                          : STR("an answer"),
                              40)));
}

static bool sending_read_options(struct sending *s, enum exit_status *status)
{
    struct cli *c = s->c;

    s->is_envelope = args_has(&c->args, "envelope");
    s->to = args_get(&c->args, "to");
    s->conversation = args_get(&c->args, "conversation");
    s->task = args_get(&c->args, "task");
    s->key = args_get(&c->args, "key");
    s->quote = args_get(&c->args, "quote");
    s->max_cost = -1;
    if (!usage_is_good(s, status) || !cli_max_cost(c, &s->max_cost, status) ||
        !cli_number(c, "wait", 0, WAIT_MAX_MS, WAIT_MAX_MS, &s->wait_ms,
                    status) ||
        !cli_number(c, "timeout", 1, 86400000, 0, &s->timeout_ms, status))
        return false;
    if (args_has(&c->args, "no-wait"))
        s->wait_ms = 0;
    s->streams =
        args_has(&c->args, "stream") ||
        (!s->is_envelope && c->on_terminal && !c->json &&
         !args_has(&c->args, "wait") && !args_has(&c->args, "no-wait"));
    if (!s->key.n)
        sending_make_key(s);
    name_in_notice(s);
    return s->is_envelope ? sending_envelope_read(s, status)
                          : sending_read_text(s, status);
}

static struct str sending_path(const struct sending *s)
{
    return s->is_envelope ? STR("/api/envelopes") : STR("/api/messages");
}

static void sending_put_body(struct sending *s, int64_t wait_ms)
{
    struct json_out o;

    buf_clear(&s->body);
    if (s->is_envelope) {
        buf_add_str(&s->body, buf_str(&s->text));
        return;
    }
    o = json_out(&s->body);
    json_open(&o, '{');
    json_member_some(&o, "text", buf_str(&s->text));
    if (s->to.n) {
        json_key(&o, STR("executor"));
        json_open(&o, '{');
        json_member_some(&o, "name", s->to);
        json_close(&o, '}');
    }
    json_member_some(&o, "conversation_id", s->conversation);
    json_member_some(&o, "task_id", s->task);
    json_member_some(&o, "idempotency_key", s->key);
    json_member_int(&o, "wait_ms", wait_ms);
    if (s->timeout_ms)
        json_member_int(&o, "timeout_ms", s->timeout_ms);
    if (s->max_cost >= 0)
        json_member_int(&o, "max_cost_micros", s->max_cost);
    json_member_some(&o, "quote", s->quote);
    json_close(&o, '}');
}

/* Trying again. */

static int64_t sending_now_ms(const struct sending *s)
{
    return s->clock.mono_ms(s->clock.ctx);
}

static bool may_try_again(struct sending *s)
{
    /* Temporary problems of the server. Errors about the agent or the message
     * would be the same the next time. */
    static const char passing[] =
        "overloaded stopping out_of_memory no_reply outcome_unknown";
    const struct client_reply *r = client_reply(s->cl);
    struct str code = cli_field(json_get(r->json, STR("error")), STR("code"));

    s->was_sent = s->was_sent || r->was_sent;
    if (client_was_interrupted(s->cl))
        return false;
    /* Do not wait for a server that was never reached. An interrupted response
     * already has a status. */
    if (r->err == ERR_UNREACHABLE && (!r->status || r->status == 200))
        return s->was_sent && s->n_tries < N_PAUSES;
    if (!r->json) /* a proxy without its server */
        return r->status >= 502 && r->status <= 504 && s->n_tries < N_PAUSES;
    return cli_has_word(passing, code) && s->n_tries < N_PAUSES;
}

/* Wait before the next try, at least as long as the server's Retry-After unless
 * that is longer than our patience. False: the wait would end after until_ms;
 * zero: no limit. */
static bool wait_to_try(struct sending *s, int64_t until_ms)
{
    const struct client_reply *r = client_reply(s->cl);
    int64_t after_s = r->retry_after_s;
    int64_t ms = pauses_ms[s->n_tries];

    if (after_s <= CLIENT_PATIENCE_MS / 1000 && after_s * 1000 > ms)
        ms = after_s * 1000;
    if (until_ms && sending_now_ms(s) + ms > until_ms)
        return false;
    client_notice(s->cl, "try %u of %d: %.150s", s->n_tries + 2, N_PAUSES + 1,
                  r->err && r->status && r->status != 200
                      ? r->why.text
                      : "the server does not answer");
    s->n_tries++;
    client_pause(s->cl, ms);
    return true;
}

static enum err ask_to_cancel(struct sending *s)
{
    char path[64];

    snprintf(path, sizeof(path), "/api/tasks/%s/cancel", s->task_id);
    return client_call(s->cl, &(struct client_request){.method = "POST",
                                                       .path = str_of(path)});
}

static enum exit_status sending_cancel(struct sending *s)
{
    struct str id;
    enum err e;

    client_notice_off(s->cl);
    sending_let_all(s);
    sending_end_line(s);
    (void)cli_flush(s->c, EXIT_DONE);
    s->was_sent = s->was_sent || client_reply(s->cl)->was_sent;
    /* Ctrl-C cancels the task. If its id is not known yet, the request is
     * repeated with the same key to get it. */
    sending_put_body(s, 0);
    if (!s->task_id[0] && s->was_sent &&
        !client_call(s->cl,
                     &(struct client_request){.method = "POST",
                                              .path = sending_path(s),
                                              .body = buf_str(&s->body)})) {
        id = cli_field(client_reply(s->cl)->json, STR("task_id"));
        if (id_is_valid(id, "task"))
            snprintf(s->task_id, sizeof(s->task_id), "%.*s", STR_ARG(id));
    }
    if (!s->task_id[0])
        return cli_error(s->c, ERR_IO,
                         s->was_sent ? "interrupted; the message may or may "
                                       "not have been accepted"
                                     : "interrupted; nothing was sent");
    e = ask_to_cancel(s);
    if (e && e != ERR_TASK_IS_OVER)
        return cli_error(s->c, e,
                         "interrupted, and %s could not be cancelled: "
                         "%.300s",
                         s->task_id, client_reply(s->cl)->why.text);
    cli_error(s->c, ERR_IO,
              e ? "interrupted; %s was finished already"
                : "interrupted; %s is cancelled",
              s->task_id);
    return EXIT_FAILED;
}

static enum exit_status sending_give_up(struct sending *s)
{
    const struct client_reply *r = client_reply(s->cl);
    bool is_open = s->was_sent && (r->err == OK || r->err == ERR_UNREACHABLE ||
                                   r->err == ERR_OUTCOME_UNKNOWN);

    if (client_was_interrupted(s->cl))
        return sending_cancel(s);
    client_notice_off(s->cl);
    sending_let_all(s);
    sending_end_line(s);
    if (cli_flush(s->c, EXIT_DONE))
        return EXIT_FAILED;
    if (!is_open) {
        const struct json *details =
            json_get(json_get(r->json, STR("error")), STR("details"));

        if (r->err == ERR_NO_ROUTE)
            sending_offer(s, cli_field(details, STR("decision_id")),
                          json_get(details, STR("candidates")), STR(""));
        return client_fail_to(s->cl);
    }
    if (s->task_id[0])
        return cli_error(s->c, ERR_UNREACHABLE,
                         "the connection is lost. %s continues; signalbox "
                         "tasks %s shows its state",
                         s->task_id, s->task_id);
    return cli_error(s->c, r->err,
                     "%.300s. The message may or may not have been accepted: "
                     "send it again with --key %.*s, which never starts a "
                     "second task",
                     r->why.text, STR_ARG(str_head(s->key, 255)));
}

static enum exit_status send_and_wait(struct sending *s)
{
    int64_t end_ms = sending_now_ms(s) + s->wait_ms;
    /* --no-wait still waits for the server to accept the message. */
    int64_t until_ms = args_has(&s->c->args, "no-wait") ? 0 : end_ms;

    for (;;) {
        int64_t begun_ms = sending_now_ms(s), left_ms = end_ms - begun_ms;
        int64_t slice_ms = left_ms > SLICE_MS ? SLICE_MS
                           : left_ms > 0      ? left_ms
                                              : 0;
        enum task_status status;

        sending_put_body(s, slice_ms);
        if (client_call(s->cl, &(struct client_request){
                                   .method = "POST",
                                   .path = sending_path(s),
                                   .body = buf_str(&s->body),
                                   .timeout_ms = slice_ms + CLIENT_TIMEOUT_MS,
                                   .until_ms = until_ms,
                                   .notice = s->notice})) {
            if (!may_try_again(s) || !wait_to_try(s, until_ms))
                return sending_give_up(s);
            continue;
        }
        s->was_sent = true;
        s->n_tries = 0;
        if (s->is_envelope)
            return sending_passed(s, client_reply(s->cl)->json);
        status =
            task_status_of(cli_field(client_reply(s->cl)->json, STR("status")));
        /* Do not wait for a person or a rule. */
        if (task_is_over(status) || status == TASK_HELD ||
            status == TASK_ESCALATED || status == TASK_INPUT_REQUIRED ||
            !status || sending_now_ms(s) >= end_ms)
            return sending_finish(s, client_reply(s->cl)->json);
        /* Do not poll a server that answers earlier than requested. */
        if (sending_now_ms(s) - begun_ms < slice_ms / 2)
            client_pause(s->cl, 500);
    }
}

static enum exit_status send_and_stream(struct sending *s)
{
    for (;;) {
        struct client_request rq = {.method = "POST",
                                    .path = STR("/api/messages"),
                                    .on_event = sending_event,
                                    .ctx = s,
                                    .notice = s->notice,
                                    .answers_inputs = s->c->on_terminal};
        const struct client_reply *r = client_reply(s->cl);
        char path[64];
        enum err e;

        if (s->task_id[0]) {
            snprintf(path, sizeof(path), "/api/tasks/%s/events", s->task_id);
            rq.method = "GET";
            rq.path = str_of(path);
            rq.resumes = true;
        } else {
            sending_put_body(s, 0);
            rq.body = buf_str(&s->body);
        }
        e = client_call(s->cl, &rq);
        if (s->c->is_cut_off && !s->is_over && s->task_id[0])
            (void)ask_to_cancel(s); /* the answer has no reader */
        if (s->is_over || s->status)
            return s->status;
        if (!e && r->json)
            return sending_finish(s, r->json);
        s->was_sent = s->was_sent || r->was_sent;
        /* A stream without a result was interrupted. */
        if (client_was_interrupted(s->cl) ||
            (e ? !may_try_again(s) : s->n_tries >= N_PAUSES) ||
            !wait_to_try(s, 0))
            return sending_give_up(s);
    }
}

enum exit_status cli_send(struct cli *c)
{
    struct sending s = {.c = c, .clock = clock_system()};
    enum exit_status status = EXIT_DONE;

    buf_init(&s.text, TEXT_MAX + 128 * 1024);
    buf_init(&s.body, BODY_MAX);
    buf_init(&s.shown, ANSWER_MAX);
    arena_init(&s.arena, ANSWER_MAX);
    if (sending_read_options(&s, &status) && (s.cl = client_new(c, &status))) {
        client_heed_interrupt(s.cl);
        signal(SIGPIPE, SIG_IGN); /* a closed pipe sets is_cut_off */
        status = s.streams ? send_and_stream(&s) : send_and_wait(&s);
        if (sending_choose(&s)) {
            /* The same message to the chosen agent. To the server it is a new
             * message, with its own key. */
            s.n_tries = 0;
            s.was_sent = s.is_over = s.has_gap = s.was_given = false;
            s.n_given = 0;
            s.task_id[0] = '\0';
            s.status = EXIT_DONE;
            buf_clear(&s.shown);
            client_quiet(s.cl, false);
            client_heed_interrupt(s.cl);
            if (!args_has(&c->args, "key"))
                sending_make_key(&s);
            name_in_notice(&s);
            status = s.streams ? send_and_stream(&s) : send_and_wait(&s);
            if (status == EXIT_DONE)
                sending_say_how_to_teach(&s);
        }
    }
    client_free(s.cl);
    buf_fini(&s.text);
    buf_fini(&s.body);
    buf_fini(&s.shown);
    sending_voices_fini(&s);
    arena_fini(&s.arena);
    return status;
}
