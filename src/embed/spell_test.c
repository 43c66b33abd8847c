#include "embed/embed.h"

#include "base/buf.h"
#include "base/fault.h"
#include "test/t.h"

static struct speller *speller;

static void open_speller(void)
{
    struct why why = {""};

    CHECK(speller_new(&speller, &why) == OK);
}

/* A card with these words, a space around each. */
static void card_says(void *ctx, const struct str *words, size_t n,
                      bool *is_said)
{
    for (size_t i = 0; i < n; i++) {
        char word[64];

        snprintf(word, sizeof(word), " %.*s ", STR_ARG(words[i]));
        is_said[i] = strstr(ctx, word) != NULL;
    }
}

static void check_with(const char *card, struct str text, const char *right)
{
    struct buf out;
    size_t n;
    char words[512];

    snprintf(words, sizeof(words), "%s", card);
    buf_init(&out, 64 * 1024);
    n = speller_correct(speller, text, card_says, words, &out);
    if (!right)
        CHECK_INT(n, 0);
    CHECK_STR(n ? buf_str(&out) : text, right ? right : text.p);
    buf_fini(&out);
}

static void check(const char *text, const char *right)
{
    check_with("", str_of(text), right);
}

TEST(a_word_one_edit_away_from_a_known_one_is_corrected)
{
    open_speller();
    check("the kichen tap is broken", "the kitchen tap is broken");
    check("wirte unit tests", "write unit tests");
    check("the conttract is here", "the contract is here");
    check("the schpol called", "the school called");
    check("Plese help me", "please help me");
    check("PLEASE SEND THE CONTARCT", "PLEASE SEND THE contract");
    speller_free(speller);
}

TEST(a_text_without_mistakes_is_left_as_it_is)
{
    open_speller();
    check("please write unit tests for the parser", NULL);
    check("", NULL);
    check("?!", NULL);
    check("bake a cake, then reschedule the horoscope", NULL);
    check("it doesnt work and wont start", NULL);
    speller_free(speller);
}

TEST(names_code_paths_numbers_and_quotes_are_left_alone)
{
    open_speller();
    check("ask Contarct about it", NULL);
    check("the file contarct.txt is gone", NULL);
    check("open /srv/contarct/list", NULL);
    check("the column contarct_id is empty", NULL);
    check("see https://example.com/contarct now", NULL);
    check("mail contarct@example.com today", NULL);
    check("it says \"my contarct here\" on top", NULL);
    check("run `contarct now` twice", NULL);
    check("call contarct() again", NULL);
    check("the contArct is here", NULL);
    check("the cntr4act is here", NULL);
    speller_free(speller);
}

TEST(words_that_a_visible_card_says_are_known)
{
    open_speller();
    check("restart the contarct service", "restart the contract service");
    check_with(" contarct ", STR("restart the contarct service"), NULL);
    speller_free(speller);
}

TEST(a_doubtful_correction_is_made_where_a_card_says_the_word)
{
    open_speller();
    check("a custpmer called", NULL);
    check_with(" customer ", STR("a custpmer called"), "a customer called");
    speller_free(speller);
}

TEST(a_text_in_another_language_is_left_alone)
{
    open_speller();
    check("Können Sie mir bitte sagen, wie viele Urlaubstage mir zustehen",
          NULL);
    check("请帮我预订明天去上海的航班", NULL);
    check("сколько стоит билет до москвы", NULL);
    speller_free(speller);
}

TEST(no_more_words_are_corrected_than_the_limit)
{
    struct buf text, out;
    size_t n;

    open_speller();
    buf_init(&text, 64 * 1024);
    buf_init(&out, 64 * 1024);
    for (int i = 0; i < SPELL_FIXED_MAX + 1; i++)
        buf_addf(&text, "this is the contarct and ");
    n = speller_correct(speller, buf_str(&text), NULL, NULL, &out);
    CHECK_INT(n, SPELL_FIXED_MAX);
    CHECK(strstr(out.p + out.n - 30, "contarct"));
    buf_fini(&text);
    buf_fini(&out);
    speller_free(speller);
}

TEST(a_text_with_too_many_unknown_words_is_left_alone)
{
    struct buf text, out;

    open_speller();
    for (int more = 0; more < 2; more++) {
        size_t n;

        buf_init(&text, 64 * 1024);
        buf_init(&out, 64 * 1024);
        for (int i = 0; i < SPELL_UNKNOWN_MAX + more; i++)
            buf_addf(&text, "this is the contarct and ");
        n = speller_correct(speller, buf_str(&text), NULL, NULL, &out);
        CHECK_INT(n, more ? 0 : SPELL_FIXED_MAX);
        buf_fini(&text);
        buf_fini(&out);
    }
    speller_free(speller);
}

