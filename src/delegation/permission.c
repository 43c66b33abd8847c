/* Decides whether an agent may delegate to another, and on whose behalf.
 *
 * The decision uses only what the server knows: the connection identifies the
 * agent, and the task it is working on has the user and the chain. */
#include "delegation/internal.h"

#include <stdio.h>

#include "base/json.h"
#include "model/agent.h"

enum { CHAIN_BYTES = DELEGATION_CHAIN_MAX * (AGENT_NAME_MAX + 3) + 2 };

/* The parent task. */

/* A task that was given to an earlier owner of the name does not count. */
static bool agent_works_on(const struct delegations *h, const struct task *t,
                           struct str agent)
{
    const struct agent *a = registry_agent(h->opts.registry, agent);

    return t && !task_is_over(t->status) && str_eq_nocase(t->agent, agent) &&
           (!a || agent_is_meant(a, t->created_ms, t->requester) ||
            agent_is_meant(a, t->created_ms, t->root_user) ||
            PLANTED("hire.any_owner"));
}

static struct str task_payer(const struct task *t)
{
    return t->root_user.n ? t->root_user : t->requester;
}

static void parents_add_by_deadline(struct delegation_parents *p,
                                    const struct task *t)
{
    size_t at = p->n;

    while (at && p->list[at - 1]->deadline_ms > t->deadline_ms)
        at--;
    if (at == DELEGATION_PARENTS_MAX)
        return;
    p->n += p->n < DELEGATION_PARENTS_MAX;
    for (size_t i = p->n - 1; i > at; i--)
        p->list[i] = p->list[i - 1];
    p->list[at] = t;
}

/* Tasks the agent is working on, in that session if one is given. Session names
 * are per user, so several users can have the same. */
static enum err parents_find(struct delegations *h, struct str agent,
                             struct str session, struct delegation_parents *out)
{
    const struct task *first = NULL;
    enum err e = OK;

    out->n = 0;
    for (const struct task *t = NULL;
         (t = tasks_working(h->opts.tasks, agent, t));) {
        if ((session.n && !str_eq(task_session(t), session)) ||
            !agent_works_on(h, t, agent))
            continue;
        first = first ? first : t;
        if (!str_eq(task_payer(t), task_payer(first)) &&
            !PLANTED("hire.any_payer"))
            e = ERR_BAD_REQUEST;
        parents_add_by_deadline(out, t);
    }
    return e;
}

static enum err parents_find_in_session(struct delegations *h, struct str agent,
                                        struct str session,
                                        struct delegation_parents *out,
                                        struct why *why)
{
    enum err e = OK;

    out->n = 0;
    if (session.n)
        e = parents_find(h, agent, session, out);
    out->is_of_session = out->n || !session.n;
    if (!out->n)
        e = parents_find(h, agent, STR(""), out);
    if (!e)
        return OK;
    out->n = 0;
    return why_err(why, e,
                   "%.*s is working for several users: give the session_id "
                   "(conversation_id in message.send) of the task this is "
                   "part of, or parent_task_id if two of them have the same",
                   STR_ARG(agent));
}

enum err delegation_parents(struct delegations *h, struct str agent,
                            struct str given, struct str session,
                            struct delegation_parents *out, struct why *why)
{
    const struct task *t;

    if (!given.n)
        return parents_find_in_session(h, agent, session, out, why);
    out->n = 0;
    out->is_of_session = true;
    t = task_find(h->opts.tasks, given);
    if (!agent_works_on(h, t, agent))
        return why_err(why, ERR_BAD_REQUEST,
                       "parent_task_id must be a task that %.*s is "
                       "working on now",
                       STR_ARG(agent));
    out->list[out->n++] = t;
    return OK;
}

/* The chain. */

static bool chain_extend(struct msg *m, struct str above, struct str agent)
{
    struct buf b;
    bool ok;

    buf_init(&b, CHAIN_BYTES);
    if (above.n > 2) {
        buf_add_str(&b, str_sub(above, 0, above.n - 1));
        buf_add_char(&b, ',');
    } else {
        buf_add_char(&b, '[');
    }
    buf_addf(&b, "\"%.*s\"]", STR_ARG(agent)); /* names need no escaping */
    ok = !b.over && arena_keep(&m->arena, buf_str(&b), &m->delegation.chain);
    buf_fini(&b);
    return ok;
}

/* Limits. */

static bool agent_allows_delegation(const struct agent *a, struct str name)
{
    if (!a->delegation.is_limited)
        return true;
    for (size_t i = 0; i < a->delegation.allow.n; i++)
        if (str_eq_nocase(a->delegation.allow.list[i], name))
            return true;
    return false;
}

