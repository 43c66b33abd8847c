/* Groups of decisions, with one map from keys for each table. Rows are in an
 * arena and never removed; a table is sorted when it is requested. */
#include "learn/fold/analytics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/fault.h"
#include "base/map.h"
#include "base/mem.h"

enum { ARENA_BYTES = 64 * 1024 * 1024, KEY_MAX = 512 };

/* The rows of one table. */
struct rows {
    struct map by_key;
    size_t bytes; /* of a row */
};

struct analytics {
    struct arena arena;
    double close_margin;
    int64_t span_ms;
    struct analytics_summary summary;
    struct analytics_signal signals[N_SIGNALS];
    struct rows agents, types, gaps, keywords, times;
    void *sorted;  /* the last requested table */
    bool is_short; /* of memory: a name or a sample is missing */
};

/* Start and end. */

static void rows_init(struct rows *r, size_t bytes, const uint64_t seed[2])
{
    map_init(&r->by_key, ANALYTICS_ROWS_MAX, seed);
    r->bytes = bytes;
}

struct analytics *analytics_new(double close_margin, int64_t span_ms,
                                const uint64_t seed[2])
{
    struct analytics *a = mem_new(sizeof(*a));

    arena_init(&a->arena, ARENA_BYTES);
    a->close_margin = close_margin;
    a->span_ms = span_ms;
    rows_init(&a->agents, sizeof(struct analytics_agent), seed);
    rows_init(&a->types, sizeof(struct analytics_type), seed);
    rows_init(&a->gaps, sizeof(struct analytics_gap), seed);
    rows_init(&a->keywords, sizeof(struct analytics_keyword), seed);
    rows_init(&a->times, sizeof(struct analytics_time), seed);
    return a;
}

void analytics_free(struct analytics *a)
{
    if (!a)
        return;
    map_fini(&a->agents.by_key);
    map_fini(&a->types.by_key);
    map_fini(&a->gaps.by_key);
    map_fini(&a->keywords.by_key);
    map_fini(&a->times.by_key);
    arena_fini(&a->arena);
    free(a->sorted);
    free(a);
}

/* Rows. */

static struct str analytics_key(char out[KEY_MAX], int64_t number, struct str a,
                                struct str b)
{
    int n = snprintf(out, KEY_MAX, "%lld/%.*s/%.*s", (long long)number,
                     STR_ARG(a), STR_ARG(b));

    return (struct str){out, n < KEY_MAX ? (size_t)n : KEY_MAX - 1};
}

/* The row of that key, made if needed. NULL: the table is full, and the
 * decision is left out of it; or out of memory, and a->is_short is set. */
static void *analytics_row(struct analytics *a, struct rows *r, int64_t number,
                           struct str x, struct str y)
{
    char text[KEY_MAX];
    struct str key = analytics_key(text, number, x, y);
    void *row = map_get(&r->by_key, key);
    char *copy;

    if (row)
        return row;
    if (r->by_key.n >= ANALYTICS_ROWS_MAX) {
        a->summary.left_out++;
        return NULL;
    }
    row = arena_alloc(&a->arena, r->bytes);
    copy = arena_strdup(&a->arena, key);
    if (row && copy && !map_put(&r->by_key, (struct str){copy, key.n}, row))
        return row;
    a->is_short = true;
    return NULL;
}

static struct str analytics_keep(struct analytics *a, struct str s)
{
    char *copy = FAULT("analytics.keep") ? NULL : arena_strdup(&a->arena, s);

    a->is_short |= !copy;
    return (struct str){copy, copy ? s.n : 0};
}

/* Figures. */

static bool is_wrong(const struct decision *d)
{
    return d->overridden_to.n || d->verdict == VERDICT_NEGATIVE;
}

/* A message that names a missing agent is rejected before its text is used; if
 * naming is switched off, the name is ignored. */
static bool is_routed(const struct decision *d)
{
    bool is_named =
        d->executor.n && !(d->rules.layers_off >> LAYER_EXPLICIT & 1);

    return layer_is_routed(d->layer) && !(d->layer == LAYER_NONE && is_named);
}

static void figures_count(struct figures *f, const struct decision *d)
{
    f->n++;
    if (!is_routed(d))
        return;
    f->n_routed++;
    if (d->layer == LAYER_SEMANTIC) {
        f->n_scored++;
        f->score_sum += d->score;
        f->margin_sum += d->margin;
    }
    f->overridden += d->overridden_to.n > 0;
    f->errors += d->error_code.n > 0;
    f->verdicts[d->verdict]++;
    if (d->answer_chars >= 0) {
        f->n_answered++;
        f->chars_sum += d->answer_chars;
    }
    if (d->latency_ms >= 0) {
        f->n_ended++;
        f->latency_sum_ms += d->latency_ms;
    }
}

static double ratio(double sum, int64_t n)
{
    return n ? sum / (double)n : (double)NAN;
}

