#ifndef EMBED_TRANSFORMER_MINILM_H
#define EMBED_TRANSFORMER_MINILM_H

/* Shared by the minilm files: the layout of the model in its file, and the
 * operations of each level of cpu.h.
 *
 * The file is used in place: mapped, and nothing is copied. After a head come,
 * each at a multiple of 64 bytes and in the order of minilm_lay, the
 * vocabulary, the embeddings and the layers. All offsets follow from the sizes
 * in the head, so the file has no offsets that could be wrong.
 *
 *   minilm_tensors.c  safetensors -> tensors by name
 *   minilm_pieces.c   tokenizer.json -> pieces, if it splits as we do
 *   minilm_make.c     both -> our file
 *   minilm_file.c     our file -> struct minilm
 *   minilm_run.c      text -> vector
 *   minilm_plain.c, minilm_avx2.c, minilm_avx512.c, minilm_neon.c: the
 *   arithmetic, most of it in minilm_lanes.inc, which all four include
 */

#include "base/arena.h"
#include "embed/internal.h"

#define MINILM_MAGIC "SBMINILM"
#define MINILM_NAME  "all-MiniLM-L6-v2"

enum {
    MINILM_VERSION = 1,
    MINILM_ALIGN = 64,
    MINILM_GROUP = 64, /* adjacent channels of a matrix */
    MINILM_HASH_BYTES = 32,
    MINILM_NAME_MAX = 64,

    /* Limits of sizes, which are multiples of MINILM_GROUP. */
    MINILM_LAYERS_MAX = 48,
    MINILM_INNER_MAX = 4096,
    MINILM_WORDS_MAX = 1 << 18,
    MINILM_HEAD_DIMS_MAX = 128,
    MINILM_LANES = 16,
    MINILM_PAIR_MAX = 128,
    MINILM_ROWS_MAX = 8, /* rows that attention handles together */
};

/* The beginning of the file, little-endian. The hash covers all bytes except
 * itself. */
struct minilm_head {
    char magic[8];
    uint32_t version;
    uint32_t head_bytes;
    uint64_t file_bytes;
    uint64_t vocab_bytes;
    uint32_t n_layers, hidden, n_heads, inner, n_words, n_positions;
    uint32_t begin_id, end_id, unknown_id;
    uint32_t zero[7];
    char name[MINILM_NAME_MAX]; /* MINILM_NAME or TRANSFORMER_NAME */
    uint8_t hash[MINILM_HASH_BYTES];
};
_Static_assert(sizeof(struct minilm_head) == 3 * MINILM_ALIGN, "no holes");

/* y = W x + b. Weights are integers; multiplied by scales[c] they are the
 * weights of channel c. They lie in groups of 64 channels, and within a group
 * in fours: weights 0 to 3 of each of its channels, then 4 to 7 of each, and so
 * on, as the kernels read them. sums[c] is the sum of the weights of channel
 * c. */
struct minilm_matrix {
    uint32_t n_out, n_in;
    const int8_t *weights;
    const float *scales, *bias;
    const int32_t *sums;

    /* In each four weights of a channel, the sum of the first two, and of the
     * last two, stays within MINILM_PAIR_MAX if they have the same sign. Then
     * 255 times that sum fits 16 bits, and AVX2 has a shorter way. The model's
     * maker ensures it with scales a quarter larger; models of `model install`
     * keep their old scales. */
    bool pairs_fit;
};

struct minilm_norm {
    const float *weight, *bias;
};

struct minilm_layer {
    struct minilm_matrix qkv; /* query, key and value, stacked; the query is
                               * already divided by the root of a head's
                               * width */
    struct minilm_matrix out;
    struct minilm_norm out_norm;
    struct minilm_matrix up, down;
    struct minilm_norm down_norm;
};

struct minilm {
    const struct minilm_head *head;
    struct vocab vocab;
    const int8_t *words;      /* rows by word */
    const float *word_scales; /* one per row */
    const float *positions;   /* rows; they include the type of a first
                               * sentence */
    struct minilm_norm norm;
    struct minilm_layer layers[MINILM_LAYERS_MAX];
    struct str map; /* the mapping to unmap; empty: borrowed bytes */
    char hash[EMBED_HASH_CHARS + 1];
};

/* Point everything except the vocabulary into the file at `base`, by the sizes
 * in its head. Returns the size of the file; reads only the head. */
size_t minilm_lay(struct minilm *m, const char *base);

/* Whether the sizes are within bounds. */
MUST_USE enum err minilm_check_sizes(const struct minilm_head *h,
                                     struct why *why);

/* Write the hash of all other bytes into the head of a file. False if OpenSSL
 * fails. */
MUST_USE bool minilm_seal(char *file, size_t n);

