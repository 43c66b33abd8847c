/* Our file from the published ones, and inputs that are rejected. */
#include "embed/transformer/minilm.h"

#include <math.h>

#include "base/fault.h"
#include "test/lib/minilm_stage.h"
#include "test/t.h"

static struct toy *new_toy(enum toy_type type)
{
    struct toy *t = calloc(1, sizeof(*t));

    CHECK(t);
    toy_init(t, type);
    return t;
}

static void free_toy(struct toy *t)
{
    toy_fini(t);
    free(t);
}

static void check_refused(struct toy *t, const char *words)
{
    struct why why = {""};

    CHECK_INT(toy_try(t, &why), ERR_BAD_REQUEST);
    CHECK(t->file.n == 0);
    if (!strstr(why.text, words))
        T_FAIL("\"%s\" says nothing of \"%s\"", why.text, words);
}

/* Replace `what` by `with`, once. */
static void replace(struct buf *b, const char *what, const char *with)
{
    char *at = memmem(b->p, b->n, what, strlen(what));
    struct buf out;

    if (!at)
        T_FAIL("there is no %s", what);
    buf_init(&out, b->limit);
    buf_add(&out, b->p, (size_t)(at - b->p));
    buf_add(&out, with, strlen(with));
    at += strlen(what);
    buf_add(&out, at, (size_t)(b->p + b->n - at));
    buf_fini(b);
    *b = out;
}

static void check_header_refused(const char *what, const char *with,
                                 const char *words)
{
    struct toy *t = new_toy(TOY_F16);

    replace(&t->header, what, with);
    toy_join(t);
    check_refused(t, words);
    free_toy(t);
}

static void check_tokenizer_refused(const char *what, const char *with,
                                    const char *words)
{
    struct toy *t = new_toy(TOY_F16);

    replace(&t->tokenizer, what, with);
    check_refused(t, words);
    free_toy(t);
}

TEST(the_same_numbers_give_the_same_file)
{
    struct toy *half = new_toy(TOY_F16), *whole = new_toy(TOY_F32);

    toy_make(half);
    toy_make(whole);
    CHECK(str_eq(buf_str(&half->file), buf_str(&whole->file)));
    toy_make(whole);
    CHECK(str_eq(buf_str(&half->file), buf_str(&whole->file)));
    free_toy(half);
    free_toy(whole);
}

/* The same on all machines. A change of the output must update this hash, and
 * give the file a new version if old files become unusable. */
TEST(the_file_is_the_same_on_every_machine)
{
    struct toy *t = new_toy(TOY_F16);
    struct minilm *m;

    toy_make(t);
    m = toy_use(t);
    CHECK_STR(
        str_of(minilm_hash(m)),
        "9884ccf710683aae91ff71bb5b929828f64764b1c5b206aabc5cae8a850cc249");
    minilm_close(m);
    free_toy(t);
}

TEST(weights_lie_where_the_kernels_look)
{
    struct toy *t = new_toy(TOY_F16);
    const float *weight =
        toy_values(t, "encoder.layer.1.intermediate.dense.weight");
    const struct minilm_matrix *w;
    struct minilm *m;

    toy_make(t);
    m = toy_use(t);
    w = &m->layers[1].up;
    for (size_t c = 0; c < TOY_INNER; c++) {
        int32_t sum = 0;

        for (size_t k = 0; k < TOY_DIMS; k++) {
            int8_t q = w->weights[c / 64 * 64 * TOY_DIMS + k / 4 * 256 +
                                  c % 64 * 4 + k % 4];

            sum += q;
            CHECK(fabsf((float)q * w->scales[c] - weight[c * TOY_DIMS + k]) <=
                  0.51f * w->scales[c]);
        }
        CHECK_INT(sum, w->sums[c]);
    }
    CHECK((uintptr_t)((const char *)w->weights - t->file.p) % 64 == 0);
    minilm_close(m);
    free_toy(t);
}

