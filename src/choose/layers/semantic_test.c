/* The score, what `semantic` is made of, the threshold, exploring, and the
 * reason. */
#include "test/lib/score_stage.h"

#include <math.h>

static struct score_stage s;

static bool is_near(double a, double b)
{
    return fabs(a - b) < 5e-7;
}

static bool says(struct str reason, const char *words)
{
    if (str_eq(reason, str_of(words)))
        return true;
    fprintf(stderr, "wanted: %s\ngot:    %.*s\n", words, STR_ARG(reason));
    return false;
}

/* Seed 001's first day of live traffic. */
static void seed_001(void)
{
    score_stage_init(&s);
    score_stage_near(&s, "automation-operator", "", .198F);
    score_stage_near(&s, "content-writer", "", .241F);
    score_stage_near(&s, "engineer", "", .362F)->keyword = STR("code");
    score_stage_near(&s, "researcher", "", .289F);
}

TEST(the_table_of_seed_001_to_three_decimals)
{
    static const struct {
        const char *agent;
        long score; /* in thousandths */
    } table[] = {{"engineer", 467},
                 {"researcher", 273},
                 {"content-writer", 245},
                 {"automation-operator", 219}};

    seed_001();
    CHECK(score_stage_ask(&s) == OK);
    CHECK_INT(s.m->choice.layer, LAYER_SEMANTIC);
    CHECK_STR(s.m->choice.agent, "engineer");
    CHECK_INT(s.m->choice.n_candidates, 4);
    CHECK_INT(s.m->choice.n_considered, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct candidate *c = &s.m->choice.candidates[i];

        CHECK_STR(c->agent, table[i].agent);
        CHECK_INT(lround(c->score * 1000), table[i].score);
    }
    CHECK(is_near(s.m->choice.score, .4672) &&
          is_near(s.m->choice.margin, .4672 - .2734));
    CHECK(says(s.m->choice.reason,
               "its score of 0.467 is the best of 4, 0.194 ahead of "
               "researcher, by meaning (0.362) and its keyword \"code\""));
    score_stage_fini(&s);
}

TEST(a_keyword_that_does_not_count_is_no_reason)
{
    seed_001();
    s.settings.weights.keyword = 0;
    CHECK(score_stage_ask(&s) == OK);
    CHECK_STR(s.m->choice.agent, "engineer");
    CHECK(says(s.m->choice.reason,
               "its score of 0.317 is the best of 4, 0.044 ahead of "
               "researcher, by meaning (0.362)"));
    score_stage_fini(&s);
}

