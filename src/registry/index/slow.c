/* The plain definition of a search, for tests: every document of every visible
 * agent is computed from its numbers and words, and all are sorted. It shares
 * with the real search only the weights of words (text_query) and the
 * definition of a score. */
#include "registry/index/data.h"

#include <stdlib.h>

struct slow_doc {
    uint32_t number, place; /* of the agent; index in its docs */
    float semantic, text, score;
    size_t semantic_rank, text_rank; /* in the lists of "rrf" */
};

struct slow {
    const struct index *x;
    const struct index_query *q;
    struct slow_doc *docs;
    size_t n_docs;
    struct text_query words;
    uint8_t *vector, *other; /* packed; vector NULL: by words only */
};

/* Visible by the name of its class. */
static bool slow_sees_class(const struct index_query *q, const struct class *c)
{
    struct str name = str_sub(c->key, 1, c->key.n);

    if (q->sees_all || c->key.p[0] == '0' + INDEX_PUBLIC)
        return true;
    return name.n > 0 &&
           str_eq(name, c->key.p[0] == '0' + INDEX_ORG ? q->org : q->creator);
}

static bool slow_sees_agent(const struct slow *s, const struct index_entry *e)
{
    for (size_t i = 0; i < s->q->n_granted; i++)
        if (s->q->granted[i] == e->number)
            return true;
    return slow_sees_class(s->q, s->x->classes[e->cls]);
}

static float slow_clip(double slow_likeness)
{
    float f = (float)slow_likeness;

    return f > 0 ? (f < 1 ? f : 1) : 0;
}

static float slow_likeness(struct slow *s, uint32_t doc)
{
    size_t n = s->x->vectors.dims;
    const int8_t *a = (const int8_t *)s->vector + 8;
    const int8_t *b = (const int8_t *)s->other + 8;
    size_t quick = s->x->vectors.quick;
    int64_t sum = 0;
    float scales[2];
    bool is_quick[2] = {quick > 0, quick > 0};

    index_vecs_get(&s->x->vectors, doc, s->other);
    for (size_t i = 0; i < n; i++) {
        sum += (int64_t)(256 * a[i] + a[n + i]) * (256 * b[i] + b[n + i]);
        if (i >= quick) {
            is_quick[0] = is_quick[0] && !a[i] && !a[n + i];
            is_quick[1] = is_quick[1] && !b[i] && !b[n + i];
        }
    }
    memcpy(&scales[0], s->vector, 4);
    memcpy(&scales[1], s->other, 4);
    return slow_clip((double)scales[0] * (double)scales[1] * (double)sum *
                     vec_gain(is_quick[0], is_quick[1]));
}

static const struct index_entry *slow_agent(const struct slow *s,
                                            const struct slow_doc *d)
{
    return s->x->agents[d->number];
}

