/* A sum of floats depends on the order of the additions. Here it is made in
 * sixteen lanes, number i in lane i % 16, and the lanes are then added in
 * halves: eight to eight, four to four. AVX-512 adds sixteen in one step, AVX2
 * in two and the plain version in a loop, so all three round alike. Numbers
 * beyond the last whole sixteen go into their own lanes; adding zero to the
 * other lanes is harmless, because no lane is ever minus zero.
 *
 * For the same reason nothing is fused: a product is rounded before it is
 * added. The build says -ffp-contract=off, or the compiler would use fused
 * instructions where the level has them.
 *
 * Cosines and lengths are computed in double: the squares of floats do not
 * overflow there, and the smallest do not vanish. */
#include "base/vec.h"

#include <math.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif
#ifdef __aarch64__
#include <arm_neon.h>
#endif

enum { LANES = 16 };

static inline float sum_of_lanes(float *lanes)
{
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

static float dot_plain(const float *a, const float *b, size_t n)
{
    float lanes[LANES] = {0};
    size_t i = 0;

    for (; n - i >= LANES; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            lanes[k] += a[i + k] * b[i + k];
    for (size_t k = 0; i < n; i++, k++)
        lanes[k] += a[i] * b[i];
    return sum_of_lanes(lanes);
}

/* Unsigned, because overflow then gives a wrong sum but no undefined
 * behaviour. */
static uint32_t dot_i8_from(const int8_t *a, const int8_t *b, size_t n,
                            uint32_t sum)
{
    for (size_t i = 0; i < n; i++)
        sum += (uint32_t)(a[i] * b[i]);
    return sum;
}

static int32_t dot_i8_plain(const int8_t *a, const int8_t *b, size_t n)
{
    return (int32_t)dot_i8_from(a, b, n, 0);
}

static void dots_i8_plain(const int8_t *rows, size_t stride, size_t n_rows,
                          const int8_t *v, size_t n, int32_t *out)
{
    for (size_t r = 0; r < n_rows; r++)
        out[r] = dot_i8_plain(rows + r * stride, v, n);
}

static void add_i8_plain(float *sum, const int8_t *row, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += scale * (float)row[i];
}

#ifdef __x86_64__
#define AVX2   __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

AVX2 static float dot_avx2(const float *a, const float *b, size_t n)
{
    __m256 low = _mm256_setzero_ps(), high = low;
    float lanes[LANES], end_a[LANES] = {0}, end_b[LANES] = {0};

    for (; n >= LANES; n -= LANES, a += LANES, b += LANES) {
        __m256 x = _mm256_mul_ps(_mm256_loadu_ps(a), _mm256_loadu_ps(b));
        __m256 y =
            _mm256_mul_ps(_mm256_loadu_ps(a + 8), _mm256_loadu_ps(b + 8));

        low = _mm256_add_ps(low, x);
        high = _mm256_add_ps(high, y);
    }
    if (n > 0) {
        memcpy(end_a, a, n * sizeof(*a));
        memcpy(end_b, b, n * sizeof(*b));
        low = _mm256_add_ps(
            low, _mm256_mul_ps(_mm256_loadu_ps(end_a), _mm256_loadu_ps(end_b)));
        high = _mm256_add_ps(high, _mm256_mul_ps(_mm256_loadu_ps(end_a + 8),
                                                 _mm256_loadu_ps(end_b + 8)));
    }
    _mm256_storeu_ps(lanes, low);
    _mm256_storeu_ps(lanes + 8, high);
    return sum_of_lanes(lanes);
}

/* madd adds two products of bytes, which fit 32 bits easily. */
AVX2 static inline __m256i madd_avx2(const int8_t *a, const int8_t *b)
{
    __m128i x = _mm_loadu_si128((const __m128i *)a);
    __m128i y = _mm_loadu_si128((const __m128i *)b);

    return _mm256_madd_epi16(_mm256_cvtepi8_epi16(x), _mm256_cvtepi8_epi16(y));
}

AVX2 static int32_t dot_i8_avx2(const int8_t *a, const int8_t *b, size_t n)
{
    __m256i sum = _mm256_setzero_si256(), second = sum;
    uint32_t lanes[8], all = 0;

    for (; n >= 32; n -= 32, a += 32, b += 32) {
        sum = _mm256_add_epi32(sum, madd_avx2(a, b));
        second = _mm256_add_epi32(second, madd_avx2(a + 16, b + 16));
    }
    if (n >= 16) {
        sum = _mm256_add_epi32(sum, madd_avx2(a, b));
        n -= 16, a += 16, b += 16;
    }
    sum = _mm256_add_epi32(sum, second);
    _mm256_storeu_si256((__m256i *)lanes, sum);
    for (size_t i = 0; i < 8; i++)
        all += lanes[i];
    return (int32_t)dot_i8_from(a, b, n, all);
}

/* The vector is widened once for four rows. */
AVX2 static inline void dots4_avx2(const int8_t *rows, size_t stride,
                                   const int8_t *v, size_t n, int32_t *out)
{
    __m256i sum[4] = {0};
    size_t i = 0;

    for (; n - i >= 16; i += 16) {
        __m256i y =
            _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(v + i)));

        UNROLLED for (size_t r = 0; r < 4; r++)
        {
            __m128i x =
                _mm_loadu_si128((const __m128i *)(rows + r * stride + i));

            sum[r] = _mm256_add_epi32(
                sum[r], _mm256_madd_epi16(_mm256_cvtepi8_epi16(x), y));
        }
    }
    UNROLLED for (size_t r = 0; r < 4; r++)
    {
        __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sum[r]),
                                     _mm256_extracti128_si256(sum[r], 1));

        half = _mm_hadd_epi32(half, half);
        half = _mm_hadd_epi32(half, half);
        out[r] = (int32_t)dot_i8_from(rows + r * stride + i, v + i, n - i,
                                      (uint32_t)_mm_cvtsi128_si32(half));
    }
}

