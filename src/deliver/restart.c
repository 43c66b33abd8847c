/* Restart an agent, by the first way that exists:
 *
 *     process:NAME      its children end, and new ones take over their
 *                       deliveries without a pause
 *     restart.command   is run; exit status 0 is a success. Only cards of
 *                       admins and the configuration can have one
 *                       (CARD_MAY_RUN), so it has no sandbox. Processes that
 *                       it leaves behind must be in a group of their own
 *                       (setsid, systemctl, docker); the rest of its group
 *                       ends with it
 *     wake.url          gets a request; an answer 2xx is a success
 *
 * The command comes before the wake, because an agent that is dead despite a
 * wake.url was woken in vain. The agent's state shows whether it is there
 * afterwards.
 *
 * One restart at a time per agent, RESTARTS_AT_ONCE for all; each has a
 * deadline. */
#include <assert.h>
#include <stdlib.h>

#include "deliver/transports/pool.h"

enum {
    RESTARTS_AT_ONCE = 64,
    COMMAND_MS = 60 * 1000,
    COMMAND_GRACE_MS = 5 * 1000,
    COMMAND_LINE_MAX = 64 * 1024,
    ASK_MS = 10 * 1000,
    ANSWER_MAX = 64 * 1024,
    SHOWN_MAX = 200, /* bytes of its standard error in the error message */
};

struct restart {
    struct deliver *deliver;
    struct list_node node;
    uint64_t child, request; /* zero: it has none */
    struct timer timer;      /* the command's deadline, or the next turn */
    bool is_too_late;
    enum err err;
    struct why why;
    deliver_restarted *done;
    void *ctx;
    size_t n_name;
    char name[AGENT_NAME_MAX + 1]; /* lower case */
    char shown[AGENT_NAME_MAX + 1];
};

static void restart_end(struct restart *r, enum err e)
{
    struct deliver *d = r->deliver;

    loop_timer_cancel(d->opts.loop, &r->timer);
    list_remove(&r->node);
    d->restarts.n--;
    if (!d->is_stopping && r->done)
        r->done(r->ctx, e, &r->why);
    if (d->restarts.is_stopping && !d->restarts.n)
        deliver_part_stopped(d, &d->restarts.part);
    free(r);
}

/* By restart.command. */

static void restart_on_line(void *ctx, uint64_t id, struct str line)
{
    (void)ctx, (void)id, (void)line; /* its output is ignored */
}

static void restart_on_child_end(void *ctx, uint64_t id,
                                 const struct child_end *e)
{
    struct restart *r = ctx;
    struct str output = str_head(e->stderr_tail, SHOWN_MAX);
    enum err err = ERR_IO;

    (void)id;
    r->child = 0;
    if (r->is_too_late)
        why_err(&r->why, err, "its restart command took longer than %d s",
                COMMAND_MS / 1000);
    else if (e->why == CHILD_EXITED && e->exit_status == 0)
        err = OK;
    else if (e->signal)
        why_err(&r->why, err, "its restart command was ended by signal %d",
                e->signal);
    else
        why_err(&r->why, err, "its restart command ended with status %d%s%.*s",
                e->exit_status, output.n ? ": " : "", STR_ARG(output));
    str_tame_text(r->why.text, strlen(r->why.text));
    restart_end(r, err);
}

static void restart_on_command_timer(struct timer *t)
{
    struct restart *r = LIST_OF(t, struct restart, timer);

    r->is_too_late = true;
    child_stop(r->deliver->opts.children, r->child);
}

static enum err restart_run_command(struct restart *r, const struct agent *a,
                                    struct why *why)
{
    static const struct child_handler handler = {
        .on_line = restart_on_line, .on_end = restart_on_child_end};
    struct deliver *d = r->deliver;
    const struct strs *env = &d->opts.settings.usual_env;
    enum err e;

    if (!d->opts.children)
        return why_err(why, ERR_NOT_FOUND, "no programs can be run here");
    r->timer.fire = restart_on_command_timer;
    loop_timer_set(d->opts.loop, &r->timer, COMMAND_MS);
    e = child_start(d->opts.children,
                    &(struct child_opts){.argv = a->restart.list,
                                         .n_argv = a->restart.n,
                                         .env = env->list,
                                         .n_env = env->n,
                                         .path = program_path(env),
                                         .max_line_bytes = COMMAND_LINE_MAX,
                                         .max_unsent_bytes = 1024,
                                         .stderr_bytes = STDERR_KEPT,
                                         .stop_grace_ms = COMMAND_GRACE_MS},
                    &handler, r, &r->child, why);
    if (e)
        loop_timer_cancel(d->opts.loop, &r->timer);
    else
        child_close_input(d->opts.children, r->child);
    return e;
}

/* By wake.url. */

static void restart_on_wake_answer(void *ctx, uint64_t id, enum err e,
                                   const struct fetch_answer *a,
                                   const struct why *why)
{
    struct restart *r = ctx;

    (void)id;
    r->request = 0;
    if (e)
        why_err(&r->why, e, "the request to wake it failed: %.300s", why->text);
    else if (a->status < 200 || a->status > 299)
        e = why_err(&r->why, ERR_UNREACHABLE,
                    "the request to wake it was answered with %d", a->status);
    restart_end(r, e);
}

static enum err restart_send_wake(struct restart *r, const struct agent *a,
                                  struct str reason, struct why *why)
{
    static const struct fetch_handler handler = {.on_done =
                                                     restart_on_wake_answer};
    static const struct fetch_header type = {STR("Content-Type"),
                                             STR("application/json")};
    struct deliver *d = r->deliver;
    struct fetch_request rq = {.method = STR("POST"),
                               .url = a->wake.url,
                               .headers = &type,
                               .n_headers = 1,
                               .is_trusted = a->is_configured,
                               .timeout_ms = ASK_MS,
                               .max_body_bytes = ANSWER_MAX};
    struct json_out o;
    struct buf body;
    enum err e;

