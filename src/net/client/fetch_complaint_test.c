#include "net/client/fetch.h"
#include "test/t.h"

/* Messages of error answers. embed_reply_test.c tests those of embedding
 * providers; this file has the rest. */

TEST(all_of_several_secrets_are_blotted_out)
{
    static const struct str secrets[] = {STR("user:pass"), STR("dXNlcg=="),
                                         STR("")};
    char out[128];

    fetch_complaint(STR("{\"error\":\"dXNlcg== is user:pass, dXNlcg==\"}"),
                    secrets, 3, out, sizeof(out));
    CHECK_STR(str_of(out), "[the key] is [the key], [the key]");
    fetch_complaint(STR("{\"error\":\"nothing\"}"), NULL, 0, out, sizeof(out));
    CHECK_STR(str_of(out), "nothing");
}

#define NOW_MS 784111777000 /* Sun, 06 Nov 1994 08:49:37 GMT */

static int64_t after(const char *value)
{
    struct fetch_header headers[] = {{STR("X-Other"), STR("7")},
                                     {STR("retry-AFTER"), str_of(value)}};
    struct fetch_answer a = {.headers = headers, .n_headers = 2};

    return fetch_retry_after_ms(&a, NOW_MS);
}

TEST(how_long_to_wait_is_said_in_seconds_or_as_a_date)
{
    static const struct {
        const char *value;
        int64_t ms;
    } cases[] = {
        {"0", 0},
        {"1", 1000},
        {"3599", 3599 * 1000},
        {"3600", 3600 * 1000},
        {"3601", 3600 * 1000},
        {"9223372036854775807", 3600 * 1000},
        {"-5", 0},
        {"-9223372036854775808", 0},
        {"9223372036854775808", 0},
        {"1.5", 0},
        {"soon", 0},
        {"", 0},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 0},
        {"Sun, 06 Nov 1994 08:49:40 GMT", 3000},
        {"Sunday, 06-Nov-94 08:49:40 GMT", 3000},
        {"Sun Nov  6 08:49:40 1994", 3000},
        {"Sun, 06 Nov 1994 08:49:30 GMT", 0},
        {"Sun, 06 Nov 9994 08:49:30 GMT", 3600 * 1000},
        {"Sun, 06 Nov 1994 08:49:40 GMT and more", 0},
        {"Sun, 06 Nov 1994 08:49:40 CET", 0},
        {"Sunday, 06-Nov-94 08:49:40 GMT, or some other day that is far away",
         0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (after(cases[i].value) != cases[i].ms)
            T_FAIL("\"%s\": %lld", cases[i].value,
                   (long long)after(cases[i].value));
    CHECK(fetch_retry_after_ms(&(struct fetch_answer){0}, NOW_MS) == 0);
}
