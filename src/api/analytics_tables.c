/* The tables of GET /api/analytics, cell by cell; speak/sheet.c makes JSON or
 * CSV of them. Names of query types come from messages of users, so only admins
 * see them. */
#include "api/analytics_query.h"

/* Tables. */

static void put_type_name(struct request *o, struct sheet *s, int64_t type)
{
    if (caller_is_admin(&o->caller) && type)
        sheet_str(s, learn_type_name(learning_learn(o->api->learning), type));
    else
        sheet_none(s);
}

static void put_type(struct request *o, struct sheet *s, int64_t type)
{
    if (type >= LEARN_TYPE_FIRST || (type && caller_is_admin(&o->caller)))
        sheet_int(s, type);
    else
        sheet_none(s);
}

#define FIGURES                                                               \
    "decisions", "routed", "confidence", "margin", "overrides",               \
        "override_rate", "ended", "error_rate", "answer_chars", "latency_ms", \
        "positive", "negative", "neutral", "open"

static void sheet_put_figures(struct sheet *s, const struct figures *f)
{
    sheet_int(s, f->n);
    sheet_int(s, f->n_routed);
    sheet_real(s, figures_confidence(f));
    sheet_real(s, figures_margin(f));
    sheet_int(s, f->overridden);
    sheet_real(s, figures_override_rate(f));
    sheet_int(s, f->n_ended);
    sheet_real(s, figures_error_rate(f));
    sheet_real(s, figures_answer_chars(f));
    sheet_real(s, figures_latency_ms(f));
    sheet_int(s, f->verdicts[VERDICT_POSITIVE]);
    sheet_int(s, f->verdicts[VERDICT_NEGATIVE]);
    sheet_int(s, f->verdicts[VERDICT_NEUTRAL]);
    sheet_int(s, f->verdicts[VERDICT_OPEN]);
}

static const char *const summary_columns[] = {
    FIGURES, "explored", LAYERS(LAYER_TEXT) "first_ms", "last_ms", NULL};

#define PUT_LAYER(id, number, name, words) sheet_int(s, sum.by_layer[number]);

static void write_summary(struct request *o, struct sheet *s)
{
    struct analytics_summary sum =
        analytics_summary(analytics_of(o)->analytics);

    sheet_row(s);
    sheet_put_figures(s, &sum.all);
    sheet_int(s, sum.explored);
    LAYERS(PUT_LAYER)
    sheet_int(s, sum.first_ms);
    sheet_int(s, sum.last_ms);
}

static const char *const agent_columns[] = {"agent", FIGURES, NULL};

static void write_agents(struct request *o, struct sheet *s)
{
    size_t n;
    const struct analytics_agent *list =
        analytics_agents(analytics_of(o)->analytics, &n);

    analytics_of(o)->is_short |= !list;
    for (size_t i = 0; list && i < n; i++) {
        sheet_row(s);
        sheet_str(s, list[i].agent);
        sheet_put_figures(s, &list[i].f);
    }
}

static const char *const type_columns[] = {"type", "name", "agent", FIGURES,
                                           NULL};

static void write_types(struct request *o, struct sheet *s)
{
    size_t n;
    const struct analytics_type *list =
        analytics_types(analytics_of(o)->analytics, &n);

    analytics_of(o)->is_short |= !list;
    for (size_t i = 0; list && i < n; i++) {
        sheet_row(s);
        put_type(o, s, list[i].type);
        put_type_name(o, s, list[i].type);
        sheet_str(s, list[i].agent);
        sheet_put_figures(s, &list[i].f);
    }
}

static const char *const gap_columns[] = {
    "type",       "name",          "decisions", "to_default", "refused",
    "best_score", "nearest_agent", "samples",   NULL};

static void write_gaps(struct request *o, struct sheet *s)
{
    size_t n;
    const struct analytics_gap *list =
        analytics_gaps(analytics_of(o)->analytics, &n);

    analytics_of(o)->is_short |= !list;
    for (size_t i = 0; list && i < n; i++) {
        sheet_row(s);
        put_type(o, s, list[i].type);
        put_type_name(o, s, list[i].type);
        sheet_int(s, list[i].n);
        sheet_int(s, list[i].n_default);
        sheet_int(s, list[i].n_refused);
        if (list[i].n_compared)
            sheet_real(s, list[i].best_sum / (double)list[i].n_compared);
        else
            sheet_none(s);
        sheet_str_or_none(s, list[i].nearest);
        sheet_strs(s, list[i].samples, list[i].n_samples, true);
    }
}

static const char *const signal_columns[] = {
    "signal", "decisions", "would_differ", "helped", "hurt", NULL};

static void write_signals(struct request *o, struct sheet *s)
{
    struct analytics_signal list[N_SIGNALS];

    analytics_signals(analytics_of(o)->analytics, list);
    for (int i = 0; i < N_SIGNALS; i++) {
        sheet_row(s);
        sheet_str(s, signal_name((enum signal)i));
        sheet_int(s, list[i].n);
        sheet_int(s, list[i].changed);
        sheet_int(s, list[i].changed_good);
        sheet_int(s, list[i].changed_bad);
    }
}

static const char *const keyword_columns[] = {
    "keyword", "agent", "fired", "won", "pulled", "right", "wrong", NULL};

static void write_keywords(struct request *o, struct sheet *s)
{
    size_t n;
    const struct analytics_keyword *list =
        analytics_keywords(analytics_of(o)->analytics, &n);

    analytics_of(o)->is_short |= !list;
    for (size_t i = 0; list && i < n; i++) {
        sheet_row(s);
        sheet_str(s, list[i].keyword);
        sheet_str(s, list[i].agent);
        sheet_int(s, list[i].fired);
        sheet_int(s, list[i].won);
        sheet_int(s, list[i].pulled);
        sheet_int(s, list[i].right);
        sheet_int(s, list[i].wrong);
    }
}

