/* Delegation requests become messages, in the name of the user they are for,
 * and take the same walk as all others. */
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/fault.h"
#include "walk/internal.h"

enum { MEANING_MAX = MSG_TEXT_MAX + MSG_METADATA_MAX + 4096 };

static enum err check_payer(struct walk *w, const struct task *parent,
                            struct why *why)
{
    struct caller unused;

    if (!parent || !parent->root_user.n ||
        access_caller(w->opts.access, parent->root_user, &unused) ||
        PLANTED("walk.gone_pays"))
        return OK;
    return why_err(
        why, ERR_NOT_ALLOWED,
        "the user %.*s, who would pay for this, does not exist any more",
        STR_ARG(parent->root_user));
}

/* The caller an agent acts as: its creator, or for a configured agent the user
 * it works for. */
static enum err caller_for(struct walk *w, const struct walk_order *o,
                           const struct task *parent, struct caller *out,
                           struct why *why)
{
    const struct agent *a = registry_agent(w->opts.registry, o->by);
    struct str name = {NULL, 0};

    if (a && a->creator.n)
        name = a->creator;
    else if (parent)
        name = parent->root_user;
    if (!name.n && o->caller) {
        *out = *o->caller;
        return OK;
    }
    if (!name.n)
        return why_err(
            why, ERR_BAD_REQUEST,
            "%.*s is not working on a task, so no user would pay: give "
            "parent_task_id",
            STR_ARG(o->by));
    if (!access_caller(w->opts.access, name, out))
        return why_err(why, ERR_NOT_ALLOWED,
                       "the user %.*s does not exist any more", STR_ARG(name));
    return OK;
}

static struct str msg_keep(struct msg *m, struct str s, bool *ok)
{
    struct str copy;

    *ok = arena_keep(&m->arena, s, &copy) && *ok;
    return copy;
}

/* "AGENT@USER/SESSION": separate for each user the agent works for, and from
 * the user's own conversations. Made before routing, because routing looks for
 * the agent of a conversation. */
static struct str own_session_name(struct walk *w, struct msg *m, struct str by,
                                   struct str session,
                                   const struct task *parent, bool *ok)
{
    const struct agent *a = registry_agent(w->opts.registry, by);
    struct str user = parent                     ? parent->root_user
                      : m->delegation.for_user.n ? m->delegation.for_user
                      : a && a->creator.n        ? a->creator
                                                 : caller_name(&m->in.caller);
    struct str made;
    struct buf b;

    buf_init(&b,
             AGENT_NAME_MAX + PRINCIPAL_NAME_MAX + MSG_CONVERSATION_MAX + 2);
    buf_addf(&b, "%.*s@%.*s/", STR_ARG(by), STR_ARG(user));
    if (str_starts(session,
                   buf_str(&b))) /* the full name, from an earlier answer */
        buf_clear(&b);
    buf_add_str(&b, session);
    *ok = *ok && !b.over;
    made = msg_keep(m, buf_str(&b), ok);
    buf_fini(&b);
    return made;
}

/* A name that own_session_name took for a new one may be the full name of a
 * conversation for another user. */
static enum err check_session_name(struct str by, struct str said,
                                   struct str made, struct why *why)
{
    bool is_told = said.n > by.n && said.p[by.n] == '@' &&
                   str_starts(said, by) && str_find(said, '/', 0) < said.n;

    if (!is_told || said.n == made.n)
        return OK;
    return why_err(why, ERR_BAD_REQUEST,
                   "\"%.*s\" is a conversation for another user",
                   STR_ARG(said));
}

/* An admin's agent that is not working on a task may name the user it speaks
 * for. */
static enum err msg_take_for_user(struct walk *w, struct msg *m,
                                  const struct caller *caller,
                                  const struct task *parent)
{
    return parent || !caller || !caller_is_admin(caller)
               ? OK
               : walk_for_user(w, m, &m->delegation.for_user);
}

/* Set the requesting agent, its options and the candidates for the parent. */
static bool msg_fill_delegation(struct msg *m, struct str by,
                                const struct delegation_wish *wish,
                                const struct delegation_parents *parents,
                                struct str session)
{
    bool ok = true;

    if (parents->n && !parents->is_of_session) {
        m->delegation.session = msg_keep(m, session, &ok);
        m->delegation.payer = msg_keep(m, parents->list[0]->root_user, &ok);
    }
    m->delegation.agent = msg_keep(m, by, &ok);
    m->delegation.wish = *wish;
    m->delegation.wish.original_id = msg_keep(m, wish->original_id, &ok);
    if (parents->n == 1)
        m->delegation.parent_id =
            msg_keep(m, str_of(parents->list[0]->id.text), &ok);
    else if (parents->n)
        ok = walk_keep_parents(m, parents) && ok;
    return ok;
}

