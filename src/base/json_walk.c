/* One walk over a text, for everybody who reads JSON here.
 *
 * The grammar is written down once. json_parse walks with an arena and gets a
 * tree; check, scan and splice walk without one. The compiler makes two
 * functions of it (`build` is a constant in each), and since there is but one
 * grammar both accept the same documents.
 *
 *        +---- value <----+                 due == DUE_VALUE: a value begins
 *        |                |                 due == DUE_NEXT:  one has ended
 *        v                |
 *      follow --- , ------+
 *        |  ^--- ] } --+
 *        v             |
 *       end    (one level up)
 *
 * No recursion: open brackets are frames in an array of the deepest nesting
 * allowed. The place in the text is handed from function to function by value
 * and comes back moved, or NULL after an error, so that it stays in a
 * register; keeping it in the struct cost a third.
 *
 * Strings are looked through sixteen bytes at a time. One signed comparison
 * finds control characters and everything outside of ASCII, since bytes from
 * 0x80 on are negative. Reading never passes the end of the text: the last
 * bytes are looked at one by one. */
#include "base/json_internal.h"

#define INLINE JSON_INLINE
#define APART  __attribute__((noinline))

enum due { DUE_VALUE, DUE_NEXT, DUE_NOTHING };

enum { FIRST_SLAB = 8, LARGEST_SLAB = 64 };

static APART const char *fail(struct json_walk *w, const char *p,
                              const char *what)
{
    w->bad = p;
    w->what = what;
    w->err = ERR_SYNTAX;
    return NULL;
}

static APART const char *fail_memory(struct json_walk *w, const char *p,
                                     enum err e)
{
    fail(w, p, e == ERR_LIMIT ? "too large" : "out of memory");
    w->err = e;
    return NULL;
}

/* What is wrong at p, where something else had to stand. */
static APART const char *fail_at(struct json_walk *w, const char *p,
                                 const char *what)
{
    if (p == w->end)
        return fail(w, p, "the text ends too early");
    if (p == w->start && w->end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        return fail(w, p, "a byte order mark does not belong here");
    return fail(w, p, what);
}

/* Space and comments. */

static const char *line_comment(struct json_walk *w, const char *p)
{
    while (p < w->end && *p != '\n') {
        size_t n = utf8_one(p, w->end);

        if (n == 0)
            return fail(w, p, "this is not UTF-8");
        p += n;
    }
    return p;
}

static const char *block_comment(struct json_walk *w, const char *p)
{
    const char *open = p;

    for (p += 2; w->end - p >= 2; p++) {
        size_t n = utf8_one(p, w->end);

        if (n == 0)
            return fail(w, p, "this is not UTF-8");
        if (p[0] == '*' && p[1] == '/')
            return p + 2;
        p += n - 1;
    }
    return fail(w, open, "this comment is not closed");
}

static APART const char *space_slow(struct json_walk *w, const char *p)
{
    while (p && p < w->end) {
        if (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
            p++;
            continue;
        }
        if (!(w->flags & JSON_WITH_COMMENTS) || w->end - p < 2 || *p != '/')
            break;
        if (p[1] == '/')
            p = line_comment(w, p);
        else if (p[1] == '*')
            p = block_comment(w, p);
        else
            break;
    }
    return p;
}

static INLINE bool is_token(const struct json_walk *w, const char *p)
{
    return p < w->end && (unsigned char)*p > ' ' && *p != '/';
}

/* None, or the single space that many writers put behind colon and comma, are
 * dealt with here. */
static INLINE const char *space(struct json_walk *w, const char *p)
{
    if (is_token(w, p))
        return p;
    if (p < w->end && *p == ' ' && is_token(w, p + 1))
        return p + 1;
    return space_slow(w, p);
}

/* Nodes. */

/* Nodes come in slabs, which spares a call for each. Near the cap of the arena
 * a slab is what still fits. */
static APART bool add_slab(struct json_walk *w)
{
    size_t n = w->n_slab ? w->n_slab * 2 : FIRST_SLAB;
    size_t fit = (w->arena->cap - w->arena->used) / sizeof(*w->nodes);

    if (n > LARGEST_SLAB)
        n = LARGEST_SLAB;
    if (n > fit)
        n = fit ? fit : 1;
    w->nodes = arena_array(w->arena, n, sizeof(*w->nodes));
    w->n_nodes = w->nodes ? n : 0;
    w->n_slab = n;
    return w->nodes;
}

/* A node, hung into its parent; its value follows. */
static INLINE struct json *new_node(struct json_walk *w, const char *p)
{
    struct json_frame *f = &w->frames[w->depth];
    struct json *v;

    if (w->n_nodes == 0 && !add_slab(w)) {
        fail_memory(w, p, ERR_LIMIT);
        return NULL;
    }
    w->n_nodes--;
    v = w->nodes++;
    *f->tail = v;
    f->tail = &v->next;
    f->n++;
    return v;
}

/* Strings. */

/* The first byte that is a quote, a backslash, a control character or outside
 * of ASCII; the end when there is none. */
static INLINE const char *plain_end(const char *p, const char *end)
{
#ifdef __SSE2__
    for (; end - p >= 16; p += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)p);
        unsigned odd = json_odd_bits(x);

        if (odd)
            return p + __builtin_ctz(odd);
    }
