/* Two tables, one per family, with the ranges of IANA's special-purpose
 * registries. The first matching row decides.
 *
 * An IPv4 address is looked up in its own table. An IPv6 address that embeds
 * IPv4 addresses must be public itself, and so must each embedded one, because
 * a translator or tunnel will connect to it. Everything outside 2000::/3, the
 * only part of IPv6 assigned for use, is rejected even without a row, so ranges
 * that IANA adds there later are rejected already.
 *
 * The tables are stricter than "globally reachable" in the registries. Anycast
 * addresses of the infrastructure (6to4 relays, AS112, AMT) lead to the nearest
 * machine that accepts them, which may be on the local network. 168.63.129.16
 * looks like any public address, but one cloud answers it inside each of its
 * machines (with names, health and set-up secrets), so it is rejected
 * everywhere. The corresponding addresses of other clouds lie in ranges that
 * are rejected anyway: link-local, shared (100.100.100.200), reserved
 * (192.0.0.192), private (fd00:ec2::254).
 *
 * The guard cannot know this machine's own public addresses, the prefixes of a
 * provider that translates to IPv4 (NAT64 with its own prefix, 6rd), or public
 * addresses that a local network uses as private ones. */
#include "base/guard.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>

struct kind_row {
    uint8_t addr[16];
    uint8_t prefix; /* bits of addr that must match */
    const char *kind;
};

static const char is_public[] = "public", is_reserved[] = "reserved";

static const struct kind_row v4_kinds[] = {
    {{0, 0, 0, 0}, 32, "unspecified"},
    {{0}, 8, is_reserved},
    {{10}, 8, "private"},
    {{100, 64}, 10, "shared"},
    {{127}, 8, "loopback"},
    {{168, 63, 129, 16}, 32, "platform"},
    {{169, 254}, 16, "link-local"},
    {{172, 16}, 12, "private"},
    {{192, 0, 0}, 24, is_reserved},
    {{192, 0, 2}, 24, "documentation"},
    {{192, 31, 196}, 24, "anycast"},
    {{192, 52, 193}, 24, "anycast"},
    {{192, 88, 99}, 24, "anycast"},
    {{192, 168}, 16, "private"},
    {{192, 175, 48}, 24, "anycast"},
    {{198, 18}, 15, "benchmark"},
    {{198, 51, 100}, 24, "documentation"},
    {{203, 0, 113}, 24, "documentation"},
    {{224}, 4, "multicast"},
    {{255, 255, 255, 255}, 32, "broadcast"},
    {{240}, 4, is_reserved},
    {{0}, 0, is_public},
};

static const struct kind_row v6_kinds[] = {
    {{0}, 128, "unspecified"},
    {{[15] = 1}, 128, "loopback"},
    {{0, 0x64, 0xff, 0x9b},
     96,
     is_public}, /* NAT64: the embedded IPv4 decides */
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, "private"}, /* a network's own NAT64 */
    {{0x20, 0x01}, 32, is_public},                /* Teredo: likewise */
    {{0x20, 0x01, 0, 2}, 48, "benchmark"},
    {{0x20, 0x01}, 23, is_reserved},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, "documentation"},
    {{0x26, 0x20, 0, 0x4f, 0x80}, 48, "anycast"},
    {{0x3f, 0xff}, 20, "documentation"},
    {{0x20}, 3, is_public},
    {{0xfc}, 7, "private"},
    {{0xfe, 0x80}, 10, "link-local"},
    {{0xfe, 0xc0}, 10, "site-local"},
    {{0xff}, 8, "multicast"},
    {{0}, 0, is_reserved},
};

/* The forms in which an IPv6 address embeds an IPv4 one. A mapped address is
 * not listed: it is looked up as the IPv4 address that it is. */
