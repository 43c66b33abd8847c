/* The model's file, mapped and checked. Everything that is read while a text is
 * embedded lies within what minilm_lay gave out, and minilm_lay knows only
 * sizes; so once the sizes are within bounds and the file has as many bytes as
 * they need, no number in it can lead outside. The hash then says that nobody
 * has touched it, and the fractions are looked at, so that no vector is ever
 * made of what is no number.
 *
 * A mapped file that is cut short while it is in use would end the process
 * (SIGBUS). To read it in whole instead would be safe from that, and would
 * cost each process its own 24 MB. `signalbox model install` never writes into
 * a file that is there, it puts another in its place; docs/operations.md asks
 * others to do the same. */
#include "embed/minilm.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "embed/embed.h"

struct cursor {
    const char *base;
    size_t at;
};

static const void *take(struct cursor *c, size_t n, size_t size)
{
    const char *p = c->base + c->at;

    c->at += (n * size + MINILM_ALIGN - 1) / MINILM_ALIGN * MINILM_ALIGN;
    return p;
}

static void take_matrix(struct cursor *c, struct minilm_matrix *w, size_t n_out,
                        size_t n_in)
{
    w->n_out = (uint32_t)n_out;
    w->n_in = (uint32_t)n_in;
    w->weights = take(c, n_out * n_in, sizeof(*w->weights));
    w->scales = take(c, n_out, sizeof(*w->scales));
    w->bias = take(c, n_out, sizeof(*w->bias));
    w->sums = take(c, n_out, sizeof(*w->sums));
}

static void take_norm(struct cursor *c, struct minilm_norm *norm, size_t width)
{
    norm->weight = take(c, width, sizeof(*norm->weight));
    norm->bias = take(c, width, sizeof(*norm->bias));
}

size_t minilm_lay(struct minilm *m, const char *base)
{
    struct cursor c = {base, 0};
    const struct minilm_head *h = take(&c, 1, sizeof(*h));

    m->head = h;
    take(&c, h->vocab_bytes, 1);
    m->words = take(&c, (size_t)h->n_words * h->hidden, sizeof(*m->words));
    m->word_scales = take(&c, h->n_words, sizeof(*m->word_scales));
    m->positions =
        take(&c, (size_t)h->n_positions * h->hidden, sizeof(*m->positions));
    take_norm(&c, &m->norm, h->hidden);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct minilm_layer *l = &m->layers[i];

        take_matrix(&c, &l->qkv, (size_t)3 * h->hidden, h->hidden);
        take_matrix(&c, &l->out, h->hidden, h->hidden);
        take_norm(&c, &l->out_norm, h->hidden);
        take_matrix(&c, &l->up, h->inner, h->hidden);
        take_matrix(&c, &l->down, h->hidden, h->inner);
        take_norm(&c, &l->down_norm, h->hidden);
    }
    return c.at;
}

static enum err check_number(const char *what, uint32_t n, uint32_t least,
                             uint32_t most, struct why *why)
{
    if (n >= least && n <= most)
        return OK;
    return why_err(why, ERR_BAD_CONFIG,
                   "its number of %s is %u; %u to %u can be", what, n, least,
                   most);
}

static enum err check_width(const char *what, uint32_t n, uint32_t most,
                            struct why *why)
{
    if (n > 0 && n <= most && n % MINILM_GROUP == 0)
        return OK;
    return why_err(why, ERR_BAD_CONFIG,
                   "its %s is %u; multiples of %d up to %u can be", what, n,
                   MINILM_GROUP, most);
}

static enum err check_heads(const struct minilm_head *h, struct why *why)
{
    uint32_t dims = h->n_heads > 0 ? h->hidden / h->n_heads : 0;

    if (dims > 0 && dims * h->n_heads == h->hidden &&
        dims % MINILM_LANES == 0 && dims <= MINILM_HEAD_DIMS_MAX)
        return OK;
    return why_err(why, ERR_BAD_CONFIG,
                   "its number of heads is %u, for a width of %u; each has to "
                   "get a multiple of %d up to %d",
                   h->n_heads, h->hidden, MINILM_LANES, MINILM_HEAD_DIMS_MAX);
}

static enum err check_mark(const char *mark, uint32_t id, uint32_t n_words,
                           struct why *why)
{
    if (id < n_words)
        return OK;
    return why_err(why, ERR_BAD_CONFIG,
                   "its %s is word number %u, and it has %u words", mark, id,
                   n_words);
}

enum err minilm_check_sizes(const struct minilm_head *h, struct why *why)
{
    enum err e = check_number("layers", h->n_layers, 1, MINILM_LAYERS_MAX, why);

    if (!e)
        e = check_width("width", h->hidden, MINILM_DIMS, why);
    if (!e)
        e = check_heads(h, why);
    if (!e)
        e = check_width("inner width", h->inner, MINILM_INNER_MAX, why);
    if (!e)
        e = check_number("words", h->n_words, 1, MINILM_WORDS_MAX, why);
    if (!e)
        e = check_number("positions", h->n_positions, 3, MINILM_MAX_TOKENS,
                         why);
    if (!e)
        e = check_mark("[CLS]", h->begin_id, h->n_words, why);
    if (!e)
        e = check_mark("[SEP]", h->end_id, h->n_words, why);
    if (!e)
        e = check_mark("[UNK]", h->unknown_id, h->n_words, why);
    if (!e && (h->vocab_bytes == 0 || h->vocab_bytes > UINT32_MAX))
        e = why_err(why, ERR_BAD_CONFIG,
                    "its vocabulary has %llu bytes; 1 to %u can be",
                    (unsigned long long)h->vocab_bytes, UINT32_MAX);
    return e;
}

