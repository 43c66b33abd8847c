/* One agent has another do something: the wish becomes a message, in the name
 * of who it is for, and takes the same walk as everybody's. */
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/fault.h"
#include "walk_internal.h"

enum { MEANING_MAX = MSG_TEXT_MAX + MSG_METADATA_MAX + 4096 };

static enum err check_payer(struct walk *w, const struct task *parent,
                            struct why *why)
{
    struct caller unused;

    if (!parent || !parent->root_user.n ||
        walk_caller_of(w, parent->root_user, &unused) ||
        PLANTED("walk.gone_pays"))
        return OK;
    return why_err(why, ERR_NOT_ALLOWED,
                   "%.*s, on whose behalf this would be, is not there any more",
                   STR_ARG(parent->root_user));
}

/* Who an agent is to the rest of the house: its creator; or, where the
 * configuration has it, the user it works for. */
static enum err caller_for(struct walk *w, const struct walk_order *o,
                           const struct task *parent, struct caller *out,
                           struct why *why)
{
    const struct agent *a = walk_agent_of(w, o->by);
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
        return why_err(why, ERR_BAD_REQUEST,
                       "%.*s works on nothing now, so there is nobody to pay: "
                       "say parent_task_id",
                       STR_ARG(o->by));
    if (!walk_caller_of(w, name, out))
        return why_err(why, ERR_NOT_ALLOWED, "%.*s is not there any more",
                       STR_ARG(name));
    return OK;
}

static struct str keep(struct msg *m, struct str s, bool *ok)
{
    struct str copy;

    *ok = arena_keep(&m->arena, s, &copy) && *ok;
    return copy;
}

/* "AGENT@USER/SESSION": not that of anybody else whom the agent works for, nor
 * one of the user's own. Before it is routed, since the agent of a conversation
 * is looked for then. */
static struct str own_session(struct walk *w, struct msg *m, struct str by,
                              struct str session, const struct task *parent,
                              bool *ok)
{
    const struct agent *a = walk_agent_of(w, by);
    struct str user = parent               ? parent->root_user
                      : m->hire.for_user.n ? m->hire.for_user
                      : a && a->creator.n  ? a->creator
                                           : caller_name(&m->in.caller);
    struct str made = {NULL, 0};
    struct buf b;

    buf_init(&b,
             AGENT_NAME_MAX + PRINCIPAL_NAME_MAX + MSG_CONVERSATION_MAX + 2);
    buf_addf(&b, "%.*s@%.*s/", STR_ARG(by), STR_ARG(user));
    if (str_starts(session, buf_str(&b))) /* as an answer told it */
        buf_clear(&b);
    buf_add_str(&b, session);
    *ok = *ok && !b.over;
    made = keep(m, buf_str(&b), ok);
    buf_fini(&b);
    return made;
}

/* What own_session took for a new name may be that of a conversation for
 * another user, as an answer told it. */
static enum err check_name(struct str by, struct str said, struct str made,
                           struct why *why)
{
    bool is_told = said.n > by.n && said.p[by.n] == '@' &&
                   str_starts(said, by) && str_find(said, '/', 0) < said.n;

    if (!is_told || said.n == made.n)
        return OK;
    return why_err(why, ERR_BAD_REQUEST,
                   "\"%.*s\" is a conversation for another user than this "
                   "would be for",
                   STR_ARG(said));
}

/* An admin's agent that works on nothing may say whom it speaks for. */
static enum err take_user(struct walk *w, struct msg *m,
                          const struct caller *caller,
                          const struct task *parent)
{
    return parent || !caller || !caller_is_admin(caller)
               ? OK
               : walk_for_user(w, m, &m->hire.for_user);
}

/* The agent that asks, what it asks for, and what it calls the work that this
 * is part of. */
static bool fill_hire(struct msg *m, struct str by,
                      const struct delegation_wish *wish,
                      const struct hire_parents *parents, struct str session)
{
    bool ok = true;

    if (parents->n && !parents->is_of_session) {
        m->hire.session = keep(m, session, &ok);
        m->hire.payer = keep(m, parents->list[0]->root_user, &ok);
    }
    m->hire.agent = keep(m, by, &ok);
    m->hire.wish = *wish;
    m->hire.wish.original_id = keep(m, wish->original_id, &ok);
    if (parents->n == 1)
        m->hire.parent_id = keep(m, str_of(parents->list[0]->id.text), &ok);
    else if (parents->n)
        ok = walk_keep_parents(m, parents) && ok;
    return ok;
}

