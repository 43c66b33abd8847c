/* Time is measured for the queries only, from text to decision: each text is
 * embedded and decided before the next. A provider embeds many texts at once,
 * so the time of one is a share. With a model of two tiers the transformer
 * embeds only texts for which the table is unsure, one at a time, as in a
 * server. */
#include "lab/eval_route.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"

enum { TEXT_HEAD = 16 * 1024 };

struct str eval_head(struct str text)
{
    return str_head(text, TEXT_HEAD);
}

/* Vectors. */

struct str eval_vector(const struct eval_vectors *v, size_t i)
{
    if (!v->rows || !v->has[i])
        return STR("");
    return (struct str){(const char *)v->rows + i * v->each, v->each};
}

void eval_vectors_fini(struct eval_vectors *v)
{
    free(v->rows);
    free(v->has);
    *v = (struct eval_vectors){.n = 0};
}

void eval_vectors_init(struct eval_vectors *v, size_t n)
{
    *v = (struct eval_vectors){.n = n, .has = mem_array(n, sizeof(*v->has))};
}

enum err eval_vectors_put(struct eval_vectors *v, size_t i, const float *vector,
                          uint32_t dims)
{
    if (!vector)
        return OK;
    if (!v->rows) {
        v->each = vec_packed_bytes(dims);
        v->rows = calloc(v->n, v->each);
    }
    if (!v->rows || v->each != vec_packed_bytes(dims))
        return ERR_NOMEM;
    v->has[i] = vec_pack(vector, dims, v->rows + i * v->each);
    return OK;
}

/* As in route, a message has one or more texts, whose vectors are added up. */

struct message_reader {
    struct eval_route *r;
    eval_take_fn *take;
    struct reading *readings; /* of each message */
    struct reader_text {
        size_t message, nth;
    } * texts;
    float **parts; /* of each message with several texts, until all have
                    * arrived */
    size_t *n_parts;
};

static void route_take_text(void *ctx, size_t i, const float *vector,
                            uint32_t dims)
{
    struct message_reader *d = ctx;
    struct reader_text t = d->texts[i];
    const struct reading *g = &d->readings[t.message];
    struct embed_stamp stamp = eval_model_stamp(&d->r->model);
    float **parts = &d->parts[t.message];

    if (g->n == 1) {
        d->take(d->r, t.message, vector, dims);
        return;
    }
    if (!*parts)
        *parts = calloc(g->n * dims + 1, sizeof(**parts));
    if (!*parts) {
        d->r->e = why_err(d->r->why, ERR_NOMEM, "out of memory");
        return;
    }
    if (vector)
        memcpy(*parts + t.nth * dims, vector, dims * sizeof(*vector));
    if (++d->n_parts[t.message] < g->n)
        return;
    stamp.dims = dims;
    reading_add_up(g, *parts, &stamp);
    d->take(d->r, t.message, *parts, dims);
    free(*parts);
    *parts = NULL;
}

static enum err route_embed_messages(struct eval_route *r,
                                     const struct str *messages, size_t n,
                                     eval_take_fn *take)
{
    struct message_reader d = {.r = r, .take = take};
    size_t n_texts = 0, most = READING_TEXTS_MAX * n + 1;
    struct str *texts = calloc(most, sizeof(*texts));
    struct arena arena;
    enum err e = OK;

    arena_init(&arena, (size_t)EVAL_FILE_MAX);
    d.readings = calloc(n + 1, sizeof(*d.readings));
    d.texts = calloc(most, sizeof(*d.texts));
    d.parts = calloc(n + 1, sizeof(*d.parts));
    d.n_parts = calloc(n + 1, sizeof(*d.n_parts));
    if (!texts || !d.readings || !d.texts || !d.parts || !d.n_parts)
        e = ERR_NOMEM;
    for (size_t i = 0; !e && i < n; i++) {
        e = eval_fleet_read(r->fleet, &arena, messages[i], &d.readings[i]);
        for (size_t k = 0; !e && k < d.readings[i].n; k++) {
            d.texts[n_texts] = (struct reader_text){i, k};
            texts[n_texts++] = d.readings[i].texts[k];
        }
    }
    if (e)
        e = why_err(r->why, ERR_NOMEM, "out of memory");
    else
        e = eval_model_embed(&r->model, texts, n_texts, EMBED_QUERY,
                             route_take_text, &d, r->why);
    for (size_t i = 0; d.parts && i < n; i++)
        free(d.parts[i]);
    arena_fini(&arena);
    free(texts);
    free(d.readings);
    free(d.texts);
    free(d.parts);
    free(d.n_parts);
    return e;
}

/* Counting. */

