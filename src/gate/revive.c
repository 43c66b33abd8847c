/* Brings agents back that are out: dead ones with an escalation of kind dead,
 * and those whose safety gate holds messages, which may also be in ERROR.
 * However many messages wait, one outage is handled once and announced once
 * (agent.out).
 *
 *     TRYING --- it is there again ----------------------------> back
 *       |        restarted, pause, restarted, twice the pause, …
 *       '--- no attempt is left, or nothing to try ---> GIVEN UP --> back
 *
 * The state of the agent is checked every GATEKEEPER_STATES_MS, and at once
 * when the agent changes. When it is back the tasks of its escalations are
 * decided again, in order, ESCALATIONS_PER_TURN at a time; each escalation is
 * resolved in the tx that lets its task go. After giving up, the backup takes
 * over where the rules say so, and is otherwise offered, also for later
 * messages, until the outage ends. A backup that is dead itself is not used.
 *
 * An agent that was restarted is remembered for twice its last pause: one that
 * dies with every message is not restarted faster than its pauses allow, and in
 * the end its backup takes over.
 *
 * The row records the progress, so that a restarted server does not start over
 * or restart an agent that it had given up. */
#include "gate/escalations.h"

static bool is_because_of(const struct escalation *x, const struct outage *o)
{
    return x->kind == ESCALATION_DEAD && !x->is_coming &&
           str_eq_nocase(x->subject.agent, str_of(o->name));
}

static bool has_waiting(const struct outage *o)
{
    struct list *open = &o->gatekeeper->escalations->open;

    for (struct list_node *n = list_first(open); n; n = list_next(open, n))
        if (is_because_of(LIST_OF(n, struct escalation, node), o))
            return true;
    return false;
}

static void decide_task_again(struct escalation *x)
{
    struct gatekeeper *b = x->gatekeeper;
    struct id id = x->id;

    x->is_recorded = false;
    x->is_moving = true;
    b->opts.on_ripe(b->opts.ctx, str_of(x->subject.task_id.text));
    x = escalation_by_id(b, str_of(id.text));
    if (x && !x->is_recorded && !x->becomes)
        x->is_moving = false; /* not now; the next check tries again */
}

/* The agent is back: decide its escalated tasks again, some at a time. True:
 * all done. */
static bool release_escalated(struct outage *o)
{
    struct gatekeeper *b = o->gatekeeper;
    struct list *open = &b->escalations->open;
    struct list_node *next;
    size_t n_done = 0;

    for (struct list_node *n = list_first(open); n; n = next) {
        struct escalation *x = LIST_OF(n, struct escalation, node);

        next = list_next(open, n);
        if (!is_because_of(x, o) || x->is_moving || x->n_replies)
            continue;
        if (n_done++ == ESCALATIONS_PER_TURN)
            return false;
        decide_task_again(x);
    }
    return true;
}

static int64_t restart_pause_ms(const struct outage *o)
{
    struct gate_revival v =
        gate_revival_of(o->gatekeeper->opts.rules, str_of(o->shown));
    int64_t ms = v.pause_ms > 0 ? v.pause_ms : 1;

    for (int64_t i = 1; i < o->attempts && ms < RESTART_PAUSE_MAX_MS; i++)
        ms *= 2;
    return ms < RESTART_PAUSE_MAX_MS ? ms : RESTART_PAUSE_MAX_MS;
}

/* Nothing to do: forget the outage after a calm period. */
static void outage_calm_down(struct outage *o)
{
    int64_t left_ms = o->calm_mono_ms - loop_mono_ms(o->gatekeeper->opts.loop);

    if (o->is_restarting)
        return;
    if (left_ms > 0)
        outage_arm(o, left_ms);
    else
        outage_free(o);
}

static void outage_end(struct outage *o)
{
    if (o->since_ms) {
        outage_write(o, true, o->attempts ? "agent.restarted" : NULL, "", "",
                     STR(""));
        log_info(o->gatekeeper->opts.log, "broker.agent_back",
                 LOG_C("agent", o->shown), LOG_I("attempts", o->attempts));
        if (o->attempts)
            o->calm_mono_ms = loop_mono_ms(o->gatekeeper->opts.loop) +
                              2 * restart_pause_ms(o);
    }
    o->since_ms = 0; /* the end was announced */
    o->is_gate = o->is_told = o->has_given_up = false;
    if (!release_escalated(o))
        outage_arm(o, 0);
    else if (has_waiting(o))
        outage_arm(o, GATEKEEPER_STATES_MS);
    else
        outage_calm_down(o);
}

/* A card's backup must be of the same creator, of the same org, or configured.
 * Otherwise an agent registered under a name that a card mentions would get the
 * messages of that card's agent. */
static bool may_back_up(const struct gatekeeper *b, struct str agent,
                        struct str backup, bool is_named_in_rules)
{
    struct registry *r = b->opts.registry;
    const struct agent *a = r ? registry_agent(r, agent) : NULL;
    const struct agent *with = r ? registry_agent(r, backup) : NULL;

    if (!r || !with || !registry_is_meant(r, with))
        return !r;
    return !a || is_named_in_rules || a->is_configured ||
           !agent_is_outsider(
               with, &(struct eyes){.user = a->creator, .org = a->org});
}

struct str revive_backup(const struct gatekeeper *b, struct str agent,
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
        !may_back_up(b, agent, name, str_eq_nocase(v.backup, name)))
        return STR("");
    return name;
}

