#ifndef EMBED_REPLY_H
#define EMBED_REPLY_H

/* reply: what a provider says. */

#include "base/err.h"
#include "base/str.h"

struct reply {
    uint32_t dims;
    float *vectors; /* n times dims, each one long */
    bool *is_good;  /* n; the others are all zero */
    size_t n_good;
    bool has_lengths; /* others than dims */
    struct why why;   /* what is wrong with the last one that is not good */
};

/* Read what should be the vectors of n texts, of so many numbers each; dims
 * zero: of as many as there are. ERR_BAD_REQUEST with words: it cannot be used
 * at all; ERR_NOMEM. On an error there is nothing to free. */
MUST_USE enum err reply_read(struct str body, size_t n, uint32_t dims,
                             struct reply *out, struct why *why);
void reply_fini(struct reply *r);

#endif
