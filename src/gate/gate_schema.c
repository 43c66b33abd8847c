/* The tables. Only lookups have an index: holds and SLAs are read whole at a
 * start and otherwise found by their task. */
#include "gate/escalations.h"

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

/* The words of the lists in gatekeeper.h and escalations.h. */
#define PAST(field) MEMBER(struct past_event, field), .part = 1

static const struct column event_columns[] = {EVENT_COLUMNS(COLUMN_ROW)};

static const struct table_index event_indexes[] = {
    {.name = "event_by_end", INDEX_ON(EVENT_UNTIL_MS)},
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

#define HOLD_READ(field) MEMBER(struct hold, field)
#define HOLD(field)      HOLD_READ(field), .part = 1

static const struct column hold_columns[] = {HOLD_COLUMNS(COLUMN_ROW)};

const struct table hold_table = {
    .name = "hold",
    .columns = hold_columns,
    .n_columns = N_HOLD_COLUMNS,
    .n_key = 1,
};

#define ESCALATION(field) MEMBER(struct escalation, field), .part = 1

static const struct column escalation_columns[] = {
    ESCALATION_COLUMNS(COLUMN_ROW)};

/* Open ones are read at a start; users list their own. */
static const struct table_index escalation_indexes[] = {
    {.name = "escalation_by_id", INDEX_ON(ESCALATION_ID), .is_unique = true},
    {.name = "escalation_by_task", INDEX_ON(ESCALATION_TASK_ID)},
    {.name = "escalation_by_end", INDEX_ON(ESCALATION_DECIDED_MS)},
    {.name = "escalation_by_requester", INDEX_ON(ESCALATION_REQUESTER)},
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

static const struct table *const tables[] = {
    &event_table,    &hold_table,   &escalation_table,
    &expected_table, &outage_table, &pause_table,
};

const struct schema gatekeeper_schema = {
    .room = "broker",
    .tables = tables,
    .n_tables = N_OF(tables),
};