static enum err msg_fill_from_order(struct walk *w, struct msg *m,
                                    const struct walk_order *o,
                                    const struct delegation_parents *parents)
{
    const struct task *parent = parents->n ? parents->list[0] : NULL;
    bool ok = true;

    m->call.text = msg_keep(m, o->message, &ok);
    m->call.executor = msg_keep(m, o->agent, &ok);
    m->call.skill = msg_keep(m, o->skill, &ok);
    m->call.task_id = msg_keep(m, o->task_id, &ok);
    m->call.idempotency_key = msg_keep(m, o->idempotency_key, &ok);
    if (o->session_id.n && !o->task_id.n) /* a further turn has one */
        m->call.conversation_id =
            own_session_name(w, m, o->by, o->session_id, parent, &ok);
    m->call.source = msg_keep(m, STR("{}"), &ok);
    m->call.priority = parent ? parent->priority : PRIORITY_NORMAL;
    m->call.timeout_ms = o->timeout_ms;
    if (!msg_fill_delegation(m, o->by, &o->wish, parents, o->task_session) ||
        !ok)
        return ERR_NOMEM;
    return check_session_name(o->by, o->session_id, m->call.conversation_id,
                              &m->why);
}

/* Each field with its length, in a fixed order, so that different requests
 * differ. */
static void order_hash_add(struct buf *out, struct str s)
{
    buf_add_i64(out, (int64_t)s.n);
    buf_add_char(out, ':');
    buf_add_str(out, s);
}

enum err walk_order_hash(const struct walk_order *o,
                         uint8_t out[MSG_BODY_HASH_BYTES])
{
    struct buf b;
    enum err e;

    buf_init(&b, MEANING_MAX);
    order_hash_add(&b, o->by);
    order_hash_add(&b, o->agent);
    order_hash_add(&b, o->skill);
    order_hash_add(&b, o->session_id);
    order_hash_add(&b, o->task_id);
    order_hash_add(&b, o->parent_id);
    order_hash_add(&b, o->message);
    order_hash_add(&b, o->metadata);
    buf_addf(&b, "%lld,%d,%d,%d,%d", (long long)o->timeout_ms,
             (int)o->wish.mode, o->wish.is_stream, o->wish.ends_with_line,
             o->wish.goes_on);
    if (o->has_max_cost)
        buf_addf(&b, ",c%lld", (long long)o->max_cost_micros);
    e = b.over ? ERR_NOMEM : OK;
    if (!e)
        digest(buf_str(&b), out);
    buf_fini(&b);
    return e;
}

enum err walk_check_skill(struct msg *m, const struct agent *a)
{
    char all[192] = "";
    size_t n = 0;

    if (!m->call.skill.n || !a->n_skills || agent_skill(a, m->call.skill))
        return OK;
    for (size_t i = 0; i < a->n_skills && n < sizeof(all); i++)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%.*s", i ? ", " : "",
                              STR_ARG(a->skills[i].id));
    return why_err(&m->why, ERR_BAD_REQUEST,
                   "%.*s has no skill \"%.*s\"; it has %s%s", STR_ARG(a->name),
                   STR_ARG(str_head(m->call.skill, 64)), all,
                   n < sizeof(all) ? "" : "…");
}

/* All candidates have the same payer. */
static enum err find_delegation_parents(struct walk *w, struct str by,
                                        struct str given, struct str session,
                                        struct delegation_parents *out,
                                        struct why *why)
{
    enum err e =
        delegation_parents(w->delegations, by, given, session, out, why);

    return e || !out->n ? e : check_payer(w, out->list[0], why);
}

/* A task_session without a session_id only selects the parent task. */
static enum err check_parent_session(const struct walk_order *o,
                                     const struct delegation_parents *parents,
                                     struct why *why)
{
    if (!parents->n || parents->is_of_session || o->session_id.n ||
        PLANTED("walk.any_session"))
        return OK;
    return why_err(why, ERR_BAD_REQUEST,
                   "session_id must be the session of a task that %.*s is "
                   "working on: the task of \"%.*s\" may be over",
                   STR_ARG(o->by), STR_ARG(o->task_session));
}

/* A repeat gets its original answer, whatever happened to its parent and payer:
 * neither is checked again. */
static enum err find_caller(struct walk *w, const struct walk_order *o,
                            const uint8_t hash[MSG_BODY_HASH_BYTES],
                            struct delegation_parents *parents,
                            struct caller *caller, struct why *why)
{
    enum err e;

    parents->n = 0;
    parents->is_of_session = true;
    *caller = o->caller ? *o->caller : (struct caller){0};
    if (delegation_is_known(w->delegations, o->by, o->wish.original_id, hash))
        return OK;
    e = find_delegation_parents(w, o->by, o->parent_id, o->task_session,
                                parents, why);
    if (!e)
        e = check_parent_session(o, parents, why);
    return e ? e
             : caller_for(w, o, parents->n ? parents->list[0] : NULL, caller,
                          why);
}

