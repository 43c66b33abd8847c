#ifndef BASE_GUARD_H
#define BASE_GUARD_H

/* guard: which addresses this server may connect to on behalf of others.
 *
 * Agents supply addresses (their URL, wake-up and webhook addresses), which
 * must not lead into this machine or its network. The guard judges the socket
 * address just before the connection, never the text of a URL: a name has
 * countless spellings and can resolve differently a moment later.
 *
 * It rejects loopback, private, link-local, shared, documentation, benchmark,
 * multicast, reserved, unspecified and anycast addresses of both families, an
 * address that a cloud answers from within (platform), and every IPv6 address
 * that embeds such an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo,
 * ISATAP). Other families are rejected.
 *
 * An allow-list opens ranges, optionally for one port. It is applied to the
 * address itself: 10.0.0.0/8 allows ::ffff:10.0.0.1, because a connection to it
 * is a connection to 10.0.0.1, but not 64:ff9b::10.0.0.1, which a translator
 * handles. Pure. Threads: any. */

#include "base/addr.h"

/* "10.0.0.0/8", "127.0.0.1:11434", "[fd00::]/8", "[::1]:8080", or with prefix
 * and port: "10.0.0.0/8:443", "[fd00::]/8:443". */
struct guard_range {
    uint8_t addr[ADDR_BYTES]; /* IPv4 as ::ffff:a.b.c.d */
    uint8_t prefix;           /* of the 128 bits */
    uint16_t port;            /* zero: any */
};

/* ERR_SYNTAX with a message about the problem and the syntax; *out is then
 * untouched. */
MUST_USE enum err guard_range_read(struct str text, struct guard_range *out,
                                   struct why *why);

enum { GUARD_RANGE_BYTES = 64 };

/* The shortest text that guard_range_read accepts for r. */
void guard_range_write(const struct guard_range *r,
                       char out[GUARD_RANGE_BYTES]);

/* Whether the range covers all addresses of a family, on any port. */
bool guard_range_is_all(const struct guard_range *r);

/* The range that consists of this address and port: adding it to the list would
 * allow the connection. ERR_ADDRESS if it is neither IPv4 nor IPv6. */
MUST_USE enum err guard_range_of(const struct sockaddr *to,
                                 struct guard_range *out);

/* Whether one of the ranges contains the address (as addr_bytes writes it) and
 * port. Port zero matches only ranges without a port. An IPv6 range never
 * contains an IPv4 address, however wide it is, not even "[::]/0". */
bool guard_ranges_have(const struct guard_range *ranges, size_t n,
                       const uint8_t addr[ADDR_BYTES], uint16_t port);

/* Borrows the ranges. A zeroed guard allows public addresses only. */
struct guard {
    const struct guard_range *allow;
    size_t n_allow;
};

/* OK or ERR_ADDRESS. *kind (may be NULL) becomes a word for the address:
 * "loopback", "private", "link-local", ..., "public". */
MUST_USE enum err guard_judge(const struct guard *g, const struct sockaddr *to,
                              const char **kind);

#endif