static enum err reject_second_time(struct msg *m, struct str agent,
                                   struct str chain)
{
    return why_err(&m->why, ERR_DELEGATION,
                   "%.*s is already above this task (%.*s); an agent works "
                   "only once in a chain",
                   STR_ARG(agent), STR_ARG(chain));
}

/* The request did not say which of these is the parent. It may be any of them,
 * so an agent above one of them is rejected. */
static enum err check_other_chains(struct delegations *h, struct msg *m,
                                   const struct agent *chosen)
{
    for (size_t i = 0;
         i < m->delegation.n_parents && !PLANTED("hire.one_chain"); i++) {
        const struct task *t =
            task_find(h->opts.tasks, str_of(m->delegation.parents[i].id.text));
        struct str rest = t ? t->chain : STR(""), name;

        while (json_next(&rest, &name)) /* names need no escaping */
            if (str_eq_nocase(str_sub(name, 1, name.n - 1), chosen->name))
                return reject_second_time(m, chosen->name, t->chain);
    }
    return OK;
}

/* An envelope may go back to the agent that asked, once: that agent waits for
 * the answer, and the answering agent is not in the chain twice. */
static bool answers_envelope(const struct msg *m, const struct json *chain,
                             const struct json *above,
                             const struct agent *chosen)
{
    size_t n = 0;

    if (!m->call.envelope || !above->next || above->next->next ||
        !str_eq_nocase(above->s, chosen->name))
        return false;
    JSON_EACH(kid, chain)
    {
        n += str_eq_nocase(kid->s, m->delegation.agent);
    }
    return n == 1;
}

/* Each agent in the chain limits the depth below it and appears once. */
static enum err check_delegation_chain(struct delegations *h, struct msg *m,
                                       const struct agent *chosen)
{
    struct json *chain = json_parse(
        &m->arena, m->delegation.chain.n ? m->delegation.chain : STR("[]"), 0,
        NULL);
    int64_t left = m->delegation.depth;

    if (!chain)
        return ERR_NOMEM;
    JSON_EACH(kid, chain)
    {
        const struct agent *a = registry_agent(h->opts.registry, kid->s);
        int64_t max = a && a->delegation.max_depth >= 0
                          ? a->delegation.max_depth
                          : h->opts.settings.max_depth;

        if (str_eq_nocase(kid->s, chosen->name) &&
            !answers_envelope(m, chain, kid, chosen) &&
            !PLANTED("hire.no_chain"))
            return reject_second_time(m, chosen->name, m->delegation.chain);
        if (left > max)
            return why_err(&m->why, ERR_DELEGATION,
                           "%.*s allows a depth of %lld below it "
                           "(delegation.maxDepth), this would be %lld",
                           STR_ARG(kid->s), (long long)max, (long long)left);
        left--;
    }
    return OK;
}

/* Results of an earlier owner of the name cannot be acknowledged by this agent,
 * and those being acknowledged do not count any more. */
static bool has_too_many_unacked(const struct delegations *h,
                                 const struct delegator *r)
{
    size_t n = 0;

    if (!r || r->n_ready < h->opts.settings.max_unacked)
        return false;
    for (struct list_node *at = list_first(&r->ready); at;
         at = list_next(&r->ready, at)) {
        const struct live_delegation *x =
            LIST_OF(at, struct live_delegation, delegator_node);

        n += delegation_is_own(h, &x->d) && !x->is_had;
    }
    return n >= h->opts.settings.max_unacked;
}

/* Keeps one agent from blocking the others. An agent whose limit is zero has
 * nothing to wait for, and delegations inside delegations do not wait. */
static enum err check_open_limit(const struct delegations *h, struct msg *m,
                                 const struct agent *by,
                                 const struct delegator *r)
{
    int64_t max = delegation_max_active(h, by);
    bool may_wait = delegation_may_wait(m->delegation.depth);
    int64_t waiting = max > 0 && may_wait ? h->opts.settings.max_waiting : 0;
    int64_t n = r ? (int64_t)(r->n_open + r->n_claimed) : 0;

    if (n < max + waiting)
        return OK;
    if (!may_wait)
        return why_err(&m->why, ERR_DELEGATIONS,
                       "%.*s has %lld open delegations, and %lld may run at "
                       "once (delegation.maxConcurrent); a delegation inside "
                       "another does not wait: try again when one of them is "
                       "over",
                       STR_ARG(m->delegation.agent), (long long)n,
                       (long long)max);
    return why_err(
        &m->why, ERR_DELEGATIONS,
        "%.*s has %lld open delegations, the limit: %lld run at once "
        "(delegation.maxConcurrent) and %lld wait "
        "(delegation.maxWaiting); wait until one of them is over",
        STR_ARG(m->delegation.agent), (long long)n, (long long)max,
        (long long)waiting);
}

