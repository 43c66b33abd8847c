#include "base/addr.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>

static bool addr_read_port(struct str s, in_port_t *out)
{
    int64_t v;

    if (s.n == 0 || s.n > 5 || str_to_i64(s, &v) != OK || v < 0 || v > 65535)
        return false;
    *out = htons((uint16_t)v);
    return true;
}

static bool addr_read_host(struct str host, int family, void *out)
{
    char text[INET6_ADDRSTRLEN];

    if (host.n == 0 || host.n >= sizeof(text) || memchr(host.p, 0, host.n))
        return false;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    return inet_pton(family, text, out) == 1;
}

enum err addr_parse(struct str s, struct addr *out)
{
    size_t colon = s.n;
    struct str host;
    in_port_t port;
    bool ok;

    *out = (struct addr){.len = 0};
    while (colon > 0 && s.p[colon - 1] != ':')
        colon--;
    if (colon == 0 || !addr_read_port(str_sub(s, colon, s.n), &port))
        return ERR_SYNTAX;
    host = str_sub(s, 0, colon - 1);
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']') {
        out->sa.v6.sin6_family = AF_INET6;
        out->sa.v6.sin6_port = port;
        out->len = sizeof(out->sa.v6);
        ok = addr_read_host(str_sub(host, 1, host.n - 1), AF_INET6,
                            &out->sa.v6.sin6_addr) &&
             !IN6_IS_ADDR_V4MAPPED(&out->sa.v6.sin6_addr);
    } else {
        out->is_localhost = str_eq_nocase(host, STR("localhost"));
        out->sa.v4.sin_family = AF_INET;
        out->sa.v4.sin_port = port;
        out->len = sizeof(out->sa.v4);
        ok = addr_read_host(out->is_localhost ? STR("127.0.0.1") : host,
                            AF_INET, &out->sa.v4.sin_addr);
    }
    return ok ? OK : ERR_SYNTAX;
}

bool addr_is_loopback(const struct addr *a)
{
    if (a->sa.any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&a->sa.v6.sin6_addr);
    return ntohl(a->sa.v4.sin_addr.s_addr) >> 24 == 127;
}

bool addr_is_any(const struct addr *a)
{
    if (a->sa.any.sa_family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(&a->sa.v6.sin6_addr);
    return a->sa.v4.sin_addr.s_addr == htonl(INADDR_ANY);
}

void addr_write(const struct sockaddr *sa, char out[ADDR_TEXT_BYTES])
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)sa;

        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
        snprintf(out, ADDR_TEXT_BYTES, "[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        const struct sockaddr_in *v4 = (const void *)sa;

        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
        snprintf(out, ADDR_TEXT_BYTES, "%s:%u", host, ntohs(v4->sin_port));
    }
}

static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

void addr_map_v4(const uint8_t v4[4], uint8_t out[ADDR_BYTES])
{
    memcpy(out, v4_mapped, sizeof(v4_mapped));
    memcpy(out + sizeof(v4_mapped), v4, 4);
}

bool addr_is_v4(const uint8_t addr[ADDR_BYTES])
{
    return memcmp(addr, v4_mapped, sizeof(v4_mapped)) == 0;
}

/* Not through the structs: a sockaddr from a library need not be aligned as a
 * sockaddr_in6. */
void addr_bytes(const struct sockaddr *sa, uint8_t out[ADDR_BYTES])
{
    const uint8_t *p = (const uint8_t *)sa;

    memset(out, 0, ADDR_BYTES);
    if (sa->sa_family == AF_INET6)
        memcpy(out, p + offsetof(struct sockaddr_in6, sin6_addr), ADDR_BYTES);
    else if (sa->sa_family == AF_INET)
        addr_map_v4(p + offsetof(struct sockaddr_in, sin_addr), out);
}

bool addr_is_within(const uint8_t *addr, const uint8_t *range, unsigned prefix)
{
    unsigned whole = prefix / 8, bits = prefix % 8;

    return memcmp(addr, range, whole) == 0 &&
           (!bits || (addr[whole] ^ range[whole]) >> (8 - bits) == 0);
}

void addr_network(const uint8_t addr[ADDR_BYTES], uint8_t out[ADDR_BYTES])
{
    bool is_v4 = addr_is_v4(addr);

    memmove(out, addr, ADDR_BYTES);
    if (!is_v4)
        memset(out + 8, 0, 8);
}
