#include "base/breaker.h"

#include "test/t.h"

static struct breaker breaker(void)
{
    return (struct breaker){.max_failures = 3, .pause_ms = 1000};
}

TEST(it_opens_after_so_many_in_a_row)
{
    struct breaker b = breaker();

    CHECK(!breaker_bad(&b, false, 0, 0));
    CHECK(!breaker_bad(&b, false, 0, 0));
    CHECK(!breaker_good(&b, false)); /* not in a row */
    CHECK(!breaker_bad(&b, false, 0, 0));
    CHECK(!breaker_bad(&b, false, 0, 0) && breaker_may(&b, 0));
    CHECK(breaker_bad(&b, false, 10, 0));
    CHECK(!breaker_may(&b, 10) && !breaker_may(&b, 1009));
    CHECK(!breaker_good(&b, false)); /* sent before it opened: does not count */
    CHECK(!breaker_bad(&b, false, 500, 0));
    CHECK(breaker_may(&b, 1010));
}

TEST(one_probe_decides)
{
    struct breaker b = breaker();

    for (int i = 0; i < 3; i++)
        breaker_bad(&b, false, 0, 0);
    CHECK(breaker_may(&b, 1000) && breaker_ask(&b));
    CHECK(!breaker_may(&b, 1000) && !breaker_may(&b, 9000));
    CHECK(!breaker_good(&b, false) && !breaker_bad(&b, false, 1500, 0));
    CHECK(breaker_bad(&b, true, 2000, 0));
    CHECK(!breaker_may(&b, 2999) && breaker_may(&b, 3000) && breaker_ask(&b));
    breaker_forget(&b, true); /* given up: another may be sent */
    CHECK(breaker_may(&b, 3000) && breaker_ask(&b));
    CHECK(breaker_good(&b, true));
    CHECK(breaker_may(&b, 3000) && !breaker_ask(&b));
    CHECK(!breaker_bad(&b, false, 3000, 0)); /* counted from zero */
}

TEST(a_pause_that_is_asked_for_is_given_within_bounds)
{
    struct breaker b = breaker();

    CHECK(breaker_bad(&b, false, 0, 50)); /* at once, and shorter than ours */
    CHECK(!breaker_may(&b, 49) && breaker_may(&b, 50) && breaker_ask(&b));
    CHECK(breaker_bad(&b, true, 50, 50));
    CHECK(breaker_may(&b, 100) && breaker_ask(&b));
    CHECK(breaker_bad(&b, true, 100, 50)); /* the third: at least our pause */
    CHECK(!breaker_may(&b, 1099) && breaker_may(&b, 1100) && breaker_ask(&b));
    CHECK(breaker_bad(&b, true, 0, INT64_MAX));
    CHECK(!breaker_may(&b, BREAKER_PAUSE_MAX_MS - 1));
    CHECK(breaker_may(&b, BREAKER_PAUSE_MAX_MS));
    b = breaker();
    b.pause_ms = 2 * BREAKER_PAUSE_MAX_MS; /* the operator's own */
    CHECK(breaker_bad(&b, false, 0, INT64_MAX));
    CHECK(!breaker_may(&b, b.pause_ms - 1) && breaker_may(&b, b.pause_ms));
}
