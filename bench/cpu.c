/* base/cpu.c for benches that measure every level: BENCH_CPU=plain, avx2 or
 * neon makes this process one of an older processor, and so does bench_cpu_set.
 * It stands in for that file, which the linker leaves in its archive since
 * everything of it is here; the server itself has no such switch. A level that
 * the processor does not have is refused. */
#include "bench/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the processor has keeps its code and gets another name. */
#define cpu_level(nothing) bench_cpu_widest(nothing)
#include "base/cpu.c" /* NOLINT(bugprone-suspicious-include) */
#undef cpu_level

static enum cpu_level asked_for(void)
{
    const char *name = getenv("BENCH_CPU");

    for (int i = 0; name && i <= (int)bench_cpu_widest(); i++)
        if (strcmp(name, cpu_level_name((enum cpu_level)i)) == 0)
            return (enum cpu_level)i;
    if (name && *name) {
        fprintf(stderr, "BENCH_CPU=%s: this processor has no such level\n",
                name);
        exit(2);
    }
    return bench_cpu_widest();
}

static int level = -1; /* not asked yet */

enum cpu_level cpu_level(void)
{
    if (level < 0)
        level = (int)asked_for();
    return (enum cpu_level)level;
}

void bench_cpu_set(enum cpu_level now)
{
    level = (int)now;
}
