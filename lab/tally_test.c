#include "lab/tally.h"

#include <stdio.h>

#include "test/t.h"

TEST(what_the_outcome_says_of_a_change)
{
    static const struct {
        enum verdict verdict;
        const char *overridden_to, *to;
        enum hindsight word;
    } cases[] = {
        {VERDICT_OPEN, "", "b", HINDSIGHT_UNKNOWN},
        {VERDICT_NEUTRAL, "", "b", HINDSIGHT_UNKNOWN},
        {VERDICT_POSITIVE, "", "b", HINDSIGHT_WORSE},
        {VERDICT_POSITIVE, "", "", HINDSIGHT_WORSE},
        {VERDICT_NEGATIVE, "", "b", HINDSIGHT_WAS_BAD},
        {VERDICT_NEGATIVE, "b", "B", HINDSIGHT_BETTER},
        {VERDICT_NEGATIVE, "c", "b", HINDSIGHT_AS_BAD},
        {VERDICT_NEGATIVE, "c", "", HINDSIGHT_AS_BAD},
        {VERDICT_POSITIVE, "A", "b", HINDSIGHT_WORSE},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct decision d = {.agent = STR("a"),
                             .verdict = cases[i].verdict,
                             .overridden_to = str_of(cases[i].overridden_to)};

        CHECK_INT(hindsight_of(&d, str_of(cases[i].to)), cases[i].word);
    }
}

TEST(pairs_are_counted_whatever_the_case_and_sorted)
{
    struct decision a = {.agent = STR("a")}, big = {.agent = STR("A")};
    struct decision b = {.agent = STR("b"), .verdict = VERDICT_POSITIVE};
    struct tally t;

    tally_init(&t);
    tally_add(&t, &b, STR("a"));
    tally_add(&t, &a, STR("b"));
    tally_add(&t, &big, STR("B"));
    tally_add(&t, &a, STR(""));
    tally_sort(&t);
    CHECK(t.n_pairs == 3 && t.changed == 4 && t.by_word[HINDSIGHT_WORSE] == 1);
    CHECK_STR(t.pairs[0].to, "b");
    CHECK(t.pairs[0].n == 2 && t.pairs[0].by_word[HINDSIGHT_UNKNOWN] == 2);
    CHECK_STR(t.pairs[1].from, "a");
    CHECK_STR(t.pairs[2].from, "b");
    tally_fini(&t);
}

TEST(more_pairs_than_there_may_be_are_counted_all_the_same)
{
    struct tally t;
    char name[16];

    tally_init(&t);
    for (int i = 0; i < TALLY_PAIRS_MAX + 5; i++) {
        struct decision d = {
            .agent = {name, (size_t)snprintf(name, sizeof(name), "%d", i)}};

        tally_add(&t, &d, STR("x"));
    }
    CHECK_INT(t.n_pairs, TALLY_PAIRS_MAX);
    CHECK_INT(t.left_out, 5);
    CHECK_INT(t.changed, TALLY_PAIRS_MAX + 5);
    tally_fini(&t);
}
