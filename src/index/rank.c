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
    const struct search *s = &x->search;
    float semantic =
        s->by_meaning ? vectors_likeness(&x->vectors, &s->vector, doc) : 0;
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
    struct search *s = &x->search;
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
    struct search *s = &x->search;

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

/* The best `want` (and what equals the last of them) of the documents below the
 * floor go into the heap. */
static void add_layer(struct index *x, size_t want)
{
    struct search *s = &x->search;
    struct spot *spots = s->heap + s->n_heap;
    size_t n = 0, limit = 4 * want;
    float least = FLT_TRUE_MIN, below = s->floor;

    for (uint32_t doc = 0; doc < x->n_docs; doc++) {
        float bound = s->bounds[doc];

        if (bound < least || bound >= below)
            continue;
        if (!search_admits(s->q, x, doc)) {
            s->bounds[doc] = 0;
            continue;
        }
        spots[n++] = (struct spot){bound, doc};
        if (n < limit)
            continue;
        least = keep_best(spots, &n, want);
        if (n > limit / 2)
            limit *= 2; /* so many are equal */
    }
    if (n > want)
        least = keep_best(spots, &n, want);
    s->floor = n >= want ? least : 0;
    s->n_heap += n;
    heapify(x);
}

/* Bounds. */

static void bound_words(const struct search *s, struct weights w, size_t first,
                        float *bounds)
{
    for (size_t i = 0; i < 64; i++)
        bounds[i] = score_of(w, bounds[i], s->texts[first + i]);
}

/* Of 64 documents. */
static void bound_some(struct index *x, struct weights w, size_t first)
{
    struct search *s = &x->search;
    float *bounds = s->bounds + first;
    uint64_t seen = s->visible[first / 64];

    if (seen && s->by_meaning && w.semantic > 0)
        vectors_bound_64(&x->vectors, &s->vector, (uint32_t)first, bounds);
    else
        memset(bounds, 0, 64 * sizeof(*bounds));
    if (!seen)
        return;
    bound_words(s, w, first, bounds);
    for (uint64_t others = ~seen; others; others &= others - 1)
        bounds[__builtin_ctzll(others)] = 0;
}

void rank_begin(struct index *x, struct weights w)
{
    struct search *s = &x->search;

    s->weights = w;
    s->n_heap = 0;
    s->floor = FLT_MAX;
    s->layer = FIRST_LAYER;
    for (size_t i = 0; i < x->n_docs; i += 64)
        bound_some(x, w, i);
    x->stats.scanned_total += (int64_t)x->n_docs;
}

static bool was_shown(const struct index *x, uint32_t doc)
{
    return x->agents[x->docs[doc].number]->shown_in == x->search.serial;
}

bool rank_next(struct index *x, struct rated *out)
{
    struct search *s = &x->search;

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
