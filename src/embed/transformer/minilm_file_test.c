/* Invalid model files: truncated, foreign, damaged, or hostile. */
#include "embed/transformer/minilm.h"

#include <math.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "test/lib/minilm_stage.h"
#include "test/t.h"

static struct toy *new_toy(void)
{
    struct toy *t = calloc(1, sizeof(*t));

    CHECK(t);
    toy_init(t, TOY_F16);
    toy_make(t);
    return t;
}

static void free_toy(struct toy *t)
{
    toy_fini(t);
    free(t);
}

static struct minilm_head *head_of(struct toy *t)
{
    return (struct minilm_head *)t->file.p;
}

/* The current bytes are rejected with that message. */
static void check_refused(const struct toy *t, size_t n, const char *words)
{
    struct why why = {""};
    struct minilm *m;

    CHECK(minilm_use(&m, (struct str){t->file.p, n}, "the/file", &why) ==
          ERR_BAD_CONFIG);
    CHECK(!m && strstr(why.text, "the/file"));
    CHECK(strstr(why.text, "signalbox model install minilm"));
    if (!strstr(why.text, words))
        T_FAIL("\"%s\" says nothing of \"%s\"", why.text, words);
}

static void seal(struct toy *t)
{
    CHECK(minilm_seal(t->file.p, t->file.n));
}

/* Whether the file is accepted. Its vectors are finite or zero. */
static bool try_harmless(struct toy *t)
{
    float v[MINILM_DIMS];
    struct minilm_scratch *s;
    struct minilm *m;

    if (minilm_use(&m, buf_str(&t->file), "x", NULL))
        return false;
    for (int level = 0; level <= (int)cpu_level(); level++) {
        s = minilm_scratch_new(m, (enum cpu_level)level);
        CHECK(s);
        minilm_embed(m, s, STR("hello world of zebras"), v);
        for (uint32_t i = 0; i < minilm_dims(m); i++)
            CHECK(isfinite(v[i]) && fabsf(v[i]) <= 1.001f);
        minilm_scratch_free(s);
    }
    minilm_close(m);
    return true;
}

TEST(a_changed_byte_anywhere_is_seen)
{
    struct toy *t = new_toy();
    struct minilm *m;

    for (size_t i = 0; i < t->file.n; i += i < 256 ? 1 : 997) {
        t->file.p[i] ^= 0x10;
        CHECK(minilm_use(&m, buf_str(&t->file), "x", NULL) == ERR_BAD_CONFIG);
        t->file.p[i] ^= 0x10;
    }
    t->file.p[t->file.n - 1] ^= 1;
    check_refused(t, t->file.n, "do not match their hash");
    t->file.p[t->file.n - 1] ^= 1;
    CHECK(try_harmless(t));
    free_toy(t);
}

TEST(a_file_that_is_cut_short_is_refused_wherever_it_is_cut)
{
    struct toy *t = new_toy();
    uint64_t whole = t->file.n;

    for (size_t n = 0; n < whole; n += n < 512 ? 1 : 64)
        check_refused(t, n, "cannot be used");
    check_refused(t, sizeof(struct minilm_head) - 1, "within its head");
    check_refused(t, whole - 1, "should have");

    /* Even if the file claims it. */
    for (size_t n = sizeof(struct minilm_head); n < whole; n += 64) {
        head_of(t)->file_bytes = n;
        CHECK(minilm_seal(t->file.p, n));
        check_refused(t, n, "sizes do not match its length");
    }
    free_toy(t);
}

TEST(bytes_behind_the_end_are_refused)
{
    struct toy *t = new_toy();

    buf_add(&t->file, "more", 4);
    check_refused(t, t->file.n, "should have");
    head_of(t)->file_bytes = t->file.n;
    seal(t);
    check_refused(t, t->file.n, "sizes do not match its length");
    free_toy(t);
}

