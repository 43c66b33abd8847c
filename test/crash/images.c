/* crash_images CHECK LOG N SEED: makes N images of what a power cut could have
 * left at moments of the log (disk.h says which), opens each with the store's
 * own code and looks whether all that had been acknowledged is there, whole.
 *
 * Half of the images are from moments just after something was acknowledged,
 * where the claims are strongest; one in ten is from the very beginning, where
 * the database comes to be; the others are from anywhere. The last line says
 * how many there were and what was found, as JSON; the first few findings come
 * before it, each with the seed that makes it again. Exit status 1 when
 * something was found, 2 when the log itself is no good.
 *
 * The same is done by as many processes as there are processors, each over the
 * whole log with its share of the images. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "test/crash/check.h"
#include "test/crash/disk.h"

enum { MAX_WORKERS = 8, MAX_SHOWN = 5 };

static const char *const finding_names[N_FINDING] = {
    [FOUND_NOTHING] = "good",      [FOUND_LOST] = "lost",
    [FOUND_HALF] = "half",         [FOUND_DAMAGED] = "damaged",
    [FOUND_CLOSED] = "not_opened",
};

struct entry {
    const struct record *r;
    const char *bytes;
};

struct log {
    struct entry *entries;
    size_t n, room;
};

struct moment {
    size_t after; /* so many records */
    enum survival how;
    uint64_t seed;
};

/* Shared between the workers. */
struct tally {
    long found[N_FINDING];
    long of_unsynced; /* images where something was at stake */
    long acks;
};

static void die(const char *what)
{
    fprintf(stderr, "crash_images: %s\n", what);
    exit(2);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return *state >> 33;
}

static void read_log(struct log *log, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    const char *at, *end;

    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0)
        die("no log, or an empty one");
    at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        die("mmap");
    close(fd);
    for (end = at + st.st_size; at < end;) {
        const struct record *r = (const struct record *)at;
        if (log->n == log->room) {
            log->room = log->room ? log->room * 2 : 4096;
            log->entries =
                realloc(log->entries, log->room * sizeof(log->entries[0]));
            if (!log->entries)
                die("memory");
        }
        log->entries[log->n++] = (struct entry){r, at + sizeof(struct record)};
        /* Heads stay aligned: the recorder pads. */
        at += sizeof(struct record) + (r->n_bytes + 7u) / 8 * 8;
    }
    if (at != end)
        die("the log is cut off");
}

static struct str bytes_of(const struct entry *e)
{
    return (struct str){e->bytes, e->r->n_bytes};
}

static bool is_said(const struct log *log, size_t i)
{
    return i < log->n && log->entries[i].r->kind == RECORD_SAID;
}

/* The moments after acknowledgements that the disk did nothing in between
 * are one moment, the last: it has the strongest claims. */
static size_t find_acks(const struct log *log, const struct check *check,
                        size_t *out)
{
    void *claims = check->new ();
    bool has_new = false;
    size_t n = 0;

    for (size_t i = 0; i < log->n; i++) {
        if (is_said(log, i) && check->hear(claims, bytes_of(&log->entries[i])))
            has_new = true;
        if (has_new && !is_said(log, i + 1)) {
            out[n++] = i + 1;
            has_new = false;
        }
    }
    check->free(claims);
    return n;
}

static int by_time(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;

    return (x->after > y->after) - (x->after < y->after);
}

static struct moment *choose_moments(const struct log *log,
                                     const struct check *check, size_t n,
                                     uint64_t seed, long *n_acks)
{
    size_t *acks = calloc(log->n + 1, sizeof(*acks)), n_found;
    struct moment *m = calloc(n, sizeof(*m));

    if (!acks || !m)
        die("memory");
    n_found = find_acks(log, check, acks);
    if (!n_found)
        die("nothing was ever acknowledged");
    *n_acks = (long)n_found;
    for (size_t i = 0; i < n; i++) {
        bool at_ack = i % 2 == 0;
        size_t most = i % 10 == 9 ? acks[0] : log->n;
        m[i].after = at_ack ? acks[next_random(&seed) % n_found]
                            : next_random(&seed) % (most + 1);
        /* In turn, so that a small number of images has all kinds too. */
        m[i].how = (enum survival)(i / 2 % N_SURVIVAL);
        m[i].seed = next_random(&seed);
        if (at_ack && i / 2 < n_found)
            m[i].after = acks[i / 2 * (n_found / (n / 2 + 1) + 1) % n_found];
    }
    qsort(m, n, sizeof(*m), by_time);
    free(acks);
    return m;
}

