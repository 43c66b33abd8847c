/* How many connections each address has open.
 *
 * One small struct for each address that has any, found by its network
 * (addr_network): it comes with the first connection and goes with the last,
 * so there are never more than connections. Turned down: asking all
 * connections at each accept, which is slow exactly when there are many. */
#include "net/internal.h"

#include <stdlib.h>

#include "base/fault.h"

struct crowd {
    size_t n;
    uint8_t network[ADDR_BYTES];
};

static struct str key_of(const uint8_t network[ADDR_BYTES])
{
    return (struct str){(const char *)network,
                        PLANTED("net.one_crowd") ? 0 : ADDR_BYTES};
}

size_t crowd_size(const struct net *n, const uint8_t addr[ADDR_BYTES])
{
    uint8_t network[ADDR_BYTES];
    const struct crowd *c;

    addr_network(addr, network);
    c = map_get(&n->crowds, key_of(network));
    return c ? c->n : 0;
}

struct crowd *crowd_join(struct net *n, const uint8_t addr[ADDR_BYTES])
{
    uint8_t network[ADDR_BYTES];
    struct crowd *c;

    addr_network(addr, network);
    c = map_get(&n->crowds, key_of(network));
    if (!c) {
        c = FAULT("net.crowd") ? NULL : calloc(1, sizeof(*c));
        if (!c)
            return NULL;
        memcpy(c->network, network, sizeof(network));
        if (map_put(&n->crowds, key_of(c->network), c) != OK) {
            free(c);
            return NULL;
        }
    }
    c->n++;
    return c;
}

void crowd_leave(struct net *n, struct crowd *c)
{
    if (!c || --c->n)
        return;
    map_take(&n->crowds, key_of(c->network));
    free(c);
}

bool crowd_check(const struct net *n, size_t n_conns)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&n->crowds, &at))) {
        const struct crowd *c = slot->value;

        if (c->n == 0 || c->n > n_conns)
            return false;
        n_conns -= c->n;
    }
    return n_conns == 0 && map_check(&n->crowds);
}
