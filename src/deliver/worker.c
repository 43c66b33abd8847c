/* One child, from its start to its end.
 *
 *     STARTING -- its dialect says it is ready --> READY -- asked --> ENDING
 *         '-- not in time, ended: the pool pauses                        |
 *                                                          it has ended: gone
 *
 * A child that is asked to end is not listened to any more, and counts among
 * the pool's until it has ended: there are never more than `max`. What it had
 * in hand when it ended by itself is tried again with another; the last of its
 * standard error goes to the log, since it may hold what is nobody else's
 * business, and its exit status into the words of the failure.
 *
 * Cancel: the child is told, in its dialect. Then it is stopped with all that
 * it started, unless its definition says to ask only, or it works on several
 * tasks at once: then it has the grace of a stop to say that it is done with
 * this one, and is stopped if it does not. Those whose tasks go down with it
 * are not to blame. */
#include "deliver/pool.h"

#include <assert.h>
#include <stdlib.h>

struct deliver *worker_deliver(struct worker *w)
{
    return w->pool->all->deliver;
}

static struct loop *loop_of(struct worker *w)
{
    return worker_deliver(w)->opts.loop;
}

enum err worker_send(struct worker *w, struct str line)
{
    if (FAULT("deliver.worker_send"))
        return ERR_NOMEM;
    return child_send(worker_deliver(w)->opts.children, w->child, line);
}

/* Stints. */

static void on_idle(struct worker *w)
{
    w->idle_since_ms = loop_mono_ms(loop_of(w));
    /* Without memory for the timer it stays until it is needed or the pool
     * retires. */
    if (loop_timer_set(loop_of(w), &w->timer, w->pool->def.idle_ms) != OK)
        log_debug(worker_deliver(w)->opts.log, "deliver.no_idle_timer",
                  LOG_S("process", w->pool->def.name));
}

/* Its delivery is over already, or was cancelled. */
void stint_empty(struct stint *s)
{
    struct worker *w = s->worker;

    if (!s->is_taken)
        return;
    assert(!s->carried);
    s->is_taken = false;
    loop_timer_cancel(loop_of(w), &s->patience);
    w->n_taken--;
    if (w->state == WORKER_READY && !w->n_taken)
        on_idle(w);
    pool_due(w->pool);
}

void worker_answered(struct worker *w)
{
    w->n_results++;
    w->pool->n_bad = 0;
}

void stint_chunk(struct stint *s, struct str text)
{
    if (s->carried && text.n && !delivery_chunk(&s->carried->delivery, text))
        return;
}

/* The delivery's end leaves the stint: see worker_leave. */
void stint_result(struct stint *s, const struct task_result *r, bool has_text)
{
    worker_answered(s->worker);
    if (s->carried)
        delivery_result(&s->carried->delivery, r, has_text, 0);
    else
        stint_empty(s);
}

void stint_failed(struct stint *s, const struct delivery_failure *f)
{
    if (s->carried)
        delivery_failed(&s->carried->delivery, f);
    else
        stint_empty(s);
}

/* What else it had, when it has to go through no fault of theirs. */
static void send_back_all(struct worker *w)
{
    for (size_t i = 0; i < w->n_stints; i++)
        if (w->stints[i].is_taken)
            stint_failed(&w->stints[i],
                        &(struct delivery_failure){
                            .code = STR("agent_stopped"),
                            .words = STR("the agent's process was stopped"),
                            .is_innocent = true});
}

/* Life. */

static void set_state(struct worker *w, enum worker_state to)
{
    struct pool *p = w->pool;

    p->n_starting -= w->state == WORKER_STARTING;
    p->n_ending -= w->state == WORKER_ENDING;
    w->state = to;
    p->n_starting += w->state == WORKER_STARTING;
    p->n_ending += w->state == WORKER_ENDING;
    pool_due(p);
}

