/* Tools that models and pi call: the server performs for them what other agents
 * request themselves. A delegation is a delegation request as from any
 * transport, part of the task the model works on. A search sees what the user
 * sees that the agent acts for; delegations see the same.
 *
 * A tool use lives from the call until its answer, or until the model's task is
 * over. Delegations that were accepted by then stay. */
#include <stdlib.h>

#include "base/mem.h"
#include "walk/delegation_request.h"
#include "walk/internal.h"

enum {
    ANSWER_BYTES = 16 * 1024 * 1024, /* the models take less */
    SCRATCH_BYTES = 16 * 1024 * 1024,
    ABOUT_BYTES = 600, /* of an agent's description */
    SKILL_BYTES = 300,
    SKILLS_SHOWN = 12, /* of one agent */
};

struct tool_use {
    struct walk *walk;
    struct list_node node;
    struct delegation_request *delegation_request; /* NULL: it is a search */
    uint64_t search_id;                            /* zero: none is under way */
    deliver_tool_done *done;
    void *ctx;
};

/* By the card and the settings. Whether a chain is too long is only known when
 * it delegates. */
bool walk_has_tools(void *ctx, const struct task *t, const struct agent *a)
{
    const struct walk *w = ctx;
    int64_t depth = a->delegation.max_depth;

    (void)t;
    if (depth < 0)
        depth = w->opts.delegation.max_depth;
    return depth > 0 && !(a->delegation.is_limited && !a->delegation.allow.n);
}

/* Life of a tool use. */

static void tool_use_free(struct tool_use *u)
{
    if (u->delegation_request)
        delegation_request_leave(u->delegation_request);
    if (u->search_id)
        registry_search_cancel(u->walk->opts.registry, u->search_id);
    list_remove(&u->node);
    free(u);
}

void walk_tool_cancel(void *ctx, void *handle)
{
    (void)ctx;
    tool_use_free(handle);
}

void walk_tools_free(struct walk *w)
{
    struct list_node *n;

    while ((n = list_first(&w->tool_uses)))
        tool_use_free(LIST_OF(n, struct tool_use, node));
    walk_delegation_requests_free(w);
}

/* The use is freed before the answer is passed on: its receiver may start the
 * next one. */
static void tool_answer(struct tool_use *u, struct str text)
{
    deliver_tool_done *done = u->done;
    void *ctx = u->ctx;

    tool_use_free(u);
    done(ctx, text);
}

static void tool_answer_buf(struct tool_use *u, struct buf *out)
{
    if (out->over) {
        buf_clear(out);
        wire_tool_error(out, STR("the answer is too large"));
    }
    tool_answer(u, buf_str(out));
    buf_fini(out);
}

static void tool_refuse(struct tool_use *u, enum err e, const struct why *why)
{
    struct buf out;

    buf_init(&out, 8192);
    wire_tool_error(&out,
                    str_of(why->text[0] ? why->text : err_row(e)->wording));
    tool_answer_buf(u, &out);
}

/* delegate_to_agent. */

static void on_tool_delegated(void *ctx)
{
    struct tool_use *u = ctx;
    struct buf out;
    struct json_out o;

    buf_init(&out, ANSWER_BYTES);
    o = json_out(&out);
    delegation_request_write(u->delegation_request, &o);
    tool_answer_buf(u, &out);
}

static enum err tool_delegate(struct tool_use *u, const struct delivery_id *d,
                              struct str agent, struct str arguments,
                              struct why *why)
{
    enum err e = delegation_request_new(
        &(struct delegation_request_opts){.walk = u->walk,
                                          .by = agent,
                                          .parent_id = str_of(d->task_id.text),
                                          .done = on_tool_delegated,
                                          .ctx = u},
        arguments, &u->delegation_request, why);

    if (!e)
        delegation_request_go(u->delegation_request);
    return e;
}

/* search_agents. */

static void json_put_cut(struct json_out *o, struct str key, struct str text,
                         size_t most)
{
    if (!text.n)
        return;
    json_key(o, key);
    json_put_str(o, str_head(text, most));
}

static void tool_put_price(struct json_out *o, const struct agent *a,
                           const struct skill *s)
{
    int64_t price = agent_price(a, s);

    if (price <= 0)
        return;
    json_member_int(o, "price_micros", price);
}

