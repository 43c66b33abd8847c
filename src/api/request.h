#ifndef API_REQUEST_H
#define API_REQUEST_H

/* request: a call that is not answered at once, whatever protocol it came by.
 *
 *     front end -> noun -> store, walk, ... -> noun -> front end
 *
 * The front end is the protocol: it reads the call, and knows how to answer it.
 * The noun does the work, and keeps its state behind the request. So a noun is
 * written once for all protocols: HTTP (request_http.c) and the hub
 * (hub/hub_request.c).
 *
 * The store and the walk give a request back by pointer. If its caller leaves
 * meanwhile, the request has ended, and waits in api.gone until then. Ended
 * requests are freed at the end of the turn, so that a module that is calling
 * its listeners never finds one freed. */

#include <assert.h>

#include "access/access.h"
#include "api/api.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/list.h"
#include "task/task.h"

struct request;

struct front_end {
    size_t seat_bytes; /* what it keeps of a request: request.seat */
    /* The caller can still be answered. NULL: one that leaves ends its
     * requests. */
    bool (*is_there)(const struct request *o);
    /* The caller may have what was just read or found. False: it was refused,
     * since its token is not valid any more. NULL: a caller without a valid
     * token is not there for long. */
    bool (*is_welcome)(struct request *o);
    /* The caller has closed its side: it may have gone, or wait for an answer.
     * NULL: see is_there. */
    bool (*is_shut)(const struct request *o);
    /* Begin the JSON of an answer, and send it. The status is that of HTTP. */
    struct json_out (*begin)(struct request *o);
    void (*answer)(struct request *o, int status);
    /* Send an error; words and details may be empty. */
    void (*refuse)(struct request *o, enum err e, struct str words,
                   struct str details);
    /* The request has ended. */
    void (*leave)(struct request *o);
};

/* The state that a noun keeps of a request: request.own, zeroed at first. */
struct request_state {
    size_t bytes;
    /* Stop what it started elsewhere, perhaps once more; NULL: nothing. */
    void (*quiet)(struct request *o);
    /* Release what the state owns, but not the state; NULL: nothing. */
    void (*fini)(void *own);
};

/* Kinds:
 *
 *   ASKING    the store or the walk has something of it, and will answer
 *   WAITING   for the end of a task
 *   EVENTS    a stream of a task's events
 *   FEED      a stream of the feed */
enum request_kind {
    REQUEST_ASKING,
    REQUEST_WAITING,
    REQUEST_EVENTS,
    REQUEST_FEED
};
enum { N_REQUEST_KINDS = 4 };

typedef void task_found(struct request *o, enum err e, const struct task *t);

struct request {
    struct list_node node;
    struct api *api;
    const struct front_end *front;
    void *seat; /* the part of the front end, behind this struct */
    const struct request_state *state; /* NULL: none */
    void *own;                         /* the part of the noun, behind that */
    struct arena arena;                /* freed with the request */
    uint64_t id; /* of the front end; zero: the request has ended */
    enum request_kind kind;
    bool is_out;    /* the store or the walk has something of it, which must
                       come back before it is freed */
    bool is_search; /* an outside model may be waited for */
    struct caller caller;
    struct timer timer; /* end of the wait, or the next heartbeat */

    /* Reads, one after the other. */
    struct query query, turns;
    bool has_query, has_turns;
    unsigned n_looks;
    task_found *found, *then_found;
    void (*then)(struct request *o); /* called when a query is back */
    struct query *asked;             /* that the store has now, or NULL */
    struct list_node listing;        /* in api.listings or api.studies */
    int64_t page_bytes;              /* of memory that its pages take at most */
    unsigned n_pages;                /* pages, or tries, that were read */

    /* A task. */
    struct id task_id, message_id;
    int64_t turn;   /* turn of the task when it was last seen */
    bool sees_task; /* the noun has checked that the caller may see it */
    struct task_listener listener;
    bool is_listening;
};

/* A request of a front end; NULL without memory. */
struct request *request_alloc(struct api *c, const struct front_end *front,
                              const struct request_state *state);
