/* Files that are truncated, foreign, damaged or hostile. If only the hash would
 * find it, the hash is fixed first, to reach the other checks. */
#include "test/t.h"
#include "embed/table.h"
#include "test/lib/table_stage.h"

/* A copy of the toy model for changes. */
struct victim {
    struct toy toy;
    struct str bytes;
    char *p;
    struct table_head *head;
    struct table_line *lines;
};

enum { WORDS, PHRASES, ROWS, SCALES, N_SECTIONS };

static void victim_init(struct victim *v)
{
    toy_init(&v->toy);
    v->bytes = toy_aligned(v->toy.bytes);
    v->p = (char *)v->bytes.p;
    v->head = (struct table_head *)v->p;
    v->lines = (struct table_line *)(v->head + 1);
}

static void victim_heal(struct victim *v)
{
    memcpy(v->p, v->toy.bytes.p, v->bytes.n);
}

static void victim_fini(struct victim *v)
{
    toy_fini(&v->toy);
    free(v->p);
}

static void make_hash_fit(struct victim *v)
{
    table_hash(v->bytes, v->head->hash);
}

/* Rejected with a message that contains this. */
static void check_words(struct str bytes, const char *words)
{
    struct embed_table t;
    struct why why = {""};

    CHECK_INT(table_open(&t, bytes, &why), ERR_BAD_CONFIG);
    if (!strstr(why.text, words))
        T_FAIL("\"%s\" does not say \"%s\"", why.text, words);
    CHECK(!t.rows && !t.n_phrases && !t.words.n);
}

/* With a matching hash; restored afterwards. */
static void check_refused(struct victim *v, const char *words)
{
    make_hash_fit(v);
    check_words(v->bytes, words);
    victim_heal(v);
}

TEST(every_cut_is_refused)
{
    struct victim v;
    struct why why;
    struct embed_table t;

    victim_init(&v);
    for (size_t n = 0; n < v.bytes.n; n++) {
        struct str cut = toy_aligned(str_sub(v.bytes, 0, n));

        why.text[0] = '\0';
        CHECK(table_open(&t, cut, &why) == ERR_BAD_CONFIG);
        CHECK(strstr(why.text, n < 8 ? "not a table" : "cut off"));
        free((char *)cut.p);
    }
    victim_fini(&v);
}

TEST(every_flipped_bit_is_refused)
{
    struct victim v;
    struct embed_table t;

    victim_init(&v);
    for (size_t i = 0; i < v.bytes.n * 8; i++) {
        struct why why = {""};

        v.p[i / 8] ^= (char)(1 << i % 8);
        CHECK(table_open(&t, v.bytes, &why) == ERR_BAD_CONFIG);
        CHECK(why.text[0]);
        v.p[i / 8] ^= (char)(1 << i % 8);
    }
    CHECK(table_open(&t, v.bytes, NULL) == OK);
    victim_fini(&v);
}

/* A file and its hash can be changed together: if the file is accepted, it is
 * another model, and using it is harmless. */
TEST(flipped_bits_with_a_hash_that_fits_do_no_harm)
{
    struct victim v;
    struct builtin b;
    float out[BUILTIN_DIMS];
    size_t n_taken = 0;

    victim_init(&v);
    for (size_t i = TABLE_HASHED_FROM * 8; i < v.bytes.n * 8; i++) {
        v.p[i / 8] ^= (char)(1 << i % 8);
        make_hash_fit(&v);
        if (builtin_open_bytes(&b, v.bytes, NULL) == OK) {
            n_taken++;
            builtin_embed(&b, STR("New York City signalboxes, \xe6\x9d\xb1"),
                          out);
            CHECK(out[0] == out[0]);
        }
        v.p[i / 8] ^= (char)(1 << i % 8);
    }
    /* Rows may have any content; almost nothing else may. */
    CHECK(n_taken >= (size_t)N_TOY_ROWS * TABLE_DIMS * 8);
    CHECK(n_taken < v.bytes.n * 8 - N_SECTIONS * 8 * 8);
    victim_fini(&v);
}

TEST(other_files_are_told_apart)
{
    static const char *const others[] = {"",
                                         "S",
                                         "SBTABLE",
                                         "SBTABLE1 and more",
                                         "<html><body>not found",
                                         "\x7f"
                                         "ELF\x02\x01\x01"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct str s = toy_aligned(str_of(others[i]));

        check_words(s, "not a table");
        free((char *)s.p);
    }
    check_words((struct str){NULL, 0}, "not a table");
}

