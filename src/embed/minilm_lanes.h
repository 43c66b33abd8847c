/* The transformer's fractions, sixteen side by side. Not a header of its own:
 * minilm_plain.c, minilm_avx2.c and minilm_avx512.c each say what a `lanes` is
 * and how two of them are added, and then include this text, so that there is
 * one order of every sum, one polynomial, and no level rounds otherwise than
 * another. FN is `static` with the level's target.
 *
 * Sums over a row go into sixteen lanes, number i into lane i % 16, and the
 * lanes are added in halves. Where rows of outputs are reckoned (attention),
 * lanes are outputs and each of them is summed from the first to the last.
 *
 * min and max give their second argument when one is no number, as the
 * instructions do; so nothing that is no number is ever turned into a whole
 * one, whatever is in a model's file. */

enum { N = MINILM_LANES };

/* e to the x, for x up to 88: 2^n * e^r with n whole and |r| <= ln 2 / 2. */
FN lanes lanes_exp(lanes x)
{
    lanes n, r, p;

    x = lanes_max(lanes_min(x, lanes_set(88)), lanes_set(-87));
    n = lanes_round(lanes_mul(x, lanes_set(1.44269504f)));
    r = lanes_fma(n, lanes_set(-0.693359375f), x);
    r = lanes_fma(n, lanes_set(2.12194440e-4f), r);
    p = lanes_fma(lanes_set(1.9875691500e-4f), r, lanes_set(1.3981999507e-3f));
    p = lanes_fma(p, r, lanes_set(8.3334519073e-3f));
    p = lanes_fma(p, r, lanes_set(4.1665795894e-2f));
    p = lanes_fma(p, r, lanes_set(1.6666665459e-1f));
    p = lanes_fma(p, r, lanes_set(5.0000001201e-1f));
    p = lanes_fma(lanes_mul(r, r), p, r);
    return lanes_mul(lanes_add(p, lanes_set(1)), lanes_power_of_2(n));
}

/* x times the share of a normal distribution below x. For x < 0 that share is
 * h = erfc(|x| / sqrt 2) / 2, for others 1 - h; erfc is Abramowitz and Stegun's
 * 7.1.26, good to 1.5e-7. */
FN lanes lanes_gelu(lanes x)
{
    lanes size = lanes_abs(x);
    lanes z = lanes_mul(size, lanes_set(0.70710678f));
    lanes t = lanes_div(lanes_set(1),
                        lanes_fma(z, lanes_set(0.3275911f), lanes_set(1)));
    lanes p = lanes_fma(t, lanes_set(0.5f * 1.061405429f),
                        lanes_set(0.5f * -1.453152027f));

    p = lanes_fma(p, t, lanes_set(0.5f * 1.421413741f));
    p = lanes_fma(p, t, lanes_set(0.5f * -0.284496736f));
    p = lanes_fma(p, t, lanes_set(0.5f * 0.254829592f));
    p = lanes_mul(p, t);
    p = lanes_mul(p, lanes_exp(lanes_sub(lanes_set(0), lanes_mul(z, z))));
    return lanes_sub(lanes_max(x, lanes_set(0)), lanes_mul(size, p));
}

FN void add_word(float *row, const int8_t *word, float scale,
                 const float *position, size_t width)
{
    for (size_t i = 0; i < width; i += N)
        lanes_store(row + i, lanes_fma(lanes_of_i8(word + i), lanes_set(scale),
                                       lanes_load(position + i)));
}

/* 1e-12 is what the model was trained with. */
FN void norm_row(float *x, const struct minilm_norm *norm, size_t width)
{
    lanes sum = lanes_set(0), squares = lanes_set(0), mean, by;
    float one = 1 / (float)width;

    for (size_t i = 0; i < width; i += N)
        sum = lanes_add(sum, lanes_load(x + i));
    mean = lanes_set(lanes_sum(sum) * one);
    for (size_t i = 0; i < width; i += N) {
        lanes d = lanes_sub(lanes_load(x + i), mean);

        squares = lanes_fma(d, d, squares);
        lanes_store(x + i, d);
    }
    by = lanes_set(1 / sqrtf(lanes_sum(squares) * one + 1e-12f));
    for (size_t i = 0; i < width; i += N)
        lanes_store(x + i, lanes_fma(lanes_mul(lanes_load(x + i), by),
                                     lanes_load(norm->weight + i),
                                     lanes_load(norm->bias + i)));
}

