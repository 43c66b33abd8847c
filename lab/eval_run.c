/* An agent has several texts: its profile, skills and examples. Its vector is
 * their mean. Rejected: using the nearest text. It sounds better and is worse:
 * with five examples each and minilm 79 instead of 86 % of first places on
 * clinc150, 54 instead of 63 % on metatool. It is available for comparison.
 *
 * A query is scored as soon as its vector arrives, which is not kept. Time is
 * measured for the queries only, including scoring. */
#include "lab/eval_run.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "lab/eval_model.h"
#include "lab/eval_route.h"
#include "lab/eval_search.h"

/* The vectors of one agent are adjacent. */
struct vector_span {
    size_t first, n;
};

/* All agents, in the vectors of one model. */
struct agent_vectors {
    struct eval_model model;
    struct vector_span *spans; /* one an agent */
    struct str *texts;         /* of all agents, agent by agent */
    size_t n_texts;
    float *rows; /* a vector each */
    uint32_t dims;
    float *scores; /* of all agents, for the current query */
};

struct eval_job {
    struct cli *cli;
    const struct eval_plan *plan;
    struct eval_run *run;
    struct agent_vectors *field;
    struct str *texts; /* of queries */
    bool is_out_of_memory;
    struct cli_bar bar;
    struct why *why;
};

/* The agents. */

/* Lists the texts of each agent, agent by agent. */
static void eval_list_texts(struct agent_vectors *f,
                            const struct eval_plan *plan,
                            const uint32_t *chosen, const uint32_t *n_chosen)
{
    const struct eval_set *s = plan->set;
    size_t shots = plan->shots;

    for (size_t i = 0; i < s->n_agents; i++) {
        const struct eval_agent *a = &s->agents[i];
        /* An agent without examples uses its own texts. */
        bool has_own = !shots || plan->has_own || !n_chosen[i];

        f->spans[i].first = f->n_texts;
        for (size_t k = 0; shots && k < n_chosen[i]; k++)
            f->texts[f->n_texts++] = s->examples[chosen[i * shots + k]].text;
        for (size_t k = 0; has_own && k < a->n_texts; k++)
            f->texts[f->n_texts++] = s->texts[a->first_text + k];
        f->spans[i].n = f->n_texts - f->spans[i].first;
    }
}

static enum err eval_choose_texts(struct eval_job *j, struct agent_vectors *f)
{
    const struct eval_set *s = j->plan->set;
    size_t shots = j->plan->shots;
    uint32_t *chosen = calloc(s->n_agents * shots + 1, sizeof(*chosen));
    uint32_t *n_chosen = mem_array(s->n_agents, sizeof(*n_chosen));
    enum err e = OK;

    f->spans = calloc(s->n_agents + 1, sizeof(*f->spans));
    f->scores = mem_array(s->n_agents, sizeof(*f->scores));
    f->texts = calloc(s->n_texts + s->n_agents * shots + 1, sizeof(*f->texts));
    if (!chosen || !f->spans || !f->texts) {
        e = why_err(j->why, ERR_NOMEM, "out of memory");
    } else {
        if (shots)
            eval_shots(s, shots, j->plan->seed, chosen, n_chosen);
        eval_list_texts(f, j->plan, chosen, n_chosen);
        j->run->n_few = j->run->n_bare = 0;
        for (size_t i = 0; shots && i < s->n_agents; i++) {
            j->run->n_few += n_chosen[i] && n_chosen[i] < shots;
            j->run->n_bare += !n_chosen[i];
        }
    }
    free(chosen);
    free(n_chosen);
    return e;
}

static void eval_take_row(void *ctx, size_t i, const float *vector,
                          uint32_t dims)
{
    struct eval_job *j = ctx;
    struct agent_vectors *f = j->field;

    cli_bar_step(&j->bar);
    if (!vector)
        return;
    if (!f->rows) {
        f->dims = dims;
        f->rows = calloc(f->n_texts, dims * sizeof(*f->rows));
    }
    if (f->rows && dims == f->dims)
        memcpy(f->rows + i * dims, vector, dims * sizeof(*vector));
    else
        j->is_out_of_memory = true;
}

/* Replaces several vectors by their mean, normalized. */
static void eval_average_rows(struct agent_vectors *f, struct vector_span *s)
{
    float *sum = f->rows + s->first * f->dims;

    for (size_t i = 1; i < s->n; i++)
        for (uint32_t k = 0; k < f->dims; k++)
            sum[k] += sum[i * f->dims + k];
    (void)vec_join(sum, f->dims, eval_model_stamp(&f->model).quick_dims);
    s->n = 1;
}

