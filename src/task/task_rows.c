/* Conversion between struct task and its row, in both directions: the only
 * place that knows what a column means. Optional strings are NULL in the row
 * and empty in the struct. Only a result text can be empty and not NULL: it is
 * NULL exactly while there is no answer. */
#include "task/internal.h"

#include <assert.h>
#include <stdlib.h>

void task_from_row(struct task *t, const struct row *r)
{
    *t = (struct task){
        .seq = row_int(r, TASK_SEQ),
        .place = row_int(r, TASK_PLACE),
        .id = id_from(row_str(r, TASK_ID)),
        .message_id = id_from(row_str(r, TASK_MESSAGE_ID)),
        .decision_id = id_from(row_str(r, TASK_DECISION_ID)),
        .conversation_id = row_str(r, TASK_CONVERSATION_ID),
        .requester = row_str(r, TASK_REQUESTER),
        .root_user = row_str(r, TASK_ROOT_USER),
        .agent = row_str(r, TASK_AGENT),
        .skill = row_str(r, TASK_SKILL),
        .order_key = row_str(r, TASK_ORDER_KEY),
        .priority = (enum task_priority)row_int(r, TASK_PRIORITY),
        .status = (enum task_status)row_int(r, TASK_STATUS),
        .version = row_int(r, TASK_VERSION),
        .turn = row_int(r, TASK_TURN),
        .attempt = row_int(r, TASK_ATTEMPT),
        .interrupted = row_int(r, TASK_INTERRUPTED),
        .text = row_str(r, TASK_TEXT),
        .is_envelope = row_int(r, TASK_ENVELOPE) != 0,
        .metadata = row_str(r, TASK_METADATA),
        .source = row_str(r, TASK_SOURCE),
        .created_ms = row_int(r, TASK_CREATED_MS),
        .updated_ms = row_int(r, TASK_UPDATED_MS),
        .deadline_ms = row_int(r, TASK_DEADLINE_MS),
        .finished_ms = row_int(r, TASK_FINISHED_MS),
        .budget_ms = row_int(r, TASK_BUDGET_MS),
        .parent_id = row_str(r, TASK_PARENT_ID),
        .depth = row_int(r, TASK_DEPTH),
        .by_agent = row_str(r, TASK_BY_AGENT),
        .root_id = row_str(r, TASK_ROOT_ID),
        .chain = row_str(r, TASK_CHAIN),
        .price_micros = row_int(r, TASK_PRICE_MICROS),
        .payee = row_str(r, TASK_PAYEE),
        .tree = id_from(row_str(r, TASK_TREE)),
        .ceiling_micros = row_int(r, TASK_CEILING_MICROS),
        .started_ms = row_int(r, TASK_STARTED_MS),
        .talk = row_str(r, TASK_TALK),
        .trace = row_str(r, TASK_TRACE),
        .owner_node = row_str(r, TASK_OWNER_NODE),
        .epoch = row_int(r, TASK_EPOCH),
        .lease_until_ms = row_int(r, TASK_LEASE_UNTIL_MS),
        .payer_org = row_str(r, TASK_PAYER_ORG),
        .priced_agent = row_str(r, TASK_PRICED_AGENT),
    };
    if (row_is_null(r, TASK_FINISHED_MS))
        return;
    t->result = (struct task_result){
        .status = t->status,
        .text = row_str(r, TASK_RESULT_TEXT),
        .metadata = row_str(r, TASK_RESULT_METADATA),
        .error_code = row_str(r, TASK_ERROR_CODE),
        .error = row_str(r, TASK_ERROR),
    };
}

void task_of_turn(struct task *t, const struct row *r)
{
    t->turn = row_int(r, TURN_NUMBER);
    if (t->turn < 0)
        t->turn = 0; /* a dropped message is not a turn */
    t->skill = row_str(r, TURN_SKILL);
    t->text = row_str(r, TURN_TEXT);
    t->metadata = row_str(r, TURN_METADATA);
    t->source = row_str(r, TURN_SOURCE);
    t->attempt = row_int(r, TURN_ATTEMPT);
    t->status = (enum task_status)row_int(r, TURN_STATUS);
    t->finished_ms = row_int(r, TURN_FINISHED_MS);
    t->started_ms = 0; /* not kept for earlier turns */
    t->price_micros = row_int(r, TURN_PRICE_MICROS);
    t->result =
        (struct task_result){.status = t->status,
                             .text = row_str(r, TURN_RESULT_TEXT),
                             .metadata = row_str(r, TURN_RESULT_METADATA),
                             .error_code = row_str(r, TURN_ERROR_CODE),
                             .error = row_str(r, TURN_ERROR)};
}

/* Copy n strings into one allocation and point them at it. Texts may be larger
 * than MEM_SMALL_BYTES, so this can fail. */
static char *strings_keep(struct str *const *strings, size_t n)
{
    size_t bytes = 1; /* never an allocation of nothing */
    char *all, *at;

    for (size_t i = 0; i < n; i++)
        bytes += strings[i]->n;
    all = at = FAULT("task.keep") ? NULL : malloc(bytes);
    if (!all)
        return NULL;
    for (size_t i = 0; i < n; i++)
        *strings[i] = str_pack(&at, *strings[i]);
    return all;
}

char *task_keep(struct task *t)
{
    struct str *const strings[] = {
        &t->conversation_id, &t->requester,    &t->root_user,  &t->agent,
        &t->skill,           &t->order_key,    &t->text,       &t->metadata,
        &t->source,          &t->parent_id,    &t->owner_node, &t->by_agent,
        &t->root_id,         &t->chain,        &t->payee,      &t->trace,
        &t->payer_org,       &t->priced_agent, &t->talk,
    };

    return strings_keep(strings, sizeof(strings) / sizeof(*strings));
}