FN void add_norm(float *x, const float *add, const struct minilm_norm *norm,
                 size_t n, size_t width)
{
    for (size_t row = 0; row < n; row++, x += width) {
        for (size_t i = 0; add && i < width; i += N)
            lanes_store(x + i, lanes_add(lanes_load(x + i),
                                         lanes_load(add + row * width + i)));
        norm_row(x, norm, width);
    }
}

/* Zero itself is always among what a byte can mean. A row that is all zero has
 * some scale; none of it shows. */
FN void row_to_bytes(const struct minilm_bytes *to, size_t row, const float *x,
                     size_t width, lanes low_lanes, lanes high_lanes)
{
    float low = lanes_lowest(low_lanes), high = lanes_highest(high_lanes);
    float range = high - low > 1e-30f ? high - low : 1e-30f;
    lanes by = lanes_set(255 / range);
    lanes zero = lanes_round(lanes_mul(lanes_set(0 - low), by));

    zero = lanes_max(lanes_min(zero, lanes_set(255)), lanes_set(0));
    for (size_t i = 0; i < width; i += N) {
        lanes v =
            lanes_add(lanes_round(lanes_mul(lanes_load(x + i), by)), zero);

        v = lanes_min(lanes_max(v, lanes_set(0)), lanes_set(255));
        lanes_to_u8(to->bytes + row * width + i, v);
    }
    to->scales[row] = range / 255;
    to->zeros[row] = (int32_t)lanes_first(zero);
}

FN void to_bytes(const struct minilm_bytes *to, const float *x, size_t n,
                 size_t width)
{
    for (size_t row = 0; row < n; row++, x += width) {
        lanes low = lanes_set(0), high = lanes_set(0);

        for (size_t i = 0; i < width; i += N) {
            low = lanes_min(lanes_load(x + i), low);
            high = lanes_max(lanes_load(x + i), high);
        }
        row_to_bytes(to, row, x, width, low, high);
    }
}

FN void gelu_to_bytes(const struct minilm_bytes *to, float *x, size_t n,
                      size_t width)
{
    for (size_t row = 0; row < n; row++, x += width) {
        lanes low = lanes_set(0), high = lanes_set(0);

        for (size_t i = 0; i < width; i += N) {
            lanes v = lanes_gelu(lanes_load(x + i));

            low = lanes_min(v, low);
            high = lanes_max(v, high);
            lanes_store(x + i, v);
        }
        row_to_bytes(to, row, x, width, low, high);
    }
}

/* ---- attention, four rows at a time ---- */

enum { ROWS = 4 };

static inline size_t up_to_lanes(size_t n)
{
    return (n + N - 1) / N * N;
}

/* The keys of one head, turned so that lanes are tokens. What is beyond the
 * last token is zero. */
FN void turn_keys(const struct minilm_attention *a, size_t head)
{
    size_t width = a->n_heads * a->head_dims, pitch = up_to_lanes(a->n);
    const float *from = a->qkv + width + head * a->head_dims;

    for (size_t d = 0; d < a->head_dims; d++) {
        for (size_t j = 0; j < a->n; j++)
            a->keys[d * pitch + j] = from[j * 3 * width + d];
        for (size_t j = a->n; j < pitch; j++)
            a->keys[d * pitch + j] = 0;
    }
}

FN void score(const struct minilm_attention *a, const float *const query[ROWS])
{
    size_t pitch = up_to_lanes(a->n);

    for (size_t j = 0; j < pitch; j += N) {
        lanes s0 = lanes_set(0), s1 = s0, s2 = s0, s3 = s0;

        for (size_t d = 0; d < a->head_dims; d++) {
            lanes k = lanes_load(a->keys + d * pitch + j);

            s0 = lanes_fma(lanes_set(query[0][d]), k, s0);
            s1 = lanes_fma(lanes_set(query[1][d]), k, s1);
            s2 = lanes_fma(lanes_set(query[2][d]), k, s2);
            s3 = lanes_fma(lanes_set(query[3][d]), k, s3);
        }
        lanes_store(a->scores + j, s0);
        lanes_store(a->scores + pitch + j, s1);
        lanes_store(a->scores + 2 * pitch + j, s2);
        lanes_store(a->scores + 3 * pitch + j, s3);
    }
}

