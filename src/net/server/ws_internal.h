#ifndef NET_SERVER_WS_INTERNAL_H
#define NET_SERVER_WS_INTERNAL_H

/* Internals that both sides of the handshake share. */

#include "net/server/http_internal.h"
#include "net/server/ws.h"

/* 24 bytes of base64 for 16 bytes, in canonical form. */
bool ws_key_is_valid(struct str key);

static inline bool ws_is_token(struct str s)
{
    return s.n > 0 && is_all(s, B_TOKEN);
}

/* Whether a comma-separated list contains that word, ignoring case. Empty
 * elements do not count. */
static inline bool ws_list_has(struct str list, struct str word)
{
    while (list.n)
        if (str_eq_nocase(str_trim(str_cut(&list, ',')), word))
            return true;
    return false;
}

#endif
