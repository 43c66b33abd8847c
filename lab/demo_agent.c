/* demo-agent: one of the demo's agents, a child process of the server that
 * speaks the hub's methods, one message per line, on standard input and output.
 * It sends a canned reply in small pieces, with pauses as of a person who
 * types. It is also the smallest complete agent of this kind: it reports that
 * it works, streams, stops on a cancel, and ends when its input ends. One of
 * them delegates to another before it answers, and streams that answer too; if
 * the delegation fails, it answers anyway.
 *
 * The server gives it one task at a time. A pause is a wait for input, so a
 * cancel is handled at once. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "cli/cli.h"
#include "lab/demo_cast.h"
#include "wire/wire.h"

enum {
    LINE_MAX_BYTES = 16 * 1024 * 1024, /* the largest task */
    ARENA_BYTES = 64 * 1024 * 1024,
    REPLY_MAX = 16 * 1024,
    MESSAGE_MAX = 2 * 1024, /* of a delegation: JSON may need six times as
                             * many bytes */
    THINKING_MS = 500,
};

const struct arg_option cli_demo_agent_options[] = {
    {"pace", "PERCENT", "length of the pauses; 0: none", false},
    {0},
};

struct demo_agent {
    const struct demo_actor *actor;
    int64_t pace; /* percent */
    struct buf in;
    struct arena arena;
    bool is_over; /* the server is gone */

    /* The current task. */
    char task_id[ID_BYTES]; /* empty: none */
    struct buf reply;
    size_t n_sent;
    size_t delegate_at;   /* offset in the reply; zero: no delegation */
    struct buf message;   /* to delegate */
    char delegate_id[24]; /* of the pending delegation; empty: none */
    unsigned n_delegated;
};

/* Output. */

static void demo_agent_send(struct demo_agent *p, struct buf *line)
{
    size_t done = 0;

    buf_add_char(line, '\n');
    while (!line->over && done < line->n) {
        ssize_t n = write(STDOUT_FILENO, line->p + done, line->n - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            p->is_over = true;
            break;
        }
        done += (size_t)n;
    }
    buf_fini(line);
}

static void demo_agent_put_task(struct json_out *o, const struct demo_agent *p)
{
    json_member_text(o, "task_id", str_of(p->task_id));
}

static void demo_agent_send_chunk(struct demo_agent *p, struct str text)
{
    struct json_out o;
    struct buf line;

    buf_init(&line, REPLY_MAX);
    o = wire_call_open(&line, (struct str){0}, STR("task.chunk"));
    json_open(&o, '{');
    demo_agent_put_task(&o, p);
    json_member_text(&o, "text", text);
    json_close(&o, '}');
    wire_close(&o);
    demo_agent_send(p, &line);
}

/* Without a text, since the streamed chunks are the answer. */
static void demo_agent_send_result(struct demo_agent *p, struct str status)
{
    struct json_out o;
    struct buf line;

    buf_init(&line, REPLY_MAX);
    o = wire_call_open(&line, (struct str){0}, STR("task.result"));
    json_open(&o, '{');
    demo_agent_put_task(&o, p);
    json_member_text(&o, "status", status);
    json_close(&o, '}');
    wire_close(&o);
    demo_agent_send(p, &line);
    p->task_id[0] = '\0';
}

/* `stream`: the reader of this answer sees the other one too. */
static void demo_agent_send_delegation(struct demo_agent *p)
{
    struct json_out o;
    struct buf line;

    snprintf(p->delegate_id, sizeof(p->delegate_id), "ask-%u",
             ++p->n_delegated);
    buf_init(&line, REPLY_MAX);
    o = wire_call_open(&line, str_of(p->delegate_id), STR("agent.delegate"));
    json_open(&o, '{');
    json_member_text(&o, "agentId", str_of(p->actor->delegations.agent));
    json_member_text(&o, "task", buf_str(&p->message));
    json_member_text(&o, "parent_task_id", str_of(p->task_id));
    json_member_text(&o, "mode", STR("sync"));
    json_member_bool(&o, "stream", true);
    json_close(&o, '}');
    wire_close(&o);
    demo_agent_send(p, &line);
}

/* Input. */

static void demo_agent_on_execute(struct demo_agent *p,
                                  const struct wire_message *m)
{
    struct str id = json_str_or(json_get(m->params, STR("task_id")), STR(""));
    struct str text = json_str_or(json_get(m->params, STR("message")), STR(""));
    struct json_out o;
    struct buf line;

    buf_init(&line, REPLY_MAX);
    if (p->task_id[0] || id.n >= sizeof(p->task_id)) {
        wire_error_of(&line, &m->id, WIRE_OUR_ERROR,
                      STR("the demo's agents do one task at a time"),
                      STR("{\"code\":\"agent_busy\",\"retry_after_ms\":500}"));
        demo_agent_send(p, &line);
        return;
    }
    snprintf(p->task_id, sizeof(p->task_id), "%.*s", STR_ARG(id));
    buf_clear(&p->reply);
    buf_clear(&p->message);
    p->delegate_at = 0;
    p->delegate_id[0] = '\0';
    if (demo_wants_help(p->actor, text)) {
        buf_add_str(&p->reply, str_of(p->actor->delegations.says));
        p->delegate_at = p->reply.n;
        buf_add_str(&p->message, str_head(text, MESSAGE_MAX));
    }
    buf_add_str(&p->reply, demo_reply_to(p->actor, text));
    buf_add_str(&p->reply, demo_disclaimer);
    p->n_sent = 0;
    o = wire_result_open(&line, &m->id);
    json_open(&o, '{');
    json_member_text(&o, "status", STR("working"));
    json_close(&o, '}');
    wire_close(&o);
    demo_agent_send(p, &line);
}