static const struct carrier {
    uint8_t addr[16];
    uint8_t prefix;
    uint8_t at; /* offset of the IPv4 address */
    bool is_inverted;
} carriers[] = {
    {{[8] = 0xff, 0xff}, 96, 12, false},    /* translated (SIIT) */
    {{0}, 96, 12, false},                   /* compatible */
    {{0, 0x64, 0xff, 0x9b}, 96, 12, false}, /* NAT64 */
    {{0x20, 0x02}, 16, 2, false},           /* 6to4 */
    {{0x20, 0x01}, 32, 4, false},           /* Teredo: the server */
    {{0x20, 0x01}, 32, 12, true},           /* Teredo: the client */
};

/* The last row of each table matches everything. */
static const char *guard_find_kind(const struct kind_row *row,
                                   const uint8_t *addr)
{
    while (!addr_is_within(addr, row->addr, row->prefix))
        row++;
    return row->kind;
}

/* An interface identifier 0000:5efe:a.b.c.d, whatever its u and g bits. */
static bool is_isatap(const uint8_t *addr)
{
    return (addr[8] & ~3) == 0 && addr[9] == 0 && addr[10] == 0x5e &&
           addr[11] == 0xfe;
}

/* The kind of the first embedded IPv4 address that is not public. */
static const char *guard_embedded_kind(const uint8_t *addr)
{
    const char *kind = is_public;

    for (size_t i = 0; i < sizeof(carriers) / sizeof(carriers[0]); i++) {
        const struct carrier *c = &carriers[i];
        uint8_t v4[4];

        if (kind != is_public || !addr_is_within(addr, c->addr, c->prefix))
            continue;
        for (size_t k = 0; k < sizeof(v4); k++)
            v4[k] = addr[c->at + k] ^ (c->is_inverted ? 0xff : 0);
        kind = guard_find_kind(v4_kinds, v4);
    }
    if (kind == is_public && is_isatap(addr))
        kind = guard_find_kind(v4_kinds, addr + 12);
    return kind;
}

static const char *guard_kind_of(const uint8_t *addr)
{
    const char *kind = guard_find_kind(v6_kinds, addr), *inside;

    if (addr_is_v4(addr))
        return guard_find_kind(v4_kinds, addr + 12);
    /* "::1" is loopback, not a way to write 0.0.0.1. */
    if (kind != is_public && kind != is_reserved)
        return kind;
    inside = guard_embedded_kind(addr);
    return inside == is_public ? kind : inside;
}

/* False if the address is neither IPv4 nor IPv6. */
static bool guard_split_sockaddr(const struct sockaddr *to,
                                 struct guard_range *out)
{
    in_port_t port;

    /* One read serves both families. */
    _Static_assert(offsetof(struct sockaddr_in, sin_port) ==
                       offsetof(struct sockaddr_in6, sin6_port),
                   "a port is where it is");
    if (!to || (to->sa_family != AF_INET && to->sa_family != AF_INET6))
        return false;
    addr_bytes(to, out->addr);
    out->prefix = 128;
    memcpy(&port, (const char *)to + offsetof(struct sockaddr_in, sin_port),
           sizeof(port));
    out->port = ntohs(port);
    return true;
}

bool guard_ranges_have(const struct guard_range *ranges, size_t n,
                       const uint8_t addr[ADDR_BYTES], uint16_t port)
{
    for (size_t i = 0; i < n; i++) {
        const struct guard_range *r = &ranges[i];

        if (addr_is_within(addr, r->addr, r->prefix) &&
            (r->port == 0 || r->port == port) &&
            (r->prefix >= 96 || !addr_is_v4(addr)))
            return true;
    }
    return false;
}

enum err guard_judge(const struct guard *g, const struct sockaddr *to,
                     const char **kind)
{
    const char *unused;
    struct guard_range at;

    if (!kind)
        kind = &unused;
    *kind = "no internet address";
    if (!guard_split_sockaddr(to, &at))
        return ERR_ADDRESS;
    *kind = guard_kind_of(at.addr);
    return *kind == is_public ||
                   guard_ranges_have(g->allow, g->n_allow, at.addr, at.port)
               ? OK
               : ERR_ADDRESS;
}

enum err guard_range_of(const struct sockaddr *to, struct guard_range *out)
{
    struct guard_range at;

    if (!guard_split_sockaddr(to, &at))
        return ERR_ADDRESS;
    *out = at;
    return OK;
}

