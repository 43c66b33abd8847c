/* Numbers and their texts, as JavaScript has them: what Number("0x1f") and
 * parseFloat("12px") make of a text, and how 1e21 is written. The digits
 * themselves are base/json's affair, in both directions. */
#include <math.h>

#include "base/utf8.h"
#include "gate/logic_internal.h"

enum { WHOLE_MAX_BITS = 53, WRITTEN_BYTES = 64 };

struct val val_number(double d)
{
    /* A zero below zero stays one: what is divided by it tells. */
    if (fabs(d) <= (double)(INT64_C(1) << WHOLE_MAX_BITS) && d == floor(d) &&
        (d != 0 || !signbit(d)))
        return (struct val){.type = JSON_INT, .i = (int64_t)d};
    return (struct val){.type = JSON_REAL, .d = d};
}

/* How many bytes at p are one character of white space; zero: it is none. */
static size_t space(const char *p, const char *end)
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
    for (size_t n; s.n && (n = space(s.p, s.p + s.n)) > 0;)
        s = str_sub(s, n, s.n);
    return s;
}

static struct str trim_back(struct str s)
{
    while (s.n) {
        size_t at = s.n - 1;

        while (at > 0 && utf8_is_tail((unsigned char)s.p[at]))
            at--;
        if (space(s.p + at, s.p + s.n) != s.n - at)
            break;
        s.n = at;
    }
    return s;
}

static size_t digits(struct str s, size_t from)
{
    size_t i = from;

    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
        i++;
    return i - from;
}

/* The exponent at `from`, if one is there. */
static size_t exponent(struct str s, size_t from)
{
    size_t i = from, n;

    if (i >= s.n || (s.p[i] | 0x20) != 'e')
        return 0;
    i++;
    if (i < s.n && (s.p[i] == '+' || s.p[i] == '-'))
        i++;
    n = digits(s, i);
    return n ? i + n - from : 0;
}

/* How much of the front of s, which has no sign, is a decimal number: "5.",
 * ".5" and "1e3" are. */
static size_t decimal(struct str s)
{
    size_t before = digits(s, 0), n = before, after = 0;

    if (n < s.n && s.p[n] == '.') {
        after = digits(s, n + 1);
        n += 1 + after;
    }
    if (before + after == 0)
        return 0;
    return n + exponent(s, n);
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

/* Reads the number at the front of s; *used is zero where there is none. */
static bool signed_number(struct run *r, struct str s, double *out,
                          size_t *used)
{
    size_t sign = s.n && (s.p[0] == '+' || s.p[0] == '-') ? 1 : 0;
    struct str rest = str_sub(s, sign, s.n);
    size_t n = decimal(rest);

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

/* 0x, 0o and 0b. NaN when s is none of them. */
static double with_base(struct str s)
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
        *out = with_base(s);
    return true;
}

/* The digits of a written real and where the point is: the value is
 * 0.DIGITS * 10^point. */
struct parts {
    char digits[WRITTEN_BYTES];
    int n, point;
};

static void take_apart(struct str s, struct parts *p)
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

/* JavaScript lays numbers out plainly from 1e-6 up to below 1e21. */
static size_t lay_out(const struct parts *p, char *to)
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

/* `to` holds 32 bytes: 17 digits, a point, five zeros and a sign, or 21
 * digits. Empty when there is no memory. */
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
        take_apart(buf_str(&b), &parts);
        if (d < 0)
            to[n++] = '-';
        n += lay_out(&parts, to + n);
    }
    buf_fini(&b);
    return (struct str){to, n};
}
