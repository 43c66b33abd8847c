/* A whole training, small: its bytes depend on what they should, and on
 * nothing else. */
#include "embed/table.h"
#include "train/train_stage.h"

TEST(the_same_recipe_gives_the_same_bytes_with_any_number_of_threads)
{
    struct recipe other = toy_recipe();
    struct train_result first, again;

    toy_train(&first, toy_recipe(), 1);
    for (unsigned n = 1; n <= 2; n++) {
        toy_train(&again, toy_recipe(), n);
        CHECK(strcmp(first.hash, again.hash) == 0);
        CHECK(str_eq(buf_str(&first.table), buf_str(&again.table)));
        train_result_fini(&again);
    }
    other.seed++; /* the control: it is not the same whatever one does */
    toy_train(&again, other, 2);
    CHECK(strcmp(first.hash, again.hash) != 0);
    train_result_fini(&again);
    train_result_fini(&first);
}

TEST(it_comes_nearer_to_its_teacher)
{
    struct recipe r = toy_recipe();
    struct train_result t;

    r.epochs = 8;
    toy_train(&t, r, 2);
    CHECK(t.first.n_held > 10 && t.first.n_pairs > 10);
    CHECK(t.floats.cosine > t.first.cosine + 0.05);
    CHECK(t.floats.cosine > 0.8);
    CHECK(fabs(t.bytes.cosine - t.floats.cosine) < 0.002);
    CHECK(t.kept > 0.999); /* of no more numbers than the table has */
    train_result_fini(&t);
}

/* The file, as the server reads it. */
static void check_table(const struct train_result *t)
{
    struct builtin b;
    float v[BUILTIN_DIMS], w[BUILTIN_DIMS], other[BUILTIN_DIMS];
    char *bytes = aligned_alloc(64, (t->table.n + 63) / 64 * 64);

    CHECK(bytes != NULL);
    memcpy(bytes, t->table.p, t->table.n);
    CHECK(builtin_open_bytes(&b, (struct str){bytes, t->table.n}, NULL) == OK);
    CHECK_INT(b.table.words.n, t->n_pieces + t->n_words);
    CHECK_INT(b.table.n_phrases, t->n_phrases);
    CHECK(t->n_words > 0 && t->n_phrases > 0);
    builtin_embed(&b, STR("Book a flight, right now"), v);
    builtin_embed(&b, STR("right now: I want to book the flight"), w);
    builtin_embed(&b, STR("delete the photo of the kubernetes cluster"), other);
    CHECK(vec_cosine(v, BUILTIN_DIMS, w, BUILTIN_DIMS) >
          vec_cosine(v, BUILTIN_DIMS, other, BUILTIN_DIMS));
    free(bytes);
}

/* The hash in the card is the one that a server shows. */
static void check_stamp(const struct train_result *t)
{
    struct table_head h;
    uint8_t sum[TABLE_HASH_BYTES];
    char hex[HASH_CHARS + 1];

    memcpy(&h, t->table.p, sizeof(h));
    table_hash(buf_str(&t->table), sum);
    CHECK(memcmp(sum, h.hash, sizeof(sum)) == 0);
    for (size_t i = 0; i < sizeof(sum); i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    CHECK(strcmp(hex, t->inner_hash) == 0);
}

TEST(pairs_that_were_not_learnt_from_are_not_counted)
{
    struct recipe r = toy_recipe();
    struct train_result t;

    r.pair_epochs = 0;
    toy_train(&t, r, 1);
    CHECK(t.n_trained > 0);
    CHECK_INT(t.n_pairs, 0);
    train_result_fini(&t);
}

TEST(table_and_card_are_of_one_training)
{
    struct train_job job = {
        .recipe = toy_recipe(), .n_threads = 1, .is_quiet = true};
    struct train_result t;
    struct corpus c;
    struct toy toy;
    struct toy_speech speech;
    struct buf card;

    toy_init(&toy);
    toy_texts(&c, &job.recipe);
    toy_speech_init(&speech, &c);
    job.teacher = &toy.teacher;
    job.grammar = &speech.grammar;
    job.lexicon = &speech.lexicon;
    CHECK(train_make(&t, &c, &job, NULL) == OK);
    check_table(&t);
    check_stamp(&t);
    buf_init(&card, 1 << 16);
    card_write(&(struct card){&job, &t, &c, "f00d", "make table"}, &card);
    buf_add_char(&card, '\0');
    CHECK(!card.over);
    CHECK(strstr(card.p, t.hash) && strstr(card.p, toy.teacher.hash));
    CHECK(strstr(card.p, t.inner_hash) && strcmp(t.inner_hash, t.hash) != 0);
    CHECK(strstr(card.p, "| pair_epochs | 1 |"));
    CHECK(t.n_pairs > 0 && strstr(card.p, " pairs |\n\n## Texts"));
    CHECK(strstr(card.p, speech.grammar.hash));
    CHECK(strstr(card.p, "| tldr |") && strstr(card.p, "CC BY 4.0"));
    buf_fini(&card);
    train_result_fini(&t);
    toy_speech_fini(&speech);
    corpus_fini(&c);
    toy_fini(&toy);
}
