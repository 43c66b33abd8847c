#ifndef EMBED_HTTP_H
#define EMBED_HTTP_H

/* Shared by embed_http.c (the provider: queues, the number of requests, the
 * breaker) and embed_ask.c (one request: its body and its answer). */

#include "base/arena.h"
#include "base/breaker.h"
#include "embed/jobs.h"
#include "embed/reply.h"
#include "net/client/fetch.h"

enum {
    ASK_BYTES_MAX = 1 << 20, /* of texts in one request, unless a single text
                              * has more */
    ASK_NUMBERS_MAX = 32768, /* in one answer, unless a single vector has
                              * more */
    NUMBER_BYTES_MAX = 40,   /* of one number as text, with separators */
    ANSWER_SPARE_BYTES = 64 * 1024,
    PARTS_BLIND_MAX = 24, /* further requests for a rejected one, as long as
                           * no part of it succeeded; after that twice as
                           * many as it has texts, which is always enough */
    PARTS_BROKEN_MAX = 6, /* and for one that broke the provider */
    BUSY_RETRY_MS = 100,
    REFUSED_LOG_MS = 60 * 1000, /* at most one log line about rejections in
                                 * that time */
};

/* A request that is repeated in parts: their cost, and their combined verdict
 * on the provider. */
struct split {
    int n_users;    /* requests that have not ended */
    size_t n_texts; /* of the original request */
    size_t n_parts; /* so far */
    bool is_taken;  /* one of them succeeded */
    bool is_broken; /* one got status 500 */
    bool has_run_out;
    bool is_probe; /* one of them was the probe */
};

/* A request: not sent yet (id zero), or in progress. */
struct ask {
    struct list_node node; /* in provider.ready or provider.out */
    struct provider *provider;
    uint64_t id; /* of fetch */
    enum embed_use use;
    bool is_probe;
    bool is_ending;      /* freed after iterating over its texts */
    bool has_one_owner;  /* all texts belong to one caller */
    struct split *split; /* NULL: not part of a split request */
    size_t n, n_wanted;
    struct embed_text *texts[]; /* n; NULL: no longer wanted */
};

struct provider {
    struct embed *embed;
    struct arena arena; /* of the strings below */
    struct embed_http_opts opts;
    struct fetch_header headers[3];
    size_t n_headers;
    struct str origin; /* of the URL, for messages */

    struct breaker breaker;
    struct why last;        /* last failure, without the provider's words */
    struct list waiting[2]; /* texts, by use */
    struct list ready;      /* parts of split requests */
    struct list out;        /* in progress */
    size_t n_out, n_documents_out;
    struct loop_job work;
    int64_t refused_log_ms; /* rejections are logged again from then on */
    struct timer retry;     /* fetch was busy */
    int64_t busy_since_ms;  /* zero: it is not */
};

/* embed_http.c */

/* The length of a vector, or its maximum while unknown. */
static inline size_t provider_dims(const struct provider *p)
{
    return p->embed->stamp.dims ? p->embed->stamp.dims : EMBED_DIMS_MAX;
}

/* Send what can be sent, at the end of the turn. */
void provider_kick(struct provider *p);

/* Report the end of a request: it was answered in some way, or not. `why` goes
 * to all callers and to the log, so it has none of the provider's words, which
 * may repeat the text of one caller. */
void provider_answered(struct provider *p, bool is_probe);
void provider_failed(struct provider *p, bool is_probe, int64_t retry_ms,
                     const struct why *why);

/* It rejected a text. */
void provider_refused(struct provider *p, const struct why *why);

/* embed_ask.c */

/* With room for so many texts. */
struct ask *ask_new(struct provider *p, size_t room);
void ask_add(struct ask *a, struct embed_text *t);

/* Start it. On an error it is unchanged. */
MUST_USE enum err ask_send(struct ask *a, struct why *why);

/* Fail all its texts and free it. */
void ask_fail(struct ask *a, enum err e, const struct why *why);

/* Remove an unwanted text; with the last one the request is freed. */
void ask_drop(struct ask *a, struct embed_text *t);

#endif
