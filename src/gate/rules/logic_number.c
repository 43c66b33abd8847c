/* Numbers and their texts, as in JavaScript: the result of Number("0x1f") and
 * parseFloat("12px"), and the notation of 1e21. base/json converts the digits
 * themselves, in both directions. */
#include <math.h>

#include "base/utf8.h"
#include "gate/rules/logic_internal.h"

enum { WHOLE_MAX_BITS = 53, WRITTEN_BYTES = 64 };

struct val val_number(double d)
{
    /* A negative zero stays real: dividing by it gives -Infinity. */
    if (fabs(d) <= (double)(INT64_C(1) << WHOLE_MAX_BITS) && d == floor(d) &&
        (d != 0 || !signbit(d)))
        return (struct val){.type = JSON_INT, .i = (int64_t)d};
    return (struct val){.type = JSON_REAL, .d = d};
}

/* The length of the white space character at p; zero: none. */
static size_t js_space(const char *p, const char *end)
{
    size_t n = utf8_one(p, end);
    uint32_t c = n ? utf8_decode(p, n) : 0;

    if ((c >= 9 && c <= 13) || c == ' ' || c == 0xa0 || c == 0xfeff ||
        c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
        c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000)
        return n;
    return 0;
}

static struct str trim_front(struct str s)
{
    for (size_t n; s.n && (n = js_space(s.p, s.p + s.n)) > 0;)
        s = str_sub(s, n, s.n);
    return s;
}

static struct str trim_back(struct str s)
{
    while (s.n) {
        size_t at = s.n - 1;

        while (at > 0 && utf8_is_tail((unsigned char)s.p[at]))
            at--;
        if (js_space(s.p + at, s.p + s.n) != s.n - at)
            break;
        s.n = at;
    }
    return s;
}

static size_t count_digits(struct str s, size_t from)
{
    size_t i = from;

    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
        i++;
    return i - from;
}

/* The length of the exponent at `from`; zero: none. */
static size_t exponent_length(struct str s, size_t from)
{
    size_t i = from, n;

    if (i >= s.n || (s.p[i] | 0x20) != 'e')
        return 0;
    i++;
    if (i < s.n && (s.p[i] == '+' || s.p[i] == '-'))
        i++;
    n = count_digits(s, i);
    return n ? i + n - from : 0;
}

/* The length of the decimal number at the start of s, which has no sign: "5.",
 * ".5" and "1e3" are numbers. */
static size_t decimal_length(struct str s)
{
    size_t before = count_digits(s, 0), n = before, after = 0;

    if (n < s.n && s.p[n] == '.') {
        after = count_digits(s, n + 1);
        n += 1 + after;
    }
    if (before + after == 0)
        return 0;
    return n + exponent_length(s, n);
}

/* The value of a decimal number without a sign. */
static bool decimal_value(struct run *r, struct str s, double *out)
{
    char *copy;

    if (s.p[0] != '.')
        return json_number(s, out) || logic_fail(r, "this is no number");
    copy = logic_alloc(r, s.n + 1);
    if (!copy)
        return false;
    copy[0] = '0';
    memcpy(copy + 1, s.p, s.n);
    return json_number((struct str){copy, s.n + 1}, out);
}

