/* Fetches the inputs of choosing: the conversation, the decision that chose
 * its agent, the vector of the text, the signals of every candidate, and the
 * classifier's answer. If one cannot be fetched, the reason is noted
 * instead. */
#include "choose/routing.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/vec.h"
#include "task/task.h"

/* Waiting. Other messages use the shared candidate array meanwhile, so after
 * waiting candidates are fetched again. */

enum err routing_wait(struct routing *g, enum waits_for what)
{
    struct router *r = g->router;
    struct eyes eyes = eyes_of(&g->m->in.caller, g->m->in.at_ms);
    struct routing_share *s = share_find(&r->shares, eyes.user);
    size_t n = s ? s->share.n : 0, bytes = s ? s->bytes : 0;

    /* A flood only affects its sender: while inputs are slow, other users'
     * messages still find room. */
    if (r->n_waiting >= ROUTING_WAITING_MAX ||
        g->bytes > ROUTING_WAITING_BYTES_MAX - r->waiting_bytes ||
        n >= ROUTING_WAITING_MAX / ROUTING_SHARE ||
        g->bytes > ROUTING_WAITING_BYTES_MAX / ROUTING_SHARE - bytes)
        return ERR_OVERLOADED;
    s = share_take(&r->shares, eyes.user);
    if (!s)
        return ERR_NOMEM;
    g->waits_for = what;
    g->share = s;
    g->m->known.has_candidates = false;
    list_append(&r->waiting, &g->node);
    r->n_waiting++;
    r->waiting_bytes += g->bytes;
    s->bytes += g->bytes;
    return OK;
}

void routing_wait_no_more(struct routing *g)
{
    struct router *r = g->router;

    assert(g->waits_for && g->share);
    g->waits_for = NOTHING;
    loop_timer_cancel(r->opts.loop, &g->timer);
    list_remove(&g->node);
    r->n_waiting--;
    r->waiting_bytes -= g->bytes;
    g->share->bytes -= g->bytes;
    g->share->full_bytes -= g->full_bytes;
    g->full_bytes = 0;
    share_give(&r->shares, g->share);
    g->share = NULL;
}

/* The conversation. */

/* A conversation with an agent that is gone still has its name, but not if
 * another user's agent has the name now: that one must not get the text. */
static enum err keep_agent(struct routing *g, const struct row *r)
{
    struct msg *m = g->m;
    struct agents agents = registry_agents(g->router->opts.registry);
    const struct agent *a = agent_find(&agents, row_str(r, CONVERSATION_AGENT));
    int64_t meant_ms = row_is_null(r, CONVERSATION_MEANT_MS)
                           ? row_int(r, CONVERSATION_USED_MS)
                           : row_int(r, CONVERSATION_MEANT_MS);

    if (!arena_keep(&m->arena, row_str(r, CONVERSATION_AGENT), &m->known.had))
        return ERR_NOMEM;
    if (!a || agent_is_meant(a, meant_ms, caller_name(&m->in.caller)))
        m->known.stuck_to = m->known.had;
    return OK;
}

static void routing_on_conversation(struct query *q, void *ctx)
{
    struct routing *g = ctx;
    struct msg *m = g->m;
    enum err e = q->err;

    if (!e && q->rows) {
        m->known.has_had_price =
            !row_is_null(q->rows, CONVERSATION_PRICE_MICROS);
        m->known.had_price = row_int(q->rows, CONVERSATION_PRICE_MICROS);
        m->known.decision = id_from(row_str(q->rows, CONVERSATION_DECISION_ID));
        e = keep_agent(g, q->rows);
    }
    m->known.has_conversation = true;
    query_fini(q);
    routing_go_on(g, e);
}

enum err routing_fetch_conversation(struct routing *g)
{
    struct msg *m = g->m;
    enum err e = routing_wait(g, THE_STORE);

    if (e)
        return e;
    query_init(&g->query, &conversation_table, 1);
    query_if(&g->query, CONVERSATION_OWNER, IS,
             value_text(caller_name(&m->in.caller)));
    query_if(&g->query, CONVERSATION_ID, IS,
             value_text(m->call.conversation_id));
    store_read(g->router->opts.store, &g->query, routing_on_conversation, g);
    return OK;
}

/* The decision before. */

