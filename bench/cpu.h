#ifndef BENCH_CPU_H
#define BENCH_CPU_H

/* cpu.c: the level that this process has from now on. Not above the
 * processor's own. */
#include "base/cpu.h"

enum cpu_level bench_cpu_widest(void);
void bench_cpu_set(enum cpu_level level);

#endif
