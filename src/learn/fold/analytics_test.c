#include "learn/fold/analytics.h"

#include <math.h>
#include <stdio.h>

#include "base/fault.h"
#include "test/t.h"

static const uint64_t seed[2] = {1, 2};

static const struct signal_weights seeds_weights = {.6, .2, .15, .05};

/* A semantic decision between two, by their signals. */
struct pair {
    struct candidate list[2];
    struct decision d;
};

static double score_of(const struct signals *s)
{
    return .6 * (double)s->semantic + .2 * (double)s->performance +
           .15 * (double)s->keyword + .05 * (double)s->recency;
}

static struct decision *pair(struct pair *p, struct signals first,
                             struct signals second)
{
    *p = (struct pair){
        .list = {{.agent = STR("engineer"), .signals = first},
                 {.agent = STR("writer"), .signals = second}},
        .d = {.at_ms = 1000,
              .layer = LAYER_SEMANTIC,
              .agent = STR("engineer"),
              .text = STR("build me a model"),
              .threshold = .3,
              .weights = seeds_weights,
              .n_candidates = 2,
              .answer_chars = -1,
              .latency_ms = -1},
    };
    for (int i = 0; i < 2; i++)
        p->list[i].score = score_of(&p->list[i].signals);
    p->d.candidates = p->list;
    p->d.score = p->list[0].score;
    p->d.margin = p->list[0].score - p->list[1].score;
    return &p->d;
}

/* Seed 001's first eleven decisions. */
TEST(the_seeds_tables)
{
    static const struct {
        struct str agent;
        int n, overridden;
        double confidence;
        int64_t chars;
    } rows[] = {
        {{"Engineer", 8}, 6, 1, .460, 1777},
        {{"Researcher", 10}, 2, 1, .565, 1114},
        {{"Automation Operator", 19}, 2, 0, .327, 882},
        {{"Content Writer", 14}, 1, 0, .612, 605},
    };
    struct analytics *a = analytics_new(.05, 0, seed);
    const struct analytics_agent *agents;
    struct analytics_summary s;
    size_t n;

    CHECK(a);
    for (size_t i = 0; i < 4; i++)
        for (int k = 0; k < rows[i].n; k++)
            CHECK(analytics_add(a, &(struct decision){
                                       .at_ms = 5 + k,
                                       .layer = LAYER_SEMANTIC,
                                       .agent = rows[i].agent,
                                       .score = rows[i].confidence,
                                       .overridden_to = k < rows[i].overridden
                                                            ? STR("another")
                                                            : STR(""),
                                       .answer_chars = rows[i].chars,
                                       .latency_ms = 40}) == OK);
    s = analytics_summary(a);
    CHECK_INT(s.all.n, 11);
    CHECK_INT(s.all.n_routed, 11);
    CHECK(fabs(figures_confidence(&s.all) - 0.469) < 0.0005);
    CHECK(fabs(figures_override_rate(&s.all) - 2.0 / 11) < 1e-12);
    CHECK(figures_error_rate(&s.all) == 0);
    CHECK_INT((int64_t)figures_answer_chars(&s.all), 1387);
    CHECK_INT(s.first_ms, 5);
    CHECK_INT(s.last_ms, 10);
    agents = analytics_agents(a, &n);
    CHECK_INT(n, 4);
    CHECK_STR(agents[0].agent, "Engineer");
    CHECK_STR(agents[1].agent, "Automation Operator"); /* of equals by name */
    CHECK_STR(agents[3].agent, "Content Writer");
    CHECK_INT(agents[0].f.overridden, 1);
    analytics_free(a);
}

static void add_layer(struct analytics *a, enum layer layer, struct decision d)
{
    d.layer = layer;
    d.at_ms = 1;
    d.agent = layer == LAYER_NONE ? STR("") : STR("engineer");
    CHECK(analytics_add(a, &d) == OK);
}

/* One first message, and nine that continued with the agent or named it: they
 * are counted, but say nothing about routing. */
