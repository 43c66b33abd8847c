/* One escalation: its name, its place in memory, its row, how it is told of and
 * how it is decided. */
#include "broker/people.h"

#include <stdlib.h>

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

/* The feed. */

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

void note_close(struct note_data *n, struct broker *b, struct str type,
                const struct about *about, struct tx *tx)
{
    json_close(&n->out, '}');
    if (n->buf.over || FAULT("broker.note"))
        tx->build_error = ERR_NOMEM;
    else
        feed_append(tx, &(struct feed_entry){
                            .at_ms = loop_wall_ms(b->opts.loop),
                            .type = type,
                            .task_id = str_of(about->task_id.text),
                            .agent = about->agent,
                            .requester = about->requester,
                            .root_user = about->root_user,
                            .data = buf_str(&n->buf),
                            .is_for_seers = n->is_for_seers,
                        });
    buf_fini(&n->buf);
}

void note_about(struct note_data *n, const struct asked *x)
{
    const struct about *a = &x->about;

    note_str(n, "escalation_id", str_of(x->id.text));
    note_str(n, "kind", escalation_kind_name(x->kind));
    note_str(n, "from", a->from);
    note_str(n, "to", a->agent);
    note_str(n, "type", a->type);
    note_str(n, "reference", a->reference);
    note_str(n, "priority", task_priority_name(a->priority));
}

/* In memory. */

struct asked *asked_by_id(const struct broker *b, struct str id)
{
    return map_get(&b->people->by_id, id);
}

struct asked *asked_of(const struct broker *b, struct str task_id)
{
    return map_get(&b->people->by_task, task_id);
}

struct asked *asked_late(const struct broker *b, struct str task_id)
{
    return map_get(&b->people->late_by_task, task_id);
}

struct map *asked_map(const struct asked *x)
{
    struct people *p = x->broker->people;

    return x->kind == ESCALATION_LATE ? &p->late_by_task : &p->by_task;
}

size_t about_bytes(const struct about *a)
{
    return a->agent.n + a->requester.n + a->root_user.n + a->from.n +
           a->type.n + a->reference.n;
}

struct about about_pack(char **at, const struct about *a)
{
    struct about mine = *a;

    mine.agent = str_pack(at, a->agent);
    mine.requester = str_pack(at, a->requester);
    mine.root_user = str_pack(at, a->root_user);
    mine.from = str_pack(at, a->from);
    mine.type = str_pack(at, a->type);
    mine.reference = str_pack(at, a->reference);
    return mine;
}

struct asked *asked_make(struct broker *b, const struct about *a)
{
    struct asked *x =
        FAULT("broker.asked") ? NULL : calloc(1, sizeof(*x) + about_bytes(a));
    char *at;

    if (!x)
        return NULL;
    at = x->strings;
    x->broker = b;
    x->timer.fire = asked_on_timer;
    list_init(&x->words);
    x->about = about_pack(&at, a);
    return x;
}

enum err asked_enter(struct asked *x)
{
    struct people *p = x->broker->people;
    struct str task = str_of(x->about.task_id.text);
    enum err e = map_put(&p->by_id, str_of(x->id.text), x);

    if (e)
        return e;
    e = map_put(asked_map(x), task, x);
    if (e) {
        map_take(&p->by_id, str_of(x->id.text));
        return e;
    }
    list_append(&p->open, &x->node);
    return OK;
}

static void leave(struct asked *x)
{
    struct people *p = x->broker->people;
    struct str task = str_of(x->about.task_id.text);

    loop_timer_cancel(x->broker->opts.loop, &x->timer);
    map_take(&p->by_id, str_of(x->id.text));
    if (map_get(asked_map(x), task) == x)
        map_take(asked_map(x), task);
    list_remove(&x->node);
    if (!x->is_coming)
        x->broker->stats.escalations_open--;
}

/* Rows. */

static void write_row(const struct asked *x, struct str rule, struct str reason,
                      struct tx *tx)
{
    struct tx_op *op = tx_insert(tx, &escalation_table);
    const struct about *a = &x->about;

    tx_set(op, ESCALATION_ID, value_text(str_of(x->id.text)));
    tx_set(op, ESCALATION_TASK_ID, value_text(str_of(a->task_id.text)));
    tx_set(op, ESCALATION_TURN, value_int(a->turn));
    tx_set(op, ESCALATION_KIND, value_int(x->kind));
    tx_set(op, ESCALATION_STATUS, value_int(ESCALATION_OPEN));
    tx_set(op, ESCALATION_AT_MS, value_int(x->at_ms));
    tx_set(op, ESCALATION_AGENT, value_text(a->agent));
    tx_set(op, ESCALATION_REQUESTER, value_text(a->requester));
    tx_set(op, ESCALATION_ROOT_USER, value_text_or_null(a->root_user));
    tx_set(op, ESCALATION_FROM, value_text_or_null(a->from));
    tx_set(op, ESCALATION_TYPE, value_text_or_null(a->type));
    tx_set(op, ESCALATION_REFERENCE, value_text_or_null(a->reference));
    tx_set(op, ESCALATION_PRIORITY, value_int(a->priority));
    tx_set(op, ESCALATION_RULE_NAME, value_text_or_null(rule));
    tx_set(op, ESCALATION_REASON, value_text_or_null(reason));
    tx_set(op, ESCALATION_REMINDED, value_int(0));
    if (x->remind_ms)
        tx_set(op, ESCALATION_REMIND_MS, value_int(x->remind_ms));
    if (x->expires_ms)
        tx_set(op, ESCALATION_EXPIRES_MS, value_int(x->expires_ms));
}

