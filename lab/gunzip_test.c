#include "lab/gunzip.h"

#include "test/lib/tar_stage.h"

static enum err keep(void *ctx, struct str bytes, struct why *why)
{
    (void)why;
    buf_add_str(ctx, bytes);
    return OK;
}

/* Feeds pieces of `step` bytes. */
static enum err gunzip_in(struct str bytes, size_t step, uint64_t max_bytes,
                          struct buf *out, struct why *why)
{
    struct gunzip g;
    enum err e = gunzip_init(&g, max_bytes, keep, out);

    if (e)
        return e;
    while (bytes.n && !e) {
        e = gunzip_feed(&g, str_sub(bytes, 0, step), why);
        bytes = str_sub(bytes, step, bytes.n);
    }
    if (!e)
        e = gunzip_end(&g, why);
    gunzip_fini(&g);
    return e;
}

static void expect(struct str bytes, enum err e, const char *words)
{
    for (size_t step = 1; step < 100000; step *= 7) {
        struct why why = {""};
        struct buf out;

        buf_init(&out, 1 << 20);
        CHECK_INT(gunzip_in(bytes, step, 100, &out, &why), e);
        if (!strstr(why.text, words))
            T_FAIL("\"%s\" is not in \"%s\"", words, why.text);
        buf_fini(&out);
    }
}

/* Does not fit in one piece. */
static void fill(struct buf *text)
{
    buf_init(text, 1 << 20);
    for (int i = 0; i < 50000; i++)
        buf_addf(text, "%d ", i * 7919 % 50021);
}

TEST(what_was_packed_comes_out_however_it_is_cut)
{
    struct buf text, zipped, out;
    struct why why;

    fill(&text);
    buf_init(&zipped, 1 << 20);
    gzip(&zipped, buf_str(&text));
    for (size_t step = 1; step < 1000000; step *= 9) {
        buf_init(&out, 1 << 20);
        CHECK_INT(gunzip_in(buf_str(&zipped), step, text.n, &out, &why), OK);
        CHECK(str_eq(buf_str(&out), buf_str(&text)));
        buf_fini(&out);
    }
    buf_fini(&text);
    buf_fini(&zipped);
}

TEST(nothing_is_a_text_too)
{
    struct buf zipped;

    buf_init(&zipped, 1024);
    gzip(&zipped, STR(""));
    expect(buf_str(&zipped), OK, "");
    buf_fini(&zipped);
}

TEST(what_is_no_gzip_is_said_to_be_none)
{
    expect(STR("<!doctype html><title>Sign in"), ERR_BAD_REQUEST, "not a gzip");
    expect(STR(""), ERR_BAD_REQUEST, "empty");
    /* zlib's own format, and raw deflate. */
    expect(STR("\x78\x9c\x03\x00\x00\x00\x00\x01"), ERR_BAD_REQUEST,
           "not a gzip");
    expect(STR("\x03\x00\x03\x00"), ERR_BAD_REQUEST, "not a gzip");
}

TEST(each_byte_that_is_cut_off_is_missed)
{
    struct buf zipped;

    buf_init(&zipped, 1024);
    gzip(&zipped, STR("signalbox"));
    for (size_t n = 1; n < zipped.n; n++)
        expect(str_sub(buf_str(&zipped), 0, n), ERR_BAD_REQUEST, "truncated");
    buf_fini(&zipped);
}

TEST(what_is_behind_the_end_is_not_taken)
{
    struct buf zipped;

    buf_init(&zipped, 1024);
    gzip(&zipped, STR("one"));
    gzip(&zipped, STR("two"));
    expect(buf_str(&zipped), ERR_BAD_REQUEST, "after the end");
    buf_fini(&zipped);
}

TEST(a_wrong_check_sum_is_found)
{
    struct buf zipped;

    buf_init(&zipped, 1024);
    gzip(&zipped, STR("signalbox"));
    zipped.p[zipped.n - 6] ^= 1;
    expect(buf_str(&zipped), ERR_BAD_REQUEST, "damaged");
    buf_fini(&zipped);
}

TEST(no_more_comes_out_than_may)
{
    static char zeros[1 << 20];
    struct buf zipped, out;
    struct why why;

    buf_init(&zipped, 2 << 20);
    gzip(&zipped, (struct str){zeros, sizeof(zeros)});
    CHECK(zipped.n < 2000);
    buf_init(&out, sizeof(zeros));
    CHECK_INT(gunzip_in(buf_str(&zipped), SIZE_MAX, sizeof(zeros), &out, &why),
              OK);
    CHECK_INT(out.n, sizeof(zeros));
    buf_clear(&out);
    CHECK_INT(
        gunzip_in(buf_str(&zipped), SIZE_MAX, sizeof(zeros) - 1, &out, &why),
        ERR_LIMIT);
    CHECK(out.n < sizeof(zeros));
    expect(buf_str(&zipped), ERR_LIMIT, "100 bytes");
    buf_fini(&out);
    buf_fini(&zipped);
}

static enum err refuse(void *ctx, struct str bytes, struct why *why)
{
    ++*(int *)ctx;
    (void)bytes;
    return why_err(why, ERR_BUSY, "no");
}

TEST(whoever_takes_it_can_end_it)
{
    struct buf text, zipped;
    struct gunzip g;
    struct why why;
    int n_calls = 0;

    fill(&text);
    buf_init(&zipped, 1 << 20);
    gzip(&zipped, buf_str(&text));
    CHECK_INT(gunzip_init(&g, UINT64_MAX, refuse, &n_calls), OK);
    CHECK_INT(gunzip_feed(&g, buf_str(&zipped), &why), ERR_BUSY);
    CHECK_INT(n_calls, 1);
    gunzip_fini(&g);
    buf_fini(&text);
    buf_fini(&zipped);
}
