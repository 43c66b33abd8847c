/* Decides as route does: the registry and learning provide the candidates, and
 * choose decides. With a model of two tiers it decides by the quick vector, and
 * again by the full one if the table is unsure. The conversation is new, no
 * binding matches and no agent is named, so only the layers prefix, semantic
 * and default can decide. */
#include "lab/eval_fleet_own.h"

#include <stdlib.h>

#include "base/vec.h"

#define SCOPE STR("org:home")

static enum err eval_reserve_scores(struct eval_fleet *f, size_t n)
{
    struct candidate *more;

    if (n <= f->candidates_cap)
        return OK;
    more = realloc(f->candidates, n * sizeof(*more));
    if (!more)
        return ERR_NOMEM;
    f->candidates = more;
    f->candidates_cap = n;
    return OK;
}

static uint32_t eval_agent_number(const struct eval_fleet *f, struct str name)
{
    const struct eval_agent *a = eval_find(f->opts.set, name);

    if (!a && str_starts(name, STR(PREFIX)))
        a = eval_find(f->opts.set, str_sub(name, sizeof(PREFIX) - 1, name.n));
    if (a)
        return (uint32_t)(a - f->opts.set->agents);
    return str_eq_nocase(name, f->opts.default_agent) ? EVAL_DEFAULT
                                                      : EVAL_STRANGER;
}

/* With EVAL_RATED the set's agents count as rated well, since the evaluation
 * does not measure how ratings are learnt. */
static bool eval_agent_is_trusted(const struct eval_fleet *f,
                                  const struct eyes *eyes,
                                  const struct agent *a)
{
    uint32_t n;

    if (f->settings.trusts_all)
        return true;
    if (f->opts.relation != EVAL_RATED)
        return !agent_is_outsider(a, eyes);
    n = eval_agent_number(f, a->name);
    return n < f->opts.set->n_agents && n != f->unrated;
}

static enum err eval_gather_candidates(struct eval_fleet *f,
                                       const struct eyes *eyes,
                                       const struct registry_near *near,
                                       size_t n)
{
    enum err e = eval_reserve_scores(f, n);

    for (size_t i = 0; i < n && !e; i++) {
        const struct agent *a = near[i].agent;
        struct learn_hint hint;

        learn_look(f->learn, a->name, &hint);
        f->candidates[i] = (struct candidate){
            .agent = a->name,
            .skill = near[i].skill ? near[i].skill->id : STR(""),
            .keyword = near[i].keyword,
            .level = near[i].level,
            .signals = {.cosine = near[i].cosine,
                        .text = near[i].text,
                        .discount = choose_discount(
                            &f->settings, near[i].cosine_over,
                            near[i].text_over, near[i].discount),
                        .learned = hint.learned,
                        .performance = hint.performance,
                        .recency = hint.recency},
            .is_trusted = eval_agent_is_trusted(f, eyes, a),
            .is_half = near[i].keyword.n && near[i].has_discount &&
                       !eval_agent_is_trusted(f, eyes, a),
        };
    }
    return e;
}

/* Copies the ranked agents; none if even the first has no positive signal. */
static void eval_read_choice(const struct eval_fleet *f, const struct msg *m,
                             struct eval_choice *out)
{
    enum layer layer = m->choice.layer ? m->choice.layer : LAYER_NONE;
    bool is_refused = layer == LAYER_NONE || layer == LAYER_DEFAULT;

    *out = (struct eval_choice){.layer = layer,
                                .band = m->choice.band,
                                .tier = m->known.tier,
                                .is_unsure = m->choice.is_unsure,
                                .agent = EVAL_NOBODY};
    if (!out->band) /* a layer before semantic chose, or there was no choice */
        out->band = is_refused ? BAND_OUT_OF_SCOPE : BAND_CONFIDENT;
    if (layer != LAYER_NONE)
        out->agent = eval_agent_number(f, m->choice.agent);
    for (size_t i = 0; i < m->choice.n_candidates; i++) {
        const struct candidate *c = &m->choice.candidates[i];

        if (i == 0 && !(c->signals.semantic > 0 || c->signals.keyword > 0))
            break;
        out->best[out->n].agent = eval_agent_number(f, c->agent);
        out->best[out->n].signals = c->signals;
        out->best[out->n++].score = c->score;
    }
}

static void eval_cards_mention(void *ctx, const struct str *words, size_t n,
                               bool *is_said)
{
    struct eval_fleet *f = ctx;
    struct eyes eyes = eyes_of(&f->asker, cli_now_ms());

    if (registry_says(f->registry, &eyes, words, n, is_said))
        memset(is_said, 0, n * sizeof(*is_said));
}

enum err eval_fleet_read(struct eval_fleet *f, struct arena *a, struct str text,
                         struct reading *out)
{
    return reading_make(
        a, f->speller, eval_cards_mention, f, text,
        reading_leaves_spelling(
            embed_stats(f->opts.model->providers.embeds[0]).kind),
        out);
}

static bool reading_is_empty(const struct reading *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->texts[i].n)
            return false;
    return true;
}