TEST(damage_is_called_so)
{
    struct victim v;

    victim_init(&v);
    v.p[v.lines[ROWS].at + 5]++;
    check_words(v.bytes, "does not match its hash");
    victim_heal(&v);
    v.head->hash[3]++;
    check_words(v.bytes, "does not match its hash");
    victim_fini(&v);
}

TEST(another_version_or_size_of_rows_is_refused)
{
    struct victim v;

    victim_init(&v);
    v.head->version++;
    check_refused(&v, "version 2");
    v.head->dims = 384;
    check_refused(&v, "384 dimensions");
    v.head->unknown_scale = 0;
    check_refused(&v, "unknown characters");
    v.head->unknown_scale = __builtin_nanf("");
    check_refused(&v, "unknown characters");
    victim_fini(&v);
}

TEST(sections_that_are_not_known_are_refused)
{
    struct victim v;

    victim_init(&v);
    memcpy(v.lines[SCALES].tag, "MIX\n", 4);
    check_refused(&v, "\"MIX?\"");
    memcpy(v.lines[PHRASES].tag, "ROWS", 4); /* now there are two of them */
    check_refused(&v, "no section \"PHRS\"");
    memcpy(v.lines[WORDS].tag, "ROWS", 4);
    check_refused(&v, "no section \"WORD\"");
    memcpy(v.lines[SCALES].tag, "WORD", 4);
    check_refused(&v, "not know, or not there");
    v.head->n_sections = N_SECTIONS + 1;
    check_refused(&v, "newer");
    v.head->n_sections = UINT32_MAX;
    check_refused(&v, "newer");
    victim_fini(&v);
}

TEST(sections_lie_where_they_must)
{
    struct victim v;

    victim_init(&v);
    v.lines[ROWS].at += 64;
    check_refused(&v, "should at");
    v.lines[ROWS].at = 0;
    check_refused(&v, "should at");
    v.lines[ROWS].zero = 1;
    check_refused(&v, "should at");
    v.lines[SCALES].n = UINT32_MAX;
    check_refused(&v, "cut off");
    v.lines[SCALES].n -= 4;
    check_refused(&v, "scales are");
    v.p[v.lines[WORDS].at - 1] = 1; /* after the list of sections */
    CHECK(table_align(table_sections_at(N_SECTIONS)) ==
          table_sections_at(N_SECTIONS));
    victim_heal(&v);
    CHECK(v.lines[PHRASES].at + v.lines[PHRASES].n < v.lines[ROWS].at);
    v.p[v.lines[ROWS].at - 1] = 1;
    check_refused(&v, "something before");
    victim_fini(&v);
}

TEST(what_follows_the_last_section_is_refused)
{
    struct victim v;
    char *longer;

    victim_init(&v);
    longer = calloc(1, v.bytes.n + 64);
    CHECK(longer);
    memcpy(longer, v.p, v.bytes.n);
    free(v.p);
    v.bytes = toy_aligned((struct str){longer, v.bytes.n + 64});
    v.p = (char *)v.bytes.p;
    v.head = (struct table_head *)v.p;
    make_hash_fit(&v);
    check_words(v.bytes, "ends after");
    free(longer);
    victim_fini(&v);
}

TEST(a_file_beyond_the_limit_is_refused)
{
    struct victim v;
    char *huge = calloc(1, TABLE_BYTES_MAX + 1);
    struct str s;

    CHECK(huge);
    victim_init(&v);
    memcpy(huge, v.p, v.bytes.n);
    s = toy_aligned((struct str){huge, TABLE_BYTES_MAX + 1});
    check_words(s, "may have 16000000");
    free(huge);
    free((char *)s.p);
    victim_fini(&v);
}

TEST(counts_that_do_not_fit_are_refused)
{
    static const uint32_t counts[] = {0,       N_TOY_WORDS - 1, N_TOY_WORDS + 1,
                                      0x10000, 0x7fffffff,      UINT32_MAX};
    struct victim v;

    victim_init(&v);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        v.head->n_words = counts[i];
        check_refused(&v, "claims");
        v.head->n_phrases = counts[i];
        check_refused(&v, counts[i] > TABLE_PHRASES_MAX ? "at most 65535"
                                                        : "phrases are");
    }
    victim_fini(&v);
}

static uint32_t *slots_of(struct victim *v)
{
    return (uint32_t *)(v->p + v->lines[PHRASES].at +
                        sizeof(struct table_phrase) * N_TOY_PHRASES);
}

