/* One agent has another do something: the wish becomes a message, in the name
 * of who it is for, and takes the same walk as everybody's. */
#include "walk_internal.h"

/* Who an agent is to the rest of the house: its creator; or, where the
 * configuration has it, the user it works for. */
static enum err caller_for(struct walk *w, const struct walk_order *o,
                           const struct task *parent, struct caller *out,
                           struct why *why)
{
    const struct agent *a = walk_agent_of(w, o->by);
    struct str name = {NULL, 0};

    if (o->caller) {
        *out = *o->caller;
        return OK;
    }
    if (a && a->creator.n)
        name = a->creator;
    else if (parent)
        name = parent->root_user;
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
    char *copy = s.n ? arena_strdup(&m->arena, s) : NULL;

    *ok = *ok && (!s.n || copy);
    return (struct str){copy, copy ? s.n : 0};
}

/* "AGENT@USER/SESSION": not that of anybody else whom the agent works for, nor
 * one of the user's own. Before it is routed, since the agent of a conversation
 * is looked for then. */
static struct str own_session(struct walk *w, struct msg *m,
                              const struct walk_order *o,
                              const struct task *parent, bool *ok)
{
    const struct agent *a = walk_agent_of(w, o->by);
    struct str user = parent              ? parent->root_user
                      : a && a->creator.n ? a->creator
                                          : caller_name(&m->in.caller);
    struct str made = {NULL, 0};
    struct buf b;

    if (!o->session_id.n)
        return made;
    buf_init(&b,
             AGENT_NAME_MAX + PRINCIPAL_NAME_MAX + MSG_CONVERSATION_MAX + 2);
    buf_addf(&b, "%.*s@%.*s/", STR_ARG(o->by), STR_ARG(user));
    buf_add_str(&b, o->session_id);
    *ok = *ok && !b.over;
    made = keep(m, buf_str(&b), ok);
    buf_fini(&b);
    return made;
}

static bool fill(struct walk *w, struct msg *m, const struct walk_order *o,
                 const struct task *parent)
{
    bool ok = true;

    m->call.text = keep(m, o->message, &ok);
    m->call.executor = keep(m, o->agent, &ok);
    m->call.skill = keep(m, o->skill, &ok);
    m->call.task_id = keep(m, o->task_id, &ok);
    m->call.conversation_id = own_session(w, m, o, parent, &ok);
    m->call.metadata = keep(m, o->metadata, &ok);
    m->call.priority = parent ? parent->priority : PRIORITY_NORMAL;
    m->call.timeout_ms = o->timeout_ms;
    m->hire.agent = keep(m, o->by, &ok);
    m->hire.wish = o->wish;
    m->hire.wish.original_id = keep(m, o->wish.original_id, &ok);
    if (parent)
        m->hire.parent_id = keep(m, str_of(parent->id.text), &ok);
    return ok;
}

enum err walk_delegate(struct walk *w, const struct walk_order *o,
                       void (*done)(struct msg *m, void *ctx), void *ctx,
                       struct why *why)
{
    const struct task *parent;
    struct caller caller;
    struct msg *m;
    enum err e =
        hire_parent(w->hires, o->by, o->parent_id, o->session_id, &parent, why);

    if (!e)
        e = caller_for(w, o, parent, &caller, why);
    if (e)
        return e;
    m = msg_new(&caller, loop_wall_ms(w->opts.loop));
    if (!m || !fill(w, m, o, parent)) {
        msg_free(m);
        return ERR_NOMEM;
    }
    walk_message(w, m, done, ctx);
    return OK;
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
