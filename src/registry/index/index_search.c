/* One search: mark the visible documents, score the words, and then take
 * documents best first (index_rank.c) until the caller has enough agents.
 *
 * Visibility is a bit per document, computed for every search by comparing the
 * class of each document with the three that the requester sees. That is
 * cheaper than a bitmap per class, and nothing has to be kept up to date.
 *
 * With fusion "rrf" the score of a document comes from its ranks in two lists,
 * the best 200 by vector and the best 200 by words; other documents have none.
 * Both lists are made when the search begins, by the same ranking. */
#include "registry/index/data.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

/* Replace the array, which is all zero between searches. */
static bool search_grow_texts(float **p, size_t n)
{
    float *more = FAULT("index.search_texts") ? NULL : calloc(n, sizeof(*more));

    if (!more)
        return false;
    free(*p);
    *p = more;
    return true;
}

static enum err search_room(struct index *x)
{
    struct index_search *s = &x->search;
    size_t n = (x->n_docs + 63) / 64 * 64;

    if (!s->query) /* the packed vector, and its planes as a row */
        s->query =
            mem_new(vec_packed_bytes(INDEX_DIMS_MAX) + 2 * INDEX_STRIDE_MAX);
    /* A bit per class and per agent: 250 KB at most. */
    if (s->seen_cap < x->classes_cap / 64 + 1) {
        s->seen_cap = x->classes_cap / 64 + 1;
        s->seen = mem_resize(s->seen, s->seen_cap, sizeof(*s->seen));
    }
    if (s->counted_cap < x->agents_end / 64 + 1) {
        s->counted_cap = x->agents_end / 64 + 1;
        s->counted =
            mem_resize(s->counted, s->counted_cap, sizeof(*s->counted));
    }
    if (n <= s->cap)
        return OK;
    n = (n + n / 4 + 63) / 64 * 64;
    if (!INDEX_GROW(s->visible, n / 64) || !INDEX_GROW(s->bounds, n) ||
        !INDEX_GROW(s->best_of_64, n / 64) || !INDEX_GROW(s->touched, n) ||
        !INDEX_GROW(s->heap, n) || !search_grow_texts(&s->texts, n))
        return ERR_NOMEM;
    s->cap = n;
    return OK;
}

/* The classes that a requester sees. */
struct views {
    uint32_t cls[3]; /* UNSEEN if there is none */
    uint32_t
        aside; /* likewise; hidden from a requester who otherwise sees all */
};
/* The number of no class; NO_CLASS is that of free documents. */
#define UNSEEN (NO_CLASS - 1)

static uint32_t search_view(const struct index *x, struct index_class cls)
{
    uint32_t number = index_class_find(x, cls);

    return number == NO_CLASS ? UNSEEN : number;
}

static struct views search_views(const struct index *x,
                                 const struct index_query *q)
{
    const struct index_class of[3] = {
        {INDEX_PUBLIC, {NULL, 0}},
        {INDEX_ORG, q->org},
        {INDEX_CREATOR, q->creator},
    };
    struct views v = {.cls = {UNSEEN, UNSEEN, UNSEEN}, .aside = UNSEEN};

    for (size_t i = 0; i < 3; i++)
        if (of[i].kind == INDEX_PUBLIC || of[i].name.n > 0)
            v.cls[i] = search_view(x, of[i]);
    if (q->sees_all && q->leaves_aside)
        v.aside = search_view(x, (struct index_class){.kind = INDEX_ASIDE});
    return v;
}

/* Each bit as a word of its own, so that the compiler compares and gathers four
 * documents at a time. */
#define BITS_4(i)  1U << (i), 2U << (i), 4U << (i), 8U << (i)
#define BITS_16(i) BITS_4(i), BITS_4((i) + 4), BITS_4((i) + 8), BITS_4((i) + 12)
static const uint32_t bit_of[32] = {BITS_16(0), BITS_16(16)};