static void demo_agent_on_cancel(struct demo_agent *p,
                                 const struct wire_message *m)
{
    struct str id = json_str_or(json_get(m->params, STR("task_id")), STR(""));

    if (p->task_id[0] && str_eq(id, str_of(p->task_id)))
        demo_agent_send_result(p, STR("cancelled"));
}

/* Rejects unknown methods, as JSON-RPC requires. */
static void demo_agent_on_unknown(struct demo_agent *p,
                                  const struct wire_message *m)
{
    struct json_out o;
    struct buf line;

    if (m->kind != WIRE_REQUEST)
        return;
    buf_init(&line, REPLY_MAX);
    if (str_eq(m->method, STR("hello"))) {
        o = wire_result_open(&line, &m->id);
        json_open(&o, '{');
        json_close(&o, '}');
        wire_close(&o);
    } else {
        wire_error_of(&line, &m->id, WIRE_METHOD_NOT_FOUND,
                      STR("the demo's agents do not have this method"),
                      STR(""));
    }
    demo_agent_send(p, &line);
}

static void demo_agent_on_line(struct demo_agent *p, struct str text)
{
    struct wire_batch batch;
    struct why why;

    arena_reset(&p->arena);
    if (wire_read(&p->arena, text, &batch, &why) != OK)
        return; /* not a message */
    for (size_t i = 0; i < batch.n; i++) {
        const struct wire_message *m = &batch.list[i];

        if (m->kind == WIRE_REQUEST && str_eq(m->method, STR("task.execute")))
            demo_agent_on_execute(p, m);
        else if (str_eq(m->method, STR("task.cancel")))
            demo_agent_on_cancel(p, m);
        else if (m->kind != WIRE_RESULT && m->kind != WIRE_ERROR)
            demo_agent_on_unknown(p, m);
        else if (str_eq(m->id.text, str_of(p->delegate_id)))
            p->delegate_id[0] = '\0'; /* the reply continues, whatever came */
    }
}

/* Reads the available input and handles its complete lines. */
static void demo_agent_read(struct demo_agent *p)
{
    enum { READ_BYTES = 64 * 1024 };
    char *to = buf_reserve(&p->in, READ_BYTES);
    struct str rest;
    ssize_t n;

    if (!to) {
        p->is_over = true; /* longer than any task */
        return;
    }
    do
        n = read(STDIN_FILENO, to, READ_BYTES);
    while (n < 0 && errno == EINTR);
    if (n <= 0) {
        p->is_over = true;
        return;
    }
    buf_commit(&p->in, (size_t)n);
    rest = buf_str(&p->in);
    while (str_find(rest, '\n', 0) < rest.n)
        demo_agent_on_line(p, str_cut(&rest, '\n'));
    if (rest.n)
        memmove(p->in.p, rest.p, rest.n);
    p->in.n = rest.n;
}

/* Waits for the time or for a change of the task; negative: for any input. */
static void demo_agent_wait_ms(struct demo_agent *p, int ms)
{
    struct clock clock = clock_system();
    int64_t until = clock.mono_ms(clock.ctx) + ms;

    while (!p->is_over) {
        struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
        int64_t left = ms < 0 ? -1 : until - clock.mono_ms(clock.ctx);
        int got = ms >= 0 && left <= 0 ? 0 : poll(&fd, 1, (int)left);

        if (got > 0)
            demo_agent_read(p);
        if (got == 0 || ms < 0 || !p->task_id[0])
            return;
    }
}

/* An answer always comes, since the server has a timeout. */
static void demo_agent_delegate(struct demo_agent *p)
{
    p->delegate_at = 0;
    demo_agent_send_delegation(p);
    while (p->delegate_id[0] && p->task_id[0] && !p->is_over)
        demo_agent_wait_ms(p, -1);
}

/* Works on the task until its end. */
static void demo_agent_run_task(struct demo_agent *p)
{
    demo_agent_wait_ms(p, (int)(THINKING_MS * p->pace / 100));
    while (p->task_id[0] && !p->is_over) {
        struct str rest = str_sub(buf_str(&p->reply), p->n_sent,
                                  p->delegate_at ? p->delegate_at : p->reply.n);
        size_t end = p->n_sent + rest.n;
        int pause_ms;

        if (!rest.n && p->delegate_at) {
            demo_agent_delegate(p);
            continue;
        }
        if (!rest.n) {
            demo_agent_send_result(p, STR("completed"));
            return;
        }
        demo_agent_send_chunk(p, demo_piece(&rest, &pause_ms));
        p->n_sent = end - rest.n;
        demo_agent_wait_ms(p, (int)(pause_ms * p->pace / 100));
    }
}

enum exit_status cli_demo_agent(struct cli *c)
{
    struct demo_agent p = {.pace = 100};
    enum exit_status status;

    if (!c->args.n_operands || !(p.actor = demo_find(c->args.operands[0])))
        return cli_error(c, ERR_USAGE,
                         "signalbox demo starts this command; give the name of "
                         "one of its agents: engineer, researcher, "
                         "content-writer or automation-operator");
    if (!cli_number(c, "pace", 0, 1000, 100, &p.pace, &status))
        return status;
    buf_init(&p.in, LINE_MAX_BYTES);
    buf_init(&p.reply, REPLY_MAX);
    buf_init(&p.message, MESSAGE_MAX);
    arena_init(&p.arena, ARENA_BYTES);
    while (!p.is_over) {
        demo_agent_wait_ms(&p, -1);
        if (p.task_id[0])
            demo_agent_run_task(&p);
    }
    buf_fini(&p.in);
    buf_fini(&p.reply);
    buf_fini(&p.message);
    arena_fini(&p.arena);
    return EXIT_DONE;
}
