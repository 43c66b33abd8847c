/* GET /api/analytics/WHAT: decisions are read page by page, newest first, as
 * far back as was asked for, and what they say together is answered as JSON or
 * as CSV. Admins see all of them, others their own; the names of query types
 * are made of people's words, so only admins see those. */
#include "calls/internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "learn/analytics.h"

enum {
    PAGE_ROWS = 250,
    DECISIONS_MAX = 200 * 1000, /* of one answer; the newest count */
};

#define DAY_MS     (INT64_C(24) * 3600 * 1000)
#define WINDOW_MAX (INT64_C(3660) * DAY_MS)
#define CSV        STR("text/csv; charset=utf-8")

struct study {
    struct analytics *analytics;
    const struct study_kind *kind;
    int64_t since_ms, until_ms;
    int64_t n_read, n_unread; /* unread: of a version that we do not know */
    int64_t last_seq;
    bool is_csv, is_cut;
    bool is_short; /* of memory: a table is not there */
};

struct study_kind {
    struct str name;
    const char *const *columns;
    void (*write)(struct open *o, struct sheet *s);
};

void study_free(struct study *s)
{
    if (s)
        analytics_free(s->analytics);
    free(s);
}

/* What each shows. */

static void put_type_name(struct open *o, struct sheet *s, int64_t type)
{
    if (caller_is_admin(&o->caller) && type)
        sheet_str(s, learn_type_name(lessons_learn(o->calls->lessons), type));
    else
        sheet_none(s);
}

static void put_type(struct sheet *s, int64_t type)
{
    if (type)
        sheet_int(s, type);
    else
        sheet_none(s);
}

#define FIGURES                                                             \
    "decisions", "confidence", "margin", "overrides", "override_rate",      \
        "error_rate", "answer_chars", "latency_ms", "positive", "negative", \
        "neutral", "open"

static void put_figures(struct sheet *s, const struct figures *f)
{
    sheet_int(s, f->n);
    sheet_real(s, figures_confidence(f));
    sheet_real(s, figures_margin(f));
    sheet_int(s, f->overridden);
    sheet_real(s, figures_override_rate(f));
    sheet_real(s, figures_error_rate(f));
    sheet_real(s, figures_answer_chars(f));
    sheet_real(s, figures_latency_ms(f));
    sheet_int(s, f->verdicts[VERDICT_POSITIVE]);
    sheet_int(s, f->verdicts[VERDICT_NEGATIVE]);
    sheet_int(s, f->verdicts[VERDICT_NEUTRAL]);
    sheet_int(s, f->verdicts[VERDICT_OPEN]);
}

static const char *const summary_columns[] = {
    FIGURES,  "explored", "explicit", "prefix",   "sticky",  "binding",
    "intent", "semantic", "default",  "first_ms", "last_ms", NULL,
};

static void write_summary(struct open *o, struct sheet *s)
{
    struct analytics_summary sum = analytics_summary(o->study->analytics);

    sheet_row(s);
    put_figures(s, &sum.all);
    sheet_int(s, sum.explored);
    for (int i = LAYER_EXPLICIT; i < N_LAYERS; i++)
        sheet_int(s, sum.by_layer[i]);
    sheet_int(s, sum.first_ms);
    sheet_int(s, sum.last_ms);
}

static const char *const agent_columns[] = {"agent", FIGURES, NULL};

static void write_agents(struct open *o, struct sheet *s)
{
    size_t n;
    const struct analytics_agent *list =
        analytics_agents(o->study->analytics, &n);

    o->study->is_short = !list;
    for (size_t i = 0; list && i < n; i++) {
        sheet_row(s);
        sheet_str(s, list[i].agent);
        put_figures(s, &list[i].f);
    }
}

static const char *const type_columns[] = {"type", "name", "agent", FIGURES,
                                           NULL};

