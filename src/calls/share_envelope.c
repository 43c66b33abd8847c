/* An envelope as HTTP and the hub take it: read, and from whom it says it is.
 *
 * Who sends it is who the token says. A user may speak as an agent that they
 * may be (on the hub they could as well register as it): its creator, a user of
 * role agent that belongs to them, an admin. A user who is only called like an
 * agent is not it, and as who they are they could not be told apart. */
#include "calls/share.h"

static const struct agent *agent_named(const struct share_sender *by,
                                       struct str name)
{
    struct agents all = registry_agents(by->registry);

    return agent_find(&all, name);
}

/* Not said: the connection's agent; of a user of role agent, the agent of that
 * name that they may be; else the user. */
static struct str sender_of(const struct msg *m, const struct share_sender *by)
{
    struct registry_by who = {.caller = &m->in.caller, .now_ms = m->in.at_ms};
    struct str user = caller_name(&m->in.caller);
    const struct agent *a = NULL;
    struct why why;

    if (by->self.n)
        return by->self;
    if (m->in.caller.role == ROLE_AGENT && agent_named(by, user) &&
        registry_self(by->registry, agent_named(by, user)->name, &who, &a,
                      &why) == OK &&
        a)
        return a->name;
    return user;
}

/* A user and an agent of one name could not be told apart by whoever gets their
 * messages, and by the rules. The house's own agents are who they are, and a
 * user called like one cannot send; any other agent came second to a user who
 * has its name and is not its creator, or their agent. */
static enum err is_clear(struct msg *m, const struct share_sender *by,
                         const struct agent *a, bool is_agent)
{
    struct access_user user;
    bool is_house = a && (a->is_configured || a->kind == AGENT_PLATFORM);

    if (!a || !access_user_find(by->access, a->name, &user) ||
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

static enum err is_from(struct msg *m, const struct share_sender *by,
                        struct envelope *e)
{
    struct registry_by who = {.caller = &m->in.caller, .now_ms = m->in.at_ms};
    struct str sender = sender_of(m, by);
    bool is_self = !e->from.n || str_eq_nocase(e->from, sender);
    const struct agent *named = agent_named(by, is_self ? sender : e->from);
    const struct agent *a = NULL;
    struct why why;

    if (by->self.n && is_self)
        a = named;
    else if (!by->self.n && named &&
             registry_self(by->registry, named->name, &who, &a, &why) != OK)
        a = NULL;
    if (!a && !is_self)
        return why_err(&m->why, ERR_FROM,
                       "from is \"%.*s\", and you are \"%.*s\": leave from "
                       "out, use a token of who it is from, or register "
                       "that agent first if it is to be yours",
                       STR_ARG(e->from), STR_ARG(sender));
    e->from = a ? a->name : sender;
    return is_clear(m, by, named, a != NULL);
}

enum err share_envelope(struct msg *m, struct str body,
                        const struct share_sender *by)
{
    struct envelope e;
    struct buf meaning;
    bool has_from;
    enum err err = speak_envelope(m, body, &e);

    if (!err)
        err = gate_check_time(&by->limits, e.at_ms, m->in.at_ms, &m->why);
    if (err)
        return err;
    has_from = e.from.n > 0;
    err = is_from(m, by, &e);
    buf_init(&meaning, SPEAK_MEANING_MAX);
    if (!err)
        err = speak_envelope_sent(m, body, &e, has_from, &meaning);
    if (!err)
        err = share_hash(m, buf_str(&meaning));
    buf_fini(&meaning);
    return err;
}

/* The id is the sender's own where there is one. */
static struct str id_of(const struct msg *m)
{
    const struct envelope *e = m->call.envelope;

    return e->message_id.n ? e->message_id : str_of(m->task.message_id.text);
}

void share_passed(struct json_out *o, const struct msg *m)
{
    const struct pass *p = &m->gate.pass;

    speak_pass(o, &(struct speak_passed){
                      .message_id = id_of(m),
                      .envelope = m->call.envelope,
                      .pass = p,
                      .target = m->choice.agent,
                      .at_ms = m->in.at_ms,
                      .is_logged = !m->gate.is_untold,
                      .task_id = str_of(m->task.id.text),
                      .escalation_id = str_of(m->gate.escalation_id.text),
                      .status = task_status_name(pass_status(p->answer)),
                  });
}
