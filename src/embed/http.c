/* A provider that speaks OpenAI's /v1/embeddings.
 *
 *     take -> waiting[query, document] --+
 *                                        +--> out -> made or failed
 *              ready (parts of what      |
 *              was refused) -------------+
 *
 * Texts wait until the end of the turn, so that those of many callers travel
 * in one request; then as many requests as may be are under way, and the rest
 * waits for one of them to end. Queries go first, and where there may be
 * several requests one is kept for them. Nothing is asked twice by itself but
 * the parts of what was refused (ask.c): whoever searches does so without
 * vectors while the provider fails, and asks again the next time.
 *
 * How long a text waits is bounded by the deadline of its job (embed.c), each
 * request by its own time-out. Once the breaker opens, or fetch was full for as
 * long as a request may take, everything that waits fails at once. */
#include "embed/http.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/url.h"

enum { STRINGS_BYTES = 64 * 1024 };

void provider_kick(struct provider *p)
{
    loop_at_end(p->embed->loop, &p->work);
}

/* The breaker. */

static enum err say_open(const struct provider *p, struct why *why)
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

static void fail_waiting(struct provider *p, enum err e, const struct why *why)
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
    fail_waiting(p, say_open(p, &words), &words);
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

/* Asking. */

/* So many that reading the answer, which is done on the loop, takes some
 * fifteen milliseconds at the most: 32768 numbers, 1.4 MB of them. */
static size_t most_texts(const struct provider *p)
{
    size_t most = ASK_NUMBERS_MAX / provider_dims(p);

    most = most < p->opts.batch ? most : p->opts.batch;
    return most ? most : 1;
}

/* A request for the first that wait, or NULL: nobody does, or there is no
 * memory, which fails the first of them. */
static struct ask *gather(struct provider *p, enum embed_use use)
{
    struct list *from = &p->waiting[use];
    struct ask *a;
    struct list_node *n;
    struct why why;
    size_t bytes = 0, most = most_texts(p);

