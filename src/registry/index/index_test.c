/* Agents are put, changed, moved and dropped; a prepared change can always be
 * put. */
#include "test/t.h"

#include "test/lib/index_stage.h"

static const struct skill two_skills[] = {
    {.name = {"translate", 9}, .description = {"letters into French", 19}},
    {.name = {"summarise", 9}, .description = {"long reports", 12}},
};

static struct agent agent_of(const char *name, size_t n_skills)
{
    return (struct agent){.name = str_of(name),
                          .description = STR("helps"),
                          .visibility = VISIBILITY_PUBLIC,
                          .skills = two_skills,
                          .n_skills = n_skills};
}

static struct index *index_of(size_t max_docs)
{
    struct index *x = index_new(max_docs, stage_seed);

    CHECK(x);
    return x;
}

static void put(struct index *x, uint32_t number, const struct agent *a,
                const uint8_t *vectors)
{
    struct index_change *c;

    CHECK(index_prepare(x, a, vectors, &c) == OK);
    index_put(x, number, c);
    CHECK(index_check(x));
}

static size_t found(struct index *x, const char *text, struct index_hit *out)
{
    struct index_query q = {.text = str_of(text)};

    return search_hits(x, &q, out, 8);
}

TEST(an_agent_is_found_by_its_words_and_its_skills)
{
    struct index *x = index_of(100);
    struct agent a = agent_of("polyglot", 2);
    struct index_hit h[8];

    put(x, 7, &a, NULL);
    CHECK_INT(found(x, "translating", h), 1);
    CHECK_INT(h[0].number, 7);
    CHECK_INT(h[0].n_matches, 1);
    CHECK_INT(h[0].matches[0].skill, 0);
    CHECK(h[0].score == h[0].matches[0].score && h[0].score > 0);
    CHECK(h[0].matches[0].semantic == 0 && h[0].matches[0].text == h[0].score);
    CHECK_INT(found(x, "polyglot", h), 1);
    CHECK_INT(h[0].n_matches, 3);
    CHECK_INT(h[0].matches[0].skill, INDEX_AGENT);
    CHECK_INT(found(x, "cooking", h), 0);
    CHECK_INT(found(x, "", h), 0);
    index_free(x);
}

TEST(an_agent_without_skills_is_found_by_itself)
{
    struct index *x = index_of(100);
    struct agent a = agent_of("gardener", 0);
    struct index_hit h[8];

    put(x, 0, &a, NULL);
    CHECK_INT(found(x, "a gardener", h), 1);
    CHECK_INT(h[0].n_matches, 1);
    CHECK_INT(h[0].matches[0].skill, INDEX_AGENT);
    index_free(x);
}

TEST(what_is_put_in_its_place_replaces_it_and_what_is_dropped_is_gone)
{
    struct index *x = index_of(100);
    struct agent a = agent_of("one", 2), b = agent_of("two", 0);
    struct index_hit h[8];

    put(x, 3, &a, NULL);
    put(x, 3, &b, NULL);
    CHECK_INT(found(x, "one", h), 0);
    CHECK_INT(found(x, "two", h), 1);
    CHECK_INT(index_stats(x).documents, 1);
    index_drop(x, 3);
    index_drop(x, 3);
    index_drop(x, 99);
    index_drop(x, UINT32_MAX);
    CHECK(index_check(x));
    CHECK_INT(found(x, "two", h), 0);
    CHECK_INT(index_stats(x).documents, 0);
    CHECK_INT(index_stats(x).agents, 0);
    CHECK_INT(index_stats(x).terms, 0);
    index_free(x);
}

TEST(changes_are_made_or_dropped_in_any_order)
{
    struct index *x = index_of(100);
    struct agent a = agent_of("alpha", 2), b = agent_of("beta", 1);
    struct agent c = agent_of("gamma", 0);
    struct index_change *of_a, *of_b, *of_c, *again;
    struct index_hit h[8];

    CHECK(index_prepare(x, &a, NULL, &of_a) == OK);
    CHECK(index_prepare(x, &b, NULL, &of_b) == OK);
    CHECK(index_prepare(x, &c, NULL, &of_c) == OK);
    CHECK(index_prepare(x, &a, NULL, &again) == OK);
    CHECK_INT(found(x, "alpha beta gamma", h), 0);
    index_put(x, 1, of_c);
    index_forget(x, of_b);
    index_put(x, 0, again);
    CHECK(index_check(x));
    index_put(x, 0, of_a);
    CHECK(index_check(x));
    CHECK_INT(found(x, "alpha beta gamma", h), 2);
    index_forget(x, NULL);
    index_free(x);
}

