/* When the table's choice is enough, and when the transformer is asked. */
#include "test/lib/score_stage.h"

#include "base/fault.h"

static struct score_stage s;

/* Cards whose unit is 0.2, by a quick vector: the cutoff of two is 1.28 units
 * (0.256 of `semantic`), and half a unit of lead counts towards it. */
static void by_table(float ann, float bob)
{
    score_stage_init(&s);
    s.settings.is_auto = true;
    s.settings.text_blend = 0;
    s.settings.second_margin = .3;
    s.m->known.tier = TIER_TABLE;
    s.m->known.may_ask_full = true;
    score_stage_add(&s, "ann", "")->signals.cosine = ann;
    score_stage_add(&s, "bob", "")->signals.cosine = bob;
    for (size_t i = 0; i < 2; i++) {
        s.candidates[i].level = (struct card_level){0, .2F};
        s.candidates[i].is_trusted = true;
    }
}

static bool wants_full(void)
{
    enum err e = score_stage_ask(&s);

    CHECK(e == OK || e == ERR_NO_ROUTE);
    return !e && s.m->choice.needs == NEEDS_FULL_VECTOR;
}

TEST(a_clear_choice_is_the_tables_and_any_other_is_asked_about)
{
    static const struct {
        float ann, bob;
        bool is_asked;
    } rows[] = {
        {.6F, .1F, false}, /* three units and a lead of more than a half */
        {.6F, .58F, false}, {.15F, .1F, true}, /* unsure */
        {.01F, 0, true},                       /* out of scope */
        {.26F, .24F, true},                    /* confident, and not clear */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        by_table(rows[i].ann, rows[i].bob);
        CHECK_INT(wants_full(), rows[i].is_asked);
        CHECK(rows[i].is_asked == !s.m->choice.agent.n);
        score_stage_fini(&s);
    }
}

/* By hand: with two cards reach is 0.63 + 0.112 ln(2)^2 + 0.7, which is 1.3838
 * units or 0.27676; a lead of 0.02 counts in full. So 0.257 is confident, and
 * with another 0.3 units, 0.06, it takes 0.317. */
