/* Results that do not come on the delivery they belong to, because an agent was
 * away or has a second connection. First it is decided whether the sender may
 * give the result: for a task in memory at once, for one in the store once its
 * row is read. A result in time is taken; one that comes after the end is
 * reported in the feed.
 *
 * Reports are best effort: a check that cannot be made is answered with
 * ERR_BUSY, and a report that cannot be sent is only logged. */
#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "walk/internal.h"

enum { MINUTE_MS = 60 * 1000, DATA_MAX = 128 };

struct late_agent {
    size_t n;
    char text[AGENT_NAME_MAX];
};

struct late_results {
    struct walk *walk;
    struct list lookups; /* struct late_lookup */
    size_t n_asked, n_telling;
    struct id
        told[LATE_RESULTS_REMEMBERED]; /* a ring; n_told is the next index */
    size_t n_told;
    int64_t minute_ms; /* start of the current minute, monotonic */
    int n_in_minute;
    struct late_agent
        told_of[LATE_RESULTS_TOLD_PER_MINUTE]; /* in the current minute */
};

/* A read under way. */
struct late_lookup {
    struct late_results *late_results;
    struct list_node node;
    struct query query;
    struct id task_id;
    int64_t turn, attempt; /* as the agent gave them */
    int64_t turn_meant;
    uint64_t receipt;
    struct late_agent agent;
};

/* A feed entry under way. */
struct late_report {
    struct late_results *late_results;
    struct tx tx;
};

struct late_results *late_results_new(struct walk *w)
{
    struct late_results *s = mem_new(sizeof(*s));

    s->walk = w;
    list_init(&s->lookups);
    return s;
}

void late_results_free(struct late_results *s)
{
    assert(!s || (!s->n_asked && !s->n_telling));
    free(s);
}

static void late_agent_keep(struct late_agent *to, struct str name)
{
    assert(name.n <= sizeof(to->text));
    to->n = name.n;
    memcpy(to->text, name.p, name.n);
}

static bool late_agent_is(const struct late_agent *is, struct str name)
{
    return str_eq_nocase((struct str){is->text, is->n}, name);
}

/* Reporting. */

static bool late_result_may_tell(struct late_results *s,
                                 const struct id *task_id, struct str agent)
{
    int64_t now_ms = loop_mono_ms(s->walk->opts.loop);
    int n_of_it = 0;

    for (size_t i = 0; i < LATE_RESULTS_REMEMBERED; i++)
        if (strcmp(s->told[i].text, task_id->text) == 0)
            return false;
    if (!s->minute_ms || now_ms - s->minute_ms >= MINUTE_MS) {
        s->minute_ms = now_ms;
        s->n_in_minute = 0;
    }
    for (int i = 0; i < s->n_in_minute; i++)
        n_of_it += late_agent_is(&s->told_of[i], agent);
    return s->n_in_minute < LATE_RESULTS_TOLD_PER_MINUTE &&
           n_of_it < LATE_RESULTS_TOLD_OF_ONE;
}

static void on_late_result_reported(struct tx *tx, void *ctx)
{
    struct late_report *l = ctx;

    if (tx->result != TX_COMMITTED)
        log_warn(l->late_results->walk->opts.log, "walk.late_result_not_told",
                 LOG_C("because", err_row(tx->err)->wording));
    l->late_results->n_telling--;
    tx_fini(tx);
    free(l);
}

static void late_result_tell(struct late_results *s, const struct task *t,
                             int64_t turn, int64_t attempt)
{
    struct late_report *l;
    struct json_out o;
    struct buf data;

    if (!t || !late_result_may_tell(s, &t->id, t->agent))
        return;
    l = mem_new(sizeof(*l));
    s->told[s->n_told++ % LATE_RESULTS_REMEMBERED] = t->id;
    late_agent_keep(&s->told_of[s->n_in_minute++], t->agent);
    s->n_telling++;
    l->late_results = s;
    tx_init(&l->tx);
    buf_init(&data, DATA_MAX);
    o = json_out(&data);
    json_open(&o, '{');
    json_member_int(&o, "turn", turn);
    json_member_int(&o, "attempt", attempt);
    json_close(&o, '}');
    feed_append(&l->tx, &(struct feed_entry){
                            .at_ms = loop_wall_ms(s->walk->opts.loop),
                            .type = STR("task.late_result"),
                            .task_id = str_of(t->id.text),
                            .conversation_id = t->conversation_id,
                            .agent = t->agent,
                            .requester = t->requester,
                            .root_user = t->root_user,
                            .data = buf_str(&data),
                        });
    buf_fini(&data);
    store_submit(s->walk->opts.store, &l->tx, on_late_result_reported, l);
}