TEST(sizes_out_of_bounds_are_refused)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *words;
    } bad[] = {
#define AT(field) offsetof(struct minilm_head, field)
        {AT(version), 2, "version 2"},
        {AT(head_bytes), 191, "head is damaged"},
        {AT(zero), 1, "head is damaged"},
        {AT(n_layers), 0, "number of layers"},
        {AT(n_layers), MINILM_LAYERS_MAX + 1, "number of layers"},
        {AT(n_layers), UINT32_MAX, "number of layers"},
        {AT(hidden), 0, "width"},
        {AT(hidden), 63, "width"},
        {AT(hidden), MINILM_DIMS + 64, "width"},
        {AT(hidden), 0x80000000, "width"},
        {AT(n_heads), 0, "number of heads"},
        {AT(n_heads), 3, "number of heads"},
        {AT(n_heads), 64, "number of heads"},
        {AT(inner), 0, "inner width"},
        {AT(inner), 96, "inner width"},
        {AT(inner), MINILM_INNER_MAX + 64, "inner width"},
        {AT(n_words), 0, "number of words"},
        {AT(n_words), MINILM_WORDS_MAX + 1, "number of words"},
        {AT(n_positions), 2, "number of positions"},
        {AT(n_positions), MINILM_MAX_TOKENS + 1, "number of positions"},
        {AT(begin_id), 10000, "[CLS] is word number 10000"},
        {AT(end_id), UINT32_MAX, "[SEP] is word number 4294967295"},
        {AT(unknown_id), 10000, "[UNK] is word number 10000"},
        {AT(vocab_bytes), 0, "vocabulary has 0 bytes"},
        {AT(vocab_bytes) + 4, 1, "vocabulary has "},
        {AT(name), 0x58585858, "another kind of model"},
        {AT(name) + 16, 0x58585858, "another kind of model"},
        /* Within bounds, but not for this length. */
        {AT(n_layers), 1, "sizes do not match"},
        {AT(n_words), 58, "sizes do not match"},
        {AT(inner), 64, "sizes do not match"},
#undef AT
    };
    struct toy *t = new_toy();

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct minilm_head was = *head_of(t);

        memcpy(t->file.p + bad[i].at, &bad[i].value, sizeof(bad[i].value));
        seal(t);
        check_refused(t, t->file.n, bad[i].words);
        *head_of(t) = was;
    }
    free_toy(t);
}

TEST(a_vocabulary_of_another_size_is_refused)
{
    struct toy *t = new_toy();

    /* One word fewer, with its row counted as part of the vocabulary. */
    head_of(t)->n_words--;
    head_of(t)->vocab_bytes += TOY_DIMS;
    seal(t);
    check_refused(t, t->file.n, "vocabulary");
    free_toy(t);
}

TEST(numbers_that_are_none_are_refused)
{
    struct toy *t = new_toy();
    struct minilm *m = toy_use(t);
    const float *const places[] = {m->word_scales,
                                   m->positions + 70,
                                   m->norm.weight + 63,
                                   m->norm.bias,
                                   m->layers[0].qkv.scales,
                                   m->layers[1].down.bias + 5,
                                   m->layers[1].out_norm.weight,
                                   m->layers[1].down_norm.bias + 63};
    const float bad[] = {NAN, INFINITY, -INFINITY};

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        float *p = (float *)places[i], was = *p;

        *p = bad[i % 3];
        seal(t);
        check_refused(t, t->file.n, "finite");
        *p = was;
    }
    minilm_close(m);
    free_toy(t);
}

/* Everything except the head and the vocabulary may have any content. */
TEST(no_number_in_a_sealed_file_leads_astray)
{
    struct toy *t = new_toy(), *fresh = new_toy();
    size_t from = sizeof(struct minilm_head) + head_of(t)->vocab_bytes;
    uint32_t dice = 11, n_taken = 0;

    for (int round = 0; round < 60; round++) {
        memcpy(t->file.p, fresh->file.p, fresh->file.n);
        for (int i = 0; i < 30; i++) {
            dice = dice * 1664525 + 1013904223;
            t->file.p[from + dice % (t->file.n - from)] = (char)(dice >> 24);
        }
        seal(t);
        n_taken += try_harmless(t);
    }
    CHECK(n_taken > 20);
    free_toy(fresh);
    free_toy(t);
}

TEST(numbers_beyond_all_bounds_give_no_vector)
{
    struct toy *t = new_toy();
    struct minilm *m = toy_use(t);
    float *scales = (float *)m->layers[1].down.scales;

    for (int i = 0; i < TOY_DIMS; i++)
        scales[i] = i % 2 ? 3e38f : -3e38f;
    minilm_close(m);
    seal(t);
    CHECK(try_harmless(t));
    free_toy(t);
}

/* ---- from the disk ---- */

static void write_to(const char *path, struct str bytes)
{
    FILE *f = fopen(path, "wb");

    CHECK(f && fwrite(bytes.p, 1, bytes.n, f) == bytes.n && fclose(f) == 0);
}

static void path_of(char path[64])
{
    snprintf(path, 64, "/tmp/signalbox-minilm-%d", getpid());
}

