/* Asking until there is an answer, or none.
 *
 *     route_message -> (its turn in the conversation) -> ask -> choose_agent
 *         needs the conversation   the store, then ask again
 *         needs candidates         the vector, registry, what is learnt; again
 *         needs an intent          the classifier; again
 *         chosen                   and where it takes the conversation away
 *                                  from another agent: the decision that had
 *                                  put that there; then done
 *
 * What cannot be had is said in m->known, and choosing goes on without it: a
 * message is not refused because a model is away.
 *
 * Messages of one conversation are routed one after the other (inorder.h), each
 * once the one before it is committed or refused, so that they are accepted in
 * the order they came in, and all but the first find the agent. Who else
 * changes the conversation meanwhile, the guard on its row tells, and the
 * message is routed once more.
 *
 * What waits is the message's own: a struct routing in its arena. */
#include "route.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/vec.h"
#include "inorder.h"
#include "intent.h"
#include "task/task.h"
#include "watch/watch.h"

enum {
    TEXT_MAX = 16 * 1024, /* bytes of a message that are compared */
    WAITING_MAX = 16 * 1024,
    WAITING_BYTES_MAX = 64 * 1024 * 1024,
    STEPS_MAX = 8, /* more: choose asks for what it has */
};

enum waits_for { NOTHING, ITS_TURN, THE_STORE, A_VECTOR, AN_INTENT };

struct routing {
    struct inorder_place place;
    struct list_node node; /* in router.waiting */
    struct router *router;
    struct msg *m;
    enum waits_for waits_for;
    struct query query;
    uint64_t id;     /* of embed or intent */
    bool has_vector; /* or it is known that there is none */
    bool has_earlier;
    bool is_look;   /* nothing will come of it */
    bool is_asking; /* intent_ask has not returned yet */
    enum err intent_err;
    size_t bytes;
    void (*done)(struct msg *m, enum err e, void *ctx);
    void *ctx;
};

struct router {
    struct router_opts opts;
    struct embed_stamp stamp;
    struct intent *intent;
    struct inorder *lines;
    char version[17]; /* of the settings */
    struct candidate *room;
    size_t room_n;
    struct list waiting; /* struct routing */
    size_t n_waiting, waiting_bytes;
    uint64_t chance;
    bool is_stopped;
    struct router_stats stats;
};

static void ask(struct routing *g);

/* Waiting. */

static enum err wait_for(struct routing *g, enum waits_for what)
{
    struct router *r = g->router;

    if (r->n_waiting >= WAITING_MAX ||
        g->bytes > WAITING_BYTES_MAX - r->waiting_bytes)
        return ERR_OVERLOADED;
    g->waits_for = what;
    list_append(&r->waiting, &g->node);
    r->n_waiting++;
    r->waiting_bytes += g->bytes;
    return OK;
}

static void wait_no_more(struct routing *g)
{
    struct router *r = g->router;

    assert(g->waits_for);
    g->waits_for = NOTHING;
    list_remove(&g->node);
    r->n_waiting--;
    r->waiting_bytes -= g->bytes;
}

/* The end. */

static void finish(struct routing *g, enum err e)
{
    struct router *r = g->router;
    struct msg *m = g->m;

    r->stats.no_route_total += e == ERR_NO_ROUTE && !g->is_look;
    if (e)
        inorder_leave(r->lines, &g->place);
    else
        m->choice.id = id_make(r->opts.ids, "dec", m->in.at_ms);
    m->known.routing = !e && g->place.line ? g : NULL;
    g->done(m, e, g->ctx);
}

/* What was waited for has come. */
static void go_on(struct routing *g, enum err e)
{
    if (g->waits_for)
        wait_no_more(g);
    if (g->router->is_stopped)
        e = ERR_STOPPING;
    if (e)
        finish(g, e);
    else
        ask(g);
}

static bool keep(struct msg *m, struct str from, struct str *to)
{
    char *p = arena_strdup(&m->arena, from);

    *to = (struct str){p, p ? from.n : 0};
    return p != NULL;
}

/* The conversation. */

static void on_conversation(struct query *q, void *ctx)
{
    struct routing *g = ctx;
    struct msg *m = g->m;
    enum err e = q->err;

    if (!e && q->rows) {
        m->known.decision = id_from(row_str(q->rows, CONVERSATION_DECISION_ID));
        if (!keep(m, row_str(q->rows, CONVERSATION_AGENT), &m->known.stuck_to))
            e = ERR_NOMEM;
    }
    m->known.has_conversation = true;
    query_fini(q);
    go_on(g, e);
}

