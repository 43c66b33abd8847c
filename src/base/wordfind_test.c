#include "base/wordfind.h"

#include "test/t.h"

static bool finds(const char *wish, const char *text)
{
    struct wordfind f;

    CHECK(wordfind_init(&f, str_of(wish)));
    return wordfind_has(&f, str_of(text));
}

TEST(words_are_found_in_any_order_and_any_case)
{
    CHECK(finds("model", "Build me a Laravel MODEL"));
    CHECK(finds("MODEL build", "Build me a Laravel model"));
    CHECK(finds("uber cafe", "\xc3\x9c"
                             "ber das Caf\xc3\xa9"));
    CHECK(finds("\xc3\x9c"
                "BER",
                "uber alles"));
    CHECK(!finds("model factory", "Build me a model"));
    CHECK(!finds("x", ""));
}

TEST(a_part_of_a_word_is_enough)
{
    CHECK(finds("gratio", "a migration"));
    CHECK(!finds("a migrations", "a migration"));
    /* But not across two words. */
    CHECK(!finds("amigration", "a migration"));
}

TEST(punctuation_counts_and_characters_of_chinese_stand_alone)
{
    CHECK(finds("c++", "write it in C++, please"));
    CHECK(!finds("c++", "write it in C, please"));
    CHECK(finds("\xe4\xbd\xa0\xe5\xa5\xbd", "\xe4\xbd\xa0\xe5\xa5\xbd!"));
    CHECK(finds("\"'%_", "'%_\" drop table"));
}

TEST(a_wish_has_a_word_and_is_short_enough)
{
    char longest[WORDFIND_BYTES + 1];
    struct wordfind f;

    memset(longest, 'x', sizeof(longest));
    CHECK(!wordfind_init(&f, STR("")));
    CHECK(!wordfind_init(&f, STR(" \t ")));
    CHECK(wordfind_init(&f, (struct str){longest, WORDFIND_BYTES}));
    CHECK(!wordfind_init(&f, (struct str){longest, WORDFIND_BYTES + 1}));
}

TEST(of_a_long_text_its_beginning_is_looked_at)
{
    char text[WORDFIND_TEXT + 8];
    struct wordfind f;

    memset(text, 'x', sizeof(text));
    for (size_t i = 50; i < sizeof(text); i += 51)
        text[i] = ' ';
    memcpy(text + WORDFIND_TEXT - 4, " end", 4);
    CHECK(wordfind_init(&f, STR("end")));
    CHECK(wordfind_has(&f, (struct str){text, WORDFIND_TEXT}));
    memcpy(text + WORDFIND_TEXT - 4, "xxxx end", 8);
    CHECK(!wordfind_has(&f, (struct str){text, sizeof(text)}));
}
