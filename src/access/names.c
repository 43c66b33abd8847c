/* The names under which this server may be called, and the pages that may call
 * it.
 *
 * A page of evil.example can point its name at 127.0.0.1 and then talk to us as
 * its own origin. Only the Host header gives it away, because it carries the
 * name and not the address. An address in Host is safe for the same reason: a
 * page loaded from an address comes from that machine. Input that cannot be
 * parsed is foreign. Error messages never repeat what the request contained. */
#include <arpa/inet.h>

#include "access/access.h"

struct host {
    struct str name; /* without brackets, or a dot at the end */
    struct str port; /* empty: none was given */
    bool is_v6;
};

static bool names_is_port(struct str s)
{
    int64_t port;

    return s.n > 0 && s.n <= 5 && s.p[0] != '-' && str_to_i64(s, &port) == OK &&
           port <= 65535;
}

/* "NAME", "NAME:PORT", "[V6]" or "[V6]:PORT". */
static bool names_read_host(struct str s, struct host *out)
{
    size_t end;

    *out = (struct host){.is_v6 = s.n > 0 && s.p[0] == '['};
    end = str_find(s, out->is_v6 ? ']' : ':', 0);
    if (out->is_v6) {
        if (end == s.n)
            return false;
        out->name = str_sub(s, 1, end++);
    } else {
        out->name = str_sub(s, 0, end);
    }
    if (end < s.n) {
        out->port = str_sub(s, end + 1, s.n);
        if (s.p[end] != ':' || !names_is_port(out->port))
            return false;
    }
    if (!out->is_v6 && out->name.n > 1 && out->name.p[out->name.n - 1] == '.')
        out->name.n--;
    return out->name.n > 0;
}

static bool names_is_address(const struct host *h)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr ignored;

    if (h->name.n >= sizeof(text) || memchr(h->name.p, 0, h->name.n))
        return false;
    memcpy(text, h->name.p, h->name.n);
    text[h->name.n] = '\0';
    return inet_pton(h->is_v6 ? AF_INET6 : AF_INET, text, &ignored) == 1;
}

/* Compares names only; the caller compares ports. */
static bool names_are_same(const struct host *a, const struct host *b)
{
    return a->is_v6 == b->is_v6 && str_eq_nocase(a->name, b->name);
}

static bool names_host_is_ours(const struct access_names *n,
                               const struct host *h)
{
    if (names_is_address(h))
        return true;
    if (h->is_v6)
        return false;
    if (str_eq_nocase(h->name, STR("localhost")))
        return true;
    for (size_t i = 0; i < n->n_hosts; i++) {
        struct host allowed;

        if (names_read_host(n->hosts[i], &allowed) &&
            names_are_same(&allowed, h) &&
            (allowed.port.n == 0 || str_eq(allowed.port, h->port)))
            return true;
    }
    return false;
}

/* An origin is SCHEME://HOST[:PORT] and nothing behind it. */
static bool names_read_origin(struct str s, struct str *scheme,
                              struct host *out)
{
    size_t colon = str_find(s, ':', 0);

    if (colon == 0 || !str_starts(str_sub(s, colon, s.n), STR("://")))
        return false;
    *scheme = str_sub(s, 0, colon);
    return names_read_host(str_sub(s, colon + 3, s.n), out);
}

bool access_origin_is_listed(const struct access_names *n, struct str origin)
{
    struct host from;
    struct str scheme;

    if (!names_read_origin(origin, &scheme, &from))
        return false;
    for (size_t i = 0; i < n->n_origins; i++) {
        struct host allowed;
        struct str its_scheme;

        if (names_read_origin(n->origins[i], &its_scheme, &allowed) &&
            str_eq_nocase(its_scheme, scheme) &&
            names_are_same(&allowed, &from) && str_eq(allowed.port, from.port))
            return true;
    }
    return false;
}

static bool names_origin_is_allowed(const struct access_names *n,
                                    const struct host *ours, struct str origin)
{
    struct host from;
    struct str scheme;

    if (!names_read_origin(origin, &scheme, &from))
        return false;
    if (names_are_same(&from, ours) && str_eq(from.port, ours->port) &&
        (str_eq_nocase(scheme, STR("http")) ||
         str_eq_nocase(scheme, STR("https"))))
        return true;
    return access_origin_is_listed(n, origin);
}

enum err access_names_check(const struct access_names *n, struct str host,
                            struct str origin, struct why *why)
{
    struct host ours;

    if (host.n == 0)
        return why_err(why, ERR_FOREIGN_HOST,
                       "the Host header is missing or empty");
    if (!names_read_host(host, &ours) || !names_host_is_ours(n, &ours))
        return why_err(why, ERR_FOREIGN_HOST, "%s",
                       err_row(ERR_FOREIGN_HOST)->wording);
    if (origin.p && !names_origin_is_allowed(n, &ours, origin))
        return why_err(why, ERR_FOREIGN_ORIGIN, "%s",
                       err_row(ERR_FOREIGN_ORIGIN)->wording);
    return OK;
}
