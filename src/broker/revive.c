/* Agents that are out, and must not be: dead ones that an escalation of kind
 * dead is about, and those of safety gates that hold others up, which may be in
 * ERROR as well. One outage is one matter however many messages wait for its
 * end, and is told once (agent.out).
 *
 *     TRYING --- it is there again ----------------------------> back
 *       |        restarted, pause, restarted, twice the pause, …
 *       '--- no attempt is left, or nothing to try ---> GIVEN UP --> back
 *
 * Whether it is there is looked at every BROKER_STATES_MS, and at once when the
 * agent changes. When it is back the escalations about it are asked about
 * again, in order, PEOPLE_PER_TURN at a time; each is resolved in the tx that
 * lets its message go. Who has given up lets the backup take over where the
 * rules say so, and else offers it: also to those that come later, for as long
 * as the outage lasts. A backup that is dead itself is neither.
 *
 * What was restarted and is back is remembered for twice its last pause: one
 * that dies with each message is not restarted faster than its pauses allow,
 * and in the end its backup takes over.
 *
 * A row says how far it is, so that a restarted server neither begins anew nor
 * restarts an agent again that it had given up. */
#include "broker/people.h"

/* Those that wait for it. */

static bool is_about(const struct asked *x, const struct outage *o)
{
    return x->kind == ESCALATION_DEAD && !x->is_coming &&
           str_eq_nocase(x->about.agent, str_of(o->name));
}

static bool somebody_waits(const struct outage *o)
{
    struct list *open = &o->broker->people->open;

    for (struct list_node *n = list_first(open); n; n = list_next(open, n))
        if (is_about(LIST_OF(n, struct asked, node), o))
            return true;
    return false;
}

static void ask_again(struct asked *x)
{
    struct broker *b = x->broker;
    struct id id = x->id;

    x->is_recorded = false;
    x->is_moving = true;
    b->opts.on_ripe(b->opts.ctx, str_of(x->about.task_id.text));
    x = asked_by_id(b, str_of(id.text));
    if (x && !x->is_recorded && !x->becomes)
        x->is_moving = false; /* not now: the next look asks again */
}

/* It is back: what waits is asked about again, a few at a time. True: there is
 * nothing left to do. */
static bool let_go(struct outage *o)
{
    struct broker *b = o->broker;
    struct list *open = &b->people->open;
    struct list_node *next;
    size_t n_done = 0;

    for (struct list_node *n = list_first(open); n; n = next) {
        struct asked *x = LIST_OF(n, struct asked, node);

        next = list_next(open, n);
        if (!is_about(x, o) || x->is_moving || x->n_words)
            continue;
        if (n_done++ == PEOPLE_PER_TURN)
            return false;
        ask_again(x);
    }
    return true;
}

static int64_t pause_of(const struct outage *o)
{
    struct gate_revival v =
        gate_revival_of(o->broker->opts.rules, str_of(o->shown));
    int64_t ms = v.pause_ms > 0 ? v.pause_ms : 1;

    for (int64_t i = 1; i < o->attempts && ms < RESTART_PAUSE_MAX_MS; i++)
        ms *= 2;
    return ms < RESTART_PAUSE_MAX_MS ? ms : RESTART_PAUSE_MAX_MS;
}

/* Nothing is to be done: it is forgotten when it has been calm for a while. */
static void calm(struct outage *o)
{
    int64_t left_ms = o->calm_mono_ms - loop_mono_ms(o->broker->opts.loop);

    if (o->is_restarting)
        return;
    if (left_ms > 0)
        outage_arm(o, left_ms);
    else
        outage_free(o);
}

static void back(struct outage *o)
{
    if (o->since_ms) {
        outage_write(o, true, o->attempts ? "agent.restarted" : NULL, "", "",
                     STR(""));
        log_info(o->broker->opts.log, "broker.agent_back",
                 LOG_C("agent", o->shown), LOG_I("attempts", o->attempts));
        if (o->attempts)
            o->calm_mono_ms =
                loop_mono_ms(o->broker->opts.loop) + 2 * pause_of(o);
    }
    o->since_ms = 0; /* it was told */
    o->is_gate = o->is_told = o->has_given_up = false;
    if (!let_go(o))
        outage_arm(o, 0);
    else if (somebody_waits(o))
        outage_arm(o, BROKER_STATES_MS);
    else
        calm(o);
}

struct str revive_backup(const struct broker *b, struct str agent,
                         bool *is_auto)
{
    struct gate_revival v = gate_revival_of(b->opts.rules, agent);
    struct gate_agent a = {.name = agent};
    struct str name = v.backup;

    b->opts.agent(b->opts.ctx, agent, &a);
    if (!name.n)
        name = a.backup;
    *is_auto = v.is_auto && v.backup.n;
    if (!name.n || str_eq_nocase(name, agent) ||
        (b->opts.may_back && !b->opts.may_back(b->opts.ctx, agent, name)))
        return STR("");
    return name;
}

/* Who stands in; empty: nobody can. */
static struct str backup_of(const struct outage *o, bool *is_auto)
{
    struct broker *b = o->broker;
    struct str name = revive_backup(b, str_of(o->shown), is_auto);
    struct gate_agent a = {.name = name};

