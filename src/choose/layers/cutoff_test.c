#include "choose/layers/choose.h"

#include <math.h>

#include "test/t.h"

static struct decision_rules rules(int64_t n)
{
    return (struct decision_rules){.is_auto = true,
                                   .is_centred = true,
                                   .alpha = 0.2,
                                   .text_blend = 0.25,
                                   .n = n};
}

static struct candidate card(float semantic)
{
    return (struct candidate){.signals = {.semantic = semantic, .cosine = .5F},
                              .level = {.05F, .15F}};
}

static enum band band_of(const struct decision_rules *r, float semantic)
{
    struct candidate c[] = {card(semantic), card(semantic)};

    choose_cutoffs(r, c, 2); /* no lead */
    return choose_band(r, &c[0]);
}

TEST(bands_follow_the_score)
{
    struct decision_rules r = rules(20);

    CHECK(band_of(&r, .5F) == BAND_CONFIDENT);
    CHECK(band_of(&r, .08F) == BAND_UNSURE);
    CHECK(band_of(&r, 0) == BAND_OUT_OF_SCOPE);
}

TEST(a_cutoff_is_reached_by_its_very_value)
{
    struct decision_rules r = rules(20);
    struct candidate c[] = {card(.2F), card(.2F)};

    choose_cutoffs(&r, c, 2);
    CHECK(band_of(&r, c[0].floor) == BAND_CONFIDENT);
    CHECK(band_of(&r, nextafterf(c[0].floor, 0)) == BAND_UNSURE);
    CHECK(band_of(&r, c[0].low) == BAND_UNSURE);
    CHECK(band_of(&r, nextafterf(c[0].low, 0)) == BAND_OUT_OF_SCOPE);
}

/* "------" resembles no reference text. */
TEST(a_card_that_says_nothing_is_sure_of_nothing)
{
    static const struct card_level rows[] = {
        {0, 0}, {.2F, .2F}, {0, .001F}, {.05F, .055F}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int is_centred = 0; is_centred < 2; is_centred++) {
            struct decision_rules r = rules(5);
            struct candidate c = card(0);

            r.is_centred = is_centred;
            c.level = rows[i];
            choose_cutoffs(&r, &c, 1);
            CHECK_INT(choose_band(&r, &c), BAND_OUT_OF_SCOPE);
            c.signals.semantic = .01F;
            choose_cutoffs(&r, &c, 1);
            CHECK(choose_band(&r, &c) != BAND_CONFIDENT || !is_centred);
        }
}

TEST(more_agents_need_more_and_beyond_a_limit_no_more)
{
    struct decision_rules few = rules(15), many = rules(150);
    struct decision_rules most = rules(400), beyond = rules(100000);
    struct candidate a = card(.2F), b = card(.2F), c = card(.2F), d = card(.2F);

    choose_cutoffs(&few, &a, 1);
    choose_cutoffs(&many, &b, 1);
    choose_cutoffs(&most, &c, 1);
    choose_cutoffs(&beyond, &d, 1);
    CHECK(a.floor < b.floor && b.floor < c.floor && a.low < b.low);
    CHECK(fabsf(c.floor - d.floor) < 1e-4F);
    CHECK(a.low < a.floor);
}

TEST(a_larger_alpha_is_surer)
{
    struct decision_rules r = rules(20);
    struct candidate a = card(.2F), b = card(.2F);

    choose_cutoffs(&r, &a, 1);
    r.alpha = 0.4;
    choose_cutoffs(&r, &b, 1);
    CHECK(b.floor < a.floor);
}

TEST(a_lead_helps_and_a_better_other_hurts)
{
    struct decision_rules r = rules(20);
    struct candidate c[] = {card(.2F), card(.2F), card(.2F)};
    float floor;

    choose_cutoffs(&r, c, 3);
    floor = c[0].floor;
    c[0].signals.semantic = floor - .01F;
    c[1].signals.semantic = c[2].signals.semantic = floor - .05F;
    choose_cutoffs(&r, c, 3);
    CHECK(choose_band(&r, &c[0]) == BAND_CONFIDENT);
    CHECK(c[1].lead < 0);
    c[1].signals.semantic = floor + .02F;
    choose_cutoffs(&r, c, 3);
    CHECK(choose_band(&r, &c[0]) == BAND_UNSURE);
    CHECK(choose_band(&r, &c[1]) == BAND_CONFIDENT);
}

TEST(small_talk_is_for_a_very_near_card_alone)
{
    struct decision_rules r = rules(5);
    struct candidate c[] = {card(.2F), card(0)};
    float usual;

    choose_cutoffs(&r, c, 2);
    usual = c[0].floor;
    r.is_small_talk = true;
    choose_cutoffs(&r, c, 2);
    CHECK(c[0].floor > usual && !(c[0].low < c[0].floor));
    c[0].signals.semantic = usual;
    choose_cutoffs(&r, c, 2);
    CHECK_INT(choose_band(&r, &c[0]), BAND_OUT_OF_SCOPE);
    c[0].signals.keyword = 1; /* the operator's own word for it */
    choose_cutoffs(&r, c, 2);
    CHECK_INT(choose_band(&r, &c[0]), BAND_CONFIDENT);
    c[0].signals.keyword = 0;
    c[0].signals.semantic = c[0].floor = 0.9F;
    choose_cutoffs(&r, c, 2);
    CHECK_INT(choose_band(&r, &c[0]), BAND_CONFIDENT);
}

