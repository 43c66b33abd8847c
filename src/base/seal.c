/* The text is "1:ID:HEX", 1 being the form: twelve bytes of nonce, by chance,
 * the bytes themselves, and sixteen that prove them. */
#include "base/seal.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

enum {
    NONCE_BYTES = 12,
    TAG_BYTES = 16,
    HEAD_CHARS = 2 + SEAL_ID_CHARS + 1,
};

static const char digits[] = "0123456789abcdef";

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = str_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hex_read(struct str text, unsigned char *out)
{
    for (size_t i = 0; i + 1 < text.n; i += 2) {
        int high = hex_value(text.p[i]), low = hex_value(text.p[i + 1]);

        if (high < 0 || low < 0)
            return false;
        out[i / 2] = (unsigned char)(high << 4 | low);
    }
    return text.n % 2 == 0;
}

static void hex_add(struct buf *out, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_add_char(out, digits[p[i] >> 4]);
        buf_add_char(out, digits[p[i] & 15]);
    }
}

/* Of the key and a word, so that it says nothing of another use of the key. */
static enum err name_key(struct seal_key *k)
{
    static const char word[] = "signalbox sealed credentials";
    unsigned char text[SEAL_KEY_BYTES + sizeof(word)];
    unsigned char hash[EVP_MAX_MD_SIZE];

    memcpy(text, k->bytes, SEAL_KEY_BYTES);
    memcpy(text + SEAL_KEY_BYTES, word, sizeof(word));
    if (FAULT("seal.name") ||
        EVP_Digest(text, sizeof(text), hash, NULL, EVP_sha256(), NULL) != 1)
        return ERR_INTERNAL;
    for (size_t i = 0; i < SEAL_ID_CHARS; i++)
        k->id[i] = digits[i % 2 ? hash[i / 2] & 15 : hash[i / 2] >> 4];
    k->id[SEAL_ID_CHARS] = '\0';
    return OK;
}

enum err seal_key_read(struct str text, struct seal_key *out)
{
    text = str_trim_space(text);
    if (text.n != 2 * SEAL_KEY_BYTES || !hex_read(text, out->bytes))
        return ERR_SYNTAX;
    return name_key(out);
}

/* `text` becomes `out`, as long. Proves what it makes, or was given. */
static bool run(const struct seal_key *k, struct str about, struct str text,
                const unsigned char *nonce, unsigned char *out,
                unsigned char *tag, bool is_closing)
{
    EVP_CIPHER_CTX *c = FAULT("seal.run") ? NULL : EVP_CIPHER_CTX_new();
    unsigned char rest[TAG_BYTES];
    int n = 0, m = 0;
    bool is_good = c &&
                   EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, k->bytes,
                                     nonce, is_closing) == 1 &&
                   EVP_CipherUpdate(c, NULL, &n, (const unsigned char *)about.p,
                                    (int)about.n) == 1 &&
                   EVP_CipherUpdate(c, out, &n, (const unsigned char *)text.p,
                                    (int)text.n) == 1 &&
                   (is_closing || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG,
                                                      TAG_BYTES, tag) == 1) &&
                   EVP_CipherFinal_ex(c, rest, &m) == 1 &&
                   (!is_closing || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG,
                                                       TAG_BYTES, tag) == 1);

    EVP_CIPHER_CTX_free(c);
    return is_good && (size_t)n == text.n && m == 0;
}

enum err seal_close(const struct seal_key *k, struct str about,
                    struct str plain, struct buf *out)
{
    unsigned char nonce[NONCE_BYTES], tag[TAG_BYTES], *bytes;
    enum err e = OK;

    if (plain.n > SEAL_PLAIN_MAX)
        return ERR_LIMIT;
    bytes = malloc(plain.n + 1);
    if (!bytes)
        return ERR_NOMEM;
    if (FAULT("seal.chance") || RAND_bytes(nonce, sizeof(nonce)) != 1 ||
        !run(k, about, plain, nonce, bytes, tag, true))
        e = ERR_INTERNAL;
    if (!e) {
        buf_addf(out, "1:%s:", k->id);
        hex_add(out, nonce, sizeof(nonce));
        hex_add(out, bytes, plain.n);
        hex_add(out, tag, sizeof(tag));
        e = out->over ? ERR_NOMEM : OK;
    }
    free(bytes);
    return e;
}

static enum err open_bytes(const struct seal_key *k, struct str about,
                           unsigned char *bytes, size_t n, struct buf *out)
{
    size_t inner = n - NONCE_BYTES - TAG_BYTES;
    struct str text = {(const char *)bytes + NONCE_BYTES, inner};
    unsigned char *plain = malloc(inner + 1);
    enum err e = ERR_NOMEM;

    if (plain)
        e = run(k, about, text, bytes, plain, bytes + NONCE_BYTES + inner,
                false)
                ? OK
                : ERR_SYNTAX;
    if (!e)
        buf_add(out, (const char *)plain, inner);
    if (!e && out->over)
        e = ERR_NOMEM;
    free(plain);
    return e;
}

enum err seal_open(const struct seal_key *k, struct str about,
                   struct str sealed, struct buf *out,
                   char id[SEAL_ID_CHARS + 1])
{
    size_t n = sealed.n > HEAD_CHARS ? (sealed.n - HEAD_CHARS) / 2 : 0;
    unsigned char *bytes;
    enum err e;

    id[0] = '\0';
    if (n < NONCE_BYTES + TAG_BYTES ||
        n > SEAL_PLAIN_MAX + NONCE_BYTES + TAG_BYTES ||
        !str_starts(sealed, STR("1:")) || sealed.p[HEAD_CHARS - 1] != ':')
        return ERR_SYNTAX;
    memcpy(id, sealed.p + 2, SEAL_ID_CHARS);
    id[SEAL_ID_CHARS] = '\0';
    if (strcmp(id, k->id) != 0)
        return ERR_NOT_ALLOWED;
    bytes = malloc(n);
    if (!bytes)
        return ERR_NOMEM;
    e = hex_read(str_sub(sealed, HEAD_CHARS, sealed.n), bytes)
            ? open_bytes(k, about, bytes, n, out)
            : ERR_SYNTAX;
    free(bytes);
    return e;
}
