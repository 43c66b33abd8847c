/* Tells ledger_check where the tasks are: ledger/ and task/ do not know each
 * other. */
#include "walk/ledger_audit.h"

#include "task/task.h"

static const struct ledger_turns turns = {
    .task = &task_table,
    .task_seq = TASK_SEQ,
    .task_id = TASK_ID,
    .task_turn = TASK_TURN,
    .task_status = TASK_STATUS,
    .task_price = TASK_PRICE_MICROS,
    .turn = &turn_table,
    .turn_task_seq = TURN_TASK_SEQ,
    .turn_number = TURN_NUMBER,
    .turn_status = TURN_STATUS,
    .turn_price = TURN_PRICE_MICROS,
};

struct ledger_check *ledger_audit_new(const uint64_t seed[2])
{
    return ledger_check_new(&turns, seed);
}

enum err ledger_audit_store(struct store *s, struct ledger_report *out)
{
    /* No seed: no user can choose names during the check. */
    struct ledger_check *c = ledger_audit_new((const uint64_t[2]){0, 0});
    struct query q;

    while (ledger_check_next(c, &q)) {
        if (store_look(s, &q) == OK || q.err)
            ledger_check_take(c, &q);
        query_fini(&q);
    }
    *out = *ledger_check_report(c);
    ledger_check_free(c);
    return out->err;
}