void worker_stop(struct worker *w)
{
    if (w->state == WORKER_ENDING)
        return;
    set_state(w, WORKER_ENDING);
    loop_timer_cancel(loop_of(w), &w->timer);
    keeps_drop(w);
    child_stop(worker_deliver(w)->opts.children, w->child);
    if (!w->pool->all->is_stopping)
        send_back_all(w);
}

void worker_ready(struct worker *w, size_t n_stints)
{
    if (n_stints > WORKER_STINTS_MAX)
        n_stints = WORKER_STINTS_MAX;
    if (n_stints > w->n_stints)
        w->n_stints = n_stints;
    if (w->state != WORKER_STARTING)
        return;
    loop_timer_cancel(loop_of(w), &w->timer);
    set_state(w, WORKER_READY);
    on_idle(w);
}

static void on_timer(struct timer *t)
{
    struct worker *w = LIST_OF(t, struct worker, timer);
    struct pool *p = w->pool;

    if (w->state == WORKER_STARTING) {
        log_warn(worker_deliver(w)->opts.log, "deliver.child_start_timeout",
                 LOG_S("process", p->def.name),
                 LOG_I("after_ms", p->def.start_ms));
        w->has_failed_start = true;
        worker_stop(w);
    } else if (!w->n_taken &&
               p->n_workers - p->n_ending > (size_t)p->def.min) {
        worker_stop(w);
    }
}

void worker_garbage(struct worker *w)
{
    struct log *log = worker_deliver(w)->opts.log;

    if (w->n_garbage++ == 0)
        log_debug(log, "deliver.child_garbage",
                  LOG_S("process", w->pool->def.name));
    if (w->n_garbage < GARBAGE_MAX || w->state == WORKER_ENDING)
        return;
    log_warn(log, "deliver.child_speaks_no_dialect",
             LOG_S("process", w->pool->def.name), LOG_I("lines", w->n_garbage));
    for (size_t i = 0; i < w->n_stints; i++)
        if (w->stints[i].is_taken)
            stint_failed(&w->stints[i],
                        &(struct delivery_failure){
                            .code = STR("agent_garbled"),
                            .words = STR("the agent's process says what cannot "
                                         "be understood")});
    w->has_failed_start |= w->state == WORKER_STARTING;
    if (w->state == WORKER_READY)
        pool_bad(w->pool);
    worker_stop(w);
}

/* The end. */

static void log_end(struct worker *w, const struct child_end *end)
{
    static const char *const whys[] = {
        [CHILD_EXITED] = "it ended by itself",
        [CHILD_STOPPED] = "it was stopped",
        [CHILD_LONG_LINE] = "it wrote a line over its limit",
        [CHILD_BROKEN] = "it could not be heard any more",
    };
    bool is_bad = w->state != WORKER_ENDING || w->has_failed_start;

    LOG_AT(worker_deliver(w)->opts.log, is_bad ? LOG_WARN : LOG_DEBUG,
           "deliver.child_ended", LOG_S("process", w->pool->def.name),
           LOG_C("agent", w->agent), LOG_C("because", whys[end->why]),
           LOG_I("exit_status", end->exit_status), LOG_I("signal", end->signal),
           LOG_I("results", w->n_results), LOG_S("stderr", end->stderr_tail));
}

static void word_end(struct why *out, const struct child_end *end)
{
    if (end->why == CHILD_LONG_LINE)
        why_err(out, OK, "the agent's process wrote a line over its limit");
    else if (end->signal)
        why_err(out, OK, "the agent's process was ended by signal %d before it "
                         "answered", end->signal);
    else if (end->exit_status >= 0)
        why_err(out, OK, "the agent's process ended with status %d before it "
                         "answered", end->exit_status);
    else
        why_err(out, OK, "the agent's process ended before it answered");
}

/* Whether the pool is to pause before it starts another. */
static bool was_bad(const struct worker *w)
{
    if (w->state == WORKER_ENDING)
        return w->has_failed_start;
    return w->state == WORKER_STARTING || w->n_taken || !w->n_results;
}