static uint32_t visible_32(const uint32_t *cls, const struct views *v)
{
    uint32_t a = v->cls[0], b = v->cls[1], c = v->cls[2], bits = 0;

    for (size_t i = 0; i < 32; i++) {
        uint32_t is_seen = (cls[i] == a) | (cls[i] == b) | (cls[i] == c);

        bits |= -is_seen & bit_of[i];
    }
    return bits;
}

static uint32_t used_32(const uint32_t *cls, uint32_t aside)
{
    uint32_t bits = 0;

    for (size_t i = 0; i < 32; i++)
        bits |=
            -(uint32_t)((cls[i] != NO_CLASS) & (cls[i] != aside)) & bit_of[i];
    return bits;
}

static uint64_t visible_64(const uint32_t *cls, const struct views *v,
                           bool sees_all)
{
    uint64_t low = sees_all ? used_32(cls, v->aside) : visible_32(cls, v);
    uint64_t high =
        sees_all ? used_32(cls + 32, v->aside) : visible_32(cls + 32, v);

    return high << 32 | low;
}

bool search_admits(const struct index_query *q, const struct index *x,
                   uint32_t doc)
{
    return !q->admits ||
           q->admits(q->ctx, x->docs[doc].number, x->docs[doc].skill);
}

static float search_weight(float weight)
{
    return isfinite(weight) && weight > 0 ? weight : 0;
}

struct weights search_weights(const struct index_query *q, bool has_vector)
{
    struct weights w = {search_weight(q->semantic_weight),
                        search_weight(q->text_weight)};
    float sum = w.semantic + w.text;

    if (!has_vector || q->mode == INDEX_TEXT)
        return (struct weights){0, 1};
    if (q->mode == INDEX_SEMANTIC)
        return (struct weights){1, 0};
    if (!(sum > 0) || !isfinite(sum))
        return (struct weights){0.7F, 0.3F};
    if (sum > 1)
        w = (struct weights){w.semantic / sum, w.text / sum};
    return w;
}

bool search_take_packed(struct index *x, const uint8_t *packed, size_t n)
{
    struct index_search *s = &x->search;
    size_t dims = x->vectors.dims;
    struct vec_packed p;

    if (!dims || !vec_packed_open(&p, packed, n, dims))
        return false;
    s->vector = index_vecs_lay(&x->vectors, &p,
                               (int8_t *)s->query + vec_packed_bytes(dims));
    return true;
}

/* The ranks of a document in the two lists. */
struct rrf_ranked {
    uint32_t doc;
    size_t semantic, text;
};

/* The last document of a list. Documents that equal it share its rank. */
struct rrf_last {
    size_t n; /* length of the list */
    size_t rank;
    float value;
};

static struct rrf_last rrf_rank_list(struct index *x, struct weights w,
                                     struct rrf_ranked *ranked, size_t *n)
{
    struct rrf_last last = {0};
    struct rated r;

    rank_begin(x, w);
    while (last.n < RRF_BEST && rank_next(x, &r)) {
        size_t i = 0;

        last.n++;
        if (last.n == 1 || r.score < last.value)
            last.rank = last.n;
        last.value = r.score;
        while (i < *n && ranked[i].doc != r.doc)
            i++;
        if (i == *n)
            ranked[(*n)++] = (struct rrf_ranked){.doc = r.doc};
        *(w.semantic > 0 ? &ranked[i].semantic : &ranked[i].text) = last.rank;
    }
    return last;
}

/* Documents in one list that equal the last of the other, which was too short
 * for them. */
static void rrf_rank_equals(struct index *x, struct rrf_ranked *p,
                            const struct rrf_last *by_meaning,
                            const struct rrf_last *by_words)
{
    struct index_match parts;

    if ((p->semantic || by_meaning->n < RRF_BEST) &&
        (p->text || by_words->n < RRF_BEST))
        return;
    rank_score(x, p->doc, (struct weights){1, 0}, &parts);
    if (!p->semantic && by_meaning->n == RRF_BEST &&
        parts.semantic >= by_meaning->value)
        p->semantic = by_meaning->rank;
    if (!p->text && by_words->n == RRF_BEST && parts.text >= by_words->value)
        p->text = by_words->rank;
}

