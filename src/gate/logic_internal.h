#ifndef GATE_LOGIC_INTERNAL_H
#define GATE_LOGIC_INTERNAL_H

/* What the files of logic share. A value is small and goes by copy; only lists
 * and objects are trees. */

#include "gate/logic.h"

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

/* One working out. */
struct run {
    const struct logic_data *data;
    struct arena *scratch;
    size_t began_at; /* bytes of scratch used before */
    long left;       /* steps */
    size_t most;     /* bytes of scratch from there on */
    const char *why; /* it failed */
};

/* What var looks at: the data; an element, inside map and its like; or the
 * two of reduce. */
struct scope {
    enum { SCOPE_DATA, SCOPE_ELEMENT, SCOPE_REDUCE } kind;
    struct val element, accumulator;
    const struct json **pair; /* both as one object, once somebody asked */
};

/* Every operator is one of these. False: failed, and r->why says why. */
typedef bool logic_fn(struct run *r, const struct logic *l,
                      const struct scope *s, struct val *out);

/* A rule: what it does and what with. */
struct logic {
    logic_fn *fn;
    uint32_t n; /* arguments, or parts of a path */
    const struct logic *args;
    union {
        struct val value;       /* a constant's */
        const struct str *path; /* a var's whose path is known; args: default */
    };
};

/* Each evaluation of a rule is a step. */
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

/* Count n of something small as steps. False: too many. */
bool logic_count(struct run *r, size_t n);

/* Memory of scratch, or NULL (failed). */
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

/* A double as a value: whole ones that are exact become integers. */
struct val val_number(double d);

struct val val_of(const struct json *node);
/* Into *to, whose key and next stay. */
void val_put(const struct val *v, struct json *to);

/* A list while it is made. */
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
/* As Array.join has elements: null is nothing. */
struct buf;
bool val_join(struct run *r, const struct val *v, struct buf *out,
              unsigned depth);
bool logic_take_text(struct run *r, struct buf *b, struct str *out);

/* ==, ===, and <: *out is -1, 0, 1, or 2 where there is no order (NaN). */
bool val_equal(struct run *r, const struct val *a, const struct val *b,
               bool *out);
bool val_same(const struct val *a, const struct val *b);
bool val_compare(struct run *r, const struct val *a, const struct val *b,
                 int *out);

/* How a number is written, into 32 bytes. */
struct str val_write_number(double d, char *to);

/* The number that s begins with (parseFloat) or is (Number). */
bool num_of_prefix(struct run *r, struct str s, double *out);
bool num_of_whole(struct run *r, struct str s, double *out);

/* var: down a path. *found is false where there is nothing. */
bool path_find(struct run *r, const struct scope *s, const struct str *path,
               size_t n, struct val *out, bool *found);
bool path_whole(struct run *r, const struct scope *s, struct val *out);
/* Down the path that a value names. */
bool path_find_named(struct run *r, const struct scope *s,
                     const struct val *name, struct val *out, bool *found);
/* The parts of a text between points; *n is at most max, else failed. */
bool path_cut(struct run *r, struct str text, struct str *parts, size_t max,
              size_t *n);

/* The operators, by what they do. */
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
