/* A task is in memory while it is not over or has listeners, and always in its
 * row. This is the only place that looks at both, memory first.
 *
 * Between the two looks a task may move: if its row says that it is not over,
 * it came into memory after the first look (a further turn), or ended before
 * the second. Then both are repeated, a few times: a task can hardly start and
 * end between two looks for ever. */
#include "api/share.h"

#include "delegation/delegation.h"

enum { LOOKS_MAX = 5 };

static void share_begin_query(struct query *q, bool *is_used,
                              const struct table *t)
{
    if (*is_used)
        query_fini(q);
    query_init(q, t, 1);
    *is_used = true;
}

void share_look_ask(struct query *q, bool *is_used, struct str task_id)
{
    share_begin_query(q, is_used, &task_table);
    query_if(q, TASK_ID, IS, value_text(task_id));
}

enum err share_look_row(const struct tasks *tasks, const struct query *q,
                        struct str task_id, unsigned *n_looks, struct task *row,
                        const struct task **out)
{
    *out = NULL;
    if (q->err || !q->rows)
        return q->err ? q->err : ERR_NOT_FOUND;
    task_from_row(row, q->rows);
    *out = task_find(tasks, task_id);
    if (!*out && (task_is_over(row->status) || ++*n_looks == LOOKS_MAX))
        *out = row;
    return OK;
}

bool share_look_is_current(const struct id *message_id, const struct task *t)
{
    return !message_id->text[0] ||
           strcmp(message_id->text, t->message_id.text) == 0;
}

void share_turn_ask(struct query *q, bool *is_used, const struct task *t,
                    const struct id *message_id)
{
    share_begin_query(q, is_used, &turn_table);
    query_if(q, TURN_TASK_SEQ, IS, value_int(t->seq));
    query_if(q, TURN_MESSAGE_ID, IS, value_text(str_of(message_id->text)));
}

void share_number_ask(struct query *q, bool *is_used, const struct task *t,
                      int64_t turn)
{
    share_begin_query(q, is_used, &turn_table);
    query_if(q, TURN_TASK_SEQ, IS, value_int(t->seq));
    query_if(q, TURN_NUMBER, IS, value_int(turn));
}

void share_delegation_ask(struct query *q, bool *is_used, struct str key)
{
    share_begin_query(q, is_used, &delegation_table);
    query_if(q, DELEGATION_KEY, IS, value_text(key));
}

struct task share_turn(const struct task *t, const struct query *turn,
                       const struct id *message_id)
{
    struct task past = *t;

    past.message_id = *message_id;
    task_of_turn(&past, turn->rows);
    return past;
}
