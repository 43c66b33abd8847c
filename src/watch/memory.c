/* The memory this process may use, and how much of it is left.
 *
 * The limit is the least of the machine's, of its control group's and those
 * above it, and of its own rlimits. A value that cannot be read counts as no
 * limit, and swap does not count.
 *
 * New work is refused while less than a reserve is left (net.h), because small
 * allocations behind admission stop the server. Address space and data count
 * against rlimits, resident memory without shared pages against the rest.
 * Freed memory often stays in the heap: it counts as left, or the server would
 * refuse work long after a flood has ended.
 *
 * Rejected: the control group's own memory.current, which includes the page
 * cache and so is near the limit on every busy server. */
#include "watch/watch.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fault.h"

enum {
    RESERVE_MIN_BYTES = 8 << 20,
    RESERVE_MAX_BYTES = 64 << 20,
    PIECE_PART = 4, /* of the reserve, must be free in one piece */
    LARGE_BYTES = 128 << 10,
    TRIM_MS = 1000,
    FRESH_MS = 10, /* too short to use three times the reserve */
};

static int64_t min_bytes(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct str first_line(const char *text)
{
    return (struct str){text, strcspn(text, "\n")};
}

/* The number in a file. INT64_MAX: it has none ("max"), or the file is
 * missing. */
static int64_t number_in_file(const char *path)
{
    FILE *f = FAULT("watch.memory") ? NULL : fopen(path, "re");
    char text[32] = "";
    int64_t n = INT64_MAX;

    if (!f)
        return n;
    if (!fgets(text, sizeof(text), f) ||
        str_to_i64(first_line(text), &n) != OK || n < 0)
        n = INT64_MAX; /* also for a number that does not fit */
    fclose(f);
    return n;
}

/* The least limit of a group and all above it: "/a/b", "/a", "/". */
static int64_t group_limit(const char *root, const char *hierarchy,
                           const char *file, struct str group)
{
    int64_t n = INT64_MAX;
    char path[PATH_MAX];

    while (group.n && group.p[group.n - 1] == '/')
        group.n--;
    for (;;) {
        snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s%.*s/%s", root,
                 hierarchy, STR_ARG(group), file);
        n = min_bytes(n, number_in_file(path));
        if (!group.n)
            return n;
        while (group.n && group.p[--group.n] != '/')
            ;
    }
}

/* "0::/a/b" is version 2, "4:memory:/a/b" version 1. */
static int64_t group_line_limit(const char *root, struct str line)
{
    struct str number = str_cut(&line, ':'), name = str_cut(&line, ':');

    if (str_eq(number, STR("0")) && !name.n)
        return group_limit(root, "", "memory.max", line);
    if (str_eq(name, STR("memory")))
        return group_limit(root, "/memory", "memory.limit_in_bytes", line);
    return INT64_MAX;
}

static int64_t groups_limit(const char *root)
{
    int64_t n = INT64_MAX;
    char text[PATH_MAX];
    FILE *f;

    snprintf(text, sizeof(text), "%s/proc/self/cgroup", root);
    f = FAULT("watch.memory") ? NULL : fopen(text, "re");
    while (f && fgets(text, sizeof(text), f))
        n = min_bytes(n, group_line_limit(root, first_line(text)));
    if (f)
        fclose(f);
    return n;
}

static int64_t machine_limit(const char *root)
{
    int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    int64_t n = groups_limit(root), machine;

    if (pages > 0 && !__builtin_mul_overflow(pages, page, &machine))
        n = min_bytes(n, machine);
    return n;
}

static int64_t resource_limit(int kind)
{
    struct rlimit r;

    return getrlimit((unsigned)kind, &r) == 0 && r.rlim_cur < INT64_MAX
               ? (int64_t)r.rlim_cur
               : INT64_MAX;
}

int64_t watch_memory_bytes(const char *root)
{
    return min_bytes(
        machine_limit(root),
        min_bytes(resource_limit(RLIMIT_AS), resource_limit(RLIMIT_DATA)));
}

void watch_memory_init(struct watch_memory *m, const char *root)
{
    int64_t reserve;

    *m = (struct watch_memory){.machine_bytes = machine_limit(root),
                               .space_bytes = resource_limit(RLIMIT_AS),
                               .data_bytes = resource_limit(RLIMIT_DATA)};
    reserve =
        min_bytes(m->machine_bytes, min_bytes(m->space_bytes, m->data_bytes)) /
        8;
    m->reserve_bytes =
        min_bytes(reserve > RESERVE_MIN_BYTES ? reserve : RESERVE_MIN_BYTES,
                  RESERVE_MAX_BYTES);
    /* The heap of each thread reserves 64 MB of address space. Large blocks
     * stay outside the heap, or freeing them would leave holes; glibc raises
     * this threshold when a large block is freed. */
    if (m->space_bytes < INT64_MAX) {
        mallopt(M_ARENA_MAX, 1);
        mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}

struct memory_use {
    int64_t space, data, resident;
};

/* False: it cannot be read. */
static bool read_memory_use(struct memory_use *use)
{
    enum { SIZE, RESIDENT, SHARED, TEXT, LIB, DATA, N_FIELDS };
    int fd = FAULT("watch.statm")
                 ? -1
                 : open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    int64_t n[N_FIELDS] = {0}, page = sysconf(_SC_PAGESIZE);
    char text[160], *at = text;
    ssize_t got;

    if (fd < 0)
        return false;
    got = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (got <= 0)
        return false;
    text[got] = '\0';
    for (int i = 0; i < N_FIELDS; i++)
        n[i] = strtoll(at, &at, 10) * page;
    *use = (struct memory_use){n[SIZE], n[DATA], n[RESIDENT] - n[SHARED]};
    return true;
}

/* Address space and data still include what the heap has free. */
static int64_t limits_left(const struct watch_memory *m,
                           const struct memory_use *use)
{
    return min_bytes(m->space_bytes - use->space, m->data_bytes - use->data);
}

/* The free memory of the heap. In many small pieces it is of no use: a page of
 * rows would not fit, and the server would run out if it counted. */
static int64_t heap_left(const struct watch_memory *m)
{
    void *volatile piece = FAULT("watch.piece")
                               ? NULL
                               : malloc((size_t)m->reserve_bytes / PIECE_PART);

    if (!piece)
        return 0;
    free(piece);
    return (int64_t)mallinfo2().fordblks;
}

int64_t watch_memory_left(struct watch_memory *m, int64_t now_ms)
{
    int64_t enough = m->reserve_bytes + m->reserve_bytes / 4, left;
    struct memory_use use;

    if (m->left_bytes >= 4 * enough && now_ms - m->measured_at_ms < FRESH_MS)
        return m->left_bytes;
    if (!read_memory_use(&use))
        return INT64_MAX;
    left = min_bytes(limits_left(m, &use), m->machine_bytes - use.resident);
    m->left_bytes = left;
    m->measured_at_ms = now_ms;
    if (left >= enough)
        return left;
    if (!m->trimmed_at_ms || now_ms - m->trimmed_at_ms >= TRIM_MS) {
        m->trimmed_at_ms = now_ms ? now_ms : 1;
        malloc_trim(0);
        if (!read_memory_use(&use))
            return INT64_MAX;
    }
    left = limits_left(m, &use);
    if (left < enough)
        left += heap_left(m);
    return min_bytes(left, m->machine_bytes - use.resident);
}