static int fused_order(const void *a, const void *b, void *ctx)
{
    const struct rated *ra = a, *rb = b;

    if (ra->score > rb->score || ra->score < rb->score)
        return ra->score > rb->score ? -1 : 1;
    return index_doc_order(ctx, ra->doc, rb->doc);
}

/* Afterwards s->bounds holds the real scores. */
static void rrf_fuse(struct index *x)
{
    struct index_search *s = &x->search;
    struct rrf_ranked ranked[2 * RRF_BEST];
    struct rrf_last by_meaning = {0}, by_words = {0};
    size_t n = 0;

    if (s->by_meaning)
        by_meaning = rrf_rank_list(x, (struct weights){1, 0}, ranked, &n);
    if (s->by_words)
        by_words = rrf_rank_list(x, (struct weights){0, 1}, ranked, &n);
    for (size_t i = 0; i < n; i++)
        rrf_rank_equals(x, &ranked[i], &by_meaning, &by_words);
    for (size_t i = 0; i < x->n_docs; i++)
        s->bounds[i] = 0;
    for (size_t i = 0; i < n; i++) {
        float score = rrf_score(ranked[i].semantic, ranked[i].text,
                                (size_t)s->by_meaning + (size_t)s->by_words);

        s->fused[i] = (struct rated){score, ranked[i].doc};
        s->bounds[ranked[i].doc] = score;
    }
    s->n_fused = n;
    s->next_fused = 0;
    qsort_r(s->fused, n, sizeof(*s->fused), fused_order, x);
}

enum err search_see(struct index *x, const struct index_query *q)
{
    struct index_search *s = &x->search;
    struct views v;
    enum err e = search_room(x);

    if (e)
        return e;
    v = search_views(x, q);
    s->q = q;
    memset(s->seen, q->sees_all ? 0xff : 0, s->seen_cap * sizeof(*s->seen));
    if (v.aside != UNSEEN)
        s->seen[v.aside / 64] &= ~(UINT64_C(1) << v.aside % 64);
    for (size_t i = 0; i < 3; i++)
        if (v.cls[i] != UNSEEN)
            s->seen[v.cls[i] / 64] |= UINT64_C(1) << v.cls[i] % 64;
    for (size_t i = 0; i < x->n_docs; i += 64)
        s->visible[i / 64] = visible_64(x->doc_class + i, &v, q->sees_all);
    for (size_t i = 0; i < q->n_granted; i++) {
        uint32_t number = q->granted[i];
        const struct index_entry *agent =
            number < x->agents_end ? x->agents[number] : NULL;

        for (size_t k = 0; agent && k < agent->n_docs; k++)
            s->visible[agent->docs[k] / 64] |= UINT64_C(1)
                                               << agent->docs[k] % 64;
    }
    return OK;
}

enum err index_search_begin(struct index *x, const struct index_query *q)
{
    struct index_search *s = &x->search;
    struct weights w;
    enum err e;
    size_t dims = x->vectors.dims;

    assert(!s->is_open);
    e = search_see(x, q);
    if (e)
        return e;
    s->is_open = true;
    s->serial++;
    x->stats.searches_total++;
    s->by_meaning = q->vector && dims && q->mode != INDEX_TEXT &&
                    vec_pack(q->vector, dims, s->query) &&
                    search_take_packed(x, s->query, vec_packed_bytes(dims));
    w = search_weights(q, s->by_meaning);
    s->by_meaning = w.semantic > 0;
    s->by_words = w.text > 0;
    s->n_touched = 0;
    if (s->by_words) {
        text_query(x->text, q->text, s->seen, x->n_classes, &s->words);
        s->n_touched =
            text_score_all(x->text, &s->words, s->visible, search_sees_aside(q),
                           s->texts, s->touched);
    }
    if (q->fusion == INDEX_RRF)
        rrf_fuse(x);
    else
        rank_begin(x, w);
    return OK;
}

