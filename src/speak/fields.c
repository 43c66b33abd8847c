/* Objects that clients send are flat and mostly one long string, so no tree is
 * built: the document is checked whole, once, and then its members are walked
 * as they stand. After that check the walk may be simple: a quote ends a
 * string unless a backslash stands before it, brackets are balanced, and
 * nothing unexpected can come.
 *
 * A tree was considered; 64 MiB of "[],[]," as a body would have made it
 * thirty times as large. */
#include "speak/internal.h"

#include <assert.h>
#include <stdio.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Behind the string that begins at `at`. */
static size_t skip_string(struct str s, size_t at)
{
    for (at++; s.p[at] != '"'; at++)
        if (s.p[at] == '\\')
            at++;
    return at + 1;
}

static size_t skip_space(struct str s, size_t at)
{
    while (at < s.n && is_space(s.p[at]))
        at++;
    return at;
}

/* Behind the value that begins at `at`. */
static size_t skip_value(struct str s, size_t at)
{
    size_t depth = 0;

    if (s.p[at] == '"')
        return skip_string(s, at);
    while (at < s.n) {
        char c = s.p[at];

        if (c == '"') {
            at = skip_string(s, at);
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}' || is_space(c)))
            break;
        at++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            break;
    }
    return at;
}

/* The next member of the object s, whose `*at` begins at zero. */
static bool next_member(struct str s, size_t *at, struct str *key,
                        struct str *value)
{
    size_t from = skip_space(s, *at), to;

    if (s.p[from] == '{' || s.p[from] == ',')
        from = skip_space(s, from + 1);
    if (s.p[from] == '}')
        return false;
    to = skip_string(s, from);
    *key = str_sub(s, from, to);
    from = skip_space(s, to); /* the colon */
    from = skip_space(s, from + 1);
    to = skip_value(s, from);
    *value = str_sub(s, from, to);
    *at = skip_space(s, to);
    return true;
}

void compact_json(struct buf *out, struct str document)
{
    size_t at = 0;

    while (at < document.n) {
        size_t from = at;

        if (document.p[at] == '"') {
            at = skip_string(document, at);
        } else if (is_space(document.p[at])) {
            at = skip_space(document, at);
            continue;
        } else {
            at++;
        }
        buf_add(out, document.p + from, at - from);
    }
}

/* Words. */

static enum err not_right(const char *prefix, const struct field *f, enum err e,
                          struct why *why)
{
    long long min = f->min, max = f->max;

    switch (f->type) {
    case FIELD_NAME:
        return why_err(why, e,
                       "%s%s must be a string of %lld to %lld bytes without "
                       "control characters",
                       prefix, f->name, min, max);
    case FIELD_TEXT:
        return why_err(why, e, "%s%s must be a string of %lld to %lld bytes",
                       prefix, f->name, min, max);
    case FIELD_INT:
        return why_err(why, e, "%s%s must be a whole number from %lld to %lld",
                       prefix, f->name, min, max);
    case FIELD_REAL:
        return why_err(why, e, "%s%s must be a number from %lld to %lld",
                       prefix, f->name, min, max);
    case FIELD_BOOL:
        return why_err(why, e, "%s%s must be true or false", prefix, f->name);
    case FIELD_OBJ:
        return why_err(why, e, "%s%s must be an object of up to %lld bytes",
                       prefix, f->name, max);
    case FIELD_ARR:
        return why_err(why, e, "%s%s must be an array of up to %lld bytes",
                       prefix, f->name, max);
    }
    return ERR_INTERNAL;
}

static enum err not_known(const struct fields *f, struct str name,
                          struct why *why)
{
    struct str_guess guess = str_guess(name);
    char shown[64], all[320] = "";
    size_t n = 0;
    int len = snprintf(shown, sizeof(shown), "%.*s",
                       STR_ARG(str_head(name, sizeof(shown) - 1)));

    assert(len >= 0);
    str_tame(shown, (size_t)len);
    for (size_t i = 0; i < f->n && n < sizeof(all); i++) {
        struct str one = str_of(f->list[i].name);

        str_guess_offer(&guess, one, str_distance(name, one));
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s%s", i ? ", " : "",
                              f->prefix, one.p);
    }
    if (guess.name.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "there is no field \"%s%s\"; did you mean \"%s%.*s\"?",
                       f->prefix, shown, f->prefix, STR_ARG(guess.name));
    if (f->n == 0)
        return why_err(why, ERR_BAD_REQUEST,
                       "there is no field \"%s\"; this call takes none", shown);
    return why_err(why, ERR_BAD_REQUEST,
                   "there is no field \"%s%s\"; there are %s", f->prefix, shown,
                   all);
}

/* Values. */

/* A string that is decoded already. */
static enum err check_string(const char *prefix, const struct field *f,
                             struct str s, struct str *out, struct why *why)
{
    if (s.n > (size_t)f->max)
        return not_right(prefix, f,
                         f->type == FIELD_TEXT ? ERR_LIMIT : ERR_BAD_REQUEST,
                         why);
    if (s.n < (size_t)f->min ||
        (f->type == FIELD_NAME && str_has_any_control(s)))
        return not_right(prefix, f, ERR_BAD_REQUEST, why);
    *out = s;
    return OK;
}

/* Escapes are six bytes for one at worst: what is longer cannot fit, and is
 * not decoded. */
enum err field_string(struct arena *a, const char *prefix,
                      const struct field *f, struct str raw, struct str *out,
                      struct why *why)
{
    enum err too_long = f->type == FIELD_TEXT ? ERR_LIMIT : ERR_BAD_REQUEST;
    struct arena scratch;
    struct str s = {"", 0};
    enum err e = OK;
    char *copy;

