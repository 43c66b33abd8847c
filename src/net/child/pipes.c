/* The three pipes of a child, each end of ours under a uv_poll.
 *
 * Input: lines gather and leave at the end of the turn in one write. Output:
 * one read of at most 64 KB, then the lines in it. If there are more than
 * LINES_PER_TURN, the rest is handed over in later turns, and nothing is read
 * before: a child that never stops writing costs the same in each turn, and
 * its pipe makes it wait. Standard error is always read, so that no child
 * blocks on a warning, and only its end is kept.
 *
 * Pipes, not socket pairs, because a program may open /dev/stdin. The price is
 * SIGPIPE, which children_new ignores. */
#include "net/child/internal.h"

#include <assert.h>
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fault.h"

/* Ends. */

static void on_end_closed(uv_handle_t *h)
{
    struct end *e = LIST_OF(h, struct end, poll);

    child_gave_back(e->c);
}

bool end_open(struct child *c, struct end *e, int fd)
{
    if (FAULT("child.poll") ||
        uv_poll_init(&c->all->loop->uv, &e->poll, fd) != 0) {
        close(fd);
        return false;
    }
    e->c = c;
    e->fd = fd;
    c->n_handles++;
    return true;
}

void end_close(struct end *e)
{
    if (e->fd < 0)
        return;
    uv_close((uv_handle_t *)&e->poll, on_end_closed);
    close(e->fd);
    e->fd = -1;
    e->watched = 0;
    e->owed_bytes = 0;
}

bool end_watch(struct end *e, int events, uv_poll_cb cb)
{
    if (e->fd < 0 || events == e->watched)
        return true;
    e->watched = events;
    if (!events)
        return uv_poll_stop(&e->poll) == 0;
    return !FAULT("child.watch") && uv_poll_start(&e->poll, events, cb) == 0;
}

/* After an error libuv stops polling. */
static void end_note_status(struct end *e, int status)
{
    if (status < 0)
        e->watched = 0;
}

static bool is_passing(int error)
{
    return error == EAGAIN || error == EINTR;
}

static void forget_output(struct child *c)
{
    c->is_muted = true;
    c->heard_at = c->scanned = 0;
    buf_fini(&c->heard);
}

/* A descriptor of ours is broken: the child would go on unheard. */
static void pipes_lose(struct child *c, struct end *e)
{
    end_close(e);
    forget_output(c);
    child_end(c, CHILD_BROKEN);
    child_kick(c);
}

/* Input. */

static size_t n_unsent(const struct child *c)
{
    return c->unsent.n - c->unsent_at;
}

/* One side has closed it: unsent lines are dropped. */
void pipes_close_input(struct child *c)
{
    end_close(&c->in);
    buf_fini(&c->unsent);
    c->unsent_at = 0;
    c->has_room = true;
}

static void on_writable(uv_poll_t *h, int status, int events)
{
    struct child *c = LIST_OF(h, struct end, poll)->c;

    (void)events;
    end_note_status(&c->in, status);
    c->is_blocked = false; /* the write returns the error */
    child_kick(c);
}

void pipes_flush(struct child *c)
{
    ssize_t n;

    if (c->in.fd < 0 || c->is_blocked || n_unsent(c) == 0)
        return;
    n = write(c->in.fd, c->unsent.p + c->unsent_at, n_unsent(c));
    if (FAULT("child.write")) {
        n = -1;
        errno = EPIPE;
    }
    if (n < 0 && !is_passing(errno)) {
        pipes_close_input(c);
        child_closed(c);
        return;
    }
    c->unsent_at += n > 0 ? (size_t)n : 0;
    c->is_blocked = n_unsent(c) > 0;
    c->has_room = n > 0;
    if (n_unsent(c))
        return;
    c->unsent_at = 0;
    buf_clear(&c->unsent);
    if (c->unsent.cap > KEEP_BYTES)
        buf_fini(&c->unsent);
}

/* At half of the limit, or the owner would be told of every byte. */
static void pipes_report_room(struct child *c)
{
    bool is_due =
        c->wants_room && c->has_room && n_unsent(c) <= c->max_unsent_bytes / 2;

    c->has_room = false;
    if (!is_due)
        return;
    c->wants_room = false;
    if (c->on.on_room)
        c->on.on_room(c->ctx, c->id);
}

static enum err pipes_take_line(struct child *c, struct str line)
{
    char *to;

    /* Move the rest to the front when it is no more than what was sent. So
     * each byte is moved at most once, and twice the limit is enough. */
    if (c->unsent_at && c->unsent_at >= n_unsent(c)) {
        buf_drop(&c->unsent, c->unsent_at);
        c->unsent_at = 0;
    }
    to = buf_reserve(&c->unsent, line.n + 1);
    if (!to)
        return ERR_NOMEM;
    if (line.n)
        memcpy(to, line.p, line.n);
    to[line.n] = '\n';
    buf_commit(&c->unsent, line.n + 1);
    child_kick(c);
    return OK;
}

enum err child_send(struct children *all, uint64_t id, struct str line)
{
    struct child *c = children_find(all, id);

    if (!c || c->in.fd < 0 || c->closes_input)
        return ERR_GONE;
    if (line.n && memchr(line.p, '\n', line.n))
        return ERR_BAD_REQUEST;
    if (line.n >= c->max_unsent_bytes)
        return ERR_LIMIT;
    if (line.n >= c->max_unsent_bytes - n_unsent(c)) {
        c->wants_room = true;
        return ERR_BUSY;
    }
    return pipes_take_line(c, line);
}

/* Output. */

