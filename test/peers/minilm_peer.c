/* Our MiniLM, alone in a small program.
 *
 *   minilm_peer make WEIGHTS TOKENIZER FILE    our file of what is published
 *   minilm_peer hash FILE
 *   minilm_peer levels                         those of this processor
 *   minilm_peer one FILE LEVEL                 texts in, vectors out
 *   minilm_peer many FILE LEVEL                the same, all texts at once
 *   minilm_peer wrong FILE LEVEL               with a mistake in each layer
 *
 * On standard input a text is its length, four bytes with the lowest first,
 * and its bytes. Vectors are floats. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "embed/internal.h"

enum { MAX_BYTES = 256 << 20, MAX_TEXTS = 1 << 16 };

__attribute__((noreturn)) static void fail(const char *what)
{
    fprintf(stderr, "minilm_peer: %s\n", what);
    exit(1);
}

static void read_all(FILE *f, struct buf *b)
{
    size_t n = 1;

    buf_init(b, MAX_BYTES);
    while (n > 0) {
        char *p = buf_reserve(b, 1 << 16);

        if (!f || !p)
            fail("cannot read it");
        n = fread(p, 1, 1 << 16, f);
        buf_commit(b, n);
    }
    fclose(f);
}

static void make(const char *weights, const char *tokenizer, const char *to)
{
    struct buf w, t, out;
    struct why why = {""};
    FILE *f = fopen(to, "wb");

    read_all(fopen(weights, "rb"), &w);
    read_all(fopen(tokenizer, "rb"), &t);
    buf_init(&out, MINILM_FILE_MAX);
    if (minilm_make(buf_str(&w), buf_str(&t), &out, &why))
        fail(why.text);
    if (!f || fwrite(out.p, 1, out.n, f) != out.n || fclose(f) != 0)
        fail("cannot write it");
    buf_fini(&w);
    buf_fini(&t);
    buf_fini(&out);
}

static size_t cut_texts(struct str all, struct str *texts)
{
    size_t n = 0;

    while (all.n >= 4) {
        const unsigned char *p = (const unsigned char *)all.p;
        size_t bytes = p[0] | p[1] << 8 | p[2] << 16 | (size_t)p[3] << 24;

        if (n == MAX_TEXTS || bytes > all.n - 4)
            fail("too many texts, or one that ends early");
        texts[n++] = str_sub(all, 4, 4 + bytes);
        all = str_sub(all, 4 + bytes, all.n);
    }
    return n;
}

static enum cpu_level level_of(const char *name)
{
    for (int i = 0; i <= (int)cpu_level(); i++)
        if (strcmp(name, cpu_level_name((enum cpu_level)i)) == 0)
            return (enum cpu_level)i;
    fail("this processor has no such level");
}

static struct minilm *open_model(const char *path)
{
    struct why why = {""};
    struct minilm *m;

    if (minilm_open(&m, path, &why))
        fail(why.text);
    return m;
}

static void embed(const struct minilm *m, enum cpu_level level, bool is_one)
{
    static struct str texts[MAX_TEXTS];
    struct minilm_scratch *s = minilm_scratch_new(m, level);
    size_t n, dims = minilm_dims(m);
    struct buf all;
    float *out;

    read_all(stdin, &all);
    n = cut_texts(buf_str(&all), texts);
    out = calloc(n * dims + 1, sizeof(*out));
    if (!s || !out)
        fail("no memory");
    for (size_t i = 0; i < n && is_one; i++)
        minilm_embed(m, s, texts[i], out + i * dims);
    if (!is_one)
        minilm_embed_many(m, s, texts, n, out);
    if (fwrite(out, sizeof(*out) * dims, n, stdout) != n)
        fail("cannot write");
    free(out);
    buf_fini(&all);
    minilm_scratch_free(s);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    struct minilm *m;

    if (strcmp(what, "levels") == 0) {
        for (int i = 0; i <= (int)cpu_level(); i++)
            puts(cpu_level_name((enum cpu_level)i));
        return 0;
    }
    if (strcmp(what, "make") == 0 && argc == 5) {
        make(argv[2], argv[3], argv[4]);
        return 0;
    }
    if (argc < 3)
        fail("what of which file?");
    m = open_model(argv[2]);
    if (strcmp(what, "wrong") == 0)
        fault_arm_at("minilm.no_residual", 1);
    if (strcmp(what, "hash") == 0)
        puts(minilm_hash(m));
    else if (argc == 4)
        embed(m, level_of(argv[3]), strcmp(what, "one") == 0);
    else
        fail("on which level?");
    minilm_close(m);
    return 0;
}
