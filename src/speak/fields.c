/* Client objects are flat and mostly one long string, so no tree is built. The
 * document is checked once as a whole; then its members are walked in place.
 * The check lets the walk be simple: a quote ends a string unless it is
 * escaped, brackets are balanced, and nothing unexpected follows.
 *
 * Rejected: a tree. A body of 64 MiB of "[],[]," would become thirty times as
 * large. */
#include "speak/internal.h"

#include <assert.h>
#include <stdio.h>

static bool field_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The position after the string that begins at `at`. */
static size_t field_skip_string(struct str s, size_t at)
{
    for (at++; s.p[at] != '"'; at++)
        if (s.p[at] == '\\')
            at++;
    return at + 1;
}

static size_t field_skip_space(struct str s, size_t at)
{
    while (at < s.n && field_is_space(s.p[at]))
        at++;
    return at;
}

/* The position after the value that begins at `at`. */
static size_t field_skip_value(struct str s, size_t at)
{
    size_t depth = 0;

    if (s.p[at] == '"')
        return field_skip_string(s, at);
    while (at < s.n) {
        char c = s.p[at];

        if (c == '"') {
            at = field_skip_string(s, at);
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}' || field_is_space(c)))
            break;
        at++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            break;
    }
    return at;
}

/* The next member of the object s. *at starts at zero. */
static bool field_next_member(struct str s, size_t *at, struct str *key,
                              struct str *value)
{
    size_t from = field_skip_space(s, *at), to;

    if (s.p[from] == '{' || s.p[from] == ',')
        from = field_skip_space(s, from + 1);
    if (s.p[from] == '}')
        return false;
    to = field_skip_string(s, from);
    *key = str_sub(s, from, to);
    from = field_skip_space(s, to); /* the colon */
    from = field_skip_space(s, from + 1);
    to = field_skip_value(s, from);
    *value = str_sub(s, from, to);
    *at = field_skip_space(s, to);
    return true;
}

void canonical_add(struct buf *out, struct str s)
{
    buf_add_i64(out, (int64_t)s.n);
    buf_add_char(out, ':');
    buf_add_str(out, s);
}

void compact_json(struct buf *out, struct str document)
{
    size_t at = 0;

    while (at < document.n) {
        size_t from = at;

        if (document.p[at] == '"') {
            at = field_skip_string(document, at);
        } else if (field_is_space(document.p[at])) {
            at = field_skip_space(document, at);
            continue;
        } else {
            at++;
        }
        buf_add(out, document.p + from, at - from);
    }
}

/* Error messages. */

/* "a|b|c" as "\"a\", \"b\" or \"c\""; a long list as "one of a, b, c". */
static void field_list_words(struct str words, char *out, size_t size)
{
    size_t n = 0, n_words = 0;
    const char *quote = "\"", *last = " or ";

    for (struct str rest = words; rest.n; n_words++)
        str_cut(&rest, '|');
    out[0] = '\0';
    if (n_words > 6) {
        quote = "";
        last = ", ";
        n += (size_t)snprintf(out, size, "one of ");
    }
    for (size_t i = 0; i < n_words && n < size; i++) {
        struct str one = str_cut(&words, '|');

        n += (size_t)snprintf(out + n, size - n, "%s%s%.*s%s",
                              i == 0             ? ""
                              : i == n_words - 1 ? last
                                                 : ", ",
                              quote, STR_ARG(one), quote);
    }
}

static enum err field_invalid(const char *prefix, const struct field *f,
                              enum err e, struct why *why)
{
    long long min = f->min, max = f->max;

    if (f->must)
        return why_err(why, e, "%s%s must be %s", prefix, f->name, f->must);
    switch (f->type) {
    case FIELD_NAME:
        return why_err(why, e,
                       "%s%s must be a string of %lld to %lld bytes without "
                       "control characters",
                       prefix, f->name, min, max);
    case FIELD_TEXT:
        return why_err(why, e, "%s%s must be a string of %lld to %lld bytes",
                       prefix, f->name, min, max);
    case FIELD_WORD:
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

static enum err field_unknown(const struct fields *f, struct str name,
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
                       "unknown field \"%s%s\"; did you mean \"%s%.*s\"?",
                       f->prefix, shown, f->prefix, STR_ARG(guess.name));
    if (f->n == 0)
        return why_err(why, ERR_BAD_REQUEST,
                       "unknown field \"%s\"; this call takes none", shown);
    return why_err(why, ERR_BAD_REQUEST, "unknown field \"%s%s\"; known: %s",
                   f->prefix, shown, all);
}

/* Values. */

/* *out is spelt as the row spells it. */
static enum err field_find_word(const char *prefix, const struct field *f,
                                struct str s, struct str *out, struct why *why)
{
    char words[256];

    for (struct str all = str_of(f->of); all.n;) {
        *out = str_cut(&all, '|');
        if (f->any_case ? str_eq_nocase(*out, s) : str_eq(*out, s))
            return OK;
    }
    field_list_words(str_of(f->of), words, sizeof(words));
    return why_err(why, ERR_BAD_REQUEST, "%s%s must be %s", prefix, f->name,
                   f->must ? f->must : words);
}

/* s is already decoded. */
static enum err field_check_string(const char *prefix, const struct field *f,
                                   struct str s, struct str *out,
                                   struct why *why)
{
    if (s.n > (size_t)f->max)
        return field_invalid(
            prefix, f, f->type == FIELD_TEXT ? ERR_LIMIT : ERR_BAD_REQUEST,
            why);
    if (s.n < (size_t)f->min ||
        (f->type == FIELD_NAME && str_has_any_control(s)))
        return field_invalid(prefix, f, ERR_BAD_REQUEST, why);
    if (f->type == FIELD_WORD)
        return field_find_word(prefix, f, s, out, why);
    *out = s;
    return OK;
}

/* An escape takes at most six bytes per byte, so a longer string cannot fit and
 * is not decoded. */
enum err field_string(struct arena *a, const char *prefix,
                      const struct field *f, struct str raw, struct str *out,
                      struct why *why)
{
    enum err too_long = f->type == FIELD_TEXT ? ERR_LIMIT : ERR_BAD_REQUEST;
    struct arena scratch;
    struct str s = {"", 0};
    enum err e = OK;

