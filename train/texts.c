/* The texts that the table is made of: two files, one JSON array a line. They
 * are no part of the project, so their hashes are: a table that came from
 * other texts is another table, and anyone who wants that says so. */
#include "train/train.h"

#include <stdio.h>

#include "base/json.h"

enum { PATH_MAX_BYTES = 4096 };
static const size_t MAX_FILE_BYTES = (size_t)1 << 30;

struct source_file {
    const char *name;
    size_t n_texts; /* of a line, behind the name of its source */
    const char *hash;
};

static const struct source_file files[] = {
    {"pairs.jsonl.gz", 2,
     "56680c66580492ded2caf7caa9943cc29a341cc11ea79dd4de2ba069b243b02a"},
    {"texts.jsonl.gz", 1,
     "de9f92300166d1d6d2d2e3b679317b06828ff87cbf86bb4a9fc4f11b561e37db"},
};

enum { N_FILES = sizeof(files) / sizeof(files[0]) };

static bool is_line(const struct json *v, size_t n_texts)
{
    if (!v || v->type != JSON_ARR || v->kids.n != n_texts + 1)
        return false;
    JSON_EACH(kid, v)
    if (kid->type != JSON_STR)
        return false;
    return true;
}

/* Where texts go. */
struct reading {
    struct corpus *corpus;
    struct lexicon *lexicon;
    const struct grammar *grammar;
};

static void add_line(const struct reading *r, const struct json *v)
{
    struct corpus *c = r->corpus;
    struct str name = json_at(v, 0)->s, first = json_at(v, 1)->s;
    uint8_t source = corpus_source(c, name);
    uint32_t a = corpus_add(c, source, first);

    if (v->kids.n > 2) {
        struct str second = json_at(v, 2)->s;

        corpus_pair(c, a, corpus_add(c, source, second), source);
        lexicon_offer(r->lexicon, r->grammar, name, first, second);
    }
}

static enum err add_lines(const struct reading *r, const struct source_file *f,
                          struct str lines, struct why *why)
{
    struct arena scratch;
    enum err e = OK;

    arena_init(&scratch, 1 << 20);
    for (size_t n = 1; lines.n && !e; n++) {
        struct str line = str_cut(&lines, '\n');
        struct json *v = json_parse(&scratch, line, 0, NULL);

        if (is_line(v, f->n_texts))
            add_line(r, v);
        else
            e = why_err(why, ERR_SYNTAX, "%s, line %zu: not %s", f->name, n,
                        f->n_texts == 2 ? "[source, text, text]"
                                        : "[source, text]");
        arena_reset(&scratch);
    }
    arena_fini(&scratch);
    return e;
}

static enum err read_one(const struct reading *r, const struct source_file *f,
                         const char *folder, bool any,
                         char hash[HASH_CHARS + 1], struct why *why)
{
    char path[PATH_MAX_BYTES];
    struct buf packed, lines;
    enum err e;

    buf_init(&packed, MAX_FILE_BYTES);
    buf_init(&lines, MAX_FILE_BYTES);
    snprintf(path, sizeof(path), "%s/%s", folder, f->name);
    e = file_read(path, &packed, why);
    if (!e) {
        train_hash(buf_str(&packed), hash);
        if (!any && strcmp(hash, f->hash) != 0)
            e = why_err(why, ERR_BAD_REQUEST,
                        "%s is not the one that the table was made of: its "
                        "SHA-256 is %s, not %s; --any-texts takes it anyway",
                        path, hash, f->hash);
    }
    if (!e)
        e = gz_unpack(buf_str(&packed), &lines, why);
    if (!e)
        e = add_lines(r, f, buf_str(&lines), why);
    buf_fini(&packed);
    buf_fini(&lines);
    return e;
}

enum err texts_read(struct corpus *c, struct lexicon *l,
                    const struct grammar *g, const struct recipe *r,
                    const char *folder, bool any, char hash[HASH_CHARS + 1],
                    struct why *why)
{
    struct reading reading = {c, l, g};
    char hashes[N_FILES * (HASH_CHARS + 1)];
    enum err e = OK;

    for (size_t i = 0; i < N_FILES && !e; i++)
        e = read_one(&reading, &files[i], folder, any,
                     hashes + i * (HASH_CHARS + 1), why);
    if (e)
        return e;
    train_hash((struct str){hashes, sizeof(hashes)}, hash);
    corpus_settle(c, r);
    lexicon_settle(l, c);
    return OK;
}
