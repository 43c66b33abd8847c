/* Nothing is registered and nothing is kept: a scrape asks each module for its
 * figures and writes them. So there is one truth, no cost between scrapes, and
 * no table of metrics that goes stale. Only the number of open files is cached
 * for a moment, by the caller. */
#include "watch/watch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/json.h"

void metric_family(struct buf *out, const char *name, const char *type,
                   const char *help)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metric_put_name(struct buf *out, const char *name,
                            const char *labels)
{
    buf_add_str(out, str_of(name));
    if (labels)
        buf_addf(out, "{%s}", labels);
    buf_add_char(out, ' ');
}

void metric_int(struct buf *out, const char *name, const char *labels,
                int64_t value)
{
    metric_put_name(out, name, labels);
    buf_add_i64(out, value);
    buf_add_char(out, '\n');
}

void metric_real(struct buf *out, const char *name, const char *labels,
                 double value)
{
    struct json_out o = json_out(out);

    metric_put_name(out, name, labels);
    json_put_real(&o, value); /* the fewest digits with the same value */
    buf_add_char(out, '\n');
}

void metric_counter(struct buf *out, const char *name, const char *help,
                    int64_t value)
{
    metric_family(out, name, "counter", help);
    metric_int(out, name, NULL, value);
}

void metric_gauge(struct buf *out, const char *name, const char *help,
                  int64_t value)
{
    metric_family(out, name, "gauge", help);
    metric_int(out, name, NULL, value);
}

static int64_t count_open_files(void)
{
    DIR *d = FAULT("watch.fds") ? NULL : opendir("/proc/self/fd");
    int64_t n = 0;

    if (!d)
        return -1;
    while (readdir(d))
        n++;
    closedir(d);
    return n - 3; /* ".", ".." and the folder itself */
}

/* Whether files->n is valid. */
static bool know_open_files(struct watch_files *files, int64_t now_ms)
{
    int64_t n;

    if (files->is_known && now_ms - files->counted_at_ms < WATCH_FILES_MS)
        return true;
    n = count_open_files();
    files->is_known = n >= 0;
    files->n = n;
    files->counted_at_ms = now_ms;
    return files->is_known;
}

/* Resident pages and the start in clock ticks since boot: fields 24 and 22 of
 * /proc/self/stat. They are counted from the command's closing bracket, since
 * its name may contain spaces. */
static bool read_stat(long *resident_pages, double *start_s)
{
    FILE *f = FAULT("watch.stat") ? NULL : fopen("/proc/self/stat", "re");
    char line[1024], *at = NULL;
    unsigned long long ticks = 0;
    struct timespec boot, now;
    bool ok = false;

    if (!f)
        return false;
    if (fgets(line, sizeof(line), f))
        at = strrchr(line, ')');
    for (int field = 3; at && field <= 24; field++) {
        at = strchr(at + 1, ' ');
        if (at && field == 22)
            ticks = strtoull(at, NULL, 10);
    }
    if (at) {
        clock_gettime(CLOCK_BOOTTIME, &boot);
        clock_gettime(CLOCK_REALTIME, &now);
        *resident_pages = strtol(at, NULL, 10);
        *start_s = (double)now.tv_sec - (double)boot.tv_sec +
                   (double)ticks / (double)sysconf(_SC_CLK_TCK);
        ok = true;
    }
    fclose(f);
    return ok;
}

void metric_process(struct buf *out, struct watch_files *files, int64_t now_ms)
{
    struct rusage use;
    struct rlimit most;
    long pages = 0;
    double start_s = 0;

    if (getrusage(RUSAGE_SELF, &use) == 0) {
        metric_family(out, "process_cpu_seconds_total", "counter",
                      "User and system CPU time.");
        metric_real(out, "process_cpu_seconds_total", NULL,
                    (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                        (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) /
                            1e6);
    }
    if (know_open_files(files, now_ms))
        metric_gauge(out, "process_open_fds", "Open file descriptors.",
                     files->n);
    if (getrlimit(RLIMIT_NOFILE, &most) == 0)
        metric_gauge(out, "process_max_fds", "Limit of file descriptors.",
                     (int64_t)most.rlim_cur);
    if (read_stat(&pages, &start_s)) {
        metric_gauge(out, "process_resident_memory_bytes", "Resident memory.",
                     pages * sysconf(_SC_PAGESIZE));
        metric_family(out, "process_start_time_seconds", "gauge",
                      "Start of the process in Unix time.");
        metric_real(out, "process_start_time_seconds", NULL, start_s);
    }
}
