/* Reals are read to the nearest double and written with the fewest digits,
 * compared with strtod and printf, in any locale. */
#include "base/json.h"

#include <locale.h>
#include <math.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "test/t.h"

enum { N_RANDOM = 200000 };

static double read_real(struct str text)
{
    struct json *v;
    struct arena a;
    double d;

    arena_init(&a, 1 << 16);
    v = json_parse(&a, text, 0, NULL);
    CHECK(v && (v->type == JSON_REAL || v->type == JSON_INT));
    d = json_real_or(v, NAN);
    arena_fini(&a);
    return d;
}

static struct str written(struct buf *b, double v)
{
    struct json_out o = json_out(b);

    buf_clear(b);
    json_put_real(&o, v);
    CHECK(!b->over);
    return buf_str(b);
}

static int n_digits(struct str s)
{
    int n = 0, zeros = 0;

    for (size_t i = 0; i < s.n && s.p[i] != 'e'; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || (s.p[i] == '0' && n == 0))
            continue;
        n++;
        zeros = s.p[i] == '0' ? zeros + 1 : 0;
    }
    return n - zeros;
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

/* The slow reference: no decimal of fewer digits reads back as v. It tries both
 * neighbours of v among the shorter decimals. */
static bool has_fewer(double v, int n)
{
    char text[64];

    if (n < 2)
        return false;
    snprintf(text, sizeof(text), "%.*e", n - 2, v);
    if (strtod(text, NULL) == v)
        return true;
    for (int up = -1; up <= 1; up += 2) {
        double far = up < 0 ? nextafter(v, 0) : nextafter(v, INFINITY);

        /* Halfway to the next double and beyond rounds elsewhere; a point
         * slightly nearer finds the shorter decimal on that side. */
        snprintf(text, sizeof(text), "%.*Le", n - 2,
                 v + ((long double)far - v) * 0.49L);
        if (strtod(text, NULL) == v)
            return true;
    }
    return false;
}

static void check_shortest(struct buf *b, double v)
{
    struct str s = written(b, v);
    double back = read_real(s);

    if (!same_bits(back, v) || has_fewer(fabs(v), n_digits(s)))
        fprintf(stderr, "%.17g became %.*s\n", v, STR_ARG(s));
    CHECK(same_bits(back, v));
    CHECK(!has_fewer(fabs(v), n_digits(s)));
    CHECK(memchr(s.p, '.', s.n) || memchr(s.p, 'e', s.n));
}

static const struct {
    double v;
    const char *text;
} written_reals[] = {
    {0, "0.0"},
    {-0.0, "-0.0"},
    {1, "1.0"},
    {-1.5, "-1.5"},
    {0.1, "0.1"},
    {0.25, "0.25"},
    {100, "100.0"},
    {12345.678, "12345.678"},
    {0.00125, "0.00125"},
    {0.00001, "0.00001"},
    {0.000001, "1e-6"},
    {1e15, "1000000000000000.0"},
    {1e16, "1e16"},
    {123456789012345680, "1.2345678901234568e17"},
    {1e22, "1e22"},
    {1e23, "1e23"},
    {1e300, "1e300"},
    {1.5e-7, "1.5e-7"},
    {0.1 + 0.2, "0.30000000000000004"},
    {1.0 / 3, "0.3333333333333333"},
    {2.0 / 3, "0.6666666666666666"},
    {5e-324, "5e-324"},
    {1.7976931348623157e308, "1.7976931348623157e308"},
    {2.2250738585072014e-308, "2.2250738585072014e-308"},
    {9007199254740992, "9007199254740992.0"},
    {9.5367431640625e-7, "9.5367431640625e-7"},
};

TEST(reals_are_written_as_people_would)
{
    struct buf b;

    buf_init(&b, 100);
    for (size_t i = 0; i < sizeof(written_reals) / sizeof(*written_reals);
         i++) {
        struct str s = written(&b, written_reals[i].v);

        if (!str_eq(s, str_of(written_reals[i].text)))
            fprintf(stderr, "%s became %.*s\n", written_reals[i].text,
                    STR_ARG(s));
        CHECK(str_eq(s, str_of(written_reals[i].text)));
    }
    buf_fini(&b);
}

TEST(any_double_is_written_with_the_fewest_digits)
{
    struct rand_seeded state = {7};
    struct rand r = rand_seeded(&state);
    struct buf b;

    buf_init(&b, 100);
    for (int i = 0; i < N_RANDOM / 8; i++) {
        uint64_t bits = rand_u64(r);
        double v;

        memcpy(&v, &bits, sizeof(v));
        if (isfinite(v))
            check_shortest(&b, v);
        check_shortest(&b, (double)(int64_t)bits / 1e9);
        check_shortest(&b, (double)(float)((double)(bits >> 40) / 1e7));
        check_shortest(&b, (double)(bits % 1000000) / 1000);
    }
    for (int e = -1074; e <= 1023; e++) {
        check_shortest(&b, ldexp(1, e));
        check_shortest(&b, nextafter(ldexp(1, e), 0));
        check_shortest(&b, nextafter(ldexp(1, e), INFINITY));
    }
    buf_fini(&b);
}

