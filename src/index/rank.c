/* Documents, best first, without computing all of them.
 *
 * Each document that is seen has an upper bound of its score. The best by that
 * bound go into a heap; whatever is on top is computed finely and goes back
 * with its real score, which is never above its bound. When something that is
 * real comes to the top, everything else, real or bound, is not above it: it is
 * the next. Of equal keys bounds come first, so that all who could be equal are
 * real when they are compared by name. So what comes out is what sorting the
 * real scores of all documents would give, to the last bit; slow.c does that.
 *
 * A heap of all documents would cost more than the guess of them. So it is
 * filled in layers: first the best few hundred by their bounds, which nearly
 * always will do; only when the top falls below the `floor` of that layer, the
 * best of the rest, eight times as many. Everything outside the heap has a
 * bound below the floor. A layer is found in one walk that keeps the best so
 * far and raises its own threshold as it fills.
 *
 * Filters are asked for what gets that far, and no further. */
#include "index/data.h"

#include <float.h>

enum { FIRST_LAYER = 256, LAYER_GROWTH = 8 };

float rank_score(struct index *x, uint32_t doc, struct weights w,
                 struct index_match *parts)
{
    const struct index_search *s = &x->search;
    float semantic =
        s->by_meaning ? index_vecs_likeness(&x->vectors, &s->vector, doc) : 0;
    float text = s->by_words ? s->texts[doc] : 0;
    float score = score_of(w, semantic, text);

    x->stats.refined_total++;
    if (parts)
        *parts =
            (struct index_match){x->docs[doc].skill, score, semantic, text};
    return score;
}

/* The heap. */

static bool is_before(const struct index *x, struct spot a, struct spot b)
{
    if (a.key > b.key || a.key < b.key)
        return a.key > b.key;
    if ((a.doc ^ b.doc) & IS_EXACT)
        return !(a.doc & IS_EXACT);
    if (!(a.doc & IS_EXACT))
        return false; /* in whichever order */
    return index_doc_order(x, a.doc & ~IS_EXACT, b.doc & ~IS_EXACT) < 0;
}

static void sift_down(struct index *x, size_t at)
{
    struct index_search *s = &x->search;
    struct spot moved = s->heap[at];

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= s->n_heap)
            break;
        if (child + 1 < s->n_heap &&
            is_before(x, s->heap[child + 1], s->heap[child]))
            child++;
        if (!is_before(x, s->heap[child], moved))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = moved;
}

static void heapify(struct index *x)
{
    for (size_t i = x->search.n_heap / 2; i-- > 0;)
        sift_down(x, i);
}

static void pop(struct index *x)
{
    struct index_search *s = &x->search;

    s->heap[0] = s->heap[--s->n_heap];
    if (s->n_heap > 0)
        sift_down(x, 0);
}

/* Layers. */

/* Order spots so that the n best keys come first; returns the least of them.
 * 0 < n <= n_spots. */
static float select_best(struct spot *spots, size_t n_spots, size_t n)
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

/* Keep those that are at least the nth best; returns what that is. */
static float keep_best(struct spot *spots, size_t *n_spots, size_t n)
{
    float least = select_best(spots, *n_spots, n);
    size_t kept = n;

    for (size_t i = n; i < *n_spots; i++)
        if (spots[i].key >= least)
            spots[kept++] = spots[i];
    *n_spots = kept;
    return least;
}

/* A layer in the making: the best so far, at the end of the heap. */
struct layer {
    struct spot *spots;
    size_t n, want, limit;
    float least, below; /* what comes into it */
};

static void layer_add(struct index *x, struct layer *l, uint32_t doc)
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
    l->least = keep_best(l->spots, &l->n, l->want);
    if (l->n > l->limit / 2)
        l->limit *= 2; /* so many are equal */
}

/* The best `want` (and what equals the last of them) of the documents below the
 * floor go into the heap. */
static void add_layer(struct index *x, size_t want)
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
            layer_add(x, &l, (uint32_t)doc);
    }
    if (l.n > want)
        l.least = keep_best(l.spots, &l.n, want);
    s->floor = l.n >= want ? l.least : 0;
    s->n_heap += l.n;
    heapify(x);
}

/* Bounds. */

/* From likeness, or its bound, to that of the score. Sixteen largest ones side
 * by side, so that none waits for itself. */
static float bound_scores(struct weights w, const float *restrict texts,
                          float *restrict bounds)
{
    float most[16] = {0};

    for (size_t i = 0; i < 64; i += 16)
        for (size_t k = 0; k < 16; k++) {
            float b = score_of(w, bounds[i + k], texts[i + k]);

            bounds[i + k] = b;
            most[k] = b > most[k] ? b : most[k];
        }
    for (size_t half = 8; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++)
            most[k] = most[k] > most[k + half] ? most[k] : most[k + half];
    return most[0];
}

/* Of 64 documents; returns the largest. */
static float bound_64(struct index *x, struct weights w, size_t first)
{
    struct index_search *s = &x->search;
    float *bounds = s->bounds + first, most;
    uint64_t seen = s->visible[first / 64];

    if (seen && s->by_meaning && w.semantic > 0)
        index_vecs_bound_64(&x->vectors, &s->vector, (uint32_t)first, bounds);
    else
        memset(bounds, 0, 64 * sizeof(*bounds));
    if (!seen)
        return 0;
    most = bound_scores(w, s->texts + first, bounds);
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
        s->best_of_64[i / 64] = bound_64(x, w, i);
    x->stats.scanned_total += (int64_t)x->n_docs;
}

static bool was_shown(const struct index *x, uint32_t doc)
{
    return x->agents[x->docs[doc].number]->shown_in == x->search.serial;
}

bool rank_next(struct index *x, struct rated *out)
{
    struct index_search *s = &x->search;

    for (;;) {
        struct spot *top = s->heap;

        if (s->floor > 0 && (s->n_heap == 0 || top->key < s->floor)) {
            add_layer(x, s->layer);
            s->layer *= LAYER_GROWTH;
            continue;
        }
        if (s->n_heap == 0)
            return false;
        if (top->doc & IS_EXACT) {
            *out = (struct rated){top->key, top->doc & ~IS_EXACT};
            pop(x);
            return true;
        }
        if (was_shown(x, top->doc)) {
            pop(x);
            continue;
        }
        top->key = rank_score(x, top->doc, s->weights, NULL);
        top->doc |= IS_EXACT;
        if (top->key > 0)
            sift_down(x, 0);
        else
            pop(x);
    }
}
