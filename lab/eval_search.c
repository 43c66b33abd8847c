/* Agents are indexed as in a registry: each skill is a document, and the agent
 * itself one more, each with the vector of its text. Examples outside of skills
 * are not on a card, so a search does not know them.
 *
 * Time is measured for the queries only, including the search. */
#include "lab/eval_search.h"

#include <stdlib.h>

#include "base/vec.h"
#include "lab/eval_model.h"
#include "model/card.h"

/* A fixed seed: words in a local file are not an attack on the table. */
static const uint64_t index_seed[2] = {0x5ea2c4, 0x1dea};

enum { TEXT_BYTES_MAX = EVAL_LINE_MAX + 1024 };

struct search {
    struct cli *cli;
    const struct eval_plan *plan;
    struct eval_run *run;
    struct index *index;
    struct eval_model model;
    struct str *texts; /* of all documents: each agent, then its skills */
    size_t n_texts;
    uint8_t *rows; /* their vectors, packed */
    uint32_t dims;
    struct arena arena;
    struct cli_bar bar;
    enum err e; /* of a callback */
    struct why *why;
};

/* The agents. */

static struct agent search_card(const struct eval_agent *a)
{
    return (struct agent){.name = a->name,
                          .description = a->description,
                          .visibility = VISIBILITY_PUBLIC,
                          .skills = a->skills,
                          .n_skills = a->n_skills};
}

/* The text of an agent, or of one of its skills. */
static bool search_add_text(struct search *s, const struct agent *a,
                            const struct skill *skill)
{
    struct buf text;
    char *p;

    buf_init(&text, TEXT_BYTES_MAX);
    if (skill)
        card_skill_text(&text, skill);
    else
        card_search_text(&text, a);
    p = text.over ? NULL : arena_strdup(&s->arena, buf_str(&text));
    if (p)
        s->texts[s->n_texts++] = (struct str){p, text.n};
    buf_fini(&text);
    return p != NULL;
}

static enum err search_list_texts(struct search *s)
{
    const struct eval_set *set = s->plan->set;
    size_t n = set->n_agents;

    for (size_t i = 0; i < set->n_agents; i++)
        n += set->agents[i].n_skills;
    s->texts = calloc(n + 1, sizeof(*s->texts));
    if (!s->texts)
        return why_err(s->why, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < set->n_agents; i++) {
        struct agent a = search_card(&set->agents[i]);
        bool is_good = search_add_text(s, &a, NULL);

        for (size_t k = 0; k < a.n_skills && is_good; k++)
            is_good = search_add_text(s, &a, &a.skills[k]);
        if (!is_good)
            return why_err(s->why, ERR_NOMEM, "out of memory");
    }
    return OK;
}

static void search_take_row(void *ctx, size_t i, const float *vector,
                            uint32_t dims)
{
    struct search *s = ctx;

    cli_bar_step(&s->bar);
    if (!vector || s->e)
        return;
    if (!s->rows) {
        s->dims = dims;
        s->rows = calloc(s->n_texts, vec_packed_bytes(dims));
    }
    if (!s->rows || dims != s->dims)
        s->e = why_err(s->why, ERR_NOMEM, "out of memory");
    else
        (void)vec_pack(vector, dims, s->rows + i * vec_packed_bytes(dims));
}

static enum err search_embed_agents(struct search *s)
{
    enum err e =
        eval_model_open(&s->model, s->plan->kind, s->plan->config, s->why);

    if (!e)
        e = search_list_texts(s);
    if (e)
        return e;
    cli_bar_count(&s->bar, s->cli, "embedding the agents", s->n_texts);
    e = eval_model_embed(&s->model, s->texts, s->n_texts, EMBED_DOCUMENT,
                         search_take_row, s, s->why);
    cli_bar_end(&s->bar);
    return e ? e : s->e;
}

static enum err search_fill(struct search *s)
{
    const struct eval_set *set = s->plan->set;
    size_t at = 0;