    if (raw.n < 2 || raw.p[0] != '"')
        return field_invalid(prefix, f, ERR_BAD_REQUEST, why);
    if (raw.n - 2 > 6 * (size_t)f->max)
        return field_invalid(prefix, f, too_long, why);
    arena_init(&scratch, 6 * (size_t)f->max + 4096);
    if (raw.n > 2 && !json_unquote(&scratch, raw, &s))
        e = why_err(why, ERR_NOMEM, "out of memory");
    else
        e = field_check_string(prefix, f, s, &s, why);
    if (!e && !arena_keep(a, s, out))
        e = why_err(why, ERR_NOMEM, "out of memory");
    arena_fini(&scratch);
    return e;
}

/* Read a value that is not a string. */
static enum err field_read_plain(const char *prefix, const struct field *f,
                                 struct str raw, void *to, struct why *why)
{
    enum err e = ERR_BAD_REQUEST;
    int64_t whole;
    double real;

    if (f->type == FIELD_INT) {
        if (str_to_i64(raw, &whole) || whole < f->min || whole > f->max)
            return field_invalid(prefix, f, e, why);
        *(int64_t *)to = whole;
    } else if (f->type == FIELD_REAL) {
        /* json_number expects checked input; an argument of a query is not. */
        if (json_check(raw, NULL) != OK || !json_number(raw, &real) ||
            real < (double)f->min || real > (double)f->max)
            return field_invalid(prefix, f, e, why);
        *(double *)to = real;
    } else if (f->type == FIELD_BOOL) {
        if (!str_eq(raw, STR("true")) && !str_eq(raw, STR("false")))
            return field_invalid(prefix, f, e, why);
        *(bool *)to = str_eq(raw, STR("true"));
    } else {
        if (raw.p[0] != (f->type == FIELD_OBJ ? '{' : '['))
            return field_invalid(prefix, f, e, why);
        if (raw.n > (size_t)f->max)
            return field_invalid(prefix, f, ERR_LIMIT, why);
        *(struct str *)to = raw;
    }
    return OK;
}

static bool field_is_string(const struct field *f)
{
    return f->type == FIELD_NAME || f->type == FIELD_TEXT ||
           f->type == FIELD_WORD;
}

enum err field_arg(const struct field *f, struct str value, void *to,
                   struct why *why)
{
    if (field_is_string(f))
        return field_check_string("", f, value, to, why);
    assert(f->type != FIELD_OBJ && f->type != FIELD_ARR);
    return field_read_plain("", f, value, to, why);
}

/* Keys may be escaped. A key too long to be a known one is kept as it is. */
static enum err field_read_key(struct arena *a, struct str raw, struct str *out,
                               struct why *why)
{
    *out = str_sub(raw, 1, raw.n - 1);
    if (raw.n > 2 && raw.n < 512 && str_find(raw, '\\', 0) < raw.n &&
        !json_unquote(a, raw, out))
        return why_err(why, ERR_NOMEM, "out of memory");
    return OK;
}

static enum err field_check_object(struct str body, struct why *why)
{
    struct json_error bad = {.what = "", .line = 0};
    enum err e;

    if (body.n == 0)
        return why_err(why, ERR_SYNTAX,
                       "the body is empty; a JSON object is expected");
    e = json_check(body, &bad);
    if (e == ERR_SYNTAX)
        return why_err(why, e,
                       "the body is not valid JSON: %s, at line %u, "
                       "column %u",
                       bad.what, bad.line, bad.col);
    if (e)
        return why_err(why, e, "the body cannot be read");
    if (body.p[field_skip_space(body, 0)] != '{')
        return why_err(why, ERR_BAD_REQUEST, "the body must be a JSON object");
    return OK;
}

enum err fields_read(struct arena *a, struct str body, const struct fields *f,
                     void *out, struct why *why)
{
    struct str raw_key, key = {NULL, 0}, value;
    uint64_t is_given = 0;
    size_t at = 0;
    enum err e = field_check_object(body, why);

    assert(f->n <= 64);
    while (!e && field_next_member(body, &at, &raw_key, &value)) {
        const struct field *field = NULL;
        void *to;

        e = field_read_key(a, raw_key, &key, why);
        if (e)
            break;
        for (size_t i = 0; !field && i < f->n; i++)
            if (str_eq(str_of(f->list[i].name), key))
                field = &f->list[i];
        if (!field)
            return field_unknown(f, key, why);
        to = (char *)out + field->at;
        if (!str_eq(value, STR("null"))) {
            is_given |= UINT64_C(1) << (field - f->list);
            e = field_is_string(field)
                    ? field_string(a, f->prefix, field, value, to, why)
                    : field_read_plain(f->prefix, field, value, to, why);
        } else if (field->null_is_empty) {
            *(struct str *)to = STR("");
        }
    }
    for (size_t i = 0; !e && i < f->n; i++)
        if (f->list[i].missing && !(is_given >> i & 1))
            e = why_err(why, ERR_BAD_REQUEST, "%s%s is missing: %s", f->prefix,
                        f->list[i].name, f->list[i].missing);
    return e;
}
