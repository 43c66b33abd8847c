#ifndef INTENT_H
#define INTENT_H

/* intent: the language model that is asked who a message is for, where the
 * configuration names one (routing.intentClassifier).
 *
 *     intent_ask -> POST to the endpoint -> done, within timeoutMs
 *
 * What it is asked and what its answer means is choose's matter; here is the
 * way there and back: its time limit, how many may be under way, and a breaker,
 * so that a classifier that is down costs messages no time. Nothing is asked
 * twice.
 *
 * Owns: what is under way, and a copy of its settings. Borrows: loop, log and
 * fetch. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"
#include "fetch/fetch.h"
#include "model/roads.h"

struct intent;

enum {
    INTENT_OUT_MAX = 64, /* questions under way; more: ERR_BUSY */
    INTENT_ANSWER_MAX = 64 * 1024,
    INTENT_FAILURES_MAX = 5, /* in a row; then it is left alone for a while */
    INTENT_PAUSE_MS = 10 * 1000,
    /* how long it is asked without a field that it does not take */
    INTENT_HABIT_MS = 10 * 60 * 1000,
};

/* Copied. */
struct intent_settings {
    enum model_kind kind;
    struct str endpoint; /* as chat_reach takes it; empty: nobody */
    struct str key;      /* empty: none */
    int64_t timeout_ms;  /* from the question to the last byte */
};

struct intent_opts {
    struct loop *loop;
    struct log *log;
    struct fetch *fetch; /* NULL: nobody is ever asked */
    struct intent_settings settings;
};

/* NULL: memory is gone. */
MUST_USE struct intent *intent_new(const struct intent_opts *opts);

/* After intent_stop. */
void intent_free(struct intent *in);

/* From the next question on. ERR_NOMEM: those before still hold. */
MUST_USE enum err intent_set(struct intent *in,
                             const struct intent_settings *s);

/* What came of a question. Borrowed for the call. */
struct intent_reply {
    enum err err;         /* OK: it has answered, with status 200 */
    struct str body;      /* then; for choose_intent_read, */
    enum model_kind kind; /* in the dialect that it was asked in */
    struct why why;       /* else: why not, in words that may be shown */
    int64_t took_ms;
};

typedef void intent_done(void *ctx, const struct intent_reply *r);

/* Ask. `body` is what choose_intent_ask wrote; copied. done is called once,
 * and nothing of this is left then. Where nobody is asked at all, that is
 * before this returns, and it returns zero; else it returns the number of the
 * question, and done comes from the loop.
 *
 * Errors of the reply: ERR_TIMEOUT; ERR_UNREACHABLE: nobody there, or none is
 * configured; ERR_OVERLOADED: it has failed too often just now, or says so
 * itself; ERR_NOT_ALLOWED: it does not take our key; ERR_BAD_REQUEST: it
 * refuses the question, or what came is no answer; ERR_BUSY: as many as may be
 * are under way; ERR_STOPPING; ERR_NOMEM. */
uint64_t intent_ask(struct intent *in, struct str body, intent_done *done,
                    void *ctx);

/* No more callback for it. A number that is over is nobody's. */
void intent_cancel(struct intent *in, uint64_t id);

/* Whoever waits is told ERR_STOPPING now, and whoever asks from now on. */
void intent_stop(struct intent *in);

struct intent_stats {
    int64_t asked_total;   /* that were sent */
    int64_t failed_total;  /* of these, without an answer in time */
    int64_t unasked_total; /* the breaker was open, or too many under way */
    int64_t out;           /* under way */
    bool is_paused;        /* the breaker is open */
};
struct intent_stats intent_stats(const struct intent *in);

#endif
