/* Inspecting and making models, for `signalbox model`: no loop, no thread, no
 * waiting. */
#include "embed/transformer/minilm.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"

#include "embed/jobs.h"

enum err embed_inside_about(enum embed_kind kind, struct embed_about *out,
                            struct why *why)
{
    struct embed_opts opts = {.kind = kind};

    *out = (struct embed_about){.bytes = 0};
    if (kind == EMBED_BUILTIN || kind == EMBED_TABLE)
        out->bytes += builtin_bytes();
    if (kind == EMBED_BUILTIN || kind == EMBED_TRANSFORMER)
        out->bytes += transformer_bytes();
    return embed_check(&opts, &out->stamp, why);
}

/* From errno: the file does not exist, or it is unreadable, and another one
 * would be too. */
static enum err minilm_unreadable(const char *path, struct why *why)
{
    if (errno == ENOENT)
        return why_err(why, ERR_NOT_FOUND, "there is no %.300s", path);
    return why_err(why, errno == EACCES ? ERR_NOT_ALLOWED : ERR_IO,
                   "the model file %.300s cannot be read: %s", path,
                   strerror(errno));
}

enum err embed_minilm_about(const char *path, struct embed_about *out,
                            struct why *why)
{
    struct minilm *m;
    struct stat st;
    enum err e;

    *out = (struct embed_about){.bytes = 0};
    if (stat(path, &st) != 0 || access(path, R_OK) != 0)
        return minilm_unreadable(path, why);
    e = minilm_open(&m, path, why);
    if (e)
        return e;
    embed_stamp_set(&out->stamp, STR("minilm"), minilm_hash(m), minilm_dims(m));
    out->bytes = (uint64_t)st.st_size;
    minilm_close(m);
    return OK;
}

enum err embed_minilm_make(struct str safetensors, struct str tokenizer,
                           struct buf *out, struct why *why)
{
    return minilm_make(safetensors, tokenizer, out, why);
}

/* Pieces. */

static void tokens_add_piece(struct buf *out, struct str piece)
{
    if (out->n)
        buf_add_char(out, ' ');
    buf_add_str(out, piece);
}

static void tokens_put_row(struct buf *out, const struct embed_table *t,
                           uint32_t row)
{
    const struct table_phrase *p;
    char bytes[UTF8_MAX];

    if (row & BUILTIN_UNKNOWN) {
        tokens_add_piece(
            out,
            (struct str){bytes, utf8_encode(bytes, row & ~BUILTIN_UNKNOWN)});
    } else if (row < t->words.n) {
        tokens_add_piece(out, vocab_piece(&t->words, row));
    } else {
        p = &t->phrases[row - t->words.n];
        tokens_add_piece(out, vocab_piece(&t->words, p->first));
        buf_add_char(out, '+');
        buf_add_str(out, vocab_piece(&t->words, p->second));
    }
}

static enum err builtin_pieces(const struct str *texts, size_t n,
                               struct buf *out, struct why *why)
{
    uint32_t rows[BUILTIN_ROWS_MAX];
    struct builtin b;
    enum err e = builtin_open(&b, why);

    for (size_t i = 0; i < n && !e; i++) {
        size_t n_rows = builtin_rows(&b.table, texts[i], rows);

        for (size_t k = 0; k < n_rows; k++)
            tokens_put_row(&out[i], &b.table, rows[k]);
    }
    return e;
}

/* Takes m. */
static enum err minilm_text_pieces(struct minilm *m, const struct str *texts,
                                   size_t n, struct buf *out)
{
    uint32_t ids[MINILM_MAX_TOKENS];

    for (size_t i = 0; i < n; i++) {
        /* Two tokens are for the marks of beginning and end. */
        size_t n_ids = wordpieces(&m->vocab, texts[i], m->head->unknown_id, ids,
                                  m->head->n_positions - 2);

        for (size_t k = 0; k < n_ids; k++)
            tokens_add_piece(&out[i], vocab_piece(&m->vocab, ids[k]));
    }
    minilm_close(m);
    return OK;
}

enum err embed_pieces(enum embed_kind kind, const char *model_file,
                      const struct str *texts, size_t n, struct buf *out,
                      struct why *why)
{
    struct minilm *m;
    enum err e;

    switch (kind) {
    case EMBED_BUILTIN: /* by its quick part */
    case EMBED_TABLE: return builtin_pieces(texts, n, out, why);
    case EMBED_TRANSFORMER:
        e = transformer_open(&m, why);
        return e ? e : minilm_text_pieces(m, texts, n, out);
    case EMBED_MINILM:
        e = minilm_open(&m, model_file, why);
        return e ? e : minilm_text_pieces(m, texts, n, out);
    case EMBED_HTTP:
    case N_EMBED_KINDS: break;
    }
    return OK;
}