bool eval_gate_count(struct eval_gate *g, const struct eval_query *q,
                     const struct eval_choice *c)
{
    bool is_refused = c->layer == LAYER_NONE || c->layer == LAYER_DEFAULT;
    bool is_right = eval_query_names(q, c->agent);

    g->by_layer[c->layer]++;
    g->by_tier[c->tier]++;
    if (!q->n_agents) {
        g->n_out++;
        g->n_out_refused += is_refused;
        return is_refused;
    }
    g->n++;
    g->n_first += c->n && eval_query_names(q, c->best[0].agent);
    g->n_right += is_right;
    g->n_refused += is_refused && !is_right;
    return is_right;
}

/* The fleet. */

/* Cards have no repeated or overlong examples. */
static void route_add_shot(struct strs *shots, struct str *room,
                           struct str text)
{
    text = str_head(text, SKILL_EXAMPLE_MAX);
    for (size_t i = 0; i < shots->n; i++)
        if (str_eq(room[i], text))
            return;
    room[shots->n++] = text;
}

/* Chooses additional examples for the cards. */
static enum err route_choose_shots(struct eval_route *r)
{
    const struct eval_set *s = r->plan->set;
    size_t k = r->plan->shots, n = s->n_agents;
    uint32_t *chosen = calloc(n * k + 1, sizeof(*chosen));
    uint32_t *n_chosen = calloc(n + 1, sizeof(*n_chosen));

    r->shots = calloc(n + 1, sizeof(*r->shots));
    r->shot_texts = calloc(n * k + 1, sizeof(*r->shot_texts));
    if (chosen && n_chosen && r->shots && r->shot_texts) {
        eval_shots(s, k, r->plan->seed, chosen, n_chosen);
        for (size_t i = 0; i < n; i++) {
            r->shots[i] = (struct strs){&r->shot_texts[i * k], 0};
            for (size_t j = 0; j < n_chosen[i]; j++)
                route_add_shot(&r->shots[i], &r->shot_texts[i * k],
                               s->examples[chosen[i * k + j]].text);
            r->run->n_few += n_chosen[i] && n_chosen[i] < k;
            r->run->n_bare += !n_chosen[i];
        }
    }
    free(chosen);
    free(n_chosen);
    return r->shots && r->shot_texts
               ? OK
               : why_err(r->why, ERR_NOMEM, "out of memory");
}

/* The queries. */

struct eval_ranked eval_ranked_of(const struct eval_choice *c)
{
    struct eval_ranked out = {.n = 0};

    for (; out.n < EVAL_TOP && out.n < c->n; out.n++) {
        out.agents[out.n] = c->best[out.n].agent;
        out.scores[out.n] = (float)c->best[out.n].score;
    }
    return out;
}

static void route_record_choice(struct eval_route *r, size_t i,
                                const struct eval_choice *c)
{
    double now_s;

    (void)eval_gate_count(&r->run->gate, &r->plan->set->queries[i], c);
    r->run->decided[i] = (struct eval_decided){c->band, c->agent, c->is_unsure};
    r->run->outcomes[i].ranked = eval_ranked_of(c);
    now_s = cli_mono_s();
    r->took_us[i] = (float)(1e6 * (now_s - r->last_s));
    r->last_s = now_s;
}

static void route_take_query(void *ctx, size_t i, const float *vector,
                             uint32_t dims)
{
    struct eval_route *r = ctx;
    const struct eval_query *q = &r->plan->set->queries[i];
    struct eval_choice c;

    cli_bar_step(&r->bar);
    r->run->n_empty += !vector;
    if (!r->e && eval_vectors_put(&r->queries, i, vector, dims))
        r->e = why_err(r->why, ERR_NOMEM, "out of memory");
    if (!r->e &&
        eval_fleet_decide(r->fleet, eval_head(q->text),
                          eval_vector(&r->queries, i), EVAL_BEGIN_MS, &c))
        r->e = why_err(r->why, ERR_NOMEM, "out of memory");
    if (!r->e)
        route_record_choice(r, i, &c);
}

/* A model of two tiers. */

static void route_take_full(void *ctx, size_t i, const float *vector,
                            uint32_t dims)
{
    struct eval_route *r = ctx;

    if (!r->e && eval_vectors_put(&r->queries, r->full_at + i, vector, dims))
        r->e = why_err(r->why, ERR_NOMEM, "out of memory");
}

static enum err route_decide_in_tiers(struct eval_route *r, struct str text,
                                      size_t i)
{
    struct eval_choice c;
    enum err e = eval_fleet_decide(r->fleet, text, (struct str){NULL, 0},
                                   EVAL_BEGIN_MS, &c);

    if (!e && c.wants_full) {
        r->full_at = i;
        e = route_embed_messages(r, &text, 1, route_take_full);
        if (e || r->e)
            return e ? e : r->e;
        e = eval_fleet_decide(r->fleet, text, eval_vector(&r->queries, i),
                              EVAL_BEGIN_MS, &c);
    }
    if (e)
        return why_err(r->why, ERR_NOMEM, "out of memory");
    r->run->n_empty += c.tier == TIER_NONE;
    route_record_choice(r, i, &c);
    return OK;
}

