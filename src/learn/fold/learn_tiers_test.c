/* A model of two tiers: what was learned from quick vectors counts for full
 * ones and vice versa. */
#include "test/t.h"

#include "test/lib/learn_stage.h"
#include "test/lib/learn_table.h"

enum { QUICK = 8, FULL = STAGE_DIMS, PACKED = STAGE_PACKED };

/* A direction in each part, by a number. */
struct text {
    uint64_t table, transformer;
};

static void some_direction(uint64_t number, float *out, size_t n)
{
    uint64_t z = number * UINT64_C(0x9e3779b97f4a7c15) + 1;

    for (size_t i = 0; i < n; i++) {
        z = z * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        out[i] = (float)(z >> 40) / (1 << 23) - 1;
    }
    CHECK(vec_normalise(out, n));
}

static struct str pack(struct stage *s, const float v[FULL])
{
    uint8_t *to = s->packed[s->next++ % STAGE_VECTORS];

    CHECK(vec_pack(v, FULL, to));
    return (struct str){(const char *)to, PACKED};
}

static struct str quick_of(struct stage *s, struct text t)
{
    float v[FULL] = {0};

    some_direction(t.table, v, QUICK);
    return pack(s, v);
}

static struct str full_of(struct stage *s, struct text t)
{
    float v[FULL];

    some_direction(t.table, v, QUICK);
    some_direction(t.transformer, v + QUICK, FULL - QUICK);
    for (size_t i = 0; i < FULL; i++)
        v[i] *= (float)sqrt(i < QUICK ? VEC_QUICK_PART : 1 - VEC_QUICK_PART);
    return pack(s, v);
}

static struct stage *two_tiers(void)
{
    struct stage *s = stage_new();

    learn_free(s->l);
    s->l = learn_new(&s->settings, STR("model"), QUICK, stage_seed);
    CHECK(s->l);
    return s;
}

static struct learn_hint ask_by(struct stage *s, struct str vector,
                                const char *agent)
{
    return ask_all(s,
                   (struct learn_query){.scope = STR("org:acme"),
                                        .vector = vector,
                                        .now_ms = 5000,
                                        .recency_ms = 1000},
                   agent);
}

static void correct_by(struct stage *s, struct str vector)
{
    struct outcome o = corrected(s, "engineer", "writer", "org:acme", 1);

    o.vector = vector;
    apply(s, &o);
}

static double cosine_of(uint64_t a, uint64_t b, size_t n)
{
    float x[FULL], y[FULL];

    some_direction(a, x, n);
    some_direction(b, y, n);
    return (double)vec_cosine(x, n, y, n);
}

static double cube(double c)
{
    return c > 0 ? c * c * c : 0;
}

/* Quick with quick and quick with full: by the table's parts. Full with full:
 * by both. */
TEST(an_example_of_either_kind_speaks_to_queries_of_either_kind)
{
    const struct text taught = {7, 7};

    for (int is_full = 0; is_full < 2; is_full++) {
        struct stage *s = two_tiers();

        correct_by(s, is_full ? full_of(s, taught) : quick_of(s, taught));
        for (uint64_t i = 0; i < 40; i++) {
            struct text t = {i % 9, i};
            double table = cosine_of(7, t.table, QUICK);
            double both = VEC_QUICK_PART * table +
                          (1 - VEC_QUICK_PART) *
                              cosine_of(7, t.transformer, FULL - QUICK);
            double by_quick =
                (double)ask_by(s, quick_of(s, t), "writer").learned;
            double by_full = (double)ask_by(s, full_of(s, t), "writer").learned;

            CHECK(fabs(by_quick - cube(table)) < 0.01);
            CHECK(fabs(by_full - cube(is_full ? both : table)) < 0.01);
        }
        /* The same text, whichever tier read it then and now. */
        CHECK((double)ask_by(s, quick_of(s, taught), "writer").learned > .999);
        CHECK((double)ask_by(s, full_of(s, taught), "writer").learned > .999);
        CHECK((double)ask_by(s, full_of(s, taught), "writer").learned <= 1);
        stage_free(s);
    }
}

/* The control: for a model with one part the same numbers are one vector. */
TEST(of_a_model_with_one_part_nothing_is_quick)
{
    struct stage *s = stage_new();
    const struct text taught = {7, 7};
    double product = sqrt(VEC_QUICK_PART);

    correct_by(s, full_of(s, taught));
    CHECK(fabs((double)ask_by(s, quick_of(s, taught), "writer").learned -
               cube(product)) < 0.01);
    stage_free(s);
}

