/* The feed, as pages and as a stream. */
#include "api/internal.h"

#include <stdio.h>

enum {
    BATCH_BYTES = 64 * 1024,
    SPAN = 20000, /* entries that one page looks at */
};

/* The state of a request: a page, or a stream. */
struct feed_call {
    struct feed_reader reader;
    struct request *request; /* of the reader */
    bool is_reading, has_begun;
    int64_t was_further; /* the position of a client ahead of the feed; zero:
                            it is not */
    int64_t upto;        /* the last entry that a page looks at */
    size_t page_rows;
};

static struct feed_call *feed_of(const struct request *o)
{
    return o->own;
}

static void feed_quiet(struct request *o)
{
    struct feed_call *f = o->own;

    if (f->is_reading)
        feed_leave(o->api->feed, &f->reader);
    f->is_reading = false;
}

static const struct request_state feed_state = {
    .bytes = sizeof(struct feed_call), .quiet = feed_quiet};

/* A page. */

/* All entries up to feed.upto were looked at: a client who sees none of them
 * need not ask for them again. */
static void on_feed_page_read(struct request *o)
{
    struct json_out out = request_json(o);
    int64_t after = o->query.has_more ? 0 : feed_of(o)->upto;

    if (!request_query_ok(o))
        return;
    json_open(&out, '{');
    json_key(&out, STR("items"));
    json_open(&out, '[');
    QUERY_EACH(r, &o->query)
    {
        struct feed_entry e;

        feed_from_row(&e, r);
        if (feed_shows(o->api->feed, &e, &o->caller))
            speak_entry(&out, &e);
        if (e.seq > after)
            after = e.seq;
    }
    json_close(&out, ']');
    json_member_int(&out, "next_after", after);
    json_close(&out, '}');
    request_answer(o, 200);
}

/* Turn the page around: the newest entry was first. There is nothing after the
 * newest of all. */
static void on_feed_last(struct request *o)
{
    struct row *back = NULL, *next;

    for (struct row *r = o->query.rows; r; r = next) {
        next = r->next;
        r->next = back;
        back = r;
    }
    o->query.rows = back;
    o->query.has_more = false;
    on_feed_page_read(o);
}

static void feed_read_page(struct request *o, int64_t after, bool is_last)
{
    struct query *q = request_query(o, &feed_table, feed_of(o)->page_rows);

    query_if(q, FEED_SEQ, IS_MORE, value_int(after));
    query_if(q, FEED_SEQ, IS_AT_MOST, value_int(feed_of(o)->upto));
    feed_query_for(q, &o->caller);
    query_order(q, FEED_SEQ, is_last);
    request_read_list(o, q, is_last ? on_feed_last : on_feed_page_read);
}

/* The oldest entry after the position: the ones between may have been removed
 * long ago. */
static void on_feed_oldest(struct request *o)
{
    int64_t from = feed_of(o)->upto;

    if (!request_query_ok(o))
        return;
    if (o->query.rows)
        from = row_int(o->query.rows, FEED_SEQ) - 1;
    if (feed_of(o)->upto - from > SPAN)
        feed_of(o)->upto = from + SPAN;
    feed_read_page(o, from, false);
}

/* An admin finds a page at once. For others visible entries may be far apart,
 * so one call looks at SPAN entries. A cursor after the newest entry is from
 * before the feed was restored; the next cursor is right again. */
static void feed_answer_page(struct call *c, int64_t after)
{
    struct request *o = request_of_call(c, &feed_state);

    if (!o)
        return;
    feed_of(o)->upto = feed_newest(c->api->feed);
    feed_of(o)->page_rows = call_limit(c);
    if (caller_is_admin(&c->caller)) {
        feed_read_page(o, after, false);
        return;
    }
    request_query(o, &feed_table, 1);
    o->query.is_quick = true;
    query_if(&o->query, FEED_SEQ, IS_MORE, value_int(after));
    query_order(&o->query, FEED_SEQ, false);
    request_read(o, &o->query, on_feed_oldest);
}

