/* message.send: answered when the message is accepted; its events are
 * pushed. */
#include "api/hub/internal.h"
#include "api/share.h"
#include "base/mem.h"

enum { PASSED_BYTES_MAX = 8 * 1024 };

static void on_send_task(struct ask *a, enum err e, const struct task *t);

static void on_cost_below(struct ask *a)
{
    share_cost_add(&a->message.cost, &a->query);
    hub_look_turn(a, on_send_task);
}

static void on_cost_talk(struct ask *a)
{
    a->message.cost = share_cost(&a->query, &a->turns);
    share_cost_below(&a->query, &a->turns);
    hub_ask_read(a, &a->query, on_cost_below);
}

static void on_cost_tree(struct ask *a)
{
    hub_ask_read(a, &a->turns, on_cost_talk);
}

static bool send_needs_cost(struct ask *a, const struct task *t)
{
    struct query tree, talk;

    if (a->message.has_cost ||
        !share_cost_is_for(walk_ledger(a->hub->opts.walk), t, &a->peer->caller))
        return false;
    a->message.has_cost = true;
    share_cost_ask(t, &tree, &talk);
    if (a->has_query)
        query_fini(&a->query);
    if (a->has_turns)
        query_fini(&a->turns);
    a->query = tree;
    a->turns = talk;
    a->has_query = a->has_turns = true;
    hub_ask_read(a, &a->query, on_cost_tree);
    return true;
}

static void on_send_task(struct ask *a, enum err e, const struct task *t)
{
    const char *decision = a->message.decision;
    struct json_out o;

    if (e) {
        bool is_old = e == ERR_NOT_FOUND && a->message.is_repeat;

        hub_ask_refuse(a, is_old ? ERR_GONE : e,
                       is_old ? SHARE_KEY_IS_OLD : STR(""), STR(""));
        return;
    }
    if (send_needs_cost(a, t))
        return;
    o = reply_open(&a->reply);
    json_open(&o, '{');
    speak_answer(&o, t, decision ? str_of(decision) : STR(""));
    if (a->message.passed)
        json_member_raw(&o, "routing", str_of(a->message.passed));
    share_cost_say(&o, &a->message.cost, t);
    share_budget_warnings(&o, walk_ledger(a->hub->opts.walk), t,
                          &a->peer->caller, loop_wall_ms(a->hub->opts.loop));
    json_close(&o, '}');
    reply_close(&a->reply, &o);
    if (a->listen != LISTEN_NOTHING && !peer_is_gone(a->peer))
        push_begin(a, t);
    hub_ask_end(a);
}

/* A repeat is answered with its original decision. */
static void on_send_decision(struct ask *a)
{
    if (!a->query.err && a->query.rows)
        a->message.decision =
            share_decision_of(a->query.rows, &a->hub->scratch);
    hub_look_turn(a, on_send_task);
}

/* The answer to an envelope has the result of the gate beside the task. */
static void send_keep_gate_result(struct ask *a, const struct msg *m)
{
    struct buf out;
    struct json_out o;

    buf_init(&out, PASSED_BYTES_MAX);
    o = json_out(&out);
    json_open(&o, '{');
    share_gate_result(&o, m);
    json_close(&o, '}');
    a->message.passed = out.over ? NULL : mem_copy(out.p, out.n);
    buf_fini(&out);
}

static void on_send_accepted(struct msg *m, void *ctx)
{
    struct ask *a = ctx;
    struct buf details;

    if (!hub_ask_back(a)) {
        msg_free(m);
        return;
    }
    if (m->err) {
        buf_init(&details, SPEAK_REFUSAL_MAX);
        speak_refusal_details(&details, m);
        hub_ask_refuse(a, m->err, str_of(m->why.text),
                       details.over ? STR("") : buf_str(&details));
        buf_fini(&details);
        msg_free(m);
        return;
    }
    a->task_id = m->task.id;
    a->message_id = m->task.message_id;
    a->message.is_repeat = m->task.is_repeat;
    a->message.decision_id = m->choice.id;
    if (m->call.envelope)
        send_keep_gate_result(a, m);
    else if (!m->task.is_repeat)
        a->message.decision =
            share_decision_keep(walk_router(a->hub->opts.walk), m);
    msg_free(m);
    if (!a->message.is_repeat || !a->message.decision_id.text[0]) {
        hub_look_turn(a, on_send_task);
        return;
    }
    share_decision_ask(&a->query, &a->has_query, &a->message.decision_id);
    hub_ask_read(a, &a->query, on_send_decision);
}

