/* The text of a token: "sbx_" and 32 random bytes in base64url without padding,
 * which are 43 characters. The prefix lets secret scanners find a token that
 * was committed to a repository by mistake.
 *
 * The text itself is hashed, so `printf %s TOKEN | sha256sum` finds its row.
 * Plain SHA-256 is enough: a password needs a slow hash because a person chose
 * it, but 256 random bits cannot be guessed at any speed.
 *
 * The 43rd character carries only four bits. If the two bits below them were
 * ignored, each token could be written in four ways. */
#include <assert.h>
#include <openssl/crypto.h>

#include "access/internal.h"
#include "base/fault.h"

#define PREFIX STR("sbx_")

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void token_make(struct rand rand, struct access_token *out)
{
    unsigned char secret[ACCESS_SECRET_BYTES + 1] = {0};
    char *to = out->text + PREFIX.n;

    rand.fill(rand.ctx, secret, ACCESS_SECRET_BYTES);
    memcpy(out->text, PREFIX.p, PREFIX.n);
    for (size_t bit = 0; bit < 8 * ACCESS_SECRET_BYTES; bit += 6) {
        unsigned two = secret[bit / 8] << 8 | secret[bit / 8 + 1];

        *to++ = alphabet[two >> (10 - bit % 8) & 63];
    }
    *to = '\0';
    assert(to == out->text + ACCESS_TOKEN_CHARS);
    OPENSSL_cleanse(secret, sizeof(secret));
}

bool token_is_well_formed(struct str s)
{
    const char *last;

    if (s.n != ACCESS_TOKEN_CHARS || !str_starts(s, PREFIX))
        return false;
    for (size_t i = PREFIX.n; i < s.n; i++)
        if (!s.p[i] || !strchr(alphabet, s.p[i]))
            return false;
    last = strchr(alphabet, s.p[s.n - 1]);
    return ((last - alphabet) & 3) == 0;
}

enum err token_hash(const struct access *a, struct str text,
                    char out[TOKEN_HASH_BYTES])
{
    unsigned n = 0;

    if (FAULT("access.hash") ||
        EVP_DigestInit_ex2(a->digest, a->sha256, NULL) != 1 ||
        EVP_DigestUpdate(a->digest, text.p, text.n) != 1 ||
        EVP_DigestFinal_ex(a->digest, (unsigned char *)out, &n) != 1)
        return ERR_NOMEM;
    assert(n == TOKEN_HASH_BYTES);
    return OK;
}

void access_token_wipe(struct access_token *t)
{
    OPENSSL_cleanse(t, sizeof(*t));
}