static void tool_put_skill(struct json_out *o, const struct agent *a,
                           const struct skill *s)
{
    json_open(o, '{');
    json_put_cut(o, STR("id"), s->id, AGENT_NAME_MAX);
    json_put_cut(o, STR("name"), s->name, SKILL_BYTES);
    json_put_cut(o, STR("description"), s->description, SKILL_BYTES);
    tool_put_price(o, a, s);
    json_close(o, '}');
}

/* Short, since every token is paid for: what is needed to choose an agent. */
static void tool_put_agent(struct json_out *o, struct registry *r,
                           const struct search_hit *hit)
{
    const struct agent *a = hit->agent;

    json_open(o, '{');
    json_put_cut(o, STR("agentId"), a->name, AGENT_NAME_MAX);
    json_put_cut(o, STR("description"), a->description, ABOUT_BYTES);
    json_member_text(o, "state", agent_state_name(registry_state(r, a)));
    tool_put_price(o, a, NULL);
    if (a->n_skills) {
        json_key(o, STR("skills"));
        json_open(o, '[');
        for (size_t i = 0; i < a->n_skills && i < SKILLS_SHOWN; i++)
            tool_put_skill(o, a, &a->skills[i]);
        json_close(o, ']');
    }
    json_close(o, '}');
}

static void on_tool_search(void *ctx, uint64_t id,
                           const struct search_result *r)
{
    struct tool_use *u = ctx;
    struct buf out;
    struct json_out o;

    (void)id;
    u->search_id = 0;
    if (r->err) {
        tool_refuse(u, r->err, &(struct why){""});
        return;
    }
    buf_init(&out, ANSWER_BYTES);
    o = json_out(&out);
    json_open(&o, '{');
    json_key(&o, STR("agents"));
    json_open(&o, '[');
    for (size_t i = 0; i < r->n; i++)
        tool_put_agent(&o, u->walk->opts.registry, &r->hits[i]);
    json_close(&o, ']');
    json_close(&o, '}');
    tool_answer_buf(u, &out);
}

/* The agent acts for its creator; a configured agent acts for the user it works
 * for. Even if that user is an admin, the user of the model must not see more
 * than their own agents. */
static struct eyes tool_eyes(struct walk *w, struct str agent,
                             const struct task *t, struct caller *caller)
{
    const struct agent *a = registry_agent(w->opts.registry, agent);
    struct str who = a && a->creator.n ? a->creator
                     : t               ? t->root_user
                                       : STR("");
    struct eyes eyes = {.now_ms = loop_wall_ms(w->opts.loop)};

    if (who.n && access_caller(w->opts.access, who, caller))
        eyes = eyes_of(caller, eyes.now_ms);
    eyes.sees_all = false;
    eyes.self = a ? a->name : agent;
    return eyes;
}

static enum err tool_search(struct tool_use *u, const struct delivery_id *d,
                            struct str agent, struct str arguments,
                            struct why *why)
{
    struct walk *w = u->walk;
    const struct task *t = task_find(w->tasks, str_of(d->task_id.text));
    struct search asked = {.mode = INDEX_HYBRID, .max_price = -1};
    struct wire_search s;
    struct caller caller;
    struct arena scratch;
    const struct json *v;
    uint64_t id = 0;
    enum err e;

    arena_init(&scratch, SCRATCH_BYTES);
    v = json_parse(&scratch, arguments, 0, NULL);
    e = v ? wire_search_read(v, &s, why) : ERR_NOMEM;
    if (!e) {
        asked.text = s.query;
        asked.limit = (size_t)s.limit;
        asked.eyes = tool_eyes(w, agent, t, &caller);
        e = registry_search(w->opts.registry, &asked, on_tool_search, u, &id,
                            why);
    }
    if (!e && id) /* otherwise it was answered at once */
        u->search_id = id;
    arena_fini(&scratch);
    return e;
}

void walk_on_tool(void *ctx, const struct delivery_id *d, struct str agent,
                  enum wire_tool tool, struct str arguments,
                  deliver_tool_done *done, void *done_ctx, void **handle)
{
    struct walk *w = ctx;
    struct tool_use *u = mem_new(sizeof(*u));
    struct why why = {""};
    enum err e;

    u->walk = w;
    u->done = done;
    u->ctx = done_ctx;
    list_append(&w->tool_uses, &u->node);
    *handle = u;
    e = tool == WIRE_DELEGATE ? tool_delegate(u, d, agent, arguments, &why)
                              : tool_search(u, d, agent, arguments, &why);
    if (e)
        tool_refuse(u, e, &why);
}
