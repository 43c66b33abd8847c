/* A single escalation: its names, its place in memory, its row, its feed
 * entries and its decision. */
#include "gate/escalations.h"

#include <assert.h>

#include <stdlib.h>

#include "base/mem.h"

static const struct str kinds[] = {
    [ESCALATION_RULE] = STR("rule"),
    [ESCALATION_DEAD] = STR("dead"),
    [ESCALATION_LATE] = STR("late"),
    [ESCALATION_EXPIRED] = STR("expired"),
};

static const struct str statuses[] = {
    [ESCALATION_OPEN] = STR("open"),
    [ESCALATION_APPROVED] = STR("approved"),
    [ESCALATION_REJECTED] = STR("rejected"),
    [ESCALATION_REDIRECTED] = STR("redirected"),
    [ESCALATION_RAN_OUT] = STR("expired"),
    [ESCALATION_RESOLVED] = STR("resolved"),
};

struct str escalation_kind_name(enum escalation_kind k)
{
    return kinds[k];
}

struct str escalation_status_name(enum escalation_status s)
{
    return statuses[s];
}

enum escalation_kind escalation_kind_of(struct str name)
{
    for (int k = ESCALATION_RULE; k <= ESCALATION_EXPIRED; k++)
        if (str_eq(kinds[k], name))
            return (enum escalation_kind)k;
    return 0;
}

enum escalation_status escalation_status_of(struct str name)
{
    for (int s = ESCALATION_OPEN; s <= ESCALATION_RESOLVED; s++)
        if (str_eq(statuses[s], name))
            return (enum escalation_status)s;
    return 0;
}

enum { NOTE_MAX = 7 * 1024 };

void note_open(struct note_data *n)
{
    buf_init(&n->buf, NOTE_MAX);
    n->out = json_out(&n->buf);
    n->is_for_seers = false;
    json_open(&n->out, '{');
}

void note_str(struct note_data *n, const char *key, struct str s)
{
    json_member_some(&n->out, key, s);
}

void note_int(struct note_data *n, const char *key, int64_t v)
{
    json_member_int(&n->out, key, v);
}

void note_close(struct note_data *n, struct gatekeeper *b, struct str type,
                const struct subject *subject, struct tx *tx)
{
    json_close(&n->out, '}');
    feed_append_data(tx, &n->buf,
                     &(struct feed_entry){
                         .at_ms = loop_wall_ms(b->opts.loop),
                         .type = type,
                         .task_id = str_of(subject->task_id.text),
                         .agent = subject->agent,
                         .requester = subject->requester,
                         .root_user = subject->root_user,
                         .is_for_seers = n->is_for_seers,
                     });
}

void note_escalation(struct note_data *n, const struct escalation *x)
{
    const struct subject *a = &x->subject;

    note_str(n, "escalation_id", str_of(x->id.text));
    note_str(n, "kind", escalation_kind_name(x->kind));
    note_str(n, "from", a->from);
    note_str(n, "to", a->agent);
    note_str(n, "type", a->type);
    note_str(n, "reference", a->reference);
    note_str(n, "priority", task_priority_name(a->priority));
}

struct escalation *escalation_by_id(const struct gatekeeper *b, struct str id)
{
    return map_get(&b->escalations->by_id, id);
}

struct escalation *escalation_of(const struct gatekeeper *b, struct str task_id)
{
    return map_get(&b->escalations->by_task, task_id);
}

struct escalation *escalation_late_of(const struct gatekeeper *b,
                                      struct str task_id)
{
    return map_get(&b->escalations->late_by_task, task_id);
}

struct map *escalation_map(const struct escalation *x)
{
    struct escalations *p = x->gatekeeper->escalations;

    return x->kind == ESCALATION_LATE ? &p->late_by_task : &p->by_task;
}

struct subject subject_of_msg(const struct msg *m)
{
    const struct envelope *e = &m->gate.envelope;

