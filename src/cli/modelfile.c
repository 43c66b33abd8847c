/* The new file has a name of its own until it is whole, "NAME.new-" and six
 * characters: where locks do not work, two installs shall not write into one
 * file. Whoever has the lock is alone, so what lies there under such a name was
 * left by somebody who was killed. Signals that would end us wait while the
 * folder is held, which takes no longer than the disk does.
 *
 * Folders are made before there is anything to lock, so another may lock what
 * we have made before we do, and take away what it has made itself before we
 * lock that. Hence: nobody takes a folder away without its lock, and a lock
 * counts only if the folder is still the one of that name. */
#include "cli/modelfile.h"

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

/* Weights are no secret, and whoever installs them need not be whom the server
 * runs as: the folder and the file are open to all, whatever the umask says.
 * The data folder is not, if it is we who make it. */
enum { DATA_MODE = 0700, FOLDER_MODE = 0755, FILE_MODE = 0644 };

enum { HOLD_TRIES = 100 };

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
    bool made;

    data_of(m, data);
    if (make_folder(data, DATA_MODE, &made) != 0)
        return errno == ENOENT ? no_parent(data, why) : say(why, errno, data);
    m->made_data = m->made_data || made;
    if (make_folder(m->folder, FOLDER_MODE, &made) != 0)
        return errno == ENOENT ? ERR_GONE : say(why, errno, m->folder);
    m->made_folder = m->made_folder || made;
    return OK;
}

/* A file system without such locks has to do without. */
static int lock(struct modelfile *m)
{
    if (FAULT("modelfile.lock"))
        return broken(EWOULDBLOCK);
    m->is_locked = flock(m->fd, LOCK_EX | LOCK_NB) == 0;
    return m->is_locked || errno == EBADF || errno == EINVAL ||
                   errno == ENOLCK || errno == EOPNOTSUPP
               ? 0
               : -1;
}

/* Whether what is open is what has the name. */
static bool is_still_there(const struct modelfile *m)
{
    struct stat open, named;

    if (FAULT("modelfile.gone"))
        rmdir(m->folder); /* as another does whose install has failed */
    return fstat(m->fd, &open) == 0 && stat(m->folder, &named) == 0 &&
           open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

static void let_go(struct modelfile *m)
{
    if (m->fd >= 0)
        close(m->fd);
    m->fd = -1;
    m->is_locked = false;
}

/* ERR_GONE: somebody took the folder away meanwhile. */
static enum err open_and_lock(struct modelfile *m, struct why *why)
{
    m->fd = FAULT("modelfile.open")
                ? broken(EIO)
                : open(m->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (m->fd < 0)
        return errno == ENOENT ? ERR_GONE : say(why, errno, m->folder);
    if (lock(m) != 0)
        return why_err(why, ERR_BUSY,
                       "another signalbox is changing %.300s: wait until it "
                       "is done",
                       m->folder);
    return is_still_there(m) ? OK : ERR_GONE;
}

static enum err hold(struct modelfile *m, bool may_make, struct why *why)
{
    enum err e = ERR_GONE;

    for (int i = 0; i < HOLD_TRIES && e == ERR_GONE; i++) {
        let_go(m);
        e = may_make ? make_folders(m, why) : OK;
        if (!e)
            e = open_and_lock(m, why);
        if (e == ERR_GONE && !may_make)
            return why_err(why, ERR_NOT_FOUND, "there is no folder %.300s",
                           m->folder);
    }
    if (e == ERR_GONE)
        e = why_err(why, ERR_BUSY, "others make and remove %.300s all the time",
                    m->folder);
    return e;
}

/* The names in a folder last once it is synced. One that we may not read we
 * cannot sync: then they last when the system thinks so. */
static int sync_folder(const char *path)
{
    int fd, e;

    if (FAULT("modelfile.sync_above"))
        return broken(EIO);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : -1;
    e = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return e ? broken(e) : 0;
}

/* What was made becomes what it shall be, and lasts. */
static enum err settle_folders(struct modelfile *m, struct why *why)
{
    char data[MODELFILE_PATH_MAX], above[MODELFILE_PATH_MAX];

    data_of(m, data);
    snprintf(above, sizeof(above), "%.*s", STR_ARG(str_parent(str_of(data))));
    if (m->made_folder && fchmod(m->fd, FOLDER_MODE) != 0)
        return say(why, errno, m->folder);
    if (sync_folder(data) != 0)
        return say(why, errno, data);
    if (m->made_data && sync_folder(above) != 0)
        return say(why, errno, above);
    return OK;
}

/* Whether it has the name that a file has until it is whole. */
static bool is_half_written(const struct modelfile *m, const char *entry)
{
    struct str left = str_of(entry), name = str_of(strrchr(m->path, '/') + 1);

    if (!str_starts(left, name))
        return false;
    left = str_sub(left, name.n, left.n);
    return str_eq(left, STR(".new")) || str_starts(left, STR(".new-"));
}

static void sweep(const struct modelfile *m)
{
    DIR *d = opendir(m->folder);
    const struct dirent *entry;

    while (d && (entry = readdir(d)))
        if (is_half_written(m, entry->d_name))
            unlinkat(m->fd, entry->d_name, 0);
    if (d)
        closedir(d);
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
    e = hold(m, may_make, why);
    if (!e && may_make)
        e = settle_folders(m, why);
    if (!e && m->is_locked)
        sweep(m);
    if (e)
        modelfile_release(m);
    return e;
}

void modelfile_release(struct modelfile *m)
{
    char data[MODELFILE_PATH_MAX];

    data_of(m, data);
    if (m->is_locked && m->made_folder && !m->has_written)
        rmdir(m->folder); /* which stays if something is in it */
    if (m->made_data && !m->has_written)
        rmdir(data); /* nobody can hold a folder in it if it is empty */
    let_go(m);
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

/* A file of a new name, which takes the place of the pattern in `path`. */
static int write_file(char *path, struct str bytes)
{
    int fd, e;

    fd = FAULT("modelfile.create") ? broken(EACCES) : mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -1;
    e = write_all(fd, bytes) == 0 ? 0 : errno;
    if (!e && (FAULT("modelfile.mode") ? broken(EPERM) : fchmod(fd, FILE_MODE)))
        e = errno;
    if (close(fd) != 0 && !e)
        e = errno;
    return e ? broken(e) : 0;
}

static enum err write_and_name(struct modelfile *m, char *path,
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
    if (FAULT("modelfile.sync_folder") ? broken(EIO) : fsync(m->fd))
        return why_err(
            why, ERR_IO,
            "%.300s is there and good, but may be gone after a power "
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
    e = write_and_name(m, path, bytes, check, ctx, why);
    if (!m->has_written)
        unlink(path);
    return e;
}

enum err modelfile_remove(struct modelfile *m, struct why *why)
{
    if (!m->is_locked)
        sweep(m); /* else it is done already */
    if ((FAULT("modelfile.unlink") ? broken(EIO) : unlink(m->path)) == 0)
        return OK;
    if (errno == ENOENT)
        return why_err(why, ERR_NOT_FOUND, "there is no %.300s", m->path);
    return say(why, errno, m->path);
}
