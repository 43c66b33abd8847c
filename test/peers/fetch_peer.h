#ifndef PEERS_FETCH_PEER_H
#define PEERS_FETCH_PEER_H

/* What a name means: "NAME=ADDRESSES/ADDRESSES/...", for the first time it is
 * looked up, the second, and so on; the last goes on. Addresses are parted by
 * commas. Borrows text. */
void names_add(const char *text);

#endif
