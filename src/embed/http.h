#ifndef EMBED_HTTP_H
#define EMBED_HTTP_H

/* What http.c (the provider: queues, how many at a time, the breaker) and ask.c
 * (one request: its body, what came of it) share. */

#include "base/arena.h"
#include "embed/jobs.h"
#include "fetch/fetch.h"

enum {
    ASK_BYTES_MAX = 1 << 20, /* of texts in one request, unless one alone has
                              * more */
    SPLITS_MAX = 32,         /* further requests because of one that was
                              * refused */
    BUSY_RETRY_MS = 100,
};

/* What the parts of a request that was refused may still cost. */
struct split {
    int n_users;
    int n_left;
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
    struct timer retry;    /* fetch was busy */
    int64_t busy_since_ms; /* zero: it was not */
};

/* http.c */

/* See what can be asked, at the end of the turn. */
void provider_kick(struct provider *p);

/* What became of a request: it was answered in some way, or not. `why` is for
 * everybody and for the log: no words of the provider's, which may repeat what
 * one caller sent. */
void provider_answered(struct provider *p, bool is_probe);
void provider_failed(struct provider *p, bool is_probe, int64_t retry_ms,
                     const struct why *why);

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
