/* Reading a condition. Reading resolves everything that does not depend on the
 * data: the function of an operator, the number of its arguments, the parts of
 * a path, and lists without rules, which become one constant. Comparing a field
 * with a number is then two calls and a walk down three keys.
 *
 * Stricter than the reference on purpose: a misspelled condition must be
 * rejected while its author is looking, not be true or fail at night. */
#include <stdarg.h>
#include <stdio.h>

#include "gate/rules/logic_internal.h"

enum { ANY = UINT32_MAX };

struct op {
    struct str name;
    logic_fn *fn;
    uint32_t least, most; /* arguments */
};

/* Among equally close names the first is suggested: for "=>" rather ">=" than
 * "==". */
static const struct op operators[] = {
    {STR("var"), logic_var, 0, 2},
    {STR("missing"), logic_missing, 0, ANY},
    {STR("missing_some"), logic_missing_some, 2, 2},
    {STR("if"), logic_if, 0, ANY},
    {STR("?:"), logic_if, 0, ANY},
    {STR(">="), logic_more_equal, 2, 2},
    {STR("<="), logic_less_equal, 2, 3},
    {STR(">"), logic_more, 2, 2},
    {STR("<"), logic_less, 2, 3},
    {STR("=="), logic_equal, 2, 2},
    {STR("==="), logic_same, 2, 2},
    {STR("!="), logic_unequal, 2, 2},
    {STR("!=="), logic_unsame, 2, 2},
    {STR("!"), logic_not, 1, 1},
    {STR("!!"), logic_truth, 1, 1},
    {STR("or"), logic_or, 1, ANY},
    {STR("and"), logic_and, 1, ANY},
    {STR("max"), logic_max, 0, ANY},
    {STR("min"), logic_min, 0, ANY},
    {STR("+"), logic_add, 0, ANY},
    {STR("-"), logic_subtract, 1, 2},
    {STR("*"), logic_multiply, 1, ANY},
    {STR("/"), logic_divide, 2, 2},
    {STR("%"), logic_modulo, 2, 2},
    {STR("map"), logic_map, 2, 2},
    {STR("reduce"), logic_reduce, 2, 3},
    {STR("filter"), logic_filter, 2, 2},
    {STR("all"), logic_all, 2, 2},
    {STR("none"), logic_none, 2, 2},
    {STR("some"), logic_some, 2, 2},
    {STR("merge"), logic_merge, 0, ANY},
    {STR("in"), logic_in, 2, 2},
    {STR("cat"), logic_cat, 0, ANY},
    {STR("substr"), logic_substr, 2, 3},
    {STR("log"), logic_log, 1, 1},
};
enum { N_OPERATORS = sizeof(operators) / sizeof(operators[0]) };

struct reader {
    struct arena *arena;
    struct logic_problem *problem;
};

PRINTF_LIKE(3, 4)
static bool logic_reject(struct reader *rd, const struct json *at,
                         const char *fmt, ...)
{
    va_list args;

    rd->problem->at = at->at;
    va_start(args, fmt);
    vsnprintf(rd->problem->words, sizeof(rd->problem->words), fmt, args);
    va_end(args);
    return false;
}

static bool logic_no_memory(struct reader *rd, const struct json *at)
{
    return logic_reject(rd, at, "out of memory for this condition");
}

/* Foreign names may be long and may steer a terminal. */
static struct str quote_operator(struct str s, char *to, size_t size)
{
    struct str head = str_head(s, size - 1);

    memcpy(to, head.p ? head.p : "", head.n);
    return (struct str){to, str_tame(to, head.n)};
}

static const struct op *find_operator(struct reader *rd,
                                      const struct json *member,
                                      const struct json *rule)
{
    struct str_guess guess = str_guess(member->key);
    char name[64];
    struct str text;

    for (size_t i = 0; i < N_OPERATORS; i++) {
        if (str_eq(operators[i].name, member->key))
            return &operators[i];
        str_guess_offer(&guess, operators[i].name,
                        str_distance(member->key, operators[i].name));
    }
    text = quote_operator(member->key, name, sizeof(name));
    if (guess.name.n)
        logic_reject(
            rd, rule,
            "\"%.*s\" is not a JsonLogic operator; did you mean \"%.*s\"?",
            STR_ARG(text), STR_ARG(guess.name));
    else
        logic_reject(rd, rule,
                     "\"%.*s\" is not a JsonLogic operator: see "
                     "jsonlogic.com/operations",
                     STR_ARG(text));
    return NULL;
}