    s->index = index_new(INDEX_DOCS_MAX, index_seed);
    if (!s->index)
        return why_err(s->why, ERR_NOMEM, "out of memory");
    if (s->rows)
        index_set_dims(s->index, s->dims);
    for (size_t i = 0; i < set->n_agents; i++) {
        struct agent a = search_card(&set->agents[i]);
        struct index_change *change;
        const uint8_t *rows =
            s->rows ? s->rows + at * vec_packed_bytes(s->dims) : NULL;
        enum err e = index_prepare(s->index, &a, rows, &change);

        if (e == ERR_LIMIT)
            return why_err(s->why, e,
                           "there are more agents and skills than an index can "
                           "hold");
        if (e)
            return why_err(s->why, ERR_NOMEM, "out of memory");
        index_put(s->index, (uint32_t)i, change);
        at += 1 + a.n_skills;
    }
    return OK;
}

/* The queries. */

/* The index scales weights with a sum above one to a sum of one, so the scaled
 * ones are shown. */
struct eval_formula eval_formula(const struct eval_plan *plan)
{
    const struct config *c = plan->config;
    double semantic = c->search.semantic_weight, text = c->search.text_weight;
    double sum = semantic + text > 1 ? semantic + text : 1;

    if (plan->mode == EVAL_TEXT)
        return (struct eval_formula){.mode = INDEX_TEXT, .text = 1};
    if (plan->mode == EVAL_SEMANTIC)
        return (struct eval_formula){.mode = INDEX_SEMANTIC, .semantic = 1};
    return (struct eval_formula){.mode = INDEX_HYBRID,
                                 .fusion = c->search.fusion == CONFIG_FUSION_RRF
                                               ? INDEX_RRF
                                               : INDEX_WEIGHTED,
                                 .semantic = semantic / sum,
                                 .text = text / sum};
}

static void search_run_query(struct search *s, size_t i, const float *vector)
{
    struct eval_formula f = eval_formula(s->plan);
    struct index_query q = {.text = s->plan->set->queries[i].text,
                            .vector = vector,
                            .mode = f.mode,
                            .fusion = f.fusion,
                            .semantic_weight = (float)f.semantic,
                            .text_weight = (float)f.text,
                            .sees_all = true};
    struct eval_ranked *r = &s->run->outcomes[i].ranked;
    struct index_hit hit;

    cli_bar_step(&s->bar);
    if (s->e)
        return;
    if (index_search_begin(s->index, &q)) {
        s->e = why_err(s->why, ERR_NOMEM, "out of memory");
        return;
    }
    while (r->n < EVAL_TOP && index_next(s->index, &hit)) {
        r->agents[r->n] = hit.number;
        r->scores[r->n++] = hit.score;
    }
    index_search_end(s->index);
    s->run->n_empty += !r->n;
}

static void search_take_query(void *ctx, size_t i, const float *vector,
                              uint32_t dims)
{
    struct search *s = ctx;

    search_run_query(s, i, dims == s->dims ? vector : NULL);
}

static enum err search_run_queries(struct search *s)
{
    const struct eval_set *set = s->plan->set;
    double began_s = cli_mono_s();
    struct str *texts =
        eval_query_texts(set->queries, set->n_queries, SIZE_MAX);
    enum err e = OK;

    if (!texts)
        return why_err(s->why, ERR_NOMEM, "out of memory");
    cli_bar_count(&s->bar, s->cli, "answering the queries", set->n_queries);
    if (s->plan->mode != EVAL_TEXT)
        e = eval_model_embed(&s->model, texts, set->n_queries, EMBED_QUERY,
                             search_take_query, s, s->why);
    else
        for (size_t i = 0; i < set->n_queries; i++)
            search_run_query(s, i, NULL);
    cli_bar_end(&s->bar);
    free(texts);
    s->run->seconds = cli_mono_s() - began_s;
    return e ? e : s->e;
}

enum err eval_search(struct cli *c, const struct eval_plan *plan,
                     struct eval_run *out, struct why *why)
{
    struct search s = {.cli = c, .plan = plan, .run = out, .why = why};
    bool has_model = plan->mode != EVAL_TEXT;
    enum err e = OK;

    arena_init(&s.arena, (size_t)4 * EVAL_FILE_MAX);
    if (has_model)
        e = search_embed_agents(&s);
    if (!e)
        e = search_fill(&s);
    if (!e)
        e = search_run_queries(&s);
    if (!e && has_model)
        out->first = eval_model_stamp(&s.model);
    eval_model_close(&s.model);
    index_free(s.index);
    arena_fini(&s.arena);
    free(s.texts);
    free(s.rows);
    return e;
}
