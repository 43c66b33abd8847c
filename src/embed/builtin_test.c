#include "test/t.h"

#include <math.h>

#include "test/lib/alloc_count.h"
#include "test/lib/table_stage.h"

struct stage {
    struct toy toy;
    struct builtin b;
};

static void stage_init(struct stage *s)
{
    struct why why = {""};

    toy_init(&s->toy);
    CHECK(builtin_open_bytes(&s->b, s->toy.bytes, &why) == OK);
}

static void stage_fini(struct stage *s)
{
    toy_fini(&s->toy);
}

#define NO_ROW UINT32_MAX

/* The text has these rows; NO_ROW ends them. */
static void check_rows(const struct stage *s, struct str text,
                       const uint32_t *expected)
{
    uint32_t rows[BUILTIN_ROWS_MAX];
    size_t n = builtin_rows(&s->b.table, text, rows), i = 0;

    for (; expected[i] != NO_ROW; i++)
        if (i >= n || rows[i] != expected[i])
            T_FAIL("%.*s: row %zu is %#x, not %#x", STR_ARG(text), i,
                   i < n ? rows[i] : NO_ROW, expected[i]);
    CHECK_INT(n, i);
}

#define ROWS(s, text, ...) \
    check_rows(s, STR(text), (const uint32_t[]){__VA_ARGS__, NO_ROW})

static float length(const float v[BUILTIN_DIMS])
{
    double sum = 0;

    for (int i = 0; i < BUILTIN_DIMS; i++)
        sum += (double)v[i] * (double)v[i];
    return (float)sqrt(sum);
}

static bool is_zero(const float v[BUILTIN_DIMS])
{
    for (int i = 0; i < BUILTIN_DIMS; i++)
        if (v[i] != 0)
            return false;
    return true;
}

static float likeness(const struct stage *s, struct str a, struct str b)
{
    float x[BUILTIN_DIMS], y[BUILTIN_DIMS];

    builtin_embed(&s->b, a, x);
    builtin_embed(&s->b, b, y);
    return vec_cosine(x, BUILTIN_DIMS, y, BUILTIN_DIMS);
}

TEST(a_whole_word_comes_before_its_pieces)
{
    struct stage s;

    stage_init(&s);
    ROWS(&s, "signalbox", TOY_SIGNALBOX);
    ROWS(&s, "SIGNALBOX!", TOY_SIGNALBOX, BUILTIN_UNKNOWN | '!');
    ROWS(&s, "signals", TOY_SIGNAL, TOY_IN_S);
    ROWS(&s, "signalboxs", TOY_SIGNALBOX, TOY_IN_S);
    ROWS(&s, "city, city", TOY_CITY, TOY_COMMA, TOY_CITY);
    stage_fini(&s);
}

TEST(a_phrase_has_a_row_beside_those_of_its_words)
{
    struct stage s;

    stage_init(&s);
    ROWS(&s, "new york", TOY_NEW, TOY_YORK, TOY_NEW_YORK);
    ROWS(&s, "york new", TOY_YORK, TOY_NEW);
    ROWS(&s, "new york city", TOY_NEW, TOY_YORK, TOY_NEW_YORK, TOY_CITY,
         TOY_YORK_CITY);
    ROWS(&s, "york city", TOY_YORK, TOY_CITY, TOY_YORK_CITY);
    ROWS(&s, "york york city york", TOY_YORK, TOY_YORK, TOY_CITY, TOY_YORK_CITY,
         TOY_YORK);
    ROWS(&s, "new, york", TOY_NEW, TOY_COMMA, TOY_YORK);
    ROWS(&s, "new\xe4\xba\xacyork", TOY_NEW, BUILTIN_UNKNOWN | 0x4eac,
         TOY_YORK);
    stage_fini(&s);
}

