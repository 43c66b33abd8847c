/* Texts that are the same to a person. */
#include "test/t.h"

#include "model/decision.h"

#include <stdlib.h>

static bool is_same(const char *a, const char *b)
{
    return decision_text_hash(str_of(a)) == decision_text_hash(str_of(b));
}

TEST(case_and_white_space_do_not_make_another_text)
{
    CHECK(is_same("Pods keep crashing", "  pods   KEEP\n crashing "));
    CHECK(is_same("\xc3\x89t\xc3\xa9", "\xc3\xa9t\xc3\xa9"));
    CHECK(is_same("", " \t"));
}

TEST(marks_of_sentences_do_not_make_another_text)
{
    CHECK(is_same("Hello!", "hello."));
    CHECK(is_same("pods keep crashing", "Pods keep crashing?"));
    CHECK(is_same("well, do it", "well do it"));
    CHECK(is_same("你好！", "你好"));
    CHECK(!is_same("?", "!"));
    CHECK(!is_same("?", ""));
    CHECK(!is_same("a + b", "a - b"));
}

TEST(other_words_and_their_order_do)
{
    CHECK(!is_same("pods keep crashing", "pods keep crashin"));
    CHECK(!is_same("pods keep crashing", "keep pods crashing"));
    CHECK(!is_same("pods keep crashing", "pods keepcrashing"));
    CHECK(!is_same("c", "c++"));
}

TEST(a_hash_is_never_zero)
{
    CHECK(decision_text_hash(STR("")) != 0);
    CHECK(decision_text_hash(STR("\xff\xfe")) != 0);
}

/* Beyond 16 KiB only the length counts. */
TEST(a_long_text_is_told_from_a_longer_one)
{
    enum { MANY = 64 * 1024 };
    char *text = malloc(MANY);
    uint64_t whole, shorter;

    CHECK(text);
    memset(text, 'a', MANY);
    for (size_t i = 7; i < MANY; i += 8)
        text[i] = ' ';
    whole = decision_text_hash((struct str){text, MANY});
    shorter = decision_text_hash((struct str){text, MANY - 8});
    CHECK(whole != shorter);
    text[100] = 'b';
    CHECK(whole != decision_text_hash((struct str){text, MANY}));
    free(text);
}
