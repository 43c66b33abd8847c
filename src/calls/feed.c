/* The feed: what happened, as pages and as a stream that goes on. */
#include "calls/internal.h"

#include <stdio.h>

enum {
    BATCH_BYTES = 64 * 1024,
    SPAN = 20000, /* entries that one page looks at */
};

static struct speak_entry entry_of(const struct feed_entry *e)
{
    return (struct speak_entry){.seq = e->seq,
                                .at_ms = e->at_ms,
                                .type = e->type,
                                .task_id = e->task_id,
                                .conversation_id = e->conversation_id,
                                .agent = e->agent,
                                .requester = e->requester,
                                .root_user = e->root_user,
                                .data = e->data};
}

/* A page. */

/* All up to feed.upto were looked at: whoever may see none of them need not
 * look at them again. */
static void on_page(struct open *o)
{
    struct json_out out = json_out(&o->calls->body);
    int64_t after = o->query.has_more ? 0 : o->feed.upto;

    if (o->query.err) {
        open_refuse(o, o->query.err, STR(""), STR(""));
        return;
    }
    json_open(&out, '{');
    json_key(&out, STR("items"));
    json_open(&out, '[');
    QUERY_EACH(r, &o->query)
    {
        struct feed_entry e;
        struct speak_entry said;

        feed_from_row(&e, r);
        if (feed_shows(o->calls->feed, &e, &o->caller)) {
            said = entry_of(&e);
            speak_entry(&out, &said);
        }
        if (e.seq > after)
            after = e.seq;
    }
    json_close(&out, ']');
    json_member_int(&out, "next_after", after);
    json_close(&out, '}');
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

/* The newest came first. Behind the newest of all there is nothing to see. */
static void on_last(struct open *o)
{
    struct row *back = NULL, *next;

    for (struct row *r = o->query.rows; r; r = next) {
        next = r->next;
        r->next = back;
        back = r;
    }
    o->query.rows = back;
    o->query.has_more = false;
    on_page(o);
}

static void read_page(struct open *o, int64_t after, bool is_last)
{
    struct query *q = &o->query;

    if (o->has_query)
        query_fini(q);
    query_init(q, &feed_table, o->feed.page_rows);
    o->has_query = true;
    query_if(q, FEED_SEQ, IS_MORE, value_int(after));
    query_if(q, FEED_SEQ, IS_AT_MOST, value_int(o->feed.upto));
    feed_query_for(q, &o->caller);
    query_order(q, FEED_SEQ, is_last);
    open_list(o, q, is_last ? on_last : on_page);
}

/* The oldest entry there is behind where they are: what lies between may have
 * been removed long ago. */
static void on_oldest(struct open *o)
{
    int64_t from = o->feed.upto;

    if (o->query.err) {
        open_refuse(o, o->query.err, STR(""), STR(""));
        return;
    }
    if (o->query.rows)
        from = row_int(o->query.rows, FEED_SEQ) - 1;
    if (o->feed.upto - from > SPAN)
        o->feed.upto = from + SPAN;
    read_page(o, from, false);
}

/* Who sees everything finds a page at once. For others it may be far between
 * two entries; one call looks at so many and no more. A cursor behind the
 * newest is from before the feed went back: the next one is not. */
static void answer_page(struct call *c, int64_t after)
{
    struct open *o;
    size_t limit;

    if (!call_limit(c, &limit) || !(o = open_new(c)))
        return;
    o->feed.upto = feed_newest(c->calls->feed);
    o->feed.page_rows = limit;
    if (caller_is_admin(&c->caller)) {
        read_page(o, after, false);
        return;
    }
    query_init(&o->query, &feed_table, 1);
    o->has_query = true;
    o->query.is_quick = true;
    query_if(&o->query, FEED_SEQ, IS_MORE, value_int(after));
    query_order(&o->query, FEED_SEQ, false);
    open_read(o, &o->query, on_oldest);
}

/* The newest there are, the oldest of them first. */
static void answer_last(struct call *c, struct str last)
{
    struct open *o;
    int64_t n, upto;

    if (str_to_i64(last, &n) || n < 1 || n > 500) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("last must be a whole number from 1 to 500"));
        return;
    }
    if (!(o = open_new(c)))
        return;
    upto = feed_newest(c->calls->feed);
    o->feed.upto = upto;
    o->feed.page_rows = (size_t)n;
    read_page(o, caller_is_admin(&c->caller) ? 0 : upto - SPAN, true);
}

/* A stream. */

/* Where it begins: whoever is cut off before anything happens comes back to
 * there. Readers of events take it as an id and no event. Who was further than
 * the feed is has seen what it forgot (it was restored from a backup), and is
 * told so. */
static void write_beginning(struct open *o)
{
    struct buf *body = &o->calls->body;
    int64_t after = o->feed.reader.after;
    struct json_out out = json_out(body);
    struct speak_event event;
    char id[24];

    o->feed.has_begun = true;
    snprintf(id, sizeof(id), "%lld", (long long)after);
    if (!o->feed.was_further) {
        buf_addf(body, "id: %s\n\n", id);
        return;
    }
    event = speak_event_open(body, str_of(id), STR("gap"));
    speak_feed_gap(&out, o->feed.was_further, after);
    speak_event_close(&event);
}

static void write_batch(struct open *o)
{
    struct buf *body = &o->calls->body;
    struct feed_entry e;

    if (!o->feed.has_begun)
        write_beginning(o);
    while (body->n < BATCH_BYTES &&
           feed_next(o->calls->feed, &o->feed.reader, &e)) {
        struct json_out out = json_out(body);
        struct speak_entry said = entry_of(&e);
        struct speak_event event;
        char id[24];

        snprintf(id, sizeof(id), "%lld", (long long)e.seq);
        event = speak_event_open(body, str_of(id), e.type);
        speak_entry(&out, &said);
        speak_event_close(&event);
    }
}

static void pump(struct open *o)
{
    while (open_has_room(o)) {
        buf_clear(&o->calls->body);
        write_batch(o);
        if (!o->calls->body.n || !open_send(o))
            return;
    }
}

static void on_news(struct feed_reader *r)
{
    pump(LIST_OF(r, struct open, feed.reader));
}

static void stream(struct call *c, int64_t after)
{
    struct open *o = open_new(c);

    if (!o || !open_stream(o, OPEN_FEED, pump))
        return;
    o->feed.reader = (struct feed_reader){.on_news = on_news};
    o->feed.is_reading = true;
    feed_join(c->calls->feed, &o->feed.reader, &c->caller, after);
    if (after > o->feed.reader.after)
        o->feed.was_further = after;
    pump(o);
}

void call_feed(struct call *c)
{
    struct str seen = http_header(c->rq, STR("Last-Event-ID"));
    struct str arg = seen.n ? seen : call_arg(c, "after");
    struct str last = call_arg(c, "last");
    bool is_stream = call_wants_events(c);
    int64_t after = is_stream ? feed_newest(c->calls->feed) : 0;

    if (last.p && (is_stream || arg.p || call_arg(c, "limit").p)) {
        call_refuse(
            c, ERR_BAD_REQUEST,
            STR("last stands alone: it is a page of the newest entries, "
                "and goes with neither after nor limit nor a stream"));
        return;
    }
    if (arg.p && (str_to_i64(arg, &after) || after < 0)) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("after, or Last-Event-ID, must be the seq of an entry, "
                        "or 0 for all there are"));
        return;
    }
    if (is_stream)
        stream(c, after);
    else if (last.p)
        answer_last(c, last);
    else
        answer_page(c, after);
}