    if (name.n)
        b->opts.agent(b->opts.ctx, name, &a);
    return a.is_known && a.state != AGENT_DEAD ? name : STR("");
}

bool revive_may_have(const struct asked *x, struct str backup)
{
    const struct broker_opts *o = &x->broker->opts;

    return !str_eq_nocase(x->about.from, backup) &&
           (!o->sees || o->sees(o->ctx, x->about.requester, backup)) &&
           (!o->is_above ||
            !o->is_above(o->ctx, str_of(x->about.task_id.text), backup));
}

static void stand_in(struct outage *o)
{
    struct broker *b = o->broker;
    struct list *open = &b->people->open;
    bool is_auto;
    struct str backup = backup_of(o, &is_auto);
    struct list_node *next;
    size_t n_done = 0;

    for (struct list_node *n = backup.n ? list_first(open) : NULL; n;
         n = next) {
        struct asked *x = LIST_OF(n, struct asked, node);

        next = list_next(open, n);
        if (!is_about(x, o) || x->n_words || n_done >= PEOPLE_PER_TURN ||
            !revive_may_have(x, backup))
            continue;
        if (!is_auto) {
            asked_offer(x, backup);
            continue;
        }
        n_done++;
        if (say_self(x, ESCALATION_REDIRECTED, backup,
                     STR("its agent is dead, and this is its backup"), false))
            b->stats.takeovers_total++;
    }
}

/* Trying. */

static void give_up(struct outage *o, const char *because)
{
    bool is_auto;
    struct str backup = backup_of(o, &is_auto);

    o->has_given_up = true;
    outage_write(o, false, "agent.restart_failed", because,
                 is_auto ? "backup" : "offer", backup);
    log_warn(o->broker->opts.log, "broker.agent_given_up",
             LOG_C("agent", o->shown), LOG_I("attempts", o->attempts),
             LOG_S("backup", backup));
    stand_in(o);
}

static void on_restarted(void *ctx, enum err e, const struct why *why)
{
    struct outage *o = ctx;
    struct broker *b = o->broker;
    struct gate_revival v = gate_revival_of(b->opts.rules, str_of(o->shown));

    o->is_restarting = false;
    if (b->revive->is_stopped)
        return;
    o->next_mono_ms = loop_mono_ms(b->opts.loop) + pause_of(o);
    if (!o->since_ms) {
        outage_look(o); /* it came back before that was known */
        return;
    }
    if (e) {
        b->stats.restarts_failed_total++;
        if (e == ERR_NOT_FOUND) /* nor will there be the next time */
            o->attempts = v.attempts > o->attempts ? v.attempts : o->attempts;
        if (o->attempts >= v.attempts)
            give_up(o, why->text);
        else
            outage_write(o, false, "agent.restart_failed", why->text, "",
                         STR(""));
    } else {
        outage_write(o, false, NULL, "", "", STR(""));
    }
    outage_look(o);
}

static void try_it(struct outage *o)
{
    struct broker *b = o->broker;

    o->attempts++;
    o->is_restarting = true;
    b->stats.restarts_total++;
    outage_write(o, false, "agent.restarting", "", "", STR(""));
    b->opts.restart(b->opts.ctx, str_of(o->shown), on_restarted, o);
}

static bool is_out(const struct outage *o, const struct gate_agent *a)
{
    return !a->is_known || a->state == AGENT_DEAD ||
           (o->is_gate &&
            (a->state == AGENT_ERROR || a->state == o->paused_by));
}

/* One that is slow is there: to start it anew would not help it. */
static bool may_help(const struct gate_agent *a)
{
    return !a->is_known || a->state == AGENT_DEAD || a->state == AGENT_ERROR;
}

/* It is out, and somebody waits for it. */
static void go_on(struct outage *o, const struct gate_agent *a)
{
    struct broker *b = o->broker;
    struct gate_revival v = gate_revival_of(b->opts.rules, str_of(o->shown));

    if (o->has_given_up)
        stand_in(o);
    else if (!o->is_restarting && may_help(a) &&
             loop_mono_ms(b->opts.loop) >= o->next_mono_ms) {
        if (o->attempts < v.attempts)
            try_it(o);
        else
            give_up(o, "it is not there after the last attempt");
    }
}

/* What is to be done now. */
void outage_look(struct outage *o)
{
    struct broker *b = o->broker;
    struct gate_agent a = outage_agent(o);

    if (b->revive->is_stopped)
        return;
    outage_arm(o, BROKER_STATES_MS);
    if (!is_out(o, &a)) {
        back(o);
        return;
    }
    if (!o->is_gate && !o->is_restarting && !somebody_waits(o)) {
        if (o->since_ms)
            outage_write(o, true, NULL, "", "", STR(""));
        o->since_ms = 0;
        calm(o);
        return;
    }
    if (!o->since_ms)
        o->since_ms = loop_wall_ms(b->opts.loop); /* and gone again */
    if (a.is_known && a.state != AGENT_DEAD)
        let_go(o); /* of those that waited for it to be there at all */
    go_on(o, &a);
}
