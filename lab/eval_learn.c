/* Simulates learning: a stream of queries is decided one by one, and each
 * outcome is learnt before the next query. Only the chosen agent is judged. If
 * it was wrong, an override names a right one, the highest in the list, as a
 * user who looks at the list would. At each checkpoint the test queries are
 * decided, without learning from them.
 *
 * The stream is a separate file, or the test itself in folds: each fold is
 * decided after learning from all others. */
#include "lab/eval_route.h"

#include <stdlib.h>

#include "base/clock.h"

enum { MINUTE_MS = 60 * 1000 };

void eval_shuffle(uint32_t *order, size_t n, uint64_t seed)
{
    struct rand_seeded state = {seed};
    struct rand rand = rand_seeded(&state);

    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    for (size_t i = n; i > 1; i--) {
        size_t at = rand_u64(rand) % i;
        uint32_t t = order[i - 1];

        order[i - 1] = order[at];
        order[at] = t;
    }
}

static uint32_t learn_right_agent(const struct eval_query *q,
                                  const struct eval_choice *c)
{
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < q->n_agents; k++)
            if (q->agents[k] == c->best[i].agent)
                return q->agents[k];
    return q->n_agents ? q->agents[0] : EVAL_NOBODY;
}

static enum err learn_query(struct eval_route *r, struct eval_stream *s)
{
    uint32_t number = s->order[s->n_done];
    const struct eval_query *q = &s->queries[number];
    struct str vector = eval_vector(s->vectors, number);
    struct str text = eval_head(q->text);
    struct eval_gate gate = {.n = 0};
    struct eval_choice c;
    bool is_right, is_correction;
    enum err e = eval_fleet_decide(r->fleet, text, vector, s->now_ms, &c);

    if (e)
        return e;
    is_right = eval_gate_count(&gate, q, &c);
    e = eval_fleet_teach(r->fleet, text, vector, s->now_ms, &c, is_right,
                         learn_right_agent(q, &c), &is_correction);
    s->n_corrections += !e && is_correction;
    s->n_done++;
    s->now_ms += MINUTE_MS;
    return e;
}

enum err eval_stream_to(struct eval_route *r, struct eval_stream *s,
                        size_t outcomes)
{
    enum err e = OK;

    while (!e && s->n_done < s->n && s->n_done < outcomes)
        e = learn_query(r, s);
    return e;
}

/* Decides n queries of the test with everything learnt so far. */
static enum err learn_run_queries(struct eval_route *r, const uint32_t *order,
                                  size_t n, int64_t now_ms,
                                  struct eval_gate *gate)
{
    const struct eval_set *set = r->plan->set;
    enum err e = OK;

    for (size_t i = 0; i < n && !e; i++) {
        const struct eval_query *q = &set->queries[order[i]];
        struct eval_choice c;

        e = eval_fleet_decide(r->fleet, eval_head(q->text),
                              eval_vector(&r->queries, order[i]), now_ms, &c);
        if (!e)
            (void)eval_gate_count(gate, q, &c);
        cli_bar_step(&r->bar);
    }
    return e;
}

/* Runs a stream and its test at every checkpoint. A short stream ends the list
 * at its last outcome. */
static enum err learn_run_stream(struct eval_route *r, struct eval_stream *s,
                                 const uint32_t *test, size_t n_test)
{
    struct eval_run *run = r->run;
    enum err e = OK;

    eval_fleet_forget(r->fleet);
    for (size_t i = 0; i < r->plan->n_checkpoints && !e; i++) {
        struct eval_checkpoint *p = &run->checkpoints[i];
        struct learn_stats stats;

        e = eval_stream_to(r, s, r->plan->checkpoints[i]);
        if (!e)
            e = learn_run_queries(r, test, n_test, s->now_ms, &p->gate);
        stats = learn_stats(eval_fleet_learn(r->fleet));
        if (!p->outcomes || s->n_done < p->outcomes)
            p->outcomes = s->n_done;
        p->corrections += s->n_corrections;
        p->examples += stats.examples;
        p->types += stats.types;
        if (run->n_checkpoints < i + 1)
            run->n_checkpoints = i + 1;
        if (s->n_done == s->n)
            break;
    }
    return e;
}

static enum err learn_from_train(struct eval_route *r, uint32_t *order,
                                 uint32_t *test)
{
    const struct eval_set *set = r->plan->set;
    struct eval_stream s = {.queries = set->examples,
                            .vectors = &r->examples,
                            .order = order,
                            .n = set->n_examples,
                            .now_ms = EVAL_BEGIN_MS};
    enum err e = eval_route_embed_examples(r);

    if (e)
        return e;
    for (size_t i = 0; i < set->n_queries; i++)
        test[i] = (uint32_t)i;
    eval_shuffle(order, set->n_examples, r->plan->order);
    cli_bar_count(&r->bar, r->cli, "learning",
                  r->plan->n_checkpoints * set->n_queries);
    return learn_run_stream(r, &s, test, set->n_queries);
}

/* Each fold learns from those before and after it. */
static enum err learn_from_folds(struct eval_route *r, uint32_t *order,
                                 uint32_t *all)
{
    const struct eval_set *set = r->plan->set;
    size_t n = set->n_queries, k = r->plan->folds;
    enum err e = OK;

    eval_shuffle(all, n, r->plan->order);
    cli_bar_count(&r->bar, r->cli, "learning", r->plan->n_checkpoints * n);
    for (size_t i = 0; i < k && !e; i++) {
        size_t from = n * i / k, to = n * (i + 1) / k;
        struct eval_stream s = {.queries = set->queries,
                                .vectors = &r->queries,
                                .order = order,
                                .n = n - (to - from),
                                .now_ms = EVAL_BEGIN_MS};

        memcpy(order, all, from * sizeof(*order));
        memcpy(order + from, all + to, (n - to) * sizeof(*order));
        e = learn_run_stream(r, &s, all + from, to - from);
    }
    return e;
}

enum err eval_learn(struct eval_route *r)
{
    const struct eval_set *set = r->plan->set;
    size_t n = set->n_queries + set->n_examples + 1;
    uint32_t *order = calloc(n, sizeof(*order));
    uint32_t *test = calloc(n, sizeof(*test));
    enum err e;

    if (!order || !test)
        e = ERR_NOMEM;
    else if (r->plan->folds)
        e = learn_from_folds(r, order, test);
    else
        e = learn_from_train(r, order, test);
    cli_bar_end(&r->bar);
    free(order);
    free(test);
    return e == ERR_NOMEM ? why_err(r->why, e, "out of memory") : e;
}
