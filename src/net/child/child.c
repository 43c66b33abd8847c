/* The life of one child.
 *
 * The process is watched through a pidfd. So there is no SIGCHLD handler to
 * share with libuv's, and no PID that may belong to another process by now.
 * When the process has ended, its group is killed before it is reaped: until
 * then the group's number cannot be reused; after that nothing is ever sent to
 * it again.
 *
 * All calls to the owner are made from one job at the end of the turn, so no
 * call of the owner's leads back to it. A child that is over is freed when
 * libuv returns its last handle. */
#include "net/child/internal.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"

static void on_child_timer(struct timer *t);
static void on_child_turn(struct loop_job *job);

static void child_move(struct child *c, enum child_state to)
{
    c->all->n_stuck += (to == CHILD_IS_STUCK) - (c->state == CHILD_IS_STUCK);
    c->state = to;
}

/* Freeing. */

static void child_free(struct child *c)
{
    struct children *all = c->all;

    buf_fini(&c->unsent);
    buf_fini(&c->heard);
    tail_fini(&c->tail);
    launching_free(c->launching);
    free(c);
    all->n_children--;
    children_check_stopped(all);
}

void child_gave_back(struct child *c)
{
    if (--c->n_handles == 0 && c->state == CHILD_IS_OVER)
        child_free(c);
}

/* From here on its id is invalid. */
static void child_close(struct child *c)
{
    loop_timer_cancel(c->all->loop, &c->timer);
    loop_not_at_end(&c->job);
    children_give_slot(c->all, c);
    child_move(c, CHILD_IS_OVER);
    end_close(&c->in);
    end_close(&c->out);
    end_close(&c->err);
    end_close(&c->pid);
    launching_close(c);
    if (c->n_handles == 0)
        child_free(c);
}

void child_kick(struct child *c)
{
    if (c->state < CHILD_IS_STUCK)
        loop_at_end(c->all->loop, &c->job);
}

/* Reporting its end. */

static const char *const why_names[] = {
    [CHILD_EXITED] = "exited",
    [CHILD_STOPPED] = "stopped",
    [CHILD_LONG_LINE] = "line too long",
    [CHILD_CLOSED] = "closed a pipe",
    [CHILD_BROKEN] = "cannot be heard",
    [CHILD_UNSTARTED] = "could not be started",
};

static void child_report_end(struct child *c)
{
    struct child_end end = {
        .why = c->why, .exit_status = c->exit_status, .signal = c->signal};
    struct buf text;

    if (c->why == CHILD_UNSTARTED)
        end.err = launching_why(c, &end.words);
    buf_init(&text, c->tail.n * 3);
    tail_text(&c->tail, &text);
    end.stderr_tail = buf_str(&text);
    log_debug(c->all->log, "child.ended", LOG_I("child", (int64_t)c->id),
              LOG_C("why", why_names[end.why]),
              LOG_I("exit_status", end.exit_status),
              LOG_I("signal", end.signal));
    c->on.on_end(c->ctx, c->id, &end);
    buf_fini(&text);
}

/* The slot is free before the owner is told: it may start another child at
 * once. */
static void child_finish(struct child *c)
{
    children_give_slot(c->all, c);
    child_move(c, CHILD_IS_OVER);
    child_report_end(c);
    child_close(c);
}

/* Signals. Only before the process is reaped, while the PID is its own. */

static void child_send_signal(const struct child *c, int signal)
{
    if (PLANTED("child.no_kill") && signal == SIGKILL)
        return;
    kill(-c->process, signal);
    strays_signal(c, signal);
}

/* The kernel holds the process: a disk or a network does not answer. The owner
 * is told that it is over, and the slot stays taken until the kernel releases
 * the process. */
