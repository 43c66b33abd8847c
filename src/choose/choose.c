/* One table of layers, asked in order. */
#include "choose/internal.h"

#include <stdarg.h>
#include <stdio.h>

bool choose_keep(struct msg *m, struct str from, struct str *to)
{
    char *p = arena_strdup(&m->arena, from);

    *to = (struct str){p, p ? from.n : 0};
    return p != NULL;
}

enum err choose_take(struct msg *m, const struct agent *a, const char *reason,
                     ...)
{
    char words[DECISION_REASON_MAX + 1];
    va_list args;

    va_start(args, reason);
    vsnprintf(words, sizeof(words), reason, args);
    va_end(args);
    m->choice.needs = NEEDS_NOTHING;
    if (!choose_keep(m, a->name, &m->choice.agent) ||
        !choose_keep(m, str_of(words), &m->choice.reason))
        return ERR_NOMEM;
    return OK;
}

enum err choose_needs(struct msg *m, enum choose_need need)
{
    m->choice.needs = need;
    return OK;
}

const struct agent *choose_seen(const struct choose_view *v, struct str name)
{
    const struct agent *a = agent_find(v->agents, name);

    return a && agent_is_visible(a, v->eyes) ? a : NULL;
}

static enum err keep_near(struct msg *m, const struct near *near)
{
    struct str *names = arena_array(&m->arena, NEAR_MAX, sizeof(*names));

    if (!names)
        return ERR_NOMEM;
    for (size_t i = 0; i < near->n; i++)
        if (!choose_keep(m, near->names[i], &names[i]))
            return ERR_NOMEM;
    m->choice.nearest = names;
    m->choice.n_nearest = near->n;
    return OK;
}

enum err choose_nobody(const struct choose_view *v, struct msg *m,
                       struct str name)
{
    struct near near = near_find(v->agents, v->eyes, name);
    enum err e = keep_near(m, &near);

    return e ? e : near_say(&near, name, &m->why);
}

struct layer_row {
    enum layer layer;
    choose_layer *ask;
};

static const struct layer_row in_order[] = {
    {LAYER_EXPLICIT, choose_explicit}, {LAYER_PREFIX, choose_prefix},
    {LAYER_STICKY, choose_sticky},     {LAYER_BINDING, choose_by_binding},
    {LAYER_INTENT, choose_intent},     {LAYER_SEMANTIC, choose_semantic_best},
    {LAYER_DEFAULT, choose_default},
};

/* The classifier's word over that of the bindings. */
static const struct layer_row intent_first[] = {
    {LAYER_EXPLICIT, choose_explicit},  {LAYER_PREFIX, choose_prefix},
    {LAYER_STICKY, choose_sticky},      {LAYER_INTENT, choose_intent},
    {LAYER_BINDING, choose_by_binding}, {LAYER_SEMANTIC, choose_semantic_best},
    {LAYER_DEFAULT, choose_default},
};

_Static_assert(sizeof(in_order) == sizeof(intent_first), "the same layers");

enum err choose_agent(const struct choose_view *v, struct msg *m)
{
    const struct choose_settings *s = v->settings;
    const struct layer_row *rows =
        s->intent.overrides == INTENT_OVER_BINDINGS ? intent_first : in_order;
    struct id id = m->choice.id;

    memset(&m->choice, 0, sizeof(m->choice));
    m->choice.id = id;
    for (size_t i = 0; i < sizeof(in_order) / sizeof(in_order[0]); i++) {
        enum err e;

        if (s->is_off[rows[i].layer])
            continue;
        e = rows[i].ask(v, m);
        if (!e && !m->choice.needs)
            m->choice.layer = rows[i].layer;
        if (e != ERR_NO_ROUTE)
            return e;
    }
    return why_err(&m->why, ERR_NO_ROUTE,
                   "nobody is named to take this message; name an agent as "
                   "executor.name (GET /api/agents lists those there are)");
}

struct choose_settings choose_defaults(void)
{
    return (struct choose_settings){
        .weights = {.semantic = 0.60,
                    .performance = 0.20,
                    .keyword = 0.15,
                    .recency = 0.05},
        .threshold = 0.30,
        .recency_ms = INT64_C(48) * 3600 * 1000,
        .close_margin = 0.05,
        .intent = {.threshold = 0.8},
    };
}
