/* Hostile cards: a user of another org brings them, they are public, and made
 * of what the set's own agents say, which is all that such a user can read.
 *
 *   stuffed   one card: 100, 300 and 800 words of all cards by chance; and one
 *             whose routing keywords are words that people use most
 *   crowd     30 cards that cover every topic: the texts of neighbours, those
 *             of any, and word for word copies of 30 cards
 *   keywords  cards whose routing keywords are their own words: one of 800
 *             words by chance, and 30 with the texts of neighbours
 *
 * How many first places they win is the share of the queries in scope. */
#include "cli/eval_route.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/vec.h"
#include "model/profile.h"

enum {
    CROWD = 30,
    CHANCE = 1,
    TOGETHER_MAX = 12, /* cards that one of the crowd is made of */
};

struct raid {
    struct eval_route *route;
    struct arena arena;
    struct buf text;
    struct rand_seeded chance;
    struct str *words; /* of all cards, again and again */
    size_t n_words, cap;
    uint32_t *order; /* of agents */
    bool *is_taken;
};

static enum err no_memory(struct raid *r)
{
    return why_err(r->route->why, ERR_NOMEM, "out of memory");
}

/* What it says of itself, into the text. */
static void add_own(struct raid *r, uint32_t i)
{
    const struct eval_agent *a = &r->route->plan->set->agents[i];

    profile_add_words(&r->text, a->name);
    buf_add_char(&r->text, ' ');
    buf_add_str(&r->text, a->description);
}

/* The words. */

static bool take_word(struct raid *r, struct str word)
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

static enum err gather_words(struct raid *r)
{
    const struct eval_set *s = r->route->plan->set;

    for (uint32_t i = 0; i < s->n_agents; i++) {
        struct str rest;

        buf_clear(&r->text);
        add_own(r, i);
        rest = buf_str(&r->text);
        while (rest.n) {
            struct str word = str_cut(&rest, ' ');

            if (word.n && !take_word(r, word))
                return no_memory(r);
        }
    }
    return r->text.over ? no_memory(r) : OK;
}

/* What people write, whatever they want. */
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

/* A raid: its cards are there, and every query is asked. */

static enum err measure(struct raid *r, const char *how, size_t cards)
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
            return no_memory(r);
        (void)eval_gate_count(&out->gate, q, &c);
        out->n_captured +=
            q->n_agents && c.n && c.best[0].agent == EVAL_STRANGER;
    }
    return OK;
}

static enum err bring(struct raid *r, size_t nth, struct strs keywords)
{
    char name[32];
    struct eval_card card = {.keywords = keywords};

    snprintf(name, sizeof(name), "stranger-%zu", nth);
    card.name = str_of(name);
    card.description = str_head(buf_str(&r->text), AGENT_DESCRIPTION_MAX);
    return eval_fleet_bring(r->route->fleet, &card, r->route->why);
}

/* Different words of the text, as many as a card may have for keywords. */
static struct strs words_of_text(struct raid *r, struct str out[])
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

/* So many words of all cards, into the text. */
static void stuff(struct raid *r, size_t n_words)
{
    struct rand rand = rand_seeded(&r->chance);

    buf_clear(&r->text);
    for (size_t k = 0; k < n_words && r->n_words; k++) {
        buf_add_str(&r->text, r->words[rand_u64(rand) % r->n_words]);
        buf_add_char(&r->text, ' ');
    }
}

static enum err stuffed(struct raid *r)
{
    static const char *const how[] = {"100 words", "300 words", "800 words"};
    static const size_t n_words[] = {100, 300, 800};
    const struct strs keywords = {common, sizeof(common) / sizeof(common[0])};
    enum err e = gather_words(r);

    for (size_t i = 0; i < 3 && !e; i++) {
        stuff(r, n_words[i]);
        e = bring(r, 0, (struct strs){NULL, 0});
        if (!e)
            e = measure(r, how[i], 1);
    }
    if (e)
        return e;
    /* The last one stays, and has them besides. */
    e = bring(r, 0, keywords);
    return e ? e : measure(r, "800 words, and keywords", 1);
}

/* The crowd. */

/* How alike the texts of two agents are; by their own vectors. */
static double likeness(const struct eval_vectors *v, size_t a, size_t b)
{
    struct str x = eval_vector(v, a), y = eval_vector(v, b);
    struct vec_packed p, q;
    size_t n = v->each > 8 ? (v->each - 8) / 2 : 0;

    if (!x.n || !y.n || !vec_packed_open(&p, (const uint8_t *)x.p, x.n, n) ||
        !vec_packed_open(&q, (const uint8_t *)y.p, y.n, n))
        return 0;
    return vec_packed_dot(&p, &q);
}

/* The next n into the text: from `order`, and those most like the first. */
static void add_neighbours(struct raid *r, const struct eval_vectors *v,
                           uint32_t first, size_t n)
{
    size_t n_agents = r->route->plan->set->n_agents;

    for (size_t k = 0; k < n; k++) {
        uint32_t best = first;
        double most = -2;

        for (uint32_t i = 0; k && i < n_agents; i++) {
            double near = r->is_taken[i] ? -2 : likeness(v, first, i);

            if (near > most) {
                most = near;
                best = i;
            }
        }
        if (r->is_taken[best])
            return;
        r->is_taken[best] = true;
        add_own(r, best);
        buf_add_str(&r->text, STR(". "));
    }
}

