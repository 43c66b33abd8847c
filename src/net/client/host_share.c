/* The number of requests to each host and port.
 *
 * A host that does not answer keeps its requests until their deadlines, and
 * also those that wait for one of its connections; a name server that does not
 * answer keeps them even longer. Such a host could soon hold all of max_open.
 * So each host and port has a share: a quarter, and at least as many as it may
 * have connections.
 *
 * The key is the host and port in the URL, ignoring case. Names for the same
 * address have separate shares: the address is known too late, and the owner
 * of a domain has as many names as they like. max_open, and the limit of
 * lookups (fetch_request.c), bound that. */
#include "net/client/internal.h"

#include <stdio.h>

enum { SHARE_OF_ALL = 4, KEY_BYTES = URL_HOST_MAX + sizeof(":65535") };

static size_t host_share_max(const struct fetch_opts *o)
{
    size_t n = o->max_open / SHARE_OF_ALL;

    if (n < o->max_per_host)
        n = o->max_per_host;
    return n < o->max_open ? n : o->max_open;
}

static struct str host_share_key(const struct url *url, char out[KEY_BYTES])
{
    size_t n = (size_t)snprintf(out, KEY_BYTES, "%.*s:%u", STR_ARG(url->host),
                                url->port);

    for (size_t i = 0; i < n; i++)
        out[i] = str_lower(out[i]);
    return (struct str){out, n};
}

enum err host_share_enter(struct request *r, const struct url *url,
                          struct why *why)
{
    struct fetch *f = r->fetch;
    char text[KEY_BYTES];
    struct str key = host_share_key(url, text);
    struct share *p = share_find(&f->host_shares, key);

    if (p && p == r->host_share)
        return OK;
    if (p && p->n >= host_share_max(&f->opts))
        return why_err(why, ERR_BUSY,
                       "%zu requests to %.*s are under way or wait, which is "
                       "the limit for one host and port",
                       p->n, STR_ARG(url->authority));
    p = share_take(&f->host_shares, key);
    if (!p)
        return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    host_share_leave(r);
    r->host_share = p;
    return OK;
}

void host_share_leave(struct request *r)
{
    share_give(&r->fetch->host_shares, r->host_share);
    r->host_share = NULL;
}