static int slow_by_agent(const struct slow *s, const struct slow_doc *a,
                         const struct slow_doc *b)
{
    int names = str_cmp_nocase(slow_agent(s, a)->name, slow_agent(s, b)->name);

    if (names != 0)
        return names;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    if (a->place == 0 || b->place == 0) /* the agent itself comes last */
        return a->place == 0 ? b->place != 0 : -1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static int slow_order(const struct slow *s, float a, float b,
                      const struct slow_doc *da, const struct slow_doc *db)
{
    return a > b ? -1 : a < b ? 1 : slow_by_agent(s, da, db);
}

static int slow_by_semantic(const void *a, const void *b, void *ctx)
{
    const struct slow_doc *x = a, *y = b;

    return slow_order(ctx, x->semantic, y->semantic, x, y);
}

static int slow_by_text(const void *a, const void *b, void *ctx)
{
    const struct slow_doc *x = a, *y = b;

    return slow_order(ctx, x->text, y->text, x, y);
}

static int slow_by_score(const void *a, const void *b, void *ctx)
{
    const struct slow_doc *x = a, *y = b;

    return slow_order(ctx, x->score, y->score, x, y);
}

static void slow_sort(struct slow *s,
                      int (*by)(const void *, const void *, void *))
{
    if (s->n_docs > 0)
        qsort_r(s->docs, s->n_docs, sizeof(*s->docs), by, s);
}

/* The rank of the first of its equals. The list is sorted. */
static size_t slow_rank(const struct slow *s, size_t i, bool by_meaning)
{
    const struct slow_doc *d = s->docs;

    while (i > 0 && !(by_meaning ? d[i - 1].semantic > d[i].semantic
                                 : d[i - 1].text > d[i].text))
        i--;
    return i + 1;
}

/* Documents that a list is too short for, although they equal its last one: if
 * they are in the other list. */
static void slow_rank_equals(struct slow *s, const struct slow_doc *by_meaning,
                             const struct slow_doc *by_words)
{
    for (size_t i = 0; i < s->n_docs; i++) {
        struct slow_doc *d = &s->docs[i];
        bool has_none = d->semantic_rank == 0, has_no_words = !d->text_rank;

        if (has_none && has_no_words)
            continue;
        if (has_none && by_meaning->semantic > 0 &&
            !(d->semantic < by_meaning->semantic))
            d->semantic_rank = by_meaning->semantic_rank;
        if (has_no_words && by_words->text > 0 && !(d->text < by_words->text))
            d->text_rank = by_words->text_rank;
    }
}

static void slow_score_ranks(struct slow *s, struct weights w)
{
    size_t n = s->n_docs < RRF_BEST ? s->n_docs : RRF_BEST;
    struct slow_doc last_by_meaning = {0}, last_by_words = {0};

    slow_sort(s, slow_by_semantic);
    for (size_t i = 0; i < n; i++)
        if (s->docs[i].semantic > 0) {
            s->docs[i].semantic_rank = slow_rank(s, i, true);
            last_by_meaning = s->docs[i];
        }
    slow_sort(s, slow_by_text);
    for (size_t i = 0; i < n; i++)
        if (s->docs[i].text > 0) {
            s->docs[i].text_rank = slow_rank(s, i, false);
            last_by_words = s->docs[i];
        }
    slow_rank_equals(s, &last_by_meaning, &last_by_words);
    for (size_t i = 0; i < s->n_docs; i++)
        s->docs[i].score =
            rrf_score(s->docs[i].semantic_rank, s->docs[i].text_rank,
                      (size_t)(w.semantic > 0) + (size_t)(w.text > 0));
}

static void slow_score(struct slow *s)
{
    struct weights w = search_weights(s->q, s->vector != NULL);

    for (size_t i = 0; i < s->n_docs; i++) {
        struct slow_doc *d = &s->docs[i];
        const struct index_entry *e = slow_agent(s, d);

        if (w.semantic > 0 && e->has_vectors)
            d->semantic = slow_likeness(s, e->docs[d->place]);
        if (w.text > 0)
            d->text = text_score_one(s->x->text, &s->words, e->docs[d->place]);
        d->score = weighted_score(w, d->semantic, d->text);
    }
    if (s->q->fusion == INDEX_RRF)
        slow_score_ranks(s, w);
    slow_sort(s, slow_by_score);
}

/* All documents of the agent above zero, which are in order. */
static void slow_fill_hit(const struct slow *s, size_t first,
                          struct index_hit *h)
{
    *h = (struct index_hit){.number = s->docs[first].number,
                            .score = s->docs[first].score};
    for (size_t i = first; i < s->n_docs && h->n_matches < INDEX_MATCHES_MAX;
         i++) {
        const struct slow_doc *d = &s->docs[i];

        if (d->number != h->number || !(d->score > 0))
            continue;
        h->matches[h->n_matches++] =
            (struct index_match){d->place ? d->place - 1 : INDEX_AGENT,
                                 d->score, d->semantic, d->text};
    }
}

static size_t slow_list_hits(const struct slow *s, struct index_hit *out,
                             size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_docs && n < max; i++) {
        size_t k = 0;

        if (!(s->docs[i].score > 0))
            break;
        while (k < n && out[k].number != s->docs[i].number)
            k++;
        if (k == n)
            slow_fill_hit(s, i, &out[n++]);
    }
    return n;
}

enum err index_search_slow(struct index *x, const struct index_query *q,
                           struct index_hit *out, size_t max, size_t *n)
{
    size_t dims = x->vectors.dims, bytes = vec_packed_bytes(dims);
    struct slow s = {.x = x, .q = q};
    uint64_t *seen = calloc(x->n_classes / 64 + 1, sizeof(*seen));
    uint8_t *vectors = calloc(2, bytes);
    enum err e = ERR_NOMEM;

    s.docs = calloc(x->n_docs + 1, sizeof(*s.docs));
    if (s.docs && seen && vectors) {
        s.other = vectors + bytes;
        if (q->vector && dims > 0 && vec_pack(q->vector, dims, vectors))
            s.vector = vectors;
        for (size_t i = 0; i < x->n_classes; i++)
            if (x->classes[i] && slow_sees_class(q, x->classes[i]))
                seen[i / 64] |= UINT64_C(1) << i % 64;
        text_query(x->text, q->text, seen, x->n_classes, &s.words);
        for (size_t i = 0; i < x->agents_end; i++) {
            const struct index_entry *one = x->agents[i];

            if (!one || !slow_sees_agent(&s, one))
                continue;
            for (uint32_t k = 0; k < one->n_docs; k++)
                if (search_admits(q, x, one->docs[k]))
                    s.docs[s.n_docs++] =
                        (struct slow_doc){.number = one->number, .place = k};
        }
        slow_score(&s);
        *n = slow_list_hits(&s, out, max);
        e = OK;
    }
    free(seen);
    free(vectors);
    free(s.docs);
    return e;
}