static enum err agent_vectors_open(struct eval_job *j, struct agent_vectors *f,
                                   enum embed_kind kind)
{
    enum err e = eval_model_open(&f->model, kind, j->plan->config, j->why);

    if (!e)
        e = eval_choose_texts(j, f);
    if (e)
        return e;
    j->field = f;
    cli_bar_count(&j->bar, j->cli, "embedding the agents", f->n_texts);
    e = eval_model_embed(&f->model, f->texts, f->n_texts, EMBED_DOCUMENT,
                         eval_take_row, j, j->why);
    cli_bar_end(&j->bar);
    if (!e && j->is_out_of_memory)
        e = why_err(j->why, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < j->plan->set->n_agents; i++)
        if (!e && f->rows && !j->plan->is_best)
            eval_average_rows(f, &f->spans[i]);
    return e;
}

/* The queries. */

static float eval_best_agents(const struct agent_vectors *f,
                              const struct vec_ops *ops, const float *vector,
                              struct vector_span s)
{
    float best = -2;

    for (size_t i = s.first; i < s.first + s.n; i++) {
        float score = ops->dot(vector, f->rows + i * f->dims, f->dims);

        if (score > best)
            best = score;
    }
    return best < -1 ? 0 : best;
}

static void eval_take_query(void *ctx, size_t i, const float *vector,
                            uint32_t dims)
{
    struct eval_job *j = ctx;
    const struct eval_plan *plan = j->plan;
    const struct vec_ops *ops = vec_ops();
    struct agent_vectors *f = j->field;
    size_t n_agents = plan->set->n_agents;
    struct eval_outcome *o = &j->run->outcomes[i];

    cli_bar_step(&j->bar);
    if (!vector || !f->rows || dims != f->dims) {
        j->run->n_empty++;
        return;
    }
    for (size_t k = 0; k < n_agents; k++)
        f->scores[k] = eval_best_agents(f, ops, vector, f->spans[k]);
    eval_rank(f->scores, n_agents, &o->ranked);
}

static enum err eval_run_queries(struct eval_job *j, struct agent_vectors *f)
{
    const struct eval_set *s = j->plan->set;
    double began_s = cli_mono_s();
    enum err e;

    j->field = f;
    cli_bar_count(&j->bar, j->cli, "answering the queries", s->n_queries);
    e = eval_model_embed(&f->model, j->texts, s->n_queries, EMBED_QUERY,
                         eval_take_query, j, j->why);
    cli_bar_end(&j->bar);
    j->run->seconds = cli_mono_s() - began_s;
    return e;
}

static enum err eval_run_vectors(struct eval_job *j)
{
    struct agent_vectors f = {.n_texts = 0};
    enum err e = agent_vectors_open(j, &f, j->plan->kind);

    if (!e)
        e = eval_run_queries(j, &f);
    if (!e)
        j->run->first = eval_model_stamp(&f.model);
    eval_model_close(&f.model);
    free(f.spans);
    free(f.texts);
    free(f.rows);
    free(f.scores);
    return e;
}

enum err eval_run(struct cli *c, const struct eval_plan *plan,
                  struct eval_run *out, struct why *why)
{
    const struct eval_set *s = plan->set;
    struct eval_job j = {.cli = c, .plan = plan, .run = out, .why = why};
    enum err e;

    *out = (struct eval_run){.n_empty = 0};
    out->outcomes = calloc(s->n_queries + 1, sizeof(*out->outcomes));
    out->decided = calloc(s->n_queries + 1, sizeof(*out->decided));
    j.texts = eval_query_texts(s->queries, s->n_queries, SIZE_MAX);
    for (size_t i = 0; out->outcomes && i < s->n_queries; i++) {
        out->outcomes[i].expected = s->queries[i].agents;
        out->outcomes[i].n_expected = s->queries[i].n_agents;
    }
    if (!out->outcomes || !out->decided || !j.texts)
        e = why_err(why, ERR_NOMEM, "out of memory");
    else if (plan->mode == EVAL_ROUTING)
        e = eval_route(c, plan, out, why);
    else if (plan->mode == EVAL_VECTORS)
        e = eval_run_vectors(&j);
    else
        e = eval_search(c, plan, out, why);
    free(j.texts);
    if (e)
        eval_run_fini(out);
    return e;
}

const char *eval_relation_name(enum eval_relation r)
{
    static const char *const names[] = {"platform", "own", "org", "rated",
                                        "strangers"};

    return names[r];
}

const char *eval_mode_name(enum eval_mode mode)
{
    static const char *const names[] = {"routing", "vectors", "semantic",
                                        "text", "hybrid"};

    return names[mode];
}

void eval_run_fini(struct eval_run *r)
{
    free(r->outcomes);
    free(r->decided);
    *r = (struct eval_run){.n_empty = 0};
}