static enum err fetch_conversation(struct routing *g)
{
    struct msg *m = g->m;
    enum err e = wait_for(g, THE_STORE);

    if (e)
        return e;
    query_init(&g->query, &conversation_table, 1);
    query_if(&g->query, CONVERSATION_OWNER, IS,
             value_text(caller_name(&m->in.caller)));
    query_if(&g->query, CONVERSATION_ID, IS,
             value_text(m->call.conversation_id));
    store_read(g->router->opts.store, &g->query, on_conversation, g);
    return OK;
}

/* The decision before. */

/* What is needed of it to learn from it, in the message's own memory. */
static enum err keep_earlier(struct msg *m, const struct row *row)
{
    struct decision *d = arena_alloc(&m->arena, sizeof(*d));
    struct str *strings[] = {
        &d->conversation_id, &d->requester, &d->org,           &d->text,
        &d->agent,           &d->vector,    &d->model,         &d->model_hash,
        &d->overridden_to,   &d->skill,     &d->overridden_by, &d->error_code};
    enum err e = d ? decision_from_row(&m->arena, row, d) : ERR_NOMEM;

    for (size_t i = 0; !e && i < sizeof(strings) / sizeof(*strings); i++)
        if (!keep(m, *strings[i], strings[i]))
            e = ERR_NOMEM;
    if (e)
        return e == ERR_SYNTAX ? OK : e; /* a later version's: left alone */
    d->candidates = NULL;
    d->n_candidates = 0;
    d->intent = (struct intent_answer){0};
    d->executor = d->source = d->stuck_to = d->reason = STR("");
    d->config_version = d->rules.default_agent = STR("");
    m->known.earlier = d;
    return OK;
}

static void on_earlier(struct query *q, void *ctx)
{
    struct routing *g = ctx;
    enum err e = q->err;

    if (!e && q->rows)
        e = keep_earlier(g->m, q->rows);
    g->has_earlier = true;
    query_fini(q);
    go_on(g, e);
}

static enum err fetch_earlier(struct routing *g)
{
    enum err e = wait_for(g, THE_STORE);

    if (e)
        return e;
    query_init(&g->query, &decision_table, 1);
    query_if(&g->query, DECISION_ID, IS,
             value_text(str_of(g->m->known.decision.text)));
    store_read(g->router->opts.store, &g->query, on_earlier, g);
    return OK;
}

/* The vector. */

static void no_vector(struct routing *g, const char *because)
{
    g->has_vector = true;
    why_err(&g->m->known.no_vector, OK, "%s", because);
}

static enum err keep_vector(struct routing *g, const float *v, uint32_t dims)
{
    struct msg *m = g->m;
    size_t n = vec_packed_bytes(dims);
    uint8_t *packed = arena_alloc(&m->arena, n);

    if (!packed)
        return ERR_NOMEM;
    if (!dims || !vec_pack(v, dims, packed)) {
        no_vector(g, "there is nothing in this text that the model knows");
        return OK;
    }
    g->has_vector = true;
    m->known.vector = (struct str){(const char *)packed, n};
    m->known.model = str_of(g->router->stamp.name);
    m->known.model_hash = str_of(g->router->stamp.hash);
    return OK;
}

static void on_vector(void *ctx, uint64_t id, enum err e,
                      const struct embed_result *result, const struct why *why)
{
    struct routing *g = ctx;

    (void)id;
    (void)why; /* the provider's own words are the operator's */
    if (!e)
        e = keep_vector(g, result->vectors, result->stamp.dims);
    else if (e != ERR_STOPPING)
        no_vector(g, err_row(e)->wording), e = OK;
    go_on(g, e);
}

static enum err fetch_vector(struct routing *g)
{
    struct embed *embed = g->router->opts.embed;
    struct str text = str_head(g->m->call.text, TEXT_MAX);
    float v[EMBED_DIMS_MAX];
    enum err e;

    if (!embed) {
        no_vector(g, "there is no model that could make one");
        return OK;
    }
    if (embed_now(embed, text, EMBED_QUERY, v))
        return keep_vector(g, v, embed_stamp(embed).dims);
    e = wait_for(g, A_VECTOR);
    if (e)
        return e;
    e = embed_start(embed, &text, 1, EMBED_QUERY, on_vector, g, &g->id, NULL);
    if (e) {
        wait_no_more(g);
        no_vector(g, err_row(e)->wording);
    }
    return OK;
}

/* Candidates. */

static enum err make_room(struct router *r, size_t n)
{
    struct candidate *more;

