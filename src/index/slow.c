/* What a search is, said as plainly as it can be: every document of every agent
 * that is seen is computed from its numbers and its words, and all of them are
 * sorted. It shares with the other the words' weights (text_query), the
 * definition of a score, and nothing else. */
#include "index/data.h"

#include <stdlib.h>

struct slow_doc {
    uint32_t number, place; /* of the agent; in its docs */
    float semantic, text, score;
    size_t semantic_place, text_place; /* in the lists of "rrf" */
};

struct slow {
    const struct index *x;
    const struct index_query *q;
    struct slow_doc *docs;
    size_t n_docs;
    struct text_query words;
    uint8_t *vector, *other; /* packed; vector NULL: by words alone */
};

/* Seen, by what its class is called. */
static bool sees_class(const struct index_query *q, const struct class *c)
{
    struct str name = str_sub(c->key, 1, c->key.n);

    if (q->sees_all || c->key.p[0] == '0' + INDEX_PUBLIC)
        return true;
    return name.n > 0 &&
           str_eq(name, c->key.p[0] == '0' + INDEX_ORG ? q->org : q->creator);
}

static bool sees_agent(const struct slow *s, const struct index_entry *e)
{
    for (size_t i = 0; i < s->q->n_granted; i++)
        if (s->q->granted[i] == e->number)
            return true;
    return sees_class(s->q, s->x->classes[e->cls]);
}

static float clip(double likeness)
{
    float f = (float)likeness;

    return f > 0 ? (f < 1 ? f : 1) : 0;
}

static float likeness(struct slow *s, uint32_t doc)
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
    return clip((double)scales[0] * (double)scales[1] * (double)sum *
                vec_gain(is_quick[0], is_quick[1]));
}

static const struct index_entry *agent_of(const struct slow *s,
                                          const struct slow_doc *d)
{
    return s->x->agents[d->number];
}

static int by_agent(const struct slow *s, const struct slow_doc *a,
                    const struct slow_doc *b)
{
    int names = str_cmp_nocase(agent_of(s, a)->name, agent_of(s, b)->name);

    if (names != 0)
        return names;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    if (a->place == 0 || b->place == 0) /* the agent itself comes last */
        return a->place == 0 ? b->place != 0 : -1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static int order(const struct slow *s, float a, float b,
                 const struct slow_doc *da, const struct slow_doc *db)
{
    return a > b ? -1 : a < b ? 1 : by_agent(s, da, db);
}

static int by_semantic(const void *a, const void *b, void *ctx)
{
    const struct slow_doc *x = a, *y = b;

    return order(ctx, x->semantic, y->semantic, x, y);
}

static int by_text(const void *a, const void *b, void *ctx)
{
    const struct slow_doc *x = a, *y = b;

    return order(ctx, x->text, y->text, x, y);
}

static int by_score(const void *a, const void *b, void *ctx)
{
    const struct slow_doc *x = a, *y = b;

    return order(ctx, x->score, y->score, x, y);
}

static void sort(struct slow *s, int (*by)(const void *, const void *, void *))
{
    if (s->n_docs > 0)
        qsort_r(s->docs, s->n_docs, sizeof(*s->docs), by, s);
}

/* That of the first of its equals; they stand in order. */
static size_t place_of(const struct slow *s, size_t i, bool by_meaning)
{
    const struct slow_doc *d = s->docs;

    while (i > 0 && !(by_meaning ? d[i - 1].semantic > d[i].semantic
                                 : d[i - 1].text > d[i].text))
        i--;
    return i + 1;
}

/* What a list is too short for, but not for its equals: if it is in the other
 * one. */
static void rate_left_out(struct slow *s, const struct slow_doc *by_meaning,
                          const struct slow_doc *by_words)
{
    for (size_t i = 0; i < s->n_docs; i++) {
        struct slow_doc *d = &s->docs[i];
        bool has_none = d->semantic_place == 0, has_no_words = !d->text_place;

        if (has_none && has_no_words)
            continue;
        if (has_none && by_meaning->semantic > 0 &&
            !(d->semantic < by_meaning->semantic))
            d->semantic_place = by_meaning->semantic_place;
        if (has_no_words && by_words->text > 0 && !(d->text < by_words->text))
            d->text_place = by_words->text_place;
    }
}

static void rate_places(struct slow *s, struct weights w)
{
    size_t n = s->n_docs < RRF_BEST ? s->n_docs : RRF_BEST;
    struct slow_doc last_by_meaning = {0}, last_by_words = {0};

    sort(s, by_semantic);
    for (size_t i = 0; i < n; i++)
        if (s->docs[i].semantic > 0) {
            s->docs[i].semantic_place = place_of(s, i, true);
            last_by_meaning = s->docs[i];
        }
    sort(s, by_text);
    for (size_t i = 0; i < n; i++)
        if (s->docs[i].text > 0) {
            s->docs[i].text_place = place_of(s, i, false);
            last_by_words = s->docs[i];
        }
    rate_left_out(s, &last_by_meaning, &last_by_words);
    for (size_t i = 0; i < s->n_docs; i++)
        s->docs[i].score =
            score_of_places(s->docs[i].semantic_place, s->docs[i].text_place,
                            (size_t)(w.semantic > 0) + (size_t)(w.text > 0));
}

static void rate(struct slow *s)
{
    struct weights w = search_weights(s->q, s->vector != NULL);

    for (size_t i = 0; i < s->n_docs; i++) {
        struct slow_doc *d = &s->docs[i];
        const struct index_entry *e = agent_of(s, d);

        if (w.semantic > 0 && e->has_vectors)
            d->semantic = likeness(s, e->docs[d->place]);
        if (w.text > 0)
            d->text = text_score_one(s->x->text, &s->words, e->docs[d->place]);
        d->score = score_of(w, d->semantic, d->text);
    }
    if (s->q->fusion == INDEX_RRF)
        rate_places(s, w);
    sort(s, by_score);
}

static void gather(struct slow *s)
{
    for (size_t i = 0; i < s->x->agents_end; i++) {
        const struct index_entry *e = s->x->agents[i];

        if (!e || !sees_agent(s, e))
            continue;
        for (uint32_t k = 0; k < e->n_docs; k++)
            if (search_admits(s->q, s->x, e->docs[k]))
                s->docs[s->n_docs++] =
                    (struct slow_doc){.number = e->number, .place = k};
    }
}

/* All of its documents above zero; they stand in order. */
static void show(const struct slow *s, size_t first, struct index_hit *h)
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

static size_t show_all(const struct slow *s, struct index_hit *out, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_docs && n < max; i++) {
        size_t k = 0;

        if (!(s->docs[i].score > 0))
            break;
        while (k < n && out[k].number != s->docs[i].number)
            k++;
        if (k == n)
            show(s, i, &out[n++]);
    }
    return n;
}

static void weigh_words(struct slow *s, uint64_t *seen)
{
    for (size_t i = 0; i < s->x->n_classes; i++)
        if (s->x->classes[i] && sees_class(s->q, s->x->classes[i]))
            seen[i / 64] |= UINT64_C(1) << i % 64;
    text_query(s->x->text, s->q->text, seen, s->x->n_classes, &s->words);
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
        weigh_words(&s, seen);
        gather(&s);
        rate(&s);
        *n = show_all(&s, out, max);
        e = OK;
    }
    free(seen);
    free(vectors);
    free(s.docs);
    return e;
}
