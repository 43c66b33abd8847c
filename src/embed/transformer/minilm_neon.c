/* The two levels of 64-bit ARM. Every such processor has NEON; most since 2018
 * also have sdot, whose byte products are in minilm_dotprod.c.
 *
 * Both multiply signed bytes, but the bytes of a row are unsigned. So 128 is
 * subtracted from each byte, by flipping its top bit, and from the row's zero:
 * byte - zero is unchanged.
 *
 * Without sdot each 16-bit product is added to 32 bits directly. Adding two of
 * them in 16 bits first would save every fourth instruction, but -128 * -128
 * twice does not fit, and pairs_fit is about other pairs. */
#include "embed/transformer/minilm.h"

#include <arm_neon.h>
#include <math.h>

#define FN static inline

typedef struct {
    float32x4_t a, b, c, d;
} lanes;

FN lanes lanes_set(float x)
{
    float32x4_t four = vdupq_n_f32(x);

    return (lanes){four, four, four, four};
}

FN lanes lanes_load(const float *p)
{
    return (lanes){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8),
                   vld1q_f32(p + 12)};
}

FN void lanes_store(float *p, lanes x)
{
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
    vst1q_f32(p + 8, x.c);
    vst1q_f32(p + 12, x.d);
}

FN float32x4_t four_of_i16(int16x4_t x)
{
    return vcvtq_f32_s32(vmovl_s16(x));
}

FN lanes lanes_of_i8(const int8_t *p)
{
    int16x8_t low = vmovl_s8(vld1_s8(p)), high = vmovl_s8(vld1_s8(p + 8));

    return (lanes){
        four_of_i16(vget_low_s16(low)), four_of_i16(vget_high_s16(low)),
        four_of_i16(vget_low_s16(high)), four_of_i16(vget_high_s16(high))};
}

FN uint16x8_t eight_to_16_bits_neon(float32x4_t x, float32x4_t y)
{
    return vcombine_u16(vmovn_u32(vcvtq_u32_f32(x)),
                        vmovn_u32(vcvtq_u32_f32(y)));
}

#define OF_ONE(op)                         \
    (lanes)                                \
    {                                      \
        op(x.a), op(x.b), op(x.c), op(x.d) \
    }
#define OF_TWO(op)                                             \
    (lanes)                                                    \
    {                                                          \
        op(x.a, y.a), op(x.b, y.b), op(x.c, y.c), op(x.d, y.d) \
    }

FN lanes lanes_add(lanes x, lanes y)
{
    return OF_TWO(vaddq_f32);
}

FN lanes lanes_sub(lanes x, lanes y)
{
    return OF_TWO(vsubq_f32);
}

FN lanes lanes_mul(lanes x, lanes y)
{
    return OF_TWO(vmulq_f32);
}

FN lanes lanes_fma(lanes x, lanes y, lanes z)
{
    return (lanes){vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b),
                   vfmaq_f32(z.c, x.c, y.c), vfmaq_f32(z.d, x.d, y.d)};
}

/* Not vminq_f32, which returns NaN if either argument is NaN. */
FN float32x4_t min_of_four(float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcltq_f32(x, y), x, y);
}

FN float32x4_t max_of_four(float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcgtq_f32(x, y), x, y);
}

FN lanes lanes_min(lanes x, lanes y)
{
    return OF_TWO(min_of_four);
}

FN lanes lanes_max(lanes x, lanes y)
{
    return OF_TWO(max_of_four);
}

FN lanes lanes_abs(lanes x)
{
    return OF_ONE(vabsq_f32);
}

FN lanes lanes_round(lanes x)
{
    return OF_ONE(vrndnq_f32);
}

FN void lanes_to_bytes(uint8_t *p, lanes x, lanes zero)
{
    x = lanes_add(lanes_round(x), zero);
    x = lanes_min(lanes_max(x, lanes_set(0)), lanes_set(255));
    vst1_u8(p, vmovn_u16(eight_to_16_bits_neon(x.a, x.b)));
    vst1_u8(p + 8, vmovn_u16(eight_to_16_bits_neon(x.c, x.d)));
}

FN float32x4_t four_powers_of_2(float32x4_t n)
{
    int32x4_t bits = vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127));

    return vreinterpretq_f32_s32(vshlq_n_s32(bits, 23));
}

FN lanes lanes_power_of_2(lanes x)
{
    return OF_ONE(four_powers_of_2);
}

FN float lanes_first(lanes x)
{
    return vgetq_lane_f32(x.a, 0);
}

/* Add eight to eight, four to four, and so on. */
#define IN_HALVES(x, op)                                  \
    float32x4_t four = op(op(x.a, x.c), op(x.b, x.d));    \
    float32x4_t two = op(four, vextq_f32(four, four, 2)); \
    return vgetq_lane_f32(op(two, vextq_f32(two, two, 1)), 0)

FN float lanes_sum(lanes x)
{
    IN_HALVES(x, vaddq_f32);
}

FN float lanes_lowest(lanes x)
{
    IN_HALVES(x, min_of_four);
}

FN float lanes_highest(lanes x)
{
    IN_HALVES(x, max_of_four);
}

/* ---- the product ---- */

enum { CHANNELS = MINILM_SUMS, COLS = CHANNELS / 4, ROWS_AT_ONCE = 3 };

#define EACH_COL UNROLLED for (int c = 0; c < COLS; c++)

/* Four bytes of a row, repeated four times. */
FN int8x16_t four_of_neon(const uint8_t *p)
{
    uint32_t four;

    memcpy(&four, p, sizeof(four));
    return vreinterpretq_s8_u32(vdupq_n_u32(four ^ 0x80808080));
}

