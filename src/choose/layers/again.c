/* Deciding again from a record: its message is rebuilt with all inputs known at
 * the time and goes through the same layers. So there is no second way of
 * deciding that could drift from the first.
 *
 * If the table decided, the record has only the table's scores. It is decided
 * by them, even if other settings would have the server ask the transformer.
 *
 * A record does not have the agents that existed. Those that it names did,
 * except for the agent of a conversation that a layer below `sticky` then
 * decided: that agent had gone. Nor does it have the bindings, which may be
 * thousands. With the record's own settings its result is taken over for that
 * one layer: either a binding decided, or none fitted. */
#include "choose/layers/internal.h"

#include <stdlib.h>

enum {
    NAMES_MAX = DECISION_CANDIDATES_MAX + 8,
    ROW_BYTES = AGENT_NAME_MAX,
};

/* The agents that exist, if the caller gives none. */
struct cast {
    struct agent list[NAMES_MAX];
    const struct agent *ptrs[NAMES_MAX];
    char lower[NAMES_MAX][ROW_BYTES];
    struct map by_name;
    struct agents all;
};

struct again {
    const struct decision *d;
    bool is_own;      /* by the record's own settings */
    bool takes_bound; /* the recorded result of the bindings stands */
    struct choose_settings settings;
    struct msg *m;
};

/* The settings. */

static bool was_off(const struct decision *d, enum layer l)
{
    return d->rules.layers_off >> l & 1;
}

static struct choose_settings own_settings(const struct decision *d)
{
    const struct decision_rules *r = &d->rules;
    struct choose_settings s = {
        .weights = d->weights,
        .is_auto = r->is_auto,
        .threshold = r->threshold,
        .is_centred = r->is_centred,
        .alpha = r->alpha,
        .unsure = r->unsure,
        .is_seed = r->is_seed,
        .trusts_all = r->trusts_all,
        .text_blend = r->text_blend,
        .explore = r->explore,
        .close_margin = r->close_margin,
        .second_margin = r->second_margin,
        .default_agent = r->default_agent,
        .intent = {.is_on = r->has_intent,
                   .threshold = r->intent_threshold,
                   .when = r->intent_is_ambiguous ? INTENT_AMBIGUOUS
                                                  : INTENT_ALWAYS,
                   .overrides = r->intent_is_over_bindings
                                    ? INTENT_OVER_BINDINGS
                                    : INTENT_OVER_DEFAULT},
    };

    for (int l = LAYER_EXPLICIT; l < N_LAYERS; l++)
        s.is_off[l] = was_off(d, (enum layer)l);
    return s;
}

/* A binding that names a missing agent rejects the message. Then the layer
 * after the bindings was never asked. */
static bool was_bound(const struct decision *d)
{
    bool is_unknown = d->executor.n && !was_off(d, LAYER_EXPLICIT);
    bool was_scored = d->n_candidates ? d->band != BAND_NOT_ASKED
                                      : d->threshold == d->rules.threshold;

    return d->layer == LAYER_BINDING ||
           (d->layer == LAYER_NONE && !is_unknown && !was_scored &&
            !was_off(d, LAYER_SEMANTIC));
}

/* The bindings are not in the record, but their result is. */
static void take_bound(struct again *g)
{
    struct choose_settings *s = &g->settings;

    g->takes_bound = was_bound(g->d) && !s->is_off[LAYER_BINDING];
    s->is_off[LAYER_BINDING] = true;
    if (!g->takes_bound)
        return;
    s->is_off[LAYER_SEMANTIC] = s->is_off[LAYER_DEFAULT] = true;
    s->is_off[LAYER_INTENT] |=
        s->intent.overrides != INTENT_OVER_BINDINGS ||
        (g->d->n_candidates && g->d->candidates->is_taught);
}

/* The agents. */

static enum err cast_add(struct cast *c, struct str name)
{
    size_t at = c->all.n;
    struct str lower;

    if (!name.n || name.n > ROW_BYTES || at == NAMES_MAX ||
        agent_find(&c->all, name))
        return OK;
    lower = str_lowered(name, c->lower[at], ROW_BYTES);
    c->list[at].name = name;
    c->all.n++;
    for (; at > 0 && str_cmp_nocase(c->ptrs[at - 1]->name, name) > 0; at--)
        c->ptrs[at] = c->ptrs[at - 1];
    c->ptrs[at] = &c->list[c->all.n - 1];
    return map_put(&c->by_name, lower, &c->list[c->all.n - 1]);
}

