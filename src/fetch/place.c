/* Places: a host and port, and how many requests there are to it.
 *
 * A place that does not answer keeps its requests until their deadlines, and
 * those that wait for one of its connections with them; a name server that
 * does not answer keeps them even longer. Whoever has such a place would soon
 * have all of max_open. So each place has a share of it: a quarter, and never
 * less than it may have connections.
 *
 * The key is what the URL says, without regard to case. Names that lead to the
 * same address are several places: which of them do is known too late, and
 * whoever owns a name has as many names as they like. What that costs is
 * bounded by max_open, and by the look-ups that may run (request.c). */
#include "fetch/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

struct place {
    size_t n;
    struct str key; /* behind it */
};

enum { SHARE_OF_ALL = 4, KEY_BYTES = URL_HOST_MAX + sizeof(":65535") };

static size_t share(const struct fetch_opts *o)
{
    size_t n = o->max_open / SHARE_OF_ALL;

    if (n < o->max_per_host)
        n = o->max_per_host;
    return n < o->max_open ? n : o->max_open;
}

static struct str write_key(const struct url *url, char out[KEY_BYTES])
{
    size_t n = (size_t)snprintf(out, KEY_BYTES, "%.*s:%u", STR_ARG(url->host),
                                url->port);

    for (size_t i = 0; i < n; i++)
        out[i] = str_lower(out[i]);
    return (struct str){out, n};
}

static struct place *add(struct fetch *f, struct str key)
{
    struct place *p =
        FAULT("fetch.place") ? NULL : calloc(1, sizeof(*p) + key.n);

    if (!p)
        return NULL;
    memcpy(p + 1, key.p, key.n);
    p->key = (struct str){(const char *)(p + 1), key.n};
    if (map_put(&f->places, p->key, p) == OK)
        return p;
    free(p);
    return NULL;
}

enum err place_enter(struct request *r, const struct url *url, struct why *why)
{
    struct fetch *f = r->fetch;
    char text[KEY_BYTES];
    struct str key = write_key(url, text);
    struct place *p = map_get(&f->places, key);

    if (p && p == r->place)
        return OK;
    if (p && p->n >= share(&f->opts))
        return why_err(why, ERR_BUSY,
                       "%zu requests to %.*s are under way or wait, which is "
                       "as many as may be to one place",
                       p->n, STR_ARG(url->authority));
    if (!p)
        p = add(f, key);
    if (!p)
        return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    p->n++;
    place_leave(r);
    r->place = p;
    return OK;
}

void place_leave(struct request *r)
{
    struct place *p = r->place;

    r->place = NULL;
    if (!p || --p->n)
        return;
    map_take(&r->fetch->places, p->key);
    free(p);
}
