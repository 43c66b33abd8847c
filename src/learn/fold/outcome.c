/* Outcomes as rows. They are kept in the order of their commits, and read again
 * in that order for a rebuild. */
#include "learn/fold/internal.h"

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

static const struct column outcome_columns[N_OUTCOME_COLUMNS] = {
    [OUTCOME_SEQ] = {.name = "seq", .type = COLUMN_INT},
    [OUTCOME_AT_MS] = {.name = "at_ms", .type = COLUMN_INT},
    [OUTCOME_KIND] = {.name = "kind", .type = COLUMN_INT},
    [OUTCOME_VERDICT_IS] = {.name = "verdict", .type = COLUMN_INT},
    [OUTCOME_DECISION_ID] = {.name = "decision_id", .type = COLUMN_TEXT},
    [OUTCOME_LAYER] = {.name = "layer", .type = COLUMN_INT},
    [OUTCOME_AGENT] = {.name = "agent", .type = COLUMN_TEXT},
    [OUTCOME_RIGHT_AGENT] = {.name = "right_agent", .type = COLUMN_TEXT},
    [OUTCOME_SCOPE] = {.name = "scope", .type = COLUMN_TEXT},
    [OUTCOME_BY] = {.name = "said_by", .type = COLUMN_TEXT},
    [OUTCOME_TEXT] = {.name = "text", .type = COLUMN_TEXT},
    [OUTCOME_VECTOR] = {.name = "vector", .type = COLUMN_BLOB},
    [OUTCOME_MODEL_HASH] = {.name = "model_hash", .type = COLUMN_TEXT},
    [OUTCOME_COUNTS] = {.name = "counts", .type = COLUMN_INT, .since = 2},
    [OUTCOME_REQUESTER] = {.name = "requester",
                           .type = COLUMN_TEXT,
                           .since = 3},
    [OUTCOME_OWNER] = {.name = "owner", .type = COLUMN_TEXT, .since = 3},
    [OUTCOME_RIGHT_OWNER] = {.name = "right_owner",
                             .type = COLUMN_TEXT,
                             .since = 3},
    [OUTCOME_TEXT_HASH] = {.name = "text_hash", .type = COLUMN_INT, .since = 3},
};

/* For retention, and for voids, which are rare. */
static const struct table_index outcome_indexes[] = {
    {.name = "outcome_by_time", .columns = {OUTCOME_AT_MS}, .n_columns = 1},
    {.name = "outcome_by_kind",
     .columns = {OUTCOME_KIND},
     .n_columns = 1,
     .since = 3},
};

const struct table outcome_table = {
    .name = "outcome",
    .columns = outcome_columns,
    .n_columns = N_OUTCOME_COLUMNS,
    .n_key = 1,
    .is_counted = true,
    .indexes = outcome_indexes,
    .n_indexes = N_OF(outcome_indexes),
};

static const struct column learn_columns[N_LEARN_COLUMNS] = {
    [LEARN_KIND] = {.name = "kind", .type = COLUMN_INT},
    [LEARN_KEY] = {.name = "key", .type = COLUMN_TEXT},
    [LEARN_BYTES] = {.name = "bytes", .type = COLUMN_BLOB},
};

const struct table learn_table = {
    .name = "learnt",
    .columns = learn_columns,
    .n_columns = N_LEARN_COLUMNS,
    .n_key = 2,
};

static const struct table *const tables[] = {&outcome_table, &learn_table};

const struct schema learn_schema = {
    .room = "learn",
    .tables = tables,
    .n_tables = N_OF(tables),
};

struct tx_op *outcome_append(struct tx *tx, const struct outcome *o)
{
    struct tx_op *op = tx_insert(tx, &outcome_table);
    struct str text = str_head(o->text, DECISION_TEXT_MAX);

    tx_set(op, OUTCOME_AT_MS, value_int(o->at_ms));
    tx_set(op, OUTCOME_KIND, value_int(o->kind));
    tx_set(op, OUTCOME_VERDICT_IS, value_int(o->verdict));
    tx_set(op, OUTCOME_DECISION_ID,
           value_text_or_null(str_of(o->decision_id.text)));
    tx_set(op, OUTCOME_LAYER, value_int(o->layer));
    tx_set(op, OUTCOME_AGENT, value_text_or_null(o->agent));
    tx_set(op, OUTCOME_RIGHT_AGENT, value_text_or_null(o->right_agent));
    tx_set(op, OUTCOME_SCOPE, value_text_or_null(o->scope));
    tx_set(op, OUTCOME_BY, value_text_or_null(o->by));
    tx_set(op, OUTCOME_TEXT, value_text_or_null(text));
    tx_set(op, OUTCOME_VECTOR,
           o->vector.n ? value_blob(o->vector) : value_null());
    tx_set(op, OUTCOME_MODEL_HASH, value_text_or_null(o->model_hash));
    tx_set(op, OUTCOME_COUNTS, value_int(o->counts));
    tx_set(op, OUTCOME_REQUESTER, value_text_or_null(o->requester));
    tx_set(op, OUTCOME_OWNER, value_text_or_null(o->owner));
    tx_set(op, OUTCOME_RIGHT_OWNER, value_text_or_null(o->right_owner));
    tx_set(op, OUTCOME_TEXT_HASH, value_int((int64_t)o->text_hash));
    return op;
}

void outcome_from_row(const struct row *r, struct outcome *out)
{
    struct str id = row_str(r, OUTCOME_DECISION_ID);

    *out = (struct outcome){
        .seq = row_int(r, OUTCOME_SEQ),
        .at_ms = row_int(r, OUTCOME_AT_MS),
        .kind = (enum outcome_kind)row_int(r, OUTCOME_KIND),
        .verdict = (enum verdict)row_int(r, OUTCOME_VERDICT_IS),
        .layer = (enum layer)row_int(r, OUTCOME_LAYER),
        .agent = row_str(r, OUTCOME_AGENT),
        .right_agent = row_str(r, OUTCOME_RIGHT_AGENT),
        .scope = row_str(r, OUTCOME_SCOPE),
        .by = row_str(r, OUTCOME_BY),
        .text = row_str(r, OUTCOME_TEXT),
        .vector = row_str(r, OUTCOME_VECTOR),
        .model_hash = row_str(r, OUTCOME_MODEL_HASH),
        .counts = (enum outcome_counts)row_int(r, OUTCOME_COUNTS),
        .requester = row_str(r, OUTCOME_REQUESTER),
        .owner = row_str(r, OUTCOME_OWNER),
        .right_owner = row_str(r, OUTCOME_RIGHT_OWNER),
        .text_hash = (uint64_t)row_int(r, OUTCOME_TEXT_HASH),
    };
    if (id.n < sizeof(out->decision_id.text))
        memcpy(out->decision_id.text, id.n ? id.p : "", id.n);
}
