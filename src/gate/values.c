/* The values that rules are made of, each with the words for one that is none:
 * what it must be, and where it is a name, the one that was meant. */
#include "gate/reader.h"

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
                show_value(v).text);
    return false;
}

/* "x is no field of a safety gate; did you mean \"agent\"?" */
static void say_unknown(struct reader *rd, const struct json *kid,
                        const struct field *fields, size_t n)
{
    struct str_guess g = str_guess(kid->key);
    char all[300] = "";
    size_t len = 0;

    if (problem_is_full(rd)) {
        problem_add(rd, 0, "%s", "");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct str name = str_of(fields[i].name);

        str_guess_offer(&g, name, str_distance(kid->key, name));
        if (len < sizeof(all))
            len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s",
                                    i ? ", " : "", fields[i].name);
    }
    if (g.name.n)
        problem_add(rd, key_at(rd, kid),
                    "%s is no field of %s; did you mean \"%.*s\"?",
                    show(kid->key).text, rd->what, STR_ARG(g.name));
    else
        problem_add(rd, key_at(rd, kid), "%s is no field of %s; it has %s",
                    show(kid->key).text, rd->what, all);
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
            say_unknown(rd, kid, fields, n);
        else if (fields[i].read)
            fields[i].read(rd, kid, into);
    }
    for (size_t i = 0; i < n; i++)
        if (fields[i].needed && !json_get(v, str_of(fields[i].name)))
            problem_add(rd, v->at, "%s needs \"%s\": %s", rd->what,
                        fields[i].name, fields[i].needed);
}

/* A member by its name, an element of a list by where it stands. */
static struct shown name_of(const struct json *v)
{
    struct shown out = {"this"};

    return v->key.n ? show(v->key) : out;
}

void read_text(struct reader *rd, const struct json *v, size_t max,
               struct str *out)
{
    if (v->type != JSON_STR || !v->s.n || v->s.n > max ||
        str_has_any_control(v->s))
        problem_add(rd, v->at,
                    "%s must be a text of 1 to %zu bytes without control "
                    "characters, not %s",
                    name_of(v).text, max, show_value(v).text);
    else
        (void)keep_str(rd, v->s, out);
}

void read_int(struct reader *rd, const struct json *v, int64_t min, int64_t max,
              int64_t *out)
{
    if (v->type == JSON_INT && v->i >= min && v->i <= max)
        *out = v->i;
    else
        problem_add(rd, v->at,
                    "%s must be a whole number from %lld to %lld, not %s",
                    name_of(v).text, (long long)min, (long long)max,
                    show_value(v).text);
}

/* False: it is none; *out may then be anything. */
static bool duration_of(struct str s, int64_t *out)
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

void read_duration(struct reader *rd, const struct json *v,
                   enum duration_zero zero, int64_t *out)
{
    int64_t ms = -1;

    if (v->type == JSON_INT)
        ms = v->i;
    else if (v->type != JSON_STR || !duration_of(v->s, &ms))
        ms = -1;
    if (ms < 0)
        problem_add(rd, v->at,
                    "%s must be a duration like \"30s\", \"15m\", \"2h\", "
                    "\"90d\" or \"1w\", or whole milliseconds, not %s",
                    name_of(v).text, show_value(v).text);
    else if (ms == 0 && zero == ZERO_IS_WRONG)
        problem_add(rd, v->at, "%s must be longer than nothing",
                    name_of(v).text);
    else if (ms > GATE_DURATION_MAX_MS)
        problem_add(rd, v->at, "%s must be \"366d\" at most, not %s",
                    name_of(v).text, show_value(v).text);
    else
        *out = ms;
}

/* "must be one of A, B; did you mean B?" */
static void say_choices(struct reader *rd, const struct json *v,
                        const struct str *names, size_t n)
{
    struct str text = json_str_or(v, STR(""));
    struct str_guess g = str_guess(text);
    char all[200] = "";
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        if (!names[i].n)
            continue;
        if (text.n)
            str_guess_offer(&g, names[i], str_distance(text, names[i]));
        if (len < sizeof(all))
            len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%.*s",
                                    len ? ", " : "", STR_ARG(names[i]));
    }
    if (g.name.n)
        problem_add(rd, v->at, "%s is none of %s; did you mean \"%.*s\"?",
                    show_value(v).text, all, STR_ARG(g.name));
    else
        problem_add(rd, v->at, "%s is none of %s", show_value(v).text, all);
}

