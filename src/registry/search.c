/* A query to a ranked answer.
 *
 *     text -> vector, now or later or not at all -> index -> rule of two
 *
 * The index hands out agents best first and only those that the requester may
 * see, so there is nothing to be thrown away here but what the rule of two
 * holds back:
 *
 *     hits, best first     a1 a2 a3 b1 a4 c1 ... (a: all of one creator)
 *     places 1 to 10       a1 a2    b1    c1 ...
 *     held back                  a3    a4
 *     places from 11 on                          a3 a4, then further hits
 *
 * Whatever was held back has a better score than what comes after the tenth
 * place, so the order is that of the scores on both sides of it.
 *
 * What somebody sees are the classes of the index, public, their org's, their
 * own, and besides: agents shared with them by a grant, and their own that an
 * admin has given to another org. Those are few and are listed; the list is
 * made anew when the registry has changed.
 *
 * Nothing that is told, notes included, depends on what the requester does not
 * see. Why a query has no vector is said in words of our own: those of a
 * provider name addresses that are the operator's. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/words.h"
#include "registry/internal.h"

struct waiting {
    struct list_node node;
    struct registry *r;
    uint64_t id;
    uint64_t ask_id; /* of embed */
    struct search search;
    search_done *done;
    void *ctx;
    char bytes[]; /* of its strings */
};

struct searches {
    struct list waiting;
    size_t n_waiting;
    uint64_t next_id;
    struct registry_ranking ranking;

    /* Agents that some see beside their classes, by number. */
    uint32_t *besides;
    size_t n_besides, besides_cap;
    int64_t besides_seq; /* as of here */
};

/* What somebody sees. */

static bool is_beside(const struct entry *e)
{
    const struct agent *a = &e->agent;

    return a->visibility == VISIBILITY_SHARED &&
           (a->n_grants || (e->has_own_org && a->creator.n));
}

static enum err list_besides(struct registry *r)
{
    struct searches *all = r->searches;
    size_t n = 0;

    if (all->besides_seq == r->seq)
        return OK;
    for (size_t i = 0; i < r->n; i++)
        n += is_beside(entry_of(r->list[i]));
    if (n > all->besides_cap) {
        uint32_t *more = FAULT("search.besides")
                             ? NULL
                             : realloc(all->besides, n * sizeof(*more));

        if (!more)
            return ERR_NOMEM;
        all->besides = more;
        all->besides_cap = n;
    }
    all->n_besides = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct entry *e = entry_of(r->list[i]);

        if (is_beside(e))
            all->besides[all->n_besides++] = e->number;
    }
    all->besides_seq = r->seq;
    return OK;
}

/* Those of `besides` that these eyes see, into `out`. */
static size_t see_besides(const struct registry *r, const struct eyes *eyes,
                          uint32_t *out)
{
    const struct searches *all = r->searches;
    size_t n = 0;

    if (eyes->sees_all)
        return 0;
    for (size_t i = 0; i < all->n_besides; i++) {
        const struct agent *a = &r->by_number[all->besides[i]]->agent;

        if (!(eyes->org.n && str_eq(a->org, eyes->org)) &&
            agent_is_visible(a, eyes))
            out[n++] = all->besides[i];
    }
    return n;
}

/* Filters. */

struct filter {
    const struct registry *r;
    const struct search *s;
    const struct entry *self; /* who asks; NULL: no agent */
};

static bool has_tag(const struct skill *s, struct str tag)
{
    for (size_t i = 0; i < s->tags.n; i++)
        if (str_eq_nocase(s->tags.list[i], tag))
            return true;
    return false;
}

static bool any_has_tag(const struct agent *a, struct str tag)
{
    for (size_t i = 0; i < a->n_skills; i++)
        if (has_tag(&a->skills[i], tag))
            return true;
    return false;
}

static bool admits(void *ctx, uint32_t number, uint32_t nth)
{
    const struct filter *f = ctx;
    const struct search *s = f->s;
    const struct entry *e = f->r->by_number[number];
    const struct agent *a = &e->agent;
    const struct skill *skill = nth == INDEX_AGENT ? NULL : &a->skills[nth];

    if (e == f->self)
        return false;
    if (s->tag.n && !(skill ? has_tag(skill, s->tag) : any_has_tag(a, s->tag)))
        return false;
    if (s->org.n && !str_eq(a->org, s->org))
        return false;
    if (s->max_price >= 0 && agent_price(a, skill) > s->max_price)
        return false;
    return !s->state || registry_state(f->r, a) == s->state;
}