TEST(figures_are_of_what_the_router_decided)
{
    static const struct decision good = {
        .score = .5, .margin = .2, .answer_chars = 1000, .latency_ms = 3000};
    static const struct decision bad = {.answer_chars = 10,
                                        .latency_ms = 90000,
                                        .overridden_to = STR("writer"),
                                        .verdict = VERDICT_NEGATIVE,
                                        .error_code = STR("timeout")};
    static const struct decision refused = {.answer_chars = -1,
                                            .latency_ms = -1};
    static const struct decision unknown = {
        .executor = STR("missing"), .answer_chars = -1, .latency_ms = -1};
    struct analytics *a = analytics_new(.05, 1000, seed);
    struct decision unheard = unknown;
    const struct analytics_agent *agents;
    const struct analytics_time *times;
    struct figures f;
    size_t n;

    CHECK(a);
    add_layer(a, LAYER_SEMANTIC, good);
    for (int i = 0; i < 3; i++) {
        add_layer(a, LAYER_STICKY, bad);
        add_layer(a, LAYER_EXPLICIT, bad);
        add_layer(a, LAYER_PREFIX, bad);
    }
    add_layer(a, LAYER_BINDING, bad);
    f = analytics_summary(a).all;
    CHECK_INT(f.n, 11);
    CHECK_INT(f.n_routed, 1);
    CHECK_INT(f.overridden, 0);
    CHECK(figures_override_rate(&f) == 0 && figures_error_rate(&f) == 0);
    CHECK(figures_answer_chars(&f) == 1000 && figures_latency_ms(&f) == 3000);
    CHECK_INT(f.verdicts[VERDICT_OPEN], 1);
    CHECK_INT(f.verdicts[VERDICT_NEGATIVE], 0);
    agents = analytics_agents(a, &n);
    CHECK(agents && n == 1 && !memcmp(&agents[0].f, &f, sizeof(f)));
    times = analytics_times(a, &n);
    CHECK(times && n == 1 && !memcmp(&times[0].f, &f, sizeof(f)));
    /* The router's other layers: a model, the default, and a rejection. */
    add_layer(a, LAYER_INTENT, bad);
    add_layer(a, LAYER_DEFAULT, good);
    add_layer(a, LAYER_NONE, refused);
    f = analytics_summary(a).all;
    CHECK_INT(f.n, 14);
    CHECK_INT(f.n_routed, 4);
    CHECK(figures_override_rate(&f) == .25);
    CHECK_INT(f.n_ended, 3); /* what was refused never is over */
    CHECK(fabs(figures_error_rate(&f) - 1.0 / 3) < 1e-12);
    CHECK(fabs(figures_answer_chars(&f) - 670) < 1e-9);
    CHECK(figures_confidence(&f) == .5); /* scores are the semantic layer's */
    /* Who names an agent that is not there asked for no routing; but where
     * names are not looked at they did. */
    add_layer(a, LAYER_NONE, unknown);
    f = analytics_summary(a).all;
    CHECK_INT(f.n, 15);
    CHECK_INT(f.n_routed, 4);
    CHECK(figures_override_rate(&f) == .25);
    unheard.rules.layers_off = 1u << LAYER_EXPLICIT;
    add_layer(a, LAYER_NONE, unheard);
    CHECK_INT(analytics_summary(a).all.n_routed, 5);
    analytics_free(a);
}

TEST(what_was_refused_is_a_gap_and_no_agents)
{
    struct analytics *a = analytics_new(.05, 0, seed);
    const struct analytics_gap *gaps;
    struct pair p;
    struct decision *d;
    size_t n;

    CHECK(a);
    d = pair(&p, (struct signals){.semantic = .2F}, (struct signals){0});
    d->layer = LAYER_NONE;
    d->agent = STR("");
    d->margin = d->score = 0;
    d->band = BAND_OUT_OF_SCOPE;
    CHECK(analytics_add(a, d) == OK);
    /* There were no candidates. */
    d->text = STR("is anyone there");
    d->n_candidates = 0;
    CHECK(analytics_add(a, d) == OK);
    CHECK_INT(analytics_summary(a).by_layer[LAYER_NONE], 2);
    gaps = analytics_gaps(a, &n);
    CHECK_INT(n, 1);
    CHECK_INT(gaps[0].n, 2);
    CHECK_INT(gaps[0].n_refused, 2);
    CHECK_INT(gaps[0].n_default, 0);
    CHECK_INT(gaps[0].n_compared, 1);
    CHECK_STR(gaps[0].nearest, "engineer");
    CHECK_INT(gaps[0].n_samples, 2);
    CHECK(analytics_agents(a, &n) && n == 0);
    CHECK(analytics_types(a, &n) && n == 0);
    analytics_free(a);
}

