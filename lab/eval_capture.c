/* Hostile cards: public cards of a user of another org, made of the texts of
 * the set's agents, which are all that such a user can read.
 *
 *   stuffed   one card: 100, 300 and 800 random words of all cards; and one
 *             with the most frequent words of messages as routing keywords
 *   crowd     30 cards that cover every topic: the texts of similar agents, of
 *             random agents, and exact copies of 30 cards
 *   keywords  cards with their own words as routing keywords: one of 800
 *             random words, and 30 with the texts of similar agents
 *
 * The result is the share of first places that they win of the queries in
 * scope.
 */
#include "lab/eval_route.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/profile.h"

enum {
    CROWD = 30,
    CHANCE = 1,
    TOGETHER_MAX = 12, /* source cards of one card of the crowd */
};

struct capture {
    struct eval_route *route;
    struct arena arena;
    struct buf text;
    struct rand_seeded chance;
    struct str *words; /* of all cards, with repetitions */
    size_t n_words, cap;
    uint32_t *order; /* of agents */
    bool *is_taken;
};

/* Appends the agent's own text. */
static void capture_add_agent_text(struct capture *r, uint32_t i)
{
    const struct eval_agent *a = &r->route->plan->set->agents[i];

    profile_add_words(&r->text, a->name);
    buf_add_char(&r->text, ' ');
    buf_add_str(&r->text, a->description);
}

static bool capture_take_word(struct capture *r, struct str word)
{
    if (r->n_words == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 4096;
        struct str *more = realloc(r->words, cap * sizeof(*more));

        if (!more)
            return false;
        r->words = more;
        r->cap = cap;
    }
    return arena_keep(&r->arena, word, &r->words[r->n_words++]);
}

static enum err capture_gather_words(struct capture *r)
{
    const struct eval_set *s = r->route->plan->set;

    for (uint32_t i = 0; i < s->n_agents; i++) {
        struct str rest;

        buf_clear(&r->text);
        capture_add_agent_text(r, i);
        rest = buf_str(&r->text);
        while (rest.n) {
            struct str word = str_cut(&rest, ' ');

            if (word.n && !capture_take_word(r, word))
                return why_err(r->route->why, ERR_NOMEM, "out of memory");
        }
    }
    return r->text.over ? why_err(r->route->why, ERR_NOMEM, "out of memory")
                        : OK;
}

/* The most frequent words of messages. */
static const struct str common[] = {
    {"a", 1},     {"about", 5}, {"and", 3},    {"any", 3},    {"are", 3},
    {"can", 3},   {"could", 5}, {"do", 2},     {"does", 4},   {"for", 3},
    {"from", 4},  {"get", 3},   {"give", 4},   {"have", 4},   {"hello", 5},
    {"help", 4},  {"hey", 3},   {"how", 3},    {"i", 1},      {"if", 2},
    {"in", 2},    {"is", 2},    {"it", 2},     {"know", 4},   {"like", 4},
    {"me", 2},    {"much", 4},  {"my", 2},     {"need", 4},   {"of", 2},
    {"on", 2},    {"or", 2},    {"please", 6}, {"should", 6}, {"so", 2},
    {"some", 4},  {"tell", 4},  {"that", 4},   {"the", 3},    {"there", 5},
    {"this", 4},  {"time", 4},  {"to", 2},     {"today", 5},  {"up", 2},
    {"want", 4},  {"was", 3},   {"we", 2},     {"what", 4},   {"when", 4},
    {"where", 5}, {"which", 5}, {"who", 3},    {"why", 3},    {"will", 4},
    {"with", 4},  {"would", 5}, {"you", 3},    {"your", 4},
};

/* Decides every query with the hostile cards in place. */
static enum err capture_measure(struct capture *r, const char *how,
                                size_t cards)
{
    struct eval_route *route = r->route;
    const struct eval_set *s = route->plan->set;
    struct eval_raid *out = &route->run->raids[route->run->n_raids++];

    *out = (struct eval_raid){.how = how, .cards = cards, .owners = 1};
    for (size_t i = 0; i < s->n_queries; i++) {
        const struct eval_query *q = &s->queries[i];
        struct eval_choice c;

        if (eval_fleet_decide(route->fleet, eval_head(q->text),
                              eval_vector(&route->queries, i), EVAL_BEGIN_MS,
                              &c))
            return why_err(r->route->why, ERR_NOMEM, "out of memory");
        (void)eval_gate_count(&out->gate, q, &c);
        out->n_captured +=
            q->n_agents && c.n && c.best[0].agent == EVAL_STRANGER;
    }
    return OK;
}