/* Digits, a point somewhere, an exponent: often near the limits of a double,
 * often with more digits than it can hold. */
static size_t random_decimal(struct rand r, char *to, size_t size)
{
    uint64_t x = rand_u64(r);
    int n = 1 + (int)(x % 25), point = (int)(x >> 8) % n;
    size_t at = 0;

    if (x >> 63)
        to[at++] = '-';
    to[at++] = (char)('1' + (x >> 16) % 9);
    if (point == 0)
        to[at++] = '.';
    for (int i = 1; i <= n; i++) {
        to[at++] = (char)('0' + rand_u64(r) % 10);
        if (i == point && i < n)
            to[at++] = '.';
    }
    at += (size_t)snprintf(to + at, size - at, "e%d",
                           (int)((x >> 24) % 620) - 330);
    return at;
}

TEST(decimals_are_read_to_the_nearest_double)
{
    struct rand_seeded state = {8};
    struct rand r = rand_seeded(&state);

    for (int i = 0; i < N_RANDOM; i++) {
        char text[64];
        size_t n = random_decimal(r, text, sizeof(text));
        double want = strtod(text, NULL);

        if (isfinite(want))
            CHECK(same_bits(read_real((struct str){text, n}), want));
        else
            CHECK(json_check((struct str){text, n}, NULL) == ERR_SYNTAX);
    }
}

/* Exactly between two doubles, and then slightly above or below, where only the
 * last of very many digits decides. */
TEST(a_tie_is_broken_by_the_last_digit)
{
    struct buf b;

    buf_init(&b, 10000);
    for (int e = -1074; e <= 60; e += 7) {
        double low = ldexp(3, e), high = nextafter(low, INFINITY);
        long double middle = ((long double)low + high) / 2;
        char text[1200];
        int n = snprintf(text, sizeof(text), "%.1100Lf", middle);

        CHECK(n > 0 && (size_t)n < sizeof(text));
        CHECK(same_bits(read_real((struct str){text, (size_t)n}),
                        strtod(text, NULL)));
        for (int zeros = 0; zeros < 3000; zeros += 1000) {
            buf_clear(&b);
            buf_add(&b, text, (size_t)n);
            for (int i = 0; i < zeros; i++)
                buf_add_char(&b, '0');
            buf_add_char(&b, '1');
            CHECK(same_bits(read_real(buf_str(&b)), high));
        }
    }
    buf_fini(&b);
}

TEST(long_rows_of_zeros_count_for_nothing)
{
    struct buf b;

    buf_init(&b, 10000);
    buf_add_str(&b, STR("0."));
    for (int i = 0; i < 2000; i++)
        buf_add_char(&b, '0');
    buf_add_str(&b, STR("15e2001"));
    CHECK(read_real(buf_str(&b)) == 1.5);
    buf_clear(&b);
    buf_add_char(&b, '1');
    for (int i = 0; i < 2000; i++)
        buf_add_char(&b, '0');
    buf_add_str(&b, STR(".0e-2000"));
    CHECK(read_real(buf_str(&b)) == 1.0);
    buf_fini(&b);
}

/* A locale that differs from C.UTF-8 only in its decimal point, as localedef
 * would compile it; few machines have one installed. */
static void use_decimal_comma(void)
{
    static const char numeric[50] =
        "\x14\x11\x03\x20\x06\0\0\0\x20\0\0\0\x22\0\0\0\x23\0\0\0\x24\0\0\0"
        "\x28\0\0\0\x2c\0\0\0,\0\0\0,\0\0\0\0\0\0\0UTF-8";
    char dir[] = "/tmp/json_locale_XXXXXX", path[64];
    const char *set;
    FILE *f;

    CHECK(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/comma", dir);
    CHECK(mkdir(path, 0700) == 0);
    snprintf(path, sizeof(path), "%s/comma/LC_NUMERIC", dir);
    f = fopen(path, "w");
    CHECK(f && fwrite(numeric, sizeof(numeric), 1, f) == 1 && fclose(f) == 0);
    setenv("LOCPATH", dir, 1);
    set = setlocale(LC_NUMERIC, "comma");
    unlink(path);
    snprintf(path, sizeof(path), "%s/comma", dir);
    rmdir(path);
    rmdir(dir);
    CHECK(set);
    snprintf(path, sizeof(path), "%.1f", 0.5);
    CHECK(strcmp(path, "0,5") == 0);
}

TEST(the_locale_does_not_matter)
{
    static const struct {
        double v;
        const char *text;
    } reals[] = {
        {0.5, "0.5"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.7976931348623157e308, "1.7976931348623157e308"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {3.333333333333333e-10, "3.333333333333333e-10"},
    };
    struct buf b;

    use_decimal_comma();
    buf_init(&b, 100);
    for (size_t i = 0; i < sizeof(reals) / sizeof(*reals); i++) {
        CHECK(str_eq(written(&b, reals[i].v), str_of(reals[i].text)));
        CHECK(read_real(str_of(reals[i].text)) == reals[i].v);
    }
    buf_fini(&b);
}
