#ifndef BASE_CPU_H
#define BASE_CPU_H

/* cpu: how wide the vectors of this processor are. Whoever has a fast path per
 * level keeps a table of them, one row each, and takes the widest that
 * cpu_level allows; the plain row is always there, and is what tests hold the
 * others against. Threads: any; nothing here keeps state. */

#include <stdbool.h>

enum cpu_level {
    CPU_PLAIN,
    CPU_AVX2,   /* with FMA, as every processor with AVX2 has */
    CPU_AVX512, /* F, BW, DQ, VL and VNNI: one without VNNI counts as AVX2 */
    N_CPU_LEVELS,

    /* 64-bit ARM has two levels of its own in the same places. */
    CPU_NEON = CPU_AVX2,
    CPU_DOTPROD = CPU_AVX512, /* has sdot */
};

/* The widest of this processor. */
enum cpu_level cpu_level(void);

/* "plain", "avx2", "avx512"; on ARM "plain", "neon", "dotprod". */
const char *cpu_level_name(enum cpu_level level);

/* Loops whose length the compiler knows, over arrays that shall be registers.
 */
#ifdef __clang__
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

#endif
