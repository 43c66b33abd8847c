#include "model/pass.h"

#include "base/buf.h"

static const struct {
    struct str name;
    enum task_status status;
} answers[N_GATE_ANSWERS] = {
    [GATE_ROUTE] = {STR("ROUTE_IMMEDIATELY"), TASK_QUEUED},
    [GATE_HOLD_INPUT] = {STR("HOLD_PENDING_INPUT"), TASK_HELD},
    [GATE_HOLD_CAPACITY] = {STR("HOLD_PENDING_CAPACITY"), TASK_HELD},
    [GATE_PAUSE] = {STR("PAUSE_ALL_SUBMISSIONS"), TASK_HELD},
    [GATE_ESCALATE] = {STR("ESCALATE_TO_HUMAN"), TASK_ESCALATED},
    [GATE_DROP] = {STR("DROP_SILENTLY"), TASK_DROPPED},
};

struct str gate_answer_name(enum gate_answer a)
{
    return a > 0 && (int)a < N_GATE_ANSWERS ? answers[a].name : STR("");
}

enum gate_answer gate_answer_of(struct str name)
{
    for (unsigned a = 1; a < N_GATE_ANSWERS; a++)
        if (str_eq(answers[a].name, name))
            return (enum gate_answer)a;
    return 0;
}

/* A message that no gate was asked about may go. */
enum task_status pass_status(enum gate_answer a)
{
    return a > 0 && (int)a < N_GATE_ANSWERS ? answers[a].status : TASK_QUEUED;
}

void wait_key_write(const struct wait_key *k, struct buf *out)
{
    static const struct str kinds[] = {
        [WAIT_AGENT] = STR("agent"), [WAIT_QUEUE] = STR("queue"),
        [WAIT_EVENT] = STR("event"), [WAIT_TIME] = STR("time"),
        [WAIT_LOOK] = STR("look"),   [WAIT_BATCH] = STR("batch"),
    };

    buf_add_str(out, kinds[k->kind]);
    if (k->name.n) {
        buf_add_char(out, ':');
        buf_add_str(out, k->name);
    }
    if (k->type.n) {
        buf_add_char(out, ':');
        buf_add_str(out, k->type);
    }
}