void request_drop(struct request *o); /* one that has not begun */
void requests_free(struct list *l);

/* The request is answered, or the caller has gone. o must not be used any more,
 * except to come back from the store or the walk. */
void request_end(struct request *o);

/* o goes to the store or the walk, or comes back. request_back is false if the
 * caller has gone; o must then not be used. */
static inline void request_out(struct request *o)
{
    assert(!o->is_out);
    o->is_out = true;
}
MUST_USE bool request_back(struct request *o);

/* The caller may have the answer; see front_end. */
static inline bool request_is_welcome(struct request *o)
{
    return !o->front->is_welcome || o->front->is_welcome(o);
}

/* Stop everything that o listens to. */
void request_quiet(struct request *o);

/* Read q, which is o->query or o->turns, from the store; then() is called
 * unless the caller has gone. o frees it. request_query and request_query_turns
 * start such a query, in `query` and in `turns`; each frees the one before. */
void request_read(struct request *o, struct query *q,
                  void (*then)(struct request *o));
struct query *request_query(struct request *o, const struct table *t,
                            size_t limit);
struct query *request_query_turns(struct request *o, const struct table *t,
                                  size_t limit);
void request_drop_queries(struct request *o);

/* o->query was read. False: an error was answered. */
MUST_USE bool request_query_ok(struct request *o);

/* Read a page of a list, which may take long: one token may read a few lists at
 * a time. A second call for the same o reads the next page, unless the client
 * has closed its side. The last thing to do with o. */
void request_read_list(struct request *o, struct query *q,
                       void (*then)(struct request *o));

/* Call before the first page of a query over very many records: one token may
 * run a few of these, besides its lists. False: an error was answered. */
MUST_USE bool request_analytics(struct request *o);

/* Answer and end. request_json begins the JSON, and request_answer sends it;
 * request_answer_list closes a list, with a zero cursor at its end;
 * request_fail has no words. */
static inline struct json_out request_json(struct request *o)
{
    return o->front->begin(o);
}
void request_answer(struct request *o, int status);
void request_answer_list(struct request *o, struct json_out *out,
                         int64_t cursor);
void request_fail(struct request *o, enum err e);
void request_refuse(struct request *o, enum err e, struct str words,
                    struct str details);

/* task_lookup.c: tasks in memory or in the store. */

/* Find o->task_id and pass it to found(), perhaps before this returns; valid
 * during that call. ERR_NOT_FOUND: there is none that the caller may see. */
void look_task(struct request *o, task_found *found);

/* look_read_row: read the row of another task into o->query. look_take_row: it
 * was read. OK: *out is the task, from memory or as *row; NULL: it moved
 * meanwhile, look again (o->n_looks starts at zero). Otherwise the error of the
 * query, or ERR_NOT_FOUND. */
void look_read_row(struct request *o, struct str task_id,
                   void (*then)(struct request *o));
MUST_USE enum err look_take_row(struct request *o, struct str task_id,
                                struct task *row, const struct task **out);

/* The turn that o is about is the current one of t. */
bool look_is_current(const struct request *o, const struct task *t);

/* Read the past turn o->message_id of t, and pass the task with the fields of
 * that turn to found(). */
void look_past(struct request *o, const struct task *t, task_found *found);

/* The same for a turn by its number. */
void look_number(struct request *o, const struct task *t, int64_t turn,
                 task_found *found);

/* The task, or the turn of it that o->message_id names. */
void look_turn(struct request *o, task_found *found);

/* tasks.c: cancel the turn of o->task_id that is seen first, and answer with
 * the task. o keeps a cancel_state. */
extern const struct request_state cancel_state;
void task_cancel(struct request *o,
                 void (*answer)(struct request *o, const struct task *t));

/* search.c: search for agents, and answer. o keeps a search_state. */
extern const struct request_state search_state;
struct speak_search_call;
void search_begin(struct request *o, const struct speak_search_call *call,
                  const struct eyes *eyes);

#endif