static const char *const time_columns[] = {"from_ms", FIGURES, NULL};

static void write_times(struct request *o, struct sheet *s)
{
    size_t n;
    const struct analytics_time *list =
        analytics_times(analytics_of(o)->analytics, &n);

    analytics_of(o)->is_short |= !list;
    for (size_t i = 0; list && i < n; i++) {
        sheet_row(s);
        sheet_int(s, list[i].from_ms);
        sheet_put_figures(s, &list[i].f);
    }
}

static const char *const threshold_columns[] = {
    "threshold", "by_score",   "by_default", "same",      "changed",
    "to_agent",  "to_default", "to_nobody",  "better",    "worse",
    "as_bad",    "was_bad",    "unknown",    "not_known", NULL};

static void write_thresholds(struct request *o, struct sheet *s)
{
    const struct threshold_row *rows =
        thresholds_rows(analytics_of(o)->thresholds);

    for (int i = 0; analytics_of(o)->n_read && i < THRESHOLDS; i++) {
        sheet_row(s);
        sheet_real(s, i / 100.0);
        sheet_int(s, rows[i].by_score);
        sheet_int(s, rows[i].by_default);
        sheet_int(s, rows[i].same);
        sheet_int(s, rows[i].changed);
        sheet_int(s, rows[i].to_agent);
        sheet_int(s, rows[i].to_default);
        sheet_int(s, rows[i].to_nobody);
        for (int h = 0; h < N_HINDSIGHTS; h++)
            sheet_int(s, rows[i].by_hindsight[h]);
        sheet_int(s, rows[i].unsaid);
    }
}

static const char *const alpha_columns[] = {
    "alpha",     "confident", "unsure", "out_of_scope", "same",    "changed",
    "to_nobody", "better",    "worse",  "as_bad",       "was_bad", "unknown",
    "not_known", NULL};

static void write_alphas(struct request *o, struct sheet *s)
{
    const struct alpha_row *rows =
        thresholds_alphas(analytics_of(o)->thresholds);

    for (int i = 0; analytics_of(o)->n_read && i < ALPHAS; i++) {
        sheet_row(s);
        sheet_real(s, decision_alphas[i]);
        sheet_int(s, rows[i].by_band[BAND_CONFIDENT]);
        sheet_int(s, rows[i].by_band[BAND_UNSURE]);
        sheet_int(s, rows[i].by_band[BAND_OUT_OF_SCOPE]);
        sheet_int(s, rows[i].same);
        sheet_int(s, rows[i].changed);
        sheet_int(s, rows[i].to_nobody);
        for (int h = 0; h < N_HINDSIGHTS; h++)
            sheet_int(s, rows[i].by_hindsight[h]);
        sheet_int(s, rows[i].unsaid);
    }
}

static const char *const change_columns[] = {
    "id",         "at_ms", "text",     "best_score", "from",
    "from_layer", "to",    "to_layer", "outcome",    NULL};

static void write_changes(struct request *o, struct sheet *s)
{
    size_t n;
    const struct threshold_change *c =
        thresholds_changes(analytics_of(o)->thresholds, &n);

    for (; n; n--, c++) {
        sheet_row(s);
        sheet_str(s, str_of(c->id.text));
        sheet_int(s, c->at_ms);
        sheet_str(s, c->text);
        sheet_real(s, c->score);
        sheet_str_or_none(s, c->from);
        sheet_str(s, layer_name(c->from_layer));
        sheet_str_or_none(s, c->to);
        sheet_str_or_none(s,
                          c->to.n ? layer_name(c->to_layer) : (struct str){0});
        sheet_str(s, str_of(hindsight_word(c->hindsight)));
    }
}

#define HOUR_MS (INT64_C(3600) * 1000)

static const struct analytics_kind kinds[] = {
    {.name = {"summary", 7}, summary_columns, write_summary},
    {.name = {"agents", 6}, agent_columns, write_agents},
    {.name = {"types", 5}, type_columns, write_types},
    {.name = {"gaps", 4}, gap_columns, write_gaps},
    {.name = {"signals", 7}, signal_columns, write_signals, .is_without = true},
    {.name = {"keywords", 8},
     keyword_columns,
     write_keywords,
     .is_without = true},
    {.name = {"hours", 5}, time_columns, write_times, .span_ms = HOUR_MS},
    {.name = {"days", 4}, time_columns, write_times, .span_ms = 24 * HOUR_MS},
    {.name = {"all", 3}, .is_without = true},
    {.name = {"thresholds", 10},
     threshold_columns,
     write_thresholds,
     .is_replay = true},
    {.name = {"alphas", 6},
     alpha_columns,
     write_alphas,
     .is_replay = true,
     .is_of_alpha = true},
    {.name = {"changes", 7},
     change_columns,
     write_changes,
     .is_replay = true,
     .is_of_one = true},
};

const char analytics_names[] =
    "there are summary, agents, types, gaps, signals, "
    "keywords, hours, days, all, thresholds, alphas "
    "and changes";

const struct analytics_kind *analytics_kind_of(struct str name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (str_eq(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

void analytics_write_all(struct request *o, struct json_out *out)
{
    const struct learning *learning = o->api->learning;

    if (learning)
        json_member_int(out, "follow_up_ms", learning_follow_up_ms(learning));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct sheet s;

        if (!kinds[i].write || kinds[i].is_replay ||
            (kinds[i].span_ms && kinds[i].span_ms != analytics_of(o)->span_ms))
            continue;
        json_key(out, kinds[i].name);
        sheet_open(&s, out->out, false, kinds[i].columns);
        kinds[i].write(o, &s);
        sheet_close(&s);
        out->comma = true;
    }
}