static enum err fill(struct walk *w, struct msg *m, const struct walk_order *o,
                     const struct hire_parents *parents)
{
    const struct task *parent = parents->n ? parents->list[0] : NULL;
    bool ok = true;

    m->call.text = keep(m, o->message, &ok);
    m->call.executor = keep(m, o->agent, &ok);
    m->call.skill = keep(m, o->skill, &ok);
    m->call.task_id = keep(m, o->task_id, &ok);
    m->call.idempotency_key = keep(m, o->idempotency_key, &ok);
    if (o->session_id.n && !o->task_id.n) /* a further turn has its own */
        m->call.conversation_id =
            own_session(w, m, o->by, o->session_id, parent, &ok);
    m->call.source = keep(m, STR("{}"), &ok);
    m->call.priority = parent ? parent->priority : PRIORITY_NORMAL;
    m->call.timeout_ms = o->timeout_ms;
    if (!fill_hire(m, o->by, &o->wish, parents, o->task_session) || !ok)
        return ERR_NOMEM;
    return check_name(o->by, o->session_id, m->call.conversation_id, &m->why);
}

/* Each with its length, in one order, so that no two orders look alike. */
static void mean(struct buf *out, struct str s)
{
    buf_add_i64(out, (int64_t)s.n);
    buf_add_char(out, ':');
    buf_add_str(out, s);
}

/* A repeat of the same request is known by it. */
enum err walk_order_hash(const struct walk_order *o,
                         uint8_t out[MSG_BODY_HASH_BYTES])
{
    struct buf b;
    enum err e;

    buf_init(&b, MEANING_MAX);
    mean(&b, o->by);
    mean(&b, o->agent);
    mean(&b, o->skill);
    mean(&b, o->session_id);
    mean(&b, o->task_id);
    mean(&b, o->parent_id);
    mean(&b, o->message);
    mean(&b, o->metadata);
    buf_addf(&b, "%lld,%d,%d,%d,%d", (long long)o->timeout_ms,
             (int)o->wish.mode, o->wish.is_stream, o->wish.ends_with_line,
             o->wish.goes_on);
    if (o->has_max_cost)
        buf_addf(&b, ",c%lld", (long long)o->max_cost_micros);
    e = b.over ? ERR_NOMEM : digest(buf_str(&b), out);
    buf_fini(&b);
    return e;
}

/* Of an agent that names its skills it is one of these. */
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

/* Those who have several in common have one payer too. */
static enum err find_work(struct walk *w, struct str by, struct str given,
                          struct str session, struct hire_parents *out,
                          struct why *why)
{
    enum err e = hire_parents(w->hires, by, given, session, out, why);

    return e || !out->n ? e : check_payer(w, out->list[0], why);
}

/* A session that is no conversation to go on with says nothing but whose work
 * it is. */
static enum err check_session(const struct walk_order *o,
                              const struct hire_parents *parents,
                              struct why *why)
{
    if (!parents->n || parents->is_of_session || o->session_id.n ||
        PLANTED("walk.any_session"))
        return OK;
    return why_err(why, ERR_BAD_REQUEST,
                   "session_id must be that of a task that %.*s is working on "
                   "now: the one of \"%.*s\" may be over",
                   STR_ARG(o->by), STR_ARG(o->task_session));
}

/* A repeat is answered as it was then, whatever became of its parent and of who
 * pays: neither is asked again. */
static enum err find_caller(struct walk *w, const struct walk_order *o,
                            const uint8_t hash[MSG_BODY_HASH_BYTES],
                            struct hire_parents *parents, struct caller *caller,
                            struct why *why)
{
    enum err e;

    parents->n = 0;
    parents->is_of_session = true;
    *caller = o->caller ? *o->caller : (struct caller){0};
    if (hire_is_known(w->hires, o->by, o->wish.original_id, hash))
        return OK;
    e = find_work(w, o->by, o->parent_id, o->task_session, parents, why);
    if (!e)
        e = check_session(o, parents, why);
    return e ? e
             : caller_for(w, o, parents->n ? parents->list[0] : NULL, caller,
                          why);
}

