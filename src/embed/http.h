#ifndef EMBED_HTTP_H
#define EMBED_HTTP_H

/* What http.c (the provider: queues, how many at a time, the breaker) and ask.c
 * (one request: its body, what came of it) share. */

#include "base/arena.h"
#include "base/breaker.h"
#include "embed/jobs.h"
#include "embed/reply.h"
#include "fetch/fetch.h"

enum {
    ASK_BYTES_MAX = 1 << 20, /* of texts in one request, unless one alone has
                              * more */
    ASK_NUMBERS_MAX = 32768, /* in one answer, unless one vector has more */
    NUMBER_BYTES_MAX = 40,   /* of one, as text, with what is around it */
    ANSWER_SPARE_BYTES = 64 * 1024,
    PARTS_BLIND_MAX = 24, /* further requests because of one that was
                           * refused, while no part of it was taken; after
                           * that twice as many as it has texts, which is
                           * all that can be needed */
    PARTS_BROKEN_MAX = 6, /* and because of one that broke it */
    BUSY_RETRY_MS = 100,
    REFUSED_LOG_MS = 60 * 1000, /* one word about refusals in so long */
};

/* A request that is asked again in parts: what they have cost, and what they
 * say of the provider together. */
struct split {
    int n_users;    /* requests that are not over */
    size_t n_texts; /* of the first */
    size_t n_parts; /* so far */
    bool is_taken;  /* one of them was answered well */
    bool is_broken; /* one was answered with status 500 */
    bool has_run_out;
    bool is_probe; /* one of them was */
};

/* A request: about to be made (id zero), or under way. */
struct ask {
    struct list_node node; /* in provider.ready or provider.out */
    struct provider *provider;
    uint64_t id; /* of fetch */
    enum embed_use use;
    bool is_probe;
    bool is_ending;      /* it is freed once its texts are gone through */
    bool has_one_owner;  /* all that was sent is one caller's */
    struct split *split; /* NULL: not part of another */
    size_t n, n_wanted;
    struct embed_text *texts[]; /* n; NULL: not wanted any more */
};

struct provider {
    struct embed *embed;
    struct arena arena; /* of the strings below */
    struct embed_http_opts opts;
    struct fetch_header headers[3];
    size_t n_headers;
    struct str origin; /* of the URL, for words */

    struct breaker breaker;
    struct why last;        /* failure, without words of the provider's */
    struct list waiting[2]; /* texts, by use */
    struct list ready;      /* parts of what was refused */
    struct list out;        /* under way */
    size_t n_out, n_documents_out;
    struct loop_job work;
    int64_t refused_log_ms; /* from when on refusals are worth a word again */
    struct timer retry;     /* fetch was busy */
    int64_t busy_since_ms;  /* zero: it was not */
};

/* http.c */

/* How many numbers a vector has, or may have while nobody knows. */
static inline size_t provider_dims(const struct provider *p)
{
    return p->embed->stamp.dims ? p->embed->stamp.dims : EMBED_DIMS_MAX;
}

/* See what can be asked, at the end of the turn. */
void provider_kick(struct provider *p);

/* What became of a request: it was answered in some way, or not. `why` is for
 * everybody and for the log: no words of the provider's, which may repeat what
 * one caller sent. */
void provider_answered(struct provider *p, bool is_probe);
void provider_failed(struct provider *p, bool is_probe, int64_t retry_ms,
                     const struct why *why);

/* It does not take a text. */
void provider_refused(struct provider *p, const struct why *why);

/* ask.c */

/* NULL: no memory. */
struct ask *ask_new(struct provider *p, size_t room);
void ask_add(struct ask *a, struct embed_text *t);

/* Begin. On an error it is as before. */
MUST_USE enum err ask_send(struct ask *a, struct why *why);

/* All of its texts fail, and it is gone. */
void ask_fail(struct ask *a, enum err e, const struct why *why);

/* A text of it is not wanted; with the last one it is gone. */
void ask_drop(struct ask *a, struct embed_text *t);

#endif
