/* GET /api/analytics/WHAT: decisions are read page by page, newest first, as
 * far back as was asked for, and what they say together is answered as JSON or
 * as CSV. Admins see all of them, others their own.
 *
 * What other thresholds would have made of them is decided again from each
 * record, two replays for most (choose/sweep.c), and likewise what is left
 * without a signal (choose/other.c): that takes longer than counting, so these
 * are read in smaller pages. */
#include "calls/study.h"

#include <math.h>
#include <stdlib.h>

#include "base/fault.h"

enum {
    PAGE_ROWS = 250,
    PAGE_ROWS_REPLAYED = 100,
    PAGE_ROWS_ALPHAS = 40,
    DECISIONS_MAX = 200 * 1000, /* of one answer; the newest count */
    REPLAY_BYTES = 8 * 1024 * 1024,
    HOURS_MOST = 10 * 24, /* beyond them, `all` has days */
    CLOCK_MS = 60 * 1000, /* clocks are set back so far, and no further */
};

#define HOUR_MS    (INT64_C(3600) * 1000)
#define DAY_MS     (24 * HOUR_MS)
#define WINDOW_MAX (INT64_C(3660) * DAY_MS)
#define CSV        STR("text/csv; charset=utf-8")

void study_free(struct study *s)
{
    if (s) {
        analytics_free(s->analytics);
        thresholds_free(s->thresholds);
        arena_fini(&s->arena);
    }
    free(s);
}

/* The answer. */

static void write_sheet(struct open *o)
{
    struct study *st = o->study;
    struct sheet s;

    sheet_open(&s, &o->calls->body, st->is_csv, st->kind->columns);
    st->kind->write(o, &s);
    sheet_close(&s);
}

/* The threshold that holds now, or what auto goes by. */
static void put_now(struct json_out *out, const struct choose_settings *now)
{
    json_member_real(out, "threshold", now->threshold);
    json_member_bool(out, "auto", now->is_auto);
    json_member_real(out, "alpha", now->alpha);
}

static void write_json(struct open *o)
{
    struct json_out out = json_out(&o->calls->body);
    const struct study *st = o->study;

    json_open(&out, '{');
    json_member_int(&out, "since_ms", st->since_ms);
    json_member_int(&out, "until_ms", st->until_ms);
    json_member_int(&out, "decisions_read", st->n_read);
    json_member_bool(&out, "is_complete", !st->is_cut && !st->n_unread);
    if (st->kind->is_replay)
        put_now(&out, router_settings(walk_router(o->calls->walk)));
    if (st->kind->columns) {
        json_key(&out, STR("items"));
        write_sheet(o);
    } else {
        study_write_all(o, &out);
    }
    json_close(&out, '}');
    buf_add_char(&o->calls->body, '\n');
}

static void answer(struct open *o)
{
    struct study *st = o->study;

    if (st->is_csv)
        write_sheet(o);
    else
        write_json(o);
    if (st->is_short) {
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return;
    }
    calls_answer(o->calls, o->id, 200, st->is_csv ? CSV : SPEAK_JSON);
    open_end(o);
}

/* Reading. */

static enum err replay(struct study *st, const struct decision *d)
{
    struct decision_step steps[DECISION_STEPS_MAX];
    size_t n;
    enum err e = choose_sweep(d, &st->arena, steps, &n);

    return e ? e : thresholds_add(st->thresholds, d, steps);
}

static enum err replay_alphas(struct study *st, const struct decision *d)
{
    struct decision_other others[ALPHAS];
    enum err e = choose_has_alpha(d) ? choose_alphas(d, &st->arena, others)
                                     : ERR_NOT_FOUND;

    if (!e)
        thresholds_add_alphas(st->thresholds, d, others);
    return e == ERR_NOT_FOUND ? OK : e;
}

static enum err count(struct study *st, const struct decision *d)
{
    struct decision_other without[N_SIGNALS];
    enum err e = analytics_add(st->analytics, d);

    if (e || !st->kind->is_without)
        return e;
    e = choose_without(d, &st->arena, without);
    if (!e)
        analytics_add_without(st->analytics, d, without);
    return e;
}

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
    arena_reset(&st->arena);
    if (st->kind->is_of_alpha)
        *e = replay_alphas(st, &d);
    else
        *e = st->kind->is_replay ? replay(st, &d) : count(st, &d);
    if (st->kind->is_of_one && thresholds_has_enough(st->thresholds))
        st->is_cut = true;
    return !*e && !st->is_cut;
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

static size_t page_rows(const struct study_kind *k)
{
    if (k->is_of_alpha)
        return PAGE_ROWS_ALPHAS;
    return k->is_replay || k->is_without ? PAGE_ROWS_REPLAYED : PAGE_ROWS;
}

