/* The life of requests, their reads and their answers, for all front ends. */
#include "api/internal.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PAGE_COPIES = 4,
    LISTS_MAX = 8,   /* of one token at a time */
    STUDIES_MAX = 4, /* of one token, besides its lists */
    PAGES_OWED = 16, /* pages for a client that has closed its sending side */
    REQUEST_ARENA_BYTES = 64 * 1024 * 1024, /* as the largest message */
};

/* Life. */

static size_t part_bytes(size_t n)
{
    size_t unit = alignof(max_align_t);

    return (n + unit - 1) / unit * unit;
}

struct request *request_alloc(struct api *c, const struct front_end *front,
                              const struct request_state *state)
{
    size_t head = part_bytes(sizeof(struct request));
    size_t seat = part_bytes(front->seat_bytes);
    struct request *o = calloc(1, head + seat + (state ? state->bytes : 0));

    if (!o)
        return NULL;
    o->api = c;
    o->front = front;
    o->state = state;
    o->seat = (char *)o + head;
    o->own = (char *)o + head + seat;
    arena_init(&o->arena, REQUEST_ARENA_BYTES);
    return o;
}

void request_drop_queries(struct request *o)
{
    if (o->has_query)
        query_fini(&o->query);
    if (o->has_turns)
        query_fini(&o->turns);
    o->has_query = o->has_turns = false;
}

void request_drop(struct request *o)
{
    list_remove(&o->node);
    list_remove(&o->listing);
    request_drop_queries(o);
    if (o->state && o->state->fini)
        o->state->fini(o->own);
    arena_fini(&o->arena);
    free(o);
}

void requests_free(struct list *l)
{
    struct list_node *n;

    while ((n = list_first(l)) != NULL)
        request_drop(LIST_OF(n, struct request, node));
}

void request_quiet(struct request *o)
{
    if (o->is_listening)
        task_unlisten(walk_tasks(o->api->walk), &o->listener);
    o->is_listening = false;
    if (o->state && o->state->quiet)
        o->state->quiet(o);
    loop_timer_cancel(o->api->loop, &o->timer);
}

/* o is freed at the end of the turn. */
static void request_die(struct request *o)
{
    list_remove(&o->node);
    list_append(&o->api->dead, &o->node);
    loop_at_end(o->api->loop, &o->api->reap_job);
}

void request_end(struct request *o)
{
    if (!o->id)
        return;
    request_quiet(o);
    list_remove(&o->node);
    o->front->leave(o);
    o->id = 0;
    if (!o->is_out) {
        request_die(o);
        return;
    }
    list_append(&o->api->gone, &o->node);
    if (o->asked)
        store_forget(o->api->store, o->asked);
}

bool request_back(struct request *o)
{
    assert(o->is_out);
    o->is_out = false;
    if (!o->id)
        request_die(o);
    else if (!o->front->is_there || o->front->is_there(o))
        return true;
    else
        request_end(o);
    return false;
}

/* Reads. */

static void on_request_read(struct query *q, void *ctx)
{
    struct request *o = ctx;

    o->asked = NULL;
    if (q->err && q->err != ERR_GONE)
        log_warn(o->api->log, "calls.not_read", LOG_C("table", q->table->name),
                 LOG_C("because", err_row(q->err)->wording));
    /* As a client can use them: try later, or our fault. */
    if (q->err == ERR_BUSY)
        q->err = ERR_OVERLOADED;
    else if (q->err == ERR_LIMIT)
        q->err = ERR_INTERNAL;
    if (request_back(o) && request_is_welcome(o))
        o->then(o);
}

struct query *request_query(struct request *o, const struct table *t,
                            size_t limit)
{
    if (o->has_query)
        query_fini(&o->query);
    query_init(&o->query, t, limit);
    o->has_query = true;
    return &o->query;
}

struct query *request_query_turns(struct request *o, const struct table *t,
                                  size_t limit)
{
    if (o->has_turns)
        query_fini(&o->turns);
    query_init(&o->turns, t, limit);
    o->has_turns = true;
    return &o->turns;
}

bool request_query_ok(struct request *o)
{
    if (!o->query.err)
        return true;
    request_fail(o, o->query.err);
    return false;
}

