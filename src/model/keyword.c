/* Walks both texts word by word without allocating. For one text and thousands
 * of agents registry/keywords.c has an index with the same results; tests
 * compare it with this. */
#include "model/keyword.h"

#include "base/words.h"

bool keyword_plain(struct buf *out, struct str text)
{
    struct words w;
    bool has_word = false;

    words_begin(&w, text);
    while (words_next(&w)) {
        buf_add_str(out, w.word);
        buf_add_char(out, ' ');
        has_word = has_word || !word_is_punctuation(w.word);
    }
    return has_word;
}

/* Whether the words of `keyword` follow at `at`, which is a copy: the caller's
 * position does not move. */
static bool keyword_is_at(struct words at, struct str keyword)
{
    struct words k;
    bool has_word = false;

    words_begin(&k, keyword);
    for (bool goes_on = true; words_next(&k);) {
        if (!goes_on || !str_eq(k.word, (struct str){at.bytes, at.word.n}))
            return false;
        has_word = has_word || !word_is_punctuation(k.word);
        goes_on = words_next(&at);
    }
    return has_word;
}

struct str keyword_find(struct strs keywords, struct str text)
{
    for (size_t i = 0; i < keywords.n; i++) {
        struct words w;

        words_begin(&w, text);
        while (words_next(&w))
            if (keyword_is_at(w, keywords.list[i]))
                return keywords.list[i];
    }
    return (struct str){NULL, 0};
}

/* Words that people use with every agent, sorted. */
static const char *const everyday[] = {
    "ask",       "answer",  "can",      "could", "day",     "do",
    "get",       "give",    "go",       "good",  "hello",   "help",
    "here",      "hey",     "hi",       "how",   "info",    "information",
    "know",      "like",    "make",     "me",    "message", "my",
    "need",      "new",     "now",      "ok",    "one",     "people",
    "please",    "problem", "question", "see",   "show",    "some",
    "something", "stuff",   "take",     "tell",  "thank",   "thanks",
    "thing",     "things",  "today",    "try",   "use",     "user",
    "want",      "way",     "what",     "when",  "where",   "who",
    "why",       "work",    "yes",      "you",
};

enum { N_EVERYDAY = sizeof(everyday) / sizeof(everyday[0]) };

bool keyword_is_everyday(struct str word)
{
    for (size_t i = 0; i < N_EVERYDAY; i++)
        if (str_eq(word, str_of(everyday[i])))
            return true;
    return false;
}
