/* Scans for decisions by filters without an index. There may be a million
 * decisions, and matches may be rare: no single query may walk over all of
 * them, nor all queries of one call.
 *
 *     newest                                                    oldest
 *       |<- SPAN ->|<- SPAN ->|                                    |
 *       [  below   lower                                           ]
 *
 * So the records are scanned in spans of their sequence numbers, one query per
 * span (or pages, if words are searched in the texts). After ROWS records or
 * NUMBERS numbers a call answers with its matches, perhaps none, and a cursor
 * to continue. Numbers grow with time: the span that reaches records before
 * `since` is the last.
 *
 * Rejected: an index for each filter. Every message would pay for what an
 * operator does now and then. */
#include "api/decision_scan.h"

enum {
    SPAN = 50 * 1000,     /* numbers of one query */
    NUMBERS = 100 * 1000, /* of one call */
    PAGE_ROWS = 250,      /* texts searched in one turn of the loop */
    ROWS = 10 * 1000,     /* of one call */
    CLOCK_MS = 60 * 1000, /* clocks are set back at most this much */
};

static void decision_scan_fini(void *own)
{
    struct decision_scan *h = own;

    query_fini(&h->wish);
    buf_fini(&h->found);
}

const struct request_state decision_scan_state = {
    .bytes = sizeof(struct decision_scan), .fini = decision_scan_fini};

static struct decision_scan *scan_of(const struct request *o)
{
    return o->own;
}

void decision_scan_init(struct decision_scan *h, const struct wordfind *words,
                        size_t limit, int64_t cursor)
{
    h->words = *words;
    h->limit = limit;
    h->below = cursor;
    query_init(&h->wish, &decision_table, 0);
    buf_init(&h->found, 2 * (size_t)PAGE_BYTES);
    h->out = json_out(&h->found);
}

static void decision_scan_answer(struct request *o, int64_t cursor)
{
    struct json_out out = request_json(o);
    const struct decision_scan *h = o->own;

    if (h->found.over) {
        request_fail(o, ERR_NOMEM);
        return;
    }
    speak_list_open(&out);
    if (h->n_found)
        json_put_raw(&out, buf_str(&h->found));
    request_answer_list(o, &out, cursor);
}

/* Spans. */

static bool decision_scan_is_full(const struct decision_scan *h)
{
    return h->n_found == h->limit || h->found.n > PAGE_BYTES;
}

static enum err decision_scan_look_at(struct request *o, const struct row *r)
{
    struct decision_scan *h = o->own;

    h->below = row_int(r, DECISION_SEQ);
    h->n_looked += h->words.n > 0;
    if (h->words.n && !wordfind_has(&h->words, row_str(r, DECISION_TEXT)))
        return OK;
    h->n_found++;
    return decisions_put(o, &h->out, r);
}

static void decision_scan_read_rows(struct request *o);
static void decision_scan_read_beyond(struct request *o);

/* The whole span was scanned. */
static void decision_scan_end_span(struct request *o)
{
    struct decision_scan *h = o->own;

    h->below = h->lower;
    h->n_passed += SPAN;
    if (h->below <= h->oldest)
        decision_scan_answer(o, 0);
    else
        decision_scan_read_beyond(o);
}

static void on_scan_span(struct request *o)
{
    struct decision_scan *h = o->own;
    const struct row *r = o->query.rows;
    bool has_more = o->query.has_more;
    enum err e = o->query.err;

    for (; !e && r && !decision_scan_is_full(h); r = r->next)
        e = decision_scan_look_at(o, r);
    has_more |= r != NULL;
    request_drop_queries(o);
    if (e)
        request_fail(o, e);
    else if (decision_scan_is_full(h) || (has_more && h->n_looked >= ROWS))
        decision_scan_answer(o,
                             has_more || h->lower > h->oldest ? h->below : 0);
    else if (has_more)
        decision_scan_read_rows(o);
    else
        decision_scan_end_span(o);
}

static void decision_scan_read_rows(struct request *o)
{
    const struct decision_scan *h = o->own;
    struct query *q = &o->query;

    query_init(q, &decision_table,
               h->words.n ? PAGE_ROWS : h->limit - h->n_found);
    query_order(q, DECISION_SEQ, true);
    for (const struct condition *c = h->wish.conditions; c; c = c->next)
        query_if_any(q, c->columns, c->n_columns, c->compare, c->value);
    query_if(q, DECISION_SEQ, IS_LESS, value_int(h->below));
    query_if(q, DECISION_SEQ, IS_AT_LEAST, value_int(h->lower));
    request_read_list(o, q, on_scan_span);
}

static void decision_scan_begin_span(struct request *o)
{
    struct decision_scan *h = o->own;

    h->lower = h->below > SPAN ? h->below - SPAN : 0;
    decision_scan_read_rows(o);
}

/* Single records. */

/* Read the first record below a number, or the first of all. */
static void decision_scan_read_one(struct request *o, int64_t below,
                                   bool is_descending,
                                   void (*then)(struct request *o))
{
    request_query(o, &decision_table, 1)->is_quick = true;
    query_order(&o->query, DECISION_SEQ, is_descending);
    if (below)
        query_if(&o->query, DECISION_SEQ, IS_LESS, value_int(below));
    request_read(o, &o->query, then);
}

/* False: o was answered. */
static bool decision_scan_take_one(struct request *o, int64_t *seq,
                                   int64_t *at_ms)
{
    const struct row *r = o->query.rows;
    enum err e = o->query.err;

    *seq = r ? row_int(r, DECISION_SEQ) : 0;
    *at_ms = r ? row_int(r, DECISION_AT_MS) : 0;
    request_drop_queries(o);
    if (e)
        request_fail(o, e);
    else if (!*seq)
        decision_scan_answer(o, 0);
    return !e && *seq;
}

static void on_scan_beyond(struct request *o)
{
    struct decision_scan *h = o->own;
    int64_t seq, at_ms;

    if (!decision_scan_take_one(o, &seq, &at_ms))
        return;
    h->below = seq + 1; /* removed records leave gaps */
    if (at_ms < h->since_ms - CLOCK_MS)
        decision_scan_answer(o, 0);
    else if (h->n_passed >= NUMBERS)
        decision_scan_answer(o, h->below);
    else
        decision_scan_begin_span(o);
}

static void decision_scan_read_beyond(struct request *o)
{
    decision_scan_read_one(o, scan_of(o)->below, true, on_scan_beyond);
}

static void on_scan_newest(struct request *o)
{
    int64_t seq, at_ms;

    if (!decision_scan_take_one(o, &seq, &at_ms))
        return;
    scan_of(o)->below = seq + 1;
    decision_scan_begin_span(o);
}

static void on_scan_oldest(struct request *o)
{
    int64_t at_ms;

    if (decision_scan_take_one(o, &scan_of(o)->oldest, &at_ms))
        decision_scan_read_one(o, scan_of(o)->below, true, on_scan_newest);
}

void decision_scan_begin(struct request *o)
{
    decision_scan_read_one(o, 0, false, on_scan_oldest);
}
