#ifndef BASE_STR_H
#define BASE_STR_H

/* str: borrowed bytes with a length.
 *
 * A str never owns memory and need not end in NUL. The empty str may have a
 * NULL pointer. Threads: any; no state. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

struct str {
    const char *p;
    size_t n;
};

/* A literal with its length at compile time: str_eq(s, STR("GET")). */
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

/* Compares ASCII letters without case and other bytes exactly. */
bool str_eq_nocase(struct str a, struct str b);

/* Order by bytes, a prefix before the longer string: <0, 0 or >0. */
int str_cmp(struct str a, struct str b);

/* The same, with ASCII letters compared without case. */
int str_cmp_nocase(struct str a, struct str b);

/* The first `most` bytes of s, or up to three fewer so that no UTF-8 character
 * is split. Invalid UTF-8, or a first character that does not fit, is cut at
 * `most`, so a loop over a text always advances. */
struct str str_head(struct str s, size_t most);

/* The position of the first c at or after `from`; s.n if there is none. */
size_t str_find(struct str s, char c, size_t from);

/* Remove everything up to `sep` from the front of *rest, with the separator,
 * and return it without. If there is no separator, all of *rest is returned. */
struct str str_cut(struct str *rest, char sep);

/* Remove spaces and tabs at both ends. */
struct str str_trim(struct str s);

/* ASCII white space. */
static inline bool str_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Remove white space at both ends. */
struct str str_trim_space(struct str s);

/* The length of a character at the beginning of s that could break a line,
 * control a terminal or reorder the displayed text: a control character (also
 * U+0080 to U+009F) or a bidirectional one (U+202A to U+202E, U+2066 to U+2069,
 * U+200E, U+200F, U+061C). Zero if s begins with none. */
size_t str_steers(struct str s);

/* Replace each such character with '?'. Returns the new length, and adds a NUL
 * if it is shorter. */
size_t str_tame(char *p, size_t n);
/* The same, but keep line ends and tabs: for multi-line text. */
size_t str_tame_text(char *p, size_t n);

/* Whether there is an ASCII control character other than tab, which could end a
 * line early or hide in it. The plain one works byte by byte; tests compare the
 * two. */
bool str_has_control(struct str s);
bool str_has_control_plain(struct str s);

/* Whether there is any control character, tabs and those of Unicode included:
 * for names, ids and keys. */
bool str_has_any_control(struct str s);

static inline bool str_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* An ASCII letter or digit, then such and the characters of `more`, up to max
 * in all. */
bool str_is_name(struct str s, const char *more, size_t max);

/* The index of s in names[1] to names[n - 1], the names of an enum; zero if it
 * is not among them. */
unsigned str_index(const struct str *names, size_t n, struct str s);

/* One or more decimal digits and nothing else. */
bool str_is_digits(struct str s);

/* A decimal integer with optional minus and nothing around it. ERR_SYNTAX if it
 * is not that or does not fit; *out is then untouched. */
MUST_USE enum err str_to_i64(struct str s, int64_t *out);

/* n bytes as 2 n lower-case hex digits, and a NUL. */
void str_hex(char *to, const void *bytes, size_t n);

/* ASCII letters in lower case, other bytes unchanged. */
static inline char str_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static inline bool str_is_alnum(char c)
{
    return str_is_digit(c) || (str_lower(c) >= 'a' && str_lower(c) <= 'z');
}

/* The value of a hex digit in either case; -1 if it is not one. */
static inline int str_hex_value(char c)
{
    if (str_is_digit(c))
        return c - '0';
    c = str_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A copy of the first max bytes of s in lower case, in `out`. */
static inline struct str str_lowered(struct str s, char *out, size_t max)
{
    size_t n = s.n < max ? s.n : max;

    for (size_t i = 0; i < n; i++)
        out[i] = str_lower(s.p[i]);
    return (struct str){out, n};
}

/* Copy s to *at and advance *at past it: fills one allocation string by
 * string. */
static inline struct str str_pack(char **at, struct str s)
{
    struct str kept = {*at, s.n};

    if (s.n)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return kept;
}

/* The value of a base64 digit; -1 if it is not one. */
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

/* The folder that contains a path: "." for a bare name, "/" for the root and
 * its entries. Trailing slashes are ignored. */
struct str str_parent(struct str path);

/* The number of single-character edits (insert, delete, replace, swap of two
 * neighbours) from a to b, ignoring case. Strings longer than 64 bytes are
 * STR_FAR apart. Used to suggest the intended name. */
#define STR_FAR 1000
unsigned str_distance(struct str a, struct str b);

/* Suggests the intended name for an unknown one: offer all names with their
 * distances; the nearest is kept. Empty if none is near enough. */
struct str_guess {
    struct str name;
    unsigned distance;
};

static inline struct str_guess str_guess(struct str written)
{
    /* Two edits in four letters leave a word with little in common. */
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
