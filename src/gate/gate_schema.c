/* The tables. Only lookups have an index: holds and SLAs are read whole at a
 * start and otherwise found by their task. */
#include "gate/escalations.h"

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

static const struct column event_columns[N_EVENT_COLUMNS] = {
    [EVENT_SEQ] = {.name = "seq", .type = COLUMN_INT},
    [EVENT_AT_MS] = {.name = "at_ms", .type = COLUMN_INT},
    [EVENT_UNTIL_MS] = {.name = "until_ms", .type = COLUMN_INT},
    [EVENT_KEY] = {.name = "key", .type = COLUMN_BLOB},
    [EVENT_SCOPE] = {.name = "scope", .type = COLUMN_TEXT},
    [EVENT_REFERENCE] = {.name = "reference", .type = COLUMN_TEXT},
    [EVENT_FROM] = {.name = "from_name", .type = COLUMN_TEXT},
    [EVENT_TO] = {.name = "to_name", .type = COLUMN_TEXT},
    [EVENT_TYPE] = {.name = "type", .type = COLUMN_TEXT},
    [EVENT_MESSAGE_ID] = {.name = "message_id", .type = COLUMN_TEXT},
    [EVENT_APPROVED] = {.name = "approved", .type = COLUMN_INT},
    [EVENT_TASK_ID] = {.name = "task_id", .type = COLUMN_TEXT, .since = 2},
};

static const struct table_index event_indexes[] = {
    {.name = "event_by_end", .columns = {EVENT_UNTIL_MS}, .n_columns = 1},
};

const struct table event_table = {
    .name = "event",
    .columns = event_columns,
    .n_columns = N_EVENT_COLUMNS,
    .n_key = 1,
    .is_counted = true,
    .indexes = event_indexes,
    .n_indexes = N_OF(event_indexes),
};

static const struct column hold_columns[N_HOLD_COLUMNS] = {
    [HOLD_TASK_ID] = {.name = "task_id", .type = COLUMN_TEXT},
    [HOLD_TURN] = {.name = "turn", .type = COLUMN_INT},
    [HOLD_PLACE] = {.name = "place", .type = COLUMN_INT},
    [HOLD_ANSWER] = {.name = "answer", .type = COLUMN_INT},
    [HOLD_CAUSE] = {.name = "cause", .type = COLUMN_INT},
    [HOLD_AGENT] = {.name = "agent", .type = COLUMN_TEXT},
    [HOLD_RULE] = {.name = "rule", .type = COLUMN_TEXT},
    [HOLD_REASON] = {.name = "reason", .type = COLUMN_TEXT},
    [HOLD_KEYS] = {.name = "keys", .type = COLUMN_TEXT},
    [HOLD_SINCE_MS] = {.name = "since_ms", .type = COLUMN_INT},
    [HOLD_UNTIL_MS] = {.name = "until_ms", .type = COLUMN_INT},
    [HOLD_ON_EXPIRY] = {.name = "on_expiry", .type = COLUMN_INT},
    [HOLD_APPROVED] = {.name = "approved", .type = COLUMN_INT},
    [HOLD_BATCH_MOST] = {.name = "batch_most", .type = COLUMN_INT},
    [HOLD_BATCH] = {.name = "batch", .type = COLUMN_TEXT},
    [HOLD_MESSAGE_ID] = {.name = "message_id", .type = COLUMN_TEXT},
    [HOLD_ORDER_KEY] = {.name = "order_key", .type = COLUMN_TEXT},
    [HOLD_PRIORITY] = {.name = "priority", .type = COLUMN_INT},
    [HOLD_FROM] = {.name = "from_name", .type = COLUMN_TEXT},
    [HOLD_TYPE] = {.name = "type", .type = COLUMN_TEXT},
    [HOLD_REFERENCE] = {.name = "reference", .type = COLUMN_TEXT},
    [HOLD_SCOPE] = {.name = "scope", .type = COLUMN_TEXT},
    [HOLD_REQUESTER] = {.name = "requester", .type = COLUMN_TEXT},
    [HOLD_ROOT_USER] = {.name = "root_user", .type = COLUMN_TEXT},
};

const struct table hold_table = {
    .name = "hold",
    .columns = hold_columns,
    .n_columns = N_HOLD_COLUMNS,
    .n_key = 1,
};