AVX2 static void dots_i8_avx2(const int8_t *rows, size_t stride, size_t n_rows,
                              const int8_t *v, size_t n, int32_t *out)
{
    for (; n_rows >= 4; n_rows -= 4, rows += 4 * stride, out += 4)
        dots4_avx2(rows, stride, v, n, out);
    for (size_t r = 0; r < n_rows; r++)
        out[r] = dot_i8_avx2(rows + r * stride, v, n);
}

AVX2 static void add_i8_avx2(float *sum, const int8_t *row, float scale,
                             size_t n)
{
    __m256 by = _mm256_set1_ps(scale);
    size_t i = 0;

    for (; n - i >= 8; i += 8) {
        __m128i x = _mm_loadl_epi64((const __m128i *)(row + i));
        __m256 f = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x));

        _mm256_storeu_ps(sum + i, _mm256_add_ps(_mm256_loadu_ps(sum + i),
                                                _mm256_mul_ps(by, f)));
    }
    add_i8_plain(sum + i, row + i, scale, n - i);
}

AVX512 static float dot_avx512(const float *a, const float *b, size_t n)
{
    __m512 sum = _mm512_setzero_ps();
    float lanes[LANES];

    for (; n >= LANES; n -= LANES, a += LANES, b += LANES)
        sum = _mm512_add_ps(
            sum, _mm512_mul_ps(_mm512_loadu_ps(a), _mm512_loadu_ps(b)));
    if (n > 0) {
        __mmask16 end = (__mmask16)((1U << n) - 1);

        sum = _mm512_add_ps(sum, _mm512_mul_ps(_mm512_maskz_loadu_ps(end, a),
                                               _mm512_maskz_loadu_ps(end, b)));
    }
    _mm512_storeu_ps(lanes, sum);
    return sum_of_lanes(lanes);
}

/* The instruction that adds four products of bytes takes one side unsigned.
 * Adding 128 to every number of a row makes it unsigned, and the excess is the
 * same for all rows: the result for a row of zeros. Sums wrap around alike
 * either way. */
AVX512 static inline __m512i four_avx512(__m512i sum, __m512i row, __m512i v)
{
    return _mm512_dpbusd_epi32(
        sum, _mm512_xor_si512(row, _mm512_set1_epi8(-128)), v);
}

