/* recorder.so, for LD_PRELOAD: writes down what a program does to the files of
 * one folder, and what it says to others, so that images.c can tell what a
 * power cut would have left at any moment.
 *
 *     RECORD_FOLDER  the folder, as realpath(3) has it
 *     RECORD_LOG     where to append; it may be of an earlier life
 *     RECORD_SYNCS   "no": syncs succeed, and neither happen nor are recorded
 *
 * A write and its record are made under one lock, so that the log has the
 * order in which the kernel got them. A sync covers what was written before it
 * began and counts from its end on, so the lock is free meanwhile. What is
 * said is recorded before it is sent: once it may have been heard, it binds.
 *
 * The memory-mapped -shm file is not recorded: nothing in it outlives the
 * process, and SQLite makes it again. Whatever else could change a file
 * unnoticed (a writable mapping, writev) ends the process instead: a recorder
 * with holes would prove nothing. */

/* Else open, pwrite and others would be other names for open64, pwrite64. */
#undef _FILE_OFFSET_BITS

#include "test/crash/record.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAX_FDS = 65536, SAID_BYTES_MAX = 1 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX];
static size_t folder_bytes;
static int log_fd = -1;
static bool has_no_syncs;
static uint64_t n_records; /* of this life; a replayer adds what was before */

static struct {
    bool is_ours;
    uint64_t file;
} fds[MAX_FDS];

static void fail(const char *what)
{
    fprintf(stderr, "recorder: %s: %s\n", what, strerror(errno));
    abort();
}

/* The real function of that name. */
#define REAL(name)                 \
    static __typeof__(name) *real; \
    if (!real)                     \
    real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("RECORD_FOLDER"), *log = getenv("RECORD_LOG");
    const char *syncs = getenv("RECORD_SYNCS");

    if (!path || !log)
        return;
    folder_bytes = strlen(path);
    if (folder_bytes >= sizeof(folder))
        fail("RECORD_FOLDER");
    memcpy(folder, path, folder_bytes + 1);
    has_no_syncs = syncs && strcmp(syncs, "no") == 0;
    log_fd = (int)syscall(SYS_openat, AT_FDCWD, log,
                          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0)
        fail(log);
}

/* Under the lock. */
static void put(enum record_kind kind, uint64_t file, uint64_t at,
                const struct iovec *parts, int n_parts)
{
    struct record r = {.kind = kind, .file = file, .at = at};
    struct iovec all[4] = {{&r, sizeof(r)}};
    static char zeros[8];
    size_t n = sizeof(r), n_pad;

    if (n_parts > 2)
        fail("too many parts");
    for (int i = 0; i < n_parts; i++) {
        all[i + 1] = parts[i];
        n += parts[i].iov_len;
    }
    r.n_bytes = (uint32_t)(n - sizeof(r));
    n_pad = (8 - n % 8) % 8;
    all[n_parts + 1] = (struct iovec){zeros, n_pad};
    if (syscall(SYS_writev, log_fd, all, n_parts + 2) != (long)(n + n_pad))
        fail("the log");
    n_records++;
}

static void put_bytes(enum record_kind kind, uint64_t file, uint64_t at,
                      const void *bytes, size_t n)
{
    struct iovec part = {(void *)bytes, n};

    put(kind, file, at, &part, 1);
}

/* Its name in the folder; "" is the folder itself, NULL something else. The
 * -shm file and the lock are something else. */
static const char *name_of(const char *path)
{
    const char *name = path + folder_bytes;
    size_t n = strlen(path);

    if (log_fd < 0 || strncmp(path, folder, folder_bytes) != 0)
        return NULL;
    if (*name == '\0')
        return name;
    if (*name != '/' || strchr(name + 1, '/'))
        return NULL;
    if ((n > 4 && strcmp(path + n - 4, "-shm") == 0) ||
        (n > 5 && strcmp(path + n - 5, ".lock") == 0))
        return NULL;
    return name + 1;
}