TEST(semantic_is_a_blend_that_stays_within_its_scale)
{
    struct choose_settings d = choose_defaults();
    const struct card_level none = {-1, -1}, usual = {.1F, .3F};
    static const struct {
        struct signals s;
        double semantic;
    } rows[] = {
        {{.cosine = .4F, .text = .8F}, .5},
        {{.cosine = .4F}, .3},
        {{.cosine = -1, .text = .8F}, .8}, /* by words alone */
        {{.cosine = .4F, .learned = 1}, .5},
        {{.cosine = .4F, .learned = -1}, .1},
        {{.cosine = .4F, .discount = .1F}, .2},
        {{.cosine = .4F, .learned = -9}, 0},
        {{.cosine = .4F, .learned = 9}, 1},
        {{.cosine = 1, .text = 1}, 1},
        {{.cosine = 0}, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CHECK(is_near((double)choose_semantic(&d, &rows[i].s, &none),
                      rows[i].semantic));
    /* A card's median is subtracted if its level is known. */
    CHECK(is_near((double)choose_semantic(&d, &rows[1].s, &usual), .225));
    d.is_centred = false;
    CHECK(is_near((double)choose_semantic(&d, &rows[1].s, &usual), .3));
    d.text_blend = 0;
    CHECK(is_near((double)choose_semantic(&d, &rows[0].s, &none), .4));
    d.text_blend = 1;
    CHECK(is_near((double)choose_semantic(&d, &rows[0].s, &none), .8));
}

TEST(below_the_threshold_nobody_is_chosen_but_the_nearest_are_known)
{
    score_stage_init(&s);
    score_stage_near(&s, "anna", "", .3F); /* .28 */
    score_stage_near(&s, "ben", "", .2F);
    CHECK(score_stage_ask(&s) == ERR_NO_ROUTE);
    CHECK(!s.m->choice.agent.n && s.m->choice.layer == LAYER_NONE);
    CHECK_INT(s.m->choice.n_candidates, 2);
    CHECK_STR(s.m->choice.candidates[0].agent, "anna");
    s.settings.threshold = s.m->choice.candidates[0].score;
    CHECK(score_stage_ask(&s) == OK); /* just that is enough */
    CHECK_STR(s.m->choice.agent, "anna");
    score_stage_fini(&s);
}

TEST(nobody_there_is_no_route)
{
    score_stage_init(&s);
    CHECK(score_stage_ask(&s) == ERR_NO_ROUTE);
    CHECK(s.m->choice.n_candidates == 0 && s.m->choice.n_considered == 0);
    score_stage_fini(&s);
}

TEST(the_signals_are_asked_for_when_they_are_needed)
{
    seed_001();
    s.m->known.has_candidates = false;
    CHECK(score_stage_ask(&s) == OK);
    CHECK_INT(s.m->choice.needs, NEEDS_CANDIDATES);
    CHECK(!s.m->choice.agent.n);
    score_stage_fini(&s);
}

TEST(the_reason_names_what_speaks_for_it)
{
    struct candidate *c;

    score_stage_init(&s);
    c = score_stage_near(&s, "anna", "", .5F);
    CHECK(score_stage_ask(&s) == OK);
    CHECK(says(s.m->choice.reason,
               "it is the only one there is, by meaning (0.500): 0.400"));
    c->signals = (struct signals){.cosine = -1,
                                  .text = .5F,
                                  .learned = 1,
                                  .performance = .8F,
                                  .recency = .9F};
    score_stage_near(&s, "ben", "", .1F);
    CHECK(score_stage_ask(&s) == OK);
    CHECK(says(s.m->choice.reason,
               "its score of 0.625 is the best of 2, 0.465 ahead of ben, by "
               "its words (0.700), what it was right for before, how well it "
               "has done and a success a short while ago"));
    score_stage_fini(&s);
}

/* The longest reason is cut and overruns nothing. */
TEST(a_reason_has_its_limit)
{
    static char names[2][AGENT_NAME_MAX + 1], keyword[AGENT_KEYWORD_MAX + 1];
    struct candidate *c;

    memset(names[0], 'a', AGENT_NAME_MAX);
    memset(names[1], 'b', AGENT_NAME_MAX);
    memset(keyword, 'k', AGENT_KEYWORD_MAX);
    score_stage_init(&s);
    c = score_stage_near(&s, names[0], "", .5F);
    c->keyword = str_of(keyword);
    c->signals.learned = c->signals.performance = c->signals.recency = 1;
    score_stage_near(&s, names[1], "", .5F);
    CHECK(score_stage_ask(&s) == OK);
    CHECK(s.m->choice.reason.n <= DECISION_REASON_MAX);
    score_stage_fini(&s);
}

/* Exploring. */

static void three_close_ones(void)
{
    score_stage_init(&s);
    score_stage_near(&s, "anna", "", .50F); /* .40 */
    score_stage_near(&s, "ben", "", .46F);  /* .376 */
    score_stage_near(&s, "cleo", "", .42F); /* .352 */
    score_stage_near(&s, "dora", "", .41F); /* .346: not close any more */
    s.settings.explore = .1;
}

TEST(now_and_then_a_close_one_gets_it)
{
    three_close_ones();
    s.m->known.chance = .1; /* not now */
    CHECK(score_stage_ask(&s) == OK);
    CHECK_STR(s.m->choice.agent, "anna");
    CHECK(!s.m->choice.is_explored);
    s.m->known.chance = 0;
    CHECK(score_stage_ask(&s) == OK);
    CHECK_STR(s.m->choice.agent, "ben");
    CHECK(s.m->choice.is_explored && is_near(s.m->choice.score, .376));
    CHECK(is_near(s.m->choice.margin, .024));
    CHECK(says(s.m->choice.reason,
               "to see how it does: its score of 0.376 is only 0.024 behind "
               "that of anna, the best of 4"));
    s.m->known.chance = .0499;
    CHECK(score_stage_ask(&s) == OK);
    CHECK_STR(s.m->choice.agent, "ben");
    s.m->known.chance = .0999;
    CHECK(score_stage_ask(&s) == OK);
    CHECK_STR(s.m->choice.agent, "cleo");
    CHECK_STR(s.m->choice.candidates[0].agent, "anna");
    score_stage_fini(&s);
}

TEST(nobody_explores_unless_told_to_or_who_would_not_be_chosen_at_all)
{
    three_close_ones();
    s.settings.explore = 0;
    CHECK(score_stage_ask(&s) == OK);
    CHECK_STR(s.m->choice.agent, "anna");
    s.settings.explore = 1;
    s.settings.threshold = .39; /* the others are below it */
    CHECK(score_stage_ask(&s) == OK);
    CHECK_STR(s.m->choice.agent, "anna");
    CHECK(!s.m->choice.is_explored);
    s.settings.threshold = .3;
    s.settings.close_margin = 0;
    CHECK(score_stage_ask(&s) == OK);
    CHECK_STR(s.m->choice.agent, "anna");
    score_stage_fini(&s);
}

TEST(without_a_vector_words_and_keywords_carry_the_score)
{
    struct choose_settings own = choose_defaults(), w = choose_by_words(&own);

    CHECK(w.weights.semantic == 0.375 && w.weights.keyword == 0.375);
    CHECK(w.weights.performance == own.weights.performance &&
          w.weights.recency == own.weights.recency);
    CHECK(fabs(w.weights.semantic + w.weights.keyword + w.weights.performance +
               w.weights.recency - 1) < 1e-12);
    /* A weight of zero stays zero. */
    own.weights.keyword = 0;
    CHECK(choose_by_words(&own).weights.semantic == own.weights.semantic);
    CHECK(choose_by_words(&own).weights.keyword == 0);
    own = choose_defaults();
    own.is_seed = true;
    CHECK(choose_by_words(&own).weights.semantic == own.weights.semantic);
}

/* Prices. */

static struct candidate *candidate_of(const char *agent)
{
    for (size_t i = 0; i < s.m->known.n_candidates; i++)
        if (str_eq(s.m->known.candidates[i].agent, str_of(agent)))
            return &s.m->known.candidates[i];
    T_FAIL("no agent is called %s", agent);
}

TEST(who_costs_more_than_was_agreed_comes_last_and_is_not_chosen)
{
    seed_001();
    candidate_of("engineer")->is_unpaid = true;
    candidate_of("engineer")->price_micros = 20000000;
    s.settings.threshold = .27;
    CHECK(score_stage_ask(&s) == OK);
    CHECK_STR(s.m->choice.agent, "researcher");
    CHECK_STR(s.m->choice.candidates[3].agent, "engineer");
    CHECK(s.m->choice.unpaid == &s.m->choice.candidates[3]);
    CHECK(
        says(s.m->choice.reason,
             "\"engineer\" fits better but costs 20.00, and the message names "
             "neither it nor such a price; its score of 0.273 is the best of "
             "4, 0.029 ahead of content-writer, by meaning (0.289)"));
    score_stage_fini(&s);
}

TEST(who_costs_more_and_fits_no_better_made_no_difference)
{
    seed_001();
    candidate_of("researcher")->is_unpaid = true;
    s.settings.threshold = .2;
    CHECK(score_stage_ask(&s) == OK);
    CHECK_STR(s.m->choice.agent, "engineer");
    CHECK(!s.m->choice.unpaid);
    score_stage_fini(&s);
}

TEST(where_nobody_else_fits_the_price_is_the_sender_s_to_agree_to)
{
    seed_001();
    candidate_of("engineer")->is_unpaid = true;
    candidate_of("engineer")->price_micros = 1500;
    s.settings.threshold = .4;
    CHECK_INT(score_stage_ask(&s), ERR_CEILING);
    CHECK_INT(s.m->choice.layer, LAYER_NONE);
    CHECK_STR(str_of(s.m->why.text),
              "the agent that fits, \"engineer\", is another user's and costs "
              "0.0015: name it as executor.name, or give max_cost_micros of "
              "1500 or more");
    score_stage_fini(&s);
}