/* Up to 64 bytes from p on, followed by zeros. */
AVX512 static inline __m512i end_avx512(const int8_t *p, size_t n)
{
    return _mm512_maskz_loadu_epi8((UINT64_C(1) << n) - 1, p);
}

AVX512 static int32_t dot_i8_avx512(const int8_t *a, const int8_t *b, size_t n)
{
    __m512i zero = _mm512_setzero_si512(), sum = zero, too_much = zero, y;

    for (; n >= 64; n -= 64, a += 64, b += 64) {
        y = _mm512_loadu_si512(b);
        sum = four_avx512(sum, _mm512_loadu_si512(a), y);
        too_much = four_avx512(too_much, zero, y);
    }
    if (n > 0) {
        y = end_avx512(b, n);
        sum = four_avx512(sum, end_avx512(a, n), y);
        too_much = four_avx512(too_much, zero, y);
    }
    return _mm512_reduce_add_epi32(_mm512_sub_epi32(sum, too_much));
}

AVX512 static int32_t zeros_avx512(const int8_t *v, size_t n)
{
    __m512i zero = _mm512_setzero_si512(), sum = zero;

    for (; n >= 64; n -= 64, v += 64)
        sum = four_avx512(sum, zero, _mm512_loadu_si512(v));
    if (n > 0)
        sum = four_avx512(sum, zero, end_avx512(v, n));
    return _mm512_reduce_add_epi32(sum);
}

/* Add the lanes of four sums; the results are side by side. */
AVX512 static inline __m128i add_up_avx512(const __m512i *sum)
{
    __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(sum[0], sum[1]),
                                  _mm512_unpackhi_epi32(sum[0], sum[1]));
    __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(sum[2], sum[3]),
                                  _mm512_unpackhi_epi32(sum[2], sum[3]));
    __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd),
                                   _mm512_unpackhi_epi64(ab, cd));
    __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(all),
                                    _mm512_extracti64x4_epi64(all, 1));

    return _mm_add_epi32(_mm256_castsi256_si128(half),
                         _mm256_extracti128_si256(half, 1));
}

AVX512 static inline void dots4_avx512(const int8_t *rows, size_t stride,
                                       const int8_t *v, size_t n,
                                       int32_t too_much, int32_t *out)
{
    __m512i sum[4] = {0};
    size_t i = 0;

    for (; n - i >= 64; i += 64) {
        __m512i y = _mm512_loadu_si512(v + i);

        UNROLLED for (size_t r = 0; r < 4; r++)
        {
            __m512i row = _mm512_loadu_si512(rows + r * stride + i);

            sum[r] = four_avx512(sum[r], row, y);
        }
    }
    if (i < n) {
        __m512i y = end_avx512(v + i, n - i);

        UNROLLED for (size_t r = 0; r < 4; r++)
        {
            __m512i row = end_avx512(rows + r * stride + i, n - i);

            sum[r] = four_avx512(sum[r], row, y);
        }
    }
    _mm_storeu_si128((__m128i *)out, _mm_sub_epi32(add_up_avx512(sum),
                                                   _mm_set1_epi32(too_much)));
}

AVX512 static void dots_i8_avx512(const int8_t *rows, size_t stride,
                                  size_t n_rows, const int8_t *v, size_t n,
                                  int32_t *out)
{
    int32_t too_much = zeros_avx512(v, n);

    for (; n_rows >= 4; n_rows -= 4, rows += 4 * stride, out += 4)
        dots4_avx512(rows, stride, v, n, too_much, out);
    for (size_t r = 0; r < n_rows; r++)
        out[r] = dot_i8_avx512(rows + r * stride, v, n);
}

AVX512 static void add_i8_avx512(float *sum, const int8_t *row, float scale,
                                 size_t n)
{
    __m512 by = _mm512_set1_ps(scale);
    size_t i = 0;

    for (; n - i >= LANES; i += LANES) {
        __m128i x = _mm_loadu_si128((const __m128i *)(row + i));
        __m512 f = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x));

        _mm512_storeu_ps(sum + i, _mm512_add_ps(_mm512_loadu_ps(sum + i),
                                                _mm512_mul_ps(by, f)));
    }
    add_i8_plain(sum + i, row + i, scale, n - i);
}
#endif

