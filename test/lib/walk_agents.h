#ifndef TEST_LIB_WALK_AGENTS_H
#define TEST_LIB_WALK_AGENTS_H

/* Agents that come to the walk's stage and go again, at a user's wish. */

#include "test/lib/walk_stage.h"

static inline void stage_commit(struct registry_change *c)
{
    struct why why = {""};
    bool is_done = false;

    store_submit(stage.store, &c->tx, agents_stage_done, &is_done);
    while (!is_done)
        loop_turn(&stage.loop);
    if (registry_settle(stage.registry, c, &why) != OK)
        T_FAIL("%s", why.text);
    registry_change_fini(c);
}

static inline void stage_put(const char *user, const char *name,
                             const char *card)
{
    struct caller who = caller_named(user);
    struct registry_by by = {.caller = &who,
                             .now_ms = loop_wall_ms(&stage.loop)};
    struct registry_change c;
    struct card_problems problems;
    struct arena arena;
    struct why why = {""};

    who.scopes |= SCOPE_AGENTS;
    arena_init(&arena, 1 << 20);
    registry_change_init(&c);
    if (registry_put(stage.registry, &c, str_of(name),
                     json_parse(&arena, str_of(card), 0, NULL), &by, &problems,
                     &why) != OK)
        T_FAIL("%s", why.text);
    stage_commit(&c);
    arena_fini(&arena);
}

static inline void stage_take_away(const char *user, const char *name)
{
    struct caller who = caller_named(user);
    struct registry_by by = {.caller = &who,
                             .now_ms = loop_wall_ms(&stage.loop)};
    struct registry_change c;
    struct why why = {""};

    registry_change_init(&c);
    if (registry_remove(stage.registry, &c, str_of(name), &by, &why) != OK)
        T_FAIL("%s", why.text);
    stage_commit(&c);
}

#endif