enum err eval_route_embed_queries(struct eval_route *r)
{
    const struct eval_set *s = r->plan->set;
    struct str *texts;
    enum err e;

    if (!eval_model_stamp(&r->model).quick_dims)
        return OK;
    texts = eval_query_texts(s->queries, s->n_queries, TEXT_HEAD);
    if (!texts)
        return why_err(r->why, ERR_NOMEM, "out of memory");
    r->full_at = 0;
    e = route_embed_messages(r, texts, s->n_queries, route_take_full);
    free(texts);
    return e ? e : r->e;
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return x < y ? -1 : x > y;
}

static enum err route_run_queries(struct eval_route *r)
{
    const struct eval_set *s = r->plan->set;
    size_t n = s->n_queries;
    struct str *texts = eval_query_texts(s->queries, n, TEXT_HEAD);
    enum err e = texts ? OK : why_err(r->why, ERR_NOMEM, "out of memory");
    double began_s;

    eval_vectors_init(&r->queries, n);
    r->took_us = mem_array(n + 1, sizeof(*r->took_us));
    cli_bar_count(&r->bar, r->cli, "answering the queries", n);
    began_s = r->last_s = cli_mono_s();
    if (!e && !eval_model_stamp(&r->model).quick_dims)
        e = route_embed_messages(r, texts, n, route_take_query);
    else
        for (size_t i = 0; !e && i < n; i++) {
            e = route_decide_in_tiers(r, texts[i], i);
            cli_bar_step(&r->bar);
        }
    r->run->seconds = cli_mono_s() - began_s;
    cli_bar_end(&r->bar);
    free(texts);
    if (e || r->e)
        return e ? e : r->e;
    qsort(r->took_us, n, sizeof(*r->took_us), compare_floats);
    r->run->p50_us = (double)r->took_us[n / 2];
    r->run->p99_us = (double)r->took_us[n * 99 / 100];
    return OK;
}

static void route_take_example(void *ctx, size_t i, const float *vector,
                               uint32_t dims)
{
    struct eval_route *r = ctx;

    cli_bar_step(&r->bar);
    if (!r->e && eval_vectors_put(&r->examples, i, vector, dims))
        r->e = why_err(r->why, ERR_NOMEM, "out of memory");
}

enum err eval_route_embed_examples(struct eval_route *r)
{
    const struct eval_set *s = r->plan->set;
    struct str *texts = eval_query_texts(s->examples, s->n_examples, TEXT_HEAD);
    enum err e = texts ? OK : why_err(r->why, ERR_NOMEM, "out of memory");

    eval_vectors_init(&r->examples, s->n_examples);
    cli_bar_count(&r->bar, r->cli, "embedding the training queries",
                  s->n_examples);
    if (!e)
        e = route_embed_messages(r, texts, s->n_examples, route_take_example);
    cli_bar_end(&r->bar);
    free(texts);
    return e ? e : r->e;
}

enum err eval_route_open(struct eval_route *r, struct cli *c,
                         const struct eval_plan *plan, struct eval_run *out,
                         struct why *why)
{
    struct eval_fleet_opts opts = {.cli = c,
                                   .model = &r->model,
                                   .set = plan->set,
                                   .config = plan->config,
                                   .relation = plan->relation,
                                   .default_agent = plan->default_agent};
    enum err e;

    *r = (struct eval_route){.cli = c, .plan = plan, .run = out, .why = why};
    e = eval_model_open(&r->model, plan->kind, plan->config, why);
    if (!e && plan->shots)
        e = route_choose_shots(r);
    opts.examples = r->shots;
    if (!e)
        e = eval_fleet_open(&r->fleet, &opts, why);
    if (!e)
        e = route_run_queries(r);
    if (e)
        return e;
    out->first = eval_model_stamp(&r->model);
    out->has_levels = eval_fleet_has_levels(r->fleet);
    out->is_auto = eval_fleet_settings(r->fleet)->is_auto;
    out->threshold = eval_fleet_settings(r->fleet)->threshold;
    return OK;
}

void eval_route_close(struct eval_route *r)
{
    eval_fleet_close(r->fleet);
    eval_model_close(&r->model);
    eval_vectors_fini(&r->queries);
    eval_vectors_fini(&r->examples);
    free(r->shots);
    free(r->shot_texts);
    free(r->took_us);
}

enum err eval_route(struct cli *c, const struct eval_plan *plan,
                    struct eval_run *out, struct why *why)
{
    struct eval_route r;
    enum err e = eval_route_open(&r, c, plan, out, why);

    if (!e && (plan->n_checkpoints || plan->capture))
        e = eval_route_embed_queries(&r);
    if (!e && plan->n_checkpoints)
        e = eval_learn(&r);
    if (!e && plan->capture)
        e = plan->capture == EVAL_QUESTIONS ? eval_capture_questions(&r)
                                            : eval_capture(&r);
    eval_route_close(&r);
    return e;
}
