#include "registry/index/internal.h"

#include <math.h>

#include "base/fault.h"
#include "test/lib/text_plain.h"
#include "test/t.h"

static const uint64_t seed[2] = {1, 2};

enum { MANY = 4096 };
static const uint64_t all[MANY / 64] = {[0 ... MANY / 64 - 1] = UINT64_MAX};

static struct text *some_text(void)
{
    struct text *t = text_new(1000, seed);

    CHECK(t && text_room(t, 600, 40) == OK);
    return t;
}

static struct agent called(struct str name, struct str description)
{
    return (struct agent){.name = name, .description = description};
}

static void put(struct text *t, uint32_t doc, uint32_t cls, struct agent a,
                const struct skill *s)
{
    struct text_doc *d;

    CHECK(text_prepare(t, &a, s, &d) == OK);
    text_drop(t, doc);
    text_put(t, doc, cls, d);
}

static void move(struct text *t, uint32_t doc, uint32_t cls)
{
    CHECK(text_move_room(t, doc) == OK);
    text_move(t, doc, cls);
}

static float score(const struct text *t, uint32_t doc, const char *query,
                   uint64_t classes)
{
    static float scores[MANY];
    static uint32_t touched[MANY];
    struct text_query q;
    float one;
    size_t n;

    text_query(t, str_of(query), &classes, 64, &q);
    memset(scores, 0, sizeof(scores));
    n = text_score_all(t, &q, all, true, scores, touched);
    for (size_t i = 0; i < n; i++) {
        one = text_score_one(t, &q, touched[i]);
        CHECK(memcmp(&one, &scores[touched[i]], sizeof(one)) == 0);
        CHECK(one > 0 && one <= 1);
    }
    return scores[doc];
}

static bool is_near(float a, double b)
{
    return fabs((double)a - b) < 1e-5;
}

/* Three documents of two, four and six words, so four on average. The query's
 * words are in one, in two and in none of them:
 *     idf  ln(1 + 2.5/1.5) = 0.980829, ln(1 + 1.5/2.5) = 0.470004,
 *          ln(1 + 3.5/0.5) = 2.079442
 *     ideal  3.530275 * 2 * 2.2 / 3.2 = 4.854128
 * and a word once in a document as long as half, once and one and a half times
 * the average is 2.2 / (1 + 1.2 * (0.25 + 0.75 * r)) of its idf: 1.257143, 1
 * and 0.830189. */
TEST(the_formula_by_hand)
{
    struct text *t = some_text();

    put(t, 0, 0, called(STR("red"), STR("fox")), NULL);
    put(t, 1, 0, called(STR("blue"), STR("fox cat cow")), NULL);
    put(t, 2, 0, called(STR("green"), STR("dog cat cow hen ram")), NULL);
    /* 1.257143 * (0.980829 + 0.470004) / 4.854128 = 0.375740; ^1.5 */
    CHECK(is_near(score(t, 0, "red fox unheard", 1), 0.230318));
    CHECK(is_near(score(t, 1, "red fox unheard", 1), 0.030129));
    CHECK(score(t, 2, "red fox unheard", 1) == 0);
    /* A word alone: 1 / 1.375 and 0.830189 / 1.375, ^1.5. */
    CHECK(is_near(score(t, 1, "cow", 1), 0.620220));
    CHECK(is_near(score(t, 2, "cow", 1), 0.469147));
    CHECK(text_check(t));
    text_free(t);
}

/* Twice at average length is all there can be, and more is no more. */
TEST(who_says_every_word_in_name_and_description_has_it_all)
{
    struct text *t = some_text();

    put(t, 0, 0, called(STR("translate"), STR("translate texts")), NULL);
    put(t, 1, 0, called(STR("cook"), STR("recipes daily")), NULL);
    put(t, 2, 0, called(STR("sing"), STR("sing sing")), NULL);
    CHECK(score(t, 0, "translate", 1) == 1.0f);
    CHECK(score(t, 2, "sing", 1) == 1.0f);
    CHECK(is_near(score(t, 1, "cook", 1), 0.620220));
    text_free(t);
}

