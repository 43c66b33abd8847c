#ifndef BASE_STR_H
#define BASE_STR_H

/* str: bytes with a length, borrowed from whoever owns them.
 *
 * A str never owns memory and need not end in NUL. The empty str may have a
 * NULL pointer. Threads: any; nothing here keeps state. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

struct str {
    const char *p;
    size_t n;
};

/* A literal, its length known to the compiler: str_eq(s, STR("GET")). */
#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})

/* For printf: printf("%.*s", STR_ARG(s)). */
#define STR_ARG(s) (int)(s).n, (s).p ? (s).p : ""

static inline struct str str_of(const char *cstr)
{
    return (struct str){cstr, cstr ? strlen(cstr) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_starts(struct str s, struct str head)
{
    return s.n >= head.n && (head.n == 0 || memcmp(s.p, head.p, head.n) == 0);
}

/* The part from `from` up to `to`, both clipped to the string. */
static inline struct str str_sub(struct str s, size_t from, size_t to)
{
    if (to > s.n)
        to = s.n;
    if (from >= to)
        return (struct str){s.p, 0};
    return (struct str){s.p + from, to - from};
}

/* Letters of ASCII are compared without their case; other bytes as they are. */
bool str_eq_nocase(struct str a, struct str b);

/* Order by bytes, a shorter string before its own extension: <0, 0 or >0. */
int str_cmp(struct str a, struct str b);

/* The same with the letters of ASCII without their case. */
int str_cmp_nocase(struct str a, struct str b);

/* The front of s, `most` bytes of it or up to three fewer, so that no
 * character of UTF-8 is cut in two. Bytes that are not UTF-8, and a first
 * character that does not fit, are cut at `most`: whoever goes on behind it
 * always gets on. */
struct str str_head(struct str s, size_t most);

/* Where c first stands at or after `from`; s.n when it does not. */
size_t str_find(struct str s, char c, size_t from);

/* Take everything up to `sep` off the front of *rest and return it; the
 * separator is skipped. Without one the whole of *rest is returned. */
struct str str_cut(struct str *rest, char sep);

/* Without spaces and tabs at both ends. */
struct str str_trim(struct str s);

/* White space of ASCII: a space, a tab, or one that ends a line or a page. */
static inline bool str_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Without white space at both ends. */
struct str str_trim_space(struct str s);

/* How many bytes at the beginning of s are one character that could break a
 * line, steer a terminal or show text in another order than it has: a control
 * character, those of Unicode (U+0080 to U+009F) included, or one that turns
 * the direction of writing (U+202A to U+202E, U+2066 to U+2069, U+200E, U+200F,
 * U+061C). Zero: it begins with none. */
size_t str_steers(struct str s);

/* Put one '?' for each of those. Returns how many bytes are left, and puts a
 * NUL behind them if that is fewer. */
size_t str_tame(char *p, size_t n);
/* Likewise, but leave line ends and tabs: for text of more than one line. */
size_t str_tame_text(char *p, size_t n);

/* Whether a control character of ASCII other than tab is among the bytes: what
 * could end a line early, or hide in it. The plain one, byte by byte, is what
 * tests hold the other against. */
bool str_has_control(struct str s);
bool str_has_control_plain(struct str s);

/* Whether there is any control character, tab and those of Unicode included:
 * for names, ids and keys. */
bool str_has_any_control(struct str s);

/* One or more decimal digits and nothing else. */
bool str_is_digits(struct str s);

/* A whole decimal number with optional minus, nothing around it, that fits.
 * ERR_SYNTAX otherwise; *out is then untouched. */
MUST_USE enum err str_to_i64(struct str s, int64_t *out);

/* n bytes as 2 n small hex digits, and a NUL. */
void str_hex(char *to, const void *bytes, size_t n);

/* ASCII letters in lower case, other bytes as they are. */
static inline char str_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* A copy of the first max bytes of s in lower case, in `out`. */
static inline struct str str_lowered(struct str s, char *out, size_t max)
{
    size_t n = s.n < max ? s.n : max;

    for (size_t i = 0; i < n; i++)
        out[i] = str_lower(s.p[i]);
    return (struct str){out, n};
}

/* A copy of s at *at, which then is behind it: what was allocated in one piece
 * is filled so, string by string. */
static inline struct str str_pack(char **at, struct str s)
{
    struct str kept = {*at, s.n};

    if (s.n)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return kept;
}

/* The value of a digit of base64; -1 when it is none. */
static inline int str_base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* The folder that a path lies in: "." for a bare name, "/" for what lies in
 * the root or is it. Slashes at the end do not count. */
struct str str_parent(struct str path);

/* How many single-character edits (insert, delete, replace, swap of two
 * neighbours) lead from a to b, without regard to case. Strings longer than
 * 64 bytes count as STR_FAR. Used to suggest the name that was meant. */
#define STR_FAR 1000
unsigned str_distance(struct str a, struct str b);

/* The name that was meant, when what was written is none: offer all there are
 * with their distances; the nearest stays. Empty when none is near enough. */
struct str_guess {
    struct str name;
    unsigned distance;
};

static inline struct str_guess str_guess(struct str written)
{
    /* Two slips in four letters leave a word that has little in common. */
    unsigned near = written.n > 64  ? 0
                    : written.n < 2 ? 1
                    : written.n < 5 ? 2
                                    : 2 + (unsigned)(written.n / 4);

    return (struct str_guess){{NULL, 0}, near};
}

static inline void str_guess_offer(struct str_guess *g, struct str name,
                                   unsigned distance)
{
    if (distance < g->distance)
        *g = (struct str_guess){name, distance};
}

#endif
