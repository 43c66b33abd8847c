/* Values, and JavaScript's conversions between their types.
 *
 * Lists and objects are equal only to themselves. A node that goes into a new
 * list is copied, so identity is judged by content: two lists with the same
 * first element node, not an equal one, are the same list. An empty list is
 * identified by its node alone. */
#include <math.h>
#include <stdio.h>

#include "gate/rules/logic_internal.h"

enum { NODE_DEPTH_MAX = 64, NUMBER_BYTES = 32 };

bool logic_fail(struct run *r, const char *why)
{
    if (!r->why)
        r->why = why;
    return false;
}

bool logic_count(struct run *r, size_t n)
{
    if (r->left < 0 || n > (size_t)r->left) {
        r->left = 0;
        return logic_fail(r, "it takes too many steps");
    }
    r->left -= (long)n;
    return true;
}

void *logic_alloc(struct run *r, size_t bytes)
{
    void *p = NULL;

    if (r->scratch && bytes <= r->most &&
        r->scratch->used - r->began_at <= r->most - bytes)
        p = arena_alloc(r->scratch, bytes);
    if (!p)
        logic_fail(r, "it takes too much memory");
    return p;
}

struct val val_of(const struct json *node)
{
    struct val v = {.type = node->type};

    switch (node->type) {
    case JSON_NULL: break;
    case JSON_BOOL: v.b = node->b; break;
    case JSON_INT: v.i = node->i; break;
    case JSON_REAL: v.d = node->d; break;
    case JSON_STR: v.s = node->s; break;
    case JSON_ARR:
    case JSON_OBJ: v.node = node; break;
    }
    return v;
}

void val_put(const struct val *v, struct json *to)
{
    to->type = v->type;
    switch (v->type) {
    case JSON_NULL: break;
    case JSON_BOOL: to->b = v->b; break;
    case JSON_INT: to->i = v->i; break;
    case JSON_REAL: to->d = v->d; break;
    case JSON_STR: to->s = v->s; break;
    case JSON_ARR:
    case JSON_OBJ: to->kids = v->node->kids; break;
    }
}

bool val_list_begin(struct run *r, struct val_list *l)
{
    l->node = logic_alloc(r, sizeof(*l->node));
    if (!l->node)
        return false;
    l->node->type = JSON_ARR;
    l->last = &l->node->kids.first;
    return true;
}

bool val_list_add(struct run *r, struct val_list *l, const struct val *v)
{
    struct json *node = logic_alloc(r, sizeof(*node));

    if (!node)
        return false;
    val_put(v, node);
    *l->last = node;
    l->last = &node->next;
    l->node->kids.n++;
    return true;
}

bool val_truthy(const struct val *v)
{
    switch (v->type) {
    case JSON_NULL: return false;
    case JSON_BOOL: return v->b;
    case JSON_INT: return v->i != 0;
    case JSON_REAL: return v->d != 0 && !isnan(v->d);
    case JSON_STR: return v->s.n > 0;
    case JSON_ARR: return v->node->kids.n > 0;
    case JSON_OBJ: return true;
    }
    return false;
}

/* Texts. */

static struct str scalar_text(const struct val *v, char *number)
{
    int n;

    if (v->type == JSON_BOOL)
        return v->b ? STR("true") : STR("false");
    if (v->type == JSON_REAL)
        return val_write_number(v->d, number);
    if (v->type == JSON_STR)
        return v->s;
    if (v->type == JSON_OBJ)
        return STR("[object Object]");
    n = snprintf(number, NUMBER_BYTES, "%lld", (long long)v->i);
    return (struct str){number, (size_t)n};
}

bool val_join(struct run *r, const struct val *v, struct buf *out,
              unsigned depth)
{
    char number[NUMBER_BYTES];
    bool is_first = true;

    if (v->type == JSON_NULL)
        return true;
    if (v->type != JSON_ARR) {
        struct str text = scalar_text(v, number);

        if (text.n == 0 && v->type != JSON_STR)
            return logic_fail(r, "it takes too much memory");
        buf_add_str(out, text);
        return logic_count(r, text.n / 64) &&
               (!out->over || logic_fail(r, "it makes too long a text"));
    }
    /* A rule can nest lists deeper than any document. */
    if (depth >= NODE_DEPTH_MAX)
        return logic_fail(r, "it nests lists too deep");
    JSON_EACH(kid, v->node)
    {
        struct val element = val_of(kid);

        if (!is_first)
            buf_add_char(out, ',');
        if (!logic_count(r, 1) || !val_join(r, &element, out, depth + 1))
            return false;
        is_first = false;
    }
    return !out->over || logic_fail(r, "it makes too long a text");
}

