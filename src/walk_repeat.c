/* A message that was not accepted: it may be the repeat of one that was, and
 * then the answer is that one's. Asked last and not first, since most messages
 * are no repeats: the guard on the key says so when one is. */
#include "walk_internal.h"

enum { KEY_TRIES = 3 /* a key that expires while we ask for it */ };

static void on_repeat_told(struct tx *tx, void *ctx)
{
    struct msg *m = ctx;

    unwritten_note(&m->way.walk->unwritten, tx);
    broker_settle_repeat(m->way.walk->broker, m);
    walk_finish(m);
}

/* An envelope that was there before: that, too, is a decision, and told. */
static void tell_repeat(struct msg *m)
{
    tx_fini(&m->tx);
    tx_init(&m->tx);
    broker_record_repeat(m->way.walk->broker, m);
    store_submit(m->way.walk->opts.store, &m->tx, on_repeat_told, m);
}

static void on_refusal_written(struct tx *tx, void *ctx)
{
    struct msg *m = ctx;

    unwritten_note(&m->way.walk->unwritten, tx);
    route_settle_refusal(m->way.walk->opts.router, m);
    walk_finish(m);
}

/* The answer to a message that no agent gets names the decision, and so waits
 * for the commit. It does not depend on it: where the record cannot be written,
 * the refusal is answered without one. */
static void refuse_on_record(struct msg *m, enum err e)
{
    struct walk *w = m->way.walk;

    if (m->gate.batch || !route_record_refusal(w->opts.router, m, e)) {
        walk_refuse(m, e);
        return;
    }
    m->err = e;
    store_submit(w->opts.store, &m->tx, on_refusal_written, m);
}

static void on_key(struct query *q, void *ctx)
{
    struct msg *m = ctx;
    enum err e = q->err ? q->err : task_key_answer(m->way.walk->tasks, m, q);

    query_fini(q);
    if (e == ERR_BUSY) { /* it is nobody's */
        if (!m->way.refused && m->way.key_tries < KEY_TRIES) {
            walk_begin(m);
            return;
        }
        e = m->way.refused ? m->way.refused : ERR_BUSY;
    }
    if (e != m->way.refused)
        m->why.text[0] = '\0';
    m->err = e;
    if (!e && m->call.envelope)
        tell_repeat(m);
    else if (e && e == m->way.refused)
        refuse_on_record(m, e);
    else
        walk_finish(m);
}

void walk_ask_for_key(struct msg *m, enum err refused)
{
    if (!m->call.idempotency_key.n) {
        refuse_on_record(m, refused);
        return;
    }
    m->way.refused = refused;
    m->way.key_tries++;
    task_key_query(m, &m->way.query);
    store_read(m->way.walk->opts.store, &m->way.query, on_key, m);
}

static void on_left(struct query *q, void *ctx)
{
    struct msg *m = ctx;
    struct query left = *q; /* the message needs another, or is gone */

    ledger_tell(m->way.walk->ledger, m, &left);
    query_fini(&left);
    walk_ask_for_key(m, m->err);
}

void walk_ask_what_is_left(struct msg *m)
{
    ledger_left_query(m, &m->way.query);
    store_read(m->way.walk->opts.store, &m->way.query, on_left, m);
}