/* With automatic cutoffs the band decides: a score and a floor are on different
 * scales. */
TEST(what_is_confident_is_no_gap_whatever_its_score)
{
    struct analytics *a = analytics_new(.05, 0, seed);
    struct pair p;
    struct decision *d;
    size_t n;

    CHECK(a);
    d = pair(&p, (struct signals){.semantic = .2F}, (struct signals){0});
    d->rules.is_auto = true;
    d->band = BAND_CONFIDENT;
    CHECK(analytics_add(a, d) == OK);
    CHECK(analytics_gaps(a, &n) && n == 0);
    d->band = BAND_UNSURE;
    CHECK(analytics_add(a, d) == OK);
    CHECK(analytics_gaps(a, &n) && n == 1);
    analytics_free(a);
}

/* The results without each signal: unchanged, except for one. */
static void add_but(struct analytics *a, const struct decision *d,
                    enum signal but, struct decision_other other)
{
    struct decision_other without[N_SIGNALS];

    for (int i = 0; i < N_SIGNALS; i++)
        without[i] = (struct decision_other){true, d->band, d->agent};
    without[but] = other;
    CHECK(analytics_add(a, d) == OK);
    analytics_add_without(a, d, without);
}

static const struct decision_other to_writer = {
    true, BAND_CONFIDENT, {"writer", 6}};
static const struct decision_other to_none = {.is_known = true,
                                              .band = BAND_OUT_OF_SCOPE};
static const struct decision_other not_known = {.is_known = false};

TEST(what_each_signal_is_worth)
{
    struct analytics *a = analytics_new(.05, 0, seed);
    const struct decision_other unsure = {true, BAND_UNSURE, {"engineer", 8}};
    struct analytics_signal out[N_SIGNALS];
    struct pair p;
    struct decision *d = pair(&p, (struct signals){.semantic = .6F},
                              (struct signals){.semantic = .5F});

    CHECK(a);
    d->band = BAND_CONFIDENT;
    /* Only the keyword puts the first in front, and that was wrong. */
    d->overridden_to = STR("writer");
    add_but(a, d, SIGNAL_KEYWORD, to_writer);
    d->overridden_to = STR("");
    /* Without its meaning no agent gets it, and it was right. */
    d->verdict = VERDICT_POSITIVE;
    add_but(a, d, SIGNAL_SEMANTIC, to_none);
    d->verdict = VERDICT_OPEN;
    /* The same agent gets it, but is no longer trusted. */
    add_but(a, d, SIGNAL_RECENCY, unsure);
    /* It was not trusted before either. */
    d->band = BAND_UNSURE;
    add_but(a, d, SIGNAL_RECENCY, unsure);
    /* A record older than bands, and one with an unknown result. */
    d->band = BAND_NOT_ASKED;
    add_but(a, d, SIGNAL_PERFORMANCE, not_known);
    analytics_signals(a, out);
    CHECK_INT(out[SIGNAL_KEYWORD].n, 5);
    CHECK_INT(out[SIGNAL_KEYWORD].changed, 1);
    CHECK_INT(out[SIGNAL_KEYWORD].changed_bad, 1);
    CHECK_INT(out[SIGNAL_KEYWORD].changed_good, 0);
    CHECK_INT(out[SIGNAL_SEMANTIC].changed, 1);
    CHECK_INT(out[SIGNAL_SEMANTIC].changed_good, 1);
    CHECK_INT(out[SIGNAL_RECENCY].changed, 1);
    CHECK_INT(out[SIGNAL_PERFORMANCE].n, 4);
    CHECK_INT(out[SIGNAL_PERFORMANCE].changed, 0);
    /* Decisions of other layers have no signals to lose. */
    d->layer = LAYER_DEFAULT;
    add_but(a, d, SIGNAL_PERFORMANCE, to_writer);
    analytics_signals(a, out);
    CHECK_INT(out[SIGNAL_PERFORMANCE].n, 4);
    analytics_free(a);
}

