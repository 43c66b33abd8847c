/* Evaluating a condition: one function for each operator. Each evaluates its
 * own arguments, so those that are not needed are skipped. The recursion is at
 * most as deep as the condition. */
#include "gate/rules/logic_internal.h"

#include <math.h>

#include "base/utf8.h"

static struct run run_begin(const struct logic_data *d, struct arena *scratch)
{
    return (struct run){
        .data = d,
        .scratch = scratch,
        .began_at = scratch->used,
        .left = LOGIC_STEPS_MAX,
        .most = LOGIC_BYTES_MAX,
    };
}

static const struct scope data_scope = {.kind = SCOPE_DATA};

/* Subtract the use of the run from the budget; r->left may be -1. */
static void room_take(struct logic_room *room, const struct run *r, long steps)
{
    size_t bytes = r->scratch->used - r->began_at;

    steps -= r->left > 0 ? r->left : 0;
    room->steps = steps < room->steps ? room->steps - steps : 0;
    room->bytes = bytes < room->bytes ? room->bytes - bytes : 0;
}

enum logic_answer logic_holds_within(const struct logic *l,
                                     const struct logic_data *d,
                                     struct arena *scratch,
                                     struct logic_room *room, const char **why)
{
    struct run r = run_begin(d, scratch);
    bool is_done;
    struct val v;
    long steps;

    if (room && room->steps < r.left)
        r.left = room->steps;
    if (room && room->bytes < r.most)
        r.most = room->bytes;
    steps = r.left;
    is_done = logic_eval(&r, l, &data_scope, &v);
    if (room)
        room_take(room, &r, steps);
    if (is_done)
        return val_truthy(&v) ? LOGIC_YES : LOGIC_NO;
    if (why)
        *why = r.why;
    return LOGIC_FAILED;
}

const struct json *logic_value(const struct logic *l,
                               const struct logic_data *d,
                               struct arena *scratch, const char **why)
{
    struct run r = run_begin(d, scratch);
    struct json *node = NULL;
    struct val v;

    if (logic_eval(&r, l, &data_scope, &v))
        node = logic_alloc(&r, sizeof(*node));
    if (!node) {
        if (why)
            *why = r.why;
        return NULL;
    }
    if (v.type == JSON_REAL && v.d == 0)
        v = (struct val){.type = JSON_INT};
    val_put(&v, node);
    return node;
}

bool logic_constant(struct run *r, const struct logic *l, const struct scope *s,
                    struct val *out)
{
    (void)r;
    (void)s;
    *out = l->value;
    return true;
}

bool logic_log(struct run *r, const struct logic *l, const struct scope *s,
               struct val *out)
{
    return logic_eval(r, &l->args[0], s, out);
}

/* Truth. */

/* Pairs of a condition and its result, and at last the default. */
bool logic_if(struct run *r, const struct logic *l, const struct scope *s,
              struct val *out)
{
    uint32_t i = 0;

    for (; i + 1 < l->n; i += 2) {
        struct val v;

        if (!logic_eval(r, &l->args[i], s, &v))
            return false;
        if (val_truthy(&v))
            return logic_eval(r, &l->args[i + 1], s, out);
    }
    if (i < l->n)
        return logic_eval(r, &l->args[i], s, out);
    *out = val_null();
    return true;
}

/* The first argument whose truth is `wanted`, or the last. */
static bool first_with_truth(struct run *r, const struct logic *l,
                             const struct scope *s, bool wanted,
                             struct val *out)
{
    for (uint32_t i = 0; i < l->n; i++) {
        if (!logic_eval(r, &l->args[i], s, out))
            return false;
        if (val_truthy(out) == wanted)
            break;
    }
    return true;
}

bool logic_and(struct run *r, const struct logic *l, const struct scope *s,
               struct val *out)
{
    return first_with_truth(r, l, s, false, out);
}

bool logic_or(struct run *r, const struct logic *l, const struct scope *s,
              struct val *out)
{
    return first_with_truth(r, l, s, true, out);
}

bool logic_truth(struct run *r, const struct logic *l, const struct scope *s,
                 struct val *out)
{
    struct val v;

    if (!logic_eval(r, &l->args[0], s, &v))
        return false;
    *out = val_bool(val_truthy(&v));
    return true;
}

bool logic_not(struct run *r, const struct logic *l, const struct scope *s,
               struct val *out)
{
    if (!logic_truth(r, l, s, out))
        return false;
    out->b = !out->b;
    return true;
}

/* Comparison. */

