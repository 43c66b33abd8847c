/* A rejected message may be the repeat of an accepted one, and then gets its
 * answer. Looked up last and not first, since most messages are not repeats:
 * the guard on the idempotency key finds those that are. */
#include "walk/internal.h"

enum { KEY_TRIES = 3 /* for a key that expires during the lookup */ };

static void on_repeat_recorded(struct tx *tx, void *ctx)
{
    struct msg *m = ctx;

    retry_commit_note(m->way.walk, tx);
    gatekeeper_settle_repeat(m->way.walk->gatekeeper, m);
    walk_finish(m);
}

static void on_rejection_recorded(struct tx *tx, void *ctx)
{
    struct msg *m = ctx;

    retry_commit_note(m->way.walk, tx);
    route_settle_refusal(m->way.walk->opts.router, m);
    walk_finish(m);
}

/* The answer to a message that no agent gets names the decision, so it waits
 * for the commit. It does not depend on it: if the record cannot be written,
 * the rejection is answered without one. */
static void refuse_on_record(struct msg *m, enum err e)
{
    struct walk *w = m->way.walk;

    if (m->gate.batch || !route_record_refusal(w->opts.router, m, e)) {
        walk_refuse(m, e);
        return;
    }
    m->err = e;
    store_submit(w->opts.store, &m->tx, on_rejection_recorded, m);
}

static void on_idempotency_key(struct query *q, void *ctx)
{
    struct msg *m = ctx;
    enum err e = q->err ? q->err : task_key_answer(m->way.walk->tasks, m, q);

    query_fini(q);
    if (e == ERR_BUSY) { /* no task has the key */
        if (!m->way.refused && m->way.key_tries < KEY_TRIES) {
            walk_begin(m);
            return;
        }
        e = m->way.refused ? m->way.refused : ERR_BUSY;
    }
    if (e != m->way.refused)
        m->why.text[0] = '\0';
    m->err = e;
    if (!e && m->call.envelope) { /* a decision too, and reported */
        tx_fini(&m->tx);
        tx_init(&m->tx);
        gatekeeper_record_repeat(m->way.walk->gatekeeper, m);
        store_submit(m->way.walk->opts.store, &m->tx, on_repeat_recorded, m);
    } else if (e && e == m->way.refused)
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
    store_read(m->way.walk->opts.store, &m->way.query, on_idempotency_key, m);
}

static void on_money_left(struct query *q, void *ctx)
{
    struct msg *m = ctx;
    struct query left = *q; /* the message may reuse it, or be gone */

    ledger_tell(m->way.walk->ledger, m, &left);
    query_fini(&left);
    walk_ask_for_key(m, m->err);
}

void walk_ask_what_is_left(struct msg *m)
{
    ledger_left_query(m, &m->way.query);
    store_read(m->way.walk->opts.store, &m->way.query, on_money_left, m);
}
