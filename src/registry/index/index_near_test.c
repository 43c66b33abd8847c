/* The similarity of a text to every agent never exceeds its guess while agents
 * come and go; and which agents are generic. */
#include "test/t.h"

#include "test/lib/index_stage.h"

#include "test/lib/control.h"

#include "base/fault.h"

/* How many agents are nearer than they were guessed to be, or have other
 * figures than they should. */
static int n_wrong(struct world *w, const struct index_query *q)
{
    static uint8_t packed[8 + 2 * STAGE_DIMS_MAX];
    static struct index_near guess[4096];
    const struct index_near *near;
    struct str vector = {(char *)packed, vec_packed_bytes(w->dims)};
    size_t n;
    int wrong = 0;

    if (!q->vector || !vec_pack(q->vector, w->dims, packed))
        vector.n = 0;
    CHECK(index_near_guess(w->x, q, vector, &near, &n) == OK && n <= 4096);
    if (n)
        memcpy(guess, near, n * sizeof(*near));
    for (size_t i = n; i-- > 0;) {
        const struct index_entry *e = w->x->agents[i];
        const uint64_t *visible = w->x->search.visible;
        bool is_seen = e && visible[e->docs[0] / 64] >> e->docs[0] % 64 & 1;

        CHECK(!near[i].is_fine && near[i].is_seen == is_seen);
        (void)index_near_fine(w->x, (uint32_t)i);
        wrong += near[i].cosine > guess[i].cosine ||
                 near[i].text != guess[i].text ||
                 (near[i].cosine < 0) != (guess[i].cosine < 0);
        if (near[i].skill != INDEX_AGENT)
            CHECK(near[i].skill + 1 < e->n_docs);
    }
    if (n)
        memcpy(guess, near, n * sizeof(*near));
    CHECK(index_near(w->x, q, vector, &near, &n) == OK && n <= 4096);
    for (size_t i = 0; i < n; i++)
        CHECK(guess[i].cosine == near[i].cosine &&
              guess[i].text == near[i].text && guess[i].skill == near[i].skill);
    return wrong;
}

/* Whether each agent's best skill is the one that a search by the same text
 * names first. */
static int n_other_skills(struct world *w, struct index_query q)
{
    static uint8_t packed[8 + 2 * STAGE_DIMS_MAX];
    static struct index_hit hits[4096];
    const struct index_near *near;
    struct str vector = {(char *)packed, vec_packed_bytes(w->dims)};
    size_t n, n_hits;
    int wrong = 0;

    q.fusion = INDEX_WEIGHTED;
    q.admits = NULL;
    if (!q.vector || !vec_pack(q.vector, w->dims, packed))
        vector.n = 0;
    CHECK(index_search_slow(w->x, &q, hits, 4096, &n_hits) == OK);
    CHECK(index_near(w->x, &q, vector, &near, &n) == OK && n <= 4096);
    for (size_t i = 0; i < n; i++) {
        const struct index_entry *e = w->x->agents[i];

        if (near[i].is_seen)
            wrong += (near[i].skill == INDEX_AGENT) != (e->n_docs == 1);
    }
    for (size_t i = 0; i < n_hits; i++) {
        const struct index_hit *h = &hits[i];

        for (size_t k = 0; k < h->n_matches; k++)
            if (h->matches[k].skill != INDEX_AGENT) {
                wrong += near[h->number].skill != h->matches[k].skill;
                break;
            }
    }
    return wrong;
}

TEST(the_best_skill_is_named_even_where_the_agent_itself_is_nearer)
{
    struct world *w = world_new(150, 32, 32);

    for (uint32_t i = 0; i < w->n_numbers; i++)
        put_any(w, i);
    for (int i = 0; i < 150; i++) {
        for (uint32_t k = any(w, 6); k > 0; k--)
            any_change(w);
        CHECK_INT(n_other_skills(w, *any_query(w)), 0);
    }
    world_free(w);
}

static int storm(uint32_t agents, uint32_t dims, int queries)
{
    struct world *w = world_new(agents, dims, dims);
    struct index_query q;
    int wrong = 0;

    for (uint32_t i = 0; i < w->n_numbers; i++)
        put_any(w, i);
    for (int i = 0; i < queries; i++) {
        for (uint32_t k = any(w, 6); k > 0; k--)
            any_change(w);
        q = *any_query(w);
        q.is_plain = i % 2;
        wrong += n_wrong(w, &q);
    }
    CHECK(index_check(w->x));
    world_free(w);
    return wrong;
}

