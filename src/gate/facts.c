/* Conditions, and what they may look at:
 *
 *   message   message_id, from, to, type, priority (as it was raised),
 *             timestamp, stale, reference, payload, context
 *   target    name, known, state, queue, queue_max, data_age_ms (null: nobody
 *             knows), backup
 *   sender    the same of who sent it
 *   agents    the same of each that is declared, by its name
 *   history   what happened for its reference, oldest first: type, from, to,
 *             message_id, approved (true, false or null), age_ms
 *   now       the time, as message.timestamp
 *
 * Each is made when a condition first looks at it. */
#include "gate/asked.h"

#include "base/fault.h"
#include "base/rfc3339.h"
#include "gate/logic.h"

/* An object or an array that grows at its end. */
struct tree {
    struct arena *arena;
    struct json *root, *last;
    bool is_short; /* of memory */
};

static struct tree tree_new(struct arena *a, enum json_type type)
{
    struct tree t = {.arena = a, .root = arena_alloc(a, sizeof(struct json))};

    if (t.root)
        t.root->type = type;
    t.is_short = !t.root;
    return t;
}

static struct json *tree_add(struct tree *t, struct str key, struct json v)
{
    struct json *kid = t->is_short ? NULL : arena_alloc(t->arena, sizeof(*kid));

    if (!kid) {
        t->is_short = true;
        return NULL;
    }
    *kid = v;
    kid->key = key;
    kid->next = NULL;
    if (t->last)
        t->last->next = kid;
    else
        t->root->kids.first = kid;
    t->last = kid;
    t->root->kids.n++;
    return kid;
}

static void add_str(struct tree *t, struct str key, struct str s)
{
    tree_add(t, key,
             s.n ? (struct json){.type = JSON_STR, .s = s}
                 : (struct json){.type = JSON_NULL});
}

static void add_int(struct tree *t, struct str key, int64_t i)
{
    tree_add(t, key, (struct json){.type = JSON_INT, .i = i});
}

static struct json bool_or_null(bool is_given, bool b)
{
    return is_given ? (struct json){.type = JSON_BOOL, .b = b}
                    : (struct json){.type = JSON_NULL};
}

static struct str moment(struct asked *a, int64_t ms)
{
    char *text = arena_alloc(a->scratch, RFC3339_BYTES);

    return text ? rfc3339_write(ms, text) : STR("");
}

const struct json *asked_fields(struct asked *a)
{
    if (!a->has_fields) {
        a->has_fields = true;
        a->fields = a->e->fields;
        if (!a->fields && a->e->payload.n)
            a->fields = json_parse(a->scratch, a->e->payload, 0, NULL);
    }
    return a->fields;
}

static struct json *message_tree(struct asked *a)
{
    struct tree t = tree_new(a->scratch, JSON_OBJ);
    const struct envelope *e = a->e;
    const struct json *fields = asked_fields(a);

    if (e->payload.n && !fields)
        return NULL; /* no memory for it: nobody can tell */
    add_str(&t, STR("message_id"), e->message_id);
    add_str(&t, STR("from"), e->from);
    add_str(&t, STR("to"), e->to);
    add_str(&t, STR("type"), e->type);
    add_str(&t, STR("priority"), task_priority_name(a->out->priority));
    add_str(&t, STR("timestamp"), moment(a, e->at_ms));
    tree_add(&t, STR("stale"), bool_or_null(true, a->out->is_stale));
    add_str(&t, STR("reference"), e->reference);
    tree_add(&t, STR("payload"),
             fields ? *fields : (struct json){.type = JSON_OBJ});
    add_str(&t, STR("context"), e->context);
    return t.is_short ? NULL : t.root;
}

static struct json *agent_tree(struct asked *a, const struct gate_agent *of)
{
    struct tree t = tree_new(a->scratch, JSON_OBJ);

    add_str(&t, STR("name"), of->name);
    tree_add(&t, STR("known"), bool_or_null(true, of->is_known));
    add_str(&t, STR("state"), agent_state_name(of->state));
    add_int(&t, STR("queue"), of->queue);
    add_int(&t, STR("queue_max"), of->queue_max);
    if (of->data_at_ms)
        add_int(&t, STR("data_age_ms"), asked_age(a, of->data_at_ms));
    else
        add_str(&t, STR("data_age_ms"), STR(""));
    add_str(&t, STR("backup"), of->backup);
    return t.is_short ? NULL : t.root;
}

static struct json *sender_tree(struct asked *a)
{
    struct gate_agent of;

