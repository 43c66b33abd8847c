/* POST /api/route: the agent that would get a message, and why. Nothing is
 * recorded or reported. */
#include "api/internal.h"

/* A note that is not in the decision: why the text was not compared by its
 * meaning, or that the chosen agent would not accept the message now, or not
 * for that price. */
static void route_put_note(struct request *o, struct json_out *out,
                           struct msg *m)
{
    struct agents all = registry_agents(o->api->registry);
    const struct agent *chosen = agent_find(&all, m->choice.agent);
    const char *no_vector = m->known.no_vector.text;
    struct why away = {""}, note = {""};

    if (chosen && (ledger_check_ceiling(m) != OK ||
                   ledger_check_consent(m, chosen, NULL) != OK))
        away = m->why;
    if (chosen && (away.text[0] || deliver_reaches(walk_deliver(o->api->walk),
                                                   chosen, &away) != OK))
        why_err(&note, OK, "a message sent now would be rejected: %s%s%s",
                away.text, *no_vector ? "; " : "", no_vector);
    else
        note = m->known.no_vector;
    json_key(out, STR("note"));
    if (note.text[0])
        json_put_str(out, str_of(note.text));
    else
        json_put_null(out);
}

/* The price is guaranteed for a while, for a message that names the quote. */
static void route_put_quote(struct request *o, struct json_out *out,
                            const struct msg *m)
{
    struct agents all = registry_agents(o->api->registry);
    const struct agent *chosen = agent_find(&all, m->choice.agent);
    int64_t until_ms =
        chosen ? ledger_quote(walk_ledger(o->api->walk), m, chosen) : 0;

    json_member_str(out, "quote",
                    until_ms ? str_of(m->choice.id.text) : STR(""));
    json_member_known(out, "quote_until_ms", until_ms > 0, until_ms);
}

static void route_answer(struct request *o, struct msg *m)
{
    struct json_out out = request_json(o);
    struct decision d;

    route_decision(walk_router(o->api->walk), m, &d);
    d.id = (struct id){""}; /* it is not recorded */
    d.conversation_id = m->call.conversation_id;
    d.turn = 0;
    decision_hide_others(&d, &o->caller);
    json_open(&out, '{');
    speak_decision(&out, &d, SPEAK_WHOLE);
    json_member_bool(&out, "switches", m->choice.is_switch);
    route_put_quote(o, &out, m);
    route_put_note(o, &out, m);
    json_close(&out, '}');
    request_answer(o, 200);
}

static void on_route_decided(struct msg *m, enum err e, void *ctx)
{
    struct request *o = ctx;
    struct agents all = registry_agents(o->api->registry);
    const struct agent *chosen = e ? NULL : agent_find(&all, m->choice.agent);

    if (chosen) /* their balance is not checked */
        e = ledger_appraise(walk_ledger(o->api->walk), m, chosen, NULL);
    m->err = e;
    if (request_back(o)) {
        if (e)
            refuse_message(o, m);
        else
            route_answer(o, m);
    }
    msg_free(m);
}

void call_route_post(struct call *c)
{
    struct msg *m = msg_new(&c->caller, c->now_ms);
    enum err e = m ? message_read(m, c->rq->body, STR("")) : ERR_NOMEM;
    struct request *o;

    if (!e && m->call.task_id.n)
        e = why_err(&m->why, ERR_BAD_REQUEST,
                    "a further turn of a task goes to its agent: leave out "
                    "task_id");
    if (!e && m->call.quote.n)
        e = why_err(&m->why, ERR_BAD_REQUEST,
                    "a quote is for sending a message; POST /api/route makes a "
                    "new one: leave out quote");
    if (e) {
        call_refuse(c, e, m ? str_of(m->why.text) : STR(""));
        msg_free(m);
        return;
    }
    o = request_of_call(c, NULL);
    if (!o) {
        msg_free(m);
        return;
    }
    request_out(o);
    route_look(walk_router(c->api->walk), m, on_route_decided, o);
}
