/* Any bytes as MiniLM's file, and as what it is made from. The first byte
 * chooses how:
 *
 *     0  the bytes are the file
 *     1  as a patch of a good one: three bytes where, one byte what
 *     2  the bytes are the safetensors
 *     3  their header, before good numbers
 *     4  the tokenizer
 *
 * Hashes are made to fit, or nothing else would ever be reached. What is
 * refused is refused with words; what is taken gives vectors that are one long
 * or all zero, the same on every level. */
#include <assert.h>
#include <math.h>

#include "test/lib/minilm_stage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KIND_FILE, KIND_PATCH, KIND_TENSORS, KIND_HEADER, KIND_TOKENIZER };

static void embed(const struct minilm *m, enum cpu_level level, float *v)
{
    struct minilm_scratch *s = minilm_scratch_new(m, level);

    assert(s);
    minilm_embed(m, s, STR("hello world, a zebra is singing"), v);
    minilm_scratch_free(s);
}

static void check_file(struct str file)
{
    float v[MINILM_DIMS], plain[MINILM_DIMS];
    struct why why = {""};
    struct minilm *m;
    double sum = 0;

    if (minilm_use(&m, file, "x", &why)) {
        assert(!m && why.text[0]);
        return;
    }
    embed(m, cpu_level(), v);
    embed(m, CPU_PLAIN, plain);
    assert(memcmp(v, plain, minilm_dims(m) * sizeof(*v)) == 0);
    for (uint32_t i = 0; i < minilm_dims(m); i++)
        sum += (double)v[i] * v[i];
    assert(sum == 0 || fabs(sum - 1) < 1e-4);
    minilm_close(m);
}

/* Exactly as long as its allocation, so that a step beyond is seen, and
 * sealed. */
static void check_copy(struct str bytes, struct str patches)
{
    void *place = NULL;
    char *p;

    assert(posix_memalign(&place, MINILM_ALIGN, bytes.n ? bytes.n : 1) == 0);
    p = place;
    if (bytes.n > 0)
        memcpy(p, bytes.p, bytes.n);
    for (; patches.n >= 4; patches = str_sub(patches, 4, patches.n)) {
        const unsigned char *at = (const unsigned char *)patches.p;

        p[(at[0] | at[1] << 8 | at[2] << 16) % bytes.n] = (char)at[3];
    }
    if (bytes.n >= sizeof(struct minilm_head))
        assert(minilm_seal(p, bytes.n));
    check_file((struct str){p, bytes.n});
    free(p);
}

static void check_made(struct str safetensors, struct str tokenizer)
{
    struct why why = {""};
    struct buf out;

    buf_init(&out, 8 << 20);
    if (minilm_make(safetensors, tokenizer, &out, &why))
        assert(why.text[0] && out.n == 0);
    else
        check_file(buf_str(&out));
    buf_fini(&out);
}

static void check_header(struct str header, const struct toy *toy)
{
    uint64_t n = header.n;
    struct buf all;

    buf_init(&all, 8 << 20);
    buf_add(&all, &n, sizeof(n));
    buf_add_str(&all, header);
    buf_add_str(&all, buf_str(&toy->numbers));
    assert(!all.over);
    check_made(buf_str(&all), buf_str(&toy->tokenizer));
    buf_fini(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct toy toy;
    struct str rest = {(const char *)data + 1, size ? size - 1 : 0};

    if (size == 0)
        return 0;
    if (toy.n_words == 0) {
        toy_init(&toy, TOY_F16);
        toy_make(&toy);
    }
    switch (data[0]) {
    case KIND_FILE: check_copy(rest, STR("")); break;
    case KIND_PATCH: check_copy(buf_str(&toy.file), rest); break;
    case KIND_TENSORS: check_made(rest, buf_str(&toy.tokenizer)); break;
    case KIND_HEADER: check_header(rest, &toy); break;
    case KIND_TOKENIZER: check_made(buf_str(&toy.safetensors), rest); break;
    default: break;
    }
    return 0;
}