/* A long query is measured by the words that tell most. */
TEST(a_long_query_is_no_disadvantage)
{
    struct text *t = some_text();
    float few, many;

    put(t, 0, 0, called(STR("net-income"), STR("net income revenue")), NULL);
    put(t, 1, 0, called(STR("weather"), STR("rain wind sun snow")), NULL);
    few = score(t, 0, "net income revenue foo bar baz", 1);
    many = score(t, 0, "net income revenue foo bar baz qux one two six", 1);
    CHECK(few > 0 && few < 1);
    CHECK(many == few);
    /* Unknown words count. */
    CHECK(score(t, 0, "revenue", 1) > score(t, 0, "revenue foo", 1));
    CHECK(score(t, 0, "revenue foo", 1) > score(t, 0, "revenue foo bar", 1));
    /* Saying it again does not. */
    CHECK(score(t, 0, "revenue", 1) == score(t, 0, "revenue revenues", 1));
    CHECK(score(t, 0, "revenue foo", 1) ==
          score(t, 0, "revenue foo foo foo", 1));
    text_free(t);
}

TEST(a_skill_is_found_by_its_own_words_and_less_by_its_agents)
{
    static const struct str tags[] = {{"sql", 3}}, examples[] = {{"slow", 4}};
    struct skill s = {.name = STR("tuneQuery"),
                      .description = STR("makes plans"),
                      .tags = {tags, 1},
                      .examples = {examples, 1}};
    struct text *t = some_text();
    struct agent a = called(STR("database"), STR("keeps tables"));
    struct text_word words[INDEX_DOC_TERMS_MAX];
    float own;

    put(t, 0, 0, a, &s);
    put(t, 1, 0, a, NULL);
    own = score(t, 0, "plans", 1);
    CHECK(own > 0);
    CHECK(score(t, 0, "sql", 1) == own && score(t, 0, "slow", 1) == own);
    CHECK(score(t, 0, "tune", 1) == own && score(t, 0, "query", 1) == own);
    /* And by the whole name. */
    CHECK(score(t, 0, "tuneQuery", 1) == own);
    CHECK(score(t, 0, "TUNEQUERY", 1) == own);
    CHECK(score(t, 0, "tables", 1) > 0 && score(t, 0, "database", 1) > 0);
    CHECK(score(t, 0, "tables", 1) < score(t, 1, "tables", 1) / 2);
    CHECK_INT(text_words(t, 0, words), 10);
    CHECK_INT(text_words(t, 1, words), 3);
    CHECK_INT(text_words(t, 7, words), 0);
    text_free(t);
}

TEST(all_words_of_a_name_that_people_wrote_count)
{
    struct skill s = {.id = STR("x"), .name = STR("Convert .docx to PDF")};
    struct text_word words[INDEX_DOC_TERMS_MAX];
    struct text *t = some_text();

    put(t, 0, 0, called(STR("paper"), STR("")), &s);
    CHECK_INT(text_words(t, 0, words), 4);
    CHECK(score(t, 0, "convert", 1) == score(t, 0, "pdf", 1));
    s.id = s.name = STR("files.docx2pdf");
    put(t, 0, 0, called(STR("paper"), STR("")), &s);
    CHECK_INT(text_words(t, 0, words), 2);
    CHECK(score(t, 0, "files", 1) == 0 && score(t, 0, "docx2pdf", 1) > 0);
    text_free(t);
}

TEST(a_title_says_what_the_name_does_not)
{
    struct text_word words[INDEX_DOC_TERMS_MAX];
    struct text *t = some_text();
    struct agent a = called(STR("Bots_1.invoiceBot"), STR("bills"));

    a.title = STR("The Invoice Desk");
    put(t, 0, 0, a, NULL);
    CHECK(score(t, 0, "desk", 1) == score(t, 0, "invoice", 1));
    CHECK(score(t, 0, "invoicebot", 1) == score(t, 0, "bill", 1));
    CHECK(score(t, 0, "bots_1", 1) > 0); /* the stem of "bot" */
    CHECK_INT(text_words(t, 0, words), 5);
    text_free(t);
}

/* Visibility. */

static void fill_public(struct text *t)
{
    put(t, 0, 0, called(STR("alpha"), STR("mail and letters")), NULL);
    put(t, 1, 0, called(STR("beta"), STR("letters of all sorts")), NULL);
    put(t, 2, 1, called(STR("gamma"), STR("mail for the org")), NULL);
}

static void fill_private(struct text *t)
{
    for (uint32_t i = 10; i < 40; i++)
        put(t, i, 2, called(STR("hidden"), STR("mail stranger words")), NULL);
}

static const char *const asked[] = {"mail", "letters", "mail letters",
                                    "stranger mail", "org unheard mail"};
enum { N_ASKED = sizeof(asked) / sizeof(asked[0]) };

