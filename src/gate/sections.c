/* The sections that are lists of rules: one table says what each is called and
 * what its rules may say. */
#include "gate/reader.h"

static const struct str priorities[] = {
    [PRIORITY_URGENT] = STR("URGENT"),
    [PRIORITY_HIGH] = STR("HIGH"),
    [PRIORITY_NORMAL] = STR("NORMAL"),
    [PRIORITY_LOW] = STR("LOW"),
};

static const struct str states[] = {
    [AGENT_ACTIVE] = STR("ACTIVE"), [AGENT_IDLE] = STR("IDLE"),
    [AGENT_BUSY] = STR("BUSY"),     [AGENT_SLOW] = STR("SLOW"),
    [AGENT_ERROR] = STR("ERROR"),   [AGENT_DEAD] = STR("DEAD"),
};

/* match. */

static void read_match_from(struct reader *rd, const struct json *v, void *into)
{
    read_agents(rd, v, &((struct match *)into)->from);
}

static void read_match_to(struct reader *rd, const struct json *v, void *into)
{
    read_agents(rd, v, &((struct match *)into)->to);
}

static void read_match_type(struct reader *rd, const struct json *v, void *into)
{
    read_kinds(rd, v, &((struct match *)into)->type);
}

static void read_match_priority(struct reader *rd, const struct json *v,
                                void *into)
{
    read_bits(rd, v, priorities, sizeof(priorities) / sizeof(*priorities),
              &((struct match *)into)->priorities);
}

static void read_match(struct reader *rd, const struct json *v, void *into)
{
    static const struct field fields[] = {
        {"from", read_match_from, NULL},
        {"to", read_match_to, NULL},
        {"type", read_match_type, NULL},
        {"priority", read_match_priority, NULL},
    };
    const char *was = rd->what;

    if (!is_object(rd, v, "match"))
        return;
    rd->what = "match";
    READ_FIELDS(rd, v, &((struct rule *)into)->match, fields);
    rd->what = was;
}

/* What every rule may say. The name was read before the rest, so that problems
 * are told with it. */

static void read_rule_when(struct reader *rd, const struct json *v, void *into)
{
    read_when(rd, v, &((struct rule *)into)->when);
}

static void read_hold_for(struct reader *rd, const struct json *v, void *into)
{
    read_duration(rd, v, ZERO_IS_WRONG, &((struct rule *)into)->hold_ms);
}

static void read_on_expiry(struct reader *rd, const struct json *v, void *into)
{
    read_expiry(rd, v, &((struct rule *)into)->on_expiry);
}

#define RULE_NAME                                                           \
    {                                                                       \
        "rule", NULL,                                                       \
            "give it a name of its own, which decisions are then told with" \
    }
#define RULE_MATCH                \
    {                             \
        "match", read_match, NULL \
    }
#define RULE_WHEN                    \
    {                                \
        "when", read_rule_when, NULL \
    }
#define RULE_HOLD                       \
    {                                   \
        "hold_for", read_hold_for, NULL \
    }
#define RULE_AFTER                        \
    {                                     \
        "on_expiry", read_on_expiry, NULL \
    }

/* priorities */

static void read_raise(struct reader *rd, const struct json *v, void *into)
{
    size_t i;

    if (read_choice(rd, v, priorities, sizeof(priorities) / sizeof(*priorities),
                    &i))
        ((struct rule *)into)->raises_to = (enum task_priority)i;
}

static const struct field priority_fields[] = {
    RULE_NAME,
    RULE_MATCH,
    RULE_WHEN,
    {"priority", read_raise, "which one it is raised to, like \"URGENT\""},
};

/* duplicates, superseding, escalations with `same` */

/* "payload.end_client.name" below payload. */
static void read_path(struct reader *rd, struct str path, size_t at,
                      struct strs *out)
{
    struct str rest = path;
    struct str *parts;
    size_t n = 1;

