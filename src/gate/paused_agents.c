/* Agents that get no new deliveries until a person resumes them. Each has a
 * row, so that a restart keeps the pause. */
#include "gate/escalations.h"

#include <stdlib.h>

#include "base/mem.h"

static const struct column pause_columns[] = {PAUSE_COLUMNS(COLUMN_ROW)};

const struct table pause_table = {
    .name = "pause",
    .columns = pause_columns,
    .n_columns = N_PAUSE_COLUMNS,
    .n_key = 1,
};

enum err pauses_load(struct gatekeeper *b)
{
    struct query q;
    enum err e;

    query_init(&q, &pause_table, OUTAGES_MAX);
    e = store_look(b->opts.store, &q);
    if (!e)
        QUERY_EACH(r, &q)
    if (!e)
        e = b->opts.pause(b->opts.ctx, row_str(r, PAUSE_AGENT), true,
                          row_str(r, PAUSE_BY), row_int(r, PAUSE_AT_MS));
    query_fini(&q);
    return e;
}

void gatekeeper_agent_gone(struct tx *tx, struct str agent)
{
    char name[AGENT_NAME_MAX + 1];
    struct tx_op *op = tx_prune(tx, &pause_table, 1);

    tx_if(op, PAUSE_AGENT, IS,
          value_text(str_lowered(agent, name, AGENT_NAME_MAX)));
}

struct pausing {
    struct tx tx;
    struct gatekeeper *gatekeeper;
    bool is_paused;
    int64_t at_ms;
    char agent[AGENT_NAME_MAX + 1], by[PRINCIPAL_NAME_MAX + 1];
    void (*done)(void *ctx, enum err e, const struct why *why);
    void *ctx;
};

static void on_paused(struct tx *tx, void *ctx)
{
    struct pausing *p = ctx;
    struct gatekeeper *b = p->gatekeeper;
    struct why why = {""};
    enum err e = OK;

    if (tx->result == TX_COMMITTED)
        e = b->opts.pause(b->opts.ctx, str_of(p->agent), p->is_paused,
                          str_of(p->by), p->at_ms);
    else
        e = tx->result == TX_FATAL ? ERR_OUTCOME_UNKNOWN : tx->err;
    if (e)
        why_err(&why, e, "%s", err_row(e)->wording);
    p->done(p->ctx, e, &why);
    tx_fini(&p->tx);
    free(p);
}

static void build_pause(struct pausing *p, struct str agent, struct str by)
{
    struct gatekeeper *b = p->gatekeeper;
    struct subject subject = {.agent = agent, .requester = by};
    char name[AGENT_NAME_MAX + 1];
    struct str key = str_lowered(agent, name, AGENT_NAME_MAX);
    struct note_data n;
    struct tx_op *op;

    if (p->is_paused) {
        op = tx_put(&p->tx, &pause_table);
        tx_set(op, PAUSE_AGENT, value_text(key));
        tx_set(op, PAUSE_BY, value_text(by));
        tx_set(op, PAUSE_AT_MS, value_int(p->at_ms));
    } else {
        op = tx_prune(&p->tx, &pause_table, 1);
        tx_if(op, PAUSE_AGENT, IS, value_text(key));
    }
    note_open(&n);
    note_str(&n, "agent", agent);
    note_str(&n, "by", by);
    n.is_for_seers = true;
    note_close(&n, b, p->is_paused ? STR("agent.paused") : STR("agent.resumed"),
               &subject, &p->tx);
}

void gatekeeper_pause(
    struct gatekeeper *b, struct str agent, bool is_paused, struct str by,
    void (*done)(void *ctx, enum err e, const struct why *why), void *ctx)
{
    struct pausing *p = mem_new(sizeof(*p));

    p->gatekeeper = b;
    p->is_paused = is_paused;
    p->at_ms = loop_wall_ms(b->opts.loop);
    p->done = done;
    p->ctx = ctx;
    memcpy(p->agent, agent.p,
           agent.n < AGENT_NAME_MAX ? agent.n : AGENT_NAME_MAX);
    memcpy(p->by, by.p, by.n < PRINCIPAL_NAME_MAX ? by.n : PRINCIPAL_NAME_MAX);
    tx_init(&p->tx);
    build_pause(p, agent, by);
    store_submit(b->opts.store, &p->tx, on_paused, p);
}
