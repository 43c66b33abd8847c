/* Random rules, worlds and messages: the properties of every decision, and a
 * comparison with a plain model that has no index, no keys and no table of
 * questions, and reads the rules from top to bottom. */
#include "test/lib/gate_stage.h"

#include "base/utf8.h"

static const char *const names[] = {"Jay", "Z", "Rick"};
static const char *const kinds[] = {"A", "B", "C"};
static const char *const references[] = {"", "r1", "r2"};
static const char *const payloads[] = {"", "{\"x\":1}", "{\"x\":2,\"y\":[]}",
                                       "{\"y\":[],\"x\":2.0}"};

static bool is_utf8(struct str s)
{
    uint32_t state = 0;

    return utf8_check(&state, s) && state == 0;
}

static unsigned below(unsigned n)
{
    return (unsigned)rand() % n;
}

/* The rules file. */

static char file[16 * 1024];
static size_t file_n;

static void add(const char *text)
{
    size_t n = strlen(text);

    CHECK(file_n + n < sizeof(file));
    memcpy(file + file_n, text, n + 1);
    file_n += n;
}

/* Add a name between two texts. */
static void add_3(const char *head, const char *name, const char *tail)
{
    add(head);
    add(name);
    add(tail);
}

/* Rules with a w in their name have a condition: the target is BUSY; with an o:
 * the message is old. */
static void add_rule(char section, unsigned i, const char *kind,
                     const char *rest)
{
    bool has_when = below(3) == 0, is_of_old = !has_when && below(6) == 0;
    char name[16];

    snprintf(name, sizeof(name), "%c%u%s", section, i,
             has_when    ? "w"
             : is_of_old ? "o"
                         : "");
    add_3("{'rule': '", name, "', ");
    add_3("'match': {'type': '", kind, "'");
    if (below(3) == 0)
        add_3(", 'to': '", names[below(3)], "'");
    if (below(4) == 0)
        add_3(", 'from': '", names[below(3)], "'");
    if (below(6) == 0)
        add_3(", 'priority': '", below(2) ? "NORMAL" : "URGENT", "'");
    add("}, ");
    if (has_when)
        add("'when': {'==': [{'var': 'target.state'}, 'BUSY']}, ");
    if (is_of_old)
        add("'when': {'var': 'message.stale'}, ");
    add(rest);
    add("},");
}

static struct gate_rules *any_rules(void)
{
    static const struct {
        char letter;
        const char *section;
        const char *rest[3];
    } parts[] = {
        {'p',
         "priorities",
         {"'priority': 'URGENT'", "'priority': 'HIGH'", "'priority': 'LOW'"}},
        {'d',
         "duplicates",
         {"'within': '10m'", "'within': '1m'",
          "'same': ['reference'], 'within': '5m'"}},
        {'s',
         "superseding",
         {"'within': '1m'", "'within': '5m'", "'within': '10m'"}},
        {'g',
         "safety_gates",
         {"'agent': 'Z'", "'agent': 'Gone'", "'agent': 'Jay'"}},
        {'e',
         "escalations",
         {"'same': ['payload.x'], 'within': '1h'", "'when': {'==': [1, 2]}",
          "'same': ['from', 'reference'], 'within': '2m'"}},
        {'a',
         "dependencies",
         {"'after': [{'type': 'A'}]",
          "'after': [{'type': 'A', 'from': 'Jay'}, {'type': 'B', 'within':"
          " '5m'}]",
          "'after': [{'type': ['A', 'B'], 'approved': true}]"}},
        {'f',
         "freshness",
         {"'within': '1h'", "'within': '5m'", "'agent': 'Z', 'within': '30m'"}},
        {'c', "capacity", {"'queue': 2", "'queue': 4", "'queue': 1"}},
        {'l', "sla", {"'within': '1h'", "'within': '5m'", "'within': '2d'"}},
    };

    file_n = 0;
    add("{'agents': {'Jay': {}, 'Z': {}, 'Rick': {}, 'Gone': {}}");
    for (size_t s = 0; s < sizeof(parts) / sizeof(*parts); s++) {
        add_3(",'", parts[s].section, "': [");
        for (unsigned i = 0, n = below(3); i < n; i++) {
            unsigned rest = below(3);

            /* an explicit condition would be there twice */
            if (parts[s].letter == 'e' && rest == 1)
                rest = 0;
            add_rule(parts[s].letter, i,
                     parts[s].letter == 'a' ? "C" : kinds[below(3)],
                     parts[s].rest[rest]);
        }
        add("]");
    }
    add("}");
    return rules_of(file);
}

