/* Processors that are neither x86-64 nor 64-bit ARM use plain C. */
#include "embed/transformer/minilm.h"

const struct minilm_ops *const minilm_levels[N_CPU_LEVELS] = {
    [CPU_PLAIN] = &minilm_plain,
};
