#ifndef DELIVER_TRANSPORTS_MODEL_STREAM_H
#define DELIVER_TRANSPORTS_MODEL_STREAM_H

/* talk: the exchange with a model's endpoint. model.c sends the requests, and
 * model_stream.c reads the answers. */

#include "deliver/transports/exchange.h"
#include "wire/chat/chat.h"

enum {
    TALK_ROUNDS_MAX = 16, /* of tools; then it must answer without them */
    TALK_ROUNDS_BYTES = 8 * 1024 * 1024,   /* of all rounds; likewise */
    TALK_RESULTS_BYTES = 4 * 1024 * 1024,  /* of the results of one round */
    TALK_REQUEST_BYTES = 48 * 1024 * 1024, /* of all rounds in a request */
};

/* A running call of a tool. */
struct tool_run {
    struct talk *talk;
    void *handle;
    bool is_running;
    struct buf result;
};

/* The rounds of one answer: the model calls tools, they run, and the next
 * request has their results. */
struct rounds {
    size_t n;        /* finished and running ones */
    size_t n_calls;  /* of all rounds */
    bool is_between; /* tools run, no request is pending */
    size_t n_running;
    struct chat_calls api; /* of this round */
    struct tool_run runs[CHAT_CALLS_MAX];
    struct buf earlier;      /* earlier rounds, for chat_request.rounds */
    bool has_text;           /* this round has text */
    size_t text_at;          /* its begin among the chunks */
    int64_t used[CHAT_USED]; /* of earlier rounds; -1: not reported */
    struct loop_job next;    /* sends the next request */
};

/* The next answer of a conversation. */
struct talk {
    struct exchange exchange;
    struct arena arena; /* of the request */
    struct chat_request rq;
    struct chat_reach reach;
    struct str key, name;
    int64_t timeout_ms;
    bool is_habit;    /* the request uses known limits of the endpoint */
    bool lacks_tools; /* the endpoint supports none */
    bool is_starting; /* inside talk_start */
    bool asks_history;
    void *history_handle;
    enum err sent; /* the result of talk_send, while starting */
    struct why why;

    /* The answer. */
    bool has_begun; /* a piece came, perhaps an empty one */
    bool is_ended;  /* it has a finish reason */
    bool has_text;  /* it has text */
    char finish[CHAT_FINISH_MAX + 1];
    char model[CHAT_NAME_MAX + 1];
    struct buf usage;
    int64_t used[CHAT_USED];
    struct rounds rounds;
};

static inline struct talk *talk_of(struct exchange *a)
{
    return LIST_OF(a, struct talk, exchange);
}

/* Send the request; model.c. An error is explained in *why. */
MUST_USE enum err talk_send(struct talk *k, struct why *why);

/* tool_rounds.c. */
void rounds_init(struct talk *k);
void rounds_stop(struct talk *k); /* for transport_row.stop */
void rounds_fini(struct talk *k); /* for transport_row.free */

/* If the finished answer calls tools, run them. False: it does not. */
MUST_USE bool round_begin(struct talk *k);

/* For struct exchange_ops. */
bool talk_event(struct exchange *a, const struct sse_event *e);
void talk_end(struct exchange *a);
void talk_whole(struct exchange *a);
void talk_broken(struct exchange *a, const struct delivery_failure *f);

/* The endpoint has answered: remember the features that were left out. */
void talk_went_well(const struct talk *k);

/* Whether an error with this status may be retried; zero: unknown. */
bool talk_may_try_again(int64_t status);

/* The error message of an endpoint; empty if it is about the key. */
void talk_words(const struct talk *k, struct str body, int64_t status,
                char out[EXCHANGE_WORDS_BYTES]);

#endif