/* The world. */

struct past {
    struct envelope e;
    int64_t at_ms;
    char called[32];
};

struct scene {
    struct world w;
    struct past past[8];
    size_t n_past;
    struct envelope e;
};

/* Distances of the timestamp from now. */
static const int64_t offs[] = {0,          -15 * SECOND, -6 * DAY, -8 * DAY,
                               -600 * DAY, 10 * MINUTE,  13 * HOUR};

static struct envelope any_message(void)
{
    return (struct envelope){
        .from = str_of(below(8) ? names[below(3)] : "jay"),
        .to = str_of(below(8) ? names[below(3)] : "Unknown"),
        .type = str_of(kinds[below(3)]),
        .reference = str_of(references[below(3)]),
        .payload = str_of(payloads[below(4)]),
        .message_id = str_of(below(4) ? "" : "m1"),
        .scope = str_of(below(6) ? "org:a" : "org:b"),
        .priority = (enum task_priority)below(4),
        .at_ms = NOW + offs[below(sizeof(offs) / sizeof(*offs))],
        .is_message = below(8) == 0,
    };
}

static void any_scene(struct scene *s, const struct gate_rules *r)
{
    *s = (struct scene){.e = any_message()};
    for (size_t i = 0; i < 3; i++) {
        struct gate_agent *a = world_has(
            &s->w, names[i], (enum agent_state)(AGENT_ACTIVE + below(6)));

        a->queue = below(6);
        a->queue_max = 4;
        a->may_try = below(2);
        a->data_at_ms = below(3) ? NOW - below(70) * MINUTE : 0;
    }
    for (unsigned i = 0, n = below(5); i < n; i++)
        world_event(&s->w, references[1 + below(2)], names[below(3)],
                    kinds[below(2)], (enum approval)below(3),
                    NOW - (int64_t)(n - i) * 2 * MINUTE);
    s->n_past = below(6);
    for (size_t i = 0; i < s->n_past; i++) {
        struct past *p = &s->past[i];

        p->e = below(2) ? any_message() : s->e;
        p->at_ms = NOW - (int64_t)(s->n_past - i) * 90 * SECOND;
        snprintf(p->called, sizeof(p->called), "P%zu", i);
        world_let_in(&s->w, r, &p->e, p->called, p->at_ms);
    }
    s->e.has_entered = below(4) == 0;
    s->e.is_approved = below(6) == 0;
}

/* The model. */

struct model {
    const struct gate_rules *r;
    const struct scene *s;
    enum task_priority priority;
    struct gate_agent to;
};

struct said {
    enum gate_answer answer;
    enum gate_cause cause;
    struct str rule;
};

static struct gate_agent how_is(const struct scene *s, struct str name)
{
    struct gate_agent a;

    if (!world_agent((void *)&s->w, name, &a))
        a.state = AGENT_DEAD;
    return a;
}

static bool is_old(const struct envelope *e)
{
    return NOW - e->at_ms > 7 * DAY;
}

static bool fits(const struct model *m, const struct rule *r)
{
    bool has_when = r->name.p[r->name.n - 1] == 'w';
    bool is_of_old = r->name.p[r->name.n - 1] == 'o';
    bool is_of_two = r->section == SECTION_DUPLICATES ||
                     r->section == SECTION_SUPERSEDING ||
                     r->section == SECTION_DEPENDENCIES ||
                     (r->section == SECTION_ESCALATIONS && r->like.n_same);

    return rule_fits(r, &m->s->e, m->priority) &&
           (!has_when || m->to.state == AGENT_BUSY) &&
           (!is_of_old || is_old(&m->s->e)) &&
           !(is_of_two && m->s->e.is_message);
}

static int x_of(struct str payload)
{
    return payload.n ? (str_eq(payload, str_of(payloads[1])) ? 1 : 2) : 0;
}

static bool alike(const struct rule *r, const struct envelope *a,
                  const struct envelope *b)
{
    for (size_t i = 0; i < r->like.n_same; i++) {
        bool same = false;

        switch (r->like.same[i].kind) {
        case SAME_FROM: same = str_eq_nocase(a->from, b->from); break;
        case SAME_TO: same = str_eq_nocase(a->to, b->to); break;
        case SAME_TYPE: same = str_eq(a->type, b->type); break;
        case SAME_REFERENCE:
            same = str_eq(a->reference, b->reference) &&
                   (a->reference.n || r->section != SECTION_ESCALATIONS);
            break;
        case SAME_PAYLOAD: same = x_of(a->payload) == x_of(b->payload); break;
        case SAME_PATH:
            same = x_of(a->payload) && x_of(a->payload) == x_of(b->payload);
            break;
        }
        if (!same)
            return false;
    }
    return str_eq(a->scope, b->scope);
}