TEST(at_the_limit_of_documents_no_more_are_prepared)
{
    struct index *x = index_of(7);
    struct agent three = agent_of("three", 2), one = agent_of("one", 0);
    struct index_change *c, *more;

    put(x, 0, &three, NULL);
    CHECK(index_prepare(x, &three, NULL, &c) == OK);
    CHECK(index_prepare(x, &three, NULL, &more) == ERR_LIMIT && !more);
    put(x, 2, &one, NULL);
    CHECK(index_prepare(x, &one, NULL, &more) == ERR_LIMIT);
    index_put(x, 1, c);
    CHECK(index_check(x));
    CHECK_INT(index_stats(x).documents, 7);
    CHECK(index_prepare(x, &one, NULL, &more) == ERR_LIMIT);
    index_drop(x, 0);
    CHECK(index_prepare(x, &three, NULL, &more) == OK);
    index_put(x, 6, more); /* the largest number there is */
    CHECK(index_check(x));
    index_free(x);
}

TEST(numbers_of_documents_are_used_again)
{
    struct world *w = world_new(20, 8, 3);

    for (int i = 0; i < 2000; i++)
        any_change(w);
    CHECK(index_check(w->x));
    CHECK(w->x->n_docs <= 21 * (STAGE_SKILLS + 1));
    for (uint32_t i = 0; i <= 20; i++)
        index_drop(w->x, i);
    CHECK(index_check(w->x));
    CHECK_INT(w->x->by_class.n, 0);
    world_free(w);
}

TEST(classes_are_what_visibility_org_and_creator_say)
{
    struct agent a = {.org = STR("acme"), .creator = STR("ann")};

    CHECK_INT(index_class_of(&a).kind, INDEX_CREATOR);
    a.visibility = VISIBILITY_PRIVATE;
    CHECK_INT(index_class_of(&a).kind, INDEX_CREATOR);
    CHECK_STR(index_class_of(&a).name, "ann");
    a.visibility = VISIBILITY_SHARED;
    CHECK_INT(index_class_of(&a).kind, INDEX_ORG);
    CHECK_STR(index_class_of(&a).name, "acme");
    a.org = STR("");
    CHECK_INT(index_class_of(&a).kind, INDEX_CREATOR);
    a.visibility = VISIBILITY_PUBLIC;
    CHECK_INT(index_class_of(&a).kind, INDEX_PUBLIC);
    CHECK_STR(index_class_of(&a).name, "");
}

TEST(an_agent_that_moves_is_seen_by_others)
{
    struct index *x = index_of(100);
    struct agent a = agent_of("mover", 1);
    struct index_hit h[8];

    put(x, 0, &a, NULL);
    CHECK(index_move(x, 0, (struct index_class){INDEX_ORG, STR("acme")}) == OK);
    CHECK(index_check(x));
    CHECK_INT(found(x, "mover", h), 0);
    CHECK(index_move(x, 0, (struct index_class){.kind = INDEX_PUBLIC}) == OK);
    CHECK(index_move(x, 0, (struct index_class){.kind = INDEX_PUBLIC}) == OK);
    CHECK_INT(found(x, "mover", h), 1);
    CHECK(index_move(x, 5, (struct index_class){.kind = INDEX_PUBLIC}) == OK);
    CHECK(index_check(x));
    CHECK_INT(x->by_class.n, 1);
    index_free(x);
}

/* Vectors. */

enum { DIMS = 5 };

static void pack(uint8_t *out, const float (*v)[DIMS], size_t n)
{
    for (size_t i = 0; i < n; i++)
        vec_pack(v[i], DIMS, out + i * vec_packed_bytes(DIMS));
}

static const float three[3][DIMS] = {
    {1, 0, 0, 0, 0}, {0, 2, 0, 0, 0}, {0, 0, 3, 3, 0}};

