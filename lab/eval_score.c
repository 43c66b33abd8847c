/* Sorting by score once gives all figures about scope: from the lowest score
 * upwards, each step is one more possible threshold. */
#include "lab/eval_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

void eval_rank(const float *scores, size_t n, struct eval_ranked *out)
{
    *out = (struct eval_ranked){.n = 0};
    for (size_t i = 0; i < n; i++) {
        float score = isfinite(scores[i]) ? scores[i] : 0;
        unsigned at = out->n;

        while (at > 0 && score > out->scores[at - 1])
            at--;
        if (at == EVAL_TOP)
            continue;
        if (out->n < EVAL_TOP)
            out->n++;
        for (unsigned k = out->n - 1; k > at; k--) {
            out->agents[k] = out->agents[k - 1];
            out->scores[k] = out->scores[k - 1];
        }
        out->agents[at] = (uint32_t)i;
        out->scores[at] = score;
    }
}

bool eval_outcome_names(const struct eval_outcome *o, uint32_t agent)
{
    for (size_t i = 0; i < o->n_expected; i++)
        if (o->expected[i] == agent)
            return true;
    return false;
}

unsigned eval_place(const struct eval_outcome *o)
{
    for (unsigned k = 0; k < o->ranked.n; k++)
        if (eval_outcome_names(o, o->ranked.agents[k]))
            return k + 1;
    return 0;
}

float eval_best(const struct eval_outcome *o)
{
    return o->ranked.n ? o->ranked.scores[0] : 0;
}

double eval_f1(const struct eval_tally *t)
{
    double all = 2 * (double)t->n_right + (double)t->n_taken + t->n_missed;

    return all > 0 ? 2 * (double)t->n_right / all : NAN;
}

double eval_share(size_t n, size_t of)
{
    return of ? (double)n / (double)of : NAN;
}

double eval_accuracy(const struct eval_score *s, unsigned k)
{
    return eval_share(s->n_right_at[k - 1], s->n);
}

/* Adds one query. */
static void eval_add_places(struct eval_score *s, const struct eval_outcome *o)
{
    double ideal = 0, gained = 0;
    size_t n_found = 0;

    for (unsigned k = 0; k < EVAL_TOP; k++) {
        double worth = 1 / log2(k + 2);

        ideal += k < o->n_expected ? worth : 0;
        if (k < o->ranked.n && eval_outcome_names(o, o->ranked.agents[k])) {
            s->mrr += n_found++ ? 0 : 1 / (double)(k + 1);
            gained += worth;
        }
        s->recall_at[k] += (double)n_found / (double)o->n_expected;
        s->ndcg_at[k] += gained / ideal;
    }
}

static void eval_average_places(struct eval_score *s)
{
    double n = s->n ? (double)s->n : NAN;

    for (unsigned k = 0; k < EVAL_TOP; k++) {
        s->recall_at[k] /= n;
        s->ndcg_at[k] /= n;
    }
    s->mrr /= n;
}

static void eval_score_count(struct eval_score *s, const struct eval_outcome *o,
                             size_t number)
{
    unsigned place = eval_place(o);
    uint32_t chosen = o->ranked.n ? o->ranked.agents[0] : EVAL_NOBODY;

    for (unsigned k = place ? place : EVAL_TOP + 1; k <= EVAL_TOP; k++)
        s->n_right_at[k - 1]++;
    if (place == 1) {
        s->tallies[chosen].n_right++;
        return;
    }
    if (chosen != EVAL_NOBODY)
        s->tallies[chosen].n_taken++;
    for (size_t i = 0; i < o->n_expected; i++)
        s->tallies[o->expected[i]].n_missed += 1 / (double)o->n_expected;
    s->mixups[s->n_mixups++] =
        (struct eval_mixup){o->expected[0], chosen, 1, number};
}

static int mixup_compare_agents(const void *a, const void *b)
{
    const struct eval_mixup *x = a, *y = b;

    if (x->expected != y->expected)
        return x->expected < y->expected ? -1 : 1;
    if (x->chosen != y->chosen)
        return x->chosen < y->chosen ? -1 : 1;
    return x->example < y->example ? -1 : x->example > y->example;
}

static int mixup_compare_counts(const void *a, const void *b)
{
    const struct eval_mixup *x = a, *y = b;

    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return mixup_compare_agents(a, b);
}