/* Compute pairs_fit from the weights. */
bool minilm_pairs_fit(const struct minilm_matrix *w);

/* minilm_open for bytes in memory, aligned, and borrowed for as long as the
 * model lives. `path` is for messages; NULL: it is inside the program. */
MUST_USE enum err minilm_use(struct minilm **out, struct str file,
                             const char *path, struct why *why);

/* ---- the published files ---- */

enum {
    TENSORS_MAX = 4096,
    TENSOR_RANK_MAX = 4,
};

struct tensor {
    struct str name;
    struct str bytes;
    uint64_t shape[TENSOR_RANK_MAX];
    uint32_t rank;
    uint32_t item_bytes;
    bool is_f16, is_f32;
    bool is_used;
};

struct tensors {
    struct tensor *all; /* sorted by their bytes */
    size_t n;
};

/* Checks everything: the header, types, shapes, and that the tensors fill the
 * rest of the file without a gap. Allocates in the arena; borrows the file. */
MUST_USE enum err tensors_read(struct tensors *out, struct arena *a,
                               struct str file, struct why *why);

/* The tensor with that name and shape, F16 or F32 and finite; marks it as used.
 * cols 0: a vector of that many rows. NULL with a message. */
const struct tensor *tensors_find(struct tensors *t, struct why *why,
                                  uint64_t rows, uint64_t cols, const char *fmt,
                                  ...) PRINTF_LIKE(5, 6);
struct tensor *tensors_named(struct tensors *t, const char *name);
float tensor_at(const struct tensor *t, size_t i);

struct minilm_pieces {
    struct str *all;
    uint32_t n;
    uint32_t begin_id, end_id, unknown_id;
};

/* The vocabulary by id. ERR_BAD_REQUEST if the file requires texts to be split
 * in another way than words.c does. */
MUST_USE enum err minilm_read_pieces(struct minilm_pieces *out, struct arena *a,
                                     struct str tokenizer, struct why *why);

/* ---- the arithmetic ---- */

/* Rows of numbers as bytes: each number is scale * (byte - zero), with the
 * row's own scale and zero. */
struct minilm_bytes {
    uint8_t *bytes;
    float *scales;
    int32_t *zeros;
};

struct minilm_attention {
    float *out;       /* n rows of n_heads * head_dims */
    const float *qkv; /* n rows of three times that width */
    size_t n, n_heads, head_dims;
    float *keys;   /* scratch: head_dims * n, n rounded up to lanes */
    float *scores; /* scratch: MINILM_ROWS_MAX * n, the same */
};

/* All levels give the same result to the last bit: integers are exact, and all
 * float arithmetic is in minilm_lanes.inc. Widths are multiples of 16. */
struct minilm_ops {
    /* row[i] = scale * word[i] + position[i] */
    void (*add_word)(float *row, const int8_t *word, float scale,
                     const float *position, size_t width);

    /* x = norm(x + add); add may be NULL */
    void (*add_norm)(float *x, const float *add, const struct minilm_norm *norm,
                     size_t n, size_t width);
    void (*to_bytes)(const struct minilm_bytes *to, const float *x, size_t n,
                     size_t width);
    void (*gelu_to_bytes)(const struct minilm_bytes *to, float *x, size_t n,
                          size_t width);

    /* y: n rows of w->n_out */
    void (*multiply)(float *y, const struct minilm_matrix *w,
                     const struct minilm_bytes *x, size_t n);
    void (*attend)(const struct minilm_attention *a);

    /* The mean of n rows. */
    void (*mean)(float *out, const float *x, size_t n, size_t width);
};

/* For work on n rows side by side. n is a constant wherever such a function is
 * called, so the data of each row stays in registers. */
#define INLINED  __attribute__((always_inline))
#define EACH_ROW UNROLLED for (int r = 0; r < n; r++)

extern const struct minilm_ops minilm_plain, minilm_avx2;

/* The levels of this processor family, NULL if missing: the build compiles one
 * file that defines them (src/embed/meson.build). */
extern const struct minilm_ops *const minilm_levels[N_CPU_LEVELS];

/* On ARM: out[r * MINILM_SUMS + c] = the sum over k of weight (c, k) times
 * bytes[r * n_in + k] - 128, for n rows and the MINILM_SUMS channels at
 * `weights`, which fill a cache line. */
enum { MINILM_SUMS = 16, MINILM_DOTPROD_ROWS = 5 };
typedef void minilm_sum_fn(int32_t *out, const int8_t *weights,
                           const uint8_t *bytes, size_t n_in, size_t n);

/* At most MINILM_DOTPROD_ROWS rows; CPU_DOTPROD only. */
minilm_sum_fn minilm_sum_dotprod;

#endif
