/* Nothing is registered and nothing is kept: a scrape takes the figures of each
 * module, and a table says where each metric lies in them. So there is one
 * truth, and no cost between scrapes. Only the number of open files is cached
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

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* `name{labels,label="word"} value`. */
static void metric_sample(struct buf *out, const char *name, const char *suffix,
                          const struct metric_series *s, const char *label,
                          struct str word)
{
    char before = '{';

    buf_addf(out, "%s%s", name, suffix);
    for (size_t i = 0; i < COUNT(s->labels) && s->labels[i].name; i++) {
        struct str value = s->labels[i].value;

        buf_addf(out, "%c%s=\"", before, s->labels[i].name);
        for (size_t k = 0; k < value.n; k++) {
            if (memchr("\\\"\n", value.p[k], 3))
                buf_add_char(out, '\\');
            buf_add_char(out, value.p[k] == '\n' ? 'n' : value.p[k]);
        }
        buf_add_char(out, '"');
        before = ',';
    }
    if (label)
        buf_addf(out, "%c%s=\"%.*s\"", before, label, STR_ARG(word));
    buf_add_str(out, label || before == ',' ? STR("} ") : STR(" "));
}

static void metric_put(struct buf *out, int64_t value, double per)
{
    struct json_out o = json_out(out);

    if (per > 0)
        json_put_real(&o, (double)value / per);
    else
        buf_add_i64(out, value);
    buf_add_char(out, '\n');
}

static int64_t metric_value(const struct metric_series *s, size_t at,
                            size_t bytes)
{
    int64_t value;
    bool is_set;

    if (bytes == sizeof(is_set)) {
        memcpy(&is_set, (const char *)s->values + at, sizeof(is_set));
        return is_set;
    }
    memcpy(&value, (const char *)s->values + at, sizeof(value));
    return value;
}

static void metric_histogram(struct buf *out, const struct metric *m,
                             const struct metric_series *s)
{
    size_t n = m->bytes / sizeof(int64_t);
    int64_t count = 0;

    for (size_t i = 0; i < n; i++) {
        char bound[32] = "+Inf";

        if (i + 1 < n)
            snprintf(bound, sizeof(bound), "%g", (double)m->bounds[i] / m->per);
        count += metric_value(s, m->at + i * sizeof(int64_t), sizeof(int64_t));
        metric_sample(out, m->name, "_bucket", s, "le", str_of(bound));
        metric_put(out, count, 0);
    }
    metric_sample(out, m->name, "_sum", s, NULL, STR(""));
    metric_put(out, metric_value(s, m->sum_at, sizeof(int64_t)), m->per);
    metric_sample(out, m->name, "_count", s, NULL, STR(""));
    metric_put(out, count, 0);
}

static void metric_samples(struct buf *out, const struct metric *m,
                           const struct metric_series *s)
{
    if (m->bounds) {
        metric_histogram(out, m, s);
        return;
    }
    for (size_t at = 0; at < m->bytes; at += sizeof(int64_t)) {
        int i = (int)(at / sizeof(int64_t));
        struct str word = m->word ? m->word(i) : STR("");

        if (m->words && m->words[i])
            word = str_of(m->words[i]);
        if (m->label && !word.n)
            continue;
        metric_sample(out, m->name, "", s, m->label, word);
        metric_put(out, metric_value(s, m->at + at, m->bytes), m->per);
    }
}

void metrics_write(struct buf *out, const struct metric *table, size_t n,
                   const struct metric_source *sources)
{
    for (const struct metric *m = table; m < table + n; m++) {
        const struct metric_source *of = &sources[m->source];

        if (!of->series)
            continue;
        if (m->help) {
            const char *type = m->bounds ? "histogram" : "gauge";
            const char *end = strrchr(m->name, '_');

            if (!m->bytes)
                type = "summary"; /* its samples are the next rows */
            else if (end && strcmp(end, "_total") == 0)
                type = "counter";
            buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help,
                     m->name, type);
        }
        for (size_t i = 0; i < of->n; i++)
            metric_samples(out, m, &of->series[i]);
    }
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

/* A value that cannot be read is left out: each has its own source. */
enum {
    PROCESS_USE,
    PROCESS_FILES,
    PROCESS_LIMIT,
    PROCESS_STAT,
    N_PROCESS_SOURCES
};

struct process {
    int64_t cpu_us, open_files, max_files, resident_bytes, start_ms;
};

static const struct metric process_metrics[] = {
    {"process_cpu_seconds_total", "User and system CPU time.",
     METRIC_AT(struct process, cpu_us), .source = PROCESS_USE, .per = 1e6},
    {"process_open_fds", "Open file descriptors.",
     METRIC_AT(struct process, open_files), .source = PROCESS_FILES},
    {"process_max_fds", "Limit of file descriptors.",
     METRIC_AT(struct process, max_files), .source = PROCESS_LIMIT},
    {"process_resident_memory_bytes", "Resident memory.",
     METRIC_AT(struct process, resident_bytes), .source = PROCESS_STAT},
    {"process_start_time_seconds", "Start of the process in Unix time.",
     METRIC_AT(struct process, start_ms), .source = PROCESS_STAT, .per = 1e3},
};

/* Resident pages and the start in clock ticks since boot: fields 24 and 22 of
 * /proc/self/stat. They are counted from the command's closing bracket, since
 * its name may contain spaces. */
static bool read_stat(struct process *p)
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
        p->resident_bytes = strtol(at, NULL, 10) * sysconf(_SC_PAGESIZE);
        p->start_ms = (now.tv_sec - boot.tv_sec) * 1000 +
                      (int64_t)ticks * 1000 / sysconf(_SC_CLK_TCK);
        ok = true;
    }
    fclose(f);
    return ok;
}

void metric_process(struct buf *out, struct watch_files *files, int64_t now_ms)
{
    struct rusage use;
    struct rlimit most;
    struct process p = {.cpu_us = 0};
    const struct metric_series series = {.values = &p};
    const struct metric_source known = {&series, 1};
    struct metric_source sources[N_PROCESS_SOURCES] = {{NULL, 0}};

    if (getrusage(RUSAGE_SELF, &use) == 0) {
        p.cpu_us = (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
                   use.ru_utime.tv_usec + use.ru_stime.tv_usec;
        sources[PROCESS_USE] = known;
    }
    if (know_open_files(files, now_ms)) {
        p.open_files = files->n;
        sources[PROCESS_FILES] = known;
    }
    if (getrlimit(RLIMIT_NOFILE, &most) == 0) {
        p.max_files = (int64_t)most.rlim_cur;
        sources[PROCESS_LIMIT] = known;
    }
    if (read_stat(&p))
        sources[PROCESS_STAT] = known;
    metrics_write(out, process_metrics, COUNT(process_metrics), sources);
}
