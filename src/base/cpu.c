/* The compiler's runtime library (on ARM the C library) keeps the CPU features
 * since program start, so a query costs a few loads and needs no cache here. */
#include "base/cpu.h"

#ifdef __aarch64__
#include <sys/auxv.h>
#endif

enum cpu_level cpu_level(void)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return CPU_PLAIN;
    return __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512vnni")
               ? CPU_AVX512
               : CPU_AVX2;
#elif defined(__aarch64__)
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? CPU_DOTPROD : CPU_NEON;
#else
    return CPU_PLAIN;
#endif
}

const char *cpu_level_name(enum cpu_level level)
{
#ifdef __aarch64__
    static const char *const names[N_CPU_LEVELS] = {"plain", "neon", "dotprod"};
#else
    static const char *const names[N_CPU_LEVELS] = {"plain", "avx2", "avx512"};
#endif

    return level < N_CPU_LEVELS ? names[level] : "?";
}