    for (size_t i = 0; i < path.n; i++)
        n += path.p[i] == '.';
    parts = reader_array(rd, n, sizeof(*parts));
    if (!parts)
        return;
    for (size_t i = 0; i < n; i++) {
        struct str part = str_cut(&rest, '.');

        if (!part.n) {
            problem_add(rd, at,
                        "%s has an empty name in it; write it like "
                        "\"payload.end_client\"",
                        show(path).text);
            return;
        }
        if (!keep_str(rd, part, &parts[i]))
            return;
    }
    *out = (struct strs){parts, n};
}

static const struct str same_names[] = {
    [SAME_FROM] = STR("from"),       [SAME_TO] = STR("to"),
    [SAME_TYPE] = STR("type"),       [SAME_REFERENCE] = STR("reference"),
    [SAME_PAYLOAD] = STR("payload"), [SAME_PATH] = STR("payload.FIELD"),
};

static void read_same_field(struct reader *rd, const struct json *v,
                            struct same_field *out)
{
    struct str head = STR("payload."), text = json_str_or(v, STR(""));
    size_t i;

    if (str_starts(text, head) && text.n <= 1000) {
        out->kind = SAME_PATH;
        read_path(rd, str_sub(text, head.n, text.n), v->at, &out->path);
    } else if (read_choice(rd, v, same_names,
                           sizeof(same_names) / sizeof(*same_names), &i)) {
        out->kind = (enum same_kind)i;
    }
}

static void read_same(struct reader *rd, const struct json *v, void *into)
{
    struct rule *rule = into;
    struct same_field *list;
    size_t n = 0;

    if (v->type != JSON_ARR || !v->kids.n || v->kids.n > SAME_MAX) {
        problem_add(rd, v->at,
                    "\"same\" must be a list of 1 to %d fields that two "
                    "messages have in common, like [\"from\", \"type\", "
                    "\"payload.end_client\"]",
                    SAME_MAX);
        return;
    }
    list = reader_array(rd, v->kids.n, sizeof(*list));
    if (!list)
        return;
    JSON_EACH(kid, v)
    read_same_field(rd, kid, &list[n++]);
    rule->like.same = list;
    rule->like.n_same = n;
}

static void read_like_within(struct reader *rd, const struct json *v,
                             void *into)
{
    read_duration(rd, v, ZERO_IS_WRONG, &((struct rule *)into)->like.within_ms);
}

static const struct field duplicate_fields[] = {
    RULE_NAME,
    RULE_MATCH,
    RULE_WHEN,
    {"same", read_same, NULL},
    {"within", read_like_within, "how long one counts, like \"10m\""},
};

static const struct field escalation_fields[] = {
    RULE_NAME,
    RULE_MATCH,
    RULE_WHEN,
    {"same", read_same, NULL},
    {"within", read_like_within, NULL},
};

static const struct same_field as_before[] = {
    {.kind = SAME_FROM},      {.kind = SAME_TO},      {.kind = SAME_TYPE},
    {.kind = SAME_REFERENCE}, {.kind = SAME_PAYLOAD},
};

static void end_duplicate(struct reader *rd, const struct json *v,
                          struct rule *rule)
{
    (void)rd, (void)v;
    if (rule->like.n_same)
        return;
    rule->like.same = as_before;
    rule->like.n_same = sizeof(as_before) / sizeof(*as_before);
}

static void end_superseding(struct reader *rd, const struct json *v,
                            struct rule *rule)
{
    if (!json_get(json_get(v, STR("match")), STR("type")))
        problem_add(rd, v->at,
                    "superseding drops messages, so it must say which: "
                    "\"match\": {\"type\": \"STATUS_CHECK\"}");
    if (rule->like.n_same)
        return;
    rule->like.same = as_before;
    rule->like.n_same = 3; /* from, to, type */
}

/* "match": {} is as good as none. */
static bool is_for_all(const struct json *v)
{
    const struct json *match = json_get(v, STR("match"));

    return !json_get(v, STR("when")) &&
           (!match || (match->type == JSON_OBJ && !match->kids.n));
}