static void child_give_up(struct child *c)
{
    log_error(c->all->log, "child.stuck", LOG_I("child", (int64_t)c->id),
              LOG_I("pid", c->process));
    child_move(c, CHILD_IS_STUCK);
    loop_not_at_end(&c->job);
    end_close(&c->out);
    end_close(&c->err);
    child_report_end(c);
    children_check_stopped(c->all);
}

static void child_kill_group(struct child *c)
{
    if (c->n_kills++ == 0)
        c->all->stats.killed_total++;
    child_move(c, CHILD_IS_KILLED);
    strays_gather(c);
    child_send_signal(c, SIGKILL);
    loop_timer_set(c->all->loop, &c->timer, KILL_AGAIN_MS);
}

static void on_child_timer(struct timer *t)
{
    struct child *c = LIST_OF(t, struct child, timer);

    if (c->state == CHILD_IS_ENDED) {
        c->is_time_up = true;
        child_kick(c);
    } else if (launching_is_under_way(c)) {
        launching_late(c);
    } else if (c->state == CHILD_IS_RUNNING) {
        child_end(c, CHILD_CLOSED);
    } else if (c->n_kills < KILLS) {
        child_kill_group(c);
    } else {
        child_give_up(c);
    }
}

void child_end(struct child *c, enum child_end_why why)
{
    if (c->state == CHILD_IS_ENDED && c->why == CHILD_EXITED &&
        why != CHILD_STOPPED)
        c->why = why; /* it had ended, but not well */
    if (c->state != CHILD_IS_RUNNING)
        return;
    launching_drop(c);
    c->tells_start = false;
    c->why = why;
    child_move(c, CHILD_IS_ASKED);
    pipes_flush(c);
    pipes_close_input(c);
    strays_gather(c);
    child_send_signal(c, SIGTERM);
    child_send_signal(c, SIGCONT); /* a stopped process could not react */
    loop_timer_set(c->all->loop, &c->timer,
                   c->stop_grace_ms > 0 ? c->stop_grace_ms : 0);
    child_kick(c);
}

void child_closed(struct child *c)
{
    c->has_closed = true;
    if (launching_is_under_way(c))
        return; /* child_launched checks again */
    if (c->state == CHILD_IS_RUNNING && !timer_is_set(&c->timer))
        loop_timer_set(c->all->loop, &c->timer, CLOSED_MS);
}

/* The end of the launch. */

void child_launched(struct child *c)
{
    loop_timer_cancel(c->all->loop, &c->timer);
    c->tells_start = c->on.on_start != NULL;
    log_debug(c->all->log, "child.launched", LOG_I("child", (int64_t)c->id),
              LOG_I("pid", c->process));
    if (c->has_closed)
        child_closed(c);
    child_kick(c);
}

void child_not_launched(struct child *c, bool was_late)
{
    c->why = CHILD_UNSTARTED;
    c->all->stats.started_total--;
    if (!c->process) /* it has ended: on_process_ended goes on */
        return;
    loop_timer_cancel(c->all->loop, &c->timer);
    pipes_close_input(c);
    c->n_kills = !was_late; /* a process that has reported is about to end by
                             * itself */
    child_kill_group(c);
}

/* The end of the process. */

/* The deadline for its last output. It does not run while the owner has paused
 * the child, unless the owner has stopped it too. */
static void child_hurry(struct child *c)
{
    if (c->state != CHILD_IS_ENDED)
        return;
    if (c->is_paused && !c->is_stopped) {
        c->is_time_up = false;
        loop_timer_cancel(c->all->loop, &c->timer);
    } else if (!timer_is_set(&c->timer) && !c->is_time_up) {
        loop_timer_set(c->all->loop, &c->timer, LAST_WORDS_MS);
    }
}

/* Whether it has ended. Kills its group, then reaps it. If other code has
 * reaped it, which is forbidden, its status is unknown. */