#endif
    while (p < end && json_is_plain(*p))
        p++;
    return p;
}

/* The number of four hex digits, or -1. */
static int hex4(const char *p, const char *end)
{
    int v = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i], letter = (char)(c | 0x20);

        if (c >= '0' && c <= '9')
            v = v << 4 | (c - '0');
        else if (letter >= 'a' && letter <= 'f')
            v = v << 4 | (letter - 'a' + 10);
        else
            return -1;
    }
    return v;
}

/* Past the \uXXXX at p, or the two that make up one character. */
static const char *unicode_escape(struct json_walk *w, const char *p)
{
    int c = hex4(p + 2, w->end), low;

    if (c < 0)
        return fail(w, p, "\\u takes four hex digits");
    if (c < 0xd800 || c > 0xdfff)
        return p + 6;
    low = w->end - p >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8, w->end)
                                                          : -1;
    if (c > 0xdbff || low < 0xdc00 || low > 0xdfff)
        return fail(w, p, "half of a surrogate pair");
    return p + 12;
}

/* Past the characters at p that are not ASCII: where there is one, more are
 * likely to follow. */
static const char *wide_end(struct json_walk *w, const char *p)
{
    do {
        size_t n = utf8_one(p, w->end);

        if (n == 0)
            return fail(w, p, "this is not UTF-8");
        p += n;
    } while (p < w->end && (signed char)*p < 0);
    return p;
}