static enum err earlier_keep_strings(struct msg *m, struct decision *d)
{
    struct str *strings[] = {
        &d->conversation_id, &d->requester, &d->org,           &d->text,
        &d->agent,           &d->vector,    &d->model,         &d->model_hash,
        &d->overridden_to,   &d->skill,     &d->overridden_by, &d->error_code};

    for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++)
        if (!arena_keep(&m->arena, *strings[i], strings[i]))
            return ERR_NOMEM;
    return OK;
}

/* Copy what learning needs of the decision to the message's memory. */
static enum err keep_earlier(struct msg *m, const struct row *row)
{
    struct decision *d = arena_alloc(&m->arena, sizeof(*d));
    enum err e = d ? decision_from_row(&m->arena, row, d) : ERR_NOMEM;

    if (!e)
        e = earlier_keep_strings(m, d);
    if (e)
        return e == ERR_SYNTAX ? OK : e; /* of a later version: ignored */
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
    routing_go_on(g, e);
}

enum err routing_fetch_earlier(struct routing *g)
{
    enum err e = routing_wait(g, THE_STORE);

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
    why_err(&g->m->known.no_vector, OK, "%s; words were compared", because);
}

/* In words about the provider: the error's own message addresses a caller who
 * made a mistake. */
static const char *what_failed(enum err e)
{
    switch ((int)e) {
    case ERR_UNREACHABLE: return "cannot be reached";
    case ERR_TIMEOUT: return "did not answer in time";
    case ERR_BAD_REQUEST: return "gave an answer that cannot be used";
    case ERR_NOT_ALLOWED: return "does not take the server's key";
    case ERR_OVERLOADED: return "has failed and is left alone for now";
    case ERR_BUSY:
    case ERR_LIMIT: return "has too much to do";
    default: return "did not answer";
    }
}

/* The transformer did not answer, so the table's choice stands. */
static void transformer_failed(struct routing *g, enum err e)
{
    g->router->stats.full_failed_total++;
    why_err(&g->m->known.no_full, OK,
            "the transformer %s, so the table decided", what_failed(e));
}

static void routing_provider_failed(struct routing *g, enum err e)
{
    char words[EMBED_NAME_MAX + 128];

    if (g->m->known.vector.n) {
        transformer_failed(g, e);
        return;
    }

    snprintf(words, sizeof(words), "the embedding provider \"%s\" %s",
             g->router->stamp.name, what_failed(e));
    no_vector(g, words);
}

const struct choose_settings *routing_settings(const struct router *r,
                                               const struct msg *m)
{
    return m->known.no_vector.text[0] ? &r->by_words : &r->opts.settings.choose;
}

struct choose_view routing_view(const struct router *r,
                                const struct choose_settings *settings,
                                const struct agents *agents,
                                const struct eyes *eyes)
{
    return (struct choose_view){.settings = settings,
                                .agents = agents,
                                .eyes = eyes,
                                .is_meant = registry_is_meant,
                                .ctx = r->opts.registry};
}

/* Replaces an earlier vector. */
static enum err keep_vector(struct routing *g, const float *v,
                            const struct embed_stamp *stamp)
{
    struct msg *m = g->m;
    size_t n = vec_packed_bytes(stamp->dims);
    uint8_t *packed = arena_alloc(&m->arena, n);
    struct vec_packed p;

    if (!packed)
        return ERR_NOMEM;
    if (!stamp->dims || !vec_pack(v, stamp->dims, packed)) {
        if (!m->known.vector.n)
            no_vector(g, "there is nothing in this text that the model knows");
        return OK;
    }
    g->has_vector = true;
    m->known.vector = (struct str){(const char *)packed, n};
    /* A full vector is quick if the transformer knows nothing of a text. */
    m->known.tier =
        !stamp->quick_dims || !vec_packed_open(&p, packed, n, stamp->dims)
            ? TIER_NONE
        : vec_packed_is_quick(&p, stamp->quick_dims) ? TIER_TABLE
                                                     : TIER_TRANSFORMER;
    m->known.model = str_of(g->router->stamp.name);
    m->known.model_hash = str_of(g->router->stamp.hash);
    return OK;
}

static void routing_on_vector(void *ctx, uint64_t id, enum err e,
                              const struct embed_result *result,
                              const struct why *why)
{
    struct routing *g = ctx;
    float v[READING_TEXTS_MAX * EMBED_DIMS_MAX];

    (void)id;
    (void)why; /* the provider's own message is for the operator */
    if (!e) {
        memcpy(v, result->vectors, result->n * result->stamp.dims * sizeof(*v));
        reading_add_up(&g->reading, v, &result->stamp);
        e = keep_vector(g, v, &result->stamp);
    } else if (e != ERR_STOPPING) {
        routing_provider_failed(g, e);
        e = OK;
    }
    routing_go_on(g, e);
}