static int opened(int fd)
{
    char link[64], path[PATH_MAX];
    const char *name;
    struct stat st;
    ssize_t n;

    if (fd < 0 || log_fd < 0)
        return fd;
    if (fd >= MAX_FDS)
        fail("too many files");
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    if (n < 0)
        fail(link);
    path[n] = '\0';
    name = name_of(path);
    if (!name || fstat(fd, &st) != 0)
        return fd;
    pthread_mutex_lock(&lock);
    fds[fd].is_ours = true;
    fds[fd].file = *name ? st.st_ino : RECORD_FOLDER;
    if (*name)
        put_bytes(RECORD_OPEN, st.st_ino, 0, name, strlen(name));
    pthread_mutex_unlock(&lock);
    return fd;
}

static bool is_ours(int fd)
{
    return fd >= 0 && fd < MAX_FDS && fds[fd].is_ours;
}

#define OPEN_MODE(flags)                       \
    mode_t mode = 0;                           \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {   \
        va_list list;                          \
        va_start(list, flags);                 \
        mode = (mode_t)va_arg(list, unsigned); \
        va_end(list);                          \
    }

int open(const char *path, int flags, ...)
{
    REAL(open);
    OPEN_MODE(flags)
    return opened(real(path, flags, mode));
}

int open64(const char *path, int flags, ...)
{
    REAL(open64);
    OPEN_MODE(flags)
    return opened(real(path, flags, mode));
}

int openat(int at, const char *path, int flags, ...)
{
    REAL(openat);
    OPEN_MODE(flags)
    return opened(real(at, path, flags, mode));
}

int openat64(int at, const char *path, int flags, ...)
{
    REAL(openat64);
    OPEN_MODE(flags)
    return opened(real(at, path, flags, mode));
}

int close(int fd)
{
    REAL(close);
    if (is_ours(fd))
        fds[fd].is_ours = false;
    return real(fd);
}

/* What a program tells others: clients, or anyone who reads its marks. Only
 * what could be an acknowledgement is kept. */
static void said(const void *bytes, size_t n)
{
    if (log_fd < 0 || n > SAID_BYTES_MAX ||
        (!memmem(bytes, n, "task_", 5) && !memmem(bytes, n, "ack ", 4)))
        return;
    pthread_mutex_lock(&lock);
    put_bytes(RECORD_SAID, 0, 0, bytes, n);
    pthread_mutex_unlock(&lock);
}

/* Recorded first: a program that is killed in between has a record of a write
 * that it was about to make, which is as good as one that was lost. */
static void will_write(int fd, const void *bytes, size_t n, off_t at)
{
    put_bytes(RECORD_WRITE, fds[fd].file, (uint64_t)at, bytes, n);
}

static ssize_t wrote(ssize_t done, size_t n)
{
    if (done != (ssize_t)n)
        fail("a recorded write failed or was short");
    return done;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    ssize_t done;
    REAL(write);

    if (!is_ours(fd)) {
        said(bytes, n);
        return real(fd, bytes, n);
    }
    pthread_mutex_lock(&lock);
    will_write(fd, bytes, n, lseek(fd, 0, SEEK_CUR));
    done = wrote(real(fd, bytes, n), n);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    ssize_t done;
    REAL(pwrite);

    if (!is_ours(fd))
        return real(fd, bytes, n, at);
    pthread_mutex_lock(&lock);
    will_write(fd, bytes, n, at);
    done = wrote(real(fd, bytes, n, at), n);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
    return pwrite(fd, bytes, n, at);
}

