/* An agent is routed by the mean of what it says: its profile with keywords and
 * prompt, its skills, and their examples. Of a server's agents the prompt is
 * known to their creators only, so others compare without it. */
#include "cli/lint_fleet.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "cli/client.h"
#include "model/card.h"
#include "settings.h"

enum {
    ARENA_BYTES = 512 * 1024 * 1024,
    TEXT_BYTES = 256 * 1024,
    TRIES_MAX = 4000, /* each is compared with every agent */
    TRIES_PER_AGENT = 16,
};

static const uint64_t seed[2] = {0x11a7, 0xf1ee7};

void lint_house_init(struct lint_house *h, struct cli *c,
                     const struct config *config)
{
    *h = (struct lint_house){.cli = c, .config = config};
    arena_init(&h->arena, ARENA_BYTES);
    h->settings = settings_route(config).choose;
}

void lint_house_fini(struct lint_house *h)
{
    eval_model_close(&h->model);
    index_free(h->fleet.index);
    free(h->agents);
    free(h->states);
    free(h->tries);
    free(h->vectors);
    free(h->try_vectors);
    arena_fini(&h->arena);
}

/* Who they are. */

static bool has_room(struct lint_house *h)
{
    size_t cap = h->cap ? 2 * h->cap : 64;
    void *p;

    if (h->n < h->cap)
        return true;
    p = realloc(h->agents, cap * sizeof(*h->agents));
    if (!p)
        return false;
    h->agents = p;
    p = realloc(h->states, cap * sizeof(*h->states));
    if (!p)
        return false;
    h->states = p;
    h->cap = cap;
    return true;
}

bool lint_house_take_configured(struct lint_house *h)
{
    for (size_t i = 0; i < h->config->agents.n; i++) {
        if (!has_room(h))
            return false;
        h->states[h->n] = AGENT_IDLE;
        h->agents[h->n++] = h->config->agents.list[i];
    }
    h->fleet.is_configured = true;
    return true;
}

bool lint_house_take(struct lint_house *h, const struct json *card)
{
    const struct card_opts opts = {.dialect = CARD_WIRE,
                                   .rights = CARD_MAY_ALL};
    struct card_problems problems;
    enum err e;

    if (h->n == LINT_AGENTS_MAX) {
        h->n_left_out++;
        return true;
    }
    if (!has_room(h))
        return false;
    e = card_read(&h->arena, card, &opts, &h->agents[h->n], &problems);
    if (e == ERR_NOMEM)
        return false;
    if (e) {
        h->n_left_out++;
        return true;
    }
    h->states[h->n++] = agent_state_of(cli_field(card, STR("state")));
    return true;
}

/* What they are compared by. */

struct embedding {
    struct lint_house *h;
    struct str *texts;
    uint32_t *owners; /* of the texts; NULL: tries */
    size_t n;
    struct cli_bar bar;
    bool is_out_of_memory;
};

static bool add_text(struct embedding *e, uint32_t owner, struct buf *text)
{
    char *copy = text->over ? NULL : arena_strdup(&e->h->arena, buf_str(text));

    if (copy) {
        e->texts[e->n] = (struct str){copy, text->n};
        e->owners[e->n++] = owner;
    }
    buf_clear(text);
    return copy != NULL;
}

static bool add_agent(struct embedding *e, uint32_t i, struct buf *text)
{
    const struct agent *a = &e->h->agents[i];
    bool is_good;

    card_routing_text(text, a);
    is_good = add_text(e, i, text);
    for (size_t k = 0; is_good && k < a->n_skills; k++) {
        card_skill_text(text, &a->skills[k]);
        is_good = add_text(e, i, text);
        for (size_t m = 0; is_good && m < a->skills[k].examples.n; m++) {
            buf_add_str(text, a->skills[k].examples.list[m]);
            is_good = add_text(e, i, text);
        }
    }
    return is_good;
}

static size_t n_texts(const struct lint_house *h)
{
    size_t n = h->n;

    for (size_t i = 0; i < h->n; i++)
        for (size_t k = 0; k < h->agents[i].n_skills; k++)
            n += 1 + h->agents[i].skills[k].examples.n;
    return n;
}

static bool list_texts(struct embedding *e)
{
    size_t n = n_texts(e->h);
    bool is_good = true;
    struct buf text;

    e->texts = calloc(n + 1, sizeof(*e->texts));
    e->owners = calloc(n + 1, sizeof(*e->owners));
    buf_init(&text, TEXT_BYTES);
    for (uint32_t i = 0; e->texts && e->owners && is_good && i < e->h->n; i++)
        is_good = add_agent(e, i, &text);
    buf_fini(&text);
    return is_good && e->texts && e->owners;
}

