/* The values in rules, and how each invalid one is reported: what it must be,
 * and for a name the closest valid one. */
#include "gate/rules/rules_reader.h"

#include <assert.h>
#include <stdio.h>

enum { LIST_MAX = 1000 /* names in one list */ };

void *reader_array(struct reader *rd, size_t n, size_t size)
{
    void *p = arena_array(rd->arena, n ? n : 1, size);

    if (!p)
        rd->is_out_of_memory = true;
    return p;
}

bool keep_str(struct reader *rd, struct str s, struct str *out)
{
    char *p = arena_strdup(rd->arena, s);

    if (!p) {
        rd->is_out_of_memory = true;
        return false;
    }
    *out = (struct str){p, s.n};
    return true;
}

bool is_object(struct reader *rd, const struct json *v, const char *what)
{
    if (v->type == JSON_OBJ)
        return true;
    problem_add(rd, v->at, "%s must be an object {…}, not %s", what,
                quote_value(v).text);
    return false;
}

/* 'unknown field "x" in a safety gate; did you mean "agent"?' */
static void report_unknown_field(struct reader *rd, const struct json *kid,
                                 const struct field *fields, size_t n)
{
    struct str names[16];
    struct str_guess g;
    char all[300] = "";

    if (problem_is_full(rd)) {
        problem_add(rd, 0, "%s", "");
        return;
    }
    assert(n <= sizeof(names) / sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = str_of(fields[i].name);
    g = guess_name(kid->key, names, n, all, sizeof(all));
    if (g.name.n)
        problem_add(rd, member_offset(rd, kid),
                    "unknown field %s in %s; did you mean \"%.*s\"?",
                    quote_text(kid->key).text, rd->what, STR_ARG(g.name));
    else
        problem_add(rd, member_offset(rd, kid),
                    "unknown field %s in %s; it has %s",
                    quote_text(kid->key).text, rd->what, all);
}

/* The name of a member; an element of a list has none. */
static struct quoted member_name(const struct json *v)
{
    struct quoted out = {"this"};

    return v->key.n ? quote_text(v->key) : out;
}

void read_text_value(struct reader *rd, const struct json *v, size_t max,
                     struct str *out)
{
    if (v->type != JSON_STR || !v->s.n || v->s.n > max ||
        str_has_any_control(v->s))
        problem_add(rd, v->at,
                    "%s must be a text of 1 to %zu bytes without control "
                    "characters, not %s",
                    member_name(v).text, max, quote_value(v).text);
    else
        (void)keep_str(rd, v->s, out);
}

static void read_int_value(struct reader *rd, const struct json *v, int64_t min,
                           int64_t max, int64_t *out)
{
    if (v->type == JSON_INT && v->i >= min && v->i <= max)
        *out = v->i;
    else
        problem_add(rd, v->at,
                    "%s must be a whole number from %lld to %lld, not %s",
                    member_name(v).text, (long long)min, (long long)max,
                    quote_value(v).text);
}

/* False: invalid; *out is then undefined. */
static bool parse_duration(struct str s, int64_t *out)
{
    static const struct {
        struct str unit;
        int64_t ms;
    } units[] = {
        {STR("ms"), 1},      {STR("s"), 1000},     {STR("m"), 60000},
        {STR("h"), 3600000}, {STR("d"), 86400000}, {STR("w"), 604800000},
    };
    size_t n = 0;

    while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
        n++;
    if (n > 12 || str_to_i64(str_sub(s, 0, n), out) != OK)
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (str_eq(str_sub(s, n, s.n), units[i].unit)) {
            if (*out > GATE_DURATION_MAX_MS / units[i].ms)
                *out = GATE_DURATION_MAX_MS + 1;
            else
                *out *= units[i].ms;
            return true;
        }
    return false;
}

static void read_duration_value(struct reader *rd, const struct json *v,
                                bool may_be_zero, int64_t *out)
{
    int64_t ms = -1;

    if (v->type == JSON_INT)
        ms = v->i;
    else if (v->type != JSON_STR || !parse_duration(v->s, &ms))
        ms = -1;
    if (ms < 0)
        problem_add(rd, v->at,
                    "%s must be a duration like \"30s\", \"15m\", \"2h\", "
                    "\"90d\" or \"1w\", or whole milliseconds, not %s",
                    member_name(v).text, quote_value(v).text);
    else if (ms == 0 && !may_be_zero)
        problem_add(rd, v->at, "%s must be longer than zero",
                    member_name(v).text);
    else if (ms > GATE_DURATION_MAX_MS)
        problem_add(rd, v->at, "%s must be \"366d\" at most, not %s",
                    member_name(v).text, quote_value(v).text);
    else
        *out = ms;
}

/* '"x" is not one of A, B; did you mean "B"?' */
struct str_guess guess_name(struct str text, const struct str *names, size_t n,
                            char *all, size_t size)
{
    struct str_guess g = str_guess(text);
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        if (!names[i].n)
            continue;
        if (text.n)
            str_guess_offer(&g, names[i], str_distance(text, names[i]));
        if (len < size)
            len += (size_t)snprintf(all + len, size - len, "%s%.*s",
                                    len ? ", " : "", STR_ARG(names[i]));
    }
    return g;
}