static void ask_page(struct open *o)
{
    query_init(&o->query, &decision_table, page_rows(o->study->kind));
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

/* Where to begin. Numbers grow with time, so the place of an `until` in the
 * past is found by halves: to walk there from the newest would be one question
 * to the store about all that is newer. */

static void halve(struct open *o);

static void on_half(struct open *o)
{
    const struct row *r = o->query.rows;
    enum err e = o->query.err;
    struct study *st = o->study;
    int64_t seq = r ? row_int(r, DECISION_SEQ) : 0;
    bool is_behind = r && row_int(r, DECISION_AT_MS) >= st->until_ms + CLOCK_MS;

    open_drop_queries(o);
    if (e) {
        open_refuse(o, e, STR(""), STR(""));
        return;
    }
    if (is_behind)
        st->high = st->last_seq = seq;
    else if (!st->last_seq) /* not even the newest is */
        st->high = 0;
    else
        st->low += (st->high - st->low) / 2;
    halve(o);
}

/* The newest first; then those in the middle of what is left. */
static void halve(struct open *o)
{
    const struct study *st = o->study;

    if (st->high - st->low <= PAGE_ROWS) {
        ask_page(o);
        return;
    }
    query_init(&o->query, &decision_table, 1);
    o->has_query = o->query.is_quick = true;
    query_order(&o->query, DECISION_SEQ, true);
    if (st->last_seq)
        query_if(&o->query, DECISION_SEQ, IS_AT_MOST,
                 value_int(st->low + (st->high - st->low) / 2));
    open_read(o, &o->query, on_half);
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
    return read_time(c, "since", &s->since_ms) &&
           (s->since_ms <= s->until_ms || !call_arg(c, "until").p ||
            refuse(c, "since must not be behind until"));
}

static bool read_format(struct call *c, struct study *s)
{
    struct str arg = call_arg(c, "format");

    s->is_csv = str_eq(arg, STR("csv"));
    if (s->is_csv && !s->kind->columns)
        return refuse(c, "all is many tables, and one file of CSV has one");
    return !arg.p || s->is_csv || str_eq(arg, STR("json")) ||
           refuse(c, "format must be json or csv");
}

static bool read_kind(struct call *c, struct study *s)
{
    s->kind = study_kind_of(c->param);
    if (!s->kind)
        call_refuse(c, ERR_NOT_FOUND, str_of(study_names));
    return s->kind != NULL;
}

/* Who asks for more hours than there are rows would get some of them. */
static bool read_span(struct call *c, struct study *s)
{
    int64_t asked_ms = s->until_ms - s->since_ms;

    s->span_ms = s->kind->span_ms;
    if (!s->kind->columns)
        s->span_ms = asked_ms > HOURS_MOST * HOUR_MS ? DAY_MS : HOUR_MS;
    if (!s->kind->span_ms || asked_ms / s->span_ms < ANALYTICS_ROWS_MAX)
        return true;
    return refuse(c, s->span_ms < DAY_MS
                         ? "that is more than 10000 rows: ask for days, or for "
                           "a shorter time"
                         : "that is more than 10000 rows: ask for a shorter "
                           "time");
}

static bool read_at(struct call *c, struct study *s)
{
    struct str arg = call_arg(c, "at");
    struct arena *scratch = &c->calls->scratch;
    const struct json *v = arg.p ? json_parse(scratch, arg, 0, NULL) : NULL;

    s->at = json_real_or(v, (double)NAN);
    if (s->kind->is_of_one)
        return (s->at >= 0 && s->at <= 1) ||
               refuse(c, "at must be a threshold, 0 to 1");
    return !arg.p || refuse(c, "at is for changes alone");
}

/* What is counted into; false: no memory. */
static bool study_begin(struct calls *c, struct study *s)
{
    if (s->kind->is_replay)
        s->thresholds = thresholds_new(s->at);
    else
        s->analytics =
            analytics_new(router_settings(walk_router(c->walk))->close_margin,
                          s->span_ms, c->by_id.seed);
    return s->thresholds || s->analytics;
}

static void begin(struct open *o, int64_t now_ms)
{
    if (o->study->until_ms <= now_ms)
        halve(o);
    else
        ask_page(o);
}

void call_analytics_get(struct call *c)
{
    struct study wish = {0};
    struct open *o;

    if (!read_kind(c, &wish) || !read_times(c, &wish) || !read_span(c, &wish) ||
        !read_at(c, &wish) || !read_format(c, &wish))
        return;
    o = open_new(c);
    if (!o)
        return;
    o->study = FAULT("calls.study") ? NULL : malloc(sizeof(*o->study));
    if (o->study) {
        *o->study = wish;
        o->study->high = INT64_MAX;
        arena_init(&o->study->arena, REPLAY_BYTES);
    }
    if (!o->study || !study_begin(c->calls, o->study))
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
    else if (open_study(o))
        begin(o, c->now_ms);
}
