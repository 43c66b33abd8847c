#include "test/t.h"

#include "base/fault.h"
#include "test/lib/table_stage.h"

TEST(what_is_written_is_read)
{
    struct toy y;
    struct embed_table t;
    struct why why = {""};

    toy_init(&y);
    CHECK(table_open(&t, y.bytes, &why) == OK);
    CHECK_INT(t.words.n, N_TOY_WORDS);
    for (uint32_t i = 0; i < N_TOY_WORDS; i++) {
        CHECK(str_eq(vocab_piece(&t.words, i), toy_words[i]));
        CHECK_INT(vocab_find(&t.words, STR(""), toy_words[i]), i);
    }
    for (uint32_t i = 0; i < N_TOY_PHRASES; i++)
        CHECK_INT(table_phrase(&t, toy_phrases[i].first, toy_phrases[i].second),
                  N_TOY_WORDS + i);
    CHECK(memcmp(t.rows, y.rows, N_TOY_ROWS * TABLE_DIMS) == 0);
    CHECK(memcmp(t.scales, y.scales, N_TOY_ROWS * sizeof(float)) == 0);
    CHECK(t.unknown_scale == y.parts.unknown_scale);
    CHECK((uintptr_t)t.rows % 64 == 0);
    toy_fini(&y);
}

TEST(no_other_pair_is_a_phrase)
{
    struct toy y;
    struct embed_table t;
    int n = 0;

    toy_init(&y);
    CHECK(table_open(&t, y.bytes, NULL) == OK);
    for (uint32_t a = 0; a < 300; a++)
        for (uint32_t b = 0; b < 300; b++)
            n += table_phrase(&t, a, b) != VOCAB_NONE;
    CHECK_INT(n, N_TOY_PHRASES);
    toy_fini(&y);
}

TEST(the_same_parts_make_the_same_bytes)
{
    struct toy a, b;

    toy_init(&a);
    toy_init(&b);
    CHECK(str_eq(a.bytes, b.bytes));
    toy_fini(&a);
    toy_fini(&b);
}

TEST(whoever_reads_a_table_can_write_it)
{
    struct toy y;
    struct embed_table t;
    struct str words[N_TOY_WORDS];
    struct table_parts p = {.words = words, .n_words = N_TOY_WORDS};
    struct buf out;

    toy_init(&y);
    CHECK(table_open(&t, y.bytes, NULL) == OK);
    for (uint32_t i = 0; i < N_TOY_WORDS; i++)
        words[i] = vocab_piece(&t.words, i);
    p.phrases = t.phrases;
    p.n_phrases = t.n_phrases;
    p.rows = t.rows;
    p.scales = t.scales;
    p.unknown_scale = t.unknown_scale;
    buf_init(&out, TABLE_BYTES_MAX);
    CHECK(table_write(&p, &out, NULL) == OK);
    CHECK(str_eq(buf_str(&out), y.bytes));
    buf_fini(&out);
    toy_fini(&y);
}

TEST(there_may_be_no_phrases)
{
    struct toy y;
    struct embed_table t;

    toy_parts(&y, toy_words, N_TOY_WORDS, NULL, 0);
    toy_write(&y);
    CHECK(table_open(&t, y.bytes, NULL) == OK);
    CHECK_INT(t.n_phrases, 0);
    CHECK(table_phrase(&t, TOY_NEW, TOY_YORK) == VOCAB_NONE);
    toy_fini(&y);
}

TEST(there_may_be_no_words)
{
    struct toy y;
    struct embed_table t;

    toy_parts(&y, NULL, 0, NULL, 0);
    toy_write(&y);
    CHECK(table_open(&t, y.bytes, NULL) == OK);
    CHECK_INT(t.words.n, 0);
    toy_fini(&y);
}

enum { N_MANY = 20000 };

/* "w0" to "w19999", valid as long as the test. */
static const struct str *many_words(void)
{
    static char text[N_MANY][8];
    static struct str words[N_MANY];

    for (int i = 0; i < N_MANY; i++) {
        int n = snprintf(text[i], sizeof(text[i]), "w%d", i);
        words[i] = (struct str){text[i], (size_t)n};
    }
    return words;
}

TEST(thousands_of_phrases_are_found)
{
    static struct table_phrase phrases[N_MANY];
    struct toy y;
    struct embed_table t;

    for (uint32_t i = 0; i < N_MANY; i++)
        phrases[i] = (struct table_phrase){i % 150, i / 150};
    toy_parts(&y, many_words(), 150, phrases, N_MANY);
    toy_write(&y);
    CHECK(table_open(&t, y.bytes, NULL) == OK);
    for (uint32_t i = 0; i < N_MANY; i++)
        CHECK_INT(table_phrase(&t, i % 150, i / 150), 150 + i);
    CHECK(table_phrase(&t, 149, 134) == VOCAB_NONE);
    toy_fini(&y);
}

