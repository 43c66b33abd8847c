#ifndef EMBED_REPLY_H
#define EMBED_REPLY_H

/* reply: the answer of a provider. */

#include "base/err.h"
#include "base/str.h"

struct reply {
    uint32_t dims;
    float *vectors; /* n times dims, each of unit length */
    bool *is_good;  /* n; bad ones are all zero */
    size_t n_good;
    bool has_lengths; /* some vector has another length than dims */
    struct why why;   /* the fault of the last bad one */
};

/* Read the vectors of n texts, of dims numbers each; dims zero: of any length.
 * ERR_BAD_REQUEST with a message: the answer is unusable; ERR_NOMEM. On an
 * error there is nothing to free. */
MUST_USE enum err reply_read(struct str body, size_t n, uint32_t dims,
                             struct reply *out, struct why *why);
void reply_fini(struct reply *r);

#endif
