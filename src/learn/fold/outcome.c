/* Outcomes as rows. They are kept in the order of their commits, and read again
 * in that order for a rebuild. */
#include "learn/fold/internal.h"

#include "model/record.h"

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

#define READ(field) MEMBER(struct outcome, field)
#define BOTH(field) READ(field), .part = 1
#define BLOB(field) MEMBER_BLOB(struct outcome, field), .part = 1

static const struct column outcome_columns[] = {OUTCOME_COLUMNS(COLUMN_ROW)};

/* For retention, and for voids, which are rare. */
static const struct table_index outcome_indexes[] = {
    {.name = "outcome_by_time", INDEX_ON(OUTCOME_AT_MS)},
    {.name = "outcome_by_kind", INDEX_ON(OUTCOME_KIND), .since = 3},
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

static const struct column learn_columns[] = {LEARN_COLUMNS(COLUMN_ROW)};

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
    struct outcome row = *o;

    row.text = str_head(o->text, DECISION_TEXT_MAX);
    record_to_tx(op, &row, 1);
    return op;
}

void outcome_from_row(const struct row *r, struct outcome *out)
{
    *out = (struct outcome){.seq = 0};
    record_from_row(out, &outcome_table, r);
}
