/* A record without one of its signals, and by other values of alpha, compared
 * with a replay of each. */
#include "choose/layers/choose.h"

#include <stdlib.h>

#include "base/fault.h"
#include "test/lib/decision_maker.h"

static const char *const three[] = {"cook", "coder", "lawyer"};

/* A choice between three with "auto". Each card's level is .1 to .2, and a
 * score is sure from about .11. */
static void open_auto(double cook, double coder, double lawyer)
{
    const double scores[] = {cook, coder, lawyer};

    stage_open_n(3, three);
    stage_text("please sort my invoices");
    stage.settings.is_auto = true;
    stage.settings.weights = choose_defaults().weights;
    for (size_t i = 0; i < 3; i++) {
        struct candidate *c = stage_candidate(three[i]);

        c->signals.cosine = (float)scores[i];
        c->signals.performance = 0.5F;
        c->level = (struct card_level){0.1F, 0.2F};
        c->is_trusted = true;
    }
}

static struct decision decided(void)
{
    struct decision d;
    enum err e = stage_ask();

    CHECK(e == OK || e == ERR_NO_ROUTE);
    choose_decision(&stage.view, stage.m, &d);
    return d;
}

static void without(const struct decision *d,
                    struct decision_other out[N_SIGNALS])
{
    CHECK_INT(choose_without(d, &stage.m->arena, out), OK);
}

TEST(without_meaning_no_choice_at_auto_is_confident)
{
    struct decision_other out[N_SIGNALS];
    struct decision d;

    open_auto(.2, .6, .4);
    d = decided();
    CHECK_INT(d.band, BAND_CONFIDENT);
    CHECK_STR(d.agent, "coder");
    without(&d, out);
    CHECK(out[SIGNAL_SEMANTIC].is_known);
    CHECK_INT(out[SIGNAL_SEMANTIC].band, BAND_OUT_OF_SCOPE);
    CHECK_INT(out[SIGNAL_SEMANTIC].agent.n, 0);
    /* The floors only concern meaning. */
    CHECK_INT(out[SIGNAL_PERFORMANCE].band, BAND_CONFIDENT);
    CHECK_STR(out[SIGNAL_PERFORMANCE].agent, "coder");
    CHECK_STR(out[SIGNAL_KEYWORD].agent, "coder");
    CHECK_STR(out[SIGNAL_RECENCY].agent, "coder");
    stage_close();
}

/* With a fixed threshold the score counts, and without meaning no agent reaches
 * it: as replay says. */
TEST(without_meaning_no_score_reaches_a_fixed_threshold)
{
    struct decision_other out[N_SIGNALS];
    struct choose_settings other;
    struct decision d, now;

    open_auto(.2, .6, .4);
    stage.settings.is_auto = false;
    d = decided();
    CHECK_STR(d.agent, "coder");
    without(&d, out);
    CHECK_INT(out[SIGNAL_SEMANTIC].agent.n, 0);
    CHECK_STR(out[SIGNAL_PERFORMANCE].agent, "coder");
    other = stage.settings;
    other.weights.semantic = 0;
    CHECK_INT(choose_again(&other, NULL, &d, &stage.m->arena, &now),
              ERR_NO_ROUTE);
    stage_close();
}

/* A keyword makes an unsure choice confident, but not if its weight is zero. */
TEST(without_keywords_what_they_made_sure_of_is_unsure)
{
    struct decision_other out[N_SIGNALS];
    struct decision d;

    open_auto(.04, .12, .03);
    stage_candidate("coder")->keyword = STR("invoices");
    d = decided();
    CHECK_INT(d.band, BAND_CONFIDENT);
    CHECK_STR(d.agent, "coder");
    without(&d, out);
    CHECK_INT(out[SIGNAL_KEYWORD].band, BAND_UNSURE);
    CHECK_INT(out[SIGNAL_RECENCY].band, BAND_CONFIDENT);
    stage_close();
}

/* As in choosing: otherwise a decision would seem to depend on a signal that
 * made no difference. */
TEST(of_equals_the_first_by_name_whatever_the_case)
{
    struct decision_other out[N_SIGNALS];
    struct decision d;

    stage_open("alpha", "Beta");
    stage_text("please sort my invoices");
    stage.settings.threshold = 0;
    stage_score("alpha", .5);
    stage_score("Beta", .4);
    d = decided();
    without(&d, out);
    CHECK_STR(out[SIGNAL_SEMANTIC].agent, "alpha");
    CHECK_INT(out[SIGNAL_SEMANTIC].band, BAND_CONFIDENT);
    stage_close();
}

static void leave_out(void *ctx, struct choose_settings *own)
{
    double *const weights[N_SIGNALS] = {
        &own->weights.semantic, &own->weights.performance,
        &own->weights.keyword, &own->weights.recency};

    *weights[*(int *)ctx] = 0;
}