static bool has_filter(const struct filter *f)
{
    const struct search *s = f->s;

    return f->self || s->tag.n || s->org.n || s->state || s->max_price >= 0;
}

/* The rule of two. */

struct places {
    const struct search *s;
    struct search_hit *hits; /* room for twice the limit */
    size_t n;
    struct search_hit *held;
    size_t n_held;
    size_t n_left_out; /* and those for whom there never is a place */
};

static bool is_outsider(const struct agent *a, const struct eyes *eyes)
{
    return a->creator.n && !str_eq_nocase(a->creator, eyes->user) &&
           !(eyes->org.n && str_eq(a->org, eyes->org));
}

/* Whether as many of its creator have a place as may. */
static bool is_crowded(const struct places *p, const struct agent *a)
{
    const struct eyes *eyes = &p->s->eyes;
    size_t n = 0;

    if (!is_outsider(a, eyes))
        return false;
    for (size_t i = 0; i < p->n; i++)
        n += is_outsider(p->hits[i].agent, eyes) &&
             str_eq_nocase(p->hits[i].agent->creator, a->creator);
    return n >= SEARCH_PER_CREATOR;
}

/* Once the crowd is complete, those that were held back come first. */
static void release_held(struct places *p)
{
    for (size_t i = 0; i < p->n_held && p->n < p->s->limit; i++)
        p->hits[p->n++] = p->held[i];
    p->n_held = 0;
}

static void take_hit(struct places *p, const struct search_hit *h)
{
    if (p->n >= SEARCH_CROWD || !is_crowded(p, h->agent)) {
        p->hits[p->n++] = *h;
        if (p->n == SEARCH_CROWD)
            release_held(p);
    } else if (p->s->limit > SEARCH_CROWD + p->n_held) {
        p->held[p->n_held++] = *h;
    } else {
        p->n_left_out++;
    }
}

/* The search itself. */

static struct index_query query_of(const struct registry *r,
                                   const struct search *s, const float *vector)
{
    const struct registry_ranking *k = &r->searches->ranking;

    return (struct index_query){
        .text = s->text,
        .vector = vector,
        .mode = vector ? s->mode : INDEX_TEXT,
        .fusion = s->has_fusion ? s->fusion : k->fusion,
        .semantic_weight = (float)k->semantic_weight,
        .text_weight = (float)k->text_weight,
        .org = s->eyes.org,
        .creator = s->eyes.user,
        .sees_all = s->eyes.sees_all,
    };
}

static void gather(struct registry *r, struct places *p)
{
    struct index_hit found;

    while (p->n < p->s->limit && index_next(r->index, &found) &&
           (double)found.score >= p->s->min_score) {
        struct search_hit h = {.agent = &r->by_number[found.number]->agent,
                               .score = found.score,
                               .n_matches = found.n_matches};

        memcpy(h.matches, found.matches,
               found.n_matches * sizeof(found.matches[0]));
        take_hit(p, &h);
    }
}

/* p has room for the hits. */
static enum err look(struct registry *r, struct places *p, const float *vector)
{
    const struct search *s = p->s;
    struct index_query q = query_of(r, s, vector);
    struct filter filter = {.r = r,
                            .s = s,
                            .self = s->eyes.self.n ? entry_find(r, s->eyes.self)
                                                   : NULL};
    uint32_t *granted = NULL;
    enum err e = list_besides(r);

    if (!e && r->searches->n_besides) {
        granted = FAULT("search.granted")
                      ? NULL
                      : calloc(r->searches->n_besides, sizeof(*granted));
        if (!granted)
            return ERR_NOMEM;
        q.granted = granted;
        q.n_granted = see_besides(r, &s->eyes, granted);
    }
    if (has_filter(&filter)) {
        q.admits = admits;
        q.ctx = &filter;
    }
    if (!e)
        e = index_search_begin(r->index, &q);
    if (!e) {
        gather(r, p);
        index_search_end(r->index);
    }
    free(granted);
    return e;
}

/* What is worth knowing about an answer, a sentence each. */

static void note(struct why *out, const char *one, const char *many, size_t n)
{
    size_t at = strlen(out->text);
    char *to = out->text + at;

    if (!n)
        return;
    if (at)
        to += snprintf(to, sizeof(out->text) - at, "; ");
    at = (size_t)(to - out->text);
    if (n == 1)
        snprintf(to, sizeof(out->text) - at, "%s", one);
    else
        snprintf(to, sizeof(out->text) - at, "%zu %s", n, many);
}

