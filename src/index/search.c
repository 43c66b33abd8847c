/* One search: who may see what, what the words give, and then documents best
 * first (rank.c) until whoever asks has enough agents.
 *
 * Which documents are seen is a bit for each, made anew for every search by
 * comparing each document's class with the three that are seen: cheaper than
 * keeping a bitmap for each class, and nothing to keep right.
 *
 * With fusion "rrf" a document's score comes from its places in two lists, the
 * best 200 by meaning and the best 200 by words; only those have one at all.
 * Both lists are made when the search begins, by the same ranking. */
#include "index/data.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/fault.h"

/* What was all zero stays that. */
static bool grow_zero(float **p, size_t n)
{
    float *more = FAULT("index.search_texts") ? NULL : calloc(n, sizeof(*more));

    if (!more)
        return false;
    free(*p);
    *p = more;
    return true;
}

#define GROW(p, n)                                           \
    ((grown = index_grow((p), (n), sizeof(*(p)))) != NULL && \
     ((p) = grown, true))

static enum err room(struct index *x)
{
    struct index_search *s = &x->search;
    size_t n = (x->n_docs + 63) / 64 * 64;
    void *grown;

    if (!s->query) {
        /* Packed, and its planes in rows. */
        s->query = FAULT("index.query")
                       ? NULL
                       : malloc(vec_packed_bytes(INDEX_DIMS_MAX) +
                                2 * INDEX_STRIDE_MAX);
        if (!s->query)
            return ERR_NOMEM;
    }
    if (s->seen_cap < x->classes_cap / 64 + 1) {
        if (!GROW(s->seen, x->classes_cap / 64 + 1))
            return ERR_NOMEM;
        s->seen_cap = x->classes_cap / 64 + 1;
    }
    if (s->counted_cap < x->agents_end / 64 + 1) {
        if (!GROW(s->counted, x->agents_end / 64 + 1))
            return ERR_NOMEM;
        s->counted_cap = x->agents_end / 64 + 1;
    }
    if (n <= s->cap)
        return OK;
    n = (n + n / 4 + 63) / 64 * 64;
    if (!GROW(s->visible, n / 64) || !GROW(s->bounds, n) ||
        !GROW(s->best_of_64, n / 64) || !GROW(s->touched, n) ||
        !GROW(s->heap, n) || !grow_zero(&s->texts, n))
        return ERR_NOMEM;
    s->cap = n;
    return OK;
}

/* The classes that are seen. */
struct views {
    uint32_t cls[3]; /* NOBODY where there is none */
};
#define NOBODY (NO_CLASS - 1)

static enum err find_views(const struct index *x, const struct index_query *q,
                           struct views *v)
{
    const struct index_class of[3] = {
        {INDEX_PUBLIC, {NULL, 0}},
        {INDEX_ORG, q->org},
        {INDEX_CREATOR, q->creator},
    };
    enum err e = OK;

    for (size_t i = 0; !e && i < 3; i++) {
        v->cls[i] = NO_CLASS;
        if (of[i].kind == INDEX_PUBLIC || of[i].name.n > 0)
            e = index_class_find(x, of[i], &v->cls[i]);
        if (v->cls[i] == NO_CLASS)
            v->cls[i] = NOBODY;
    }
    return e;
}

/* Each bit of a word by itself: so that the compiler compares and gathers four
 * documents at a time. */
#define BITS_4(i)  1U << (i), 2U << (i), 4U << (i), 8U << (i)
#define BITS_16(i) BITS_4(i), BITS_4((i) + 4), BITS_4((i) + 8), BITS_4((i) + 12)
static const uint32_t bit_of[32] = {BITS_16(0), BITS_16(16)};

static uint32_t see_32(const uint32_t *cls, const struct views *v)
{
    uint32_t a = v->cls[0], b = v->cls[1], c = v->cls[2], bits = 0;

    for (size_t i = 0; i < 32; i++) {
        uint32_t is_seen = (cls[i] == a) | (cls[i] == b) | (cls[i] == c);

        bits |= -is_seen & bit_of[i];
    }
    return bits;
}

