/* The sections that are lists of rules: one table has the name of each and the
 * fields of its rules. */
#include "gate/rules/rules_reader.h"

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

static void read_match_priority(struct reader *rd, const struct json *v,
                                void *into)
{
    read_bits_value(rd, v, priorities, sizeof(priorities) / sizeof(*priorities),
                    &((struct match *)into)->priorities);
}

static void read_match(struct reader *rd, const struct json *v, void *into)
{
    static const struct field fields[] = {
        {"from", FIELD_AGENTS, .offset = offsetof(struct match, from)},
        {"to", FIELD_AGENTS, .offset = offsetof(struct match, to)},
        {"type", FIELD_KINDS, .offset = offsetof(struct match, type)},
        {"priority", .read = read_match_priority},
    };

    READ_OBJECT(rd, v, &((struct rule *)into)->match, "match", fields);
}

/* The fields of every rule. read_rule_name has read "rule" before the others,
 * so that problems name the rule. */

static void read_when_field(struct reader *rd, const struct json *v, void *into)
{
    read_when(rd, v, &((struct rule *)into)->when);
}

#define IN_RULE(member) .offset = offsetof(struct rule, member)
#define RULE_FIELDS                                                      \
    {"rule", .needed = "give it a unique name, which decisions report"}, \
        {"match", .read = read_match},                                   \
    {                                                                    \
        "when", .read = read_when_field                                  \
    }
#define HOLD_FIELDS                                   \
    {"hold_for", FIELD_DURATION, IN_RULE(hold_ms)},   \
    {                                                 \
        "on_expiry", FIELD_EXPIRY, IN_RULE(on_expiry) \
    }

static void read_raise(struct reader *rd, const struct json *v, void *into)
{
    size_t i;

    if (read_choice_value(rd, v, priorities,
                          sizeof(priorities) / sizeof(*priorities), &i))
        ((struct rule *)into)->raises_to = (enum task_priority)i;
}

static const struct field priority_fields[] = {
    RULE_FIELDS,
    {"priority", .read = read_raise,
     .needed = "the new priority, like \"URGENT\""},
};

/* The keys of "payload.end_client.name" below payload. */
static void read_payload_path(struct reader *rd, struct str path, size_t at,
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
                        quote_text(path).text);
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
        read_payload_path(rd, str_sub(text, head.n, text.n), v->at, &out->path);
    } else if (read_choice_value(rd, v, same_names,
                                 sizeof(same_names) / sizeof(*same_names),
                                 &i)) {
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

static const struct field duplicate_fields[] = {
    RULE_FIELDS,
    {"same", .read = read_same},
    {"within", FIELD_DURATION, IN_RULE(like.within_ms),
     .needed = "how long an earlier message counts, like \"10m\""},
};

static const struct field escalation_fields[] = {
    RULE_FIELDS,
    {"same", .read = read_same},
    {"within", FIELD_DURATION, IN_RULE(like.within_ms)},
};

static const struct same_field same_by_default[] = {
    {.kind = SAME_FROM},      {.kind = SAME_TO},      {.kind = SAME_TYPE},
    {.kind = SAME_REFERENCE}, {.kind = SAME_PAYLOAD},
};

static void end_duplicate(struct reader *rd, const struct json *v,
                          struct rule *rule)
{
    (void)rd, (void)v;
    if (rule->like.n_same)
        return;
    rule->like.same = same_by_default;
    rule->like.n_same = sizeof(same_by_default) / sizeof(*same_by_default);
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
    rule->like.same = same_by_default;
    rule->like.n_same = 3; /* from, to, type */
}

/* An empty "match" matches everything. */
static bool matches_everything(const struct json *v)
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
                    "\"within\" has no effect without \"same\": say what two "
                    "messages have in common, or leave it out");
    if (!has_same && matches_everything(v))
        problem_add(rd, v->at,
                    "it would escalate every message; say which by \"match\", "
                    "\"when\" or \"same\"");
}

static void read_gate_states(struct reader *rd, const struct json *v,
                             void *into)
{
    read_bits_value(rd, v, states, sizeof(states) / sizeof(*states),
                    &((struct rule *)into)->gate.states);
}

static const struct field gate_fields[] = {
    RULE_FIELDS,
    {"agent", FIELD_AGENT, IN_RULE(gate.agent),
     .needed = "the agent that must be well for these messages to go"},
    {"states", .read = read_gate_states},
    HOLD_FIELDS,
};

static void end_gate(struct reader *rd, const struct json *v, struct rule *rule)
{
    (void)rd;
    if (!json_get(v, STR("states")))
        rule->gate.states = 1u << AGENT_DEAD | 1u << AGENT_ERROR;
}

static void read_need_approved(struct reader *rd, const struct json *v,
                               void *into)
{
    if (v->type != JSON_BOOL)
        problem_add(rd, v->at,
                    "\"approved\" must be true or false, not %s; leave it out "
                    "where either will do",
                    quote_value(v).text);
    else
        ((struct need *)into)->wants = v->b ? APPROVED : DISAPPROVED;
}