TEST(pieces_of_words_are_no_phrase)
{
    struct stage s;

    stage_init(&s);
    ROWS(&s, "cityboxs", TOY_CITY, TOY_IN_BOX, TOY_IN_S);
    ROWS(&s, "new yorks city", TOY_NEW, TOY_YORK, TOY_IN_S, TOY_CITY);
    ROWS(&s, "new york\xf0\x9f\x98\x80 city", TOY_NEW, TOY_YORK,
         BUILTIN_UNKNOWN | 0x1f600, TOY_CITY);
    stage_fini(&s);
}

TEST(what_is_not_known_goes_by_characters)
{
    struct stage s;

    stage_init(&s);
    ROWS(&s, "qu", BUILTIN_UNKNOWN | 'q', BUILTIN_UNKNOWN | 'u');
    ROWS(&s, "\xc3\x9f", BUILTIN_UNKNOWN | 0xdf);
    ROWS(&s, "\xf0\x9f\x98\x80", BUILTIN_UNKNOWN | 0x1f600);
    ROWS(&s, "\xf4\x8f\xbf\xbd", NO_ROW);
    /* A word next to an emoji is still that word, on either side. */
    ROWS(&s, "city\xf0\x9f\x98\x80new", TOY_CITY, BUILTIN_UNKNOWN | 0x1f600,
         TOY_NEW);
    ROWS(&s, "signalcity", TOY_SIGNAL, TOY_CITY);
    /* East, which is known, and capital, which is not. */
    ROWS(&s, "\xe6\x9d\xb1\xe4\xba\xac", TOY_CJK, BUILTIN_UNKNOWN | 0x4eac);
    stage_fini(&s);
}

/* The slow reference: the vector by its definition. */
static void slow_truth(const struct stage *s, struct str text,
                       float out[BUILTIN_DIMS])
{
    uint32_t rows[BUILTIN_ROWS_MAX];
    size_t n = builtin_rows(&s->b.table, text, rows);

    memset(out, 0, BUILTIN_DIMS * sizeof(*out));
    for (int d = 0; d < BUILTIN_DIMS; d++)
        for (size_t i = 0; i < n; i++) {
            float one =
                s->toy.scales[rows[i]] *
                (float)s->toy.rows[rows[i] * BUILTIN_DIMS + (unsigned)d];
            out[d] += one;
        }
    vec_normalise(out, BUILTIN_DIMS);
}

TEST(the_vector_is_the_sum_of_its_rows)
{
    static const struct str texts[] = {
        {"new york", 8}, {"signals, boxs", 7}, {"city city new signal", 20}};
    struct stage s;
    float got[BUILTIN_DIMS], expected[BUILTIN_DIMS];

    stage_init(&s);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        builtin_embed(&s.b, texts[i], got);
        slow_truth(&s, texts[i], expected);
        for (int d = 0; d < BUILTIN_DIMS; d++)
            CHECK(fabsf(got[d] - expected[d]) < 1e-6f);
        CHECK(fabsf(length(got) - 1) < 1e-5f);
    }
    stage_fini(&s);
}

/* The smallest and the largest scales that a file can have. */
TEST(a_vector_is_one_long_whatever_the_scales_are)
{
    static const float scales[] = {1e-45f, 1e-38f, 1e-20f, 1e-10f, 1, 1000};
    struct builtin b;
    float v[BUILTIN_DIMS];

    for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
        struct toy y;
        struct buf text;

        toy_parts(&y, toy_words, N_TOY_WORDS, NULL, 0);
        for (int k = 0; k < N_TOY_WORDS; k++)
            y.scales[k] = scales[i];
        toy_write(&y);
        CHECK(builtin_open_bytes(&b, y.bytes, NULL) == OK);
        buf_init(&text, 1 << 16);
        for (int k = 0; k < BUILTIN_ROWS_MAX; k++) {
            buf_add_str(&text, STR("city "));
            if (k > 0 && k < BUILTIN_ROWS_MAX - 1)
                continue;
            builtin_embed(&b, buf_str(&text), v);
            CHECK(fabsf(length(v) - 1) < 1e-4f);
        }
        buf_fini(&text);
        toy_fini(&y);
    }
}

