/* Whatever fails while a document is prepared or moved, everything is as it
 * was. */
#include "registry/index/internal.h"

#include "base/fault.h"
#include "test/t.h"

static const uint64_t seed[2] = {1, 2};

static const struct str tags[] = {{"sql", 3}};
static const struct skill skill = {.name = {"tuneQuery", 9},
                                   .description = {"makes queries fast", 18},
                                   .tags = {tags, 1}};
static const struct agent agent = {.name = {"database", 8},
                                   .description = {"Keeps your tables", 17}};

/* One document is there already, and shares words with the others. */
static enum err try_all(struct text *t)
{
    struct text_doc *a = NULL, *b = NULL;
    enum err e = text_room(t, 9, 9);

    if (!e)
        e = text_prepare(t, &agent, &skill, &a);
    if (!e)
        e = text_prepare(t, &agent, NULL, &b);
    if (e) {
        text_forget(t, a);
        return e;
    }
    text_put(t, 1, 1, a);
    text_put(t, 2, 2, b);
    e = text_move_room(t, 1);
    if (!e)
        e = text_move_room(t, 2);
    if (!e) {
        text_move(t, 1, 3);
        text_move(t, 2, 3);
    }
    text_drop(t, 1);
    text_drop(t, 2);
    return e;
}

static struct text *with_one(void)
{
    static const struct agent one = {.name = {"tables", 6}};
    struct text *t = text_new(10, seed);
    struct text_doc *d;

    CHECK(t && text_room(t, 1, 1) == OK);
    CHECK(text_prepare(t, &one, NULL, &d) == OK);
    text_put(t, 0, 0, d);
    return t;
}

TEST(documents_survive_every_fault)
{
    uint64_t seen = 1;
    long nth = 0;
    bool has_fired;

    do {
        struct text *t = with_one();
        struct text_query q;
        enum err e;

        fault_arm(++nth);
        e = try_all(t);
        has_fired = fault_fired();
        fault_arm(0);
        CHECK(has_fired ? e == ERR_NOMEM : e == OK);
        CHECK(text_check(t));
        CHECK_INT(text_n_terms(t), 1);
        text_query(t, STR("table"), &seen, 1, &q);
        CHECK(text_score_one(t, &q, 0) > 0);
        CHECK(try_all(t) == OK);
        text_free(t);
    } while (has_fired);
    CHECK(nth > 10);
}

/* The control: putting cannot fail, so it allocates nothing. */
TEST(putting_and_searching_ask_for_no_memory)
{
    struct text *t = with_one();
    struct text_doc *d;
    struct text_query q;
    uint64_t seen = 3;
    float scores[8] = {0};
    uint32_t touched[8];

    CHECK(text_room(t, 8, 2) == OK);
    CHECK(text_prepare(t, &agent, NULL, &d) == OK);
    fault_arm(1);
    text_put(t, 1, 1, d);
    text_query(t, STR("keep the tables of strangers"), &seen, 2, &q);
    CHECK_INT(text_score_all(t, &q, &seen, true, scores, touched), 2);
    text_drop(t, 0);
    CHECK(!fault_fired());
    text_free(t);
}