    if (n <= r->room_n)
        return OK;
    n += n / 2;
    more = FAULT("route.room") ? NULL : realloc(r->room, n * sizeof(*more));
    if (!more)
        return ERR_NOMEM;
    r->room = more;
    r->room_n = n;
    return OK;
}

/* What is learnt; nothing, where nothing is. */
static enum err begin_to_learn(struct routing *g, struct learn **out)
{
    struct router *r = g->router;
    struct msg *m = g->m;
    char scope[PRINCIPAL_NAME_MAX + 8];
    enum err e;

    *out = r->opts.lessons ? lessons_learn(r->opts.lessons) : NULL;
    if (!*out)
        return OK;
    e = learn_begin(*out, &(struct learn_query){
                              .scope = lessons_scope(&m->in.caller, scope),
                              .vector = m->known.vector,
                              .now_ms = m->in.at_ms,
                              .recency_ms = r->opts.settings.choose.recency_ms,
                          });
    if (e)
        return e;
    m->known.type = learn_type(*out, m->known.vector);
    m->known.learn_version = learn_version(*out);
    return OK;
}

static struct candidate candidate_of(const struct registry_near *near,
                                     struct learn *learn)
{
    struct learn_hint hint = {.performance = 0.5F};

    if (learn)
        learn_look(learn, near->agent->name, &hint);
    return (struct candidate){
        .agent = near->agent->name,
        .skill = near->skill ? near->skill->id : STR(""),
        .keyword = near->keyword,
        .signals = {.cosine = near->cosine,
                    .text = near->text,
                    .discount = near->discount,
                    .learned = hint.learned,
                    .performance = hint.performance,
                    .recency = hint.recency},
    };
}

static enum err gather(struct routing *g, const struct registry_near *near,
                       size_t n)
{
    struct router *r = g->router;
    struct msg *m = g->m;
    struct learn *learn;
    enum err e = make_room(r, n);

    if (!e)
        e = begin_to_learn(g, &learn);
    if (e)
        return e;
    for (size_t i = 0; i < n; i++)
        r->room[i] = candidate_of(&near[i], learn);
    m->known.candidates = r->room;
    m->known.n_candidates = n;
    m->known.registry_version = registry_stats(r->opts.registry).seq;
    m->known.has_candidates = true;
    return OK;
}

/* Nothing comes between here and the answer: the room is everybody's. */
static enum err fetch_candidates(struct routing *g)
{
    struct msg *m = g->m;
    const struct registry_near *near = NULL;
    size_t n = 0;
    enum err e;

    if (!g->has_vector)
        return fetch_vector(g);
    e = registry_near(g->router->opts.registry,
                      &(struct registry_near_query){
                          .eyes = eyes_of(&m->in.caller, m->in.at_ms),
                          .text = str_head(m->call.text, TEXT_MAX),
                          .vector = m->known.vector},
                      &near, &n);
    return e ? e : gather(g, near, n);
}

/* The classifier. */

/* What was asked about is in m->choice until choose is asked again; the room
 * the candidates stood in is others' meanwhile, so they come again too. */
static void on_intent(void *ctx, const struct intent_reply *reply)
{
    struct routing *g = ctx;
    struct router *r = g->router;
    struct msg *m = g->m;
    struct intent_answer *said = &m->known.intent;
    struct agents agents = registry_agents(r->opts.registry);
    struct eyes eyes = eyes_of(&m->in.caller, m->in.at_ms);
    struct choose_view v = {&r->opts.settings.choose, &agents, &eyes};
    enum err e = OK;

    m->known.has_intent = true;
    m->known.has_candidates = false;
    if (reply->err == ERR_STOPPING)
        e = ERR_STOPPING;
    else if (!reply->err)
        e = choose_intent_read(&v, m, reply->body, said);
    else if (!keep(m, str_of(reply->why.text), &said->why))
        e = ERR_NOMEM;
    said->is_asked = true;
    said->took_ms = reply->took_ms;
    r->stats.intents_failed_total += !said->is_good;
    if (g->is_asking)
        g->intent_err = e;
    else
        go_on(g, e);
}

/* It may be answered at once: that there is none, or that it is left alone. */
static enum err fetch_intent(struct routing *g, const struct choose_view *v)
{
    struct router *r = g->router;
    struct buf body;
    enum err e;

    buf_init(&body, INTENT_BODY_MAX);
    e = choose_intent_ask(v, g->m, r->opts.settings.intent.model, &body);
    if (!e)
        e = wait_for(g, AN_INTENT);
    if (!e) {
        r->stats.intents_total++;
        g->is_asking = true;
        g->id = intent_ask(r->intent, buf_str(&body), on_intent, g);
        g->is_asking = false;
        if (!g->id) {
            wait_no_more(g);
            e = g->intent_err;
        }
    }
    buf_fini(&body);
    return e;
}

