/* Until it is complete, a new file is called "NAME.new-" and six characters.
 * The name is unique, so two installs do not write into one file where locks do
 * not work. The lock excludes other processes, so a file with such a name was
 * left by one that was killed. Signals that would end the process are blocked
 * while the folder is locked, which takes no longer than the disk does.
 *
 * A folder is created before it can be locked. So another process may lock a
 * folder that this one created, or remove one before this one locks it. Hence a
 * folder is removed only by the owner of its lock, and a lock is valid only if
 * the folder still has its name. */
#include "lab/modelfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"

static const char new_pattern[] = ".new-XXXXXX"; /* of mkostemp */

/* Weights are not secret, and the user who installs them may differ from the
 * server's: the folder and the file are readable by all, regardless of the
 * umask. The data folder is private if it is created here. */
enum { DATA_MODE = 0700, FOLDER_MODE = 0755, FILE_MODE = 0644 };

enum { HOLD_TRIES = 100 };

static enum err modelfile_why(struct why *why, int err, const char *path)
{
    switch (err) {
    case EACCES:
    case EPERM:
    case EROFS:
        return why_err(why, ERR_NOT_ALLOWED,
                       "no permission to write to %.300s: %s", path,
                       strerror(err));
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return why_err(why, ERR_NO_SPACE, "no space left for %.300s: %s", path,
                       strerror(err));
    case EISDIR:
        return why_err(why, ERR_IO, "%.300s is a folder: move it away", path);
    default:
        return why_err(why, ERR_IO, "cannot write %.300s: %s", path,
                       strerror(err));
    }
}

/* Fails like a system call. */
static int modelfile_fault(int err)
{
    errno = err;
    return -1;
}

enum err modelfile_find(struct modelfile *m, struct str data, const char *name,
                        struct why *why)
{
    int room = MODELFILE_PATH_MAX - (int)strlen(name) - 32;

    *m = (struct modelfile){.fd = -1};
    if (data.n > (size_t)room)
        return why_err(why, ERR_LIMIT, "the data folder's name is too long");
    snprintf(m->folder, sizeof(m->folder), "%.*s/models", STR_ARG(data));
    snprintf(m->path, sizeof(m->path), "%.*s/%s", room + 8, m->folder, name);
    return OK;
}

static void modelfile_data_folder(const struct modelfile *m,
                                  char data[MODELFILE_PATH_MAX])
{
    snprintf(data, MODELFILE_PATH_MAX, "%.*s",
             STR_ARG(str_parent(str_of(m->folder))));
}

static enum err modelfile_no_parent(const char *data, struct why *why)
{
    return why_err(why, ERR_NOT_FOUND,
                   "cannot create the data folder %.300s, because its parent "
                   "folder is missing: create that first, or choose another "
                   "with --data",
                   data);
}

/* Checks the folder, or the nearest existing one above it. */
enum err modelfile_look(const struct modelfile *m, struct why *why)
{
    char data[MODELFILE_PATH_MAX], above[MODELFILE_PATH_MAX];
    const char *const places[] = {m->folder, data, above};

    modelfile_data_folder(m, data);
    snprintf(above, sizeof(above), "%.*s", STR_ARG(str_parent(str_of(data))));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct stat st;

        if (stat(places[i], &st) != 0) {
            if (errno == ENOENT || errno == ENOTDIR)
                continue;
            return modelfile_why(why, errno, places[i]);
        }
        if (!S_ISDIR(st.st_mode))
            return why_err(why, ERR_BAD_CONFIG,
                           "%.300s is not a folder: choose another with --data",
                           places[i]);
        return access(places[i], W_OK | X_OK) == 0
                   ? OK
                   : modelfile_why(why, errno, places[i]);
    }
    return modelfile_no_parent(data, why);
}

/* Holding the folder. */

static int modelfile_make_folder(const char *path, mode_t mode, bool *made)
{
    if (FAULT("modelfile.mkdir"))
        return modelfile_fault(EIO);
    *made = mkdir(path, mode) == 0;
    return *made || errno == EEXIST ? 0 : -1;
}

static enum err modelfile_make_folders(struct modelfile *m, struct why *why)
{
    char data[MODELFILE_PATH_MAX];
    bool made;

