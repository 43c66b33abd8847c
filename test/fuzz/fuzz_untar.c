/* Any bytes as a tar file: the same members, bytes and end however they are
 * cut, nothing beyond the limits, and no byte that was not in the file. The
 * first byte chooses the cuts. Check sums are put right in half of the runs,
 * since no fuzzer finds them. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "lab/untar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { TEXT_MAX = 8 << 20 };

struct told {
    struct buf text;
    bool is_open; /* a wanted file */
    uint64_t left;
};

static enum err on_member(void *ctx, struct str name, bool is_file,
                          uint64_t bytes, bool *is_wanted, struct why *why)
{
    struct told *t = ctx;

    (void)why;
    assert(!t->is_open && name.n <= UNTAR_NAME_MAX);
    assert(is_file || bytes == 0);
    buf_addf(&t->text, "%zu:%.*s %d %llu\n", name.n, STR_ARG(name), is_file,
             (unsigned long long)bytes);
    *is_wanted = bytes % 2 == 0;
    t->is_open = *is_wanted && is_file;
    t->left = bytes;
    return name.n && name.p[0] == '!' ? ERR_BUSY : OK;
}

static enum err on_bytes(void *ctx, struct str bytes, struct why *why)
{
    struct told *t = ctx;

    (void)why;
    assert(t->is_open && bytes.n && bytes.n <= t->left);
    t->left -= bytes.n;
    buf_add_str(&t->text, bytes);
    return OK;
}

static enum err on_whole(void *ctx, struct why *why)
{
    struct told *t = ctx;

    (void)why;
    assert(t->is_open && t->left == 0);
    t->is_open = false;
    return OK;
}

static enum err feed(struct str bytes, size_t step, struct told *t)
{
    static const struct untar_handler handler = {on_member, on_bytes, on_whole};
    struct why why = {""};
    struct untar u;
    enum err e = OK;

    *t = (struct told){.is_open = false};
    buf_init(&t->text, TEXT_MAX);
    untar_init(&u, &handler, t);
    while (bytes.n && !e) {
        e = untar_feed(&u, str_sub(bytes, 0, step), &why);
        bytes = str_sub(bytes, step, bytes.n);
    }
    if (!e)
        e = untar_end(&u, &why);
    assert(e == OK || e == ERR_BUSY || why.text[0]);
    assert(e == OK || e == ERR_BUSY || e == ERR_BAD_REQUEST || e == ERR_LIMIT);
    assert(e || !t->is_open);
    return e;
}

/* Every block that could be a header gets the sum of one. */
static void mend_sums(char *p, size_t n)
{
    for (size_t at = 0; n - at >= UNTAR_BLOCK; at += UNTAR_BLOCK) {
        unsigned sum = 8 * ' ';

        if (memcmp(p + at + 257, "ustar", 5) != 0)
            continue;
        for (size_t i = 0; i < UNTAR_BLOCK; i++)
            if (i < 148 || i >= 156)
                sum += (unsigned char)p[at + i];
        snprintf(p + at + 148, 8, "%06o", sum);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct told whole, cut;
    struct str bytes;
    char *copy;
    enum err e;

    if (n < 1)
        return 0;
    copy = malloc(n);
    assert(copy);
    memcpy(copy, data + 1, n - 1);
    bytes = (struct str){copy, n - 1};
    if (data[0] & 1)
        mend_sums(copy, bytes.n);
    e = feed(bytes, SIZE_MAX, &whole);
    assert(feed(bytes, 1 + data[0] * 3u, &cut) == e);
    assert(str_eq(buf_str(&whole.text), buf_str(&cut.text)));
    buf_fini(&cut.text);
    buf_fini(&whole.text);
    free(copy);
    return 0;
}
