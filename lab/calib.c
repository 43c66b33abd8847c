/* Every threshold that makes a difference is between two best scores, so one
 * pass over the queries in the order of their scores tries them all. */
#include "lab/calib.h"

#include <math.h>
#include <stdlib.h>

#include "base/fault.h"

enum { STEPS = 20, SEMANTIC_LEAST = 6 };

/* The best score of a query. */
struct calib_point {
    double score;
    bool is_out, is_right;
};

void calib_add(struct calib_figures *to, const struct calib_figures *from)
{
    to->n += from->n;
    to->n_right += from->n_right;
    to->n_refused += from->n_refused;
    to->n_out += from->n_out;
    to->n_noticed += from->n_noticed;
}

double calib_worth(const struct calib_figures *f)
{
    double right = f->n ? (double)f->n_right / (double)f->n : 1;
    double noticed = f->n_out ? (double)f->n_noticed / (double)f->n_out : 1;

    return f->n_out ? (right + noticed) / 2 : right;
}

static struct calib_point calib_query_point(const struct calib_set *s,
                                            const struct calib_query *q,
                                            const struct signal_weights *w)
{
    struct calib_point out = {.score = 0, .is_out = q->is_out};

    for (size_t i = 0; i < q->n; i++) {
        const struct calib_candidate *c = &s->candidates[q->first + i];
        double score = w->semantic * (double)c->semantic +
                       w->performance * (double)c->performance +
                       w->keyword * (double)c->keyword +
                       w->recency * (double)c->recency;

        if (i && score <= out.score)
            continue;
        out.score = score;
        out.is_right = c->is_right;
    }
    return out;
}

static void calib_judge_point(const struct calib_point *p, double threshold,
                              struct calib_figures *out)
{
    bool is_refused = p->score < threshold;

    if (p->is_out) {
        out->n_out++;
        out->n_noticed += is_refused;
        return;
    }
    out->n++;
    out->n_refused += is_refused;
    out->n_right += !is_refused && p->is_right;
}

void calib_judge(const struct calib_set *s, const struct signal_weights *w,
                 double threshold, unsigned fold, struct calib_figures *out)
{
    *out = (struct calib_figures){.n = 0};
    for (size_t i = 0; i < s->n; i++) {
        struct calib_point p;

        if (fold != CALIB_ALL && s->queries[i].fold != fold)
            continue;
        p = calib_query_point(s, &s->queries[i], w);
        calib_judge_point(&p, threshold, out);
    }
}

static int calib_compare_scores(const void *a, const void *b)
{
    const struct calib_point *x = a, *y = b;

    return x->score < y->score ? -1 : x->score > y->score;
}

/* Without queries out of scope: the highest threshold that the cost allows. */
static double calib_highest_threshold(const struct calib_point *p, size_t n,
                                      size_t n_right)
{
    double left = CALIB_COST * (double)n_right;

    for (size_t i = 0; i < n; i++) {
        left -= p[i].is_right;
        if (left < 0)
            return p[i].score;
    }
    return n ? p[n - 1].score : 0;
}

/* The best threshold for sorted points, and its worth. It is between two
 * adjacent scores, so it survives rounding. */
static double calib_best_threshold(const struct calib_point *p, size_t n,
                                   double *worth)
{
    struct calib_figures f = {.n = 0};
    double best_at = 0;

    for (size_t i = 0; i < n; i++)
        calib_judge_point(&p[i], -INFINITY, &f);
    *worth = calib_worth(&f);
    if (!f.n_out)
        return calib_highest_threshold(p, n, f.n_right);
    for (size_t i = 0; i < n; i++) {
        double now;

        f.n_noticed += p[i].is_out;
        f.n_right -= !p[i].is_out && p[i].is_right;
        if (i + 1 < n && p[i + 1].score <= p[i].score)
            continue;
        now = calib_worth(&f);
        if (now <= *worth)
            continue;
        *worth = now;
        best_at = i + 1 < n ? (p[i].score + p[i + 1].score) / 2
                            : nextafter(p[i].score, INFINITY);
    }
    return best_at;
}

/* The best threshold for all parts except one. */
static double calib_threshold_without(const struct calib_set *s,
                                      const struct signal_weights *w,
                                      unsigned but, struct calib_point *room,
                                      double *worth)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->queries[i].fold != but)
            room[n++] = calib_query_point(s, &s->queries[i], w);
    qsort(room, n, sizeof(*room), calib_compare_scores);
    return calib_best_threshold(room, n, worth);
}

/* The next weights with a sum of one and a large semantic weight. */
static bool calib_next_weights(int at[3], struct signal_weights *w)
{
    int left;

    for (;;) {
        if (++at[2] > STEPS) {
            at[2] = 0;
            if (++at[1] > STEPS) {
                at[1] = 0;
                if (++at[0] > STEPS)
                    return false;
            }
        }
        left = STEPS - at[0] - at[1] - at[2];
        if (left >= SEMANTIC_LEAST)
            break;
    }
    *w = (struct signal_weights){.semantic = (double)left / STEPS,
                                 .performance = (double)at[0] / STEPS,
                                 .keyword = (double)at[1] / STEPS,
                                 .recency = (double)at[2] / STEPS};
    return true;
}

/* Other weights must be better by more than this, so that chance does not
 * change a configuration. */
#define NOTICEABLE 0.002

static double calib_best(const struct calib_set *s, struct signal_weights *w,
                         bool is_free, unsigned but, struct calib_point *room)
{
    double worth, best_at = calib_threshold_without(s, w, but, room, &worth);
    struct signal_weights tried;
    int at[3] = {0, 0, -1};

    worth += NOTICEABLE;
    while (is_free && calib_next_weights(at, &tried)) {
        double now, here = calib_threshold_without(s, &tried, but, room, &now);

        if (now <= worth)
            continue;
        worth = now;
        best_at = here;
        *w = tried;
    }
    return best_at;
}

enum err calib_run(const struct calib_set *s, const struct signal_weights *w,
                   bool is_free, struct calib_result *out)
{
    struct calib_point *room =
        FAULT("calib.room") ? NULL : calloc(s->n + 1, sizeof(*room));

    *out = (struct calib_result){.least = INFINITY, .most = -INFINITY};
    if (!room)
        return ERR_NOMEM;
    for (unsigned fold = 0; fold < s->folds; fold++) {
        struct signal_weights here = *w;
        double at = calib_best(s, &here, is_free, fold, room);
        struct calib_figures f;

        calib_judge(s, &here, at, fold, &f);
        calib_add(&out->found, &f);
        out->least = fmin(out->least, at);
        out->most = fmax(out->most, at);
    }
    out->weights = *w;
    out->threshold = calib_best(s, &out->weights, is_free, CALIB_ALL, room);
    free(room);
    return OK;
}
