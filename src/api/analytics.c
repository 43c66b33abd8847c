/* GET /api/analytics/WHAT: reads decisions page by page, newest first, as far
 * back as requested, and answers with tables as JSON or CSV. Admins see all
 * decisions, others their own.
 *
 * The effect of other thresholds is computed by deciding again from each
 * record, with two replays for most (choose/layers/sweep.c); likewise the
 * effect of leaving out a signal (choose/layers/other.c). That takes longer
 * than counting, so those pages are smaller. */
#include "api/analytics_query.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
    PAGE_ROWS = 250,
    PAGE_ROWS_REPLAYED = 100,
    PAGE_ROWS_ALPHAS = 40,
    DECISIONS_MAX = 200 * 1000, /* of one answer, the newest ones */
    REPLAY_BYTES = 8 * 1024 * 1024,
    HOURS_MOST = 10 * 24, /* for longer times `all` has days */
    CLOCK_MS = 60 * 1000, /* clocks are set back at most this much */
};

#define HOUR_MS    (INT64_C(3600) * 1000)
#define DAY_MS     (24 * HOUR_MS)
#define WINDOW_MAX (INT64_C(3660) * DAY_MS)
#define CSV        STR("text/csv; charset=utf-8")

static void analytics_query_fini(void *own)
{
    struct analytics_query *s = own;

    analytics_free(s->analytics);
    thresholds_free(s->thresholds);
    arena_fini(&s->arena);
}

/* The answer. */

static void analytics_write_sheet(struct request *o)
{
    struct analytics_query *st = o->own;
    struct sheet s;

    sheet_open(&s, &o->api->body, st->is_csv, st->kind->columns);
    st->kind->write(o, &s);
    sheet_close(&s);
}

static void analytics_write_json(struct request *o)
{
    struct json_out out = request_json(o);
    const struct analytics_query *st = o->own;
    const struct choose_settings *now =
        router_settings(walk_router(o->api->walk));

    json_open(&out, '{');
    json_member_int(&out, "since_ms", st->since_ms);
    json_member_int(&out, "until_ms", st->until_ms);
    json_member_int(&out, "decisions_read", st->n_read);
    json_member_bool(&out, "is_complete", !st->is_cut && !st->n_unread);
    if (st->kind->is_replay) {
        json_member_real(&out, "threshold", now->threshold);
        json_member_bool(&out, "auto", now->is_auto);
        json_member_real(&out, "alpha", now->alpha);
    }
    if (st->kind->columns) {
        json_key(&out, STR("items"));
        analytics_write_sheet(o);
    } else {
        analytics_write_all(o, &out);
    }
    json_close(&out, '}');
    buf_add_char(&o->api->body, '\n');
}

static void answer_analytics(struct request *o)
{
    struct analytics_query *st = o->own;

    if (st->is_csv)
        analytics_write_sheet(o);
    else
        analytics_write_json(o);
    if (st->is_short) {
        request_fail(o, ERR_NOMEM);
        return;
    }
    api_answer(o->api, o->id, 200, st->is_csv ? CSV : SPEAK_JSON);
    request_end(o);
}

/* Reading. */

static enum err analytics_replay(struct analytics_query *st,
                                 const struct decision *d)
{
    struct decision_step steps[DECISION_STEPS_MAX];
    size_t n;
    enum err e = choose_sweep(d, &st->arena, steps, &n);

    return e ? e : thresholds_add(st->thresholds, d, steps);
}

static enum err analytics_replay_alphas(struct analytics_query *st,
                                        const struct decision *d)
{
    struct decision_other others[ALPHAS];
    enum err e = choose_has_alpha(d) ? choose_alphas(d, &st->arena, others)
                                     : ERR_NOT_FOUND;

    if (!e)
        thresholds_add_alphas(st->thresholds, d, others);
    return e == ERR_NOT_FOUND ? OK : e;
}

static enum err analytics_count(struct analytics_query *st,
                                const struct decision *d)
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
static bool analytics_take_row(struct request *o, const struct row *r,
                               enum err *e)
{
    struct arena *scratch = &o->api->scratch;
    struct analytics_query *st = o->own;
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
        *e = analytics_replay_alphas(st, &d);
    else
        *e = st->kind->is_replay ? analytics_replay(st, &d)
                                 : analytics_count(st, &d);
    if (st->kind->is_of_one && thresholds_has_enough(st->thresholds))
        st->is_cut = true;
    return !*e && !st->is_cut;
}

static void analytics_read_page(struct request *o);

static void on_analytics_page(struct request *o)
{
    bool goes_on = o->query.has_more;
    enum err e = o->query.err;

    QUERY_EACH(r, &o->query)
    {
        if (!e && !analytics_take_row(o, r, &e)) {
            goes_on = false;
            break;
        }
    }
    request_drop_queries(o);
    if (e)
        request_fail(o, e);
    else if (goes_on)
        analytics_read_page(o);
    else
        answer_analytics(o);
}

static size_t analytics_page_rows(const struct analytics_kind *k)
{
    if (k->is_of_alpha)
        return PAGE_ROWS_ALPHAS;
    return k->is_replay || k->is_without ? PAGE_ROWS_REPLAYED : PAGE_ROWS;
}

static void analytics_read_page(struct request *o)
{
    request_query(o, &decision_table,
                  analytics_page_rows(analytics_of(o)->kind));
    query_order(&o->query, DECISION_SEQ, true);
    query_if(&o->query, DECISION_AT_MS, IS_LESS,
             value_int(analytics_of(o)->until_ms));
    if (!caller_is_admin(&o->caller))
        query_if(&o->query, DECISION_REQUESTER, IS,
                 value_text(caller_name(&o->caller)));
    if (analytics_of(o)->last_seq)
        query_if(&o->query, DECISION_SEQ, IS_LESS,
                 value_int(analytics_of(o)->last_seq));
    request_read_list(o, &o->query, on_analytics_page);
}