    asked_agent(a, a->e->from, &of);
    return agent_tree(a, &of);
}

static struct json *agents_tree(struct asked *a)
{
    struct tree t = tree_new(a->scratch, JSON_OBJ);
    struct strs names = a->rules->about.agents;

    for (size_t i = 0; i < names.n && !t.is_short; i++) {
        struct gate_agent of;
        struct json *one;

        asked_agent(a, names.list[i], &of);
        one = agent_tree(a, &of);
        t.is_short |= !one;
        if (one)
            tree_add(&t, names.list[i], *one);
    }
    return t.is_short ? NULL : t.root;
}

static struct json *event_tree(struct asked *a, const struct gate_event *v)
{
    struct tree t = tree_new(a->scratch, JSON_OBJ);

    add_str(&t, STR("type"), v->type);
    add_str(&t, STR("from"), v->from);
    add_str(&t, STR("to"), v->to);
    add_str(&t, STR("message_id"), v->message_id);
    tree_add(
        &t, STR("approved"),
        bool_or_null(v->approved != APPROVAL_NONE, v->approved == APPROVED));
    add_int(&t, STR("age_ms"), asked_age(a, v->at_ms));
    return t.is_short ? NULL : t.root;
}

static struct json *history_tree(struct asked *a)
{
    struct tree t = tree_new(a->scratch, JSON_ARR);

    asked_events(a);
    for (size_t i = 0; i < a->n_events && !t.is_short; i++) {
        struct json *one = event_tree(a, &a->events[i]);

        t.is_short |= !one;
        if (one)
            tree_add(&t, STR(""), *one);
    }
    return t.is_short ? NULL : t.root;
}

static struct json *now_tree(struct asked *a)
{
    struct json *v = arena_alloc(a->scratch, sizeof(*v));

    if (v)
        *v = (struct json){.type = JSON_STR, .s = moment(a, a->now_ms)};
    return v;
}

static struct json *target_tree(struct asked *a)
{
    return agent_tree(a, &a->target);
}

/* In the order of enum fact. */
static const struct {
    struct str name;
    struct json *(*make)(struct asked *a);
} facts[N_FACTS] = {
    {STR("message"), message_tree}, {STR("target"), target_tree},
    {STR("sender"), sender_tree},   {STR("agents"), agents_tree},
    {STR("history"), history_tree}, {STR("now"), now_tree},
};

static const struct json *fact(struct asked *a, size_t i)
{
    if (!a->facts[i]) {
        a->facts[i] = facts[i].make(a);
        a->lacks_facts |= !a->facts[i];
    }
    return a->facts[i];
}

/* All of it, for who looks at the whole. */
static const struct json *whole(struct asked *a)
{
    struct tree t = tree_new(a->scratch, JSON_OBJ);

    for (size_t i = 0; i < N_FACTS; i++) {
        const struct json *v = fact(a, i);

        if (v)
            tree_add(&t, facts[i].name, *v);
    }
    a->lacks_facts |= t.is_short;
    return t.root;
}

static const struct json *find_fact(void *ctx, struct str first)
{
    for (size_t i = 0; i < N_FACTS; i++)
        if (str_eq(first, facts[i].name))
            return fact(ctx, i);
    return first.n ? NULL : whole(ctx);
}

enum holds rule_holds(struct asked *a, const struct rule *r)
{
    struct logic_data data = {find_fact, a};
    struct logic_room *room = PLANTED("gate.room_per_rule") ? NULL : &a->room;

    if (!r->when)
        return HOLDS_YES;
    a->lacks_facts = false;
    switch (logic_holds_within(r->when, &data, a->scratch, room, NULL)) {
    case LOGIC_NO: return a->lacks_facts ? HOLDS_FAILED : HOLDS_NO;
    case LOGIC_YES: return a->lacks_facts ? HOLDS_FAILED : HOLDS_YES;
    case LOGIC_FAILED: break;
    }
    return HOLDS_FAILED;
}

/* Only the message itself stays as it is, and even that grows old. */
static void on_mention(void *ctx, const struct str *path, size_t n)
{
    bool *may_change = ctx;

    if (n == 0 || !str_eq(path[0], STR("message")) ||
        (n > 1 && str_eq(path[1], STR("stale"))))
        *may_change = true;
}

bool rule_may_change(const struct rule *r)
{
    bool may_change = false;

    if (r->when)
        logic_mentions(r->when, on_mention, &may_change);
    return may_change;
}
