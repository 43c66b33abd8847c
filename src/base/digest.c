#include "base/digest.h"

#include <openssl/evp.h>

#include "base/mem.h"

/* OpenSSL fails only without memory for its small state. */
void digest(struct str bytes, uint8_t out[DIGEST_BYTES])
{
    if (EVP_Digest(bytes.p, bytes.n, out, NULL, EVP_sha256(), NULL) != 1)
        mem_failed(DIGEST_BYTES);
}