/* The sums of n rows. n is a constant wherever this is called, so `low` and
 * `high` stay in registers: a channel has two sums, one for the first two
 * numbers of every four and one for the last two. */
FN INLINED void sum_rows_neon(int32_t *out, const int8_t *weights,
                              const uint8_t *bytes, size_t n_in, const int n)
{
    int32x4_t low[ROWS_AT_ONCE][COLS], high[ROWS_AT_ONCE][COLS];

    EACH_ROW EACH_COL low[r][c] = high[r][c] = vdupq_n_s32(0);
    for (size_t k = 0; k < n_in; k += 4, weights += (size_t)4 * MINILM_GROUP) {
        int8x16_t b[ROWS_AT_ONCE];

        EACH_ROW b[r] = four_of_neon(bytes + (size_t)r * n_in + k);
        EACH_COL
        {
            int8x16_t w = vld1q_s8(weights + (size_t)16 * c);

            EACH_ROW low[r][c] = vpadalq_s16(
                low[r][c], vmull_s8(vget_low_s8(w), vget_low_s8(b[r])));
            EACH_ROW high[r][c] =
                vpadalq_s16(high[r][c], vmull_high_s8(w, b[r]));
        }
    }
    EACH_ROW EACH_COL vst1q_s32(out + r * CHANNELS + 4 * c,
                                vpaddq_s32(low[r][c], high[r][c]));
}

static void sum_some_neon(int32_t *out, const int8_t *weights,
                          const uint8_t *bytes, size_t n_in, size_t n)
{
    switch (n) {
    case 3: sum_rows_neon(out, weights, bytes, n_in, 3); break;
    case 2: sum_rows_neon(out, weights, bytes, n_in, 2); break;
    default: sum_rows_neon(out, weights, bytes, n_in, 1);
    }
}

/* Convert the sums of one row to floats: scaled, with the bias added. */
FN void finish_row_neon(float *y, const int32_t *sum,
                        const struct minilm_matrix *w, size_t at, float scale,
                        int32_t zero)
{
    for (size_t c = 0; c < CHANNELS; c += 4, at += 4) {
        int32x4_t v = vmlsq_s32(vld1q_s32(sum + c), vld1q_s32(w->sums + at),
                                vdupq_n_s32(zero - 128));
        float32x4_t by =
            vmulq_f32(vld1q_f32(w->scales + at), vdupq_n_f32(scale));

        vst1q_f32(y + at,
                  vfmaq_f32(vld1q_f32(w->bias + at), vcvtq_f32_s32(v), by));
    }
}

/* Rows are distributed evenly, at most `most` at a time: 6 rows as three and
 * three. */
FN void multiply_by(minilm_sum_fn *sum, size_t most, float *y,
                    const struct minilm_matrix *w, const struct minilm_bytes *x,
                    size_t n)
{
    int32_t sums[MINILM_DOTPROD_ROWS * CHANNELS];

    for (size_t at = 0; at < w->n_out; at += CHANNELS) {
        size_t group = at / MINILM_GROUP * MINILM_GROUP;
        const int8_t *weights =
            w->weights + group * w->n_in + 4 * (at % MINILM_GROUP);
        size_t left = (n + most - 1) / most;

        for (size_t row = 0, now; left > 0; left--, row += now) {
            now = (n - row + left - 1) / left;
            sum(sums, weights, x->bytes + row * w->n_in, w->n_in, now);
            for (size_t r = 0; r < now; r++)
                finish_row_neon(y + (row + r) * w->n_out, sums + r * CHANNELS,
                                w, at, x->scales[row + r], x->zeros[row + r]);
        }
    }
}

static void multiply_neon(float *y, const struct minilm_matrix *w,
                          const struct minilm_bytes *x, size_t n)
{
    multiply_by(sum_some_neon, ROWS_AT_ONCE, y, w, x, n);
}

static void multiply_dotprod(float *y, const struct minilm_matrix *w,
                             const struct minilm_bytes *x, size_t n)
{
    multiply_by(minilm_sum_dotprod, MINILM_DOTPROD_ROWS, y, w, x, n);
}

/* Transpose four rows of four. */
FN void turn_four_neon(float *to, size_t pitch, const float *from, size_t step)
{
    float32x4_t r0 = vld1q_f32(from), r1 = vld1q_f32(from + step);
    float32x4_t r2 = vld1q_f32(from + 2 * step);
    float32x4_t r3 = vld1q_f32(from + 3 * step);
    float32x4x2_t a = vzipq_f32(r0, r2), b = vzipq_f32(r1, r3);
    float32x4x2_t low = vzipq_f32(a.val[0], b.val[0]);
    float32x4x2_t high = vzipq_f32(a.val[1], b.val[1]);

    vst1q_f32(to, low.val[0]);
    vst1q_f32(to + pitch, low.val[1]);
    vst1q_f32(to + 2 * pitch, high.val[0]);
    vst1q_f32(to + 3 * pitch, high.val[1]);
}

FN void turn_sixteen(float *to, size_t pitch, const float *from, size_t step)
{
    for (size_t d = 0; d < MINILM_LANES; d += 4)
        for (size_t j = 0; j < MINILM_LANES; j += 4)
            turn_four_neon(to + d * pitch + j, pitch, from + j * step + d,
                           step);
}

enum { ROWS = 4, COLUMNS = 1 };

#include "embed/transformer/minilm_lanes.inc"

static const struct minilm_ops minilm_neon = MINILM_OPS(multiply_neon);
static const struct minilm_ops minilm_dotprod = MINILM_OPS(multiply_dotprod);

const struct minilm_ops *const minilm_levels[N_CPU_LEVELS] = {
    [CPU_PLAIN] = &minilm_plain,
    [CPU_NEON] = &minilm_neon,
    [CPU_DOTPROD] = &minilm_dotprod,
};
