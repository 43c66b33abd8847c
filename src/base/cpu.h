#ifndef BASE_CPU_H
#define BASE_CPU_H

/* cpu: which vector instructions this processor has. Code with a fast path per
 * level keeps a table with one row per level and takes the row of cpu_level().
 * The plain row always exists; tests compare the others with it. Threads: any;
 * no state. */

#include <stdbool.h>

enum cpu_level {
    CPU_PLAIN,
    CPU_AVX2,   /* with FMA, as every processor with AVX2 has */
    CPU_AVX512, /* F, BW, DQ, VL and VNNI; without VNNI it counts as AVX2 */
    N_CPU_LEVELS,

    /* 64-bit ARM uses the same places for its two levels. */
    CPU_NEON = CPU_AVX2,
    CPU_DOTPROD = CPU_AVX512, /* has sdot */
};

/* The highest level of this processor. */
enum cpu_level cpu_level(void);

/* "plain", "avx2", "avx512"; on ARM "plain", "neon", "dotprod". */
const char *cpu_level_name(enum cpu_level level);

/* For loops of constant length over arrays that should stay in registers. */
#ifdef __clang__
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

#endif