TEST(safetensors_that_are_none_are_refused)
{
    static const struct {
        uint64_t length;
        const char *rest, *words;
    } bad[] = {
        {0, "", "not JSON"},
        {1, "", "length"},
        {UINT64_MAX, "{}", "length"},
        {1ull << 40, "{}", "length"},
        {3, "{}", "length"},
        {2, "[]", "not an object"},
        {1, "{}", "not JSON"},
        {2, "{}", "number of layers is 0"},
        {2, "{}x", "after the last"},
        {8, "{\"a\":{}}", "not described"},
        {7, "{\"a\":1}", "not described"},
        {8, "{\"\":{}} ", "name"},
    };
    struct toy *t = new_toy(TOY_F16);

    buf_clear(&t->safetensors);
    check_refused(t, "too short");
    buf_add(&t->safetensors, "1234567", 7);
    check_refused(t, "too short");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        buf_clear(&t->safetensors);
        buf_add(&t->safetensors, &bad[i].length, 8);
        buf_add(&t->safetensors, bad[i].rest, strlen(bad[i].rest));
        check_refused(t, bad[i].words);
    }
    free_toy(t);
}

TEST(safetensors_that_are_cut_short_are_refused)
{
    struct toy *t = new_toy(TOY_F16);

    while (t->safetensors.n > 0) {
        t->safetensors.n -= t->safetensors.n > 9000 ? 1001 : 1;
        CHECK(toy_try(t, NULL) == ERR_BAD_REQUEST);
        if (t->safetensors.n < 8000 && t->safetensors.n > 100)
            t->safetensors.n -= 97;
    }
    free_toy(t);
}

TEST(tensors_that_lie_are_refused)
{
    check_header_refused("\"F16\"", "\"F17\"", "unknown type");
    check_header_refused("\"F16\"", "16", "unknown type");
    check_header_refused("\"F16\"", "\"BF16\"", "neither F16 nor F32");
    check_header_refused("\"F16\"", "\"F32\"", "another size than its shape");
    check_header_refused("[59,64]", "[59,65]", "another size than its shape");
    check_header_refused("[59,64]", "[64,59]", "width is 59");
    check_header_refused("[59,64]", "[3776]", "width is 0");
    check_header_refused("[59,64]", "[-59,64]", "impossible shape");
    check_header_refused("[59,64]", "[59.0,64]", "impossible shape");
    check_header_refused("[59,64]", "[1,1,1,59,64]", "impossible shape");
    check_header_refused("[59,64]", "[4294967295,4294967295,4294967295]",
                         "impossible shape");
    check_header_refused("[59,64]", "7", "impossible shape");
    check_header_refused("[0,7552]", "[0,7552,1]", "outside the file");
    check_header_refused("[0,7552]", "[-1,7552]", "outside the file");
    check_header_refused("[0,7552]", "[7552,0]", "outside the file");
    check_header_refused("[0,7552]", "[0,9223372036854775807]",
                         "outside the file");
    check_header_refused("[0,7552]", "[2,7554]", "gap before it");
    check_header_refused("[7552,10112]", "[7550,10110]", "overlaps another");
    check_header_refused("[7552,10112]", "[0,2560]", "overlaps another");
    check_header_refused("embeddings.word_embeddings.weight",
                         "embeddings.position_embeddings.weight", "not JSON");
}

TEST(other_models_are_refused)
{
    check_header_refused(
        "encoder.layer.0.attention.self.key.bias",
        "encoder.layer.0.attention.self.kay.bias",
        "no tensor \"encoder.layer.0.attention.self.key.bias\"");
    check_header_refused("pooler.dense.bias", "classifier.bias",
                         "\"classifier.bias\"");
    check_header_refused("encoder.layer.1.output.dense.bias", "pooler.x",
                         "another kind of model");
    check_header_refused("embeddings.LayerNorm.bias", "pooler.x",
                         "no tensor \"embeddings.LayerNorm.bias\"");
}

TEST(what_says_nothing_of_weights_is_passed_over)
{
    struct toy *t = new_toy(TOY_F16), *plain = new_toy(TOY_F16);
    int64_t counted[4] = {0, 1, 2, 3};
    char more[128];

    replace(&t->header, "{\"embeddings",
            "{\"__metadata__\":{\"format\":\"pt\"},\"embeddings");
    t->header.n--; /* its last brace */
    snprintf(more, sizeof(more),
             ",\"embeddings.position_ids\":{\"dtype\":\"I64\",\"shape\":[1,4],"
             "\"data_offsets\":[%zu,%zu]}}",
             t->numbers.n, t->numbers.n + sizeof(counted));
    buf_add(&t->header, more, strlen(more));
    buf_add(&t->numbers, counted, sizeof(counted));
    toy_join(t);
    toy_make(t);
    toy_make(plain);
    CHECK(str_eq(buf_str(&t->file), buf_str(&plain->file)));
    free_toy(t);
    free_toy(plain);
}

