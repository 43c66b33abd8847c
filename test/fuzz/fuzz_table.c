/* Any bytes as the file of the built-in model, and text for it. The first byte
 * chooses how:
 *
 *     0  the bytes are the file
 *     1  as a patch of a good one: two bytes where, one byte what; 0xffff
 *        ends it and the rest is text. The hash is made to fit, or nothing
 *        else would ever be reached
 *     2  the bytes are text for a good one
 *
 * What is refused is refused with words. What is taken gives vectors that are
 * one long or all zero, the same on every level, from rows that there are. */
#include <assert.h>
#include <math.h>

#include "embed/table.h"
#include "test/lib/table_stage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(struct builtin *b, struct str text)
{
    uint32_t rows[BUILTIN_ROWS_MAX];
    size_t n = builtin_rows(&b->table, text, rows);
    float v[BUILTIN_DIMS], other[BUILTIN_DIMS];
    double sum = 0;

    assert(n <= BUILTIN_ROWS_MAX);
    for (size_t i = 0; i < n; i++)
        if (rows[i] & BUILTIN_UNKNOWN)
            assert((rows[i] & ~BUILTIN_UNKNOWN) <= 0x10ffff);
        else
            assert(rows[i] < b->table.words.n + b->table.n_phrases);
    b->ops = vec_ops_of(CPU_PLAIN);
    builtin_embed(b, text, v);
    b->ops = vec_ops();
    builtin_embed(b, text, other);
    assert(memcmp(v, other, sizeof(v)) == 0);
    for (int i = 0; i < BUILTIN_DIMS; i++)
        sum += (double)v[i] * (double)v[i];
    assert(sum == 0 || fabs(sum - 1) < 1e-4);
}

static void check_file(struct str bytes, struct str text)
{
    struct builtin b;
    struct why why = {""};

    if (builtin_open_bytes(&b, bytes, &why)) {
        assert(why.text[0]);
        return;
    }
    check_text(&b, text);
    check_text(&b, STR("New York City, signalboxes \xe6\x9d\xb1"));
}

static void patch(struct str *rest, char *p, size_t n)
{
    while (rest->n >= 3) {
        const unsigned char *r = (const unsigned char *)rest->p;
        size_t at = r[0] | (size_t)r[1] << 8;

        *rest = str_sub(*rest, 3, rest->n);
        if (at == 0xffff)
            break;
        p[at % n] = (char)r[2];
    }
    table_hash((struct str){p, n}, ((struct table_head *)p)->hash);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct toy toy;
    struct str rest = {(const char *)data + 1, size ? size - 1 : 0}, file;

    if (size == 0)
        return 0;
    if (!toy.rows)
        toy_init(&toy);
    file = toy_aligned(data[0] ? toy.bytes : rest);
    if (data[0] == 1)
        patch(&rest, (char *)file.p, file.n);
    check_file(file, rest);
    free((char *)file.p);
    return 0;
}
