#ifndef BENCH_EMBED_H
#define BENCH_EMBED_H

/* What the parts of bench_embed share: the texts, and what a process
 * holds in memory. */

#include <stdbool.h>
#include <sys/types.h>

#include "bench/peer.h"

/* Things that people ask, of 12 words each. */
extern const char *const embed_texts[];
extern const size_t n_embed_texts;

struct memory {
    double all_mb, file_mb; /* resident; of that, pages of files */
};

static inline struct memory memory_of(pid_t pid)
{
    struct memory m = {0, 0};
    char path[64], line[256];
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    f = fopen(path, "r");
    if (!f)
        die(path);
    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            m.all_mb = strtod(line + 6, NULL) / 1024;
        if (strncmp(line, "RssFile:", 8) == 0)
            m.file_mb = strtod(line + 8, NULL) / 1024;
    }
    fclose(f);
    return m;
}

/* Processor time of this process so far. */
static inline double own_cpu_s(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
        die("processor time");
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Each prints its figures; whether its goal was reached. */
bool bench_builtin(void);
bool bench_tiers(const char *binary, const char *data);
bool bench_minilm(const char *node_script, const char *modules,
                  const char *model_file);

#endif