static void note_all(const struct registry *r, const struct places *p,
                     bool is_by_meaning, struct why *out)
{
    if (is_by_meaning)
        note(out,
             "one agent waits for its vectors and is found by its words alone",
             "agents wait for their vectors and are found by their words alone",
             vectors_awaited(r, &p->s->eyes));
    /* All of them were counted, if there is a place that nobody has. */
    if (p->n < p->s->limit)
        note(out,
             "one agent was left out, since two of its creator are among the "
             "first ten",
             "agents were left out, since two of their creators are among the "
             "first ten",
             p->n_left_out + p->n_held);
}

/* Search and tell. vector: NULL: by words alone, and `because` says why unless
 * that is what was asked for. */
static void answer(struct registry *r, const struct search *s, uint64_t id,
                   const float *vector, const char *because, search_done *done,
                   void *ctx)
{
    struct search_result result = {.mode = vector ? s->mode : INDEX_TEXT};
    struct places p = {.s = s};

    p.hits =
        FAULT("search.hits") ? NULL : calloc(2 * s->limit, sizeof(*p.hits));
    if (p.hits) {
        p.held = p.hits + s->limit;
        result.err = look(r, &p, vector);
    } else {
        result.err = ERR_NOMEM;
    }
    if (!result.err) {
        result.hits = p.hits;
        result.n = p.n;
        r->stats.searches_total++;
        r->stats.searches_by_words_total += because != NULL;
        if (because)
            why_err(&result.note, OK, "searched by words alone, because %s",
                    because);
        note_all(r, &p, vector != NULL, &result.note);
    }
    done(ctx, id, &result);
    free(p.hits);
}

/* The vector. */

static const char *because_of(enum err e)
{
    switch ((int)e) {
    case ERR_TIMEOUT: return "the model did not answer in time";
    case ERR_UNREACHABLE: return "the model's provider cannot be reached";
    case ERR_OVERLOADED:
        return "the model's provider has failed and is left alone for now";
    case ERR_BUSY: return "too many texts wait for the model";
    case ERR_NOT_ALLOWED: return "the model's provider does not take our key";
    case ERR_BAD_REQUEST:
        return "the model's provider has no answer to this text that can be "
               "used";
    case ERR_LIMIT: return "the text is too long for the model";
    default: return "the model could not be asked";
    }
}

static void waiting_free(struct waiting *w)
{
    struct searches *all = w->r->searches;

    list_remove(&w->node);
    all->n_waiting--;
    free(w);
}

static void tell_stopping(const struct waiting *w)
{
    const struct search_result r = {.err = ERR_STOPPING,
                                    .mode = w->search.mode};

    w->done(w->ctx, w->id, &r);
}

static void on_vector(void *ctx, uint64_t id, enum err e,
                      const struct embed_result *result, const struct why *why)
{
    struct waiting *w = ctx;
    struct registry *r = w->r;
    const char *because = e ? because_of(e) : NULL;
    const float *vector = NULL;

    (void)id;
    (void)why;
    list_remove(&w->node); /* nobody can cancel it from here on */
    vectors_learn(r);
    if (!because)
        because = vectors_obstacle(r);
    if (!because && result->stamp.dims == index_dims(r->index))
        vector = result->vectors;
    else if (!because)
        because = "there is nothing in this text that the model knows";
    if (e == ERR_STOPPING)
        tell_stopping(w);
    else
        answer(r, &w->search, w->id, vector, because, w->done, w->ctx);
    waiting_free(w);
}

static void copy_str(char **to, struct str *s)
{
    if (s->n)
        memcpy(*to, s->p, s->n);
    s->p = *to;
    *to += s->n;
}

static struct waiting *waiting_new(struct registry *r, const struct search *s)
{
    size_t n = s->text.n + s->tag.n + s->org.n + s->eyes.user.n +
               s->eyes.org.n + s->eyes.self.n;
    struct waiting *w = FAULT("search.wait") ? NULL : malloc(sizeof(*w) + n);
    char *to;

    if (!w)
        return NULL;
    *w = (struct waiting){.r = r, .search = *s};
    to = w->bytes;
    copy_str(&to, &w->search.text);
    copy_str(&to, &w->search.tag);
    copy_str(&to, &w->search.org);
    copy_str(&to, &w->search.eyes.user);
    copy_str(&to, &w->search.eyes.org);
    copy_str(&to, &w->search.eyes.self);
    return w;
}

/* Ask the model. *failed: it cannot be, and the search is to be done by words.
 */
static enum err wait_for_vector(struct registry *r, const struct search *s,
                                search_done *done, void *ctx, uint64_t *id,
                                enum err *failed, struct why *why)
{
    struct searches *all = r->searches;
    struct waiting *w;

