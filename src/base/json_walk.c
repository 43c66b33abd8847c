/* The one walk over a text that all JSON reading here uses.
 *
 * json_parse walks with an arena and gets a tree; check, scan and splice walk
 * without one. The compiler makes two functions of it (`build` is a constant in
 * each), and since the grammar is written only once, both accept the same
 * documents.
 *
 *        +---- value <----+                 due == DUE_VALUE: a value begins
 *        |                |                 due == DUE_NEXT:  one has ended
 *        v                |
 *       next ---- , ------+
 *        |  ^--- ] } --+
 *        v             |
 *       end    (one level up)
 *
 * There is no recursion: open brackets are frames in an array as long as the
 * deepest nesting allowed. The position in the text is passed from function to
 * function by value and returned, NULL after an error, so that it stays in a
 * register; keeping it in the struct was a third slower.
 *
 * Strings are scanned sixteen bytes at a time. One signed comparison finds
 * control characters and everything outside ASCII, since bytes from 0x80 on are
 * negative. Reads never pass the end of the text: the last bytes are checked
 * one by one. */
#include "base/json_internal.h"

#define INLINE JSON_INLINE
#define APART  __attribute__((noinline))

enum due { DUE_VALUE, DUE_NEXT, DUE_NOTHING };

enum { FIRST_SLAB = 8, LARGEST_SLAB = 64 };

static APART const char *json_fail(struct json_walk *w, const char *p,
                                   const char *what)
{
    w->bad = p;
    w->what = what;
    w->err = ERR_SYNTAX;
    return NULL;
}

static APART const char *json_fail_memory(struct json_walk *w, const char *p,
                                          enum err e)
{
    json_fail(w, p, e == ERR_LIMIT ? "too large" : "out of memory");
    w->err = e;
    return NULL;
}

/* The arena gave no `size` bytes. */
static APART const char *json_fail_arena(struct json_walk *w, const char *p,
                                         size_t size)
{
    return json_fail_memory(w, p,
                            arena_fits(w->arena, size) ? ERR_NOMEM : ERR_LIMIT);
}

