/* Conditions: JsonLogic, and beyond it a check whether the data they read can
 * exist at all. A var that leads nowhere is null, and a rule that compares null
 * with something gives no error: it just never fires. */
#include "gate/rules/rules_reader.h"

#include <stdio.h>

#include "gate/rules/logic.h"

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

static void report_no_data(const struct mention *m, struct str path,
                           const struct str *list, size_t n, const char *head)
{
    char all[160] = "";
    struct str_guess g = guess_name(path, list, n, all, sizeof(all));

    if (g.name.n)
        problem_add(m->rd, m->when->at,
                    "the condition reads \"%s%.*s\", which does not exist; "
                    "did you mean \"%s%.*s\"?",
                    head, STR_ARG(str_head(path, 60)), head, STR_ARG(g.name));
    else
        problem_add(m->rd, m->when->at,
                    "the condition reads \"%s%.*s\", which does not exist; "
                    "there are %s",
                    head, STR_ARG(str_head(path, 60)), all);
}

/* The name in agents.NAME must be declared. */
static void check_agent_mention(const struct mention *m, struct str name)
{
    struct json v = {.type = JSON_STR, .at = m->when->at, .s = name};
    struct str out = {NULL, 0};

    read_agent_value(m->rd, &v, &out);
    if (out.n && !str_eq(out, name))
        problem_add(m->rd, m->when->at,
                    "the condition reads \"agents.%.*s\", which is written "
                    "\"agents.%.*s\" under \"agents\"",
                    STR_ARG(name), STR_ARG(out));
}

static void check_agent_field(const struct mention *m, struct str field,
                              const char *head)
{
    struct strs known = {agent_fields,
                         sizeof(agent_fields) / sizeof(*agent_fields)};

    if (!match_has(known, field))
        report_no_data(m, field, known.list, known.n, head);
}

static void check_mention(void *ctx, const struct str *path, size_t n)
{
    const struct mention *m = ctx;
    size_t n_roots = sizeof(roots) / sizeof(*roots);
    size_t n_fields = sizeof(message_fields) / sizeof(*message_fields);

    if (n == 0)
        return;
    if (!match_has((struct strs){roots, n_roots}, path[0]))
        report_no_data(m, path[0], roots, n_roots, "");
    else if (n > 1 && str_eq(path[0], STR("message")) &&
             !match_has((struct strs){message_fields, n_fields}, path[1]))
        report_no_data(m, path[1], message_fields, n_fields, "message.");
    else if (n > 1 && str_eq(path[0], STR("agents")))
        check_agent_mention(m, path[1]);
    else if (n > 1 && str_eq(path[0], STR("target")))
        check_agent_field(m, path[1], "target.");
    else if (n > 1 && str_eq(path[0], STR("sender")))
        check_agent_field(m, path[1], "sender.");
    if (n > 2 && str_eq(path[0], STR("agents")))
        check_agent_field(m, path[2], "agents.NAME.");
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
                    quote_value(v).text);
        return;
    }
    l = logic_read(rd->arena, v, &problem);
    if (l)
        logic_mentions(l, check_mention, &m);
    else if (str_starts(str_of(problem.words), STR("out of memory")))
        rd->is_out_of_memory = true;
    else
        problem_add(rd, problem.at, "%s", problem.words);
    *out = l;
}
