/* Decisions in the feed, each in the form of the answer to an envelope: names,
 * the decision and the reason, never the payload or context. */
#include "gate/escalations.h"

#include <stdio.h>

#include "speak/speak.h"

enum { DATA_MAX = FEED_ENTRY_MAX - 1024 };

struct str decision_entry_type(enum gate_answer a)
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

/* As the sender wrote it: the task's agent may have changed, and the sender may
 * have set a message id of their own. */
struct sent {
    struct arena arena;
    struct str to, message_id;
};

static struct str unquote_or(struct arena *a, struct str quoted,
                             struct str other)
{
    struct str s = {NULL, 0};

    return quoted.n && json_unquote(a, quoted, &s) && s.n ? s : other;
}

static void parse_sent(const struct decision_entry *t, struct sent *out)
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
    out->to = unquote_or(&out->arena, raw[0], out->to);
    out->message_id = unquote_or(&out->arena, raw[1], out->message_id);
}

static void write_decision_object(struct buf *data,
                                  const struct decision_entry *t,
                                  const struct sent *sent,
                                  const struct gate_result *p)
{
    struct json_out o = json_out(data);

    buf_clear(data);
    json_open(&o, '{');
    speak_pass(&o, &(struct speak_passed){.message_id = sent->message_id,
                                          .envelope = t->envelope,
                                          .gate_result = p,
                                          .original_to = sent->to,
                                          .target = t->target,
                                          .at_ms = t->at_ms,
                                          .is_logged = true,
                                          .task_id = t->task_id,
                                          .escalation_id = t->escalation_id,
                                          .status = t->status});
    json_close(&o, '}');
}

/* An entry has a size limit. If the wait keys do not fit they are left out; the
 * list of holds shows them. */
static void write_entry_data(struct buf *data, const struct decision_entry *t)
{
    struct sent sent;
    struct gate_result bare;

    parse_sent(t, &sent);
    write_decision_object(data, t, &sent, t->gate_result);
    if (data->over) {
        bare = *t->gate_result;
        bare.n_keys = 0;
        write_decision_object(data, t, &sent, &bare);
    }
    arena_fini(&sent.arena);
}

void feed_decision(struct tx *tx, const struct decision_entry *t)
{
    struct buf data;

    buf_init(&data, DATA_MAX);
    write_entry_data(&data, t);
    feed_append_data(tx, &data,
                     &(struct feed_entry){
                         .at_ms = t->at_ms,
                         .type = t->type,
                         .task_id = t->is_no_tasks ? STR("") : t->task_id,
                         .conversation_id = t->conversation_id,
                         .agent = t->target,
                         .requester = t->requester,
                         .root_user = t->root_user,
                     });
}

struct str escalation_id_of(const struct gatekeeper *b, struct str task_id)
{
    const struct escalation *x;

    reply_for_task(b, task_id, &x);
    if (!x)
        x = escalation_of(b, task_id);
    return x ? str_of(x->id.text) : STR("");
}

void name_approver(const struct gatekeeper *b, struct str task_id,
                   struct gate_result *p)
{
    struct str person = STR("a person approved it"), was = str_of(p->reason);
    const struct escalation *x;
    const struct reply *w = reply_for_task(b, task_id, &x);
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

/* A repeated id. The repeat has no task of its own, so the entry names no task:
 * statistics per task would count it for the first message. */

static struct str feed_channel(const struct gatekeeper *b)
{
    const struct gate_about *about = gate_rules_about(b->opts.rules);

    for (size_t i = 0; i < about->n_channels; i++)
        if (about->channels[i].takes_feed)
            return about->channels[i].name;
    return STR("");
}

static void set_repeat_result(const struct gatekeeper *b, struct msg *m)
{
    struct gate_result *p = &m->gate.gate_result;

    *p = (struct gate_result){.answer = GATE_DROP,
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

void gatekeeper_record_repeat(struct gatekeeper *b, struct msg *m)
{
    const struct gate_result *p = &m->gate.gate_result;
    struct str requester = caller_name(&m->in.caller);

    set_repeat_result(b, m);
    feed_decision(&m->tx,
                  &(struct decision_entry){
                      .type = decision_entry_type(p->answer),
                      .task_id = str_of(m->task.id.text),
                      .is_no_tasks = true,
                      .message_id = str_of(m->task.message_id.text),
                      .conversation_id = m->task.conversation_id,
                      .requester = requester,
                      .root_user = requester,
                      .envelope = &m->gate.envelope,
                      .target = m->gate.envelope.to,
                      .gate_result = p,
                      .status = task_status_name(gate_result_status(p->answer)),
                      .at_ms = m->in.at_ms,
                  });
}

void gatekeeper_settle_repeat(struct gatekeeper *b, struct msg *m)
{
    m->gate.is_untold = m->tx.result != TX_COMMITTED;
    if (m->gate.is_untold)
        m->gate.gate_result.channel = STR("");
    else
        b->stats.by_answer[GATE_DROP]++;
}