static uint32_t used_of_32(const uint32_t *cls)
{
    uint32_t bits = 0;

    for (size_t i = 0; i < 32; i++)
        bits |= -(uint32_t)(cls[i] != NO_CLASS) & bit_of[i];
    return bits;
}

static uint64_t see_64(const uint32_t *cls, const struct views *v,
                       bool sees_all)
{
    uint64_t low = sees_all ? used_of_32(cls) : see_32(cls, v);
    uint64_t high = sees_all ? used_of_32(cls + 32) : see_32(cls + 32, v);

    return high << 32 | low;
}

static void see_granted(struct index *x)
{
    struct index_search *s = &x->search;

    for (size_t i = 0; i < s->q->n_granted; i++) {
        uint32_t number = s->q->granted[i];
        const struct index_entry *e =
            number < x->agents_end ? x->agents[number] : NULL;

        for (size_t k = 0; e && k < e->n_docs; k++)
            s->visible[e->docs[k] / 64] |= UINT64_C(1) << e->docs[k] % 64;
    }
}

static void see(struct index *x, const struct views *v)
{
    struct index_search *s = &x->search;
    bool sees_all = s->q->sees_all;

    memset(s->seen, sees_all ? 0xff : 0, s->seen_cap * sizeof(*s->seen));
    for (size_t i = 0; i < 3; i++)
        if (v->cls[i] != NOBODY)
            s->seen[v->cls[i] / 64] |= UINT64_C(1) << v->cls[i] % 64;
    for (size_t i = 0; i < x->n_docs; i += 64) {
        s->visible[i / 64] = see_64(x->doc_class + i, v, sees_all);
    }
    see_granted(x);
}

bool search_admits(const struct index_query *q, const struct index *x,
                   uint32_t doc)
{
    return !q->admits ||
           q->admits(q->ctx, x->docs[doc].number, x->docs[doc].skill);
}

static float part_of(float weight)
{
    return isfinite(weight) && weight > 0 ? weight : 0;
}

struct weights search_weights(const struct index_query *q, bool has_vector)
{
    struct weights w = {part_of(q->semantic_weight), part_of(q->text_weight)};
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

static bool take_vector(struct index *x)
{
    struct index_search *s = &x->search;
    size_t dims = x->vectors.dims;

    return s->q->vector && dims && s->q->mode != INDEX_TEXT &&
           vec_pack(s->q->vector, dims, s->query) &&
           search_take_packed(x, s->query, vec_packed_bytes(dims));
}

/* The places of a document in the two lists. */
struct place {
    uint32_t doc;
    size_t semantic, text;
};

/* The last one of a list: what equals it has its place. */
struct last {
    size_t n; /* in the list */
    size_t place;
    float value;
};

static struct last list_places(struct index *x, struct weights w,
                               struct place *places, size_t *n)
{
    struct last last = {0};
    struct rated r;

