/* Bytes pass through gunzip and untar into two buffers, and leave them only
 * once their hashes are verified. The length of a file is known before its
 * first byte is stored, so a tarball cannot fill the memory. */
#include "lab/weights.h"

#include <openssl/evp.h>
#include <stdio.h>

#include "base/fault.h"

static enum err weights_no_memory(struct why *why)
{
    return why_err(why, ERR_NOMEM, "out of memory");
}

/* Members. */

static const char *weights_file_name(const struct weights_file *f)
{
    const char *slash = strrchr(f->path, '/');

    return slash ? slash + 1 : f->path;
}

static enum err weights_begin_file(struct weights *w, bool is_file,
                                   uint64_t bytes, struct why *why)
{
    const struct weights_file *f = &w->pins->files[w->now];

    if (w->has[w->now] || w->files[w->now].n)
        return why_err(why, ERR_BAD_REQUEST, "it contains %s twice",
                       weights_file_name(f));
    if (!is_file)
        return why_err(why, ERR_BAD_REQUEST, "its %s is a link or a folder",
                       weights_file_name(f));
    if (bytes != f->bytes)
        return why_err(why, ERR_BAD_REQUEST,
                       "its %s has %llu bytes instead of %llu: this "
                       "is not %s %s",
                       weights_file_name(f), (unsigned long long)bytes,
                       (unsigned long long)f->bytes, w->pins->package,
                       w->pins->version);
    if (FAULT("weights.room") || !buf_reserve(&w->files[w->now], f->bytes))
        return weights_no_memory(why);
    return OK;
}

static enum err weights_on_member(void *ctx, struct str name, bool is_file,
                                  uint64_t bytes, bool *is_wanted,
                                  struct why *why)
{
    struct weights *w = ctx;

    for (int i = 0; i < N_WEIGHTS_PARTS; i++) {
        if (!str_eq(name, str_of(w->pins->files[i].path)))
            continue;
        w->now = (enum weights_part)i;
        *is_wanted = true;
        return weights_begin_file(w, is_file, bytes, why);
    }
    return OK;
}

static enum err weights_on_bytes(void *ctx, struct str bytes, struct why *why)
{
    struct weights *w = ctx;

    buf_add_str(&w->files[w->now], bytes);
    return w->files[w->now].over ? weights_no_memory(why) : OK;
}

static enum err weights_on_whole(void *ctx, struct why *why)
{
    struct weights *w = ctx;
    const struct weights_file *f = &w->pins->files[w->now];
    struct str bytes = buf_str(&w->files[w->now]);
    unsigned char hash[EVP_MAX_MD_SIZE];
    char hex[2 * EVP_MAX_MD_SIZE + 1];
    unsigned n = 0;

    if (FAULT("weights.hash") ||
        EVP_Digest(bytes.p, bytes.n, hash, &n, EVP_sha256(), NULL) != 1)
        return weights_no_memory(why);
    str_hex(hex, hash, n);
    if (strcmp(hex, f->sha256) != 0)
        return why_err(why, ERR_BAD_REQUEST,
                       "its %s is not the expected one: the SHA-256 is %s "
                       "instead of %s",
                       weights_file_name(f), hex, f->sha256);
    w->has[w->now] = true;
    return OK;
}

static enum err weights_on_unzipped(void *ctx, struct str bytes,
                                    struct why *why)
{
    struct weights *w = ctx;

    return untar_feed(&w->untar, bytes, why);
}

/* The tarball. */

enum err weights_init(struct weights *w, const struct weights_pins *pins)
{
    static const struct untar_handler handler = {
        weights_on_member, weights_on_bytes, weights_on_whole};

    *w = (struct weights){.pins = pins};
    for (int i = 0; i < N_WEIGHTS_PARTS; i++)
        buf_init(&w->files[i], pins->files[i].bytes);
    untar_init(&w->untar, &handler, w);
    w->tarball_hash = FAULT("weights.context") ? NULL : EVP_MD_CTX_new();
    if (w->tarball_hash &&
        EVP_DigestInit_ex(w->tarball_hash, EVP_sha512(), NULL) == 1 &&
        gunzip_init(&w->gunzip, pins->max_unpacked_bytes, weights_on_unzipped,
                    w) == OK)
        return OK;
    EVP_MD_CTX_free(w->tarball_hash);
    return ERR_NOMEM;
}

void weights_fini(struct weights *w)
{
    gunzip_fini(&w->gunzip);
    EVP_MD_CTX_free(w->tarball_hash);
    for (int i = 0; i < N_WEIGHTS_PARTS; i++)
        buf_fini(&w->files[i]);
}

enum err weights_feed(struct weights *w, struct str bytes, struct why *why)
{
    if (bytes.n > w->pins->max_tarball_bytes - w->tarball_bytes)
        return why_err(why, ERR_LIMIT,
                       "it is longer than the limit of %llu bytes",
                       (unsigned long long)w->pins->max_tarball_bytes);
    w->tarball_bytes += bytes.n;
    if (EVP_DigestUpdate(w->tarball_hash, bytes.p, bytes.n) != 1)
        return weights_no_memory(why);
    return gunzip_feed(&w->gunzip, bytes, why);
}

enum err weights_end(struct weights *w, struct why *why)
{
    enum err e = gunzip_end(&w->gunzip, why);
    unsigned char hash[EVP_MAX_MD_SIZE];
    char hex[2 * EVP_MAX_MD_SIZE + 1];
    unsigned n = 0;

    if (!e)
        e = untar_end(&w->untar, why);
    for (int i = 0; i < N_WEIGHTS_PARTS && !e; i++)
        if (!w->has[i])
            e = why_err(why, ERR_BAD_REQUEST, "it does not contain %s",
                        w->pins->files[i].path);
    if (e)
        return e;
    if (EVP_DigestFinal_ex(w->tarball_hash, hash, &n) != 1)
        return weights_no_memory(why);
    str_hex(hex, hash, n);
    w->is_original = strcmp(hex, w->pins->tarball_sha512) == 0;
    return OK;
}
