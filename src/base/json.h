#ifndef BASE_JSON_H
#define BASE_JSON_H

/* json: RFC 8259, strictly, in three ways: a reader that builds a tree in an
 * arena, a writer into a buf, and a scanner that finds or replaces one member
 * of a document without building anything.
 *
 * Strict means: one value and nothing after it, no byte order mark, valid UTF-8
 * only, no lone surrogates, no duplicate keys in an object (compared after
 * unescaping), limited nesting, integers that fit 64 bits and reals that are
 * finite. Everything else is an error with its position. Reader, scanner and
 * checker accept exactly the same documents.
 *
 * RFC 8259 leaves some choices: -0 is the integer 0, while -0.0 and -0e0 are
 * reals and keep their sign. A real too small for a double is 0. \u0000 may
 * appear in strings and keys, since a str has a length; code that passes one on
 * as a C string must check for it. Threads: any; no state. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

enum json_type {
    JSON_NULL,
    JSON_BOOL,
    JSON_INT,  /* no fraction, no exponent, fits int64_t */
    JSON_REAL, /* any other finite number */
    JSON_STR,
    JSON_ARR,
    JSON_OBJ,
};

/* One value. Strings without escapes point into the parsed text, which must
 * outlive the tree. Members and elements keep their order. */
struct json {
    enum json_type type;
    uint32_t at;       /* offset in the text */
    struct str key;    /* if it is a member of an object */
    struct json *next; /* sibling in an object or array */
    union {
        bool b;
        int64_t i;
        double d;
        struct str s;
        struct {
            struct json *first;
            size_t n;
        } kids;
    };
};

struct json_error {
    const char *what; /* a constant sentence without full stop */
    size_t at;        /* byte offset */
    unsigned line;    /* from 1 */
    unsigned col;     /* from 1, in bytes */
    enum err err;     /* ERR_SYNTAX, ERR_LIMIT (too large), or ERR_NOMEM */
};

enum {
    JSON_DEPTH_MAX = 64,         /* deepest nesting the reader accepts */
    JSON_TEXT_MAX = 1 << 30,     /* longest text; `at` must fit */
    JSON_WITH_COMMENTS = 1 << 0, /* JSONC: // and block comments, and a
                                  * trailing comma before ] and } */
};

/* The tree, or NULL with *err filled (err may be NULL). Everything is in the
 * arena, including what an error leaves behind; an arena at its cap is the
 * error ERR_LIMIT, one without memory ERR_NOMEM. Borrows text for as long as
 * the tree lives. */
MUST_USE struct json *json_parse(struct arena *a, struct str text,
                                 unsigned flags, struct json_error *err);

/* Line and column of a byte offset, for errors found after parsing. */
void json_where(struct str text, size_t at, unsigned *line, unsigned *col);

/* A member or an element. NULL if v is NULL, has another type, or has no such
 * child, so a path needs no check at each step. */
struct json *json_get(const struct json *v, struct str key);
struct json *json_at(const struct json *v, size_t i);

/* The value, or the fallback if v is NULL or has another type. json_real_or
 * also takes integers. */
struct str json_str_or(const struct json *v, struct str fallback);
int64_t json_int_or(const struct json *v, int64_t fallback);
double json_real_or(const struct json *v, double fallback);
bool json_bool_or(const struct json *v, bool fallback);

static inline bool json_has_kids(const struct json *v)
{
    return v->type == JSON_ARR || v->type == JSON_OBJ;
}

#define JSON_EACH(kid, parent) \
    for (struct json *kid = (parent)->kids.first; kid; kid = kid->next)

/* The writer. It adds commas and colons itself:
 *
 *     struct json_out o = json_out(&buf);
 *     json_open(&o, '{');
 *     json_key(&o, STR("n"));
 *     json_put_int(&o, 3);
 *     json_close(&o, '}');
 *
 * Strings are escaped as needed, and bytes that are not UTF-8 become U+FFFD, so
 * the reader accepts every document written here. Reals are written with the
 * fewest digits that read back the same, and with a point or an exponent, so
 * that they stay reals; NaN and infinities become null. If the text does not
 * fit, or a tree is nested deeper than JSON_DEPTH_MAX, which no reader would
 * accept, buf.over is set. */
