/* Starting an agent again, whichever way there is to do it.
 *
 *     process:NAME      its children end, what they had is carried again by the
 *                       next ones, and no pause is waited for
 *     restart.command   is run; an end with status 0 is a success. That it is
 *                       an admin's or the configuration's word is seen to where
 *                       cards come in (CARD_MAY_RUN): no other card can have
 *                       one; so it has no sandbox. What it leaves behind
 *                       must have a group of its own (setsid, systemctl,
 *                       docker): the rest of its group ends with it
 *     wake.url          is asked, and an answer 2xx is a success
 *
 * The command comes before the wake: who is dead in spite of a wake.url was
 * woken in vain. Whether the agent is there afterwards is not this file's to
 * say: its state tells.
 *
 * One at a time for an agent, RESTARTS_AT_ONCE for all; each has an end. */
#include <stdio.h>
#include <stdlib.h>

#include "deliver/pool.h"

enum {
    RESTARTS_AT_ONCE = 64,
    COMMAND_MS = 60 * 1000,
    COMMAND_GRACE_MS = 5 * 1000,
    COMMAND_LINE_MAX = 64 * 1024,
    ASK_MS = 10 * 1000,
    ANSWER_MAX = 64 * 1024,
    TOLD_MAX = 200, /* bytes of its standard error that are told */
};

struct restart {
    struct deliver *deliver;
    struct list_node node;
    uint64_t child, request; /* zero: it is not that */
    struct timer timer;      /* the command's end, or the next turn */
    bool is_too_late;
    enum err err;
    struct why why;
    deliver_restarted *done;
    void *ctx;
    size_t n_name;
    char name[AGENT_NAME_MAX + 1]; /* lower case */
    char shown[AGENT_NAME_MAX + 1];
};

static void end(struct restart *r, enum err e)
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

/* By the command of its card. */

static void on_line(void *ctx, uint64_t id, struct str line)
{
    (void)ctx, (void)id, (void)line; /* nobody asked it anything */
}

static void on_child_end(void *ctx, uint64_t id, const struct child_end *e)
{
    struct restart *r = ctx;
    struct str said = str_head(e->stderr_tail, TOLD_MAX);
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
                e->exit_status, said.n ? ": " : "", STR_ARG(said));
    str_tame_text(r->why.text, strlen(r->why.text));
    end(r, err);
}

static void on_command_timer(struct timer *t)
{
    struct restart *r = LIST_OF(t, struct restart, timer);

    r->is_too_late = true;
    child_stop(r->deliver->opts.children, r->child);
}

static struct str path_in(const struct strs *env)
{
    for (size_t i = 0; i < env->n; i++)
        if (str_starts(env->list[i], STR("PATH=")))
            return str_sub(env->list[i], 5, SIZE_MAX);
    return STR("/usr/local/bin:/usr/bin:/bin");
}

static enum err run(struct restart *r, const struct agent *a, struct why *why)
{
    static const struct child_handler handler = {.on_line = on_line,
                                                 .on_end = on_child_end};
    struct deliver *d = r->deliver;
    const struct strs *env = &d->opts.settings.usual_env;
    enum err e;

