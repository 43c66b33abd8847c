/* Compares the threshold and the weights with a search over all values. */
#include "lab/calib.h"

#include "base/fault.h"
#include "lab/plot.h"
#include "test/t.h"

enum { N = 200, EACH = 3 };

struct stage {
    struct calib_query queries[N];
    struct calib_candidate candidates[N * EACH];
    struct calib_set set;
    uint64_t chance;
};

static const struct signal_weights usual = {0.6, 0.2, 0.15, 0.05};

static double any(struct stage *s)
{
    s->chance = s->chance * 6364136223846793005U + 1442695040888963407U;
    return (double)(s->chance >> 40) / (1 << 24);
}

/* A third is out of scope and scores lower. The right agent usually has the
 * higher semantic signal, and always the higher performance. */
static void fill(struct stage *s, uint64_t seed)
{
    s->chance = seed;
    for (size_t i = 0; i < N; i++) {
        bool is_out = i % 3 == 0;

        s->queries[i] = (struct calib_query){
            .first = i * EACH, .n = EACH, .is_out = is_out, .fold = i % 5};
        for (size_t k = 0; k < EACH; k++) {
            bool is_right = !is_out && k == i % EACH;

            s->candidates[i * EACH + k] = (struct calib_candidate){
                .agent = (uint32_t)k,
                .is_right = is_right,
                .semantic =
                    (float)(0.2 + 0.5 * any(s) + 0.1 * is_right - 0.1 * is_out),
                .performance = is_right ? 0.8F : 0.5F,
                .recency = (float)any(s)};
        }
    }
    s->set = (struct calib_set){s->queries, N, s->candidates, 5};
}

static double worth_at(struct stage *s, double threshold)
{
    struct calib_figures f;

    calib_judge(&s->set, &usual, threshold, CALIB_ALL, &f);
    return calib_worth(&f);
}

TEST(no_threshold_is_better_than_the_one_proposed)
{
    static struct stage s;

    for (uint64_t seed = 1; seed < 20; seed++) {
        struct calib_result r;
        double best;

        fill(&s, seed);
        CHECK(calib_run(&s.set, &usual, false, &r) == OK);
        best = worth_at(&s, r.threshold);
        for (int i = 0; i <= 1000; i++)
            CHECK(worth_at(&s, i / 1000.0) <= best + 1e-12);
        CHECK(r.least <= r.threshold + 0.2 && r.least <= r.most);
        CHECK(r.found.n + r.found.n_out == N);
        /* On other queries it cannot be much better. */
        CHECK(calib_worth(&r.found) <= best + 0.02);
    }
}

TEST(weights_are_left_for_better_ones_alone)
{
    static struct stage s;
    struct calib_result kept, freed;

    fill(&s, 7);
    CHECK(calib_run(&s.set, &usual, false, &kept) == OK);
    CHECK(calib_run(&s.set, &usual, true, &freed) == OK);
    CHECK(kept.weights.performance == usual.performance);
    /* Performance is the best signal; recency is random. */
    CHECK(freed.weights.performance > usual.performance);
    CHECK(freed.weights.recency == 0);
    CHECK(calib_worth(&freed.found) > calib_worth(&kept.found));

    /* No change can improve the result. */
    for (size_t i = 0; i < N * EACH; i++)
        s.candidates[i] = (struct calib_candidate){
            .is_right = s.candidates[i].is_right,
            .semantic = s.candidates[i].is_right ? 0.9F : 0.1F};
    CHECK(calib_run(&s.set, &usual, true, &freed) == OK);
    CHECK(freed.weights.semantic == usual.semantic);
    CHECK(calib_worth(&freed.found) == 1);
}

TEST(without_any_out_of_scope_little_is_given_up)
{
    static struct stage s;
    struct calib_figures f, all;
    struct calib_result r;

    fill(&s, 3);
    for (size_t i = 0; i < N; i++)
        s.queries[i].is_out = false;
    CHECK(calib_run(&s.set, &usual, false, &r) == OK);
    calib_judge(&s.set, &usual, 0, CALIB_ALL, &all);
    calib_judge(&s.set, &usual, r.threshold, CALIB_ALL, &f);
    CHECK(r.threshold > 0 && f.n_right < all.n_right);
    CHECK((double)(all.n_right - f.n_right) <=
          CALIB_COST * (double)all.n_right);
}

TEST(queries_for_whom_nothing_speaks_are_below_everything)
{
    struct calib_query q[2] = {{0, 0, true, 0}, {0, 1, false, 1}};
    struct calib_candidate c = {.is_right = true, .semantic = 0.5F};
    struct calib_set set = {q, 2, &c, 2};
    struct calib_result r;
    struct calib_figures f;

    CHECK(calib_run(&set, &usual, false, &r) == OK);
    calib_judge(&set, &usual, r.threshold, CALIB_ALL, &f);
    CHECK(f.n_right == 1 && f.n_noticed == 1);
}

TEST(no_memory_is_said)
{
    static struct stage s;
    struct calib_result r;

    fill(&s, 1);
    fault_arm(1);
    CHECK(calib_run(&s.set, &usual, false, &r) == ERR_NOMEM);
    CHECK(fault_fired());
    CHECK(calib_run(&s.set, &usual, false, &r) == OK);
}

TEST(a_plot_keeps_within_its_width)
{
    double y[5] = {0, 0.25, 0.5, 1, 2}, nothing[5] = {0};
    struct plot_curve curves[] = {{"rises", '*', y}, {"lies", 'o', nothing}};

    for (unsigned width = 0; width < 120; width += 7) {
        struct buf out;
        struct str rest;

        buf_init(&out, 64 * 1024);
        plot_write(&out, curves, 2, 5, 0, 1, 0.5, width);
        CHECK(!out.over);
        rest = buf_str(&out);
        while (rest.n) {
            struct str line = str_cut(&rest, '\n');

            CHECK(line.n <= (width > 29 ? width : 72));
        }
        CHECK(str_find(buf_str(&out), ':', 0) < out.n);
        buf_fini(&out);
    }
}