bool guard_range_is_all(const struct guard_range *r)
{
    return r->prefix == 0 || (r->prefix == 96 && addr_is_v4(r->addr));
}

/* Ranges as text. */

static const char how_written[] =
    "write 10.0.0.0/8, 127.0.0.1:8080 or [fd00::]/8";

/* The parts of "ADDR/PREFIX:PORT". */
struct range_text {
    char shown[GUARD_RANGE_BYTES]; /* for messages; may be truncated */
    struct str addr, prefix, port;
    bool is_v6, has_prefix, has_port;
};

/* Cut the address ("[::1]", "10.0.0.0" or "fd00::") from the front of *rest. An
 * IPv6 address may lack brackets only if a prefix follows: in "::1:80" the port
 * would be ambiguous. */
static enum err range_cut_addr(struct range_text *t, struct str *rest,
                               struct why *why)
{
    size_t slash = str_find(*rest, '/', 0), colon = str_find(*rest, ':', 0);
    size_t end;

    if (rest->n && rest->p[0] == '[') {
        end = str_find(*rest, ']', 0);
        if (end == rest->n)
            return why_err(why, ERR_SYNTAX, "%s has no \"]\"; %s", t->shown,
                           how_written);
        t->is_v6 = true;
        t->addr = str_sub(*rest, 1, end);
        *rest = str_sub(*rest, end + 1, rest->n);
        return OK;
    }
    t->is_v6 = colon < slash && str_find(*rest, ':', colon + 1) < rest->n;
    if (t->is_v6 && slash == rest->n)
        return why_err(why, ERR_SYNTAX,
                       "%s: an IPv6 address must be in brackets, [::1] or "
                       "[::1]:8080",
                       t->shown);
    end = t->is_v6 || slash < colon ? slash : colon;
    t->addr = str_sub(*rest, 0, end);
    *rest = str_sub(*rest, end, rest->n);
    return OK;
}

static enum err range_cut_rest(struct range_text *t, struct str rest,
                               struct why *why)
{
    if (rest.n && rest.p[0] == '/') {
        size_t colon = str_find(rest, ':', 0);

        t->has_prefix = true;
        t->prefix = str_sub(rest, 1, colon);
        rest = str_sub(rest, colon, rest.n);
    }
    if (rest.n && rest.p[0] == ':') {
        t->has_port = true;
        t->port = str_sub(rest, 1, rest.n);
        rest.n = 0;
    }
    if (rest.n)
        return why_err(why, ERR_SYNTAX,
                       "%s: after the address comes /PREFIX or :PORT; %s",
                       t->shown, how_written);
    return OK;
}

/* A number without a sign or leading zeros. */
static bool range_read_number(struct str s, int64_t max, int64_t *out)
{
    return s.n >= 1 && s.n <= 5 && s.p[0] != '-' &&
           (s.p[0] != '0' || s.n == 1) && str_to_i64(s, out) == OK &&
           *out <= max;
}

static enum err range_bad_addr(const struct range_text *t, struct why *why)
{
    if (str_find(t->addr, '%', 0) < t->addr.n)
        return why_err(why, ERR_SYNTAX,
                       "%s: a range holds for every interface, so there is no "
                       "\"%%\" in it",
                       t->shown);
    if (str_eq_nocase(t->addr, STR("localhost")))
        return why_err(why, ERR_SYNTAX,
                       "%s: names are not looked up here; write 127.0.0.1 and "
                       "[::1]",
                       t->shown);
    return why_err(why, ERR_SYNTAX, "%s is not an address; %s", t->shown,
                   how_written);
}

static enum err range_read_addr(const struct range_text *t,
                                struct guard_range *out, struct why *why)
{
    char text[INET6_ADDRSTRLEN];
    uint8_t bytes[ADDR_BYTES];

