/* The text is "1:ID:HEX" with format version 1. HEX is a random nonce of twelve
 * bytes, the ciphertext, and the sixteen bytes of the tag. */
#include "base/seal.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/fault.h"
#include "base/mem.h"

enum {
    NONCE_BYTES = 12,
    TAG_BYTES = 16,
    HEAD_CHARS = 2 + SEAL_ID_CHARS + 1,
};

static const char digits[] = "0123456789abcdef";

static bool hex_read(struct str text, unsigned char *out)
{
    for (size_t i = 0; i + 1 < text.n; i += 2) {
        int high = str_hex_value(text.p[i]);
        int low = str_hex_value(text.p[i + 1]);

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

/* The id hashes the key with a constant, so that it reveals nothing about other
 * uses of the key. */
static void seal_name_key(struct seal_key *k)
{
    static const char word[] = "signalbox sealed credentials";
    unsigned char text[SEAL_KEY_BYTES + sizeof(word)];
    uint8_t hash[DIGEST_BYTES];

    memcpy(text, k->bytes, SEAL_KEY_BYTES);
    memcpy(text + SEAL_KEY_BYTES, word, sizeof(word));
    digest((struct str){(const char *)text, sizeof(text)}, hash);
    for (size_t i = 0; i < SEAL_ID_CHARS; i++)
        k->id[i] = digits[i % 2 ? hash[i / 2] & 15 : hash[i / 2] >> 4];
    k->id[SEAL_ID_CHARS] = '\0';
}

enum err seal_key_read(struct str text, struct seal_key *out)
{
    text = str_trim_space(text);
    if (text.n != 2 * SEAL_KEY_BYTES || !hex_read(text, out->bytes))
        return ERR_SYNTAX;
    seal_name_key(out);
    return OK;
}

/* Encrypt or decrypt `text` into `out`, of the same length. Writes the tag, or
 * verifies the given one. */
static bool seal_run(const struct seal_key *k, struct str about,
                     struct str text, const unsigned char *nonce,
                     unsigned char *out, unsigned char *tag, bool is_closing)
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
    bytes = mem_new(plain.n + 1);
    if (FAULT("seal.chance") || RAND_bytes(nonce, sizeof(nonce)) != 1 ||
        !seal_run(k, about, plain, nonce, bytes, tag, true))
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

enum err seal_open(const struct seal_key *k, struct str about,
                   struct str sealed, struct buf *out,
                   char id[SEAL_ID_CHARS + 1])
{
    size_t n = sealed.n > HEAD_CHARS ? (sealed.n - HEAD_CHARS) / 2 : 0;
    unsigned char *bytes, *plain;
    struct str inner;
    enum err e = OK;

    id[0] = '\0';
    if (n < NONCE_BYTES + TAG_BYTES ||
        n > SEAL_PLAIN_MAX + NONCE_BYTES + TAG_BYTES ||
        !str_starts(sealed, STR("1:")) || sealed.p[HEAD_CHARS - 1] != ':')
        return ERR_SYNTAX;
    memcpy(id, sealed.p + 2, SEAL_ID_CHARS);
    id[SEAL_ID_CHARS] = '\0';
    if (strcmp(id, k->id) != 0)
        return ERR_NOT_ALLOWED;
    bytes = mem_new(n);
    inner =
        (struct str){(char *)bytes + NONCE_BYTES, n - NONCE_BYTES - TAG_BYTES};
    plain = mem_new(inner.n + 1);
    if (!hex_read(str_sub(sealed, HEAD_CHARS, sealed.n), bytes) ||
        !seal_run(k, about, inner, bytes, plain, bytes + n - TAG_BYTES, false))
        e = ERR_SYNTAX;
    if (!e)
        buf_add(out, (const char *)plain, inner.n);
    if (!e && out->over)
        e = ERR_NOMEM;
    free(plain);
    free(bytes);
    return e;
}
