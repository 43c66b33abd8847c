/* The model's file, mapped and checked. Embedding a text reads only what
 * minilm_lay located, and minilm_lay depends only on sizes; so once the sizes
 * are within bounds and match the length of the file, no number in it can lead
 * outside. The hash then shows that the file was not altered, and all floats
 * are checked, so that no vector is ever computed from NaN or infinity.
 *
 * Truncating a mapped file that is in use would end the process (SIGBUS).
 * Rejected: reading it into memory, which is immune to that but costs each
 * process its own 24 MB. `signalbox model install` never writes into an
 * existing file but replaces it; docs/operations.md asks operators to do the
 * same. */
#include "embed/transformer/minilm.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "embed/embed.h"

struct cursor {
    const char *base;
    size_t at;
};

static const void *layout_take(struct cursor *c, size_t n, size_t size)
{
    const char *p = c->base + c->at;

    c->at += (n * size + MINILM_ALIGN - 1) / MINILM_ALIGN * MINILM_ALIGN;
    return p;
}

static void layout_take_matrix(struct cursor *c, struct minilm_matrix *w,
                               size_t n_out, size_t n_in)
{
    w->n_out = (uint32_t)n_out;
    w->n_in = (uint32_t)n_in;
    w->weights = layout_take(c, n_out * n_in, sizeof(*w->weights));
    w->scales = layout_take(c, n_out, sizeof(*w->scales));
    w->bias = layout_take(c, n_out, sizeof(*w->bias));
    w->sums = layout_take(c, n_out, sizeof(*w->sums));
}

static void layout_take_norm(struct cursor *c, struct minilm_norm *norm,
                             size_t width)
{
    norm->weight = layout_take(c, width, sizeof(*norm->weight));
    norm->bias = layout_take(c, width, sizeof(*norm->bias));
}

size_t minilm_lay(struct minilm *m, const char *base)
{
    struct cursor c = {base, 0};
    const struct minilm_head *h = layout_take(&c, 1, sizeof(*h));

    m->head = h;
    layout_take(&c, h->vocab_bytes, 1);
    m->words =
        layout_take(&c, (size_t)h->n_words * h->hidden, sizeof(*m->words));
    m->word_scales = layout_take(&c, h->n_words, sizeof(*m->word_scales));
    m->positions = layout_take(&c, (size_t)h->n_positions * h->hidden,
                               sizeof(*m->positions));
    layout_take_norm(&c, &m->norm, h->hidden);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct minilm_layer *l = &m->layers[i];

        layout_take_matrix(&c, &l->qkv, (size_t)3 * h->hidden, h->hidden);
        layout_take_matrix(&c, &l->out, h->hidden, h->hidden);
        layout_take_norm(&c, &l->out_norm, h->hidden);
        layout_take_matrix(&c, &l->up, h->inner, h->hidden);
        layout_take_matrix(&c, &l->down, h->hidden, h->inner);
        layout_take_norm(&c, &l->down_norm, h->hidden);
    }
    return c.at;
}

static enum err minilm_check_number(const char *what, uint32_t n,
                                    uint32_t least, uint32_t most,
                                    struct why *why)
{
    if (n >= least && n <= most)
        return OK;
    return why_err(why, ERR_BAD_CONFIG, "its number of %s is %u, not %u to %u",
                   what, n, least, most);
}

static enum err minilm_check_width(const char *what, uint32_t n, uint32_t most,
                                   struct why *why)
{
    if (n > 0 && n <= most && n % MINILM_GROUP == 0)
        return OK;
    return why_err(why, ERR_BAD_CONFIG,
                   "its %s is %u, not a multiple of %d up to %u", what, n,
                   MINILM_GROUP, most);
}

static enum err minilm_check_heads(const struct minilm_head *h, struct why *why)
{
    uint32_t dims = h->n_heads > 0 ? h->hidden / h->n_heads : 0;