/* The model's own time limit is longer than a sender should wait. */
static void routing_on_late(struct timer *t)
{
    struct routing *g = LIST_OF(t, struct routing, timer);

    embed_cancel(g->router->opts.embed, g->id);
    routing_provider_failed(g, ERR_TIMEOUT);
    routing_go_on(g, OK);
}

/* The transformer reads the texts of all users one after the other. So each
 * user may have only a limited amount of text waiting for it; above, the table
 * decides. A single message is always accepted. */
static bool take_full_share(struct routing *g)
{
    size_t bytes = 0;

    for (size_t i = 0; i < g->reading.n; i++)
        bytes += g->reading.texts[i].n;
    if (g->share->full_bytes &&
        g->share->full_bytes + bytes > ROUTING_FULL_BYTES_MAX)
        return false;
    g->full_bytes = bytes;
    g->share->full_bytes += bytes;
    return true;
}

static enum err routing_wait_vector(struct routing *g)
{
    struct router *r = g->router;
    int64_t most_ms = r->opts.settings.vector_timeout_ms;
    bool has_table_spoken = g->m->known.vector.n > 0;
    struct eyes eyes = eyes_of(&g->m->in.caller, g->m->in.at_ms);
    char scope[EYES_SCOPE_BYTES];
    enum err e = routing_wait(g, A_VECTOR);

    if (e == ERR_OVERLOADED && has_table_spoken) {
        transformer_failed(g, ERR_BUSY);
        return OK;
    }
    if (e)
        return e;
    if (has_table_spoken) {
        if (!most_ms || most_ms > ROUTING_FULL_WAIT_MS)
            most_ms = ROUTING_FULL_WAIT_MS;
        if (!take_full_share(g)) {
            routing_wait_no_more(g);
            transformer_failed(g, ERR_BUSY);
            return OK;
        }
    }
    e = embed_start_for(r->opts.embed, eyes_scope(&eyes, scope),
                        g->reading.texts, g->reading.n, routing_on_vector, g,
                        &g->id, NULL);
    if (e) {
        routing_wait_no_more(g);
        routing_provider_failed(g, e);
        return OK;
    }
    g->timer.fire = routing_on_late;
    if (most_ms)
        loop_timer_set(r->opts.loop, &g->timer, most_ms);
    return OK;
}

struct seen_cards {
    struct registry *registry;
    struct eyes eyes;
};

/* Report which words occur on cards that the requester sees. */
static void cards_say(void *ctx, const struct str *words, size_t n,
                      bool *is_said)
{
    const struct seen_cards *seen = ctx;

    if (registry_says(seen->registry, &seen->eyes, words, n, is_said))
        memset(is_said, 0, n * sizeof(*is_said));
}

enum err route_read_text(const struct router *r, struct arena *a,
                         const struct eyes *eyes, struct str text,
                         struct reading *out)
{
    struct seen_cards seen = {r->opts.registry, *eyes};
    bool leaves_spelling =
        r->opts.embed &&
        reading_leaves_spelling(embed_stats(r->opts.embed).kind);

    return reading_make(a, r->speller, cards_say, &seen, text, leaves_spelling,
                        out);
}

/* The model's best vector; of a model of two tiers, the full one. */
static enum err fetch_full_vector(struct routing *g)
{
    struct embed *embed = g->router->opts.embed;
    struct embed_stamp stamp = embed_stamp(embed);
    struct eyes eyes = eyes_of(&g->m->in.caller, g->m->in.at_ms);
    float v[READING_TEXTS_MAX * EMBED_DIMS_MAX];
    char name[EYES_SCOPE_BYTES];
    struct str scope = eyes_scope(&eyes, name);

    g->m->known.may_ask_full = false;
    g->m->known.has_candidates = false; /* the vector changes them */
    for (size_t i = 0; i < g->reading.n; i++)
        if (!embed_now_for(embed, scope, g->reading.texts[i],
                           v + i * stamp.dims))
            return routing_wait_vector(g);
    reading_add_up(&g->reading, v, &stamp);
    return keep_vector(g, v, &stamp);
}

