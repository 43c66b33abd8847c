#ifndef BASE_GUARD_H
#define BASE_GUARD_H

/* guard: which addresses may be connected to when somebody else names them.
 *
 * Agents supply addresses (their url, wake-up and webhook addresses). Such a
 * name must not lead into this machine or the network around it. The question
 * is asked of the socket's address, just before connecting, never of the text
 * of a URL: a name can be written in more ways than anybody can list, and can
 * mean another address a moment later.
 *
 * Refused are loopback, private, link-local, shared, documentation, benchmark,
 * multicast, reserved and unspecified addresses of both families, those that
 * the nearest of many answers (anycast), one that a cloud answers from within
 * (platform), and every form of v6 address that
 * carries one of v4 in it (mapped, compatible, NAT64, 6to4, Teredo, ISATAP)
 * when that one would be. What is not a v4 or v6 address is refused. An
 * allow-list opens ranges, one port of them if it says so. It is asked about
 * the address itself: 10.0.0.0/8 opens ::ffff:10.0.0.1, since connecting to
 * that is connecting to 10.0.0.1, but not 64:ff9b::10.0.0.1, which somebody
 * else translates. Pure. Threads: any. */

#include "base/addr.h"

/* "10.0.0.0/8", "127.0.0.1:11434", "[fd00::]/8", "[::1]:8080", and both of it:
 * "10.0.0.0/8:443", "[fd00::]/8:443". */
struct guard_range {
    uint8_t addr[ADDR_BYTES]; /* v4 as ::ffff:a.b.c.d */
    uint8_t prefix;           /* of the 128 bits */
    uint16_t port;            /* zero: any */
};

/* ERR_SYNTAX; why says what is wrong and how it is written. *out is then
 * untouched. */
MUST_USE enum err guard_range_read(struct str text, struct guard_range *out,
                                   struct why *why);

enum { GUARD_RANGE_BYTES = 64 };

/* As guard_range_read takes it, in its shortest form. */
void guard_range_write(const struct guard_range *r,
                       char out[GUARD_RANGE_BYTES]);

/* Whether it is every address of a family, whatever the port. */
bool guard_range_is_all(const struct guard_range *r);

/* The range of this address and its port alone: what to add to the list so
 * that it may be connected to. ERR_ADDRESS: no v4 or v6 address. */
MUST_USE enum err guard_range_of(const struct sockaddr *to,
                                 struct guard_range *out);

/* Whether one of them has the address, as addr_bytes writes it, and the port;
 * zero: a range with a port does not. A range of v6 is none of v4, however
 * wide: "[::]/0" has no v4 address. */
bool guard_ranges_have(const struct guard_range *ranges, size_t n,
                       const uint8_t addr[ADDR_BYTES], uint16_t port);

/* Borrowed ranges. Zeroed it allows what is public and nothing else. */
struct guard {
    const struct guard_range *allow;
    size_t n_allow;
};

/* OK or ERR_ADDRESS; *kind (may be NULL) becomes a word for what it is:
 * "loopback", "private", "link-local", ..., "public". */
MUST_USE enum err guard_judge(const struct guard *g, const struct sockaddr *to,
                              const char **kind);

#endif
