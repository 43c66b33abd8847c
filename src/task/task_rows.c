/* The fields of struct task whose columns have a rule of their own; all others
 * are in the list of columns (task.h). Optional strings are NULL in the row and
 * empty in the struct. Only a result text can be empty and not NULL: it is NULL
 * exactly while there is no answer. */
#include "task/internal.h"

#include <assert.h>
#include <stdlib.h>

void task_from_row(struct task *t, const struct row *r)
{
    *t = (struct task){.seq = 0};
    record_from_row(t, &task_table, r);
    if (!row_is_null(r, TASK_FINISHED_MS))
        t->result.status = t->status;
}

void task_of_turn(struct task *t, const struct row *r)
{
    struct id message_id = t->message_id; /* not that of the turn */

    record_from_row(t, &turn_table, r);
    t->message_id = message_id;
    if (t->turn < 0)
        t->turn = 0;   /* a dropped message is not a turn */
    t->started_ms = 0; /* not kept for earlier turns */
    t->result.status = t->status;
}

char *result_keep(struct task_result *r)
{
    size_t bytes = r->text.n + r->metadata.n + r->error_code.n + r->error.n +
                   r->by.n + 1; /* never an allocation of nothing */
    char *all = FAULT("task.keep") ? NULL : malloc(bytes), *at = all;

    if (!all)
        return NULL;
    r->text = str_pack(&at, r->text);
    r->metadata = str_pack(&at, r->metadata);
    r->error_code = str_pack(&at, r->error_code);
    r->error = str_pack(&at, r->error);
    r->by = str_pack(&at, r->by);
    return all;
}

/* An empty text of a completed task is still an answer. */
static struct value task_answer_value(const struct task_result *r)
{
    return r->status == TASK_COMPLETED ? value_text(r->text)
                                       : value_text_or_null(r->text);
}

void task_result_to_row(struct tx_op *op, const struct task_result *r)
{
    tx_set(op, TASK_RESULT_TEXT, task_answer_value(r));
    tx_set(op, TASK_RESULT_METADATA, value_text_or_null(r->metadata));
    tx_set(op, TASK_ERROR_CODE, value_text_or_null(r->error_code));
    tx_set(op, TASK_ERROR, value_text_or_null(r->error));
}

void turn_to_row(struct tx_op *op, const struct task *t)
{
    record_to_tx(op, t, TASK_PER_TURN);
    tx_set(op, TURN_BEGAN_MS, value_int(task_began_ms(t)));
    tx_set(op, TURN_RESULT_TEXT, task_answer_value(&t->result));
}

static void task_feed_data(struct buf *out, const struct task *t,
                           const struct msg *m, const struct task_result *r)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    if (!r) {
        json_member_some(&o, "status", task_status_name(t->status));
        json_member_some(&o, "priority", task_priority_name(t->priority));
    }
    if (m && m->choice.id.text[0]) {
        json_member_some(&o, "layer", layer_name(m->choice.layer));
        json_member_some(&o, "decision_id", str_of(m->choice.id.text));
        if (m->choice.is_unsure)
            json_member_bool(&o, "unsure", true);
    }
    json_member_int(&o, "turn", t->turn > 0 ? t->turn : 0);
    if (r) {
        json_member_int(&o, "attempt", t->attempt);
        json_member_some(&o, "error_code", r->error_code);
        json_member_some(&o, "by", r->by);
    }
    json_close(&o, '}');
}

void task_tell_feed(struct tx *tx, const struct task *t, int64_t at_ms,
                    const struct msg *m, const struct task_result *r)
{
    struct str what = r ? task_status_name(r->status) : STR("accepted");
    char type[32] = "task.";
    struct buf data;

    assert(what.n < sizeof(type) - sizeof("task."));
    memcpy(type + sizeof("task.") - 1, what.p, what.n);
    buf_init(&data, TASK_FEED_DATA_MAX);
    task_feed_data(&data, t, m, r);
    feed_append_data(tx, &data,
                     &(struct feed_entry){
                         .at_ms = at_ms,
                         .type = str_of(type),
                         .task_id = str_of(t->id.text),
                         .conversation_id = t->conversation_id,
                         .agent = t->agent,
                         .requester = t->requester,
                         .root_user = t->root_user,
                     });
}