void index_search_end(struct index *x)
{
    struct index_search *s = &x->search;

    if (!s->is_open)
        return;
    for (size_t i = 0; i < s->n_touched; i++)
        s->texts[s->touched[i]] = 0;
    s->is_open = false;
    s->q = NULL;
}

/* Insert a match in order; only the best remain. */
static void hit_add_match(struct index_hit *h, struct index_match m)
{
    size_t at = h->n_matches;

    while (at > 0 && (h->matches[at - 1].score < m.score ||
                      (h->matches[at - 1].score <= m.score &&
                       h->matches[at - 1].skill > m.skill)))
        at--;
    if (at == INDEX_MATCHES_MAX)
        return;
    if (h->n_matches < INDEX_MATCHES_MAX)
        h->n_matches++;
    memmove(h->matches + at + 1, h->matches + at,
            (h->n_matches - at - 1) * sizeof(m));
    h->matches[at] = m;
}

static void search_fill_hit(struct index *x, uint32_t number,
                            struct index_hit *out)
{
    struct index_search *s = &x->search;
    struct index_entry *e = x->agents[number];

    e->shown_in = s->serial;
    out->number = number;
    out->n_matches = 0;
    for (size_t i = 0; i < e->n_docs; i++) {
        struct index_match m;
        float fused = s->bounds[e->docs[i]];

        if (!search_admits(s->q, x, e->docs[i]))
            continue;
        rank_score(x, e->docs[i], s->weights, &m);
        if (s->q->fusion == INDEX_RRF)
            m.score = fused;
        if (m.score > 0)
            hit_add_match(out, m);
    }
    out->score = out->matches[0].score;
}

static bool search_next_doc(struct index *x, struct rated *out)
{
    struct index_search *s = &x->search;

    if (s->q->fusion != INDEX_RRF)
        return rank_next(x, out);
    if (s->next_fused == s->n_fused)
        return false;
    *out = s->fused[s->next_fused++];
    return true;
}

bool index_next(struct index *x, struct index_hit *out)
{
    struct index_search *s = &x->search;
    struct rated r;

    assert(s->is_open);
    while (search_next_doc(x, &r)) {
        uint32_t number = x->docs[r.doc].number;

        if (x->agents[number]->shown_in == s->serial)
            continue;
        search_fill_hit(x, number, out);
        return true;
    }
    return false;
}

/* Nearly all are, so few have to be computed exactly. */
static bool search_is_above_zero(const struct index *x, uint32_t doc)
{
    const struct index_search *s = &x->search;

    if (s->by_words && s->texts[doc] > 0)
        return true;
    return s->by_meaning &&
           index_vecs_is_above_zero(&x->vectors, &s->vector, doc,
                                    s->bounds[doc] / s->weights.semantic);
}

/* bounds are real scores after rrf_fuse(). */
static bool search_is_hit(struct index *x, uint32_t doc, double least)
{
    struct index_search *s = &x->search;
    float score = s->bounds[doc];

    if (score <= 0 || (double)score < least || !search_admits(s->q, x, doc))
        return false;
    if (s->q->fusion == INDEX_RRF ||
        (!(least > 0) && search_is_above_zero(x, doc)))
        return true;
    score = rank_score(x, doc, s->weights, NULL);
    return score > 0 && (double)score >= least;
}

/* A bit per agent: reading their entries would take longer than everything
 * else. */
size_t index_count(struct index *x, double least)
{
    struct index_search *s = &x->search;
    size_t n = 0;

    assert(s->is_open);
    memset(s->counted, 0, s->counted_cap * sizeof(*s->counted));
    for (uint32_t doc = 0; doc < x->n_docs; doc++) {
        uint32_t number;
        uint64_t bit;

        if (s->bounds[doc] <= 0)
            continue;
        number = x->docs[doc].number;
        bit = UINT64_C(1) << number % 64;
        if (!(s->counted[number / 64] & bit) && search_is_hit(x, doc, least)) {
            s->counted[number / 64] |= bit;
            n++;
        }
    }
    return n;
}
