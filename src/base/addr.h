#ifndef BASE_ADDR_H
#define BASE_ADDR_H

/* addr: "HOST:PORT" as people write it and as the kernel wants it.
 *
 * HOST is a numeric address, a v6 one in brackets, or "localhost". Names are
 * not looked up. Threads: any; nothing here keeps state. */

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/str.h"

struct addr {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } sa;
    socklen_t len;
    bool is_localhost; /* said by name, so both families are meant */
};

/* ERR_SYNTAX when s is no such address; *out is then of no use. A v4 address
 * dressed up as v6 is none: there is a plainer way to write it. */
MUST_USE enum err addr_parse(struct str s, struct addr *out);

enum { ADDR_BYTES = 16 };

/* The address without its port, v4 as ::ffff:a.b.c.d; zeros where it is
 * neither v4 nor v6. */
void addr_bytes(const struct sockaddr *sa, uint8_t out[ADDR_BYTES]);

/* The same of a v4 address by itself; and whether one is such. */
void addr_map_v4(const uint8_t v4[4], uint8_t out[ADDR_BYTES]);
bool addr_is_v4(const uint8_t addr[ADDR_BYTES]);

/* Whether the first `prefix` bits are those of the range; both have as many.
 * Whether an address is in a range that somebody wrote is guard_ranges_have's
 * to say. */
bool addr_is_within(const uint8_t *addr, const uint8_t *range, unsigned prefix);

/* What counts as one peer: a v4 address, and of v6 the /64 that it is in, all
 * of which one machine may have. */
void addr_network(const uint8_t addr[ADDR_BYTES], uint8_t out[ADDR_BYTES]);

/* Whether only this machine can reach it. */
bool addr_is_loopback(const struct addr *a);

/* Whether it stands for every address of this machine. */
bool addr_is_any(const struct addr *a);

enum { ADDR_TEXT_BYTES = 56 };

/* "127.0.0.1:80" or "[::1]:80". */
void addr_write(const struct sockaddr *sa, char out[ADDR_TEXT_BYTES]);

#endif
