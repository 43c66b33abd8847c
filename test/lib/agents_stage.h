#ifndef TEST_LIB_AGENTS_STAGE_H
#define TEST_LIB_AGENTS_STAGE_H

/* Agents of the configuration, for stages: brought to a registry as
 * configured_agents.c does it, by turning the loop. */

#include "registry/registry.h"

static void agents_stage_done(struct tx *tx, void *ctx)
{
    (void)tx;
    *(bool *)ctx = true;
}

/* These and no others. What it fails with where a fault is planted. */
static inline enum err agents_stage_set(struct registry *r, struct loop *loop,
                                        struct store *store,
                                        const struct agent *list, size_t n,
                                        struct why *why)
{
    struct registry_change c;
    bool is_done;
    enum err e;

    registry_change_init(&c);
    e = registry_configure(r, &c, list, n, NULL, loop_wall_ms(loop), why);
    if (!e) {
        is_done = c.is_same;
        if (!is_done)
            store_submit(store, &c.tx, agents_stage_done, &is_done);
        while (!is_done)
            loop_turn(loop);
        e = registry_settle(r, &c, why);
    }
    registry_change_fini(&c);
    return e;
}

#endif