double figures_confidence(const struct figures *f)
{
    return ratio(f->score_sum, f->n_scored);
}

double figures_margin(const struct figures *f)
{
    return ratio(f->margin_sum, f->n_scored);
}

double figures_override_rate(const struct figures *f)
{
    return ratio((double)f->overridden, f->n_routed);
}

double figures_error_rate(const struct figures *f)
{
    return ratio((double)f->errors, f->n_ended);
}

double figures_answer_chars(const struct figures *f)
{
    return ratio((double)f->chars_sum, f->n_answered);
}

double figures_latency_ms(const struct figures *f)
{
    return ratio((double)f->latency_sum_ms, f->n_ended);
}

/* One decision, in each table. */

static void add_agent(struct analytics *a, const struct decision *d)
{
    struct analytics_agent *row =
        d->agent.n /* else it was rejected */
            ? analytics_row(a, &a->agents, 0, d->agent, STR(""))
            : NULL;

    if (!row)
        return;
    if (!row->agent.n)
        row->agent = analytics_keep(a, d->agent);
    figures_count(&row->f, d);
}

static void add_time(struct analytics *a, const struct decision *d)
{
    int64_t from_ms = a->span_ms ? d->at_ms - d->at_ms % a->span_ms : 0;
    struct analytics_time *row =
        a->span_ms ? analytics_row(a, &a->times, from_ms, STR(""), STR(""))
                   : NULL;

    if (!row)
        return;
    row->from_ms = from_ms;
    figures_count(&row->f, d);
}

static void add_type(struct analytics *a, const struct decision *d)
{
    struct analytics_type *row =
        d->n_candidates && d->agent.n
            ? analytics_row(a, &a->types, d->type, d->agent, STR(""))
            : NULL;

    if (!row)
        return;
    row->type = d->type;
    if (!row->agent.n)
        row->agent = analytics_keep(a, d->agent);
    figures_count(&row->f, d);
}

/* A rejection is a gap even without candidates. With automatic cutoffs the band
 * tells whether the score was enough: the decision's threshold is on another
 * scale than the score. */
static bool decision_is_gap(const struct analytics *a, const struct decision *d)
{
    bool is_enough = d->rules.is_auto
                         ? d->band == BAND_CONFIDENT
                         : d->score >= d->threshold + a->close_margin;
    bool is_sure = is_enough && d->margin >= a->close_margin;

    return d->layer == LAYER_NONE ||
           (d->n_candidates && (d->layer == LAYER_DEFAULT ||
                                (d->layer == LAYER_SEMANTIC && !is_sure)));
}

static void add_sample(struct analytics *a, struct analytics_gap *row,
                       struct str text)
{
    struct str head = str_head(text, ANALYTICS_SAMPLE_MAX);

    for (size_t i = 0; i < row->n_samples; i++)
        if (str_eq(row->samples[i], head))
            return;
    if (row->n_samples < ANALYTICS_SAMPLES)
        row->samples[row->n_samples++] = analytics_keep(a, head);
}

static void add_gap(struct analytics *a, const struct decision *d)
{
    double best = d->n_candidates ? d->candidates[0].score : 0;
    struct analytics_gap *row =
        decision_is_gap(a, d)
            ? analytics_row(a, &a->gaps, d->type, STR(""), STR(""))
            : NULL;

    if (!row)
        return;
    row->type = d->type;
    row->n++;
    row->n_default += d->layer == LAYER_DEFAULT;
    row->n_refused += d->layer == LAYER_NONE;
    row->n_compared += d->n_candidates > 0;
    row->best_sum += best;
    if (d->n_candidates && (!row->nearest.n || best > row->nearest_score)) {
        row->nearest = analytics_keep(a, d->candidates[0].agent);
        row->nearest_score = best;
    }
    add_sample(a, row, d->text);
}

static void add_keyword(struct analytics *a, const struct decision *d,
                        const struct candidate *c)
{
    struct analytics_keyword *row =
        c->keyword.n ? analytics_row(a, &a->keywords, 0, c->keyword, c->agent)
                     : NULL;

    if (!row)
        return;
    if (!row->keyword.n) {
        row->keyword = analytics_keep(a, c->keyword);
        row->agent = analytics_keep(a, c->agent);
    }
    row->fired++;
    if (!str_eq(c->agent, d->agent))
        return;
    row->won++;
    row->wrong += is_wrong(d);
    row->right += d->verdict == VERDICT_POSITIVE && !is_wrong(d);
}

enum err analytics_add(struct analytics *a, const struct decision *d)
{
    struct analytics_summary *s = &a->summary;

