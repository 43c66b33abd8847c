/* message.send: a message on its walk, answered when it is accepted; what
 * comes of it is pushed. */
#include "calls/share.h"
#include "hub/internal.h"

enum { PASSED_BYTES_MAX = 8 * 1024 };

static void on_look(struct ask *a, enum err e, const struct task *t);

static void on_talk(struct ask *a)
{
    a->message.cost = share_cost(&a->query, &a->turns);
    hub_look_turn(a, on_look);
}

static void on_tree(struct ask *a)
{
    hub_ask_read(a, &a->turns, on_talk);
}

static bool needs_cost(struct ask *a, const struct task *t)
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
    hub_ask_read(a, &a->query, on_tree);
    return true;
}

static void on_look(struct ask *a, enum err e, const struct task *t)
{
    const char *decision = a->message.decision;
    struct json_out o;

    if (e) {
        bool is_old = e == ERR_NOT_FOUND && a->message.is_repeat;

        hub_ask_refuse(a, is_old ? ERR_GONE : e,
                       is_old ? SHARE_KEY_IS_OLD : STR(""), STR(""));
        return;
    }
    if (needs_cost(a, t))
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

static void refuse(struct ask *a, const struct msg *m)
{
    struct buf details;

    buf_init(&details, SHARE_DETAILS_MAX);
    share_message_details(&details, m);
    hub_ask_refuse(a, m->err, str_of(m->why.text),
                   details.over ? STR("") : buf_str(&details));
    buf_fini(&details);
}

/* A repeat is told how it was decided then. */
static void on_decision(struct ask *a)
{
    if (!a->query.err && a->query.rows)
        a->message.decision =
            share_decision_of(a->query.rows, &a->hub->scratch);
    hub_look_turn(a, on_look);
}

static void ask_for_decision(struct ask *a)
{
    share_decision_ask(&a->query, &a->has_query, &a->message.decision_id);
    hub_ask_read(a, &a->query, on_decision);
}

/* What was decided of an envelope is the answer, beside the task. */
static void keep_passed(struct ask *a, const struct msg *m)
{
    struct buf out;
    struct json_out o;

    buf_init(&out, PASSED_BYTES_MAX);
    o = json_out(&out);
    json_open(&o, '{');
    share_passed(&o, m);
    json_close(&o, '}');
    a->message.passed =
        out.over || FAULT("hub.passed") ? NULL : strndup(out.p, out.n);
    buf_fini(&out);
}

static void on_accepted(struct msg *m, void *ctx)
{
    struct ask *a = ctx;

    if (!hub_ask_back(a)) {
        msg_free(m);
        return;
    }
    if (m->err) {
        refuse(a, m);
        msg_free(m);
        return;
    }
    a->task_id = m->task.id;
    a->message_id = m->task.message_id;
    a->message.is_repeat = m->task.is_repeat;
    a->message.decision_id = m->choice.id;
    if (m->call.envelope)
        keep_passed(a, m);
    else if (!m->task.is_repeat)
        a->message.decision =
            share_decision_keep(walk_router(a->hub->opts.walk), m);
    msg_free(m);
    if (a->message.is_repeat && a->message.decision_id.text[0])
        ask_for_decision(a);
    else
        hub_look_turn(a, on_look);
}

/* On an agent's line the agent speaks, and not who made it; unless its token
 * says that it may. */
static bool is_agents_own(const struct peer *p)
{
    return p->line && !(p->caller.scopes & SCOPE_CREATOR) &&
           !PLANTED("hub.speaks_as_creator");
}

/* Which of its tasks an agent speaks for, where it says so. */
static bool read_parent(struct hub_call *c, struct str *out)
{
    *out = (struct str){NULL, 0};
    return !is_agents_own(c->peer) ||
           param_str(c, "parent_task_id", ID_BYTES - 1, out);
}

/* It is between us and this connection, and not of the message. */
static bool is_for_us(const struct hub_call *c, const struct json *param)
{
    return str_eq(param->key, STR("listen")) ||
           (str_eq(param->key, STR("parent_task_id")) &&
            is_agents_own(c->peer));
}

static void write_body(struct hub_call *c)
{
    struct buf *body = &c->hub->body;
    struct json_out o = json_out(body);

    hub_clear(body);
    json_open(&o, '{');
    JSON_EACH(kid, c->params)
    {
        if (is_for_us(c, kid))
            continue;
        json_key(&o, kid->key);
        json_put(&o, kid);
    }
    json_close(&o, '}');
}

static bool has_room_to_listen(struct hub_call *c, enum listen listen)
{
    size_t max = c->hub->opts.settings.max_listening;
    struct why why;

    if (listen == LISTEN_NOTHING || c->peer->n_hearings < max)
        return true;
    why_err(&why, OK,
            "this connection hears of %zu tasks already; wait for some of "
            "them, or say \"listen\":false (hub.maxListening)",
            max);
    reply_refuse(&c->reply, ERR_OVERLOADED, str_of(why.text), STR(""));
    return false;
}

/* {"envelope":{…}}, and nothing beside it but what is for us. */
static enum err read_envelope(struct hub_call *c, struct msg *m,
                              const struct json *envelope)
{
    struct share_sender by = {
        .registry = c->hub->opts.registry,
        .access = c->hub->opts.access,
        .limits = broker_limits(walk_broker(c->hub->opts.walk)),
        .self = c->peer->line ? str_of(c->peer->agent) : STR("")};
    struct json_out o = json_out(&c->hub->body);

    JSON_EACH(kid, c->params)
    {
        if (kid != envelope && !is_for_us(c, kid))
            return why_err(
                &m->why, ERR_BAD_REQUEST,
                "beside envelope there may be listen alone, and of an agent "
                "parent_task_id: \"%.*s\" belongs into the envelope, or to a "
                "message",
                STR_ARG(kid->key));
    }
    hub_clear(&c->hub->body);
    json_put(&o, envelope);
    if (c->hub->body.over)
        return ERR_NOMEM;
    return share_envelope(m, buf_str(&c->hub->body), &by);
}

static struct msg *read_message(struct hub_call *c)
{
    const struct json *envelope = json_get(c->params, STR("envelope"));
    struct msg *m = msg_new(&c->peer->caller, loop_wall_ms(c->hub->opts.loop));
    enum err e = ERR_NOMEM;

    if (m && envelope) {
        e = read_envelope(c, m, envelope);
    } else {
        write_body(c);
        if (m && !c->hub->body.over)
            e = share_message(m, buf_str(&c->hub->body), STR(""));
    }
    if (!e)
        return m;
    reply_refuse(&c->reply, e, m ? str_of(m->why.text) : STR(""), STR(""));
    msg_free(m);
    return NULL;
}

static void walk(struct hub_call *c, struct msg *m, struct str parent_id,
                 struct ask *a)
{
    struct walk *w = c->hub->opts.walk;

    if (is_agents_own(c->peer))
        walk_agent_message(w, m, str_of(c->peer->agent), parent_id, on_accepted,
                           a);
    else
        walk_message(w, m, on_accepted, a);
}

void take_send(struct hub_call *c)
{
    enum listen listen;
    struct str parent_id;
    struct msg *m;
    struct ask *a;

    if (!param_listen(c, &listen) || !has_room_to_listen(c, listen) ||
        !read_parent(c, &parent_id))
        return;
    m = read_message(c);
    if (!m)
        return;
    a = hub_ask_new(c);
    if (!a) {
        msg_free(m);
        return;
    }
    a->listen = listen;
    hub_ask_out(a);
    walk(c, m, parent_id, a);
}