/* The table was not clear. A full vector is useless until the cards have full
 * vectors and levels too. */
static enum err ask_transformer(struct routing *g)
{
    if (registry_has_full(g->router->opts.registry))
        return fetch_full_vector(g);
    g->m->known.may_ask_full = false;
    why_err(&g->m->known.no_full, OK,
            "the transformer is still reading the agents' cards, so the table "
            "decided");
    return OK;
}

static bool is_silent(const struct reading *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->texts[i].n)
            return false;
    return true;
}

/* The table's vector, at once. If the table knows no word of a text, the
 * transformer may know some. */
static enum err fetch_quick_vector(struct routing *g)
{
    struct embed *embed = g->router->opts.embed;
    struct embed_stamp stamp = embed_stamp(embed);
    float v[READING_TEXTS_MAX * EMBED_DIMS_MAX];
    bool is_any = false;
    enum err e;

    for (size_t i = 0; i < g->reading.n; i++)
        (void)!embed_quick(embed, g->reading.texts[i], v + i * stamp.dims);
    reading_add_up(&g->reading, v, &stamp);
    for (size_t i = 0; !is_any && i < stamp.quick_dims; i++)
        is_any = v[i] != 0;
    if (!is_any && !is_silent(&g->reading)) {
        if (registry_has_full(g->router->opts.registry))
            return fetch_full_vector(g);
        no_vector(g, "the table knows no word of it, and the transformer is "
                     "still reading the agents' cards");
        return OK;
    }
    e = keep_vector(g, v, &stamp);
    g->m->known.may_ask_full = !e && g->m->known.vector.n > 0;
    return e;
}

static enum err fetch_vector(struct routing *g)
{
    struct embed *embed = g->router->opts.embed;
    struct msg *m = g->m;
    struct eyes eyes = eyes_of(&m->in.caller, m->in.at_ms);
    enum err e =
        route_read_text(g->router, &m->arena, &eyes, m->call.text, &g->reading);

    if (e)
        return e;
    if (!embed) {
        no_vector(g, "there is no embedding model");
        return OK;
    }
    return embed_stamp(embed).quick_dims ? fetch_quick_vector(g)
                                         : fetch_full_vector(g);
}

/* Candidates. */

static enum err routing_reserve(struct router *r, size_t n)
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

/* Learned data, if learning is on. */
static struct learn *begin_to_learn(struct routing *g)
{
    struct router *r = g->router;
    struct msg *m = g->m;
    char name[PRINCIPAL_NAME_MAX + 8];
    struct learn_query q = {
        .scope = learning_scope(&m->in.caller, name),
        .vector = m->known.vector,
        .text_hash = decision_text_hash(m->call.text),
        .now_ms = m->in.at_ms,
        .recency_ms = r->opts.settings.choose.recency_ms,
    };
    struct learn *learn =
        r->opts.learning ? learning_learn(r->opts.learning) : NULL;

    if (!learn)
        return NULL;
    learn_begin(learn, &q);
    m->known.type = learn_type_asked(learn);
    m->known.learn_version = learn_version(learn);
    return learn;
}

/* An entry for each agent; those of earlier messages are outdated. */
static enum err hints_begin(struct router *r)
{
    size_t n = registry_numbers(r->opts.registry);
    struct known_hint *more;

    if (n > r->hints_n) {
        n += n / 2;
        more =
            FAULT("route.hints") ? NULL : realloc(r->hints, n * sizeof(*more));
        if (!more)
            return ERR_NOMEM;
        memset(more + r->hints_n, 0, (n - r->hints_n) * sizeof(*more));
        r->hints = more;
        r->hints_n = n;
    }
    r->hints_serial++;
    return OK;
}

static bool is_outsider(const struct router *r, uint32_t number,
                        const struct eyes *eyes)
{
    const struct agent *a = registry_at(r->opts.registry, number);

    return a && !r->opts.settings.choose.trusts_all &&
           agent_is_outsider(a, eyes);
}

/* Learning knows few of thousands of agents, so it is iterated and the registry
 * looked up, not the other way. A note caches the agent's number. */