/* The answer. */

/* Whoever is named in a conversation that somebody else has. */
static bool is_switch(const struct choose_view *v, const struct msg *m)
{
    const struct agent *had =
        m->known.stuck_to.n ? agent_find(v->agents, m->known.stuck_to) : NULL;

    return (m->choice.layer == LAYER_EXPLICIT ||
            m->choice.layer == LAYER_PREFIX) &&
           had && agent_is_visible(had, v->eyes) &&
           !str_eq_nocase(m->choice.agent, had->name);
}

/* The first time, who had the conversation; and where it was somebody else,
 * by which decision. True: there is nothing (more) to find out. */
static bool is_whole(struct routing *g, const struct choose_view *v,
                     enum err *e)
{
    struct msg *m = g->m;

    if (m->call.conversation_id.n && !m->known.has_conversation) {
        *e = fetch_conversation(g);
        return false;
    }
    m->choice.is_switch = is_switch(v, m);
    if (m->choice.is_switch && m->known.decision.text[0] && !g->has_earlier &&
        !g->is_look) {
        *e = fetch_earlier(g);
        return false;
    }
    return true;
}

static enum err fetch(struct routing *g, const struct choose_view *v)
{
    switch (g->m->choice.needs) {
    case NEEDS_CONVERSATION: return fetch_conversation(g);
    case NEEDS_CANDIDATES: return fetch_candidates(g);
    case NEEDS_INTENT: return fetch_intent(g, v);
    case NEEDS_NOTHING: break;
    }
    return OK;
}

static void ask(struct routing *g)
{
    struct router *r = g->router;
    struct msg *m = g->m;
    enum err e = OK;

    for (int i = 0; i < STEPS_MAX; i++) {
        struct agents agents = registry_agents(r->opts.registry);
        struct eyes eyes = eyes_of(&m->in.caller, m->in.at_ms);
        struct choose_view v = {&r->opts.settings.choose, &agents, &eyes};

        e = choose_agent(&v, m);
        if (e || (!m->choice.needs && is_whole(g, &v, &e))) {
            finish(g, e);
            return;
        }
        if (!e && m->choice.needs)
            e = fetch(g, &v);
        if (g->waits_for)
            return;
        if (e) {
            finish(g, e);
            return;
        }
    }
    log_error(r->opts.log, "route.no_end",
              LOG_I("needs", (int64_t)m->choice.needs));
    finish(g, ERR_INTERNAL);
}

static void on_turn(struct inorder_place *p)
{
    go_on(LIST_OF(p, struct routing, place), OK);
}

/* One number after the other, none of them to be guessed from outside. */
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
    struct routing *g =
        FAULT("route.begin") ? NULL : arena_alloc(&m->arena, sizeof(*g));

    memset(&m->known, 0, sizeof(m->known));
    memset(&m->choice, 0, sizeof(m->choice));
    if (!g)
        return NULL;
    g->router = r;
    g->m = m;
    g->place.turn = on_turn;
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
    enum err e = OK;

    if (!g || r->is_stopped) {
        done(m, g ? ERR_STOPPING : ERR_NOMEM, ctx);
        return;
    }
    if (m->call.conversation_id.n)
        e = inorder_enter(r->lines, &g->place, caller_name(&m->in.caller),
                          m->call.conversation_id, &is_first);
    if (!e && !is_first)
        e = wait_for(g, ITS_TURN);
    if (e)
        finish(g, e);
    else if (is_first)
        ask(g);
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
    ask(g);
}

enum err route_turn(struct router *r, struct msg *m, const struct task *before)
{
    struct agents agents = registry_agents(r->opts.registry);
    struct eyes eyes = eyes_of(&m->in.caller, m->in.at_ms);
    enum err e;

    memset(&m->known, 0, sizeof(m->known));
    memset(&m->choice, 0, sizeof(m->choice));
    if (!keep(m, before->agent, &m->known.stuck_to))
        return ERR_NOMEM;
    m->known.has_conversation = true;
    e = choose_turn(
        &(struct choose_view){&r->opts.settings.choose, &agents, &eyes}, m);
    if (!e)
        m->choice.id = id_make(r->opts.ids, "dec", m->in.at_ms);
    return e;
}

/* The record. */

