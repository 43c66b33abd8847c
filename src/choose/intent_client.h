#ifndef CHOOSE_INTENT_CLIENT_H
#define CHOOSE_INTENT_CLIENT_H

/* intent: the client of the language model that classifies messages, if one is
 * configured (routing.intentClassifier).
 *
 *     intent_ask -> POST to the endpoint -> done, within timeoutMs
 *
 * choose writes the question and reads the answer. This module transports them:
 * with a time limit, a limit on questions in flight, and a breaker, so that a
 * classifier that is down costs messages no time. No question is sent twice.
 *
 * Owns: questions in flight, and a copy of its settings. Borrows: loop, log and
 * fetch. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"
#include "model/transports.h"
#include "net/client/fetch.h"

struct intent;

enum {
    INTENT_OUT_MAX = 64, /* questions in flight; more: ERR_BUSY */
    INTENT_ANSWER_MAX = 64 * 1024,
    INTENT_FAILURES_MAX = 5, /* in a row; then it is left alone for a while */
    INTENT_PAUSE_MS = 10 * 1000,
    /* how long a field that it rejects is replaced */
    INTENT_HABIT_MS = 10 * 60 * 1000,
};

/* Copied. */
struct intent_settings {
    enum model_kind kind;
    struct str endpoint; /* as for chat_reach; empty: no classifier */
    struct str key;      /* empty: none */
    int64_t timeout_ms;  /* from the question to the last byte */
};

struct intent_opts {
    struct loop *loop;
    struct log *log;
    struct fetch *fetch; /* NULL: no classifier */
    struct intent_settings settings;
};

/* NULL: the strings of the settings are too long. */
MUST_USE struct intent *intent_new(const struct intent_opts *opts);

/* After intent_stop. */
void intent_free(struct intent *in);

/* For the next questions. ERR_NOMEM: the strings are too long, and the present
 * settings stay. */
MUST_USE enum err intent_set(struct intent *in,
                             const struct intent_settings *s);

/* The result of a question. Borrowed for the call. */
struct intent_reply {
    enum err err;         /* OK: an answer with status 200 */
    struct str body;      /* of the answer, for choose_intent_read, */
    enum model_kind kind; /* with the kind of the endpoint */
    struct why why;       /* of an error; may be shown to the requester */
    int64_t took_ms;
};

typedef void intent_done(void *ctx, const struct intent_reply *r);

/* Ask. `body` is from choose_intent_ask; copied. done is called exactly once,
 * and the question is over then. If it cannot be sent, done is called before
 * this returns zero; else this returns the number of the question, and done is
 * called from the loop.
 *
 * Errors of the reply: ERR_TIMEOUT; ERR_UNREACHABLE: no connection, or no
 * classifier is configured; ERR_OVERLOADED: too many recent failures, or it
 * says so itself; ERR_NOT_ALLOWED: it rejects our key; ERR_BAD_REQUEST: it
 * rejects the question, or its answer is not HTTP; ERR_BUSY: INTENT_OUT_MAX are
 * in flight; ERR_STOPPING; ERR_NOMEM. */
uint64_t intent_ask(struct intent *in, struct str body, intent_done *done,
                    void *ctx);

/* Cancel: there is no callback. Harmless for a question that is over. */
void intent_cancel(struct intent *in, uint64_t id);

/* All questions end with ERR_STOPPING now, and so does every later one. */
void intent_stop(struct intent *in);

struct intent_stats {
    int64_t asked_total;   /* sent */
    int64_t failed_total;  /* sent, without an answer in time */
    int64_t unasked_total; /* not sent: breaker open, or too many in flight */
    int64_t out;           /* in flight */
    bool is_paused;        /* the breaker is open */
};
struct intent_stats intent_stats(const struct intent *in);

#endif
