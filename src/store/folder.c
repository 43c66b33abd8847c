/* The data folder has two locks, taken in this order. The one on the lock file
 * can be queried, and the file names its owner. But a file can be deleted, and
 * the next server would create and lock another. So the folder itself is locked
 * too, which cannot be removed without the database.
 *
 * The lock file has the process id of its present or last owner and, once the
 * folder has data to rely on, an empty line after it. So other programs can
 * still read the file as a number.
 *
 * A used folder without a database has lost it, and no server starts there by
 * itself. Without a lock file, other files that servers leave beside a database
 * show that there was one. An interrupted first start loses nothing, since
 * nothing was promised yet. Its lock file has no empty line, and it is on disk,
 * like the database, before any of those files exists (sqlite.c). */
#include "store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"

enum {
    LOCK_TRIES = 100, /* a millisecond each: longer than any query of it */
    LOCK_TEXT_MAX = 24,
};

static const char lock_name[] = "signalbox.lock";

static enum err folder_error(struct why *why, int err, const char *path)
{
    switch (err) {
    case ENOENT:
        return why_err(why, ERR_NOT_FOUND,
                       "the data folder %s cannot be made, because the folder "
                       "it would be in is missing: make that first, or choose "
                       "another with --data",
                       path);
    case EACCES:
    case EPERM:
        return why_err(why, ERR_NOT_ALLOWED,
                       "no permission to write to the data folder %s: change "
                       "its owner, or choose another with --data",
                       path);
    case EROFS:
        return why_err(why, ERR_NOT_ALLOWED,
                       "the data folder %s is on a read-only file system: "
                       "choose another with --data",
                       path);
    case ENOTDIR:
    case EEXIST:
        return why_err(why, ERR_BAD_CONFIG,
                       "%s is not a folder: choose another with --data", path);
    case ENOSPC:
    case EDQUOT:
        return why_err(why, ERR_NO_SPACE,
                       "no space left for the data folder %s: free some, or "
                       "choose another with --data",
                       path);
    default:
        return why_err(why, ERR_IO, "cannot use the data folder %s: %s", path,
                       strerror(err));
    }
}

static enum err folder_busy_error(struct why *why, int lock_fd,
                                  const char *path)
{
    char pid[LOCK_TEXT_MAX] = "";

    /* The owner wrote its process id there; a lock without one also counts. */
    if (lock_fd < 0 || pread(lock_fd, pid, sizeof(pid) - 1, 0) <= 0)
        pid[0] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    return why_err(why, ERR_BUSY,
                   "the data folder %s is in use by another signalbox%s%s: "
                   "stop that one, or choose another folder with --data",
                   path, pid[0] ? ", process " : "", pid);
}