enum err walk_delegate(struct walk *w, const struct walk_order *o,
                       void (*done)(struct msg *m, void *ctx), void *ctx,
                       struct why *why)
{
    uint8_t hash[MSG_BODY_HASH_BYTES];
    struct hire_parents parents;
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
            keep(m, o->metadata.n ? o->metadata : STR("{}"), &ok);
    e = m && ok ? take_user(w, m, o->caller, parents.n ? parents.list[0] : NULL)
                : ERR_NOMEM;
    if (!e)
        e = fill(w, m, o, &parents);
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

/* Its conversations are its own with that user, as a session is; one that it
 * does not name gets a name, so that it can go on with it. */
static enum err own_conversation(struct walk *w, struct msg *m, struct str by,
                                 const struct task *parent)
{
    struct id made = id_make(w->opts.ids, "conv", m->in.at_ms);
    struct str said = m->call.conversation_id;
    bool ok = true;

    if (m->call.task_id.n)
        return OK;
    m->call.conversation_id =
        own_session(w, m, by, said.n ? said : str_of(made.text), parent, &ok);
    return ok ? check_name(by, said, m->call.conversation_id, &m->why)
              : ERR_NOMEM;
}

/* What a key stands for is said for one task; where it is not said which, for
 * whichever it is. */
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
    e = b.over ? ERR_NOMEM : digest(buf_str(&b), hash);
    buf_fini(&b);
    return e;
}

static enum err make_agents(struct walk *w, struct msg *m, struct str by,
                            struct str parent_id)
{
    static const struct delegation_wish wish = {.mode = DELEGATION_MESSAGE};
    struct hire_parents parents;
    const struct task *parent;
    struct str session = m->call.envelope ? STR("") : m->call.conversation_id;
    enum err e = hash_parent(m, parent_id);

    if (!e)
        e = find_work(w, by, parent_id, session, &parents, &m->why);
    if (e)
        return e;
    parent = parents.n ? parents.list[0] : NULL;
    e = take_user(w, m, &m->in.caller, parent);
    if (!e)
        e = own_conversation(w, m, by, parent);
    if (!e && !fill_hire(m, by, &wish, &parents, session))
        e = ERR_NOMEM;
    return e;
}

void walk_agent_message(struct walk *w, struct msg *m, struct str by,
                        struct str parent_id,
                        void (*done)(struct msg *m, void *ctx), void *ctx)
{
    enum err e = make_agents(w, m, by, parent_id);

    if (e)
        walk_refused(w, m, e, done, ctx);
    else
        walk_message(w, m, done, ctx);
}

/* One step for each that t hangs on, as far as each was asked to be heard
 * above. The chain has an end by hire_ask; the count is for a mistake. */
void walk_chunk_up(struct walk *w, const struct task *t, struct str text)
{
    struct str agent = t->agent, id = str_of(t->id.text);

    for (int i = 0; i < DELEGATION_CHAIN_MAX; i++) {
        const struct delegation *d = hire_find_task(w->hires, id);

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

/* Told by hire. */

/* Whether who has t may go on with it when its line is there again. */
static bool comes_back(void *ctx, const struct task *t)
{
    const struct agent *a = walk_agent_for(ctx, t);
    struct agent_url url;

    return !a || agent_url_read(a->url, &url, NULL) != OK ||
           url.road == ROAD_HUB;
}

void walk_give_up_attempt(struct walk *w, struct str task_id)
{
    const struct task *t = task_find(w->tasks, task_id);

    if (t && !task_is_over(t->status) && !comes_back(w, t))
        hire_attempt_over(w->hires, task_id);
}

static enum err end_task(void *ctx, struct str task_id,
                         const struct task_result *r)
{
    return walk_end(ctx, task_id, r, NULL, NULL);
}

static void on_delegated(void *ctx, const struct delegation *d,
                         const struct task *t)
{
    struct walk *w = ctx;

    if (d->mode == DELEGATION_MESSAGE) { /* who listened has it */
        if (hire_had(w->hires, d->agent, str_of(d->key.text), NULL, NULL))
            hire_not_told(w->hires, str_of(d->key.text));
        return;
    }
    if (walk_note(w, d, t))
        return;
    if (w->hub.on_delegated)
        w->hub.on_delegated(w->hub.ctx, d, t);
}

static void on_turn(void *ctx, struct str task_id)
{
    struct walk *w = ctx;

    broker_turn_came(w->broker, task_id);
    task_offer(w->tasks, task_id);
}

static void on_wait(void *ctx, const struct task *t)
{
    struct walk *w = ctx;

    broker_put_off(w->broker, t);
}

const struct hire_opts walk_calls_of_hire = {
    .agent = walk_agent_of,
    .end_task = end_task,
    .on_ready = on_delegated,
    .on_turn = on_turn,
    .on_wait = on_wait,
    .hears_by_note = walk_hears_by_note,
    .on_noted = walk_on_noted,
    .on_known = walk_on_original_known,
    .comes_back = comes_back,
};
