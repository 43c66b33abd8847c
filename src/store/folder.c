#include "store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"

static const char lock_name[] = "signalbox.lock";

static enum err say(struct why *why, int err, const char *path)
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

static enum err say_busy(struct why *why, int lock_fd, const char *path)
{
    char pid[24] = "";

    /* Its owner wrote its number there; a lock without one is as good. */
    if (pread(lock_fd, pid, sizeof(pid) - 1, 0) <= 0)
        pid[0] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    return why_err(why, ERR_BUSY,
                   "the data folder %s is in use by another signalbox%s%s: "
                   "stop that one, or choose another folder with --data",
                   path, pid[0] ? ", process " : "", pid);
}

/* Open the lock file; -1 with errno set. */
static int open_lock(const char *path, int flags)
{
    int folder, lock_fd;

    if (FAULT("store.folder")) {
        errno = EIO;
        return -1;
    }
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    lock_fd = openat(folder, lock_name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    close(folder);
    return lock_fd;
}

static bool write_pid(int fd)
{
    char pid[24];
    int n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());

    if (FAULT("store.pid")) {
        errno = ENOSPC;
        return false;
    }
    return ftruncate(fd, 0) == 0 && pwrite(fd, pid, (size_t)n, 0) == n;
}

/* Locks of the open file rather than of the process (flock would do too, but
 * one cannot ask about a flock without taking it). -1 with errno set. */
static int lock_file(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (FAULT("store.lock")) {
        errno = ENOLCK;
        return -1;
    }
    return fcntl(fd, F_OFD_SETLK, &whole);
}

static bool is_locked(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

static enum err take_lock(struct store_folder *f, struct why *why)
{
    enum err e = OK;

    f->lock_fd = open_lock(f->path, O_RDWR | O_CREAT);
    if (f->lock_fd < 0)
        return say(why, errno, f->path);
    if (lock_file(f->lock_fd) != 0)
        e = errno == EAGAIN || errno == EACCES
                ? say_busy(why, f->lock_fd, f->path)
                : say(why, errno, f->path);
    else if (!write_pid(f->lock_fd))
        e = say(why, errno, f->path);
    if (e) {
        close(f->lock_fd);
        f->lock_fd = -1;
    }
    return e;
}

static bool is_shared(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_mode & (S_IWGRP | S_IWOTH);
}

enum err store_folder_open(struct store_folder *f, struct str path,
                           struct why *why)
{
    enum err e;

    *f = (struct store_folder){.lock_fd = -1};
    f->path = FAULT("store.path") ? NULL : strndup(path.p, path.n);
    if (!f->path)
        return why_err(why, ERR_NOMEM, "out of memory");
    if (FAULT("store.mkdir"))
        e = say(why, EIO, f->path);
    else if (mkdir(f->path, 0700) != 0 && errno != EEXIST)
        e = say(why, errno, f->path);
    else
        e = take_lock(f, why);
    f->is_shared = !e && is_shared(f->path);
    if (e)
        store_folder_close(f);
    return e;
}

void store_folder_close(struct store_folder *f)
{
    if (f->lock_fd >= 0)
        close(f->lock_fd);
    free(f->path);
    *f = (struct store_folder){.lock_fd = -1};
}

/* For a folder that is not there yet: could it be made? */
static enum err look_above(struct str path, struct why *why)
{
    struct str parent = str_parent(path);
    char *above = strndup(parent.p, parent.n);
    enum err e = OK;

    if (!above)
        return why_err(why, ERR_NOMEM, "out of memory");
    if (access(above, W_OK | X_OK) != 0)
        e = errno == ENOENT
                ? why_err(why, ERR_NOT_FOUND,
                          "the folder %s is missing: make it first, or choose "
                          "another data folder with --data",
                          above)
                : say(why, errno, above);
    free(above);
    return e;
}

static enum err look_at(const char *path, struct why *why)
{
    struct stat st;
    int fd;
    enum err e = OK;

    if (stat(path, &st) != 0)
        return errno == ENOENT ? look_above(str_of(path), why)
                               : say(why, errno, path);
    if (!S_ISDIR(st.st_mode))
        return say(why, ENOTDIR, path);
    if (access(path, W_OK | X_OK) != 0)
        return say(why, errno, path);
    fd = open_lock(path, O_RDWR);
    if (fd < 0)
        return errno == ENOENT ? OK : say(why, errno, path);
    if (is_locked(fd))
        e = say_busy(why, fd, path);
    close(fd);
    return e;
}

enum err store_folder_look(struct str path, struct why *why)
{
    char *copy = strndup(path.p, path.n);
    enum err e = copy ? look_at(copy, why) : ERR_NOMEM;

    free(copy);
    return e;
}

bool store_folder_is_ours(struct str path)
{
    char *copy = strndup(path.p, path.n);
    int fd = copy ? open_lock(copy, O_RDONLY) : -1;

    free(copy);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int open_mark(struct str folder, int flags)
{
    char path[DB_PATH_MAX];

    if (db_path(path, folder, MARK_NAME, NULL) != OK)
        return -1;
    return open(path, flags | O_CLOEXEC, 0600);
}

/* In place: so few bytes are written whole or not at all. */
void mark_write(struct str folder, int64_t epoch)
{
    int fd = open_mark(folder, O_WRONLY | O_CREAT);

    if (fd < 0)
        return;
    if (dprintf(fd, "%019lld\n", (long long)epoch) > 0)
        (void)fsync(fd);
    close(fd);
}

int64_t mark_read(struct str folder)
{
    int fd = open_mark(folder, O_RDONLY);
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