/* Past whatever stopped plain_end, when it may stand in a string. */
static APART const char *odd_byte(struct json_walk *w, const char *p,
                                  bool *is_escaped)
{
    if (p == w->end)
        return fail(w, p, "the text ends inside a string");
    if ((unsigned char)*p < 0x20)
        return fail(w, p, "a control character must be escaped");
    if (*p != '\\')
        return wide_end(w, p);
    *is_escaped = true;
    if (w->end - p < 2)
        return fail(w, w->end, "the text ends inside a string");
    switch (p[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't': return p + 2;
    case 'u': return unicode_escape(w, p);
    default: return fail(w, p, "there is no such escape");
    }
}

static INLINE const char *string_end(struct json_walk *w, const char *p,
                                     bool *is_escaped)
{
    for (;;) {
        p = plain_end(p, w->end);
        if (p < w->end && *p == '"')
            return p;
        p = odd_byte(w, p, is_escaped);
        if (!p)
            return NULL;
    }
}

const char *json_walk_string(struct json_walk *w, const char *p,
                             bool *is_escaped)
{
    return string_end(w, p, is_escaped);
}

/* What a raw string stands for: itself, or a copy in the arena. */
static INLINE bool decode(struct json_walk *w, struct json_raw raw,
                          struct str *out)
{
    char *copy;

    *out = raw.s;
    if (!raw.is_escaped)
        return true;
    copy = arena_alloc(w->arena, raw.s.n);
    if (!copy)
        return fail_memory(w, raw.s.p, ERR_LIMIT) != NULL;
    *out = (struct str){copy, json_decode(copy, raw.s)};
    return true;
}

static INLINE const char *string_value(struct json_walk *w, const char *p,
                                       struct json *v, bool build)
{
    struct json_raw raw = {{p + 1, 0}, false};

    p = string_end(w, p + 1, &raw.is_escaped);
    if (!p || !build)
        return p ? p + 1 : NULL;
    raw.s.n = (size_t)(p - raw.s.p);
    v->type = JSON_STR;
    return decode(w, raw, &v->s) ? p + 1 : NULL;
}

/* Numbers. */

static INLINE bool is_digit(const struct json_walk *w, const char *p)
{
    return p < w->end && *p >= '0' && *p <= '9';
}

static INLINE const char *digits(const struct json_walk *w, const char *p)
{
    while (is_digit(w, p))
        p++;
    return p;
}

/* The number from `p`, whose whole part ends at `q`, as a real. */
static APART const char *real_value(struct json_walk *w, const char *p,
                                    const char *q, struct json *v)
{
    double d;

    if (*q == '.') {
        if (!is_digit(w, ++q))
            return fail_at(w, q, "a digit must follow the point");
        q = digits(w, q);
    }
    if (q < w->end && (*q == 'e' || *q == 'E')) {
        q++;
        if (q < w->end && (*q == '+' || *q == '-'))
            q++;
        if (!is_digit(w, q))
            return fail_at(w, q, "the exponent has no digits");
        q = digits(w, q);
    }
    d = json_to_real((struct str){p, (size_t)(q - p)});
    if (__builtin_isinf(d))
        return fail(w, p, "this number does not fit");
    if (v) {
        v->type = JSON_REAL;
        v->d = d;
    }
    return q;
}

/* Nineteen digits always fit 64 bits without sign; the sign is put on last. */
static INLINE const char *number_value(struct json_walk *w, const char *p,
                                       struct json *v, bool build)
{
    bool minus = *p == '-';
    const char *first = p + minus, *q = first;
    uint64_t n = 0;

    if (!is_digit(w, q))
        return fail_at(w, q, "a digit must follow the minus");
    for (; is_digit(w, q); q++)
        n = n * 10 + (uint64_t)(*q - '0');
    if (*first == '0' && q - first > 1)
        return fail(w, first, "a number must not begin with 0");
    if (q < w->end && (*q == '.' || *q == 'e' || *q == 'E'))
        return real_value(w, p, q, build ? v : NULL);
    if (q - first > 18 && (q - first > 19 || n > (uint64_t)INT64_MAX + minus))
        return fail(w, p, "this number does not fit");
    if (build) {
        v->type = JSON_INT;
        v->i = (int64_t)(minus ? 0 - n : n);
    }
    return q;
}

/* Words. */

static INLINE bool is_word(const struct json_walk *w, const char *p,
                           const char *word, size_t n)
{
    return (size_t)(w->end - p) >= n && memcmp(p, word, n) == 0;
}

static INLINE const char *word_value(struct json_walk *w, const char *p,
                                     struct json *v, bool build)
{
    enum json_type type = JSON_BOOL;
    bool b = false;
    size_t n = 4;

    if (is_word(w, p, "true", 4)) {
        b = true;
    } else if (is_word(w, p, "null", 4)) {
        type = JSON_NULL;
    } else if (is_word(w, p, "false", 5)) {
        n = 5;
    } else {
        return fail(w, p, "this is not a value");
    }
    if (build) {
        v->type = type;
        v->b = b;
    }
    return p + n;
}

/* Members. */

static INLINE uint32_t hash(const struct json_walk *w, struct json_raw raw)
{
    const char *p = raw.s.p;
    uint64_t first, last;

    if (raw.is_escaped || w->end - p < 8)
        return json_raw_hash(raw);
    memcpy(&first, p, 8);
    if (raw.s.n < 8)
        return json_hash(first & ~(~UINT64_C(0) << 8 * raw.s.n), 0, raw.s.n);
    memcpy(&last, p + raw.s.n - 8, 8);
    return json_hash(first, last, raw.s.n);
}

/* Remember the key; false when it was there already or memory is gone. It is
 * written where it stays: a copy by way of the stack stalled the processor. */
static INLINE bool new_key(struct json_walk *w, struct json_raw raw)
{
    struct json_frame *f = &w->frames[w->depth];
    struct json_keys *k = &w->keys;
    struct json_key *key;
    uint64_t bit;

    if (k->n == k->cap && !json_keys_grow(k))
        return fail_memory(w, raw.s.p, ERR_NOMEM) != NULL;
    key = &k->v[k->n];
    key->hash = hash(w, raw);
    key->at = (uint32_t)(raw.s.p - w->start);
    key->n_twice = (uint32_t)raw.s.n * 2 + raw.is_escaped;
    bit = UINT64_C(1) << (key->hash >> 26);
    if ((f->seen & bit) && k->n - f->first_key < JSON_KEYS_LINEAR &&
        json_keys_has(k, f->first_key, key))
        return fail(w, raw.s.p - 1, "this key is here twice") != NULL;
    f->seen |= bit;
    k->n++;
    return true;
}

static INLINE bool keyed_node(struct json_walk *w, struct json_raw raw)
{
    struct json *v = new_node(w, raw.s.p);

    w->member_node = v;
    return v && decode(w, raw, &v->key);
}

/* From the quote of a key to the value. */
static INLINE const char *member(struct json_walk *w, const char *p,
                                 enum due *due, bool build)
{
    struct json_raw raw = {{p + 1, 0}, false};

    if (p == w->end || *p != '"')
        return fail_at(w, p, "a key in quotes must stand here");
    p = string_end(w, p + 1, &raw.is_escaped);
    if (!p)
        return NULL;
    raw.s.n = (size_t)(p - raw.s.p);
    if (!new_key(w, raw) || (build && !keyed_node(w, raw)))
        return NULL;
    p = space(w, p + 1);
    if (!p || p == w->end || *p != ':')
        return p ? fail_at(w, p, "a colon must stand here") : NULL;
    p = space(w, p + 1);
    if (!build && w->depth == 1) {
        w->member = raw;
        w->member_at = p;
    }
    *due = DUE_VALUE;
    return p;
}

/* Brackets. */

static INLINE const char *close_bracket(struct json_walk *w, const char *p,
                                        enum due *due, bool build)
{
    struct json_frame *f = &w->frames[w->depth--];

    if (build)
        f->node->kids.n = f->n;
    if (f->close == '}') {
        if (w->keys.n - f->first_key > JSON_KEYS_LINEAR) {
            const char *twice = json_keys_first_double(&w->keys, f->first_key);

            if (twice)
                return fail(w, twice - 1, "this key is here twice");
        }
        w->keys.n = f->first_key;
    }
    *due = DUE_NEXT;
    return p + 1;
}

static INLINE const char *open_bracket(struct json_walk *w, const char *p,
                                       struct json *v, enum due *due,
                                       bool build)
{
    struct json_frame *f = &w->frames[w->depth + 1];
    bool is_obj = *p == '{';

    if (w->depth == JSON_DEPTH_MAX)
        return fail(w, p, "nested too deeply");
    w->depth++;
    f->close = is_obj ? '}' : ']';
    f->first_key = w->keys.n;
    f->seen = 0;
    if (build) {
        v->type = is_obj ? JSON_OBJ : JSON_ARR;
        f->node = v;
        f->tail = &v->kids.first;
        f->n = 0;
    }
    p = space(w, p + 1);
    if (!p)
        return NULL;
    if (p < w->end && *p == f->close)
        return close_bracket(w, p, due, build);
    if (is_obj)
        return member(w, p, due, build);
    *due = DUE_VALUE;
    return p;
}

static INLINE const char *value(struct json_walk *w, const char *p,
                                enum due *due, bool build)
{
    struct json *v = NULL;

    if (p == w->end)
        return fail_at(w, p, NULL);
    if (build) {
        v = w->frames[w->depth].close == '}' ? w->member_node : new_node(w, p);
        if (!v)
            return NULL;
        v->at = (uint32_t)(p - w->start);
    }
    *due = DUE_NEXT;
    switch (*p) {
    case '"': return string_value(w, p, v, build);
    case '{':
    case '[': return open_bracket(w, p, v, due, build);
    case 't':
    case 'f':
    case 'n': return word_value(w, p, v, build);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9': return number_value(w, p, v, build);
    default: return fail_at(w, p, "this is not a value");
    }
}

/* A value has ended at p. */
static INLINE const char *follow(struct json_walk *w, const char *p,
                                 enum due *due, bool build)
{
    struct json_frame *f = &w->frames[w->depth];

    if (!build && w->depth == 1 && w->on_member && f->close == '}')
        w->on_member(w, w->member,
                     (struct str){w->member_at, (size_t)(p - w->member_at)});
    p = space(w, p);
    if (!p)
        return NULL;
    if (w->depth == 0) {
        *due = DUE_NOTHING;
        return p == w->end ? p : fail(w, p, "something follows the document");
    }
    if (p < w->end && *p == f->close)
        return close_bracket(w, p, due, build);
    if (p == w->end || *p != ',')
        return fail_at(w, p,
                       f->close == '}' ? "a comma or } must stand here"
                                       : "a comma or ] must stand here");
    p = space(w, p + 1);
    if (p && (w->flags & JSON_WITH_COMMENTS) && p < w->end && *p == f->close)
        return close_bracket(w, p, due, build);
    if (p && f->close == '}')
        return member(w, p, due, build);
    *due = DUE_VALUE;
    return p;
}

static INLINE bool walk(struct json_walk *w, bool build)
{
    enum due due = DUE_VALUE;
    const char *p = space(w, w->start);

    while (p && due != DUE_NOTHING)
        p = due == DUE_VALUE ? value(w, p, &due, build)
                             : follow(w, p, &due, build);
    return p;
}

static APART bool walk_tree(struct json_walk *w)
{
    return walk(w, true);
}

static APART bool walk_only(struct json_walk *w)
{
    return walk(w, false);
}

/* Field by field: the frames and the small keys are most of the struct and
 * need no zeroes. */
void json_walk_init(struct json_walk *w)
{
    w->what = w->bad = NULL;
    w->err = OK;
    w->on_member = NULL;
    w->ctx = NULL;
    w->root = w->nodes = NULL;
    w->n_nodes = w->n_slab = 0;
    w->keys.v = w->keys.small;
    w->keys.n = 0;
    w->keys.cap = JSON_KEYS_INLINE;
    w->depth = 0;
    w->frames[0] = (struct json_frame){.tail = &w->root};
}

bool json_walk(struct json_walk *w, struct str text, unsigned flags,
               struct arena *arena)
{
    bool ok;

    w->start = w->keys.text = text.n ? text.p : "";
    w->end = w->start + text.n;
    w->flags = flags;
    w->arena = arena;
    if (text.n > JSON_TEXT_MAX)
        return fail_memory(w, w->start, ERR_LIMIT) != NULL;
    ok = arena ? walk_tree(w) : walk_only(w);
    json_keys_fini(&w->keys);
    return ok;
}

void json_walk_error(const struct json_walk *w, struct json_error *err)
{
    struct str text = {w->start, (size_t)(w->end - w->start)};

    if (!err)
        return;
    err->what = w->what;
    err->at = (size_t)(w->bad - w->start);
    json_where(text, err->at, &err->line, &err->col);
}