/* On the connection of an agent the agent is the sender, not its creator,
 * unless the token has the scope for that. */
static bool is_sent_by_agent(const struct peer *p)
{
    return p->line && !(p->caller.scopes & SCOPE_CREATOR) &&
           !PLANTED("hub.speaks_as_creator");
}

/* The parent task that an agent may name. */
static bool send_read_parent(struct hub_call *c, struct str *out)
{
    *out = (struct str){NULL, 0};
    return !is_sent_by_agent(c->peer) ||
           param_str(c, "parent_task_id", ID_BYTES - 1, out);
}

/* A param for the hub, not part of the message. */
static bool is_hub_param(const struct hub_call *c, const struct json *param)
{
    return str_eq(param->key, STR("listen")) ||
           (str_eq(param->key, STR("parent_task_id")) &&
            is_sent_by_agent(c->peer));
}

static void send_write_body(struct hub_call *c)
{
    struct buf *body = &c->hub->body;
    struct json_out o = json_out(body);

    hub_clear(body);
    json_open(&o, '{');
    JSON_EACH(kid, c->params)
    {
        if (is_hub_param(c, kid))
            continue;
        json_key(&o, kid->key);
        json_put(&o, kid);
    }
    json_close(&o, '}');
}

static bool send_may_listen(struct hub_call *c, enum listen listen)
{
    size_t max = c->hub->opts.settings.max_listening;
    struct why why;

    if (listen == LISTEN_NOTHING || c->peer->n_hearings < max)
        return true;
    why_err(&why, OK,
            "this connection listens to %zu tasks, the limit; wait for some of "
            "them, or send \"listen\":false (hub.maxListening)",
            max);
    reply_refuse(&c->reply, ERR_OVERLOADED, str_of(why.text), STR(""));
    return false;
}

/* {"envelope":{…}} and no other params except those for the hub. */
static enum err send_read_envelope(struct hub_call *c, struct msg *m,
                                   const struct json *envelope)
{
    struct share_sender by = {
        .registry = c->hub->opts.registry,
        .access = c->hub->opts.access,
        .limits = gatekeeper_limits(walk_gatekeeper(c->hub->opts.walk)),
        .self = c->peer->line ? str_of(c->peer->agent) : STR("")};
    struct json_out o = json_out(&c->hub->body);

    JSON_EACH(kid, c->params)
    {
        if (kid != envelope && !is_hub_param(c, kid))
            return why_err(
                &m->why, ERR_BAD_REQUEST,
                "with envelope only listen is allowed, and parent_task_id for "
                "an agent: \"%.*s\" belongs in the envelope or in a message",
                STR_ARG(kid->key));
    }
    hub_clear(&c->hub->body);
    json_put(&o, envelope);
    if (c->hub->body.over)
        return ERR_NOMEM;
    return share_envelope(m, buf_str(&c->hub->body), &by);
}

static struct msg *send_read_message(struct hub_call *c)
{
    const struct json *envelope = json_get(c->params, STR("envelope"));
    struct msg *m = msg_new(&c->peer->caller, loop_wall_ms(c->hub->opts.loop));
    enum err e = ERR_NOMEM;

    if (m && envelope) {
        e = send_read_envelope(c, m, envelope);
    } else {
        send_write_body(c);
        if (m && !c->hub->body.over)
            e = share_message(m, buf_str(&c->hub->body), STR(""));
    }
    if (!e)
        return m;
    reply_refuse(&c->reply, e, m ? str_of(m->why.text) : STR(""), STR(""));
    msg_free(m);
    return NULL;
}

void method_send(struct hub_call *c)
{
    enum listen listen;
    struct str parent_id;
    struct msg *m;
    struct ask *a;

    if (!param_listen(c, &listen) || !send_may_listen(c, listen) ||
        !send_read_parent(c, &parent_id))
        return;
    m = send_read_message(c);
    if (!m)
        return;
    a = hub_ask_new(c);
    if (!a) {
        msg_free(m);
        return;
    }
    a->listen = listen;
    hub_ask_out(a);
    if (is_sent_by_agent(c->peer))
        walk_agent_message(c->hub->opts.walk, m, str_of(c->peer->agent),
                           parent_id, on_send_accepted, a);
    else
        walk_message(c->hub->opts.walk, m, on_send_accepted, a);
}