static void end_escalation(struct reader *rd, const struct json *v,
                           struct rule *rule)
{
    bool has_same = json_get(v, STR("same"));

    (void)rule;
    if (has_same && !json_get(v, STR("within")))
        problem_add(rd, v->at,
                    "with \"same\" it needs \"within\": how long an earlier "
                    "message counts, like \"90d\"");
    if (!has_same && json_get(v, STR("within")))
        problem_add(rd, json_get(v, STR("within"))->at,
                    "\"within\" means nothing without \"same\": say what two "
                    "messages have in common, or leave it out");
    if (!has_same && is_for_all(v))
        problem_add(rd, v->at,
                    "it would escalate every message; say which by \"match\", "
                    "\"when\" or \"same\"");
}

/* safety_gates */

static void read_gate_agent(struct reader *rd, const struct json *v, void *into)
{
    read_agent(rd, v, &((struct rule *)into)->gate.agent);
}

static void read_gate_states(struct reader *rd, const struct json *v,
                             void *into)
{
    read_bits(rd, v, states, sizeof(states) / sizeof(*states),
              &((struct rule *)into)->gate.states);
}

static const struct field gate_fields[] = {
    RULE_NAME,
    RULE_MATCH,
    RULE_WHEN,
    {"agent", read_gate_agent, "who must be well for these messages to go"},
    {"states", read_gate_states, NULL},
    RULE_HOLD,
    RULE_AFTER,
};

static void end_gate(struct reader *rd, const struct json *v, struct rule *rule)
{
    (void)rd;
    if (!json_get(v, STR("states")))
        rule->gate.states = 1u << AGENT_DEAD | 1u << AGENT_ERROR;
}

/* dependencies */

static void read_need_type(struct reader *rd, const struct json *v, void *into)
{
    read_kinds(rd, v, &((struct need *)into)->type);
}

static void read_need_from(struct reader *rd, const struct json *v, void *into)
{
    read_agents(rd, v, &((struct need *)into)->from);
}

static void read_need_to(struct reader *rd, const struct json *v, void *into)
{
    read_agents(rd, v, &((struct need *)into)->to);
}

static void read_need_approved(struct reader *rd, const struct json *v,
                               void *into)
{
    if (v->type != JSON_BOOL)
        problem_add(rd, v->at,
                    "\"approved\" must be true or false, not %s; leave it out "
                    "where either will do",
                    show_value(v).text);
    else
        ((struct need *)into)->wants = v->b ? APPROVED : DISAPPROVED;
}

static void read_need_within(struct reader *rd, const struct json *v,
                             void *into)
{
    read_duration(rd, v, ZERO_IS_WRONG, &((struct need *)into)->within_ms);
}

static void read_need(struct reader *rd, const struct json *v, struct need *out)
{
    static const struct field fields[] = {
        {"type", read_need_type,
         "what must have happened, like \"SUBMITTED\", or \"RESULT\" for an "
         "agent's answer"},
        {"from", read_need_from, NULL},
        {"to", read_need_to, NULL},
        {"approved", read_need_approved, NULL},
        {"within", read_need_within, NULL},
    };
    const char *was = rd->what;

    if (!is_object(rd, v, "what must have happened"))
        return;
    rd->what = "a prerequisite";
    READ_FIELDS(rd, v, out, fields);
    rd->what = was;
}

static void read_after(struct reader *rd, const struct json *v, void *into)
{
    struct rule *rule = into;
    bool is_list = v->type == JSON_ARR;
    size_t n = is_list ? v->kids.n : 1, i = 0, n_types = 0;
    struct need *list;

    list = n && n <= NEED_TYPES_MAX ? reader_array(rd, n, sizeof(*list)) : NULL;
    if (list && !is_list)
        read_need(rd, v, &list[0]);
    if (list && is_list)
        JSON_EACH(kid, v)
    read_need(rd, kid, &list[i++]);
    for (i = 0; list && i < n; i++)
        n_types += list[i].type.n;
    if (n == 0 || n > NEED_TYPES_MAX || n_types > NEED_TYPES_MAX)
        problem_add(rd, v->at,
                    "\"after\" must name 1 to %d kinds of what must have "
                    "happened, all of them together",
                    NEED_TYPES_MAX);
    else if (list)
        rule->after.needs = list, rule->after.n_needs = n;
}