/* On ARM only the byte products, which make up a search. Two 16-bit products do
 * not always fit 16 bits together, so each is added to 32. */
#ifdef __aarch64__
static inline int32x4_t add16_neon(int32x4_t sum, const int8_t *a,
                                   const int8_t *b)
{
    int8x16_t x = vld1q_s8(a), y = vld1q_s8(b);

    sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(x), vget_low_s8(y)));
    return vpadalq_s16(sum, vmull_high_s8(x, y));
}

static int32_t dot_i8_neon(const int8_t *a, const int8_t *b, size_t n)
{
    int32x4_t sum = vdupq_n_s32(0), second = sum;

    for (; n >= 32; n -= 32, a += 32, b += 32) {
        sum = add16_neon(sum, a, b);
        second = add16_neon(second, a + 16, b + 16);
    }
    if (n >= 16) {
        sum = add16_neon(sum, a, b);
        n -= 16, a += 16, b += 16;
    }
    sum = vaddq_s32(sum, second);
    return (int32_t)dot_i8_from(a, b, n, (uint32_t)vaddvq_s32(sum));
}

static void dots_i8_neon(const int8_t *rows, size_t stride, size_t n_rows,
                         const int8_t *v, size_t n, int32_t *out)
{
    for (size_t r = 0; r < n_rows; r++)
        out[r] = dot_i8_neon(rows + r * stride, v, n);
}
#endif

static const struct vec_ops levels[N_CPU_LEVELS] = {
    [CPU_PLAIN] = {dot_plain, dot_i8_plain, dots_i8_plain, add_i8_plain},
#ifdef __x86_64__
    [CPU_AVX2] = {dot_avx2, dot_i8_avx2, dots_i8_avx2, add_i8_avx2},
    [CPU_AVX512] = {dot_avx512, dot_i8_avx512, dots_i8_avx512, add_i8_avx512},
#endif
#ifdef __aarch64__
    [CPU_NEON] = {dot_plain, dot_i8_neon, dots_i8_neon, add_i8_plain},
    [CPU_DOTPROD] = {dot_plain, dot_i8_neon, dots_i8_neon, add_i8_plain},
#endif
};

const struct vec_ops *vec_ops_of(enum cpu_level level)
{
    return level <= cpu_level() ? &levels[level] : NULL;
}

const struct vec_ops *vec_ops(void)
{
    return &levels[cpu_level()];
}

/* The dot product in double; an infinity or NaN in it propagates. Four lanes,
 * so that an addition need not wait for the one before. */
static double dot_double(const float *a, const float *b, size_t n)
{
    double lanes[4] = {0};
    size_t i = 0;

    for (; n - i >= 4; i += 4)
        for (size_t k = 0; k < 4; k++)
            lanes[k] += (double)a[i + k] * (double)b[i + k];
    for (; i < n; i++)
        lanes[0] += (double)a[i] * (double)b[i];
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

static bool vec_is_finite(const float *v, size_t n)
{
    return isfinite(dot_double(v, v, n));
}

float vec_cosine(const float *a, size_t n_a, const float *b, size_t n_b)
{
    size_t n = n_a < n_b ? n_a : n_b;
    double aa = dot_double(a, a, n), bb = dot_double(b, b, n), likeness;

    if (!(aa > 0 && bb > 0 && isfinite(aa) && isfinite(bb)))
        return 0;
    if (!vec_is_finite(a + n, n_a - n) || !vec_is_finite(b + n, n_b - n))
        return 0;
    likeness = dot_double(a, b, n) / (sqrt(aa) * sqrt(bb));
    return (float)fmax(-1, fmin(1, likeness));
}

bool vec_normalise(float *v, size_t n)
{
    double square = dot_double(v, v, n), length = sqrt(square);
    bool can = square > 0 && isfinite(square);

    for (size_t i = 0; i < n; i++)
        v[i] = can ? (float)((double)v[i] / length) : 0;
    return can;
}
