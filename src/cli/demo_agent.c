/* demo-agent: one of the demo's agents, as a child of the server: the hub's
 * methods, a message a line, on standard input and output. It knows a few
 * replies by heart and sends one of them in small pieces, with pauses as of
 * somebody who types. It is also the smallest agent of this kind that does
 * everything right: it says it works, streams, stops when it is asked to, and
 * ends when its input does. One of them asks another before it answers, and
 * lets it be heard meanwhile; if nothing comes of that it answers anyway.
 *
 * One task at a time, which is what the server gives it. The pauses are waits
 * for input, so that a cancel is heard at once. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "cli/cli.h"
#include "cli/demo_cast.h"
#include "wire/wire.h"

enum {
    LINE_MAX_BYTES = 16 * 1024 * 1024, /* as much as a task can be */
    ARENA_BYTES = 64 * 1024 * 1024,
    REPLY_MAX = 16 * 1024,
    MESSAGE_MAX = 2 * 1024, /* of what it asks another with: JSON may make six
                             * times as much of it */
    THINKING_MS = 500,
};

const struct arg_option cli_demo_agent_options[] = {
    {"pace", "PERCENT", "of the pauses that somebody makes who types", false},
    {0},
};

struct player {
    const struct demo_actor *actor;
    int64_t pace; /* percent */
    struct buf in;
    struct arena arena;
    bool is_over; /* nobody is there any more */

    /* The task that it has. */
    char task_id[ID_BYTES]; /* empty: none */
    struct buf reply;
    size_t said;
    size_t ask_at;      /* where in the reply it asks another; zero: nowhere */
    struct buf message; /* to ask with */
    char ask_id[24];    /* of what it waits for; empty: nothing */
    unsigned n_asked;
};

/* Saying. */

static void say(struct player *p, struct buf *line)
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

static void put_task(struct json_out *o, const struct player *p)
{
    json_member_text(o, "task_id", str_of(p->task_id));
}

static void say_chunk(struct player *p, struct str text)
{
    struct json_out o;
    struct buf line;

    buf_init(&line, REPLY_MAX);
    o = wire_call_open(&line, (struct str){0}, STR("task.chunk"));
    json_open(&o, '{');
    put_task(&o, p);
    json_member_text(&o, "text", text);
    json_close(&o, '}');
    wire_close(&o);
    say(p, &line);
}

/* Without a text: what was streamed is the answer. */
static void say_result(struct player *p, struct str status)
{
    struct json_out o;
    struct buf line;

    buf_init(&line, REPLY_MAX);
    o = wire_call_open(&line, (struct str){0}, STR("task.result"));
    json_open(&o, '{');
    put_task(&o, p);
    json_member_text(&o, "status", status);
    json_close(&o, '}');
    wire_close(&o);
    say(p, &line);
    p->task_id[0] = '\0';
}

/* With `stream` whoever reads our answer hears the other one too. */
static void say_ask(struct player *p)
{
    struct json_out o;
    struct buf line;

    snprintf(p->ask_id, sizeof(p->ask_id), "ask-%u", ++p->n_asked);
    buf_init(&line, REPLY_MAX);
    o = wire_call_open(&line, str_of(p->ask_id), STR("agent.delegate"));
    json_open(&o, '{');
    json_member_text(&o, "agentId", str_of(p->actor->hires.whom));
    json_member_text(&o, "task", buf_str(&p->message));
    json_member_text(&o, "parent_task_id", str_of(p->task_id));
    json_member_text(&o, "mode", STR("sync"));
    json_member_bool(&o, "stream", true);
    json_close(&o, '}');
    wire_close(&o);
    say(p, &line);
}

/* Hearing. */

static void on_execute(struct player *p, const struct wire_message *m)
{
    struct str id = json_str_or(json_get(m->params, STR("task_id")), STR(""));
    struct str text = json_str_or(json_get(m->params, STR("message")), STR(""));
    struct json_out o;
    struct buf line;

    buf_init(&line, REPLY_MAX);
    if (p->task_id[0] || id.n >= sizeof(p->task_id)) {
        wire_error_of(&line, &m->id, WIRE_OUR_ERROR,
                      STR("the demo's agents do one thing at a time"),
                      STR("{\"code\":\"agent_busy\",\"retry_after_ms\":500}"));
        say(p, &line);
        return;
    }
    snprintf(p->task_id, sizeof(p->task_id), "%.*s", STR_ARG(id));
    buf_clear(&p->reply);
    buf_clear(&p->message);
    p->ask_at = 0;
    p->ask_id[0] = '\0';
    if (demo_wants_help(p->actor, text)) {
        buf_add_str(&p->reply, str_of(p->actor->hires.says));
        p->ask_at = p->reply.n;
        buf_add_str(&p->message, str_head(text, MESSAGE_MAX));
    }
    buf_add_str(&p->reply, demo_reply_to(p->actor, text));
    buf_add_str(&p->reply, demo_disclaimer);
    p->said = 0;
    o = wire_result_open(&line, &m->id);
    json_open(&o, '{');
    json_member_text(&o, "status", STR("working"));
    json_close(&o, '}');
    wire_close(&o);
    say(p, &line);
}

