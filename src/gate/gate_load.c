/* A start: loads events and holds. Each hold is looked at soon after, since
 * anything may have changed meanwhile. If the store has more events than fit in
 * memory the oldest are forgotten, as while running. */
#include "gate/internal.h"

#include <stdlib.h>

enum { PAGE = 500 };

static enum err load_error(struct why *why, enum err e, const char *what)
{
    return why_err(why, e, "%s cannot be read: %s", what, err_row(e)->wording);
}

static enum err load_mark(struct gatekeeper *b, const struct row *r)
{
    struct str bytes = row_str(r, EVENT_KEY);
    struct gate_key key;

    if (bytes.n != sizeof(key.bits))
        return OK; /* from a newer version; this one never looks it up */
    memcpy(key.bits, bytes.p, sizeof(key.bits));
    return past_mark(&b->past, &key, row_int(r, EVENT_AT_MS),
                     row_int(r, EVENT_UNTIL_MS), row_str(r, EVENT_MESSAGE_ID),
                     row_str(r, EVENT_REFERENCE));
}

static enum err load_event(struct gatekeeper *b, const struct row *r)
{
    struct past_event e = {.scope = STR("")};

    if (!row_is_null(r, EVENT_KEY))
        return load_mark(b, r);
    record_from_row(&e, &event_table, r);
    if (e.e.approved != APPROVED && e.e.approved != DISAPPROVED)
        e.e.approved = APPROVAL_NONE;
    return past_add_event(&b->past, &e, row_int(r, EVENT_UNTIL_MS));
}

/* In order of seq: the later row of a key wins, and events stay in order. */
static enum err load_event_page(struct gatekeeper *b, int64_t *seq,
                                bool *has_more)
{
    int64_t now_ms = loop_wall_ms(b->opts.loop);
    struct query q;
    enum err e;

    query_init(&q, &event_table, PAGE);
    query_if(&q, EVENT_SEQ, IS_MORE, value_int(*seq));
    query_order(&q, EVENT_SEQ, false);
    e = store_look(b->opts.store, &q);
    QUERY_EACH(r, &q)
    {
        *seq = row_int(r, EVENT_SEQ);
        if (!e && row_int(r, EVENT_UNTIL_MS) > now_ms)
            e = load_event(b, r);
    }
    *has_more = !e && q.has_more;
    query_fini(&q);
    return e;
}

enum err past_load(struct gatekeeper *b, struct why *why)
{
    bool has_more = true;
    int64_t seq = 0;
    enum err e = OK;

    while (has_more && !e)
        e = load_event_page(b, &seq, &has_more);
    return e ? load_error(why, e, "the event history") : OK;
}

/* The first look finds the keys again; until then it waits for none. */
static struct hold_why *why_of_row(const struct row *r)
{
    struct str reason = str_head(row_str(r, HOLD_REASON), PASS_REASON_MAX - 1);
    struct gate_result p = {
        .answer = (enum gate_answer)row_int(r, HOLD_ANSWER),
        .cause = (enum gate_cause)row_int(r, HOLD_CAUSE),
        .rule = row_str(r, HOLD_RULE),
        .held_until_ms = row_int(r, HOLD_UNTIL_MS),
        .on_expiry = (enum gate_expiry)row_int(r, HOLD_ON_EXPIRY),
        .batch_most = row_int(r, HOLD_BATCH_MOST),
        .keys = {row_is_null(r, HOLD_BATCH)
                     ? (struct wait_key){.kind = WAIT_LOOK}
                     : (struct wait_key){.kind = WAIT_BATCH,
                                         .name = row_str(r, HOLD_BATCH)}},
        .n_keys = 1,
    };

    if (reason.n)
        memcpy(p.reason, reason.p, reason.n);
    return hold_why_of(&p);
}

static enum err load_hold(struct gatekeeper *b, const struct row *r)
{
    struct hold like = {.is_approved = row_int(r, HOLD_APPROVED) & 1,
                        .has_run_out = row_int(r, HOLD_APPROVED) & 2};
    struct hold *h;

    record_from_row(&like, &hold_table, r);
    h = hold_admit(b, &like, why_of_row(r));
    if (!h)
        return ERR_NOMEM;
    hold_begin(h);
    return OK;
}

static enum err load_hold_page(struct gatekeeper *b, struct id *last,
                               bool *has_more)
{
    struct query q;
    enum err e;

    query_init(&q, &hold_table, PAGE);
    query_if(&q, HOLD_TASK_ID, IS_MORE, value_text(str_of(last->text)));
    query_order(&q, HOLD_TASK_ID, false);
    e = store_look(b->opts.store, &q);
    QUERY_EACH(r, &q)
    {
        *last = id_from(row_str(r, HOLD_TASK_ID));
        if (!e)
            e = load_hold(b, r);
    }
    *has_more = !e && q.has_more;
    query_fini(&q);
    return e;
}

enum err holds_load(struct gatekeeper *b, struct why *why)
{
    struct id last = {""};
    bool has_more = true;
    enum err e = OK;

    if (PLANTED("broker.start_forgets"))
        return OK;
    while (has_more && !e)
        e = load_hold_page(b, &last, &has_more);
    if (!e && b->stats.held)
        log_info(b->opts.log, "broker.taken_up", LOG_I("held", b->stats.held));
    return e ? load_error(why, e, "held messages") : OK;
}

enum err gatekeeper_load(struct gatekeeper *b, struct why *why)
{
    enum err e = past_load(b, why);

    if (!e)
        e = holds_load(b, why);
    if (!e)
        e = escalations_load(b, why);
    if (!e)
        e = sla_load(b, why);
    return e ? e : revive_load(b, why);
}
