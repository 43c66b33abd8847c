/* Reals, from their digits and back, exactly.
 *
 * Reading. Up to 2^53 the digits are a double as they stand, and powers of ten
 * up to 10^22 are doubles too; then one multiplication or division, rounded
 * once, is the nearest double (Clinger's fast path). Everything else goes to
 * strtod, which glibc rounds correctly, but as "digits e exponent" without a
 * decimal point: strtod takes the point from the locale, and this way it does
 * not matter which one is set. 767 digits decide every case; of more it is
 * enough to know that one is not zero.
 *
 * Writing. Decimals of up to 15 digits are told apart by their doubles. So if
 * v is m / 10^k with m below 10^15, those digits are the only candidates that
 * short, and the division that shows it is the one the reader will do. What
 * is left (a sum like 0.1 + 0.2, very large, very small) is printed with more
 * and more digits until it reads back the same. */
#include "base/json_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    DIGITS_EXACT = 19,  /* always fit 64 bits */
    DIGITS_MAX = 770,   /* of these strtod sees */
    EXPONENT_MAX = 22,  /* 10^22 is a double */
    EXPONENT_FAR = 400, /* beyond any double */
};

static const double tens[EXPONENT_MAX + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

/* A number taken apart: its digits without point and leading zeros. */
struct decimal {
    bool minus;
    size_t n;         /* significant digits */
    uint64_t head;    /* the first DIGITS_EXACT of them */
    int64_t exponent; /* of the last digit of all */
};

/* The exponent as written. Past a billion the digits cannot make up for it:
 * a text is not that long. */
static int64_t read_exponent(const char *p, const char *end)
{
    int64_t v = 0;
    bool minus = *p == '-';

    for (p += *p == '-' || *p == '+'; p < end; p++)
        if (v < INT64_C(100000000000))
            v = v * 10 + (*p - '0');
    return minus ? -v : v;
}

/* Take s apart; the digits themselves also go to `to` if it is not NULL, the
 * last of them raised to 1 if others were left off that are not zero. */
static struct decimal take_apart(struct str s, char *to)
{
    const char *p = s.p, *end = s.p + s.n;
    struct decimal d = {.minus = *p == '-'};
    bool behind_point = false, rest = false;

    for (p += d.minus; p < end && (*p | 0x20) != 'e'; p++) {
        if (*p == '.') {
            behind_point = true;
            continue;
        }
        d.exponent -= behind_point;
        if (d.n == 0 && *p == '0')
            continue;
        if (d.n < DIGITS_EXACT)
            d.head = d.head * 10 + (uint64_t)(*p - '0');
        if (to && d.n < DIGITS_MAX)
            to[d.n] = *p;
        else
            rest |= *p != '0';
        d.n++;
    }
    if (to && d.n > DIGITS_MAX && rest)
        to[DIGITS_MAX - 1] = '1';
    if (p < end)
        d.exponent += read_exponent(p + 1, end);
    return d;
}

static double by_strtod(struct str s)
{
    char text[DIGITS_MAX + 16];
    struct decimal d = take_apart(s, text);
    size_t n = d.n < DIGITS_MAX ? d.n : DIGITS_MAX;
    int64_t exponent = d.exponent + (int64_t)(d.n - n);
    double v;

    if ((int64_t)n + exponent > EXPONENT_FAR)
        return d.minus ? -INFINITY : INFINITY;
    if ((int64_t)n + exponent < -EXPONENT_FAR)
        return d.minus ? -0.0 : 0.0;
    snprintf(text + n, sizeof(text) - n, "e%d", (int)exponent);
    v = strtod(text, NULL);
    return d.minus ? -v : v;
}

double json_to_real(struct str s)
{
    struct decimal d = take_apart(s, NULL);
    double v = (double)d.head;

    if (d.n == 0)
        return d.minus ? -0.0 : 0.0;
    if (d.n > DIGITS_EXACT || d.head > UINT64_C(1) << 53 ||
        d.exponent > EXPONENT_MAX || d.exponent < -EXPONENT_MAX)
        return by_strtod(s);
    if (d.exponent < 0)
        v /= tens[-d.exponent];
    else
        v *= tens[d.exponent];
    return d.minus ? -v : v;
}

/* The digits of a positive v without leading or trailing zeros, and the
 * exponent of the first: 0.00125 is 125 and -3. */
struct shortest {
    char digits[24];
    int n;
    int exponent;
};

static void strip_zeros(struct shortest *s)
{
    while (s->n > 1 && s->digits[s->n - 1] == '0')
        s->n--;
}

static int write_whole(char *to, uint64_t v)
{
    char text[20], *p = text + sizeof(text);
    int n;

    do
        *--p = (char)('0' + v % 10);
    while (v /= 10);
    n = (int)(text + sizeof(text) - p);
    memcpy(to, p, (size_t)n);
    return n;
}

static bool by_division(double v, struct shortest *s)
{
    if (v < 1e-5 || v >= 1e15)
        return false;
    for (int k = 0; k <= 20; k++) {
        double m = rint(v * tens[k]);

        if (m >= 1e15)
            return false;
        if (m / tens[k] != v)
            continue;
        s->n = write_whole(s->digits, (uint64_t)m);
        s->exponent = s->n - 1 - k;
        strip_zeros(s);
        return true;
    }
    return false;
}

/* The n digits nearest to v. Whatever the locale puts between the first and
 * the others is left out. */
static void print_digits(double v, int n, struct shortest *s)
{
    char text[40];
    const char *p = text;

    snprintf(text, sizeof(text), "%.*e", n - 1, v);
    for (s->n = 0; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            s->digits[s->n++] = *p;
    s->exponent = (int)strtol(p + 1, NULL, 10);
}

static bool reads_back(const struct shortest *s, double v)
{
    char text[40];
    int n = snprintf(text, sizeof(text), "%.*se%d", s->n, s->digits,
                     s->exponent - s->n + 1);

    return json_to_real((struct str){text, (size_t)n}) == v;
}

/* One more in the last place: at a power of two the doubles above are twice as
 * far apart as those below, and the nearest digits may be on the wrong side
 * while the next ones read back. */
static bool count_up(struct shortest *s)
{
    int i = s->n - 1;

    while (i > 0 && s->digits[i] == '9')
        s->digits[i--] = '0';
    if (s->digits[i] == '9')
        return false;
    s->digits[i]++;
    return true;
}

static void by_trying(double v, struct shortest *s)
{
    /* Below the normal doubles there are fewer digits to tell. */
    int n = v < 2.3e-308 ? 1 : 15;

    for (;; n++) {
        print_digits(v, n, s);
        if (n >= 17 || reads_back(s, v))
            break;
        if (count_up(s) && reads_back(s, v))
            break;
    }
    strip_zeros(s);
}

/* 0.00125, 125.0, 12.5 while that is short, else 1.25e+30 without the plus. */
static size_t lay_out(char *to, const struct shortest *s)
{
    char *p = to;

    if (s->exponent < -5 || s->exponent > 15) {
        *p++ = s->digits[0];
        if (s->n > 1) {
            *p++ = '.';
            memcpy(p, s->digits + 1, (size_t)s->n - 1);
            p += s->n - 1;
        }
        return (size_t)(p - to) + (size_t)snprintf(p, 6, "e%d", s->exponent);
    }
    if (s->exponent < 0)
        *p++ = '0';
    for (int i = 0; i <= s->exponent; i++)
        *p++ = i < s->n ? s->digits[i] : '0';
    *p++ = '.';
    for (int i = s->exponent + 1; i < 0; i++)
        *p++ = '0';
    if (s->n <= s->exponent + 1)
        *p++ = '0';
    for (int i = s->exponent < 0 ? 0 : s->exponent + 1; i < s->n; i++)
        *p++ = s->digits[i];
    return (size_t)(p - to);
}

size_t json_real_write(char *to, double v)
{
    struct shortest s;
    char *p = to;

    if (signbit(v))
        *p++ = '-';
    v = fabs(v);
    if (v == 0)
        s = (struct shortest){.digits = "0", .n = 1};
    else if (!by_division(v, &s))
        by_trying(v, &s);
    return (size_t)(p - to) + lay_out(p, &s);
}
