/* Which texts a card has, when two cards have the same, and how many vectors a
 * row has room for. */
#include "registry/internal.h"
#include "test/t.h"

static struct skill skills[] = {
    {.id = {"a", 1}, .name = {"Cut", 3}, .description = {"wood", 4}},
    {.id = {"b", 1}, .name = {"Saw", 3}, .description = {"logs", 4}},
};

static struct agent sawyer(void)
{
    return (struct agent){.name = STR("kerf"),
                          .description = STR("Cuts"),
                          .skills = skills,
                          .n_skills = 2,
                          .revision = 1};
}

TEST(cards_with_the_same_texts_need_no_other_vectors)
{
    const struct str examples[] = {STR("one"), STR("two")};
    struct agent a = sawyer(), b = sawyer();
    struct skill other[2] = {skills[0], skills[1]};

    CHECK(vectors_are_same(&a, &b));
    b.version = STR("2");
    b.url = STR("echo:");
    b.revision = 9;
    b.visibility = VISIBILITY_PUBLIC;
    CHECK(vectors_are_same(&a, &b));
    b = sawyer();
    b.description = STR("Cuts all");
    CHECK(!vectors_are_same(&a, &b));
    b = sawyer();
    b.routing.system_prompt = STR("Be sharp");
    CHECK(!vectors_are_same(&a, &b));
    b = sawyer();
    b.n_skills = 1;
    CHECK(!vectors_are_same(&a, &b));
    b = sawyer();
    b.skills = other;
    other[1].examples = (struct strs){examples, 2};
    CHECK(!vectors_are_same(&a, &b));
    a.skills = other;
    CHECK(vectors_are_same(&a, &b));
}

TEST(examples_come_behind_all_skills)
{
    static const char *const order[] = {"kerf: Cuts", "kerf: Cuts sharp",
                                        "Cut: wood",  "Saw: logs",
                                        "one",        "two"};
    const struct str first[] = {STR("one")}, second[] = {STR("two")};
    const struct str keywords[] = {STR("sharp")};
    struct skill mine[2] = {skills[0], skills[1]};
    struct agent a = sawyer();
    struct arena arena;
    struct strs texts;

    mine[0].examples = (struct strs){first, 1};
    mine[1].examples = (struct strs){second, 1};
    a.skills = mine;
    a.routing.keywords = (struct strs){keywords, 1};
    arena_init(&arena, 1 << 20);
    CHECK(vectors_texts(&arena, &a, &texts) == OK);
    CHECK_INT(texts.n, 6);
    for (size_t i = 0; i < texts.n; i++)
        CHECK_STR(texts.list[i], order[i]);
    arena_fini(&arena);
}

/* The most that a card can have. */
static struct agent largest(void)
{
    static struct skill all[AGENT_SKILLS_MAX];
    static struct str examples[SKILL_EXAMPLES_MAX];

    for (size_t i = 0; i < SKILL_EXAMPLES_MAX; i++)
        examples[i] = STR("x");
    for (size_t i = 0; i < AGENT_SKILLS_MAX; i++) {
        all[i] = skills[0];
        all[i].examples = (struct strs){examples, SKILL_EXAMPLES_MAX};
    }
    return (struct agent){.name = STR("kerf"),
                          .skills = all,
                          .n_skills = AGENT_SKILLS_MAX,
                          .revision = 1};
}

TEST(a_row_has_a_limit_and_its_last_examples_go)
{
    enum { ALL = 2 + AGENT_SKILLS_MAX * (1 + SKILL_EXAMPLES_MAX) };
    struct agent a = largest();
    size_t most = VECTORS_BYTES_MAX / vec_packed_bytes(INDEX_DIMS_MAX);

    CHECK_INT(vectors_kept(&a, 8), ALL);
    CHECK_INT(vectors_kept(&a, 384), ALL);
    CHECK_INT(vectors_kept(&a, INDEX_DIMS_MAX), most);
    CHECK(most < ALL && most > 2 + AGENT_SKILLS_MAX);
}

static bool is_towards(const char *packed, const float *v)
{
    struct vec_packed a, b;
    uint8_t bytes[8 + 2 * 4];

    CHECK(vec_pack(v, 4, bytes));
    CHECK(vec_packed_open(&a, (const uint8_t *)packed, sizeof(bytes), 4) &&
          vec_packed_open(&b, bytes, sizeof(bytes), 4));
    return vec_packed_dot(&a, &b) > 0.99999;
}