static enum err capture_add_newcomer(struct capture *r, size_t nth,
                                     struct strs keywords)
{
    char name[32];
    struct eval_card card = {.keywords = keywords};

    snprintf(name, sizeof(name), "stranger-%zu", nth);
    card.name = str_of(name);
    card.description = str_head(buf_str(&r->text), AGENT_DESCRIPTION_MAX);
    return eval_fleet_bring(r->route->fleet, &card, r->route->why);
}

/* Different words of the text, up to the limit of keywords. */
static struct strs capture_text_words(struct capture *r, struct str out[])
{
    struct str rest = buf_str(&r->text);
    size_t n = 0;

    while (rest.n && n < AGENT_KEYWORDS_MAX) {
        struct str word = str_cut(&rest, ' ');
        size_t i = 0;

        while (i < n && !str_eq_nocase(out[i], word))
            i++;
        if (i == n && word.n > 2 && word.n <= AGENT_KEYWORD_MAX)
            out[n++] = word;
    }
    return (struct strs){out, n};
}

/* Sets the text to n_words random words of all cards. */
static void capture_stuff_text(struct capture *r, size_t n_words)
{
    struct rand rand = rand_seeded(&r->chance);

    buf_clear(&r->text);
    for (size_t k = 0; k < n_words && r->n_words; k++) {
        buf_add_str(&r->text, r->words[rand_u64(rand) % r->n_words]);
        buf_add_char(&r->text, ' ');
    }
}

static enum err capture_stuffed(struct capture *r)
{
    static const char *const how[] = {"100 words", "300 words", "800 words"};
    static const size_t n_words[] = {100, 300, 800};
    const struct strs keywords = {common, sizeof(common) / sizeof(common[0])};
    enum err e = capture_gather_words(r);

    for (size_t i = 0; i < 3 && !e; i++) {
        capture_stuff_text(r, n_words[i]);
        e = capture_add_newcomer(r, 0, (struct strs){NULL, 0});
        if (!e)
            e = capture_measure(r, how[i], 1);
    }
    if (e)
        return e;
    /* The last card gets the keywords as well. */
    e = capture_add_newcomer(r, 0, keywords);
    return e ? e : capture_measure(r, "800 words, and keywords", 1);
}

/* The crowd. */

/* The similarity of two agents' texts. */
static double capture_similarity(const struct eval_vectors *v, size_t a,
                                 size_t b)
{
    struct str x = eval_vector(v, a), y = eval_vector(v, b);
    struct vec_packed p, q;
    size_t n = v->each > 8 ? (v->each - 8) / 2 : 0;

    if (!x.n || !y.n || !vec_packed_open(&p, (const uint8_t *)x.p, x.n, n) ||
        !vec_packed_open(&q, (const uint8_t *)y.p, y.n, n))
        return 0;
    return vec_packed_dot(&p, &q);
}

/* Appends the texts of `first` and of the n - 1 agents most similar to it. */
static void capture_add_similar(struct capture *r, const struct eval_vectors *v,
                                uint32_t first, size_t n)
{
    size_t n_agents = r->route->plan->set->n_agents;

    for (size_t k = 0; k < n; k++) {
        uint32_t best = first;
        double most = -2;

        for (uint32_t i = 0; k && i < n_agents; i++) {
            double near = r->is_taken[i] ? -2 : capture_similarity(v, first, i);

            if (near > most) {
                most = near;
                best = i;
            }
        }
        if (r->is_taken[best])
            return;
        r->is_taken[best] = true;
        capture_add_agent_text(r, best);
        buf_add_str(&r->text, STR(". "));
    }
}

static enum err capture_bring_similar(struct capture *r,
                                      const struct eval_vectors *v, size_t each,
                                      bool has_keywords)
{
    size_t n_agents = r->route->plan->set->n_agents, n = 0;
    struct str words[AGENT_KEYWORDS_MAX];
    enum err e = OK;

    /* If there are too few agents for the crowd, they are used again. */
    for (uint32_t i = 0; n < CROWD && !e; i++) {
        if (i == n_agents) {
            memset(r->is_taken, 0, n_agents * sizeof(*r->is_taken));
            i = 0;
        }
        if (r->is_taken[i])
            continue;
        buf_clear(&r->text);
        capture_add_similar(r, v, i, each);
        e = capture_add_newcomer(r, n++,
                                 has_keywords ? capture_text_words(r, words)
                                              : (struct strs){NULL, 0});
    }
    return e ? e
             : capture_measure(r,
                               has_keywords
                                   ? "texts of neighbours, and keywords"
                                   : "texts of neighbours",
                               n);
}