TEST(vectors_come_back_as_they_were_given)
{
    struct index *x = index_of(100);
    struct agent a = agent_of("a", 2);
    uint8_t packed[3 * (8 + 2 * DIMS)];
    struct buf b;

    index_set_dims(x, DIMS);
    CHECK_INT(index_dims(x), DIMS);
    pack(packed, three, 3);
    put(x, 1, &a, packed);
    buf_init(&b, 1000);
    CHECK(index_vectors(x, 1, &b));
    CHECK(b.n == sizeof(packed) && memcmp(b.p, packed, b.n) == 0);
    CHECK(!index_vectors(x, 0, &b));
    CHECK(!index_vectors(x, 77, &b));
    b.limit = b.n + 1;
    CHECK(!index_vectors(x, 1, &b));
    CHECK_INT(index_stats(x).vectors, 3);
    put(x, 1, &a, NULL);
    CHECK(!index_vectors(x, 1, &b));
    CHECK_INT(index_stats(x).vectors, 0);
    buf_fini(&b);
    index_free(x);
}

TEST(another_model_has_no_vectors_yet_and_takes_no_old_ones)
{
    struct index *x = index_of(100);
    struct agent a = agent_of("a", 2);
    uint8_t packed[3 * (8 + 2 * DIMS)];
    struct index_change *c;
    struct index_hit h[8];
    struct buf b;

    index_set_dims(x, DIMS);
    pack(packed, three, 3);
    put(x, 0, &a, packed);
    CHECK(index_prepare(x, &a, packed, &c) == OK);
    index_set_dims(x, 9);
    CHECK_INT(index_stats(x).vectors, 0);
    index_set_dims(x, DIMS); /* as long as before, and yet another one */
    index_put(x, 1, c);
    CHECK(index_check(x));
    buf_init(&b, 1000);
    CHECK(!index_vectors(x, 0, &b) && !index_vectors(x, 1, &b));
    CHECK_INT(found(x, "translate", h), 2);
    index_set_dims(x, 0);
    put(x, 1, &a, packed);
    CHECK_INT(index_stats(x).vectors, 0);
    buf_fini(&b);
    index_free(x);
}

/* Also one that claims to be longer, or nearer, than it is. */
TEST(what_is_no_packed_vector_is_alike_nothing)
{
    struct index *x = index_of(100);
    struct agent a = agent_of("a", 2);
    uint8_t packed[3 * (8 + 2 * DIMS)];
    float bad[] = {NAN, INFINITY, 1e30F, -1};
    struct index_query q = {.vector = three[0], .sees_all = true};
    struct index_hit h[8];

    index_set_dims(x, DIMS);
    for (size_t i = 0; i < 4; i++) {
        pack(packed, three, 3);
        memcpy(packed, &bad[i], 4);
        put(x, 0, &a, packed);
        CHECK_INT(search_hits(x, &q, h, 8), 0);
    }
    pack(packed, three, 3);
    put(x, 0, &a, packed);
    CHECK_INT(search_hits(x, &q, h, 8), 1);
    CHECK(fabsf(h[0].score - 0.7F) < 1e-6F);
    index_free(x);
}

/* Blocks of every size, and the rows at their edges. */
TEST(documents_are_many_and_vectors_of_any_length)
{
    static const uint32_t dims[] = {1, 63, 64, 65, 4096};

    for (size_t i = 0; i < sizeof(dims) / sizeof(*dims); i++) {
        struct world *w = world_new(dims[i] > 1000 ? 150 : 700, dims[i], i);

        for (uint32_t k = 0; k < w->n_numbers; k++)
            put_any(w, k);
        CHECK(index_stats(w->x).documents > 512);
        for (int k = 0; k < 3; k++)
            CHECK(search_is_exact(w->x, any_query(w), 10));
        CHECK(index_check(w->x));
        world_free(w);
    }
}

TEST(memory_is_counted_and_comes_back_to_what_it_was)
{
    struct world *w = world_new(64, 32, 3);
    size_t before, after;

    for (uint32_t i = 0; i < 64; i++)
        put_any(w, i);
    before = index_stats(w->x).bytes;
    CHECK(before > index_stats(w->x).vector_bytes);
    for (int round = 0; round < 20; round++)
        for (uint32_t i = 0; i < 64; i++)
            put_any(w, i);
    after = index_stats(w->x).bytes;
    CHECK(after < before * 2);
    world_free(w);
}
