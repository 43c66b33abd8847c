/* Levels cost no more than they may, however large the cards. */
#include "test/t.h"

#include "test/lib/index_stage.h"

enum { LARGE = AGENT_SKILLS_MAX, DOCS = 16 * (LARGE + 1) };

static struct {
    struct index *x;
    uint32_t dims;
    struct vec_ops ops; /* those of the index, counted */
    size_t n_numbers;   /* compared, by each of the four products */
} stage;

static void count_dots(const int8_t *rows, size_t stride, size_t n,
                       const int8_t *q, size_t q_bytes, int32_t *out)
{
    stage.n_numbers += n * q_bytes;
    vec_ops_of(CPU_PLAIN)->dots_i8(rows, stride, n, q, q_bytes, out);
}

static void stage_open(uint32_t dims)
{
    stage.dims = dims;
    stage.x = index_new(DOCS, stage_seed);
    CHECK(stage.x);
    index_set_dims(stage.x, dims);
}

/* A vector of length one along the i-th axis. */
static void set_row(uint8_t *rows, size_t at, size_t i)
{
    float v[INDEX_DIMS_MAX] = {0};

    v[i] = 1;
    CHECK(vec_pack(v, stage.dims, rows + at * vec_packed_bytes(stage.dims)));
}

/* Half of the texts lie along the first axis, the others along the second. */
static void set_reference(size_t n)
{
    uint8_t *rows = malloc(n * vec_packed_bytes(stage.dims));

    CHECK(rows);
    for (size_t i = 0; i < n; i++)
        set_row(rows, i, i % 2);
    CHECK(index_set_reference(stage.x, rows, n) == OK);
    free(rows);
    stage.ops = *stage.x->reference[QUERY_FULL].ops;
    stage.ops.dots_i8 = count_dots;
    stage.x->reference[QUERY_FULL].ops = &stage.ops;
}

/* The card as a whole lies along the first axis, all its skills the third. */
static void put_card(uint32_t number, size_t n_skills)
{
    static struct skill skills[LARGE];
    struct agent a = {.skills = skills, .n_skills = n_skills};
    uint8_t *rows = malloc((n_skills + 1) * vec_packed_bytes(stage.dims));
    struct index_change *change;
    char name[16];

    CHECK(rows);
    snprintf(name, sizeof(name), "a%u", number);
    a.name = str_of(name);
    for (size_t i = 0; i <= n_skills; i++)
        set_row(rows, i, i ? 2 : 0);
    for (size_t i = 0; i < n_skills; i++)
        skills[i].name = STR("skill");
    CHECK(index_prepare(stage.x, &a, rows, &change) == OK);
    index_put(stage.x, number, change);
    free(rows);
}

static size_t taken_numbers(void)
{
    size_t n = stage.n_numbers / 4;

    stage.n_numbers = 0;
    return n;
}

TEST(the_largest_card_costs_no_more_than_it_may)
{
    static const uint32_t dims[] = {64, 320, 384, 1536, 2048, 4096};
    static const size_t texts[] = {1, 64, 65, 1000, INDEX_REFERENCE_MAX};

    for (size_t i = 0; i < sizeof(dims) / sizeof(*dims); i++)
        for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++) {
            struct card_level l;
            size_t n;

            stage_open(dims[i]);
            set_reference(texts[k]);
            put_card(0, LARGE);
            n = taken_numbers();
            l = index_level(stage.x, 0);
            if (n > LEVEL_WORK_MAX ||
                n != level_plan(stage.x, stage.x->agents[0], QUERY_FULL).work)
                T_FAIL("%u dimensions, %zu texts: %zu numbers", dims[i],
                       texts[k], n);
            /* The profile counts, whichever skills are left out. */
            CHECK(l.high > 0.99F && l.mid > 0.99F);
            index_free(stage.x);
        }
}

/* Everything of a card that is small enough is compared. */
TEST(a_usual_card_is_compared_with_every_text)
{
    stage_open(384);
    set_reference(INDEX_REFERENCE_MAX);
    put_card(0, 9);
    CHECK_INT(taken_numbers(), 10 * 384 * INDEX_REFERENCE_MAX);
    index_free(stage.x);
}

/* Where documents are left out, about as many are compared as can be. */
TEST(no_more_is_left_out_than_must_be)
{
    stage_open(1536);
    set_reference(INDEX_REFERENCE_MAX);
    put_card(0, LARGE);
    CHECK(taken_numbers() > LEVEL_WORK_MAX / 2);
    index_free(stage.x);
}

TEST(a_turn_costs_no_more_than_the_largest_card)
{
    int n_turns = 0;
    bool is_more = true;

    stage_open(1536);
    for (uint32_t i = 0; i < 12; i++)
        put_card(i, i % 4 ? 0 : LARGE);
    set_reference(INDEX_REFERENCE_MAX);
    while (is_more) {
        is_more = index_level_turn(stage.x);
        CHECK(taken_numbers() <= LEVEL_WORK_MAX);
        n_turns++;
    }
    CHECK(n_turns >= 3 && n_turns <= 12);
    for (uint32_t i = 0; i < 12; i++)
        CHECK(index_level(stage.x, i).high > 0.99F);
    index_free(stage.x);
}

