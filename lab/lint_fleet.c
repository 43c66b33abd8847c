/* Vectors and index are made as the registry makes them. A server shows an
 * agent's prompt only to its creator, so other users compare without it. */
#include "lab/lint_fleet.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/vec.h"
#include "cli/client.h"
#include "model/card.h"
#include "registry/registry.h"
#include "server/settings.h"

enum {
    ARENA_BYTES = 512 * 1024 * 1024,
    MEANS_BYTES = 64 * 1024 * 1024,
    TRIES_MAX = 4000, /* each is compared with every agent */
    TRIES_PER_AGENT = 16,
};

static const uint64_t seed[2] = {0x11a7, 0xf1ee7};

void lint_agents_init(struct lint_agents *h, struct cli *c,
                      const struct config *config)
{
    *h = (struct lint_agents){.cli = c, .config = config};
    arena_init(&h->arena, ARENA_BYTES);
    h->settings = settings_route(config).choose;
}

void lint_agents_fini(struct lint_agents *h)
{
    eval_model_close(&h->model);
    index_free(h->fleet.index);
    free(h->agents);
    free(h->known);
    free(h->tries);
    free(h->vectors);
    free(h->try_rows);
    arena_fini(&h->arena);
}

/* The agents. */

static bool lint_reserve_agent(struct lint_agents *h)
{
    size_t cap = h->cap ? 2 * h->cap : 64;
    void *p;

    if (h->n < h->cap)
        return true;
    p = realloc(h->agents, cap * sizeof(*h->agents));
    if (!p)
        return false;
    h->agents = p;
    p = realloc(h->known, cap * sizeof(*h->known));
    if (!p)
        return false;
    h->known = p;
    h->cap = cap;
    return true;
}

bool lint_agents_add_configured(struct lint_agents *h)
{
    for (size_t i = 0; i < h->config->agents.n; i++) {
        if (!lint_reserve_agent(h))
            return false;
        h->known[h->n] = (struct lint_known){.state = AGENT_IDLE};
        h->agents[h->n++] = h->config->agents.list[i];
    }
    h->fleet.is_configured = true;
    h->against = (struct advice_against){
        .models = h->config->models.list,
        .n_models = h->config->models.n,
        .guard = {h->config->outgoing.allow.list, h->config->outgoing.allow.n}};
    h->fleet.against = &h->against;
    return true;
}

static bool lint_skip_card(struct lint_agents *h, const struct json *card)
{
    struct str name = cli_field(card, STR("name"));

    if (h->n_left_out++ >= LINT_LEFT_OUT_SHOWN)
        return true;
    return arena_keep(&h->arena, name, &h->left_out[h->n_left_out - 1]);
}

bool lint_agents_add(struct lint_agents *h, const struct json *card)
{
    const struct card_opts opts = {.dialect = CARD_WIRE,
                                   .rights = CARD_MAY_ALL};
    struct card_problems problems;
    struct lint_known *known;
    enum err e;

    if (h->n == LINT_AGENTS_MAX)
        return lint_skip_card(h, card);
    if (!lint_reserve_agent(h))
        return false;
    e = card_read(&h->arena, card, &opts, &h->agents[h->n], &problems);
    if (e == ERR_NOMEM)
        return false;
    if (e)
        return lint_skip_card(h, card);
    known = &h->known[h->n++];
    *known = (struct lint_known){
        .state = agent_state_of(cli_field(card, STR("state")))};
    return arena_keep(&h->arena, cli_field(card, STR("state_reason")),
                      &known->reason);
}

bool lint_agents_needs_server(const struct lint_agents *h, size_t i)
{
    const struct agent *a = &h->agents[i];
    struct agent_url url;

    return a->wake.url.n || (agent_url_read(a->url, &url, NULL) == OK &&
                             (url.transport == TRANSPORT_MODEL ||
                              url.transport == TRANSPORT_HTTP));
}

bool lint_agents_warn(struct lint_agents *h, size_t i,
                      const struct json *warnings)
{
    struct advice *advice;

    if (!warnings || warnings->type != JSON_ARR)
        return true;
    advice = arena_array(&h->arena, 1, sizeof(*advice));
    if (!advice)
        return false;
    advice->n = 0;
    JSON_EACH(kid, warnings)
    {
        struct advice_warning *w = &advice->list[advice->n];

        if (advice->n == ADVICE_MAX)
            break;
        w->field = "";
        w->code = arena_strdup(&h->arena, cli_field(kid, STR("code")));
        if (!w->code)
            return false;
        snprintf(w->message, sizeof(w->message), "%.*s",
                 STR_ARG(cli_field(kid, STR("message"))));
        advice->n++;
    }
    h->known[i].advice = advice;
    return true;
}

