/* Ranking: documents, best first, without computing all of them.
 *
 * Each visible document has an upper bound of its score. The best by bound go
 * into a heap. The top is computed exactly and goes back with its real score,
 * which is never above its bound. When a real score reaches the top, nothing
 * else, real or bound, is above it: it is next. Among equal keys bounds come
 * first, so all documents that could be equal are real when they are compared
 * by name. So the result equals sorting the real scores of all documents, to
 * the last bit; slow.c does that.
 *
 * A heap of all documents would cost more than guessing them. So it is filled
 * in layers: first the best few dozen by bound, which are nearly always enough
 * (ten agents need some thirty documents; among few documents, selecting more
 * took as long as the guess of all). Only when the top falls below the `floor`
 * of that layer, the best of the rest follow, eight times as many. Everything
 * outside the heap has a bound below the floor. A layer is selected in one pass
 * that keeps the best so far and raises its threshold as it fills.
 *
 * Filters are only asked about documents that get this far. */
#include "registry/index/data.h"

#include <float.h>

enum { FIRST_LAYER = 48, LAYER_GROWTH = 8 };

float rank_score(struct index *x, uint32_t doc, struct weights w,
                 struct index_match *parts)
{
    const struct index_search *s = &x->search;
    float semantic =
        s->by_meaning ? index_vecs_likeness(&x->vectors, &s->vector, doc) : 0;
    float text = s->by_words ? s->texts[doc] : 0;
    float score = weighted_score(w, semantic, text);

    x->stats.refined_total++;
    if (parts)
        *parts =
            (struct index_match){x->docs[doc].skill, score, semantic, text};
    return score;
}

static bool spot_is_before(const struct index *x, struct spot a, struct spot b)
{
    if (a.key > b.key || a.key < b.key)
        return a.key > b.key;
    if ((a.doc ^ b.doc) & IS_EXACT)
        return !(a.doc & IS_EXACT);
    if (!(a.doc & IS_EXACT))
        return false; /* in any order */
    return index_doc_order(x, a.doc & ~IS_EXACT, b.doc & ~IS_EXACT) < 0;
}

static void heap_sift_down(struct index *x, size_t at)
{
    struct index_search *s = &x->search;
    struct spot moved = s->heap[at];

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= s->n_heap)
            break;
        if (child + 1 < s->n_heap &&
            spot_is_before(x, s->heap[child + 1], s->heap[child]))
            child++;
        if (!spot_is_before(x, s->heap[child], moved))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = moved;
}

static void heap_pop(struct index *x)
{
    struct index_search *s = &x->search;

    s->heap[0] = s->heap[--s->n_heap];
    if (s->n_heap > 0)
        heap_sift_down(x, 0);
}

/* Order spots so that the n best keys come first; returns the least of them. 0
 * < n <= n_spots. */
static float spots_select_best(struct spot *spots, size_t n_spots, size_t n)
{
    size_t from = 0, to = n_spots - 1, nth = n - 1;

    while (from < to) {
        float pivot = spots[from + (to - from) / 2].key;
        size_t i = from, j = to;

        while (i <= j) {
            while (spots[i].key > pivot)
                i++;
            while (spots[j].key < pivot)
                j--;
            if (i <= j) {
                struct spot other = spots[i];

                spots[i++] = spots[j];
                spots[j] = other;
                if (j == 0)
                    break;
                j--;
            }
        }
        if (nth <= j)
            to = j;
        else if (nth >= i)
            from = i;
        else
            break;
    }
    return spots[nth].key;
}

/* Keep the spots that are at least the nth best; returns its key. */
static float spots_keep_best(struct spot *spots, size_t *n_spots, size_t n)
{
    float least = spots_select_best(spots, *n_spots, n);
    size_t kept = n;

    for (size_t i = n; i < *n_spots; i++)
        if (spots[i].key >= least)
            spots[kept++] = spots[i];
    *n_spots = kept;
    return least;
}

/* A layer in the making: the best so far, after the end of the heap. */
struct layer {
    struct spot *spots;
    size_t n, want, limit;
    float least, below; /* keys from least up to, not including, below */
};