TEST(phrases_that_lead_astray_are_refused)
{
    struct victim v;
    struct table_phrase *phrases;
    uint32_t n_slots = table_phrase_slots(N_TOY_PHRASES), taken, free_one;

    victim_init(&v);
    phrases = (struct table_phrase *)(v.p + v.lines[PHRASES].at);
    for (taken = 0; !slots_of(&v)[taken]; taken++)
        ;
    for (free_one = 0; slots_of(&v)[free_one]; free_one++)
        ;
    phrases[1].first = N_TOY_WORDS;
    check_refused(&v, "words that are missing");
    phrases[2].second = UINT32_MAX;
    check_refused(&v, "words that are missing");
    phrases[1] = phrases[0];
    check_refused(&v, "not where a search finds it");
    slots_of(&v)[taken] |= 0xffff;
    check_refused(&v, "point outside");
    slots_of(&v)[taken] &= 0xffff0000; /* taken, but empty */
    check_refused(&v, slots_of(&v)[taken] ? "point outside" : "places for");
    slots_of(&v)[free_one] = 1;
    check_refused(&v, "places for");
    for (uint32_t i = 0; i < n_slots; i++)
        slots_of(&v)[i] = 1; /* a search would never end */
    check_refused(&v, "places for");
    slots_of(&v)[taken] = 0;
    check_refused(&v, "places for");
    victim_fini(&v);
}

enum { N_EVIL = VOCAB_MAX_ROW + 1, N_EVIL_WORDS = 256 };

/* Phrases in one run of slots, from the last slot on: one, and then others that
 * belong into the first eight. */
static void find_evil(struct table_phrase evil[N_EVIL], uint32_t mask)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < N_EVIL_WORDS * N_EVIL_WORDS && n < N_EVIL; i++) {
        struct table_phrase p = {i / N_EVIL_WORDS, i % N_EVIL_WORDS};
        uint32_t at = table_phrase_hash(p.first, p.second) & mask;

        if (n == 0 ? at == mask : at < 8)
            evil[n++] = p;
    }
    CHECK_INT(n, N_EVIL);
}

/* Like a writer without the limit. */
static void put_evil(uint32_t *slots, uint32_t mask,
                     const struct table_phrase *evil)
{
    memset(slots, 0, (mask + 1) * sizeof(*slots));
    for (uint32_t i = 0; i < N_EVIL; i++) {
        uint32_t hash = table_phrase_hash(evil[i].first, evil[i].second);
        uint32_t at = hash & mask;

        while (slots[at])
            at = (at + 1) & mask;
        slots[at] = (hash & 0xffff0000) | (i + 1);
    }
}

/* Without a limit a hostile model could make every lookup slow. */
TEST(phrases_in_too_long_a_row_are_refused)
{
    uint32_t mask = table_phrase_slots(N_EVIL) - 1;
    struct table_phrase evil[N_EVIL], good[N_EVIL];
    char texts[N_EVIL_WORDS][4];
    struct str words[N_EVIL_WORDS];
    struct why why = {""};
    struct victim v;
    struct buf out;
    char *at;

    find_evil(evil, mask);
    for (uint32_t i = 0; i < N_EVIL_WORDS; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%02x", i);
        words[i] = str_of(texts[i]);
    }
    for (uint32_t i = 0; i < N_EVIL; i++)
        good[i] = (struct table_phrase){i % N_EVIL_WORDS, i / N_EVIL_WORDS};
    toy_parts(&v.toy, words, N_EVIL_WORDS, evil, N_EVIL);
    buf_init(&out, TABLE_BYTES_MAX);
    CHECK_INT(table_write(&v.toy.parts, &out, &why), ERR_LIMIT);
    CHECK(strstr(why.text, "nearly the same hash") && out.n == 0);
    buf_fini(&out);

    v.toy.parts.phrases = good;
    toy_write(&v.toy);
    v.bytes = toy_aligned(v.toy.bytes);
    v.p = (char *)v.bytes.p;
    v.head = (struct table_head *)v.p;
    v.lines = (struct table_line *)(v.head + 1);
    at = v.p + v.lines[PHRASES].at;
    memcpy(at, evil, sizeof(evil));
    put_evil((uint32_t *)(at + sizeof(evil)), mask, evil);
    check_refused(&v, "taken in a row");
    victim_fini(&v);
}

TEST(scales_that_are_no_good_are_refused)
{
    static const float bad[] = {-1, 1001, __builtin_inff(), __builtin_nanf("")};
    struct victim v;

    victim_init(&v);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memcpy(v.p + v.lines[SCALES].at + 8, &bad[i], sizeof(float));
        check_refused(&v, "row 2");
    }
    victim_fini(&v);
}

TEST(a_vocabulary_that_is_none_is_refused)
{
    struct victim v;

    victim_init(&v);
    memset(v.p + v.lines[WORDS].at, 0xff, v.lines[WORDS].n);
    check_refused(&v, "vocabulary");
    victim_fini(&v);
}