/* Those who had it, or were waiting for it to start. */
static void tell_end(struct worker *w, const struct child_end *end,
                     bool was_starting)
{
    struct delivery_failure f = {.code = STR("agent_crashed")};
    struct why words;

    word_end(&words, end);
    f.words = str_of(words.text);
    for (size_t i = 0; i < w->n_stints; i++)
        if (w->stints[i].is_taken)
            stint_failed(&w->stints[i], &f);
    if (w->has_failed_start)
        f = (struct delivery_failure){
            .code = STR("agent_did_not_start"),
            .words = STR("the agent's process was not ready in time")};
    if (was_starting || w->has_failed_start)
        pool_disappoint(w->pool, &f);
}

/* We stop: what it had stays as it is, and nobody hears of it. */
static void leave_all(struct worker *w)
{
    for (size_t i = 0; i < w->n_stints; i++) {
        if (w->stints[i].carried)
            worker_leave(w->stints[i].carried, STOP_CLOSING);
        stint_empty(&w->stints[i]);
    }
}

static void on_end(void *ctx, uint64_t id, const struct child_end *end)
{
    struct worker *w = ctx;
    struct pool *p = w->pool;
    bool is_bad = was_bad(w), was_starting = w->state == WORKER_STARTING;

    (void)id;
    log_end(w, end);
    loop_timer_cancel(loop_of(w), &w->timer);
    keeps_drop(w);
    list_remove(&w->node);
    set_state(w, WORKER_ENDING);
    p->n_ending--;
    if (p->all->is_stopping) {
        leave_all(w);
    } else {
        if (is_bad)
            pool_bad(p);
        tell_end(w, end, was_starting);
    }
    if (p->dialect->forget)
        p->dialect->forget(w);
    free(w);
    pool_worker_gone(p);
}

static void on_line(void *ctx, uint64_t id, struct str line)
{
    struct worker *w = ctx;

    (void)id;
    if (w->state != WORKER_ENDING)
        w->pool->dialect->heard(w, line);
}

static void on_room(void *ctx, uint64_t id)
{
    struct worker *w = ctx;

    (void)id;
    if (w->pool->dialect->room)
        w->pool->dialect->room(w);
}

/* The start. */

static struct str path_of(const struct process_def *def)
{
    for (size_t i = 0; i < def->whole_env.n; i++)
        if (str_starts(def->whole_env.list[i], STR("PATH=")))
            return str_sub(def->whole_env.list[i], 5, SIZE_MAX);
    return STR("/usr/local/bin:/usr/bin:/bin");
}

static enum err start_child(struct worker *w, struct why *why)
{
    static const struct child_handler handler = {
        .on_line = on_line, .on_room = on_room, .on_end = on_end};
    const struct process_def *def = &w->pool->def;
    struct str argv[AGENT_COMMAND_MAX + DIALECT_ARGS_MAX];
    size_t n = def->command.n < AGENT_COMMAND_MAX ? def->command.n
                                                  : AGENT_COMMAND_MAX;

    memcpy(argv, def->command.list, n * sizeof(*argv));
    if (w->pool->dialect->more_args)
        n += w->pool->dialect->more_args(def, argv + n);
    return child_start(worker_deliver(w)->opts.children,
                       &(struct child_opts){
                           .argv = argv,
                           .n_argv = n,
                           .env = def->whole_env.list,
                           .n_env = def->whole_env.n,
                           .path = path_of(def),
                           .folder = def->workspace,
                           .limits = {.memory_bytes = def->memory_bytes,
                                      .cpu_s = def->cpu_s,
                                      .files = def->files,
                                      .processes = def->processes},
                           .max_line_bytes = (size_t)def->max_line_bytes,
                           .max_unsent_bytes = UNSENT_MAX,
                           .stderr_bytes = STDERR_KEPT,
                           .stop_grace_ms = def->stop_grace_ms,
                       },
                       &handler, w, &w->child, why);
}