static void write_types(struct open *o, struct sheet *s)
{
    size_t n;
    const struct analytics_type *list =
        analytics_types(o->study->analytics, &n);

    o->study->is_short = !list;
    for (size_t i = 0; list && i < n; i++) {
        sheet_row(s);
        put_type(s, list[i].type);
        put_type_name(o, s, list[i].type);
        sheet_str(s, list[i].agent);
        put_figures(s, &list[i].f);
    }
}

static const char *const gap_columns[] = {
    "type",       "name",          "decisions", "to_default",
    "best_score", "nearest_agent", "samples",   NULL};

static void write_gaps(struct open *o, struct sheet *s)
{
    size_t n;
    const struct analytics_gap *list = analytics_gaps(o->study->analytics, &n);

    o->study->is_short = !list;
    for (size_t i = 0; list && i < n; i++) {
        sheet_row(s);
        put_type(s, list[i].type);
        put_type_name(o, s, list[i].type);
        sheet_int(s, list[i].n);
        sheet_int(s, list[i].n_default);
        sheet_real(s, list[i].best_sum / (double)list[i].n);
        sheet_str(s, list[i].nearest);
        sheet_strs(s, list[i].samples, list[i].n_samples, true);
    }
}

static const char *const signal_columns[] = {
    "signal", "decisions", "would_differ", "helped", "hurt", NULL};

