#include "base/rfc3339.h"

#include "test/t.h"

static int64_t moment(const char *s)
{
    int64_t ms = -1;

    return rfc3339_read(str_of(s), &ms) ? ms : -1;
}

TEST(moments_are_read)
{
    CHECK_INT(moment("1970-01-01T00:00:00Z"), 0);
    CHECK_INT(moment("2025-02-15T09:00:00Z"), 1739610000000);
    CHECK_INT(moment("2025-02-15T09:00:00.25Z"), 1739610000250);
    CHECK_INT(moment("2025-02-15t10:30:00+01:30"), 1739610000000);
    CHECK_INT(moment("2025-02-15T08:00:00.123456-01:00"), 1739610000123);
    /* Python's datetime.now().isoformat(), and str() of it */
    CHECK_INT(moment("2025-02-15T09:00:00.000001"), 1739610000000);
    CHECK_INT(moment("2025-02-15 09:00:00"), 1739610000000);
    CHECK_INT(moment("2024-02-29T00:00:00Z"), 1709164800000);
    CHECK_INT(moment("1990-12-31T23:59:60Z"), 662688000000);
}

TEST(what_is_no_moment_is_refused)
{
    static const char *const bad[] = {
        "",
        "2025",
        "2025-02-15",
        "2025-02-15T09:00Z",
        "2025-02-30T09:00:00Z",
        "2023-02-29T09:00:00Z",
        "2025-13-01T09:00:00Z",
        "2025-00-01T09:00:00Z",
        "2025-02-15T24:00:00Z",
        "2025-02-15T09:60:00Z",
        "2025-02-15T09:00:61Z",
        "2025-02-15T09:00:00.Z",
        "2025-02-15T09:00:00ZZ",
        "2025-02-15T09:00:00+1",
        "2025-02-15T09:00:00+24:00",
        "2025-02-15T09:00:00 Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "+2025-02-15T09:00:00Z",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK_INT(moment(bad[i]), -1);
}

TEST(moments_are_written_as_they_are_read)
{
    static const char *const good[] = {
        "0001-01-01T00:00:00Z",     "1969-12-31T23:59:59.999Z",
        "1970-01-01T00:00:00Z",     "2000-02-29T12:34:56Z",
        "2025-02-15T09:00:15Z",     "2100-03-01T00:00:00.001Z",
        "9999-12-31T23:59:59.999Z",
    };
    char text[RFC3339_BYTES];

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        int64_t ms = 0;

        CHECK(rfc3339_read(str_of(good[i]), &ms));
        CHECK_STR(rfc3339_write(ms, text), good[i]);
    }
    CHECK_STR(rfc3339_write(INT64_MAX, text), "9999-12-31T23:59:59.999Z");
    CHECK_STR(rfc3339_write(INT64_MIN, text), "0001-01-01T00:00:00Z");
}

TEST(every_day_follows_the_one_before)
{
    char text[RFC3339_BYTES];
    int64_t again;

    for (int64_t ms = -INT64_C(62135596800000); ms < INT64_C(253402300800000);
         ms += INT64_C(86400000) * 7 + 12345678) {
        again = 0;
        CHECK(rfc3339_read(rfc3339_write(ms, text), &again));
        CHECK_INT(again, ms);
    }
}
