/* The data that conditions may read:
 *
 *   message   message_id, from, to, type, priority (after raising),
 *             timestamp, stale, reference, payload, context
 *   target    name, known, state, queue, queue_max, data_age_ms (null:
 *             unknown), backup
 *   sender    the same for the sender
 *   agents    the same for each declared agent, by name
 *   history   the events of the reference, oldest first: type, from, to,
 *             message_id, approved (true, false or null), age_ms
 *   now       the time, in the format of message.timestamp
 *
 * Each part is built when a condition first reads it. */
#include "gate/rules/evaluation.h"

#include "base/fault.h"
#include "base/rfc3339.h"
#include "gate/rules/logic.h"

/* An object or an array that grows at its end. */
struct tree {
    struct arena *arena;
    struct json *root, *last;
    bool is_short; /* memory ran out */
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

static void tree_add_str(struct tree *t, struct str key, struct str s)
{
    tree_add(t, key,
             s.n ? (struct json){.type = JSON_STR, .s = s}
                 : (struct json){.type = JSON_NULL});
}

static void tree_add_int(struct tree *t, struct str key, int64_t i)
{
    tree_add(t, key, (struct json){.type = JSON_INT, .i = i});
}

static struct json bool_or_null(bool is_given, bool b)
{
    return is_given ? (struct json){.type = JSON_BOOL, .b = b}
                    : (struct json){.type = JSON_NULL};
}

static struct str time_text(struct evaluation *ev, int64_t ms)
{
    char *text = arena_alloc(ev->scratch, RFC3339_BYTES);

    return text ? rfc3339_write(ms, text) : STR("");
}

const struct json *eval_fields(struct evaluation *ev)
{
    if (!ev->has_fields) {
        ev->has_fields = true;
        ev->fields = ev->e->fields;
        if (!ev->fields && ev->e->payload.n)
            ev->fields = json_parse(ev->scratch, ev->e->payload, 0, NULL);
    }
    return ev->fields;
}

static struct json *message_tree(struct evaluation *ev)
{
    struct tree t = tree_new(ev->scratch, JSON_OBJ);
    const struct envelope *e = ev->e;
    const struct json *fields = eval_fields(ev);

    if (e->payload.n && !fields)
        return NULL; /* could not be parsed for lack of memory */
    tree_add_str(&t, STR("message_id"), e->message_id);
    tree_add_str(&t, STR("from"), e->from);
    tree_add_str(&t, STR("to"), e->to);
    tree_add_str(&t, STR("type"), e->type);
    tree_add_str(&t, STR("priority"), task_priority_name(ev->out->priority));
    tree_add_str(&t, STR("timestamp"), time_text(ev, e->at_ms));
    tree_add(&t, STR("stale"), bool_or_null(true, ev->out->is_stale));
    tree_add_str(&t, STR("reference"), e->reference);
    tree_add(&t, STR("payload"),
             fields ? *fields : (struct json){.type = JSON_OBJ});
    tree_add_str(&t, STR("context"), e->context);
    return t.is_short ? NULL : t.root;
}

static struct json *agent_tree(struct evaluation *ev,
                               const struct gate_agent *of)
{
    struct tree t = tree_new(ev->scratch, JSON_OBJ);

    tree_add_str(&t, STR("name"), of->name);
    tree_add(&t, STR("known"), bool_or_null(true, of->is_known));
    tree_add_str(&t, STR("state"), agent_state_name(of->state));
    tree_add_int(&t, STR("queue"), of->queue);
    tree_add_int(&t, STR("queue_max"), of->queue_max);
    if (of->data_at_ms)
        tree_add_int(&t, STR("data_age_ms"), eval_age(ev, of->data_at_ms));
    else
        tree_add_str(&t, STR("data_age_ms"), STR(""));
    tree_add_str(&t, STR("backup"), of->backup);
    return t.is_short ? NULL : t.root;
}

static struct json *sender_tree(struct evaluation *ev)
{
    struct gate_agent of;

    eval_agent(ev, ev->e->from, &of);
    return agent_tree(ev, &of);
}

static struct json *agents_tree(struct evaluation *ev)
{
    struct tree t = tree_new(ev->scratch, JSON_OBJ);
    struct strs names = ev->rules->about.agents;

