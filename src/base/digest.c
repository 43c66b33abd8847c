#include "base/digest.h"

#include <openssl/evp.h>

#include "base/fault.h"

enum err digest(struct str bytes, uint8_t out[DIGEST_BYTES])
{
    unsigned n = 0;

    if (FAULT("digest") ||
        EVP_Digest(bytes.p, bytes.n, out, &n, EVP_sha256(), NULL) != 1)
        return ERR_NOMEM;
    return OK;
}
