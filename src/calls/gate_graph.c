/* GET /api/gate/graph: the rules as a graph, of themselves, of a task or of a
 * reference: who must have said what before what may go, what of it is so, and
 * which of it is in the way.
 *
 * Rules name agents, and who may not see an agent is told of no rule that names
 * it: not even that there is one of that name. But for what holds a message of
 * their own: whose word or health it waits for they are told with the answer to
 * it, and here alike. Admins see all of them. What happened counts within a
 * scope, and is told as POST /api/gate would. */
#include "calls/internal.h"

#include "base/fault.h"

enum {
    EDGES_MAX = 500,
    NODES_MAX = 200,
    GRAPH_SCRATCH_BYTES = 8 * 1024 * 1024,
};

struct sketch {
    struct calls *calls;
    const struct caller *caller;
    struct eyes eyes;
    struct json_out out;
    struct str nodes[NODES_MAX];
    bool is_named[NODES_MAX]; /* told of, though perhaps not seen */
    size_t n_nodes, n_edges;
    bool is_held;  /* the task is: then something blocks it */
    bool is_asked; /* or it was, and a person is asked about it */
    bool is_whole;
};

static void put_approval(struct json_out *out, enum approval a)
{
    json_key(out, STR("approved"));
    if (a == APPROVAL_NONE)
        json_put_null(out);
    else
        json_put_bool(out, a == APPROVED);
}

static void put_list(struct json_out *out, const char *key, struct strs list)
{
    json_key(out, str_of(key));
    json_open(out, '[');
    for (size_t i = 0; i < list.n; i++)
        json_put_str(out, list.list[i]);
    json_close(out, ']');
}

/* Who may be told of. */

static bool is_told(const struct sketch *k, struct str name)
{
    return caller_is_admin(k->caller) ||
           str_eq_nocase(name, caller_name(k->caller)) ||
           registry_find(k->calls->registry, name, &k->eyes);
}

static bool are_told(const struct sketch *k, struct strs names)
{
    for (size_t i = 0; i < names.n; i++)
        if (!is_told(k, names.list[i]))
            return false;
    return true;
}

/* Whether the message waits for it, whose reason then says of whom. */
static bool is_in_the_way(const struct sketch *k, const struct gate_edge *e)
{
    return (k->is_held || k->is_asked) && e->is_blocking && e->is_for_it;
}

/* Whom else a rule is for is never said. */
static bool may_be_told(const struct sketch *k, const struct gate_edge *e)
{
    return are_told(k, e->sender) && are_told(k, e->to) &&
           (is_in_the_way(k, e) ||
            (are_told(k, e->from) && are_told(k, e->said_to)));
}

/* False: there are as many as may. Names of rules live as long as the rules. */
static bool add_node(struct sketch *k, struct str name, bool is_named)
{
    size_t i = 0;

    while (i < k->n_nodes && !str_eq_nocase(k->nodes[i], name))
        i++;
    if (i == NODES_MAX)
        return false;
    if (i == k->n_nodes)
        k->nodes[k->n_nodes++] = name;
    k->is_named[i] |= is_named;
    return true;
}

/* The names of an edge are its rule's, but the list of a single one may be the
 * call's own: so the strings are kept, and never the list. */
static void add_nodes(struct sketch *k, struct strs names, bool is_named)
{
    for (size_t i = 0; i < names.n; i++)
        if (!add_node(k, names.list[i], is_named))
            k->is_whole = false;
}

/* What anybody may have said is not told of whom nobody may see. */
static bool is_event_told(const struct sketch *k, const struct gate_event *v)
{
    return v->type.n && is_told(k, v->from) && (!v->to.n || is_told(k, v->to));
}

/* Edges. */

static void write_event(struct json_out *out, const struct gate_event *v)
{
    json_open(out, '{');
    json_member_str(out, "type", v->type);
    json_member_str(out, "from", v->from);
    json_member_str(out, "to", v->to);
    json_member_str(out, "message_id", v->message_id);
    json_member_str(out, "task_id", v->task_id);
    put_approval(out, v->approved);
    json_member_ms(out, "at_ms", v->at_ms);
    json_close(out, '}');
}