bool read_choice_value(struct reader *rd, const struct json *v,
                       const struct str *names, size_t n, size_t *out)
{
    struct str_guess g;
    char all[200] = "";

    for (size_t i = 0; i < n && v->type == JSON_STR; i++)
        if (names[i].n && str_eq(names[i], v->s)) {
            *out = i;
            return true;
        }
    g = guess_name(json_str_or(v, STR("")), names, n, all, sizeof(all));
    if (g.name.n)
        problem_add(rd, v->at, "%s is not one of %s; did you mean \"%.*s\"?",
                    quote_value(v).text, all, STR_ARG(g.name));
    else
        problem_add(rd, v->at, "%s is not one of %s", quote_value(v).text, all);
    return false;
}

static void report_unknown_agent(struct reader *rd, const struct json *v)
{
    struct str_guess g = str_guess(v->s);
    const struct map_slot *slot;
    size_t at = 0;

    if (problem_is_full(rd)) {
        problem_add(rd, 0, "%s", "");
        return;
    }
    while ((slot = map_next(&rd->agents, &at))) {
        struct str name = ((struct agent_line *)slot->value)->name;
        unsigned distance = str_distance(v->s, name);

        /* The map is unordered: among equally close names the first by name. */
        if (distance < g.distance ||
            (distance == g.distance && g.name.n && str_cmp(name, g.name) < 0))
            g = (struct str_guess){name, distance};
    }
    if (g.name.n)
        problem_add(rd, v->at,
                    "%s is not declared under \"agents\"; did you mean "
                    "\"%.*s\"?",
                    quote_text(v->s).text, STR_ARG(g.name));
    else
        problem_add(rd, v->at,
                    "%s is not declared under \"agents\"; write "
                    "\"agents\": {%s: {}} if it is meant",
                    quote_text(v->s).text, quote_text(v->s).text);
}

void read_agent_value(struct reader *rd, const struct json *v, struct str *out)
{
    char folded[AGENT_NAME_MAX];
    struct agent_line *line = NULL;

    if (v->type != JSON_STR) {
        problem_add(rd, v->at, "%s must be the name of an agent, not %s",
                    member_name(v).text, quote_value(v).text);
        return;
    }
    if (v->s.n <= sizeof(folded))
        line = map_get(&rd->agents, str_lowered(v->s, folded, sizeof(folded)));
    if (line)
        *out = line->name;
    else
        report_unknown_agent(rd, v);
}

static void read_kind_name(struct reader *rd, const struct json *v,
                           struct str *out)
{
    read_text_value(rd, v, ENVELOPE_NAME_MAX, out);
}