/* Whatever an image, or the store that opened it, has left. */
static void empty(const char *folder)
{
    DIR *d = opendir(folder);
    char path[PATH_MAX];
    struct dirent *e;

    if (!d)
        die(folder);
    while ((e = readdir(d))) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        unlink(path); /* not those two that stand for folders */
    }
    closedir(d);
}

static void look(const struct check *check, const struct disk *d,
                 const void *claims, const struct moment *m, const char *folder,
                 struct tally *tally)
{
    struct why why = {0};
    enum finding f;

    empty(folder);
    disk_image(d, m->how, m->seed, folder);
    f = check->look(claims, folder, &why);
    if (f == FOUND_NOTHING)
        f = check_integrity(folder, &why);
    __atomic_add_fetch(&tally->of_unsynced, disk_unsynced(d) > 0,
                       __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&tally->found[f], 1, __ATOMIC_RELAXED) <=
            MAX_SHOWN &&
        f != FOUND_NOTHING)
        printf("%s after record %zu, survival %d, seed %llu: %s\n",
               finding_names[f], m->after, (int)m->how,
               (unsigned long long)m->seed, why.text);
}

static void work(const struct log *log, const struct check *check,
                 const struct moment *moments, size_t n, size_t step,
                 struct tally *tally)
{
    char folder[] = "/dev/shm/signalbox-crash-XXXXXX";
    struct disk *d = disk_new();
    void *claims = check->new ();
    size_t at = 0;

    if (!mkdtemp(folder))
        die(folder);
    for (size_t i = 0; i < n; i += step) {
        for (; at < moments[i].after; at++) {
            const struct entry *e = &log->entries[at];
            disk_apply(d, e->r, e->bytes);
            if (e->r->kind == RECORD_SAID)
                (void)check->hear(claims, bytes_of(e));
        }
        look(check, d, claims, &moments[i], folder, tally);
    }
    empty(folder);
    if (rmdir(folder) != 0)
        die("the images left something behind");
    check->free(claims);
    disk_free(d);
}

static void work_in_parallel(const struct log *log, const struct check *check,
                             const struct moment *moments, size_t n,
                             struct tally *tally)
{
    long n_workers = sysconf(_SC_NPROCESSORS_ONLN);
    bool is_good = true;
    int status;

    if (n_workers < 1 || n_workers > MAX_WORKERS)
        n_workers = n_workers < 1 ? 1 : MAX_WORKERS;
    fflush(NULL);
    for (long i = 0; i < n_workers && (size_t)i < n; i++) {
        pid_t pid = fork();
        if (pid < 0)
            die("fork");
        if (pid == 0) {
            work(log, check, moments + i, n - (size_t)i, (size_t)n_workers,
                 tally);
            exit(0);
        }
    }
    while (wait(&status) > 0)
        is_good &= status == 0;
    if (!is_good)
        die("a worker failed");
}

int main(int argc, char **argv)
{
    const struct check *check;
    struct log log = {0};
    struct moment *moments;
    struct tally *tally;
    size_t n = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;

    if (n == 0) {
        fprintf(stderr, "usage: crash_images driver|server LOG N SEED\n");
        return 2;
    }
    check = strcmp(argv[1], "driver") == 0 ? &check_driver : &check_server;
    tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED)
        die("mmap");
    read_log(&log, argv[2]);
    moments = choose_moments(&log, check, n, strtoull(argv[4], NULL, 10),
                             &tally->acks);
    work_in_parallel(&log, check, moments, n, tally);
    printf("{\"images\":%zu,\"records\":%zu,\"ack_moments\":%ld,"
           "\"of_unsynced\":%ld",
           n, log.n, tally->acks, tally->of_unsynced);
    for (int f = 0; f < N_FINDING; f++)
        printf(",\"%s\":%ld", finding_names[f], tally->found[f]);
    printf("}\n");
    free(moments);
    free(log.entries);
    return tally->found[FOUND_NOTHING] != (long)n;
}