    if (list_is_empty(from))
        return NULL;
    a = ask_new(p, most);
    if (!a) {
        why_err(&why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
        embed_failed(LIST_OF(list_pop(from), struct embed_text, node),
                     ERR_NOMEM, &why);
        provider_kick(p); /* and then the others */
        return NULL;
    }
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

/* The first part of its use that was refused and is to be asked again. */
static struct ask *next_part(struct provider *p, enum embed_use use)
{
    struct list_node *n;

    for (n = list_first(&p->ready); n; n = list_next(&p->ready, n))
        if (LIST_OF(n, struct ask, node)->use == use)
            return LIST_OF(n, struct ask, node);
    return NULL;
}

/* What is asked next. */
static struct ask *next_ask(struct provider *p)
{
    size_t most = p->opts.max_requests;
    bool may_be_document = p->n_documents_out + (most > 1) < most;
    struct ask *a = next_part(p, EMBED_QUERY);

    if (!a)
        a = gather(p, EMBED_QUERY);
    if (!a && may_be_document)
        a = next_part(p, EMBED_DOCUMENT);
    if (!a && may_be_document)
        a = gather(p, EMBED_DOCUMENT);
    return a;
}

/* All of fetch is busy: wait, but not for ever, and not each by itself. */
static void wait_for_room(struct provider *p, struct ask *a,
                          const struct why *why)
{
    int64_t now_ms = loop_mono_ms(p->embed->loop);

    if (!p->busy_since_ms)
        p->busy_since_ms = now_ms;
    if (now_ms - p->busy_since_ms < p->opts.timeout_ms &&
        !loop_timer_set(p->embed->loop, &p->retry, BUSY_RETRY_MS)) {
        if (!list_has(&a->node))
            list_append(&p->ready, &a->node);
        return;
    }
    p->busy_since_ms = 0;
    ask_fail(a, ERR_UNREACHABLE, why);
    fail_waiting(p, ERR_UNREACHABLE, why);
}

/* False: nothing more for now. */
static bool send_one(struct provider *p)
{
    struct ask *a = next_ask(p);
    struct why why;
    enum err e;

    if (!a) {
        p->busy_since_ms = 0; /* nobody waits for room any more */
        return false;
    }
    e = ask_send(a, &why);
    if (e == ERR_BUSY) {
        wait_for_room(p, a, &why);
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

static void on_work(struct loop_job *job)
{
    struct provider *p = LIST_OF(job, struct provider, work);

    while (p->n_out < p->opts.max_requests &&
           breaker_may(&p->breaker, loop_mono_ms(p->embed->loop)))
        if (!send_one(p))
            break;
}

static void on_retry(struct timer *t)
{
    provider_kick(LIST_OF(t, struct provider, retry));
}

/* What embed.c asks of a kind. */

static enum err http_may(struct embed *e, struct why *why)
{
    struct provider *p = e->model;

    return breaker_may(&p->breaker, loop_mono_ms(e->loop)) ? OK
                                                           : say_open(p, why);
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

static void set_limits(struct provider *p, const struct embed_http_opts *o)
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
    set_limits(e->model, &opts->http);
    provider_kick(e->model);
}

/* Life and death. */

static void hash_part(EVP_MD_CTX *md, struct str part)
{
    uint64_t n = part.n;

    EVP_DigestUpdate(md, &n, sizeof(n));
    EVP_DigestUpdate(md, part.p, part.n);
}

/* What its vectors depend on, as far as we know. */
static enum err make_stamp(const struct embed_http_opts *o,
                           struct embed_stamp *out)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    char hash[EMBED_HASH_CHARS + 1];
    EVP_MD_CTX *md = FAULT("embed.hash") ? NULL : EVP_MD_CTX_new();
    unsigned n = 0;

    if (!md)
        return ERR_NOMEM;
    EVP_DigestInit_ex(md, EVP_sha256(), NULL);
    /* Without the query, where some want a key. */
    hash_part(md, str_sub(o->url, 0, str_find(o->url, '?', 0)));
    hash_part(md, o->model);
    hash_part(md, (struct str){(const char *)&o->dims, sizeof(o->dims)});
    hash_part(md, o->query_prefix);
    hash_part(md, o->document_prefix);
    EVP_DigestFinal_ex(md, sum, &n);
    EVP_MD_CTX_free(md);
    for (unsigned i = 0; i < n && 2 * i < EMBED_HASH_CHARS; i++)
        snprintf(hash + 2 * i, 3, "%02x", sum[i]);
    embed_stamp_set(out, o->model, hash, o->dims);
    return OK;
}

static bool copy(struct provider *p, struct str *s)
{
    return arena_keep(&p->arena, *s, s);
}

/* Headers with the key, which is nowhere else but in opts.key. */
static bool make_headers(struct provider *p)
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

static enum err check(const struct embed_http_opts *o, struct url *url,
                      struct why *why)
{
    struct why words;

    if (url_read(o->url, url, &words))
        return why_err(why, ERR_BAD_CONFIG, "embed.http.url: %s", words.text);
    if (url->is_ws)
        return why_err(why, ERR_BAD_CONFIG,
                       "embed.http.url is to begin with https:// or http://");
    if (o->dims > EMBED_DIMS_MAX)
        return why_err(why, ERR_BAD_CONFIG,
                       "embed.http.dimensions may be %d at the most",
                       EMBED_DIMS_MAX);
    for (size_t i = 0; i < o->key.n; i++)
        if (o->key.p[i] <= ' ' || o->key.p[i] > '~')
            return why_err(why, ERR_BAD_CONFIG,
                           "the key of the provider (embed.http.keyVariable) "
                           "has a character that no key has, perhaps a line "
                           "end; set the variable to the key alone");
    return OK;
}

static enum err fill(struct provider *p, const struct embed_http_opts *o)
{
    struct url url;

    p->opts = *o;
    if (!copy(p, &p->opts.url) || !copy(p, &p->opts.model) ||
        !copy(p, &p->opts.key) || !copy(p, &p->opts.query_prefix) ||
        !copy(p, &p->opts.document_prefix) || !make_headers(p) ||
        make_stamp(o, &p->embed->stamp) || url_read(p->opts.url, &url, NULL))
        return ERR_NOMEM;
    /* What may be shown: a path or a query can hold secrets. */
    p->origin =
        (struct str){url.scheme.p, (size_t)(url.authority.p + url.authority.n -
                                            url.scheme.p)};
    set_limits(p, o);
    p->embed->max_text_bytes = o->max_text_bytes;
    return OK;
}

static enum err http_open(struct embed *e, const struct embed_opts *opts,
                          struct why *why)
{
    struct provider *p;
    struct url url;
    enum err err = check(&opts->http, &url, why);

    if (err)
        return err;
    p = FAULT("embed.provider") ? NULL : calloc(1, sizeof(*p));
    if (!p)
        return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    p->embed = e;
    p->work.run = on_work;
    p->retry.fire = on_retry;
    list_init(&p->waiting[EMBED_QUERY]);
    list_init(&p->waiting[EMBED_DOCUMENT]);
    list_init(&p->ready);
    list_init(&p->out);
    arena_init(&p->arena, STRINGS_BYTES);
    if (fill(p, &opts->http)) {
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
    enum err e = check(&opts->http, &url, why);

    if (!e && (e = make_stamp(&opts->http, stamp)))
        why_err(why, e, "%s", err_row(e)->wording);
    return e;
}

/* Whoever wanted something has given up before: so has every request. */
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
