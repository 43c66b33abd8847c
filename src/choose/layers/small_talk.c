/* Small talk: messages that request no work.
 *
 * A greeting is equally near to every card, and a card that says "makes the
 * screens look ok" is near to "ok". So a message that consists of phrases from
 * this list raises the cutoffs of every card (cutoff.c): only a card that is
 * very near, such as that of an agent for jokes, gets it.
 *
 * A message is small talk if it consists of phrases and fillers, or has neither
 * letters nor digits ("???", a thumb up). One other word makes it none:
 * "thanks, now book the flight".
 *
 * Phrases are written as words.h normalises them: small letters, no accents and
 * no apostrophes, each Chinese character a word; Japanese without the marks of
 * voiced sounds, Korean in single letters, Hindi without vowel signs. Stretched
 * letters ("hellooo", "thankssss") are also tried as one.
 *
 * Rejected: the nearest of the reference texts. With the built-in table it
 * finds 4 of 10 such messages, and 3 of 100 others. */
#include "base/utf8.h"
#include "base/words.h"
#include "choose/layers/internal.h"

enum { WORDS_MOST = 12, BYTES_MOST = 96 };

static const char *const phrases[] = {
    /* greetings */
    "hello", "hi", "hii", "helo", "hey", "hiya", "howdy", "yo", "greetings",
    "good morning", "good afternoon", "good evening", "good day", "good night",
    "morning", "welcome back", "long time no see", "nice to meet you",
    "pleased to meet you", "how are you", "how are you doing", "how are things",
    "how do you do", "how is it going", "how s it going", "hows it going",
    "how was your day", "how is your day", "how was your weekend", "what s up",
    "whats up", "what is up", "sup", "wassup", "are you there",
    "is anyone there", "is anybody there", "anyone here", "anybody here",
    /* thanks */
    "thanks", "thank you", "thank u", "thnaks", "thx", "ty", "tysm",
    "thanks a lot", "thanks a bunch", "thanks a ton", "thanks for your help",
    "thank you for your help", "many thanks", "much appreciated", "cheers",
    "appreciate it", "i appreciate it", "you re welcome", "you are welcome",
    "no problem", "no worries", "my pleasure", "that was helpful",
    "you were very helpful",
    /* yes, no, I see */
    "ok", "okay", "k", "kk", "alright", "all right", "right", "sure", "fine",
    "cool", "nice", "great", "awesome", "perfect", "excellent", "wonderful",
    "amazing", "wow", "good", "good job", "great job", "well done", "nice one",
    "nice work", "got it", "i see", "i understand", "understood", "makes sense",
    "that makes sense", "sounds good", "sounds great", "that s fine",
    "that s great", "that s nice", "fair enough", "of course", "yes", "yeah",
    "yep", "yup", "no", "nope", "nah", "maybe", "maybe later", "hmm", "hm",
    "mmm", "uh", "um", "ah", "aha", "i don t know", "i dont know", "idk",
    "never mind", "nevermind", "nvm", "forget it", "forget about it",
    "whatever", "not now", "no thanks", "no thank you", "sorry", "i m sorry",
    "oops", "my bad", "excuse me", "pardon", "wrong chat", "wrong window",
    "cool story",
    /* laughter and wishes */
    "lol", "lmao", "rofl", "haha", "hahaha", "hahahaha", "hehe", "ha ha", "xd",
    "that s funny", "very funny", "that made me laugh", "happy birthday",
    "merry christmas", "happy new year", "congratulations", "congrats",
    "good luck", "get well soon",
    /* farewells */
    "bye", "bye bye", "goodbye", "good bye", "see you", "see ya", "cya",
    "see you later", "see you soon", "see you tomorrow", "later", "take care",
    "have a nice day", "have a good day", "have a great day", "have a good one",
    "have a nice weekend", "have a good weekend", "have a nice evening",
    "talk to you later", "talk to you soon", "talk soon", "ttyl", "sleep well",
    "sweet dreams", "brb", "gtg",
    /* about the bot itself */
    "who are you", "what are you", "what is your name", "what s your name",
    "whats your name", "how old are you", "where are you from",
    "where do you live", "are you a robot", "are you a bot", "are you human",
    "are you a human", "are you real", "are you a real person", "are you alive",
    "are you an ai", "who made you", "who created you", "who built you",
    "do you love me", "i love you", "i like you", "i hate you", "you are great",
    "you re great", "you are the best", "you re the best",
    "do you have feelings", "do you dream", "do you sleep", "are you ok",
    "are you okay", "what is your favorite color", "what s your favorite color",
    "what is your favourite colour", "what s your favourite colour", "you suck",
    "you are stupid", "you re stupid", "you are useless", "you re useless",
    "you are an idiot", "you re an idiot", "shut up", "stupid bot", "bad bot",
    "good bot", "fuck you", "fuck off", "wtf", "omg", "damn",
    /* out of boredom, and to see whether it works */
    "tell me a joke", "tell a joke", "tell me something funny", "make me laugh",
    "i m bored", "im bored", "i am bored", "i m so bored", "i m tired",
    "i am tired", "i m sad", "i am sad", "i m happy", "i am happy",
    "surprise me", "talk to me", "let s chat", "let s talk", "can we talk",
    "knock knock", "test", "testing", "test test", "test 1 2 3",
    "testing 1 2 3", "test test 1 2 3", "this is a test", "just testing",
    "just a test", "blah", "bla", "foo", "foo bar", "foo bar baz",
    "lorem ipsum",
    /* German */
    "hallo", "guten tag", "guten morgen", "guten abend", "gute nacht", "moin",
    "servus", "danke", "danke schon", "danke dir", "vielen dank", "tschuss",
    "auf wiedersehen", "wie geht es dir", "wie geht es ihnen", "wie geht s",
    "wie gehts", "alles klar", "ja", "nein", "gut", "super", "toll",
    /* Spanish, French, Italian, Portuguese */
    "hola", "buenos dias", "buenas tardes", "buenas noches", "buenas",
    "gracias", "muchas gracias", "de nada", "adios", "hasta luego",
    "hasta manana", "que tal", "como estas", "si", "vale", "claro", "bonjour",
    "bonsoir", "salut", "coucou", "merci", "merci beaucoup", "au revoir",
    "a bientot", "ca va", "comment ca va", "comment allez vous", "oui", "non",
    "d accord", "bonne nuit", "bonne journee", "de rien", "ciao", "buongiorno",
    "buonasera", "salve", "grazie", "grazie mille", "prego", "arrivederci",
    "come stai", "come va", "buonanotte", "ola", "oi", "bom dia", "boa tarde",
    "boa noite", "obrigado", "obrigada", "muito obrigado", "tudo bem", "tchau",
    "ate logo",
    /* Dutch, Polish, Russian, Turkish, Nordic */
    "hoi", "goedemorgen", "goedemiddag", "goedenavond", "dank je",
    "dank je wel", "bedankt", "tot ziens", "doei", "hoe gaat het", "czesc",
    "dzien dobry", "dobry wieczor", "dziekuje", "dzieki", "do widzenia",
    "jak sie masz", "привет", "здравствуите", "доброе утро", "добрыи день",
    "добрыи вечер", "спасибо", "большое спасибо", "пока", "до свидания",
    "как дела", "да", "нет", "merhaba", "selam", "gunaydın", "iyi aksamlar",
    "tesekkurler", "tesekkur ederim", "sag ol", "nasılsın", "hei", "hej",
    "tack", "takk", "tak", "kiitos", "moi",
    /* Chinese, Japanese, Arabic, Korean, Hindi */
    "你 好", "您 好", "你 好 吗", "早 上 好", "晚 上 好", "谢 谢", "谢 谢 你",
    "多 谢", "再 见", "好 的", "こんにちは", "おはよう", "こんはんは",
    "ありかとう", "ありかとうこさいます", "さようなら", "مرحبا", "السلام عليكم",
    "شكرا", "안녕", "안녕하세요",
    "감사합니다", "고마워요", "नमसत", "धनयवाद"};