/* Scores of what classes 0 and 1 hold, as those see them who see no more. */
static void scores_of(struct text *t, float out[N_ASKED][3])
{
    for (size_t i = 0; i < N_ASKED; i++)
        for (uint32_t doc = 0; doc < 3; doc++)
            out[i][doc] = score(t, doc, asked[i], 3);
}

TEST(what_is_not_seen_changes_nothing)
{
    struct text *t = some_text();
    float before[N_ASKED][3], with[N_ASKED][3], after[N_ASKED][3];

    fill_public(t);
    scores_of(t, before);
    fill_private(t);
    scores_of(t, with);
    CHECK(memcmp(before, with, sizeof(before)) == 0);
    for (uint32_t i = 10; i < 40; i++)
        text_drop(t, i);
    scores_of(t, after);
    CHECK(memcmp(before, after, sizeof(before)) == 0);
    CHECK(before[0][0] > 0 && before[2][1] > 0 && before[4][2] > 0);
    text_free(t);
}

/* The control: statistics of all classes would be noticed. */
TEST(shared_statistics_would_be_noticed)
{
    struct text *t = some_text();
    float before[N_ASKED][3], with[N_ASKED][3];

    fill_public(t);
    scores_of(t, before);
    fill_private(t);
    fault_arm_at("index.all_classes", 1);
    scores_of(t, with);
    fault_arm(0);
    CHECK(memcmp(before, with, sizeof(before)) != 0);
    text_free(t);
}

TEST(documents_that_are_not_visible_are_left_out)
{
    struct text *t = some_text();
    float scores[MANY] = {0};
    uint32_t touched[MANY];
    uint64_t visible[MANY / 64] = {1 << 1}, seen = 3;
    struct text_query q;

    fill_public(t);
    fill_private(t);
    text_query(t, STR("mail letters"), &seen, 64, &q);
    CHECK_INT(text_score_all(t, &q, visible, true, scores, touched), 1);
    CHECK_INT(touched[0], 1);
    CHECK(scores[0] == 0 && scores[1] > 0 && scores[2] == 0);
    text_free(t);
}

/* A grant shows a document of an invisible class, even to a requester who sees
 * no other. */
TEST(a_document_alone_has_a_score)
{
    struct text *t = some_text();

    fill_private(t);
    CHECK(score(t, 10, "stranger", 0) > 0);
    CHECK(score(t, 10, "nothing", 0) == 0);
    text_free(t);
}

TEST(a_document_in_another_class_counts_there)
{
    struct text *t = some_text();

    fill_public(t);
    put(t, 3, 0, called(STR("delta"), STR("mail")), NULL);
    move(t, 2, 0);
    move(t, 3, 30);
    move(t, 3, 30);
    CHECK(text_check(t));
    CHECK(score(t, 0, "mail", 1) == score(t, 0, "mail", 3));
    CHECK(score(t, 0, "mail letters", 1) !=
          score(t, 0, "mail letters", 1 | UINT64_C(1) << 30));
    text_free(t);
}

/* Limits. */

TEST(only_so_many_words_of_a_document_count)
{
    struct text_word words[INDEX_DOC_TERMS_MAX];
    char *text = malloc(INDEX_DOC_TERMS_MAX * 8 + 64);
    struct text *t = some_text();
    size_t n = 0;

    CHECK(text);
    for (int i = 0; i < INDEX_DOC_TERMS_MAX; i++)
        n += (size_t)snprintf(text + n, 8, "w%d ", i);
    put(t, 0, 0, called(STR("w0"), (struct str){text, n}), NULL);
    CHECK_INT(text_words(t, 0, words), INDEX_DOC_TERMS_MAX - 1);
    CHECK(score(t, 0, "w2046", 1) > 0);
    CHECK(score(t, 0, "w2047", 1) == 0);
    CHECK(text_check(t));
    text_free(t);
    free(text);
}

TEST(only_so_many_words_of_a_query_count)
{
    struct text *t = some_text();
    struct text_query q;
    char query[4096];
    size_t n = 0;

    put(t, 0, 0, called(STR("x"), STR("w63 w64")), NULL);
    for (int i = 0; i < INDEX_QUERY_TERMS_MAX; i++)
        n += (size_t)snprintf(query + n, sizeof(query) - n, "w%d the w%d ", i,
                              i);
    snprintf(query + n, sizeof(query) - n, "w64");
    text_query(t, str_of(query), all, MANY, &q);
    CHECK_INT(q.n, INDEX_QUERY_TERMS_MAX);
    CHECK(q.terms[63].term != UINT32_MAX && q.terms[62].term == UINT32_MAX);
    CHECK(text_score_one(t, &q, 0) > 0);
    text_free(t);
}