static void tell_of_switch(struct msg *m)
{
    struct buf data;
    struct json_out o;

    buf_init(&data, 4096);
    o = json_out(&data);
    json_open(&o, '{');
    json_key(&o, STR("from"));
    json_put_str(&o, m->known.stuck_to);
    json_key(&o, STR("to"));
    json_put_str(&o, m->choice.agent);
    json_key(&o, STR("layer"));
    json_put_str(&o, layer_name(m->choice.layer));
    json_key(&o, STR("decision_id"));
    json_put_str(&o, str_of(m->choice.id.text));
    if (m->known.earlier) {
        json_key(&o, STR("overrides"));
        json_put_str(&o, str_of(m->known.earlier->id.text));
    }
    json_close(&o, '}');
    if (data.over)
        m->tx.build_error = ERR_NOMEM;
    else
        feed_append(&m->tx, &(struct feed_entry){
                                .at_ms = m->in.at_ms,
                                .type = STR("conversation.switched"),
                                .task_id = str_of(m->task.id.text),
                                .conversation_id = m->task.conversation_id,
                                .agent = m->choice.agent,
                                .requester = caller_name(&m->in.caller),
                                .root_user = caller_name(&m->in.caller),
                                .data = buf_str(&data),
                            });
    buf_fini(&data);
}

void route_decision(const struct router *r, const struct msg *m,
                    struct decision *out)
{
    choose_decision(&(struct choose_view){.settings = &r->opts.settings.choose},
                    m, out);
    out->turn = m->task.turn;
    out->config_version = str_of(r->version);
}

/* The decision before was wrong, says who goes to somebody else now. What was
 * said of it already is not said again. */
static void correct(struct router *r, struct msg *m)
{
    const struct decision *d = m->known.earlier;

    if (!d || !r->opts.lessons ||
        str_eq_nocase(d->overridden_to, m->choice.agent) ||
        str_eq_nocase(d->agent, m->choice.agent))
        return;
    lessons_append(r->opts.lessons, &m->tx,
                   &(struct lessons_word){.decision = d,
                                          .right = m->choice.agent,
                                          .verdict = VERDICT_NEGATIVE,
                                          .by = caller_name(&m->in.caller),
                                          .at_ms = m->in.at_ms,
                                          .is_switch = true});
}

void route_record(struct router *r, struct msg *m)
{
    struct decision d;

    route_decision(r, m, &d);
    choose_record(&m->tx, &d);
    if (!m->choice.is_switch)
        return;
    correct(r, m);
    tell_of_switch(m);
}

void route_leave(struct router *r, struct msg *m)
{
    if (m->known.routing)
        inorder_leave(r->lines, &m->known.routing->place);
    m->known.routing = NULL;
}

void route_settle(struct router *r, struct msg *m)
{
    if (m->tx.result == TX_COMMITTED)
        r->stats.by_layer[m->choice.layer]++;
    route_leave(r, m);
}

bool route_is_overtaken(const struct msg *m)
{
    const struct tx_op *op = m->tx.failed_op;

    return m->tx.result == TX_GUARD_FAILED &&
           (op->table == &conversation_table || op->table == &decision_table);
}

/* Life. */

static struct intent_settings classifier_of(const struct route_settings *s)
{
    return (struct intent_settings){.endpoint = s->intent.endpoint,
                                    .key = s->intent.key,
                                    .timeout_ms = s->intent.timeout_ms};
}

struct router *router_new(const struct router_opts *opts)
{
    struct router *r = FAULT("route.new") ? NULL : calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->opts = *opts;
    list_init(&r->waiting);
    if (opts->embed)
        r->stamp = embed_stamp(opts->embed);
    r->lines = inorder_new(opts->loop, WAITING_MAX, opts->seed);
    r->intent = intent_new(&(struct intent_opts){
        .loop = opts->loop,
        .log = opts->log,
        .fetch = opts->fetch,
        .settings = classifier_of(&opts->settings),
    });
    choose_version(&opts->settings.choose, r->version);
    if (r->lines && r->intent)
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
    free(r->room);
    free(r);
}

/* What the store has comes back by itself. */
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
            go_on(g, ERR_STOPPING);
    }
    intent_stop(r->intent);
}

void router_set(struct router *r, const struct route_settings *s)
{
    struct intent_settings intent = classifier_of(s);

    r->opts.settings = *s;
    choose_version(&s->choose, r->version);
    if (intent_set(r->intent, &intent) != OK)
        log_warn(r->opts.log, "route.classifier_not_changed",
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
}

const struct choose_settings *router_settings(const struct router *r)
{
    return &r->opts.settings.choose;
}

struct router_stats router_stats(const struct router *r)
{
    struct router_stats s = r->stats;

    s.waiting = (int64_t)r->n_waiting;
    return s;
}