TEST(nothing_in_a_text_is_a_vector_of_zeros)
{
    static const struct str texts[] = {
        {NULL, 0},
        {"", 0},
        {" \t\r\n ", 5},
        {"\0\0\0", 3},
        {"\x01\x02\x1f\x7f", 4},
        {"\xff\xfe\x80", 3},                        /* not UTF-8 */
        {"\xef\xbf\xbd", 3},                        /* U+FFFD */
        {"\xe2\x80\x8b\xe2\x80\x8d\xc2\xad", 8},    /* of no width */
        {"\xed\xa0\x80\xc0\xaf\xf8\x88\x80\x80", 9} /* never UTF-8 */
    };
    struct stage s;
    float v[BUILTIN_DIMS];

    stage_init(&s);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        v[0] = 1;
        builtin_embed(&s.b, texts[i], v);
        CHECK(is_zero(v));
    }
    stage_fini(&s);
}

TEST(bad_bytes_are_as_if_they_were_not_there)
{
    struct stage s;

    stage_init(&s);
    ROWS(&s, "ne\xffw york", TOY_NEW, TOY_YORK, TOY_NEW_YORK);
    ROWS(&s, "ci\0ty", TOY_CITY);
    ROWS(&s, "city\xe6\x9d", TOY_CITY); /* cut in a character */
    CHECK(likeness(&s, STR("city \xf0\x9f"), STR("city")) > 0.9999f);
    stage_fini(&s);
}

TEST(only_punctuation_has_a_vector)
{
    struct stage s;
    float v[BUILTIN_DIMS];

    stage_init(&s);
    builtin_embed(&s.b, STR("?!... --- \xe3\x80\x82"), v);
    CHECK(fabsf(length(v) - 1) < 1e-5f);
    stage_fini(&s);
}

TEST(a_text_has_at_most_512_rows)
{
    struct stage s;
    uint32_t rows[BUILTIN_ROWS_MAX + 1];
    struct buf text;

    stage_init(&s);
    buf_init(&text, 1 << 20);
    for (int i = 0; i < BUILTIN_ROWS_MAX - 1; i++)
        buf_add_str(&text, STR("city "));
    rows[BUILTIN_ROWS_MAX] = 77;
    CHECK_INT(builtin_rows(&s.b.table, buf_str(&text), rows), 511);
    buf_add_str(&text, STR("new "));
    CHECK_INT(builtin_rows(&s.b.table, buf_str(&text), rows), 512);
    CHECK_INT(rows[511], TOY_NEW);
    buf_drop(&text, 5); /* one less, so a phrase does not fit */
    buf_add_str(&text, STR("york "));
    CHECK_INT(builtin_rows(&s.b.table, buf_str(&text), rows), 512);
    CHECK_INT(rows[511], TOY_YORK);
    text.n -= 5;
    buf_add_str(&text, STR("new "));
    for (int i = 0; i < 1000; i++)
        buf_add_str(&text, STR("signals qux \xe4\xba\xac "));
    CHECK_INT(builtin_rows(&s.b.table, buf_str(&text), rows), 512);
    CHECK_INT(rows[511], TOY_NEW);
    CHECK_INT(rows[512], 77);
    buf_fini(&text);
    stage_fini(&s);
}

TEST(no_more_than_64_kib_of_a_text_are_looked_at)
{
    struct stage s;
    struct buf text;
    float v[BUILTIN_DIMS];

    stage_init(&s);
    buf_init(&text, 1 << 20);
    while (text.n < BUILTIN_TEXT_BYTES_MAX - 4)
        buf_add_char(&text, ' ');
    buf_add_str(&text, STR("city"));
    builtin_embed(&s.b, buf_str(&text), v);
    CHECK(!is_zero(v));
    text.n -= 4;
    buf_add_str(&text, STR("    city"));
    builtin_embed(&s.b, buf_str(&text), v);
    CHECK(is_zero(v));
    buf_fini(&text);
    stage_fini(&s);
}

