/* A provider of OpenAI's /v1/embeddings.
 *
 *     take -> waiting[query, document] --+
 *                                        +--> out -> made or failed
 *              ready (parts of split     |
 *              requests) ----------------+
 *
 * Texts wait until the end of the turn, so that those of many callers share a
 * request. Then as many requests as allowed are sent, and the rest waits for
 * one of them to end. Queries go first, and if several requests are allowed one
 * is reserved for them. Nothing is retried except the parts of rejected
 * requests (embed_ask.c): a search continues without vectors while the provider
 * fails, and the next one asks again.
 *
 * The wait of a text is bounded by the deadline of its job (embed.c), each
 * request by its own time-out. Once the breaker opens, or fetch has been full
 * for as long as a request may take, all waiting texts fail at once. */
#include "embed/http.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/url.h"

enum { STRINGS_BYTES = 64 * 1024 };

void provider_kick(struct provider *p)
{
    loop_at_end(p->embed->loop, &p->work);
}

/* The breaker. */

static enum err provider_say_open(const struct provider *p, struct why *why)
{
    int64_t left_ms = p->breaker.until_ms - loop_mono_ms(p->embed->loop);
    char until[64] = "until it has answered once";

    if (p->breaker.state == BREAKER_OPEN && left_ms > 0)
        snprintf(until, sizeof(until), "for the next %lld s",
                 (long long)(left_ms + 999) / 1000);
    return why_err(why, ERR_OVERLOADED,
                   "%.*s is left alone %s, since it failed: %.300s",
                   STR_ARG(p->origin), until, p->last.text);
}

static void provider_fail_waiting(struct provider *p, enum err e,
                                  const struct why *why)
{
    struct list_node *n;

    while ((n = list_first(&p->ready)))
        ask_fail(LIST_OF(n, struct ask, node), e, why);
    for (int use = 0; use < 2; use++)
        while ((n = list_pop(&p->waiting[use])))
            embed_failed(LIST_OF(n, struct embed_text, node), e, why);
}

void provider_answered(struct provider *p, bool is_probe)
{
    if (breaker_good(&p->breaker, is_probe))
        log_info(p->embed->log, "embed.provider_back",
                 LOG_S("provider", p->origin));
}

void provider_failed(struct provider *p, bool is_probe, int64_t retry_ms,
                     const struct why *why)
{
    int64_t now_ms = loop_mono_ms(p->embed->loop);
    bool was_closed = p->breaker.state == BREAKER_CLOSED;
    struct why words;

    p->last = *why;
    if (!breaker_bad(&p->breaker, is_probe, now_ms, retry_ms))
        return;
    if (was_closed)
        log_warn(p->embed->log, "embed.provider_fails",
                 LOG_S("provider", p->origin), LOG_C("because", why->text),
                 LOG_I("pause_ms", p->breaker.until_ms - now_ms));
    provider_fail_waiting(p, provider_say_open(p, &words), &words);
}

void provider_refused(struct provider *p, const struct why *why)
{
    int64_t now_ms = loop_mono_ms(p->embed->loop);

    if (p->refused_log_ms && now_ms < p->refused_log_ms)
        return;
    p->refused_log_ms = now_ms + REFUSED_LOG_MS;
    log_warn(p->embed->log, "embed.provider_refuses",
             LOG_S("provider", p->origin), LOG_C("because", why->text));
}

/* Requests. */

/* Limits a request so that reading the answer, on the loop, takes about fifteen
 * milliseconds: 32768 numbers, 1.4 MB of them. */
static size_t provider_most_texts(const struct provider *p)
{
    size_t most = ASK_NUMBERS_MAX / provider_dims(p);

    most = most < p->opts.batch ? most : p->opts.batch;
    return most ? most : 1;
}

/* A request for the first waiting texts; NULL if none is waiting. */
static struct ask *provider_gather(struct provider *p, enum embed_use use)
{
    struct list *from = &p->waiting[use];
    struct ask *a;
    struct list_node *n;
    size_t bytes = 0, most = provider_most_texts(p);

    if (list_is_empty(from))
        return NULL;
    a = ask_new(p, most);
    a->use = use;
    while (a->n < most && (n = list_first(from))) {
        struct embed_text *t = LIST_OF(n, struct embed_text, node);

        bytes += t->text.n;
        if (a->n && bytes > ASK_BYTES_MAX)
            break;
        list_remove(n);
        ask_add(a, t);
    }
    return a;
}

/* The first part of a split request with that use. */
static struct ask *provider_next_part(struct provider *p, enum embed_use use)
{
    struct list_node *n;

    for (n = list_first(&p->ready); n; n = list_next(&p->ready, n))
        if (LIST_OF(n, struct ask, node)->use == use)
            return LIST_OF(n, struct ask, node);
    return NULL;
}

/* The next request to send. */
static struct ask *provider_next_ask(struct provider *p)
{
    size_t most = p->opts.max_requests;
    bool may_be_document = p->n_documents_out + (most > 1) < most;
    struct ask *a = provider_next_part(p, EMBED_QUERY);

