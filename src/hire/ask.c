/* Whether an agent may give work to another, and on whose behalf it is.
 *
 * Everything is judged by what the server itself knows: the line says which
 * agent asks, the task it works on says for whom and in which chain. */
#include "hire/internal.h"

#include <stdio.h>

#include "base/json.h"
#include "model/agent.h"

enum { CHAIN_BYTES = DELEGATION_CHAIN_MAX * (AGENT_NAME_MAX + 3) + 2 };

/* The work that it is part of. */

/* Nor is what was given to one who had its name before. */
static bool is_its_work(const struct hires *h, const struct task *t,
                        struct str agent)
{
    const struct agent *a = h->opts.agent(h->opts.ctx, agent);

    return t && !task_is_over(t->status) && str_eq_nocase(t->agent, agent) &&
           (!a || agent_is_meant(a, t->created_ms, t->requester) ||
            agent_is_meant(a, t->created_ms, t->root_user) ||
            PLANTED("hire.any_owner"));
}

static struct str payer_of(const struct task *t)
{
    return t->root_user.n ? t->root_user : t->requester;
}

static void add_by_deadline(struct hire_parents *p, const struct task *t)
{
    size_t at = p->n;

    while (at && p->list[at - 1]->deadline_ms > t->deadline_ms)
        at--;
    if (at == HIRE_PARENTS_MAX)
        return;
    p->n += p->n < HIRE_PARENTS_MAX;
    for (size_t i = p->n - 1; i > at; i--)
        p->list[i] = p->list[i - 1];
    p->list[at] = t;
}

/* What it works on, of that session where one is given. A session's name is
 * each user's own, so it may be that of several. */
static enum err find_work(struct hires *h, struct str agent, struct str session,
                          struct hire_parents *out)
{
    const struct task *first = NULL;
    enum err e = OK;

    out->n = 0;
    for (const struct task *t = NULL;
         (t = tasks_working(h->opts.tasks, agent, t));) {
        if ((session.n && !str_eq(task_session(t), session)) ||
            !is_its_work(h, t, agent))
            continue;
        first = first ? first : t;
        if (!str_eq(payer_of(t), payer_of(first)) && !PLANTED("hire.any_payer"))
            e = ERR_BAD_REQUEST;
        add_by_deadline(out, t);
    }
    return e;
}

static enum err find_parents(struct hires *h, struct str agent,
                             struct str session, struct hire_parents *out,
                             struct why *why)
{
    enum err e = OK;

    out->n = 0;
    if (session.n)
        e = find_work(h, agent, session, out);
    out->is_of_session = out->n || !session.n;
    if (!out->n)
        e = find_work(h, agent, STR(""), out);
    if (!e)
        return OK;
    out->n = 0;
    return why_err(why, e,
                   "%.*s works for several users now: say session_id "
                   "(conversation_id of message.send), that of the task this "
                   "is part of, or where two of them have the same, "
                   "parent_task_id",
                   STR_ARG(agent));
}

enum err hire_parents(struct hires *h, struct str agent, struct str given,
                      struct str session, struct hire_parents *out,
                      struct why *why)
{
    const struct task *t;

    if (!given.n)
        return find_parents(h, agent, session, out, why);
    out->n = 0;
    out->is_of_session = true;
    t = task_find(h->opts.tasks, given);
    if (!is_its_work(h, t, agent))
        return why_err(why, ERR_BAD_REQUEST,
                       "parent_task_id must be a task that %.*s is "
                       "working on now",
                       STR_ARG(agent));
    out->list[out->n++] = t;
    return OK;
}

/* The chain. */

static struct json *read_chain(struct arena *a, struct str chain)
{
    return json_parse(a, chain.n ? chain : STR("[]"), 0, NULL);
}

static bool add_to_chain(struct msg *m, struct str above, struct str agent)
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
    buf_addf(&b, "\"%.*s\"]", STR_ARG(agent)); /* names need no escape */
    ok = !b.over && arena_keep(&m->arena, buf_str(&b), &m->hire.chain);
    buf_fini(&b);
    return ok;
}

/* Limits. */

static bool allows(const struct agent *a, struct str name)
{
    if (!a->delegation.is_limited)
        return true;
    for (size_t i = 0; i < a->delegation.allow.n; i++)
        if (str_eq_nocase(a->delegation.allow.list[i], name))
            return true;
    return false;
}

