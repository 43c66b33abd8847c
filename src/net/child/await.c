/* Waiting for a launcher.
 *
 * The launcher sets up the sandbox and then becomes the program. On a busy
 * machine that takes many times as long as a vfork, and a configured path on a
 * dead disk could block it forever. So the loop does not wait. The launcher's
 * report is a pipe like the child's others; its end, caused by the exec, means
 * that the program runs. Until then lines can be sent to the child, since the
 * pipe keeps them, and it can be stopped like any other. A launcher that
 * exceeds its deadline is killed.
 *
 * Error messages need the program's name and a few paths. They belong to the
 * owner and may be gone by then, so they are copied. */
#include "net/child/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"

struct launching {
    struct end report;
    struct child_opts opts; /* the parts that messages need, in bytes */
    struct child_box box;
    struct str program;
    bool is_over; /* succeeded or failed */
    unsigned held;
    enum err err;
    struct why why;
    char bytes[];
};

struct launching *launching_new(const struct child_opts *o)
{
    size_t n =
        o->argv[0].n + o->path.n + o->install.n + o->folder.n + o->box->user.n;
    struct launching *l = mem_new(sizeof(*l) + n);
    char *at = l->bytes;

    l->report.fd = -1;
    l->program = str_pack(&at, o->argv[0]);
    l->box.user = str_pack(&at, o->box->user);
    l->opts = (struct child_opts){.argv = &l->program,
                                  .n_argv = 1,
                                  .path = str_pack(&at, o->path),
                                  .install = str_pack(&at, o->install),
                                  .folder = str_pack(&at, o->folder),
                                  .box = &l->box};
    return l;
}

bool launching_is_under_way(const struct child *c)
{
    return c->launching && !c->launching->is_over;
}

enum err launching_why(const struct child *c, struct str *words)
{
    *words = c->launching && c->launching->err ? str_of(c->launching->why.text)
                                               : STR("");
    return c->launching ? c->launching->err : OK;
}

void launching_close(struct child *c)
{
    if (c->launching)
        end_close(&c->launching->report);
}

void launching_drop(struct child *c)
{
    if (!launching_is_under_way(c))
        return;
    c->launching->is_over = true;
    launching_close(c);
}

void launching_free(struct launching *l)
{
    free(l);
}

static void has_failed(struct child *c, int step, int error)
{
    struct launching *l = c->launching;

    launching_drop(c);
    l->err = spawn_why(&l->opts, step, error, &l->why);
    child_not_launched(c, step == STEP_LATE);
}

static void has_ended(struct child *c)
{
    struct launching *l = c->launching;

    if (!l->held) { /* without a report */
        has_failed(c, STEP_LAUNCH, ENOEXEC);
        return;
    }
    launching_drop(c);
    c->held = l->held;
    child_launched(c);
}

void launching_look(struct child *c, bool is_over)
{
    while (launching_is_under_way(c)) {
        struct spawn_report r;
        ssize_t n = read(c->launching->report.fd, &r, sizeof(r));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN && !is_over)
            return;
        if (n > 0 && r.step == STEP_HELD)
            c->launching->held = (unsigned)r.error;
        else if (n > 0)
            has_failed(c, r.step, r.error);
        else
            has_ended(c);
    }
}

void launching_late(struct child *c)
{
    has_failed(c, STEP_LATE, ETIMEDOUT);
}

static void on_launch_report(uv_poll_t *h, int status, int events)
{
    struct child *c = LIST_OF(h, struct end, poll)->c;

    (void)events;
    /* After an error libuv stops polling: the deadline remains. */
    if (status < 0)
        c->launching->report.watched = 0;
    launching_look(c, false);
}

bool launching_watch(struct child *c, int fd)
{
    struct end *e = &c->launching->report;

    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        close(fd);
        return false;
    }
    loop_timer_set(c->all->loop, &c->timer, CHILD_LAUNCH_MS);
    return end_open(c, e, fd) && end_watch(e, UV_READABLE, on_launch_report);
}