static bool child_reap(struct child *c)
{
    id_t fd = (id_t)c->pid.fd;
    siginfo_t info = {.si_pid = 0};
    int r = waitid(P_PIDFD, fd, &info, WEXITED | WNOHANG | WNOWAIT);

    if (r == 0 && info.si_pid == 0)
        return false;
    if (r == 0) {
        if (c->n_strays)
            strays_gather(c);
        kill(-c->process, SIGKILL);
        strays_signal(c, SIGKILL);
        r = waitid(P_PIDFD, fd, &info, WEXITED | WNOHANG);
        orphans_add(c->all, c->process);
        strays_reaped(c);
    }
    cgroup_end(c);
    if (FAULT("child.wait"))
        r = -1;
    if (r == 0 && info.si_code == CLD_EXITED)
        c->exit_status = info.si_status;
    else if (r == 0)
        c->signal = info.si_status;
    c->process = 0;
    return true;
}

static void on_process_ended(uv_poll_t *h, int status, int events)
{
    struct child *c = LIST_OF(h, struct end, poll)->c;

    (void)status, (void)events;
    if (!child_reap(c))
        return;
    launching_look(c, true);
    if (c->state == CHILD_IS_STUCK) {
        child_close(c);
        return;
    }
    end_close(&c->pid);
    loop_timer_cancel(c->all->loop, &c->timer);
    child_move(c, CHILD_IS_ENDED);
    pipes_close_input(c);
    pipes_note_end(c);
    child_hurry(c);
    child_kick(c);
}

static void on_child_turn(struct loop_job *job)
{
    struct child *c = LIST_OF(job, struct child, job);
    bool has_more;

    /* A line may arrive before the loop has read the report. */
    launching_look(c, false);
    if (c->tells_start) {
        c->tells_start = false;
        c->on.on_start(c->ctx, c->id);
    }
    has_more = pipes_turn(c);
    if (c->state == CHILD_IS_ENDED && pipes_are_done(c))
        child_finish(c);
    else if (has_more)
        loop_next_turn(c->all->loop, &c->job);
}

void child_abandon(struct child *c)
{
    assert(c->state == CHILD_IS_STUCK);
    child_close(c);
}

/* Calls of the owner. */

void child_close_input(struct children *all, uint64_t id)
{
    struct child *c = children_find(all, id);

    if (!c)
        return;
    c->closes_input = true;
    child_kick(c);
}

void child_pause(struct children *all, uint64_t id, bool is_paused)
{
    struct child *c = children_find(all, id);

    if (!c || c->is_paused == is_paused)
        return;
    c->is_paused = is_paused;
    child_hurry(c);
    child_kick(c);
}

void child_stop(struct children *all, uint64_t id)
{
    struct child *c = children_find(all, id);

    if (!c)
        return;
    c->is_stopped = true;
    child_end(c, CHILD_STOPPED);
    child_hurry(c);
}

int child_pid(const struct children *all, uint64_t id)
{
    const struct child *c = children_find(all, id);

    return c ? c->process : 0;
}

unsigned child_held(const struct children *all, uint64_t id)
{
    const struct child *c = children_find(all, id);

    return c ? c->held : 0;
}

bool child_is_launching(const struct children *all, uint64_t id)
{
    const struct child *c = children_find(all, id);

    return c && launching_is_under_way(c);
}

/* Start. */

static struct child *child_new(struct children *all, const struct child_opts *o,
                               const struct child_handler *handler, void *ctx)
{
    struct child *c = mem_new(sizeof(*c));
    size_t heard_limit, unsent_limit;

    c->all = all;
    c->on = *handler;
    c->ctx = ctx;
    c->exit_status = -1;
    c->in.fd = c->out.fd = c->err.fd = c->pid.fd = -1;
    c->job.run = on_child_turn;
    c->timer.fire = on_child_timer;
    c->max_line_bytes = o->max_line_bytes;
    c->max_unsent_bytes = o->max_unsent_bytes;
    c->stop_grace_ms = o->stop_grace_ms;
    if (__builtin_add_overflow(o->max_line_bytes, READ_BYTES, &heard_limit))
        heard_limit = SIZE_MAX / 2;
    if (__builtin_mul_overflow(o->max_unsent_bytes, 2, &unsent_limit))
        unsent_limit = SIZE_MAX / 2;
    buf_init(&c->heard, heard_limit);
    buf_init(&c->unsent, unsent_limit);
    tail_init(&c->tail, o->stderr_bytes);
    all->n_children++;
    return c;
}