/* Invalid parts are rejected with a message, and nothing is written. */
static void check_refused(const struct table_parts *p, enum err expected)
{
    struct why why = {""};
    struct buf out;

    buf_init(&out, TABLE_BYTES_MAX);
    CHECK_INT(table_write(p, &out, &why), expected);
    CHECK(why.text[0]);
    CHECK_INT(out.n, 0);
    buf_fini(&out);
}

TEST(parts_that_no_file_can_have_are_refused)
{
    static const float bad[] = {-0.5f, 1001.0f, __builtin_inff(),
                                -__builtin_inff(), __builtin_nanf("")};
    struct table_phrase outside = {TOY_NEW, N_TOY_WORDS};
    struct toy y;
    struct table_parts p;

    toy_init(&y);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        float was = y.scales[4];

        y.scales[4] = bad[i];
        check_refused(&y.parts, ERR_BAD_REQUEST);
        y.scales[4] = was;
        p = y.parts;
        p.unknown_scale = bad[i];
        check_refused(&p, ERR_BAD_REQUEST);
    }
    p.unknown_scale = 0;
    check_refused(&p, ERR_BAD_REQUEST);
    p = y.parts;
    p.phrases = &outside;
    p.n_phrases = 1;
    check_refused(&p, ERR_BAD_REQUEST);
    toy_fini(&y);
}

TEST(a_word_or_phrase_twice_is_refused)
{
    struct str words[N_TOY_WORDS];
    struct table_phrase phrases[N_TOY_PHRASES];
    struct toy y;
    struct table_parts p;

    toy_init(&y);
    memcpy(words, toy_words, sizeof(words));
    memcpy(phrases, toy_phrases, sizeof(phrases));
    p = y.parts;
    words[2] = words[5];
    p.words = words;
    check_refused(&p, ERR_EXISTS);
    p = y.parts;
    phrases[2] = phrases[0];
    p.phrases = phrases;
    check_refused(&p, ERR_EXISTS);
    toy_fini(&y);
}

/* As many rows as fit, found by search: the largest possible file is read, and
 * one more row is not written. */
TEST(a_table_has_at_most_16_million_bytes)
{
    enum { MOST = TABLE_BYTES_MAX / TABLE_DIMS };
    static char text[MOST][8];
    static struct str words[MOST];
    struct toy y;
    struct table_parts p;
    struct buf out;
    size_t fits = 0, over = MOST + 1;

    for (int i = 0; i < MOST; i++)
        words[i] = (struct str){
            text[i], (size_t)snprintf(text[i], sizeof(text[i]), "w%d", i)};
    toy_parts(&y, words, MOST, NULL, 0);
    buf_init(&out, TABLE_BYTES_MAX);
    while (over - fits > 1) {
        p = y.parts;
        p.n_words = fits + (over - fits) / 2;
        buf_clear(&out);
        if (table_write(&p, &out, NULL) == OK)
            fits = p.n_words;
        else
            over = p.n_words;
    }
    CHECK(fits > 55000 && over <= MOST);
    p.n_words = over;
    check_refused(&p, ERR_LIMIT);
    y.parts.n_words = fits;
    toy_write(&y);
    CHECK(y.bytes.n <= TABLE_BYTES_MAX && y.bytes.n > TABLE_BYTES_MAX - 300);
    CHECK(table_open(&(struct embed_table){.n_phrases = 0}, y.bytes, NULL) ==
          OK);
    buf_fini(&out);
    toy_fini(&y);
}

TEST(more_phrases_than_can_be_are_refused)
{
    struct toy y;

    toy_init(&y);
    y.parts.n_phrases = TABLE_PHRASES_MAX + 1;
    check_refused(&y.parts, ERR_LIMIT);
    y.parts.n_phrases = SIZE_MAX;
    check_refused(&y.parts, ERR_LIMIT);
    y.parts.n_phrases = 0;
    y.parts.n_words = SIZE_MAX;
    check_refused(&y.parts, ERR_LIMIT);
    toy_fini(&y);
}

TEST(a_buffer_that_is_too_small_is_an_error)
{
    struct toy y;

    toy_init(&y);
    for (size_t limit = 0; limit < y.bytes.n; limit += 13) {
        struct buf out;

        buf_init(&out, limit);
        CHECK(table_write(&y.parts, &out, NULL) == ERR_LIMIT);
        CHECK_INT(out.n, 0);
        buf_fini(&out);
    }
    toy_fini(&y);
}

TEST(writing_survives_every_fault)
{
    struct toy y;
    long nth = 0;

    toy_init(&y);
    do {
        struct why why = {""};
        struct buf out;
        enum err e;

        buf_init(&out, TABLE_BYTES_MAX);
        fault_arm(++nth);
        e = table_write(&y.parts, &out, &why);
        CHECK(fault_fired() ? e && why.text[0] && out.n == 0 : e == OK);
        buf_fini(&out);
    } while (fault_fired());
    CHECK(nth > 1);
    toy_fini(&y);
}