TEST(nobody_is_nearer_than_guessed)
{
    CHECK_INT(storm(150, 32, 150), 0);
    CHECK_INT(storm(60, 1, 60), 0);
    CHECK_INT(storm(70, 255, 60), 0);
    CHECK_INT(storm(300, 256, 40), 0);
    CHECK_INT(storm(0, 8, 4), 0);
}

/* The control. */
TEST(half_the_bound_is_not_enough)
{
    fault_arm_at("index.tight_bound", 1);
    CHECK(storm(300, 32, 4000) > 0);
    CHECK(fault_fired());
    fault_arm(0);
}

/* A skill that is what was asked, of an agent that is as a whole nothing like
 * it; how near that makes the agent. */
static float nearness_by(bool is_plain, struct skill skill,
                         struct str description)
{
    const struct index_query q = {
        .text = STR("x"), .sees_all = true, .is_plain = is_plain};
    struct agent a = {.name = STR("someone"),
                      .description = description,
                      .visibility = VISIBILITY_PUBLIC,
                      .skills = &skill,
                      .n_skills = 1};
    const float other[] = {1, 0}, same[] = {0, 1};
    size_t each = vec_packed_bytes(2), n;
    uint8_t packed[2 * (8 + 2 * 2)];
    struct index *x = index_new(10, stage_seed);
    const struct index_near *near;
    struct index_change *c;
    float cosine;

    CHECK(x && vec_pack(other, 2, packed) && vec_pack(same, 2, packed + each));
    index_set_dims(x, 2);
    CHECK(index_prepare(x, &a, packed, &c) == OK);
    index_put(x, 0, c);
    CHECK(index_near(x, &q, (struct str){(char *)packed + each, each}, &near,
                     &n) == OK);
    cosine = n == 1 ? near[0].cosine : -1;
    index_free(x);
    return cosine;
}

static float nearness(struct skill skill, struct str description)
{
    return nearness_by(false, skill, description);
}

static bool is_about(float a, double b)
{
    return (double)a > b - 1e-4 && (double)a < b + 1e-4;
}

TEST(a_skill_counts_as_far_as_it_says_something)
{
    const struct str examples[] = {STR("brew green tea"), STR("cold milk")};
    struct skill one = {.id = STR("a"), .name = STR("tea")};
    struct skill three = {
        .id = STR("a"), .name = STR("tea"), .description = STR("boil water")};
    struct skill eight = three;
    const struct str shorter = STR(""), longer = STR("a card of many words");

    eight.examples = (struct strs){examples, 2};
    CHECK(is_about(nearness(one, shorter), 0.5));
    CHECK(is_about(nearness(three, shorter), 3.0 / 4));
    CHECK(is_about(nearness(eight, shorter), 8.0 / 9));
    /* Words of the card are not the skill's. */
    CHECK(is_about(nearness(one, longer), 0.5));
    CHECK(is_about(nearness(three, longer), 3.0 / 4));
    /* Seed 001 knows no such part: there the largest cosine counts. */
    CHECK(is_about(nearness_by(true, one, shorter), 1));
    CHECK(is_about(nearness_by(true, three, longer), 1));
}

/* Like everything. */

enum { DIMS = 64 };

/* owner NULL: the platform. */
static void put_of(struct index *x, uint32_t number, const float *v,
                   const char *creator, enum visibility seen_by)
{
    struct agent a = {.name = STR("someone"),
                      .description = STR("says little"),
                      .visibility = seen_by,
                      .kind = creator ? AGENT_MANAGED : AGENT_PLATFORM,
                      .creator = str_of(creator ? creator : "anna")};
    uint8_t packed[8 + 2 * DIMS];
    struct index_change *c;

    CHECK(vec_pack(v, DIMS, packed));
    CHECK(index_prepare(x, &a, packed, &c) == OK);
    index_put(x, number, c);
}

static void put(struct index *x, uint32_t number, const float *v,
                enum visibility seen_by)
{
    put_of(x, number, v, NULL, seen_by);
}

/* One of many topics, with something of all. */
static void topic(uint32_t i, float *v)
{
    for (uint32_t k = 0; k < DIMS; k++)
        v[k] = 0.05F + (float)((i * 7 + k * 3) % 11) / 300;
    v[i % DIMS] = 1;
}

static struct index *fleet(uint32_t n)
{
    struct index *x = index_new(1000, stage_seed);
    float v[DIMS];

    CHECK(x);
    index_set_dims(x, DIMS);
    for (uint32_t i = 0; i < n; i++) {
        topic(i, v);
        put(x, i, v, VISIBILITY_PUBLIC);
    }
    return x;
}