static enum err refuse_twice(struct msg *m, struct str agent, struct str chain)
{
    return why_err(&m->why, ERR_DELEGATION,
                   "%.*s is above this already (%.*s): nobody works twice in "
                   "one chain",
                   STR_ARG(agent), STR_ARG(chain));
}

/* Which of these this is for was not said: then it may be for any of them, and
 * goes to nobody who is above one. */
static enum err check_other_chains(struct hires *h, struct msg *m,
                                   const struct agent *chosen)
{
    for (size_t i = 0; i < m->hire.n_parents && !PLANTED("hire.one_chain");
         i++) {
        const struct task *t =
            task_find(h->opts.tasks, str_of(m->hire.parents[i].id.text));
        struct str rest = t ? t->chain : STR(""), name;

        while (json_next(&rest, &name)) /* names need no escape */
            if (str_eq_nocase(str_sub(name, 1, name.n - 1), chosen->name))
                return refuse_twice(m, chosen->name, t->chain);
    }
    return OK;
}

/* An envelope may go back to who asked, once: whoever gave the one that is
 * answered hears of it, and who answers is in no chain twice. */
static bool is_answer(const struct msg *m, const struct json *chain,
                      const struct json *above, const struct agent *chosen)
{
    size_t n = 0;

    if (!m->call.envelope || !above->next || above->next->next ||
        !str_eq_nocase(above->s, chosen->name))
        return false;
    JSON_EACH(kid, chain)
    {
        n += str_eq_nocase(kid->s, m->hire.agent);
    }
    return n == 1;
}

/* Each agent of the chain allows so much below it, and is in it once. */
static enum err check_chain(struct hires *h, struct msg *m,
                            const struct agent *chosen)
{
    struct json *chain = read_chain(&m->arena, m->hire.chain);
    int64_t left = m->hire.depth;

    if (!chain)
        return ERR_NOMEM;
    JSON_EACH(kid, chain)
    {
        const struct agent *a = h->opts.agent(h->opts.ctx, kid->s);
        int64_t max = a && a->delegation.max_depth >= 0
                          ? a->delegation.max_depth
                          : h->opts.settings.max_depth;

        if (str_eq_nocase(kid->s, chosen->name) &&
            !is_answer(m, chain, kid, chosen) && !PLANTED("hire.no_chain"))
            return refuse_twice(m, chosen->name, m->hire.chain);
        if (left > max)
            return why_err(&m->why, ERR_DELEGATION,
                           "%.*s allows %lld below it (delegation.maxDepth), "
                           "and this would be %lld",
                           STR_ARG(kid->s), (long long)max, (long long)left);
        left--;
    }
    return OK;
}

/* Those of who had its name before are not its to acknowledge; what it has said
 * it has is on its way out. */
static bool has_too_many_unacked(const struct hires *h, const struct hirer *r)
{
    size_t n = 0;

    if (!r || r->n_ready < h->opts.settings.max_unacked)
        return false;
    for (struct list_node *at = list_first(&r->ready); at;
         at = list_next(&r->ready, at)) {
        const struct hire *x = LIST_OF(at, struct hire, hirer_node);

        n += hire_is_own(h, &x->d) && !x->is_had;
    }
    return n >= h->opts.settings.max_unacked;
}

/* So that no agent keeps the others out. Who may have none going at all has
 * nothing to wait for, and what is part of a delegation does not wait. */
static enum err check_going(const struct hires *h, struct msg *m,
                            const struct agent *by, const struct hirer *r)
{
    int64_t max = hire_max_going(h, by);
    bool may_wait = hire_may_wait(m->hire.depth);
    int64_t waiting = max > 0 && may_wait ? h->opts.settings.max_waiting : 0;
    int64_t n = r ? (int64_t)(r->n_open + r->n_claimed) : 0;

    if (n < max + waiting)
        return OK;
    if (!may_wait)
        return why_err(&m->why, ERR_DELEGATIONS,
                       "%.*s has %lld delegations open, and %lld may go at "
                       "once (delegation.maxConcurrent); what is part of a "
                       "delegation does not wait for others: try again when "
                       "one of them is over",
                       STR_ARG(m->hire.agent), (long long)n, (long long)max);
    return why_err(&m->why, ERR_DELEGATIONS,
                   "%.*s has %lld delegations open, as many as it may: %lld go "
                   "at once (delegation.maxConcurrent) and %lld wait "
                   "(delegation.maxWaiting); wait for one of them",
                   STR_ARG(m->hire.agent), (long long)n, (long long)max,
                   (long long)waiting);
}