    if (!a)
        a = provider_gather(p, EMBED_QUERY);
    if (!a && may_be_document)
        a = provider_next_part(p, EMBED_DOCUMENT);
    if (!a && may_be_document)
        a = provider_gather(p, EMBED_DOCUMENT);
    return a;
}

/* All of fetch is busy: wait, but not forever, and not for each request
 * separately. */
static void provider_wait_for_fetch(struct provider *p, struct ask *a,
                                    const struct why *why)
{
    int64_t now_ms = loop_mono_ms(p->embed->loop);

    if (!p->busy_since_ms)
        p->busy_since_ms = now_ms;
    if (now_ms - p->busy_since_ms < p->opts.timeout_ms) {
        loop_timer_set(p->embed->loop, &p->retry, BUSY_RETRY_MS);
        if (!list_has(&a->node))
            list_append(&p->ready, &a->node);
        return;
    }
    p->busy_since_ms = 0;
    ask_fail(a, ERR_UNREACHABLE, why);
    provider_fail_waiting(p, ERR_UNREACHABLE, why);
}

/* False: nothing more to send now. */
static bool provider_send_one(struct provider *p)
{
    struct ask *a = provider_next_ask(p);
    struct why why;
    enum err e;

    if (!a) {
        p->busy_since_ms = 0; /* no request waits for fetch any more */
        return false;
    }
    e = ask_send(a, &why);
    if (e == ERR_BUSY) {
        provider_wait_for_fetch(p, a, &why);
        return false;
    }
    p->busy_since_ms = 0;
    if (e) {
        ask_fail(a, e, &why);
        return true;
    }
    list_remove(&a->node);
    list_append(&p->out, &a->node);
    p->embed->stats.requests_total++;
    return true;
}

static void on_provider_work(struct loop_job *job)
{
    struct provider *p = LIST_OF(job, struct provider, work);

    while (p->n_out < p->opts.max_requests &&
           breaker_may(&p->breaker, loop_mono_ms(p->embed->loop)))
        if (!provider_send_one(p))
            break;
}

static void on_provider_retry(struct timer *t)
{
    provider_kick(LIST_OF(t, struct provider, retry));
}

/* Operations of the kind. */

static enum err http_may(struct embed *e, struct why *why)
{
    struct provider *p = e->model;

    return breaker_may(&p->breaker, loop_mono_ms(e->loop))
               ? OK
               : provider_say_open(p, why);
}

static bool http_is_paused(const struct embed *e)
{
    const struct provider *p = e->model;

    return breaker_is_shut(&p->breaker, loop_mono_ms(e->loop));
}

static void http_take(struct embed *e, struct embed_text *t)
{
    struct provider *p = e->model;

    list_append(&p->waiting[t->job->use], &t->node);
    provider_kick(p);
}

static bool http_drop(struct embed *e, struct embed_text *t)
{
    (void)e;
    list_remove(&t->node);
    if (t->ask)
        ask_drop(t->ask, t);
    return true;
}

static void provider_set_limits(struct provider *p,
                                const struct embed_http_opts *o)
{
    p->opts.batch = o->batch ? o->batch : 1;
    p->opts.max_requests = o->max_requests ? o->max_requests : 1;
    p->opts.max_answer_bytes = o->max_answer_bytes;
    p->opts.timeout_ms = o->timeout_ms;
    p->breaker.max_failures = o->breaker_failures;
    p->breaker.pause_ms = o->breaker_pause_ms;
}

static void http_set(struct embed *e, const struct embed_opts *opts)
{
    provider_set_limits(e->model, &opts->http);
    provider_kick(e->model);
}

/* Create and free. */

static void stamp_hash_part(EVP_MD_CTX *md, struct str part)
{
    uint64_t n = part.n;

    EVP_DigestUpdate(md, &n, sizeof(n));
    EVP_DigestUpdate(md, part.p, part.n);
}

/* Everything that its vectors depend on, as far as we know. */
static enum err provider_stamp(const struct embed_http_opts *o,
                               struct embed_stamp *out)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    char hash[EMBED_HASH_CHARS + 1];
    EVP_MD_CTX *md = FAULT("embed.hash") ? NULL : EVP_MD_CTX_new();
    unsigned n = 0;

    if (!md)
        return ERR_NOMEM;
    EVP_DigestInit_ex(md, EVP_sha256(), NULL);
    /* Without the query, which may contain a key. */
    stamp_hash_part(md, str_sub(o->url, 0, str_find(o->url, '?', 0)));
    stamp_hash_part(md, o->model);
    stamp_hash_part(md, (struct str){(const char *)&o->dims, sizeof(o->dims)});
    stamp_hash_part(md, o->query_prefix);
    stamp_hash_part(md, o->document_prefix);
    EVP_DigestFinal_ex(md, sum, &n);
    EVP_MD_CTX_free(md);
    for (unsigned i = 0; i < n && 2 * i < EMBED_HASH_CHARS; i++)
        snprintf(hash + 2 * i, 3, "%02x", sum[i]);
    embed_stamp_set(out, o->model, hash, o->dims);
    return OK;
}