/* Sets the quick vector, if the model has one and the table knows the text. */
static enum err eval_take_quick_vector(struct eval_fleet *f, struct msg *m,
                                       const struct reading *r)
{
    struct embed *embed = f->opts.model->providers.embeds[0];
    float v[READING_TEXTS_MAX * EMBED_DIMS_MAX];
    size_t bytes = vec_packed_bytes(f->stamp.dims);
    uint8_t *packed;

    if (!f->stamp.quick_dims)
        return OK;
    packed = arena_alloc(&m->arena, bytes);
    if (!packed)
        return ERR_NOMEM;
    for (size_t i = 0; i < r->n; i++)
        (void)!embed_quick(embed, r->texts[i], v + i * f->stamp.dims);
    reading_add_up(r, v, &f->stamp);
    if (!vec_pack(v, f->stamp.dims, packed))
        return OK;
    m->known.vector = (struct str){(const char *)packed, bytes};
    m->known.tier = TIER_TABLE;
    m->known.may_ask_full = registry_has_full(f->registry);
    return OK;
}

static void eval_take_full_vector(const struct eval_fleet *f, struct msg *m,
                                  struct str full)
{
    m->known.may_ask_full = false;
    if (!full.n)
        return; /* the table's result stays */
    m->known.vector = full;
    m->known.tier = f->stamp.quick_dims ? TIER_TRANSFORMER : TIER_NONE;
}

static enum err eval_choose_once(struct eval_fleet *f, struct msg *m,
                                 struct str words)
{
    struct agents agents = registry_agents(f->registry);
    struct eyes eyes = eyes_of(&f->asker, m->in.at_ms);
    struct choose_view view = {
        .settings = &f->settings, .agents = &agents, .eyes = &eyes};
    struct registry_near_query q = {.eyes = eyes,
                                    .text = m->call.text,
                                    .words = words,
                                    .vector = m->known.vector,
                                    .trusts_all = f->settings.trusts_all};
    struct learn_query lq = {.scope = SCOPE,
                             .vector = m->known.vector,
                             .now_ms = m->in.at_ms,
                             .recency_ms = f->settings.recency_ms};
    const struct registry_near *near;
    size_t n, n_left;
    enum err e = registry_near(f->registry, &q, &near, &n, &n_left);

    if (e)
        return e;
    learn_begin(f->learn, &lq);
    e = eval_gather_candidates(f, &eyes, near, n);
    if (e)
        return e;
    m->known.has_conversation = m->known.has_candidates = true;
    m->known.candidates = f->candidates;
    m->known.n_candidates = n;
    m->known.is_share_spent = choose_share_is_spent(f->shares, SCOPE);
    m->known.chance = 1; /* no exploration */
    e = choose_agent(&view, m);
    return e == ERR_NO_ROUTE || e == ERR_BAD_REQUEST ? OK : e;
}

static enum err eval_decide_once(struct eval_fleet *f, struct msg *m,
                                 struct str full, bool *wants_full)
{
    struct reading reading;
    enum err e = eval_fleet_read(f, &m->arena, m->call.text, &reading);

    if (!e)
        e = eval_take_quick_vector(f, m, &reading);
    if (e)
        return e;
    if (!m->known.vector.n) {
        *wants_full =
            f->stamp.quick_dims && !full.p && !reading_is_empty(&reading);
        eval_take_full_vector(f, m, full);
    }
    if (!*wants_full)
        e = eval_choose_once(f, m, reading.words);
    if (!e && m->choice.needs == NEEDS_FULL_VECTOR) {
        *wants_full = !full.p;
        eval_take_full_vector(f, m, full);
        if (!*wants_full)
            e = eval_choose_once(f, m, reading.words);
    }
    if (!e && !*wants_full)
        choose_share_count(f->shares, SCOPE, m);
    return e;
}

enum err eval_fleet_decide(struct eval_fleet *f, struct str text,
                           struct str vector, int64_t now_ms,
                           struct eval_choice *out)
{
    struct msg *m = msg_new(&f->asker, now_ms);
    bool wants_full = false;
    enum err e;

    if (!m)
        return ERR_NOMEM;
    m->call.text = text;
    e = eval_decide_once(f, m, vector, &wants_full);
    if (!e)
        eval_read_choice(f, m, out);
    if (!e)
        out->wants_full = wants_full;
    msg_free(m);
    return e;
}

static struct str eval_agent_name(const struct eval_fleet *f, uint32_t agent)
{
    if (agent < f->opts.set->n_agents)
        return f->cards[agent].name;
    return agent == EVAL_DEFAULT ? f->opts.default_agent : STR("");
}

enum err eval_fleet_teach(struct eval_fleet *f, struct str text,
                          struct str vector, int64_t now_ms,
                          const struct eval_choice *c, bool is_right,
                          uint32_t right, bool *is_correction)
{
    struct outcome o = {
        .at_ms = now_ms,
        .kind = OUTCOME_VERDICT,
        .verdict = is_right ? VERDICT_POSITIVE : VERDICT_NEGATIVE,
        .decision_id = id_make(&f->ids, "dec", now_ms),
        .layer = c->layer,
        .agent = eval_agent_name(f, c->agent),
        .scope = SCOPE,
        .text = str_head(text, DECISION_TEXT_MAX),
        .vector = vector,
        .model_hash = str_of(f->stamp.hash),
    };

    *is_correction = false;
    /* No agent got the message, so none is judged. */
    if (c->layer == LAYER_NONE || !o.agent.n)
        return OK;
    if (!is_right && right != EVAL_NOBODY) {
        *is_correction = true;
        o.kind = OUTCOME_CORRECTION;
        o.right_agent = eval_agent_name(f, right);
        o.by = caller_name(&f->asker);
    }
    o.seq = ++f->seq;
    return learn_apply(f->learn, &o);
}