/* Vectors. */

struct embedding {
    struct lint_agents *h;
    const struct str *texts;
    size_t n;
    uint8_t *rows; /* their vectors, packed; owned by the caller */
    struct cli_bar bar;
    bool is_out_of_memory;
};

static void lint_take_vector(void *ctx, size_t i, const float *vector,
                             uint32_t dims)
{
    static const float zero[INDEX_DIMS_MAX]; /* similar to no vector */
    struct embedding *e = ctx;
    size_t each = vec_packed_bytes(dims);

    cli_bar_step(&e->bar);
    if (!e->rows) {
        e->rows = calloc(e->n, each);
        e->h->fleet.dims = dims;
        e->h->fleet.quick = eval_model_stamp(&e->h->model).quick_dims;
    }
    if (!e->rows || dims != e->h->fleet.dims)
        e->is_out_of_memory = true;
    else
        (void)vec_pack(vector ? vector : zero, dims, e->rows + i * each);
}

static enum err lint_embed(struct embedding *e, enum embed_use use,
                           struct why *why)
{
    enum err err;

    cli_bar_count(&e->bar, e->h->cli, "reading the agents", e->n + 1);
    err = eval_model_embed(&e->h->model, e->texts, e->n, use, lint_take_vector,
                           e, why);
    cli_bar_end(&e->bar);
    if (!err && e->is_out_of_memory)
        err = why_err(why, ERR_NOMEM, "out of memory");
    return err;
}

/* The texts of all agents, one after another. */
static struct str *lint_list_texts(struct lint_agents *h, size_t *n,
                                   size_t *counts)
{
    struct strs *each = arena_array(&h->arena, h->n + 1, sizeof(*each));
    struct str *all;

    *n = 0;
    for (size_t i = 0; each && i < h->n; i++) {
        if (registry_texts(&h->arena, &h->agents[i], &each[i]))
            return NULL;
        counts[i] = each[i].n;
        *n += each[i].n;
    }
    all = each ? arena_array(&h->arena, *n + 1, sizeof(*all)) : NULL;
    for (size_t i = 0, at = 0; all && i < h->n; at += counts[i++])
        memcpy(all + at, each[i].list, counts[i] * sizeof(*all));
    return all;
}

/* The vector of the whole agent, for twins. */
static void vector_unpack(const uint8_t *packed, uint32_t dims, float *out)
{
    struct vec_packed v;

    if (!vec_packed_open(&v, packed, vec_packed_bytes(dims), dims))
        return;
    for (size_t i = 0; i < dims; i++)
        out[i] = v.scale * (float)(256 * v.high[i] + v.low[i]);
}

static bool lint_put_agent(struct lint_agents *h, size_t i, struct str packed,
                           struct buf *means)
{
    uint32_t dims = h->fleet.dims;
    struct agent a = h->agents[i];
    struct index_change *change;
    const uint8_t *rows;

    buf_clear(means);
    if (packed.n && !registry_means(&a, packed, dims, h->fleet.quick, means))
        return false;
    rows = packed.n ? (const uint8_t *)means->p : NULL;
    a.visibility = VISIBILITY_PUBLIC; /* here all agents are visible */
    if (index_prepare(h->fleet.index, &a, rows, &change))
        return false;
    if (rows) {
        rows += (a.n_skills + 1) * vec_packed_bytes(dims);
        index_change_profile(h->fleet.index, change, rows);
        vector_unpack(rows, dims, h->vectors + i * dims);
    }
    index_put(h->fleet.index, (uint32_t)i, change);
    return true;
}

static bool lint_put_agents(struct lint_agents *h, const uint8_t *rows,
                            const size_t *counts)
{
    size_t each = vec_packed_bytes(h->fleet.dims);
    bool is_good = true;
    struct buf means;

    h->vectors = calloc(h->n * h->fleet.dims + 1, sizeof(*h->vectors));
    h->fleet.index = index_new(INDEX_DOCS_MAX, seed);
    if (!h->vectors || !h->fleet.index)
        return false;
    index_set_parts(h->fleet.index, h->fleet.dims, h->fleet.quick);
    buf_init(&means, MEANS_BYTES);
    for (size_t i = 0; is_good && i < h->n; i++) {
        size_t n = rows ? counts[i] * each : 0;

        is_good =
            lint_put_agent(h, i, (struct str){(const char *)rows, n}, &means);
        rows = rows ? rows + n : NULL;
    }
    buf_fini(&means);
    return is_good;
}

