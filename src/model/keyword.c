/* Both texts are walked word by word, and nothing is allocated. For one text
 * and thousands of agents there is a table in registry/keywords.c, which finds
 * the same; this is the truth that it is compared with. */
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

/* The words of `keyword` and those that stand at `at`, which is a copy: whoever
 * walks there stays where they are. */
static bool stands_at(struct words at, struct str keyword)
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

static bool occurs(struct str keyword, struct str text)
{
    struct words w;

    words_begin(&w, text);
    while (words_next(&w))
        if (stands_at(w, keyword))
            return true;
    return false;
}

struct str keyword_find(struct strs keywords, struct str text)
{
    for (size_t i = 0; i < keywords.n; i++)
        if (occurs(keywords.list[i], text))
            return keywords.list[i];
    return (struct str){NULL, 0};
}

/* What people say to every agent, in order. */
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
