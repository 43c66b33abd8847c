#include "registry/index/internal.h"

#include "base/fault.h"
#include "test/t.h"

/* The stems of a text, "|" between them. */
static struct str stems(struct str text)
{
    static char out[4096];
    struct sb_stemmer *stemmer = stemmer_new();
    struct terms t;
    size_t n = 0;

    CHECK(stemmer);
    terms_begin(&t, stemmer, text);
    while (terms_next(&t)) {
        CHECK(t.stem.n > 0 && t.stem.n <= INDEX_TERM_MAX);
        CHECK(n + t.stem.n + 2 < sizeof(out));
        if (n > 0)
            out[n++] = '|';
        memcpy(out + n, t.stem.p, t.stem.n);
        n += t.stem.n;
    }
    stemmer_free(stemmer);
    return (struct str){out, n};
}

TEST(words_become_stems_without_stop_words_and_signs)
{
    CHECK_STR(stems(STR("Translate the documents into German, please!")),
              "translat|document|german|pleas");
    CHECK_STR(stems(STR("translating translations translated")),
              "translat|translat|translat");
    CHECK_STR(stems(STR("Don't you think we'll (maybe) have it?")),
              "think|mayb");
    CHECK_STR(stems(STR("code_review, web-search")), "code|review|web|search");
}

TEST(other_writing_numbers_and_pictures_stay)
{
    CHECK_STR(stems(STR("2026 3.14 v2")), "2026|3|14|v2");
    CHECK_STR(stems(STR("Gr\u00fc\u00dfe aus K\u00f6ln")),
              "gru\u00dfe|aus|koln");
    CHECK_STR(stems(STR("\u5317\u4eac weather")), "\u5317|\u4eac|weather");
    CHECK_STR(stems(STR("\u041f\u0440\u0438\u0432\u0435\u0442")),
              "\u043f\u0440\u0438\u0432\u0435\u0442");
    CHECK_STR(stems(STR("\U0001f600")), "\U0001f600");
}

TEST(of_nothing_there_are_none)
{
    CHECK_STR(stems(STR("")), "");
    CHECK_STR(stems((struct str){NULL, 0}), "");
    CHECK_STR(stems(STR("is it the one who was there?")), "one");
    CHECK_STR(stems(STR("?!... -- ##")), "");
    CHECK_STR(stems(STR("\xff\xfe")), "");
}

/* Every one is found, so they are in order. */
TEST(stop_words_are_found)
{
    CHECK(term_is_stop_word(STR("a")));
    CHECK(term_is_stop_word(STR("himself")));
    CHECK(term_is_stop_word(STR("yourselves")));
    CHECK(!term_is_stop_word(STR("")));
    CHECK(!term_is_stop_word(STR("translate")));
    CHECK(!term_is_stop_word(STR("zzz")));
    CHECK_INT(term_stop_words_in_order(), true);
}

/* A word of a hundred letters is cut, and no character in two. */
TEST(a_stem_has_a_limit)
{
    char word[400];
    struct str s;

    memset(word, 'x', 64);
    s = stems((struct str){word, 64});
    CHECK_INT(s.n, 64);
    memset(word, 'x', 100);
    CHECK_INT(stems((struct str){word, 100}).n, 64);
    memset(word, 'x', 400);
    CHECK_INT(stems((struct str){word, 400}).n, 64);
    word[0] = 'x';
    for (int i = 0; i < 50; i++)
        memcpy(word + 1 + 2 * i, "\u0434", 2);
    CHECK_INT(stems((struct str){word, 101}).n, 63);
}

struct heard {
    char text[256];
    size_t n;
};

static void hear(void *ctx, struct str word, struct str stem)
{
    struct heard *h = ctx;

    h->n += (size_t)snprintf(h->text + h->n, sizeof(h->text) - h->n,
                             "%.*s=%.*s ", STR_ARG(word), STR_ARG(stem));
}

TEST(words_are_shown_where_they_stand)
{
    struct heard h = {.n = 0};

    index_terms(STR("Caf\u00c9s, and Running!"), hear, &h);
    CHECK_STR(str_of(h.text), "Caf\u00c9s=cafe Running=run ");
}