    if (!d->opts.children)
        return why_err(why, ERR_NOT_FOUND, "no programs can be run here");
    r->timer.fire = on_command_timer;
    if (FAULT("deliver.restart_timer") ||
        loop_timer_set(d->opts.loop, &r->timer, COMMAND_MS) != OK)
        return why_err(why, ERR_NOMEM, "out of memory");
    e = child_start(d->opts.children,
                    &(struct child_opts){.argv = a->restart.list,
                                         .n_argv = a->restart.n,
                                         .env = env->list,
                                         .n_env = env->n,
                                         .path = path_in(env),
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

/* By its wake.url. */

static void on_answer(void *ctx, uint64_t id, enum err e,
                      const struct fetch_answer *a, const struct why *why)
{
    struct restart *r = ctx;

    (void)id;
    r->request = 0;
    if (e)
        why_err(&r->why, e, "the request to wake it failed: %.300s", why->text);
    else if (a->status < 200 || a->status > 299)
        e = why_err(&r->why, ERR_UNREACHABLE,
                    "the request to wake it was answered with %d", a->status);
    end(r, e);
}

static enum err ask(struct restart *r, const struct agent *a, struct str reason,
                    struct why *why)
{
    static const struct fetch_handler handler = {.on_done = on_answer};
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
    e = body.over || FAULT("deliver.restart_ask")
            ? why_err(why, ERR_NOMEM, "out of memory")
            : fetch_start(d->opts.fetch, &rq, &handler, r, &r->request, why);
    buf_fini(&body);
    return e;
}

/* By its pool. */

static void on_next_turn(struct timer *t)
{
    end(LIST_OF(t, struct restart, timer), OK);
}

static enum err respawn(struct restart *r, struct str process, struct why *why)
{
    struct deliver *d = r->deliver;
    struct pool *p = pool_find(d->pools, process);

    if (!p)
        return why_err(why, ERR_NOT_FOUND,
                       "there is no process \"%.*s\" in the configuration",
                       STR_ARG(str_head(process, AGENT_NAME_MAX)));
    r->timer.fire = on_next_turn;
    if (FAULT("deliver.restart_timer") ||
        loop_timer_set(d->opts.loop, &r->timer, 0) != OK)
        return why_err(why, ERR_NOMEM, "out of memory");
    pool_respawn(p);
    return OK;
}

/* Whichever there is. */

static enum err begin(struct restart *r, const struct agent *a, bool is_wake,
                      struct why *why)
{
    struct agent_url url;
    enum err e = agent_url_read(a->url, &url, why);

    if (e)
        return e;
    if (!is_wake && url.road == ROAD_PROCESS)
        return respawn(r, url.id, why);
    if (!is_wake && a->restart.n)
        return run(r, a, why);
    if (a->wake.url.n)
        return ask(r, a, is_wake ? STR("wake") : STR("restart"), why);
    return why_err(why, ERR_NOT_FOUND,
                   is_wake ? "its card has no wake.url"
                           : "there is nothing to restart it with: its card "
                             "has neither a restart.command nor a wake.url");
}

static bool is_under_way(const struct deliver *d, struct str name)
{
    for (struct list_node *n = list_first(&d->restarts.list); n;
         n = list_next(&d->restarts.list, n))
        if (str_eq(str_of(LIST_OF(n, struct restart, node)->name), name))
            return true;
    return false;
}

static struct restart *restart_new(struct deliver *d, const struct agent *a)
{
    struct restart *r = FAULT("deliver.restart") ? NULL : calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->deliver = d;
    r->n_name = str_lowered(a->name, r->name, AGENT_NAME_MAX).n;
    memcpy(r->shown, a->name.p, r->n_name);
    return r;
}

static enum err start(struct deliver *d, const struct agent *a, bool is_wake,
                      deliver_restarted *done, void *ctx, struct why *why)
{
    char name[AGENT_NAME_MAX + 1];
    struct restart *r;
    enum err e;

    if (d->is_stopping)
        return why_err(why, ERR_STOPPING, "the server stops");
    if (is_under_way(d, str_lowered(a->name, name, AGENT_NAME_MAX)))
        return why_err(why, ERR_BUSY, "%.*s is being started already",
                       STR_ARG(a->name));
    if (d->restarts.n >= RESTARTS_AT_ONCE)
        return why_err(why, ERR_OVERLOADED,
                       "%d agents are being started already; ask again in a "
                       "moment",
                       RESTARTS_AT_ONCE);
    r = restart_new(d, a);
    if (!r)
        return why_err(why, ERR_NOMEM, "out of memory");
    e = begin(r, a, is_wake, why);
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
    return start(d, a, false, done, ctx, why);
}

enum err deliver_wake(struct deliver *d, const struct agent *a,
                      deliver_restarted *done, void *ctx, struct why *why)
{
    return start(d, a, true, done, ctx, why);
}

/* All of them. */

static void on_stop(struct deliver *d, struct deliver_part *p)
{
    struct list_node *next;

    d->restarts.is_stopping = true;
    for (struct list_node *n = list_first(&d->restarts.list); n; n = next) {
        struct restart *r = LIST_OF(n, struct restart, node);

        next = list_next(&d->restarts.list, n);
        if (r->child) {
            child_stop(d->opts.children, r->child); /* and ends when it has */
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
    d->restarts.part.stop = on_stop;
    deliver_part_add(d, &d->restarts.part);
}

/* After deliver_stop none runs a program; what else there is ends here. */
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
