/* POST /api/route: who would get a message, and why. Nothing is recorded and
 * nobody is told. */
#include "calls/internal.h"
#include "calls/share.h"

/* What the decision does not say: why the text was not compared by its meaning,
 * and that whoever was chosen could not be given it now, or for that price. */
static void put_note(struct open *o, struct json_out *out, struct msg *m)
{
    struct agents all = registry_agents(o->calls->registry);
    const struct agent *chosen = agent_find(&all, m->choice.agent);
    const char *no_vector = m->known.no_vector.text;
    struct why away = {""}, note = {""};

    if (chosen && (ledger_check_ceiling(m) != OK ||
                   ledger_check_consent(m, chosen, NULL) != OK))
        away = m->why;
    if (chosen && (away.text[0] || deliver_reaches(walk_deliver(o->calls->walk),
                                                   chosen, &away) != OK))
        why_err(&note, OK, "if it were sent now, it would be refused: %s%s%s",
                away.text, *no_vector ? "; " : "", no_vector);
    else
        note = m->known.no_vector;
    json_key(out, STR("note"));
    if (note.text[0])
        json_put_str(out, str_of(note.text));
    else
        json_put_null(out);
}

/* What it would cost whoever asks; what they have is not looked at. */
static enum err appraise(struct open *o, struct msg *m)
{
    struct agents all = registry_agents(o->calls->registry);
    const struct agent *chosen = agent_find(&all, m->choice.agent);

    return chosen
               ? ledger_appraise(walk_ledger(o->calls->walk), m, chosen, NULL)
               : OK;
}

/* The price holds for a while, for a message that names the quote. */
static void put_quote(struct open *o, struct json_out *out, const struct msg *m)
{
    struct agents all = registry_agents(o->calls->registry);
    const struct agent *chosen = agent_find(&all, m->choice.agent);
    int64_t until_ms =
        chosen ? ledger_quote(walk_ledger(o->calls->walk), m, chosen) : 0;

    json_member_str(out, "quote",
                    until_ms ? str_of(m->choice.id.text) : STR(""));
    json_member_known(out, "quote_until_ms", until_ms > 0, until_ms);
}

static void answer(struct open *o, struct msg *m)
{
    struct json_out out = json_out(&o->calls->body);
    struct decision d;

    route_decision(walk_router(o->calls->walk), m, &d);
    d.id = (struct id){""}; /* there will be no record of it */
    d.conversation_id = m->call.conversation_id;
    d.turn = 0;
    share_decision_for(&d, &o->caller);
    json_open(&out, '{');
    speak_decision(&out, &d, SPEAK_WHOLE);
    json_member_bool(&out, "switches", m->choice.is_switch);
    put_quote(o, &out, m);
    put_note(o, &out, m);
    json_close(&out, '}');
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

static void on_routed(struct msg *m, enum err e, void *ctx)
{
    struct open *o = ctx;

    if (!e)
        e = appraise(o, m);
    m->err = e;
    if (open_back(o)) {
        if (e)
            refuse_message(o, m);
        else
            answer(o, m);
    }
    msg_free(m);
}

void call_route_post(struct call *c)
{
    struct msg *m = msg_new(&c->caller, c->now_ms);
    enum err e = m ? share_message(m, c->rq->body, STR("")) : ERR_NOMEM;
    struct open *o;

    if (!e && m->call.task_id.n)
        e = why_err(&m->why, ERR_BAD_REQUEST,
                    "a further turn of a task goes to the task's agent; there "
                    "is nothing to choose: leave task_id out");
    if (!e && m->call.quote.n)
        e = why_err(&m->why, ERR_BAD_REQUEST,
                    "a quote is for a message; POST /api/route gives a new "
                    "one: leave quote out");
    if (e) {
        call_refuse(c, e, m ? str_of(m->why.text) : STR(""));
        msg_free(m);
        return;
    }
    o = open_new(c);
    if (!o) {
        msg_free(m);
        return;
    }
    open_out(o);
    route_look(walk_router(c->calls->walk), m, on_routed, o);
}
