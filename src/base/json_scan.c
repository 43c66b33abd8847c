/* A message that is only passed on needs no tree: the walk builds nothing and
 * reports the members of the outermost object as it passes them. Everything is
 * checked; only the wanted members are kept.
 *
 * It uses no memory except for finding duplicate keys (json_keys.c), and frees
 * it before the call returns. */
#include "base/json_internal.h"

static enum err json_scan_error(const struct json_walk *w,
                                struct json_error *err)
{
    json_walk_error(w, err);
    return w->err;
}

enum err json_check(struct str text, struct json_error *err)
{
    struct json_walk w;

    json_walk_init(&w);
    return json_walk(&w, text, 0, NULL) ? OK : json_scan_error(&w, err);
}

/* Walk a text that must be an object. *open is its opening bracket. */
static enum err json_walk_object(struct json_walk *w, struct str text,
                                 const char **open, struct json_error *err)
{
    size_t at = 0;

    if (!json_walk(w, text, 0, NULL))
        return json_scan_error(w, err);
    while (memchr(" \t\r\n", text.p[at], 4))
        at++;
    *open = text.p + at;
    if (**open == '{')
        return OK;
    w->bad = *open;
    w->what = "this is not an object";
    w->err = ERR_SYNTAX;
    return json_scan_error(w, err);
}

struct wanted {
    const struct str *keys;
    struct str *values;
    size_t n;
};

static void json_note_wanted(struct json_walk *w, struct json_raw key,
                             struct str v)
{
    struct wanted *want = w->ctx;

    for (size_t i = 0; i < want->n; i++)
        if (json_raw_is(key, want->keys[i]))
            want->values[i] = v;
}

enum err json_scan(struct str text, const struct str *keys, size_t n,
                   struct str *values, struct json_error *err)
{
    struct wanted want = {keys, values, n};
    struct json_walk w;
    const char *open;
    enum err e;

    json_walk_init(&w);
    w.on_member = json_note_wanted;
    w.ctx = &want;
    for (size_t i = 0; i < n; i++)
        values[i] = (struct str){NULL, 0};
    e = json_walk_object(&w, text, &open, err);
    for (size_t i = 0; e && i < n; i++)
        values[i] = (struct str){NULL, 0};
    return e;
}

/* Where to cut: replace `old`, or insert after `last_end`. */
struct cut {
    struct str key;
    struct str old;       /* p is NULL if the key is missing */
    const char *last_end; /* after the last member; NULL if there is none */
};

static void json_note_cut(struct json_walk *w, struct json_raw key,
                          struct str v)
{
    struct cut *cut = w->ctx;

    cut->last_end = v.p + v.n;
    if (json_raw_is(key, cut->key))
        cut->old = v;
}

static void add_span(struct buf *out, const char *from, const char *to)
{
    buf_add(out, from, (size_t)(to - from));
}

/* Keep the addition, or undo it completely. */
static enum err json_keep_or_undo(struct buf *out, size_t n_before,
                                  bool over_before)
{
    bool over = out->over;

    out->over = over_before;
    if (over)
        out->n = n_before;
    return over ? ERR_LIMIT : OK;
}

enum err json_swap(struct buf *out, struct str text, struct str old,
                   struct str document)
{
    size_t n_before = out->n;
    bool over_before = out->over;

    out->over = false;
    add_span(out, text.p, old.p);
    buf_add_str(out, document);
    add_span(out, old.p + old.n, text.p + text.n);
    return json_keep_or_undo(out, n_before, over_before);
}

enum err json_splice(struct buf *out, struct str text, struct str key,
                     struct str document, struct json_error *err)
{
    struct cut cut = {.key = key};
    size_t n_before = out->n;
    bool over_before = out->over;
    struct json_walk w;
    struct json_out o = json_out(out);
    const char *open = NULL, *at;
    enum err e;

    json_walk_init(&w);
    w.on_member = json_note_cut;
    w.ctx = &cut;
    e = json_walk_object(&w, text, &open, err);
    if (e)
        return e;
    if (cut.old.p)
        return json_swap(out, text, cut.old, document);
    out->over = false;
    at = cut.last_end ? cut.last_end : open + 1;
    add_span(out, text.p, at);
    o.comma = cut.last_end;
    json_key(&o, cut.key);
    buf_add_str(out, document);
    add_span(out, at, text.p + text.n);
    return json_keep_or_undo(out, n_before, over_before);
}

bool json_unquote(struct arena *a, struct str raw, struct str *out)
{
    bool is_escaped = false;
    struct json_walk w;
    const char *quote;
    char *copy;

    if (raw.n < 2 || raw.p[0] != '"')
        return false;
    json_walk_init(&w);
    w.start = raw.p;
    w.end = raw.p + raw.n;
    quote = json_walk_string(&w, raw.p + 1, &is_escaped);
    if (!quote || quote + 1 != w.end)
        return false;
    copy = arena_alloc(a, raw.n - 2);
    if (!copy)
        return false;
    *out = (struct str){copy, json_decode(copy, str_sub(raw, 1, raw.n - 1))};
    return true;
}

/* Elements, in a text already known to be valid: brackets and quotes need no
 * further checks. */

static const char *json_skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\' && end - p > 1)
            p++;
    return p < end ? p + 1 : end;
}

/* The end of the value that begins at p. */
static const char *json_skip_value(const char *p, const char *end)
{
    int depth = 0;

    while (p < end) {
        switch (*p) {
        case '"': p = json_skip_string(p, end); continue;
        case '[':
        case '{': depth++; break;
        case ']':
        case '}':
            if (depth == 0)
                return p;
            depth--;
            break;
        case ',':
            if (depth == 0)
                return p;
            break;
        default: break;
        }
        p++;
    }
    return end;
}

static bool json_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool json_next(struct str *rest, struct str *value)
{
    const char *p = rest->p, *end = rest->p + rest->n, *from;

    while (p < end && json_is_space(*p))
        p++;
    if (p == end || (*p != '[' && *p != ','))
        return false;
    for (p++; p < end && json_is_space(*p);)
        p++;
    from = p;
    p = json_skip_value(p, end);
    *rest = (struct str){p, (size_t)(end - p)};
    while (p > from && json_is_space(p[-1]))
        p--;
    *value = (struct str){from, (size_t)(p - from)};
    return value->n > 0;
}

bool json_number(struct str raw, double *out)
{
    if (!raw.n || (raw.p[0] != '-' && (raw.p[0] < '0' || raw.p[0] > '9')))
        return false;
    *out = json_to_real(raw);
    return true;
}