TEST(keywords_that_fire_and_lose)
{
    struct analytics *a = analytics_new(.05, 0, seed);
    const struct analytics_keyword *rows;
    struct pair p;
    struct decision *d;
    size_t n;

    CHECK(a);
    d = pair(&p, (struct signals){.semantic = .3F, .keyword = 1},
             (struct signals){.semantic = .5F});
    p.list[0].keyword = STR("write");
    d->overridden_to = STR("writer");
    add_but(a, d, SIGNAL_KEYWORD, to_writer);
    d->overridden_to = STR("");
    d->verdict = VERDICT_POSITIVE;
    add_but(a, d, SIGNAL_KEYWORD, to_none);
    add_but(a, d, SIGNAL_SEMANTIC, to_none);
    add_but(a, d, SIGNAL_KEYWORD, not_known);
    d = pair(&p, (struct signals){.semantic = .9F},
             (struct signals){.semantic = .1F, .keyword = 1});
    p.list[1].keyword = STR("data");
    add_but(a, d, SIGNAL_KEYWORD, to_none);
    rows = analytics_keywords(a, &n);
    CHECK_INT(n, 2);
    CHECK_STR(rows[0].keyword, "write"); /* the worst first */
    CHECK_STR(rows[0].agent, "engineer");
    CHECK_INT(rows[0].fired, 4);
    CHECK_INT(rows[0].won, 4);
    CHECK_INT(rows[0].pulled, 2);
    CHECK_INT(rows[0].wrong, 1);
    CHECK_INT(rows[0].right, 3);
    CHECK_STR(rows[1].keyword, "data");
    CHECK_INT(rows[1].fired, 1);
    CHECK_INT(rows[1].won, 0);
    CHECK_INT(rows[1].pulled, 0);
    analytics_free(a);
}

TEST(gaps_are_what_nobody_is_sure_of)
{
    struct analytics *a = analytics_new(.05, 0, seed);
    const struct analytics_gap *gaps;
    struct pair p;
    struct decision *d;
    size_t n;

    CHECK(a);
    d = pair(&p, (struct signals){.semantic = .9F},
             (struct signals){.semantic = .1F});
    CHECK(analytics_add(a, d) == OK); /* sure */
    d = pair(&p, (struct signals){.semantic = .9F},
             (struct signals){.semantic = .88F});
    d->type = 7;
    CHECK(analytics_add(a, d) == OK); /* close to the second */
    CHECK(analytics_add(a, d) == OK); /* the same words again */
    d = pair(&p, (struct signals){.semantic = .2F},
             (struct signals){.semantic = .1F});
    d->type = 7;
    d->layer = LAYER_DEFAULT;
    d->agent = STR("main");
    d->text = STR("something else");
    CHECK(analytics_add(a, d) == OK);
    gaps = analytics_gaps(a, &n);
    CHECK_INT(n, 1);
    CHECK_INT(gaps[0].type, 7);
    CHECK_INT(gaps[0].n, 3);
    CHECK_INT(gaps[0].n_default, 1);
    CHECK_INT(gaps[0].n_samples, 2);
    CHECK_STR(gaps[0].samples[0], "build me a model");
    CHECK_STR(gaps[0].samples[1], "something else");
    CHECK_STR(gaps[0].nearest, "engineer");
    analytics_free(a);
}