static bool provider_keep(struct provider *p, struct str *s)
{
    return arena_keep(&p->arena, *s, s);
}

/* The headers contain the key; the only other copy is opts.key. */
static bool provider_make_headers(struct provider *p)
{
    size_t n = p->opts.key.n + sizeof("Bearer ");
    char *text;

    p->headers[p->n_headers++] =
        (struct fetch_header){STR("Content-Type"), STR("application/json")};
    p->headers[p->n_headers++] =
        (struct fetch_header){STR("Accept"), STR("application/json")};
    if (!p->opts.key.n)
        return true;
    text = arena_alloc(&p->arena, n);
    if (!text)
        return false;
    snprintf(text, n, "Bearer %.*s", STR_ARG(p->opts.key));
    p->headers[p->n_headers++] =
        (struct fetch_header){STR("Authorization"), {text, n - 1}};
    return true;
}

static enum err provider_check(const struct embed_http_opts *o, struct url *url,
                               struct why *why)
{
    struct why words;

    if (url_read(o->url, url, &words))
        return why_err(why, ERR_BAD_CONFIG, "embed.http.url: %s", words.text);
    if (url->is_ws)
        return why_err(why, ERR_BAD_CONFIG,
                       "embed.http.url must begin with https:// or http://");
    if (o->dims > EMBED_DIMS_MAX)
        return why_err(why, ERR_BAD_CONFIG,
                       "embed.http.dimensions may be at most %d",
                       EMBED_DIMS_MAX);
    for (size_t i = 0; i < o->key.n; i++)
        if (o->key.p[i] <= ' ' || o->key.p[i] > '~')
            return why_err(
                why, ERR_BAD_CONFIG,
                "the key of the provider (embed.http.keyVariable) "
                "has a character that is not allowed in a key, perhaps a line "
                "end; set the variable to only the key");
    return OK;
}

static enum err provider_fill(struct provider *p,
                              const struct embed_http_opts *o)
{
    struct url url;

    p->opts = *o;
    if (!provider_keep(p, &p->opts.url) || !provider_keep(p, &p->opts.model) ||
        !provider_keep(p, &p->opts.key) ||
        !provider_keep(p, &p->opts.query_prefix) ||
        !provider_keep(p, &p->opts.document_prefix) ||
        !provider_make_headers(p) || provider_stamp(o, &p->embed->stamp) ||
        url_read(p->opts.url, &url, NULL))
        return ERR_NOMEM;
    /* The part that may be shown: a path or a query can contain secrets. */
    p->origin =
        (struct str){url.scheme.p, (size_t)(url.authority.p + url.authority.n -
                                            url.scheme.p)};
    provider_set_limits(p, o);
    p->embed->max_text_bytes = o->max_text_bytes;
    return OK;
}

static enum err http_open(struct embed *e, const struct embed_opts *opts,
                          struct why *why)
{
    struct provider *p;
    struct url url;
    enum err err = provider_check(&opts->http, &url, why);

    if (err)
        return err;
    p = mem_new(sizeof(*p));
    p->embed = e;
    p->work.run = on_provider_work;
    p->retry.fire = on_provider_retry;
    list_init(&p->waiting[EMBED_QUERY]);
    list_init(&p->waiting[EMBED_DOCUMENT]);
    list_init(&p->ready);
    list_init(&p->out);
    arena_init(&p->arena, STRINGS_BYTES);
    if (provider_fill(p, &opts->http)) {
        arena_fini(&p->arena);
        free(p);
        return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    }
    e->model = p;
    return OK;
}

static enum err http_check(const struct embed_opts *opts,
                           struct embed_stamp *stamp, struct why *why)
{
    struct url url;
    enum err e = provider_check(&opts->http, &url, why);

    if (!e && (e = provider_stamp(&opts->http, stamp)))
        why_err(why, e, "%s", err_row(e)->wording);
    return e;
}

/* All jobs, and so all requests, have been given up before. */
static void http_stop(struct embed *e)
{
    struct provider *p = e->model;

    loop_timer_cancel(e->loop, &p->retry);
    loop_not_at_end(&p->work);
    embed_down(e);
}

static void http_close(struct embed *e)
{
    struct provider *p = e->model;

    loop_timer_cancel(e->loop, &p->retry);
    loop_not_at_end(&p->work);
    arena_fini(&p->arena);
    free(p);
}

const struct embed_ops embed_http_ops = {
    .open = http_open,
    .close = http_close,
    .check = http_check,
    .may = http_may,
    .is_paused = http_is_paused,
    .take = http_take,
    .drop = http_drop,
    .set = http_set,
    .stop = http_stop,
};