/* Small cards go together, a few at a time. */
TEST(a_turn_takes_several_small_cards)
{
    stage_open(64);
    for (uint32_t i = 0; i < 12; i++)
        put_card(i, 1);
    set_reference(64);
    CHECK(index_level_turn(stage.x));
    CHECK(index_level(stage.x, 7).high > 0 && index_level(stage.x, 8).high < 0);
    CHECK(!index_level_turn(stage.x) && index_level(stage.x, 11).high > 0);
    index_free(stage.x);
}

/* Two parts: the first axis is the first part's, the rest are the second's. */
static void put_parts(uint32_t number, const float *v, bool is_for_now)
{
    struct agent a = {.name = STR("a"), .kind = AGENT_PLATFORM};
    uint8_t packed[8 + 2 * 4];
    struct index_change *change;

    CHECK(vec_pack(v, 4, packed));
    CHECK(index_prepare(stage.x, &a, packed, &change) == OK);
    if (is_for_now)
        index_change_for_now(change);
    index_put(stage.x, number, change);
}

static void set_parts(bool is_quick)
{
    float v[3][4] = {{1, 0}, {1, 0}, {0, 1}};
    uint8_t packed[3 * (8 + 2 * 4)];

    for (size_t i = 0; i < 3; i++) {
        if (!is_quick) {
            v[i][2 + i % 2] = 1;
            CHECK(vec_join(v[i], 4, 2));
        }
        CHECK(vec_pack(v[i], 4, packed + i * vec_packed_bytes(4)));
    }
    CHECK((is_quick ? index_set_quick_reference
                    : index_set_reference)(stage.x, packed, 3) == OK);
}

static bool is_near(float a, double b)
{
    return fabs((double)a - b) < 1e-3;
}

TEST(a_card_of_two_parts_has_two_levels)
{
    const float quick[4] = {1, 0, 0, 0};
    float full[4] = {1, 0, 1, 0};

    stage_open(4);
    index_set_parts(stage.x, 4, 2);
    put_parts(0, quick, true);
    CHECK(vec_join(full, 4, 2));
    put_parts(1, full, false);
    CHECK(index_is_for_now(stage.x, 0) && !index_is_for_now(stage.x, 1));
    CHECK(!index_is_for_now(stage.x, 2));
    CHECK(index_level(stage.x, 0).high < 0 && index_level(stage.x, 1).high < 0);
    set_parts(true);
    CHECK_INT(index_quick_references(stage.x), 3);
    CHECK_INT(index_references(stage.x), 0);
    CHECK(!index_level_some(stage.x, 10));
    /* By first parts both are the same. */
    for (uint32_t i = 0; i < 2; i++) {
        struct card_level l = index_quick_level(stage.x, i);

        CHECK(is_near(l.mid, 1) && is_near(l.high, 1));
    }
    /* For a full query the quick card has what it has, the full one nothing
     * yet. */
    CHECK(is_near(index_level(stage.x, 0).mid, 1));
    CHECK(index_level(stage.x, 1).mid < 0);
    set_parts(false);
    CHECK(!index_level_some(stage.x, 10));
    CHECK(is_near(index_level(stage.x, 0).mid, 1));
    /* One of the three texts resembles it in both parts, one in the first, one
     * in the second. */
    CHECK(is_near(index_level(stage.x, 1).mid, 1 - VEC_QUICK_PART));
    CHECK(is_near(index_level(stage.x, 1).high, 1));
    CHECK(is_near(index_quick_level(stage.x, 1).mid, 1));
    /* A card that is put now has both levels at once, and the full one also
     * replaces the quick one. */
    put_parts(0, full, false);
    CHECK(is_near(index_level(stage.x, 0).mid, 1 - VEC_QUICK_PART));
    CHECK(!index_is_for_now(stage.x, 0));
    CHECK(!index_level_some(stage.x, 10));
    index_set_parts(stage.x, 4, 2);
    CHECK(!index_references(stage.x) && !index_quick_references(stage.x));
    CHECK(index_quick_level(stage.x, 0).mid < 0);
    index_free(stage.x);
}

/* Only the first parts are touched. */
TEST(quick_levels_cost_what_the_first_parts_cost)
{
    enum { DIMS = 640, QUICK = 256 };
    float v[DIMS] = {0};
    uint8_t *rows = calloc(64, vec_packed_bytes(DIMS));
    struct agent a = {.name = STR("a"), .kind = AGENT_PLATFORM};
    struct index_change *change;

    CHECK(rows);
    stage_open(DIMS);
    index_set_parts(stage.x, DIMS, QUICK);
    v[0] = 1;
    for (size_t i = 0; i < 64; i++)
        CHECK(vec_pack(v, DIMS, rows + i * vec_packed_bytes(DIMS)));
    CHECK(index_set_quick_reference(stage.x, rows, 64) == OK);
    stage.ops = *stage.x->reference[QUERY_QUICK].ops;
    stage.ops.dots_i8 = count_dots;
    stage.x->reference[QUERY_QUICK].ops = &stage.ops;
    v[QUICK] = 1;
    CHECK(vec_join(v, DIMS, QUICK) && vec_pack(v, DIMS, rows));
    CHECK(index_prepare(stage.x, &a, rows, &change) == OK);
    (void)taken_numbers();
    index_put(stage.x, 0, change);
    CHECK_INT(taken_numbers(), 64 * QUICK);
    CHECK(is_near(index_quick_level(stage.x, 0).mid, 1));
    free(rows);
    index_free(stage.x);
}
