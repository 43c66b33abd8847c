#ifndef KEYRING_H
#define KEYRING_H

/* keyring: the key that credentials of cards are sealed with, from outside the
 * data folder. In this order:
 *
 *   seal.keyVariable    the variable holds the key
 *   seal.keyFile        a file holds it; "" seals nothing
 *   by itself ("auto")     signalbox.key of systemd's credentials, else
 *                          ~/.config/signalbox/card.key, which is made where
 *                          there is none yet
 *
 * A key is 64 hexadecimal digits. Threads: the main one. */

#include "base/seal.h"
#include "config/config.h"

enum { KEYRING_PATH_BYTES = 4096 };

struct keyring {
    struct seal_key key;
    bool has_key;                  /* else credentials are not sealed, */
    struct why why_not;            /* because */
    bool is_new;                   /* it was made just now */
    char from[KEYRING_PATH_BYTES]; /* a file, or the name of a variable */
};

/* may_make: whether a key may be made, in the place for it. ERR_BAD_CONFIG: one
 * is named, and is none or cannot be read. Without any key: OK. */
MUST_USE enum err keyring_open(struct keyring *k, const struct config *c,
                               bool may_make, struct why *why);

#endif