/* Read the number at the start of s; *used is zero if there is none. */
static bool signed_number(struct run *r, struct str s, double *out,
                          size_t *used)
{
    size_t sign = s.n && (s.p[0] == '+' || s.p[0] == '-') ? 1 : 0;
    struct str rest = str_sub(s, sign, s.n);
    size_t n = decimal_length(rest);

    *used = 0;
    if (str_starts(rest, STR("Infinity"))) {
        n = STR("Infinity").n;
        *out = INFINITY;
    } else if (n == 0) {
        return true;
    } else if (!decimal_value(r, str_sub(rest, 0, n), out)) {
        return false;
    }
    if (sign && s.p[0] == '-')
        *out = -*out;
    *used = sign + n;
    return true;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = str_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* 0x, 0o and 0b; NaN for anything else. */
static double number_with_base(struct str s)
{
    char kind = s.n > 2 && s.p[0] == '0' ? str_lower(s.p[1]) : 0;
    int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    double v = 0;

    if (!base)
        return NAN;
    for (size_t i = 2; i < s.n; i++) {
        int digit = digit_value(s.p[i]);

        if (digit >= base)
            return NAN;
        v = v * base + digit;
    }
    return v;
}

bool num_of_prefix(struct run *r, struct str s, double *out)
{
    size_t used;

    if (!logic_count(r, s.n / 64))
        return false;
    if (!signed_number(r, trim_front(s), out, &used))
        return false;
    if (used == 0)
        *out = NAN;
    return true;
}

bool num_of_whole(struct run *r, struct str s, double *out)
{
    size_t used;

    if (!logic_count(r, s.n / 64))
        return false;
    s = trim_back(trim_front(s));
    if (s.n == 0) {
        *out = 0;
        return true;
    }
    if (!signed_number(r, s, out, &used))
        return false;
    if (used != s.n)
        *out = number_with_base(s);
    return true;
}

/* The digits of a written real and its point: the value is 0.DIGITS *
 * 10^point. */
struct parts {
    char digits[WRITTEN_BYTES];
    int n, point;
};

static void split_digits(struct str s, struct parts *p)
{
    int exp = 0, after = 0;
    bool behind = false, minus = false;
    size_t i = 0;

    p->n = 0;
    for (; i < s.n && s.p[i] != 'e'; i++) {
        if (s.p[i] == '.') {
            behind = true;
            continue;
        }
        after += behind;
        if (p->n || s.p[i] != '0')
            p->digits[p->n++] = s.p[i];
    }
    for (i++; i < s.n; i++)
        if (s.p[i] == '-')
            minus = true;
        else
            exp = exp * 10 + (s.p[i] - '0');
    p->point = p->n - after + (minus ? -exp : exp);
    while (p->n > 1 && p->digits[p->n - 1] == '0')
        p->n--;
}

/* JavaScript uses plain notation from 1e-6 to below 1e21. */
static size_t write_js_digits(const struct parts *p, char *to)
{
    char *at = to;
    int e = p->point - 1;

    if (p->point > 21 || p->point <= -6) {
        *at++ = p->digits[0];
        for (int i = 1; i < p->n; i++) {
            if (i == 1)
                *at++ = '.';
            *at++ = p->digits[i];
        }
        *at++ = 'e';
        *at++ = e < 0 ? '-' : '+';
        e = e < 0 ? -e : e;
        if (e >= 100)
            *at++ = (char)('0' + e / 100);
        if (e >= 10)
            *at++ = (char)('0' + e / 10 % 10);
        *at++ = (char)('0' + e % 10);
        return (size_t)(at - to);
    }
    if (p->point <= 0)
        *at++ = '0';
    for (int i = 0; i < p->point; i++)
        *at++ = i < p->n ? p->digits[i] : '0';
    for (int i = p->point; i < p->n; i++) {
        if (i == p->point)
            *at++ = '.';
        *at++ = i < 0 ? '0' : p->digits[i];
    }
    return (size_t)(at - to);
}

/* `to` holds 32 bytes: 17 digits, a point, five zeros and a sign, or 21 digits.
 * Empty when out of memory. */
struct str val_write_number(double d, char *to)
{
    struct buf b;
    struct json_out o;
    struct parts parts;
    size_t n = 0;

    if (isnan(d))
        return STR("NaN");
    if (isinf(d))
        return d < 0 ? STR("-Infinity") : STR("Infinity");
    if (d == 0)
        return STR("0");
    buf_init(&b, WRITTEN_BYTES);
    o = json_out(&b);
    json_put_real(&o, fabs(d));
    if (b.n && !b.over) {
        split_digits(buf_str(&b), &parts);
        if (d < 0)
            to[n++] = '-';
        n += write_js_digits(&parts, to + n);
    }
    buf_fini(&b);
    return (struct str){to, n};
}