struct json_out {
    struct buf *out;
    bool comma; /* a comma comes before the next value */
};

struct json_out json_out(struct buf *out);
void json_open(struct json_out *o, char bracket);
void json_close(struct json_out *o, char bracket);
void json_key(struct json_out *o, struct str key);
void json_put_str(struct json_out *o, struct str s);
void json_put_int(struct json_out *o, int64_t v);
void json_put_real(struct json_out *o, double v);
void json_put_bool(struct json_out *o, bool v);
void json_put_null(struct json_out *o);
void json_put_raw(struct json_out *o, struct str document); /* unchanged */
void json_put(struct json_out *o, const struct json *v);    /* a whole tree */

/* One member of the open object: its key and its value. */
void json_member_text(struct json_out *o, const char *key, struct str s);
void json_member_int(struct json_out *o, const char *key, int64_t v);
void json_member_real(struct json_out *o, const char *key, double v);
void json_member_bool(struct json_out *o, const char *key, bool v);
void json_member_null(struct json_out *o, const char *key);
void json_member_raw(struct json_out *o, const char *key, struct str document);

/* Optional values. An empty text, a time of zero or an unknown number is
 * written as null; json_member_some omits an empty text. */
void json_member_str(struct json_out *o, const char *key, struct str s);
void json_member_ms(struct json_out *o, const char *key, int64_t ms);
void json_member_known(struct json_out *o, const char *key, bool is_known,
                       int64_t v);
void json_member_some(struct json_out *o, const char *key, struct str s);

/* The scanner. Checks all of `text` as strictly as json_parse.
 *
 * It and the functions below fail with ERR_SYNTAX and *err filled (err may be
 * NULL), with ERR_LIMIT if text is longer than JSON_TEXT_MAX, and with
 * ERR_NOMEM if there is no memory for the keys: about twelve bytes for each key
 * of the currently open objects beyond the first few dozen, freed before they
 * return. Outputs are then empty or unchanged. */
MUST_USE enum err json_check(struct str text, struct json_error *err);

/* Find up to n members of the object in `text` by key. The values are slices of
 * the text (strings with quotes and escapes), empty if the key is missing.
 * ERR_SYNTAX if text is not a valid document or not an object. */
MUST_USE enum err json_scan(struct str text, const struct str *keys, size_t n,
                            struct str *values, struct json_error *err);

/* Replace each lone surrogate escape with \ufffd, in place, for texts of
 * programs that cut strings at any position. The rest stays, valid or not.
 * Returns the number of replacements. */
size_t json_mend_halves(char *text, size_t n);

/* Write `text` to out with the value of one top-level member replaced by
 * `document`, or with the member added at the end. Everything else is copied
 * byte for byte. Checks text, not document. ERR_LIMIT if out is too small; on
 * any error out is unchanged. text must not lie in out. */
MUST_USE enum err json_splice(struct buf *out, struct str text, struct str key,
                              struct str document, struct json_error *err);

/* The same for a text that was already scanned: `old` is a value that json_scan
 * found in it. Nothing is scanned again. */
MUST_USE enum err json_swap(struct buf *out, struct str text, struct str old,
                            struct str document);

/* Decode a scanned string value ("a\u00e9") into the arena. False if it is not
 * a string or the arena is full. */
MUST_USE bool json_unquote(struct arena *a, struct str raw, struct str *out);

/* Iterate over the elements of a scanned array as slices of the text, so that a
 * large array needs no tree.
 *
 *     struct str rest = array, v;
 *     while (json_next(&rest, &v))
 *
 * Ends at once if `array` is not an array. The result for unchecked text is
 * unspecified, but reading never passes its end. */
bool json_next(struct str *rest, struct str *value);

/* The value of a scanned number. False if it is not a number. */
MUST_USE bool json_number(struct str raw, double *out);

#endif
