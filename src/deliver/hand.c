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
 * A program that was configured by mistake (it reads a prompt and prints text,
 * say) is recognized by its first child: before any child of the pool has
 * spoken the dialect, a line of another kind, silence for startMs or an end
 * fails the waiting tasks for good. Trying again would give the same, and the
 * operator would learn it minutes later. A banner is forgiven if a message
 * follows within CHATTER_MS. Once a child has spoken, chatter is chatter and an
 * end is a crash.
 *
 * Cancel: the child is told, in its dialect. Then it is stopped with all that
 * it started, unless its definition says to ask only, or it works on several
 * tasks at once: then it has the grace of a stop to say that it is done with
 * this one, and is stopped if it does not. Those whose tasks go down with it
 * are not to blame. */
#include "deliver/pool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

struct deliver *hand_deliver(struct hand *h)
{
    return h->pool->all->deliver;
}

static struct loop *loop_of(struct hand *h)
{
    return hand_deliver(h)->opts.loop;
}

enum err hand_send(struct hand *h, struct str line)
{
    if (FAULT("deliver.hand_send"))
        return ERR_NOMEM;
    return child_send(hand_deliver(h)->opts.children, h->child, line);
}

bool hand_is_free(const struct hand *h)
{
    return h->state == HAND_READY && h->n_taken < h->n_stints;
}

/* After whatever may have changed that. */
static void count_free(struct hand *h)
{
    h->pool->n_free -= h->is_counted_free;
    h->is_counted_free = hand_is_free(h);
    h->pool->n_free += h->is_counted_free;
}

/* Stints. */

static void on_idle(struct hand *h)
{
    h->idle_since_ms = loop_mono_ms(loop_of(h));
    /* Without memory for the timer it stays until it is needed or the pool
     * retires. */
    if (loop_timer_set(loop_of(h), &h->timer, h->pool->def.idle_ms) != OK)
        log_debug(hand_deliver(h)->opts.log, "deliver.no_idle_timer",
                  LOG_S("process", h->pool->def.name));
}

/* Its delivery is over already, or was cancelled. */
void stint_empty(struct stint *s)
{
    struct hand *h = s->hand;

    if (!s->is_taken)
        return;
    assert(!s->carried);
    s->is_taken = false;
    loop_timer_cancel(loop_of(h), &s->patience);
    h->n_taken--;
    count_free(h);
    if (h->state == HAND_READY && !h->n_taken)
        on_idle(h);
    pool_due(h->pool);
}

void hand_answered(struct hand *h)
{
    h->n_results++;
    h->pool->n_bad = 0;
}

void stint_chunk(struct stint *s, struct str text)
{
    if (s->carried && text.n && !delivery_chunk(&s->carried->delivery, text))
        return;
}

/* The delivery's end leaves the stint: see hand_leave. */
void stint_result(struct stint *s, const struct task_result *r, bool has_text)
{
    hand_answered(s->hand);
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
static void send_back_all(struct hand *h)
{
    for (size_t i = 0; i < h->n_stints; i++)
        if (h->stints[i].is_taken)
            stint_failed(&h->stints[i],
                         &(struct delivery_failure){
                             .code = STR("agent_stopped"),
                             .words = STR("the agent's process was stopped"),
                             .is_innocent = true});
}

/* Life. */

static void set_state(struct hand *h, enum hand_state to)
{
    struct pool *p = h->pool;

    p->n_starting -= h->state == HAND_STARTING;
    p->n_ending -= h->state == HAND_ENDING;
    h->state = to;
    p->n_starting += h->state == HAND_STARTING;
    p->n_ending += h->state == HAND_ENDING;
    count_free(h);
    pool_due(p);
}

void hand_stop(struct hand *h)
{
    if (h->state == HAND_ENDING)
        return;
    set_state(h, HAND_ENDING);
    loop_timer_cancel(loop_of(h), &h->timer);
    keeps_drop(h);
    child_stop(hand_deliver(h)->opts.children, h->child);
    if (!h->pool->all->is_stopping)
        send_back_all(h);
}

void hand_ready(struct hand *h, size_t n_stints)
{
    if (n_stints > HAND_STINTS_MAX)
        n_stints = HAND_STINTS_MAX;
    if (n_stints > h->n_stints) {
        h->n_stints = n_stints;
        count_free(h);
        pool_due(h->pool);
    }
    if (h->state != HAND_STARTING)
        return;
    h->pool->has_spoken = true;
    loop_timer_cancel(loop_of(h), &h->timer);
    set_state(h, HAND_READY);
    on_idle(h);
}

/* It will not do: whoever waits for it hears that now, and the pool pauses. */
static void fail_start(struct hand *h)
{
    struct pool *p = h->pool;

    h->has_failed_start = true;
    pool_bad(p);
    hand_stop(h);
    pool_disappoint(p, &(struct delivery_failure){
                           .code = STR("agent_did_not_start"),
                           .words = STR("the agent's process was not ready in "
                                        "time, or said nothing of use")});
}

static bool has_never_spoken(const struct hand *h)
{
    return h->state == HAND_STARTING && !h->pool->has_spoken;
}

/* The waiting tasks fail for good. Requesters hear that the program is the
 * wrong one; its command and what it printed are its owner's business. `how`:
 * "ended with status 1". */
static void disappoint_for_dialect(struct hand *h, const char *how)
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
    log_warn(hand_deliver(h)->opts.log, "deliver.child_speaks_no_dialect",
             LOG_S("process", p->def.name), LOG_C("dialect", p->dialect->name),
             LOG_C("because", detail.text));
    pool_disappoint(p, &(struct delivery_failure){.code = STR("wrong_dialect"),
                                                  .words = str_of(words.text),
                                                  .detail = str_of(detail.text),
                                                  .is_final = true});
}