    return (struct subject){.task_id = m->task.id,
                            .turn = m->task.turn,
                            .priority = m->gate.gate_result.priority,
                            .agent = m->choice.agent,
                            .requester = caller_name(&m->in.caller),
                            .root_user = caller_name(&m->in.caller),
                            .from = e->from,
                            .type = e->type,
                            .reference = e->reference};
}

struct subject subject_of_task(const struct task *t, const struct envelope *e,
                               const struct gate_result *p)
{
    return (struct subject){.task_id = t->id,
                            .turn = t->turn,
                            .priority = p->priority,
                            .agent = t->agent,
                            .requester = t->requester,
                            .root_user = t->root_user,
                            .from = e ? e->from : t->requester,
                            .type = e ? e->type : ENVELOPE_MESSAGE,
                            .reference = e ? e->reference : STR("")};
}

size_t subject_bytes(const struct subject *a)
{
    return a->agent.n + a->requester.n + a->root_user.n + a->from.n +
           a->type.n + a->reference.n;
}

struct subject subject_pack(char **at, const struct subject *a)
{
    struct subject mine = *a;

    mine.agent = str_pack(at, a->agent);
    mine.requester = str_pack(at, a->requester);
    mine.root_user = str_pack(at, a->root_user);
    mine.from = str_pack(at, a->from);
    mine.type = str_pack(at, a->type);
    mine.reference = str_pack(at, a->reference);
    return mine;
}

struct escalation *escalation_make(struct gatekeeper *b,
                                   const struct subject *a)
{
    struct escalation *x = mem_new(sizeof(*x) + subject_bytes(a));
    char *at = x->strings;

    x->gatekeeper = b;
    x->timer.fire = escalation_on_timer;
    list_init(&x->replies);
    x->subject = subject_pack(&at, a);
    return x;
}

void escalation_enter(struct escalation *x)
{
    struct escalations *p = x->gatekeeper->escalations;
    enum err e = map_put(&p->by_id, str_of(x->id.text), x);

    if (!e)
        e = map_put(escalation_map(x), str_of(x->subject.task_id.text), x);
    assert(!e); /* callers stop at ESCALATIONS_OPEN_MAX */
    list_append(&p->open, &x->node);
}

static void escalation_leave(struct escalation *x)
{
    struct escalations *p = x->gatekeeper->escalations;
    struct str task = str_of(x->subject.task_id.text);

    loop_timer_cancel(x->gatekeeper->opts.loop, &x->timer);
    map_take(&p->by_id, str_of(x->id.text));
    if (map_get(escalation_map(x), task) == x)
        map_take(escalation_map(x), task);
    list_remove(&x->node);
    if (!x->is_coming)
        x->gatekeeper->stats.escalations_open--;
}

static void escalation_write_row(const struct escalation *x, struct str rule,
                                 struct str reason, struct tx *tx)
{
    struct tx_op *op = tx_insert(tx, &escalation_table);

    record_to_tx(op, x, 1);
    tx_set(op, ESCALATION_STATUS, value_int(ESCALATION_OPEN));
    tx_set(op, ESCALATION_RULE_NAME, value_text_or_null(rule));
    tx_set(op, ESCALATION_REASON, value_text_or_null(reason));
}

const struct gate_people *escalation_rules(const struct gatekeeper *b)
{
    return &gate_rules_about(b->opts.rules)->people;
}

static void set_moments(struct escalation *x)
{
    const struct gate_people *r = escalation_rules(x->gatekeeper);

    x->at_ms = loop_wall_ms(x->gatekeeper->opts.loop);
    if (r->remind_ms > 0 && r->reminders > 0)
        x->remind_ms = x->at_ms + r->remind_ms;
    if (r->expire_ms > 0)
        x->expires_ms = x->at_ms + r->expire_ms;
}

struct escalation *escalation_new(struct gatekeeper *b,
                                  const struct subject *subject,
                                  enum escalation_kind kind, struct str rule,
                                  struct str reason, struct tx *tx)
{
    struct escalation *x;