/* One row for each pair, most frequent first. */
static void eval_gather_mixups(struct eval_score *s)
{
    size_t n = 0;

    if (!s->n_mixups)
        return;
    qsort(s->mixups, s->n_mixups, sizeof(*s->mixups), mixup_compare_agents);
    for (size_t i = 1; i < s->n_mixups; i++) {
        struct eval_mixup *last = &s->mixups[n], *m = &s->mixups[i];

        if (last->expected == m->expected && last->chosen == m->chosen)
            last->n++;
        else
            s->mixups[++n] = *m;
    }
    s->n_mixups = n + 1;
    qsort(s->mixups, s->n_mixups, sizeof(*s->mixups), mixup_compare_counts);
}

static double eval_mean_f1(const struct eval_score *s, size_t n_agents)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < n_agents; i++) {
        double f1 = eval_f1(&s->tallies[i]);

        if (isnan(f1))
            continue;
        sum += f1;
        n++;
    }
    return n ? sum / (double)n : NAN;
}

/* Scope. */

struct point {
    float score;
    bool is_out, is_right;
};

static int eval_compare_scores(const void *a, const void *b)
{
    const struct point *x = a, *y = b;

    return x->score < y->score ? -1 : x->score > y->score;
}

/* The middle of two adjacent scores, so that the threshold survives rounding.
 */
static float threshold_between(float below, float above)
{
    float middle = below + (above - below) / 2;

    return middle > below ? middle : above;
}

/* p is sorted. No threshold separates points with equal scores. */
static void eval_best_f1(struct eval_score *s, const struct point *p, size_t n)
{
    size_t out_below = 0, in_below = 0, right_below = 0;
    double pairs = 0;

    s->threshold = p[0].score;
    s->out_f1 = 0;
    s->scoped_right = (double)s->n_right_at[0] / (double)n;
    for (size_t i = 0, end; i < n; i = end) {
        size_t out_here = 0, in_here = 0;
        double f1;

        for (end = i; end < n && p[end].score == p[i].score; end++) {
            out_here += p[end].is_out;
            in_here += !p[end].is_out;
            right_below += p[end].is_right;
        }
        pairs += (double)in_here * ((double)out_below + (double)out_here / 2);
        out_below += out_here;
        in_below += in_here;
        f1 = 2 * (double)out_below / (double)(out_below + in_below + s->n_out);
        if (f1 <= s->out_f1)
            continue;
        s->out_f1 = f1;
        s->threshold = end < n ? threshold_between(p[i].score, p[end].score)
                               : nextafterf(p[i].score, INFINITY);
        s->scoped_right =
            (double)(out_below + s->n_right_at[0] - right_below) / (double)n;
    }
    s->auroc = pairs / ((double)s->n * (double)s->n_out);
}

static void eval_score_scope(struct eval_score *s,
                             const struct eval_outcome *all, size_t n,
                             struct point *points)
{
    s->auroc = s->out_f1 = s->scoped_right = NAN;
    s->threshold = NAN;
    if (!s->n || !s->n_out)
        return;
    for (size_t i = 0; i < n; i++)
        points[i] = (struct point){eval_best(&all[i]), !all[i].n_expected,
                                   eval_place(&all[i]) == 1};
    qsort(points, n, sizeof(*points), eval_compare_scores);
    eval_best_f1(s, points, n);
}

enum err eval_score(const struct eval_outcome *all, size_t n, size_t n_agents,
                    struct eval_score *out)
{
    struct eval_score s = {.n = 0};
    struct point *points = calloc(n + 1, sizeof(*points));

    s.tallies = calloc(n_agents + 1, sizeof(*s.tallies));
    s.mixups = FAULT("eval.score") ? NULL : calloc(n + 1, sizeof(*s.mixups));
    *out = (struct eval_score){.n = 0};
    if (!points || !s.tallies || !s.mixups) {
        free(points);
        eval_score_fini(&s);
        return ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        if (all[i].n_expected) {
            s.n++;
            eval_score_count(&s, &all[i], i);
            eval_add_places(&s, &all[i]);
        } else {
            s.n_out++;
        }
    }
    eval_gather_mixups(&s);
    eval_average_places(&s);
    s.macro_f1 = eval_mean_f1(&s, n_agents);
    eval_score_scope(&s, all, n, points);
    free(points);
    *out = s;
    return OK;
}

void eval_score_fini(struct eval_score *s)
{
    free(s->tallies);
    free(s->mixups);
    *s = (struct eval_score){.n = 0};
}