static const struct field dependency_fields[] = {
    RULE_NAME,
    RULE_MATCH,
    RULE_WHEN,
    {"after", read_after,
     "what must have happened before, like [{\"type\": \"SUBMITTED\", "
     "\"from\": \"Jay\"}]"},
    RULE_HOLD,
    RULE_AFTER,
};

/* freshness */

static void read_fresh_agent(struct reader *rd, const struct json *v,
                             void *into)
{
    read_agent(rd, v, &((struct rule *)into)->fresh.agent);
}

static void read_fresh_within(struct reader *rd, const struct json *v,
                              void *into)
{
    read_duration(rd, v, ZERO_IS_WRONG,
                  &((struct rule *)into)->fresh.within_ms);
}

static const struct field fresh_fields[] = {
    RULE_NAME,
    RULE_MATCH,
    RULE_WHEN,
    {"agent", read_fresh_agent, NULL},
    {"within", read_fresh_within, "how old its data may be, like \"24h\""},
    RULE_HOLD,
    RULE_AFTER,
};

/* capacity */

static void read_queue(struct reader *rd, const struct json *v, void *into)
{
    read_int(rd, v, 1, 1000 * 1000, &((struct rule *)into)->room.queue);
}

static void read_batch_most(struct reader *rd, const struct json *v, void *into)
{
    read_int(rd, v, 2, 100, &((struct rule *)into)->room.batch_most);
}

static void read_batch(struct reader *rd, const struct json *v, void *into)
{
    static const struct field fields[] = {
        {"most", read_batch_most, "how many are let go as one"},
    };
    const char *was = rd->what;

    if (!is_object(rd, v, "batch"))
        return;
    rd->what = "batch";
    READ_FIELDS(rd, v, into, fields);
    rd->what = was;
}

static const struct field capacity_fields[] = {
    RULE_NAME,
    RULE_MATCH,
    RULE_WHEN,
    {"queue", read_queue, "how many unfinished tasks the target may have"},
    {"batch", read_batch, NULL},
    RULE_HOLD,
    RULE_AFTER,
};

/* sla */

static void read_sla_within(struct reader *rd, const struct json *v, void *into)
{
    read_duration(rd, v, ZERO_IS_WRONG, &((struct rule *)into)->sla.within_ms);
}

static const struct field sla_fields[] = {
    RULE_NAME,
    RULE_MATCH,
    RULE_WHEN,
    {"within", read_sla_within, "when the answer is due, like \"15m\""},
};

/* All of them. */

#define FIELDS(list) (list), sizeof(list) / sizeof(*(list))

static const struct {
    struct str name;
    const char *what;
    const struct field *fields;
    size_t n_fields;
    /* What its fields do not tell by themselves; NULL: nothing. */
    void (*end)(struct reader *rd, const struct json *v, struct rule *rule);
    /* What it would do to every message, where that is surely a mistake. */
    const char *to_all;
} sections[N_SECTIONS] = {
    [SECTION_PRIORITIES] = {STR("priorities"), "a priority",
                            FIELDS(priority_fields), NULL, "raise"},
    [SECTION_DUPLICATES] = {STR("duplicates"), "a rule of duplicates",
                            FIELDS(duplicate_fields), end_duplicate, NULL},
    [SECTION_SUPERSEDING] = {STR("superseding"), "a rule of superseding",
                             FIELDS(duplicate_fields), end_superseding, NULL},
    [SECTION_SAFETY_GATES] = {STR("safety_gates"), "a safety gate",
                              FIELDS(gate_fields), end_gate, "pause"},
    [SECTION_ESCALATIONS] = {STR("escalations"), "an escalation",
                             FIELDS(escalation_fields), end_escalation, NULL},
    [SECTION_DEPENDENCIES] = {STR("dependencies"), "a dependency",
                              FIELDS(dependency_fields), NULL, "hold"},
    [SECTION_FRESHNESS] = {STR("freshness"), "a rule of freshness",
                           FIELDS(fresh_fields), NULL, NULL},
    [SECTION_CAPACITY] = {STR("capacity"), "a rule of capacity",
                          FIELDS(capacity_fields), NULL, NULL},
    [SECTION_SLA] = {STR("sla"), "an SLA", FIELDS(sla_fields), NULL, NULL},
};

