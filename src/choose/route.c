/* Routing: choose_agent is called until it has an answer, or none.
 *
 *     route_message -> (its turn in the conversation) -> choose_agent
 *         needs the conversation   read the store; call again
 *         needs candidates         vector, registry, learning; call again
 *         needs a full vector      the transformer's, instead of the table's,
 *                                  and candidates by it; call again
 *         needs an intent          the classifier; call again
 *         chosen                   if this takes the conversation away from
 *                                  another agent: read the decision that had
 *                                  chosen that one; then done
 *
 * A missing input is noted in m->known, and choosing goes on without it: no
 * message is rejected because a model is unavailable.
 *
 * Messages of one conversation are routed one after the other
 * (conversation_order.h), each once the one before it is committed or rejected.
 * So they are accepted in the order of arrival, and all but the first find the
 * conversation's agent. If something else changes the conversation meanwhile,
 * the guard on its row fails, and the message is routed once more and keeps its
 * place in the order.
 *
 * The state of a routing message belongs to the message: a struct routing in
 * its arena. */
#include "choose/route.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"
#include "choose/routing.h"
#include "task/task.h"
#include "watch/watch.h"

enum { STEPS_MAX = 12 }; /* more: choose needs an input that it already has */

static void route_ask(struct routing *g);

/* Duration. */

const int64_t route_bucket_us[ROUTE_BUCKETS - 1] = {
    50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000};

static void stop_clock(struct routing *g)
{
    if (g->is_deciding)
        g->m->known.decide_us +=
            loop_mono_us(g->router->opts.loop) - g->since_us;
    g->is_deciding = false;
}

static void count_time(struct router_stats *s, int64_t us)
{
    int b = 0;

    while (b < ROUTE_BUCKETS - 1 && us > route_bucket_us[b])
        b++;
    s->decide_total[b]++;
    s->decide_sum_us += us;
}

/* The end. */

static void route_finish(struct routing *g, enum err e)
{
    struct router *r = g->router;
    struct msg *m = g->m;

    stop_clock(g);
    if ((!e || e == ERR_NO_ROUTE) && !g->is_look)
        count_time(&r->stats, m->known.decide_us);
    r->stats.no_route_total += e == ERR_NO_ROUTE && !g->is_look;
    if (e)
        inorder_leave(r->lines, &g->place);
    else
        m->choice.id = id_make(r->opts.ids, "dec", m->in.at_ms);
    m->known.routing = !e && g->place.line ? g : NULL;
    g->done(m, e, g->ctx);
}

/* The awaited input has arrived. */
void routing_go_on(struct routing *g, enum err e)
{
    if (g->waits_for)
        routing_wait_no_more(g);
    if (g->router->is_stopped)
        e = ERR_STOPPING;
    if (e)
        route_finish(g, e);
    else
        route_ask(g);
}

/* The result. */

/* After the first choice: fetch the conversation's agent and, if the message
 * takes the conversation away from it, the decision that chose it. True:
 * nothing (more) to fetch. */
static bool routing_is_complete(struct routing *g, enum err *e)
{
    struct msg *m = g->m;

    if (m->call.conversation_id.n && !m->known.has_conversation) {
        *e = routing_fetch_conversation(g);
        return false;
    }
    if (m->choice.is_switch && m->known.decision.text[0] && !g->has_earlier &&
        !g->is_look) {
        *e = routing_fetch_earlier(g);
        return false;
    }
    return true;
}

static void route_ask(struct routing *g)
{
    struct router *r = g->router;
    struct msg *m = g->m;
    enum err e = OK;

    g->is_deciding = true;
    g->since_us = loop_mono_us(r->opts.loop);
    for (int i = 0; i < STEPS_MAX; i++) {
        struct agents agents = registry_agents(r->opts.registry);
        struct eyes eyes = eyes_of(&m->in.caller, m->in.at_ms);
        struct choose_view v =
            routing_view(r, routing_settings(r, m), &agents, &eyes);

        e = choose_agent(&v, m);
        if (e || (!m->choice.needs && routing_is_complete(g, &e))) {
            route_finish(g, e);
            return;
        }
        if (!e && m->choice.needs)
            e = routing_fetch(g, &v);
        if (g->waits_for) {
            stop_clock(g);
            return;
        }
        if (e) {
            route_finish(g, e);
            return;
        }
    }
    log_error(r->opts.log, "route.no_end",
              LOG_I("needs", (int64_t)m->choice.needs));
    route_finish(g, ERR_INTERNAL);
}

static void routing_on_turn(struct inorder_place *p)
{
    routing_go_on(LIST_OF(p, struct routing, place), OK);
}

/* A sequence of numbers that outsiders cannot predict. */
static double next_chance(struct router *r)
{
    uint64_t n = r->chance++;

    return (double)(hash_bytes((struct str){(const char *)&n, sizeof(n)},
                               r->opts.seed) >>
                    11) *
           0x1p-53;
}