static enum err collect_hints(struct router *r, struct learn *learn,
                              const struct eyes *eyes)
{
    const struct registry *registry = r->opts.registry;
    uint64_t moves = registry_moves(registry) + 1;
    struct learn_agent_hint next;
    enum err e = hints_begin(r);

    while (!e && learn && learn_next(learn, &next)) {
        struct learn_note *note = next.note;

        if (note->version != moves) {
            note->version = moves;
            if (!registry_number(registry, next.agent, &note->number))
                note->number = UINT32_MAX;
        }
        if (next.hint.has_inside && is_outsider(r, note->number, eyes))
            learn_outside(&next.hint);
        if (note->number < r->hints_n)
            r->hints[note->number] =
                (struct known_hint){r->hints_serial, next.hint};
    }
    return e;
}

static struct learn_hint routing_hint(const struct router *r, uint32_t number)
{
    const struct known_hint *known = &r->hints[number];

    return known->serial == r->hints_serial
               ? known->hint
               : (struct learn_hint){.performance = 0.5F};
}

static struct signals signals_of(const struct router *r,
                                 const struct registry_near *near,
                                 const struct learn_hint *hint)
{
    return (struct signals){
        .cosine = near->cosine,
        .text = near->text,
        .discount =
            near->has_discount && !hint->is_rated
                ? choose_discount(&r->opts.settings.choose, near->cosine_over,
                                  near->text_over, near->discount)
                : 0,
        .learned = hint->learned,
        .performance = hint->performance,
        .recency = hint->recency};
}

static bool is_rated(void *ctx, uint32_t number)
{
    return routing_hint(ctx, number).is_rated;
}

/* The agent is an outsider's, and no user of the requester's org has rated an
 * agent of its creator well. A guess has no agent yet. */
static bool is_half_keyword(struct router *r, const struct registry_near *near)
{
    return near->keyword.n && near->has_discount &&
           !registry_any_of(r->opts.registry, near->agent->creator,
                            r->hints_serial, is_rated, r);
}

enum { SKILLS_LOOKED_AT = 16 }; /* if the skill is not known yet */

/* Whether all skills cost more than agreed. With too many skills to check:
 * no. */
static bool costs_more(const struct agent *a, int64_t agreed)
{
    if (a->price.micros <= agreed || a->n_skills > SKILLS_LOOKED_AT)
        return false;
    for (size_t i = 0; i < a->n_skills; i++)
        if (agent_price(a, &a->skills[i]) <= agreed)
            return false;
    return true;
}

/* Whether an outsider's agent costs more than the sender has agreed to. A guess
 * has only the agent's number. */
static bool is_unpaid(const struct router *r, const struct registry_near *near)
{
    const struct agent *a =
        near->agent ? near->agent : registry_at(r->opts.registry, near->number);
    bool is_dear = near->agent ? agent_price(a, near->skill) > r->agreed_micros
                               : a && costs_more(a, r->agreed_micros);

    return is_dear && agent_is_outsider(a, r->eyes) &&
           !PLANTED("ledger.no_consent");
}

#define FAR_BEHIND 4 /* more than any difference of scores */

/* As choose scores: candidates that this leaves out would not be the best. */
static double routing_score(void *ctx, const struct registry_near *near)
{
    struct router *r = ctx;
    const struct choose_settings *settings = r->counts;
    struct learn_hint hint = routing_hint(r, near->number);
    struct signals s = signals_of(r, near, &hint);
    double behind = is_unpaid(r, near) ? FAR_BEHIND : 0;

    if (hint.is_taught && !(behind > 0))
        return (double)INFINITY;
    s.keyword = near->keyword.n ? choose_keyword(is_half_keyword(r, near)) : 0;
    s.semantic = choose_semantic(settings, &s, &near->level);
    return choose_score(&settings->weights, &s) - behind;
}

static enum err routing_gather(struct routing *g, const struct eyes *eyes,
                               const struct registry_near *near, size_t n,
                               size_t n_left)
{
    struct router *r = g->router;
    struct msg *m = g->m;
    char scope[PRINCIPAL_NAME_MAX + 8];
    enum err e = routing_reserve(r, n);

    if (e)
        return e;
    for (size_t i = 0; i < n; i++) {
        struct learn_hint hint = routing_hint(r, near[i].number);

        r->room[i] = (struct candidate){
            .agent = near[i].agent->name,
            .skill = near[i].skill ? near[i].skill->id : STR(""),
            .keyword = near[i].keyword,
            .signals = signals_of(r, &near[i], &hint),
            .level = near[i].level,
            .is_trusted =
                !is_outsider(r, near[i].number, eyes) || hint.is_rated,
            .is_taught = hint.is_taught,
            .is_half = is_half_keyword(r, &near[i]),
            .is_unpaid = is_unpaid(r, &near[i]),
            .price_micros = agent_price(near[i].agent, near[i].skill),
        };
    }
    m->known.candidates = r->room;
    m->known.n_candidates = n;
    m->known.n_unrecorded = (int64_t)n_left;
    m->known.is_there = registry_is_there;
    m->known.is_there_ctx = r->opts.registry;
    m->known.registry_version = registry_version(r->opts.registry);
    m->known.is_share_spent = choose_share_is_spent(
        r->strangers, learning_scope(&m->in.caller, scope));
    m->known.has_candidates = true;
    return OK;
}

