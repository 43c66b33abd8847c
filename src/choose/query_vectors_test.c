#include "choose/route.h"

#include <math.h>

#include "base/fault.h"
#include "base/vec.h"
#include "test/t.h"

static struct arena arena;
static struct speller *speller;
static struct reading reading;

static enum err read_text(struct str text, bool leaves_spelling)
{
    return reading_make(&arena, speller, NULL, NULL, text, leaves_spelling,
                        &reading);
}

static void begin(void)
{
    struct why why = {""};

    arena_init(&arena, 1 << 20);
    CHECK(speller_new(&speller, &why) == OK);
}

static void end(void)
{
    arena_fini(&arena);
    speller_free(speller);
}

static struct str long_text(struct buf *b)
{
    buf_init(b, 64 * 1024);
    for (int i = 0; i < 20; i++)
        buf_addf(b, "12:00:%02d worker=%d state=idle code=0\n", i, i);
    buf_addf(b, "\nplease wirte a test for this\n");
    return buf_str(b);
}

TEST(a_short_message_is_one_text_corrected)
{
    begin();
    CHECK(read_text(STR("wirte a test"), false) == OK);
    CHECK_INT(reading.n, 1);
    CHECK_STR(reading.texts[0], "write a test");
    CHECK_STR(reading.words, "write a test");
    end();
}

TEST(gibberish_has_no_meaning)
{
    begin();
    CHECK(read_text(STR("asdkjh qwlekj"), false) == OK);
    CHECK_INT(reading.n, 1);
    CHECK_STR(reading.texts[0], "");
    CHECK(read_text(STR("asdkjh qwlekj"), true) == OK);
    CHECK_STR(reading.texts[0], "");
    end();
}

TEST(a_provider_gets_the_message_as_it_was_written)
{
    begin();
    CHECK(reading_leaves_spelling(EMBED_HTTP));
    CHECK(!reading_leaves_spelling(EMBED_TABLE));
    CHECK(read_text(STR("wirte a test"), true) == OK);
    CHECK_STR(reading.texts[0], "wirte a test");
    CHECK_STR(reading.words, "write a test");
    end();
}

TEST(a_long_message_is_the_whole_and_the_part_that_asks)
{
    struct buf b;
    struct str text = long_text(&b);

    begin();
    CHECK(text.n > PARTS_FROM_BYTES);
    CHECK(read_text(text, false) == OK);
    CHECK_INT(reading.n, 2);
    CHECK(str_eq(reading.texts[0], text));
    CHECK_STR(reading.texts[1], "please write a test for this");
    CHECK_STR(reading.words, "please write a test for this\n");
    CHECK(read_text(text, true) == OK);
    CHECK_STR(reading.texts[1], "please wirte a test for this");
    end();
    buf_fini(&b);
}

TEST(a_long_message_in_which_no_line_asks_is_the_whole)
{
    struct buf b;

    begin();
    buf_init(&b, 64 * 1024);
    for (int i = 0; i < 20; i++)
        buf_addf(&b, "12:00:%02d worker=%d state=idle code=0\n", i, i);
    CHECK(read_text(buf_str(&b), false) == OK);
    CHECK_INT(reading.n, 1);
    CHECK(str_eq(reading.words, buf_str(&b)));
    end();
    buf_fini(&b);
}

TEST(there_are_never_more_texts_than_the_limit)
{
    struct buf b;

    begin();
    buf_init(&b, 64 * 1024);
    for (int i = 0; i < 40; i++)
        buf_addf(&b, "could you please do the number %c?\n", 'a' + i % 26);
    CHECK(read_text(buf_str(&b), false) == OK);
    CHECK_INT(reading.n, READING_TEXTS_MAX);
    end();
    buf_fini(&b);
}

TEST(the_vector_of_a_short_message_stays_what_it_is)
{
    float v[2] = {0.6F, 0.8F};
    struct reading one = {.n = 1};
    struct embed_stamp stamp = {.dims = 2};

    reading_add_up(&one, v, &stamp);
    CHECK(v[0] == 0.6F && v[1] == 0.8F);
}

TEST(the_vector_of_a_long_message_is_between_its_texts)
{
    float v[4] = {1, 0, 0, 1};
    struct reading two = {.n = 2};
    struct embed_stamp stamp = {.dims = 2};

    reading_add_up(&two, v, &stamp);
    CHECK(v[0] > 0 && v[1] > 0);
    CHECK(fabsf(v[0] * v[0] + v[1] * v[1] - 1) < 1e-5F);
}

/* Each part is added up by itself: a quick vector and a full one are compared
 * by their first parts, whose lengths must not change. */
TEST(both_parts_of_a_sum_are_as_long_as_those_of_one)
{
    const float a = sqrtf((float)VEC_QUICK_PART);
    const float b = sqrtf(1 - (float)VEC_QUICK_PART);
    /* The tables' parts are equal and the others are not. */
    float full[8] = {a, 0, b, 0, a, 0, 0, b};
    float quick[8] = {1, 0, 0, 0, 0, 1, 0, 0};
    struct reading two = {.n = 2};
    struct embed_stamp stamp = {.dims = 4, .quick_dims = 2};

    reading_add_up(&two, full, &stamp);
    CHECK(fabsf(full[0] - a) < 1e-6F && full[1] == 0);
    CHECK(fabsf(full[2] - b * sqrtf(.5F)) < 1e-6F && full[2] == full[3]);
    reading_add_up(&two, quick, &stamp);
    CHECK(fabsf(quick[0] - sqrtf(.5F)) < 1e-6F && quick[0] == quick[1]);
    CHECK(quick[2] == 0 && quick[3] == 0);
}

TEST(reading_survives_every_lack_of_memory)
{
    struct buf b;
    struct str text = long_text(&b);
    struct arena none;

    begin();
    arena_init(&none, 1);
    CHECK(reading_make(&none, speller, NULL, NULL, text, false, &reading) ==
          ERR_NOMEM);
    arena_fini(&none);
    end();
    buf_fini(&b);
}