char *result_keep(struct task_result *r)
{
    struct str *const strings[] = {&r->text, &r->metadata, &r->error_code,
                                   &r->error, &r->by};

    return strings_keep(strings, sizeof(strings) / sizeof(*strings));
}

static struct value task_price_value(const struct task *t)
{
    return t->price_micros ? value_int(t->price_micros) : value_null();
}

void task_turn_to_row(struct tx_op *op, const struct task *t)
{
    tx_set(op, TASK_PLACE, value_int(t->place));
    tx_set(op, TASK_MESSAGE_ID, value_text(str_of(t->message_id.text)));
    tx_set(op, TASK_SKILL, value_text_or_null(t->skill));
    tx_set(op, TASK_PRIORITY, value_int(t->priority));
    tx_set(op, TASK_STATUS, value_int(t->status));
    tx_set(op, TASK_VERSION, value_int(t->version));
    tx_set(op, TASK_TURN, value_int(t->turn));
    tx_set(op, TASK_ATTEMPT, value_int(t->attempt));
    tx_set(op, TASK_INTERRUPTED, value_int(t->interrupted));
    tx_set(op, TASK_TEXT, value_text(t->text));
    tx_set(op, TASK_ENVELOPE, t->is_envelope ? value_int(1) : value_null());
    tx_set(op, TASK_METADATA, value_text_or_null(t->metadata));
    tx_set(op, TASK_SOURCE, value_text_or_null(t->source));
    tx_set(op, TASK_UPDATED_MS, value_int(t->updated_ms));
    tx_set(op, TASK_DEADLINE_MS, value_int(t->deadline_ms));
    tx_set(op, TASK_BUDGET_MS, value_int(t->budget_ms));
    tx_set(op, TASK_OWNER_NODE, value_text_or_null(t->owner_node));
    tx_set(op, TASK_EPOCH, value_int(t->epoch));
    tx_set(op, TASK_PRICE_MICROS, task_price_value(t));
    tx_set(op, TASK_PAYEE, value_text_or_null(t->payee));
    tx_set(op, TASK_TREE, value_text_or_null(str_of(t->tree.text)));
    tx_set(op, TASK_CEILING_MICROS, value_int(t->ceiling_micros));
    tx_set(op, TASK_TALK, value_text_or_null(t->talk));
    tx_set(op, TASK_PARENT_ID, value_text_or_null(t->parent_id));
    tx_set(op, TASK_DEPTH, value_int(t->depth));
    tx_set(op, TASK_BY_AGENT, value_text_or_null(t->by_agent));
    tx_set(op, TASK_ROOT_ID, value_text_or_null(t->root_id));
    tx_set(op, TASK_CHAIN, value_text_or_null(t->chain));
    tx_set(op, TASK_TRACE, value_text_or_null(t->trace));
    tx_set(op, TASK_DECISION_ID,
           value_text_or_null(str_of(t->decision_id.text)));
    tx_set(op, TASK_PAYER_ORG, value_text_or_null(t->payer_org));
    tx_set(op, TASK_PRICED_AGENT, value_text_or_null(t->priced_agent));
}

void task_to_row(struct tx_op *op, const struct task *t)
{
    tx_set(op, TASK_ID, value_text(str_of(t->id.text)));
    tx_set(op, TASK_CONVERSATION_ID, value_text(t->conversation_id));
    tx_set(op, TASK_SESSION, value_text(task_session(t)));
    tx_set(op, TASK_REQUESTER, value_text(t->requester));
    tx_set(op, TASK_ROOT_USER, value_text(t->root_user));
    tx_set(op, TASK_AGENT, value_text(t->agent));
    tx_set(op, TASK_ORDER_KEY, value_text(t->order_key));
    tx_set(op, TASK_CREATED_MS, value_int(t->created_ms));
    task_turn_to_row(op, t);
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

void task_clear_result(struct tx_op *op)
{
    tx_set(op, TASK_FINISHED_MS, value_null());
    tx_set(op, TASK_STARTED_MS, value_null());
    tx_set(op, TASK_RESULT_TEXT, value_null());
    tx_set(op, TASK_RESULT_METADATA, value_null());
    tx_set(op, TASK_ERROR_CODE, value_null());
    tx_set(op, TASK_ERROR, value_null());
}

void turn_to_row(struct tx_op *op, const struct task *t)
{
    const struct task_result *r = &t->result;

    tx_set(op, TURN_TASK_SEQ, value_int(t->seq));
    tx_set(op, TURN_NUMBER, value_int(t->turn));
    tx_set(op, TURN_MESSAGE_ID, value_text(str_of(t->message_id.text)));
    tx_set(op, TURN_SKILL, value_text_or_null(t->skill));
    tx_set(op, TURN_TEXT, value_text(t->text));
    tx_set(op, TURN_METADATA, value_text_or_null(t->metadata));
    tx_set(op, TURN_SOURCE, value_text_or_null(t->source));
    tx_set(op, TURN_STATUS, value_int(t->status));
    tx_set(op, TURN_ATTEMPT, value_int(t->attempt));
    tx_set(op, TURN_BEGAN_MS, value_int(task_began_ms(t)));
    tx_set(op, TURN_FINISHED_MS, value_int(t->finished_ms));
    tx_set(op, TURN_RESULT_TEXT, task_answer_value(r));
    tx_set(op, TURN_RESULT_METADATA, value_text_or_null(r->metadata));
    tx_set(op, TURN_ERROR_CODE, value_text_or_null(r->error_code));
    tx_set(op, TURN_ERROR, value_text_or_null(r->error));
    tx_set(op, TURN_PRICE_MICROS, task_price_value(t));
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
