/* Days are counted with the arithmetic of the civil calendar, in eras of 400
 * years, independent of locale, time zone and library. */
#include "base/rfc3339.h"

#include <stdio.h>

#define DAY_MS       INT64_C(86400000)
#define FIRST_MS     (-INT64_C(62135596800000)) /* 0001-01-01 */
#define LAST_MS      INT64_C(253402300799999)   /* 9999-12-31 */
#define ERA_DAYS     146097
#define EPOCH_OF_ERA 719468 /* days from 0000-03-01 to 1970-01-01 */

/* The year begins in March here, so that the leap day is its last day. */
static int64_t days_of(int64_t y, int64_t m, int64_t d)
{
    int64_t era, year, day;

    y -= m <= 2;
    era = y / 400;
    year = y - era * 400;
    day = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * ERA_DAYS + year * 365 + year / 4 - year / 100 + day -
           EPOCH_OF_ERA;
}

static void date_of(int64_t days, int *y, int *m, int *d)
{
    int64_t z = days + EPOCH_OF_ERA;
    int64_t era = z / ERA_DAYS, day = z - era * ERA_DAYS;
    int64_t year =
        (day - day / 1460 + day / 36524 - day / (ERA_DAYS - 1)) / 365;
    int64_t of_year = day - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;

    *d = (int)(of_year - (153 * month + 2) / 5 + 1);
    *m = (int)(month < 10 ? month + 3 : month - 9);
    *y = (int)(year + era * 400 + (*m <= 2));
}

/* Read n digits at the front of s, followed by `behind` (zero: anything). */
static bool rfc3339_take_number(struct str *s, size_t n, char behind, int *out)
{
    int v = 0;

    if (s->n < n + (behind != 0))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!str_is_digit(s->p[i]))
            return false;
        v = v * 10 + (s->p[i] - '0');
    }
    if (behind && s->p[n] != behind)
        return false;
    *s = str_sub(*s, n + (behind != 0), s->n);
    *out = v;
    return true;
}

static int days_in(int y, int m)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;

    return days[m - 1] + (m == 2 && is_leap);
}

/* ".123" in milliseconds, truncated. */
static bool rfc3339_take_fraction(struct str *s, int *ms)
{
    int scale = 100;

    *ms = 0;
    if (!s->n || s->p[0] != '.')
        return true;
    *s = str_sub(*s, 1, s->n);
    if (!s->n || !str_is_digit(s->p[0]))
        return false;
    while (s->n && str_is_digit(s->p[0])) {
        *ms += (s->p[0] - '0') * scale;
        scale /= 10;
        *s = str_sub(*s, 1, s->n);
    }
    return true;
}

static bool rfc3339_take_offset(struct str s, int *minutes)
{
    int h, m, sign;

    *minutes = 0;
    if (!s.n || (s.n == 1 && (s.p[0] == 'Z' || s.p[0] == 'z')))
        return true;
    if (s.p[0] != '+' && s.p[0] != '-')
        return false;
    sign = s.p[0] == '-' ? -1 : 1;
    s = str_sub(s, 1, s.n);
    if (!rfc3339_take_number(&s, 2, ':', &h) ||
        !rfc3339_take_number(&s, 2, 0, &m) || s.n || h > 23 || m > 59)
        return false;
    *minutes = sign * (h * 60 + m);
    return true;
}

bool rfc3339_read(struct str s, int64_t *out)
{
    int y, mo, d, h, mi, sec, ms, offset;
    int64_t at;

    if (!rfc3339_take_number(&s, 4, '-', &y) ||
        !rfc3339_take_number(&s, 2, '-', &mo) ||
        !rfc3339_take_number(&s, 2, 0, &d))
        return false;
    if (!s.n || (s.p[0] != 'T' && s.p[0] != 't' && s.p[0] != ' '))
        return false;
    s = str_sub(s, 1, s.n);
    if (!rfc3339_take_number(&s, 2, ':', &h) ||
        !rfc3339_take_number(&s, 2, ':', &mi) ||
        !rfc3339_take_number(&s, 2, 0, &sec))
        return false;
    if (y < 1 || mo < 1 || mo > 12 || d < 1 || d > days_in(y, mo) || h > 23 ||
        mi > 59 || sec > 60)
        return false;
    if (!rfc3339_take_fraction(&s, &ms) || !rfc3339_take_offset(s, &offset))
        return false;
    at = days_of(y, mo, d) * DAY_MS + h * INT64_C(3600000) +
         (mi - offset) * INT64_C(60000) + sec * INT64_C(1000) + ms;
    if (at < FIRST_MS || at > LAST_MS)
        return false;
    *out = at;
    return true;
}

struct str rfc3339_write(int64_t ms, char out[RFC3339_BYTES])
{
    int64_t days, rest;
    int y, m, d, n;

    ms = ms < FIRST_MS ? FIRST_MS : ms > LAST_MS ? LAST_MS : ms;
    days = ms / DAY_MS - (ms % DAY_MS < 0);
    rest = ms - days * DAY_MS;
    date_of(days, &y, &m, &d);
    n = snprintf(out, RFC3339_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d", y, m, d,
                 (int)(rest / 3600000), (int)(rest / 60000 % 60),
                 (int)(rest / 1000 % 60));
    if (rest % 1000)
        n += snprintf(out + n, RFC3339_BYTES - (size_t)n, ".%03d",
                      (int)(rest % 1000));
    out[n++] = 'Z';
    out[n] = '\0';
    return (struct str){out, (size_t)n};
}