static float generic_of(struct index *x, uint32_t number)
{
    const struct index_query q = {.text = STR("x"), .sees_all = true};
    const struct index_near *near;
    size_t n;

    CHECK(index_near(x, &q, STR(""), &near, &n) == OK && number < n);
    return near[number].generic;
}

TEST(who_says_something_of_everything_is_marked_down)
{
    struct index *x = fleet(40);
    float v[DIMS];

    for (uint32_t i = 0; i < DIMS; i++)
        v[i] = 1;
    put(x, 40, v, VISIBILITY_PUBLIC);
    CHECK(generic_of(x, 40) == 0.15F);
    for (uint32_t i = 0; i < 40; i++)
        CHECK(generic_of(x, i) < 0.05F);
    index_drop(x, 40);
    CHECK(generic_of(x, 0) < 0.05F);
    index_free(x);
}

TEST(of_few_nobody_is_marked_down_nor_without_vectors)
{
    struct index *x = fleet(18);
    float v[DIMS];

    for (uint32_t i = 0; i < DIMS; i++)
        v[i] = 1;
    put(x, 18, v, VISIBILITY_PUBLIC);
    CHECK(generic_of(x, 18) == 0);
    topic(19, v);
    put(x, 19, v, VISIBILITY_PUBLIC);
    CHECK(generic_of(x, 18) > 0);
    index_set_dims(x, DIMS);
    CHECK(generic_of(x, 18) == 0);
    index_free(x);
}

/* No figure depends on private agents, nor on the order of arrival. */
TEST(what_is_private_marks_nobody_down)
{
    struct index *a = fleet(40), *b = fleet(0);
    float v[DIMS];

    for (uint32_t i = 40; i-- > 0;) {
        topic(i, v);
        put(b, i, v, VISIBILITY_PUBLIC);
    }
    for (uint32_t i = 40; i < 90; i++) {
        topic(3, v);
        put(b, i, v, VISIBILITY_PRIVATE);
    }
    for (uint32_t i = 0; i < 40; i++)
        CHECK(generic_of(a, i) == generic_of(b, i));
    CHECK(index_move(b, 50, (struct index_class){INDEX_PUBLIC, {NULL, 0}}) ==
          OK);
    CHECK(generic_of(b, 3) != generic_of(a, 3));
    index_free(a);
    index_free(b);
}

/* A private card of anna, and whether its word is said to `user`, who may have
 * been granted it. */
static bool is_said_to(const char *user, bool is_granted)
{
    struct index *x = fleet(3);
    struct index_query q = {.creator = str_of(user)};
    struct str words[] = {STR("little"), STR("nothing")};
    uint32_t granted = 7;
    bool has_word[2] = {false, true};
    float v[DIMS];

    for (uint32_t i = 0; i < 3; i++)
        index_drop(x, i);
    topic(1, v);
    put_of(x, granted, v, "anna", VISIBILITY_PRIVATE);
    if (is_granted) {
        q.granted = &granted;
        q.n_granted = 1;
    }
    CHECK(index_says(x, &q, words, 2, has_word) == OK);
    CHECK(!has_word[1]);
    index_free(x);
    return has_word[0];
}

TEST(words_of_cards_that_are_not_visible_are_not_said)
{
    CHECK(is_said_to("anna", false));
    CHECK(!is_said_to("bert", false));
    CHECK(is_said_to("bert", true));
}

/* The control. */
TEST(words_of_all_cards_would_be_noticed)
{
    fault_arm_at("index.all_classes", 1);
    CHECK(is_said_to("bert", false));
    fault_arm(0);
}

/* Some have more in common with all than others. */
static void any_topic(uint64_t *dice, float *v)
{
    float common = 0;

    for (uint32_t i = 0; i <= DIMS; i++) {
        *dice = *dice * 6364136223846793005u + 1442695040888963407u;
        if (i == 0)
            common = 0.3F + 0.05F * (float)(*dice >> 40) / (1 << 24);
        else
            v[i - 1] = common + 5 * ((float)(*dice >> 40) / (1 << 24) - 0.5F);
    }
}

/* Otherwise a creator with many cards could move the centre to the topic of
 * another agent and have it penalized. */