/* A skill is where its text and its examples are together, an agent where
 * everything of it is, what it says of itself counting once. */
#define THAI_6 \
    "\xe0\xb8\x81\xe0\xb8\x82\xe0\xb8\x84\xe0\xb8\x87\xe0\xb8\x88\xe0\xb8\x89"
#define THAI THAI_6 THAI_6 THAI_6 THAI_6

TEST(the_index_has_means)
{
    enum { DIMS = 4, EACH = 8 + 2 * DIMS };
    struct vectors v = {.stamp = {.dims = DIMS}};
    struct registry r = {.vectors = &v};
    const struct str examples[] = {STR("x"), STR("y")};
    const struct skill all[] = {
        {.name = STR("with"), .examples = {examples, 2}},
        {.name = STR("without"),
         .description = STR("Saws a beam along its grain, twice.")},
        /* 24 letters of a script without gaps, 72 bytes: five words */
        {.name = STR("saw two beams"), .description = STR(THAI)}};
    const struct agent a = {.name = STR("kerf"), .skills = all, .n_skills = 3};
    const float e[DIMS][DIMS] = {{1}, {0, 1}, {0, 0, 1}, {0, 0, 0, 1}};
    struct buf packed, out;

    buf_init(&packed, 1 << 20);
    buf_init(&out, 1 << 20);
    CHECK(vectors_pack(&packed, e[0], DIMS)); /* for search */
    CHECK(vectors_pack(&packed, e[1], DIMS)); /* for routing */
    CHECK(vectors_pack(&packed, e[2], DIMS)); /* the skills */
    CHECK(vectors_pack(&packed, e[0], DIMS));
    CHECK(vectors_pack(&packed, e[1], DIMS));
    CHECK(vectors_pack(&packed, e[2], DIMS)); /* the examples */
    CHECK(vectors_pack(&packed, e[3], DIMS));
    CHECK(vectors_for_index(&r, &a, buf_str(&packed), &out));
    CHECK_INT(out.n, 5 * EACH);
    CHECK(memcmp(out.p, packed.p, EACH) == 0);
    CHECK(is_towards(out.p + EACH, (const float[]){0, 0, 2, 1}));
    CHECK(memcmp(out.p + 2 * (size_t)EACH, packed.p + 3 * (size_t)EACH,
                 2 * (size_t)EACH) == 0);
    /* One word counts for a ninth of a text, eight for a half. */
    CHECK(is_towards(out.p + 4 * (size_t)EACH,
                     (const float[]){.5F + .5F, .5F + .5F, 1 + 1.F / 9, 1}));
    buf_fini(&packed);
    buf_fini(&out);
}

/* A row is believed only if it is what this card and model have. */
TEST(packed_vectors_of_another_card_or_length_are_none)
{
    enum { DIMS = 4, EACH = 8 + 2 * DIMS };
    struct vectors v = {.stamp = {.dims = DIMS}};
    struct registry r = {.vectors = &v};
    struct agent a = sawyer();
    float one[DIMS] = {1};
    struct buf packed, out;

    buf_init(&packed, 1 << 20);
    buf_init(&out, 1 << 20);
    for (int i = 0; i < 4; i++) {
        one[1] = (float)i;
        CHECK(vectors_pack(&packed, one, DIMS));
    }
    CHECK_INT(packed.n, 4 * EACH);
    CHECK(vectors_for_index(&r, &a, buf_str(&packed), &out));
    CHECK_INT(out.n, 4 * EACH); /* the one for search, skills, and the whole */
    CHECK(memcmp(out.p, packed.p, EACH) == 0);
    CHECK(memcmp(out.p + EACH, packed.p + 2 * (size_t)EACH, 2 * (size_t)EACH) ==
          0);
    for (size_t n = 0; n < packed.n; n++) {
        buf_clear(&out);
        CHECK(
            !vectors_for_index(&r, &a, str_sub(buf_str(&packed), 0, n), &out));
    }
    a.n_skills = 1;
    CHECK(!vectors_for_index(&r, &a, buf_str(&packed), &out));
    a.n_skills = 2;
    v.stamp.dims = 5;
    CHECK(!vectors_for_index(&r, &a, buf_str(&packed), &out));
    v.stamp.dims = DIMS;
    memset(packed.p + EACH, 0xff, 4); /* a scale that is no number */
    CHECK(!vectors_for_index(&r, &a, buf_str(&packed), &out));
    buf_fini(&packed);
    buf_fini(&out);
}
