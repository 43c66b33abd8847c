/* The number of open connections of each address.
 *
 * Each address with connections has one small struct, found by its network
 * (addr_network). It comes with the first connection and goes with the last,
 * so there are never more than connections. Rejected: walking all connections
 * at each accept, which is slow exactly when there are many. */
#include "net/server/internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

struct crowd {
    size_t n;
    uint8_t network[ADDR_BYTES];
};

static struct str crowd_key(const uint8_t network[ADDR_BYTES])
{
    return (struct str){(const char *)network,
                        PLANTED("net.one_crowd") ? 0 : ADDR_BYTES};
}

size_t crowd_size(const struct net *n, const uint8_t addr[ADDR_BYTES])
{
    uint8_t network[ADDR_BYTES];
    const struct crowd *c;

    addr_network(addr, network);
    c = map_get(&n->crowds, crowd_key(network));
    return c ? c->n : 0;
}

struct crowd *crowd_join(struct net *n, const uint8_t addr[ADDR_BYTES])
{
    uint8_t network[ADDR_BYTES];
    struct crowd *c;

    addr_network(addr, network);
    c = map_get(&n->crowds, crowd_key(network));
    if (!c) {
        c = mem_new(sizeof(*c));
        memcpy(c->network, network, sizeof(network));
        if (map_put(&n->crowds, crowd_key(c->network), c) != OK) {
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
    map_take(&n->crowds, crowd_key(c->network));
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