    if (t->addr.n >= sizeof(text) ||
        (t->addr.n && memchr(t->addr.p, 0, t->addr.n)))
        return range_bad_addr(t, why);
    memcpy(text, t->addr.n ? t->addr.p : "", t->addr.n);
    text[t->addr.n] = '\0';
    if (inet_pton(t->is_v6 ? AF_INET6 : AF_INET, text, bytes) != 1)
        return range_bad_addr(t, why);
    if (t->is_v6)
        memcpy(out->addr, bytes, sizeof(bytes));
    else
        addr_map_v4(bytes, out->addr);
    if (t->is_v6 && addr_is_v4(out->addr))
        return why_err(why, ERR_SYNTAX,
                       "%s is an IPv4 address; write it as %u.%u.%u.%u",
                       t->shown, out->addr[12], out->addr[13], out->addr[14],
                       out->addr[15]);
    return OK;
}

static enum err range_read_prefix(const struct range_text *t,
                                  struct guard_range *out, struct why *why)
{
    unsigned most = t->is_v6 ? 128 : 32;
    int64_t prefix = most;

    if (t->has_prefix && !range_read_number(t->prefix, most, &prefix))
        return why_err(why, ERR_SYNTAX,
                       "%s: the prefix of an IPv%c address is a number from 0 "
                       "to %u",
                       t->shown, t->is_v6 ? '6' : '4', most);
    out->prefix = (uint8_t)(prefix + 128 - most);
    return OK;
}

/* 10.0.0.1/8 may mean 10.0.0.0/8 or 10.0.0.1: reject it rather than guess. */
static enum err range_check_bits(const struct range_text *t,
                                 const struct guard_range *r, struct why *why)
{
    struct guard_range meant = *r;
    char range[GUARD_RANGE_BYTES], alone[GUARD_RANGE_BYTES];

    for (unsigned i = r->prefix; i < 128; i++)
        meant.addr[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
    if (memcmp(meant.addr, r->addr, sizeof(meant.addr)) == 0)
        return OK;
    guard_range_write(&meant, range);
    meant = *r;
    meant.prefix = 128;
    guard_range_write(&meant, alone);
    return why_err(why, ERR_SYNTAX,
                   "%s has bits beyond its prefix; write %s for the range, %s "
                   "for the address alone",
                   t->shown, range, alone);
}

enum err guard_range_read(struct str text, struct guard_range *out,
                          struct why *why)
{
    struct range_text t = {.shown = ""};
    struct guard_range r = {.port = 0};
    int64_t port = 0;
    enum err e;

    if (!text.n)
        return why_err(why, ERR_SYNTAX, "a range is missing; %s", how_written);
    memcpy(t.shown, text.p,
           text.n < sizeof(t.shown) ? text.n : sizeof(t.shown) - 1);
    str_tame(t.shown, text.n < sizeof(t.shown) ? text.n : sizeof(t.shown) - 1);
    e = range_cut_addr(&t, &text, why);
    if (!e)
        e = range_cut_rest(&t, text, why);
    if (!e)
        e = range_read_addr(&t, &r, why);
    if (!e)
        e = range_read_prefix(&t, &r, why);
    if (!e && t.has_port &&
        (!range_read_number(t.port, 65535, &port) || port == 0))
        e = why_err(why, ERR_SYNTAX, "%s: a port is a number from 1 to 65535",
                    t.shown);
    r.port = (uint16_t)port;
    if (!e)
        e = range_check_bits(&t, &r, why);
    if (!e)
        *out = r;
    return e;
}

void guard_range_write(const struct guard_range *r, char out[GUARD_RANGE_BYTES])
{
    bool v4 = r->prefix >= 96 && addr_is_v4(r->addr);
    char addr[INET6_ADDRSTRLEN] = "?", prefix[8] = "", port[8] = "";

    inet_ntop(v4 ? AF_INET : AF_INET6, r->addr + (v4 ? 12 : 0), addr,
              sizeof(addr));
    if (r->prefix < 128)
        snprintf(prefix, sizeof(prefix), "/%u", r->prefix - (v4 ? 96U : 0U));
    if (r->port)
        snprintf(port, sizeof(port), ":%u", r->port);
    snprintf(out, GUARD_RANGE_BYTES, v4 ? "%s%s%s" : "[%s]%s%s", addr, prefix,
             port);
}
