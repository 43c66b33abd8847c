/* The new file has a fixed name until it is whole: whoever holds the folder is
 * alone, so what lies there under that name was left by somebody who was
 * killed, and is written over. Signals that would end us wait while the folder
 * is held, which takes no longer than the disk does. */
#include "cli/modelfile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"

static const char new_suffix[] = ".new";

/* Weights are no secret, and whoever installs them need not be whom the server
 * runs as. The data folder is closed to others all the same. */
enum { DATA_MODE = 0700, FOLDER_MODE = 0755, FILE_MODE = 0644 };

static enum err say(struct why *why, int err, const char *path)
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
        return why_err(why, ERR_NO_SPACE, "there is no space for %.300s: %s",
                       path, strerror(err));
    default:
        return why_err(why, ERR_IO, "cannot write %.300s: %s", path,
                       strerror(err));
    }
}

/* Like a call of the system's: zero, or -1 with errno set. */
static int broken(int err)
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

static void data_of(const struct modelfile *m, char data[MODELFILE_PATH_MAX])
{
    snprintf(data, MODELFILE_PATH_MAX, "%.*s",
             STR_ARG(str_parent(str_of(m->folder))));
}

static enum err no_parent(const char *data, struct why *why)
{
    return why_err(why, ERR_NOT_FOUND,
                   "the data folder %.300s cannot be made, because the folder "
                   "it would be in is missing: make that first, or choose "
                   "another with --data",
                   data);
}

/* The folder, or the one that it would be made in, or the one above that. */
enum err modelfile_look(const struct modelfile *m, struct why *why)
{
    char data[MODELFILE_PATH_MAX], above[MODELFILE_PATH_MAX];
    const char *const places[] = {m->folder, data, above};

    data_of(m, data);
    snprintf(above, sizeof(above), "%.*s", STR_ARG(str_parent(str_of(data))));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct stat st;

        if (stat(places[i], &st) != 0) {
            if (errno == ENOENT || errno == ENOTDIR)
                continue;
            return say(why, errno, places[i]);
        }
        if (!S_ISDIR(st.st_mode))
            return why_err(why, ERR_BAD_CONFIG,
                           "%.300s is not a folder: choose another with --data",
                           places[i]);
        return access(places[i], W_OK | X_OK) == 0 ? OK
                                                   : say(why, errno, places[i]);
    }
    return no_parent(data, why);
}

/* Holding the folder. */

static int make_folder(const char *path, mode_t mode, bool *made)
{
    if (FAULT("modelfile.mkdir"))
        return broken(EIO);
    *made = mkdir(path, mode) == 0;
    return *made || errno == EEXIST ? 0 : -1;
}

static enum err make_folders(struct modelfile *m, struct why *why)
{
    char data[MODELFILE_PATH_MAX];

    data_of(m, data);
    if (make_folder(data, DATA_MODE, &m->made_data) != 0)
        return errno == ENOENT ? no_parent(data, why) : say(why, errno, data);
    if (make_folder(m->folder, FOLDER_MODE, &m->made_folder) != 0)
        return say(why, errno, m->folder);
    return OK;
}

/* A file system without such locks has to do without. */
static int lock(int fd)
{
    if (FAULT("modelfile.lock"))
        return broken(EWOULDBLOCK);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno == EBADF ||
        errno == EINVAL || errno == ENOLCK || errno == EOPNOTSUPP)
        return 0;
    return -1;
}

static enum err hold(struct modelfile *m, struct why *why)
{
    m->fd = FAULT("modelfile.open")
                ? broken(EIO)
                : open(m->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (m->fd < 0)
        return errno == ENOENT ? why_err(why, ERR_NOT_FOUND,
                                         "there is no folder %.300s", m->folder)
                               : say(why, errno, m->folder);
    if (lock(m->fd) != 0)
        return why_err(why, ERR_BUSY,
                       "another signalbox is changing %.300s: wait until it "
                       "is done",
                       m->folder);
    return OK;
}

static void hold_signals(struct modelfile *m)
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

    hold_signals(m);
    e = may_make ? make_folders(m, why) : OK;
    if (!e)
        e = hold(m, why);
    if (e)
        modelfile_release(m);
    return e;
}

void modelfile_release(struct modelfile *m)
{
    char data[MODELFILE_PATH_MAX];

    data_of(m, data);
    if (m->made_folder && !m->has_written)
        rmdir(m->folder); /* which stays if something is in it */
    if (m->made_data && !m->has_written)
        rmdir(data);
    if (m->fd >= 0)
        close(m->fd);
    m->fd = -1;
    m->made_data = m->made_folder = m->has_written = false;
    if (m->has_signals)
        sigprocmask(SIG_SETMASK, &m->signals, NULL); /* and this may end us */
    m->has_signals = false;
}

/* Writing. */

static int write_all(int fd, struct str bytes)
{
    while (bytes.n) {
        ssize_t n = FAULT("modelfile.write") ? broken(ENOSPC)
                                             : write(fd, bytes.p, bytes.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes = str_sub(bytes, (size_t)n, bytes.n);
    }
    return FAULT("modelfile.sync") ? broken(EIO) : fsync(fd);
}

static int write_file(const char *path, struct str bytes)
{
    int fd, e;

    fd = FAULT("modelfile.create")
             ? broken(EACCES)
             : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    FILE_MODE);
    if (fd < 0)
        return -1;
    e = write_all(fd, bytes) == 0 ? 0 : errno;
    if (close(fd) != 0 && !e)
        e = errno;
    return e ? broken(e) : 0;
}

static enum err write_and_name(struct modelfile *m, const char *path,
                               struct str bytes, modelfile_check *check,
                               void *ctx, struct why *why)
{
    enum err e;

    if (write_file(path, bytes) != 0)
        return say(why, errno, path);
    e = check(ctx, path, why);
    if (e)
        return e;
    if (FAULT("modelfile.rename") ? broken(EIO) : rename(path, m->path))
        return say(why, errno, m->path);
    m->has_written = true;
    /* It has its name; a power cut that takes it away takes nothing else. */
    if (FAULT("modelfile.sync_folder") ? broken(EIO) : fsync(m->fd))
        return say(why, errno, m->folder);
    return OK;
}

enum err modelfile_write(struct modelfile *m, struct str bytes,
                         modelfile_check *check, void *ctx, struct why *why)
{
    char path[MODELFILE_PATH_MAX + sizeof(new_suffix)];
    enum err e;

    m->has_written = false;
    snprintf(path, sizeof(path), "%s%s", m->path, new_suffix);
    e = write_and_name(m, path, bytes, check, ctx, why);
    if (!m->has_written)
        unlink(path);
    return e;
}

enum err modelfile_remove(struct modelfile *m, struct why *why)
{
    if ((FAULT("modelfile.unlink") ? broken(EIO) : unlink(m->path)) == 0)
        return OK;
    if (errno == ENOENT)
        return why_err(why, ERR_NOT_FOUND, "there is no %.300s", m->path);
    return say(why, errno, m->path);
}