    modelfile_data_folder(m, data);
    if (modelfile_make_folder(data, DATA_MODE, &made) != 0)
        return errno == ENOENT ? modelfile_no_parent(data, why)
                               : modelfile_why(why, errno, data);
    m->made_data = m->made_data || made;
    if (modelfile_make_folder(m->folder, FOLDER_MODE, &made) != 0)
        return errno == ENOENT ? ERR_GONE
                               : modelfile_why(why, errno, m->folder);
    m->made_folder = m->made_folder || made;
    return OK;
}

/* A file system without locks is accepted. */
static int modelfile_flock(struct modelfile *m)
{
    if (FAULT("modelfile.lock"))
        return modelfile_fault(EWOULDBLOCK);
    m->is_locked = flock(m->fd, LOCK_EX | LOCK_NB) == 0;
    return m->is_locked || errno == EBADF || errno == EINVAL ||
                   errno == ENOLCK || errno == EOPNOTSUPP
               ? 0
               : -1;
}

/* Whether the open folder still has its name. */
static bool modelfile_folder_is_current(const struct modelfile *m)
{
    struct stat open, named;

    if (FAULT("modelfile.gone"))
        rmdir(m->folder); /* like another process after a failed install */
    return fstat(m->fd, &open) == 0 && stat(m->folder, &named) == 0 &&
           open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

static void modelfile_unlock(struct modelfile *m)
{
    if (m->fd >= 0)
        close(m->fd);
    m->fd = -1;
    m->is_locked = false;
}

/* ERR_GONE: another process removed the folder meanwhile. */
static enum err modelfile_open_and_lock(struct modelfile *m, struct why *why)
{
    m->fd = FAULT("modelfile.open")
                ? modelfile_fault(EIO)
                : open(m->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (m->fd < 0)
        return errno == ENOENT ? ERR_GONE
                               : modelfile_why(why, errno, m->folder);
    if (modelfile_flock(m) != 0)
        return why_err(why, ERR_BUSY,
                       "another signalbox is changing %.300s: wait until it "
                       "is done",
                       m->folder);
    return modelfile_folder_is_current(m) ? OK : ERR_GONE;
}

static enum err modelfile_lock_folder(struct modelfile *m, bool may_make,
                                      struct why *why)
{
    enum err e = ERR_GONE;

    for (int i = 0; i < HOLD_TRIES && e == ERR_GONE; i++) {
        modelfile_unlock(m);
        e = may_make ? modelfile_make_folders(m, why) : OK;
        if (!e)
            e = modelfile_open_and_lock(m, why);
        if (e == ERR_GONE && !may_make)
            return why_err(why, ERR_NOT_FOUND, "there is no folder %.300s",
                           m->folder);
    }
    if (e == ERR_GONE)
        e = why_err(why, ERR_BUSY,
                    "other processes keep creating and removing %.300s",
                    m->folder);
    return e;
}

/* Syncing a folder makes its names durable. A folder without read permission
 * cannot be synced; the system writes it some time later. */
static int modelfile_sync_folder(const char *path)
{
    int fd, e;

    if (FAULT("modelfile.sync_above"))
        return modelfile_fault(EIO);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : -1;
    e = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return e ? modelfile_fault(e) : 0;
}

/* Sets the mode of created folders and makes them durable. */
static enum err modelfile_settle_folders(struct modelfile *m, struct why *why)
{
    char data[MODELFILE_PATH_MAX], above[MODELFILE_PATH_MAX];

    modelfile_data_folder(m, data);
    snprintf(above, sizeof(above), "%.*s", STR_ARG(str_parent(str_of(data))));
    if (m->made_folder && fchmod(m->fd, FOLDER_MODE) != 0)
        return modelfile_why(why, errno, m->folder);
    if (modelfile_sync_folder(data) != 0)
        return modelfile_why(why, errno, data);
    if (m->made_data && modelfile_sync_folder(above) != 0)
        return modelfile_why(why, errno, above);
    return OK;
}

/* Whether the entry has the name of an incomplete file. */
static bool modelfile_is_incomplete(const struct modelfile *m,
                                    const char *entry)
{
    struct str left = str_of(entry), name = str_of(strrchr(m->path, '/') + 1);

    if (!str_starts(left, name))
        return false;
    left = str_sub(left, name.n, left.n);
    return str_eq(left, STR(".new")) || str_starts(left, STR(".new-"));
}

static void modelfile_sweep(const struct modelfile *m)
{
    DIR *d = opendir(m->folder);
    const struct dirent *entry;

    while (d && (entry = readdir(d)))
        if (modelfile_is_incomplete(m, entry->d_name))
            unlinkat(m->fd, entry->d_name, 0);
    if (d)
        closedir(d);
}

static void modelfile_block_signals(struct modelfile *m)
{
    sigset_t ending;

    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    sigaddset(&ending, SIGQUIT);
    sigprocmask(SIG_BLOCK, &ending, &m->signals);
    m->has_signals = true;
}

enum err modelfile_hold(struct modelfile *m, bool may_make, struct why *why)
{
    enum err e;

    modelfile_block_signals(m);
    e = modelfile_lock_folder(m, may_make, why);
    if (!e && may_make)
        e = modelfile_settle_folders(m, why);
    if (!e && m->is_locked)
        modelfile_sweep(m);
    if (e)
        modelfile_release(m);
    return e;
}

void modelfile_release(struct modelfile *m)
{
    char data[MODELFILE_PATH_MAX];

    modelfile_data_folder(m, data);
    if (m->is_locked && m->made_folder && !m->has_written)
        rmdir(m->folder); /* fails if it is not empty */
    if (m->made_data && !m->has_written)
        rmdir(data); /* if it is empty, no process has a folder in it locked */
    modelfile_unlock(m);
    m->made_data = m->made_folder = m->has_written = false;
    if (m->has_signals)
        sigprocmask(SIG_SETMASK, &m->signals, NULL); /* may end the process */
    m->has_signals = false;
}

/* Writing. */

static int modelfile_write_all(int fd, struct str bytes)
{
    while (bytes.n) {
        ssize_t n = FAULT("modelfile.write") ? modelfile_fault(ENOSPC)
                                             : write(fd, bytes.p, bytes.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes = str_sub(bytes, (size_t)n, bytes.n);
    }
    return FAULT("modelfile.sync") ? modelfile_fault(EIO) : fsync(fd);
}

/* Writes a file with a new name, which replaces the pattern in `path`. */
static int modelfile_write_temporary(char *path, struct str bytes)
{
    int fd, e;

    fd = FAULT("modelfile.create") ? modelfile_fault(EACCES)
                                   : mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -1;
    e = modelfile_write_all(fd, bytes) == 0 ? 0 : errno;
    if (!e && (FAULT("modelfile.mode") ? modelfile_fault(EPERM)
                                       : fchmod(fd, FILE_MODE)))
        e = errno;
    if (close(fd) != 0 && !e)
        e = errno;
    return e ? modelfile_fault(e) : 0;
}

static enum err modelfile_write_and_rename(struct modelfile *m, char *path,
                                           struct str bytes,
                                           modelfile_check *check, void *ctx,
                                           struct why *why)
{
    enum err e;

    if (modelfile_write_temporary(path, bytes) != 0)
        return modelfile_why(why, errno, path);
    e = check(ctx, path, why);
    if (e)
        return e;
    if (FAULT("modelfile.rename") ? modelfile_fault(EIO)
                                  : rename(path, m->path))
        return modelfile_why(why, errno, m->path);
    m->has_written = true;
    if (FAULT("modelfile.sync_folder") ? modelfile_fault(EIO) : fsync(m->fd))
        return why_err(
            why, ERR_IO,
            "%.300s is in place and valid, but may be gone after a power "
            "cut: its folder cannot be synced: %s",
            m->path, strerror(errno));
    return OK;
}

enum err modelfile_write(struct modelfile *m, struct str bytes,
                         modelfile_check *check, void *ctx, struct why *why)
{
    char path[MODELFILE_PATH_MAX + sizeof(new_pattern)];
    enum err e;

    m->has_written = false;
    snprintf(path, sizeof(path), "%s%s", m->path, new_pattern);
    e = modelfile_write_and_rename(m, path, bytes, check, ctx, why);
    if (!m->has_written)
        unlink(path);
    return e;
}

enum err modelfile_remove(struct modelfile *m, struct why *why)
{
    if (!m->is_locked)
        modelfile_sweep(m); /* with a lock modelfile_hold has done it */
    if ((FAULT("modelfile.unlink") ? modelfile_fault(EIO) : unlink(m->path)) ==
        0)
        return OK;
    if (errno == ENOENT)
        return why_err(why, ERR_NOT_FOUND, "there is no %.300s", m->path);
    return modelfile_why(why, errno, m->path);
}