/* Takes fds, also on failure. */
static bool child_open_pipes(struct child *c, const int fds[3])
{
    struct end *ends[3] = {&c->in, &c->out, &c->err};
    bool ok = true;

    for (int i = 0; i < 3; i++)
        ok = end_open(c, ends[i], fds[i]) && ok;
    return ok;
}

/* Zero, or errno. */
static int child_watch_process(struct child *c)
{
    int fd = pidfd_open(c->process, 0);

    if (fd >= 0 && FAULT("child.pidfd")) {
        close(fd);
        errno = EMFILE;
        fd = -1;
    }
    if (fd < 0)
        return errno;
    if (!end_open(c, &c->pid, fd) ||
        !end_watch(&c->pid, UV_READABLE, on_process_ended))
        return ENOMEM;
    return 0;
}

/* Make the process. With a launcher, wait for its report later. */
static enum err child_run_program(struct child *c, struct spawn *s,
                                  const struct child_opts *opts,
                                  struct why *why)
{
    int report = s->report;
    enum err e;

    if (s->launcher < 0)
        return spawn_run(s, opts, &c->process, why);
    c->launching = launching_new(opts);
    e = spawn_begin(s, opts, &c->process, why);
    if (e)
        return e;
    s->report = -1;
    if (launching_watch(c, report))
        return OK;
    s->undone = c->process;
    spawn_undo(c->process);
    c->process = 0;
    return spawn_why(opts, STEP_WATCH, ENOMEM, why);
}

/* A process that cannot be watched is killed again. */
static enum err child_launch_process(struct child *c,
                                     const struct child_opts *opts,
                                     struct why *why)
{
    struct spawn s;
    int fds[3], error;
    enum err e = spawn_plan(&s, opts, c->all->oom_score, why);

    if (!e && opts->box && c->all->has_launcher) {
        cgroup_make(c->all, c, &opts->limits);
        if (!cgroup_procs(c, s.cgroup))
            s.cgroup[0] = '\0';
        e = spawn_by(&s, opts, c->all->launcher, why);
    }
    if (!e)
        e = spawn_pipes(&s, opts, fds, why);
    if (!e && !child_open_pipes(c, fds))
        e = spawn_why(opts, STEP_WATCH, ENOMEM, why);
    if (!e)
        e = child_run_program(c, &s, opts, why);
    if (s.undone)
        orphans_add(c->all, s.undone); /* the launcher may have forked */
    error = e ? 0 : child_watch_process(c);
    if (error) {
        spawn_undo(c->process);
        orphans_add(c->all, c->process); /* it may have forked */
        e = spawn_why(opts, STEP_WATCH, error, why);
    }
    if (e)
        cgroup_end(c);
    spawn_fini(&s);
    return e;
}

enum err child_start(struct children *all, const struct child_opts *opts,
                     const struct child_handler *handler, void *ctx,
                     uint64_t *id, struct why *why)
{
    struct child *c;
    enum err e = children_has_slot(all, why);

    *id = 0;
    if (e)
        return e;
    c = child_new(all, opts, handler, ctx);
    e = child_launch_process(c, opts, why);
    if (e) {
        child_close(c);
        return e;
    }
    children_take_slot(all, c);
    *id = c->id;
    log_debug(all->log, "child.started", LOG_I("child", (int64_t)c->id),
              LOG_I("pid", c->process));
    child_kick(c); /* the end of the turn starts the polls */
    return OK;
}