static struct routing *
routing_new(struct router *r, struct msg *m,
            void (*done)(struct msg *m, enum err e, void *ctx), void *ctx)
{
    struct routing *g = m->known.routing; /* not NULL: routed once more */

    if (g)
        *g = (struct routing){.place = g->place};
    else if (!FAULT("route.begin"))
        g = arena_alloc(&m->arena, sizeof(*g));
    memset(&m->known, 0, sizeof(m->known));
    memset(&m->choice, 0, sizeof(m->choice));
    if (!g)
        return NULL;
    g->router = r;
    g->m = m;
    g->place.turn = routing_on_turn;
    g->bytes = m->call.text.n + m->call.metadata.n + m->call.source.n;
    g->done = done;
    g->ctx = ctx;
    m->known.chance = next_chance(r);
    return g;
}

void route_message(struct router *r, struct msg *m,
                   void (*done)(struct msg *m, enum err e, void *ctx),
                   void *ctx)
{
    struct routing *g = routing_new(r, m, done, ctx);
    bool is_first = true;
    enum err e = r->is_stopped ? ERR_STOPPING : OK;

    if (!g) {
        done(m, ERR_NOMEM, ctx);
        return;
    }
    if (!e && m->call.conversation_id.n && !g->place.line)
        e = inorder_enter(r->lines, &g->place, caller_name(&m->in.caller),
                          m->call.conversation_id, &is_first);
    if (!e && !is_first)
        e = routing_wait(g, ITS_TURN);
    if (e)
        route_finish(g, e);
    else if (is_first)
        route_ask(g);
}

void route_look(struct router *r, struct msg *m,
                void (*done)(struct msg *m, enum err e, void *ctx), void *ctx)
{
    struct routing *g = routing_new(r, m, done, ctx);

    if (!g || r->is_stopped) {
        done(m, g ? ERR_STOPPING : ERR_NOMEM, ctx);
        return;
    }
    g->is_look = true;
    route_ask(g);
}

enum err route_turn(struct router *r, struct msg *m, const struct task *before)
{
    struct agents agents = registry_agents(r->opts.registry);
    struct eyes eyes = eyes_of(&m->in.caller, m->in.at_ms);
    const struct agent *a = agent_find(&agents, before->agent);
    int64_t since_us = loop_mono_us(r->opts.loop);
    struct choose_view v;
    enum err e;

    memset(&m->known, 0, sizeof(m->known));
    memset(&m->choice, 0, sizeof(m->choice));
    if (a && !agent_is_meant(a, before->created_ms, before->requester))
        return why_err(&m->why, ERR_AGENT_NOT_FOUND,
                       "the task's agent is gone, and its name is another "
                       "agent's now; send a message without task_id");
    if (!arena_keep(&m->arena, before->agent, &m->known.stuck_to))
        return ERR_NOMEM;
    m->known.has_conversation = true;
    v = routing_view(r, &r->opts.settings.choose, &agents, &eyes);
    e = choose_turn(&v, m);
    m->known.decide_us = loop_mono_us(r->opts.loop) - since_us;
    if (e)
        return e;
    count_time(&r->stats, m->known.decide_us);
    m->choice.id = id_make(r->opts.ids, "dec", m->in.at_ms);
    return OK;
}

/* The record. */

static void append_switch(struct msg *m)
{
    struct buf data;
    struct json_out o;

    buf_init(&data, 4096);
    o = json_out(&data);
    json_open(&o, '{');
    json_member_text(&o, "from", m->known.stuck_to);
    json_member_text(&o, "to", m->choice.agent);
    json_member_text(&o, "layer", layer_name(m->choice.layer));
    json_member_text(&o, "decision_id", str_of(m->choice.id.text));
    if (m->known.earlier)
        json_member_text(&o, "overrides", str_of(m->known.earlier->id.text));
    json_close(&o, '}');
    feed_append_data(&m->tx, &data,
                     &(struct feed_entry){
                         .at_ms = m->in.at_ms,
                         .type = STR("conversation.switched"),
                         .task_id = str_of(m->task.id.text),
                         .conversation_id = m->task.conversation_id,
                         .agent = m->choice.agent,
                         .requester = caller_name(&m->in.caller),
                         .root_user = caller_name(&m->in.caller),
                     });
}

void route_decision(const struct router *r, const struct msg *m,
                    struct decision *out)
{
    struct agents agents = registry_agents(r->opts.registry);
    struct eyes eyes = eyes_of(&m->in.caller, m->in.at_ms);
    struct choose_view v =
        routing_view(r, routing_settings(r, m), &agents, &eyes);

    choose_decision(&v, m, out);
    out->turn = m->task.turn;
    out->config_version = str_of(r->version);
}

/* A switch says that the decision before was wrong. The same correction is not
 * recorded twice. */
