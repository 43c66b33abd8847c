#ifndef BASE_ADDR_H
#define BASE_ADDR_H

/* addr: "HOST:PORT" as text and as a socket address.
 *
 * HOST is a numeric address (an IPv6 one in brackets) or "localhost". Names are
 * not looked up. Threads: any; no state. */

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
    bool is_localhost; /* given by name, so both families are meant */
};

/* ERR_SYNTAX if s is not such an address; *out is then undefined. An
 * IPv4-mapped IPv6 address is rejected: it has a plainer spelling. */
MUST_USE enum err addr_parse(struct str s, struct addr *out);

enum { ADDR_BYTES = 16 };

/* The address without its port, IPv4 as ::ffff:a.b.c.d; zeros for other
 * families. */
void addr_bytes(const struct sockaddr *sa, uint8_t out[ADDR_BYTES]);

/* Map a bare IPv4 address in the same way, and test for a mapped one. */
void addr_map_v4(const uint8_t v4[4], uint8_t out[ADDR_BYTES]);
bool addr_is_v4(const uint8_t addr[ADDR_BYTES]);

/* Whether the first `prefix` bits of addr and range are equal. For the ranges
 * of a configuration use guard_ranges_have. */
bool addr_is_within(const uint8_t *addr, const uint8_t *range, unsigned prefix);

/* The unit in which peers are counted: an IPv4 address, or the /64 of an IPv6
 * address, since one machine may own all of a /64. */
void addr_network(const uint8_t addr[ADDR_BYTES], uint8_t out[ADDR_BYTES]);

/* Whether only this machine can reach the address. */
bool addr_is_loopback(const struct addr *a);

/* Whether it is the wildcard address, which stands for all addresses of this
 * machine. */
bool addr_is_any(const struct addr *a);

enum { ADDR_TEXT_BYTES = 56 };

/* "127.0.0.1:80" or "[::1]:80". */
void addr_write(const struct sockaddr *sa, char out[ADDR_TEXT_BYTES]);

#endif