static void on_patience(struct timer *t)
{
    struct stint *s = LIST_OF(t, struct stint, patience);
    struct worker *w = s->worker;

    log_info(worker_deliver(w)->opts.log, "deliver.child_did_not_stop_working",
             LOG_S("process", w->pool->def.name));
    worker_stop(w);
}

static struct worker *worker_new(struct pool *p)
{
    struct worker *w = FAULT("deliver.worker") ? NULL : calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->pool = p;
    w->timer.fire = on_timer;
    w->n_stints = 1;
    list_init(&w->keeps);
    for (size_t i = 0; i < WORKER_STINTS_MAX; i++) {
        w->stints[i].worker = w;
        w->stints[i].patience.fire = on_patience;
    }
    return w;
}

enum err worker_start(struct pool *p, struct why *why)
{
    struct worker *w = worker_new(p);
    enum err e = w ? loop_timer_set(p->all->deliver->opts.loop, &w->timer,
                                    p->def.start_ms)
                   : ERR_NOMEM;

    if (e)
        why_err(why, e, "out of memory");
    else
        e = start_child(w, why);
    if (e) {
        if (w)
            loop_timer_cancel(p->all->deliver->opts.loop, &w->timer);
        free(w);
        return e;
    }
    list_append(&p->workers, &w->node);
    p->n_workers++;
    p->all->n_workers++;
    p->n_starting++;
    log_debug(p->all->deliver->opts.log, "deliver.child_started",
              LOG_S("process", p->def.name),
              LOG_I("pid", child_pid(p->all->deliver->opts.children, w->child)));
    if (p->dialect->greet(w) != OK) {
        w->has_failed_start = true;
        worker_stop(w);
    }
    return OK;
}

/* Work. */

bool worker_is_free(const struct worker *w)
{
    return w->state == WORKER_READY && w->n_taken < w->n_stints;
}

static struct stint *take_stint(struct worker *w, struct carried *c)
{
    struct stint *s = w->stints;

    while (s->is_taken)
        s++;
    s->is_taken = true;
    s->carried = c;
    s->id = c->delivery.id;
    c->stint = s;
    w->n_taken++;
    loop_timer_cancel(loop_of(w), &w->timer);
    return s;
}

static void could_not_give(struct worker *w, struct stint *s, enum err e)
{
    struct delivery_failure f = {
        .code = STR("agent_unreachable"),
        .words = STR("the agent's process does not take what it is given")};

    if (e == ERR_LIMIT)
        f = (struct delivery_failure){
            .code = STR("too_large"),
            .words = STR("the task is larger than what a process can be given"),
            .is_final = true};
    stint_failed(s, &f);
    if (e != ERR_LIMIT && e != ERR_NOMEM)
        worker_stop(w);
}

void worker_give(struct worker *w, struct carried *c)
{
    struct pool *p = w->pool;
    struct str agent = carried_agent(c);
    bool is_other = w->agent[0] &&
                    (!c->has_conversation ||
                     keep_find(p, carried_key(c)) != w);
    struct stint *s = take_stint(w, c);
    enum err e;

    memcpy(w->agent, agent.p, agent.n);
    w->agent[agent.n] = '\0';
    if (is_other && p->dialect->has_one_mind)
        keeps_drop(w);
    if (c->has_conversation)
        keep_put(p, carried_key(c), w);
    e = p->dialect->give(w, s, is_other);
    buf_fini(&c->line);
    if (e)
        could_not_give(w, s, e);
}

void worker_leave(struct carried *c, enum stop_why why)
{
    struct stint *s = c->stint;
    struct worker *w = s->worker;
    bool asks = w->pool->def.cancel == CANCEL_ASKS || w->n_stints > 1;

    w->pool->dialect->leave(w, s, why);
    s->carried = NULL;
    c->stint = NULL;
    c->pool = NULL;
    if (w->state == WORKER_READY && why == STOP_CANCELLED && asks &&
        loop_timer_set(loop_of(w), &s->patience,
                       w->pool->def.stop_grace_ms) == OK)
        return;
    stint_empty(s);
    if (why == STOP_CANCELLED)
        worker_stop(w);
}