    add_agent(a, d);
    add_time(a, d);
    add_type(a, d);
    add_gap(a, d);
    for (size_t i = 0; i < d->n_candidates; i++)
        add_keyword(a, d, &d->candidates[i]);
    if (a->is_short)
        return ERR_NOMEM;
    figures_count(&s->all, d);
    s->by_layer[d->layer]++;
    s->explored += d->is_explored;
    if (!s->first_ms || d->at_ms < s->first_ms)
        s->first_ms = d->at_ms;
    if (d->at_ms > s->last_ms)
        s->last_ms = d->at_ms;
    return OK;
}

/* Without a signal. */

/* Another agent would get it, or none would be confident any more. */
static bool is_changed(const struct decision *d, const struct decision_other *o)
{
    if (!str_eq_nocase(d->agent, o->agent))
        return true;
    return o->band != d->band && o->band != BAND_CONFIDENT;
}

void analytics_add_without(struct analytics *a, const struct decision *d,
                           const struct decision_other without[N_SIGNALS])
{
    char key[KEY_MAX];

    if (d->layer != LAYER_SEMANTIC || !d->n_candidates)
        return;
    for (int s = 0; s < N_SIGNALS; s++) {
        struct analytics_signal *row = &a->signals[s];

        row->n += without[s].is_known;
        if (!without[s].is_known || !is_changed(d, &without[s]))
            continue;
        row->changed++;
        row->changed_good += d->verdict == VERDICT_POSITIVE && !is_wrong(d);
        row->changed_bad += is_wrong(d);
    }
    if (!without[SIGNAL_KEYWORD].is_known ||
        !is_changed(d, &without[SIGNAL_KEYWORD]))
        return;
    for (size_t i = 0; i < d->n_candidates; i++) {
        const struct candidate *c = &d->candidates[i];
        struct analytics_keyword *row =
            c->keyword.n && str_eq(c->agent, d->agent)
                ? map_get(&a->keywords.by_key,
                          analytics_key(key, 0, c->keyword, c->agent))
                : NULL;

        if (row)
            row->pulled++;
    }
}

/* The tables. */

struct analytics_summary analytics_summary(const struct analytics *a)
{
    return a->summary;
}

void analytics_signals(const struct analytics *a,
                       struct analytics_signal out[N_SIGNALS])
{
    memcpy(out, a->signals, sizeof(a->signals));
}

static void *sorted(struct analytics *a, const struct rows *r,
                    int (*compare)(const void *, const void *), size_t *n)
{
    const struct map_slot *slot;
    size_t at = 0;
    char *to;

    free(a->sorted);
    *n = r->by_key.n;
    a->sorted = FAULT("analytics.sort") ? NULL : calloc(*n ? *n : 1, r->bytes);
    to = a->sorted;
    if (!to)
        return NULL;
    while ((slot = map_next(&r->by_key, &at))) {
        memcpy(to, slot->value, r->bytes);
        to += r->bytes;
    }
    qsort(a->sorted, *n, r->bytes, compare);
    return a->sorted;
}

static int more_first(int64_t a, int64_t b)
{
    return (a < b) - (a > b);
}

static int by_agents(const void *x, const void *y)
{
    const struct analytics_agent *a = x, *b = y;
    int c = more_first(a->f.n, b->f.n);

    return c ? c : str_cmp(a->agent, b->agent);
}

static int by_times(const void *x, const void *y)
{
    const struct analytics_time *a = x, *b = y;

    return more_first(b->from_ms, a->from_ms);
}

static int by_types(const void *x, const void *y)
{
    const struct analytics_type *a = x, *b = y;
    int c = more_first(a->f.n, b->f.n);

    if (!c)
        c = more_first(b->type, a->type);
    return c ? c : str_cmp(a->agent, b->agent);
}

static int by_gaps(const void *x, const void *y)
{
    const struct analytics_gap *a = x, *b = y;
    int c = more_first(a->n, b->n);

    return c ? c : more_first(b->type, a->type);
}

/* The most frequent errors are the most interesting. */
static int by_keywords(const void *x, const void *y)
{
    const struct analytics_keyword *a = x, *b = y;
    int c = more_first(a->wrong, b->wrong);

    if (!c)
        c = more_first(a->fired, b->fired);
    if (!c)
        c = str_cmp(a->keyword, b->keyword);
    return c ? c : str_cmp(a->agent, b->agent);
}

const struct analytics_agent *analytics_agents(struct analytics *a, size_t *n)
{
    return sorted(a, &a->agents, by_agents, n);
}

const struct analytics_time *analytics_times(struct analytics *a, size_t *n)
{
    return sorted(a, &a->times, by_times, n);
}

const struct analytics_type *analytics_types(struct analytics *a, size_t *n)
{
    return sorted(a, &a->types, by_types, n);
}

const struct analytics_gap *analytics_gaps(struct analytics *a, size_t *n)
{
    return sorted(a, &a->gaps, by_gaps, n);
}

const struct analytics_keyword *analytics_keywords(struct analytics *a,
                                                   size_t *n)
{
    return sorted(a, &a->keywords, by_keywords, n);
}
