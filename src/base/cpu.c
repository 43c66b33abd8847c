/* What the processor said when the program started is kept by the compiler's
 * own library, on ARM the C library, so asking costs a few loads and nothing of
 * it is kept here. */
#include "base/cpu.h"

#ifdef __aarch64__
#include <sys/auxv.h>
#endif

#ifdef __x86_64__
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

enum cpu_level cpu_level(void)
{
    if (!has_avx2())
        return CPU_PLAIN;
    return has_avx512() ? CPU_AVX512 : CPU_AVX2;
}
#elif defined(__aarch64__)
enum cpu_level cpu_level(void)
{
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? CPU_DOTPROD : CPU_NEON;
}
#else
enum cpu_level cpu_level(void)
{
    return CPU_PLAIN;
}
#endif

const char *cpu_level_name(enum cpu_level level)
{
#ifdef __aarch64__
    static const char *const names[N_CPU_LEVELS] = {"plain", "neon", "dotprod"};
#else
    static const char *const names[N_CPU_LEVELS] = {"plain", "avx2", "avx512"};
#endif

    return level < N_CPU_LEVELS ? names[level] : "?";
}