static enum err check_kept_limits(const struct delegations *h, struct msg *m,
                                  const struct delegator *r)
{
    const struct delegation_settings *s = &h->opts.settings;

    if (has_too_many_unacked(h, r))
        return why_err(&m->why, ERR_DELEGATIONS,
                       "%.*s has %zu unacknowledged results, the limit "
                       "(delegation.maxUnacked): send delegation.ack for "
                       "those it has received",
                       STR_ARG(m->delegation.agent), s->max_unacked);
    if (h->n + h->n_claimed >= s->max_open)
        return why_err(&m->why, ERR_OVERLOADED,
                       "%zu delegations of all agents are open or "
                       "unacknowledged, the limit (delegation.maxOpen)",
                       s->max_open);
    return OK;
}

static enum err check_delegation_allowed(struct delegations *h, struct msg *m,
                                         const struct agent *by,
                                         const struct agent *chosen)
{
    if (str_eq_nocase(m->delegation.agent, chosen->name))
        return why_err(&m->why, ERR_DELEGATION,
                       "%.*s cannot delegate to itself",
                       STR_ARG(m->delegation.agent));
    if (by && !agent_allows_delegation(by, chosen->name))
        return why_err(&m->why, ERR_DELEGATION,
                       "%.*s may not delegate to %.*s "
                       "(delegation.allowAgents)",
                       STR_ARG(m->delegation.agent), STR_ARG(chosen->name));
    return check_delegation_chain(h, m, chosen);
}

/* The user it is for. */

/* The parent task. If the chosen candidate has ended, the one of the rest whose
 * tree has used the most. */
static const struct task *choose_live_parent(struct delegations *h,
                                             struct msg *m)
{
    const struct task *t = task_find(h->opts.tasks, m->delegation.parent_id);
    const struct delegation_possible *best = NULL;

    if (agent_works_on(h, t, m->delegation.agent) || PLANTED("hire.over_too"))
        return t;
    for (size_t i = 0; i < m->delegation.n_parents; i++) {
        const struct delegation_possible *p = &m->delegation.parents[i];

        if ((!best || p->used > best->used) &&
            agent_works_on(h, task_find(h->opts.tasks, str_of(p->id.text)),
                           m->delegation.agent))
            best = p;
    }
    if (best)
        m->delegation.parent_id = str_of(best->id.text);
    return best ? task_find(h->opts.tasks, m->delegation.parent_id) : t;
}

static enum err inherit_from_parent(struct delegations *h, struct msg *m,
                                    const struct agent *by)
{
    const struct task *t = choose_live_parent(h, m);

    m->delegation.depth = 1;
    m->delegation.tree = (struct id){""};
    m->delegation.talk = (struct str){NULL, 0};
    if (!m->delegation.parent_id.n) { /* the creator of the agent pays */
        if (m->delegation.for_user.n)
            m->delegation.root_user = m->delegation.for_user;
        else if (by && by->creator.n &&
                 !arena_keep(&m->arena, by->creator, &m->delegation.root_user))
            return ERR_NOMEM;
        return chain_extend(m, STR(""), m->delegation.agent) ? OK : ERR_NOMEM;
    }
    if (!agent_works_on(h, t, m->delegation.agent))
        return why_err(&m->why, ERR_DELEGATION, "the parent task is over");
    if (t->depth >= DELEGATION_CHAIN_MAX)
        return why_err(&m->why, ERR_DELEGATION,
                       "the chain already has %d agents", DELEGATION_CHAIN_MAX);
    m->delegation.depth = t->depth + 1;
    m->delegation.tree = t->tree;
    m->delegation.ceiling_micros = t->ceiling_micros;
    if (!arena_keep(&m->arena, t->talk.n ? t->talk : t->conversation_id,
                    &m->delegation.talk) ||
        !arena_keep(&m->arena, task_root(t), &m->delegation.root_id) ||
        !arena_keep(&m->arena, t->root_user, &m->delegation.root_user))
        return ERR_NOMEM;
    if (t->deadline_ms - m->in.at_ms < m->call.timeout_ms)
        m->call.timeout_ms =
            t->deadline_ms - m->in.at_ms > 1 ? t->deadline_ms - m->in.at_ms : 1;
    return chain_extend(m, t->chain, m->delegation.agent) ? OK : ERR_NOMEM;
}

/* A further turn is for the same agent and user as the turns before it. */
static enum err check_earlier_turn(const struct msg *m, const struct agent *by,
                                   const struct task *before)
{
    struct str payer = m->delegation.root_user.n ? m->delegation.root_user
                                                 : caller_name(&m->in.caller);

    return !before || (str_eq_nocase(before->by_agent, m->delegation.agent) &&
                       str_eq(before->root_user, payer) &&
                       (!by || agent_is_meant(by, before->created_ms,
                                              before->requester)))
               ? OK
               : ERR_NOT_FOUND;
}