static bool eval_both(struct run *r, const struct logic *l,
                      const struct scope *s, struct val *a, struct val *b)
{
    return logic_eval(r, &l->args[0], s, a) && logic_eval(r, &l->args[1], s, b);
}

bool logic_equal(struct run *r, const struct logic *l, const struct scope *s,
                 struct val *out)
{
    struct val a, b;
    bool is;

    if (!eval_both(r, l, s, &a, &b) || !val_equal(r, &a, &b, &is))
        return false;
    *out = val_bool(is);
    return true;
}

bool logic_unequal(struct run *r, const struct logic *l, const struct scope *s,
                   struct val *out)
{
    if (!logic_equal(r, l, s, out))
        return false;
    out->b = !out->b;
    return true;
}

bool logic_same(struct run *r, const struct logic *l, const struct scope *s,
                struct val *out)
{
    struct val a, b;

    if (!eval_both(r, l, s, &a, &b))
        return false;
    *out = val_bool(val_same(&a, &b));
    return true;
}

bool logic_unsame(struct run *r, const struct logic *l, const struct scope *s,
                  struct val *out)
{
    if (!logic_same(r, l, s, out))
        return false;
    out->b = !out->b;
    return true;
}

/* The orders that hold, a bit for each. */
enum { LESS = 1 << 0, EQUAL = 1 << 1, MORE = 1 << 2 };

static bool order_is(struct run *r, const struct val *a, const struct val *b,
                     unsigned wanted, bool *out)
{
    int order;

    if (!val_compare(r, a, b, &order))
        return false;
    *out = order <= 1 && (wanted >> (order + 1) & 1);
    return true;
}

/* With three arguments the middle one must lie between the others. */
static bool compare_in_order(struct run *r, const struct logic *l,
                             const struct scope *s, unsigned wanted,
                             struct val *out)
{
    struct val a, b, c;
    bool is;

    if (!eval_both(r, l, s, &a, &b) || !order_is(r, &a, &b, wanted, &is))
        return false;
    if (l->n > 2) {
        bool is_second;

        if (!logic_eval(r, &l->args[2], s, &c) ||
            !order_is(r, &b, &c, wanted, &is_second))
            return false;
        is = is && is_second;
    }
    *out = val_bool(is);
    return true;
}

bool logic_less(struct run *r, const struct logic *l, const struct scope *s,
                struct val *out)
{
    return compare_in_order(r, l, s, LESS, out);
}

bool logic_less_equal(struct run *r, const struct logic *l,
                      const struct scope *s, struct val *out)
{
    return compare_in_order(r, l, s, LESS | EQUAL, out);
}

bool logic_more(struct run *r, const struct logic *l, const struct scope *s,
                struct val *out)
{
    return compare_in_order(r, l, s, MORE, out);
}

bool logic_more_equal(struct run *r, const struct logic *l,
                      const struct scope *s, struct val *out)
{
    return compare_in_order(r, l, s, MORE | EQUAL, out);
}

/* Arithmetic. */

/* Argument i as a number. */
static bool eval_number(struct run *r, const struct logic *l,
                        const struct scope *s, uint32_t i, double *out)
{
    struct val v;

    return logic_eval(r, &l->args[i], s, &v) && val_to_number(r, &v, out);
}

/* Argument i as parseFloat reads it: "12 apples" is 12, null is not a
 * number. */
static bool eval_parsed(struct run *r, const struct logic *l,
                        const struct scope *s, uint32_t i, double *out)
{
    struct val v;

    return logic_eval(r, &l->args[i], s, &v) && val_parse_float(r, &v, out);
}

static bool find_extreme(struct run *r, const struct logic *l,
                         const struct scope *s, bool is_max, struct val *out)
{
    double best = is_max ? -INFINITY : INFINITY, v;

    for (uint32_t i = 0; i < l->n; i++) {
        if (!eval_number(r, l, s, i, &v))
            return false;
        if (!isnan(best) && !(is_max ? v <= best : v >= best))
            best = v;
    }
    *out = val_number(best);
    return true;
}

bool logic_max(struct run *r, const struct logic *l, const struct scope *s,
               struct val *out)
{
    return find_extreme(r, l, s, true, out);
}

bool logic_min(struct run *r, const struct logic *l, const struct scope *s,
               struct val *out)
{
    return find_extreme(r, l, s, false, out);
}

bool logic_add(struct run *r, const struct logic *l, const struct scope *s,
               struct val *out)
{
    double sum = 0, v;