    if (dims > 0 && dims * h->n_heads == h->hidden &&
        dims % MINILM_LANES == 0 && dims <= MINILM_HEAD_DIMS_MAX)
        return OK;
    return why_err(why, ERR_BAD_CONFIG,
                   "its number of heads is %u, for a width of %u; each "
                   "must be a multiple of %d wide, up to %d",
                   h->n_heads, h->hidden, MINILM_LANES, MINILM_HEAD_DIMS_MAX);
}

static enum err minilm_check_mark(const char *mark, uint32_t id,
                                  uint32_t n_words, struct why *why)
{
    if (id < n_words)
        return OK;
    return why_err(why, ERR_BAD_CONFIG,
                   "its %s is word number %u, and it has %u words", mark, id,
                   n_words);
}

enum err minilm_check_sizes(const struct minilm_head *h, struct why *why)
{
    enum err e =
        minilm_check_number("layers", h->n_layers, 1, MINILM_LAYERS_MAX, why);

    if (!e)
        e = minilm_check_width("width", h->hidden, MINILM_DIMS, why);
    if (!e)
        e = minilm_check_heads(h, why);
    if (!e)
        e = minilm_check_width("inner width", h->inner, MINILM_INNER_MAX, why);
    if (!e)
        e = minilm_check_number("words", h->n_words, 1, MINILM_WORDS_MAX, why);
    if (!e)
        e = minilm_check_number("positions", h->n_positions, 3,
                                MINILM_MAX_TOKENS, why);
    if (!e)
        e = minilm_check_mark("[CLS]", h->begin_id, h->n_words, why);
    if (!e)
        e = minilm_check_mark("[SEP]", h->end_id, h->n_words, why);
    if (!e)
        e = minilm_check_mark("[UNK]", h->unknown_id, h->n_words, why);
    if (!e && (h->vocab_bytes == 0 || h->vocab_bytes > UINT32_MAX))
        e = why_err(why, ERR_BAD_CONFIG,
                    "its vocabulary has %llu bytes, not 1 to %u",
                    (unsigned long long)h->vocab_bytes, UINT32_MAX);
    return e;
}

/* The hash of everything except the hash itself. */
static bool minilm_file_hash(const char *file, size_t n,
                             uint8_t out[MINILM_HASH_BYTES])
{
    size_t before = offsetof(struct minilm_head, hash);
    size_t after = sizeof(struct minilm_head);
    EVP_MD_CTX *c = FAULT("minilm.hash") ? NULL : EVP_MD_CTX_new();
    bool is_done = c && EVP_DigestInit_ex(c, EVP_sha256(), NULL) == 1 &&
                   EVP_DigestUpdate(c, file, before) == 1 &&
                   EVP_DigestUpdate(c, file + after, n - after) == 1 &&
                   EVP_DigestFinal_ex(c, out, NULL) == 1;

    EVP_MD_CTX_free(c);
    return is_done;
}

bool minilm_seal(char *file, size_t n)
{
    return minilm_file_hash(
        file, n, (uint8_t *)file + offsetof(struct minilm_head, hash));
}

static bool floats_are_finite(const float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(p[i]))
            return false;
    return true;
}

static bool matrix_is_finite(const struct minilm_matrix *w)
{
    return floats_are_finite(w->scales, w->n_out) &&
           floats_are_finite(w->bias, w->n_out);
}

static bool norm_is_finite(const struct minilm_norm *norm, size_t width)
{
    return floats_are_finite(norm->weight, width) &&
           floats_are_finite(norm->bias, width);
}

static bool minilm_is_finite(const struct minilm *m)
{
    const struct minilm_head *h = m->head;
    bool good =
        floats_are_finite(m->word_scales, h->n_words) &&
        floats_are_finite(m->positions, (size_t)h->n_positions * h->hidden) &&
        norm_is_finite(&m->norm, h->hidden);

    for (uint32_t i = 0; i < h->n_layers && good; i++) {
        const struct minilm_layer *l = &m->layers[i];

        good = matrix_is_finite(&l->qkv) && matrix_is_finite(&l->out) &&
               norm_is_finite(&l->out_norm, h->hidden) &&
               matrix_is_finite(&l->up) && matrix_is_finite(&l->down) &&
               norm_is_finite(&l->down_norm, h->hidden);
    }
    return good;
}

