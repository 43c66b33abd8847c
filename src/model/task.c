#include "model/task.h"

#define BIT(s) (1U << (s))

enum {
    OVER = BIT(TASK_DROPPED) | BIT(TASK_COMPLETED) | BIT(TASK_FAILED) |
           BIT(TASK_CANCELLED) | BIT(TASK_EXPIRED),
    ENDS = BIT(TASK_FAILED) | BIT(TASK_CANCELLED) | BIT(TASK_EXPIRED),
    WAITS = BIT(TASK_HELD) | BIT(TASK_ESCALATED),
};

static const struct {
    struct str name;
    unsigned to; /* the allowed next states */
} rows[N_TASK_STATUS] = {
    [TASK_ACCEPTED] = {STR("accepted"), BIT(TASK_HELD) | BIT(TASK_ESCALATED) |
                                            BIT(TASK_DROPPED) |
                                            BIT(TASK_QUEUED) | ENDS},
    /* A member of a batch is held until the batch is done, and then
     * completes. */
    [TASK_HELD] = {STR("held"), BIT(TASK_ESCALATED) | BIT(TASK_DROPPED) |
                                    BIT(TASK_QUEUED) | BIT(TASK_COMPLETED) |
                                    ENDS},
    [TASK_ESCALATED] = {STR("escalated"), BIT(TASK_HELD) | BIT(TASK_DROPPED) |
                                              BIT(TASK_QUEUED) | ENDS},
    [TASK_DROPPED] = {STR("dropped"), 0},
    /* After a restart a result may arrive for a task that is queued again. */
    [TASK_QUEUED] = {STR("queued"), BIT(TASK_DISPATCHED) | BIT(TASK_HELD) |
                                        BIT(TASK_ESCALATED) |
                                        BIT(TASK_COMPLETED) | ENDS},
    [TASK_DISPATCHED] = {STR("dispatched"), BIT(TASK_QUEUED) | WAITS |
                                                BIT(TASK_WORKING) |
                                                BIT(TASK_INPUT_REQUIRED) |
                                                BIT(TASK_COMPLETED) | ENDS},
    [TASK_WORKING] = {STR("working"), BIT(TASK_QUEUED) | WAITS |
                                          BIT(TASK_INPUT_REQUIRED) |
                                          BIT(TASK_COMPLETED) | ENDS},
    [TASK_INPUT_REQUIRED] = {STR("input_required"),
                             BIT(TASK_WORKING) | BIT(TASK_QUEUED) | WAITS |
                                 BIT(TASK_COMPLETED) | ENDS},
    [TASK_COMPLETED] = {STR("completed"), BIT(TASK_QUEUED)},
    [TASK_FAILED] = {STR("failed"), BIT(TASK_QUEUED)},
    [TASK_CANCELLED] = {STR("cancelled"), BIT(TASK_QUEUED)},
    [TASK_EXPIRED] = {STR("expired"), BIT(TASK_QUEUED)},
};

struct str task_status_name(enum task_status s)
{
    return s > 0 && (int)s < N_TASK_STATUS ? rows[s].name : STR("");
}

enum task_status task_status_of(struct str name)
{
    for (unsigned s = 1; s < N_TASK_STATUS; s++)
        if (str_eq(rows[s].name, name))
            return (enum task_status)s;
    return 0;
}

enum task_status task_shown(const struct task *t)
{
    return t->status == TASK_HELD && t->carried ? t->carried : t->status;
}

bool task_is_over(enum task_status s)
{
    return OVER & BIT(s);
}

bool task_may_move(enum task_status from, enum task_status to)
{
    return rows[from].to & BIT(to);
}

bool task_move_is_durable(enum task_status to)
{
    return to != TASK_DISPATCHED && to != TASK_WORKING;
}

static const struct str priorities[] = {STR("URGENT"), STR("HIGH"),
                                        STR("NORMAL"), STR("LOW")};

struct str task_priority_name(enum task_priority p)
{
    return priorities[p];
}

bool task_priority_of(struct str name, enum task_priority *out)
{
    for (unsigned p = 0; p < sizeof(priorities) / sizeof(*priorities); p++)
        if (str_eq(priorities[p], name)) {
            *out = (enum task_priority)p;
            return true;
        }
    return false;
}

struct str task_session(const struct task *t)
{
    size_t slash = str_find(t->conversation_id, '/', 0);

    if (!t->by_agent.n || slash == t->conversation_id.n)
        return t->conversation_id;
    return str_sub(t->conversation_id, slash + 1, t->conversation_id.n);
}

bool task_is_for(const struct task *t, const struct caller *c)
{
    struct str who = caller_name(c);

    return caller_is_admin(c) || str_eq(who, t->requester) ||
           str_eq(who, t->root_user);
}
