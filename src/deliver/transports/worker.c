/* One child, from its start to its end.
 *
 *     STARTING -- its dialect reports it ready --> READY -- asked --> ENDING
 *         '-- too late, or ended: the pool pauses                        |
 *                                                          it has ended: freed
 *
 * A child that is asked to end is ignored, but counts for the pool until it has
 * ended: there are never more than `max`. Its tasks are repeated with another
 * child if it ends by itself. The end of its standard error goes only to the
 * log, since it may be confidential; its exit status goes into the failure.
 *
 * A wrong program (one that reads a prompt and prints text, say) is recognized
 * by its first child: before any child of the pool has spoken the dialect, a
 * line of another kind, silence for startMs or an end fails the waiting tasks
 * for good. Retries would give the same, and the operator would learn it
 * minutes later. A banner is accepted if a message follows within CHATTER_MS.
 * Once a child has spoken, other lines are ignored and an end is a crash.
 *
 * Cancel: the child is told in its dialect. Then it is stopped with all its
 * children, unless its definition says to ask only, or it has several tasks:
 * then it has the grace of a stop to report that it has stopped this task, and
 * is stopped if it does not. Tasks that are lost with it fail as innocent. */
#include "deliver/transports/pool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

struct deliver *pool_worker_deliver(struct pool_worker *h)
{
    return h->pool->all->deliver;
}

static struct loop *pool_worker_loop(struct pool_worker *h)
{
    return pool_worker_deliver(h)->opts.loop;
}

enum err pool_worker_send(struct pool_worker *h, struct str line)
{
    if (FAULT("deliver.hand_send"))
        return ERR_NOMEM;
    return child_send(pool_worker_deliver(h)->opts.children, h->child, line);
}

bool pool_worker_is_free(const struct pool_worker *h)
{
    return h->state == POOL_WORKER_READY && h->n_taken < h->n_stints;
}

/* Call after a change of state or stints. */
static void pool_worker_count_free(struct pool_worker *h)
{
    h->pool->n_free -= h->is_counted_free;
    h->is_counted_free = pool_worker_is_free(h);
    h->pool->n_free += h->is_counted_free;
}

/* Stints. */

static void pool_worker_begin_idle(struct pool_worker *h)
{
    h->idle_since_ms = loop_mono_ms(pool_worker_loop(h));
    loop_timer_set(pool_worker_loop(h), &h->timer, h->pool->def.idle_ms);
}

/* The delivery is already over or cancelled. */
void stint_empty(struct stint *s)
{
    struct pool_worker *h = s->pool_worker;

    if (!s->is_taken)
        return;
    assert(!s->carried);
    s->is_taken = false;
    loop_timer_cancel(pool_worker_loop(h), &s->patience);
    h->n_taken--;
    pool_worker_count_free(h);
    if (h->state == POOL_WORKER_READY && !h->n_taken)
        pool_worker_begin_idle(h);
    pool_due(h->pool);
}

void pool_worker_answered(struct pool_worker *h)
{
    h->n_results++;
    h->pool->n_bad = 0;
}

void stint_chunk(struct stint *s, struct str text)
{
    if (s->carried && text.n && !delivery_chunk(&s->carried->delivery, text))
        return;
}

