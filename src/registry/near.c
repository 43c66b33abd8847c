/* Everyone who could get a message, and how near it is to each.
 *
 * The index says of every number what its words and its meaning have in common
 * with the text, and who is seen; here they get their names. With ten thousand
 * agents most of the time would go into waiting for memory. So nobody's entry
 * is looked at who cannot be among the best:
 *
 *     guess    everyone's score, no less than it is, from what lies side by
 *              side
 *     floor    the fine scores of the FIRST best guesses: that of the last of
 *              the best asked for, of those that are there
 *     answer   all whose guess is no less than the floor, finely
 *
 * Whoever is left out has a lower score than each of the best, so what comes of
 * them is what would come of everyone. Where so few of the first are there that
 * there is no floor, nobody is left out. */
#include "registry/internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/fault.h"

enum { FIRST = 128 };

static enum err near_room(struct registry *r)
{
    size_t n = r->n_numbers + r->n_numbers / 4 + 1;
    void *more;

    if (r->n > r->near_cap) {
        more = FAULT("registry.near") ? NULL
                                      : realloc(r->near, n * sizeof(*r->near));
        if (!more)
            return ERR_NOMEM;
        r->near = more;
        r->near_cap = n;
    }
    if (r->n_numbers > r->marks_cap) {
        more = FAULT("registry.marks")
                   ? NULL
                   : realloc(r->near_marks, n * sizeof(*r->near_marks));
        if (!more)
            return ERR_NOMEM;
        r->near_marks = more;
        r->marks_cap = n;
        r->near_moves = UINT64_MAX;
    }
    return OK;
}

/* Anew only when somebody has come, changed or gone. */
static void make_marks(struct registry *r)
{
    if (r->near_moves == r->n_moves)
        return;
    for (size_t i = 0; i < r->n_numbers; i++) {
        const struct entry *e = r->by_number[i];

        r->near_marks[i] =
            (struct near_mark){.is_there = e && !e->is_unroutable};
    }
    r->near_moves = r->n_moves;
}

static struct registry_near near_of(const struct registry *r,
                                    const struct registry_near_query *q,
                                    const struct entry *e,
                                    const struct index_near *x)
{
    const struct agent *a = &e->agent;
    struct registry_near near = {
        .agent = a,
        .number = e->number,
        .skill = x->skill == INDEX_AGENT ? NULL : &a->skills[x->skill],
        .cosine = x->cosine,
        .text = x->text,
        .keyword = keyword_said(r, e),
    };

    if ((x->generic > 0 || near.keyword.n) && agent_is_outsider(a, &q->eyes)) {
        near.discount = x->generic;
        /* A stranger's could be "the", "what" and "please". */
        near.keyword = STR("");
    }
    return near;
}

static struct registry_near fine_near(struct registry *r,
                                      const struct registry_near_query *q,
                                      const struct index_near *near,
                                      uint32_t number)
{
    index_near_fine(r->index, number);
    return near_of(r, q, r->by_number[number], &near[number]);
}

/* Everyone's guess; how many there are. */
static size_t guess_all(struct registry *r, const struct registry_near_query *q,
                        const struct index_near *near, size_t n,
                        const struct entry *self)
{
    size_t n_all = 0;

    for (uint32_t i = 0; i < n; i++) {
        struct near_mark *mark = &r->near_marks[i];
        struct registry_near guess = {
            .number = i,
            .cosine = near[i].cosine,
            .text = near[i].text,
            .keyword = mark->is_said ? STR("x") : STR(""),
        };

        mark->is_said = false;
        mark->most = (double)-INFINITY;
        if (!near[i].is_seen || !mark->is_there || (self && i == self->number))
            continue;
        mark->most = q->best ? q->score(q->ctx, &guess) : 0;
        n_all++;
    }
    return n_all;
}

/* The floor. */

struct first {
    double most;
    uint32_t number;
};