enum err walk_delegate(struct walk *w, const struct walk_order *o,
                       void (*done)(struct msg *m, void *ctx), void *ctx,
                       struct why *why)
{
    uint8_t hash[MSG_BODY_HASH_BYTES];
    struct delegation_parents parents;
    struct caller caller;
    struct msg *m;
    bool ok = true;
    enum err e = walk_order_hash(o, hash);

    if (!e)
        e = find_caller(w, o, hash, &parents, &caller, why);
    if (e)
        return e;
    m = msg_new(&caller, loop_wall_ms(w->opts.loop));
    if (m)
        m->call.metadata =
            msg_keep(m, o->metadata.n ? o->metadata : STR("{}"), &ok);
    e = m && ok ? msg_take_for_user(w, m, o->caller,
                                    parents.n ? parents.list[0] : NULL)
                : ERR_NOMEM;
    if (!e)
        e = msg_fill_from_order(w, m, o, &parents);
    if (e) {
        if (m)
            *why = m->why;
        msg_free(m);
        return e;
    }
    m->call.has_max_cost = o->has_max_cost;
    m->call.max_cost_micros = o->max_cost_micros;
    memcpy(m->call.body_hash, hash, sizeof(hash));
    walk_message(w, m, done, ctx);
    return OK;
}

/* An agent's conversations are separate for each user. One without a name gets
 * a name, so that the agent can continue it. */
static enum err own_conversation(struct walk *w, struct msg *m, struct str by,
                                 const struct task *parent)
{
    struct id made = id_make(w->opts.ids, "conv", m->in.at_ms);
    struct str said = m->call.conversation_id;
    bool ok = true;

    if (m->call.task_id.n)
        return OK;
    m->call.conversation_id = own_session_name(
        w, m, by, said.n ? said : str_of(made.text), parent, &ok);
    return ok ? check_session_name(by, said, m->call.conversation_id, &m->why)
              : ERR_NOMEM;
}

/* The parent task is part of what the key identifies, if it is given. */
static enum err hash_parent(struct msg *m, struct str parent_id)
{
    uint8_t *hash = m->call.body_hash;
    struct buf b;
    enum err e;

    if (!parent_id.n || PLANTED("walk.any_parent"))
        return OK;
    buf_init(&b, MSG_BODY_HASH_BYTES + ID_BYTES);
    buf_add_str(&b, (struct str){(const char *)hash, MSG_BODY_HASH_BYTES});
    buf_add_str(&b, parent_id);
    e = b.over ? ERR_NOMEM : OK;
    if (!e)
        digest(buf_str(&b), hash);
    buf_fini(&b);
    return e;
}

static enum err msg_make_delegation(struct walk *w, struct msg *m,
                                    struct str by, struct str parent_id)
{
    static const struct delegation_wish wish = {.mode = DELEGATION_MESSAGE};
    struct delegation_parents parents;
    const struct task *parent;
    struct str session = m->call.envelope ? STR("") : m->call.conversation_id;
    enum err e = hash_parent(m, parent_id);

    if (!e)
        e = find_delegation_parents(w, by, parent_id, session, &parents,
                                    &m->why);
    if (e)
        return e;
    parent = parents.n ? parents.list[0] : NULL;
    e = msg_take_for_user(w, m, &m->in.caller, parent);
    if (!e)
        e = own_conversation(w, m, by, parent);
    if (!e && !msg_fill_delegation(m, by, &wish, &parents, session))
        e = ERR_NOMEM;
    return e;
}

void walk_agent_message(struct walk *w, struct msg *m, struct str by,
                        struct str parent_id,
                        void (*done)(struct msg *m, void *ctx), void *ctx)
{
    enum err e = msg_make_delegation(w, m, by, parent_id);

    if (e)
        walk_refused(w, m, e, done, ctx);
    else
        walk_message(w, m, done, ctx);
}

/* One step for each streamed delegation above t. delegation_ask limits the
 * chain; the count only guards against a bug. */
void walk_chunk_up(struct walk *w, const struct task *t, struct str text)
{
    struct str agent = t->agent, id = str_of(t->id.text);

    for (int i = 0; i < DELEGATION_CHAIN_MAX; i++) {
        const struct delegation *d = delegation_find_task(w->delegations, id);

        if (!d || !d->is_stream || d->state != DELEGATION_OPEN)
            return;
        if (w->hub.on_delegated_chunk)
            w->hub.on_delegated_chunk(w->hub.ctx, d, agent, text);
        if (!task_chunk_of(w->tasks, d->parent_id, agent, text))
            return;
        id = d->parent_id;
    }
}

void walk_watch_end(struct walk *w, const struct task_change *c)
{
    const struct task *t = task_find(w->tasks, str_of(c->task_id.text));

    if (!t || t->turn != c->turn)
        return;
    if (t->by_agent.n)
        deliver_delegated(w->deliver, t->by_agent, t->agent, c->result.status);
    if (w->opts.traces)
        traces_task(w->opts.traces, t, &c->result, c->at_ms,
                    t->parent_id.n ? task_find(w->tasks, t->parent_id) : NULL);
}