static enum err lint_embed_agents(struct lint_agents *h, struct why *why)
{
    size_t *counts = mem_array(h->n, sizeof(*counts));
    struct embedding e = {.h = h};
    enum err err;

    e.texts = lint_list_texts(h, &e.n, counts);
    err = e.texts ? lint_embed(&e, EMBED_DOCUMENT, why)
                  : why_err(why, ERR_NOMEM, "out of memory");
    if (!err && !lint_put_agents(h, e.rows, counts))
        err = why_err(why, ERR_NOMEM, "out of memory");
    free(e.rows);
    free(counts);
    return err;
}

/* Examples, or the description of an agent without any. */

static void lint_add_try(struct lint_agents *h, uint32_t agent, struct str text,
                         bool is_description)
{
    if (text.n)
        h->tries[h->fleet.n_tries++] = (struct lint_try){
            .agent = agent, .text = text, .is_description = is_description};
}

static void lint_list_agent_tries(struct lint_agents *h, uint32_t i,
                                  size_t most)
{
    const struct agent *a = &h->agents[i];
    size_t before = h->fleet.n_tries;

    for (size_t k = 0; k < a->n_skills; k++)
        for (size_t m = 0; m < a->skills[k].examples.n; m++)
            if (h->fleet.n_tries - before < most)
                lint_add_try(h, i, a->skills[k].examples.list[m], false);
    if (h->fleet.n_tries == before)
        lint_add_try(h, i, a->description, true);
}

static enum err lint_list_tries(struct lint_agents *h, struct why *why)
{
    size_t most = h->n ? TRIES_MAX / h->n : 0, each;
    struct embedding e = {.h = h};
    struct str *texts;
    enum err err;

    if (most > TRIES_PER_AGENT)
        most = TRIES_PER_AGENT;
    if (!most)
        most = 1;
    h->tries = mem_array(h->n * most, sizeof(*h->tries));
    texts = arena_array(&h->arena, h->n * most + 1, sizeof(*texts));
    if (!texts)
        return why_err(why, ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < h->n; i++)
        lint_list_agent_tries(h, i, most);
    for (size_t i = 0; i < h->fleet.n_tries; i++)
        texts[i] = h->tries[i].text;
    e.texts = texts;
    e.n = h->fleet.n_tries;
    err = lint_embed(&e, EMBED_QUERY, why);
    h->try_rows = e.rows;
    each = vec_packed_bytes(h->fleet.dims);
    for (size_t i = 0; !err && e.rows && i < e.n; i++)
        h->tries[i].vector =
            (struct str){(const char *)e.rows + i * each, each};
    return err;
}

/* With "auto", cards get their levels from the reference texts, as in a server.
 * If the provider cannot embed them, cards have no cutoffs. */
static void lint_embed_reference(struct lint_agents *h)
{
    struct str texts[EMBED_REFERENCE_MAX];
    struct embedding e = {.h = h, .texts = texts};
    struct why why = {""};

    if (!h->settings.is_auto || !h->fleet.dims)
        return;
    e.n = embed_reference(texts);
    if (!lint_embed(&e, EMBED_QUERY, &why) && e.rows &&
        !index_set_reference(h->fleet.index, e.rows, e.n))
        (void)index_level_some(h->fleet.index, SIZE_MAX);
    free(e.rows);
}

enum err lint_agents_build(struct lint_agents *h, struct why *why)
{
    enum err e = eval_model_open(
        &h->model, (enum embed_kind)h->config->embed.kind, h->config, why);

    if (!e)
        e = lint_embed_agents(h, why);
    if (!e)
        e = lint_list_tries(h, why);
    if (!e)
        lint_embed_reference(h);
    h->fleet.agents = h->agents;
    h->fleet.known = h->fleet.is_configured ? NULL : h->known;
    h->fleet.n = h->n;
    h->fleet.vectors = h->vectors;
    h->fleet.tries = h->tries;
    h->fleet.settings = &h->settings;
    return e;
}
