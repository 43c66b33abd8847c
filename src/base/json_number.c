/* Reals, exactly, from their digits and back.
 *
 * Reading. Digits up to 2^53 are exact as a double, and so are powers of ten up
 * to 10^22; one multiplication or division, rounded once, then gives the
 * nearest double (Clinger's fast path). The 17 digits that many programs print
 * are too long for that, but m / 10^k is m / 5^k with another exponent, and up
 * to k = 27 this is one division of 128 bits by 64 whose remainder decides the
 * rounding. Everything else goes to strtod, which glibc rounds correctly, but
 * as "digits e exponent" without a decimal point, because strtod takes the
 * point from the locale. 767 digits decide every case; beyond them it matters
 * only whether one is not zero.
 *
 * Writing. Decimals of up to 15 digits map to distinct doubles. So if v is m /
 * 10^k with m below 10^15, those digits are the only candidate of that length,
 * and the division that verifies it is the one the reader will do. Otherwise 16
 * or 17 digits are needed: v * 10^k is again exact in 128 bits. The remaining
 * numbers, very large or very small, are printed with more and more digits
 * until they read back the same. Rejected: tables of 128-bit powers of ten
 * (Eisel and Lemire, Ryu), which would make the whole range that fast for ten
 * kilobytes; the numbers in messages do not need it. */
#include "base/json_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    DIGITS_EXACT = 19,  /* always fit 64 bits */
    DIGITS_MAX = 770,   /* strtod sees at most these */
    EXPONENT_MAX = 22,  /* 10^22 is a double */
    FIVES_MAX = 27,     /* 5^27 is below 2^63 */
    EXPONENT_FAR = 400, /* beyond any double */
};