static const struct column escalation_columns[N_ESCALATION_COLUMNS] = {
    [ESCALATION_SEQ] = {.name = "seq", .type = COLUMN_INT},
    [ESCALATION_ID] = {.name = "id", .type = COLUMN_TEXT},
    [ESCALATION_TASK_ID] = {.name = "task_id", .type = COLUMN_TEXT},
    [ESCALATION_TURN] = {.name = "turn", .type = COLUMN_INT},
    [ESCALATION_KIND] = {.name = "kind", .type = COLUMN_INT},
    [ESCALATION_STATUS] = {.name = "status", .type = COLUMN_INT},
    [ESCALATION_AT_MS] = {.name = "at_ms", .type = COLUMN_INT},
    [ESCALATION_AGENT] = {.name = "agent", .type = COLUMN_TEXT},
    [ESCALATION_REQUESTER] = {.name = "requester", .type = COLUMN_TEXT},
    [ESCALATION_ROOT_USER] = {.name = "root_user", .type = COLUMN_TEXT},
    [ESCALATION_FROM] = {.name = "from_name", .type = COLUMN_TEXT},
    [ESCALATION_TYPE] = {.name = "type", .type = COLUMN_TEXT},
    [ESCALATION_REFERENCE] = {.name = "reference", .type = COLUMN_TEXT},
    [ESCALATION_PRIORITY] = {.name = "priority", .type = COLUMN_INT},
    [ESCALATION_RULE_NAME] = {.name = "rule", .type = COLUMN_TEXT},
    [ESCALATION_REASON] = {.name = "reason", .type = COLUMN_TEXT},
    [ESCALATION_OFFER] = {.name = "offer", .type = COLUMN_TEXT},
    [ESCALATION_REMINDED] = {.name = "reminded", .type = COLUMN_INT},
    [ESCALATION_REMIND_MS] = {.name = "remind_ms", .type = COLUMN_INT},
    [ESCALATION_EXPIRES_MS] = {.name = "expires_ms", .type = COLUMN_INT},
    [ESCALATION_DECIDED_MS] = {.name = "decided_ms", .type = COLUMN_INT},
    [ESCALATION_BY] = {.name = "decided_by", .type = COLUMN_TEXT},
    [ESCALATION_COMMENT] = {.name = "comment", .type = COLUMN_TEXT},
    [ESCALATION_TO] = {.name = "redirected_to", .type = COLUMN_TEXT},
};

/* Open ones are read at a start; users list their own. */
static const struct table_index escalation_indexes[] = {
    {.name = "escalation_by_id",
     .columns = {ESCALATION_ID},
     .n_columns = 1,
     .is_unique = true},
    {.name = "escalation_by_task",
     .columns = {ESCALATION_TASK_ID},
     .n_columns = 1},
    {.name = "escalation_by_end",
     .columns = {ESCALATION_DECIDED_MS},
     .n_columns = 1},
    {.name = "escalation_by_requester",
     .columns = {ESCALATION_REQUESTER},
     .n_columns = 1},
};

const struct table escalation_table = {
    .name = "escalation",
    .columns = escalation_columns,
    .n_columns = N_ESCALATION_COLUMNS,
    .n_key = 1,
    .is_counted = true,
    .indexes = escalation_indexes,
    .n_indexes = N_OF(escalation_indexes),
};

static const struct column expected_columns[N_EXPECTED_COLUMNS] = {
    [EXPECTED_TASK_ID] = {.name = "task_id", .type = COLUMN_TEXT},
    [EXPECTED_TURN] = {.name = "turn", .type = COLUMN_INT},
    [EXPECTED_AGENT] = {.name = "agent", .type = COLUMN_TEXT},
    [EXPECTED_SINCE_MS] = {.name = "since_ms", .type = COLUMN_INT},
    [EXPECTED_DUE_MS] = {.name = "due_ms", .type = COLUMN_INT},
    [EXPECTED_RULE] = {.name = "rule", .type = COLUMN_TEXT},
    [EXPECTED_IS_LATE] = {.name = "is_late", .type = COLUMN_INT},
    [EXPECTED_FROM] = {.name = "from_name", .type = COLUMN_TEXT},
    [EXPECTED_TYPE] = {.name = "type", .type = COLUMN_TEXT},
    [EXPECTED_REFERENCE] = {.name = "reference", .type = COLUMN_TEXT},
    [EXPECTED_PRIORITY] = {.name = "priority", .type = COLUMN_INT},
    [EXPECTED_REQUESTER] = {.name = "requester", .type = COLUMN_TEXT},
    [EXPECTED_ROOT_USER] = {.name = "root_user", .type = COLUMN_TEXT},
};

const struct table expected_table = {
    .name = "expected",
    .columns = expected_columns,
    .n_columns = N_EXPECTED_COLUMNS,
    .n_key = 1,
};

static const struct table *const tables[] = {
    &event_table,    &hold_table,   &escalation_table,
    &expected_table, &outage_table, &pause_table,
};

const struct schema gatekeeper_schema = {
    .room = "broker",
    .tables = tables,
    .n_tables = N_OF(tables),
};