    if (raw.n < 2 || raw.p[0] != '"')
        return not_right(prefix, f, ERR_BAD_REQUEST, why);
    if (raw.n - 2 > 6 * (size_t)f->max)
        return not_right(prefix, f, too_long, why);
    arena_init(&scratch, 6 * (size_t)f->max + 4096);
    if (raw.n > 2 && !json_unquote(&scratch, raw, &s))
        e = why_err(why, ERR_NOMEM, "out of memory");
    else
        e = check_string(prefix, f, s, &s, why);
    copy = e ? NULL : arena_strdup(a, s);
    if (!e && !copy)
        e = why_err(why, ERR_NOMEM, "out of memory");
    if (!e)
        *out = (struct str){copy, s.n};
    arena_fini(&scratch);
    return e;
}

static enum err read_int(const char *prefix, const struct field *f,
                         struct str raw, int64_t *out, struct why *why)
{
    int64_t v;

    if (str_to_i64(raw, &v) || v < f->min || v > f->max)
        return not_right(prefix, f, ERR_BAD_REQUEST, why);
    *out = v;
    return OK;
}

static enum err read_real(const char *prefix, const struct field *f,
                          struct str raw, double *out, struct why *why)
{
    double v;

    /* json_number believes what was checked; an argument was not. */
    if (json_check(raw, NULL) != OK || !json_number(raw, &v) ||
        v < (double)f->min || v > (double)f->max)
        return not_right(prefix, f, ERR_BAD_REQUEST, why);
    *out = v;
    return OK;
}

static enum err read_bool(const char *prefix, const struct field *f,
                          struct str raw, bool *out, struct why *why)
{
    bool v = str_eq(raw, STR("true"));

    if (!v && !str_eq(raw, STR("false")))
        return not_right(prefix, f, ERR_BAD_REQUEST, why);
    *out = v;
    return OK;
}

static enum err read_document(const char *prefix, const struct field *f,
                              struct str raw, struct str *out, struct why *why)
{
    if (raw.p[0] != (f->type == FIELD_OBJ ? '{' : '['))
        return not_right(prefix, f, ERR_BAD_REQUEST, why);
    if (raw.n > (size_t)f->max)
        return not_right(prefix, f, ERR_LIMIT, why);
    *out = raw;
    return OK;
}

static enum err read_one(struct arena *a, const char *prefix,
                         const struct field *f, struct str raw, void *out,
                         struct why *why)
{
    void *to = (char *)out + f->at;

    if (str_eq(raw, STR("null"))) {
        if (f->null_is_empty)
            *(struct str *)to = STR("");
        return OK;
    }
    switch (f->type) {
    case FIELD_INT: return read_int(prefix, f, raw, to, why);
    case FIELD_REAL: return read_real(prefix, f, raw, to, why);
    case FIELD_BOOL: return read_bool(prefix, f, raw, to, why);
    case FIELD_OBJ:
    case FIELD_ARR: return read_document(prefix, f, raw, to, why);
    case FIELD_NAME:
    case FIELD_TEXT: break;
    }
    return field_string(a, prefix, f, raw, to, why);
}

enum err fields_arg(const struct fields *f, const char *name, struct str value,
                    void *out, struct why *why)
{
    size_t i = 0;
    void *to;

    while (i < f->n && strcmp(f->list[i].name, name) != 0)
        i++;
    assert(i < f->n); /* the table of calls names none besides */
    to = (char *)out + f->list[i].at;
    switch (f->list[i].type) {
    case FIELD_INT: return read_int(f->prefix, &f->list[i], value, to, why);
    case FIELD_REAL: return read_real(f->prefix, &f->list[i], value, to, why);
    case FIELD_BOOL: return read_bool(f->prefix, &f->list[i], value, to, why);
    case FIELD_OBJ:
    case FIELD_ARR: return ERR_INTERNAL;
    case FIELD_NAME:
    case FIELD_TEXT: break;
    }
    return check_string(f->prefix, &f->list[i], value, to, why);
}

/* Keys may be escaped too. Those too long to be anybody's stay as they are. */
static enum err read_key(struct arena *a, struct str raw, struct str *out,
                         struct why *why)
{
    *out = str_sub(raw, 1, raw.n - 1);
    if (raw.n > 2 && raw.n < 512 && str_find(raw, '\\', 0) < raw.n &&
        !json_unquote(a, raw, out))
        return why_err(why, ERR_NOMEM, "out of memory");
    return OK;
}

static enum err check_object(struct str body, struct why *why)
{
    struct json_error bad = {.what = "", .line = 0};
    enum err e;

    if (body.n == 0)
        return why_err(why, ERR_SYNTAX,
                       "the body is empty; a JSON object is wanted");
    e = json_check(body, &bad);
    if (e == ERR_SYNTAX)
        return why_err(why, e,
                       "the body is not valid JSON: %s, at line %u, "
                       "column %u",
                       bad.what, bad.line, bad.col);
    if (e)
        return why_err(why, e, "the body cannot be read");
    if (body.p[skip_space(body, 0)] != '{')
        return why_err(why, ERR_BAD_REQUEST, "the body must be a JSON object");
    return OK;
}

enum err fields_read(struct arena *a, struct str body, const struct fields *f,
                     void *out, struct why *why)
{
    struct str raw_key, key = {NULL, 0}, value;
    size_t at = 0;
    enum err e = check_object(body, why);

    while (!e && next_member(body, &at, &raw_key, &value)) {
        size_t i = 0;

        e = read_key(a, raw_key, &key, why);
        while (i < f->n && !str_eq(str_of(f->list[i].name), key))
            i++;
        if (!e)
            e = i < f->n ? read_one(a, f->prefix, &f->list[i], value, out, why)
                         : not_known(f, key, why);
    }
    return e;
}