/* The latest earlier message, of any priority, that a rule is for and considers
 * the same. */
static bool came_before(const struct model *m, const struct rule *r)
{
    for (size_t i = m->s->n_past; i > 0; i--) {
        const struct past *p = &m->s->past[i - 1];
        bool is_for = false;

        for (unsigned k = 0; k < 4; k++)
            is_for |= rule_fits(r, &p->e, (enum task_priority)k);
        if (is_for && !p->e.is_message && alike(r, &p->e, &m->s->e))
            return NOW - p->at_ms < r->like.within_ms;
    }
    return false;
}

static bool has_same_id(const struct model *m)
{
    const struct envelope *e = &m->s->e;

    for (size_t i = 0; i < m->s->n_past; i++) {
        const struct envelope *p = &m->s->past[i].e;

        if (e->message_id.n && str_eq(p->message_id, e->message_id) &&
            str_eq(p->scope, e->scope) && str_eq_nocase(p->from, e->from))
            return true;
    }
    return false;
}

static bool lacks(const struct model *m, const struct rule *r)
{
    const struct world *w = &m->s->w;

    for (size_t i = 0; i < r->after.n_needs; i++) {
        const struct need *n = &r->after.needs[i];
        bool is_met = false;

        /* A later event overrides an earlier one. */
        for (size_t k = 0; k < w->n_events; k++) {
            const struct gate_event *v = &w->events[k].event;

            if (!str_eq(w->events[k].reference, m->s->e.reference) ||
                !match_has(n->type, v->type) ||
                (n->from.n && !match_has_name(n->from, v->from)) ||
                (n->wants && !v->approved))
                continue;
            is_met = (!n->wants || v->approved == n->wants) &&
                     (!n->within_ms || NOW - v->at_ms <= n->within_ms);
        }
        if (!is_met)
            return true;
    }
    return false;
}

/* The verdict of a section, if a rule of it fires. */
static bool says(const struct model *m, const struct rule *r, struct said *out)
{
    const struct envelope *e = &m->s->e;
    struct gate_agent of;

    out->rule = r->name;
    switch (r->section) {
    case SECTION_DUPLICATES:
        *out = (struct said){GATE_DROP, PASS_REPEATED, r->name};
        return came_before(m, r);
    case SECTION_SUPERSEDING:
        *out = (struct said){GATE_DROP, PASS_SUPERSEDED, r->name};
        return came_before(m, r);
    case SECTION_SAFETY_GATES:
        *out = (struct said){GATE_PAUSE, PASS_GATED, r->name};
        return how_is(m->s, r->gate.agent).state >= AGENT_ERROR;
    case SECTION_ESCALATIONS:
        *out = (struct said){GATE_ESCALATE, PASS_RULE, r->name};
        return !r->like.n_same || (!e->has_entered && came_before(m, r));
    case SECTION_DEPENDENCIES:
        *out = (struct said){e->reference.n ? GATE_HOLD_INPUT : GATE_ESCALATE,
                             PASS_PREREQUISITE, r->name};
        return lacks(m, r);
    case SECTION_FRESHNESS:
        *out = (struct said){GATE_HOLD_INPUT, PASS_STALE, r->name};
        of = r->fresh.agent.n ? how_is(m->s, r->fresh.agent) : m->to;
        return !of.data_at_ms || NOW - of.data_at_ms > r->fresh.within_ms;
    case SECTION_PRIORITIES:
    case SECTION_CAPACITY:
    case SECTION_SLA:
    case N_SECTIONS: break;
    }
    return false;
}

static bool section_says(const struct model *m, enum section s,
                         struct said *out)
{
    for (size_t i = m->r->first[s]; i < m->r->first[s + 1]; i++)
        if (fits(m, &m->r->rules[i]) && says(m, &m->r->rules[i], out))
            return true;
    return false;
}