TEST(numbers_that_are_none_are_refused)
{
    static const uint16_t halves[] = {0x7c00, 0xfc00, 0x7e00};
    static const float wholes[] = {NAN, INFINITY, -1e7f};

    for (int i = 0; i < 3; i++) {
        struct toy *t = new_toy(TOY_F16);

        memcpy(t->numbers.p + 2000, &halves[i], 2);
        toy_join(t);
        check_refused(t, "not finite");
        free_toy(t);
        t = new_toy(TOY_F32);
        memcpy(t->numbers.p + 4000, &wholes[i], 4);
        toy_join(t);
        check_refused(t, "not finite");
        free_toy(t);
    }
}

TEST(tokenizers_that_cut_in_another_way_are_refused)
{
    check_tokenizer_refused("{\"norm", "[\"norm", "not JSON");
    check_tokenizer_refused("BertNormalizer", "Lowercase", "normalizer");
    check_tokenizer_refused("\"clean_text\":true", "\"clean_text\":false",
                            "normalizer");
    check_tokenizer_refused("\"lowercase\":true", "\"lowercase\":false",
                            "normalizer");
    check_tokenizer_refused("\"strip_accents\":null", "\"strip_accents\":false",
                            "normalizer");
    check_tokenizer_refused("\"handle_chinese_chars\":true", "\"x\":true",
                            "normalizer");
    check_tokenizer_refused("BertPreTokenizer", "Whitespace", "pre_tokenizer");
    check_tokenizer_refused("WordPiece", "BPE", "model");
    check_tokenizer_refused("\"##\",", "\"@@\",", "model");
    check_tokenizer_refused("word\":100", "word\":200", "model");
    check_tokenizer_refused("\"unk_token\":\"[UNK]\"", "\"unk_token\":\"?\"",
                            "model");
    check_tokenizer_refused("TemplateProcessing", "ByteLevel",
                            "post_processor");
    check_tokenizer_refused("\"id\":\"[CLS]\"", "\"id\":\"[SEP]\"",
                            "post_processor");
}

TEST(vocabularies_with_holes_are_refused)
{
    check_tokenizer_refused("\"hello\":4", "\"hello\":5", "number of its own");
    check_tokenizer_refused("\"hello\":4", "\"hello\":59", "number of its own");
    check_tokenizer_refused("\"hello\":4", "\"hello\":-1", "number of its own");
    check_tokenizer_refused("\"hello\":4", "\"hello\":4.0",
                            "number of its own");
    check_tokenizer_refused("\"hello\":4", "\"\":4", "number of its own");
    check_tokenizer_refused("\"hello\":4", "\"world\":4", "not JSON");
    check_tokenizer_refused("\"[CLS]\":2", "\"[CLX]\":2", "no [CLS]");
    check_tokenizer_refused("\"[UNK]\":1,", "\"[UNX]\":1,", "no [UNK]");
    check_tokenizer_refused(",\"##z\":58", ",\"##z\":58,\"more\":59",
                            "do not belong together");
}

/* Errors of the vocabulary are bad requests too. */
TEST(a_piece_that_is_too_long_is_refused)
{
    char piece[300];

    memset(piece, 'x', sizeof(piece));
    memcpy(piece, "\"", 1);
    memcpy(piece + sizeof(piece) - 4, "\":4", 4);
    check_tokenizer_refused("\"hello\":4", piece, "1 to 255 are possible");
}

TEST(making_survives_every_fault)
{
    struct toy *t = new_toy(TOY_F16);
    long nth = 0;

    do {
        struct why why = {""};
        enum err e;

        fault_arm(++nth);
        e = toy_try(t, &why);
        CHECK(fault_fired() ? e && t->file.n == 0 && why.text[0] : e == OK);
    } while (fault_fired());
    CHECK(nth > 2);
    free_toy(t);
}

TEST(a_file_that_does_not_fit_is_an_error)
{
    struct toy *t = new_toy(TOY_F16);

    buf_fini(&t->file);
    buf_init(&t->file, 1000);
    CHECK(toy_try(t, NULL) == ERR_NOMEM && t->file.n == 0);
    free_toy(t);
}