/* No branch within a group, so that the compiler can vectorise it: this reads
 * every weight of the file whenever one is opened. */
bool minilm_pairs_fit(const struct minilm_matrix *w)
{
    const int8_t *from = w->weights;
    int16_t pairs[2 * MINILM_GROUP], most = 0, least = 0;

    for (size_t left = (size_t)w->n_out * w->n_in / sizeof(pairs); left > 0;
         left--, from += sizeof(pairs)) {
        memcpy(pairs, from, sizeof(pairs));
        for (int i = 0; i < 2 * MINILM_GROUP; i++) {
            int16_t a = (int16_t)((int16_t)(pairs[i] * 256) / 256);
            int16_t b = (int16_t)(pairs[i] >> 8);
            int16_t above = (int16_t)((a > 0 ? a : 0) + (b > 0 ? b : 0));
            int16_t below = (int16_t)((a < 0 ? a : 0) + (b < 0 ? b : 0));

            most = above > most ? above : most;
            least = below < least ? below : least;
        }
        if (most > MINILM_PAIR_MAX || least < -MINILM_PAIR_MAX)
            return false;
    }
    return true;
}

static void minilm_find_fitting_pairs(struct minilm *m)
{
    for (uint32_t i = 0; i < m->head->n_layers; i++) {
        struct minilm_layer *l = &m->layers[i];

        l->qkv.pairs_fit = minilm_pairs_fit(&l->qkv);
        l->out.pairs_fit = minilm_pairs_fit(&l->out);
        l->up.pairs_fit = minilm_pairs_fit(&l->up);
        l->down.pairs_fit = minilm_pairs_fit(&l->down);
    }
}

static enum err minilm_check_head(const struct minilm_head *h, struct str file,
                                  struct why *why)
{
    static const uint32_t zero[sizeof(h->zero) / sizeof(*h->zero)];

    if (file.n < sizeof(h->magic) ||
        memcmp(file.p, MINILM_MAGIC, sizeof(h->magic)) != 0)
        return why_err(why, ERR_BAD_CONFIG,
                       "it is not a model file: it does not begin with \"%s\"",
                       MINILM_MAGIC);
    if (file.n < sizeof(*h))
        return why_err(why, ERR_BAD_CONFIG,
                       "it ends after %zu bytes, within its head of %zu",
                       file.n, sizeof(*h));
    if (h->version != MINILM_VERSION)
        return why_err(why, ERR_BAD_CONFIG,
                       "it has version %u, and this program reads version %d",
                       h->version, MINILM_VERSION);
    if (h->head_bytes != sizeof(*h) || memcmp(h->zero, zero, sizeof(zero)) != 0)
        return why_err(
            why, ERR_BAD_CONFIG,
            "its head is damaged: it claims %u bytes instead of %zu, "
            "or has something in its unused places",
            h->head_bytes, sizeof(*h));
    if (strncmp(h->name, MINILM_NAME, sizeof(h->name)) != 0 &&
        strncmp(h->name, TRANSFORMER_NAME, sizeof(h->name)) != 0)
        return why_err(why, ERR_BAD_CONFIG,
                       "it is another kind of model than " MINILM_NAME
                       " and " TRANSFORMER_NAME);
    if (h->file_bytes != file.n)
        return why_err(why, ERR_BAD_CONFIG,
                       "it should have %llu bytes and has %zu",
                       (unsigned long long)h->file_bytes, file.n);
    return minilm_check_sizes(h, why);
}

static enum err minilm_check(struct minilm *m, struct str file, struct why *why)
{
    uint8_t hash[MINILM_HASH_BYTES];
    enum err e =
        minilm_check_head((const struct minilm_head *)file.p, file, why);