/* The array is shared, so nothing may happen between here and the choice. */
static enum err fetch_candidates(struct routing *g)
{
    struct router *r = g->router;
    struct msg *m = g->m;
    const struct registry_near *near = NULL;
    struct eyes eyes = eyes_of(&m->in.caller, m->in.at_ms);
    size_t n = 0, n_left = 0;
    enum err e;

    if (!g->has_vector)
        return fetch_vector(g);
    r->counts = routing_settings(r, m);
    r->eyes = &eyes;
    r->agreed_micros = m->call.has_max_cost ? m->call.max_cost_micros : 0;
    e = collect_hints(r, begin_to_learn(g), &eyes);
    if (!e)
        e = registry_near(r->opts.registry,
                          &(struct registry_near_query){
                              .eyes = eyes,
                              .text = str_head(m->call.text, ROUTING_TEXT_MAX),
                              .words = g->reading.words,
                              .vector = m->known.vector,
                              .best = DECISION_CANDIDATES_MAX,
                              .score = routing_score,
                              .ctx = r,
                              .is_seed = r->opts.settings.choose.is_seed,
                              .trusts_all = r->opts.settings.choose.trusts_all},
                          &near, &n, &n_left);
    if (!e)
        e = routing_gather(g, &eyes, near, n, n_left);
    r->eyes = NULL;
    return e;
}

/* The classifier. */

/* The candidates that the classifier was asked about are still in m->choice. */
static void on_intent(void *ctx, const struct intent_reply *reply)
{
    struct routing *g = ctx;
    struct router *r = g->router;
    struct msg *m = g->m;
    struct intent_answer *answer = &m->known.intent;
    struct agents agents = registry_agents(r->opts.registry);
    struct eyes eyes = eyes_of(&m->in.caller, m->in.at_ms);
    struct choose_view v =
        routing_view(r, &r->opts.settings.choose, &agents, &eyes);
    enum err e = OK;

    m->known.has_intent = true;
    if (reply->err == ERR_STOPPING)
        e = ERR_STOPPING;
    else if (!reply->err)
        e = choose_intent_read(&v, m, reply->kind, reply->body, answer);
    else
        e = choose_intent_failed(m, reply->why.text, answer);
    answer->took_ms = reply->took_ms;
    r->stats.intents_failed_total += !answer->is_good;
    if (g->is_asking)
        g->intent_err = e;
    else
        routing_go_on(g, e);
}

/* intent_ask may call back at once if the classifier is not asked. */
static enum err fetch_intent(struct routing *g, const struct choose_view *v)
{
    struct router *r = g->router;
    struct buf body;
    enum err e;

    buf_init(&body, INTENT_BODY_MAX);
    e = choose_intent_ask(v, g->m, r->opts.settings.intent.kind,
                          r->opts.settings.intent.model, &body);
    if (!e)
        e = routing_wait(g, AN_INTENT);
    if (!e) {
        r->stats.intents_total++;
        g->is_asking = true;
        g->id = intent_ask(r->intent, buf_str(&body), on_intent, g);
        g->is_asking = false;
        if (!g->id) {
            routing_wait_no_more(g);
            e = g->intent_err;
        }
    }
    buf_fini(&body);
    return e;
}

enum err routing_fetch(struct routing *g, const struct choose_view *v)
{
    switch (g->m->choice.needs) {
    case NEEDS_CONVERSATION: return routing_fetch_conversation(g);
    case NEEDS_CANDIDATES: return fetch_candidates(g);
    case NEEDS_FULL_VECTOR: return ask_transformer(g);
    case NEEDS_INTENT: return fetch_intent(g, v);
    case NEEDS_NOTHING: break;
    }
    return OK;
}