static enum err check_kept(const struct hires *h, struct msg *m,
                           const struct hirer *r)
{
    const struct hire_settings *s = &h->opts.settings;

    if (has_too_many_unacked(h, r))
        return why_err(&m->why, ERR_DELEGATIONS,
                       "%.*s has %zu results that it did not acknowledge, as "
                       "many as are kept (delegation.maxUnacked): send "
                       "delegation.ack for those it has",
                       STR_ARG(m->hire.agent), s->max_unacked);
    if (h->n + h->n_claimed >= s->max_open)
        return why_err(&m->why, ERR_OVERLOADED,
                       "%zu delegations of all agents are kept, as many as "
                       "may be (delegation.maxOpen)",
                       s->max_open);
    return OK;
}

static enum err check_allowed(struct hires *h, struct msg *m,
                              const struct agent *by,
                              const struct agent *chosen)
{
    if (str_eq_nocase(m->hire.agent, chosen->name))
        return why_err(&m->why, ERR_DELEGATION,
                       "%.*s cannot give work to itself",
                       STR_ARG(m->hire.agent));
    if (by && !allows(by, chosen->name))
        return why_err(&m->why, ERR_DELEGATION,
                       "%.*s may not give work to %.*s "
                       "(delegation.allowAgents)",
                       STR_ARG(m->hire.agent), STR_ARG(chosen->name));
    return check_chain(h, m, chosen);
}

/* What is not for this agent is refused as that, however much it has going. */
static enum err check_room(struct hires *h, struct msg *m,
                           const struct agent *by)
{
    const struct hirer *r = hirer_find(h, m->hire.agent);
    enum err e = check_going(h, m, by, r);

    return e ? e : check_kept(h, m, r);
}

/* On whose behalf. */

/* The task that it is part of. Of several, the chosen one may have ended since:
 * then it is the one of those left whose tree has used the most. */
static const struct task *parent_of(struct hires *h, struct msg *m)
{
    const struct task *t = task_find(h->opts.tasks, m->hire.parent_id);
    const struct hire_possible *best = NULL;

    if (is_its_work(h, t, m->hire.agent) || PLANTED("hire.over_too"))
        return t;
    for (size_t i = 0; i < m->hire.n_parents; i++) {
        const struct hire_possible *p = &m->hire.parents[i];

        if ((!best || p->used > best->used) &&
            is_its_work(h, task_find(h->opts.tasks, str_of(p->id.text)),
                        m->hire.agent))
            best = p;
    }
    if (best)
        m->hire.parent_id = str_of(best->id.text);
    return best ? task_find(h->opts.tasks, m->hire.parent_id) : t;
}

static enum err take_parent(struct hires *h, struct msg *m,
                            const struct agent *by)
{
    const struct task *t = parent_of(h, m);

    m->hire.depth = 1;
    m->hire.tree = (struct id){""};
    if (!m->hire.parent_id.n) { /* who made it pays */
        if (m->hire.for_user.n)
            m->hire.root_user = m->hire.for_user;
        else if (by && by->creator.n &&
                 !arena_keep(&m->arena, by->creator, &m->hire.root_user))
            return ERR_NOMEM;
        return add_to_chain(m, STR(""), m->hire.agent) ? OK : ERR_NOMEM;
    }
    if (!is_its_work(h, t, m->hire.agent))
        return why_err(&m->why, ERR_DELEGATION,
                       "the task that this is part of is over");
    if (t->depth >= DELEGATION_CHAIN_MAX)
        return why_err(&m->why, ERR_DELEGATION, "the chain is %d long already",
                       DELEGATION_CHAIN_MAX);
    m->hire.depth = t->depth + 1;
    m->hire.tree = t->tree;
    m->hire.ceiling_micros = t->ceiling_micros;
    if (!arena_keep(&m->arena, task_root(t), &m->hire.root_id) ||
        !arena_keep(&m->arena, t->root_user, &m->hire.root_user))
        return ERR_NOMEM;
    if (t->deadline_ms - m->in.at_ms < m->call.timeout_ms)
        m->call.timeout_ms =
            t->deadline_ms - m->in.at_ms > 1 ? t->deadline_ms - m->in.at_ms : 1;
    return add_to_chain(m, t->chain, m->hire.agent) ? OK : ERR_NOMEM;
}

static struct str payer(const struct msg *m)
{
    return m->hire.root_user.n ? m->hire.root_user : caller_name(&m->in.caller);
}