/* A heap, the least on top. */
static void sink(struct first *heap, size_t n, struct first one)
{
    size_t at = 0, child;

    while ((child = 2 * at + 1) < n) {
        if (child + 1 < n && heap[child + 1].most < heap[child].most)
            child++;
        if (!(heap[child].most < one.most))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = one;
}

/* The FIRST best guesses of more than that, the best one first. */
static void find_first(const struct registry *r, size_t n,
                       struct first heap[FIRST])
{
    for (size_t i = 0; i < FIRST; i++)
        heap[i] = (struct first){(double)-INFINITY, 0};
    for (uint32_t i = 0; i < n; i++)
        if (r->near_marks[i].most > heap[0].most)
            sink(heap, FIRST, (struct first){r->near_marks[i].most, i});
    for (size_t i = FIRST; i-- > 1;) {
        struct first least = heap[0];

        sink(heap, i, heap[i]);
        heap[i] = least;
    }
}

static size_t keep_score(double *best, size_t n, size_t max, double score)
{
    size_t at = n;

    if (n < max)
        n++;
    else if (best[--at] >= score)
        return n;
    for (; at > 0 && best[at - 1] < score; at--)
        best[at] = best[at - 1];
    best[at] = score;
    return n;
}

/* What the last of the best has, or everybody has more. */
static double find_floor(struct registry *r,
                         const struct registry_near_query *q,
                         const struct index_near *near, size_t n_near)
{
    struct first first[FIRST];
    double best[FIRST];
    size_t n = 0;

    find_first(r, n_near, first);
    for (size_t i = 0; i < FIRST; i++) {
        struct registry_near one;

        if (n == q->best && first[i].most <= best[n - 1])
            break;
        one = fine_near(r, q, near, first[i].number);
        if (registry_is_there(r, one.agent))
            n = keep_score(best, n, q->best, q->score(q->ctx, &one));
    }
    return n == q->best ? best[n - 1] : 0;
}

/* The answer. */

static int by_their_names(const void *a, const void *b)
{
    const struct registry_near *x = a, *y = b;

    return str_cmp_nocase(x->agent->name, y->agent->name);
}

static bool is_in(const struct near_mark *mark)
{
    return mark->most > (double)-INFINITY;
}

/* In the order of the list, which is that of the names. */
static size_t answer_all(struct registry *r,
                         const struct registry_near_query *q,
                         const struct index_near *near, size_t n_near)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++) {
        uint32_t number = entry_of(r->list[i])->number;

        if (number < n_near && is_in(&r->near_marks[number]))
            r->near[n++] = fine_near(r, q, near, number);
    }
    return n;
}

static size_t answer_best(struct registry *r,
                          const struct registry_near_query *q,
                          const struct index_near *near, size_t n_near,
                          double floor)
{
    size_t n = 0;

    for (uint32_t i = 0; i < n_near; i++)
        if (r->near_marks[i].most >= floor)
            r->near[n++] = fine_near(r, q, near, i);
    qsort(r->near, n, sizeof(*r->near), by_their_names);
    return n;
}

enum err registry_near(struct registry *r, const struct registry_near_query *q,
                       const struct registry_near **list, size_t *n,
                       size_t *n_left)
{
    const struct entry *self =
        q->eyes.self.n ? entry_find(r, q->eyes.self) : NULL;
    const struct index_near *near;
    size_t n_near, n_all;
    double floor = 0;
    enum err e = near_room(r);

    *n = *n_left = 0;
    if (e)
        return e;
    vectors_learn(r); /* a message may be the first to hear of other vectors */
    make_marks(r);
    e = keywords_look(r, &q->eyes, q->text);
    if (!e)
        e = ranked_near(r, q, &near, &n_near);
    if (e)
        return e;
    n_near = n_near < r->n_numbers ? n_near : r->n_numbers;
    n_all = guess_all(r, q, near, n_near, self);
    if (q->best && q->best < FIRST && n_all > FIRST)
        floor = find_floor(r, q, near, n_near);
    *n = floor > 0 ? answer_best(r, q, near, n_near, floor)
                   : answer_all(r, q, near, n_near);
    *n_left = n_all - *n;
    *list = r->near;
    return OK;
}

bool registry_number(const struct registry *r, struct str name, uint32_t *out)
{
    const struct entry *e = entry_find(r, name);

    if (e)
        *out = e->number;
    return e != NULL;
}

uint64_t registry_moves(const struct registry *r)
{
    return r->n_moves;
}

const struct agent *registry_at(const struct registry *r, uint32_t number)
{
    const struct entry *e = number < r->n_numbers ? r->by_number[number] : NULL;

    return e ? &e->agent : NULL;
}

size_t registry_numbers(const struct registry *r)
{
    return r->n_numbers;
}

bool registry_is_there(void *ctx, const struct agent *a)
{
    return registry_state(ctx, a) != AGENT_DEAD;
}

int64_t registry_version(const struct registry *r)
{
    return r->seq;
}