    if (b->escalations->by_id.n >= ESCALATIONS_OPEN_MAX) {
        tx->build_error = ERR_OVERLOADED;
        return NULL;
    }
    x = escalation_make(b, subject);
    x->kind = kind;
    x->is_coming = true;
    x->id = id_make(b->opts.ids, "esc", loop_wall_ms(b->opts.loop));
    set_moments(x);
    escalation_enter(x);
    escalation_write_row(x, rule, reason, tx);
    return x;
}

void escalation_rewrite(struct escalation *x, enum escalation_kind kind,
                        struct str rule, struct str reason, struct tx *tx)
{
    struct tx_op *op = escalation_update(x, tx);

    x->becomes = kind;
    tx_set(op, ESCALATION_KIND, value_int(kind));
    tx_set(op, ESCALATION_RULE_NAME, value_text_or_null(rule));
    tx_set(op, ESCALATION_REASON, value_text_or_null(reason));
    tx_set(op, ESCALATION_OFFER, value_null());
}

void escalation_open(struct escalation *x)
{
    struct gatekeeper_stats *s = &x->gatekeeper->stats;

    x->is_coming = false;
    s->escalations_open++;
    s->escalations_total[x->kind]++;
    escalation_start(x);
    if (x->kind == ESCALATION_DEAD)
        revive_escalation(x);
}

void escalation_undo(struct escalation *x)
{
    escalation_leave(x);
    free(x);
}

static struct str decision_feed_type(enum escalation_status s)
{
    static const struct str types[] = {
        [ESCALATION_APPROVED] = STR("escalation.approved"),
        [ESCALATION_REJECTED] = STR("escalation.rejected"),
        [ESCALATION_REDIRECTED] = STR("escalation.redirected"),
        [ESCALATION_RAN_OUT] = STR("escalation.expired"),
        [ESCALATION_RESOLVED] = STR("escalation.resolved"),
    };

    return types[s];
}

/* The guard: if the escalation is already decided, nothing in the tx
 * happens. */
struct tx_op *escalation_update(const struct escalation *x, struct tx *tx)
{
    struct tx_op *op = tx_update(tx, &escalation_table);

    tx_if(op, ESCALATION_ID, IS, value_text(str_of(x->id.text)));
    if (!PLANTED("broker.decide_twice"))
        tx_if(op, ESCALATION_STATUS, IS, value_int(ESCALATION_OPEN));
    return op;
}

void escalation_decide(const struct escalation *x,
                       enum escalation_status status, struct str by,
                       struct str comment, struct str to, struct tx *tx)
{
    struct tx_op *op = escalation_update(x, tx);
    struct note_data n;

    tx_set(op, ESCALATION_STATUS, value_int(status));
    tx_set(op, ESCALATION_DECIDED_MS,
           value_int(loop_wall_ms(x->gatekeeper->opts.loop)));
    tx_set(op, ESCALATION_BY, value_text(by));
    tx_set(op, ESCALATION_COMMENT, value_text_or_null(comment));
    tx_set(op, ESCALATION_TO, value_text_or_null(to));
    tx_set(op, ESCALATION_REMIND_MS, value_null());
    note_open(&n);
    note_escalation(&n, x);
    note_str(&n, "by", by);
    note_str(&n, "comment", comment);
    note_str(&n, "redirected_to", to);
    note_close(&n, x->gatekeeper, decision_feed_type(status), &x->subject, tx);
}

void escalation_close(struct escalation *x, struct reply *own)
{
    struct list_node *n;

    escalation_leave(x);
    while ((n = list_pop(&x->replies))) {
        struct reply *w = LIST_OF(n, struct reply, node);

        w->escalation = NULL;
        if (w->is_out)
            continue; /* its callback finishes it */
        if (w == own)
            reply_finish(w, OK, NULL);
        else
            reply_too_late(w);
    }
    free(x);
}
