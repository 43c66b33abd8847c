/* Decisions in the feed, each the object that is the answer to an envelope:
 * names, the decision and why, and never what was said. */
#include "broker/people.h"

#include <stdio.h>

#include "speak/speak.h"

enum { DATA_MAX = FEED_ENTRY_MAX - 1024 };

struct str tell_type(enum gate_answer a)
{
    static const struct str types[N_GATE_ANSWERS] = {
        [GATE_ROUTE] = STR("gate.routed"),
        [GATE_HOLD_INPUT] = STR("gate.held"),
        [GATE_HOLD_CAPACITY] = STR("gate.held"),
        [GATE_PAUSE] = STR("gate.paused"),
        [GATE_ESCALATE] = STR("gate.escalated"),
        [GATE_DROP] = STR("gate.dropped"),
    };

    return types[a];
}

/* As it was sent: the task's agent may be another by now, and its id is the
 * sender's own where there is one. */
struct sent {
    struct arena arena;
    struct str to, message_id;
};

static struct str text_of(struct arena *a, struct str quoted, struct str other)
{
    struct str s = {NULL, 0};

    return quoted.n && json_unquote(a, quoted, &s) && s.n ? s : other;
}

static void find_sent(const struct told *t, struct sent *out)
{
    static const struct str keys[] = {STR("to"), STR("message_id")};
    struct str raw[2];

    arena_init(&out->arena, 64 * 1024);
    out->to = t->envelope->to;
    out->message_id =
        t->envelope->message_id.n ? t->envelope->message_id : t->message_id;
    if (!t->envelope_text.n ||
        json_scan(t->envelope_text, keys, 2, raw, NULL) != OK)
        return;
    out->to = text_of(&out->arena, raw[0], out->to);
    out->message_id = text_of(&out->arena, raw[1], out->message_id);
}

static void write_object(struct buf *data, const struct told *t,
                         const struct sent *sent, const struct pass *p)
{
    struct json_out o = json_out(data);

    buf_clear(data);
    json_open(&o, '{');
    speak_pass(&o, &(struct speak_passed){.message_id = sent->message_id,
                                          .envelope = t->envelope,
                                          .pass = p,
                                          .original_to = sent->to,
                                          .target = t->target,
                                          .at_ms = t->at_ms,
                                          .is_logged = true,
                                          .task_id = t->task_id,
                                          .escalation_id = t->escalation_id,
                                          .status = t->status});
    json_close(&o, '}');
}

/* An entry has its limit: what it waits for may be too long for it, and is
 * told by the list of holds. */
static void write_data(struct buf *data, const struct told *t)
{
    struct sent sent;
    struct pass bare;

    find_sent(t, &sent);
    write_object(data, t, &sent, t->pass);
    if (data->over) {
        bare = *t->pass;
        bare.n_keys = 0;
        write_object(data, t, &sent, &bare);
    }
    arena_fini(&sent.arena);
}

void tell_decision(struct tx *tx, const struct told *t)
{
    struct buf data;

    buf_init(&data, DATA_MAX);
    write_data(&data, t);
    if (data.over || FAULT("broker.tell"))
        tx->build_error = ERR_NOMEM;
    else
        feed_append(tx, &(struct feed_entry){
                            .at_ms = t->at_ms,
                            .type = t->type,
                            .task_id = t->is_no_tasks ? STR("") : t->task_id,
                            .conversation_id = t->conversation_id,
                            .agent = t->target,
                            .requester = t->requester,
                            .root_user = t->root_user,
                            .data = buf_str(&data),
                        });
    buf_fini(&data);
}

static const struct said *word_on(const struct broker *b, struct str task_id,
                                  const struct asked **x)
{
    const struct said *w;

    *x = asked_of(b, task_id);
    w = *x ? said_in_hand(*x) : NULL;
    if (w)
        return w;
    *x = asked_late(b, task_id);
    return *x ? said_in_hand(*x) : NULL;
}

struct str tell_asked(const struct broker *b, struct str task_id)
{
    const struct asked *x;

    word_on(b, task_id, &x);
    if (!x)
        x = asked_of(b, task_id);
    return x ? str_of(x->id.text) : STR("");
}

void tell_who(const struct broker *b, struct str task_id, struct pass *p)
{
    struct str person = STR("a person approved it"), was = str_of(p->reason);
    const struct asked *x;
    const struct said *w = word_on(b, task_id, &x);
    char copy[PASS_REASON_MAX];

    if (!w || p->cause != PASS_APPROVED || !str_starts(was, person))
        return;
    memcpy(copy, p->reason, sizeof(copy));
    was = str_of(copy);
    was = str_sub(was, person.n, was.n);
    if (w->agent.n)
        snprintf(p->reason, sizeof(p->reason), "%.*s gave it to %.*s%.*s",
                 STR_ARG(w->by), STR_ARG(w->agent), STR_ARG(was));
    else
        snprintf(p->reason, sizeof(p->reason), "%.*s approved it%.*s",
                 STR_ARG(w->by), STR_ARG(was));
}

/* A repeat by its id. It has no task of its own, so the entry is no task's:
 * what counts by task would take it for the first. */

static struct str feed_channel(const struct broker *b)
{
    const struct gate_about *about = gate_rules_about(b->opts.rules);

    for (size_t i = 0; i < about->n_channels; i++)
        if (about->channels[i].takes_feed)
            return about->channels[i].name;
    return STR("");
}

static void decide_repeat(const struct broker *b, struct msg *m)
{
    struct pass *p = &m->gate.pass;

    *p = (struct pass){.answer = GATE_DROP,
                       .cause = PASS_REPEATED,
                       .channel = feed_channel(b),
                       .priority = m->call.priority,
                       .repeats = str_of(m->task.message_id.text)};
    snprintf(p->reason, sizeof(p->reason),
             "this message was accepted before, as %s", m->task.id.text);
    m->gate.envelope = *m->call.envelope;
    gate_note_time(&gate_rules_about(b->opts.rules)->limits,
                   m->gate.envelope.at_ms, m->in.at_ms, p);
}

void broker_record_repeat(struct broker *b, struct msg *m)
{
    const struct pass *p = &m->gate.pass;
    struct str who = caller_name(&m->in.caller);

    decide_repeat(b, m);
    tell_decision(&m->tx,
                  &(struct told){
                      .type = tell_type(p->answer),
                      .task_id = str_of(m->task.id.text),
                      .is_no_tasks = true,
                      .message_id = str_of(m->task.message_id.text),
                      .conversation_id = m->task.conversation_id,
                      .requester = who,
                      .root_user = who,
                      .envelope = &m->gate.envelope,
                      .target = m->gate.envelope.to,
                      .pass = p,
                      .status = task_status_name(pass_status(p->answer)),
                      .at_ms = m->in.at_ms,
                  });
}

void broker_settle_repeat(struct broker *b, struct msg *m)
{
    m->gate.is_untold = m->tx.result != TX_COMMITTED;
    if (m->gate.is_untold)
        m->gate.pass.channel = STR("");
    else
        b->stats.by_answer[GATE_DROP]++;
}
