/* What agents that are models use, or pi: the server calls for them what others
 * call themselves. A delegation is a commission as from any other road, part of
 * the task that the model works on; a search is one through the eyes of whom it
 * acts for, which are also those that a delegation is seen with.
 *
 * A use lives from the call until its answer, or until the model's task is
 * over. What was delegated by then is hire's matter. */
#include <stdlib.h>

#include "base/fault.h"
#include "commission.h"
#include "walk_internal.h"

enum {
    ANSWER_BYTES = 16 * 1024 * 1024, /* whoever asked takes less */
    SCRATCH_BYTES = 16 * 1024 * 1024,
    ABOUT_BYTES = 600, /* of what an agent says it does */
    SKILL_BYTES = 300,
    SKILLS_SHOWN = 12, /* of one agent */
};

struct tool_use {
    struct walk *walk;
    struct list_node node;
    struct commission *commission; /* NULL: it is a search */
    uint64_t search_id;            /* zero: none is under way */
    deliver_tool_done *done;
    void *ctx;
};

/* By its card and by the settings; whether one chain has become too long is
 * seen when it tries. */
bool walk_has_tools(void *ctx, const struct task *t, const struct agent *a)
{
    const struct walk *w = ctx;
    int64_t depth = a->delegation.max_depth;

    (void)t;
    if (depth < 0)
        depth = w->opts.hire.max_depth;
    return depth > 0 && !(a->delegation.is_limited && !a->delegation.allow.n);
}

/* Life. */

static struct tool_use *use_new(struct walk *w, deliver_tool_done *done,
                                void *ctx)
{
    struct tool_use *u = FAULT("walk.tool") ? NULL : calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->walk = w;
    u->done = done;
    u->ctx = ctx;
    list_append(&w->tool_uses, &u->node);
    return u;
}

static void use_free(struct tool_use *u)
{
    if (u->commission)
        commission_leave(u->commission);
    if (u->search_id)
        registry_search_cancel(u->walk->opts.registry, u->search_id);
    list_remove(&u->node);
    free(u);
}

void walk_tool_cancel(void *ctx, void *handle)
{
    (void)ctx;
    use_free(handle);
}

void walk_tools_free(struct walk *w)
{
    struct list_node *n;

    while ((n = list_first(&w->tool_uses)))
        use_free(LIST_OF(n, struct tool_use, node));
    commissions_free(&w->tool_commissions);
}

/* The use goes before the answer is heard: whoever hears it may go on to the
 * next. */
static void answer(struct tool_use *u, struct str text)
{
    deliver_tool_done *done = u->done;
    void *ctx = u->ctx;

    use_free(u);
    done(ctx, text);
}

static void answer_buf(struct tool_use *u, struct buf *out)
{
    if (out->over) {
        buf_clear(out);
        wire_tool_error(out, STR("the answer is too large"));
    }
    answer(u, buf_str(out));
    buf_fini(out);
}

static void refuse(struct tool_use *u, enum err e, const struct why *why)
{
    struct buf out;

    buf_init(&out, 8192);
    wire_tool_error(&out,
                    str_of(why->text[0] ? why->text : err_row(e)->wording));
    answer_buf(u, &out);
}

/* delegate_to_agent. */

static void on_commission(void *ctx)
{
    struct tool_use *u = ctx;
    struct buf out;
    struct json_out o;

    buf_init(&out, ANSWER_BYTES);
    o = json_out(&out);
    commission_write(u->commission, &o);
    answer_buf(u, &out);
}

static enum err delegate(struct tool_use *u, const struct delivery_id *d,
                         struct str agent, struct str arguments,
                         struct why *why)
{
    const struct walk_opts *o = &u->walk->opts;
    enum err e;

    u->commission = commission_new(
        &(struct commission_opts){.loop = o->loop,
                                  .log = o->log,
                                  .walk = u->walk,
                                  .store = o->store,
                                  .registry = o->registry,
                                  .list = &u->walk->tool_commissions,
                                  .by = agent,
                                  .parent_id = str_of(d->task_id.text),
                                  .done = on_commission,
                                  .ctx = u});
    if (!u->commission)
        return ERR_NOMEM;
    e = commission_read(u->commission, arguments, false, why);
    if (!e)
        commission_go(u->commission);
    return e;
}