struct str rules_section(enum section s)
{
    return (unsigned)s < N_SECTIONS ? sections[s].name : STR("");
}

static void read_name(struct reader *rd, const struct json *v,
                      struct rule *rule)
{
    const struct json *name = json_get(v, STR("rule"));
    const struct rule *other;

    if (!name)
        return; /* its fields tell that */
    read_text(rd, name, RULE_NAME_MAX, &rule->name);
    if (!rule->name.n)
        return;
    rd->rule = rule->name;
    other = map_get(&rd->names, rule->name);
    if (other) {
        unsigned line, col;

        json_where(rd->text, other->at, &line, &col);
        problem_add(rd, name->at,
                    "there is one of that name in line %u already; each needs "
                    "its own",
                    line);
    } else if (map_put(&rd->names, rule->name, rule) != OK) {
        rd->is_out_of_memory = true;
    }
}

static void read_rule(struct reader *rd, enum section s, const struct json *v,
                      struct rule *rule)
{
    rule->section = s;
    rule->at = v->at;
    rule->on_expiry = rd->rules->about.limits.on_expiry;
    rd->rule = (struct str){NULL, 0};
    rd->what = sections[s].what;
    if (is_object(rd, v, sections[s].what)) {
        read_name(rd, v, rule);
        read_fields(rd, v, rule, sections[s].fields, sections[s].n_fields);
        if (sections[s].end)
            sections[s].end(rd, v, rule);
        if (sections[s].to_all && is_for_all(v))
            problem_add(rd, v->at,
                        "it would %s every message; say which by \"match\", "
                        "like {\"to\": \"Rick\", \"type\": \"SUBMISSION\"}",
                        sections[s].to_all);
    }
    rd->rule = (struct str){NULL, 0};
}

/* How many, before room is made for them. */
static size_t count_rules(struct reader *rd, const struct json *root)
{
    size_t n = 0;

    for (unsigned s = 0; s < N_SECTIONS; s++) {
        const struct json *list = json_get(root, sections[s].name);

        if (list && list->type != JSON_ARR)
            problem_add(rd, list->at, "\"%.*s\" must be a list [ … ] of rules",
                        STR_ARG(sections[s].name));
        else if (list)
            n += list->kids.n;
    }
    return n;
}

void read_rules(struct reader *rd, const struct json *root)
{
    struct gate_rules *r = rd->rules;
    size_t n = count_rules(rd, root);

    if (n > GATE_RULES_MAX) {
        problem_add(rd, root->at, "there are %zu rules, and %d may be", n,
                    GATE_RULES_MAX);
        return;
    }
    r->rules = reader_array(rd, n, sizeof(*r->rules));
    for (unsigned s = 0; s < N_SECTIONS && r->rules; s++) {
        const struct json *list = json_get(root, sections[s].name);

        r->first[s] = r->n_rules;
        if (!list || list->type != JSON_ARR)
            continue;
        JSON_EACH(kid, list)
        {
            struct rule *rule = &r->rules[r->n_rules++];

            rule->order = (uint32_t)(r->n_rules - 1 - r->first[s]);
            read_rule(rd, (enum section)s, kid, rule);
        }
    }
    r->first[N_SECTIONS] = r->n_rules;
}