    for (size_t i = 0; i < names.n && !t.is_short; i++) {
        struct gate_agent of;
        struct json *one;

        eval_agent(ev, names.list[i], &of);
        one = agent_tree(ev, &of);
        t.is_short |= !one;
        if (one)
            tree_add(&t, names.list[i], *one);
    }
    return t.is_short ? NULL : t.root;
}

static struct json *event_tree(struct evaluation *ev,
                               const struct gate_event *v)
{
    struct tree t = tree_new(ev->scratch, JSON_OBJ);

    tree_add_str(&t, STR("type"), v->type);
    tree_add_str(&t, STR("from"), v->from);
    tree_add_str(&t, STR("to"), v->to);
    tree_add_str(&t, STR("message_id"), v->message_id);
    tree_add(
        &t, STR("approved"),
        bool_or_null(v->approved != APPROVAL_NONE, v->approved == APPROVED));
    tree_add_int(&t, STR("age_ms"), eval_age(ev, v->at_ms));
    return t.is_short ? NULL : t.root;
}

static struct json *history_tree(struct evaluation *ev)
{
    struct tree t = tree_new(ev->scratch, JSON_ARR);

    eval_events(ev);
    for (size_t i = 0; i < ev->n_events && !t.is_short; i++) {
        struct json *one = event_tree(ev, &ev->events[i]);

        t.is_short |= !one;
        if (one)
            tree_add(&t, STR(""), *one);
    }
    return t.is_short ? NULL : t.root;
}

static struct json *now_tree(struct evaluation *ev)
{
    struct json *v = arena_alloc(ev->scratch, sizeof(*v));

    if (v)
        *v = (struct json){.type = JSON_STR, .s = time_text(ev, ev->now_ms)};
    return v;
}

static struct json *target_tree(struct evaluation *ev)
{
    return agent_tree(ev, &ev->target);
}

static const struct {
    struct str name;
    struct json *(*make)(struct evaluation *ev);
} facts[N_FACTS] = {
    {STR("message"), message_tree}, {STR("target"), target_tree},
    {STR("sender"), sender_tree},   {STR("agents"), agents_tree},
    {STR("history"), history_tree}, {STR("now"), now_tree},
};

static const struct json *get_fact(struct evaluation *ev, size_t i)
{
    if (!ev->facts[i]) {
        ev->facts[i] = facts[i].make(ev);
        ev->lacks_facts |= !ev->facts[i];
    }
    return ev->facts[i];
}

/* All data, for a condition that reads the whole. */
static const struct json *all_facts(struct evaluation *ev)
{
    struct tree t = tree_new(ev->scratch, JSON_OBJ);

    for (size_t i = 0; i < N_FACTS; i++) {
        const struct json *v = get_fact(ev, i);

        if (v)
            tree_add(&t, facts[i].name, *v);
    }
    ev->lacks_facts |= t.is_short;
    return t.root;
}

static const struct json *find_fact(void *ctx, struct str first)
{
    for (size_t i = 0; i < N_FACTS; i++)
        if (str_eq(first, facts[i].name))
            return get_fact(ctx, i);
    return first.n ? NULL : all_facts(ctx);
}

enum holds rule_holds(struct evaluation *ev, const struct rule *r)
{
    struct logic_data data = {find_fact, ev};
    struct logic_room *room = PLANTED("gate.room_per_rule") ? NULL : &ev->room;

    if (!r->when)
        return HOLDS_YES;
    ev->lacks_facts = false;
    switch (logic_holds_within(r->when, &data, ev->scratch, room, NULL)) {
    case LOGIC_NO: return ev->lacks_facts ? HOLDS_FAILED : HOLDS_NO;
    case LOGIC_YES: return ev->lacks_facts ? HOLDS_FAILED : HOLDS_YES;
    case LOGIC_FAILED: break;
    }
    return HOLDS_FAILED;
}

/* Only the message itself does not change, but it can become stale. */
static void note_change(void *ctx, const struct str *path, size_t n)
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
        logic_mentions(r->when, note_change, &may_change);
    return may_change;
}
