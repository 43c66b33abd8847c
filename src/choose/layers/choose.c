/* One table of layers, asked in order. */
#include "choose/layers/internal.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/amount.h"

/* Cut at a character boundary. */
static bool keep_reason(struct msg *m, const char *words)
{
    return arena_keep(&m->arena, str_head(str_of(words), DECISION_REASON_MAX),
                      &m->choice.reason);
}

__attribute__((format(printf, 3, 0))) static enum err
choose_take_va(struct msg *m, const struct agent *a, const char *reason,
               va_list args)
{
    char words[2 * DECISION_REASON_MAX];

    vsnprintf(words, sizeof(words), reason, args);
    m->choice.needs = NEEDS_NOTHING;
    if (!arena_keep(&m->arena, a->name, &m->choice.agent) ||
        !keep_reason(m, words))
        return ERR_NOMEM;
    return OK;
}

enum err choose_take(struct msg *m, const struct agent *a, const char *reason,
                     ...)
{
    va_list args;
    enum err e;

    va_start(args, reason);
    e = choose_take_va(m, a, reason, args);
    va_end(args);
    return e;
}

enum err choose_named(const struct choose_view *v, struct msg *m,
                      const struct agent *a, const char *reason, ...)
{
    const struct agent *before;
    va_list args;
    enum err e;

    if (m->call.conversation_id.n && !v->settings->is_off[LAYER_STICKY]) {
        if (!m->known.has_conversation)
            return choose_needs(m, NEEDS_CONVERSATION);
        before = choose_seen(v, m->known.stuck_to);
        /* An agent that delegates to one and then another corrects nothing. */
        m->choice.is_switch = before && before != a && !m->delegation.agent.n;
    }
    va_start(args, reason);
    e = choose_take_va(m, a, reason, args);
    va_end(args);
    return e;
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

const struct agent *choose_meant(const struct choose_view *v, struct str name)
{
    const struct agent *a = name.n ? choose_seen(v, name) : NULL;

    return a && (!v->is_meant || v->is_meant(v->ctx, a)) ? a : NULL;
}

bool choose_is_self(const struct choose_view *v, const struct agent *a)
{
    return v->eyes->self.n && str_eq_nocase(v->eyes->self, a->name);
}

enum err choose_not_found(const struct choose_view *v, struct msg *m,
                          struct str name)
{
    struct near near = near_find(v->agents, v->eyes, name);
    struct str *names = arena_array(&m->arena, NEAR_MAX, sizeof(*names));

    if (!names)
        return ERR_NOMEM;
    for (size_t i = 0; i < near.n; i++)
        if (!arena_keep(&m->arena, near.names[i], &names[i]))
            return ERR_NOMEM;
    m->choice.nearest = names;
    m->choice.n_nearest = near.n;
    return near_say(&near, name, &m->why);
}

enum err choose_refused(struct msg *m, enum err e)
{
    if (!keep_reason(m, m->why.text))
        return ERR_NOMEM;
    m->choice.layer = LAYER_NONE;
    m->choice.needs = NEEDS_NOTHING;
    return e;
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

/* The classifier decides before the bindings. */
static const struct layer_row intent_first[] = {
    {LAYER_EXPLICIT, choose_explicit},  {LAYER_PREFIX, choose_prefix},
    {LAYER_STICKY, choose_sticky},      {LAYER_INTENT, choose_intent},
    {LAYER_BINDING, choose_by_binding}, {LAYER_SEMANTIC, choose_semantic_best},
    {LAYER_DEFAULT, choose_default},
};

_Static_assert(sizeof(in_order) == sizeof(intent_first), "the same layers");

bool choose_comes_after(enum layer a, enum layer b)
{
    for (size_t i = 0; i < sizeof(in_order) / sizeof(in_order[0]); i++) {
        if (in_order[i].layer == a)
            return false;
        if (in_order[i].layer == b)
            return a != 0;
    }
    return false;
}

/* Write "WORDS; REASON". */
__attribute__((format(printf, 2, 3))) static enum err
prepend_reason(struct msg *m, const char *fmt, ...)
{
    char words[2 * DECISION_REASON_MAX];
    va_list args;
    size_t n;

    va_start(args, fmt);
    n = (size_t)vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    if (n < sizeof(words))
        snprintf(words + n, sizeof(words) - n, "; %.*s",
                 STR_ARG(m->choice.reason));
    return keep_reason(m, words) ? OK : ERR_NOMEM;
}

/* Complete the reason of a choice. The later a part is added, the more
 * certainly a long reason does not cut it off. */
static enum err complete_reason(const struct choose_view *v, struct msg *m)
{
    const struct candidate *c = m->choice.unpaid;
    enum layer layer = m->choice.layer;
    bool was_stuck = !v->settings->is_off[LAYER_STICKY] &&
                     m->known.has_conversation && m->known.stuck_to.n;
    enum err e = OK;

    if (m->choice.needs)
        return OK;
    if (c) /* fits better, but the sender has not agreed to pay */
        e = prepend_reason(m,
                           "\"%.*s\" fits better but costs %s, and the message "
                           "names neither it nor such a price",
                           STR_ARG(c->agent),
                           amount_write(c->price_micros).text);
    /* The transformer should have been asked and was not. */
    if (!e && m->known.no_full.text[0] &&
        (layer == LAYER_SEMANTIC || layer == LAYER_DEFAULT))
        e = prepend_reason(m, "%s", m->known.no_full.text);
    /* A layer below sticky decided only because of this. */
    if (!e && choose_comes_after(layer, LAYER_STICKY) && was_stuck &&
        !choose_seen(v, m->known.stuck_to))
        e = prepend_reason(m, "the conversation's agent \"%.*s\" is gone",
                           STR_ARG(m->known.stuck_to));
    return e;
}

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
        if (e == ERR_AGENT_NOT_FOUND)
            return choose_refused(m, e);
        if (e != ERR_NO_ROUTE)
            return e ? e : complete_reason(v, m);
        m->choice.margin = 0; /* belongs to a chosen agent */
    }
    return choose_no_route(v, m);
}

struct choose_settings choose_defaults(void)
{
    return (struct choose_settings){
        .weights = {.semantic = 0.60,
                    .performance = 0.20,
                    .keyword = 0.15,
                    .recency = 0.05},
        .is_auto = true,
        .is_centred = true,
        .threshold = 0.30,
        .alpha = 0.2,
        .text_blend = 0.25,
        .recency_ms = INT64_C(48) * 3600 * 1000,
        .close_margin = 0.05,
        .second_margin = 3,
        .intent = {.threshold = 0.8},
    };
}