/* The hash of everything but the hash. */
static bool hash_of(const char *file, size_t n, uint8_t out[MINILM_HASH_BYTES])
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
    return hash_of(file, n,
                   (uint8_t *)file + offsetof(struct minilm_head, hash));
}

static bool are_finite(const float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(p[i]))
            return false;
    return true;
}

static bool is_good_matrix(const struct minilm_matrix *w)
{
    return are_finite(w->scales, w->n_out) && are_finite(w->bias, w->n_out);
}

static bool is_good_norm(const struct minilm_norm *norm, size_t width)
{
    return are_finite(norm->weight, width) && are_finite(norm->bias, width);
}

static bool is_good(const struct minilm *m)
{
    const struct minilm_head *h = m->head;
    bool good = are_finite(m->word_scales, h->n_words) &&
                are_finite(m->positions, (size_t)h->n_positions * h->hidden) &&
                is_good_norm(&m->norm, h->hidden);

    for (uint32_t i = 0; i < h->n_layers && good; i++) {
        const struct minilm_layer *l = &m->layers[i];

        good = is_good_matrix(&l->qkv) && is_good_matrix(&l->out) &&
               is_good_norm(&l->out_norm, h->hidden) &&
               is_good_matrix(&l->up) && is_good_matrix(&l->down) &&
               is_good_norm(&l->down_norm, h->hidden);
    }
    return good;
}

/* No branch within a group, so that the compiler does several at a time: this
 * is every weight of the file, whenever it is opened. */
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

static void look_at_pairs(struct minilm *m)
{
    for (uint32_t i = 0; i < m->head->n_layers; i++) {
        struct minilm_layer *l = &m->layers[i];

        l->qkv.pairs_fit = minilm_pairs_fit(&l->qkv);
        l->out.pairs_fit = minilm_pairs_fit(&l->out);
        l->up.pairs_fit = minilm_pairs_fit(&l->up);
        l->down.pairs_fit = minilm_pairs_fit(&l->down);
    }
}

static enum err check_head(const struct minilm_head *h, struct str file,
                           struct why *why)
{
    static const uint32_t zero[sizeof(h->zero) / sizeof(*h->zero)];

    if (file.n < sizeof(h->magic) ||
        memcmp(file.p, MINILM_MAGIC, sizeof(h->magic)) != 0)
        return why_err(why, ERR_BAD_CONFIG,
                       "it is no model file: it does not begin with \"%s\"",
                       MINILM_MAGIC);
    if (file.n < sizeof(*h))
        return why_err(why, ERR_BAD_CONFIG,
                       "it ends after %zu bytes, within its head of %zu",
                       file.n, sizeof(*h));
    if (h->version != MINILM_VERSION)
        return why_err(why, ERR_BAD_CONFIG,
                       "it is of version %u, and this program reads version %d",
                       h->version, MINILM_VERSION);
    if (h->head_bytes != sizeof(*h) || memcmp(h->zero, zero, sizeof(zero)) != 0)
        return why_err(why, ERR_BAD_CONFIG,
                       "its head is damaged: it says that it has %u bytes, and "
                       "should say %zu, with zeros where nothing is",
                       h->head_bytes, sizeof(*h));
    if (strncmp(h->name, MINILM_NAME, sizeof(h->name)) != 0 &&
        strncmp(h->name, TRANSFORMER_NAME, sizeof(h->name)) != 0)
        return why_err(why, ERR_BAD_CONFIG,
                       "it is of another kind of model than " MINILM_NAME
                       " and " TRANSFORMER_NAME);
    if (h->file_bytes != file.n)
        return why_err(why, ERR_BAD_CONFIG,
                       "it should have %llu bytes and has %zu",
                       (unsigned long long)h->file_bytes, file.n);
    return minilm_check_sizes(h, why);
}

static enum err check(struct minilm *m, struct str file, struct why *why)
{
    uint8_t hash[MINILM_HASH_BYTES];
    enum err e = check_head((const struct minilm_head *)file.p, file, why);

    if (e)
        return e;
    if (minilm_lay(m, file.p) != file.n)
        return why_err(why, ERR_BAD_CONFIG,
                       "its sizes do not go with its length: they take %zu "
                       "bytes, and it has %zu",
                       minilm_lay(m, file.p), file.n);
    if (!hash_of(file.p, file.n, hash))
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
    if (!is_good(m))
        return why_err(why, ERR_BAD_CONFIG,
                       "not all of its numbers are finite");
    look_at_pairs(m);
    str_hex(m->hash, m->head->hash, MINILM_HASH_BYTES);
    return OK;
}

enum err minilm_use(struct minilm **out, struct str file, const char *path,
                    struct why *why)
{
    struct why inner = {""};
    struct minilm *m =
        FAULT("minilm.alloc") ? NULL : calloc(1, sizeof(struct minilm));
    enum err e;

    *out = NULL;
    if (!m)
        return why_err(why, ERR_NOMEM, "no memory for the model %.300s",
                       path ? path : "inside this program");
    e = check(m, file, &inner);
    if (e && !path) {
        free(m);
        return why_err(why, e,
                       "the transformer inside this program cannot be used: "
                       "%s%s",
                       inner.text,
                       e == ERR_BAD_CONFIG
                           ? "; the program is damaged: install it anew"
                           : "");
    }
    if (e) {
        free(m);
        return why_err(why, e, "the model file %.300s cannot be used: %s%s",
                       path, inner.text,
                       e == ERR_BAD_CONFIG ? "; " EMBED_ADVICE : "");
    }
    *out = m;
    return OK;
}

static enum err map(struct str *out, int fd, const char *path, struct why *why)
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
    e = map(&file, fd, path, why);
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