ssize_t writev(int fd, const struct iovec *parts, int n_parts)
{
    REAL(writev);

    if (is_ours(fd))
        fail("writev to a recorded file");
    for (int i = 0; i < n_parts; i++)
        said(parts[i].iov_base, parts[i].iov_len);
    return real(fd, parts, n_parts);
}

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    REAL(send);

    said(bytes, n);
    return real(fd, bytes, n, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    REAL(sendmsg);

    for (size_t i = 0; i < m->msg_iovlen; i++)
        said(m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
    return real(fd, m, flags);
}

int ftruncate(int fd, off_t n)
{
    int rc;
    REAL(ftruncate);

    if (!is_ours(fd))
        return real(fd, n);
    pthread_mutex_lock(&lock);
    rc = real(fd, n);
    if (rc == 0)
        put(RECORD_TRUNCATE, fds[fd].file, (uint64_t)n, NULL, 0);
    pthread_mutex_unlock(&lock);
    return rc;
}

int ftruncate64(int fd, off64_t n)
{
    return ftruncate(fd, n);
}

int posix_fallocate(int fd, off_t at, off_t n)
{
    struct stat st;
    int rc;
    REAL(posix_fallocate);

    if (!is_ours(fd))
        return real(fd, at, n);
    pthread_mutex_lock(&lock);
    rc = real(fd, at, n);
    if (rc == 0 && fstat(fd, &st) == 0)
        put(RECORD_TRUNCATE, fds[fd].file, (uint64_t)st.st_size, NULL, 0);
    pthread_mutex_unlock(&lock);
    return rc;
}

int posix_fallocate64(int fd, off64_t at, off64_t n)
{
    return posix_fallocate(fd, at, n);
}

static int sync_it(int fd, int (*real)(int fd))
{
    uint64_t before;
    int rc;

    if (!is_ours(fd))
        return real(fd);
    if (has_no_syncs)
        return 0;
    pthread_mutex_lock(&lock);
    before = n_records;
    pthread_mutex_unlock(&lock);
    rc = real(fd);
    pthread_mutex_lock(&lock);
    if (rc == 0)
        put(RECORD_SYNC, fds[fd].file, n_records - before, NULL, 0);
    pthread_mutex_unlock(&lock);
    return rc;
}

int fsync(int fd)
{
    REAL(fsync);
    return sync_it(fd, real);
}

int fdatasync(int fd)
{
    REAL(fdatasync);
    return sync_it(fd, real);
}

/* The folder of a relative path is resolved; the file need not be there. */
static const char *name_at(const char *path, char out[PATH_MAX])
{
    char copy[PATH_MAX], *slash;
    size_t n;

    if (strlen(path) >= sizeof(copy))
        return NULL;
    memcpy(copy, path, strlen(path) + 1);
    slash = strrchr(copy, '/');
    if (slash)
        *slash = '\0';
    if (!realpath(slash ? (slash == copy ? "/" : copy) : ".", out))
        return NULL;
    n = strlen(out);
    snprintf(out + n, PATH_MAX - n, "/%s", slash ? slash + 1 : copy);
    return name_of(out);
}

int unlink(const char *path)
{
    char whole[PATH_MAX];
    const char *name = log_fd >= 0 ? name_at(path, whole) : NULL;
    int rc;
    REAL(unlink);

    if (!name)
        return real(path);
    pthread_mutex_lock(&lock);
    rc = real(path);
    if (rc == 0)
        put_bytes(RECORD_UNLINK, 0, 0, name, strlen(name));
    pthread_mutex_unlock(&lock);
    return rc;
}

int rename(const char *from, const char *to)
{
    char whole_from[PATH_MAX], whole_to[PATH_MAX];
    const char *old = log_fd >= 0 ? name_at(from, whole_from) : NULL;
    const char *new = log_fd >= 0 ? name_at(to, whole_to) : NULL;
    int rc;
    REAL(rename);

    if (!old != !new)
        fail("rename into or out of the recorded folder");
    if (!old)
        return real(from, to);
    pthread_mutex_lock(&lock);
    rc = real(from, to);
    if (rc == 0)
        put(RECORD_RENAME, 0, 0,
            (struct iovec[]){{(void *)old, strlen(old) + 1},
                             {(void *)new, strlen(new)}},
            2);
    pthread_mutex_unlock(&lock);
    return rc;
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (is_ours(fd) && prot & PROT_WRITE && flags & MAP_SHARED)
        fail("a writable mapping of a recorded file");
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset)
{
    return mmap(at, n, prot, flags, fd, offset);
}
