#ifndef GATE_RULES_LOGIC_INTERNAL_H
#define GATE_RULES_LOGIC_INTERNAL_H

/* Shared by the files of logic. A value is small and passed by copy; only lists
 * and objects are trees. */

#include "gate/rules/logic.h"

struct val {
    enum json_type type;
    union {
        bool b;
        int64_t i;
        double d; /* may be NaN or infinite */
        struct str s;
        const struct json *node; /* JSON_ARR, JSON_OBJ */
    };
};

/* One evaluation. */
struct run {
    const struct logic_data *data;
    struct arena *scratch;
    size_t began_at; /* bytes of scratch in use at the start */
    long left;       /* steps left */
    size_t most;     /* bytes of scratch it may take */
    const char *why; /* why it failed; NULL: it did not */
};

/* The scope of var: the data; an element, inside map and the like; or the pair
 * of reduce. */
struct scope {
    enum { SCOPE_DATA, SCOPE_ELEMENT, SCOPE_REDUCE } kind;
    struct val element, accumulator;
    const struct json **pair; /* both as one object, built on first use */
};

/* The type of every operator. False: failed, and r->why says why. */
typedef bool logic_fn(struct run *r, const struct logic *l,
                      const struct scope *s, struct val *out);

/* A rule: an operator and its arguments. */
struct logic {
    logic_fn *fn;
    uint32_t n; /* arguments, or parts of a path */
    const struct logic *args;
    union {
        struct val value; /* of a constant */
        /* The path of a var, if it is constant; args: the default. */
        const struct str *path;
    };
};

/* Every evaluation of a rule is a step. */
static inline bool logic_eval(struct run *r, const struct logic *l,
                              const struct scope *s, struct val *out)
{
    if (r->left-- <= 0) {
        r->why = "it takes too many steps";
        return false;
    }
    return l->fn(r, l, s, out);
}

bool logic_fail(struct run *r, const char *why);

/* Count n cheap operations as steps. False: too many. */
bool logic_count(struct run *r, size_t n);

/* Scratch memory; NULL on failure. */
void *logic_alloc(struct run *r, size_t bytes);

static inline struct val val_bool(bool b)
{
    return (struct val){.type = JSON_BOOL, .b = b};
}

static inline struct val val_null(void)
{
    return (struct val){.type = JSON_NULL};
}

static inline struct val val_str(struct str s)
{
    return (struct val){.type = JSON_STR, .s = s};
}

static inline bool val_is_number(const struct val *v)
{
    return v->type == JSON_INT || v->type == JSON_REAL;
}

/* A double as a value: exact whole numbers become integers. */
struct val val_number(double d);

struct val val_of(const struct json *node);
/* Store v in *to, keeping its key and next. */
void val_put(const struct val *v, struct json *to);

/* A list under construction. */
struct val_list {
    struct json *node, **last;
};
bool val_list_begin(struct run *r, struct val_list *l);
bool val_list_add(struct run *r, struct val_list *l, const struct val *v);
static inline struct val val_list_end(const struct val_list *l)
{
    return (struct val){.type = JSON_ARR, .node = l->node};
}

/* JavaScript's conversions. */
bool val_truthy(const struct val *v);
bool val_to_number(struct run *r, const struct val *v, double *out);
bool val_parse_float(struct run *r, const struct val *v, double *out);
bool val_to_str(struct run *r, const struct val *v, struct str *out);
/* Like Array.join: null is empty. */
struct buf;
bool val_join(struct run *r, const struct val *v, struct buf *out,
              unsigned depth);
bool logic_take_text(struct run *r, struct buf *b, struct str *out);

/* ==, ===, and <: *out is -1, 0, 1, or 2 when unordered (NaN). */
bool val_equal(struct run *r, const struct val *a, const struct val *b,
               bool *out);
bool val_same(const struct val *a, const struct val *b);
bool val_compare(struct run *r, const struct val *a, const struct val *b,
                 int *out);

/* Write a number into 32 bytes. */
struct str val_write_number(double d, char *to);

/* The number at the start of s (parseFloat), or the number that is s
 * (Number). */
bool num_of_prefix(struct run *r, struct str s, double *out);
bool num_of_whole(struct run *r, struct str s, double *out);

/* Split a text at its points; fails beyond max parts. */
bool path_cut(struct run *r, struct str text, struct str *parts, size_t max,
              size_t *n);

/* The operators. */
logic_fn logic_constant, logic_list, logic_var_known, logic_var_whole,
    logic_var;
logic_fn logic_missing, logic_missing_some;
logic_fn logic_if, logic_and, logic_or, logic_not, logic_truth;
logic_fn logic_equal, logic_same, logic_unequal, logic_unsame;
logic_fn logic_less, logic_less_equal, logic_more, logic_more_equal;
logic_fn logic_max, logic_min, logic_add, logic_subtract, logic_multiply,
    logic_divide, logic_modulo;
logic_fn logic_map, logic_reduce, logic_filter, logic_all, logic_none,
    logic_some, logic_merge;
logic_fn logic_in, logic_cat, logic_substr, logic_log;

#endif