/* The backup that can take over; empty: none. */
static struct str live_backup(const struct outage *o, bool *is_auto)
{
    struct gatekeeper *b = o->gatekeeper;
    struct str name = revive_backup(b, str_of(o->shown), is_auto);
    struct gate_agent a = {.name = name};

    if (name.n)
        b->opts.agent(b->opts.ctx, name, &a);
    return a.is_known && a.state != AGENT_DEAD ? name : STR("");
}

bool revive_may_have(const struct escalation *x, struct str backup)
{
    const struct gatekeeper *b = x->gatekeeper;

    return !str_eq_nocase(x->subject.from, backup) &&
           requester_sees(b, x->subject.requester, backup) &&
           !is_above_task(b, str_of(x->subject.task_id.text), backup);
}

static void use_backup(struct outage *o)
{
    struct gatekeeper *b = o->gatekeeper;
    struct list *open = &b->escalations->open;
    bool is_auto;
    struct str backup = live_backup(o, &is_auto);
    struct list_node *next;
    size_t n_done = 0;

    for (struct list_node *n = backup.n ? list_first(open) : NULL; n;
         n = next) {
        struct escalation *x = LIST_OF(n, struct escalation, node);

        next = list_next(open, n);
        if (!is_because_of(x, o) || x->n_replies ||
            n_done >= ESCALATIONS_PER_TURN || !revive_may_have(x, backup))
            continue;
        if (!is_auto) {
            escalation_offer(x, backup);
            continue;
        }
        n_done++;
        reply_self(x, ESCALATION_REDIRECTED, backup,
                   STR("its agent is dead, and this is its backup"), false);
        b->stats.takeovers_total++;
    }
}

static void outage_give_up(struct outage *o, const char *because)
{
    bool is_auto;
    struct str backup = live_backup(o, &is_auto);

    o->has_given_up = true;
    outage_write(o, false, "agent.restart_failed", because,
                 is_auto ? "backup" : "offer", backup);
    log_warn(o->gatekeeper->opts.log, "broker.agent_given_up",
             LOG_C("agent", o->shown), LOG_I("attempts", o->attempts),
             LOG_S("backup", backup));
    use_backup(o);
}

static void on_restarted(void *ctx, enum err e, const struct why *why)
{
    struct outage *o = ctx;
    struct gatekeeper *b = o->gatekeeper;
    struct gate_revival v = gate_revival_of(b->opts.rules, str_of(o->shown));

    o->is_restarting = false;
    if (b->revive->is_stopped)
        return;
    o->next_mono_ms = loop_mono_ms(b->opts.loop) + restart_pause_ms(o);
    if (!o->since_ms) {
        outage_look(o); /* it came back before the restart was reported */
        return;
    }
    if (e) {
        b->stats.restarts_failed_total++;
        if (e == ERR_NOT_FOUND) /* nothing to restart, now or later */
            o->attempts = v.attempts > o->attempts ? v.attempts : o->attempts;
        if (o->attempts >= v.attempts)
            outage_give_up(o, why->text);
        else
            outage_write(o, false, "agent.restart_failed", why->text, "",
                         STR(""));
    } else {
        outage_write(o, false, NULL, "", "", STR(""));
    }
    outage_look(o);
}

static void restart_agent(struct outage *o)
{
    struct gatekeeper *b = o->gatekeeper;

    o->attempts++;
    o->is_restarting = true;
    b->stats.restarts_total++;
    outage_write(o, false, "agent.restarting", "", "", STR(""));
    b->opts.restart(b->opts.ctx, str_of(o->shown), on_restarted, o);
}

static bool is_agent_out(const struct outage *o, const struct gate_agent *a)
{
    return !a->is_known || a->state == AGENT_DEAD ||
           (o->is_gate &&
            (a->state == AGENT_ERROR || a->state == o->paused_by));
}

/* Restarting an agent that is merely slow would not help. */
static bool may_restart_help(const struct gate_agent *a)
{
    return !a->is_known || a->state == AGENT_DEAD || a->state == AGENT_ERROR;
}

/* The agent is out and messages wait for it. */
static void outage_continue(struct outage *o, const struct gate_agent *a)
{
    struct gatekeeper *b = o->gatekeeper;
    struct gate_revival v = gate_revival_of(b->opts.rules, str_of(o->shown));

    if (o->has_given_up)
        use_backup(o);
    else if (!o->is_restarting && may_restart_help(a) &&
             loop_mono_ms(b->opts.loop) >= o->next_mono_ms) {
        if (o->attempts < v.attempts)
            restart_agent(o);
        else
            outage_give_up(o, "it is still out after the last attempt");
    }
}

void outage_look(struct outage *o)
{
    struct gatekeeper *b = o->gatekeeper;
    struct gate_agent a = outage_agent(o);

    if (b->revive->is_stopped)
        return;
    outage_arm(o, GATEKEEPER_STATES_MS);
    if (!is_agent_out(o, &a)) {
        outage_end(o);
        return;
    }
    if (!o->is_gate && !o->is_restarting && !has_waiting(o)) {
        if (o->since_ms)
            outage_write(o, true, NULL, "", "", STR(""));
        o->since_ms = 0;
        outage_calm_down(o);
        return;
    }
    if (!o->since_ms)
        o->since_ms = loop_wall_ms(b->opts.loop); /* it is out again */
    if (a.is_known && a.state != AGENT_DEAD)
        release_escalated(o); /* those that only waited for it not to be dead */
    outage_continue(o, &a);
}
