#include "base/str.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (str_lower(a.p[i]) != str_lower(b.p[i]))
            return false;
    return true;
}

int str_cmp(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int d = n ? memcmp(a.p, b.p, n) : 0;

    if (d)
        return d;
    return (a.n > b.n) - (a.n < b.n);
}

int str_cmp_nocase(struct str a, struct str b)
{
    for (size_t i = 0; i < a.n && i < b.n; i++) {
        unsigned char x = (unsigned char)str_lower(a.p[i]);
        unsigned char y = (unsigned char)str_lower(b.p[i]);

        if (x != y)
            return x < y ? -1 : 1;
    }
    return (a.n > b.n) - (a.n < b.n);
}

static bool is_inside_character(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

struct str str_head(struct str s, size_t most)
{
    size_t n = most;

    if (s.n <= most)
        return s;
    while (n > 0 && most - n < 3 && is_inside_character(s.p[n]))
        n--;
    if (n == 0 || is_inside_character(s.p[n]))
        n = most;
    return str_sub(s, 0, n);
}

size_t str_find(struct str s, char c, size_t from)
{
    const char *hit;

    if (from >= s.n)
        return s.n;
    hit = memchr(s.p + from, c, s.n - from);
    return hit ? (size_t)(hit - s.p) : s.n;
}

struct str str_cut(struct str *rest, char sep)
{
    size_t at = str_find(*rest, sep, 0);
    struct str head = str_sub(*rest, 0, at);

    *rest = str_sub(*rest, at + 1, rest->n);
    return head;
}

struct str str_trim(struct str s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s.p++, s.n--;
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

struct str str_trim_space(struct str s)
{
    while (s.n && str_is_space(s.p[0]))
        s.p++, s.n--;
    while (s.n && str_is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

void str_hex(char *to, const void *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++) {
        *to++ = digits[p[i] >> 4];
        *to++ = digits[p[i] & 15];
    }
    *to = '\0';
}

struct str str_parent(struct str path)
{
    struct str root = str_sub(path, 0, 1);

    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    while (path.n && path.p[path.n - 1] != '/')
        path.n--;
    if (path.n == 0)
        return STR(".");
    while (path.n && path.p[path.n - 1] == '/')
        path.n--;
    return path.n ? path : root;
}

/* Like str_steers, for control characters only. */
static size_t control_bytes(struct str s)
{
    unsigned char c = s.n ? (unsigned char)s.p[0] : ' ';
    unsigned char next = s.n > 1 ? (unsigned char)s.p[1] : 0;

    if (c < 0x20 || c == 0x7f)
        return 1;
    return c == 0xc2 && next >= 0x80 && next < 0xa0 ? 2 : 0;
}

/* The length of a bidirectional control character in UTF-8. */
static size_t turning_bytes(struct str s)
{
    unsigned char last = s.n > 2 ? (unsigned char)s.p[2] : 0;

    if (str_starts(s, STR("\xd8\x9c")))
        return 2;
    if (str_starts(s, STR("\xe2\x80")))
        return (last >= 0xaa && last <= 0xae) || last == 0x8e || last == 0x8f
                   ? 3
                   : 0;
    return str_starts(s, STR("\xe2\x81")) && last >= 0xa6 && last <= 0xa9 ? 3
                                                                          : 0;
}

size_t str_steers(struct str s)
{
    size_t n = control_bytes(s);

    return n ? n : turning_bytes(s);
}

size_t str_tame(char *p, size_t n)
{
    size_t to = 0;

    for (size_t i = 0; i < n; to++) {
        size_t bad = str_steers((struct str){p + i, n - i});

        p[to] = bad ? '?' : p[i];
        i += bad ? bad : 1;
    }
    if (to < n)
        p[to] = '\0';
    return to;
}

size_t str_tame_text(char *p, size_t n)
{
    size_t from = 0, to = 0;

    for (size_t i = 0; i <= n; i++)
        if (i == n || p[i] == '\n' || p[i] == '\t') {
            char end = i < n ? p[i] : '\0';

            memmove(p + to, p + from, i - from);
            to += str_tame(p + to, i - from);
            if (i < n)
                p[to++] = end;
            from = i + 1;
        }
    if (to < n)
        p[to] = '\0';
    return to;
}

bool str_has_any_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (control_bytes(str_sub(s, i, s.n)))
            return true;
    return false;
}

bool str_is_name(struct str s, const char *more, size_t max)
{
    for (size_t i = 0; i < s.n; i++)
        if (!str_is_alnum(s.p[i]) &&
            (i == 0 || !s.p[i] || !strchr(more, s.p[i])))
            return false;
    return s.n > 0 && s.n <= max;
}

unsigned str_index(const struct str *names, size_t n, struct str s)
{
    for (unsigned i = 1; i < n; i++)
        if (str_eq(names[i], s))
            return i;
    return 0;
}

bool str_is_digits(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!str_is_digit(s.p[i]))
            return false;
    return s.n > 0;
}

enum err str_to_i64(struct str s, int64_t *out)
{
    bool negative = s.n && s.p[0] == '-';
    int64_t v = 0;

    if (s.n == negative)
        return ERR_SYNTAX;
    /* Counting downwards reaches INT64_MIN, which has no positive
     * counterpart. */
    for (size_t i = negative; i < s.n; i++) {
        if (!str_is_digit(s.p[i]))
            return ERR_SYNTAX;
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_sub_overflow(v, s.p[i] - '0', &v))
            return ERR_SYNTAX;
    }
    if (!negative && __builtin_sub_overflow((int64_t)0, v, &v))
        return ERR_SYNTAX;
    *out = v;
    return OK;
}

bool str_has_control_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return true;
    }
    return false;
}

#ifdef __SSE2__
/* Sixteen bytes at p: a bit for each control character. */
static int control_bits(const char *p)
{
    __m128i x = _mm_loadu_si128((const __m128i *)p);
    __m128i last = _mm_set1_epi8(0x1f); /* the last before the space */
    __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(x, last), x);
    __m128i tab = _mm_cmpeq_epi8(x, _mm_set1_epi8('\t'));
    __m128i del = _mm_cmpeq_epi8(x, _mm_set1_epi8(0x7f));

    return _mm_movemask_epi8(_mm_or_si128(_mm_andnot_si128(tab, low), del));
}

#endif

bool str_has_control(struct str s)
{
#ifdef __SSE2__
    /* The last sixteen bytes overlap the ones before, so no read passes the
     * end. */
    if (s.n >= 16) {
        for (size_t i = 0; i < s.n - 16; i += 16)
            if (control_bits(s.p + i))
                return true;
        return control_bits(s.p + s.n - 16);
    }
#endif
    return str_has_control_plain(s);
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;

    return m < c ? m : c;
}

/* Optimal string alignment with three rows: the current one and the two before
 * it (two, because a swap looks two characters back). */
unsigned str_distance(struct str a, struct str b)
{
    enum { LONGEST = 64 };
    unsigned rows[3][LONGEST + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];

    if (a.n > LONGEST || b.n > LONGEST)
        return STR_FAR;
    for (size_t j = 0; j <= b.n; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a.n; i++) {
        unsigned *spare = before;

        before = last;
        last = row;
        row = spare;
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.n; j++) {
            unsigned differs = str_lower(a.p[i - 1]) != str_lower(b.p[j - 1]);

            row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + differs);
            if (i > 1 && j > 1 &&
                str_lower(a.p[i - 1]) == str_lower(b.p[j - 2]) &&
                str_lower(a.p[i - 2]) == str_lower(b.p[j - 1]) &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    return row[b.n];
}