TEST(only_the_beginning_of_a_query_is_read)
{
    struct text *t = some_text();
    char *query = malloc(TEXT_QUERY_BYTES + 64);
    struct text_query q;

    CHECK(query);
    put(t, 0, 0, called(STR("mail"), STR("")), NULL);
    memset(query, ' ', TEXT_QUERY_BYTES + 64);
    memcpy(query + TEXT_QUERY_BYTES, "mail", 4);
    text_query(t, (struct str){query, TEXT_QUERY_BYTES + 64}, all, 1, &q);
    CHECK_INT(q.n, 0);
    CHECK(q.ideal == 0 && text_score_one(t, &q, 0) == 0);
    memcpy(query + TEXT_QUERY_BYTES - 4, "mail", 4);
    text_query(t, (struct str){query, TEXT_QUERY_BYTES + 64}, all, 1, &q);
    CHECK_INT(q.n, 1);
    text_free(t);
    free(query);
}

TEST(different_words_have_a_limit)
{
    struct text *t = text_new(1, seed);
    struct agent a = called(STR("one"), STR(""));
    struct text_doc *docs[2 * TEXT_TERMS_PER_DOC], *more;
    char name[32];
    int n = 2 * TEXT_TERMS_PER_DOC;

    CHECK(t && text_room(t, 1, 1) == OK);
    for (int i = 0; i < n; i++) {
        a.name =
            (struct str){name, (size_t)snprintf(name, sizeof(name), "n%d", i)};
        CHECK(text_prepare(t, &a, NULL, &docs[i]) == OK);
    }
    a = called(STR("n0"), STR("news"));
    CHECK_INT(text_prepare(t, &a, NULL, &more), ERR_LIMIT);
    a = called(STR("n0"), STR("n1"));
    CHECK_INT(text_prepare(t, &a, NULL, &more), OK);
    text_forget(t, more);
    CHECK(text_check(t));
    for (int i = 0; i < n; i++)
        text_forget(t, docs[i]);
    CHECK_INT(text_n_terms(t), 0);
    CHECK(text_check(t));
    text_free(t);
}

/* Removed documents leave nothing behind. */
TEST(memory_does_not_grow_with_changes)
{
    struct text *t = some_text();
    size_t bytes = 0;
    char name[32];

    for (int i = 0; i < 1000; i++) {
        struct str s = {name, (size_t)snprintf(name, sizeof(name), "n%d", i)};

        put(t, (uint32_t)i % 4, (uint32_t)i % 3, called(s, STR("mail")), NULL);
        if (i == 100)
            bytes = text_bytes(t);
    }
    CHECK(text_bytes(t) <= bytes + 64);
    CHECK_INT(text_n_terms(t), 5);
    CHECK(text_terms_end(t) <= 8);
    CHECK(text_check(t));
    text_free(t);
}

TEST(documents_come_back_from_a_snapshot)
{
    struct text *t = some_text(), *u = some_text();
    struct text_word words[INDEX_DOC_TERMS_MAX];
    struct str stems[64];
    struct text_doc *d;

    fill_public(t);
    for (uint32_t i = 0; i < text_terms_end(t); i++)
        stems[i] = text_stem(t, i);
    for (uint32_t doc = 0; doc < 3; doc++) {
        size_t n = text_words(t, doc, words);

        CHECK(text_prepare_words(u, stems, text_terms_end(t), words, n, &d) ==
              OK);
        text_put(u, doc, doc / 2, d);
    }
    CHECK(text_check(u));
    for (size_t i = 0; i < N_ASKED; i++)
        for (uint32_t doc = 0; doc < 3; doc++)
            CHECK(score(t, doc, asked[i], 3) == score(u, doc, asked[i], 3));
    text_free(t);
    text_free(u);
}

TEST(a_snapshot_is_not_believed)
{
    static const struct str stems[] = {{"a", 1}, {"b", 1}, {"", 0}};
    static const struct text_word bad[][2] = {
        {{0, 4}, {3, 4}},      {{0, 4}, {0, 4}}, {{1, 4}, {0, 4}},
        {{0, 4}, {1, 0}},      {{0, 4}, {2, 4}}, {{0, 1}, {1, UINT32_MAX}},
        {{0, 8000}, {1, 200}},
    };
    static struct text_word many[INDEX_DOC_TERMS_MAX + 1];
    struct text *t = some_text();
    struct text_doc *d;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_INT(text_prepare_words(t, stems, 3, bad[i], 2, &d),
                  ERR_BAD_REQUEST);
    CHECK_INT(
        text_prepare_words(t, stems, 3, many, INDEX_DOC_TERMS_MAX + 1, &d),
        ERR_BAD_REQUEST);
    CHECK_INT(text_n_terms(t), 0);
    CHECK(text_check(t));
    text_free(t);
}