static void set_alpha(void *ctx, struct choose_settings *own)
{
    own->alpha = decision_alphas[*(int *)ctx];
}

static void check_other(choose_change *change, int which,
                        const struct decision *d,
                        const struct decision_other *o)
{
    struct decision now = {0};
    struct arena a;
    enum err e;

    arena_init(&a, 1 << 20);
    e = choose_again_but(change, &which, d, &a, &now);
    CHECK(e == OK || e == ERR_NO_ROUTE || e == ERR_NOT_FOUND);
    CHECK_INT(o->is_known, e != ERR_NOT_FOUND);
    if (o->is_known) {
        CHECK_INT(o->band, now.band);
        CHECK(str_eq(o->agent, now.agent));
    }
    arena_fini(&a);
}

/* Levels of all kinds, with "auto". */
static bool make_auto(uint64_t number, struct decision *out)
{
    if (make_decision(number, out))
        return false;
    if (out->layer < LAYER_BINDING || !stage.m->known.has_candidates) {
        stage_close();
        return false;
    }
    stage.settings.is_auto = true;
    stage.settings.alpha = decision_alphas[by_chance(ALPHAS)];
    /* Some of many are confident whatever alpha is. */
    if (stage.m->known.n_candidates > 4)
        stage.m->known.n_candidates = 2 + by_chance(3);
    for (size_t i = 0; i < stage.m->known.n_candidates; i++) {
        struct candidate *c = &stage.candidates[i];
        float mid = 0.5F + (float)some_part() / 2;

        c->level = once_in(9)
                       ? (struct card_level){-1, -1}
                       : (struct card_level){mid, mid + (float)some_part() / 4};
        c->is_trusted = once_in(2);
        if (!once_in(20))
            c->keyword = STR("");
        c->signals.learned = 0;
    }
    if (make_choice() && stage.m->choice.layer != LAYER_NONE) {
        stage_close();
        return false;
    }
    choose_decision(&stage.view, stage.m, out);
    return true;
}

TEST(what_others_say_is_what_a_replay_of_each_says)
{
    const char *stress = getenv("STRESS");
    uint64_t n = stress && strcmp(stress, "full") == 0 ? 50 * 1000 : 5000;
    struct decision_other out[ALPHAS];
    int n_alpha = 0, n_many = 0, n_semantic = 0;
    struct decision d;
    struct arena a;

    arena_init(&a, 8 << 20);
    for (uint64_t i = 0; i < n; i++) {
        if (!make_auto(i, &d))
            continue;
        arena_reset(&a);
        if (d.layer == LAYER_SEMANTIC) {
            CHECK_INT(choose_without(&d, &a, out), OK);
            for (int k = 0; k < N_SIGNALS; k++)
                check_other(leave_out, k, &d, &out[k]);
            n_semantic++;
        }
        if (choose_has_alpha(&d)) {
            CHECK_INT(choose_alphas(&d, &a, out), OK);
            for (int k = 0; k < ALPHAS; k++)
                check_other(set_alpha, k, &d, &out[k]);
            n_many += out[0].band != out[ALPHAS - 1].band;
            n_alpha++;
        }
        stage_close();
    }
    CHECK(n_semantic > 100);
    CHECK(n_alpha > 200);
    CHECK(n_many > 50);
    arena_fini(&a);
}

TEST(with_alpha_choices_become_confident)
{
    struct decision_other out[ALPHAS];
    enum band before = BAND_OUT_OF_SCOPE;
    struct decision d;

    open_auto(.2, .17, .15);
    d = decided();
    CHECK(choose_has_alpha(&d));
    CHECK_INT(choose_alphas(&d, &stage.m->arena, out), OK);
    for (int i = 0; i < ALPHAS; i++) {
        CHECK(out[i].is_known && out[i].band <= before);
        before = out[i].band;
    }
    CHECK_INT(out[0].band, BAND_UNSURE);
    CHECK_INT(out[ALPHAS - 1].band, BAND_CONFIDENT);
    d.rules.is_auto = false;
    CHECK(!choose_has_alpha(&d));
    stage_close();
}

TEST(deciding_otherwise_survives_every_fault)
{
    struct decision_other out[ALPHAS];
    bool has_fired = true;
    struct decision d;
    struct arena a;
    enum err e;

    open_auto(.2, .6, .4);
    d = decided();
    for (long nth = 1; has_fired; nth++) {
        arena_init(&a, 1 << 20);
        fault_arm(nth);
        e = choose_without(&d, &a, out);
        if (!e)
            e = choose_alphas(&d, &a, out);
        has_fired = fault_fired();
        fault_arm(0);
        CHECK_INT(e, has_fired ? ERR_NOMEM : OK);
        arena_fini(&a);
    }
    stage_close();
}
