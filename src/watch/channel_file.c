/* A file that only grows, one whole line after the other, and knows itself how
 * far it is: its last line has a seq. That is what makes a line appear once,
 * however late the cursor in the store is written.
 *
 *     FILE        being written
 *     FILE.1      the one before, whole
 *     FILE.keep   the oldest; it goes when the next is turned over
 *
 * Turning over is a row of renames from the oldest to the newest. A crash
 * between two of them leaves a number out and loses nothing; one before the
 * new FILE is there leaves FILE.1 to say how far it is. Where a rename is
 * refused, the file becomes larger than it should rather than shorter.
 *
 * Somebody else may move the file away (logrotate): each append looks whether
 * the name still leads to what is open. One that is cut short (copytruncate)
 * needs nothing, since every write goes to the end, wherever that is.
 *
 * A write that fails in the middle (the disk is full) leaves half a line. The
 * file is closed then, and opening it again cuts that off and says how far it
 * came: there is one way back, after a crash and after an error.
 *
 * Turned down: keeping the size in memory (others may change it). */
#include "watch/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/json.h"

enum { OLD_PATH_MAX = CHANNEL_PATH_MAX + 24, TAIL_BYTES = 2 * LINE_MAX_BYTES };

static enum err failed(struct line_file *f, const char *what, int os,
                       struct why *why)
{
    enum err e = os == ENOSPC || os == EDQUOT                 ? ERR_NO_SPACE
                 : os == EACCES || os == EPERM || os == EROFS ? ERR_NOT_ALLOWED
                 : os == ENOENT || os == ENOTDIR              ? ERR_NOT_FOUND
                                                              : ERR_IO;

    line_file_close(f);
    return why_err(why, e, "cannot %s %s: %s%s", what, f->path, strerror(os),
                   e == ERR_NOT_FOUND ? "; make its folder first" : "");
}

void line_file_close(struct line_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

/* The end of a file: its last bytes, as many as fit. Negative: errno. */
static ssize_t read_tail(int fd, int64_t size, char *out, size_t max)
{
    size_t want = size < (int64_t)max ? (size_t)size : max, n = 0;

    while (n < want) {
        ssize_t got = FAULT("channel.read")
                          ? (errno = EIO, -1)
                          : pread(fd, out + n, want - n,
                                  (off_t)(size - (int64_t)want + (int64_t)n));

        if (got < 0 && errno != EINTR)
            return -1;
        if (got == 0)
            break;
        n += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)n;
}

/* The seq of the last whole line, and how many bytes follow it that are not
 * one. */
static int64_t last_seq(struct str tail, size_t *torn)
{
    static const struct str keys[] = {STR("seq")};
    size_t end = tail.n, start;
    struct str value = {NULL, 0};
    int64_t seq = 0;

    while (end && tail.p[end - 1] != '\n')
        end--;
    *torn = tail.n - end;
    if (!end)
        return 0;
    for (start = end - 1; start && tail.p[start - 1] != '\n';)
        start--;
    if (json_scan(str_sub(tail, start, end), keys, 1, &value, NULL) ||
        str_to_i64(value, &seq) || seq < 0)
        return 0;
    return seq;
}

/* How far the file at fd is; what is torn off at its end goes. */
static enum err look_at(struct line_file *f, int fd, bool mends, int64_t *seq,
                        struct why *why)
{
    char *tail = FAULT("channel.tail") ? NULL : malloc(TAIL_BYTES);
    struct stat st;
    size_t torn = 0;
    ssize_t n;
    enum err e = OK;

    *seq = 0;
    if (!tail)
        return why_err(why, ERR_NOMEM, "out of memory");
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        free(tail);
        return why_err(why, ERR_BAD_CONFIG,
                       "%s is no plain file; name another one", f->path);
    }
    n = read_tail(fd, st.st_size, tail, TAIL_BYTES);
    if (n < 0)
        e = failed(f, "read", errno, why);
    else if (n > 0)
        *seq = last_seq((struct str){tail, (size_t)n}, &torn);
    if (!e && n == TAIL_BYTES && torn == TAIL_BYTES)
        e = why_err(why, ERR_BAD_CONFIG,
                    "%s is no file of lines; name another one", f->path);
    if (!e && mends && torn && ftruncate(fd, st.st_size - (off_t)torn) != 0)
        e = failed(f, "mend", errno, why);
    free(tail);
    return e;
}

/* So that the name outlives a power cut, too. As well as may be: some file
 * systems do not know how. */
