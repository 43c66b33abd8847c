#ifndef DELIVER_TRANSPORTS_EXCHANGE_H
#define DELIVER_TRANSPORTS_EXCHANGE_H

/* exchange: a delivery by HTTP request, for http.c and model.c. It sends the
 * request, gathers the answer or splits it into events, enforces the deadlines,
 * and turns errors into a delivery_failure with an explanation. The transport
 * interprets the answer.
 *
 *     exchange_send -> head -> events … -> on_event
 *                      \ body      -> on_whole, on_end or on_status
 *
 * There are two waits. The head may take as long as the whole answer. After it
 * only the allowed silence counts, since an agent that began to answer and
 * stopped has most likely died. */

#include "base/sse.h"
#include "deliver/internal.h"

enum {
    /* A whole answer, and one event of a stream: the largest result with every
     * byte of its text escaped. */
    EXCHANGE_ANSWER_MAX = 6 * MSG_TEXT_MAX + 1024 * 1024,
    EXCHANGE_STREAM_MAX = 64 * 1024 * 1024, /* all of a stream */
    EXCHANGE_COMPLAINT_MAX = 64 * 1024,     /* kept of the body of an error */
    EXCHANGE_WORDS_BYTES = 240,             /* of an agent's error message */
    EXCHANGE_BODY_MAX = 64 * 1024 * 1024,   /* of a request */
    EXCHANGE_SPARE_MS = 1000, /* after the task's deadline, which comes first */
    EXCHANGE_LONGEST_MS = 24 * 3600 * 1000, /* for a task without one */
};

struct exchange;

struct exchange_ops {
    /* An event of a successful answer. False: the delivery is over. */
    bool (*on_event)(struct exchange *a, const struct sse_event *e);
    /* Exactly one of these comes, once, unless the delivery is over before: the
     * stream has ended; the whole answer is in a->body; the status is an error,
     * and the first bytes of the answer are in a->body. */
    void (*on_end)(struct exchange *a);
    void (*on_whole)(struct exchange *a);
    void (*on_status)(struct exchange *a);
    /* The exchange broke. NULL: the delivery fails. */
    void (*on_broken)(struct exchange *a, const struct delivery_failure *f);
};

struct exchange {
    struct delivery delivery;
    struct deliver *d;
    const struct exchange_ops *ops;
    const char *peer; /* "the agent", the subject of error messages */
    char agent[AGENT_NAME_MAX + 1];
    bool is_operators;  /* the operator's address: details go to the log only */
    int64_t silence_ms; /* zero: no limit of its own */
    int64_t until_ms;   /* monotonic */

    uint64_t id; /* of the fetch; zero: none */
    bool has_head, is_stream;
    int status;
    int64_t retry_ms; /* the pause that the answer asks for */
    char type[64];    /* Content-Type, cut */
    int64_t heard_ms; /* time of the last byte */
    struct timer patience;
    struct buf body;
    struct sse sse;
    size_t n_kept;    /* bytes that the transport keeps; counted with it */
    size_t n_counted; /* its part of d->exchange_bytes */

    struct loop_job late; /* reports a failure found in `start` */
    struct delivery_failure failure;
    struct why failure_words;
};

/* *a must be zero except for its settings. whole_ms: limit of the exchange. */
void exchange_init(struct exchange *a, struct deliver *d,
                   const struct exchange_ops *ops, const struct agent *agent,
                   int64_t whole_ms);
void exchange_stop(struct exchange *a); /* for transport_row.stop */
void exchange_fini(struct exchange *a); /* for transport_row.free */

/* Send rq; its timeouts and limits are set here. A previous answer is dropped.
 * ERR_SYNTAX, ERR_BUSY, ERR_NOMEM, ERR_STOPPING, explained in *why. */
MUST_USE enum err exchange_send(struct exchange *a, struct fetch_request *rq,
                                struct why *why);

/* For an exchange of several requests. exchange_rest: ignore the rest of the
 * current answer; only the task's deadline counts now. exchange_again: the next
 * request gets whole_ms, or the rest of the task's time. */
void exchange_rest(struct exchange *a);
void exchange_again(struct exchange *a, int64_t whole_ms);

/* The time that the task has left, plus EXCHANGE_SPARE_MS. */
int64_t exchange_whole_ms(struct deliver *d, const struct task *t);

/* The attempt failed; the format gives the explanation. */
void exchange_failed(struct exchange *a, struct delivery_failure f,
                     const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The same from inside `start`: reported at the end of the loop turn. The
 * second is for an error of exchange_send. */
void exchange_fail_later(struct exchange *a, struct delivery_failure f,
                         const char *fmt, ...) PRINTF_LIKE(3, 4);
void exchange_not_sent(struct exchange *a, enum err e, const struct why *why);

/* The failure for an error of fetch. */
struct delivery_failure exchange_failure_of(enum err e);

/* Authentication, from a card; credentials.c. */
struct credentials {
    struct fetch_header header; /* empty name: none needed */
    struct str secrets[2];      /* must not appear in messages */
};

/* ERR_UNREACHABLE, explained in *why without the secret: the card asks for
 * something that cannot be sent. ERR_NOMEM. Strings are in the arena. */
MUST_USE enum err credentials_of(struct arena *arena, const struct agent *a,
                                 struct credentials *out, struct why *why);

/* Read a document over HTTP: a result or, as an event, a chunk. If it names its
 * task or turn, they must be those of the request. ERR_BAD_REQUEST, ERR_LIMIT,
 * ERR_NOMEM, explained in *why. *out borrows from text. */
MUST_USE enum err answer_read(struct arena *arena, struct str text,
                              const struct delivery_id *id, bool is_chunk,
                              struct wire_word *out, struct why *why);

#endif