/* Report that something else was expected at p. */
static APART const char *json_fail_expected(struct json_walk *w, const char *p,
                                            const char *what)
{
    if (p == w->end)
        return json_fail(w, p, "the text ends too early");
    if (p == w->start && w->end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        return json_fail(w, p, "a byte order mark is not allowed");
    return json_fail(w, p, what);
}

/* Space and comments. */

static const char *skip_line_comment(struct json_walk *w, const char *p)
{
    while (p < w->end && *p != '\n') {
        size_t n = utf8_one(p, w->end);

        if (n == 0)
            return json_fail(w, p, "this is not UTF-8");
        p += n;
    }
    return p;
}

static const char *skip_block_comment(struct json_walk *w, const char *p)
{
    const char *open = p;

    for (p += 2; w->end - p >= 2; p++) {
        size_t n = utf8_one(p, w->end);

        if (n == 0)
            return json_fail(w, p, "this is not UTF-8");
        if (p[0] == '*' && p[1] == '/')
            return p + 2;
        p += n - 1;
    }
    return json_fail(w, open, "this comment is not closed");
}

static APART const char *json_skip_space_slow(struct json_walk *w,
                                              const char *p)
{
    while (p && p < w->end) {
        if (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
            p++;
            continue;
        }
        if (!(w->flags & JSON_WITH_COMMENTS) || w->end - p < 2 || *p != '/')
            break;
        if (p[1] == '/')
            p = skip_line_comment(w, p);
        else if (p[1] == '*')
            p = skip_block_comment(w, p);
        else
            break;
    }
    return p;
}

static INLINE bool token_at(const struct json_walk *w, const char *p)
{
    return p < w->end && (unsigned char)*p > ' ' && *p != '/';
}

/* The fast path: no space, or the single one that many writers put after colon
 * and comma. */
static INLINE const char *json_skip_space(struct json_walk *w, const char *p)
{
    if (token_at(w, p))
        return p;
    if (p < w->end && *p == ' ' && token_at(w, p + 1))
        return p + 1;
    return json_skip_space_slow(w, p);
}

/* Nodes. */

/* Nodes come in slabs, which saves calls. Near the cap of the arena a slab is
 * as large as still fits. */
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

/* Allocate a node and link it into its parent; its value follows. */
static INLINE struct json *new_node(struct json_walk *w, const char *p)
{
    struct json_frame *f = &w->frames[w->depth];
    struct json *v;

    if (w->n_nodes == 0 && !add_slab(w)) {
        json_fail_arena(w, p, w->n_slab * sizeof(*w->nodes));
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
 * ASCII, or the end. */
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

/* The value of four hex digits, or -1. */
static int checked_hex4(const char *p, const char *end)
{
    int v = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = str_hex_value(p[i]);

        if (digit < 0)
            return -1;
        v = v << 4 | digit;
    }
    return v;
}

/* Skip the \uXXXX at p, or the two that form one character. */
static const char *unicode_escape(struct json_walk *w, const char *p)
{
    int c = checked_hex4(p + 2, w->end), low;

    if (c < 0)
        return json_fail(w, p, "\\u takes four hex digits");
    if (c < 0xd800 || c > 0xdfff)
        return p + 6;
    low = w->end - p >= 12 && p[6] == '\\' && p[7] == 'u'
              ? checked_hex4(p + 8, w->end)
              : -1;
    if (c > 0xdbff || low < 0xdc00 || low > 0xdfff)
        return json_fail(w, p, "half of a surrogate pair");
    return p + 12;
}

/* Skip the characters at p that are not ASCII; where there is one, more are
 * likely to follow. */
static const char *wide_end(struct json_walk *w, const char *p)
{
    do {
        size_t n = utf8_one(p, w->end);

        if (n == 0)
            return json_fail(w, p, "this is not UTF-8");
        p += n;
    } while (p < w->end && (signed char)*p < 0);
    return p;
}

/* Skip the byte that stopped plain_end, if it is allowed in a string. */
static APART const char *odd_byte(struct json_walk *w, const char *p,
                                  bool *is_escaped)
{
    if (p == w->end)
        return json_fail(w, p, "the text ends inside a string");
    if ((unsigned char)*p < 0x20)
        return json_fail(w, p, "a control character must be escaped");
    if (*p != '\\')
        return wide_end(w, p);
    *is_escaped = true;
    if (w->end - p < 2)
        return json_fail(w, w->end, "the text ends inside a string");
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
    default: return json_fail(w, p, "this escape is unknown");
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

/* Decode a raw string: into the arena, or not at all if it has no escapes. */
static INLINE bool json_decode_node(struct json_walk *w, struct json_raw raw,
                                    struct str *out)
{
    char *copy;

    *out = raw.s;
    if (!raw.is_escaped)
        return true;
    copy = arena_alloc(w->arena, raw.s.n);
    if (!copy)
        return json_fail_arena(w, raw.s.p, raw.s.n) != NULL;
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
    return json_decode_node(w, raw, &v->s) ? p + 1 : NULL;
}

/* Numbers. */

static INLINE bool digit_at(const struct json_walk *w, const char *p)
{
    return p < w->end && str_is_digit(*p);
}

static INLINE const char *skip_digits(const struct json_walk *w, const char *p)
{
    while (digit_at(w, p))
        p++;
    return p;
}

/* Read the number from `p`, whose integer part ends at `q`, as a real. */
static APART const char *real_value(struct json_walk *w, const char *p,
                                    const char *q, struct json *v)
{
    double d;

    if (*q == '.') {
        if (!digit_at(w, ++q))
            return json_fail_expected(w, q, "a digit must follow the point");
        q = skip_digits(w, q);
    }
    if (q < w->end && (*q == 'e' || *q == 'E')) {
        q++;
        if (q < w->end && (*q == '+' || *q == '-'))
            q++;
        if (!digit_at(w, q))
            return json_fail_expected(w, q, "the exponent has no digits");
        q = skip_digits(w, q);
    }
    d = json_to_real((struct str){p, (size_t)(q - p)});
    if (__builtin_isinf(d))
        return json_fail(w, p, "this number does not fit");
    if (v) {
        v->type = JSON_REAL;
        v->d = d;
    }
    return q;
}

/* Nineteen digits always fit 64 bits unsigned; the sign is applied last. */
static INLINE const char *number_value(struct json_walk *w, const char *p,
                                       struct json *v, bool build)
{
    bool minus = *p == '-';
    const char *first = p + minus, *q = first;
    uint64_t n = 0;

    if (!digit_at(w, q))
        return json_fail_expected(w, q, "a digit must follow the minus");
    for (; digit_at(w, q); q++)
        n = n * 10 + (uint64_t)(*q - '0');
    if (*first == '0' && q - first > 1)
        return json_fail(w, first, "a number must not begin with 0");
    if (q < w->end && (*q == '.' || *q == 'e' || *q == 'E'))
        return real_value(w, p, q, build ? v : NULL);
    if (q - first > 18 && (q - first > 19 || n > (uint64_t)INT64_MAX + minus))
        return json_fail(w, p, "this number does not fit");
    if (build) {
        v->type = JSON_INT;
        v->i = (int64_t)(minus ? 0 - n : n);
    }
    return q;
}

/* Words. */

static INLINE bool json_word_at(const struct json_walk *w, const char *p,
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

    if (json_word_at(w, p, "true", 4)) {
        b = true;
    } else if (json_word_at(w, p, "null", 4)) {
        type = JSON_NULL;
    } else if (json_word_at(w, p, "false", 5)) {
        n = 5;
    } else {
        return json_fail(w, p, "this is not a value");
    }
    if (build) {
        v->type = type;
        v->b = b;
    }
    return p + n;
}

/* Members. */

static INLINE uint32_t json_hash_key(const struct json_walk *w,
                                     struct json_raw raw)
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

/* Remember the key; false if it is a duplicate or memory ran out. It is written
 * in place: a copy on the stack stalled the processor. */
static INLINE bool json_add_key(struct json_walk *w, struct json_raw raw)
{
    struct json_frame *f = &w->frames[w->depth];
    struct json_keys *k = &w->keys;
    struct json_key *key;
    uint64_t bit;

    if (k->n == k->cap && !json_keys_grow(k))
        return json_fail_memory(w, raw.s.p, ERR_NOMEM) != NULL;
    key = &k->v[k->n];
    key->hash = json_hash_key(w, raw);
    key->at = (uint32_t)(raw.s.p - w->start);
    key->n_twice = (uint32_t)raw.s.n * 2 + raw.is_escaped;
    bit = UINT64_C(1) << (key->hash >> 26);
    if ((f->seen & bit) && k->n - f->first_key < JSON_KEYS_LINEAR &&
        json_keys_has(k, f->first_key, key))
        return json_fail(w, raw.s.p - 1, "this key is a duplicate") != NULL;
    f->seen |= bit;
    k->n++;
    return true;
}

/* From the opening quote of a key to its value. */
static INLINE const char *json_walk_member(struct json_walk *w, const char *p,
                                           enum due *due, bool build)
{
    struct json_raw raw = {{p + 1, 0}, false};

    if (p == w->end || *p != '"')
        return json_fail_expected(w, p, "a key in quotes is expected here");
    p = string_end(w, p + 1, &raw.is_escaped);
    if (!p)
        return NULL;
    raw.s.n = (size_t)(p - raw.s.p);
    if (!json_add_key(w, raw))
        return NULL;
    if (build) {
        w->member_node = new_node(w, raw.s.p);
        if (!w->member_node || !json_decode_node(w, raw, &w->member_node->key))
            return NULL;
    }
    p = json_skip_space(w, p + 1);
    if (!p || p == w->end || *p != ':')
        return p ? json_fail_expected(w, p, "a colon is expected here") : NULL;
    p = json_skip_space(w, p + 1);
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
                return json_fail(w, twice - 1, "this key is a duplicate");
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
        return json_fail(w, p, "nested too deeply");
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
    p = json_skip_space(w, p + 1);
    if (!p)
        return NULL;
    if (p < w->end && *p == f->close)
        return close_bracket(w, p, due, build);
    if (is_obj)
        return json_walk_member(w, p, due, build);
    *due = DUE_VALUE;
    return p;
}

static INLINE const char *json_walk_value(struct json_walk *w, const char *p,
                                          enum due *due, bool build)
{
    struct json *v = NULL;

    if (p == w->end)
        return json_fail_expected(w, p, NULL);
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
    default: return json_fail_expected(w, p, "this is not a value");
    }
}

/* A value ended at p. */
static INLINE const char *json_walk_next(struct json_walk *w, const char *p,
                                         enum due *due, bool build)
{
    struct json_frame *f = &w->frames[w->depth];

    if (!build && w->depth == 1 && w->on_member && f->close == '}')
        w->on_member(w, w->member,
                     (struct str){w->member_at, (size_t)(p - w->member_at)});
    p = json_skip_space(w, p);
    if (!p)
        return NULL;
    if (w->depth == 0) {
        *due = DUE_NOTHING;
        return p == w->end ? p
                           : json_fail(w, p, "something follows the document");
    }
    if (p < w->end && *p == f->close)
        return close_bracket(w, p, due, build);
    if (p == w->end || *p != ',')
        return json_fail_expected(w, p,
                                  f->close == '}'
                                      ? "a comma or } is expected here"
                                      : "a comma or ] is expected here");
    p = json_skip_space(w, p + 1);
    if (p && (w->flags & JSON_WITH_COMMENTS) && p < w->end && *p == f->close)
        return close_bracket(w, p, due, build);
    if (p && f->close == '}')
        return json_walk_member(w, p, due, build);
    *due = DUE_VALUE;
    return p;
}

static INLINE bool json_walk_loop(struct json_walk *w, bool build)
{
    enum due due = DUE_VALUE;
    const char *p = json_skip_space(w, w->start);

    while (p && due != DUE_NOTHING)
        p = due == DUE_VALUE ? json_walk_value(w, p, &due, build)
                             : json_walk_next(w, p, &due, build);
    return p;
}

static APART bool walk_tree(struct json_walk *w)
{
    return json_walk_loop(w, true);
}

static APART bool walk_only(struct json_walk *w)
{
    return json_walk_loop(w, false);
}

/* Assigns field by field: the frames and the small keys make up most of the
 * struct and need no zeroing. */
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
        return json_fail_memory(w, w->start, ERR_LIMIT) != NULL;
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
    err->err = w->err;
    err->at = (size_t)(w->bad - w->start);
    json_where(text, err->at, &err->line, &err->col);
}