typedef void read_element(struct reader *rd, const struct json *v,
                          struct str *out);

static void read_name_list(struct reader *rd, const struct json *v,
                           read_element *one, struct strs *out)
{
    bool is_list = v->type == JSON_ARR;
    size_t n = is_list ? v->kids.n : 1, i = 0;
    struct str *list;

    if (n == 0 || n > LIST_MAX) {
        problem_add(rd, v->at,
                    n ? "%s has more than 1000 elements; split the rule"
                      : "%s is an empty list, which matches nothing; leave it "
                        "out to match everything",
                    member_name(v).text);
        return;
    }
    list = reader_array(rd, n, sizeof(*list));
    if (!list)
        return;
    if (!is_list)
        one(rd, v, &list[0]);
    else
        JSON_EACH(kid, v)
    one(rd, kid, &list[i++]);
    *out = (struct strs){list, n};
}

void read_bits_value(struct reader *rd, const struct json *v,
                     const struct str *names, size_t n, uint8_t *out)
{
    size_t i;

    if (v->type == JSON_ARR && !v->kids.n)
        problem_add(rd, v->at, "%s is an empty list; leave it out instead",
                    member_name(v).text);
    if (v->type == JSON_ARR) {
        JSON_EACH(kid, v)
        if (read_choice_value(rd, kid, names, n, &i))
            *out |= (uint8_t)(1u << i);
    } else if (read_choice_value(rd, v, names, n, &i)) {
        *out |= (uint8_t)(1u << i);
    }
}

static void read_expiry(struct reader *rd, const struct json *v,
                        enum gate_expiry *out)
{
    static const struct str names[] = {
        [EXPIRY_EXPIRE] = STR("expire"),
        [EXPIRY_ESCALATE] = STR("escalate"),
        [EXPIRY_ROUTE] = STR("route"),
    };
    size_t i;

    if (read_choice_value(rd, v, names, 3, &i))
        *out = (enum gate_expiry)i;
}

static void read_field_value(struct reader *rd, const struct field *f,
                             const struct json *v, void *into)
{
    void *out = (char *)into + f->offset;

    switch (f->kind) {
    case FIELD_READ:
        if (f->read)
            f->read(rd, v, into);
        break;
    case FIELD_INT: read_int_value(rd, v, f->min, f->max, out); break;
    case FIELD_DURATION: read_duration_value(rd, v, false, out); break;
    case FIELD_DURATION_OR_NEVER: read_duration_value(rd, v, true, out); break;
    case FIELD_AGENT: read_agent_value(rd, v, out); break;
    case FIELD_AGENTS: read_name_list(rd, v, read_agent_value, out); break;
    case FIELD_KINDS: read_name_list(rd, v, read_kind_name, out); break;
    case FIELD_EXPIRY: read_expiry(rd, v, out); break;
    }
}

void read_fields(struct reader *rd, const struct json *v, void *into,
                 const struct field *fields, size_t n)
{
    JSON_EACH(kid, v)
    {
        size_t i = 0;

        while (i < n && !str_eq(kid->key, str_of(fields[i].name)))
            i++;
        if (i == n)
            report_unknown_field(rd, kid, fields, n);
        else
            read_field_value(rd, &fields[i], kid, into);
    }
    for (size_t i = 0; i < n; i++)
        if (fields[i].needed && !json_get(v, str_of(fields[i].name)))
            problem_add(rd, v->at, "%s needs \"%s\": %s", rd->what,
                        fields[i].name, fields[i].needed);
}

void read_object(struct reader *rd, const struct json *v, void *into,
                 const char *what, const struct field *fields, size_t n)
{
    const char *outer = rd->what;

    if (!is_object(rd, v, what))
        return;
    rd->what = what;
    read_fields(rd, v, into, fields, n);
    rd->what = outer;
}
