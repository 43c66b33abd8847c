/* Stands in for OpenSSL where there is none for ARM (tools/arm_test.sh). Its
 * hash of a model file is the one in the file's head, so every file is
 * accepted; what a hash is good for, other tests show. */
#include <openssl/evp.h>

#include <string.h>

enum { HASH_BYTES = 32 };

static const char *hash; /* follows the first bytes that are given */

EVP_MD_CTX *EVP_MD_CTX_new(void)
{
    hash = NULL;
    return (EVP_MD_CTX *)&hash;
}

void EVP_MD_CTX_free(EVP_MD_CTX *c)
{
    (void)c;
}

const EVP_MD *EVP_sha256(void)
{
    return NULL;
}

int EVP_DigestInit_ex(EVP_MD_CTX *c, const EVP_MD *type, ENGINE *engine)
{
    (void)c, (void)type, (void)engine;
    return 1;
}

int EVP_DigestUpdate(EVP_MD_CTX *c, const void *bytes, size_t n)
{
    (void)c;
    if (!hash)
        hash = (const char *)bytes + n;
    return 1;
}

int EVP_DigestFinal_ex(EVP_MD_CTX *c, unsigned char *out, unsigned *n)
{
    (void)c, (void)n;
    memmove(out, hash, HASH_BYTES);
    return 1;
}