static bool check_arg_count(struct reader *rd, const struct op *op, size_t n,
                            const struct json *rule)
{
    if (n >= op->least && n <= op->most)
        return true;
    if (op->most == ANY)
        return logic_reject(rd, rule, "\"%.*s\" needs at least one argument",
                            STR_ARG(op->name));
    if (op->least == op->most)
        return logic_reject(rd, rule, "\"%.*s\" takes %u argument%s, not %zu",
                            STR_ARG(op->name), op->most,
                            op->most == 1 ? "" : "s", n);
    return logic_reject(rd, rule, "\"%.*s\" takes %u to %u arguments, not %zu",
                        STR_ARG(op->name), op->least, op->most, n);
}

static bool has_rules(const struct json *v)
{
    if (v->type == JSON_OBJ)
        return true;
    if (v->type == JSON_ARR)
        JSON_EACH(kid, v)
        {
            if (has_rules(kid))
                return true;
        }
    return false;
}

static bool copy_logic_str(struct reader *rd, struct str *s,
                           const struct json *at)
{
    char *copy = arena_strdup(rd->arena, *s);

    if (!copy)
        return logic_no_memory(rd, at);
    s->p = copy;
    return true;
}

/* Copies trees without objects; no deeper than the condition itself. */
static bool copy_constant(struct reader *rd, const struct json *from,
                          struct json *to)
{
    struct json **last = &to->kids.first;

    to->type = from->type;
    to->at = from->at;
    if (from->type == JSON_STR) {
        to->s = from->s;
        return copy_logic_str(rd, &to->s, from);
    }
    if (from->type != JSON_ARR) {
        struct val v = val_of(from);

        val_put(&v, to);
        return true;
    }
    to->kids.n = from->kids.n;
    JSON_EACH(kid, from)
    {
        *last = arena_alloc(rd->arena, sizeof(**last));
        if (!*last)
            return logic_no_memory(rd, from);
        if (!copy_constant(rd, kid, *last))
            return false;
        last = &(*last)->next;
    }
    return true;
}

static bool read_constant(struct reader *rd, const struct json *v,
                          struct logic *out)
{
    struct json *copy = arena_alloc(rd->arena, sizeof(*copy));

    if (!copy)
        return logic_no_memory(rd, v);
    if (!copy_constant(rd, v, copy))
        return false;
    out->fn = logic_constant;
    out->value = val_of(copy);
    return true;
}

static bool is_too_deep(const struct json *v, unsigned depth)
{
    if (depth > LOGIC_DEPTH_MAX)
        return true;
    if (v->type == JSON_ARR || v->type == JSON_OBJ)
        JSON_EACH(kid, v)
        {
            if (is_too_deep(kid, depth + 1))
                return true;
        }
    return false;
}

static bool read_logic_rule(struct reader *rd, const struct json *v,
                            struct logic *out);

static bool read_logic_args(struct reader *rd, const struct json *list,
                            struct logic *out)
{
    struct logic *args = arena_array(rd->arena, list->kids.n, sizeof(*args));

    if (!args)
        return logic_no_memory(rd, list);
    out->args = args;
    out->n = (uint32_t)list->kids.n;
    JSON_EACH(kid, list)
    {
        if (!read_logic_rule(rd, kid, args++))
            return false;
    }
    return true;
}

/* A constant path is split once. */
static bool read_var_path(struct reader *rd, const struct json *rule,
                          struct logic *out)
{
    const struct logic *name = out->args;
    struct str parts[LOGIC_PATH_MAX], text, *path;
    struct run r = {.scratch = rd->arena,
                    .began_at = rd->arena->used,
                    .left = LOGIC_STEPS_MAX,
                    .most = LOGIC_BYTES_MAX};
    size_t n;

    if (out->n == 0 ||
        (name->fn == logic_constant &&
         (name->value.type == JSON_NULL ||
          (name->value.type == JSON_STR && name->value.s.n == 0)))) {
        out->fn = logic_var_whole;
        return true;
    }
    if (name->fn != logic_constant)
        return true;
    if (!val_to_str(&r, &name->value, &text) ||
        !path_cut(&r, text, parts, LOGIC_PATH_MAX, &n))
        return logic_reject(rd, rule, "this path has more than %d parts",
                            LOGIC_PATH_MAX);
    path = arena_array(rd->arena, n, sizeof(*path));
    if (!path)
        return logic_no_memory(rd, rule);
    memcpy(path, parts, n * sizeof(*path));
    out->fn = logic_var_known;
    out->args = out->n > 1 ? out->args + 1 : NULL;
    out->n = (uint32_t)n;
    out->path = path;
    return true;
}

