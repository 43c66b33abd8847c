#include "cli/price.h"

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