/* Many documents come, go and change their class. For every query and every set
 * of visible classes, the answer is that of the plain algorithm, bit for
 * bit. */

static uint32_t chance(uint32_t below)
{
    static uint64_t state = 88172645463325252;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

/* Some words are common and most are rare. */
static struct str any_words(char *out, size_t size, int n)
{
    size_t at = 0;

    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, size - at, "%sq%u", i ? " " : "",
                               chance(chance(200) + 1));
    return (struct str){out, at};
}

static void put_any(struct text *t, struct plain_doc *docs, uint32_t doc)
{
    char name[64], description[256], skill[256];
    struct str words;
    struct agent a;
    struct skill s;
    struct plain_doc *p = &docs[doc];
    bool is_skill = chance(2);

    *p = (struct plain_doc){.is_there = true, .cls = chance(30)};
    words = any_words(name, sizeof(name), 1);
    a = called(words, any_words(description, sizeof(description),
                                2 + (int)chance(10)));
    plain_add(p, a.name, is_skill ? TEXT_AGENT : TEXT_OWN);
    plain_add(p, a.description, is_skill ? TEXT_AGENT : TEXT_OWN);
    s = (struct skill){
        .name = STR("q7"),
        .description = any_words(skill, sizeof(skill), 2 + (int)chance(10))};
    if (is_skill) {
        plain_add(p, s.name, TEXT_OWN);
        plain_add(p, s.description, TEXT_OWN);
    }
    put(t, doc, p->cls, a, is_skill ? &s : NULL);
}

static void ask_any(struct text *t, const struct plain_doc *docs, uint32_t n)
{
    static float scores[PLAIN_DOCS];
    static uint32_t touched[PLAIN_DOCS];
    uint64_t visible[PLAIN_DOCS / 64], seen = 0;
    struct plain_doc query = {.n = 0};
    bool is_seen[30];
    struct text_query q;
    char text[256];
    size_t n_touched, n_plain = 0;

    for (int i = 0; i < 30; i++) {
        is_seen[i] = chance(3) == 0;
        seen |= (uint64_t)is_seen[i] << i;
    }
    for (size_t i = 0; i < PLAIN_DOCS / 64; i++)
        visible[i] = (uint64_t)chance(1u << 31) << 33 | chance(1u << 31);
    plain_add(&query, any_words(text, sizeof(text), 1 + (int)chance(12)), 1);
    text_query(t, str_of(text), &seen, 30, &q);
    CHECK_INT(q.n, query.n);
    memset(scores, 0, sizeof(scores));
    n_touched = text_score_all(t, &q, visible, true, scores, touched);
    for (uint32_t i = 0; i < n; i++) {
        bool is_visible = visible[i / 64] >> i % 64 & 1;
        float want = docs[i].is_there
                         ? plain_score(docs, n, is_seen, &query, &docs[i])
                         : 0,
              one = text_score_one(t, &q, i);

        CHECK(memcmp(&want, &one, sizeof(want)) == 0);
        want = is_visible ? want : 0;
        CHECK(memcmp(&want, &scores[i], sizeof(want)) == 0);
        n_plain += want > 0;
    }
    CHECK_INT(n_touched, n_plain);
}

TEST(every_answer_is_that_of_the_plain_way)
{
    static struct plain_doc docs[PLAIN_DOCS];
    bool is_full = getenv("STRESS") && strcmp(getenv("STRESS"), "full") == 0;
    uint32_t n = is_full ? PLAIN_DOCS : 100;
    struct text *t = some_text();

    for (int i = 0; i < (is_full ? 5000 : 600); i++) {
        uint32_t doc = chance(n);

        if (chance(3)) {
            put_any(t, docs, doc);
        } else if (chance(2)) {
            text_drop(t, doc);
            docs[doc].is_there = false;
        } else if (docs[doc].is_there) {
            docs[doc].cls = chance(30);
            move(t, doc, docs[doc].cls);
        }
        if (i % 8 == 0)
            ask_any(t, docs, n);
        if (i % 64 == 0)
            CHECK(text_check(t));
    }
    CHECK(text_check(t));
    text_free(t);
}