/* Repeated requests. */

enum err delegation_repeat(struct delegations *h, struct msg *m)
{
    struct live_delegation *x = delegation_of_request(
        h, m->delegation.agent, m->delegation.wish.original_id);

    m->delegation.is_repeat = m->delegation.is_behind = false;
    if (!m->delegation.agent.n || !x || !delegation_is_own(h, &x->d) ||
        PLANTED("hire.no_repeats"))
        return OK;
    if (memcmp(x->body_hash, m->call.body_hash, MSG_BODY_HASH_BYTES) != 0)
        return delegation_gives_way(x)
                   ? OK
                   : why_err(
                         &m->why, ERR_ID_IN_USE,
                         "the id \"%.*s\" belongs to another request, whose "
                         "result is not acknowledged yet",
                         STR_ARG(m->delegation.wish.original_id));
    m->delegation.is_repeat = true;
    if (x->is_claimed) {
        m->delegation.is_behind = true;
        list_append(&x->behind, &m->delegation.node);
        return OK;
    }
    m->delegation.key = x->d.key;
    m->task.id = x->d.task_id;
    m->task.turn = x->d.turn;
    return OK;
}

static enum err delegation_claim_for(struct delegations *h, struct msg *m,
                                     const struct agent *by)
{
    const struct delegation_wish *w = &m->delegation.wish;
    const struct task *parent =
        task_find(h->opts.tasks, m->delegation.parent_id);
    struct delegation d = {.key = id_make(h->opts.ids, "del", m->in.at_ms),
                           .agent = m->delegation.agent,
                           .creator = by ? by->creator : STR(""),
                           .original_id = w->original_id,
                           .parent_id = m->delegation.parent_id,
                           .root_id = m->delegation.root_id,
                           .owner = parent ? parent->requester : STR(""),
                           .conversation =
                               parent ? parent->conversation_id : STR(""),
                           .mode = w->mode,
                           .state = DELEGATION_OPEN,
                           .is_stream = w->is_stream,
                           .ends_with_line = w->ends_with_line,
                           .goes_on = w->goes_on,
                           .created_ms = m->in.at_ms};
    struct live_delegation *told =
        delegation_of_request(h, d.agent, d.original_id);
    struct live_delegation *x = delegation_make(h, &d);

    memcpy(x->body_hash, m->call.body_hash, MSG_BODY_HASH_BYTES);
    if (delegation_claim(x) != OK) {
        delegation_unclaim(x);
        return ERR_NOMEM;
    }
    if (told && delegation_gives_way(told) && !told->is_had)
        delegation_is_had(told);
    m->delegation.key = d.key;
    m->delegation.claim = x;
    return OK;
}

static enum err delegation_decide(struct delegations *h, struct msg *m,
                                  const struct agent *chosen,
                                  const struct task *before)
{
    const struct delegator *r = delegator_find(h, m->delegation.agent);
    const struct agent *by =
        registry_agent(h->opts.registry, m->delegation.agent);
    enum err e;

    if (!m->call.timeout_ms)
        m->call.timeout_ms = h->opts.settings.timeout_ms;
    e = inherit_from_parent(h, m, by);
    if (!e)
        e = check_earlier_turn(m, by, before);
    if (!e)
        e = check_delegation_allowed(h, m, by, chosen);
    if (!e)
        e = check_other_chains(h, m, chosen);
    if (!e)
        e = check_open_limit(h, m, by, r);
    if (!e)
        e = check_kept_limits(h, m, r);
    return e ? e : delegation_claim_for(h, m, by);
}

void delegation_count_refusal(struct delegations *h, enum err e)
{
    enum delegation_refusal why = e == ERR_DELEGATION ? DELEGATION_NOT_ALLOWED
                                  : e == ERR_DELEGATIONS ? DELEGATION_TOO_MANY
                                  : e == ERR_ID_IN_USE   ? DELEGATION_ID_IN_USE
                                                         : DELEGATION_OTHERWISE;

    h->stats.refused_total++;
    h->stats.refused_by[why]++;
}

enum err delegation_ask(struct delegations *h, struct msg *m,
                        const struct agent *chosen, const struct task *before)
{
    enum err e;

    if (!m->delegation.agent.n)
        return OK;
    e = delegation_repeat(h, m); /* the original may have come during routing */
    if (!e && !m->delegation.is_repeat)
        e = delegation_decide(h, m, chosen, before);
    if (e)
        delegation_count_refusal(h, e);
    return e;
}
