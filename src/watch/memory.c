/* How much memory this process may use: the least of what the machine has,
 * what its control group and those above it allow, and its own rlimits. Only
 * to warn of settings that promise more, so what cannot be read counts as no
 * limit, and swap does not count. */
#include "watch/watch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fault.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct str line_of(const char *text)
{
    return (struct str){text, strcspn(text, "\n")};
}

/* The number in a file; INT64_MAX: there is none ("max", no such file). */
static int64_t number_in(const char *path)
{
    FILE *f = FAULT("watch.memory") ? NULL : fopen(path, "re");
    char text[32] = "";
    int64_t n = INT64_MAX;

    if (!f)
        return n;
    if (!fgets(text, sizeof(text), f) || str_to_i64(line_of(text), &n) != OK ||
        n < 0)
        n = INT64_MAX; /* also one that is larger than can be said */
    fclose(f);
    return n;
}

/* A group and all above it: "/a/b", "/a", "/". */
static int64_t limit_of(const char *root, const char *hierarchy,
                        const char *file, struct str group)
{
    int64_t n = INT64_MAX;
    char path[PATH_MAX];

    while (group.n && group.p[group.n - 1] == '/')
        group.n--;
    for (;;) {
        snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s%.*s/%s", root,
                 hierarchy, STR_ARG(group), file);
        n = least(n, number_in(path));
        if (!group.n)
            return n;
        while (group.n && group.p[--group.n] != '/')
            ;
    }
}

/* "0::/a/b" is version 2, "4:memory:/a/b" version 1. */
static int64_t limit_of_line(const char *root, struct str line)
{
    struct str number = str_cut(&line, ':'), name = str_cut(&line, ':');

    if (str_eq(number, STR("0")) && !name.n)
        return limit_of(root, "", "memory.max", line);
    if (str_eq(name, STR("memory")))
        return limit_of(root, "/memory", "memory.limit_in_bytes", line);
    return INT64_MAX;
}

static int64_t limit_of_groups(const char *root)
{
    int64_t n = INT64_MAX;
    char text[PATH_MAX];
    FILE *f;

    snprintf(text, sizeof(text), "%s/proc/self/cgroup", root);
    f = FAULT("watch.memory") ? NULL : fopen(text, "re");
    while (f && fgets(text, sizeof(text), f))
        n = least(n, limit_of_line(root, line_of(text)));
    if (f)
        fclose(f);
    return n;
}

int64_t watch_memory_bytes(const char *root)
{
    int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    int64_t n = limit_of_groups(root), machine;
    const int kinds[] = {RLIMIT_AS, RLIMIT_DATA};

    if (pages > 0 && !__builtin_mul_overflow(pages, page, &machine))
        n = least(n, machine);
    for (int i = 0; i < 2; i++) {
        struct rlimit r;

        if (getrlimit((unsigned)kinds[i], &r) == 0 && r.rlim_cur < INT64_MAX)
            n = least(n, (int64_t)r.rlim_cur);
    }
    return n;
}