bool read_choice(struct reader *rd, const struct json *v,
                 const struct str *names, size_t n, size_t *out)
{
    for (size_t i = 0; i < n && v->type == JSON_STR; i++)
        if (names[i].n && str_eq(names[i], v->s)) {
            *out = i;
            return true;
        }
    say_choices(rd, v, names, n);
    return false;
}

static void say_no_agent(struct reader *rd, const struct json *v)
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

        /* The map has no order of its own: of equals the first by name. */
        if (distance < g.distance ||
            (distance == g.distance && g.name.n && str_cmp(name, g.name) < 0))
            g = (struct str_guess){name, distance};
    }
    if (g.name.n)
        problem_add(rd, v->at,
                    "%s is not declared under \"agents\"; did you mean "
                    "\"%.*s\"?",
                    show(v->s).text, STR_ARG(g.name));
    else
        problem_add(rd, v->at,
                    "%s is not declared under \"agents\"; write "
                    "\"agents\": {%s: {}} if it is meant",
                    show(v->s).text, show(v->s).text);
}

void read_agent(struct reader *rd, const struct json *v, struct str *out)
{
    char folded[AGENT_NAME_MAX];
    struct agent_line *line = NULL;

    if (v->type != JSON_STR) {
        problem_add(rd, v->at, "%s must be the name of an agent, not %s",
                    name_of(v).text, show_value(v).text);
        return;
    }
    if (v->s.n <= sizeof(folded))
        line = map_get(&rd->agents, str_lowered(v->s, folded, sizeof(folded)));
    if (line)
        *out = line->name;
    else
        say_no_agent(rd, v);
}

static void read_kind(struct reader *rd, const struct json *v, struct str *out)
{
    read_text(rd, v, ENVELOPE_NAME_MAX, out);
}

typedef void read_one(struct reader *rd, const struct json *v, struct str *out);

static void read_list(struct reader *rd, const struct json *v, read_one *one,
                      struct strs *out)
{
    bool is_list = v->type == JSON_ARR;
    size_t n = is_list ? v->kids.n : 1, i = 0;
    struct str *list;

    if (n == 0 || n > LIST_MAX) {
        problem_add(rd, v->at,
                    n ? "%s has more than 1000 in it; make several rules of it"
                      : "%s is an empty list, so that the rule would be for "
                        "nobody; leave it out for anybody",
                    name_of(v).text);
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

void read_agents(struct reader *rd, const struct json *v, struct strs *out)
{
    read_list(rd, v, read_agent, out);
}

void read_kinds(struct reader *rd, const struct json *v, struct strs *out)
{
    read_list(rd, v, read_kind, out);
}

void read_bits(struct reader *rd, const struct json *v, const struct str *names,
               size_t n, uint8_t *out)
{
    size_t i;

    if (v->type == JSON_ARR && !v->kids.n)
        problem_add(rd, v->at, "%s is an empty list; leave it out instead",
                    name_of(v).text);
    if (v->type == JSON_ARR) {
        JSON_EACH(kid, v)
        if (read_choice(rd, kid, names, n, &i))
            *out |= (uint8_t)(1u << i);
    } else if (read_choice(rd, v, names, n, &i)) {
        *out |= (uint8_t)(1u << i);
    }
}

void read_expiry(struct reader *rd, const struct json *v, enum pass_expiry *out)
{
    static const struct str names[] = {
        [EXPIRY_EXPIRE] = STR("expire"),
        [EXPIRY_ESCALATE] = STR("escalate"),
        [EXPIRY_ROUTE] = STR("route"),
    };
    size_t i;

    if (read_choice(rd, v, names, 3, &i))
        *out = (enum pass_expiry)i;
}