const struct gate_people *people_rules_of(const struct broker *b)
{
    return &gate_rules_about(b->opts.rules)->people;
}

static void set_moments(struct asked *x)
{
    const struct gate_people *r = people_rules_of(x->broker);

    x->at_ms = loop_wall_ms(x->broker->opts.loop);
    if (r->remind_ms > 0 && r->reminders > 0)
        x->remind_ms = x->at_ms + r->remind_ms;
    if (r->expire_ms > 0)
        x->expires_ms = x->at_ms + r->expire_ms;
}

struct asked *asked_new(struct broker *b, const struct about *about,
                        enum escalation_kind kind, struct str rule,
                        struct str reason, struct tx *tx)
{
    struct asked *x;

    if (b->people->by_id.n >= PEOPLE_OPEN_MAX) {
        tx->build_error = ERR_OVERLOADED;
        return NULL;
    }
    x = asked_make(b, about);
    if (x) {
        x->kind = kind;
        x->is_coming = true;
        x->id = id_make(b->opts.ids, "esc", loop_wall_ms(b->opts.loop));
        set_moments(x);
    }
    if (!x || asked_enter(x) != OK) {
        free(x);
        tx->build_error = ERR_NOMEM;
        return NULL;
    }
    write_row(x, rule, reason, tx);
    return x;
}

void asked_rewrite(struct asked *x, enum escalation_kind kind, struct str rule,
                   struct str reason, struct tx *tx)
{
    struct tx_op *op = asked_update(x, tx);

    x->becomes = kind;
    tx_set(op, ESCALATION_KIND, value_int(kind));
    tx_set(op, ESCALATION_RULE_NAME, value_text_or_null(rule));
    tx_set(op, ESCALATION_REASON, value_text_or_null(reason));
    tx_set(op, ESCALATION_OFFER, value_null());
}

void asked_open(struct asked *x)
{
    struct broker_stats *s = &x->broker->stats;

    x->is_coming = false;
    s->escalations_open++;
    s->escalations_total[x->kind]++;
    asked_start(x);
    if (x->kind == ESCALATION_DEAD)
        revive_asked(x);
}

void asked_undo(struct asked *x)
{
    leave(x);
    free(x);
}

/* Deciding. */

static struct str feed_type(enum escalation_status s)
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

/* The guard: one that somebody else has decided stays as it is, and nothing of
 * the tx happens. */
struct tx_op *asked_update(const struct asked *x, struct tx *tx)
{
    struct tx_op *op = tx_update(tx, &escalation_table);

    tx_if(op, ESCALATION_ID, IS, value_text(str_of(x->id.text)));
    if (!PLANTED("broker.decide_twice"))
        tx_if(op, ESCALATION_STATUS, IS, value_int(ESCALATION_OPEN));
    return op;
}

void asked_decide(const struct asked *x, enum escalation_status status,
                  struct str by, struct str comment, struct str to,
                  struct tx *tx)
{
    struct tx_op *op = asked_update(x, tx);
    struct note_data n;

    tx_set(op, ESCALATION_STATUS, value_int(status));
    tx_set(op, ESCALATION_DECIDED_MS,
           value_int(loop_wall_ms(x->broker->opts.loop)));
    tx_set(op, ESCALATION_BY, value_text(by));
    tx_set(op, ESCALATION_COMMENT, value_text_or_null(comment));
    tx_set(op, ESCALATION_TO, value_text_or_null(to));
    tx_set(op, ESCALATION_REMIND_MS, value_null());
    note_open(&n);
    note_about(&n, x);
    note_str(&n, "by", by);
    note_str(&n, "comment", comment);
    note_str(&n, "redirected_to", to);
    note_close(&n, x->broker, feed_type(status), &x->about, tx);
}

void asked_close(struct asked *x, struct said *own)
{
    struct list_node *n;

    leave(x);
    while ((n = list_pop(&x->words))) {
        struct said *w = LIST_OF(n, struct said, node);

        w->asked = NULL;
        if (w->is_out)
            continue; /* whoever has it says what became of it */
        if (w == own)
            said_finish(w, OK, NULL);
        else
            said_too_late(w);
    }
    free(x);
}
