/* GET /api/gate/graph: the rules as a graph, in general, for a task or for a
 * reference: which agent must have sent which message before another may go,
 * which of these have been sent, and which block.
 *
 * Rules name agents. A viewer who does not see an agent is told of no rule that
 * names it, not even that the agent exists. The exception is a rule that holds
 * a message of their own: the answer to that message names the agent it waits
 * for, and so does this graph. Admins see all rules. Events count within a
 * scope, and are told as by POST /api/gate. */
#include "api/internal.h"

enum {
    EDGES_MAX = 500,
    NODES_MAX = 200,
    GRAPH_SCRATCH_BYTES = 8 * 1024 * 1024,
};

struct sketch {
    struct api *api;
    const struct caller *caller;
    struct eyes eyes;
    struct json_out out;
    struct str nodes[NODES_MAX];
    bool is_named[NODES_MAX]; /* told of, though perhaps not visible */
    size_t n_nodes, n_edges;
    bool is_held;  /* the task is held: something blocks it */
    bool is_asked; /* it was held, and is escalated */
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

/* Visibility. */

static bool graph_may_name(const struct sketch *k, struct str name)
{
    return caller_is_admin(k->caller) ||
           str_eq_nocase(name, caller_name(k->caller)) ||
           registry_find(k->api->registry, name, &k->eyes);
}

static bool graph_may_name_all(const struct sketch *k, struct strs names)
{
    for (size_t i = 0; i < names.n; i++)
        if (!graph_may_name(k, names.list[i]))
            return false;
    return true;
}

/* The message waits for this edge, and the reason of its hold names the
 * agent. */
static bool graph_edge_blocks(const struct sketch *k, const struct gate_edge *e)
{
    return (k->is_held || k->is_asked) && e->is_blocking && e->is_for_it;
}

/* Other senders and receivers of a rule are never told. */
static bool graph_may_show_edge(const struct sketch *k,
                                const struct gate_edge *e)
{
    return graph_may_name_all(k, e->sender) && graph_may_name_all(k, e->to) &&
           (graph_edge_blocks(k, e) || (graph_may_name_all(k, e->from) &&
                                        graph_may_name_all(k, e->said_to)));
}

/* False: the limit is reached. The names live as long as the rules. */
static bool graph_add_node(struct sketch *k, struct str name, bool is_named)
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

/* The names of an edge belong to its rule, but a list of one name may be on the
 * stack: so the strings are kept, and never the list. */
static void graph_add_nodes(struct sketch *k, struct strs names, bool is_named)
{
    for (size_t i = 0; i < names.n; i++)
        if (!graph_add_node(k, names.list[i], is_named))
            k->is_whole = false;
}

/* An event is not told if its agents are not visible. */
static bool graph_may_show_event(const struct sketch *k,
                                 const struct gate_event *v)
{
    return v->type.n && graph_may_name(k, v->from) &&
           (!v->to.n || graph_may_name(k, v->to));
}

/* Edges. */

static void graph_write_event(struct json_out *out, const struct gate_event *v)
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

static void graph_write_states(struct json_out *out, uint8_t states)
{
    json_key(out, STR("states"));
    json_open(out, '[');
    for (int s = AGENT_ACTIVE; s <= AGENT_DEAD; s++)
        if (states >> s & 1)
            json_put_str(out, agent_state_name((enum agent_state)s));
    json_close(out, ']');
}

static void graph_write_edge(struct sketch *k, const struct gate_edge *e)
{
    struct json_out *out = &k->out;

    json_open(out, '{');
    json_member_str(out, "kind", kind_name(e->kind));
    json_member_str(out, "rule", e->rule);
    put_list(out, "from", e->from);
    put_list(out, "said", e->said);
    put_list(out, "said_to", e->said_to);
    put_approval(out, e->wants);
    graph_write_states(out, e->states);
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
    if (graph_may_show_event(k, &e->event))
        graph_write_event(out, &e->event);
    else
        json_put_null(out);
    json_close(out, '}');
}

static void on_graph_edge(void *ctx, const struct gate_edge *e)
{
    struct sketch *k = ctx;

    if (k->n_edges == EDGES_MAX || !graph_may_show_edge(k, e)) {
        k->is_whole = false;
        return;
    }
    k->n_edges++;
    graph_add_nodes(k, e->from, graph_edge_blocks(k, e));
    graph_add_nodes(k, e->said_to, graph_edge_blocks(k, e));
    graph_add_nodes(k, e->sender, false);
    graph_add_nodes(k, e->to, false);
    graph_write_edge(k, e);
}

/* Nodes. A viewer of an agent also sees its queue, as in its figures; for an
 * agent that is only named they see no more than the reason of the hold. */
static void graph_write_node(struct sketch *k, size_t i)
{
    struct str name = k->nodes[i];
    const struct agent *a = registry_find(k->api->registry, name, &k->eyes);
    struct gate_agent of =
        gatekeeper_agent(walk_gatekeeper(k->api->walk), name);
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

static void graph_write_message(struct sketch *k, const struct task *t,
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
    graph_add_node(k, e->from, false);
    graph_add_node(k, e->to, false);
}

static void graph_write_history(struct sketch *k,
                                const struct graph_known *known)
{
    struct json_out *out = &k->out;

    json_key(out, STR("history"));
    json_open(out, '[');
    for (size_t i = 0; i < known->n_events; i++) {
        const struct gate_event *v = &known->events[i];

        if (graph_may_show_event(k, v))
            graph_write_event(out, v);
    }
    json_close(out, ']');
}

static enum err write_graph(struct sketch *k, const struct graph_about *about,
                            struct arena *arena)
{
    struct gate_graph to = {on_graph_edge, k};
    struct graph_known known;
    enum err e;

    json_open(&k->out, '{');
    json_key(&k->out, STR("edges"));
    json_open(&k->out, '[');
    e = gatekeeper_graph(walk_gatekeeper(k->api->walk), about, arena, &to,
                         &known);
    if (e)
        return e;
    json_close(&k->out, ']');
    json_member_str(&k->out, "reference", known.envelope.reference);
    graph_write_message(k, about->task, &known.envelope);
    json_member_bool(&k->out, "is_whole", k->is_whole);
    json_key(&k->out, STR("nodes"));
    json_open(&k->out, '[');
    for (size_t i = 0; i < k->n_nodes; i++)
        graph_write_node(k, i);
    json_close(&k->out, ']');
    graph_write_history(k, &known);
    json_close(&k->out, '}');
    return OK;
}

/* Write the graph into api->body, which is empty after an error. */
static enum err sketch(struct api *c, const struct caller *caller,
                       const struct graph_about *about)
{
    struct sketch k = {
        .api = c,
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

static void on_graph_task(struct request *o, enum err e, const struct task *t)
{
    if (!e)
        e = sketch(o->api, &o->caller, &(struct graph_about){.task = t});
    if (e)
        request_fail(o, e);
    else
        request_answer(o, 200);
}

static void graph_for_task(struct call *c, struct str id)
{
    struct request *o;

    if (!id_is_valid(id, "task")) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    }
    o = request_of_call(c, NULL);
    if (!o)
        return;
    o->task_id = id_from(id);
    look_task(o, on_graph_task);
}

void call_gate_graph(struct call *c)
{
    struct str task_id = call_arg(c, "task_id");
    struct graph_about about = {.requester = caller_name(&c->caller),
                                .reference = call_arg(c, "reference")};
    enum err e;

    if (task_id.p && about.reference.p) {
        call_bad_request(
            c, "give task_id or reference, not both: a task has its own");
        return;
    }
    if (task_id.p) {
        graph_for_task(c, task_id);
        return;
    }
    e = sketch(c->api, &c->caller, &about);
    if (e)
        call_refuse(c, e, STR(""));
    else
        call_answer_json(c, 200);
}
