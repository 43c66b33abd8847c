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
    stage.ops = *stage.x->reference[TIER_FULL].ops;
    stage.ops.dots_i8 = count_dots;
    stage.x->reference[TIER_FULL].ops = &stage.ops;
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
                n != level_plan(stage.x, stage.x->agents[0], TIER_FULL).work)
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
