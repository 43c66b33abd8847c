/* The earlier messages of a conversation.
 *
 *     tasks of the conversation -> for each with several turns, the turns
 *     before its last -> the newest that fit, oldest first
 *
 * A task's row has its last turn; earlier turns are rows of turn_table
 * (task.h). So there is one query for the tasks and one for each task with
 * further turns, which are few. Rows bound how far back it looks, and bytes
 * bound a page of the store.
 *
 * After each query the turns found so far are sorted by time and cut to the
 * limits. The cut stays as a border: older turns are ignored from then on, so
 * the history never has a hole.
 *
 * Only completed turns count, with question and answer: half of one would leave
 * two messages of the same speaker in a row, which some models reject. */
#include <stdlib.h>

#include "task/internal.h"

enum { SPARE_ROWS = 16, ROWS_MAX = 500 + SPARE_ROWS };

/* The position of a turn in time; unique. */
struct moment {
    int64_t began_ms, seq, number;
};

/* One turn. */
struct pair {
    struct moment at;
    size_t n_question, n_answer;
    char bytes[];
};

struct task_history {
    struct store *store;
    task_history_done *done; /* NULL: cancelled */
    void *ctx;
    struct query query;

    /* The asking task. */
    struct id task_id;
    int64_t began_ms, place;

    size_t max_pairs, max_bytes, max_rows;
    struct pair *pairs[2 * ROWS_MAX]; /* the newest first */
    size_t n_pairs;
    struct moment border; /* exclusive */
    bool has_border;

    int64_t seqs[ROWS_MAX]; /* tasks whose turns are still to be read */
    size_t n_seqs, next_seq;
};

static void history_free_from(struct task_history *h, size_t n)
{
    while (h->n_pairs > n)
        free(h->pairs[--h->n_pairs]);
}

static void history_free(struct task_history *h)
{
    history_free_from(h, 0);
    free(h);
}

/* The later one first. */
static int moment_compare(const struct moment *a, const struct moment *b)
{
    if (a->began_ms != b->began_ms)
        return a->began_ms > b->began_ms ? -1 : 1;
    if (a->seq != b->seq)
        return a->seq > b->seq ? -1 : 1;
    return a->number > b->number ? -1 : a->number < b->number;
}

static int pairs_by_time(const void *left, const void *right)
{
    return moment_compare(&(*(struct pair *const *)left)->at,
                          &(*(struct pair *const *)right)->at);
}

/* Sort the turns, and drop those beyond the limits. */
static void history_cut(struct task_history *h)
{
    size_t n = 0, bytes = 0;

    if (h->n_pairs)
        qsort(h->pairs, h->n_pairs, sizeof(h->pairs[0]), pairs_by_time);
    while (n < h->n_pairs && n < h->max_pairs) {
        const struct pair *p = h->pairs[n];

        if (p->n_question + p->n_answer > h->max_bytes - bytes)
            break;
        bytes += p->n_question + p->n_answer;
        n++;
    }
    if (n < h->n_pairs) {
        h->border = h->pairs[n]->at;
        h->has_border = true;
    }
    history_free_from(h, n);
}

/* Add a completed turn. One that can never fit is added without its bytes: it
 * marks where the cut will be. */
static enum err history_add_pair(struct task_history *h, struct moment at,
                                 struct str question, struct str answer)
{
    bool fits =
        question.n <= h->max_bytes && answer.n <= h->max_bytes - question.n;
    struct pair *p;

    if (!question.n || !answer.n ||
        (h->has_border && moment_compare(&at, &h->border) >= 0))
        return OK;
    p = FAULT("task.history")
            ? NULL
            : malloc(sizeof(*p) + (fits ? question.n + answer.n : 0));
    if (!p)
        return ERR_NOMEM;
    p->at = at;
    p->n_question = question.n;
    p->n_answer = answer.n;
    if (fits) {
        memcpy(p->bytes, question.p, question.n);
        memcpy(p->bytes + question.n, answer.p, answer.n);
    }
    h->pairs[h->n_pairs++] = p;
    return OK;
}