static void fail_dialect(struct hand *h, const char *how)
{
    h->has_failed_start = true;
    pool_bad(h->pool);
    hand_stop(h);
    disappoint_for_dialect(h, how);
}

static void on_timer(struct timer *t)
{
    struct hand *h = LIST_OF(t, struct hand, timer);
    struct pool *p = h->pool;

    if (has_never_spoken(h) && h->first_line[0]) {
        fail_dialect(h, "");
    } else if (h->state == HAND_STARTING) {
        char how[64];

        log_warn(hand_deliver(h)->opts.log, "deliver.child_start_timeout",
                 LOG_S("process", p->def.name),
                 LOG_I("after_ms", p->def.start_ms));
        snprintf(how, sizeof(how), "ran for %lld ms",
                 (long long)p->def.start_ms);
        if (has_never_spoken(h))
            fail_dialect(h, how);
        else
            fail_start(h);
    } else if (!h->n_taken && p->n_hands - p->n_ending > (size_t)p->def.min) {
        hand_stop(h);
    }
}

/* Nothing more can come of it: what it had is tried with another. */
static void give_up(struct hand *h, const char *event, struct str words)
{
    log_warn(hand_deliver(h)->opts.log, event,
             LOG_S("process", h->pool->def.name));
    for (size_t i = 0; i < h->n_stints; i++)
        if (h->stints[i].is_taken)
            stint_failed(&h->stints[i],
                         &(struct delivery_failure){
                             .code = STR("agent_garbled"), .words = words});
    if (h->state == HAND_STARTING) {
        fail_start(h);
    } else {
        pool_bad(h->pool);
        hand_stop(h);
    }
}

/* It may have been what somebody waits for. */
void hand_unheard(struct hand *h)
{
    if (h->state != HAND_ENDING)
        give_up(h, "deliver.child_unheard",
                STR("what the agent's process said could not be read"));
}

/* Its start, as valid UTF-8 that steers no terminal. */
static void keep_first_line(struct hand *h, struct str line)
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

void hand_garbage(struct hand *h, struct str line)
{
    /* Without memory for the timer it has until startMs, as before. */
    if (has_never_spoken(h) && !h->first_line[0]) {
        keep_first_line(h, str_trim(line));
        if (h->first_line[0] &&
            loop_timer_set(loop_of(h), &h->timer, CHATTER_MS) != OK)
            log_debug(hand_deliver(h)->opts.log, "deliver.no_chatter_timer",
                      LOG_S("process", h->pool->def.name));
    }
    /* What it wanted to say is lost: people should know, but a few times. */
    if (h->n_garbage++ == 0 && h->n_garbage_logged < GARBAGE_LOGGED) {
        h->n_garbage_logged++;
        log_info(hand_deliver(h)->opts.log, "deliver.child_garbage",
                 LOG_S("process", h->pool->def.name));
    }
    if (h->n_garbage < GARBAGE_MAX || h->state == HAND_ENDING)
        return;
    if (has_never_spoken(h))
        fail_dialect(h, "");
    else
        give_up(h, "deliver.child_speaks_no_dialect",
                STR("the agent's process says what cannot be understood"));
}