static enum err bring_near(struct raid *r, const struct eval_vectors *v,
                           size_t each, bool has_keywords)
{
    size_t n_agents = r->route->plan->set->n_agents, n = 0;
    struct str words[AGENT_KEYWORDS_MAX];
    enum err e = OK;

    /* Where there are not enough for all of the crowd, once more. */
    for (uint32_t i = 0; n < CROWD && !e; i++) {
        if (i == n_agents) {
            memset(r->is_taken, 0, n_agents * sizeof(*r->is_taken));
            i = 0;
        }
        if (r->is_taken[i])
            continue;
        buf_clear(&r->text);
        add_neighbours(r, v, i, each);
        e = bring(r, n++,
                  has_keywords ? words_of_text(r, words)
                               : (struct strs){NULL, 0});
    }
    return e ? e
             : measure(r,
                       has_keywords ? "texts of neighbours, and keywords"
                                    : "texts of neighbours",
                       n);
}

static enum err bring_any(struct raid *r, size_t each)
{
    size_t n_agents = r->route->plan->set->n_agents;
    enum err e = OK;

    for (size_t i = 0; i < CROWD && !e; i++) {
        buf_clear(&r->text);
        for (size_t k = 0; k < each; k++) {
            add_own(r, r->order[(i * each + k) % n_agents]);
            buf_add_str(&r->text, STR(". "));
        }
        e = bring(r, i, (struct strs){NULL, 0});
    }
    return e ? e : measure(r, "texts of any", CROWD);
}

/* A copy has a name of its own, for that it must have. */
static enum err bring_copies(struct raid *r)
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
    return e ? e : measure(r, "copies of others", n);
}

struct taking {
    struct eval_vectors v;
    uint32_t dims;
};

static void take_vector(void *ctx, size_t i, const float *vector, uint32_t dims)
{
    struct taking *t = ctx;

    if (!vector)
        return;
    if (!t->v.rows) {
        t->v.each = vec_packed_bytes(dims);
        t->v.rows = calloc(t->v.n, t->v.each);
    }
    if (t->v.rows && t->v.each == vec_packed_bytes(dims))
        t->v.has[i] = vec_pack(vector, dims, t->v.rows + i * t->v.each);
}

static enum err crowd(struct raid *r, bool has_keywords)
{
    const struct eval_set *s = r->route->plan->set;
    size_t n = s->n_agents, each = (n + CROWD - 1) / CROWD;
    struct taking t = {.v = {.n = n, .has = calloc(n + 1, sizeof(bool))}};
    struct str *own = calloc(n + 1, sizeof(*own));
    enum err e = OK;

    each = each < 2 ? 2 : each > TOGETHER_MAX ? TOGETHER_MAX : each;
    if (!t.v.has || !own)
        e = no_memory(r);
    for (size_t i = 0; i < n && !e; i++)
        own[i] = s->texts[s->agents[i].first_text];
    if (!e)
        e = eval_model_embed(&r->route->model, own, n, EMBED_DOCUMENT,
                             take_vector, &t, r->route->why);
    if (!e)
        e = bring_near(r, &t.v, each, has_keywords);
    if (!e && !has_keywords)
        e = bring_any(r, each);
    if (!e && !has_keywords)
        e = bring_copies(r);
    free(t.v.rows);
    free(t.v.has);
    free(own);
    return e;
}

static enum err own_words(struct raid *r)
{
    struct str words[AGENT_KEYWORDS_MAX];
    enum err e = gather_words(r);

    if (!e) {
        stuff(r, 800);
        e = bring(r, 0, words_of_text(r, words));
    }
    if (!e)
        e = measure(r, "800 words, 128 of them keywords", 1);
    return e ? e : crowd(r, true);
}

static enum err raid_by(struct raid *r, enum eval_capture how)
{
    switch ((int)how) {
    case EVAL_STUFFED: return stuffed(r);
    case EVAL_CROWD: return crowd(r, false);
    default: return own_words(r);
    }
}

enum err eval_capture(struct eval_route *route)
{
    struct raid r = {.route = route, .chance = {CHANCE}};
    size_t n = route->plan->set->n_agents;
    enum err e = eval_fleet_forget(route->fleet);

    arena_init(&r.arena, (size_t)EVAL_FILE_MAX);
    buf_init(&r.text, EVAL_LINE_MAX);
    r.order = calloc(n + 1, sizeof(*r.order));
    r.is_taken = calloc(n + 1, sizeof(*r.is_taken));
    if (e || !r.order || !r.is_taken) {
        e = no_memory(&r);
    } else {
        eval_shuffle(r.order, n, CHANCE);
        e = raid_by(&r, route->plan->capture);
    }
    arena_fini(&r.arena);
    buf_fini(&r.text);
    free(r.words);
    free(r.order);
    free(r.is_taken);
    return e;
}