/* search_agents. */

static void put_cut(struct json_out *o, struct str key, struct str text,
                    size_t most)
{
    if (!text.n)
        return;
    json_key(o, key);
    json_put_str(o, str_head(text, most));
}

static void put_price(struct json_out *o, const struct agent *a,
                      const struct skill *s)
{
    int64_t price = agent_price(a, s);

    if (price <= 0)
        return;
    json_member_int(o, "price_micros", price);
}

static void put_skill(struct json_out *o, const struct agent *a,
                      const struct skill *s)
{
    json_open(o, '{');
    put_cut(o, STR("id"), s->id, AGENT_NAME_MAX);
    put_cut(o, STR("name"), s->name, SKILL_BYTES);
    put_cut(o, STR("description"), s->description, SKILL_BYTES);
    put_price(o, a, s);
    json_close(o, '}');
}

/* Little, since every word of it is paid for: what it takes to choose one. */
static void put_hit(struct json_out *o, struct registry *r,
                    const struct search_hit *hit)
{
    const struct agent *a = hit->agent;

    json_open(o, '{');
    put_cut(o, STR("agentId"), a->name, AGENT_NAME_MAX);
    put_cut(o, STR("description"), a->description, ABOUT_BYTES);
    json_member_text(o, "state", agent_state_name(registry_state(r, a)));
    put_price(o, a, NULL);
    if (a->n_skills) {
        json_key(o, STR("skills"));
        json_open(o, '[');
        for (size_t i = 0; i < a->n_skills && i < SKILLS_SHOWN; i++)
            put_skill(o, a, &a->skills[i]);
        json_close(o, ']');
    }
    json_close(o, '}');
}

static void on_found(void *ctx, uint64_t id, const struct search_result *r)
{
    struct tool_use *u = ctx;
    struct buf out;
    struct json_out o;

    (void)id;
    u->search_id = 0;
    if (r->err) {
        refuse(u, r->err, &(struct why){""});
        return;
    }
    buf_init(&out, ANSWER_BYTES);
    o = json_out(&out);
    json_open(&o, '{');
    json_key(&o, STR("agents"));
    json_open(&o, '[');
    for (size_t i = 0; i < r->n; i++)
        put_hit(&o, u->walk->opts.registry, &r->hits[i]);
    json_close(&o, ']');
    json_close(&o, '}');
    answer_buf(u, &out);
}

/* Whom the agent acts for: its creator; of one that the configuration has, the
 * user it works for. That one of them is an admin is no reason to show whoever
 * asks the model more than their own. */
static struct eyes eyes_for(struct walk *w, struct str agent,
                            const struct task *t, struct caller *caller)
{
    const struct agent *a = walk_agent_of(w, agent);
    struct str who = a && a->creator.n ? a->creator
                     : t               ? t->root_user
                                       : STR("");
    struct eyes eyes = {.now_ms = loop_wall_ms(w->opts.loop)};

    if (who.n && walk_caller_of(w, who, caller))
        eyes = eyes_of(caller, eyes.now_ms);
    eyes.sees_all = false;
    eyes.self = a ? a->name : agent;
    return eyes;
}

static enum err search(struct tool_use *u, const struct delivery_id *d,
                       struct str agent, struct str arguments, struct why *why)
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
        asked.eyes = eyes_for(w, agent, t, &caller);
        e = registry_search(w->opts.registry, &asked, on_found, u, &id, why);
    }
    if (!e && id) /* else it has been answered */
        u->search_id = id;
    arena_fini(&scratch);
    return e;
}

bool walk_on_tool(void *ctx, const struct delivery_id *d, struct str agent,
                  enum wire_tool tool, struct str arguments,
                  deliver_tool_done *done, void *done_ctx, void **handle)
{
    struct tool_use *u = use_new(ctx, done, done_ctx);
    struct why why = {""};
    enum err e;

    if (!u)
        return false;
    *handle = u;
    e = tool == WIRE_DELEGATE ? delegate(u, d, agent, arguments, &why)
                              : search(u, d, agent, arguments, &why);
    if (e)
        refuse(u, e, &why);
    return true;
}