static bool read_operator(struct reader *rd, const struct json *rule,
                          struct logic *out)
{
    const struct json *member = rule->kids.first;
    const struct op *op;
    /* A single argument that is not a list may stand alone. */
    struct json alone = {
        .type = JSON_ARR,
        .at = member ? member->at : rule->at,
        .kids = {.n = 1},
    };
    struct json copy;

    if (rule->kids.n != 1)
        return logic_reject(
            rd, rule,
            rule->kids.n ? "a condition has one operator, and this has "
                           "several: join them with \"and\" or \"or\""
                         : "a condition has one operator, and this is empty");
    op = find_operator(rd, member, rule);
    if (!op)
        return false;
    if (member->type != JSON_ARR) {
        copy = *member;
        copy.next = NULL;
        alone.kids.first = &copy;
        member = &alone;
    }
    if (!check_arg_count(rd, op, member->kids.n, rule) ||
        !read_logic_args(rd, member, out))
        return false;
    out->fn = op->fn;
    return op->fn != logic_var || read_var_path(rd, rule, out);
}

static bool read_logic_rule(struct reader *rd, const struct json *v,
                            struct logic *out)
{
    if (v->type == JSON_OBJ)
        return read_operator(rd, v, out);
    if (!has_rules(v))
        return read_constant(rd, v, out);
    out->fn = logic_list;
    return read_logic_args(rd, v, out);
}

struct logic *logic_read(struct arena *a, const struct json *rule,
                         struct logic_problem *p)
{
    struct logic_problem unasked;
    struct reader rd = {a, p ? p : &unasked};
    struct logic *l = arena_alloc(a, sizeof(*l));

    if (!l) {
        logic_no_memory(&rd, rule);
        return NULL;
    }
    if (is_too_deep(rule, 1)) {
        logic_reject(&rd, rule, "this condition is more than %d levels deep",
                     LOGIC_DEPTH_MAX);
        return NULL;
    }
    return read_logic_rule(&rd, rule, l) ? l : NULL;
}

/* The paths that a condition mentions. */

static bool is_scoped(const struct logic *l)
{
    return l->fn == logic_map || l->fn == logic_filter ||
           l->fn == logic_reduce || l->fn == logic_all || l->fn == logic_none ||
           l->fn == logic_some;
}

static void mention_key(const struct val *key, logic_mention *say, void *ctx)
{
    struct str parts[LOGIC_PATH_MAX];
    struct run r = {.left = LOGIC_STEPS_MAX};
    size_t n;

    if (key->type == JSON_STR && key->s.n &&
        path_cut(&r, key->s, parts, LOGIC_PATH_MAX, &n))
        say(ctx, parts, n);
    else
        say(ctx, NULL, 0);
}

static void mention_keys(const struct val *v, logic_mention *say, void *ctx)
{
    if (v->type != JSON_ARR) {
        mention_key(v, say, ctx);
        return;
    }
    JSON_EACH(kid, v->node)
    {
        struct val key = val_of(kid);

        mention_key(&key, say, ctx);
    }
}

/* The keys of missing are paths too. */
static void mention_missing(const struct logic *l, logic_mention *say,
                            void *ctx)
{
    for (uint32_t i = l->fn == logic_missing_some; i < l->n; i++) {
        if (l->args[i].fn == logic_constant)
            mention_keys(&l->args[i].value, say, ctx);
        else
            say(ctx, NULL, 0);
    }
}

void logic_mentions(const struct logic *l, logic_mention *say, void *ctx)
{
    uint32_t n = l->n;

    if (l->fn == logic_constant)
        return;
    if (l->fn == logic_var_known) {
        say(ctx, l->path, l->n);
        n = l->args ? 1 : 0;
    } else if (l->fn == logic_var || l->fn == logic_var_whole) {
        say(ctx, NULL, 0);
    } else if (l->fn == logic_missing || l->fn == logic_missing_some) {
        mention_missing(l, say, ctx);
    }
    for (uint32_t i = 0; i < n; i++)
        if (!is_scoped(l) || i != 1)
            logic_mentions(&l->args[i], say, ctx);
}