static void override_earlier(struct router *r, struct msg *m)
{
    const struct decision *d = m->known.earlier;

    if (!d || !r->opts.learning ||
        str_eq_nocase(d->overridden_to, m->choice.agent) ||
        str_eq_nocase(d->agent, m->choice.agent))
        return;
    learning_append(r->opts.learning, &m->tx,
                    &(struct learning_word){.decision = d,
                                            .right = m->choice.agent,
                                            .verdict = VERDICT_NEGATIVE,
                                            .by = caller_name(&m->in.caller),
                                            .at_ms = m->in.at_ms,
                                            .is_switch = true});
}

void route_record(void *router, struct msg *m)
{
    struct router *r = router;
    struct decision d;

    route_decision(r, m, &d);
    choose_record(&m->tx, &d);
    if (m->gate.gate_result.answer == GATE_DROP) {
        struct task dropped = {.decision_id = d.id};
        struct task_result result = {.error_code = STR("dropped")};

        learning_record_end(r->opts.learning,
                            &(struct turn_end){.task = &dropped,
                                               .result = &result,
                                               .at_ms = m->in.at_ms},
                            &m->tx);
        return; /* the conversation does not change */
    }
    if (!m->choice.is_switch)
        return;
    override_earlier(r, m);
    append_switch(m);
}

void route_leave(void *router, struct msg *m)
{
    struct router *r = router;

    if (m->known.routing)
        inorder_leave(r->lines, &m->known.routing->place);
    m->known.routing = NULL;
}

void route_settle(struct router *r, struct msg *m)
{
    char scope[PRINCIPAL_NAME_MAX + 8];

    if (m->tx.result == TX_COMMITTED) {
        r->stats.by_layer[m->choice.layer]++;
        r->stats.by_tier[m->known.tier]++;
        if (m->choice.n_candidates)
            choose_share_count(r->strangers,
                               learning_scope(&m->in.caller, scope), m);
        r->stats.switches_total += m->choice.is_switch;
    }
    route_leave(r, m);
}

bool route_is_overtaken(const struct msg *m)
{
    const struct tx_op *op = m->tx.failed_op;

    return m->tx.result == TX_GUARD_FAILED &&
           (op->table == &conversation_table || op->table == &decision_table);
}

/* Start and stop. */

static struct intent_settings classifier_of(const struct route_settings *s)
{
    return (struct intent_settings){.kind = s->intent.kind,
                                    .endpoint = s->intent.endpoint,
                                    .key = s->intent.key,
                                    .timeout_ms = s->intent.timeout_ms};
}

struct router *router_new(const struct router_opts *opts)
{
    struct router *r = mem_new(sizeof(*r));
    struct why why;
    bool has_speller;

    r->opts = *opts;
    r->by_words = choose_by_words(&opts->settings.choose);
    list_init(&r->waiting);
    shares_init(&r->shares, sizeof(struct routing_share), ROUTING_WAITING_MAX,
                opts->seed);
    refusals_init(&r->refusals, opts->seed);
    r->strangers = choose_shares_new(opts->seed);
    if (opts->embed)
        r->stamp = embed_stamp(opts->embed);
    has_speller = !opts->embed || speller_new(&r->speller, &why) == OK;
    r->lines = inorder_new(opts->loop, ROUTING_WAITING_MAX, opts->seed);
    r->intent = intent_new(&(struct intent_opts){
        .loop = opts->loop,
        .log = opts->log,
        .fetch = opts->fetch,
        .settings = classifier_of(&opts->settings),
    });
    choose_version(&opts->settings.choose, r->version);
    if (r->intent && has_speller)
        return r;
    router_free(r);
    return NULL;
}

void router_free(struct router *r)
{
    if (!r)
        return;
    inorder_free(r->lines);
    intent_free(r->intent);
    speller_free(r->speller);
    shares_fini(&r->shares);
    refusals_fini(&r->refusals);
    choose_shares_free(r->strangers);
    free(r->room);
    free(r->hints);
    free(r);
}

/* Queries of the store end by themselves. */
void router_stop(struct router *r)
{
    struct list_node *n = list_first(&r->waiting), *next;

    r->is_stopped = true;
    for (; n; n = next) {
        struct routing *g = LIST_OF(n, struct routing, node);

        next = list_next(&r->waiting, n);
        if (g->waits_for == A_VECTOR)
            embed_cancel(r->opts.embed, g->id);
        if (g->waits_for == A_VECTOR || g->waits_for == ITS_TURN)
            routing_go_on(g, ERR_STOPPING);
    }
    intent_stop(r->intent);
}

void router_set(struct router *r, const struct route_settings *s)
{
    struct intent_settings intent = classifier_of(s);

    r->opts.settings = *s;
    r->by_words = choose_by_words(&s->choose);
    choose_version(&s->choose, r->version);
    if (intent_set(r->intent, &intent) != OK)
        log_warn(r->opts.log, "route.classifier_not_changed",
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
}

const struct choose_settings *router_settings(const struct router *r)
{
    return &r->opts.settings.choose;
}

const char *router_version(const struct router *r)
{
    return r->version;
}

struct router_stats router_stats(const struct router *r)
{
    struct router_stats s = r->stats;

    s.waiting = (int64_t)r->n_waiting;
    return s;
}
