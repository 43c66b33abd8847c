#ifndef BASE_JSON_H
#define BASE_JSON_H

/* json: RFC 8259, strictly, in three ways: a reader that builds a tree in an
 * arena, a writer into a buf, and a scanner that finds or replaces one field
 * of a document without building anything.
 *
 * Strict means: one value and nothing behind it, no byte order mark, valid
 * UTF-8 only, no lone surrogates, no duplicate keys in an object (however they
 * are escaped), nesting up to a limit, integers that fit 64 bits and reals
 * that are finite. Everything else is an error with its place. Reader, scanner
 * and checker accept exactly the same documents.
 *
 * Where RFC 8259 leaves a choice: -0 is the integer 0, while -0.0 and -0e0 are
 * reals and keep their sign. A real too small for a double is 0. \u0000 may
 * stand in strings and keys, since a str has a length: whoever hands one on as
 * a C string must look for it. Threads: any; nothing here keeps state. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

enum json_type {
    JSON_NULL,
    JSON_BOOL,
    JSON_INT,  /* no fraction, no exponent, fits int64_t */
    JSON_REAL, /* anything else that is finite */
    JSON_STR,
    JSON_ARR,
    JSON_OBJ,
};

/* One value. Strings without escapes point into the text that was parsed,
 * which must outlive the tree. Members and elements keep their order. */
struct json {
    enum json_type type;
    uint32_t at;       /* where it begins in the text */
    struct str key;    /* in an object */
    struct json *next; /* in an object or an array */
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
    const char *what; /* a sentence without full stop, constant */
    size_t at;        /* byte offset */
    unsigned line;    /* from 1 */
    unsigned col;     /* from 1, in bytes */
};

enum {
    JSON_DEPTH_MAX = 64,         /* deepest nesting the reader accepts */
    JSON_TEXT_MAX = 1 << 30,     /* longest text, so that `at` fits */
    JSON_WITH_COMMENTS = 1 << 0, /* JSONC: // and block comments, and a
                                  * trailing comma before ] and } */
};

/* The tree, or NULL with *err filled (err may be NULL). Everything is in the
 * arena, also what is left over after an error; an arena at its cap is the
 * error "too large". Borrows text for as long as the tree lives. */
MUST_USE struct json *json_parse(struct arena *a, struct str text,
                                 unsigned flags, struct json_error *err);

/* Line and column of a byte offset: for errors found after parsing. */
void json_where(struct str text, size_t at, unsigned *line, unsigned *col);

/* Members and elements; NULL when v is NULL, of another type or has no such.
 * So a path may be written without asking at each step. */
struct json *json_get(const struct json *v, struct str key);
struct json *json_at(const struct json *v, size_t i);

/* Values with a fallback for "not there or of another type". json_real takes
 * integers too. */
struct str json_str_or(const struct json *v, struct str fallback);
int64_t json_int_or(const struct json *v, int64_t fallback);
double json_real_or(const struct json *v, double fallback);
bool json_bool_or(const struct json *v, bool fallback);

#define JSON_EACH(kid, parent) \
    for (struct json *kid = (parent)->kids.first; kid; kid = kid->next)

/* The writer. Commas and colons come by themselves:
 *
 *     struct json_out o = json_out(&buf);
 *     json_open(&o, '{');
 *     json_key(&o, STR("n"));
 *     json_put_int(&o, 3);
 *     json_close(&o, '}');
 *
 * Strings are escaped as needed; bytes that are not UTF-8 become U+FFFD, so
 * what comes out is always a document that the reader takes. Reals are written
 * with the fewest digits that read back the same, and with a point or an
 * exponent, so that they stay reals; NaN and infinities as null. Too much for
 * the buf is seen in buf.over; so is a tree deeper than JSON_DEPTH_MAX, which
 * no reader would take. */
struct json_out {
    struct buf *out;
    bool comma; /* the next value needs one before it */
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
void json_put_raw(struct json_out *o, struct str document); /* as it is */
void json_put(struct json_out *o, const struct json *v);    /* a whole tree */

/* A member of the object that is open: its key and its value. */
void json_member_text(struct json_out *o, const char *key, struct str s);
void json_member_int(struct json_out *o, const char *key, int64_t v);
void json_member_real(struct json_out *o, const char *key, double v);
void json_member_bool(struct json_out *o, const char *key, bool v);
void json_member_null(struct json_out *o, const char *key);
void json_member_raw(struct json_out *o, const char *key, struct str document);

/* What may be missing: null for an empty text, for a moment that is zero and
 * for a number that is not known; or, with an empty text, no member at all. */
void json_member_str(struct json_out *o, const char *key, struct str s);
void json_member_ms(struct json_out *o, const char *key, int64_t ms);
void json_member_known(struct json_out *o, const char *key, bool is_known,
                       int64_t v);
void json_member_some(struct json_out *o, const char *key, struct str s);

/* The scanner. Checks the whole of `text` as strictly as json_parse.
 *
 * It and its sisters below fail with ERR_SYNTAX and *err filled (err may be
 * NULL); with ERR_LIMIT when text is longer than JSON_TEXT_MAX; and with
 * ERR_NOMEM when there is no memory to remember keys in: some twelve bytes for
 * each key of the objects open at one point, beyond the first few dozen, given
 * back before they return. Outputs are then empty or as they were. */
MUST_USE enum err json_check(struct str text, struct json_error *err);

/* Find up to n members of the object that `text` is, by key, and give their
 * values as they stand in the text (strings with quotes and escapes); an empty
 * str where there is none. ERR_SYNTAX when text is not a valid document or not
 * an object. */
MUST_USE enum err json_scan(struct str text, const struct str *keys, size_t n,
                            struct str *values, struct json_error *err);

/* Make every escape that is half a surrogate pair one of U+FFFD, in place, for
 * texts of programs that cut their strings anywhere; the rest stays, valid or
 * not. Returns how many there were. */
size_t json_mend_halves(char *text, size_t n);

/* Write `text` to out with the value of one top-level member replaced by
 * `document` (added at the end if it was not there). Everything else is copied
 * byte for byte. Checks text, not document. ERR_LIMIT when out is too small;
 * on any error out is as it was. text must not lie in out. */
MUST_USE enum err json_splice(struct buf *out, struct str text, struct str key,
                              struct str document, struct json_error *err);

/* The same with less work for who has scanned text already: `old` is a value
 * that json_scan found in it, and nothing is looked through again. */
MUST_USE enum err json_swap(struct buf *out, struct str text, struct str old,
                            struct str document);

/* Decode a scanned string value ("a\u00e9") into the arena; false when it is
 * not a string or the arena is full. */
MUST_USE bool json_unquote(struct arena *a, struct str raw, struct str *out);

/* The elements of an array that was scanned, one after the other, as they
 * stand in the text: large ones need no tree then.
 *
 *     struct str rest = array, v;
 *     while (json_next(&rest, &v))
 *
 * Ends at once where `array` is none. What was not checked before is walked in
 * some way or other, but never past its end. */
bool json_next(struct str *rest, struct str *value);

/* The value of a scanned number; false when it is none. */
MUST_USE bool json_number(struct str raw, double *out);

#endif
