/* From a query to its results: validation, the vector, waiting for it, and
 * notes on the results. ranked.c searches.
 *
 *     text -> vector, now or later or not at all -> ranked.c -> notes
 *
 * No part of an answer, notes included, depends on agents that the requester
 * cannot see. The reason for a missing vector is given in our own words,
 * because those of a provider contain addresses of the operator. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"
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
    char bytes[]; /* its strings */
};

/* Notes on a result, a sentence each. */

static void search_note(struct why *out, const char *one, const char *many,
                        size_t n)
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

static void search_note_awaited(const struct registry *r,
                                const struct places *p, bool is_by_meaning,
                                struct why *out)
{
    if (is_by_meaning && !vectors_have_quick(r))
        search_note(
            out,
            p->s->eyes.sees_all ? "one agent waits for its vectors and is "
                                  "found by its words alone"
                                : "one agent of yours waits for its vectors "
                                  "and is found by its words alone",
            p->s->eyes.sees_all ? "agents wait for their vectors and are "
                                  "found by their words alone"
                                : "agents of yours wait for their vectors "
                                  "and are found by their words alone",
            vectors_awaited(r, &p->s->eyes));
}

/* Compared by address: why no vector would help. */
static const char revectorizing[] = "vectors are being rebuilt";

/* NULL: by vector, if the query has one. */
static const char *search_obstacle(const struct registry *r)
{
    const char *obstacle = vectors_obstacle(r);

    return obstacle ? obstacle : r->vectors->n_outdated ? revectorizing : NULL;
}

/* Search and report. vector: NULL: by words only, and `reason` says why unless
 * requested; with both, the vector is a quick one. */
static void search_answer(struct registry *r, const struct search *s,
                          uint64_t id, const float *vector, const char *reason,
                          search_done *done, void *ctx)
{
    struct search_result result = {.mode = vector ? s->mode : INDEX_TEXT};
    struct places p = {.s = s};

    p.hits = mem_array(2 * s->limit, sizeof(*p.hits));
    p.held = p.hits + s->limit;
    result.err = ranked_look(r, &p, vector);
    if (!result.err) {
        result.hits = p.hits;
        result.n = p.n;
        result.total = p.total;
        r->stats.searches_total++;
        r->stats.searches_by_words_total += reason && !vector;
        if (reason == revectorizing)
            why_err(&result.note, OK, "%s; until then search goes by %s",
                    reason, vector ? "the table's" : "words");
        else if (reason)
            why_err(&result.note, OK, "searched by %s alone, because %s",
                    vector ? "the table's vectors" : "words", reason);
        search_note_awaited(r, &p, vector != NULL, &result.note);
    }
    done(ctx, id, &result);
    free(p.hits);
}

static const char *search_reason(enum err e)
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

static void waiting_fail_stopping(const struct waiting *w)
{
    const struct search_result r = {.err = ERR_STOPPING,
                                    .mode = w->search.mode};

    w->done(w->ctx, w->id, &r);
}

/* A quick vector instead; NULL: none, or the table knows no word of the
 * text. */
static const float *quick_vector(struct registry *r, const struct search *s,
                                 float v[EMBED_DIMS_MAX])
{
    if (!vectors_have_quick(r) || !embed_quick(r->opts.embed, s->text, v))
        return NULL;
    for (uint32_t i = 0; i < embed_stamp(r->opts.embed).quick_dims; i++)
        if (v[i] != 0)
            return v;
    return NULL;
}

static void search_on_vector(void *ctx, uint64_t id, enum err e,
                             const struct embed_result *result,
                             const struct why *why)
{
    struct waiting *w = ctx;
    struct registry *r = w->r;
    const char *reason = e ? search_reason(e) : NULL;
    const float *vector = NULL;
    float quick[EMBED_DIMS_MAX];

    (void)id;
    (void)why;
    list_remove(&w->node); /* it can no longer be cancelled */
    vectors_learn(r);
    w->search.eyes.now_ms = loop_wall_ms(r->opts.loop); /* grants expire */
    if (!reason)
        reason = search_obstacle(r);
    if (!reason && result->stamp.dims == index_dims(r->index))
        vector = result->vectors;
    else if (!reason)
        reason = "there is nothing in this text that the model knows";
    else if (e != ERR_STOPPING)
        vector = quick_vector(r, &w->search, quick);
    if (e == ERR_STOPPING)
        waiting_fail_stopping(w);
    else
        search_answer(r, &w->search, w->id, vector, reason, w->done, w->ctx);
    waiting_free(w);
}

static void waiting_copy_str(char **to, struct str *s)
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
    waiting_copy_str(&to, &w->search.text);
    waiting_copy_str(&to, &w->search.tag);
    waiting_copy_str(&to, &w->search.org);
    waiting_copy_str(&to, &w->search.eyes.user);
    waiting_copy_str(&to, &w->search.eyes.org);
    waiting_copy_str(&to, &w->search.eyes.self);
    return w;
}

/* Ask the model. *failed: it cannot be asked, and the search is by words. */
static enum err search_wait_for_vector(struct registry *r,
                                       const struct search *s,
                                       search_done *done, void *ctx,
                                       uint64_t *id, enum err *failed,
                                       struct why *why)
{
    struct searches *all = r->searches;
    char scope[EYES_SCOPE_BYTES];
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
    *failed = embed_start_for(r->opts.embed, eyes_scope(&s->eyes, scope),
                              &w->search.text, 1, search_on_vector, w,
                              &w->ask_id, NULL);
    if (*failed) {
        free(w);
        return OK;
    }
    w->id = *id = ++all->next_id;
    list_append(&all->waiting, &w->node);
    all->n_waiting++;
    return OK;
}

static bool query_is_blank(struct str text)
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
    if (query_is_blank(s->text))
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
    const char *reason = NULL;
    char scope[EYES_SCOPE_BYTES];
    enum err e = check_search(r, s, why), failed = OK;

    *id = 0;
    if (e)
        return e;
    vectors_learn(r);
    if (s->mode != INDEX_TEXT)
        reason = search_obstacle(r);
    if (s->mode != INDEX_TEXT && !reason) {
        if (embed_now_for(r->opts.embed, eyes_scope(&s->eyes, scope), s->text,
                          v)) {
            vector = v;
        } else {
            e = search_wait_for_vector(r, s, done, ctx, id, &failed, why);
            if (e || !failed)
                return e;
            reason = search_reason(failed);
        }
    }
    if (reason)
        vector = quick_vector(r, s, v);
    search_answer(r, s, 0, vector, reason, done, ctx);
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

void search_open(struct registry *r)
{
    struct searches *all = mem_new(sizeof(*all));

    list_init(&all->waiting);
    all->besides_seq = -1;
    r->searches = all;
}

/* A callback may cancel other searches. */
void search_stop(struct registry *r)
{
    struct searches *all = r->searches;
    struct list_node *n;

    while ((n = list_pop(&all->waiting))) {
        struct waiting *w = LIST_OF(n, struct waiting, node);

        embed_cancel(r->opts.embed, w->ask_id);
        waiting_fail_stopping(w);
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