    for (uint32_t i = 0; i < l->n; i++) {
        if (!eval_parsed(r, l, s, i, &v))
            return false;
        sum += v;
    }
    *out = val_number(sum);
    return true;
}

/* A single argument is returned unchanged, as in the reference. */
bool logic_multiply(struct run *r, const struct logic *l, const struct scope *s,
                    struct val *out)
{
    double product, v;

    if (l->n == 1)
        return logic_eval(r, &l->args[0], s, out);
    if (!eval_parsed(r, l, s, 0, &product))
        return false;
    for (uint32_t i = 1; i < l->n; i++) {
        if (!eval_parsed(r, l, s, i, &v))
            return false;
        product = (product == 0 ? 0 : product) * v;
    }
    *out = val_number(product);
    return true;
}

bool logic_subtract(struct run *r, const struct logic *l, const struct scope *s,
                    struct val *out)
{
    double a, b = 0;

    if (!eval_number(r, l, s, 0, &a) ||
        (l->n > 1 && !eval_number(r, l, s, 1, &b)))
        return false;
    *out = val_number(l->n > 1 ? a - b : -a);
    return true;
}

bool logic_divide(struct run *r, const struct logic *l, const struct scope *s,
                  struct val *out)
{
    double a, b;

    if (!eval_number(r, l, s, 0, &a) || !eval_number(r, l, s, 1, &b))
        return false;
    *out = val_number(a / b);
    return true;
}

/* The result has the sign of the first, as in C. */
bool logic_modulo(struct run *r, const struct logic *l, const struct scope *s,
                  struct val *out)
{
    double a, b;

    if (!eval_number(r, l, s, 0, &a) || !eval_number(r, l, s, 1, &b))
        return false;
    *out = val_number(fmod(a, b));
    return true;
}

/* Texts. */

bool logic_cat(struct run *r, const struct logic *l, const struct scope *s,
               struct val *out)
{
    struct buf b;
    bool is_good = true;

    *out = val_str((struct str){NULL, 0});
    buf_init(&b, LOGIC_TEXT_MAX);
    for (uint32_t i = 0; i < l->n && is_good; i++) {
        struct val v;

        is_good = logic_eval(r, &l->args[i], s, &v) && val_join(r, &v, &b, 0);
    }
    is_good = is_good && logic_take_text(r, &b, &out->s);
    buf_fini(&b);
    return is_good;
}

static size_t count_chars(struct str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += !utf8_is_tail((unsigned char)s.p[i]);
    return n;
}

/* n characters of s, beginning at character `from`. */
static struct str substr_chars(struct str s, size_t from, size_t n)
{
    size_t at = 0, begin_at, seen = 0;

    for (; at < s.n; at++)
        if (!utf8_is_tail((unsigned char)s.p[at]) && seen++ == from)
            break;
    begin_at = at;
    for (seen = 0; at < s.n; at++)
        if (!utf8_is_tail((unsigned char)s.p[at]) && seen++ == n)
            break;
    return str_sub(s, begin_at, at);
}

/* JavaScript's substr: a negative start counts from the end. */
static struct str substr_js(struct str s, double start, double length)
{
    double n = (double)count_chars(s);

    start = isnan(start) ? 0 : trunc(start);
    length = isnan(length) ? 0 : trunc(length);
    if (start < 0)
        start = n + start < 0 ? 0 : n + start;
    if (start >= n || length <= 0)
        return (struct str){s.p, 0};
    if (length > n - start)
        length = n - start;
    return substr_chars(s, (size_t)start, (size_t)length);
}

/* A negative length cuts that many characters off the end, as in PHP. */
bool logic_substr(struct run *r, const struct logic *l, const struct scope *s,
                  struct val *out)
{
    struct val source, length = val_null();
    double start, n = INFINITY;
    struct str text;

    if (!logic_eval(r, &l->args[0], s, &source) ||
        !eval_number(r, l, s, 1, &start) ||
        (l->n > 2 && (!logic_eval(r, &l->args[2], s, &length) ||
                      !val_to_number(r, &length, &n))) ||
        !val_to_str(r, &source, &text) || !logic_count(r, text.n / 16))
        return false;
    if (n >= 0 || isnan(n)) {
        text = substr_js(text, start, n);
    } else {
        text = substr_js(text, start, INFINITY);
        /* A length that is not a number gives an empty text, as in the
         * reference. */
        text = substr_js(text, 0,
                         val_is_number(&length) ? (double)count_chars(text) + n
                                                : 0);
    }
    *out = val_str(text);
    return true;
}
