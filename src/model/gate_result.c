#include "model/gate_result.h"

#include "base/buf.h"
#include "base/rfc3339.h"

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

/* A message that no gate judged may go. */
enum task_status gate_result_status(enum gate_answer a)
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

struct str gate_expiry_name(enum gate_expiry e)
{
    static const struct str names[] = {
        [EXPIRY_EXPIRE] = STR("expire"),
        [EXPIRY_ESCALATE] = STR("escalate"),
        [EXPIRY_ROUTE] = STR("route"),
    };

    return names[e];
}

void wait_key_words(const struct wait_key *k, enum gate_cause cause,
                    struct buf *out)
{
    char moment[RFC3339_BYTES];

    switch (k->kind) {
    case WAIT_AGENT:
        if (cause == PASS_STALE)
            buf_add_str(out, STR("newer data from "));
        buf_add_str(out, k->name);
        if (cause != PASS_STALE)
            buf_add_str(out, STR(" to be healthy again"));
        return;
    case WAIT_QUEUE: buf_add_str(out, STR("room at ")); break;
    case WAIT_EVENT:
        buf_add_str(out, k->type);
        buf_add_str(out, STR(" for "));
        break;
    case WAIT_TIME:
        buf_add_str(out, STR("a time: "));
        buf_add_str(out, rfc3339_write(k->at_ms, moment));
        return;
    case WAIT_LOOK:
        buf_add_str(out, STR("its condition, which is checked regularly"));
        return;
    case WAIT_BATCH: buf_add_str(out, STR("the batch ")); break;
    }
    buf_add_str(out, k->name);
}