static void history_finish(struct task_history *h, enum err e)
{
    struct task_said *list = NULL;
    size_t n = e ? 0 : 2 * h->n_pairs;

    if (n)
        list = mem_array(n, sizeof(*list));
    for (size_t i = 0; i < n / 2; i++) {
        const struct pair *p = h->pairs[n / 2 - 1 - i];

        list[2 * i] = (struct task_said){
            false, {p->bytes, p->n_question}, p->at.seq, p->at.number};
        list[2 * i + 1] =
            (struct task_said){true,
                               {p->bytes + p->n_question, p->n_answer},
                               p->at.seq,
                               p->at.number};
    }
    h->done(h->ctx, e, list, n);
    free(list);
    history_free(h);
}

/* Turns before the last of one task. */

static void history_read_turns(struct task_history *h);

static enum err history_take_turns(struct task_history *h)
{
    enum err e = OK;

    QUERY_EACH(r, &h->query)
    {
        struct moment at = {row_int(r, TURN_BEGAN_MS),
                            row_int(r, TURN_TASK_SEQ), row_int(r, TURN_NUMBER)};

        if (!e && row_int(r, TURN_STATUS) == TASK_COMPLETED &&
            at.began_ms <= h->began_ms)
            e = history_add_pair(h, at, row_str(r, TURN_TEXT),
                                 row_str(r, TURN_RESULT_TEXT));
    }
    history_cut(h);
    return e;
}

static void history_on_turns(struct query *q, void *ctx)
{
    struct task_history *h = ctx;
    enum err e = q->err ? q->err : history_take_turns(h);

    query_fini(q);
    if (!h->done)
        history_free(h);
    else if (e)
        history_finish(h, e);
    else
        history_read_turns(h);
}

static void history_read_turns(struct task_history *h)
{
    if (h->next_seq == h->n_seqs) {
        history_finish(h, OK);
        return;
    }
    query_init(&h->query, &turn_table, h->max_rows);
    query_if(&h->query, TURN_TASK_SEQ, IS, value_int(h->seqs[h->next_seq++]));
    query_order(&h->query, TURN_NUMBER, true);
    h->query.is_quick = true;
    store_read(h->store, &h->query, history_on_turns, h);
}

/* The tasks. */

static enum err history_take_task(struct task_history *h, const struct row *r)
{
    struct task t;

    task_from_row(&t, r);
    if (t.turn > 1)
        h->seqs[h->n_seqs++] = t.seq;
    if (t.status != TASK_COMPLETED || t.place >= h->place ||
        strcmp(t.id.text, h->task_id.text) == 0)
        return OK;
    return history_add_pair(h,
                            (struct moment){task_began_ms(&t), t.seq, t.turn},
                            t.text, t.result.text);
}

static void history_on_tasks(struct query *q, void *ctx)
{
    struct task_history *h = ctx;
    enum err e = q->err;

    for (const struct row *r = q->rows; r && !e; r = r->next)
        e = history_take_task(h, r);
    query_fini(q);
    if (!h->done) {
        history_free(h);
        return;
    }
    history_cut(h);
    if (e)
        history_finish(h, e);
    else
        history_read_turns(h);
}

struct task_history *task_history_new(struct tasks *ts, const struct task *t,
                                      size_t max_n, size_t max_bytes,
                                      task_history_done *done, void *ctx)
{
    struct task_history *h = mem_new(sizeof(*h));
    size_t rows = max_n + SPARE_ROWS;

    *h = (struct task_history){
        .store = ts->opts.store,
        .done = done,
        .ctx = ctx,
        .task_id = t->id,
        .began_ms = task_began_ms(t),
        .place = t->place,
        .max_rows = rows < ROWS_MAX ? rows : ROWS_MAX,
        .max_bytes = max_bytes,
    };
    h->max_pairs = max_n / 2 < h->max_rows ? max_n / 2 : h->max_rows;
    query_init(&h->query, &task_table, h->max_rows);
    if (!PLANTED("task.anybodys_history"))
        query_if(&h->query, TASK_REQUESTER, IS, value_text(t->requester));
    query_if(&h->query, TASK_CONVERSATION_ID, IS,
             value_text(t->conversation_id));
    query_if(&h->query, TASK_AGENT, IS, value_text(t->agent));
    query_order(&h->query, TASK_SEQ, true);
    h->query.is_quick = true;
    store_read(h->store, &h->query, history_on_tasks, h);
    return h;
}

void task_history_cancel(struct task_history *h)
{
    h->done = NULL;
    store_forget(h->store, &h->query);
}