static bool is_full(const struct model *m, struct said *out)
{
    int64_t most = m->to.queue_max;

    *out = (struct said){GATE_HOLD_CAPACITY, PASS_CAPACITY, STR("")};
    for (size_t i = m->r->first[SECTION_CAPACITY];
         i < m->r->first[SECTION_CAPACITY + 1]; i++)
        if (fits(m, &m->r->rules[i])) {
            most = m->r->rules[i].room.queue;
            out->rule = m->r->rules[i].name;
            break;
        }
    return m->to.is_known && m->to.queue >= most;
}

static bool must_wait(const struct model *m, struct said *out)
{
    if (!m->s->e.is_approved && (section_says(m, SECTION_DEPENDENCIES, out) ||
                                 section_says(m, SECTION_FRESHNESS, out)))
        return true;
    *out = (struct said){GATE_HOLD_CAPACITY, PASS_TARGET_ERROR, STR("")};
    return (m->to.state == AGENT_ERROR && !m->to.may_try) || is_full(m, out);
}

static struct said judge(struct model *m)
{
    const struct envelope *e = &m->s->e;
    struct str raised_by = STR("");
    enum task_priority to = e->priority;
    struct said out;

    m->to = how_is(m->s, e->to);
    m->priority = e->priority;
    for (size_t i = m->r->first[SECTION_PRIORITIES];
         i < m->r->first[SECTION_PRIORITIES + 1]; i++)
        if (fits(m, &m->r->rules[i]) && m->r->rules[i].raises_to < to) {
            to = m->r->rules[i].raises_to;
            raised_by = m->r->rules[i].name;
        }
    m->priority = to;
    if (!e->has_entered && !e->is_approved) {
        if (has_same_id(m))
            return (struct said){GATE_DROP, PASS_REPEATED, STR("")};
        if (section_says(m, SECTION_DUPLICATES, &out) ||
            section_says(m, SECTION_SUPERSEDING, &out))
            return out;
    }
    if (section_says(m, SECTION_SAFETY_GATES, &out) ||
        (!e->is_approved && section_says(m, SECTION_ESCALATIONS, &out)))
        return out;
    if (m->to.state == AGENT_DEAD && !e->is_message)
        return (struct said){e->is_approved ? GATE_HOLD_CAPACITY
                                            : GATE_ESCALATE,
                             PASS_TARGET_DEAD, STR("")};
    if (must_wait(m, &out)) {
        if (to != PRIORITY_URGENT)
            return out;
        return (struct said){GATE_ROUTE, PASS_URGENT, raised_by};
    }
    return (struct said){GATE_ROUTE, e->is_approved ? PASS_APPROVED : PASS_FREE,
                         STR("")};
}

/* Properties of every answer. */

static void check_pass(const struct scene *s, const struct gate_result *p)
{
    struct str reason = str_of(p->reason);

    CHECK(p->answer >= GATE_ROUTE && p->answer <= GATE_DROP);
    CHECK(reason.n > 0 && reason.n < PASS_REASON_MAX);
    CHECK(is_utf8(reason));
    CHECK(p->priority <= s->e.priority);
    CHECK(gate_result_is_hold(p->answer) == (p->n_keys > 0));
    CHECK(gate_result_is_hold(p->answer) == (p->held_until_ms > NOW));
    CHECK(p->n_keys <= PASS_KEYS_MAX);
    CHECK(p->is_stale == is_old(&s->e));
    CHECK((p->warning[0] != '\0') ==
          (p->is_stale || s->e.at_ms - NOW > MINUTE));
    CHECK((p->answer == GATE_ROUTE) || p->sla_ms == 0);
    CHECK((p->sla_ms > 0) == (p->sla[0] != '\0'));
    if (s->e.has_entered || s->e.is_approved)
        CHECK(p->answer != GATE_DROP);
    if (p->priority == PRIORITY_URGENT && !gate_result_is_hold(p->answer))
        CHECK(p->cause != PASS_GATED);
}

/* A safety gate stops URGENT messages too. */
static void check_gate(const struct gate_rules *r, struct scene *s,
                       const struct gate_result *p)
{
    struct envelope urgent = s->e;

    if (p->answer != GATE_PAUSE || r->first[SECTION_PRIORITIES + 1])
        return;
    for (size_t i = 0; i < r->n_rules; i++)
        if (r->rules[i].match.priorities)
            return;
    urgent.priority = PRIORITY_URGENT;
    CHECK_INT(decided(r, &s->w, &urgent).answer, GATE_PAUSE);
}

