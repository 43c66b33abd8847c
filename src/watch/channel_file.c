/* A file that only grows, one whole line after the other. Its last line has a
 * seq, so the file itself knows how far it is. That is why a line appears only
 * once, however late the cursor in the store is written.
 *
 *     FILE        being written
 *     FILE.1      the previous one, complete
 *     FILE.keep   the oldest; removed at the next rotation
 *
 * Rotation renames the files from the oldest to the newest. A crash between
 * two renames leaves a number out and loses nothing. After a crash before the
 * new FILE exists, FILE.1 has the last seq. If a rename fails, the file
 * becomes larger than it should rather than losing lines.
 *
 * Another program may move the file away (logrotate): each append checks
 * whether the path still leads to the open file. A truncated file
 * (copytruncate) needs no care, since every write goes to the end.
 *
 * A write that fails in the middle (the disk is full) leaves half a line. The
 * file is then closed, and opening it again cuts that off and finds the last
 * seq. So recovery after a crash and after an error is the same.
 *
 * Rejected: keeping the size in memory (other programs may change it). */
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

static enum err line_file_fail(struct line_file *f, const char *what, int os,
                               struct why *why)
{
    enum err e = os == ENOSPC || os == EDQUOT                 ? ERR_NO_SPACE
                 : os == EACCES || os == EPERM || os == EROFS ? ERR_NOT_ALLOWED
                 : os == ENOENT || os == ENOTDIR              ? ERR_NOT_FOUND
                                                              : ERR_IO;

    line_file_close(f);
    return why_err(why, e, "cannot %s %s: %s%s", what, f->path, strerror(os),
                   e == ERR_NOT_FOUND ? "; create its folder first" : "");
}

void line_file_close(struct line_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

/* The last bytes of a file, as many as fit. Negative: errno. */
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

/* The seq of the last whole line. *torn: bytes behind that line. */
static int64_t tail_last_seq(struct str tail, size_t *torn)
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

/* Find the last seq of the file at fd. `mends`: cut off half a line at its
 * end. */
static enum err line_file_inspect(struct line_file *f, int fd, bool mends,
                                  int64_t *seq, struct why *why)
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
                       "%s is not a regular file; configure another path",
                       f->path);
    }
    n = read_tail(fd, st.st_size, tail, TAIL_BYTES);
    if (n < 0)
        e = line_file_fail(f, "read", errno, why);
    else if (n > 0)
        *seq = tail_last_seq((struct str){tail, (size_t)n}, &torn);
    if (!e && n == TAIL_BYTES && torn == TAIL_BYTES)
        e = why_err(why, ERR_BAD_CONFIG,
                    "%s has no lines; configure another path", f->path);
    if (!e && mends && torn && ftruncate(fd, st.st_size - (off_t)torn) != 0)
        e = line_file_fail(f, "mend", errno, why);
    free(tail);
    return e;
}

/* Make the name survive a power cut, too. Errors are ignored: some file
 * systems cannot do it. */
static void line_file_sync_folder(const struct line_file *f)
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

/* If the configured file is something else (a database, a program), no lines
 * may be appended to it. */
static enum err line_file_check_content(struct line_file *f, struct why *why)
{
    char first;

    if (pread(f->fd, &first, 1, 0) != 1 || first == '{')
        return OK;
    line_file_close(f);
    return why_err(why, ERR_BAD_CONFIG,
                   "%s exists and does not hold JSON lines; configure "
                   "another path",
                   f->path);
}

static enum err line_file_open_path(struct line_file *f, struct why *why)
{
    struct stat st;

    f->fd = FAULT("channel.open") ? (errno = EACCES, -1)
                                  : open(f->path,
                                         O_RDWR | O_APPEND | O_CREAT |
                                             O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                                         0600);
    if (f->fd < 0)
        return line_file_fail(f, "open", errno, why);
    if (fstat(f->fd, &st) == 0 && !S_ISREG(st.st_mode)) {
        line_file_close(f);
        return why_err(why, ERR_BAD_CONFIG,
                       "%s is not a regular file; configure another path",
                       f->path);
    }
    line_file_sync_folder(f);
    return line_file_check_content(f, why);
}

static void rotated_path(const struct line_file *f, int64_t number, char *out)
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
    e = line_file_open_path(f, why);
    if (!e)
        e = line_file_inspect(f, f->fd, true, seq, why);
    if (e) {
        line_file_close(f);
        return e;
    }
    if (*seq)
        return OK;
    rotated_path(f, 1, before);
    fd = open(before, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return OK;
    e = line_file_inspect(f, fd, false, seq, why);
    close(fd);
    if (e && e != ERR_BAD_CONFIG)
        line_file_close(f);
    return e == ERR_BAD_CONFIG ? OK : e;
}

/* Whether the path still leads to the open file. */
static bool line_file_is_current(const struct line_file *f,
                                 struct stat *open_one)
{
    struct stat named;

    return fstat(f->fd, open_one) == 0 && stat(f->path, &named) == 0 &&
           named.st_ino == open_one->st_ino && named.st_dev == open_one->st_dev;
}

static bool file_rename(const char *from, const char *to)
{
    return !FAULT("channel.rename") &&
           (rename(from, to) == 0 || errno == ENOENT);
}

/* False: the file stays as it is. */
static bool rotated_shift(struct line_file *f)
{
    char from[OLD_PATH_MAX], to[OLD_PATH_MAX];

    if (FAULT("channel.sync") || fdatasync(f->fd) != 0)
        return false;
    if (f->keep < 1)
        return unlink(f->path) == 0;
    for (int64_t i = f->keep - 1; i >= 1; i--) {
        rotated_path(f, i, from);
        rotated_path(f, i + 1, to);
        if (!file_rename(from, to))
            return false;
    }
    rotated_path(f, 1, to);
    return file_rename(f->path, to);
}

static enum err line_file_rotate(struct line_file *f, size_t n, struct why *why)
{
    struct stat st;
    bool has_moved = f->fd < 0 || !line_file_is_current(f, &st);

    if (!has_moved && f->rotate_bytes && st.st_size > 0 &&
        st.st_size + (int64_t)n > f->rotate_bytes) {
        has_moved = rotated_shift(f);
        f->could_not_turn = !has_moved;
    }
    if (!has_moved)
        return OK;
    line_file_close(f);
    return line_file_open_path(f, why);
}

static enum err line_file_write(struct line_file *f, struct str s,
                                struct why *why)
{
    while (s.n) {
        ssize_t n = FAULT("channel.write") ? (errno = ENOSPC, -1)
                                           : write(f->fd, s.p, s.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return line_file_fail(f, "write to", n ? errno : ENOSPC, why);
        s = str_sub(s, (size_t)n, s.n);
    }
    return OK;
}

/* The length of the first line, and of as many further ones as fit into
 * `room`. */
static size_t lines_that_fit(struct str lines, int64_t room)
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
        enum err e = line_file_rotate(f, n, why);
        struct stat st;

        if (e)
            return e;
        if (fstat(f->fd, &st) != 0)
            return line_file_fail(f, "look at", errno, why);
        n = f->rotate_bytes && !f->could_not_turn
                ? lines_that_fit(lines, f->rotate_bytes - st.st_size)
                : lines.n;
        e = line_file_write(f, str_sub(lines, 0, n), why);
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
    return line_file_fail(f, "sync", errno, why);
}
