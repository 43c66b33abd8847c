/* The steps of a decision are walked once, in parallel with the hundred and one
 * thresholds. Counts are whole numbers, so the order of decisions does not
 * matter. */
#include "learn/fold/thresholds.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/fault.h"
#include "base/mem.h"

enum { TEXTS_BYTES = 256 * 1024 };

struct thresholds {
    struct arena arena; /* of the changes' texts */
    double at;
    struct threshold_row rows[THRESHOLDS];
    struct alpha_row alphas[ALPHAS];
    struct threshold_change changes[THRESHOLD_CHANGES];
    size_t n_changes;
};

struct thresholds *thresholds_new(double at)
{
    struct thresholds *t = mem_new(sizeof(*t));

    arena_init(&t->arena, TEXTS_BYTES);
    t->at = at;
    return t;
}

void thresholds_free(struct thresholds *t)
{
    if (!t)
        return;
    arena_fini(&t->arena);
    free(t);
}

static bool step_is_same(const struct decision *d,
                         const struct decision_step *s)
{
    return str_eq_nocase(d->agent, s->agent);
}

static void threshold_count(struct threshold_row *r, const struct decision *d,
                            const struct decision_step *s)
{
    if (!s->is_known) {
        r->unsaid++;
        return;
    }
    r->by_score += s->layer == LAYER_SEMANTIC;
    r->by_default += s->layer == LAYER_DEFAULT;
    if (step_is_same(d, s)) {
        r->same++;
        return;
    }
    r->changed++;
    r->to_nobody += !s->agent.n;
    r->to_default += s->layer == LAYER_DEFAULT;
    r->to_agent += s->layer == LAYER_SEMANTIC &&
                   (d->layer == LAYER_DEFAULT || d->layer == LAYER_NONE);
    r->by_hindsight[hindsight_of(d, s->agent)]++;
}

/* The changes. */

static bool thresholds_keep(struct thresholds *t, struct str from,
                            struct str *to)
{
    return !FAULT("thresholds.keep") && arena_keep(&t->arena, from, to);
}

static enum err keep_change(struct thresholds *t, const struct decision *d,
                            const struct decision_step *s)
{
    struct threshold_change *c = &t->changes[t->n_changes];

    if (!thresholds_keep(t, str_head(d->text, THRESHOLD_TEXT_MAX), &c->text) ||
        !thresholds_keep(t, d->agent, &c->from) ||
        !thresholds_keep(t, s->agent, &c->to))
        return ERR_NOMEM;
    c->id = d->id;
    c->at_ms = d->at_ms;
    c->from_layer = d->layer;
    c->to_layer = s->layer;
    c->score = d->n_candidates ? d->candidates[0].score : 0;
    c->hindsight = hindsight_of(d, s->agent);
    t->n_changes++;
    return OK;
}

bool thresholds_has_enough(const struct thresholds *t)
{
    return t->n_changes == THRESHOLD_CHANGES;
}

static const struct decision_step *step_of(const struct decision_step *s,
                                           double threshold)
{
    while (threshold > s->upto)
        s++;
    return s;
}

enum err thresholds_add(struct thresholds *t, const struct decision *d,
                        const struct decision_step *steps)
{
    const struct decision_step *s = steps;

    for (int i = 0; i < THRESHOLDS; i++) {
        s = step_of(s, i / 100.0);
        threshold_count(&t->rows[i], d, s);
    }
    if (isnan(t->at) || thresholds_has_enough(t))
        return OK;
    s = step_of(steps, t->at);
    return s->is_known && !step_is_same(d, s) ? keep_change(t, d, s) : OK;
}

void thresholds_add_alphas(struct thresholds *t, const struct decision *d,
                           const struct decision_other others[ALPHAS])
{
    for (int i = 0; i < ALPHAS; i++) {
        const struct decision_other *o = &others[i];
        struct alpha_row *r = &t->alphas[i];

        if (!o->is_known) {
            r->unsaid++;
            continue;
        }
        r->by_band[o->band]++;
        if (str_eq_nocase(d->agent, o->agent)) {
            r->same++;
            continue;
        }
        r->changed++;
        r->to_nobody += !o->agent.n;
        r->by_hindsight[hindsight_of(d, o->agent)]++;
    }
}

const struct alpha_row *thresholds_alphas(const struct thresholds *t)
{
    return t->alphas;
}

const struct threshold_row *thresholds_rows(const struct thresholds *t)
{
    return t->rows;
}

const struct threshold_change *thresholds_changes(const struct thresholds *t,
                                                  size_t *n)
{
    *n = t->n_changes;
    return t->changes;
}