/* The newest entries, in ascending order. */
static void feed_answer_last(struct call *c)
{
    struct request *o = request_of_call(c, &feed_state);
    int64_t upto;

    if (!o)
        return;
    upto = feed_newest(c->api->feed);
    feed_of(o)->upto = upto;
    feed_of(o)->page_rows = (size_t)call_int(c, "last", 1);
    feed_read_page(o, caller_is_admin(&c->caller) ? 0 : upto - SPAN, true);
}

/* A stream. */

/* The start position, so that a client that is cut off before the first event
 * can continue from it. Clients take it as an id without an event. A client
 * whose position is after the newest entry has seen entries that a restored
 * backup does not have, and is told so. */
static void feed_write_start(struct request *o)
{
    struct buf *body = &o->api->body;
    int64_t after = feed_of(o)->reader.after;
    struct json_out out = json_out(body);
    struct speak_event event;
    char id[24];

    feed_of(o)->has_begun = true;
    snprintf(id, sizeof(id), "%lld", (long long)after);
    if (!feed_of(o)->was_further) {
        buf_addf(body, "id: %s\n\n", id);
        return;
    }
    event = speak_event_open(body, str_of(id), STR("gap"));
    speak_feed_gap(&out, feed_of(o)->was_further, after);
    speak_event_close(&event);
}

static void feed_write_batch(struct request *o)
{
    struct buf *body = &o->api->body;
    struct feed_entry e;

    if (!feed_of(o)->has_begun)
        feed_write_start(o);
    while (body->n < BATCH_BYTES &&
           feed_next(o->api->feed, &feed_of(o)->reader, &e)) {
        struct json_out out = json_out(body);
        struct speak_event event;
        char id[24];

        snprintf(id, sizeof(id), "%lld", (long long)e.seq);
        event = speak_event_open(body, str_of(id), e.type);
        speak_entry(&out, &e);
        speak_event_close(&event);
    }
}

static void feed_pump(struct request *o)
{
    while (request_has_room(o)) {
        buf_clear(&o->api->body);
        feed_write_batch(o);
        if (!o->api->body.n || !request_send(o))
            return;
    }
}

static void on_feed_entries(struct feed_reader *r)
{
    feed_pump(LIST_OF(r, struct feed_call, reader)->request);
}

static void feed_open_stream(struct call *c, int64_t after)
{
    struct request *o = request_of_call(c, &feed_state);

    if (!o || !request_stream(o, REQUEST_FEED, feed_pump))
        return;
    feed_of(o)->reader = (struct feed_reader){.on_news = on_feed_entries};
    feed_of(o)->request = o;
    feed_of(o)->is_reading = true;
    feed_join(c->api->feed, &feed_of(o)->reader, &c->caller, after);
    if (after > feed_of(o)->reader.after)
        feed_of(o)->was_further = after;
    feed_pump(o);
}

void call_feed(struct call *c)
{
    struct str seen = http_header(c->rq, STR("Last-Event-ID"));
    struct str arg = seen.n ? seen : call_arg(c, "after");
    bool is_last = call_arg(c, "last").p, is_stream = call_wants_events(c);
    int64_t after = is_stream ? feed_newest(c->api->feed) : 0;

    if (is_last && (is_stream || arg.p || call_arg(c, "limit").p)) {
        call_bad_request(
            c, "last is a page of the newest entries, and cannot be used "
               "with after, with limit or with a stream");
        return;
    }
    if (arg.p && (str_to_i64(arg, &after) || after < 0)) {
        call_bad_request(
            c, "after, or Last-Event-ID, must be the seq of an entry, "
               "or 0 for all entries");
        return;
    }
    if (is_stream)
        feed_open_stream(c, after);
    else if (is_last)
        feed_answer_last(c);
    else
        feed_answer_page(c, after);
}