    if (!d->opts.fetch)
        return why_err(why, ERR_NOT_FOUND, "nothing can be asked from here");
    buf_init(&body, 1024);
    o = json_out(&body);
    json_open(&o, '{');
    json_member_text(&o, "agent", a->name);
    json_member_text(&o, "reason", reason);
    json_close(&o, '}');
    rq.body = buf_str(&body);
    assert(!body.over); /* a name and a reason */
    e = fetch_start(d->opts.fetch, &rq, &handler, r, &r->request, why);
    buf_fini(&body);
    return e;
}

/* By process pool. */

static void restart_on_next_turn(struct timer *t)
{
    restart_end(LIST_OF(t, struct restart, timer), OK);
}

static enum err restart_respawn_pool(struct restart *r, struct str process,
                                     struct why *why)
{
    struct deliver *d = r->deliver;
    struct pool *p = pool_find(d->pools, process);

    if (!p)
        return why_err(why, ERR_NOT_FOUND,
                       "there is no process \"%.*s\" in the configuration",
                       STR_ARG(str_head(process, AGENT_NAME_MAX)));
    r->timer.fire = restart_on_next_turn;
    loop_timer_set(d->opts.loop, &r->timer, 0);
    pool_respawn(p);
    return OK;
}

/* Choose the way. */

static enum err restart_begin(struct restart *r, const struct agent *a,
                              bool is_wake, struct why *why)
{
    struct agent_url url;
    enum err e = agent_url_read(a->url, &url, why);

    if (e)
        return e;
    if (!is_wake && url.transport == TRANSPORT_PROCESS)
        return restart_respawn_pool(r, url.id, why);
    if (!is_wake && a->restart.n)
        return restart_run_command(r, a, why);
    if (a->wake.url.n)
        return restart_send_wake(r, a, is_wake ? STR("wake") : STR("restart"),
                                 why);
    return why_err(why, ERR_NOT_FOUND,
                   is_wake ? "its card has no wake.url"
                           : "there is nothing to restart it with: its card "
                             "has neither a restart.command nor a wake.url");
}

static bool restart_is_running(const struct deliver *d, struct str name)
{
    for (struct list_node *n = list_first(&d->restarts.list); n;
         n = list_next(&d->restarts.list, n))
        if (str_eq(str_of(LIST_OF(n, struct restart, node)->name), name))
            return true;
    return false;
}

static enum err restart_start(struct deliver *d, const struct agent *a,
                              bool is_wake, deliver_restarted *done, void *ctx,
                              struct why *why)
{
    char name[AGENT_NAME_MAX + 1];
    struct restart *r;
    enum err e;

    if (d->is_stopping)
        return why_err(why, ERR_STOPPING, "the server stops");
    if (restart_is_running(d, str_lowered(a->name, name, AGENT_NAME_MAX)))
        return why_err(why, ERR_BUSY, "%.*s is being started already",
                       STR_ARG(a->name));
    if (d->restarts.n >= RESTARTS_AT_ONCE)
        return why_err(why, ERR_OVERLOADED,
                       "%d agents are being started already; ask again in a "
                       "moment",
                       RESTARTS_AT_ONCE);
    r = mem_new(sizeof(*r));
    r->deliver = d;
    r->n_name = str_lowered(a->name, r->name, AGENT_NAME_MAX).n;
    memcpy(r->shown, a->name.p, r->n_name);
    e = restart_begin(r, a, is_wake, why);
    if (e) {
        free(r);
        return e;
    }
    r->done = done;
    r->ctx = ctx;
    list_append(&d->restarts.list, &r->node);
    d->restarts.n++;
    return OK;
}

enum err deliver_restart(struct deliver *d, const struct agent *a,
                         deliver_restarted *done, void *ctx, struct why *why)
{
    return restart_start(d, a, false, done, ctx, why);
}

enum err deliver_wake(struct deliver *d, const struct agent *a,
                      deliver_restarted *done, void *ctx, struct why *why)
{
    return restart_start(d, a, true, done, ctx, why);
}

/* All restarts. */

static void restarts_on_stop(struct deliver *d, struct deliver_part *p)
{
    struct list_node *next;

    d->restarts.is_stopping = true;
    for (struct list_node *n = list_first(&d->restarts.list); n; n = next) {
        struct restart *r = LIST_OF(n, struct restart, node);

        next = list_next(&d->restarts.list, n);
        if (r->child) {
            child_stop(d->opts.children, r->child); /* on_child_end follows */
            continue;
        }
        if (r->request)
            fetch_cancel(d->opts.fetch, r->request);
        loop_timer_cancel(d->opts.loop, &r->timer);
        list_remove(&r->node);
        d->restarts.n--;
        free(r);
    }
    if (!d->restarts.n)
        deliver_part_stopped(d, p);
}

void restarts_init(struct deliver *d)
{
    list_init(&d->restarts.list);
    d->restarts.part.stop = restarts_on_stop;
    deliver_part_add(d, &d->restarts.part);
}

/* After deliver_stop no command runs; pending requests and timers end here. */
void restarts_free(struct deliver *d)
{
    struct list_node *n;

    while ((n = list_pop(&d->restarts.list))) {
        struct restart *r = LIST_OF(n, struct restart, node);

        if (r->request)
            fetch_cancel(d->opts.fetch, r->request);
        loop_timer_cancel(d->opts.loop, &r->timer);
        free(r);
    }
    list_remove(&d->restarts.part.node);
}