/* Words that may stand between phrases, but not alone. */
static const char *const fillers[] = {
    "there",   "everyone", "everybody", "all",  "guys", "folks", "friend",
    "friends", "bro",      "mate",      "man",  "dude", "buddy", "so",
    "very",    "much",     "really",    "and",  "my",   "dear",  "team",
    "to you",  "oh",       "well",      "then", "too",
};

/* The length of the longest entry that `rest` begins with; zero: none. */
static size_t longest(const char *const *list, size_t n, struct str rest)
{
    size_t best = 0;

    for (size_t i = 0; i < n; i++) {
        struct str one;

        if (list[i][0] != rest.p[0])
            continue; /* cheaper than strlen for most entries */
        one = str_of(list[i]);
        if (one.n > best && str_starts(rest, one) &&
            (one.n == rest.n || rest.p[one.n] == ' '))
            best = one.n;
    }
    return best;
}

/* Emoji, arrows and the like are words without letters. Braille and rare
 * Chinese characters lie between and after their ranges. */
static bool is_picture(struct str word)
{
    size_t n = utf8_one(word.p, word.p + word.n);
    uint32_t c = n ? utf8_decode(word.p, n) : 0;

    return (c >= 0x2190 && c < 0x2800) || (c >= 0x2900 && c < 0x2c00) ||
           (c >= 0x1f000 && c < 0x20000);
}

/* Append a word with runs of three or more equal letters cut to one. */
static void add_shortened(struct str word, char *out, size_t *n)
{
    for (size_t i = 0; i < word.n; i++) {
        size_t same = 1;

        while (i + same < word.n && word.p[i + same] == word.p[i])
            same++;
        out[(*n)++] = word.p[i];
        if (same == 2)
            out[(*n)++] = word.p[i];
        i += same - 1;
    }
}

/* The words with a blank after each; false: too many. */
static bool join_words(struct str text, bool shortens, char out[BYTES_MOST],
                       size_t *n)
{
    size_t n_words = 0;
    struct words w;

    *n = 0;
    words_begin(&w, text);
    while (words_next(&w)) {
        if (word_is_punctuation(w.word) || is_picture(w.word))
            continue;
        if (++n_words > WORDS_MOST || *n + w.word.n + 1 > BYTES_MOST)
            return false;
        if (shortens) {
            add_shortened(w.word, out, n);
        } else {
            memcpy(out + *n, w.word.p, w.word.n);
            *n += w.word.n;
        }
        out[(*n)++] = ' ';
    }
    return true;
}

/* A blank follows each word. */
static bool is_all_phrases(struct str words)
{
    bool is_any = false;

    while (words.n) {
        struct str rest = {words.p, words.n - 1};
        size_t n = longest(phrases, sizeof(phrases) / sizeof(*phrases), rest);

        is_any |= n > 0;
        if (!n)
            n = longest(fillers, sizeof(fillers) / sizeof(*fillers), rest);
        if (!n)
            return false;
        words = str_sub(words, n + 1, words.n);
    }
    return is_any;
}

bool choose_is_small_talk(struct str text)
{
    char words[BYTES_MOST];
    size_t n;

    if (text.n > CHOOSE_SMALL_TALK_MAX || !join_words(text, false, words, &n))
        return false;
    if (!n || is_all_phrases((struct str){words, n}))
        return true;
    return join_words(text, true, words, &n) &&
           is_all_phrases((struct str){words, n});
}