/* Scores become e to them, less the highest. Returns one over their sum. */
FN float soften(float *scores, size_t n)
{
    size_t pitch = up_to_lanes(n);
    lanes high = lanes_set(-1e30f), sum = lanes_set(0);

    for (size_t j = n; j < pitch; j++)
        scores[j] = -1e30f;
    for (size_t j = 0; j < pitch; j += N)
        high = lanes_max(lanes_load(scores + j), high);
    high = lanes_set(lanes_highest(high));
    for (size_t j = 0; j < pitch; j += N)
        lanes_store(scores + j,
                    lanes_exp(lanes_sub(lanes_load(scores + j), high)));
    for (size_t j = n; j < pitch; j++)
        scores[j] = 0;
    for (size_t j = 0; j < pitch; j += N)
        sum = lanes_add(sum, lanes_load(scores + j));
    return 1 / lanes_sum(sum);
}

FN void gather(const struct minilm_attention *a, const float *values,
               const float by[ROWS], float *const out[ROWS])
{
    size_t step = 3 * a->n_heads * a->head_dims, pitch = up_to_lanes(a->n);

    for (size_t d = 0; d < a->head_dims; d += N) {
        lanes s0 = lanes_set(0), s1 = s0, s2 = s0, s3 = s0;
        const float *p = a->scores;

        for (size_t j = 0; j < a->n; j++, p++) {
            lanes v = lanes_load(values + j * step + d);

            s0 = lanes_fma(lanes_set(p[0]), v, s0);
            s1 = lanes_fma(lanes_set(p[pitch]), v, s1);
            s2 = lanes_fma(lanes_set(p[2 * pitch]), v, s2);
            s3 = lanes_fma(lanes_set(p[3 * pitch]), v, s3);
        }
        lanes_store(out[0] + d, lanes_mul(s0, lanes_set(by[0])));
        lanes_store(out[1] + d, lanes_mul(s1, lanes_set(by[1])));
        lanes_store(out[2] + d, lanes_mul(s2, lanes_set(by[2])));
        lanes_store(out[3] + d, lanes_mul(s3, lanes_set(by[3])));
    }
}

/* Beyond the last row the last is done again, to the same end. */
FN void attend(const struct minilm_attention *a)
{
    size_t width = a->n_heads * a->head_dims, pitch = up_to_lanes(a->n);

    for (size_t head = 0; head < a->n_heads; head++) {
        const float *qkv = a->qkv + head * a->head_dims;

        turn_keys(a, head);
        for (size_t i = 0; i < a->n; i += ROWS) {
            const float *query[ROWS];
            float *out[ROWS], by[ROWS];

            for (size_t r = 0; r < ROWS; r++) {
                size_t row = i + r < a->n ? i + r : a->n - 1;

                query[r] = qkv + row * 3 * width;
                out[r] = a->out + row * width + head * a->head_dims;
            }
            score(a, query);
            for (size_t r = 0; r < ROWS; r++)
                by[r] = soften(a->scores + r * pitch, a->n);
            gather(a, qkv + 2 * width, by, out);
        }
    }
}

FN void mean(float *out, const float *x, size_t n, size_t width)
{
    lanes by = lanes_set(1 / (float)n);

    for (size_t i = 0; i < width; i += N) {
        lanes sum = lanes_set(0);

        for (size_t row = 0; row < n; row++)
            sum = lanes_add(sum, lanes_load(x + row * width + i));
        lanes_store(out + i, lanes_mul(sum, by));
    }
}

#define MINILM_OPS                                                        \
    {                                                                     \
        .add_word = add_word, .add_norm = add_norm, .to_bytes = to_bytes, \
        .gelu_to_bytes = gelu_to_bytes, .multiply = multiply,             \
        .attend = attend, .mean = mean                                    \
    }
