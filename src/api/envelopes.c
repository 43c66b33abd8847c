/* POST /api/envelopes: accepts an envelope, and answers with the result of the
 * gate once that is durable. The outcome belongs to the task, by its id. Also
 * reads the envelopes of the hub, and checks their sender.
 *
 * The token determines the sender. A user may send as an agent if they could
 * register it on the hub: as its creator, as a user of role agent that belongs
 * to the creator, or as an admin. A user whose name merely equals an agent's is
 * not that agent, and could not be told apart from it. */
#include "api/internal.h"

static const struct agent *find_agent_named(const struct api *c,
                                            struct str name)
{
    struct agents all = registry_agents(c->registry);

    return agent_find(&all, name);
}

/* Without `from`: the agent of the connection; for a user of role agent, the
 * agent of that name that they may be; otherwise the user. */
static struct str envelope_default_sender(const struct msg *m,
                                          const struct api *c, struct str self)
{
    struct registry_by who = {.caller = &m->in.caller, .now_ms = m->in.at_ms};
    struct str user = caller_name(&m->in.caller);
    const struct agent *a = NULL;
    struct why why;

    if (self.n)
        return self;
    if (m->in.caller.role == ROLE_AGENT && find_agent_named(c, user) &&
        registry_self(c->registry, find_agent_named(c, user)->name, &who, &a,
                      &why) == OK &&
        a)
        return a->name;
    return user;
}

/* Receivers and rules could not tell a user from an agent of the same name.
 * Configured and platform agents keep their name, and a user with such a name
 * cannot send. Any other agent loses to a user who has its name and is not its
 * creator or their agent. */
static enum err sender_is_unambiguous(struct msg *m, const struct api *c,
                                      const struct agent *a, bool is_agent)
{
    struct access_user user;
    bool is_house = a && (a->is_configured || a->kind == AGENT_PLATFORM);

    if (!a || !access_user_find(c->access, a->name, &user) ||
        user.role == ROLE_AGENT || str_eq_nocase(a->creator, a->name) ||
        is_agent == is_house)
        return OK;
    return why_err(&m->why, ERR_FROM,
                   is_agent ? "the agent \"%.*s\" has the name of a user, and "
                              "its messages would look like theirs: give it "
                              "another name"
                            : "there is an agent \"%.*s\" that is not yours, "
                              "and your messages would look like its: send "
                              "them as an agent of your own",
                   STR_ARG(a->name));
}

static enum err envelope_check_sender(struct msg *m, const struct api *c,
                                      struct str self, struct envelope *e)
{
    struct registry_by who = {.caller = &m->in.caller, .now_ms = m->in.at_ms};
    struct str sender = envelope_default_sender(m, c, self);
    bool is_self = !e->from.n || str_eq_nocase(e->from, sender);
    const struct agent *named = find_agent_named(c, is_self ? sender : e->from);
    const struct agent *a = NULL;
    struct why why;

    if (self.n && is_self)
        a = named;
    else if (!self.n && named &&
             registry_self(c->registry, named->name, &who, &a, &why) != OK)
        a = NULL;
    if (!a && !is_self)
        return why_err(&m->why, ERR_FROM,
                       "from is \"%.*s\", and you are \"%.*s\": leave out "
                       "from, use a token of that sender, or register that "
                       "agent first to own it",
                       STR_ARG(e->from), STR_ARG(sender));
    e->from = a ? a->name : sender;
    return sender_is_unambiguous(m, c, named, a != NULL);
}

enum err envelope_read(const struct api *c, struct msg *m, struct str body,
                       struct str self)
{
    struct gate_limits limits = gatekeeper_limits(walk_gatekeeper(c->walk));
    struct envelope e;
    struct buf meaning;
    bool has_from;
    enum err err = speak_envelope(m, body, &e);

    if (!err)
        err = gate_check_time(&limits, e.at_ms, m->in.at_ms, &m->why);
    if (err)
        return err;
    has_from = e.from.n > 0;
    err = envelope_check_sender(m, c, self, &e);
    buf_init(&meaning, SPEAK_MEANING_MAX);
    if (!err)
        err = speak_envelope_sent(m, body, &e, has_from, &meaning);
    if (!err)
        message_hash(m, buf_str(&meaning));
    buf_fini(&meaning);
    return err;
}

/* The sender's own id, if there is one. */
static struct str gate_message_id(const struct msg *m)
{
    const struct envelope *e = m->call.envelope;

    return e->message_id.n ? e->message_id : str_of(m->task.message_id.text);
}

void write_gate_result(struct json_out *o, const struct msg *m)
{
    const struct gate_result *p = &m->gate.gate_result;

    speak_pass(o, &(struct speak_passed){
                      .message_id = gate_message_id(m),
                      .envelope = m->call.envelope,
                      .gate_result = p,
                      .target = m->choice.agent,
                      .at_ms = m->in.at_ms,
                      .is_logged = !m->gate.is_untold,
                      .task_id = str_of(m->task.id.text),
                      .escalation_id = str_of(m->gate.escalation_id.text),
                      .status = task_status_name(gate_result_status(p->answer)),
                  });
}

/* The call. */

static void on_envelope_accepted(struct msg *m, void *ctx)
{
    struct request *o = ctx;
    struct json_out out;

    if (!request_back(o)) {
        msg_free(m);
        return;
    }
    if (m->err) {
        refuse_message(o, m);
    } else {
        out = request_json(o);
        json_open(&out, '{');
        write_gate_result(&out, m);
        json_close(&out, '}');
        request_answer(o, 200);
    }
    msg_free(m);
}

void call_envelopes_post(struct call *c)
{
    struct api *api = c->api;
    struct msg *m = msg_new(&c->caller, c->now_ms);
    enum err e = m ? envelope_read(api, m, c->rq->body, STR("")) : ERR_NOMEM;
    struct request *o = NULL;

    if (e)
        call_refuse(c, e, m ? str_of(m->why.text) : STR(""));
    else
        o = request_of_call(c, NULL);
    if (!o) {
        msg_free(m);
        return;
    }
    request_out(o);
    walk_message(api->walk, m, on_envelope_accepted, o);
}