static void read_need(struct reader *rd, const struct json *v, struct need *out)
{
    static const struct field fields[] = {
        {"type", FIELD_KINDS, .offset = offsetof(struct need, type),
         .needed = "what must have happened, like \"SUBMITTED\", or \"RESULT\" "
                   "for an agent's answer"},
        {"from", FIELD_AGENTS, .offset = offsetof(struct need, from)},
        {"to", FIELD_AGENTS, .offset = offsetof(struct need, to)},
        {"approved", .read = read_need_approved},
        {"within", FIELD_DURATION, .offset = offsetof(struct need, within_ms)},
    };

    READ_OBJECT(rd, v, out, "a prerequisite", fields);
}

static void read_needs(struct reader *rd, const struct json *v, void *into)
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
    RULE_FIELDS,
    {"after", .read = read_needs,
     .needed = "what must have happened before, like [{\"type\": "
               "\"SUBMITTED\", \"from\": \"Jay\"}]"},
    HOLD_FIELDS,
};

static const struct field fresh_fields[] = {
    RULE_FIELDS,
    {"agent", FIELD_AGENT, IN_RULE(fresh.agent)},
    {"within", FIELD_DURATION, IN_RULE(fresh.within_ms),
     .needed = "how old its data may be, like \"24h\""},
    HOLD_FIELDS,
};

static void read_batch(struct reader *rd, const struct json *v, void *into)
{
    static const struct field fields[] = {
        {"most", FIELD_INT, IN_RULE(room.batch_most), 2, 100,
         .needed = "how many are let go as one"},
    };

    READ_OBJECT(rd, v, into, "batch", fields);
}

static const struct field capacity_fields[] = {
    RULE_FIELDS,
    {"queue", FIELD_INT, IN_RULE(room.queue), 1, 1000 * 1000,
     .needed = "how many unfinished tasks the target may have"},
    {"batch", .read = read_batch},
    HOLD_FIELDS,
};

static const struct field sla_fields[] = {
    RULE_FIELDS,
    {"within", FIELD_DURATION, IN_RULE(sla.within_ms),
     .needed = "when the answer is due, like \"15m\""},
};

#define FIELDS(list) (list), sizeof(list) / sizeof(*(list))

static const struct {
    struct str name;
    const char *what;
    const struct field *fields;
    size_t n_fields;
    /* Checks beyond the fields; NULL: none. */
    void (*end)(struct reader *rd, const struct json *v, struct rule *rule);
    /* The effect on every message, where a rule for all messages is surely a
     * mistake. */
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

struct str section_name(enum section s)
{
    return (unsigned)s < N_SECTIONS ? sections[s].name : STR("");
}

static void read_rule_name(struct reader *rd, const struct json *v,
                           struct rule *rule)
{
    const struct json *name = json_get(v, STR("rule"));
    const struct rule *other;

    if (!name)
        return; /* read_fields reports it */
    read_text_value(rd, name, RULE_NAME_MAX, &rule->name);
    if (!rule->name.n)
        return;
    rd->rule = rule->name;
    other = map_get(&rd->names, rule->name);
    if (other) {
        unsigned line, col;

        json_where(rd->text, other->at, &line, &col);
        problem_add(rd, name->at,
                    "the name is already used in line %u; names must be unique",
                    line);
    } else if (map_put(&rd->names, rule->name, rule) != OK) {
        rd->is_out_of_memory = true;
    }
}

static void read_section_rule(struct reader *rd, enum section s,
                              const struct json *v, struct rule *rule)
{
    rule->section = s;
    rule->at = v->at;
    rule->on_expiry = rd->rules->about.limits.on_expiry;
    rd->rule = (struct str){NULL, 0};
    rd->what = sections[s].what;
    if (is_object(rd, v, sections[s].what)) {
        read_rule_name(rd, v, rule);
        read_fields(rd, v, rule, sections[s].fields, sections[s].n_fields);
        if (sections[s].end)
            sections[s].end(rd, v, rule);
        if (sections[s].to_all && matches_everything(v))
            problem_add(rd, v->at,
                        "it would %s every message; say which by \"match\", "
                        "like {\"to\": \"Rick\", \"type\": \"SUBMISSION\"}",
                        sections[s].to_all);
    }
    rd->rule = (struct str){NULL, 0};
}

/* The number of rules, before they are allocated. */
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

void read_rule_sections(struct reader *rd, const struct json *root)
{
    struct gate_rules *r = rd->rules;
    size_t n = count_rules(rd, root);

    if (n > GATE_RULES_MAX) {
        problem_add(rd, root->at, "%zu rules are more than the limit of %d", n,
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
            read_section_rule(rd, (enum section)s, kid, rule);
        }
    }
    r->first[N_SECTIONS] = r->n_rules;
}
