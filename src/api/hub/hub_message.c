/* message.send: answered when the message is accepted; its events are
 * pushed. */
#include "api/hub/internal.h"

static void on_send_answered(struct request *o, const struct task *t)
{
    if (hub_seat(o)->listen != LISTEN_NOTHING && !peer_is_gone(peer_of(o)))
        push_begin(o, t);
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
    return !is_sent_by_agent(c->peer) || param_str(c, "parent_task_id", out);
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
    size_t max = c->hub->settings.max_listening;
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
    struct str self = c->peer->line ? str_of(c->peer->agent) : STR("");
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
    return envelope_read(c->hub->api, m, buf_str(&c->hub->body), self);
}

static struct msg *send_read_message(struct hub_call *c)
{
    const struct json *envelope = json_get(c->params, STR("envelope"));
    struct msg *m = msg_new(&c->peer->caller, loop_wall_ms(c->hub->api->loop));
    enum err e = ERR_NOMEM;

    if (m && envelope) {
        e = send_read_envelope(c, m, envelope);
    } else {
        send_write_body(c);
        if (m && !c->hub->body.over)
            e = message_read(m, buf_str(&c->hub->body), STR(""));
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
    struct request *o;

    if (!param_listen(c, &listen) || !send_may_listen(c, listen) ||
        !send_read_parent(c, &parent_id))
        return;
    m = send_read_message(c);
    if (!m)
        return;
    o = hub_request(c, &message_state);
    if (!o) {
        msg_free(m);
        return;
    }
    hub_seat(o)->listen = listen;
    message_of(o)->on_answered = on_send_answered;
    request_out(o);
    if (is_sent_by_agent(c->peer))
        walk_agent_message(c->hub->api->walk, m, str_of(c->peer->agent),
                           parent_id, on_message_accepted, o);
    else
        walk_message(c->hub->api->walk, m, on_message_accepted, o);
}