static bool is_same_pass(const struct gate_result *a,
                         const struct gate_result *b)
{
    return a->answer == b->answer && a->cause == b->cause &&
           str_eq(a->rule, b->rule) && strcmp(a->reason, b->reason) == 0 &&
           a->priority == b->priority && a->sla_ms == b->sla_ms &&
           a->held_until_ms == b->held_until_ms && a->n_keys == b->n_keys &&
           str_eq(a->repeats, b->repeats) && a->is_stale == b->is_stale &&
           strcmp(a->warning, b->warning) == 0;
}

static void no_line(void *ctx, struct str section, struct str rule, bool fired,
                    struct str why)
{
    (void)rule, (void)fired;
    CHECK(section.n > 0 && is_utf8(why));
    ++*(int *)ctx;
}

/* Decide again, without the index, and with a trace. */
static void check_again(const struct gate_rules *r, struct scene *s,
                        const struct gate_result *p)
{
    struct gate_view v = world_view(&s->w);
    struct gate_rules plain = *r;
    int lines = 0;
    struct gate_trace t = {no_line, &lines};
    struct gate_result again = decided(r, &s->w, &s->e);

    CHECK(is_same_pass(p, &again));
    plain.index = NULL;
    again = decided(&plain, &s->w, &s->e);
    CHECK(is_same_pass(p, &again));
    gate_decide(r, &v, &s->e, NOW, &again, &t);
    CHECK(is_same_pass(p, &again));
}

/* When the cause of a hold goes away, one of its keys is about it. */
static void check_keys(const struct gate_rules *r, struct scene *s,
                       const struct gate_result *p)
{
    bool has_look = waits_for(p, "look");

    if (!gate_result_is_hold(p->answer))
        return;
    for (size_t i = 0; i < s->w.n_agents; i++) {
        struct world w = s->w;
        char key[64];

        /* Change one agent in any way: if the message may go now, a key named
         * the agent. */
        w.agents[i].state = AGENT_IDLE;
        w.agents[i].data_at_ms = NOW;
        snprintf(key, sizeof(key), "agent:%.*s", STR_ARG(w.agents[i].name));
        if (decided(r, &w, &s->e).answer == GATE_ROUTE)
            CHECK(has_look || waits_for(p, key));
        w = s->w;
        w.agents[i].queue = 0;
        snprintf(key, sizeof(key), "queue:%.*s", STR_ARG(w.agents[i].name));
        if (decided(r, &w, &s->e).answer == GATE_ROUTE)
            CHECK(has_look || waits_for(p, key));
    }
    for (size_t k = 0; k < 2; k++) {
        struct world w = s->w;
        char key[64];

        world_event(&w, s->e.reference.n ? s->e.reference.p : "none", "Jay",
                    kinds[k], APPROVED, NOW);
        snprintf(key, sizeof(key), "event:%.*s:%s", STR_ARG(s->e.reference),
                 kinds[k]);
        if (decided(r, &w, &s->e).answer == GATE_ROUTE)
            CHECK(has_look || waits_for(p, key));
    }
}

static void run(unsigned seed, int n_rules, int n_scenes)
{
    static struct scene s;
    int met[N_GATE_ANSWERS] = {0};

    srand(seed);
    for (int i = 0; i < n_rules; i++) {
        struct gate_rules *r = any_rules();

        for (int k = 0; k < n_scenes; k++) {
            struct model m = {.r = r, .s = &s};
            struct said said;
            struct gate_result p;

            any_scene(&s, r);
            p = decided(r, &s.w, &s.e);
            said = judge(&m);
            if (p.answer != said.answer || p.cause != said.cause ||
                !str_eq(p.rule, said.rule))
                T_FAIL("%d %d by %.*s (%s), not %d %d by %.*s; %s", p.answer,
                       p.cause, STR_ARG(p.rule), p.reason, said.answer,
                       said.cause, STR_ARG(said.rule), file);
            CHECK_INT(p.priority, m.priority);
            check_pass(&s, &p);
            check_again(r, &s, &p);
            check_gate(r, &s, &p);
            check_keys(r, &s, &p);
            met[p.answer]++;
        }
        gate_rules_free(r);
    }
    for (int a = GATE_ROUTE; a <= GATE_DROP; a++)
        CHECK(met[a] > 0);
}

TEST(random_decisions_are_those_of_the_plain_model)
{
    const char *stress = getenv("STRESS");
    bool is_full = stress && strcmp(stress, "full") == 0;

    run(1, is_full ? 20000 : 400, 40);
}