/* One card full of reference texts raises its own floor and no other's. */
TEST(a_cards_level_moves_its_own_cutoffs_alone)
{
    struct decision_rules r = rules(20);
    struct candidate c[] = {card(.2F), card(.2F)},
                     hostile[] = {card(.2F), card(.2F)};

    hostile[1].level = (struct card_level){.4F, .9F};
    choose_cutoffs(&r, c, 2);
    choose_cutoffs(&r, hostile, 2);
    CHECK(hostile[0].floor == c[0].floor && hostile[0].low == c[0].low);
    CHECK(hostile[1].floor > 3 * c[1].floor);
}

TEST(a_card_whose_level_is_not_known_is_unsure)
{
    struct decision_rules r = rules(20);
    struct candidate c = card(.9F);

    c.level = (struct card_level){-1, -1};
    choose_cutoffs(&r, &c, 1);
    CHECK(choose_band(&r, &c) == BAND_UNSURE);
}

TEST(words_alone_have_cutoffs_of_their_own)
{
    struct decision_rules r = rules(20);
    struct candidate c = card(.6F);

    c.signals.cosine = -1;
    choose_cutoffs(&r, &c, 1);
    CHECK(choose_band(&r, &c) == BAND_CONFIDENT);
    c.signals.semantic = .2F;
    CHECK(choose_band(&r, &c) == BAND_UNSURE);
    c.signals.semantic = 0;
    CHECK(choose_band(&r, &c) == BAND_OUT_OF_SCOPE);
}

TEST(a_correction_and_a_keyword_make_sure)
{
    struct decision_rules r = rules(20);
    struct candidate c[] = {card(.1F), card(.1F)};

    choose_cutoffs(&r, c, 2);
    CHECK(choose_band(&r, &c[0]) == BAND_UNSURE);
    c[0].signals.keyword = 1;
    CHECK(choose_band(&r, &c[0]) == BAND_CONFIDENT);
    c[0].signals.semantic = 0; /* said in passing, of something else */
    CHECK(choose_band(&r, &c[0]) == BAND_OUT_OF_SCOPE);
    c[0].is_taught = true;
    CHECK(choose_band(&r, &c[0]) == BAND_CONFIDENT);
}

TEST(a_keyword_that_counts_half_makes_nothing_sure)
{
    struct decision_rules r = rules(20);
    struct candidate c[] = {card(.1F), card(.1F)};

    c[0].signals.keyword = .5F;
    c[0].is_half = true;
    choose_cutoffs(&r, c, 2);
    CHECK(choose_band(&r, &c[0]) == BAND_UNSURE);
    c[0].signals.semantic = 0;
    CHECK(choose_band(&r, &c[0]) == BAND_OUT_OF_SCOPE);
    c[0].signals.semantic = .1F;
    r.is_small_talk = true;
    choose_cutoffs(&r, c, 2);
    CHECK(choose_band(&r, &c[0]) == BAND_OUT_OF_SCOPE);
}

/* Cosines that all lie between 0.7 and 0.9, or around 0.1, are decided
 * alike. */
TEST(the_scale_of_a_model_makes_no_difference)
{
    static const struct card_level scales[] = {
        {.70F, .75F}, {.05F, .10F}, {.30F, .50F}};
    struct decision_rules r = rules(12);

    r.is_centred = false;
    r.text_blend = 0;
    for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
        float unit = scales[i].high - scales[i].mid;
        struct candidate c[] = {card(0), card(0)};

        c[0].level = c[1].level = scales[i];
        c[0].signals.semantic = scales[i].mid + 1.6F * unit;
        c[1].signals.semantic = scales[i].mid + .5F * unit;
        choose_cutoffs(&r, c, 2);
        CHECK(choose_band(&r, &c[0]) == BAND_CONFIDENT);
        c[0].signals.semantic = scales[i].mid + .8F * unit;
        choose_cutoffs(&r, c, 2);
        CHECK(choose_band(&r, &c[0]) == BAND_UNSURE);
        c[0].signals.semantic = scales[i].mid - .2F * unit;
        CHECK(choose_band(&r, &c[0]) == BAND_OUT_OF_SCOPE);
    }
}

TEST(a_number_is_honoured_as_it_is)
{
    struct decision_rules r = {.threshold = .3};
    struct candidate c = {.score = .3};

    choose_cutoffs(&r, &c, 1);
    CHECK(isinf(c.floor) && choose_band(&r, &c) == BAND_CONFIDENT);
    c.score = nextafter(.3, 0);
    CHECK(choose_band(&r, &c) == BAND_OUT_OF_SCOPE);
}