/* That layer was asked at the time and had no answer. */
static bool was_silent(const struct decision *d, enum layer l)
{
    return choose_comes_after(d->layer, l) && !was_off(d, l);
}

/* The agent that other bindings than the recorded ones name for the origin. */
static struct str bound_agent(struct again *g)
{
    const struct bindings *b = &g->settings.bindings;
    struct source s;
    int64_t i;

    if (!b->n || !g->d->source.n ||
        choose_source_read(&g->m->arena, g->d->source, &s, NULL))
        return (struct str){0};
    i = choose_binding(b, &s);
    return i < 0 ? (struct str){0} : b->list[i].agent;
}

static enum err cast_fill(struct cast *c, struct again *g)
{
    static const uint64_t seed[2] = {1, 2};
    const struct decision *d = g->d;
    bool has_gone = was_silent(d, LAYER_STICKY);
    bool is_unknown = was_silent(d, LAYER_EXPLICIT); /* the executor */
    const struct str others[] = {
        d->agent,
        is_unknown ? (struct str){0} : d->executor,
        d->stuck_to,
        g->settings.default_agent, /* recorded only if the sender saw it */
        g->is_own ? (struct str){0} : bound_agent(g),
    };
    enum err e = OK;

    map_init(&c->by_name, NAMES_MAX, seed);
    c->all = (struct agents){c->ptrs, 0, &c->by_name};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && !e; i++)
        if (!has_gone || !str_eq_nocase(others[i], d->stuck_to))
            e = cast_add(c, others[i]);
    for (size_t i = 0; i < d->n_candidates && !e; i++)
        e = cast_add(c, d->candidates[i].agent);
    return e;
}

/* The message. */

/* Candidates are compared in the order of names. */
static int candidate_by_name(const void *a, const void *b)
{
    return str_cmp_nocase(((const struct candidate *)a)->agent,
                          ((const struct candidate *)b)->agent);
}

/* There were no candidates. That is an input too, but only if a layer looked
 * for them. */
static bool had_no_candidates(const struct decision *d)
{
    bool asks_intent = d->rules.has_intent && !was_off(d, LAYER_INTENT);

    switch ((int)d->layer) {
    case LAYER_BINDING: return asks_intent && d->rules.intent_is_over_bindings;
    case LAYER_SEMANTIC: return true;
    case LAYER_DEFAULT:
    case LAYER_NONE: return asks_intent || !was_off(d, LAYER_SEMANTIC);
    default: return false;
    }
}

static enum err again_fill_candidates(struct again *g)
{
    const struct decision *d = g->d;
    struct msg *m = g->m;
    size_t n = d->n_candidates;
    struct candidate *list = arena_array(&m->arena, n ? n : 1, sizeof(*list));

    if (!list)
        return ERR_NOMEM;
    if (n) {
        memcpy(list, d->candidates, n * sizeof(*list));
        qsort(list, n, sizeof(*list), candidate_by_name);
    }
    m->known.candidates = list;
    m->known.n_candidates = n;
    if (d->n_considered > (int64_t)n)
        m->known.n_unrecorded = d->n_considered - (int64_t)n;
    m->known.is_recorded = true;
    m->known.is_small_talk = d->rules.is_small_talk;
    m->known.n_seen = d->rules.n;
    m->known.has_candidates = d->n_considered > 0 || had_no_candidates(d);
    return OK;
}

/* Only the beginning of a text is kept. If there was more, some text must still
 * follow a prefix. */
static bool again_fill_text(struct again *g)
{
    struct str kept = g->d->text;
    char *text = arena_alloc(&g->m->arena, kept.n + 1);

    if (!text)
        return false;
    if (kept.n)
        memcpy(text, kept.p, kept.n);
    text[kept.n] = '.';
    g->m->call.text =
        (struct str){text, kept.n + (kept.n > DECISION_TEXT_MAX - 4)};
    return true;
}

/* The skill that the sender named. The record has one skill, and the layers
 * that compare agents choose the candidate's. */
static struct str given_skill(const struct decision *d)
{
    if (d->layer == LAYER_INTENT || d->layer == LAYER_SEMANTIC)
        for (size_t i = 0; i < d->n_candidates; i++)
            if (str_eq_nocase(d->candidates[i].agent, d->agent) &&
                str_eq(d->candidates[i].skill, d->skill))
                return (struct str){0};
    return d->skill;
}

static enum err again_fill_msg(struct again *g)
{
    const struct decision *d = g->d;
    struct msg *m = g->m;

