#ifndef CALLS_SHARE_H
#define CALLS_SHARE_H

/* share: what is read and said in the same way whether it is asked by HTTP or
 * on the hub. Threads: the loop's. */

#include "model/msg.h"
#include "registry/registry.h"
#include "speak/speak.h"

/* Read a message: POST /api/messages' body, and a key that came beside it
 * (empty: none). As speak_message, and what a key stands for is in it. */
MUST_USE enum err share_message(struct msg *m, struct str body, struct str key);

/* The details of the error that m was refused with; may be nothing. */
void share_message_details(struct buf *out, const struct msg *m);

#define SHARE_KEY_IS_OLD                                                  \
    STR("this idempotency key was used, and its task is no longer kept; " \
        "to send the message again take a new key")

enum { SHARE_HITS_BYTES = 4 * 1024 * 1024 }; /* no further agent after this */

/* A search as it was asked for, through these eyes. */
struct search share_search(const struct speak_search_call *s,
                           const struct eyes *eyes);

/* A copy of its strings, to be freed. NULL: no memory. */
MUST_USE char *share_search_keep(struct speak_search_call *kept,
                                 const struct speak_search_call *s);

/* The answer to it. */
void share_hits(struct json_out *out, struct registry *registry,
                const struct speak_search_call *s,
                const struct search_result *r);

/* What is wrong with a card, as details. */
void share_problems(struct buf *out, const struct card_problems *p);

#endif