/* A megabyte of each of these, one after the other. */
TEST(a_megabyte_of_anything_is_taken)
{
    static const struct str parts[] = {
        {"a", 1},           {"city ", 5}, {"\0", 1},
        {"\xff", 1},        {" ", 1},     {"\xe4\xba\xac", 3},
        {"e\xcc\x81", 3},   {".", 1},     {"\xcc\x81\xcc\xa3", 4},
        {"\xea\xb0\x81", 3}};
    struct stage s;
    struct buf text;
    float v[BUILTIN_DIMS];

    stage_init(&s);
    buf_init(&text, (1 << 20) + 8);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        buf_clear(&text);
        while (text.n < 1 << 20)
            buf_add_str(&text, parts[i]);
        builtin_embed(&s.b, buf_str(&text), v);
        CHECK(is_zero(v) || fabsf(length(v) - 1) < 1e-5f);
    }
    buf_fini(&text);
    stage_fini(&s);
}

TEST(other_scripts_match_by_their_characters)
{
    /* "weather in Tokyo", "weather in Kyoto", "I want to buy shoes": Chinese,
     * Japanese, Thai, and three emoji. */
    static const char *const same[][3] = {
        {"\xe4\xb8\x9c\xe4\xba\xac\xe7\x9a\x84\xe5\xa4\xa9\xe6\xb0\x94",
         "\xe4\xba\xac\xe9\x83\xbd\xe7\x9a\x84\xe5\xa4\xa9\xe6\xb0\x94",
         "\xe6\x88\x91\xe6\x83\xb3\xe4\xb9\xb0\xe9\x9e\x8b\xe5\xad\x90"},
        {"\xe6\x9d\xb1\xe4\xba\xac\xe3\x81\xae\xe5\xa4\xa9\xe6\xb0\x97",
         "\xe4\xba\xac\xe9\x83\xbd\xe3\x81\xae\xe5\xa4\xa9\xe6\xb0\x97",
         "\xe9\x9d\xb4\xe3\x82\x92\xe8\xb2\xb7\xe3\x81\x84\xe3\x81\x9f"},
        {"\xe0\xb8\xad\xe0\xb8\xb2\xe0\xb8\x81\xe0\xb8\xb2\xe0\xb8\xa8",
         "\xe0\xb8\xad\xe0\xb8\xb2\xe0\xb8\x81\xe0\xb8\xb2\xe0\xb8\xa8\xe0\xb8"
         "\x94\xe0\xb8\xb5",
         "\xe0\xb8\xa3\xe0\xb8\xad\xe0\xb8\x87\xe0\xb9\x80\xe0\xb8\x97\xe0\xb9"
         "\x89"},
        {"\xf0\x9f\x98\x80\xf0\x9f\x9a\x80", "\xf0\x9f\x9a\x80",
         "\xf0\x9f\x8d\x95"},
    };
    struct stage s;

    stage_init(&s);
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        struct str a = str_of(same[i][0]), b = str_of(same[i][1]),
                   c = str_of(same[i][2]);

        CHECK(likeness(&s, a, a) > 0.9999f);
        CHECK(likeness(&s, a, b) > 0.5f);
        CHECK(likeness(&s, a, c) < 0.4f);
        CHECK(likeness(&s, a, b) > likeness(&s, a, c) + 0.3f);
    }
    stage_fini(&s);
}