/* The end of the delivery leaves the stint: see pool_worker_leave. */
void stint_result(struct stint *s, const struct task_result *r, bool has_text)
{
    pool_worker_answered(s->pool_worker);
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

/* Return the other tasks of a child that must end. */
static void pool_worker_send_back_all(struct pool_worker *h)
{
    for (size_t i = 0; i < h->n_stints; i++)
        if (h->stints[i].is_taken)
            stint_failed(&h->stints[i],
                         &(struct delivery_failure){
                             .code = STR("agent_stopped"),
                             .words = STR("the agent's process was stopped"),
                             .is_innocent = true});
}

/* States. */

static void pool_worker_set_state(struct pool_worker *h,
                                  enum pool_worker_state to)
{
    struct pool *p = h->pool;

    p->n_starting -= h->state == POOL_WORKER_STARTING;
    p->n_ending -= h->state == POOL_WORKER_ENDING;
    h->state = to;
    p->n_starting += h->state == POOL_WORKER_STARTING;
    p->n_ending += h->state == POOL_WORKER_ENDING;
    pool_worker_count_free(h);
    pool_due(p);
}

void pool_worker_stop(struct pool_worker *h)
{
    if (h->state == POOL_WORKER_ENDING)
        return;
    pool_worker_set_state(h, POOL_WORKER_ENDING);
    loop_timer_cancel(pool_worker_loop(h), &h->timer);
    affinities_drop(h);
    child_stop(pool_worker_deliver(h)->opts.children, h->child);
    if (!h->pool->all->is_stopping)
        pool_worker_send_back_all(h);
}

void pool_worker_ready(struct pool_worker *h, size_t n_stints)
{
    if (n_stints > POOL_WORKER_STINTS_MAX)
        n_stints = POOL_WORKER_STINTS_MAX;
    if (n_stints > h->n_stints) {
        h->n_stints = n_stints;
        pool_worker_count_free(h);
        pool_due(h->pool);
    }
    if (h->state != POOL_WORKER_STARTING)
        return;
    h->pool->has_spoken = true;
    loop_timer_cancel(pool_worker_loop(h), &h->timer);
    pool_worker_set_state(h, POOL_WORKER_READY);
    pool_worker_begin_idle(h);
}

/* The child failed to start: waiting tasks fail, and the pool pauses. */
static void pool_worker_fail_start(struct pool_worker *h)
{
    struct pool *p = h->pool;

    h->has_failed_start = true;
    pool_bad(p);
    pool_worker_stop(h);
    pool_disappoint(p, &(struct delivery_failure){
                           .code = STR("agent_did_not_start"),
                           .words = STR("the agent's process was not ready in "
                                        "time, or said nothing of use")});
}

static bool pool_worker_has_never_spoken(const struct pool_worker *h)
{
    return h->state == POOL_WORKER_STARTING && !h->pool->has_spoken;
}

/* Fail the waiting tasks for good. Requesters learn that the program is wrong;
 * its command and output are shown to its owner only. `how`: "ended with status
 * 1". */
static void pool_worker_reject_dialect(struct pool_worker *h, const char *how)
{
    struct pool *p = h->pool;
    struct str rest = p->def.command.n ? p->def.command.list[0] : STR("");
    struct str program = rest;
    struct why words, detail;

    while (rest.n)
        program = str_cut(&rest, '/');
    program = str_head(program, 64);
    if (h->first_line[0]) {
        why_err(&words, OK,
                "the program that runs this agent does not speak \"%s\", its "
                "dialect; its owner sees what it answered",
                p->dialect->name);
        why_err(&detail, OK,
                "the program \"%.*s\" does not speak \"%s\" (%s); it answered: "
                "\"%s\". Set its dialect, or write an adapter",
                STR_ARG(program), p->dialect->name, p->dialect->form,
                h->first_line);
    } else {
        why_err(&words, OK,
                "the program that runs this agent %s before it said anything "
                "in \"%s\", its dialect",
                how, p->dialect->name);
        why_err(&detail, OK,
                "the program \"%.*s\" %s before it said anything in \"%s\" "
                "(%s); the log has the end of its standard error",
                STR_ARG(program), how, p->dialect->name, p->dialect->form);
    }
    str_tame(detail.text, strlen(detail.text));
    log_warn(pool_worker_deliver(h)->opts.log,
             "deliver.child_speaks_no_dialect", LOG_S("process", p->def.name),
             LOG_C("dialect", p->dialect->name), LOG_C("because", detail.text));
    pool_disappoint(p, &(struct delivery_failure){.code = STR("wrong_dialect"),
                                                  .words = str_of(words.text),
                                                  .detail = str_of(detail.text),
                                                  .is_final = true});
}

static void pool_worker_fail_dialect(struct pool_worker *h, const char *how)
{
    h->has_failed_start = true;
    pool_bad(h->pool);
    pool_worker_stop(h);
    pool_worker_reject_dialect(h, how);
}

static void pool_worker_on_timer(struct timer *t)
{
    struct pool_worker *h = LIST_OF(t, struct pool_worker, timer);
    struct pool *p = h->pool;

    if (pool_worker_has_never_spoken(h) && h->first_line[0]) {
        pool_worker_fail_dialect(h, "");
    } else if (h->state == POOL_WORKER_STARTING) {
        char how[64];

        log_warn(pool_worker_deliver(h)->opts.log,
                 "deliver.child_start_timeout", LOG_S("process", p->def.name),
                 LOG_I("after_ms", p->def.start_ms));
        snprintf(how, sizeof(how), "ran for %lld ms",
                 (long long)p->def.start_ms);
        if (pool_worker_has_never_spoken(h))
            pool_worker_fail_dialect(h, how);
        else
            pool_worker_fail_start(h);
    } else if (!h->n_taken && p->n_workers - p->n_ending > (size_t)p->def.min) {
        pool_worker_stop(h);
    }
}

/* The child is useless: its tasks are repeated with another one. */
static void pool_worker_give_up(struct pool_worker *h, const char *event,
                                struct str words)
{
    log_warn(pool_worker_deliver(h)->opts.log, event,
             LOG_S("process", h->pool->def.name));
    for (size_t i = 0; i < h->n_stints; i++)
        if (h->stints[i].is_taken)
            stint_failed(&h->stints[i],
                         &(struct delivery_failure){
                             .code = STR("agent_garbled"), .words = words});
    if (h->state == POOL_WORKER_STARTING) {
        pool_worker_fail_start(h);
    } else {
        pool_bad(h->pool);
        pool_worker_stop(h);
    }
}

/* The lost message may have been an awaited one. */
void pool_worker_unheard(struct pool_worker *h)
{
    if (h->state != POOL_WORKER_ENDING)
        pool_worker_give_up(
            h, "deliver.child_unheard",
            STR("what the agent's process said could not be read"));
}

/* The start of the line, as valid UTF-8 without terminal controls. */
static void pool_worker_keep_first_line(struct pool_worker *h, struct str line)
{
    const char *end = line.p + line.n;
    size_t n = 0;

    for (const char *p = line.p; p < end;) {
        size_t one = utf8_one(p, end);
        size_t len = one ? one : 1;

        if (n + len > FIRST_LINE_MAX)
            break;
        memcpy(h->first_line + n, one ? p : "?", len);
        n += len;
        p += len;
    }
    h->first_line[str_tame(h->first_line, n)] = '\0';
}

void pool_worker_garbage(struct pool_worker *h, struct str line)
{
    if (pool_worker_has_never_spoken(h) && !h->first_line[0]) {
        pool_worker_keep_first_line(h, str_trim(line));
        if (h->first_line[0])
            loop_timer_set(pool_worker_loop(h), &h->timer, CHATTER_MS);
    }
    /* A message may be lost, so this is logged, but only a few times. */
    if (h->n_garbage++ == 0 && h->n_garbage_logged < GARBAGE_LOGGED) {
        h->n_garbage_logged++;
        log_info(pool_worker_deliver(h)->opts.log, "deliver.child_garbage",
                 LOG_S("process", h->pool->def.name));
    }
    if (h->n_garbage < GARBAGE_MAX || h->state == POOL_WORKER_ENDING)
        return;
    if (pool_worker_has_never_spoken(h))
        pool_worker_fail_dialect(h, "");
    else
        pool_worker_give_up(
            h, "deliver.child_speaks_no_dialect",
            STR("the agent's process says what cannot be understood"));
}

/* End. */

static void pool_worker_log_end(struct pool_worker *h,
                                const struct child_end *end)
{
    static const char *const whys[] = {
        [CHILD_EXITED] = "it ended by itself",
        [CHILD_STOPPED] = "it was stopped",
        [CHILD_LONG_LINE] = "it wrote a line over its limit",
        [CHILD_CLOSED] = "it closed its output or its input",
        [CHILD_BROKEN] = "it could not be heard any more",
        [CHILD_UNSTARTED] = "it could not be started",
    };
    bool is_bad = h->state != POOL_WORKER_ENDING || h->has_failed_start;

    LOG_AT(pool_worker_deliver(h)->opts.log, is_bad ? LOG_WARN : LOG_DEBUG,
           "deliver.child_ended", LOG_S("process", h->pool->def.name),
           LOG_C("agent", h->agent), LOG_C("because", whys[end->why]),
           LOG_I("exit_status", end->exit_status), LOG_I("signal", end->signal),
           LOG_I("results", h->n_results), LOG_S("stderr", end->stderr_tail));
}

static void child_end_words(struct why *out, const struct child_end *end)
{
    if (end->why == CHILD_LONG_LINE)
        why_err(out, OK, "the agent's process wrote a line over its limit");
    else if (end->why == CHILD_CLOSED)
        why_err(out, OK,
                "the agent's process closed its output or its input before it "
                "answered");
    else if (end->signal)
        why_err(out, OK,
                "the agent's process was ended by signal %d before it "
                "answered",
                end->signal);
    else if (end->exit_status >= 0)
        why_err(out, OK,
                "the agent's process ended with status %d before it "
                "answered",
                end->exit_status);
    else
        why_err(out, OK, "the agent's process ended before it answered");
}

/* Fail the tasks that the child had, or that waited for its start. */
static void pool_worker_report_end(struct pool_worker *h,
                                   const struct child_end *end,
                                   bool was_starting, bool is_wrong_program)
{
    struct delivery_failure f = {.code = STR("agent_crashed")};
    struct why words;
    char how[40];

    child_end_words(&words, end);
    f.words = str_of(words.text);
    for (size_t i = 0; i < h->n_stints; i++)
        if (h->stints[i].is_taken)
            stint_failed(&h->stints[i], &f);
    snprintf(how, sizeof(how), "ended with status %d", end->exit_status);
    if (is_wrong_program)
        pool_worker_reject_dialect(h, end->why == CHILD_CLOSED
                                          ? "closed its output or its input"
                                          : how);
    else if (was_starting)
        pool_disappoint(h->pool, &f);
}

static void pool_worker_on_end(void *ctx, uint64_t id,
                               const struct child_end *end)
{
    struct pool_worker *h = ctx;
    struct pool *p = h->pool;
    bool was_starting = h->state == POOL_WORKER_STARTING;
    /* A child that was asked to end has had its failure counted. */
    bool is_bad = h->state != POOL_WORKER_ENDING &&
                  (was_starting || h->n_taken || !h->n_results);
    struct why why;
    bool is_wrong_program =
        pool_worker_has_never_spoken(h) &&
        (h->first_line[0] || end->why == CHILD_CLOSED ||
         (end->why == CHILD_EXITED && end->exit_status >= 0));

    (void)id;
    if (end->why != CHILD_UNSTARTED)
        pool_worker_log_end(h, end);
    loop_timer_cancel(pool_worker_loop(h), &h->timer);
    affinities_drop(h);
    list_remove(&h->node);
    pool_worker_set_state(h, POOL_WORKER_ENDING);
    p->n_ending--;
    if (p->all->is_stopping) {
        /* The tasks keep their state, without callbacks. */
        for (size_t i = 0; i < h->n_stints; i++) {
            if (h->stints[i].carried)
                pool_worker_leave(h->stints[i].carried, STOP_CLOSING);
            stint_empty(&h->stints[i]);
        }
    } else if (end->why == CHILD_UNSTARTED) {
        why_err(&why, end->err, "%.*s", STR_ARG(end->words));
        pool_cannot_start(p, end->err, &why);
    } else {
        if (is_bad)
            pool_bad(p);
        pool_worker_report_end(h, end, was_starting, is_wrong_program);
    }
    if (p->dialect->forget)
        p->dialect->forget(h);
    free(h);
    pool_worker_gone(p);
}

static void pool_worker_on_line(void *ctx, uint64_t id, struct str line)
{
    struct pool_worker *h = ctx;

    (void)id;
    if (h->state != POOL_WORKER_ENDING)
        h->pool->dialect->heard(h, line);
}

static void pool_worker_on_room(void *ctx, uint64_t id)
{
    struct pool_worker *h = ctx;

    (void)id;
    if (h->pool->dialect->room)
        h->pool->dialect->room(h);
}

/* Start. */

struct str program_path(const struct strs *env)
{
    for (size_t i = 0; i < env->n; i++)
        if (str_starts(env->list[i], STR("PATH=")))
            return str_sub(env->list[i], 5, SIZE_MAX);
    return STR("/usr/local/bin:/usr/bin:/bin");
}

enum { ARGS_MAX = AGENT_COMMAND_MAX + DIALECT_ARGS_MAX };

static struct child_opts pool_child_opts(const struct pool *p,
                                         struct str argv[ARGS_MAX],
                                         struct deliver_box *box)
{
    const struct process_def *def = &p->def;
    size_t n =
        def->command.n < AGENT_COMMAND_MAX ? def->command.n : AGENT_COMMAND_MAX;

    memcpy(argv, def->command.list, n * sizeof(*argv));
    if (p->dialect->more_args)
        n += p->dialect->more_args(def, argv + n);
    return (struct child_opts){
        .argv = argv,
        .n_argv = n,
        .env = def->whole_env.list,
        .n_env = def->whole_env.n,
        .path = program_path(&def->whole_env),
        .install = process_install(def->dialect),
        .folder = def->workspace,
        .box = deliver_box_of(def, &p->all->deliver->opts.settings, box),
        .limits = {.memory_bytes = def->memory_bytes,
                   .cpu_s = def->cpu_s,
                   .files = def->files,
                   .processes = def->processes},
        .max_line_bytes = (size_t)def->max_line_bytes,
        .max_unsent_bytes = UNSENT_MAX,
        .stderr_bytes = STDERR_KEPT,
        .stop_grace_ms = def->stop_grace_ms,
    };
}

enum err pool_worker_seek(const struct pool *p, struct why *why)
{
    struct str argv[ARGS_MAX];
    struct deliver_box box;
    struct child_opts opts = pool_child_opts(p, argv, &box);

    return child_seek(&opts, why);
}

/* The program runs: startMs counts from here. */
static void pool_worker_on_start(void *ctx, uint64_t id)
{
    struct pool_worker *h = ctx;
    struct pool *p = h->pool;

    p->missing.text[0] = '\0';
    pool_tell_box(p, child_held(pool_worker_deliver(h)->opts.children, id));
    if (h->state == POOL_WORKER_STARTING)
        loop_timer_set(pool_worker_loop(h), &h->timer, p->def.start_ms);
}

static enum err pool_worker_start_child(struct pool_worker *h, struct why *why)
{
    static const struct child_handler handler = {.on_line = pool_worker_on_line,
                                                 .on_room = pool_worker_on_room,
                                                 .on_end = pool_worker_on_end,
                                                 .on_start =
                                                     pool_worker_on_start};
    struct pool *p = h->pool;
    struct str argv[ARGS_MAX];
    struct deliver_box box;
    struct child_opts opts = pool_child_opts(p, argv, &box);
    enum err e = OK;

    if (p->dialect->file)
        e = p->dialect->file(p, &opts.file, why);
    if (e)
        return e;
    return child_start(pool_worker_deliver(h)->opts.children, &opts, &handler,
                       h, &h->child, why);
}

static void stint_on_patience(struct timer *t)
{
    struct stint *s = LIST_OF(t, struct stint, patience);
    struct pool_worker *h = s->pool_worker;

    log_info(pool_worker_deliver(h)->opts.log,
             "deliver.child_did_not_stop_working",
             LOG_S("process", h->pool->def.name));
    pool_worker_stop(h);
}

static struct pool_worker *pool_worker_new(struct pool *p)
{
    struct pool_worker *h = mem_new(sizeof(*h));

    h->pool = p;
    h->timer.fire = pool_worker_on_timer;
    h->n_stints = 1;
    list_init(&h->affinities);
    for (size_t i = 0; i < POOL_WORKER_STINTS_MAX; i++) {
        h->stints[i].pool_worker = h;
        h->stints[i].patience.fire = stint_on_patience;
    }
    return h;
}

enum err pool_worker_start(struct pool *p, struct why *why)
{
    struct pool_worker *h = pool_worker_new(p);
    struct children *children = p->all->deliver->opts.children;
    enum err e = pool_worker_start_child(h, why);

    if (e) {
        free(h);
        return e;
    }
    /* With a launcher this is set again in pool_worker_on_start. */
    loop_timer_set(p->all->deliver->opts.loop, &h->timer,
                   CHILD_LAUNCH_MS + p->def.start_ms);
    list_append(&p->workers, &h->node);
    p->n_workers++;
    p->all->n_workers++;
    p->n_starting++;
    log_debug(p->all->deliver->opts.log, "deliver.child_started",
              LOG_S("process", p->def.name),
              LOG_I("pid", child_pid(children, h->child)));
    if (!child_is_launching(children, h->child))
        pool_worker_on_start(h, h->child);
    if (h->state == POOL_WORKER_STARTING && p->dialect->greet(h) != OK)
        pool_worker_fail_start(h);
    return OK;
}

/* Tasks. */

static struct stint *pool_worker_take_stint(struct pool_worker *h,
                                            struct carried *c)
{
    struct stint *s = h->stints;

    while (s->is_taken)
        s++;
    s->is_taken = true;
    s->carried = c;
    s->id = c->delivery.id;
    c->stint = s;
    h->n_taken++;
    pool_worker_count_free(h);
    loop_timer_cancel(pool_worker_loop(h), &h->timer);
    return s;
}

void pool_worker_give(struct pool_worker *h, struct carried *c)
{
    struct delivery_failure f = {
        .code = STR("agent_unreachable"),
        .words = STR("the agent's process does not take what it is given")};
    struct pool *p = h->pool;
    struct str agent = carried_agent(c);
    bool is_other = h->agent[0] && (!c->has_conversation ||
                                    affinity_find(p, carried_key(c)) != h);
    struct stint *s = pool_worker_take_stint(h, c);
    enum err e;

    memcpy(h->agent, agent.p, agent.n);
    h->agent[agent.n] = '\0';
    if (is_other && p->dialect->has_one_mind)
        affinities_drop(h);
    if (c->has_conversation)
        affinity_put(p, carried_key(c), h);
    e = p->dialect->give(h, s, is_other);
    buf_fini(&c->line);
    if (e == ERR_LIMIT)
        f = (struct delivery_failure){
            .code = STR("too_large"),
            .words = STR("the task is larger than what a process can be given"),
            .is_final = true};
    if (e)
        stint_failed(s, &f);
    if (e && e != ERR_LIMIT && e != ERR_NOMEM)
        pool_worker_stop(h);
}

void pool_worker_leave(struct carried *c, enum stop_why why)
{
    struct stint *s = c->stint;
    struct pool_worker *h = s->pool_worker;
    bool asks = h->pool->def.cancel == CANCEL_ASKS || h->n_stints > 1;

    h->pool->dialect->leave(h, s, why);
    s->carried = NULL;
    c->stint = NULL;
    c->pool = NULL;
    if (h->state == POOL_WORKER_READY && why == STOP_CANCELLED && asks) {
        loop_timer_set(pool_worker_loop(h), &s->patience,
                       h->pool->def.stop_grace_ms);
        return;
    }
    stint_empty(s);
    if (why == STOP_CANCELLED)
        pool_worker_stop(h);
}