/* The start. Sequence numbers grow with time, so an `until` in the past is
 * found by bisection: to walk there from the newest would read everything that
 * is newer. */

static void analytics_bisect(struct request *o);

static void on_analytics_bisected(struct request *o)
{
    const struct row *r = o->query.rows;
    enum err e = o->query.err;
    struct analytics_query *st = o->own;
    int64_t seq = r ? row_int(r, DECISION_SEQ) : 0;
    bool is_behind = r && row_int(r, DECISION_AT_MS) >= st->until_ms + CLOCK_MS;

    request_drop_queries(o);
    if (e) {
        request_fail(o, e);
        return;
    }
    if (is_behind)
        st->high = st->last_seq = seq;
    else if (!st->last_seq) /* not even the newest is after `until` */
        st->high = 0;
    else
        st->low += (st->high - st->low) / 2;
    analytics_bisect(o);
}

/* First the newest, then the middle of what is left. */
static void analytics_bisect(struct request *o)
{
    const struct analytics_query *st = o->own;

    if (st->high - st->low <= PAGE_ROWS) {
        analytics_read_page(o);
        return;
    }
    request_query(o, &decision_table, 1)->is_quick = true;
    query_order(&o->query, DECISION_SEQ, true);
    if (st->last_seq)
        query_if(&o->query, DECISION_SEQ, IS_AT_MOST,
                 value_int(st->low + (st->high - st->low) / 2));
    request_read(o, &o->query, on_analytics_bisected);
}

/* The request. */

/* "7d", "12h", "30m", "2w". */
static bool analytics_read_window(struct str s, int64_t *out)
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

static bool analytics_read_times(struct call *c, struct analytics_query *s)
{
    struct str window = call_arg(c, "window");
    int64_t span = 7 * DAY_MS;

    if (window.p && call_arg(c, "since").p)
        return call_bad_request(c, "give window or since, not both");
    if (window.p && !analytics_read_window(window, &span))
        return call_bad_request(
            c, "window must be a number with a unit: 30m, 12h, 7d, "
               "2w; ten years at most");
    s->until_ms = call_int(c, "until", c->now_ms + 1);
    s->since_ms =
        call_int(c, "since", s->until_ms > span ? s->until_ms - span : 0);
    return s->since_ms <= s->until_ms || !call_arg(c, "until").p ||
           call_bad_request(c, "since must not be after until");
}

static bool analytics_read_format(struct call *c, struct analytics_query *s)
{
    s->is_csv = str_eq(call_arg(c, "format"), STR("csv"));
    return !s->is_csv || s->kind->columns ||
           call_bad_request(c,
                            "all has several tables, and a CSV file only one");
}

/* Rejected, because a table with too many rows would be incomplete. */
static bool analytics_read_span(struct call *c, struct analytics_query *s)
{
    int64_t asked_ms = s->until_ms - s->since_ms;

    s->span_ms = s->kind->span_ms;
    if (!s->kind->columns)
        s->span_ms = asked_ms > HOURS_MOST * HOUR_MS ? DAY_MS : HOUR_MS;
    if (!s->kind->span_ms || asked_ms / s->span_ms < ANALYTICS_ROWS_MAX)
        return true;
    return call_bad_request(
        c, s->span_ms < DAY_MS
               ? "that is more than 10000 rows: ask for days, or for "
                 "a shorter time"
               : "that is more than 10000 rows: ask for a shorter "
                 "time");
}

static bool analytics_read_at(struct call *c, struct analytics_query *s)
{
    bool is_given = call_arg(c, "at").p;

    s->at = call_real(c, "at", (double)NAN);
    if (s->kind->is_of_one)
        return is_given ||
               call_bad_request(c, "at must be a threshold, 0 to 1");
    return !is_given || call_bad_request(c, "at is only for changes");
}

/* Create the tables; false: no memory. */
static bool analytics_new_tables(struct api *c, struct analytics_query *s)
{
    if (s->kind->is_replay)
        s->thresholds = thresholds_new(s->at);
    else
        s->analytics =
            analytics_new(router_settings(walk_router(c->walk))->close_margin,
                          s->span_ms, c->by_id.seed);
    return s->thresholds || s->analytics;
}

void call_analytics_get(struct call *c)
{
    static const struct request_state state = {
        .bytes = sizeof(struct analytics_query), .fini = analytics_query_fini};
    struct analytics_query wish = {0}, *s;
    struct request *o;

    wish.kind = analytics_kind_of(c->param);
    if (!wish.kind) {
        call_refuse(c, ERR_NOT_FOUND, str_of(analytics_names));
        return;
    }
    if (!analytics_read_times(c, &wish) || !analytics_read_span(c, &wish) ||
        !analytics_read_at(c, &wish) || !analytics_read_format(c, &wish))
        return;
    o = request_of_call(c, &state);
    if (!o)
        return;
    s = o->own;
    *s = wish;
    s->high = INT64_MAX;
    arena_init(&s->arena, REPLAY_BYTES);
    if (!analytics_new_tables(c->api, s))
        request_fail(o, ERR_NOMEM);
    else if (!request_analytics(o))
        return;
    else if (wish.until_ms <= c->now_ms)
        analytics_bisect(o);
    else
        analytics_read_page(o);
}