/* A further turn is in the same name as those before it. */
static enum err check_before(const struct msg *m, const struct agent *by,
                             const struct task *before)
{
    return !before || (str_eq_nocase(before->by_agent, m->hire.agent) &&
                       str_eq(before->root_user, payer(m)) &&
                       (!by || agent_is_meant(by, before->created_ms,
                                              before->requester)))
               ? OK
               : ERR_NOT_FOUND;
}

/* The same request again. */

enum err hire_repeat(struct hires *h, struct msg *m)
{
    struct hire *x =
        hire_of_request(h, m->hire.agent, m->hire.wish.original_id);

    m->hire.is_repeat = m->hire.is_behind = false;
    if (!m->hire.agent.n || !x || !hire_is_own(h, &x->d) ||
        PLANTED("hire.no_repeats"))
        return OK;
    if (memcmp(x->body_hash, m->call.body_hash, MSG_BODY_HASH_BYTES) != 0)
        return hire_gives_way(x)
                   ? OK
                   : why_err(
                         &m->why, ERR_ID_IN_USE,
                         "the id \"%.*s\" is that of another request, whose "
                         "result is not acknowledged yet",
                         STR_ARG(m->hire.wish.original_id));
    m->hire.is_repeat = true;
    if (x->is_claimed) {
        m->hire.is_behind = true;
        list_append(&x->behind, &m->hire.node);
        return OK;
    }
    m->hire.key = x->d.key;
    m->task.id = x->d.task_id;
    m->task.turn = x->d.turn;
    return OK;
}

static enum err claim(struct hires *h, struct msg *m, const struct agent *by)
{
    const struct delegation_wish *w = &m->hire.wish;
    const struct task *parent = task_find(h->opts.tasks, m->hire.parent_id);
    struct delegation d = {.key = id_make(h->opts.ids, "del", m->in.at_ms),
                           .agent = m->hire.agent,
                           .creator = by ? by->creator : STR(""),
                           .original_id = w->original_id,
                           .parent_id = m->hire.parent_id,
                           .root_id = m->hire.root_id,
                           .owner = parent ? parent->requester : STR(""),
                           .conversation =
                               parent ? parent->conversation_id : STR(""),
                           .mode = w->mode,
                           .state = DELEGATION_OPEN,
                           .is_stream = w->is_stream,
                           .ends_with_line = w->ends_with_line,
                           .goes_on = w->goes_on,
                           .created_ms = m->in.at_ms};
    struct hire *told = hire_of_request(h, d.agent, d.original_id);
    struct hire *x = hire_make(h, &d);

    if (!x)
        return ERR_NOMEM;
    memcpy(x->body_hash, m->call.body_hash, MSG_BODY_HASH_BYTES);
    if (hire_claim(x) != OK) {
        hire_unclaim(x);
        return ERR_NOMEM;
    }
    if (told && hire_gives_way(told) && !told->is_had)
        hire_is_had(told);
    m->hire.key = d.key;
    m->hire.claim = x;
    return OK;
}

static enum err ask(struct hires *h, struct msg *m, const struct agent *chosen,
                    const struct task *before)
{
    const struct agent *by = h->opts.agent(h->opts.ctx, m->hire.agent);
    enum err e;

    if (!m->call.timeout_ms)
        m->call.timeout_ms = h->opts.settings.timeout_ms;
    e = take_parent(h, m, by);
    if (!e)
        e = check_before(m, by, before);
    if (!e)
        e = check_allowed(h, m, by, chosen);
    if (!e)
        e = check_other_chains(h, m, chosen);
    if (!e)
        e = check_room(h, m, by);
    return e ? e : claim(h, m, by);
}

void hire_count_refusal(struct hires *h, enum err e)
{
    enum hire_refusal why = e == ERR_DELEGATION    ? HIRE_NOT_ALLOWED
                            : e == ERR_DELEGATIONS ? HIRE_TOO_MANY
                            : e == ERR_ID_IN_USE   ? HIRE_ID_IN_USE
                                                   : HIRE_OTHERWISE;

    h->stats.refused_total++;
    h->stats.refused_by[why]++;
}

enum err hire_ask(struct hires *h, struct msg *m, const struct agent *chosen,
                  const struct task *before)
{
    enum err e;

    if (!m->hire.agent.n)
        return OK;
    e = hire_repeat(h, m); /* it may have come while this was routed */
    if (!e && !m->hire.is_repeat)
        e = ask(h, m, chosen, before);
    if (e)
        hire_count_refusal(h, e);
    return e;
}
