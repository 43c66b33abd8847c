/* The sums of minilm_neon.c with sdot, which adds four products of bytes to
 * each of four sums of 32 bits. In a file of its own, because clang 14 offers
 * sdot only in files compiled for processors that have it; so it must contain
 * nothing but this function. */
#include "embed/transformer/minilm.h"

#include <arm_neon.h>

enum { COLS = MINILM_SUMS / 4 };

#define EACH_COL UNROLLED for (int c = 0; c < COLS; c++)

/* The i-th four of sixteen bytes of each row, with four weights of each
 * channel. */
#define ADD_FOURS(i)                                                     \
    EACH_COL                                                             \
    {                                                                    \
        int8x16_t w =                                                    \
            vld1q_s8(weights + (size_t)4 * MINILM_GROUP * (i) + 16 * c); \
                                                                         \
        EACH_ROW sum[r][c] = vdotq_laneq_s32(sum[r][c], w, b[r], i);     \
    }

/* n is a constant wherever this is called, so `sum` stays in registers. */
static inline INLINED void sum_rows_dotprod(int32_t *out, const int8_t *weights,
                                            const uint8_t *bytes, size_t n_in,
                                            const int n)
{
    int32x4_t sum[MINILM_DOTPROD_ROWS][COLS];

    EACH_ROW EACH_COL sum[r][c] = vdupq_n_s32(0);
    for (size_t k = 0; k < n_in;
         k += 16, weights += (size_t)16 * MINILM_GROUP) {
        int8x16_t b[MINILM_DOTPROD_ROWS];

        EACH_ROW b[r] = vreinterpretq_s8_u8(
            veorq_u8(vld1q_u8(bytes + (size_t)r * n_in + k), vdupq_n_u8(128)));
        ADD_FOURS(0)
        ADD_FOURS(1)
        ADD_FOURS(2)
        ADD_FOURS(3)
    }
    EACH_ROW EACH_COL vst1q_s32(out + r * MINILM_SUMS + 4 * c, sum[r][c]);
}

void minilm_sum_dotprod(int32_t *out, const int8_t *weights,
                        const uint8_t *bytes, size_t n_in, size_t n)
{
    switch (n) {
    case 5: sum_rows_dotprod(out, weights, bytes, n_in, 5); break;
    case 4: sum_rows_dotprod(out, weights, bytes, n_in, 4); break;
    case 3: sum_rows_dotprod(out, weights, bytes, n_in, 3); break;
    case 2: sum_rows_dotprod(out, weights, bytes, n_in, 2); break;
    default: sum_rows_dotprod(out, weights, bytes, n_in, 1);
    }
}
