/* Every allocation that can fail fails once: the state does not change, and the
 * same outcome, applied again, has its normal result. */
#include "test/t.h"

#include "test/lib/learn_stage.h"
#include "test/lib/learn_table.h"

#include "base/fault.h"

static struct outcome outcome_no(struct stage *s, int i)
{
    static char names[64][16];
    struct outcome o;

    snprintf(names[i % 64], sizeof(names[0]), "agent%d", i);
    o = i % 2 ? corrected(s, names[i % 64], "writer", i % 3 ? "org:a" : "org:b",
                          i)
              : judged(s, names[i % 64], i, VERDICT_POSITIVE);
    o.text_hash = (uint64_t)(i % 5); /* some are of the same text */
    if (i % 7 == 1)                  /* and some have nothing else */
        o.vector = o.model_hash = STR("");
    if (i == 30)
        o = (struct outcome){.kind = OUTCOME_FORGET, .agent = STR("agent3")};
    o.seq = i + 1;
    return o;
}

static void check_unchanged(struct stage *s, const char *before)
{
    CHECK(learn_check(s->l));
    CHECK_STR(str_of(exported(s)), before);
}

/* Enough outcomes that every list grows. */
TEST(applying_survives_every_fault)
{
    struct stage *s = stage_new(), *whole = stage_new();
    int n_faults = 0;
    char *end;

    for (int i = 0; i < 80; i++) {
        struct outcome o = outcome_no(s, i), same = outcome_no(whole, i);
        char *before = strdup(exported(s));
        long nth = 0;
        bool is_hit;

        do {
            enum err e;

            fault_arm(++nth);
            e = learn_apply(s->l, &o);
            is_hit = fault_fired();
            fault_arm(0);
            CHECK(e == (is_hit ? ERR_NOMEM : OK));
            n_faults += is_hit;
            if (is_hit)
                check_unchanged(s, before);
        } while (is_hit);
        CHECK(learn_apply(whole->l, &same) == OK);
        free(before);
    }
    CHECK(n_faults > 20);
    end = strdup(exported(whole));
    check_unchanged(s, end);
    free(end);
    stage_free(whole);
    stage_free(s);
}

TEST(loading_survives_every_fault)
{
    struct stage *s = stage_new();
    struct kept *k = calloc(1, sizeof(*k));
    long nth = 0;
    bool is_hit;

    CHECK(k);
    for (int i = 0; i < 80; i++) {
        struct outcome o = outcome_no(s, i);

        CHECK(learn_apply(s->l, &o) == OK);
    }
    write_all(s->l, k);
    do {
        struct learn *l = learn_new(&s->settings, STR("model"), 0, stage_seed);
        enum err e;

        fault_arm(++nth);
        e = load_all(l, k);
        is_hit = fault_fired();
        fault_arm(0);
        CHECK(e == (is_hit ? ERR_NOMEM : OK));
        CHECK(learn_check(l));
        learn_free(l);
    } while (is_hit);
    CHECK(nth > 30);
    kept_clear(k);
    free(k);
    stage_free(s);
}
