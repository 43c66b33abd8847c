/* Any bytes as the rows of what was learnt. The first byte chooses how:
 *
 *     even  the rest is rows: kind, length of the key, of the bytes (two), both
 *     odd   it is a patch of good rows: which row, two bytes where, one what
 *
 * What is refused leaves the state as it was; what is taken hangs together,
 * can be asked and taught, and is the same when it is written and read. */
#include <assert.h>
#include <stdlib.h>

#define CHECK(expr)     assert(expr)
#define CHECK_INT(a, b) assert((a) == (b))

#include <stdio.h>
#include <string.h>

#include "test/lib/learn_stage.h"
#include "test/lib/learn_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void good_rows(struct kept *k)
{
    struct stage *s = stage_new();

    judge(s, "ann", 1, VERDICT_POSITIVE);
    judge(s, "bob", 2, VERDICT_NEGATIVE);
    correct(s, "ann", "cy", "org:acme", 3);
    correct(s, "bob", "cy", "user:ann", 100);
    {
        struct outcome o = corrected(s, "bob", "ann", "org:acme", 1);

        o.vector = o.model_hash = STR("");
        o.text_hash = 77;
        apply(s, &o);
    }
    write_all(s->l, k);
    stage_free(s);
}

static void patch(struct kept *k, const uint8_t *data, size_t size)
{
    for (; size >= 4; data += 4, size -= 4) {
        struct kept_row *r = &k->rows[data[0] % k->n];
        size_t at = data[1] | (size_t)data[2] << 8;

        if (at < r->n_bytes)
            r->bytes[at] = (char)data[3];
        else if (at < r->n_bytes + r->n_key)
            r->key[at - r->n_bytes] = (char)data[3];
        else if (data[3] % 2)
            r->kind = data[3] / 2 % 8;
        else
            r->n_bytes = r->n_bytes * data[3] / 256;
    }
}

static void read_rows(struct kept *k, const uint8_t *data, size_t size)
{
    while (size >= 4 && k->n < 64) {
        size_t n_key = data[1], n = data[2] | (size_t)data[3] << 8;

        if (n_key + n > size - 4)
            n = size - 4 < n_key ? 0 : size - 4 - n_key;
        if (n_key > size - 4)
            n_key = size - 4;
        kept_put(k, data[0] % 8, (struct str){(const char *)data + 4, n_key},
                 (struct str){(const char *)data + 4 + n_key, n});
        data += 4 + n_key + n;
        size -= 4 + n_key + n;
    }
}

static char *export_of(struct stage *s)
{
    char *p = strdup(exported(s));

    assert(p);
    return p;
}

/* Written, read and applied again it is what it was. */
static void check_goes_on(struct stage *s, struct kept *k)
{
    struct learn *was = s->l;
    struct outcome o = corrected(s, "ann", "dan", "org:acme", 100);
    char *before, *after;

    assert(learn_check(s->l));
    o.seq = INT64_MAX;
    assert(learn_apply(s->l, &o) == OK && learn_check(s->l));
    ask(s, "org:acme", 3, "cy");
    learn_rewrite(s->l);
    kept_clear(k);
    write_all(s->l, k);
    before = export_of(s);
    s->l = learn_new(&s->settings, STR("model"), 0, stage_seed);
    assert(s->l && load_all(s->l, k) == OK && learn_check(s->l));
    after = export_of(s);
    assert(strcmp(before, after) == 0);
    learn_free(was);
    free(before);
    free(after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stage *s = stage_new();
    struct kept *k = calloc(1, sizeof(*k));

    assert(k);
    if (size && data[0] % 2) {
        good_rows(k);
        patch(k, data + 1, size - 1);
    } else if (size) {
        read_rows(k, data + 1, size - 1);
    }
    for (int64_t kind = 0; kind < 8; kind++)
        for (size_t i = 0; i < k->n; i++)
            if (k->rows[i].kind == kind) {
                enum err e = load_one(s->l, &k->rows[i]);

                assert(e == OK || e == ERR_SYNTAX);
            }
    check_goes_on(s, k);
    kept_clear(k);
    free(k);
    stage_free(s);
    return 0;
}
