#include "cli/price.h"

#include "base/clock.h"
#include "model/agent.h"
#include "test/t.h"

TEST(prices_are_read_and_written_alike)
{
    static const struct {
        const char *text;
        int64_t micros;
    } cases[] = {{"0.0015", 1500},     {"0.1", 100000},
                 {"12", 12000000},     {"1.000001", 1000001},
                 {"100.5", 100500000}, {"1000000", AGENT_PRICE_MAX}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t micros = -1;

        CHECK(price_read(str_of(cases[i].text), &micros) == OK);
        CHECK_INT(micros, cases[i].micros);
        CHECK_STR(str_of(price_write(micros).text), cases[i].text);
    }
    CHECK_STR(str_of(price_write(0).text), "free");
    CHECK_STR(str_of(price_write(1).text), "0.000001");
}

TEST(what_is_no_price_is_none)
{
    static const char *const bad[] = {"",
                                      ".",
                                      "1.",
                                      "-1",
                                      "0.-1",
                                      ".5",
                                      "0.0000001",
                                      "1e3",
                                      "0x1",
                                      "1000001",
                                      "1000000.000001",
                                      "1.2.3",
                                      "free",
                                      " 1",
                                      "99999999999999999999"};
    int64_t micros = 7;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (price_read(str_of(bad[i]), &micros) == OK)
            T_FAIL("%s was taken", bad[i]);
    CHECK_INT(micros, 7);
    CHECK(price_read(STR("0"), &micros) == OK && micros == 0);
    CHECK(price_read(STR("0.00"), &micros) == OK && micros == 0);
}

TEST(amounts_are_read_and_written_alike)
{
    static const struct {
        const char *text, *written;
        int64_t micros;
    } cases[] = {
        {"1.50", "1.50", 1500000},
        {"1.5", "1.50", 1500000},
        {"0.000001", "0.000001", 1},
        {"007", "7.00", 7000000},
        {"1000000.25", "1000000.25", 1000000250000},
        {"1000000000000", "1000000000000.00", 1000000000000000000},
        {"999999999999.999999", "999999999999.999999", 999999999999999999},
    };
    struct why why = {""};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t micros = -1;

        CHECK(price_read_amount(str_of(cases[i].text), &micros, &why) == OK);
        CHECK_INT(micros, cases[i].micros);
        CHECK_STR(str_of(amount_write(micros).text), cases[i].written);
    }
    CHECK_STR(str_of(amount_write(0).text), "0.00");
    CHECK_STR(str_of(amount_write(-1500).text), "-0.0015");
    CHECK_STR(str_of(amount_write(INT64_MAX).text), "9223372036854.775807");
    CHECK_STR(str_of(amount_write(INT64_MIN).text), "-9223372036854.775808");
}

TEST(what_is_no_amount_is_refused_in_words)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"0", "more than zero"},
        {"0.000000", "more than zero"},
        {"-1", "more than zero"},
        {"-0.5", "more than zero"},
        {"0.0000001", "six decimal"},
        {"1.0000000", "six decimal"},
        {"1000000000000.000001", "at most 1000000000000"},
        {"1000000000001", "at most 1000000000000"},
        {"99999999999999999999999999", "at most 1000000000000"},
        {"9999999999999.999999", "at most 1000000000000"},
        {"", "like 1.50"},
        {".", "like 1.50"},
        {"1.", "like 1.50"},
        {".5", "like 1.50"},
        {"+1", "like 1.50"},
        {"1.+1", "like 1.50"},
        {"1.-1", "like 1.50"},
        {"1e3", "like 1.50"},
        {"NaN", "like 1.50"},
        {"inf", "like 1.50"},
        {"0x10", "like 1.50"},
        {"1,50", "like 1.50"},
        {"1 ", "like 1.50"},
        {"1.2.3", "like 1.50"},
        {"1_000", "like 1.50"},
        {"\xd9\xa1", "like 1.50"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct why why = {""};
        int64_t micros = 7;

        CHECK(price_read_amount(str_of(cases[i].text), &micros, &why) ==
              ERR_SYNTAX);
        CHECK_INT(micros, 7);
        if (!strstr(why.text, cases[i].words))
            T_FAIL("\"%s\": %s", cases[i].text, why.text);
    }
}

/* Whatever is taken is written so that it is read again as the same, and
 * stands for what a slow reader makes of its digits. */
TEST(random_amounts_are_taken_for_what_they_say_or_not_at_all)
{
    static const char letters[] = "0123456789009900..-+eE, ";
    struct rand_seeded seed = {20261116};
    struct rand chance = rand_seeded(&seed);
    size_t n_taken = 0;

    for (int i = 0; i < 200000; i++) {
        char text[24];
        size_t n = (size_t)(rand_u64(chance) % 19), point = 0, k;
        struct why why = {""};
        int64_t micros = 0, again = 0, slow = 0;

        for (k = 0; k < n; k++)
            text[k] = letters[rand_u64(chance) % (sizeof(letters) - 1)];
        if (price_read_amount((struct str){text, n}, &micros, &why))
            continue;
        n_taken++;
        for (k = 0; k < n; k++) {
            if (text[k] == '.')
                point = 1;
            else
                slow = slow * 10 + (text[k] - '0'), point += point > 0;
        }
        for (k = point ? point - 1 : 0; k < 6; k++)
            slow *= 10;
        CHECK_INT(micros, slow);
        CHECK(micros > 0 && micros <= AMOUNT_MAX_UNITS * 1000000);
        CHECK(price_read_amount(str_of(amount_write(micros).text), &again,
                                &why) == OK);
        CHECK_INT(again, micros);
    }
    CHECK(n_taken > 1000);
}