/* The end. */

static void log_end(struct hand *h, const struct child_end *end)
{
    static const char *const whys[] = {
        [CHILD_EXITED] = "it ended by itself",
        [CHILD_STOPPED] = "it was stopped",
        [CHILD_LONG_LINE] = "it wrote a line over its limit",
        [CHILD_CLOSED] = "it closed its output or its input",
        [CHILD_BROKEN] = "it could not be heard any more",
    };
    bool is_bad = h->state != HAND_ENDING || h->has_failed_start;

    LOG_AT(hand_deliver(h)->opts.log, is_bad ? LOG_WARN : LOG_DEBUG,
           "deliver.child_ended", LOG_S("process", h->pool->def.name),
           LOG_C("agent", h->agent), LOG_C("because", whys[end->why]),
           LOG_I("exit_status", end->exit_status), LOG_I("signal", end->signal),
           LOG_I("results", h->n_results), LOG_S("stderr", end->stderr_tail));
}

static void word_end(struct why *out, const struct child_end *end)
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

/* Whether the pool is to pause before it starts another. */
static bool was_bad(const struct hand *h)
{
    if (h->state == HAND_ENDING)
        return false; /* what there was to say of it was said */
    return h->state == HAND_STARTING || h->n_taken || !h->n_results;
}

/* Those who had it, or were waiting for it to start. */
static void tell_end(struct hand *h, const struct child_end *end,
                     bool was_starting, bool is_wrong_program)
{
    struct delivery_failure f = {.code = STR("agent_crashed")};
    struct why words;
    char how[40];

    word_end(&words, end);
    f.words = str_of(words.text);
    for (size_t i = 0; i < h->n_stints; i++)
        if (h->stints[i].is_taken)
            stint_failed(&h->stints[i], &f);
    snprintf(how, sizeof(how), "ended with status %d", end->exit_status);
    if (is_wrong_program)
        disappoint_for_dialect(h, end->why == CHILD_CLOSED
                                      ? "closed its output or its input"
                                      : how);
    else if (was_starting)
        pool_disappoint(h->pool, &f);
}

/* We stop: what it had stays as it is, and nobody hears of it. */
static void leave_all(struct hand *h)
{
    for (size_t i = 0; i < h->n_stints; i++) {
        if (h->stints[i].carried)
            hand_leave(h->stints[i].carried, STOP_CLOSING);
        stint_empty(&h->stints[i]);
    }
}

static void on_end(void *ctx, uint64_t id, const struct child_end *end)
{
    struct hand *h = ctx;
    struct pool *p = h->pool;
    bool is_bad = was_bad(h), was_starting = h->state == HAND_STARTING;
    bool is_wrong_program =
        has_never_spoken(h) &&
        (h->first_line[0] || end->why == CHILD_CLOSED ||
         (end->why == CHILD_EXITED && end->exit_status >= 0));

    (void)id;
    log_end(h, end);
    loop_timer_cancel(loop_of(h), &h->timer);
    keeps_drop(h);
    list_remove(&h->node);
    set_state(h, HAND_ENDING);
    p->n_ending--;
    if (p->all->is_stopping) {
        leave_all(h);
    } else {
        if (is_bad)
            pool_bad(p);
        tell_end(h, end, was_starting, is_wrong_program);
    }
    if (p->dialect->forget)
        p->dialect->forget(h);
    free(h);
    pool_hand_gone(p);
}

static void on_line(void *ctx, uint64_t id, struct str line)
{
    struct hand *h = ctx;

    (void)id;
    if (h->state != HAND_ENDING)
        h->pool->dialect->heard(h, line);
}

static void on_room(void *ctx, uint64_t id)
{
    struct hand *h = ctx;

    (void)id;
    if (h->pool->dialect->room)
        h->pool->dialect->room(h);
}

/* The start. */

static struct str path_of(const struct process_def *def)
{
    for (size_t i = 0; i < def->whole_env.n; i++)
        if (str_starts(def->whole_env.list[i], STR("PATH=")))
            return str_sub(def->whole_env.list[i], 5, SIZE_MAX);
    return STR("/usr/local/bin:/usr/bin:/bin");
}

enum { ARGS_MAX = AGENT_COMMAND_MAX + DIALECT_ARGS_MAX };