static void write_signals(struct open *o, struct sheet *s)
{
    struct analytics_signal list[N_SIGNALS];

    analytics_signals(o->study->analytics, list);
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

static void write_keywords(struct open *o, struct sheet *s)
{
    size_t n;
    const struct analytics_keyword *list =
        analytics_keywords(o->study->analytics, &n);

    o->study->is_short = !list;
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

static const struct study_kind kinds[] = {
    {{"summary", 7}, summary_columns, write_summary},
    {{"agents", 6}, agent_columns, write_agents},
    {{"types", 5}, type_columns, write_types},
    {{"gaps", 4}, gap_columns, write_gaps},
    {{"signals", 7}, signal_columns, write_signals},
    {{"keywords", 8}, keyword_columns, write_keywords},
};

/* The answer. */

static void write_sheet(struct open *o)
{
    struct study *st = o->study;
    struct sheet s;

    sheet_open(&s, &o->calls->body, st->is_csv, st->kind->columns);
    st->kind->write(o, &s);
    sheet_close(&s);
}

static void answer(struct open *o)
{
    struct buf *body = &o->calls->body;
    struct study *st = o->study;

    if (!st->is_csv)
        buf_addf(body,
                 "{\"since_ms\":%lld,\"until_ms\":%lld,"
                 "\"decisions_read\":%lld,\"is_complete\":%s,\"items\":",
                 (long long)st->since_ms, (long long)st->until_ms,
                 (long long)st->n_read,
                 st->is_cut || st->n_unread ? "false" : "true");
    write_sheet(o);
    if (!st->is_csv)
        buf_addf(body, "}\n");
    if (st->is_short) {
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return;
    }
    calls_answer(o->calls, o->id, 200, st->is_csv ? CSV : SPEAK_JSON);
    open_end(o);
}

/* Reading. */

/* False: no further page is needed. */
static bool take_row(struct open *o, const struct row *r, enum err *e)
{
    struct arena *scratch = &o->calls->scratch;
    struct study *st = o->study;
    struct decision d;

    st->last_seq = row_int(r, DECISION_SEQ);
    if (row_int(r, DECISION_AT_MS) < st->since_ms)
        return false;
    if (st->n_read + st->n_unread >= DECISIONS_MAX) {
        st->is_cut = true;
        return false;
    }
    arena_reset(scratch);
    if (decision_from_row(scratch, r, &d) != OK) {
        st->n_unread++;
        return true;
    }
    st->n_read++;
    *e = analytics_add(st->analytics, &d);
    return !*e;
}

static void ask_page(struct open *o);

static void on_page(struct open *o)
{
    bool goes_on = o->query.has_more;
    enum err e = o->query.err;

    QUERY_EACH(r, &o->query)
    {
        if (!e && !take_row(o, r, &e)) {
            goes_on = false;
            break;
        }
    }
    open_drop_queries(o);
    if (e)
        open_refuse(o, e, STR(""), STR(""));
    else if (goes_on)
        ask_page(o);
    else
        answer(o);
}

static void ask_page(struct open *o)
{
    query_init(&o->query, &decision_table, PAGE_ROWS);
    o->has_query = true;
    query_order(&o->query, DECISION_SEQ, true);
    query_if(&o->query, DECISION_AT_MS, IS_LESS, value_int(o->study->until_ms));
    if (!caller_is_admin(&o->caller))
        query_if(&o->query, DECISION_REQUESTER, IS,
                 value_text(caller_name(&o->caller)));
    if (o->study->last_seq)
        query_if(&o->query, DECISION_SEQ, IS_LESS,
                 value_int(o->study->last_seq));
    open_list(o, &o->query, on_page);
}

/* What is asked for. */

static bool refuse(struct call *c, const char *words)
{
    call_refuse(c, ERR_BAD_REQUEST, str_of(words));
    return false;
}

/* "7d", "12h", "30m", "2w". */
static bool read_window(struct str s, int64_t *out)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {
        {'m', 60000}, {'h', 3600000}, {'d', DAY_MS}, {'w', 7 * DAY_MS}};
    int64_t n;

    if (s.n < 2 || str_to_i64(str_head(s, s.n - 1), &n) != OK || n < 1)
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (s.p[s.n - 1] == units[i].unit && n <= WINDOW_MAX / units[i].ms) {
            *out = n * units[i].ms;
            return true;
        }
    return false;
}

static bool read_time(struct call *c, const char *name, int64_t *out)
{
    struct str arg = call_arg(c, name);

    return !arg.p || (str_to_i64(arg, out) == OK && *out >= 0) ||
           refuse(c, "since and until must be Unix time in milliseconds");
}

static bool read_times(struct call *c, struct study *s)
{
    struct str window = call_arg(c, "window");
    int64_t span = 7 * DAY_MS;

    if (window.p && call_arg(c, "since").p)
        return refuse(c, "give window or since, not both");
    if (window.p && !read_window(window, &span))
        return refuse(c, "window must be a number with a unit: 30m, 12h, 7d, "
                         "2w; ten years at most");
    s->until_ms = c->now_ms + 1;
    if (!read_time(c, "until", &s->until_ms))
        return false;
    s->since_ms = s->until_ms > span ? s->until_ms - span : 0;
    return read_time(c, "since", &s->since_ms);
}

static bool read_format(struct call *c, struct study *s)
{
    struct str arg = call_arg(c, "format");

    s->is_csv = str_eq(arg, STR("csv"));
    return !arg.p || s->is_csv || str_eq(arg, STR("json")) ||
           refuse(c, "format must be json or csv");
}

static bool read_kind(struct call *c, struct study *s)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (str_eq(kinds[i].name, c->param))
            s->kind = &kinds[i];
    if (!s->kind)
        call_refuse(c, ERR_NOT_FOUND,
                    STR("there is summary, agents, types, gaps, signals and "
                        "keywords"));
    return s->kind != NULL;
}

void call_analytics_get(struct call *c)
{
    struct study wish = {0};
    struct open *o;

    if (!read_kind(c, &wish) || !read_times(c, &wish) || !read_format(c, &wish))
        return;
    o = open_new(c);
    if (!o)
        return;
    o->study = FAULT("calls.study") ? NULL : malloc(sizeof(*o->study));
    if (o->study) {
        *o->study = wish;
        o->study->analytics = analytics_new(
            router_settings(walk_router(c->calls->walk))->close_margin,
            c->calls->by_id.seed);
    }
    if (!o->study || !o->study->analytics)
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
    else
        ask_page(o);
}
