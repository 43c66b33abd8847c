#ifndef NET_WS_INTERNAL_H
#define NET_WS_INTERNAL_H

/* What both sides of the handshake share. */

#include "net/http_internal.h"
#include "net/ws.h"

/* 24 bytes of base64 that stand for 16, in the one way there is. */
bool ws_key_is_valid(struct str key);

static inline bool ws_is_token(struct str s)
{
    return s.n > 0 && is_all(s, B_TOKEN);
}

/* Whether a comma-separated list names that word, without case. Empty places
 * in it do not count. */
static inline bool ws_list_has(struct str list, struct str word)
{
    while (list.n)
        if (str_eq_nocase(str_trim(str_cut(&list, ',')), word))
            return true;
    return false;
}

#endif