static void sync_folder(const struct line_file *f)
{
    struct str parent = str_parent(str_of(f->path));
    char path[CHANNEL_PATH_MAX];
    int fd;

    snprintf(path, sizeof(path), "%.*s", STR_ARG(parent));
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

/* Whoever named a file that is something else (a database, a program) must not
 * find lines at the end of it. */
static enum err check_ours(struct line_file *f, struct why *why)
{
    char first;

    if (pread(f->fd, &first, 1, 0) != 1 || first == '{')
        return OK;
    line_file_close(f);
    return why_err(why, ERR_BAD_CONFIG,
                   "%s is there and holds no JSON lines; name another file",
                   f->path);
}

static enum err open_now(struct line_file *f, struct why *why)
{
    struct stat st;

    f->fd = FAULT("channel.open") ? (errno = EACCES, -1)
                                  : open(f->path,
                                         O_RDWR | O_APPEND | O_CREAT |
                                             O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                                         0600);
    if (f->fd < 0)
        return failed(f, "open", errno, why);
    if (fstat(f->fd, &st) == 0 && !S_ISREG(st.st_mode)) {
        line_file_close(f);
        return why_err(why, ERR_BAD_CONFIG,
                       "%s is no plain file; name another one", f->path);
    }
    sync_folder(f);
    return check_ours(f, why);
}

static void old_path(const struct line_file *f, int64_t number, char *out)
{
    snprintf(out, OLD_PATH_MAX, "%s.%lld", f->path, (long long)number);
}

enum err line_file_open(struct line_file *f, int64_t *seq, struct why *why)
{
    char before[OLD_PATH_MAX];
    enum err e;
    int fd;

    line_file_close(f);
    *seq = 0;
    e = open_now(f, why);
    if (!e)
        e = look_at(f, f->fd, true, seq, why);
    if (e) {
        line_file_close(f);
        return e;
    }
    if (*seq)
        return OK;
    old_path(f, 1, before);
    fd = open(before, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return OK;
    e = look_at(f, fd, false, seq, why);
    close(fd);
    if (e && e != ERR_BAD_CONFIG)
        line_file_close(f);
    return e == ERR_BAD_CONFIG ? OK : e;
}

/* Whether the name still leads to what is open. */
static bool is_there(const struct line_file *f, struct stat *open_one)
{
    struct stat named;

    return fstat(f->fd, open_one) == 0 && stat(f->path, &named) == 0 &&
           named.st_ino == open_one->st_ino && named.st_dev == open_one->st_dev;
}

static bool move(const char *from, const char *to)
{
    return !FAULT("channel.rename") &&
           (rename(from, to) == 0 || errno == ENOENT);
}

/* False: it stays as it is. */
static bool turn_over(struct line_file *f)
{
    char from[OLD_PATH_MAX], to[OLD_PATH_MAX];

    if (FAULT("channel.sync") || fdatasync(f->fd) != 0)
        return false;
    if (f->keep < 1)
        return unlink(f->path) == 0;
    for (int64_t i = f->keep - 1; i >= 1; i--) {
        old_path(f, i, from);
        old_path(f, i + 1, to);
        if (!move(from, to))
            return false;
    }
    old_path(f, 1, to);
    return move(f->path, to);
}

static enum err make_room(struct line_file *f, size_t n, struct why *why)
{
    struct stat st;
    bool has_moved = f->fd < 0 || !is_there(f, &st);

    if (!has_moved && f->rotate_bytes && st.st_size > 0 &&
        st.st_size + (int64_t)n > f->rotate_bytes) {
        has_moved = turn_over(f);
        f->could_not_turn = !has_moved;
    }
    if (!has_moved)
        return OK;
    line_file_close(f);
    return open_now(f, why);
}

static enum err write_all(struct line_file *f, struct str s, struct why *why)
{
    while (s.n) {
        ssize_t n = FAULT("channel.write") ? (errno = ENOSPC, -1)
                                           : write(f->fd, s.p, s.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failed(f, "write to", n ? errno : ENOSPC, why);
        s = str_sub(s, (size_t)n, s.n);
    }
    return OK;
}

/* Of whole lines the first, and as many after it as fit into `room`. */
static size_t fitting(struct str lines, int64_t room)
{
    size_t n = str_find(lines, '\n', 0) + 1, next = n;

    while (next < lines.n && (int64_t)next <= room) {
        n = next;
        next = str_find(lines, '\n', next) + 1;
    }
    return (int64_t)next <= room ? next : n;
}

enum err line_file_append(struct line_file *f, struct str lines,
                          struct why *why)
{
    while (lines.n) {
        size_t n = str_find(lines, '\n', 0) + 1;
        enum err e = make_room(f, n, why);
        struct stat st;

        if (e)
            return e;
        if (fstat(f->fd, &st) != 0)
            return failed(f, "look at", errno, why);
        n = f->rotate_bytes && !f->could_not_turn
                ? fitting(lines, f->rotate_bytes - st.st_size)
                : lines.n;
        e = write_all(f, str_sub(lines, 0, n), why);
        if (e)
            return e;
        lines = str_sub(lines, n, lines.n);
    }
    return OK;
}

enum err line_file_sync(struct line_file *f, struct why *why)
{
    if (f->fd < 0)
        return OK;
    if (FAULT("channel.sync"))
        errno = EIO;
    else if (fdatasync(f->fd) == 0)
        return OK;
    return failed(f, "sync", errno, why);
}
