/* Deciding again from a record: its message is put together anew, with
 * everything known that was known then, and goes through the same layers. So
 * there is no second way of deciding that could drift from the first.
 *
 * What a record does not have is who there was. Those that it names were there,
 * but for the agent of a conversation that somebody below `sticky` then got:
 * that one had gone. Nor does it have the bindings, which may be thousands; by
 * its own settings its word is taken for that one layer: either that was what
 * decided, or it had nothing to say. */
#include "choose/internal.h"

#include <stdlib.h>

enum {
    NAMES_MAX = DECISION_CANDIDATES_MAX + 8,
    ROW_BYTES = AGENT_NAME_MAX,
};

/* Who is there, where nobody says. */
struct cast {
    struct agent list[NAMES_MAX];
    const struct agent *ptrs[NAMES_MAX];
    char lower[NAMES_MAX][ROW_BYTES];
    struct map by_name;
    struct agents all;
};

struct again {
    const struct decision *d;
    bool is_own;      /* by its own settings */
    bool takes_bound; /* a binding's word of then stands */
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
        .threshold = r->threshold,
        .text_blend = r->text_blend,
        .explore = r->explore,
        .close_margin = r->close_margin,
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

/* The bindings are not in the record, but what they said is. */
static void take_bound(struct again *g)
{
    struct choose_settings *s = &g->settings;

    g->takes_bound = g->d->layer == LAYER_BINDING && !s->is_off[LAYER_BINDING];
    s->is_off[LAYER_BINDING] = true;
    if (!g->takes_bound)
        return;
    s->is_off[LAYER_SEMANTIC] = s->is_off[LAYER_DEFAULT] = true;
    s->is_off[LAYER_INTENT] |= s->intent.overrides != INTENT_OVER_BINDINGS;
}

/* Who is there. */

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

/* That layer was asked then, and had nothing to say. */
static bool was_silent(const struct decision *d, enum layer l)
{
    return d->layer > l && !was_off(d, l);
}

/* Whom other bindings than those of then name, for where it came from. */
static struct str bound(struct again *g)
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
    const struct str others[] = {
        d->agent,
        d->executor,
        d->stuck_to,
        g->settings.default_agent, /* named only where it was seen */
        g->is_own ? (struct str){0} : bound(g),
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

/* In the order of names, as whoever compares them has them. */
static int by_name(const void *a, const void *b)
{
    return str_cmp_nocase(((const struct candidate *)a)->agent,
                          ((const struct candidate *)b)->agent);
}

/* Nobody was there to compare: that is known too, but not where nobody had to
 * look. */
static bool had_nobody(const struct decision *d)
{
    bool asks_intent = d->rules.has_intent && !was_off(d, LAYER_INTENT);

    switch ((int)d->layer) {
    case LAYER_BINDING: return asks_intent && d->rules.intent_is_over_bindings;
    case LAYER_SEMANTIC: return true;
    case LAYER_DEFAULT: return asks_intent || !was_off(d, LAYER_SEMANTIC);
    default: return false;
    }
}

static enum err fill_candidates(struct again *g)
{
    const struct decision *d = g->d;
    struct msg *m = g->m;
    size_t n = d->n_candidates;
    struct candidate *list = arena_array(&m->arena, n ? n : 1, sizeof(*list));

    if (!list)
        return ERR_NOMEM;
    if (n) {
        memcpy(list, d->candidates, n * sizeof(*list));
        qsort(list, n, sizeof(*list), by_name);
    }
    m->known.candidates = list;
    m->known.n_candidates = n;
    if (d->n_considered > (int64_t)n)
        m->known.n_unrecorded = d->n_considered - (int64_t)n;
    m->known.is_recorded = true;
    m->known.has_candidates = d->n_considered > 0 || had_nobody(d);
    return OK;
}

/* Only its beginning is kept: where there was more, there still is something
 * behind a prefix. */
static bool fill_text(struct again *g)
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

static enum err fill(struct again *g)
{
    const struct decision *d = g->d;
    struct msg *m = g->m;

    if (!fill_text(g))
        return ERR_NOMEM;
    m->call.executor = d->executor;
    m->call.source = d->source;
    m->call.conversation_id = d->conversation_id;
    m->known.has_conversation = true;
    m->known.stuck_to = d->stuck_to;
    m->known.vector = d->vector;
    m->known.type = d->type;
    m->known.chance = d->rules.chance;
    m->known.has_intent = d->intent.is_asked;
    m->known.intent = d->intent;
    return fill_candidates(g);
}

/* The answer. */

static enum err answer(const struct again *g, struct arena *a,
                       struct decision *out)
{
    const struct msg *m = g->m;

    *out = *g->d;
    out->layer = m->choice.layer;
    out->agent = m->choice.agent;
    out->skill = m->choice.skill;
    out->reason = m->choice.reason;
    out->score = m->choice.score;
    out->margin = m->choice.margin;
    out->is_explored = m->choice.is_explored;
    out->threshold = m->choice.layer == LAYER_INTENT
                         ? g->settings.intent.threshold
                         : g->settings.threshold;
    return arena_keep(a, out->agent, &out->agent) &&
                   arena_keep(a, out->skill, &out->skill) &&
                   arena_keep(a, out->reason, &out->reason)
               ? OK
               : ERR_NOMEM;
}

static enum err decide(struct again *g, const struct agents *agents,
                       struct arena *a, struct decision *out)
{
    struct eyes eyes = {.sees_all = true,
                        .self = g->d->is_by_agent ? g->d->requester : STR("")};
    struct choose_view v = {&g->settings, agents, &eyes};
    bool is_further = g->d->turn > 1;
    enum err e = is_further ? choose_turn(&v, g->m) : choose_agent(&v, g->m);

    if (e == ERR_NO_ROUTE && g->takes_bound) {
        *out = *g->d;
        return OK;
    }
    if (e)
        return e == ERR_NOMEM ? e : ERR_NO_ROUTE;
    return g->m->choice.needs ? ERR_NOT_FOUND : answer(g, a, out);
}

static enum err run(struct again *g, const struct agents *agents,
                    struct arena *a, struct decision *out)
{
    struct cast *cast = arena_alloc(a, sizeof(*cast));
    enum err e;

    g->m = msg_new(&(struct caller){0}, g->d->at_ms);
    e = g->m && cast ? fill(g) : ERR_NOMEM;
    if (!e && !agents) {
        /* Whom other settings name would be as little seen by it. */
        g->settings.is_off[LAYER_PREFIX] |= was_silent(g->d, LAYER_PREFIX);
        e = cast_fill(cast, g);
    }
    if (!e)
        e = decide(g, agents ? agents : &cast->all, a, out);
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
    return run(&g, agents, a, out);
}

enum err choose_again_but(choose_change *change, void *ctx,
                          const struct decision *d, struct arena *a,
                          struct decision *out)
{
    struct again g = {.d = d, .is_own = true, .settings = own_settings(d)};

    change(ctx, &g.settings);
    take_bound(&g);
    return run(&g, NULL, a, out);
}
