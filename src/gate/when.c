/* Conditions: JsonLogic, and beyond it whether what they look at is there at
 * all. A var that leads nowhere is null, and a rule that compares null with
 * something never says so: it just never fires. */
#include "gate/reader.h"

#include <stdio.h>

#include "gate/logic.h"

static const struct str roots[] = {
    STR("message"), STR("target"),  STR("sender"),
    STR("agents"),  STR("history"), STR("now"),
};

static const struct str message_fields[] = {
    STR("message_id"), STR("from"),      STR("to"),    STR("type"),
    STR("priority"),   STR("timestamp"), STR("stale"), STR("reference"),
    STR("payload"),    STR("context"),
};

static const struct str agent_fields[] = {
    STR("name"),      STR("known"),       STR("state"),  STR("queue"),
    STR("queue_max"), STR("data_age_ms"), STR("backup"),
};

struct mention {
    struct reader *rd;
    const struct json *when;
};

static bool is_one_of(struct str s, const struct str *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(s, list[i]))
            return true;
    return false;
}

static void say_nothing_there(const struct mention *m, struct str path,
                              const struct str *list, size_t n,
                              const char *head)
{
    struct str_guess g = str_guess(path);
    char all[160] = "";
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        str_guess_offer(&g, list[i], str_distance(path, list[i]));
        if (len < sizeof(all))
            len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%.*s",
                                    len ? ", " : "", STR_ARG(list[i]));
    }
    if (g.name.n)
        problem_add(m->rd, m->when->at,
                    "its condition looks at \"%s%.*s\", which is never there; "
                    "did you mean \"%s%.*s\"?",
                    head, STR_ARG(str_head(path, 60)), head, STR_ARG(g.name));
    else
        problem_add(m->rd, m->when->at,
                    "its condition looks at \"%s%.*s\", which is never there; "
                    "there are %s",
                    head, STR_ARG(str_head(path, 60)), all);
}

/* Of agents.NAME, the declared ones. */
static void check_agent(const struct mention *m, struct str name)
{
    struct json v = {.type = JSON_STR, .at = m->when->at, .s = name};
    struct str out = {NULL, 0};

    read_agent(m->rd, &v, &out);
    if (out.n && !str_eq(out, name))
        problem_add(m->rd, m->when->at,
                    "its condition looks at \"agents.%.*s\", which is written "
                    "\"agents.%.*s\" under \"agents\"",
                    STR_ARG(name), STR_ARG(out));
}

static void check_field(const struct mention *m, struct str field,
                        const char *head)
{
    size_t n = sizeof(agent_fields) / sizeof(*agent_fields);

    if (!is_one_of(field, agent_fields, n))
        say_nothing_there(m, field, agent_fields, n, head);
}

static void on_mention(void *ctx, const struct str *path, size_t n)
{
    const struct mention *m = ctx;
    size_t n_roots = sizeof(roots) / sizeof(*roots);
    size_t n_fields = sizeof(message_fields) / sizeof(*message_fields);

    if (n == 0)
        return;
    if (!is_one_of(path[0], roots, n_roots))
        say_nothing_there(m, path[0], roots, n_roots, "");
    else if (n > 1 && str_eq(path[0], STR("message")) &&
             !is_one_of(path[1], message_fields, n_fields))
        say_nothing_there(m, path[1], message_fields, n_fields, "message.");
    else if (n > 1 && str_eq(path[0], STR("agents")))
        check_agent(m, path[1]);
    else if (n > 1 && str_eq(path[0], STR("target")))
        check_field(m, path[1], "target.");
    else if (n > 1 && str_eq(path[0], STR("sender")))
        check_field(m, path[1], "sender.");
    if (n > 2 && str_eq(path[0], STR("agents")))
        check_field(m, path[2], "agents.NAME.");
}

void read_when(struct reader *rd, const struct json *v,
               const struct logic **out)
{
    struct logic_problem problem = {.at = v->at};
    struct mention m = {rd, v};
    struct logic *l;

    if (v->type != JSON_OBJ) {
        problem_add(rd, v->at,
                    "\"when\" must be a condition in JsonLogic, like {\"<\": "
                    "[{\"var\": \"message.payload.confidence_score\"}, 6.5]}, "
                    "not %s",
                    show_value(v).text);
        return;
    }
    l = logic_read(rd->arena, v, &problem);
    if (l)
        logic_mentions(l, on_mention, &m);
    else if (str_starts(str_of(problem.words), STR("there is no memory")))
        rd->is_out_of_memory = true;
    else
        problem_add(rd, problem.at, "%s", problem.words);
    *out = l;
}