static struct str kind_name(enum gate_edge_kind k)
{
    static const struct str names[] = {
        [GATE_EDGE_SAFETY] = STR("safety_gate"),
        [GATE_EDGE_DEPENDENCY] = STR("dependency"),
        [GATE_EDGE_FRESHNESS] = STR("freshness"),
    };

    return names[k];
}

static struct str state_name(enum gate_edge_state s)
{
    return s == GATE_EDGE_MET     ? STR("met")
           : s == GATE_EDGE_UNMET ? STR("unmet")
                                  : STR("");
}

static void write_states(struct json_out *out, uint8_t states)
{
    json_key(out, STR("states"));
    json_open(out, '[');
    for (int s = AGENT_ACTIVE; s <= AGENT_DEAD; s++)
        if (states >> s & 1)
            json_put_str(out, agent_state_name((enum agent_state)s));
    json_close(out, ']');
}

static void write_edge(struct sketch *k, const struct gate_edge *e)
{
    struct json_out *out = &k->out;

    json_open(out, '{');
    json_member_str(out, "kind", kind_name(e->kind));
    json_member_str(out, "rule", e->rule);
    put_list(out, "from", e->from);
    put_list(out, "said", e->said);
    put_list(out, "said_to", e->said_to);
    put_approval(out, e->wants);
    write_states(out, e->states);
    json_member_ms(out, "within_ms", e->within_ms);
    json_member_str(out, "words", e->words);
    put_list(out, "sender", e->sender);
    put_list(out, "to", e->to);
    put_list(out, "type", e->type);
    json_member_str(out, "held_words", e->held_words);
    json_member_bool(out, "has_condition", e->has_condition);
    json_member_ms(out, "hold_ms", e->hold_ms);
    json_member_bool(out, "is_for_it", e->is_for_it);
    json_member_str(out, "state", state_name(e->state));
    json_member_bool(out, "is_blocking", e->is_blocking && k->is_held);
    json_key(out, STR("event"));
    if (is_event_told(k, &e->event))
        write_event(out, &e->event);
    else
        json_put_null(out);
    json_close(out, '}');
}

static void on_edge(void *ctx, const struct gate_edge *e)
{
    struct sketch *k = ctx;

    if (k->n_edges == EDGES_MAX || !may_be_told(k, e)) {
        k->is_whole = false;
        return;
    }
    k->n_edges++;
    add_nodes(k, e->from, is_in_the_way(k, e));
    add_nodes(k, e->said_to, is_in_the_way(k, e));
    add_nodes(k, e->sender, false);
    add_nodes(k, e->to, false);
    write_edge(k, e);
}

/* Nodes. Who sees an agent sees how much it has to do, as its figures say; of
 * one that is only named, no more than the reason for the hold. */
static void write_node(struct sketch *k, size_t i)
{
    struct str name = k->nodes[i];
    const struct agent *a = registry_find(k->calls->registry, name, &k->eyes);
    struct gate_agent of = broker_agent(walk_broker(k->calls->walk), name);
    bool is_known = a || (k->is_named[i] && of.is_known);
    struct json_out *out = &k->out;

    json_open(out, '{');
    json_member_str(out, "agent", a ? a->name : name);
    json_member_bool(out, "is_known", is_known);
    json_member_str(out, "state",
                    is_known ? agent_state_name(of.state) : STR(""));
    if (a) {
        json_member_int(out, "queue", of.queue);
        json_member_int(out, "queue_max", of.queue_max);
        json_member_ms(out, "data_at_ms", of.data_at_ms);
    }
    json_close(out, '}');
}