TEST(words_at_the_limits_of_length_are_looked_at_and_longer_ones_are_not)
{
    open_speller();
    check("i chek it", "i check it");
    check("i hav it", NULL);
    check("it is internationalisationx now", NULL); /* 21 letters, two edits */
    check("it is internationalisationnnnnnn now", NULL);
    speller_free(speller);
}

TEST(junk_of_any_size_neither_crashes_nor_changes)
{
    size_t n = 1 << 20;
    char *junk = malloc(n);
    struct buf out;
    uint64_t x = 7;

    open_speller();
    CHECK(junk);
    buf_init(&out, 64 * 1024);
    for (size_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        junk[i] = (char)(x >> 56);
    }
    for (size_t at = 0; at + 5000 < n; at += 4999)
        (void)speller_correct(speller, (struct str){junk + at, 5000}, NULL,
                              NULL, &out);
    buf_clear(&out);
    (void)speller_correct(speller, (struct str){junk, n}, NULL, NULL, &out);
    memset(junk, 'x', n);
    CHECK_INT(speller_correct(speller, (struct str){junk, n}, NULL, NULL, &out),
              0);
    buf_fini(&out);
    free(junk);
    speller_free(speller);
}

TEST(where_the_buffer_is_full_nothing_is_appended)
{
    struct buf out;

    open_speller();
    buf_init(&out, 10);
    CHECK_INT(speller_correct(speller, STR("the kichen tap is broken"), NULL,
                              NULL, &out),
              0);
    CHECK_INT(out.n, 0);
    buf_fini(&out);
    speller_free(speller);
}

static struct str gibberish_or_empty(const char *text)
{
    bool is = speller_is_gibberish(speller, str_of(text), NULL, NULL);

    return is ? str_of(text) : STR("");
}

TEST(keys_struck_at_random_are_gibberish)
{
    static const char *const all[] = {
        "asdkjh qwlekj",
        "asdf",
        "asdfasdf",
        "qwerty uiop",
        "jjjjjjjj",
        "lkjsdf oiwer xmcnv!!",
        "ajsdh kajshd kjashd",
        "asdkjh qlwkej zxmcnb asdkjh qlwkej zxmcnb asdkjh qlwkej zxmcnb "
        "asdkjh qlwkej zxmcnb asdkjh qlwkej zxmcnb asdkjh qlwkej zxmcnb",
        "zxcv zxcv",
        "Ajsdhf kajshdf",
    };

    open_speller();
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        CHECK_STR(gibberish_or_empty(all[i]), all[i]);
    speller_free(speller);
}

TEST(rare_words_and_other_languages_are_no_gibberish)
{
    static const char *const all[] = {
        "kubectl",
        "nginx btrfs",
        "k8s",
        "psql",
        "how do I use psql",
        "NDA for Wlkn",
        "my pod is in crbk",
        "ssh to the fqdn",
        "set up fwknop",
        "my pdf has no ocr lxml",
        "安装 pnpm 失败",
        "帮我把这份合同翻译成英文 xkcd",
        "chrząszcz",
        "hi",
        "???",
        "Umsatzsteuer",
        "hilfe",
        "necesito ayuda",
        "przepraszam",
        "asdf is what I typed",
        "12345",
        "\xe4\xbd\xa0\xe5\xa5\xbd",
        "my password is qwertz",
    };

    open_speller();
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        CHECK_STR(gibberish_or_empty(all[i]), "");
    speller_free(speller);
}

TEST(a_word_that_a_card_says_is_no_gibberish)
{
    char card[] = " xkcdqz comics ";

    open_speller();
    CHECK(speller_is_gibberish(speller, STR("xkcdqz xqztvk"), NULL, NULL));
    CHECK(
        !speller_is_gibberish(speller, STR("xkcdqz xqztvk"), card_says, card));
    speller_free(speller);
}

TEST(gibberish_has_at_most_64_words)
{
    char text[65 * 5 + 1] = "";

    open_speller();
    for (int i = 0; i < 64; i++)
        memcpy(text + (size_t)i * 5, "asdf ", 6);
    CHECK(speller_is_gibberish(speller, str_of(text), NULL, NULL));
    memcpy(text + (size_t)64 * 5, "asdf ", 6);
    CHECK(!speller_is_gibberish(speller, str_of(text), NULL, NULL));
    speller_free(speller);
}