/* Open the folder; -1 with errno set. */
static int folder_open(const char *path)
{
    if (FAULT("store.folder")) {
        errno = EIO;
        return -1;
    }
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Open the lock file in it; -1 with errno set. */
static int folder_open_lock(int folder_fd, int flags)
{
    return openat(folder_fd, lock_name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* The empty line stays in place while the number changes. */
static bool lock_write_pid(int fd, bool is_used)
{
    char text[LOCK_TEXT_MAX];
    int n = snprintf(text, sizeof(text), "%ld\n%s", (long)getpid(),
                     is_used ? "\n" : "");

    if (FAULT("store.pid")) {
        errno = ENOSPC;
        return false;
    }
    return pwrite(fd, text, (size_t)n, 0) == n && ftruncate(fd, n) == 0;
}

static bool lock_says_used(int lock_fd)
{
    char text[LOCK_TEXT_MAX];
    ssize_t n = pread(lock_fd, text, sizeof(text), 0);

    return n >= 2 && text[n - 1] == '\n' && text[n - 2] == '\n';
}

/* Lock the open file description, not the process. Rejected: flock, which
 * cannot be queried without taking it. -1 with errno set. */
static int lock_take(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (FAULT("store.lock")) {
        errno = ENOLCK;
        return -1;
    }
    return fcntl(fd, F_OFD_SETLK, &whole);
}

static bool lock_is_taken(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

/* A query takes this lock for an instant, so wait a little. On a file system
 * without such locks the other one must do. -1 with errno set. */
static int folder_lock(int fd)
{
    const struct timespec instant = {.tv_nsec = 1000 * 1000};

    if (FAULT("store.folder_lock")) {
        errno = EIO;
        return -1;
    }
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno == EBADF || errno == EINVAL || errno == ENOLCK ||
            errno == EOPNOTSUPP)
            return 0;
        if (errno != EWOULDBLOCK || i == LOCK_TRIES)
            return -1;
        nanosleep(&instant, NULL);
    }
    return 0;
}

/* This lock cannot be queried without taking it. */
static bool folder_is_locked(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    flock(fd, LOCK_UN);
    return false;
}

/* Whether there are files that servers leave beside their database. */
static bool folder_has_relics(int folder_fd)
{
    static const char *const names[] = {MARK_NAME, "index.snapshot"};
    struct stat st;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (fstatat(folder_fd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

static enum err folder_take_locks(struct store_folder *f, struct why *why)
{
    bool had_lock = true;

    f->folder_fd = folder_open(f->path);
    if (f->folder_fd < 0)
        return folder_error(why, errno, f->path);
    f->lock_fd = folder_open_lock(f->folder_fd, O_RDWR);
    if (f->lock_fd < 0 && errno == ENOENT) {
        had_lock = false;
        f->lock_fd = folder_open_lock(f->folder_fd, O_RDWR | O_CREAT);
    }
    if (f->lock_fd < 0)
        return folder_error(why, errno, f->path);
    if (lock_take(f->lock_fd) != 0 || folder_lock(f->folder_fd) != 0)
        return errno == EAGAIN || errno == EACCES
                   ? folder_busy_error(why, f->lock_fd, f->path)
                   : folder_error(why, errno, f->path);
    f->was_used = lock_says_used(f->lock_fd) ||
                  (!had_lock && folder_has_relics(f->folder_fd));
    return lock_write_pid(f->lock_fd, f->was_used)
               ? OK
               : folder_error(why, errno, f->path);
}

enum err store_folder_open(struct store_folder *f, struct str path,
                           struct why *why)
{
    struct stat st;
    enum err e;

    *f = (struct store_folder){.lock_fd = -1, .folder_fd = -1};
    f->path = mem_copy(path.p, path.n);
    if (FAULT("store.mkdir"))
        e = folder_error(why, EIO, f->path);
    else if (mkdir(f->path, 0700) != 0 && errno != EEXIST)
        e = folder_error(why, errno, f->path);
    else
        e = folder_take_locks(f, why);
    f->is_shared =
        !e && stat(f->path, &st) == 0 && st.st_mode & (S_IWGRP | S_IWOTH);
    if (e)
        store_folder_close(f);
    return e;
}

void store_folder_close(struct store_folder *f)
{
    if (f->lock_fd >= 0)
        close(f->lock_fd);
    if (f->folder_fd >= 0)
        close(f->folder_fd);
    free(f->path);
    *f = (struct store_folder){.lock_fd = -1, .folder_fd = -1};
}

static bool folder_has_file(int folder_fd, const char *name)
{
    struct stat st;

    return fstatat(folder_fd, name, &st, 0) == 0 && st.st_size > 0;
}

bool store_folder_has_data(const struct store_folder *f)
{
    return folder_has_file(f->folder_fd, DB_NAME);
}

enum err store_folder_check(const struct store_folder *f, struct why *why)
{
    if (!f->was_used || store_folder_has_data(f) ||
        folder_has_file(f->folder_fd,
                        DB_NAME "-wal") || /* store_open reports it */
        PLANTED("store.begin_anew"))
        return OK;
    return why_err(why, ERR_BAD_CONFIG,
                   "the database " DB_NAME " is missing or empty, though the "
                   "data folder %s has been used before: put it back, go back "
                   "to a backup with signalbox restore FILE, or begin with "
                   "nothing with signalbox serve --from-scratch",
                   f->path);
}

void store_folder_set_used(struct store_folder *f)
{
    if (!f->was_used)
        f->was_used = lock_write_pid(f->lock_fd, true);
}

/* Whether a missing folder could be created. */
static enum err folder_look_at_parent(struct str path, struct why *why)
{
    struct str parent = str_parent(path);
    char *above = mem_copy(parent.p, parent.n);
    enum err e = OK;

    if (access(above, W_OK | X_OK) != 0)
        e = errno == ENOENT
                ? why_err(why, ERR_NOT_FOUND,
                          "the folder %s is missing: make it first, or choose "
                          "another data folder with --data",
                          above)
                : folder_error(why, errno, above);
    free(above);
    return e;
}

static enum err folder_look_at_locks(int folder_fd, const char *path,
                                     struct why *why)
{
    int fd = folder_open_lock(folder_fd, O_RDWR);
    enum err e = OK;

    if (fd < 0 && errno != ENOENT)
        e = folder_error(why, errno, path);
    else if ((fd >= 0 && lock_is_taken(fd)) || folder_is_locked(folder_fd))
        e = folder_busy_error(why, fd, path);
    if (fd >= 0)
        close(fd);
    return e;
}

static enum err folder_look(const char *path, struct why *why)
{
    struct stat st;
    int fd;
    enum err e;

    if (stat(path, &st) != 0)
        return errno == ENOENT ? folder_look_at_parent(str_of(path), why)
                               : folder_error(why, errno, path);
    if (!S_ISDIR(st.st_mode))
        return folder_error(why, ENOTDIR, path);
    if (access(path, W_OK | X_OK) != 0)
        return folder_error(why, errno, path);
    fd = folder_open(path);
    if (fd < 0)
        return folder_error(why, errno, path);
    e = folder_look_at_locks(fd, path, why);
    close(fd);
    return e;
}

enum err store_folder_look(struct str path, struct why *why)
{
    char *copy = mem_copy(path.p, path.n);
    enum err e = folder_look(copy, why);

    free(copy);
    return e;
}

/* Whether it has a lock file, and in *used whether that is marked as used. */
static bool folder_has_lock(struct str path, bool *used)
{
    char *copy = mem_copy(path.p, path.n);
    int folder_fd = folder_open(copy);
    int fd = folder_fd < 0 ? -1 : folder_open_lock(folder_fd, O_RDONLY);

    *used = fd >= 0 && lock_says_used(fd);
    free(copy);
    if (folder_fd >= 0)
        close(folder_fd);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

bool store_folder_is_ours(struct str path)
{
    bool used;

    return folder_has_lock(path, &used);
}

bool store_folder_was_used(struct str path)
{
    bool used;

    return folder_has_lock(path, &used) && used;
}

static int epoch_mark_open(struct str folder, int flags)
{
    char path[DB_PATH_MAX];

    if (db_path(path, folder, MARK_NAME, NULL) != OK)
        return -1;
    return open(path, flags | O_CLOEXEC, 0600);
}

/* In place: so few bytes are written completely or not at all. */
void epoch_mark_write(struct str folder, int64_t epoch)
{
    int fd = epoch_mark_open(folder, O_WRONLY | O_CREAT);

    if (fd < 0)
        return;
    if (dprintf(fd, "%019lld\n", (long long)epoch) > 0)
        (void)fsync(fd);
    close(fd);
}

int64_t epoch_mark_read(struct str folder)
{
    int fd = epoch_mark_open(folder, O_RDONLY);
    char text[20];
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
    int64_t epoch = 0;

    if (fd >= 0)
        close(fd);
    for (int i = 0; i < 19 && n == 20; i++)
        epoch = text[i] >= '0' && text[i] <= '9' && epoch <= EPOCH_MAX
                    ? epoch * 10 + text[i] - '0'
                    : EPOCH_MAX + 1;
    return epoch <= EPOCH_MAX ? epoch : 0;
}