static void layer_add_doc(struct index *x, struct layer *l, uint32_t doc)
{
    struct index_search *s = &x->search;
    float bound = s->bounds[doc];

    if (bound < l->least || bound >= l->below)
        return;
    if (!search_admits(s->q, x, doc)) {
        s->bounds[doc] = 0;
        return;
    }
    l->spots[l->n++] = (struct spot){bound, doc};
    if (l->n < l->limit)
        return;
    l->least = spots_keep_best(l->spots, &l->n, l->want);
    if (l->n > l->limit / 2)
        l->limit *= 2; /* that many are equal */
}

/* Move the best `want` documents below the floor, and those that equal the last
 * of them, into the heap. */
static void heap_add_layer(struct index *x, size_t want)
{
    struct index_search *s = &x->search;
    struct layer l = {
        .spots = s->heap + s->n_heap,
        .want = want,
        .limit = 4 * want,
        .least = FLT_TRUE_MIN,
        .below = s->floor,
    };

    for (size_t first = 0; first < x->n_docs; first += 64) {
        size_t end = first + 64 < x->n_docs ? first + 64 : x->n_docs;

        if (s->best_of_64[first / 64] < l.least)
            continue;
        for (size_t doc = first; doc < end; doc++)
            layer_add_doc(x, &l, (uint32_t)doc);
    }
    if (l.n > want)
        l.least = spots_keep_best(l.spots, &l.n, want);
    s->floor = l.n >= want ? l.least : 0;
    s->n_heap += l.n;
    for (size_t i = x->search.n_heap / 2; i-- > 0;)
        heap_sift_down(x, i);
}

/* Turn similarities, or their bounds, into bounds of the score. Sixteen maxima
 * side by side, so that no step waits for the one before. */
static float rank_bound_scores(struct weights w, const float *restrict texts,
                               float *restrict bounds)
{
    float most[16] = {0};

    for (size_t i = 0; i < 64; i += 16)
        for (size_t k = 0; k < 16; k++) {
            float b = weighted_score(w, bounds[i + k], texts[i + k]);

            bounds[i + k] = b;
            most[k] = b > most[k] ? b : most[k];
        }
    for (size_t half = 8; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++)
            most[k] = most[k] > most[k + half] ? most[k] : most[k + half];
    return most[0];
}

/* Bounds of 64 documents; returns the largest. */
static float rank_bound_64(struct index *x, struct weights w, size_t first)
{
    struct index_search *s = &x->search;
    float *bounds = s->bounds + first, most;
    uint64_t seen = s->visible[first / 64];

    if (seen && s->by_meaning && w.semantic > 0)
        index_vecs_bound_some(&x->vectors, &s->vector, (uint32_t)first, seen,
                              bounds);
    else
        memset(bounds, 0, 64 * sizeof(*bounds));
    if (!seen)
        return 0;
    most = rank_bound_scores(w, s->texts + first, bounds);
    for (uint64_t others = ~seen; others; others &= others - 1)
        bounds[__builtin_ctzll(others)] = 0;
    return most;
}

void rank_begin(struct index *x, struct weights w)
{
    struct index_search *s = &x->search;

    s->weights = w;
    s->n_heap = 0;
    s->floor = FLT_MAX;
    s->layer = FIRST_LAYER;
    for (size_t i = 0; i < x->n_docs; i += 64)
        s->best_of_64[i / 64] = rank_bound_64(x, w, i);
    x->stats.scanned_total += (int64_t)x->n_docs;
}

bool rank_next(struct index *x, struct rated *out)
{
    struct index_search *s = &x->search;

    for (;;) {
        struct spot *top = s->heap;

        if (s->floor > 0 && (s->n_heap == 0 || top->key < s->floor)) {
            heap_add_layer(x, s->layer);
            s->layer *= LAYER_GROWTH;
            continue;
        }
        if (s->n_heap == 0)
            return false;
        if (top->doc & IS_EXACT) {
            *out = (struct rated){top->key, top->doc & ~IS_EXACT};
            heap_pop(x);
            return true;
        }
        if (x->agents[x->docs[top->doc].number]->shown_in == s->serial) {
            heap_pop(x);
            continue;
        }
        top->key = rank_score(x, top->doc, s->weights, NULL);
        top->doc |= IS_EXACT;
        if (top->key > 0)
            heap_sift_down(x, 0);
        else
            heap_pop(x);
    }
}