    if (all->n_waiting >= SEARCH_WAITING_MAX)
        return why_err(why, ERR_OVERLOADED,
                       "%d searches wait for the model already; try again in "
                       "a moment",
                       SEARCH_WAITING_MAX);
    w = waiting_new(r, s);
    if (!w)
        return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    w->done = done;
    w->ctx = ctx;
    *failed = embed_start(r->opts.embed, &w->search.text, 1, EMBED_QUERY,
                          on_vector, w, &w->ask_id, NULL);
    if (*failed) {
        free(w);
        return OK;
    }
    w->id = *id = ++all->next_id;
    list_append(&all->waiting, &w->node);
    all->n_waiting++;
    return OK;
}

/* What may be asked. */

static bool is_blank(struct str text)
{
    struct words w;

    words_begin(&w, text);
    return !words_next(&w);
}

static enum err check_search(const struct registry *r, const struct search *s,
                             struct why *why)
{
    if (r->is_stopped)
        return why_err(why, ERR_STOPPING, "%s", err_row(ERR_STOPPING)->wording);
    if (s->text.n > SEARCH_TEXT_MAX)
        return why_err(why, ERR_LIMIT,
                       "a query has at most %d bytes, and this one has %zu",
                       SEARCH_TEXT_MAX, s->text.n);
    if (is_blank(s->text))
        return why_err(why, ERR_BAD_REQUEST,
                       "there is nothing to search for: the query is empty");
    if (s->limit < 1 || s->limit > SEARCH_LIMIT_MAX)
        return why_err(why, ERR_BAD_REQUEST, "limit must be 1 to %d",
                       SEARCH_LIMIT_MAX);
    return OK;
}

enum err registry_search(struct registry *r, const struct search *s,
                         search_done *done, void *ctx, uint64_t *id,
                         struct why *why)
{
    float v[EMBED_DIMS_MAX];
    const float *vector = NULL;
    const char *because = NULL;
    enum err e = check_search(r, s, why), failed = OK;

    *id = 0;
    if (e)
        return e;
    vectors_learn(r);
    if (s->mode != INDEX_TEXT)
        because = vectors_obstacle(r);
    if (s->mode != INDEX_TEXT && !because) {
        if (embed_now(r->opts.embed, s->text, EMBED_QUERY, v)) {
            vector = v;
        } else {
            e = wait_for_vector(r, s, done, ctx, id, &failed, why);
            if (e || !failed)
                return e;
            because = because_of(failed);
        }
    }
    answer(r, s, 0, vector, because, done, ctx);
    return OK;
}

void registry_search_cancel(struct registry *r, uint64_t id)
{
    struct searches *all = r->searches;

    for (struct list_node *n = list_first(&all->waiting); n;
         n = list_next(&all->waiting, n)) {
        struct waiting *w = LIST_OF(n, struct waiting, node);

        if (w->id == id) {
            embed_cancel(r->opts.embed, w->ask_id);
            waiting_free(w);
            return;
        }
    }
}

/* Life and death. */

void registry_set_ranking(struct registry *r, const struct registry_ranking *k)
{
    r->searches->ranking = *k;
}

struct registry_ranking registry_ranking(const struct registry *r)
{
    struct registry_ranking k = r->searches->ranking;

    if (k.semantic_weight == 0 && k.text_weight == 0) {
        k.semantic_weight = 0.7;
        k.text_weight = 0.3;
    }
    return k;
}

enum err search_open(struct registry *r)
{
    struct searches *all =
        FAULT("search.open") ? NULL : calloc(1, sizeof(*all));

    if (!all)
        return ERR_NOMEM;
    list_init(&all->waiting);
    all->besides_seq = -1;
    r->searches = all;
    return OK;
}

/* Whoever is told may cancel others. */
void search_stop(struct registry *r)
{
    struct searches *all = r->searches;
    struct list_node *n;

    while ((n = list_pop(&all->waiting))) {
        struct waiting *w = LIST_OF(n, struct waiting, node);

        embed_cancel(r->opts.embed, w->ask_id);
        tell_stopping(w);
        waiting_free(w);
    }
}

void search_close(struct registry *r)
{
    struct searches *all = r->searches;
    struct list_node *n;

    if (!all)
        return;
    while ((n = list_first(&all->waiting)))
        registry_search_cancel(r, LIST_OF(n, struct waiting, node)->id);
    free(all->besides);
    free(all);
    r->searches = NULL;
}