TEST(the_margin_is_in_units_of_the_card)
{
    static const struct {
        float ann;
        double margin;
        bool is_asked;
    } rows[] = {
        {.255F, 0, true},   {.258F, 0, false}, {.315F, .3, true},
        {.318F, .3, false}, {.64F, 2, true},   {.67F, 2, false},
        {1, 10, true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        by_table(rows[i].ann, rows[i].ann - .02F);
        s.settings.second_margin = rows[i].margin;
        if (wants_full() != rows[i].is_asked)
            T_FAIL("%zu: %g", i, (double)rows[i].ann);
        score_stage_fini(&s);
    }
}

TEST(a_threshold_that_is_a_number_has_the_margin_too)
{
    by_table(.6F, .1F); /* scores .46 and .16 */
    s.settings.is_auto = false;
    s.settings.threshold = .39;
    CHECK(!wants_full());
    CHECK_STR(s.m->choice.agent, "ann");
    s.settings.threshold = .41; /* and .06 are .47 */
    CHECK(wants_full());
    s.settings.second_margin = 0;
    CHECK(!wants_full());
    score_stage_fini(&s);
}

TEST(what_the_transformer_said_or_did_not_say_is_asked_for_once)
{
    by_table(.15F, .1F);
    CHECK(wants_full());
    s.m->known.tier = TIER_TRANSFORMER;
    s.m->known.may_ask_full = false;
    CHECK(!wants_full());
    CHECK(s.m->choice.is_unsure);
    CHECK(!strstr(arena_strdup(&s.m->arena, s.m->choice.reason), "table"));
    /* The transformer was not asked: the table's choice stands, and says so. */
    s.m->known.tier = TIER_TABLE;
    why_err(&s.m->known.no_full, OK,
            "the transformer did not answer in time, so the table decided");
    CHECK(!wants_full());
    CHECK_STR(s.m->choice.agent, "ann");
    CHECK(str_starts(s.m->choice.reason,
                     STR("the transformer did not answer in time, so the table "
                         "decided; it came nearest of 2")));
    s.settings.unsure = UNSURE_REFUSE;
    CHECK(score_stage_ask(&s) == ERR_NO_ROUTE);
    CHECK(strstr(s.m->why.text, "did not answer in time"));
    score_stage_fini(&s);
}

/* A model of one tier, or no vector at all. */
TEST(without_a_second_tier_nothing_is_asked_for)
{
    by_table(.15F, .1F);
    s.m->known.tier = TIER_NONE;
    s.m->known.may_ask_full = false;
    CHECK(!wants_full());
    CHECK(s.m->choice.is_unsure);
    score_stage_fini(&s);
}

TEST(a_correction_of_this_very_text_needs_no_transformer)
{
    by_table(.15F, .1F);
    s.candidates[1].is_taught = true;
    CHECK(!wants_full());
    CHECK_STR(s.m->choice.agent, "bob");
    s.candidates[1].is_taught = false; /* the control */
    CHECK(wants_full());
    score_stage_fini(&s);
}

TEST(the_only_agent_gets_it_without_the_transformer)
{
    static const struct skill two[2];

    by_table(.01F, 0);
    s.m->known.n_candidates = 1;
    CHECK(!wants_full());
    CHECK_STR(s.m->choice.agent, "ann");
    s.list[0].skills = two; /* which of them is open */
    s.list[0].n_skills = 2;
    CHECK(wants_full());
    s.list[0].n_skills = 1;
    CHECK(!wants_full());
    s.candidates[0].is_trusted = false; /* a stranger does not */
    CHECK(wants_full());
    score_stage_fini(&s);
}

TEST(small_talk_needs_no_transformer)
{
    by_table(.15F, .1F);
    s.m->call.text = STR("ok thanks");
    CHECK(!wants_full());
    CHECK_INT(s.m->choice.band, BAND_OUT_OF_SCOPE);
    s.m->call.text = STR("translate this for me");
    CHECK(wants_full());
    score_stage_fini(&s);
}

TEST(where_no_vector_counts_none_is_asked_for)
{
    by_table(.15F, .1F);
    s.settings.weights.semantic = 0;
    CHECK(!wants_full());
    s.settings.weights.semantic = .6;
    CHECK(wants_full());
    s.m->known.n_candidates = 0;
    CHECK(!wants_full());
    score_stage_fini(&s);
}

/* The sender named an agent, or has a conversation with one. */
TEST(layers_before_the_semantic_one_cost_no_vector)
{
    by_table(.15F, .1F);
    s.m->call.executor = STR("bob");
    CHECK(!wants_full());
    CHECK_STR(s.m->choice.agent, "bob");
    CHECK(!s.m->choice.n_candidates);
    s.m->call.executor = STR("");
    s.m->call.text = STR("/ann do it");
    CHECK(!wants_full());
    CHECK_INT(s.m->choice.layer, LAYER_PREFIX);
    s.m->call.text = STR("do it");
    s.m->call.conversation_id = STR("c-1");
    s.m->known.has_conversation = true;
    s.m->known.stuck_to = STR("bob");
    CHECK(!wants_full());
    CHECK_INT(s.m->choice.layer, LAYER_STICKY);
    score_stage_fini(&s);
}

/* The classifier gets the better list, and is not asked if the transformer
 * settles the choice. */
TEST(the_classifier_is_asked_after_the_transformer)
{
    by_table(.6F, .59F); /* clear, but two are nearly as good */
    s.settings.intent.is_on = true;
    s.settings.intent.when = INTENT_AMBIGUOUS;
    CHECK(wants_full());
    s.m->known.tier = TIER_TRANSFORMER;
    s.m->known.may_ask_full = false;
    CHECK(score_stage_ask(&s) == OK);
    CHECK_INT(s.m->choice.needs, NEEDS_INTENT);
    s.candidates[1].signals.cosine = .1F;
    CHECK(score_stage_ask(&s) == OK);
    CHECK_INT(s.m->choice.needs, NEEDS_NOTHING);
    CHECK_INT(s.m->choice.layer, LAYER_SEMANTIC);
    score_stage_fini(&s);

    by_table(.6F, .1F);
    s.settings.intent.is_on = true; /* always */
    CHECK(score_stage_ask(&s) == OK);
    CHECK_INT(s.m->choice.needs, NEEDS_INTENT);
    s.candidates[0].signals.cosine = .2F;
    CHECK(wants_full());
    score_stage_fini(&s);
}

/* The record. */

static struct decision decided(struct choose_view *v)
{
    struct decision d;

    *v = (struct choose_view){
        .settings = &s.settings, .agents = &s.all, .eyes = &s.eyes};
    choose_decision(v, s.m, &d);
    return d;
}

static void set_alpha(void *ctx, struct choose_settings *own)
{
    own->alpha = *(double *)ctx;
}

/* Also with stricter settings, with which a server would ask the
 * transformer. */
TEST(a_record_of_the_table_is_decided_by_what_the_table_said)
{
    double stricter = .002;
    struct choose_view v;
    struct decision d, now;
    struct arena a;

    by_table(.4F, .1F);
    CHECK(!wants_full());
    d = decided(&v);
    CHECK_INT(d.tier, TIER_TABLE);
    CHECK(!d.tier_note.n && d.rules.second_margin == .3);
    arena_init(&a, 1 << 20);
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &now), OK);
    CHECK(str_eq(now.reason, d.reason) && now.tier == TIER_TABLE);
    CHECK_INT(choose_again_but(set_alpha, &stricter, &d, &a, &now), OK);
    CHECK(now.is_unsure && str_eq(now.agent, d.agent));
    /* The record says that the transformer was not asked. */
    d.tier_note = STR("the transformer was late, so the table decided");
    CHECK_INT(choose_again_but(set_alpha, &stricter, &d, &a, &now), OK);
    CHECK(now.is_unsure && str_starts(now.reason, d.tier_note));
    arena_fini(&a);
    score_stage_fini(&s);
}

TEST(names_of_tiers)
{
    CHECK_STR(tier_name(TIER_TABLE), "table");
    CHECK_STR(tier_name(TIER_TRANSFORMER), "transformer");
    CHECK(!tier_name(TIER_NONE).n);
    CHECK(tier_of(STR("table")) == TIER_TABLE);
    CHECK(tier_of(STR("transformer")) == TIER_TRANSFORMER);
    CHECK(tier_of(STR("")) == TIER_NONE && tier_of(STR("x")) == TIER_NONE);
}