/* q is freed with o, whether it is read or not. */
static void request_own(struct request *o, const struct query *q)
{
    o->has_query |= q == &o->query;
    o->has_turns |= q == &o->turns;
}

void request_read(struct request *o, struct query *q,
                  void (*then)(struct request *o))
{
    o->then = then;
    o->asked = q;
    request_own(o, q);
    request_out(o);
    store_read(o->api->store, q, on_request_read, o);
}

/* Enter a list for the whole life of o: a read that has started is not rejected
 * half way. There are few in all, so those of a token are counted by a
 * search. */
static bool request_enter_list(struct request *o, struct list *all, size_t most,
                               struct str words)
{
    size_t n = 0;

    for (struct list_node *l = list_first(all); l; l = list_next(all, l))
        n += strcmp(LIST_OF(l, struct request, listing)->caller.token_id.text,
                    o->caller.token_id.text) == 0;
    if (n >= most) {
        request_refuse(o, ERR_OVERLOADED, words, STR(""));
        return false;
    }
    list_append(all, &o->listing);
    return true;
}

bool request_analytics(struct request *o)
{
    return request_enter_list(
        o, &o->api->studies, STUDIES_MAX,
        STR("four analytics queries of this token are running; wait for "
            "one of them"));
}

/* A page is in memory several times: its rows, the answer, and the answer in
 * the connection's buffer, which doubles. There must be enough memory for that
 * beside the lists that are being read, or small allocations would find nothing
 * and stop the server. A short list is the way out when memory is short: it
 * finds the tasks to cancel. */
static bool request_has_memory(struct request *o, const struct query *q)
{
    struct watch_memory *memory = o->api->memory;
    int64_t bytes = PAGE_BYTES, needed;

    if (q->limit < PAGE_BYTES / MSG_TEXT_MAX)
        bytes = (int64_t)q->limit * MSG_TEXT_MAX;
    o->page_bytes = PAGE_COPIES * bytes;
    if (!memory)
        return true;
    needed = o->page_bytes + memory->reserve_bytes / 4;
    for (struct list_node *l = list_first(&o->api->listings); l;
         l = list_next(&o->api->listings, l))
        needed += LIST_OF(l, struct request, listing)->page_bytes;
    if (watch_memory_left(memory, loop_mono_ms(o->api->loop)) >= needed)
        return true;
    request_refuse(o, ERR_OVERLOADED,
                   STR("it has too little memory left for a list of this "
                       "length"),
                   STR(""));
    return false;
}

/* A client that closed its sending side cannot be told from one that has gone,
 * and still gets an answer. But reading on and on for clients that have gone
 * (each new page of the dashboard leaves one) would block all others. */
void request_read_list(struct request *o, struct query *q,
                       void (*then)(struct request *o))
{
    request_own(o, q);
    if (!list_has(&o->listing)) {
        if (!request_has_memory(o, q) ||
            !request_enter_list(
                o, &o->api->listings, LISTS_MAX,
                STR("eight lists are being read for this token; wait for one "
                    "of them")))
            return;
    } else if (o->n_pages >= PAGES_OWED && o->front->is_shut &&
               o->front->is_shut(o)) {
        request_refuse(
            o, ERR_BAD_REQUEST,
            STR("the connection was closed while many records were being "
                "read; keep it open until the answer"),
            STR(""));
        return;
    }
    o->n_pages++;
    request_read(o, q, then);
}

/* Answers. */

void request_answer(struct request *o, int status)
{
    o->front->answer(o, status);
    request_end(o);
}

void request_refuse(struct request *o, enum err e, struct str words,
                    struct str details)
{
    o->front->refuse(o, e, words, details);
    request_end(o);
}

void request_fail(struct request *o, enum err e)
{
    request_refuse(o, e, STR(""), STR(""));
}

void request_answer_list(struct request *o, struct json_out *out,
                         int64_t cursor)
{
    char digits[32] = "";

    if (cursor)
        snprintf(digits, sizeof(digits), "%lld", (long long)cursor);
    speak_list_close(out, str_of(digits));
    request_answer(o, 200);
}
