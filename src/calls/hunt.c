/* A million decisions, and what is looked for may be rare: no question to the
 * store may walk over all of them, nor all of one call's questions together.
 *
 *     newest                                                    oldest
 *       |<- SPAN ->|<- SPAN ->|                                    |
 *       [  below   lower                                           ]
 *
 * So the records are looked at span by span of their numbers, each span by one
 * question (or, where words are looked for, by pages whose texts are read
 * here), and after ROWS or NUMBERS a call answers what it has, perhaps nothing,
 * with a cursor that goes on from there. Numbers grow with time: a span that
 * ends in what was before `since` is the last.
 *
 * Turned down: an index for each filter. Every message would pay for what an
 * operator does now and then. */
#include "calls/hunt.h"

#include <stdlib.h>

#include "base/fault.h"

enum {
    SPAN = 50 * 1000,     /* numbers of one question */
    NUMBERS = 100 * 1000, /* of one call */
    PAGE_ROWS = 250,      /* whose texts are read in one turn of the loop */
    ROWS = 10 * 1000,     /* of one call */
    CLOCK_MS = 60 * 1000, /* clocks are set back so far, and no further */
};

void hunt_free(struct hunt *h)
{
    if (!h)
        return;
    query_fini(&h->wish);
    buf_fini(&h->found);
    free(h);
}

struct hunt *hunt_new(const struct wordfind *words, size_t limit,
                      int64_t cursor)
{
    struct hunt *h = FAULT("calls.hunt") ? NULL : calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->words = *words;
    h->limit = limit;
    h->below = cursor;
    query_init(&h->wish, &decision_table, 0);
    buf_init(&h->found, 2 * (size_t)PAGE_BYTES);
    h->out = json_out(&h->found);
    return h;
}

static void answer(struct open *o, int64_t cursor)
{
    struct json_out out = json_out(&o->calls->body);
    const struct hunt *h = o->hunt;

    if (h->found.over) {
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return;
    }
    speak_list_open(&out);
    if (h->n_found)
        json_put_raw(&out, buf_str(&h->found));
    decisions_end_page(o, &out, cursor);
}

/* One span. */

static bool is_full(const struct hunt *h)
{
    return h->n_found == h->limit || h->found.n > PAGE_BYTES;
}

static enum err look(struct open *o, const struct row *r)
{
    struct hunt *h = o->hunt;

    h->below = row_int(r, DECISION_SEQ);
    h->n_looked += h->words.n > 0;
    if (h->words.n && !wordfind_has(&h->words, row_str(r, DECISION_TEXT)))
        return OK;
    h->n_found++;
    return decisions_put(o, &h->out, r);
}

static void ask_rows(struct open *o);
static void ask_beyond(struct open *o);

/* All of it was looked at. */
static void end_span(struct open *o)
{
    struct hunt *h = o->hunt;

    h->below = h->lower;
    h->n_passed += SPAN;
    if (h->below <= h->oldest)
        answer(o, 0);
    else
        ask_beyond(o);
}

static void on_span(struct open *o)
{
    struct hunt *h = o->hunt;
    const struct row *r = o->query.rows;
    bool has_more = o->query.has_more;
    enum err e = o->query.err;

    for (; !e && r && !is_full(h); r = r->next)
        e = look(o, r);
    has_more |= r != NULL;
    open_drop_queries(o);
    if (e)
        open_refuse(o, e, STR(""), STR(""));
    else if (is_full(h) || (has_more && h->n_looked >= ROWS))
        answer(o, has_more || h->lower > h->oldest ? h->below : 0);
    else if (has_more)
        ask_rows(o);
    else
        end_span(o);
}

static void ask_rows(struct open *o)
{
    const struct hunt *h = o->hunt;
    struct query *q = &o->query;

    query_init(q, &decision_table,
               h->words.n ? PAGE_ROWS : h->limit - h->n_found);
    o->has_query = true;
    query_order(q, DECISION_SEQ, true);
    for (const struct condition *c = h->wish.conditions; c; c = c->next)
        query_if_any(q, c->columns, c->n_columns, c->compare, c->value);
    query_if(q, DECISION_SEQ, IS_LESS, value_int(h->below));
    query_if(q, DECISION_SEQ, IS_AT_LEAST, value_int(h->lower));
    open_list(o, q, on_span);
}

static void begin_span(struct open *o)
{
    struct hunt *h = o->hunt;

    h->lower = h->below > SPAN ? h->below - SPAN : 0;
    ask_rows(o);
}

/* Single records at the ends. */

/* The first below, or the first of all. */
static void ask_one(struct open *o, int64_t below, bool is_descending,
                    void (*then)(struct open *o))
{
    query_init(&o->query, &decision_table, 1);
    o->has_query = o->query.is_quick = true;
    query_order(&o->query, DECISION_SEQ, is_descending);
    if (below)
        query_if(&o->query, DECISION_SEQ, IS_LESS, value_int(below));
    open_read(o, &o->query, then);
}

/* False: o was answered. */
static bool take_one(struct open *o, int64_t *seq, int64_t *at_ms)
{
    const struct row *r = o->query.rows;
    enum err e = o->query.err;

    *seq = r ? row_int(r, DECISION_SEQ) : 0;
    *at_ms = r ? row_int(r, DECISION_AT_MS) : 0;
    open_drop_queries(o);
    if (e)
        open_refuse(o, e, STR(""), STR(""));
    else if (!*seq)
        answer(o, 0);
    return !e && *seq;
}

static void on_beyond(struct open *o)
{
    struct hunt *h = o->hunt;
    int64_t seq, at_ms;

    if (!take_one(o, &seq, &at_ms))
        return;
    h->below = seq + 1; /* what was removed left holes */
    if (at_ms < h->since_ms - CLOCK_MS)
        answer(o, 0);
    else if (h->n_passed >= NUMBERS)
        answer(o, h->below);
    else
        begin_span(o);
}

static void ask_beyond(struct open *o)
{
    ask_one(o, o->hunt->below, true, on_beyond);
}

static void on_newest(struct open *o)
{
    int64_t seq, at_ms;

    if (!take_one(o, &seq, &at_ms))
        return;
    o->hunt->below = seq + 1;
    begin_span(o);
}

static void on_oldest(struct open *o)
{
    int64_t at_ms;

    if (take_one(o, &o->hunt->oldest, &at_ms))
        ask_one(o, o->hunt->below, true, on_newest);
}

void hunt_begin(struct open *o)
{
    ask_one(o, 0, false, on_oldest);
}