TEST(a_file_is_mapped_and_says_its_hash)
{
    struct toy *t = new_toy();
    char path[64], hex[EMBED_HASH_CHARS + 1];
    struct minilm *m, *same = toy_use(t);
    struct why why = {""};

    path_of(path);
    write_to(path, buf_str(&t->file));
    CHECK(minilm_open(&m, path, &why) == OK);
    for (int i = 0; i < MINILM_HASH_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", head_of(t)->hash[i]);
    CHECK(strcmp(minilm_hash(m), hex) == 0);
    CHECK(strcmp(minilm_hash(same), hex) == 0);
    CHECK(unlink(path) == 0);
    minilm_close(m);
    minilm_close(same);
    minilm_close(NULL);
    free_toy(t);
}

static void embed_with(const struct minilm *m, float v[MINILM_DIMS])
{
    struct minilm_scratch *s = minilm_scratch_new(m, cpu_level());

    CHECK(s);
    minilm_embed(m, s, STR("hello world of zebras"), v);
    minilm_scratch_free(s);
}

/* Like `signalbox model install` and `remove`. */
TEST(a_file_that_is_replaced_or_removed_stays_mapped)
{
    struct toy *t = new_toy();
    char path[64], new[72];
    float before[MINILM_DIMS], after[MINILM_DIMS];
    struct minilm *m;

    path_of(path);
    snprintf(new, sizeof(new), "%s.new", path);
    write_to(path, buf_str(&t->file));
    CHECK(minilm_open(&m, path, NULL) == OK);
    embed_with(m, before);
    write_to(new, STR("something else"));
    CHECK(rename(new, path) == 0);
    embed_with(m, after);
    CHECK(memcmp(before, after, TOY_DIMS * sizeof(*before)) == 0);
    CHECK(unlink(path) == 0);
    embed_with(m, after);
    CHECK(memcmp(before, after, TOY_DIMS * sizeof(*before)) == 0);
    minilm_close(m);
    free_toy(t);
}

TEST(a_long_path_hides_neither_reason_nor_advice)
{
    struct toy *t = new_toy();
    struct why why = {""};
    struct minilm *m;
    char path[601];

    memset(path, 'x', sizeof(path));
    for (size_t i = 0; i < sizeof(path); i += 100)
        path[i] = '/';
    path[600] = '\0';
    CHECK(minilm_open(&m, path, &why) == ERR_NOT_FOUND);
    CHECK(strstr(why.text, "No such file") && strstr(why.text, "install"));
    t->file.p[t->file.n - 1] ^= 1;
    CHECK(minilm_use(&m, buf_str(&t->file), path, &why) == ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "hash") && strstr(why.text, "install minilm"));
    free_toy(t);
}

/* A replacement would be just as unreachable. */
TEST(a_file_that_cannot_be_reached_is_not_advised_to_be_got)
{
    struct embed_about about;
    struct why why = {""};
    struct minilm *m;
    char path[64], below[72];

    path_of(path);
    snprintf(below, sizeof(below), "%s/file", path);
    write_to(path, STR("x"));
    CHECK(minilm_open(&m, below, &why) == ERR_IO);
    CHECK(strstr(why.text, "Not a dir") && !strstr(why.text, "model install"));
    CHECK(embed_minilm_about(below, &about, &why) == ERR_IO);
    CHECK(strstr(why.text, "Not a dir") && !strstr(why.text, "model install"));
    CHECK(embed_minilm_about(path, &about, &why) == ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "model install"));
    CHECK(chmod(path, 0) == 0);
    if (geteuid() != 0) {
        CHECK(embed_minilm_about(path, &about, &why) == ERR_NOT_ALLOWED);
        CHECK(!strstr(why.text, "model install"));
    }
    CHECK(unlink(path) == 0);
    CHECK(embed_minilm_about(path, &about, &why) == ERR_NOT_FOUND);
}

TEST(what_is_no_file_is_refused_with_its_name)
{
    char path[64];
    struct why why = {""};
    struct minilm *m;

    path_of(path);
    CHECK(minilm_open(&m, path, &why) == ERR_NOT_FOUND && !m);
    CHECK(strstr(why.text, path) && strstr(why.text, "No such file"));
    CHECK(strstr(why.text, "signalbox model install minilm"));

    CHECK(mkfifo(path, 0600) == 0);
    CHECK(minilm_open(&m, path, &why) == ERR_BAD_CONFIG && !m);
    CHECK(strstr(why.text, "is no file"));
    unlink(path);

    CHECK(minilm_open(&m, "/tmp", &why) == ERR_BAD_CONFIG && !m);
    CHECK(strstr(why.text, "is a folder: move it away"));

    write_to(path, STR(""));
    CHECK(minilm_open(&m, path, &why) == ERR_BAD_CONFIG && !m);
    CHECK(strstr(why.text, "empty"));

    write_to(path, STR("#!/bin/sh\necho no model\n"));
    CHECK(minilm_open(&m, path, &why) == ERR_BAD_CONFIG && !m);
    CHECK(strstr(why.text, "does not begin with \"SBMINILM\""));
    unlink(path);
}

TEST(opening_survives_every_fault)
{
    struct toy *t = new_toy();
    char path[64];
    long nth = 0;

    path_of(path);
    write_to(path, buf_str(&t->file));
    do {
        struct minilm_scratch *s = NULL;
        struct why why = {""};
        struct minilm *m;
        enum err e;

        fault_arm(++nth);
        e = minilm_open(&m, path, &why);
        CHECK((e == OK) == (m != NULL) && (e == OK) == (why.text[0] == 0));
        if (m)
            s = minilm_scratch_new(m, cpu_level());
        CHECK(fault_fired() == !s);
        minilm_scratch_free(s);
        minilm_close(m);
    } while (fault_fired());
    CHECK(nth > 5);
    unlink(path);
    free_toy(t);
}