TEST(a_text_is_of_one_type_whichever_tier_decided)
{
    struct stage *s = two_tiers();
    const struct text t = {3, 5}, same_table = {3, 900}, other = {4, 5};
    struct outcome o = judged(s, "writer", 1, VERDICT_POSITIVE);
    int64_t type;

    o.vector = quick_of(s, t);
    apply(s, &o);
    type = learn_type(s->l, STR("org:acme"), quick_of(s, t));
    CHECK(type && learn_type(s->l, STR("org:acme"), full_of(s, t)) == type);
    CHECK(learn_type(s->l, STR("org:acme"), full_of(s, same_table)) == type);
    CHECK(learn_type(s->l, STR("org:acme"), full_of(s, other)) != type);
    CHECK_INT(learn_stats(s->l).types, 1);
    /* Full ones join it, and the mean stays a direction of the first part. */
    for (int i = 0; i < 50; i++) {
        o = judged(s, "writer", 1, VERDICT_POSITIVE);
        o.vector = i % 2 ? full_of(s, t) : quick_of(s, same_table);
        apply(s, &o);
    }
    CHECK_INT(learn_stats(s->l).types, 1);
    CHECK(learn_type(s->l, STR("org:acme"), quick_of(s, t)) == type);
    CHECK((double)ask_by(s, full_of(s, t), "writer").performance > .8);
    CHECK(ask_by(s, full_of(s, t), "writer").performance ==
          ask_by(s, quick_of(s, t), "writer").performance);
    stage_free(s);
}

/* The table knows no word of it: no type, but it is an example. */
TEST(without_a_first_part_there_is_no_type)
{
    struct stage *s = two_tiers();
    float v[FULL] = {0};
    struct outcome o = corrected(s, "engineer", "writer", "org:acme", 1);

    some_direction(1, v + QUICK, FULL - QUICK);
    o.vector = pack(s, v);
    apply(s, &o);
    CHECK_INT(learn_stats(s->l).types, 0);
    CHECK_INT(learn_stats(s->l).examples, 1);
    CHECK(!learn_type(s->l, STR("org:acme"), pack(s, v)));
    CHECK((double)ask_by(s, pack(s, v), "writer").learned > .999);
    CHECK(learn_check(s->l));
    stage_free(s);
}

static void teach_mixture(struct stage *s, int n)
{
    for (int i = 0; i < n; i++) {
        struct text t = {(uint64_t)i % 5, (uint64_t)i % 11};
        struct outcome o =
            i % 3 ? judged(s, "writer", 1, VERDICT_POSITIVE)
                  : corrected(s, "engineer", "writer", "org:acme", 1);

        o.vector = i % 2 ? full_of(s, t) : quick_of(s, t);
        apply(s, &o);
    }
    CHECK(learn_check(s->l));
}

/* From its rows, and from its outcomes. */
TEST(a_mixture_is_the_same_after_a_start)
{
    struct stage *s = two_tiers(), *again = two_tiers();
    struct kept *k = calloc(1, sizeof(*k));
    struct learn *l = learn_new(&s->settings, STR("model"), QUICK, stage_seed);
    struct learn *was = s->l;
    bool is_last;
    char *before;

    CHECK(k && l);
    teach_mixture(s, 100);
    teach_mixture(again, 100);
    before = strdup(exported(s));
    CHECK_STR(str_of(exported(again)), before);
    CHECK(write_some(s->l, k, 1000, true, &is_last) && is_last);
    CHECK(load_all(l, k) == OK && learn_check(l));
    s->l = l;
    CHECK_STR(str_of(exported(s)), before);
    for (uint64_t i = 0; i < 5; i++) {
        struct text t = {i, i};

        CHECK(ask_by(s, full_of(s, t), "writer").learned ==
              ask_by(again, full_of(again, t), "writer").learned);
        CHECK(ask_by(s, quick_of(s, t), "writer").learned ==
              ask_by(again, quick_of(again, t), "writer").learned);
    }
    learn_free(was);
    kept_clear(k);
    free(k);
    free(before);
    stage_free(s);
    stage_free(again);
}

/* An example that was useful to a query of the other kind stays. */
TEST(an_example_is_thanked_by_either_kind)
{
    struct stage *s = two_tiers();
    const struct text useful = {1, 1}, idle = {2, 2}, third = {3, 3};
    struct outcome o;

    s->settings.examples_per_agent = 2;
    learn_set(s->l, &s->settings);
    correct_by(s, full_of(s, useful));
    correct_by(s, full_of(s, idle));
    o = judged(s, "writer", 1, VERDICT_POSITIVE);
    o.vector = quick_of(s, useful);
    apply(s, &o);
    correct_by(s, quick_of(s, third));
    CHECK_INT(learn_stats(s->l).examples, 2);
    CHECK((double)ask_by(s, full_of(s, useful), "writer").learned > .999);
    CHECK((double)ask_by(s, full_of(s, idle), "writer").learned < .9);
    stage_free(s);
}
