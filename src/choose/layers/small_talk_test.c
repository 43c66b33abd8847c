#include "choose/layers/choose.h"

#include "test/t.h"

static struct str small_talk_or_empty(const char *text)
{
    return choose_is_small_talk(str_of(text)) ? str_of(text) : STR("");
}

TEST(a_message_that_asks_for_no_work_is_small_talk)
{
    static const char *const all[] = {
        "hi",
        "Hello there!",
        "HELLO",
        "Good morning, everyone",
        "ok thanks",
        "Thank you so much!!",
        "how are you doing?",
        "What's up, bro",
        "what’s up",
        "no",
        "lol",
        "Oh well, never mind then",
        "tell me a joke",
        "Danke schön",
        "¿qué tal?",
        "Привет!",
        "Здравствуйте",
        "Добрый день",
        "Günaydın",
        "Teşekkürler",
        "Cześć",
        "Dziękuję",
        "你好！",
        "谢谢你",
        "ありがとうございます",
        "こんばんは",
        "مرحبا",
        "안녕하세요",
        "नमस्ते",
        "hellooooo",
        "Heyyy",
        "thankssss!",
        "???",
        "👍",
        "thanks ❤️",
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        CHECK_STR(small_talk_or_empty(all[i]), all[i]);
}

TEST(one_other_word_makes_it_a_request)
{
    static const char *const all[] = {
        "thanks, now book the flight",
        "hello, my invoice is wrong",
        "ok go",
        "no invoice came",
        "my team",
        "and then",
        "good restaurants",
        "yes, deploy it",
        "test the login form",
        "tell me a joke about kubernetes",
        "12345",
        "𠮷𠀀𠜎",
        "⠓⠑⠇⠏",
        "www",
        "how are you billing me",
        "你好票",
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        CHECK_STR(small_talk_or_empty(all[i]), "");
}

TEST(small_talk_is_short)
{
    char text[CHOOSE_SMALL_TALK_MAX + 2];
    size_t n = 0;

    while (n + 3 <= CHOOSE_SMALL_TALK_MAX) {
        memcpy(text + n, "ok ", 3);
        n += 3;
        CHECK_INT(choose_is_small_talk((struct str){text, n}), n / 3 <= 12);
    }
    memset(text, ' ', sizeof(text));
    memcpy(text, "ok", 2);
    CHECK(choose_is_small_talk((struct str){text, CHOOSE_SMALL_TALK_MAX}));
    CHECK(!choose_is_small_talk((struct str){text, CHOOSE_SMALL_TALK_MAX + 1}));
}