static const double tens[EXPONENT_MAX + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

static const uint64_t fives[FIVES_MAX + 1] = {
    1,
    5,
    25,
    125,
    625,
    3125,
    15625,
    78125,
    390625,
    1953125,
    9765625,
    48828125,
    244140625,
    1220703125,
    6103515625,
    30517578125,
    152587890625,
    762939453125,
    3814697265625,
    19073486328125,
    95367431640625,
    476837158203125,
    2384185791015625,
    11920928955078125,
    59604644775390625,
    298023223876953125,
    1490116119384765625,
    7450580596923828125,
};

/* A number taken apart: its digits without point and leading zeros. */
struct decimal {
    bool minus;
    size_t n;         /* significant digits */
    uint64_t head;    /* the first DIGITS_EXACT of them */
    int64_t exponent; /* of the last digit */
};

/* The exponent as written. It stops growing where no text has enough digits to
 * compensate for it. */
static int64_t read_exponent(const char *p, const char *end)
{
    int64_t v = 0;
    bool minus = *p == '-';

    for (p += *p == '-' || *p == '+'; p < end; p++)
        if (v < INT64_C(100000000000))
            v = v * 10 + (*p - '0');
    return minus ? -v : v;
}

/* Take s apart. If `to` is not NULL it also gets the digits; the last one is
 * raised to 1 if a digit that was left off is not zero. */
static struct decimal decimal_parse(struct str s, char *to)
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

static double decimal_by_strtod(struct str s)
{
    char text[DIGITS_MAX + 16];
    struct decimal d = decimal_parse(s, text);
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

/* The double nearest to m / 10^k, for m not zero and k up to FIVES_MAX. The
 * quotient has at least 63 bits; the bits below the first 53 and the remainder
 * decide the rounding. */
static double decimal_divide(uint64_t m, int64_t k)
{
    int up = __builtin_clzll(m), down;
    unsigned __int128 n = (unsigned __int128)(m << up) << 63;
    unsigned __int128 q = n / fives[k], half, lost;
    bool rest = q * fives[k] != n;
    uint64_t top = (uint64_t)(q >> 64);

    down = 64 - 53 +
           (top ? 64 - __builtin_clzll(top) : -__builtin_clzll((uint64_t)q));
    half = (unsigned __int128)1 << (down - 1);
    lost = q & (2 * half - 1);
    top = (uint64_t)(q >> down);
    if (lost > half || (lost == half && (rest || (top & 1))))
        top++;
    return ldexp((double)top, (int)(down - up - 63 - k));
}

double json_to_real(struct str s)
{
    struct decimal d = decimal_parse(s, NULL);
    bool is_whole = d.n <= DIGITS_EXACT; /* head has all digits */
    bool is_double = is_whole && d.head <= UINT64_C(1) << 53;
    double v = (double)d.head;

    if (d.n == 0)
        v = 0;
    else if (is_double && d.exponent >= 0 && d.exponent <= EXPONENT_MAX)
        v *= tens[d.exponent];
    else if (is_double && d.exponent < 0 && d.exponent >= -EXPONENT_MAX)
        v /= tens[-d.exponent];
    else if (is_whole && d.exponent <= 0 && d.exponent >= -FIVES_MAX)
        v = decimal_divide(d.head, -d.exponent);
    else
        return decimal_by_strtod(s);
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

static bool decimal_by_division(double v, struct shortest *s)
{
    if (v < 1e-3 || v >= 1e15)
        return false;
    for (int k = 0; k <= 18; k++) {
        double x = v * tens[k];
        int64_t m;

        if (x >= 1e15)
            return false;
        m = (int64_t)(x + 0.5);
        if ((double)m / tens[k] != v)
            continue;
        s->n = write_whole(s->digits, (uint64_t)m);
        s->exponent = s->n - 1 - k;
        strip_zeros(s);
        return true;
    }
    return false;
}

/* The integer nearest to v * 10^k: v is f * 2^e, and f * 5^k stays below 2^116.
 * False if it is out of range. */
static bool decimal_scale(double v, int k, uint64_t *m)
{
    int e, down;
    uint64_t f = (uint64_t)ldexp(frexp(v, &e), 53);

    down = 53 - e - k;
    if (k < 0 || k > FIVES_MAX || down < 1 || down > 116)
        return false;
    *m = (uint64_t)(((unsigned __int128)f * fives[k] +
                     ((unsigned __int128)1 << (down - 1))) >>
                    down);
    return true;
}

/* The power of ten that gives v 17 digits before the point; FIVES_MAX + 1 if it
 * is too large. */
static int decimal_raise_to_17(double v)
{
    int k = v < 1 ? 16 : 17;

    while (k > 0 && v >= tens[17 - k])
        k--;
    while (k >= 16 && k <= FIVES_MAX && v * tens[k - 16] < 1)
        k++;
    return k;
}

/* Try 15, 16 and 17 digits, each also with one more in the last place: at a
 * power of two the doubles above are twice as far apart as those below, so the
 * nearest digits may be on the wrong side while the next ones read back. */
static bool decimal_by_integers(double v, struct shortest *s)
{
    int k17 = decimal_raise_to_17(v);
    uint64_t m;

    for (int k = k17 - 2; k <= k17; k++) {
        if (k17 > FIVES_MAX || !decimal_scale(v, k, &m))
            return false;
        if (decimal_divide(m, k) != v && decimal_divide(++m, k) != v)
            continue;
        s->n = write_whole(s->digits, m);
        s->exponent = s->n - 1 - k;
        strip_zeros(s);
        return true;
    }
    return false;
}

/* The n digits nearest to v. The locale's decimal point is skipped. */
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

static bool decimal_reads_back(const struct shortest *s, double v)
{
    char text[40];
    int n = snprintf(text, sizeof(text), "%.*se%d", s->n, s->digits,
                     s->exponent - s->n + 1);

    return json_to_real((struct str){text, (size_t)n}) == v;
}

/* One more in the last place, as in by_integers. */
static bool decimal_increment(struct shortest *s)
{
    int i = s->n - 1;

    while (i > 0 && s->digits[i] == '9')
        s->digits[i--] = '0';
    if (s->digits[i] == '9')
        return false;
    s->digits[i]++;
    return true;
}

static void decimal_by_printing(double v, struct shortest *s)
{
    /* Subnormal doubles have fewer significant digits. */
    int n = v < 2.3e-308 ? 1 : 15;

    for (;; n++) {
        print_digits(v, n, s);
        if (n >= 17 || decimal_reads_back(s, v))
            break;
        if (decimal_increment(s) && decimal_reads_back(s, v))
            break;
    }
    strip_zeros(s);
}

/* 0.00125, 125.0, 12.5 while that is short, otherwise 1.25e+30 without the
 * plus. */
static size_t decimal_write(char *to, const struct shortest *s)
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
    else if (!decimal_by_division(v, &s) && !decimal_by_integers(v, &s))
        decimal_by_printing(v, &s);
    return (size_t)(p - to) + decimal_write(p, &s);
}