    if (!again_fill_text(g))
        return ERR_NOMEM;
    m->call.executor = d->executor;
    m->call.skill = given_skill(d);
    m->call.source = d->source;
    m->call.conversation_id = d->conversation_id;
    m->known.has_conversation = true;
    m->known.stuck_to = d->stuck_to;
    m->known.vector = d->vector;
    m->known.tier = d->tier;
    why_err(&m->known.no_full, OK, "%.*s", STR_ARG(d->tier_note));
    m->known.type = d->type;
    m->known.chance = d->rules.chance;
    m->known.has_intent = d->intent.is_asked;
    m->known.intent = d->intent;
    return again_fill_candidates(g);
}

/* The result. */

/* The reason of a rejection also mentions inputs that could not be fetched and
 * the number of unreachable agents. The record does not have these, so its
 * reason stands. */
static bool keeps_reason(const struct again *g)
{
    return g->is_own && g->d->layer == LAYER_NONE &&
           g->m->choice.layer == LAYER_NONE;
}

static enum err again_answer(const struct again *g, struct arena *a,
                             struct decision *out)
{
    const struct msg *m = g->m;

    *out = *g->d;
    out->layer = m->choice.layer;
    out->agent = m->choice.agent;
    out->skill = m->call.skill.n ? m->call.skill : m->choice.skill;
    out->reason = keeps_reason(g) ? g->d->reason : m->choice.reason;
    out->score = m->choice.score;
    out->margin = m->choice.margin;
    out->is_explored = m->choice.is_explored;
    out->band = m->choice.band;
    out->is_by_example = m->choice.is_by_example;
    out->is_unsure = m->choice.is_unsure;
    out->is_by_price = m->choice.unpaid != NULL;
    out->threshold = m->choice.layer == LAYER_INTENT
                         ? g->settings.intent.threshold
                         : m->choice.threshold;
    return arena_keep(a, out->agent, &out->agent) &&
                   arena_keep(a, out->skill, &out->skill) &&
                   arena_keep(a, out->reason, &out->reason)
               ? OK
               : ERR_NOMEM;
}

static enum err again_decide(struct again *g, const struct agents *agents,
                             struct arena *a, struct decision *out)
{
    struct eyes eyes = {.sees_all = true,
                        .self = g->d->is_by_agent ? g->d->requester : STR("")};
    struct choose_view v = {
        .settings = &g->settings, .agents = agents, .eyes = &eyes};
    bool is_further = g->d->turn > 1;
    enum err e = is_further ? choose_turn(&v, g->m) : choose_agent(&v, g->m);

    if (e == ERR_NO_ROUTE && g->takes_bound) {
        *out = *g->d;
        return out->layer == LAYER_NONE ? ERR_NO_ROUTE : OK;
    }
    if (e == ERR_NOMEM || (!e && g->m->choice.needs))
        return e ? e : ERR_NOT_FOUND;
    if (e)
        g->m->choice.layer = LAYER_NONE; /* whatever the error */
    if (again_answer(g, a, out))
        return ERR_NOMEM;
    return e ? ERR_NO_ROUTE : OK;
}

static enum err again_run(struct again *g, const struct agents *agents,
                          struct arena *a, struct decision *out)
{
    struct cast *cast = arena_alloc(a, sizeof(*cast));
    enum err e;

    g->m = msg_new(&(struct caller){0}, g->d->at_ms);
    e = g->m && cast ? again_fill_msg(g) : ERR_NOMEM;
    if (!e && !agents) {
        /* Agents that other settings name would be equally invisible to it. */
        g->settings.is_off[LAYER_PREFIX] |= was_silent(g->d, LAYER_PREFIX);
        e = cast_fill(cast, g);
    }
    if (!e)
        e = again_decide(g, agents ? agents : &cast->all, a, out);
    if (cast)
        map_fini(&cast->by_name);
    msg_free(g->m);
    return e;
}

enum err choose_again(const struct choose_settings *settings,
                      const struct agents *agents, const struct decision *d,
                      struct arena *a, struct decision *out)
{
    struct again g = {.d = d, .is_own = !settings};

    g.settings = settings ? *settings : own_settings(d);
    if (!settings)
        take_bound(&g);
    return again_run(&g, agents, a, out);
}

enum err choose_again_but(choose_change *change, void *ctx,
                          const struct decision *d, struct arena *a,
                          struct decision *out)
{
    struct again g = {.d = d, .is_own = true, .settings = own_settings(d)};

    change(ctx, &g.settings);
    take_bound(&g);
    return again_run(&g, NULL, a, out);
}