static struct child_opts child_of(const struct pool *p,
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
        .path = path_of(def),
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

enum err hand_seek(const struct pool *p, struct why *why)
{
    struct str argv[ARGS_MAX];
    struct deliver_box box;
    struct child_opts opts = child_of(p, argv, &box);

    return child_seek(&opts, why);
}

static enum err start_child(struct hand *h, struct why *why)
{
    static const struct child_handler handler = {
        .on_line = on_line, .on_room = on_room, .on_end = on_end};
    struct pool *p = h->pool;
    struct str argv[ARGS_MAX];
    struct deliver_box box;
    struct child_opts opts = child_of(p, argv, &box);
    enum err e = OK;

    if (p->dialect->file)
        e = p->dialect->file(p, &opts.file, why);
    if (e)
        return e;
    return child_start(hand_deliver(h)->opts.children, &opts, &handler, h,
                       &h->child, why);
}

static void on_patience(struct timer *t)
{
    struct stint *s = LIST_OF(t, struct stint, patience);
    struct hand *h = s->hand;

    log_info(hand_deliver(h)->opts.log, "deliver.child_did_not_stop_working",
             LOG_S("process", h->pool->def.name));
    hand_stop(h);
}

static struct hand *hand_new(struct pool *p)
{
    struct hand *h = FAULT("deliver.hand") ? NULL : calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->pool = p;
    h->timer.fire = on_timer;
    h->n_stints = 1;
    list_init(&h->keeps);
    for (size_t i = 0; i < HAND_STINTS_MAX; i++) {
        h->stints[i].hand = h;
        h->stints[i].patience.fire = on_patience;
    }
    return h;
}

enum err hand_start(struct pool *p, struct why *why)
{
    struct hand *h = hand_new(p);
    enum err e = h ? loop_timer_set(p->all->deliver->opts.loop, &h->timer,
                                    p->def.start_ms)
                   : ERR_NOMEM;

    if (e)
        why_err(why, e, "out of memory");
    else
        e = start_child(h, why);
    if (e) {
        if (h)
            loop_timer_cancel(p->all->deliver->opts.loop, &h->timer);
        free(h);
        return e;
    }
    p->missing.text[0] = '\0';
    list_append(&p->hands, &h->node);
    p->n_hands++;
    p->all->n_hands++;
    p->n_starting++;
    log_debug(
        p->all->deliver->opts.log, "deliver.child_started",
        LOG_S("process", p->def.name),
        LOG_I("pid", child_pid(p->all->deliver->opts.children, h->child)));
    pool_tell_box(p, child_held(p->all->deliver->opts.children, h->child));
    if (p->dialect->greet(h) != OK)
        fail_start(h);
    return OK;
}

/* Work. */

static struct stint *take_stint(struct hand *h, struct carried *c)
{
    struct stint *s = h->stints;

    while (s->is_taken)
        s++;
    s->is_taken = true;
    s->carried = c;
    s->id = c->delivery.id;
    c->stint = s;
    h->n_taken++;
    count_free(h);
    loop_timer_cancel(loop_of(h), &h->timer);
    return s;
}

static void could_not_give(struct hand *h, struct stint *s, enum err e)
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
        hand_stop(h);
}

void hand_give(struct hand *h, struct carried *c)
{
    struct pool *p = h->pool;
    struct str agent = carried_agent(c);
    bool is_other = h->agent[0] &&
                    (!c->has_conversation || keep_find(p, carried_key(c)) != h);
    struct stint *s = take_stint(h, c);
    enum err e;

    memcpy(h->agent, agent.p, agent.n);
    h->agent[agent.n] = '\0';
    if (is_other && p->dialect->has_one_mind)
        keeps_drop(h);
    if (c->has_conversation)
        keep_put(p, carried_key(c), h);
    e = p->dialect->give(h, s, is_other);
    buf_fini(&c->line);
    if (e)
        could_not_give(h, s, e);
}

void hand_leave(struct carried *c, enum stop_why why)
{
    struct stint *s = c->stint;
    struct hand *h = s->hand;
    bool asks = h->pool->def.cancel == CANCEL_ASKS || h->n_stints > 1;

    h->pool->dialect->leave(h, s, why);
    s->carried = NULL;
    c->stint = NULL;
    c->pool = NULL;
    if (h->state == HAND_READY && why == STOP_CANCELLED && asks &&
        loop_timer_set(loop_of(h), &s->patience, h->pool->def.stop_grace_ms) ==
            OK)
        return;
    stint_empty(s);
    if (why == STOP_CANCELLED)
        hand_stop(h);
}