/* Rows of unknown characters are as dissimilar as random ones. */
TEST(unknown_characters_differ)
{
    struct stage s;
    float v[64][BUILTIN_DIMS];

    stage_init(&s);
    for (uint32_t i = 0; i < 64; i++) {
        char text[] = {(char)0xe5, (char)(0x80 + i), (char)0x80};

        builtin_embed(&s.b, (struct str){text, 3}, v[i]);
        for (uint32_t k = 0; k < i; k++)
            CHECK(fabsf(vec_cosine(v[i], BUILTIN_DIMS, v[k], BUILTIN_DIMS)) <
                  0.35f);
    }
    stage_fini(&s);
}

/* Texts of words, unknown characters and noise, always the same ones. */
static struct str made_text(uint32_t *x, char *p, size_t room)
{
    static const char *const parts[] = {"new",  " york ", "city",     "signal",
                                        "box",  "s",      ", ",       " ",
                                        "\xff", "Q",      "\xc3\xa9", "\n"};
    size_t n = 0;

    for (int i = 0; i < 40; i++) {
        const char *part = parts[(*x >> 16) % 12];
        size_t len = strlen(part);

        *x = *x * 1664525 + 1013904223;
        if (len > room - n)
            break;
        memcpy(p + n, part, len);
        n += len;
    }
    return (struct str){p, n};
}

TEST(every_level_gives_the_same_vector)
{
    struct stage s;
    char room[300];
    uint32_t x = 7;

    stage_init(&s);
    for (int i = 0; i < 300; i++) {
        struct str text = made_text(&x, room, sizeof(room));
        float plain[BUILTIN_DIMS], other[BUILTIN_DIMS];

        s.b.ops = vec_ops_of(CPU_PLAIN);
        builtin_embed(&s.b, text, plain);
        for (enum cpu_level l = CPU_PLAIN; l < N_CPU_LEVELS; l++) {
            if (!(s.b.ops = vec_ops_of(l)))
                continue;
            builtin_embed(&s.b, text, other);
            CHECK(memcmp(plain, other, sizeof(plain)) == 0);
        }
    }
    stage_fini(&s);
}

/* Covers everything that vectors are made of: words, rows of unknown
 * characters, the sum, its length. A change of any of them changes the model,
 * and stored vectors become useless. */
TEST(vectors_do_not_change)
{
    struct stage s;
    float v[BUILTIN_DIMS];
    uint32_t sum = 0, x = 99;
    char room[300];

    stage_init(&s);
    for (int i = 0; i < 50; i++) {
        builtin_embed(&s.b, made_text(&x, room, sizeof(room)), v);
        for (int d = 0; d < BUILTIN_DIMS; d++) {
            uint32_t bits;

            memcpy(&bits, &v[d], sizeof(bits));
            sum = sum * 31 + bits;
        }
    }
    CHECK_INT(sum, 1669949093);
    stage_fini(&s);
}

TEST(nothing_is_allocated)
{
    struct stage s;
    float v[BUILTIN_DIMS];
    char room[300];
    uint32_t x = 3;
    void *volatile seen;
    long before;

    stage_init(&s);
    before = alloc_n;
    for (int i = 0; i < 200; i++)
        builtin_embed(&s.b, made_text(&x, room, sizeof(room)), v);
    builtin_embed(&s.b, STR("\xe6\x9d\xb1\xe4\xba\xac \xed\x95\x9c"), v);
    CHECK_INT(alloc_n, before);
    seen = malloc(1); /* the counter would have seen it */
    CHECK_INT(alloc_n, before + 1);
    free(seen);
    stage_fini(&s);
}

TEST(the_hash_is_that_of_the_file)
{
    struct stage s;

    stage_init(&s);
    CHECK_INT(strlen(builtin_hash(&s.b)), EMBED_HASH_CHARS);
    for (int i = 0; i < 32; i++) {
        char two[3];

        snprintf(two, sizeof(two), "%02x", (unsigned char)s.toy.bytes.p[8 + i]);
        CHECK(memcmp(builtin_hash(&s.b) + 2 * i, two, 2) == 0);
    }
    stage_fini(&s);
}