static enum err capture_bring_random(struct capture *r, size_t each)
{
    size_t n_agents = r->route->plan->set->n_agents;
    enum err e = OK;

    for (size_t i = 0; i < CROWD && !e; i++) {
        buf_clear(&r->text);
        for (size_t k = 0; k < each; k++) {
            capture_add_agent_text(r, r->order[(i * each + k) % n_agents]);
            buf_add_str(&r->text, STR(". "));
        }
        e = capture_add_newcomer(r, i, (struct strs){NULL, 0});
    }
    return e ? e : capture_measure(r, "texts of any", CROWD);
}

/* A copy needs a name of its own. */
static enum err capture_bring_copies(struct capture *r)
{
    const struct eval_set *s = r->route->plan->set;
    size_t n = s->n_agents < CROWD ? s->n_agents : CROWD;
    enum err e = OK;

    for (size_t i = 0; i < n && !e; i++) {
        const struct eval_agent *a = &s->agents[r->order[i]];
        char name[AGENT_NAME_MAX + 8], old[32];
        struct eval_card card = {.description = a->description};

        snprintf(old, sizeof(old), "stranger-%zu", i);
        snprintf(name, sizeof(name), "%.*s_pro",
                 STR_ARG(str_head(a->name, AGENT_NAME_MAX - 4)));
        card.name = str_of(name);
        e = eval_fleet_remove(r->route->fleet, 0, str_of(old), r->route->why);
        if (!e && !eval_find(s, card.name))
            e = eval_fleet_bring(r->route->fleet, &card, r->route->why);
    }
    return e ? e : capture_measure(r, "copies of others", n);
}

static void capture_take_vector(void *ctx, size_t i, const float *vector,
                                uint32_t dims)
{
    (void)!eval_vectors_put(ctx, i, vector, dims);
}

static enum err capture_crowd(struct capture *r, bool has_keywords)
{
    const struct eval_set *s = r->route->plan->set;
    size_t n = s->n_agents, each = (n + CROWD - 1) / CROWD;
    struct str *own = calloc(n + 1, sizeof(*own));
    struct eval_vectors v;
    enum err e = own ? OK : why_err(r->route->why, ERR_NOMEM, "out of memory");

    eval_vectors_init(&v, n);
    each = each < 2 ? 2 : each > TOGETHER_MAX ? TOGETHER_MAX : each;
    for (size_t i = 0; i < n && !e; i++)
        own[i] = s->texts[s->agents[i].first_text];
    if (!e)
        e = eval_model_embed(&r->route->model, own, n, EMBED_DOCUMENT,
                             capture_take_vector, &v, r->route->why);
    if (!e)
        e = capture_bring_similar(r, &v, each, has_keywords);
    if (!e && !has_keywords)
        e = capture_bring_random(r, each);
    if (!e && !has_keywords)
        e = capture_bring_copies(r);
    eval_vectors_fini(&v);
    free(own);
    return e;
}

static enum err capture_keywords(struct capture *r)
{
    struct str words[AGENT_KEYWORDS_MAX];
    enum err e = capture_gather_words(r);

    if (!e) {
        capture_stuff_text(r, 800);
        e = capture_add_newcomer(r, 0, capture_text_words(r, words));
    }
    if (!e)
        e = capture_measure(r, "800 words, 128 of them keywords", 1);
    return e ? e : capture_crowd(r, true);
}

enum err eval_capture(struct eval_route *route)
{
    struct capture r = {.route = route, .chance = {CHANCE}};
    size_t n = route->plan->set->n_agents;
    enum err e;

    eval_fleet_forget(route->fleet);
    arena_init(&r.arena, (size_t)EVAL_FILE_MAX);
    buf_init(&r.text, EVAL_LINE_MAX);
    r.order = mem_array(n, sizeof(*r.order));
    r.is_taken = mem_array(n, sizeof(*r.is_taken));
    eval_shuffle(r.order, n, CHANCE);
    e = route->plan->capture == EVAL_STUFFED ? capture_stuffed(&r)
        : route->plan->capture == EVAL_CROWD ? capture_crowd(&r, false)
                                             : capture_keywords(&r);
    arena_fini(&r.arena);
    buf_fini(&r.text);
    free(r.words);
    free(r.order);
    free(r.is_taken);
    return e;
}