bool logic_take_text(struct run *r, struct buf *b, struct str *out)
{
    char *copy = logic_alloc(r, b->n ? b->n : 1);

    if (copy && b->n)
        memcpy(copy, b->p, b->n);
    *out = (struct str){copy, b->n};
    return copy;
}

bool val_to_str(struct run *r, const struct val *v, struct str *out)
{
    struct buf b;
    bool is_good;

    if (v->type == JSON_STR) {
        *out = v->s;
        return true;
    }
    buf_init(&b, LOGIC_TEXT_MAX);
    if (v->type == JSON_NULL)
        buf_add_str(&b, STR("null"));
    is_good = val_join(r, v, &b, 0) &&
              (!b.over || logic_fail(r, "it takes too much memory"));
    is_good = is_good && logic_take_text(r, &b, out);
    buf_fini(&b);
    return is_good;
}

/* Numbers. */

bool val_to_number(struct run *r, const struct val *v, double *out)
{
    struct str text;

    switch (v->type) {
    case JSON_NULL: *out = 0; return true;
    case JSON_BOOL: *out = v->b; return true;
    case JSON_INT: *out = (double)v->i; return true;
    case JSON_REAL: *out = v->d; return true;
    case JSON_STR: return num_of_whole(r, v->s, out);
    case JSON_OBJ: *out = NAN; return true;
    case JSON_ARR: break;
    }
    return val_to_str(r, v, &text) && num_of_whole(r, text, out);
}

bool val_parse_float(struct run *r, const struct val *v, double *out)
{
    struct str text;

    *out = NAN;
    if (val_is_number(v)) {
        val_to_number(r, v, out);
        if (*out == 0) /* "-0" is written "0" */
            *out = 0;
        return true;
    }
    if (v->type == JSON_STR)
        return num_of_prefix(r, v->s, out);
    if (v->type != JSON_ARR)
        return true;
    return val_to_str(r, v, &text) && num_of_prefix(r, text, out);
}

/* Comparison. */

bool val_same(const struct val *a, const struct val *b)
{
    double x, y;

    if (val_is_number(a) && val_is_number(b)) {
        if (a->type == JSON_INT && b->type == JSON_INT)
            return a->i == b->i;
        x = a->type == JSON_INT ? (double)a->i : a->d;
        y = b->type == JSON_INT ? (double)b->i : b->d;
        return x == y;
    }
    if (a->type != b->type)
        return false;
    if (a->type == JSON_STR)
        return str_eq(a->s, b->s);
    if (a->type == JSON_BOOL)
        return a->b == b->b;
    if (a->type == JSON_ARR || a->type == JSON_OBJ)
        return a->node == b->node ||
               (a->node->kids.first &&
                a->node->kids.first == b->node->kids.first);
    return true;
}

static bool is_scalar(const struct val *v)
{
    return v->type != JSON_ARR && v->type != JSON_OBJ;
}

static bool to_scalar(struct run *r, const struct val *v, struct val *out)
{
    *out = *v;
    if (is_scalar(v))
        return true;
    *out = val_str((struct str){NULL, 0});
    return val_to_str(r, v, &out->s);
}

bool val_equal(struct run *r, const struct val *a, const struct val *b,
               bool *out)
{
    struct val x, y;
    double n, m;

    if (a->type == b->type || (val_is_number(a) && val_is_number(b)) ||
        (!is_scalar(a) && !is_scalar(b)) || a->type == JSON_NULL ||
        b->type == JSON_NULL) {
        *out = val_same(a, b);
        return true;
    }
    if (!to_scalar(r, a, &x) || !to_scalar(r, b, &y))
        return false;
    if (x.type == JSON_STR && y.type == JSON_STR) {
        *out = str_eq(x.s, y.s);
        return true;
    }
    if (!val_to_number(r, &x, &n) || !val_to_number(r, &y, &m))
        return false;
    *out = n == m;
    return true;
}

bool val_compare(struct run *r, const struct val *a, const struct val *b,
                 int *out)
{
    struct val x, y;
    double n, m;
    int c;

    if (a->type == JSON_INT && b->type == JSON_INT) {
        *out = a->i < b->i ? -1 : a->i > b->i;
        return true;
    }
    if (!to_scalar(r, a, &x) || !to_scalar(r, b, &y))
        return false;
    if (x.type == JSON_STR && y.type == JSON_STR) {
        c = str_cmp(x.s, y.s);
        *out = c < 0 ? -1 : c > 0;
        return true;
    }
    if (!val_to_number(r, &x, &n) || !val_to_number(r, &y, &m))
        return false;
    *out = isnan(n) || isnan(m) ? 2 : n < m ? -1 : n > m;
    return true;
}
