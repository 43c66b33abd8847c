#ifndef TEST_LIB_DECISION_MAKER_H
#define TEST_LIB_DECISION_MAKER_H

/* Decisions of all layers, made by chance as the server makes them: settings,
 * a message, what is known of everybody, and choosing asked until it has what
 * it needs. The same number makes the same decision. */

#include "test/lib/signal_stage.h"

enum { MAKER_AGENTS = 40 };

struct maker {
    uint64_t state;
    char names[MAKER_AGENTS][16];
    struct binding bindings[4];
    char text[1200], source[128];
};

static struct maker maker;

/* splitmix64 */
static inline uint64_t by_chance(uint64_t below)
{
    uint64_t z = maker.state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

static inline bool once_in(uint64_t n)
{
    return by_chance(n) == 0;
}

/* 0 to 1; now and then an end of it, or something that ties. */
static inline double some_part(void)
{
    switch (by_chance(12)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return 0.5;
    default: return (double)by_chance(1 << 30) / (double)(1 << 30);
    }
}

static inline struct str some_name(void)
{
    if (!stage.all.n || once_in(8))
        return STR("missing-there");
    return stage.list[by_chance(stage.all.n)].name;
}

static inline void some_settings(void)
{
    struct choose_settings *s = &stage.settings;

    for (int l = LAYER_EXPLICIT; l < N_LAYERS; l++)
        s->is_off[l] = once_in(12);
    s->weights = (struct signal_weights){some_part(), some_part(), some_part(),
                                         some_part()};
    s->is_auto = once_in(2);
    s->is_centred = s->is_auto && once_in(2);
    s->threshold = some_part();
    s->alpha = 0.01 + some_part();
    s->unsure = (enum unsure_policy)by_chance(UNSURE_REFUSE + 1);
    s->text_blend = some_part();
    s->explore = once_in(3) ? some_part() : 0;
    s->close_margin = some_part() / 4;
    s->second_margin = (once_in(2) ? 10 : 1) * some_part();
    s->default_agent = once_in(2) ? some_name() : STR("");
    s->intent.is_on = once_in(2);
    s->intent.threshold = some_part();
    s->intent.when = once_in(2) ? INTENT_ALWAYS : INTENT_AMBIGUOUS;
    s->intent.overrides =
        once_in(2) ? INTENT_OVER_DEFAULT : INTENT_OVER_BINDINGS;
    for (size_t i = 0; i < 4; i++)
        maker.bindings[i] = (struct binding){
            .agent = stage.all.n ? stage.list[by_chance(stage.all.n)].name
                                 : STR("x"),
            .channel = once_in(2) ? STR("telegram") : STR("discord"),
            .peer = {.kind = once_in(2) ? STR("group") : STR("direct"),
                     .id = once_in(2) ? STR("7") : STR("")},
        };
    s->bindings = (struct bindings){maker.bindings, by_chance(5)};
}

static inline void some_agents(void)
{
    size_t n = once_in(20) ? 0 : 1 + by_chance(MAKER_AGENTS);

    for (size_t i = 0; i < n; i++) {
        snprintf(maker.names[i], sizeof(maker.names[i]),
                 once_in(2) ? "agent-%02zu" : "Agent-%02zu", i);
        stage_add(maker.names[i]);
        /* Of one from outside there may be a crowd. */
        if (once_in(2))
            stage.list[i].creator = once_in(2) ? STR("eve") : STR("mallory");
    }
}

/* Any number, since what was learnt is a sum. */
static inline float some_sum(void)
{
    return (float)(once_in(3) ? 4 * some_part() - 2 : some_part());
}

/* Now and then one of those that come near cannot be sent anything. */
static inline bool is_there_by_chance(void *ctx, const struct agent *a)
{
    (void)ctx;
    return a->name.p[a->name.n - 1] != '7';
}

static inline void some_signals(void)
{
    bool has_vector = !once_in(8);
    size_t n = 0;
    uint64_t taught = by_chance(9 * (stage.all.n + 1));

    for (size_t i = 0; i < stage.all.n; i++) {
        struct candidate *c = &stage.candidates[n];

        /* Anyone who looks for someone does not find itself. */
        if (once_in(9) || str_eq_nocase(stage.list[i].name, stage.eyes.self))
            continue;
        *c = (struct candidate){.agent = stage.list[i].name,
                                .level = {-1, -1},
                                .is_trusted = once_in(2),
                                .is_taught = i == taught};
        if (!once_in(9)) {
            c->level.mid = (float)some_part() / 2;
            c->level.high = c->level.mid + (float)some_part() / 4;
        }
        c->price_micros = once_in(2) ? (int64_t)by_chance(30000000) : 0;
        c->is_unpaid = c->price_micros && once_in(2);
        c->skill = once_in(2) ? STR("debug") : STR("");
        c->keyword = once_in(4) ? STR("code") : STR("");
        c->is_half = c->keyword.n && !c->is_trusted && once_in(2);
        c->signals = (struct signals){
            .cosine = has_vector && !once_in(8) ? (float)some_part() : -1,
            .text = (float)some_part(),
            .learned = some_sum(),
            .discount = once_in(3) ? (float)some_part() / 8 : 0,
            .performance = (float)some_part(),
            .keyword = c->keyword.n ? 1 : 0,
            .recency = (float)some_part(),
        };
        n++;
    }
    stage.m->known.candidates = stage.candidates;
    stage.m->known.n_candidates = n;
    stage.m->known.has_candidates = true;
    stage.m->known.is_there = once_in(4) ? is_there_by_chance : NULL;
    stage.m->known.chance = some_part();
}

/* Half of the models have two tiers, and the table comes first. */
static inline void some_tier(void)
{
    struct msg *m = stage.m;

    if (m->known.tier || once_in(3))
        return;
    m->known.tier = TIER_TABLE;
    m->known.may_ask_full = true;
}

/* The candidates once more, by the transformer; or it does not answer. */
static inline void some_full_vector(void)
{
    struct msg *m = stage.m;

    CHECK(m->known.tier == TIER_TABLE && m->known.may_ask_full);
    m->known.may_ask_full = false;
    if (once_in(2)) {
        why_err(&m->known.no_full, OK,
                "the transformer has too much to do, so the table decided");
        return;
    }
    m->known.tier = TIER_TRANSFORMER;
    for (size_t i = 0; i < m->known.n_candidates; i++)
        if (stage.candidates[i].signals.cosine >= 0)
            stage.candidates[i].signals.cosine = (float)some_part();
}

static inline void some_message(void)
{
    struct msg *m = stage.m;
    struct str name = some_name();

    if (once_in(3))
        snprintf(maker.text, sizeof(maker.text), "/%.*s %*s", STR_ARG(name),
                 once_in(6) ? 1100 : 3, "hi");
    else if (once_in(5))
        snprintf(maker.text, sizeof(maker.text), "ok thanks");
    else
        snprintf(maker.text, sizeof(maker.text), "please do number %d",
                 (int)by_chance(1000));
    m->call.text = str_of(maker.text);
    if (once_in(6))
        m->call.executor = some_name();
    if (once_in(2)) {
        snprintf(
            maker.source, sizeof(maker.source),
            "{\"channel\":\"%s\",\"peer\":{\"kind\":\"%s\",\"id\":\"%d\"}}",
            once_in(2) ? "telegram" : "discord",
            once_in(2) ? "group" : "direct", (int)(6 + by_chance(2)));
        m->call.source = str_of(maker.source);
    }
    if (once_in(3)) {
        m->call.conversation_id = STR("c-1");
        m->task.conversation_id = m->call.conversation_id;
    }
}

static inline void some_intent(void)
{
    struct msg *m = stage.m;
    struct intent_answer *i = &m->known.intent;

    *i = (struct intent_answer){.is_asked = true, .took_ms = 7};
    m->known.has_intent = true;
    if (once_in(4)) {
        i->why = STR("it did not answer");
        return;
    }
    i->is_good = true;
    i->agent = m->choice.candidates[by_chance(m->choice.n_candidates)].agent;
    i->confidence = some_part();
    i->reasoning = once_in(2) ? STR("it is so") : STR("");
}

static inline void some_conversation(void)
{
    stage.m->known.has_conversation = true;
    if (once_in(2))
        stage.m->known.stuck_to = some_name();
}

/* Now and then an agent asks that everything else may name as well. */
static inline void some_caller(void)
{
    struct caller *c = &stage.m->in.caller;

    if (!stage.all.n || !once_in(4))
        return;
    c->role = ROLE_AGENT;
    snprintf(c->principal, sizeof(c->principal), "%.*s", STR_ARG(some_name()));
    stage.eyes.self = caller_name(c);
}

/* Choosing, with whatever it needs; and what its record says of the
 * conversation, which no layer need have asked for. */
static inline enum err make_choice(void)
{
    struct msg *m = stage.m;

    for (int i = 0; i < 8; i++) {
        enum err e = stage_ask();

        if (e || (!m->choice.needs &&
                  (m->known.has_conversation || !m->call.conversation_id.n)))
            return e;
        if (m->choice.needs == NEEDS_CANDIDATES) {
            some_signals();
            some_tier();
        } else if (m->choice.needs == NEEDS_FULL_VECTOR)
            some_full_vector();
        else if (m->choice.needs == NEEDS_INTENT)
            some_intent();
        else
            some_conversation();
    }
    T_FAIL("it never has enough");
}

/* A further turn of someone's task. */
static inline enum err make_turn(void)
{
    stage.m->known.has_conversation = true;
    stage.m->known.stuck_to = some_name();
    stage.m->call.executor = STR("");
    return choose_turn(&stage.view, stage.m);
}

/* OK, and *out is a decision until stage_close; else there is none. A refusal
 * is a decision too, of the layer `none`. */
static inline enum err make_decision(uint64_t number, struct decision *out)
{
    bool is_further;
    enum err e;

    maker.state = number * 1000003;
    stage_open_n(0, NULL);
    some_agents();
    some_caller();
    some_settings();
    stage.m->known.has_candidates = false;
    some_message();
    is_further = once_in(12);
    e = is_further ? make_turn() : make_choice();
    if (e && stage.m->choice.layer != LAYER_NONE) {
        stage_close();
        return e;
    }
    if (number % 5 == 0)
        stage.m->call.skill = STR("given");
    snprintf(stage.m->choice.id.text, sizeof(stage.m->choice.id.text),
             "dec_%026llu", (unsigned long long)number);
    choose_decision(&stage.view, stage.m, out);
    out->turn = is_further ? 2 : e ? 0 : 1;
    return OK;
}

/* What deciding it again says. */
static inline enum err made_with(const struct decision *d)
{
    return d->layer == LAYER_NONE ? ERR_NO_ROUTE : OK;
}

/* A binding named an agent that is not there. By settings from outside, agents
 * that these name count as there. */
static inline bool made_by_missing(const struct decision *d)
{
    return d->layer == LAYER_NONE && str_starts(d->reason, STR("the binding"));
}

/* The same answer, to the last bit. */
static inline void check_same_answer(const struct decision *a,
                                     const struct decision *b)
{
    if (a->layer != b->layer || !str_eq(a->agent, b->agent))
        T_FAIL("%s by %s has become %s by %s",
               arena_strdup(&stage.m->arena, a->agent), layer_name(a->layer).p,
               arena_strdup(&stage.m->arena, b->agent), layer_name(b->layer).p);
    CHECK(memcmp(&a->score, &b->score, sizeof(a->score)) == 0);
    CHECK(memcmp(&a->margin, &b->margin, sizeof(a->margin)) == 0);
    CHECK(memcmp(&a->threshold, &b->threshold, sizeof(a->threshold)) == 0);
    CHECK(str_eq(a->skill, b->skill) && a->is_explored == b->is_explored);
    CHECK(a->band == b->band && a->is_unsure == b->is_unsure);
    CHECK(a->tier == b->tier && str_eq(a->tier_note, b->tier_note));
    if (!str_eq(a->reason, b->reason))
        T_FAIL("\"%s\" has become \"%s\"",
               arena_strdup(&stage.m->arena, a->reason),
               arena_strdup(&stage.m->arena, b->reason));
}

#endif