static void take(void *ctx, size_t i, const float *vector, uint32_t dims)
{
    struct embedding *e = ctx;
    struct lint_house *h = e->h;
    float **all = e->owners ? &h->vectors : &h->try_vectors;
    size_t n = e->owners ? h->n : e->n;
    float *to;

    cli_bar_step(&e->bar);
    if (!vector)
        return;
    if (!*all) {
        *all = calloc(n * dims + 1, sizeof(**all));
        h->fleet.dims = dims;
    }
    if (!*all || dims != h->fleet.dims) {
        e->is_out_of_memory = true;
        return;
    }
    to = *all + (e->owners ? e->owners[i] : i) * dims;
    for (uint32_t k = 0; k < dims; k++)
        to[k] += vector[k];
}

static void make_unit(float *v, uint32_t dims)
{
    double sum = 0;

    for (uint32_t i = 0; i < dims; i++)
        sum += (double)v[i] * (double)v[i];
    for (uint32_t i = 0; sum > 0 && i < dims; i++)
        v[i] = (float)((double)v[i] / sqrt(sum));
}

static enum err embed(struct embedding *e, enum embed_use use, struct why *why)
{
    struct lint_house *h = e->h;
    float *const *all = e->owners ? &h->vectors : &h->try_vectors;
    size_t n = e->owners ? h->n : e->n;
    enum err err;

    cli_bar_count(&e->bar, h->cli, "reading the agents", e->n + 1);
    err = eval_model_embed(&h->model, e->texts, e->n, use, take, e, why);
    cli_bar_end(&e->bar);
    if (!err && e->is_out_of_memory)
        err = why_err(why, ERR_NOMEM, "out of memory");
    for (size_t i = 0; !err && *all && i < n; i++)
        make_unit(*all + i * h->fleet.dims, h->fleet.dims);
    return err;
}

static enum err embed_agents(struct lint_house *h, struct why *why)
{
    struct embedding e = {.h = h};
    enum err err = list_texts(&e) ? embed(&e, EMBED_DOCUMENT, why)
                                  : why_err(why, ERR_NOMEM, "out of memory");

    free(e.texts);
    free(e.owners);
    return err;
}

/* Their own examples; of one that has none, what it says of itself. */

static void add_try(struct lint_house *h, uint32_t agent, struct str text,
                    bool is_description)
{
    if (text.n)
        h->tries[h->fleet.n_tries++] = (struct lint_try){
            .agent = agent, .text = text, .is_description = is_description};
}

static void list_tries_of(struct lint_house *h, uint32_t i, size_t most)
{
    const struct agent *a = &h->agents[i];
    size_t before = h->fleet.n_tries;

    for (size_t k = 0; k < a->n_skills; k++)
        for (size_t m = 0; m < a->skills[k].examples.n; m++)
            if (h->fleet.n_tries - before < most)
                add_try(h, i, a->skills[k].examples.list[m], false);
    if (h->fleet.n_tries == before)
        add_try(h, i, a->description, true);
}

static enum err list_tries(struct lint_house *h, struct why *why)
{
    size_t most = h->n ? TRIES_MAX / h->n : 0;
    struct embedding e = {.h = h};
    enum err err;

    if (most > TRIES_PER_AGENT)
        most = TRIES_PER_AGENT;
    if (!most)
        most = 1;
    h->tries = calloc(h->n * most + 1, sizeof(*h->tries));
    e.texts = calloc(h->n * most + 1, sizeof(*e.texts));
    if (!h->tries || !e.texts) {
        free(e.texts);
        return why_err(why, ERR_NOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < h->n; i++)
        list_tries_of(h, i, most);
    e.n = h->fleet.n_tries;
    for (size_t i = 0; i < e.n; i++)
        e.texts[i] = h->tries[i].text;
    err = embed(&e, EMBED_QUERY, why);
    for (size_t i = 0; !err && h->try_vectors && i < e.n; i++)
        h->tries[i].vector = h->try_vectors + i * h->fleet.dims;
    free(e.texts);
    return err;
}

static enum err list_words(struct lint_house *h, struct why *why)
{
    h->fleet.index = index_new(INDEX_DOCS_MAX, seed);
    for (size_t i = 0; h->fleet.index && i < h->n; i++) {
        struct agent a = h->agents[i];
        struct index_change *change;

        a.visibility = VISIBILITY_PUBLIC; /* who asks here sees them all */
        if (index_prepare(h->fleet.index, &a, NULL, &change))
            return why_err(why, ERR_NOMEM, "out of memory");
        index_put(h->fleet.index, (uint32_t)i, change);
    }
    return h->fleet.index ? OK : why_err(why, ERR_NOMEM, "out of memory");
}

enum err lint_house_close(struct lint_house *h, struct why *why)
{
    enum err e = eval_model_open(
        &h->model, (enum embed_kind)h->config->embed.kind, h->config, why);

    if (!e)
        e = embed_agents(h, why);
    if (!e)
        e = list_tries(h, why);
    if (!e)
        e = list_words(h, why);
    h->fleet.agents = h->agents;
    h->fleet.states = h->fleet.is_configured ? NULL : h->states;
    h->fleet.n = h->n;
    h->fleet.vectors = h->vectors;
    h->fleet.tries = h->tries;
    h->fleet.settings = &h->settings;
    return e;
}