    if (e)
        return e;
    if (minilm_lay(m, file.p) != file.n)
        return why_err(why, ERR_BAD_CONFIG,
                       "its sizes do not match its length: they take %zu "
                       "bytes, and it has %zu",
                       minilm_lay(m, file.p), file.n);
    if (!minilm_file_hash(file.p, file.n, hash))
        return why_err(why, ERR_NOMEM, "no memory to check it");
    if (memcmp(hash, m->head->hash, sizeof(hash)) != 0)
        return why_err(why, ERR_BAD_CONFIG,
                       "its bytes do not match their hash: it is damaged");
    e = vocab_open(
        &m->vocab,
        (struct str){file.p + sizeof(*m->head), m->head->vocab_bytes}, why);
    if (e)
        return e;
    if (m->vocab.n != m->head->n_words)
        return why_err(why, ERR_BAD_CONFIG,
                       "its vocabulary has %u words, and its head says %u",
                       m->vocab.n, m->head->n_words);
    if (!minilm_is_finite(m))
        return why_err(why, ERR_BAD_CONFIG,
                       "not all of its numbers are finite");
    minilm_find_fitting_pairs(m);
    str_hex(m->hash, m->head->hash, MINILM_HASH_BYTES);
    return OK;
}

enum err minilm_use(struct minilm **out, struct str file, const char *path,
                    struct why *why)
{
    struct why inner = {""};
    struct minilm *m = mem_new(sizeof(*m));
    enum err e = minilm_check(m, file, &inner);

    *out = e ? NULL : m;
    if (!e)
        return OK;
    free(m);
    if (!path)
        return why_err(why, e,
                       "the transformer inside this program cannot be used: "
                       "%s%s",
                       inner.text,
                       e == ERR_BAD_CONFIG
                           ? "; the program is damaged: install it again"
                           : "");
    return why_err(why, e, "the model file %.300s cannot be used: %s%s", path,
                   inner.text, e == ERR_BAD_CONFIG ? "; " EMBED_ADVICE : "");
}

static enum err minilm_map_file(struct str *out, int fd, const char *path,
                                struct why *why)
{
    struct stat st;
    void *p;

    if (FAULT("minilm.stat") || fstat(fd, &st) != 0)
        return why_err(why, ERR_IO, "cannot look at the model file %.300s: %s",
                       path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size == 0)
        return why_err(why, ERR_BAD_CONFIG,
                       "the model file %.300s is %s; " EMBED_ADVICE, path,
                       S_ISREG(st.st_mode)   ? "empty"
                       : S_ISDIR(st.st_mode) ? "a folder: move it away"
                                             : "no file");
    p = FAULT("minilm.map")
            ? MAP_FAILED
            : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return why_err(why, ERR_IO, "cannot map the model file %.300s: %s",
                       path, strerror(errno));
    *out = (struct str){p, (size_t)st.st_size};
    return OK;
}

enum err minilm_open(struct minilm **out, const char *path, struct why *why)
{
    int fd = FAULT("minilm.open")
                 ? -1
                 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct str file = {NULL, 0};
    enum err e;

    *out = NULL;
    if (fd < 0)
        return why_err(why, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO,
                       "cannot open the model file %.300s: %s%s", path,
                       strerror(errno),
                       errno == ENOENT ? "; " EMBED_ADVICE : "");
    e = minilm_map_file(&file, fd, path, why);
    close(fd);
    if (e)
        return e;
    e = minilm_use(out, file, path, why);
    if (e)
        munmap((void *)file.p, file.n);
    else
        (*out)->map = file;
    return e;
}

void minilm_close(struct minilm *m)
{
    if (m && m->map.n > 0)
        munmap((void *)m->map.p, m->map.n);
    free(m);
}

const char *minilm_hash(const struct minilm *m)
{
    return m->hash;
}

uint32_t minilm_dims(const struct minilm *m)
{
    return m->head->hidden;
}
