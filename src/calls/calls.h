#ifndef CALLS_CALLS_H
#define CALLS_CALLS_H

/* calls: what may be asked for. One table says which path and method leads to
 * which function; one file per noun holds the functions.
 *
 * Owns the buffer that answers are written in. Borrows the rooms it asks.
 * Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "net/net.h"
#include "watch/watch.h"

struct calls {
    struct loop *loop;
    struct log *log;
    struct net *net;
    int64_t started_mono_ms;
    bool is_ready;                /* false from the first word of stopping */
    int64_t reloads_total;        /* configurations taken over while running */
    int64_t reloads_failed_total; /* and turned down */
    struct watch_files files;     /* for call_metrics */
    struct buf body;              /* of the answer being written */
};

void calls_init(struct calls *c, struct loop *loop, struct log *log,
                struct net *net);
void calls_fini(struct calls *c);

/* One request on its way through a call. Borrowed for the call. */
struct call {
    struct calls *calls;
    uint64_t id;
    const struct http_request *rq;
    struct buf *body; /* empty, to be written into */
};

/* Answer the request by the table; what is not in it is answered with a word
 * of help. */
void calls_take(struct calls *c, uint64_t id, const struct http_request *rq);

/* Answer with what is in the body. One that did not fit becomes ERR_INTERNAL:
 * half an answer is none. */
void call_answer(struct call *c, int status, struct str type);

/* Answer with an error, whatever is in the body. */
void call_refuse(struct call *c, enum err e, struct str message);

#endif
