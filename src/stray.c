/* Nothing here is in anybody's way: what cannot be asked is answered with "try
 * again", and what cannot be told is only counted. */
#include "stray.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/json.h"
#include "model/agent.h"
#include "task/task.h"
#include "watch/watch.h"

enum { MINUTE_MS = 60 * 1000, DATA_MAX = 128 };

struct name {
    size_t n;
    char text[AGENT_NAME_MAX];
};

struct strays {
    struct strays_opts opts;
    struct list asked; /* struct asked */
    size_t n_asked, n_telling;
    struct id told[STRAYS_REMEMBERED]; /* the next one's place is n_told */
    size_t n_told;
    int64_t minute_ms; /* that began then; loop's monotonic time */
    int n_in_minute;
    struct name told_of[STRAYS_TOLD_PER_MINUTE]; /* in it */
};

/* A question on its way. */
struct asked {
    struct strays *strays;
    struct list_node node;
    struct query query;
    struct id task_id;
    int64_t turn, attempt; /* as the agent said them */
    int64_t turn_meant;
    uint64_t receipt;
    struct name agent;
};

/* An entry of the feed on its way. */
struct telling {
    struct strays *strays;
    struct tx tx;
};

struct strays *strays_new(const struct strays_opts *opts)
{
    struct strays *s = FAULT("stray.new") ? NULL : calloc(1, sizeof(*s));

    if (s) {
        s->opts = *opts;
        list_init(&s->asked);
    }
    return s;
}

void strays_free(struct strays *s)
{
    assert(!s || (!s->n_asked && !s->n_telling));
    free(s);
}

static void keep_name(struct name *to, struct str name)
{
    assert(name.n <= sizeof(to->text));
    to->n = name.n;
    memcpy(to->text, name.p, name.n);
}

static bool is_named(const struct name *is, struct str name)
{
    return str_eq_nocase((struct str){is->text, is->n}, name);
}

/* Telling. */

static bool may_be_told(struct strays *s, const struct id *task_id,
                        struct str agent)
{
    int64_t now_ms = loop_mono_ms(s->opts.loop);
    int n_of_it = 0;

    for (size_t i = 0; i < STRAYS_REMEMBERED; i++)
        if (strcmp(s->told[i].text, task_id->text) == 0)
            return false;
    if (!s->minute_ms || now_ms - s->minute_ms >= MINUTE_MS) {
        s->minute_ms = now_ms;
        s->n_in_minute = 0;
    }
    for (int i = 0; i < s->n_in_minute; i++)
        n_of_it += is_named(&s->told_of[i], agent);
    return s->n_in_minute < STRAYS_TOLD_PER_MINUTE &&
           n_of_it < STRAYS_TOLD_OF_ONE;
}

static void on_told(struct tx *tx, void *ctx)
{
    struct telling *l = ctx;

    if (tx->result != TX_COMMITTED)
        log_warn(l->strays->opts.log, "walk.late_result_not_told",
                 LOG_C("because", err_row(tx->err)->wording));
    l->strays->n_telling--;
    tx_fini(tx);
    free(l);
}

static struct str put_data(struct buf *out, int64_t turn, int64_t attempt)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_member_int(&o, "turn", turn);
    json_member_int(&o, "attempt", attempt);
    json_close(&o, '}');
    return buf_str(out);
}

void stray_tell(struct strays *s, const struct task *t, int64_t turn,
                int64_t attempt)
{
    struct telling *l;
    struct buf data;

    if (!t || !may_be_told(s, &t->id, t->agent))
        return;
    l = FAULT("stray.tell") ? NULL : calloc(1, sizeof(*l));
    if (!l)
        return;
    s->told[s->n_told++ % STRAYS_REMEMBERED] = t->id;
    keep_name(&s->told_of[s->n_in_minute++], t->agent);
    s->n_telling++;
    l->strays = s;
    tx_init(&l->tx);
    buf_init(&data, DATA_MAX);
    feed_append(&l->tx, &(struct feed_entry){
                            .at_ms = loop_wall_ms(s->opts.loop),
                            .type = STR("task.late_result"),
                            .task_id = str_of(t->id.text),
                            .conversation_id = t->conversation_id,
                            .agent = t->agent,
                            .requester = t->requester,
                            .root_user = t->root_user,
                            .data = put_data(&data, turn, attempt),
                        });
    buf_fini(&data);
    store_submit(s->opts.store, &l->tx, on_told, l);
}

/* Asking. */

static void on_row(struct query *q, void *ctx)
{
    struct asked *k = ctx;
    struct strays *s = k->strays;
    enum err e = q->err ? q->err : ERR_NOT_FOUND;
    struct task t;

    if (!q->err && q->rows) {
        task_from_row(&t, q->rows);
        e = s->opts.judge(s->opts.ctx, (struct str){k->agent.text, k->agent.n},
                          &t, k->turn_meant);
        if (e == ERR_TASK_IS_OVER)
            stray_tell(s, &t, k->turn, k->attempt);
        else if (!e)
            e = ERR_BUSY;
    }
    query_fini(q);
    list_remove(&k->node);
    s->n_asked--;
    s->opts.on_known(s->opts.ctx, k->receipt, e);
    free(k);
}

static bool may_ask(const struct strays *s, struct str agent)
{
    size_t n_of_it = 0;

    for (const struct list_node *at = list_first(&s->asked); at;
         at = list_next(&s->asked, at))
        n_of_it += is_named(&LIST_OF(at, struct asked, node)->agent, agent);
    return s->n_asked < STRAYS_ASKED_MAX && n_of_it < STRAYS_ASKED_OF_ONE;
}

void stray_ask(struct strays *s, struct str agent, const struct wire_word *w,
               uint64_t receipt)
{
    struct asked *k;

    if (!id_is_valid(w->task_id, "task") || agent.n > AGENT_NAME_MAX) {
        s->opts.on_known(s->opts.ctx, receipt, ERR_NOT_FOUND);
        return;
    }
    k = !may_ask(s, agent) || FAULT("stray.ask") ? NULL : calloc(1, sizeof(*k));
    if (!k) {
        s->opts.on_known(s->opts.ctx, receipt, ERR_BUSY);
        return;
    }
    s->n_asked++;
    list_append(&s->asked, &k->node);
    k->strays = s;
    k->receipt = receipt;
    k->turn = w->turn;
    k->turn_meant = wire_turn(w);
    k->attempt = w->attempt;
    keep_name(&k->agent, agent);
    memcpy(k->task_id.text, w->task_id.p, w->task_id.n);
    query_init(&k->query, &task_table, 1);
    query_if(&k->query, TASK_ID, IS, value_text(str_of(k->task_id.text)));
    store_read(s->opts.store, &k->query, on_row, k);
}