TEST(many_cards_of_one_creator_are_one_vote)
{
    struct index *x = index_new(1000, stage_seed);
    float v[DIMS], before;
    uint64_t dice = 5;
    char who[8];

    CHECK(x);
    index_set_dims(x, DIMS);
    for (uint32_t i = 0; i < 40; i++) {
        any_topic(&dice, v);
        put_of(x, i, v, i % 2 ? "" : NULL, VISIBILITY_PUBLIC);
    }
    any_topic(&dice, v);
    put_of(x, 40, v, "ben", VISIBILITY_PUBLIC);
    before = generic_of(x, 40);
    CHECK(before == 0);
    for (uint32_t i = 0; i < 8; i++)
        put_of(x, 50 + i, v, "eve", VISIBILITY_PUBLIC);
    CHECK(generic_of(x, 40) == 0);
    for (uint32_t i = 1; i < 8; i++)
        index_drop(x, 50 + i);
    CHECK(generic_of(x, 40) == 0);
    /* The same cards of so many people are that many. */
    for (uint32_t i = 0; i < 8; i++) {
        snprintf(who, sizeof(who), "u%u", i);
        put_of(x, 50 + i, v, who, VISIBILITY_PUBLIC);
    }
    CHECK(generic_of(x, 40) > 0);
    index_free(x);
}

/* Cards of one creator are no common run, however many. */
TEST(of_few_creators_nobody_is_marked_down)
{
    struct index *x = fleet(18);
    float v[DIMS];

    for (uint32_t i = 0; i < DIMS; i++)
        v[i] = 1;
    for (uint32_t i = 0; i < 30; i++)
        put_of(x, 20 + i, v, "eve", VISIBILITY_PUBLIC);
    CHECK(generic_of(x, 20) == 0);
    topic(30, v);
    put_of(x, 60, v, "ben", VISIBILITY_PUBLIC); /* the twentieth */
    CHECK(generic_of(x, 20) > 0);
    index_free(x);
}

static bool add(void *ctx, struct str bytes)
{
    buf_add_str(ctx, bytes);
    return true;
}

/* How many are judged otherwise than by an index that was made at once. */
static int n_otherwise(struct index *x)
{
    const uint8_t stamp[INDEX_STAMP_BYTES] = "now";
    struct index *fresh = index_new(x->max_docs, stage_seed);
    int n = 0;
    struct buf b;

    buf_init(&b, 64 << 20);
    CHECK(fresh && index_save(x, stamp, add, &b) == OK);
    CHECK(index_restore(fresh, stamp, buf_str(&b), NULL) == OK);
    for (uint32_t i = 0; i < x->agents_end; i++)
        if (x->agents[i] && generic_of(x, i) != generic_of(fresh, i))
            n++;
    buf_fini(&b);
    index_free(fresh);
    return n;
}

TEST(what_is_kept_of_the_total_is_what_making_it_anew_gives)
{
    struct world *w = world_new(120, 16, 3);
    int n_marked = 0;

    for (uint32_t i = 0; i < w->n_numbers; i++)
        put_any(w, i);
    for (int i = 0; i < 60; i++) {
        for (uint32_t k = any(w, 8); k > 0; k--)
            any_change(w);
        if (i == 30) { /* another model, all vectors new */
            index_set_dims(w->x, 16);
            for (uint32_t k = 0; k < w->n_numbers; k++)
                put_any(w, k);
        }
        if (any(w, 3))
            CHECK_INT(n_otherwise(w->x), 0);
        for (uint32_t k = 0; k < w->x->agents_end; k++)
            n_marked += w->x->agents[k] && generic_of(w->x, k) > 0;
    }
    CHECK(n_marked > 0);
    CHECK(index_check(w->x));
    world_free(w);
}

TEST(being_near_survives_every_fault)
{
    const struct index_query q = {.text = STR("little"), .sees_all = true};
    bool has_fired = true;

    for (long nth = 1; has_fired; nth++) {
        struct index *x = fleet(28);
        const struct index_near *near;
        float v[DIMS];
        size_t n;
        enum err e;

        topic(5, v);
        put_of(x, 28, v, "eve", VISIBILITY_PUBLIC);
        put_of(x, 29, v, "eve", VISIBILITY_PUBLIC);
        fault_arm(nth);
        e = index_near(x, &q, STR(""), &near, &n);
        has_fired = fault_fired();
        fault_arm(0);
        CHECK(has_fired ? e == ERR_NOMEM : e == OK);
        CHECK(has_fired || nth > 5);
        CHECK(index_check(x));
        CHECK(index_near(x, &q, STR(""), &near, &n) == OK && n == 30);
        CHECK(near[29].text > 0 && near[29].cosine < 0);
        index_free(x);
    }
}

/* Two parts. */