static void write_message(struct sketch *k, const struct task *t,
                          const struct envelope *e)
{
    struct json_out *out = &k->out;

    json_key(out, STR("task"));
    if (!t) {
        json_put_null(out);
        return;
    }
    json_open(out, '{');
    json_member_str(out, "task_id", str_of(t->id.text));
    json_member_str(out, "status", task_status_name(task_shown(t)));
    json_member_str(out, "from", e->from);
    json_member_str(out, "to", e->to);
    json_member_str(out, "type", e->type);
    json_member_str(out, "priority", task_priority_name(e->priority));
    json_close(out, '}');
    add_node(k, e->from, false);
    add_node(k, e->to, false);
}

static void write_history(struct sketch *k, const struct graph_known *known)
{
    struct json_out *out = &k->out;

    json_key(out, STR("history"));
    json_open(out, '[');
    for (size_t i = 0; i < known->n_events; i++) {
        const struct gate_event *v = &known->events[i];

        if (is_event_told(k, v))
            write_event(out, v);
    }
    json_close(out, ']');
}

static enum err write_graph(struct sketch *k, const struct graph_about *about,
                            struct arena *arena)
{
    struct gate_graph to = {on_edge, k};
    struct graph_known known;
    enum err e;

    json_open(&k->out, '{');
    json_key(&k->out, STR("edges"));
    json_open(&k->out, '[');
    e = FAULT("calls.graph") ? ERR_NOMEM
                             : broker_graph(walk_broker(k->calls->walk), about,
                                            arena, &to, &known);
    if (e)
        return e;
    json_close(&k->out, ']');
    json_member_str(&k->out, "reference", known.envelope.reference);
    write_message(k, about->task, &known.envelope);
    json_member_bool(&k->out, "is_whole", k->is_whole);
    json_key(&k->out, STR("nodes"));
    json_open(&k->out, '[');
    for (size_t i = 0; i < k->n_nodes; i++)
        write_node(k, i);
    json_close(&k->out, ']');
    write_history(k, &known);
    json_close(&k->out, '}');
    buf_add_char(&k->calls->body, '\n');
    return OK;
}

/* Into calls->body, which is empty where it fails. */
static enum err sketch(struct calls *c, const struct caller *caller,
                       const struct graph_about *about)
{
    struct sketch k = {
        .calls = c,
        .caller = caller,
        .eyes = eyes_of(caller, loop_wall_ms(c->loop)),
        .out = json_out(&c->body),
        .is_held = about->task && task_shown(about->task) == TASK_HELD,
        .is_asked = about->task && about->task->status == TASK_ESCALATED,
        .is_whole = true};
    struct arena arena;
    enum err e;

    arena_init(&arena, GRAPH_SCRATCH_BYTES);
    e = write_graph(&k, about, &arena);
    arena_fini(&arena);
    if (e)
        buf_clear(&c->body);
    return e;
}

static void on_task(struct open *o, enum err e, const struct task *t)
{
    if (!e)
        e = sketch(o->calls, &o->caller, &(struct graph_about){.task = t});
    if (e)
        open_refuse(o, e, STR(""), STR(""));
    else
        open_answer(o, 200);
}

static void of_task(struct call *c, struct str id)
{
    struct open *o;

    if (!id_is_valid(id, "task")) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    }
    o = open_new(c);
    if (!o)
        return;
    o->task_id = id_from(id);
    look_task(o, on_task);
}

void call_gate_graph(struct call *c)
{
    struct str task_id = call_arg(c, "task_id");
    struct graph_about about = {.requester = caller_name(&c->caller),
                                .reference = call_arg(c, "reference")};
    enum err e;

    if (task_id.p && about.reference.p) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("task_id or reference, not both: a task has its own"));
        return;
    }
    if (about.reference.n > ENVELOPE_REFERENCE_MAX) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("reference must be of 200 bytes at most"));
        return;
    }
    if (task_id.p) {
        of_task(c, task_id);
        return;
    }
    e = sketch(c->calls, &c->caller, &about);
    if (e)
        call_refuse(c, e, STR(""));
    else
        call_answer(c, 200, SPEAK_JSON);
}