void walk_too_late(struct walk *w, const struct task *t, int64_t turn,
                   int64_t attempt, uint64_t receipt)
{
    task_late(w->tasks);
    late_result_tell(w->late_results, t, turn, attempt);
    deliver_recorded(w->deliver, receipt, ERR_TASK_IS_OVER);
}

/* Judging. */

/* A result for that turn of t, which is in memory or in the store, from the
 * agent with that name on its connection. ERR_TASK_IS_OVER; ERR_NOT_FOUND: not
 * its task; ERR_BAD_REQUEST: there was no such turn yet; OK: the turn is not
 * over. */
static enum err judge_late_result(const struct walk *w, struct str agent,
                                  const struct task *t, int64_t turn)
{
    const struct agent *a = registry_agent_for(w->opts.registry, t);
    const struct agent *speaker = registry_agent(w->opts.registry, agent);

    if (!a || (!str_eq_nocase(a->name, agent) &&
               !(speaker && deliver_shares_line(speaker, a))))
        return ERR_NOT_FOUND;
    if (turn > t->turn)
        return ERR_BAD_REQUEST;
    return task_is_over(t->status) || turn < t->turn ? ERR_TASK_IS_OVER : OK;
}

static void late_result_answer(struct walk *w, uint64_t receipt, enum err e)
{
    if (e == ERR_TASK_IS_OVER)
        task_late(w->tasks);
    deliver_recorded(w->deliver, receipt, e);
}

static void on_late_result_task(struct query *q, void *ctx)
{
    struct late_lookup *k = ctx;
    struct late_results *s = k->late_results;
    enum err e = q->err ? q->err : ERR_NOT_FOUND;
    struct task t;

    if (!q->err && q->rows) {
        task_from_row(&t, q->rows);
        e = judge_late_result(s->walk, (struct str){k->agent.text, k->agent.n},
                              &t, k->turn_meant);
        if (e == ERR_TASK_IS_OVER)
            late_result_tell(s, &t, k->turn, k->attempt);
        else if (!e)
            e = ERR_BUSY; /* the turn has started meanwhile: try again */
    }
    query_fini(q);
    list_remove(&k->node);
    s->n_asked--;
    late_result_answer(s->walk, k->receipt, e);
    free(k);
}

/* Read a task that is not in memory. */
static void late_result_ask(struct late_results *s, struct str agent,
                            const struct wire_word *w, uint64_t receipt)
{
    struct late_lookup *k;
    size_t n_of_it = 0;

    for (const struct list_node *at = list_first(&s->lookups); at;
         at = list_next(&s->lookups, at))
        n_of_it +=
            late_agent_is(&LIST_OF(at, struct late_lookup, node)->agent, agent);
    if (!id_is_valid(w->task_id, "task") || agent.n > AGENT_NAME_MAX) {
        late_result_answer(s->walk, receipt, ERR_NOT_FOUND);
        return;
    }
    if (s->n_asked >= LATE_RESULTS_ASKED_MAX ||
        n_of_it >= LATE_RESULTS_ASKED_OF_ONE) {
        late_result_answer(s->walk, receipt, ERR_BUSY);
        return;
    }
    k = mem_new(sizeof(*k));
    s->n_asked++;
    list_append(&s->lookups, &k->node);
    k->late_results = s;
    k->receipt = receipt;
    k->turn = w->turn;
    k->turn_meant = wire_turn(w);
    k->attempt = w->attempt;
    late_agent_keep(&k->agent, agent);
    memcpy(k->task_id.text, w->task_id.p, w->task_id.n);
    query_init(&k->query, &task_table, 1);
    query_if(&k->query, TASK_ID, IS, value_text(str_of(k->task_id.text)));
    store_read(s->walk->opts.store, &k->query, on_late_result_task, k);
}

void walk_on_unmatched_result(void *ctx, struct str agent,
                              const struct wire_word *word, uint64_t receipt)
{
    struct walk *w = ctx;
    const struct task *t = task_find(w->tasks, word->task_id);
    enum err e;

    e = t ? judge_late_result(w, agent, t, wire_turn(word)) : ERR_NOT_FOUND;
    /* The same answer whether the task exists or not. */
    if (e == ERR_NOT_FOUND) {
        late_result_ask(w->late_results, agent, word, receipt);
        return;
    }
    if (e == ERR_TASK_IS_OVER) {
        walk_too_late(w, t, word->turn, word->attempt, receipt);
        return;
    }
    if (!e && t->attempt == 0)
        e = ERR_NOT_FOUND; /* it was not delivered yet */
    /* Chunks of an earlier attempt are gone, so it must bring its text. */
    if (!e && !word->has_text && word->result.status == TASK_COMPLETED)
        e = ERR_GONE;
    if (!e)
        e = walk_take_result(w, word->task_id, &word->result, true, receipt);
    if (e)
        deliver_recorded(w->deliver, receipt, e);
}
