#ifndef SERVER_KEYRING_H
#define SERVER_KEYRING_H

/* keyring: the key that seals the credentials of cards, from outside the data
 * folder. Searched in this order:
 *
 *   seal.keyVariable       the variable contains the key
 *   seal.keyFile           the file contains it; "": nothing is sealed
 *   seal.keyFile "auto"    signalbox.key of systemd's credentials, else
 *                          ~/.config/signalbox/card.key, which is created if it
 *                          does not exist
 *
 * A key is 64 hexadecimal digits. Threads: the main one. */

#include "base/seal.h"
#include "server/config/config.h"

enum { KEYRING_PATH_BYTES = 4096 };

struct keyring {
    struct seal_key key;
    bool has_key;                  /* else credentials are not sealed */
    struct why why_not;            /* the reason */
    bool is_new;                   /* just created */
    char from[KEYRING_PATH_BYTES]; /* a file, or the name of a variable */
};

/* may_make: whether to create the file for "auto". ERR_BAD_CONFIG: a configured
 * key is invalid or cannot be read. OK without any key. */
MUST_USE enum err keyring_open(struct keyring *k, const struct config *c,
                               bool may_make, struct why *why);

#endif