/* The next line, without its end; or the rest if no more will come. */
static bool pipes_next_line(struct child *c, struct str *line)
{
    struct str all = buf_str(&c->heard);
    size_t at = str_find(all, '\n', c->scanned);

    c->scanned = at;
    if (at == all.n && (c->out.fd >= 0 || at == c->heard_at))
        return false;
    *line = str_sub(all, c->heard_at, at);
    return true;
}

static bool may_take_line(struct child *c)
{
    uint64_t now = loop_turn_number(c->all->loop);

    if (c->turn != now)
        c->n_lines = 0;
    c->turn = now;
    return c->n_lines < LINES_PER_TURN;
}

static void forget_handed(struct child *c)
{
    if (c->heard_at < c->heard.n) {
        buf_drop(&c->heard, c->heard_at);
    } else {
        buf_clear(&c->heard);
        if (c->heard.cap > KEEP_BYTES)
            buf_fini(&c->heard);
    }
    c->scanned -= c->heard_at;
    c->heard_at = 0;
}

static void refuse_long_line(struct child *c)
{
    forget_output(c);
    child_end(c, CHILD_LONG_LINE);
}

/* Hand over as many lines as this turn allows. The owner may do anything
 * meanwhile, but nothing of it changes `heard`. Returns whether lines are
 * left. */
static bool pipes_deliver_lines(struct child *c)
{
    struct str line;

    while (!c->is_muted && pipes_next_line(c, &line)) {
        if (line.n > c->max_line_bytes) {
            refuse_long_line(c);
            return false;
        }
        if (c->is_paused || !may_take_line(c))
            return true;
        c->n_lines++;
        c->heard_at += line.n < c->heard.n - c->heard_at ? line.n + 1 : line.n;
        c->scanned = c->heard_at;
        c->on.on_line(c->ctx, c->id, line);
    }
    if (c->heard.n - c->heard_at > c->max_line_bytes)
        refuse_long_line(c);
    else
        forget_handed(c);
    return false;
}

/* One read. Returns the number of bytes, zero at the end, or -1: nothing
 * now. */
static ssize_t pipe_read(struct child *c, struct end *e)
{
    ssize_t n = read(e->fd, c->all->read_buf, READ_BYTES);

    if (FAULT("child.read")) {
        n = -1;
        errno = EIO;
    }
    if (n < 0) {
        if (!is_passing(errno))
            pipes_lose(c, e);
        return -1;
    }
    if (n == 0)
        end_close(e);
    else
        e->owed_bytes = n < e->owed_bytes ? e->owed_bytes - (int)n : 0;
    return n;
}

static void on_output(uv_poll_t *h, int status, int events)
{
    struct child *c = LIST_OF(h, struct end, poll)->c;
    ssize_t n;

    (void)events;
    end_note_status(&c->out, status);
    /* If a thousand others are ready too, libuv may come twice a turn. */
    if (c->has_read || c->out.fd < 0)
        return;
    n = pipe_read(c, &c->out);
    c->has_read = true;
    if (n == 0)
        child_closed(c);
    if (n > 0 && !c->is_muted) {
        buf_add(&c->heard, c->all->read_buf, (size_t)n);
        if (c->heard.over)
            pipes_lose(c, &c->out);
    }
    child_kick(c);
}

static void on_complaint(uv_poll_t *h, int status, int events)
{
    struct child *c = LIST_OF(h, struct end, poll)->c;
    ssize_t n = c->err.fd < 0 ? -1 : pipe_read(c, &c->err);

    (void)events;
    end_note_status(&c->err, status);
    if (n > 0)
        tail_add(&c->tail, c->all->read_buf, (size_t)n);
    if (n == 0 || c->is_time_up)
        child_kick(c);
}

/* After the end of the process. */

static int n_in_pipe(const struct end *e)
{
    int n = 0;

    return e->fd >= 0 && ioctl(e->fd, FIONREAD, &n) == 0 ? n : 0;
}

void pipes_note_end(struct child *c)
{
    c->out.owed_bytes = n_in_pipe(&c->out);
    c->err.owed_bytes = n_in_pipe(&c->err);
}

/* Another process may hold the pipes now; the bytes that the child left in
 * them are ours. */
static void pipes_end_wait(struct child *c)
{
    if (c->is_paused)
        forget_output(c);
    if (c->is_paused || c->out.owed_bytes == 0)
        end_close(&c->out);
    if (c->err.owed_bytes == 0)
        end_close(&c->err);
}

bool pipes_are_done(const struct child *c)
{
    return c->out.fd < 0 && c->err.fd < 0 &&
           (c->is_muted || c->heard.n == c->heard_at);
}

static void watch_all(struct child *c, bool has_lines)
{
    bool reads = c->is_muted || (!c->is_paused && !has_lines);

    if (!end_watch(&c->in, c->is_blocked ? UV_WRITABLE : 0, on_writable))
        pipes_lose(c, &c->in);
    if (!end_watch(&c->out, reads ? UV_READABLE : 0, on_output))
        pipes_lose(c, &c->out);
    if (!end_watch(&c->err, UV_READABLE, on_complaint))
        pipes_lose(c, &c->err);
}

bool pipes_turn(struct child *c)
{
    bool has_lines;

    c->has_read = false;
    pipes_flush(c);
    if (c->closes_input && n_unsent(c) == 0)
        pipes_close_input(c);
    pipes_report_room(c);
    if (c->is_time_up)
        pipes_end_wait(c);
    has_lines = pipes_deliver_lines(c);
    watch_all(c, has_lines);
    return has_lines && !c->is_paused;
}