static void on_cancel(struct player *p, const struct wire_message *m)
{
    struct str id = json_str_or(json_get(m->params, STR("task_id")), STR(""));

    if (p->task_id[0] && str_eq(id, str_of(p->task_id)))
        say_result(p, STR("cancelled"));
}

/* Whatever came of it, our own reply goes on. */
static void on_answer(struct player *p, const struct wire_message *m)
{
    if (str_eq(m->id.text, str_of(p->ask_id)))
        p->ask_id[0] = '\0';
}

/* What it does not know it says so, as JSON-RPC has it. */
static void on_other(struct player *p, const struct wire_message *m)
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
                      STR("the demo's agents know no such method"), STR(""));
    }
    say(p, &line);
}

static void on_line(struct player *p, struct str text)
{
    struct wire_batch batch;
    struct why why;

    arena_reset(&p->arena);
    if (wire_read(&p->arena, text, &batch, &why) != OK)
        return; /* not for us */
    for (size_t i = 0; i < batch.n; i++) {
        const struct wire_message *m = &batch.list[i];

        if (m->kind == WIRE_REQUEST && str_eq(m->method, STR("task.execute")))
            on_execute(p, m);
        else if (str_eq(m->method, STR("task.cancel")))
            on_cancel(p, m);
        else if (m->kind == WIRE_RESULT || m->kind == WIRE_ERROR)
            on_answer(p, m);
        else
            on_other(p, m);
    }
}

/* Take what is there, and do what the whole lines of it say. */
static void hear(struct player *p)
{
    enum { READ_BYTES = 64 * 1024 };
    char *to = buf_reserve(&p->in, READ_BYTES);
    struct str rest;
    ssize_t n;

    if (!to) {
        p->is_over = true; /* no task is that long */
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
        on_line(p, str_cut(&rest, '\n'));
    if (rest.n)
        memmove(p->in.p, rest.p, rest.n);
    p->in.n = rest.n;
}

/* Until something is there to be read, or so long. */
static void wait_ms(struct player *p, int ms)
{
    struct clock clock = clock_system();
    int64_t until = clock.mono_ms(clock.ctx) + ms;

    while (!p->is_over) {
        struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
        int64_t left = ms < 0 ? -1 : until - clock.mono_ms(clock.ctx);
        int got = ms >= 0 && left <= 0 ? 0 : poll(&fd, 1, (int)left);

        if (got > 0)
            hear(p);
        if (got == 0 || ms < 0 || !p->task_id[0])
            return;
    }
}

/* The answer always comes: the server waits for the other one so long and no
 * longer. */
static void ask_another(struct player *p)
{
    p->ask_at = 0;
    say_ask(p);
    while (p->ask_id[0] && p->task_id[0] && !p->is_over)
        wait_ms(p, -1);
}

/* The task that it has, to its end. */
static void play(struct player *p)
{
    wait_ms(p, (int)(THINKING_MS * p->pace / 100));
    while (p->task_id[0] && !p->is_over) {
        struct str rest = str_sub(buf_str(&p->reply), p->said,
                                  p->ask_at ? p->ask_at : p->reply.n);
        size_t end = p->said + rest.n;
        int pause_ms;

        if (!rest.n && p->ask_at) {
            ask_another(p);
            continue;
        }
        if (!rest.n) {
            say_result(p, STR("completed"));
            return;
        }
        say_chunk(p, demo_piece(&rest, &pause_ms));
        p->said = end - rest.n;
        wait_ms(p, (int)(pause_ms * p->pace / 100));
    }
}

enum exit_status cli_demo_agent(struct cli *c)
{
    struct player p = {.pace = 100};
    enum exit_status status;

    if (!c->args.n_operands || !(p.actor = demo_find(c->args.operands[0])))
        return cli_error(c, ERR_USAGE,
                         "this is what signalbox demo starts; give the name of "
                         "one of its agents: engineer, researcher, "
                         "content-writer or automation-operator");
    if (!cli_number(c, "pace", 0, 1000, 100, &p.pace, &status))
        return status;
    buf_init(&p.in, LINE_MAX_BYTES);
    buf_init(&p.reply, REPLY_MAX);
    buf_init(&p.message, MESSAGE_MAX);
    arena_init(&p.arena, ARENA_BYTES);
    while (!p.is_over) {
        wait_ms(&p, -1);
        if (p.task_id[0])
            play(&p);
    }
    buf_fini(&p.in);
    buf_fini(&p.reply);
    buf_fini(&p.message);
    arena_fini(&p.arena);
    return EXIT_DONE;
}
