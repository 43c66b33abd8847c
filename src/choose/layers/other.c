/* A record decided again many times: without each of its signals, and by other
 * values of alpha.
 *
 * A signal is left out by a weight of zero, as with `signalbox replay --set
 * routing.weights.semantic=0`, so both give the same result. Cases that cannot
 * differ are not decided again: most records have no keyword and no recent
 * success, and alpha matters only between the values where the choice
 * changes. */
#include "choose/layers/choose.h"

static double *signal_weight(struct signal_weights *w, enum signal s)
{
    switch (s) {
    case SIGNAL_PERFORMANCE: return &w->performance;
    case SIGNAL_KEYWORD: return &w->keyword;
    case SIGNAL_RECENCY: return &w->recency;
    case SIGNAL_SEMANTIC:
    case N_SIGNALS: break;
    }
    return &w->semantic;
}

static bool has_signal(const struct decision *d, enum signal s)
{
    struct signal_weights all = d->weights, one = {.semantic = 0};

    *signal_weight(&one, s) = *signal_weight(&all, s);
    for (size_t i = 0; i < d->n_candidates; i++)
        if (choose_score(&one, &d->candidates[i].signals) > 0)
            return true;
    return false;
}

static enum err decide_otherwise(choose_change *change, void *ctx,
                                 const struct decision *d, struct arena *a,
                                 struct decision_other *out)
{
    struct decision now;
    enum err e = choose_again_but(change, ctx, d, a, &now);

    *out = (struct decision_other){.is_known = e != ERR_NOT_FOUND};
    if (!e || e == ERR_NO_ROUTE) {
        out->band = now.band;
        out->agent = now.agent;
    }
    return e == ERR_NOMEM ? e : OK;
}

static void leave_out_signal(void *ctx, struct choose_settings *own)
{
    *signal_weight(&own->weights, *(enum signal *)ctx) = 0;
}

enum err choose_without(const struct decision *d, struct arena *a,
                        struct decision_other out[N_SIGNALS])
{
    enum err e = OK;

    for (int i = 0; !e && i < N_SIGNALS; i++) {
        enum signal s = (enum signal)i;

        out[i] = (struct decision_other){true, d->band, d->agent};
        if (d->layer == LAYER_SEMANTIC && has_signal(d, s))
            e = decide_otherwise(leave_out_signal, &s, d, a, &out[i]);
    }
    return e;
}

static void set_alpha(void *ctx, struct choose_settings *own)
{
    own->alpha = *(const double *)ctx;
}

static bool other_is_equal(const struct decision_other *x,
                           const struct decision_other *y)
{
    return x->is_known == y->is_known && x->band == y->band &&
           str_eq(x->agent, y->agent);
}

static enum err decide_with_alpha(const struct decision *d, struct arena *a,
                                  struct decision_other *out, size_t at)
{
    double alpha = decision_alphas[at];

    return decide_otherwise(set_alpha, &alpha, d, a, &out[at]);
}

/* Fill in the values between two of alpha. Candidates only become confident as
 * it grows, so if both ends decide alike, all between them do. But which
 * runner-up is explored depends on how many are confident. */
static enum err fill_alphas_between(const struct decision *d, struct arena *a,
                                    struct decision_other *out, size_t from,
                                    size_t to)
{
    bool explores = d->rules.chance < d->rules.explore;
    size_t mid = (from + to) / 2;
    enum err e;

    if (to - from < 2)
        return OK;
    if (!explores && other_is_equal(&out[from], &out[to])) {
        for (size_t i = from + 1; i < to; i++)
            out[i] = out[from];
        return OK;
    }
    e = decide_with_alpha(d, a, out, mid);
    if (!e)
        e = fill_alphas_between(d, a, out, from, mid);
    return e ? e : fill_alphas_between(d, a, out, mid, to);
}

bool choose_has_alpha(const struct decision *d)
{
    return d->rules.is_auto && d->turn <= 1 && d->n_candidates &&
           d->band != BAND_NOT_ASKED;
}

enum err choose_alphas(const struct decision *d, struct arena *a,
                       struct decision_other out[ALPHAS])
{
    enum err e = decide_with_alpha(d, a, out, 0);

    if (!e)
        e = decide_with_alpha(d, a, out, ALPHAS - 1);
    return e ? e : fill_alphas_between(d, a, out, 0, ALPHAS - 1);
}
