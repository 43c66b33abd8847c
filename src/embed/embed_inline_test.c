/* The table on the loop, and the promises that all kinds share. */
#include "test/lib/embed_stage.h"

static struct estage *table_stage(void)
{
    struct estage *st = estage_begin();

    st->opts.kind = EMBED_TABLE;
    estage_open(st);
    return st;
}

TEST(a_vector_is_there_at_once_and_the_same_later)
{
    struct estage *st = table_stage();
    struct embed_stamp stamp = embed_stamp(st->embed);
    float v[BUILTIN_DIMS];
    struct owner *o;

    CHECK_STR(str_of(stamp.name), "table");
    CHECK(stamp.hash[0] && stamp.dims == BUILTIN_DIMS);
    CHECK(embed_now(st->embed, STR("book a flight"), EMBED_QUERY, v));
    o = ASK(st, "", "book a flight");
    AWAIT(st, o->n_done);
    CHECK(o->e == OK && embed_stamp_is(&o->stamp, &stamp));
    CHECK(memcmp(o->vectors + BUILTIN_DIMS, v, sizeof(v)) == 0);
    CHECK(o->vectors[0] == 0);
    owner_free(o);
    o = TELL(st, "book a flight");
    AWAIT(st, o->n_done);
    CHECK(memcmp(o->vectors, v, sizeof(v)) == 0);
    owner_free(o);
    CHECK_INT(embed_stats(st->embed).texts_total, 3);
    CHECK_INT(embed_stats(st->embed).cache_entries, 0);
    estage_free(st);
}

TEST(what_is_longer_than_counts_is_cut_off)
{
    struct estage *st = table_stage();
    char *text = malloc(EMBED_TEXT_MAX + 100);
    float v[BUILTIN_DIMS], cut[BUILTIN_DIMS];

    memset(text, ' ', EMBED_TEXT_MAX + 100);
    memcpy(text, "flight", 6);
    memcpy(text + EMBED_TEXT_MAX, " weather tomorrow", 17);
    CHECK(embed_now(st->embed, (struct str){text, EMBED_TEXT_MAX + 100},
                    EMBED_QUERY, v));
    CHECK(embed_now(st->embed, (struct str){text, EMBED_TEXT_MAX}, EMBED_QUERY,
                    cut));
    CHECK(memcmp(v, cut, sizeof(v)) == 0);
    free(text);
    estage_free(st);
}

/* Work per turn is limited: a large call does not delay the loop, and a query
 * does not wait for its end. */
TEST(much_is_done_in_many_turns_and_questions_go_first)
{
    enum { MANY = 1000 };
    struct estage *st = estage_begin();
    static struct str texts[MANY];
    struct owner *docs = calloc(1, sizeof(*docs)), *q;

    st->opts.kind = EMBED_TABLE;
    st->opts.max_waiting = 2 * MANY;
    st->opts.max_waiting_bytes = 8 << 20;
    estage_open(st);
    for (int i = 0; i < MANY; i++)
        texts[i] = STR("the weather of tomorrow");
    CHECK(embed_start(st->embed, texts, MANY, EMBED_DOCUMENT, owner_done, docs,
                      &docs->id, NULL) == OK);
    eturn(st);
    CHECK(!docs->n_done);
    q = ASK(st, "book a flight");
    eturn(st);
    CHECK(q->n_done && !docs->n_done);
    AWAIT(st, docs->n_done);
    CHECK(docs->e == OK && docs->n == MANY);
    owner_free(docs);
    owner_free(q);
    estage_free(st);
}

TEST(cancel_and_stop_are_fine_at_any_moment)
{
    for (int turns = 0; turns < 4; turns++) {
        struct estage *st = table_stage();
        struct owner *a = ASK(st, "a"), *b = TELL(st, "b");

        eturns(st, turns);
        embed_cancel(st->embed, a->id);
        embed_stop(st->embed, estage_stopped, st);
        embed_stop(st->embed, estage_stopped, st); /* twice is once */
        CHECK(!st->n_stopped);
        AWAIT(st, st->n_stopped == 1);
        CHECK(a->n_done == (turns > 0) && b->n_done == 1);
        owner_free(a);
        owner_free(b);
        estage_free(st);
    }
}

TEST(ids_of_what_is_over_are_nobody)
{
    struct estage *st = table_stage();
    struct owner *a = ASK(st, "a"), *b;

    AWAIT(st, a->n_done);
    b = ASK(st, "b"); /* in the same place */
    CHECK(a->id != b->id);
    embed_cancel(st->embed, a->id);
    embed_cancel(st->embed, 0);
    embed_cancel(st->embed, UINT64_MAX);
    AWAIT(st, b->n_done);
    owner_free(a);
    owner_free(b);
    estage_free(st);
}
