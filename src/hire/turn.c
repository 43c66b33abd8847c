/* Whose turn it is. An agent has so many delegations going at once
 * (maxConcurrent); those beyond wait in the order in which they could have
 * gone, which is that of acceptance, and their time runs. What is held or
 * escalated, or behind such a one in its order, takes no place and stands in no
 * line: it comes up when it is let go.
 *
 * Nothing of this is written. A start takes up what is open by its key, and
 * keys are in the order of acceptance: so those that went before it are the
 * first again, and those that waited stand behind them as they did, but for
 * what was held in between, which is as if it never was.
 *
 * What is part of a delegation (its depth is above 1) never waits: without room
 * it is refused, and what was accepted goes, whatever the limit is by now. So
 * nobody waits in a ring. A line moves when one that goes is over, and what
 * that one needs, all the way down, goes as well and stands in no line. */
#include "hire/internal.h"

#include "model/agent.h"

int64_t hire_max_going(const struct hires *h, const struct agent *by)
{
    return by && by->delegation.max_concurrent >= 0
               ? by->delegation.max_concurrent
               : h->opts.settings.max_concurrent;
}

static void leave_line(struct hire *x)
{
    if (!list_has(&x->turn_node))
        return;
    list_remove(&x->turn_node);
    x->h->n_waiting--;
    if (list_is_empty(&x->hirer->waiting))
        list_remove(&x->hirer->crowd_node);
}

static void go(struct hire *x)
{
    x->is_going = true;
    x->hirer->n_going++;
    x->h->opts.on_turn(x->h->opts.ctx, str_of(x->d.task_id.text));
}

static void let_go(struct hires *h, struct hirer *r)
{
    struct str name = {r->name, r->name_bytes};
    int64_t max = hire_max_going(h, h->opts.agent(h->opts.ctx, name));
    struct list_node *n;

    if (PLANTED("hire.all_at_once"))
        max = INT64_MAX;
    while ((int64_t)r->n_going < max && (n = list_first(&r->waiting))) {
        struct hire *x = LIST_OF(n, struct hire, turn_node);

        leave_line(x);
        go(x);
    }
}

bool hire_may_wait(int64_t depth)
{
    return depth <= 1 || PLANTED("hire.rings");
}

static void line_up(struct hire *x, const struct task *t)
{
    struct hirer *r = x->hirer;

    if (!hire_may_wait(t->depth)) {
        go(x);
        return;
    }
    list_append(&r->waiting, &x->turn_node);
    x->h->n_waiting++;
    if (!list_has(&r->crowd_node))
        list_append(&x->h->crowded, &r->crowd_node);
    let_go(x->h, r);
    if (!x->is_going)
        x->h->opts.on_wait(x->h->opts.ctx, t);
}

void hire_give_up_turn(struct hire *x)
{
    leave_line(x);
    x->hirer->n_going -= x->is_going;
    x->is_going = false;
}

void hire_turn_is_over(struct hire *x)
{
    hire_give_up_turn(x);
    if (!PLANTED("hire.nobody_next"))
        let_go(x->h, x->hirer);
}

void hire_look_at_turns(struct hires *h)
{
    struct list_node *next;

    for (struct list_node *n = list_first(&h->crowded); n; n = next) {
        next = list_next(&h->crowded, n);
        let_go(h, LIST_OF(n, struct hirer, crowd_node));
    }
}

/* NULL: t is no delegation, or its result is there. */
static struct hire *open_hire(const struct hires *h, const struct task *t)
{
    struct hire *x = hire_of_task(h, str_of(t->id.text));

    return x && x->d.turn == t->turn && x->d.state == DELEGATION_OPEN ? x
                                                                      : NULL;
}

bool hire_may_go(const struct hires *h, const struct task *t)
{
    const struct hire *x = open_hire(h, t);

    return !x || x->is_going;
}

bool hire_come_up(struct hires *h, const struct task *t)
{
    struct hire *x = open_hire(h, t);

    if (x && !x->is_going && !x->is_ending && !list_has(&x->turn_node))
        line_up(x, t);
    return hire_may_go(h, t);
}

void hire_moved(struct hires *h, const struct task *t)
{
    struct hire *x = open_hire(h, t);

    if (x && task_waits(t->status))
        hire_turn_is_over(x);
}