TEST(nothing_divides_by_nothing)
{
    struct analytics *a = analytics_new(.05, 0, seed);
    struct analytics_summary s;
    size_t n;

    CHECK(a);
    s = analytics_summary(a);
    CHECK(isnan(figures_confidence(&s.all)) && isnan(figures_margin(&s.all)));
    CHECK(isnan(figures_latency_ms(&s.all)));
    CHECK(analytics_agents(a, &n) && n == 0);
    CHECK(analytics_types(a, &n) && n == 0);
    analytics_free(a);
}

/* Above the limit rows are counted, not kept. */
TEST(tables_have_a_limit)
{
    struct analytics *a = analytics_new(.05, 0, seed);
    size_t n;

    CHECK(a);
    for (int i = 0; i < ANALYTICS_ROWS_MAX + 3; i++) {
        char name[32];

        snprintf(name, sizeof(name), "agent-%d", i);
        CHECK(analytics_add(a, &(struct decision){.layer = LAYER_EXPLICIT,
                                                  .agent = str_of(name)}) ==
              OK);
    }
    CHECK(analytics_agents(a, &n));
    CHECK_INT(n, ANALYTICS_ROWS_MAX);
    CHECK_INT(analytics_summary(a).left_out, 3);
    CHECK_INT(analytics_summary(a).all.n, ANALYTICS_ROWS_MAX + 3);
    analytics_free(a);
}

TEST(analytics_survive_every_fault)
{
    bool has_fired = true;

    for (long nth = 1; has_fired; nth++) {
        const struct decision d = {.layer = LAYER_STICKY, .agent = STR("x")};
        struct analytics *a;
        size_t n;

        fault_arm(nth);
        a = analytics_new(.05, 0, seed);
        if (a && analytics_add(a, &d) == OK) {
            const struct analytics_agent *rows = analytics_agents(a, &n);

            CHECK(!rows || n == 1);
        }
        analytics_free(a);
        has_fired = fault_fired();
        fault_arm(0);
        CHECK(has_fired || nth > 1);
    }
}

TEST(no_name_is_lost_for_want_of_memory_without_a_word)
{
    struct pair p;
    struct decision *d =
        pair(&p, (struct signals){.semantic = .3F, .keyword = 1},
             (struct signals){.semantic = .29F});
    long nth = 0;
    bool has_fired = true;

    p.list[0].keyword = STR("model");
    while (has_fired) {
        struct analytics *a = analytics_new(.05, 0, seed);
        const struct analytics_agent *agents;
        enum err e;
        size_t n;

        CHECK(a);
        fault_arm_at("analytics.keep", ++nth);
        e = analytics_add(a, d);
        has_fired = fault_fired();
        fault_arm(0);
        CHECK(e == (has_fired ? ERR_NOMEM : OK));
        agents = analytics_agents(a, &n);
        CHECK(has_fired || (n == 1 && agents[0].agent.n));
        analytics_free(a);
    }
    CHECK(nth > 4);
}

TEST(times_are_whole_spans_the_earliest_first)
{
    static const int64_t at[] = {7199, 3600, 0, 3599, 86400 * 20000};
    struct analytics *a = analytics_new(.05, 3600, seed);
    const struct analytics_time *rows;
    size_t n;

    CHECK(a);
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
        CHECK(analytics_add(a, &(struct decision){.at_ms = at[i],
                                                  .layer = LAYER_SEMANTIC,
                                                  .agent = STR("x"),
                                                  .score = .25 * (double)i,
                                                  .answer_chars = -1,
                                                  .latency_ms = (int64_t)i}) ==
              OK);
    rows = analytics_times(a, &n);
    CHECK(rows);
    CHECK_INT(n, 3);
    CHECK_INT(rows[0].from_ms, 0);
    CHECK_INT(rows[0].f.n, 2);
    CHECK(figures_confidence(&rows[0].f) == .625);
    CHECK(figures_latency_ms(&rows[0].f) == 2.5);
    CHECK_INT(rows[1].from_ms, 3600);
    CHECK_INT(rows[1].f.n, 2);
    CHECK_INT(rows[2].from_ms, 86400 * 20000);
    analytics_free(a);
}