/* How alike an agent is as a whole, by the rule alone. */
static float like_by_rule(const struct index *x, struct str query,
                          uint32_t number)
{
    uint32_t dims = index_dims(x);
    struct vec_packed a, b;
    struct buf own;
    double like = -1;

    buf_init(&own, 65536);
    if (index_profile(x, number, &own)) {
        CHECK(vec_packed_open(&a, (const uint8_t *)query.p, query.n, dims));
        CHECK(vec_packed_open(&b, (const uint8_t *)own.p, own.n, dims));
        like = vec_likeness(&a, &b, index_quick(x));
        like = like > 0 ? (like < 1 ? like : 1) : 0;
    }
    buf_fini(&own);
    return (float)like;
}

TEST(quick_and_full_texts_are_compared_with_quick_and_full_agents)
{
    static const uint32_t quick[] = {1, 7, 16, 23};

    for (size_t t = 0; t < 4; t++) {
        struct world *w = world_of_parts(100, 24, quick[t], t + 1);
        uint8_t packed[8 + 2 * 24];
        size_t n_compared = 0;

        for (uint32_t i = 0; i < w->n_numbers; i++)
            put_any(w, i);
        for (int i = 0; i < 60; i++) {
            const struct index_query q = {.text = STR("x"), .sees_all = true};
            struct str vector = {(const char *)packed, sizeof(packed)};
            const struct index_near *near;
            float v[24], bounds[100];
            size_t n;

            any_vector(w, v);
            if (!vec_pack(v, 24, packed))
                continue;
            CHECK(index_near_guess(w->x, &q, vector, &near, &n) == OK);
            for (uint32_t k = 0; k < n; k++)
                bounds[k] = near[k].cosine;
            for (uint32_t k = 0; k < n; k++) {
                float profile = index_near_fine(w->x, k)->profile;

                if (!near[k].is_seen)
                    continue;
                CHECK(near[k].cosine <= bounds[k]);
                CHECK(profile == like_by_rule(w->x, vector, k));
                n_compared += profile > 0;
            }
        }
        CHECK(n_compared > 1000);
        world_free(w);
    }
}

/* The same agents, in one index with their quick vectors, in the other with
 * full ones of the same first parts. */
static void check_quick_text(void)
{
    enum { N = 60, QUICK = 16, ALL = 40 };
    struct index *x[2] = {index_new(200, stage_seed),
                          index_new(200, stage_seed)};
    struct world *w = world_new(1, ALL, 7);
    const struct index_query q = {.text = STR("x"), .sees_all = true};
    const struct index_near *near[2];
    uint8_t packed[8 + 2 * ALL];
    struct index_change *c;
    size_t n;

    for (int k = 0; k < 2; k++)
        index_set_parts(x[k], ALL, QUICK);
    for (uint32_t i = 0; i < N; i++) {
        struct agent a = {.name = STR("a"), .kind = AGENT_PLATFORM};
        float v[ALL];

        for (size_t k = 0; k < ALL; k++)
            v[k] = 0.4F + any_part(w);
        for (int k = 1; k >= 0; k--) {
            CHECK(vec_join(v, ALL, QUICK));
            if (!k)
                memset(v + QUICK, 0, (ALL - QUICK) * sizeof(*v));
            CHECK(vec_pack(v, ALL, packed));
            CHECK(index_prepare(x[k], &a, packed, &c) == OK);
            index_put(x[k], i, c);
        }
    }
    for (int i = 0; i < 20; i++) {
        float v[ALL] = {0};

        for (size_t k = 0; k < QUICK; k++)
            v[k] = any_part(w);
        CHECK(vec_pack(v, ALL, packed));
        for (int k = 0; k < 2; k++)
            CHECK(index_near(x[k], &q,
                             (struct str){(const char *)packed, sizeof(packed)},
                             &near[k], &n) == OK);
        for (size_t k = 0; k < N; k++) {
            CHECK(fabsf(near[0][k].cosine - near[1][k].cosine) < 1e-4F);
            /* Generic cards are found by first parts. */
            CHECK(fabsf(near[0][k].generic - near[1][k].generic) < 2e-3F);
        }
    }
    world_free(w);
    index_free(x[0]);
    index_free(x[1]);
}

TEST(a_quick_text_finds_the_same_whichever_vectors_agents_have)
{
    check_quick_text();
}

/* The control. */
TEST(without_the_gain_it_would_not)
{
    check_control("vec.no_gain", check_quick_text);
}

TEST(with_two_parts_the_total_is_what_making_it_anew_gives)
{
    struct world *w = world_of_parts(120, 24, 10, 4);

    for (uint32_t i = 0; i < w->n_numbers; i++)
        put_any(w, i);
    for (int i = 0; i < 40; i++) {
        for (uint32_t k = any(w, 8); k > 0; k--)
            any_change(w);
        CHECK_INT(n_otherwise(w->x), 0);
    }
    CHECK(index_check(w->x));
    world_free(w);
}
