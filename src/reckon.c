/* The rooms of the ledger and of the tasks do not know each other; here they
 * meet. */
#include "reckon.h"

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

struct ledger_check *reckon_new(const uint64_t seed[2])
{
    return ledger_check_new(&turns, seed);
}

enum err reckon_store(struct store *s, struct ledger_report *out)
{
    /* Who chose these names is not there while they are counted. */
    struct ledger_check *c = reckon_new((const uint64_t[2]){0, 0});
    struct query q;

    *out = (struct ledger_report){.err = ERR_NOMEM};
    if (!c)
        return ERR_NOMEM;
    while (ledger_check_next(c, &q)) {
        if (store_look(s, &q) == OK || q.err)
            ledger_check_take(c, &q);
        query_fini(&q);
    }
    *out = *ledger_check_report(c);
    ledger_check_free(c);
    return out->err;
}
