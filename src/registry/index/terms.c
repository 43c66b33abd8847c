/* Words are those of base/words: lower case, no accents, punctuation and
 * Chinese characters as words of their own. Punctuation and stop words are
 * dropped; the rest is reduced to the stem by Snowball's English rules. These
 * leave numbers and other scripts alone, so no language is excluded.
 *
 * The stop words are Snowball's for English, without apostrophes because those
 * split words ("don", "t"), plus the auxiliaries that Snowball leaves out as a
 * matter of taste. The list is in byte order; a test checks that. */
#include <libstemmer.h>
#include <stdlib.h>

#include "base/mem.h"
#include "registry/index/internal.h"

static const char *const stop_words[] = {
    "a",       "about",      "above",      "after",     "again",   "against",
    "all",     "am",         "an",         "and",       "any",     "are",
    "aren",    "as",         "at",         "be",        "because", "been",
    "before",  "being",      "below",      "between",   "both",    "but",
    "by",      "can",        "could",      "couldn",    "d",       "did",
    "didn",    "do",         "does",       "doesn",     "doing",   "don",
    "down",    "during",     "each",       "few",       "for",     "from",
    "further", "had",        "hadn",       "has",       "hasn",    "have",
    "haven",   "having",     "he",         "her",       "here",    "hers",
    "herself", "him",        "himself",    "his",       "how",     "i",
    "if",      "in",         "into",       "is",        "isn",     "it",
    "its",     "itself",     "let",        "ll",        "m",       "may",
    "me",      "might",      "more",       "most",      "must",    "mustn",
    "my",      "myself",     "no",         "nor",       "not",     "of",
    "off",     "on",         "once",       "only",      "or",      "other",
    "ought",   "our",        "ours",       "ourselves", "out",     "over",
    "own",     "re",         "s",          "same",      "shall",   "shan",
    "she",     "should",     "shouldn",    "so",        "some",    "such",
    "t",       "than",       "that",       "the",       "their",   "theirs",
    "them",    "themselves", "then",       "there",     "these",   "they",
    "this",    "those",      "through",    "to",        "too",     "under",
    "until",   "up",         "ve",         "very",      "was",     "wasn",
    "we",      "were",       "weren",      "what",      "when",    "where",
    "which",   "while",      "who",        "whom",      "why",     "will",
    "with",    "won",        "would",      "wouldn",    "you",     "your",
    "yours",   "yourself",   "yourselves",
};

enum { N_STOP_WORDS = sizeof(stop_words) / sizeof(stop_words[0]) };

bool term_is_stop_word(struct str word)
{
    size_t from = 0, to = N_STOP_WORDS;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = str_cmp(word, str_of(stop_words[middle]));

        if (!order)
            return true;
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return false;
}

bool term_stop_words_in_order(void)
{
    for (size_t i = 1; i < N_STOP_WORDS; i++)
        if (strcmp(stop_words[i - 1], stop_words[i]) >= 0)
            return false;
    return true;
}

/* A stemmer grows with the longest word it has seen. It sees that word here, so
 * that no query needs memory. */
struct sb_stemmer *stemmer_new(void)
{
    struct sb_stemmer *s = sb_stemmer_new("english", NULL);
    sb_symbol longest[WORD_MAX_BYTES];

    memset(longest, 'y', sizeof(longest));
    if (!s || !sb_stemmer_stem(s, longest, sizeof(longest)))
        mem_failed(sizeof(longest));
    return s;
}

void stemmer_free(struct sb_stemmer *s)
{
    if (s)
        sb_stemmer_delete(s);
}

void terms_begin(struct terms *t, struct sb_stemmer *stemmer, struct str text)
{
    t->stemmer = stemmer;
    words_begin(&t->words, text);
}

bool terms_next(struct terms *t)
{
    struct words *w = &t->words;
    const sb_symbol *stem;

    while (words_next(w)) {
        if (word_is_punctuation(w->word) || term_is_stop_word(w->word))
            continue;
        stem = sb_stemmer_stem(t->stemmer, (const sb_symbol *)w->word.p,
                               (int)w->word.n);
        t->stem = w->word;
        if (stem && sb_stemmer_length(t->stemmer) > 0)
            t->stem = (struct str){(const char *)stem,
                                   (size_t)sb_stemmer_length(t->stemmer)};
        t->stem = str_head(t->stem, INDEX_TERM_MAX);
        t->word = w->place;
        return true;
    }
    return false;
}

void index_terms(struct str text,
                 void (*each)(void *ctx, struct str word, struct str stem),
                 void *ctx)
{
    struct sb_stemmer *stemmer = stemmer_new();
    struct terms t;

    terms_begin(&t, stemmer, text);
    while (terms_next(&t))
        each(ctx, t.word, t.stem);
    stemmer_free(stemmer);
}
