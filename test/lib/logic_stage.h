#ifndef LOGIC_STAGE_H
#define LOGIC_STAGE_H

/* A rule and its data as texts, worked out and written down again. */

#include "base/json.h"
#include "gate/rules/logic.h"

enum { STAGE_BYTES = 64 << 20 };

struct logic_stage {
    struct arena arena;
    struct buf out;
    struct logic_problem problem;
    const char *why;
};

static inline void logic_stage_init(struct logic_stage *s)
{
    *s = (struct logic_stage){.why = NULL};
    arena_init(&s->arena, STAGE_BYTES);
    buf_init(&s->out, STAGE_BYTES);
}

static inline void logic_stage_fini(struct logic_stage *s)
{
    arena_fini(&s->arena);
    buf_fini(&s->out);
}

/* The value as JSON. "refused" when the rule is none, "failed" when it could
 * not be worked out; problem or why say more. */
static inline struct str logic_stage_run(struct logic_stage *s, struct str rule,
                                         struct str data)
{
    const struct json *tree, *value, *facts;
    struct logic_data d;
    struct logic *l;
    struct json_out o;

    arena_reset(&s->arena);
    buf_clear(&s->out);
    tree = json_parse(&s->arena, rule, 0, NULL);
    l = tree ? logic_read(&s->arena, tree, &s->problem) : NULL;
    facts = json_parse(&s->arena, data, 0, NULL);
    if (!l || !facts)
        return STR("refused");
    d = logic_data_of(facts);
    value = logic_value(l, &d, &s->arena, &s->why);
    if (!value)
        return STR("failed");
    o = json_out(&s->out);
    json_put(&o, value);
    return s->out.over ? STR("over") : buf_str(&s->out);
}

#endif