    rank_begin(x, w);
    while (last.n < RRF_BEST && rank_next(x, &r)) {
        size_t i = 0;

        last.n++;
        if (last.n == 1 || r.score < last.value)
            last.place = last.n;
        last.value = r.score;
        while (i < *n && places[i].doc != r.doc)
            i++;
        if (i == *n)
            places[(*n)++] = (struct place){.doc = r.doc};
        *(w.semantic > 0 ? &places[i].semantic : &places[i].text) = last.place;
    }
    return last;
}

/* Equals of the last of a list that it was too short for, in the other one. */
static void place_equals(struct index *x, struct place *p,
                         const struct last *by_meaning,
                         const struct last *by_words)
{
    struct index_match parts;

    if ((p->semantic || by_meaning->n < RRF_BEST) &&
        (p->text || by_words->n < RRF_BEST))
        return;
    rank_score(x, p->doc, (struct weights){1, 0}, &parts);
    if (!p->semantic && by_meaning->n == RRF_BEST &&
        parts.semantic >= by_meaning->value)
        p->semantic = by_meaning->place;
    if (!p->text && by_words->n == RRF_BEST && parts.text >= by_words->value)
        p->text = by_words->place;
}

static int by_score(const void *a, const void *b, void *ctx)
{
    const struct rated *ra = a, *rb = b;

    if (ra->score > rb->score || ra->score < rb->score)
        return ra->score > rb->score ? -1 : 1;
    return index_doc_order(ctx, ra->doc, rb->doc);
}

/* From then on bounds hold the documents' scores. */
static void fuse(struct index *x)
{
    struct index_search *s = &x->search;
    struct place places[2 * RRF_BEST];
    struct last by_meaning = {0}, by_words = {0};
    size_t n = 0;

    if (s->by_meaning)
        by_meaning = list_places(x, (struct weights){1, 0}, places, &n);
    if (s->by_words)
        by_words = list_places(x, (struct weights){0, 1}, places, &n);
    for (size_t i = 0; i < n; i++)
        place_equals(x, &places[i], &by_meaning, &by_words);
    for (size_t i = 0; i < x->n_docs; i++)
        s->bounds[i] = 0;
    for (size_t i = 0; i < n; i++) {
        float score =
            score_of_places(places[i].semantic, places[i].text,
                            (size_t)s->by_meaning + (size_t)s->by_words);

        s->fused[i] = (struct rated){score, places[i].doc};
        s->bounds[places[i].doc] = score;
    }
    s->n_fused = n;
    s->next_fused = 0;
    qsort_r(s->fused, n, sizeof(*s->fused), by_score, x);
}

enum err search_see(struct index *x, const struct index_query *q)
{
    struct views v;
    enum err e = room(x);

    if (!e)
        e = find_views(x, q, &v);
    if (!e) {
        x->search.q = q;
        see(x, &v);
    }
    return e;
}

static void begin(struct index *x)
{
    struct index_search *s = &x->search;
    struct weights w;

    s->is_open = true;
    s->serial++;
    x->stats.searches_total++;
    s->by_meaning = take_vector(x);
    w = search_weights(s->q, s->by_meaning);
    s->by_meaning = w.semantic > 0;
    s->by_words = w.text > 0;
    s->n_touched = 0;
    if (s->by_words) {
        text_query(x->text, s->q->text, s->seen, x->n_classes, &s->words);
        s->n_touched = text_score_all(x->text, &s->words, s->visible, s->texts,
                                      s->touched);
    }
    if (s->q->fusion == INDEX_RRF)
        fuse(x);
    else
        rank_begin(x, w);
}

enum err index_search_begin(struct index *x, const struct index_query *q)
{
    enum err e;

    assert(!x->search.is_open);
    e = search_see(x, q);
    if (!e)
        begin(x);
    return e;
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

/* The best ones stay, in order. */
static void add_match(struct index_hit *h, struct index_match m)
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

static void show(struct index *x, uint32_t number, struct index_hit *out)
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
            add_match(out, m);
    }
    out->score = out->matches[0].score;
}

static bool next_doc(struct index *x, struct rated *out)
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
    while (next_doc(x, &r)) {
        uint32_t number = x->docs[r.doc].number;

        if (x->agents[number]->shown_in == s->serial)
            continue;
        show(x, number, out);
        return true;
    }
    return false;
}

/* Nearly all are, so that few have to be computed finely. */
static bool is_above_zero(const struct index *x, uint32_t doc)
{
    const struct index_search *s = &x->search;

    if (s->by_words && s->texts[doc] > 0)
        return true;
    return s->by_meaning &&
           index_vecs_is_above_zero(&x->vectors, &s->vector, doc,
                                    s->bounds[doc] / s->weights.semantic);
}

/* bounds are real scores after fuse(). */
static bool is_hit(struct index *x, uint32_t doc, double least)
{
    struct index_search *s = &x->search;
    float score = s->bounds[doc];

    if (score <= 0 || (double)score < least || !search_admits(s->q, x, doc))
        return false;
    if (s->q->fusion == INDEX_RRF || (!(least > 0) && is_above_zero(x, doc)))
        return true;
    score = rank_score(x, doc, s->weights, NULL);
    return score > 0 && (double)score >= least;
}

/* A bit for each agent: to look at their entries would take longer than all of
 * the rest. */
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
        if (!(s->counted[number / 64] & bit) && is_hit(x, doc, least)) {
            s->counted[number / 64] |= bit;
            n++;
        }
    }
    return n;
}
