#ifndef TEST_WEEK_PEOPLE_H
#define TEST_WEEK_PEOPLE_H

/* Two people who are asked: now and then one of them decides what is open, and
 * sometimes both do, in the same moment. */

#include "gate/gatekeeper.h"
#include "test/week/agents.h"

#pragma weak gatekeeper_reply
static void on_said(void *ctx, enum err e, const struct why *why)
{
    (void)ctx;
    (void)why;
    if (e == OK)
        world->n_decided++;
    else
        world->n_second++;
}

static inline void say(const char *by, struct str escalation, struct str agent)
{
    static const enum escalation_status words[] = {
        ESCALATION_APPROVED, ESCALATION_APPROVED, ESCALATION_REJECTED,
        ESCALATION_REDIRECTED};
    struct escalation_reply word = {.id = escalation,
                                    .status = words[chance(4)],
                                    .comment = STR("seen"),
                                    .by = str_of(by)};

    if (word.status == ESCALATION_REDIRECTED)
        word.agent = str_eq(agent, STR("Jay")) ? STR("Leroy") : STR("Jay");
    if (gatekeeper_reply)
        gatekeeper_reply(walk_gatekeeper(stage.walk), &word, on_said, NULL);
}

static inline void people_step(void)
{
    struct query q;

    if (world->now_ms / STEP_MS % 30)
        return;
    query_init(&q, &escalation_table, 100);
    query_if(&q, ESCALATION_STATUS, IS, value_int(ESCALATION_OPEN));
    CHECK_INT(store_look(stage.store, &q), OK);
    QUERY_EACH(r, &q)
    {
        if (row_int(r, ESCALATION_KIND) == ESCALATION_LATE ||
            (chance(10) && !world->is_ending))
            continue;
        say("ann", row_str(r, ESCALATION_ID), row_str(r, ESCALATION_AGENT));
        if (chance(2))
            say("ben", row_str(r, ESCALATION_ID), row_str(r, ESCALATION_AGENT));
    }
    query_fini(&q);
}

#endif
