#ifndef TEST_LIB_WALK_GATE_STAGE_H
#define TEST_LIB_WALK_GATE_STAGE_H

/* The walk with rules, and envelopes that go through it. */

#include "gate/gatekeeper.h"
#include "test/lib/walk_stage.h"

static struct gate_rules *stage_rules;

/* Before stage_start. */
static inline void stage_use_rules(const char *text)
{
    struct gate_problems problems = {.n = 0};

    if (gate_rules_read(str_of(text), &stage_rules, &problems) != OK)
        T_FAIL("%s", problems.text);
    stage.rules = stage_rules;
}

static inline void stage_close_gate(void)
{
    stage_close();
    stage.rules = NULL;
    gate_rules_free(stage_rules);
}

struct enveloped {
    const char *to, *type, *reference;
    bool is_urgent;
};

/* From Jay, who is no one's agent here but a name. Sent and answered. */
static inline struct id enveloped(struct enveloped it)
{
    struct caller c = caller_named("Jay");
    struct msg *m = msg_new(&c, loop_wall_ms(&stage.loop));
    struct envelope *e = arena_alloc(&m->arena, sizeof(*e));
    char text[256];
    struct told t = {0};
    int n = snprintf(text, sizeof(text),
                     "{\"from\":\"Jay\",\"to\":\"%s\",\"type\":\"%s\","
                     "\"priority\":\"%s\",\"reference\":\"%s\"}",
                     it.to, it.type, it.is_urgent ? "URGENT" : "NORMAL",
                     it.reference);

    m->call.text =
        (struct str){arena_strdup(&m->arena, str_of(text)), (size_t)n};
    m->call.executor = str_of(it.to);
    m->call.priority = it.is_urgent ? PRIORITY_URGENT : PRIORITY_NORMAL;
    m->call.metadata = m->call.source = STR("{}");
    *e = (struct envelope){
        .from = STR("Jay"),
        .to = m->call.executor,
        .type = str_of(it.type),
        .reference = str_of(it.reference),
        .priority = m->call.priority,
        .at_ms = m->in.at_ms,
    };
    m->call.envelope = e;
    walk_message(stage.walk, m, stage_on_done, &t);
    pass_ms(0);
    CHECK(t.is_back);
    CHECK_INT(t.err, OK);
    return t.task_id;
}

static inline enum task_status status_of(const struct id *id)
{
    return stored(id, NULL, NULL);
}

static void stage_on_said(void *ctx, enum err e, const struct why *why)
{
    (void)ctx;
    (void)e;
    (void)why;
}

/* A person's word to the first that is open, or the nth behind it; false:
 * there is none. */
static inline bool said_of_open(unsigned nth, enum escalation_status status,
                                const char *agent)
{
    struct query q;
    const struct row *r;
    char id[ID_BYTES] = "";

    query_init(&q, &escalation_table, 100);
    query_if(&q, ESCALATION_STATUS, IS, value_int(ESCALATION_OPEN));
    CHECK_INT(store_look(stage.store, &q), OK);
    for (r = q.rows; r && nth; nth--)
        r = r->next;
    if (r)
        snprintf(id, sizeof(id), "%.*s", STR_ARG(row_str(r, ESCALATION_ID)));
    query_fini(&q);
    if (!id[0])
        return false;
    gatekeeper_reply(walk_gatekeeper(stage.walk),
                     &(struct escalation_reply){.id = str_of(id),
                                                .status = status,
                                                .agent = str_of(agent),
                                                .by = STR("ann")},
                     stage_on_said, NULL);
    return true;
}

#endif
