/* The steps of all thresholds, compared with a replay at each of many. */
#include "choose/layers/choose.h"

#include <math.h>
#include <stdlib.h>

#include "base/fault.h"
#include "test/lib/decision_maker.h"

static void set_threshold(void *ctx, struct choose_settings *own)
{
    own->is_auto = own->is_centred = false;
    own->threshold = *(double *)ctx;
}

static const struct decision_step *step_of(const struct decision_step *s,
                                           double threshold)
{
    while (threshold > s->upto)
        s++;
    return s;
}

static void check_at(const struct decision *d, const struct decision_step *s,
                     double threshold)
{
    struct decision now = {0};
    struct arena a;
    enum err e;

    arena_init(&a, 1 << 20);
    e = choose_again_but(set_threshold, &threshold, d, &a, &now);
    s = step_of(s, threshold);
    CHECK(e != ERR_NOMEM);
    CHECK_INT(s->is_known, e != ERR_NOT_FOUND);
    CHECK_INT(s->layer, e == ERR_NOT_FOUND ? 0 : now.layer);
    CHECK(str_eq(s->agent, e == ERR_NOT_FOUND ? STR("") : now.agent));
    arena_fini(&a);
}

TEST(every_threshold_is_in_the_step_that_says_what_it_decides)
{
    const char *stress = getenv("STRESS");
    uint64_t n = stress && strcmp(stress, "full") == 0 ? 100 * 1000 : 600;
    struct decision_step steps[DECISION_STEPS_MAX];
    size_t n_steps, n_many = 0, n_two = 0;
    struct decision d;
    struct arena a;

    arena_init(&a, 8 << 20);
    for (uint64_t i = 0; i < n; i++) {
        if (make_decision(i, &d))
            continue;
        arena_reset(&a);
        CHECK_INT(choose_sweep(&d, &a, steps, &n_steps), OK);
        CHECK(n_steps > 0 && isinf(steps[n_steps - 1].upto));
        n_two += n_steps == 2;
        n_many += n_steps > 2;
        for (int t = 0; t <= 20; t++)
            check_at(&d, steps, t / 20.0);
        check_at(&d, steps, d.rules.threshold);
        for (size_t k = 0; k < d.n_candidates; k++) {
            double at = d.candidates[k].score;

            check_at(&d, steps, at);
            check_at(&d, steps, nextafter(at, 2));
        }
        stage_close();
    }
    arena_fini(&a);
    CHECK(n_two > n / 20 && n_many > n / 100);
}

TEST(what_no_threshold_decided_is_one_step)
{
    struct decision d = {.layer = LAYER_EXPLICIT, .agent = STR("main")};
    struct decision_step steps[DECISION_STEPS_MAX];
    struct arena a;
    size_t n;

    arena_init(&a, 1 << 20);
    CHECK_INT(choose_sweep(&d, &a, steps, &n), OK);
    CHECK(n == 1 && isinf(steps[0].upto) && steps[0].is_known);
    CHECK_STR(steps[0].agent, "main");
    arena_fini(&a);
}

TEST(a_sweep_without_memory_says_so)
{
    struct decision_step steps[DECISION_STEPS_MAX];
    struct decision d;
    struct arena a;
    uint64_t i = 0;
    size_t n;

    for (;; stage_close()) {
        while (make_decision(i++, &d))
            ;
        if (d.layer == LAYER_SEMANTIC && d.turn == 1)
            break;
    }
    arena_init(&a, 64);
    CHECK_INT(choose_sweep(&d, &a, steps, &n), ERR_NOMEM);
    arena_fini(&a);
    stage_close();
}
